"""Functions of formulas (exp, log, sin, gelu, ...): each a fixed sequence of IEEE operations.

A function is a formula of primitives, so that kernels and oracle compute the same sequence.
``docs/reference/functions.md`` lists the largest errors of the f32 functions over all f32
arguments, in ulp of the exact result (in units of 2**-149 where that is subnormal). They are
measured, not estimated.

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


def _constants(x: Node) -> Constants:
    return CONSTANTS[x.type]


def _sign(x: Node) -> Node:
    """Returns the sign bit of ``x`` as an integer: the bits of -0.0 or of +0.0."""
    return bits(x) & _sign_bit(x)


def _sign_bit(x: Node) -> int:
    return -(1 << (31 if x.type == "f32" else 63))


def _function(
    slope: Callable[..., tuple[Node, ...]] | None,
    types: tuple[str, ...] = ("f32",),
    rare: bool = False,
    bounds: Callable[..., tuple[Node, Node]] | None = None,
) -> Callable[[Callable[..., Node]], Function]:
    """Returns a decorator that turns a Python function, which builds a formula from nodes, into a
    :class:`Function` of its name. The arguments are fields of that class.
    """

    def decorate(body: Callable[..., Node]) -> Function:
        arity = body.__code__.co_argcount
        return Function(body.__name__.strip("_"), body, arity, slope, types, rare, bounds)

    return decorate


# -- primitives by name -----------------------------------------------------------------------
def absolute(x: Node) -> Node:
    """The magnitude ``|x|``."""
    return primitive("abs", x)


def negative(x: Node) -> Node:
    """The negated value ``-x``."""
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
    """Rounds ``x`` to an integer towards zero."""
    return primitive("trunc", x)


def nearest(x: Node) -> Node:
    """Rounds ``x`` to the nearest integer, ties to even."""
    return primitive("round", x)


def maximum(a: Any, b: Any) -> Node:
    """The larger of ``a`` and ``b``; NaN if either is, and +0.0 above -0.0."""
    return primitive("max", a, b)


def minimum(a: Any, b: Any) -> Node:
    """The smaller of ``a`` and ``b``; NaN if either is, and -0.0 below +0.0."""
    return primitive("min", a, b)


def clamp(x: Node, low: Any, high: Any) -> Node:
    """Clamps ``x`` to ``[low, high]``: ``min(max(x, low), high)``."""
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
    """The sign of ``x``: 1, -1, or ``x`` itself where it is a zero or a NaN."""
    return where(x > 0, 1, where(x < 0, -1, x))


# -- pieces -----------------------------------------------------------------------------------
def _horner(x: Node, coefficients: Sequence[float]) -> Node:
    """Evaluates a polynomial in ``x`` by Horner's rule with fma; coefficients ascend."""
    result: Node = fma(x, coefficients[-1], coefficients[-2])
    for coefficient in reversed(coefficients[:-2]):
        result = fma(result, x, coefficient)
    return result


def _copysign(magnitude: Node, x: Node) -> Node:
    """Returns ``|magnitude|`` with the sign of ``x``."""
    return from_bits((bits(magnitude) & ~_sign_bit(x)) | _sign(x))


def _xor_sign(value: Node, x: Node) -> Node:
    """Negates ``value`` where the sign bit of ``x`` is set."""
    return from_bits(bits(value) ^ _sign(x))


def _reciprocal(x: Node) -> Node:
    """Approximates ``1 / x`` to 0.6 ulp for 2**-124 <= |x| <= 2**124, without division's branch.

    A difference of bit patterns gives 4 correct bits, a Newton step 9, and a third-order step all.
    In f64 it is the exact division.
    """
    if x.type == "f64":
        return 1 / x
    guess = from_bits(RECIPROCAL_BITS - bits(x))
    guess = guess * fma(-x, guess, RECIPROCAL_TWO)
    error = fma(-x, guess, 1)
    return fma(guess, fma(error, error, error), guess)


def _rounded_reciprocal(x: Node) -> Node:
    """``1 / x``, correctly rounded for 2**-124 <= |x| <= 2**124: :func:`_reciprocal` and one more
    Newton step.
    """
    if x.type == "f64":
        return 1 / x
    guess = _reciprocal(x)
    return fma(guess, fma(-x, guess, 1), guess)


