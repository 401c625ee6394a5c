"""Moves with indices: gather, embedding and its gradient, sums into rows that indices say."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from math import prod
from typing import Any

from ptxgen.errors import DtypeError, IndexRangeError, OptionError, ShapeError
from ptxgen.numerics import moves
from ptxgen.numerics.dtype import ELEMENTS
from ptxgen.ops.op import Op, Options, Question, Result
from ptxgen.ops.replay import remembered
from ptxgen.ops.run import caller
from ptxgen.ops.views import ALIGN_MAX, alignment, apart, check_contiguous
from ptxgen.runtime.arrays import ArrayView, framework_of
from ptxgen.runtime.dlpack import contiguous_strides
from ptxgen.spec import Problem
from ptxgen.spec.base import GRID_MAX, INDEX_MAX
from ptxgen.spec.moves import COUNT_MAX, GATHER_THREADS, INDEX_64, OWNED, SHARED

INDICES = ("int32", "int64")
MOVED = (
    *("float16", "bfloat16", "float32", "float64", "int32", "int64"),
    *("int16", "uint16", "uint32", "uint64"),
)
"""Dtypes whose bits are moved."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A move, understood (:class:`ptxgen.ops.op.Reading`)."""

    made: Problem | None
    results: tuple[Result, ...]

    def problem(self, targets: tuple[ArrayView, ...]) -> Problem | None:
        """See :meth:`ptxgen.ops.op.Reading.problem`."""
        (target,) = targets
        alignment("out", target, 0)
        check_contiguous("out", target, result=True)
        if self.made is None:
            return None
        low = min(target.ptr & -target.ptr, ALIGN_MAX) if target.ptr else ALIGN_MAX
        values = tuple(
            (name, min(value, low) if name == "ALIGN" else value)
            for name, value in self.made.values
        )
        made = self.made
        return Problem(made.table, made.dtype, values, made.told, made.pointers, made.what)


def _indices(name: str, view: ArrayView) -> int:
    """Flags that say what indices are."""
    if view.dtype not in INDICES:
        raise DtypeError(f"{name} has dtype {view.dtype}; takes {' or '.join(INDICES)}")
    check_contiguous(name, view)
    alignment(name, view, 0)
    return INDEX_64 if view.dtype == "int64" else 0


def _unit(name: str, view: ArrayView) -> None:
    if view.size and view.shape[-1] > 1 and view.strides[-1] != 1:
        raise apart(name, view)


def _wanted(dtype: str, targets: tuple[str | None, ...]) -> None:
    if targets[0] not in (None, dtype):
        raise DtypeError(f"out has dtype {targets[0]}; takes {dtype}")


