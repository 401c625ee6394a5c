"""The ``fma`` and ``fma64`` contracts in exact rational arithmetic, one scalar at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

OVERFLOW = Fraction(2) ** 128


def round_f32(value: Fraction) -> float:
    """``value``, not zero, to the nearest f32, ties to even."""
    magnitude = abs(value)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if magnitude < Fraction(2) ** exponent:
        exponent -= 1
    quantum = Fraction(2) ** (max(exponent, -126) - 23)
    rounded = round(magnitude / quantum) * quantum  # round() of a Fraction breaks ties to even
    result = math.inf if rounded >= OVERFLOW else float(rounded)
    return math.copysign(result, value)


def fma(a: float, b: float, c: float) -> float:
    """``a * b + c`` for f32 numbers, one rounding."""
    if not (math.isfinite(a) and math.isfinite(b) and math.isfinite(c)):
        return a * b + c  # no finite product overflows a float64, so only the class matters
    value = Fraction(a) * Fraction(b) + Fraction(c)
    if value:
        return round_f32(value)
    return zero(a, b, c)


def zero(a: float, b: float, c: float) -> float:
    """``a * b + c`` where that is zero: the common sign of both terms, else +0.0."""
    product_sign = math.copysign(1, a) * math.copysign(1, b)
    return math.copysign(0.0, c) if c == 0 and product_sign == math.copysign(1, c) else 0.0


def add(a: float, b: float) -> float:
    """``a + b`` for f32 numbers, one rounding."""
    return fma(a, 1.0, b)


def chain(a: Sequence[float], b: Sequence[float], chunk: int) -> float:
    """Returns one output of contract fma: chunks of ``chunk`` products, added in order."""
    total = 0.0
    for start in range(0, len(a), chunk):
        acc = 0.0
        for x, y in zip(a[start : start + chunk], b[start : start + chunk], strict=True):
            acc = fma(x, y, acc)
        acc = add(acc, 0.0)
        total = acc if start == 0 else add(total, acc)
    return total


def fma64(a: float, b: float, c: float) -> float:
    """``a * b + c`` for f64 numbers, one rounding."""
    if not (math.isfinite(a) and math.isfinite(b)):
        return a * b + c
    if not math.isfinite(c):
        return c  # as no finite product reaches it
    value = Fraction(a) * Fraction(b) + Fraction(c)
    if not value:
        return zero(a, b, c)
    try:
        rounded = float(value)  # to nearest even, below 2**-1022, too
    except OverflowError:
        rounded = math.inf
    return math.copysign(rounded, 1 if value > 0 else -1)


def chain64(a: Sequence[float], b: Sequence[float], chunk: int) -> float:
    """Returns one output of contract fma64: chunks of ``chunk`` products, added in order."""
    total = 0.0
    for start in range(0, len(a), chunk):
        acc = 0.0
        for x, y in zip(a[start : start + chunk], b[start : start + chunk], strict=True):
            acc = fma64(x, y, acc)
        total = acc + 0.0 if start == 0 else total + (acc + 0.0)
    return total
