"""The table of reductions down columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ptxgen.expr import TRUE, ceil_div
from ptxgen.spec import Key, Route, RouteTable
from ptxgen.spec.columns import INNER, ITEM, LEAVES, OUTER, SMS, SPACE, ColumnsSpec, N, variant


def _columns() -> RouteTable:
    from ptxgen.numerics.columns import REDUCTIONS

    listed = (
        ("sum_columns", ("bf16",), "bf16"),
        ("layer_norm_wgrad", ("bf16", "bf16", "f32", "f32"), "bf16"),
    )
    variants = tuple(variant(n, REDUCTIONS[n].formula(dtypes, out)) for n, dtypes, out in listed)

    def split(width: int, share: int) -> tuple[ColumnsSpec, ...]:
        leaves = ColumnsSpec("leaves", width, share, share, dtype=variants[0])
        return leaves, ColumnsSpec("join", dtype=variants[0])

    def whole(width: int, share: int, warps: int = 8) -> tuple[ColumnsSpec, ...]:
        return (ColumnsSpec("whole", width, share, warps, dtype=variants[0]),)

    wide = OUTER * ceil_div(INNER * ITEM, 512)
    halves = OUTER * ceil_div(INNER * ITEM, 256)
    narrow = OUTER * ceil_div(INNER, 32)
    several = LEAVES >= 2
    return RouteTable(
        SPACE,
        (
            Route(
                split(8, 8),
                several & (wide < SMS * 2) & (halves * LEAVES >= SMS) & (INNER * ITEM >= 256),
                "long columns",
            ),
            Route(split(4, 16), several & (wide < SMS * 2), "few long columns"),
            Route(split(0, 8), several & (narrow < SMS * 2), "few long columns at odd addresses"),
            Route(whole(8, 1), (wide >= SMS * 16) | (N <= 64), "a warp has whole columns"),
            Route(whole(16, 8), wide >= SMS, "warps share columns"),
            Route(whole(4, 16, 16), TRUE, "few short columns: a warp has two lanes"),
            Route(whole(0, 1), (narrow >= SMS * 16) | (N <= 64), "columns at odd addresses"),
            Route(whole(0, 8), TRUE, "columns at odd addresses, warps share them"),
        ),
        variants,
        opened=True,
        pinned=_pinned,
    )  # fmt: skip


def _pinned() -> Iterator[ColumnsSpec]:
    """Of integers, a sum and what is no sum."""
    from ptxgen.numerics.columns import REDUCTIONS

    for name in ("sum_columns", "max_columns"):
        formula = REDUCTIONS[name].formula(("i64",), "i64")
        yield ColumnsSpec("leaves", 8, 8, 8, dtype=variant(name, formula))


TABLES: dict[Key, Callable[[], RouteTable]] = {("columns",): _columns}
"""What makes the table."""
