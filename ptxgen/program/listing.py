"""Listings of programs, as text and as pictures.

A :class:`Listing` is printed (``str``) or drawn (:meth:`Listing.draw`). Saved programs contain
their listing, since a loaded program has no problems from which to make one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from ptxgen.program.drawing import drawn
from ptxgen.program.line import Line, Shown


@dataclass(frozen=True)
class Listing:
    """A program's name, and a line for each step."""

    name: str
    steps: tuple[Line, ...]

    def __str__(self) -> str:
        """Returns a table with a row for each step, and totals. Times are predicted, µs."""
        heads = "step", "kernel", "reads", "writes", "bytes", "µs"
        text = table(heads, [_cells(line) for line in self.steps])
        if len(self.steps) < 2:
            return text
        nbytes = sum(line.nbytes for line in self.steps)
        return f"{text}\n{len(self.steps)} steps, {nbytes:,} bytes, {self.us:.1f} µs"

    @property
    def us(self) -> float:
        """Sum of the steps' predicted times, µs."""
        return sum(line.us for line in self.steps)

    def draw(self, path: str | PathLike[str]) -> None:
        """Writes an SVG: steps as boxes in their order, arrays between them as edges."""
        Path(path).write_text(drawn(self.name, self.steps), encoding="utf-8")


def _cells(line: Line) -> list[str]:
    us = f"{line.us:.1f}"
    reads, writes = joined(line.reads), joined(line.writes)
    return [line.what, " + ".join(line.kernels), reads, writes, f"{line.nbytes:,}", us]


def joined(arrays: Sequence[Shown]) -> str:
    """Returns a comma-separated list of arrays."""
    return ", ".join(map(str, arrays))


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns an aligned text table with numbered rows beneath ``heads``."""
    lines = [["", *heads], *([str(i), *row] for i, row in enumerate(rows))]
    wide = [max(map(len, column)) for column in zip(*lines, strict=True)]
    pairs = (zip(line, wide, strict=True) for line in lines)
    return "\n".join("  ".join(x.ljust(n) for x, n in pair).rstrip() for pair in pairs)
