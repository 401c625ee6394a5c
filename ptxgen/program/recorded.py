"""What replays need of a program: arrays, launches and places, without the problems behind them."""

from __future__ import annotations

from dataclasses import dataclass

from ptxgen.errors import TraceError
from ptxgen.program.buffer import RESULT, Buffer, Memory
from ptxgen.program.execute import Fired, Plan
from ptxgen.program.step import Scalar
from ptxgen.tiles import TABLES


@dataclass(frozen=True, eq=False)
class Recorded:
    """A planned program.

    Slots are the ``arguments``, then what is read from ``outside``, the ``results``, and the arena
    of ``nbytes``. ``outputs``: which result each is that is returned, None for none.
    ``contracts``: whose bits they have.
    """

    name: str
    arguments: tuple[Buffer, ...]
    outside: tuple[Buffer, ...]
    results: tuple[Buffer, ...]
    outputs: tuple[int | None, ...]
    steps: tuple[Fired, ...]
    nbytes: int
    contracts: tuple[str, ...]


def recorded(plan: Plan, outside: int = 0) -> Recorded:
    """A plan, whose last ``outside`` inputs are no arguments.

    Raises TraceError, with the array, for one that writes inputs, returns views, or takes numbers.
    """
    program = plan.program
    for memory in program.inputs:
        if memory.written:
            raise TraceError(
                f"{program.name} writes {memory}; takes programs that only read inputs"
            )
    for output in program.outputs:
        if output is not None and not (output.memory.role == RESULT and output.whole):
            raise TraceError(
                f"{program.name} returns {output}, a view; takes programs that return results whole"
            )
    if any(isinstance(source, Scalar) for step in plan.steps for source in step.sources):
        raise TraceError(f"{program.name} takes numbers in each call; takes those that are known")
    count = len(program.inputs) - outside
    inputs, results = [list(map(_natural, of)) for of in (program.inputs, program.results)]
    where = {m: i for i, m in enumerate(program.results)}
    outputs = tuple(None if b is None else where[b.memory] for b in program.outputs)
    tables = dict.fromkeys(step.problem.table for step in program.steps)
    kernels = (k for key in tables for route in TABLES[key].routes for k in route.kernels)
    contracts = tuple(sorted({str(kernel.contract) for kernel in kernels}))
    arrays = tuple(inputs[:count]), tuple(inputs[count:]), tuple(results)
    return Recorded(program.name, *arrays, outputs, plan.steps, plan.nbytes, contracts)


def _natural(memory: Memory) -> Buffer:
    assert memory.natural is not None, "all memory of programs is laid"
    return memory.natural
