"""The wgmma family: GEMM kernels on Hopper's tensor cores, whose operands TMA loads."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from ptxgen.expr import TRUE, Expr, all_of, ceil_div, minimum
from ptxgen.numerics import vocab_segments
from ptxgen.numerics.contract import ITEMSIZE, TC16, TIERS, Contract, K, M, N
from ptxgen.numerics.vocab_segments import FLCE, SEGMENT
from ptxgen.spec import formula as cuda
from ptxgen.spec.abi import Abi, Param, ptr
from ptxgen.spec.base import ARCHITECTURES, INDEX_MAX, WARP, WARPGROUP, WORKSPACE_MAX, Expect, check
from ptxgen.spec.epilogue import Epilogue
from ptxgen.spec.gemm import ALIGN_A, ALIGN_B, CHUNK, CHUNKS, LAYOUTS, SMS, GemmSpec, abi, matrix
from ptxgen.spec.gemm.loads import Load, Tma
from ptxgen.spec.gemm.parts import Parts
from ptxgen.spec.gemm.schedules import Batch, Chunks, Schedule
from ptxgen.spec.gemm.splits import Serial, Split, Unsplit
from ptxgen.spec.gemm.stores import (
    PartialSums,
    Rows,
    Segments,
    Store,
    Transposed,
    TransposedSums,
)
from ptxgen.spec.vocab_segments import WIDE_TARGET, logit_context, softcap_params

SWIZZLES = {64: 128, 32: 64, 16: 32}
"""Swizzle in bytes, by the number of 16-bit elements in a row of a panel."""
PANEL = 128
"""Bytes in a row of a panel, for operands that are contiguous along the reduction."""
ATOM = 8
"""Rows after which the swizzle pattern repeats."""
SPLITS = ("none", "serial", "workspace")
STEP = 16
"""Length along k of one wgmma instruction, for 16-bit operands."""
FRAGMENT = 64
"""Rows of a wgmma instruction."""
SWAPPED_SPLIT_K_MAX_ROWS = 512
"""Most rows (M) that split-K kernels with swapped operands serve. More were not measured."""
OVERLAP_BELOW = 128 * 256
"""Outputs of a tile (bm * bn) below which the last tile of rows may overlap the one before it. From
here on products take longer than TMA's loads of rows outside of A, which overlapping avoids."""
COORDINATE_MAX = (1 << 31) - 1
"""Largest coordinate of a tensor map: coordinates are signed 32-bit integers."""


@dataclass(frozen=True)
class Instruction:
    """Shape and types of a wgmma instruction: m64, n = ``columns``, operands of ``dtype``.

    ``held``: whether A is in registers, not in shared memory. ``transposed``: whether A and B are
    not contiguous along the reduction (MN-major), which only 16-bit operands may be.
    """

    columns: int
    dtype: str
    held: bool = False
    transposed: tuple[bool, bool] = (False, False)

    @property
    def narrow(self) -> bool:
        """Whether operands are 8-bit integers."""
        return self.dtype in ("s8", "u8")

    def __str__(self) -> str:
        steps, sums = (2 * STEP, "s32") if self.narrow else (STEP, "f32")
        return f"m64n{self.columns}k{steps}.{sums}.{self.dtype}.{self.dtype}"

    @property
    def accumulators(self) -> int:
        """Accumulator registers of a thread."""
        return self.columns // 2

    @property
    def ctype(self) -> str:
        """C++ type of the accumulators."""
        return "int" if self.narrow else "float"

    @property
    def letter(self) -> str:
        """Constraint letter of the accumulators in inline assembly."""
        return "r" if self.narrow else "f"

    @property
    def modes(self) -> str:
        """Last immediates of the instruction: no negation, and whether each shared-memory operand
        is transposed.
        """
        flags = self.transposed[self.held :]
        return "" if self.narrow else ", 1, 1" + "".join(f", {flag:d}" for flag in flags)


