"""IEEE 754 arithmetic in rational numbers, one scalar at a time, as bit patterns.

A decoded number is None for NaN, a float for zeros and infinities, and a Fraction otherwise.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TypeAlias

Number: TypeAlias = Fraction | float | None

FORMATS = {"f16": (5, 10), "bf16": (8, 7), "f32": (8, 23), "f64": (11, 52)}
"""Bits of the exponent and of the fraction."""


def width(kind: str) -> int:
    return 1 + sum(FORMATS[kind])


def infinity(kind: str) -> int:
    """The bits of +infinity; those above it are NaN."""
    exponent, fraction = FORMATS[kind]
    return ((1 << exponent) - 1) << fraction


def nan(kind: str) -> int:
    return infinity(kind) | 1 << (FORMATS[kind][1] - 1)


def canonical(bits: int, kind: str) -> int:
    """All NaN as one."""
    magnitude = bits & ((1 << (width(kind) - 1)) - 1)
    return nan(kind) if magnitude > infinity(kind) else bits


def decode(bits: int, kind: str) -> Number:
    exponent_bits, fraction_bits = FORMATS[kind]
    negative = bits >> (width(kind) - 1)
    magnitude = bits & ((1 << (width(kind) - 1)) - 1)
    if magnitude > infinity(kind):
        return None
    if magnitude in (0, infinity(kind)):
        return math.copysign(math.inf if magnitude else 0.0, -1 if negative else 1)
    biased, fraction = magnitude >> fraction_bits, magnitude & ((1 << fraction_bits) - 1)
    if biased:
        fraction += 1 << fraction_bits
    bias = (1 << (exponent_bits - 1)) - 1
    value = Fraction(fraction) * Fraction(2) ** (max(biased, 1) - bias - fraction_bits)
    return -value if negative else value


def floor_log2(value: Fraction) -> int:
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    return exponent - 1 if value < Fraction(2) ** exponent else exponent


def round_integer(value: Fraction, mode: str) -> int:
    if mode == "rn":
        return round(value)
    if mode == "rz":
        return math.trunc(value)
    return math.floor(value) if mode == "rm" else math.ceil(value)


def encode(value: Number, kind: str, mode: str = "rn") -> int:
    """The bits of ``value`` rounded to the format."""
    exponent_bits, fraction_bits = FORMATS[kind]
    sign = 1 << (width(kind) - 1)
    if value is None:
        return nan(kind)
    if isinstance(value, float):
        return (infinity(kind) if value else 0) | (sign if math.copysign(1, value) < 0 else 0)
    smallest = 2 - (1 << (exponent_bits - 1))
    exponent = max(floor_log2(abs(value)), smallest)
    quantum = Fraction(2) ** (exponent - fraction_bits)
    count = abs(round_integer(value / quantum, mode))
    bits = ((exponent - smallest) << fraction_bits) + count
    if bits >= infinity(kind):
        towards_zero = mode == "rz" or (mode == "rm" and value > 0) or (mode == "rp" and value < 0)
        bits = infinity(kind) - 1 if towards_zero else infinity(kind)
    return bits | (sign if value < 0 else 0)


def negative(value: Fraction | float) -> bool:
    return math.copysign(1, value) < 0


def multiply(a: Number, b: Number) -> Number:
    if a is None or b is None:
        return None
    sign = -1.0 if negative(a) != negative(b) else 1.0
    infinite = math.inf in (abs(a), abs(b))
    if a == 0 or b == 0:
        return None if infinite else math.copysign(0.0, sign)
    return math.copysign(math.inf, sign) if infinite else Fraction(a) * Fraction(b)


def add(a: Number, b: Number, mode: str = "rn") -> Number:
    if a is None or b is None:
        return None
    if math.inf in (abs(a), abs(b)):
        if abs(a) == abs(b):
            return a if negative(a) == negative(b) else None
        return a if abs(a) == math.inf else b
    if a == 0 and b == 0 and negative(a) == negative(b):
        return a
    total = Fraction(a) + Fraction(b)
    if total == 0:
        return -0.0 if mode == "rm" else 0.0
    return total


def divide(a: Number, b: Number) -> Number:
    if a is None or b is None:
        return None
    sign = -1.0 if negative(a) != negative(b) else 1.0
    if abs(b) == math.inf:
        return None if abs(a) == math.inf else math.copysign(0.0, sign)
    if b == 0:
        return None if a == 0 else math.copysign(math.inf, sign)
    if a == 0 or abs(a) == math.inf:
        return math.copysign(float(a), sign)
    return Fraction(a) / Fraction(b)


def root(a: Number) -> Number:
    """The square root; inexact ones to 200 bits and a bit that tells."""
    if a is None or a == 0:
        return a
    if negative(a):
        return None
    if a == math.inf:
        return a
    value = Fraction(a)
    shift = max(0, 200 - floor_log2(value) // 2)
    scaled = value * 4**shift
    whole = math.isqrt(math.floor(scaled))
    exact = Fraction(whole * whole) == scaled
    return Fraction(2 * whole + (not exact), 2 ** (shift + 1))


def operate(operation: str, kind: str, mode: str, *bits: int) -> int:
    """The bits of add, sub, mul, fma, div, sqrt or rcp."""
    values = [decode(x, kind) for x in bits]
    result: Number
    match operation, values:
        case "add", [a, b]:
            result = add(a, b, mode)
        case "sub", [a, b]:
            result = add(a, None if b is None else -b, mode)
        case "mul", [a, b]:
            result = multiply(a, b)
        case "fma", [a, b, c]:
            result = add(multiply(a, b), c, mode)
        case "div", [a, b]:
            result = divide(a, b)
        case "rcp", [a]:
            result = divide(Fraction(1), a)
        case "sqrt", [a]:
            result = root(a)
        case _:
            raise ValueError(operation)
    return encode(result, kind, mode)
