"""A program as a table, for people."""

from __future__ import annotations

from ptxgen.numerics.dtype import NAMES
from ptxgen.program.buffer import Buffer, Memory
from ptxgen.program.step import Program


def table(program: Program) -> str:
    """Each step in a line: its number, what it does, what it reads and writes, and bytes."""
    known: dict[Memory, str] = {m: m.name for m in program.inputs}

    def named(x: Buffer) -> str:
        name = known.setdefault(x.memory, f"{x.memory.role[0]}{len(known) - len(program.inputs)}")
        return f"{name} {NAMES[x.dtype]}{list(x.shape)}"

    rows = [("", "step", "reads", "writes", "bytes")]
    for number, step in enumerate(program.steps):
        reads, writes = (", ".join(map(named, b)) for b in (step.reads(), step.writes()))
        rows.append((str(number), step.problem.what.split()[0], reads, writes, f"{step.nbytes:,}"))
    wide = [min(60, max(len(row[i]) for row in rows)) for i in range(5)]
    lines = ["  ".join(x.ljust(n) for x, n in zip(row, wide, strict=True)).rstrip() for row in rows]
    total = sum(step.nbytes for step in program.steps)
    return "\n".join([*lines, f"{len(program.steps)} steps, {total:,} bytes"])
