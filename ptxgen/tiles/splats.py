"""Route tables of Gaussian splats: lists of tiles, pictures and gradients."""

from __future__ import annotations

from collections.abc import Callable

from ptxgen.numerics.splats import TILES
from ptxgen.spec import Key, Route, RouteTable
from ptxgen.spec.splats import LISTS, PICTURES, SplatSpec


def _entries() -> RouteTable:
    route = Route((SplatSpec("entries"),), reason="the only kernel: a thread lists one entry")
    return RouteTable(LISTS, (route,), ("f32",))


def _raster() -> RouteTable:
    reason = "the only kernel for tiles of this size: a CTA draws a tile"
    routes = tuple(Route((SplatSpec("raster", tile),), reason=reason) for tile in TILES)
    return RouteTable(PICTURES, routes, ("f32",))


def _gradient() -> RouteTable:
    reason = "the only kernels for tiles of this size: gradients of a tile's entries, then sums"
    routes = (
        Route((SplatSpec("gradient", tile), SplatSpec("sums")), reason=reason) for tile in TILES
    )
    return RouteTable(PICTURES, tuple(routes), ("f32",))


TABLES: dict[Key, Callable[[], RouteTable]] = {
    ("splats", "entries"): _entries,
    ("splats", "raster"): _raster,
    ("splats", "gradient"): _gradient,
}
"""Constructors of the route tables, by key."""
