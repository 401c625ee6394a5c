"""Splits of a GEMM kernel: where the chunks of a tile's reduction meet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ptxgen.spec.base import check
from ptxgen.spec.gemm.kernel import Kernel


@dataclass(frozen=True)
class Split:
    """All splits define ``multiply_tile(at)``, which leaves the sums of a piece in registers."""

    macros: ClassVar[str]

    def check(self, kernel: Kernel) -> None:
        """Raises SpecError for a kernel that it does not fit."""


@dataclass(frozen=True)
class Unsplit(Split):
    """A piece of work has one chain of every output: all of the reduction, or a chunk of it."""

    macros: ClassVar[str] = "wgmma/split/none.cuh.j2"

    def check(self, kernel: Kernel) -> None:
        check(not kernel.held, kernel.name, "split of held sums", kernel.split, "serial")


@dataclass(frozen=True)
class Serial(Split):
    """A CTA takes one chunk of a tile after another, and keeps a second set of sums, of which a
    thread has the last ``held`` of each fragment in shared memory.
    """

    held: int

    macros: ClassVar[str] = "wgmma/split/serial.cuh.j2"

    def check(self, kernel: Kernel) -> None:
        held, most = self.held, kernel.accumulators // max(kernel.fragments, 1)
        name = kernel.name
        check(held % 4 == 0 <= held <= most, name, "held is a multiple of 4 up to", held, most)
