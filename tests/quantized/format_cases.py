"""Weights of any format, and what they stand for by another way than the oracle's."""

from __future__ import annotations

from typing import Any

import numpy as np
from bits import NUMPY, operand

from ptxgen.numerics.dtype import DTYPES
from ptxgen.numerics.formats import FORMATS
from ptxgen.numerics.weight_format import WeightFormat
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
    """A weight whose rows have all codes, as far as they have room, and scales of a ``kind``."""
    rng, k = np.random.default_rng([seed, n, blocks]), row.block * blocks
    codes = (np.arange(n * k) * 7 + rng.integers(0, 256)) % (1 << row.bits)
    bits = (codes[:, None] >> np.arange(row.bits) & 1).astype(np.uint8)
    data = np.packbits(bits.reshape(-1), bitorder="little")
    beside = (row.scales, row.offsets) if row.offsets else (row.scales,)
    arrays = [operand(rng, (n, blocks), kind, dtype) for dtype in beside]
    return QuantizedWeight(row, data, *arrays, shape=(n, k)), codes


def stands_for(q: QuantizedWeight, codes: Any) -> Any:
    """The numbers in f32, of the codes that were packed."""
    row = q.format
    code = Rounded(np.array(row.values, np.float32)[codes].reshape(-1, row.block))
    arrays = (q.scales,) if q.offsets is None else (q.scales, q.offsets)
    beside = (Rounded(np.asarray(a).astype(np.float32).reshape(-1, 1)) for a in arrays)
    names = dict(zip(("scale", "offset"), beside, strict=False))
    found: Rounded = eval(row.decoding, {"code": code, **names})
    return found.values.reshape(q.n, q.k)


KINDS = {short: np.dtype(NUMPY[short]) for short in DTYPES.values() if short in NUMPY}
"""NumPy's dtypes by their names in specs."""
ROWS = [*FORMATS]
"""The formats of the package."""
