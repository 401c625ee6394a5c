"""The regimes of the FMA kernels' routes, whatever the operands' dtype."""

from __future__ import annotations

from ptxgen.contract import M, N
from ptxgen.expr import TRUE, Expr
from ptxgen.spec import CHUNKS, SMS, Route, TileSpec

Pair = tuple[int, int]
Triple = tuple[int, int, int]

SPLIT = CHUNKS > 1
UNSPLIT = ~SPLIT
NARROW = N <= 2048
WIDE = N >= 4096


def fills(spec: TileSpec, quarters: int) -> Expr:
    """The tiles of ``spec`` are at least ``quarters`` / 4 of the SMs."""
    return spec.tiles * 4 >= SMS * quarters


def thin_split_route(spec: TileSpec, limit: int, where: Expr = TRUE) -> Route:
    """Few rows, a split reduction."""
    return Route((spec,), SPLIT & (M <= limit) & where, f"M <= {limit}: chunks side by side")


def thin_route(spec: TileSpec, limit: int) -> Route:
    """Few rows, one chain."""
    return Route((spec,), (M <= limit) & WIDE, f"M <= {limit}: the weight streams once")


def medium_route(spec: TileSpec, where: Expr, quarters: int = 3) -> Route:
    """Enough tiles for nearly every SM."""
    return Route(
        (spec,),
        where & fills(spec, quarters),
        f"the largest tile that gives {quarters}/4 of the SMs one",
    )
