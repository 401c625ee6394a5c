"""Programs on memory that a test has made itself, launch by launch."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from ptxgen.ops import OPERATIONS
from ptxgen.program.buffer import Buffer
from ptxgen.program.build import ProgramBuilder
from ptxgen.program.launch import launch
from ptxgen.program.step import Program, Step
from ptxgen.runtime.arrays import ArrayView
from ptxgen.spec import Problem


class Arrays:
    """Arrays at addresses, as the buffers of a program."""

    def __init__(self, name: str = "test") -> None:
        self.builder = ProgramBuilder(OPERATIONS, name)
        self.pointers: dict[Any, int] = {}

    def at(
        self,
        name: str,
        pointer: int,
        shape: Sequence[int],
        strides: Sequence[int],
        dtype: str,
        written: bool = False,
    ) -> Buffer:
        """An array of the caller."""
        seen = ArrayView(
            pointer, tuple(shape), tuple(strides), dtype, "cpu", 0, False, "ptxgen", None
        )
        return self.seen(name, seen, written)

    def seen(self, name: str, view: ArrayView, written: bool = False) -> Buffer:
        """The array of a view."""
        found = self.builder.input(name, view, written=written)
        self.pointers[found.memory] = view.ptr
        return found

    def program(self, op: str, *args: Any, **options: Any) -> Program:
        """Returns the program that an operation lowers to for these arguments."""
        return self.builder.finish(OPERATIONS[op].lower(self.builder, *args, **options))

    def fire(self, program: Program, device: Any, kernel: str | None = None) -> None:
        """Launches its steps, which have no memory of their own."""
        for step in program.steps:
            found = launch(step.problem, tuple(step.bind), device, kernel or step.kernel)
            found.fire(0, *(self._pointer(each) for each in step.bind.values()))

    def _pointer(self, operand: Any) -> int:
        if isinstance(operand, Buffer):
            return self.pointers[operand.memory] + operand.offset
        return operand or 0


def step(op: str, arrays: Mapping[str, ArrayView | None], **options: Any) -> Step:
    """The one step that an operation makes of these."""
    held = Arrays(op)
    given = {n: None if v is None else held.seen(n, v, n == "out") for n, v in arrays.items()}
    (found,) = held.program(op, **given, **options).steps
    return found


def problem(op: str, arrays: Mapping[str, ArrayView | None], **options: Any) -> Problem:
    """The problem that an operation of one step makes of these."""
    return step(op, arrays, **options).problem


def fire(problem: Problem, pointers: Mapping[str, int], device: Any, kernel: str | None) -> None:
    """Launches a problem with pointers by the names of its kernels' parameters."""
    launch(problem, tuple(pointers), device, kernel).fire(0, *pointers.values())


def unchecked(name: str) -> Any:
    """An operation that does not look at indices in host memory, as on a GPU."""
    op = copy.copy(OPERATIONS[name])
    op.checks = None
    for each in ("frame", "function"):
        vars(op).pop(each, None)
    return op.function
