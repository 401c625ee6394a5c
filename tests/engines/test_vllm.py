"""``ptxgen.engines.vllm`` with a stand-in for vLLM, on the CPU device; HOOKS against the sources of
a real vLLM where one is installed.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest
import stand_in
from bits import same_bits

import ptxgen
from ptxgen import engines
from ptxgen.cli import main
from ptxgen.engines import hooks, vllm
from ptxgen.engines.audit import REPORT
from ptxgen.engines.vllm.hooks import BACKEND, HOOKS, MODELS, QUANTIZED
from ptxgen.errors import EngineError, OptionError

ROOT = Path(__file__).parents[2]
REAL = find_spec("vllm")
LAYERS = "vllm.model_executor.layers"
SAMPLE = "vllm.v1.worker.gpu.sample"


def forget() -> None:
    """Removes the hooks, and the modules that were made of the stand-in."""
    hooks.remove()
    REPORT.reset()
    for name in [n for n in sys.modules if n.partition(".")[0] == "vllm"]:
        del sys.modules[name]
    parts = ("attention", "experts", "layers", "models", "operators", "quantized", "sampler")
    for name in (*parts, "config"):
        sys.modules.pop(f"{vllm.__name__}.{name}", None)
        vars(vllm).pop(name, None)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Puts the stand-in in front of everything that is installed."""
    folder = tmp_path_factory.mktemp("vllm")
    stand_in.write(folder)
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    forget()
    yield folder
    forget()
    sys.path.remove(str(folder))
    importlib.invalidate_caches()


@pytest.fixture
def register(installed, monkeypatch):
    """Registers the extension in a mode; removes it behind the test. On the CPU device."""
    pytest.importorskip("torch", reason="needs PyTorch")

    def registered(mode="on"):
        monkeypatch.setenv("PTXGEN_VLLM", mode)
        vllm.register()
        return REPORT

    with ptxgen.use_device("cpu"):
        yield registered
    hooks.remove()
    REPORT.reset()


def at(hook):
    """Returns what is now at a hook's place."""
    module, _, name = hook.owner.partition(":")
    owner = importlib.import_module(module)
    return inspect.getattr_static(getattr(owner, name) if name else owner, hook.attribute)


def the(path):
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)


def drawn(*shape, dtype=None, seed=0):
    import torch

    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator).to(dtype or torch.bfloat16)


def is_marked(x):
    return bool((x == stand_in.MARK).all())


# -- the table ------------------------------------------------------------------------------
def test_the_stand_in_has_every_signature(installed):
    pytest.importorskip("torch", reason="needs PyTorch")
    for hook in (*HOOKS, *MODELS, *QUANTIZED):
        assert hooks.describe(at(hook)) == hook.signature, hook.target
        assert hooks.read_signature(hook) == hook.signature, hook.target


@pytest.mark.skipif(REAL is None, reason="vLLM is not installed")
def test_the_sources_of_vllm_have_every_signature(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(REAL.submodule_search_locations[0]).parent))
    monkeypatch.delitem(sys.modules, "vllm", raising=False)
    found = {hook.target: hooks.read_signature(hook) for hook in (*HOOKS, *MODELS, *QUANTIZED)}
    assert found == {hook.target: hook.signature for hook in (*HOOKS, *MODELS, *QUANTIZED)}


def test_the_entry_point_is_the_function():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found = project["entry-points"]["vllm.general_plugins"]["ptxgen"]
    assert the(found) is vllm.register
    oldest, newest = (".".join(map(str, v)) for v in (vllm.OLDEST, vllm.NEWEST))
    after = f"{vllm.NEWEST[0]}.{vllm.NEWEST[1] + 1}"
    assert project["optional-dependencies"]["vllm"] == [f"vllm>={oldest},<{after}"]
    assert [vllm.fits(v) for v in (oldest, f"{newest}.1rc2", after, "0.25.9", "1.26", "")] == [
        True, True, False, False, False, False,
    ]  # fmt: skip


# -- registration -----------------------------------------------------------------------------
def test_it_registers_once_and_can_be_removed(register):
    before = {hook.target: at(hook) for hook in HOOKS}
    report = register()
    first = {hook.target: at(hook) for hook in HOOKS}
    for hook in HOOKS:
        assert (first[hook.target] is not before[hook.target]) is bool(hook.replacement)
        assert hooks.describe(first[hook.target]) == hook.signature
    assert the("vllm.v1.attention.backends.registry:overrides") == {"CUSTOM": BACKEND}
    register("strict")
    assert {hook.target: at(hook) for hook in HOOKS} == first and report.mode == "on"
    assert report.hooks == [hook.target for hook in HOOKS if hook.replacement]
    hooks.install(HOOKS, "vLLM")
    assert {hook.target: at(hook) for hook in HOOKS} == first
    hooks.remove()
    assert {hook.target: at(hook) for hook in HOOKS} == before


def test_off_and_unknown_modes(register):
    before = [at(hook) for hook in HOOKS]
    assert register("off").engine == ""
    with pytest.raises(OptionError, match=r"PTXGEN_VLLM is 'strickt'.*did you mean strict"):
        register("strickt")
    assert [at(hook) for hook in HOOKS] == before
    assert "No extension" in str(engines.report())


def test_another_version_is_refused(register, monkeypatch):
    before = [at(hook) for hook in HOOKS]
    for version in ("0.25.1", "0.28.0", ""):
        monkeypatch.setattr(vllm, "installed_version", lambda version=version: version)
        with pytest.raises(EngineError, match=rf"version {version or 'unknown'}.*0\.26 to 0\.27"):
            register()
    assert [at(hook) for hook in HOOKS] == before and not REPORT.engine


def test_another_signature_is_refused_and_nothing_replaced(register, monkeypatch):
    before = {hook.target: at(hook) for hook in HOOKS}
    method = the(f"{LAYERS}.linear:UnquantizedLinearMethod")
    monkeypatch.setattr(method, "apply", lambda self, layer, x, scale, bias=None: x)
    loader = the("vllm.model_executor.model_loader.base_loader:BaseModelLoader")
    monkeypatch.delattr(loader, "load_model")
    with pytest.raises(EngineError) as error:
        register()
    takes, fits = "(self, layer, x, scale, bias=None)", "(self, layer, x, bias=None)"
    assert f"Method.apply takes {takes}; the extension fits {fits}" in str(error.value)
    assert "BaseModelLoader.load_model cannot be found" in str(error.value)
    monkeypatch.undo()
    assert {hook.target: at(hook) for hook in HOOKS} == before and not REPORT.engine


def test_other_platforms_are_left_alone(register, monkeypatch):
    before = [at(hook) for hook in HOOKS]
    platform = the("vllm.platforms.interface:Platform")
    monkeypatch.setattr(platform, "is_cuda", classmethod(lambda cls: False))
    assert "the platform is not CUDA" in str(register())
    assert [at(hook) for hook in HOOKS] == before
    REPORT.reset()
    with pytest.raises(EngineError, match=r"does not serve these parts: vLLM: the platform is not"):
        register("strict")


# -- layers -----------------------------------------------------------------------------------
def test_linear_layers_and_the_head(register):
    import torch

    import ptxgen.torch as pt

    register("audit")
    x, weight, bias = drawn(5, 40), drawn(24, 40, seed=1), drawn(24, seed=2)
    layer = the(f"{LAYERS}.linear:LinearBase")(weight, bias)
    expected = pt.linear(x, weight, bias, layout="nk")
    assert torch.equal(layer(x), expected)
    head = the(f"{LAYERS}.vocab_parallel_embedding:VocabParallelEmbedding")(weight)
    assert torch.equal(head.quant_method.apply(head, x), pt.linear(x, weight, layout="nk"))
    given = weight.clone()
    layer.weight.data.mul_(2)  # weights may change between steps
    assert torch.equal(layer(x), pt.linear(x, 2 * given, bias, layout="nk"))
    assert is_marked(layer(x.float())) and is_marked(layer(x.double()))
    assert {why: times for (_, why), times in REPORT.left.items()} == {
        "a product of torch.float32 by torch.bfloat16": 1,
        "a product of torch.float64 by torch.bfloat16": 1,
    }
    rows = REPORT.as_dict()["calls"]
    assert [(r["layer"], r["calls"]) for r in rows] == [
        ("LinearBase", 2),
        ("VocabParallelEmbedding", 1),
    ]
    assert {r["contract"] for r in rows} == {f"tc16/{version('tc16')}"}
    assert {r["family"] for r in rows} <= {"mma", "wgmma"}
    operator = torch.ops.vllm.ptxgen_linear.default
    tests = ("test_schema", "test_faketensor")
    torch.library.opcheck(operator, (x, weight, bias), test_utils=tests)


