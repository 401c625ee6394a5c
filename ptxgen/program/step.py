"""Programs: a call, or several, as a value.

A :class:`Step` is one problem of one route table, with the buffer behind each pointer that its
kernels take. A :class:`Program` is inputs, results, temporaries and steps in their order. It can be
printed, planned, run in several ways (:mod:`ptxgen.program.execute`), and read by whoever wants to
know what a call does before it does it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from os import PathLike
from typing import Any, NamedTuple

from ptxgen.errors import SpecError
from ptxgen.program.algorithms import ChosenAlgorithm
from ptxgen.program.buffer import INPUT, RESULT, TEMPORARY, Buffer, Memory
from ptxgen.program.launch import named, predicted
from ptxgen.program.line import Line, Shown
from ptxgen.program.listing import Listing
from ptxgen.runtime import Device, default_device
from ptxgen.spec import Key, Problem, Route
from ptxgen.tiles import TABLES


class Scalar(NamedTuple):
    """A Python number that kernels are given when they are launched: argument ``number`` of those
    of the call, which ``encode`` makes 8 bytes of.
    """

    number: int
    encode: Callable[[Any], int]


Operand = Buffer | Scalar | int | None
"""What a pointer of a launch is: of a buffer, a number of the call, a number as it is, null."""


@dataclass(frozen=True, eq=False)
class Step:
    """One problem: ``bind`` has for each pointer that its kernels are launched with, in order, what
    it points to. ``kernel``: the route that is asked for by name. ``also_read``: results that it
    reads, too, before it writes them.
    """

    problem: Problem
    bind: Mapping[str, Operand]
    kernel: str | None = None
    also_read: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        access = accesses(self.problem)
        named = self.problem.what
        if unknown := [n for n in self.bind if n not in access]:
            raise SpecError(
                f"{named}: binds {unknown[0]!r}; the kernels of {' '.join(self.problem.table)} "
                f"take {', '.join(access)}"
            )
        for name, kind in access.items():
            if self.bind.get(name) is None and not kind.optional:
                raise SpecError(f"{named}: nothing is bound to the parameter {name!r}")

    @cached_property
    def read(self) -> list[str]:
        """The names of what is read."""
        access = accesses(self.problem)
        return [n for n in self._bound if access[n].read or n in self.also_read]

    @cached_property
    def written(self) -> list[str]:
        """The names of what is written."""
        access = accesses(self.problem)
        return [n for n in self._bound if access[n].written]

    @cached_property
    def _bound(self) -> dict[str, Buffer]:
        return {n: b for n, b in self.bind.items() if isinstance(b, Buffer)}

    def buffers(self) -> list[Buffer]:
        """The buffers that are touched."""
        return list(self._bound.values())

    def reads(self) -> list[Buffer]:
        """The buffers that are read."""
        return [self._bound[n] for n in self.read]

    def writes(self) -> list[Buffer]:
        """The buffers that are written."""
        return [self._bound[n] for n in self.written]

    @cached_property
    def nbytes(self) -> int:
        """Bytes that are read and written, each once: of what is broadcast, what lies there."""
        return sum(b.footprint for b in (*self.reads(), *self.writes()))

    def predicted(self, device: Device) -> float:
        """The µs that it is predicted to take on a device."""
        if device not in self._us:
            self._us[device] = predicted(self.problem, self.nbytes, device, self.kernel)
        return self._us[device]

    @cached_property
    def _us(self) -> dict[Device, float]:
        return {}


class Access(NamedTuple):
    """What the kernels of a table do to what a pointer points to; whether it may be null."""

    read: bool
    written: bool
    optional: bool


def accesses(problem: Problem) -> Mapping[str, Access]:
    """The pointers that the kernels of a problem are launched with. It follows from their
    parameters: what one of them declares const it reads, unless one before it has written that;
    what it does not, it writes.
    """
    opened = TABLES[problem.table].opened
    return _accesses(problem.table, problem.dtype if opened else None)


@lru_cache(maxsize=4096)
def _accesses(table: Key, dtype: Hashable) -> Mapping[str, Access]:
    found: dict[str, Access] = {}
    for route in TABLES[table].routes if dtype is None else _first(table, dtype):
        made: set[str] = set()  # what an earlier kernel of the route has written
        for step in route.steps:
            for param in step.kernel.abi.pointers:
                name = step.bound(param.name)
                if name in route.scratch:
                    continue
                old = found.get(name, Access(False, False, True))
                found[name] = Access(
                    old.read or not (param.writes or name in made),
                    old.written or param.writes,
                    old.optional and param.optional,
                )
            made |= {step.bound(p.name) for p in step.kernel.abi.pointers if p.writes}
    return found


def _first(table: Key, dtype: Hashable) -> Iterator[Route]:
    """A route of an opened table, as it is rendered for a problem: all take the same pointers."""
    for route in TABLES[table].routes:
        with suppress(SpecError):
            yield route.of(dtype)
            return


@dataclass(frozen=True, eq=False)
class Program:
    """What a call does.

    ``inputs``: memories of the caller, in the order in which they are given; ``outputs``: what is
    returned, in order (None: nothing); ``steps``; ``algorithms``: those that were chosen
    where a result can be computed by several. Refused, with both sides, are steps that read
    what nothing has written, write an input, or reach beyond a memory.
    """

    name: str
    inputs: tuple[Memory, ...]
    outputs: tuple[Buffer | None, ...]
    steps: tuple[Step, ...]
    algorithms: tuple[ChosenAlgorithm, ...] = ()
    temporaries: tuple[Memory, ...] = field(init=False)
    results: tuple[Memory, ...] = field(init=False)

    def __post_init__(self) -> None:
        seen: dict[Memory, None] = {}
        written: dict[Memory, list[tuple[int, int]]] = {m: [] for m in self.inputs}
        for number, step in enumerate(self.steps):
            for each in step.reads():
                self._check(number, step, each)
                seen.setdefault(each.memory)
                if each.size and each.memory.role != INPUT and not written.get(each.memory):
                    raise SpecError(
                        f"{self.name}: step {number}, {step.problem}, reads {each}, which no step "
                        f"before it writes; there are {_named(written)}"
                    )
            for each in step.writes():
                self._check(number, step, each)
                if each.memory.role == INPUT and not each.memory.written:
                    raise SpecError(
                        f"{self.name}: step {number}, {step.problem}, writes {each}, an input; "
                        f"steps write results and temporaries"
                    )
                written.setdefault(each.memory, []).append(each.span())
                seen.setdefault(each.memory)
        for output in self.outputs:
            if output is None or output.memory.role == INPUT:
                continue
            if output.size and not written.get(output.memory):
                raise SpecError(f"{self.name}: returns {output}, which no step writes")
            seen.setdefault(output.memory)
        object.__setattr__(self, "temporaries", tuple(m for m in seen if m.role == TEMPORARY))
        object.__setattr__(self, "results", tuple(m for m in seen if m.role == RESULT))

    def listing(self, device: Device | None = None) -> Listing:
        """What is shown of it: a line a step, with the kernels that serve it on a device (by
        default the one that NumPy's arrays go to).
        """
        where = device or default_device()
        known = {m: m.name for m in self.inputs}

        def shown(x: Buffer) -> Shown:
            name = known.setdefault(x.memory, f"{x.memory.role[0]}{len(known) - len(self.inputs)}")
            return Shown(name, x.memory.role, x.dtype, x.shape)

        lines = []
        for step in self.steps:
            reads, writes = (tuple(map(shown, b)) for b in (step.reads(), step.writes()))
            kernels = named(step.problem, where, step.kernel)
            what = step.problem.what.split()[0]
            lines.append(Line(what, kernels, reads, writes, step.nbytes, step.predicted(where)))
        return Listing(self.name, tuple(lines))

    def __str__(self) -> str:
        """Each step in a line: what it does, its kernels, what it reads and writes, bytes, and the
        time that it is predicted to take.
        """
        return str(self.listing())

    def draw(self, path: str | PathLike[str]) -> None:
        """See :meth:`ptxgen.program.listing.Listing.draw`."""
        self.listing().draw(path)

    def _check(self, number: int, step: Step, buffer: Buffer) -> None:
        memory = buffer.memory
        if memory.role == INPUT:
            if memory not in self.inputs:
                raise SpecError(
                    f"{self.name}: step {number}, {step.problem}, takes {buffer}, which is no "
                    f"input of the program; there are {_named(self.inputs)}"
                )
            return
        low, high = buffer.span()
        if buffer.size and not 0 <= low <= high <= memory.nbytes:
            raise SpecError(
                f"{self.name}: step {number}, {step.problem}, takes bytes {low} to {high} of "
                f"{memory}; it has {memory.nbytes}"
            )


def _named(memories: Any) -> str:
    return ", ".join(m.name for m in memories) or "none"
