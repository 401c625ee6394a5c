"""``ptxgen engines warm``: the kernels that layers need, found by tensors without memory."""

from __future__ import annotations

import json

import pytest

import ptxgen
from ptxgen.cli import engines as command
from ptxgen.cli import main
from ptxgen.errors import DeviceError, OptionError
from ptxgen.ops.explaining import explain

torch = pytest.importorskip("torch", reason="needs PyTorch")

import ptxgen.torch as pt  # noqa: E402
from ptxgen.engines import layers  # noqa: E402
from ptxgen.engines.kernels import device_for  # noqa: E402
from ptxgen.engines.vllm import warm  # noqa: E402
from ptxgen.engines.vllm.families import FAMILIES  # noqa: E402

LLAMA = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 128,
    "vocab_size": 256,
    "max_position_embeddings": 64,
    "hidden_act": "silu",
}
EXPERTS = {"num_experts_per_tok": 2, "moe_intermediate_size": 32}
MODELS = {
    "llama": {},
    "gemma2": {
        "hidden_activation": "gelu_pytorch_tanh",
        "sliding_window": 16,
        "attn_logit_softcapping": 50.0,
        "final_logit_softcapping": 30.0,
    },
    "qwen3_moe": {"num_experts": 4, "head_dim": 32, **EXPERTS},
    "mixtral": {"num_local_experts": 4, **EXPERTS},
    "gpt_oss": {"num_local_experts": 4, **EXPERTS, "sliding_window": 16, "attention_bias": True},
}
LIMITS = warm.Limits(max_num_batched_tokens=3, max_num_seqs=2)


def found(family="llama", limits=LIMITS, **more):
    model = warm.Model({**LLAMA, **MODELS.get(family, {}), "model_type": family, **more})
    return warm.find_kernels(model, device_for("sm_90a"), limits)


def test_sizes_of_batches():
    tokens = warm.Limits(max_num_batched_tokens=3000).tokens
    assert tokens[:5] == (1, 2, 4, 8, 16) and tokens[-4:] == (512, 1024, 2048, 3000)
    assert len([n for n in tokens if n <= 512]) == 51  # as many as vLLM captures
    assert LIMITS.tokens == (1, 2, 3) and LIMITS.rows == (1, 2)


def test_products_are_those_that_explain_names():
    kernels, left = found()
    weights = ((128, 64), (64, 64), (256, 64), (64, 128))
    sizes = [(m, n, k) for m in LIMITS.tokens for n, k in weights]
    sizes += [(m, 256, 64) for m in LIMITS.rows]
    launches = [explain("linear", *s, dtype="bfloat16", layout="nk").launches for s in sizes]
    assert {*kernels["linear"]} == {x.kernel for each in launches for x in each}
    assert [part for part, _ in left] == ["top log-probabilities, k > 1"]


def test_products_of_batches_between_those_that_are_made():
    sizes = {"hidden_size": 2048, "num_attention_heads": 16, "intermediate_size": 5632}
    limits = warm.Limits(max_num_batched_tokens=2000)
    kernels, _ = found(limits=limits, **sizes)

    def launched(tokens):
        weights = ((2560, 2048), (2048, 2048), (11264, 2048), (2048, 5632))
        each = [explain("linear", tokens, *w, dtype="bfloat16", layout="nk") for w in weights]
        return {x.kernel for one in each for x in one.launches}

    made = set().union(*map(launched, limits.tokens))
    between = set().union(*map(launched, range(1030, 2000, 97)))
    assert between <= {*kernels["linear"]} and between - made


def test_kernels_are_those_that_the_layers_launch():
    """The CPU device, which stands for the same GPU, loads none that was not found."""
    kernels, _ = found()
    names = {name for specs in kernels.values() for name in specs}
    with ptxgen.use_device("cpu") as device, torch.no_grad():
        before = {*device.loaded()}
        x, weight = torch.randn(2, 64).bfloat16(), torch.randn(64).bfloat16()
        layers.rms_norm(x, weight, 1e-6, x)
        layers.gated(torch.randn(2, 256).bfloat16(), "silu")
        pt.token_logprobs(torch.randn(2, 256).bfloat16(), torch.tensor([3, 5]))
        pt.sample(torch.randn(2, 256).bfloat16())
        new = {*device.loaded()} - before
    assert new <= names and all(kernels[n] for n in ("rms_norm", "gated", "sample", "attention"))


@pytest.mark.parametrize("family", MODELS)
def test_operations_of_families(family):
    kernels, left = found(family)
    expected = {"linear", "rms_norm", "rotary", "rotary_table", "attention"}
    expected |= {"sample", "token_logprobs", "log_softmax", "topk"}
    expected |= {"router", "experts"} if "num_experts_per_tok" in MODELS[family] else {"gated"}
    expected |= {"softcapped"} if family == "gemma2" else set()
    assert {*kernels} == expected and all(kernels.values())
    assert [part for part, _ in left] == ["top log-probabilities, k > 1"]


def test_families_have_styles_of_the_layers():
    assert {of.norm for of in FAMILIES.values()} == {*layers.STYLES}
    assert {of.router for of in FAMILIES.values()} == {"", *layers.ROUTERS}
    assert {of.experts_activation for of in FAMILIES.values()} <= {"", *layers.ACTIVATIONS}


