"""Models of `transformers`, compiled as they come: the bits that they have in the block."""

from __future__ import annotations

import random
import sys

import model_cases
import pytest

import ptxgen

torch = pytest.importorskip("torch", reason="needs PyTorch")
pt = pytest.importorskip("ptxgen.torch")
patches = pytest.importorskip("ptxgen.torch.patches")
reading = pytest.importorskip("ptxgen.torch.reading")


@pytest.fixture(autouse=True)
def on_the_cpu_device():
    with ptxgen.use_device("cpu"):
        yield
    torch._dynamo.reset()


# -- masks --------------------------------------------------------------------------------------
def mask_of(queries, keys, seen):
    """The keys that each query sees, the last query standing at the last key."""
    distance = torch.arange(keys - queries, keys)[:, None] - torch.arange(keys)
    mask = torch.ones_like(distance, dtype=torch.bool)
    if seen.causal:
        mask &= distance >= 0
    if seen.window is not None:
        mask &= distance.abs() < seen.window
    return mask


def test_masks_are_known_by_their_values():
    """A mask's values tell its causal flag and window; with one value changed it is another, or
    none.
    """
    rng = random.Random(50)
    for _ in range(400):
        queries, keys = (rng.randint(1, 12) for _ in "qk")
        made = reading.MaskPattern(rng.random() < 0.5, rng.choice([None, *range(1, 14)]))
        mask = mask_of(queries, keys, made)
        lead = rng.choice([(), (1, 1), (2, 1), (3, 2)])
        found = reading.mask_pattern(mask.expand(*lead, queries, keys))
        assert found is not None, f"{made} of {queries} queries and {keys} keys"
        assert torch.equal(mask_of(queries, keys, found), mask), (made, found, queries, keys)
        at = rng.randrange(queries), rng.randrange(keys)
        mask[at] = ~mask[at]
        other = reading.mask_pattern(mask)
        assert other is None or torch.equal(mask_of(queries, keys, other), mask), (made, at)


def test_other_masks_are_left():
    rows = torch.ones(2, 1, 4, 4, dtype=torch.bool)
    rows[1, 0, :, 0] = False
    assert reading.mask_pattern(rows) is None, "of padding, which is a sequence's own"
    places = torch.arange(8)
    chunks = (places[:, None] >= places) & (places[:, None] // 4 == places // 4)
    assert reading.mask_pattern(chunks) is None
    assert reading.mask_pattern(torch.zeros(4, 4)) is None, "of numbers, which are added"
    assert reading.mask_pattern(torch.ones(4, 0, dtype=torch.bool)) is None


def _item(mask):
    mask[:, 1:3] = False


def _view(mask):
    mask.view(64)[40] = False


def _out(mask):
    torch.logical_and(mask, torch.arange(8) != 2, out=mask)


WRITES = {
    "an item": _item,
    "a view": _view,
    "out=": _out,
    "a method": lambda mask: mask.masked_fill_(torch.arange(8) == 2, False),
    "an operator": lambda mask: mask.__iand__(torch.arange(8) != 2),
}


@pytest.mark.parametrize("how", WRITES)
def test_a_mask_that_is_written_is_read(how):
    """The nodes that made it do not say what was written to it, or through a view of it."""

    def model(x):
        mask = torch.ones(8, 8, dtype=torch.bool).tril()
        WRITES[how](mask)
        return torch.nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=mask)

    torch.manual_seed(0)
    x = torch.randn(1, 1, 8, 16)
    with pt.batch_invariant():
        expected = model(x)
    assert torch.equal(torch.compile(model, backend=pt.Backend(), fullgraph=True)(x), expected)


def test_attention_is_told_what_masks_of_sizes_say():
    """Masks computed from sizes become flags of attention, with the bits and gradients of
    the mask.
    """
    functional = torch.nn.functional

    def model(q, k, v, limit):
        at, places = torch.arange(5), torch.arange(9)
        one = (at[:, None] * 0).__eq__(places * 0)
        far = (at[:, None] + 4 >= places) & (at[:, None] + 4 - places < 3) & one
        told = functional.scaled_dot_product_attention(q, k, v, attn_mask=far[None, None])
        data = far & (places < limit)
        return told, functional.scaled_dot_product_attention(q, k, v, attn_mask=data)

    torch.manual_seed(0)
    found = []
    for run in (model, torch.compile(model, backend=pt.Backend(strict=True), fullgraph=True)):
        torch.manual_seed(1)
        given = [torch.randn(1, 2, n, 16, requires_grad=True) for n in (5, 9, 9)]
        with pt.batch_invariant() if run is model else ptxgen.use_device("cpu"):
            results = run(*given, torch.tensor(7))
        with pt.batch_invariant():
            torch.autograd.backward(results, [torch.ones_like(y) for y in results])
        found.append([*results, *(x.grad for x in given)])
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))
    told = []

    def attention(*args, pattern=None, **how):
        told.append(pattern)
        return args[0]

    def backend(module, example):
        for node in module.graph.nodes:
            if node.target is functional.scaled_dot_product_attention:
                node.target = attention
        reading.as_in_eager(module, attention, "auto", lambda device: True)
        return module

    torch._dynamo.reset()
    torch.compile(model, backend=backend)(*given, torch.tensor(7))
    assert told == [(True, 3), None]


