"""The tables of moves with indices."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ptxgen.expr import TRUE
from ptxgen.spec import Key, Route, RouteTable, Step
from ptxgen.spec.moves import BLOCK, COUNT, GATHERS, SCATTERS, GatherSpec, ScatterSpec, SortSpec

SUMMED = ("bf16", "f16", "f32", "f64", "i32", "i64")


def _gather() -> RouteTable:
    widths = {16: "whole vectors", 4: "rows off 16 bytes", 2: "rows off 4 bytes"}
    routes = tuple(Route((GatherSpec(w),), TRUE, reason) for w, reason in widths.items())
    return RouteTable(GATHERS, routes, ("any",))


def _scatter(old: bool) -> RouteTable:
    sort, merge = SortSpec("sort"), SortSpec("merge")
    routes = []
    for width, where in ((16, ""), (0, ", off 16 bytes")):
        last = ScatterSpec("sum", width, old, SUMMED[0])
        one = Step(sort, {"blocks": "keys"}), last
        routes.append(Route(one, COUNT <= BLOCK, f"a CTA sorts all{where}"))
        routes.append(Route((sort, merge, last), TRUE, f"sorted blocks are merged{where}"))
    return RouteTable(SCATTERS, tuple(routes), SUMMED[:1], opened=True)


TABLES: dict[Key, Callable[[], RouteTable]] = {
    ("gather",): _gather,
    ("scatter",): partial(_scatter, False),
    ("scatter", "old"): partial(_scatter, True),
}
"""What makes each table."""
