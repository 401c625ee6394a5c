"""Tensors of quantized layers [N, K], drawn at random, as checkpoints of each scheme have them."""

from __future__ import annotations

import numpy as np
import torch


def words(codes, bits):
    """Rows of codes as a stream of bits in int32 words."""
    fields = (codes.numpy()[..., None] >> np.arange(bits) & 1).astype(np.uint8)
    stream = np.packbits(fields.reshape(len(codes), -1), axis=1, bitorder="little")
    return torch.from_numpy(stream.view(np.int32))


AWQ = [0, 2, 4, 6, 1, 3, 5, 7]


def awq(n, k):
    codes, zeros = torch.randint(0, 16, (k, n)), torch.randint(0, 16, (k // 64, n))
    stored = [
        words(t.reshape(len(t), -1, 8)[..., AWQ].reshape(len(t), -1), 4) for t in (codes, zeros)
    ]
    return {"qweight": stored[0], "qzeros": stored[1], "scales": torch.rand(k // 64, n).half() / 64}


def gptq(n, k, ordered=False):
    codes, zeros = torch.randint(0, 16, (n, k)), torch.randint(0, 16, (k // 64, n))
    found = {"qweight": words(codes, 4).T.contiguous(), "qzeros": words(zeros, 4)}
    index = torch.arange(k, dtype=torch.int32) // 64
    found["g_idx"] = index[torch.randperm(k)] if ordered else index
    return {**found, "scales": torch.rand(k // 64, n).half() / 64}


def compressed(n, k, bits=4):
    codes = torch.randint(0, 1 << bits, (n, k))
    scale = torch.rand(n, k // 128).bfloat16() / 64
    shape = torch.tensor([n, k])
    return {"weight_packed": words(codes, bits), "weight_scale": scale, "weight_shape": shape}


def float8(n, k):
    weight = torch.randn(n, k).to(torch.float8_e4m3fn)
    return {"weight": weight, "weight_scale_inv": torch.rand(-(-n // 128), -(-k // 128)) / 16}


def nvfp4(n, k):
    return {
        "weight_packed": torch.randint(0, 256, (n, k // 2), dtype=torch.uint8),
        "weight_scale": (torch.rand(n, k // 16) * 400).to(torch.float8_e4m3fn),
        "weight_global_scale": torch.full((1,), 6543.21),
    }


def float_rows(n, k):
    return {
        "weight": torch.randn(n, k).to(torch.float8_e4m3fn),
        "weight_scale": torch.rand(n, 1) / 16,
    }


GROUPS = {"group_0": {"weights": {"num_bits": 4, "type": "int"}, "input_activations": None}}
EIGHTS = {"group_0": {"weights": {"num_bits": 8, "type": "int"}, "input_activations": None}}
FLOATS = {"group_0": {"weights": {"num_bits": 8, "type": "float"}, "input_activations": None}}
FOURS = {"group_0": {"weights": {"num_bits": 4, "type": "float"}, "input_activations": None}}
SCHEMES = {
    "awq": (
        awq,
        {"quant_method": "awq", "bits": 4, "version": "gemm", "group_size": 64},
        "int4_zero_point_g64",
    ),
    "gptq": (gptq, {"quant_method": "gptq", "bits": 4, "group_size": 64}, "int4_zero_point_g64"),
    "act_order": (
        lambda n, k: gptq(n, k, True),
        {"quant_method": "gptq", "bits": 4, "group_size": 64, "desc_act": True},
        "int4_zero_point_ordered_g64",
    ),
    "packed": (
        compressed,
        {"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": GROUPS},
        "int4_block_g128_bf16",
    ),
    "packed8": (
        lambda n, k: compressed(n, k, 8),
        {"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": EIGHTS},
        "int8_block_g128_bf16",
    ),
    "floats": (
        float_rows,
        {
            "quant_method": "compressed-tensors",
            "format": "float-quantized",
            "config_groups": FLOATS,
        },
        "fp8_e4m3",
    ),
    "naive": (
        float_rows,
        {
            "quant_method": "compressed-tensors",
            "format": "naive-quantized",
            "config_groups": FLOATS,
        },
        "fp8_e4m3",
    ),
    "nvfp4": (
        nvfp4,
        {
            "quant_method": "compressed-tensors",
            "format": "nvfp4-pack-quantized",
            "config_groups": FOURS,
        },
        "fp4_e2m1",
    ),
    "fp8": (float8, {"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8_e4m3"),
}
"""Schemes by name: the function that draws tensors for (n, k), the checkpoint's options, and the
format of the weight.
"""
