"""The tables of what is selected from rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ptxgen.expr import TRUE
from ptxgen.spec import Key, Route, RouteTable, Space
from ptxgen.spec.select import COLS, SAMPLE_SPACE, TOPK_SPACE, SampleSpec, SelectSpec


def _table(space: Space, kind: type[SelectSpec]) -> RouteTable:
    routes = (
        Route((kind(2),), COLS <= 1024, "short rows: a CTA of two warps has one"),
        Route((kind(),), TRUE, "a CTA a row"),
    )
    return RouteTable(space, routes, ("bf16",), opened=True)


TABLES: dict[Key, Callable[[], RouteTable]] = {
    ("topk",): partial(_table, TOPK_SPACE, SelectSpec),
    ("sample",): partial(_table, SAMPLE_SPACE, SampleSpec),
}
"""What makes each table."""
