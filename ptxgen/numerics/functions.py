"""Functions of formulas: each a sequence of IEEE operations, with its largest error.

A function is a formula of primitives, so that kernels and oracle compute the same sequence. The
functions of f32 have their largest errors over all f32 arguments in ``docs/functions.md``, in ulp
of the exact result (of 2**-149 where that is subnormal); those errors are measured, not estimated.

Special values are those of IEEE 754 and C: a NaN gives a NaN (except ``pow(1, NaN)`` and
``pow(NaN, 0)``, which are 1), odd functions keep the sign of a zero, arguments and results may be
subnormal. ``tools/fit_functions.py`` derives the polynomials, ``tools/fit_activation.py`` those
that are shared with the epilogue activations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ptxgen.numerics import activation
from ptxgen.numerics.activation import EXP, LN2_HIGH, LN2_LOW, LOG2_E, ROUNDER
from ptxgen.numerics.formula import (
    Function,
    Node,
    bits,
    cast,
    compare,
    const,
    fma,
    from_bits,
    primitive,
    where,
)
from ptxgen.numerics.rows import LOG, LOG_SPLIT_BITS

_hex = float.fromhex
_INF = float("inf")
_SIGN = -(1 << 31)
"""The bits of -0.0."""


# -- primitives by name -----------------------------------------------------------------------
def absolute(x: Node) -> Node:
    """``|x|``."""
    return primitive("abs", x)


def negative(x: Node) -> Node:
    """``-x``."""
    return primitive("neg", x)


def sqrt(x: Node) -> Node:
    """The square root, rounded once."""
    return primitive("sqrt", x)


def floor(x: Node) -> Node:
    """The largest integer that is not above ``x``."""
    return primitive("floor", x)


def ceil(x: Node) -> Node:
    """The smallest integer that is not below ``x``."""
    return primitive("ceil", x)


def trunc(x: Node) -> Node:
    """``x`` without its fraction."""
    return primitive("trunc", x)


def nearest(x: Node) -> Node:
    """The integer nearest to ``x``, of two the even one."""
    return primitive("round", x)


def maximum(a: Any, b: Any) -> Node:
    """The larger; a NaN if either is one, and +0.0 above -0.0."""
    return primitive("max", a, b)


def minimum(a: Any, b: Any) -> Node:
    """The smaller; a NaN if either is one, and -0.0 below +0.0."""
    return primitive("min", a, b)


def clamp(x: Node, low: Any, high: Any) -> Node:
    """``min(max(x, low), high)``."""
    return minimum(maximum(x, low), high)


def isnan(x: Node) -> Node:
    """Whether ``x`` is a NaN."""
    return compare("ne", x, x)


def isinf(x: Node) -> Node:
    """Whether ``x`` is infinite."""
    return compare("eq", absolute(x), _INF)


def isfinite(x: Node) -> Node:
    """Whether ``x`` is neither infinite nor a NaN."""
    return absolute(x) < _INF


def sign(x: Node) -> Node:
    """1 above zero, -1 below; a zero and a NaN stay what they are."""
    return where(x > 0, 1, where(x < 0, -1, x))


# -- pieces -----------------------------------------------------------------------------------
def _horner(x: Node, coefficients: Sequence[float]) -> Node:
    """The polynomial with these ascending coefficients."""
    result: Node = fma(x, coefficients[-1], coefficients[-2])
    for coefficient in reversed(coefficients[:-2]):
        result = fma(result, x, coefficient)
    return result


def _signed(magnitude: Node, x: Node) -> Node:
    """``magnitude`` with the sign of ``x``."""
    return from_bits(bits(magnitude) | (bits(x) & _SIGN))


def _exp_parts(x: Node, bias: int) -> tuple[Node, Node]:
    """``exp(x) = p * 2**n``: p, and an integer whose low bits are those of ``n + bias``.

    n is rounded by adding a number so large that its last place is 1.
    """
    rounded = fma(x, LOG2_E, ROUNDER + bias)
    n = rounded - (ROUNDER + bias)
    r = fma(n, -LN2_LOW, fma(n, -LN2_HIGH, x))
    return fma(fma(_horner(r, EXP), r, 1), r, 1), bits(rounded)


def _scaled(p: Node, n: Node) -> Node:
    """``p * 2**n`` with one rounding, of the bits of ``n + 254``; -252 <= n <= 254.

    By two factors, each the root of it or nearly so: the result may be subnormal or overflow.
    """
    first = (n >> 1) << 23
    second = (n << 23) - first
    return p * from_bits(first) * from_bits(second)


def _exp_normal(x: Node) -> Node:
    """``exp(x)`` for -87 <= x <= 88: no factor and no result is subnormal."""
    p, n = _exp_parts(x, 127)
    return p * from_bits(n << 23)


# -- exponentials and logarithms --------------------------------------------------------------
_LOWEST, _HIGHEST = -104.0, 89.0
"""Beyond these, exp is 0 and inf; between them, ``n`` takes 9 bits."""


def _exp(x: Node) -> Node:
    return _scaled(*_exp_parts(clamp(x, _LOWEST, _HIGHEST), 254))


exp = Function("exp", _exp, 1, slope=lambda x, y: (y,))
"""``e ** x``: ``2**n * (1 + r + r**2 * EXP(r))``, n the integer nearest to ``x / ln 2``."""

EXP2: tuple[float, ...] = (
    _hex("0x1.62e430p-1"),
    _hex("0x1.ebfbd8p-3"),
    _hex("0x1.c6af78p-5"),
    _hex("0x1.3b30b0p-7"),
    _hex("0x1.5f0a66p-10"),
    _hex("0x1.3f906cp-13"),
)
"""Ascending coefficients of ``(2**r - 1) / r``, |r| <= 0.5; 2**r to 2**-28.1."""


def _exp2_scaled(x: Node) -> Node:
    """``2**x`` for -151 <= x <= 129."""
    rounded = x + (ROUNDER + 254)
    r = x - (rounded - (ROUNDER + 254))
    return _scaled(fma(_horner(r, EXP2), r, 1), bits(rounded))


def _exp2(x: Node) -> Node:
    return _exp2_scaled(clamp(x, -151, 129))


exp2 = Function("exp2", _exp2, 1, slope=lambda x, y: (y * math.log(2),))
"""``2 ** x``: ``2**n * (1 + r * EXP2(r))``, n the integer nearest to x."""


def _expm1(x: Node) -> Node:
    x = where(x == 0, x, clamp(x, -18, _HIGHEST))
    rounded = fma(x, LOG2_E, ROUNDER + 126)
    n = rounded - (ROUNDER + 126)
    r = fma(n, -LN2_LOW, fma(n, -LN2_HIGH, x))
    series = fma(_horner(r, EXP) * r, r, r)
    half = from_bits(bits(rounded) << 23)  # 2**(n - 1), since 2**128 is too large
    return where(n == 0, where(x == 0, x, series), fma(series, half, half - 0.5) * 2)


expm1 = Function("expm1", _expm1, 1, slope=lambda x, y: (y + 1,))
"""``exp(x) - 1``: ``2**n * (r + r**2 * EXP(r)) + (2**n - 1)``."""


def _log_special(x: Node, result: Node) -> Node:
    """``result`` for positive finite x."""
    special = where(x > 0, x, where(x == 0, const(-_INF, x.type), math.nan))
    return where((x > 0) & (x < _INF), result, special)


def _log_parts(x: Node, lowest: int) -> tuple[Node, Node]:
    """``x = 2**n * (1 + t)`` positive and finite: t, and n. ``lowest``: the bits of that 1 + t."""
    tiny = x < 2.0**-126
    scaled = where(tiny, x * 2.0**24, x)
    n = (bits(scaled) - lowest) >> 23
    t = from_bits(bits(scaled) - (n << 23)) - 1
    return t, cast(n - where(tiny, const(24, "i32"), 0), "f32")


def _log_joined(t: Node, n: Node) -> Node:
    """``log(1 + t) + n * log(2)``."""
    tail = _horner(t, LOG) * t * t
    return fma(n, LN2_HIGH, t + fma(n, LN2_LOW, tail))


def _log(x: Node) -> Node:
    return _log_special(x, _log_joined(*_log_parts(x, LOG_SPLIT_BITS)))


log = Function("log", _log, 1, slope=lambda x, y: (1 / x,))
"""The natural logarithm: ``n * ln 2 + t + t**2 * LOG(t)``, ``x = 2**n * (1 + t)``."""

LOG2: tuple[float, ...] = (
    _hex("-0x1.715470p-1"),
    _hex("0x1.ec70a0p-2"),
    _hex("-0x1.715acap-2"),
    _hex("0x1.277bfap-2"),
    _hex("-0x1.eaac80p-3"),
    _hex("0x1.a35476p-3"),
    _hex("-0x1.881186p-3"),
    _hex("0x1.7b9ceap-3"),
    _hex("-0x1.baabaap-4"),
)
"""Ascending coefficients of ``(log2(1 + t) - t / ln 2) / t**2``, 1 + t from ``sqrt(1/2)`` to
``sqrt(2)``; log2 to 2**-27.6."""
LOG2_SPLIT_BITS = 0x3F3504F3
"""The bits of ``sqrt(1/2)``: n + log2(1 + t) is then never smaller than its second term."""
LOG2_E_LOW = _hex("0x1.4ae0c0p-26")
"""``1 / ln 2 - LOG2_E``."""


def _log2(x: Node) -> Node:
    t, n = _log_parts(x, LOG2_SPLIT_BITS)
    low = fma(t, LOG2_E_LOW, _horner(t, LOG2) * t * t)
    return _log_special(x, n + fma(t, LOG2_E, low))


log2 = Function("log2", _log2, 1, slope=lambda x, y: (1 / (x * math.log(2)),))
"""The logarithm to base 2: ``n + t / ln 2 + t**2 * LOG2(t)``, ``x = 2**n * (1 + t)``."""


def _log1p(x: Node) -> Node:
    sum = 1 + x
    exponent = (bits(sum) - LOG_SPLIT_BITS) & -(1 << 23)
    scale = from_bits((129 << 23) - exponent) * 0.25  # 2**-n, which may be subnormal
    t = fma(x, scale, scale - 1)  # of 1 + x, which is not rounded here
    result = _log_joined(t, cast(exponent >> 23, "f32"))
    return where(x == 0, x, _log_special(sum, result))


log1p = Function("log1p", _log1p, 1, slope=lambda x, y: (1 / (1 + x),))
"""``log(1 + x)``, as :data:`log` with ``t = x / 2**n + (1 / 2**n - 1)``."""


def _softplus(x: Node) -> Node:
    return maximum(x, 0) + log1p(exp(-absolute(x)))


softplus = Function("softplus", _softplus, 1, slope=lambda x, y: (sigmoid(x),))
"""``log(1 + exp(x))`` as ``max(x, 0) + log1p(exp(-|x|))``."""


# -- powers -----------------------------------------------------------------------------------
def _rsqrt(x: Node) -> Node:
    return 1 / sqrt(x)


rsqrt = Function("rsqrt", _rsqrt, 1, slope=lambda x, y: (-0.5 * (y / x),), types=("f32", "f64"))
"""``1 / sqrt(x)``, two roundings."""

POW_LOG: tuple[float, ...] = (
    _hex("0x1.71547652b86e9p+0"),
    _hex("-0x1.715476540bb94p-1"),
    _hex("0x1.ec709dc483ccdp-2"),
    _hex("-0x1.715473a1a3d43p-2"),
    _hex("0x1.2776bfeea40e7p-2"),
    _hex("-0x1.ec721fc4ed608p-3"),
    _hex("0x1.a61c1a70cbb6ap-3"),
    _hex("-0x1.712bc8bd187b2p-3"),
    _hex("0x1.478ff5d311bbap-3"),
    _hex("-0x1.28aed3e4c5fcdp-3"),
    _hex("0x1.17d06ce525bc1p-3"),
    _hex("-0x1.0239bf074111ep-3"),
    _hex("0x1.6d3cf49906070p-4"),
    _hex("-0x1.01bb593a9e12dp-5"),
)
"""Ascending coefficients of ``log2(1 + t) / t``, -0.25 <= t < 0.5, in f64; to 2**-38.2."""
_ROUNDER_F64 = 1.5 * 2.0**52


def _pow(x: Node, y: Node) -> Node:
    size = absolute(x)
    wide = cast(size, "f64")  # never subnormal
    n = (cast(bits(wide) >> 32, "i32") - 0x3FE80000) >> 20
    t = from_bits(bits(wide) - (cast(n, "i64") << 52)) - 1
    logarithm = fma(_horner(t, POW_LOG), t, cast(n, "f64"))
    logarithm = where(size == 0, -_INF, where(size == _INF, _INF, logarithm))
    exponent = where(size == 1, 0, logarithm * cast(y, "f64"))
    exponent = where(exponent > -160, where(exponent < 160, exponent, 160.0), -160.0)
    rounded = exponent + (_ROUNDER_F64 + 254)
    r = cast(exponent - (rounded - (_ROUNDER_F64 + 254)), "f32")
    result = _scaled(fma(_horner(r, EXP2), r, 1), cast(bits(rounded), "i32"))

    half = 0.5 * y
    whole = trunc(y) == y
    odd = whole & (trunc(half) != half)
    result = where(odd & (bits(x) < 0), -result, result)
    undefined = ((x < 0) & (size < _INF) & ~whole) | isnan(x) | isnan(y)
    return where((x == 1) | (y == 0), 1, where(undefined, math.nan, result))


def _pow_slope(x: Node, y: Node, z: Node) -> tuple[Node, ...]:
    zero = const(0.0, x.type)
    by_x = where(y == 0, zero, y * pow_(x, y - 1))
    return by_x, where((x == 0) & (y >= 0), zero, z * log(x))


pow_ = Function("pow", _pow, 2, slope=_pow_slope)
"""``2 ** (y * log2(x))``, the product and the logarithm in f64; special values as C has them."""

_POWERS: Mapping[float, Callable[[Node], Node]] = {
    -2: lambda x: 1 / (x * x),
    -1: lambda x: 1 / x,
    -0.5: lambda x: rsqrt(x),
    0.5: lambda x: sqrt(x),
    1: lambda x: x,
    2: lambda x: x * x,
    3: lambda x: x * x * x,
    4: lambda x: (x * x) * (x * x),
}


def power(x: Any, y: Any) -> Node:
    """``x ** y``; for the numbers -2, -1, -0.5, 0.5, 1, 2, 3 and 4 as y by these operations:
    ``1 / (x * x)``, ``1 / x``, ``rsqrt(x)``, ``sqrt(x)``, ``x``, ``x * x``, ``x * x * x``,
    ``(x * x) * (x * x)``. Else f32 alone is taken.
    """
    if isinstance(x, Node) and isinstance(y, int | float) and y in _POWERS:
        return _POWERS[y](x)
    return pow_(x, y)


# -- sigmoid and its kin ----------------------------------------------------------------------
def _sigmoid(x: Node) -> Node:
    e = _scaled(*_exp_parts(maximum(-absolute(x), _LOWEST), 254))
    return where(x < 0, e, 1) / (1 + e)


sigmoid: Function = Function("sigmoid", _sigmoid, 1, slope=lambda x, y: (y * (1 - y),))
"""``1 / (1 + exp(-x))``, of ``e = exp(-|x|)``: ``1 / (1 + e)`` or ``e / (1 + e)``."""

TANH: tuple[float, ...] = (
    _hex("-0x1.555540p-2"),
    _hex("0x1.110a1cp-3"),
    _hex("-0x1.b8a5f8p-5"),
    _hex("0x1.55095cp-6"),
    _hex("-0x1.83b558p-8"),
)
"""Ascending coefficients of ``(tanh(x) / x - 1) / x**2`` in ``x**2``, |x| <= 0.6; to 2**-28.3."""


def _tanh(x: Node) -> Node:
    y = absolute(x)
    square = y * y
    small = fma(_horner(square, TANH) * square, y, y)
    large = 1 - 2 / (1 + _exp_normal(2 * minimum(y, 10)))
    return _signed(where(y < 0.6, small, large), x)


tanh = Function("tanh", _tanh, 1, slope=lambda x, y: (1 - y * y,))
"""``1 - 2 / (1 + exp(2 |x|))`` with the sign of x; ``x + x**3 * TANH(x**2)`` where |x| < 0.6."""

ERF: tuple[float, ...] = (
    _hex("0x1.06eba8p-3"),
    _hex("-0x1.812740p-2"),
    _hex("0x1.ce2d4ep-4"),
    _hex("-0x1.b7fe50p-6"),
    _hex("0x1.542b6ap-8"),
    _hex("-0x1.a4f424p-11"),
    _hex("0x1.4bee6cp-14"),
)
"""Ascending coefficients of ``erf(x) / x - 1`` in ``x**2``, |x| < 1; to 2**-29.4."""
ERFC: tuple[float, ...] = (
    _hex("-0x1.67c3d4p-12"),
    _hex("-0x1.208896p+0"),
    _hex("-0x1.46bbb2p-1"),
    _hex("-0x1.a6505cp-4"),
    _hex("0x1.65cb1ap-6"),
    _hex("-0x1.826580p-9"),
    _hex("0x1.87026cp-13"),
)
"""Ascending coefficients of ``log(erfc(x))``, 1 <= x < 3.95; erf to 2**-29.8."""


def _erf(x: Node) -> Node:
    y = absolute(x)
    small = fma(_horner(y * y, ERF), y, y)
    large = 1 - _exp_normal(_horner(minimum(y, 3.9375), ERFC))
    return _signed(where(y < 1, small, large), x)


erf = Function("erf", _erf, 1, slope=lambda x, y: (exp(-(x * x)) * (2 / math.sqrt(math.pi)),))
"""The error function: ``1 - exp(ERFC(|x|))`` with the sign of x; ``x + x * ERF(x**2)`` below 1."""


# -- trigonometry -----------------------------------------------------------------------------
SIN: tuple[float, ...] = (
    _hex("-0x1.555546p-3"),
    _hex("0x1.11077cp-7"),
    _hex("-0x1.9955cep-13"),
)
"""Ascending coefficients of ``(sin(r) / r - 1) / r**2`` in ``r**2``, |r| <= pi/4; to 2**-27.9."""
COS: tuple[float, ...] = (
    _hex("0x1.55554ap-5"),
    _hex("-0x1.6c0c2cp-10"),
    _hex("0x1.99e9f0p-16"),
)
"""Ascending coefficients of ``(cos(r) - 1 + r**2 / 2) / r**4`` in ``r**2``, |r| <= pi/4; to
2**-33.0."""
TWO_OVER_PI = _hex("0x1.45f306p-1")
HALF_PI = (_hex("0x1.921fb6p+0"), _hex("-0x1.777a5cp-25"), _hex("-0x1.ee59dap-50"))
"""pi/2 as a sum."""
TWO_OVER_PI_WORDS = (
    0x00517CC1,
    0xB727220A,
    0x94FE13AB,
    0xE8FA9A6E,
    0xE06DB14A,
    0xCC9E21C8,
    0x20FF28B1,
)
"""The first 224 bits behind the binary point of ``2/pi / 512``."""


def _window(first: int) -> int:
    """64 of these bits, from a word on, as an i64."""
    value = TWO_OVER_PI_WORDS[first] << 32 | TWO_OVER_PI_WORDS[first + 1]
    return value - (value >> 63 << 64)


_WINDOWS = tuple((const(_window(i), "i64"), const(_window(i + 2), "i64")) for i in range(4))
_NEAR = 65536.0
"""Below it a quarter turn of three f32 numbers is taken off often enough to keep all bits."""


def _near(x: Node) -> tuple[Node, Node]:
    """``x = n * pi/2 + r`` for 0 <= x < _NEAR: r in [-pi/4, pi/4], and an integer n modulo 4."""
    rounded = fma(x, TWO_OVER_PI, ROUNDER)
    n = rounded - ROUNDER
    r = fma(n, -HALF_PI[2], fma(n, -HALF_PI[1], fma(n, -HALF_PI[0], x)))
    return r, bits(rounded)


def _far(x: Node) -> tuple[Node, Node]:
    """The same for _NEAR <= x, by Payne and Hanek: of ``x * 2/pi`` only what is needed modulo 4.

    ``x = m * 2**e``, m an integer of 24 bits; ``2**e * 2/pi`` modulo 4 is a window of the bits of
    2/pi, of which 96 are multiplied by m.
    """
    word = bits(x) >> 23
    shift = cast(word - (127 + 16), "i64")  # of the window: 0 to 111
    first, second = _WINDOWS[3]
    for i in (2, 1, 0):
        first, second = (
            where(shift < 32 * (i + 1), a, b)
            for a, b in zip(_WINDOWS[i], (first, second), strict=True)
        )
    shift = shift & 31
    high = (first << shift) | (((second >> 1) & ((1 << 63) - 1)) >> (63 - shift))
    low = ((second << shift) >> 32) & 0xFFFFFFFF
    m = cast((bits(x) & 0x7FFFFF) | 0x800000, "i64")
    turn = high * m + ((low * m) >> 32)  # of 2**64
    r = cast(cast(turn << 2, "f64") * (math.pi / 2 * 2.0**-64), "f32")
    return where(x < _INF, r, math.nan), cast(((turn >> 61) + 1) >> 1, "i32")


def _sine(r: Node, n: Node) -> Node:
    """``sin(r + n * pi/2)``"""
    square = r * r
    sine = fma(_horner(square, SIN) * square, r, r)
    cosine = fma(fma(_horner(square, COS), square, -0.5), square, 1)
    value = where((n & 1) == 0, sine, cosine)
    return from_bits(bits(value) ^ ((n & 2) << 30))


def _tangent(r: Node, n: Node) -> Node:
    square = r * r
    sine = fma(_horner(square, SIN) * square, r, r)
    cosine = fma(fma(_horner(square, COS), square, -0.5), square, 1)
    even = (n & 1) == 0
    return where(even, sine, -cosine) / where(even, cosine, sine)


def _turned(name: str, result: Callable[[Node, Node], Node], add: int = 0) -> Callable[..., Node]:
    """``result`` of r and n for all |x|; the large ones by a function of their own."""

    def far(x: Node) -> Node:
        r, n = _far(x)
        return result(r, n + add)

    large = Function(f"{name}_far", far, 1, rare=True)

    def body(x: Node) -> Node:
        y = absolute(x)
        r, n = _near(y)
        return where(y < _NEAR, result(r, n + add), large(y))

    return body


_sin_size, _cos_size = _turned("sin", _sine), _turned("cos", _sine, 1)
_tan_size = _turned("tan", _tangent)


def _odd(size: Callable[..., Node], x: Node) -> Node:
    return from_bits(bits(size(x)) ^ (bits(x) & _SIGN))


sin = Function("sin", lambda x: _odd(_sin_size, x), 1, slope=lambda x, y: (cos(x),))
"""The sine of an angle in radians: of r, what is left of |x| beside multiples of a quarter turn,
``r + r**3 * SIN(r**2)`` or ``1 - r**2 / 2 + r**4 * COS(r**2)``."""
cos: Function = Function("cos", lambda x: _cos_size(x), 1, slope=lambda x, y: (-sin(x),))
"""The cosine of an angle in radians, as :data:`sin`."""
tan = Function("tan", lambda x: _odd(_tan_size, x), 1, slope=lambda x, y: (fma(y, y, 1),))
"""The tangent of an angle in radians, a quotient of the polynomials of :data:`sin`."""

ATAN: tuple[float, ...] = (
    _hex("-0x1.555540p-2"),
    _hex("0x1.999244p-3"),
    _hex("-0x1.2423dap-3"),
    _hex("0x1.c0aa64p-4"),
    _hex("-0x1.58573ep-4"),
    _hex("0x1.db1d92p-5"),
    _hex("-0x1.ff40c4p-6"),
    _hex("0x1.65eddep-7"),
    _hex("-0x1.d66908p-10"),
)
"""Ascending coefficients of ``(atan(x) / x - 1) / x**2`` in ``x**2``, 0 <= x <= 1; to 2**-28.4."""


def _atan(x: Node) -> Node:
    y = absolute(x)
    steep = y > 1
    z = where(steep, 1 / y, y)
    square = z * z
    angle = fma(_horner(square, ATAN) * square, z, z)
    return _signed(where(steep, HALF_PI[0] - (angle - HALF_PI[1]), angle), x)


atan = Function("atan", _atan, 1, slope=lambda x, y: (1 / fma(x, x, 1),))
"""The arc tangent: ``z + z**3 * ATAN(z**2)``, z = |x|; ``pi/2`` less that of ``1 / |x|`` above."""


# -- the epilogue activations, with the bits that epilogues give ------------------------------
def _relu(x: Node) -> Node:
    return maximum(x, 0)


relu = Function(
    "relu",
    _relu,
    1,
    slope=lambda x, y: (where(x <= 0, const(0.0, x.type), 1),),
    types=("f32", "f64"),
)
"""``max(x, 0)``; a NaN stays, and -0.0 becomes +0.0."""


def _gate(name: str, x: Node) -> Node:
    """See :mod:`ptxgen.numerics.activation`; these are the operations of its epilogues."""
    c = activation
    magnitude = absolute(x)
    limit = c.LIMIT[name]
    y = where(magnitude > limit, limit, magnitude)

    # argument + low is the exponent of e, to about 46 bits.
    argument, low = -y, None
    if name == "gelu":
        square = y * y
        argument, low = -0.5 * square, -0.5 * fma(y, y, -square)
    elif name == "gelu_tanh":
        square = y * y
        linear, cubic = c.TANH_LINEAR_HIGH, c.TANH_CUBIC_HIGH
        term = cubic * square
        slope_low = fma(cubic, fma(y, y, -square), fma(cubic, square, -term))
        slope_low = fma(c.TANH_CUBIC_LOW, square, slope_low) + c.TANH_LINEAR_LOW
        slope = linear + term
        term_part = slope - linear
        linear_part = slope - term_part
        slope_low = slope_low + ((term - term_part) + (linear - linear_part))
        argument = -y * slope
        low = fma(-y, slope_low, fma(-y, slope, -argument))

    # e = 2**n * (power + power_low)
    rounded = fma(argument, LOG2_E, ROUNDER)
    n = bits(rounded) - c.ROUNDER_BITS
    quotient = rounded - ROUNDER
    tail = quotient * -LN2_LOW if low is None else fma(quotient, -LN2_LOW, low)
    r = fma(quotient, -LN2_HIGH, argument) + tail
    series = fma(_horner(r, EXP) * r, r, r)
    power = 1 + series
    power_low = series + (1 - power)
    first = from_bits(((n >> 1) + 127) << 23)
    second = from_bits((n - (n >> 1) + 127) << 23)

    # The tail is e * (numerator + numerator_low) / (denominator + denominator_low); the reciprocal
    # of the denominator is reciprocal * (1 + correction).
    shift, addend = (c.TAIL_SHIFT, y) if name == "gelu" else (1, power * first * second)
    denominator = shift + addend
    denominator_low = addend + (shift - denominator)
    reciprocal = 1 / denominator
    correction = fma(-reciprocal, denominator_low, fma(-reciprocal, denominator, 1))
    if name == "gelu":
        u = fma(y * reciprocal, correction, fma(y, reciprocal, -0.5))
        high = _horner(u, c.TAIL[1:])
        numerator = fma(high, u, c.TAIL[0])
        numerator_low = fma(high, u, c.TAIL[0] - numerator)
        weight = numerator * reciprocal
        weight_low = fma(numerator_low, reciprocal, fma(numerator, reciprocal, -weight))
        value = weight * power
        value_low = fma(value, correction, fma(weight, power_low, fma(weight, power, -value)))
        value_low = fma(weight_low, power, value_low)
    else:  # the numerator is 1
        value = reciprocal * power
        value_low = fma(reciprocal, power_low, fma(reciprocal, power, -value))
        value_low = fma(value, correction, value_low)
    product = fma(y, value, y * value_low)
    positive = where(x >= 0, x, -0.0)
    return fma(-(product * first), second, positive)


def _silu_slope(x: Node, y: Node) -> tuple[Node, ...]:
    s = sigmoid(x)
    return (s * fma(x, 1 - s, 1),)


def _gelu_slope(x: Node, y: Node) -> tuple[Node, ...]:
    density = exp(-0.5 * (x * x)) * (1 / math.sqrt(2 * math.pi))
    return (fma(x, density, fma(erf(x * math.sqrt(0.5)), 0.5, 0.5)),)


def _gelu_tanh_slope(x: Node, y: Node) -> tuple[Node, ...]:
    k = math.sqrt(2 / math.pi)
    square = x * x
    t = tanh(x * fma(square, k * 0.044715, k))
    inner = fma(square, 3 * k * 0.044715, k)
    return (fma(0.5 * x * fma(-t, t, 1), inner, fma(t, 0.5, 0.5)),)


silu = Function("silu", lambda x: _gate("silu", x), 1, slope=_silu_slope)
"""``x * sigmoid(x)``."""
gelu = Function("gelu", lambda x: _gate("gelu", x), 1, slope=_gelu_slope)
"""``x * (1 + erf(x / sqrt(2))) / 2``."""
gelu_tanh = Function("gelu_tanh", lambda x: _gate("gelu_tanh", x), 1, slope=_gelu_tanh_slope)
"""``x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))) / 2``."""

FUNCTIONS: Mapping[str, Function] = {
    f.name: f
    for f in (
        *(exp, exp2, expm1, log, log2, log1p, softplus, rsqrt, pow_, sigmoid, tanh, erf),
        *(sin, cos, tan, atan, relu, silu, gelu, gelu_tanh),
    )
}
"""All by name."""
