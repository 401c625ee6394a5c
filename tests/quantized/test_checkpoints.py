"""Checkpoints of quantized weights, written by the tests and loaded into models."""

from __future__ import annotations

import json

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from scheme_cases import FLOATS, GROUPS, SCHEMES  # noqa: E402

import ptxgen  # noqa: E402
import ptxgen.torch  # noqa: E402
from ptxgen import quantized  # noqa: E402
from ptxgen.errors import CheckpointError, OptionError  # noqa: E402

HIDDEN, INNER = 256, 512


class Block(torch.nn.Module):
    """A block with linear layers, a norm and an embedding."""

    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(32, HIDDEN)
        self.norm = torch.nn.RMSNorm(HIDDEN)
        self.up = torch.nn.Linear(HIDDEN, INNER)
        self.down = torch.nn.Linear(INNER, HIDDEN, bias=False)
        self.head = torch.nn.Linear(HIDDEN, 32, bias=False)

    def forward(self, tokens):
        x = self.embed(tokens)
        return self.head(x + self.down(torch.relu(self.up(self.norm(x)))))


def model(seed=0):
    torch.manual_seed(seed)
    return Block().requires_grad_(False)


def dense(made):
    """A copy of the model, whose layers have the dequantized weights."""
    other = model(9)
    for name, module in made.named_modules():
        if isinstance(module, ptxgen.torch.QuantizedLinear):
            weight = torch.nn.Parameter(quantized.dequantize(module.q), requires_grad=False)
            other.get_submodule(name).weight = weight
    for name, parameter in made.named_parameters():
        other.get_parameter(name).copy_(parameter)
    ptxgen.torch.convert(other)
    return other


def same_as_dense(made):
    """The loaded model has the bits of the dequantized one; returns the layers' formats."""
    tokens = torch.randint(0, 32, (3, 7))
    with ptxgen.use_device("cpu"), ptxgen.torch.batch_invariant(), torch.no_grad():
        whole = made(tokens)
        assert torch.equal(whole, dense(made)(tokens))
        assert torch.equal(made(tokens[:1]), whole[:1])
    layers = (m for m in made.modules() if isinstance(m, ptxgen.torch.QuantizedLinear))
    return {layer.format for layer in layers}


def write(folder, scheme, change=lambda tensors: None, how=None):
    """Writes a checkpoint of :class:`Block`, whose layers but the head are quantized."""
    from safetensors.torch import save_file

    make, options, _ = SCHEMES[scheme]
    state = {name: t.clone() for name, t in model(1).state_dict().items()}
    for name, (n, k) in {"up": (INNER, HIDDEN), "down": (HIDDEN, INNER)}.items():
        del state[f"{name}.weight"]
        state |= {f"{name}.{last}": tensor for last, tensor in make(n, k).items()}
    change(state)
    save_file(state, folder / "model.safetensors")
    config = {"quantization_config": {**options, **(how or {})}}
    (folder / "config.json").write_text(json.dumps(config))
    return folder


@pytest.mark.parametrize("scheme", [*SCHEMES])
def test_folders_of_safetensors_are_loaded(tmp_path, scheme):
    pytest.importorskip("safetensors")
    made = model()
    done = ptxgen.torch.convert(made, weights=write(tmp_path, scheme))
    assert (done.converted, done.missing, done.unused) == (["up", "down"], [], [])
    assert torch.equal(made.norm.weight, model(1).norm.weight)
    assert torch.equal(made.head.weight, model(1).head.weight)
    assert same_as_dense(made) == {SCHEMES[scheme][2]}


def test_tensors_that_do_not_match_are_named(tmp_path):
    pytest.importorskip("safetensors")

    def change(state):
        state["other.weight"] = state.pop("head.weight")

    made = model()
    done = ptxgen.torch.convert(made, weights=write(tmp_path, "awq", change), skip=["up"])
    assert done.converted == ["down"] and done.skipped == {"up": "skip says so"}
    assert done.missing == ["head.weight", "up.weight"]
    assert done.unused == ["other.weight", "up.qweight", "up.qzeros", "up.scales"]
    assert "  not used of the checkpoint: other.weight" in str(done).splitlines()


