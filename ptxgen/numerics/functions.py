"""Functions of formulas: each a sequence of IEEE operations, with its largest error.

A function is a formula of primitives, so that kernels and oracle compute the same sequence. The
functions of f32 have their largest errors over all f32 arguments in
``docs/reference/functions.md``, in ulp of the exact result (of 2**-149 where that is subnormal);
those errors are measured, not estimated.

Special values are those of IEEE 754 and C: a NaN gives a NaN (except ``pow(1, NaN)`` and
``pow(NaN, 0)``, which are 1), odd functions keep the sign of a zero, arguments and results may be
subnormal. ``tools/fit_functions.py`` derives the polynomials, ``tools/fit_activation.py`` those
that are shared with the epilogue activations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ptxgen.numerics.constants import CONSTANTS, F32, F64, Constants
from ptxgen.numerics.formula import (
    OPERATORS,
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
from ptxgen.numerics.logsumexp import LOG

_hex = float.fromhex
_INF = float("inf")
_BOTH = ("f32", "f64")


def _of(x: Node) -> Constants:
    return CONSTANTS[x.type]


def _sign(x: Node) -> Node:
    """The bits of -0.0 where the sign of ``x`` is set, else of +0.0."""
    return bits(x) & _sign_bit(x)


def _sign_bit(x: Node) -> int:
    return -(1 << (31 if x.type == "f32" else 63))


def _function(
    slope: Callable[..., tuple[Node, ...]] | None,
    types: tuple[str, ...] = ("f32",),
    rare: bool = False,
    bounds: Callable[..., tuple[Node, Node]] | None = None,
) -> Callable[[Callable[..., Node]], Function]:
    """Makes a :class:`Function` of a formula, with its name and documentation."""

    def made(body: Callable[..., Node]) -> Function:
        arity = body.__code__.co_argcount
        return Function(body.__name__.strip("_"), body, arity, slope, types, rare, bounds)

    return made


# -- primitives by name -----------------------------------------------------------------------
def absolute(x: Node) -> Node:
    """The magnitude ``|x|``."""
    return primitive("abs", x)


def negative(x: Node) -> Node:
    """The negative ``-x``."""
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
    """``magnitude``, whose own sign is not seen, with the sign of ``x``."""
    return from_bits((bits(magnitude) & ~_sign_bit(x)) | _sign(x))


def _turned(value: Node, x: Node) -> Node:
    """``value`` with its sign turned where that of ``x`` is set."""
    return from_bits(bits(value) ^ _sign(x))


def _reciprocal(x: Node) -> Node:
    """``1 / x`` to 0.6 ulp for 2**-124 <= |x| <= 2**124, without the branch that division has.

    A difference of bit patterns gives 4 bits of the result, a Newton step 9, and a step of third
    order all of them. (In f64 it is the quotient.)
    """
    if x.type == "f64":
        return 1 / x
    guess = from_bits(RECIPROCAL_BITS - bits(x))
    guess = guess * fma(-x, guess, RECIPROCAL_TWO)
    error = fma(-x, guess, 1)
    return fma(guess, fma(error, error, error), guess)


def _divided(x: Node) -> Node:
    """``1 / x`` rounded once, x as :func:`_reciprocal` takes it: one more Newton step."""
    if x.type == "f64":
        return 1 / x
    guess = _reciprocal(x)
    return fma(guess, fma(-x, guess, 1), guess)


def _quotient(a: Node, b: Node) -> Node:
    """``a / b`` to 0.51 ulp, b as :func:`_reciprocal` takes it."""
    if b.type == "f64":
        return a / b
    inverse = _reciprocal(b)
    guess = a * inverse
    return fma(fma(-guess, b, a), inverse, guess)


RECIPROCAL_BITS = 0x7EF50000
RECIPROCAL_TWO = _hex("0x1.004p+1")
"""Replaces 2 in the first Newton step. With it the last rounding is correct for every mantissa (the
tests try them all); with 2 the largest mantissa fails."""


def _reduced(x: Node, bias: int) -> tuple[Node, Node, Node]:
    """``x = n * ln 2 + r``: r, n, and an integer whose low bits are those of ``n + bias``.

    n is rounded by adding a number so large that its last place is 1.
    """
    c = _of(x)
    rounded = fma(x, c.log2_e[0], c.rounder + bias)
    n = rounded - (c.rounder + bias)
    return fma(n, -c.ln2[1], fma(n, -c.ln2[0], x)), n, bits(rounded)


def _exp_parts(x: Node, bias: int) -> tuple[Node, Node]:
    """``exp(x) = p * 2**n``: p, and an integer whose low bits are those of ``n + bias``."""
    r, _, n = _reduced(x, bias)
    return fma(fma(_horner(r, _of(x).exp), r, 1), r, 1), n


def _scaled(p: Node, n: Node) -> Node:
    """``p * 2**n`` with one rounding, from the low bits of ``n + 2 * bias``. It multiplies by two
    factors of about ``2**(n / 2)``, since ``2**n`` may be subnormal or too large.
    """
    places = _of(p).places
    first = (n >> 1) << places
    return p * from_bits(first) * from_bits((n << places) - first)


def _low_factors(n: Node, c: Constants) -> tuple[Node, float]:
    """Two factors that make ``2**n``, n <= 0, from the low bits of ``n + bias + room``."""
    return from_bits(n << c.places), 2.0**-c.room


def _exp_low(x: Node) -> Node:
    """``exp(x)`` for x <= 0."""
    c = _of(x)
    p, n = _exp_parts(maximum(x, c.exp_range[0]), c.bias + c.room)
    first, second = _low_factors(n, c)
    return p * first * second


def _exp_normal(x: Node) -> Node:
    """``exp(x)`` for -87 <= x <= 88: no factor and no result is subnormal."""
    c = _of(x)
    p, n = _exp_parts(x, c.bias)
    return p * from_bits(n << c.places)


# -- exponentials and logarithms --------------------------------------------------------------
@_function(lambda x, y: (y,), _BOTH)
def exp(x: Node) -> Node:
    """``e ** x``: ``2**n * (1 + r + r**2 * EXP(r))``, n the integer nearest to ``x / ln 2``."""
    c = _of(x)
    return _scaled(*_exp_parts(clamp(x, *c.exp_range), 2 * c.bias))


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
    rounded = x + (F32.rounder + 2 * F32.bias)
    r = x - (rounded - (F32.rounder + 2 * F32.bias))
    return _scaled(fma(_horner(r, EXP2), r, 1), bits(rounded))


@_function(lambda x, y: (y * math.log(2),))
def exp2(x: Node) -> Node:
    """``2 ** x``: ``2**n * (1 + r * EXP2(r))``, n the integer nearest to x."""
    return _exp2_scaled(clamp(x, -151, 129))


@_function(lambda x, y: (y + 1,), _BOTH)
def expm1(x: Node) -> Node:
    """``exp(x) - 1``: ``2**n * (r + r**2 * EXP(r)) + (2**n - 1)``."""
    c = _of(x)
    r, n, low = _reduced(clamp(x, c.no_less, c.exp_range[1]), c.bias - 1)
    series = fma(_horner(r, c.exp) * r, r, r)
    half = from_bits(low << c.places)  # 2**(n - 1), since the largest 2**n is too large
    return where(n == 0, where(x == 0, x, series), fma(series, half, half - 0.5) * 2)


def _log_special(x: Node, result: Node) -> Node:
    """``result`` for positive finite x; else the inf or NaN that C's ``log`` gives."""
    special = where(x > 0, x, where(x == 0, const(-_INF, x.type), math.nan))
    return where((x > 0) & (x < _INF), result, special)


