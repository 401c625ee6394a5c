"""The oracle operations: layouts, plans, epilogues, zero sizes, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from test_reference_f32 import assert_same

from ptxgen import reference
from ptxgen.contract import ACTIVATIONS, BATCH, ROWS, K, M, N, Plan
from ptxgen.errors import DtypeError, OptionError, PtxgenError, ShapeError
from ptxgen.reference import activate, chain, f32, ops

F32 = NDArray[np.float32]
SEED = 3


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(SEED)


def random(rng: np.random.Generator, *shape: int) -> F32:
    return rng.standard_normal(shape, dtype=np.float32)


def test_linear_is_the_product_in_both_layouts(rng: np.random.Generator) -> None:
    x, w = random(rng, 6, 300), random(rng, 300, 7)
    expected = chain(x, w, ROWS.chunk_length(6, 7, 300))
    assert_same(reference.linear(x, w), expected)
    assert_same(reference.linear(x, w.T.copy(), layout="nk"), expected)
    assert_same(reference.linear(x, w.T, layout="nk"), expected)


def test_dgrad_reduces_over_n(rng: np.random.Generator) -> None:
    dy, w = random(rng, 5, 40), random(rng, 9, 40)
    expected = chain(dy, w.T, ROWS.chunk_length(5, 9, 40))
    assert_same(reference.linear_dgrad(dy, w), expected)
    assert_same(reference.linear_dgrad(dy, w.T.copy(), layout="nk"), expected)


def test_wgrad_reduces_over_the_batch(rng: np.random.Generator) -> None:
    x, dy = random(rng, 50, 4), random(rng, 50, 6)
    kn = reference.linear_wgrad(x, dy)
    nk = reference.linear_wgrad(x, dy, layout="nk")
    assert_same(kn, chain(x.T, dy, BATCH.chunk_length(4, 6, 50)))
    assert_same(nk, chain(dy.T, x, BATCH.chunk_length(6, 4, 50)))


@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
def test_matmul(rng: np.random.Generator, transpose_a: bool, transpose_b: bool) -> None:
    a, b = random(rng, 4, 30), random(rng, 30, 5)
    result = reference.matmul(
        a.T.copy() if transpose_a else a,
        b.T.copy() if transpose_b else b,
        transpose_a=transpose_a,
        transpose_b=transpose_b,
    )
    assert_same(result, chain(a, b, ROWS.chunk_length(4, 5, 30)))


def test_plans_are_obeyed(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    """The chunk length comes from the plan, which sees the dimensions of the product."""
    monkeypatch.setattr(ops, "ROWS", Plan("rows", N + K // 7, batch_invariant=True))
    monkeypatch.setattr(ops, "BATCH", Plan("batch", M * 2 + N + K // 50, batch_invariant=False))
    x, w, dy = random(rng, 51, 70), random(rng, 70, 3), random(rng, 51, 3)
    assert_same(reference.linear(x, w), chain(x, w, 3 + 10))
    assert_same(reference.matmul(x, w), chain(x, w, 3 + 10))
    assert_same(reference.linear_dgrad(dy, w), chain(dy, w.T, 70 + 0))
    wide = random(rng, 2, 700)
    assert_same(
        reference.linear_dgrad(wide, random(rng, 5, 700) * 0 + 1),
        chain(wide, np.ones((700, 5), np.float32), 5 + 100),
    )
    x, dy = x[:, :4], dy[:, :2]
    assert_same(reference.linear_wgrad(x, dy), chain(x.T, dy, 8 + 2 + 1))
    assert_same(reference.linear_wgrad(x, dy, layout="nk"), chain(dy.T, x, 4 + 4 + 1))
    # These lengths matter: one unsplit chain gives other bits.
    assert (chain(x.T, dy, 8 + 2 + 1) != chain(x.T, dy, 51)).any()


@pytest.mark.parametrize("activation", [None, *ACTIVATIONS])
def test_epilogue_order(rng: np.random.Generator, activation: str | None) -> None:
    x, w, bias, old = (random(rng, *s) for s in ((8, 20), (20, 6), (6,), (8, 6)))
    product = reference.linear(x, w)
    expected = f32.add(activate(activation, f32.add(product, bias)), old)
    assert_same(reference.linear(x, w, bias, activation=activation, out_old=old), expected)


def test_wgrad_accumulates(rng: np.random.Generator) -> None:
    x, dy, old = random(rng, 20, 3), random(rng, 20, 4), random(rng, 3, 4)
    expected = f32.add(reference.linear_wgrad(x, dy), old)
    assert_same(reference.linear_wgrad(x, dy, out_old=old), expected)
    assert_same(reference.linear_wgrad(x, dy, layout="nk", out_old=old.T).T.copy(), expected)


def test_operands_are_untouched(rng: np.random.Generator) -> None:
    arrays = [random(rng, 4, 5), random(rng, 5, 3), random(rng, 3), random(rng, 4, 3)]
    before = [a.copy() for a in arrays]
    for array in arrays:
        array.flags.writeable = False
    x, w, bias, old = arrays
    reference.linear(x, w, bias, activation="gelu", out_old=old)
    for array, copy in zip(arrays, before, strict=True):
        assert_same(array, copy)


def test_leading_dimensions(rng: np.random.Generator) -> None:
    x, w = random(rng, 2, 3, 10), random(rng, 10, 4)
    y = reference.linear(x, w)
    assert y.shape == (2, 3, 4)
    assert_same(y.reshape(6, 4), reference.linear(x.reshape(6, 10), w))
    assert_same(reference.linear(x[1, 2], w), y[1, 2])
    assert reference.linear_dgrad(y, w).shape == (2, 3, 10)
    flat = reference.linear_wgrad(x.reshape(6, 10), y.reshape(6, 4))
    assert_same(reference.linear_wgrad(x, y), flat)


@pytest.mark.parametrize("layout", ops.LAYOUTS)
def test_zero_sizes(layout: str) -> None:
    def ones(*shape: int) -> F32:
        return np.ones(shape, np.float32)

    def weight(k: int, n: int) -> F32:
        return ones(k, n) if layout == "kn" else ones(n, k)

    bias = np.arange(4, dtype=np.float32)
    assert_same(reference.linear(ones(3, 0), weight(0, 4), layout=layout), 0 * ones(3, 4))
    with_bias = reference.linear(ones(3, 0), weight(0, 4), bias, layout=layout)
    assert_same(with_bias, np.tile(bias, (3, 1)))
    assert reference.linear(ones(0, 5), weight(5, 4), bias, layout=layout).shape == (0, 4)
    assert reference.linear(ones(2, 0, 5), weight(5, 4), layout=layout).shape == (2, 0, 4)
    assert reference.linear(ones(2, 5), weight(5, 0), layout=layout).shape == (2, 0)
    assert_same(reference.linear_dgrad(ones(2, 0), weight(5, 0), layout=layout), 0 * ones(2, 5))
    dw = reference.linear_wgrad(ones(0, 5), ones(0, 4), layout=layout)
    assert_same(dw, 0 * weight(5, 4))
    old = weight(5, 4)
    dw = reference.linear_wgrad(ones(0, 5), ones(0, 4), layout=layout, out_old=old)
    assert_same(dw, old)


X, W = np.zeros((2, 3), np.float32), np.zeros((3, 4), np.float32)
REFUSED: list[tuple[str, dict[str, Any], type[PtxgenError], list[str]]] = [
    ("linear", {"x": X, "w": W, "layout": "kk"}, OptionError, ["layout", "'kk'", "'nk'"]),
    ("linear", {"x": X, "w": W, "activation": "tanh"}, OptionError, ["activation", "'silu'"]),
    ("linear", {"x": X, "w": W, "tier": "fast"}, OptionError, ["tier", "'fast'", "'simt'"]),
    ("linear", {"x": X, "w": W, "tier": "tc"}, OptionError, ["tier", "float32"]),
    ("linear", {"x": X, "w": W, "arch": "hopper"}, OptionError, ["arch", "'hopper'", "sm_90"]),
    ("linear", {"x": X.astype(float), "w": W}, DtypeError, ["x is float64", "float32"]),
    ("linear", {"x": X, "w": W.astype(np.int32)}, DtypeError, ["w is int32"]),
    ("linear", {"x": X, "w": W, "bias": np.zeros(4)}, DtypeError, ["bias is float64"]),
    ("linear", {"x": X, "w": W.T}, ShapeError, ["x has shape [2, 3]", "expected 4", "'kn'"]),
    ("linear", {"x": X, "w": W[0]}, ShapeError, ["w has shape [4]", "[K, N]"]),
    ("linear", {"x": X[0, 0], "w": W}, ShapeError, ["x has shape []"]),
    ("linear", {"x": X, "w": W, "bias": X[0]}, ShapeError, ["bias has shape [3]", "expected 4"]),
    ("linear", {"x": X, "w": W, "bias": X}, ShapeError, ["bias has shape [2, 3]", "[N]"]),
    ("linear", {"x": X, "w": W, "out_old": W}, ShapeError, ["out_old has shape [3, 4]", "[2, 4]"]),
    ("linear_dgrad", {"dy": X, "w": W}, ShapeError, ["dy has shape [2, 3]", "expected 4"]),
    ("linear_wgrad", {"x": X, "dy": W}, ShapeError, ["dy has shape [3, 4]", "[2]"]),
    ("linear_wgrad", {"x": X, "dy": X, "layout": ""}, OptionError, ["layout=''"]),
    ("matmul", {"a": X, "b": X}, ShapeError, ["K = 3", "K = 2"]),
    ("matmul", {"a": X[0], "b": W}, ShapeError, ["a has shape [3]", "[M, K]"]),
    ("matmul", {"a": X, "b": W, "transpose_a": True}, ShapeError, ["transpose_a=True"]),
]


@pytest.mark.parametrize(("op", "arguments", "error", "parts"), REFUSED)
def test_refusals_name_the_argument(
    op: str, arguments: dict[str, Any], error: type[PtxgenError], parts: list[str]
) -> None:
    with pytest.raises(error) as caught:
        getattr(reference, op)(**arguments)
    for part in parts:
        assert part in str(caught.value)
