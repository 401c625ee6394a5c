"""``reference.dot16`` against the contract in exact integers, one scalar at a time."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from bits import same_bits

from ptxgen.errors import DtypeError, OptionError, ShapeError
from ptxgen.numerics.contract import TENSOR_CORES
from ptxgen.oracle import half
from ptxgen.oracle.dot16 import dot16

SEED = 16016
EXPONENT_BITS = {"bf16": 8, "f16": 5}
CORES = {
    "sm_80": (8, 24, -126),
    "sm_86": (8, 24, -126),
    "sm_87": (8, 24, -126),
    "sm_89": (8, 24, -126),
    "sm_90": (16, 25, -133),
    "sm_100": (16, 25, -126),
    "sm_103": (16, 25, -126),
    "sm_110": (16, 25, -126),
    "sm_120": (16, 25, -126),
    "sm_121": (16, 25, -126),
}


def decode(bits, width, exponent_bits):
    """(significand, exponent) of a finite number, a float of an infinite one or NaN."""
    fraction_bits = width - 1 - exponent_bits
    sign = -1 if bits >> (width - 1) else 1
    field = (bits >> fraction_bits) % (1 << exponent_bits)
    fraction = bits % (1 << fraction_bits)
    bias = (1 << (exponent_bits - 1)) - 1
    if field == (1 << exponent_bits) - 1:
        return math.nan if fraction else sign * math.inf
    if field == 0:
        return sign * Fraction(fraction, 1 << fraction_bits), 1 - bias
    return sign * (1 + Fraction(fraction, 1 << fraction_bits)), field - bias


def towards_zero(value):
    return int(value) if value >= 0 else -int(-value)


def f32_bits_towards_zero(value):
    sign = 0x8000_0000 if value < 0 else 0
    value = abs(value)
    if value >= Fraction(2) ** 128:
        return sign | 0x7F80_0000
    exponent = -126
    while value >= Fraction(2) ** (exponent + 1):
        exponent += 1
    units = int(value / Fraction(2) ** (exponent - 23))
    bits = units if units < 1 << 23 else ((exponent + 127) << 23) + units - (1 << 23)
    return sign | bits if bits else 0


def exact_step(a, b, acc, dtype, bits, floor):
    """``a``, ``b``: bits of a step's factors; ``acc`` and the result: bits of an f32."""
    pairs = [(decode(x, 16, EXPONENT_BITS[dtype]), decode(y, 16, EXPONENT_BITS[dtype]))
             for x, y in zip(a, b, strict=True)]  # fmt: skip
    start = decode(acc, 32, 8)

    def plain(x):
        return x if isinstance(x, float) else float(np.sign(float(x[0])))

    if any(isinstance(x, float) for x in (start, *sum(pairs, ()))):
        ends = [plain(x) * plain(y) for x, y in pairs] + [plain(start)]
        if any(math.isnan(x) for x in ends) or {math.inf, -math.inf} <= set(ends):
            return 0x7FFF_FFFF
        return 0x7F80_0000 if math.inf in ends else 0xFF80_0000
    terms = [(x[0] * y[0], x[1] + y[1]) for x, y in pairs] + [start]
    terms = [(s, e if s else floor) for s, e in terms]
    top = max(floor, *(e for _, e in terms))
    total = sum(towards_zero(s * Fraction(2) ** (e - top + bits)) for s, e in terms)
    return f32_bits_towards_zero(total * Fraction(2) ** (top - bits))


def exact(a, b, acc, dtype, arch):
    terms, bits, floor = CORES[arch]
    out = []
    for x, y, z in zip(a.tolist(), b.tolist(), acc.view(np.uint32).tolist(), strict=True):
        for k in range(0, 16, terms):
            z = exact_step(x[k : k + terms], y[k : k + terms], z, dtype, bits, floor)
        out.append(z)
    return np.array(out, np.uint32).view(np.float32)


def normal(rng, count, dtype):
    a, b = (half.downcast(rng.standard_normal((count, 16)), dtype) for _ in range(2))
    return a, b, rng.standard_normal(count).astype(np.float32)


