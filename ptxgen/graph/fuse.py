"""Fusion of elementwise steps, where one reads the result of another.

A step of the table of pointwise formulas becomes a :class:`Region`: formula nodes, and arrays
broadcast to the shape of its results. If it reads another region's result, directly or through any
view with constant strides (:func:`index_of`), the value is computed in place and rounded as it was
stored. So no bit changes, and a result that no other step reads is not stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from operator import attrgetter
from typing import Any

from ptxgen.errors import DtypeError, FormulaError, ShapeError
from ptxgen.graph.worth import worth
from ptxgen.numerics import pointwise as numerics
from ptxgen.numerics.dtype import STORABLE
from ptxgen.numerics.formula import Formula, Input, Node, Output, cast, substituted
from ptxgen.ops.pointwise import TABLE, problem
from ptxgen.program.buffer import INPUT, Buffer, Memory
from ptxgen.program.step import Operand, Program, Step
from ptxgen.runtime.strided import Ints, overlaps_itself, spread
from ptxgen.spec.pointwise import Form

ARRAYS_MAX = 17
"""Most arrays that a region reads and writes, such as 16 operands and a result: each needs
registers for strides and vectors."""
NODES_MAX = 256
"""Most operations in a region's formula."""
DISTANCE_MAX = 64
"""Largest distance, in steps, over which two steps are fused."""


@dataclass(frozen=True, eq=False)
class Region:
    """One elementwise step, or several fused ones.

    ``shape``: the shape of all results; ``reads``: for each input node an array broadcast to that
    shape, or a scalar; ``results``: formula nodes, each with the buffer that it is written to;
    ``names``: names of its steps.
    """

    shape: Ints
    reads: dict[Node, Operand]
    results: tuple[tuple[Node, Buffer], ...]
    names: tuple[str, ...]

    @cached_property
    def read(self) -> set[Memory]:
        """Memories that the region reads."""
        return {b.memory for b in self.reads.values() if isinstance(b, Buffer)}

    @cached_property
    def written(self) -> set[Memory]:
        """Memories that the region writes."""
        return {b.memory for _, b in self.results}

    @property
    def size(self) -> int:
        """Number of operations in the formula."""
        return Formula(_outputs([n for n, _ in self.results], self.results)).size

    def step(self) -> Step:
        """Converts the region to a step. Raises ShapeError or FormulaError beyond a kernel's
        limits.
        """
        places: dict[Node, Node] = {}
        bind: dict[str, Operand] = {}
        known: dict[object, Node] = {}
        nodes = [node for node, _ in self.results]
        for node in Formula(_outputs(nodes, self.results)).nodes:
            if node.op != "input":
                continue
            operand, own = self.reads[node], node.data
            key = own.dtype, own.kind, layout_key(operand)
            if key not in known:
                name = numerics.operand(len(known))
                bind[name] = operand
                known[key] = Node("input", (), node.type, Input(name, own.dtype, own.kind))
            places[node] = known[key]
        formula = Formula(_outputs(substituted(nodes, places), self.results))
        bind |= {numerics.result(i): b for i, (_, b) in enumerate(self.results)}
        arrays = sum(isinstance(b, Buffer) for b in bind.values())
        if len(self.names) > 1 and (arrays > ARRAYS_MAX or formula.size > NODES_MAX):
            raise ShapeError(f"{arrays} arrays and {formula.size} operations of one region")
        title = "+".join(self.names) if len(self.names) < 6 else f"elementwise({len(self.names)})"
        return Step(problem(title, formula, self.shape, bind, len(self.results)), bind)

    def split(self, axis: int, inner: int) -> Region:
        """Returns the region with dimension ``axis`` split in two, the second of size ``inner``."""
        reads = {
            n: x.split(axis, inner) if isinstance(x, Buffer) else x for n, x in self.reads.items()
        }
        results = tuple((n, b.split(axis, inner)) for n, b in self.results)
        return replace(self, shape=results[0][1].shape, reads=reads, results=results)


