"""Operations over rows, from the table of :mod:`ptxgen.numerics.row_reductions`.

A table entry is an operation over the last dimension (:class:`RowOperation`), which other
operations call by ``b.rows(name, …)``. An entry with a form also has a public function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial
from typing import Annotated, Any

from ptxgen import lazy
from ptxgen.errors import DtypeError, ShapeError
from ptxgen.numerics.dtype import FULL, NAMES
from ptxgen.numerics.formula import STORED, Node, trace
from ptxgen.numerics.gradient import gradients
from ptxgen.numerics.option import DtypeName, Flag
from ptxgen.numerics.reduction_order import GROUP, LANES, LEAF
from ptxgen.numerics.row_reductions import MADE, REAL, TABLE, RowOp
from ptxgen.numerics.row_reductions import formula as formula_of
from ptxgen.ops.gradients import Vjp, of_rows
from ptxgen.ops.views import ALIGN_MAX, alignment, check_contiguous, leading, results, rows_of
from ptxgen.program.buffer import Buffer
from ptxgen.program.build import Builder, ProgramBuilder
from ptxgen.program.operation import Backward, Gradients, Op
from ptxgen.program.parameters import ARRAY, OPTION, OPTIONAL, Parameter, outward
from ptxgen.spec import Problem
from ptxgen.spec.row_reductions import DOWN_COLS, DOWN_MAX, READ_MAX, facts, reads
from ptxgen.tiles.row_reductions import DOWN, KEY


class RowOperation(Op):
    """Operation over the last dimension of its arrays, from a :class:`RowOp` such as the entries of
    :data:`ptxgen.numerics.row_reductions.TABLE`.
    """

    def __init__(self, row: RowOp) -> None:
        self.row = row
        super().__init__(
            self._lowered,
            name=f"{row.name}_rows" if row.form else row.name,
            forms=row.signature,
            oracle=partial(lazy.function("ptxgen.oracle.row_reductions:compute"), row.name),
            vjp=of_rows(row.name) or of_formula(row),
            public=False,
            dtypes={n: "int64" for n in row.integers} | _wide(row),
            takes=_parameters(row),
        )

    def _lowered(
        self, b: ProgramBuilder, /, *args: Any, out_dtype: str | None = None, **named: Any
    ) -> Any:
        """Records the launch of the operation, and returns its results."""
        all, row = self.bound(args, named), self.row
        given = {n: all[n] for n in row.arrays if all[n] is not None}
        present = row.present(given)
        memory, kernel = results(all["out"], len(present)), all["kernel"]
        dtypes = {name: _dtype(row, name, given) for name in given}
        inferred = row.signature.infer({name: x.shape for name, x in given.items()})
        count, width = inferred.sizes["M"], inferred.sizes["N"]
        first = next(iter(row.arrays))
        if width == 0 and not row.empty:
            raise ShapeError(f"{first} has rows of no elements; {row.name} takes at least one")
        outputs = outputs_of(row, dtypes[first], given, out_dtype, memory)
        shapes = [s for s, n in zip(inferred.results, row.results, strict=True) if n in present]
        made = zip(shapes, outputs, memory, present, strict=True)
        targets = tuple(b.result(s, FULL[d], m, "out" if m else n) for s, d, m, n in made)
        if not b.abstract and any(t.size for t in targets):
            numbers = row.given({n: all[n] for n in row.numbers})
            variant = row.variant(dtypes, outputs, numbers)
            named = dict(zip(present, targets, strict=True))
            b.launch(*asked(row, variant, given, named, numbers, count, width), kernel)
        return targets[0] if len(targets) == 1 else targets


def asked(
    row: RowOp,
    variant: str,
    given: Mapping[str, Buffer],
    targets: Mapping[str, Buffer],
    numbers: Mapping[str, Any],
    count: int,
    width: int,
    title: str = "",
) -> tuple[Callable[[], Problem], dict[str, Buffer]]:
    """Checks the arrays of a launch over ``count`` rows of ``width`` elements. Returns a function
    that makes its problem, and the arrays by kernel parameter.

    ``variant``: operation and dtypes, as text; ``given``, ``targets``: arguments and results by
    name; ``numbers``: scalars by name; ``title``: the problem's name (default: the operation's).
    """
    scalars, vector, dense = _scalars(row, given, count, width)
    scalars += [(name.upper(), value) for name, value in numbers.items()]
    for name, target in targets.items():
        element = row.results[name][0] == "element"
        found = alignment(name, target, *((width,) if element else ()))
        vector = vector and (not element or found >= _unit(target.itemsize))
        dense = dense and (not element or alignment(name, target) == ALIGN_MAX)
        check_contiguous("out", target, result=True)
    read = {i.name for i in formula_of(variant).inputs}  # some options leave arrays unread
    bind = {n: x for n, x in given.items() if n in read} | dict(targets)
    made = partial(problem, title or row.name, row, variant, (count, width), vector, dense, scalars)
    return made, bind


def _wide(row: RowOp) -> dict[str, str]:
    first = next(iter(row.arrays))
    plain = (n for n in row.arrays if n != first and n not in row.integers)
    return {n: "wide" for n in plain if row.arrays[n] != "element"}


def _parameters(row: RowOp) -> tuple[Parameter, ...]:
    over = next(iter(row.over.values()), ())
    arrays = [Parameter(n, OPTIONAL if n in row.optional else ARRAY) for n in row.arrays]
    for i in reversed(range(len(arrays))):  # trailing optional arrays need no value
        if arrays[i].kind == ARRAY:
            break
        arrays[i] = replace(arrays[i], default=None)
    return (
        *arrays,
        *(Parameter(n, OPTION, o.default, True, o.option) for n, o in row.numbers.items()),
        *([Parameter("check", OPTION, False, True, Flag())] if row.lengths else ()),
        *outward(CHOSEN if row.chooses else None, over),
    )


CHOSEN = DtypeName(tuple(NAMES))
"""The option ``out_dtype``; each operation accepts some of these dtypes."""
Chosen = Annotated[str | None, CHOSEN]


def _scalars(
    row: RowOp, given: Mapping[str, Buffer], count: int, width: int
) -> tuple[list[tuple[str, int | float]], bool, bool]:
    """Checks the arrays ``given`` (by name) of a launch over ``count`` rows of ``width`` elements.
    Returns its scalars, COLS (``width``) and for each matrix LD_NAME, elements from row to row;
    whether all arrays admit vector loads; and whether they do so from their first element on, and
    rows have no gaps between them.
    """
    scalars: list[tuple[str, int | float]] = [("COLS", width)]
    vector, dense = width % GROUP == 0, True
    for name, view in given.items():
        least, kind = _unit(view.itemsize), row.arrays[name]
        if kind == "element":
            *_, down = rows_of(name, view)
            pitch = leading(count, width, down, view.itemsize)
            scalars.append((f"LD_{name.upper()}", pitch))
            vector = vector and alignment(name, view, pitch) >= least
            dense = dense and alignment(name, view) == ALIGN_MAX and (down == width or count == 1)
        else:
            aligned = alignment(name, view) >= (least if kind == "column" else 0)
            vector, dense = vector and aligned, dense and aligned
            check_contiguous(name, view)
    return scalars, vector, dense


def _unit(itemsize: int) -> int:
    """Returns the alignment, in bytes, that vector loads of elements of ``itemsize`` bytes need."""
    return min(ALIGN_MAX, itemsize * GROUP)


def _dtype(row: RowOp, name: str, given: Mapping[str, Buffer]) -> str:
    """Returns the short dtype of argument ``name``; raises DtypeError for one it cannot have."""
    first = next(iter(row.arrays))
    own = NAMES.get(given[name].dtype, "")
    taken = row.dtypes
    if name in row.integers:
        taken = ("i64", "i32")
    elif name != first:
        wide = row.computed(NAMES[given[first].dtype])
        taken = tuple(d for d in REAL if STORED[d] == wide)
        if row.arrays[name] == "element":
            taken = (NAMES[given[first].dtype],)
    if own not in taken:
        raise DtypeError(
            f"{name} has dtype {given[name].dtype}; takes {' or '.join(FULL[d] for d in taken)}"
        )
    return own


def outputs_of(
    row: RowOp,
    first: str,
    present: Mapping[str, Any],
    wanted: str | None,
    memory: tuple[Buffer | None, ...],
) -> tuple[str, ...]:
    """Returns the short dtypes of the results: from ``wanted`` (option ``out_dtype``), else from
    the dtypes of ``memory`` (``out``), else the operation's own. ``first``: short dtype of the
    first argument; ``present``: the arguments by name. Raises DtypeError.
    """
    what = "out_dtype"
    natural = row.outputs(first, present)
    chosen = next((i for i, (_, d) in enumerate(row.results.values()) if d in ("", "sum")), 0)
    given = memory[chosen]
    if wanted is None and row.chooses and given is not None:
        wanted, what = given.dtype, "out's dtype"
    if wanted is None:
        return natural
    wide = (STORED[first],) if first in REAL else ()
    more = (d for d in REAL if row.narrow and STORED[d] in wide)
    accepted = dict.fromkeys((natural[chosen], *wide, *more))
    if NAMES.get(wanted) not in accepted:
        names = " or ".join(repr(FULL[d]) for d in accepted)
        raise DtypeError(f"{what} is {wanted!r}; takes {names}")
    return row.outputs(first, present, NAMES[wanted])


def problem(
    title: str,
    row: RowOp,
    variant: str,
    shape: tuple[int, int],
    has_vectors: bool,
    is_dense: bool,
    scalars: list[tuple[str, int | float]],
) -> Problem:
    """Returns the problem of operation ``row`` over rows of a ``shape`` (count, width). ``title``:
    its name; ``variant``: operation and dtypes, as text; ``has_vectors``: whether all arrays admit
    vector loads; ``is_dense``: whether their rows have no gaps between them and begin at 16 bytes.
    Raises ShapeError if sums down the columns (:attr:`RowOp.down`) are too large.
    """
    count, width = shape
    what = f"{title} M={count} N={width}"
    # kernels for one column serve rows without elements
    sizes = ("ROWS", count), ("COLS", max(width, 1)), ("VECTOR", int(has_vectors))
    if row.down:
        if width > DOWN_COLS or -(-count // LEAF) * LANES * width > DOWN_MAX:
            raise ShapeError(
                f"{what}: takes rows of at most {DOWN_COLS} elements, and 2^29 of them in all: "
                "partial sums are kept"
            )
        down = ("ROWS", max(count, 1)), *sizes[1:], ("READ", reads(variant))
        return Problem(DOWN, variant, down, (*scalars, ("ROWS", count)), what)
    known = facts(variant) if is_dense else {**facts(variant), "DENSE": READ_MAX}
    values = (*sizes, *known.items())
    return Problem(KEY, variant, values, tuple(scalars), what)


# -- gradients --------------------------------------------------------------------------------
@cache
def backward_of(row: RowOp) -> RowOperation:
    """Returns the operation over rows that computes the gradients of ``row`` by its arrays.

    Gradients by arrays of kind "column" have an element for each element of a row; the caller sums
    them over the rows.
    """
    arrays = tuple(n for n in row.arrays if n not in row.integers)
    levels = {"element": "element", "row": "row", "column": "element"}

    def formula(**given: Node | None) -> tuple[Node, ...]:
        seeds = [given.pop(f"d_{n}") for n in row.results]
        found = trace(row.formula, given)  # type: ignore[arg-type]
        wanted = [x for x in (given[n] for n in arrays) if x is not None]
        made = gradients(found, [s for s in seeds if s is not None], wanted)
        return tuple(w * 0 if m is None else m for m, w in zip(made, wanted, strict=True))

    made = RowOp(
        f"{row.name}_vjp",
        formula,
        {**row.arrays, **{f"d_{n}": level for n, (level, _) in row.results.items()}},
        {f"by_{n}": (levels[row.arrays[n]], "") for n in arrays},
        row.numbers,
        row.optional | {f"d_{n}" for n in row.when},
        row.dtypes,
        row.integers,
        wide=row.wide,
        when={f"by_{n}": n for n in arrays if n in row.optional},
    )
    return RowOperation(MADE.setdefault(made.name, made))


def of_formula(row: RowOp) -> Vjp:
    """Returns the vjp of the operation over rows ``row``, derived from its formula."""

    def vjp(b: Builder, at: Backward) -> Gradients:
        given = [at.arguments.get(n) for n in row.arrays]
        options = {n: at.options[n] for n in row.numbers}
        own = b.dtype(at[next(iter(row.arrays))])
        levels = [level for level, _ in row.present(at.arguments).values()]
        dys = [
            b.cast(dy, own) if level == "element" and not row.wide else dy
            for dy, level in zip(at.dys, levels, strict=True)
        ]
        made = b.call(backward_of(row), *map(b.packed, (*given, *dys)), **options)
        names = [n for n in row.arrays if n not in row.integers and at.arguments.get(n) is not None]
        several = made if isinstance(made, tuple | list) else (made,)
        found = dict(zip(names, several, strict=True))
        for n, kind in row.arrays.items():
            if kind == "column" and n in found and at[n] is not None:
                found[n] = b.summed_to(found[n], at[n].shape)
        return {n: b.cast(g, b.dtype(at[n])) for n, g in found.items() if n in at.needs}

    return vjp


def operation(name: str) -> RowOperation:
    """Returns the operation over rows of entry ``name`` of
    :data:`ptxgen.numerics.row_reductions.TABLE`.
    """
    return RowOperation(TABLE[name])
