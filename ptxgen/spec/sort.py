"""Stable radix sort of rows, and binary search in sorted rows.

=================  ==============================================================
``ROWS, COLS``     rows, and elements of each
``COUNT, EACH``    values that are searched for, and values for each row
``TILES``          tiles of :data:`TILE` elements of a long row
``SMS``            streaming multiprocessors of the device
=================  ==============================================================

A row of up to :data:`ROW_MAX` elements is sorted by one CTA. A longer row is sorted digit by digit,
the least significant first. Each pass is a problem of its own: its kernels count the digits of each
tile, add the counts, and scatter elements and their indices. Further scalar parameters: ``SHIFT``,
the digit's first bit, and ``FLIP``, all ones for descending order.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, ClassVar, Self

from ptxgen.expr import TRUE, Expr, ceil_div, var
from ptxgen.numerics import sort
from ptxgen.numerics.contract import Contract
from ptxgen.numerics.signature import DIM_MAX
from ptxgen.numerics.sort import KEY_BYTES, SORT_CONTRACT
from ptxgen.spec.abi import Abi, Param, ptr
from ptxgen.spec.base import ARCHITECTURES, INDEX_MAX, WARP, KernelSpec
from ptxgen.spec.space import SIZE, SMS_MAX, Between, Space

ROWS, COLS, COUNT, TILES = var("ROWS"), var("COLS"), var("COUNT"), var("TILES")
BINS = 1 << sort.DIGIT_BITS
ROW_MAX = 4096
"""Most elements of a row that one CTA sorts."""
TILE = 8192
"""Elements of a row that a CTA counts, and scatters, in one pass."""
TILES_MAX = 1 << 20
"""Most tiles of a problem; each has a count of 4 bytes for each digit."""
RIGHT = 1
"""Bit of the search's ``flags``: count equal elements, too."""
INFINITY = {
    "f16": "0x7c00u",
    "bf16": "0x7f80u",
    "f32": "0x7f800000u",
    "f64": "0x7ff0000000000000ull",
}
"""Bits of +inf, as a C++ constant, by dtype."""
ROW_SPACE = Space(
    "sort_row",
    (("ROWS", SIZE), ("COLS", Between(1, ROW_MAX)), ("SMS", Between(1, SMS_MAX))),
    within=ROWS * COLS <= DIM_MAX,
)
PASS_SPACE = Space(
    "sort_pass",
    (("ROWS", SIZE), ("COLS", SIZE), ("SMS", Between(1, SMS_MAX))),
    derived=(("TILES", ceil_div(COLS, TILE)),),
    within=(ROWS * COLS <= DIM_MAX) & (ROWS * ceil_div(COLS, TILE) <= TILES_MAX),
)
SEARCH_SPACE = Space(
    "search",
    (("COUNT", SIZE), ("EACH", SIZE), ("COLS", SIZE), ("SMS", Between(1, SMS_MAX))),
)


