"""Stores of a GEMM kernel: the epilogue of a tile.

A store is a file of macros ``constants``, ``functions``, ``conditions``, ``spill``, ``corner`` and
``store``; ``templates/wgmma/store/partial_sums.cuh.j2`` describes each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

from ptxgen.spec.base import check
from ptxgen.spec.gemm.kernel import Kernel

PLACES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "matrix": ("ldc",),
        "batch": ("ldc", "batch_c", "outer_c"),
        "groups": ("ldc",),
        "sums": ("ldc", "batch_c"),
        "panels": ("ldc",),
        "windows": ("ldc", "row_c", "image_c"),
        "phases": ("ldc", "row_c", "image_c", "first_c", "right_c", "below_c"),
    }
)
"""Addressing modes of the result's rows, each with its stride parameters: "matrix" (rows of one
matrix), "batch" (of a batch of matrices), "groups" (of one matrix, with a bias for each group of
rows), "sums" (of a matrix for each group), "panels" (of a matrix whose columns are panels, each of
one filter tap), "windows" (rows are pixels of images) or "phases" (pixels of images, in several
phases of a strided dgrad)."""


@dataclass(frozen=True)
class Store:
    """Base of the stores, which write a tile; members of type str are CUDA C++."""

    macros: ClassVar[str]
    rehearsed: ClassVar[str]
    """C++ condition under which the first round runs the store without effect (a rehearsal), so
    that its instructions are fetched while the first stages load. True only for paths without
    branches."""
    partial: ClassVar[bool] = False
    """Whether the store writes partial sums, for a kernel that adds them."""

    place: str = "matrix"
    """Addressing mode of the result's rows, a key of :data:`PLACES`."""

    @property
    def panels(self) -> bool:
        """Whether the result's columns are panels, each with channels of one filter tap, as in
        wgrad (:class:`ptxgen.spec.gemm.loads.TmaPanels`).
        """
        return self.place == "panels"

    @property
    def scattered(self) -> bool:
        """Whether the result's rows are pixels of images."""
        return False

    def check(self, kernel: Kernel) -> None:
        """Raises SpecError for a kernel that the store does not fit."""
        sums = kernel.split == "workspace"
        check(sums == self.partial, kernel.name, "split", kernel.split, f"store {self}")
        check(self.place in PLACES, kernel.name, "place", self.place, tuple(PLACES))


@dataclass(frozen=True)
class Rows(Store):
    """Store that applies the epilogue and writes rows. ``accumulates``: whether aligned rows that
    are added to old values move by vectors, too; else they move one or two outputs at a time.
    """

    accumulates: bool = False

    macros: ClassVar[str] = "wgmma/store/rows.cuh.j2"
    rehearsed: ClassVar[str] = "halves || vectors"

    @property
    def pitches(self) -> tuple[str, ...]:
        """Names of the stride parameters of the result's rows, in order."""
        return PLACES[self.place]

    @property
    def scattered(self) -> bool:
        return self.place in ("windows", "phases")

    @property
    def result(self) -> str:
        """Name of the result's pointer parameter."""
        return "y" if self.place in ("groups", "sums") else "c"

    @property
    def bias(self) -> str:
        """Name of the bias's pointer parameter; empty if there is no bias."""
        return {"groups": "biases", "sums": ""}.get(self.place, "bias")

    def check(self, kernel: Kernel) -> None:
        super().check(kernel)
        adds = not self.accumulates or self.place == "batch"
        check(adds, kernel.name, "place of vectors that are added to", self.place, "batch")


@dataclass(frozen=True)
class Transposed(Store):
    """Store of a kernel that computes C^T: a warpgroup transposes its part of a tile, applies the
    epilogue and writes rows of C.
    """

    macros: ClassVar[str] = "wgmma/store/transposed.cuh.j2"
    rehearsed: ClassVar[str] = "rows16"


@dataclass(frozen=True)
class PartialSums(Store):
    """Store that writes the sums of a chunk to the workspace (split-K)."""

    macros: ClassVar[str] = "wgmma/store/partial_sums.cuh.j2"
    rehearsed: ClassVar[str] = "vectors"
    partial: ClassVar[bool] = True


@dataclass(frozen=True)
class TransposedSums(Store):
    """Store of a kernel that computes C^T, which writes the sums of a chunk to the workspace
    (split-K), straight from the accumulators.
    """

    macros: ClassVar[str] = "wgmma/store/transposed_sums.cuh.j2"
    rehearsed: ClassVar[str] = "true"
    partial: ClassVar[bool] = True


@dataclass(frozen=True)
class Segments(Store):
    """Store that rounds logits but writes none: for each segment of a row it writes the maximum,
    the sum of weights and the target's logit (contract flce).
    """

    macros: ClassVar[str] = "wgmma/store/segments.cuh.j2"
    rehearsed: ClassVar[str] = "true"
