"""Kernels at the edges of their ``requires`` (:mod:`edges`): which are run, and by what calls."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from math import prod
from typing import Any

import attention_cases
import gather_cases
import grouped_cases
import int4_cases
import interp_cases
import pointwise_cases
import quantized_cases
import row_cases
import segment_cases
import sort_cases
import window_cases
from edges import Edge, Values, edges, holds
from interp_launch import KERNELS, ROUTED, Case, admits

from ptxgen.numerics.contract import ITEMSIZE
from ptxgen.numerics.dtype import FULL
from ptxgen.numerics.row_reductions import TABLE
from ptxgen.runtime.cpu import SMS
from ptxgen.spec import GemmSpec, KernelSpec, Key, Route
from ptxgen.spec.attention import STEP, Form, HopperSpec
from ptxgen.spec.attention_decode import ClusterSpec, FewSpec
from ptxgen.spec.attention_grad import AttentionGradSpec
from ptxgen.spec.column_reductions import ColumnsSpec
from ptxgen.spec.conv import ConvSpec
from ptxgen.spec.counting_sort import OrderSpec
from ptxgen.spec.depthwise import DepthwiseSpec
from ptxgen.spec.gather_scatter import BagSpec
from ptxgen.spec.grouped import GroupedSpec
from ptxgen.spec.int4 import Int4Spec
from ptxgen.spec.pointwise import PointwiseSpec
from ptxgen.spec.quantized import PIECE as BLOCK
from ptxgen.spec.quantized_packed import QuantizedGemmSpec
from ptxgen.spec.quantized_ptx import QuantizedPtxSpec
from ptxgen.spec.row_reductions import DOWN, RowSpec, facts
from ptxgen.spec.select import SampleSpec, SelectSpec
from ptxgen.spec.sort import RadixSortSpec
from ptxgen.spec.wgmma import WgmmaSegmentsSpec
from ptxgen.tiles import TABLES

Check = Callable[[Any], None]
WORK = 1 << 18
"""Elements of a problem, at most, that is run. Beyond are the edges of indices, grids and scratch
memory: kernels are refused there, and are proved right up to there (``ptxgen prove``).
"""
BRIEF = 300
"""Multiplications of an element of a product that every kernel is run on; of longer ones one
kernel of each kind is.
"""

PLACES: dict[str, list[tuple[Key, Route]]] = {}
"""The tables that a route is in, by its name."""
for _key, _table in TABLES.items():
    for _twin in (route.of(dtype) for dtype in _table.dtypes for route in _table.routes):
        PLACES.setdefault(_twin.name, []).append((_key, _twin))


def edges_of(name: str) -> Iterator[tuple[Key, Route, Edge]]:
    """The edges of a route that are problems small enough to be run; of twins there are none."""
    for key, route in PLACES[name] if not interp_cases.twin(name) else ():
        space = TABLES[key].space
        for edge in edges(space, route.requires):
            small = prod(max(edge.inside[n], 1) for n in space.sizes) <= WORK
            if small and edge.variable != "SMS":
                yield key, route, edge


def takes_long(route: Route, edge: Edge) -> bool:
    """Whether it is a product of many k's."""
    return isinstance(route.main, GemmSpec) and edge.inside["K"] > BRIEF


def kind(key: Key, route: Route, edge: Edge) -> tuple[Any, ...]:
    """Returns a key that edges share if the same lines of a spec cause them."""
    facts = (getattr(route.main, fact, None) for fact in ("dtype", "split", "unit", "has_softcap"))
    terms = " ".join(re.sub(r"\d+", "#", str(term)) for term in edge.unmet)
    return (type(route.main), *facts, edge.variable, terms)


def tile(name: str) -> int:
    """Returns the size of a route's tile: multiplications per step."""
    return prod(getattr(ROUTED[name].main, extent, 1) for extent in ("bm", "bn", "bk"))


@functools.cache
def shown() -> dict[tuple[Any, ...], str]:
    """Maps each kind of edge at a long K to the route that always runs there (smallest tile)."""
    found: dict[tuple[Any, ...], str] = {}
    for name in sorted(ROUTED, key=lambda name: (tile(name), name)):
        for key, route, edge in edges_of(name):
            if takes_long(route, edge) and at_edge(name, key, route, edge):
                found.setdefault(kind(key, route, edge), name)
    return found


