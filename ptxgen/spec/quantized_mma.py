"""Products with quantized weights on tensor cores, by ``mma.sync``, on sm_80 and newer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ptxgen.numerics.contract import TC16, TIERS, Contract
from ptxgen.numerics.weight_format import WeightFormat
from ptxgen.spec.base import ARCHITECTURES, WARP, check
from ptxgen.spec.gemm import MEANINGS
from ptxgen.spec.mma import BLOCK, MmaLoop, MmaSide
from ptxgen.spec.quantized import FORMAT, LOOKED_UP
from ptxgen.spec.quantized_packed import PRODUCERS, TEAMS, QuantizedSyncSpec

SPLITS = ("serial", "workspace")


@dataclass(frozen=True)
class QuantizedTensorSpec(MmaLoop, QuantizedSyncSpec):
    """An mma.sync kernel whose B is a quantized weight as it is stored: ``data`` and ``scales``.

    A CTA computes ``bm`` x ``bn`` outputs, ``bk`` k's per stage. ``warps_m`` x ``warps_n`` warps
    multiply; ``producer_warps`` warps copy operands and widen the weight. Columns of B are the
    instruction's 16 rows, rows of A its 8 columns.

    ``stages``: stages of the copied arrays (A, indices, scales); widened B has two. ``split``:
    "serial" (a CTA computes chunk after chunk and adds each to a second set of sums) or
    "workspace" (a CTA for each tile and chunk, whose sums a reduce kernel adds). ``prefetch``:
    steps of 16 k by which fragments are loaded ahead. ``streamed``: "b" loads the weight with L2's
    evict-first policy. ``teams``: number of teams of producers, each with its own ``stages`` and
    two widened tiles of B. ``copy_a``: "plain" copies A element by element through registers, at
    any alignment.
    """

    layout: str
    bm: int
    bn: int
    bk: int
    warps_m: int
    warps_n: int
    producer_warps: int
    stages: int
    prefetch: int = 3
    split: str = "serial"
    streamed: str = "b"
    ctas_per_sm: int = 1
    dtype: str = "bf16"
    min_arch: str = "sm_80"
    contract: Contract = TC16
    format: WeightFormat = LOOKED_UP[0]
    teams: int | None = None
    copy_a: str | None = None

    family: ClassVar[str] = "quantized_mma"
    template: ClassVar[str] = "quantized/gemm.cu.j2"
    meanings: ClassVar[Mapping[str, str]] = {
        **MEANINGS,
        "format": FORMAT,
        "producer_warps": PRODUCERS,
        "teams": TEAMS,
        "copy_a": "copy method of A to shared memory (plain: by elements; none: by vectors)",
    }

    def __post_init__(self) -> None:
        self.check_counts("bm", "bn", "bk", "warps_m", "warps_n", "producer_warps", "ctas_per_sm")
        name = self.name
        self.check_choices(
            dtype=TIERS["tc"],
            split=SPLITS,
            streamed=("", "b"),
            min_arch=[*ARCHITECTURES],
            copy_a=(None, "plain"),
        )
        least = 3 if self.teams else 2
        check(self.stages >= least, name, "stages", self.stages, f">= {least}")
        crews = self.crews
        check(crews <= 3, name, "teams, of which each has four barriers", self.teams, "1 .. 3")
        check(
            self.producer_warps % crews == 0,
            name,
            "producers, in whole teams",
            self.producer_warps,
            crews,
        )
        check(1 <= self.prefetch <= 7, name, "prefetch", self.prefetch, "1 .. 7")
        for what, unit in (("bk", max(BLOCK, self.block)), ("bm", 8 * self.warps_m)):
            check(getattr(self, what) % unit == 0, name, f"{unit} divides {what}", unit, what)
        check(self.bn % (16 * self.warps_n) == 0, name, "16 * warps_n divides bn", self.bn, 16)
        self.check_packed()
        a, threads = self.side("a"), self.packed.threads
        check(threads % a.vectors == 0, name, "rows of A at once", threads, a.vectors)
        wide, slim = self.side("b"), self.side("a")
        needed = self.fragment_registers(wide, slim, 2)
        self.check_resources(needed, "accumulators, two fragments, addresses", self.ctas_per_sm)

    # -- derived --------------------------------------------------------------
    @property
    def threads(self) -> int:
        return (self.warps_m * self.warps_n + self.producer_warps) * WARP

    @property
    def index_stages(self) -> int:
        """Stages of indices that a team copies ahead."""
        return self.stages

    @property
    def widened(self) -> int:
        """Widened tiles of B in shared memory: two for each team."""
        return 2 * self.crews

    def side(self, x: str) -> MmaSide:
        """Returns the shared-memory tile of operand "a" or "b". That of B holds the weight after
        the producer warps have widened its 4-bit indices to ``dtype``.
        """
        return MmaSide(copy="vector", wide=x == "b", **self.side_arguments(x, self.packed.threads))

    @property
    def shared_bytes(self) -> int:
        copied = self.side("a").nbytes + self.packed.nbytes
        ring = self.crews * self.stages * copied + self.widened * self.side("b").nbytes
        return max(ring, 4 * self.bm * self.exchange_pitch)
