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
            Route(leaves(8, 8), reason="long columns: a CTA sums a leaf"),
            Route(
                leaves(4, 16), reason="few long columns: a CTA sums a leaf, a warp two lanes of it"
            ),
            Route(
                leaves(4, 32), reason="few long columns: a CTA sums a leaf, a warp one lane of it"
            ),
            Route((cluster,), reason="some thousand rows: each CTA of a cluster sums a leaf"),
            Route(whole(8, 1), reason="many columns: a warp sums whole columns"),
            Route(whole(16, 8), reason="the warps of a CTA share columns"),
            Route(whole(4, 16, 16), reason="few short columns: a warp sums two lanes of a leaf"),
            Route(whole(4, 32, 32), reason="few short columns: a warp sums one lane of a leaf"),
            Route(leaves(0, 8), reason="long columns, unaligned: a CTA sums a leaf"),
            Route(
                leaves(0, 32), reason="few long columns, unaligned: a warp sums one lane of a leaf"
            ),
            Route(whole(0, 1), reason="columns, unaligned: a warp sums whole columns"),
            Route(whole(0, 8), reason="columns, unaligned: the warps of a CTA share columns"),
            Route(
                whole(0, 16, 16),
                reason="few short columns, unaligned: a warp sums two lanes of a leaf",
            ),
            Route(
                whole(0, 32, 32),
                reason="few short columns, unaligned: a warp sums one lane of a leaf",
            ),
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
