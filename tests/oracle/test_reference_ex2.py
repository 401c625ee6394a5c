"""The special function unit's powers of two: beside exact ones, and beside its neighbours."""

from __future__ import annotations

import numpy as np
import pytest

from ptxgen.numerics.ex2 import ROUND, SEGMENT_BITS, SEGMENTS
from ptxgen.oracle.ex2 import ex2


def _error(x: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
    return ex2(x).astype(np.float64) / np.exp2(x.astype(np.float64)) - 1


@pytest.mark.parametrize("low, high", [(-1, 0), (0, 1), (-126, 128), (-(2.0**-20), 2.0**-20)])
def test_the_error_is_below_what_is_said(low: float, high: float) -> None:
    x = np.random.default_rng(3).uniform(low, high, 1 << 18).astype(np.float32)
    error = _error(x[x < 128])
    assert 2.0**-23.5 < np.abs(error).max() < 2.0**-22.7


def test_whole_numbers_are_exact() -> None:
    n = np.arange(-126, 128)
    assert (ex2(n.astype(np.float32)) == np.exp2(n.astype(np.float64))).all()


def test_special_values() -> None:
    x = np.array([-126, -126.00001, -1e30, -np.inf, 128, np.inf, 0.0, -0.0, np.nan], np.float32)
    found = ex2(x).view(np.uint32)
    inf, one = 0x7F800000, 0x3F800000
    assert found.tolist() == [0x00800000, 0, 0, 0, inf, inf, one, one, 0x7FFFFFFF]


def test_a_fraction_is_complemented() -> None:
    """The fraction of a negative argument that is no integer is ``1 - f`` less one unit (2^-23)."""
    f = np.random.default_rng(4).integers(1, 1 << 23, 1000)
    negative = ex2((-f / 2.0**23).astype(np.float32))
    positive = ex2((((1 << 23) - 1 - f) / 2.0**23).astype(np.float32))
    assert (negative * 2 == positive).all()


def test_segments_join() -> None:
    """Each segment ends where the next begins, to two units of the last place."""
    first = np.arange(1, 1 << SEGMENT_BITS) * 2.0**-SEGMENT_BITS
    step = ex2(first.astype(np.float32)) - ex2((first - 2.0**-23).astype(np.float32))
    assert (np.abs(step) <= 2.0**-21).all() and (step >= 0).all()
    c0, _, c2 = np.array(SEGMENTS).T
    assert (np.diff(c0) > 0).all() and (np.diff(c2) > 0).all() and 0 < ROUND < 1 << 13
