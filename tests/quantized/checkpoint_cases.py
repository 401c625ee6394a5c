"""Checkpoints of small models of `transformers` with random weights, as other libraries write them.

Functions write a folder for ``from_pretrained``.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from ptxgen import quantized

SIZES = {
    "vocab_size": 32,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "tie_word_embeddings": False,
}
EXPERTS = {"num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 8}


def model(torch: Any, name: str = "Llama", seed: int = 0, dtype: Any = None) -> Any:
    """A model, whose linear layers have K = 64 and 128."""
    import transformers

    config = getattr(transformers, f"{name}Config")(
        **SIZES, **(EXPERTS if name == "GptOss" else {})
    )
    torch.manual_seed(seed)
    head = transformers.AutoModelForCausalLM
    return head.from_config(config, dtype=dtype or torch.float32).requires_grad_(False)


def loaded(folder: Any, **how: Any) -> Any:
    """The model of a folder, as `transformers` loads it."""
    import transformers

    return transformers.AutoModelForCausalLM.from_pretrained(folder, **how).requires_grad_(False)


def compressed(
    torch: Any, folder: Any, weights: dict[str, Any], activations: Any = None, dtype: Any = None
) -> Any:
    """Writes a Llama by compressed-tensors itself. ``weights``, ``activations``: arguments of its
    QuantizationArgs.
    """
    from compressed_tensors.compressors import ModelCompressor
    from compressed_tensors.quantization import (
        QuantizationArgs,
        QuantizationConfig,
        QuantizationScheme,
        apply_quantization_config,
    )

    made = model(torch, dtype=dtype)
    how, beside = (None if a is None else QuantizationArgs(**a) for a in (weights, activations))
    scheme = QuantizationScheme(targets=["Linear"], weights=how, input_activations=beside)
    groups = {"group_0": scheme}
    config = QuantizationConfig(config_groups=groups, ignore=["lm_head"])
    apply_quantization_config(made, config)
    most = {("int", 4): 7, ("int", 8): 127, ("float", 4): 6, ("float", 8): 448}[
        how.type, how.num_bits
    ]
    for layer in made.modules():
        if not hasattr(layer, "quantization_scheme"):
            continue
        size = layer.weight.data.float().abs()
        if how.group_size:
            size = size.reshape(len(size), -1, how.group_size).amax(-1)
        else:
            size = size.amax(-1, keepdim=True) if how.strategy == "channel" else size.amax()[None]
        scale = size / most
        if hasattr(layer, "weight_global_scale"):
            total = 448 / scale.max()
            layer.weight_global_scale.data.fill_(total)
            scale = (scale * total).to(torch.float8_e4m3fn)
        layer.weight_scale.data.copy_(scale)
    writer = ModelCompressor.from_pretrained_model(made)
    writer.compress_model(made)
    made.save_pretrained(folder)
    writer.update_config(folder)
    return folder


def words(torch: Any, codes: Any, bits: int) -> Any:
    """Rows of codes as a stream of bits in int32 words."""
    fields = (codes.numpy()[..., None] >> np.arange(bits) & 1).astype(np.uint8)
    stream = np.packbits(fields.reshape(len(codes), -1), axis=1, bitorder="little")
    return torch.from_numpy(stream.view(np.int32))


AWQ = [0, 2, 4, 6, 1, 3, 5, 7]
"""Columns of eight in the order of AWQ's words."""


def grouped(torch: Any, folder: Any, method: str, backend: str) -> Any:
    """Writes a Llama of random codes of 4 bits, by AWQ or GPTQ, for a backend of gptqmodel."""
    from safetensors.torch import save_file

    made = model(torch, seed=1, dtype=torch.float16)
    made.save_pretrained(folder)
    tensors = {name: t.clone() for name, t in made.state_dict().items()}
    for name in [n.removesuffix(".weight") for n in tensors if n.endswith("proj.weight")]:
        n, k = tensors.pop(f"{name}.weight").shape
        scales = torch.rand(k // 64, n).half() / 64
        codes, zeros = torch.randint(0, 16, (k, n)), torch.randint(0, 15, (k // 64, n))
        if method == "awq":
            codes, zeros = (t.reshape(len(t), -1, 8)[..., AWQ].flatten(1) for t in (codes, zeros))
            stored = words(torch, codes, 4)
        else:
            stored = words(torch, codes.T.contiguous(), 4).T.contiguous()
            tensors[f"{name}.g_idx"] = torch.arange(k, dtype=torch.int32) // 64
        own = {"qweight": stored, "qzeros": words(torch, zeros, 4), "scales": scales}
        tensors |= {f"{name}.{last}": tensor for last, tensor in own.items()}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    how = {"quant_method": method, "bits": 4, "group_size": 64, "backend": backend}
    configure(folder, {**how, "zero_point": True, "version": "gemm"} if method == "awq" else how)
    return folder


def mxfp4(torch: Any, folder: Any, change: Any = lambda tensors: None) -> Any:
    """Writes a gpt-oss with experts in MXFP4, as OpenAI's checkpoints have them."""
    from safetensors.torch import save_file

    made = model(torch, "GptOss", seed=1)
    made.save_pretrained(folder)
    tensors = {name: t.clone() for name, t in made.state_dict().items()}
    for name in [n for n in tensors if n.endswith("proj_bias")]:  # else zeros
        tensors[name] = torch.randn_like(tensors[name])
    for name in [n for n in tensors if n.endswith(("gate_up_proj", "down_proj"))]:
        w = tensors.pop(name).mT.contiguous()
        q = quantized.quantize(w.flatten(0, 1), "mxfp4")
        blocks = *w.shape[:2], w.shape[2] // 32
        tensors[f"{name}_blocks"] = q.data.reshape(*blocks, 16)
        tensors[f"{name}_scales"] = q.scales.reshape(blocks)
    change(tensors)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    configure(folder, {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]})
    return folder


def experts(folder: Any) -> dict[str, list[Any]]:
    """Blocks and scales of the experts of :func:`mxfp4`, by the parameters that they stand for."""
    from safetensors.torch import load_file

    tensors = load_file(folder / "model.safetensors")
    names = [name.removesuffix("_blocks") for name in tensors if name.endswith("_blocks")]
    return {name: [tensors[f"{name}_{last}"] for last in ("blocks", "scales")] for name in names}


def configure(folder: Any, how: dict[str, Any]) -> None:
    """Sets the ``quantization_config`` of a folder."""
    file = folder / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "quantization_config": how}))
