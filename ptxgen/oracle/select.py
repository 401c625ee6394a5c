"""Oracles of selections from rows: contracts ``topk/1`` and ``sample/2``."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ptxgen.numerics import logsumexp, select
from ptxgen.numerics.dtype import ELEMENTS
from ptxgen.oracle.f32 import add
from ptxgen.oracle.formula import stored, widened
from ptxgen.oracle.logsumexp import exp
from ptxgen.oracle.row_reductions import compute
from ptxgen.oracle.sort import argsort

Array = NDArray[Any]


def topk(x: ArrayLike, k: int, *, largest: bool = True) -> tuple[Array, Array]:
    """Returns the k largest (or smallest) elements of each row and their indices, with the bits of
    :func:`ptxgen.topk`.
    """
    indices = argsort(x, descending=largest)[..., :k]
    return np.take_along_axis(np.asarray(x), indices, axis=-1), indices


def route_tokens(
    logits: ArrayLike,
    k: int,
    *,
    normalize: bool = False,
    scale: float = 1.0,
    narrow: bool = False,
    index: str = "int64",
) -> tuple[Array, Array]:
    """Returns the k largest elements of the softmax of each row, and their indices. ``normalize``:
    divides them by their sum plus :data:`ptxgen.numerics.select.NORMAL_MIN`; then ``scale``
    multiplies them. ``narrow``: rounds them to the dtype of ``logits``.
    """
    dtype = ELEMENTS[np.asarray(logits).dtype.name]
    weights, indices = topk(compute("softmax", logits, out_dtype="float32"), k)
    with np.errstate(all="ignore"):
        if normalize:
            total = add(compute("sum", weights), np.float32(select.NORMAL_MIN))
            weights = weights / total[..., None]
        weights = weights * np.float32(scale)
    return stored(weights, dtype if narrow else "f32"), indices.astype(index)


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
    temperature: Any = 0.0,
    top_k: Any = 0,
    top_p: Any = 1.0,
    min_p: Any = 0.0,
    seed: Any = 0,
    offset: Any = 0,
) -> Array:
    """Samples an index from each row of logits, with the arguments and bits of
    :func:`ptxgen.sample`.
    """
    array = np.asarray(logits)
    lead = array.shape[:-1]
    wide = widened(array, ELEMENTS[array.dtype.name]).reshape(-1, array.shape[-1])
    if isinstance(offset, int):
        offset = offset + np.arange(prod(lead), dtype=np.int64).reshape(lead)
    given = (temperature, top_k, top_p, min_p, seed, offset)
    each = (np.broadcast_to(np.asarray(v), lead).reshape(-1) for v in given)
    found = [
        _draw(row, np.float32(t), int(k), np.float32(p), np.float32(m), philox(int(s), int(o)))
        for row, t, k, p, m, s, o in zip(wide, *each, strict=True)
    ]
    return np.asarray(found, np.int64).reshape(lead)


def _draw(x: Array, t: np.float32, k: int, p: np.float32, m: np.float32, random: int) -> int:
    """Draws from a row ``x`` with temperature ``t``, top_k ``k``, top_p ``p`` and min_p ``m``."""
    numbers = np.where(np.isnan(x), -np.inf, x).astype(np.float64) + 0.0
    # Descending, a NaN behind -inf, equal ones by index.
    order = np.lexsort((np.isnan(x), -numbers))
    first = order[0]
    if not t >= np.float32(select.TEMPERATURE_MIN):
        return int(first)
    with np.errstate(all="ignore"):
        z = np.asarray(x / min(t, np.float32(select.TEMPERATURE_MAX)), np.float32)
        largest = z[first]
        if np.isfinite(largest):
            y = add(np.where(np.isnan(z), np.float32(-np.inf), z), -largest)
            y = np.where(y < logsumexp.LOWEST, np.float32(logsumexp.LOWEST), y)
            ratio = exp(np.where(y > 0, np.float32(0), y))
            likely = ~np.isnan(x) & ~(ratio < min(m, np.float32(1)))
            scaled = ratio * np.float32(2.0**select.WEIGHT_BITS)
            weights = np.where(likely, scaled, np.float32(0)).astype(np.uint64)
        else:
            weights = (numbers == numbers[first]) & (np.isnan(x) == np.isnan(x[first]))
            weights = weights.astype(np.uint64)
    kept = order[:k] if k > 0 else order
    nucleus = 2**32 if not p < 1 else int(max(float(p), 0.0) * 2**32)
    masses = np.cumsum(weights[kept])  # less than 2**64: exact
    if nucleus < 2**32:
        want = max(nucleus * int(masses[-1]) >> 32, 1)
        kept = kept[: np.searchsorted(masses, want) + 1]
    kept = np.sort(kept)
    masses = np.cumsum(weights[kept])
    r = random * int(masses[-1]) >> 64
    return int(kept[np.searchsorted(masses, r, side="right")])
