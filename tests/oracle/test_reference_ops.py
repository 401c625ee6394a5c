"""The oracle operations: layouts, plans, epilogues, zero sizes, refusals."""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any

import numpy as np
import pytest
from bits import NUMPY, operand, same_bits, sums_and_bound
from numpy.typing import NDArray
from test_reference_f32 import assert_same

import ptxgen
from ptxgen import reference
from ptxgen.errors import DtypeError, OptionError, PtxgenError, ShapeError
from ptxgen.numerics.contract import (
    ACTIVATIONS,
    CONTRACTS,
    FMA_CHUNKS,
    PLANS,
    TC16_CHUNKS,
    TENSOR_CORES,
    TIERS,
    K,
    Plan,
)
from ptxgen.oracle import activate, chain, chain16, f32, half

F32 = NDArray[np.float32]
SEED = 3


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(SEED)


def random(rng: np.random.Generator, *shape: int) -> F32:
    return rng.standard_normal(shape, dtype=np.float32)


def test_linear_is_the_product_in_both_layouts(rng: np.random.Generator) -> None:
    x, w = random(rng, 6, 300), random(rng, 300, 7)
    expected = chain(x, w, FMA_CHUNKS.chunk_length(300))
    assert_same(reference.linear(x, w, layout="kn"), expected)
    assert_same(reference.linear(x, w.T.copy(), layout="nk"), expected)
    assert_same(reference.linear(x, w.T, layout="nk"), expected)


def test_dgrad_reduces_over_n(rng: np.random.Generator) -> None:
    dy, w = random(rng, 5, 40), random(rng, 9, 40)
    expected = chain(dy, w.T, FMA_CHUNKS.chunk_length(40))
    assert_same(reference.linear_dgrad(dy, w, layout="kn"), expected)
    assert_same(reference.linear_dgrad(dy, w.T.copy(), layout="nk"), expected)


def test_wgrad_reduces_over_the_batch(rng: np.random.Generator) -> None:
    x, dy = random(rng, 50, 4), random(rng, 50, 6)
    kn = reference.linear_wgrad(x, dy, layout="kn")
    nk = reference.linear_wgrad(x, dy, layout="nk")
    assert_same(kn, chain(x.T, dy, FMA_CHUNKS.chunk_length(50)))
    assert_same(nk, chain(dy.T, x, FMA_CHUNKS.chunk_length(50)))


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
    assert_same(result, chain(a, b, FMA_CHUNKS.chunk_length(30)))


def test_matmul_of_batches(rng: np.random.Generator) -> None:
    a, b = random(rng, 2, 1, 4, 30), random(rng, 3, 30, 5)
    chunk = FMA_CHUNKS.chunk_length(30)
    expected = np.array([[chain(x[0], y, chunk) for y in b] for x in a])
    assert_same(reference.matmul(a, b), expected)
    assert_same(
        reference.matmul(a.swapaxes(2, 3), b.swapaxes(1, 2), transpose_a=True, transpose_b=True),
        expected,
    )
    assert_same(reference.matmul(a[0, 0], b), expected[0])
    assert reference.matmul(a[:0], b).shape == (0, 3, 4, 5)


