"""The mma family: GEMM kernels on the tensor cores through ``mma.sync``, for sm_80 and later."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ptxgen.numerics.contract import TC16, TIERS, Contract
from ptxgen.spec.base import ARCHITECTURES, WARP, Expect, check
from ptxgen.spec.epilogue import Epilogue
from ptxgen.spec.gemm import LAYOUTS
from ptxgen.spec.gemm.sides import CopiedSide
from ptxgen.spec.gemm.splits import Meeting, Turns
from ptxgen.spec.gemm.staged import StagedSpec

MMA_COPIES = {"vector": 16, "words": 4, "plain": 2}
"""Copy methods of an operand to shared memory, with the alignment in bytes that each needs:
cp.async of 16 bytes, cp.async of 4, or single elements through registers."""
MMA_SPLITS = ("none", "onto", "serial", "workspace")
STREAMED = ("", "b", "ab")
"""Legal values of ``streamed``: operands that are loaded with L2's evict-first policy. Their tiles
are read once, or by concurrent CTAs, and should not displace lines that will be read again."""

VECTOR = 8
"""16-bit elements in a 16-byte vector."""
STEP = 16
"""Length along k of one mma.sync instruction."""
BLOCK = 64
"""Number of 16-bit elements in 128 bytes, the span of the shared-memory swizzle."""


@dataclass(frozen=True)
class MmaSide(CopiedSide):
    """Shared-memory tile of an operand. ldmatrix reads it, and transposes it where k is not
    contiguous. ``copy``: copy method from global memory, a key of :data:`MMA_COPIES`.
    """

    copy: str
    wide: bool
    """Whether the operand supplies the instruction's 16 rows (else its 8 columns)."""

    @property
    def fragments(self) -> int:
        """Fragments of a warp's tile, of 16 rows or 8 columns each."""
        return self.warp // (16 if self.wide else 8)


class MmaLoop(StagedSpec):
    """Base of mma.sync kernels that load fragments ``prefetch`` steps of 16 k ahead of use."""

    prefetch: int

    @property
    def buffers(self) -> int:
        """Register buffers for fragments, one a step of 16 k: a power of two above ``prefetch``."""
        return 1 << self.prefetch.bit_length()

    @property
    def block(self) -> int:
        """Number of k's in an unrolled iteration of the main loop."""
        return max(min(self.bk, BLOCK), STEP * self.buffers)

    @property
    def meeting(self) -> Meeting:
        return Turns(self.block) if self.split == "serial" else super().meeting

    def fragment_registers(self, wide: MmaSide, slim: MmaSide, sums: int) -> int:
        """Returns the registers that a thread needs: ``sums`` sets of accumulators, about 24 for
        addresses, and buffers for fragments of the operands. ``wide``: tile of the operand with the
        instruction's 16 rows; ``slim``: that of the one with its 8 columns.
        """
        fetched = self.buffers * (4 * wide.fragments + 2 * slim.fragments)
        return sums * 4 * wide.fragments * slim.fragments + 24 + fetched

    @property
    def exchange_pitch(self) -> int:
        """Row pitch of the epilogue's exchange buffer, in floats."""
        return self.bn + 8


