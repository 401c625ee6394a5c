"""Products of few rows with quantized weights, whose multiplying warps decode in registers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ptxgen.expr import Expr
from ptxgen.numerics.contract import TC16, TIERS, Contract
from ptxgen.numerics.weight_format import WeightFormat
from ptxgen.spec.base import ARCHITECTURES, WARP, check
from ptxgen.spec.gemm import CHUNKS, MEANINGS
from ptxgen.spec.gemm.rasters import Bands, Raster
from ptxgen.spec.quantized import FORMAT, LOOKED_UP
from ptxgen.spec.quantized_packed import QuantizedSyncSpec

ROW_VECTORS = 8
"""Most vectors of codes in a row of a stage: with more, stages are too few."""
BARRIERS = 15
"""Named barriers of a CTA beside that of ``__syncthreads`` (PTX ISA, bar)."""


@dataclass(frozen=True)
class QuantizedSkinnySpec(QuantizedSyncSpec):
    """An mma.sync kernel for few rows, whose B is a quantized weight: ``data`` and ``scales``.

    A CTA computes ``bm`` x ``bn`` outputs. Its ``slices`` slices of ``warps`` warps each compute
    other chunks of the reduction, ``bk`` k's per stage. The warps of a slice are side by side along
    n. All warps copy operands, decode the weight in registers and multiply. Columns of B are the
    instruction's 16 rows, rows of A its 8 columns.

    ``stages``: stages of the copied arrays (A, codes, scales), of each slice; ``sums``: most chunks
    of a reduction, whose sums are in shared memory.
    """

    layout: str
    bm: int
    bn: int
    bk: int
    warps: int
    slices: int
    stages: int
    sums: int
    split: str = "slices"
    ctas_per_sm: int = 1
    dtype: str = "bf16"
    min_arch: str = "sm_80"
    contract: Contract = TC16
    format: WeightFormat = LOOKED_UP[0]

    streamed: ClassVar[str] = ""
    teams: ClassVar[int | None] = None
    copy_a: ClassVar[str | None] = None
    family: ClassVar[str] = "quantized_skinny"
    template: ClassVar[str] = "quantized/skinny.cu.j2"
    block: ClassVar[int] = 128
    """Number that divides the length of chunks."""
    meanings: ClassVar[Mapping[str, str]] = {
        **MEANINGS,
        "format": FORMAT,
        "warps": "warps of a slice, along n",
        "slices": "groups of warps that each compute other chunks",
        "sums": "most chunks of a reduction, whose sums shared memory holds",
    }

    def __post_init__(self) -> None:
        self.check_counts("bm", "bn", "bk", "warps", "slices", "sums", "ctas_per_sm")
        name = self.name
        self.check_choices(
            layout=("NT",), dtype=TIERS["tc"], split=("slices",), min_arch=[*ARCHITECTURES]
        )
        check(self.stages >= 3, name, "stages", self.stages, ">= 3")
        check(self.slices <= BARRIERS, name, "slices, each with a barrier", self.slices, BARRIERS)
        check(self.slices <= self.sums, name, "slices, up to sums", self.slices, self.sums)
        check(self.bm % 8 == 0, name, "8 divides bm", 8, self.bm)
        check(self.bn % (16 * self.warps) == 0, name, "16 * warps divides bn", self.bn, 16)
        check(self.bk % self.block == 0, name, "128 divides bk", self.block, self.bk)
        check(self.vectors <= ROW_VECTORS, name, "vectors of a row", self.vectors, ROW_VECTORS)
        found = 4 * self.strips * self.bm // 8 + 6 * self.strips * self.items + 40
        self.check_resources(found, "accumulators, codes, addresses", self.ctas_per_sm)

    # -- derived --------------------------------------------------------------
    @property
    def slice_threads(self) -> int:
        """Threads of a slice."""
        return self.warps * WARP

    @property
    def threads(self) -> int:
        return self.slices * self.slice_threads

    @property
    def strips(self) -> int:
        """Fragments of 16 columns in a warp's tile."""
        return self.bn // (16 * self.warps)

    @property
    def a_pitch(self) -> int:
        """Row pitch of A's stage, in bytes: 32 bytes of four rows lie in different banks."""
        return self.bk * 2 + 32

    @property
    def vectors(self) -> int:
        """16-byte vectors of codes in a row of the weight's stage."""
        return self.bk * self.format.bits // 128

    @property
    def pitch(self) -> int:
        """Row pitch of the codes' stage, in bytes: an odd number of vectors, against bank
        conflicts.
        """
        return 16 * (self.vectors | 1)

    @property
    def stage_bytes(self) -> int:
        """Bytes of a slice's stage: a tile of A, codes, words of blocks."""
        words = self.bk // self.format.block * self.items
        return -(-(self.bm * self.a_pitch + self.bn * (self.pitch + 4 * words)) // 16) * 16

    @property
    def exchange_pitch(self) -> int:
        """Row pitch of a chunk's sums in shared memory, in floats."""
        return self.bn + 8

    @property
    def sums_bytes(self) -> int:
        """Bytes of a chunk's sums."""
        return 4 * self.bm * self.exchange_pitch

    @property
    def shared_bytes(self) -> int:
        own = self.table_bytes + self.sums * self.sums_bytes
        return own + self.slices * self.stages * self.stage_bytes

    @property
    def chains(self) -> int:
        return self.slices

    @property
    def schedule(self) -> Raster:
        return Bands(0)

    @property
    def requires(self) -> Expr:
        return super().requires & (CHUNKS <= self.sums)

    def describe(self) -> tuple[str, ...]:
        return self.described(
            f"C[M, N] = A . B, layout {self.layout}, {self.dtype}, B a weight of "
            f"{self.format.name}; CTA tile {self.bm} x {self.bn} x {self.bk}, "
            f"{self.slices} slices of {self.warps} warps",
            f"{self.stages} stages",
        )
