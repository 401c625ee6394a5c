"""Products of groups: ``grouped_linear`` and its gradients, as they are called."""

from __future__ import annotations

import numpy as np
import pytest
from bits import operand, same_bits

import ptxgen
from ptxgen.errors import DtypeError, IndexRangeError, OptionError, ShapeError
from ptxgen.ops import OPERATIONS

ENDS = np.array([0, 3, 3, 10, 17], np.int32)
M, N, K = 19, 24, 32


def drawn(dtype, seed=0):
    rng = np.random.default_rng(seed)
    shapes = (M, K), (len(ENDS), K, N), (len(ENDS), N)
    return [operand(rng, shape, "normal", dtype) for shape in shapes]


def spans(ends=ENDS):
    return enumerate(zip([0, *ends[:-1]], ends, strict=True))


@pytest.fixture(autouse=True)
def cpu():
    with ptxgen.use_device("cpu"):
        yield


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f16"])
def test_a_row_has_the_bits_of_linear_with_its_groups_weight(dtype):
    x, w, bias = drawn(dtype)
    y = ptxgen.grouped_linear(x, w, ENDS, bias, activation="silu", layout="kn")
    for g, (begin, end) in spans():
        one = ptxgen.linear(x[begin:end], w[g], bias[g], activation="silu", layout="kn")
        same_bits(y[begin:end], one, what=f"group {g}")
    assert not y[ENDS[-1] :].astype("f4").any(), "rows of no group are zeros"
    turned = np.ascontiguousarray(w.transpose(0, 2, 1))
    again = ptxgen.grouped_linear(x, turned, ENDS, bias, layout="nk", activation="silu")
    same_bits(again, y, what="weights stored the other way")


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_a_row_does_not_know_the_others(dtype):
    x, w, _ = drawn(dtype)
    y = ptxgen.grouped_linear(x, w, ENDS, layout="kn")
    alone = np.array([0, 0, 0, 1, 1], np.int32)
    same_bits(
        ptxgen.grouped_linear(x[5:6], w, alone, layout="kn"), y[5:6], what="alone in its group"
    )


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_a_groups_weight_gradient_is_one_chain_over_its_rows(dtype):
    x, dy = drawn(dtype)[0], operand(np.random.default_rng(7), (M, N), "normal", dtype)
    dw = ptxgen.grouped_linear_wgrad(x, dy, ENDS, layout="kn")
    assert dw.dtype == np.float32
    for g, (begin, end) in spans():
        one = ptxgen.linear_wgrad(x[begin:end], dy[begin:end], chain=True, layout="kn")
        same_bits(dw[g], one, what=f"group {g}")
    turned = ptxgen.grouped_linear_wgrad(x, dy, ENDS, layout="nk")
    same_bits(turned, dw.transpose(0, 2, 1).copy(), what="stored the other way")


def test_rows_of_no_group_are_zeros_whatever_they_hold():
    x, w, _ = drawn("bf16")
    x[ENDS[-1] :] = np.nan
    w[:] = np.inf
    for kernel in (None, *(n for n in ptxgen.tiles.SPECS if "grouped_" in n and "_nn_bf16" in n)):
        y = ptxgen.grouped_linear(x, w, ENDS, kernel=kernel, layout="kn")
        assert (y[ENDS[-1] :].astype("f4") == 0).all(), kernel


@pytest.mark.parametrize("ends", [(5, 3, 9, 9, 9), (-1, 2, 2, 2, 2), (0, 0, 0, 0, M + 1)])
def test_offsets_that_are_no_ends_are_refused_where_they_are_seen(ends):
    """Offsets that do not ascend or lie outside are refused where the host reads them (for kernels
    see grouped_cases.py).
    """
    x, w, _ = drawn("f32")
    offsets = np.array(ends, np.int32)
    with pytest.raises(IndexRangeError, match=r"offsets\[\d\] is .*ascending, of 19 rows"):
        ptxgen.grouped_linear(x, w, offsets, layout="kn")
    with pytest.raises(IndexRangeError, match="offsets"):
        ptxgen.grouped_linear_wgrad(x, x, offsets, check=True, layout="kn")


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f16"])
def test_what_is_empty(dtype):
    x, w, _ = drawn(dtype)
    none = np.zeros(0, np.int32)
    assert ptxgen.grouped_linear(x[:0], w, ENDS * 0, layout="kn").shape == (0, N)
    assert not ptxgen.grouped_linear(x, w[:0], none, layout="kn").any()
    assert ptxgen.grouped_linear_wgrad(x, x, none, layout="kn").shape == (0, K, K)
    assert not ptxgen.grouped_linear(x[:, :0], w[:, :0], ENDS, layout="kn").any()
    assert not ptxgen.grouped_linear_wgrad(x[:0], x[:0], ENDS * 0, layout="kn").any()