def meets(table: Key, values: Values, route: Route, edge: Edge) -> bool:
    """Whether a problem is at an edge: one step more, and it is not admitted."""
    if values.get(edge.variable) != edge.inside[edge.variable]:
        return False
    if edge.outside is None:
        return True
    space = TABLES[table].space
    beyond = values | {edge.variable: edge.outside[edge.variable]}
    return not holds(space, route.requires & space.within)(beyond)


def unmet(name: str, device: Any, long: bool) -> Iterator[tuple[Key, Route, Edge]]:
    """The edges of a route that it has not been run at on ``device``, where it ought to be."""
    for key, route, edge in edges_of(name):
        if takes_long(route, edge) and not long and shown()[kind(key, route, edge)] != name:
            continue
        problems = ((p.table, p.given(device.sms)) for p, _, kernel in device.prepared if kernel)
        if not any(meets(table, values, route, edge) for table, values in problems):
            yield key, route, edge


def at_edge(name: str, key: Key, route: Route, edge: Edge) -> Check | None:
    """Returns a check that runs a route at an edge; None if no call poses that problem."""
    posers = [pose for of, pose in POSERS.items() if isinstance(route.main, of)]
    assert posers, f"{name}: POSERS has nothing for a {type(route.main).__name__} at {edge}"
    return posers[0](name, key, route, edge)


LITERAL = {"fma": (1040, 130), "fma64": (2064, 130), "tc16": (4112, 520)}
"""K's that the plans of a contract cut, of rows and of batches."""
UNEVEN = 8200
"""A batch that is cut into chunks of 576 on tensor cores: not whole turns of 128."""


def literal(name: str) -> Iterator[Check]:
    """Products that are cut, by kernels that have one chain, or turns of many k's: whatever their
    ``requires`` says. They refuse them, or are right.
    """
    if name not in KERNELS or interp_cases.twin(name):
        return
    layout, route = KERNELS[name]
    spec = route.main
    rows, batch = LITERAL[spec.contract.name]
    cases = [Case(3, 8, rows, bias=False, out_f32=True)]
    if layout == "TN":
        cases.append(replace(cases[0], k=batch, op="linear_wgrad"))
    if spec.split not in ("none", "onto"):
        cases = [replace(cases[0], k=UNEVEN, op="linear_wgrad")] if name in turning() else []
    for case in cases:
        if admits(route, case, SMS):
            yield functools.partial(interp_cases.check_product, name, case)


@functools.cache
def turning() -> set[str]:
    """Returns tensor-core kernels that sum chunks in turn: one for each type and turn length."""
    found: dict[tuple[Any, ...], str] = {}
    for name in sorted(KERNELS, key=lambda name: (tile(name), name)):
        layout, spec = KERNELS[name][0], KERNELS[name][1].main
        turns = (layout, spec.split, spec.tier) == ("TN", "serial", "tc")
        if turns and not interp_cases.twin(name):
            found.setdefault((type(spec), getattr(spec, "block", spec.bk)), name)
    return set(found.values())


# -- of each kind of kernels ------------------------------------------------------------
def product(name: str, key: Key, route: Route, edge: Edge) -> Check | None:
    """Several rows and columns, so that a wrong bit is seen, and results that keep all bits."""
    at, item = edge.inside, ITEMSIZE[route.main.dtype]
    result = max(at.get("ITEM_C", 4), item) if item > 2 else at.get("ITEM_C", 4)
    if min(at["ALIGN_A"], at["ALIGN_B"]) < item or at.get("ALIGN_C", 16) < result:
        return None
    chain = "chain" in key
    case = Case(
        max(at["M"], 3),
        at["N"] if chain else max(at["N"], 8),
        at["K"],
        op="linear_wgrad" if chain else "linear",
        bias=False,
        accumulate=chain,
        chain=chain,
        align=(at["ALIGN_A"], at["ALIGN_B"]),
        out_f32=result == 4,
        offset=at.get("ALIGN_C", 16) % 16 // result,
    )
    return functools.partial(interp_cases.check_product, name, case)


