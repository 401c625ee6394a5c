"""Nearest neighbours: distances of all pairs of points by products, then the k smallest."""

from __future__ import annotations

from typing import Annotated

from ptxgen.errors import OptionError
from ptxgen.numerics import formula
from ptxgen.numerics.formula import primitive, where
from ptxgen.numerics.option import Integer
from ptxgen.numerics.select import K_MAX
from ptxgen.numerics.signature import Signature
from ptxgen.ops.pointwise import Pointwise
from ptxgen.ops.views import check_dtype, readable
from ptxgen.program.buffer import Buffer
from ptxgen.program.build import ProgramBuilder
from ptxgen.program.operation import op

FLOATS = ("float32", "bfloat16", "float16")
UMAP_KNN = Signature(
    "umap_knn",
    ("x",),
    ("distances", "indices"),
    {"": {"x": "M D", "distances": "M K", "indices": "M K"}},
    ("M", "D", "K"),
)
_squared = Pointwise(
    lambda product, row, column, i, j: where(
        formula.cast(i, "i64") == formula.cast(j, "i64"),
        0,
        primitive("max", (row + column) - 2 * product, 0),
    ),
    "distance",
)


@op(forms=UMAP_KNN, sizes={"k": "K"})
def umap_knn(
    b: ProgramBuilder, x: Buffer, k: Annotated[int, Integer(1, K_MAX)]
) -> tuple[Buffer, Buffer]:
    """``topk(-|x[i] - x[j]|, k)`` for each point i: distances and indices of the k nearest points.

    Squares of distances are ``(|x[i]|**2 + |x[j]|**2) - 2 x[i] x[j]``, not below 0; the
    distance of a point to itself is 0.

    Shapes
        ``x`` ``[M, D]``; both results ``[M, k]``: distances, ascending, and indices.
    Dtypes
        ``x`` float32, bfloat16 or float16; distances are float32, indices int64.
    Order
        In f32: squares are added as ``rows/1`` says, products as :func:`ptxgen.matmul` does; each
        other operation is rounded once. Of equal distances the lowest index comes first
        (``topk/1``). A row depends on the points alone, and :func:`ptxgen.reference.umap_knn`
        returns the same.
    Errors
        OptionError for a ``k`` above the number of points. ShapeError, DtypeError, DeviceError,
        GradError (it has no gradients) or CompileError, before anything is launched or written.
    """
    check_dtype("x", x.dtype, FLOATS)
    count = UMAP_KNN.infer({"x": x.shape}, given={"K": k}).sizes["M"]
    if k > count:
        raise OptionError(f"k is {k}; takes 1 .. {count}, the number of points")
    if b.abstract:
        return b.result((count, k), "float32"), b.result((count, k), "int64")
    x = readable(b, x)
    products = b.matmul(x, b.transpose(x), out_dtype="float32")
    squares = b.sum(b.mul(x, x, out_dtype="float32"), axis=-1)
    at = b.cumsum(b.filled((count,), "int64", 1, x), exclusive=True)
    row, i = (b.unsqueeze(v, -1) for v in (squares, at))
    found = b.call(_squared, products, row, squares, i, at, out_dtype="float32")
    nearest, indices = b.topk(found, k, largest=False)
    return b.sqrt(nearest), indices
