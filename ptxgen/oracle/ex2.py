"""Oracle of ``ex2.approx.ftz.f32``, bit for bit: the steps of :mod:`ptxgen.numerics.ex2`."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from ptxgen.numerics.ex2 import LOWEST, OVERFLOW, ROUND, SEGMENT_BITS, SEGMENTS
from ptxgen.oracle.f32 import F32

I64 = NDArray[np.int64]
_FRACTION, _SQUARED = 23, 15
_LOW = _FRACTION - SEGMENT_BITS
_NAN = np.uint32(0x7FFF_FFFF)


@cache
def _squares() -> I64:
    """Returns a table of ``q``, by 15-bit h: the square of h as the GPU's truncated multiplier
    computes it, step 3 of :mod:`ptxgen.numerics.ex2`.
    """
    h = np.arange(1 << _SQUARED)
    bits = [h >> (_SQUARED - i) & 1 for i in range(1, _SQUARED + 1)]
    total = np.zeros_like(h)
    for i in range(1, _SQUARED + 1):
        for j in range(i, _SQUARED + 1):
            worth = _SQUARED - i - j + (i < j)
            if worth >= 0:
                total += (bits[i - 1] & bits[j - 1]) << worth
    return total


@cache
def _segments() -> tuple[I64, I64, I64]:
    c0, c1, c2 = np.array(SEGMENTS, np.int64).T
    return c0 << (_SQUARED - 2), c1.copy(), c2.copy()


def ex2(x: F32) -> F32:
    """Returns ``2**x`` with the bits of the GPU's special function unit."""
    inside = (x >= LOWEST) & (x < OVERFLOW)
    with np.errstate(invalid="ignore"):
        t = np.floor(np.abs(np.where(inside, x, 0), dtype=np.float64) * 2.0**_FRACTION)
    whole = t.astype(np.int64)
    n, f = whole >> _FRACTION, whole & ((1 << _FRACTION) - 1)
    negative = x < 0
    broken = negative & (f != 0)
    n = np.where(negative, -n, n) - broken
    f ^= np.where(broken, (1 << _FRACTION) - 1, 0)
    segment, u = f >> _LOW, f & ((1 << _LOW) - 1)
    c0, c1, c2 = (c.take(segment) for c in _segments())
    y = (c0 + c1 * u + c2 * _squares().take(u >> (_LOW - _SQUARED)) + ROUND) >> _SQUARED
    bits = (((n + 127) << _FRACTION) + y).astype(np.uint32)
    with np.errstate(invalid="ignore"):
        outside = np.where(x < LOWEST, np.uint32(0), np.float32(np.inf).view(np.uint32))
    found = np.where(inside, bits, np.where(np.isnan(x), _NAN, outside))
    return found.astype(np.uint32).view(np.float32)
