"""Route tables of row-wise reductions."""

from __future__ import annotations

from collections.abc import Callable

from ptxgen.expr import TRUE
from ptxgen.spec import Key, Route, RouteTable
from ptxgen.spec.logsumexp import ROWS, SEGMENTS, SMS, SPACE, LogSumExpSpec


def _logsumexp() -> RouteTable:
    tiny, *several = (
        LogSumExpSpec("short", rows_per_warp=n, groups_per_lane=p)
        for n, p in ((4, 1), (4, 2), (2, 4))
    )
    short = LogSumExpSpec("short")
    split = LogSumExpSpec("segments"), LogSumExpSpec("combine")
    narrow, wide = LogSumExpSpec("whole", 4, concurrent_segments=32), LogSumExpSpec("whole")
    many, filling = ROWS > SMS * 8, ROWS > SMS * 128
    few = (ROWS < SMS * 2) & (SEGMENTS >= 12)
    return RouteTable(
        SPACE,
        (
            Route((tiny,), many, "many rows, up to 1/8 of a segment: a warp sums four"),
            *(Route((k,), filling, "many short rows: a warp sums several") for k in several),
            Route((short,), TRUE, "rows of one segment: a warp sums a row"),
            Route(split, few, "few long rows: a warp sums a segment"),
            Route((narrow,), (SEGMENTS <= 4) | many & (SEGMENTS <= 32), "four warps share a row"),
            Route((wide,), TRUE, "eight warps share a row"),
        ),
        ("f32", "bf16", "f16"),
    )


TABLES: dict[Key, Callable[[], RouteTable]] = {("logsumexp",): _logsumexp}
"""Constructors of the route tables, by key."""
