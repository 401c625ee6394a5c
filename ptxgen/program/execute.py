"""Execution of programs. All modes return the same bits, since they run the same launches.

*Eager*: each temporary is allocated when a step first needs it. *Planned*: all temporaries and the
scratch memory of all kernels are one allocation, with offsets by liveness
(:mod:`ptxgen.program.arena`). *Prepared*: the planned launches as straight-line code
(:mod:`ptxgen.program.prepared`). *Captured*: the planned launches as a CUDA graph
(:mod:`ptxgen.program.capture`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from ptxgen.program import arena, autotune
from ptxgen.program.arena import Piece
from ptxgen.program.buffer import INPUT, Buffer, Memory
from ptxgen.program.depends import Touch
from ptxgen.program.launch import launch
from ptxgen.program.step import Operand, Program, Scalar, Step
from ptxgen.runtime import Call, Device, Launch, ScratchLaunch
from ptxgen.runtime.call import Results

Launched = Callable[..., None]
Enqueue = Callable[[int, Sequence[int]], None]
"""A function that enqueues a plan's launches, given a stream and the addresses of all slots."""


class Place(NamedTuple):
    """An address: ``offset`` bytes after the beginning of slot ``slot``, which is an input, a
    result or the arena.
    """

    slot: int
    offset: int


Source = Place | Scalar | int
"""Source of a pointer argument of a launch: an address, a scalar of the call, or a constant."""


class Fired(NamedTuple):
    """The launches of a step; the sources of the pointers that each of them takes; the byte ranges
    that they read or write, scratch memory included; and the earlier steps (``needs``) that write
    the arrays which it reads.
    """

    launches: tuple[Launch, ...]
    sources: tuple[Source, ...]
    touched: tuple[Touch, ...]
    needs: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Plan:
    """A program planned for a device.

    ``steps``: for each step the launches, the sources of their pointers, and the byte ranges that
    they touch; a source refers to a slot: the inputs, then the results, then the arena. ``nbytes``:
    bytes of the arena, which holds temporaries and scratch memory; ``pieces``: its pieces with
    their live ranges.
    """

    program: Program
    steps: tuple[Fired, ...]
    nbytes: int
    pieces: tuple[Piece, ...]

    @cached_property
    def launches(self) -> tuple[tuple[Launched, tuple[Source, ...]], ...]:
        """Kernel launches in order, as pairs: the function that enqueues one, and the sources of
        its pointers.
        """
        return tuple((one.fire, of.sources) for of in self.steps for one in of.launches)

    @property
    def least(self) -> int:
        """Lower bound of the arena's bytes: the peak of live bytes over all steps."""
        return arena.least(self.pieces)


def parts(found: Launch) -> tuple[tuple[Launch, ...], tuple[int, ...]]:
    """Returns the kernel launches of a launch (several for some routes), and each scratch array's
    bytes.
    """
    if isinstance(found, ScratchLaunch):
        return found.steps, found.sizes
    return (found,), ()


def plan(program: Program, device: Device, streams: int = 1) -> Plan:
    """Plans a program: prepares its launches, and places temporaries and scratch memory in the
    arena.

    With ``streams`` > 1, steps that may run concurrently use separate memory if the arena then
    stays within :data:`ptxgen.program.arena.SLACK_MAX`.
    """
    return planned(program, [_launch(step, device) for step in program.steps], streams)


def _launch(step: Step, device: Device) -> Launch:
    return launch(step.problem, tuple(step.bind), device, step.kernel)


def planned(program: Program, launches: Sequence[Launch], streams: int = 1) -> Plan:
    """Plans a program as :func:`plan` does, with prepared ``launches``, one for each step."""
    pieces = live_ranges(program)
    found = [parts(each) for each in launches]
    for number, (_, sizes) in enumerate(found):
        pieces += [Piece(size, number, number) for size in sizes]
    offsets, nbytes = arena.place_separated(pieces, streams - 1)
    slots = {m: Place(i, 0) for i, m in enumerate((*program.inputs, *program.results))}
    arena_slot = len(slots)
    slots |= {m: Place(arena_slot, offsets[i]) for i, m in enumerate(program.temporaries)}
    scratch = iter(offsets[len(program.temporaries) :])
    made: list[Fired] = []
    writers: dict[Memory, list[int]] = {}
    for number, (step, (each, sizes)) in enumerate(zip(program.steps, found, strict=True)):
        sources = [_source(operand, slots) for operand in step.bind.values()]
        touched = [_touch(b, slots, written=False) for b in step.reads()]
        touched += [_touch(b, slots, written=True) for b in step.writes()]
        for size in sizes:
            sources.append(Place(arena_slot, at := next(scratch)))
            touched.append(Touch(arena_slot, at, at + size, written=True))
        needs = sorted({i for b in step.reads() for i in writers.get(b.memory, ())})
        for b in step.writes():
            writers.setdefault(b.memory, []).append(number)
        made.append(Fired(each, tuple(sources), tuple(touched), tuple(needs)))
    return Plan(program, tuple(made), nbytes, tuple(pieces))