def _is_plain(x: Node) -> Node:
    """Whether x is positive, finite and normal."""
    return (x >= 2.0 ** (1 - _of(x).bias)) & (x < _INF)


def _log_parts(x: Node, lowest: int) -> tuple[Node, Node]:
    """t and n of a plain ``x = 2**n * (1 + t)``. ``lowest``: the bits of the least 1 + t."""
    places = _of(x).places
    n = (bits(x) - lowest) >> places
    return from_bits(bits(x) - (n << places)) - 1, cast(n, x.type)


def _log_rare(x: Node, lowest: int, joined: Callable[[Node, Node], Node]) -> Node:
    """The logarithm of any x. ``joined`` makes it from t and n (:func:`_log_parts`)."""
    places = _of(x).places + 1
    tiny = x < 1
    t, n = _log_parts(where(tiny, x * 2.0**places, x), lowest)
    return _log_special(x, joined(t, n - where(tiny, const(float(places), x.type), 0)))


ATANH: tuple[float, ...] = tuple(2 / (2 * i + 3) for i in range(11))
"""Ascending coefficients of ``(2 atanh(s) / s - 2) / s**2`` in ``s**2``, its Taylor series."""


def _log_joined(t: Node, n: Node) -> Node:
    """``log(1 + t) + n * log(2)``."""
    high, low = _of(t).ln2
    if t.type == "f32":
        tail = _horner(t, LOG) * t * t
        return fma(n, high, t + fma(n, low, tail))
    s = t / (2 + t)  # log(1 + t) = 2 atanh(s), and 2 s = t - s t
    square, half = s * s, 0.5 * t * t
    tail = fma(s, fma(_horner(square, ATANH), square, half), n * low)
    return fma(n, high, t - (half - tail))