def wide(rng, count, dtype):
    """Exponents spread so that most terms are cut somewhere, and some are gone."""
    span = {"bf16": 20, "f16": 7}[dtype]
    a, b = (
        half.downcast(
            rng.standard_normal((count, 16)) * 2.0 ** rng.integers(-span, span, (count, 16)), dtype
        )
        for _ in range(2)
    )
    acc = rng.standard_normal(count) * 2.0 ** rng.integers(-2 * span, 2 * span, count)
    return a, b, acc.astype(np.float32)


def cancelling(rng, count, dtype):
    """Products in pairs of opposite signs, and an accumulator that takes away what is left."""
    a, b, _ = wide(rng, count, dtype)
    a[:, 8:], b[:, 8:] = a[:, :8] ^ 0x8000, b[:, :8]
    flips = rng.integers(0, 2, a.shape).astype(np.uint16)  # a last place here and there
    a ^= np.where(rng.random(a.shape) < 0.1, flips, 0).astype(np.uint16)
    products = half.upcast(a, dtype).astype(np.float64) * half.upcast(b, dtype)
    acc = -products.sum(axis=1).astype(np.float32)
    return a, b, np.where(rng.random(count) < 0.5, acc, np.float32(0))


def any_bits(rng, count, dtype):
    """All bit patterns, with few infinities and NaN."""
    a, b = (rng.integers(0, 1 << 16, (count, 16)).astype(np.uint16) for _ in range(2))
    form = half.FORMATS[dtype]
    for x in (a, b):
        ends = (x >> form.fraction & form.exponents) == form.exponents
        x[ends & (rng.random(x.shape) < 0.95)] ^= 1 << form.fraction
    acc = rng.integers(0, 1 << 32, count, dtype=np.uint64).astype(np.uint32).view(np.float32)
    return a, b, acc


def edges(rng, count, dtype):
    """Zeros of both signs, subnormals, ones, the largest and smallest numbers."""
    form = half.FORMATS[dtype]
    one, largest = form.bias << form.fraction, form.infinity - 1
    small = [0, 0, 1, (1 << form.fraction) - 1, 1 << form.fraction, one, one + 1, largest]
    values = np.array([*small, *(0x8000 | x for x in small)], np.uint16)
    a, b = rng.choice(values, (count, 16)), rng.choice(values, (count, 16))
    f32 = [0, 0, 1, 0x7F_FFFF, 0x80_0000, 0x3F80_0000, 0x7F7F_FFFF]
    accs = np.array([*f32, *(0x8000_0000 | x for x in f32)], np.uint32)
    return a, b, rng.choice(accs, count).view(np.float32)


def sparse(rng, count, dtype):
    """Few products that are not zero, around the bottom of f32."""
    a, b, acc = any_bits(rng, count, dtype)
    form = half.FORMATS[dtype]
    low = form.bias - 63 if dtype == "bf16" else 0
    for x in (a, b):
        field = rng.integers(low, low + 6, x.shape) if low else rng.integers(0, 3, x.shape)
        x[...] = (x & (0x8000 | ((1 << form.fraction) - 1))) | (field << form.fraction)
        x[rng.random(x.shape) < 0.6] &= 0x8000
    return a, b, (acc.view(np.uint32) & 0x81FF_FFFF).view(np.float32)


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
@pytest.mark.parametrize("dtype", ["bf16", "f16"])
@pytest.mark.parametrize("make", [normal, wide, cancelling, any_bits, edges, sparse])
def test_is_the_contract(make, dtype, arch):
    rng = np.random.default_rng(SEED)
    a, b, acc = make(rng, 400, dtype)
    same_bits(dot16(a, b, acc, dtype=dtype, arch=arch), exact(a, b, acc, dtype, arch), seed=SEED)


def test_table_of_architectures():
    assert {
        arch: (core.terms, core.bits, core.floor) for arch, core in TENSOR_CORES.items()
    } == CORES
    assert [arch for arch, core in TENSOR_CORES.items() if core.measured] == ["sm_90"]


