"""``logsumexp``: the logarithm of the sum of a row's exponentials."""

from __future__ import annotations

from ptxgen.numerics.dtype import DTYPES
from ptxgen.numerics.formula import Node, cast, where
from ptxgen.numerics.functions import exp, isfinite
from ptxgen.numerics.logsumexp import LOGSUMEXP
from ptxgen.numerics.option import Dtype, Kernel
from ptxgen.ops.pointwise import Pointwise
from ptxgen.ops.views import alignment, check_dtype, dense, leading, result_dtype, rows_of, single
from ptxgen.program.buffer import Buffer
from ptxgen.program.build import Builder, ProgramBuilder
from ptxgen.program.operation import Backward, Gradients, op
from ptxgen.program.parameters import Out
from ptxgen.spec import Problem
from ptxgen.spec.logsumexp import OUT_F32

TABLE = ("logsumexp",)
SERVED = ("float32", "bfloat16", "float16", "float64")


def _weighted(x: Node, y: Node, dy: Node) -> Node:
    """Formula of the gradient of ``y = logsumexp(x)``: ``dy * exp(x - y)``. If y is infinite, it is
    dy where x equals y, else 0.
    """
    x, y, dy = (cast(v, "f64" if v.type == "f64" else "f32") for v in (x, y, dy))
    return dy * where(isfinite(y), exp(x - y), cast(x == y, x.type))


_gradient = Pointwise(_weighted, "logsumexp_gradient")


def _vjp(b: Builder, at: Backward) -> Gradients:
    x = at["x"]
    y, dy = (b.unsqueeze(v, -1) for v in (at.results[0], at.dys[0]))
    return {"x": b.call(_gradient, x, y, dy, out_dtype=b.dtype(x))}


@op(forms=LOGSUMEXP, vjp=_vjp)
def logsumexp(
    b: ProgramBuilder,
    x: Buffer,
    *,
    out: Out = None,
    out_dtype: Dtype = None,
    kernel: Kernel = None,
) -> Buffer:
    """``y = log(sum(exp(x), axis=-1))``, strictly batch-invariant.

    Shapes
        ``x`` ``[..., N]``; the result ``[...]``. N = 0 gives -inf.
    Dtypes
        float32, bfloat16, float16 or float64; so is the result, unless ``out`` or ``out_dtype``
        say ``"float32"`` where x has 16 bits.
    Storage
        Rows may have any pitch, and stride 1 along the last dimension; any alignment is served. If
        rows are few, each is split over CTAs, with scratch memory of 8 bytes per 1024 elements.
    Order
        Contract ``lse/1`` (:mod:`ptxgen.numerics.logsumexp`): a row is split into segments of 1024,
        whose sums of ``exp(x - m)`` have a fixed order and are combined in ascending order, all in
        f32; the result is rounded once to its dtype. float64: ``m + log(sum(exp(x - m)))`` in f64,
        the sum in the order of contract ``rows/1``. A row's bits depend on that row alone.
        :func:`ptxgen.reference.logsumexp` returns the same bits. Inf and NaN are as in IEEE: a NaN
        gives NaN, else +inf gives +inf, and a row of -inf gives -inf.
    Errors
        ShapeError, DtypeError, OptionError, DeviceError, GradError or CompileError, before
        anything is launched or written.
    Source
        ``ptxgen/ops/logsumexp.py``, ``ptxgen/tiles/logsumexp.py``.

    >>> import numpy, ptxgen
    >>> ptxgen.reference.logsumexp(numpy.zeros((1, 2), "f4"))
    array([0.6931472], dtype=float32)
    """
    if x.dtype == "float64":
        found: Buffer = b.logsumexp_f64(x, out=out, out_dtype=out_dtype, kernel=kernel)
        return found
    check_dtype("x", x.dtype, SERVED)
    target = single(out)
    inferred = LOGSUMEXP.infer({"x": x.shape})
    wanted = result_dtype(out_dtype, target, x.dtype, (x.dtype, "float32"))
    y = b.result(inferred.results[0], wanted, target)
    if b.abstract:
        return y
    count, width, down = rows_of("x", x)
    alignment("x", x, 0)
    dense("out", y, 0)
    scalars = (
        ("LDX", leading(count, width, down, x.itemsize)),
        ("COLS", width),
        ("FLAGS", OUT_F32 if wanted != x.dtype else 0),
    )
    values = (("ROWS", count), ("COLS", max(width, 1)))  # kernels of one column serve none
    if count:
        what = f"logsumexp M={count} N={width}"
        of = DTYPES[x.dtype]
        b.launch(lambda: Problem(TABLE, of, values, scalars, what), {"x": x, "y": y}, kernel)
    return y