@pytest.mark.parametrize("scheme", ["fp8", "floats", "naive"])
def test_codes_are_no_weights_without_their_scales(tmp_path, scheme):
    """A layer that is left out keeps its weight: its codes are not copied as numbers."""
    pytest.importorskip("safetensors")
    made = model()
    done = ptxgen.torch.convert(made, weights=write(tmp_path, scheme), skip=["up"])
    assert done.converted == ["down"] and done.missing == ["up.weight"]
    assert torch.equal(made.up.weight, model().up.weight) and "up.weight" in done.unused
    assert torch.equal(made.up.bias, model(1).up.bias)


def test_checkpoints_that_do_not_fit_are_refused(tmp_path):
    """By name, before the model is changed."""
    pytest.importorskip("safetensors")
    act = {"group_0": {**GROUPS["group_0"], "input_activations": {"num_bits": 8}}}
    mixed = {**GROUPS, "group_1": {"weights": {"num_bits": 8}}}
    cases = (
        ("gptq", lambda s: s.pop("up.scales"), {}, "up: there is no scales beside qweight"),
        (
            "gptq",
            lambda s: s.pop("up.g_idx"),
            {"desc_act": True},
            "desc_act is set, but there is n",
        ),
        (
            "awq",
            lambda s: s.update({"up.scales": s["up.scales"][1:].clone()}),
            {},
            "qzeros has shape",
        ),
        (
            "awq",
            lambda s: s.update({"norm.weight": torch.ones(3)}),
            {},
            r"norm.weight .* shape .3.",
        ),
        ("awq", lambda s: None, {"version": "gemv"}, "version .* is 'gemv'; awq takes 'gemm'"),
        ("gptq", lambda s: None, {"bits": 5}, "bits of quantization_config is 5; gptq takes 2, 3"),
        ("gptq", lambda s: None, {"quant_method": "hqq"}, "quant_method .* is 'hqq'; takes 'awq'"),
        ("packed", lambda s: None, {"format": "int-quantized"}, "format .* is 'int-quantized'"),
        (
            "packed",
            lambda s: None,
            {"config_groups": act},
            "input_activations .* is {'num_bits': 8}, but products of FP8 by FP8 are not there",
        ),
        (
            "packed",
            lambda s: None,
            {"transform_config": {"config_groups": {"R1": {}}}},
            "transform_config of quantization_config is {.*R1.*; compressed-tensors takes None",
        ),
        ("packed", lambda s: None, {"config_groups": FLOATS}, "type .* is 'float'; .* takes 'int'"),
        ("nvfp4", lambda s: None, {"config_groups": GROUPS}, "type .* is 'int'; .* takes 'float'"),
        (
            "nvfp4",
            lambda s: s.pop("up.weight_global_scale"),
            {},
            "up: there is no weight_global_scale beside weight_packed",
        ),
        (
            "nvfp4",
            lambda s: s.update({"up.weight_scale": s["up.weight_scale"].float()}),
            {},
            "up: weight_scale has dtype float32; takes float8_e4m3fn",
        ),
        (
            "floats",
            lambda s: None,
            {"config_groups": {"g": {**FLOATS["group_0"], "format": "int-quantized"}}},
            "format .* is 'int-quantized'; compressed-tensors takes 'float-quantized'",
        ),
        ("packed", lambda s: None, {"config_groups": mixed}, r"num_bits .* are \[4, 8\]"),
        ("packed", lambda s: None, {"config_groups": None}, "quantization_config cannot be read"),
    )
    for i, (scheme, change, how, message) in enumerate(cases):
        folder = tmp_path / str(i)
        folder.mkdir()
        made, before = model(), model().state_dict()
        with pytest.raises(CheckpointError, match=message):
            ptxgen.torch.convert(made, weights=write(folder, scheme, change, how))
        assert all(torch.equal(made.state_dict()[name], t) for name, t in before.items())
    for path, message in (
        (tmp_path, "has no config.json with a quantization_config"),
        (tmp_path / "none.gguf", "takes a .gguf file or a folder"),
    ):
        with pytest.raises(CheckpointError, match=message):
            ptxgen.torch.convert(model(), weights=path)
    with torch.device("meta"):
        empty = Block()
    with pytest.raises(CheckpointError, match="on the device 'meta'"):
        ptxgen.torch.convert(empty, weights=write(tmp_path, "awq"))
    with pytest.raises(OptionError, match="format is 'nf4'; with weights= convert takes None"):
        ptxgen.torch.convert(model(), weights=tmp_path, format="nf4")
    file = write(tmp_path, "awq") / "model.safetensors"
    file.write_bytes(file.read_bytes()[:1000])
    with pytest.raises(CheckpointError, match=r"model.safetensors cannot be read"):
        ptxgen.torch.convert(model(), weights=tmp_path)


