"""Elementwise functions such as ``exp`` and ``where``, for arrays and inside pointwise functions.

Called with arrays, each is an operation of one kernel (:func:`ptxgen.pointwise`). Called inside a
pointwise function, it becomes part of that function's kernel:

>>> import numpy, ptxgen
>>> from ptxgen.functions import exp, where
>>> @ptxgen.pointwise
... def elu(x):
...     return where(x > 0, x, exp(x) - 1)
>>> elu.reference(numpy.array([1, -1], "f4"))
array([ 1.        , -0.63212055], dtype=float32)
>>> exp.reference(numpy.array([0, 1], "f4"))
array([1.       , 2.7182817], dtype=float32)

Operators do the rest: ``+ - * / **``, comparisons, ``& | ^ ~`` of integers and of conditions,
``<< >>`` of integers. Each function is defined to the bit; error bounds are in
``docs/reference/functions.md``, formulas in ``ptxgen/ops/pointwise_table.py``.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from ptxgen import lazy
from ptxgen.autograd import operation
from ptxgen.numerics import formula
from ptxgen.numerics.formula import Node
from ptxgen.ops.pointwise import short_name
from ptxgen.ops.pointwise_table import ROWS

__all__ = ["cast", *(row.name for row in ROWS)]


_FUNCTIONS = lazy.LazyDict({row.name: partial(operation, row.name) for row in ROWS})

__getattr__, __dir__ = lazy.attributes(__name__, _FUNCTIONS.__getitem__, lambda: __all__)


def cast(x: Any, dtype: Any, *, out: Any = None, stream: Any = None) -> Any:
    """``y[i] = dtype(x[i])``, rounded once; ``x`` is an array, or a value in a pointwise function.

    Shapes
        Any; the result has that of ``x``.
    Dtypes
        Those of :func:`ptxgen.pointwise`, for ``x`` and for the result.
    Order
        Contract ``pointwise/1``: rounded once to nearest, ties to even; float64 and integers are
        rounded to float32 before they become floats of 16 or 8 bits. float8_e4m3fn has no Inf and
        saturates: larger magnitudes, Inf among them, give 448. float8_e5m2 gives Inf for magnitudes
        from 61440 on. Every NaN gives the bits 0x7f. PyTorch 2.13 casts so, too, though its NaNs
        may have a sign; ml_dtypes gives NaN where float8_e4m3fn saturates. Floats become integers
        by truncation and saturation, NaN becomes 0; a wider integer keeps its low bits
        (:mod:`ptxgen.numerics.formula`).
        A real number becomes ``x + 0i``.
    Errors
        DtypeError for an unsupported ``dtype``; FormulaError for complex numbers and a real one;
        ShapeError, DeviceError or CompileError.
    Source
        ``ptxgen/ops/pointwise.py``.
    """
    if isinstance(x, Node):
        return formula.cast(x, dtype)
    short = short_name(dtype)
    return operation(f"cast_{short}")(x, out=out, out_dtype=short, stream=stream)
