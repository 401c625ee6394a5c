"""Kernel specs: frozen data that names, sizes and bounds one generated kernel.

A spec refuses to exist when it is illegal: every invariant is checked at construction and
the message shows both sides with their numbers. What follows from the fields (threads,
shared memory, grid, workspace, where the kernel is correct) is derived here and nowhere
else; the dispatcher, the prover, the runtime and the templates read it from the spec.

Problem variables, all integers, of the product ``C[M, N] = A[M, K] @ B[K, N]``:

=================  =====================================================================
``M, N, K``        rows, columns, reduction length; 1 .. 2^31 - 1
``CHUNK, CHUNKS``  chunk length of the contract's plan (1 .. K), and ceil(K / CHUNK)
``ALIGN_A/B``      largest of 4, 8, 16 bytes that divides the operand's address and the
                   byte distance of its rows
``SMS``            streaming multiprocessors of the device
=================  =====================================================================
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from ptxgen.contract import FMA, Contract, K, M, N
from ptxgen.errors import SpecError
from ptxgen.expr import Expr, all_of, ceil_div, const, minimum, var

CHUNK, CHUNKS = var("CHUNK"), var("CHUNKS")
ALIGN_A, ALIGN_B = var("ALIGN_A"), var("ALIGN_B")
SMS = var("SMS")

PARTIAL_SUMS = CHUNKS * M * N
"""Elements of the workspace that a split through memory needs, f32."""

DIM_MAX = (1 << 31) - 1
"""Largest M, N or K."""
GRID_MAX = (1 << 31) - 1
"""Largest grid.x (CUDA programming guide, compute capabilities)."""
WORKSPACE_MAX = 1 << 28
"""Cap on the scratch of one launch, bytes."""
INDEX_MAX = (1 << 32) - 1
"""Largest value of the kernels' 32-bit index arithmetic (unsigned)."""

LAYOUTS = ("NN", "NT", "TN", "TT")
SPLITS = ("none", "slices", "workspace")
ORDERS = ("rows", "columns")
"""Serpentine along which a thread walks over its outputs at each k; no bit hangs on it."""
OUTER_COPIES = ("vector", "scalar")
"""How an operand whose outer index (m or n) is contiguous reaches shared memory."""
K_COPIES = ("transpose", "staged", "kvector")
"""How an operand whose reduction index is contiguous reaches shared memory."""
WIDE_COPIES = ("vector", "staged", "kvector")
"""Copies by 16 bytes, which need 16-byte alignment. templates/operand.cuh.j2 explains them all."""
WARP = 32


@dataclass(frozen=True)
class Architecture:
    """Per-architecture limits (CUDA programming guide, technical specifications)."""

    name: str
    compute: int  # compute capability, major * 10 + minor
    shared_per_cta: int  # bytes a CTA may have with the opt-in limit
    shared_per_sm: int
    registers_per_sm: int = 65536
    registers_per_thread: int = 255
    threads_per_cta: int = 1024


ARCHITECTURES = {
    a.name: a
    for a in (
        Architecture("sm_80", 80, 163 << 10, 164 << 10),
        Architecture("sm_86", 86, 99 << 10, 100 << 10),
        Architecture("sm_89", 89, 99 << 10, 100 << 10),
        Architecture("sm_90", 90, 227 << 10, 228 << 10),
        Architecture("sm_120", 120, 99 << 10, 100 << 10),
    )
}


def check(holds: bool, name: str, what: str, left: object, right: object) -> None:
    """Raises SpecError with both sides of a failed invariant."""
    if not holds:
        raise SpecError(f"{name}: {what}: {left} vs {right}")


