"""Functions of :mod:`ptxgen.quantized` for one format: NF4, QLoRA's 4-bit format."""

from __future__ import annotations

from typing import Any

from ptxgen.numerics.formats.nf4 import NF4
from ptxgen.ops import bitsandbytes, quantized_weight
from ptxgen.ops.bitsandbytes import to_bitsandbytes
from ptxgen.ops.quantized import linear, linear_dgrad
from ptxgen.ops.quantized_weight import QuantizedWeight, dequantize

__all__ = [
    "CODE",
    "Weight",
    "dequantize",
    "from_bitsandbytes",
    "linear",
    "linear_dgrad",
    "quantize",
    "to_bitsandbytes",
]

CODE = NF4.values


class Weight(QuantizedWeight):
    """A :class:`ptxgen.quantized.QuantizedWeight` of format "nf4", ``[n, k]``."""

    def __init__(self, data: Any, scales: Any, n: int, k: int) -> None:
        super().__init__(NF4, data, scales, shape=(n, k))


def _named(q: QuantizedWeight) -> Weight:
    return Weight(q.data, q.scales, q.n, q.k)


def quantize(w: Any, layout: str = "nk") -> Weight:
    """``ptxgen.quantized.quantize(w, "nf4", layout)``."""
    return _named(quantized_weight.quantize(w, NF4, layout))


def from_bitsandbytes(param: Any) -> Weight:
    """``ptxgen.quantized.from_bitsandbytes(param)``, of a parameter with ``quant_type`` "nf4"."""
    return _named(bitsandbytes.from_bitsandbytes(param))
