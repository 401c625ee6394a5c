"""Fusion of row reductions with the elementwise steps before and after them.

A row reduction is a formula with reductions over rows. Elementwise steps that write its operands,
or read its results, are computed in the same kernel, and each value is rounded as it was stored.
Rows are still summed in the order of their contract. So no bit changes, and elements that no other
step reads are not stored. A norm that is written as a mean, a root and products becomes one step.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import prod

from ptxgen.errors import FormulaError, ShapeError
from ptxgen.graph.fuse import NODES_MAX, Region, as_stored, layout_key, merged, region
from ptxgen.numerics.formula import Formula, Input, Node, Output, const, substituted
from ptxgen.numerics.pointwise import value_of
from ptxgen.numerics.reduction_order import LEAF
from ptxgen.numerics.row_reductions import MADE, RowOp, formula
from ptxgen.ops.pointwise import short
from ptxgen.ops.row_reductions import asked
from ptxgen.program.buffer import Buffer, Memory
from ptxgen.program.step import Operand, Program, Step
from ptxgen.tiles.row_reductions import KEY

WIDTH_MAX = 1 << 14
"""Longest rows, elements, whose reductions are fused: they fit in registers. A kernel reads longer
rows again for each reduction."""
ARRAYS_MAX = 8
"""Most arrays [count, width] that a fused row reduction reads and writes."""
HELD_MAX, SHORT_ROWS = 8, (LEAF, 16)
"""Limits of the bytes of registers that a fused kernel uses for each element of a row:
``HELD_MAX``, or ``SHORT_ROWS[1]`` for rows of up to ``SHORT_ROWS[0]`` elements."""


@dataclass(frozen=True, eq=False)
class Rows:
    """A reduction over ``count`` rows of ``width`` elements, and the steps fused with it.

    ``reads``: the array of each input node: elements [count, width], rows [count] or columns
    [width], as the node's kind says; ``results``: formula nodes, each with the buffer that it is
    written to; ``over``: name of the row reduction; ``names``: names of all fused steps, in order.
    """

    count: int
    width: int
    reads: dict[Node, Buffer]
    results: tuple[tuple[Node, Buffer], ...]
    over: str
    names: tuple[str, ...]

    @cached_property
    def read(self) -> set[Memory]:
        """Memories that the fused step reads."""
        return {b.memory for b in self.reads.values()}

    @cached_property
    def written(self) -> set[Memory]:
        """Memories that the fused step writes."""
        return {b.memory for _, b in self.results}

    @property
    def sizes(self) -> dict[str, int]:
        """Number of values that a result has at each level: "element" count * width, "row" count,
        "column" width.
        """
        return {
            "element": self.count * self.width,
            "row": self.count,
            "column": self.width,
        }

    def level(self, x: Buffer) -> str:
        """Returns "element" if the result in ``x`` has a value for each element, "row" if for each
        row.
        """
        return "element" if x.size == self.sizes["element"] else "row"

    def step(self) -> Step:
        """Converts the fused reduction to a step. Raises ShapeError, FormulaError or DtypeError
        beyond a kernel's limits.
        """
        places: dict[Node, Node] = {}
        known: dict[object, Node] = {}
        given: dict[str, Buffer] = {}
        nodes = [node for node, _ in self.results]
        for node in _inputs(nodes):
            own, x = node.data, self.reads[node]
            key = own.dtype, own.kind, layout_key(x)
            if key not in known:
                name = f"in{len(known)}"
                given[name] = x
                known[key] = Node("input", (), node.type, Input(name, own.dtype, own.kind))
            places[node] = known[key]
        made = substituted(nodes, places)
        targets = {f"out{i}": b for i, (_, b) in enumerate(self.results)}
        kinds = {n.data.name: n.data.kind for n in known.values()}
        levels = {n: self.level(b) for n, b in targets.items()}
        several = [*(k for k in kinds.values() if k == "element"), *levels.values()]
        if several.count("element") > ARRAYS_MAX:
            raise ShapeError(f"{several.count('element')} arrays of elements of one step over rows")
        if any(n.level != at for n, at in zip(made, levels.values(), strict=True)):
            raise FormulaError("a result has not a number for each of what it is of")
        outputs = [short(b.dtype, n) for n, b in targets.items()]
        pairs = zip(targets, outputs, made, strict=True)
        text = Formula(tuple(Output(n, d, node) for n, d, node in pairs))
        if text.size > NODES_MAX:
            raise ShapeError(f"{text.size} operations of one step over rows")
        digest = hashlib.sha256(text.text.encode()).hexdigest()[:12]
        inputs = {n.data.name: n for n in known.values()}

        def of(**nodes: Node) -> tuple[Node, ...]:
            return tuple(substituted(made, {inputs[n]: node for n, node in nodes.items()}))

        results = {n: (level, d) for (n, level), d in zip(levels.items(), outputs, strict=True)}
        row = RowOp(f"fused_{digest}", of, kinds, results)
        row = MADE.setdefault(row.name, row)
        variant = row.variant({n: short(b.dtype, n) for n, b in given.items()}, outputs)
        names = "+".join(self.names).split("+")
        title = f"{self.over}+elementwise({len(names) - 1})" if len(names) > 5 else "+".join(names)
        problem, bind = asked(row, variant, given, targets, {}, self.count, self.width, title=title)
        found = problem()
        held, (some, more) = dict(found.values)["HELD"], SHORT_ROWS
        if held > (more if self.width <= some else HELD_MAX):
            raise ShapeError(f"{held} bytes of an element are held")
        return Step(found, bind)


def rows(step: Step, number: int) -> Rows | None:
    """Returns a step that is a row reduction as :class:`Rows`; None for other steps, and for rows
    that are not fused, such as those longer than :data:`WIDTH_MAX`. ``number``: the step's index.
    """
    values = dict(step.problem.values)
    if step.problem.table != KEY or step.kernel is not None or step.also_read:
        return None
    scalars = dict(step.problem.scalars)
    count, width = values["ROWS"], int(scalars["COLS"])
    targets = step.writes()
    if not 1 < width <= WIDTH_MAX or len({b.memory for b in targets}) < len(targets):
        return None
    what = formula(str(step.problem.dtype))
    places: dict[Node, Node] = {}
    reads: dict[Node, Buffer] = {}
    shapes = {"element": (count, width), "row": (count,), "column": (width,)}
    for node in _inputs([o.node for o in what.outputs]):
        own = node.data
        if own.kind == "scalar":
            places[node] = const(scalars[own.name.upper()], node.type)
            continue
        operand = step.bind[own.name]
        seen = operand.reshaped(shapes[own.kind]) if isinstance(operand, Buffer) else None
        if seen is None:
            return None
        new = Node("input", (), node.type, Input(f"{number}.{own.name}", own.dtype, own.kind))
        places[node], reads[new] = new, seen
    nodes = substituted([o.node for o in what.outputs], places)
    bound = [b for o in what.outputs if isinstance(b := step.bind[o.name], Buffer)]
    name = step.problem.what.split(" M=")[0]
    found = Rows(count, width, reads, tuple(zip(nodes, bound, strict=True)), name, (name,))
    return None if found.read & found.written else found


def _inputs(roots: list[Node]) -> Iterator[Node]:
    pairs = ((f"r{i}", n) for i, n in enumerate(roots))
    of = Formula(tuple(Output(name, n.type, n) for name, n in pairs))
    return (n for n in of.nodes if n.op == "input")


# -- joining ----------------------------------------------------------------------------------
def joined(
    first: Region | Rows, to: Region | Rows, needed: set[Memory], repeat: bool
) -> Rows | None:
    """Fuses a row reduction with an elementwise step that reads its results (``to``), or whose
    results it reads (``first``).

    Returns None if that is impossible. ``needed``: results of ``first`` that other steps read,
    which stay stored; ``repeat``: whether a value for each column may be computed in each row.
    """
    if isinstance(first, Rows) == isinstance(to, Rows) or first.written & to.written:
        return None
    of, x = (first, to) if isinstance(first, Rows) else (to, first)
    assert isinstance(of, Rows) and isinstance(x, Region)
    if (first.read | (to.read - first.written)) & (first.written | to.written):
        return None
    found = (
        _joined(first, to, needed, of, _as_rows(x, of, level))
        for level in _levels(x, of, needed, repeat)
    )
    return next((each for each in found if each is not None), None)


def _levels(x: Region, of: Rows, needed: set[Memory], repeat: bool) -> Iterator[str]:
    """Yields the levels of row reduction ``of`` ("element", "row", "column") at which elementwise
    step ``x`` can join it: those with as many values as the results of ``x``.

    At level "column" each row computes all values anew. So that is yielded only if ``repeat``
    allows it, and ``needed``, the results that other steps read, has none of ``x``.
    """
    size = prod(x.shape)
    for level, count in of.sizes.items():
        if size == count and (level != "column" or (repeat and not x.written & needed)):
            yield level


def _joined(
    first: Region | Rows, to: Region | Rows, needed: set[Memory], of: Rows, other: Rows | None
) -> Rows | None:
    before, behind = (of, other) if first is of else (other, of)
    if before is None or behind is None:
        return None
    made = {}
    for node, b in before.results:
        level = before.level(b) if first is of else before.over
        shape = (of.count, of.width) if level == "element" else (of.sizes[level],)
        seen = b.reshaped(shape) if b.contiguous else None
        if seen is None:
            return None
        made[b.memory] = node, seen, level
    places: dict[Node, Node] = {}
    reads = dict(before.reads)
    for node, x in behind.reads.items():
        if x.memory not in made:
            reads[node] = x
            continue
        value, own, level = made[x.memory]
        if layout_key(x) != layout_key(own) or node.data.kind != level:
            return None
        places[node] = as_stored(value, own.dtype)
    nodes = substituted([n for n, _ in behind.results], places)
    kept = [(n, b) for n, b in before.results if b.memory in needed]
    results = (*kept, *zip(nodes, (b for _, b in behind.results), strict=True))
    names = *before.names, *behind.names
    return Rows(of.count, of.width, reads, results, of.over, names)


def _as_rows(x: Region, rows: Rows, level: str) -> Rows | None:
    """Returns elementwise step ``x`` as :class:`Rows` over the rows of ``rows``; None if row
    kernels cannot read one of its inputs.

    ``level``: "element", "row" or "column", for each of which the step's results have one value; it
    becomes ``over`` of what is returned.
    """
    places: dict[Node, Node] = {}
    reads: dict[Node, Buffer] = {}
    for node, operand in x.reads.items():
        if not isinstance(operand, Buffer):
            value = constant(node, operand)
            if value is None:
                return None
            places[node] = value
            continue
        kind, seen = _kind(operand, rows, level)
        if seen is None:
            return None
        own = Node("input", (), node.type, Input(node.data.name, node.data.dtype, kind))
        places[node], reads[own] = own, seen
    nodes = substituted([n for n, _ in x.results], places)
    results = tuple(zip(nodes, (b for _, b in x.results), strict=True))
    return Rows(rows.count, rows.width, reads, results, level, x.names)


def constant(node: Node, operand: Operand) -> Node | None:
    """Returns a constant node with the value of ``operand``, an integer whose 8 bytes are a scalar
    of the type of ``node``; None for other operands.
    """
    if not isinstance(operand, int):
        return None
    return const(value_of(node.type, operand.to_bytes(8, "little")), node.type)


def _kind(x: Buffer, rows: Rows, level: str) -> tuple[str, Buffer | None]:
    """Returns the kind of array ``x``, an input of an elementwise step: "element", "row" or
    "column", for each of which it has one value; and the view of it that row kernels read, None if
    they cannot read it. ``rows``: the reduction that the step is to join; ``level``: the kind of
    the step's results.
    """
    if level != "element":
        seen = x.reshaped((rows.sizes[level],))
        return level, seen if seen is not None and seen.contiguous else None
    matrix = x.reshaped((rows.count, rows.width))
    if matrix is None:
        return "", None
    down, along = matrix.strides
    if along == 0:
        seen = matrix.one(1, 0)
        return "row", seen if seen.contiguous else None
    if along != 1:
        return "", None
    if down == 0 and rows.count > 1:
        return "column", matrix.one(0, 0)
    return "element", matrix


def over_rows(program: Program) -> Iterator[Step]:
    """Yields a program's steps, with row reductions fused with elementwise steps around them."""

    def of(step: Step, number: int) -> Region | Rows | None:
        return rows(step, number) or region(step, number)

    return merged(program, of, joined)