@_function(lambda x, y: (1 / x,), _BOTH)
def log(x: Node) -> Node:
    """The natural logarithm: ``n * ln 2 + t + t**2 * LOG(t)``, ``x = 2**n * (1 + t)``; in f64
    ``log(1 + t)`` is ``2 atanh(t / (2 + t))``.
    """
    return where(_is_plain(x), log_normal(x), log_rare(x))


def log_normal(x: Node) -> Node:
    """The logarithm of a positive, finite and normal number."""
    return _log_joined(*_log_parts(x, _of(x).mantissas))


@_function(None, _BOTH, rare=True)
def log_rare(x: Node) -> Node:
    """The logarithm of subnormal numbers; inf and NaN for arguments that have none."""
    return _log_rare(x, _of(x).mantissas, _log_joined)


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


@_function(lambda x, y: (1 / (x * math.log(2)),))
def log2(x: Node) -> Node:
    """The logarithm to base 2: ``n + t / ln 2 + t**2 * LOG2(t)``, ``x = 2**n * (1 + t)``."""
    found = _log2_joined(*_log_parts(x, LOG2_SPLIT_BITS))
    return where(_is_plain(x), found, log2_rare(x))


def _log2_joined(t: Node, n: Node) -> Node:
    high, low = F32.log2_e
    return n + fma(t, high, fma(t, low, _horner(t, LOG2) * t * t))


@_function(None, rare=True)
def log2_rare(x: Node) -> Node:
    """Base-2 logarithm of subnormal numbers; inf and NaN for arguments that have none."""
    return _log_rare(x, LOG2_SPLIT_BITS, _log2_joined)


@_function(lambda x, y: (1 / (1 + x),), _BOTH)
def log1p(x: Node) -> Node:
    """``log(1 + x)``, as :data:`log` with ``t = x / 2**n + (1 / 2**n - 1)``."""
    c, sum = _of(x), 1 + x
    n = (bits(sum) - c.mantissas) >> c.places
    scale = from_bits((c.bias + 2 - n) << c.places) * 0.25  # 2**-n, which may be subnormal
    t = fma(x, scale, scale - 1)  # (1 + x) / 2**n - 1, without rounding 1 + x
    return where(x == 0, x, _log_special(sum, _log_joined(t, cast(n, x.type))))


LOG1P: tuple[float, ...] = (
    _hex("-0x1.fffff6p-2"),
    _hex("0x1.555370p-2"),
    _hex("-0x1.ffbeb8p-3"),
    _hex("0x1.975f96p-3"),
    _hex("-0x1.49d35ap-3"),
    _hex("0x1.fc6474p-4"),
    _hex("-0x1.512058p-4"),
    _hex("0x1.529e9cp-5"),
    _hex("-0x1.b4cf12p-7"),
    _hex("0x1.07e0fcp-9"),
)
"""Ascending coefficients of ``(log(1 + e) - e) / e**2``, 0 <= e <= 1; log to 2**-29.9."""


def _softplus_slope(x: Node, y: Node) -> tuple[Node, ...]:
    return (sigmoid(x),)


@_function(_softplus_slope, _BOTH)
def softplus(x: Node) -> Node:
    """``log(1 + exp(x))`` as ``max(x, 0) + e + e**2 * LOG1P(e)``, ``e = exp(-|x|)``."""
    e = _exp_low(-absolute(x))
    if x.type == "f64":
        return maximum(x, 0) + log1p(e)
    return maximum(x, 0) + fma(_horner(e, LOG1P) * e, e, e)


