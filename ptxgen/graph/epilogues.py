"""Epilogue fusion: moves elementwise steps into the GEMM kernels whose results they read.

A GEMM kernel has its result in registers, or in shared memory, before it stores it. The elementwise
step is computed there, from the result rounded to its dtype. So no bit changes, and a result that
no other step reads is neither stored nor loaded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from math import prod
from operator import or_

from ptxgen.errors import ShapeError
from ptxgen.graph import fuse
from ptxgen.graph.fuse import NODES_MAX, Region, as_stored, layout_key, merged, region
from ptxgen.graph.fuse_reductions import constant, rows
from ptxgen.numerics.dtype import Mixed
from ptxgen.numerics.formula import Formula, Input, Node, Output, read, substituted
from ptxgen.ops.pointwise import short
from ptxgen.program.buffer import Buffer, Memory
from ptxgen.program.step import Operand, Program, Step
from ptxgen.spec import ACCUMULATE, CONTINUE, OUT_F32, Problem
from ptxgen.spec.epilogue import PRODUCT, Epilogue
from ptxgen.tiles.gemm import concludes

ARRAYS_MAX = 4
"""Most arrays that an epilogue reads and writes, since accumulators occupy registers meanwhile."""


@dataclass(frozen=True, eq=False)
class Product:
    """A product (GEMM), and the elementwise steps that were moved into its epilogue.

    ``plain``: the step of the product alone; ``own``: the product's result [M, N], of a batch
    [outer, inner, M, N]; ``reads``: the array of each input node except the product's, viewed so;
    ``results``: formula nodes, each with the buffer that it is written to; ``names``: names of the
    elementwise steps.
    """

    plain: Step
    own: Buffer
    reads: dict[Node, Buffer]
    results: tuple[tuple[Node, Buffer], ...]
    names: tuple[str, ...] = ()

    @cached_property
    def read(self) -> set[Memory]:
        """Memories that the step reads."""
        return {b.memory for b in (*self.plain.reads(), *self.reads.values())}

    @cached_property
    def written(self) -> set[Memory]:
        """Memories that the step writes."""
        return {b.memory for _, b in self.results}

    def step(self) -> Step:
        """Converts the product to a step. Raises ShapeError, FormulaError or DtypeError beyond an
        epilogue's limits.
        """
        places: dict[Node, Node] = {}
        known: dict[object, Node] = {}
        given: dict[str, Buffer] = {}
        names = ["c", *(f"y{i}" for i in range(1, len(self.results)))]
        nodes = [node for node, _ in self.results]
        for node in self._formula(nodes, names).nodes:
            if node.op != "input" or node not in self.reads:
                continue
            x = self.reads[node]
            dtype = short(x.dtype, node.data.name)
            key = dtype, layout_key(x)
            if key not in known:
                name = f"x{len(known)}"
                given[name] = x
                known[key] = read(name, dtype)
            places[node] = known[key]
        formula = self._formula(substituted(nodes, places), names)
        if len(given) + len(names) > ARRAYS_MAX or formula.size > NODES_MAX:
            raise ShapeError(f"{len(given)} arrays and {formula.size} operations of one epilogue")
        targets = {n: b for n, (_, b) in zip(names, self.results, strict=True)}
        matrices = {n: _matrix(b, self.own.shape) for n, b in targets.items()}
        if any(x is None or _row_step(x) != "v" for x in matrices.values()):
            raise ShapeError("a result that is not written in rows")
        batched = self.own.ndim > 2
        problem = _split(self.plain.problem, self.own.shape[:-2])
        pitches: dict[str, int | float] = {}
        words = ("OUTER_", "BATCH_", "LD") if batched else ("LD",)
        for name, array in {**matrices, **given}.items():
            if array is not None:
                named = (word + name.upper() for word in words)
                pitches |= dict(zip(named, _strides(array)[:-1], strict=True))
        operands = problem.dtype
        assert isinstance(operands, str | Mixed), "product() has checked"
        steps = "".join(_row_step(x) for x in given.values())
        first, *rest = problem.what.split(" ")
        bind: dict[str, Operand] = {**self.plain.bind, **targets}
        bind |= {name: _without_broadcast(x) for name, x in given.items()}
        asked = replace(
            problem,
            dtype=Epilogue(operands, formula, steps, batched),
            scalars=tuple({**dict(problem.scalars), **pitches}.items()),
            what=" ".join(("+".join((first, *self.names)), *rest)),
        )
        return Step(asked, bind)

    def _formula(self, nodes: list[Node], names: list[str]) -> Formula:
        dtypes = (short(b.dtype, n) for n, (_, b) in zip(names, self.results, strict=True))
        return Formula(tuple(map(Output, names, dtypes, nodes)))


def product(step: Step) -> Product | None:
    """Returns a step as a product whose kernels take a formula as their epilogue.

    Returns None for any other step, for a product that accumulates into its output or has another
    dtype than its operands, for a batch whose results do not follow one another in its order, and
    for a kernel forced by name.
    """
    problem, c = step.problem, step.bind.get("c")
    if not concludes(problem.table) or step.kernel is not None or step.also_read:
        return None
    flags = int(dict(problem.scalars)["FLAGS"])
    mixed = isinstance(problem.dtype, Mixed)  # whose result is f32, like A
    if flags & (ACCUMULATE | CONTINUE | (0 if mixed else OUT_F32)):
        return None
    values = dict(problem.values)
    if not isinstance(c, Buffer) or not isinstance(problem.dtype, str | Mixed):
        return None
    along: tuple[int, ...] = problem.batch[::-1] if problem.count > 1 else ()
    if problem.count > 1 and c.ndim == 4 and prod(c.shape[:2]) == along[1]:
        along = (c.shape[0], c.shape[1])  # two dimensions that were merged; other arrays differ
    own = _matrix(c, (*along, values["M"], values["N"]))
    if own is None or _strides(own)[: len(along)] != _along("C", _split(problem, along), along):
        return None
    return Product(step, own, {}, ((read(PRODUCT, short(c.dtype, "c")), c),))


def _split(problem: Problem, along: tuple[int, ...]) -> Problem:
    """Returns ``problem`` with the outer and the inner dimension ``along`` of its batch, which it
    may have as one, evenly spaced.
    """
    if not along or problem.batch == (found := (along[1], along[0])):
        return problem
    scalars = dict(problem.scalars)
    outer = {f"OUTER_{x}": scalars[f"BATCH_{x}"] * found[0] for x in "ABC"}
    changed = {**scalars, **outer, "INNER": found[0]}
    return replace(problem, batch=found, scalars=tuple(changed.items()))


def _along(x: str, problem: Problem, along: tuple[int, ...]) -> tuple[int | float, ...]:
    """Returns the strides of operand "A", "B" or "C" along the dimensions of a problem's batch."""
    scalars = dict(problem.scalars)
    names = (f"OUTER_{x}", f"BATCH_{x}")
    return tuple(scalars[n] if size > 1 else 0 for n, size in zip(names, along, strict=False))


