"""Route tables of linear recurrences, and of their gradients."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ptxgen.expr import TRUE
from ptxgen.numerics.recurrence import tile
from ptxgen.spec import Key, Route, RouteTable
from ptxgen.spec.recurrence import LINEAR_SPACE, SPACE, LinearSpec, SelectiveSpec

DTYPES = ("bf16", "f16", "f32")


def _selective(part: str) -> RouteTable:
    shares = ((4, 4), (16, 4), (32, 8))
    specs = (
        SelectiveSpec(part, lanes=n, states_per_lane=m, warps=4, tile_tokens=tile(n * m))
        for n, m in shares
    )
    routes = (Route((s,), TRUE, f"{s.lanes} lanes share a channel") for s in specs)
    return RouteTable(SPACE, tuple(routes), DTYPES)


def _linear(part: str) -> RouteTable:
    spec = LinearSpec(part, prefetch=48 if part == "forward" else 32)
    return RouteTable(
        LINEAR_SPACE,
        (Route((spec,), TRUE, "the only kernel: a thread computes a channel"),),
        DTYPES,
    )


TABLES: dict[Key, Callable[[], RouteTable]] = {
    ("selective_scan",): partial(_selective, "forward"),
    ("selective_scan_grad",): partial(_selective, "backward"),
    ("linear_recurrence",): partial(_linear, "forward"),
    ("linear_recurrence_grad",): partial(_linear, "backward"),
}