def test_our_attention_is_told_what_masks_of_sizes_say():
    """Masks from sizes become flags of ptxgen's attention where no other option says which keys are
    seen; bits and gradients stay.
    """

    def model(q, k, v, limit):
        at, places = torch.arange(4, 9)[:, None], torch.arange(9)
        near = ((at >= places) & (at - places < 3))[None, None]
        told = pt.attention(q, k, v, mask=near, softcap=2.0)
        data = pt.attention(q, k, v, mask=near & (places < limit))
        both = pt.attention(q, k, v, mask=near, window=2, causal=True)
        short = pt.attention(q, k, v, mask=near, lengths=torch.full((1,), 7, dtype=torch.int32))
        return told, data, both, short

    found = []
    for run in (model, torch.compile(model, backend=pt.Backend(strict=True), fullgraph=True)):
        torch.manual_seed(1)
        given = [torch.randn(1, 2, n, 16, requires_grad=True) for n in (5, 9, 9)]
        results = run(*given, torch.tensor(7))
        with pt.batch_invariant():
            torch.autograd.backward(results, [torch.ones_like(y) for y in results])
        found.append([*results, *(x.grad for x in given)])
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))
    told = []

    def backend(module, example):
        reading.as_in_eager(module, None, "auto", lambda device: True)
        for node in module.graph.nodes:
            if node.target in reading._own_attention():
                masked = isinstance(node.args[4], torch.fx.Node)
                told.append((masked, node.kwargs["causal"], node.kwargs["window"]))
        return module

    torch._dynamo.reset()
    torch.compile(model, backend=backend)(*given, torch.tensor(7))
    expected = [(False, True, 3), (True, False, None), (True, True, 2), (True, False, None)]
    assert told == expected


# -- models ---------------------------------------------------------------------------------------
SHORT = {("Llama", "none"), ("Llama", "packed"), ("Llama", "left"), ("Mistral", "none")}
SHORT |= {("Mixtral", "none"), ("Gemma2", "right"), ("GptOss", "packed"), ("DeepseekV3", "all")}


def cases():
    """Every second padding of a model, by turns, and those that are short."""
    for i, name in enumerate(model_cases.MODELS):
        for j, padding in enumerate(model_cases.PADDINGS):
            if (name, padding) in SHORT:
                yield pytest.param(name, padding)
            elif (i + j) % 2:
                yield pytest.param(name, padding, marks=pytest.mark.long)


@pytest.mark.parametrize(("name", "padding"), list(cases()))
def test_a_compiled_model_is_the_model_in_the_block(name, padding):
    """The loss, the logits and the gradients of all parameters. Nothing is said of how the model is
    read: in the block it runs as it comes.
    """
    pytest.importorskip("transformers", reason="needs transformers")
    assert model_cases.different(torch, name, padding) == []


def test_keys_are_shared_while_a_block_is_open(monkeypatch):
    """Whether `transformers` was there before, or comes meanwhile."""
    pytest.importorskip("transformers", reason="needs transformers")
    from transformers.integrations import sdpa_attention

    own = sdpa_attention.use_gqa_in_sdpa
    x = torch.zeros(1, 1, 1, 1)
    with pt.batch_invariant():
        assert sdpa_attention.use_gqa_in_sdpa(x, x, x)
        with pt.batch_invariant():
            assert sdpa_attention.use_gqa_in_sdpa(x, x, x)
        assert sdpa_attention.use_gqa_in_sdpa(x, x, x)
        assert not sdpa_attention.use_gqa_in_sdpa(x, x.to("meta"), x), "of a device not served"
    assert sdpa_attention.use_gqa_in_sdpa is own
    monkeypatch.delitem(sys.modules, patches.SHARING)
    finders = list(sys.meta_path)
    with pt.batch_invariant():
        import transformers.integrations.sdpa_attention as again

        assert again is not sdpa_attention and again.use_gqa_in_sdpa(x, x, x)
    assert not again.use_gqa_in_sdpa(x, x, x)
    monkeypatch.delitem(sys.modules, patches.SHARING)
    with pt.batch_invariant():
        pass
    assert sys.meta_path == finders
