"""Products with quantized weights by wgmma, whose decoded weight is an operand in registers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ptxgen.expr import Expr, ceil_div
from ptxgen.numerics.contract import TC16, TIERS, Contract, K, M, N
from ptxgen.numerics.weight_format import WeightFormat
from ptxgen.spec.abi import Abi, MapBox, Param
from ptxgen.spec.base import INDEX_MAX, WARPGROUP, Expect, check
from ptxgen.spec.gemm import CHUNKS, MEANINGS, matrix
from ptxgen.spec.quantized import FORMAT, LOOKED_UP
from ptxgen.spec.quantized_packed import QuantizedTilesSpec
from ptxgen.spec.wgmma import Instruction, Operand


@dataclass(frozen=True)
class QuantizedHeldSpec(QuantizedTilesSpec):
    """A wgmma kernel for some rows: C[M, N] = A[M, K] . B[N, K]^T, B a quantized weight of 4 or 8
    bits as it is stored.

    wgmma computes C^T: B's rows are the instruction's 64 rows, whose operand may be in registers. A
    thread copies tiles of A and of codes by TMA; each of the ``bn`` / 64 warpgroups decodes 64 rows
    of B, half a stage at a time, while its last products run. One CTA a tile, or with ``split``
    "workspace" a tile and chunk; a reduce kernel then adds the chunks in order.
    """

    layout: str
    bm: int
    bn: int
    bk: int
    stages: int
    split: str = "none"
    ctas_per_sm: int = 1
    dtype: str = "bf16"
    min_arch: str = "sm_90"
    contract: Contract = TC16
    format: WeightFormat = LOOKED_UP[0]

    max_arch: ClassVar[str] = "sm_90"
    teams: ClassVar[int | None] = None
    copy_a: ClassVar[str | None] = None
    block: ClassVar[int] = 128
    """Number that divides the length of chunks: k's of a stage and of a scale, at most."""
    family: ClassVar[str] = "quantized_held"
    template: ClassVar[str] = "quantized/held.cu.j2"
    meanings: ClassVar[Mapping[str, str]] = {**MEANINGS, "format": FORMAT}

    def __post_init__(self) -> None:
        self.check_counts("bm", "bn", "bk", "stages", "ctas_per_sm")
        name = self.name
        self.check_choices(layout=("NT",), dtype=TIERS["tc"], split=("none", "workspace"))
        check(self.min_arch == "sm_90", name, "min_arch", self.min_arch, "sm_90")
        check(self.bm % 8 == 0, name, "8 divides bm", 8, self.bm)
        check(self.bn % 64 == 0, name, "64 divides bn", 64, self.bn)
        check(self.bm <= 256, name, "rows of wgmma's second operand", self.bm, 256)
        check(self.bk in (64, 128), name, "bk", self.bk, (64, 128))
        check(self.stages >= 3, name, "stages", self.stages, ">= 3")
        held = self.bm // 2 + self.bk // 4  # accumulators, operands
        self.check_resources(held + 24, "accumulators, operands", self.ctas_per_sm)

    @property
    def threads(self) -> int:
        return self.bn // 64 * WARPGROUP

    @property
    def a(self) -> Operand:
        """Tile of A in shared memory."""
        return Operand("a", True, self.bm, self.bk, 1)

    @property
    def instruction(self) -> Instruction:
        """Form of the wgmma instruction."""
        return Instruction(self.bm, self.dtype, held=True)

    @property
    def row_bytes(self) -> int:
        """Bytes of a row of codes in a stage, which is the width of its swizzle."""
        return self.bk * self.format.bits // 8

    @property
    def swizzle_row(self) -> str:
        """C++ expression of a row's number in the swizzle pattern, from its lane's ``g``."""
        return {128: "g", 64: "g >> 1", 32: "g >> 2"}[self.row_bytes]

    @property
    def stage_bytes(self) -> int:
        """Bytes of a stage: tiles of A and of codes."""
        return self.a.bytes + self.bn * self.row_bytes

    @property
    def exchange_pitch(self) -> int:
        """Row pitch of the sums in shared memory, in floats."""
        return self.bn + 4

    @property
    def barriers_at(self) -> int:
        """Offset of the mbarriers in shared memory, behind the ring and the decoder's table, whose
        place the sums take.
        """
        sums = 4 * self.bm * self.exchange_pitch
        return max(-(-sums // 16) * 16, self.stages * self.stage_bytes + self.table_bytes)

    @property
    def shared_bytes(self) -> int:
        return self.barriers_at + 16 * self.stages

    @property
    def multiplier(self) -> str:
        return "wgmma"

    @property
    def abi(self) -> Abi:
        bits = self.format.bits
        size = (K * bits // 8, N)
        data = MapBox(
            "data", size, (K * bits // 8,), 1, (self.row_bytes, self.bn), swizzle=self.row_bytes
        )
        maps = (
            matrix("a", self.layout, (64, self.bm), 2, 128),
            Param("map_data", "map", "const __grid_constant__ TensorMap", data),
        )
        return Abi((*super().abi.params, *maps))

    @property
    def expects(self) -> tuple[Expect, ...]:
        product = Expect(f"wgmma.mma_async.sync.aligned.{self.instruction}", ("mma.*",))
        early = (Expect("griddepcontrol.launch_dependents"),) if self.partial else ()
        return (product, *early, *super().expects)

    @property
    def requires(self) -> Expr:
        return super().requires if self.partial else super().requires & (CHUNKS <= 1)

    @property
    def index_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        bounds = [
            ("m + BM - 1", M + (self.bm - 1)),
            ("n + BN - 1", N + (self.bn - 1)),
            ("m0 + BM", ceil_div(M, self.bm) * self.bm),
            ("n0 + BN", ceil_div(N, self.bn) * self.bn),
            ("k_begin + step * BK + 2 * BK", K + 2 * self.bk),
        ]
        return tuple((text, value, INDEX_MAX) for text, value in bounds)

    def describe(self) -> tuple[str, ...]:
        return self.described(
            f"C[M, N] = A . B, layout {self.layout}, {self.dtype}, B a weight of "
            f"{self.format.name}; CTA tile {self.bm} x {self.bn} x {self.bk}, {self.sizes}",
            f"{self.stages} stages; B's columns are the rows of wgmma",
        )