class Panels:
    """Shared-memory tile of ``panels`` panels side by side, each of ``rows`` rows of ``swizzle``
    bytes.
    """

    if TYPE_CHECKING:

        @property
        def width(self) -> int: ...
        @property
        def rows(self) -> int: ...
        @property
        def panels(self) -> int: ...
        @property
        def swizzle(self) -> int: ...
        @property
        def share(self) -> int: ...

    @property
    def panel_bytes(self) -> int:
        """Bytes of one panel."""
        return self.rows * self.swizzle

    @property
    def bytes(self) -> int:
        """Bytes of the tile."""
        return self.panels * self.panel_bytes

    @property
    def whole_panels(self) -> bool:
        """Whether each of the CTAs that share a tile loads whole panels, not rows of every
        panel.
        """
        return self.panels % self.share == 0

    @property
    def boxes(self) -> int:
        """TMA boxes that a CTA loads for a tile."""
        return self.panels // self.share if self.whole_panels else self.panels

    @property
    def box_rows(self) -> int:
        """Rows of a TMA box."""
        return self.rows if self.whole_panels else self.rows // self.share

    @property
    def box(self) -> tuple[int, int]:
        """Box of the tensor map: elements along a row, and rows."""
        return self.width, self.box_rows


@dataclass(frozen=True)
class Operand(Panels):
    """Layout of a tile of A or B in shared memory, and the TMA boxes that load it.

    A tile has ``bk`` k's and is a row of panels. A panel has ``rows`` rows of ``width`` elements,
    swizzled over a row. If the operand is contiguous along the reduction (``k_major``), panels
    follow each other along k and have a row for each outer index. Else they follow each other along
    m or n and have a row for each k. ``share`` CTAs of a cluster use the same tile: each loads
    ``panels / share`` whole panels if they divide evenly, else ``rows / share`` rows of every
    panel, and multicasts them.
    """

    name: str
    k_major: bool
    extent: int
    """Extent of the tile along m or n."""
    bk: int
    share: int
    itemsize: int = 2
    """Bytes of an element; must be 2 unless the operand is contiguous along the reduction."""

    @property
    def width(self) -> int:
        """Elements in a row of a panel."""
        if self.k_major:
            return PANEL // self.itemsize
        return next((w for w in SWIZZLES if w <= self.extent), min(SWIZZLES))

    @property
    def rows(self) -> int:
        """Rows of a panel."""
        return self.extent if self.k_major else self.bk

    @property
    def panels(self) -> int:
        """Panels of a tile."""
        return self.bk // self.width if self.k_major else -(-self.extent // self.width)

    @property
    def swizzle(self) -> int:
        """Width of the swizzle pattern, in bytes."""
        return PANEL if self.k_major else SWIZZLES[self.width]

    @property
    def rows64_bytes(self) -> int:
        """Bytes from one block of 64 rows of A to the next."""
        return 64 * self.swizzle if self.k_major else self.panel_bytes

    # -- fields of shared-memory matrix descriptors (PTX ISA, wgmma) ------------------------
    @property
    def leading(self) -> int:
        """Leading byte offset: bytes from a panel to the next along m or n; ignored where k is
        contiguous.
        """
        return 16 if self.k_major else self.panel_bytes

    @property
    def stride(self) -> int:
        """Stride byte offset: bytes from eight rows to the next eight."""
        return ATOM * self.swizzle

    @property
    def step(self) -> int:
        """Bytes, inside a panel, from the k's of one instruction to those of the next."""
        return 2 * STEP if self.k_major else STEP * self.swizzle

    @property
    def descriptor(self) -> int:
        """Constant part of the shared-memory matrix descriptor."""
        mode = {128: 1, 64: 2, 32: 3}[self.swizzle]
        return (self.leading >> 4) << 16 | (self.stride >> 4) << 32 | mode << 62


@dataclass(frozen=True)
class Packed(Panels):
    """Layout of a tile of packed 4-bit B in shared memory, as in :class:`Operand`.

    It has ``panels`` panels of ``rows`` rows of 64 bytes, contiguous along k (``k_major``) or along
    n.
    """

    k_major: bool
    rows: int
    panels: int

    name: ClassVar[str] = "b"
    share: ClassVar[int] = 1
    width: ClassVar[int] = 64
    swizzle: ClassVar[int] = 64


