"""Problems of kernels of contract ``flce/3``: rows of logits, products that keep segments."""

from __future__ import annotations

import functools

import numpy as np
from bits import operand, same_bits
from interp_launch import SEED

import ptxgen
from ptxgen.numerics.formula import STORED
from ptxgen.numerics.vocab_segments import SEGMENT
from ptxgen.ops import OPERATIONS
from ptxgen.oracle import vocab_segments as oracles
from ptxgen.oracle.formula import KINDS
from ptxgen.tiles import SPECS

SOFTCAPS = (30.0, 1.5)
"""A softcap that most logits are well below, and one that most exceed."""
MASKED = (3, 300)
"""Columns that a row is without: -inf."""


def targets(rng, m, n):
    """Draws targets; the first three are the last class, one left out (-100), and one that is no
    class.
    """
    found = rng.integers(0, n, m)
    found[: min(m, 3)] = (n - 1, -100, n)[: min(m, 3)]
    return found


def agree(got, expected, name, what):
    """All results have the oracle's bits."""
    for a, b in zip(got, expected, strict=True):
        same_bits(a, b, seed=SEED, spec=name, what=what)


def check_rows(name, shape, kind, softcap, device):
    """Checks segments, or gradients, of rows of logits."""
    spec, (m, n) = SPECS[name], shape
    rng = np.random.default_rng([SEED, *shape])
    x = operand(rng, shape, kind, spec.dtype)
    x[m // 2, slice(*MASKED)] = -np.inf
    target = targets(rng, m, n).astype((np.int64, np.int32)[n % 2])
    numbers = [softcap if spec.has_softcap else None]
    what = f"{shape} {kind} {numbers}"
    with ptxgen.use_device(device):
        if spec.part == "segments":
            segments = OPERATIONS["logit_segments"].function
            found = segments(x, target, softcap=numbers[0], kernel=name)
            agree(found, oracles.logit_segments(x, target, softcap=numbers[0]), name, what)
            return
        wide = KINDS[STORED[spec.dtype]]
        top, scale, dy = (rng.standard_normal(m).astype(wide) for _ in range(3))
        given = x, target, top + 3, scale, (dy, None)[n % 2]
        how = {"label_smoothing": 0.1, "softcap": numbers[0], "kernel": name}
        found = OPERATIONS["logit_gradient"].function(*given, **how)
    expected = oracles.logit_gradient(*given, label_smoothing=0.1, softcap=numbers[0])
    agree((found,), (expected,), name, what)


def rows(name):
    """Returns checks of rows of part of a segment, of several, of a warp's runs, and beyond a
    CTA's.
    """
    run = SPECS[name].RUN * SEGMENT
    cases = (
        ((4, 5), "normal"),
        ((5, SEGMENT + 44), "wide"),
        ((3, 2 * run), "normal"),
        ((1, SPECS[name].warps * run + 31), "special"),
    )
    if name not in (SPECS[name].of("bf16").name, SPECS[name].of("f64").name):
        cases = cases[1:3]
    return [
        functools.partial(check_rows, name, shape, kind, SOFTCAPS[i % 2])
        for i, (shape, kind) in enumerate(cases)
    ]


def check_product(name, sizes, kind, softcap, biased, device):
    """Checks the segments of a product, whose logits are never stored."""
    spec, (m, n, k) = SPECS[name], sizes
    rng = np.random.default_rng([SEED, *sizes])
    layout = {"NT": "nk", "NN": "kn"}[spec.layout]
    x = operand(rng, (m, k), kind, spec.dtype)
    w = operand(rng, (n, k) if layout == "nk" else (k, n), "normal", spec.dtype)
    bias = operand(rng, (n,), "normal", "f32" if n % 16 else spec.dtype) if biased else None
    target = targets(rng, m, n).astype((np.int64, np.int32)[n % 16 // 8])
    cap = softcap if spec.has_softcap else None
    options = {"layout": layout, "softcap": cap, "kernel": name}
    with ptxgen.use_device(device):
        found = OPERATIONS["linear_segments"].function(x, w, target, bias, **options)
    expected = oracles.linear_segments(x, w, target, bias, layout=layout, softcap=cap)
    agree(found, expected, name, f"{sizes} {kind} {cap}")


def products(name):
    """Returns checks of products beyond a tile along n, and along m with a ring that
    wraps around.
    """
    spec = SPECS[name]
    cases = (
        ((70, spec.bn + 40, 24), "normal", True),
        ((spec.bm + 1, spec.bn, (spec.stages + 1) * spec.bk + 8), "wide", False),
    )
    if spec.dtype == "f16" or spec.layout != "NT":  # what is stored of a tile is the same
        cases = cases[:1]
    return [
        functools.partial(check_product, name, sizes, kind, SOFTCAPS[i], biased)
        for i, (sizes, kind, biased) in enumerate(cases)
    ]