# -- powers -----------------------------------------------------------------------------------
@_function(lambda x, y: (-0.5 * (y / x),), types=_BOTH)
def rsqrt(x: Node) -> Node:
    """``1 / sqrt(x)``, two roundings."""
    return 1 / sqrt(x)


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


def _pow_slope(x: Node, y: Node, z: Node) -> tuple[Node, ...]:
    zero = const(0.0, x.type)
    by_x = where(y == 0, zero, y * pow_(x, y - 1))
    return by_x, where((x == 0) & (y >= 0), zero, z * log(x))


@_function(_pow_slope)
def pow_(x: Node, y: Node) -> Node:
    """``2 ** (y * log2(x))``, product and logarithm in f64; special values are those of C."""
    size = absolute(x)
    wide = cast(size, "f64")  # never subnormal
    n = (cast(bits(wide) >> 32, "i32") - 0x3FE80000) >> 20
    t = from_bits(bits(wide) - (cast(n, "i64") << 52)) - 1
    logarithm = fma(_horner(t, POW_LOG), t, cast(n, "f64"))
    logarithm = where(size == 0, -_INF, where(size == _INF, _INF, logarithm))
    exponent = where(size == 1, 0, logarithm * cast(y, "f64"))
    exponent = where(exponent > -160, where(exponent < 160, exponent, 160.0), -160.0)
    rounded = exponent + (F64.rounder + 2 * F32.bias)
    r = cast(exponent - (rounded - (F64.rounder + 2 * F32.bias)), "f32")
    result = _scaled(fma(_horner(r, EXP2), r, 1), cast(bits(rounded), "i32"))

    half = 0.5 * y
    whole = trunc(y) == y
    odd = whole & (trunc(half) != half)
    result = where(odd & (bits(x) < 0), -result, result)
    undefined = ((x < 0) & (size < _INF) & ~whole) | isnan(x) | isnan(y)
    return where((x == 1) | (y == 0), 1, where(undefined, math.nan, result))


POWERS: Mapping[float, Callable[[Node], Node]] = {
    -2: lambda x: 1 / (x * x),
    -1: lambda x: 1 / x,
    -0.5: lambda x: rsqrt(x),
    0.5: lambda x: sqrt(x),
    1: lambda x: x,
    2: lambda x: x * x,
    3: lambda x: x * x * x,
    4: lambda x: (x * x) * (x * x),
}
"""Exponents whose powers are short formulas of multiplications, divisions and roots."""


def power(x: Any, y: Any) -> Node:
    """``x ** y``; for the numbers -2, -1, -0.5, 0.5, 1, 2, 3 and 4 as y by these operations:
    ``1 / (x * x)``, ``1 / x``, ``rsqrt(x)``, ``sqrt(x)``, ``x``, ``x * x``, ``x * x * x``,
    ``(x * x) * (x * x)``. Else f32 alone is taken.
    """
    if isinstance(x, Node) and isinstance(y, int | float) and y in POWERS:
        return POWERS[y](x)
    return pow_(x, y)


OPERATORS["**"] = power


# -- sigmoid and its kin ----------------------------------------------------------------------
@_function(lambda x, y: (y * (1 - y),), _BOTH)
def sigmoid(x: Node) -> Node:
    """``1 / (1 + exp(-x))``, of ``e = exp(-|x|)``: ``1 / (1 + e)`` or ``e / (1 + e)``."""
    e = _exp_low(-absolute(x))
    return where(x < 0, e, 1) * _reciprocal(1 + e)


@_function(lambda x, y: (1 - y * y,), _BOTH)
def tanh(x: Node) -> Node:
    """``-e / (2 + e)`` with the sign of x, ``e = expm1(-2 |x|)``."""
    c = _of(x)
    r, _, low = _reduced(-2 * minimum(absolute(x), 20), c.bias)
    series = fma(_horner(r, c.exp) * r, r, r)
    power = from_bits(low << c.places)
    e = fma(series, power, power - 1)
    return _signed(_quotient(e, 2 + e), x)


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


ERF_TAYLOR: tuple[float, ...] = (
    _hex("0x1.06eba8214db69p-3"),
    *((-1) ** i * 2 / math.sqrt(math.pi) / math.factorial(i) / (2 * i + 1) for i in range(1, 13)),
)
"""Ascending coefficients of ``erf(x) / x - 1`` in ``x**2``, the Taylor series."""


