"""The oracles of sorting, counting and placing integers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[Any]


def sort_integers(x: ArrayLike) -> tuple[Array, Array]:
    """``x`` sorted, ascending and stable, and the index that each element had."""
    array = np.asarray(x)
    order = np.argsort(array, kind="stable")
    return array[order], order.astype(np.int64)


def count_integers(x: ArrayLike, bins: int, *, first: int = 0, up_to: bool = False) -> Array:
    """Counts of ``first``, ``first + 1`` ... in x; ``up_to``: of elements not above each."""
    array = np.asarray(x).astype(np.int64)
    if up_to:
        ends = (np.count_nonzero(array <= first + i) for i in range(bins))
        return np.fromiter(ends, np.int32, bins)
    there = array[(array >= first) & (array < first + bins)] - first
    return np.bincount(there, minlength=bins).astype(np.int32)


def put_rows(x: ArrayLike, indices: ArrayLike, source: ArrayLike) -> Array:
    """``x`` [B, V, I] with rows ``indices`` [K] replaced by those of ``source`` [B, K, I]; of equal
    indices the last counts.
    """
    found, rows = np.array(x), np.asarray(source)
    for k, index in enumerate(np.asarray(indices).tolist()):
        if 0 <= index < found.shape[1]:
            found[:, index] = rows[:, k]
    return found


def placed(indices: ArrayLike, source: ArrayLike | None = None) -> Array:
    """``y[indices[i]] = source[i]``, or i without a source, for a permutation ``indices``."""
    which = np.asarray(indices)
    found = np.empty(which.size, np.int64)
    found[which] = np.arange(which.size) if source is None else source
    return found
