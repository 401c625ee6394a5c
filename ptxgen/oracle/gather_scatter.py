"""Oracles of gather and scatter: contract ``scatter/1``, step by step."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ptxgen.errors import DtypeError
from ptxgen.numerics.dtype import ELEMENTS
from ptxgen.numerics.reduction_order import GROUP
from ptxgen.oracle.formula import stored, widened
from ptxgen.oracle.reduction_order import reduce

Array = NDArray[Any]


def gather(x: ArrayLike, indices: ArrayLike, axis: int = 0) -> Array:
    """Gathers slices ``indices`` of ``x`` along ``axis``; zeros for indices out of range."""
    array, which, axis = np.asarray(x), np.asarray(indices), operator.index(axis)
    there = (which >= 0) & (which < array.shape[axis])
    if not array.shape[axis]:
        shape = array.shape[:axis] + which.shape + array.shape[axis % array.ndim + 1 :]
        return np.zeros(shape, array.dtype)
    axis %= array.ndim
    taken = np.take(array, np.where(there, which, 0), axis=axis)
    mask = there.reshape((1,) * axis + which.shape + (1,) * (array.ndim - axis - 1))
    return np.asarray(np.where(mask, taken, np.zeros((), array.dtype)), array.dtype)


def embedding(weight: ArrayLike, indices: ArrayLike, *, padding_idx: int | None = None) -> Array:
    """Gathers rows ``indices`` of ``weight``, with the bits of :func:`ptxgen.embedding`."""
    return gather(weight, indices)


def embedding_bag(x: ArrayLike, indices: ArrayLike, weights: ArrayLike) -> Array:
    """Weighted sums [T, I] of rows ``indices`` [T, J] of ``x`` [V, I], in f32, products rounded
    once; ``weights`` [T, J].
    """
    source, scale = np.asarray(x), np.asarray(weights)
    dtype = ELEMENTS[source.dtype.name]
    rows = widened(gather(source, indices), dtype)
    wide = widened(scale, ELEMENTS[scale.dtype.name])
    with np.errstate(all="ignore"):
        products = rows * wide[..., None]
    count, each, inner = products.shape
    columns = np.ascontiguousarray(products.transpose(0, 2, 1)).reshape(count * inner, each)
    return stored(reduce("sum", columns)[:, 0].reshape(count, inner), dtype)


def embedding_backward(
    dy: ArrayLike, indices: ArrayLike, rows: int, *, padding_idx: int | None = None
) -> Array:
    """Gradient [rows, I] by an embedding's weight: sums of rows of ``dy`` with equal indices, with
    the bits of :func:`ptxgen.embedding_backward`. Index ``padding_idx`` gets zeros.
    """
    array = np.asarray(dy)
    which = np.asarray(indices).reshape(-1)
    skipped = None if padding_idx is None else padding_idx % rows
    return _sum_by_index(None, which, array.reshape(which.size, array.shape[-1]), rows, skipped)


def index_add(x: ArrayLike, indices: ArrayLike, source: ArrayLike) -> Array:
    """Returns ``x`` with each row ``source[i]`` added to row ``indices[i]``, with the bits of
    :func:`ptxgen.index_add`.
    """
    old = np.asarray(x)
    return _sum_by_index(old, np.asarray(indices), np.asarray(source), old.shape[0], None)


def scatter_add(x: ArrayLike, indices: ArrayLike, source: ArrayLike, axis: int = 0) -> Array:
    """Returns ``x`` with each element of ``source`` added at its own index along ``axis``, with the
    bits of :func:`ptxgen.scatter_add`.
    """
    old, which, given = np.asarray(x), np.asarray(indices), np.asarray(source)
    if not old.size:
        return old.copy()
    at: list[Array] = list(np.indices(which.shape, sparse=True))
    at[axis] = np.clip(which, 0, old.shape[axis] - 1)
    there = (which >= 0) & (which < old.shape[axis])
    flat_index = np.where(there, np.ravel_multi_index(tuple(at), old.shape), -1)
    found = _sum_by_index(
        old.reshape(-1, 1), flat_index.reshape(-1), given.reshape(-1, 1), old.size, None
    )
    return found.reshape(old.shape)


def _sum_by_index(
    old: Array | None, indices: Array, source: Array, rows: int, skipped: int | None
) -> Array:
    dtype = ELEMENTS.get(source.dtype.name)
    if dtype is None:
        raise DtypeError(f"got dtype {source.dtype.name}; takes {' or '.join(ELEMENTS)}")
    wide = widened(source, dtype)
    result = np.zeros((rows, source.shape[1]), wide.dtype)
    order = np.argsort(indices, kind="stable")
    present, first, counts = np.unique(indices[order], return_index=True, return_counts=True)
    in_range = (present >= 0) & (present < rows) & (present != (-1 if skipped is None else skipped))
    present, first, counts = present[in_range], first[in_range], counts[in_range]
    with np.errstate(all="ignore"):
        for q in range(GROUP):  # rows that fit in one lane: other lanes add zeros
            some = (counts > q) & (counts <= GROUP)
            result[present[some]] += wide[order[first[some] + q]]
    for index, start, count in zip(present, first, counts, strict=True):
        if count > GROUP:
            contributions = wide[order[start : start + count]]
            result[index] = reduce("sum", np.ascontiguousarray(contributions.T))[:, 0]
    if old is not None:
        with np.errstate(all="ignore"):
            result = widened(old, dtype) + result
    return stored(result, dtype)
