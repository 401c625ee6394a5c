"""Route table of reductions along rows and operations around them: one for all variants.

A row stays in registers if it fits those of a CTA or, at most, of a cluster's CTAs. Longer rows are
read again for every stage. Predicted times choose among the correct routes; kernels that were
chosen for no random problem are not listed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from ptxgen.expr import TRUE
from ptxgen.spec import Key, Route, RouteTable
from ptxgen.spec.row_reductions import DOWN_SPACE, SPACE, RowSpec

KEY: Key = ("row_reductions",)
SHOWN = ("softmax x=bf16 > bf16",)
"""Representative variants, whose kernels reviewers read and goldens hold."""
DOWN: Key = ("row_reductions", "down")
"""Key of the table of variants with sums down rows."""
SHOWN_DOWN = ("rms_norm_gradients dy=bf16 x=bf16 weight=bf16 eps=f32 > bf16 bf16",)


def _split(vector: bool) -> tuple[Route, ...]:
    """Returns routes that spread a row over all CTAs: two launches for formulas of one stage, five
    for others. ``vector``: whether elements move in 16-byte vectors.
    """
    sums = [RowSpec("branches", 16, 2, vectorized=vector, stage=stage) for stage in (0, 1)]
    alone = replace(sums[0], is_last=True)
    if vector:
        alone = replace(alone, warps=32, leaves_per_warp=1, ctas_per_sm=2)
    once = alone, RowSpec("combine", 16, is_last=True)
    added = RowSpec("combine", 16), RowSpec("combine", 16, stage=1, is_last=True)
    steps = sums[0], added[0], sums[1], added[1], RowSpec("finish", 16, 2, vectorized=vector)
    return (
        Route(once, reason="few very long rows, one stage: CTAs sum branches, others add these"),
        Route(steps, reason="few very long rows, two stages: each spread over all SMs"),
    )


def _each(reason: str, *kernels: RowSpec) -> Iterator[Route]:
    """Yields a route for each of ``kernels``, all for the same ``reason``."""
    return (Route((kernel,), reason=reason) for kernel in kernels)


def _dense(lanes: int, itemsize: int) -> RowSpec:
    """Returns the kernel of blocks of dense rows with ``lanes`` lanes a row, for arrays of
    ``itemsize`` bytes an element together.
    """
    block = RowSpec(
        "dense", lanes=lanes, groups_per_lane=1, rows_per_cta=64 // lanes, most_cols=128
    )
    return replace(block, vectorized=False, buffer_itemsize=itemsize, ctas_per_sm=8)


def _rows() -> RouteTable:
    held, cluster = partial(RowSpec, "held"), partial(RowSpec, "cluster", 16)
    staged = partial(RowSpec, "staged", persistent=True)
    odd = partial(replace, vectorized=False)
    short = (
        held(lanes=16, groups_per_lane=1, rows_per_cta=16),
        held(groups_per_lane=1, rows_per_cta=8),
        held(groups_per_lane=2, rows_per_cta=8),
    )
    dense = (
        _dense(1, 2),
        _dense(4, 2),
        _dense(1, 4),
        _dense(4, 4),
        _dense(4, 8),
    )
    warp, four, eight = held(rows_per_cta=4), held(4), held(8)
    long, twice, streamed = (
        cluster(cluster=8),
        staged(26, 2, row_buffers=2),
        RowSpec("streamed", 16, 2),
    )
    aside = (
        staged(8, ctas_per_sm=3, buffer_itemsize=4, row_buffers=2),
        staged(13, ctas_per_sm=2, buffer_itemsize=4),
    )
    once = staged(26, buffer_itemsize=4, row_buffers=2)
    return RouteTable(
        SPACE,
        (
            *_each("short rows: a warp computes a row, or half a warp", *short, warp),
            *_each("many short rows without gaps: a lane computes a row, or four do", *dense),
            *_each("a CTA holds a row in registers", held(2), four, eight, held(16)),
            *_each(
                "a CTA holds a row in registers, several CTAs an SM",
                held(8, 2, ctas_per_sm=3),
                held(16, 2, ctas_per_sm=2),
            ),
            *_each("persistent CTAs: the next row is copied to shared memory meanwhile", twice),
            *_each("long rows: a cluster holds a row", cluster(cluster=4), long),
            *_each(
                "long rows: a cluster holds a row, two CTAs an SM",
                cluster(2, cluster=4, ctas_per_sm=2),
            ),
            *_each("the longest rows that a cluster holds", RowSpec("cluster", 32, 2, cluster=4)),
            *_split(True),
            *_each("any length: a CTA reads a row again for every stage", streamed),
            *_each("short rows not aligned to 16 bytes", *map(odd, (*short, warp))),
            *_each("rows not aligned to 16 bytes, held in registers", odd(four), odd(eight)),
            *_each(
                "rows not aligned to 16 bytes, copied to shared memory",
                *map(odd, (*aside, once, twice)),
            ),
            *_each("long rows not aligned to 16 bytes: a cluster holds a row", odd(long)),
            *_split(False),
            *_each("everything else: any length and alignment", odd(streamed)),
        ),
        SHOWN,
        opened=True,
        pinned=_pinned,
    )


def _pinned() -> Iterator[RowSpec]:
    """Yields kernels for the goldens: results of f32 and f64, for elements and for rows; column
    values loaded group by group or together; sums of a single element.
    """
    short, at_once = (
        RowSpec("held", lanes=16, groups_per_lane=1, rows_per_cta=16),
        RowSpec("held", groups_per_lane=2, rows_per_cta=8),
    )
    for each in (short, at_once):
        yield each.of("rms_norm_backward dy=f64 x=f64 weight=f64 eps=f64 > f64 f64")
    yield at_once.of("rms_norm x=f32 weight=f32 eps=f32 > f32")
    picked = "cross_entropy x=f32 target=i64 ignore_index=i64 softcap=f32 > f32"
    yield short.of(picked)
    yield RowSpec(
        "staged", 13, persistent=True, buffer_itemsize=4, vectorized=False, variant=picked
    )
    yield RowSpec("combine", 16, stage=1, is_last=True, variant=picked)


def _down() -> RouteTable:
    """Returns the table of sums down rows: a CTA reads 32 rows and keeps their sums in
    registers.
    """
    shown = SHOWN_DOWN[0]
    lane = RowSpec(
        "lane", 2, buffer_itemsize=4, row_buffers=2, persistent=True, ctas_per_sm=4, variant=shown
    )
    lanes = RowSpec("lanes", 8, variant=shown)
    held = lane, replace(lane, warps=4, ctas_per_sm=2), replace(lane, warps=8, ctas_per_sm=2)
    odd = replace(held[-1], vectorized=False, row_buffers=1, ctas_per_sm=1)
    return RouteTable(
        DOWN_SPACE,
        (
            *(
                Route((k, lanes), TRUE, "a CTA adds 32 rows, one after the other in registers")
                for k in held
            ),
            Route((odd, lanes), TRUE, "rows not aligned to 16 bytes"),
        ),
        SHOWN_DOWN,
        opened=True,
    )


TABLES: dict[Key, Callable[[], RouteTable]] = {KEY: _rows, DOWN: _down}
"""Constructors of the route tables, by key."""
