"""The nf4_wgmma family: products with NF4 weights on Hopper's tensor cores, by wgmma."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ptxgen.expr import Expr, all_of
from ptxgen.numerics.contract import ITEMSIZE
from ptxgen.spec.abi import Abi, Param, ptr
from ptxgen.spec.base import WARP, Expect, check
from ptxgen.spec.gemm import ALIGN_A, CHUNKS, MEANINGS, STRIDES, matrix
from ptxgen.spec.nf4_packed import HELPERS, Nf4GemmSpec
from ptxgen.spec.wgmma import WARPGROUP, WgmmaSpec


@dataclass(frozen=True)
class Nf4WgmmaSpec(Nf4GemmSpec, WgmmaSpec):
    """A wgmma kernel whose B is an NF4 weight, as it is stored: ``data`` and ``scales``.

    ``helpers`` warps, whole warpgroups, copy ``copied`` stages of indices ahead and widen them into
    B's part of a stage; the first of their threads has the copy engine bring A.
    """

    helpers: int = 8
    copied: int = 4

    family: ClassVar[str] = "nf4_wgmma"
    widens: ClassVar[bool] = True
    stream: ClassVar[str] = ""
    meanings: ClassVar[Mapping[str, str]] = {
        **MEANINGS,
        "helpers": HELPERS,
        "copied": "stages of indices that are copied ahead",
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        name = self.name
        check(self.ctas == 1, name, "CTAs of a cluster", self.ctas, 1)
        check(self.split == "none", name, "split", self.split, "none")
        check(self.helpers % 4 == 0, name, "helpers, whole warpgroups", self.helpers, 4)
        check(self.copied >= 2, name, "copied", self.copied, ">= 2")
        check(self.b.swizzle >= 64, name, "swizzle of B, bytes", self.b.swizzle, ">= 64")
        self.check_packed()

    # -- derived --------------------------------------------------------------
    @property
    def multiplier(self) -> str:
        return "wgmma"

    @property
    def threads(self) -> int:
        return self.consumers * WARPGROUP + self.helpers * WARP

    @property
    def producer_registers(self) -> int:
        groups = self.helpers // 4
        held = (self.consumers + groups) * self.launch_registers - self.consumers * self.registers
        return held // groups // 8 * 8

    @property
    def shared_bytes(self) -> int:
        return super().shared_bytes + self.copied * self.packed.nbytes

    @property
    def abi(self) -> Abi:
        box, item = self.a.box, ITEMSIZE[self.dtype]
        map_a = matrix("a", self.layout, box, item, self.a.swizzle, batched=True)
        return Abi(
            (
                ptr("a", "const Element*"),
                ptr("data", "const unsigned char*"),
                ptr("scales", "const float*"),
                ptr("bias", "const void*", optional=True),
                ptr("c", "void*"),
                *(Param(name, "i64") for name in ("lda", "ldc", *STRIDES)),
                *(Param(name, "u32") for name in ("m", "n", "k", "chunk", "flags")),
                *(Param(name, "u32") for name in ("inner", "batch")),
                map_a,
            )
        )

    @property
    def requires(self) -> Expr:
        bounds = (value <= limit for _, value, limit in self.asked_bounds)
        return all_of((ALIGN_A >= 16, CHUNKS <= 1, *bounds))

    @property
    def expects(self) -> tuple[Expect, ...]:
        mul = Expect("mul.rn.f32", ("mul.f32", "mul.ftz*"))
        return (mul, *super().expects)
