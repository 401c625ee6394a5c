"""Connects pointwise functions and layout operations to PyTorch's autograd.

A call with tensors that autograd or ``torch.compile`` records goes through :mod:`ptxgen.torch`,
which is imported then. So modules that define operations need not import it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ptxgen.numerics.dtype import STORABLE
from ptxgen.ops import OPERATIONS
from ptxgen.ops.pointwise import Pointwise
from ptxgen.program.operation import Op


def autograd(op: Op, given: Mapping[str, Any]) -> Any:
    """Calls operation ``op`` with the arguments ``given`` (by name) such that PyTorch's autograd
    records its gradient, and returns its results.
    """
    from ptxgen.torch.record import recorded

    return recorded(op, given)


def operation(name: str) -> Op:
    """Returns the library's operation ``name``, after it has been set to record gradients for
    PyTorch tensors.
    """
    found: Op = OPERATIONS[name]
    found.autograd = autograd
    _ = found.parameters  # computed now: torch.compile cannot trace how
    found.__name__, found.__doc__ = found.name, found.doc  # for help()
    return found


def pointwise(function: Callable[..., Any]) -> Pointwise:
    """``y[i] = function(x[i], ...)``: makes an operation on arrays from a function of scalars.

    The operation is one kernel, and has one oracle. ``function`` is traced: it is called with
    symbolic values (:mod:`ptxgen.numerics.formula`), and returns one or a tuple of several,
    computed with operators, :mod:`ptxgen.functions` and other pointwise functions. It cannot branch
    on values; use ``where``. Globals and closed-over values are frozen at its first call; a later
    call raises FormulaError if they have changed.

    Shapes
        Arrays broadcast, and have any strides (negative ones, too); results have the broadcast
        shape. Python scalars are kernel arguments.
    Dtypes
        float32, float16, bfloat16, float64, int32, int64, bool, uint8, int8, float8_e4m3fn,
        float8_e5m2, complex64, complex128. Floats of 16 and 8 bits are computed in float32,
        integers of 8 bits in int32, and the operands of one operator have one type: cast others
        (``ptxgen.functions.cast``); complex numbers and floats are promoted. A result has the dtype
        of the arrays that are computed in its type, if these have one dtype; else that type.
    Options
        The operation takes ``out`` (may be one of the arguments; a tuple for several results),
        ``out_dtype`` (a dtype, or one for each result), ``stream`` and ``kernel``.
        ``.reference(...)`` computes the same bits with NumPy; ``.kernels(...)`` lists the kernels
        that serve such arguments.
    Order
        Contract ``pointwise/1``: every operation of the function is rounded once, every result once
        more. The bits of an element do not depend on its index.
    Gradients
        For PyTorch tensors that require grad: one kernel computes the gradients of all arguments.
    Errors
        FormulaError, which names the line, for a function that cannot be traced; ShapeError,
        DtypeError, OptionError, DeviceError or CompileError, before anything is launched or
        written.
    Source
        ``ptxgen/ops/pointwise.py``, ``ptxgen/templates/pointwise``.

    >>> import numpy, ptxgen
    >>> @ptxgen.pointwise
    ... def lerp(x, y, t):
    ...     return x + t * (y - x)
    >>> lerp.reference(numpy.zeros(2, "f4"), numpy.ones(2, "f4"), 0.25)
    array([0.25, 0.25], dtype=float32)
    """
    return Pointwise(function, autograd=autograd, known=STORABLE)
