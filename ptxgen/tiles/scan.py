"""The tables of prefix sums, and of those of exponentials."""

from __future__ import annotations

from collections.abc import Callable

from ptxgen.expr import TRUE
from ptxgen.spec import Key, Route, RouteTable, Space
from ptxgen.spec.scan import COLS, LOG_SPACE, ROWS, SMS, SPACE, LogScanSpec, ScanSpec


def _table(of: type[ScanSpec], space: Space, *pinned: ScanSpec) -> RouteTable:
    shared = tuple(of(8, turns=1, part=part) for part in ("totals", "apply"))
    parts = shared[0], of(1, 1, 1, "carry"), shared[1]
    return RouteTable(
        space,
        (
            Route((of(1, turns=1),), COLS <= 256, "short rows: a warp has one"),
            Route((of(1, turns=2),), (COLS <= 1024) | (ROWS >= SMS * 32), "a warp has a row"),
            Route(parts, (ROWS <= SMS) & (COLS >= 1 << 15), "few long rows: on all SMs"),
            Route((of(8, turns=2),), TRUE, "a CTA has a row"),
        ),
        ("bf16",),
        opened=True,
        pinned=lambda: pinned,
    )


TABLES: dict[Key, Callable[[], RouteTable]] = {
    ("scan",): lambda: _table(ScanSpec, SPACE, ScanSpec(1, turns=1, dtype="i32")),
    ("logscan",): lambda: _table(LogScanSpec, LOG_SPACE),
}
"""What makes the tables."""