def version(name):
    from ptxgen.numerics.versions import versions

    return versions()[name]


@pytest.fixture
def trainer(monkeypatch):
    """Layers that return what they are given: the module of the trainer's is tested by itself."""
    import torch

    seen = []

    def rms_norm(x, weight, eps, residual=None, *, style):
        seen.append(("rms_norm", style, eps))
        total = x if residual is None else x + residual
        y = (total.float() * weight.float()).to(x.dtype)
        return y if residual is None else (y, total)

    def gated(x, activation):
        seen.append(("gated", activation))
        gate, up = x.chunk(2, -1)
        return gate + up

    def rotary(positions, q, k, table, *, out):
        seen.append(("rotary", q.shape, k.shape))
        turn = table[positions].sum(-1)[:, None, None]
        out[0].copy_(q + turn)
        out[1].copy_(k - turn)

    made = {"rms_norm": rms_norm, "gated": gated, "rotary": rotary}
    made["softcapped"] = lambda x, cap: x + cap
    layers = importlib.import_module("ptxgen.engines.layers")
    for name, function in made.items():
        monkeypatch.setattr(layers, name, function)
    return SimpleNamespace(seen=seen, torch=torch)


@pytest.mark.parametrize("forward", ["forward_native", "forward_cuda"])
def test_norms(register, trainer, forward):
    torch = trainer.torch
    register()
    x, residual, weight = drawn(3, 16), drawn(3, 16, seed=1), drawn(16, seed=2)
    norm = the(f"{LAYERS}.layernorm:RMSNorm")(weight, 1e-5)
    gemma = the(f"{LAYERS}.layernorm:GemmaRMSNorm")(weight, 1e-6)
    assert torch.equal(getattr(norm, forward)(x), x * weight)
    y, total = getattr(gemma, forward)(x, residual)
    assert torch.equal(total, x + residual) and torch.equal(y, total * weight)
    norm.ptxgen_rounding = "gpt_oss"
    getattr(norm, forward)(x)
    assert trainer.seen == [
        ("rms_norm", "llama", 1e-5),
        ("rms_norm", "gemma", 1e-6),
        ("rms_norm", "gpt_oss", 1e-5),
    ]
    assert is_marked(getattr(norm, forward)(x.double()))
    part = the(f"{LAYERS}.layernorm:RMSNorm")(weight, part=8)
    assert is_marked(getattr(part, forward)(x)) and len(REPORT.left) == 2


def test_gated_activations(register, trainer):
    register()
    x = drawn(3, 16)
    made = [the(f"{LAYERS}.activation:SiluAndMul")()]
    made += [the(f"{LAYERS}.activation:GeluAndMul")(a) for a in ("none", "tanh")]
    for layer in made:
        for found in (layer(x), layer.forward_native(x)):
            assert trainer.torch.equal(found, x[:, :8] + x[:, 8:])
        assert is_marked(layer(x.double())) and is_marked(layer.forward_native(x.double()))
    names = [activation for _, activation in trainer.seen]
    assert names == ["silu", "silu", "gelu", "gelu", "gelu_tanh", "gelu_tanh"]


def test_rotary_embedding(register, trainer):
    torch = trainer.torch
    register()
    rotary = the(f"{LAYERS}.rotary_embedding.base:RotaryEmbedding")(8, 8, 32, 1e4, True, None)
    qkv, positions = drawn(3, 40), torch.tensor([4, 0, 9])
    q, k, _ = qkv.split((24, 8, 8), dim=-1)  # slices with the rows of qkv
    assert all(is_marked(x) for x in rotary(positions, q, k)) and len(REPORT.left) == 1
    rotary.ptxgen_table = table = drawn(32, 8, seed=1)
    turn = table[positions].sum(-1)[:, None]
    expected = torch.cat((q + turn, k - turn, qkv[:, 32:]), dim=-1)
    found = rotary(positions, q, k)
    assert torch.equal(qkv, expected) and found[0] is q and found[1] is k  # in place
    assert trainer.seen == [("rotary", (3, 3, 8), (3, 1, 8))]


@pytest.mark.parametrize("hook", MODELS, ids=lambda hook: hook.target)
def test_norms_of_heads_are_joined_with_the_rotary_embedding(register, monkeypatch, hook):
    """One operator has the bits of the layers, which the original calls where they do not fit."""
    import torch

    register("audit")
    norm, linear = the(f"{LAYERS}.layernorm:RMSNorm"), torch.nn.functional.linear
    norms = [norm(drawn(16, seed=seed), 1e-5) for seed in (2, 3)]
    rope = the(f"{LAYERS}.rotary_embedding.base:RotaryEmbedding")
    rope = rope(16, 16, 32, 1e4, True, torch.bfloat16)
    weight = drawn(80, 40, seed=4)
    parts = lambda x: (linear(x, weight), None), lambda x: (x, None), rope, *norms
    layer = the(hook.owner)(*parts, lambda *x: torch.cat(x, -1), (48, 16), 16)
    original, family = at(hook), hook.owner.partition(":")[0].split(".")[-1]
    load(model(layer=layer), family, rope_parameters=ROPE, head_dim=16)
    assert at(hook) is not original and hook.target in REPORT.hooks

    def calls():
        return sorted(
            (row["layer"], row["operation"], row["calls"]) for row in REPORT.as_dict()["calls"]
        )

    given = torch.tensor([4, 0, 9]), drawn(3, 40, seed=5)
    expected, once = original(layer, *given), calls()
    assert [operation for _, operation, _ in once] == ["rms_norm", "rms_norm", "rotary"]
    REPORT.calls.clear()
    with monkeypatch.context() as patch:
        patch.setattr(norms[0], "forward_cuda", None)
        assert torch.equal(layer(*given), expected)
    (row,) = REPORT.as_dict()["calls"]
    assert (row["layer"], row["operation"], row["calls"]) == (
        "layer.rotary_emb",
        "normed_rotary",
        1,
    )
    assert (row["contract"], row["family"]) == (f"rows/{version('rows')}", "rotary")
    norms[1].variance_epsilon = 1.0
    apart = layer(*given)
    assert torch.equal(apart, original(layer, *given)) and not torch.equal(apart, expected)


def test_softcaps_of_logits(register, trainer):
    torch = trainer.torch
    register()
    kind, x = the(f"{LAYERS}.logits_processor:LogitsProcessor"), drawn(3, 16)
    assert is_marked(kind()(None, x))
    assert torch.equal(kind(30.0)(None, x), x + 30.0)
    assert torch.equal(kind(30.0, 0.5)(None, x), (x + 30.0) * 0.5)
    assert is_marked(kind(30.0)(None, x.double()))
    head = the(f"{LAYERS}.vocab_parallel_embedding:VocabParallelEmbedding")(drawn(8, 16))
    found = kind(30.0, logits_as_input=False)(head, x)
    assert torch.equal(found, head.quant_method.apply(head, x) + 30.0)
    assert kind(30.0, logits_as_input=False)(None, x) is None
    load(model(a=kind(), b=kind(30.0), c=kind(head_dtype=torch.float64)))
    assert [of.operation for of in REPORT.layers.values()] == ["linear", "softcapped", ""]


ROPE = {"rope_type": "default", "rope_theta": 1e4}


def test_tables_of_cos_and_sin_are_the_trainers(register):
    import torch

    from ptxgen.engines import layers as made

    register()
    base = f"{LAYERS}.rotary_embedding.base"
    kind, other = (the(f"{base}:{n}RotaryEmbedding") for n in ("", "DynamicNTKScaling"))
    rotary, local = (kind(8, 8, 32, theta, True, torch.bfloat16) for theta in (1e4, 1e6))
    dynamic = other(8, 8, 32, 1e4, True, torch.bfloat16)
    load(model(a=rotary, b=local, c=dynamic), rope_parameters=ROPE, head_dim=8)
    frequencies = 1.0 / (1e4 ** (torch.arange(0, 8, 2, dtype=torch.float) / 8))
    table = made.rotary_table(frequencies, 1.0, 32, dtype=torch.bfloat16)
    assert torch.equal(rotary.ptxgen_table, table)
    assert [of.operation for of in REPORT.layers.values()] == ["rotary", "", ""]
    assert REPORT.layers["b"].why == "its table of cos and sin is vLLM's (RotaryEmbedding)"
    wide = kind(8, 8, 32, 1e4, True, torch.float32)  # as in gpt-oss, of a model in bfloat16
    load(model(e=wide), rope_parameters=ROPE, head_dim=8)
    assert wide.ptxgen_table.dtype is torch.bfloat16 and torch.equal(wide.ptxgen_table, table)
    types = {"full_attention": {**ROPE, "rope_theta": 1e6}, "sliding_attention": ROPE}
    load(model(b=local), rope_parameters=types, head_dim=8)
    assert not torch.equal(local.ptxgen_table, table)
    q, k, positions = drawn(3, 24), drawn(3, 8, seed=1), torch.tensor([4, 0, 9])
    expected = made.rotary(positions, q.view(3, 3, 8), k.view(3, 1, 8), table)
    expected = [x.clone() for x in expected]
    for found, y in zip(rotary(positions, q, k), expected, strict=True):
        assert torch.equal(found, y.reshape(found.shape))
    dynamic = {**ROPE, "rope_type": "dynamic"}
    fresh = kind(8, 8, 32, 1e4, True, None)
    load(model(d=fresh), rope_parameters=dynamic, head_dim=8)
    assert "vLLM's" in REPORT.layers["d"].why


