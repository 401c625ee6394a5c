"""Reductions down columns: ``[OUTER, N, INNER]`` to ``[OUTER, INNER]``, contract ``rows/1``.

A column here is a row of the contract: N elements, one in each of N rows of memory. The same
formula (:mod:`ptxgen.numerics.formula`) thus has the same bits here as in a reduction along rows. A
thread reduces a few columns and adds the lanes of a leaf one after the other.

=================  ==============================================================
``OUTER``          number of matrices
``N, INNER``       rows and columns of a matrix; N may be 0; at most 2^31 - 1
``LEAVES``         ceil(N / LEAF), of the contract
``ITEM``           bytes of the widest element that is read
``ALIGN``          largest power of two, up to 16 bytes, that divides the inputs' rows,
                   pitches and addresses
``STATE``          bytes of all partial sums of a column
``READ``           bytes read for each element, over all inputs
``SMS``            streaming multiprocessors of the device
=================  ==============================================================

Further scalar parameters for each input ``x`` of kind "element": the strides ``LD_X`` from row to
row, and ``LO_X`` from matrix to matrix, in elements. Inputs of kind "column" are contiguous
``[N]``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar

from ptxgen.cost.kernel import NOTHING, KernelCost, Phase
from ptxgen.errors import SpecError
from ptxgen.expr import TRUE, Expr, all_of, ceil_div, minimum, var
from ptxgen.numerics import reduction_order
from ptxgen.numerics.contract import Contract
from ptxgen.numerics.dtype import ITEMSIZE
from ptxgen.numerics.formula import Formula, Node, ordered
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

OUTER, N, INNER, LEAVES = var("OUTER"), var("N"), var("INNER"), var("LEAVES")
ITEM, ALIGN, STATE, SMS = var("ITEM"), var("ALIGN"), var("STATE"), var("SMS")
READ = var("READ")

STATE_MAX = 64
SPACE = Space(
    "columns",
    (
        ("OUTER", SIZE),
        ("N", Between(0, SIZE.high)),
        ("INNER", SIZE),
        ("ITEM", OneOf((1, 2, 4, 8))),
        ("ALIGN", ALIGNMENT),
        ("STATE", Between(4, STATE_MAX)),
        ("READ", SIZE),
        ("SMS", Between(1, SMS_MAX)),
    ),
    derived=(("LEAVES", ceil_div(N, reduction_order.LEAF)),),
    within=OUTER * ceil_div(INNER, WARP) <= GRID_MAX,
)
PARTS = ("whole", "cluster", "leaves", "join")
SHARED_MAX = 48 << 10
"""Most static shared memory of a CTA, in bytes, without the opt-in attribute."""

FORMULAS: dict[str, Formula] = {}
"""Registered formulas of column reductions, by name; a kernel's ``dtype`` is such a name."""


def variant(label: str, formula: Formula) -> str:
    """Registers ``formula`` as a column reduction. Returns its name: ``label`` and a digest.

    Raises SpecError if kernels cannot compute it: a sum depends on another, a result is not one
    value for each column, or there are too many sums.
    """
    name = f"{label}_{formula.digest[:6]}"
    if name not in FORMULAS:
        reduces = reductions(formula)
        below = {n for n in ordered(r.args[0] for r in reduces) if n.op == "reduce"}
        if not reduces or below or any(o.level != "row" for o in formula.outputs):
            raise SpecError(f"{label}: columns are reduced once, to results for each column")
        if kinds := {i.kind for i in formula.inputs} - {"element", "column"}:
            raise SpecError(f"{label}: columns are made of elements and columns, not {kinds}")
        if state(formula) > STATE_MAX:
            raise SpecError(f"{label}: {len(reduces)} sums of a column; there is room for 8")
        FORMULAS[name] = formula
    check(FORMULAS[name] == formula, name, "one name, another formula", name, formula.digest)
    return name