def elementwise(step: Step) -> Formula | None:
    """Returns the formula of an elementwise step; None for any other step, and for one that
    computes several copies of a formula.
    """
    if step.problem.table != TABLE or step.kernel is not None or step.also_read:
        return None
    if not step.writes()[0].size:
        return None
    form = step.problem.dtype
    assert isinstance(form, Form), "the table's"
    return form.formula if form.copies == 1 else None


def region(step: Step, number: int) -> Region | None:
    """Returns an elementwise step as a region; None for any other step. ``number``: the step's
    index.
    """
    formula = elementwise(step)
    if formula is None:
        return None
    targets = step.writes()
    shape = targets[0].shape
    places: dict[Node, Node] = {}
    reads: dict[Node, Operand] = {}
    for node in formula.nodes:
        if node.op == "input":
            name, operand = node.data.name, step.bind[node.data.name]
            own = Node("input", (), node.type, replace(node.data, name=f"{number}.{name}"))
            places[node], reads[own] = own, _broadcast(operand, shape)
    nodes = substituted([o.node for o in formula.outputs], places)
    name = step.problem.what.split(" of shape")[0]
    return Region(shape, reads, tuple(zip(nodes, targets, strict=True)), (name,))


def _outputs(nodes: list[Node], results: tuple[tuple[Node, Buffer], ...]) -> tuple[Output, ...]:
    pairs = zip(nodes, results, strict=True)
    return tuple(
        Output(numerics.result(i), STORABLE[b.dtype], n) for i, (n, (_, b)) in enumerate(pairs)
    )


def _broadcast(x: Operand, shape: Ints) -> Operand:
    if not isinstance(x, Buffer):
        return x
    strides = spread(x.shape, x.strides, shape)
    assert strides is not None, "what a step reads broadcasts to what it writes"
    return x.laid(shape, strides)


def layout_key(x: Operand) -> object:
    """Returns a key that is equal for operands with the same memory, layout and dtype."""
    if not isinstance(x, Buffer):
        return x
    pairs = zip(x.shape, x.strides, strict=True)  # strides of size-1 dimensions do not matter
    return x.memory, x.offset, x.shape, tuple(s if n > 1 else 0 for n, s in pairs), x.dtype


# -- indices ----------------------------------------------------------------------------------
@dataclass(frozen=True)
class Index:
    """An affine map from indices j of one shape to indices of another: ``origin + steps @ j``."""

    origin: Ints
    steps: tuple[Ints, ...]

    def of(self, x: Buffer, shape: Ints) -> Buffer:
        """Returns the view of ``x`` in ``shape`` whose element j is ``x[origin + steps @ j]``."""
        pairs = list(zip(x.strides, self.steps, strict=True))
        strides = tuple(sum(s * c[d] for s, c in pairs) for d in range(len(shape)))
        first = sum(s * o for s, o in zip(x.strides, self.origin, strict=True))
        return replace(x, shape=shape, strides=strides, offset=x.offset + first * x.itemsize)


def _strided_axes(x: Buffer) -> list[tuple[int, int, int]] | None:
    """Returns (stride, size, index) of each dimension of more than one element, by decreasing
    stride; None if dimensions overlap, so that an offset does not determine the index.
    """
    found = [(s, n, k) for k, (s, n) in enumerate(zip(x.strides, x.shape, strict=True)) if n > 1]
    found.sort(reverse=True)
    inner = 1
    for step, size, _ in reversed(found):
        if step < inner:
            return None
        inner = step * size
    return found


def _index_at(distance: int, places: list[tuple[int, int, int]], count: int) -> list[int] | None:
    """Converts ``distance``, an offset from an array's first element in elements, to an index of
    ``count`` dimensions; None if no element is there. ``places``: the array's dimensions, from
    :func:`_strided_axes`.
    """
    found = [0] * count
    for step, size, k in places:
        found[k], distance = divmod(distance, step)
        if found[k] >= size:
            return None
    return None if distance else found