def test_mixtures_of_experts(register):
    import torch

    from ptxgen.engines import layers as made

    register()
    moe = f"{LAYERS}.fused_moe.unquantized_fused_moe_method"
    router = the(f"{LAYERS}.fused_moe.router.fused_topk_router:FusedTopKRouter")(2)
    experts = the(f"{moe}:RoutedExperts")(drawn(3, 16, 32), drawn(3, 32, 8, seed=1))
    runner = the(f"{moe}:MoERunner")(router, experts)
    x, scores = drawn(4, 32, seed=2), drawn(4, 3, seed=3)
    assert router._compute_routing(x, scores, None) == ("theirs", "theirs")
    load(model(moe=runner), "qwen3_moe")
    assert {n: (of.operation, of.why) for n, of in REPORT.layers.items()} == {
        "moe": ("router", ""),
        "moe.routed_experts": ("experts", ""),
    }
    found = router._compute_routing(x, scores, torch.int32)
    expected = made.router(scores, 2, style="qwen3_moe", normalize=True)
    assert torch.equal(found[0], expected[0]) and torch.equal(found[1], expected[1].int())
    for forward in ("forward_native", "forward_cuda"):
        compute = getattr(experts.quant_method, forward)
        y = compute(experts, x, *found, None, None)
        assert torch.equal(y, made.experts(x, *expected, experts.w13_weight, experts.w2_weight))
        assert is_marked(compute(experts, x, *found, runner, None))
    router.renormalize = False
    load(model(moe=runner), "mixtral")
    assert REPORT.layers["moe"].why == "its weights are not divided by their sum"
    experts.quant_method.unquantized_backend = the(f"{moe}:Backend").FLASHINFER_CUTLASS
    load(model(moe=runner), "gemma2")
    why = REPORT.layers["moe.routed_experts"].why
    assert "laid out for FLASHINFER_CUTLASS; --moe-backend triton keeps them" in why
    assert "was not compared" in REPORT.layers["moe"].why


# -- attention --------------------------------------------------------------------------------
def attention(heads, size, kv_heads, layout, **options):
    """A layer's implementation, and a cache of 12 blocks in the layout that it has on a GPU."""
    import torch

    backend = the("ptxgen.engines.vllm.attention:Backend")
    the("vllm.v1.attention.backends.utils:get_kv_cache_layout").__globals__["layout"] = layout
    given = {"alibi_slopes": None, "sliding_window": None, "kv_cache_dtype": "auto", **options}
    made = backend.get_impl_cls()(heads, size, size**-0.5, kv_heads, **given)
    shape = backend.get_kv_cache_shape(12, 16, kv_heads, size)
    order = backend.get_kv_cache_stride_order()
    memory = torch.full([shape[i] for i in order], torch.nan, dtype=torch.bfloat16)
    return made, memory.permute([order.index(i) for i in range(4)])


def batch(starts, lengths, table):
    import torch

    build = the("ptxgen.engines.vllm.attention:MetadataBuilder")(None, ["a"], None, "cpu").build
    vectors = (torch.tensor(x, dtype=torch.int32) for x in (starts, lengths, table))
    query_start_loc, seq_lens, block_table = vectors
    return build(
        0,
        SimpleNamespace(
            query_start_loc=query_start_loc,
            seq_lens=seq_lens,
            block_table_tensor=block_table,
            causal=True,
        ),
    )


LAYER = SimpleNamespace(layer_name="model.layers.0.attn", _k_scale=None, _v_scale=None)


