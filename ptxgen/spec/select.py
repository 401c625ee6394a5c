"""Top-k selection from rows, and sampling from rows of logits.

=================  ==============================================================
``ROWS, COLS``     rows, and elements of each
``K``              elements that are selected from a row; ``sample``: 0 for all of them,
                   or if each row has its own number
``SMS``            streaming multiprocessors of the device
=================  ==============================================================

Further scalar parameters: ``LDX``, the row stride in elements, and the options of the call.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

from ptxgen.cost.kernel import Roofline
from ptxgen.expr import TRUE, Expr, all_of, ceil_div, var
from ptxgen.numerics import activation, logsumexp, reduction_order, select
from ptxgen.numerics.contract import Contract
from ptxgen.numerics.formula import Formula, Output, const, read
from ptxgen.numerics.row_reductions import decay
from ptxgen.numerics.select import SAMPLE_CONTRACT, TOPK_CONTRACT
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
from ptxgen.spec.space import SIZE, SMS_MAX, Between, Space

ROWS, COLS, K, SMS = var("ROWS"), var("COLS"), var("K"), var("SMS")
LARGEST_ROW = SIZE.high - (1 << 16)
TOPK_SPACE = Space(
    "topk",
    (
        ("ROWS", SIZE),
        ("COLS", Between(1, LARGEST_ROW)),
        ("K", Between(1, select.K_MAX)),
        ("SMS", Between(1, SMS_MAX)),
    ),
)
SAMPLE_SPACE = Space(
    "sample",
    (
        ("ROWS", SIZE),
        ("COLS", Between(1, select.VOCABULARY_MAX)),
        ("K", Between(0, select.VOCABULARY_MAX)),
        ("SMS", Between(1, SMS_MAX)),
    ),
)
SMALLEST = 1
"""Bit of ``topk``'s flags: select the smallest elements."""
NORMALIZE, WEIGHTS_F32, INDEX_64 = 1, 2, 4
"""Bits of a router's ``flags``: divide weights by their sum; weights are f32, not of the dtype of
the logits; indices have 64 bits, not 32."""
ROUTE_MAX = 1024
"""Most experts of a router that is one kernel."""
BINS = 16
KEY_BITS = {"bf16": 16, "f16": 16, "f32": 32, "i32": 32}
VECTOR = 8
"""Neighbouring elements of a thread's vector load."""
CANDIDATE_BYTES = 8
"""Bytes of a candidate for the k largest of a row: its key and its index."""


PER_ROW = {
    "temperatures": "float",
    "top_ks": "int",
    "top_ps": "float",
    "min_ps": "float",
    "seeds": "long long",
    "offsets": "long long",
}
"""C++ types of the settings of ``sample`` that have one element a row, by pointer parameter."""
SAMPLING_PARAMS = (
    *(ptr(n, f"const {ctype}* __restrict__", optional=True) for n, ctype in PER_ROW.items()),
    ptr("y", "long long*"),
    Param("seed", "i64"),
    Param("offset", "i64"),
    *(Param(n, "f32") for n in ("temperature", "top_p", "min_p")),
    *(Param(n, "u32") for n in ("cols", "k")),
)
"""Parameters of all sampling kernels. Where a pointer is null, the scalar holds for all rows."""


