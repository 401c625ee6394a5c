"""The tables of row-wise reductions."""

from __future__ import annotations

from collections.abc import Callable

from ptxgen.expr import TRUE
from ptxgen.spec import Key, Route, RouteTable
from ptxgen.spec.rows import ROWS, SEGMENTS, SMS, SPACE, LogSumExpSpec


def _logsumexp() -> RouteTable:
    split = LogSumExpSpec("segments"), LogSumExpSpec("combine")
    few = (ROWS < SMS * 2) & (SEGMENTS >= 12)
    many = ROWS > SMS * 8
    return RouteTable(
        SPACE,
        (
            Route(
                split, few | many, "few long rows, or more than CTAs at a time: a warp a segment"
            ),
            Route((LogSumExpSpec("whole"),), TRUE, "a CTA a row"),
        ),
        ("f32", "bf16", "f16"),
    )


TABLES: dict[Key, Callable[[], RouteTable]] = {("logsumexp",): _logsumexp}
"""What makes each table."""
