"""Gather (reads rows at indices), bags (add such rows) and scatter-add (adds rows at indices).

Variables of gathers:

=================  ==============================================================
``OUTER, COUNT``   matrices, and rows that are read from each
``BYTES``          bytes of a row; 1 .. 2^32 - 1
``LANES``          threads that share a row, a power of two: part of a CTA, or several CTAs
``ALIGN``          largest power of two, up to 16, that divides rows, pitches and addresses in bytes
=================  ==============================================================

Variables of bags (weighted sums of gathered rows):

=================  ==============================================================
``ROWS, EACH``     rows of the result, and gathered rows that are added to each
``INNER``          elements of a row
``ITEM, ALIGN``    bytes of an element; as above, of rows of the source and of the result
=================  ==============================================================

Variables of scatters:

=================  ==============================================================
``ROWS, INNER``    rows of the result, and elements of each
``COUNT``          contributions: rows that are added
``ITEM, ALIGN``    bytes of an element; as above
=================  ==============================================================

Scatters sort indices with their positions, in blocks that are merged if there are several. Then one
CTA adds the contributions to each row of the result, in order. ``SORTED``: most keys that the
sorting steps of a route support.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

from ptxgen.cost.kernel import Roofline
from ptxgen.expr import TRUE, Expr, all_of, ceil_div, const, maximum, var
from ptxgen.numerics import reduction_order
from ptxgen.numerics.contract import COPY, Contract
from ptxgen.numerics.dtype import ITEMSIZE
from ptxgen.numerics.formula import STORED
from ptxgen.numerics.gather_scatter import SCATTER
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
from ptxgen.spec.space import ALIGNMENT, SIZE, SMS_MAX, Between, OneOf, Space

OUTER, COUNT, BYTES, LANES = var("OUTER"), var("COUNT"), var("BYTES"), var("LANES")
ROWS, INNER, ITEM, ALIGN = var("ROWS"), var("INNER"), var("ITEM"), var("ALIGN")
LEAVES, SHARES, SORTED = var("LEAVES"), var("SHARES"), var("SORTED")
EACH = var("EACH")

INDEX_64 = 1
"""Bit of ``flags``: the indices are 64-bit integers."""
GATHER_THREADS, AHEAD = 256, 4
LANES_MAX = 1 << 15
"""Most threads that share a row of a gather."""
FILLED = 1 << 18
"""Number of threads that fill a GPU. Gathers of fewer rows have several threads for each row, to
reach this number."""
BYTES_MAX = INDEX_MAX - AHEAD * LANES_MAX
"""Most bytes of a row of a gather, since the threads' 32-bit offsets exceed the length of a row by
up to AHEAD * LANES_MAX."""
GATHERS = Space(
    "gather",
    (
        ("OUTER", SIZE),
        ("COUNT", SIZE),
        ("BYTES", Between(1, BYTES_MAX)),
        ("LANES", OneOf(tuple(1 << i for i in range(LANES_MAX.bit_length())))),
        ("ALIGN", ALIGNMENT),
        ("SMS", Between(1, SMS_MAX)),
    ),
    within=all_of((OUTER * COUNT <= GRID_MAX, OUTER * COUNT * LANES <= GATHER_THREADS * GRID_MAX)),
)


def gather_lanes(rows: int, units: int) -> int:
    """Returns the number of threads that share a row in a gather of ``rows`` rows of ``units``
    vectors: more for longer rows, and more if there are few rows.
    """
    lanes = 1
    while lanes < GATHER_THREADS and lanes * AHEAD < units:
        lanes *= 2
    while lanes < min(LANES_MAX, units) and rows * lanes < FILLED:
        lanes *= 2
    return lanes


@dataclass(frozen=True)
class GatherSpec(KernelSpec):
    """A kernel that gathers rows of an array by an index array. A thread copies ``vector_bytes``
    bytes at a time, and loads ``vectors_per_thread`` such pieces before it stores them.
    """

    vector_bytes: int
    vectors_per_thread: int = AHEAD
    dtype: str = "any"
    min_arch: str = "sm_80"
    contract: Contract = COPY

    family: ClassVar[str] = "gather_scatter_gather"
    template: ClassVar[str] = "gather_scatter/gather.cu.j2"
    threads: ClassVar[int] = GATHER_THREADS
    shared_bytes: ClassVar[int] = 0
    INDEX_64: ClassVar[int] = INDEX_64
    meanings: ClassVar[Mapping[str, str]] = {
        **KernelSpec.meanings,
        "vector_bytes": "bytes that a thread copies at a time",
        "vectors_per_thread": "vectors that a thread loads before it stores",
    }

    def __post_init__(self) -> None:
        name = type(self).__name__
        check(
            self.vector_bytes in (1, 2, 4, 16),
            name,
            "vector_bytes",
            self.vector_bytes,
            (1, 2, 4, 16),
        )
        check(self.min_arch in ARCHITECTURES, name, "min_arch", self.min_arch, [*ARCHITECTURES])

    @property
    def label(self) -> str:
        return f"{self.vector_bytes}x{self.vectors_per_thread}"

    @property
    def abi(self) -> Abi:
        pointers = (
            ptr("x", "const char* __restrict__"),
            ptr("indices", "const void* __restrict__"),
            ptr("y", "char*"),
        )
        pitches = Param("ldx", "i64"), Param("lox", "i64")
        names = ("size", "outer", "count", "bytes", "lanes", "flags")
        return Abi((*pointers, *pitches, *(Param(n, "u32") for n in names)))

    @property
    def grid(self) -> Expr:
        return ceil_div(OUTER * COUNT * LANES, self.threads)

    def roofline(self, dtype: Hashable) -> Roofline:
        return Roofline(nbytes=OUTER * COUNT * BYTES * 2)

    @property
    def requires(self) -> Expr:
        return ALIGN >= self.vector_bytes if self.vector_bytes > ALIGNMENT.low else TRUE

    @property
    def expects(self) -> tuple[Expect, ...]:
        kind = "v4.u32" if self.vector_bytes == 16 else f"u{8 * self.vector_bytes}"
        return (*super().expects, Expect(f"ld.global.cg.{kind}"))

    @property
    def index_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        units = ceil_div(BYTES, self.vector_bytes)
        return (("at + TURNS * lanes", units + self.vectors_per_thread * LANES, INDEX_MAX),)

    def describe(self) -> tuple[str, ...]:
        return (
            f"contract {self.contract}: {self.contract.step}",
            f"{self.vector_bytes} bytes at a time, {self.vectors_per_thread} ahead; "
            f"CTAs {self.grid}",
        )


WEIGHTS_F32 = 2
"""Bit of ``flags`` of bags: the weights are f32, whatever the rows are."""
BAG_THREADS = 128
BAG_MAX = 4 * reduction_order.GROUP
"""Most rows of a bag: those of four lanes of the contract, which a thread adds one after the
other."""
BAGS = Space(
    "bag",
    (
        ("ROWS", SIZE),
        ("EACH", Between(0, BAG_MAX)),
        ("INNER", SIZE),
        ("ITEM", OneOf((2, 4))),
        ("ALIGN", ALIGNMENT),
        ("SMS", Between(1, SMS_MAX)),
    ),
    within=ROWS * ceil_div(INNER, BAG_THREADS) <= GRID_MAX,
)


@dataclass(frozen=True)
class BagSpec(KernelSpec):
    """A kernel that adds weighted rows of an array by an index array. A thread computes
    neighbouring columns of one row of the result: a vector of ``vector_bytes`` bytes, or one
    element (0).
    """

    vector_bytes: int
    dtype: str = "bf16"
    min_arch: str = "sm_80"
    contract: Contract = reduction_order.ROWS

    family: ClassVar[str] = "gather_scatter_bag"
    template: ClassVar[str] = "gather_scatter/bag.cu.j2"
    legible: ClassVar[bool] = False
    threads: ClassVar[int] = BAG_THREADS
    shared_bytes: ClassVar[int] = 0
    waits: ClassVar[bool] = True
    INDEX_64: ClassVar[int] = INDEX_64
    WEIGHTS_F32: ClassVar[int] = WEIGHTS_F32
    BAG_MAX: ClassVar[int] = BAG_MAX
    meanings: ClassVar[Mapping[str, str]] = {
        **KernelSpec.meanings,
        "vector_bytes": "bytes that a thread loads of each row (0: an element)",
    }

    def __post_init__(self) -> None:
        self.check_choices(vector_bytes=(0, 16), dtype=("f32", "bf16", "f16"))
        self.check_choices(min_arch=ARCHITECTURES)

    @property
    def label(self) -> str:
        return f"{self.dtype}_{self.vector_bytes}"

    @property
    def columns(self) -> int:
        """Neighbouring columns that a thread computes."""
        return max(self.vector_bytes // ITEMSIZE[self.dtype], 1)

    @property
    def context(self) -> Mapping[str, Any]:
        found = {"STORAGE": cuda.STORAGE, "rowwise": reduction_order}
        return MappingProxyType(found | {"formula": None, "functions": lambda _: ()})

    @property
    def abi(self) -> Abi:
        element = cuda.STORAGE[self.dtype]
        pointers = (
            ptr("x", f"const {element}*"),  # no __restrict__: ptxas moves ld.global.nc anywhere
            ptr("indices", "const void* __restrict__"),
            ptr("weights", "const void* __restrict__"),
            ptr("y", f"{element}*"),
        )
        names = ("size", "each", "inner", "flags")
        return Abi((*pointers, Param("ldx", "i64"), *(Param(n, "u32") for n in names)))

    @property
    def tiles(self) -> Expr:
        """CTAs of a row of the result."""
        if self.vector_bytes:
            return ceil_div(INNER * ITEM, self.vector_bytes * self.threads)
        return ceil_div(INNER, self.threads)

    @property
    def grid(self) -> Expr:
        return ROWS * self.tiles

    def roofline(self, dtype: Hashable) -> Roofline:
        return Roofline(nbytes=ROWS * (EACH + 1) * INNER * ITEM)

    @property
    def requires(self) -> Expr:
        return ALIGN >= self.vector_bytes if self.vector_bytes else TRUE

    @property
    def expects(self) -> tuple[Expect, ...]:
        return (*super().expects, Expect("mul.rn.f32"), Expect("add.rn.f32"))

    @property
    def index_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        return (
            ("column + COLUMNS", INNER + 8 * self.threads, INDEX_MAX),
            ("blockIdx.x", self.grid, INDEX_MAX),
        )

    def describe(self) -> tuple[str, ...]:
        return (
            f"contract {self.contract}: {self.contract.step}",
            f"{self.columns} columns of a thread; CTAs {self.grid}",
        )


BLOCK = 4096
"""Keys that one CTA sorts."""
CTA_ROWS = 16, 256
"""Numbers of result rows that a CTA sums; the second for rows of at most 32 elements."""
SHARED = 256
"""Sorted keys that a CTA scans for rows with many contributions; all its warps share such a row."""
COUNT_MAX = 1 << 24
SCATTERS = Space(
    "scatter",
    (
        ("ROWS", SIZE),
        ("INNER", SIZE),
        ("COUNT", Between(0, COUNT_MAX)),
        ("ITEM", OneOf((2, 4, 8))),
        ("ALIGN", ALIGNMENT),
        ("SMS", Between(1, SMS_MAX)),
    ),
    derived=(
        ("LEAVES", maximum(ceil_div(COUNT, reduction_order.LEAF), const(1))),
        ("SHARES", ceil_div(COUNT, SHARED)),
    ),
    within=all_of(
        (
            (ceil_div(ROWS, CTA_ROWS[0]) + SHARES) * ceil_div(INNER, WARP) <= GRID_MAX,
            var("LEAVES") * INNER <= WORKSPACE_MAX // 16,
        )
    ),
)
RUNS = 16
"""Sorted runs that one merge pass joins."""
TURNS = 8
"""Column tiles, each as wide as a warp's loads, that a CTA of "sum" computes of rows with few
contributions. Rows with many have a CTA for each tile."""
PARTS = ("sort", "merge", "leaves", "sum")


@dataclass(frozen=True)
class ScatterSpec(KernelSpec):
    """A kernel of one step of a scatter-add.

    ``part``: "sort" (a CTA sorts a block of indices with their positions), "merge" (a thread finds
    the rank of one key among :data:`RUNS` runs of ``run_length`` keys each), "leaves" (for rows
    with more than 1024 contributions, CTAs add up each leaf of 1024) or "sum" (CTAs finish rows: a
    row with few contributions in the CTA of its block of rows, a row with many in the CTA of its
    block of keys). ``vector_bytes``: bytes of a row that a thread reads at a time; 0: an element.
    ``rows_per_cta``: result rows that a CTA sums, one of :data:`CTA_ROWS`. ``accumulate``: whether
    the kernel adds to the result's old values.
    """

    part: str
    vector_bytes: int = 0
    accumulate: bool = False
    rows_per_cta: int = CTA_ROWS[0]
    run_length: int = 0
    dtype: str = "keys"
    min_arch: str = "sm_80"
    contract: Contract = SCATTER

    family: ClassVar[str] = "gather_scatter_scatter"
    template: ClassVar[str] = "gather_scatter/scatter.cu.j2"
    shared_bytes: ClassVar[int] = 0
    meanings: ClassVar[Mapping[str, str]] = {
        **KernelSpec.meanings,
        "part": "step of the scatter: sort, merge, leaves (of long rows) or sum",
        "vector_bytes": "bytes that a thread loads at a time (0: an element)",
        "accumulate": "whether sums are added to the old values",
        "rows_per_cta": "result rows that a CTA sums",
        "run_length": "keys of a sorted run",
    }
    BLOCK: ClassVar[int] = BLOCK
    SHARED: ClassVar[int] = SHARED
    RUNS: ClassVar[int] = RUNS
    TURNS: ClassVar[int] = TURNS
    INDEX_64: ClassVar[int] = INDEX_64

    def __post_init__(self) -> None:
        name = type(self).__name__
        check(self.part in PARTS, name, "part", self.part, PARTS)
        check(self.vector_bytes in (0, 16), name, "vector_bytes", self.vector_bytes, (0, 16))
        check(self.rows_per_cta in CTA_ROWS, name, "rows_per_cta", self.rows_per_cta, CTA_ROWS)
        check(self.min_arch in ARCHITECTURES, name, "min_arch", self.min_arch, [*ARCHITECTURES])

    def of(self, dtype: Hashable) -> ScatterSpec:
        return super().of(dtype) if self.part in ("leaves", "sum") else self

    @property
    def label(self) -> str:
        if self.part in ("leaves", "sum"):
            return f"{self.part}_{self.dtype}_{self.vector_bytes}"
        return f"{self.part}_{self.run_length}" if self.run_length else self.part

    @property
    def threads(self) -> int:
        return 1024 if self.part == "sort" else 256

    @property
    def computed(self) -> str:
        """Dtype in which sums are accumulated."""
        return STORED[self.dtype]

    @property
    def columns(self) -> int:
        """Neighbouring columns that a thread sums."""
        size = ITEMSIZE[self.dtype]
        return max(self.vector_bytes // size, 1)

    @property
    def context(self) -> Mapping[str, Any]:
        found = {
            "CTYPES": cuda.CTYPES,
            "STORAGE": cuda.STORAGE,
            "rowwise": reduction_order,
            "formula": None,
            "functions": lambda _: (),
            "moves": sys.modules[__name__],
        }
        return MappingProxyType(found)

    @property
    def waits(self) -> bool:
        return self.part != "sort"

    @property
    def abi(self) -> Abi:
        keys = "unsigned long long*"
        if self.part == "sort":
            scalars = (
                Param("skipped", "i64"),
                *(Param(n, "u32") for n in ("size", "along", "width", "count", "flags")),
            )
            return Abi((ptr("indices", "const void* __restrict__"), ptr("blocks", keys), *scalars))
        sorted_keys = f"const {keys} __restrict__"
        if self.part == "merge":
            return Abi((ptr("blocks", sorted_keys), ptr("keys", keys), Param("count", "u32")))
        element = cuda.STORAGE[self.dtype]
        read = ptr("dy", f"const {element}* __restrict__"), ptr("keys", sorted_keys)
        c = cuda.CTYPES[self.computed]
        sizes = tuple(Param(n, "u32") for n in ("rows", "inner", "count"))
        if self.part == "leaves":
            return Abi((*read, ptr("sums", f"{c}*"), Param("ldy", "i64"), *sizes))
        old = (ptr("old", f"const {element}*"),) if self.accumulate else ()
        pointers = (
            *read,
            ptr("sums", f"const {c}* __restrict__"),
            *old,
            ptr("out", f"{element}*"),
        )
        pitches = (Param("ldy", "i64"), *((Param("ldo", "i64"),) if self.accumulate else ()))
        return Abi((*pointers, *pitches, *sizes))

    @property
    def scratch(self) -> Mapping[str, Expr]:
        size = maximum(COUNT, const(1)) * 8
        if self.part in ("leaves", "sum"):
            return {"keys": size, "sums": LEAVES * INNER * 16}
        return dict.fromkeys(("blocks",) if self.part == "sort" else ("blocks", "keys"), size)

    @property
    def grid(self) -> Expr:
        if self.part == "sort":
            return maximum(ceil_div(COUNT, BLOCK), const(1))
        if self.part == "merge":
            return maximum(ceil_div(COUNT, self.threads), const(1))
        unit = WARP * self.vector_bytes if self.vector_bytes else WARP
        wide = INNER * ITEM if self.vector_bytes else INNER
        tiles = ceil_div(wide, unit)
        if self.part == "leaves":
            return LEAVES * 2 * tiles
        return SHARES * tiles + ceil_div(ROWS, self.rows_per_cta) * ceil_div(wide, unit * TURNS)

    @property
    def requires(self) -> Expr:
        found = [] if self.part == "sum" else [self.grid <= GRID_MAX]  # SCATTERS bounds sums
        if self.vector_bytes:
            found.append(ALIGN >= self.vector_bytes)
        if self.part == "sum":
            found.append(COUNT <= SORTED)
        if self.rows_per_cta > CTA_ROWS[0]:
            found.append(INNER <= WARP)
        return all_of(found)

    @property
    def index_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        if self.part == "sum":
            return (
                ("v + OWNED", ROWS + self.rows_per_cta, INDEX_MAX),
                ("span + TURNS * TILE", INNER + WARP * 16 * TURNS, INDEX_MAX),
            )
        if self.part == "leaves":
            return (("low + LEAF", COUNT + 2 * reduction_order.LEAF, INDEX_MAX),)
        return (("at", self.grid * max(self.threads, BLOCK), INDEX_MAX),)

    def describe(self) -> tuple[str, ...]:
        return (
            f"contract {self.contract}: {self.contract.step}",
            f"{self.part}: CTAs {self.grid} of {self.threads} threads",
        )


@dataclass(frozen=True)
class SortSpec(ScatterSpec):
    """A step of a scatter before the sums: it sorts indices, or adds leaves of rows with many
    contributions.
    """

    family: ClassVar[str] = "gather_scatter_sort"
    prepares: ClassVar[bool] = True

    @property
    def expects(self) -> tuple[Expect, ...]:
        return super().expects or (Expect("bar.sync"),)
