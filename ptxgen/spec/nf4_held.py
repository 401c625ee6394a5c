"""The nf4_held family: products with NF4 weights by wgmma, whose operand of them is in registers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ptxgen.expr import Expr, all_of, ceil_div, minimum
from ptxgen.numerics.contract import ITEMSIZE, TC16, TIERS, Contract, K, M, N
from ptxgen.spec.abi import Abi, Param, ptr
from ptxgen.spec.base import ARCHITECTURES, INDEX_MAX, WARP, Expect, check
from ptxgen.spec.gemm import ALIGN_A, CHUNKS, MEANINGS, matrix
from ptxgen.spec.nf4_table import TABLE, Nf4TableSpec
from ptxgen.spec.wgmma import COORDINATE_MAX, WARPGROUP, Operand, Ring


@dataclass(frozen=True)
class Tile:
    """What :class:`Ring` asks of B's tile."""

    bytes: int
    name: str = "b"
    share: int = 1
    whole_panels: bool = True
    box_rows: int = 8
    rows: int = 8


@dataclass(frozen=True)
class Nf4HeldSpec(Ring, Nf4TableSpec):
    """A product by wgmma whose rows of the instruction are columns of an NF4 weight."""

    layout: str
    bm: int
    bn: int
    bk: int
    consumers: int
    stages: int
    raster: int = 8
    ctas_per_sm: int = 1
    registers: int = 0
    lag: int = 2
    dtype: str = "bf16"
    min_arch: str = "sm_90"
    contract: Contract = TC16

    cluster_m: ClassVar[int] = 1
    cluster_n: ClassVar[int] = 1
    helpers: ClassVar[int] = 4
    split: ClassVar[str] = "none"
    stream: ClassVar[str] = ""
    family: ClassVar[str] = "nf4_held"
    template: ClassVar[str] = "nf4/held.cu.j2"
    meanings: ClassVar[Mapping[str, str]] = {
        **MEANINGS,
        "lag": "stages whose copies are under way before one is awaited",
    }

    def __post_init__(self) -> None:
        name = self.name
        check(self.dtype in TIERS["tc"], name, "dtype", self.dtype, TIERS["tc"])
        check(self.bm % 16 == 0 and self.bm <= 256, name, "bm", self.bm, 256)
        check(self.bk % 64 == 0, name, "bk", self.bk, 64)
        check(self.lag <= self.stages - 2, name, "lag", self.lag, self.stages - 2)
        self.check_ring(self.accumulators)
        self.check_table()

    # -- derived --------------------------------------------------------------
    @property
    def multiplier(self) -> str:
        return "wgmma"

    @property
    def threads(self) -> int:
        return self.consumers * WARPGROUP + self.helpers * WARP

    @property
    def producer_registers(self) -> int:
        held = (self.consumers + 1) * self.launch_registers - self.consumers * self.registers
        return min(held // 8 * 8, 88)

    @property
    def strips(self) -> int:
        """Times 16 columns of a warp."""
        return self.fragments

    @property
    def divided(self) -> tuple[str, int]:
        return "bn", self.bn

    @property
    def a(self) -> Operand:
        """The tile of A."""
        return Operand("a", True, self.bm, self.bk, 1)

    @property
    def b(self) -> Any:
        """The indices and scales."""
        return Tile(-(-self.weight_bytes // 1024) * 1024)

    @property
    def accumulators(self) -> int:
        """Accumulators of a consumer's thread."""
        return self.fragments * self.bm // 2

    @property
    def exchange_pitch(self) -> int:
        """Floats of a row of a warp's columns in its exchange buffer."""
        return 16 * self.fragments + 4

    @property
    def exchange_bytes(self) -> int:
        """Shared memory through which a warp of a consumer brings its sums into rows: of 16."""
        return 16 * 4 * self.exchange_pitch

    @property
    def barriers_offset(self) -> int:
        """Where the mbarriers lie behind the ring and the warps' exchange."""
        return self.stages * self.stage_bytes + self.consumers * 4 * self.exchange_bytes

    @property
    def shared_bytes(self) -> int:
        return TABLE + self.barriers_offset + 2 * 8 * self.stages

    @property
    def tiles(self) -> Expr:
        return ceil_div(M, self.bm) * ceil_div(N, self.bn)

    @property
    def grid(self) -> Expr:
        return minimum(self.tiles, self.at_once)

    @property
    def abi(self) -> Abi:
        return Abi(
            (
                ptr("a", "const Element*"),
                ptr("data", "const unsigned char*"),
                ptr("scales", "const float*"),
                ptr("bias", "const void*", optional=True),
                ptr("c", "void*"),
                Param("ldc", "i64"),
                *(Param(name, "u32") for name in ("m", "n", "k", "flags")),
                matrix("a", "NT", self.a.box, ITEMSIZE[self.dtype], self.a.swizzle),
            )
        )

    @property
    def asked_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        """The index bounds that do not hold for all sizes."""
        return (
            ("tile_m * BM and the rows of a tile, as coordinates", M + self.bm, COORDINATE_MAX),
            ("tile_n * BN and the columns of a tile, as coordinates", N + self.bn, COORDINATE_MAX),
            ("k and the steps of a stage, as coordinates", K + self.bk, COORDINATE_MAX),
            ("work + CTAs", self.tiles + self.at_once, INDEX_MAX),
        )

    @property
    def requires(self) -> Expr:
        bounds = (value <= limit for _, value, limit in self.asked_bounds)
        return all_of((ALIGN_A >= 16, CHUNKS <= 1, *bounds))

    @property
    def index_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        band = ("GROUP * tiles_n", ceil_div(N, self.bn) * self.raster, INDEX_MAX)
        return (*self.asked_bounds, band)

    def runs_on(self, arch: str) -> bool:
        """Only on sm_90: later architectures have other instructions."""
        return ARCHITECTURES[arch].compute == ARCHITECTURES[self.min_arch].compute

    @property
    def instruction(self) -> str:
        """The form of wgmma."""
        return f"m64n{self.bm}k16.f32.{self.dtype}.{self.dtype}"

    @property
    def expects(self) -> tuple[Expect, ...]:
        product = f"wgmma.mma_async.sync.aligned.{self.instruction}"
        return (
            Expect("mul.rn.f32", ("mul.f32", "mul.ftz*")),
            Expect(product, ("mma.*", "wgmma.mma_async.*")),
            *super().expects,
        )

    def describe(self) -> tuple[str, ...]:
        return (
            f"contract {self.contract}: {self.contract.step}",
            f"C[M, N] = A . B, layout {self.layout}, {self.dtype}, B an NF4 weight; CTA tile "
            f"{self.bm} x {self.bn} x {self.bk}, {self.threads} threads, "
            f"{self.shared_bytes} bytes of shared memory",
            f"{self.consumers} consumer warpgroup(s) of {self.fragments} x m64n{self.bm}k16, "
            f"{self.stages} stages",
            f"requires {self.requires}",
            f"grid {self.grid}",
        )
