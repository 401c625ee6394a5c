"""Model of tensor cores: the 16-term dot product ``dot16`` of contract ``tc16``, bit for bit.

For a step of n products (16 on sm_90; see :data:`ptxgen.numerics.contract.TENSOR_CORES`):

1. A factor or accumulator is ``significand * 2**exponent`` with the significand in [1, 2), or, if
   it is subnormal, in (0, 1) with its format's smallest exponent (bf16, f32: -126; f16: -14).
2. A product's significand is the exact product, in (0, 4), and its exponent the sum of its
   factors' exponents: it is not normalized to [1, 2). A zero term has the exponent ``floor`` of
   the table (-133 on sm_90), whatever its factors, and no exponent is less.
3. ``top`` is the largest exponent of the n + 1 terms. Every term is truncated to a multiple of
   ``2**(top - bits)``.
4. The truncated terms are summed exactly, and the sum is truncated to f32, subnormals kept. A zero
   is +0.0, also if a negative sum was truncated.

A sum of magnitude 2**128 or more is infinite (:func:`_cut`); products beyond the range of f32 that
cancel are not. Infinities and NaN are as in IEEE addition: ``inf * 0`` and ``inf - inf`` are NaN.
The NaN is 0x7FFFFFFF.

All of it is measured on sm_90, with mma.sync and wgmma alike (tests/conformance): normal, wide,
cancelling and subnormal operands, zeros, overflow, infinities and NaN. The literature (MMA-Sim,
arXiv 2511.10909) has -126 for the floor, which an H200 contradicts where all terms are tiny.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ptxgen.errors import OptionError, ShapeError
from ptxgen.numerics.contract import TENSOR_CORES, TensorCore
from ptxgen.oracle.f32 import F32, F64, as_f32
from ptxgen.oracle.half import U16, as_bits, format_of, upcast

TERMS = 16
_BLOCK = 1 << 11
"""Number of outputs per block of :func:`accumulate`; their 16 products each fit the L2 cache."""
_ZERO = -1 << 10
"""Exponent of a zero factor, so low that its products' exponents are below every floor."""
_NAN = np.uint32(0x7FFF_FFFF)
_MINUS_ZERO = np.uint32(0x8000_0000)


@dataclass(frozen=True)
class Factors:
    """Decoded 16-bit operands: values in f64, and exponents; the reduction axis is first."""

    value: F64
    exponent: NDArray[np.int16]

    def __getitem__(self, key: slice | tuple[slice, ...]) -> Factors:
        return Factors(self.value[key], self.exponent[key])


@cache
def _table(dtype: str) -> tuple[F64, NDArray[np.int16]]:
    """Returns value and exponent of each bit pattern of ``dtype``, "bf16" or "f16"."""
    form = format_of(dtype)
    bits = np.arange(1 << 16, dtype=np.uint16)
    field = (bits >> form.fraction & form.exponents).astype(np.int16)
    exponent = np.maximum(field, 1) - np.int16(form.bias)
    exponent[bits & 0x7FFF == 0] = _ZERO
    with np.errstate(invalid="ignore"):  # signalling NaN
        return upcast(bits, dtype).astype(np.float64), exponent


def factors(bits: U16, dtype: str) -> Factors:
    """Decodes the bit patterns ``bits`` of ``dtype`` ("bf16" or "f16"), the reduction axis first,
    to values and exponents.
    """
    values, exponents = _table(dtype)
    return Factors(values.take(bits), exponents.take(bits))


def _power(exponent: NDArray[np.int64]) -> F64:
    """Returns ``2.0**exponent`` in f64, which must be a normal number."""
    return ((exponent + 1023) << 52).view(np.float64)


def _cut(total: F64) -> F32:
    """Truncates exact sums to f32; magnitudes of 2**128 and more become infinite."""
    nearest = total.astype(np.float32)
    magnitude = np.abs(total)
    away = (np.abs(nearest) > magnitude) & (magnitude < 2.0**128)
    bits = nearest.view(np.uint32) - away
    bits[bits == _MINUS_ZERO] = 0
    bits[np.isnan(total)] = _NAN
    return bits.view(np.float32)


