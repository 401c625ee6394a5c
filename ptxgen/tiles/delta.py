"""Route tables of recurrences of matrix states (linear attention), and of their gradients."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ptxgen.expr import TRUE
from ptxgen.spec import Key, Route, RouteTable
from ptxgen.spec.delta import PARTS, SPACE, DeltaGradSpec, DeltaSpec


def _table() -> RouteTable:
    return RouteTable(
        SPACE,
        (Route((DeltaSpec(2),), TRUE, "the only kernel"),),
        ("bf16",),
        opened=True,
        pinned=lambda: (DeltaSpec(2, delta_rule=False, row_groups=4, dtype="f32"),),
    )


def _gradient(part: str) -> RouteTable:
    return RouteTable(
        SPACE,
        (Route((DeltaGradSpec(part=part),), TRUE, "the only kernel"),),
        ("bf16",),
        opened=True,
    )


TABLES: dict[Key, Callable[[], RouteTable]] = {
    ("delta",): _table,
    **{("delta_grad", part): partial(_gradient, part) for part in PARTS},
}
"""Constructors of the route tables, by key."""