def live_ranges(program: Program) -> list[Piece]:
    """Returns the bytes of each temporary, with the first and last step that touch it."""
    found = {m: [len(program.steps), -1] for m in program.temporaries}
    for number, step in enumerate(program.steps):
        for buffer in step.buffers():
            if buffer.memory in found:
                first, last = found[buffer.memory]
                found[buffer.memory] = [min(first, number), max(last, number)]
    return [Piece(m.nbytes, first, last) for m, (first, last) in found.items()]


def _source(operand: Operand, slots: Mapping[Memory, Place]) -> Source:
    if not isinstance(operand, Buffer):
        return 0 if operand is None else operand
    slot, base = slots[operand.memory]
    return Place(slot, base + operand.offset)


def _touch(buffer: Buffer, slots: Mapping[Memory, Place], *, written: bool) -> Touch:
    slot, base = slots[buffer.memory]
    low, high = buffer.span()
    return Touch(slot, base + low, base + high, written)


class Given(NamedTuple):
    """The arguments of a call: its arrays and stream (``call``), device addresses of the program's
    inputs (``pointers``), and the Python scalars (``numbers``).
    """

    call: Call
    pointers: list[int]
    numbers: tuple[Any, ...] = ()


def run(plan: Plan, given: Given, enqueue: Enqueue | None = None) -> tuple[Any, ...]:
    """Runs a plan. Returns each output as a new array of the caller's framework, or as its Buffer
    if it is in memory that the caller passed.

    ``enqueue``: a function that enqueues the launches; without it they go to the call's stream.
    """
    call, program = given.call, plan.program
    results = [_allocated(call, m) for m in program.results]
    keep: Any = None
    addresses = [*given.pointers, *(r.ptr for r in results)]
    if plan.nbytes:
        address, keep = call.scratch(plan.nbytes)
        addresses.append(address)
    if enqueue is not None:
        enqueue(call.stream, addresses)
    else:
        for fire, sources in plan.launches:
            fire(call.stream, *(pointer(s, addresses, given.numbers) for s in sources))
    found = _outputs(program, results)
    del keep
    return found


def pointer(source: Source, addresses: Sequence[int], numbers: tuple[Any, ...] = ()) -> int:
    """Returns a pointer argument of a launch: an address (``addresses``: of all slots), a constant,
    or the 8 bytes of a scalar in ``numbers``.
    """
    if isinstance(source, Scalar):
        return source.encode(numbers[source.number])
    if isinstance(source, int):
        return source
    return addresses[source.slot] + source.offset


def fire(step: Fired, addresses: Sequence[int], stream: int) -> None:
    """Enqueues the launches of a step without scalars; ``addresses``: of all slots."""
    pointers = [pointer(source, addresses) for source in step.sources]
    for each in step.launches:
        each.fire(stream, *pointers)


def run_eager(program: Program, given: Given) -> tuple[tuple[Any, ...], Plan | None]:
    """Runs a program step by step; returns its outputs as :func:`run` does, and the plan of the
    launches that it used.

    With :class:`ptxgen.autotune` on, each problem is timed before it is launched. The plan is None
    if some problem could not be timed yet.
    """
    call = given.call
    address = dict(zip(program.inputs, given.pointers, strict=True))
    results = [_allocated(call, m) for m in program.results]
    address |= {m: r.ptr for m, r in zip(program.results, results, strict=True)}
    last = {b.memory: i for i, step in enumerate(program.steps) for b in step.buffers()}
    keep: dict[Memory, Any] = {}
    launches: list[Launch] = []
    all_tuned = True
    for number, step in enumerate(program.steps):
        pointers = []
        for operand in step.bind.values():
            if isinstance(operand, Buffer):
                memory = operand.memory
                if memory not in address:
                    address[memory], keep[memory] = call.scratch(max(memory.nbytes, 1))
                pointers.append(address[memory] + operand.offset)
            else:
                pointers.append(pointer(_source(operand, {}), (), given.numbers))
        found = _launch(step, call.device)
        if step.kernel is None and autotune.enabled():
            sizes = {n: b.reach for n, b in zip(step.written, step.writes(), strict=True)}
            names = tuple(step.bind)
            tuned = autotune.tuned(step.problem, names, call.device, call.stream, pointers, sizes)
            all_tuned = all_tuned and tuned is not None
            found = tuned or found
        launches.append(found)
        found.fire(call.stream, *pointers)
        for memory in [m for m in keep if last[m] == number]:
            del keep[memory], address[memory]
    return _outputs(program, results), planned(program, launches) if all_tuned else None


def _allocated(call: Call, memory: Memory) -> Results:
    assert memory.natural is not None, "all memory of programs is laid"
    return Results(call, memory.natural.shape, memory.natural.dtype)


def _outputs(program: Program, results: Sequence[Results]) -> tuple[Any, ...]:
    """Returns an array for each output, or its Buffer if it is in memory that the caller passed."""
    made = dict(zip(program.results, results, strict=True))
    found: list[Any] = []
    for output in program.outputs:
        if output is None or output.memory.role == INPUT:
            found.append(output)
        else:
            first = output.offset // output.itemsize
            found.append(made[output.memory].give(output.shape, output.strides, first))
    return tuple(found)
