"""Operations over rows: how calls of any of them are understood, and their rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial

from ptxgen.errors import DtypeError, ShapeError
from ptxgen.numerics.formula import STORED
from ptxgen.numerics.pointwise import FULL, NAMES
from ptxgen.numerics.rowops import REAL, TABLE, RowOp, wanted_dtype
from ptxgen.numerics.rowwise import GROUP, LANES, LEAF
from ptxgen.ops.op import Op, Options, Question, Result
from ptxgen.ops.rowgradients import GRADIENTS
from ptxgen.ops.run import Caller, caller
from ptxgen.ops.views import ALIGN_MAX, alignment, apart, check_contiguous, leading
from ptxgen.runtime.arrays import ArrayView
from ptxgen.spec import Problem
from ptxgen.spec.rowwise import DOWN_COLS, DOWN_MAX, held, reads, way
from ptxgen.tiles.lazy import Lazy
from ptxgen.tiles.rowwise import DOWN, KEY


@dataclass(frozen=True, slots=True)
class Reading:
    """Rows, and what is wanted of them (:class:`ptxgen.ops.op.Reading`)."""

    row: RowOp
    variant: str
    count: int
    width: int
    told: tuple[tuple[str, int | float], ...]
    vector: bool
    results: tuple[Result, ...]

    def problem(self, targets: tuple[ArrayView, ...]) -> Problem | None:
        """See :meth:`ptxgen.ops.op.Reading.problem`."""
        vector = self.vector
        for name, target in zip(self.row.results, targets, strict=True):
            by_element = self.row.results[name][0] == "element"
            found = alignment(name, target, *((self.width,) if by_element else ()))
            vector = vector and (not by_element or found >= _unit(target.itemsize))
            check_contiguous(name, target, result=True)
        if all(target.size == 0 for target in targets):
            return None
        return _problem(self.row, self.variant, self.count, self.width, vector, self.told)


def _unit(itemsize: int) -> int:
    """What a group of elements is aligned to, if it travels whole."""
    return min(ALIGN_MAX, itemsize * GROUP)


def read(
    row: RowOp,
    views: Mapping[str, ArrayView],
    options: Options,
    targets: tuple[str | None, ...],
) -> Reading:
    """What a call asks for."""
    dtypes = {name: _dtype(row, name, views) for name in row.arrays if name in views}
    inferred = row.signature.infer({name: views[name].shape for name in dtypes})
    count, width = inferred.sizes["M"], inferred.sizes["N"]
    if width == 0 and not row.empty:
        raise ShapeError(f"{row.name} takes at least one element; got rows of none")
    first = dtypes[next(iter(row.arrays))]
    outputs = _outputs(row, first, options, targets)
    told: list[tuple[str, int | float]] = [("COLS", width)]
    vector = width % GROUP == 0
    for name in dtypes:
        view, kind = views[name], row.arrays[name]
        least = _unit(view.itemsize)
        if kind == "element":
            pitch, aligned = _rows(name, view, count, width)
            told.append((f"LD_{name.upper()}", pitch))
            vector = vector and aligned >= least
        else:
            vector = alignment(name, view) >= (least if kind == "column" else 0) and vector
            check_contiguous(name, view)
    numbers = row.given(options)
    told += [(name.upper(), value) for name, value in numbers.items()]
    variant = row.variant(dtypes, outputs, numbers)
    results = tuple(
        Result(shape, FULL[dtype]) for shape, dtype in zip(inferred.results, outputs, strict=True)
    )
    return Reading(row, variant, count, width, tuple(told), vector, results)


def _dtype(row: RowOp, name: str, views: Mapping[str, ArrayView]) -> str:
    """The short dtype of an argument. DtypeError for one that it cannot have."""
    first = next(iter(row.arrays))
    own = NAMES.get(views[name].dtype, "")
    taken = row.dtypes
    if name in row.integers:
        taken = ("i64", "i32")
    elif name != first:
        wide = row.computed(NAMES[views[first].dtype])
        taken = tuple(d for d in REAL if STORED[d] == wide)
        if row.arrays[name] == "element":
            taken = (NAMES[views[first].dtype],)
    if own not in taken:
        raise DtypeError(
            f"{name} has dtype {views[name].dtype}; takes {' or '.join(FULL[d] for d in taken)}"
        )
    return own


def _outputs(
    row: RowOp, first: str, options: Options, targets: tuple[str | None, ...]
) -> tuple[str, ...]:
    """The dtypes of results: those that are asked for, or that memory which is given has."""
    wanted, what = options.get("out_dtype"), "out_dtype"
    wanted = None if wanted is None else wanted_dtype(wanted)
    natural = row.outputs(first)
    chosen = next((i for i, (_, d) in enumerate(row.results.values()) if d in ("", "sum")), 0)
    if wanted is None and row.chooses and targets and targets[0] is not None:
        wanted, what = targets[chosen], f"{list(row.results)[chosen]}'s dtype"
    if wanted is None:
        return natural
    wide = (STORED[first],) if first in REAL else ()
    more = (d for d in REAL if row.narrow and STORED[d] in wide)
    accepted = dict.fromkeys((natural[chosen], *wide, *more))
    if NAMES.get(wanted) not in accepted:
        names = " or ".join(repr(FULL[d]) for d in accepted)
        raise DtypeError(f"{what} is {wanted!r}; takes {names}")
    return row.outputs(first, NAMES[wanted])


def _rows(name: str, view: ArrayView, count: int, width: int) -> tuple[int, int]:
    """Elements from row to row, and bytes that rows are aligned to."""
    matrix = view.matrix(name)
    down, along = matrix.strides
    if along != 1 and width > 1 and view.size:
        raise apart(name, view)
    pitch = leading(count, width, down, view.itemsize)
    return pitch, alignment(name, view, pitch)


def pose(row: RowOp, question: Question) -> Problem:
    """The problem of sizes M (rows) and N (elements of a row), optional arrays left out."""
    if question.dtype not in row.dtypes:
        names = " or ".join(FULL[d] for d in row.dtypes)
        raise DtypeError(f"dtype is {FULL[question.dtype]}; takes {names}")
    given = [name for name in row.arrays if name not in row.optional]
    dtypes = {name: "i64" if name in row.integers else question.dtype for name in given}
    count, width = question.sizes["M"], question.sizes["N"]
    outputs = _outputs(row, question.dtype, question.options, ())
    variant = row.variant(dtypes, outputs, row.given(question.options))
    vector = width % GROUP == 0 and min(question.aligns) >= ALIGN_MAX
    return _problem(row, variant, count, width, vector, ())


def _problem(
    row: RowOp,
    variant: str,
    count: int,
    width: int,
    vector: bool,
    told: tuple[tuple[str, int | float], ...],
) -> Problem:
    pointers, what = (*row.arrays, *row.results), f"{row.name} M={count} N={width}"
    # kernels of one column serve rows of none
    sizes = ("ROWS", count), ("COLS", max(width, 1)), ("VECTOR", int(vector))
    read = ("READ", reads(variant))
    if row.down:
        if width > DOWN_COLS or -(-count // LEAF) * LANES * width > DOWN_MAX:
            raise ShapeError(
                f"{what}: takes rows of at most {DOWN_COLS} elements, and 2^29 of them in all: "
                "partial sums are kept"
            )
        down = ("ROWS", max(count, 1)), *sizes[1:], read
        return Problem(DOWN, variant, down, (*told, ("ROWS", count)), pointers, what)
    values = (*sizes, ("HELD", held(variant)), read, ("WAY", way(variant)))
    return Problem(KEY, variant, values, told, pointers, what)


# -- the rows ---------------------------------------------------------------------------------
@cache
def operation(name: str) -> Op:
    """The row of an operation of the table."""
    row = TABLE[name]
    return Op(row.signature, partial(read, row), partial(pose, row), GRADIENTS.get(name))


@cache
def run(name: str) -> Caller:
    """What calls an operation."""
    return caller(operation(name))


OPS: Lazy[str, Op] = Lazy({name: partial(operation, name) for name in TABLE})
"""The rows of operations over rows."""
