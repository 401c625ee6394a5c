"""The tables of convolutions that read images where they lie: kernels of the wgmma family.

A line is ``tile BM x BN, consumer warpgroups, stages``, as in :mod:`ptxgen.tiles.wgmma`. What they
do not serve, columns and a product do.
"""

from __future__ import annotations

from collections.abc import Callable

from ptxgen.numerics.contract import TC16, TC_ROWS
from ptxgen.spec import Key, Route, RouteTable, Step, depthwise
from ptxgen.spec.conv import ConvSpec, space
from ptxgen.spec.depthwise import DepthwiseSpec
from ptxgen.spec.simt import ReduceSpec
from ptxgen.tiles.gemm import WIDTHS
from ptxgen.tiles.regimes import routes

KEY: Key = ("conv", "half")
TURNED: Key = ("conv", "turned", "half")
DEPTHWISE: Key = ("conv", "depthwise", "half")


def _kernel(
    bm: int,
    bn: int,
    stages: int,
    split: str = "serial",
    *,
    registers: int = 0,
    raster: int = 8,
    unit: int = 16,
    layout: str = "NT",
) -> ConvSpec:
    return ConvSpec(
        layout=layout,
        bm=bm,
        bn=bn,
        bk=64,
        consumers=bm // 64,
        stages=stages,
        split=split,
        registers=registers,
        raster=raster,
        unit=unit,
    )


def _routes() -> tuple[Route, ...]:
    whole = (
        _kernel(128, 256, 4, "none", registers=232, raster=16),
        _kernel(128, 128, 6, registers=232),
        _kernel(128, 64, 8),
        _kernel(64, 128, 8),
        _kernel(64, 64, 12),
        _kernel(64, 32, 12),
    )
    halves = (
        _kernel(128, 128, 6, registers=232, unit=8),
        _kernel(128, 64, 8, unit=8),
        _kernel(64, 128, 8, unit=8),
        _kernel(64, 64, 12, unit=8),
        _kernel(64, 32, 12, unit=8),
    )
    parts = tuple(_kernel(bm, bn, s, "workspace") for bm, bn, s in ((128, 128, 6), (64, 64, 12)))
    # It is told of A as all kernels of products are, and reads partial sums alone.
    reduce = Step(ReduceSpec(dtype="bf16", contract=TC16), {"a": "x", "b": "w", "lda": "pitch"})
    return (
        *routes(whole, "windows of an image as it lies"),
        *routes(halves, "the same, of channels that are an odd multiple of 8"),
        *(
            Route((kernel, reduce), reason="few windows: a CTA per tile and chunk")
            for kernel in parts
        ),
    )


def _table() -> RouteTable:
    return RouteTable(space(TC_ROWS), _routes(), WIDTHS["half"], partial=True)


def _turned() -> RouteTable:
    kernels = (
        _kernel(128, 256, 4, "none", registers=232, raster=16, layout="NN"),
        _kernel(128, 128, 6, registers=232, layout="NN"),
        _kernel(128, 64, 8, layout="NN"),
        _kernel(64, 128, 8, layout="NN"),
        _kernel(64, 64, 12, layout="NN"),
    )
    made = routes(kernels, "windows of an image as it lies, and filters as they do")
    return RouteTable(space(TC_ROWS), made, WIDTHS["half"], partial=True)


def _depthwise() -> RouteTable:
    whole = Route((DepthwiseSpec(),), reason="windows of an image as it lies")
    return RouteTable(depthwise.SPACE, (whole,), WIDTHS["half"], partial=True)


TABLES: dict[Key, Callable[[], RouteTable]] = {KEY: _table, TURNED: _turned, DEPTHWISE: _depthwise}
"""What makes each table."""