def one(pairs, acc=0.0, dtype="bf16", arch="sm_90"):
    a, b = np.zeros((2, 16), np.float32)
    for i, (x, y) in enumerate(pairs):
        a[i], b[i] = x, y
    return float(dot16(a, b, np.float32(acc), dtype=dtype, arch=arch))


def test_cuts_terms_towards_zero():
    unit = 2.0**-25
    assert one([(1, 1), (unit, 1)]) == 1  # the sum is cut to f32 ...
    assert one([(1, 1), (-unit, 1)]) == 1 - 2.0**-24  # ... and so is this one
    assert one([(1, 1), (-unit / 2, 1)]) == 1  # this term is gone before it is added
    assert one([(1, 1), (-1, 1), (unit, 1)]) == unit
    assert one([(1, 1), (-1, 1), (unit / 2, 1)]) == 0
    assert one([(1, 1), (-1, 1), (-unit / 2, 1)]) == 0


def test_products_are_not_renormalised():
    """1.5 * 1.5 has exponent 0, so 25 bits below 1 are kept, not below 2."""
    assert one([(1.5, 1.5), (-1.5, 1.5), (2.0**-25, 1)]) == 2.0**-25
    assert one([(2, 1), (-2, 1), (2.0**-25, 1)]) == 0


def test_zeros_do_not_take_part_in_the_alignment():
    small = 2.0**-60
    assert one([(0, 2.0**100), (small, 1)]) == small
    assert one([(-0.0, 2.0**100), (small, 1)], acc=-0.0) == small


def test_below_the_floor():
    """Terms below exponent -133 are cut to multiples of 2^-158, their sum to ones of 2^-149."""
    assert one([(2.0**-79, 2.0**-79)] * 16) == 0
    assert one([(2.0**-76, 2.0**-77)] * 16) == 2.0**-149
    assert one([(2.0**-76, 2.0**-76)] * 8) == 2.0**-149
    assert one([(2.0**-79, 2.0**-79)] * 15 + [(2.0**-75, 2.0**-75)]) == 0
    # An accumulator of exponent -126, be it subnormal, has all cut to multiples of 2^-151.
    assert one([(2.0**-76, 2.0**-76)] * 8, acc=2.0**-149) == 2.0**-149
    assert one([(2.0**-75, 2.0**-76)] * 4, acc=2.0**-149) == 2.0**-148


def test_no_zero_is_negative():
    assert math.copysign(1, one([(-0.0, 1)] * 16, acc=-0.0)) == 1
    assert math.copysign(1, one([(1, 1), (-1, 1)])) == 1
    assert math.copysign(1, one([(-(2.0**-75), 2.0**-76)])) == 1


def test_overflow():
    big = 2.0**127
    assert one([(big, 2)]) == math.inf
    assert one([(big, 2), (-1, 1)]) == math.inf  # the one is out of reach
    assert one([(big, -2)]) == -math.inf
    assert one([(big, big), (big, -big)], acc=3) == 0  # and so is the accumulator
    largest = 2.0**128 - 2.0**104
    assert one([(2.0**102, 1)], acc=largest) == largest
    assert one([(2.0**104, 1)], acc=largest) == math.inf


def test_infinities_and_nan():
    inf, nan = math.inf, math.nan
    assert one([(inf, 2), (-1, 1)]) == inf
    assert one([(inf, -2), (1, 1)], acc=3) == -inf
    assert one([(-1, inf)]) == -inf
    assert one([(inf, 1), (-inf, -1)], acc=inf) == inf
    assert one([(1, 1)], acc=-inf) == -inf
    for pairs, acc in (
        ([(inf, 0)], 0),
        ([(0, -inf)], 0),
        ([(inf, 1), (-inf, 1)], 0),
        ([(inf, 1)], -inf),
        ([(nan, 0)], 0),
        ([(0, 0)], nan),
    ):
        assert math.isnan(one(pairs, acc)), (pairs, acc)
    bits = dot16(np.full((2, 16), nan), np.ones(16), 0.0, dtype="bf16").view(np.uint32)
    assert (bits == 0x7FFF_FFFF).all()


