"""The table of operations over rows: one for all of them, whatever they compute.

Routes are taken in order. A row is held in registers where those have room, by as few warps as give
each a leaf; the longest that fit are those of a cluster's CTAs together. What is left is read anew
for every stage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from ptxgen.expr import TRUE
from ptxgen.spec import Key, Route, RouteTable
from ptxgen.spec.rowwise import COLS, DOWN_SPACE, HELD, LEAVES, ROWS, SMS, SPACE, WAY, RowSpec

KEY: Key = ("rows",)
SHOWN = ("softmax x=bf16 > bf16",)
"""The variants that are looked at: what reviewers read, and goldens hold."""
DOWN: Key = ("rows", "down")
"""Those of which some results are sums down rows."""
SHOWN_DOWN = ("rms_norm_gradients dy=bf16 x=bf16 weight=bf16 eps=f32 > bf16 bf16",)


def _split(vector: bool) -> tuple[Route, ...]:
    """All CTAs have some of a row: one stage by two launches, whatever else by five."""
    few = (ROWS * 2 <= SMS) & (LEAVES > 128)
    sums = [RowSpec("branches", 16, 2, vector=vector, stage=stage) for stage in (0, 1)]
    alone = replace(sums[0], final=True)
    if vector:
        alone = replace(alone, warps=32, leaves=1, per_sm=2)
    once = alone, RowSpec("combine", 16, final=True)
    added = RowSpec("combine", 16), RowSpec("combine", 16, stage=1, final=True)
    steps = sums[0], added[0], sums[1], added[1], RowSpec("finish", 16, 2, vector=vector)
    return (
        Route(once, few, "few very long rows: branches on all SMs, then their sum"),
        Route(steps, few, "few very long rows, stage by stage, on all SMs"),
    )


def _odd(*kernels: RowSpec) -> Iterator[RowSpec]:
    """Those for rows off 16 bytes."""
    return (replace(k, vector=False) for k in kernels)


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
    shared = RowSpec("cluster", 16, 2, ctas=4, per_sm=2)
    longest = RowSpec("cluster", 32, 2, ctas=4)
    short_odd = RowSpec("held", rows=4), middle[1]
    odd = (middle[2], RowSpec("cluster", 8, ctas=8), long[1])
    aside = RowSpec("staged", 26, 2, persistent=True, buffers=2)
    asides = (
        replace(aside, warps=8, leaves=1, read=4, per_sm=3),
        replace(aside, warps=13, leaves=1, read=4, per_sm=2, buffers=1),
        replace(aside, leaves=1, read=4),
        aside,
    )
    many = (HELD <= 4) & (ROWS * 4 > SMS)
    several = (HELD <= 4) & ((COLS > middle[2].capacity) | (HELD <= 2) & WAY.eq(1))
    return RouteTable(
        SPACE,
        (
            *(Route((k,), HELD <= 16, "short rows: a warp a row, or half of one") for k in short),
            *(Route((k,), HELD <= 8, "a CTA a row, held in registers") for k in middle[:2]),
            Route((large[0],), several, "a CTA a row, several on an SM"),
            Route((middle[2],), HELD <= 8, "a CTA a row, held in registers"),
            Route((large[1],), HELD <= 4, "a CTA a row, several on an SM"),
            Route((wide,), HELD <= 8, "a CTA a row, held in registers"),
            Route((aside,), many, "a CTA walks over rows, by way of shared memory"),
            Route((long[0],), HELD <= 8, "long rows: a cluster a row"),
            Route((shared,), many, "long rows: a cluster a row, two on their SMs"),
            Route((long[1],), HELD <= 8, "long rows: a cluster a row"),
            *_split(True),
            Route((longest,), (HELD <= 4) & (LEAVES > 160), "the longest that a cluster holds"),
            Route((RowSpec("streamed", 16, 2),), TRUE, "any length: a CTA a row, stage by stage"),
            *(Route((k,), HELD <= 8, "short rows off 16 bytes") for k in _odd(*short_odd)),
            *(Route((k,), HELD <= 4, "others, by way of shared memory") for k in _odd(*asides[:3])),
            Route((replace(aside, vector=False),), many, "others, by way of shared memory"),
            *(Route((k,), HELD <= 8, "rows off 16 bytes, held so too") for k in _odd(*odd)),
            *_split(False),
            Route((RowSpec("streamed", 16, 2, vector=False),), TRUE, "everything else"),
        ),
        SHOWN,
        opened=True,
        pinned=_pinned,
    )


def _pinned() -> Iterator[RowSpec]:
    """Results of f32 and f64, of elements and of rows; one that a single element goes into."""
    short = RowSpec("held", lanes=16, pieces=1, rows=16)
    yield short.of("rms_norm_backward dy=f64 x=f64 weight=f64 eps=f64 > f64 f64")
    yield short.of("prod_backward x=f32 dy=f32 > f32")
    picked = "cross_entropy x=f32 target=i64 ignore_index=i64 softcap=f32 > f32"
    yield RowSpec("staged", 13, persistent=True, read=4, vector=False, variant=picked)
    yield RowSpec("combine", 16, stage=1, final=True, variant=picked)


def _down() -> RouteTable:
    """A CTA has 32 rows, so that what is added down them stays in registers."""
    shown = SHOWN_DOWN[0]
    lane = RowSpec("lane", 2, read=4, buffers=2, persistent=True, per_sm=4, variant=shown)
    lanes = RowSpec("lanes", 8, variant=shown)
    held = lane, replace(lane, warps=4, per_sm=2), replace(lane, warps=8, per_sm=2)
    odd = replace(held[-1], vector=False, buffers=1, per_sm=1)
    return RouteTable(
        DOWN_SPACE,
        (
            *(Route((k, lanes), TRUE, "a CTA has 32 rows, each in registers") for k in held),
            Route((odd, lanes), TRUE, "rows off 16 bytes"),
        ),
        SHOWN_DOWN,
        opened=True,
    )


TABLES: dict[Key, Callable[[], RouteTable]] = {KEY: _rows, DOWN: _down}
"""What makes each table."""
