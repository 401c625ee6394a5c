"""Loads of a GEMM kernel: the producer's part, which fills a stage with A and B.

The macros of a load define what the producer does (``produce``), and how consumers wait for a stage
and multiply it (``chain``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ptxgen.spec.base import WARP, WARPGROUP, check
from ptxgen.spec.gemm.kernel import Kernel

FILTERS = ("boxes", "taps", "threads")
"""Methods by which a gathering convolution loads its filters: "boxes" (TMA, boxes of a matrix that
is contiguous along k), "taps" (TMA, tap by tap, where outputs are contiguous) or "threads" (copies
by threads, where outputs are contiguous)."""
PIXELS = ("vectors", "numbers", "copy")
"""Methods by which a thread loads 8 neighbouring elements of a window: "vectors" (one 16-byte
vector of the image), "numbers" (element by element) or "copy" (two neighbouring vectors of a copy
of the image in which each pixel is padded to whole vectors)."""


@dataclass(frozen=True)
class Load:
    """Base of the loads, which fill a stage; members of type str are CUDA C++."""

    macros: ClassVar[str]
    columns: ClassVar[str] = "n"
    """C++ expression of the number of columns that the tiles cover."""
    begin_tile: ClassVar[str] = ""
    """Statement before the first chunk of a tile, in C++."""
    whole_stages: ClassVar[bool] = True
    """Whether a chunk of the reduction always ends at the end of a stage; else a stage may be
    multiplied in two parts."""

    @property
    def arrivals(self) -> str:
        """C++ expression of the number of arrivals that complete the "full" mbarrier of a stage."""
        return "1"

    @property
    def map_rank(self) -> int:
        """Rank of the tensor maps of a product without a batch."""
        return 2

    def align_a(self, itemsize: int) -> int:
        """Returns the alignment, in bytes, that rows of A need."""
        return 16

    def check(self, kernel: Kernel) -> None:
        """Raises SpecError for a kernel that the load does not fit."""


@dataclass(frozen=True)
class Tma(Load):
    """Load of the tiles of two matrices by TMA."""

    macros: ClassVar[str] = "wgmma/load/tma.cuh.j2"


@dataclass(frozen=True)
class TmaIm2col(Load):
    """Load of a convolution whose A, windows of images, TMA gathers in im2col mode.

    A stage holds channels of one tap and never spans two. A chunk may end inside a stage, which is
    then multiplied in two parts.
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
    """Load of a wgrad whose B, windows of images along the reduction, TMA gathers.

    A panel of B has ``panel`` channels of one tap, padded with zeros after the last channel. A tile
    thus has fewer columns than ``bn`` where ``panel`` does not divide the channels.
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
    """Load of a convolution: a producer warpgroup gathers A (windows of images), 8 elements a
    thread.

    ``filters``: path of B to shared memory, one of :data:`FILTERS`; ``pixels``: method by which a
    thread loads its 8 elements, one of :data:`PIXELS`.
    """

    filters: str
    pixels: str = "vectors"

    macros: ClassVar[str] = "wgmma/load/gather.cuh.j2"

    @property
    def arrivals(self) -> str:
        """C++ expression of the arrivals that complete a stage's "full" mbarrier. Each thread
        arrives for its cp.async copies, and once more for its stores if it has both; TMA arrives
        once.
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
    """Load of a wgrad whose B, windows of images along the reduction, a producer warpgroup gathers;
    its warps fill stages in rotation.
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
    """Load of a product with a quantized weight: helper warps copy the 4-bit codes and widen them
    into B's part of a stage; TMA loads A.
    """

    macros: ClassVar[str] = "wgmma/load/decode.cuh.j2"

    @property
    def arrivals(self) -> str:
        return "1 + PRODUCERS / 32"

    def check(self, kernel: Kernel) -> None:
        check(kernel.ctas == 1, kernel.name, "CTAs of a cluster", kernel.ctas, 1)
        swizzle = kernel.b.swizzle
        check(swizzle >= 64, kernel.name, "swizzle of B, bytes", swizzle, ">= 64")
