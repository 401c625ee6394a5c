"""Complex values of formulas: arithmetic on pairs of real and imaginary parts.

A complex value is a node of type c64 or c128. Its parts are f32 or f64 nodes, and each operation
here is a formula of parts, so every rounding is stated: no product is fused with a sum. Hence
``z * w`` and ``w * z`` have the same bits, and ``z * conj(z)`` has the imaginary part 0.

Operands of both sizes give c128. A real operand (float or Python number) has no imaginary part: it
scales or shifts the other operand, and neither multiplies by 0 nor adds 0, as in C (ISO/IEC 9899,
Annex G). NumPy and PyTorch convert it to ``x + 0i`` first, which gives a NaN where a part is
infinite.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ptxgen.errors import FormulaError, described
from ptxgen.numerics import formula
from ptxgen.numerics.formula import (
    COMPLEX,
    FLOATS,
    OPERATORS,
    Function,
    Node,
    bits,
    cast,
    complex_of,
    const,
    fma,
    imag,
    primitive,
    real,
    where,
)
from ptxgen.numerics.functions import ATAN, HALF_PI, cos, maximum, minimum, sin

_INF = float("inf")
_BOTH = ("f32", "f64")
_TYPES = {part: type for type, part in COMPLEX.items()}
"""Complex type of each type of parts."""

Parts = tuple[Node, Node | None]
"""Real part and imaginary part of an operand; None for that of a real operand."""


def _parts(what: str, *operands: Any) -> list[Parts]:
    """Returns the parts of each operand, all of one type: f64 if an operand has parts of 64 bits,
    else f32.

    ``what``: the operation, for FormulaError if an operand is no number, or an integer or bool.
    """
    nodes = [x for x in operands if isinstance(x, Node)]
    kinds = [COMPLEX.get(x.type, x.type) for x in nodes]
    for x in operands:
        if not isinstance(x, Node | bool | int | float | complex):
            raise FormulaError(f"{what} takes values of a formula and numbers; got {described(x)}")
    if not nodes or set(kinds) - set(FLOATS):
        got = " and ".join(dict.fromkeys(x.type for x in nodes)) or "only numbers"
        raise FormulaError(f"{what} takes complex values and floats; got {got}: cast the integers")
    type = "f64" if "f64" in kinds else "f32"
    found: list[Parts] = []
    for x in operands:
        if isinstance(x, Node):
            second = cast(imag(x), type) if x.type in COMPLEX else None
            found.append((cast(real(x), type), second))
        elif isinstance(x, complex):
            found.append((const(x.real, type), const(x.imag, type)))
        else:
            found.append((const(x, type), None))
    return found


def _zero(part: Node) -> Node:
    return const(0.0, part.type)


# -- arithmetic -------------------------------------------------------------------------------
def add(x: Any, y: Any) -> Node:
    """Builds the sum: each part is rounded once."""
    (a, b), (c, d) = _parts("add", x, y)
    im = b + d if b is not None and d is not None else d if b is None else b
    assert im is not None, "one operand is complex"
    return complex_of(a + c, im)


def sub(x: Any, y: Any) -> Node:
    """Builds the difference: each part is rounded once."""
    (a, b), (c, d) = _parts("sub", x, y)
    im = b if d is None else -d if b is None else b - d
    assert im is not None, "one operand is complex"
    return complex_of(a - c, im)


def mul(x: Any, y: Any) -> Node:
    """Builds the product ``(a c - b d) + (a d + b c) i``: products and sums are rounded once each.

    By a real number: ``a c + (b c) i``.
    """
    (a, b), (c, d) = _parts("mul", x, y)
    if b is None or d is None:
        im = b * c if b is not None else a * d
        return complex_of(a * c, im)
    return complex_of(a * c - b * d, a * d + b * c)


def _quotient_gradients(d: Node, x: Node, y: Node, z: Node) -> tuple[Node, Node]:
    share = d / conj(y)
    return share, -(share * conj(z))


def _quotient(x: Node, y: Node) -> Node:
    """The quotient of complex numbers by Smith's algorithm, which divides by the larger part of y
    first, so that no square overflows: with ``|c| >= |d|``, ``r = d / c`` and ``s = c + d r`` it is
    ``(a + b r) / s + ((b - a r) / s) i``, else the same with the parts exchanged. By zero, the
    parts are divided by +0.
    """
    a, b, c, d = real(x), imag(x), real(y), imag(y)
    exchanged = abs(c) < abs(d)
    large, small = where(exchanged, d, c), where(exchanged, c, d)
    first, second = where(exchanged, b, a), where(exchanged, a, b)
    zero = large == 0
    ratio = where(zero, 0, small / large)
    by = where(zero, 0, large + small * ratio)
    re = first + second * ratio
    other = first * ratio
    im = where(exchanged, other - second, second - other)
    return complex_of(where(zero, a, re) / by, where(zero, b, im) / by)


quotient = Function("quotient", _quotient, 2, types=tuple(COMPLEX), pullback=_quotient_gradients)
"""Quotient of two complex values of one type."""


def div(x: Any, y: Any) -> Node:
    """Builds the quotient: by :data:`quotient`, or by a real number part by part."""
    (a, b), (c, d) = _parts("div", x, y)
    if d is None:
        assert b is not None, "one operand is complex"
        return complex_of(a / c, b / c)
    return quotient(complex_of(a, _zero(a) if b is None else b), complex_of(c, d))


def neg(x: Node) -> Node:
    """Builds ``-x``: both parts negated."""
    return complex_of(-real(x), -imag(x))


def conj(x: Node) -> Node:
    """The complex conjugate: the imaginary part negated. A real value is returned as it is."""
    return complex_of(real(x), -imag(x)) if x.type in COMPLEX else real(x)


# -- comparisons and selection ------------------------------------------------------------------
def eq(x: Any, y: Any) -> Node:
    """Builds ``x == y``: whether both parts are equal."""
    (a, b), (c, d) = _parts("eq", x, y)
    b, d = (_zero(a) if part is None else part for part in (b, d))
    both: Node = (a == c) & (b == d)
    return both


def ne(x: Any, y: Any) -> Node:
    """Builds ``x != y``: whether a part differs."""
    return ~eq(x, y)


def select(condition: Node, x: Any, y: Any) -> Node:
    """Builds ``x`` where ``condition`` holds, else ``y``."""
    (a, b), (c, d) = _parts("where", x, y)
    b, d = (_zero(a) if part is None else part for part in (b, d))
    return complex_of(where(condition, a, c), where(condition, b, d))


# -- magnitude and angle ------------------------------------------------------------------------
_SCALES = {
    "f32": ((2.0**60, 2.0**-70), (2.0**-40, 2.0**100)),
    "f64": ((2.0**500, 2.0**-600), (2.0**-400, 2.0**700)),
}
"""Pairs (bound of the larger part, factor) by type: for parts above the first bound or below the
second, whose squares might overflow or lose bits."""


def _hypot_slope(x: Node, y: Node, r: Node) -> tuple[Node, Node]:
    zero = r == 0
    return where(zero, 0.0, x / r), where(zero, 0.0, y / r)


def _hypot(x: Node, y: Node) -> Node:
    """The length ``sqrt(x**2 + y**2)`` as ``sqrt(fma(x, x, y * y))``. If the larger is above 2**60
    or below 2**-40 (f64: 2**500, 2**-400), both are scaled by a power of two first, so that no
    square overflows or loses bits. Infinite if either is, even beside a NaN.
    """
    a, b = abs(x), abs(y)
    large, small = maximum(a, b), minimum(a, b)
    (high, shrink), (low, grow) = _SCALES[x.type]
    by = where(large > high, shrink, where(large < low, grow, const(1.0, x.type)))
    back = where(large > high, 1 / shrink, where(large < low, 1 / grow, const(1.0, x.type)))
    u, v = large * by, small * by
    length = primitive("sqrt", fma(u, u, v * v)) * back
    return where((a == _INF) | (b == _INF), _INF, length)


hypot = Function("hypot", _hypot, 2, _hypot_slope, _BOTH)
"""Length of a vector of two parts."""

ATAN_TAYLOR: tuple[float, ...] = tuple((-1) ** i / (2 * i + 1) for i in range(1, 14))
"""Ascending coefficients of ``(atan(t) / t - 1) / t**2`` in ``t**2``, f64: the Taylor series."""
ATAN_CENTRES: tuple[tuple[float, float, float, float], ...] = (
    (0.0, 0.0, 0.0, 0.2),
    (
        0.4140625,
        float.fromhex("0x1.91fde7cd0c662p-2"),
        float.fromhex("0x1.1074188054b53p-56"),
        0.65,
    ),
    (1.0, float.fromhex("0x1.921fb54442d18p-1"), float.fromhex("0x1.1a62633145c07p-55"), _INF),
)
"""Rows (c, high and low part of atan(c), bound of z below which c is used) of the reduction
``atan(z) = atan(c) + atan((z - c) / (1 + c z))`` in f64; |(z - c) / (1 + c z)| < 0.22."""
HALF_PI_F64 = (float.fromhex("0x1.921fb54442d18p+0"), float.fromhex("0x1.1a62633145c07p-54"))
"""High and low part of pi/2, f64."""


def _horner(x: Node, coefficients: tuple[float, ...]) -> Node:
    result: Node = fma(x, coefficients[-1], coefficients[-2])
    for coefficient in reversed(coefficients[:-2]):
        result = fma(result, x, coefficient)
    return result


def _atan_unit(z: Node) -> Node:
    """The arc tangent of 0 <= z <= 1."""
    if z.type == "f32":
        square = z * z
        return fma(_horner(square, ATAN) * square, z, z)
    (c, high, low), *rest = [tuple(const(v, "f64") for v in row[:3]) for row in ATAN_CENTRES]
    for (*_, bound), row in zip(ATAN_CENTRES, rest, strict=False):
        below = z < bound
        c, high, low = (where(below, a, b) for a, b in zip((c, high, low), row, strict=True))
    t = (z - c) / fma(c, z, 1)
    square = t * t
    return high + (low + fma(_horner(square, ATAN_TAYLOR) * square, t, t))


def _atan2_slope(y: Node, x: Node, angle: Node) -> tuple[Node, Node]:
    r = hypot(x, y)
    zero = r == 0
    return where(zero, 0.0, x / r / r), where(zero, 0.0, -(y / r / r))


def _atan2(y: Node, x: Node) -> Node:
    """The angle of the point (x, y) from the positive x axis, in [-pi, pi], with the sign of y: the
    arc tangent of the smaller part divided by the larger, taken from pi/2 where |y| > |x|, and from
    pi where the sign bit of x is set. Two zeros or two infinities count as equal, as in C.
    """
    a, b = abs(y), abs(x)
    large, small = maximum(a, b), minimum(a, b)
    equal = where(large == 0, const(0.0, x.type), 1)
    angle = _atan_unit(where(small == large, equal, small / large))
    high, low = HALF_PI[:2] if x.type == "f32" else HALF_PI_F64
    angle = where(a > b, high - (angle - low), angle)
    angle = where(bits(x) < 0, 2 * high - (angle - 2 * low), angle)
    sign = -(1 << (31 if x.type == "f32" else 63))
    return formula.from_bits((bits(angle) & ~sign) | (bits(y) & sign))


atan2 = Function("atan2", _atan2, 2, _atan2_slope, _BOTH)
"""Angle of a point (y, x)."""


def absolute(x: Node) -> Node:
    """Builds the magnitude of a complex value, a real one."""
    return hypot(real(x), imag(x))


def angle(x: Node) -> Node:
    """The angle of a complex value in radians, from -pi to pi: ``atan2(imag(x), real(x))``."""
    if x.type not in COMPLEX:
        raise FormulaError(f"angle takes a complex value; got {x.type}")
    return atan2(imag(x), real(x))


def polar(r: Any, theta: Any) -> Node:
    """The complex value of magnitude ``r`` and angle ``theta``: ``r cos(theta) + r sin(theta) i``;
    f32 only, as sin and cos.
    """
    r, theta = formula.unify("polar", (r, theta))
    return complex_of(r * cos(theta), r * sin(theta))


_IMPLEMENTED: dict[str, Callable[..., Node]] = {
    **{"add": add, "sub": sub, "mul": mul, "div": div, "neg": neg, "abs": absolute},
    **{"eq": eq, "ne": ne, "where": select},
}
OPERATORS.update(_IMPLEMENTED)
