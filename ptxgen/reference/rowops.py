"""The oracle of operations over rows: their formulas, with the reductions of contract ``rows/1``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ptxgen.errors import DtypeError, ShapeError
from ptxgen.numerics.formula import STORED
from ptxgen.numerics.rowops import LONG, SHORT, TABLE, formula, wanted_dtype
from ptxgen.reference.formula import results
from ptxgen.reference.rowwise import reduce

Array = NDArray[Any]


def compute(name: str, *arrays: ArrayLike | None, out_dtype: Any = None, **numbers: Any) -> Any:
    """An operation of the table over the last dimension, on arrays in order (None: not given).

    A result, or a tuple of them. Raises DtypeError and ShapeError.
    """
    row = TABLE[name]
    given = dict(zip(row.arrays, (*arrays, *[None] * len(row.arrays)), strict=False))
    found = {n: np.asarray(a) for n, a in given.items() if a is not None}
    dtypes = {}
    for each, array in found.items():
        short = SHORT.get(array.dtype.name)
        if short is None or not array.dtype.isnative:
            raise DtypeError(f"{each} has dtype {array.dtype.name}; takes {', '.join(SHORT)}")
        dtypes[each] = short
    first = next(iter(row.arrays))
    if dtypes[first] not in row.dtypes:
        names = " or ".join(LONG[d] for d in row.dtypes)
        raise DtypeError(f"{first} has dtype {found[first].dtype.name}; takes {names}")
    inferred = row.signature.infer({n: a.shape for n, a in found.items()})
    if inferred.sizes["N"] == 0 and not row.empty:
        raise ShapeError(f"{name} takes at least one element; got rows of none")
    wanted = None if out_dtype is None else SHORT[wanted_dtype(out_dtype)]
    options = row.given({n: numbers.get(n, o.default) for n, o in row.numbers.items()})
    outputs = row.outputs(dtypes[first], wanted)
    what = formula(row.variant(dtypes, outputs, options))
    wide = LONG[STORED[dtypes[first]]]
    inputs: dict[str, Any] = {}
    for each, kind in row.arrays.items():
        if each in found:
            inputs[each] = found[each][..., None] if kind == "row" else found[each]
    for each, value in options.items():
        inputs[each] = np.asarray(value, LONG.get(row.numbers[each].dtype, wide))
    columns = found[first].shape[-1]
    made = results(what, inputs, reduce, columns)
    shaped = []
    for value, shape, output in zip(made, inferred.results, what.outputs, strict=True):
        full = (*shape, 1) if output.level == "row" else shape
        shaped.append(np.ascontiguousarray(np.broadcast_to(value, full).reshape(shape)))
    return shaped[0] if len(shaped) == 1 else tuple(shaped)
