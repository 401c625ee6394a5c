"""Products of 4-bit integers on Hopper's tensor cores: operands become bytes in scratch memory, and
wgmma multiplies these.

Rows of the copies have k contiguous, and are :func:`pitch` bytes apart, so that the copy engine
takes them whatever the operands are aligned to.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, ClassVar

from ptxgen.expr import Expr, all_of, ceil_div, const, maximum, minimum
from ptxgen.numerics import activation, int4
from ptxgen.numerics.contract import COPY, Contract, K, M, N
from ptxgen.spec import int4 as problems
from ptxgen.spec.abi import Abi, MapBox, Param, ptr
from ptxgen.spec.base import ARCHITECTURES, INDEX_MAX, SCRATCH_MAX, WARP, Expect, KernelSpec, check
from ptxgen.spec.effort import Effort
from ptxgen.spec.gemm import ALIGN_B, LDB, MEANINGS, SMS, matrix
from ptxgen.spec.wgmma import COORDINATE_MAX, Operand, Packed, Ring

LINE = 128
"""Bytes that rows of copies are multiples of, and k's of a step of the ring."""

COLUMNS = 128
"""Columns of a consumer that reads a packed B: two pieces of 64."""


def pitch(k: Expr) -> Expr:
    """Bytes from row to row of a copy whose rows have ``k`` elements."""
    return maximum(ceil_div(k, LINE), 1) * LINE


class _Elements:
    """What the element ``dtype`` means."""

    dtype: str

    @property
    def element(self) -> int4.Element:
        """What elements may be."""
        return int4.ELEMENTS[self.dtype]

    @property
    def signed(self) -> bool:
        """Whether elements have a sign."""
        return self.element.low < 0