@pytest.mark.parametrize("layout", ["NHD", "HND"])
def test_attention_over_pages_in_chunks(register, layout):
    import torch

    import ptxgen.torch as pt

    register()
    sinks = drawn(4, seed=9)
    made, cache = attention(4, 16, 2, layout, sliding_window=20, logits_soft_cap=30.0, sinks=sinks)
    q, k, v = drawn(37, 4, 16), drawn(37, 2, 16, seed=1), drawn(37, 2, 16, seed=2)
    options = {"scale": 0.25, "window": 20, "softcap": 30.0, "sinks": sinks}
    alone = pt.attention(q, k, v, causal=True, layout="bshd", **options)
    table, other = [[7, 2, 5], [9, 3, 0]], drawn(2, 4, 16, seed=3)
    done = 0
    for chunk in (21, 15, 1):
        new = slice(done, done + chunk)
        slots = [table[0][i // 16] * 16 + i % 16 for i in range(done, done + chunk)]
        keys, values = (torch.cat((x[new], x[:4])) for x in (k, v))
        slots = torch.tensor([*slots, 9 * 16, 9 * 16 + 1, -1, -1])
        made.do_kv_cache_update(LAYER, keys, values, cache, slots)
        # Beside a request of two tokens, and two that pad the batch.
        queries = torch.cat((q[new], other, other))
        output = torch.full_like(queries, torch.nan)
        of = batch((0, chunk, chunk + 2), (done + chunk, 2), table)
        assert made.forward(LAYER, queries, keys, values, cache, of, output) is output
        same_bits(output[:chunk].float().numpy(), alone[new].float().numpy(), what=f"{new}")
        assert not output[chunk + 2 :].any() and output[chunk : chunk + 2].isfinite().all()
        done += chunk


def test_attention_that_is_refused(register):
    import torch

    register()
    with pytest.raises(EngineError, match="ALiBi is not served; choose a backend of vLLM"):
        attention(2, 16, 1, "NHD", alibi_slopes=[0.5, 0.25])
    with pytest.raises(EngineError, match="type 'encoder_only' is not served"):
        attention(2, 16, 1, "NHD", attn_type="encoder_only")
    made, cache = attention(2, 16, 1, "NHD")
    q = drawn(3, 2, 16)
    given = q, q[:, :1], q[:, :1], cache
    assert not made.forward(LAYER, *given, None, torch.ones_like(q)).any()
    with pytest.raises(EngineError, match=r"layers\.0\.attn: a quantized output"):
        made.forward(LAYER, *given, None, q, output_scale=q)
    of = SimpleNamespace(causal=False)
    builder = the("ptxgen.engines.vllm.attention:MetadataBuilder")
    with pytest.raises(EngineError, match="causal = False; takes True"):
        builder(None, [], None, "cpu").build(0, of)
    support = the("vllm.v1.attention.backend:AttentionCGSupport")
    assert builder._cudagraph_support is support.ALWAYS


class Selection(dict):
    def _asdict(self):
        return self


def taken_by_the_backend():
    """A configuration that the backend takes."""
    import torch

    return {
        "head_size": 128,
        "dtype": torch.bfloat16,
        "kv_cache_dtype": "auto",
        "has_sink": True,
        "has_sliding_window": True,
    }


def test_the_backend_is_chosen_where_it_takes_the_configuration(register):
    import torch

    register()
    choose = the("vllm.platforms:current_platform").get_attn_backend_cls
    backends = the("vllm.v1.attention.backends.registry:AttentionBackendEnum")
    taken = taken_by_the_backend()
    assert choose(None, Selection(taken)) == "CUSTOM" and not REPORT.left
    assert choose(backends.FLASH_ATTN, Selection(taken)) == "FLASH_ATTN" and not REPORT.left
    for name, value in (("kv_cache_dtype", "fp8"), ("head_size", 512), ("dtype", torch.float64)):
        assert choose(None, Selection({**taken, name: value})) == "FLASH_ATTN"
        assert ("attention", f"{name} not supported") in REPORT.left
    hooks.remove()
    REPORT.reset()
    register("strict")
    with pytest.raises(EngineError, match="attention: kv_cache_dtype not supported"):
        choose(None, Selection({**taken, "kv_cache_dtype": "fp8"}))


# -- configuration and models ---------------------------------------------------------------------
def configuration(mode=None, graphs=None, **options):
    made = {"speculative_config": None, "lora_config": None, "tensor_parallel_size": 1, **options}
    return SimpleNamespace(
        model_config=SimpleNamespace(logprobs_mode=made.pop("logprobs_mode", "raw_logprobs")),
        compilation_config=SimpleNamespace(mode=mode, cudagraph_mode=graphs),
        parallel_config=SimpleNamespace(tensor_parallel_size=made.pop("tensor_parallel_size")),
        **made,
    )


def test_defaults_of_the_configuration(register):
    register()
    modes = the("vllm.config.compilation:CompilationMode")
    graphs = the("vllm.config.compilation:CUDAGraphMode")
    defaults = the("vllm.platforms:current_platform").apply_config_platform_defaults
    config = configuration()
    defaults(config)
    of = config.compilation_config
    assert (of.mode, of.cudagraph_mode) == (modes.NONE, graphs.FULL) and not REPORT.left
    config = configuration(modes.NONE, graphs.NONE)  # enforce_eager
    defaults(config)
    assert config.compilation_config.cudagraph_mode is graphs.NONE and not REPORT.left
    config = configuration(modes.VLLM_COMPILE)
    defaults(config)
    assert config.compilation_config.mode is modes.VLLM_COMPILE
    defaults(configuration(lora_config=1, speculative_config=1, tensor_parallel_size=2))
    assert [name for name, _ in REPORT.left] == [
        "code between layers",
        "speculative decoding",
        "LoRA",
        "tensor parallelism",
    ]


def model(**layers):
    import torch

    made = torch.nn.Module()
    for name, layer in layers.items():
        made.add_module(name, layer)
    return made


def load(made, family="llama", mode=0, quant_config=None, **options):
    import torch

    text = SimpleNamespace(model_type=family, **options)
    config = SimpleNamespace(hf_text_config=text, dtype=torch.bfloat16)
    loader = the("vllm.model_executor.model_loader.base_loader:BaseModelLoader")
    compilation = SimpleNamespace(mode=mode)
    given = SimpleNamespace(compilation_config=compilation, quant_config=quant_config)
    return loader(made).load_model(given, config)


def test_layers_of_a_loaded_model(register):
    import torch

    register()
    weight = drawn(16)
    backend = the("ptxgen.engines.vllm.attention:Backend")
    theirs = SimpleNamespace(get_name=lambda: "FLASH_ATTN")
    layer, latent = (the(f"{LAYERS}.attention:{kind}Attention") for kind in ("", "MLA"))
    sinks = type("OAIAttention", (torch.nn.Module,), {})()
    sinks.sinks = torch.nn.Parameter(weight)
    made = model(
        norm=the(f"{LAYERS}.layernorm:RMSNorm")(weight),
        proj=the(f"{LAYERS}.linear:LinearBase")(drawn(4, 16)),
        attn=layer(backend, attention(2, 16, 1, "NHD")[0]),
        flash=layer(theirs, theirs),
        latent=latent(),
        packed=the(f"{LAYERS}.linear:LinearBase")(drawn(4, 16), None, torch.nn.Module()),
        relu=the(f"{LAYERS}.activation:ReLUSquaredActivation")(),
        conv=torch.nn.Conv1d(2, 2, 1),
        inner=model(act=the(f"{LAYERS}.activation:SiluAndMul")()),
        sinks=sinks,
    )
    assert load(made, "gpt_oss") is made
    assert {name: of.operation for name, of in REPORT.layers.items() if not of.why} == {
        "norm": "rms_norm",
        "proj": "linear",
        "attn": "attention",
        "inner.act": "gated",
    }
    assert {name: why for name, why in REPORT.left} == {
        "flash": "its backend is FLASH_ATTN",
        "latent": "no operation serves a MLAAttention",
        "packed": "its weight is quantized (Module)",
        "relu": "no operation serves a ReLUSquaredActivation",
        "conv": "no operation serves a Conv1d",
    }
    assert made.norm.ptxgen_rounding == "gpt_oss" and made.inner.act.ptxgen_name == "inner.act"


def test_strict_refuses_a_model_by_name(register):
    import torch

    register("strict")
    served = model(norm=the(f"{LAYERS}.layernorm:RMSNorm")(drawn(16)))
    assert load(served) is served
    with pytest.raises(EngineError, match=r"model type 'mamba': its roundings were not compared"):
        load(served, "mamba")
    served.conv = torch.nn.Conv1d(2, 2, 1)
    with pytest.raises(EngineError, match="conv: no operation serves a Conv1d"):
        load(served)
    layer = the(f"{LAYERS}.linear:LinearBase")(drawn(4, 16))
    with pytest.raises(EngineError, match=r"a product of torch.float32 by torch.bfloat16"):
        layer(drawn(1, 16, dtype=torch.float32))


# -- quantized checkpoints --------------------------------------------------------------------
QUANT = f"{LAYERS}.quantization"
CASES = {
    "awq": ("awq", "auto_awq:AutoAWQLinearMethod"),
    "awq_marlin": ("awq", "auto_awq:AutoAWQMarlinLinearMethod"),
    "gptq": ("gptq", "auto_gptq:AutoGPTQLinearMethod"),
    "act_order": ("act_order", "auto_gptq:AutoGPTQLinearMethod"),
    "fp8": ("fp8", "fp8:Fp8LinearMethod"),
    "packed": ("packed", "compressed_tensors.compressed_tensors:CompressedTensorsLinearMethod"),
    "packed8": ("packed8", "compressed_tensors.compressed_tensors:CompressedTensorsLinearMethod"),
}
"""Checkpoints: their scheme, and vLLM's method that loads it."""
N, K = 128, 256


class Quantized:
    """A layer of two fused weights, as vLLM makes it of a checkpoint; ``parts``: tensors of each of
    them; ``separate``: layers of a trainer with one of them each.
    """

    def __init__(self, case, **more):
        import torch
        from scheme_cases import SCHEMES

        scheme, method = CASES[case]
        draw, options, _ = SCHEMES[scheme]
        self.options = {**options, **more}
        torch.manual_seed(7)
        self.parts = [draw(N, K) for _ in range(2)]
        if scheme == "act_order":
            self.parts[1]["g_idx"] = self.parts[0]["g_idx"]
        module = f"{QUANT}.{method.partition(':')[0]}"
        self.config = the(f"{module}:Config")(**self.options)
        self.config.bits = 8 if scheme == "packed8" else 4
        self.method = the(f"{QUANT}.{method}")(self.config)
        self.layer = the(f"{LAYERS}.linear:LinearBase")(None, drawn(2 * N), self.method)
        if scheme.startswith("packed"):
            self.layer.scheme = the(f"{module}:CompressedTensorsWNA16")()

    def fill(self, parts=None):
        """Loads the tensors into vLLM's parameters."""
        for name, parameter in self.layer.named_parameters():
            for i, part in enumerate(parts or self.parts):
                if name in part:
                    parameter.weight_loader(parameter, part[name], i)

    def make(self, parts=None, dtype=None):
        """Creates, loads and processes the layer, and returns a model that has it."""
        import torch

        self.layer._parameters.clear()
        given = self.layer, K, [N, N], K, 2 * N, dtype or torch.bfloat16
        self.method.create_weights(*given, weight_loader=self.layer.weight_loader_v2)
        self.fill(parts)
        self.method.process_weights_after_loading(self.layer)
        return model(proj=self.layer)

    def load(self):
        return load(self.make, quant_config=self.config)

    def expected(self, x, parts=None):
        """The bits of separate products, as those of a trainer that was converted."""
        import torch

        import ptxgen.torch as pt
        from ptxgen.torch.checkpoints import reader

        read = reader(self.options["quant_method"], self.options)
        found = [pt.quantized_linear(x, read(part, (N, K))) for part in parts or self.parts]
        dense = [ptxgen.quantized.dequantize(read(p, (N, K)), "bfloat16") for p in self.parts]
        if parts is None:
            assert torch.equal(found[0], pt.linear(x, dense[0], layout="nk"))
        return torch.cat(found, -1)


@pytest.mark.parametrize("case", CASES)
def test_quantized_weights_become_the_trainers(register, case):
    """Fused weights have the bits of separate ones, which are those of the dense weight."""
    import torch

    register("audit")
    of = Quantized(case)
    made = of.load()
    x, layer = drawn(3, K), of.layer
    found = layer(x)
    plain = of.method.apply(layer, x)
    assert torch.equal(plain, of.expected(x)) and torch.equal(layer(x[:1]), found[:1])
    assert torch.equal(plain, of.method.apply(layer, torch.cat((x, drawn(40, K, seed=3))))[:3])
    assert not is_marked(found) and not torch.equal(plain, found)  # a bias
    assert not hasattr(layer, "repacked")  # vLLM's kernels have not seen it
    # Nothing of vLLM's is left that could be written to without notice.
    names = {n for n, _ in made.proj.named_parameters() if not n.startswith("ptxgen_")}
    assert names == ({"weight_shape"} if case.startswith("packed") else set())
    assert REPORT.layers["proj"].operation == "quantized_linear" and not REPORT.left
    from scheme_cases import SCHEMES

    format = SCHEMES[CASES[case][0]][2]
    rows = REPORT.as_dict()["calls"]
    assert {row["dtype"] for row in rows} == {f"bfloat16 by {format}"}
    assert {row["contract"].split("+")[-1] for row in rows} == {f"tc16/{version('tc16')}"}
    assert all("quantized" in row["family"] for row in rows)
    with pytest.raises(EngineError, match=rf"proj: a product of torch.float64 by {format}"):
        layer(x.double())
    hooked = {hook.target for hook in QUANTIZED} & {*REPORT.hooks}
    assert len(hooked) == (6 if case.startswith("awq") else 3)


def test_quantized_methods_with_another_signature_are_refused(register, monkeypatch):
    register()
    of = Quantized("gptq")
    monkeypatch.setattr(type(of.method), "apply", lambda self, layer, x: x)
    with pytest.raises(
        EngineError, match=r"0\.26\.0 is not .*GPTQLinearMethod\.apply takes \(self"
    ):
        of.load()


def test_quantized_weights_are_loaded_anew(register):
    """In place, as vLLM's ``reload_weights``, which copies to the parameters that it had."""
    import torch

    register()
    of = Quantized("act_order")
    of.load()
    layer, x = of.layer, drawn(3, K)
    before = dict(layer.named_parameters())
    fresh = [{**part, "scales": part["scales"].flip(0)} for part in of.parts]
    of.make(fresh)
    for name, parameter in layer.named_parameters():
        before[name].data.copy_(parameter)
    layer._parameters.update(before)
    assert torch.equal(of.method.apply(layer, x), of.expected(x, fresh))
    wide = [{**part, "scales": part["scales"].float() / 3} for part in of.parts]
    with pytest.raises(EngineError, match=r"of int4_zero_point_ordered_g64.* of int4_.*_f32; lo"):
        of.make(wide)
    other = [fresh[0], {**fresh[1], "g_idx": fresh[1]["g_idx"].flip(0)}]
    with pytest.raises(EngineError, match=r"is of none: its fused weights have groups in"):
        of.make(other)
    assert torch.equal(layer.g_idx.data, other[0]["g_idx"])  # the first alone is loaded


def activations(of):
    of.options["config_groups"]["group_0"]["input_activations"] = {"num_bits": 8}


def no_blocks(of):
    of.config.weight_block_size = None


def another_scheme(of):
    of.layer.scheme = type("CompressedTensorsW8A8Int8", (), {})()


def another_order(of):
    of.parts[1]["g_idx"] = of.parts[0]["g_idx"].flip(0)


def shared_blocks(of):
    of.config.weight_block_size = [96, 128]


LEFT = {
    "awq": (None, {"version": "gemv"}, "version of quantization_config is 'gemv'; awq takes"),
    "awq_marlin": (None, {"quant_method": None}, "quant_method of quantization_config is 'None'"),
    "gptq": (None, {"dynamic": {"+:.*": {}}}, "its layers have options of their own"),
    "act_order": (another_order, {}, "its fused weights have groups in different orders"),
    "fp8": (no_blocks, {}, "its scales are not of blocks, and its activations are quantized"),
    "packed": (activations, {}, "input_activations of quantization_config is {'num_bits': 8}, but"),
    "packed8": (another_scheme, {}, "its scheme is CompressedTensorsW8A8Int8"),
}


@pytest.mark.parametrize("case", LEFT)
def test_quantized_weights_that_are_left(register, case):
    """They stay vLLM's, in the dtypes that it has, and are refused by ``strict``."""
    import copy

    import torch

    change, more, why = LEFT[case]
    for mode in ("on", "strict"):
        register(mode)
        of = Quantized(case, **more)
        of.config.config = of.config.full_config = of.options = copy.deepcopy(of.options)
        if change:
            change(of)
        if mode == "on":
            of.load()
            assert is_marked(of.layer(drawn(3, K))) and "proj" in REPORT.layers
            left = REPORT.layers["proj"].why
            assert left.startswith(f"its weight is quantized ({type(of.method).__name__}: {why}")
            assert {*of.layer.repacked.values()} <= {torch.int32, torch.bfloat16, torch.int64} or (
                case == "fp8"
            )
        else:
            with pytest.raises(EngineError, match=r"proj: its weight is quantized") as error:
                of.load()
            assert why in str(error.value)
        hooks.remove()
        REPORT.reset()


def test_activations_that_vllm_quantizes_are_left(register, monkeypatch):
    register()
    monkeypatch.setenv("VLLM_MARLIN_INPUT_DTYPE", "int8")
    Quantized("gptq").load()
    assert "(VLLM_MARLIN_INPUT_DTYPE)" in REPORT.layers["proj"].why
    monkeypatch.delenv("VLLM_MARLIN_INPUT_DTYPE")
    of = Quantized("fp8")
    shared_blocks(of)
    of.load()
    assert "its parts of (128, 128) rows share blocks of 96" in REPORT.layers["proj"].why


def test_the_operator_of_quantized_products(register):
    import torch

    register()
    of = Quantized("gptq")
    of.load()
    layer = of.layer
    arrays = [getattr(layer, f"ptxgen_{n}", None) for n in ("data", "scales", "offsets")]
    arrays = [None if a is None else a.detach() for a in arrays]
    given = (drawn(3, K), *arrays, None, None, layer.bias, layer.ptxgen_format)
    operator = torch.ops.vllm.ptxgen_quantized_linear.default
    torch.library.opcheck(operator, given, test_utils=("test_schema", "test_faketensor"))


# -- operators between layers -----------------------------------------------------------------
def in_line(code, **layers):
    """A model whose ``forward`` is ``code``, a function of the model and x; it has logits, too."""
    import torch

    class InLine(torch.nn.Module):
        def forward(self, x):
            return code(self, x)

        def compute_logits(self, x):
            return x * 0.5

    made = InLine()
    for name, layer in layers.items():
        made.add_module(name, layer)
    return made


def elementwise(self, x):
    import torch

    x = self.proj(x * 0.5 + x.float().to(x.dtype)).clamp(-3, 3)
    x = torch.cat((x, torch.zeros_like(x)), 1)[:, torch.tensor([1, 0, 3, 2])]
    x[torch.arange(1)] = 1.0
    places = torch.arange(3).cumsum(0)  # sums of integers are exact
    return torch.where(places[:, None] > 0, x.masked_fill(x > 2, 0.0), torch.relu(-x)).view(-1)


def served_moe(self, x):
    return self.moe(x, x[:, :3].contiguous()) + x


@pytest.mark.parametrize("inference", [False, True])
def test_elementwise_code_in_line_is_allowed(register, inference):
    import torch

    register("strict")
    moe = f"{LAYERS}.fused_moe.unquantized_fused_moe_method"
    router = the(f"{LAYERS}.fused_moe.router.fused_topk_router:FusedTopKRouter")(2)
    experts = the(f"{moe}:RoutedExperts")(drawn(3, 16, 32), drawn(3, 32, 8, seed=1))
    for made in (
        in_line(elementwise, proj=the(f"{LAYERS}.linear:LinearBase")(drawn(2, 32))),
        in_line(served_moe, moe=the(f"{moe}:MoERunner")(router, experts)),
    ):
        assert load(made, "qwen3_moe") is made
        with torch.inference_mode(inference), torch.no_grad():
            made(drawn(3, 32))
            made.compute_logits(drawn(3, 32))
        assert not vars(made).keys() & {"forward", "compute_logits"}


def gated_by_sigmoid(self, x):
    return x * x.sigmoid()


def normalized(self, x):
    import torch

    return torch.softmax(torch.nn.functional.layer_norm(x, (32,)), -1)


def routed_by_sums(self, x):
    import torch

    x.index_put_((torch.tensor([0, 0]),), x[:2] * 1, accumulate=True)
    return torch.nn.functional.scaled_dot_product_attention(*[x[None, None]] * 3).cumsum(-1)


def by_a_kernel(self, x):
    import torch

    return torch.ops.vllm.theirs(x)


MEAN = "whose rows may depend on the batch"
CALLS = {
    gated_by_sigmoid: ["aten::sigmoid, which the trainer computes by ptxgen"],
    normalized: ["aten::native_layer_norm, which the", "aten::_softmax, which the"],
    routed_by_sums: ["aten::_index_put_impl_", "aten::_scaled_dot_product", "aten::cumsum, which"],
    by_a_kernel: ["vllm::theirs, a kernel of vLLM"],
    lambda self, x: x @ x.T + x.mean(-1): ["aten::mm, which", "aten::mean, which the"],
    lambda self, x: torch_of(x).linalg.inv(x[:3, :3].float()): [f"aten::linalg_inv_ex, {MEAN}"],
    lambda self, x: x.clone().normal_(): [f"aten::normal_, {MEAN}"],
}


def torch_of(x):
    return sys.modules[type(x).__module__.partition(".")[0]]


@pytest.mark.parametrize("inference", [False, True])
def test_strict_refuses_operators_in_line(register, inference):
    import torch

    register("strict")
    add = the("vllm.utils.torch_utils:direct_register_custom_op")
    if not hasattr(torch.ops.vllm, "theirs"):

        def theirs(x):
            return x.clone()

        theirs.__annotations__ = {"x": torch.Tensor, "return": torch.Tensor}
        add("theirs", theirs, [], theirs)
    for code, expected in CALLS.items():
        outer = in_line(lambda self, x: self.layers(x), layers=torch.nn.Sequential(in_line(code)))
        load(outer)
        with torch.inference_mode(inference), torch.no_grad():
            with pytest.raises(EngineError) as error:
                outer(drawn(3, 32))
            outer(drawn(3, 32))  # the first call alone is watched
        for each in expected:
            assert f"layers.*: its code calls {each}" in str(error.value)
        assert str(error.value).count("its code calls") == len(expected)


def test_operators_in_line_of_a_mixture_are_seen(register):
    """vLLM calls a mixture by one operator, inside of which others are seen."""
    import torch

    register("strict")
    moe = f"{LAYERS}.fused_moe.unquantized_fused_moe_method"
    router = the(f"{LAYERS}.fused_moe.router.fused_topk_router:FusedTopKRouter")(2)
    runner = the(f"{moe}:MoERunner")(router, the(f"{moe}:RoutedExperts")(drawn(3, 4), drawn(3, 4)))
    runner.forward_impl = lambda x, scores: torch.softmax(x, -1) * 2
    made = load(in_line(served_moe, moe=runner), "qwen3_moe")
    why = "moe: its code calls aten::_softmax, which the trainer computes by ptxgen;"
    with torch.inference_mode(), pytest.raises(EngineError, match=why):
        made(drawn(3, 32))


def test_operators_in_line_are_lines_of_an_audit(register):
    import torch

    def logits(self, x):
        return torch.tanh(x)

    register("audit")
    made = in_line(gated_by_sigmoid)
    type(made).compute_logits = logits
    load(made)
    with torch.no_grad():
        for _ in range(2):
            made(drawn(3, 32))
            made.compute_logits(drawn(3, 32))
    assert [(name, why.split()[3], n) for (name, why), n in REPORT.left.items()] == [
        ("InLine", "aten::sigmoid,", 1),
        ("InLine", "aten::tanh,", 1),
    ]
    REPORT.left.clear()
    for mode, compiled in (("audit", 3), ("on", 0)):
        hooks.remove()
        REPORT.reset()
        register(mode)
        load(made, mode=compiled)
        assert "forward" not in vars(made)


# -- changes while an engine runs -----------------------------------------------------------------
def changing():
    """A model of layers with weights, and a function that runs all of them."""
    moe = f"{LAYERS}.fused_moe.unquantized_fused_moe_method"
    rope = the(f"{LAYERS}.rotary_embedding.base:RotaryEmbedding")
    router = the(f"{LAYERS}.fused_moe.router.fused_topk_router:FusedTopKRouter")(2)
    experts = the(f"{moe}:RoutedExperts")(drawn(3, 16, 32), drawn(3, 32, 8, seed=1))
    made = model(
        proj=the(f"{LAYERS}.linear:LinearBase")(drawn(32, 32, seed=2)),
        head=the(f"{LAYERS}.vocab_parallel_embedding:VocabParallelEmbedding")(drawn(9, 32, seed=3)),
        norm=the(f"{LAYERS}.layernorm:RMSNorm")(drawn(32, seed=4)),
        moe=the(f"{moe}:MoERunner")(router, experts),
        rope=rope(8, 8, 32, 1e4, True, drawn(1).dtype),
    )
    load(made, "qwen3_moe", rope_parameters=ROPE, head_dim=8)

    def run():
        import torch

        x = drawn(3, 32, seed=5)
        y = made.proj(made.norm(x))
        q, k = made.rope(torch.tensor([4, 0, 9]), y[:, :24].clone(), y[:, 24:].clone())
        y = made.moe(torch.cat((q, k), 1), y[:, :3].contiguous())
        return made.head.quant_method.apply(made.head, y)

    return made, run


def test_weights_that_change_in_place(register):
    import torch

    register("strict")
    made, run = changing()
    other, expected = changing()
    before = run()
    with torch.no_grad():
        for i, (x, y) in enumerate(zip(made.parameters(), other.parameters(), strict=True)):
            new = drawn(*x.shape, seed=20 + i)
            x.copy_(new)  # a trainer's weights are copied to where they are
            y.data = new.clone()
    after = run()
    assert torch.equal(after, expected()) and not torch.equal(after, before)


def test_an_engine_that_sleeps_and_wakes(register):
    """At level 2 of its sleep, vLLM saves buffers, loses all memory, and then loads weights."""
    import torch

    register("strict")
    made, run = changing()
    before = run()
    weights = {name: x.clone() for name, x in made.named_parameters()}
    saved = {name: x.clone() for name, x in made.named_buffers()}
    assert "rope.ptxgen_table" in saved and "rope.ptxgen_table" not in made.state_dict()
    with torch.no_grad():
        for x in (*made.parameters(), *made.buffers()):
            x.fill_(torch.nan)
    assert run().isnan().any()
    for name, x in (*made.named_buffers(), *made.named_parameters()):
        x.data.copy_(saved[name] if name in saved else weights[name])
    assert torch.equal(run(), before)


UNSERVED = {
    "speculative decoding": {"speculative_config": 1},
    "LoRA": {"lora_config": 1},
    "tensor parallelism": {"tensor_parallel_size": 2},
    "code between layers": {"mode": 3},
}


@pytest.mark.parametrize("name", UNSERVED)
def test_options_that_strict_refuses(register, name):
    register("strict")
    defaults = the("vllm.platforms:current_platform").apply_config_platform_defaults
    defaults(configuration())
    remedy = "PTXGEN_VLLM=on leaves them to vLLM"
    with pytest.raises(EngineError, match=rf"strict, .* these parts: {name}: .*; {remedy}$"):
        defaults(configuration(**UNSERVED[name]))
    hooks.remove()
    REPORT.reset()
    register("on")
    defaults(configuration(**UNSERVED[name]))
    assert [part for part, _ in REPORT.left] == [name]


def test_strict_refuses_latent_attention_and_quantized_caches(register):
    register("strict")
    with pytest.raises(EngineError, match="latent: no operation serves a MLAAttention"):
        load(model(latent=the(f"{LAYERS}.attention:MLAAttention")()))
    choose = the("vllm.platforms:current_platform").get_attn_backend_cls
    for name, value, why in (
        ("use_mla", True, "MLA not supported"),
        ("kv_cache_dtype", "fp8", "kv_cache_dtype not supported"),
    ):
        with pytest.raises(EngineError, match=f"attention: {why}"):
            choose(None, Selection({**taken_by_the_backend(), name: value}))


# -- sampler ----------------------------------------------------------------------------------
def sampler(count=4, vocab=50, mode="raw_logprobs"):
    requests = the(f"{SAMPLE}.sampler:Requests")(count)
    requests.index_to_req_id = {i: f"request {i}" for i in range(count)}
    return the(f"{SAMPLE}.sampler:Sampler")(count, vocab, requests, mode)


def parameters(temperature=0.0, top_k=50, top_p=1.0, min_p=0.0, seed=None):
    return SimpleNamespace(
        temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p, seed=seed
    )


def draw(of, logits, rows, pos, **options):
    import torch

    index, places = torch.tensor(rows), torch.tensor(pos)
    return of.sample(logits.clone(), index, index.numpy(), places, None, None, **options)


def test_greedy_draws(register):
    import torch

    register()
    of, logits = sampler(), drawn(3, 50)
    tokens, returned = draw(of, logits, [0, 2, 1], [5, 6, 7])
    assert torch.equal(tokens, logits.float().argmax(-1)) and torch.equal(returned, logits)


def test_a_request_draws_the_same_in_every_batch(register):
    import torch

    register()
    of, logits = sampler(), drawn(4, 50)
    options = [
        parameters(0.7, top_k=20, seed=3),
        parameters(),
        parameters(1.3, top_p=0.8, min_p=0.02, seed=4),
        parameters(1.0),
    ]
    for i, each in enumerate(options):
        of.add_request(i, 10, each)
    together, _ = draw(of, logits, [0, 1, 2, 3], [11, 12, 13, 14])
    for i in range(4):
        alone, _ = draw(of, logits[i : i + 1], [i], [11 + i])
        assert torch.equal(alone, together[i : i + 1])
    assert together[1] == logits[1].float().argmax()
    seeds = of.sampling_states.seeds.np
    assert REPORT.seeds == {"request 3": int(seeds[3])}
    later, _ = draw(of, logits[:1].expand(64, 50), [0] * 64, list(range(64)))
    assert len(set(later.tolist())) > 1


def test_a_preempted_request_keeps_its_seed(register):
    """vLLM adds it anew, at another place, with the tokens that it has drawn."""
    register()
    of, drawn_anew = sampler(), parameters(1.0)
    names, seeds = of.req_states.index_to_req_id, of.sampling_states.seeds.np
    of.req_states.prefill_len.np[:] = 10
    of.add_request(2, 10, drawn_anew)
    first = int(seeds[2])
    names[0], of.req_states.prefill_len.np[0] = "request 2", 14
    of.add_request(0, 10, drawn_anew)
    assert seeds[0] == first and REPORT.seeds == {"request 2": first}
    of.add_request(2, 10, drawn_anew)  # another request of the same name
    assert seeds[2] != first and REPORT.seeds == {"request 2": int(seeds[2])}


class Generator:
    """A generator on a GPU, which counts: those on CPUs have no offset."""

    def __init__(self, seed, offset=0):
        self.seed, self.offset = seed, offset

    def initial_seed(self):
        return self.seed

    def get_offset(self):
        return self.offset

    def set_offset(self, offset):
        self.offset = offset


def metadata(temperature, generators, processors=(), **options):
    import torch

    given = {"top_k": None, "top_p": None, "max_num_logprobs": None, "logprob_token_ids": None}
    return SimpleNamespace(
        all_greedy=not any(temperature),
        temperature=torch.tensor(temperature),
        generators=generators,
        logitsprocs=SimpleNamespace(argmax_invariant=list(processors)),
        **{**given, **options},
    )


def test_requests_with_seeds_draw_the_same_in_the_v1_runner(register):
    import torch

    import ptxgen.torch as pt

    register("strict")
    of, logits = the("vllm.v1.sample.sampler:Sampler")(), drawn(4, 50, dtype=torch.float32)
    seeded = {0: Generator(3), 2: Generator((1 << 64) - 4, 4 * 9)}
    kind = the("vllm.v1.sample.sampler:MinPLogitsProcessor")
    limits = {
        "top_k": torch.tensor([20, 50, 50, 50], dtype=torch.int32),
        "top_p": torch.tensor([1.0, 1.0, 0.8, 1.0]),
    }
    given = [0.7, 0.0, 1.3, 1.0], seeded, [kind([0.0, 0.0, 0.02, 0.0])]
    found, processed = of.sample(logits, metadata(*given, **limits, max_num_logprobs=2))
    assert processed is None and found[1] == logits[1].argmax()
    settings = {"temperature": 0.7, "top_k": 20}, {"temperature": 1.3, "top_p": 0.8, "min_p": 0.02}
    for i, how, (seed, offset) in zip((0, 2), settings, ((3, 0), (-4, 9)), strict=True):
        expected = pt.sample(logits[i : i + 1], **how, seed=seed, offset=offset)
        assert torch.equal(found[i : i + 1], expected)
    assert (seeded[0].offset, seeded[2].offset) == (4, 40)
    again = metadata([0.7], {0: Generator(3)}, [kind()], top_k=limits["top_k"][:1])
    assert torch.equal(of.sample(logits[:1], again)[0], found[:1])  # alone
    later = [of.sample(logits[:1], again)[0].item() for _ in range(16)]
    assert len(set(later)) > 1 and "numbers of PyTorch's" in REPORT.notes["seeds"]
    drawn_anew = [of.sample(logits[3:], metadata([1.0], {}))[0].item() for _ in range(16)]
    assert len(set(drawn_anew)) > 1


def test_draws_of_the_v1_runner_that_are_vllms(register):
    register("strict")
    of, logits = the("vllm.v1.sample.sampler:Sampler")(), drawn(2, 50)
    thinking = [the("vllm.v1.sample.sampler:ThinkingProcessor")()]
    tokens, _ = of.sample(logits, metadata([0.0, 0.0], {}, thinking))
    assert tokens.tolist() == logits.argmax(-1).tolist()
    with pytest.raises(EngineError, match="V1 model runner with ThinkingProcessor"):
        of.sample(logits, metadata([1.0, 0.0], {}, thinking))
    processed = metadata([1.0, 0.0], {}, max_num_logprobs=0)
    with pytest.raises(EngineError, match="V1 model runner with processed_logprobs"):
        of.sample(logits, processed, "processed_logprobs")
    hooks.remove()
    REPORT.reset()
    register("on")
    tokens, _ = of.sample(logits, metadata([1.0, 0.0], {}, thinking))
    assert tokens.tolist() == logits.argmax(-1).tolist() and len(REPORT.left) == 1


def test_processed_logits_are_divided_in_f32(register):
    import torch

    register()
    of, logits = sampler(mode="processed_logprobs"), drawn(2, 50)
    _, found = draw(of, logits, [0, 1], [3, 4], return_logprobs=True)
    assert torch.equal(found, logits.float())
    of.sampling_states.temperature.gpu[1] = 0.7
    processed = the("ptxgen.engines.vllm.sampler:_processed")
    index = torch.tensor([0, 1])
    found = processed(of.sampling_states, logits, index, index.numpy())
    assert torch.equal(found, logits.float() / torch.tensor([[1.0], [0.7]]))


def test_masks_of_processed_log_probabilities_are_vllms(register):
    """A report names them; in mode strict an engine with such a mode does not start."""
    register()
    defaults = the("vllm.platforms:current_platform").apply_config_platform_defaults
    defaults(configuration(logprobs_mode="processed_logprobs"))
    of, logits = sampler(mode="processed_logprobs"), drawn(2, 50)
    of.add_request(0, 3, parameters(1.0, seed=1))
    of.add_request(1, 3, parameters(1.0, top_k=20, min_p=0.1, seed=1))
    draw(of, logits[:1], [0], [3], return_logprobs=True)
    draw(of, logits, [0, 1], [3, 4])
    assert not REPORT.left
    draw(of, logits, [0, 1], [3, 4], return_logprobs=True)
    assert [*REPORT.left] == [("sampler", "masks of processed log-probabilities (top_k, min_p)")]
    hooks.remove()
    REPORT.reset()
    register("strict")
    for mode in ("processed_logprobs", "processed_logits"):
        with pytest.raises(EngineError, match=f"logprobs_mode {mode}: masks .*; raw_logprobs, the"):
            defaults(configuration(logprobs_mode=mode))
    defaults(configuration(logprobs_mode="raw_logits"))


def test_tokens_that_a_request_names_do_not_change_the_others(register):
    import torch

    register("strict")
    logits, ids = drawn(3, 50), torch.tensor([4, 0, 49])
    logits[2, 7] = logits[2, 3] = 9.0
    compute = the(f"{SAMPLE}.sampler:compute_topk_scores")
    values = the(f"{SAMPLE}.sampler:Values")
    rest = SimpleNamespace(num_token_ids=values(4, torch.int32), token_ids=values(4, torch.int32))
    rest.num_token_ids.gpu[1], rest.token_ids.gpu = 3, torch.tensor([[0] * 4, [8, 6, 7, 0]])
    where = torch.tensor([3, 1, 0])
    for mode in (False, True):
        expected = logits.float() if mode else torch.stack([*map(only_logprobs, logits)])
        for top in (2, 4):
            alone = compute(logits, top, ids, logits_mode=mode)
            found = compute(logits, top, ids, None, rest, where, 3, mode)
            width = 1 + max(top, 3)
            tokens, scores = found.logprob_token_ids, found.logprobs
            assert tokens.shape == scores.shape == (3, width)
            for row in (0, 2):
                assert torch.equal(tokens[row, : top + 1], alone.logprob_token_ids[row])
                assert torch.equal(scores[row, : top + 1], alone.logprobs[row])
                assert (scores[row, top + 1 :] == -torch.inf).all()
            assert tokens[1].tolist() == [0, 8, 6, 7] + [0] * (width - 4)
            assert torch.equal(scores[1, :4], expected[1, [0, 8, 6, 7]])
            assert (scores[1, 4:] == -torch.inf).all()
        named = compute(logits, 0, ids, None, rest, where, 3, mode)
        assert torch.equal(named.logprobs[1], expected[1, [0, 8, 6, 7]])


def only_logprobs(row):
    import torch

    import ptxgen.torch as pt

    with pt.batch_invariant():
        return torch.log_softmax(row[None].float(), -1)[0]


def test_log_probabilities(register):
    import torch

    import ptxgen.torch as pt

    register()
    logits, ids = drawn(3, 50), torch.tensor([4, 0, 49])
    logits[1, 7] = logits[1, 3] = 9.0  # of equal logits the lowest index comes first
    with pt.batch_invariant():
        expected = torch.log_softmax(logits.float(), -1)
    assert torch.equal(the("vllm.v1.sample.sampler:Sampler").compute_logprobs(logits), expected)
    gather = the("vllm.v1.sample.sampler:Sampler").gather_logprobs
    found = gather(expected, 2, ids)
    best = torch.sort(expected, descending=True, stable=True).indices[:, :2]
    tokens = torch.cat((ids[:, None], best), 1)
    assert torch.equal(found.logprob_token_ids, tokens.int())
    assert torch.equal(found.logprobs, expected.gather(-1, tokens))
    assert torch.equal(gather(expected, 0, ids).logprobs, expected.gather(-1, ids[:, None]))
    compute = the(f"{SAMPLE}.logprob:compute_token_logprobs")
    pairs = torch.stack((ids, ids.flip(0)), 1)
    assert torch.equal(compute(logits, pairs), expected.gather(-1, pairs))
    assert torch.equal(compute(logits, pairs[:, :1]), expected.gather(-1, pairs[:, :1]))
    for module in ("sampler", "prompt_logprob"):
        found = the(f"{SAMPLE}.{module}:compute_topk_scores")(logits, 2, ids)
        assert torch.equal(found.logprob_token_ids, tokens)
        assert torch.equal(found.logprobs, expected.gather(-1, tokens))
        assert found.logprob_token_ids[1, 1:].tolist() == [3, 7]


# -- the report and the command ------------------------------------------------------------------
def test_the_report_names_the_kernels_that_run(register):
    """They are those that the CPU device, which stands for a GPU, loads."""
    import torch

    from ptxgen.engines.kernels import launched

    register("audit")
    _, run = changing()
    attend, cache = attention(2, 16, 1, "NHD")
    q, x = drawn(3, 2, 16), drawn(3, 32)
    norm = the(f"{LAYERS}.layernorm:GemmaRMSNorm")(drawn(32, seed=1))
    sample, logits = sampler(), drawn(2, 50)
    sample.add_request(0, 3, parameters(0.7, seed=1))
    with ptxgen.use_device("cpu") as device:
        before = {*device.loaded()}
        run()
        norm(x, x)
        the(f"{LAYERS}.activation:SiluAndMul")()(x)
        attend.forward(LAYER, q, q, q, cache, batch((0, 1, 3), (9, 2), [[1], [2]]), q.clone())
        draw(sample, logits, [0, 1], [3, 4])
        the(f"{SAMPLE}.sampler:compute_topk_scores")(logits, 2, torch.tensor([4, 0]))
        loaded = {*device.loaded()} - before
    the(f"{LAYERS}.logits_processor:LogitsProcessor")(30.0)(None, x)  # divides on CPUs alone
    assert loaded <= {spec.name for call in REPORT.calls for spec in launched(call.recipe)}
    rows = {(r["layer"], r["operation"]): r for r in REPORT.as_dict()["calls"]}
    assert {*rows} == {
        ("proj", "linear"), ("head", "linear"), ("norm", "rms_norm"), ("rope", "rotary"),
        ("GemmaRMSNorm", "rms_norm"), ("SiluAndMul", "gated"), ("LogitsProcessor", "softcapped"),
        ("moe", "router"), ("moe.routed_experts", "experts"),
        ("model.layers.0.attn", "attention"), ("sampler", "sample"), ("sampler", "topk"),
        ("sampler", "token_logprobs"), ("sampler", "log_softmax"),
    }  # fmt: skip
    assert all(row["contract"] and row["family"] for row in rows.values())
    found = {key: (row["contract"], row["family"]) for key, row in rows.items()}
    assert found["moe", "router"] == (f"rows/{version('rows')}", "select_route")
    assert found["norm", "rms_norm"] == (f"rows/{version('rows')}", "row_reductions")
    assert found["sampler", "topk"] == (f"topk/{version('topk')}", "select_topk_lanes")


def test_the_report_is_written(register, monkeypatch, tmp_path, capsys):
    report = register("audit")
    assert report is engines.report()
    the(f"{LAYERS}.linear:LinearBase")(drawn(4, 16))(drawn(2, 16))
    report.seed("request 1", 5)
    path = tmp_path / "report.json"
    monkeypatch.setenv("PTXGEN_REPORT", str(path))
    report._at_exit()
    found = json.loads(path.read_text())
    assert found["version"] == stand_in.VERSION and found["seeds"] == {"request 1": 5}
    assert found["calls"][0]["operation"] == "linear" and found["calls"][0]["calls"] == 1
    text = capsys.readouterr().err
    assert "vLLM 0.26.0, mode audit" in text and "LinearBase" in text and str(path) in text
    monkeypatch.setenv("PTXGEN_REPORT", str(tmp_path / "none" / "report.json"))
    with pytest.raises(FileNotFoundError):
        report._at_exit()
    assert "LinearBase" in capsys.readouterr().err  # what was counted is not lost


ENGINE = """
import multiprocessing, os
from ptxgen.engines.audit import REPORT, Layer

def serve():
    for _ in range(2):
        REPORT.layers["proj"] = Layer("Linear", "linear")
        REPORT.write_at_exit()

REPORT.begin("vLLM", "0", "audit")
child = multiprocessing.get_context(os.environ["START"]).Process(target=serve)
if __name__ == "__main__":
    child.start()
    child.join()
"""


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_the_process_with_the_model_writes_the_report(start, tmp_path):
    script = tmp_path / "engine.py"
    script.write_text(ENGINE)
    given = {
        "PTXGEN_REPORT": str(tmp_path / "report.{pid}.json"),
        "START": start,
        "PYTHONPATH": str(ROOT),
    }
    done = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, **given},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr.count("written to") == 1
    (path,) = tmp_path.glob("report.*.json")
    assert path.name.split(".")[1].isdecimal()
    assert "proj" in [row["layer"] for row in json.loads(path.read_text())["layers"]]


def test_the_report_is_bounded():
    from ptxgen.engines import audit

    report = audit.Report()
    for m in range(audit.SIZES_MOST + 5):
        report.call(audit.Call("a", "linear", "bfloat16", (m, 2, 3)))
    assert len(report.calls) == audit.SIZES_MOST + 1 and report.calls.total() == m + 1
    for i in range(audit.SEEDS_MOST + 2):
        report.seed(str(i), i)
    assert len(report.seeds) == audit.SEEDS_MOST and "1" not in report.seeds


def test_the_command(installed, monkeypatch, capsys):
    monkeypatch.delenv("PTXGEN_VLLM", raising=False)
    assert main(["engines"]) == 0
    text = capsys.readouterr().out
    assert (
        "0.26.0" in text
        and "0.26 to 0.27" in text
        and text.count(" fits") == len((*HOOKS, *MODELS, *QUANTIZED))
    )
    path = installed / "vllm" / "model_executor" / "layers" / "activation.py"
    kept = path.read_text()
    try:
        path.write_text(kept.replace("def forward_native(x)", "def forward_native(x, limit)"))
        assert main(["engines", "--json"]) == 1
    finally:
        path.write_text(kept)
    found = json.loads(capsys.readouterr().out)
    wrong = [h for h in found["hooks"] if not h["fits"]]
    assert [h["function"].rpartition(".")[2] for h in wrong] == ["forward_native"]
    assert wrong[0]["found"] == "staticmethod (x, limit)" and found["mode"] == "on"
    monkeypatch.setattr(vllm, "installed_version", lambda: "")
    assert main(["engines"]) == 0
    assert "not installed" in capsys.readouterr().out
