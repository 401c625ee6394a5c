"""Splits of a GEMM kernel: where the chunks of a tile's reduction meet.

A split of a kernel with a ring (wgmma) defines ``multiply_tile``. Where threads copy tiles
(:class:`Meeting`), sums are held as the family's main loop has them, so that macros are the
family's own, and the parts say which chunks the kernel takes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ptxgen.expr import Expr
from ptxgen.spec.base import WORKSPACE_MAX, check
from ptxgen.spec.gemm import CHUNK, CHUNKS
from ptxgen.spec.gemm.kernel import Kernel
from ptxgen.spec.gemm.rasters import Tiled


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
        held, most = self.held, kernel.bn // 2  # sums of a thread, of 64 rows for 128 threads
        name = kernel.name
        check(held % 4 == 0 <= held <= most, name, "held is a multiple of 4 up to", held, most)


@dataclass(frozen=True)
class Meeting:
    """A split of a kernel whose threads copy tiles. ``file``: its macros, where a family has such
    files.
    """

    file: ClassVar[str] = "chain"

    def macros(self, family: str) -> str:
        """The file of macros of a family."""
        return f"{family}/split/{self.file}.cuh.j2"

    def requires(self, kernel: Tiled) -> list[Expr]:
        """Predicates under which the split is correct."""
        return []


@dataclass(frozen=True)
class OneChain(Meeting):
    """The reduction is one chunk, whose chain begins with zero, or with what C holds."""

    def requires(self, kernel: Tiled) -> list[Expr]:
        return [CHUNKS <= 1]


@dataclass(frozen=True)
class Turns(Meeting):
    """A CTA takes one chunk after another, and keeps a second set of sums. ``block``: k's that the
    main loop is unrolled over, within which no chunk ends; 1: chunks may end anywhere.
    """

    block: int = 1

    file: ClassVar[str] = "serial"

    def requires(self, kernel: Tiled) -> list[Expr]:
        return [(CHUNK % self.block).eq(0) | (CHUNKS <= 1)] if self.block > 1 else []


@dataclass(frozen=True)
class Slices(Meeting):
    """Slices of a CTA have a chunk each, and meet in shared memory."""

    file: ClassVar[str] = "slices"


@dataclass(frozen=True)
class ClusterSums(Meeting):
    """Each of the ``ctas`` of a cluster has one chunk of the same tile."""

    ctas: int

    file: ClassVar[str] = "cluster"

    def requires(self, kernel: Tiled) -> list[Expr]:
        return [CHUNKS <= self.ctas]


@dataclass(frozen=True)
class Workspace(Meeting):
    """Chunks meet in the workspace, where a reduce kernel adds their sums."""

    def requires(self, kernel: Tiled) -> list[Expr]:
        return [kernel.scratch["workspace"] <= WORKSPACE_MAX]
