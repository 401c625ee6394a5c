"""Operations that record gradients by themselves: what names them to :mod:`ptxgen.torch`.

Calls of pointwise functions and of :mod:`ptxgen.layout` with tensors that autograd or a compiler
watches go to the functions of :mod:`ptxgen.torch`, which is imported then. So the rooms of
operations need not know it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ptxgen.ops import OPERATIONS
from ptxgen.ops.pointwise import Pointwise
from ptxgen.program.operation import Op


def autograd(op: Op, given: Mapping[str, Any]) -> Any:
    """A call of ``op``, recorded."""
    from ptxgen.torch.record import recorded

    return recorded(op, given)


def operation(name: str) -> Op:
    """An operation by its name, which records gradients."""
    found: Op = OPERATIONS[name]
    found.autograd = autograd
    _ = found.parameters  # read now: a compiler cannot follow how they are
    found.__name__, found.__doc__ = found.name, found.doc  # what help shows
    return found


def pointwise(function: Callable[..., Any]) -> Pointwise:
    """``y[i] = function(x[i], ...)``: makes of a function of values an operation on arrays.

    It has one kernel, and one oracle. ``function`` is called with values of a formula
    (:mod:`ptxgen.numerics.formula`), of which it computes one or a tuple of several with operators,
    :mod:`ptxgen.functions`, and other pointwise functions. It cannot branch on values: that is what
    ``where`` is for. What it reads from outside is frozen when it is first called: FormulaError if
    that has changed at a later call.

    Shapes
        Arrays broadcast, of any strides (negative ones, too); the results have their shape. Python
        numbers are given to the kernel at each call.
    Dtypes
        float32, float16, bfloat16, float64, int32, int64, bool. 16-bit floats are computed with in
        f32, and operands of one operation are of one type: cast others
        (``ptxgen.functions.cast``). The results have the one dtype of the arrays that are computed
        with in their type, else that type.
    Options
        The operation takes ``out`` (it may be an argument; of several results it is a tuple),
        ``out_dtype`` (a dtype, or one for each result), ``stream`` and ``kernel``.
        ``.reference(...)`` computes the same bits with NumPy; ``.kernels(...)`` lists the kernels
        that serve such arguments.
    Order
        Contract ``pointwise/1``: every operation of the function is rounded once, every result once
        more. Nothing depends on where an element lies.
    Gradients
        With PyTorch's tensors that require them: one kernel computes those of all arguments.
    Errors
        FormulaError, which names the line, for a function that is no formula; ShapeError,
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
    return Pointwise(function, autograd=autograd)
