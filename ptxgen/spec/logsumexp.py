"""Row-wise reductions: their problem variables, and the kernels of ``logsumexp``.

=================  ==============================================================
``ROWS, COLS``     rows, and elements of each; 1 .. 2^31 - 1
``SEGMENTS``       ceil(COLS / SEGMENT), of the contract
``SMS``            streaming multiprocessors of the device
=================  ==============================================================

Further scalar parameters: ``LDX``, the row stride in elements, and ``FLAGS``.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

from ptxgen.cost.kernel import Roofline
from ptxgen.expr import TRUE, Expr, all_of, ceil_div, var
from ptxgen.numerics import activation, logsumexp
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
from ptxgen.spec.space import SIZE, SMS_MAX, Between, Space

ROWS, COLS, SEGMENTS, SMS = var("ROWS"), var("COLS"), var("SEGMENTS"), var("SMS")

SPACE = Space(
    "rows",
    (("ROWS", SIZE), ("COLS", SIZE), ("SMS", Between(1, SMS_MAX))),
    derived=(("SEGMENTS", ceil_div(COLS, logsumexp.SEGMENT)),),
)

OUT_F32 = 1
"""Bit of ``flags``: the result is f32 where operands have 16 bits."""
PARTS = ("short", "whole", "segments", "combine")
PIECES = logsumexp.SEGMENT // (logsumexp.LANES * logsumexp.GROUP)
"""Groups of :data:`ptxgen.numerics.logsumexp.GROUP` elements of a segment that a lane sums."""
PARTIAL_BYTES = 8
"""Bytes of a segment's partial result: its maximum and its sum, f32."""
OPERATIONS = 17
"""Operations for each element: its exponential, as the contract computes it, and its addition."""


@dataclass(frozen=True)
class LogSumExpSpec(KernelSpec):
    """A kernel of ``logsumexp``, in CTAs of ``warps`` warps, each of which sums segments.

    ``part``: "short" (a warp sums ``rows_per_warp`` rows of one segment, a lane ``groups_per_lane``
    groups of each), "whole" (a CTA sums a row), "segments" (a warp writes one segment's maximum and
    sum to scratch memory, so that few long rows fill the GPU) or "combine" (a warp combines those
    of a row). ``concurrent_segments``: segments whose sums a CTA of "whole" keeps; it reads longer
    rows twice.
    """

    part: str
    warps: int = 8
    rows_per_warp: int = 1
    groups_per_lane: int = PIECES
    concurrent_segments: int = 1024
    dtype: str = "f32"
    min_arch: str = "sm_80"
    contract: Contract = logsumexp.LSE

    family: ClassVar[str] = "logsumexp"
    template: ClassVar[str] = "logsumexp/logsumexp.cu.j2"
    OUT_F32: ClassVar[int] = OUT_F32
    meanings: ClassVar[Mapping[str, str]] = {
        **KernelSpec.meanings,
        "part": "step: short or whole (all of a row), segments (one) or combine (a row's)",
        "warps": "warps of a CTA",
        "rows_per_warp": "rows that a warp sums",
        "groups_per_lane": "groups of 4 elements of a segment that a lane sums",
        "concurrent_segments": "segments whose sums a CTA holds at a time",
    }

    def __post_init__(self) -> None:
        check(self.part in PARTS, type(self).__name__, "part", self.part, PARTS)
        name = self.name
        check(self.dtype in ("f32", "bf16", "f16"), name, "dtype", self.dtype, [*DTYPES.values()])
        check(1 <= self.warps <= WARP, name, "warps", self.warps, f"1 .. {WARP}")
        check(
            self.concurrent_segments >= WARP,
            name,
            "segments held, a warp's at least",
            self.concurrent_segments,
            WARP,
        )
        short = self.rows_per_warp > 1 or self.capacity < logsumexp.SEGMENT
        check(self.part == "short" or not short, name, "rows of a warp", self.rows_per_warp, 1)
        check(
            self.rows_per_warp in (1, 2, 4), name, "rows of a warp", self.rows_per_warp, (1, 2, 4)
        )
        check(self.min_arch in ARCHITECTURES, name, "min_arch", self.min_arch, [*ARCHITECTURES])

    @property
    def label(self) -> str:
        shape = f"{self.capacity}x{self.rows_per_warp}" if self.part == "short" else f"{self.warps}"
        return f"{self.part}_{self.dtype}_{shape}"

    @property
    def capacity(self) -> int:
        """Elements of a row that a warp holds at a time."""
        return self.groups_per_lane * logsumexp.LANES * logsumexp.GROUP

    @property
    def ctas_per_sm(self) -> int:
        """Resident CTAs per SM, so that a thread has 64 registers."""
        return 1024 // self.threads

    @property
    def threads(self) -> int:
        return self.warps * WARP

    @property
    def shared_bytes(self) -> int:
        return 0

    @property
    def context(self) -> Mapping[str, Any]:
        return MappingProxyType({"activation": activation, "rows": sys.modules[logsumexp.__name__]})

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
            "short": (x, y),
            "whole": (x, y),
            "segments": (x, ptr("partial", partial)),
            "combine": (ptr("partial", partial), y),
        }[self.part]
        pitch = () if self.part == "combine" else (Param("ldx", "i64"),)
        return Abi((*pointers, *pitch, *(Param(n, "u32") for n in ("rows", "cols", "flags"))))

    @property
    def scratch(self) -> Mapping[str, Expr]:
        alone = self.part in ("short", "whole")
        return {} if alone else {"partial": ROWS * SEGMENTS * PARTIAL_BYTES}

    @property
    def grid(self) -> Expr:
        if self.part == "whole":
            return ROWS
        if self.part == "short":
            return ceil_div(ROWS, self.warps * self.rows_per_warp)
        if self.part == "segments":
            return ROWS * ceil_div(SEGMENTS, self.warps)
        return ceil_div(ROWS, self.warps)

    def roofline(self, dtype: Hashable) -> Roofline:
        return Roofline(ROWS * COLS * OPERATIONS)

    @property
    def requires(self) -> Expr:
        if self.part == "whole":
            return TRUE
        if self.part == "short":
            return COLS <= self.capacity
        return all_of((self.scratch["partial"] <= WORKSPACE_MAX, self.grid <= GRID_MAX))

    @property
    def index_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        if self.part == "short":
            found = [
                ("first + ROWS of the last warp", ROWS + self.warps * self.rows_per_warp),
                ("first + i * STRIDE", COLS + logsumexp.SEGMENT),
            ]
        elif self.part == "whole":
            found = [
                (
                    "(first + i) * SEGMENT, and s + WARPS",
                    COLS + logsumexp.SEGMENT * (self.warps + 1),
                ),
                ("first + HELD", SEGMENTS + self.concurrent_segments),
            ]
        elif self.part == "segments":
            found = [
                ("segments + WARPS - 1", SEGMENTS + (self.warps - 1)),
                ("s * SEGMENT of the last warp", COLS + logsumexp.SEGMENT * (self.warps + 1)),
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
