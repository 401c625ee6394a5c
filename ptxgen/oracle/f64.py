"""Correctly rounded f64 fused multiply-add on NumPy arrays.

NumPy has none. It is computed by error-free transformations in float64, rounding to nearest:

1. TwoProduct (Dekker, with Veltkamp's split): ``a * b = p - e`` exactly, as long as nothing
   overflows and no part falls below 2**-1074. The latter holds where ``|p| >= 2**-960``.
2. TwoSum (Knuth): ``p + c = s - d`` exactly. So ``v = a * b + c = s - (d + e)``.
3. ``t = fl(d + e)`` is within a relative 2**-53 of ``d + e``, and equal to it if subnormal. Hence
   ``v`` is between ``s - t * (1 - 2**-53)`` and ``s - t * (1 + 2**-52)``: these factors move
   ``t`` by at least one ulp. Rounding is monotone: if both differences round to the same number,
   that is the result. This holds except for one element in 2**50 or so, and exact ties.
4. Else ``t`` is *rounded to odd* (if inexact and even, moved by one ulp towards ``d + e``), and
   ``s - t`` is correct: d + e is inexact only if p and c do not cancel, so that ``|t|`` is below
   four ulp of s. The rounding boundaries of ``s - t`` then differ from s by multiples of a quarter
   ulp. Such a difference has 5 bits, so it is even as a float64, and t is on the same side of it as
   ``d + e``. (Boldo and Melquiond, Emulation of FMA and correctly rounded sums, 2008.)

Errors d and e are positive if the rounded result is too large: subtracting +0 keeps a sum of -0.

Elements outside the range of step 1 are scaled by powers of two. Where the exponents of p and c
differ by more than 150, only the sign of the smaller one matters, so the difference is clamped.
Results below 2**-1022, where scaling back would round again, are computed one by one as quotients
of integers, which Python rounds correctly.

This relies on the processor's default mode: round to nearest, subnormals kept.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ptxgen.oracle.f32 import BLOCK, _off_boundary

F64: TypeAlias = NDArray[np.float64]

_SPLIT = 2.0**27 + 1
_LARGE = 2.0**960
"""Bound of the magnitudes of products that :func:`fma` need not scale: from 1 / _LARGE to
_LARGE."""
_SPLITTABLE = 2.0**990
_OUTER, _INNER = 1 + 2.0**-52, 1 - 2.0**-53
_MAX_DISTANCE = 150
_SMALLEST_NORMAL = 2.0**-1022


def fma(a: ArrayLike, b: ArrayLike, c: ArrayLike) -> F64:
    """``a * b + c`` in f64 with one rounding, to nearest even; operands broadcast.

    The proof is in the module's docstring. Inf, NaN, signed zeros and subnormals are as in
    IEEE 754; no warning is given. The payload and sign of a NaN are arbitrary. For an outer product
    pass ``a`` as ``[M, 1]`` and ``b`` as ``[1, N]``: faster than broadcast copies.
    """
    x, y, z = (np.asarray(o, dtype=np.float64) for o in (a, b, c))
    shape = np.broadcast_shapes(x.shape, y.shape, z.shape)
    rank = max(len(shape), 1)
    x, y, z = (o.reshape((1,) * (rank - o.ndim) + o.shape) for o in (x, y, z))
    out = np.empty(shape or (1,), np.float64)
    if not out.size:
        return out
    rows = max(BLOCK * len(out) // out.size, 1)
    with np.errstate(all="ignore"):
        unscaled = _needs_no_scaling(x, y)
        left, right = (_split(o) for o in (x, y))
        for start in range(0, len(out), rows):
            part = slice(start, start + rows)
            first, second = ([_rows(h, part) for h in halves] for halves in (left, right))
            _block(first, second, _rows(z, part), out[part], unscaled)
    return out.reshape(shape)


def _rows(value: F64, part: slice) -> F64:
    """Returns the rows ``part`` of an operand; of an operand with one row, which broadcasts, that
    row.
    """
    return value[part] if len(value) > 1 else value


def _needs_no_scaling(a: F64, b: F64) -> bool:
    """Whether all products of ``a`` and ``b`` are zero or far from overflow and underflow."""
    low = high = 1.0
    for operand in (np.abs(a), np.abs(b)):
        top = float(operand.max())
        if not top < _SPLITTABLE:  # or NaN
            return False
        high *= top
        low *= float(operand.min(initial=1.0, where=operand > 0))
    return low > 1 / _LARGE and high < _LARGE


def _split(value: F64) -> list[F64]:
    """Returns ``value``, its high half and its low half by Veltkamp's split: 26 significant bits
    each, with signs, and the halves add up to it.
    """
    scaled = value * _SPLIT
    high = scaled - (scaled - value)
    return [value, high, value - high]


def _two_product(a: list[F64], b: list[F64]) -> tuple[F64, F64]:
    """Dekker's TwoProduct of operands from :func:`_split`: returns the rounded product, and the
    rounded minus the exact product.
    """
    (x, x1, x0), (y, y1, y0) = a, b
    product = x * y
    excess = product - x1 * y1
    excess -= x1 * y0
    excess -= x0 * y1
    excess -= x0 * y0
    return product, excess


def _two_sum(a: F64, b: F64) -> tuple[F64, F64]:
    """Knuth's TwoSum: returns the rounded sum, and the rounded minus the exact sum."""
    total = a + b
    part = total - a
    excess = total - part
    excess -= a
    part -= b
    excess += part
    return total, excess


