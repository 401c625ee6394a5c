"""``reference.f64.fma`` against rational arithmetic, bit by bit."""

from __future__ import annotations

import itertools
from typing import Any

import interp_exact as exact
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ptxgen.oracle import f64

pytestmark = pytest.mark.filterwarnings("error")
F64 = NDArray[np.float64]
SEED = 641


def bits(value: F64) -> list[int]:
    return [exact.canonical(x, "f64") for x in value.reshape(-1).view(np.uint64).tolist()]


def assert_right(a: F64, b: F64, c: F64) -> F64:
    """Every lane has the bits of the exact result; returns what fma gave."""
    found = f64.fma(a, b, c)
    columns = [bits(np.ascontiguousarray(np.broadcast_to(x, found.shape))) for x in (a, b, c)]
    for lane, (got, *given_) in enumerate(zip(bits(found), *columns, strict=True)):
        expected = exact.operate("fma", "f64", "rn", *given_)
        assert got == expected, (
            f"lane {lane}: fma({', '.join(map(hex, given_))}) gave {got:#x}, expected {expected:#x}"
        )
    return found


def random(rng: np.random.Generator, count: int, low: int, high: int) -> F64:
    """Numbers of any significand and sign, with exponents from ``low`` to ``high``."""
    significand = rng.integers(1 << 52, 1 << 53, count).astype(np.float64)
    sign = rng.choice([-1.0, 1.0], count)
    return sign * np.ldexp(significand, rng.integers(low, high + 1, count) - 52)


@pytest.mark.parametrize("low,high", [(-3, 3), (-60, 60), (-500, 500), (-1074, 1023)])
def test_random(low: int, high: int) -> None:
    rng = np.random.default_rng([SEED, high])
    assert_right(*(random(rng, 5000, low, high) for _ in range(3)))


def test_cancellation() -> None:
    """The addend is the rounded product, or next to it: what is left is mostly its error."""
    rng = np.random.default_rng(SEED)
    for low, high in ((-4, 4), (-490, -470), (-540, -500), (480, 511)):
        a, b = (random(rng, 1000, low, high) for _ in range(2))
        near = a * b
        for c in (-near, -np.nextafter(near, np.inf), -np.nextafter(near, 0.0)):
            found = assert_right(a, b, c)
        if low > -480:
            assert np.count_nonzero(found != near + c) > 900  # a rounded product would be wrong


def test_ties() -> None:
    """Sums that lie on a midpoint, or that a last bit of the product moves off it."""
    rng = np.random.default_rng(SEED)
    for shift in (-1000, -300, 0, 300, 900):
        c = random(rng, 2000, 0, 0)
        half = np.ldexp(1.0, -53)
        a = half * rng.choice([1.0, 3.0, -1.0, 1 + 2.0**-30, 1 - 2.0**-30], 2000)
        b = rng.choice([1.0, 1 + 2.0**-30, 1 - 2.0**-30, 1 + 2.0**-52, 1 - 2.0**-53], 2000)
        assert_right(np.ldexp(a, shift // 2), np.ldexp(b, shift - shift // 2), np.ldexp(c, shift))


def test_naive_arithmetic_would_not_do() -> None:
    rng = np.random.default_rng(SEED)
    a, b, c = (random(rng, 2000, -2, 2) for _ in range(3))
    assert np.count_nonzero(f64.fma(a, b, c) != a * b + c) > 100


def test_subnormal_results() -> None:
    rng = np.random.default_rng(SEED)
    a = random(rng, 4000, -700, -300)
    b = np.ldexp(random(rng, 4000, 0, 0), -1074 - np.frexp(a)[1] + rng.integers(-4, 56, 4000))
    c = rng.integers(-9, 10, 4000) * 2.0**-1074
    assert_right(a, b, c)
    assert_right(a, b, np.zeros(1))
    assert_right(a, b, rng.choice([-1.0, 1.0], 4000) * 2.0**-1022)


def test_overflow() -> None:
    """Sums around the largest number, and half a step above it, overflow as IEEE says."""
    top = np.finfo(np.float64).max
    half = np.ldexp(1.0, 970)
    a = np.array([half, half, half, top, top, -top, 2.0**600, -(2.0**600)])
    b = np.array([1.0, 1 - 2.0**-53, -1.0, 1.0, 2.0, 2.0, 2.0**600, 2.0**600])
    for c in (top, -top, np.nextafter(top, 0.0), half, 0.0, np.inf, -np.inf):
        assert_right(a, b, np.full(8, c))
    rng = np.random.default_rng(SEED)
    assert_right(
        random(rng, 2000, 400, 520), random(rng, 2000, 490, 510), random(rng, 2000, 1000, 1023)
    )


def test_all_edges() -> None:
    positive = [0, 1, 2, (1 << 52) - 1, 1 << 52, (1 << 52) + 1, 0x3FEFFFFFFFFFFFFF]
    positive += [0x3FF0000000000000, 0x3FF0000000000001, 0x3FF8000000000000, 0x4340000000000000]
    positive += [0x7FE0000000000000, 0x7FEFFFFFFFFFFFFF, 0x7FF0000000000000, 0x7FF8000000000001]
    both = [x | sign for x in positive for sign in (0, 1 << 63)]
    triples = np.array(list(itertools.product(both, repeat=3)), np.uint64).T.copy()
    assert_right(*triples.view(np.float64))


@settings(max_examples=100)
@given(st.lists(st.tuples(*[st.integers(0, 2**64 - 1)] * 3), min_size=1, max_size=20))
def test_any_bits(triples: list[tuple[int, int, int]]) -> None:
    assert_right(*np.array(triples, np.uint64).T.copy().view(np.float64))


def test_broadcasting_gives_the_same_bits() -> None:
    """A column times a row is cut into blocks, with and without lanes that need care."""
    rng = np.random.default_rng(SEED)
    for low, high in ((-3, 3), (-600, 600)):
        a, b = random(rng, 300, low, high)[:, None], random(rng, 170, low, high)[None, :]
        c = random(rng, 300 * 170, 2 * low, min(2 * high, 1000)).reshape(300, 170)
        whole = f64.fma(a, b, c)
        assert whole.shape == (300, 170)
        pieces = f64.fma(
            np.repeat(a, 170, 1).reshape(-1), np.tile(b, (300, 1)).reshape(-1), c.reshape(-1)
        )
        assert whole.tobytes() == pieces.tobytes()
        assert f64.fma(a[:, 0], b[0, 0], 1.0).shape == (300,)


def test_shapes() -> None:
    none: Any = f64.fma(np.zeros((0, 3)), 1.0, 2.0)
    assert none.shape == (0, 3)
    one = f64.fma(3.0, 5.0, 7.0)
    assert one.shape == () and float(one) == 22.0