def _erf_wide(y: Node) -> Node:
    small = fma(_horner(y * y, ERF_TAYLOR), y, y)
    c = _of(y)
    z = minimum(y, 6) * math.sqrt(2)  # erf(y) = 1 - 2 P(-z)
    u = z / (z + c.tail_shift) - 0.5
    tail = _exp_normal(-0.5 * (z * z)) * 2 / (z + c.tail_shift) * _horner(u, c.tail)
    return where(y < 0.5, small, 1 - tail)


@_function(lambda x, y: (exp(-(x * x)) * (2 / math.sqrt(math.pi)),), _BOTH)
def erf(x: Node) -> Node:
    """The error function: ``1 - exp(ERFC(|x|))`` with the sign of x; ``x + x * ERF(x**2)`` where
    |x| < 1. In f64 ``1 - 2 P(-|x| sqrt(2))``, as :data:`gelu` has it, or the Taylor series.
    """
    y = absolute(x)
    if x.type == "f64":
        return _signed(_erf_wide(y), x)
    small = fma(_horner(y * y, ERF), y, y)
    large = 1 - _exp_normal(_horner(minimum(y, 3.9375), ERFC))
    return _signed(where(y < 1, small, large), x)


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
    """64 bits of TWO_OVER_PI_WORDS, from word ``first`` on, as an i64."""
    value = TWO_OVER_PI_WORDS[first] << 32 | TWO_OVER_PI_WORDS[first + 1]
    return value - (value >> 63 << 64)


_NEAR = 65536.0
"""Bound of x below which taking off n * pi/2, as a sum of three f32 numbers, keeps all bits."""


def _near(x: Node) -> tuple[Node, Node]:
    """``x = n * pi/2 + r`` for 0 <= x < _NEAR: r in [-pi/4, pi/4], and an integer n modulo 4."""
    rounded = fma(x, TWO_OVER_PI, F32.rounder)
    n = rounded - F32.rounder
    r = fma(n, -HALF_PI[2], fma(n, -HALF_PI[1], fma(n, -HALF_PI[0], x)))
    return r, bits(rounded)


def _far(x: Node) -> tuple[Node, Node]:
    """``x = n * pi/2 + r`` for _NEAR <= x: r, and n modulo 4, by Payne and Hanek's method.

    ``x = m * 2**e``, m an integer of 24 bits. Modulo 4 ``x * 2/pi`` depends on a window of the bits
    of 2/pi, of which 96 are multiplied by m.
    """
    word = bits(x) >> 23
    shift = cast(word - (127 + 16), "i64")  # of the window: 0 to 111
    first, second = (const(_window(i), "i64") for i in (3, 5))
    for i in (2, 1, 0):
        first = where(shift < 32 * (i + 1), _window(i), first)
        second = where(shift < 32 * (i + 1), _window(i + 2), second)
    shift = shift & 31
    high = (first << shift) | (((second >> 1) & ((1 << 63) - 1)) >> (63 - shift))
    low = ((second << shift) >> 32) & 0xFFFFFFFF
    m = cast((bits(x) & 0x7FFFFF) | 0x800000, "i64")
    turn = high * m + ((low * m) >> 32)  # of 2**64
    r = cast(cast(turn << 2, "f64") * (math.pi / 2 * 2.0**-64), "f32")
    return where(x < _INF, r, math.nan), cast(((turn >> 61) + 1) >> 1, "i32")


def _sine_and_cosine(r: Node) -> tuple[Node, Node]:
    square = r * r
    sine = fma(_horner(square, SIN) * square, r, r)
    return sine, fma(fma(_horner(square, COS), square, -0.5), square, 1)


def _sine(r: Node, n: Node) -> Node:
    """The sine of ``r + n * pi/2``."""
    value = where((n & 1) == 0, *_sine_and_cosine(r))
    return from_bits(bits(value) ^ ((n & 2) << 30))


def _cosine(r: Node, n: Node) -> Node:
    return _sine(r, n + 1)


def _tangent(r: Node, n: Node) -> Node:
    sine, cosine = _sine_and_cosine(r)
    even = (n & 1) == 0
    return _quotient(where(even, sine, -cosine), where(even, cosine, sine))


@_function(None, rare=True)
def sin_far(x: Node) -> Node:
    """The sine of x from _NEAR on."""
    return _sine(*_far(x))


@_function(None, rare=True)
def cos_far(x: Node) -> Node:
    """The cosine of x from _NEAR on."""
    return _cosine(*_far(x))


