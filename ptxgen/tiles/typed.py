"""The bf16 and f16 kernels on the FMA units, contract fma/1 on exactly upcast operands.

Lines read as in tiles/simt.py, the regimes are the same, and so is the way the ``prefer`` rules
came about; the table of f16 is that of bf16. An operand is either "raw", with 16 bits an element
in shared memory and upcast as it is fetched, where memory decides and the main loop has time to
spare, or "held": upcast in registers on its way there, so that the main loop is that of the f32
kernels (templates/simt/operand.cuh.j2).
"""

from __future__ import annotations

import functools
from dataclasses import replace

from ptxgen.expr import TRUE, Expr
from ptxgen.numerics.contract import M
from ptxgen.spec import ALIGN_A, SMS, ReduceSpec, Route, TileSpec
from ptxgen.tiles.regimes import (
    NARROW,
    SPLIT,
    UNSPLIT,
    Pair,
    Triple,
    fills,
    gemm,
    medium_route,
    thin_route,
    thin_split_route,
)

COPIES = {  # name: (of A if k is contiguous, if m is; of B if k is contiguous, if n is)
    "raw": ("kvector", "vector", "kvector", "vector"),
    "thin": ("kvector", "scalar", "kvector", "vector"),
    "mixed": ("staged", "packed", "kvector", "vector"),
    "mixed1": ("staged", "scalar", "kvector", "vector"),  # an m-contiguous A of any alignment
    "held": ("staged", "packed", "staged", "packed"),
    "plain": ("transpose", "scalar", "transpose", "scalar"),
}


_gemm = functools.partial(gemm, COPIES)


def _thin_splits(dtype: str, layout: str) -> tuple[Route, ...]:
    def line(
        tile: Triple, thread: Pair, lanes: Pair, stages: int, copies: str, limit: int, where: Expr
    ) -> Route:
        spec = _gemm(dtype, layout, tile, thread, lanes, (1, 1), stages, copies, slices=8)
        return thin_split_route(spec, limit, where)

    if layout == "NN":
        return (
            line((2, 16, 32), (1, 1), (2, 16), 4, "thin", 2, NARROW),
            line((4, 16, 32), (1, 2), (4, 8), 4, "thin", 16, NARROW),
            line((16, 16, 32), (4, 2), (4, 8), 3, "mixed1", 32, NARROW),
            line((2, 32, 32), (1, 2), (2, 16), 4, "mixed1", 4, TRUE),
            line((8, 32, 32), (4, 2), (2, 16), 4, "thin", 8, TRUE),
            line((16, 32, 32), (4, 4), (4, 8), 4, "thin", 16, TRUE),
            line((32, 32, 32), (4, 8), (8, 4), 2, "held", 32, TRUE),
        )
    if layout == "TN":
        return (
            line((4, 16, 32), (1, 2), (4, 8), 4, "thin", 8, NARROW),
            line((4, 32, 32), (2, 2), (2, 16), 4, "mixed1", 32, NARROW | (M <= 8)),
            line((16, 32, 32), (4, 4), (4, 8), 4, "mixed", 16, TRUE),
            line((32, 32, 16), (8, 4), (4, 8), 4, "mixed1", 32, ALIGN_A < 8),
            line((32, 32, 32), (8, 4), (4, 8), 3, "mixed", 32, TRUE),
        )
    copies = "thin" if layout[0] == "N" else "mixed"
    return (
        line((1, 16, 64), (1, 1), (1, 16), 4, "thin", 4, NARROW | (M <= 1)),
        line((8, 16, 64), (2, 2), (4, 8), 3, "thin", 16, NARROW),
        line((4, 32, 64), (1, 4), (4, 8), 3, "thin", 4, TRUE),
        line((8, 32, 64), (2, 4), (4, 8), 3, "thin", 32, NARROW | (M <= 8)),
        line((16, 32, 32), (4, 4), (4, 8), 4, copies, 16, TRUE),
        line((32, 32, 32), (4, 8), (8, 4), 2, "held", 32, TRUE),
    )


def _thins(dtype: str, layout: str) -> tuple[Route, ...]:
    def line(
        tile: Triple, thread: Pair, lanes: Pair, warps: int, stages: int, copies: str, limit: int
    ) -> Route:
        spec = _gemm(dtype, layout, tile, thread, lanes, (1, warps), stages, copies)
        return thin_route(spec, limit)

    if layout[1] == "T":
        return (
            line((4, 128, 64), (2, 2), (2, 16), 4, 3, "thin", 4 if layout == "NT" else 8),
            line((8, 128, 64), (4, 2), (2, 16), 4, 3, "mixed1", 16),
            line((16, 128, 64), (4, 4), (4, 8), 4, 3, "mixed1", 32),
        )
    middle = ((8, 2), (2, 16), "mixed1") if layout == "NN" else ((4, 4), (4, 8), "mixed")
    return (
        line((4, 128, 32), (2, 2), (2, 16), 4, 6, "thin", 8),
        line((16, 128, 32), *middle[:2], 4, 5, middle[2], 16),
        line((32, 128, 32), (8, 4), (4, 8), 4, 4, "mixed1", 32),
    )


