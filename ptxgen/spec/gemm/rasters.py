"""Rasters: the map from CTAs to output tiles, in kernels whose threads copy the operands.

The macros of a raster define a CTA's tile and its first output (``tile``), and the address of that
tile's result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol

from ptxgen.expr import Expr, ceil_div
from ptxgen.numerics.contract import N
from ptxgen.spec.base import GRID_MAX, check
from ptxgen.spec.gemm import CHUNK, CHUNKS

Bounds = list[tuple[str, Expr]]


class Tiled(Protocol):
    """Protocol of a kernel: the members that rasters and splits read
    (:class:`ptxgen.spec.gemm.staged.StagedSpec`).
    """

    @property
    def name(self) -> str: ...
    @property
    def split(self) -> str: ...
    @property
    def persistent(self) -> bool: ...
    @property
    def bn(self) -> int: ...
    @property
    def grid(self) -> Expr: ...
    @property
    def scratch(self) -> Mapping[str, Expr]: ...
    @property
    def tiles(self) -> Expr: ...


@dataclass(frozen=True)
class Raster:
    """Base of the rasters: one tile a CTA. Members of type str are CUDA C++ expressions."""

    macros: ClassVar[str]

    @property
    def banded(self) -> bool:
        """Whether tiles of neighbouring CTAs are in one band of tile rows, for reuse in L2."""
        return False

    def requires(self, kernel: Tiled) -> list[Expr]:
        """Returns the predicates under which the grid is within CUDA's limits."""
        return [kernel.grid <= GRID_MAX]

    def bounds(self, kernel: Tiled) -> Bounds:
        """Returns the bounds of the raster's 32-bit index arithmetic, as pairs (expression in the
        source, largest value).
        """
        return []

    def check(self, kernel: Tiled) -> None:
        """Raises SpecError for a kernel that the raster does not fit."""
        check(kernel.split != "workspace", kernel.name, "split", kernel.split, f"raster {self}")


@dataclass(frozen=True)
class Bands(Raster):
    """Raster that numbers the tiles in bands of ``rows`` tile rows, whose CTAs share columns of B
    in L2; 0: column by column. ``together``: CTAs (a cluster) that compute one tile.
    """

    rows: int
    together: int = 1

    macros: ClassVar[str] = "gemm/raster/bands.cuh.j2"

    @property
    def banded(self) -> bool:
        return self.rows > 0

    def bounds(self, kernel: Tiled) -> Bounds:
        return [("GROUP * tiles_n", ceil_div(N, kernel.bn) * self.rows)] if self.rows else []


@dataclass(frozen=True)
class Chunk(Raster):
    """Raster of split-K: a CTA computes one chunk of a tile's reduction."""

    macros: ClassVar[str] = "gemm/raster/chunk.cuh.j2"

    def bounds(self, kernel: Tiled) -> Bounds:
        return [
            ("tiles_m * tiles_n", kernel.tiles),
            ("chunk_index * chunk", (CHUNKS - 1) * CHUNK),
        ]

    def check(self, kernel: Tiled) -> None:
        name, walks = kernel.name, kernel.persistent
        check(kernel.split == "workspace", name, "split", kernel.split, f"raster {self}")
        check(not walks, name, "persistent, split", walks, kernel.split)


@dataclass(frozen=True)
class Walk(Raster):
    """Raster of a persistent grid: CTAs loop over the tiles, with 64-bit indices."""

    macros: ClassVar[str] = "gemm/raster/walk.cuh.j2"

    def requires(self, kernel: Tiled) -> list[Expr]:
        return []


@dataclass(frozen=True)
class WalkGroups(Walk):
    """Raster of a persistent grid over the tiles of grouped products."""

    macros: ClassVar[str] = "gemm/raster/groups.cuh.j2"