def _step(a: Factors, b: Factors, acc: F32, bits: int, floor: int) -> F32:
    """Adds n products to ``acc`` in one tensor-core step; factors ``[n, ...]`` broadcast to
    ``[n, *acc.shape]``. ``bits``, ``floor``: see :class:`~ptxgen.numerics.contract.TensorCore`.

    Every operation is exact in float64: products have at most 22 significant bits and exponents far
    from its limits; truncated, in units of ``2**(top - bits)``, terms are integers below
    ``2**(bits + 2)``.
    """
    field = acc.view(np.int32) >> 23
    field &= 0xFF
    exponent = np.maximum(field, 1)
    exponent -= 127
    exponent[acc == 0] = floor
    top = np.maximum((a.exponent + b.exponent).max(axis=0), exponent)
    top = np.maximum(top, floor).astype(np.int64)
    unit = _power(bits - top)
    terms = a.value * b.value
    terms = np.multiply(terms, unit, out=terms if terms.shape[1:] == unit.shape else None)
    np.trunc(terms, out=terms)
    total = terms.sum(axis=0, initial=0.0)  # so that a zero is +0.0
    total += np.trunc(acc * unit)
    total /= unit  # exact, a power of two
    return _cut(total)


def tensor_core(arch: str) -> TensorCore:
    """Returns the tensor-core model of ``arch``, such as "sm_90" or "sm_90a"; OptionError if there
    is none.
    """
    found = TENSOR_CORES.get(arch.rstrip("af"))
    if found is None:
        raise OptionError(
            f"no model of the tensor cores of {arch!r}; known: {', '.join(TENSOR_CORES)}"
        )
    return found


def accumulate(a: Factors, b: Factors, acc: F32, core: TensorCore) -> F32:
    """Computes :func:`dot16` of decoded operands ``[16, ...]`` that broadcast to
    ``[16, *acc.shape]``; ``acc`` has at least one dimension.

    A loop over blocks of the first axis of ``acc`` limits temporary memory. Call it under
    ``np.errstate(all="ignore")``.
    """
    out = np.empty(acc.shape, np.float32)
    rows = max(1, _BLOCK // max(1, math.prod(acc.shape[1:])))
    for start in range(0, len(acc), rows):
        block = slice(start, start + rows)
        x, y = (f if f.value.shape[1] == 1 else f[:, block] for f in (a, b))
        total = acc[block]
        for k in range(0, TERMS, core.terms):
            step = slice(k, k + core.terms)
            total = _step(x[step], y[step], total, core.bits, core.floor)
        out[block] = total
    return out


def dot16(a: ArrayLike, b: ArrayLike, acc: ArrayLike, *, dtype: str, arch: str = "sm_90") -> F32:
    """``acc + sum(a[..., k] * b[..., k])`` over 16 terms, bit for bit as tensor cores give it.

    ``a``, ``b``: bit patterns (``uint16``) of ``dtype`` ("bf16" or "f16"), or floats, which are
    rounded to it; their last axis is 16 long, the others broadcast with each other and with ``acc``
    (f32). ``mma.sync.m16n8k16`` and ``wgmma`` with k16 compute this.
    """
    format_of(dtype)
    core = tensor_core(arch)
    left, right, total = as_bits(a, dtype), as_bits(b, dtype), as_f32(acc)
    for given in (left, right):
        if given.shape[-1:] != (TERMS,):
            raise ShapeError(f"dot16 got an operand of shape {given.shape}; its last axis takes 16")
    shape = np.broadcast_shapes(left.shape[:-1], right.shape[:-1], total.shape)
    full = (1, *shape)[-max(len(shape), 1) :]  # at least one axis

    def decoded(bits: U16) -> Factors:
        ones = (1,) * (len(full) + 1 - bits.ndim)
        return factors(np.moveaxis(bits.reshape(*ones, *bits.shape), -1, 0), dtype)

    with np.errstate(all="ignore"):
        out = accumulate(decoded(left), decoded(right), np.broadcast_to(total, full), core)
    return out.reshape(shape)