@dataclass(frozen=True)
class MmaSpec(MmaLoop):
    """A GEMM kernel of the mma family.

    A CTA of ``warps_m`` x ``warps_n`` warps computes ``bm`` x ``bn`` outputs, ``bk`` k's per stage.
    ``swap_operands``: the instruction's 16 rows are columns of B, its 8 columns rows of A, for
    products of few rows.

    ``copy_a``, ``copy_b``: copy methods of A and B to shared memory, keys of :data:`MMA_COPIES`.
    ``split``: "none" (one chunk), "onto" (one chunk, whose sums may start from the old f32 values
    of C; not with ``swap_operands``), "serial" (a CTA computes chunk after chunk and adds each to a
    second set of sums) or "workspace" (a CTA per tile and chunk writes its partial sums; a reduce
    kernel adds them). ``persistent``: CTAs of a bounded grid loop over the tiles, with 64-bit
    indices. ``ctas_per_sm``: CTAs that share an SM, which bounds the registers. ``raster``: tile
    rows of a band, which share columns of B in L2; 0: all. ``streamed``: operands loaded with L2's
    evict-first policy, one of :data:`STREAMED`.

    ``producer_warps``: warps that only copy, so that the warps that multiply never wait to issue
    copies; 0: all warps copy. ``prefetch``: steps of 16 k by which fragments are loaded ahead; a
    warp with few fragments needs 2 or 3, since its step takes less time than ldmatrix.
    """

    layout: str
    bm: int
    bn: int
    bk: int
    warps_m: int
    warps_n: int
    stages: int
    copy_a: str = "vector"
    copy_b: str = "vector"
    swap_operands: bool = False
    split: str = "none"
    persistent: bool = False
    ctas_per_sm: int = 1
    raster: int = 8
    producer_warps: int = 0
    prefetch: int = 1
    streamed: str = ""
    dtype: str = "bf16"
    min_arch: str = "sm_80"
    contract: Contract = TC16
    epilogue: Epilogue | None = None

    family: ClassVar[str] = "mma"
    template: ClassVar[str] = "mma/gemm.cu.j2"
    in_pieces: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self.check_counts("bm", "bn", "bk", "warps_m", "warps_n", "ctas_per_sm")
        name = self.name
        for what in ("raster", "producer_warps"):
            check(getattr(self, what) >= 0, name, what, getattr(self, what), ">= 0")
        self.check_choices(
            layout=LAYOUTS,
            dtype=TIERS["tc"],
            split=MMA_SPLITS,
            copy_a=[*MMA_COPIES],
            copy_b=[*MMA_COPIES],
            streamed=STREAMED,
            min_arch=[*ARCHITECTURES],
        )
        for x in self.streamed:
            copy = self.copy_a if x == "a" else self.copy_b
            check(copy == "vector", name, f"copy_{x} of what streams", copy, "vector")
        check(
            not (self.swap_operands and self.split == "onto"),
            name,
            "swap, split",
            self.swap_operands,
            self.split,
        )
        check(self.stages >= 2, name, "stages", self.stages, ">= 2")
        whole = self.bk == BLOCK // 2 or self.bk % BLOCK == 0
        check(whole, name, "bk is 32 or a multiple of 64", self.bk, BLOCK)
        check(1 <= self.prefetch <= 7, name, "prefetch", self.prefetch, "1 .. 7")
        what = "k's over which the loop is unrolled divide bk"
        self.check_divides(what, self.block, self.bk)
        self.check_tiles(*((8, 16) if self.swap_operands else (16, 8)))
        self.check_threads()
        for x in ("a", "b"):
            self.side(x).check(name, x)
        sums = 2 if self.split == "serial" else 1
        needed = self.fragment_registers(self.wide_side, self.slim_side, sums)
        self.check_resources(needed, "accumulators, two fragments, addresses", self.ctas_per_sm)

    # -- derived --------------------------------------------------------------
    @property
    def threads(self) -> int:
        return (self.warps_m * self.warps_n + self.producer_warps) * WARP

    def side(self, x: str) -> MmaSide:
        """Returns the shared-memory tile of operand "a" or "b"."""
        copiers = self.producer_warps * WARP or self.threads
        copy = self.copy_a if x == "a" else self.copy_b
        return MmaSide(
            copy=copy, wide=(x == "a") != self.swap_operands, **self.side_arguments(x, copiers)
        )

    def alignment(self, x: str) -> int:
        return MMA_COPIES[self.side(x).copy]

    @property
    def wide_side(self) -> MmaSide:
        """Tile of the operand that supplies the instruction's 16 rows."""
        return self.side("b" if self.swap_operands else "a")

    @property
    def slim_side(self) -> MmaSide:
        """Tile of the operand that supplies the instruction's 8 columns."""
        return self.side("a" if self.swap_operands else "b")

    @property
    def uncut(self) -> str:
        """C++ condition under which no cp.async crosses the edge of an operand that is contiguous
        along m or n; empty if none can.
        """
        conditions = [
            f"({o} % {MMA_COPIES[side.copy] // 2} == 0 || {o} - {o}0 >= B{o.upper()})"
            for o, side in (("m", self.side("a")), ("n", self.side("b")))
            if not side.k_contiguous and side.copy != "plain"
        ]
        return " && ".join(conditions)

    @property
    def plain(self) -> bool:
        """Whether an operand is copied element by element, through registers."""
        return "plain" in (self.copy_a, self.copy_b)

    @property
    def ragged(self) -> bool:
        """Whether the kernel's source has a path that stores rows of the result by vectors though
        they begin at unaligned addresses. Kernels that copy B [K, N] by vectors have none: they
        require aligned rows of B, and rows of the result are as long, hence aligned, too.
        """
        return self.layout[1] == "T" or self.copy_b != "vector"

    @property
    def shared_bytes(self) -> int:
        return max(self.stages * self.stage, 4 * self.bm * self.exchange_pitch)

    @property
    def expects(self) -> tuple[Expect, ...]:
        shape = f"m16n8k16.row.col.f32.{self.dtype}.{self.dtype}.f32"
        return (Expect(f"mma.sync.aligned.{shape}", ("*mma.*",)), *super().expects)

    def describe(self) -> tuple[str, ...]:
        return self.described(
            f"C[M, N] = A . B, layout {self.layout}, {self.dtype}; CTA tile "
            f"{self.bm} x {self.bn} x {self.bk}, {self.sizes}",
            f"A: {self.copy_a}, B: {self.copy_b}; {self.stages} stages, split: {self.split}",
        )
