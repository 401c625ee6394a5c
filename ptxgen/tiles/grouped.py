"""Route tables of grouped GEMM, by the dimension that groups divide, layout, width and tier.

Group sizes are known only on the device. Routes are chosen by the average rows of a group, which
fill a tile; a larger group has several tiles.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ptxgen.expr import TRUE, Expr
from ptxgen.numerics.contract import DEFAULT_PLAN, PLANS, M
from ptxgen.spec import Key, Route, RouteTable
from ptxgen.spec.grouped import GROUPS, GroupedMmaSpec, GroupedSimtSpec, GroupedWgmmaSpec, space
from ptxgen.tiles.gemm import WIDTHS
from ptxgen.tiles.regimes import last

PLAN = {"rows": DEFAULT_PLAN, "sums": "chain"}
"""Plan of the reduction, by the dimension that groups divide."""
LAYOUTS = {"rows": ("NN", "NT"), "sums": ("TN",)}


def _mma(
    layout: str, bm: int, bn: int, bk: int, m: int, n: int, stages: int, **how: object
) -> GroupedMmaSpec:
    return GroupedMmaSpec(layout, bm, bn, bk, m, n, stages, persistent=True, **how)  # type: ignore[arg-type]


def _tc_rows(layout: str) -> tuple[Route, ...]:
    def route(kernel: GroupedMmaSpec | GroupedWgmmaSpec, prefer: Expr, reason: str) -> Route:
        return Route((kernel,), prefer, reason)

    many, some = M > GROUPS * 48, M > GROUPS * 2
    few = _mma(
        layout,
        16,
        64,
        128,
        1,
        4,
        4,
        swap_operands=True,
        split="serial",
        producer_warps=4,
        prefetch=7,
        streamed="b",
        ctas_per_sm=2,
    )
    return (
        route(
            GroupedWgmmaSpec(layout, 128, 256, 64, 2, 4, registers=232, raster=16),
            many,
            "many rows a group, one chunk: by wgmma",
        ),
        route(
            GroupedWgmmaSpec(
                layout,
                128,
                256,
                64,
                2,
                3,
                registers=240,
                raster=16,
                split="serial",
                spilled_sums=64,
            ),
            many,
            "many rows a group, several chunks: by wgmma",
        ),
        route(
            GroupedWgmmaSpec(layout, 64, 128, 128, 1, 4),
            some,
            "some rows a group, one chunk: by wgmma",
        ),
        route(
            GroupedWgmmaSpec(layout, 64, 128, 128, 1, 4, split="serial"),
            some,
            "some rows a group, several chunks: by wgmma",
        ),
        route(few, M <= GROUPS * 16, "few rows a group: each weight is read once"),
        route(
            _mma(layout, 64, 64, 64, 2, 2, 4, split="serial", ctas_per_sm=2),
            TRUE,
            "any number of rows a group: by mma.sync",
        ),
        last(
            _mma(
                layout,
                64,
                64,
                32,
                2,
                2,
                4,
                copy_a="plain",
                copy_b="plain",
                split="serial",
                ctas_per_sm=3,
            )
        ),
    )


def _tc_sums(layout: str) -> tuple[Route, ...]:
    fast = GroupedWgmmaSpec(layout, 128, 256, 64, 2, 4, registers=232, raster=16, grouped_by="sums")
    return (
        Route((fast,), TRUE, "sums over each group: by wgmma"),
        Route(
            (_mma(layout, 128, 128, 64, 2, 2, 3, ctas_per_sm=2, grouped_by="sums"),),
            TRUE,
            "sums over each group: by mma.sync",
        ),
        last(
            _mma(
                layout,
                64,
                64,
                32,
                2,
                2,
                4,
                copy_a="plain",
                copy_b="plain",
                ctas_per_sm=3,
                grouped_by="sums",
            )
        ),
    )


def _simt(layout: str, over: str) -> tuple[Route, ...]:
    """Returns the f32 route for any alignment and plan, whose operands are copied float by
    float.
    """
    a, b = (
        ("transpose" if layout[0] == "N" else "scalar"),
        ("transpose" if layout[1] == "T" else "scalar"),
    )
    kernel = GroupedSimtSpec(
        layout, 64, 64, 16, 8, 4, 4, 2, 2, 3, a, b,
        split="slices" if over == "rows" else "none", persistent=True, grouped_by=over,
        ctas_per_sm=3,
    )  # fmt: skip
    return (last(kernel),)


def _table(over: str, layout: str, width: str) -> RouteTable:
    if width == "f32":
        routes = _simt(layout, over)
    else:
        routes = _tc_rows(layout) if over == "rows" else _tc_sums(layout)
    plan = PLANS[routes[0].main.contract.name][PLAN[over]]
    return RouteTable(space(plan), routes, WIDTHS[width])


TABLES: dict[Key, Callable[[], RouteTable]] = {
    ("grouped", layout, over, width, tier): partial(_table, over, layout, width)
    for width, tier in (("f32", "simt"), ("half", "tc"))
    for over, layouts in LAYOUTS.items()
    for layout in layouts
}
"""Constructors of the route tables, by key."""