@dataclass(frozen=True)
class UnpackSpec(_Elements, KernelSpec):
    """A [M, K/2] and B [N, K/2], packed, as bytes: ``y0`` [M, pitch] and ``y1`` [N, pitch].

    Rows start anywhere. A thread brings ``turns`` vectors of 16 elements; what follows the last
    vector of a row is not written. ``operands``: "ab", or "a" alone. ``apart``: of every 32 k's,
    the even ones come first, then the odd ones.
    """

    dtype: str = "s4"
    operands: str = "ab"
    apart: bool = False
    cta_threads: int = 256
    turns: int = 4
    min_arch: str = "sm_90"
    contract: Contract = COPY

    family: ClassVar[str] = "unpack"
    template: ClassVar[str] = "int4/unpack.cu.j2"
    prepares: ClassVar[bool] = True
    turned: ClassVar[bool] = False
    meanings: ClassVar[Mapping[str, str]] = {
        **KernelSpec.meanings,
        "apart": "whether even and odd k's are told apart",
        "cta_threads": "threads of a CTA",
        "operands": "what is unpacked",
        "turns": "vectors of 16 elements that a thread brings",
    }

    def __post_init__(self) -> None:
        name = self.name
        check(self.dtype in int4.ELEMENTS, name, "dtype", self.dtype, [*int4.ELEMENTS])
        check(self.operands in ("ab", "a"), name, "operands", self.operands, ("ab", "a"))
        check(self.cta_threads % WARP == 0, name, "whole warps", self.cta_threads, WARP)
        check(self.turns >= 1, name, "turns", self.turns, ">= 1")
        check(self.min_arch in ARCHITECTURES, name, "min_arch", self.min_arch, [*ARCHITECTURES])

    @property
    def label(self) -> str:
        return self.dtype

    @property
    def threads(self) -> int:
        return self.cta_threads

    @property
    def shared_bytes(self) -> int:
        return 0

    @property
    def context(self) -> Mapping[str, Any]:
        return MappingProxyType({"int8": sys.modules[__name__]})

    @property
    def both(self) -> bool:
        """Whether B is unpacked, too."""
        return self.operands == "ab"

    @property
    def abi(self) -> Abi:
        kinds = ("const unsigned char* __restrict__", "unsigned char*")
        which = range(len(self.operands))
        return Abi(
            (
                *(ptr(f"{x}{i}", kind) for i in which for x, kind in zip("xy", kinds, strict=True)),
                *(Param(f"ld{x}", "i64") for x in self.operands),
                *(Param(name, "u32") for name in "mnk" if self.both or name != "n"),
            )
        )

    @property
    def scratch(self) -> Mapping[str, Expr]:
        return {f"y{i}": rows * pitch(K) for i, rows in enumerate((M, N)[: len(self.operands)])}

    @property
    def unit(self) -> int:
        """Elements of a row that are written to its end."""
        return 32 if self.apart else 16

    @property
    def of_rows(self) -> int:
        """Vectors that a CTA brings where k is contiguous."""
        return self.threads * self.turns

    def _of(self, rows: Expr) -> Expr:
        """CTAs of an operand."""
        return ceil_div(rows * ceil_div(K, self.unit) * (self.unit // 16), self.of_rows)

    @property
    def of_b(self) -> Expr:
        """CTAs of B."""
        return self._of(N)

    @property
    def grid(self) -> Expr:
        return self._of(M) + self.of_b if self.both else self._of(M)

    @property
    def effort(self) -> Effort:
        read = (M + N if self.both else M) * ceil_div(K, 2)
        slots = 2048 // self.threads
        return Effort("fma", slots, self.grid, const(1), const(0), read, read, 2 * read)

    @property
    def requires(self) -> Expr:
        return all_of(size <= SCRATCH_MAX for size in self.scratch.values())

    @property
    def index_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        return (
            ("first + TURNS * THREADS", (self.grid + 1) * self.of_rows, INDEX_MAX),
            ("at + UNIT", K + self.unit, INDEX_MAX),
        )

    @property
    def expects(self) -> tuple[Expect, ...]:
        early = Expect("griddepcontrol.launch_dependents", since="sm_90")
        return (Expect(f"st.global.v{2 if self.apart else 4}.u32", ("st.global.u*",)), early)

    def describe(self) -> tuple[str, ...]:
        return (
            f"contract {self.contract}: {self.contract.step}",
            f"elements of {self.dtype} as bytes, k's contiguous",
            f"CTAs {self.grid} of {self.threads} threads",
        )


@dataclass(frozen=True)
class UnpackTurnedSpec(UnpackSpec):
    """The same of B [K, N/2], which it turns: a CTA brings LINE x LINE elements of that.

    A thread has 4 k's of 16 columns, of which it makes a word for each column; words go through
    shared memory, from where 16 k's of a column are written at once.
    """

    family: ClassVar[str] = "unpack_turned"
    turned: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        needed = LINE // 4 * (LINE // 16)
        check(self.threads == needed, self.name, "threads of a tile", self.threads, needed)
        plain = self.both and not self.apart
        check(plain, self.name, "both operands, in order", self.operands, "ab")

    @property
    def shared_bytes(self) -> int:
        return LINE * LINE

    @property
    def of_b(self) -> Expr:
        return ceil_div(K, LINE) * ceil_div(N, LINE)

    @property
    def index_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        tiles = ("tiles of B", self.of_b, INDEX_MAX)
        edges = (
            (f"{x} of a tile's end", size + LINE, INDEX_MAX) for x, size in (("k", K), ("n", N))
        )
        return (*super().index_bounds, tiles, *edges)


@dataclass(frozen=True)
class Int8Spec(Ring, _Elements, KernelSpec):
    """A product of 4-bit integers whose operands are bytes, K-major, through wgmma.

    A CTA computes ``bm`` x ``bn`` outputs with ``consumers`` warpgroups, one above the other, and a
    warp that has the copy engine fill a ring of ``stages`` stages of ``bk`` k's. A cluster of
    ``cluster_m`` x ``cluster_n`` CTAs shares what it loads. The grid is bounded, and clusters walk
    over the tiles, in bands of ``raster`` rows of (clusters') tiles. ``registers``: those of a
    consumer's thread after reallocation, for which the producer is a warpgroup that gives up its
    own; 0: as launched.
    """

    bm: int
    bn: int
    bk: int
    consumers: int
    stages: int
    cluster_m: int = 1
    cluster_n: int = 1
    raster: int = 8
    ctas_per_sm: int = 1
    registers: int = 0
    dtype: str = "s4"
    min_arch: str = "sm_90"
    contract: Contract = int4.INT4

    family: ClassVar[str] = "int8"
    template: ClassVar[str] = "int4/wgmma.cu.j2"
    meanings: ClassVar[Mapping[str, str]] = MEANINGS

    def __post_init__(self) -> None:
        name = type(self).__name__
        for what in (
            "bm",
            "bn",
            "bk",
            "consumers",
            "cluster_m",
            "cluster_n",
            "raster",
            "ctas_per_sm",
        ):
            check(getattr(self, what) >= 1, name, what, getattr(self, what), ">= 1")
        for what, legal in (("dtype", [*int4.ELEMENTS]), ("min_arch", ["sm_90"])):
            check(getattr(self, what) in legal, name, what, getattr(self, what), legal)
        wide = self.bn % 64 == 0 and self.bn <= 256
        check(wide, name, "bn is a multiple of 64 up to 256", self.bn, 256)
        check(self.bk % LINE == 0, name, f"bk is a multiple of {LINE}", self.bk, LINE)
        self.check_ring(self.accumulators)

    # -- derived --------------------------------------------------------------
    @property
    def label(self) -> str:
        return f"{self.dtype}_{self.bm}x{self.bn}x{self.bk}"

    @property
    def a(self) -> Operand:
        """The tile of A."""
        return Operand("a", True, self.bm, self.bk, self.cluster_n, 1)

    @property
    def b(self) -> Operand | Packed:
        """The tile of B."""
        return Operand("b", True, self.bn, self.bk, self.cluster_m, 1)

    @property
    def accumulators(self) -> int:
        """Accumulators of a consumer's thread."""
        return self.fragments * self.bn // 2

    @property
    def largest(self) -> int:
        """The largest magnitude that a step of k may add to an accumulator."""
        return self.element.product

    @property
    def exchange_pitch(self) -> int:
        """Bytes of a row of 32 sums in the shared memory of a consumer's warp."""
        return 4 * (32 + 8)

    @property
    def exchange_bytes(self) -> int:
        """Shared memory through which a warp of a consumer brings its sums into rows: of 16."""
        return 16 * self.exchange_pitch

    @property
    def barriers_offset(self) -> int:
        """Where the mbarriers lie in shared memory: behind the ring and the warps' exchange."""
        return self.stages * self.stage_bytes + self.consumers * 4 * self.exchange_bytes

    @property
    def shared_bytes(self) -> int:
        return self.barriers_offset + 2 * 8 * self.stages

    @property
    def tiles(self) -> Expr:
        """Clusters' tiles."""
        return ceil_div(M, self.bm * self.cluster_m) * ceil_div(N, self.bn * self.cluster_n)

    @property
    def grid(self) -> Expr:
        return minimum(self.tiles, self.at_once) * self.ctas

    @property
    def waits(self) -> bool:
        return True

    @property
    def effort(self) -> Effort:
        high, wide = self.cluster_m, self.cluster_n
        return Effort(
            unit="wgmma8",
            slots=self.slots,
            ctas=self.tiles * self.ctas,
            steps=ceil_div(K, self.bk),
            products=K * (self.bm * self.bn),
            loads=self.tiles * K * (self.bm * high + self.bn * wide),
            operands=(M + N) * K,
            stores=ceil_div(M * N, 2),
        )

    @property
    def context(self) -> Mapping[str, Any]:
        return MappingProxyType(
            {
                "activation": activation,
                "int4": problems,
                "int8": sys.modules[__name__],
                "numbers": int4,
            }
        )

    @property
    def abi(self) -> Abi:
        return Abi(
            (
                *(ptr(x, "const unsigned char*") for x in "ab"),  # the maps'
                ptr("c", "const unsigned char*", optional=True),  # which d may be
                ptr("bias", "const void* __restrict__", optional=True),
                ptr("d", "void*"),
                *(Param(name, "i64") for name in ("ldc", "ldd")),
                *(Param(name, "u32") for name in ("m", "n", "k", "flags")),
                *(Param(name, "f32") for name in ("alpha", "beta")),
                *self.maps,
            )
        )

    @property
    def maps(self) -> tuple[Param, ...]:
        """The tensor maps."""
        a, b = (
            matrix(x, "NT", side.box, 1, side.swizzle) for x, side in (("a", self.a), ("b", self.b))
        )
        return a, b

    @property
    def asked_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        """The index bounds that do not hold for all sizes."""
        high, wide = self.bm * self.cluster_m, self.bn * self.cluster_n
        return (
            ("tile_m * BM and the rows of a tile, as coordinates", M + high, COORDINATE_MAX),
            ("tile_n * BN and the columns of a tile, as coordinates", N + wide, COORDINATE_MAX),
            ("work + clusters", self.tiles + self.at_once, INDEX_MAX),
        )

    @property
    def requires(self) -> Expr:
        bounds = (value <= limit for _, value, limit in self.asked_bounds)
        return all_of((SMS >= self.ctas, *bounds))

    @property
    def index_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        wide = self.bn * self.cluster_n
        return (
            *self.asked_bounds,
            ("k and the steps of a stage, as coordinates", K + self.bk, COORDINATE_MAX),
            ("GROUP * tiles_n", ceil_div(N, wide) * self.raster, INDEX_MAX),
            ("magnitude of an accumulator", K * self.largest, int4.SUM_MAX),
        )

    def runs_on(self, arch: str) -> bool:
        """Only on sm_90: later architectures have other instructions."""
        return ARCHITECTURES[arch].compute == ARCHITECTURES[self.min_arch].compute

    @property
    def instruction(self) -> str:
        """The form of wgmma."""
        byte = "s8" if self.signed else "u8"
        return f"m64n{self.bn}k32.s32.{byte}.{byte}"

    @property
    def expects(self) -> tuple[Expect, ...]:
        product = f"wgmma.mma_async.sync.aligned.{self.instruction}"
        return (Expect(product, ("mma.*", "wgmma.mma_async.*")), *super().expects)

    def describe(self) -> tuple[str, ...]:
        return (
            f"contract {self.contract}: {self.contract.step}",
            f"D[M, N] = epilogue(A . B) of unpacked {self.dtype}, K-major; CTA tile {self.bm} x "
            f"{self.bn} x {self.bk}, {self.threads} threads, {self.shared_bytes} bytes of shared "
            "memory",
            f"{self.consumers} consumer warpgroup(s) of {self.fragments} x m64n{self.bn}k32, "
            f"{self.stages} stages, clusters of {self.cluster_m} x {self.cluster_n}",
            f"requires {self.requires}",
            f"grid {self.grid}",
        )


@dataclass(frozen=True)
class PackedSpec(Int8Spec):
    """The same with B as it is, packed: registers get its elements as bytes, and so rows of the
    instruction are columns of B. Where rows are few, A is small beside B.

    A warp has 32 columns, and a lane 4 neighbours of these. Bytes of B have k's by twos: layout
    "rcr" takes an A whose even and odd k's are apart (:attr:`UnpackSpec.apart`).
    """

    layout: str = "rcr"

    family: ClassVar[str] = "packed"
    template: ClassVar[str] = "int4/packed.cu.j2"
    meanings: ClassVar[Mapping[str, str]] = {**MEANINGS, **problems.Int4Spec.meanings}

    def __post_init__(self) -> None:
        name = type(self).__name__
        for what, legal in (
            ("layout", int4.LAYOUTS),
            ("dtype", [*int4.ELEMENTS]),
            ("min_arch", ["sm_90"]),
            ("bk", [LINE]),
            ("cluster_m", [1]),
            ("cluster_n", [1]),
        ):
            check(getattr(self, what) in legal, name, what, getattr(self, what), legal)
        tall = self.bm % 16 == 0 and 16 <= self.bm <= 256
        check(tall, name, "bm is a multiple of 16 up to 256", self.bm, 256)
        wide = self.consumers * COLUMNS
        check(self.bn == wide, name, f"{COLUMNS} columns a consumer", self.bn, wide)
        self.check_ring(self.accumulators)

    # -- derived --------------------------------------------------------------
    @property
    def label(self) -> str:
        return f"{self.layout}_{super().label}"

    @property
    def b(self) -> Packed:
        """The tile of B."""
        if self.layout == "rcr":
            return Packed(True, self.bn, 1)
        return Packed(False, self.bk, self.consumers)

    @property
    def divided(self) -> tuple[str, int]:
        return "bn", self.bn

    @property
    def accumulators(self) -> int:
        return self.fragments * self.bm // 2

    @property
    def exchange_pitch(self) -> int:
        """Bytes of a row of 32 sums in the shared memory of a consumer's warp."""
        return 4 * (32 + 4)

    @property
    def scale(self) -> int:
        """What the accumulators hold, as a multiple of the sum."""
        return 16 if self.signed else 1

    @property
    def largest(self) -> int:
        """The largest magnitude that a step of k may add to an accumulator."""
        return self.element.product * self.scale

    @property
    def instruction(self) -> str:
        byte = "s8" if self.signed else "u8"
        return f"m64n{self.bm}k32.s32.{byte}.{byte}"

    @property
    def effort(self) -> Effort:
        return replace(
            super().effort,
            loads=self.tiles * K * (self.bm + self.bn // 2),
            operands=M * K + N * ceil_div(K, 2),
        )

    @property
    def maps(self) -> tuple[Param, ...]:
        """The tensor maps: B's is of bytes."""
        a, b = matrix("a", "NT", self.a.box, 1, self.a.swizzle), self.b
        assert a.box is not None, "a map has a box"
        half = ceil_div(K, 2)
        apart = replace(a.box, size=(ceil_div(K, 32) * 32, M))
        size = (half, N) if self.layout == "rcr" else (ceil_div(N, 2), K)
        packed = MapBox("b", size, (LDB,), 1, *b.box, swizzle=b.swizzle)
        return (
            replace(a, box=apart) if self.layout == "rcr" else a,
            replace(a, name="map_b", box=packed),
        )

    @property
    def requires(self) -> Expr:
        return all_of((super().requires, ALIGN_B >= 16, int4.SUM_MAX // self.largest >= K))
