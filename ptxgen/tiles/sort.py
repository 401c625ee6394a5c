"""Route tables of sorting, and of binary search in sorted rows."""

from __future__ import annotations

from collections.abc import Callable

from ptxgen.spec import Key, Route, RouteTable
from ptxgen.spec.sort import PASS_SPACE, ROW_SPACE, SEARCH_SPACE, RadixSortSpec, SearchSpec

PASS = (
    RadixSortSpec("count", 4, 64),
    RadixSortSpec("offsets", 8, dtype="any"),
    RadixSortSpec("scatter"),
)


def _rows() -> RouteTable:
    warp, few, many = (RadixSortSpec("row", warps, n) for warps, n in ((1, 4), (4, 8), (8, 16)))
    lanes = RadixSortSpec("lanes", 8, 1), RadixSortSpec("lanes", 8, 2)
    return RouteTable(
        ROW_SPACE,
        (
            *(Route((k,), reason="few elements: a warp compares all of them") for k in lanes),
            Route((warp,), reason="short rows: a warp sorts a row"),
            Route((few,), reason="a CTA of 4 warps sorts a row"),
            Route((many,), reason="a CTA of 8 warps sorts a row"),
        ),
        opened=True,
    )


def _pass() -> RouteTable:
    route = Route(PASS, reason="the only kernels: count digits, add the counts, scatter")
    return RouteTable(PASS_SPACE, (route,), opened=True)


def _search() -> RouteTable:
    route = Route((SearchSpec(),), reason="the only kernel: a thread finds a value's position")
    pinned = lambda: (SearchSpec(dtype) for dtype in ("u8", "i64"))  # noqa: E731
    return RouteTable(SEARCH_SPACE, (route,), opened=True, pinned=pinned)


TABLES: dict[Key, Callable[[], RouteTable]] = {
    ("sort", "row"): _rows,
    ("sort", "pass"): _pass,
    ("sort", "search"): _search,
}
"""Constructors of the route tables, by key."""