def _matrix(x: Buffer, shape: tuple[int, ...]) -> Buffer | None:
    """Returns ``x`` viewed in ``shape``, that of :attr:`Product.own`; None if it has another number
    of elements, or no view has that shape.
    """
    return x.reshaped(shape) if x.size == prod(shape) else None


def _row_step(x: Buffer) -> str:
    """Returns the letter of the stride between adjacent elements of a row: "v" for 1, "u" for 0
    (broadcast), "" for others (:class:`ptxgen.spec.epilogue.Array`).
    """
    return "v" if x.shape[-1] == 1 else {0: "u", 1: "v"}.get(x.strides[-1], "")


def _strides(x: Buffer) -> tuple[int, ...]:
    """Returns the strides of ``x``, 0 along batch dimensions of one matrix."""
    several = (n > 1 for n in (*x.shape[:-2], 2, 2))
    return tuple(s if more else 0 for s, more in zip(x.strides, several, strict=True))


def _without_broadcast(x: Buffer) -> Buffer:
    """Returns an array without the dimensions that are broadcast (stride 0)."""
    for axis in reversed(range(x.ndim)):
        if x.strides[axis] == 0:
            x = x.one(axis, 0)
    return x


def joined(first: Product, to: Region, needed: set[Memory]) -> Product | None:
    """Fuses a product and an elementwise step that reads its result; None if they cannot be fused.

    ``needed``: results of ``first`` that other steps read, which stay stored.
    """
    if (first.read | (to.read - first.written)) & (first.written | to.written):
        return None
    if first.written & to.written or prod(to.shape) != first.own.size:
        return None
    made = {b.memory: (node, b) for node, b in first.results}
    places: dict[Node, Node] = {}
    reads = dict(first.reads)
    for node, x in to.reads.items():
        if not isinstance(x, Buffer):
            value = constant(node, x)
            if value is None:
                return None
            places[node] = value
            continue
        seen = _matrix(x, first.own.shape)
        if seen is None or not _row_step(seen):
            return None
        if x.memory not in made:
            own = Input(f"{len(reads)}.{node.data.name}", node.data.dtype)
            places[node] = Node("input", (), node.type, own)
            reads[places[node]] = seen
            continue
        value, target = made[x.memory]
        as_written = _matrix(target, first.own.shape)
        if as_written is None or layout_key(as_written) != layout_key(seen):
            return None
        places[node] = as_stored(value, target.dtype)
    nodes = substituted([n for n, _ in to.results], places)
    kept = ((n, b) for n, b in first.results if b.memory in needed)
    results = (*kept, *zip(nodes, (b for _, b in to.results), strict=True))
    return Product(first.plain, first.own, reads, results, (*first.names, *to.names))