# -- gather -------------------------------------------------------------------------------
def _gathering(
    what: str,
    name: str,
    view: ArrayView,
    sizes: tuple[int, int, int, int],
    flags: int,
) -> Problem:
    outer, size, count, inner = sizes
    width = inner * view.itemsize
    if width > INDEX_MAX or outer * count > GRID_MAX:
        raise ShapeError(
            f"{what}: {outer * count} rows of {width} bytes; takes 2^31 - 1 of 2^32 - 1 bytes"
        )
    down = view.strides[-2] if size > 1 else 0
    along = view.strides[0] if outer > 1 else 0
    low = alignment(name, view, down, along, inner)
    units = -(-width // max(w for w in (16, 4, 2) if w <= low))
    lanes = 1
    while lanes < GATHER_THREADS and lanes * 4 < units:
        lanes *= 2
    values = (
        ("OUTER", outer),
        ("COUNT", count),
        ("BYTES", width),
        ("LANES", lanes),
        ("ALIGN", low),
    )
    told = (
        ("LDX", down * view.itemsize),
        ("LOX", along * view.itemsize),
        ("SIZE", size),
        ("FLAGS", flags),
    )
    return Problem(("gather",), "any", values, told, ("x", "indices", "y"), what)


def _moved(name: str, view: ArrayView) -> None:
    if view.dtype not in MOVED:
        raise DtypeError(f"{name} has dtype {view.dtype}; takes {', '.join(MOVED)}")
    _unit(name, view)


def read_gather(
    views: Mapping[str, ArrayView], options: Options, targets: tuple[str | None, ...]
) -> Reading:
    """Slices that are read."""
    x, indices = views["x"], views["indices"]
    _moved("x", x)
    _wanted(x.dtype, targets)
    flags = _indices("indices", indices)
    found = moves.GATHER.infer({"x": x.shape, "indices": indices.shape})
    sizes = tuple(found.sizes[n] for n in ("O", "V", "K", "I"))
    result = Result(found.results[0], x.dtype)
    if prod(result.shape) == 0:
        return Reading(None, (result,))
    what = "gather [{}, {}, {}, {}]".format(*sizes)
    made = _gathering(what, "x", x, sizes, flags)  # type: ignore[arg-type]
    return Reading(made, (result,))


def pose_gather(question: Question) -> Problem:
    """The problem of sizes O, V, K, I."""
    s = question.sizes
    return _posed(question, (s["O"], s["V"], s["K"], s["I"]))


def pose_embedding(question: Question) -> Problem:
    """The problem of sizes M (indices), V and I."""
    s = question.sizes
    return _posed(question, (1, s["V"], s["M"], s["I"]))


def _posed(question: Question, sizes: tuple[int, int, int, int]) -> Problem:
    outer, size, _, inner = sizes
    view = _imagined(question.dtype, (outer, size, inner))
    what = f"gather {list(sizes)}"
    return _gathering(what, "x", view, sizes, INDEX_64)


def _imagined(short: str, shape: tuple[int, ...]) -> ArrayView:
    """A contiguous array of a problem that is posed, at an address of any alignment."""
    dtype = next((long for long, own in ELEMENTS.items() if own == short), "")
    if not dtype:
        raise DtypeError(f"dtype is {short}; takes {', '.join(ELEMENTS.values())}")
    return ArrayView(0, shape, contiguous_strides(shape), dtype, "cuda", 0, True, "", None)


def read_embedding(
    views: Mapping[str, ArrayView], options: Options, targets: tuple[str | None, ...]
) -> Reading:
    """Rows of a weight that are read."""
    weight, indices = views["weight"], views["indices"]
    _moved("weight", weight)
    _wanted(weight.dtype, targets)
    flags = _indices("indices", indices)
    found = moves.EMBEDDING.infer({"weight": weight.shape, "indices": indices.shape})
    sizes = 1, found.sizes["V"], found.sizes["M"], found.sizes["I"]
    result = Result(found.results[0], weight.dtype)
    if prod(result.shape) == 0:
        return Reading(None, (result,))
    what = f"embedding of {sizes[2]} rows of {sizes[3]}"
    made = _gathering(what, "weight", weight, sizes, flags)
    return Reading(made, (result,))


# -- scatter ------------------------------------------------------------------------------
def _scattering(
    what: str,
    name: str,
    source: ArrayView,
    sizes: tuple[int, int, int],
    flags: int,
    skipped: int,
    old: ArrayView | None,
    each: tuple[int, int, int] | None = None,
) -> Problem:
    """``each``: an index's bound, and the two sizes that it has beside the first (V, K, I), where
    elements have indices, and not rows.
    """
    rows, count, inner = sizes
    size, axis, width = each or (rows, max(count, 1), 1)
    leaves = max(-(-count // 1024), 1) * inner
    blocks = (-(-rows // OWNED[0]) + -(-count // SHARED)) * -(-inner // 32)
    if count > COUNT_MAX or leaves > 1 << 24 or blocks > GRID_MAX:
        raise ShapeError(
            f"{what}: {count} contributions to {rows} rows of {inner}; takes at most {COUNT_MAX} "
            f"contributions, 2^24 elements of every 1024th, and 2^40 elements"
        )
    down = source.strides[-2] if count > 1 else 0
    low = alignment(name, source, down, inner)
    told: list[tuple[str, int | float]] = [("LDY", down), ("SKIPPED", skipped), ("FLAGS", flags)]
    told += [("SIZE", size), ("ALONG", axis), ("WIDTH", width)]
    if old is not None:
        along = old.strides[0] if rows > 1 else 0
        low = min(low, alignment("x", old, along))
        told.append(("LDO", along))
    values = (
        ("ROWS", rows),
        ("INNER", inner),
        ("COUNT", count),
        ("ITEM", source.itemsize),
        ("ALIGN", low),
    )
    table = ("scatter",) if old is None else ("scatter", "old")
    pointers = ("dy", "indices", "out") if old is None else ("old", "indices", "dy", "out")
    return Problem(table, ELEMENTS[source.dtype], values, tuple(told), pointers, what)


def read_backward(
    views: Mapping[str, ArrayView], options: Options, targets: tuple[str | None, ...]
) -> Reading:
    """Gradients of rows that are added."""
    dy, indices, rows = views["dy"], views["indices"], options["rows"]
    if dy.dtype not in ELEMENTS:
        raise DtypeError(f"dy has dtype {dy.dtype}; takes {', '.join(ELEMENTS)}")
    _unit("dy", dy)
    _wanted(dy.dtype, targets)
    flags = _indices("indices", indices)
    if not isinstance(rows, int) or rows < 0:
        raise OptionError(f"rows is {rows!r}; takes how many rows the weight has")
    shapes = {"dy": dy.shape, "indices": indices.shape}
    found = moves.EMBEDDING_BACKWARD.infer(shapes, given={"V": rows})
    count, inner = found.sizes["M"], found.sizes["I"]
    result = Result((rows, inner), dy.dtype)
    if rows * inner == 0:
        return Reading(None, (result,))
    flat = dy.matrix("dy")
    skipped = _padding(options["padding_idx"], rows)
    what = f"embedding_backward of {count} rows of {inner} to {rows}"
    made = _scattering(what, "dy", flat, (rows, count, inner), flags, skipped, None)
    return Reading(made, (result,))


def _padding(index: int | None, rows: int) -> int:
    if index is None:
        return -1
    if not -rows <= index < rows:
        raise IndexRangeError(f"padding_idx is {index}; there are {rows} rows")
    return index % rows


def _summed(x: ArrayView, source: ArrayView, targets: tuple[str | None, ...]) -> None:
    for name, view in (("x", x), ("source", source)):
        if view.dtype not in ELEMENTS or view.dtype != x.dtype:
            takes = ", ".join(ELEMENTS) if name == "x" else f"that of x, {x.dtype}"
            raise DtypeError(f"{name} has dtype {view.dtype}; takes {takes}")
    _wanted(x.dtype, targets)


def read_index_add(
    views: Mapping[str, ArrayView], options: Options, targets: tuple[str | None, ...]
) -> Reading:
    """Rows that are added to others."""
    x, indices, source = views["x"], views["indices"], views["source"]
    _summed(x, source, targets)
    for name, view in (("x", x), ("source", source)):
        _unit(name, view)
    flags = _indices("indices", indices)
    found = moves.INDEX_ADD.infer({name: view.shape for name, view in views.items()})
    rows, count, inner = (found.sizes[n] for n in ("V", "K", "I"))
    result = Result(x.shape, x.dtype)
    if rows * inner == 0:
        return Reading(None, (result,))
    what = f"index_add of {count} rows of {inner} to {rows}"
    made = _scattering(what, "source", source, (rows, count, inner), flags, -1, x)
    return Reading(made, (result,))


def read_scatter_add(
    views: Mapping[str, ArrayView], options: Options, targets: tuple[str | None, ...]
) -> Reading:
    """Elements that are added to others along an axis."""
    x, indices, source = views["x"], views["indices"], views["source"]
    _summed(x, source, targets)
    for name, view in (("x", x), ("source", source)):
        check_contiguous(name, view)
    flags = _indices("indices", indices)
    found = moves.SCATTER_ADD.infer({name: view.shape for name, view in views.items()})
    outer, size, along, inner = (found.sizes[n] for n in ("O", "V", "K", "I"))
    result = Result(x.shape, x.dtype)
    rows, count = outer * size * inner, outer * along * inner
    if rows == 0:
        return Reading(None, (result,))
    what = f"scatter_add of [{outer}, {along}, {inner}] to [{outer}, {size}, {inner}]"
    old, flat = (replace(v, shape=(v.size, 1), strides=(1, 1)) for v in (x, source))
    sizes, each = (rows, count, 1), (size, max(along, 1), inner)
    return Reading(_scattering(what, "source", flat, sizes, flags, -1, old, each), (result,))


def pose_scatter_add(question: Question) -> Problem:
    """The problem of sizes O, V, K, I."""
    outer, size, along, inner = (max(question.sizes[n], 1) for n in ("O", "V", "K", "I"))
    count = outer * along * inner
    view = _imagined(question.dtype, (count, 1))
    what = f"sums of {count} elements to [{outer}, {size}, {inner}]"
    sizes, each = (outer * size * inner, count, 1), (size, along, inner)
    return _scattering(what, "source", view, sizes, INDEX_64, -1, view, each)


def _posed_sum(question: Question, count: int, old: bool) -> Problem:
    rows, inner = question.sizes["V"], question.sizes["I"]
    view = _imagined(question.dtype, (count, inner))
    what = f"sums of {count} rows of {inner} to {rows}"
    sizes = (max(rows, 1), count, max(inner, 1))
    return _scattering(what, "source", view, sizes, INDEX_64, -1, view if old else None)


def backward(
    arguments: tuple[Any, ...],
    results: tuple[Any, ...],
    gradients: tuple[Any, ...],
    options: Options,
    needs: tuple[bool, ...],
) -> tuple[Any, ...]:
    """Of an embedding: contract ``scatter/1``."""
    operators = sys.modules["ptxgen.torch"]  # which calls this
    (weight, indices), (dy,) = arguments, gradients
    found = operators.embedding_backward(
        dy.contiguous(), indices, rows=weight.shape[0], padding_idx=options["padding_idx"]
    )
    return found, None


def backward_gather(
    arguments: tuple[Any, ...],
    results: tuple[Any, ...],
    gradients: tuple[Any, ...],
    options: Options,
    needs: tuple[bool, ...],
) -> tuple[Any, ...]:
    """Of slices that were read: their gradients are added, each matrix for itself."""
    operators = sys.modules["ptxgen.torch"]  # which calls this
    (x, indices), (dy,) = arguments, gradients
    outer, size, inner = x.shape
    rows = dy.transpose(0, 1).reshape(indices.shape[0], outer * inner)
    found = operators.embedding_backward(rows, indices, rows=size)
    return found.reshape(size, outer, inner).transpose(0, 1), None


def backward_again(
    arguments: tuple[Any, ...],
    results: tuple[Any, ...],
    gradients: tuple[Any, ...],
    options: Options,
    needs: tuple[bool, ...],
) -> tuple[Any, ...]:
    """Of an embedding's gradient: the rows of what its gradient is."""
    operators = sys.modules["ptxgen.torch"]  # which calls this
    (_, indices), (ddw,) = arguments, gradients
    index = options["padding_idx"]
    if index is not None:
        ddw = ddw.index_fill(0, indices.new_tensor([index % ddw.shape[0]]), 0)
    return operators.embedding(ddw, indices), None


def backward_add(
    arguments: tuple[Any, ...],
    results: tuple[Any, ...],
    gradients: tuple[Any, ...],
    options: Options,
    needs: tuple[bool, ...],
) -> tuple[Any, ...]:
    """``dx = dy``, and of the source its rows."""
    operators = sys.modules["ptxgen.torch"]  # which calls this
    (_, indices, _), (dy,) = arguments, gradients
    return dy, None, operators.embedding(dy, indices) if needs[2] else None


def backward_scatter_add(
    arguments: tuple[Any, ...],
    results: tuple[Any, ...],
    gradients: tuple[Any, ...],
    options: Options,
    needs: tuple[bool, ...],
) -> tuple[Any, ...]:
    """``dx = dy``, and of the source what its indices say; zeros where that is none."""
    (_, indices, _), (dy,) = arguments, gradients
    size = dy.shape[1]
    if not needs[2]:
        return dy, None, None
    if size == 0:
        return dy, None, dy.new_zeros(indices.shape)
    there = (indices >= 0) & (indices < size)
    found = dy.gather(1, indices.clamp(0, size - 1).long())
    return dy, None, found.where(there, found.new_zeros(()))


def _operator(name: str) -> Callable[..., Any]:
    """What serves tensors that somebody watches: the functions of these rows have other names."""

    def watched(arguments: tuple[Any, ...], options: tuple[Any, ...]) -> Any:
        return getattr(import_module("ptxgen.torch"), name)(*arguments)

    return watched


OPS = {
    "gather_rows": Op(
        moves.GATHER, read_gather, pose_gather, backward_gather, _operator("gather_rows")
    ),
    "embedding": Op(moves.EMBEDDING, read_embedding, pose_embedding, backward),
    "embedding_backward": Op(
        moves.EMBEDDING_BACKWARD,
        read_backward,
        lambda q: _posed_sum(q, q.sizes["M"], False),
        backward_again,
    ),
    "index_add": Op(
        moves.INDEX_ADD, read_index_add, lambda q: _posed_sum(q, q.sizes["K"], True), backward_add
    ),
    "scatter_add_along": Op(
        moves.SCATTER_ADD,
        read_scatter_add,
        pose_scatter_add,
        backward_scatter_add,
        _operator("scatter_add_along"),
    ),
}
"""The rows of moves with indices."""
CALLS = {name: caller(op) for name, op in OPS.items()}


def _checked(name: str, indices: Any, size: int, check: bool) -> None:
    """Raises IndexRangeError for an index that is none of ``size``, where it can be known without
    waiting, or is asked for.
    """
    framework = framework_of(indices)
    host = framework == "numpy" or (framework == "torch" and indices.device.type == "cpu")
    if not (host or check) or prod(indices.shape) == 0:
        return
    low, high = int(indices.min()), int(indices.max())
    if low < 0 or high >= size:
        wrong = low if low < 0 else high
        raise IndexRangeError(f"{name} has an index {wrong}; takes 0 .. {size - 1}")


def _along(x: Any, axis: int) -> tuple[int, tuple[int, ...]]:
    """An axis from the first on, and the shape. ShapeError if there is no such."""
    shape = tuple(x.shape)
    if not -len(shape) <= axis < len(shape):
        raise ShapeError(f"axis is {axis}; x has shape {list(shape)}")
    return axis % len(shape), shape


@remembered("weight", "indices")
def embedding(
    weight: Any,
    indices: Any,
    *,
    padding_idx: int | None = None,
    check: bool = False,
    out: Any = None,
    stream: Any = None,
    kernel: str | None = None,
) -> Any:
    """``y[..., :] = weight[indices[...], :]``: bits are moved, none is changed.

    Shapes
        ``weight`` ``[V, I]``, ``indices`` ``[...]``; the result ``[..., I]``.
    Dtypes
        ``weight`` of 2, 4 or 8 bytes an element; ``indices`` int32 or int64.
    Options
        ``padding_idx``: the row that gets no gradient. ``check``: waits for the indices, and raises
        for one out of range.
    Errors
        IndexRangeError for an index out of range in host memory, or with ``check``; without it, the
        row of such an index is zeros. ShapeError, DtypeError for what does not fit.
    """
    _checked("indices", indices, weight.shape[0], check)
    return CALLS["embedding"](weight, indices, out, stream, (padding_idx, kernel))


@remembered("x", "indices")
def gather(
    x: Any,
    indices: Any,
    axis: int = 0,
    *,
    check: bool = False,
    stream: Any = None,
    kernel: str | None = None,
) -> Any:
    """The slices of ``x`` along ``axis`` that ``indices`` say, in their order.

    Shapes
        ``x`` ``[..., V, ...]``, V along ``axis``; ``indices`` any; the result has its dimensions in
        the place of V.
    Dtypes, Errors
        As :func:`embedding`; ShapeError for an axis that ``x`` does not have.
    """
    axis, shape = _along(x, axis)
    _checked("indices", indices, shape[axis], check)
    matrices = x.reshape(prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :]))
    found = CALLS["gather_rows"](matrices, indices.reshape(-1), None, stream, (kernel,))
    return found.reshape(shape[:axis] + tuple(indices.shape) + shape[axis + 1 :])


@remembered("dy", "indices")
def embedding_backward(
    dy: Any,
    indices: Any,
    rows: int,
    *,
    padding_idx: int | None = None,
    check: bool = False,
    out: Any = None,
    stream: Any = None,
    kernel: str | None = None,
) -> Any:
    """``dweight[v, :] = sum of dy[p, :] where indices[p] == v``: the gradient of an embedding.

    Shapes
        ``dy`` ``[..., I]``, ``indices`` ``[...]``; the result ``[rows, I]``.
    Dtypes
        ``dy`` float32, bfloat16, float16, float64, int32 or int64, and so is the result.
    Order
        Contract ``scatter/1``: equal indices ascending by position, in the order of ``rows/1``, in
        f32 (f64), rounded once. No atomics: the same bits in every run.
    Options
        ``padding_idx``: the row that gets zeros. ``check``: as of :func:`embedding`; without it, an
        index out of range contributes nothing.
    """
    _checked("indices", indices, rows, check)
    return CALLS["embedding_backward"](dy, indices, out, stream, (rows, padding_idx, kernel))


@remembered("x", "indices", "source")
def index_add(
    x: Any,
    indices: Any,
    source: Any,
    *,
    check: bool = False,
    out: Any = None,
    stream: Any = None,
    kernel: str | None = None,
) -> Any:
    """``y[v, :] = x[v, :] + sum of source[p, :] where indices[p] == v``.

    Shapes
        ``x`` ``[V, I]``, ``indices`` ``[K]``, ``source`` ``[K, I]``; the result ``[V, I]``, which
        may be ``x`` (``out=x``).
    Dtypes, Order, Errors
        As :func:`embedding_backward`; ``x`` is added last, then the sum is rounded.
    """
    _checked("indices", indices, x.shape[0], check)
    return CALLS["index_add"](x, indices, source, out, stream, (kernel,))


def scatter_add(
    x: Any,
    indices: Any,
    source: Any,
    axis: int = 0,
    *,
    check: bool = False,
    stream: Any = None,
    kernel: str | None = None,
) -> Any:
    """``x`` with each element of ``source`` added at its own index along ``axis``.

    Of two dimensions and axis 0: ``y[v, i] = x[v, i] + sum of source[p, i] where indices[p, i] ==
    v``.

    Shapes
        ``x`` ``[..., V, ...]``, ``indices`` and ``source`` ``[..., K, ...]``, V and K along
        ``axis``, and the same else; the result that of ``x``.
    Dtypes, Order, Errors
        As :func:`embedding_backward`: what goes to an element is added in ascending order of K;
        ``x`` is added last, then the sum is rounded.
    """
    axis, shape = _along(x, axis)
    _checked("indices", indices, shape[axis], check)
    sides = prod(shape[:axis]), prod(shape[axis + 1 :])
    given = []
    for name, array in (("x", x), ("indices", indices), ("source", source)):
        own = tuple(array.shape)
        if len(own) != len(shape) or any(
            a != b for i, (a, b) in enumerate(zip(own, shape, strict=True)) if i != axis
        ):
            raise ShapeError(
                f"{name} has shape {list(own)}, x {list(shape)}; they may differ along axis {axis} "
                "only"
            )
        given.append(array.reshape(sides[0], own[axis], sides[1]))
    return CALLS["scatter_add_along"](*given, None, stream, (kernel,)).reshape(shape)
