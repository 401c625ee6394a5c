"""Weights of any format, and what they stand for by another way than the oracle's."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from bits import NUMPY, operand

from ptxgen.numerics.dtype import DTYPES
from ptxgen.numerics.formats import FORMATS
from ptxgen.numerics.weight_format import ARRAYS, WeightFormat
from ptxgen.quantized import QuantizedWeight


class Rounded:
    """f32 numbers whose every operation is computed in f64, exactly or so that it rounds alike."""

    def __init__(self, values: Any) -> None:
        self.values = np.asarray(values, np.float32)

    def _by(self, other: Any, operation: Any) -> Rounded:
        wide = [np.asarray(getattr(v, "values", v), np.float64) for v in (self, other)]
        with np.errstate(all="ignore"):
            return Rounded(operation(*wide))

    def __add__(self, other: Any) -> Rounded:
        return self._by(other, np.add)

    def __sub__(self, other: Any) -> Rounded:
        return self._by(other, np.subtract)

    def __mul__(self, other: Any) -> Rounded:
        return self._by(other, np.multiply)


def weight(row: WeightFormat, n: int, blocks: int, seed: int, kind: str = "normal") -> Any:
    """A weight whose rows have all codes, as far as they have room, and scales of a ``kind``; and
    its codes. ``blocks``: whole blocks, or outer blocks, of a row.
    """
    rng, k = np.random.default_rng([seed, n, blocks]), row.unit * blocks
    codes = (np.arange(n * k) * 7 + rng.integers(0, 256)) % (1 << row.bits)
    bits = (codes[:, None] >> np.arange(row.bits) & 1).astype(np.uint8)
    arrays = {"data": np.packbits(bits.reshape(-1), bitorder="little")}
    sizes = row.sizes(k)
    for name, (dtype, *_) in row.beside.items():
        arrays[name] = _beside(rng, (n, sizes[name]), kind, dtype)
    if row.grouped:
        arrays["groups"] = rng.integers(0, k // row.block, k).astype(np.int32)
    return QuantizedWeight(row, *(arrays.get(name) for name in ARRAYS), shape=(n, k)), codes


def _beside(rng: Any, shape: tuple[int, ...], kind: str, dtype: str) -> Any:
    if dtype in KINDS:
        return operand(rng, shape, kind, dtype)
    if dtype == "i8":
        return rng.integers(-128, 128, shape).astype(np.int8)
    if dtype == "e8m0":  # those that f32 has as normal numbers, or all
        low, high = (100, 140) if kind == "normal" else (0, 256)
        return rng.integers(low, high, shape).astype(np.uint8)
    most = 256 if dtype in ("u8", "u5") or kind == "special" else 127
    return rng.integers(0, most, shape, np.uint8)


FLOATS = {
    "e2m1": ml_dtypes.float4_e2m1fn,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "e8m0": ml_dtypes.float8_e8m0fnu,
}
"""Dtypes of ml_dtypes by the names of encodings and scales."""


def stands_for(q: QuantizedWeight, codes: Any) -> Any:
    """The numbers in f32, of the codes that were packed."""
    row, each = q.format, {}
    own = FLOATS.get(row.encoding)
    table = np.array(row.values, np.float32)
    numbers = table[codes] if own is None else codes.astype(np.uint8).view(own).astype(np.float32)
    for array, (dtype, block, names) in row.beside.items():
        stored = np.asarray(getattr(q, array)).reshape(q.n, -1, len(names))
        wide = stored.view(FLOATS[dtype]) if dtype in FLOATS else stored
        if dtype == "u5":
            wide = stored % 32
        for i, name in enumerate(names):
            values = wide.astype(np.float32)[:, :, i]
            grouped = row.grouped and array != "outer"
            at = q.groups if grouped else np.repeat(np.arange(q.k // block), block)
            each[name] = Rounded(np.take(values, at, 1))
    found: Rounded = eval(row.decoding, {"code": Rounded(numbers.reshape(q.n, q.k)), **each})
    return found.values


KINDS = {short: np.dtype(NUMPY[short]) for short in DTYPES.values() if short in NUMPY}
"""NumPy's dtypes by their names in specs."""
ROWS = [*FORMATS]
"""The formats of the package."""
