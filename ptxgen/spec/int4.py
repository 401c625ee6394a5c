"""Products of 4-bit integers: their problem variables, and kernels on 8-bit tensor cores.

=================  =====================================================================
``M, N, K``        rows, columns, reduction length, elements; K at most ``Element.k_max``
``ALIGN_A/B``      largest of 1, 2, 4, 8, 16 bytes that divides the operand's address and the
                   byte distance of its rows
``SMS``            streaming multiprocessors of the device
=================  =====================================================================

Further scalar parameters: ``LDA, LDB, LDC``, the row strides in bytes; ``LDD``, the result's in
items; ``FLAGS``, ``ALPHA`` and ``BETA``.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from ptxgen.cost.kernel import KernelCost, Phase
from ptxgen.expr import Expr, all_of, ceil_div, minimum
from ptxgen.numerics import activation, int4
from ptxgen.numerics.contract import Contract, K, M, N
from ptxgen.spec.abi import Abi, Param, ptr
from ptxgen.spec.base import ARCHITECTURES, GRID_MAX, INDEX_MAX, WARP, Expect, KernelSpec, check
from ptxgen.spec.gemm import ALIGN_A, ALIGN_B, MEANINGS
from ptxgen.spec.gemm.sides import Side
from ptxgen.spec.space import ALIGNMENT, SIZE, SMS_MAX, Between, Space

BIAS_I32, OUT_I32, OUT_F32, ACTIVATION_SHIFT = 1, 2, 4, 8
"""Bits of ``flags``: bias is i32 (else f32); result is i32, result is f32 (else packed 4-bit). The
activation's code begins at bit 8."""

COPIES = {"vector": 16, "words": 4, "bytes": 1}
"""Copy methods of operands to shared memory, with the alignment in bytes that each needs: cp.async
of 16 or of 4 bytes, or single bytes through registers."""
WIDENINGS = {"shift": 16, "extend": 1}
"""Methods to widen a 4-bit element to 8 bits, with the factor that each multiplies by: a shift into
the upper half, or sign extension."""
BLOCK = 32
"""Number of k's of an instruction (``mma.sync`` m16n8k32), and of rows or columns in a block of a
warp's tile. It is also the number of 4-bit elements in 16 bytes."""


@cache
def space(dtype: str) -> Space:
    """Returns the space of products of two 4-bit matrices; ``dtype``, "s4" or "u4", bounds K."""
    return Space(
        f"products of {dtype}",
        (
            ("M", SIZE),
            ("N", SIZE),
            ("K", Between(1, int4.ELEMENTS[dtype].k_max)),
            ("SMS", Between(1, SMS_MAX)),
            ("ALIGN_A", ALIGNMENT),
            ("ALIGN_B", ALIGNMENT),
        ),
    )


def _power(x: int) -> bool:
    return x > 0 and x & (x - 1) == 0


@dataclass(frozen=True)
class OrderedSide(Side):
    """Shared-memory tile whose rows are stored in another order, so that the 8 rows of a matrix
    that ldmatrix reads are neighbours. ``row_order``: C++ expression of the operand's row that is
    stored as row ``place``.
    """

    row_order: str


class Elements(KernelSpec):
    """Base of the kernels that read 4-bit integers."""

    @property
    def element(self) -> int4.Element:
        """Range and limits of the kernel's 4-bit element type."""
        return int4.ELEMENTS[self.dtype]

    @property
    def signed(self) -> bool:
        """Whether the 4-bit elements are signed."""
        return self.element.low < 0


class ProductSpec(Elements):
    """Base of the kernels of ``D[M, N] = epilogue(A . B)``, in tiles of ``bm`` x ``bn`` outputs and
    stages of ``bk`` k's. Their accumulators hold ``scale`` times the sum. ``layout``: storage of B,
    "rcr" [N, K] or "rrr" [K, N].
    """

    layout: str
    bm: int
    bn: int
    bk: int

    meanings: ClassVar[Mapping[str, str]] = {
        **MEANINGS,
        "layout": "storage of B: rcr is [N, K], rrr is [K, N]",
    }

    if TYPE_CHECKING:

        @property
        def scale(self) -> int: ...

    @property
    def label(self) -> str:
        return f"{self.layout}_{self.dtype}_{self.bm}x{self.bn}x{self.bk}"

    @property
    def tiles(self) -> Expr:
        """Number of output tiles of a problem."""
        return ceil_div(M, self.bm) * ceil_div(N, self.bn)

    @property
    def waits(self) -> bool:
        return True

    @property
    def largest(self) -> int:
        """Largest magnitude that the product of two elements adds to an accumulator, :attr:`scale`
        included.
        """
        return self.element.product * self.scale

    @property
    def context(self) -> Mapping[str, Any]:
        own = sys.modules[__name__]
        return MappingProxyType({"activation": activation, "int4": own, "numbers": int4})

    def parameter_list(
        self, operand: str, pitches: tuple[str, ...], maps: tuple[Param, ...] = ()
    ) -> Abi:
        """Returns the parameter list: pointers to A and B of type ``operand``, the epilogue's
        arrays, the row strides ``pitches``, and tensor ``maps``.
        """
        return Abi(
            (
                *(ptr(x, operand) for x in "ab"),
                ptr("c", "const unsigned char*", optional=True),  # may alias d
                ptr("bias", "const void* __restrict__", optional=True),
                ptr("d", "void*"),
                *(Param(name, "i64") for name in pitches),
                *(Param(name, "u32") for name in ("m", "n", "k", "flags")),
                *(Param(name, "f32") for name in ("alpha", "beta")),
                *maps,
            )
        )


