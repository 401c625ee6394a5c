"""``cumsum``: the sums of the elements up to each."""

from __future__ import annotations

from ptxgen.errors import DtypeError
from ptxgen.numerics.dtype import ELEMENTS
from ptxgen.numerics.option import Bool, Kernel
from ptxgen.numerics.scan import CUMSUM
from ptxgen.ops.views import alignment, apart, check_contiguous, single
from ptxgen.program.buffer import Buffer
from ptxgen.program.build import Builder, ProgramBuilder
from ptxgen.program.operation import Backward, Gradients, op
from ptxgen.program.parameters import OverX
from ptxgen.spec import Problem
from ptxgen.spec.scan import EXCLUSIVE, REVERSE

TABLE = ("scan",)


def _vjp(b: Builder, at: Backward) -> Gradients:
    """The sums of the gradients of all results that an element is in: the other way round."""
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
        Contract ``scan/1``: it depends on an element's place alone, neither on N nor on the other
        rows. In f32 (f64), rounded once; integers wrap. :func:`ptxgen.reference.cumsum` returns the
        same bits.
    Errors
        ShapeError for a last dimension that is not contiguous, DtypeError, OptionError,
        DeviceError, GradError or CompileError, before anything is launched or written.
    Source
        ``ptxgen/ops/scan.py``, ``ptxgen/tiles/scan.py``.
    """
    if x.dtype not in ELEMENTS:
        raise DtypeError(f"x has dtype {x.dtype}; takes {' or '.join(ELEMENTS)}")
    found = CUMSUM.infer({"x": x.shape})
    y = b.result(found.results[0], x.dtype, single(out))
    count, width = found.sizes["M"], found.sizes["N"]
    if b.abstract or count * width == 0:
        return y
    matrix = x.matrix("x")
    down, along = matrix.strides
    if along != 1:
        raise apart("x", x)
    alignment("x", x, 0)
    alignment("out", y, 0)
    check_contiguous("out", y, result=True)
    flags = (EXCLUSIVE if exclusive else 0) | (REVERSE if reverse else 0)
    scalars = (("LDX", down if count > 1 else 0), ("FLAGS", flags))
    values, what = (("ROWS", count), ("COLS", width)), f"cumsum M={count} N={width}"
    of = ELEMENTS[x.dtype]
    b.launch(lambda: Problem(TABLE, of, values, scalars, what), {"x": x, "y": y}, kernel)
    return y
