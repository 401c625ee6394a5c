"""From arguments to a product: shapes, storage and alignment, with nothing enqueued yet.

Which dimensions an argument has, and in which order, follows from the operation's
:class:`~ptxgen.numerics.contract.Product`; nothing about a particular operation is written here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from math import prod

from ptxgen.errors import ShapeError
from ptxgen.numerics.contract import OPERATIONS, Operation, Product
from ptxgen.runtime.arrays import ArrayView
from ptxgen.spec import DIM_MAX

_TRANSPOSED = {"N": "T", "T": "N"}
_ALIGN_MAX = 16
_COPIES = {
    "torch": "{}.contiguous()",
    "cupy": "cupy.ascontiguousarray({})",
    "numpy": "numpy.ascontiguousarray({})",
}


@dataclass(frozen=True, slots=True)
class Problem:
    """A product ``C[m, n] = A . B`` that an operation asks for.

    ``storage``: how A and B lie in memory ("NN" .. "TT"), after transposed views have been
    recognised. ``lds``: elements from row to row of A and B; ``aligns``: as in
    :mod:`ptxgen.spec`. ``own``: the operation's dimensions M, N, K, for messages.
    ``shape``: the result's. ``swapped``: whether A is the operation's second argument.
    """

    op: str
    storage: str
    dims: tuple[int, int, int]
    lds: tuple[int, int]
    aligns: tuple[int, int]
    own: tuple[int, int, int]
    shape: tuple[int, ...]
    swapped: bool

    def __str__(self) -> str:
        m, n, k = self.own
        return f"{self.op} M={m} N={n} K={k}"


def read(
    operation: Operation,
    layout: str,
    views: Mapping[str, ArrayView],
    bias: ArrayView | None,
    prefer: str | None = None,
) -> Problem:
    """The product that ``operation`` makes of ``views`` (its arguments, by name).

    Vectors can be read as either storage: then as ``prefer``, else as the layout says.

    Raises ShapeError for shapes that do not fit one another, sizes beyond 2^31 - 1, strides
    that no storage fits, and pointers off a multiple of the element size.
    """
    product = operation.products[layout]
    sizes = _sizes(operation, layout, views)
    dims = tuple(sizes[d] for d in product.dims)
    m, n, k = dims
    if bias is not None:
        _check_bias(bias, n)
    names = [operation.arguments[i] for i in product.operands]
    (storage_a, lda), (storage_b, ldb) = _storage(operation, product, names, views, prefer)
    a, b = (views[name] for name in names)
    if _batched(operation) and product.dims[0] == "M":
        shape = (*views[operation.arguments[0]].shape[:-1], n)
    else:
        shape = (m, n)
    return Problem(
        op=operation.name,
        storage=storage_a + storage_b,
        dims=(m, n, k),
        lds=(lda, ldb),
        aligns=(alignment(names[0], a, lda), alignment(names[1], b, ldb)),
        own=(sizes["M"], sizes["N"], sizes["K"]),
        shape=shape,
        swapped=product.operands == (1, 0),
    )


def alignment(name: str, view: ArrayView, ld: int) -> int:
    """The largest of 2, 4, 8, 16 that divides address and row pitch, in bytes.

    16 for an empty array. Raises ShapeError if the address is off a whole element.
    """
    if view.size == 0:
        return _ALIGN_MAX
    if view.ptr % view.itemsize:
        raise ShapeError(
            f"{name} is at address {view.ptr:#x}; takes a multiple of {view.itemsize}, the size "
            f"of its elements; pass a copy of {name}"
        )
    low = view.ptr | ld * view.itemsize | _ALIGN_MAX
    return low & -low


@cache
def routed_as(storage: str, plan: str) -> tuple[str, str] | None:
    """An operation and layout that the dispatcher knows this product by; None if there is none."""
    for operation in OPERATIONS.values():
        for layout, product in operation.products.items():
            if (product.layout, operation.plan_name) == (storage, plan):
                return operation.name, layout
    return None


def contiguous_copy(name: str, view: ArrayView) -> str:
    """How to make a contiguous copy of the argument ``name``, in its framework's words."""
    form = _COPIES.get(view.framework, "a contiguous copy of {}")
    return form.format(name)


def _batched(operation: Operation) -> bool:
    """Whether M stands for any number of leading dimensions."""
    return operation.name != "matmul"


def _stored(product: Product) -> tuple[tuple[str, str], tuple[str, str]]:
    """The operation's dimensions, [rows, columns], of each argument in order."""
    m, n, k = product.dims
    a = (m, k) if product.layout[0] == "N" else (k, m)
    b = (k, n) if product.layout[1] == "N" else (n, k)
    return (a, b) if product.operands == (0, 1) else (b, a)


