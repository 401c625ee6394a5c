"""CUDA graphs of several streams: the bits of one stream, replay after replay."""

from __future__ import annotations

import copy

import pytest

import ptxgen
from ptxgen import functions as f
from ptxgen import graph

torch = pytest.importorskip("torch", reason="needs PyTorch")
pt = pytest.importorskip("ptxgen.torch")
test_graph = pytest.importorskip("test_graph")
pytestmark = pytest.mark.gpu

HIDDEN, KV, INNER = 1024, 256, 2816
REPLAYS = 100


@pytest.fixture(autouse=True)
def anew():
    yield
    torch._dynamo.reset()


def drawn(*shape: int, dtype=torch.bfloat16):
    return torch.randn(*shape, device="cuda").to(dtype)


def weights(dtype=torch.bfloat16):
    """Draws the weights ``[in, out]`` of Q, K, V, gate, up and down."""
    sizes = (HIDDEN, HIDDEN), *[(HIDDEN, KV)] * 2, *[(HIDDEN, INNER)] * 2, (INNER, HIDDEN)
    return [drawn(*size, dtype=dtype) * 0.05 for size in sizes]


def layer(x, q, k, v, gate, up, down):
    """Products of one input, some of which have scratch memory. K and V meet before Q joins them,
    so that the first stream waits for one of the others through another one.
    """
    y = ptxgen.rms_norm(x)
    queries, keys, values = (ptxgen.linear(y, w, layout="kn") for w in (q, k, v))
    both = f.mul(keys, f.exp(values))
    mixed = f.add(queries.reshape(-1, HIDDEN // KV, KV), both.reshape(-1, 1, KV))
    y = ptxgen.rms_norm(f.add(x, mixed.reshape(-1, HIDDEN)))
    hidden = f.mul(
        ptxgen.linear(y, gate, activation="silu", layout="kn"), ptxgen.linear(y, up, layout="kn")
    )
    return f.add(x, ptxgen.linear(hidden, down, layout="kn")), keys, values


@pytest.mark.parametrize("rows", [1, 8, 512])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_replays_on_several_streams_have_the_bits_of_one(rows, dtype, tmp_path) -> None:
    given = weights(dtype)

    def function(x):
        for _ in range(3):
            x, keys, values = layer(x, *given)
        return x, keys, values

    x = drawn(rows, HIDDEN, dtype=dtype)
    one, several = (
        ptxgen.capture(function, x, passes=graph.fewer, streams=streams) for streams in (1, 4)
    )
    several.save(tmp_path / "it")
    loaded = ptxgen.load(tmp_path / "it", arrays=several.outside, streams=4)
    assert one.streams == 1 < several.streams == loaded.streams
    inputs = [drawn(rows, HIDDEN, dtype=dtype) for _ in range(REPLAYS)]
    expected = [one(x) for x in inputs]
    for each in (several, loaded):
        found = [each(x) for x in inputs]  # replays follow one another, and nobody waits
        for got, wanted in zip(found, expected, strict=True):
            assert all(map(torch.equal, got, wanted))
    for got, wanted in zip(expected[0], function(inputs[0]), strict=True):
        assert torch.equal(got, wanted)


@pytest.mark.parametrize("streams", [2, 3, 8])
def test_any_number_of_streams_has_the_same_bits(streams) -> None:
    given, x = weights(), drawn(2, HIDDEN)
    captured = ptxgen.capture(lambda x: layer(x, *given), x, streams=streams)
    assert 1 < captured.streams <= streams
    for _ in range(10):
        x = drawn(2, HIDDEN)
        assert all(map(torch.equal, captured(x), layer(x, *given)))


def test_gradients_of_a_block_of_a_llama() -> None:
    torch.manual_seed(0)
    model = test_graph.Block(256, 4, 2).cuda()
    backends = [pt.Backend(capture=True, streams=streams) for streams in (1, 4)]
    ways = [torch.compile(copy.deepcopy(model), backend=backend) for backend in backends]
    for _ in range(6):
        x, found = torch.randn(2, 16, 256, device="cuda"), []
        for way in ways:
            way.zero_grad()
            way(x).square().mean().backward()
            found.append([p.grad.clone() for p in way.parameters()])
        assert all(map(test_graph.same, *found))
    assert [max(backend.report().streams) > 1 for backend in backends] == [False, True]
