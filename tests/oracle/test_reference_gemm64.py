"""``reference.gemm.chain64`` against the contract ``fma64`` in exact scalar arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
import reference_exact as exact
from numpy.typing import NDArray

from ptxgen.oracle.gemm import chain64

F64 = NDArray[np.float64]
SEED = 7
KINDS = ("normal", "wide", "cancelling", "subnormal", "zeros", "nonfinite", "bits")


def operand(kind: str, rng: np.random.Generator, shape: tuple[int, int]) -> F64:
    """Random operands that stress one property."""
    x = rng.standard_normal(shape)
    match kind:
        case "wide":
            x = np.ldexp(x, rng.integers(-300, 300, shape))
        case "cancelling":
            x = np.ldexp(np.round(x * 4), rng.integers(-30, 30, shape))
            x[:, shape[1] // 2 :] = -x[:, : (shape[1] + 1) // 2]
        case "subnormal":
            x = np.ldexp(x, rng.integers(-545, -505, shape))
        case "zeros":
            x = rng.choice([0.0, -0.0, -1.0, 1.0, 2.0**-600], shape)
        case "nonfinite":
            special = rng.choice([np.inf, -np.inf, np.nan, 1e308, -1e308, 0.0], shape)
            x = np.where(rng.random(shape) < 0.1, special, x)
        case "bits":
            x = rng.integers(0, 2**64, shape, dtype=np.uint64).view(np.float64)
    return x


def exact_chain(a: F64, b: F64, chunk: int) -> F64:
    rows, columns = a.tolist(), b.T.tolist()
    out = [[exact.chain64(row, column, chunk) for column in columns] for row in rows]
    return np.array(out, np.float64).reshape(a.shape[0], b.shape[1])


def assert_same(actual: F64, expected: F64) -> None:
    """Equal bits, all NaN being one."""
    different = actual.view(np.uint64) != expected.view(np.uint64)
    different &= ~(np.isnan(actual) & np.isnan(expected))
    assert not different.any(), f"seed {SEED}: {actual[different]} instead of {expected[different]}"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("m", "k", "n", "chunk"),
    [(3, 40, 5, 40), (3, 40, 5, 1 << 31), (1, 37, 4, 8), (4, 16, 1, 5), (2, 9, 3, 1), (5, 1, 2, 1)],
)
def test_contract(kind: str, m: int, k: int, n: int, chunk: int) -> None:
    rng = np.random.default_rng(SEED)
    a, b = operand(kind, rng, (m, k)), operand(kind, rng, (k, n))
    assert_same(chain64(a, b, chunk), exact_chain(a, b, chunk))


def test_one_rounding_a_step() -> None:
    """A product rounded before it is added gives other bits, in many outputs."""
    rng = np.random.default_rng(SEED)
    a, b = operand("normal", rng, (8, 32)), operand("normal", rng, (32, 8))
    twice = np.zeros((8, 8))
    for k in range(32):
        twice += a[:, k, None] * b[k]
    assert np.count_nonzero(chain64(a, b, 32) != twice) > 16


def test_the_order_of_chunks_and_steps_counts() -> None:
    rng = np.random.default_rng(SEED)
    a, b = operand("wide", rng, (8, 64)), operand("wide", rng, (64, 8))
    expected = chain64(a, b, 16)
    assert np.any(chain64(a[:, ::-1], b[::-1], 16) != expected)
    a, b = operand("normal", rng, (8, 64)), operand("normal", rng, (64, 8))
    assert np.any(chain64(a, b, 16) != chain64(a, b, 64))


@pytest.mark.parametrize(("m", "k", "n"), [(3, 0, 4), (0, 5, 4), (3, 5, 0)])
def test_empty(m: int, k: int, n: int) -> None:
    out = chain64(np.ones((m, k)), np.ones((k, n)), 16)
    assert out.shape == (m, n)
    assert not out.any()
    assert not np.signbit(out).any()


def test_no_negative_zero() -> None:
    """A chain of products that are -0.0 ends as +0.0."""
    out = chain64(np.full((1, 3), -0.0), np.ones((3, 1)), 2)
    assert out.tolist() == [[0.0]]
    assert not np.signbit(out).any()
