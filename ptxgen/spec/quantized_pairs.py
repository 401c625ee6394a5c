"""Products with quantized weights that warps look up as they multiply them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ptxgen.numerics.contract import TC16, TIERS, Contract
from ptxgen.numerics.weight_format import WeightFormat
from ptxgen.spec.base import ARCHITECTURES, WARP, check
from ptxgen.spec.gemm import MEANINGS
from ptxgen.spec.mma import MmaSide
from ptxgen.spec.quantized import FORMAT, LOOKED_UP
from ptxgen.spec.quantized_packed import INDICES, LAYOUTS, QuantizedSyncSpec

SPLITS = ("serial",)
TABLE = 1 << 16
"""Bytes of the table: 256 for each byte of two indices, of which each lane has two codes."""


@dataclass(frozen=True)
class QuantizedPairsSpec(QuantizedSyncSpec):
    """A kernel of products whose B is a quantized weight, as it is stored: ``data`` and ``scales``.

    A CTA of ``warps`` warps side by side that multiply, and ``helpers`` that copy operands,
    computes ``bm`` x ``bn`` outputs, ``bk`` k's per stage. Columns of B are the instruction's 16
    rows, rows of A its 8 columns. Numbers of B are looked up in shared memory, two at a time, by
    the lanes that multiply them.

    ``stages``: those of what is copied (A, indices, scales). ``split``: "serial", a CTA takes
    one chunk after another, and keeps a second set of sums. ``ahead``: steps of 16 k by which
    numbers are looked up ahead. ``stream``: "b", L2 is told to evict the weight first.
    """

    layout: str
    bm: int
    bn: int
    bk: int
    warps: int
    helpers: int
    stages: int
    ahead: int = 1
    split: str = "serial"
    stream: str = "b"
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
    """k's over which the main loop is unrolled."""
    table_bytes: ClassVar[int] = TABLE
    meanings: ClassVar[Mapping[str, str]] = {
        **MEANINGS,
        "format": FORMAT,
        "warps": "warps that multiply, side by side along n",
        "helpers": "warps that copy operands",
    }

    def __post_init__(self) -> None:
        self.check_counts("bm", "bn", "bk", "warps", "helpers", "ctas_per_sm")
        name = self.name
        self.check_choices(
            dtype=TIERS["tc"],
            split=SPLITS,
            stream=("b",),
            min_arch=[*ARCHITECTURES],
            ahead=(1, 2, 4),
        )
        check(self.stages >= 3, name, "stages", self.stages, ">= 3")
        for what, unit in (("bk", self.block), ("bm", 8)):
            check(getattr(self, what) % unit == 0, name, f"{unit} divides {what}", unit, what)
        check(self.bn % (16 * self.warps) == 0, name, "16 * warps divides bn", self.bn, 16)
        self.check_table()
        threads = self.helpers * WARP
        check(threads % self.side("a").vectors == 0, name, "rows of A at once", threads, self.bk)
        slim = self.side("a").fragments
        needed = 2 * 4 * self.strips * slim
        needed += self.buffers * 2 * slim + (self.ahead * 8 + 4) * self.strips + 16
        self.check_room(needed, "accumulators, fragments, codes, addresses", self.ctas_per_sm)

    # -- derived --------------------------------------------------------------
    @property
    def threads(self) -> int:
        return (self.warps + self.helpers) * WARP

    @property
    def warps_n(self) -> int:
        """Warps side by side."""
        return self.warps

    @property
    def strips(self) -> int:
        """Times 16 columns of a warp."""
        return self.bn // (16 * self.warps)

    @property
    def buffers(self) -> int:
        """Steps of 16 k whose fragments a thread has room for: a power of two above ``ahead``."""
        return 1 << self.ahead.bit_length()

    @property
    def rows(self) -> int:
        """Rows of the weight in a stage."""
        return self.bn if self.along_k else self.bk

    @property
    def columns(self) -> int:
        """Numbers of such a row."""
        return self.bk if self.along_k else self.bn

    @property
    def parts(self) -> int:
        """Vectors of indices of such a row."""
        return self.columns // INDICES

    @property
    def pitch(self) -> int:
        """Bytes from row to row: an odd number of vectors, so that rows lie in different banks."""
        return 16 * (self.parts | 1)

    @property
    def scale_parts(self) -> int:
        """Scales of such a row."""
        return max(self.columns // self.scale_block, 1)

    @property
    def weight_bytes(self) -> int:
        """Bytes of a stage of indices and scales."""
        return self.rows * (self.pitch + 4 * self.scale_parts)

    @property
    def stage_bytes(self) -> int:
        """A, indices, scales."""
        return -(-(self.side("a").nbytes + self.weight_bytes) // 128) * 128

    def side(self, x: str) -> MmaSide:
        """The operand "a", as it lies in shared memory."""
        assert x == "a"
        return MmaSide(copy="vector", wide=False, **self.laid(x, self.helpers * WARP))

    @property
    def exchange_pitch(self) -> int:
        """Floats between rows of the epilogue's exchange buffer."""
        return self.bn + 8

    @property
    def shared_bytes(self) -> int:
        return TABLE + max(self.stages * self.stage_bytes, 4 * self.bm * self.exchange_pitch)

    def check_table(self) -> None:
        """SpecError where threads, lanes and blocks do not fit."""
        name, threads = self.name, self.helpers * WARP
        check(self.layout in LAYOUTS, name, "layout", self.layout, LAYOUTS)
        whole = self.parts * INDICES
        check(whole == self.columns, name, "whole vectors of indices", whole, self.columns)
        check(threads % self.parts == 0, name, "rows of B at once", threads, self.parts)
        if not self.along_k:
            check(self.strips in (1, 2, 4), name, "strips of a warp", self.strips, (1, 2, 4))
            blocks = max(self.bn, self.scale_block) % min(self.bn, self.scale_block)
            check(blocks == 0, name, "columns beside whole blocks", blocks, 0)
