"""The table of pointwise formulas."""

from __future__ import annotations

from collections.abc import Callable

from ptxgen.expr import TRUE
from ptxgen.spec import Key, Route, RouteTable
from ptxgen.spec.pointwise import FORMS, SPACE, PointwiseSpec

_FOR = {
    "flat": "arrays that lie one element behind the other",
    "rows": "vectors of the innermost dimension",
    "blocks": "squares of two dimensions, along either of which arrays lie",
    "any": "elements, anyhow",
    "wide": "more than 2^31 elements, anyhow",
}


def _pointwise() -> RouteTable:
    routes = (Route((PointwiseSpec(kind, FORMS[kind]),), TRUE, why) for kind, why in _FOR.items())
    return RouteTable(SPACE, tuple(routes), ("bf16",))


TABLES: dict[Key, Callable[[], RouteTable]] = {("pointwise",): _pointwise}
"""What makes each table."""
