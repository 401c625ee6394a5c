"""Oracles of sorting, binary search, counting and unique values: contract ``sort/1``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ptxgen.oracle.gather_scatter import scatter_add

Array = NDArray[Any]


def _wide(x: ArrayLike) -> Array:
    """Returns ``x`` in a dtype that NumPy orders: 16-bit floats are converted to float32."""
    array = np.asarray(x)
    return array.astype(np.float32) if array.dtype.name in ("bfloat16", "float16") else array


def argsort(x: ArrayLike, axis: int = -1, *, descending: bool = False) -> Array:
    """Returns the indices that sort ``x`` along ``axis``, as :func:`ptxgen.argsort`."""
    wide = _wide(x)
    if not descending:
        return np.argsort(wide, axis, kind="stable").astype(np.int64)
    # In a reversed row a stable sort puts the last of equal elements first.
    found = np.argsort(np.flip(wide, axis), axis, kind="stable")
    return np.asarray(wide.shape[axis] - 1 - np.flip(found, axis), np.int64)


def sort(x: ArrayLike, axis: int = -1, *, descending: bool = False) -> tuple[Array, Array]:
    """Sorts ``x`` along ``axis``; returns the values and indices of :func:`ptxgen.sort`."""
    indices = argsort(x, axis, descending=descending)
    return np.take_along_axis(np.asarray(x), indices, axis), indices


def sort_below(x: ArrayLike, bound: int) -> tuple[Array, Array]:
    """Sorts a vector of integers below ``bound``, as :func:`sort` does."""
    return sort(x)


def searchsorted(x: ArrayLike, values: ArrayLike, *, right: bool = False) -> Array:
    """Returns the positions at which ``values`` keep the sorted rows of ``x`` in order, with the
    bits of :func:`ptxgen.searchsorted`.
    """
    rows, wanted = _wide(x), _wide(values)
    side: Any = "right" if right else "left"
    if rows.ndim == 1:
        return np.asarray(np.searchsorted(rows, wanted, side), np.int64)
    found = np.empty(wanted.shape, np.int64)
    for at in np.ndindex(rows.shape[:-1]):
        found[at] = np.searchsorted(rows[at], wanted[at], side)
    return found


def bincount(x: ArrayLike, minlength: int, weights: ArrayLike | None = None) -> Array:
    """Counts the integers 0 to ``minlength - 1``, or adds their ``weights``, with the bits of
    :func:`ptxgen.bincount`.
    """
    array = np.asarray(x)
    if weights is not None:
        added = np.asarray(weights)
        zeros = np.zeros(minlength, added.dtype)
        return np.asarray(scatter_add(zeros, array.astype(np.int64), added, 0))
    there = array[(array >= 0) & (array < minlength)].astype(np.int64)
    return np.bincount(there, minlength=minlength).astype(np.int64)
