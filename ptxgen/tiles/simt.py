"""The f32 kernels on the FMA units, contract fma/1.

How to read a line: ``_gemm(layout, tile, thread, lanes, warps, stages, copies)`` is a CTA tile
BM x BN x BK, the outputs per thread, the lanes of a warp, the warps of a slice, the stages
of the shared-memory ring and how the operands travel (templates/simt/operand.cuh.j2).

The ``prefer`` rules come from ``ptxgen bench kernels`` on an H200; docs/performance.md has
the measurements. Bits do not hang on them. Three regimes:

- *thin* (M <= 32): the weight's bandwidth decides; many bytes in flight, small tiles;
- *medium*: the largest tile that still gives almost every SM one;
- *large*: 128 x 128 tiles, two CTAs of eight warps per SM.

Where the plan splits the reduction, CTAs of several slices work on the chunks side by side,
and large outputs keep running totals in shared memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from ptxgen.expr import TRUE
from ptxgen.numerics.contract import K, M, N
from ptxgen.spec import SMS, KernelSpec, Key, Route
from ptxgen.spec.simt import ReduceSpec, SimtSpec
from ptxgen.tiles import realign
from ptxgen.tiles.lazy import Lazy
from ptxgen.tiles.regimes import (
    NARROW,
    SPLIT,
    UNSPLIT,
    fills,
    gemm,
    medium_route,
    thin_route,
    thin_split_route,
)

REDUCE = ReduceSpec()

COPIES = {  # name: (of A if k is contiguous, if m is; of B if k is contiguous, if n is)
    "wide": ("staged", "vector", "staged", "vector"),
    "floats": ("transpose", "vector", "transpose", "vector"),
    "kvector": ("kvector", "vector", "kvector", "vector"),
    "plain": ("transpose", "scalar", "transpose", "scalar"),
}

_gemm = partial(gemm, COPIES, "f32")


THIN_SPLIT: Lazy[str, tuple[Route, ...]] = Lazy(
    {
        "NN": lambda: (
            thin_split_route(
                _gemm("NN", (2, 32, 32), (1, 2), (2, 16), (1, 1), 4, "kvector", slices=8), 2, NARROW
            ),
            thin_split_route(
                _gemm("NN", (4, 32, 32), (1, 4), (4, 8), (1, 1), 4, "kvector", slices=8), 4, NARROW
            ),
            thin_split_route(
                _gemm("NN", (4, 32, 16), (2, 4), (2, 8), (1, 1), 4, "floats", slices=8), 4
            ),
            thin_split_route(
                _gemm("NN", (8, 16, 32), (2, 2), (4, 8), (1, 1), 4, "kvector", slices=8), 8, NARROW
            ),
            thin_split_route(
                _gemm("NN", (8, 32, 16), (4, 2), (2, 16), (1, 1), 4, "floats", slices=8), 8
            ),
            thin_split_route(
                _gemm("NN", (16, 16, 32), (4, 4), (4, 4), (1, 1), 3, "kvector", slices=8),
                16,
                NARROW,
            ),
            thin_split_route(
                _gemm("NN", (16, 32, 16), (4, 4), (4, 8), (1, 1), 4, "kvector", slices=8), 16
            ),
            thin_split_route(
                _gemm("NN", (32, 16, 16), (4, 4), (8, 4), (1, 1), 4, "kvector", slices=8),
                32,
                NARROW,
            ),
            thin_split_route(
                _gemm("NN", (32, 32, 16), (4, 8), (8, 4), (1, 1), 3, "kvector", slices=8), 32
            ),
        ),
        "NT": lambda: (
            thin_split_route(
                _gemm("NT", (2, 16, 64), (1, 1), (2, 16), (1, 1), 3, "kvector", slices=8), 2, NARROW
            ),
            thin_split_route(
                _gemm("NT", (2, 32, 32), (1, 2), (2, 16), (1, 1), 4, "kvector", slices=8), 2
            ),
            thin_split_route(
                _gemm("NT", (4, 16, 32), (1, 4), (4, 4), (1, 1), 4, "kvector", slices=8), 4, NARROW
            ),
            thin_split_route(
                _gemm("NT", (4, 32, 32), (2, 4), (2, 8), (1, 1), 3, "kvector", slices=8), 4
            ),
            thin_split_route(
                _gemm("NT", (8, 16, 32), (2, 2), (4, 8), (1, 1), 3, "kvector", slices=8), 8
            ),
            thin_split_route(
                _gemm("NT", (16, 16, 32), (4, 2), (4, 8), (1, 1), 3, "kvector", slices=8), 16
            ),
            thin_split_route(
                _gemm("NT", (32, 8, 16), (8, 1), (4, 8), (1, 1), 4, "kvector", slices=8), 32, NARROW
            ),
            thin_split_route(
                _gemm("NT", (32, 32, 16), (8, 4), (4, 8), (1, 1), 3, "kvector", slices=8), 32
            ),
        ),
        "TN": lambda: _turned(THIN_SPLIT["NN"]),
    }
)

THIN: Lazy[str, tuple[Route, ...]] = Lazy(
    {
        "NN": lambda: (
            thin_route(_gemm("NN", (8, 64, 64), (4, 2), (2, 16), (1, 2), 3, "floats"), 8),
            thin_route(_gemm("NN", (16, 64, 64), (4, 4), (4, 8), (1, 2), 3, "floats"), 16),
            thin_route(_gemm("NN", (32, 128, 32), (8, 4), (4, 8), (1, 4), 4, "floats"), 32),
        ),
        "NT": lambda: (
            thin_route(_gemm("NT", (1, 64, 64), (1, 1), (1, 32), (1, 2), 3, "kvector"), 1),
            thin_route(_gemm("NT", (4, 128, 64), (2, 2), (2, 16), (1, 4), 3, "kvector"), 4),
            thin_route(_gemm("NT", (8, 128, 64), (2, 2), (4, 8), (1, 8), 3, "kvector"), 8),
            thin_route(_gemm("NT", (16, 128, 64), (4, 4), (4, 8), (1, 4), 3, "kvector"), 16),
            thin_route(_gemm("NT", (32, 64, 64), (4, 4), (8, 4), (1, 4), 3, "kvector"), 32),
        ),
        "TN": lambda: _turned(THIN["NN"]),
    }
)


def _turned(routes: tuple[Route, ...]) -> tuple[Route, ...]:
    """The same routes for an m-contiguous A, which is thin here and travels by single floats.

    Four rows are as fast in the tiles of eight.
    """
    turned = []
    for route in routes:
        (spec,) = route.kernels
        assert isinstance(spec, SimtSpec)
        if spec.bm != 4:
            spec = replace(spec, layout="T" + spec.layout[1], copy_a="scalar")
            turned.append(Route((spec,), route.prefer, route.reason))
    return tuple(turned)


MEDIUM_SPLIT: Lazy[str, tuple[SimtSpec, ...]] = Lazy(
    {  # largest tile first
        "NN": lambda: (
            _gemm(
                "NN",
                (64, 256, 8),
                (16, 8),
                (4, 8),
                (1, 4),
                4,
                "floats",
                slices=1,
                ctas=2,
                order="columns",
            ),
            _gemm("NN", (32, 64, 16), (8, 8), (4, 8), (1, 1), 2, "wide", slices=8, order="columns"),
            _gemm("NN", (16, 64, 16), (8, 4), (2, 16), (1, 1), 3, "wide", slices=8),
            _gemm("NN", (16, 32, 32), (4, 4), (4, 8), (1, 1), 2, "wide", slices=8, order="columns"),
        ),
        "NT": lambda: (
            _gemm("NT", (128, 128, 8), (8, 16), (4, 8), (4, 1), 4, "floats", slices=1, ctas=2),
            _gemm("NT", (64, 32, 16), (8, 8), (8, 4), (1, 1), 2, "wide", slices=8),
            _gemm("NT", (32, 32, 16), (8, 4), (4, 8), (1, 1), 4, "wide", slices=8),
            _gemm("NT", (16, 32, 16), (4, 4), (4, 8), (1, 1), 4, "floats", slices=8),
        ),
        "TN": lambda: (
            _gemm("TN", (128, 128, 16), (8, 8), (4, 8), (4, 2), 2, "wide", slices=1, ctas=2),
            _gemm("TN", (64, 64, 8), (16, 8), (4, 8), (1, 1), 4, "wide", slices=8),
            _gemm("TN", (64, 32, 16), (8, 8), (8, 4), (1, 1), 2, "wide", slices=8, order="columns"),
            _gemm("TN", (32, 32, 32), (4, 8), (8, 4), (1, 1), 2, "wide", slices=8, order="columns"),
            _gemm("TN", (16, 32, 32), (4, 4), (4, 8), (1, 1), 3, "wide", slices=8),
        ),
    }
)

LARGE = Lazy(
    {
        "NN": lambda: _gemm("NN", (128, 128, 16), (8, 8), (4, 8), (4, 2), 3, "wide", ctas=2),
        "NT": lambda: _gemm(
            "NT", (128, 128, 16), (8, 8), (4, 8), (4, 2), 3, "wide", ctas=2, order="columns"
        ),
        "TN": lambda: _gemm("TN", (128, 128, 32), (8, 8), (4, 8), (4, 2), 3, "wide", ctas=2),
    }
)


def _medium_unsplit(layout: str) -> tuple[Route, ...]:
    """Smaller tiles, largest first, for outputs that do not fill the GPU with large ones."""
    copies = "wide" if layout == "TN" else "floats"
    small = _gemm(layout, (16, 32, 32), (2, 2), (4, 8), (2, 2), 4, copies, ctas=4)
    if layout == "NT":
        middle = _gemm(layout, (64, 64, 16), (8, 4), (4, 8), (2, 2), 4, "wide", ctas=4)
    else:
        middle = _gemm(layout, (64, 64, 32), (8, 4), (4, 8), (2, 2), 2, copies, ctas=4)
    return (
        medium_route(LARGE[layout], UNSPLIT, 6),
        *((medium_route(_plain_large(layout), UNSPLIT, 6),) if layout == "NT" else ()),
        medium_route(middle, UNSPLIT, 4),
        medium_route(
            _gemm(layout, (32, 64, 16), (4, 4), (4, 8), (2, 2), 5, copies, ctas=4), UNSPLIT, 4
        ),
        Route((small,), UNSPLIT, "few outputs: many small tiles shorten the wait"),
    )


def _plain_large(layout: str) -> SimtSpec:
    return _gemm(layout, (128, 128, 8), (8, 8), (4, 8), (4, 2), 4, "plain", ctas=2)


def _filler(layout: str) -> SimtSpec:
    return _gemm(
        layout, (64, 64, 16), (8, 4), (4, 8), (2, 2), 3, "plain", slices=1, persistent=True
    )


def _plain(layout: str, split: bool = True) -> tuple[Route, ...]:
    """Any alignment: operands travel by single floats.

    ``split``: whether split reductions come here (unless another table part takes them). The
    small NT tiles copy by floats anyway and need no twins here; they come before the filler.
    """
    filler = _filler(layout)
    rest = Route((filler,), TRUE, "everything else: any size, alignment and plan")
    if layout == "NT":
        return (rest,)
    row = _gemm(layout, (8, 32, 16), (4, 2), (2, 16), (1, 1), 4, "plain", slices=8)
    thin = _gemm(layout, (32, 32, 16), (8, 4), (4, 8), (1, 1), 3, "plain", slices=8)
    small = _gemm(layout, (16, 32, 32), (2, 2), (4, 8), (2, 2), 4, "plain", ctas=4)
    sliced = (
        *((thin_split_route(row, 8),) if layout == "NN" else ()),
        Route((thin,), SPLIT & ~fills(filler, 6), "unaligned, few outputs, split"),
    )
    return (
        *(sliced if split else ()),
        medium_route(_plain_large(layout), UNSPLIT, 6),
        Route((small,), UNSPLIT & ~fills(filler, 4), "unaligned, few outputs"),
        rest,
    )


def _realigned(kernel: SimtSpec, *then: KernelSpec, quarters: int) -> Iterator[Route]:
    """Copies of operands off 16 bytes, where the product is so much work that they pay."""
    much = (M * N * K >= 1 << 28) & fills(kernel, quarters)
    return realign.routes(kernel, *then, where=much, reuse=256)


def _rows(layout: str) -> tuple[Route, ...]:
    return (
        *THIN_SPLIT[layout],
        *_realigned(LARGE[layout], quarters=6),
        *_realigned(MEDIUM_SPLIT[layout][0], quarters=6),
        *_realigned(MEDIUM_SPLIT[layout][1], quarters=3),
        *(
            medium_route(spec, SPLIT, 6 if spec.slices == 1 else 3)
            for spec in MEDIUM_SPLIT[layout][:-1]
        ),
        Route((MEDIUM_SPLIT[layout][-1],), SPLIT & ~fills(LARGE[layout], 4), "few outputs, split"),
        *THIN[layout],
        *_medium_unsplit(layout),
        *_plain(layout),
    )


def _both_turned() -> tuple[Route, ...]:
    """TT, which only ``matmul`` of two transposed operands is: a kernel a regime."""
    low = _gemm("TT", (8, 16, 32), (2, 2), (4, 8), (1, 1), 3, "kvector", slices=8)
    low = replace(low, copy_a="scalar")
    split = _gemm("TT", (32, 32, 16), (8, 4), (4, 8), (1, 1), 4, "floats", slices=8)
    large = _gemm("TT", (128, 128, 16), (8, 8), (4, 8), (4, 2), 3, "wide", ctas=2)
    middle = _gemm("TT", (64, 64, 32), (8, 4), (4, 8), (2, 2), 2, "floats", ctas=4)
    small = _gemm("TT", (16, 32, 32), (2, 2), (4, 8), (2, 2), 4, "plain", ctas=4)
    return (
        thin_split_route(low, 16),
        Route((split,), SPLIT, "the split reductions of more rows"),
        medium_route(large, UNSPLIT, 6),
        medium_route(middle, UNSPLIT, 4),
        Route((small,), UNSPLIT & ~fills(middle, 4), "few outputs"),
        Route((_filler("TT"),), TRUE, "everything else: any size, alignment and plan"),
    )


def _batch() -> tuple[Route, ...]:
    """Weight gradients: A and B are batches, row by row; the reduction runs over the batch."""
    large = _gemm(
        "TN", (128, 128, 32), (8, 8), (4, 8), (4, 2), 3, "wide", ctas=2, split="workspace"
    )
    middle = _gemm("TN", (64, 64, 32), (8, 4), (4, 8), (2, 2), 3, "wide", ctas=2, split="workspace")
    small = _gemm("TN", (32, 64, 16), (4, 4), (4, 8), (2, 2), 5, "wide", ctas=4, split="workspace")
    plain = _gemm("TN", (32, 64, 16), (4, 4), (4, 8), (2, 2), 4, "plain", ctas=4, split="workspace")
    flat = _gemm("TN", (64, 128, 16), (8, 8), (4, 8), (2, 2), 2, "wide", ctas=4)
    return (
        Route((large, REDUCE), SPLIT & (large.grid >= SMS * 6), "large outputs, long batch"),
        Route((middle, REDUCE), SPLIT & fills(middle, 4), "middling outputs, long batch"),
        Route((small, REDUCE), SPLIT, "few outputs, long batch: a CTA per tile and chunk"),
        *_realigned(large, REDUCE, quarters=24),
        *_realigned(LARGE["TN"], quarters=6),
        Route((plain, REDUCE), SPLIT, "unaligned, long batch"),
        Route((flat,), UNSPLIT & (K <= 64) & fills(flat, 4), "a short batch: stores decide"),
        *_medium_unsplit("TN"),
        *_plain("TN", split=False),
    )


ROUTES: Lazy[Key, tuple[Route, ...]] = Lazy(
    {
        **{
            (layout, "rows", "f32", "simt"): partial(_rows, layout) for layout in ("NN", "NT", "TN")
        },
        ("TT", "rows", "f32", "simt"): _both_turned,
        ("TN", "batch", "f32", "simt"): _batch,
    }
)
