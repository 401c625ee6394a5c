"""``interp.floats`` against rational arithmetic: the f32 fma, and conversions bit by bit."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import interp_exact as exact
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ptxgen.interp.values import floats
from ptxgen.oracle import f32 as reference

SEED = 20251
DTYPES: dict[str, Any] = {
    "f16": np.float16,
    "bf16": np.uint16,
    "f32": np.float32,
    "f64": np.float64,
}

pytestmark = pytest.mark.filterwarnings("error")


@pytest.fixture(autouse=True)
def quiet() -> Any:
    with np.errstate(all="ignore"):
        yield


def from_bits(bits: Any, kind: str) -> NDArray[Any]:
    return np.array(bits, f"u{exact.width(kind) // 8}").view(DTYPES[kind])


def to_bits(value: NDArray[Any], kind: str) -> list[int]:
    bits = value.view(f"u{exact.width(kind) // 8}").tolist()
    return [exact.canonical(x, kind) for x in bits]


def edges(kind: str) -> list[int]:
    """Bit patterns around all boundaries of the format, of both signs."""
    exponent_bits, fraction_bits = exact.FORMATS[kind]
    one = ((1 << (exponent_bits - 1)) - 1) << fraction_bits
    hidden = 1 << fraction_bits
    positive = [0, 1, 2, 3, hidden >> 1, hidden - 1, hidden, hidden + 1, 2 * hidden]
    positive += [one - 1, one, one + 1, one + (hidden >> 1), one + 3 * hidden]
    positive += [one - (fraction_bits // 2) * hidden, one + fraction_bits * hidden + 1]
    top = exact.infinity(kind)
    positive += [top - hidden, top - 1, top, top + 1, exact.nan(kind)]
    sign = 1 << (exact.width(kind) - 1)
    return positive + [x | sign for x in positive]


def assert_same(actual: list[int], expected: list[int], *operands: Any, what: str = "") -> None:
    wrong = [i for i, (x, y) in enumerate(zip(actual, expected, strict=True)) if x != y]
    if wrong:
        i = wrong[0]
        given = ", ".join(hex(x[i]) for x in operands)
        raise AssertionError(
            f"{what}: {len(wrong)} of {len(actual)} differ, first at {i}: ({given}) gave "
            f"{actual[i]:#x}, expected {expected[i]:#x}"
        )


# --- fma.rn.f32 -----------------------------------------------------------------------------
def same_fma(a: NDArray[Any], b: NDArray[Any], c: NDArray[Any]) -> None:
    columns = [x.astype(np.float32) for x in (a, b, c)]
    bits = [x.view(np.uint32).tolist() for x in columns]
    expected = [exact.operate("fma", "f32", "rn", *x) for x in zip(*bits, strict=True)]
    assert_same(to_bits(floats.fma_f32(*columns), "f32"), expected, *bits, what="fma")


def hard_triples(rng: np.random.Generator, count: int) -> tuple[NDArray[Any], ...]:
    """Sums next to midpoints: products with a few bits far below an addend's half unit."""
    exponent = rng.integers(-140, 120, count)
    c = np.ldexp(rng.integers(1 << 23, 1 << 24, count).astype(np.float64), exponent - 23)
    half = np.ldexp(1.0, np.maximum(exponent, -126) - 24)
    near = rng.integers(1, 8, count) * 2.0 - 1 + rng.choice([0.0, 2.0**-23, -(2.0**-23)], count)
    a = np.where(rng.random(count) < 0.5, 1.0, 1 + 2.0**-23) * rng.choice([-1.0, 1.0], count)
    return a, half * near, c


def test_fma_on_edges() -> None:
    triples = np.array(list(itertools.product(edges("f32"), repeat=3)), np.uint32)
    rng = np.random.default_rng(SEED)
    some = triples[rng.choice(len(triples), 25_000, replace=False)]
    same_fma(*(x.copy().view(np.float32) for x in some.T))


def test_fma_near_midpoints() -> None:
    a, b, c = hard_triples(np.random.default_rng(SEED), 20_000)
    same_fma(a, b, c)
    rounded = [x.astype(np.float32).astype(np.float64) for x in (a, b, c)]
    naive = (rounded[0] * rounded[1] + rounded[2]).astype(np.float32)
    right = floats.fma_f32(*(x.astype(np.float32) for x in (a, b, c)))
    assert np.count_nonzero(naive != right) > 100  # the cases are hard


