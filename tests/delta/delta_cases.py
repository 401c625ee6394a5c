"""Calls of recurrences of a matrix, for the CPU device and for GPUs."""

from __future__ import annotations

from functools import partial

import numpy as np
from bits import NUMPY, operand, same_bits

import ptxgen
from ptxgen import reference
from ptxgen.ops import OPERATIONS
from ptxgen.oracle import delta as oracle
from ptxgen.spec.delta import Form
from ptxgen.tiles import SPECS, TABLES

RULE, SSD = "gated_delta_rule", "ssd"
FORMS = {RULE: True, SSD: False}
TAME = {RULE: {"l2_norm": True}, SSD: {"softplus": True}}
"""Options that keep states finite over many tokens."""


def draw(name, seed, batch, tokens, sizes, dtype="bf16", kind="normal", wide=True):
    """Arguments. ``sizes``: heads of keys and of values, rows and columns; ``wide``: whether what
    may be f32 is.
    """
    groups, heads, rows, cols = sizes
    rng = np.random.default_rng([seed, tokens, *sizes])
    other = NUMPY["f32" if wide else dtype]
    lead = batch, tokens
    keys = [operand(rng, (*lead, groups, rows), kind, dtype) for _ in range(2)]
    values = operand(rng, (*lead, heads, cols), kind, dtype)
    share = rng.random((*lead, heads)).astype(other)
    if name == RULE:
        g = -rng.random((*lead, heads)).astype(other)
        return {**dict(zip("qk", keys, strict=True)), "v": values, "g": g, "beta": share}
    found = {"x": values, "dt": share, "a": -rng.random(heads).astype(other)}
    found |= zip("bc", keys, strict=True)
    return found | {n: rng.standard_normal(heads).astype(other) for n in ("d", "dt_bias")}


def state(name, seed, batch, sizes):
    """A first state."""
    _, heads, rows, cols = sizes
    own = (rows, cols) if name == RULE else (cols, rows)
    rng = np.random.default_rng(seed)
    return rng.standard_normal((batch, heads, *own)).astype(np.float32)


def cut(given, first, last):
    """The arguments of some tokens."""
    return {n: x[:, first:last] if x.ndim > 2 else x for n, x in given.items()}


def routes(name, rows, dtype="bf16"):
    """The names of all routes for states of so many rows."""
    form = Form(dtype, FORMS[name], rows // 16)
    return [route.of(form).name for route in TABLES["delta",].routes]


def check(name, kernel, sizes, how, device, *, batch=2, tokens=11, dtype="bf16", kind="normal"):
    """A call's results and last states have the oracle's bits."""
    given = draw(name, 3, batch, tokens, sizes, dtype, kind)
    first = state(name, 4, batch, sizes)
    how = {"state": first, "return_state": True, **how}
    with ptxgen.use_device(device):
        got = getattr(ptxgen, name)(**given, **how, kernel=kernel)
    expected = getattr(reference, name)(**given, **how)
    for one, other in zip(got, expected, strict=True):
        same_bits(one, other, spec=kernel, what=f"{name} {sizes} {tokens} {dtype} {kind} {how}")


def check_gradients(name, sizes, device, tokens, dtype="bf16", kind="normal"):
    """Both walks of gradients have the oracle's bits."""
    given, last = draw(name, 5, 2, tokens, sizes, dtype, kind), state(name, 6, 2, sizes)
    rule = FORMS[name]
    names = ("q", "k", "v", "g", "beta") if rule else ("c", "b", "x", "dt", "dt")
    q, k, v, g, beta = (given[n] for n in names)
    do, dd = draw(name, 7, 2, tokens, sizes, dtype)["v" if rule else "x"], v.astype(np.float32)
    w, g, how = (-dd if rule else v), -abs(g), {"scale": 0.7}
    down = (do, q, k, w, g, beta), {"dstate": last, "delta": rule}
    up = (do, k, w, g, beta, *([dd] if rule else [])), {"state": last}
    for walk, (arrays, options) in (("descend", down), ("ascend", up)):
        with ptxgen.use_device(device):
            got = OPERATIONS[f"delta_{walk}"].function(*arrays, **options, **how)
        expected = getattr(oracle, walk)(*arrays, **options, **how)
        pairs = zip(got, expected, strict=True) if type(got) is tuple else [(got, expected)]
        for one, other in pairs:
            same_bits(one, other, what=f"{walk} {name} {sizes} {tokens} {dtype} {kind}")


def gradient(name):
    """Returns gradient checks of the delta rule for a kernel of the table, with more columns than a
    CTA has and tokens beyond whole stages.
    """
    assert SPECS[name].delta_rule
    found = ((1, 2, 128, 72), 9, "bf16", "normal"), ((1, 2, 32, 72), 21, "f32", "special")
    return [partial(_gradient, *each) for each in found]


def _gradient(sizes, tokens, dtype, kind, device):
    check_gradients(RULE, sizes, device, tokens, dtype, kind)


def forward(name):
    """More columns than a CTA's, and rows that are no power of two; of a kernel of the table."""
    width = SPECS[name].width
    wide, odd = (1, 2, 128, width + 8), (2, 2, 104, 24)
    return [
        partial(check, RULE, name, wide, {"l2_norm": True}),
        partial(check, RULE, name, odd, {"state": None}, kind="special", tokens=9),
    ]
