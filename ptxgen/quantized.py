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
    "embedding",
    "excess",
    "floats",
    "from_awq",
    "from_bitsandbytes",
    "from_compressed_tensors",
    "from_fp8",
    "from_gguf",
    "from_gptq",
    "from_nvfp4",
    "grouped_linear",
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
    "ptxgen.numerics.weight_format": ("WeightFormat", "excess", "floats", "signed", "unsigned"),
    "ptxgen.ops.bitsandbytes": ("from_bitsandbytes", "to_bitsandbytes"),
    "ptxgen.ops.checkpoint_weights": (
        "from_awq",
        "from_compressed_tensors",
        "from_fp8",
        "from_gptq",
        "from_nvfp4",
    ),
    "ptxgen.ops.quantized": ("embedding", "grouped_linear", "linear", "linear_dgrad"),
    "ptxgen.ops.quantized_weight": ("QuantizedWeight", "dequantize", "from_gguf", "quantize"),
}
_HOMES = {name: f"{module}:{name}" for module, names in _MODULES.items() for name in names}

__getattr__, __dir__ = lazy.attributes(
    __name__, lambda name: lazy.resolve(_HOMES[name]), lambda: __all__
)
