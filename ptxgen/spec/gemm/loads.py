"""Loads of a GEMM kernel: how a stage of A and B gets to shared memory.

The macros of a load define what the producer does (``produce``), and how consumers wait for a stage
and multiply it (``chain``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ptxgen.spec.base import WARP, WARPGROUP, check
from ptxgen.spec.gemm.kernel import Kernel

FILTERS = ("boxes", "taps", "threads")
"""Ways to bring filters beside gathered windows: by the copy engine, as boxes of a matrix; by it,
tap by tap, where outputs lie side by side; by threads, where they do."""
PIXELS = ("vectors", "numbers", "copy")
"""Ways in which a thread loads 8 numbers of a window: as a vector of 16 bytes; one by one; out of
two vectors of a copy whose pixels are whole vectors."""


@dataclass(frozen=True)
class Load:
    """The base of loads; texts are expressions of CUDA C++."""

    macros: ClassVar[str]
    columns: ClassVar[str] = "n"
    """The columns that tiles cover."""
    begin_tile: ClassVar[str] = ""
    """The statement ahead of a tile's first chain."""
    whole_stages: ClassVar[bool] = True
    """Whether chunks end where stages do."""

    @property
    def arrivals(self) -> str:
        """Arrivals at the mbarrier of a stage until it is full."""
        return "1"

    @property
    def map_rank(self) -> int:
        """Dimensions of the tensor maps, of a product that is no batch."""
        return 2

    def align_a(self, itemsize: int) -> int:
        """Bytes that rows of A are aligned to."""
        return 16

    def check(self, kernel: Kernel) -> None:
        """Raises SpecError for a kernel that it does not fit."""


@dataclass(frozen=True)
class Tma(Load):
    """The copy engine brings tiles of two matrices."""

    macros: ClassVar[str] = "wgmma/load/tma.cuh.j2"


@dataclass(frozen=True)
class TmaIm2col(Load):
    """The copy engine brings windows of images as A: a stage has channels of one tap.

    Where a tap's channels end, a stage ends. Chunks need not end there: a stage that two chunks
    share is multiplied in two parts.
    """

    macros: ClassVar[str] = "wgmma/load/im2col.cuh.j2"
    begin_tile: ClassVar[str] = "begin_tile(at.k_begin);"
    whole_stages: ClassVar[bool] = False

    def check(self, kernel: Kernel) -> None:
        name = kernel.name
        check(kernel.layout in ("NT", "NN"), name, "layout", kernel.layout, "NT or NN")
        check(kernel.split == "serial", name, "split", kernel.split, "serial")
        check(kernel.ctas == 1, name, "CTAs of a cluster", kernel.ctas, 1)
        check(kernel.a.panels == 1, name, "panels of a stage of A", kernel.a.panels, 1)


@dataclass(frozen=True)
class TmaPanels(Load):
    """The copy engine brings windows of images as B, along the reduction.

    A panel of B has ``panel`` channels of one tap, with zeros behind a tap's last channel. So a
    tile has fewer columns than ``bn`` where channels are no multiple of that.
    """

    panel: int

    macros: ClassVar[str] = "wgmma/load/panels.cuh.j2"
    columns: ClassVar[str] = "columns"

    def check(self, kernel: Kernel) -> None:
        name, cluster = kernel.name, kernel.cluster_m
        check(kernel.layout == "TN", name, "layout", kernel.layout, "TN")
        check(kernel.cluster_n == 1, name, "CTAs that share a tile of A", kernel.cluster_n, 1)
        whole = not kernel.b.whole_panels or cluster == 1
        check(whole, name, "CTAs that share windows divide those of a panel", cluster, "so")
        check(
            kernel.bn % self.panel == 0, name, "bn is a multiple of a panel", kernel.bn, self.panel
        )


@dataclass(frozen=True)
class Gather(Load):
    """A warpgroup copies windows of images as A, 8 channels at a time. ``filters``: see
    :data:`FILTERS`; ``pixels``: see :data:`PIXELS`.
    """

    filters: str
    pixels: str = "vectors"

    macros: ClassVar[str] = "wgmma/load/gather.cuh.j2"

    @property
    def arrivals(self) -> str:
        """Once for what each thread copies, once for what it stores, and once for the copy
        engine.
        """
        if self.filters == "threads":
            return str(WARPGROUP * (1 + (self.pixels != "vectors")))
        return str(1 + WARPGROUP)

    @property
    def map_rank(self) -> int:
        return 2 if self.filters == "boxes" else 4

    def align_a(self, itemsize: int) -> int:
        return itemsize if self.pixels == "numbers" else 16

    def check(self, kernel: Kernel) -> None:
        name, layout = kernel.name, "NT" if self.filters == "boxes" else "NN"
        check(self.filters in FILTERS, name, "filters", self.filters, FILTERS)
        check(self.pixels in PIXELS, name, "pixels", self.pixels, PIXELS)
        vectors = self.pixels == "vectors" or self.filters == "threads"
        check(vectors, name, "pixels of filters", self.pixels, self.filters)
        check(kernel.layout == layout, name, "layout", kernel.layout, layout)
        check(kernel.ctas == 1, name, "CTAs of a cluster", kernel.ctas, 1)
        check(kernel.bk == 64, name, "bk is a row of a panel", kernel.bk, 64)


@dataclass(frozen=True)
class GatherSums(Load):
    """The warps of a warpgroup copy windows of images as B, along the reduction, stages in
    turns.
    """

    macros: ClassVar[str] = "wgmma/load/gather_sums.cuh.j2"

    @property
    def arrivals(self) -> str:
        return str(1 + WARP)

    def check(self, kernel: Kernel) -> None:
        name, wide = kernel.name, (64, 128, 256)
        check(kernel.layout == "TN", name, "layout", kernel.layout, "TN")
        check(kernel.ctas == 1, name, "CTAs of a cluster", kernel.ctas, 1)
        check(kernel.bk == 64, name, "bk is a row of a panel", kernel.bk, 64)
        check(kernel.bn in wide, name, "bn of windows", kernel.bn, wide)


@dataclass(frozen=True)
class Decode(Load):
    """Helping warps copy a weight of 4 bits as it is stored, and widen it into B's part of a stage;
    the copy engine brings A.
    """

    macros: ClassVar[str] = "wgmma/load/decode.cuh.j2"

    @property
    def arrivals(self) -> str:
        return "1 + HELPERS / 32"

    def check(self, kernel: Kernel) -> None:
        check(kernel.ctas == 1, kernel.name, "CTAs of a cluster", kernel.ctas, 1)
        swizzle = kernel.b.swizzle
        check(swizzle >= 64, kernel.name, "swizzle of B, bytes", swizzle, ">= 64")
