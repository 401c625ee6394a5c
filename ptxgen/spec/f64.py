"""The f64 family: GEMM kernels of f64 on tensor cores or FMA units, contract fma64.

Both units compute the same chain, ``acc = fma_rn(a[k], b[k], acc)``: FMA units by definition,
tensor cores as measured on sm_90.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ptxgen.expr import Expr, ceil_div, minimum
from ptxgen.numerics.contract import FMA64, Contract, K
from ptxgen.spec.base import ARCHITECTURES, GRID_MAX, WARP, Expect, check
from ptxgen.spec.gemm import CHUNK, CHUNKS, LAYOUTS
from ptxgen.spec.gemm.rasters import Bands, Raster
from ptxgen.spec.gemm.sides import CopiedSide
from ptxgen.spec.gemm.splits import ClusterSums, Meeting
from ptxgen.spec.gemm.staged import StagedSpec
from ptxgen.spec.gemm.sums import SumsSpec

UNITS = ("mma", "fma")
"""Units that multiply: ``mma.sync`` in f64, or the FMA units."""
F64_SPLITS = ("none", "onto", "serial", "cluster", "workspace")

ITEM = 8
"""Bytes of an f64 element."""
VECTOR = 16
"""Bytes of a vector load."""


@dataclass(frozen=True)
class TensorCores:
    """Tensor cores as multipliers: ``mma.sync`` with 16 x 8 outputs and ``mma_k`` k's."""

    mma_k: int

    macros: ClassVar[str] = "f64/unit/mma.cuh.j2"
    words: ClassVar[str] = "tensor cores"
    depths: ClassVar[tuple[int, ...]] = (4, 8, 16)
    lanes: ClassVar[tuple[int, int]] = (8, 4)
    """Lanes of a warp along m and along n."""
    tile: ClassVar[tuple[int, int]] = (16, 16)
    """Granularity of a warp's tile along m and along n."""

    def fetched(self, rows: int, columns: int) -> int:
        """Returns the number of elements of A and B that a thread loads for one instruction's k's,
        if it computes ``rows`` x ``columns`` outputs.
        """
        return (rows + columns // 2) * self.mma_k // 4

    @property
    def opcode(self) -> str:
        """PTX opcode of the multiplication."""
        return f"mma.sync.aligned.m16n8k{self.mma_k}.row.col.f64.f64.f64.f64"


@dataclass(frozen=True)
class FmaUnits:
    """FMA units as multipliers: a warp has ``lanes`` lanes along m and along n."""

    lanes: tuple[int, int]

    macros: ClassVar[str] = "f64/unit/fma.cuh.j2"
    words: ClassVar[str] = "FMA units"
    depths: ClassVar[tuple[int, ...]] = (1,)
    opcode: ClassVar[str] = "fma.rn.f64"

    @property
    def tile(self) -> tuple[int, int]:
        """Granularity of a warp's tile along m and along n: two outputs a lane along each."""
        return 2 * self.lanes[0], 2 * self.lanes[1]

    def fetched(self, rows: int, columns: int) -> int:
        """Returns the number of elements of A and B that a thread loads for one k, if it computes
        ``rows`` x ``columns`` outputs.
        """
        return rows + columns


@dataclass(frozen=True)
class F64Side(CopiedSide):
    """Shared-memory tile of an f64 operand.

    Lanes read 32 bytes of each of four rows together. Byte i of a row is stored at
    ``i ^ (row % 4 * 32)``, so that the four rows are in different banks.
    """

    align: int
    """Alignment of the operand's rows in global memory, in bytes; a thread copies as many at a
    time."""


@dataclass(frozen=True)
class F64Spec(StagedSpec):
    """A GEMM kernel of the f64 family.

    A CTA of ``warps_m`` x ``warps_n`` warps computes ``bm`` x ``bn`` outputs, ``bk`` k's per stage
    of a ring of ``stages``. ``unit``: "mma" (tensor cores) or "fma" (FMA units); ``lanes_m``: lanes
    of a warp along m where the FMA units multiply. ``align_a``, ``align_b``: bytes that the
    operand's rows are aligned to, and copied at a time, 16 or 8.

    ``split``: "none" (one chunk), "onto" (one chunk, whose sums may start from the old values of
    C), "serial" (a CTA computes chunk after chunk and keeps a running total), "cluster" (each of
    the ``cluster`` CTAs of a cluster computes one chunk of the same tile, and adds up its part of
    the rows) or "workspace" (a CTA per tile and chunk writes its partial sums; a reduce kernel adds
    them).

    ``persistent``: CTAs of a bounded grid loop over the tiles, with 64-bit indices. ``mma_k``: k's
    of an instruction of the tensor cores (4, 8 or 16; FMA units: 1), for which operands are loaded
    into registers together; ``prefetch``: instructions whose operands are loaded ahead.
    ``ctas_per_sm``: CTAs that share an SM, which bounds the registers. ``raster``: tile rows of a
    band, which share columns of B in L2.
    """

    layout: str
    bm: int
    bn: int
    bk: int
    warps_m: int
    warps_n: int
    stages: int
    unit: str = "mma"
    lanes_m: int = 8
    align_a: int = 16
    align_b: int = 16
    split: str = "none"
    cluster: int = 1
    persistent: bool = False
    mma_k: int = 8
    prefetch: int = 1
    ctas_per_sm: int = 1
    raster: int = 8
    contract: Contract = FMA64

    family: ClassVar[str] = "f64"
    template: ClassVar[str] = "f64/gemm.cu.j2"
    dtype: ClassVar[str] = "f64"
    first_k: ClassVar[str] = "k0"

    def __post_init__(self) -> None:
        self.check_counts(
            "bm", "bn", "bk", "warps_m", "warps_n", "cluster", "ctas_per_sm", "raster"
        )
        name = self.name
        self.check_choices(
            layout=LAYOUTS,
            unit=UNITS,
            align_a=(ITEM, VECTOR),
            align_b=(ITEM, VECTOR),
            split=F64_SPLITS,
            lanes_m=(4, 8),
        )
        check(self.stages >= 2, name, "stages", self.stages, ">= 2")
        self.check_divides("16 divides bk", 16, self.bk)
        depths = self.arithmetic.depths
        check(self.mma_k in depths, name, "mma_k", self.mma_k, depths)
        check(0 <= self.prefetch <= 3, name, "prefetch", self.prefetch, "0 .. 3")
        self.check_divides(
            "k's that fit into registers divide bk", self.mma_k * self.buffers, self.bk
        )
        self.check_tiles(*self.arithmetic.tile)
        clustered = self.split == "cluster"
        check(clustered == (self.cluster > 1), name, "cluster, split", self.cluster, self.split)
        units = ("mma",) if clustered else UNITS
        check(self.unit in units, name, "what multiplies in clusters", self.unit, units)
        check(self.cluster <= 8, name, "CTAs of a cluster", self.cluster, "<= 8")
        self.check_divides("cluster divides bm", self.cluster, self.bm)
        walks = not self.persistent or self.split in ("none", "onto", "serial")
        check(walks, name, "split of a persistent kernel", self.split, "none, onto, serial")
        self.check_threads()
        for x in ("a", "b"):
            self.side(x).check(name, x)
        outputs = self.rows * self.columns * (2 if self.split == "serial" else 1)
        fetched = self.arithmetic.fetched(self.rows, self.columns)
        needed = 2 * (outputs + self.buffers * fetched)
        self.check_resources(needed, "accumulators, fragments, addresses", self.ctas_per_sm)

    @property
    def min_arch(self) -> str:
        return "sm_90" if self.unit == "mma" else "sm_80"

    def runs_on(self, arch: str) -> bool:
        """Returns whether ``arch`` runs the kernel: tensor cores only on sm_90, where their bits
        were measured.
        """
        if self.unit == "mma":
            return ARCHITECTURES[arch].compute == ARCHITECTURES[self.min_arch].compute
        return super().runs_on(arch)

    # -- derived --------------------------------------------------------------
    @property
    def arithmetic(self) -> TensorCores | FmaUnits:
        """Unit that multiplies, with its shapes."""
        lanes = (self.lanes_m, self.lanes_n)
        return TensorCores(self.mma_k) if self.unit == "mma" else FmaUnits(lanes)

    @property
    def threads(self) -> int:
        return self.warps_m * self.warps_n * WARP

    @property
    def lanes_n(self) -> int:
        """Lanes of a warp along n, where the FMA units multiply."""
        return WARP // self.lanes_m

    @property
    def rows(self) -> int:
        """Number of rows of the tile in which a thread has outputs."""
        return self.bm // self.warps_m // self.arithmetic.lanes[0]

    @property
    def columns(self) -> int:
        """Number of columns of the tile in which a thread has outputs."""
        return self.bn // self.warps_n // self.arithmetic.lanes[1]

    @property
    def buffers(self) -> int:
        """Register buffers for loaded fragments: a power of two above ``prefetch``."""
        return 1 << self.prefetch.bit_length()

    def side(self, x: str) -> F64Side:
        """Returns the shared-memory tile of operand "a" or "b"."""
        return F64Side(align=self.alignment(x), **self.side_arguments(x, self.threads))

    def alignment(self, x: str) -> int:
        return self.align_a if x == "a" else self.align_b

    @property
    def exchange_pitch(self) -> int:
        """Bytes of a row of the tile that the CTAs of a cluster exchange through shared memory."""
        return self.bn * ITEM + VECTOR

    @property
    def shared_bytes(self) -> int:
        exchange = self.bm * self.exchange_pitch if self.split == "cluster" else 0
        return max(self.stages * self.stage, exchange)

    @property
    def multiplier(self) -> str:
        return f"{self.unit}64"

    @property
    def grid(self) -> Expr:
        if self.persistent:
            return minimum(self.tiles, GRID_MAX)
        return self.tiles * self.cluster if self.split == "cluster" else self.work

    @property
    def expects(self) -> tuple[Expect, ...]:
        return (Expect(self.arithmetic.opcode, ("*mma.*",)), *super().expects)

    @property
    def schedule(self) -> Raster:
        found = super().schedule
        return Bands(self.raster, self.cluster) if isinstance(found, Bands) else found

    @property
    def meeting(self) -> Meeting:
        return ClusterSums(self.cluster) if self.split == "cluster" else super().meeting

    @property
    def own_bounds(self) -> list[tuple[str, Expr]]:
        bounds = super().own_bounds
        if self.split not in ("none", "onto"):
            bounds.append(("k + chunk - 1", K + CHUNK - 1))
        if self.split == "serial":
            steps = CHUNKS * ceil_div(CHUNK, self.bk)
            bounds += [
                ("chunk + BK - 1", CHUNK + self.bk - 1),
                ("begin + chunk", CHUNKS * CHUNK),
                ("step + per_chunk, step + STAGES", steps + ceil_div(CHUNK, self.bk) + self.stages),
            ]
        return bounds

    def describe(self) -> tuple[str, ...]:
        return self.described(
            f"C[M, N] = A . B, layout {self.layout}, f64 on {self.arithmetic.words}; CTA tile "
            f"{self.bm} x {self.bn} x {self.bk}, {self.sizes}",
            f"A by {self.align_a} bytes, B by {self.align_b}; {self.stages} stages, "
            f"split: {self.split}",
        )


@dataclass(frozen=True)
class F64ReduceSpec(SumsSpec):
    """A kernel that adds the f64 partial sums of a split reduction, one output a thread."""

    cta_threads: int = 128
    chunks_in_flight: int = 8
    contract: Contract = FMA64

    template: ClassVar[str] = "f64/reduce.cu.j2"
    dtype: ClassVar[str] = "f64"
    min_arch: ClassVar[str] = "sm_80"
    outputs_per_thread: ClassVar[int] = 1

    @property
    def label(self) -> str:
        return f"f64_{self.cta_threads}"

    @property
    def index_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        last = "blockIdx.x * THREADS + threadIdx.x"
        return self.bounds("next + BATCH", self.chunks_in_flight, last, self.grid * self.threads)