def _quotient(a: Node, b: Node) -> Node:
    """Approximates ``a / b`` to 0.51 ulp for 2**-124 <= |b| <= 2**124; in f64 divides exactly."""
    if b.type == "f64":
        return a / b
    inverse = _reciprocal(b)
    guess = a * inverse
    return fma(fma(-guess, b, a), inverse, guess)


RECIPROCAL_BITS = 0x7EF50000
RECIPROCAL_TWO = _hex("0x1.004p+1")
"""Constant in place of 2 in the first Newton step of :func:`_reciprocal`. With it ``1 / x`` rounds
correctly for every mantissa (tested); with 2 the largest mantissa fails."""


def _reduce_by_ln2(x: Node, bias: int) -> tuple[Node, Node, Node]:
    """Reduces ``x = n * ln 2 + r``, n the nearest integer; returns r, n, and an integer whose low
    bits are ``n + bias``.

    A rounding addition finds n: it adds a constant so large that its unit in the last place is 1.
    """
    c = _constants(x)
    rounded = fma(x, c.log2_e[0], c.rounder + bias)
    n = rounded - (c.rounder + bias)
    return fma(n, -c.ln2[1], fma(n, -c.ln2[0], x)), n, bits(rounded)


def _exp_parts(x: Node, bias: int) -> tuple[Node, Node]:
    """Splits ``exp(x) = p * 2**n``, n the integer nearest to ``x / ln 2``; returns p, and an
    integer whose low bits are ``n + bias``.
    """
    r, _, n = _reduce_by_ln2(x, bias)
    return fma(fma(_horner(r, _constants(x).exp), r, 1), r, 1), n


def _scaled(p: Node, n: Node) -> Node:
    """Returns ``p * 2**k`` with one rounding, also where ``2**k`` is not a normal number:
    multiplies by two powers of two near ``2**(k / 2)``.

    ``n``: an integer node whose low bits are ``k + 2 * bias``, with the bias of the type's exponent
    field.
    """
    places = _constants(p).mantissa_bits
    first = (n >> 1) << places
    return p * from_bits(first) * from_bits((n << places) - first)


def _low_factors(n: Node, c: Constants) -> tuple[Node, float]:
    """Returns two normal numbers whose product is ``2**k``, a node and a constant; k <= 0, and the
    product may be subnormal.

    ``n``: an integer node whose low bits are ``k + bias + exponent_shift``; ``c``: the type's
    constants.
    """
    return from_bits(n << c.mantissa_bits), 2.0**-c.exponent_shift


def _exp_low(x: Node) -> Node:
    """``exp(x)`` for x <= 0."""
    c = _constants(x)
    p, n = _exp_parts(maximum(x, c.exp_range[0]), c.bias + c.exponent_shift)
    first, second = _low_factors(n, c)
    return p * first * second


def _exp_normal(x: Node) -> Node:
    """``exp(x)`` for -87 <= x <= 88 (f32), where neither ``2**n`` nor the result is subnormal."""
    c = _constants(x)
    p, n = _exp_parts(x, c.bias)
    return p * from_bits(n << c.mantissa_bits)


# -- exponentials and logarithms --------------------------------------------------------------
@_function(lambda x, y: (y,), _BOTH)
def exp(x: Node) -> Node:
    """``e ** x``: ``2**n * (1 + r + r**2 * EXP(r))``, n the integer nearest to ``x / ln 2``."""
    c = _constants(x)
    return _scaled(*_exp_parts(clamp(x, *c.exp_range), 2 * c.bias))


EXP2: tuple[float, ...] = (
    _hex("0x1.62e430p-1"),
    _hex("0x1.ebfbd8p-3"),
    _hex("0x1.c6af78p-5"),
    _hex("0x1.3b30b0p-7"),
    _hex("0x1.5f0a66p-10"),
    _hex("0x1.3f906cp-13"),
)
"""Ascending coefficients of ``(2**r - 1) / r``, |r| <= 0.5. ``2**r`` has a relative error of
2**-28.1."""


def _exp2_scaled(x: Node) -> Node:
    """``2**x`` for -151 <= x <= 129, f32."""
    rounded = x + (F32.rounder + 2 * F32.bias)
    r = x - (rounded - (F32.rounder + 2 * F32.bias))
    return _scaled(fma(_horner(r, EXP2), r, 1), bits(rounded))


