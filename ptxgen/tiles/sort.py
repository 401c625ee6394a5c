"""Route tables of sorting, and of binary search in sorted rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ptxgen.spec import Key, Route, RouteTable
from ptxgen.spec.sort import PASS_SPACE, ROW_SPACE, SEARCH_SPACE, SearchSpec, SortSpec

PINNED = ("u8", "bf16", "i64")
"""Further dtypes whose kernels goldens hold: unsigned, floats of 16 bits, signed and 64 bits."""
PASS = SortSpec("count", 4, 64), SortSpec("offsets", 8, dtype="any"), SortSpec("scatter")


def _rows() -> RouteTable:
    warp, few, many = (SortSpec("row", warps, n) for warps, n in ((1, 4), (4, 8), (8, 16)))
    lanes = SortSpec("lanes", 8, 1), SortSpec("lanes", 8, 2)
    return RouteTable(
        ROW_SPACE,
        (
            *(Route((k,), reason="few elements: a warp compares all of them") for k in lanes),
            Route((warp,), reason="short rows: a warp sorts a row"),
            Route((few,), reason="a CTA of 4 warps sorts a row"),
            Route((many,), reason="a CTA of 8 warps sorts a row"),
        ),
        opened=True,
        pinned=lambda: (kernel.of(dtype) for dtype in PINNED for kernel in (lanes[0], many)),
    )


def _pass() -> RouteTable:
    count, _, scatter = PASS

    def pinned() -> Iterator[SortSpec]:
        for dtype in PINNED:
            yield from (count.of(dtype), scatter.of(dtype))

    route = Route(PASS, reason="the only kernels: count digits, add the counts, scatter")
    return RouteTable(PASS_SPACE, (route,), opened=True, pinned=pinned)


def _search() -> RouteTable:
    route = Route((SearchSpec(),), reason="the only kernel: a thread finds a value's position")
    return RouteTable(
        SEARCH_SPACE, (route,), opened=True, pinned=lambda: (SearchSpec(d) for d in PINNED)
    )


TABLES: dict[Key, Callable[[], RouteTable]] = {
    ("sort", "row"): _rows,
    ("sort", "pass"): _pass,
    ("sort", "search"): _search,
}
"""Constructors of the route tables, by key."""
