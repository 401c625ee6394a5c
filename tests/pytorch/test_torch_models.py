"""``attn_implementation="ptxgen"`` in models of `transformers`, small and of random weights."""

from __future__ import annotations

import pytest

import ptxgen

torch = pytest.importorskip("torch", reason="needs PyTorch")
transformers = pytest.importorskip("transformers", reason="needs transformers")
pt = pytest.importorskip("ptxgen.torch")
serve = pytest.importorskip("ptxgen.torch.serve")
models = pytest.importorskip("ptxgen.torch.models")

# Multiples of 32: PyTorch computes pointwise functions on a CPU otherwise where less is left.
SIZES = {
    "vocab_size": 32,
    "hidden_size": 32,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": None,
}
EXPERTS = {"num_local_experts": 2, "num_experts_per_tok": 1}
QWEN = {
    "num_experts": 2,
    "num_experts_per_tok": 1,
    "moe_intermediate_size": 32,
    "shared_expert_intermediate_size": 32,
}
LATENT = {
    "num_key_value_heads": 4,
    "kv_lora_rank": 16,
    "q_lora_rank": None,
    "qk_rope_head_dim": 16,
    "qk_nope_head_dim": 32,
    "v_head_dim": 32,
    "head_dim": 16,
    "first_k_dense_replace": 2,
}
MODELS = {
    "llama": ("Llama", {}),
    "mistral": ("Mistral", {"sliding_window": 5}),
    "gemma2": ("Gemma2", {"sliding_window": 5, "attn_logit_softcapping": 2.0}),
    "gpt_oss": ("GptOss", {"sliding_window": 5, **EXPERTS}),
    "deepseek_v3": ("DeepseekV3", LATENT),
    "qwen2_moe": ("Qwen2Moe", {"use_sliding_window": True, "sliding_window": 5, **QWEN}),
}


@pytest.fixture(autouse=True)
def on_the_cpu_device():
    pt.register_attention()
    with ptxgen.use_device("cpu"), torch.no_grad():
        yield


def model(name, attention="ptxgen", **more):
    kind, sizes = MODELS[name]
    torch.manual_seed(0)
    config = getattr(transformers, f"{kind}Config")(**SIZES | sizes | more)
    config._attn_implementation = attention
    made = getattr(transformers, f"{kind}ForCausalLM")(config).eval()
    for p in made.parameters():
        p.copy_(torch.randn_like(p) * 0.3)
    return made