def _sizes(operation: Operation, layout: str, views: Mapping[str, ArrayView]) -> dict[str, int]:
    """M, N and K, on which all arguments agree."""
    sizes: dict[str, int] = {}
    owner: dict[str, str] = {}
    lead: tuple[str, tuple[int, ...]] | None = None
    how = f" (layout {layout!r})" if _batched(operation) else ""
    for name, dims in zip(operation.arguments, _stored(operation.products[layout]), strict=True):
        shape = views[name].shape
        flattens = _batched(operation) and dims[0] == "M"
        form = f"[..., {dims[1]}]" if flattens else f"[{dims[0]}, {dims[1]}]"
        if (len(shape) < 1) if flattens else (len(shape) != 2):
            raise ShapeError(f"{name} has shape {list(shape)}; takes {form}{how}")
        if flattens:
            if lead is not None and shape[:-1] != lead[1]:
                raise ShapeError(
                    f"{name} has shape {list(shape)}; takes the leading dimensions of {lead[0]}, "
                    f"{list(lead[1])}"
                )
            lead = name, shape[:-1]
        for dim, size in zip(dims, (prod(shape[:-1]), shape[-1]), strict=True):
            if size > DIM_MAX:
                raise ShapeError(
                    f"{name} has shape {list(shape)}, so {dim} = {size}; takes at most {DIM_MAX}"
                )
            if sizes.setdefault(dim, size) != size:
                raise ShapeError(
                    f"{name} has shape {list(shape)}; takes {form} with {dim} = {sizes[dim]}, "
                    f"that of {owner[dim]}{how}"
                )
            owner.setdefault(dim, name)
    return sizes


def _check_bias(bias: ArrayView, n: int) -> None:
    if bias.shape != (n,):
        raise ShapeError(f"bias has shape {list(bias.shape)}; takes [N] = [{n}]")
    if n > 1 and bias.strides != (1,):
        raise ShapeError(
            f"bias has stride {bias.strides[0]}; takes stride 1: "
            f"pass {contiguous_copy('bias', bias)}"
        )
    alignment("bias", bias, 0)


def _storage(
    operation: Operation,
    product: Product,
    names: list[str],
    views: Mapping[str, ArrayView],
    prefer: str | None,
) -> tuple[tuple[str, int], tuple[str, int]]:
    """(letter, leading dimension) of A and B: as declared, or as a transposed view."""
    found = [
        _storages(views[name].matrix(name), letter)
        for name, letter in zip(names, product.layout, strict=True)
    ]
    pairs = [
        (a, b) for a in found[0] for b in found[1] if routed_as(a[0] + b[0], operation.plan_name)
    ]
    for a, b in pairs:
        if a[0] + b[0] == prefer:
            return a, b
    if pairs:
        return pairs[0]
    for name, letter, storages in zip(names, product.layout, found, strict=True):
        if letter not in (s for s, _ in storages):
            view = views[name]
            raise ShapeError(
                f"{name} has shape {list(view.shape)} and strides {list(view.strides)}, which no "
                f"kernel of {operation.name} fits: takes stride 1 along the last dimension"
                f"{' (or a transposed view of such)' if _transposable(operation) else ''}; "
                f"pass {contiguous_copy(name, view)}"
            )
    raise AssertionError("the declared storage of every operation is served")


def _transposable(operation: Operation) -> bool:
    plan = operation.plan_name
    return all(routed_as(a + b, plan) for a in "NT" for b in "NT")


def _storages(view: ArrayView, declared: str) -> list[tuple[str, int]]:
    """The ways to read a matrix as rows of stride 1, the declared one first.

    A column that is dense in memory is one row of its transpose, and better read as such: its pitch
    is of no account then, and vectors lie along it.
    """
    (rows, columns), (down, along) = view.shape, view.strides
    if rows * columns == 0:  # nothing will be read, and frameworks disagree about the strides
        return [
            (declared, _leading(1, columns, 0, view.itemsize)),
            (_TRANSPOSED[declared], _leading(1, rows, 0, view.itemsize)),
        ]
    found = []
    if along == 1 or columns <= 1:
        found.append((declared, _leading(rows, columns, down, view.itemsize)))
    if down == 1 or rows <= 1:
        turned = _TRANSPOSED[declared], _leading(columns, rows, along, view.itemsize)
        found.insert(0 if columns == 1 and rows > 1 and down == 1 else len(found), turned)
    return found


def _leading(rows: int, width: int, stride: int, itemsize: int) -> int:
    """Elements from row to row.

    Nobody steps from a single row, so any pitch is right; whole 16 bytes admit most kernels.
    """
    unit = _ALIGN_MAX // itemsize
    return stride if rows > 1 else max(-(-width // unit) * unit, unit)
