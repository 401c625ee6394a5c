"""Oracles of sorting and counting integers, and of writing rows or elements by index."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[Any]


def sort_integers(x: ArrayLike) -> tuple[Array, Array]:
    """Stable ascending sort; returns the sorted array and the original index of each element."""
    array = np.asarray(x)
    order = np.argsort(array, kind="stable")
    return array[order], order.astype(np.int64)


def count_integers(x: ArrayLike, bins: int, *, first: int = 0, up_to: bool = False) -> Array:
    """Histogram of ``bins`` bins, int32: bin i counts the elements equal to ``first + i``, with
    ``up_to`` those of at most ``first + i``.
    """
    array = np.asarray(x).astype(np.int64)
    if up_to:
        ends = (np.count_nonzero(array <= first + i) for i in range(bins))
        return np.fromiter(ends, np.int32, bins)
    there = array[(array >= first) & (array < first + bins)] - first
    return np.bincount(there, minlength=bins).astype(np.int32)


def sort_experts(experts: ArrayLike, count: int) -> tuple[Array, Array, Array]:
    """Sorts the slots [T, J] by expert, stably, those without an expert last: the token of each
    sorted slot, int32; the index of each slot in that order; the index behind each expert's last.
    """
    array = np.asarray(experts)
    own = np.where((array >= 0) & (array < count), array, count).reshape(-1)
    order = np.argsort(own, kind="stable")
    ends = np.bincount(own, minlength=count + 1)[:count].cumsum().astype(np.int32)
    tokens = (order // max(array.shape[1], 1)).astype(np.int32)
    return tokens, placed(order).reshape(array.shape), ends


def put_rows(x: ArrayLike, indices: ArrayLike, source: ArrayLike) -> Array:
    """Returns ``x`` [B, V, I] with rows ``indices`` [K] replaced by those of ``source`` [B, K, I].

    The last of equal indices wins; indices out of range are ignored.
    """
    found, rows = np.array(x), np.asarray(source)
    for k, index in enumerate(np.asarray(indices).tolist()):
        if 0 <= index < found.shape[1]:
            found[:, index] = rows[:, k]
    return found


def placed(indices: ArrayLike, source: ArrayLike | None = None) -> Array:
    """Returns y with ``y[indices[i]] = source[i]`` for a permutation ``indices``; without a source,
    the inverse permutation.
    """
    which = np.asarray(indices)
    found = np.empty(which.size, np.int64)
    found[which] = np.arange(which.size) if source is None else source
    return found
