"""The problems of kernels that sort rows, or search in sorted ones."""

from __future__ import annotations

import functools

import numpy as np
from bits import operand
from interp_launch import SEED

import ptxgen
from ptxgen import reference
from ptxgen.spec.sort import TILE, SearchSpec
from ptxgen.tiles import SPECS


def same(got, expected, what=""):
    """Fails unless all results have the same dtype, shape and bytes: signs of zeros, payloads of
    NaN.
    """
    got, expected = ((x if isinstance(x, tuple) else (x,)) for x in (got, expected))
    for a, b in zip(got, expected, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape), what
        wrong = np.ascontiguousarray(a).view(np.uint8) != np.ascontiguousarray(b).view(np.uint8)
        assert not wrong.any(), f"{what}: {int(wrong.sum())} bytes differ, seed {SEED}"


def rows(shape, repeats=3):
    """Draws rows of f32 with NaN of both signs, infinities, zeros of both signs and equal
    elements.
    """
    rng = np.random.default_rng([SEED, *shape])
    x = operand(rng, shape, "special")
    x[..., ::repeats] = rng.choice(np.array([0.0, -0.0, 1.0, np.nan, -np.nan], np.float32))
    return x


def check_sorted(kernel, shape, descending, device):
    """A sort of rows by a route."""
    x = rows(shape)
    with ptxgen.use_device(device):
        got = ptxgen.sort(x, descending=descending, kernel=kernel)
    same(got, reference.sort(x, descending=descending), f"{kernel} {shape}")


def check_found(kernel, shape, right, device):
    """A search in sorted rows, by a kernel."""
    x, values = reference.sort(rows(shape))[0], rows((*shape[:-1], 300))
    with ptxgen.use_device(device):
        got = ptxgen.searchsorted(x, values, right=right, kernel=kernel)
    same(got, reference.searchsorted(x, values, right=right), f"{kernel} {shape}")


def cases(name):
    """Rows of one element, of a tile that is not full, and of several tiles; forced passes over
    short rows.
    """
    spec = SPECS[name]
    if isinstance(spec, SearchSpec):
        given = ((2, 100), False), ((1, 1), True)
        return [functools.partial(check_found, name, *each) for each in given]
    most = {"row": spec.owned, "lanes": 32 * spec.items_per_thread}
    sizes = (1, most[spec.part] - 3) if spec.part in most else (70, TILE + 9)
    pairs = enumerate(sizes)
    return [functools.partial(check_sorted, name, (9, n), bool(i)) for i, n in pairs]


def at_edge(name, key, route, edge):
    """Returns a sort of two rows of as many elements as the edge has."""
    return functools.partial(check_sorted, name, (2, edge.inside["COLS"]), True)