def test_fma_of_subnormals() -> None:
    rng = np.random.default_rng(SEED)
    a = np.ldexp(rng.standard_normal(10_000), rng.integers(-100, -20, 10_000))
    b = np.ldexp(rng.standard_normal(10_000), -149 - np.frexp(a)[1] + rng.integers(-4, 26, 10_000))
    c = rng.integers(-5, 6, 10_000) * 2.0**-149
    same_fma(a, b, c)


@settings(max_examples=200)
@given(st.lists(st.tuples(*[st.integers(0, 2**32 - 1)] * 3), min_size=1, max_size=20))
def test_fma_of_any_bits(triples: list[tuple[int, int, int]]) -> None:
    columns = np.array(triples, np.uint32).T.copy().view(np.float32)
    with np.errstate(all="ignore"):
        same_fma(*columns)


def test_fma_agrees_with_the_reference() -> None:
    rng = np.random.default_rng(SEED)
    bits = rng.integers(0, 1 << 32, (3, 1 << 20), np.uint32)
    bits[2, ::2] = (bits[0] * 2654435761)[::2]
    bits[1, ::4] = (bits[1, ::4] & 0x807FFFFF) | 0x3F800000  # |b| from 1 to 2, and c near a
    bits[2, ::4] = (bits[0, ::4] & 0x7F800000) | (bits[2, ::4] & 0x807FFFFF)
    a, b, c = bits.view(np.float32)
    ours, theirs = floats.fma_f32(a, b, c), reference.fma(a, b, c)
    different = (ours.view(np.uint32) != theirs.view(np.uint32)) & ~(
        np.isnan(ours) & np.isnan(theirs)
    )
    assert not different.any()


def test_fma_of_few_bits() -> None:
    """Products of bf16 numbers: many exact sums on midpoints, which need nothing."""
    rng = np.random.default_rng(SEED)
    a, b = (rng.integers(-255, 256, 10_000).astype(np.float64) for _ in range(2))
    same_fma(a, b * 2.0**-14, rng.integers(1 << 22, 1 << 24, 10_000) * 2.0**-13)


@pytest.mark.parametrize("uniform", range(8))
def test_fma_takes_uniform_operands(uniform: int) -> None:
    columns = [x.astype(np.float32) for x in hard_triples(np.random.default_rng(SEED), 4096)]
    shapes = [x[:1] if uniform >> i & 1 else x for i, x in enumerate(columns)]
    expected = reference.fma(*shapes)
    actual = floats.fma_f32(*shapes)
    assert actual.shape == expected.shape and actual.dtype == np.float32
    assert (actual.view(np.uint32) == expected.view(np.uint32)).all()


# --- Conversions ----------------------------------------------------------------------------
@pytest.mark.parametrize("mode", floats.MODES)
@pytest.mark.parametrize("kind", ["f16", "bf16", "f32"])
def test_narrowing(kind: str, mode: str) -> None:
    rng = np.random.default_rng(SEED)
    form = floats.FORMATS[kind]
    low, high = form.min_exponent - form.precision - 1, form.max_exponent + 2
    # Multiples of a quarter of the unit: numbers, midpoints, and what is just off them.
    exponent = rng.integers(low, high, 4000)
    units = rng.integers(1 << form.precision, 1 << (form.precision + 2), 4000).astype(np.float64)
    value = np.ldexp(units, exponent - form.precision - 1)
    value = np.concatenate((value, np.nextafter(value, 0), np.nextafter(value, np.inf)))
    value = np.concatenate((value, from_bits(edges("f64"), "f64")))
    value *= rng.choice([-1.0, 1.0], len(value))
    bits = value.view(np.uint64).tolist()
    expected = [exact.encode(exact.decode(x, "f64"), kind, mode) for x in bits]
    actual = to_bits(floats.narrow(value, kind, mode), kind)
    assert_same(actual, expected, bits, what=f"cvt.{mode}.{kind}.f64")


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_widening_of_all_numbers(kind: str) -> None:
    bits = list(range(1 << 16))
    expected = [exact.encode(exact.decode(x, kind), "f64") for x in bits]
    assert_same(to_bits(floats.widen(from_bits(bits, kind), kind), "f64"), expected, bits)


