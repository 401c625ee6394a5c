"""IEEE 754 arithmetic on NumPy arrays, correctly rounded as in PTX: f16, bf16, f32 and f64, rounded
to nearest even (rn), towards zero (rz), down (rm) or up (rp), subnormals kept.

Arrays hold f16 as ``np.float16``, bf16 as its bits in ``np.uint16``, f32 as ``np.float32`` and f64
as ``np.float64``. Operands have one shape or (1,), and so have results. Callers set
``np.errstate(all="ignore")``. The payload and the sign of a NaN are arbitrary, but conversions to
f16 and bf16 give 0x7FFF for every NaN, as on GPUs.

Results narrower than f64, where NumPy's own operation is not correct already:

1. f64 holds the operands, and the products of two operands, exactly.
2. A sum of two such f64 values neither overflows nor is subnormal. It is *rounded to odd*: an
   inexact sum with an even last bit moves one step towards the exact one (:mod:`ptxgen.oracle.f32`
   has the proof). The values of the narrow formats, and the midpoints between them, have at most 25
   bits, so they are even in f64, and the sum rounded to odd is on the same side of each as the
   exact sum.
3. Hence :func:`narrow` rounds the sum to odd, in any mode, as it would the exact sum.

A quotient or root needs no rounding to odd: the operands' 24 bits keep it a relative 2**-51 away
from any value of 25 bits that it does not equal, and f64 is closer than that.

f64 in directed modes is computed with rational numbers, lane by lane; its nearest fma is that of
:mod:`ptxgen.oracle.f64`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ptxgen.oracle import f32 as reference
from ptxgen.oracle import f64

Array: TypeAlias = NDArray[Any]
F32: TypeAlias = NDArray[np.float32]
F64: TypeAlias = NDArray[np.float64]
U16: TypeAlias = NDArray[np.uint16]
Function: TypeAlias = Callable[..., Array]

MODES = ("rn", "rz", "rm", "rp")
"""Rounding modes: to nearest even, towards zero, towards minus infinity, towards plus infinity."""


@dataclass(frozen=True)
class Format:
    """A binary float format: ``precision``, bits of the significand with the implicit one;
    ``min_exponent`` and ``max_exponent``, least and greatest exponent of normal numbers.
    """

    precision: int
    min_exponent: int
    max_exponent: int

    @property
    def largest(self) -> float:
        """Largest finite number of the format."""
        return math.ldexp(2.0 - 2.0 ** (1 - self.precision), self.max_exponent)


FORMATS = {
    "f16": Format(11, -14, 15),
    "bf16": Format(8, -126, 127),
    "f32": Format(24, -126, 127),
    "f64": Format(53, -1022, 1023),
}

_INTEGRAL: dict[str, Callable[..., Any]] = {
    "rn": np.rint,
    "rz": np.trunc,
    "rm": np.floor,
    "rp": np.ceil,
}

_NEIGHBOURS = np.array([[1 + 2.0**-52], [1 - 2.0**-53]])
_BF16_NAN = np.uint16(0x7FFF)
_F16_NAN = np.uint16(0x7FFF).view(np.float16)
_ONE = np.uint32(1)
_HALF = np.uint32(0x7FFF)
_16 = np.uint32(16)


# --- fma.rn.f32 -----------------------------------------------------------------------------
def fma_f32(a: F32, b: F32, c: F32) -> F32:
    """Computes ``fma.rn.f32``: ``a * b + c`` with one rounding.

    The f64 sum rounds to the correct f32 unless it is on a boundary of f32 rounding (see
    :mod:`ptxgen.oracle.f32`, step 3). It is on none if its two neighbours in f64 round to the same
    f32: f32 rounding is monotone, so the sum does too. Multiplication by 1 + 2**-52 increases the
    sum by one or two steps, by 1 - 2**-53 decreases it by one; zeros, infinities and NaN keep their
    value. Lanes whose neighbours differ are rounded again by :func:`_round_exactly`.
    """
    product = np.multiply(a, b, dtype=np.float64)
    total: F64 = np.add(product, c)
    outer, inner = (_NEIGHBOURS * total).astype(np.float32)
    if outer.tobytes() != inner.tobytes():
        _round_exactly(outer, inner, total, product, c)
    result: F32 = outer
    return result


def _round_exactly(outer: F32, inner: F32, total: F64, product: F64, addend: Array) -> None:
    """Corrects, in place, the lanes of ``outer`` that differ from ``inner``: rounds
    ``product + addend`` to f32 once. ``total``: that sum in f64.
    """
    lanes = np.flatnonzero(outer.view(np.uint32) != inner.view(np.uint32))
    total = total[lanes]
    product = product[lanes] if len(product) > 1 else product
    addend = addend[lanes] if len(addend) > 1 else addend
    part = total - product  # TwoSum by Knuth
    error = (product - (total - part)) + (addend - part)
    # Exact sums are common here: products of bf16 numbers have few bits.
    if np.count_nonzero(error):
        total = reference._off_boundary(total, product, addend.astype(np.float64))
    outer[lanes] = total


# --- Between formats --------------------------------------------------------------------------
def widen(value: Array, kind: str) -> F64:
    """Converts values of the format ``kind`` to f64, exactly."""
    if kind == "bf16":
        value = bf16_to_f32(value)
    return value.astype(np.float64)


def bf16_to_f32(value: U16) -> F32:
    """Converts bf16 bits to f32 numbers, exactly."""
    return (value.astype(np.uint32) << _16).view(np.float32)


def f32_to_bf16(value: F32) -> U16:
    """Rounds f32 numbers to bf16 bits, to nearest even."""
    bits = value.view(np.uint32)
    result = ((bits + (((bits >> _16) & _ONE) + _HALF)) >> _16).astype(np.uint16)
    nan = value != value
    if np.count_nonzero(nan):
        result = np.where(nan, _BF16_NAN, result)
    return result


def to_f16(value: Array) -> Array:
    """Rounds floats to f16, to nearest even; every NaN gives the canonical one, as on GPUs."""
    result = value.astype(np.float16)
    nan = value != value
    if np.count_nonzero(nan):
        result = np.where(nan, _F16_NAN, result)
    return result


def narrow(value: F64, kind: str, mode: str = "rn") -> Array:
    """Rounds f64 values to the format ``kind``.

    The value is divided by its unit in the last place, which is a power of two and so exact,
    rounded to an integer, and multiplied back.
    """
    if kind == "f64":
        return value
    if mode == "rn" and kind != "bf16":
        return value.astype(np.float32) if kind == "f32" else to_f16(value)
    form = FORMATS[kind]
    exponent = np.maximum(np.frexp(value)[1], form.min_exponent + 1) - form.precision
    rounded = np.ldexp(_INTEGRAL[mode](np.ldexp(value, -exponent)), exponent)
    over = (np.abs(rounded) > form.largest) & np.isfinite(value)
    if np.count_nonzero(over):
        rounded = np.where(over, _overflow(np.signbit(value), form, mode), rounded)
    if kind == "bf16":
        return f32_to_bf16(rounded.astype(np.float32))
    exact: Array = rounded.astype(np.float32) if kind == "f32" else to_f16(rounded)
    return exact


def _overflow(negative: Array, form: Format, mode: str) -> F64:
    """Returns the result in ``form`` of numbers that are too large for it, in rounding mode
    ``mode``: infinity or the largest finite number, with the sign of ``negative``.
    """
    up = np.inf if mode in ("rn", "rp") else form.largest
    down = np.inf if mode in ("rn", "rm") else form.largest
    return np.where(negative, -down, up)


def convert(source: str, kind: str, mode: str = "rn") -> Function:
    """Returns the function that converts values of format ``source`` to format ``kind``."""
    if source == kind:
        return lambda a: a
    if kind == "bf16" and source == "f32" and mode == "rn":
        return f32_to_bf16
    if source == "bf16" and kind == "f32":
        return bf16_to_f32
    if source == "f16" and kind == "f32":
        return lambda a: a.astype(np.float32)
    if source == "f32" and kind == "f16" and mode == "rn":
        return to_f16
    return lambda a: narrow(widen(a, source), kind, mode)


def integral(value: Array, kind: str, mode: str) -> Array:
    """Rounds floats to integral values of the same format; zeros keep the sign."""
    rounded: Array
    if kind == "bf16":
        rounded = f32_to_bf16(_INTEGRAL[mode](bf16_to_f32(value)))
    else:
        rounded = _INTEGRAL[mode](value)
    return rounded


# --- Integers ---------------------------------------------------------------------------------
def from_integer(value: Array, kind: str, mode: str = "rn") -> Array:
    """Converts integers to floats of the format ``kind``."""
    if value.dtype.itemsize < 8:
        return narrow(value.astype(np.float64), kind, mode)
    if mode == "rn" and kind in ("f32", "f64"):
        return value.astype(np.float32 if kind == "f32" else np.float64)
    high = np.ldexp((value >> value.dtype.type(32)).astype(np.float64), 32)
    low = (value & value.dtype.type(0xFFFFFFFF)).astype(np.float64)
    if kind != "f64":
        return narrow(_odd_sum(high, low), kind, mode)
    total = high + low
    return _step(total, low - (total - high), mode)  # |low| is less than |high|, or high is 0


def to_integer(value: Array, source: str, target: np.dtype[Any], mode: str) -> Array:
    """Converts floats of format ``source`` to integers of dtype ``target``, clamped to its range.

    NaN gives 0, or the integer of which only the highest bit is set if the source is f64 or the
    target has 64 bits (PTX ISA 9.0, cvt).
    """
    info = np.iinfo(target)
    wide = _INTEGRAL[mode](widen(value, source))
    nan = np.isnan(wide)
    if info.bits < 64:
        result: Array = np.clip(wide, info.min, info.max).astype(np.int64).astype(target)
    else:
        limit = math.ldexp(1.0, 63 if info.min else 64)
        result = np.maximum(wide, float(info.min)).astype(target)
        result = np.where(wide >= limit, target.type(info.max), result)
    if np.count_nonzero(nan):
        wrong = 0
        if source == "f64" or info.bits == 64:
            wrong = info.min if info.min else 1 << (info.bits - 1)
        result = np.where(nan, target.type(wrong), result)
    return result


# --- Arithmetic -------------------------------------------------------------------------------
def function(operation: str, kind: str, mode: str = "rn") -> Function:
    """Returns add, sub, mul, fma, div, sqrt or rcp in the format ``kind`` as a function."""
    if operation == "rcp":
        divide = function("div", kind, mode)
        one = narrow(np.ones(1), kind)
        return lambda a: divide(one, a)
    if operation == "sub":
        add, minus = function("add", kind, mode), negate(kind)
        if mode == "rn" and kind != "bf16":
            return np.subtract
        return lambda a, b: add(a, minus(b))
    if mode == "rn" and kind != "bf16" and operation in _PLAIN:
        # f16 goes through f32 in NumPy; 24 bits are 2 * 11 + 2, so the second rounding of a sum,
        # product, quotient or root is harmless (Figueroa, When is double rounding innocuous?).
        return _PLAIN[operation]
    if kind == "f64":
        if operation == "fma" and mode == "rn":
            return f64.fma
        return lambda *operands: _exact_f64(operation, mode, *operands)
    if operation == "fma" and kind == "f32" and mode == "rn":
        return fma_f32
    wide = _WIDE[operation]
    return lambda *operands: narrow(wide(mode, *(widen(x, kind) for x in operands)), kind, mode)


_PLAIN: dict[str, Function] = {
    "add": np.add,
    "mul": np.multiply,
    "div": np.divide,
    "sqrt": np.sqrt,
}


def _odd_sum(a: F64, b: F64, mode: str = "rn") -> F64:
    """Returns ``a + b`` rounded to odd, so that another rounding to a narrower format gives the
    correct result. An exact zero has the sign that rounding mode ``mode`` gives it.
    """
    total = a + b
    if mode == "rm":
        total = np.where((total == 0) & (np.signbit(a) | np.signbit(b)), -0.0, total)
    return reference._off_boundary(total, a, b)


_WIDE: dict[str, Callable[..., F64]] = {
    "add": lambda mode, a, b: _odd_sum(a, b, mode),
    "mul": lambda mode, a, b: a * b,
    "fma": lambda mode, a, b, c: _odd_sum(a * b, c, mode),
    "div": lambda mode, a, b: a / b,
    "sqrt": lambda mode, a: np.sqrt(a),
}


# --- f64 --------------------------------------------------------------------------------------
def _step(nearest: F64, error: F64, mode: str) -> F64:
    """Returns an exact result rounded to f64 by ``mode``. ``nearest``: the f64 nearest to it;
    ``error``: a number with the sign of the exact result minus ``nearest``.
    """
    if mode == "rn":
        return nearest
    up = np.nextafter(nearest, np.inf)
    down = np.nextafter(nearest, -np.inf)
    lower = error < 0 if mode != "rz" else (error < 0) & (nearest > 0)
    upper = error > 0 if mode != "rz" else (error > 0) & (nearest < 0)
    if mode != "rp":
        nearest = np.where(lower, down, nearest)
    if mode != "rm":
        nearest = np.where(upper, up, nearest)
    return nearest


def _exact_f64(operation: str, mode: str, *operands: F64) -> F64:
    """Computes an f64 operation by rational numbers, lane by lane; infinities and NaN by NumPy."""
    arrays = np.broadcast_arrays(*operands)
    if operation == "fma":
        a, b, c = arrays
        finite = np.isfinite(a) & np.isfinite(b)
        plain = np.where(finite & ~np.isfinite(c), c, a * b + c)
    else:
        plain = _PLAIN[operation](*arrays)
    result: list[float] = plain.tolist()
    for lane, values in enumerate(zip(*(x.tolist() for x in arrays), strict=True)):
        if all(map(math.isfinite, values)):
            result[lane] = _exact_lane(operation, mode, values, result[lane])
    return np.array(result, np.float64)


def _exact_lane(operation: str, mode: str, values: tuple[float, ...], plain: float) -> float:
    """Returns the f64 result of ``operation`` on the finite operands ``values``, rounded by
    ``mode``.

    ``plain``: NumPy's result, the nearest f64. Unused for fma, which NumPy rounds twice.
    """
    first, *rest = map(Fraction, values)
    if operation == "sqrt":
        if first <= 0:
            return plain
        return _directed(plain, first - Fraction(plain) ** 2, mode)
    if operation == "div":
        if not rest[0] or not first:
            return plain
        exact = first / rest[0]
    else:
        exact = first * rest[0] if operation != "add" else first + rest[0]
    if operation == "fma":
        exact += rest[1]
        try:
            plain = float(exact) if exact else plain
        except OverflowError:
            plain = math.inf if exact > 0 else -math.inf
    if exact:
        return _directed(plain, exact - Fraction(plain) if math.isfinite(plain) else -plain, mode)
    if operation == "mul":
        return plain
    signs = [math.copysign(1.0, x) for x in values]
    if operation == "fma":
        signs = [signs[0] * signs[1], signs[2]]
    if signs[0] == signs[1]:  # two zeros
        return math.copysign(0.0, signs[0])
    return -0.0 if mode == "rm" else 0.0


def _directed(nearest: float, error: Fraction | float, mode: str) -> float:
    """Returns an exact result rounded to f64 by ``mode``. ``nearest``: the f64 nearest to it;
    ``error``: a number with the sign of the exact result minus ``nearest``.
    """
    if error == 0 or mode == "rn":
        return nearest
    down = mode == "rm" or (mode == "rz" and (nearest > 0 or (nearest == 0 and error > 0)))
    if error < 0 and down:
        return math.nextafter(nearest, -math.inf)
    if error > 0 and not down:
        return math.nextafter(nearest, math.inf)
    return nearest


# --- Bits and comparisons -----------------------------------------------------------------------
def negate(kind: str) -> Function:
    """Returns the function that flips the sign of floats, also of NaN."""
    if kind != "bf16":
        return np.negative
    sign = np.uint16(1 << 15)
    return lambda a: a ^ sign


def absolute(kind: str) -> Function:
    """Returns the function that clears the sign of floats, also of NaN."""
    if kind != "bf16":
        return np.absolute
    magnitude = np.uint16(0x7FFF)
    return lambda a: a & magnitude


def number(kind: str) -> Function:
    """Returns the conversion to a NumPy float dtype: bf16 bits to f32, the identity for others."""
    return bf16_to_f32 if kind == "bf16" else lambda a: a


def extreme(operation: str, kind: str, *, nan: bool) -> Function:
    """Returns min or max with -0 < +0; for one NaN operand, it returns the other, or NaN if
    ``nan``.
    """
    smaller = operation == "min"
    numeric = number(kind)

    def choose(a: Array, b: Array) -> Array:
        x, y = numeric(a), numeric(b)
        tie = np.signbit(x) if smaller else ~np.signbit(x)
        first = (x < y if smaller else x > y) | ((x == y) & tie)
        first |= (x != x) if nan else (y != y)
        return np.where(first, a, b)

    return choose


def saturate(kind: str) -> Function:
    """Returns the function that clamps floats to [0, 1]; NaN and -0 give +0."""
    zero = narrow(np.zeros(1), kind)
    one = narrow(np.ones(1), kind)
    numeric = number(kind)

    def clamp(a: Array) -> Array:
        x = numeric(a)
        return np.where(x > 0, np.where(x < 1, a, one), zero)

    return clamp


def classify(test: str, kind: str) -> Function:
    """Returns the function of ``testp`` for arrays of format ``kind``; ``test``: finite, infinite,
    number, notanumber, normal or subnormal.
    """
    smallest = math.ldexp(1.0, FORMATS[kind].min_exponent)
    tests: dict[str, Function] = {
        "finite": np.isfinite,
        "infinite": np.isinf,
        "number": lambda a: ~np.isnan(a),
        "notanumber": np.isnan,
        "normal": lambda a: np.isfinite(a) & ((np.abs(a) >= smallest) | (a == 0)),
        "subnormal": lambda a: (np.abs(a) < smallest) & (a != 0),
    }
    return tests[test]