def reductions(formula: Formula) -> list[Node]:
    """Returns the nodes of ``formula`` that sum (or otherwise reduce) columns, in the order of
    their sums in memory: widest first.
    """
    found = [n for n in formula.nodes if n.op == "reduce"]
    return sorted(found, key=lambda n: -ITEMSIZE[n.type])


def state(formula: Formula) -> int:
    """Returns the bytes of all partial sums of one column."""
    return sum(ITEMSIZE[n.type] for n in reductions(formula))


def item(formula: Formula) -> int:
    """Returns the bytes of the widest input element of ``formula``."""
    return max(ITEMSIZE[i.dtype] for i in formula.inputs if i.kind == "element")


def read(formula: Formula) -> int:
    """Returns the input bytes for each matrix element: those of all inputs of kind "element"."""
    return sum(ITEMSIZE[i.dtype] for i in formula.inputs if i.kind == "element")


@dataclass(frozen=True)
class ColumnsSpec(KernelSpec):
    """A kernel that reduces columns, in CTAs of ``warps`` warps. A leaf is 1024 rows of a column.

    ``part``: "whole" (a CTA adds one leaf after the other, then finishes), "cluster" (each of
    ``cluster`` CTAs adds one leaf and sends its sums to the first), "leaves" (a CTA writes one
    leaf's sums to scratch memory) or "join" (a thread adds the leaves' sums of a column).
    ``warps_per_leaf``: warps that share a leaf. ``vector_bytes``: bytes of the widest input that a
    thread loads at a time, whose elements are its columns. 0: a thread loads one element.
    ``dtype``: name of a registered formula.
    """

    part: str
    vector_bytes: int = 0
    warps_per_leaf: int = 1
    warps: int = 8
    cluster: int = 1
    dtype: str = "sum"
    min_arch: str = "sm_80"
    contract: Contract = reduction_order.ROWS

    family: ClassVar[str] = "column_reductions"
    template: ClassVar[str] = "column_reductions/columns.cu.j2"
    shared_bytes: ClassVar[int] = 0
    meanings: ClassVar[Mapping[str, str]] = {
        **KernelSpec.meanings,
        "dtype": "name of the formula and its dtypes",
        "part": "step: whole or cluster (all of a column), leaves (one leaf) or join (adds leaves)",
        "vector_bytes": "bytes of the widest input that a thread loads at a time (0: an element)",
        "warps_per_leaf": "warps that share a leaf",
        "warps": "warps of a CTA",
        "cluster": "CTAs of a cluster, which divide the leaves of their columns",
    }

    def __post_init__(self) -> None:
        name = type(self).__name__
        check(self.part in PARTS, name, "part", self.part, PARTS)
        check(
            self.vector_bytes in (0, 4, 8, 16),
            name,
            "vector_bytes",
            self.vector_bytes,
            (0, 4, 8, 16),
        )
        check(
            self.warps % self.warps_per_leaf == 0,
            name,
            "warps, shares",
            self.warps,
            self.warps_per_leaf,
        )
        check(WARP % self.warps_per_leaf == 0, name, "lanes, shares", WARP, self.warps_per_leaf)
        check(self.min_arch in ARCHITECTURES, name, "min_arch", self.min_arch, [*ARCHITECTURES])
        check((self.part == "cluster") == (self.cluster > 1), name, "CTAs", self.cluster, self.part)
        alone = self.cluster == 1 or self.warps == self.warps_per_leaf
        check(alone, name, "warps of a cluster's CTAs, shares", self.warps, self.warps_per_leaf)

    @property
    def label(self) -> str:
        return f"{self.part}_{self.dtype}_{self.vector_bytes}x{self.warps_per_leaf}"

    @property
    def threads(self) -> int:
        return self.warps * WARP

    @property
    def resident(self) -> int:
        """Resident CTAs per SM, the second argument of ``__launch_bounds__``."""
        lanes = WARP // self.warps_per_leaf  # of the contract, one after the other in a warp
        held = state(self.formula) // 4 * self.columns * (lanes.bit_length() + 1)
        return 1 if self.threads > 256 or held > 48 else 2

    @cached_property
    def formula(self) -> Formula:
        """Formula that the kernel computes for each column."""
        return FORMULAS[self.dtype]

    @property
    def columns(self) -> int:
        """Neighbouring columns that a thread reduces."""
        return max(self.vector_bytes // item(self.formula), 1)

    @property
    def prefetch(self) -> int:
        """Groups of rows that a thread loads before it adds the first, as registers allow."""
        held = self.columns * len(reductions(self.formula)) * len(self.elements)
        if self.warps_per_leaf == WARP:  # a warp has few groups of rows
            return 4 if held <= 2 else 1
        return 2 if held <= 8 else 1

    @property
    def elements(self) -> list[Any]:
        """Formula inputs of kind "element"."""
        return [i for i in self.formula.inputs if i.kind == "element"]

    def inputs(self, below: bool) -> list[Any]:
        """Returns the formula inputs that the addends of the sums read (``below``), or those that
        the results read besides the sums.
        """
        sums = reductions(self.formula)
        if below:
            roots = [r.args[0] for r in sums]
            return [n.data for n in ordered(roots) if n.op == "input"]
        return [n.data for n in self._above() if n.op == "input"]

    def _above(self) -> list[Node]:
        """Returns the nodes that compute the results from the sums, operands first."""
        roots = [o.node for o in self.formula.outputs]
        return ordered(roots, frozenset(reductions(self.formula)))

    def addends(self) -> Iterator[str]:
        """Yields the C++ statements that define ``e0``, ``e1``, ...: what a matrix element
        contributes to each sum, in the order of :func:`reductions`.
        """
        reduces = reductions(self.formula)
        names = self._names(ordered(r.args[0] for r in reduces))
        yield from cuda.statements([r.args[0] for r in reduces], names)
        for i, each in enumerate(reduces):
            yield f"const {cuda.CTYPES[each.type]} e{i} = {names[each.args[0]]};"

    def finish(self) -> Iterator[str]:
        """Yields the C++ statements that store the results, from the sums ``s0``, ``s1``, ..."""
        names = self._names(self._above())
        names |= {r: f"s{i}" for i, r in enumerate(reductions(self.formula))}
        yield from cuda.statements([o.node for o in self.formula.outputs], names)
        for o in self.formula.outputs:
            yield f"out_{o.name}[at] = ptxgen_to_{o.dtype}({names[o.node]});"

    def _names(self, nodes: list[Node]) -> dict[Node, str]:
        known = {"index": "(long long)row", "length": "(long long)n"}
        names = {n: known[n.op] for n in nodes if n.op in known}
        return names | {n: f"x_{n.data.name}" for n in nodes if n.op == "input"}

    @property
    def context(self) -> Mapping[str, Any]:
        found = {
            "formula": self.formula,
            "functions": cuda.functions,
            "sums": reductions(self.formula),
            "CTYPES": cuda.CTYPES,
            "STORAGE": cuda.STORAGE,
            "rowwise": reduction_order,
        }
        return MappingProxyType(found)

    @property
    def waits(self) -> bool:
        return self.part == "join"

    @property
    def abi(self) -> Abi:
        sums, results = self.part != "join", self.part != "leaves"
        read = {i.name: i for below in (True, False) for i in self.inputs(below)}
        if not (sums and results):
            read = {i.name: i for i in self.inputs(sums)}
        kinds = {i.name: cuda.STORAGE[i.dtype] for i in read.values()}
        pointers = [ptr(i.name, f"const {kinds[i.name]}* __restrict__") for i in read.values()]
        if not (sums and results):
            pointers.append(ptr("partial", "char*" if sums else "const char* __restrict__"))
        if results:
            for o in self.formula.outputs:
                pointers.append(ptr(f"out_{o.name}", f"{cuda.STORAGE[o.dtype]}*"))
        elements = [i for i in read.values() if i.kind == "element"]
        strides = [Param(f"{p}_{i.name}", "i64") for i in elements for p in ("ld", "lo")]
        sizes = [Param(name, "u32") for name in ("outer", "n", "inner")]
        return Abi((*pointers, *strides, *sizes))

    @property
    def scratch(self) -> Mapping[str, Expr]:
        return (
            {} if self.part in ("whole", "cluster") else {"partial": OUTER * INNER * LEAVES * STATE}
        )

    @property
    def tiles(self) -> Expr:
        """Column tiles of a matrix; a CTA reduces one."""
        tile = WARP * (self.warps // self.warps_per_leaf)
        return (
            ceil_div(INNER * ITEM, self.vector_bytes * tile)
            if self.vector_bytes
            else ceil_div(INNER, tile)
        )

    @property
    def grid(self) -> Expr:
        if self.part == "join":
            return ceil_div(OUTER * INNER, WARP)
        return OUTER * self.tiles * (LEAVES if self.part == "leaves" else self.cluster)

    @property
    def cost(self) -> KernelCost:
        slots = max(self.resident, 1024 // self.threads)
        if self.part == "join":
            step = Phase("fma", ceil_div(LEAVES, 8), NOTHING)
            loads = OUTER * INNER * LEAVES * STATE
            return KernelCost(slots, self.grid, (step,), loads, loads, NOTHING)
        lanes = minimum(
            reduction_order.LANES // self.warps_per_leaf, ceil_div(N, reduction_order.GROUP)
        )
        groups = reduction_order.LEAF // (
            reduction_order.LANES * reduction_order.GROUP * self.prefetch
        )
        passes = lanes * minimum(groups, ceil_div(N, reduction_order.LEAF // groups))
        rows, stores = (
            minimum(N, reduction_order.LEAF),
            self.scratch.get("partial", OUTER * INNER * 4),
        )
        if self.part == "whole":
            passes, rows = passes * LEAVES, N
        tile = ceil_div(
            WARP * (self.warps // self.warps_per_leaf) * max(self.vector_bytes, 1), ITEM
        )
        loads = OUTER * N * INNER * READ
        return KernelCost(
            slots, self.grid, (Phase("fma", passes, rows * tile),), loads, loads, stores
        )

    @property
    def requires(self) -> Expr:
        found = [self.grid <= GRID_MAX]
        if self.part in ("leaves", "join"):
            found += [LEAVES >= 1, self.scratch["partial"] <= WORKSPACE_MAX]
        if self.part == "cluster":
            found += [LEAVES >= 1, LEAVES <= self.cluster]
        if self.vector_bytes and self.part != "join":
            found += [ALIGN >= self.vector_bytes, ITEM <= self.vector_bytes]
        if self.warps_per_leaf > 1:
            sums = WARP * (self.warps + (self.cluster if self.cluster > 1 else 0))
            found.append(
                STATE * (sums * max(self.vector_bytes, 1))
                <= (ITEM if self.vector_bytes else 1) * SHARED_MAX
            )
        return all_of(found) if found else TRUE

    @property
    def expects(self) -> tuple[Expect, ...]:
        op = {"sum": "add", "prod": "mul"}
        found = (r for r in reductions(self.formula) if r.data in op and r.type in ("f32", "f64"))
        each = dict.fromkeys(f"{op[r.data]}.rn.{r.type}" for r in found)
        return (*super().expects, *map(Expect, each))

    @property
    def index_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        if self.part == "join":
            found = [
                ("at", self.grid * WARP),
                (
                    "leaf + BRANCH of the last warp",
                    LEAVES + reduction_order.BRANCH * (self.warps + 1),
                ),
            ]
        else:
            found = [
                ("inner + TILE - 1, and first", INNER + 16 * WARP * self.warps),
                ("row", N + 2 * reduction_order.LEAF),
                ("blockIdx.x", self.grid),
            ]
        return tuple((text, value, INDEX_MAX) for text, value in found)

    def describe(self) -> tuple[str, ...]:
        return (
            f"contract {self.contract}: {self.contract.step}",
            f"{self.dtype}; {self.part}: CTAs {self.grid} of {self.threads} threads",
            *(f"  {line}" for line in self.formula.text.splitlines()),
        )
