"""Table of the named pointwise operations; kernels and oracles follow from its rows.

:mod:`ptxgen.functions` exposes them by these names, for arrays and for values of formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import signature
from textwrap import fill, indent
from typing import Any, NamedTuple

from ptxgen.numerics import complex as c
from ptxgen.numerics import formula as p
from ptxgen.numerics import functions as f
from ptxgen.numerics.dtype import COMPLEX, NAMES, STORABLE

REAL = "float32, bfloat16, float16 or float64"
NARROW = "float32, bfloat16 or float16"
NUMBERS = "float32, bfloat16, float16, float64, int32 or int64"
ANY = "float32, bfloat16, float16, float64, int32, int64 or bool"
COMPLEX_REAL = "float32, bfloat16, float16, float64, complex64 or complex128"
COMPLEX_NUMBERS = "float32, bfloat16, float16, float64, int32, int64, complex64 or complex128"
COMPLEX_ANY = "float32, bfloat16, float16, float64, int32, int64, bool, complex64 or complex128"
PAIRS = "complex64 or complex128"
PART = "float32 or float64, that of the parts"
OR_PART = (
    "theirs, or that of the parts of complex numbers; ``out`` or ``out_dtype`` may ask for another "
    "that holds it"
)
BITS = "int32, int64 or bool"
MOVED = f"{', '.join(list(STORABLE)[:-1])} or {list(STORABLE)[-1]}"
"""Dtypes of operations that only move elements."""


class Row(NamedTuple):
    """A pointwise operation. ``formula``: its function of scalars; ``says``: first line of its
    docstring. Dtypes as text for the docstring: ``takes``, of the arguments; ``gives``, of the
    result ("": that of the arguments).
    """

    name: str
    formula: Callable[..., Any]
    says: str
    takes: str = REAL
    gives: str = ""

    @property
    def dtypes(self) -> Mapping[str, str]:
        """Dtypes that arrays and results may have, full name to short name; the formula may refuse
        some.
        """
        if self.takes is MOVED:
            return STORABLE
        text = f"{self.takes} {self.gives}"
        return NAMES | {name: short for name, short in COMPLEX.items() if name in text}

    @property
    def doc(self) -> str:
        """Docstring of the operation, with its sections."""
        gives = self.gives or "theirs; ``out`` or ``out_dtype`` may ask for another that holds it"
        parameters = signature(self.formula).parameters
        chooses = "; ``condition`` is a bool" if "condition" in parameters else ""
        mixed = "; complex numbers and floats are promoted" if PAIRS in self.takes else ""
        mixed *= len(parameters) - ("condition" in parameters) > 1
        dtypes = f"{self.takes}, the same for all{mixed}{chooses}. The result has {gives}."
        return f"""{self.says}

Shapes
    Arrays broadcast, of any strides; the result has their shape. All but one may be Python scalars.
Dtypes
{indent(fill(dtypes, 96), "    ")}
Order
    Contract ``pointwise/1``: every operation of the formula is rounded once, the result once more;
    16-bit elements are computed in f32. An element's bits do not depend on its index.
    ``{self.name}.reference`` returns the same bits.
Errors
    ShapeError, DtypeError, FormulaError (dtypes that it does not take), OptionError, DeviceError
    or CompileError, before anything is launched or written.
