"""Route tables of implicit-GEMM convolutions: kernels of the wgmma family.

A line is ``tile BM x BN, consumer warpgroups, stages``, as in :mod:`ptxgen.tiles.wgmma`. Other
problems are computed by im2col and a product.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from ptxgen.expr import const, var
from ptxgen.numerics.contract import ITEMSIZE, TC16, TC16_CHUNKS, K
from ptxgen.spec import Key, Route, RouteTable, Step, depthwise
from ptxgen.spec.conv import (
    PIXELS,
    TAPS,
    ConvCarriedSpec,
    ConvGatherSpec,
    ConvLooseSpec,
    ConvSpec,
    ConvSumSpec,
    ConvWholeSpec,
    space,
)
from ptxgen.spec.depthwise import DepthwiseSpec
from ptxgen.spec.realign import RealignSpec, pitch
from ptxgen.spec.simt import ReduceSpec
from ptxgen.tiles.gemm import WIDTHS
from ptxgen.tiles.regimes import routes

KEY: Key = ("conv", "half")
TURNED: Key = ("conv", "turned", "half")
SUMMED: Key = ("conv", "summed", "half")
DEPTHWISE: Key = ("conv", "depthwise", "half")

Spec = TypeVar("Spec", bound=ConvSpec)


def _spec(
    kind: type[Spec], layout: str, bm: int, bn: int, stages: int, split: str, **how: Any
) -> Spec:
    """Returns a kernel of class ``kind`` with 64 k's a stage and a consumer warpgroup for each 64
    tile rows. ``bm``, ``bn``: outputs of a tile; ``stages``: stages of the ring; ``how``: further
    fields of the spec, which override these.
    """
    how = {"bm": bm, "bn": bn, "bk": 64, "consumers": bm // 64, "stages": stages} | how
    return kind(layout=layout, split=split, **how)


def _kernel(bm: int, bn: int, stages: int, *, registers: int = 0, layout: str = "NT") -> ConvSpec:
    return _spec(ConvSpec, layout, bm, bn, stages, "serial", registers=registers)


def _gather(
    bm: int,
    bn: int,
    stages: int,
    split: str = "serial",
    *,
    layout: str = "NT",
    kind: type[ConvGatherSpec] = ConvGatherSpec,
    registers: int = 208,
    spilled_sums: int | None = None,
) -> ConvGatherSpec:
    """Returns a convolution kernel whose threads gather windows. ``bm``, ``bn``: outputs of a tile;
    ``stages``: stages of the ring; ``kind``: class of the spec; ``registers``: registers of a
    consumer thread, if a tile's sums are too many for the default; others: fields of the spec.

    Small tiles have one consumer and share an SM, so that one CTA multiplies while another's
    threads gather.
    """
    small = bm * bn <= 64 * 64
    registers = registers if bm * bn * (1 + (split == "serial")) > 128 * 128 else 0
    how = {"registers": registers, "spilled_sums": spilled_sums, "ctas_per_sm": 2 if small else 1}
    how |= {"consumers": 1} if small else {}
    return _spec(kind, layout, bm, bn, stages, split, **how)


def _carried(
    bm: int,
    bn: int,
    stages: int,
    kind: type[ConvGatherSpec] = ConvCarriedSpec,
    **how: Any,
) -> ConvGatherSpec:
    return _gather(bm, bn, stages, layout="NN", kind=kind, **how)


def _whole(bm: int, bn: int, stages: int, split: str = "serial", **how: Any) -> ConvWholeSpec:
    """Returns a convolution kernel (layout NN) that reads a padded copy of the image. ``bm``,
    ``bn``: outputs of a tile; ``stages``: stages of the ring; ``how``: further fields of the spec.
    ``registers`` is 0 (no reallocation) by default, since producer threads hold the loads in flight
    and so keep their registers.
    """
    return _spec(ConvWholeSpec, "NN", bm, bn, stages, split, **how)


def _sum(bm: int, bn: int, stages: int, split: str = "serial", share: int = 1) -> ConvSumSpec:
    """Returns a wgrad kernel with tiles of ``bm`` x ``bn`` outputs and ``stages`` stages. Small
    tiles share an SM, since CTAs are few and run long. ``share``: CTAs along m that share tiles of
    B.
    """
    ctas = 2 if bm == 64 and bn <= 128 else 1
    registers = 208 if bm * bn > 128 * 128 else 0
    if split == "serial":  # needs registers for a second set of sums
        registers = 168 if ctas == 2 else 232
    how = {"registers": registers, "cluster_m": share}
    return _spec(ConvSumSpec, "TN", bm, bn, stages, split, ctas_per_sm=ctas, **how)


def _reduce_step(second: str) -> Step:
    """Returns the step that adds partial sums. The kernel's parameters for A and B, which it does
    not read, are bound to the image and to the other operand, named ``second``.
    """
    bind = {"a": "x", "b": second, "lda": "pitch", "ldb": "ldc"}
    return Step(ReduceSpec(dtype="bf16", contract=TC16), bind)


def _split_k(kernels: Iterable[ConvSpec], second: str, reason: str) -> tuple[Route, ...]:
    """Returns split-K routes: each of ``kernels``, followed by a kernel that adds its partial sums.
    ``second``: name of the operand other than the image.
    """
    return tuple(Route((kernel, _reduce_step(second)), reason=reason) for kernel in kernels)


def _padded(kernel: ConvWholeSpec, *then: Step) -> Route:
    """Returns a route that copies the image, with each pixel padded by zeros to whole vectors, and
    runs ``kernel`` on the copy. ``then``: further steps, such as the sum of partial sums.
    """
    size, copy = ITEMSIZE[kernel.dtype], "x_realigned"
    bind = {"x0": "x", "ldx0": "ldx", "y0": copy}
    each = pitch(K // TAPS, size)
    pitches = {"PITCH": each, "ROW": var("WIDE") * each, "IMAGE": var("HIGH") * var("WIDE") * each}
    copy_step = Step(RealignSpec(size, 1), bind, {"ROWS0": PIXELS, "COLS0": K // TAPS})
    read = Step(kernel, {"x": copy}, {"ALIGN_A": const(16), **pitches})
    reason = "channels no multiple of 8: the image is copied first, its pixels padded with zeros"
    return Route((copy_step, read, *then), reason=reason)


def _table() -> RouteTable:
    whole = (
        _kernel(128, 64, 8),
        _kernel(64, 128, 8),
        _kernel(64, 64, 12),
    )
    some = (
        _gather(128, 256, 3, registers=224, spilled_sums=80),
        _gather(128, 192, 4, registers=216, spilled_sums=32),
        _gather(128, 128, 6),
        _gather(64, 64, 6),
        _gather(64, 32, 8),
    )
    parts = (
        _gather(128, 256, 4, "workspace"),
        _gather(128, 128, 6, "workspace"),
        _gather(64, 32, 8, "workspace"),
    )
    found = (
        *routes(whole, "TMA gathers windows of the image"),
        *routes(some, "threads gather windows: few channels, or an odd multiple of 8"),
        *_split_k(parts, "w", "few windows: split-K, a CTA for each tile and chunk"),
    )
    return RouteTable(space(TC16_CHUNKS), found, WIDTHS["half"], partial=True)


def _turned() -> RouteTable:
    whole = (
        _kernel(128, 128, 6, registers=232, layout="NN"),
        _kernel(128, 64, 8, layout="NN"),
        _kernel(64, 128, 8, layout="NN"),
        _kernel(64, 64, 12, layout="NN"),
    )
    some = (
        _gather(128, 256, 3, layout="NN", registers=224, spilled_sums=80),
        _gather(128, 192, 4, layout="NN", registers=216, spilled_sums=32),
        _gather(128, 128, 6, layout="NN"),
        _carried(128, 256, 3, registers=224, spilled_sums=80),
        _carried(128, 192, 4, registers=216, spilled_sums=32),
        _carried(128, 128, 6),
        _carried(128, 64, 8),
        _carried(128, 32, 5),
        _carried(64, 64, 6),
        _carried(64, 32, 8),
        _carried(64, 64, 6, ConvLooseSpec),
    )
    odd = (
        _whole(128, 128, 5, registers=176),
        _whole(128, 32, 5, consumers=1, ctas_per_sm=2),
        _whole(64, 64, 5, ctas_per_sm=2),
    )
    parts = (_gather(64, 64, 6, "workspace", layout="NN"),)
    found = (
        *routes(whole, "TMA gathers windows of the image; outputs of filters are contiguous"),
        *routes(some, "threads gather windows: any channels, and several phases (strided dgrad)"),
        *map(_padded, odd),
        _padded(_whole(64, 64, 5, "workspace", ctas_per_sm=2), _reduce_step("w")),
        *_split_k(parts, "w", "few windows: split-K, a CTA for each tile and chunk"),
    )
    return RouteTable(space(TC16_CHUNKS), found, WIDTHS["half"], partial=True)


def _summed() -> RouteTable:
    whole = (_sum(128, 192, 5), _sum(128, 192, 5, share=2), _sum(64, 128, 4))
    sizes = (128, 64, 8), (64, 192, 6)
    parts = tuple(_sum(*size, "workspace") for size in sizes)
    few = tuple(
        _gather(*size, "workspace", layout="TN")
        for size in ((128, 256, 4), (128, 128, 6), (64, 64, 6))
    )
    found = (
        *routes(whole, "wgrad: TMA gathers windows of the image"),
        *routes(
            (_gather(64, 64, 6, layout="TN"),), "wgrad: threads gather windows, of few channels"
        ),
        *_split_k((*parts, *few), "dy", "wgrad: split-K, a CTA for each tile and chunk"),
    )
    return RouteTable(space(TC16_CHUNKS), found, WIDTHS["half"], partial=True)


def _depthwise() -> RouteTable:
    whole = Route((DepthwiseSpec(),), reason="the only kernel: tiles of the image in shared memory")
    return RouteTable(depthwise.SPACE, (whole,), WIDTHS["half"], partial=True)


TABLES: dict[Key, Callable[[], RouteTable]] = {
    KEY: _table,
    TURNED: _turned,
    SUMMED: _summed,
    DEPTHWISE: _depthwise,
}
"""Constructors of the route tables, by key."""