class Ring:
    """Base of the warp-specialised kernels: a producer loads ``stages`` stages into a ring,
    ``consumers`` warpgroups multiply them to tiles of ``bm`` x ``bn`` outputs. ``ctas_per_sm``:
    CTAs that share an SM; ``registers``: registers of a consumer thread after ``setmaxnreg``, 0
    without.
    """

    bm: int
    bn: int
    consumers: int
    stages: int
    ctas_per_sm: int
    registers: int
    min_arch: str

    max_arch: ClassVar[str] = "sm_90"

    if TYPE_CHECKING:

        @property
        def name(self) -> str: ...
        @property
        def cluster_m(self) -> int: ...
        @property
        def cluster_n(self) -> int: ...
        @property
        def a(self) -> Operand: ...
        @property
        def b(self) -> Operand | Packed: ...
        @property
        def exchange_bytes(self) -> int: ...

    def check_ring(self, accumulators: int, totals: int = 0) -> None:
        """Raises SpecError for a kernel whose tiles, shared memory or registers exceed the limits.
        A thread needs ``accumulators`` registers for sums and, while it multiplies, ``totals``
        more.
        """
        name = self.name
        check(self.stages >= 2, name, "stages", self.stages, ">= 2")
        check(self.consumers <= 3, name, "consumers", self.consumers, "<= 3")
        rows, (which, outer) = 64 * self.consumers, self.divided
        check(outer % rows == 0, name, f"64 * consumers divides {which}", rows, outer)
        check(self.ctas <= 8, name, "CTAs of a cluster (portable)", self.ctas, 8)
        for operand in (self.a, self.b):
            whole = operand.whole_panels or operand.rows % operand.share == 0
            what = f"CTAs that share {operand.name} divide its rows"
            check(whole, name, what, operand.share, operand.rows)
            rows = operand.box_rows
            what = f"rows of a box of {operand.name}: multiple of 8 up to 256"
            check(rows % ATOM == 0 and rows <= 256, name, what, rows, 256)
        arch, used = ARCHITECTURES[self.min_arch], self.shared_bytes
        shared = arch.shared_for(self.slots)
        check(used <= shared, name, f"shared memory on {arch.name}, bytes", used, shared)
        needed = accumulators + max(48, totals + 16)  # 48: addresses of the epilogue
        free = self.registers or self.launch_registers
        check(needed <= free, name, "registers per thread (accumulators, addresses)", needed, free)
        if self.registers:
            legal = self.registers % 8 == 0 and self.registers <= 240
            what = "registers is a multiple of 8 up to 240"
            check(legal, name, what, self.registers, 240)
            kept = self.producer_registers
            check(kept >= 24, name, "registers that the producer keeps", kept, ">= 24")

    @property
    def barriers_offset(self) -> int:
        """Byte offset of the mbarriers in shared memory, after the ring and the warps' exchange
        buffers.
        """
        ring = self.stages * self.stage_bytes
        return ring + self.consumers * 4 * self.exchange_bytes

    @property
    def shared_bytes(self) -> int:
        return self.barriers_offset + 2 * 8 * self.stages

    @property
    def divided(self) -> tuple[str, int]:
        """Name and extent of the side of the output tile ("bm" or "bn") that consumer warpgroups
        divide.
        """
        return "bm", self.bm

    @property
    def slots(self) -> int:
        return self.ctas_per_sm

    @property
    def ctas(self) -> int:
        """Number of CTAs in a cluster."""
        return self.cluster_m * self.cluster_n

    @property
    def fragments(self) -> int:
        """Fragments of 64 rows of a consumer warpgroup."""
        return self.divided[1] // (64 * self.consumers)

    @property
    def threads(self) -> int:
        return self.consumers * WARPGROUP + (WARPGROUP if self.registers else WARP)

    @property
    def launch_registers(self) -> int:
        """Registers of each thread at launch: an equal share of the SM's registers, where the CTA
        counts as whole warpgroups.
        """
        arch = ARCHITECTURES[self.min_arch]
        threads = -(-self.threads // WARPGROUP) * WARPGROUP * self.slots
        fit = arch.registers_per_sm // threads // 8 * 8
        return min(fit, arch.registers_per_thread)

    @property
    def producer_registers(self) -> int:
        """Registers that a producer thread keeps after ``setmaxnreg``."""
        held = (self.consumers + 1) * self.launch_registers
        return min(40, held - self.consumers * self.registers)

    @property
    def stage_bytes(self) -> int:
        """Bytes of a stage of the ring: a tile of A and one of B."""
        return self.a.bytes + self.b.bytes

    @property
    def overlapping_rows(self) -> bool:
        """Whether a tile that has more rows outside of A than inside ends at the last row instead,
        and overlaps the tile before it. TMA takes longer for rows outside than for rows inside.
        """
        return False

    @property
    def resident_clusters(self) -> Expr:
        """Clusters that are resident on the GPU at a time."""
        ctas = SMS if self.slots == 1 else SMS * self.slots
        return ctas if self.ctas == 1 else ctas // self.ctas


@dataclass(frozen=True)
class WgmmaSpec(Ring, GemmSpec):
    """A GEMM kernel of the wgmma family.

    A CTA computes ``bm`` x ``bn`` outputs with ``consumers`` warpgroups, stacked along m, and a
    producer warp that fills a ring of ``stages`` stages of ``bk`` k's by TMA. A cluster of
    ``cluster_m`` x ``cluster_n`` CTAs shares its loads by multicast: CTAs along m share tiles of B,
    CTAs along n tiles of A. The grid is persistent: clusters loop over the tiles, in bands of
    ``raster`` rows of (clusters') tiles.

    ``split``: "none" (one chunk), "serial" (a CTA computes chunk after chunk and adds each to a
    second set of sums) or "workspace" (a work item is one chunk of a tile; a reduce kernel adds the
    partial sums). ``ctas_per_sm``: CTAs that share an SM, which bounds registers and shared memory.
    ``spilled_sums``: sums of each fragment's second set that a thread keeps in shared memory, to
    save registers. ``registers``: registers of a consumer thread after ``setmaxnreg``; the producer
    is then a whole warpgroup that gives up its own. 0: no reallocation. ``whole_rows``: whether the
    kernel requires that M is a multiple of ``bm``. TMA boxes of A that reach past the last row take
    longer; a kernel without them has constants of its own for its predicted time.
    """

    layout: str
    bm: int
    bn: int
    bk: int
    consumers: int
    stages: int
    cluster_m: int = 1
    cluster_n: int = 1
    raster: int = 8
    split: str = "none"
    ctas_per_sm: int = 1
    registers: int = 0
    dtype: str = "bf16"
    min_arch: str = "sm_90"
    contract: Contract = TC16
    spilled_sums: int | None = None
    whole_rows: bool | None = None

    family: ClassVar[str] = "wgmma"
    template: ClassVar[str] = "wgmma/gemm.cu.j2"
    splits: ClassVar[tuple[str, ...]] = SPLITS
    in_pieces: ClassVar[bool] = True
    early_loads: ClassVar[int | None] = 400 << 20  # neighbouring SMs share L2 responses

    def __post_init__(self) -> None:
        self.check_counts("bm", "bn", "bk", "consumers", "cluster_m", "cluster_n", "raster")
        self.check_counts("ctas_per_sm")
        self.check_choices(layout=LAYOUTS, dtype=TIERS["tc"], split=self.splits)
        name = self.name
        check(self.min_arch == "sm_90", name, "min_arch", self.min_arch, "sm_90")
        self.check_columns()
        unit = PANEL // 2 if "N" in self.layout[0] or "T" in self.layout[1] else STEP
        check(self.bk % unit == 0, name, f"bk is a multiple of {unit}", self.bk, unit)
        self.parts.check(self)
        self.check_ring(self.accumulators, self.totals)

    def check_columns(self) -> None:
        """Raises SpecError unless ``bn`` can be the columns of a wgmma instruction."""
        what = "bn is a multiple of 16 up to 256"
        check(self.bn % 16 == 0 and self.bn <= 256, self.name, what, self.bn, 256)

    def takes(self, dtype: Hashable) -> bool:
        """Returns whether :meth:`of` has a kernel for ``dtype``. Only kernels that store partial
        sums accept an :class:`Epilogue`: the kernel that adds these applies its formula.
        """
        return self.split == "workspace" or not isinstance(dtype, Epilogue)

    # -- parts ----------------------------------------------------------------
    @cached_property
    def parts(self) -> Parts:
        """Schedule, load, split and store of the kernel."""
        split: Split = Serial(self.spilled_sums or 0) if self.split == "serial" else Unsplit()
        return Parts(self.schedule, self.load, split, self.store)

    @property
    def schedule(self) -> Schedule:
        """Schedule of the kernel: the order of its work items."""
        return Chunks() if self.split == "workspace" else Batch()

    @property
    def load(self) -> Load:
        """Load of the kernel, which fills stages."""
        return Tma()

    @property
    def store(self) -> Store:
        """Store of the kernel, which writes tiles."""
        return PartialSums() if self.split == "workspace" else Rows("batch", accumulates=True)

    # -- derived --------------------------------------------------------------
    @property
    def ctas(self) -> int:
        return self.cluster_m * self.cluster_n

    @property
    def a(self) -> Operand:
        """Shared-memory tile of A."""
        return Operand("a", self.layout[0] == "N", self.bm, self.bk, self.cluster_n)

    @property
    def b(self) -> Operand:
        """Shared-memory tile of B."""
        return Operand("b", self.layout[1] == "T", self.bn, self.bk, self.cluster_m)

    @property
    def overlapping_rows(self) -> bool:
        loaded = self.a.k_major and isinstance(self.load, Tma) and self.schedule.rows == "m"
        return loaded and self.bm * self.bn < OVERLAP_BELOW

    @property
    def first(self) -> Operand:
        """Tile whose rows are the 64 rows of the wgmma instruction, its first operand."""
        return self.a

    @property
    def second(self) -> Operand:
        """Tile whose rows are the columns of the wgmma instruction, its second operand."""
        return self.b

    @property
    def instruction(self) -> Instruction:
        """Shape and types of the wgmma instruction."""
        transposed = (not self.first.k_major, not self.second.k_major)
        return Instruction(self.second.extent, self.dtype, False, transposed)

    @property
    def multiplier(self) -> str:
        return "wgmma"

    @property
    def accumulators(self) -> int:
        """Accumulator registers of a consumer thread."""
        return self.fragments * self.instruction.accumulators

    @property
    def totals(self) -> int:
        """Registers of a consumer thread for totals over chunks."""
        held = self.fragments * (self.spilled_sums or 0)
        return self.accumulators - held if self.split == "serial" else 0

    @property
    def prefetch(self) -> int:
        """Number of steps, 0 to 2 as registers allow, by which the store loads old values of C
        ahead of their use.
        """
        return max(0, min(2, (self.registers - self.accumulators - 72) // 16))

    @property
    def exchange_bytes(self) -> int:
        """Bytes of a consumer warp's exchange buffer, through which it stores outputs by rows.

        It holds 16 rows of 32 f32 or 64 16-bit outputs at a time, and overlays the warp's spilled
        totals.
        """
        return max(16 * max(self.pitch16, self.pitch32), self.spilled_bytes)

    @property
    def spilled_bytes(self) -> int:
        """Shared memory of a consumer warp, in bytes, for totals over chunks that registers cannot
        hold.
        """
        return WARP * 4 * self.fragments * (self.spilled_sums or 0)

    @property
    def pitch16(self) -> int:
        """Bytes of a row of 64 16-bit outputs in the exchange buffer: an odd number of 16-byte
        units, against bank conflicts.
        """
        return 2 * 64 + 16

    @property
    def pitch32(self) -> int:
        """Bytes of a row of 32 f32 outputs in the exchange buffer: 8 words modulo 32, against bank
        conflicts.
        """
        return 4 * (32 + 8)

    @property
    def tiles(self) -> Expr:
        """Number of tiles of clusters; a cluster computes ``ctas`` output tiles at a time."""
        return ceil_div(M, self.bm * self.cluster_m) * ceil_div(N, self.bn * self.cluster_n)

    @property
    def shared_by(self) -> tuple[int, int]:
        return self.cluster_m, self.cluster_n

    @property
    def grid(self) -> Expr:
        return minimum(self.work, self.resident_clusters) * self.ctas

    def launched(
        self, ctas: int, batch: tuple[int, int], environment: Mapping[str, int]
    ) -> tuple[int, int, int]:
        """Returns the launch grid of a batch: as many clusters as fit the GPU, which loop over the
        tiles of all matrices.
        """
        if self.split == "workspace":
            return super().launched(ctas, batch, environment)
        work: int = self.work.evaluate(environment) * batch[0] * batch[1]
        clusters: int = self.resident_clusters.evaluate(environment)
        check(work + clusters <= INDEX_MAX, self.name, "work + clusters", work, INDEX_MAX)
        return min(work, clusters) * self.ctas, 1, 1

    @cached_property
    def abi(self) -> Abi:
        maps = tuple(
            matrix(
                x.name,
                self.layout,
                x.box,
                ITEMSIZE[self.dtype],
                x.swizzle,
                batched=self.batched,
            )
            for x in (self.a, self.b)
        )
        counts = (Param("inner", "u32"), Param("batch", "u32")) if self.batched else ()
        more = (*counts, *maps)
        return abi(self.dtype, more, batched=self.batched, aliased=True)

    def rows_from(self, least: int) -> int:
        return least + -least % self.bm if self.whole_rows else least

    @property
    def requires(self) -> Expr:
        terms = [
            ALIGN_A >= self.load.align_a(ITEMSIZE[self.dtype]),
            ALIGN_B >= 16,
        ]
        if self.split in ("none", "onto"):
            terms.append(CHUNKS <= 1)
        elif self.load.whole_stages:
            terms.append((CHUNK % self.bk).eq(0) | (CHUNKS <= 1))
        if self.split == "workspace":
            terms.append(self.scratch["workspace"] <= WORKSPACE_MAX)
        if self.whole_rows:
            terms.append((M % self.bm).eq(0))
        terms.append(SMS >= self.ctas)
        terms += [value <= limit for _, value, limit in self.required_bounds]
        return all_of(terms)

    @property
    def required_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        """Index bounds that do not hold for very large sizes; ``requires`` excludes these sizes."""
        high, wide = self.bm * self.cluster_m, self.bn * self.cluster_n
        return (
            ("tile_m * BM and the rows of a tile, as coordinates", M + high, COORDINATE_MAX),
            ("tile_n * BN and the columns of a tile, as coordinates", N + wide, COORDINATE_MAX),
            ("k and the steps of a stage, as coordinates", K + self.bk, COORDINATE_MAX),
            ("work + clusters", self.work + self.resident_clusters, INDEX_MAX),
        )

    @property
    def index_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        wide = self.bn * self.cluster_n
        band = ("GROUP * tiles_n", ceil_div(N, wide) * self.raster, INDEX_MAX)
        ends = (("begin + chunk", K + CHUNK, INDEX_MAX),) if self.split == "serial" else ()
        return (*self.required_bounds, band, *ends)

    @property
    def expects(self) -> tuple[Expect, ...]:
        form = f"wgmma.mma_async.sync.aligned.{self.instruction}"
        product = Expect(form, ("mma.*", "wgmma.mma_async.*"))
        if self.split == "workspace":  # the kernel that adds the sums may start early
            return (product, Expect("griddepcontrol.launch_dependents"), *super().expects)
        return (product, *super().expects)

    def describe(self) -> tuple[str, ...]:
        return self.described(
            f"C[M, N] = A . B in {self.dtype}, layout {self.layout}; CTA tile {self.bm} x {self.bn}"
            f" x {self.bk}, {self.threads} threads, {self.shared_bytes} bytes of shared memory",
            f"{self.consumers} consumer warpgroup(s) of {self.fragments} x "
            f"m64n{self.instruction.columns}k{STEP}, {self.stages} stages, "
            f"clusters of {self.cluster_m} x {self.cluster_n}, split: {self.split}",
            f"parts {self.parts}",
        )


@dataclass(frozen=True)
class WgmmaSwappedSpec(WgmmaSpec):
    """A wgmma kernel with swapped operands, which computes C^T: columns of B are the 64 rows of the
    instruction, rows of A its columns.

    So ``bm`` is any multiple of 8 up to 256, and some tile fits M, which must be above
    :data:`FRAGMENT`, with few rows left over. The ``consumers`` warpgroups divide ``bn``: columns
    of most models' weights are multiples of 128. Split-K kernels require at most
    :data:`SWAPPED_SPLIT_K_MAX_ROWS` rows.
    """

    legible: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check(self.ctas == 1, self.name, "CTAs of a cluster", self.ctas, 1)
        # Warps of a warpgroup read one another's part of the exchange buffer, where such sums lie.
        check(not self.spilled_sums, self.name, "spilled_sums", self.spilled_sums, None)

    def check_columns(self) -> None:
        what = "bm is a multiple of 8 up to 256"
        check(self.bm % 8 == 0 and self.bm <= 256, self.name, what, self.bm, 256)

    @property
    def label(self) -> str:
        return f"swapped_{super().label}"

    @property
    def divided(self) -> tuple[str, int]:
        return "bn", self.bn

    def rows_from(self, least: int) -> int:
        return max(least, FRAGMENT + 1)

    @property
    def requires(self) -> Expr:
        few = M <= SWAPPED_SPLIT_K_MAX_ROWS if self.split == "workspace" else TRUE
        return super().requires & (M > FRAGMENT) & few

    @property
    def first(self) -> Operand:
        return self.b

    @property
    def second(self) -> Operand:
        return self.a

    @property
    def store(self) -> Store:
        return TransposedSums() if self.split == "workspace" else Transposed("batch")

    @property
    def pitch32(self) -> int:
        """Bytes of a row of 64 f32 outputs in a warpgroup's buffer: 4 words modulo 32, against bank
        conflicts.
        """
        return 4 * (64 + 4)

    @property
    def exchange_bytes(self) -> int:
        """Bytes of a consumer warp's quarter of its warpgroup's buffer, which holds 64 rows of 64
        16-bit outputs or 32 rows of 64 f32 outputs at a time. Partial sums need none.
        """
        if self.split == "workspace":
            return 0
        return max(64 * self.pitch16 // 4, 32 * self.pitch32 // 4)


@dataclass(frozen=True)
class WgmmaSegmentsSpec(WgmmaSpec):
    """A product of hidden states and a vocabulary's weights that stores no logits. For each segment
    of a row it stores maximum and sum as in contract ``flce/3``, and the target's logit. A tile is
    as wide as a segment. ``has_softcap``: whether logits have a softcap.
    """

    contract: Contract = FLCE
    has_softcap: bool = False

    family: ClassVar[str] = "vocab_segments_wgmma"
    legible: ClassVar[bool] = False
    meanings: ClassVar[Mapping[str, str]] = {
        **GemmSpec.meanings,
        "has_softcap": "whether logits have a softcap",
    }
    WIDE_TARGET: ClassVar[int] = WIDE_TARGET

    def __post_init__(self) -> None:
        super().__post_init__()
        check(self.bn == SEGMENT, self.name, "bn is a segment", self.bn, SEGMENT)

    @property
    def store(self) -> Store:
        return Segments()

    @property
    def context(self) -> Mapping[str, Any]:
        own = {
            "weight_functions": list(
                cuda.functions(vocab_segments.term(self.dtype, self.has_softcap))
            ),
            **logit_context("segments", self.dtype, self.has_softcap),
        }
        return MappingProxyType({**super().context, **own})

    @property
    def exchange_bytes(self) -> int:
        return self.spilled_bytes

    @property
    def abi(self) -> Abi:
        plain = super().abi.params
        unused = {"c", "workspace", "ldc"} | ({"chunk"} if self.split == "none" else set())
        kept = [p for p in plain if p.name not in unused]
        at = next(i for i, p in enumerate(kept) if p.kind != "ptr")
        own = (
            ptr("target", "const void*"),
            *(ptr(name, "float*") for name in ("top", "total", "hit")),
        )
        softcap = softcap_params("f32") if self.has_softcap else ()
        maps = tuple(p for p in kept if p.kind == "map")
        scalars = tuple(p for p in kept[at:] if p.kind != "map")
        return Abi((*kept[:at], *own, *scalars, *softcap, *maps))

    @property
    def label(self) -> str:
        return f"{'capped_' if self.has_softcap else ''}{super().label}"
