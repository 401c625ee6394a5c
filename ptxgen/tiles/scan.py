"""Route tables of prefix sums, and of log-sum-exp scans, whose routes are tried in order."""

from __future__ import annotations

from collections.abc import Callable

from ptxgen.expr import TRUE
from ptxgen.spec import Key, Route, RouteTable
from ptxgen.spec.scan import COLS, LOG_SPACE, ROWS, SMS, SPACE, LogScanSpec, ScanSpec


def _parts(of: type[ScanSpec]) -> tuple[ScanSpec, ...]:
    """Returns the three kernels of class ``of`` that scan rows spread over all CTAs, in launch
    order: "totals", "carry" and "apply".
    """
    return (
        of(8, chunks_per_warp=1, part="totals"),
        of(1, 1, 1, "carry"),
        of(8, chunks_per_warp=1, part="apply"),
    )


def _scan() -> RouteTable:
    whole = (
        (ScanSpec(1, chunks_per_warp=1, lanes=16), "short rows: half a warp scans a row"),
        *((ScanSpec(1, chunks_per_warp=turns), "a warp scans a row") for turns in (1, 2)),
        (ScanSpec(4, 4, chunks_per_warp=1), "a CTA of 4 warps scans a row"),
        *((ScanSpec(8, chunks_per_warp=turns), "a CTA of 8 warps scans a row") for turns in (1, 2)),
        (ScanSpec(16, 16, chunks_per_warp=1), "a CTA of 16 warps scans a row"),
    )
    return RouteTable(
        SPACE,
        (
            *(Route((kernel,), reason=reason) for kernel, reason in whole),
            Route(
                _parts(ScanSpec), reason="few long rows: three launches spread a row over all SMs"
            ),
        ),
        ("bf16",),
        opened=True,
        pinned=lambda: (ScanSpec(1, chunks_per_warp=1, dtype="i32"),),
    )


def _logscan() -> RouteTable:
    few = (ROWS <= SMS) & (COLS >= 1 << 15)
    return RouteTable(
        LOG_SPACE,
        (
            Route(
                (LogScanSpec(1, chunks_per_warp=1),),
                COLS <= 256,
                "short rows: a warp scans a row, a chunk at a time",
            ),
            Route(
                (LogScanSpec(1, chunks_per_warp=2),),
                (COLS <= 1024) | (ROWS >= SMS * 32),
                "a warp scans a row",
            ),
            Route(
                _parts(LogScanSpec), few, "few long rows: three launches spread a row over all SMs"
            ),
            Route((LogScanSpec(8, chunks_per_warp=2),), TRUE, "a CTA of 8 warps scans a row"),
        ),
        ("bf16",),
        opened=True,
    )


TABLES: dict[Key, Callable[[], RouteTable]] = {("scan",): _scan, ("logscan",): _logscan}
"""Constructors of the route tables, by key."""
