"""Correctly rounded f32 arithmetic on NumPy arrays.

NumPy has no fused multiply-add. :func:`fma` computes it in float64 and rounds it correctly:

1. The product of two f32 numbers has at most 48 significant bits and is zero, or of magnitude
   2**-298 to 2**256, or infinite or NaN; so ``p = a * b`` is exact in float64.
2. ``s = fl64(p + c)`` neither overflows nor is subnormal: p and c are multiples of 2**-298,
   far above 2**-1074. Let ``v = p + c`` exactly. A zero ``s`` is exact.
3. ``f32(s)`` is ``f32(v)`` unless ``s`` is inexact *and* on a rounding boundary of f32. The
   boundaries are the midpoints of neighbouring f32 numbers, which have 25 significant bits, or
   fewer among subnormals (odd multiples of 2**-150), and 2**128 - 2**103, where overflow begins,
   with 25. float64 represents them all, and rounding is monotone, so no boundary is strictly
   between ``v`` and ``s``; nor can ``v`` be on one without ``s`` being equal to it. Off the
   boundaries ``s`` and ``v`` therefore round to the same f32.
4. On a boundary, TwoSum gives ``e = v - s`` exactly (no overflow, no underflow). If ``e`` is zero,
   ``s`` is exact, and ``f32(s)`` breaks the tie to even as it should. If not, ``s`` moves one
   float64 step towards ``v``, to ``t``. ``v`` is strictly between ``s`` and ``t``, and ``t`` is no
   boundary: it is odd (its last significant bit is set), while boundaries need 25 bits at most.
   So ``t`` and ``v`` are on the same side of every boundary, and ``f32(t)`` is right.
5. The same holds for any even inexact ``s``, so step 4 may be applied to more than the boundaries:
   to all even ones. Not to odd ones, whose neighbour may be a boundary. (Rounding to odd.)

Signed zeros, infinities and NaN need no care: an exact zero sum has the same sign in float64
as in an fma, a nonzero ``v`` gives a nonzero ``s`` whose sign ``f32(s)`` keeps, a finite product is
never infinite in float64, and ``0 * inf`` and ``inf - inf`` are NaN in both.

Step 3 makes it cheap, since only elements that may be on a boundary are corrected: among normal
results those whose float64 ends in the 29 bits 1000…0, among subnormal ones all even ones.

This relies on the processor's default mode: round to nearest, subnormals kept.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]


BLOCK = 1 << 14
"""Number of elements per block of a loop, so that its float64 buffers fit the L2 cache."""

_LOW_BITS = np.uint64(0x1FFF_FFFF)
_MIDPOINT = np.uint64(0x1000_0000)
_DOUBLED_BITS_OF_SMALLEST_NORMAL = np.uint64((1023 - 126) << 53)
_ONE = np.uint64(1)


class Rounder:
    """Correctly rounded f32 sums ``product + addend`` of float64 arrays of one shape, with
    preallocated buffers.

    ``subnormal=False`` skips the correction of subnormal results, for callers that know them to be
    exact.
    """

    def __init__(self, shape: tuple[int, ...], *, subnormal: bool = True) -> None:
        self._sum = np.empty(shape, np.float64)
        self._bits = np.empty(shape, np.uint64)
        self._candidate = np.empty(shape, np.bool_)
        self._small = np.empty(shape, np.bool_) if subnormal else None

    def add(self, product: F64, addend: F64, out: F32) -> None:
        """Computes ``out = product + addend`` with one rounding to f32.

        ``product`` has exact products of f32 numbers, ``addend`` f32 numbers, both as contiguous
        float64 arrays of the rounder's shape. Call it under ``np.errstate(all="ignore")``.
        """
        total, bits, candidate = self._sum, self._bits, self._candidate
        np.add(product, addend, out=total)
        np.bitwise_and(total.view(np.uint64), _LOW_BITS, out=bits)
        np.equal(bits, _MIDPOINT, out=candidate)
        if self._small is not None:
            np.left_shift(total.view(np.uint64), _ONE, out=bits)  # drops the sign
            np.less(bits, _DOUBLED_BITS_OF_SMALLEST_NORMAL, out=self._small)
            np.logical_or(candidate, self._small, out=candidate)
        if candidate.any():
            lanes = np.flatnonzero(candidate)
            flat = total.reshape(-1)
            flat[lanes] = _off_boundary(
                flat[lanes], product.reshape(-1)[lanes], addend.reshape(-1)[lanes]
            )
        np.copyto(out, total, casting="same_kind")


def _off_boundary(total: F64, product: F64, addend: F64) -> F64:
    """Rounds sums to odd: where ``total = product + addend`` is inexact and even, moves it by one
    ulp towards the exact sum.
    """
    addend_part = total - product  # TwoSum by Knuth
    error = (product - (total - addend_part)) + (addend - addend_part)
    # Not `error != 0`: a NaN (whose low bits may look like a midpoint's) has a NaN error.
    inexact = (error > 0) | (error < 0)
    even = (total.view(np.uint64) & _ONE) == 0
    return np.where(inexact & even, np.nextafter(total, np.copysign(np.inf, error)), total)


def as_f32(value: ArrayLike) -> F32:
    """Converts to an f32 array; f64 and Python numbers are rounded."""
    return np.asarray(value, dtype=np.float32)


def fma(a: ArrayLike, b: ArrayLike, c: ArrayLike) -> F32:
    """``a * b + c`` in f32 with one rounding, to nearest even; operands broadcast.

    The module's docstring has the proof. Inf, NaN, signed zeros and subnormals are as in IEEE 754;
    no warning is given. The payload and sign of a NaN are arbitrary.
    """
    operands = np.broadcast_arrays(as_f32(a), as_f32(b), as_f32(c))
    shape = operands[0].shape
    flat_a, flat_b, flat_c = (np.ascontiguousarray(x).reshape(-1) for x in operands)
    out = np.empty(flat_a.shape, np.float32)
    rounder = Rounder((min(BLOCK, out.size),))
    with np.errstate(all="ignore"):
        for start in range(0, out.size, BLOCK):
            block = slice(start, start + BLOCK)
            product = flat_a[block].astype(np.float64) * flat_b[block]
            if len(product) < BLOCK:
                rounder = Rounder(product.shape)
            rounder.add(product, flat_c[block].astype(np.float64), out[block])
    return out.reshape(shape)


def add(a: ArrayLike, b: ArrayLike) -> F32:
    """``a + b`` in f32, rounded once; no warnings."""
    with np.errstate(all="ignore"):
        return np.asarray(np.add(as_f32(a), as_f32(b)), dtype=np.float32)


def mul(a: ArrayLike, b: ArrayLike) -> F32:
    """``a * b`` in f32, rounded once; no warnings."""
    with np.errstate(all="ignore"):
        return np.asarray(np.multiply(as_f32(a), as_f32(b)), dtype=np.float32)


def div(a: ArrayLike, b: ArrayLike) -> F32:
    """``a / b`` in f32, correctly rounded as ``div.rn.f32`` is."""
    with np.errstate(all="ignore"):
        return np.asarray(np.divide(as_f32(a), as_f32(b)), dtype=np.float32)
