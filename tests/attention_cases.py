"""Calls of attention, for the CPU device, for GPUs and for the sanitizer."""

from __future__ import annotations

import ml_dtypes
import numpy as np

BF16 = ml_dtypes.bfloat16
DTYPES = (BF16, np.float16, np.float32)
HEADS = [(64, 64), (80, 80), (128, 128), (192, 128), (256, 256), (36, 20)]
"""Head dimensions of keys and of values."""
SHAPES = (2, 4, 5, 64), (2, 2, 200, 64), (2, 2, 200, 64)
"""Of queries, keys and values, for :data:`FEATURES`."""


def draw(seed, *shapes, dtype=BF16):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(s).astype(dtype) for s in shapes]


def ints(*values):
    return np.array(values, np.int32)


def mask_of(*shape, seed=5):
    return np.random.default_rng(seed).random(shape) < 0.5


def numbers(*shape, dtype=np.float32, seed=6):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


FEATURES = {
    "full": {},
    "causal": {"causal": True},
    "window": {"window": 20},
    "causal window": {"causal": True, "window": 33},
    "scale": {"scale": 0.7},
    "negative scale": {"scale": -0.3},
    "no scale": {"scale": 0.0},
    "mask": {"mask": mask_of(2, 1, 5, 200)},
    "mask of heads": {"mask": mask_of(4, 1, 200), "causal": True},
    "bias": {"bias": numbers(4, 5, 200, dtype=BF16)},
    "wide bias": {"bias": numbers(2, 1, 5, 200)},
    "softcap": {"softcap": 2.0, "causal": True},
    "slopes": {"slopes": numbers(4), "causal": True},
    "sinks": {"sinks": numbers(4), "lengths": ints(130, 0)},
    "lengths": {"lengths": ints(130, 7), "starts": ints(3, 100), "causal": True},
    "padding with holes": {
        **{"lengths": ints(130, 7), "starts": ints(3, 100), "mask": mask_of(2, 1, 1, 200)},
        **{"bias": numbers(5, 200)},
    },
    "queries": {"lengths": ints(130, 7), "query_lengths": ints(5, 2), "window": 20},
    "all": {
        **{"softcap": 3.0, "slopes": numbers(4), "sinks": numbers(4), "causal": True},
        **{"mask": mask_of(2, 4, 5, 200), "bias": numbers(5, 200), "lengths": ints(150, 200)},
    },
}
