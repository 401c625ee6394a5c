"""Programs: one call or many, as a data structure.

A :class:`Step` is one problem of one route table, with the buffer of each pointer that its kernels
take. A :class:`Program` has inputs, results, temporaries and an ordered list of steps. It can be
printed, planned, inspected before it runs, and run in several modes
(:mod:`ptxgen.program.execute`).
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
    """A Python scalar of a call that is passed to its kernels: ``number`` is its index among the
    call's arguments, ``encode`` packs it into 8 bytes.
    """

    number: int
    encode: Callable[[Any], int]


Operand = Buffer | Scalar | int | None
"""Operand of a launch: a buffer, a scalar of the call, a constant integer, or null (None)."""


@dataclass(frozen=True, eq=False)
class Step:
    """One step of a program: a problem and its operands.

    ``bind``: the operand of each pointer parameter of the kernels, in launch order. ``kernel``:
    name of a forced route. ``also_read``: names of written parameters whose old content the kernels
    read first, such as to accumulate.
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
        """Names of the pointer parameters whose buffers are read."""
        access = accesses(self.problem)
        return [n for n in self._bound if access[n].read or n in self.also_read]

    @cached_property
    def written(self) -> list[str]:
        """Names of the pointer parameters whose buffers are written."""
        access = accesses(self.problem)
        return [n for n in self._bound if access[n].written]

    @cached_property
    def _bound(self) -> dict[str, Buffer]:
        return {n: b for n, b in self.bind.items() if isinstance(b, Buffer)}

    def buffers(self) -> list[Buffer]:
        """Returns all buffers that the step reads or writes."""
        return list(self._bound.values())

    def reads(self) -> list[Buffer]:
        """Returns the buffers that the step reads."""
        return [self._bound[n] for n in self.read]

    def writes(self) -> list[Buffer]:
        """Returns the buffers that the step writes."""
        return [self._bound[n] for n in self.written]

    @cached_property
    def nbytes(self) -> int:
        """Bytes that the step reads and writes; broadcast elements count once."""
        return sum(b.footprint for b in (*self.reads(), *self.writes()))

    def predicted(self, device: Device) -> float:
        """Returns the predicted time of the step on a device, µs."""
        if device not in self._us:
            self._us[device] = predicted(self.problem, self.nbytes, device, self.kernel)
        return self._us[device]

    @cached_property
    def _us(self) -> dict[Device, float]:
        return {}


class Access(NamedTuple):
    """Access of a table's kernels to a pointer: whether they read it, write it, and accept null."""

    read: bool
    written: bool
    optional: bool


def accesses(problem: Problem) -> Mapping[str, Access]:
    """Returns the access to each pointer parameter of a problem's kernels, by name.

    A kernel reads what it declares const, unless an earlier kernel of the route has written it. It
    writes what it does not declare const.
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
    """Yields the first route of a table that can be rendered for ``dtype``. One is enough to know
    the pointers, since all routes of a table take the same.
    """
    for route in TABLES[table].routes:
        with suppress(SpecError):
            yield route.of(dtype)
            return


@dataclass(frozen=True, eq=False)
class Program:
    """The steps of one or several calls, with their memories.

    ``inputs``: memories of the caller, in the order of the arguments; ``outputs``: the buffers that
    are returned, in order (None for no array); ``results``, ``temporaries``: memories that are
    allocated, for outputs and for values between steps; ``algorithms``: for each result that
    several algorithms can compute, the one that does. ``names``: a name for each output, or none
    for all. ``constants``: arrays that are inputs of the program but no arguments of its runs.

    Raises SpecError, naming step and buffer, for a step that reads memory which no step has
    written, writes an input that is not passed for a result, or reaches beyond a result or
    temporary; and for an output that no step writes.
    """

    name: str
    inputs: tuple[Memory, ...]
    outputs: tuple[Buffer | None, ...]
    steps: tuple[Step, ...]
    algorithms: tuple[ChosenAlgorithm, ...] = ()
    names: tuple[str, ...] = ()
    constants: Mapping[Memory, Any] = field(default_factory=dict)
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
        """Returns a line for each step, with its kernels on a device (by default the one that
        computes NumPy's arrays).
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
        """Returns a table with a row for each step: its operation, kernels, the arrays that it
        reads and writes, their bytes, and its predicted time.
        """
        return str(self.listing())

    def draw(self, path: str | PathLike[str]) -> None:
        """Writes an SVG of the program: steps as boxes, the arrays between them as edges."""
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
