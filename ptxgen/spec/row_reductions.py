"""Reductions along rows and operations around them (softmax, norms): variables and kernels.

=================  ==============================================================
``ROWS, COLS``     rows, and elements of each; 1 .. 2^31 - 1
``VECTOR``         1 if all rows are aligned to 16 bytes and have whole groups of 8 elements
``HELD``           bytes that a kernel which holds rows keeps for each element
``READ``           bytes read for each element, over all arrays; 64 if an array or result has
                   1-byte elements, or if results do not fit where the arrays were
``MOVED``          bytes read and written for each element, over all arrays and results
``WORK``           operations for each element
``PASSES``         number of stages, with the one that writes results
``DENSE``          READ, if elements of all arrays and results have the same size, rows have no gaps
                   between them, and arrays begin at 16 bytes; else 64
``WAY``            1 if there is one stage and no result for elements; 0 if split kernels do not
                   apply (more than two stages, or too many reductions); else 2
``LEAVES``         ceil(COLS / LEAF), of the contract; ``BRANCHES`` likewise
``LANE_SUMS``      lanes of all leaves along columns, where results are sums down rows
``SMS``            streaming multiprocessors of the device
=================  ==============================================================

Further scalar parameters: ``LD_<name>``, the row stride of each array of kind "element", in
elements, and the formula's scalars. A kernel computes a *variant*: a formula with its dtypes
(:mod:`ptxgen.numerics.row_reductions`), cut into stages (:mod:`ptxgen.spec.reduction_stages`). One
table of routes serves all variants.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from types import MappingProxyType
from typing import Any, ClassVar, Self

from ptxgen.cost.kernel import NOTHING, KernelCost, Phase, Roofline
from ptxgen.expr import TRUE, Expr, all_of, ceil_div, const, minimum, var
from ptxgen.numerics import reduction_order, row_reductions
from ptxgen.numerics.contract import Contract
from ptxgen.numerics.reduction_order import BRANCH, GROUP, LANES, LEAF
from ptxgen.numerics.reduction_order import ROWS as CONTRACT
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
from ptxgen.spec.reduction_stages import KEPT_SIZES, Array, Plan, Stage, plan
from ptxgen.spec.space import SIZE, SMS_MAX, Between, OneOf, Space

ROWS, COLS, VECTOR, HELD = var("ROWS"), var("COLS"), var("VECTOR"), var("HELD")
BRANCHES, READ = var("BRANCHES"), var("READ")
LEAVES, SMS, WAY = var("LEAVES"), var("SMS"), var("WAY")
MOVED, WORK, PASSES, DENSE = var("MOVED"), var("WORK"), var("PASSES"), var("DENSE")
LANE_SUMS = var("LANE_SUMS")
DOWN_RESULTS_MAX = 2
"""Most results of a formula that are sums down rows; their partial sums have 8 bytes each."""
HANDED = 4
"""Most reductions that a stage of a formula may have in kernels that split a row over CTAs. Their
sums pass from launch to launch through scratch memory, 8 bytes each."""
ROW_PREFETCH_MAX = 48
"""Most registers in which a lane holds, for a whole row, its elements of inputs with one element
for each column (a norm's weight and bias). If they need more, they are loaded group by group."""
EARLY_PREFETCH_MAX = 16
"""Most registers of a lane for operands with one element a column (such as a norm's weight) that
are loaded together with the row. If they need more, they are loaded when a stage uses them."""
READ_MAX = 64
"""Largest value of the variables READ, the bytes that are read for each element, and DENSE."""

SPACE = Space(
    "rows by formula",
    (
        ("ROWS", SIZE),
        ("COLS", SIZE),
        ("VECTOR", OneOf((0, 1))),
        ("HELD", OneOf(KEPT_SIZES)),
        ("READ", Between(1, READ_MAX)),
        ("WAY", OneOf((0, 1, 2))),
        ("MOVED", SIZE),
        ("WORK", SIZE),
        ("PASSES", SIZE),
        ("DENSE", Between(1, READ_MAX)),
        ("SMS", Between(1, SMS_MAX)),
    ),
    derived=(("LEAVES", ceil_div(COLS, LEAF)), ("BRANCHES", ceil_div(COLS, LEAF * BRANCH))),
)
DOWN_COLS, DOWN_READ = 8 * LEAF, 4
"""Largest values of the variables COLS and READ (bytes read for each element) where results are
sums down rows."""
DOWN_MAX = WORKSPACE_MAX // (DOWN_RESULTS_MAX * 8)
"""Largest product LANE_SUMS * COLS: number of partial sums down rows that fit the workspace for
each result."""
DOWN_ELEMENTS = (DOWN_MAX // LANES - DOWN_COLS) * LEAF
"""Largest product ROWS * COLS for which ``LANE_SUMS * COLS <= DOWN_MAX`` holds whatever ROWS is."""
DOWN_SPACE = Space(
    "rows by formula, with sums down them",
    (
        ("ROWS", SIZE),
        ("COLS", Between(1, DOWN_COLS)),
        ("VECTOR", OneOf((0, 1))),
        ("READ", Between(1, DOWN_READ)),
        ("SMS", Between(1, SMS_MAX)),
    ),
    derived=(("LANE_SUMS", ceil_div(ROWS, LEAF) * LANES),),
    within=LANE_SUMS * COLS <= DOWN_MAX,
)


@cache
def way(variant: str) -> int:
    """Returns the value of the variable WAY for ``variant``, which says what kernels that split
    rows over CTAs compute: 1, one stage and no results for elements; 2, more than that. 0: they do
    not apply (more than two stages, or more than :data:`HANDED` reductions in one).
    """
    found = plan(variant, False)
    most = max((len(s.reductions) for s in found.stages), default=0)
    if not 1 <= len(found.stages) <= 2 or most > HANDED:
        return 0
    return 1 if len(found.stages) == 1 and not found.element_outputs else 2


@cache
def held(variant: str) -> int:
    """Returns the value of the variable HELD for ``variant``: bytes that a kernel which holds rows
    keeps for each element.
    """
    return plan(variant, True).held


@cache
def reads(variant: str) -> int:
    """Returns the value of the variable READ for ``variant``: bytes that a kernel reads for each
    element, over all arrays. It is :data:`READ_MAX`, too many for kernels that stage rows in shared
    memory, if elements have 1 byte, or if the results do not fit in the place of the arrays.
    """
    found = plan(variant, False)
    sizes, made = ([x.nbytes for x in a] for a in (found.elements, found.element_outputs))
    if found.downs:
        return sum(sizes)
    fits = len(made) <= len(sizes) and all(o <= i for i, o in zip(sizes, made, strict=False))
    # A lane moves eight neighbours as whole 16-byte vectors, so elements have two bytes or more.
    fits = fits and min((*sizes, *made), default=0) > 1
    return sum(sizes) if fits else READ_MAX


@cache
def dense_bytes(variant: str) -> int:
    """Returns the value of the variable DENSE for ``variant``: bytes that a kernel reads for each
    element, where rows have no gaps between them. It is :data:`READ_MAX`, too many for every
    kernel, if elements have several sizes, or results do not fit in the place of the arrays.
    """
    found = plan(variant, False)
    arrays = [*found.elements, *found.element_outputs]
    fits = len(found.element_outputs) <= len(found.elements) and not found.downs
    if not fits or {x.nbytes for x in arrays} not in ({2}, {4}, {8}):
        return READ_MAX
    return min(sum(x.nbytes for x in found.elements), READ_MAX)


@cache
def facts(variant: str) -> Mapping[str, int]:
    """Returns the variables of a problem that depend on ``variant`` alone, by name: HELD, READ,
    WAY, MOVED, WORK, PASSES and DENSE (the module's docstring defines them). DENSE is that of rows
    without gaps between them, from 16 bytes on.
    """
    found = plan(variant, False)
    moved = sum(x.nbytes for x in (*found.elements, *found.element_outputs))
    return MappingProxyType(
        {
            "HELD": held(variant),
            "READ": reads(variant),
            "WAY": way(variant),
            "MOVED": max(moved, 1),
            "WORK": max(row_reductions.formula(variant).work, 1),
            "PASSES": len(found.all_stages),
            "DENSE": dense_bytes(variant),
        }
    )


SPLIT = ("branches", "combine", "finish")
DOWN = ("lane", "lanes")
PARTS = ("held", "dense", "cluster", "staged", "streamed", *SPLIT, *DOWN)


@dataclass(frozen=True)
class RowSpec(KernelSpec):
    """A kernel of an operation along rows (softmax, norms, losses).

    ``part`` says how a row is distributed:

    - "held": ``warps`` warps share a row and keep its elements in registers;
    - "cluster": ``cluster`` CTAs keep a row in registers and exchange their leaves' sums;
    - "dense": ``lanes`` lanes compute a row of at most ``most_cols`` columns. Each warp copies a
      block of rows without gaps to shared memory, ``buffer_itemsize`` bytes for each element;
      results replace the elements there, and are copied back;
    - "staged": as "held", but persistent CTAs copy the next row to shared memory while they
      compute; it holds ``row_buffers`` rows of ``buffer_itemsize`` bytes an element;
    - "streamed": a CTA computes a row and reads it again for every stage;
    - "branches", "combine", "finish": separate launches that spread few very long rows over all
      CTAs. For each ``stage``, "branches" writes the sums of one branch a CTA to scratch memory,
      and "combine" adds those of a row; "finish" writes the results for elements;
    - "lane", "lanes": for results that are sums down rows. In "lane" a CTA reads the rows of one
      lane of the contract, one after the other, each in registers (``row_buffers`` as in "staged"),
      and writes the sums of its columns to scratch memory; "lanes" adds these.

    ``is_last``: whether this is the last possible stage, which writes the results for rows.
    ``leaves_per_warp``: leaves that a warp holds at a time. ``rows_per_cta``: rows of a CTA, a warp
    each. ``lanes``: lanes that share a row; ``groups_per_lane``: groups of a leaf that a lane
    holds; short rows have fewer of both than the contract's. ``vectorized``: elements move in
    16-byte vectors. ``persistent``: CTAs loop over the rows. ``ctas_per_sm``: CTAs that share an
    SM, which bounds the registers. ``variant``: the formula and its dtypes.
    """

    part: str
    warps: int = 1
    leaves_per_warp: int = 1
    rows_per_cta: int = 1
    lanes: int = LANES
    groups_per_lane: int = LEAF // (LANES * GROUP)
    cluster: int = 1
    vectorized: bool = True
    persistent: bool = False
    ctas_per_sm: int = 1
    row_buffers: int = 1
    buffer_itemsize: int = 2
    stage: int = 0
    is_last: bool = False
    most_cols: int | None = None
    variant: str = "softmax x=bf16 > bf16"
    contract: Contract = CONTRACT

    family: ClassVar[str] = "row_reductions"
    meanings: ClassVar[Mapping[str, str]] = {
        **KernelSpec.meanings,
        "part": "distribution of a row over threads",
        "warps": "warps that share a row",
        "leaves_per_warp": "leaves of a row that a warp holds at a time",
        "rows_per_cta": "rows that a CTA computes at a time",
        "lanes": "lanes that share a row",
        "groups_per_lane": "groups of a leaf's elements that a lane holds",
        "cluster": "CTAs of a cluster, which computes one row",
        "vectorized": "whether elements move in 16-byte vectors",
        "persistent": "whether the grid is bounded and each CTA computes several rows",
        "ctas_per_sm": "CTAs that share an SM (bounds registers a thread)",
        "row_buffers": "rows that fit a CTA's shared memory",
        "buffer_itemsize": "bytes of an element in shared memory",
        "stage": "stage of an operation of several launches",
        "most_cols": "columns of a row for which shared memory has room",
        "is_last": "whether this is the last possible stage, which writes a row's results",
        "variant": "operation and dtypes",
    }

    def __post_init__(self) -> None:
        check(self.part in PARTS, type(self).__name__, "part", self.part, PARTS)
        name = self.name
        check(self.threads <= 1024, name, "threads", self.threads, 1024)
        check(self.rows_per_cta == 1 or self.warps == 1, name, "warps of a row", self.warps, 1)
        short = self.lanes < LANES or self.groups_per_lane < LEAF // (LANES * GROUP)
        alone = self.warps == self.leaves_per_warp == self.cluster == 1
        alone = alone and self.part in ("held", "dense")
        check(alone or not short, name, "warps of a short row", self.warps, 1)
        check(
            (self.part == "cluster") == (self.cluster > 1), name, "CTAs of a row", self.cluster, 1
        )
        staged = self.part == "staged"
        walks = staged or self.part == "lane"
        check(self.persistent == walks, name, "persistent", self.persistent, walks)
        check(self.row_buffers in (1, 2, 3, 4), name, "row_buffers", self.row_buffers, (1, 2, 3, 4))
        check(self.row_buffers <= 2 or not staged, name, "row_buffers", self.row_buffers, (1, 2))
        downs = len(self.plan.downs)
        check((downs > 0) == (self.part in DOWN), name, "sums down rows", downs, self.part)
        check(downs <= DOWN_RESULTS_MAX, name, "sums down rows", downs, DOWN_RESULTS_MAX)
        room = self.most_cols or 0
        check((room > 0) == (self.part == "dense"), name, "most_cols", room, self.part)
        unit = self.lanes * GROUP
        check(room % unit == 0, name, "lanes of most_cols", room, unit)
        check(self.cluster <= 8, name, "CTAs of a cluster (portable)", self.cluster, 8)
        branch = self.part in ("streamed", "branches", "finish")
        whole = not branch or self.warps * self.leaves_per_warp == BRANCH
        check(whole, name, "leaves at a time", self.warps * self.leaves_per_warp, BRANCH)

    @property
    def template(self) -> str:  # type: ignore[override]
        """Template file, by ``part``."""
        return f"row_reductions/{self.part}.cu.j2"

    @property
    def dtype(self) -> str:
        """Dtype of the first array of the variant."""
        return self.variant.split()[1].partition("=")[2]

    @property
    def operation(self) -> str:
        """Name of the operation, first word of the variant."""
        return self.variant.partition(" ")[0]

    @property
    def min_arch(self) -> str:
        """Oldest architecture with enough shared memory, and with clusters if the kernel uses
        them.
        """
        room = self.shared_bytes <= ARCHITECTURES["sm_80"].shared_per_cta
        return "sm_80" if room and self.part != "cluster" else "sm_90"

    def of(self, dtype: Hashable) -> Self:
        """Returns this kernel for another variant, ``dtype`` (a formula with its dtypes)."""
        return self if dtype == self.variant else replace(self, variant=str(dtype))

    @property
    def label(self) -> str:
        of_row = self.lanes * self.warps * self.cluster
        shape = f"{of_row}x{self.most_cols or self.leaves_per_warp * self.groups_per_lane * GROUP}"
        part = f"{self.part}{self.stage}" if self.part in ("branches", "combine") else self.part
        return f"{self.operation}_{self.dtype}_{part}_{shape}{'' if self.vectorized else '_any'}"

    @property
    def threads(self) -> int:
        return (
            self.warps * self.rows_per_cta * WARP
            if self.warps > 1
            else self.rows_per_cta * self.lanes
        )

    @property
    def shared_bytes(self) -> int:
        if self.part == "lane" and self.vectorized:
            return self.row_buffers * self.warps * self.buffer_itemsize * LEAF
        if self.part == "dense":
            return self.rows_per_cta * self.buffer_itemsize * self.capacity
        if self.part != "staged":
            return 0
        return (
            self.row_buffers
            * self.warps
            * self.buffer_itemsize
            * (self.leaves_per_warp * LEAF + 16)
        )

    @property
    def capacity(self) -> int:
        """Elements of a row that all warps of the kernel together hold at a time."""
        if self.most_cols is not None:
            return self.most_cols
        return (
            self.lanes
            * self.groups_per_lane
            * GROUP
            * self.warps
            * self.leaves_per_warp
            * self.cluster
        )

    @property
    def levels(self) -> int:
        """Levels of the tree in which "dense" adds rounds, each a group of every lane of a row."""
        return max((self.capacity // (GROUP * self.lanes) - 1).bit_length(), 1)

    @property
    def leaves_of_row(self) -> int:
        """Leaves of a row that all warps of the kernel together hold at a time."""
        return self.warps * self.cluster * self.leaves_per_warp

    @cached_property
    def plan(self) -> Plan:
        """Stages of the formula; kernels that hold rows keep expensive values from stage to
        stage.
        """
        if self.part == "staged":
            found = plan(self.variant, True)
            return (
                found if self.leaves_per_warp == 1 or found.in_place else plan(self.variant, False)
            )
        return plan(self.variant, self.part in ("held", "cluster", "lane"))

    @property
    def in_place(self) -> bool:
        """Whether values that are kept for later stages overwrite elements in shared memory, those
        of the first of a warp's two leaves.
        """
        return self.part == "staged" and self.leaves_per_warp == 2 and bool(self.plan.kept)

    def _words(self, arrays: list[Array]) -> int:
        """Returns the registers that a lane needs to load one group of elements of each of
        ``arrays``; unaligned loads take four more for each array.
        """
        return sum(i.words + (0 if self.vectorized else 4) for i in arrays)

    @property
    def at_once(self) -> bool:
        """Whether a lane loads its elements of inputs of kind "column" (a norm's weight and bias)
        for all its groups of a row together, instead of group by group.
        """
        short = self.warps <= 2 and self.leaves_per_warp == 1 and self.groups_per_lane > 1
        return short and 0 < self._columns <= ROW_PREFETCH_MAX

    @property
    def early(self) -> bool:
        """Whether inputs with one element for each column (a norm's weight and bias) are loaded
        together with the row, before the row's sums are known.
        """
        return self.part == "held" and self.warps == 4 and 0 < self._columns <= EARLY_PREFETCH_MAX

    @property
    def _columns(self) -> int:
        """Registers of a lane for the elements of inputs of kind "column" (a norm's weight and
        bias) that belong to its groups of a leaf.
        """
        return self._words(self.plan.columns) * self.groups_per_lane

    @property
    def _most_words(self) -> int:
        """Registers of a lane for its group of elements, in the stage that loads the most."""
        return max(self._words(stage.loaded) for stage in self.plan.all_stages)

    @property
    def _sm_registers(self) -> int:
        return ARCHITECTURES[self.min_arch].registers_per_sm

    @property
    def _thread_registers(self) -> int:
        """Registers of a thread with ``ctas_per_sm`` CTAs on an SM."""
        return self._sm_registers // (self.threads * self.ctas_per_sm)

    @property
    def fused(self) -> bool:
        """Whether elements are loaded group by group when they are used, since a lane's registers
        cannot hold all of them.
        """
        return (
            self._most_words * self.groups_per_lane * self.leaves_per_warp
            > self._thread_registers * 3 // 4
        )

    @property
    def resident(self) -> int:
        """Resident CTAs per SM: ``ctas_per_sm``, or 1 if a lane's group of elements would take more
        than half of a thread's registers.
        """
        return self.ctas_per_sm if self._most_words <= self._thread_registers // 2 else 1

    @property
    def earlier(self) -> list[Stage]:
        """Stages whose sums the earlier launches of a split kernel have computed."""
        if self.part == "finish":
            return self.plan.stages
        return self.plan.stages[: self.stage]

    @property
    def current(self) -> Stage | None:
        """Stage that this launch computes; None if the formula has fewer stages."""
        if self.part == "finish":
            return self.plan.last
        return self.plan.stages[self.stage] if self.stage < len(self.plan.stages) else None

    @property
    def waits(self) -> bool:
        if self.part == "lanes":
            return True
        return self.part in SPLIT and (self.part, self.stage) != ("branches", 0)

    @property
    def scratch(self) -> Mapping[str, Expr]:
        if self.part in DOWN:
            return {"lane_sums": LANE_SUMS * COLS * (DOWN_RESULTS_MAX * 8)}
        if self.part not in SPLIT:
            return {}
        total = {"row_sums": ROWS * (2 * HANDED * 8)}
        if self.part == "finish":
            return total
        return {"branch_sums": ROWS * BRANCHES * (HANDED * 8), **total}

    @property
    def context(self) -> Mapping[str, Any]:
        return MappingProxyType(
            {
                "plan": self.plan,
                "formula": row_reductions.formula(self.variant),
                "functions": cuda.functions,
                "contract": sys.modules[reduction_order.__name__],
                "HANDED": HANDED,
            }
        )

    @property
    def abi(self) -> Abi:
        formula = row_reductions.formula(self.variant)
        arrays = [i for i in formula.inputs if i.kind != "scalar"]
        pointers = [ptr(i.name, f"const {cuda.STORAGE[i.dtype]}* __restrict__") for i in arrays]
        pointers += [ptr(o.name, f"{cuda.STORAGE[o.dtype]}*") for o in formula.outputs]
        pointers += [ptr(name, "unsigned long long*") for name in self.scratch]
        pitches = [Param(f"ld_{i.name}", "i64") for i in arrays if i.kind == "element"]
        numbers = [Param(i.name, i.dtype) for i in formula.inputs if i.kind == "scalar"]
        sizes = (Param("rows", "u32"), Param("cols", "u32"))
        return Abi((*pointers, *pitches, *numbers, *sizes))

    @property
    def grid(self) -> Expr:
        if self.part in DOWN:
            return LANE_SUMS if self.part != "lanes" else ceil_div(COLS, WARP)
        if self.persistent:
            return minimum(ceil_div(ROWS, self.rows_per_cta), SMS * self.ctas_per_sm)
        if self.part in ("branches", "finish"):
            return ROWS * BRANCHES
        if self.rows_per_cta > 1:
            return ceil_div(ROWS, self.rows_per_cta)
        return ROWS if self.cluster == 1 else ROWS * self.cluster

    @property
    def room(self) -> int:
        """Largest value of the variable HELD (bytes that are kept for each element) that the kernel
        supports; with more it would spill registers.
        """
        elements = self.leaves_per_warp * self.groups_per_lane * GROUP  # of a lane
        if self.part == "staged":
            return 4
        alone = self.threads * self.ctas_per_sm <= 256
        return min(512 // elements, 16) if alone else 256 // elements

    @property
    def cost(self) -> KernelCost | None:
        if self.part in DOWN:
            return None
        registers = 32 + self.leaves_per_warp * self.groups_per_lane * GROUP  # of a thread, about
        fitting = min(self._sm_registers // (self.threads * registers), 2048 // self.threads, 32)
        fixed = self.persistent or self.part == "dense"  # by shared memory
        slots = self.ctas_per_sm if fixed else max(fitting, self.ctas_per_sm)
        if self.part == "combine":
            step = Phase("fma", ceil_div(BRANCHES, BRANCH), NOTHING)
            return KernelCost(slots, self.grid, (step,), NOTHING, NOTHING, NOTHING)
        moved, steps = ROWS * COLS * MOVED, const(1)
        share = ceil_div(COLS, self.cluster) if self.cluster > 1 else COLS
        if self.part in ("branches", "finish"):
            share = minimum(COLS, BRANCH * LEAF)
        if self.part == "streamed":  # every stage reads the row again
            moved, steps = (
                moved * PASSES,
                BRANCHES * PASSES * (self.leaves_per_warp * self.groups_per_lane),
            )
        if self.part == "dense":  # lanes without elements wait for those that have some
            rounds = ceil_div(COLS, self.lanes * GROUP)
            steps, share = PASSES * rounds, rounds * (self.lanes * GROUP)
        if self.rows_per_cta > 1:
            share = share * self.rows_per_cta
        ctas = ROWS if self.persistent else self.grid
        return KernelCost(slots, ctas, (Phase("fma", steps, share * WORK),), moved, moved, NOTHING)

    def roofline(self, dtype: Hashable) -> Roofline:
        return Roofline(ROWS * COLS * row_reductions.formula(str(dtype)).work)

    @property
    def requires(self) -> Expr:
        found = []
        if self.vectorized and self.part not in ("combine", "lanes"):
            found.append(VECTOR >= 1)
        if not self.vectorized and self.part not in ("dense", "staged", "lane"):
            found.append(VECTOR <= 0)  # else the kernel with 16-byte vectors is faster
        if self.part in ("held", "dense", "cluster", "staged", "lane"):
            found.append(COLS <= self.capacity)
        if self.part == "dense":
            found.append(DENSE <= self.buffer_itemsize)
        if self.part in ("held", "cluster", "staged"):
            found.append(HELD <= self.room)
        if self.part in ("staged", "lane"):
            found.append(READ <= self.buffer_itemsize)
        if self.part in DOWN:
            found.append(DOWN_SPACE.within)
        if self.part in SPLIT:
            found.append(WAY.eq(1) if self.is_last and self.stage == 0 else WAY >= 1)
            found += [size <= WORKSPACE_MAX for size in self.scratch.values()]
        if self.cluster > 1 or self.part in SPLIT:
            found.append(self.grid <= GRID_MAX)
        return all_of(found) if found else TRUE

    @property
    def index_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        found = [
            ("blockIdx.x * ROWS + warp, row + gridDim.x", ROWS + self.grid * self.rows_per_cta)
        ]
        if self.part in DOWN:
            found = [("a row of a leaf, and beyond", ROWS + 2 * LEAF), ("blockIdx.x", self.grid)]
        if self.part == "dense":
            found.append(("own * cols, count * cols", COLS * WARP))
        held = self.part in ("held", "dense", "cluster", "staged", "lane")
        chunk = self.capacity if held else BRANCH * LEAF
        found.append(("first element of a chunk, and all of it", COLS + 2 * chunk))
        return tuple((text, value, INDEX_MAX) for text, value in found)

    @property
    def expects(self) -> tuple[Expect, ...]:
        found = list(super().expects)
        if self.part not in ("combine", "finish", "lanes") and self.lanes > 1:
            found.append(Expect("shfl"))
        if self.part == "dense":
            found.append(Expect("cp.async.cg"))
        if self.cluster > 1:
            found.append(Expect("st.shared::cluster.b32"))
        return tuple(found)

    def describe(self) -> tuple[str, ...]:
        return (
            self.variant,
            f"contract {self.contract}: {self.contract.step}",
            f"{self.part}: {self.threads} threads",
        )
