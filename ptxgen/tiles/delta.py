"""The table of recurrences of a matrix."""

from __future__ import annotations

from collections.abc import Callable

from ptxgen.expr import TRUE
from ptxgen.spec import Key, Route, RouteTable
from ptxgen.spec.delta import SMS, SPACE, DeltaSpec


def _table() -> RouteTable:
    wide, narrow = DeltaSpec(4), DeltaSpec(2)
    return RouteTable(
        SPACE,
        (
            Route((wide,), wide.grid >= SMS * 2, "many heads: a thread has four columns"),
            Route((narrow,), TRUE, "few heads: on more threads"),
        ),
        ("bf16",),
        opened=True,
        pinned=lambda: (DeltaSpec(2, delta=False, groups=4, dtype="f32"),),
    )


TABLES: dict[Key, Callable[[], RouteTable]] = {("delta",): _table}
