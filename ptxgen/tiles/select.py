"""Route tables of top-k selection and of sampling."""

from __future__ import annotations

from collections.abc import Callable

from ptxgen.expr import TRUE
from ptxgen.spec import Key, Route, RouteTable
from ptxgen.spec.select import (
    COLS,
    ROWS,
    SAMPLE_SPACE,
    SMS,
    TOPK_SPACE,
    DrawSpec,
    K,
    LanesSpec,
    SampleSpec,
    SelectSpec,
    SiftSpec,
)


def _topk() -> RouteTable:
    parts = SiftSpec(part="part"), SiftSpec(part="merge")
    return RouteTable(
        TOPK_SPACE,
        (
            Route((LanesSpec(),), TRUE, "short rows, few of each: a warp has a row"),
            Route((SiftSpec(4),), (K <= 256) | (COLS <= 1024), "a small CTA has a row"),
            Route(parts, TRUE, "long rows: CTAs have parts, one more what is left of them"),
            Route((SelectSpec(),), TRUE, "any: digit by digit of the keys"),
        ),
        ("bf16",),
        opened=True,
        pinned=lambda: (
            LanesSpec(dtype="f32"),
            *(SiftSpec(4, dtype=dtype) for dtype in ("f16", "f32", "i32")),
        ),
    )


def _sample() -> RouteTable:
    parts = DrawSpec(part="part"), DrawSpec(part="draw")
    cluster = SampleSpec(8, cluster=8, min_arch="sm_90")
    few = (COLS >= 4096) & (ROWS <= SMS)
    return RouteTable(
        SAMPLE_SPACE,
        (
            Route((SampleSpec(2),), COLS <= 1024, "short rows: a CTA of two warps has one"),
            Route(parts, TRUE, "draws from few of a row, which its parts have found"),
            Route((cluster,), few, "few long rows: a cluster has one"),
            Route((SampleSpec(),), TRUE, "a CTA a row"),
        ),
        ("bf16",),
        opened=True,
        pinned=lambda: (SampleSpec(2, dtype=dtype) for dtype in ("f16", "f32")),
    )


TABLES: dict[Key, Callable[[], RouteTable]] = {
    ("topk",): _topk,
    ("sample",): _sample,
}
"""Constructors of the route tables, by key."""