def index_of(of: Buffer, view: Buffer) -> Index | None:
    """Returns the affine map from indices of ``view`` to indices of ``of``, two arrays in one
    memory; None if there is none.
    """
    places, (distance, rest) = _strided_axes(of), divmod(view.offset - of.offset, of.itemsize)
    if places is None or rest or distance < 0 or view.dtype != of.dtype:
        return None
    origin = _index_at(distance, places, of.ndim)
    if origin is None:
        return None
    last, columns = list(origin), []
    for size, step in zip(view.shape, view.strides, strict=True):
        found = _index_at(step, places, of.ndim) if size > 1 and step > 0 else [0] * of.ndim
        if found is None or (size > 1 and step < 0):
            return None
        columns.append(found)
        last = [a + c * (size - 1) for a, c in zip(last, found, strict=True)]
    if any(a >= n for a, n in zip(last, of.shape, strict=True)):
        return None
    return Index(tuple(origin), tuple(zip(*columns, strict=True)) or ((),) * of.ndim)


def axis_splits(view: Buffer, of: Buffer) -> Iterator[tuple[int, int]]:
    """Yields pairs (axis, inner size): dimensions of ``view`` to be split, one after the other, so
    that each then stays within one dimension of ``of``, an array in the same memory. A flattened
    view, for example, is split into the dimensions that were flattened.
    """
    places = {s: n for s, n, _ in _strided_axes(of) or ()}
    axis = 0
    while axis < view.ndim:
        size = view.shape[axis]
        inner = places.get(view.strides[axis], size)
        if 1 < inner < size and size % inner == 0:
            yield axis, inner
            view = view.split(axis, inner)
        else:
            axis += 1


def _refined(to: Region, of: Buffer, node: Node) -> Region:
    """Returns region ``to`` with dimensions split so that each dimension of its input ``node``
    stays within one dimension of ``of``, the array that this input is a view of
    (:func:`axis_splits`).
    """
    view = to.reads[node]
    assert isinstance(view, Buffer), "an array"
    for axis, inner in axis_splits(view, of):
        to = to.split(axis, inner)
    return to


# -- joining ----------------------------------------------------------------------------------
def _result_index(first: Region, view: Buffer) -> int | None:
    """Returns the index in ``first.results`` of the result that ``view`` reads: the one in its
    memory; if there are several, the one that contains its first element. None if there is none.
    """
    own = [i for i, (_, b) in enumerate(first.results) if b.memory is view.memory]
    if len(own) < 2:
        return own[0] if own else None
    return next((i for i in own if _has_first_element(first.results[i][1], view)), None)


def _has_first_element(of: Buffer, view: Buffer) -> bool:
    """Whether array ``of`` has the first element of ``view``, in the same memory."""
    places, (distance, rest) = _strided_axes(of), divmod(view.offset - of.offset, of.itemsize)
    within = places is not None and not rest and distance >= 0
    return within and _index_at(distance, places or [], of.ndim) is not None


