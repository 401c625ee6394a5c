"""NF4 weights of the real bitsandbytes: the same numbers, both ways, and in layers."""

from __future__ import annotations

import pytest

import ptxgen
from ptxgen import nf4

torch = pytest.importorskip("torch", reason="needs PyTorch")
bnb = pytest.importorskip("bitsandbytes", reason="needs the package bitsandbytes")
functional = pytest.importorskip("bitsandbytes.functional")
pt = pytest.importorskip("ptxgen.torch")

pytestmark = pytest.mark.gpu

N, K = 200, 448
NESTED = pytest.mark.parametrize("nested", [False, True], ids=["plain", "compress_statistics"])
DTYPES = [torch.float32, torch.bfloat16, torch.float16]


def weight(kind=torch.float32, seed=0):
    torch.manual_seed(seed)
    w = torch.randn(N, K, device="cuda") * torch.logspace(-3, 2, N, device="cuda")[:, None]
    w[3, 64:128] = 0
    return w.to(kind)


def layer(nested, dtype, bias=True):
    """A Linear4bit, quantised on its way to the GPU."""
    made = bnb.nn.Linear4bit(
        K, N, bias=bias, compute_dtype=dtype, compress_statistics=nested, quant_type="nf4"
    )
    made.weight = bnb.nn.Params4bit(
        weight(dtype).cpu(), requires_grad=False, compress_statistics=nested, quant_type="nf4"
    )
    return made.to("cuda")


@NESTED
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_there_and_back(nested, dtype):
    """bitsandbytes quantises; what we read of it dequantises to its numbers; and back, to its."""
    data, state = functional.quantize_4bit(
        weight(dtype), blocksize=64, quant_type="nf4", compress_statistics=nested
    )
    assert (state.state2 is not None) is nested
    param = bnb.nn.Params4bit(data, quant_state=state, quant_type="nf4", bnb_quantized=True)
    q = nf4.from_bitsandbytes(param)
    assert torch.equal(nf4.dequantize(q, dtype), functional.dequantize_4bit(data, state))
    back = nf4.to_bitsandbytes(q, dtype)
    assert torch.equal(back.data, data)
    expected = functional.dequantize_4bit(data, state)
    assert torch.equal(functional.dequantize_4bit(back.data, back.quant_state), expected)
    again = nf4.from_bitsandbytes(back)
    assert torch.equal(again.data, q.data) and torch.equal(again.scales, q.scales)


def test_ours_is_theirs_to_read():
    """bitsandbytes dequantizes weights that ptxgen quantized to the same numbers."""
    q = nf4.quantize(weight())
    param = nf4.to_bitsandbytes(q)
    theirs = functional.dequantize_4bit(param.data, param.quant_state)
    assert torch.equal(theirs, nf4.dequantize(q))


@NESTED
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_layer_is_converted(nested, dtype):
    """The bits of the dense layer of what bitsandbytes dequantises to; and nearly its own."""
    model = torch.nn.Sequential(layer(nested, dtype), torch.nn.ReLU()).requires_grad_(False)
    w = functional.dequantize_4bit(model[0].weight.data, model[0].weight.quant_state)
    x = torch.randn(33, K, device="cuda", dtype=dtype, requires_grad=True)
    theirs = model(x).detach()
    bias = model[0].bias.to(dtype)
    copied = pt.QuantizedLinear.from_bitsandbytes(model[0])
    assert str(pt.convert(model, format="nf4")) == "converted 1 linear layers, skipped 0"
    model[0].bias.data = bias
    y = model[0](x)
    y.sum().backward()
    assert torch.equal(y, ptxgen.linear(x.detach(), w, bias, layout="nk"))
    assert torch.equal(x.grad, ptxgen.linear_dgrad(torch.ones_like(y), w, layout="nk"))
    assert torch.equal(copied(x.detach()), y)
    # The same factors, added up and rounded in another way: half an ulp of the largest, some.
    largest = theirs.abs().max()
    unit = torch.finfo(dtype).eps
    assert (model[1](y) - theirs).abs().max() <= 4 * max(unit, K * 2**-24) * largest


@NESTED
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("rows", [1, 33, 2000])
def test_a_layer_is_served_in_the_block(nested, dtype, rows):
    """Products and gradients are the dense ones, whichever kernel bitsandbytes would take."""
    made = layer(nested, dtype).requires_grad_(False)
    w = nf4.dequantize(nf4.from_bitsandbytes(made.weight), dtype)
    x = torch.randn(rows, K, device="cuda", dtype=dtype, requires_grad=True)
    bias, dy = made.bias.to(dtype), torch.ones(rows, N, device="cuda", dtype=dtype)
    with pt.batch_invariant(strict=True) as block:
        y = made(x)
        y.backward(dy)
        with torch.no_grad():
            assert torch.equal(made(x[:1]), y[:1])
    assert block.served["gemm_4bit"] == 2
    assert torch.equal(y, ptxgen.linear(x.detach(), w, bias, layout="nk"))
    assert torch.equal(x.grad, ptxgen.linear_dgrad(dy, w, layout="nk"))
