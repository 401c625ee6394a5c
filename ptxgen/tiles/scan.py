"""The table of prefix sums."""

from __future__ import annotations

from collections.abc import Callable

from ptxgen.expr import TRUE
from ptxgen.spec import Key, Route, RouteTable
from ptxgen.spec.scan import COLS, ROWS, SMS, SPACE, ScanSpec


def _scan() -> RouteTable:
    shared = tuple(ScanSpec(8, turns=1, part=part) for part in ("totals", "apply"))
    parts = shared[0], ScanSpec(1, 1, 1, "carry"), shared[1]
    return RouteTable(
        SPACE,
        (
            Route((ScanSpec(1, turns=1),), COLS <= 256, "short rows: a warp has one"),
            Route((ScanSpec(1, turns=2),), (COLS <= 1024) | (ROWS >= SMS * 32), "a warp has a row"),
            Route(parts, (ROWS <= SMS) & (COLS >= 1 << 15), "few long rows: on all SMs"),
            Route((ScanSpec(8, turns=2),), TRUE, "a CTA has a row"),
        ),
        ("bf16",),
        opened=True,
        pinned=lambda: (ScanSpec(1, turns=1, dtype="i32"),),
    )


TABLES: dict[Key, Callable[[], RouteTable]] = {("scan",): _scan}
"""What makes the table."""
