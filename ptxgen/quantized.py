"""Quantized weights: formats of a few bits an element, and products with such weights.

:data:`FORMATS` has the formats by name, :func:`register` adds one. :func:`quantize` and
:func:`dequantize` convert weights (:class:`QuantizedWeight`) of NumPy or PyTorch;
:func:`from_bitsandbytes` and :func:`to_bitsandbytes` convert those of bitsandbytes, exactly.
:func:`linear` and :func:`linear_dgrad` multiply with a quantized weight, with the bits of the
dequantized one. :mod:`ptxgen.numerics.weight_format` defines a format's bits.

Importing this does nothing: each name is loaded when it is first used.
"""

from __future__ import annotations

from ptxgen import lazy

__all__ = [
    "FORMATS",
    "QuantizedWeight",
    "WeightFormat",
    "dequantize",
    "from_bitsandbytes",
    "linear",
    "linear_dgrad",
    "quantize",
    "register",
    "signed",
    "to_bitsandbytes",
    "unsigned",
]

_MODULES = {
    "ptxgen.numerics.formats": ("FORMATS", "register"),
    "ptxgen.numerics.weight_format": ("WeightFormat", "signed", "unsigned"),
    "ptxgen.ops.bitsandbytes": ("from_bitsandbytes", "to_bitsandbytes"),
    "ptxgen.ops.quantized": ("linear", "linear_dgrad"),
    "ptxgen.ops.quantized_weight": ("QuantizedWeight", "dequantize", "quantize"),
}
_HOMES = {name: f"{module}:{name}" for module, names in _MODULES.items() for name in names}

__getattr__, __dir__ = lazy.attributes(
    __name__, lambda name: lazy.resolve(_HOMES[name]), lambda: __all__
)
