"""``cumsum``: prefix sums of rows; ``logcumsumexp``: logarithms of prefix sums of exponentials."""

from __future__ import annotations

from collections.abc import Sequence

from ptxgen.numerics.dtype import ELEMENTS, FULL, NAMES
from ptxgen.numerics.formula import Node, where
from ptxgen.numerics.functions import exp, isinf, log
from ptxgen.numerics.option import Bool, Kernel
from ptxgen.numerics.row_reductions import REAL
from ptxgen.numerics.scan import CUMSUM, LOGCUMSUMEXP
from ptxgen.numerics.signature import Signature
from ptxgen.ops.pointwise import Pointwise
from ptxgen.ops.views import check_dtype, dense, row_step, single
from ptxgen.program.buffer import Buffer
from ptxgen.program.build import Builder, ProgramBuilder
from ptxgen.program.operation import Backward, Gradients, op
from ptxgen.program.parameters import OverX
from ptxgen.spec import Problem
from ptxgen.spec.scan import EXCLUSIVE, REVERSE

INFINITY = float("inf")


def _scanned(
    b: ProgramBuilder,
    of: Signature,
    table: str,
    dtypes: Sequence[str],
    x: Buffer,
    exclusive: bool,
    reverse: bool,
    out: Buffer | None,
    kernel: str | None,
) -> Buffer:
    """Records a scan of the rows of ``x`` by a kernel of the route table ``table``, and returns its
    result. ``of``: signature of the operation; ``dtypes``: those that x may have; ``exclusive``:
    leaves out the element itself; ``reverse``: scans from the end of a row.
    """
    check_dtype("x", x.dtype, dtypes)
    found = of.infer({"x": x.shape})
    y = b.result(found.results[0], x.dtype, single(out))
    count, width = found.sizes["M"], found.sizes["N"]
    if b.abstract or count * width == 0:
        return y
    flags = (EXCLUSIVE if exclusive else 0) | (REVERSE if reverse else 0)
    scalars = (("LDX", row_step("x", x)), ("FLAGS", flags))
    dense("out", y, 0)
    values = ("ROWS", count), ("COLS", width), ("ITEM", x.itemsize)
    what, dtype = f"{of.name} M={count} N={width}", NAMES[x.dtype]
    b.launch(lambda: Problem((table,), dtype, values, scalars, what), {"x": x, "y": y}, kernel)
    return y


# -- sums ---------------------------------------------------------------------------------------


def _vjp(b: Builder, at: Backward) -> Gradients:
    """Gradient of ``cumsum``: the prefix sums of ``dy`` in the opposite direction."""
    dy, how = b.packed(at.dys[0]), at.options
    return {"x": b.cumsum(dy, exclusive=how["exclusive"], reverse=not how["reverse"])}


@op(forms=CUMSUM, vjp=_vjp)
def cumsum(
    b: ProgramBuilder,
    x: Buffer,
    *,
    exclusive: Bool = False,
    reverse: Bool = False,
    out: OverX = None,
    kernel: Kernel = None,
) -> Buffer:
    """``y[..., j] = sum(x[..., :j+1])``; ``exclusive``: of ``x[..., :j]``; ``reverse``: from the
    end, ``sum(x[..., j:])``.

    Shapes
        ``x`` ``[..., N]``, and so the result, which may be ``x`` (``out=x``).
    Dtypes
        float32, bfloat16, float16, float64, int32 or int64, and so the result.
    Order
        Contract ``scan/1``: the order depends on an element's index alone, neither on N nor on
        other rows. In f32 (f64), rounded once; integers wrap. :func:`ptxgen.reference.cumsum`
        returns the same bits.
    Errors
        ShapeError for a last dimension that is not contiguous, DtypeError, OptionError,
        DeviceError, GradError or CompileError, before anything is launched or written.
    Source
        ``ptxgen/ops/scan.py``, ``ptxgen/tiles/scan.py``.
    """
    return _scanned(b, CUMSUM, "scan", tuple(ELEMENTS), x, exclusive, reverse, out, kernel)


