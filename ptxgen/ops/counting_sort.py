"""Sorts and counts integers, and scatters rows by index (the last of equal indices counts)."""

from __future__ import annotations

from typing import Annotated

from ptxgen import lazy
from ptxgen.errors import DtypeError, ShapeError
from ptxgen.numerics.counting_sort import COUNT, EXPERTS, PLACE, PUT, SORT
from ptxgen.numerics.dtype import DTYPES, ELEMENTS
from ptxgen.numerics.option import Bool, Integer, Kernel
from ptxgen.ops.views import alignment, check_contiguous, check_dtype, dense, results, single
from ptxgen.program.buffer import Buffer
from ptxgen.program.build import ProgramBuilder
from ptxgen.program.operation import op
from ptxgen.program.parameters import Out
from ptxgen.spec import Problem
from ptxgen.spec.counting_sort import (
    BINS_MAX,
    COUNT_MAX,
    EXPERTS_MAX,
    PLACE_MAX,
    SLOTS_MAX,
    UP_TO,
)

INTEGERS = ("int32", "int64")
Bins = Annotated[int, Integer(0, BINS_MAX)]
Count = Annotated[int, Integer(1, EXPERTS_MAX)]
First = Annotated[int, Integer(-(1 << 62), 1 << 62)]


def _vector(name: str, x: Buffer, most: int = COUNT_MAX) -> None:
    check_dtype(name, x.dtype, INTEGERS)
    if x.size > most:
        raise ShapeError(f"{name} has {x.size} integers; takes at most {most}")


@op(forms=SORT, oracle=lazy.function("ptxgen.oracle.counting_sort:sort_integers"), public=False)
def sort_integers(
    b: ProgramBuilder, x: Buffer, *, out: Out = None, kernel: Kernel = None
) -> tuple[Buffer, Buffer]:
    """Sorts ``x``, ascending and stable; also returns the index of each element in ``x``, int64."""
    SORT.infer({"x": x.shape})
    _vector("x", x)
    memory = results(out, 2)
    y = b.result(x.shape, x.dtype, memory[0])
    at = b.result(x.shape, "int64", memory[1], name="indices")
    if b.abstract or x.size == 0:
        return y, at
    check_contiguous("x", x)
    for array in (x, y, at):
        alignment("x", array)
    dense("out", y)
    dense("indices", at)
    values = (("COUNT", x.size),)
    problem = Problem(("counting_sort", "sort"), ELEMENTS[x.dtype], values, (), f"sort of {x.size}")
    b.launch(lambda: problem, {"x": x, "y": y, "at": at}, kernel)
    return y, at


@op(
    forms=COUNT,
    oracle=lazy.function("ptxgen.oracle.counting_sort:count_integers"),
    public=False,
    sizes={"bins": "E"},
)
def count_integers(
    b: ProgramBuilder,
    x: Buffer,
    bins: Bins,
    *,
    first: First = 0,
    up_to: Bool = False,
    out: Out = None,
    kernel: Kernel = None,
) -> Buffer:
    """``y[i] = count(x == first + i)`` for ``bins`` integers, int32; ``up_to``: of ``x <= first +
    i``.
    """
    _vector("x", x, 1 << 30)
    y = b.result((bins,), "int32", single(out))
    if b.abstract or bins == 0:
        return y
    if x.size == 0:
        filled: Buffer = b.fill(y, 0, out=y)
        return filled
    check_contiguous("x", x)
    alignment("x", x)
    dense("out", y)
    values = ("COUNT", x.size), ("ROWS", bins)
    scalars = ("FIRST", first), ("FLAGS", UP_TO if up_to else 0)
    what = f"counts of {x.size} in {bins} bins"
    problem = Problem(("counting_sort", "count"), ELEMENTS[x.dtype], values, scalars, what)
    b.launch(lambda: problem, {"x": x, "y": y}, kernel)
    return y


