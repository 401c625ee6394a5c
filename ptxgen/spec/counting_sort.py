"""Operations on vectors of integers: stable sort, histogram, and row scatter (``put``).

=================  ==============================================================
``COUNT``          length of the vector
``ROWS, INNER``    rows of the result, or bins; elements of a row
``OUTER``          consecutive arrays, each of which receives rows
``EACH, EXPERTS``  slots of a token, and experts by which slots are sorted
``SMS``            streaming multiprocessors of the device
=================  ==============================================================

A vector is sorted in blocks of :data:`BLOCK`, which are merged if there are several; the sort is
stable. Where several rows are put to one index, the last one wins: it comes last among the equal
sorted indices.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

from ptxgen.expr import TRUE, Expr, ceil_div, const, var
from ptxgen.numerics.contract import COPY, Contract
from ptxgen.numerics.signature import DIM_MAX
from ptxgen.spec import formula as cuda
from ptxgen.spec.abi import Abi, Param, ptr
from ptxgen.spec.base import ARCHITECTURES, INDEX_MAX, WARP, KernelSpec, check
from ptxgen.spec.space import SIZE, SMS_MAX, Between, Space

COUNT, ROWS, INNER, OUTER = var("COUNT"), var("ROWS"), var("INNER"), var("OUTER")
SORTED = var("SORTED")
BLOCK = 4096
"""Integers that one CTA sorts."""
RUNS = 16
"""Sorted runs that one merge pass joins."""
COUNT_MAX = BLOCK * RUNS**2
"""Most integers that a sort supports: those of RUNS ** 2 blocks, which two passes merge."""
BINS_MAX = 1 << 20
UP_TO = 1
"""Bit of ``flags`` of "count": count integers up to each bin, not only those equal to it."""
SORTS = Space("sort", (("COUNT", Between(1, COUNT_MAX)), ("SMS", Between(1, SMS_MAX))))
PLACE_MAX = 1 << 30
"""Most integers of a permutation that is applied."""
PLACES = Space("place", (("COUNT", Between(1, PLACE_MAX)), ("SMS", Between(1, SMS_MAX))))
COUNTS = Space(
    "count",
    (("COUNT", SIZE), ("ROWS", Between(1, BINS_MAX)), ("SMS", Between(1, SMS_MAX))),
)
PUTS = Space(
    "put",
    (
        ("COUNT", Between(1, COUNT_MAX)),
        ("ROWS", SIZE),
        ("INNER", SIZE),
        ("OUTER", SIZE),
        ("SMS", Between(1, SMS_MAX)),
    ),
    within=(OUTER * ROWS * INNER <= DIM_MAX) & (OUTER * COUNT * INNER <= DIM_MAX),
)
SLOTS_MAX = 4096
"""Most slots that one CTA sorts by expert."""
EXPERT_BITS = 8, 10
"""Bits of the number of a bin, of kernels that sort slots by expert."""
EXPERTS_MAX = (1 << EXPERT_BITS[-1]) - 1
"""Most experts by which a CTA sorts; slots without one have a bin of their own."""
EXPERTS = Space(
    "experts",
    (
        ("COUNT", Between(1, SLOTS_MAX)),
        ("EACH", Between(1, SLOTS_MAX)),
        ("EXPERTS", Between(1, EXPERTS_MAX)),
        ("SMS", Between(1, SMS_MAX)),
    ),
)
PARTS = ("block", "merge", "count", "put", "place")


@dataclass(frozen=True)
class OrderSpec(KernelSpec):
    """A kernel of one step on a vector of integers: of a sort, a count, a put or a permutation.

    ``part``: "block" (a CTA sorts a block of integers and their positions), "merge" (a thread finds
    the rank of one integer among :data:`RUNS` runs of ``run_length`` integers each), "count" (a CTA
    counts the integers equal to a bin, or up to it), "put" (a thread writes an element to the row
    that the sorted indices name, if no later row goes there) or "place" (a thread writes an integer
    to the position that a permutation names). ``is_last``: whether this is the last step of a sort.
    ``dtype``: that of the integers; in "put" the size of the elements that move.
    """

    part: str
    is_last: bool = True
    run_length: int = 0
    dtype: str = "i64"
    min_arch: str = "sm_80"
    contract: Contract = COPY

    family: ClassVar[str] = "counting_sort"
    template: ClassVar[str] = "counting_sort/counting_sort.cu.j2"
    shared_bytes: ClassVar[int] = 0
    BLOCK: ClassVar[int] = BLOCK
    RUNS: ClassVar[int] = RUNS
    UP_TO: ClassVar[int] = UP_TO
    meanings: ClassVar[Mapping[str, str]] = {
        **KernelSpec.meanings,
        "part": "step: block or merge (of a sort), count, put or place",
        "is_last": "whether this is the last step of a sort",
        "run_length": "integers of a sorted run",
    }

    def __post_init__(self) -> None:
        name = type(self).__name__
        takes = ("b16", "b32", "b64") if self.part == "put" else ("i32", "i64")
        check(self.part in PARTS, name, "part", self.part, PARTS)
        check(self.dtype in takes, name, "dtype", self.dtype, takes)
        check(self.min_arch in ARCHITECTURES, name, "min_arch", self.min_arch, [*ARCHITECTURES])

    @property
    def label(self) -> str:
        run = f"_{self.run_length}" if self.run_length else ""
        return f"{self.part}_{self.dtype}{run}{'' if self.is_last else '_between'}"

    @property
    def threads(self) -> int:
        return 1024 if self.part == "block" else 256

    @property
    def element(self) -> str:
        """C++ type of the integers that are sorted, or of the elements that are moved."""
        moved = {"b16": "unsigned short", "b32": "unsigned", "b64": "unsigned long long"}
        return moved.get(self.dtype) or cuda.CTYPES[self.dtype]

    @property
    def context(self) -> Mapping[str, Any]:
        return MappingProxyType({"order": sys.modules[__name__]})

    @property
    def waits(self) -> bool:
        return True

    @property
    def abi(self) -> Abi:
        x = ptr("x", f"const {self.element}* __restrict__")
        count = Param("count", "u32")
        if self.part == "count":
            return Abi((x, ptr("y", "int*"), Param("first", "i64"), count, Param("flags", "u32")))
        if self.part == "place":
            return Abi(
                (x, ptr("source", x.ctype, optional=True), ptr("y", f"{self.element}*"), count)
            )
        if self.part == "put":
            sizes = (count, *(Param(n, "u32") for n in ("rows", "inner", "outer")))
            keys = ptr("keys", "const long long* __restrict__")
            places = ptr("places", "const long long* __restrict__")
            source, y = ptr("source", x.ctype), ptr("y", f"{self.element}*")
            return Abi((keys, places, source, y, *sizes))
        sorted_by = (
            ptr("y", f"{self.element}*"),
            ptr("at", "long long*" if self.is_last else "unsigned*"),
        )
        if self.part == "block":
            return Abi((x, *sorted_by, count))
        read = ptr("runs", x.ctype), ptr("from", "const unsigned* __restrict__")
        return Abi((*read, *sorted_by, count))

    @property
    def scratch(self) -> Mapping[str, Expr]:
        size = 4 if self.dtype == "i32" else 8
        found: dict[str, Expr] = {}
        if self.part == "merge":
            found |= {"runs": COUNT * size, "from": COUNT * 4}
        if self.part in ("block", "merge") and not self.is_last:
            found |= {"y": COUNT * size, "at": COUNT * 4}
        return found

    @property
    def grid(self) -> Expr:
        if self.part == "block":
            return ceil_div(COUNT, BLOCK)
        if self.part == "count":
            return ROWS
        return ceil_div(OUTER * COUNT * INNER if self.part == "put" else COUNT, self.threads)

    @property
    def requires(self) -> Expr:
        return COUNT <= SORTED if self.part == "block" else TRUE

    @property
    def index_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        if self.part == "count":
            return (("i + THREADS", COUNT + self.threads, INDEX_MAX),)
        return (
            ("e", self.grid * max(self.threads, BLOCK if self.part == "block" else 1), INDEX_MAX),
        )

    def describe(self) -> tuple[str, ...]:
        return (
            f"contract {self.contract}: {self.contract.step}",
            f"{self.part}: CTAs {self.grid} of {self.threads} threads",
        )


@dataclass(frozen=True)
class RunsSpec(OrderSpec):
    """A step of a sort that is not its last: "block" sorts blocks, "merge" joins sorted runs. It
    writes the sorted integers and their 32-bit positions to scratch memory.
    """

    is_last: bool = False

    family: ClassVar[str] = "counting_sort_runs"
    legible: ClassVar[bool] = False  # the texts of OrderSpec show the same code
    prepares: ClassVar[bool] = True


@dataclass(frozen=True)
class ExpertsSpec(KernelSpec):
    """A kernel that sorts the slots of a mixture of experts in one CTA of ``warps`` warps, with
    2^``bits`` bins. ``dtype``: that of the experts' indices.
    """

    bits: int
    warps: int
    dtype: str = "i64"
    min_arch: str = "sm_80"
    contract: Contract = COPY

    family: ClassVar[str] = "counting_sort_experts"
    template: ClassVar[str] = "counting_sort/experts.cu.j2"
    legible: ClassVar[bool] = False
    shared_bytes: ClassVar[int] = 0
    waits: ClassVar[bool] = True
    grid: ClassVar[Expr] = const(1)
    SLOTS_MAX: ClassVar[int] = SLOTS_MAX
    meanings: ClassVar[Mapping[str, str]] = {
        **KernelSpec.meanings,
        "bits": "bits of the number of a bin: one of an expert, or of slots without one",
        "warps": "warps of the CTA",
    }

    def __post_init__(self) -> None:
        self.check_counts("bits", "warps")
        name = type(self).__name__
        check(SLOTS_MAX < 1 << 16, name, "slots, counted in 16 bits", SLOTS_MAX, 1 << 16)
        self.check_choices(dtype=("i32", "i64"), min_arch=ARCHITECTURES)
        self.check_threads()

    @property
    def label(self) -> str:
        return f"{self.dtype}_{self.bits}_{self.warps}"

    @property
    def threads(self) -> int:
        return self.warps * WARP

    @property
    def abi(self) -> Abi:
        pointers = (
            ptr("x", f"const {cuda.CTYPES[self.dtype]}* __restrict__"),
            ptr("tokens", "int*"),
            ptr("places", "long long*"),
            ptr("ends", "int*"),
        )
        return Abi((*pointers, *(Param(n, "u32") for n in ("count", "each", "experts"))))

    @property
    def requires(self) -> Expr:
        return var("EXPERTS") < 1 << self.bits

    @property
    def index_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        return (("first + lane", COUNT + self.threads, INDEX_MAX),)

    def describe(self) -> tuple[str, ...]:
        return (
            f"contract {self.contract}: {self.contract.step}",
            f"one CTA of {self.threads} threads, {1 << self.bits} bins",
        )
