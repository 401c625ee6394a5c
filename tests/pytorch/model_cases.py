"""Models of `transformers`, small and of random weights, compiled and in the block."""

from __future__ import annotations

from typing import Any

SIZES = {
    "vocab_size": 32,
    "hidden_size": 64,
    "intermediate_size": 64,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 256,
    **{f"{name}_token_id": i for i, name in enumerate(("pad", "bos", "eos"))},
}
MODELS: dict[str, dict[str, Any]] = {
    "Llama": {},
    "Mistral": {"sliding_window": 4},
    "Mixtral": {"num_local_experts": 4},
    "Qwen3": {},
    "Gemma": {},
    "Gemma2": {},
    "Phi3": {},
    "GPT2": {"n_embd": 64, "n_head": 4, "n_layer": 1, "n_positions": 256},
    "DeepseekV3": {
        **{"num_key_value_heads": 4, "kv_lora_rank": 16, "q_lora_rank": 32, "v_head_dim": 16},
        **{"qk_rope_head_dim": 16, "qk_nope_head_dim": 16, "moe_intermediate_size": 32},
        **{"n_routed_experts": 8, "num_experts_per_tok": 2, "n_group": 2, "topk_group": 1},
        "first_k_dense_replace": 0,
    },
    "GptOss": {"num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 4},
}
OURS = {"GptOss", "Gemma2"}
"""Models that run with ``attn_implementation="ptxgen"``: they have no other that is whole."""
PADDINGS = {"none": None, "all": (0, 0), "left": (3, 0), "right": (0, 3), "packed": None}
"""Sequences padded before and behind, of 8 tokens."""


def different(
    torch: Any, name: str, padding: str, times: int = 1, device: str = "cpu", **more: Any
) -> list[str]:
    """Names of the loss, the logits and the gradients of parameters that a compiled model has in
    other bits than the model as it comes in the block. Sequences have 8 tokens, ``times`` as many.
    """
    import transformers

    import ptxgen.torch as pt

    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(**SIZES | MODELS[name])
    if name in OURS:
        pt.register_attention()
        config._attn_implementation = "ptxgen"
    head = "GPT2LMHeadModel" if name == "GPT2" else f"{name}ForCausalLM"
    model = getattr(transformers, head)(config).eval().to(device, **more)
    length = 8 * times
    ids = torch.randint(3, 32, (1 if padding == "packed" else 2, length), device=device)
    given = {"input_ids": ids, "labels": ids, "use_cache": False}
    if padding == "packed":
        parts = [torch.arange(n * times, device=device) for n in (5, 3)]
        given["position_ids"] = torch.cat(parts)[None]
    if (pads := PADDINGS[padding]) is not None:
        given["attention_mask"] = seen = torch.ones_like(ids)
        seen[0, : pads[0] * times] = 0
        seen[1, length - pads[1] * times :] = 0
    with pt.batch_invariant():
        expected = model(**given)
        expected.loss.backward()
    gradients = {n: p.grad for n, p in model.named_parameters()}
    model.zero_grad()
    found = torch.compile(model, backend=pt.Backend())(**given)
    found.loss.backward()
    wrong = [n for n, p in model.named_parameters() if not torch.equal(p.grad, gradients[n])]
    return [n for n in ("loss", "logits") if not torch.equal(found[n], expected[n])] + wrong
