"""How lines of the FMA kernels' tables are written, whatever the operands' dtype."""

from __future__ import annotations

from collections.abc import Mapping

from ptxgen.expr import TRUE, Expr
from ptxgen.numerics.contract import M, N
from ptxgen.spec import CHUNKS, SMS, Route
from ptxgen.spec.simt import SimtSpec

Pair = tuple[int, int]
Triple = tuple[int, int, int]
Copies = tuple[str, str, str, str]

SPLIT = CHUNKS > 1
UNSPLIT = ~SPLIT
NARROW = N <= 2048
WIDE = N >= 4096


def gemm(
    table: Mapping[str, Copies],
    dtype: str,
    layout: str,
    tile: Triple,
    thread: Pair,
    lanes: Pair,
    warps: Pair,
    stages: int,
    copies: str,
    *,
    slices: int = 0,
    ctas: int = 1,
    order: str = "rows",
    split: str = "none",
    persistent: bool = False,
) -> SimtSpec:
    """A spec: its operands travel as ``table[copies]`` says, of A if k is contiguous, of A if m is,
    of B if k is contiguous, of B if n is. ``slices`` > 0 makes it a sliced one.
    """
    a_k, a_outer, b_k, b_outer = table[copies]
    copy_a = a_k if layout[0] == "N" else a_outer
    copy_b = b_k if layout[1] == "T" else b_outer
    return SimtSpec(
        layout=layout,
        bm=tile[0],
        bn=tile[1],
        bk=tile[2],
        tm=thread[0],
        tn=thread[1],
        lanes_m=lanes[0],
        lanes=lanes[0] * lanes[1],
        warps_m=warps[0],
        warps_n=warps[1],
        stages=stages,
        copy_a=copy_a,
        copy_b=copy_b,
        slices=max(slices, 1),
        split="slices" if slices else split,
        ctas_per_sm=ctas,
        order=order,
        persistent=persistent,
        dtype=dtype,
    )


def fills(spec: SimtSpec, quarters: int) -> Expr:
    """The tiles of ``spec`` are at least ``quarters`` / 4 of the SMs."""
    return spec.tiles * 4 >= SMS * quarters


def thin_split_route(spec: SimtSpec, limit: int, where: Expr = TRUE) -> Route:
    """Few rows, a split reduction."""
    return Route((spec,), SPLIT & (M <= limit) & where, f"M <= {limit}: chunks side by side")


def thin_route(spec: SimtSpec, limit: int) -> Route:
    """Few rows, one chain."""
    return Route((spec,), (M <= limit) & WIDE, f"M <= {limit}: the weight streams once")


def medium_route(spec: SimtSpec, where: Expr, quarters: int = 3) -> Route:
    """Enough tiles for nearly every SM."""
    return Route(
        (spec,),
        where & fills(spec, quarters),
        f"the largest tile that gives {quarters}/4 of the SMs one",
    )