@_function(None, rare=True)
def tan_far(x: Node) -> Node:
    """The tangent of x from _NEAR on."""
    return _tangent(*_far(x))


def _sin_slope(x: Node, y: Node) -> tuple[Node, ...]:
    return (cos(x),)


@_function(_sin_slope)
def sin(x: Node) -> Node:
    """The sine of an angle in radians: of r, what is left of |x| beside multiples of pi/2,
    ``r + r**3 * SIN(r**2)`` or ``1 - r**2 / 2 + r**4 * COS(r**2)``.
    """
    y = absolute(x)
    return _turned(where(y < _NEAR, _sine(*_near(y)), sin_far(y)), x)


@_function(lambda x, y: (-sin(x),))
def cos(x: Node) -> Node:
    """The cosine of an angle in radians, as :data:`sin`."""
    y = absolute(x)
    return where(y < _NEAR, _cosine(*_near(y)), cos_far(y))


@_function(lambda x, y: (fma(y, y, 1),))
def tan(x: Node) -> Node:
    """The tangent of an angle in radians, the quotient of the polynomials of :data:`sin`."""
    y = absolute(x)
    return _turned(where(y < _NEAR, _tangent(*_near(y)), tan_far(y)), x)


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


@_function(lambda x, y: (1 / fma(x, x, 1),))
def atan(x: Node) -> Node:
    """The arc tangent: with the sign of x ``z + z**3 * ATAN(z**2)`` of ``z = |x|``; above 1
    ``pi/2`` less that of ``1 / |x|``.
    """
    y = absolute(x)
    steep = y > 1
    z = where(steep, _reciprocal(minimum(y, 2.0**100)), y)
    square = z * z
    angle = fma(_horner(square, ATAN) * square, z, z)
    return _signed(where(steep, HALF_PI[0] - (angle - HALF_PI[1]), angle), x)


# -- the epilogue activations, with the bits that epilogues give ------------------------------
@_function(lambda x, y: (where(x <= 0, const(0.0, x.type), 1),), types=_BOTH)
def relu(x: Node) -> Node:
    """``max(x, 0)``; a NaN stays, and -0.0 becomes +0.0."""
    return maximum(x, 0)


def _gate(name: str, x: Node) -> Node:
    """An epilogue's activation, to the bit, in fewer steps (:mod:`ptxgen.numerics.activation`)."""
    c = _of(x)
    y = minimum(absolute(x), c.limit[name])

    # argument + low is the exponent of e, to about 46 bits.
    argument, low = -y, None
    if name == "gelu":
        square = y * y
        argument, low = -0.5 * square, -0.5 * fma(y, y, -square)
    elif name == "gelu_tanh":
        square = y * y
        linear, cubic = c.linear[0], c.cubic[0]
        term = cubic * square
        slope_low = fma(cubic, fma(y, y, -square), fma(cubic, square, -term))
        slope_low = fma(c.cubic[1], square, slope_low) + c.linear[1]
        slope = linear + term
        term_part = slope - linear
        linear_part = slope - term_part
        slope_low = slope_low + ((term - term_part) + (linear - linear_part))
        argument = -y * slope
        low = fma(-y, slope_low, fma(-y, slope, -argument))

    # e = back * (power + power_low); back is a power of 2, whose product is exact until the result.
    bias = c.rounder + c.bias + c.room
    rounded = fma(argument, c.log2_e[0], bias)
    n = rounded - bias
    tail = n * -c.ln2[1] if low is None else fma(n, -c.ln2[1], low)
    r = fma(n, -c.ln2[0], argument) + tail
    series = fma(_horner(r, c.exp) * r, r, r)
    scale, back = _low_factors(bits(rounded), c)
    power = fma(series, scale, scale)
    power_low = fma(series, scale, scale - power)

    # The tail is e * (numerator + numerator_low) / (denominator + denominator_low); the reciprocal
    # of the denominator is reciprocal * (1 + correction).
    if name == "gelu":
        denominator = c.tail_shift + y
        denominator_low = y + (c.tail_shift - denominator)
    else:
        denominator = fma(power, back, 1)
        denominator_low = fma(power, back, 1 - denominator)
    reciprocal = _divided(denominator)
    correction = fma(-reciprocal, denominator_low, fma(-reciprocal, denominator, 1))
    if name == "gelu":
        u = fma(y * reciprocal, correction, fma(y, reciprocal, -0.5))
        high = _horner(u, c.tail[1:])
        numerator = fma(high, u, c.tail[0])
        numerator_low = fma(high, u, c.tail[0] - numerator)
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
    return maximum(x, -0.0) - product * back


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


