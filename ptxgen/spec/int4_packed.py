"""Products of 4-bit integers by wgmma, whose operands are bytes: a kernel unpacks A into scratch
memory, and consumers unpack B in registers.

Rows of the copy of A are contiguous along k and :func:`pitch` bytes apart, so that TMA can load
them whatever the alignment of A.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, ClassVar

from ptxgen.cost.kernel import MOVE, KernelCost, Phase
from ptxgen.expr import Expr, all_of, ceil_div, maximum, minimum
from ptxgen.numerics import int4
from ptxgen.numerics.contract import COPY, Contract, K, M, N
from ptxgen.spec import int4 as problems
from ptxgen.spec.abi import Abi, MapBox, Param, ptr
from ptxgen.spec.base import INDEX_MAX, Expect, check
from ptxgen.spec.gemm import ALIGN_B, LDB, matrix
from ptxgen.spec.prepare import PreparingSpec
from ptxgen.spec.wgmma import COORDINATE_MAX, Instruction, Operand, Packed, Ring

LINE = 128
"""Divisor of the row pitch of unpacked copies, in bytes; also the k's of a stage of the ring."""
SHARED = 24 << 10
"""Shared memory, in bytes, that an unpacking CTA claims without using it
(:attr:`UnpackSpec.shared_bytes`). The CTAs of an SM together claim nearly all of it."""
COLUMNS = 128
"""Columns of B that a consumer warpgroup computes: two fragments of 64."""


def pitch(k: Expr) -> Expr:
    """Returns the row pitch, in bytes, of the unpacked copy of rows of ``k`` elements."""
    return maximum(ceil_div(k, LINE), 1) * LINE


