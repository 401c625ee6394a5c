"""Batches of products, as they may lie in memory, and the kernels that take them."""

from __future__ import annotations

import numpy as np
from bits import NUMPY, operand
from interp_cases import representatives
from interp_launch import KERNELS
from numpy.lib.stride_tricks import as_strided

from ptxgen import reference
from ptxgen.tiles import SPECS


def numbers(*shape, dtype="f32", seed=0):
    return operand(np.random.default_rng([seed, *shape]), shape, dtype=dtype)


def heads(x):
    """[B, S, H * D] as the heads [B, H, S, D], here of 16."""
    return x.reshape(*x.shape[:2], -1, 16).transpose(0, 2, 1, 3)


def cases(dtype):
    """Name: a, b, out; the batch that kernels see, and the rows of its products."""

    def n(*shape, seed=0):
        return numbers(*shape, dtype=dtype, seed=seed)

    def empty(*shape):
        return np.zeros(shape, NUMPY[dtype])

    def turned(x):
        return x.swapaxes(-1, -2)

    def between(x):
        return x.transpose(1, 0, 2)

    one_a, one_b = np.broadcast_to(n(5, 16), (4, 5, 16)), np.broadcast_to(n(16, 8), (4, 16, 8))
    few, many, result = n(4, 5, 16), n(4, 16, 8), empty(4, 5, 8)
    windows = as_strided(n(128), (4, 5, 16), [16 * few.itemsize] * 2 + [few.itemsize])
    apart = as_strided(n(4 * 81), few.shape, np.array((81, 16, 1)) * few.itemsize)
    heads_of = [heads(n(2, rows, 48, seed=rows)) for rows in (5, 7)]
    four = (4, 1), 5
    return {
        "dense": (few, many, result, *four),
        "two dimensions": (n(2, 3, 5, 16), n(2, 3, 16, 8), empty(2, 3, 5, 8), (6, 1), 5),
        "one a": (one_a, many, result, *four),
        "one b": (few, one_b, result, (1, 1), 20),
        "one b, rows apart": (n(4, 5, 24)[..., :16], n(16, 8), result, (1, 1), 20),
        "one b, matrices apart": (n(4, 6, 16)[:, :5], n(16, 8), result, *four),
        "one b, results apart": (few, n(16, 8), empty(4, 6, 8)[:, :5], *four),
        "one b, one row": (n(4, 3, 16)[:, 1:2], n(16, 8), empty(4, 1, 8), (1, 1), 4),
        "one b for some": (n(2, 3, 5, 16), n(2, 1, 16, 8), empty(2, 3, 5, 8), (2, 1), 15),
        "one b for others": (n(2, 3, 5, 16), n(3, 16, 8), empty(2, 3, 5, 8), (3, 2), 5),
        "outer": (n(2, 1, 5, 16), n(3, 16, 8), empty(2, 3, 5, 8), (3, 2), 5),
        "heads": (heads_of[0], turned(heads_of[1]), empty(2, 3, 5, 7), (3, 2), 5),
        "result's heads": (n(2, 3, 5, 7), heads_of[1], heads(empty(2, 5, 48)), (3, 2), 5),
        "interleaved": (between(n(5, 4, 16)), between(n(16, 4, 8)), between(empty(5, 4, 8)), *four),
        "columns": (turned(n(4, 16, 5)), turned(n(4, 8, 16)), result, *four),
        "windows": (windows, many, result, *four),
        "off a vector": (n(4, 5, 17)[..., 1:], n(4, 17, 9)[:, 1:, 1:], empty(4, 5, 9)[..., 1:],
                         *four),
        "steps off a vector": (apart, many, as_strided(empty(4 * 41), (4, 5, 8),
                               np.array((41, 8, 1)) * few.itemsize, writeable=True), *four),
        "a vector each": (n(4, 1, 16), n(4, 16, 1), empty(4, 1, 1), (4, 1), 1),
        "sizes of one": (n(1, 4, 1, 5, 16), n(4, 1, 16, 8), empty(1, 4, 1, 5, 8), *four),
    }  # fmt: skip


BATCHED = [name for name in KERNELS if getattr(SPECS[name], "batched", False)]
WAYS = {
    *representatives(
        BATCHED, "family", "dtype", "split", "layout", "persistent", "swap_operands", "unit"
    ),
    *representatives(BATCHED, "family", "split", "cluster_n"),
}


def forced(name, of_a, of_b, m, n, k):
    """A batch for kernel ``name``: the operands as it takes them, its options, and the result."""
    spec = SPECS[name]
    turn_a, turn_b = (letter == "T" for letter in spec.layout)
    a = numbers(*of_a, *((k, m) if turn_a else (m, k)), dtype=spec.dtype)
    b = numbers(*of_b, *((n, k) if turn_b else (k, n)), dtype=spec.dtype)
    options = {"transpose_a": turn_a, "transpose_b": turn_b, "tier": spec.tier}
    return a, b, options, reference.matmul(a, b, **options)


def sizes(name):
    """M, N and K that cross the edges of kernel ``name``."""
    spec = SPECS[name]
    return spec.rows_from(spec.bm + 8), 16, (2 if spec.bk < 128 else 1) * spec.bk + 8
