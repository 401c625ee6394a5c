"""The table of operations over rows: one for all of them, whatever they compute.

Routes are taken in order. A row is held in registers where those have room, by as few warps as give
each a leaf; the longest that fit are those of a cluster's CTAs together. What is left is read anew
for every stage.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ptxgen.expr import TRUE
from ptxgen.spec import Key, Route, RouteTable
from ptxgen.spec.rowwise import HELD, LEAVES, ROWS, SMS, SPACE, RowSpec

KEY: Key = ("rows",)
SHOWN = ("softmax x=bf16 > bf16",)
"""The variants that are looked at: what reviewers read, and goldens hold."""


def _split(vector: bool) -> tuple[Route, ...]:
    """All CTAs have some of a row: one stage by two launches, whatever else by five."""
    few = (ROWS * 2 <= SMS) & (LEAVES > 128)
    sums = [RowSpec("branches", 16, 2, vector=vector, stage=stage) for stage in (0, 1)]
    once = replace(sums[0], final=True), RowSpec("combine", 16, final=True)
    added = RowSpec("combine", 16), RowSpec("combine", 16, stage=1, final=True)
    steps = sums[0], added[0], sums[1], added[1], RowSpec("finish", 16, 2, vector=vector)
    return (
        Route(once, few, "few very long rows: branches on all SMs, then their sum"),
        Route(steps, few, "few very long rows, stage by stage, on all SMs"),
    )


def _rows() -> RouteTable:
    short = (
        RowSpec("held", lanes=16, pieces=1, rows=16),
        RowSpec("held", pieces=1, rows=8),
        RowSpec("held", pieces=2, rows=8),
        RowSpec("held", rows=4),
    )
    middle = (RowSpec("held", 2), RowSpec("held", 4), RowSpec("held", 8))
    large = (RowSpec("held", 8, 2, per_sm=3), RowSpec("held", 16, 2, per_sm=2))
    wide = RowSpec("held", 16)
    long = tuple(RowSpec("cluster", 16, ctas=ctas) for ctas in (4, 8))
    odd = (RowSpec("held", rows=4), *middle[1:], RowSpec("cluster", 8, ctas=8), long[1])
    staged = tuple(
        RowSpec("staged", w, h, persistent=True, buffers=b, per_sm=n, read=r, vector=v, ctas=c)
        for w, h, b, n, r, v, c in (
            (26, 2, 2, 1, 2, False, 1),
            (26, 2, 2, 1, 2, True, 1),
            (16, 2, 1, 2, 2, False, 1),
            (16, 1, 2, 2, 2, False, 1),
            (8, 1, 2, 4, 2, False, 1),
            (26, 1, 2, 1, 4, False, 1),
            (13, 1, 1, 2, 4, False, 1),
            (8, 1, 2, 3, 4, False, 1),
            (26, 2, 2, 1, 2, True, 3),
            (26, 2, 2, 1, 2, True, 5),
            (26, 2, 2, 1, 2, False, 3),
            (22, 2, 2, 1, 2, True, 3),
            (26, 2, 2, 1, 2, True, 2),
            (16, 2, 1, 2, 2, True, 4),
            (26, 1, 2, 1, 4, False, 2),
        )
    )
    return RouteTable(
        SPACE,
        (
            *(Route((k,), HELD <= 16, "short rows: a warp a row, or half of one") for k in short),
            *(Route((k,), HELD <= 8, "a CTA a row, held in registers") for k in middle),
            *(Route((k,), HELD <= 4, "a CTA a row, several on an SM") for k in large),
            Route((wide,), HELD <= 8, "a CTA a row, held in registers"),
            *(Route((k,), HELD <= 8, "long rows: a cluster a row") for k in long),
            *_split(True),
            Route((RowSpec("streamed", 16, 2),), TRUE, "any length: a CTA a row, stage by stage"),
            *(
                Route((replace(k, vector=False),), HELD <= 8, "rows off 16 bytes, held so too")
                for k in odd
            ),
            *_split(False),
            Route((RowSpec("streamed", 16, 2, vector=False),), TRUE, "everything else"),
            *(Route((k,), TRUE, "staged") for k in staged),
            *(Route((RowSpec("cluster", w, l, ctas=c, per_sm=n),), TRUE, "try") for w, l, c, n in ((16, 2, 8, 1), (16, 2, 4, 1), (16, 2, 4, 2), (32, 1, 4, 1), (32, 2, 4, 1))),
        ),
        SHOWN,
        opened=True,
    )


TABLES: dict[Key, Callable[[], RouteTable]] = {KEY: _rows}
"""What makes each table."""
