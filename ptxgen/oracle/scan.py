"""Oracles of prefix sums: contracts ``scan/1`` and ``logscan/1``, step by step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ptxgen.errors import DtypeError
from ptxgen.numerics.dtype import ELEMENTS, FULL, NAMES
from ptxgen.numerics.row_reductions import REAL
from ptxgen.numerics.scan import CHUNK, GROUP, LANES, joined, value
from ptxgen.oracle.formula import call, extreme, stored, widened

Array = NDArray[Any]


def cumsum(x: ArrayLike, *, exclusive: bool = False, reverse: bool = False) -> Array:
    """Prefix sums along the last dimension, with arguments and bits of :func:`ptxgen.cumsum`."""

    def scanned(wide: Array) -> Array:
        def last(carry: Array, e: Array, p: Array) -> Array:
            return np.add(carry, np.add(e, p))

        none = np.zeros(1, wide.dtype)
        return np.asarray(_rows(wide[None], none, np.add, last, exclusive)[0])

    return _scanned(x, tuple(ELEMENTS), reverse, scanned)


def logcumsumexp(x: ArrayLike, *, exclusive: bool = False, reverse: bool = False) -> Array:
    """``log(cumsum(exp(x)))`` along the last dimension, with the arguments and bits of
    :func:`ptxgen.logcumsumexp`.
    """

    def plus(a: Array, b: Array) -> Array:
        return np.stack([extreme("max", a[0], b[0]), call(joined, a[0], a[1], b[0], b[1])])

    def last(carry: Array, e: Array, p: Array) -> Array:
        return plus(plus(carry, e), p)

    def scanned(wide: Array) -> Array:
        none = np.array([-np.inf, 0], wide.dtype)
        found = _rows(np.stack([wide, np.ones_like(wide)]), none, plus, last, exclusive)
        return call(value, *found)

    return _scanned(x, tuple(FULL[d] for d in REAL), reverse, scanned)


def _scanned(
    x: ArrayLike, dtypes: tuple[str, ...], reverse: bool, scanned: Callable[[Array], Array]
) -> Array:
    """Applies ``scanned`` to the rows of ``x``, as [M, N] in the compute type; returns the result
    in the shape and dtype of x.

    ``dtypes``: full names of the dtypes that x may have (DtypeError for others); ``reverse``:
    whether rows are scanned from their ends.
    """
    array = np.asarray(x)
    if array.dtype.name not in dtypes:
        raise DtypeError(f"x has dtype {array.dtype.name}; takes {' or '.join(dtypes)}")
    if array.size == 0:
        return array.copy()
    dtype = NAMES[array.dtype.name]
    wide = widened(array, dtype).reshape(-1, array.shape[-1])
    wide = wide[:, ::-1] if reverse else wide
    with np.errstate(all="ignore"):
        found = scanned(wide)
    found = found[:, ::-1] if reverse else found
    return stored(np.ascontiguousarray(found), dtype).reshape(array.shape)


def _rows(
    x: Array,
    none: Array,
    plus: Callable[[Array, Array], Array],
    last: Callable[[Array, Array, Array], Array],
    exclusive: bool,
) -> Array:
    """Prefix sums of M rows of N elements in the order of contract ``scan``; an element has one or
    more components: ``x`` is [components, M, N].

    ``plus``: adds two elements; ``none``: its neutral element; ``last``: adds the sums before a
    chunk, before a lane in the chunk, and within the lane; ``exclusive``: whether a sum leaves out
    its own element.
    """
    numbers, count, n = x.shape
    chunks = -(-n // CHUNK)
    padded = np.empty((numbers, count, chunks * CHUNK), x.dtype)
    padded[...] = none[:, None, None]
    padded[..., :n] = x
    p = padded.reshape(numbers, count, chunks, LANES, GROUP)
    for q in range(1, GROUP):
        p[..., q] = plus(p[..., q - 1], p[..., q])
    t = p[..., GROUP - 1].copy()
    reach = 1
    while reach < LANES:
        t[..., reach:] = plus(t[..., :-reach], t[..., reach:])
        reach *= 2
    e = np.empty_like(t)
    e[..., 0] = none[:, None, None]
    e[..., 1:] = t[..., :-1]
    if exclusive:
        first = np.broadcast_to(none[:, None, None, None, None], (*p.shape[:-1], 1))
        p = np.concatenate([first, p[..., :-1]], axis=-1)
    found = np.empty_like(p)
    carry = np.broadcast_to(none[:, None], (numbers, count))
    for chunk in range(chunks):
        parts = carry[..., None, None], e[:, :, chunk, :, None], p[:, :, chunk]
        found[:, :, chunk] = last(*parts)
        carry = plus(carry, t[:, :, chunk, LANES - 1])
    return found.reshape(numbers, count, -1)[..., :n]
