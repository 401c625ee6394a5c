"""Oracle of triangular systems of linear equations: contract ``solve/1``, a row at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ptxgen.errors import DtypeError
from ptxgen.oracle import f32, f64

Array = NDArray[Any]


def solve_triangular(
    a: ArrayLike, b: ArrayLike, *, upper: bool = False, unitriangular: bool = False
) -> Array:
    """Solves ``a · x = b`` for x, with arguments and bits of :func:`ptxgen.solve_triangular`."""
    matrix, given = np.asarray(a), np.asarray(b)
    fma = {"float32": f32.fma, "float64": f64.fma}.get(given.dtype.name)
    if fma is None or matrix.dtype != given.dtype:
        raise DtypeError(f"a and b have dtypes {matrix.dtype}, {given.dtype}; takes two alike")
    outer = np.broadcast_shapes(matrix.shape[:-2], given.shape[:-2])
    x = np.broadcast_to(given, (*outer, *given.shape[-2:])).copy()
    order = range(x.shape[-2])[::-1] if upper else range(x.shape[-2])
    for done, i in enumerate(order):
        for k in order[:done]:
            x[..., i, :] = fma(-matrix[..., i, k, None], x[..., k, :], x[..., i, :])
        if not unitriangular:
            with np.errstate(all="ignore"):
                x[..., i, :] = x[..., i, :] / matrix[..., i, i, None]
    return x
