"""Random quantized weights of any format, whose elements are finite and of a size about 1."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import fmean
from typing import Any

from ptxgen.numerics.weight_format import NUMBERS, WeightFormat
from ptxgen.ops.numpy_or_torch import as_dtype, packed, table
from ptxgen.quantized import QuantizedWeight

Integers = Callable[..., Any]
"""Function that draws an array of uniform integers: ``integers(low, high, count, dtype)`` are in
``low`` .. ``high - 1``.
"""
FINE = 1 << 23
"""Steps of random scales between two powers of two, so that every bit of an f32 fraction occurs."""
_SMALL = {"u8": (1, 16), "i8": (-8, 8)}
"""Range of integer scales (i8: and offsets), excluding its end."""
_TYPICAL = {"u8": 8.0, "i8": 5.0, "e4m3": 1.0}
"""Typical magnitude of scales whose values are given, which an outer scale makes up for."""


def random_weight(row: WeightFormat, n: int, k: int, integers: Integers) -> QuantizedWeight:
    """Returns a random weight ``[n, k]`` of format ``row``: uniform codes (those of finite values),
    and scales and offsets by which elements are of a size about 1.

    Codes are uniform because they nearly are for normally distributed weights. ``integers`` draws
    all arrays, which are of its framework and on its device.
    """
    finite = [code for code, value in enumerate(row.values) if math.isfinite(value)]
    size = max(math.sqrt(fmean(row.values[code] ** 2 for code in finite)), 1.0)
    sizes = row.sizes(k)
    if len(finite) == 1 << row.bits:
        data = integers(0, 256, n * sizes["data"], "uint8")
    else:
        chosen = integers(0, len(finite), n * k, "int32")
        data = packed(row.bits, table(finite, chosen, "uint8")[chosen])

    def floats(count: int, largest: float) -> Any:
        """Draws numbers between half of ``largest`` and that."""
        drawn = as_dtype(integers(FINE, 2 * FINE, count, "int64"), "float32")
        return drawn * (largest / (2 * FINE))

    def scales(dtype: str, count: int) -> Any:
        if dtype in NUMBERS:
            return floats(count, 2.0 if row.outer else 2.0 / size)
        if dtype == "e8m0":
            centre = 127 - round(math.log2(size))
            return integers(centre - 1, centre + 2, count, "uint8")
        if dtype == "e4m3":  # from 1/2 to 2
            return integers(0x30, 0x40, count, "uint8")
        return integers(*_SMALL[dtype], count, row.dtypes["scales"])

    def offsets(dtype: str, count: int) -> Any:
        if dtype in NUMBERS:
            return floats(count, 2.0) - 1.0
        if dtype in ("u8", "u5"):
            return integers(0, 1 << row.bits, count, "uint8")
        return integers(*_SMALL[dtype], count, row.dtypes["offsets"])

    def outer(count: int) -> Any:
        usual = floats(count, 2.0).reshape(-1, len(row.outer_items))
        usual[:, 0] /= size * _TYPICAL.get(row.scales, 1.0)
        usual[:, 1:] /= 1 << row.bits
        return usual

    arrays = {"data": data, "scales": scales(row.scales, n * sizes["scales"])}
    if row.offsets:
        arrays["offsets"] = offsets(row.offsets, n * sizes["offsets"])
    if row.outer:
        arrays["outer"] = outer(n * sizes["outer"]).reshape(-1)
    if row.grouped:
        arrays["groups"] = integers(0, k // row.block, k, "int32")
    typed = {name: as_dtype(array, row.dtypes[name]) for name, array in arrays.items()}
    return QuantizedWeight(row, **typed, shape=(n, k))