def joined(first: Region, to: Region, needed: set[Memory], repeat: bool) -> Region | None:
    """Fuses two regions, the second of which reads results of the first; None if impossible.

    ``needed``: results of ``first`` that other steps read, which stay stored; ``repeat``: whether
    elements of ``first`` may be computed more than once.
    """
    read = [(n, b) for n, b in to.reads.items() if isinstance(b, Buffer)]
    hits = [(n, made) for n, b in read if (made := _result_index(first, b)) is not None]
    if len(hits) < sum(b.memory in first.written for _, b in read) or not hits:
        return None
    if first.written & to.written:
        return None
    for node, made in hits:
        to = _refined(to, first.results[made][1], node)
    views = [b for n, _ in hits if isinstance(b := to.reads[n], Buffer)]
    found = [index_of(first.results[i][1], v) for (_, i), v in zip(hits, views, strict=True)]
    indices = list(dict.fromkeys(i for i in found if i is not None))
    kept = bool(first.written & needed)
    repeated = len(indices) > 1 or prod(to.shape) > prod(first.shape)
    if None in found or (repeated and not repeat):
        return None
    if kept and (repeated or prod(to.shape) < prod(first.shape) or _overlaps(views[0])):
        return None
    reads = {n: x for n, x in to.reads.items() if all(n is not node for node, _ in hits)}
    places: dict[Node, Node] = {}
    stored: tuple[tuple[Node, Buffer], ...] = ()
    for number, index in enumerate(indices):
        own: dict[Node, Node] = {}
        for node, x in first.reads.items():
            name = f"{number}.{node.data.name}"
            own[node] = Node("input", (), node.type, replace(node.data, name=name))
            reads[own[node]] = index.of(x, to.shape) if isinstance(x, Buffer) else x
        values = substituted([n for n, _ in first.results], own)
        for (node, made), view, at in zip(hits, views, found, strict=True):
            if at == index:
                places[node] = as_stored(values[made], view.dtype)
        if kept:
            pairs = zip(values, (b for _, b in first.results), strict=True)
            stored = tuple((n, index.of(b, to.shape)) for n, b in pairs if b.memory in needed)
    nodes = substituted([n for n, _ in to.results], places)
    targets = [b for _, b in to.results]
    results = (*stored, *zip(nodes, targets, strict=True))
    if first.read & to.written and not _in_place(reads, targets):
        return None
    return Region(to.shape, reads, results, (*first.names, *to.names))


def combined(*regions: Region) -> Region:
    """Returns one region that computes the results of several regions of one shape, none of which
    reads another's results.
    """
    reads: dict[Node, Operand] = {}
    results: list[tuple[Node, Buffer]] = []
    for number, part in enumerate(regions):
        own: dict[Node, Node] = {}
        for node, x in part.reads.items():
            name = f"{number}.{node.data.name}"
            own[node] = Node("input", (), node.type, replace(node.data, name=name))
            reads[own[node]] = x
        nodes = substituted([n for n, _ in part.results], own)
        results += zip(nodes, (b for _, b in part.results), strict=True)
    names = tuple(name for each in regions for name in each.names)
    return Region(regions[0].shape, reads, tuple(results), names)


def _siblings(first: Region, second: Region, needed: set[Memory], repeat: bool) -> Region | None:
    """Fuses two regions of one shape that read the same view of an array (not broadcast). Returns
    None if there is no such array, or one reads or writes memory that the other writes.

    ``needed`` and ``repeat``: as in :func:`joined`; without effect here.
    """
    if first.shape != second.shape or first.written & (second.read | second.written):
        return None
    if second.written & first.read:
        return None
    facts = (
        {layout_key(x) for x in r.reads.values() if isinstance(x, Buffer) and not _overlaps(x)}
        for r in (first, second)
    )
    return combined(first, second) if set.intersection(*facts) else None


def _in_place(reads: dict[Node, Operand], targets: list[Buffer]) -> bool:
    """Whether each element of written memory is read only where it is written: every array of
    ``reads`` in the memory of one of ``targets`` has that target's layout. False if two targets
    share memory.
    """
    places = {b.memory: (b.offset, b.shape, b.strides, b.dtype) for b in targets}
    return len(places) == len(targets) and all(
        places.get(b.memory, own) == own
        for b in reads.values()
        if isinstance(b, Buffer)
        for own in [(b.offset, b.shape, b.strides, b.dtype)]
    )


def _overlaps(x: Buffer) -> bool:
    return overlaps_itself(x.shape, x.strides)


def as_stored(node: Node, dtype: str) -> Node:
    """Returns the value that a reader would load after ``node`` was stored as ``dtype``: the node,
    rounded to that dtype unless it already is.
    """
    short = STORABLE[dtype]
    rounded = node.data if node.op == "round_to" else node.op == "input" and node.data.dtype
    return node if rounded == short else cast(node, short)


