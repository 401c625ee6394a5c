"""The f64 family: GEMM kernels of f64 on tensor cores or FMA units, contract fma64.

Both units take the same chain, ``acc = fma_rn(a[k], b[k], acc)``: the FMA units by definition, the
tensor cores where that was measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ptxgen.cost.kernel import KernelCost
from ptxgen.expr import Expr, all_of, ceil_div, minimum
from ptxgen.numerics.contract import FMA64, Contract, K, M, N
from ptxgen.spec.abi import Abi
from ptxgen.spec.base import (
    ARCHITECTURES,
    GRID_MAX,
    INDEX_MAX,
    WARP,
    WORKSPACE_MAX,
    Expect,
    KernelSpec,
    check,
)
from ptxgen.spec.gemm import (
    ALIGN_A,
    ALIGN_B,
    CHUNK,
    CHUNKS,
    CONTEXT,
    LAYOUTS,
    MEANINGS,
    PARTIAL_SUMS,
    GemmSpec,
    abi,
    reduction,
)

UNITS = ("mma", "fma")
"""What multiplies: ``mma.sync`` in f64, or the FMA units."""
F64_SPLITS = ("none", "onto", "serial", "cluster", "workspace")

ITEM = 8
"""Bytes of an element."""
VECTOR = 16
"""Bytes of a vector; 32 bytes of each of four rows share no bank."""


@dataclass(frozen=True)
class F64Side:
    """How one operand's tile lies in shared memory.

    The tile keeps the order that it has in memory: ``rows`` rows of ``vectors`` vectors of 16
    bytes, along k or along m or n. Lanes read 32 bytes of each of four rows at once, so that
    byte i of a row lies at i ^ (row % 4 * 32).
    """

    align: int
    """Of its rows in memory, bytes; as many are copied at a time."""
    k_contiguous: bool
    rows: int
    vectors: int
    threads: int
    warp: int
    """Of a warp's tile, along m or n."""

    @property
    def pitch(self) -> int:
        """Bytes of a row."""
        return VECTOR * self.vectors

    @property
    def nbytes(self) -> int:
        """Bytes of a tile."""
        return self.rows * self.pitch

    @property
    def at_once(self) -> int:
        """Rows copied at once, a vector per thread."""
        return self.threads // self.vectors

    @property
    def copies(self) -> int:
        """Vectors that a thread copies of each tile."""
        return self.rows // self.at_once


