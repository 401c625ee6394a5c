"""The table of prefix sums."""

from __future__ import annotations

from collections.abc import Callable

from ptxgen.expr import TRUE
from ptxgen.spec import Key, Route, RouteTable
from ptxgen.spec.scan import COLS, ROWS, SMS, SPACE, ScanSpec


def _scan() -> RouteTable:
    return RouteTable(
        SPACE,
        (
            Route((ScanSpec(1, turns=1),), COLS <= 256, "short rows: a warp has one"),
            Route((ScanSpec(1),), (COLS <= 1024) | (ROWS >= SMS * 64), "a warp has a row"),
            Route((ScanSpec(8),), (COLS <= 8192) | (ROWS >= SMS * 4), "a CTA has a row"),
            Route((ScanSpec(32, 32, turns=1),), TRUE, "few long rows"),
        ),
        ("bf16",),
        opened=True,
    )


TABLES: dict[Key, Callable[[], RouteTable]] = {("scan",): _scan}
"""What makes the table."""
