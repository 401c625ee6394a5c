"""``explain --code``: the Python code that a call of these sizes runs.

An operation's function reads what decides a call (shapes, dtypes, ...) and looks up the prepared
code for it. For a new kind of call the operation is lowered (:mod:`ptxgen.program.invoke`), and the
code is generated. This module generates both texts likewise, without compiling for a GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ptxgen.ops.explaining import operation, program_of
from ptxgen.program.buffer import Memory
from ptxgen.program.execute import plan
from ptxgen.program.launch import named
from ptxgen.program.parameters import ARRAY, EITHER, OPERAND, OPTIONAL
from ptxgen.program.prepared import TORCH, Maker, code
from ptxgen.program.step import Program
from ptxgen.runtime.cpu import CpuDevice
from ptxgen.runtime.launch import Function
from ptxgen.runtime.strided import Ints


class Unmade(CpuDevice):
    """The CPU device without kernels: calls are read, checked and dispatched, and nothing runs."""

    def kernel(self, symbol: str, *_: Any) -> Function:
        """Returns a placeholder for a kernel, which is not compiled."""
        return Function(self, symbol, 0, 0)

    def launch(self, *_: Any) -> None:
        """Does nothing in place of a launch."""


def explain_code(op: str, sizes: Sequence[int], dtype: Any = None, **options: Any) -> str:
    """Returns the text of an operation's function, and of the code of a call on PyTorch tensors.

    Arguments and errors are those of :func:`ptxgen.explain`.
    """
    program, device = program_of(op, sizes, dtype, 16, options), Unmade()
    front: str = operation(op).frame.function.__dict__["source"]
    texts = (
        f"# ptxgen.{op}: a call that is known is looked up, and its code runs.",
        front,
        f"# The code of {program.name}, as an {device.gpu} runs it.",
        *_legend(program, device),
        _code(program, device),
    )
    return "\n".join(text.rstrip() for text in texts)


def _code(program: Program, device: CpuDevice) -> str:
    """Returns the text of the code that launches a program."""
    maker = Maker(_empty, TORCH.pointer, _none, _none)
    made = code(plan(program, device), maker, _given(program))
    text: str = made.__dict__["source"]
    return text


def _given(program: Program) -> list[Memory | None]:
    """Returns the memory of each array argument of the code that :func:`explain_code` prints, in
    the operation's order; None for an array that is omitted.
    """
    row = operation(program.name.split()[0])
    inputs = {memory.name: memory for memory in program.inputs}
    kinds = ARRAY, OPTIONAL, EITHER, OPERAND
    return [inputs.get(p.name) for p in row.parameters if p.kind in kinds]


def _legend(program: Program, device: CpuDevice) -> list[str]:
    """Returns comment lines that explain the names in the code."""
    lines = []
    inputs = len(program.inputs)
    for i, memory in enumerate(program.results, inputs):
        assert memory.natural is not None, "all memory of programs is laid"
        lines.append(f"#   empty{i}: memory of {memory.natural.dtype} {list(memory.natural.shape)}")
    if program.temporaries:
        bottom = inputs + len(program.results)
        lines.append(f"#   empty{bottom}: one allocation for all temporaries")
    number = 0
    for step in program.steps:
        for kernel in named(step.problem, device, step.kernel):
            lines.append(f"#   launch{number}: {step.problem}, {kernel}")
            number += 1
    return lines


def _empty(shape: Ints, strides: Ints, dtype: str) -> Any:
    return None


def _none(*_: Any) -> Any:
    return None
