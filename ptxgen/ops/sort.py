"""Sorting and what follows from it: ``sort``, ``argsort``, ``searchsorted``, ``bincount``,
``unique``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from math import prod
from typing import Annotated, Any

from ptxgen import lazy
from ptxgen.errors import DtypeError, IndexRangeError, ShapeError
from ptxgen.numerics.formula import cast, where
from ptxgen.numerics.functions import minimum
from ptxgen.numerics.option import Axis, Bool, Integer, Kernel
from ptxgen.numerics.sort import (
    ARGSORT,
    BINCOUNT,
    DIGIT_BITS,
    ELEMENTS_MAX,
    KEYS,
    SEARCHSORTED,
    SORT,
    UNIQUE,
)
from ptxgen.ops.indexing import flat_indices
from ptxgen.ops.pointwise import Pointwise
from ptxgen.ops.views import axis_of, check_dtype, dense, results, single
from ptxgen.program.buffer import Buffer
from ptxgen.program.build import Builder, ProgramBuilder
from ptxgen.program.operation import Backward, Gradients, op
from ptxgen.program.parameters import Out
from ptxgen.spec import Problem
from ptxgen.spec.sort import RIGHT, ROW_MAX
from ptxgen.tiles import TABLES

ROWS, PASS = ("sort", "row"), ("sort", "pass")
COUNTED = ("int32", "int64", "int8", "uint8")
"""Dtypes of integers that ``bincount`` counts."""
COMPARED = ("float32", "float64", "bfloat16", "float16", "int32", "int64", "int8", "uint8", "bool")
"""Dtypes of ``unique``: those that pointwise functions compare, after a cast of 8 bits."""
MOVED = {"uint32": "int32", "uint64": "int64"}
"""Dtypes as which pointwise copies move bits, of those that they do not take."""
Length = Annotated[int, Integer(0, ELEMENTS_MAX - 1)]


# -- sort ---------------------------------------------------------------------------------------
def _check(name: str, x: Buffer) -> None:
    """Raises DtypeError or ShapeError for an array that no kernel sorts."""
    check_dtype(name, x.dtype, tuple(KEYS))
    if not x.shape:
        raise ShapeError(f"{name} has no dimensions; takes at least one")
    if x.size > ELEMENTS_MAX:
        raise ShapeError(f"{name} has {x.size} elements; takes at most {ELEMENTS_MAX}")


def _bits(x: Buffer) -> Buffer:
    """Returns a view of ``x`` whose copies keep every bit: pairs of bytes for 16 bits, since floats
    of 16 bits are converted, which changes NaN.
    """
    if x.itemsize != 2:
        return replace(x, dtype=MOVED.get(x.dtype, x.dtype))
    strides = (*(2 * step for step in x.strides), 1)
    return replace(x, dtype="uint8", shape=(*x.shape, 2), strides=strides)


def copy_bits(b: ProgramBuilder, x: Buffer, out: Buffer | None = None) -> Buffer:
    """Records a copy of the bits of ``x`` into contiguous memory, or into ``out``."""
    target = b.empty(x.shape, x.dtype) if out is None else out
    b.copied(_bits(x), _bits(target))
    return target


def _record(
    b: ProgramBuilder,
    x: Buffer,
    values: Buffer | None,
    indices: Buffer | None,
    descending: bool = False,
    kernel: str | None = None,
    bits: int | None = None,
) -> None:
    """Records the sort of the contiguous rows of ``x``; either result may be None. ``bits``: if
    given, sorts long rows by so many low bits alone.
    """
    width, key = x.shape[-1], KEYS[x.dtype]
    count = x.size // width
    sizes, what = (("ROWS", count), ("COLS", width)), f"sort M={count} N={width}"
    flip = ("FLIP", (1 << 32) - 1 if descending else 0)
    if width <= ROW_MAX and kernel != TABLES[PASS].routes[0].of(key).name:
        bind = {"x": x, "y": values, "indices": indices}
        b.launch(lambda: Problem(ROWS, key, sizes, (flip,), what), bind, kernel)
        return
    source, last = None, max(-(-(bits or 8 * x.itemsize) // DIGIT_BITS), 1) - 1
    for each in range(last + 1):
        y, target, found = values, None, indices
        if each < last:
            y, found = b.empty(x.shape, x.dtype), None
            target = None if indices is None else b.empty(x.shape, "int32")
        problem = partial(Problem, PASS, key, sizes, (("SHIFT", DIGIT_BITS * each), flip), what)
        bind = {"x": x, "source": source, "y": y, "target": target, "indices": found}
        b.launch(problem, bind, kernel)
        x, source = y or x, target


def _sorted(
    b: ProgramBuilder,
    x: Buffer,
    axis: int,
    descending: bool,
    memory: tuple[tuple[str, str, Buffer | None], ...],
    kernel: str | None,
) -> tuple[Buffer, ...]:
    """Records the sort of ``x`` along ``axis``, and returns its results. ``memory``: for each
    result its parameter in kernels, its name for messages, and the caller's array.
    """
    _check("x", x)
    at = axis_of("x", x, axis)
    dtypes = {"values": x.dtype, "indices": "int64"}
    targets = [(kind, b.result(x.shape, dtypes[kind], given, name)) for kind, name, given in memory]
    if b.abstract or x.size == 0:
        return tuple(y for _, y in targets)
    for (_, name, given), (_, y) in zip(memory, targets, strict=True):
        if given is not None:
            dense(name, y, 0)
    last = at == len(x.shape) - 1
    rows = x if last else b.move(x, at, -1)
    rows = rows if rows.contiguous else copy_bits(b, rows)
    found = {kind: y if last else b.empty(rows.shape, y.dtype) for kind, y in targets}
    _record(b, rows, found.get("values"), found.get("indices"), descending, kernel)
    if not last:
        for kind, y in targets:
            copy_bits(b, b.move(found[kind], -1, at), y)
    return tuple(y for _, y in targets)


def _sort_vjp(b: Builder, at: Backward) -> Gradients:
    """Gradient of ``sort``: ``dx[indices[i]] = dy[i]``, gathered by the inverse permutation."""
    dy, indices = at.dys[0], at.results[1]
    axis, shape = at.options["axis"], tuple(at["x"].shape)
    if 0 in shape:
        return {"x": dy}
    rows = b.packed(b.move(dy, axis, -1))
    order = b.packed(b.move(indices, axis, -1))
    moved, size = tuple(rows.shape), prod(shape)
    inverse = b.placed(flat_indices(b, order, moved[-1]))
    found = b.embedding(b.reshape(rows, (size, 1)), inverse)
    return {"x": b.move(b.reshape(found, moved), -1, axis)}


@op(forms=SORT, any_rank=True, vjp=_sort_vjp)
def sort(
    b: ProgramBuilder,
    x: Buffer,
    axis: Axis = -1,
    *,
    descending: Bool = False,
    out: Out = None,
    kernel: Kernel = None,
) -> tuple[Buffer, Buffer]:
    """``values = x[indices]`` along ``axis``, ascending: elements in order, and their indices.

    Shapes
        ``x`` any with an axis, at most 2^31 - 1 elements; both results have its shape. ``out`` is a
        pair.
    Dtypes
        float32, bfloat16, float16, float64, bool, and signed and unsigned integers of 8 to 64 bits;
        the values have the dtype of ``x``, the indices are int64.
    Order
        Contract ``sort/1``: stable, so equal elements keep their order, with ``descending``, too.
        -0.0 equals +0.0, and NaN are equal and larger than any number. Bits are moved unchanged.
        :func:`ptxgen.reference.sort` returns the same bits.
    Errors
        ShapeError for an axis that ``x`` does not have, DtypeError, OptionError, DeviceError,
        GradError or CompileError, before anything is launched or written.
    Source
        ``ptxgen/ops/sort.py``, ``ptxgen/tiles/sort.py``.

    >>> import numpy, ptxgen
    >>> ptxgen.reference.sort(numpy.array([3, 1, 2, 1], "i4"))
    (array([1, 1, 2, 3], dtype=int32), array([1, 3, 2, 0]))
    """
    memory = results(out, 2)
    named = ("values", "out[0]", memory[0]), ("indices", "out[1]", memory[1])
    values, indices = _sorted(b, x, axis, descending, named, kernel)
    return values, indices


@op(
    oracle=lazy.function("ptxgen.oracle.sort:sort_below"),
    public=False,
    results=("values", "indices"),
)
def sort_below(b: ProgramBuilder, x: Buffer, bound: Length) -> tuple[Buffer, Buffer]:
    """``sort(x)`` of a vector of int32 from 0 to ``bound - 1``, by the bits that these have."""
    check_dtype("x", x.dtype, ("int32",))
    y, indices = b.result(x.shape, "int32"), b.result(x.shape, "int64", name="indices")
    if not b.abstract and x.size:
        _record(b, b.packed(x), y, indices, bits=max(bound - 1, 1).bit_length())
    return y, indices


@op(forms=ARGSORT, any_rank=True)
def argsort(
    b: ProgramBuilder,
    x: Buffer,
    axis: Axis = -1,
    *,
    descending: Bool = False,
    out: Out = None,
    kernel: Kernel = None,
) -> Buffer:
    """``sort(x)[1]``: the indices along ``axis`` that sort ``x``, as ``numpy.argsort``, stable.

    Shapes
        ``x`` any with an axis, at most 2^31 - 1 elements; the result has its shape.
    Dtypes
        Those of :func:`ptxgen.sort`; the result is int64.
    Order
        Contract ``sort/1``, as :func:`ptxgen.sort`. :func:`ptxgen.reference.argsort` returns the
        same.
    Errors
        As :func:`ptxgen.sort`.
    Source
        ``ptxgen/ops/sort.py``, ``ptxgen/tiles/sort.py``.
    """
    (indices,) = _sorted(b, x, axis, descending, (("indices", "out", single(out)),), kernel)
    return indices


# -- searches -----------------------------------------------------------------------------------
@op(forms=SEARCHSORTED, any_rank=True)
def searchsorted(
    b: ProgramBuilder,
    x: Buffer,
    values: Buffer,
    *,
    right: Bool = False,
    out: Out = None,
    kernel: Kernel = None,
) -> Buffer:
    """``y[i] = count(x < values[i])``, with ``right`` ``count(x <= values[i])``, in sorted rows.

    ``x`` has to be ascending in the order of :func:`ptxgen.sort`. Inserted before position
    ``y[i]``, ``values[i]`` keeps it so.

    Shapes
        ``x`` ``[N]``, ``values`` any; or ``x`` ``[..., N]``, ``values`` ``[..., K]``, a row for
        each row. The result has the shape of ``values``.
    Dtypes
        Those of :func:`ptxgen.sort`, ``values`` that of ``x``; the result is int64.
    Order
        Contract ``sort/1``: -0.0 equals +0.0, a NaN is larger than any number. In a row that is
        not ascending, the result is a position from 0 to N, else unspecified.
        :func:`ptxgen.reference.searchsorted` returns the same.
    Errors
        ShapeError, DtypeError, OptionError, DeviceError or CompileError, before anything is
        launched or written.
    Source
        ``ptxgen/ops/sort.py``, ``ptxgen/tiles/sort.py``.

    >>> import numpy, ptxgen
    >>> ptxgen.reference.searchsorted(numpy.array([1, 2, 2, 3]), numpy.array([2, 4]))
    array([1, 4])
    """
    _check("x", x)
    if values.dtype != x.dtype:
        raise DtypeError(f"values has dtype {values.dtype}; takes that of x, {x.dtype}")
    lead = x.shape[:-1]
    if lead and values.shape[:-1] != lead:
        raise ShapeError(
            f"values has shape {list(values.shape)}; takes {[*lead, 'K']}, a row for each row of x"
        )
    if lead and len(values.shape) != len(x.shape):
        raise ShapeError(f"values has no dimensions; takes {len(x.shape)}, as x")
    if values.size > ELEMENTS_MAX:
        raise ShapeError(f"values has {values.size} elements; takes at most {ELEMENTS_MAX}")
    y = b.result(values.shape, "int64", single(out))
    if b.abstract or y.size == 0:
        return y
    dense("out", y, 0)
    width = x.shape[-1]
    if width == 0:
        filled: Buffer = b.fill(y, 0, out=y)
        return filled
    rows, wanted = (v if v.contiguous else copy_bits(b, v) for v in (x, values))
    each = values.shape[-1] if lead else values.size
    sizes = ("COUNT", values.size), ("EACH", each), ("COLS", width)
    scalars = ("LDX", width if lead else 0), ("FLAGS", RIGHT if right else 0)
    what, bind = f"searchsorted of {values.size} in {width}", {"x": rows, "values": wanted, "y": y}
    key = KEYS[x.dtype]
    b.launch(lambda: Problem(("sort", "search"), key, sizes, scalars, what), bind, kernel)
    return y


def _steps(b: Any, positions: Any) -> Any:
    """Returns the differences of neighbours of a vector."""
    count = positions.shape[0] - 1
    return b.sub(b.narrow(positions, 0, 1, count), b.narrow(positions, 0, 0, count))


def _ramp(b: Any, count: int, like: Any) -> Any:
    """Returns the vector 0, 1 ... ``count - 1``, int32."""
    return b.cumsum(b.filled((count,), "int32", 1, like), exclusive=True)


# -- counts -------------------------------------------------------------------------------------
_binned = Pointwise(
    lambda x, bins: where((x < 0) | (x >= bins), cast(bins, "i32"), cast(x, "i32")), "binned"
)


def _countable(arrays: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    """Raises IndexRangeError for an integer outside 0 .. ``minlength - 1``."""
    x, bins = arrays["x"], options["minlength"]
    if 0 in x.shape:
        return
    low, high = int(x.min()), int(x.max())
    if low < 0 or high >= bins:
        wrong = low if low < 0 else high
        takes = f"takes 0 .. {bins - 1}" if bins else "there are no bins"
        raise IndexRangeError(f"x has an integer {wrong}; minlength is {bins}: {takes}")


def _bincount_vjp(b: Builder, at: Backward) -> Gradients:
    """Gradient of ``bincount`` by its weights: ``dweights[i] = dy[x[i]]``."""
    if "weights" not in at.needs:
        return {}
    dy, indices = b.packed(at.dys[0]), b.packed(at["x"])
    if b.dtype(indices) not in ("int32", "int64"):
        indices = b.cast(indices, "int32")
    found = b.embedding(b.reshape(dy, (dy.shape[0], 1)), indices)
    return {"weights": b.reshape(found, tuple(at["x"].shape))}


@op(forms=BINCOUNT, vjp=_bincount_vjp, checks=_countable, sizes={"minlength": "E"})
def bincount(
    b: ProgramBuilder,
    x: Buffer,
    minlength: Length,
    weights: Buffer | None = None,
    *,
    check: Bool = False,
    out: Out = None,
) -> Buffer:
    """``y[i] = count(x == i)`` for i below ``minlength``; with ``weights`` their sums instead.

    A program has results of fixed sizes, so the result does not grow with the largest integer.

    Shapes
        ``x`` and ``weights`` ``[K]``; the result ``[minlength]``.
    Dtypes
        ``x`` int32, int64, int8 or uint8; the counts int64. ``weights`` float32, bfloat16, float16,
        float64, int32 or int64, and so their sums.
    Order
        Counts are exact. Weights are added by contract ``scatter/1``: ascending by position,
        without atomics. :func:`ptxgen.reference.bincount` returns the same bits.
    Errors
        IndexRangeError for an integer outside 0 .. minlength - 1 in host memory, or with ``check``,
        which waits for them; else they are not counted. ShapeError, DtypeError, OptionError,
        DeviceError, GradError or CompileError, before anything is launched or written.
    Source
        ``ptxgen/ops/sort.py``.
    """
    check_dtype("x", x.dtype, COUNTED)
    shapes = {"x": x.shape} | ({} if weights is None else {"weights": weights.shape})
    BINCOUNT.infer(shapes, given={"E": minlength})
    if weights is not None:
        dtype = weights.dtype
        zeros = b.empty((minlength,), dtype) if b.abstract else b.filled((minlength,), dtype, 0)
        wide = x if x.dtype in ("int32", "int64") else b.cast(x, "int32")
        given = (b.packed(v) for v in (wide, weights))
        found: Buffer = b.scatter_add(zeros, *given, out=single(out))
        return found
    y = b.result((minlength,), "int64", single(out))
    if b.abstract or minlength == 0:
        return y
    if x.size == 0:
        found = b.fill(y, 0, out=y)
        return found
    wide = x if x.dtype in ("int32", "int64") else b.cast(x, "int32")
    bins = b.call(_binned, wide, minlength, out_dtype="int32")
    ordered = b.empty((x.size,), "int32")
    _record(b, b.packed(bins), ordered, None, bits=minlength.bit_length())
    starts = b.searchsorted(ordered, _ramp(b, minlength + 1, x))
    return b.delivered(_steps(b, starts), None if single(out) is None else y)


# -- unique -------------------------------------------------------------------------------------
_differs = Pointwise(lambda a, b: cast((a != b) & ((a == a) | (b == b)), "i32"), "differs")
_kept = Pointwise(lambda at, size: minimum(at, size - 1), "kept")


@op(forms=UNIQUE, sizes={"size": "S"})
def unique(
    b: ProgramBuilder, x: Buffer, size: Length, *, out: Out = None
) -> tuple[Buffer, Buffer, Buffer, Buffer]:
    """The different values of ``x``, ascending; their number; and where and how often each occurs.

    A program has results of fixed sizes: ``size`` is that of the values, and ``count`` says how
    many there are. Of more than ``size`` values the smallest are returned; from ``count`` on the
    largest is repeated.

    Shapes
        ``x`` any; values and counts ``[size]``, ``count`` ``[]``, inverse that of ``x``.
    Dtypes
        ``x`` float32, bfloat16, float16, float64, int32, int64, int8, uint8 or bool, and so the
        values; the other results int64.
    Order
        Contract ``sort/1``: all NaN are one value, and so are -0.0 and +0.0; the first that occurs
        in ``x`` represents them. ``inverse[i]`` is the position of ``x[i]`` among all values, also
        beyond ``size``. ``counts`` is how often each value occurs, 0 from ``count`` on.
        :func:`ptxgen.reference.unique` returns the same bits.
    Errors
        ShapeError, DtypeError, OptionError, DeviceError or CompileError, before anything is
        launched or written.
    Source
        ``ptxgen/ops/sort.py``.
    """
    check_dtype("x", x.dtype, COMPARED)
    memory = results(out, 4)
    shapes, dtypes = ((size,), (), x.shape, (size,)), (x.dtype, "int64", "int64", "int64")
    names = [f"out[{i}]" for i in range(4)]
    targets = [b.result(*of) for of in zip(shapes, dtypes, memory, names, strict=True)]
    values, count, inverse, counts = targets
    if b.abstract:
        return values, count, inverse, counts
    if x.size == 0:
        for y in targets:
            if y.size:
                b.fill(y, False if y.dtype == "bool" else 0, out=y)
        return values, count, inverse, counts
    ordered, indices = b.sort(b.reshape(x, (x.size,)))
    compared = b.cast(ordered, "int32") if x.itemsize == 1 else ordered
    n, starts = x.size, b.filled((1,), "int32", 0)
    if n > 1:
        pairs = b.narrow(compared, 0, 1, n - 1), b.narrow(compared, 0, 0, n - 1)
        starts = b.concat((starts, b.call(_differs, *pairs, out_dtype="int32")))
    groups = b.cumsum(starts)
    last = b.cast(b.narrow(groups, 0, n - 1, 1), "int64")
    b.add(b.reshape(last, ()), 1, out=count)
    b.copied(b.reshape(b.placed(indices, b.cast(groups, "int64")), x.shape), inverse)
    if size:
        firsts = b.searchsorted(groups, _ramp(b, size + 1, x))
        b.copied(_steps(b, firsts), counts)
        at = b.call(_kept, b.narrow(firsts, 0, 0, size), n, out_dtype="int64")
        b.gather(ordered, at, out=values)
    return values, count, inverse, counts