def test_plans_are_obeyed(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    """The chunk length comes from the plan, which sees the length of the product's reduction."""
    monkeypatch.setitem(PLANS, "fma", {"chunks": Plan("chunks", 3 + K // 7)})
    x, w, dy = random(rng, 51, 70), random(rng, 70, 3), random(rng, 51, 3)
    assert_same(reference.linear(x, w, layout="kn"), chain(x, w, 3 + 10))
    assert_same(reference.matmul(x, w), chain(x, w, 3 + 10))
    wide, weight = random(rng, 2, 700), random(rng, 5, 700)
    assert_same(reference.linear_dgrad(wide, weight, layout="kn"), chain(wide, weight.T, 3 + 100))
    assert_same(reference.linear_wgrad(x, dy, layout="kn"), chain(x.T, dy, 3 + 7))
    assert_same(reference.linear_wgrad(x, dy, layout="nk"), chain(dy.T, x, 3 + 7))
    # These lengths matter: one chain gives other bits.
    assert (chain(x.T, dy, 3 + 7) != chain(x.T, dy, 51)).any()


@pytest.mark.parametrize("activation", [None, *ACTIVATIONS])
def test_epilogue_order(rng: np.random.Generator, activation: str | None) -> None:
    x, w, bias, old = (random(rng, *s) for s in ((8, 20), (20, 6), (6,), (8, 6)))
    product = reference.linear(x, w, layout="kn")
    expected = f32.add(activate(activation, f32.add(product, bias)), old)
    assert_same(
        reference.linear(x, w, bias, activation=activation, out_old=old, layout="kn"), expected
    )


def test_wgrad_accumulates(rng: np.random.Generator) -> None:
    x, dy, old = random(rng, 20, 3), random(rng, 20, 4), random(rng, 3, 4)
    expected = f32.add(reference.linear_wgrad(x, dy, layout="kn"), old)
    assert_same(reference.linear_wgrad(x, dy, out_old=old, layout="kn"), expected)
    assert_same(reference.linear_wgrad(x, dy, layout="nk", out_old=old.T).T.copy(), expected)


def test_operands_are_untouched(rng: np.random.Generator) -> None:
    arrays = [random(rng, 4, 5), random(rng, 5, 3), random(rng, 3), random(rng, 4, 3)]
    before = [a.copy() for a in arrays]
    for array in arrays:
        array.flags.writeable = False
    x, w, bias, old = arrays
    reference.linear(x, w, bias, activation="gelu", out_old=old, layout="kn")
    for array, copy in zip(arrays, before, strict=True):
        assert_same(array, copy)


def test_leading_dimensions(rng: np.random.Generator) -> None:
    x, w = random(rng, 2, 3, 10), random(rng, 10, 4)
    y = reference.linear(x, w, layout="kn")
    assert y.shape == (2, 3, 4)
    assert_same(y.reshape(6, 4), reference.linear(x.reshape(6, 10), w, layout="kn"))
    assert_same(reference.linear(x[1, 2], w, layout="kn"), y[1, 2])
    assert reference.linear_dgrad(y, w, layout="kn").shape == (2, 3, 10)
    flat = reference.linear_wgrad(x.reshape(6, 10), y.reshape(6, 4), layout="kn")
    assert_same(reference.linear_wgrad(x, y, layout="kn"), flat)


@pytest.mark.parametrize("layout", ("kn", "nk"))
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


# -- operands of 16 bits ----------------------------------------------------------------

SIXTEEN = pytest.mark.parametrize("dtype", ["bf16", "f16"])


def wide(array: NDArray[Any]) -> F32:
    return array.astype(np.float32)


def products(x: NDArray[Any], w: NDArray[Any], tier: str, arch: str = "sm_90") -> F32:
    """The product in f32, from the contract's chain and plan."""
    k = x.shape[1]
    if tier == "simt":
        return chain(wide(x), wide(w), FMA_CHUNKS.chunk_length(k))
    dtype = "bf16" if x.dtype == NUMPY["bf16"] else "f16"
    bits = [v.view(np.uint16) for v in (x, w)]
    return chain16(*bits, TC16_CHUNKS.chunk_length(k), dtype, TENSOR_CORES[arch])


@SIXTEEN
@pytest.mark.parametrize("tier", ["simt", "tc"])
def test_all_operations_in_16_bits(rng: np.random.Generator, tier: str, dtype: str) -> None:
    x, w, dy = (operand(rng, s, "normal", dtype) for s in ((6, 75), (75, 7), (6, 7)))
    kind = x.dtype

    def check(got: NDArray[Any], expected: F32) -> None:
        same_bits(got, half.downcast(expected, dtype).view(kind))

    check(reference.linear(x, w, tier=tier, layout="kn"), products(x, w, tier))
    check(reference.linear(x, w.T.copy(), layout="nk", tier=tier), products(x, w, tier))
    check(reference.matmul(x, w, tier=tier), products(x, w, tier))
    turned = reference.matmul(x.T, w.T, transpose_a=True, transpose_b=True, tier=tier)
    check(turned, products(x, w, tier))
    check(reference.linear_dgrad(dy, w, tier=tier, layout="kn"), products(dy, w.T, tier))
    dw = products(x.T, dy, tier)
    same_bits(reference.linear_wgrad(x, dy, tier=tier, layout="kn"), dw)
    same_bits(reference.linear_wgrad(x, dy, tier=tier, out_dtype="float32", layout="kn"), dw)
    check(reference.linear_wgrad(x, dy, tier=tier, out_dtype=kind.name, layout="kn"), dw)
    same_bits(
        reference.linear(x, w, tier=tier, out_dtype="float32", layout="kn"), products(x, w, tier)
    )
    same_bits(reference.matmul(x, w, tier=tier, out_dtype="float32"), products(x, w, tier))
    check(reference.linear(x, w, tier=tier, out_dtype=kind.name, layout="kn"), products(x, w, tier))
    same_bits(
        reference.linear_dgrad(dy, w, tier=tier, out_dtype="float32", layout="kn"),
        products(dy, w.T, tier),
    )


@SIXTEEN
@pytest.mark.parametrize("tier", ["simt", "tc"])
@pytest.mark.parametrize("out", [None, "float32"])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_epilogue_of_16_bits(
    rng: np.random.Generator, activation: str, out: str | None, tier: str, dtype: str
) -> None:
    x, w, bias, old = (operand(rng, s, "normal", dtype) for s in ((8, 20), (20, 6), (6,), (8, 6)))
    product = products(x, w, tier)
    for b in (bias, operand(rng, (6,))):
        before = wide(old) * 3 if out else old
        with_bias = activate(activation, f32.add(product, wide(b)))
        expected = f32.add(with_bias, wide(before))
        got = reference.linear(
            x, w, b, activation=activation, out_old=before, out_dtype=out, tier=tier, layout="kn"
        )
        if out is None:
            same_bits(got, half.downcast(expected, dtype).view(x.dtype))
        else:
            same_bits(got, expected)


@SIXTEEN
def test_wgrad_accumulates_in_16_bits(rng: np.random.Generator, dtype: str) -> None:
    x, dy, old = (operand(rng, s, "normal", dtype) for s in ((20, 3), (20, 4), (3, 4)))
    total = f32.add(products(x.T, dy, "tc"), wide(old))
    same_bits(reference.linear_wgrad(x, dy, out_old=wide(old), layout="kn"), total)
    got = reference.linear_wgrad(x, dy, out_old=old, out_dtype=old.dtype.name, layout="kn")
    same_bits(got, half.downcast(total, dtype).view(x.dtype))


@SIXTEEN
def test_auto_is_the_tensor_cores(rng: np.random.Generator, dtype: str) -> None:
    """Tier "auto" is "tc"; wide numbers tell it from "simt", and one architecture from another."""
    x, w = operand(rng, (30, 100), "wide", dtype), operand(rng, (100, 30), "wide", dtype)
    auto = reference.linear(x, w, out_dtype="float32", layout="kn")
    same_bits(
        auto, reference.linear(x, w, out_dtype="float32", tier="tc", arch="sm_90a", layout="kn")
    )
    assert (auto != reference.linear(x, w, out_dtype="float32", tier="simt", layout="kn")).any()
    ampere = reference.linear(x, w, out_dtype="float32", arch="sm_80", layout="kn")
    same_bits(ampere, products(x, w, "tc", arch="sm_80"))
    assert (auto != ampere).any()
    same_bits(
        reference.linear(x, w, tier="simt", arch="sm_70", layout="kn"),
        reference.linear(x, w, tier="simt", layout="kn"),
    )


@SIXTEEN
@pytest.mark.parametrize("tier", ["simt", "tc"])
def test_rows_of_16_bits_do_not_depend_on_m(
    rng: np.random.Generator, tier: str, dtype: str
) -> None:
    x, w = operand(rng, (33, 2050), "wide", dtype), operand(rng, (2050, 40), "wide", dtype)
    whole = reference.linear(x, w, tier=tier, layout="kn")
    for m in (1, 2, 32):
        same_bits(reference.linear(x[:m], w, tier=tier, layout="kn"), whole[:m])


@SIXTEEN
@pytest.mark.parametrize("tier", ["simt", "tc"])
def test_wgrad_chunks_of_16_bits(rng: np.random.Generator, tier: str, dtype: str) -> None:
    rows = 4100 if tier == "tc" else 2100
    x, dy = operand(rng, (rows, 3), "normal", dtype), operand(rng, (rows, 4), "normal", dtype)
    assert (TC16_CHUNKS if tier == "tc" else FMA_CHUNKS).chunks(rows) > 1
    got = reference.linear_wgrad(x, dy, tier=tier, layout="kn")
    same_bits(got, products(x.T, dy, tier))
    assert (got != reference.linear_wgrad(x, dy, tier=tier, layout="kn", chain=True)).any()


@SIXTEEN
@pytest.mark.parametrize("layout", ("kn", "nk"))
def test_zero_sizes_of_16_bits(layout: str, dtype: str) -> None:
    def ones(*shape: int) -> NDArray[Any]:
        return np.ones(shape, NUMPY[dtype])

    def weight(k: int, n: int) -> NDArray[Any]:
        return ones(k, n) if layout == "kn" else ones(n, k)

    bias = np.arange(4).astype(NUMPY[dtype])
    with_bias = reference.linear(ones(3, 0), weight(0, 4), bias, layout=layout)
    same_bits(with_bias, np.tile(bias, (3, 1)))
    assert reference.linear(ones(0, 5), weight(5, 4), bias, layout=layout).shape == (0, 4)
    assert reference.linear(ones(2, 0, 5), weight(5, 4), layout=layout).shape == (2, 0, 4)
    empty = reference.linear(ones(5), weight(5, 0), layout=layout)
    assert (empty.shape, empty.dtype) == ((0,), NUMPY[dtype])
    same_bits(reference.linear_dgrad(ones(2, 0), weight(5, 0), layout=layout), 0 * ones(2, 5))
    dw = reference.linear_wgrad(ones(0, 5), ones(0, 4), layout=layout)
    same_bits(dw, wide(0 * weight(5, 4)))


def test_results_are_rounded_once() -> None:
    """Results are rounded once, to nearest even, also to infinity where the f32 sum is finite."""
    one = np.array([[1.0, 1.0]])
    for dtype, step, top in (("bf16", 2.0**-7, 2.0**127), ("f16", 2.0**-10, 2.0**15)):
        kind = NUMPY[dtype]
        half_step = np.array([[1.0], [step / 2]])
        assert reference.linear(one.astype(kind), half_step.astype(kind), layout="kn").item() == 1
        odd = np.array([[1 + step], [step / 2]])
        assert (
            reference.linear(one.astype(kind), odd.astype(kind), layout="kn").item() == 1 + 2 * step
        )
        big = np.array([[top * (2 - step)], [top * step / 2]]).astype(kind)
        assert reference.linear(one.astype(kind), big, layout="kn").item() == np.inf
        assert np.isfinite(
            reference.linear(one.astype(kind), big, out_dtype="float32", layout="kn")
        ).all()
        largest = reference.linear(
            one.astype(kind), np.array([[top], [0]]).astype(kind), layout="kn"
        )
        assert largest.item() == top


X, W = np.zeros((2, 3), np.float32), np.zeros((3, 4), np.float32)
H, V, B = X.astype(np.float16), W.astype(np.float16), X.astype(NUMPY["bf16"])
REFUSED: list[tuple[str, dict[str, Any], type[PtxgenError], list[str]]] = [
    ("linear", {"x": X, "w": W, "layout": "kk"}, OptionError, ["layout", "'kk'", "'nk'"]),
    ("linear", {"x": X, "w": W, "activation": "tanh"}, OptionError, ["activation", "'silu'"]),
    ("linear", {"x": X, "w": W, "tier": "fast"}, OptionError, ["tier", "'fast'", "'simt'"]),
    ("linear", {"x": X, "w": W, "tier": "tc"}, OptionError, ["tier='tc'", "'simt'", "float32"]),
    ("linear", {"x": H, "w": V, "tier": "t"}, OptionError, ["tier='t'", "'simt', 'tc'", "float16"]),
    ("linear", {"x": H, "w": V, "arch": "sm_70"}, OptionError, ["'sm_70'", "sm_80", "sm_100"]),
    ("linear", {"x": H, "w": V, "arch": "h", "tier": "simt"}, OptionError, ["arch='h'"]),
    ("linear", {"x": X, "w": W, "out_dtype": "float16"}, DtypeError, ["out_dtype", "'float32'"]),
    ("linear", {"x": H, "w": V, "out_dtype": "bfloat16"}, DtypeError, ["'float16'", "'float32'"]),
    ("linear", {"x": H, "w": B}, DtypeError, ["w is bfloat16", "expected float16, as x"]),
    ("linear", {"x": H, "w": V, "bias": B[0]}, DtypeError, ["bias is bfloat16", "or float32"]),
    ("linear", {"x": X, "w": W, "bias": V[0]}, DtypeError, ["bias is float16", "expected float32"]),
    ("linear", {"x": H, "w": V, "out_old": X}, DtypeError, ["out_old is float32", "float16"]),
    ("linear", {"x": H.astype(">f2"), "w": V}, DtypeError, ["x is >f2"]),
    ("linear_wgrad", {"x": H, "dy": H, "out_old": H}, DtypeError, ["out_old is float16"]),
    ("linear_wgrad", {"x": H, "dy": B}, DtypeError, ["dy is bfloat16", "as x"]),
    ("matmul", {"a": B, "b": V}, DtypeError, ["b is float16", "as a"]),
    ("linear", {"x": X, "w": W, "arch": "hopper"}, OptionError, ["arch", "'hopper'", "sm_90"]),
    ("linear", {"x": X.astype(float), "w": W}, DtypeError, ["w is float32", "float64, as x"]),
    ("linear", {"x": X, "w": W.astype(np.int32)}, DtypeError, ["w is int32"]),
    ("linear", {"x": X, "w": W, "bias": np.zeros(4)}, DtypeError, ["bias is float64"]),
    ("linear", {"x": X, "w": W.T}, ShapeError, ["w has shape [4, 3]", "K = 3", "'kn'"]),
    ("linear", {"x": X, "w": W[0]}, ShapeError, ["w has shape [4]", "[K, N]"]),
    ("linear", {"x": X[0, 0], "w": W}, ShapeError, ["x has shape []"]),
    ("linear", {"x": X, "w": W, "bias": X[0]}, ShapeError, ["bias has shape [3]", "N = 4"]),
    ("linear", {"x": X, "w": W, "bias": X}, ShapeError, ["bias has shape [2, 3]", "[N]"]),
    ("linear", {"x": X, "w": W, "out_old": W}, ShapeError, ["out_old has shape [3, 4]", "[2, 4]"]),
    ("linear_dgrad", {"dy": X, "w": W}, ShapeError, ["w has shape [3, 4]", "N = 3"]),
    ("linear_wgrad", {"x": X, "dy": W}, ShapeError, ["dy has shape [3, 4]", "[2]"]),
    ("linear_wgrad", {"x": X, "dy": X, "layout": ""}, OptionError, ["layout is ''"]),
    ("matmul", {"a": X, "b": X}, ShapeError, ["b has shape [2, 3]", "K = 3"]),
    ("matmul", {"a": X[0], "b": W}, ShapeError, ["a has shape [3]", "[..., M, K]"]),
    ("matmul", {"a": X, "b": W, "transpose_a": True}, ShapeError, ["b has shape [3, 4]", "K = 2"]),
]


def layouts(op: str) -> dict[str, Any]:
    """The layout of operations that are to be told it."""
    return {} if op == "matmul" else {"layout": "kn"}


@pytest.mark.parametrize(("op", "arguments", "error", "parts"), REFUSED)
def test_refusals_name_the_argument(
    op: str, arguments: dict[str, Any], error: type[PtxgenError], parts: list[str]
) -> None:
    with pytest.raises(error) as caught:
        getattr(reference, op)(**{**layouts(op), **arguments})
    for part in parts:
        assert part in str(caught.value)


# -- as the library is called --------------------------------------------------------------
OPERANDS = {
    "linear": ((3, 4), (4, 5)), "linear_dgrad": ((3, 5), (4, 5)), "linear_wgrad": ((3, 4), (3, 5)),
    "matmul": ((3, 4), (4, 5)),
}  # fmt: skip


@pytest.mark.parametrize("op", OPERANDS)
def test_takes_the_arguments_of_the_library(op):
    theirs, ours = (inspect.signature(getattr(room, op)).parameters for room in (ptxgen, reference))
    assert theirs.keys() <= ours.keys()
    assert {n: p.default for n, p in theirs.items()} == {n: ours[n].default for n in theirs}
    rng = np.random.default_rng(8)
    call = partial(getattr(reference, op), **layouts(op))
    operands = [rng.standard_normal(shape).astype(np.float16) for shape in OPERANDS[op]]
    for kind in (np.float16, np.float32):
        expected = call(*operands, out_dtype=kind)
        out = np.full(expected.shape, 7, kind)
        got = call(*operands, out=out, kernel="any", stream=3)
        assert got is out
        same_bits(out, expected)
    with pytest.raises(ShapeError, match=r"out is float32 of shape \[9, 9\]; expected float32 of"):
        call(*operands, out=np.zeros((9, 9), np.float32))
    with pytest.raises(DtypeError, match="out is a list; takes a NumPy array"):
        call(*operands, out=[])
    frozen = np.zeros(expected.shape, np.float32)
    frozen.flags.writeable = False
    with pytest.raises(ShapeError, match="out is read-only"):
        call(*operands, out=frozen)
    if op != "linear_wgrad":
        with pytest.raises(TypeError, match="accumulate"):
            call(*operands, out=out, accumulate=True)


def test_accumulates_as_the_library_does():
    rng = np.random.default_rng(9)
    x, dy, old = (rng.standard_normal(s, dtype=np.float32) for s in ((3, 4), (3, 5), (4, 5)))
    out = old.copy()
    assert reference.linear_wgrad(x, dy, out=out, accumulate=True, layout="kn") is out
    same_bits(out, reference.linear_wgrad(x, dy, out_old=old, layout="kn"))
    assert (out != reference.linear_wgrad(x, dy, layout="kn")).any()
    with pytest.raises(OptionError, match="accumulate=True adds to out, but out is None"):
        reference.linear_wgrad(x, dy, accumulate=True, layout="kn")
    with pytest.raises(OptionError, match="pass one"):
        reference.linear_wgrad(x, dy, out=out, out_old=old, accumulate=True, layout="kn")


# -- how far from the exact sums ---------------------------------------------------------------
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
@pytest.mark.parametrize("op", ["linear", "linear_wgrad"])
@pytest.mark.parametrize(("dtype", "tier"), [(d, t) for t in TIERS for d in TIERS[t] if d != "f64"])
def test_the_bound_of_the_sums(dtype, tier, op, arch):
    """The oracle keeps it, and numbers that lost four of their bits break it."""
    rng = np.random.default_rng(21)
    m, n, k = 20, 30, 2500
    left, right = (operand(rng, shape, "normal", dtype) for shape in ((m, k), (k, n)))
    wide = [each.astype(np.float64) for each in (left, right)]
    chunk = PLANS[CONTRACTS[tier][dtype].name]["chunks"].chunk_length(k)
    core = TENSOR_CORES[arch] if tier == "tc" else None
    exact, bound = sums_and_bound(np, *wide, chunk, core)
    # Two f64 sums: each off by K * 2**-53 * sum(|a b|), about 2500 * 1.1e-16 * 1600 = 4.5e-10.
    assert np.allclose(exact, wide[0] @ wide[1], rtol=0, atol=1e-9)
    first = np.ascontiguousarray(left.T) if op == "linear_wgrad" else left
    how = {"tier": tier, "arch": arch, "out_dtype": "float32", "layout": "kn"}
    got = getattr(reference, op)(first, right, **how)
    assert (abs(got - exact) <= bound).all()
    lost = left.astype(np.float32).view(np.uint32) & {"f32": 0xFFFF_F000}.get(dtype, 0xFFF0_0000)
    assert (abs(lost.view(np.float32).astype(np.float64) @ wide[1] - exact) > bound).any()
