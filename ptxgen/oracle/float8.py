"""Conversions of the floats of 8 bits, as bits in ``uint8`` arrays.

A number is looked up among the values of all codes, and rounded to the nearest.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ptxgen.numerics.weight_format import E4M3, E5M2
from ptxgen.oracle.f32 import F32, as_f32

U8 = NDArray[np.uint8]
VALUES = {"e4m3": E4M3, "e5m2": E5M2}
"""Value of each code, by short dtype."""
NAN = 0x7F
"""Bits of the NaN to which every NaN is rounded."""


def upcast(bits: U8, dtype: str) -> F32:
    """Converts bit patterns of ``dtype`` ("e4m3", "e5m2") to f32, exactly; NaN stays NaN."""
    return np.array(VALUES[dtype], np.float32)[np.asarray(bits, np.uint8)]


@cache
def _middles(dtype: str) -> F32:
    """Returns the numbers halfway from each code's value to the next, from zero on. An Inf counts
    as the number that would be next if exponents went on.
    """
    values = [v for v in VALUES[dtype][:NAN] if v == v]
    if values[-1] == float("inf"):
        values[-1] = 2 * values[-2] - values[-3]
    return np.array([(a + b) / 2 for a, b in pairwise(values)], np.float32)


def downcast(values: ArrayLike, dtype: str) -> U8:
    """Rounds f32 to bit patterns of ``dtype`` ("e4m3", "e5m2"): to nearest, ties to even.

    Larger magnitudes, Inf among them, give the largest number of e4m3 and the Inf of e5m2, with
    their sign. Every NaN gives :data:`NAN`.
    """
    x = as_f32(values)
    size, middles = np.abs(x), _middles(dtype)
    low, high = (np.searchsorted(middles, size, side) for side in ("left", "right"))
    code = np.where(low & 1, high, low) | np.signbit(x) << 7
    return np.where(np.isnan(x), NAN, code).astype(np.uint8)
