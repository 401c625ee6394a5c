"""Layers of engines have the bits of the modules of `transformers` in a ``batch_invariant()``
block: one by one, and as whole decoder layers over pages.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from layer_cases import MODELS, STEPS, check_decoder, drawn, mixture, of, randomized, same

import ptxgen
from ptxgen.errors import DtypeError, GradError, OptionError, ShapeError

torch = pytest.importorskip("torch", reason="needs PyTorch")
transformers = pytest.importorskip("transformers", reason="needs transformers")
pt = pytest.importorskip("ptxgen.torch")
layers = pytest.importorskip("ptxgen.engines.layers")

HALF, F16, F32 = torch.bfloat16, torch.float16, torch.float32
LONG = pytest.mark.long


@pytest.fixture(autouse=True)
def on_the_cpu_device():
    pt.register_attention()
    pt.register_experts()
    torch.manual_seed(0)
    with ptxgen.use_device("cpu"), torch.no_grad():
        yield


# -- one by one -------------------------------------------------------------------------------
NORMS = {
    "llama": ("llama", "LlamaRMSNorm"),
    "gemma": ("gemma2", "Gemma2RMSNorm"),
    "gpt_oss": ("gpt_oss", "GptOssRMSNorm"),
}


@pytest.mark.parametrize("dtype", [HALF, pytest.param(F16, marks=LONG), F32])
@pytest.mark.parametrize("style", NORMS)
def test_rms_norms(style, dtype):
    """Norms of odd rows, with and without a residual, and with weights in float32."""
    module = of(*NORMS[style])(37, eps=1e-5)
    x, r = drawn(3, 5, 37, dtype=dtype), drawn(3, 5, 37, dtype=dtype)
    for kind in {dtype, F32}:
        module.weight.data = drawn(37, dtype=kind)
        with pt.batch_invariant(strict=True):
            total = r + x
            expected = module(x), module(total)
        same(layers.rms_norm(x, module.weight, 1e-5, style=style), expected[0], kind)
        both = layers.rms_norm(x, module.weight, 1e-5, r, style=style)
        same(both, (expected[1], total), kind)


def test_a_style_that_there_is_not():
    with pytest.raises(OptionError, match="style is 'olmo'; takes 'llama', 'gemma', 'gpt_oss'"):
        layers.rms_norm(drawn(2, 8), drawn(8), 1e-6, style="olmo")


@pytest.mark.parametrize("dtype", [HALF, pytest.param(F16, marks=LONG), F32])
@pytest.mark.parametrize("activation", ["silu", "gelu", "gelu_pytorch_tanh"])
def test_gated_activations(activation, dtype):
    x = drawn(5, 2 * 37, dtype=dtype, scale=3)
    gate, up = x.chunk(2, -1)
    with pt.batch_invariant(strict=True):
        expected = transformers.activations.ACT2FN[activation](gate) * up
    same(layers.gated(x, activation), expected)


@pytest.mark.parametrize("dtype", [HALF, F32])
def test_a_clamped_swiglu(dtype):
    x = drawn(5, 2 * 37, dtype=dtype, scale=6)
    x[0, :4] = torch.tensor([torch.inf, -torch.inf, -2.0, torch.inf])  # gate, factor, ...
    for limit in (7.0, 7.02):
        module = SimpleNamespace(alpha=1.702, limit=limit)
        with pt.batch_invariant(strict=True):
            expected = of("gpt_oss", "GptOssExperts")._apply_gate(module, x)
        out = torch.empty(5, 37, dtype=dtype)
        same(layers.gated(x, "gpt_oss", limit=limit, out=out), expected, limit)
        same(out, expected)


def test_bad_gates():
    with pytest.raises(ShapeError, match=r"x has shape \[2, 7\]; takes \[..., 2 D\]"):
        layers.gated(drawn(2, 7), "silu")
    with pytest.raises(OptionError, match="activation is 'gelu_new'; takes 'silu'"):
        layers.gated(drawn(2, 8), "gelu_new")
    with torch.enable_grad(), pytest.raises(GradError, match="x requires grad"):
        layers.gated(drawn(2, 8).requires_grad_(), "silu")


ROPES = {
    "default": {"rope_theta": 10000.0},
    "linear": {"rope_theta": 500000.0, "factor": 3.0},
    "llama3": {
        **{"rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0},
        **{"high_freq_factor": 4.0, "original_max_position_embeddings": 64},
    },
    "yarn": {"rope_theta": 150000, "factor": 32.0, "original_max_position_embeddings": 64},
}


@pytest.mark.parametrize(("kind", "width"), [*((kind, 12) for kind in ROPES), ("default", 32)])
def test_rotary_embeddings(kind, width):
    sizes = {"hidden_size": 64, "num_attention_heads": 4, "head_dim": width}
    config = transformers.LlamaConfig(**sizes, rope_parameters={"rope_type": kind, **ROPES[kind]})
    module = of("llama", "LlamaRotaryEmbedding")(config)
    inv_freq, scaling = layers.inverse_frequencies(config)
    same(inv_freq, module.inv_freq)
    assert scaling == module.attention_scaling and (scaling != 1) == (kind == "yarn")
    positions, far = torch.tensor([0, 5, 319, 5, 63]), torch.tensor([4095, 131071])
    qkv = drawn(5, 3 + 2 + 2, width)
    q, k, _ = qkv.split((3, 2, 2), 1)
    with pt.batch_invariant(strict=True):
        cos, sin = module(q, positions[None])
        expected = of("llama", "apply_rotary_pos_emb")(q[None], k[None], cos, sin, 2)
        away = torch.cat([x[0, :, : width // 2] for x in module(q, far[None])], -1)
    expected = tuple(x[0] for x in expected)
    table = layers.rotary_table(inv_freq, scaling, 320, dtype=HALF)
    halves = [x[0, :, : width // 2] for x in (cos, sin)]
    same(table[positions], torch.cat(halves, -1))
    same(layers.rotary_table(inv_freq, scaling, far, dtype=HALF), away)
    same(layers.rotary(positions, q, k, table), expected, "slices of one product")
    same(layers.rotary(positions, q.clone(), k, table), expected, "apart")
    same(layers.rotary(positions, q, None, table), expected[0], "queries alone")
    given = q.clone(), k.clone()
    assert layers.rotary(positions, *given, table, out=given)[0] is given[0]
    same(given, expected, "in place")
    layers.rotary(positions, q, k, table, out=(q, k))
    same((q, k), expected, "in place, slices of one product")


@pytest.mark.parametrize(("width", "dtype"), [(64, HALF), (48, HALF), (64, F32)])
def test_heads_are_normalised_and_rotated(width, dtype):
    """By one kernel, or by those of norms and of rotations."""
    q, k, _ = drawn(5, 3 + 2 + 2, width, dtype=dtype).split((3, 2, 2), 1)
    norms = drawn(width, dtype=dtype), drawn(width, dtype=dtype)
    table, positions = drawn(7, width, dtype=dtype), torch.tensor([0, 6, 7, -1, 3])
    normed = [layers.rms_norm(x, w, 1e-5) for x, w in zip((q, k), norms, strict=True)]
    expected = layers.rotary(positions, *normed, table)
    same(layers.rotary(positions, q, k, table, norms=norms, eps=1e-5), expected)
    with pytest.raises(DtypeError, match=f"q_weight has dtype float64; takes {str(dtype)[6:]}"):
        layers.rotary(positions, q, k, table, norms=(norms[0].double(), norms[1]))


@pytest.mark.parametrize("dtype", [F16, F32])
def test_a_part_of_a_head_is_rotated_in_pairs(dtype):
    """Heads of GLM: neighbours are rotated, and the second half of a head is not."""
    q, k = drawn(5, 3, 24, dtype=dtype), drawn(5, 2, 24, dtype=dtype)
    positions, inv_freq = torch.arange(5) * 7, 1 / 9.0 ** torch.arange(6.0)
    table = layers.rotary_table(inv_freq, 1.0, positions, dtype=dtype)
    cos, sin = (torch.cat((half, half), -1)[None] for half in table.chunk(2, -1))
    with pt.batch_invariant(strict=True):
        expected = of("glm", "apply_rotary_pos_emb")(q[None], k[None], cos, sin, 2)
    expected = tuple(x[0] for x in expected)
    same(layers.rotary(torch.arange(5), q, k, table, interleaved=True), expected)


def test_rotary_embeddings_that_read_the_batch():
    for kind in ("dynamic", "longrope"):
        config = SimpleNamespace(rope_parameters={"rope_type": kind, "rope_theta": 1e4})
        with pytest.raises(OptionError, match=f"rope_type is '{kind}'; takes default, linear"):
            layers.inverse_frequencies(config)
    positions, table = torch.arange(2), drawn(9, 8)
    with pytest.raises(ShapeError, match=r"k has shape \[3, 1, 8\], positions \[2\]"):
        layers.rotary(positions, drawn(2, 1, 8), drawn(3, 1, 8), table)
    with pytest.raises(DtypeError, match="cos_sin has dtype bfloat16; takes float32"):
        layers.rotary(positions, drawn(2, 1, 8, dtype=F32), None, table)


def test_embeddings_and_logits():
    ids = torch.tensor([[3, 0], [10, 3]])
    module = of("gemma2", "Gemma2TextScaledWordEmbedding")(11, 37, 0, embed_scale=37**0.5)
    module.weight.data = drawn(11, 37)
    x = drawn(5, 37, scale=4)
    with pt.batch_invariant(strict=True):
        expected = module(ids)
        scores = torch.nn.functional.linear(x, module.weight)
        capped = torch.tanh(scores / 30.0) * 30.0
    same(layers.embedding(ids, module.weight, 37**0.5), expected)
    same(layers.embedding(ids, module.weight), module.weight[ids])
    same(layers.logits(x, module.weight, softcap=30.0), capped)
    same(layers.logits(x, module.weight), scores)


@pytest.mark.parametrize("dtype", [HALF, F32])
@pytest.mark.parametrize("width", [8, 5])
@pytest.mark.parametrize("form", ["packed", "heads first", "pair"])
def test_pages_are_written(form, width, dtype):
    """Slots below 0 write nothing, others the row of their last token."""
    k, v, _ = drawn(6, 3 * 2, width, dtype=dtype).split(2, 1)
    slots = torch.tensor([7, -1, 0, 11, 7, -1])
    cache = drawn(3, 4, 2, 2 * width, dtype=dtype)
    if form == "heads first":
        cache = cache.transpose(1, 2).contiguous().transpose(1, 2)
    expected = cache.clone()
    for t, slot in enumerate(slots.tolist()):
        if slot >= 0:
            expected[slot // 4, slot % 4] = torch.cat((k[t], v[t]), -1)
    if form == "pair":
        halves = tuple(x.contiguous() for x in cache.split(width, -1))
        layers.write_pages(k, v, halves, slots)
        same(torch.cat(halves, -1), expected)
    else:
        layers.write_pages(k, v, cache, slots)
        same(cache, expected)


def test_pages_that_do_not_fit():
    k, slots = drawn(2, 1, 8), torch.tensor([0, 1])
    with pytest.raises(ShapeError, match=r"cache has shape \[3, 4, 1, 8\]"):
        layers.write_pages(k, k, drawn(3, 4, 1, 8), slots)
    with pytest.raises(DtypeError, match=r"takes torch\.float32, of the cache"):
        layers.write_pages(k, k, drawn(3, 4, 1, 16, dtype=F32), slots)
    with pytest.raises(ShapeError, match="cache has strides"):
        layers.write_pages(k, k, drawn(3, 8, 1, 16)[:, ::2], slots)
    pages, count = drawn(3, 4, 1, 9).split((1, 8), -1)[1], torch.tensor([0, 2]).int()
    with pytest.raises(ShapeError, match=r"k_cache has strides .* multiples of 16 bytes"):
        layers.attention(k, pages, pages, count, count[1:], torch.zeros(1, 1).int())


_LOCAL = {"num_local_experts": 5, "intermediate_size": 16}
MIXTURES = {
    "mixtral": ("Mixtral", _LOCAL),
    "qwen3_moe": ("Qwen3Moe", {"num_experts": 5, "moe_intermediate_size": 16}),
    "qwen3_moe normalized": (
        "Qwen3Moe",
        {"num_experts": 5, "moe_intermediate_size": 16, "norm_topk_prob": True},
    ),
    "gpt_oss": ("GptOss", _LOCAL),
}


@pytest.mark.parametrize(
    "name", [n if n != "mixtral" else pytest.param(n, marks=LONG) for n in MIXTURES]
)
def test_mixtures_of_experts(name):
    (kind, sizes), style = MIXTURES[name], name.partition(" ")[0]
    config = getattr(transformers, f"{kind}Config")(
        **sizes, hidden_size=32, num_experts_per_tok=2, experts_implementation="ptxgen"
    )
    router = randomized(of(style, f"{kind}TopKRouter")(config))
    module = randomized(of(style, f"{kind}Experts")(config))
    x = drawn(7, 32)
    with pt.batch_invariant(strict=True):
        _, weights, chosen = router(x)
        expected = module(x, chosen, weights)
    same(mixture(style, module, router, x), (weights, chosen, expected))


# -- whole layers, over pages -----------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        *((name, HALF) for name in MODELS if name != "llama"),
        pytest.param("llama", HALF, marks=LONG),
        *(pytest.param(name, F16, marks=LONG) for name in ("llama", "qwen3")),
        pytest.param("gemma2", F32, marks=LONG),
    ],
)
def test_a_decoder_layer_over_pages(name, dtype):
    """Sequences that arrive at once, in chunks and token by token have the bits of each alone."""
    check_decoder(name, dtype, STEPS, torch.tensor([[5, 2], [0, 7], [3, 1]]).int())