@_function(lambda x, y: (y * math.log(2),))
def exp2(x: Node) -> Node:
    """``2 ** x``: ``2**n * (1 + r * EXP2(r))``, n the integer nearest to x."""
    return _exp2_scaled(clamp(x, -151, 129))


@_function(lambda x, y: (y + 1,), _BOTH)
def expm1(x: Node) -> Node:
    """``exp(x) - 1``: ``2**n * (r + r**2 * EXP(r)) + (2**n - 1)``, ``x = n * ln 2 + r``."""
    c = _constants(x)
    r, n, low = _reduce_by_ln2(clamp(x, c.expm1_least, c.exp_range[1]), c.bias - 1)
    series = fma(_horner(r, c.exp) * r, r, r)
    half = from_bits(low << c.mantissa_bits)  # 2**(n - 1), since the largest 2**n is too large
    return where(n == 0, where(x == 0, x, series), fma(series, half, half - 0.5) * 2)


def _log_special(x: Node, result: Node) -> Node:
    """Returns ``result`` for positive finite ``x``, else the inf or NaN of C's ``log(x)``."""
    special = where(x > 0, x, where(x == 0, const(-_INF, x.type), math.nan))
    return where((x > 0) & (x < _INF), result, special)


def _is_plain(x: Node) -> Node:
    """Whether x is positive, finite and normal."""
    return (x >= 2.0 ** (1 - _constants(x).bias)) & (x < _INF)


def _log_parts(x: Node, lowest: int) -> tuple[Node, Node]:
    """Splits a positive normal ``x = 2**n * (1 + t)``; returns t and n, both of x's type.

    ``lowest``: bit pattern, as an integer, of the least value of ``1 + t``; the largest is below
    twice that.
    """
    places = _constants(x).mantissa_bits
    n = (bits(x) - lowest) >> places
    return from_bits(bits(x) - (n << places)) - 1, cast(n, x.type)


def _log_rare(x: Node, lowest: int, combine: Callable[[Node, Node], Node]) -> Node:
    """Returns the logarithm of any ``x``, also if subnormal, zero, negative, infinite or NaN.

    ``combine``: builds the logarithm of a normal number from t and n of :func:`_log_parts`;
    ``lowest``: as there.
    """
    places = _constants(x).mantissa_bits + 1
    tiny = x < 1
    t, n = _log_parts(where(tiny, x * 2.0**places, x), lowest)
    return _log_special(x, combine(t, n - where(tiny, const(float(places), x.type), 0)))


ATANH: tuple[float, ...] = tuple(2 / (2 * i + 3) for i in range(11))
"""Ascending coefficients of ``(2 atanh(s) / s - 2) / s**2`` in ``s**2``: the Taylor series."""


def _log_from_parts(t: Node, n: Node) -> Node:
    """Logarithm of ``2**n * (1 + t)``: ``log(1 + t) + n * log(2)``."""
    high, low = _constants(t).ln2
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
    """The natural logarithm of a positive, finite and normal ``x``."""
    return _log_from_parts(*_log_parts(x, _constants(x).log_split_bits))