WEIGHTS = {"num_bits": 8, "type": "int", "group_size": 32, "symmetric": False}
QUANTIZED = {
    "int4_zero_point_g64": (None, {"quant_method": "awq", "bits": 4, "q_group_size": 64}),
    "int8_zero_point_g64_bf16": (
        "int8_zero_point_g128_bf16",
        {"quant_method": "gptq", "bits": 8, "group_size": -1},
    ),
    "int4_zero_point_ordered_g32_bf16": (
        None,
        {"quant_method": "gptq", "bits": 4, "group_size": 32, "desc_act": True},
    ),
    "int8_zero_point_g32_bf16": (
        None,
        {
            **{"quant_method": "compressed-tensors", "format": "pack-quantized"},
            "config_groups": {"group_0": {"weights": WEIGHTS}},
        },
    ),
    "fp8_e4m3_g64": ("fp8_e4m3", {"quant_method": "fp8", "weight_block_size": [128, 128]}),
}
"""Formats of weights with K = 64; those with K = 128, if others; and the checkpoint's options."""


@pytest.mark.parametrize("format", QUANTIZED)
def test_products_of_quantized_checkpoints(format):
    wide, options = QUANTIZED[format]
    dtype = "float16" if format == "int4_zero_point_g64" else "bfloat16"
    limits = warm.Limits(max_num_batched_tokens=1, max_num_seqs=1)
    kernels, left = found(limits=limits, quantization_config=options, dtype=dtype)
    assert [part for part, _ in left] == ["top log-probabilities, k > 1"]
    sizes = [(128, 64, format), (64, 64, format), (256, 64, format), (64, 128, wide or format)]
    launches = [
        explain("quantized_linear", 1, n, k, dtype=dtype, format=f).launches for n, k, f in sizes
    ]
    assert {*kernels["quantized_linear"]} == {x.kernel for each in launches for x in each}
    assert kernels["linear"]  # of the LM head


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"quant_method": "fp8"}, "its scales are not of blocks"),
        ({"quant_method": "gptq", "bits": 4, "dynamic": {"-:lm": {}}}, "options of their own"),
    ],
)
def test_quantized_checkpoints_that_are_vllms(options, why):
    limits = warm.Limits(max_num_batched_tokens=1, max_num_seqs=1)
    kernels, left = found(limits=limits, quantization_config=options)
    assert "quantized_linear" not in kernels and why in dict(left)["linear layers"]


def test_parts_that_are_left():
    kernels, left = found("phi", quantization_config={"bits": 4}, hidden_act="relu2")
    assert [part for part, _ in left] == [
        "model type 'phi'",
        "linear layers",
        "gated activation",
        "top log-probabilities, k > 1",
    ]
    assert "gated" not in kernels and kernels["linear"]  # of the LM head
    assert ("mixture of experts", "takes gpt_oss, mixtral, qwen3_moe") in found(
        "olmoe", num_experts=4
    )[1]
    kernels, left = found(num_attention_heads=2, head_dim=1024)
    assert "attention" in dict(left) and "attention" not in kernels  # no kernel has such heads


def test_configurations_that_are_refused(tmp_path):
    with pytest.raises(OptionError, match=r"config\.json is no configuration of a model"):
        warm.Model.read(tmp_path)
    file = tmp_path / "config.json"
    for text in ("[1]", "{"):
        file.write_text(text)
        with pytest.raises(OptionError, match="is no configuration of a model"):
            warm.Model.read(tmp_path)
    with pytest.raises(OptionError, match="the configuration has no hidden_size"):
        found(hidden_size=None)
    with pytest.raises(OptionError, match=r"dtype is 'int8'; takes bfloat16"):
        found(torch_dtype="int8")
    file.write_text(json.dumps({"text_config": LLAMA, "model_type": "outer"}))
    assert warm.Model.read(file).kind == "llama"


def test_tensors_without_memory_need_the_device():
    x, w = (torch.empty(n, 64, device="meta", dtype=torch.bfloat16) for n in (2, 8))
    device = device_for("sm_80", 108)
    with pytest.raises(DeviceError, match="on meta; takes CUDA tensors"):
        pt.linear(x, w)
    with device.opened(), torch.no_grad():
        assert pt.linear(x, w).shape == (2, 8)
    assert (device.arch, device.sms) == ("sm_80", 108) and device.prepared
    with pytest.raises(DeviceError, match="on meta"):  # the call left no code that runs
        pt.linear(x, w)


def test_the_command(tmp_path, capsys):
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    given = ["engines", "warm", str(tmp_path), "--max-num-batched-tokens", "1", "--max-num-seqs"]
    assert main([*given, "1", "--dry-run", "--arch", "sm_90a"]) == 0
    out, err = capsys.readouterr()
    assert "llama on NVIDIA H200 (sm_90a, 132 SMs)" in err and "not warmed" in out
    assert main([*given, "1", "-n", "--json", "--arch", "sm_80", "--sms", "108"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert rows["arch"] == "sm_80" and {r["operation"] for r in rows["operations"]} >= {"linear"}
    with pytest.raises(SystemExit, match="2"):
        main([*given, "0"])
    assert "--max-num-seqs" in capsys.readouterr().err
    assert main(["engines", "warm", str(tmp_path / "none")]) == 2


def test_kernels_are_compiled_once(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PTXGEN_CACHE_DIR", str(tmp_path))
    kernels = found()[0]["gated"]
    first = command._compiled(kernels, "sm_90a", 1)
    assert {*first} == {*kernels} and all(seconds > 0 for seconds in first.values())
    again = command._compiled(kernels, "sm_90a", 1)
    assert again == dict.fromkeys(kernels)
    assert command._row("gated", kernels, again) == ("gated", len(kernels), 0, 0)
    assert command._row("gated", kernels, first)[2] == len(kernels)
