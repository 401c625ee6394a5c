"""Base of the kernels whose threads copy tiles of A and B into a ring in shared memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from ptxgen.expr import Expr, all_of, ceil_div
from ptxgen.numerics.contract import ITEMSIZE, K, M, N
from ptxgen.spec.base import INDEX_MAX
from ptxgen.spec.gemm import ALIGN_A, ALIGN_B, GemmSpec
from ptxgen.spec.gemm.rasters import Bands, Chunk, Raster, Walk
from ptxgen.spec.gemm.sides import VECTOR_BYTES, CopiedSide
from ptxgen.spec.gemm.splits import Meeting, OneChain, Slices, Turns, Workspace


class StagedSpec(GemmSpec):
    """Base of the GEMM kernels whose threads copy tiles to a ring; each of a CTA's ``warps_m`` x
    ``warps_n`` warps computes a part of the output tile.
    """

    stages: int
    first_k: ClassVar[str] = "k_begin"
    """Name of a copy's first k in the kernel's source, for the text of the index bounds."""

    if TYPE_CHECKING:

        @property
        def warps_m(self) -> int: ...
        @property
        def warps_n(self) -> int: ...
        @property
        def raster(self) -> int: ...
        def side(self, x: str) -> CopiedSide: ...

    # -- parts ----------------------------------------------------------------
    @property
    def schedule(self) -> Raster:
        """Raster, which assigns tiles to CTAs."""
        if self.split == "workspace":
            return Chunk()
        return Walk() if self.persistent else Bands(self.raster)

    def alignment(self, x: str) -> int:
        """Returns the alignment, in bytes, that rows of operand "a" or "b" need."""
        raise NotImplementedError

    @property
    def meeting(self) -> Meeting:
        """Split of the kernel, which says where partial sums of a tile's chunks are added."""
        found = {"workspace": Workspace(), "serial": Turns(), "slices": Slices()}
        return found.get(self.split, OneChain())

    # -- common to all families -----------------------------------------------
    def side_arguments(self, x: str, threads: int) -> dict[str, Any]:
        """Returns the arguments of a :class:`CopiedSide` by name. ``x``: operand "a" or "b";
        ``threads``: number of threads that copy it.
        """
        extent, warps = (self.bm, self.warps_m) if x == "a" else (self.bn, self.warps_n)
        k_contiguous = self.k_contiguous(x)
        rows, columns = (extent, self.bk) if k_contiguous else (self.bk, extent)
        return {
            "rows": rows,
            "vectors": columns * ITEMSIZE[self.dtype] // VECTOR_BYTES,
            "k_contiguous": k_contiguous,
            "threads": threads,
            "warp": extent // warps,
        }

    @property
    def stage(self) -> int:
        """Bytes of a stage of the ring: a tile of A and one of B."""
        return self.side("a").nbytes + self.side("b").nbytes

    def check_tiles(self, unit_m: int, unit_n: int) -> None:
        """Raises SpecError for tiles that the raster does not support, or that warps do not divide
        into units of ``unit_m`` x ``unit_n``.
        """
        self.schedule.check(self)
        for o, warps, unit, extent in (
            ("m", self.warps_m, unit_m, self.bm),
            ("n", self.warps_n, unit_n, self.bn),
        ):
            self.check_divides(f"warps_{o} x {unit} divides b{o}", warps * unit, extent)

    @property
    def requires(self) -> Expr:
        item = ITEMSIZE[self.dtype]
        known = ((ALIGN_A, self.alignment("a")), (ALIGN_B, self.alignment("b")))
        aligned = [align >= taken for align, taken in known if taken > item]
        return all_of((*aligned, *self.meeting.requires(self), *self.schedule.requires(self)))

    @property
    def own_bounds(self) -> list[tuple[str, Expr]]:
        """Index bounds of the copies and of the split, as pairs (expression in the source, largest
        value). Those of the raster are not included.
        """
        tiles_m, tiles_n = ceil_div(M, self.bm), ceil_div(N, self.bn)
        return [
            ("m + BM - 1", M + (self.bm - 1)),
            ("n + BN - 1", N + (self.bn - 1)),
            ("m0 + BM", tiles_m * self.bm),
            ("n0 + BN", tiles_n * self.bn),
            ("length + BK - 1", K + (self.bk - 1)),
            (f"{self.first_k} + k of a copy", K + self.bk),
        ]

    @property
    def index_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        bounds = (*self.own_bounds, *self.schedule.bounds(self))
        return tuple((text, value, INDEX_MAX) for text, value in bounds)
