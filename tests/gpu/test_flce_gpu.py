"""Fused linear cross-entropy on a GPU: bits, chunks, graphs, autograd, models."""

from __future__ import annotations

import interp_cases
import numpy as np
import pytest
from bits import same_bits
from test_flce import DTYPES, OPTIONS, SEED, alike, entropy, entropy_grad, head

import ptxgen
from ptxgen import reference
from ptxgen.ops import OPERATIONS
from ptxgen.program.launch import architecture
from ptxgen.runtime import get_device
from ptxgen.tiles import SPECS

pytestmark = pytest.mark.gpu
CLASSES = (1, 2, 1009, 32000, 50257, 128256, 151936, 262145)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("at", range(len(OPTIONS)))
@pytest.mark.parametrize("shape", [(21, 24, 37), (130, 64, 1000), (33, 47, 131)])
def test_bits_are_the_oracles(shape, dtype, at):
    layout, options = ("nk", "kn")[at % 2], OPTIONS[at]
    x, w, target, bias = head(*shape, dtype, layout)
    how = {**options, "layout": layout, "chunk": 32}
    got = entropy_grad(x, w, target, bias, **how)
    alike(got, reference.linear_cross_entropy_grad(x, w, target, bias, **how), f"{shape}")
    loss = entropy(x, w, target, bias, **how)
    same_bits(loss, got[0], seed=SEED, spec="", what="the loss alone")


