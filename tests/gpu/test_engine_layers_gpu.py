"""Decoder layers of engines on a GPU: sizes of models, and steps replayed as CUDA graphs."""

from __future__ import annotations

import pytest
from layer_cases import MODELS, Engine, alone, check_decoder, decoder, drawn, same

torch = pytest.importorskip("torch", reason="needs PyTorch")

pytestmark = pytest.mark.gpu

SIZES = {
    "hidden_size": 2048,
    "intermediate_size": 2816,
    "num_attention_heads": 16,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "max_position_embeddings": 1024,
    "sliding_window": 300,
}
STEPS = (
    ((0, 0, 700), (1, 0, 33)),
    ((1, 33, 512), (2, 0, 1)),
    ((2, 1, 2), (0, 700, 701), (1, 512, 600)),
    ((0, 701, 702), (1, 600, 601), (2, 2, 3)),
)
"""Batches of prompts, chunks and single tokens, as of ``layer_cases.STEPS``."""
PAGE, PAGES = 16, 64


@pytest.fixture(autouse=True)
def without_gradients():
    torch.manual_seed(0)
    with torch.no_grad():
        yield


def table():
    return torch.randperm(3 * PAGES).view(3, PAGES).int()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=["bf16", "f16"])
@pytest.mark.parametrize("name", MODELS)
def test_a_decoder_layer_over_pages(name, dtype):
    check_decoder(name, dtype, STEPS, table(), "cuda", PAGE, **SIZES)


@pytest.mark.parametrize("name", MODELS)
def test_a_graph_of_a_decode_step(name):
    """A captured step reads places and slots where they are, so that replays decode token by
    token, with the bits of the layer of `transformers`.
    """
    model = decoder(name, torch.bfloat16, "cuda", **SIZES)
    given = {i: drawn(40, SIZES["hidden_size"]).cuda() for i in range(2)}
    expected = alone(model, given)
    engine = Engine(name, model, table(), PAGE)
    padding = torch.ones(1, SIZES["hidden_size"], dtype=torch.bfloat16, device="cuda")

    def arguments(at):
        rows = [given[i][at : at + 1] for i in given]
        return (torch.cat((*rows, padding)), *engine.inputs(((0, at, at + 1), (1, at, at + 1))))

    held = arguments(0)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        engine.step(*held)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = engine.step(*held)
    for at in range(40):
        for to, x in zip(held, arguments(at), strict=True):
            to.copy_(x)
        graph.replay()
        for i in given:
            same(found[i], expected[i][at], f"{name}: token {at} of sequence {i}")
