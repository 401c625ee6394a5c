"""What formulas are written with: functions of the values that a formula computes with.

>>> from ptxgen.functions import exp, where
>>> def elu(x):
...     return where(x > 0, x, exp(x) - 1)

Operators do the rest: ``+ - * / **``, comparisons, ``& | ^ ~`` of integers and of conditions,
``<< >>`` of integers. Each function is defined to the bit; errors are in ``docs/functions.md``.
"""

from __future__ import annotations

from ptxgen.numerics.formula import cast, fma, where
from ptxgen.numerics.functions import absolute as abs
from ptxgen.numerics.functions import (
    atan,
    ceil,
    clamp,
    cos,
    erf,
    exp,
    exp2,
    expm1,
    floor,
    gelu,
    gelu_tanh,
    isfinite,
    isinf,
    isnan,
    log,
    log1p,
    log2,
    maximum,
    minimum,
    relu,
    rsqrt,
    sigmoid,
    sign,
    silu,
    sin,
    softplus,
    sqrt,
    tan,
    tanh,
    trunc,
)
from ptxgen.numerics.functions import nearest as round
from ptxgen.numerics.functions import power as pow

__all__ = [
    "abs",
    "atan",
    "cast",
    "ceil",
    "clamp",
    "cos",
    "erf",
    "exp",
    "exp2",
    "expm1",
    "floor",
    "fma",
    "gelu",
    "gelu_tanh",
    "isfinite",
    "isinf",
    "isnan",
    "log",
    "log1p",
    "log2",
    "maximum",
    "minimum",
    "pow",
    "relu",
    "round",
    "rsqrt",
    "sigmoid",
    "sign",
    "silu",
    "sin",
    "softplus",
    "sqrt",
    "tan",
    "tanh",
    "trunc",
    "where",
]
