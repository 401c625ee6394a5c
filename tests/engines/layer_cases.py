"""Decoder layers of `transformers`, and the same layers composed of functions of engines."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
transformers = pytest.importorskip("transformers", reason="needs transformers")
pt = pytest.importorskip("ptxgen.torch")
layers = pytest.importorskip("ptxgen.engines.layers")

SMALL = {
    "vocab_size": 32,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
}
MODELS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "llama": ("Llama", "llama", {"attention_bias": True}),
    "qwen3": ("Qwen3", "llama", {}),
    "gemma2": ("Gemma2", "gemma", {"sliding_window": 4, "query_pre_attn_scalar": 7}),
    "gpt_oss": (
        "GptOss",
        "gpt_oss",
        {"sliding_window": 4, "num_local_experts": 3, "num_experts_per_tok": 2},
    ),
}
"""Models by the name of their modeling file: classes, style of the norms, sizes."""
Batch = tuple[tuple[int, int, int], ...]
"""A batch of an engine: sequences, each with its first token and the token behind its last."""
STEPS: tuple[Batch, ...] = (
    ((0, 0, 7), (1, 0, 3)),
    ((1, 3, 5), (2, 0, 1)),
    ((2, 1, 2), (0, 7, 8)),
    ((2, 2, 3),),
)
"""Batches of three sequences: 0 comes in one piece and decodes a token, 1 comes in chunks, 2 token
by token."""


def of(model: str, name: str) -> Any:
    """Class or function ``name`` of the modeling file of a model of `transformers`."""
    return getattr(import_module(f"transformers.models.{model}.modeling_{model}"), name)


def same(found: Any, expected: Any, what: Any = "") -> None:
    """Fails unless tensors, or tuples of them, have the same dtype, shape and bits."""
    if isinstance(expected, tuple):
        for a, b in zip(found, expected, strict=True):
            same(a, b, what)
        return
    assert found.dtype is expected.dtype, what
    assert torch.equal(found, expected), what


def drawn(*shape: int, dtype: Any = None, scale: float = 1.0) -> Any:
    """Draws normal numbers, the same on any device; ``dtype``: bfloat16 by default."""
    return (torch.randn(shape) * scale).to(dtype or torch.bfloat16)


def randomized(module: Any, dtype: Any = None) -> Any:
    """Draws the parameters of a module anew, so small that results stay near 1."""
    for p in module.parameters():
        p.data = drawn(*p.shape, dtype=dtype, scale=2 / max(p.shape[-1], 32) ** 0.5)
    return module


def mixture(style: str, module: Any, router: Any, x: Any) -> tuple[Any, Any, Any]:
    """Weights, experts and the result of a mixture, by functions of engines."""
    scores = layers.linear(x, router.weight, getattr(router, "bias", None))
    weights, chosen = layers.router(
        scores, router.top_k, style=style, normalize=getattr(router, "norm_topk_prob", True)
    )
    how = {"activation": "gpt_oss", "layout": "kn"} if style == "gpt_oss" else {}
    biases = (getattr(module, f"{n}_bias", None) for n in ("gate_up_proj", "down_proj"))
    y = layers.experts(x, weights, chosen, module.gate_up_proj, module.down_proj, *biases, **how)
    return weights, chosen, y


def decoder(name: str, dtype: Any, device: str = "cpu", **more: Any) -> Any:
    """A model of one layer with random weights."""
    kind, style, sizes = MODELS[name]
    pt.register_attention()
    pt.register_experts()
    config = getattr(transformers, f"{kind}Config")(
        **SMALL | sizes | more, attn_implementation="ptxgen", experts_implementation="ptxgen"
    )
    model = getattr(transformers, f"{kind}Model")._from_config(config, dtype=dtype).eval()
    randomized(model, dtype)
    if style == "gpt_oss":  # its norms stay in float32
        for n, module in model.named_modules():
            if n.endswith("norm"):
                module.weight.data = module.weight.data.float()
    return model.to(device)


class Engine:
    """A decoder layer of `transformers`, composed of functions of ``layers`` over a paged cache.

    ``pages``: number of pages of ``page`` tokens; ``table``: the pages of each sequence.
    """

    def __init__(self, name: str, model: Any, table: Any, page: int = 4) -> None:
        _, self.style, _ = MODELS[name]
        self.name, self.layer, self.config = name, model.layers[0], model.config
        like = self.layer.self_attn.q_proj.weight
        inv_freq, scaling = layers.inverse_frequencies(self.config)
        length = self.config.max_position_embeddings
        how = {"dtype": like.dtype, "device": like.device}
        self.cos_sin = layers.rotary_table(inv_freq, scaling, length, **how)
        self.heads = self.config.num_attention_heads, *[self.config.num_key_value_heads] * 2
        self.width, self.page, self.table = self.config.head_dim, page, table.to(like.device)
        shape = int(table.max()) + 1, page, self.heads[1], 2 * self.width
        self.cache = torch.full(shape, torch.nan, **how)

    def norm(self, module: Any, x: Any, residual: Any = None) -> Any:
        eps = self.config.rms_norm_eps
        return layers.rms_norm(x, module.weight, eps, residual, style=self.style)

    def attend(self, x: Any, positions: Any, slots: Any, *places: Any) -> Any:
        at = self.layer.self_attn
        parts = [getattr(at, f"{n}_proj") for n in "qkv"]
        weight = torch.cat([p.weight for p in parts])
        bias = None if parts[0].bias is None else torch.cat([p.bias for p in parts])
        rows = layers.linear(x, weight, bias).view(len(x), -1, self.width)
        q, k, v = rows.split(self.heads, 1)
        norms = (at.q_norm.weight, at.k_norm.weight) if hasattr(at, "q_norm") else None
        eps = self.config.rms_norm_eps
        q, k = layers.rotary(positions, q, k, self.cos_sin, norms=norms, eps=eps)
        layers.write_pages(k, v, self.cache, slots)
        how = {
            "scale": at.scaling,
            "window": getattr(at, "sliding_window", None),
            "softcap": getattr(at, "attn_logit_softcapping", None),
            "sinks": getattr(at, "sinks", None),
        }
        y = layers.attention(q, *self.cache.split(self.width, -1), *places, **how)
        return layers.linear(y.reshape(len(x), -1), at.o_proj.weight, at.o_proj.bias)

    def feed(self, x: Any) -> Any:
        mlp = self.layer.mlp
        if self.name == "gpt_oss":
            return mixture("gpt_oss", mlp.experts, mlp.router, x)[2]
        y = layers.linear(x, torch.cat((mlp.gate_proj.weight, mlp.up_proj.weight)))
        activation = "gelu_pytorch_tanh" if self.name == "gemma2" else "silu"
        return layers.linear(layers.gated(y, activation), mlp.down_proj.weight)

    def step(self, x: Any, positions: Any, slots: Any, *places: Any) -> Any:
        """Results of tokens ``x`` of a batch; ``places``: offsets of the sequences' queries,
        numbers of their keys, and their pages.
        """
        layer = self.layer
        y = self.attend(self.norm(layer.input_layernorm, x), positions, slots, *places)
        if self.name == "gemma2":
            y = self.norm(layer.post_attention_layernorm, y)
            y, total = self.norm(layer.pre_feedforward_layernorm, y, x)
            return total + self.norm(layer.post_feedforward_layernorm, self.feed(y))
        y, total = self.norm(layer.post_attention_layernorm, y, x)
        return total + self.feed(y)

    def inputs(self, batch: Batch) -> tuple[Any, ...]:
        """Arguments of :meth:`step` after the tokens, for a batch and one token of padding."""
        n, at = self.page, [p for _, a, b in batch for p in range(a, b)]
        pages = [int(self.table[i, p // n]) for i, a, b in batch for p in range(a, b)]
        slots = [page * n + p % n for page, p in zip(pages, at, strict=True)]
        counts = torch.tensor([0, *(b - a for _, a, b in batch)])
        found = (
            torch.tensor([*at, 0]),
            torch.tensor([*slots, -1]),
            counts.cumsum(0).int(),
            torch.tensor([b for _, _, b in batch]).int(),
            self.table[[i for i, _, _ in batch]],
        )
        return tuple(x.to(self.table.device) for x in found)


def alone(model: Any, given: dict[int, Any]) -> dict[int, Any]:
    """Results of the layer of `transformers` in the block, for each of the sequences by itself."""
    found = {}
    with pt.batch_invariant(strict=True):
        for i, x in given.items():
            positions = torch.arange(len(x), device=x.device)[None]
            angles = model.rotary_emb(x[None], positions)
            (found[i],) = model.layers[0](x[None], position_embeddings=angles)
    return found


def check_decoder(
    name: str,
    dtype: Any,
    steps: tuple[Batch, ...],
    table: Any,
    device: str = "cpu",
    page: int = 4,
    **more: Any,
) -> None:
    """Fails unless sequences that arrive in these batches, beside each other and padding, have the
    bits of the layer of `transformers` for each alone.
    """
    model = decoder(name, dtype, device, **more)
    lengths: dict[int, int] = {}
    for i, _, b in (span for batch in steps for span in batch):
        lengths[i] = max(b, lengths.get(i, 0))
    width = model.config.hidden_size
    given = {i: drawn(n, width, dtype=dtype).to(device) for i, n in lengths.items()}
    expected = alone(model, given)
    engine = Engine(name, model, table, page)
    for batch in steps:
        padding = torch.ones(1, width, dtype=dtype, device=device)
        x = torch.cat([*(given[i][a:b] for i, a, b in batch), padding])
        found = engine.step(x, *engine.inputs(batch))
        first = 0
        for i, a, b in batch:
            own = found[first : first + b - a]
            same(own, expected[i][a:b], f"{name}: tokens {a} to {b} of sequence {i}")
            first += b - a
