"""NF4 weights: quantised, dequantised, and as bitsandbytes keeps them; the oracles' own sums."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from bits import NUMPY, operand, same_bits

import ptxgen
from ptxgen import nf4, reference
from ptxgen.errors import DtypeError, OptionError, ShapeError
from ptxgen.numerics.formats.nf4 import NF4

SEED = 4


def weight(n, k, dtype="f32", kind="normal"):
    return operand(np.random.default_rng([SEED, n, k]), (n, k), kind, dtype)


def indices(q):
    """[blocks, 64], k ascending."""
    return np.stack([q.data & 15, q.data >> 4], -1).reshape(-1, NF4.block)


def nearest(number, scale):
    """Returns the index of the code nearest to ``number / scale``, by rational arithmetic."""
    if scale == 0:
        return 7
    far = [abs(Fraction(float(number)) - Fraction(float(scale)) * Fraction(c)) for c in nf4.CODE]
    return far.index(min(far))


def test_the_codebook_is_of_exact_f32_numbers():
    assert all(float(np.float32(c)) == c for c in nf4.CODE)
    assert list(nf4.CODE) == sorted(nf4.CODE) and nf4.CODE[7] == 0.0 and len(nf4.CODE) == 16


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f16"])
@pytest.mark.parametrize("kind", ["normal", "wide", "subnormal"])
def test_nearest_codes(dtype, kind):
    w = weight(3, 2 * NF4.block, dtype, kind)
    w[1, : NF4.block] = 0
    q = nf4.quantize(w)
    blocks = w.astype(np.float32).reshape(-1, NF4.block)
    assert (q.scales == np.abs(blocks).max(1)).all() and q.scales[2] == 0
    expected = [[nearest(x, s) for x in row] for row, s in zip(blocks, q.scales, strict=True)]
    assert (indices(q) == expected).all()


def test_ties_go_to_the_lower_index():
    """Middles of neighbours are f32 numbers where the scale is a power of two, and some are not."""
    low, high = np.float64(nf4.CODE[:-1]), np.float64(nf4.CODE[1:])
    middle = (low + high) / 2
    w = np.ones((1, NF4.block), np.float32)
    w[0, :15] = middle
    w[0, 15:30] = np.nextafter(w[0, :15], np.float32(2))
    found = indices(nf4.quantize(w * 4))[0]
    exact = w[0, :15] == middle
    assert exact.sum() > 3 and (found[:15][exact] == np.arange(15)[exact]).all()
    assert (found[15:30] == np.arange(15) + 1).all()


def test_storage():
    """Block b of row n is number n · K/64 + b, the even k in the low nibble."""
    w = np.zeros((2, 3 * NF4.block), np.float32)
    w[1, NF4.block + 2], w[1, NF4.block + 3] = -2.0, 1.0
    q = nf4.quantize(w)
    assert q.scales.tolist() == [0, 0, 0, 0, 2, 0]
    assert q.data.shape == (6 * 32,) and q.data.dtype == np.uint8
    assert q.data[4 * 32 + 1] == 12 << 4 | 0  # 0.5 lies nearest to code 12
    assert (np.delete(q.data, 4 * 32 + 1) == 0x77).all()
    turned = nf4.quantize(w.T, layout="kn")
    assert (turned.data == q.data).all() and (turned.scales == q.scales).all()
    assert (nf4.dequantize(q, layout="kn") == nf4.dequantize(q).T).all()


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f16"])
def test_dequantized_bits(dtype):
    q = nf4.quantize(weight(5, 3 * NF4.block, kind="wide"))
    got = nf4.dequantize(q, NUMPY[dtype])
    same_bits(got, reference.dequantize(q, NUMPY[dtype]), seed=SEED)
    one = np.float32(nf4.CODE[indices(q)[4, 9]]) * q.scales[4]
    assert got[1, NF4.block + 9] == one.astype(NUMPY[dtype])
    assert got.dtype == NUMPY[dtype] and got.shape == (5, 3 * NF4.block)
    again = nf4.dequantize(nf4.quantize(nf4.dequantize(q)))
    same_bits(again, nf4.dequantize(q), seed=SEED)


def test_refused_by_name():
    w = weight(2, NF4.block)
    q = nf4.quantize(w)
    for bad in (weight(2, 63), weight(2, 100), weight(2, 0)):
        with pytest.raises(
            ShapeError, match=rf"w has shape .*, so K = {bad.shape[1]}; takes a multiple of 64"
        ):
            nf4.quantize(bad)
    with pytest.raises(ShapeError, match=r"w has shape \[64\]; takes \[N, K\]"):
        nf4.quantize(w[0])
    with pytest.raises(DtypeError, match="w has dtype float64"):
        nf4.quantize(w.astype(np.float64))
    with pytest.raises(DtypeError, match="w is a list"):
        nf4.quantize([1.0])
    with pytest.raises(OptionError, match="layout is 'nt'"):
        nf4.quantize(w, layout="nt")
    with pytest.raises(OptionError, match="layout is 'nt'"):
        nf4.dequantize(q, layout="nt")
    with pytest.raises(DtypeError, match="dtype is 'float64'"):
        nf4.dequantize(q, "float64")
    with pytest.raises(ShapeError, match=r"scales has shape \[1\]; takes \[2\] or \[2, 1\] for N"):
        nf4.Weight(q.data, q.scales[:1], 2, 64)
    with pytest.raises(ShapeError, match=r"data has shape \[63\]"):
        nf4.Weight(q.data[1:], q.scales, 2, 64)
    with pytest.raises(ShapeError, match=r"scales has strides \[2\]; takes a contiguous array"):
        nf4.Weight(q.data, np.zeros(4, np.float32)[::2], 2, 64)
    with pytest.raises(DtypeError, match="data has dtype int8"):
        nf4.Weight(q.data.view(np.int8), q.scales, 2, 64)
    with pytest.raises(ShapeError, match="k is 32"):
        nf4.Weight(q.data, q.scales, 4, 32)


# -- the oracles ------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f16"])
def test_oracles_are_the_dense_ones(dtype):
    rng = np.random.default_rng(SEED)
    q = nf4.quantize(weight(7, 2 * NF4.block))
    x, dy = operand(rng, (3, 2 * NF4.block), "normal", dtype), operand(rng, (3, 7), "normal", dtype)
    bias, w = operand(rng, (7,), "normal", dtype), nf4.dequantize(q, x.dtype)
    expected = reference.linear(x, w, bias, layout="nk", activation="silu")
    same_bits(reference.quantized_linear(x, q, bias, activation="silu"), expected)
    same_bits(reference.quantized_linear_dgrad(dy, q), reference.linear_dgrad(dy, w, layout="nk"))
    named = "simt" if dtype == "f32" else "tc"
    same_bits(reference.quantized_linear(x, q, accumulate=named), reference.quantized_linear(x, q))
    with pytest.raises(OptionError, match="accumulate is"):
        reference.quantized_linear(x, q, accumulate="tc" if dtype == "f32" else "simt")


def test_f64_is_one_chain_of_exact_products():
    rng = np.random.default_rng(SEED)
    q = nf4.quantize(weight(5, 4 * NF4.block, kind="wide"))
    w = nf4.dequantize(q)
    x, dy = operand(rng, (3, 4 * NF4.block), "wide"), operand(rng, (3, 5), "wide")
    bias = operand(rng, (5,), "normal")

    def chain(a, b):
        acc = 0.0
        for one, other in zip(a.tolist(), b.tolist(), strict=True):
            exact = Fraction(one) * Fraction(other) + Fraction(acc)
            acc = exact.numerator / exact.denominator  # correctly rounded
        return np.float32(acc)

    y = reference.quantized_linear(x, q, accumulate="f64")
    assert y.dtype == np.float32 and y.shape == (3, 5)
    for i, j in np.ndindex(3, 5):
        assert y[i, j] == chain(x[i], w[j])
    dx = reference.quantized_linear_dgrad(dy, q, accumulate="f64")
    assert dx[2, 77] == chain(dy[2], w[:, 77]) and dx.shape == (3, 4 * NF4.block)
    biased = reference.quantized_linear(x, q, bias, accumulate="f64", activation="relu")
    same_bits(biased, reference.activate("relu", y + bias))
    assert (y != reference.quantized_linear(x, q)).any(), "f32 chains round elsewhere"
    empty = nf4.Weight(q.data[:0], q.scales[:0], 0, 4 * NF4.block)
    assert (reference.quantized_linear_dgrad(dy[:, :0], empty, accumulate="f64") == 0).all()


# -- PyTorch and bitsandbytes ----------------------------------------------------------


def test_torch_has_the_same_bits():
    torch = pytest.importorskip("torch")
    for dtype in ("float32", "bfloat16", "float16"):
        wide = weight(4, 3 * NF4.block)
        w = torch.from_numpy(wide).to(getattr(torch, dtype))
        q = nf4.quantize(torch.nn.Parameter(w))
        mine = nf4.quantize(wide.astype(dtype))
        assert (q.data.numpy() == mine.data).all() and (q.scales.numpy() == mine.scales).all()
        got, expected = nf4.dequantize(q, w.dtype), nf4.dequantize(mine, dtype)
        assert got.dtype == w.dtype and got.is_contiguous()
        assert got.view(torch.uint8).numpy().tobytes() == expected.tobytes()


def fake_param(torch, nested, **changed):
    """A Params4bit by its documented attributes, and the numbers that it stands for."""
    rng = np.random.default_rng(SEED)
    n, k = 6, 3 * NF4.block
    data = torch.from_numpy(rng.integers(0, 256, (n * k // 2, 1), np.uint8))
    count = n * k // NF4.block
    state = SimpleNamespace(
        absmax=torch.from_numpy(rng.random(count, np.float32)), shape=torch.Size((n, k)),
        code=torch.tensor(nf4.CODE), blocksize=NF4.block, quant_type="nf4", dtype=torch.bfloat16,
        offset=None, state2=None,
    )  # fmt: skip
    scales = state.absmax
    if nested:
        inner = SimpleNamespace(
            absmax=torch.rand(-(-count // 4)), code=torch.rand(256), blocksize=4
        )
        state.absmax = torch.from_numpy(rng.integers(0, 256, count, np.uint8))
        state.state2, state.offset = inner, torch.tensor(0.123)
        scales = torch.stack(
            [
                inner.code[a.long()] * inner.absmax[i // 4] + 0.123
                for i, a in enumerate(state.absmax)
            ]
        )
    vars(state).update(changed)
    even_first = torch.stack([data >> 4, data & 15], -1).reshape(-1, NF4.block)
    w = (torch.tensor(nf4.CODE)[even_first.long()] * scales[:, None]).reshape(n, k)
    return SimpleNamespace(data=data, quant_state=state), w


@pytest.mark.parametrize("nested", [False, True])
def test_from_what_bitsandbytes_documents(nested):
    torch = pytest.importorskip("torch")
    param, expected = fake_param(torch, nested)
    q = nf4.from_bitsandbytes(param)
    assert torch.equal(nf4.dequantize(q), expected)
    halves = param.data.reshape(-1).view(torch.float16)[:, None]
    stored = SimpleNamespace(data=halves, quant_state=param.quant_state)
    assert torch.equal(nf4.from_bitsandbytes(stored).data, q.data), "quant_storage of 16 bits"
    with pytest.raises(OptionError, match="param has quant_type 'fp4'; takes 'nf4'"):
        nf4.from_bitsandbytes(fake_param(torch, nested, quant_type="fp4")[0])
    with pytest.raises(OptionError, match="param has blocksize 128; takes 64"):
        nf4.from_bitsandbytes(fake_param(torch, nested, blocksize=128)[0])
    with pytest.raises(OptionError, match="param has no quant_state"):
        nf4.from_bitsandbytes(param.data)
    with pytest.raises(ShapeError, match="K = 96"):
        nf4.from_bitsandbytes(fake_param(torch, nested, shape=torch.Size((12, 96)))[0])


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize(
    "device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
)  # fmt: skip
def test_both_ways_with_the_package(nested, device):
    torch, bnb = pytest.importorskip("torch"), pytest.importorskip("bitsandbytes")
    functional = pytest.importorskip("bitsandbytes.functional")
    w = torch.from_numpy(weight(24, 4 * NF4.block)).to(device)
    data, state = functional.quantize_4bit(
        w, blocksize=NF4.block, quant_type="nf4", compress_statistics=nested
    )
    expected = functional.dequantize_4bit(data, state)
    param = bnb.nn.Params4bit(data, quant_state=state, quant_type="nf4", bnb_quantized=True)
    q = nf4.from_bitsandbytes(param)
    assert torch.equal(nf4.dequantize(q), expected)
    back = nf4.to_bitsandbytes(q)
    assert torch.equal(back.data, data)
    assert torch.equal(functional.dequantize_4bit(back.data, back.quant_state), expected)
    again = nf4.from_bitsandbytes(back)
    assert torch.equal(again.data, q.data) and torch.equal(again.scales, q.scales)


def test_only_torch_goes_to_bitsandbytes():
    with pytest.raises(DtypeError, match="q is of numpy arrays"):
        nf4.to_bitsandbytes(nf4.quantize(weight(1, NF4.block)))
    assert ptxgen.nf4 is nf4
