"""Route tables of gather and scatter-add."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ptxgen.expr import TRUE, const
from ptxgen.spec import Key, Route, RouteTable, Step
from ptxgen.spec.gather_scatter import (
    BAGS,
    BLOCK,
    CTA_ROWS,
    GATHERS,
    RUNS,
    SCATTERS,
    BagSpec,
    GatherSpec,
    ScatterSpec,
    SortSpec,
)

SUMMED = ("bf16", "f16", "f32", "f64", "i32", "i64")


def _gather() -> RouteTable:
    widths = {
        16: "rows in 16-byte vectors",
        4: "rows in words",
        2: "rows in halfwords",
        1: "rows in bytes",
    }
    routes = tuple(Route((GatherSpec(w),), TRUE, reason) for w, reason in widths.items())
    return RouteTable(GATHERS, routes, ("any",))


def _bag() -> RouteTable:
    widths = {16: "rows in 16-byte vectors", 0: "rows in elements"}
    routes = tuple(Route((BagSpec(w),), TRUE, reason) for w, reason in widths.items())
    return RouteTable(BAGS, routes, ("bf16", "f16", "f32"))


def _scatter(old: bool) -> RouteTable:
    sort = SortSpec("sort")
    merges = [SortSpec("merge", run_length=BLOCK * RUNS**i) for i in range(3)]
    routes = []
    kinds = (
        (16, CTA_ROWS[0], ""),
        (0, CTA_ROWS[1], "; short rows"),
        (0, CTA_ROWS[0], "; rows not aligned to 16 bytes"),
    )
    for width, owned, where in kinds:
        leaves = SortSpec("leaves", width, dtype=SUMMED[0])
        total = ScatterSpec("sum", width, old, owned, dtype=SUMMED[0])
        for passes in range(4):
            steps = [Step(sort, {"blocks": _keys_array(0, passes)})]
            for i, merge in enumerate(merges[:passes]):
                bind = {"blocks": _keys_array(i, passes), "keys": _keys_array(i + 1, passes)}
                steps.append(Step(merge, bind))
            steps += [Step(leaves), Step(total, given={"SORTED": const(BLOCK * RUNS**passes)})]
            routes.append(
                Route(steps, reason=f"CTAs sort blocks of indices, {passes} merge passes{where}")
            )
    return RouteTable(SCATTERS, tuple(routes), SUMMED[:1], opened=True, pinned=_pinned)


def _pinned() -> tuple[SortSpec, ...]:
    """Returns a kernel of integer sums, for the goldens."""
    return (SortSpec("leaves", 16, dtype="i32"),)


def _keys_array(done: int, passes: int) -> str:
    """Returns the scratch array that holds the keys after ``done`` of ``passes`` merges, which
    alternate between two arrays.
    """
    return "keys" if (passes - done) % 2 == 0 else "blocks"


TABLES: dict[Key, Callable[[], RouteTable]] = {
    ("gather",): _gather,
    ("bag",): _bag,
    ("scatter",): partial(_scatter, False),
    ("scatter", "old"): partial(_scatter, True),
}
"""Constructors of the route tables, by key."""
