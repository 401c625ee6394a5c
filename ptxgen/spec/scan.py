"""Prefix sums of rows, contract ``scan/1``, and of exponentials, ``logscan/1``.

=================  ==============================================================
``ROWS, COLS``     rows, and elements of each; 1 .. 2^31 - 1
``ITEM``           bytes of an element
``SMS``            streaming multiprocessors of the device
=================  ==============================================================

Further scalar parameters: ``LDX``, the input's row stride in elements (the result is contiguous),
and ``FLAGS``.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, ClassVar

from ptxgen.cost.kernel import NOTHING, KernelCost, Phase
from ptxgen.expr import Expr, all_of, ceil_div, const, minimum, var
from ptxgen.numerics import scan
from ptxgen.numerics.contract import Contract
from ptxgen.numerics.formula import STORED
from ptxgen.spec import formula as cuda
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
from ptxgen.spec.space import SIZE, SMS_MAX, Between, OneOf, Space

ROWS, COLS, ITEM, SMS = var("ROWS"), var("COLS"), var("ITEM"), var("SMS")
SPACE = Space(
    "scan",
    (
        ("ROWS", SIZE),
        ("COLS", SIZE),
        ("ITEM", OneOf((2, 4, 8))),
        ("SMS", Between(1, SMS_MAX)),
    ),
)
LOG_SPACE = replace(SPACE, name="logscan")
EXCLUSIVE, REVERSE = 1, 2
"""Bits of ``flags``: the scan is exclusive; it runs from the last element to the first."""


PARTS = ("whole", "totals", "carry", "apply")
CTAS = 1 << 20
"""Most CTAs of a launch for whole rows; they loop over the others."""


@dataclass(frozen=True)
class ScanSpec(KernelSpec):
    """A kernel of prefix sums. Of a CTA's ``warps`` warps, ``warps_per_row`` share a row and hold
    ``chunks_per_warp`` chunks (256 elements) each at a time; ``lanes`` lanes of a warp share a row
    shorter than a chunk.

    ``part``: "whole" (all of a row in one CTA), or one of three launches in which CTAs share a row:
    "totals" (writes the sum of each chunk to scratch memory), "carry" (a warp turns these into
    exclusive prefix sums) and "apply" (scans each chunk from its carry).
    """

    warps_per_row: int
    warps: int = 8
    chunks_per_warp: int = 4
    part: str = "whole"
    lanes: int = WARP
    dtype: str = "bf16"
    min_arch: str = "sm_80"
    contract: Contract = scan.SCAN

    family: ClassVar[str] = "scan"
    template: ClassVar[str] = "scan/scan.cu.j2"
    shared_bytes: ClassVar[int] = 0
    numbers: ClassVar[int] = 1
    """Values in a partial sum: 1, or 2 for a logarithm of a sum of exponentials."""
    EXCLUSIVE: ClassVar[int] = EXCLUSIVE
    REVERSE: ClassVar[int] = REVERSE
    meanings: ClassVar[Mapping[str, str]] = {
        **KernelSpec.meanings,
        "warps_per_row": "warps that share a row",
        "warps": "warps of a CTA",
        "chunks_per_warp": "chunks a warp holds at a time",
        "part": "step: whole (all of a row), totals (of chunks), carry or apply",
        "lanes": "lanes of a warp that share a row",
    }

    def __post_init__(self) -> None:
        name = type(self).__name__
        check(self.warps <= WARP, name, "warps", self.warps, WARP)
        check(self.part in PARTS, name, "part", self.part, PARTS)
        shares = (1, self.warps) if self.part == "whole" else (self.warps,)
        check(self.warps_per_row in shares, name, "warps of a row", self.warps_per_row, shares)
        alone = self.warps_per_row == self.chunks_per_warp == 1 and self.part == "whole"
        check(alone or self.lanes == WARP, name, "lanes of a row", self.lanes, WARP)
        check(self.min_arch in ARCHITECTURES, name, "min_arch", self.min_arch, [*ARCHITECTURES])

    @property
    def label(self) -> str:
        part = "" if self.part == "whole" else f"{self.part}_"
        share = self.warps_per_row if self.lanes == WARP else f"{self.lanes}of{WARP}"
        return f"{part}{self.dtype}_{share}x{self.chunks_per_warp}"

    @property
    def threads(self) -> int:
        return self.warps * WARP

    @property
    def computed(self) -> str:
        """Dtype in which sums are accumulated."""
        return STORED[self.dtype]

    @property
    def state(self) -> str:
        """C++ type of a partial sum of the scan."""
        return cuda.CTYPES[self.computed]

    @property
    def context(self) -> Mapping[str, Any]:
        found = {
            "T": cuda.STORAGE[self.dtype],
            "C": self.state,
            "scan": sys.modules[scan.__name__],
            "formula": None,
            "functions": lambda _: (),
        }
        return MappingProxyType(found)

    @property
    def abi(self) -> Abi:
        element = cuda.STORAGE[self.dtype]
        x, y = ptr("x", f"const {element}*"), ptr("y", f"{element}*")
        sums = ptr("sums", f"{self.state}*")
        cols = Param("cols", "u32")
        if self.part == "carry":
            return Abi((sums, cols))
        scalars = Param("ldx", "i64"), cols, Param("flags", "u32")
        if self.part == "whole":
            return Abi((x, y, *scalars, Param("rows", "u32")))
        return Abi(((x, sums) if self.part == "totals" else (x, sums, y)) + scalars)

    @property
    def resident(self) -> int:
        """Resident CTAs per SM, the second argument of ``__launch_bounds__``."""
        few = self.chunks_per_warp <= 2 and self.computed in ("f32", "i32")
        return max(1, (32 if few else 16) // self.warps)

    @property
    def scratch(self) -> Mapping[str, Expr]:
        size = self.numbers * (4 if self.computed == "f32" else 8)
        return {} if self.part == "whole" else {"sums": ROWS * ceil_div(COLS, scan.CHUNK) * size}

    @property
    def rows(self) -> int:
        """Rows that a CTA scans at a time."""
        return self.threads // (self.warps_per_row * self.lanes)

    @property
    def grid(self) -> Expr:
        if self.part == "whole":
            return minimum(ceil_div(ROWS, self.rows), const(CTAS))
        if self.part == "carry":
            return ROWS
        return ROWS * ceil_div(COLS, scan.CHUNK * self.warps * self.chunks_per_warp)

    @property
    def cost(self) -> KernelCost | None:
        moved, chunks = ROWS * COLS * ITEM, ceil_div(COLS, scan.CHUNK)
        if self.part == "carry":
            return KernelCost(
                32, ROWS, (Phase("fma", ceil_div(chunks, WARP), NOTHING),), *[NOTHING] * 3
            )
        tile = self.warps_per_row * self.chunks_per_warp
        turns = ceil_div(chunks, tile) if self.part == "whole" else const(1)
        ctas = ceil_div(ROWS, self.rows) if self.part == "whole" else self.grid
        step = Phase("fma", turns, turns * (tile * scan.CHUNK * self.rows))
        stores = moved if self.part != "totals" else NOTHING
        return KernelCost(self.resident, ctas, (step,), moved, moved, stores)

    @property
    def requires(self) -> Expr:
        if self.part == "whole":
            short = self.lanes < WARP
            return COLS <= self.lanes * scan.GROUP if short else ROWS >= 1
        return all_of((self.grid <= GRID_MAX, self.scratch["sums"] <= WORKSPACE_MAX))

    @property
    def waits(self) -> bool:
        return self.part in ("carry", "apply")

    @property
    def expects(self) -> tuple[Expect, ...]:
        return (*super().expects, Expect("shfl"))

    @property
    def index_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        step = self.grid * self.rows if self.part == "whole" else const(0)
        found = (
            ("r + gridDim.x", ROWS + step),
            ("begin + TILE", COLS + 2 * scan.CHUNK * self.warps * self.chunks_per_warp),
        )
        return tuple((text, value, INDEX_MAX) for text, value in found)

    def describe(self) -> tuple[str, ...]:
        return (
            f"contract {self.contract}: {self.contract.step}",
            f"{self.part}: {self.warps_per_row} of {self.warps} warps have a row; CTAs {self.grid}",
        )


@dataclass(frozen=True)
class LogScanSpec(ScanSpec):
    """A kernel of logarithms of prefix sums of exponentials; its partial sums are pairs of
    values.
    """

    contract: Contract = scan.LOGSCAN

    family: ClassVar[str] = "scan_log"
    legible: ClassVar[bool] = False  # the texts of ScanSpec show the same code
    numbers: ClassVar[int] = 2

    @property
    def state(self) -> str:
        return "Pair"

    @property
    def context(self) -> Mapping[str, Any]:
        found = {"formula": scan.formula(self.computed), "functions": cuda.functions}
        return MappingProxyType({**super().context, **found, "W": cuda.CTYPES[self.computed]})

    @property
    def cost(self) -> None:
        """No cost: routes are tried in order."""

    @property
    def resident(self) -> int:
        return max(1, (16 if self.computed == "f32" else 8) // self.warps)
