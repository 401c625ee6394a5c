"""Oracle of ``logsumexp``: contract ``lse/1``, step by step."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ptxgen.errors import DtypeError
from ptxgen.numerics import activation as exp_constants
from ptxgen.numerics import logsumexp as contract
from ptxgen.numerics.dtype import DTYPES, name_of
from ptxgen.oracle.f32 import F32, add, fma, mul
from ptxgen.oracle.half import downcast, upcast
from ptxgen.oracle.row_reductions import compute

Array = NDArray[Any]

SERVED = ("float32", "bfloat16", "float16")


def logsumexp(x: ArrayLike, *, out_dtype: Any = None) -> Array:
    """``log(sum(exp(x), axis=-1))``: ``[..., N]`` to ``[...]``, with the bits of
    :func:`ptxgen.logsumexp`.

    ``x`` is float32, bfloat16, float16 or float64. The result has its dtype, or for 16 bits float32
    by ``out_dtype``. Raises DtypeError and ShapeError.
    """
    array = np.asarray(x)
    if array.dtype == np.float64:
        return np.asarray(compute("logsumexp_f64", array, out_dtype=out_dtype))
    if array.dtype.name not in SERVED or not array.dtype.isnative:
        takes = " or ".join((*SERVED, "float64"))
        raise DtypeError(f"x has dtype {array.dtype.name}; takes {takes}")
    (shape,) = contract.LOGSUMEXP.infer({"x": array.shape}).results
    accepted = dict.fromkeys((array.dtype.name, "float32"))
    wanted = array.dtype.name if out_dtype is None else name_of(out_dtype, "out_dtype")
    if wanted not in accepted:
        raise DtypeError(f"out_dtype is {wanted!r}; takes {' or '.join(map(repr, accepted))}")
    short = DTYPES[array.dtype.name]
    wide = array if short == "f32" else upcast(array.view(np.uint16), short)
    empty = np.full(shape, -np.inf, np.float32)
    result = _rows(wide.reshape(-1, array.shape[-1])).reshape(shape) if array.size else empty
    if wanted == "float32":
        return result
    return downcast(result, short).view(array.dtype)


def _rows(x: F32) -> F32:
    count, width = x.shape
    segments = -(-width // contract.SEGMENT)
    padded = np.full((count, segments * contract.SEGMENT), -np.inf, np.float32)
    padded[:, :width] = x
    pieces = contract.SEGMENT // (contract.LANES * contract.GROUP)
    parts = padded.reshape(count, segments, pieces, contract.LANES, contract.GROUP)
    largest = _largest(padded.reshape(count, segments, contract.SEGMENT))
    sums = np.zeros((count, segments, contract.LANES), np.float32)
    for piece in range(pieces):
        for q in range(contract.GROUP):
            sums = add(sums, _weight(parts[:, :, piece, :, q], largest[:, :, None]))
    reach = contract.LANES // 2
    while reach:
        sums = add(sums[..., :reach], sums[..., reach : 2 * reach])
        reach //= 2
    row_max = _largest(largest)
    factors = _weight(largest, row_max[:, None])
    total = np.zeros(count, np.float32)
    for segment in range(segments):
        total = fma(sums[:, segment, 0], factors[:, segment], total)
    with np.errstate(all="ignore"):
        result = add(log(total), row_max)
    result = np.where(np.isinf(row_max), row_max, result)
    return np.where(np.isnan(total), total, result).astype(np.float32)


def _largest(x: F32) -> F32:
    """Maximum along the last axis, NaN ignored; -inf if there is none."""
    there = np.where(np.isnan(x), np.float32(-np.inf), x)
    return np.asarray(np.max(there, axis=-1, initial=-np.inf), np.float32)


def _weight(x: F32, largest: F32) -> F32:
    shift = np.where(np.isinf(largest), np.float32(0), largest)
    y = add(x, -shift)
    y = np.where(y < contract.LOWEST, np.float32(contract.LOWEST), y)
    return exp(np.where(y > 0, np.float32(0), y))


def exp(x: ArrayLike) -> F32:
    """``exp(x)`` for LOWEST <= x <= 0 or NaN, as ``templates/include/exp.cuh.j2`` computes it."""
    c = exp_constants
    x = np.asarray(x, np.float32)
    rounded = fma(x, np.float32(c.LOG2_E), np.float32(c.ROUNDER))
    n = rounded.view(np.int32) - np.int32(c.ROUNDER_BITS)
    quotient = add(rounded, np.float32(-c.ROUNDER))
    r = fma(quotient, np.float32(-c.LN2_HIGH), x)
    r = fma(quotient, np.float32(-c.LN2_LOW), r)
    series = np.full_like(r, c.EXP[-1])
    for coefficient in reversed(c.EXP[:-1]):
        series = fma(series, r, np.float32(coefficient))
    series = fma(mul(series, r), r, r)
    power = add(np.float32(1), series)
    half = n >> 1
    return mul(mul(power, _power_of_two(half)), _power_of_two(n - half))


def log(x: ArrayLike) -> F32:
    """``log(x)`` for finite normal x > 0, as ``templates/include/exp.cuh.j2`` computes it."""
    bits = np.ascontiguousarray(x, np.float32).view(np.int32)
    n = (bits - np.int32(contract.LOG_SPLIT_BITS)) >> 23
    t = add((bits - (n << 23)).view(np.float32), np.float32(-1))
    series = np.full_like(t, contract.LOG[-1])
    for coefficient in reversed(contract.LOG[:-1]):
        series = fma(series, t, np.float32(coefficient))
    tail = mul(mul(series, t), t)
    times = n.astype(np.float32)
    low = fma(times, np.float32(exp_constants.LN2_LOW), tail)
    return fma(times, np.float32(exp_constants.LN2_HIGH), add(t, low))


def _power_of_two(n: NDArray[np.int32]) -> F32:
    return ((n + 127) << 23).astype(np.int32).view(np.float32)