@dataclass(frozen=True)
class SelectSpec(KernelSpec):
    """A top-k kernel by radix selection: a CTA of ``warps`` warps narrows down the k-th key of a
    row digit by digit. Keys are integers in the order of the elements.
    """

    warps: int = 16
    dtype: str = "bf16"
    min_arch: str = "sm_80"
    contract: Contract = TOPK_CONTRACT

    family: ClassVar[str] = "select_topk"
    template: ClassVar[str] = "select/topk.cu.j2"
    BINS: ClassVar[int] = BINS
    SMALLEST: ClassVar[int] = SMALLEST
    nothing: ClassVar[str] = "~0u"
    """C++ constant whose low bits are the key of a NaN: ``~0u`` orders NaN last, as the largest."""
    mass_bytes: ClassVar[int] = 4
    meanings: ClassVar[Mapping[str, str]] = {
        **KernelSpec.meanings,
        "warps": "warps of a CTA",
    }

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
        """Resident CTAs per SM, the second argument of ``__launch_bounds__``."""
        return max(16 // self.warps, 1)

    @property
    def together(self) -> int:
        """CTAs that share a row: one, or those of a cluster."""
        return 1

    @property
    def bits(self) -> int:
        """Number of bits of a key, the integer by which an element is ordered."""
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
            "rows": sys.modules[logsumexp.__name__],
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

    def roofline(self, dtype: Hashable) -> Roofline:
        return Roofline(ROWS * COLS)

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
        return (
            f"contract {self.contract}: {self.contract.step}",
            f"CTAs {self.grid}, {self.together} of a row",
        )


@dataclass(frozen=True)
class LanesSpec(SelectSpec):
    """A top-k kernel for short rows: a warp holds a row in registers and extracts its largest
    element, k times.
    """

    warps: int = 8

    family: ClassVar[str] = "select_topk_lanes"
    template: ClassVar[str] = "select/lanes.cu.j2"
    shared_bytes: ClassVar[int] = 0

    @property
    def abi(self) -> Abi:
        return Abi((*super().abi.params, Param("rows", "u32")))

    @property
    def grid(self) -> Expr:
        return ceil_div(ROWS, self.warps)

    @property
    def requires(self) -> Expr:
        return (COLS <= VECTOR * WARP) & (K <= WARP)

    @property
    def index_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        return (("blockIdx.x * WARPS + warp", self.grid * self.warps, INDEX_MAX),)

    @property
    def expects(self) -> tuple[Expect, ...]:
        return (Expect("ld.global.v4.u32"),)

    def describe(self) -> tuple[str, ...]:
        return (
            f"contract {self.contract}: {self.contract.step}",
            f"CTAs {self.grid}, a warp a row",
        )


ROUTE_SPACE = Space(
    "route",
    (
        ("ROWS", SIZE),
        ("COLS", Between(1, ROUTE_MAX)),
        ("K", Between(1, WARP)),
        ("SMS", Between(1, SMS_MAX)),
    ),
)
_DECAY = Formula((Output("y", "f32", decay(read("x", "f32", "element"))),))


@dataclass(frozen=True)
class RouteSpec(SelectSpec):
    """A router of experts: a warp computes the softmax of a row in registers, ``groups`` vectors a
    lane, and extracts its largest element, k times.
    """

    warps: int = 4
    groups: int = 1
    contract: Contract = reduction_order.ROWS

    family: ClassVar[str] = "select_route"
    template: ClassVar[str] = "select/route.cu.j2"
    legible: ClassVar[bool] = False
    shared_bytes: ClassVar[int] = 0
    waits: ClassVar[bool] = True
    NORMALIZE: ClassVar[int] = NORMALIZE
    WEIGHTS_F32: ClassVar[int] = WEIGHTS_F32
    INDEX_64: ClassVar[int] = INDEX_64
    meanings: ClassVar[Mapping[str, str]] = {
        **SelectSpec.meanings,
        "groups": "vectors of a lane",
    }

    @property
    def label(self) -> str:
        return f"{self.dtype}_{self.groups}"

    @property
    def context(self) -> Mapping[str, Any]:
        epsilon = cuda.literal(const(select.NORMAL_MIN, "f32"))
        found = {"formula": _DECAY, "functions": cuda.functions, "epsilon": epsilon}
        return MappingProxyType({**super().context, **found})

    @property
    def abi(self) -> Abi:
        pointers = (
            ptr("x", f"const {cuda.STORAGE[self.dtype]}* __restrict__"),
            ptr("weights", "void*"),
            ptr("experts", "void*"),
        )
        scalars = (Param(n, "u32") for n in ("cols", "k", "flags", "rows"))
        return Abi((*pointers, Param("ldx", "i64"), Param("scale", "f32"), *scalars))

    @property
    def grid(self) -> Expr:
        return ceil_div(ROWS, self.warps)

    @property
    def requires(self) -> Expr:
        return COLS <= self.groups * VECTOR * WARP

    @property
    def index_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        return (("blockIdx.x * WARPS + warp", self.grid * self.warps, INDEX_MAX),)

    @property
    def expects(self) -> tuple[Expect, ...]:
        return (*super().expects, Expect("div.rn.f32"))

    def describe(self) -> tuple[str, ...]:
        return (
            f"contract {self.contract}: {self.contract.step}",
            f"CTAs {self.grid}, a warp a row",
        )


@dataclass(frozen=True)
class SiftSpec(SelectSpec):
    """A top-k kernel by a threshold: the k-th largest of the threads' maxima is a lower bound of
    the k-th largest element. Elements below it are dropped, the others are sorted.

    ``part``: "whole" (a CTA selects from a row), "part" (from a part of a row, to scratch memory)
    or "merge" (from the results of a row's parts). ``items_per_thread``: elements of a thread;
    ``capacity``: most elements that a CTA can sort.
    """

    part: str = "whole"
    items_per_thread: int = 32
    capacity: int = 4096

    family: ClassVar[str] = "select_topk_sift"
    template: ClassVar[str] = "select/sift.cu.j2"
    shared_bytes: ClassVar[int] = 0
    draws: ClassVar[bool] = False
    PARTS: ClassVar[tuple[str, ...]] = ("whole", "part", "merge")
    span: ClassVar[int] = 1 << 14
    """Elements of a part of a row."""
    meanings: ClassVar[Mapping[str, str]] = {
        **SelectSpec.meanings,
        "part": "step: whole (all of a row), part (candidates), merge or draw (from them)",
        "items_per_thread": "elements that a thread holds",
        "capacity": "most candidates that are sorted, a power of two",
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        name, unit = type(self).__name__, 1 if self.waits else VECTOR
        check(self.part in self.PARTS, name, "part", self.part, self.PARTS)
        check(
            self.items_per_thread % unit == 0 and self.items_per_thread <= WARP,
            name,
            "items_per_thread",
            self.items_per_thread,
            (unit, WARP),
        )
        check(
            self.capacity & (self.capacity - 1) == 0,
            name,
            "capacity",
            self.capacity,
            "a power of two",
        )
        check(
            self.threads <= self.capacity,
            name,
            "threads within the capacity",
            self.threads,
            self.capacity,
        )
        if self.part == "part":
            check(self.owned == self.span, name, "elements of a CTA", self.owned, self.span)

    @property
    def label(self) -> str:
        return f"{self.part}_{self.dtype}_{self.warps}x{self.items_per_thread}"

    @property
    def resident(self) -> int:
        return max(32 // self.warps, 1)

    @property
    def owned(self) -> int:
        """Elements that a CTA holds."""
        return self.threads * self.items_per_thread

    @property
    def waits(self) -> bool:
        return self.part in ("merge", "draw")

    @property
    def abi(self) -> Abi:
        x, *results = super().abi.pointers
        scalars = super().abi.scalars
        pointers = {
            "whole": (x, *results),
            "part": (x, self.candidates),
            "merge": (x, self.candidates, *results),
        }[self.part]
        return Abi((*pointers, *scalars))

    @property
    def candidates(self) -> Param:
        """Pointer parameter of the candidates, the k largest of each part of a row."""
        written = "" if self.part == "part" else "const "
        return ptr("candidates", f"{written}unsigned long long*")

    @property
    def scratch(self) -> Mapping[str, Expr]:
        if self.part == "whole":
            return {}
        return {"candidates": ROWS * (ceil_div(COLS, self.span) * K) * CANDIDATE_BYTES}

    @property
    def grid(self) -> Expr:
        return ROWS * ceil_div(COLS, self.span) if self.part == "part" else ROWS

    @property
    def requires(self) -> Expr:
        """Predicate under which the elements above the threshold fit ``capacity``: at most k
        threads have a maximum above it, each with up to ``items_per_thread`` elements.
        """
        left = TRUE if self.owned <= self.capacity else K * self.items_per_thread <= self.capacity
        if self.part == "whole":
            return (COLS <= self.owned) & left
        fits = self.scratch["candidates"] <= WORKSPACE_MAX
        if self.part == "part":
            return all_of((left, self.grid <= GRID_MAX, fits))
        return all_of((left, ceil_div(COLS, self.span) * K <= self.owned, fits))

    @property
    def index_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        return (("begin + SPAN", COLS + self.span, INDEX_MAX),)

    def describe(self) -> tuple[str, ...]:
        return (
            f"contract {self.contract}: {self.contract.step}",
            f"{self.part}: CTAs {self.grid}, {self.items_per_thread} elements of a thread",
        )


@dataclass(frozen=True)
class SampleSpec(SelectSpec):
    """A sampling kernel: a CTA, or a cluster of ``cluster`` CTAs, draws an element of a row."""

    cluster: int = 1
    contract: Contract = SAMPLE_CONTRACT

    family: ClassVar[str] = "select_sample"
    legible: ClassVar[bool] = False
    template: ClassVar[str] = "select/sample.cu.j2"
    nothing: ClassVar[str] = "0u"
    mass_bytes: ClassVar[int] = 8
    meanings: ClassVar[Mapping[str, str]] = {
        **SelectSpec.meanings,
        "cluster": "CTAs of a cluster, which computes one row",
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        name = type(self).__name__
        check(1 <= self.cluster <= 8, name, "CTAs of a cluster (portable)", self.cluster, 8)
        least = "sm_90" if self.cluster > 1 else "sm_80"
        check(self.min_arch == least, name, "min_arch", self.min_arch, least)

    @property
    def label(self) -> str:
        return f"{self.dtype}_{self.warps}" + (f"x{self.cluster}" if self.cluster > 1 else "")

    @property
    def together(self) -> int:
        return self.cluster

    @property
    def resident(self) -> int:
        return max((16 if self.cluster == 1 else 32) // self.warps, 1)

    @property
    def grid(self) -> Expr:
        return ROWS * self.cluster

    @property
    def requires(self) -> Expr:
        """Predicate under which each chunk's sum of weights and number of ties fit the shared
        memory of the histogram, which they reuse.
        """
        chunks = ceil_div(COLS, 8 * WARP * self.cluster)
        fits = chunks * (self.mass_bytes + 4) <= self.shared_bytes
        return all_of((fits, self.grid <= GRID_MAX))

    @property
    def expects(self) -> tuple[Expect, ...]:
        found = super().expects
        return (*found, Expect("st.shared::cluster.b64")) if self.cluster > 1 else found

    @property
    def abi(self) -> Abi:
        return Abi((super().abi.pointers[0], *SAMPLING_PARAMS, Param("ldx", "i64")))


@dataclass(frozen=True)
class DrawSpec(SiftSpec):
    """A sampling kernel that draws one of the k largest elements of a row: "part" finds candidates
    in parts of the row, "draw" draws from them.
    """

    part: str = "part"
    contract: Contract = SAMPLE_CONTRACT

    family: ClassVar[str] = "select_sample_sift"
    nothing: ClassVar[str] = "0u"
    draws: ClassVar[bool] = True
    PARTS: ClassVar[tuple[str, ...]] = ("part", "draw")

    @property
    def abi(self) -> Abi:
        if self.part == "part":
            return super().abi
        # One k for all rows: `requires` excludes K = 0, by which rows have their own.
        return Abi((self.candidates, *(p for p in SAMPLING_PARAMS if p.name != "top_ks")))

    @property
    def requires(self) -> Expr:
        return (K >= 1) & super().requires
