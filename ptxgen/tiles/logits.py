"""The tables of rows of logits."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ptxgen.expr import TRUE
from ptxgen.spec import Key, Route, RouteTable
from ptxgen.spec.logits import PARTS, SPACE, LogitsSpec


def key(part: str, capped: bool) -> Key:
    """The table of a part, with or without a softcap."""
    return ("logits", part, *(["capped"] if capped else []))


def _table(part: str, capped: bool) -> RouteTable:
    route = Route((LogitsSpec(part, capped),), TRUE, "warps walk over runs of segments")
    return RouteTable(SPACE, (route,), ("bf16", "f16", "f32", "f64"))


TABLES: dict[Key, Callable[[], RouteTable]] = {
    key(part, capped): partial(_table, part, capped) for part in PARTS for capped in (False, True)
}
"""What makes each table."""
