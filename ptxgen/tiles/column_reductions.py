"""Route table of reductions down columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ptxgen.spec import Key, Route, RouteTable
from ptxgen.spec.column_reductions import SPACE, ColumnsSpec, variant


def _columns() -> RouteTable:
    from ptxgen.numerics.column_reductions import REDUCTIONS

    listed = (
        ("sum_columns", ("bf16",), "bf16"),
        ("layer_norm_wgrad", ("bf16", "bf16", "f32", "f32"), "bf16"),
    )
    variants = tuple(variant(n, REDUCTIONS[n].formula(dtypes, out)) for n, dtypes, out in listed)

    def leaves(width: int, share: int) -> tuple[ColumnsSpec, ...]:
        kernel = ColumnsSpec("leaves", width, share, share, dtype=variants[0])
        return kernel, ColumnsSpec("join", dtype=variants[0])

    def whole(width: int, share: int, warps: int = 8) -> tuple[ColumnsSpec, ...]:
        return (ColumnsSpec("whole", width, share, warps, dtype=variants[0]),)

    cluster = ColumnsSpec("cluster", 4, 32, 32, 8, variants[0], "sm_90")
    return RouteTable(
        SPACE,
        (
            Route(leaves(8, 8), reason="long columns: a CTA has a leaf"),
            Route(leaves(4, 16), reason="few long columns"),
            Route(leaves(4, 32), reason="few long columns: a warp has a lane"),
            Route((cluster,), reason="some thousand rows: the CTAs of a cluster have a leaf each"),
            Route(whole(8, 1), reason="a warp has whole columns"),
            Route(whole(16, 8), reason="warps share columns"),
            Route(whole(4, 16, 16), reason="few short columns: a warp has two lanes"),
            Route(whole(4, 32, 32), reason="few short columns: a warp has a lane"),
            Route(leaves(0, 8), reason="long columns at odd addresses"),
            Route(leaves(0, 32), reason="few long columns at odd addresses: a warp has a lane"),
            Route(whole(0, 1), reason="columns at odd addresses"),
            Route(whole(0, 8), reason="columns at odd addresses, warps share them"),
            Route(whole(0, 16, 16), reason="short columns, one by one: a warp has two lanes"),
            Route(whole(0, 32, 32), reason="short columns, one by one: a warp has a lane"),
        ),
        variants,
        opened=True,
        pinned=_pinned,
    )


def _pinned() -> Iterator[ColumnsSpec]:
    """Yields kernels of i64 for the goldens: a sum, and a maximum."""
    from ptxgen.numerics.column_reductions import REDUCTIONS

    for name in ("sum_columns", "max_columns"):
        formula = REDUCTIONS[name].formula(("i64",), "i64")
        yield ColumnsSpec("leaves", 8, 8, 8, dtype=variant(name, formula))


TABLES: dict[Key, Callable[[], RouteTable]] = {("column_reductions",): _columns}
"""Constructors of the route tables, by key."""