def _rows(dtype: str, layout: str) -> tuple[Route, ...]:
    large = _gemm(dtype, layout, (128, 128, 16), (8, 8), (4, 8), (4, 2), 2, "held", ctas=2)
    totals = _gemm(
        dtype, layout, (128, 128, 8), (8, 16), (4, 8), (4, 1), 2, "held", slices=1, ctas=2
    )
    square = _gemm(dtype, layout, (64, 64, 8), (16, 8), (4, 8), (1, 1), 2, "held", slices=8)
    flat = _gemm(dtype, layout, (32, 64, 16), (8, 8), (4, 8), (1, 1), 2, "held", slices=8)
    thin = _thin_splits(dtype, layout)
    low = thin[-1].kernels[0]
    assert isinstance(low, TileSpec)
    few = _gemm(dtype, layout, (32, 16, 32), (4, 4), (8, 4), (1, 1), 3, "mixed", slices=8)
    return (
        *thin[:-1],
        medium_route(totals, SPLIT, 6),
        medium_route(square, SPLIT),
        medium_route(flat, SPLIT),
        replace(thin[-1], prefer=SPLIT & ((M <= 32) | fills(low, 3))),
        Route((few,), SPLIT & ~fills(large, 4), "few outputs, split"),
        *_thins(dtype, layout),
        *_unsplit(dtype, layout, large),
        *_plain(dtype, layout),
    )


def _unsplit(dtype: str, layout: str, large: TileSpec) -> tuple[Route, ...]:
    """Largest tiles first."""
    middle = _gemm(dtype, layout, (64, 64, 16), (8, 4), (4, 8), (2, 2), 2, "held", ctas=4)
    low = _gemm(dtype, layout, (32, 32, 32), (4, 4), (4, 8), (2, 1), 5, "raw", ctas=4)
    small = _gemm(dtype, layout, (16, 32, 64), (2, 2), (4, 8), (2, 2), 4, "raw", ctas=4)
    return (
        medium_route(large, UNSPLIT, 6),
        medium_route(middle, UNSPLIT, 4),
        medium_route(low, UNSPLIT, 4),
        Route((small,), UNSPLIT, "few outputs: many small tiles shorten the wait"),
    )


def _plain(dtype: str, layout: str, split: bool = True) -> tuple[Route, ...]:
    """Any alignment: operands travel by single elements.

    ``split``: whether split reductions of few outputs come here.
    """
    large = _gemm(dtype, layout, (128, 128, 8), (16, 8), (4, 8), (2, 2), 2, "plain", ctas=2)
    thin = _gemm(dtype, layout, (32, 32, 16), (8, 4), (4, 8), (1, 1), 2, "plain", slices=8)
    small = _gemm(dtype, layout, (16, 32, 96), (2, 2), (4, 8), (2, 2), 2, "plain", ctas=4)
    filler = _gemm(
        dtype,
        layout,
        (64, 64, 16),
        (8, 4),
        (4, 8),
        (2, 2),
        2,
        "plain",
        slices=1,
        persistent=True,
    )
    sliced = (Route((thin,), SPLIT & ~fills(filler, 6), "unaligned, few outputs, split"),)
    return (
        *(sliced if split else ()),
        medium_route(large, UNSPLIT, 6),
        Route((small,), UNSPLIT & ~fills(filler, 6), "unaligned, few outputs"),
        Route((filler,), TRUE, "everything else: any size, alignment and plan"),
    )


def _batch(dtype: str) -> tuple[Route, ...]:
    """Weight gradients: A and B are batches, row by row; the reduction runs over the batch."""

    def line(
        tile: Triple, thread: Pair, warps: Pair, stages: int, copies: str, ctas: int
    ) -> TileSpec:
        return _gemm(
            dtype, "TN", tile, thread, (4, 8), warps, stages, copies, ctas=ctas, split="workspace"
        )

    reduce = ReduceSpec(dtype=dtype)
    unsplit = _gemm(dtype, "TN", (128, 128, 16), (8, 8), (4, 8), (4, 2), 2, "held", ctas=2)
    large = line((128, 128, 16), (8, 8), (4, 2), 2, "held", 2)
    middle = line((64, 64, 16), (8, 4), (2, 2), 2, "held", 4)
    small = line((32, 64, 32), (4, 4), (2, 2), 4, "mixed", 4)
    plain = line((32, 64, 16), (4, 4), (2, 2), 2, "plain", 4)
    return (
        Route((large, reduce), SPLIT & (large.grid >= SMS * 6), "large outputs, long batch"),
        Route((middle, reduce), SPLIT & fills(middle, 4), "middling outputs, long batch"),
        Route((small, reduce), SPLIT, "few outputs, long batch: a CTA per tile and chunk"),
        Route((plain, reduce), SPLIT, "unaligned, long batch"),
        *_unsplit(dtype, "TN", unsplit),
        *_plain(dtype, "TN", split=False),
    )


ROUTES = {
    **{
        (layout, "rows", dtype, "simt"): _rows(dtype, layout)
        for dtype in ("bf16", "f16")
        for layout in ("NN", "NT", "TN", "TT")
    },
    **{("TN", "batch", dtype, "simt"): _batch(dtype) for dtype in ("bf16", "f16")},
}