@dataclass(eq=False)
class _Item:
    """A step while steps are fused: ``of`` has the indices of the original steps in it, ``region``
    its description (None if it cannot be fused).
    """

    step: Step
    of: set[int]
    region: Any

    @cached_property
    def read(self) -> set[Memory]:
        return {b.memory for b in self.step.reads()}

    @cached_property
    def written(self) -> set[Memory]:
        return {b.memory for b in self.step.writes()}


def fused(program: Program) -> Iterator[Step]:
    """Yields the steps of a program, with elementwise steps fused with those that read their
    results.
    """
    return merged(program, region, joined)


def together(program: Program) -> Iterator[Step]:
    """Yields the steps of a program, with elementwise steps fused if they read the same view of an
    array.
    """
    return merged(program, region, _siblings, attrgetter("read"))


def merged(
    program: Program,
    region: Callable[[Step, int], Any],
    joined: Callable[[Any, Any, Any, bool], Any],
    shared: Callable[[Any], set[Memory]] = attrgetter("written"),
    weighed: bool = False,
) -> Iterator[Step]:
    """Yields the steps of a program after fusing pairs of steps repeatedly.

    ``region``: returns a description of a step with ``read``, ``written`` and ``step()``, or None
    if it is never fused. ``joined``: fuses two descriptions, as :func:`joined` does for regions. A
    pair is tried if the second reads a memory in ``shared(first)``, by default one that it writes.

    Fusions that repeat no work come first. They save a launch and bytes at no cost, so they are
    always done, unless ``weighed``. Fusions that repeat work come next. These, and all if
    ``weighed``, are done only if the fused step is predicted to be :func:`worth` it.
    """
    readers: dict[Memory, set[int]] = {}
    writers: dict[Memory, set[int]] = {}
    for number, step in enumerate(program.steps):
        for b in step.reads():
            readers.setdefault(b.memory, set()).add(number)
        for b in step.writes():
            writers.setdefault(b.memory, set()).add(number)
    outputs = {b.memory for b in program.outputs if b is not None}
    once = {m for m, of in writers.items() if len(of) == 1 and m.role != INPUT}
    items: list[_Item] = []

    def join(at: int, number: int, repeat: bool) -> bool:
        """Fuses items ``at`` and ``number`` at the position of either; returns whether it could."""
        first, second = items[at], items[number]
        if not first.region.written <= once:
            return False
        between = items[at + 1 : number]
        of = first.of | second.of
        needed = {m for m in first.region.written if m in outputs or readers.get(m, set()) - of}
        late = not any(
            t.written & first.region.read or t.read & needed or t.written & needed for t in between
        )
        early = not any(
            t.written & second.region.read or (t.read | t.written) & second.region.written
            for t in between
        )
        if not (late or early):
            return False
        both = joined(first.region, second.region, needed, repeat)
        try:
            step = both.step() if both is not None else None
        except (ShapeError, FormulaError, DtypeError):
            return False
        if step is None:
            return False
        if (repeat or weighed) and not worth(step, (first.step, second.step)):
            return False
        place = number if late else at
        items[place] = _Item(step, of, both)
        del items[at if late else number]
        return True

    def settle(latest: _Item, repeat: bool) -> None:
        """Fuses an item with earlier ones until no pair can be fused."""
        while latest.region is not None:
            where, read = items.index(latest), latest.region.read
            for at in range(where - 1, max(-1, where - DISTANCE_MAX - 1), -1):
                first = items[at].region
                related = first is not None and not read.isdisjoint(shared(first))
                if related and join(at, where, repeat):
                    break
            else:
                break
            latest = next(item for item in items if latest.of < item.of)

    for number, step in enumerate(program.steps):
        items.append(_Item(step, {number}, region(step, number)))
        settle(items[-1], False)
    for item in tuple(items):
        if item in items:
            settle(item, True)
    yield from (item.step for item in items)
