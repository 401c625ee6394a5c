"""Indexing: gather, embedding and its gradient, index_add, scatter_add, roll."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import prod
from typing import Annotated, Any

from ptxgen import lazy
from ptxgen.errors import DtypeError, IndexRangeError, ShapeError
from ptxgen.numerics import gather_scatter
from ptxgen.numerics.dtype import ELEMENTS, PARTS, SINGLE
from ptxgen.numerics.formula import cast, where
from ptxgen.numerics.option import Axis, Bool, Integer, Kernel
from ptxgen.numerics.signature import Signature
from ptxgen.ops.pointwise import Pointwise
from ptxgen.ops.views import (
    alignment,
    axis_of,
    check_contiguous,
    check_dtype,
    dense,
    single,
    strided_rows,
)
from ptxgen.program.buffer import Buffer
from ptxgen.program.build import Builder, ProgramBuilder
from ptxgen.program.operation import Backward, Gradients, op
from ptxgen.program.parameters import Out, OverX
from ptxgen.spec import Problem
from ptxgen.spec.base import GRID_MAX
from ptxgen.spec.gather_scatter import (
    BAG_MAX,
    BAG_THREADS,
    BYTES_MAX,
    COUNT_MAX,
    CTA_ROWS,
    INDEX_64,
    SHARED,
    WEIGHTS_F32,
    gather_lanes,
)

INDICES = ("int32", "int64")
MOVED = (
    *("float16", "bfloat16", "float32", "float64", "int32", "int64"),
    *("int16", "uint16", "uint32", "uint64", "int8", "uint8", "bool"),
    *("float8_e4m3fn", "float8_e5m2", "complex64", "complex128"),
)
"""Dtypes that gathers copy, bit by bit."""
Row = Annotated[int | None, Integer(-(1 << 31), (1 << 31) - 1)]
Rows = Annotated[int, Integer(0, (1 << 31) - 1)]
Shifts = Annotated[int, Integer(-(1 << 63) + 1, (1 << 63) - 1)]


# -- indices ------------------------------------------------------------------------------------
def _flags(name: str, view: Buffer) -> int:
    """Returns the kernel flags of ``indices``: INDEX_64 for int64, 0 for int32. Raises ShapeError
    unless they are contiguous and aligned to their elements.
    """
    check_contiguous(name, view)
    alignment(name, view, 0)
    return INDEX_64 if view.dtype == "int64" else 0


def _check_range(name: str, indices: Any, size: int, of: str) -> None:
    """Raises IndexRangeError for an index outside 0 .. ``size - 1``; waits for the array. ``of``:
    the indexed axis, for the message.
    """
    if 0 in indices.shape:
        return
    low, high = int(indices.min()), int(indices.max())
    if low < 0 or high >= size:
        wrong = low if low < 0 else high
        takes = f"takes 0 .. {size - 1}" if size else "there is nothing"
        raise IndexRangeError(f"{name} has an index {wrong}, along {of} of {size}; {takes}")


def _checks(of: str, size: Callable[[Mapping[str, Any], Mapping[str, Any]], int]) -> Any:
    """Returns a check of a call's ``indices``. It raises IndexRangeError for an index below 0, or
    not below ``size(arrays, options)``. ``of``: the indexed argument, for the message.
    """

    def check(arrays: Mapping[str, Any], options: Mapping[str, Any]) -> None:
        _check_range("indices", arrays["indices"], size(arrays, options), of)

    return check


def _padding(index: int | None, rows: int) -> int:
    if index is None:
        return -1
    if not -rows <= index < rows:
        raise IndexRangeError(f"padding_idx is {index}; there are {rows} rows")
    return index % rows


def _unit(name: str, view: Buffer) -> None:
    if view.size and view.shape[-1] > 1 and view.strides[-1] != 1:
        raise strided_rows(name, view)


# -- gather -------------------------------------------------------------------------------------
def _record_gather(
    b: ProgramBuilder,
    what: str,
    name: str,
    x: Buffer,
    indices: Buffer,
    sizes: tuple[int, int, int, int],
    y: Buffer,
    kernel: str | None,
) -> None:
    """Records ``y[o, k, :] = x[o, indices[k], :]``; ``sizes``: O, V, K, I of ``x`` [O, V, I]."""
    if b.abstract or y.size == 0:
        return
    flags, (outer, size, count, inner) = _flags("indices", indices), sizes
    _unit(name, x)
    dense("out", y, 0)
    width = inner * x.itemsize
    if width > BYTES_MAX or outer * count > GRID_MAX:
        raise ShapeError(
            f"{what}: {outer * count} rows of {width} bytes; takes 2^31 - 1 of {BYTES_MAX} bytes"
        )
    down = x.strides[-2] if size > 1 else 0
    along = x.strides[0] if outer > 1 else 0
    low = alignment(name, x, down, along, inner)
    units = -(-width // max(w for w in (16, 4, 2, 1) if w <= low))
    values = (
        ("OUTER", outer),
        ("COUNT", count),
        ("BYTES", width),
        ("LANES", gather_lanes(outer * count, units)),
        ("ALIGN", min(low, alignment("out", y, 0))),
    )
    scalars = (
        ("LDX", down * x.itemsize),
        ("LOX", along * x.itemsize),
        ("SIZE", size),
        ("FLAGS", flags),
    )
    bind = {"x": x, "indices": indices, "y": y}
    b.launch(lambda: Problem(("gather",), "any", values, scalars, what), bind, kernel)


def _movable(name: str, view: Buffer) -> None:
    if view.dtype not in MOVED:
        raise DtypeError(f"{name} has dtype {view.dtype}; takes {', '.join(MOVED)}")


def _summed_rows(b: Builder, dy: Any, indices: Any, **how: Any) -> Any:
    """Returns ``embedding_backward`` of ``dy`` [..., I]; of complex numbers, that of their parts as
    rows of 2 I elements.
    """
    if b.dtype(dy) not in PARTS:
        return b.embedding_backward(dy, indices, **how)
    *lead, inner = dy.shape
    parts = b.reshape(b.view_as_real(dy), (*lead, 2 * inner))
    found = b.embedding_backward(parts, indices, **how)
    return b.view_as_complex(b.reshape(found, (found.shape[0], inner, 2)))


def _embedding_vjp(b: Builder, at: Backward) -> Gradients:
    """Gradient of ``embedding`` by the weight, in the order of contract ``scatter/1``."""
    weight, padding = at["weight"], at.options["padding_idx"]
    dy, indices = b.packed(at.dys[0]), b.packed(at["indices"])
    how = {"rows": weight.shape[0], "padding_idx": padding}
    return {"weight": _summed_rows(b, dy, indices, **how)}


@op(
    forms=gather_scatter.EMBEDDING,
    vjp=_embedding_vjp,
    checks=_checks("weight", lambda x, _: x["weight"].shape[0]),
    dtypes={"indices": "int64"},
)
def embedding(
    b: ProgramBuilder,
    weight: Buffer,
    indices: Buffer,
    *,
    padding_idx: Row = None,
    check: Bool = False,
    out: Out = None,
    kernel: Kernel = None,
) -> Buffer:
    """``y[..., :] = weight[indices[...], :]``: bits are copied unchanged.

    Shapes
        ``weight`` ``[V, I]``, ``indices`` ``[...]``; the result ``[..., I]``.
    Dtypes
        ``weight`` of 1 to 16 bytes an element, and so the result; ``indices`` int32 or int64.
    Order
        Nothing is added. :func:`ptxgen.reference.embedding` returns the same bits.
    Options
        ``padding_idx``: the row that gets no gradient. ``check``: waits for the indices, and raises
        for one out of range.
    Errors
        IndexRangeError for an index out of range in host memory, or with ``check``; without it, the
        row of such an index is zeros. IndexRangeError for a ``padding_idx`` out of range.
        ShapeError, DtypeError, OptionError, DeviceError, GradError or CompileError, before anything
        is launched or written.
    Source
        ``ptxgen/ops/indexing.py``, ``ptxgen/tiles/gather_scatter.py``.
    """
    _movable("weight", weight)
    check_dtype("indices", indices.dtype, INDICES)
    found = gather_scatter.EMBEDDING.infer({"weight": weight.shape, "indices": indices.shape})
    _padding(padding_idx, weight.shape[0])
    y = b.result(found.results[0], weight.dtype, single(out))
    sizes = 1, found.sizes["V"], found.sizes["M"], found.sizes["I"]
    what = f"embedding of {sizes[2]} rows of {sizes[3]}"
    _record_gather(b, what, "weight", weight, indices, sizes, y, kernel)
    return y


@op(
    forms=gather_scatter.EMBEDDING_BAG,
    oracle=lazy.function("ptxgen.oracle.gather_scatter:embedding_bag"),
    public=False,
    dtypes={"indices": "int64", "weights": "float32"},
)
def embedding_bag(
    b: ProgramBuilder,
    x: Buffer,
    indices: Buffer,
    weights: Buffer,
    *,
    out: Out = None,
    kernel: Kernel = None,
) -> Buffer:
    """``y[t] = sum over j of weights[t, j] * x[indices[t, j]]``, for up to ``BAG_MAX`` rows each.

    In f32, each product rounded once, added in the order of ``rows/1``, the sum rounded once. A row
    of an index out of range is zeros. ``weights`` are float32 or as ``x``.
    """
    check_dtype("x", x.dtype, SINGLE)
    check_dtype("indices", indices.dtype, INDICES)
    check_dtype("weights", weights.dtype, tuple(dict.fromkeys(("float32", x.dtype))))
    shapes = {"x": x.shape, "indices": indices.shape, "weights": weights.shape}
    found = gather_scatter.EMBEDDING_BAG.infer(shapes)
    count, each, size, inner = (found.sizes[n] for n in ("T", "J", "V", "I"))
    y = b.result(found.results[0], x.dtype, single(out))
    if b.abstract or y.size == 0:
        return y
    if each > BAG_MAX or count * -(-inner // BAG_THREADS) > GRID_MAX:
        raise ShapeError(
            f"embedding_bag: {count} bags of {each} rows of {inner}; takes at most {BAG_MAX} rows "
            "and 2^38 elements"
        )
    if size == 0 < each:  # every index is out of range; kernels read row 0 in place of such rows
        x = b.filled((1, inner), x.dtype, 0.0, x)
    flags = _flags("indices", indices)
    _unit("x", x)
    dense("weights", weights, 0, result=False)
    dense("out", y, 0)
    down = x.strides[0] if size > 1 else 0
    low = min(alignment("x", x, down, inner), alignment("out", y, inner))
    values = (
        ("ROWS", count),
        ("EACH", each),
        ("INNER", inner),
        ("ITEM", x.itemsize),
        ("ALIGN", low),
    )
    flags |= WEIGHTS_F32 if weights.dtype == "float32" else 0
    scalars = ("LDX", down), ("SIZE", size), ("FLAGS", flags)
    what, of = f"{count} bags of {each} rows of {inner}", ELEMENTS[x.dtype]
    bind = {"x": x, "indices": indices, "weights": weights, "y": y}
    b.launch(lambda: Problem(("bag",), of, values, scalars, what), bind, kernel)
    return y


def _gather_vjp(b: Builder, at: Backward) -> Gradients:
    """Gradient of ``gather``: adds the gradients of equal indices, by contract ``scatter/1``."""
    x, indices, axis = at["x"], at["indices"], at.options["axis"]
    axis, shape = axis % len(x.shape), tuple(x.shape)
    outer, size, inner = prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :])
    count = prod(indices.shape)
    dy = b.reshape(b.packed(at.dys[0]), (outer, count, inner))
    rows = b.reshape(b.packed(b.permute(dy, (1, 0, 2))), (count, outer * inner))
    flat = b.reshape(b.packed(indices), (count,))
    found = _summed_rows(b, rows, flat, rows=size)
    dx = b.permute(b.reshape(found, (size, outer, inner)), (1, 0, 2))
    return {"x": b.reshape(b.packed(dx), shape)}


@op(
    forms=gather_scatter.GATHER,
    any_rank=True,
    vjp=_gather_vjp,
    checks=_checks("x", lambda x, how: x["x"].shape[how["axis"]]),
    dtypes={"indices": "int64"},
)
def gather(
    b: ProgramBuilder,
    x: Buffer,
    indices: Buffer,
    axis: Axis = 0,
    *,
    check: Bool = False,
    out: Out = None,
    kernel: Kernel = None,
) -> Buffer:
    """The slices of ``x`` along ``axis`` at ``indices``, in their order (``numpy.take``).

    Shapes
        ``x`` ``[..., V, ...]``, V along ``axis``; ``indices`` any; in the result its dimensions
        replace V.
    Dtypes
        ``x`` of 1 to 16 bytes an element, and so the result; ``indices`` int32 or int64.
    Order
        Nothing is added. :func:`ptxgen.reference.gather` returns the same bits.
    Errors
        As :func:`ptxgen.embedding`; ShapeError for an axis that ``x`` does not have.
    Source
        ``ptxgen/ops/indexing.py``, ``ptxgen/tiles/gather_scatter.py``.
    """
    _movable("x", x)
    check_dtype("indices", indices.dtype, INDICES)
    at = axis_of("x", x, axis)
    lead, trail = x.shape[:at], x.shape[at + 1 :]
    sizes = prod(lead), x.shape[at], prod(indices.shape), prod(trail)
    matrices = b.reshape(x, (sizes[0], sizes[1], sizes[3]))
    y = b.result((*lead, *indices.shape, *trail), x.dtype, single(out))
    flat = b.reshape(indices, (sizes[2],))
    _record_gather(b, f"gather {list(sizes)}", "x", matrices, flat, sizes, y, kernel)
    return y


# -- scatter ------------------------------------------------------------------------------------
def _record_scatter(
    b: ProgramBuilder,
    what: str,
    name: str,
    source: Buffer,
    indices: Buffer,
    sizes: tuple[int, int, int],
    skipped: int,
    old: Buffer | None,
    y: Buffer,
    kernel: str | None,
    each: tuple[int, int, int] | None = None,
) -> None:
    """Records ``y[v] = old[v] + sum of source[p] where indices[p] == v``; v counts rows of y, p
    rows of ``source``. ``old`` may be None.

    ``what``: the call, and ``name``: the argument ``source``, for messages. ``sizes``: rows of y,
    rows of source, elements per row. ``skipped``: an index whose rows are left out. ``each``: sizes
    (V, K, I) of a scatter of single elements: V bounds an index, K counts indices along the axis, I
    is the size of the dimensions after it.
    """
    rows, count, inner = sizes
    if b.abstract or rows * inner == 0:
        return
    flags = _flags("indices", indices)
    dense("out", y, 0)
    size, axis, width = each or (rows, max(count, 1), 1)
    leaves = max(-(-count // 1024), 1) * inner
    blocks = (-(-rows // CTA_ROWS[0]) + -(-count // SHARED)) * -(-inner // 32)
    if count > COUNT_MAX or leaves > 1 << 24 or blocks > GRID_MAX:
        raise ShapeError(
            f"{what}: {count} contributions to {rows} rows of {inner}; takes at most {COUNT_MAX} "
            f"contributions, 2^24 elements of every 1024th, and 2^40 elements"
        )
    down = source.strides[-2] if count > 1 else 0
    low = alignment(name, source, down, inner)
    scalars: list[tuple[str, int | float]] = [("LDY", down), ("SKIPPED", skipped), ("FLAGS", flags)]
    scalars += [("SIZE", size), ("ALONG", axis), ("WIDTH", width)]
    if old is not None:
        along = old.strides[0] if rows > 1 else 0
        low = min(low, alignment("x", old, along))
        scalars.append(("LDO", along))
    low = min(low, alignment("out", y, inner))
    values = (
        ("ROWS", rows),
        ("INNER", inner),
        ("COUNT", count),
        ("ITEM", source.itemsize),
        ("ALIGN", low),
    )
    table = ("scatter",) if old is None else ("scatter", "old")
    bind = {"dy": source, "indices": indices} | ({} if old is None else {"old": old})
    of = ELEMENTS[source.dtype]
    b.launch(lambda: Problem(table, of, values, tuple(scalars), what), {**bind, "out": y}, kernel)


def _summed(x: Buffer, source: Buffer) -> None:
    for name, view in (("x", x), ("source", source)):
        if view.dtype not in ELEMENTS or view.dtype != x.dtype:
            takes = ", ".join(ELEMENTS) if name == "x" else f"that of x, {x.dtype}"
            raise DtypeError(f"{name} has dtype {view.dtype}; takes {takes}")


_zeroed = Pointwise(
    lambda x, row, index: where(cast(row, "i64") == cast(index, "i64"), 0, x), "zeroed"
)


def _backward_vjp(b: Builder, at: Backward) -> Gradients:
    """Gradient of ``embedding_backward`` by dy: gathered rows, zeros for ``padding_idx``."""
    ddw, indices, padding = at.dys[0], b.packed(at["indices"]), at.options["padding_idx"]
    found = b.embedding(b.packed(ddw), indices)
    if padding is not None:
        row = padding % at.options["rows"]
        found = b.call(_zeroed, found, row, b.unsqueeze(indices, -1), out_dtype=b.dtype(found))
    return {"dy": found}


@op(
    forms=gather_scatter.EMBEDDING_BACKWARD,
    vjp=_backward_vjp,
    checks=_checks("rows", lambda _, how: int(how["rows"])),
    dtypes={"indices": "int64"},
    sizes={"rows": "V"},
)
def embedding_backward(
    b: ProgramBuilder,
    dy: Buffer,
    indices: Buffer,
    rows: Rows,
    *,
    padding_idx: Row = None,
    check: Bool = False,
    out: Out = None,
    kernel: Kernel = None,
) -> Buffer:
    """``dweight[v, :] = sum of dy[p, :] where indices[p] == v``: the gradient of an embedding.

    Shapes
        ``dy`` ``[..., I]``, ``indices`` ``[...]``; the result ``[rows, I]``.
    Dtypes
        ``dy`` float32, bfloat16, float16, float64, int32 or int64, and so is the result;
        ``indices`` int32 or int64.
    Order
        Contract ``scatter/1``: equal indices ascending by position, in the order of ``rows/1``, in
        f32 (f64), rounded once. No atomics: the same bits in every run.
        :func:`ptxgen.reference.embedding_backward` returns the same bits.
    Options
        ``padding_idx``: the row that gets zeros. ``check``: as of :func:`ptxgen.embedding`; without
        it, an index out of range contributes nothing.
    Errors
        As :func:`ptxgen.embedding`.
    Source
        ``ptxgen/ops/indexing.py``, ``ptxgen/tiles/gather_scatter.py``.
    """
    if dy.dtype not in ELEMENTS:
        raise DtypeError(f"dy has dtype {dy.dtype}; takes {', '.join(ELEMENTS)}")
    check_dtype("indices", indices.dtype, INDICES)
    shapes = {"dy": dy.shape, "indices": indices.shape}
    found = gather_scatter.EMBEDDING_BACKWARD.infer(shapes, given={"V": rows})
    count, inner = found.sizes["M"], found.sizes["I"]
    skipped = _padding(padding_idx, rows) if rows else -1
    y = b.result((rows, inner), dy.dtype, single(out))
    if not b.abstract and y.size:
        _unit("dy", dy)
        what = f"embedding_backward of {count} rows of {inner} to {rows}"
        flat, sizes = dy.matrix("dy"), (rows, count, inner)
        _record_scatter(b, what, "dy", flat, indices, sizes, skipped, None, y, kernel)
    return y


def _add_vjp(b: Builder, at: Backward) -> Gradients:
    """Gradients of ``index_add``: ``dx = dy``, ``dsource[p, :] = dy[indices[p], :]``."""
    found = {"x": at.dys[0]}
    if "source" in at.needs:
        found["source"] = b.embedding(b.packed(at.dys[0]), b.packed(at["indices"]))
    return found


@op(
    forms=gather_scatter.INDEX_ADD,
    vjp=_add_vjp,
    checks=_checks("x", lambda x, _: x["x"].shape[0]),
    dtypes={"indices": "int64"},
)
def index_add(
    b: ProgramBuilder,
    x: Buffer,
    indices: Buffer,
    source: Buffer,
    *,
    check: Bool = False,
    out: OverX = None,
    kernel: Kernel = None,
) -> Buffer:
    """``y[v, :] = x[v, :] + sum of source[p, :] where indices[p] == v``.

    Shapes
        ``x`` ``[V, I]``, ``indices`` ``[K]``, ``source`` ``[K, I]``; the result ``[V, I]``, which
        may be ``x`` (``out=x``).
    Dtypes
        ``x`` float32, bfloat16, float16, float64, int32 or int64, and so ``source`` and the result;
        ``indices`` int32 or int64.
    Order
        That of :func:`ptxgen.embedding_backward`; ``x`` is added last, then the sum is rounded.
        :func:`ptxgen.reference.index_add` returns the same bits.
    Errors
        As :func:`ptxgen.embedding`; without ``check``, an index out of range contributes nothing.
    Source
        ``ptxgen/ops/indexing.py``, ``ptxgen/tiles/gather_scatter.py``.
    """
    _summed(x, source)
    check_dtype("indices", indices.dtype, INDICES)
    shapes = {"x": x.shape, "indices": indices.shape, "source": source.shape}
    found = gather_scatter.INDEX_ADD.infer(shapes)
    rows, count, inner = (found.sizes[n] for n in ("V", "K", "I"))
    y = b.result(x.shape, x.dtype, single(out))
    for name, view in (("x", x), ("source", source)):
        if not b.abstract:
            _unit(name, view)
    what, sizes = f"index_add of {count} rows of {inner} to {rows}", (rows, count, inner)
    _record_scatter(b, what, "source", source, indices, sizes, -1, x, y, kernel)
    return y


def _scatter_vjp(b: Builder, at: Backward) -> Gradients:
    """Gradients of ``scatter_add``: ``dx = dy``; dsource gathers dy, with 0 for an index out of
    range.
    """
    dy = at.dys[0]
    if "source" not in at.needs:
        return {"x": dy}
    indices, axis = b.packed(at["indices"]), at.options["axis"] % len(dy.shape)
    shape, own = tuple(dy.shape), tuple(indices.shape)
    outer, size, inner = prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :])
    shape3 = (outer, own[axis], inner)
    lead = b.reshape(_ramp(b, outer, indices), (outer, 1, 1))
    trail = b.reshape(_ramp(b, inner, indices), (1, 1, inner))
    found = b.call(_flat_index, b.reshape(indices, shape3), lead, trail, size, inner)
    flat = b.reshape(b.packed(dy), (outer * size * inner, 1))
    source = b.embedding(flat, b.reshape(found, (prod(shape3),)))
    return {"x": dy, "source": b.reshape(source, own)}


def _ramp(b: Builder, count: int, like: Any) -> Any:
    """Returns the vector 0, 1 ... ``count - 1``, int64."""
    return b.cumsum(b.filled((count,), "int64", 1, like), exclusive=True)


def flat_indices(b: Builder, indices: Any, width: int) -> Any:
    """Returns ``row * width + index`` for each index of each row of ``indices``, as a vector; -1
    for an index out of range.
    """
    rows, count = prod(indices.shape[:-1]), indices.shape[-1]
    lead = b.reshape(_ramp(b, rows, indices), (rows, 1))
    own = b.reshape(b.packed(indices), (rows, count))
    return b.reshape(b.call(_flat_index, own, lead, 0, width, 1), (rows * count,))


_flat_index = Pointwise(
    lambda index, lead, behind, size, inner: where(
        (cast(index, "i64") >= 0) & (cast(index, "i64") < size),
        (lead * size + cast(index, "i64")) * inner + behind,
        -1,
    ),
    "place",
)


@op(
    forms=gather_scatter.SCATTER_ADD,
    any_rank=True,
    vjp=_scatter_vjp,
    checks=_checks("x", lambda x, how: x["x"].shape[how["axis"]]),
    dtypes={"indices": "int64"},
)
def scatter_add(
    b: ProgramBuilder,
    x: Buffer,
    indices: Buffer,
    source: Buffer,
    axis: Axis = 0,
    *,
    check: Bool = False,
    out: OverX = None,
    kernel: Kernel = None,
) -> Buffer:
    """Adds each element of ``source`` to ``x`` at its own index along ``axis``.

    In 2-D, along axis 0: ``y[v, i] = x[v, i] + sum of source[p, i] where indices[p, i] == v``.

    Shapes
        ``x`` ``[..., V, ...]``, ``indices`` and ``source`` ``[..., K, ...]``, V and K along
        ``axis``, other dimensions equal; the result has the shape of ``x``, and may be it
        (``out=x``).
    Dtypes
        ``x`` float32, bfloat16, float16, float64, int32 or int64, and so ``source`` and the result;
        ``indices`` int32 or int64.
    Order
        That of :func:`ptxgen.embedding_backward`: contributions to an element are added in
        ascending order along ``axis``; ``x`` is added last, then the sum is rounded.
        :func:`ptxgen.reference.scatter_add` returns the same bits.
    Errors
        As :func:`ptxgen.embedding`; without ``check``, an index out of range contributes nothing.
    Source
        ``ptxgen/ops/indexing.py``, ``ptxgen/tiles/gather_scatter.py``.
    """
    at = axis_of("x", x, axis)
    for name, view in (("indices", indices), ("source", source)):
        own = view.shape
        if len(own) != len(x.shape) or any(
            m != n for i, (m, n) in enumerate(zip(own, x.shape, strict=True)) if i != at
        ):
            raise ShapeError(
                f"{name} has shape {list(own)}, x {list(x.shape)}; they may differ along axis {at} "
                "only"
            )
    if indices.shape != source.shape:
        raise ShapeError(
            f"source has shape {list(source.shape)}; takes that of indices, {list(indices.shape)}"
        )
    _summed(x, source)
    check_dtype("indices", indices.dtype, INDICES)
    y = b.result(x.shape, x.dtype, single(out))
    if b.abstract or x.size == 0:
        return y
    for name, view in (("x", x), ("source", source)):
        check_contiguous(name, view)
    outer, size, along = prod(x.shape[:at]), x.shape[at], source.shape[at]
    inner = prod(x.shape[at + 1 :])
    what = f"scatter_add of [{outer}, {along}, {inner}] to [{outer}, {size}, {inner}]"
    old, flat = (replace(v, shape=(v.size, 1), strides=(1, 1)) for v in (x, source))
    sizes, each = (x.size, source.size, 1), (size, max(along, 1), inner)
    _record_scatter(b, what, "source", flat, indices, sizes, -1, old, y, kernel, each)
    return y


# -- roll ---------------------------------------------------------------------------------------
ROLL = Signature("roll", ("x",), ("out",), {"": {"x": "... N", "out": "... N"}}, ("M", "N"))


def _roll_vjp(b: Builder, at: Backward) -> Gradients:
    """Gradient of ``roll``: dy, rolled by ``-shifts``."""
    return {"x": b.roll(at.dys[0], -at.options["shifts"], at.options["axis"])}


@op(forms=ROLL, any_rank=True, vjp=_roll_vjp, backwards=True)
def roll(
    b: ProgramBuilder, x: Buffer, shifts: Shifts, axis: Axis = 0, *, out: Out = None
) -> Buffer:
    """``y[i] = x[(i - shifts) % n]`` along ``axis`` of n elements: a circular shift.

    Shapes
        ``x`` any with an axis, and so the result.
    Dtypes
        Those of pointwise functions; the result has that of ``x``.
    Order
        Nothing is computed: :func:`ptxgen.layout.concat` copies the two parts. The gradient is
        rolled back.
        :func:`ptxgen.reference.roll` returns the same bits.
    Errors
        ShapeError for an axis that ``x`` does not have, DtypeError, OptionError, DeviceError or
        CompileError, before anything is launched or written.
    """
    at = axis_of("x", x, axis)
    size, target = x.shape[at], single(out)
    if b.abstract:
        return b.result(x.shape, x.dtype, target)
    by = shifts % max(size, 1)
    if by == 0:
        return b.copied(x, target)
    parts = b.narrow(x, at, size - by, by), b.narrow(x, at, 0, size - by)
    found: Buffer = b.concat(parts, at, out=target)
    return found
