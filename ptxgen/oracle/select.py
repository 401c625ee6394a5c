"""Oracles of selections from rows: contracts ``topk/1`` and ``sample/1``."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ptxgen.numerics import logsumexp, select
from ptxgen.numerics.dtype import ELEMENTS
from ptxgen.oracle.f32 import add
from ptxgen.oracle.formula import widened
from ptxgen.oracle.logsumexp import exp
from ptxgen.oracle.sort import argsort

Array = NDArray[Any]


def topk(x: ArrayLike, k: int, *, largest: bool = True) -> tuple[Array, Array]:
    """Returns the k largest (or smallest) elements of each row and their indices, with the bits of
    :func:`ptxgen.topk`.
    """
    indices = argsort(x, descending=largest)[..., :k]
    return np.take_along_axis(np.asarray(x), indices, axis=-1), indices


def philox(seed: int, offset: int) -> int:
    """The first 64 bits of Philox4x32-10 for the key ``seed`` and the counter (``offset``, 0)."""
    low = 0xFFFFFFFF
    c = [offset & low, offset >> 32 & low, 0, 0]
    k = [seed & low, seed >> 32 & low]
    for _ in range(select.PHILOX_ROUNDS):
        a, b = select.PHILOX_MULTIPLIERS[0] * c[0], select.PHILOX_MULTIPLIERS[1] * c[2]
        c = [b >> 32 ^ c[1] ^ k[0], b & low, a >> 32 ^ c[3] ^ k[1], a & low]
        k = [(key + weyl) & low for key, weyl in zip(k, select.PHILOX_WEYL, strict=True)]
    return c[1] << 32 | c[0]


def sample(
    logits: ArrayLike,
    *,
    temperature: float = 0.0,
    top_k: int = 0,
    top_p: float = 1.0,
    seed: Any = 0,
    offset: Any = 0,
) -> Array:
    """Samples an index from each row of logits, with the arguments and bits of
    :func:`ptxgen.sample`.
    """
    array = np.asarray(logits)
    wide = widened(array, ELEMENTS[array.dtype.name]).reshape(-1, array.shape[-1])
    count = prod(array.shape[:-1])
    seeds = np.broadcast_to(np.asarray(seed, np.int64), array.shape[:-1]).reshape(-1)
    start = np.asarray(offset, np.int64)
    offsets = start.reshape(-1) if start.ndim else start + np.arange(count)
    found = [
        _draw(row, temperature, top_k, top_p, philox(int(s), int(o)))
        for row, s, o in zip(wide, seeds, offsets, strict=True)
    ]
    return np.asarray(found, np.int64).reshape(array.shape[:-1])


def _draw(x: Array, temperature: float, top_k: int, top_p: float, random: int) -> int:
    numbers = np.where(np.isnan(x), -np.inf, x).astype(np.float64) + 0.0
    # Descending, a NaN behind -inf, equal ones by index.
    order = np.lexsort((np.isnan(x), -numbers))
    first = order[0]
    if temperature == 0.0:
        return int(first)
    with np.errstate(all="ignore"):
        z = np.asarray(x / np.float32(temperature), np.float32)
        largest = z[first]
        if np.isfinite(largest):
            y = add(np.where(np.isnan(z), np.float32(-np.inf), z), -largest)
            y = np.where(y < logsumexp.LOWEST, np.float32(logsumexp.LOWEST), y)
            scaled = exp(np.where(y > 0, np.float32(0), y)) * np.float32(2.0**select.WEIGHT_BITS)
            weights = np.where(np.isnan(x), np.float32(0), scaled).astype(np.uint64)
        else:
            weights = (numbers == numbers[first]) & (np.isnan(x) == np.isnan(x[first]))
            weights = weights.astype(np.uint64)
    kept = order[:top_k] if top_k else order
    nucleus = round(top_p * 2**32)
    masses = np.cumsum(weights[kept])  # less than 2**64: exact
    if nucleus < 2**32:
        want = max(nucleus * int(masses[-1]) >> 32, 1)
        kept = kept[: np.searchsorted(masses, want) + 1]
    kept = np.sort(kept)
    masses = np.cumsum(weights[kept])
    r = random * int(masses[-1]) >> 64
    return int(kept[np.searchsorted(masses, r, side="right")])
