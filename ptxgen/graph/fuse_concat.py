"""Fusion of concatenations with the elementwise step that reads them.

A concatenation copies each array into its part of a memory. An elementwise step that reads all of
it is cut into the same parts. Each part reads its own array, and all parts are one step. So swapped
halves, as in rotary embeddings, are not stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ptxgen.errors import FormulaError, ShapeError
from ptxgen.graph.fuse import Region, combined, joined, region
from ptxgen.graph.worth import worth
from ptxgen.program.buffer import INPUT, Buffer, Memory
from ptxgen.program.step import Operand, Program, Step
from ptxgen.runtime.strided import overlaps_itself

PARTS_MAX = 4
"""Most parts of a fused concatenation: each thread computes an element of every part."""


def in_parts(program: Program) -> Iterator[Step]:
    """Yields the steps of a program, in which elementwise steps read the operands of a
    concatenation instead of its result.
    """
    steps: list[Step | None] = list(program.steps)
    readers: dict[Memory, list[int]] = {}
    writers: dict[Memory, list[int]] = {}
    for number, step in enumerate(program.steps):
        for of, buffers in (readers, step.reads()), (writers, step.writes()):
            for memory in dict.fromkeys(b.memory for b in buffers):
                of.setdefault(memory, []).append(number)
    outputs = {b.memory for b in program.outputs if b is not None}
    for memory, numbers in writers.items():
        last = readers.get(memory, [])
        given = memory.role == INPUT or memory in outputs
        if given or len(last) != 1 or len(numbers) > PARTS_MAX or numbers[-1] >= last[0]:
            continue
        found = _fused_parts(steps, memory, numbers, last[0])
        if found is not None:
            for number in numbers:
                steps[number] = None
            steps[last[0]] = found
    yield from (step for step in steps if step is not None)


def _fused_parts(
    steps: Sequence[Step | None], memory: Memory, numbers: Sequence[int], last: int
) -> Step | None:
    """Fuses the elementwise steps at indices ``numbers``, each of which writes a part of
    ``memory``, into the step at index ``last``, which reads it. Returns the fused step; None if
    that is impossible or predicted to be slower.
    """
    step = steps[last]
    of = region(step, last) if step is not None else None
    if of is None:
        return None
    firsts: list[Region] = []
    for number in numbers:
        first = region(s, number) if (s := steps[number]) is not None else None
        behind = (s for s in steps[number + 1 : last + 1] if s is not None)
        if first is None or first.written != {memory}:
            return None
        if any(first.read & {b.memory for b in s.writes()} for s in behind):
            return None
        firsts += (replace(first, results=(each,)) for each in first.results)
    if not 1 < len(firsts) <= PARTS_MAX:
        return None
    firsts.sort(key=lambda r: r.results[0][1].offset)
    if not _evenly_spaced([r.results[0][1] for r in firsts]):
        return None
    for axis in range(len(of.shape)):
        parts = _cut(of, axis, firsts)
        try:
            if parts is not None:
                names = dict.fromkeys(n for r in firsts for n in r.names)
                made = replace(combined(*parts), names=(*names, *of.names)).step()
                before = [s for number in (*numbers, last) if (s := steps[number]) is not None]
                return made if worth(made, before) else None
        except (ShapeError, FormulaError):
            return None
    return None


def _evenly_spaced(written: Sequence[Buffer]) -> bool:
    """Whether buffers have one shape and layout, equal distances, and no element in common."""
    first, second = written[:2]
    step = second.offset - first.offset
    alike = all(
        (b.shape, b.strides, b.offset) == (first.shape, first.strides, first.offset + i * step)
        for i, b in enumerate(written)
    )
    steps, rest = divmod(step, first.itemsize)
    shape, strides = (len(written), *first.shape), (steps, *first.strides)
    return alike and not rest and not overlaps_itself(shape, strides)


def _cut(of: Region, axis: int, firsts: Sequence[Region]) -> list[Region] | None:
    """Cuts region ``of``, which reads a concatenation, into equal parts along ``axis``, and fuses
    each part with the region that writes its operand. ``firsts``: these regions, in order. Returns
    the fused regions; None if one cannot be fused, or if their shapes differ.
    """
    inner, rest = divmod(of.shape[axis], len(firsts))
    if rest or not inner:
        return None
    found = []
    for part, first in enumerate(firsts):
        own = _part(of, axis, part * inner, inner)
        both = joined(first, own, set(), True)
        if both is None:
            return None
        found.append(both)
    return found if len({r.shape for r in found}) == 1 else None


def _part(of: Region, axis: int, start: int, length: int) -> Region:
    """Returns the part of a region that computes elements ``start`` to ``start + length`` along an
    axis.
    """

    def cut(x: Operand) -> Operand:
        return x.narrowed(axis, start, length) if isinstance(x, Buffer) else x

    shape = (*of.shape[:axis], length, *of.shape[axis + 1 :])
    reads = {n: cut(x) for n, x in of.reads.items()}
    results = tuple((n, b.narrowed(axis, start, length)) for n, b in of.results)
    return replace(of, shape=shape, reads=reads, results=results)
