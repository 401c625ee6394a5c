"""Oracles of grouped matrix products: the dense oracle on each group's rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ptxgen.numerics.grouped import GROUPED_LINEAR, GROUPED_WGRAD
from ptxgen.oracle.ops import linear, linear_wgrad

Array = NDArray[Any]


def spans(offsets: ArrayLike, rows: int) -> list[tuple[int, int]]:
    """Returns the half-open row range of each group.

    ``offsets``: the groups' end rows, which are clamped to [0, ``rows``] and to ascend.
    """
    ends = np.maximum.accumulate(np.clip(np.asarray(offsets, np.int64), 0, rows))
    return list(zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True)) if len(ends) else []


def grouped_linear(
    x: ArrayLike,
    w: ArrayLike,
    offsets: ArrayLike,
    bias: ArrayLike | None = None,
    *,
    layout: str,
    activation: str | None = None,
    out_dtype: Any = None,
    arch: str = "sm_90",
) -> Array:
    """``linear`` of each group's rows with the group's weight and bias, with the bits of
    :func:`ptxgen.grouped_linear`; zeros for rows without a group.
    """
    given = {"x": x, "w": w, "offsets": offsets, "bias": bias}
    arrays = {name: np.asarray(v) for name, v in given.items() if v is not None}
    shapes = {name: v.shape for name, v in arrays.items()}
    ((m, n),) = GROUPED_LINEAR.infer(shapes, layout).results
    how: dict[str, Any] = {
        "layout": layout,
        "activation": activation,
        "out_dtype": out_dtype,
        "arch": arch,
    }
    weights, rows, biases = arrays["w"], arrays["x"], arrays.get("bias")
    if m == 0 or not len(weights):
        out = rows.dtype if out_dtype is None else np.dtype(out_dtype)
        return np.zeros((m, n), out)
    found = []
    for g, (begin, end) in enumerate(spans(offsets, m)):
        one = None if biases is None else biases[g]
        found.append(linear(rows[begin:end], weights[g], one, **how))
    zeros = np.zeros((m - sum(map(len, found)), n), found[0].dtype)
    return np.concatenate([*found, zeros])


def grouped_linear_wgrad(
    x: ArrayLike,
    dy: ArrayLike,
    offsets: ArrayLike,
    *,
    layout: str,
    out_dtype: Any = None,
    arch: str = "sm_90",
) -> Array:
    """Weight gradient of each group's rows, ``linear_wgrad(chain=True)``, with the bits of
    :func:`ptxgen.grouped_linear_wgrad`.
    """
    one, other, ends = (np.asarray(v) for v in (x, dy, offsets))
    shapes = {"x": one.shape, "dy": other.shape, "offsets": ends.shape}
    (shape,) = GROUPED_WGRAD.infer(shapes, layout).results
    how: dict[str, Any] = {"layout": layout, "chain": True, "out_dtype": out_dtype, "arch": arch}
    found = [linear_wgrad(one[i:j], other[i:j], **how) for i, j in spans(ends, one.shape[0])]
    return np.stack(found) if found else np.zeros(shape, np.float32)
