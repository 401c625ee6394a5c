"""Prefix sums of rows, contract ``scan/1``.

=================  ==============================================================
``ROWS, COLS``     rows, and elements of each; 1 .. 2^31 - 1
``SMS``            streaming multiprocessors of the device
=================  ==============================================================

Kernels are told besides: ``LDX``, elements from row to row of what is read (rows of the result are
one behind the other), and ``FLAGS``.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

from ptxgen.expr import Expr, ceil_div, minimum, var
from ptxgen.numerics import scan
from ptxgen.numerics.contract import Contract
from ptxgen.numerics.formula import STORED
from ptxgen.spec import formula as cuda
from ptxgen.spec.abi import Abi, Param, ptr
from ptxgen.spec.base import ARCHITECTURES, INDEX_MAX, WARP, Expect, KernelSpec, check
from ptxgen.spec.space import SIZE, SMS_MAX, Between, Space

ROWS, COLS, SMS = var("ROWS"), var("COLS"), var("SMS")
SPACE = Space("scan", (("ROWS", SIZE), ("COLS", SIZE), ("SMS", Between(1, SMS_MAX))))
EXCLUSIVE, REVERSE = 1, 2
"""Flags."""


@dataclass(frozen=True)
class ScanSpec(KernelSpec):
    """Prefix sums, in CTAs of ``warps`` warps of which ``share`` have a row, ``turns`` chunks each
    at a time.
    """

    share: int
    warps: int = 8
    turns: int = 4
    dtype: str = "bf16"
    min_arch: str = "sm_80"
    contract: Contract = scan.SCAN

    family: ClassVar[str] = "scan"
    template: ClassVar[str] = "rows/scan.cu.j2"
    shared_bytes: ClassVar[int] = 0
    EXCLUSIVE: ClassVar[int] = EXCLUSIVE
    REVERSE: ClassVar[int] = REVERSE
    meanings: ClassVar[Mapping[str, str]] = {
        **KernelSpec.meanings,
        "share": "warps that share a row",
        "warps": "warps of a CTA",
        "turns": "chunks that a warp has at a time",
    }

    def __post_init__(self) -> None:
        name = type(self).__name__
        check(self.warps <= WARP, name, "warps", self.warps, WARP)
        check(self.share in (1, self.warps), name, "warps of a row", self.share, (1, self.warps))
        check(self.min_arch in ARCHITECTURES, name, "min_arch", self.min_arch, [*ARCHITECTURES])

    @property
    def label(self) -> str:
        return f"{self.dtype}_{self.share}x{self.turns}"

    @property
    def threads(self) -> int:
        return self.warps * WARP

    @property
    def computed(self) -> str:
        """The type that sums are computed in."""
        return STORED[self.dtype]

    @property
    def context(self) -> Mapping[str, Any]:
        found = {
            "T": cuda.STORAGE[self.dtype],
            "C": cuda.CTYPES[self.computed],
            "scan": sys.modules[scan.__name__],
            "formula": None,
            "functions": lambda _: (),
        }
        return MappingProxyType(found)

    @property
    def abi(self) -> Abi:
        element = cuda.STORAGE[self.dtype]
        pointers = ptr("x", f"const {element}*"), ptr("y", f"{element}*")
        sizes = (Param(n, "u32") for n in ("rows", "cols", "flags"))
        return Abi((*pointers, Param("ldx", "i64"), *sizes))

    @property
    def grid(self) -> Expr:
        return minimum(ceil_div(ROWS, self.warps // self.share), SMS * (64 // self.warps))

    @property
    def requires(self) -> Expr:
        return ROWS >= 1

    @property
    def expects(self) -> tuple[Expect, ...]:
        return (*super().expects, Expect("shfl"))

    @property
    def index_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        step = self.grid * (self.warps // self.share)
        found = (
            ("row + gridDim.x", ROWS + step),
            ("first + CHUNK", COLS + 2 * scan.CHUNK * self.warps * self.turns),
        )
        return tuple((text, value, INDEX_MAX) for text, value in found)

    def describe(self) -> tuple[str, ...]:
        return (
            f"contract {self.contract}: {self.contract.step}",
            f"{self.share} of {self.warps} warps have a row; CTAs {self.grid}",
        )
