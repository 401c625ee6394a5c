"""The oracle of reductions down columns: the formula's, of rows brought into memory order."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxgen.numerics.columns import REDUCTIONS, computed
from ptxgen.numerics.dtype import ELEMENTS, name_of
from ptxgen.reference.formula import results
from ptxgen.reference.rowwise import reduce

Array = NDArray[Any]


def reduce_columns(how: str, *arguments: Any, out_dtype: Any = None) -> Any:
    """A reduction of :data:`ptxgen.numerics.columns.REDUCTIONS` by its name, with the bits of
    :func:`ptxgen.ops.columns.reduce_columns`.
    """
    row = REDUCTIONS[how]
    arrays = dict(zip(row.kinds, map(np.asarray, arguments), strict=True))
    inferred = row.signature.infer({name: a.shape for name, a in arrays.items()})
    wanted = next(iter(arrays.values())).dtype.name
    if out_dtype is not None:
        wanted = name_of(out_dtype, "out_dtype", ELEMENTS)
    dtypes = tuple(ELEMENTS[a.dtype.name] for a in arrays.values())
    assert computed(dtypes)
    formula = row.formula(dtypes, ELEMENTS[wanted])
    found = inferred.sizes
    outer, n, inner = found.get("O", 1), found.get("N", found.get("M", 1)), found["I"]
    given = {}
    for name, array in arrays.items():
        if row.kinds[name] == "element":
            given[name] = np.moveaxis(array.reshape(outer, n, inner), 1, 2)
        else:
            given[name] = array.reshape(1, 1, n)
    made = results(formula, given, reduce, n)
    shaped = tuple(m.reshape(s) for m, s in zip(made, inferred.results, strict=True))
    return shaped[0] if len(shaped) == 1 else shaped


rms_norm_wgrad = partial(reduce_columns, "rms_norm_wgrad")
layer_norm_wgrad = partial(reduce_columns, "layer_norm_wgrad")
