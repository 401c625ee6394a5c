"""The tables of row-wise reductions."""

from __future__ import annotations

from ptxgen.expr import TRUE
from ptxgen.spec import Key, Route, RouteTable
from ptxgen.spec.rows import ROWS, SEGMENTS, SMS, SPACE, LogSumExpSpec

WHOLE = LogSumExpSpec("whole")
SPLIT = LogSumExpSpec("segments"), LogSumExpSpec("combine")

TABLES: dict[Key, RouteTable] = {
    ("logsumexp",): RouteTable(
        SPACE,
        (
            Route(
                SPLIT,
                (ROWS < SMS * 2) & (SEGMENTS >= 16),
                "few long rows: a warp a segment, on all SMs",
            ),
            Route((WHOLE,), TRUE, "a CTA a row"),
        ),
        ("f32", "bf16", "f16"),
    ),
}
