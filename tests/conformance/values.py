"""Operands: a table of hard values by type, and random ones from a generator of our own.

The recorded results belong to these very operands, so nothing here may depend on the version
of NumPy or Python: only integer arithmetic on uint64, and bit patterns.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import struct
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


class Random:
    """splitmix64 (Steele, Lea and Flood, 2014), seeded by a text."""

    def __init__(self, key: str) -> None:
        self._seed = np.frombuffer(hashlib.sha256(key.encode()).digest()[:8], "<u8")
        self._count = 0

    def words(self, n: int) -> Array:
        """The next ``n`` numbers of 64 random bits."""
        steps = np.arange(self._count + 1, self._count + n + 1, dtype=np.uint64)
        self._count += n
        z = self._seed + steps * _GOLDEN
        z = (z ^ (z >> np.uint64(30))) * _MIX[0]
        z = (z ^ (z >> np.uint64(27))) * _MIX[1]
        return z ^ (z >> np.uint64(31))

    def below(self, limit: int, n: int) -> Array:
        """``n`` numbers in 0 .. limit - 1, as uint64 (limit up to 2³²)."""
        return ((self.words(n) >> np.uint64(32)) * np.uint64(limit)) >> np.uint64(32)

    def pick(self, table: list[int], n: int) -> Array:
        """``n`` values out of ``table``."""
        return np.array(table, np.uint64)[self.below(len(table), n).astype(np.int64)]

    def permutation(self, n: int) -> Array:
        """The numbers 0 .. n - 1 in random order, as int64."""
        return np.argsort(self.words(n), kind="stable").astype(np.int64)


# -- formats ------------------------------------------------------------------------

FORMATS = {"f16": (5, 10), "bf16": (8, 7), "f32": (8, 23), "f64": (11, 52)}
"""Bits of the exponent and of the fraction."""
PACKED = {"f16x2": "f16", "bf16x2": "bf16"}

WIDTH = {
    **{f"{kind}{bits}": bits for kind in "usb" for bits in (8, 16, 32, 64)},
    **{name: 1 + sum(parts) for name, parts in FORMATS.items()},
    **{name: 32 for name in PACKED},
    "pred": 32,
}
"""Bits of a value in memory; predicates are stored as 0 or 1 in 32 bits."""

DTYPE = {8: np.dtype("<u1"), 16: np.dtype("<u2"), 32: np.dtype("<u4"), 64: np.dtype("<u8")}


def bits_of(value: float, name: str) -> int:
    """The bit pattern of ``value`` in a format that holds it exactly."""
    if name == "f16":
        return int(struct.unpack("<H", struct.pack("<e", value))[0])
    if name == "f64":
        return int(struct.unpack("<Q", struct.pack("<d", value))[0])
    word = int(struct.unpack("<I", struct.pack("<f", value))[0])
    return word if name == "f32" else word >> 16


# -- hard values ----------------------------------------------------------------------


@functools.cache
def hard_integers(bits: int) -> tuple[int, ...]:
    """Limits, powers of two and their neighbours, widths, patterns; the hardest first."""
    half, top, mask = bits // 2, 1 << (bits - 1), (1 << bits) - 1
    values = [0, 1, mask, top, top - 1, 2, top + 1, mask - 1, 1 << half, (1 << half) - 1]
    values += [mask - (1 << half) + 1, 0x55 * (mask // 255), 0xAA * (mask // 255), 3, 7, 10]
    values += [bits - 1, bits, bits + 1, 127, 128, 255, 256, mask - 127, mask - 128, 0x1234]
    values += [(1 << (half - 1)) - 1, 1 << (half - 1), (1 << half) + 1, 100, mask // 3, mask // 7]
    return tuple(dict.fromkeys(v & mask for v in values))


@functools.cache
def hard_floats(name: str) -> tuple[int, ...]:
    """Zeros, subnormals, limits, neighbours of 1, Inf and NaN; the hardest first."""
    exponent, fraction = FORMATS[name]
    sign, bias = 1 << (exponent + fraction), (1 << (exponent - 1)) - 1
    unit, ones = 1 << fraction, (1 << fraction) - 1
    one, infinity = bias << fraction, ((1 << exponent) - 1) << fraction
    values = [0, sign, one, infinity, infinity | unit >> 1, infinity - 1, 1, sign | one]
    values += [sign | infinity, unit, ones, one + 1, one - 1, sign | 1, sign | (infinity - 1)]
    values += [one | unit >> 1, one + unit, sign | (one + 1), infinity | 1, sign | infinity | 5]
    values += [one - unit, one + unit + (unit >> 1), one | ones, unit + 1, sign | unit]
    values += [(bias + fraction) << fraction, ((bias + fraction) << fraction) + 1]
    values += [(bias - fraction) << fraction, (bias - fraction - 1) << fraction]
    values += [max(bias // 2, 1) << fraction | 3, (bias + bias // 2) << fraction | 5]
    return tuple(dict.fromkeys(values))


@functools.cache
def integral_floats(name: str) -> tuple[int, ...]:
    """Values around the limits of the integer types, and ties between two integers."""
    exponent, fraction = FORMATS[name]
    limit = 2.0 ** ((1 << (exponent - 1)) - 1)
    found = dict.fromkeys(hard_floats(name))
    for power in (7, 8, 15, 16, 31, 32, 63, 64):
        for offset in (-1.0, -0.5, 0.0, 0.5, 1.0):
            value = 2.0**power + offset
            if value < limit and (value - offset == 2.0**power):
                pattern = bits_of(value, "f64") >> (52 - min(fraction, 52))  # cut to the format
                kept = _narrow(pattern, exponent, fraction)
                for sign in (0, 1 << (exponent + fraction)):
                    found[kept | sign] = None
                    found[(kept - 1) | sign] = None
    for k in range(6):
        found.update(dict.fromkeys(bits_of(s * (k + 0.5), name) for s in (1, -1)))
    return tuple(found)


def _narrow(pattern: int, exponent: int, fraction: int) -> int:
    """A positive f64 pattern, cut to ``fraction`` bits, with the exponent of a format."""
    unbiased = (pattern >> fraction) - 1023
    mantissa = pattern & ((1 << fraction) - 1)
    return (unbiased + (1 << (exponent - 1)) - 1) << fraction | mantissa


# -- kinds of operands --------------------------------------------------------------


def _float(name: str, random: Random, n: int, low: int = -12, high: int = 12) -> Array:
    """A mixture: any bits; close exponents; short fractions; fractions near a tie."""
    exponent, fraction = FORMATS[name]
    bits, bias = exponent + fraction + 1, (1 << (exponent - 1)) - 1
    top = (1 << exponent) - 2
    words, mix = random.words(n), random.below(4, n)
    spread = random.below(high - low + 1, n).astype(np.int64) + (bias + low)
    near = np.clip(spread, 0, top).astype(np.uint64) << np.uint64(fraction)
    sign = (words >> np.uint64(63)) << np.uint64(bits - 1)
    mantissa = words & np.uint64((1 << fraction) - 1)
    short = mantissa & np.uint64(~((1 << max(fraction - 5, 1)) - 1) & (2**64 - 1))
    cut = random.below(fraction + 1, n)
    tie = ((mantissa >> cut) << cut) | ((np.uint64(1) << cut) >> np.uint64(1))
    wobble = random.below(3, n) - np.uint64(1)
    tie = (tie + wobble) & np.uint64((1 << fraction) - 1)
    raw = words & np.uint64((1 << bits) - 1)
    return np.select(
        [mix == 0, mix == 1, mix == 2], [raw, sign | near | mantissa, sign | near | short],
        sign | near | tie,
    )  # fmt: skip


def _integer(bits: int, random: Random, n: int) -> Array:
    """Uniform in size as well as in value: shifted by a random amount, half of them negated."""
    shift = random.below(bits, n) * (random.below(3, n) > 0)
    words = (random.words(n) & np.uint64((1 << bits) - 1)) >> shift
    negate = random.below(2, n).astype(bool)
    return np.where(negate, np.uint64(0) - words, words) & np.uint64((1 << bits) - 1)


def _table(kind: str) -> tuple[list[int], Any, int]:
    """Hard values, the source of random ones, and the width of ``kind``."""
    name, _, flavour = kind.partition(":")
    bits = WIDTH[name]
    if name in PACKED:
        half = PACKED[name]
        source = hard_floats(half)
        turned = source[len(source) // 3 :] + source[: len(source) // 3]
        hard = [low | high << 16 for low, high in zip(source, turned, strict=True)]
        return hard, lambda r, n: _float(half, r, n) | _float(half, r, n) << np.uint64(16), bits
    if name in FORMATS:
        if flavour == "integral":
            low, high = (-3, min(66, (1 << (FORMATS[name][0] - 1)) - 1))
            return list(integral_floats(name)), lambda r, n: _float(name, r, n, low, high), bits
        if flavour:  # "f32:f16" holds what matters when it is rounded to f16
            return _narrowing(name, flavour), lambda r, n: _near_ties(name, flavour, r, n), bits
        return list(hard_floats(name)), lambda r, n: _float(name, r, n), bits
    hard = list(hard_integers(bits))
    if flavour == "shift":
        hard = [0, 1, 31, 32, 33, 63, 64, 65, 15, 16, 17, 7, 8, 255, 256, (1 << bits) - 1]
        return hard, lambda r, n: r.below(70, n), bits
    if flavour == "field":  # position or length of a bit field
        hard = [0, 1, 8, 31, 32, 33, 16, 63, 64, 65, 255, 256, 0x101, 0xFFFFFFFF]
        return hard, lambda r, n: r.below(66, n), bits
    if flavour == "nonzero":
        hard.remove(0)
        return hard, lambda r, n: np.maximum(_integer(bits, r, n), np.uint64(1)), bits
    if flavour == "small":
        return hard, lambda r, n: r.below(256, n), bits
    if flavour.startswith("below"):
        limit = int(flavour[5:])
        return list(range(min(limit, 16))), lambda r, n: r.below(limit, n), bits
    return hard, lambda r, n: _integer(bits, r, n), bits


def _narrowing(name: str, target: str) -> list[int]:
    """Values of ``name`` around the limits, subnormals and ties of the narrower ``target``."""
    exponent, fraction = FORMATS[name]
    narrow, kept = FORMATS[target]
    bias, small = (1 << (exponent - 1)) - 1, (1 << (narrow - 1)) - 1
    tie = 1 << (fraction - kept - 1)
    found = dict.fromkeys(hard_floats(name))
    scales = [0, 1, small, -small, 1 - small, -small - kept, -small - kept + 1, -small - kept - 1]
    for scale in (s for s in scales if -bias < s <= bias):
        for low in (0, tie, tie + 1, tie - 1, 3 * tie, (1 << fraction) - tie, (1 << fraction) - 1):
            found[(bias + scale) << fraction | low] = None
    sign = 1 << (exponent + fraction)
    return list(found) + [v | sign for v in list(found)[::3] if not v & sign]


def _near_ties(name: str, target: str, random: Random, n: int) -> Array:
    """Random values of ``name`` whose rounding to ``target`` is close, down to subnormals."""
    exponent, fraction = FORMATS[name]
    narrow, kept = FORMATS[target]
    small, bias = (1 << (narrow - 1)) - 1, (1 << (exponent - 1)) - 1
    span = 2 * small + kept + 3
    scale = random.below(span, n).astype(np.int64) + (bias - small - kept - 1)
    scale = np.clip(scale, 0, (1 << exponent) - 2).astype(np.uint64)
    words = random.words(n)
    # A random length of zeros or ones below the kept bits, deeper for subnormal results.
    deep = np.maximum(np.int64(bias - small + 1) - scale.astype(np.int64), 0)
    cut = np.minimum(np.int64(fraction - kept) + deep, fraction).astype(np.uint64)
    mantissa = words & np.uint64((1 << fraction) - 1)
    tie = ((mantissa >> cut) << cut) | ((np.uint64(1) << cut) >> np.uint64(1))
    mixed = random.below(4, n)
    tie = tie + (mixed == 1) - (mixed == 2).astype(np.uint64)
    mantissa = np.where(mixed == 3, mantissa, tie) & np.uint64((1 << fraction) - 1)
    sign = (words >> np.uint64(63)) << np.uint64(exponent + fraction)
    return sign | scale << np.uint64(fraction) | mantissa


def operands(kinds: tuple[str, ...], lanes: int, key: str) -> list[Array]:
    """Returns an array of bit patterns for each operand, ``lanes`` long.

    A kind is a type, or "type:flavour". All combinations of hard values come first, as far as
    four fifths of the lanes allow, else all of the hardest; then hard values at random; then
    random values, some of them against a hard one.
    """
    random = Random(key)
    tables = [_table(kind) for kind in kinds]
    if not tables:
        return []
    count = len(tables)
    most = max(len(hard) for hard, _, _ in tables)
    room = lanes * 4 // 5
    if most**count > room:
        room, most = lanes * 2 // 5, 1
        while (most + 1) ** count <= room:
            most += 1
    chosen = [hard[:most] for hard, _, _ in tables]
    product = np.array(list(itertools.product(*chosen)), np.uint64).reshape(-1, count)[:lanes]
    columns: list[Array] = []
    rest = lanes - len(product)
    for at, (hard, source, bits) in enumerate(tables):
        values = source(random, rest).astype(np.uint64)
        stay = random.below(8, rest) < np.uint64(2)
        values = np.where(stay, random.pick(hard, rest), values)
        columns.append(np.concatenate([product[:, at], values]).astype(DTYPE[bits]))
    return columns
