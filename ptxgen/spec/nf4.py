"""The nf4 family: NF4 weights brought to memory as dense ones, for the kernels of products.

==========  ==========================================================================
``BLOCKS``  blocks of 64 numbers, in the order of :mod:`ptxgen.numerics.nf4`
==========  ==========================================================================

A step says what that is in its table's space.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

from ptxgen.cost.kernel import MOVE, KernelCost
from ptxgen.expr import Expr, ceil_div, var
from ptxgen.numerics.contract import Contract
from ptxgen.numerics.dtype import ITEMSIZE
from ptxgen.numerics.nf4 import BLOCK, CODE, DEQUANTISE
from ptxgen.spec.abi import Abi, Param, ptr
from ptxgen.spec.base import Expect, check
from ptxgen.spec.prepare import PreparingSpec

BLOCKS = var("BLOCKS")
_DTYPES = ("f32", "bf16", "f16")


@dataclass(frozen=True)
class DequantiseSpec(PreparingSpec):
    """``y[b, j] = scales[b] * CODE[data[b, j]]`` for blocks b and 0 <= j < 64, densely stored.

    Rounded once to f32, then once to ``dtype``. A thread brings ``turns`` times 8 numbers; codes
    are looked up in the registers of its half warp.
    """

    dtype: str = "f32"
    cta_threads: int = 256
    turns: int = 4
    min_arch: str = "sm_80"
    contract: Contract = DEQUANTISE

    family: ClassVar[str] = "nf4"
    template: ClassVar[str] = "nf4/dequantise.cu.j2"
    meanings: ClassVar[Mapping[str, str]] = {
        **PreparingSpec.meanings,
        "dtype": "of what it writes",
        "turns": "times 8 numbers that a thread brings",
    }

    def __post_init__(self) -> None:
        name = self.name
        check(self.dtype in _DTYPES, name, "dtype", self.dtype, _DTYPES)
        self.check_threads()

    @property
    def label(self) -> str:
        return self.dtype

    @property
    def context(self) -> Mapping[str, Any]:
        return MappingProxyType({"CODE": CODE})

    @property
    def abi(self) -> Abi:
        return Abi(
            (
                ptr("data", "const unsigned* __restrict__"),
                ptr("scales", "const float* __restrict__"),
                ptr("y", "uint4*"),
                Param("blocks", "u32"),
            )
        )

    @property
    def scratch(self) -> Mapping[str, Expr]:
        return {"y": BLOCKS * (BLOCK * ITEMSIZE[self.dtype])}

    @property
    def grid(self) -> Expr:
        return ceil_div(BLOCKS * (BLOCK // 8), self.threads * self.turns)

    @property
    def cost(self) -> KernelCost:
        read = BLOCKS * (BLOCK // 2 + 4)
        return KernelCost(self.slots, self.grid, (MOVE,), read, read, self.scratch["y"])

    @property
    def expects(self) -> tuple[Expect, ...]:
        return (
            Expect("mul.rn.f32", ("mul.f32", "mul.ftz*", "fma.*")),
            Expect(f"st.global.v4.{'f32' if self.dtype == 'f32' else 'u32'}", ("st.global.[fu]*",)),
            Expect("griddepcontrol.launch_dependents", since="sm_90"),
        )

    def describe(self) -> tuple[str, ...]:
        return (
            f"contract {self.contract.implemented}: {self.contract.step}",
            f"CTAs {self.grid} of {self.threads} threads",
        )
