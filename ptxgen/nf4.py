"""NF4 weights, QLoRA's format of 4 bits: blocks of 64 numbers along K share an f32 scale.

:func:`quantize` and :func:`dequantize` weights (:class:`Weight`), of NumPy or PyTorch;
:func:`from_bitsandbytes` and :func:`to_bitsandbytes` convert them exactly; :func:`linear` and
:func:`linear_dgrad` multiply with them, with the bits of the same on the dequantised weight.
:mod:`ptxgen.numerics.nf4` says what every bit is.

Importing this does nothing: each name is loaded when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxgen.later import later

if TYPE_CHECKING:
    from ptxgen.numerics.nf4 import CODE
    from ptxgen.ops.nf4 import nf4_linear as linear
    from ptxgen.ops.nf4 import nf4_linear_dgrad as linear_dgrad
    from ptxgen.ops.nf4_weight import (
        Weight,
        dequantize,
        from_bitsandbytes,
        quantize,
        to_bitsandbytes,
    )

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
    **{name: f"ptxgen.ops.nf4_weight:{name}" for name in __all__},
    "CODE": "ptxgen.numerics.nf4:CODE",
    "linear": "ptxgen.ops.nf4:nf4_linear",
    "linear_dgrad": "ptxgen.ops.nf4:nf4_linear_dgrad",
}

__getattr__, __dir__ = later(__name__, _HOMES)