@dataclass(frozen=True)
class F64Spec(GemmSpec):
    """A GEMM kernel of the f64 family.

    A CTA of ``warps_m`` x ``warps_n`` warps computes ``bm`` x ``bn`` outputs, ``bk`` k's per stage
    of a ring of ``stages``. ``unit``: see UNITS; ``lanes_m``: lanes of a warp along m where the
    FMA units multiply. ``align_a``, ``align_b``: bytes that the operand's rows are aligned to, and
    copied at a time, 16 or 8.

    ``split``: "none" (the plan must give one chunk), "onto" (so, and its chain may begin with what
    C holds), "serial" (a CTA takes all chunks, one after
    another, and keeps a running total), "cluster" (each of the ``cluster`` CTAs of a cluster has
    one chunk of the same tile, and adds up its part of the rows) or "workspace" (a CTA per tile
    and chunk writes its partial sums; a reduce kernel adds them).

    ``persistent``: the grid is bounded and CTAs walk over the tiles with 64-bit indices.
    ``depth``: k's of an instruction of the tensor cores (4, 8 or 16; FMA units: 1), for which
    operands are fetched into registers together; ``ahead``: how many of them are fetched ahead.
    ``ctas_per_sm``: CTAs that share an SM, which bounds the registers.
    ``raster``: tile rows that share columns in L2.
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
    depth: int = 8
    ahead: int = 1
    ctas_per_sm: int = 1
    raster: int = 8
    contract: Contract = FMA64

    family: ClassVar[str] = "f64"
    template: ClassVar[str] = "f64/gemm.cu.j2"
    dtype: ClassVar[str] = "f64"

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
        check(self.bk % 16 == 0, name, "16 divides bk", 16, self.bk)
        legal_depths = (4, 8, 16) if self.unit == "mma" else (1,)
        check(self.depth in legal_depths, name, "depth", self.depth, legal_depths)
        check(0 <= self.ahead <= 3, name, "ahead", self.ahead, "0 .. 3")
        check(
            self.bk % (self.depth * self.buffers) == 0,
            name,
            "k's that fit into registers divide bk",
            self.depth * self.buffers,
            self.bk,
        )
        for o, warps, unit in (
            ("m", self.warps_m, 16 if self.unit == "mma" else self.lanes_m * 2),
            ("n", self.warps_n, 16 if self.unit == "mma" else self.lanes_n * 2),
        ):
            extent = getattr(self, f"b{o}")
            check(
                extent % (warps * unit) == 0,
                name,
                f"warps_{o} x {unit} divides b{o}",
                warps * unit,
                extent,
            )
        clustered = self.split == "cluster"
        check(clustered == (self.cluster > 1), name, "cluster, split", self.cluster, self.split)
        units = ("mma",) if clustered else UNITS
        check(self.unit in units, name, "what multiplies in clusters", self.unit, units)
        check(self.cluster <= 8, name, "CTAs of a cluster", self.cluster, "<= 8")
        check(self.bm % self.cluster == 0, name, "cluster divides bm", self.cluster, self.bm)
        check(
            not self.persistent or self.split in ("none", "onto", "serial"),
            name,
            "split of a persistent kernel",
            self.split,
            "none, onto, serial",
        )
        self.check_threads()
        for x in ("a", "b"):
            side = self.side(x)
            check(
                side.vectors <= side.threads,
                name,
                f"a row of {x} is copied at once: vectors, threads",
                side.vectors,
                side.threads,
            )
            even = side.threads % side.vectors == side.rows % side.at_once == 0
            what = f"rows of {x} copied at once divide a tile's"
            check(even, name, what, side.at_once, side.rows)
        outputs = self.rows * self.columns * (2 if self.split == "serial" else 1)
        fetched = self.rows + self.columns
        if self.unit == "mma":
            fetched = (self.rows + self.columns // 2) * self.depth // 4
        needed = 2 * (outputs + self.buffers * fetched)
        self.check_room(needed, "accumulators, fragments, addresses", self.ctas_per_sm)

    @property
    def min_arch(self) -> str:
        return "sm_90" if self.unit == "mma" else "sm_80"

    def runs_on(self, arch: str) -> bool:
        """Tensor cores only where their bits were measured: on sm_90."""
        if self.unit == "mma":
            return ARCHITECTURES[arch].compute == ARCHITECTURES[self.min_arch].compute
        return super().runs_on(arch)

    # -- derived --------------------------------------------------------------
    @property
    def threads(self) -> int:
        return self.warps_m * self.warps_n * WARP

    @property
    def lanes_n(self) -> int:
        """Lanes of a warp along n where the FMA units multiply."""
        return WARP // self.lanes_m

    @property
    def rows(self) -> int:
        """Rows that a thread has outputs in."""
        return self.bm // self.warps_m // (8 if self.unit == "mma" else self.lanes_m)

    @property
    def columns(self) -> int:
        """Columns that a thread has outputs in."""
        return self.bn // self.warps_n // (4 if self.unit == "mma" else self.lanes_n)

    @property
    def buffers(self) -> int:
        """Fetches that a thread has room for: a power of two above ``ahead``."""
        return 1 << self.ahead.bit_length()

    def side(self, x: str) -> F64Side:
        """The operand "a" or "b"."""
        a = x == "a"
        extent, warps = (self.bm, self.warps_m) if a else (self.bn, self.warps_n)
        k_contiguous = self.layout[0] == "N" if a else self.layout[1] == "T"
        return F64Side(
            align=self.align_a if a else self.align_b,
            k_contiguous=k_contiguous,
            rows=extent if k_contiguous else self.bk,
            vectors=(self.bk if k_contiguous else extent) * ITEM // VECTOR,
            threads=self.threads,
            warp=extent // warps,
        )

    @property
    def stage(self) -> int:
        """Bytes of a stage."""
        return self.side("a").nbytes + self.side("b").nbytes

    @property
    def exchange_pitch(self) -> int:
        """Bytes of a row of the tile in shared memory, where CTAs of a cluster add it up."""
        return self.bn * ITEM + VECTOR

    @property
    def shared_bytes(self) -> int:
        exchange = self.bm * self.exchange_pitch if self.split == "cluster" else 0
        return max(self.stages * self.stage, exchange)

    @property
    def multiplier(self) -> str:
        return f"{self.unit}64"

    @property
    def slots(self) -> int:
        return self.ctas_per_sm

    @property
    def grid(self) -> Expr:
        if self.persistent:
            return minimum(self.tiles, GRID_MAX)
        return self.tiles * self.cluster if self.split == "cluster" else self.work

    @property
    def abi(self) -> Abi:
        return abi("double", "double", "double", batched=self.batched)

    @property
    def expects(self) -> tuple[Expect, ...]:
        if self.unit == "fma":
            return (Expect("fma.rn.f64", ("*mma.*",)), *super().expects)
        shape = f"m16n8k{self.depth}.row.col.f64.f64.f64.f64"
        return (Expect(f"mma.sync.aligned.{shape}", ("*mma.*",)), *super().expects)

    @property
    def requires(self) -> Expr:
        # Every operand is aligned to its elements.
        sides = ((ALIGN_A, self.align_a), (ALIGN_B, self.align_b))
        terms = [align >= VECTOR for align, taken in sides if taken == VECTOR]
        if self.split in ("none", "onto", "cluster"):
            terms.append(CHUNKS <= self.cluster)
        if self.split == "workspace":
            terms.append(self.scratch["workspace"] <= WORKSPACE_MAX)
        if not self.persistent:
            terms.append(self.grid <= GRID_MAX)
        return all_of(terms)

    @property
    def index_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        tiles_m, tiles_n = ceil_div(M, self.bm), ceil_div(N, self.bn)
        bounds = [
            ("m + BM - 1", M + (self.bm - 1)),
            ("n + BN - 1", N + (self.bn - 1)),
            ("m0 + BM", tiles_m * self.bm),
            ("n0 + BN", tiles_n * self.bn),
            ("length + BK - 1", K + (self.bk - 1)),
            ("k0 + k of a copy", K + self.bk),
        ]
        if self.split not in ("none", "onto"):
            bounds.append(("k + chunk - 1", K + CHUNK - 1))
        if self.split == "serial":
            steps = CHUNKS * ceil_div(CHUNK, self.bk)
            bounds += [
                ("chunk + BK - 1", CHUNK + self.bk - 1),
                ("begin + chunk", CHUNKS * CHUNK),
                ("step + per_chunk, step + STAGES", steps + ceil_div(CHUNK, self.bk) + self.stages),
            ]
        if self.split == "workspace":
            bounds += [
                ("tiles_m * tiles_n", self.tiles),
                ("chunk_index * chunk", (CHUNKS - 1) * CHUNK),
            ]
        elif not self.persistent:
            bounds += [("GROUP * tiles_n", tiles_n * self.raster)]
        return tuple((text, value, INDEX_MAX) for text, value in bounds)

    def describe(self) -> tuple[str, ...]:
        unit = "tensor cores" if self.unit == "mma" else "FMA units"
        return (
            f"contract {self.contract.implemented}: {self.contract.step}",
            f"C[M, N] = A . B, layout {self.layout}, f64 on {unit}; CTA tile "
            f"{self.bm} x {self.bn} x {self.bk}, {self.threads} threads, "
            f"{self.shared_bytes} bytes of shared memory",
            f"A by {self.align_a} bytes, B by {self.align_b}; {self.stages} stages, "
            f"split: {self.split}",
            f"requires {self.requires}",
            f"grid {self.grid}",
        )


@dataclass(frozen=True)
class F64ReduceSpec(KernelSpec):
    """Adds the f64 partial sums of a split reduction in ascending order, then the epilogue.

    A thread has one output; the loads of ``batch`` chunks are in flight together. The workspace is
    [CHUNKS][M][N]. From compute capability 9.0 on the kernel waits at its start for the end of the
    one before it, so it may be launched ahead of that end.
    """

    cta_threads: int = 128
    batch: int = 8
    contract: Contract = FMA64

    family: ClassVar[str] = "reduce"
    template: ClassVar[str] = "f64/reduce.cu.j2"
    meanings: ClassVar[Mapping[str, str]] = MEANINGS
    dtype: ClassVar[str] = "f64"
    min_arch: ClassVar[str] = "sm_80"

    def __post_init__(self) -> None:
        whole = self.cta_threads >= WARP and self.cta_threads % WARP == 0
        check(whole, self.name, "whole warps", self.cta_threads, WARP)
        check(self.batch >= 1, self.name, "batch", self.batch, ">= 1")

    @property
    def label(self) -> str:
        return f"f64_{self.cta_threads}"

    @property
    def context(self) -> Mapping[str, Any]:
        return CONTEXT

    @property
    def waits(self) -> bool:
        return True

    @property
    def cost(self) -> KernelCost:
        steps = ceil_div(CHUNKS, self.batch)
        return reduction(self.grid, steps, PARTIAL_SUMS * ITEM, M * N * ITEM, "fma64")

    @property
    def scratch(self) -> Mapping[str, Expr]:
        return {"workspace": PARTIAL_SUMS * ITEM}

    @property
    def abi(self) -> Abi:
        return abi("double", "double", "double")

    @property
    def threads(self) -> int:
        return self.cta_threads

    @property
    def shared_bytes(self) -> int:
        return 0

    @property
    def grid(self) -> Expr:
        return ceil_div(M * N, self.cta_threads)

    @property
    def requires(self) -> Expr:
        return all_of((PARTIAL_SUMS * ITEM <= WORKSPACE_MAX, self.grid <= GRID_MAX))

    @property
    def index_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        return (
            ("k + chunk - 1", K + CHUNK - 1, INDEX_MAX),
            ("next + BATCH", CHUNKS + self.batch, INDEX_MAX),
            ("outputs", M * N, INDEX_MAX),
            ("blockIdx.x * THREADS + threadIdx.x", self.grid * self.threads, INDEX_MAX),
        )

    def describe(self) -> tuple[str, ...]:
        return (
            f"contract {self.contract.implemented}",
            f"CTAs {self.grid} of {self.threads} threads",
        )
