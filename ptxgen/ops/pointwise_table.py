"""The pointwise operations that have names: a row each, from which kernels and oracle follow.

:mod:`ptxgen.functions` has them by these names, for arrays and for values of formulas.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ptxgen.numerics import formula as p
from ptxgen.numerics import functions as f


class Row(NamedTuple):
    """A name, a function of values, and what it says."""

    name: str
    formula: Callable[..., Any]
    says: str


ROWS = (
    # arithmetic
    Row("add", lambda x, y: x + y, "``x + y``."),
    Row("sub", lambda x, y: x - y, "``x - y``."),
    Row("mul", lambda x, y: x * y, "``x * y``."),
    Row("div", lambda x, y: x / y, "``x / y``, of floats."),
    Row("fma", lambda x, y, z: p.fma(x, y, z), "``x * y + z``, rounded once."),
    Row("neg", lambda x: -x, "``-x``."),
    Row("abs", lambda x: abs(x), "``|x|``."),
    Row("sign", lambda x: f.sign(x), "1 above zero, -1 below; a zero and a NaN stay."),
    Row("maximum", lambda x, y: f.maximum(x, y), "The larger; a NaN if either is one."),
    Row("minimum", lambda x, y: f.minimum(x, y), "The smaller; a NaN if either is one."),
    Row("clamp", lambda x, low, high: f.clamp(x, low, high), "``min(max(x, low), high)``."),
    Row("copy", lambda x: x, "``x``, in rows one behind the other, or as ``out=`` lies."),
    # comparisons, and what chooses by them
    Row("eq", lambda x, y: x == y, "``x == y``, a bool."),
    Row("ne", lambda x, y: x != y, "``x != y``, a bool."),
    Row("lt", lambda x, y: x < y, "``x < y``, a bool."),
    Row("le", lambda x, y: x <= y, "``x <= y``, a bool."),
    Row("gt", lambda x, y: x > y, "``x > y``, a bool."),
    Row("ge", lambda x, y: x >= y, "``x >= y``, a bool."),
    Row("where", lambda condition, x, y: p.where(condition, x, y), "``x`` where it holds, or y."),
    Row("isnan", lambda x: f.isnan(x), "Whether ``x`` is a NaN."),
    Row("isinf", lambda x: f.isinf(x), "Whether ``x`` is infinite."),
    Row("isfinite", lambda x: f.isfinite(x), "Whether ``x`` is neither infinite nor a NaN."),
    # bits
    Row("bitwise_and", lambda x, y: x & y, "``x & y``, of integers or bools."),
    Row("bitwise_or", lambda x, y: x | y, "``x | y``, of integers or bools."),
    Row("bitwise_xor", lambda x, y: x ^ y, "``x ^ y``, of integers or bools."),
    Row("bitwise_not", lambda x: ~x, "``~x``, of integers or bools."),
    # roundings
    Row("floor", lambda x: f.floor(x), "The largest integer that is not above ``x``."),
    Row("ceil", lambda x: f.ceil(x), "The smallest integer that is not below ``x``."),
    Row("trunc", lambda x: f.trunc(x), "``x`` without what is behind the point."),
    Row("round", lambda x: f.nearest(x), "The nearest integer, of two the even one."),
    # functions: docs/functions.md
    Row("sqrt", lambda x: f.sqrt(x), "The square root, rounded once."),
    Row("rsqrt", lambda x: f.rsqrt(x), "``1 / sqrt(x)``."),
    Row("exp", lambda x: f.exp(x), "``e ** x``."),
    Row("exp2", lambda x: f.exp2(x), "``2 ** x``."),
    Row("expm1", lambda x: f.expm1(x), "``e ** x - 1``."),
    Row("log", lambda x: f.log(x), "The natural logarithm."),
    Row("log2", lambda x: f.log2(x), "The logarithm to the base 2."),
    Row("log1p", lambda x: f.log1p(x), "``log(1 + x)``."),
    Row("pow", lambda x, y: f.power(x, y), "``x ** y``."),
    Row("sin", lambda x: f.sin(x), "The sine."),
    Row("cos", lambda x: f.cos(x), "The cosine."),
    Row("tan", lambda x: f.tan(x), "The tangent."),
    Row("atan", lambda x: f.atan(x), "The arc tangent."),
    Row("tanh", lambda x: f.tanh(x), "The hyperbolic tangent."),
    Row("erf", lambda x: f.erf(x), "The error function."),
    # activations
    Row("relu", lambda x: f.relu(x), "``max(x, 0)``; its derivative at 0 is 0."),
    Row("sigmoid", lambda x: f.sigmoid(x), "``1 / (1 + exp(-x))``."),
    Row("silu", lambda x: f.silu(x), "``x * sigmoid(x)``."),
    Row("gelu", lambda x: f.gelu(x), "``x * (1 + erf(x / sqrt(2))) / 2``."),
    Row("gelu_tanh", lambda x: f.gelu_tanh(x), "gelu by a tanh."),
    Row("softplus", lambda x: f.softplus(x), "``log(1 + exp(x))``."),
    Row("swiglu", lambda x, y: x * f.sigmoid(x) * y, "``x * sigmoid(x) * y``, in this order."),
    Row("geglu", lambda x, y: f.gelu(x) * y, "``gelu(x) * y``."),
    Row("reglu", lambda x, y: f.relu(x) * y, "``relu(x) * y``."),
)
