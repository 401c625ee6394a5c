"""Row-wise reductions: their problem variables, and the kernels of ``logsumexp``.

=================  ==============================================================
``ROWS, COLS``     rows, and elements of each; 1 .. 2^31 - 1
``SEGMENTS``       ceil(COLS / SEGMENT), of the contract
``SMS``            streaming multiprocessors of the device
=================  ==============================================================

Kernels are told besides: ``LDX``, elements from row to row, and ``FLAGS``.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

from ptxgen.expr import TRUE, Expr, all_of, ceil_div, minimum, var
from ptxgen.numerics import activation, rows
from ptxgen.numerics.contract import Contract
from ptxgen.numerics.dtype import DTYPES
from ptxgen.spec.abi import Abi, Param, ptr
from ptxgen.spec.base import (
    ARCHITECTURES,
    GRID_MAX,
    INDEX_MAX,
    WARP,
    WORKSPACE_MAX,
    Expect,
    KernelSpec,
    check,
)
from ptxgen.spec.effort import Workload
from ptxgen.spec.space import SIZE, SMS_MAX, Between, Space

ROWS, COLS, SEGMENTS, SMS = var("ROWS"), var("COLS"), var("SEGMENTS"), var("SMS")

SPACE = Space(
    "rows",
    (("ROWS", SIZE), ("COLS", SIZE), ("SMS", Between(1, SMS_MAX))),
    derived=(("SEGMENTS", ceil_div(COLS, rows.SEGMENT)),),
)

OUT_F32 = 1
"""The flag: the result is f32 where operands have 16 bits."""
PARTS = ("whole", "segments", "combine")
PARTIAL_BYTES = 8
"""Of a segment: its largest element and its sum, f32."""
OPERATIONS = 17
"""Of an element: its exponential, as the contract has it, and its sum."""


@dataclass(frozen=True)
class LogSumExpSpec(KernelSpec):
    """A kernel of ``logsumexp``, in CTAs of ``warps`` warps, each of which sums segments.

    ``part``: "whole" (a CTA sums a row and walks on to others), "segments" (a warp leaves a
    segment's maximum and sum in memory, which fills a GPU with few long rows) or "combine" (a warp
    joins those of a row). ``held``: segments whose sums a CTA of "whole" holds; the elements of
    longer rows it reads twice.
    """

    part: str
    warps: int = 8
    held: int = 1024
    dtype: str = "f32"
    min_arch: str = "sm_80"
    contract: Contract = rows.LSE

    family: ClassVar[str] = "lse"
    template: ClassVar[str] = "rows/logsumexp.cu.j2"
    OUT_F32: ClassVar[int] = OUT_F32
    meanings: ClassVar[Mapping[str, str]] = {
        **KernelSpec.meanings,
        "part": "what of a row it does",
        "warps": "warps of a CTA",
        "held": "segments whose sums are held at a time",
    }

    def __post_init__(self) -> None:
        check(self.part in PARTS, type(self).__name__, "part", self.part, PARTS)
        name = self.name
        check(self.dtype in ("f32", "bf16", "f16"), name, "dtype", self.dtype, [*DTYPES.values()])
        check(1 <= self.warps <= WARP, name, "warps", self.warps, f"1 .. {WARP}")
        check(self.held >= WARP, name, "segments held, a warp's at least", self.held, WARP)
        check(self.min_arch in ARCHITECTURES, name, "min_arch", self.min_arch, [*ARCHITECTURES])

    @property
    def label(self) -> str:
        return f"{self.part}_{self.dtype}_{self.warps}"

    @property
    def threads(self) -> int:
        return self.warps * WARP

    @property
    def shared_bytes(self) -> int:
        return 0

    @property
    def context(self) -> Mapping[str, Any]:
        return MappingProxyType({"activation": activation, "rows": sys.modules[rows.__name__]})

    @property
    def waits(self) -> bool:
        return self.part == "combine"

    @property
    def abi(self) -> Abi:
        typed = self.dtype != "f32"
        x = ptr("x", f"const {'Element' if typed else 'float'}* __restrict__")
        y = ptr("y", "void*" if typed else "float*")
        partial = "const float2* __restrict__" if self.part == "combine" else "float2*"
        pointers = {
            "whole": (x, y),
            "segments": (x, ptr("partial", partial)),
            "combine": (ptr("partial", partial), y),
        }[self.part]
        told = () if self.part == "combine" else (Param("ldx", "i64"),)
        return Abi((*pointers, *told, *(Param(n, "u32") for n in ("rows", "cols", "flags"))))

    @property
    def scratch(self) -> Mapping[str, Expr]:
        return {} if self.part == "whole" else {"partial": ROWS * SEGMENTS * PARTIAL_BYTES}

    @property
    def grid(self) -> Expr:
        if self.part == "whole":
            return minimum(ROWS, SMS * 8)
        if self.part == "segments":
            return ROWS * ceil_div(SEGMENTS, self.warps)
        return ceil_div(ROWS, self.warps)

    def workload(self, dtype: Hashable) -> Workload:
        return Workload(ROWS * COLS * OPERATIONS)

    @property
    def requires(self) -> Expr:
        if self.part == "whole":
            return TRUE
        return all_of((self.scratch["partial"] <= WORKSPACE_MAX, self.grid <= GRID_MAX))

    @property
    def index_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        if self.part == "whole":
            found = [
                ("row + gridDim.x", ROWS + self.grid),
                ("(first + i) * SEGMENT, and s + WARPS", COLS + rows.SEGMENT * self.warps),
                ("first + HELD", SEGMENTS + self.held),
            ]
        elif self.part == "segments":
            found = [
                ("segments + WARPS - 1", SEGMENTS + (self.warps - 1)),
                ("s * SEGMENT of the last warp", COLS + rows.SEGMENT * self.warps),
            ]
        else:
            found = [
                ("blockIdx.x * WARPS + warp", self.grid * self.warps),
                ("i + LANES", SEGMENTS + 2 * WARP),
            ]
        return tuple((text, value, INDEX_MAX) for text, value in found)

    @property
    def expects(self) -> tuple[Expect, ...]:
        return (Expect("fma.rn.f32", ("fma.*", "*mma.*")), *super().expects)

    def describe(self) -> tuple[str, ...]:
        return (
            f"contract {self.contract}: {self.contract.step}",
            f"{self.part}: CTAs {self.grid} of {self.threads} threads",
        )
