"""Oracles of matrix products by the contracts ``fma``, ``fma64`` and ``tc16``, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

import numpy as np

from ptxgen.numerics.contract import TensorCore
from ptxgen.oracle.dot16 import TERMS, Factors, accumulate, factors
from ptxgen.oracle.f32 import BLOCK, F32, Rounder
from ptxgen.oracle.f64 import F64, fma
from ptxgen.oracle.half import U16

T = TypeVar("T", F32, F64)


def chain(a: F32, b: F32, chunk: int, begin: F32 | None = None) -> F32:
    """``a @ b`` (f32 ``[M, K]`` and ``[K, N]``) in chunks of ``chunk`` reduction steps.

    Each chunk is one chain from +0.0, ``acc = fma(a[:, k], b[k, :], acc)`` with k ascending, then
    ``acc + 0.0``; the chunks' results are added in f32, ascending. K = 0 gives +0.0.
    ``begin`` ``[M, N]``: start of the first chunk's chain in place of +0.0.
    """
    return _chunked(a, b, chunk, partial(_block, subnormal=_rounds_subnormals(a, b)), begin)


def chain64(a: F64, b: F64, chunk: int, begin: F64 | None = None) -> F64:
    """``a @ b`` (f64 ``[M, K]`` and ``[K, N]``) in chunks of ``chunk``: :func:`chain` in f64."""
    return _chunked(a, b, chunk, _block64, begin)


def chain16(
    a: U16, b: U16, chunk: int, dtype: str, core: TensorCore, begin: F32 | None = None
) -> F32:
    """``a @ b`` on tensor cores; ``a`` ``[M, K]`` and ``b`` ``[K, N]`` are bit patterns of
    ``dtype``.

    Like :func:`chain`, with a step ``acc = dot16(a[:, k:k+16], b[k:k+16, :], acc)`` for each 16
    elements of a chunk's reduction; zeros pad the last ones. ``core``: the tensor-core model.
    """
    (m, k), n = a.shape, b.shape[1]
    total = np.zeros((m, n), np.float32) if begin is None else begin
    if k == 0 or m == 0 or n == 0:
        return total + np.float32(0)
    with np.errstate(all="ignore"):
        for start in range(0, k, chunk):
            part = slice(start, start + chunk)
            left = _groups(a.T[part, :, None], dtype)
            right = _groups(b[part, None, :], dtype)
            acc = np.zeros((m, n), np.float32) if start else total
            for i in range(0, len(left.value), TERMS):
                group = slice(i, i + TERMS)
                acc = accumulate(left[group], right[group], acc, core)
            acc = acc + np.float32(0)
            total = np.add(total, acc) if start else acc
    return total


def _groups(bits: U16, dtype: str) -> Factors:
    """Decodes bit patterns of ``dtype``; zeros pad the first axis, which is reduced, to a multiple
    of 16.
    """
    missing = -len(bits) % TERMS
    zeros = np.zeros((missing, *bits.shape[1:]), np.uint16)
    return factors(np.concatenate([bits, zeros]), dtype)


def _rounds_subnormals(a: F32, b: F32) -> bool:
    """Whether a step of ``a @ b`` may round a subnormal result; False is certain, True is not.

    If all products are multiples of 2**-149, the smallest f32, then so is every sum, and a sum
    below 2**-126 is an f32 number. An f32 of at least 2**e is a multiple of 2**(e - 23).
    """
    lowest = 0
    for operand in (a, b):
        magnitudes = np.abs(operand[np.isfinite(operand) & (operand != 0)])
        if magnitudes.size == 0:
            return False
        lowest += int(np.frexp(magnitudes.min())[1]) - 1 - 23
    return lowest < -149


def _chunked(a: T, b: T, chunk: int, block: Callable[[T, T, T], None], begin: T | None) -> T:
    """``a @ b`` in chunks of ``chunk`` reduction steps, whose sums are added in ascending order.

    ``block``: computes chains in place, see :func:`_chains`; ``begin``: start of the first chunk's
    chain, by default +0.0.
    """
    (m, k), n = a.shape, b.shape[1]
    first: T = np.zeros((m, n), a.dtype) if begin is None else begin
    if k == 0 or m == 0 or n == 0:
        return first + a.dtype.type(0)
    chunk = min(chunk, k)
    whole = k // chunk
    split = whole * chunk
    with np.errstate(all="ignore"):
        parts = _chains(
            a[:, :split].reshape(m, whole, chunk), b[:split].reshape(whole, chunk, n), block, first
        )
        if split < k:
            last = _chains(a[:, None, split:], b[None, split:], block, np.zeros_like(first))
            parts = np.concatenate([parts, last])
        total: T = parts[0]
        for part in parts[1:]:
            np.add(total, part, out=total)
    return total


def _chains(a: T, b: T, block: Callable[[T, T, T], None], first: T) -> T:
    """Returns the sums [C, M, N] of C chunks of L reduction steps, one chain each, of ``a``
    [M, C, L] and ``b`` [C, L, N].

    ``block(a, b, out)`` computes a tile in place, with a as [L, C, M] and b as [C, L, N]: ``out``
    [C, M, N] holds the starts of the chains, then their sums. The first chunk's chains start from
    ``first`` [M, N], others from zeros.
    """
    m, chunks, _ = a.shape
    n = b.shape[2]
    out: T = np.zeros((chunks, m, n), a.dtype)
    out[0] = first
    columns = np.ascontiguousarray(a.transpose(2, 1, 0))
    width = min(n, BLOCK)
    height = min(m, max(1, BLOCK // width))
    depth = min(chunks, max(1, BLOCK // (width * height)))
    for c in range(0, chunks, depth):
        for i in range(0, m, height):
            for j in range(0, n, width):
                block(
                    columns[:, c : c + depth, i : i + height],
                    b[c : c + depth, :, j : j + width],
                    out[c : c + depth, i : i + height, j : j + width],
                )
    return out


def _block(columns: F32, rows: F32, out: F32, *, subnormal: bool) -> None:
    rounder = Rounder(out.shape, subnormal=subnormal)
    product = np.empty(out.shape, np.float64)
    rounded = np.array(out, order="C")
    total = rounded.astype(np.float64)
    for k in range(len(columns)):
        column, row = columns[k].astype(np.float64), rows[:, k].astype(np.float64)
        np.multiply(column[:, :, None], row[:, None, :], out=product)
        rounder.add(product, total, rounded)
        np.copyto(total, rounded)
    np.add(rounded, np.float32(0), out=out)


def _block64(columns: F64, rows: F64, out: F64) -> None:
    acc = out
    for k in range(len(columns)):
        acc = fma(columns[k][:, :, None], rows[:, k][:, None, :], acc)
    np.add(acc, 0.0, out=out)
