"""``batch_invariant`` on a real GPU: rows over batches, attention, graphs, whole models."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

import ptxgen

torch = pytest.importorskip("torch", reason="needs PyTorch")
pt = pytest.importorskip("ptxgen.torch")
functional = torch.nn.functional

pytestmark = pytest.mark.gpu

DTYPES = pytest.mark.parametrize(
    "dtype", [torch.float32, torch.bfloat16, torch.float16], ids=["f32", "bf16", "f16"]
)
BATCHES = (1, 2, 3, 7, 16, 100)


def random(*shape, dtype=torch.float32, seed=0):
    torch.manual_seed(seed)
    return torch.randn(shape, device="cuda").to(dtype)


def results(f, x):
    """Returns ``f(x)`` and the gradient of x, each with rows first."""
    x = x.detach().requires_grad_()
    y = f(x)
    dy = torch.arange(y[0].numel(), device="cuda").sin().view(y.shape[1:]).to(y.dtype).expand_as(y)
    (dx,) = torch.autograd.grad(y, x, dy)
    return y.detach(), dx


def rows_are_alone(f, x):
    """Whether each row has the same results in any batch, at any place of it and of memory."""
    whole = results(f, x)
    for m in BATCHES:
        for part in (slice(m), slice(len(x) - m, None)):
            for one, all_ in zip(results(f, x[part]), whole, strict=True):
                assert torch.equal(one, all_[part])
    elsewhere = x.new_empty(x.numel() + 1)[1:].view(x.shape).copy_(x)
    for one, all_ in zip(results(f, elsewhere), whole, strict=True):
        assert torch.equal(one, all_)


@DTYPES
@pytest.mark.parametrize("name", ["silu", "sigmoid", "exp", "tanh"])
def test_in_place_functions(name, dtype):
    """In-place functions write their argument's memory, also in repeated calls, and
    nothing else.
    """
    for view in (lambda x: x, lambda x: x.t(), lambda x: x[1:90:2, 3:60:3], lambda x: x[2]):
        for seed in range(3):
            x = random(99, 70, dtype=dtype, seed=seed)
            expected = x.clone()
            with pt.batch_invariant(strict=True) as block:
                y = getattr(torch.ops.aten, name)(view(x).clone())
                view(expected).copy_(y)
                part = view(x)
                assert getattr(torch.ops.aten, f"{name}_")(part) is part
            assert torch.equal(x, expected) and block.served == {name: 1, f"{name}_": 1}


@DTYPES
def test_images_without_what_gradients_need(dtype):
    """The bits of what is made where gradients are recorded."""
    x, v = random(5, 12, 18, 16, dtype=dtype), random(12, dtype=dtype, seed=1)
    for whole in (
        lambda x: functional.group_norm(x, 3, v, v),
        lambda x: functional.batch_norm(x, v, v.abs(), v, v),
        lambda x: functional.max_pool2d(x, 3, 2, 1),
        lambda x: functional.batch_norm(x, None, None, v, None, training=True),
        lambda x: functional.avg_pool2d(x, 3, 1, 1, count_include_pad=False),
    ):
        with pt.batch_invariant(strict=True):
            for _ in range(2):
                with torch.no_grad():
                    alone = whole(x)
                assert torch.equal(alone, whole(x.clone().requires_grad_()).detach())


ROWS = {
    "softmax": lambda t: t.softmax(-1),
    "log_softmax": lambda t: t.log_softmax(-1),
    "sum": lambda t: t.sum(-1, keepdim=True),
    "mean": lambda t: t.mean(-1, keepdim=True),
    "var": lambda t: t.float().var(-1, keepdim=True),
    "norm": lambda t: torch.linalg.vector_norm(t, dim=-1, keepdim=True),
    "layer norm": lambda t: functional.layer_norm(t, t.shape[-1:]),
    "rms norm": lambda t: functional.rms_norm(t, t.shape[-1:]),
    "logsumexp": lambda t: t.logsumexp(-1, keepdim=True),
    "topk": lambda t: t.topk(5)[0],
    "cumsum": lambda t: t.cumsum(-1),
}


@DTYPES
@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("width", [200, 2048, 4097, 50257])
def test_rows_do_not_depend_on_the_batch(name, dtype, width):
    x = random(150, width, dtype=dtype)
    with pt.batch_invariant() as block:
        rows_are_alone(ROWS[name], x)
    assert not block.unknown


@DTYPES
def test_rows_have_the_bits_of_the_library(dtype):
    x, w, b = random(40, 3000, dtype=dtype), random(3000, dtype=dtype), random(3000, dtype=dtype)
    with pt.batch_invariant(strict=True) as block:
        assert torch.equal(x.softmax(-1), ptxgen.softmax(x))
        assert torch.equal(x.sum(0), ptxgen.sum(x, 0))
        assert torch.equal(x.mean(-1), ptxgen.mean(x, -1))
        assert torch.equal(functional.layer_norm(x, (3000,), w, b), ptxgen.layer_norm(x, w, b))
        assert torch.equal(functional.rms_norm(x, (3000,), w, 1e-6), ptxgen.rms_norm(x, w, 1e-6))
    assert block.served["_fused_rms_norm"] == block.served["native_layer_norm"] == 1


@DTYPES
def test_sums_that_are_not_along_rows(dtype):
    x = random(6, 40, 300, dtype=dtype)
    with pt.batch_invariant():
        for whole, of in (
            (x.sum(1), lambda t: t.sum(1)),
            (x.mean((1, 2)), lambda t: t.mean((1, 2))),
        ):
            for m in (1, 2, 5):
                assert torch.equal(of(x[:m]), whole[:m])
        wide = x.double().sum(0)
        found = x.sum(0)
    unit = {torch.float32: 2**-21, torch.bfloat16: 2**-7, torch.float16: 2**-10}[dtype]
    assert (found.double() - wide).abs().max() <= unit * wide.abs().max()


# -- attention --------------------------------------------------------------------------------
def attend(q, k, v, **options):
    return functional.scaled_dot_product_attention(q, k, v, **options)


CASES = {
    "prefill": ((40, 8, 60, 64), 8, 60, {"is_causal": True}),
    "one token": ((40, 8, 1, 64), 8, 77, {}),
    "shared heads": ((40, 8, 33, 64), 2, 33, {"is_causal": True, "enable_gqa": True}),
    "shared heads, one token": ((40, 8, 1, 64), 2, 300, {"enable_gqa": True}),
    "scale": ((40, 4, 20, 40), 4, 50, {"scale": 0.25}),
}


@DTYPES
@pytest.mark.parametrize("case", CASES)
def test_attention_over_batches(case, dtype):
    """Recorded for gradients, and not, the first times or prepared."""
    shape, shared, keys, options = CASES[case]
    q = random(*shape, dtype=dtype)
    k, v = (random(shape[0], shared, keys, shape[-1], dtype=dtype, seed=s) for s in (1, 2))
    dy = random(*shape, dtype=dtype, seed=3)

    def computed(m):
        leaves = [t[:m].clone().requires_grad_() for t in (q, k, v)]
        y = attend(*leaves, **options)
        return [y.detach(), *torch.autograd.grad(y, leaves, dy[:m])]

    exact = attend(q.double(), k.double(), v.double(), **options)
    with pt.batch_invariant(strict=True) as block:
        whole = computed(40)
        for m in (1, 2, 3, 17):
            for one, all_ in zip(computed(m), whole, strict=True):
                assert torch.equal(one, all_[:m])
        for m in (40, 3, 3, 3, 1):
            assert torch.equal(attend(q[:m], k[:m], v[:m], **options), whole[0][:m])
    assert block.served["scaled_dot_product_attention"] == 10
    unit = {torch.float32: 2**-19, torch.bfloat16: 2**-7, torch.float16: 2**-10}[dtype]
    assert (whole[0].double() - exact).abs().max() <= unit * exact.abs().max()


@DTYPES
@pytest.mark.parametrize("additive", [False, True])
def test_attention_with_masks_and_padding(dtype, additive):
    """Keys that are masked at the end change nothing, so padding on the right does not; what was
    prefilled has the bits of what is decoded. A mask of floats is a bias, and rounds logits."""
    size = 1000 if dtype is torch.float32 else 4000
    q, k, v = (random(2, 2, size, 64, dtype=dtype, seed=s) for s in range(3))
    keep = torch.ones(size, size, dtype=torch.bool, device="cuda").tril()
    mask = torch.where(keep, 0.0, -torch.inf).to(dtype) if additive else keep
    with pt.batch_invariant():
        whole = attend(q, k, v, attn_mask=mask)
        assert additive or torch.equal(attend(q, k, v, is_causal=True), whole)
        for n in (1, 16, 33, 513, size - 1):
            how = {"attn_mask": mask[n - 1 : n, :n]} if additive else {}
            one = attend(q[:, :, n - 1 : n], k[:, :, :n], v[:, :, :n], **how)
            assert torch.equal(one, whole[:, :, n - 1 : n])
        nothing = attend(q, k, v, attn_mask=torch.zeros_like(keep))
    assert not nothing.any()


def test_what_dispatches_to_fused_attention_is_served():
    q = random(2, 4, 64, 64, dtype=torch.bfloat16)
    with pt.batch_invariant(strict=True):
        found, *_ = torch.ops.aten._scaled_dot_product_flash_attention(q, q, q)
    assert torch.equal(found, ptxgen.attention(q, q, q))


# -- graphs, compilers ------------------------------------------------------------------------
def layer(x, w):
    q = functional.linear(functional.layer_norm(x, x.shape[-1:]), w).unflatten(-1, (4, -1))
    q = q.transpose(1, 2)
    y = attend(q, q, q, is_causal=True).transpose(1, 2).flatten(2)
    return torch.softmax(functional.linear(y, w), -1) + x.mean(-1, keepdim=True)


@DTYPES
def test_a_captured_block_has_the_same_bits(dtype):
    x, w = random(5, 9, 256, dtype=dtype), random(256, 256, dtype=dtype, seed=1)
    side, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    with torch.no_grad(), pt.batch_invariant():
        expected = layer(x, w)
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            layer(x, w)
        torch.cuda.current_stream().wait_stream(side)
        with torch.cuda.graph(graph):
            y = layer(x, w)
    for seed in (0, 5):  # after the block: the graph is what it was
        x.copy_(random(5, 9, 256, dtype=dtype, seed=seed))
        graph.replay()
        with torch.no_grad(), pt.batch_invariant():
            assert torch.equal(y, layer(x, w))
        if seed == 0:
            assert torch.equal(y, expected)


def test_compiled_before_and_inside_is_served():
    x, w = random(5, 9, 256), random(256, 256, seed=1)
    before = torch.compile(layer)
    with torch.no_grad():
        before(x, w)
        with pt.batch_invariant() as block:
            expected = layer(x, w)
            served = sum(block.served.values())
            assert torch.equal(before(x, w), expected)
            assert torch.equal(torch.compile(layer)(x, w), expected)
        assert sum(block.served.values()) == 3 * served


# -- what is left alone -----------------------------------------------------------------------
@DTYPES
def test_values_of_the_whole_batch_are_the_same_each_time(dtype):
    table = random(1000, 64, dtype=dtype).requires_grad_()
    index = torch.randint(50, (5000,), device="cuda")
    target = torch.randint(64, (5000,), device="cuda")

    def step():
        loss = functional.cross_entropy(functional.embedding(index, table).float(), target)
        return loss.detach(), torch.autograd.grad(loss, table)[0]

    with pt.batch_invariant(strict=True):
        first = step()
        for _ in range(5):
            assert all(map(torch.equal, step(), first))


# -- whole models -----------------------------------------------------------------------------
EXAMPLE = Path(__file__).parents[2] / "examples" / "whole_models.py"


def _example():
    spec = importlib.util.spec_from_file_location("whole_models", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look there for their types
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None, reason="needs transformers, for its models"
)
@pytest.mark.parametrize("attention", ["eager", "sdpa", "ptxgen"])
@pytest.mark.parametrize(
    "name", ["gpt2", "llama", "qwen3", "gemma", "mixtral", "gemma2", "gpt_oss"]
)
def test_whole_models(name, attention):
    example = _example()
    if (name, attention) in example.WITHOUT:
        pytest.skip("transformers has none")
    result = example.check(name, attention)
    assert result.invariant, result
    assert attention != "ptxgen" or not result.left, result