# -- sums of exponentials -----------------------------------------------------------------------
def _weights(dy: Node, y: Node) -> tuple[Node, Node]:
    """Formula of the logarithms of the positive and of the negative part of ``dy * exp(-y)``:
    ``log(max(dy, 0)) - y`` and ``log(max(-dy, 0)) - y``; -inf for infinite y. The gradient of
    ``logcumsumexp`` scans each.
    """
    found = []
    for part in (dy, -dy):
        there = where(part > 0, log(part), where(part == part, -INFINITY, part))
        found.append(where(isinf(y), -INFINITY, there - y))
    return found[0], found[1]


def _sloped(x: Node, above: Node, below: Node) -> Node:
    """Formula of the gradient of ``logcumsumexp`` by x: ``exp(x + above) - exp(x + below)``.
    ``above`` and ``below``: logarithms of the sums of the positive and of the negative terms
    ``dy * exp(-y)``; -inf, that of an empty sum, gives 0.
    """
    made = [where(w == -INFINITY, 0, exp(x + w)) for w in (above, below)]
    return made[0] - made[1]


_split, _gradient = Pointwise(_weights, "log_weights"), Pointwise(_sloped, "logcumsumexp_gradient")


def _log_vjp(b: Builder, at: Backward) -> Gradients:
    """Gradient of ``logcumsumexp``: ``dx[j] = exp(x[j]) * sum(dy[i] * exp(-y[i]))``, over all i
    whose sum includes x[j].

    It is a scan in the opposite direction, in logarithms, so that neither factor overflows.
    """
    wide, how = b.wide(at["x"]), at.only("exclusive", "reverse")
    x, dy = (b.packed(b.cast(v, wide)) for v in (at["x"], at.dys[0]))
    rounded = b.dtype(at["x"]) != wide
    y = b.logcumsumexp(x, **how) if rounded else b.packed(at.results[0])
    how["reverse"] = not how["reverse"]
    sums = [b.logcumsumexp(w, **how) for w in b.call(_split, dy, y, out_dtype=wide)]
    return {"x": b.call(_gradient, x, *sums, out_dtype=b.dtype(at["x"]))}


@op(forms=LOGCUMSUMEXP, vjp=_log_vjp)
def logcumsumexp(
    b: ProgramBuilder,
    x: Buffer,
    *,
    exclusive: Bool = False,
    reverse: Bool = False,
    out: OverX = None,
    kernel: Kernel = None,
) -> Buffer:
    """``y[..., j] = log(sum(exp(x[..., :j+1])))``; ``exclusive``: of ``x[..., :j]``; ``reverse``:
    from the end, of ``x[..., j:]``.

    Shapes
        ``x`` ``[..., N]``, and so the result, which may be ``x`` (``out=x``).
    Dtypes
        float32, bfloat16, float16 or float64, and so the result.
    Order
        Contract ``logscan/1`` (:mod:`ptxgen.numerics.scan`): the steps of ``scan/1`` on pairs
        (maximum, sum of exponentials relative to it), so that results far below the row's maximum
        are as exact as others. In f32 (f64), rounded once.
        :func:`ptxgen.reference.logcumsumexp` returns the same bits. A NaN gives NaN from there on,
        else +inf gives +inf; an empty sum, or one of -inf alone, gives -inf.
    Errors
        ShapeError for a last dimension that is not contiguous, DtypeError, OptionError,
        DeviceError, GradError or CompileError, before anything is launched or written.
    Source
        ``ptxgen/ops/scan.py``, ``ptxgen/tiles/scan.py``.

    >>> import numpy, ptxgen
    >>> ptxgen.reference.logcumsumexp(numpy.array([[0, 0, -1000, 1000]], "f4"))
    array([[0.000000e+00, 6.931472e-01, 6.931472e-01, 1.000000e+03]],
          dtype=float32)
    """
    takes = tuple(FULL[d] for d in REAL)
    return _scanned(b, LOGCUMSUMEXP, "logscan", takes, x, exclusive, reverse, out, kernel)