def tokens(*shape):
    return torch.randint(2, 32, shape, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("name", MODELS)
def test_logits_are_near_those_of_eager_attention(name):
    """Logits of real tokens are near eager attention's, with padding on both sides."""
    ids, mask = tokens(3, 12), torch.ones(3, 12, dtype=torch.long)
    mask[0, :4] = mask[1, 9:] = 0
    found, expected = (
        model(name, attention)(ids, attention_mask=mask, use_cache=False).logits
        for attention in ("ptxgen", "eager")
    )
    real = mask.bool()
    error = (found - expected)[real].abs().max()
    assert error <= 2**-17 * expected[real].abs().max()


def test_a_padding_mask_may_have_holes():
    ids, mask = tokens(3, 12), torch.ones(3, 12, dtype=torch.long)
    mask[0, 9:] = mask[1, 5] = mask[2, :3] = mask[2, 7] = 0
    found, expected = (
        model("mistral", attention)(ids, attention_mask=mask, use_cache=False).logits
        for attention in ("ptxgen", "eager")
    )
    real = mask.bool()
    assert (found - expected)[real].abs().max() <= 2**-17 * expected[real].abs().max()


@pytest.mark.parametrize("name", MODELS)
def test_decoding_and_padding_have_the_bits_of_one_sequence(name):
    """Decoding and padding have the bits of one sequence, also where a cache has dropped tokens
    beyond a window.
    """
    made, ids = model(name), tokens(1, 9)
    lengths = (9, 5, 7)
    whole = torch.zeros(3, 9, dtype=torch.long)
    mask = torch.zeros_like(whole)
    for row, n in enumerate(lengths):
        whole[row, 9 - n :], mask[row, 9 - n :] = ids[0, :n], 1
    with pt.batch_invariant() as block:
        alone = made(ids, use_cache=False).logits
        left = made(whole, attention_mask=mask, use_cache=False, position_ids=places(mask)).logits
        for row, n in enumerate(lengths):
            assert torch.equal(left[row, 9 - n :], alone[0, :n]), f"{n} tokens"
        prefix = made(ids[:, :4], use_cache=True)
        cache, steps = prefix.past_key_values, [prefix.logits]
        for i, n in ((4, 1), (5, 2), (7, 1), (8, 1)):
            more = made(ids[:, i : i + n], past_key_values=cache, use_cache=True)
            steps.append(more.logits)
        assert torch.equal(torch.cat(steps, 1), alone)
        parts = []
        cache = None
        for span in (slice(0, 6), slice(6, 8), slice(8, 9)):
            found = made(
                whole[:, span],
                attention_mask=mask[:, : span.stop],
                position_ids=places(mask)[:, span],
                past_key_values=cache,
                use_cache=True,
            )
            cache = found.past_key_values
            parts.append(found.logits)
        for row, n in enumerate(lengths):
            assert torch.equal(torch.cat(parts, 1)[row, 9 - n :], alone[0, :n]), f"{n} tokens"
    assert not block.unknown


def places(mask):
    return (mask.cumsum(-1) - 1).clamp(min=0)


def test_a_static_cache_has_the_bits_of_one_sequence():
    made, ids = model("mistral"), tokens(1, 9)
    with pt.batch_invariant():
        alone = made(ids, use_cache=False).logits
        cache = transformers.StaticCache(config=made.config, max_cache_len=12)
        steps = [
            made(ids[:, span], past_key_values=cache, use_cache=True).logits
            for span in (slice(0, 3), *(slice(i, i + 1) for i in range(3, 9)))
        ]
    assert torch.equal(torch.cat(steps, 1), alone)


@pytest.mark.parametrize(
    "how",
    [
        {"position_ids": torch.arange(12).remainder(5)[None]},
        {"attention_mask": torch.ones(12, 12).tril().bool()[None, None]},
        {"attention_mask": torch.full((12, 12), -1e30).triu(1)[None, None]},
    ],
    ids=["packed", "bool", "added"],
)
def test_other_masks_are_given_as_they_are(how):
    ids = tokens(1, 12)
    found, expected = (
        model("llama", attention)(ids, use_cache=False, **how).logits
        for attention in ("ptxgen", "sdpa")
    )
    assert (found - expected).abs().max() <= 2**-17 * expected.abs().max()


@pytest.mark.parametrize(("name", "whole"), [("llama", True), ("mistral", False)])
def test_a_compiled_model_has_the_same_bits(name, whole):
    """A compiled model has the same bits; with padding a window is a closure, which breaks the
    graph.
    """
    made, ids, mask = model(name), tokens(2, 12), torch.ones(2, 12, dtype=torch.long)
    mask[0, 8:] = 0
    torch.compiler.reset()
    compiled = torch.compile(made, backend="aot_eager", fullgraph=whole)
    found, expected = (
        f(ids, attention_mask=mask, use_cache=False).logits for f in (compiled, made)
    )
    assert torch.equal(found, expected)


@pytest.mark.parametrize("name", ["mistral", "gemma2", "gpt_oss"])
def test_windows_of_whole_sequences_break_no_graph(name):
    made, ids = model(name), tokens(2, 12)
    torch.compiler.reset()
    compiled = torch.compile(made, backend=pt.Backend(), fullgraph=True)
    with pt.batch_invariant():
        expected = made(ids, use_cache=False).logits
    assert torch.equal(compiled(ids, use_cache=False).logits, expected)


def test_masks_that_numbers_tell():
    of = pytest.importorskip("transformers.masking_utils")
    back, both = of.sliding_window_causal_mask_function(5), of.and_masks
    ahead = of.sliding_window_bidirectional_mask_function(5)
    for function, expected in (
        (of.causal_mask_function, (True, 0)),
        (of.bidirectional_mask_function, (False, 0)),
        (back, (True, 5)),
        (ahead, (False, 6)),
        (of.sliding_window_overlay(5), None),
        (both(of.causal_mask_function, ahead), (True, 6)),
        (both(of.causal_mask_function, of.packed_sequence_mask_function(None)), None),
        (of.chunked_causal_mask_function(4, None), None),
        (of.or_masks(of.causal_mask_function, back), None),
        (lambda b, h, q, k: k <= q, None),
    ):
        assert models._pattern(function, of) == expected


@pytest.mark.parametrize("name", ["gpt_oss", "gemma2", "deepseek_v3"])
def test_gradients_are_near_those_of_eager_attention(name):
    ids, mask = tokens(2, 9), torch.ones(2, 9, dtype=torch.long)
    mask[0, :3] = 0
    labels = torch.where(mask.bool() & mask.roll(1, 1).bool(), ids, -100)
    found = []
    for attention in ("ptxgen", "eager"):
        made = model(name, attention)
        with torch.enable_grad():
            made(ids, attention_mask=mask, labels=labels, use_cache=False).loss.backward()
        found.append({n: p.grad for n, p in made.named_parameters() if p.grad is not None})
    assert found[0].keys() == found[1].keys() and any("sinks" in n for n in found[0]) == (
        name == "gpt_oss"
    )
    for n, expected in found[1].items():
        assert (found[0][n] - expected).abs().max() <= 2**-15 * max(expected.abs().max(), 1), n
