"""Functions by name: of arrays, and of the values that a pointwise formula computes with.

Called with arrays each is an operation of one kernel (:func:`ptxgen.pointwise`), called with values
of a formula it is part of that:

>>> import numpy, ptxgen
>>> from ptxgen.functions import exp, where
>>> @ptxgen.pointwise
... def elu(x):
...     return where(x > 0, x, exp(x) - 1)
>>> elu.reference(numpy.array([1, -1], "f4"))
array([ 1.       , -0.6321205], dtype=float32)
>>> exp.reference(numpy.array([0, 1], "f4"))
array([1.       , 2.7182817], dtype=float32)

Operators do the rest: ``+ - * / **``, comparisons, ``& | ^ ~`` of integers and of conditions,
``<< >>`` of integers. Each function is defined to the bit; errors are in ``docs/functions.md``. The
names are rows of ``ptxgen/ops/pointwise_table.py``, which says what each computes.
"""

from __future__ import annotations

from typing import Any

from ptxgen.numerics import formula
from ptxgen.numerics.formula import Node
from ptxgen.ops.pointwise import Pointwise
from ptxgen.ops.pointwise_table import ROWS

__all__ = ["cast", *(row.name for row in ROWS)]

_ROWS = {row.name: row for row in ROWS}


def __getattr__(name: str) -> Pointwise:
    """Makes a row's operation, when it is first asked for."""
    row = _ROWS.get(name)
    if row is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    made = Pointwise(row.formula, row.name)
    made.__doc__ = row.says
    globals()[name] = made
    return made


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def cast(x: Any, dtype: Any, *, out: Any = None, stream: Any = None) -> Any:
    """``x`` as ``dtype``: an array, rounded once, or a value of a formula.

    To integers it cuts towards zero (:mod:`ptxgen.numerics.formula`). Raises DtypeError for what is
    no dtype of arrays here.
    """
    from ptxgen.ops.pointwise import casting

    if isinstance(x, Node):
        return formula.cast(x, dtype)
    return casting(dtype)(x, out=out, out_dtype=dtype, stream=stream)
