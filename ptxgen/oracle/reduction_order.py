"""Oracle of reductions over rows: contract ``rows/1``, step by step."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxgen.numerics.formula import Node
from ptxgen.numerics.reduction_order import BRANCH, GROUP, LANES, LEAF
from ptxgen.oracle.formula import extreme

Array = NDArray[Any]


def reduce(how: str, x: Array, node: Node | None = None) -> Array:
    """Reduces rows by ``how``, "sum", "prod", "max" or "min": [..., N] to [..., 1]."""
    with np.errstate(all="ignore"):
        if how in ("max", "min"):
            return _extreme(how, x)
        return _ordered(how, x)


def _ordered(how: str, x: Array) -> Array:
    operate = np.add if how == "sum" else np.multiply
    start = x.dtype.type(0 if how == "sum" else 1)
    lead, n = x.shape[:-1], x.shape[-1]
    total = np.full(lead, start)
    for first in range(0, n, BRANCH * LEAF):
        branch = np.full(lead, start)
        for begin in range(first, min(first + BRANCH * LEAF, n), LEAF):
            branch = operate(branch, _leaf(operate, start, x[..., begin : begin + LEAF]))
        total = operate(total, branch)
    return np.asarray(total)[..., None]


def _leaf(operate: Any, start: Any, x: Array) -> Array:
    padded = np.full((*x.shape[:-1], LEAF), start)  # the padding changes no sum
    padded[..., : x.shape[-1]] = x
    parts = padded.reshape(*x.shape[:-1], LEAF // (LANES * GROUP), LANES, GROUP)
    lanes = np.full((*x.shape[:-1], LANES), start)
    for piece in range(parts.shape[-3]):
        for q in range(GROUP):
            lanes = operate(lanes, parts[..., piece, :, q])
    while lanes.shape[-1] > 1:
        lanes = operate(lanes[..., 0::2], lanes[..., 1::2])
    return np.asarray(lanes[..., 0])


def _extreme(how: str, x: Array) -> Array:
    if x.shape[-1] == 0:
        limit: Any
        if x.dtype.kind == "f":
            limit = np.inf
            limit = -limit if how == "max" else limit
        else:
            limits = np.iinfo(x.dtype)
            limit = limits.min if how == "max" else limits.max
        return np.full((*x.shape[:-1], 1), limit, x.dtype)
    found = x
    while found.shape[-1] > 1:
        half = found.shape[-1] // 2
        rest = found[..., 2 * half :]
        joined = extreme(how, found[..., :half], found[..., half : 2 * half])
        found = np.concatenate([joined, rest], axis=-1)
    return np.asarray(found)