@pytest.mark.parametrize("dtype", DTYPES[:2], ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("n", CLASSES)
def test_any_number_of_classes(n, dtype):
    x, w, target, _ = head(9, 16, n, dtype)
    x[7] *= 100
    got = entropy_grad(x, w, target, softcap=30.0, reduction="none")
    expected = reference.linear_cross_entropy_grad(x, w, target, softcap=30.0, reduction="none")
    alike(got, expected, f"{n} classes")


@pytest.mark.parametrize(
    "name",
    sorted(
        n for n, s in SPECS.items() if s.family in ("vocab_segments_logits", "vocab_segments_wgmma")
    ),
)
def test_every_kernel(name):
    device = get_device("cuda")
    if not SPECS[name].runs_on(architecture(device)):
        pytest.skip(f"not on {device.name}")
    for check in interp_cases.checks(name):
        check(device)


@pytest.fixture
def torch():
    found = pytest.importorskip("torch")
    found.manual_seed(SEED)
    return found


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_chunks_and_tiles_change_nothing(torch, dtype):
    kind = getattr(torch, dtype)
    x, w = (torch.randn(s, device="cuda", dtype=kind) for s in ((1100, 256), (5003, 256)))
    target = torch.randint(5003, (1100,), device="cuda")
    whole = None
    for chunk in (1, 7, 64, 512, 1100):
        dw = torch.full((5003, 256), torch.nan, device="cuda")
        dx = torch.full_like(x, torch.nan)
        found = ptxgen.linear_cross_entropy_grad(x, w, target, dx=dx, dw=dw, chunk=chunk)[:3]
        whole = whole or found
        assert all(torch.equal(a, b) for a, b in zip(found, whole, strict=True))
    first, second = slice(0, 608), slice(608, None)  # a multiple of 16 rows, then the others
    how = {"reduction": "sum", "dx": False}
    dw = torch.empty((5003, 256), device="cuda")
    for part in (first, second):
        ptxgen.linear_cross_entropy_grad(
            x[part], w, target[part], dw=dw, accumulate=part is second, **how
        )
    at_once = ptxgen.linear_cross_entropy_grad(x, w, target, dw=torch.empty_like(dw), **how)[2]
    assert torch.equal(dw, at_once), "micro-batches, added in one chain"


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
@pytest.mark.parametrize("n", [5003, 50257])
def test_rows_that_begin_aligned(torch, n, dtype):
    """For odd numbers of classes, the fused function (whose logits have aligned rows) gives the
    bits of logits without gaps between rows.
    """
    x, w = (torch.randn(s, device="cuda", dtype=getattr(torch, dtype)) for s in ((70, 64), (n, 64)))
    target = torch.randint(n, (70,), device="cuda")
    losses, dx, *_ = ptxgen.linear_cross_entropy_grad(x, w, target, reduction="none", dw=False)
    assert torch.equal(ptxgen.linear_cross_entropy(x, w, target, reduction="none"), losses)
    z = ptxgen.linear(x, w, layout="nk")
    top, total, hit = OPERATIONS["logit_segments"](z, target)
    assert top.shape == total.shape == (70, -(-n // 256))
    joined = OPERATIONS["cross_entropy_joined"]
    loss, peak, scale = joined(top, total, hit, target, classes=n)
    assert OPERATIONS["logit_gradient"](z, target, peak, scale, out=z) is z
    assert torch.equal(loss, losses) and torch.equal(ptxgen.linear_dgrad(z, w, layout="nk"), dx)


def test_a_graph_of_it(torch):
    x, w = (torch.randn(s, device="cuda", dtype=torch.bfloat16) for s in ((300, 64), (1000, 64)))
    target = torch.randint(1000, (300,), device="cuda")

    def run():
        return ptxgen.linear_cross_entropy_grad(x, w, target, chunk=128)[:3]

    run()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = run()
    x.normal_()
    target.fill_(-100)
    graph.replay()
    assert all(torch.equal(a, b) for a, b in zip(captured, run(), strict=True))
    assert captured[0] == 0


def test_autograd_and_the_compiler(torch):
    import ptxgen.torch as ours

    x = torch.randn(4, 33, 128, device="cuda", requires_grad=True)
    layer = torch.nn.Linear(128, 777, device="cuda")
    target = torch.randint(777, (4, 33), device="cuda")

    def loss(x):
        with torch.autocast("cuda", torch.bfloat16):
            return ours.linear_cross_entropy(x, layer.weight, target, layer.bias, softcap=20.0)

    operands = x, layer.weight, layer.bias
    plain = torch.autograd.grad(loss(x), operands)
    compiled = torch.compile(loss, fullgraph=True)
    kept = torch.utils.checkpoint.checkpoint(loss, x, use_reentrant=False)
    for found in (compiled(x), kept):
        again = torch.autograd.grad(found, operands)
        assert all(torch.equal(a, b) for a, b in zip(plain, again, strict=True))


def small_model(torch):
    """Embedding, two layers, and a head that shares the embedding's weight."""
    torch.manual_seed(SEED)
    embedding = torch.nn.Embedding(500, 64, device="cuda", dtype=torch.bfloat16)
    body = torch.nn.Sequential(*(torch.nn.Linear(64, 64) for _ in range(2)))
    return embedding, body.to("cuda", torch.bfloat16)


def train(torch, parts):
    """Losses and weights of a few steps over batches that the forward pass cuts in ``parts``."""
    import ptxgen.torch as ours

    embedding, body = small_model(torch)
    parameters = [embedding.weight, *body.parameters()]
    data = torch.Generator(device="cuda").manual_seed(SEED)
    losses = []
    for _ in range(4):
        tokens = torch.randint(500, (8, 33), device="cuda", generator=data)
        with ours.batch_invariant():
            features = torch.cat([body(embedding(p)) for p in tokens[:, :-1].chunk(parts)])
            loss = ours.linear_cross_entropy(features, embedding.weight, tokens[:, 1:])
            gradients = torch.autograd.grad(loss, parameters)
        losses.append(loss.detach())
        for p, g in zip(parameters, gradients, strict=True):
            p.data.add_(g, alpha=-0.5)
    return losses, [p.detach() for p in parameters]


def test_training_is_the_same_twice_and_losses_over_splits(torch):
    one, again, split = train(torch, 1), train(torch, 1), train(torch, 4)
    for a, b in zip((*one[0], *one[1]), (*again[0], *again[1]), strict=True):
        assert torch.equal(a, b)
    assert torch.equal(one[0][0], split[0][0]), "the forward pass does not know its splits"
    assert one[0][-1] < one[0][0]


def test_a_model_of_transformers(torch):
    """The recipe of docs/how-to/cross-entropy.md, beside the model's own loss."""
    transformers = pytest.importorskip("transformers")
    import ptxgen.torch as ours

    config = transformers.LlamaConfig(
        vocab_size=1000,
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
    )
    model = transformers.LlamaForCausalLM(config).to("cuda")
    tokens = torch.randint(1000, (3, 20), device="cuda")
    labels = tokens.clone()
    labels[:, :5] = -100
    features = model.model(tokens).last_hidden_state
    fused = ours.linear_cross_entropy(features[:, :-1], model.lm_head.weight, labels[:, 1:])
    gradients = torch.autograd.grad(fused, [*model.parameters()])
    stock = model(tokens, labels=labels).loss
    expected = torch.autograd.grad(stock, [*model.parameters()])
    # both in f32: losses within 100 units of 2^-23; gradients are sums of 60 terms through two
    # layers that cancel, a thousand times that
    torch.testing.assert_close(fused, stock, rtol=1e-5, atol=1e-5)
    for a, b in zip(gradients, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-5)
