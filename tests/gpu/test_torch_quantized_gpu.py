"""``ptxgen.torch.QuantizedLinear`` on a real GPU: bits, compiling, exporting, graphs, adapters."""

from __future__ import annotations

import copy

import pytest

import ptxgen
from ptxgen import nf4

torch = pytest.importorskip("torch", reason="needs PyTorch")
pt = pytest.importorskip("ptxgen.torch")

pytestmark = pytest.mark.gpu

K, N = 448, 200
DTYPES = pytest.mark.parametrize(
    "dtype", [torch.float32, torch.bfloat16, torch.float16], ids=["f32", "bf16", "f16"]
)


def layers(dtype):
    """An NF4 layer, and the dense one that has its bits."""
    torch.manual_seed(0)
    dense = pt.Linear(K, N, device="cuda")
    layer = pt.QuantizedLinear.from_linear(dense, format="nf4").to(dtype)
    dense.weight = torch.nn.Parameter(nf4.dequantize(layer.q, dtype), requires_grad=False)
    dense.bias = torch.nn.Parameter(layer.bias.detach().clone())
    return layer, dense


def results(module, x, dy):
    x = x.clone().requires_grad_()
    module.zero_grad()
    y = module(x)
    y.backward(dy)
    return [y.detach(), x.grad, *(p.grad for p in module.parameters() if p.requires_grad)]


def equal(these, those):
    return all(torch.equal(a, b) for a, b in zip(these, those, strict=True))


@DTYPES
def test_the_dense_layers_bits(dtype):
    layer, dense = layers(dtype)
    for m in 1, 33, 200:
        x, dy = (torch.randn(m, size, device="cuda").to(dtype) for size in (K, N))
        expected = results(dense, x, dy)
        for _ in range(2):  # then by the hot path
            assert equal(results(layer, x, dy), expected)
        with torch.no_grad():
            assert torch.equal(layer(x[:1]), expected[0][:1])


def test_the_same_compiled_exported_and_captured():
    layer, _ = layers(torch.bfloat16)
    compiled = torch.compile(layer, fullgraph=True, dynamic=True)
    for m in 33, 200:
        x, dy = (torch.randn(m, size, device="cuda").bfloat16() for size in (K, N))
        expected = results(layer, x, dy)
        assert equal(results(compiled, x, dy), expected)
    shapes = {"input": {0: torch.export.Dim("m", min=2)}}
    program = torch.export.export(layer, (x,), dynamic_shapes=shapes)
    assert torch.equal(program.module()(x[:50]), expected[0][:50])
    graph, held = torch.cuda.CUDAGraph(), torch.empty_like(expected[0])
    with torch.no_grad(), torch.cuda.graph(graph):
        held.copy_(layer(x))
    graph.replay()
    assert torch.equal(held, expected[0])


def test_autocast_is_that_of_the_dense_layer():
    layer, _ = layers(torch.float32)
    low = nf4.dequantize(layer.q, torch.bfloat16)
    x = torch.randn(20, K, device="cuda", requires_grad=True)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        y = layer(x)
        y.sum().backward()
    bias, rounded = layer.bias.detach(), x.detach().bfloat16()
    assert torch.equal(y, ptxgen.linear(rounded, low, bias, layout="nk"))
    dx = ptxgen.linear_dgrad(torch.ones_like(y), low, layout="nk")
    assert torch.equal(x.grad, dx.float())


@DTYPES
def test_moves_keep_the_codes(dtype):
    layer, _ = layers(torch.float32)
    data, scales = layer.data.clone(), layer.scales.clone()
    moved = copy.deepcopy(layer).cpu().to(dtype).to("cuda")
    assert torch.equal(moved.data, data) and torch.equal(moved.scales, scales)
    assert moved.bias.dtype is dtype and moved.data.is_cuda
