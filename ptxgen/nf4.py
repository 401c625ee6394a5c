"""NF4 weights, QLoRA's format of 4 bits: blocks of 64 numbers along K share an f32 scale.

:func:`quantize` and :func:`dequantize` weights (:class:`Weight`), of NumPy or PyTorch;
:func:`from_bitsandbytes` and :func:`to_bitsandbytes` convert them exactly; :func:`linear` and
:func:`linear_dgrad` multiply with them, with the bits of the same on the dequantised weight.
:mod:`ptxgen.numerics.nf4` says what every bit is.

Importing this does nothing: each name is loaded when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

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
    "CODE": ("numerics.nf4", "CODE"),
    "linear": ("ops.nf4", "nf4_linear"),
    "linear_dgrad": ("ops.nf4", "nf4_linear_dgrad"),
}
"""Where what is not in :mod:`ptxgen.ops.nf4_weight` is, and what it is called there."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home, called = _HOMES.get(name, ("ops.nf4_weight", name))
    value = getattr(importlib.import_module(f"ptxgen.{home}"), called)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
