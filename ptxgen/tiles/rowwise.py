"""The table of operations over rows: one for all of them, whatever they compute.

Routes are taken in order. A row is held in registers where those have room, by as few warps as give
each a leaf; the longest that fit are those of a cluster's CTAs together. What is left is read anew
for every stage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from ptxgen.expr import TRUE, Expr
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


def _each(why: str, prefer: Expr, *kernels: RowSpec) -> Iterator[Route]:
    """A route for each kernel."""
    return (Route((k,), prefer, why) for k in kernels)


def _rows() -> RouteTable:
    held, cluster = partial(RowSpec, "held"), partial(RowSpec, "cluster", 16)
    staged = partial(RowSpec, "staged", persistent=True)
    odd = partial(replace, vector=False)
    eight, long, twice = held(8), cluster(ctas=8), staged(26, 2, buffers=2)
    pair, streamed = cluster(2, ctas=4, per_sm=2), RowSpec("streamed", 16, 2)
    once = staged(26, read=4, buffers=2)
    aside = staged(8, per_sm=3, read=4, buffers=2), staged(13, per_sm=2, read=4), once
    many = (HELD <= 4) & (ROWS * 4 > SMS)
    several = (HELD <= 4) & ((COLS > eight.capacity) | (HELD <= 2) & WAY.eq(1))
    short = held(lanes=16, pieces=1, rows=16), held(pieces=1, rows=8), held(pieces=2, rows=8)
    whole, on_sm = "a CTA a row, held in registers", "a CTA a row, several on an SM"
    return RouteTable(
        SPACE,
        (
            *_each("short rows: a warp a row, or half of one", HELD <= 16, *short, held(rows=4)),
            *_each(whole, HELD <= 8, held(2), held(4)),
            *_each(on_sm, several, held(8, 2, per_sm=3)),
            *_each(whole, HELD <= 8, eight),
            *_each(on_sm, HELD <= 4, held(16, 2, per_sm=2)),
            *_each(whole, HELD <= 8, held(16)),
            *_each("a CTA walks over rows, by way of shared memory", many, twice),
            *_each("long rows: a cluster a row", HELD <= 8, cluster(ctas=4)),
            *_each("long rows: a cluster a row, two on their SMs", many, pair),
            *_each("long rows: a cluster a row", HELD <= 8, long),
            *_split(True),
            *_each(
                "the longest that a cluster holds",
                (HELD <= 4) & (LEAVES > 160),
                RowSpec("cluster", 32, 2, ctas=4),
            ),
            *_each("any length: a CTA a row, stage by stage", TRUE, streamed),
            *_each("short rows off 16 bytes", HELD <= 8, odd(held(rows=4)), odd(held(4))),
            *_each("others, by way of shared memory", HELD <= 4, *map(odd, aside)),
            *_each("others, by way of shared memory", many, odd(twice)),
            *_each(
                "rows off 16 bytes, held so too",
                HELD <= 8,
                odd(eight),
                RowSpec("cluster", 8, ctas=8, vector=False),
                odd(long),
            ),
            *_split(False),
            *_each("everything else", TRUE, odd(streamed)),
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
