"""In-place writes: steps write to the final memory instead of a temporary that is copied there.

A step that copies a temporary to the caller's memory is dropped if all steps that use the temporary
can use that memory instead. Elementwise steps overwrite an input that no later step reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ptxgen.graph.fuse import Region, elementwise, region
from ptxgen.program.buffer import ALIGN, TEMPORARY, Buffer, Memory
from ptxgen.program.step import Operand, Program, Step


def copied(step: Step) -> tuple[Buffer, Buffer] | None:
    """Returns (source, target) of a step that only copies; None for any other step."""
    formula = elementwise(step)
    if formula is None or len(step.written) != 1 or len(step.read) != 1:
        return None
    (source,), (target,), (made,) = step.reads(), step.writes(), formula.outputs
    if made.node.op != "input" or source.dtype != target.dtype or source.shape != target.shape:
        return None
    return source, target


def _ordered(step: Step) -> tuple[Buffer, Buffer] | None:
    """Returns source and target of a step that only copies, in a common order of dimensions:
    without those of size 1, by decreasing stride of the target. None for any other step.
    """
    pair = copied(step)
    if pair is None:
        return None
    source, target = pair
    order = sorted(range(target.ndim), key=lambda i: -target.strides[i])
    order = [i for i in order if target.shape[i] > 1]
    shape = tuple(target.shape[i] for i in order)
    return (
        source.laid(shape, tuple(source.strides[i] for i in order)),
        target.laid(shape, tuple(target.strides[i] for i in order)),
    )


def renamed(step: Step, memories: Mapping[Memory, Memory], shift: int = 0) -> Step:
    """Returns a step with its buffers moved to other memories. ``memories``: the new memory of each
    that is replaced; ``shift``: bytes that are added to the offsets in these.
    """
    if memories.keys().isdisjoint(b.memory for b in step.buffers()):
        return step

    def to(operand: Operand) -> Operand:
        if isinstance(operand, Buffer) and operand.memory in memories:
            memory, offset = memories[operand.memory], operand.offset + shift
            return replace(operand, memory=memory, offset=offset)
        return operand

    return replace(step, bind={name: to(x) for name, x in step.bind.items()})


def _same_layout(a: Buffer, b: Buffer) -> bool:
    """Whether two arrays have the same shape, strides and dtype, at any offset."""
    found = zip(a.shape, a.strides, b.strides, strict=True)
    return (a.shape, a.dtype) == (b.shape, b.dtype) and all(s == t for n, s, t in found if n > 1)


def may_overlap(a: Buffer, b: Buffer) -> bool:
    """Whether two arrays may share bytes."""
    (low, high), (first, last) = a.span(), b.span()
    return a.memory is b.memory and low < last and first < high


def _dense(x: Buffer) -> bool:
    low, high = x.span()
    return high - low == x.nbytes > 0


def written_in_place(program: Program) -> Iterator[Step]:
    """Yields the steps of a program, without copies to the caller's memory that steps can write
    directly.
    """
    outputs = {b.memory for b in program.outputs if b is not None}
    steps, at = list(program.steps), len(program.steps) - 1
    while at >= 0:
        pair = _ordered(steps[at])
        found = None
        if pair is not None and pair[0].memory.role == TEMPORARY and pair[0].memory not in outputs:
            found = _without_copy(steps, at, *pair, outputs)
        if found is not None:
            steps, at = found, len(found)
        at -= 1
    yield from steps


def _without_copy(
    steps: Sequence[Step], at: int, source: Buffer, target: Buffer, outputs: set[Memory]
) -> list[Step] | None:
    """Returns the steps without the copy from ``source`` to ``target`` at index ``at``; steps then
    use one memory for both arrays. None if that would change a result.

    ``outputs``: memories that the program returns.
    """
    memory, place, shift = source.memory, target.memory, target.offset - source.offset
    own = [(i, b) for i, s in enumerate(steps) for b in s.buffers() if b.memory is memory]
    inside = all(source.span()[0] <= b.span()[0] <= b.span()[1] <= source.span()[1] for _, b in own)
    if not inside or not _dense(source) or not _same_layout(source, target):
        return None
    writing = [i for i, s in enumerate(steps) if any(b.memory is memory for b in s.writes())]
    first, last = own[0][0], own[-1][0]
    if place.role == TEMPORARY and place not in outputs and last == at and len(writing) > 1:
        touched = next(i for i, s in enumerate(steps) if place in {b.memory for b in s.buffers()})
        if touched == at and target.nbytes == place.nbytes:  # the source ends here
            return [renamed(s, {place: memory}, -shift) for i, s in enumerate(steps) if i != at]
    if not place.written or (place.low + shift) % ALIGN or writing[-1] > at:
        return None  # kernels were chosen for the alignment of the temporary
    begin = _ordered(steps[first])
    whole = begin is not None and begin[0].same(target) and begin[1].same(source)
    change = next((i for i in writing if i > first), at) if whole else first
    for i in range(change, last + 1):
        step = steps[i]
        met = [b for b in (step.buffers() if i < at else step.writes()) if may_overlap(b, target)]
        if i != at and met and (whole or i != change or not _in_order(step, memory, target, shift)):
            return None
    gone = {at, first} if whole else {at}
    return [renamed(s, {memory: place}, shift) for i, s in enumerate(steps) if i not in gone]


def _in_order(step: Step, memory: Memory, target: Buffer, shift: int) -> bool:
    """Whether a step could write to ``target``, which it may also read, in place of its result in
    ``memory``: it would read each element of ``target`` only where it then writes that element.
    ``shift``: offset in the memory of ``target`` minus that in ``memory``, bytes.
    """
    of = region(step, 0)
    made = [b for _, b in of.results if b.memory is memory] if of else []
    if of is None or len(made) != 1 or any(may_overlap(b, target) for _, b in of.results):
        return False
    to = replace(made[0], memory=target.memory, offset=made[0].offset + shift)
    met = (b for b in of.reads.values() if isinstance(b, Buffer) and may_overlap(b, target))
    return all(b.offset == to.offset and _same_layout(b, to) for b in met)


def reused(program: Program) -> Iterator[Step]:
    """Yields the steps of a program. An elementwise step writes its result over a temporary of the
    same size and layout that it is the last step to read, if there is one.
    """
    outputs = {b.memory for b in program.outputs if b is not None}
    last = {b.memory: i for i, s in enumerate(program.steps) for b in s.buffers()}
    first = {b.memory: i for i, s in reversed([*enumerate(program.steps)]) for b in s.buffers()}
    found: dict[Memory, Memory] = {}
    for number, given in enumerate(program.steps):
        step = renamed(given, found)
        of = region(given, 0)
        taken: set[Memory] = set()
        for _, made in of.results if of else ():
            own = made.memory
            if own.role != TEMPORARY or own in outputs | found.keys() or first[own] < number:
                continue
            for each in _last_reads(of, made, last, number):
                to = found.get(each, each)
                if to not in taken | outputs and to.role == TEMPORARY:
                    taken.add(to)
                    step, found[own] = renamed(step, {own: to}), to
                    break
        yield step


def _last_reads(
    of: Region | None, made: Buffer, last: Mapping[Memory, int], number: int
) -> Iterator[Memory]:
    """Yields the memories that elementwise step ``of`` can overwrite with its result ``made``:
    those of the same size and layout that it is the last step to read.

    ``number``: the step's index; ``last``: index of the last step that uses each memory. Yields
    nothing if ``of`` is None.
    """
    reads = [b for b in of.reads.values() if isinstance(b, Buffer)] if of else []
    for memory in dict.fromkeys(b.memory for b in reads):
        over = all(
            b.itemsize == made.itemsize
            and b.offset == made.offset
            and _same_layout(replace(b, dtype=made.dtype), made)
            for b in reads
            if b.memory is memory
        )
        if over and last[memory] == number and memory.nbytes == made.memory.nbytes:
            yield memory
