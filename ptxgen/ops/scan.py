"""``cumsum``: the sums of the elements up to each."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ptxgen.errors import DtypeError
from ptxgen.numerics.dtype import ELEMENTS
from ptxgen.numerics.scan import CUMSUM
from ptxgen.ops.op import Op, Options, Question, Result
from ptxgen.ops.run import caller
from ptxgen.ops.views import alignment, apart, check_contiguous
from ptxgen.runtime.arrays import ArrayView
from ptxgen.spec import Problem
from ptxgen.spec.scan import EXCLUSIVE, REVERSE

TABLE = ("scan",)


@dataclass(frozen=True, slots=True)
class Reading:
    """Rows to be summed (:class:`ptxgen.ops.op.Reading`)."""

    dtype: str
    count: int
    width: int
    pitch: int
    flags: int
    results: tuple[Result, ...]

    def problem(self, targets: tuple[ArrayView, ...]) -> Problem | None:
        """See :meth:`ptxgen.ops.op.Reading.problem`."""
        (target,) = targets
        alignment("out", target, 0)
        check_contiguous("out", target, result=True)
        if self.count * self.width == 0:
            return None
        told = (("LDX", self.pitch), ("FLAGS", self.flags))
        return _problem(self.dtype, self.count, self.width, told)


def read(
    views: Mapping[str, ArrayView], options: Options, targets: tuple[str | None, ...]
) -> Reading:
    """The rows that a call asks to be summed."""
    x = views["x"]
    if x.dtype not in ELEMENTS:
        raise DtypeError(f"x has dtype {x.dtype}; takes {' or '.join(ELEMENTS)}")
    if targets[0] not in (None, x.dtype):
        raise DtypeError(f"out has dtype {targets[0]}; takes {x.dtype}")
    found = CUMSUM.infer({"x": x.shape})
    matrix = x.matrix("x")
    down, along = matrix.strides
    if along != 1 and x.size:
        raise apart("x", x)
    alignment("x", x, 0)
    flags = (EXCLUSIVE if options["exclusive"] else 0) | (REVERSE if options["reverse"] else 0)
    count, width = found.sizes["M"], found.sizes["N"]
    pitch = down if count > 1 else 0
    result = Result(found.results[0], x.dtype)
    return Reading(ELEMENTS[x.dtype], count, width, pitch, flags, (result,))


def pose(question: Question) -> Problem:
    """The problem of sizes M (rows) and N (elements of a row)."""
    if question.dtype not in ELEMENTS.values():
        raise DtypeError(f"dtype is {question.dtype}; takes {', '.join(ELEMENTS.values())}")
    return _problem(question.dtype, question.sizes["M"], question.sizes["N"], ())


def _problem(
    dtype: str, count: int, width: int, told: tuple[tuple[str, int | float], ...]
) -> Problem:
    values = (("ROWS", count), ("COLS", max(width, 1)))
    return Problem(TABLE, dtype, values, told, ("x", "y"), f"cumsum M={count} N={width}")


def backward(
    arguments: tuple[Any, ...],
    results: tuple[Any, ...],
    gradients: tuple[Any, ...],
    options: Options,
    needs: tuple[bool, ...],
) -> tuple[Any, ...]:
    """The sums of the gradients of all results that an element is in: the other way round."""
    operators = sys.modules["ptxgen.torch"]  # which calls this
    (dy,) = gradients
    found = operators.cumsum(dy, exclusive=options["exclusive"], reverse=not options["reverse"])
    return (found,)


OPS = {CUMSUM.name: Op(CUMSUM, read, pose, backward)}
"""The row of prefix sums."""

run = caller(OPS["cumsum"])


def cumsum(
    x: Any,
    *,
    exclusive: bool = False,
    reverse: bool = False,
    out: Any = None,
    stream: Any = None,
    kernel: str | None = None,
) -> Any:
    """``y[..., j] = sum(x[..., :j+1])``; ``exclusive``: of ``x[..., :j]``; ``reverse``: from the
    end, ``sum(x[..., j:])``.

    Shapes
        ``x`` ``[..., N]``, and so the result, which may be ``x`` (``out=x``).
    Dtypes
        float32, bfloat16, float16, float64, int32 or int64, and so the result.
    Order
        Contract ``scan/1``: it depends on an element's place alone, neither on N nor on the other
        rows. In f32 (f64), rounded once; integers wrap.
    Errors
        ShapeError for a last dimension that is not contiguous, DtypeError.
    """
    return run(x, out, stream, (exclusive, reverse, kernel))
