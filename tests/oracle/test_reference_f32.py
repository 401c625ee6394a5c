"""``reference.f32`` against exact rational arithmetic."""

from __future__ import annotations

import itertools
import operator
import warnings
from fractions import Fraction

import numpy as np
import pytest
import reference_exact as exact
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ptxgen.oracle import f32

F32 = NDArray[np.float32]
SEED = 20250

SPECIAL = [0.0, 1.0, 1.5, 2.0**-149, 2.0**-126, 2.0**-126 - 2.0**-149, 2.0**-75, 2.0**-63]
SPECIAL += [2.0**24 + 2, 2.0**24 - 1, 1 + 2.0**-23, 1 - 2.0**-24, 2.0**103, 2.0**127]
SPECIAL += [2.0**128 - 2.0**104, 2.0**64 - 2.0**40, float("inf"), float("nan")]
SPECIAL += [-x for x in SPECIAL]


def assert_same(actual: F32, expected: F32, *operands: F32, context: str = "") -> None:
    """Equal bits, all NaN being one."""
    kind = f"u{actual.itemsize}"
    different = actual.view(kind) != expected.view(kind)
    different &= ~(np.isnan(actual) & np.isnan(expected))
    if different.any():
        i = int(np.flatnonzero(different)[0])
        values = ", ".join(float(x.reshape(-1)[i]).hex() for x in operands)
        raise AssertionError(
            f"{context} {different.sum()} of {different.size} differ, first at {i}: ({values}) "
            f"gave {float(actual.reshape(-1)[i]).hex()}, "
            f"expected {float(expected.reshape(-1)[i]).hex()}"
        )


def exact_fma(a: F32, b: F32, c: F32) -> F32:
    triples = zip(a.tolist(), b.tolist(), c.tolist(), strict=True)
    return np.array([exact.fma(*triple) for triple in triples], np.float32)


def naive_fma(a: F32, b: F32, c: F32) -> F32:
    """The float64 computation without the care for double rounding."""
    wide = a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)
    return wide.astype(np.float32)


def test_special_values() -> None:
    a, b, c = (
        np.array(x, np.float32) for x in zip(*itertools.product(SPECIAL, repeat=3), strict=True)
    )
    assert_same(f32.fma(a, b, c), exact_fma(a, b, c), a, b, c)


def adversarial(rng: np.random.Generator, count: int) -> tuple[F32, F32, F32]:
    """Sums a hair beside a rounding boundary, which float64 cannot tell from the boundary.

    ``c`` is any f32 number, ``a * b = ±(half an ulp of c) * (1 - t**2)`` with
    ``t = i * 2**-23``: float64 keeps 53 bits of the sum and drops the tail, as long as it is
    small against 2**-53.
    """
    mantissa = rng.integers(1 << 23, 1 << 24, count)
    subnormal = rng.random(count) < 0.2
    mantissa = np.where(subnormal, rng.integers(1, 1 << 23, count), mantissa)
    exponent = np.where(subnormal, -149, rng.integers(-149, 105, count))  # of the last bit
    sign = rng.choice([-1.0, 1.0], count)
    c = np.ldexp(mantissa * sign, exponent)
    tail = rng.integers(1, 1 << 7, count) * 2.0**-23
    scale = rng.integers(-20, 20, count)
    half = (exponent - 1) // 2 + scale
    a = np.ldexp(1 + tail, half) * rng.choice([-1.0, 1.0], count)
    b = np.ldexp(1 - tail, exponent - 1 - half)
    return a.astype(np.float32), b.astype(np.float32), c.astype(np.float32)


def test_double_rounding() -> None:
    rng = np.random.default_rng(SEED)
    a, b, c = adversarial(rng, 120_000)
    expected = exact_fma(a, b, c)
    assert_same(f32.fma(a, b, c), expected, a, b, c, context=f"seed {SEED}:")
    # The cases would catch an oracle that rounds twice.
    wrong = naive_fma(a, b, c).view(np.uint32) != expected.view(np.uint32)
    assert np.count_nonzero(wrong) > 40_000
    subnormal = np.abs(expected) < 2.0**-126
    assert np.count_nonzero(wrong & subnormal) > 4_000


def test_tiny_addend_beside_an_exact_tie() -> None:
    """The product is on the boundary (25 significant bits), the addend is the hair."""
    rng = np.random.default_rng(SEED)
    count = 20_000
    a = rng.integers(1 << 11, 1 << 13, count) | 1
    b = rng.integers(1 << 11, 1 << 13, count) | 1
    keep = (a * b >= 1 << 24) & (a * b < 1 << 25)
    assert np.count_nonzero(keep) > 3_000
    first = a[keep].astype(np.float32)
    scale = np.ldexp(np.float32(1), rng.integers(-40, 40, first.size)).astype(np.float32)
    second = b[keep].astype(np.float32) * scale
    tail = np.ldexp(1.0, -rng.integers(29, 60, first.size)).astype(np.float32)
    third = scale * tail * rng.choice([-1, 1], first.size).astype(np.float32)
    expected = exact_fma(first, second, third)
    assert_same(f32.fma(first, second, third), expected, first, second, third)
    wrong = naive_fma(first, second, third) != expected
    assert np.count_nonzero(wrong) > 1_000


