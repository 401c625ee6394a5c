"""Schedules of kernels whose CTAs have a tile each, or walk over tiles.

The macros of a raster define a CTA's tile and its first output (``tile``), and where the result of
that tile begins.
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
    """A kernel, as rasters and splits see it: see :class:`ptxgen.spec.gemm.staged.StagedSpec`."""

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
    """A CTA has one tile; texts are expressions of CUDA C++."""

    macros: ClassVar[str]

    @property
    def banded(self) -> bool:
        """Whether neighbouring CTAs have tiles of a band of tile rows."""
        return False

    def requires(self, kernel: Tiled) -> list[Expr]:
        """Predicates under which the grid is one that there is."""
        return [kernel.grid <= GRID_MAX]

    def bounds(self, kernel: Tiled) -> Bounds:
        """The 32-bit quantities that it computes, and their largest values."""
        return []

    def check(self, kernel: Tiled) -> None:
        """Raises SpecError for a kernel that it does not fit."""
        check(kernel.split != "workspace", kernel.name, "split", kernel.split, f"raster {self}")


@dataclass(frozen=True)
class Bands(Raster):
    """Tiles in bands of ``rows`` tile rows; 0: column by column. ``together`` CTAs have one."""

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
    """A CTA has a chunk of a tile's reduction."""

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
    """CTAs of a bounded grid walk over the tiles, with 64-bit indices."""

    macros: ClassVar[str] = "gemm/raster/walk.cuh.j2"

    def requires(self, kernel: Tiled) -> list[Expr]:
        return []


@dataclass(frozen=True)
class WalkGroups(Walk):
    """CTAs walk over the tiles of groups of rows, or of sums over a group's rows."""

    macros: ClassVar[str] = "gemm/raster/groups.cuh.j2"
