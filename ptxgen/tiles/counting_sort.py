"""Route tables of operations on integer vectors: sort, count, put and place."""

from __future__ import annotations

from collections.abc import Callable

from ptxgen.expr import const
from ptxgen.spec import Key, Route, RouteTable, Step
from ptxgen.spec.counting_sort import (
    BLOCK,
    COUNT,
    COUNTS,
    EXPERT_BITS,
    EXPERTS,
    PLACES,
    PUTS,
    RUNS,
    SORTS,
    ExpertsSpec,
    OrderSpec,
    RunsSpec,
)


def _sort() -> RouteTable:
    routes = []
    for passes in range(3):
        names = [
            ("y", "at") if i == passes else (f"keys{i}", f"places{i}") for i in range(passes + 1)
        ]
        given = {"SORTED": const(BLOCK * RUNS**passes)}
        first = RunsSpec("block") if passes else OrderSpec("block")
        steps = [Step(first, dict(zip(("y", "at"), names[0], strict=True)), given)]
        for i in range(passes):
            merge = (RunsSpec if i + 1 < passes else OrderSpec)("merge", run_length=BLOCK * RUNS**i)
            bind = dict(zip(("runs", "from", "y", "at"), (*names[i], *names[i + 1]), strict=True))
            steps.append(Step(merge, bind))
        routes.append(Route(steps, reason=f"CTAs sort blocks, then {passes} merge passes"))
    return RouteTable(SORTS, tuple(routes), ("i64", "i32"))


def _count() -> RouteTable:
    return RouteTable(
        COUNTS,
        (Route((OrderSpec("count"),), reason="the only kernel: a CTA counts for one bin"),),
        ("i64", "i32"),
    )


def _place() -> RouteTable:
    return RouteTable(
        PLACES,
        (Route((OrderSpec("place"),), reason="the only kernel: a thread places one integer"),),
        ("i64",),
    )


def _put() -> RouteTable:
    kernel = OrderSpec("put", dtype="b64")
    return RouteTable(
        PUTS,
        (Route((kernel,), reason="the only kernel: a thread writes one element"),),
        ("b64", "b32", "b16"),
    )


def _experts() -> RouteTable:
    low, high = EXPERT_BITS
    routes = (
        Route((ExpertsSpec(low, 8),), COUNT <= 512, "few slots: eight warps count"),
        Route((ExpertsSpec(low, 16),), reason="more slots: 16 warps count"),
        Route((ExpertsSpec(high, 8),), reason="more experts: eight warps count"),
    )
    return RouteTable(EXPERTS, routes, ("i64", "i32"))


TABLES: dict[Key, Callable[[], RouteTable]] = {
    ("counting_sort", "sort"): _sort,
    ("counting_sort", "count"): _count,
    ("counting_sort", "put"): _put,
    ("counting_sort", "place"): _place,
    ("counting_sort", "experts"): _experts,
}
"""Constructors of the route tables, by key."""
