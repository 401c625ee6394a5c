"""``logsumexp``: the logarithm of the sum of a row's exponentials."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ptxgen.errors import DtypeError
from ptxgen.numerics.dtype import DTYPES, name_of
from ptxgen.numerics.rowops import TABLE as FORMULAS
from ptxgen.numerics.rows import LOGSUMEXP
from ptxgen.ops import rowwise
from ptxgen.ops.op import Op, Options, Question, Result
from ptxgen.ops.op import Reading as Understood
from ptxgen.ops.run import caller
from ptxgen.ops.views import alignment, apart, check_contiguous, leading
from ptxgen.runtime.arrays import ArrayView
from ptxgen.spec import Problem
from ptxgen.spec.rows import OUT_F32

TABLE = ("logsumexp",)
SERVED = ("float32", "bfloat16", "float16")
WIDE = FORMULAS["logsumexp_f64"]
"""What float64 is computed by."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Rows to be reduced (:class:`ptxgen.ops.op.Reading`)."""

    dtype: str
    count: int
    width: int
    pitch: int
    results: tuple[Result, ...]
    flags: int

    def problem(self, targets: tuple[ArrayView, ...]) -> Problem | None:
        """See :meth:`ptxgen.ops.op.Reading.problem`."""
        (target,) = targets
        alignment("out", target, 0)
        if self.count == 0:
            return None
        check_contiguous("out", target, result=True)
        told = (("LDX", self.pitch), ("COLS", self.width), ("FLAGS", self.flags))
        return _problem(self.dtype, self.count, self.width, told)


def read(
    views: Mapping[str, ArrayView], options: Options, targets: tuple[str | None, ...]
) -> Understood:
    """The rows that a call asks to be reduced."""
    x = views["x"]
    if x.dtype == "float64":
        return rowwise.read(WIDE, views, options, targets)
    if x.dtype not in SERVED:
        raise DtypeError(f"x has dtype {x.dtype}; takes {' or '.join((*SERVED, 'float64'))}")
    inferred = LOGSUMEXP.infer({"x": x.shape})
    count, width = inferred.sizes["M"], inferred.sizes["N"]
    accepted = tuple(dict.fromkeys((x.dtype, "float32")))
    what, wanted = "out_dtype", options["out_dtype"]
    wanted = None if wanted is None else name_of(wanted, what)
    if wanted is None:
        what, wanted = "out's dtype", targets[0] or x.dtype
    if wanted not in accepted:
        raise DtypeError(f"{what} is {wanted!r}; takes {' or '.join(map(repr, accepted))}")
    matrix = x.matrix("x")
    down, along = matrix.strides
    if along != 1 and width > 1 and x.size:
        raise apart("x", x)
    alignment("x", x, 0)
    pitch = leading(count, width, down, x.itemsize)
    flags = OUT_F32 if wanted != x.dtype else 0
    result = Result(inferred.results[0], wanted)
    return Reading(DTYPES[x.dtype], count, width, pitch, (result,), flags)


def pose(question: Question) -> Problem:
    """The problem of sizes M (rows) and N (elements of a row)."""
    if question.dtype == "f64":
        return rowwise.pose(WIDE, question)
    if question.dtype not in map(DTYPES.get, SERVED):
        takes = " or ".join((*SERVED, "float64"))
        raise DtypeError(f"dtype is {question.dtype}; takes {takes}")
    return _problem(question.dtype, question.sizes["M"], question.sizes["N"], ())


def _problem(
    dtype: str, count: int, width: int, told: tuple[tuple[str, int | float], ...]
) -> Problem:
    values = (("ROWS", count), ("COLS", max(width, 1)))  # kernels of one column serve none
    return Problem(TABLE, dtype, values, told, ("x", "y"), f"logsumexp M={count} N={width}")


def backward(
    arguments: tuple[Any, ...],
    results: tuple[Any, ...],
    gradients: tuple[Any, ...],
    options: Options,
    needs: tuple[bool, ...],
) -> tuple[Any, ...]:
    """``dx = dy · exp(x - logsumexp(x))``, in f32 (f64), rounded once to the dtype of x."""
    (x,), (y,), (dy,) = arguments, results, gradients
    x, y, dy = (t if t.element_size() == 8 else t.float() for t in (x, y, dy))
    row = y.unsqueeze(-1)
    weights = (x - row).exp().where(row.isfinite(), x == row)
    return ((dy.unsqueeze(-1) * weights).to(arguments[0].dtype),)


OPS = {LOGSUMEXP.name: Op(LOGSUMEXP, read, pose, backward)}
"""The rows of row-wise reductions."""

run = caller(OPS["logsumexp"])


def logsumexp(
    x: Any,
    *,
    out: Any = None,
    out_dtype: Any = None,
    stream: Any = None,
    kernel: str | None = None,
) -> Any:
    """``y = log(sum(exp(x), axis=-1))``, strictly batch-invariant.

    Shapes
        ``x`` ``[..., N]``; the result ``[...]``. N = 0 gives -inf.
    Dtypes
        float32, bfloat16, float16 or float64; so is the result, unless ``out`` or ``out_dtype``
        say ``"float32"`` where x has 16 bits.
    Storage
        Rows may be strided, of stride 1 along the last dimension; any alignment is served.
    Bits
        Contract ``lse/1`` (:mod:`ptxgen.numerics.rows`): a row is cut into segments of 1024, whose
        sums of ``exp(x - m)`` have a fixed order, and which are joined in ascending order, all in
        f32; the result is rounded once to its dtype. Of float64: ``m + log(sum(exp(x - m)))`` in
        f64, the sum as contract ``rows/1`` has it. A row's bits depend on that row alone.
        :func:`ptxgen.reference.logsumexp` returns the same bits. Inf and NaN are as in IEEE: a NaN
        gives NaN, else +inf gives +inf, and a row of -inf gives -inf.

    ``out``, ``stream`` and ``kernel`` are as in :func:`ptxgen.linear`. Rows of which there are few
    are split over CTAs, with scratch memory of 8 bytes per 1024 elements.

    Raises ShapeError, DtypeError, OptionError, DeviceError, GradError or CompileError, before
    anything is launched or written. Source: ``ptxgen/tiles/rows.py``.

    >>> import numpy, ptxgen
    >>> ptxgen.reference.logsumexp(numpy.array([[0, 0], [1000, 0]], "f4"))
    array([   0.6931472, 1000.       ], dtype=float32)
    """
    return run(x, out, stream, (out_dtype, kernel))