EXP2_SHORT: tuple[float, ...] = (
    _hex("0x1.62e426p-1"),
    _hex("0x1.ebf9b6p-3"),
    _hex("0x1.c6b9e8p-5"),
    _hex("0x1.3cec1ap-7"),
    _hex("0x1.5ac9b2p-10"),
)
"""Ascending coefficients of ``(2**r - 1) / r``, |r| <= 0.5, fewer than EXP2; 2**r to 2**-23.2."""
DOUBT, LEAST = 2.0**-20, 2.0**-36
"""Distance of a gate's bounds from their middle: ``DOUBT`` times the probability, plus ``LEAST``.
With them the bounds hold for every f32: the tests try them all."""


def _gate_bounds(
    x: Node,
    least: float,
    most: float,
    slope: Callable[[Node], Node | float],
    besides: float = LEAST,
) -> tuple[Node, Node]:
    """Bounds of ``x / (1 + 2**(x * slope(x)))``, the lower one and the upper one.

    Where the power is above ``1 / besides`` the bounds have different signs, so its value does not
    matter below ``least``, where it is ``8 / besides``. Above ``most`` it is too small to matter.
    """
    y = clamp(x, least, most)
    by = slope(y)
    rounded = fma(y, by, F32.rounder + F32.bias)
    r = fma(y, by, -(rounded - (F32.rounder + F32.bias)))
    power = from_bits(bits(rounded) << F32.places)
    probability = _reciprocal(fma(fma(_horner(r, EXP2_SHORT), r, 1), power, 1))
    return x * fma(probability, 1 - DOUBT, -besides), x * fma(probability, 1 + DOUBT, besides)


def _silu_bounds(x: Node) -> tuple[Node, Node]:
    return _gate_bounds(x, -27.5, 80, lambda _: -math.log2(math.e))


GELU_ODDS: tuple[float, ...] = (
    _hex("-0x1.26aedap+1"),
    _hex("-0x1.ad621ap-4"),
    _hex("0x1.7c989ap-14"),
    _hex("0x1.4eddc4p-13"),
    _hex("-0x1.7240bcp-17"),
    _hex("0x1.18d8c2p-22"),
    _hex("0x1.45405ap-27"),
    _hex("-0x1.d081f2p-31"),
    _hex("0x1.90532cp-36"),
    _hex("-0x1.f2e020p-43"),
)
"""Ascending coefficients of ``log2(P(-x) / P(x)) / x`` in ``x**2``, P the normal probability,
|x| < 6.25: P(x) to 2**-21.3 of itself and 2**-29.3."""


def _gelu_bounds(x: Node) -> tuple[Node, Node]:
    return _gate_bounds(x, -6.25, 6.25, lambda y: _horner(y * y, GELU_ODDS), 2.0**-28)


def _gelu_tanh_bounds(x: Node) -> tuple[Node, Node]:
    k = -2 * math.sqrt(2 / math.pi) * math.log2(math.e)
    return _gate_bounds(x, -6.25, 8, lambda y: fma(y * y, k * 0.044715, k))


@_function(_silu_slope, _BOTH, bounds=_silu_bounds)
def silu(x: Node) -> Node:
    """``x * sigmoid(x)``."""
    return _gate("silu", x)


@_function(_gelu_slope, _BOTH, bounds=_gelu_bounds)
def gelu(x: Node) -> Node:
    """``x * (1 + erf(x / sqrt(2))) / 2``."""
    return _gate("gelu", x)


@_function(_gelu_tanh_slope, _BOTH, bounds=_gelu_tanh_bounds)
def gelu_tanh(x: Node) -> Node:
    """``x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))) / 2``."""
    return _gate("gelu_tanh", x)


FUNCTIONS: Mapping[str, Function] = {
    f.name: f
    for f in (
        *(exp, exp2, expm1, log, log2, log1p, softplus, rsqrt, pow_, sigmoid, tanh, erf),
        *(sin, cos, tan, atan, relu, silu, gelu, gelu_tanh),
    )
}
"""The functions of formulas by name."""
