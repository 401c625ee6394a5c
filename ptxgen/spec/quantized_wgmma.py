"""Products with quantized weights on Hopper's tensor cores, by wgmma."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ptxgen.expr import Expr, all_of
from ptxgen.numerics.contract import ITEMSIZE
from ptxgen.numerics.weight_format import WeightFormat
from ptxgen.spec.abi import Abi, Param
from ptxgen.spec.base import WARP, WARPGROUP, WORKSPACE_MAX, check
from ptxgen.spec.gemm import ALIGN_A, CHUNK, CHUNKS, MEANINGS, STRIDES, matrix
from ptxgen.spec.gemm.loads import Decode, Load
from ptxgen.spec.gemm.stores import PartialSums, Rows, Store
from ptxgen.spec.quantized import FORMAT, LOOKED_UP
from ptxgen.spec.quantized_packed import PRODUCERS, TEAMS, QuantizedGemmSpec
from ptxgen.spec.wgmma import WgmmaSpec


@dataclass(frozen=True)
class QuantizedWgmmaSpec(QuantizedGemmSpec, WgmmaSpec):
    """A wgmma kernel whose B is a quantized weight, as it is stored: ``data`` and ``scales``.

    ``producer_warps`` warps (whole warpgroups) copy ``index_stages`` stages of indices ahead and
    widen them into B's part of a stage; their first thread issues TMA loads of A. ``teams``: number
    of teams (whole warpgroups) of producers, which fill stages in rotation, each with
    ``index_stages`` stages of indices of its own. A team then has as many stage times as there are
    teams to widen a stage.
    """

    producer_warps: int = 8
    index_stages: int = 4
    teams: int | None = None
    format: WeightFormat = LOOKED_UP[0]

    family: ClassVar[str] = "quantized_wgmma"
    legible: ClassVar[bool] = False  # texts of wgmma and quantized_mma show the same code
    streamed: ClassVar[str] = ""
    meanings: ClassVar[Mapping[str, str]] = {
        **MEANINGS,
        "format": FORMAT,
        "producer_warps": PRODUCERS,
        "index_stages": "stages of indices that producers copy ahead",
        "teams": TEAMS,
    }

    def __post_init__(self) -> None:
        check(
            self.producer_warps >= 4, type(self).__name__, "producers", self.producer_warps, ">= 4"
        )
        super().__post_init__()
        name = self.name
        # A team waits on an mbarrier's parity, which cannot tell turns apart that differ by two.
        check(self.crews <= self.stages, name, "teams, up to stages", self.crews, self.stages)
        unit = 4 * self.crews
        check(
            self.producer_warps % unit == 0,
            name,
            "producers, whole warpgroups",
            self.producer_warps,
            unit,
        )
        check(self.index_stages >= 2, name, "index_stages", self.index_stages, ">= 2")
        self.check_packed()

    # -- parts ----------------------------------------------------------------
    @property
    def load(self) -> Load:
        return Decode()

    @property
    def store(self) -> Store:
        return PartialSums() if self.partial else Rows("batch")

    # -- derived --------------------------------------------------------------
    @property
    def threads(self) -> int:
        return self.consumers * WARPGROUP + self.producer_warps * WARP

    @property
    def producer_registers(self) -> int:
        groups = self.producer_warps // 4
        held = (self.consumers + groups) * self.launch_registers - self.consumers * self.registers
        return held // groups // 8 * 8

    @property
    def shared_bytes(self) -> int:
        return super().shared_bytes + self.crews * self.index_stages * self.packed.nbytes

    @property
    def abi(self) -> Abi:
        box, item = self.a.box, ITEMSIZE[self.dtype]
        map_a = matrix("a", self.layout, box, item, self.a.swizzle, batched=not self.partial)
        strides, counts = ((), ()) if self.partial else (STRIDES, ("inner", "batch"))
        return Abi(
            (
                *self.pointers,
                *(Param(name, "i64") for name in ("lda", "ldc", *strides)),
                *(Param(name, "u32") for name in ("m", "n", "k", "chunk", "flags", *counts)),
                map_a,
            )
        )

    @property
    def requires(self) -> Expr:
        terms = [ALIGN_A >= 16, CHUNKS <= 1]
        if self.split != "none":
            terms[1] |= (CHUNK % self.bk).eq(0)
        if self.partial:
            terms.append(self.scratch["workspace"] <= WORKSPACE_MAX)
        return all_of((*terms, *(value <= limit for _, value, limit in self.required_bounds)))
