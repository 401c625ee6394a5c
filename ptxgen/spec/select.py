"""The largest of rows, and draws from rows: a CTA a row.

=================  ==============================================================
``ROWS, COLS``     rows, and elements of each
``SMS``            streaming multiprocessors of the device
=================  ==============================================================

Kernels are told besides: ``LDX``, elements from row to row, and what is asked for.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

from ptxgen.expr import TRUE, Expr, ceil_div, var
from ptxgen.numerics import activation, rows, select
from ptxgen.numerics.contract import Contract
from ptxgen.numerics.select import SAMPLE_CONTRACT, TOPK_CONTRACT
from ptxgen.spec import formula as cuda
from ptxgen.spec.abi import Abi, Param, ptr
from ptxgen.spec.base import ARCHITECTURES, INDEX_MAX, WARP, Expect, KernelSpec, check
from ptxgen.spec.space import SIZE, SMS_MAX, Between, Space

ROWS, COLS, SMS = var("ROWS"), var("COLS"), var("SMS")
LARGEST_ROW = SIZE.high - (1 << 16)
TOPK_SPACE = Space(
    "topk", (("ROWS", SIZE), ("COLS", Between(1, LARGEST_ROW)), ("SMS", Between(1, SMS_MAX)))
)
SAMPLE_SPACE = Space(
    "sample",
    (("ROWS", SIZE), ("COLS", Between(1, select.VOCABULARY_MAX)), ("SMS", Between(1, SMS_MAX))),
)
SMALLEST = 1
"""The flag of ``topk``: the smallest are asked for."""
GREEDY = 1
"""That of ``sample``: the largest is."""
BINS = 16
KEY_BITS = {"bf16": 16, "f16": 16, "f32": 32, "i32": 32}


@dataclass(frozen=True)
class SelectSpec(KernelSpec):
    """A CTA selects from a row, by digits of keys that are ordered as the elements are."""

    warps: int = 16
    dtype: str = "bf16"
    min_arch: str = "sm_80"
    contract: Contract = TOPK_CONTRACT

    family: ClassVar[str] = "topk"
    template: ClassVar[str] = "select/topk.cu.j2"
    BINS: ClassVar[int] = BINS
    SMALLEST: ClassVar[int] = SMALLEST
    nothing: ClassVar[str] = "~0u"
    """The key of a NaN."""
    mass_bytes: ClassVar[int] = 4
    meanings: ClassVar[Mapping[str, str]] = {**KernelSpec.meanings, "warps": "of a CTA"}

    def __post_init__(self) -> None:
        check(1 <= self.warps <= WARP, type(self).__name__, "warps", self.warps, WARP)
        check(self.dtype in KEY_BITS, type(self).__name__, "dtype", self.dtype, [*KEY_BITS])
        check(self.min_arch in ARCHITECTURES, self.name, "min_arch", self.min_arch, "one known")

    @property
    def label(self) -> str:
        return f"{self.dtype}_{self.warps}"

    @property
    def threads(self) -> int:
        return self.warps * WARP

    @property
    def resident(self) -> int:
        """CTAs that an SM is to hold."""
        return max(16 // self.warps, 1)

    @property
    def bits(self) -> int:
        """Of a key."""
        return KEY_BITS[self.dtype]

    @property
    def shared_bytes(self) -> int:
        return BINS * self.threads * self.mass_bytes

    @property
    def context(self) -> Mapping[str, Any]:
        found = {
            "T": cuda.STORAGE[self.dtype],
            "select": sys.modules[select.__name__],
            "activation": activation,
            "rows": sys.modules[rows.__name__],
        }
        return MappingProxyType(found)

    @property
    def abi(self) -> Abi:
        pointers = (
            ptr("x", f"const {cuda.STORAGE[self.dtype]}* __restrict__"),
            ptr("values", f"{cuda.STORAGE[self.dtype]}*"),
            ptr("indices", "long long*"),
        )
        scalars = tuple(Param(n, "u32") for n in ("cols", "k", "flags"))
        return Abi((*pointers, Param("ldx", "i64"), *scalars))

    @property
    def grid(self) -> Expr:
        return ROWS

    @property
    def requires(self) -> Expr:
        return TRUE

    @property
    def expects(self) -> tuple[Expect, ...]:
        return (*super().expects, Expect("shfl"))

    @property
    def index_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        return (("base + AHEAD * TILE", COLS + 5 * 8 * self.threads, INDEX_MAX),)

    def describe(self) -> tuple[str, ...]:
        return (f"contract {self.contract}: {self.contract.step}", f"CTAs {self.grid}, one a row")


@dataclass(frozen=True)
class SampleSpec(SelectSpec):
    """A CTA draws from a row."""

    contract: Contract = SAMPLE_CONTRACT

    family: ClassVar[str] = "sample"
    legible: ClassVar[bool] = False
    template: ClassVar[str] = "select/sample.cu.j2"
    GREEDY: ClassVar[int] = GREEDY
    nothing: ClassVar[str] = "0u"
    mass_bytes: ClassVar[int] = 8

    @property
    def requires(self) -> Expr:
        """The chunks' masses, and how many are equal in each, take the place of the bins'."""
        return ceil_div(COLS, 8 * WARP) * (self.mass_bytes + 4) <= self.shared_bytes

    @property
    def abi(self) -> Abi:
        pointers = (
            ptr("x", f"const {cuda.STORAGE[self.dtype]}* __restrict__"),
            ptr("seeds", "const long long* __restrict__", optional=True),
            ptr("offsets", "const long long* __restrict__", optional=True),
            ptr("y", "long long*"),
        )
        scalars = (
            Param("ldx", "i64"),
            Param("seed", "i64"),
            Param("offset", "i64"),
            Param("nucleus", "u64"),
            Param("temperature", "f32"),
            *(Param(n, "u32") for n in ("cols", "k", "flags")),
        )
        return Abi((*pointers, *scalars))