@dataclass(frozen=True)
class KernelSpec(ABC):
    """What every generated kernel has, whatever its family."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Content-derived name, also the kernel's symbol."""

    family: ClassVar[str]
    template: ClassVar[str]  # file name

    @property
    @abstractmethod
    def min_arch(self) -> str:
        """The oldest architecture that runs it, a key of ARCHITECTURES."""

    @property
    @abstractmethod
    def threads(self) -> int:
        """Threads per CTA."""

    @property
    @abstractmethod
    def shared_bytes(self) -> int:
        """Dynamic shared memory per CTA, bytes."""

    @property
    @abstractmethod
    def grid(self) -> Expr:
        """CTAs (grid.x)."""

    @property
    def workspace(self) -> Expr:
        """Scratch, bytes (partial sums for a following reduce kernel)."""
        return const(0)

    @property
    @abstractmethod
    def requires(self) -> Expr:
        """Where the kernel is correct."""

    @property
    def index_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        """The 32-bit quantities that the kernel computes: (as in its source, largest value, limit).

        Proved to hold wherever ``requires`` does; offsets into operands are 64-bit.
        """
        return ()

    def runs_on(self, arch: str) -> bool:
        """Whether the kernel fits the architecture ``arch`` (a key of ARCHITECTURES)."""
        return (
            ARCHITECTURES[arch].compute >= ARCHITECTURES[self.min_arch].compute
            and self.shared_bytes <= ARCHITECTURES[arch].shared_per_cta
        )

    @abstractmethod
    def describe(self) -> tuple[str, ...]:
        """The header lines of the generated source."""

    def canonical(self) -> str:
        """Canonical serialisation: sorted JSON of the class and all fields."""
        fields: dict[str, Any] = asdict(self)
        fields["kind"] = type(self).__name__
        return json.dumps(fields, sort_keys=True, separators=(",", ":"), default=str)