def test_overflow_threshold() -> None:
    """2**128 - 2**103 overflows, a hair less does not, whatever float64 makes of the sum."""
    largest = np.float32(2.0**128 - 2.0**104)
    one = np.float32(2.0**51)
    below, above = one * np.float32(1 - 2.0**-23), one * np.float32(1 + 2.0**-23)
    a = np.array([one, above, one, one], np.float32)
    b = np.array([2 * one, below * 2, below * 2, above * 2], np.float32)
    c = np.array([largest] * 4, np.float32)
    expected = np.array([np.inf, largest, largest, np.inf], np.float32)
    assert_same(exact_fma(a, b, c), expected, a, b, c)
    assert_same(f32.fma(a, b, c), expected, a, b, c)
    assert np.isinf(naive_fma_quiet(a, b, c)[1])


def naive_fma_quiet(a: F32, b: F32, c: F32) -> F32:
    with np.errstate(over="ignore"):
        return naive_fma(a, b, c)


def test_cancellation() -> None:
    """``a * b - fl(a * b)`` is the rounding error of the product, and exact."""
    rng = np.random.default_rng(SEED)
    a, b = rng.standard_normal((2, 5_000)).astype(np.float32)
    c = -(a * b)
    assert_same(f32.fma(a, b, c), exact_fma(a, b, c), a, b, c, context=f"seed {SEED}:")


def test_subnormal_results() -> None:
    rng = np.random.default_rng(SEED)
    count = 20_000
    a = np.ldexp(rng.uniform(1, 2, count), rng.integers(-90, -60, count)).astype(np.float32)
    b = np.ldexp(rng.uniform(-2, 2, count), rng.integers(-90, -60, count)).astype(np.float32)
    c = np.ldexp(rng.integers(-40, 40, count).astype(np.float64), -149).astype(np.float32)
    assert_same(f32.fma(a, b, c), exact_fma(a, b, c), a, b, c, context=f"seed {SEED}:")


bits = st.integers(0, 2**32 - 1)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(bits, bits, bits), min_size=1, max_size=20))
def test_random_bits(triples: list[tuple[int, int, int]]) -> None:
    a, b, c = (np.array(x, np.uint32).view(np.float32) for x in zip(*triples, strict=True))
    assert_same(f32.fma(a, b, c), exact_fma(a, b, c), a, b, c)


@settings(max_examples=300, deadline=None)
@given(bits, bits, st.integers(-30, 30), st.integers(-2, 2))
def test_random_bits_near_ties(a_bits: int, b_bits: int, shift: int, nudge: int) -> None:
    """An addend with the product's own leading digits, some binades off."""
    a, b = (np.array([x], np.uint32).view(np.float32) for x in (a_bits, b_bits))
    with np.errstate(all="ignore"):
        c = np.ldexp(-(a * b), shift).astype(np.float32)
    c = (c.view(np.uint32) + np.uint32(nudge % 2**32)).view(np.float32)
    assert_same(f32.fma(a, b, c), exact_fma(a, b, c), a, b, c)


def test_blocks_broadcasting_and_shapes() -> None:
    rng = np.random.default_rng(SEED)
    a = rng.standard_normal((3, 1, 2 * f32.BLOCK + 5)).astype(np.float32)
    b = rng.standard_normal((4, 1)).astype(np.float32)
    result = f32.fma(a, b, np.float32(0.1))
    assert result.shape == (3, 4, a.shape[2])
    for i, j in itertools.product(range(3), range(4)):
        assert_same(result[i, j], f32.fma(a[i, 0], b[j, 0], np.float32(0.1)))
    assert f32.fma(2.0, 3.0, 1.0).shape == ()
    assert f32.fma(2.0, 3.0, 1.0) == 7.0
    assert f32.fma(np.zeros((0, 3)), 1.0, 1.0).shape == (0, 3)


def test_no_warnings() -> None:
    values = np.array([np.inf, -np.inf, np.nan, 3e38, 1e-45, 0.0], np.float32)
    signalling = np.array([0x7F800001], np.uint32).view(np.float32)
    a, b = np.meshgrid(np.append(values, signalling), values)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f32.fma(a, a, b)
        f32.add(a, b)
        f32.mul(a, b)
        f32.div(a, b)


@pytest.mark.parametrize("name", ["add", "mul", "div"])
def test_numpy_rounds_once(name: str) -> None:
    """NumPy's own f32 operations are IEEE's, subnormals kept."""
    rng = np.random.default_rng(SEED)
    operands = rng.integers(0, 2**32, (2, 20_000), dtype=np.uint32).view(np.float32)
    finite = np.isfinite(operands).all(axis=0) & (operands != 0).all(axis=0)
    a, b = operands[:, finite]
    exactly = {"add": operator.add, "mul": operator.mul, "div": operator.truediv}[name]
    pairs = zip(a.tolist(), b.tolist(), strict=True)
    expected = [exact.round_f32(exactly(Fraction(x), Fraction(y))) for x, y in pairs]
    assert_same(getattr(f32, name)(a, b), np.array(expected, np.float32), a, b)
