"""Oracle of reductions down columns: moves the reduced axis last and evaluates row formulas."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxgen.numerics.column_reductions import REDUCTIONS, computed
from ptxgen.numerics.dtype import ELEMENTS, name_of
from ptxgen.oracle.formula import results
from ptxgen.oracle.reduction_order import reduce

Array = NDArray[Any]


def reduce_columns(how: str, *arguments: Any, out_dtype: Any = None, **named: Any) -> Any:
    """Computes the reduction ``how`` of :data:`ptxgen.numerics.column_reductions.REDUCTIONS`, with
    the kernels' bits. Returns one array, or a tuple.
    """
    row = REDUCTIONS[how]
    given = {**dict(zip(row.kinds, arguments, strict=False)), **named}
    arrays = {name: np.asarray(given[name]) for name in row.kinds}
    inferred = row.signature.infer({name: a.shape for name, a in arrays.items()})
    wanted = next(iter(arrays.values())).dtype.name
    if out_dtype is not None:
        wanted = name_of(out_dtype, "out_dtype", ELEMENTS)
    dtypes = tuple(ELEMENTS[a.dtype.name] for a in arrays.values())
    assert computed(dtypes)
    formula = row.formula(dtypes, ELEMENTS[wanted])
    found = inferred.sizes
    outer, n, inner = found.get("O", 1), found.get("N", found.get("M", 1)), found["I"]
    rows = {}
    for name, array in arrays.items():
        if row.kinds[name] == "element":
            rows[name] = np.moveaxis(array.reshape(outer, n, inner), 1, 2)
        else:
            rows[name] = array.reshape(1, 1, n)
    values = results(formula, rows, reduce, n)
    shaped = tuple(m.reshape(s) for m, s in zip(values, inferred.results, strict=True))
    return shaped[0] if len(shaped) == 1 else shaped


def rms_norm_wgrad(*arguments: Any, **named: Any) -> Any:
    """Oracle of :func:`ptxgen.rms_norm_wgrad`, whose arguments it takes: the gradient by an RMS
    norm's weight, ``sum(dy * (x * rstd))`` over all rows.
    """
    return reduce_columns("rms_norm_wgrad", *arguments, **named)


def layer_norm_wgrad(*arguments: Any, **named: Any) -> Any:
    """Oracle of :func:`ptxgen.layer_norm_wgrad`, whose arguments it takes: the gradients by a layer
    norm's weight and bias, each a sum over all rows.
    """
    return reduce_columns("layer_norm_wgrad", *arguments, **named)
