"""Programs for people.

A :class:`Listing` has no more than is shown of a program: it is text (``str``), a picture
(:meth:`Listing.draw`), and what a saved program is known by after it has been loaded.
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
    """A program as it is shown: its name, and a line a step."""

    name: str
    steps: tuple[Line, ...]

    def __str__(self) -> str:
        """Each step in a line, and the sums of several. Times are predicted, µs."""
        heads = "step", "kernel", "reads", "writes", "bytes", "µs"
        text = table(heads, [_cells(line) for line in self.steps])
        if len(self.steps) < 2:
            return text
        nbytes = sum(line.nbytes for line in self.steps)
        return f"{text}\n{len(self.steps)} steps, {nbytes:,} bytes, {self.us:.1f} µs"

    @property
    def us(self) -> float:
        """The predicted times of all steps."""
        return sum(line.us for line in self.steps)

    def draw(self, path: str | PathLike[str]) -> None:
        """Writes an SVG: steps as boxes in their order, arrays between them as edges."""
        Path(path).write_text(drawn(self.name, self.steps), encoding="utf-8")


def _cells(line: Line) -> list[str]:
    us = f"{line.us:.1f}"
    reads, writes = joined(line.reads), joined(line.writes)
    return [line.what, " + ".join(line.kernels), reads, writes, f"{line.nbytes:,}", us]


def joined(arrays: Sequence[Shown]) -> str:
    """Arrays, one behind the other."""
    return ", ".join(map(str, arrays))


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Numbered rows beneath their heads."""
    lines = [["", *heads], *([str(i), *row] for i, row in enumerate(rows))]
    wide = [max(map(len, column)) for column in zip(*lines, strict=True)]
    pairs = (zip(line, wide, strict=True) for line in lines)
    return "\n".join("  ".join(x.ljust(n) for x, n in pair).rstrip() for pair in pairs)
