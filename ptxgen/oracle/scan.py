"""The oracle of prefix sums: contract ``scan/1``, step by step."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ptxgen.errors import DtypeError
from ptxgen.numerics.dtype import ELEMENTS
from ptxgen.numerics.scan import CHUNK, GROUP, LANES
from ptxgen.oracle.formula import stored, widened

Array = NDArray[Any]


def cumsum(x: ArrayLike, *, exclusive: bool = False, reverse: bool = False) -> Array:
    """The sums of the elements up to each, along the last dimension, with the bits of
    :func:`ptxgen.cumsum`.
    """
    array = np.asarray(x)
    dtype = ELEMENTS.get(array.dtype.name)
    if dtype is None:
        raise DtypeError(f"x has dtype {array.dtype.name}; takes {' or '.join(ELEMENTS)}")
    if array.size == 0:
        return array.copy()
    wide = widened(array, dtype).reshape(-1, array.shape[-1])
    wide = wide[:, ::-1] if reverse else wide
    with np.errstate(all="ignore"):
        found = _rows(wide, exclusive)
    found = found[:, ::-1] if reverse else found
    return stored(np.ascontiguousarray(found), dtype).reshape(array.shape)


def _rows(x: Array, exclusive: bool) -> Array:
    count, n = x.shape
    chunks = -(-n // CHUNK)
    padded = np.zeros((count, chunks * CHUNK), x.dtype)
    padded[:, :n] = x
    p = padded.reshape(count, chunks, LANES, GROUP)
    for q in range(1, GROUP):
        p[..., q] = p[..., q - 1] + p[..., q]
    t = p[..., GROUP - 1].copy()
    reach = 1
    while reach < LANES:
        t[..., reach:] = t[..., :-reach] + t[..., reach:]
        reach *= 2
    e = np.zeros_like(t)
    e[..., 1:] = t[..., :-1]
    if exclusive:
        p = np.concatenate([np.zeros_like(p[..., :1]), p[..., :-1]], axis=-1)
    within = e[..., None] + p
    carry = np.zeros(count, x.dtype)
    for chunk in range(chunks):
        within[:, chunk] = carry[:, None, None] + within[:, chunk]
        carry = carry + t[:, chunk, LANES - 1]
    return np.asarray(within.reshape(count, -1)[:, :n])
