"""Stores of a GEMM kernel: what becomes of a tile's sums.

The macros of a store define what consumers prepare once (``prepare``), and what they do with the
sums of a tile (``store``).
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
"""Places of a result's rows, and the parameters that say so: in one matrix; in those of a batch;
in one, where groups of rows have biases; in a matrix a group; in one whose columns are panels of
taps; where windows do, in images; the same of windows in several phases."""


@dataclass(frozen=True)
class Store:
    """The base of stores; texts are expressions of CUDA C++."""

    macros: ClassVar[str]
    rehearsed: ClassVar[str]
    """Whether there is a way out that is straight code, and worth a rehearsal."""
    partial: ClassVar[bool] = False
    """Whether it stores sums of chunks, for a kernel that adds them."""

    place: str = "matrix"
    """The place of rows: see :data:`PLACES`."""

    @property
    def panels(self) -> bool:
        """Whether columns are panels of taps (:class:`ptxgen.spec.gemm.loads.TmaPanels`)."""
        return self.place == "panels"

    @property
    def scattered(self) -> bool:
        """Whether rows lie where windows of images do."""
        return False

    def check(self, kernel: Kernel) -> None:
        """Raises SpecError for a kernel that it does not fit."""
        sums = kernel.split == "workspace"
        check(sums == self.partial, kernel.name, "split", kernel.split, f"store {self}")
        check(self.place in PLACES, kernel.name, "place", self.place, tuple(PLACES))


@dataclass(frozen=True)
class Rows(Store):
    """Outputs are finished and stored by rows. ``accumulates``: rows that are whole vectors are
    added to what is there by vectors, too.
    """

    accumulates: bool = False

    macros: ClassVar[str] = "wgmma/store/rows.cuh.j2"
    rehearsed: ClassVar[str] = "halves || vectors"

    @property
    def pitches(self) -> tuple[str, ...]:
        """The parameters whose multiples rows lie at."""
        return PLACES[self.place]

    @property
    def scattered(self) -> bool:
        return self.place in ("windows", "phases")

    @property
    def result(self) -> str:
        """The parameter of the result."""
        return "y" if self.place in ("groups", "sums") else "c"

    @property
    def bias(self) -> str:
        """The parameter of the bias; none if there is no bias."""
        return {"groups": "biases", "sums": ""}.get(self.place, "bias")

    def check(self, kernel: Kernel) -> None:
        super().check(kernel)
        adds = not self.accumulates or self.place == "batch"
        check(adds, kernel.name, "place of vectors that are added to", self.place, "batch")


@dataclass(frozen=True)
class PartialSums(Store):
    """The sums of a chunk go to the workspace."""

    macros: ClassVar[str] = "wgmma/store/partial_sums.cuh.j2"
    rehearsed: ClassVar[str] = "vectors"
    partial: ClassVar[bool] = True


@dataclass(frozen=True)
class Segments(Store):
    """Outputs are rounded, and of each row's segments the maximum, the sum of weights and the
    target's logit are stored (contract flce).
    """

    macros: ClassVar[str] = "wgmma/store/segments.cuh.j2"
    rehearsed: ClassVar[str] = "true"
