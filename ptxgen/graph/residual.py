"""Sums that are normalised, row by row: one step, which writes the sum and the norm."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ptxgen.errors import PtxgenError
from ptxgen.graph.fuse import region
from ptxgen.ops import OPERATIONS
from ptxgen.program.buffer import INPUT, Buffer, Memory
from ptxgen.program.build import ProgramBuilder
from ptxgen.program.step import Program, Step
from ptxgen.tiles.rowwise import KEY

NORMS = {
    "rms_norm": "add_rms_norm",
    "native_rms_norm": "add_rms_norm",
    "layer_norm": "add_layer_norm",
    "native_layer_norm": "add_layer_norm",
}
"""Norms of rows, and each with a residual: of the sum, which is rounded as it is stored."""


def normed(program: Program) -> Iterator[Step]:
    """The steps of a program; sums of two arrays are made by the norm that reads them."""
    steps: list[Step | None] = list(program.steps)
    read = {b.memory for s in program.steps for b in s.reads()}
    read |= {b.memory for b in program.outputs if b is not None}
    writers: dict[Memory, list[int]] = {}
    for number, step in enumerate(program.steps):
        x = _normalised(step, read)
        made = writers.get(x.memory, []) if x is not None else []
        found = None
        if x is not None and len(made) == 1:
            found = _joined(program.steps[made[0] : number + 1], x)
        if found is not None:
            steps[made[0]], steps[number] = found, None
        for memory in {b.memory for b in step.writes()}:
            writers.setdefault(memory, []).append(number)
    yield from (s for s in steps if s is not None)


def _normalised(step: Step, read: set[Memory]) -> Buffer | None:
    """What a norm normalises; None for what is none, or makes moments that somebody reads."""
    own = step.problem.table == KEY and step.kernel is None
    if not own or _name(step) not in NORMS:
        return None
    x, out = step.bind["x"], step.bind["out"]
    used = any(b.memory in read for b in step.writes() if b is not out)
    return x if isinstance(x, Buffer) and not used else None


def _name(step: Step) -> str:
    return str(step.problem.dtype).split()[0]


def _joined(steps: Sequence[Step], x: Buffer) -> Step | None:
    """The first of some steps, which adds, and the last, the norm, as one in the place of the
    first; None where that cannot be.
    """
    before, *between, norm = steps
    terms, out = _terms(before, x), norm.bind["out"]
    vectors = {n: v for n in ("weight", "bias") if isinstance(v := norm.bind.get(n), Buffer)}
    if terms is None or not isinstance(out, Buffer) or x.memory.role == INPUT:
        return None
    given = {b.memory for b in vectors.values()}
    for step in between:
        written, read = ({b.memory for b in of} for of in (step.writes(), step.reads()))
        if given & written or out.memory in read | written:
            return None
    b, name = ProgramBuilder(OPERATIONS), NORMS[_name(norm)]
    try:
        b.rows(name, *terms, **vectors, eps=dict(norm.problem.scalars)["EPS"], out=(out, x))
    except PtxgenError:  # rows that no kernel reads as they lie
        return None
    return b.steps[0]


def _terms(step: Step, total: Buffer) -> list[Buffer] | None:
    """The two arrays that a step adds, in the shape of what it makes; None if it does more."""
    of = region(step, 0)
    if of is None or len(of.results) != 1 or of.results[0][0].op != "add":
        return None
    ((node, made),) = of.results
    given = [x for a in node.args if isinstance(x := of.reads.get(a), Buffer)]
    found = [x.reshaped(total.shape) for x in given if x.size == total.size]
    plain = [x for x in found if x is not None and x.dtype == total.dtype]
    whole = made.contiguous and total.contiguous
    same = (made.offset, made.size, made.dtype) == (total.offset, total.size, total.dtype)
    return plain if whole and same and len(plain) == 2 else None