def quantized(name: str, key: Key, route: Route, edge: Edge) -> Check | None:
    """A weight of whole blocks, along K or N; rows of ``x`` that lie at multiples of 16 bytes."""
    at, forward = edge.inside, route.main.layout == "NT"
    if at["ALIGN_A"] < ITEMSIZE[route.main.dtype]:
        return None
    assert edge.variable in ("K", "ALIGN_A"), f"{name} has not been run at {edge}"
    longest = at["K"] if edge.variable == "K" else BLOCK
    n, k = (8, longest // BLOCK * BLOCK) if forward else (BLOCK, longest)
    case = quantized_cases.Case(3, n, k, wide=True)
    return functools.partial(quantized_cases.check, name, case)


def segments(name: str, key: Key, route: Route, edge: Edge) -> Check | None:
    """Few rows and classes of many k's; rows are whole vectors."""
    at = edge.inside
    if min(at["ALIGN_A"], at["ALIGN_B"]) < 16:
        return None
    sizes = 3, 8, at["K"] // 8 * 8
    return functools.partial(segment_cases.check_product, name, sizes, "normal", 30.0, False)


def int4(name: str, key: Key, route: Route, edge: Edge) -> Check | None:
    """Returns a product aligned as at the edge; None for K, whose bound on indices is proved
    instead.
    """
    at = edge.inside
    if edge.variable == "K":
        return None
    case = int4_cases.Case(17, 34, 70, align=(at["ALIGN_A"], at["ALIGN_B"]))
    return functools.partial(int4_cases.check, name, case)


def row(name: str, key: Key, route: Route, edge: Edge) -> Check | None:
    """An operation that has WAY, READ and VECTOR as they are at the edge, on a row of COLS. What a
    kernel may hold is a question of registers, not of what is right.
    """
    at, variable = edge.inside, edge.variable
    if variable == "HELD":
        return None
    if route.main.part in DOWN:
        shape = 2, at["COLS"]
        return functools.partial(interp_cases.check_down, name, shape, "normal")
    softmax = [("softmax", dtype) for dtype in ("bf16", "f32", "f64")]
    for operation, dtype in (softmax[0], ("sum", "bf16"), *softmax[1:]):
        made = TABLE[operation].variant({"x": dtype}, (dtype,))
        known = {**facts(made), "COLS": 16}
        values = at | known | {variable: known.get(variable, at[variable])}
        values |= {"COLS": at["COLS"]} if variable == "COLS" else {}
        if values[variable] == at[variable] and route.requires.evaluate(
            TABLES[key].space.environment(values)
        ):
            if not values["VECTOR"] and values["COLS"] % 8 == 0 and variable == "COLS":
                return None  # such rows lie on 16 bytes here
            shape = 2, values["COLS"] - (0 if values["VECTOR"] else 3 if variable != "COLS" else 0)
            given = row_cases.arrays(operation, shape, row_cases.NATIVE[FULL[dtype]])[:1]
            kernel = route.of(made).name
            return functools.partial(row_cases.check, operation, given, kernel)
    raise AssertionError(f"no operation has {edge}, at which {name} is to be right")


def column(name: str, key: Key, route: Route, edge: Edge) -> Check | None:
    """Columns of elements of ITEM bytes, at multiples of ALIGN."""
    at = edge.inside
    dtype = {2: "bf16", 4: "f32", 8: "f64"}.get(at["ITEM"] if edge.variable == "ITEM" else 2, "")
    if not dtype or at["ALIGN"] < ITEMSIZE[dtype] or "sum_columns" not in name:
        return None
    shape = 1, at["N"], 3 * at["ALIGN"] // ITEMSIZE[dtype]
    return functools.partial(gather_cases.check_sums, route, shape, dtype)


def bag(name: str, key: Key, route: Route, edge: Edge) -> Check | None:
    """Rows at multiples of ALIGN bytes, which no array has that are fewer than an element's."""
    width = edge.inside["ALIGN"] // ITEMSIZE[route.main.dtype]
    check = functools.partial(gather_cases.check_bag, name, 3, width, ("i8", "f32"))
    return check if width else None


def select(name: str, key: Key, route: Route, edge: Edge) -> Check | None:
    """The largest K of a row as long as the kernel takes it, or long enough."""
    ends = (e.inside["COLS"] for _, _, e in edges_of(name) if e.variable == "COLS")
    longest = min(4096, *ends, 4096)
    n, k = (edge.inside["COLS"], 32) if edge.variable == "COLS" else (longest, edge.inside["K"])
    return functools.partial(gather_cases.check_edge, name, n, min(n, k))


def sample(name: str, key: Key, route: Route, edge: Edge) -> Check | None:
    """A draw from the K largest of a row."""
    at = edge.inside
    options = {"temperature": 0.9} | ({"top_k": at["K"]} if at["K"] else {})
    shape = 1, max(at["COLS"], at["K"], 2)
    return functools.partial(gather_cases.check_sample, name, shape, options)


def pointwise(name: str, key: Key, route: Route, edge: Edge) -> Check | None:
    """An array that lies along the other dimension, of many blocks or of one."""
    assert edge.variable in ("RANK", "BLOCKS"), f"{name} has not been run at {edge}"
    shape = (48, 32) if edge.variable == "RANK" else (8, 8)
    return pointwise_cases.checked(name, pointwise_cases.turned(*shape))


def gradients(name: str, key: Key, route: Route, edge: Edge) -> Check | None:
    """Head dimensions that are as many in sum as registers take, or that only this kernel takes."""
    assert edge.variable in ("DEPTH", "WIDTH"), f"{name} has not been run at {edge}"
    depth, width = (-(-edge.inside[n] // STEP) * STEP for n in ("DEPTH", "WIDTH"))
    spec = route.of(Form(route.main.dtype, depth, width)).main
    return functools.partial(attention_cases.check_gradients, spec, attention_cases.PLAIN)


def hopper(name: str, key: Key, route: Route, edge: Edge) -> Check | None:
    """Values as wide as the registers of one warpgroup take."""
    assert edge.variable == "WIDTH", f"{name} has not been run at {edge}"
    spec = route.of(Form("bf16", edge.inside["DEPTH"], edge.inside["WIDTH"])).main
    page, how = attention_cases.OF_PAGES[0] if edge.inside["PAGED"] else (None, {})
    return functools.partial(attention_cases.check_forward, spec, 40, how, page=page)


def cluster(name: str, key: Key, route: Route, edge: Edge) -> Check | None:
    """Few rows of as many keys as it takes, or of heads that are as wide as memory takes."""
    at = edge.inside
    spec = route.of(Form("bf16", at["DEPTH"], at["WIDTH"])).main
    fewer = 100 if isinstance(spec, FewSpec) else 140
    keys = at["KEYS"] if edge.variable == "KEYS" else 1050 if spec.part == "split" else fewer
    return functools.partial(attention_cases.check_forward, spec, keys, {"causal": True})


def ordered(name: str, key: Key, route: Route, edge: Edge) -> Check | None:
    """Returns a sort of as many integers as the edge has."""
    return gather_cases.order(route.main.name, (edge.inside["COUNT"],))[0]


POSERS: dict[type[KernelSpec], Callable[..., Check | None]] = {
    QuantizedGemmSpec: quantized,
    QuantizedPtxSpec: quantized,
    WgmmaSegmentsSpec: segments,
    GroupedSpec: grouped_cases.at_edge,
    ConvSpec: window_cases.at_edge,
    DepthwiseSpec: window_cases.depthwise_edge,
    GemmSpec: product,
    Int4Spec: int4,
    RowSpec: row,
    ColumnsSpec: column,
    BagSpec: bag,
    OrderSpec: ordered,
    SampleSpec: sample,
    SelectSpec: select,
    RadixSortSpec: sort_cases.at_edge,
    PointwiseSpec: pointwise,
    AttentionGradSpec: gradients,
    ClusterSpec: cluster,
    FewSpec: cluster,
    HopperSpec: hopper,
}
"""Functions that make the check at an edge, by the type of the route's main kernel."""
