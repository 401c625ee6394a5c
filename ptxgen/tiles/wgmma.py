"""The wgmma kernels: Hopper's tensor cores and TMA, contract tc16.

A line of the tables is ``tile BM x BN x BK, consumer warpgroups, stages``.
docs/notes/2026-11-28-gemm-16-bit.md has the measurements behind the choice.
"""

from __future__ import annotations

import functools
from dataclasses import replace

from ptxgen.spec.chain import ChainSpec
from ptxgen.spec.wgmma import WgmmaSpec, WgmmaSwappedSpec


def specs(layout: str, dtype: str) -> tuple[WgmmaSpec, ...]:
    """Returns the kernels without split-K, for one chunk or several, from large tiles to small
    ones.
    """

    def gemm(
        tile: tuple[int, int, int],
        consumers: int,
        stages: int,
        *,
        split: str = "serial",
        spilled_sums: int | None = None,
        share: tuple[int, int] = (1, 1),
        registers: int = 0,
        raster: int = 8,
    ) -> WgmmaSpec:
        """Returns a kernel. ``share``: CTAs along m that share tiles of B, and along n that share
        tiles of A.
        """
        bm, bn, bk = tile
        return WgmmaSpec(
            layout=layout,
            bm=bm,
            bn=bn,
            bk=bk,
            consumers=consumers,
            stages=stages,
            cluster_m=share[0],
            cluster_n=share[1],
            split=split,
            registers=registers,
            raster=raster,
            dtype=dtype,
            spilled_sums=spilled_sums,
        )

    one_chunk = functools.partial(gemm, split="none")
    if layout == "TT":  # a rare layout: two sizes are enough
        return (gemm((128, 128, 64), 2, 6, registers=232), gemm((64, 64, 64), 1, 12))
    # For any M and N, some tile divides them among the SMs with little left over; NN and NT have
    # those of :func:`swapped` as well. A tile has a kernel for one chunk, with a stage more, only
    # where that was measured to be faster.
    has_swapped = bool(swapped(layout, dtype))
    kernels = [
        one_chunk((128, 256, 64), 2, 4, registers=232, raster=16),
        gemm((128, 256, 64), 2, 3, registers=240, spilled_sums=56, raster=16),
    ]
    if not has_swapped:
        kernels.append(gemm((128, 256, 64), 2, 3, registers=240, spilled_sums=56, share=(2, 1)))
    kernels += [
        gemm((192, 192, 64), 3, 3, registers=160, spilled_sums=52),
        gemm((128, 192, 64), 2, 5, share=(2, 1), registers=240),
    ]
    # A few tiles for each SM, or one: the tile that leaves the fewest SMs idle.
    if has_swapped:
        stages = 4 if layout == "NT" else 3
        kernels += [
            one_chunk((192, 160, 64), 3, 4, registers=160),
            gemm((192, 160, 64), 3, stages, registers=160, spilled_sums=24),
        ]
    else:
        kernels.append(one_chunk((192, 128, 64), 3, 4))
    kernels += [
        gemm((192, 128, 64), 3, 4, share=(1, 2), registers=160),
        gemm((128, 224, 64), 2, 4, registers=240),
    ]
    if not has_swapped:
        kernels.append(gemm((128, 176, 64), 2, 5, registers=240))
    kernels += [
        gemm((128, 128, 64), 2, 6, registers=232),
        gemm((128, 112, 64), 2, 6),
    ]
    # At most one tile for each SM: bytes in flight decide.
    kernels += [
        gemm((64, 256, 64), 1, 5, spilled_sums=24),
        gemm((128, 64, 64), 2, 8),
        gemm((64, 128, 64), 1, 8),
    ]
    if not has_swapped:
        kernels.append(gemm((64, 128, 64), 1, 8, share=(2, 1)))
    kernels += [
        gemm((64, 64, 64), 1, 12),
        gemm((64, 32, 128), 1, 8),
    ]
    if layout == "NT":
        # 64 requests that are decoded: rows that fill the tile take three quarters of the time.
        kernels.append(replace(gemm((64, 32, 128), 1, 8), whole_rows=True))
    return (*kernels, gemm((64, 16, 128), 1, 10))


def swapped(layout: str, dtype: str) -> tuple[WgmmaSwappedSpec, ...]:
    """Returns the kernels with swapped operands, whose tiles have any multiple of 8 rows, for
    layouts NN and NT; in others none. They serve more than 64 rows where tiles of :func:`specs`
    would leave SMs idle. docs/adr/118-shapes-of-swapped-tiles.md has the measurements behind the
    choice.
    """
    if layout[0] != "N":
        return ()

    def gemm(rows: int, columns: int, stages: int, split: str = "serial") -> WgmmaSwappedSpec:
        consumers = {64: 1, 128: 2, 192: 3, 256: 2}[columns]
        registers = {1: 0, 2: 240, 3: 160}[consumers]
        return WgmmaSwappedSpec(
            layout,
            rows,
            columns,
            64,
            consumers,
            stages,
            split=split,
            registers=registers,
            dtype=dtype,
        )

    return (
        gemm(88, 64, 10),
        *(gemm(rows, 128, 5) for rows in (200, 184, 160, 152)),
        *(gemm(rows, 128, 6) for rows in (136, 120)),
        gemm(104, 128, 7),
        gemm(80, 128, 8),
        gemm(192, 192, 4, split="none"),
        *(gemm(rows, 192, 5) for rows in (120, 112)),
        *(gemm(rows, 256, 4) for rows in (112, 96)),
    )


def partial(layout: str, dtype: str) -> tuple[WgmmaSpec, ...]:
    """Returns the split-K kernels, whose partial sums a reduce kernel adds."""
    return tuple(
        WgmmaSpec(
            layout=layout,
            bm=bm,
            bn=bn,
            bk=64,
            consumers=bm // 64,
            stages=stages,
            split="workspace",
            registers=160 if bm == 192 else 0,
            dtype=dtype,
        )
        for bm, bn, stages in ((192, 192, 4), (128, 128, 6), (64, 64, 12))
    )


def swapped_partial(layout: str, dtype: str) -> tuple[WgmmaSwappedSpec, ...]:
    """Returns the split-K kernels with swapped operands, for layouts NN and NT; in others none.
    They serve 65 to 512 rows. Up to half of a tile of 128 rows (:func:`partial`) would be empty at
    65 to 96 rows.
    """
    if layout[0] != "N":
        return ()
    return tuple(
        WgmmaSwappedSpec(layout, bm, bn, 64, bn // 64, stages, split="workspace", dtype=dtype)
        for bm, bn, stages in ((96, 192, 6), (80, 128, 8), (96, 64, 10))
    )


def continued(dtype: str) -> tuple[ChainSpec, ...]:
    """Returns the kernels whose accumulators start from the old values of C, 16-bit or f32."""

    def gemm(
        tile: tuple[int, int, int], stages: int, item: int, *, registers: int = 0
    ) -> ChainSpec:
        return ChainSpec(
            "TN", *tile, tile[0] // 64, stages, dtype=dtype, itemsize=item, registers=registers
        )

    return (
        gemm((128, 256, 32), 6, 2, registers=232),
        gemm((64, 64, 64), 12, 2),
        gemm((128, 128, 64), 5, 4, registers=232),
        gemm((64, 64, 64), 12, 4),
    )