def test_order_is_free_within_a_step():
    rng = np.random.default_rng(SEED)
    a, b, acc = wide(rng, 200, "bf16")
    order = rng.permutation(16)
    same_bits(dot16(a[:, order], b[:, order], acc, dtype="bf16"), dot16(a, b, acc, dtype="bf16"))
    swapped = dot16(a[:, order], b[:, order], acc, dtype="bf16", arch="sm_80")
    assert (swapped != dot16(a, b, acc, dtype="bf16", arch="sm_80")).any()


def test_broadcasts():
    rng = np.random.default_rng(SEED)
    a, b, _ = normal(rng, 700, "f16")
    b = b[:33]
    acc = rng.standard_normal(33).astype(np.float32)
    tile = dot16(a[:, None], b, acc, dtype="f16")
    assert tile.shape == (700, 33)
    for i in (0, 1, 350, 699):
        row = dot16(np.broadcast_to(a[i], b.shape), b, acc, dtype="f16")
        same_bits(tile[i], row)
    assert dot16(a[0], b[0], 0.0, dtype="f16").shape == ()
    assert dot16(a[:0], b[0], 0.0, dtype="f16").shape == (0,)
    same_bits(
        dot16(a[:5], b[0], np.zeros((3, 1)), dtype="f16")[2],
        dot16(a[:5], np.broadcast_to(b[0], (5, 16)), np.zeros(5), dtype="f16"),
    )


def test_takes_floats_and_bits():
    rng = np.random.default_rng(SEED)
    a, b, acc = normal(rng, 50, "bf16")
    floats = dot16(half.upcast(a, "bf16"), half.upcast(b, "bf16"), acc, dtype="bf16")
    same_bits(floats, dot16(a, b, acc, dtype="bf16"))
    a, b, acc = normal(rng, 50, "f16")
    same_bits(
        dot16(a.view(np.float16), b.view(np.float16), acc, dtype="f16"),
        dot16(a, b, acc, dtype="f16"),
    )


def test_refuses():
    ones = np.ones(16, np.float32)
    with pytest.raises(DtypeError, match="bf16, f16"):
        dot16(ones, ones, 0.0, dtype="f32")
    with pytest.raises(DtypeError, match="int64"):
        dot16(ones.astype(np.int64), ones, 0.0, dtype="f16")
    with pytest.raises(OptionError, match="sm_70"):
        dot16(ones, ones, 0.0, dtype="f16", arch="sm_70")
    with pytest.raises(ShapeError, match="16"):
        dot16(ones[:8], ones[:8], 0.0, dtype="f16")
    assert dot16(ones, ones, 0.0, dtype="f16", arch="sm_90a") == 16


@pytest.mark.parametrize("dtype", ["bf16", "f16"])
def test_conversions(dtype):
    """Every number survives; between two, the nearer one, at the middle the even one."""
    everything = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16)
    wide_values = half.upcast(everything, dtype)
    for bits, value in zip(everything.tolist(), wide_values.tolist(), strict=True):
        expected = decode(bits, 16, EXPONENT_BITS[dtype])
        if isinstance(expected, float):
            assert value == expected or (math.isnan(value) and math.isnan(expected))
        else:
            assert Fraction(value) == expected[0] * Fraction(2) ** expected[1]
    back = half.downcast(wide_values, dtype)
    nan = np.isnan(wide_values)
    assert (back[~nan] == everything[~nan]).all()
    assert (back[nan] == 0x7FFF).all()

    form = half.FORMATS[dtype]
    low = np.arange(form.infinity, dtype=np.uint16)
    ends = half.upcast(low, dtype).astype(np.float64)
    above = np.append(ends[1:], 2.0 ** (form.exponents - form.bias))
    middle = ((ends + above) / 2).astype(np.float32)
    assert (middle == (ends + above) / 2).all()
    assert (half.downcast(middle, dtype) == low + (low & 1)).all()
    assert (half.downcast(np.nextafter(middle, np.float32(0)), dtype) == low).all()
    assert (half.downcast(-np.nextafter(middle, np.float32(np.inf)), dtype) == low + 0x8001).all()