Source
    ``ptxgen/ops/pointwise_table.py``, ``ptxgen/numerics/functions.py``."""


ROWS = (
    # arithmetic
    Row("add", lambda x, y: x + y, "``x + y``.", COMPLEX_NUMBERS),
    Row("sub", lambda x, y: x - y, "``x - y``.", COMPLEX_NUMBERS),
    Row("mul", lambda x, y: x * y, "``x * y``.", COMPLEX_NUMBERS),
    Row("div", lambda x, y: x / y, "``x / y``.", COMPLEX_REAL),
    Row("fma", lambda x, y, z: p.fma(x, y, z), "``x * y + z``, rounded once."),
    Row("neg", lambda x: -x, "``-x``.", COMPLEX_NUMBERS),
    Row(
        "abs",
        lambda x: abs(x),
        "``|x|``.",
        COMPLEX_NUMBERS,
        OR_PART,
    ),
    Row(
        "sign", f.sign, "``sign(x)``: 1 above zero, -1 below; zeros and NaNs as they are.", NUMBERS
    ),
    Row("maximum", lambda x, y: f.maximum(x, y), "``max(x, y)``; a NaN if either is one.", NUMBERS),
    Row("minimum", lambda x, y: f.minimum(x, y), "``min(x, y)``; a NaN if either is one.", NUMBERS),
    Row("clamp", f.clamp, "``min(max(x, low), high)``.", NUMBERS),
    Row("copy", lambda x: x, "``x``, contiguous, or with the strides of ``out=``.", MOVED),
    # complex numbers
    Row("real", lambda x: p.real(x), "The real part of ``x``.", COMPLEX_NUMBERS, OR_PART),
    Row("imag", lambda x: p.imag(x), "The imaginary part of ``x``.", PAIRS, PART),
    Row("conj", lambda x: c.conj(x), "The complex conjugate of ``x``.", COMPLEX_NUMBERS),
    Row("angle", lambda x: c.angle(x), "The angle of ``x``, from -pi to pi.", PAIRS, PART),
    Row(
        "complex",
        lambda re, im: p.complex_of(re, im),
        "``re + im i``, a complex number of two real ones.",
        REAL,
        "complex64 or complex128",
    ),
    Row(
        "polar",
        lambda r, theta: c.polar(r, theta),
        "``r cos(theta) + r sin(theta) i``.",
        NARROW,
        "complex64",
    ),
    # comparisons and selection
    Row("eq", lambda x, y: x == y, "``x == y``.", COMPLEX_ANY, "bool"),
    Row("ne", lambda x, y: x != y, "``x != y``.", COMPLEX_ANY, "bool"),
    Row("lt", lambda x, y: x < y, "``x < y``.", NUMBERS, "bool"),
    Row("le", lambda x, y: x <= y, "``x <= y``.", NUMBERS, "bool"),
    Row("gt", lambda x, y: x > y, "``x > y``.", NUMBERS, "bool"),
    Row("ge", lambda x, y: x >= y, "``x >= y``.", NUMBERS, "bool"),
    Row(
        "where",
        lambda condition, x, y: p.where(condition, x, y),
        "``x`` where ``condition`` holds, else ``y``.",
        COMPLEX_ANY,
    ),
    Row("isnan", lambda x: f.isnan(x), "``x != x``: whether it is a NaN.", ANY, "bool"),
    Row("isinf", lambda x: f.isinf(x), "``|x| == inf``: whether it is infinite.", REAL, "bool"),
    Row("isfinite", f.isfinite, "``|x| < inf``: whether it is a finite number.", REAL, "bool"),
    # bits
    Row("bitwise_and", lambda x, y: x & y, "``x & y``.", BITS),
    Row("bitwise_or", lambda x, y: x | y, "``x | y``.", BITS),
    Row("bitwise_xor", lambda x, y: x ^ y, "``x ^ y``.", BITS),
    Row("bitwise_not", lambda x: ~x, "``~x``.", BITS),
    # roundings
    Row("floor", lambda x: f.floor(x), "``floor(x)``: the largest integer that is not above it."),
    Row("ceil", lambda x: f.ceil(x), "``ceil(x)``: the smallest integer that is not below it."),
    Row("trunc", lambda x: f.trunc(x), "``trunc(x)``: rounded towards zero to an integer."),
    Row("round", lambda x: f.nearest(x), "``round(x)``: the nearest integer, ties to even."),
    # functions: docs/reference/functions.md
    Row("sqrt", lambda x: f.sqrt(x), "``sqrt(x)``, rounded once."),
    Row("rsqrt", lambda x: f.rsqrt(x), "``1 / sqrt(x)``."),
    Row("exp", lambda x: f.exp(x), "``e ** x``."),
    Row("exp2", lambda x: f.exp2(x), "``2 ** x``.", NARROW),
    Row("expm1", lambda x: f.expm1(x), "``e ** x - 1``."),
    Row("log", lambda x: f.log(x), "``log(x)``, the natural logarithm."),
    Row("log2", lambda x: f.log2(x), "``log2(x)``, to the base 2.", NARROW),
    Row("log1p", lambda x: f.log1p(x), "``log(1 + x)``."),
    Row("pow", lambda x, y: f.power(x, y), "``x ** y``.", NARROW),
    Row("sin", lambda x: f.sin(x), "``sin(x)``.", NARROW),
    Row("cos", lambda x: f.cos(x), "``cos(x)``.", NARROW),
    Row("tan", lambda x: f.tan(x), "``tan(x)``.", NARROW),
    Row("atan", lambda x: f.atan(x), "``atan(x)``, the arc tangent.", NARROW),
    Row("tanh", lambda x: f.tanh(x), "``tanh(x)``."),
    Row("erf", lambda x: f.erf(x), "``erf(x)``, the error function."),
    # activations
    Row("relu", lambda x: f.relu(x), "``max(x, 0)``; its derivative at 0 is 0."),
    Row("sigmoid", lambda x: f.sigmoid(x), "``1 / (1 + exp(-x))``."),
    Row("silu", lambda x: f.silu(x), "``x * sigmoid(x)``."),
    Row("gelu", lambda x: f.gelu(x), "``x * (1 + erf(x / sqrt(2))) / 2``."),
    Row(
        "gelu_tanh",
        lambda x: f.gelu_tanh(x),
        "``x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))) / 2``.",
    ),
    Row("softplus", lambda x: f.softplus(x), "``log(1 + exp(x))``."),
    Row("swiglu", lambda x, y: x * f.sigmoid(x) * y, "``x * sigmoid(x) * y``, in this order."),
    Row("geglu", lambda x, y: f.gelu(x) * y, "``gelu(x) * y``."),
    Row("reglu", lambda x, y: f.relu(x) * y, "``relu(x) * y``."),
)
INNER = (
    Row(
        "fill",
        lambda x, value: p.cast(value, x.type),
        "``value``, of the dtype of ``x``.",
        MOVED,
    ),
)
"""Rows of operations that only other operations call."""
