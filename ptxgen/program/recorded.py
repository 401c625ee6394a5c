"""Planned programs reduced to arrays, launches and offsets, for replays and for saved files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeGuard

from ptxgen.errors import ShapeError, TraceError
from ptxgen.program.buffer import ALIGN, RESULT, Buffer, Memory
from ptxgen.program.execute import Fired, Plan
from ptxgen.program.step import Scalar
from ptxgen.runtime.strided import Strided
from ptxgen.tiles import TABLES


@dataclass(frozen=True, eq=False)
class Recorded:
    """A planned program without its problems: arrays, launches and offsets.

    ``steps``: launches, pointer sources and touched bytes of each step. Sources refer to slots: the
    ``arguments``, the closed-over arrays (``outside``), the ``results``, and the arena of
    ``nbytes``. The memory of an array says whether it is ``written``. ``outputs``: the slot of each
    returned array, which is a result or a written array; None for no array. ``contracts``: the
    versioned contracts that the results' bits follow. ``names``: a name for each output, or none
    for all; arguments have the names of their memories.
    """

    name: str
    arguments: tuple[Buffer, ...]
    outside: tuple[Buffer, ...]
    results: tuple[Buffer, ...]
    outputs: tuple[int | None, ...]
    steps: tuple[Fired, ...]
    nbytes: int
    contracts: tuple[str, ...]
    names: tuple[str, ...] = ()

    @property
    def written(self) -> tuple[int, ...]:
        """Indices of the arguments that are written."""
        return tuple(i for i, b in enumerate(self.arguments) if b.memory.written)

    def is_result(self, output: int | None) -> TypeGuard[int]:
        """Whether ``output``, an entry of :attr:`outputs`, is the slot of a result: neither that of
        a written argument nor None.
        """
        return output is not None and output >= len(self.arguments) + len(self.outside)

    def needed(self, outputs: Iterable[int]) -> tuple[int, ...]:
        """Returns the numbers of the steps that some outputs (``outputs``: their indices) need, in
        order, and of those that write arguments or closed-over arrays, with all that these need.
        """
        wanted = {self.outputs[i] for i in outputs}
        first = len(self.arguments) + len(self.outside)
        found: set[int] = set()
        for number in reversed(range(len(self.steps))):
            step = self.steps[number]
            slots = {touch.slot for touch in step.touched if touch.written}
            if number in found or slots & wanted or any(slot < first for slot in slots):
                found |= {number, *step.needs}
        return tuple(sorted(found))

    @property
    def kept(self) -> tuple[Buffer, ...]:
        """Arrays whose memory the replay owns and keeps between calls: arguments that are only
        read, then results.
        """
        return *(b for b in self.arguments if not b.memory.written), *self.results


def recorded(plan: Plan, outside: int = 0) -> Recorded:
    """Converts a plan whose last ``outside`` inputs are closed-over arrays, the others arguments.

    Raises TraceError, with the array, for a plan that returns views, or takes Python scalars;
    ShapeError for an argument that is written and is not contiguous and 16-byte aligned.
    """
    program = plan.program
    count = len(program.inputs) - outside
    inputs, results = [list(map(_natural, of)) for of in (program.inputs, program.results)]
    for b in inputs[:count]:
        if b.memory.written and not is_dense_aligned(b):
            raise ShapeError(f"{program.name} writes {b}, which {layout_fault(b)}")
    for output in program.outputs:
        own = output is not None and (output.memory.role == RESULT or output.memory.written)
        if output is not None and not (own and output.whole):
            raise TraceError(
                f"{program.name} returns {output}, a view; takes programs that return results whole"
            )
    if any(isinstance(source, Scalar) for step in plan.steps for source in step.sources):
        raise TraceError(f"{program.name} takes numbers in each call; takes those that are known")
    where = {m: i for i, m in enumerate((*program.inputs, *program.results))}
    outputs = tuple(None if b is None else where[b.memory] for b in program.outputs)
    tables = dict.fromkeys(step.problem.table for step in program.steps)
    kernels = (k for key in tables for route in TABLES[key].routes for k in route.kernels)
    contracts = tuple(sorted({str(kernel.contract) for kernel in kernels}))
    arrays = tuple(inputs[:count]), tuple(inputs[count:]), tuple(results)
    names = program.names
    return Recorded(program.name, *arrays, outputs, plan.steps, plan.nbytes, contracts, names)


def is_dense_aligned(x: Strided) -> bool:
    """Whether a replay can use an array in place: it is contiguous, and aligned to 16 bytes."""
    return x.contiguous and x.address % ALIGN == 0


def layout_fault(x: Strided) -> str:
    """Returns text for an error about array ``x``, for which :func:`is_dense_aligned` is false: its
    strides and alignment, and those that are accepted.
    """
    return (
        f"has strides {list(x.strides)} and lies {x.address % ALIGN} bytes behind a multiple of "
        f"{ALIGN}; takes one that lies row by row, from a multiple of {ALIGN} on"
    )


def _natural(memory: Memory) -> Buffer:
    assert memory.natural is not None, "all memory of programs is laid"
    return memory.natural
