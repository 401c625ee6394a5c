"""``solve_triangular``: systems of equations with triangular matrices."""

from __future__ import annotations

from math import prod

from ptxgen.errors import ShapeError
from ptxgen.numerics.dtype import DTYPES
from ptxgen.numerics.formula import cast, where
from ptxgen.numerics.option import Bool, Kernel
from ptxgen.numerics.triangular import SOLVE_TRIANGULAR
from ptxgen.ops.pointwise import Pointwise
from ptxgen.ops.views import alignment, check_dtype, dense, single
from ptxgen.program.buffer import Buffer
from ptxgen.program.build import Builder, ProgramBuilder
from ptxgen.program.operation import Backward, Gradients, op
from ptxgen.program.parameters import Out
from ptxgen.spec import Problem
from ptxgen.spec.triangular import SPACE, TURNED, UNIT, UPPER

SERVED = ("float32", "float64")


_inside = Pointwise(
    lambda product, row, column, diagonal: where(
        cast(row, "i64") + cast(diagonal, "i64") > cast(column, "i64"), -product, 0
    ),
    "below_diagonal",
)
"""``-product`` below the diagonal, with ``diagonal`` = 1 also on it, else 0: a's gradient."""


def _vjp(b: Builder, at: Backward) -> Gradients:
    """Gradients of ``a · x = b``: ``db = a⁻ᵀ · dx``; ``da = -db · xᵀ`` in the triangle of a."""
    a, x, how = at["a"], at.results[0], at.only("upper", "unitriangular")
    flipped = how | {"upper": not how["upper"]}
    db, found = b.solve_triangular(b.transpose(a), at.dys[0], **flipped), {}
    if "b" in at.needs:
        found["b"] = b.summed_to(db, at["b"].shape)
    if "a" in at.needs:
        column = b.cumsum(b.filled((a.shape[-1],), "int64", 1, a), exclusive=True)
        row = b.unsqueeze(column, -1)
        sides = (column, row) if how["upper"] else (row, column)
        products = b.matmul(db, b.transpose(x))
        da = b.call(_inside, products, *sides, 0 if how["unitriangular"] else 1)
        found["a"] = b.summed_to(da, a.shape)
    return found


@op(forms=SOLVE_TRIANGULAR, vjp=_vjp)
def solve_triangular(
    to: ProgramBuilder,
    a: Buffer,
    b: Buffer,
    *,
    upper: Bool = False,
    unitriangular: Bool = False,
    out: Out = None,
    kernel: Kernel = None,
) -> Buffer:
    """Solves ``a · x = b`` for x, with a lower (``upper``: upper) triangular matrix ``a``.
    ``unitriangular``: its diagonal counts as ones, whatever is stored there.

    Shapes
        ``a`` ``[..., N, N]``, ``b`` ``[..., N, R]``, and so the result. The leading dimensions
        broadcast as NumPy's do.
    Dtypes
        float32 or float64, the same for both, and so the result.
    Storage
        A contiguous ``a``, or its transpose, and a contiguous ``b`` are read in place, others are
        copied. The other triangle of ``a`` is not used.
    Order
        Contract ``solve/1`` (:mod:`ptxgen.numerics.triangular`): forward substitution, rows
        ascending (``upper``: descending), one fma for each earlier row, one division, in the
        operands' dtype. A column of x depends on that column of b and on a alone.
        :func:`ptxgen.reference.solve_triangular` returns the same bits. A zero on the diagonal
        divides as in IEEE 754.
    Errors
        ShapeError, DtypeError, DeviceError, GradError or CompileError, before anything is launched
        or written.
    Source
        ``ptxgen/ops/triangular.py``, ``ptxgen/tiles/triangular.py``.

    >>> import numpy, ptxgen
    >>> a, b = numpy.array([[2, 9], [1, 4]], "f4"), numpy.array([[2], [9]], "f4")
    >>> ptxgen.reference.solve_triangular(a, b)
    array([[1.],
           [2.]], dtype=float32)
    """
    check_dtype("a", a.dtype, SERVED)
    check_dtype("b", b.dtype, (a.dtype,))
    found = SOLVE_TRIANGULAR.infer({"a": a.shape, "b": b.shape})
    n, cols = found.sizes["N"], found.sizes["R"]
    outer = found.results[0][:-2]
    x = to.result(found.results[0], a.dtype, single(out))
    if to.abstract or not x.size:
        return x
    b = to.packed(to.expand(b, x.shape))
    if a.size > n * n and a.shape[:-2] != outer:
        a = to.expand(a, (*outer, n, n))
    transposed = not a.contiguous and to.transpose(a).contiguous
    a = a if transposed else to.packed(a)
    for name, array in (("a", a), ("b", b)):
        alignment(name, array)
    dense("b", b, result=False)
    dense("out", x)
    values = ("COUNT", prod(outer)), ("N", n), ("COLS", cols)
    if not SPACE.within.evaluate(dict(values)):
        raise ShapeError(f"out has shape {list(x.shape)}; takes at most 2^31 systems of 32 columns")
    flags = (UPPER if upper else 0) | (UNIT if unitriangular else 0) | (TURNED if transposed else 0)
    scalars = ("STEP", n * n if a.size > n * n else 0), ("FLAGS", flags)
    of, what = DTYPES[a.dtype], f"solve of {prod(outer)} x {n} x {cols}"
    bind = {"a": a, "b": b, "x": x}
    to.launch(lambda: Problem(("triangular",), of, values, scalars, what), bind, kernel)
    return x