@_function(None, _BOTH, rare=True)
def log_rare(x: Node) -> Node:
    """The natural logarithm of ``x``, also if subnormal, zero, negative, infinite or NaN."""
    return _log_rare(x, _constants(x).log_split_bits, _log_from_parts)


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
``sqrt(2)``. log2 has a relative error of 2**-27.6."""
LOG2_SPLIT_BITS = 0x3F3504F3
"""Bits of ``sqrt(1/2)`` in float32. log2 splits x into ``2**n * (1 + t)`` with ``1 + t`` in
[sqrt(1/2), sqrt(2)): near x = 1 n is 0, so ``n + log2(1 + t)`` does not cancel."""


@_function(lambda x, y: (1 / (x * math.log(2)),))
def log2(x: Node) -> Node:
    """The logarithm to base 2: ``n + t / ln 2 + t**2 * LOG2(t)``, ``x = 2**n * (1 + t)``."""
    found = _log2_from_parts(*_log_parts(x, LOG2_SPLIT_BITS))
    return where(_is_plain(x), found, log2_rare(x))


def _log2_from_parts(t: Node, n: Node) -> Node:
    high, low = F32.log2_e
    return n + fma(t, high, fma(t, low, _horner(t, LOG2) * t * t))


@_function(None, rare=True)
def log2_rare(x: Node) -> Node:
    """The base-2 logarithm of ``x``, also if subnormal, zero, negative, infinite or NaN."""
    return _log_rare(x, LOG2_SPLIT_BITS, _log2_from_parts)


@_function(lambda x, y: (1 / (1 + x),), _BOTH)
def log1p(x: Node) -> Node:
    """``log(1 + x)`` as ``log(1 + t) + n * ln 2``, where ``1 + x = 2**n * (1 + t)``; t is computed
    as ``x / 2**n + (1 / 2**n - 1)``, without rounding 1 + x.
    """
    c, sum = _constants(x), 1 + x
    n = (bits(sum) - c.log_split_bits) >> c.mantissa_bits
    scale = from_bits((c.bias + 2 - n) << c.mantissa_bits) * 0.25  # 2**-n, which may be subnormal
    t = fma(x, scale, scale - 1)  # (1 + x) / 2**n - 1, without rounding 1 + x
    return where(x == 0, x, _log_special(sum, _log_from_parts(t, cast(n, x.type))))


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
"""Ascending coefficients of ``(log(1 + e) - e) / e**2``, 0 <= e <= 1. ``log(1 + e)`` has a relative
error of 2**-29.9."""


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
    """The reciprocal square root ``1 / sqrt(x)``, with two roundings."""
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
"""Ascending coefficients of ``log2(1 + t) / t``, -0.25 <= t < 0.5, in f64; relative error
2**-38.2."""


def _pow_slope(x: Node, y: Node, z: Node) -> tuple[Node, ...]:
    zero = const(0.0, x.type)
    by_x = where(y == 0, zero, y * pow_(x, y - 1))
    return by_x, where((x == 0) & (y >= 0), zero, z * log(x))


@_function(_pow_slope)
def pow_(x: Node, y: Node) -> Node:
    """``x ** y`` as ``2 ** (y * log2(x))``, log2 and product in f64; special values as in C."""
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
"""Short formulas of ``x ** y`` for constant exponents y: products, quotients and roots."""


def power(x: Any, y: Any) -> Node:
    """``x ** y``. A Python number y of -2, -1, -0.5, 0.5, 1, 2, 3 or 4 gives ``1 / (x * x)``,
    ``1 / x``, ``rsqrt(x)``, ``sqrt(x)``, ``x``, ``x * x``, ``x * x * x``, ``(x * x) * (x * x)``;
    any other y gives :data:`pow_`, which takes f32 only.
    """
    if isinstance(x, Node) and isinstance(y, int | float) and y in POWERS:
        return POWERS[y](x)
    return pow_(x, y)


OPERATORS["**"] = power


# -- sigmoid and its kin ----------------------------------------------------------------------
@_function(lambda x, y: (y * (1 - y),), _BOTH)
def sigmoid(x: Node) -> Node:
    """``1 / (1 + exp(-x))``: with ``e = exp(-|x|)``, ``1 / (1 + e)`` or (x < 0) ``e / (1 + e)``."""
    e = _exp_low(-absolute(x))
    return where(x < 0, e, 1) * _reciprocal(1 + e)


@_function(lambda x, y: (1 - y * y,), _BOTH)
def tanh(x: Node) -> Node:
    """The hyperbolic tangent: ``-e / (2 + e)`` with the sign of x, ``e = expm1(-2 |x|)``."""
    c = _constants(x)
    r, _, low = _reduce_by_ln2(-2 * minimum(absolute(x), 20), c.bias)
    series = fma(_horner(r, c.exp) * r, r, r)
    power = from_bits(low << c.mantissa_bits)
    e = fma(series, power, power - 1)
    return _copysign(_quotient(e, 2 + e), x)


ERF: tuple[float, ...] = (
    _hex("0x1.06eba8p-3"),
    _hex("-0x1.812740p-2"),
    _hex("0x1.ce2d4ep-4"),
    _hex("-0x1.b7fe50p-6"),
    _hex("0x1.542b6ap-8"),
    _hex("-0x1.a4f424p-11"),
    _hex("0x1.4bee6cp-14"),
)
"""Ascending coefficients of ``erf(x) / x - 1`` in ``x**2``, |x| < 1. erf has a relative error of
2**-29.4."""
ERFC: tuple[float, ...] = (
    _hex("-0x1.67c3d4p-12"),
    _hex("-0x1.208896p+0"),
    _hex("-0x1.46bbb2p-1"),
    _hex("-0x1.a6505cp-4"),
    _hex("0x1.65cb1ap-6"),
    _hex("-0x1.826580p-9"),
    _hex("0x1.87026cp-13"),
)
"""Ascending coefficients of ``log(erfc(x))``, 1 <= x < 3.95. erf has an absolute error of
2**-29.8."""


ERF_TAYLOR: tuple[float, ...] = (
    _hex("0x1.06eba8214db69p-3"),
    *((-1) ** i * 2 / math.sqrt(math.pi) / math.factorial(i) / (2 * i + 1) for i in range(1, 13)),
)
"""Ascending coefficients of ``erf(x) / x - 1`` in ``x**2``, f64: the Taylor series."""


def _erf_wide(y: Node) -> Node:
    small = fma(_horner(y * y, ERF_TAYLOR), y, y)
    c = _constants(y)
    z = minimum(y, 6) * math.sqrt(2)  # erf(y) = 1 - 2 P(-z)
    u = z / (z + c.tail_shift) - 0.5
    tail = _exp_normal(-0.5 * (z * z)) * 2 / (z + c.tail_shift) * _horner(u, c.tail)
    return where(y < 0.5, small, 1 - tail)


@_function(lambda x, y: (exp(-(x * x)) * (2 / math.sqrt(math.pi)),), _BOTH)
def erf(x: Node) -> Node:
    """The error function: ``1 - exp(ERFC(|x|))`` with the sign of x; ``x + x * ERF(x**2)`` where
    |x| < 1. In f64 ``1 - 2 P(-|x| sqrt(2))``, P the normal distribution function, or the Taylor
    series where |x| < 0.5.
    """
    y = absolute(x)
    if x.type == "f64":
        return _copysign(_erf_wide(y), x)
    small = fma(_horner(y * y, ERF), y, y)
    large = 1 - _exp_normal(_horner(minimum(y, 3.9375), ERFC))
    return _copysign(where(y < 1, small, large), x)


# -- trigonometry -----------------------------------------------------------------------------
SIN: tuple[float, ...] = (
    _hex("-0x1.555546p-3"),
    _hex("0x1.11077cp-7"),
    _hex("-0x1.9955cep-13"),
)
"""Ascending coefficients of ``(sin(r) / r - 1) / r**2`` in ``r**2``, |r| <= pi/4. The sine has a
relative error of 2**-27.9."""
COS: tuple[float, ...] = (
    _hex("0x1.55554ap-5"),
    _hex("-0x1.6c0c2cp-10"),
    _hex("0x1.99e9f0p-16"),
)
"""Ascending coefficients of ``(cos(r) - 1 + r**2 / 2) / r**4`` in ``r**2``, |r| <= pi/4. The cosine
has a relative error of 2**-33.0."""
TWO_OVER_PI = _hex("0x1.45f306p-1")
HALF_PI = (_hex("0x1.921fb6p+0"), _hex("-0x1.777a5cp-25"), _hex("-0x1.ee59dap-50"))
"""High, middle and low part of pi/2, which is their sum."""
TWO_OVER_PI_WORDS = (
    0x00517CC1,
    0xB727220A,
    0x94FE13AB,
    0xE8FA9A6E,
    0xE06DB14A,
    0xCC9E21C8,
    0x20FF28B1,
)
"""The first 224 bits of the fraction ``2/pi / 512``, in 32-bit words, most significant first."""


def _two_over_pi_bits(first: int) -> int:
    """Returns words ``first`` and ``first + 1`` of TWO_OVER_PI_WORDS as a signed 64-bit integer."""
    value = TWO_OVER_PI_WORDS[first] << 32 | TWO_OVER_PI_WORDS[first + 1]
    return value - (value >> 63 << 64)


_SMALL_ANGLE = 65536.0
"""Bound of angles x, in radians, up to which :data:`HALF_PI`, pi/2 as the sum of three f32, is
exact enough for ``x - n * pi/2``; :func:`_reduce_large_angle` takes larger ones."""


def _reduce_small_angle(x: Node) -> tuple[Node, Node]:
    """Reduces ``x = n * pi/2 + r``, 0 <= x < _SMALL_ANGLE; returns r in [-pi/4, pi/4] and an
    integer whose low two bits are those of n.
    """
    rounded = fma(x, TWO_OVER_PI, F32.rounder)
    n = rounded - F32.rounder
    r = fma(n, -HALF_PI[2], fma(n, -HALF_PI[1], fma(n, -HALF_PI[0], x)))
    return r, bits(rounded)


def _reduce_large_angle(x: Node) -> tuple[Node, Node]:
    """Reduces ``x = n * pi/2 + r``, x >= _SMALL_ANGLE, by Payne and Hanek's method; returns r and
    an integer whose low two bits are those of n.

    ``x = m * 2**e``, where m is an integer of 24 bits. Modulo 4, ``x * 2/pi`` depends on a window
    of the bits of 2/pi only; m is multiplied by 96 bits.
    """
    word = bits(x) >> 23
    shift = cast(word - (127 + 16), "i64")  # of the window: 0 to 111
    first, second = (const(_two_over_pi_bits(i), "i64") for i in (3, 5))
    for i in (2, 1, 0):
        first = where(shift < 32 * (i + 1), _two_over_pi_bits(i), first)
        second = where(shift < 32 * (i + 1), _two_over_pi_bits(i + 2), second)
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
    """The sine of ``r + n * pi/2``, for |r| <= pi/4 and an integer n."""
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
    """The sine of ``x`` for x >= _SMALL_ANGLE (65536)."""
    return _sine(*_reduce_large_angle(x))


@_function(None, rare=True)
def cos_far(x: Node) -> Node:
    """The cosine of ``x`` for x >= _SMALL_ANGLE (65536)."""
    return _cosine(*_reduce_large_angle(x))


@_function(None, rare=True)
def tan_far(x: Node) -> Node:
    """The tangent of ``x`` for x >= _SMALL_ANGLE (65536)."""
    return _tangent(*_reduce_large_angle(x))


def _sin_slope(x: Node, y: Node) -> tuple[Node, ...]:
    return (cos(x),)


@_function(_sin_slope)
def sin(x: Node) -> Node:
    """The sine of an angle in radians: with ``|x| = n * pi/2 + r``, by the parity of n either
    ``r + r**3 * SIN(r**2)`` or ``1 - r**2 / 2 + r**4 * COS(r**2)``, and a sign.
    """
    y = absolute(x)
    return _xor_sign(where(y < _SMALL_ANGLE, _sine(*_reduce_small_angle(y)), sin_far(y)), x)


@_function(lambda x, y: (-sin(x),))
def cos(x: Node) -> Node:
    """The cosine of an angle in radians, by the reduction and polynomials of :data:`sin`."""
    y = absolute(x)
    return where(y < _SMALL_ANGLE, _cosine(*_reduce_small_angle(y)), cos_far(y))


@_function(lambda x, y: (fma(y, y, 1),))
def tan(x: Node) -> Node:
    """The tangent of an angle in radians, the quotient of the polynomials of :data:`sin`."""
    y = absolute(x)
    return _xor_sign(where(y < _SMALL_ANGLE, _tangent(*_reduce_small_angle(y)), tan_far(y)), x)


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
"""Ascending coefficients of ``(atan(x) / x - 1) / x**2`` in ``x**2``, 0 <= x <= 1. atan has a
relative error of 2**-28.4."""


@_function(lambda x, y: (1 / fma(x, x, 1),))
def atan(x: Node) -> Node:
    """The arc tangent: for z = |x| <= 1 ``z + z**3 * ATAN(z**2)``; above 1 ``pi/2`` minus this for
    ``z = 1 / |x|``; with the sign of x.
    """
    y = absolute(x)
    steep = y > 1
    z = where(steep, _reciprocal(minimum(y, 2.0**100)), y)
    square = z * z
    angle = fma(_horner(square, ATAN) * square, z, z)
    return _copysign(where(steep, HALF_PI[0] - (angle - HALF_PI[1]), angle), x)


# -- the epilogue activations, with the bits that epilogues give ------------------------------
@_function(lambda x, y: (where(x <= 0, const(0.0, x.type), 1),), types=_BOTH)
def relu(x: Node) -> Node:
    """``max(x, 0)``: a NaN gives a NaN, and -0.0 gives +0.0."""
    return maximum(x, 0)


def _activation(name: str, x: Node) -> Node:
    """Returns the activation ``name`` ("gelu", "gelu_tanh" or "silu") of ``x``, with the bits of
    the GEMM epilogues (:mod:`ptxgen.numerics.activation`) in fewer operations.
    """
    c = _constants(x)
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
    bias = c.rounder + c.bias + c.exponent_shift
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
    reciprocal = _rounded_reciprocal(denominator)
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
"""Ascending coefficients of ``(2**r - 1) / r``, |r| <= 0.5, one fewer than EXP2. ``2**r`` has a
relative error of 2**-23.2."""
RELATIVE_MARGIN, ABSOLUTE_MARGIN = 2.0**-20, 2.0**-36
"""Margins of the bounds ``x * (p - d)`` and ``x * (p + d)`` of an activation ``x * P(x)``: p is an
approximation of P(x), ``d = RELATIVE_MARGIN * p + ABSOLUTE_MARGIN``. Tested for every f32."""


def _activation_bounds(
    x: Node,
    least: float,
    most: float,
    slope: Callable[[Node], Node | float],
    absolute_margin: float = ABSOLUTE_MARGIN,
) -> tuple[Node, Node]:
    """Returns two bounds, in either order, of the activation ``x * p``, where
    ``p = 1 / (1 + 2**(x * slope(x)))``.

    ``slope``: builds the factor of the exponent from x. The bounds are ``x * (p - d)`` and
    ``x * (p + d)``, ``d = RELATIVE_MARGIN * p + absolute_margin``. The power of two is evaluated at
    x clamped to [``least``, ``most``]. Where it exceeds ``1 / absolute_margin``, p is less than the
    margin, and the bounds differ in sign whatever the power is; at ``least`` the power is 8 times
    that. Above ``most`` it is negligible.
    """
    y = clamp(x, least, most)
    by = slope(y)
    rounded = fma(y, by, F32.rounder + F32.bias)
    r = fma(y, by, -(rounded - (F32.rounder + F32.bias)))
    power = from_bits(bits(rounded) << F32.mantissa_bits)
    probability = _reciprocal(fma(fma(_horner(r, EXP2_SHORT), r, 1), power, 1))
    return x * fma(probability, 1 - RELATIVE_MARGIN, -absolute_margin), x * fma(
        probability, 1 + RELATIVE_MARGIN, absolute_margin
    )


def _silu_bounds(x: Node) -> tuple[Node, Node]:
    return _activation_bounds(x, -27.5, 80, lambda _: -math.log2(math.e))


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
"""Ascending coefficients of ``log2(P(-x) / P(x)) / x`` in ``x**2``, |x| < 6.25, where P is the
normal distribution function. P(x) has an error below ``2**-21.3 P(x) + 2**-29.3``."""


def _gelu_bounds(x: Node) -> tuple[Node, Node]:
    return _activation_bounds(x, -6.25, 6.25, lambda y: _horner(y * y, GELU_ODDS), 2.0**-28)


def _gelu_tanh_bounds(x: Node) -> tuple[Node, Node]:
    k = -2 * math.sqrt(2 / math.pi) * math.log2(math.e)
    return _activation_bounds(x, -6.25, 8, lambda y: fma(y * y, k * 0.044715, k))


@_function(_silu_slope, _BOTH, bounds=_silu_bounds)
def silu(x: Node) -> Node:
    """The SiLU (swish) activation, ``x * sigmoid(x)``."""
    return _activation("silu", x)


@_function(_gelu_slope, _BOTH, bounds=_gelu_bounds)
def gelu(x: Node) -> Node:
    """The GELU activation, ``x * (1 + erf(x / sqrt(2))) / 2``."""
    return _activation("gelu", x)


@_function(_gelu_tanh_slope, _BOTH, bounds=_gelu_tanh_bounds)
def gelu_tanh(x: Node) -> Node:
    """The GELU activation by tanh: ``x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))) / 2``."""
    return _activation("gelu_tanh", x)


FUNCTIONS: Mapping[str, Function] = {
    f.name: f
    for f in (
        *(exp, exp2, expm1, log, log2, log1p, softplus, rsqrt, pow_, sigmoid, tanh, erf),
        *(sin, cos, tan, atan, relu, silu, gelu, gelu_tanh),
    )
}
"""Elementary functions and activations of formulas, by name."""
