"""Constructors for the routes of route tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ptxgen.spec import KernelSpec, Route, Step
from ptxgen.spec.simt import SimtSpec

Pair = tuple[int, int]
Triple = tuple[int, int, int]
Copies = tuple[str, str, str, str]


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
    """Returns a spec of the simt family. ``tile``: BM, BN, BK; ``thread``: outputs of a thread,
    ``lanes``: lanes of a warp, ``warps``: warps of a slice, each along m and n. ``stages``: stages
    of the ring; ``ctas``: CTAs per SM. ``table[copies]``: copy methods of A if k is contiguous, of
    A if m is, of B if k is, of B if n is. ``slices`` > 0 makes a sliced kernel. ``order``,
    ``split``, ``persistent``: fields of the spec.
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
        fma_order=order,
        persistent=persistent,
        dtype=dtype,
    )


def routes(
    kernels: Iterable[KernelSpec], reason: str, *then: KernelSpec | Step
) -> tuple[Route, ...]:
    """Returns a route for each of ``kernels``, followed by the kernels ``then``."""
    return tuple(Route((kernel, *then), reason=reason) for kernel in kernels)


def last(kernel: KernelSpec) -> Route:
    """Returns the last route of a table, which supports every problem."""
    return Route((kernel,), reason="everything else: any size, alignment and plan")
