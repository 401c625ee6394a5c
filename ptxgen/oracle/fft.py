"""Oracle of discrete Fourier transforms, contract ``fft/1``: the contract's steps with NumPy."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ptxgen.errors import DtypeError, OptionError, ShapeError
from ptxgen.numerics import fft as numerics
from ptxgen.numerics.dtype import DTYPES
from ptxgen.oracle import f32, f64

Array = NDArray[Any]
KINDS = {"f32": np.float32, "f64": np.float64}


class Rounded:
    """Arithmetic of NumPy arrays in one dtype, "f32" or "f64", each operation rounded once."""

    def __init__(self, dtype: str) -> None:
        self.kind: Any = KINDS[dtype]
        self.fused: Callable[..., Any] = f32.fma if dtype == "f32" else f64.fma

    def add(self, a: Any, b: Any) -> Any:
        return np.add(a, b)

    def sub(self, a: Any, b: Any) -> Any:
        return np.subtract(a, b)

    def mul(self, a: Any, b: Any) -> Any:
        return np.multiply(a, self.kind(b) if isinstance(b, float) else b)

    def neg(self, a: Any) -> Any:
        return np.negative(a)

    def fma(self, a: Any, b: Any, c: Any) -> Any:
        return self.fused(a, self.kind(b) if isinstance(b, float) else b, c)


Complex = tuple[Array, Array]
"""Real and imaginary parts, [..., n] each."""


def transform(x: Complex, dtype: str, scale: float = 1.0) -> Complex:
    """Forward transform along the last axis in ``dtype``, times ``scale``."""
    n = x[0].shape[-1]
    with np.errstate(all="ignore"):
        if numerics.is_direct(n, dtype):
            found = _parts(x, numerics.parts(n, dtype), dtype)
        else:
            found, scale = _chirped(x, dtype, scale)
        factor = KINDS[dtype](scale)
        return found[0] * factor, found[1] * factor


@lru_cache(maxsize=64)
def _roots(n: int, dtype: str) -> Array:
    """Roots of unity of order n, [2, n]: real parts, then imaginary ones."""
    return np.array(numerics.roots(n)).T.astype(KINDS[dtype])


def _whole(x: Complex, dtype: str) -> Complex:
    """Transforms rows by the passes of their length."""
    a, (*outer, n), length = Rounded(dtype), x[0].shape, 1
    w = _roots(n, dtype)
    for r in numerics.passes(n):
        group = n // (r * length)
        split = [part.reshape(*outer, r, group, length) for part in x]
        inputs = [(split[0][..., q, :, :], split[1][..., q, :, :]) for q in range(r)]
        if length > 1:
            lane = np.arange(length)
            for q in range(1, r):
                factor = w[:, lane * q * group]
                inputs[q] = numerics.product(inputs[q], (factor[0], factor[1]), a)
        results = numerics.dft(inputs, a)
        # [q][..., group, lane] to [..., group, q, lane]
        stacked = (np.stack([np.asarray(v[i]) for v in results], axis=-2) for i in (0, 1))
        re, im = (v.reshape(*outer, n) for v in stacked)
        x, length = (re, im), length * r
    return x


def _twiddle(exponent: Array, order: int, dtype: str) -> Complex:
    """Roots of unity of ``order``, to the powers ``exponent`` in [0, order)."""
    high, low = (np.array(v, KINDS[dtype]) for v in numerics.levels(order, dtype))
    shift = numerics.low_bits(order)
    first, second = high[exponent >> shift], low[exponent & ((1 << shift) - 1)]
    pairs = [first[..., i] for i in range(4)], (second[..., 0], second[..., 1])
    return numerics.twiddle(*pairs, Rounded(dtype))


def _parts(x: Complex, parts: tuple[int, ...], dtype: str) -> Complex:
    """Transforms rows of ``prod(parts)`` elements by these parts."""
    if len(parts) == 1:
        return _whole(x, dtype)
    *outer, n = x[0].shape
    first, rest = parts[0], n // parts[0]
    columns = [p.reshape(*outer, first, rest).swapaxes(-1, -2) for p in x]
    done = _whole((columns[0], columns[1]), dtype)
    exponent = np.arange(rest)[:, None] * np.arange(first)
    factors = _twiddle(exponent, n, dtype)
    turned = numerics.product(done, factors, Rounded(dtype))
    rows = tuple(np.ascontiguousarray(p.swapaxes(-1, -2)) for p in turned)
    found = _parts((rows[0], rows[1]), parts[1:], dtype)  # [..., k1, k2] is X[k1 + n1 * k2]
    re, im = (np.ascontiguousarray(p.swapaxes(-1, -2)).reshape(*outer, n) for p in found)
    return re, im


def _chirped(x: Complex, dtype: str, scale: float) -> tuple[Complex, float]:
    """Transforms rows by a convolution with chirps; returns them, and the factor that is left."""
    a, n = Rounded(dtype), x[0].shape[-1]
    size = numerics.padded(n)
    short = size <= numerics.WHOLE[dtype]
    j = np.arange(n, dtype=np.int64)
    if short:
        c = tuple(np.array(numerics.chirp(n)).T.astype(KINDS[dtype]))
        spectrum = tuple(np.array(numerics.chirp_spectrum(n)).T.astype(KINDS[dtype]))
    else:
        scale /= size
        c = _twiddle(j * j % (2 * n), 2 * n, dtype)
        wrapped = tuple(np.zeros(size, KINDS[dtype]) for _ in c)
        for place in (j, -j):
            wrapped[0][place], wrapped[1][place] = c[0], -c[1]
        spectrum = _parts((wrapped[0], wrapped[1]), numerics.parts(size, dtype), dtype)
    inner = numerics.parts(size, dtype)
    y = numerics.product(x, (c[0], c[1]), a)
    wide = tuple(np.zeros((*p.shape[:-1], size), p.dtype) for p in y)
    for to, part in zip(wide, y, strict=True):
        to[..., :n] = part
    there = _parts((wide[0], wide[1]), inner, dtype)
    re, im = numerics.product(there, (spectrum[0], spectrum[1]), a)
    back = _parts((im, re), inner, dtype)
    return numerics.product((back[1][..., :n], back[0][..., :n]), (c[0], c[1]), a), scale


def _checked(x: ArrayLike, norm: str) -> tuple[Array, str]:
    """Returns ``x`` as an array, and its short dtype; raises DtypeError and OptionError."""
    array = np.asarray(x)
    takes = tuple(d for d, short in DTYPES.items() if short in KINDS)
    if array.dtype.name not in takes:
        raise DtypeError(f"x has dtype {array.dtype.name}; takes {' or '.join(takes)}")
    if norm not in numerics.NORMS:
        raise OptionError(f"norm is {norm!r}; takes {', '.join(map(repr, numerics.NORMS))}")
    return array, DTYPES[array.dtype.name]


def _directed(x: Complex, dtype: str, norm: str, inverse: bool) -> Complex:
    """Transforms rows forward or, with exchanged parts, backward, and multiplies them by scale."""
    re, im = x[::-1] if inverse else x
    found = transform((re, im), dtype, numerics.scale(re.shape[-1], norm, inverse))
    return (found[1], found[0]) if inverse else found


def fft_block(x: ArrayLike, *, inverse: bool = False, norm: str = "backward") -> Array:
    """Transforms of rows in block layout, with the arguments and bits of
    :func:`ptxgen.fft_block`.
    """
    array, dtype = _checked(x, norm)
    n = numerics.FFT_BLOCK.infer({"x": array.shape}).sizes["N"]
    if not n:
        raise ShapeError(f"x has shape {list(array.shape)}, so n is 0; takes 1 or more")
    if not array.size:
        return array.copy()
    found = _directed((array[..., :n], array[..., n:]), dtype, norm, inverse)
    return np.concatenate(found, axis=-1)


def fft_pairs(
    x: ArrayLike,
    *,
    axis: int = -1,
    n: int | None = None,
    count: int | None = None,
    norm: str = "backward",
    inverse: bool = False,
    source: str = "pairs",
    sink: str = "pairs",
) -> Array:
    """Transforms along ``axis`` of pairs of reals, with the arguments and bits of
    :func:`ptxgen.ops.fft.fft_pairs`.
    """
    array, dtype = _checked(x, norm)
    re, im = (array, np.zeros_like(array)) if source == "real" else (array[..., 0], array[..., 1])
    re, im = (np.moveaxis(p, axis, -1) for p in (re, im))
    size = re.shape[-1]
    length = n if n is not None else 2 * (size - 1) if source == "half" else size
    rows = []
    for part in (re, im):
        row = np.zeros((*part.shape[:-1], length), part.dtype)
        if source == "half":
            there = min(size, length // 2 + 1)
            row[..., :there] = part[..., :there]
            k = np.arange(length // 2 + 1, length)
            row[..., k] = row[..., length - k] if part is re else -row[..., length - k]
            if part is im:
                row[..., 0] = 0
                row[..., length // 2 : length // 2 + (length % 2 == 0)] = 0
        else:
            there = min(size, length)
            row[..., :there] = part[..., :there]
        rows.append(row)
    found: list[Array] = [rows[0][..., :count]] * 2
    if array.size:
        found = [p[..., :count] for p in _directed((rows[0], rows[1]), dtype, norm, inverse)]
    moved = [np.moveaxis(p, -1, axis) for p in found]
    return np.ascontiguousarray(moved[0] if sink == "real" else np.stack(moved, axis=-1))