@dataclass(frozen=True)
class Int4Spec(ProductSpec):
    """A kernel of products of 4-bit integers through ``mma.sync`` m16n8k32 of 8-bit ones.

    A CTA computes ``bm`` x ``bn`` outputs, ``bk`` k's per stage of a ring. ``warps_m`` x
    ``warps_n`` warps share the outputs, ``warps_k`` the k's of a stage. Integer sums are exact, so
    the order of additions does not matter, nor does the order of the k's: ldmatrix loads 8 of them
    into a register; the low nibbles make one operand, the high nibbles another.

    ``cluster_k`` CTAs of a cluster share the stages of a tile, and then its outputs: each reads the
    others' partial sums from their shared memory.

    ``prefetch``: fragments are loaded from shared memory while the previous ones are multiplied, at
    the cost of registers.

    ``widen``: method to widen elements to 8 bits, a key of :data:`WIDENINGS`. Shifted operands make
    256 times the sum, which limits the k's of a warp. ``copy``: copy method of operands to shared
    memory, a key of :data:`COPIES`. CTAs loop over the tiles if these exceed the grid's limit.
    """

    layout: str
    bm: int
    bn: int
    bk: int
    warps_m: int
    warps_n: int
    stages: int
    warps_k: int = 1
    cluster_k: int = 1
    prefetch: bool = False
    copy: str = "vector"
    widen: str = "shift"
    ctas_per_sm: int = 1
    dtype: str = "s4"
    min_arch: str = "sm_80"
    contract: Contract = int4.INT4

    family: ClassVar[str] = "int4"
    template: ClassVar[str] = "int4/gemm.cu.j2"
    meanings: ClassVar[Mapping[str, str]] = {
        **ProductSpec.meanings,
        "prefetch": "whether fragments are loaded while the previous ones are multiplied",
        "cluster_k": "CTAs of a cluster, which divide the stages of one tile",
        "copy": "copy method of operands to shared memory",
        "warps_k": "warps that share the k's of a stage",
        "widen": "conversion of 4-bit integers to 8 bits: shift (times 16) or extend",
    }

    def __post_init__(self) -> None:
        name = type(self).__name__
        self.check_choices(
            layout=int4.LAYOUTS,
            dtype=[*int4.ELEMENTS],
            copy=[*COPIES],
            widen=[*WIDENINGS],
            min_arch=[*ARCHITECTURES],
        )
        check(self.stages >= 2, name, "stages", self.stages, ">= 2")
        for x in "mnk":
            extent, unit = getattr(self, f"b{x}"), getattr(self, f"warps_{x}") * BLOCK
            what = f"warps_{x} x {BLOCK} divides b{x}"
            check(unit > 0 and extent % unit == 0, name, what, unit, extent)
        check(self.cluster_k in (1, 2, 4, 8), name, "cluster_k", self.cluster_k, (1, 2, 4, 8))
        clusters = self.cluster_k == 1 or ARCHITECTURES[self.min_arch].compute >= 90
        check(clusters, name, "min_arch of clusters", self.min_arch, "sm_90")
        for side in (self.a, self.b):
            pieces = self.pieces(side)
            at_once = self.threads // pieces
            even = self.threads % pieces == 0 and side.rows % max(at_once, 1) == 0
            check(even, name, "rows copied at once divide a tile's", at_once, side.rows)
            check(_power(at_once), name, "rows copied at once", at_once, "a power of two")
            check(_power(side.vectors), name, "vectors of a row", side.vectors, "a power of two")
        for what in ("warps_k", "blocks_n"):
            check(_power(getattr(self, what)), name, what, getattr(self, what), "a power of two")
        needed = self.blocks_m * self.blocks_n * BLOCK + 8 * (self.blocks_m + self.blocks_n) + 40
        self.check_resources(needed, "accumulators, fragments, addresses", self.ctas_per_sm)

    # -- derived --------------------------------------------------------------
    @property
    def threads(self) -> int:
        return self.warps_m * self.warps_n * self.warps_k * WARP

    @property
    def blocks_m(self) -> int:
        """Blocks of 32 rows in a warp's tile."""
        return self.bm // self.warps_m // BLOCK

    @property
    def blocks_n(self) -> int:
        """Blocks of 32 columns in a warp's tile."""
        return self.bn // self.warps_n // BLOCK

    @property
    def scale(self) -> int:
        """Factor by which the accumulators exceed the true sum: the square of the factor by which
        widening multiplies each element (:data:`WIDENINGS`).
        """
        return WIDENINGS[self.widen] ** 2

    @property
    def a(self) -> OrderedSide:
        """Shared-memory tile of A, contiguous along k."""
        return OrderedSide(self.bm, self.bk // BLOCK, "place")

    @property
    def b(self) -> OrderedSide:
        """Shared-memory tile of B, contiguous along k or n. Lane 4g + t multiplies 8 neighbouring
        k's from 8t on, and 4 columns from 4g on. If k is contiguous, ldmatrix matrix q holds column
        q of each g. If n is, ldmatrix transposes matrices whose rows 2t and 2t + 1 are k's of the
        lanes with that t.
        """
        if self.layout == "rcr":
            order = "place / 32 * 32 + place % 8 * 4 + place / 8 % 4"
            return OrderedSide(self.bn, self.bk // BLOCK, order)
        of_k = "place / 2 % 4 * 8 + place / 8 % 2 * 4 + place % 2 * 2 + place / 16 % 2"
        return OrderedSide(self.bk, self.bn // BLOCK, f"place / 32 * 32 + {of_k}")

    @property
    def piece(self) -> int:
        """Bytes that a thread copies at a time."""
        return 4 if self.copy == "words" else 16

    def pieces(self, side: OrderedSide) -> int:
        """Returns how many copies of :attr:`piece` bytes make a row of the tile ``side``."""
        return side.vectors * 16 // self.piece

    @property
    def stage(self) -> int:
        """Bytes of a stage of the ring: a tile of A and one of B."""
        return self.a.nbytes + self.b.nbytes

    @property
    def exchange_pitch(self) -> int:
        """Row pitch of the epilogue's exchange buffer, in accumulators."""
        return self.bn + 4

    @property
    def shared_bytes(self) -> int:
        return max(self.stages * self.stage, 4 * self.warps_k * self.bm * self.exchange_pitch)

    @property
    def steps(self) -> Expr:
        """Stages of the ring that a CTA multiplies for each tile; the CTAs of a cluster share the
        reduction.
        """
        return ceil_div(K, self.bk * self.cluster_k)

    @property
    def grid(self) -> Expr:
        bounded = minimum(self.tiles, GRID_MAX // self.cluster_k)
        return bounded if self.cluster_k == 1 else bounded * self.cluster_k

    @property
    def cost(self) -> KernelCost:
        items = minimum(M, self.bm) + minimum(N, self.bn)  # rows beyond M or N are not loaded
        return KernelCost(
            slots=self.ctas_per_sm,
            ctas=self.tiles if self.cluster_k == 1 else self.tiles * self.cluster_k,
            phases=(Phase("mma8", self.steps, self.steps * (self.bk * self.bm * self.bn)),),
            loads=ceil_div(self.tiles * items * K, 2),
            operands=ceil_div((M + N) * K, 2),
            stores=ceil_div(M * N, 2),
        )

    @property
    def abi(self) -> Abi:
        pitches = ("lda", "ldb", "ldc", "ldd")
        return self.parameter_list("const unsigned char* __restrict__", pitches)

    @property
    def k_max(self) -> int:
        """Longest reduction in which no accumulator overflows; a warp adds only its share of the
        k's.
        """
        alone = int4.SUM_MAX // self.largest
        shared = alone * self.warps_k // self.bk * self.cluster_k * self.bk
        return min(max(alone, shared), self.element.k_max)

    @property
    def requires(self) -> Expr:
        terms = [self.k_max >= K] if self.k_max < self.element.k_max else []
        aligned = COPIES[self.copy]
        return all_of((*terms, *(a >= aligned for a in (ALIGN_A, ALIGN_B) if aligned > 1)))

    @property
    def index_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        return (
            ("m0 + BM", ceil_div(M, self.bm) * self.bm, INDEX_MAX),
            ("n0 + BN", ceil_div(N, self.bn) * self.bn, INDEX_MAX),
            ("k + BK - 1, and (rank + 1) * BK", K + self.bk * self.cluster_k, INDEX_MAX),
            ("step + STAGES", self.steps + self.stages, INDEX_MAX),
            (
                "magnitude of an accumulator",
                minimum(K, self.steps * (self.bk // self.warps_k)) * self.largest,
                int4.SUM_MAX,
            ),
        )

    @property
    def expects(self) -> tuple[Expect, ...]:
        return (Expect(f"mma.sync.aligned.{self.instruction}", ("*mma.*",)), *super().expects)

    @property
    def instruction(self) -> str:
        """Shape and types of the mma.sync instruction."""
        byte = "s8" if self.signed else "u8"
        return f"m16n8k32.row.col.s32.{byte}.{byte}.s32"

    def describe(self) -> tuple[str, ...]:
        return self.described(
            f"D[M, N] = epilogue(A . B), layout {self.layout}, {self.dtype}; CTA tile "
            f"{self.bm} x {self.bn} x {self.bk}, {self.threads} threads, "
            f"{self.shared_bytes} bytes of shared memory",
            f"copied by {self.copy}, {self.stages} stages; widened by {self.widen}: sums times "
            f"{self.scale}",
        )
