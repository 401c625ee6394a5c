"""Route table of triangular systems."""

from __future__ import annotations

from collections.abc import Callable

from ptxgen.spec import Key, Route, RouteTable
from ptxgen.spec.triangular import SPACE, TriangularSpec


def _table() -> RouteTable:
    route = Route(
        (TriangularSpec(),), reason="the only kernel: a lane solves for one right-hand side"
    )
    return RouteTable(SPACE, (route,), ("f32", "f64"))


TABLES: dict[Key, Callable[[], RouteTable]] = {("triangular",): _table}
"""Constructors of the route tables, by key."""
