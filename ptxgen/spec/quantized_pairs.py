"""Products with quantized weights whose codes the multiplying warps look up, two at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ptxgen.numerics.contract import TC16, TIERS, Contract
from ptxgen.numerics.weight_format import WeightFormat
from ptxgen.spec.base import ARCHITECTURES, WARP, check
from ptxgen.spec.gemm import MEANINGS
from ptxgen.spec.mma import MmaSide
from ptxgen.spec.quantized import FORMAT, LOOKED_UP, LookedUpSpec
from ptxgen.spec.quantized_packed import INDICES, LAYOUTS, QuantizedSyncSpec

SPLITS = ("serial",)
TABLE = 1 << 16
"""Bytes of the lookup table in shared memory: 256 bytes for each byte of two indices, so that each
lane reads the pair of decoded elements from its own copy."""


@dataclass(frozen=True)
class QuantizedPairsSpec(LookedUpSpec, QuantizedSyncSpec):
    """An mma.sync kernel whose B is a quantized weight as it is stored: ``data`` and ``scales``.

    A CTA computes ``bm`` x ``bn`` outputs, ``bk`` k's per stage. ``warps`` warps, side by side
    along n, multiply; ``producer_warps`` warps copy operands. Columns of B are the instruction's 16
    rows, rows of A its 8 columns. The lanes that multiply look up elements of B in shared memory,
    two at a time.

    ``stages``: stages of the copied arrays (A, indices, scales). ``split``: "serial", a CTA
    computes chunk after chunk and adds each to a second set of sums. ``prefetch``: steps of 16 k by
    which elements are looked up ahead. ``streamed``: "b", the weight is loaded with L2's
    evict-first policy.
    """

    layout: str
    bm: int
    bn: int
    bk: int
    warps: int
    producer_warps: int
    stages: int
    prefetch: int = 1
    split: str = "serial"
    streamed: str = "b"
    ctas_per_sm: int = 1
    dtype: str = "bf16"
    min_arch: str = "sm_80"
    contract: Contract = TC16
    format: WeightFormat = LOOKED_UP[0]

    warps_m: ClassVar[int] = 1
    teams: ClassVar[int | None] = None
    copy_a: ClassVar[str | None] = None
    family: ClassVar[str] = "quantized_pairs"
    template: ClassVar[str] = "quantized/pairs.cu.j2"
    block: ClassVar[int] = 128
    """Number of k's in an unrolled iteration of the main loop."""
    table_bytes: ClassVar[int] = TABLE
    meanings: ClassVar[Mapping[str, str]] = {
        **MEANINGS,
        "format": FORMAT,
        "warps": "warps that multiply, along n",
        "producer_warps": "warps that copy operands",
    }

    def __post_init__(self) -> None:
        self.check_counts("bm", "bn", "bk", "warps", "producer_warps", "ctas_per_sm")
        name = self.name
        self.check_choices(
            dtype=TIERS["tc"],
            split=SPLITS,
            streamed=("b",),
            min_arch=[*ARCHITECTURES],
            prefetch=(1, 2, 4),
        )
        check(self.stages >= 3, name, "stages", self.stages, ">= 3")
        for what, unit in (("bk", self.block), ("bm", 8)):
            check(getattr(self, what) % unit == 0, name, f"{unit} divides {what}", unit, what)
        check(self.bn % (16 * self.warps) == 0, name, "16 * warps divides bn", self.bn, 16)
        self.check_table()
        threads = self.producer_warps * WARP
        check(threads % self.side("a").vectors == 0, name, "rows of A at once", threads, self.bk)
        slim = self.side("a").fragments
        needed = 2 * 4 * self.strips * slim
        needed += self.buffers * 2 * slim + (self.prefetch * 8 + 4) * self.strips + 16
        self.check_resources(needed, "accumulators, fragments, codes, addresses", self.ctas_per_sm)

    # -- derived --------------------------------------------------------------
    @property
    def threads(self) -> int:
        return (self.warps + self.producer_warps) * WARP

    @property
    def warps_n(self) -> int:
        """Warps that multiply, side by side along n."""
        return self.warps

    @property
    def strips(self) -> int:
        """Fragments of 16 columns in a warp's tile."""
        return self.bn // (16 * self.warps)

    @property
    def buffers(self) -> int:
        """Register buffers for fragments, one a step of 16 k: a power of two above ``prefetch``."""
        return 1 << self.prefetch.bit_length()

    @property
    def rows(self) -> int:
        """Rows of the weight in a stage."""
        return self.bn if self.along_k else self.bk

    @property
    def columns(self) -> int:
        """Elements in a row of a weight's stage: ``bk`` if rows run along k, else ``bn``."""
        return self.bk if self.along_k else self.bn

    @property
    def parts(self) -> int:
        """16-byte vectors of indices in a row of the weight's stage."""
        return self.columns // INDICES

    @property
    def pitch(self) -> int:
        """Row pitch of the weight's stage, in bytes: an odd number of vectors, against bank
        conflicts.
        """
        return 16 * (self.parts | 1)

    @property
    def scale_parts(self) -> int:
        """Scales in a row of the weight's stage."""
        return max(self.columns // self.scale_block, 1)

    @property
    def weight_bytes(self) -> int:
        """Bytes of a stage of the weight: indices and scales."""
        return self.rows * (self.pitch + 4 * self.scale_parts)

    @property
    def stage_bytes(self) -> int:
        """Bytes of a stage: a tile of A, indices and scales, rounded up to 128."""
        return -(-(self.side("a").nbytes + self.weight_bytes) // 128) * 128

    def side(self, x: str) -> MmaSide:
        """Returns the shared-memory tile of A; ``x`` must be "a"."""
        assert x == "a"
        return MmaSide(
            copy="vector", wide=False, **self.side_arguments(x, self.producer_warps * WARP)
        )

    @property
    def exchange_pitch(self) -> int:
        """Row pitch of the epilogue's exchange buffer, in floats."""
        return self.bn + 8

    @property
    def shared_bytes(self) -> int:
        return TABLE + max(self.stages * self.stage_bytes, 4 * self.bm * self.exchange_pitch)

    def check_table(self) -> None:
        """Raises SpecError if a stage of the weight is not whole vectors of indices, or if producer
        threads, a warp's fragments or the blocks of a scale do not divide it evenly.
        """
        name, threads = self.name, self.producer_warps * WARP
        check(self.layout in LAYOUTS, name, "layout", self.layout, LAYOUTS)
        whole = self.parts * INDICES
        check(whole == self.columns, name, "whole vectors of indices", whole, self.columns)
        check(threads % self.parts == 0, name, "rows of B at once", threads, self.parts)
        if not self.along_k:
            check(self.strips in (1, 2, 4), name, "strips of a warp", self.strips, (1, 2, 4))
            blocks = max(self.bn, self.scale_block) % min(self.bn, self.scale_block)
            check(blocks == 0, name, "columns beside whole blocks", blocks, 0)