@functools.cache
def decoded(kind: str) -> list[Any]:
    """Returns the exact values of all numbers of a format of 16 bits, by bit pattern."""
    return [exact.decode(x, kind) for x in range(1 << 16)]


@pytest.mark.parametrize("mode", floats.MODES)
@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_integral_values_of_all_numbers(kind: str, mode: str) -> None:
    bits = list(range(1 << 16))
    expected = []
    for value in decoded(kind):
        if value is not None and not isinstance(value, float):
            whole = exact.round_integer(value, mode)
            sign = -0.0 if value < 0 else 0.0
            value = exact.Fraction(whole) if whole else sign
        expected.append(exact.encode(value, kind))
    actual = to_bits(floats.integral(from_bits(bits, kind), kind, mode), kind)
    assert_same(actual, expected, bits)


# --- Arithmetic -----------------------------------------------------------------------------
def operands(kind: str, count: int, rng: np.random.Generator) -> list[list[int]]:
    """Edges in all pairs, then numbers of near exponents, whose results are hard to round."""
    pool = edges(kind)
    bits = exact.width(kind)
    columns = [list(x) for x in zip(*itertools.product(pool, repeat=2), strict=True)]
    columns.append([pool[i] for i in rng.integers(0, len(pool), len(columns[0]))])
    fraction_bits = exact.FORMATS[kind][1]
    start = rng.integers(0, exact.infinity(kind) >> fraction_bits, count)
    for column in columns:
        exponent = np.clip(
            start + rng.integers(-3, 4, count), 0, exact.infinity(kind) >> fraction_bits
        )
        near_one = rng.random(count) < 0.3
        exponent = np.where(near_one, (1 << (bits - 2 - fraction_bits)) - 1, exponent)
        fraction = rng.integers(0, 1 << fraction_bits, count)
        fraction = np.where(rng.random(count) < 0.3, fraction & 3, fraction)
        sign = rng.integers(0, 2, count)
        column += [
            s << (bits - 1) | min(int(e) << fraction_bits | int(f), exact.infinity(kind))
            for s, e, f in zip(sign.tolist(), exponent, fraction, strict=True)
        ]
    return columns


ARITHMETIC = [
    (operation, kind, mode)
    for operation in ("add", "sub", "mul", "fma", "div", "sqrt", "rcp")
    for kind in DTYPES
    for mode in floats.MODES
    if (kind in ("f32", "f64") or (mode == "rn" and operation in ("add", "sub", "mul", "fma")))
]


@pytest.mark.parametrize("operation, kind, mode", ARITHMETIC)
def test_arithmetic(operation: str, kind: str, mode: str) -> None:
    arity = {"fma": 3, "sqrt": 1, "rcp": 1}.get(operation, 2)
    columns = operands(kind, 600, np.random.default_rng(SEED))[:arity]
    expected = [exact.operate(operation, kind, mode, *x) for x in zip(*columns, strict=True)]
    function = floats.function(operation, kind, mode)
    arrays = [from_bits(x, kind) for x in columns]
    result = function(*arrays)
    assert result.dtype == arrays[0].dtype
    assert_same(to_bits(result, kind), expected, *columns, what=f"{operation}.{mode}.{kind}")
    if arity > 1:
        for at in (0, len(arrays[0]) - 1):
            mixed = [arrays[0][at : at + 1], *arrays[1:]]
            spread = [np.repeat(mixed[0], len(arrays[0])), *arrays[1:]]
            assert to_bits(function(*mixed), kind) == to_bits(function(*spread), kind)
    single = function(*(x[:1] for x in arrays))
    assert single.shape == (1,)


def test_saturation_and_extremes_of_zeros() -> None:
    x = np.array([-0.0, -1.0, 0.5, 2.0, np.nan, np.inf], np.float32)
    clamped = floats.saturate("f32")(x)
    assert clamped.tobytes() == np.array([0, 0, 0.5, 1, 0, 1], np.float32).tobytes()
    plus, minus = np.zeros(1, np.float32), -np.zeros(1, np.float32)
    for a, b in ((plus, minus), (minus, plus)):
        assert np.signbit(floats.extreme("min", "f32", nan=False)(a, b))[0]
        assert not np.signbit(floats.extreme("max", "f32", nan=False)(a, b))[0]
