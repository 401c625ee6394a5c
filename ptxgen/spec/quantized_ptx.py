"""Products with quantized weights, written in PTX: f32 operands, accumulators in f32 or f64.

A thread looks up each code when it multiplies: in its registers, by a tree of 15 ``selp`` over the
codebook of 16, or by a shuffle among lanes that hold the codebook. The kernels use no shared memory
and no barrier.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

from ptxgen.cost.kernel import KernelCost, Phase
from ptxgen.expr import Expr, all_of, ceil_div, minimum
from ptxgen.numerics.contract import FMA, Contract, K, M, N
from ptxgen.numerics.quantized import WIDE
from ptxgen.numerics.weight_format import WeightFormat
from ptxgen.spec.abi import Abi, Param, ptr
from ptxgen.spec.base import (
    ARCHITECTURES,
    GRID_MAX,
    INDEX_MAX,
    PTX_TARGETS,
    WARP,
    WORKSPACE_MAX,
    Expect,
    check,
)
from ptxgen.spec.gemm import ALIGN_A, CHUNK, CHUNKS, MEANINGS, PARTIAL_SUMS
from ptxgen.spec.gemm.sums import FinishingSpec
from ptxgen.spec.quantized import FORMAT, LOOKED_UP, PIECE, LookedUpSpec

LOOKUPS = ("select", "shuffle")
_ROWS_AT_ONCE = 1 << 9
"""Most tiles along M (in :class:`FinishSpec` rows) that have CTAs of their own; these CTAs loop
over the others."""


@dataclass(frozen=True)
class QuantizedPtxSpec(LookedUpSpec):
    """A kernel of ``A . W``, chunk by chunk: partial sums ``c[CHUNKS][M][N]``, rounded to f32.

    A CTA computes ``bm`` rows by ``warps`` / (``bm`` / ``tm``) times 32 ``tn`` columns, a thread
    ``tm`` by ``tn`` of them. ``layout``: "NT", of a product, or "NN", of its transpose.
    ``prefetch``: steps of eight or four k's by which codes are loaded ahead; A too, if a thread has
    few rows. ``lookup``: "select", by a tree of 15 ``selp``; or "shuffle", from the lanes of a half
    warp. ``align_a``: bytes that rows of A are aligned to, and loaded at a time.
    """

    layout: str
    bm: int = 32
    tm: int = 8
    tn: int = 4
    warps: int = 4
    lookup: str = "select"
    prefetch: int = 1
    align_a: int = 16
    ctas_per_sm: int = 1
    min_arch: str = "sm_80"
    contract: Contract = FMA
    format: WeightFormat = LOOKED_UP[0]

    family: ClassVar[str] = "quantized"
    template: ClassVar[str] = "quantized/gemm.ptx.j2"
    ptx_since: ClassVar[str] = "sm_70"
    dtype: ClassVar[str] = "f32"
    meanings: ClassVar[Mapping[str, str]] = {
        **MEANINGS,
        "format": FORMAT,
        "layout": "NT multiplies by the weight's transpose; NN by the weight",
        "prefetch": "steps by which codes are loaded ahead of their use",
        "lookup": "codebook lookup: select (a tree of selp in registers) or shuffle (from other "
        "lanes)",
        "warps": "warps of a CTA",
    }

    def __post_init__(self) -> None:
        name = self.name
        check(self.layout in ("NT", "NN"), name, "layout", self.layout, ("NT", "NN"))
        check(self.lookup in LOOKUPS, name, "lookup", self.lookup, LOOKUPS)
        check(self.prefetch in (1, 2, 4, 8), name, "prefetch", self.prefetch, (1, 2, 4, 8))
        check(self.align_a in (4, 16), name, "align_a", self.align_a, (4, 16))
        check(self.contract in (FMA, WIDE), name, "contract", self.contract, (FMA, WIDE))
        high = self.bm // self.warp_rows
        whole = high * self.warp_rows == self.bm
        check(whole, name, "whole warps along m", self.bm, self.warp_rows)
        check(self.warps % high == 0, name, "whole warps along n", self.warps, high)
        check(self.tn in self.tn_taken, name, "tn", self.tn, self.tn_taken)
        check(self.min_arch in ARCHITECTURES, name, "min_arch", self.min_arch, [*ARCHITECTURES])

    @property
    def label(self) -> str:
        return f"{self.format.name}_{self.layout.lower()}_{self.accumulator}_{self.bm}x{self.bn}"

    @property
    def accumulator(self) -> str:
        """Dtype of the accumulators."""
        return self.contract.accumulator

    @property
    def split(self) -> bool:
        """Whether partial sums of the chunks go to scratch memory, for a reduce kernel."""
        return self.contract == FMA

    @property
    def rows_ahead(self) -> bool:
        """Whether A is loaded as many steps ahead as the codes. Registers suffice for that if a
        thread has few rows.
        """
        return self.tm * self.prefetch <= 8

    @property
    def multiplier(self) -> str:
        """Unit that multiplies, a key of :data:`ptxgen.cost.kernel.UNITS`."""
        return "fma64" if self.accumulator == "f64" else "fma"

    @property
    def unit(self) -> int:
        """Divisor of K that the kernel requires."""
        return 1

    @property
    def tn_taken(self) -> tuple[int, ...]:
        """Legal values of ``tn``, the columns of a thread. Layout NN excludes 1 and 2: there a
        thread reads whole 32-bit words of codes.
        """
        return (1, 2, 4, 8) if self.layout == "NT" else (4, 8)

    @property
    def warp_rows(self) -> int:
        """Rows of C that a warp computes."""
        return self.tm

    @property
    def warp_columns(self) -> int:
        """Columns of C that a warp computes."""
        return WARP * self.tn

    @property
    def warps_n(self) -> int:
        """Warps side by side along the columns."""
        return self.warps * self.warp_rows // self.bm

    @property
    def bn(self) -> int:
        """Columns of C that a CTA computes."""
        return self.warps_n * self.warp_columns

    @property
    def threads(self) -> int:
        return self.warps * WARP

    @property
    def shared_bytes(self) -> int:
        return 0

    @property
    def context(self) -> Mapping[str, Any]:
        return MappingProxyType(
            {"CODE": self.format.values, "f32": _bits, "isa": PTX_TARGETS[self.ptx_since]}
        )

    @property
    def abi(self) -> Abi:
        return Abi(
            (
                ptr("a", "const float*"),
                ptr("data", "const unsigned char*"),
                ptr("scales", "const float*"),
                ptr("c", "float*"),
                Param("lda", "i64"),
                Param("ldc", "i64"),
                *(Param(name, "u32") for name in ("m", "n", "k", "chunk")),
            )
        )

    @property
    def scratch(self) -> Mapping[str, Expr]:
        return {"c": PARTIAL_SUMS * 4} if self.split else {}

    @property
    def tiles(self) -> tuple[Expr, Expr]:
        """Number of tiles along M and along N."""
        return ceil_div(M, self.bm), ceil_div(N, self.bn)

    @property
    def grid(self) -> Expr:
        high, wide = self.tiles
        return minimum(high, _ROWS_AT_ONCE) * wide * CHUNKS

    @property
    def cost(self) -> KernelCost:
        high, wide = self.tiles
        weight = N * K // 2 + N * K // (PIECE // 4)
        return KernelCost(
            slots=self.ctas_per_sm,
            ctas=high * wide * CHUNKS,
            phases=(Phase(self.multiplier, ceil_div(CHUNK, 8), CHUNK * (self.bm * self.bn)),),
            loads=high * weight + wide * M * K * 4,
            operands=M * K * 4 + weight,
            stores=PARTIAL_SUMS * 4,
        )

    @property
    def requires(self) -> Expr:
        terms = [self.grid <= GRID_MAX]
        if self.align_a == 16:
            terms.append(ALIGN_A >= 16)
        if self.split:
            terms.append(PARTIAL_SUMS * 4 <= WORKSPACE_MAX)
        if self.unit > 1:
            terms.append((K % self.unit).eq(0))
        return all_of(terms)

    @property
    def index_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        high, wide = self.tiles
        bounds = (
            ("n + BN - 1", N + (self.bn - 1)),
            ("tile * BN", wide * self.bn),
            ("k + chunk - 1", K + CHUNK - 1),
            ("tiles * chunks", self.grid),
            ("number * chunk + chunk", CHUNKS * CHUNK),
            ("at + 8 * AHEAD", K + 8 * (self.prefetch + 1)),
            ("tile_m * BM", (high + _ROWS_AT_ONCE) * self.bm),
        )
        return tuple((text, value, INDEX_MAX) for text, value in bounds)

    @property
    def expects(self) -> tuple[Expect, ...]:
        fma = Expect(f"fma.rn.{self.accumulator}", ("fma.*", "*mma.*"))
        return fma, Expect("mul.rn.f32", ("mul.f32", "mul.ftz*"))

    def describe(self) -> tuple[str, ...]:
        what = "C = A . W^T" if self.layout == "NT" else "C = A . W"
        return self.described(
            f"{what} of a weight W of {self.format.name}, chunk by chunk; CTA tile {self.bm} x "
            f"{self.bn}, {self.threads} threads of {self.tm} x {self.tn}, no shared memory",
        )


@dataclass(frozen=True)
class QuantizedMmaSpec(QuantizedPtxSpec):
    """A kernel with f64 chains on tensor cores, where each step of an instruction is an f64 fma.

    The lanes of a warp are 8 by 4: it computes 8 ``tm`` rows by 4 ``tn`` columns. Where rows of A
    are loaded 16 bytes at a time (``align_a``), lanes exchange the elements by shuffles.
    """

    bm: int = 64
    tm: int = 8
    tn: int = 8
    align_a: int = 4
    min_arch: str = "sm_90"
    contract: Contract = WIDE

    max_arch: ClassVar[str] = "sm_90"  # the only one whose f64 tensor cores were measured
    template: ClassVar[str] = "quantized/mma.ptx.j2"
    ptx_since: ClassVar[str] = "sm_90"

    def __post_init__(self) -> None:
        super().__post_init__()
        check(self.contract == WIDE, self.name, "contract", self.contract, WIDE)
        check(self.tm in (2, 4, 8), self.name, "tm", self.tm, (2, 4, 8))
        vectors = self.align_a == 16
        check(self.prefetch >= 2 or not vectors, self.name, "prefetch", self.prefetch, ">= 2")
        check(self.min_arch == "sm_90", self.name, "min_arch", self.min_arch, "sm_90")

    @property
    def label(self) -> str:
        return f"{super().label}_mma"

    @property
    def multiplier(self) -> str:
        return "mma64"

    @property
    def unit(self) -> int:
        # In layout NT, K is a multiple of the format's block anyway.
        return 16 if self.align_a == 16 and self.layout == "NN" else 1

    @property
    def tn_taken(self) -> tuple[int, ...]:
        return 2, 4, 8, 16

    @property
    def warp_rows(self) -> int:
        return 8 * self.tm

    @property
    def warp_columns(self) -> int:
        return 4 * self.tn

    @property
    def expects(self) -> tuple[Expect, ...]:
        mma = "mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64"
        return Expect(mma, ("*mma.*",)), Expect("mul.rn.f32", ("mul.f32", "mul.ftz*"))


@dataclass(frozen=True)
class FinishSpec(FinishingSpec):
    """A kernel of ``c = activation(c + bias)`` in place: the epilogue of ``accumulate="f64"``.

    A thread computes a column of C, in all rows or, if there are many, in every 512th.
    """

    cta_threads: int = 128
    contract: Contract = WIDE

    family: ClassVar[str] = "quantized_finish"
    template: ClassVar[str] = "quantized/finish.cu.j2"
    dtype: ClassVar[str] = "f32"
    min_arch: ClassVar[str] = "sm_80"

    @property
    def label(self) -> str:
        return f"f32_{self.cta_threads}"

    @property
    def abi(self) -> Abi:
        return Abi(
            (
                ptr("bias", "const float* __restrict__", optional=True),
                ptr("c", "float*"),
                Param("ldc", "i64"),
                *(Param(name, "u32") for name in ("m", "n", "flags")),
            )
        )

    @property
    def grid(self) -> Expr:
        return minimum(M, _ROWS_AT_ONCE) * ceil_div(N, self.cta_threads)

    @property
    def cost(self) -> KernelCost:
        return self.moving(ceil_div(M, _ROWS_AT_ONCE), M * N * 4, M * N * 4, "fma")

    @property
    def requires(self) -> Expr:
        return self.grid <= GRID_MAX

    @property
    def index_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        across = ceil_div(N, self.cta_threads)
        return (
            ("n + THREADS - 1", N + (self.cta_threads - 1), INDEX_MAX),
            ("j", across * self.cta_threads, INDEX_MAX),
            ("i + together", M + _ROWS_AT_ONCE, INDEX_MAX),
        )


def _bits(value: float) -> str:
    """Returns an f32 literal of PTX, such as "0f3F800000"."""
    return f"0f{struct.unpack('<I', struct.pack('<f', value))[0]:08X}"