def in_epilogues(program: Program) -> Iterator[Step]:
    """Yields the steps of a program, with elementwise steps fused into the epilogues of the
    products (GEMMs) whose results they read, where that is possible and not predicted to be slower.
    Two elementwise steps, one of which reads the other's result, are fused first if either reads a
    product's result, and no other step reads the result between them.

    An elementwise step is left to a later pass in two cases. First, another elementwise step or a
    row reduction reads its results, and either these have more bytes than the product's result
    (such as the squares of a norm), or the product's result is stored anyway, for other readers.
    Second, the step also reads an array that elementwise steps alone write and read, and that waits
    for steps on which the product does not depend. Fused with the writer of that array instead, the
    step saves storing it.
    """
    made: set[Memory] = set()
    elementwise = [region(step, at) for at, step in enumerate(program.steps)]
    pairs = list(zip(elementwise, program.steps, strict=True))
    computed = {
        b.memory for at, (own, s) in enumerate(pairs) if own or rows(s, at) for b in s.reads()
    }
    stored = {b.memory for b in program.outputs if b is not None}
    stored |= {b.memory for own, step in pairs if own is None for b in step.reads()}
    passing = {m for own in elementwise if own for m in own.written} - stored
    awaits: dict[Memory, int] = {}  # bit mask of the steps that each memory's content depends on
    for at, step in enumerate(program.steps):
        lead = reduce(or_, (awaits.get(b.memory, 0) for b in step.reads()), 1 << at)
        awaits |= {b.memory: awaits.get(b.memory, 0) | lead for b in step.writes()}

    def of(step: Step, at: int) -> Product | Region | None:
        found = product(step)
        if found is not None:
            made.update(found.written)
        return found or elementwise[at]

    def both(
        first: Product | Region, to: Product | Region, needed: set[Memory], repeat: bool
    ) -> Product | Region | None:
        if not isinstance(to, Region):
            return None
        if isinstance(first, Product):
            found = joined(first, to, needed)
            dear = needed or sum(b.nbytes for _, b in to.results) > first.own.nbytes
            if found is None or (dear and to.written & computed):
                return None
            before = awaits[first.own.memory]
            if any(awaits[m] | before != before for m in to.read & passing - made):
                return None
            made.update(found.written)
            return found
        if needed or not (first.read | to.read) & made:
            return None
        return fuse.joined(first, to, needed, repeat)

    return merged(program, of, both, weighed=True)