@dataclass(frozen=True)
class RadixSortSpec(KernelSpec):
    """A kernel of a stable sort: a CTA of ``warps`` warps, whose threads have ``items_per_thread``
    elements each.

    ``part``: "lanes" (a warp sorts a row, by comparisons), "row" (a CTA sorts a row, by digits), or
    one of three launches of a pass over long rows: "count" (a CTA counts the digits of a tile),
    "offsets" (a warp adds the counts of a digit over the tiles) and "scatter" (a CTA moves the
    elements of a tile).
    """

    part: str
    warps: int = 16
    items_per_thread: int = 16
    dtype: str = "f32"
    min_arch: str = "sm_80"
    contract: Contract = SORT_CONTRACT

    family: ClassVar[str] = "sort"
    legible: ClassVar[bool] = False
    template: ClassVar[str] = "sort/sort.cu.j2"
    PARTS: ClassVar[tuple[str, ...]] = ("lanes", "row", "count", "offsets", "scatter")
    meanings: ClassVar[Mapping[str, str]] = {
        **KernelSpec.meanings,
        "part": "step: lanes or row (all of a sort), or count, offsets or scatter (of a pass)",
        "warps": "warps of a CTA",
        "items_per_thread": "elements of a thread; in offsets, counts that a lane has at a time",
    }

    def __post_init__(self) -> None:
        dtypes = ("any",) if self.part == "offsets" else tuple(KEY_BYTES)
        self.check_choices(part=self.PARTS, dtype=dtypes, min_arch=[*ARCHITECTURES])
        self.check_counts("warps", "items_per_thread")
        tiles = {"row": range(ROW_MAX + 1), "count": (TILE,), "scatter": (TILE,)}
        if self.part in tiles:
            self.check_choices(owned=tiles[self.part])

    @property
    def label(self) -> str:
        return f"{self.part}_{self.dtype}_{self.warps}x{self.items_per_thread}"

    @property
    def threads(self) -> int:
        return self.warps * WARP

    @property
    def owned(self) -> int:
        """Elements of a CTA."""
        return self.threads * self.items_per_thread

    @property
    def tile(self) -> int:
        """Elements of a tile of a long row."""
        return TILE

    @property
    def key(self) -> str:
        """Short name of the dtype that is ordered."""
        return self.dtype

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return KEY_BYTES[self.key]

    @property
    def infinity(self) -> str:
        """C++ constant with the bits of +inf, for floats."""
        return INFINITY[self.key]

    @property
    def resident(self) -> int:
        """Resident CTAs per SM, the second argument of ``__launch_bounds__``."""
        if self.part in ("lanes", "offsets", "count"):
            return 6 if self.part == "count" else 4
        warps = 16 if self.itemsize == 8 else 24 if self.part == "row" else 32
        return min(warps // self.warps, 16)

    @property
    def shared_bytes(self) -> int:
        return TILE * max(self.itemsize, 4) if self.part == "scatter" else 0

    @property
    def context(self) -> Mapping[str, Any]:
        return MappingProxyType({"sort": sys.modules[sort.__name__]})

    @property
    def waits(self) -> bool:
        return True

    @property
    def abi(self) -> Abi:
        read, written = "const Bits* __restrict__", "Bits*"
        cols, shift, flip = (Param(name, "u32") for name in ("cols", "shift", "flip"))
        x = ptr("x", read)
        y, indices = (ptr("y", written, optional=True), ptr("indices", "long long*", optional=True))
        counts, totals = ptr("counts", "unsigned*"), ptr("totals", "unsigned*")
        if self.part == "lanes":
            return Abi((x, y, indices, cols, flip, Param("rows", "u32")))
        if self.part == "row":
            return Abi((x, y, indices, cols, flip))
        if self.part == "count":
            return Abi((x, counts, cols, shift, flip))
        if self.part == "offsets":
            return Abi((counts, totals, cols))
        source = ptr("source", "const unsigned* __restrict__", optional=True)
        target = ptr("target", "unsigned*", optional=True)
        sums = (replace(p, ctype="const unsigned* __restrict__") for p in (counts, totals))
        return Abi((x, source, *sums, y, target, indices, cols, shift, flip))

    @property
    def scratch(self) -> Mapping[str, Expr]:
        found = {"counts": ROWS * TILES * (BINS * 4), "totals": ROWS * (BINS * 4)}
        named = {"count": ("counts",), "offsets": tuple(found), "scatter": tuple(found)}
        return MappingProxyType({name: found[name] for name in named.get(self.part, ())})

    @property
    def grid(self) -> Expr:
        if self.part == "lanes":
            return ceil_div(ROWS, self.warps)
        if self.part == "row":
            return ROWS
        return ROWS * (BINS // self.warps) if self.part == "offsets" else ROWS * TILES

    @property
    def requires(self) -> Expr:
        if self.part == "lanes":
            return COLS <= WARP * self.items_per_thread
        return COLS <= self.owned if self.part == "row" else TRUE

    @property
    def index_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        if self.part == "lanes":
            return (("row", self.grid * self.warps, INDEX_MAX),)
        if self.part == "row":
            return (("place", COLS + self.owned, INDEX_MAX),)
        if self.part == "offsets":
            return (("base + i", TILES + WARP * self.items_per_thread, INDEX_MAX),)
        return (("row * cols + first + TILE", ROWS * COLS + TILE, INDEX_MAX),)

    def of(self, dtype: Hashable) -> Self:
        return self if self.part == "offsets" else super().of(dtype)

    def describe(self) -> tuple[str, ...]:
        return self.described(f"{self.part}: {self.items_per_thread} items of a thread", self.sizes)


@dataclass(frozen=True)
class SearchSpec(KernelSpec):
    """A kernel of binary searches in sorted rows: a thread finds the position of one value."""

    dtype: str = "f32"
    min_arch: str = "sm_80"
    contract: Contract = SORT_CONTRACT

    family: ClassVar[str] = "sort_search"
    template: ClassVar[str] = "sort/search.cu.j2"
    shared_bytes: ClassVar[int] = 0
    threads: ClassVar[int] = 256
    RIGHT: ClassVar[int] = RIGHT

    def __post_init__(self) -> None:
        self.check_choices(dtype=tuple(KEY_BYTES), min_arch=[*ARCHITECTURES])

    @property
    def label(self) -> str:
        return self.dtype

    @property
    def key(self) -> str:
        """Short name of the dtype that is ordered."""
        return self.dtype

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return KEY_BYTES[self.key]

    @property
    def infinity(self) -> str:
        """C++ constant with the bits of +inf, for floats."""
        return INFINITY[self.key]

    @property
    def waits(self) -> bool:
        return True

    @property
    def abi(self) -> Abi:
        read = "const Bits* __restrict__"
        counts = (Param(name, "u32") for name in ("count", "each", "cols", "flags"))
        pointers = ptr("x", read), ptr("values", read), ptr("y", "long long*")
        return Abi((*pointers, Param("ldx", "i64"), *counts))

    @property
    def grid(self) -> Expr:
        return ceil_div(COUNT, self.threads)

    @property
    def requires(self) -> Expr:
        return TRUE

    @property
    def index_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        return (("e", COUNT + self.threads, INDEX_MAX),)

    def describe(self) -> tuple[str, ...]:
        return self.described(self.sizes)
