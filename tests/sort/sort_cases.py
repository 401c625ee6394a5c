"""The problems of kernels that sort rows, or search in sorted ones."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
from bits import operand
from interp_launch import SEED

import ptxgen
from ptxgen import reference
from ptxgen.numerics.sort import KEYS
from ptxgen.spec.sort import ROW_MAX, TILE, SearchSpec
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


def drawn(dtype, shape, seed=0):
    """Draws elements of random bits, so that integers have all values and floats all kinds."""
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    rng = np.random.default_rng([seed, *shape])
    if dtype == "bool":
        return rng.random(shape) < 0.5
    size = kind.itemsize
    return rng.integers(0, 1 << 8, (*shape, size), np.uint8).view(kind).reshape(shape)


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


LENGTHS = (1, 31, 33, 64, 65, 129, ROW_MAX, ROW_MAX + 1, 2 * TILE + 1)
"""Lengths of rows at the edges of kernels."""


def edges() -> Iterator[tuple[str, Callable[[Any], None]]]:
    """Yields labels and checks of operations that together launch every kernel of sorts and
    searches, in every dtype, at the edges of tiles.
    """
    for dtype in KEYS:
        for n in LENGTHS:
            yield f"sort_{dtype}_{n}", functools.partial(check_dtype, dtype, n)
    for n in (1, 700):
        yield f"sort_bincount_{n}", functools.partial(check_counted, n)


def check_dtype(dtype, n, device):
    """Sorts rows in both directions, and searches the sorted ones."""
    x = drawn(dtype, (2, n))
    x[:, 1::3] = x[:, : len(range(1, n, 3))]  # equal elements
    with ptxgen.use_device(device):
        for descending in (False, True):
            got = ptxgen.sort(x, descending=descending)
            same(got, reference.sort(x, descending=descending), f"{dtype} {n}")
        rising = reference.sort(x)[0]
        found = ptxgen.searchsorted(rising, x)
    same(found, reference.searchsorted(rising, x), f"{dtype} {n}")


def check_counted(n, device):
    """Counts integers, and finds the unique ones."""
    x = np.random.default_rng(n).integers(0, 90, n)
    with ptxgen.use_device(device):
        same(ptxgen.bincount(x, 90), reference.bincount(x, 90), f"bincount {n}")
        same(ptxgen.unique(x, 90), reference.unique(x, 90), f"unique {n}")