@dataclass(frozen=True)
class UnpackSpec(PreparingSpec, problems.Elements):
    """A kernel that unpacks ``x`` [M, K/2] into bytes: ``y`` [M, pitch].

    Rows of ``x`` may be unaligned. A thread unpacks ``vectors_per_thread`` vectors of 16 elements.
    Bytes after the last vector of a row are not written. ``split_parity``: the even k's of every 32
    come first, then the odd ones.
    """

    dtype: str = "s4"
    split_parity: bool = False
    cta_threads: int = 256
    vectors_per_thread: int = 4
    min_arch: str = "sm_90"
    contract: Contract = COPY

    family: ClassVar[str] = "int4_unpack"
    template: ClassVar[str] = "int4/unpack.cu.j2"
    meanings: ClassVar[Mapping[str, str]] = {
        **PreparingSpec.meanings,
        "split_parity": "whether even k's are stored before odd k's",
        "vectors_per_thread": "vectors of 16 elements that a thread unpacks",
    }

    def __post_init__(self) -> None:
        name = self.name
        check(self.dtype in int4.ELEMENTS, name, "dtype", self.dtype, [*int4.ELEMENTS])
        self.check_threads()

    @property
    def label(self) -> str:
        return self.dtype

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a CTA; the kernel uses none of it. An SM must drain before it can raise
        its share of shared memory for the next kernel. This claim sets the share early; without it,
        CTAs of the product would crowd on the SMs that drain first.
        """
        return SHARED

    @property
    def context(self) -> Mapping[str, Any]:
        return MappingProxyType({"LINE": LINE})

    @property
    def abi(self) -> Abi:
        return Abi(
            (
                ptr("x", "const unsigned char* __restrict__"),
                ptr("y", "unsigned char*"),
                Param("ldx", "i64"),
                Param("m", "u32"),
                Param("k", "u32"),
            )
        )

    @property
    def scratch(self) -> Mapping[str, Expr]:
        return {"y": M * pitch(K)}

    @property
    def unit(self) -> int:
        """Number of elements of which rows of ``y`` are a multiple: 32 with ``split_parity``, else
        16.
        """
        return 32 if self.split_parity else 16

    @property
    def grid(self) -> Expr:
        vectors = M * ceil_div(K, self.unit) * (self.unit // 16)
        return ceil_div(vectors, self.threads * self.vectors_per_thread)

    @property
    def cost(self) -> KernelCost:
        read = M * ceil_div(K, 2)
        return KernelCost(self.slots, self.grid, (MOVE,), read, read, 2 * read)

    @property
    def index_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        return (*super().index_bounds, ("at + UNIT", K + self.unit, INDEX_MAX))

    @property
    def expects(self) -> tuple[Expect, ...]:
        early = Expect("griddepcontrol.launch_dependents", since="sm_90")
        return (Expect(f"st.global.v{2 if self.split_parity else 4}.u32", ("st.global.u*",)), early)

    def describe(self) -> tuple[str, ...]:
        return (
            f"contract {self.contract}: {self.contract.step}",
            f"elements of {self.dtype} as bytes"
            + ("; even k's, then odd ones" * self.split_parity),
            f"CTAs {self.grid} of {self.threads} threads",
        )


@dataclass(frozen=True)
class PackedSpec(Ring, problems.ProductSpec):
    """A wgmma kernel for products of 4-bit integers: A is unpacked to bytes, B is packed.

    A CTA computes ``bm`` x ``bn`` outputs with ``consumers`` warpgroups, side by side along n, and
    a producer warp that fills a ring of ``stages`` stages of ``bk`` k's by TMA. B is the register
    operand, so the instruction's rows are columns of B: a warp has 32 columns, and a lane unpacks 4
    neighbouring columns to bytes. A byte of B holds two elements. In layout "rcr" these are k's, so
    A's even and odd k's are stored apart (:attr:`UnpackSpec.split_parity`).

    The grid is persistent: CTAs loop over the tiles, in bands of ``raster`` rows of tiles.
    ``ctas_per_sm``: CTAs that share an SM. ``registers``: registers of a consumer thread after
    ``setmaxnreg``; the producer is then a whole warpgroup that gives up its own. 0: no
    reallocation.
    """

    layout: str
    bm: int
    bn: int
    bk: int
    consumers: int
    stages: int
    raster: int = 8
    ctas_per_sm: int = 1
    registers: int = 0
    dtype: str = "s4"
    min_arch: str = "sm_90"
    contract: Contract = int4.INT4

    cluster_m: ClassVar[int] = 1
    cluster_n: ClassVar[int] = 1
    family: ClassVar[str] = "int4_packed"
    template: ClassVar[str] = "int4/packed.cu.j2"

    def __post_init__(self) -> None:
        name = type(self).__name__
        self.check_counts("bm", "bn", "bk", "consumers", "raster", "ctas_per_sm")
        self.check_choices(
            layout=int4.LAYOUTS,
            dtype=[*int4.ELEMENTS],
            min_arch=["sm_90"],
            bk=[LINE],
        )
        tall = self.bm % 16 == 0 and self.bm <= 256
        check(tall, name, "bm is a multiple of 16 up to 256", self.bm, 256)
        wide = self.consumers * COLUMNS
        check(self.bn == wide, name, f"{COLUMNS} columns a consumer", self.bn, wide)
        self.check_ring(self.accumulators)

    # -- derived --------------------------------------------------------------
    @property
    def scale(self) -> int:
        """Factor by which the accumulators exceed the true sum: 16 for signed elements, since the
        bytes of B are 16 times its elements; else 1.
        """
        return 16 if self.signed else 1

    @property
    def a(self) -> Operand:
        """Shared-memory tile of A."""
        return Operand("a", True, self.bm, self.bk, 1, 1)

    @property
    def b(self) -> Packed:
        """Shared-memory tile of packed B."""
        if self.layout == "rcr":
            return Packed(True, self.bn, 1)
        return Packed(False, self.bk, self.consumers)

    @property
    def divided(self) -> tuple[str, int]:
        return "bn", self.bn

    @property
    def accumulators(self) -> int:
        """Accumulator registers of a consumer thread."""
        return self.fragments * self.instruction.accumulators

    @property
    def exchange_pitch(self) -> int:
        """Bytes of a row of 32 sums in a consumer warp's exchange buffer."""
        return 4 * (32 + 4)

    @property
    def exchange_bytes(self) -> int:
        """Bytes of a consumer warp's exchange buffer, through which it stores sums 16 rows at a
        time.
        """
        return 16 * self.exchange_pitch

    @property
    def grid(self) -> Expr:
        return minimum(self.tiles, self.resident_clusters)

    @property
    def cost(self) -> KernelCost:
        return KernelCost(
            slots=self.slots,
            ctas=self.tiles,
            phases=(Phase("wgmma8", ceil_div(K, self.bk), K * (self.bm * self.bn)),),
            loads=self.tiles * K * (self.bm + self.bn // 2),
            operands=M * K + ceil_div(N * K, 2),
            stores=ceil_div(M * N, 2),
        )

    @property
    def context(self) -> Mapping[str, Any]:
        return {**super().context, "packed": sys.modules[__name__]}

    @property
    def abi(self) -> Abi:
        return self.parameter_list(
            "const unsigned char*", ("ldc", "ldd"), self.maps
        )  # a, b: bases of maps

    @property
    def maps(self) -> tuple[Param, Param]:
        """Tensor maps of A's bytes and of packed B."""
        a = matrix("a", "NT", self.a.box, 1, self.a.swizzle)
        assert a.box is not None, "a map has a box"
        rcr = self.layout == "rcr"
        size = (ceil_div(K, 2), N) if rcr else (ceil_div(N, 2), K)
        b = MapBox("b", size, (LDB,), 1, self.b.box, swizzle=self.b.swizzle)
        of_a = replace(a.box, size=(ceil_div(K, 32) * 32, M)) if rcr else a.box
        return replace(a, box=of_a), replace(a, name="map_b", box=b)

    @property
    def required_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        """Index bounds that do not hold for very large sizes; ``requires`` excludes these sizes."""
        return (
            ("tile_m * BM and the rows of a tile, as coordinates", M + self.bm, COORDINATE_MAX),
            ("tile_n * BN and the columns of a tile, as coordinates", N + self.bn, COORDINATE_MAX),
            ("work + CTAs", self.tiles + self.resident_clusters, INDEX_MAX),
        )

    @property
    def requires(self) -> Expr:
        bounds = (value <= limit for _, value, limit in self.required_bounds)
        return all_of((ALIGN_B >= 16, int4.SUM_MAX // self.largest >= K, *bounds))

    @property
    def index_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        return (
            *self.required_bounds,
            ("k and the steps of a stage, as coordinates", K + self.bk, COORDINATE_MAX),
            ("ahead * BK", K + self.bk * self.stages, INDEX_MAX),
            ("GROUP * tiles_n", ceil_div(N, self.bn) * self.raster, INDEX_MAX),
            ("magnitude of an accumulator", K * self.largest, int4.SUM_MAX),
        )

    @property
    def instruction(self) -> Instruction:
        """Shape and types of the wgmma instruction."""
        return Instruction(self.bm, "s8" if self.signed else "u8", held=True)

    @property
    def expects(self) -> tuple[Expect, ...]:
        product = f"wgmma.mma_async.sync.aligned.{self.instruction}"
        return (Expect(product, ("mma.*", "wgmma.mma_async.*")), *super().expects)

    def describe(self) -> tuple[str, ...]:
        return self.described(
            f"D[M, N] = epilogue(A . B), layout {self.layout}, {self.dtype}, A's as bytes; CTA "
            f"tile {self.bm} x {self.bn} x {self.bk}, {self.threads} threads, {self.shared_bytes} "
            "bytes of shared memory",
            f"{self.consumers} consumer warpgroup(s) of {self.fragments} x m64n{self.bm}k32, "
            f"{self.stages} stages; sums times {self.scale}",
        )