def test_what_is_refused():
    x, w, bias = drawn("f32")
    with pytest.raises(DtypeError, match="offsets has dtype int64; takes int32"):
        ptxgen.grouped_linear(x, w, ENDS.astype("i8"), layout="kn")
    with pytest.raises(DtypeError, match="w has dtype float16; takes float32, that of x"):
        ptxgen.grouped_linear(x, w.astype("f2"), ENDS, layout="kn")
    with pytest.raises(DtypeError, match="x has dtype float64"):
        ptxgen.grouped_linear(x.astype("f8"), w.astype("f8"), ENDS, layout="kn")
    with pytest.raises(ShapeError, match="offsets"):
        ptxgen.grouped_linear(x, w, ENDS[:-1], layout="kn")
    with pytest.raises(ShapeError, match="bias"):
        ptxgen.grouped_linear(x, w, ENDS, bias[0], layout="kn")
    with pytest.raises(ShapeError, match="1025 groups; takes at most 1024"):
        ptxgen.grouped_linear(
            x, np.zeros((1025, K, 1), "f4"), np.zeros(1025, np.int32), layout="kn"
        )
    with pytest.raises(OptionError, match="layout"):
        ptxgen.grouped_linear(x, w, ENDS, layout="km")


def test_views_of_tensors_are_read_as_they_lie():
    torch = pytest.importorskip("torch")
    x, w, _ = (torch.from_numpy(v) for v in drawn("f32"))
    offsets, y = (
        torch.from_numpy(ENDS),
        ptxgen.grouped_linear(*map(torch.from_numpy, (*drawn("f32")[:2], ENDS)), layout="kn"),
    )
    wide = torch.zeros(M, 2 * K)
    wide[:, :K] = x
    turned = w.transpose(1, 2).contiguous().transpose(1, 2)
    steps = torch.zeros(len(ENDS), K, N, 2)
    steps[..., 0] = w
    for rows, weights in ((wide[:, :K], w), (x, turned), (x, steps[..., 0])):
        assert torch.equal(ptxgen.grouped_linear(rows, weights, offsets, layout="kn"), y)
    one = w[:1].expand(len(ENDS), K, N)
    assert torch.equal(
        ptxgen.grouped_linear(x, one, offsets, layout="kn")[: ENDS[-1]],
        ptxgen.linear(x, w[0], layout="kn")[: ENDS[-1]],
    )


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("layout", ["kn", "nk"])
def test_gradients(dtype, layout):
    torch = pytest.importorskip("torch")
    import ptxgen.torch as served

    kind = getattr(torch, dtype)
    torch.manual_seed(0)
    w = torch.randn(len(ENDS), *((K, N) if layout == "kn" else (N, K)), dtype=kind)
    given = [torch.randn(M, K, dtype=kind), w, torch.randn(len(ENDS), N, dtype=kind)]
    x, w, bias = (v.requires_grad_() for v in given)
    dy = torch.randn(M, N, dtype=kind)
    served.grouped_linear(x, w, torch.from_numpy(ENDS), bias, layout=layout).backward(dy)
    for g, (begin, end) in spans():
        weight, rows = w[g].detach(), slice(begin, end)
        one = ptxgen.linear_dgrad(dy[rows], weight, layout=layout)
        assert torch.equal(x.grad[rows], one), f"dx of group {g}"
        how = {"layout": layout, "chain": True, "out_dtype": dtype}
        one = ptxgen.linear_wgrad(x[rows].detach(), dy[rows], **how)
        assert torch.equal(w.grad[g], one), f"dw of group {g}"
        total = dy[rows].float().sum(0)
        # Rounded to 16 bits once, 2^-8.
        torch.testing.assert_close(bias.grad[g].float(), total, rtol=1e-2, atol=1e-2)
    assert not x.grad[ENDS[-1] :].any()


def test_programs_can_be_differentiated_twice_and_explained():
    for name in ("grouped_linear", "grouped_linear_wgrad"):
        assert OPERATIONS[name].vjp is not None
    text = str(ptxgen.explain("grouped_linear", 4096, 4096, 14336, 8, dtype="bfloat16"))
    assert "grouped_wgmma" in text
    few = str(ptxgen.explain("grouped_linear", 16, 4096, 14336, 8, dtype="bfloat16"))
    assert "grouped_mma" in few.split("\n\n")[0] or "grouped_mma" in few