def gguf_file(path, tensors, architecture="none", fields=()):
    """Writes a GGUF file; ``tensors``: arrays by name, of floats or (bytes, type)."""
    import gguf

    writer = gguf.GGUFWriter(path, architecture)
    for key, value in fields:
        writer.add_uint32(f"{architecture}.{key}", value)
    for name, tensor in tensors.items():
        if isinstance(tensor, tuple):
            data, kind = tensor
            writer.add_tensor(name, data, raw_dtype=gguf.GGMLQuantizationType[kind])
        else:
            writer.add_tensor(name, tensor.numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def coded(w, kind):
    import gguf

    kind = gguf.GGMLQuantizationType[kind]
    return gguf.quants.quantize(np.ascontiguousarray(w), kind)


def test_gguf_files_are_loaded(tmp_path):
    """Quantized layers of two types, a quantized embedding, floats."""
    pytest.importorskip("gguf")
    state = model(1).state_dict()
    tensors = dict(state)
    for name, kind in ("up", "Q4_0"), ("down", "Q8_0"), ("embed", "Q5_1"):
        tensors[f"{name}.weight"] = coded(state[f"{name}.weight"].numpy(), kind), kind
    file = gguf_file(tmp_path / "model.gguf", tensors)
    made = model()
    done = ptxgen.torch.convert(made, weights=file)
    assert (done.converted, done.missing, done.unused) == (["up", "down"], [], [])
    assert same_as_dense(made) == {"q4_0", "q8_0"}
    assert 0 < (made.embed.weight - state["embed.weight"]).abs().max() < 0.1
    file.write_bytes(file.read_bytes()[:5000])
    with pytest.raises(CheckpointError, match=r"model.gguf cannot be read"):
        ptxgen.torch.convert(model(), weights=file)
    other = gguf_file(tmp_path / "other.gguf", {"x": state["norm.weight"]}, "rwkv")
    with pytest.raises(CheckpointError, match=r"architecture is 'rwkv', .* takes 'llama', 'qwen2'"):
        ptxgen.torch.convert(model(), weights=other)
    types = {"up.weight": (np.zeros((INNER, HIDDEN // 256 * 54), np.uint8), "TQ1_0")}
    unknown = gguf_file(tmp_path / "tq.gguf", types)
    with pytest.raises(CheckpointError, match=r"up.weight \(up.weight\) has type TQ1_0; takes F32"):
        ptxgen.torch.convert(model(), weights=unknown)


def test_a_llama_of_transformers_is_loaded_from_gguf(tmp_path):
    """Names of the architecture, and the order of the rows of queries and keys."""
    gguf, transformers = (pytest.importorskip(name) for name in ("gguf", "transformers"))
    config = transformers.LlamaConfig(
        hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, vocab_size=64, tie_word_embeddings=True,
    )  # fmt: skip
    torch.manual_seed(3)
    known = transformers.LlamaForCausalLM(config)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, 2)
    tensors = {}
    for name, parameter in known.named_parameters():
        w = parameter.detach()
        kind = name.split(".")[-2][0] if "q_proj" in name or "k_proj" in name else ""
        if kind:  # as llama.cpp's converter has them
            heads = {"q": 4, "k": 2}[kind]
            w = w.reshape(heads, 2, -1, w.shape[1]).swapaxes(1, 2).reshape(w.shape)
        there = names.get_name(name, try_suffixes=(".weight",))
        if "proj" in name:
            parameter.data = torch.from_numpy(
                gguf.quants.dequantize(
                    coded(parameter.detach().numpy(), "Q8_0"), gguf.GGMLQuantizationType.Q8_0
                )
            )
            tensors[there] = coded(w.contiguous().numpy(), "Q8_0"), "Q8_0"
        else:
            tensors[there] = w
    fields = ("attention.head_count", 4), ("attention.head_count_kv", 2)
    file = gguf_file(tmp_path / "llama.gguf", tensors, "llama", fields)
    torch.manual_seed(4)
    made = transformers.LlamaForCausalLM(config)
    done = ptxgen.torch.convert(made, weights=file)
    assert len(done.converted) == 14 and not done.missing and not done.unused
    tokens = torch.randint(0, 64, (2, 9))
    with ptxgen.use_device("cpu"), ptxgen.torch.batch_invariant(), torch.no_grad():
        assert torch.equal(made(tokens).logits, known(tokens).logits)