@dataclass(frozen=True)
class TileSpec(KernelSpec):
    """A GEMM kernel of the simt family.

    A CTA computes ``bm`` x ``bn`` outputs; a thread ``tm`` x ``tn``; a warp's lanes form a
    ``lanes_m`` x ``lanes_n`` grid; a CTA has ``warps_m`` x ``warps_n`` warps, or ``slices``
    times one warp (or part of one), which share the chunks of a split reduction: they never
    wait for one another before the epilogue.

    ``split``: "none" (the plan must give one chunk), "slices" (any plan; partial sums are
    added in ascending order through shared memory) or "workspace" (a CTA per tile and chunk
    writes its partial sums; a reduce kernel adds them).
    ``copy_a``, ``copy_b``: how the operands reach shared memory (OUTER_COPIES, K_COPIES).
    ``lanes``: lanes of a warp that a slice takes; less than 32 puts several slices in a warp.
    ``ctas_per_sm``: CTAs that share an SM, which bounds the registers. ``raster``: tile rows
    that share columns in L2. ``persistent``: the grid is bounded and CTAs walk over the tiles
    with 64-bit indices.
    """

    layout: str
    bm: int
    bn: int
    bk: int
    tm: int
    tn: int
    lanes_m: int
    warps_m: int
    warps_n: int
    stages: int
    copy_a: str
    copy_b: str
    slices: int = 1
    split: str = "none"
    persistent: bool = False
    ctas_per_sm: int = 1
    raster: int = 8
    lanes: int = WARP
    order: str = "rows"
    dtype: str = "f32"
    min_arch: str = "sm_80"
    contract: Contract = FMA

    family: ClassVar[str] = "simt"
    template: ClassVar[str] = "simt_gemm.cu.j2"

    def __post_init__(self) -> None:
        for what in ("bm", "bn", "bk", "tm", "tn", "lanes_m", "warps_m", "warps_n", "slices"):
            check(getattr(self, what) >= 1, type(self).__name__, what, getattr(self, what), ">= 1")
        name = self.name
        for what in ("ctas_per_sm", "raster"):
            check(getattr(self, what) >= 1, name, what, getattr(self, what), ">= 1")
        check(self.order in ORDERS, name, "order", self.order, ORDERS)
        check(self.min_arch in ARCHITECTURES, name, "min_arch", self.min_arch, [*ARCHITECTURES])
        check(self.layout in LAYOUTS, name, "layout", self.layout, LAYOUTS)
        check(self.split in SPLITS, name, "split", self.split, SPLITS)
        check(
            self.lanes == WARP or (self.lanes in (8, 16) and self.warps_m * self.warps_n == 1),
            name,
            "lanes is a warp, or 8 or 16 with one (part of a) warp per slice",
            self.lanes,
            self.warps_m * self.warps_n,
        )
        check(
            self.lanes % self.lanes_m == 0, name, "lanes_m divides lanes", self.lanes_m, self.lanes
        )
        check(self.threads % WARP == 0, name, "whole warps", self.threads, WARP)
        rows = self.warps_m * self.lanes_m * self.tm
        cols = self.warps_n * self.lanes_n * self.tn
        check(rows == self.bm, name, "warps_m * lanes_m * tm = bm", rows, self.bm)
        check(cols == self.bn, name, "warps_n * lanes_n * tn = bn", cols, self.bn)
        for side, t in (("tm", self.tm), ("tn", self.tn)):
            check(t in (1, 2) or t % 4 == 0, name, f"{side} is 1, 2 or a multiple of 4", t, 4)
        for side, copy, k_contiguous, extent in (
            ("a", self.copy_a, self.layout[0] == "N", self.bm),
            ("b", self.copy_b, self.layout[1] == "T", self.bn),
        ):
            legal = K_COPIES if k_contiguous else OUTER_COPIES
            check(copy in legal, name, f"copy_{side} in layout {self.layout}", copy, legal)
            if not k_contiguous:
                width = 4 if copy == "vector" else 1
                check(extent % width == 0, name, f"copy width divides b{side}", width, extent)
                per_k = extent // width
                check(
                    per_k % self.slice_threads == 0 or self.slice_threads % per_k == 0,
                    name,
                    f"copies of {side} per k and slice threads divide one another",
                    per_k,
                    self.slice_threads,
                )
                continue
            k_lanes = 8 if copy == "transpose" else self.bk // 4
            check(self.bk % 8 == 0, name, "bk is a multiple of 8 (k-contiguous)", self.bk, 8)
            check(
                self.slice_threads % k_lanes == 0,
                name,
                f"lanes along k of {side} divide the slice",
                k_lanes,
                self.slice_threads,
            )
            at_once = self.slice_threads // k_lanes
            check(
                extent % at_once == 0 or extent < at_once,
                name,
                f"rows of {side} copied at once divide the tile",
                at_once,
                extent,
            )
        check(self.stages >= 2, name, "stages", self.stages, ">= 2")
        check(
            self.slices == 1 or self.split == "slices",
            name,
            "slices need split='slices'",
            self.slices,
            self.split,
        )
        check(
            self.slices == 1 or self.warps_m * self.warps_n == 1,
            name,
            "warps of a slice, where there are several slices",
            self.warps_m * self.warps_n,
            1,
        )
        arch = ARCHITECTURES[self.min_arch]
        check(
            self.threads <= arch.threads_per_cta,
            name,
            "threads",
            self.threads,
            arch.threads_per_cta,
        )
        check(
            self.shared_bytes <= arch.shared_per_cta,
            name,
            f"shared memory on {arch.name}, bytes",
            self.shared_bytes,
            arch.shared_per_cta,
        )
        needed = self.tm * self.tn + 2 * self.k_vector * (self.tm + self.tn) + 16
        available = min(
            arch.registers_per_thread, arch.registers_per_sm // (self.threads * self.ctas_per_sm)
        )
        check(
            needed <= available,
            name,
            "registers per thread (accumulators, two fragments, addresses)",
            needed,
            available,
        )

    # -- identity -------------------------------------------------------------
    @property
    def name(self) -> str:
        parts = [
            f"simt_{self.layout.lower()}_{self.dtype}_{self.bm}x{self.bn}x{self.bk}",
            f"{self.tm}x{self.tn}",
            f"w{self.warps_m}x{self.warps_n}l{self.lanes_m}x{self.lanes_n}",
            f"s{self.stages}",
            self.copy_a[0] + self.copy_b[0],
        ]
        if self.split == "slices":
            parts.append(f"slices{self.slices}")
        elif self.split == "workspace":
            parts.append("partial")
        if self.persistent:
            parts.append("persistent")
        if self.ctas_per_sm != 1:
            parts.append(f"c{self.ctas_per_sm}")
        if self.order != "rows":
            parts.append(self.order)
        if self.raster != 8:
            parts.append(f"r{self.raster}")
        return "_".join(parts)

    # -- derived --------------------------------------------------------------
    @property
    def lanes_n(self) -> int:
        """Lanes of a warp along n."""
        return self.lanes // self.lanes_m

    @property
    def staged(self) -> bool:
        """Whether an operand travels through registers."""
        return "staged" in (self.copy_a, self.copy_b)

    def turned(self, operand: str) -> bool:
        """Whether the rows of operand "a" or "b" are permuted as they are copied.

        This spares staged operands bank conflicts. It pays in slices of one warp with few FMAs.
        """
        copy, extent = (self.copy_a, self.bm) if operand == "a" else (self.copy_b, self.bn)
        conflicts = copy == "staged" and self.bk > 8 and extent % 16 == 0
        return conflicts and self.slice_threads == 32 and self.tm * self.tn <= 32

    @property
    def k_vector(self) -> int:
        """k's that a thread fetches from shared memory at a time."""
        return 4 if "kvector" in (self.copy_a, self.copy_b) else 1

    @property
    def group_m(self) -> int:
        """Neighbouring rows that a thread owns."""
        return 1 if self.copy_a == "kvector" else min(self.tm, 4)

    @property
    def group_n(self) -> int:
        """Neighbouring columns that a thread owns."""
        return 1 if self.copy_b == "kvector" else min(self.tn, 4)

    @property
    def a_pitch(self) -> int:
        """Floats between rows of A's stage."""
        return _pitch(self.bm, self.bk, self.copy_a)

    @property
    def b_pitch(self) -> int:
        """Floats between rows of B's stage."""
        return _pitch(self.bn, self.bk, self.copy_b)

    @property
    def a_stage(self) -> int:
        """Floats of one stage of A."""
        return self.a_pitch * (self.bm if self.copy_a == "kvector" else self.bk)

    @property
    def b_stage(self) -> int:
        """Floats of one stage of B."""
        return self.b_pitch * (self.bn if self.copy_b == "kvector" else self.bk)

    @property
    def slice_threads(self) -> int:
        """Threads of one slice."""
        return self.warps_m * self.warps_n * self.lanes

    @property
    def threads(self) -> int:
        return self.slice_threads * self.slices

    @property
    def totals_offset(self) -> int:
        """Floats of shared memory before the running totals of a sliced kernel.

        The ring of stages, which the epilogue's exchange buffer reuses.
        """
        ring = self.slices * self.stages * (self.a_stage + self.b_stage)
        stripe = self.warps_m * self.lanes_m * self.group_m
        return max(ring, self.slices * stripe * (self.bn + 4))

    @property
    def shared_bytes(self) -> int:
        totals = self.bm * self.bn if self.split == "slices" else 0
        return 4 * (self.totals_offset + totals)

    @property
    def tiles(self) -> Expr:
        """Output tiles."""
        return ceil_div(M, self.bm) * ceil_div(N, self.bn)

    @property
    def grid(self) -> Expr:
        if self.persistent:
            return minimum(self.tiles, GRID_MAX)
        return self.tiles * CHUNKS if self.split == "workspace" else self.tiles

    @property
    def workspace(self) -> Expr:
        return PARTIAL_SUMS * 4 if self.split == "workspace" else const(0)

    @property
    def requires(self) -> Expr:
        terms = []
        for copy, align in ((self.copy_a, ALIGN_A), (self.copy_b, ALIGN_B)):
            if copy in WIDE_COPIES:
                terms.append(align >= 16)
        if self.split == "none":
            terms.append(CHUNKS <= 1)
        if self.split == "workspace":
            terms.append(self.workspace <= WORKSPACE_MAX)
        if not self.persistent:
            terms.append(self.grid <= GRID_MAX)
        return all_of(terms)

    @property
    def index_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        tiles_m, tiles_n = ceil_div(M, self.bm), ceil_div(N, self.bn)
        bounds = [
            ("m + BM - 1", M + (self.bm - 1)),
            ("n + BN - 1", N + (self.bn - 1)),
            ("m0 + row of a copy", tiles_m * self.bm + self.slice_threads),
            ("n0 + column of a copy", tiles_n * self.bn + self.slice_threads),
            ("k + BK - 1", K + (self.bk - 1)),
            ("k_begin + k of a copy", K + self.slice_threads),
        ]
        if self.split == "slices":
            bounds += [
                ("k + chunk - 1", K + CHUNK - 1),
                ("first + SLICES", CHUNKS + self.slices),
                ("(first + slice) * chunk, where slice < active", (CHUNKS - 1) * CHUNK),
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
        return (
            f"contract {self.contract}: {self.contract.step}",
            f"C[M, N] = A . B, layout {self.layout}; CTA tile {self.bm} x {self.bn} x {self.bk}, "
            f"{self.threads} threads, {self.shared_bytes} bytes of shared memory",
            f"A: {self.copy_a}, B: {self.copy_b}; {self.stages} stages, {self.slices} slice(s), "
            f"split: {self.split}",
            f"requires {self.requires}",
            f"grid {self.grid}",
        )


@dataclass(frozen=True)
class ReduceSpec(KernelSpec):
    """Adds the partial sums of a split reduction in ascending order, then the epilogue.

    One thread per output, ``threads`` per CTA, loads of ``batch`` chunks in flight; the
    workspace is [CHUNKS][M][N], f32.
    """

    cta_threads: int = 256
    batch: int = 8
    dtype: str = "f32"
    min_arch: str = "sm_80"
    contract: Contract = FMA

    family: ClassVar[str] = "reduce"
    template: ClassVar[str] = "reduce.cu.j2"

    def __post_init__(self) -> None:
        check(self.cta_threads % WARP == 0, self.name, "whole warps", self.cta_threads, WARP)

    @property
    def name(self) -> str:
        return f"reduce_{self.dtype}_{self.cta_threads}_b{self.batch}"

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
        return all_of((PARTIAL_SUMS * 4 <= WORKSPACE_MAX, self.grid <= GRID_MAX))

    @property
    def index_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        return (
            ("CTA * threads + thread", self.grid * self.threads, INDEX_MAX),
            ("partial sums", PARTIAL_SUMS, INDEX_MAX),
        )

    def describe(self) -> tuple[str, ...]:
        return (f"contract {self.contract}", f"CTAs {self.grid} of {self.threads} threads")


def _pitch(extent: int, bk: int, copy: str) -> int:
    """Floats between rows of a stage.

    Transposing copies store 8 consecutive k x 4 consecutive outer indices per warp:
    conflict-free when the pitch is 4 modulo 8 (or the tile has one or two rows).
    In kvector mode, lanes read 16 bytes of consecutive rows: conflict-free when the pitch
    is an odd number of 16-byte units.
    """
    if copy == "kvector":
        return bk + 4
    if copy in OUTER_COPIES or extent <= 2:
        return extent
    return extent + (4 - extent) % 8


@dataclass(frozen=True)
class Route:
    """One entry of a route table: the kernels to launch, in order, and when.

    ``kernels`` is a GEMM kernel, followed by a reduce kernel if the first writes partial sums.
    ``prefer`` says where this route is the fastest choice, as measured; ``reason`` says so
    for people. The first route of a table whose ``requires`` and ``prefer`` hold is taken.
    """

    kernels: tuple[KernelSpec, ...]
    prefer: Expr
    reason: str

    def __post_init__(self) -> None:
        check(len(self.kernels) in (1, 2), "Route", "launches", len(self.kernels), "1 or 2")
        check(self.prefer.boolean, self.name, "prefer is a predicate", self.prefer, "boolean")

    @property
    def name(self) -> str:
        """The first kernel's name."""
        return self.kernels[0].name

    @property
    def requires(self) -> Expr:
        """Where all kernels of the route are correct."""
        return all_of(kernel.requires for kernel in self.kernels)

    @property
    def workspace(self) -> Expr:
        """Scratch that the route needs, bytes."""
        return self.kernels[0].workspace
