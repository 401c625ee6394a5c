"""Route tables of top-k selection and of sampling."""

from __future__ import annotations

from collections.abc import Callable

from ptxgen.expr import TRUE
from ptxgen.spec import Key, Route, RouteTable
from ptxgen.spec.select import (
    COLS,
    ROUTE_SPACE,
    ROWS,
    SAMPLE_SPACE,
    SMS,
    TOPK_SPACE,
    DrawSpec,
    K,
    LanesSpec,
    RouteSpec,
    SampleSpec,
    SelectSpec,
    SiftSpec,
)


def _topk() -> RouteTable:
    parts = SiftSpec(part="part"), SiftSpec(part="merge")
    return RouteTable(
        TOPK_SPACE,
        (
            Route((LanesSpec(),), TRUE, "short rows, small k: a warp selects from a row"),
            Route(
                (SiftSpec(4),),
                (K <= 256) | (COLS <= 1024),
                "small k or short rows: a CTA of 4 warps selects from a row",
            ),
            Route(
                parts,
                TRUE,
                "long rows: CTAs select from parts of a row, one more from their results",
            ),
            Route((SelectSpec(),), TRUE, "any k and length: radix selection, digit by digit"),
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
            Route((SampleSpec(2),), COLS <= 1024, "short rows: a CTA of 2 warps draws from a row"),
            Route(parts, TRUE, "small k: CTAs find candidates in parts of a row, one more draws"),
            Route((cluster,), few, "few long rows: a cluster draws from a row"),
            Route((SampleSpec(),), TRUE, "a CTA draws from a row"),
        ),
        ("bf16",),
        opened=True,
        pinned=lambda: (SampleSpec(2, dtype=dtype) for dtype in ("f16", "f32")),
    )


def _route() -> RouteTable:
    few, many = RouteSpec(groups=1), RouteSpec(groups=4)
    routes = (
        Route((few,), reason="up to 256 experts: a warp routes a token"),
        Route((many,), reason="more experts: a warp routes a token"),
    )
    return RouteTable(ROUTE_SPACE, routes, ("bf16", "f16", "f32"))


TABLES: dict[Key, Callable[[], RouteTable]] = {
    ("topk",): _topk,
    ("sample",): _sample,
    ("route",): _route,
}
"""Constructors of the route tables, by key."""
