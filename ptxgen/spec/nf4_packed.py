"""What kernels have in common that read an NF4 weight as it is stored, and look it up themselves."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from ptxgen.expr import Expr, ceil_div
from ptxgen.numerics.contract import K, M, N
from ptxgen.numerics.nf4 import BLOCK, CODE
from ptxgen.spec.effort import Effort
from ptxgen.spec.gemm import CONTEXT, GemmSpec

LAYOUTS = ("NT", "NN")
"""Forward, and the gradient of the input."""
INDICES = 32
"""Indices of a vector of 16 bytes."""

class Nf4GemmSpec(GemmSpec):
    """A kernel of products whose B is ``data`` and ``scales``: it loads 9 bytes for 16 numbers."""

    @property
    def along_k(self) -> bool:
        """Whether the weight's rows lie along K, not along N."""
        return self.layout[1] == "T"

    @property
    def scale_block(self) -> int:
        """Indices that share a scale."""
        return BLOCK

    @property
    def context(self) -> Mapping[str, Any]:
        return MappingProxyType({**CONTEXT, "CODE": CODE})

    @property
    def batched(self) -> bool:
        return False

    @property
    def effort(self) -> Effort:
        dense = super().effort
        packed = N * K * 9 // 16
        loads = ceil_div(N, self.bn) * (M * K * 2) + ceil_div(M, self.bm) * packed
        operands = M * K * 2 + packed
        return Effort(
            dense.unit,
            dense.slots,
            dense.ctas,
            dense.steps,
            dense.products,
            loads,
            operands,
            dense.stores,
        )

    @property
    def scratch(self) -> Mapping[str, Expr]:
        return {}
