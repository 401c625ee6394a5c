"""NF4 weights, QLoRA's format of 4 bits: blocks of 64 numbers along K share an f32 scale.

:func:`quantize` and :func:`dequantize` weights (:class:`Weight`), of NumPy or PyTorch;
:func:`from_bitsandbytes` and :func:`to_bitsandbytes` convert them exactly; :func:`linear` and
:func:`linear_dgrad` multiply with them, with the bits of the same on the dequantised weight.
:mod:`ptxgen.numerics.nf4` says what every bit is.

Importing this does nothing: each name is loaded when it is first used.
"""

from __future__ import annotations

from ptxgen import lazy

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

_HOMES = {
    "Weight": "ptxgen.ops.nf4_weight:Weight",
    "dequantize": "ptxgen.ops.nf4_weight:dequantize",
    "from_bitsandbytes": "ptxgen.ops.nf4_weight:from_bitsandbytes",
    "quantize": "ptxgen.ops.nf4_weight:quantize",
    "to_bitsandbytes": "ptxgen.ops.nf4_weight:to_bitsandbytes",
    "CODE": "ptxgen.numerics.nf4:CODE",
    "linear": "ptxgen.ops.nf4:linear",
    "linear_dgrad": "ptxgen.ops.nf4:linear_dgrad",
}

__getattr__, __dir__ = lazy.attributes(
    __name__, lambda name: lazy.resolve(_HOMES[name]), lambda: __all__
)