@op(
    forms=EXPERTS,
    oracle=lazy.function("ptxgen.oracle.counting_sort:sort_experts"),
    public=False,
    dtypes={"experts": "int64"},
    sizes={"count": "E"},
)
def sort_experts(
    b: ProgramBuilder,
    experts: Buffer,
    count: Count,
    *,
    kernel: Kernel = None,
) -> tuple[Buffer, Buffer, Buffer]:
    """Sorts the slots of a mixture of experts by expert; the sort is stable, and slots without an
    expert come last. Returns the token of each sorted slot, int32 ``[T J]``; the index of each slot
    in this order, int64 ``[T, J]``; and the index behind each expert's last slot, int32
    ``[count]``. T J is at most ``SLOTS_MAX``.
    """
    _vector("experts", experts, SLOTS_MAX)
    slots, each = experts.size, experts.shape[1]
    EXPERTS.infer({"experts": experts.shape}, given={"S": slots, "E": count})
    tokens = b.result((slots,), "int32", name="tokens")
    places = b.result(experts.shape, "int64", name="places")
    ends = b.result((count,), "int32", name="ends")
    if b.abstract:
        return tokens, places, ends
    if slots == 0:
        return tokens, places, b.fill(ends, 0, out=ends)
    check_contiguous("experts", experts)
    alignment("experts", experts)
    values = ("COUNT", slots), ("EACH", each), ("EXPERTS", count)
    what = f"sort of {slots} slots by {count} experts"
    problem = Problem(("counting_sort", "experts"), ELEMENTS[experts.dtype], values, (), what)
    bind = {"x": experts, "tokens": tokens, "places": places, "ends": ends}
    b.launch(lambda: problem, bind, kernel)
    return tokens, places, ends


@op(
    forms=PUT,
    oracle=lazy.function("ptxgen.oracle.counting_sort:put_rows"),
    public=False,
    dtypes={"indices": "int64"},
)
def put_rows(
    b: ProgramBuilder,
    x: Buffer,
    indices: Buffer,
    source: Buffer,
    *,
    out: Out = None,
    kernel: Kernel = None,
) -> Buffer:
    """``x`` [B, V, I] with rows ``indices`` [K] replaced by those of ``source`` [B, K, I]. Of equal
    indices the last counts, whatever the order of threads; an index out of range writes nothing.
    """
    _vector("indices", indices)
    if x.dtype not in (*DTYPES, *INTEGERS) or source.dtype != x.dtype:
        raise DtypeError(f"x has dtype {x.dtype}, source {source.dtype}; takes one of {DTYPES}")
    found = PUT.infer({"x": x.shape, "indices": indices.shape, "source": source.shape})
    y = b.result(x.shape, x.dtype, single(out))
    if b.abstract or y.size == 0:
        return y
    if not x.same(y):
        b.copied(x, y)
    if indices.size == 0:
        return y
    if y.size > (1 << 31) - 1:
        raise ShapeError(f"x has {y.size} elements; takes at most 2^31 - 1")
    keys, places = b.sort_integers(b.cast(indices, "int64"))
    check_contiguous("source", source)
    for array in (source, y):
        alignment("source", array)
    dense("out", y)
    sizes = found.sizes
    of_each = (("COUNT", "K"), ("ROWS", "V"), ("INNER", "I"), ("OUTER", "B"))
    values = tuple((name, sizes[size]) for name, size in of_each)
    of, what = f"b{8 * x.itemsize}", f"put of {sizes['K']} rows of {sizes['I']} to {sizes['V']}"
    bind = {"keys": keys, "places": places, "source": source, "y": y}
    b.launch(lambda: Problem(("counting_sort", "put"), of, values, (), what), bind, kernel, ["y"])
    return y


@op(
    forms=PLACE,
    oracle=lazy.function("ptxgen.oracle.counting_sort:placed"),
    public=False,
    dtypes={"source": "int64"},
)
def placed(
    b: ProgramBuilder,
    indices: Buffer,
    source: Buffer | None = None,
    *,
    out: Out = None,
    kernel: Kernel = None,
) -> Buffer:
    """``y[indices[i]] = source[i]``, or i without ``source``, for a permutation ``indices``
    (int64).

    The result for other indices is unspecified.
    """
    for name, x in (("indices", indices), *(() if source is None else (("source", source),))):
        check_dtype(name, x.dtype, ("int64",))
    _vector("indices", indices, PLACE_MAX)
    y = b.result(indices.shape, "int64", single(out))
    if b.abstract or y.size == 0:
        return y
    for name, x in (("indices", indices), *(() if source is None else (("source", source),))):
        check_contiguous(name, x)
        alignment(name, x)
    dense("out", y)
    values, what = (("COUNT", y.size),), f"{y.size} placed"
    problem = Problem(("counting_sort", "place"), "i64", values, (), what)
    b.launch(lambda: problem, {"x": indices, "source": source, "y": y}, kernel)
    return y
