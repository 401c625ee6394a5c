"""Schedules of a GEMM kernel: its work items, and the order in which clusters compute them.

The macros of a schedule define ``locate(piece)``, which returns a work item's ``Work``: its first
output (``m0, n0``), its reduction (``k_begin, k_end``) and the ``fields`` that the schedule adds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ptxgen.spec.base import check
from ptxgen.spec.gemm.kernel import Kernel


@dataclass(frozen=True)
class Schedule:
    """Base of the schedules, which assign work items to clusters; members of type str are CUDA
    C++.
    """

    macros: ClassVar[str]
    fields: ClassVar[str] = "matrix"
    pieces: ClassVar[str] = "pieces()"
    """Number of work items, in C++."""
    onward: ClassVar[str] = "clusters"
    """Stride from a cluster's work item to its next, in C++."""
    chunk: ClassVar[str] = "chunk"
    """Length of a chunk of the reduction, in C++."""
    batched: ClassVar[bool] = False
    """Whether tensor maps have coordinates for the matrix of a batch or a group."""
    phased: ClassVar[bool] = False
    """Whether work items may differ in the length of their reduction, which may be 0, as in the
    phases of a strided dgrad."""
    cuts_k: ClassVar[bool] = False
    """Whether a work item is one chunk of a tile's reduction (split-K)."""

    @property
    def rows(self) -> str:
        """C++ expression of the end of the rows that a work item may write (exclusive)."""
        return "m"

    @property
    def cuts(self) -> bool:
        """Whether the last stage of a work item may reach past the end of its group, so that the
        k's from there on are masked.
        """
        return False

    @property
    def begin_tile(self) -> str:
        """Statement before the first chunk of a tile, in C++."""
        return ""

    def check(self, kernel: Kernel) -> None:
        """Raises SpecError for a kernel that the schedule does not fit."""


@dataclass(frozen=True)
class Tiles(Schedule):
    """Schedule of the tiles of one product, in bands of tile rows."""

    macros: ClassVar[str] = "wgmma/schedule/tiles.cuh.j2"


@dataclass(frozen=True)
class Batch(Schedule):
    """Schedule of the tiles of a batch of products, one product after the other."""

    macros: ClassVar[str] = "wgmma/schedule/batch.cuh.j2"
    batched: ClassVar[bool] = True


@dataclass(frozen=True)
class Chunks(Schedule):
    """Schedule of split-K: a work item is one chunk of a tile's reduction. ``beside``: for
    convolutions. Where images are larger than filters, consecutive work items are then the chunks
    of one tile, which read the same pixels; else they are the tiles of one chunk.
    """

    beside: bool = False

    macros: ClassVar[str] = "wgmma/schedule/chunks.cuh.j2"
    fields: ClassVar[str] = "chunk"
    pieces: ClassVar[str] = "work"
    cuts_k: ClassVar[bool] = True


@dataclass(frozen=True)
class Groups(Schedule):
    """Schedule of the tiles of grouped products; ``grouped_by``: see
    :data:`ptxgen.spec.grouped.GROUPINGS`.
    """

    grouped_by: str

    macros: ClassVar[str] = "wgmma/schedule/groups.cuh.j2"
    fields: ClassVar[str] = "group, end"
    batched: ClassVar[bool] = True

    @property
    def rows(self) -> str:
        return "m" if self.cuts else "at.end"

    @property
    def cuts(self) -> bool:
        return self.grouped_by == "sums"

    @property
    def begin_tile(self) -> str:
        return "stop = at.end; " if self.cuts else ""

    def check(self, kernel: Kernel) -> None:
        name, over = kernel.name, self.grouped_by
        whole = kernel.bm % 64 == kernel.bn % 64 == 0
        check(not self.cuts or whole, name, "panels of 64 columns", kernel.bm, kernel.bn)
        check(kernel.ctas == 1, name, "CTAs of a cluster", kernel.ctas, 1)
        check(not self.cuts or kernel.split == "none", name, "grouped_by", over, kernel.split)


@dataclass(frozen=True)
class Phases(Schedule):
    """Schedule of the tiles of a strided dgrad. A phase has the pixels with one remainder by the
    stride along each dimension; there are up to four, with reductions of unequal length. To balance
    these, clusters take the tiles of every second round in reverse order.
    """

    macros: ClassVar[str] = "wgmma/schedule/phases.cuh.j2"
    fields: ClassVar[str] = "phase"
    onward: ClassVar[str] = "2 * (clusters - piece % clusters) - 1"
    chunk: ClassVar[str] = "chunk_of(at.phase)"
    phased: ClassVar[bool] = True

    @property
    def rows(self) -> str:
        return "rows_of(at.phase)"

    def check(self, kernel: Kernel) -> None:
        check(kernel.split == "serial", kernel.name, "split of phases", kernel.split, "serial")
