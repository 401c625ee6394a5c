"""``reference.chain`` and ``chain16`` against the contracts in exact scalar arithmetic."""

from __future__ import annotations

import warnings

import bits
import numpy as np
import pytest
import reference_exact as exact
from numpy.typing import NDArray
from test_reference_dot16 import CORES, exact_step
from test_reference_f32 import assert_same

from ptxgen.numerics.contract import TENSOR_CORES
from ptxgen.oracle import chain, chain16, f32, gemm
from ptxgen.oracle.dot16 import dot16

F32 = NDArray[np.float32]
SEED = 7


def exact_chain(a: F32, b: F32, chunk: int) -> F32:
    rows, columns = a.tolist(), b.T.tolist()
    out = [[exact.chain(row, column, chunk) for column in columns] for row in rows]
    return np.array(out, np.float32).reshape(a.shape[0], b.shape[1])


def operand(kind: str, rng: np.random.Generator, shape: tuple[int, int]) -> F32:
    """Random operands that stress one property."""
    x = rng.standard_normal(shape)
    match kind:
        case "normal":
            pass
        case "wide":
            x = np.ldexp(x, rng.integers(-60, 60, shape))
        case "bits":
            return rng.integers(0, 2**32, shape, dtype=np.uint32).view(np.float32)
        case "cancelling":
            x[:, shape[1] // 2 :] = -x[:, : (shape[1] + 1) // 2]
            x = np.abs(x) if shape[0] % 2 else x
        case "bf16":
            return (x.astype(np.float32).view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
        case "subnormal":
            x = np.ldexp(x, rng.integers(-80, -66, shape))
        case "zeros":
            x = rng.choice([0.0, -0.0, -1.0, 1.0], shape)
        case "nonfinite":
            special = rng.choice([np.inf, -np.inf, np.nan, 3e38, -3e38, 0.0], shape)
            x = np.where(rng.random(shape) < 0.1, special, x)
    return x.astype(np.float32)


KINDS = ["normal", "wide", "bits", "cancelling", "bf16", "subnormal", "zeros", "nonfinite"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("m", "k", "n", "chunk"),
    [
        (3, 40, 5, 40),
        (3, 40, 5, 1 << 31),
        (1, 37, 4, 8),
        (4, 16, 1, 5),
        (2, 9, 3, 1),
        (2, 12, 3, 4),
        (5, 1, 2, 1),
        (1, 200, 1, 64),
    ],
)
def test_contract(kind: str, m: int, k: int, n: int, chunk: int) -> None:
    rng = np.random.default_rng(SEED)
    a, b = operand(kind, rng, (m, k)), operand(kind, rng, (k, n))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        actual = chain(a, b, chunk)
    assert_same(actual, exact_chain(a, b, chunk), context=f"seed {SEED}:")


def test_each_kind_does_what_it_is_for() -> None:
    """The inputs reach subnormals, infinities, NaN, and sums that naive rounding gets wrong."""
    rng = np.random.default_rng(SEED)

    def result(kind: str) -> F32:
        return chain(operand(kind, rng, (8, 64)), operand(kind, rng, (64, 8)), 16)

    assert np.any((np.abs(result("subnormal")) < 2.0**-126) & (result("subnormal") != 0))
    nonfinite = result("nonfinite")
    assert np.isnan(nonfinite).any()
    assert np.isinf(chain(np.full((1, 2), 3e38, np.float32), np.ones((2, 1), np.float32), 2)).all()


@pytest.mark.parametrize("exponent", [0, -126, -149])
def test_double_rounding(exponent: int) -> None:
    """A step that ends a hair beside a rounding boundary: c, then c + half an ulp * (1 - t**2)."""
    rng = np.random.default_rng(SEED)
    mantissa = rng.integers(1 << 22, 1 << 23, 200) + (1 << 23 if exponent > -149 else 0)
    c = np.ldexp(mantissa * 1.0, max(exponent - 23, -149))
    half, t = max(exponent - 24, -150), 77 * 2.0**-23
    signs = rng.choice([-1.0, 1.0], 200)
    a = np.stack([c, np.ldexp(signs * (1 + t), half // 2)], axis=1).astype(np.float32)
    b = np.array([[1.0], [np.ldexp(1 - t, half - half // 2)]], np.float32)
    assert_same(chain(a, b, 2), exact_chain(a, b, 2), context=f"seed {SEED}:")
    # Rounding twice is wrong where c is odd.
    twice = (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float32)
    assert np.count_nonzero(twice != chain(a, b, 2)) > 50


@pytest.mark.parametrize("sign_a", [1.0, -1.0])
@pytest.mark.parametrize("chunk", [1, 2, 3])
def test_negative_zero_never_leaves_a_chain(sign_a: float, chunk: int) -> None:
    """A chain never ends in -0.0: only an underflow makes one, and the last addition turns it into
    +0.0.
    """
    tiny = np.float32(2.0**-100)
    a = np.full((1, 3), sign_a * tiny, np.float32)
    b = np.full((3, 1), -sign_a * tiny, np.float32)
    assert f32.fma(a[0, 0], b[0, 0], 0.0).view(np.uint32) == 0x80000000  # the case is real
    assert chain(a, b, chunk).view(np.uint32).tolist() == [[0]]


def test_chunks_are_summed_ascending() -> None:
    big = 2.0**24  # big + 1 rounds to big, 1 - big is exact

    def total(values: list[float], chunk: int) -> float:
        ones = np.ones((len(values), 1), np.float32)
        return float(chain(np.array([values], np.float32), ones, chunk).item())

    assert total([big, 1, 1, -big], 4) == 0
    assert total([big, 1, 1, -big], 2) == 1
    assert total([big, 1, 1, -big], 3) == 0
    assert total([big, 1, -big], 1) == 0  # (big + 1) - big
    assert total([1, -big, big], 1) == 1  # the other end first


@pytest.mark.parametrize("block", [1, 7, 64, 1 << 20])
def test_blocks_do_not_show(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(SEED)
    a, b = operand("normal", rng, (9, 50)), operand("normal", rng, (50, 11))
    for chunk in (50, 8):
        expected = chain(a, b, chunk)
        with monkeypatch.context() as patch:
            patch.setattr(gemm, "BLOCK", block)
            assert_same(chain(a, b, chunk), expected, context=f"seed {SEED}:")


def test_against_a_chain_of_fma() -> None:
    """A larger product, against the elementwise fma (checked elsewhere) in a plain loop."""
    rng = np.random.default_rng(SEED)
    for kind in ("normal", "wide", "bf16", "subnormal"):
        a, b = operand(kind, rng, (64, 150)), operand(kind, rng, (150, 300))
        total = np.zeros((64, 300), np.float32)
        for k in range(150):
            total = f32.fma(a[:, k, None], b[k], total)
        assert_same(chain(a, b, 150), f32.add(total, 0.0), context=f"{kind}, seed {SEED}:")


def test_rows_do_not_depend_on_m() -> None:
    rng = np.random.default_rng(SEED)
    a, b = operand("wide", rng, (33, 70)), operand("wide", rng, (70, 600))
    whole = chain(a, b, 32)
    for i in (0, 1, 31, 32):
        assert_same(chain(a[i : i + 1], b, 32), whole[i : i + 1], context=f"row {i}, seed {SEED}:")


@pytest.mark.parametrize(("m", "k", "n"), [(0, 3, 4), (3, 0, 4), (3, 4, 0), (0, 0, 0)])
def test_empty(m: int, k: int, n: int) -> None:
    result = chain(np.ones((m, k), np.float32), np.ones((k, n), np.float32), 1)
    assert result.shape == (m, n)
    assert not result.view(np.uint32).any()


def test_strided_operands() -> None:
    rng = np.random.default_rng(SEED)
    a, b = operand("normal", rng, (20, 14)), operand("normal", rng, (22, 18))
    expected = chain(a[::2, ::2].copy(), b[1:15:2, ::3].copy(), 3)
    assert_same(chain(a[::2, ::2], b[1:15:2, ::3], 3), expected)
    assert_same(chain(a.T, b[:20].copy(order="F"), 6), chain(a.T.copy(), b[:20], 6))


# -- tc16 -------------------------------------------------------------------------------
U16 = NDArray[np.uint16]


def operand16(kind: str, rng: np.random.Generator, shape: tuple[int, int], dtype: str) -> U16:
    return np.asarray(bits.operand(rng, shape, kind, dtype).view(np.uint16))


def exact_chain16(a: U16, b: U16, chunk: int, dtype: str, arch: str) -> F32:
    terms, fraction, floor = CORES[arch]
    out = np.empty((len(a), b.shape[1]), np.float32)
    for i, j in np.ndindex(out.shape):
        x, y, total = a[i].tolist(), b[:, j].tolist(), None
        for start in range(0, len(x), chunk):
            end, acc = min(start + chunk, len(x)), 0
            for k in range(start, end, terms):
                last = min(k + terms, end)
                zeros = [0] * (k + terms - last)
                acc = exact_step(x[k:last] + zeros, y[k:last] + zeros, acc, dtype, fraction, floor)
            part = float(np.uint32(acc).view(np.float32))
            total = part if total is None else exact.add(total, part)
        out[i, j] = total
    return out


@pytest.mark.parametrize("dtype", ["bf16", "f16"])
@pytest.mark.parametrize("kind", bits.KINDS)
@pytest.mark.parametrize(
    ("m", "k", "n", "chunk", "arch"),
    [
        (3, 48, 2, 48, "sm_90"),
        (2, 75, 3, 1 << 31, "sm_90"),
        (3, 5, 2, 5, "sm_90"),
        (1, 83, 2, 32, "sm_90"),
        (2, 40, 1, 24, "sm_90"),
        (2, 43, 3, 1 << 31, "sm_80"),
        (2, 35, 2, 32, "sm_80"),
    ],
)
def test_contract16(kind: str, dtype: str, m: int, k: int, n: int, chunk: int, arch: str) -> None:
    rng = np.random.default_rng(SEED)
    a, b = operand16(kind, rng, (m, k), dtype), operand16(kind, rng, (k, n), dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        actual = chain16(a, b, chunk, dtype, TENSOR_CORES[arch])
    assert_same(actual, exact_chain16(a, b, chunk, dtype, arch), context=f"seed {SEED}:")


@pytest.mark.parametrize("dtype", ["bf16", "f16"])
def test_against_a_chain_of_dot16(dtype: str) -> None:
    """A larger product; blocks, rows and strides do not show."""
    rng = np.random.default_rng(SEED)
    core = TENSOR_CORES["sm_90"]
    for kind in ("normal", "wide", "subnormal"):
        a, b = operand16(kind, rng, (70, 144), dtype), operand16(kind, rng, (144, 90), dtype)
        total = np.zeros((70, 90), np.float32)
        for k in range(0, 144, 16):
            left, right = a[:, None, k : k + 16], b[k : k + 16].T
            total = dot16(left, right, total, dtype=dtype)
        whole = chain16(a, b, 144, dtype, core)
        assert_same(whole, f32.add(total, 0.0), context=f"{kind}, seed {SEED}:")
        for i in (0, 33, 69):
            assert_same(chain16(a[i : i + 1], b, 144, dtype, core), whole[i : i + 1])
        strided = chain16(a.T.copy().T, b.T.copy().T, 144, dtype, core)
        assert_same(strided, whole)


@pytest.mark.parametrize(("m", "k", "n"), [(0, 3, 4), (3, 0, 4), (3, 4, 0), (0, 0, 0)])
def test_empty16(m: int, k: int, n: int) -> None:
    a, b = np.full((m, k), 0x3F80, np.uint16), np.full((k, n), 0x3F80, np.uint16)
    result = chain16(a, b, 16, "bf16", TENSOR_CORES["sm_90"])
    assert result.shape == (m, n)
    assert not result.view(np.uint32).any()