def _block(a: list[F64], b: list[F64], c: F64, out: F64, unscaled: bool) -> None:
    """Writes ``a * b + c``, rounded once, to ``out``: by steps 1 to 3 of the module's docstring,
    and by :func:`_fma_scaled` for the elements that these leave open.

    ``a``, ``b``: from :func:`_split`; ``unscaled``: whether no product needs scaling.
    """
    product, excess = _two_product(a, b)
    total, more = _two_sum(product, c)
    excess = excess + more
    np.subtract(total, excess * _OUTER, out=out)
    excess *= _INNER
    inner = total - excess
    unresolved = inner != out  # NaN too: an infinity or NaN was there
    if not unscaled:
        size = np.abs(product)
        fine = (size > 1 / _LARGE) & (size < _LARGE)
        fine &= (np.abs(a[0]) < _SPLITTABLE) & (np.abs(b[0]) < _SPLITTABLE)
        unresolved |= ~(fine | (a[0] == 0) | (b[0] == 0))
    if unresolved.any():
        out[unresolved] = _fma_scaled(
            *(np.broadcast_to(x, out.shape)[unresolved] for x in (a[0], b[0], c))
        )


def _fma_scaled(a: F64, b: F64, c: F64) -> F64:
    """Returns ``a * b + c`` with one rounding for any operands [n]: scales them by powers of two,
    and rounds by step 4 of the module's docstring or, if the result is subnormal, by integers.
    """
    given = np.isfinite(a) & np.isfinite(b)
    result = np.where(given & ~np.isfinite(c), c, a * b + c)
    lanes = np.flatnonzero(given & np.isfinite(c) & (a != 0) & (b != 0))
    if not len(lanes):
        return result
    a, b, c = a[lanes], b[lanes], c[lanes]
    (x, i), (y, j), (z, k) = np.frexp(a), np.frexp(b), np.frexp(c)
    at = i + j
    distance = np.where(c == 0, 0, k - at)
    product, excess = _two_product(_split(x), _split(y))
    total, more = _two_sum(product, np.ldexp(z, np.clip(distance, -_MAX_DISTANCE, _MAX_DISTANCE)))
    rounded = total - _off_boundary(excess + more, excess, more)
    value: F64 = np.ldexp(rounded, np.where(distance > _MAX_DISTANCE, k - _MAX_DISTANCE, at))
    for lane in np.flatnonzero((np.abs(value) <= _SMALLEST_NORMAL) & (rounded != 0)).tolist():
        (p, q), (r, s), (t, u) = (float(o[lane]).as_integer_ratio() for o in (a, b, c))
        value[lane] = np.copysign((p * r * u + t * q * s) / (q * s * u), rounded[lane])
    result[lanes] = value
    return result
