"""The f32 kernels on the FMA units, contract fma.

A line ``_gemm(layout, tile, thread, lanes, warps, stages, copies)`` gives a CTA tile BM x BN x BK,
the outputs per thread, the lanes of a warp, the warps of a slice, the stages of the shared-memory
ring, and the copy methods of the operands (templates/simt/operand.cuh.j2).

Predicted times choose the kernel of a problem (:mod:`ptxgen.cost.tuning`); the order here does not
matter. docs/notes/2026-11-29-all-areas.md has measurements. Three regimes:

- *thin* (M <= 32): loading the weight decides the time; many bytes in flight, small tiles;
- *medium*: the largest tile that still gives almost every SM one;
- *large*: 128 x 128 tiles, two CTAs of eight warps per SM.

Where the plan splits the reduction, CTAs of several slices compute the chunks concurrently,
and large outputs keep running totals in shared memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial

from ptxgen.lazy import LazyDict
from ptxgen.numerics.contract import DEFAULT_PLAN
from ptxgen.spec import Key, Route
from ptxgen.spec.simt import ReduceSpec, SimtSpec
from ptxgen.tiles import realign
from ptxgen.tiles.regimes import gemm, last, routes

REDUCE = ReduceSpec()

COPIES = {  # name: (of A if k is contiguous, if m is; of B if k is contiguous, if n is)
    "wide": ("staged", "vector", "staged", "vector"),
    "floats": ("transpose", "vector", "transpose", "vector"),
    "kvector": ("kvector", "vector", "kvector", "vector"),
    "plain": ("transpose", "scalar", "transpose", "scalar"),
}

_gemm = partial(gemm, COPIES, "f32")


THIN_SPLIT: LazyDict[str, tuple[SimtSpec, ...]] = LazyDict(
    {
        "NN": lambda: (
            _gemm("NN", (2, 32, 32), (1, 2), (2, 16), (1, 1), 4, "kvector", slices=8),
            _gemm("NN", (8, 16, 32), (2, 2), (4, 8), (1, 1), 4, "kvector", slices=8),
        ),
        "NT": lambda: (
            _gemm("NT", (2, 16, 64), (1, 1), (2, 16), (1, 1), 5, "kvector", slices=4),
            _gemm("NT", (2, 32, 32), (1, 2), (2, 16), (1, 1), 4, "kvector", slices=8),
            _gemm("NT", (4, 16, 32), (1, 4), (4, 4), (1, 1), 4, "kvector", slices=8),
            _gemm("NT", (8, 16, 32), (2, 2), (4, 8), (1, 1), 3, "kvector", slices=8),
            _gemm("NT", (16, 16, 32), (4, 2), (4, 8), (1, 1), 3, "kvector", slices=8),
        ),
        "TN": lambda: (
            *map(_m_contiguous, THIN_SPLIT["NN"]),
            _m_contiguous(_gemm("NN", (8, 32, 16), (4, 2), (2, 16), (1, 1), 4, "floats", slices=8)),
        ),
    }
)

THIN: LazyDict[str, tuple[SimtSpec, ...]] = LazyDict(
    {
        "NN": lambda: (
            _gemm("NN", (8, 64, 64), (4, 2), (2, 16), (1, 2), 3, "floats"),
            _gemm("NN", (8, 16, 64), (2, 2), (4, 8), (1, 1), 6, "kvector", ctas=3),
        ),
        "NT": lambda: (
            _gemm("NT", (2, 32, 128), (1, 1), (2, 16), (1, 2), 5, "kvector"),
            _gemm("NT", (4, 16, 128), (1, 1), (4, 8), (1, 2), 6, "kvector"),
            _gemm("NT", (2, 64, 64), (1, 2), (2, 16), (1, 2), 5, "kvector"),
            _gemm("NT", (4, 64, 64), (2, 2), (2, 16), (1, 2), 5, "kvector"),
            _gemm("NT", (16, 128, 64), (4, 4), (4, 8), (1, 4), 3, "kvector"),
            _gemm("NT", (32, 64, 32), (4, 4), (8, 4), (1, 4), 3, "kvector", ctas=4),
            _gemm("NT", (16, 16, 64), (2, 2), (4, 8), (2, 1), 5, "kvector", ctas=3),
            _gemm("NT", (4, 32, 64), (2, 1), (2, 16), (1, 2), 5, "plain"),
            _gemm("NT", (8, 32, 64), (2, 2), (4, 8), (1, 2), 5, "plain", ctas=2),
        ),
        "TN": lambda: (_m_contiguous(THIN["NN"][0]),),
    }
)


def _m_contiguous(spec: SimtSpec) -> SimtSpec:
    """Returns ``spec`` for an m-contiguous A with few rows, which is copied float by float."""
    return replace(spec, layout="T" + spec.layout[1], copy_a="scalar")


# Larger tiles. A single slice takes all chunks and keeps running totals in shared memory.
MEDIUM_SPLIT: LazyDict[str, tuple[SimtSpec, ...]] = LazyDict(
    {
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
            _gemm("NN", (64, 128, 16), (8, 8), (4, 8), (2, 2), 3, "floats", slices=1, ctas=3),
        ),
        "NT": lambda: (
            _gemm("NT", (128, 128, 8), (8, 16), (4, 8), (4, 1), 4, "floats", slices=1, ctas=2),
            _gemm("NT", (64, 128, 16), (8, 8), (4, 8), (2, 2), 2, "wide", slices=1, ctas=3),
            _gemm("NT", (128, 64, 16), (8, 8), (4, 8), (4, 1), 2, "wide", slices=1, ctas=3),
        ),
        "TN": lambda: (
            _gemm("TN", (128, 128, 8), (8, 16), (4, 8), (4, 1), 4, "wide", slices=1, ctas=2),
            _gemm("TN", (64, 128, 16), (8, 8), (4, 8), (2, 2), 2, "wide", slices=1, ctas=3),
            _gemm("TN", (64, 64, 32), (8, 4), (4, 8), (2, 2), 2, "wide", slices=1, ctas=4),
        ),
    }
)

LARGE = LazyDict(
    {
        "NN": lambda: _gemm("NN", (128, 128, 16), (8, 8), (4, 8), (4, 2), 3, "wide", ctas=2),
        "NT": lambda: _gemm(
            "NT", (128, 128, 16), (8, 8), (4, 8), (4, 2), 3, "wide", ctas=2, order="columns"
        ),
        "TN": lambda: _gemm("TN", (128, 128, 32), (8, 8), (4, 8), (4, 2), 3, "wide", ctas=2),
    }
)


def _unsplit(layout: str) -> tuple[SimtSpec, ...]:
    """Returns the kernels for reductions of one chunk, largest tiles first."""
    copies = "wide" if layout == "TN" else "floats"
    if layout == "NT":
        middle = _gemm(layout, (64, 64, 16), (8, 4), (4, 8), (2, 2), 4, "wide", ctas=4)
    else:
        middle = _gemm(layout, (64, 64, 32), (8, 4), (4, 8), (2, 2), 2, copies, ctas=4)
    return (
        LARGE[layout],
        *((_plain_large(layout), _few_columns(layout)) if layout == "NT" else ()),
        middle,
        _gemm(layout, (32, 64, 16), (4, 4), (4, 8), (2, 2), 5, copies, ctas=4),
        _gemm(layout, (16, 32, 32), (2, 2), (4, 8), (2, 2), 4, copies, ctas=4),
    )


def _few_columns(layout: str) -> SimtSpec:
    return _gemm(layout, (32, 32, 32), (4, 2), (8, 4), (1, 4), 4, "kvector", ctas=4)


def _flat(layout: str) -> tuple[SimtSpec, ...]:
    """Returns the kernel for weight gradients of few rows, if ``layout`` is "TN"."""
    if layout != "TN":
        return ()
    return (_gemm(layout, (64, 128, 16), (8, 8), (4, 8), (2, 2), 2, "wide", ctas=4),)


def _plain_large(layout: str) -> SimtSpec:
    return _gemm(layout, (128, 128, 8), (8, 8), (4, 8), (4, 2), 4, "plain", ctas=2)


def _filler(layout: str) -> SimtSpec:
    return _gemm(
        layout, (64, 64, 16), (8, 4), (4, 8), (2, 2), 3, "plain", slices=1, persistent=True
    )


def _plain(layout: str) -> tuple[SimtSpec, ...]:
    """Returns kernels whose operands are copied float by float.

    Small tiles of layout NT copy by floats anyway, so NT has none here.
    """
    if layout == "NT":
        return ()
    small = _gemm(layout, (16, 32, 32), (2, 2), (4, 8), (2, 2), 4, "plain", ctas=4)
    return (_plain_large(layout), small)


def _partial(layout: str) -> tuple[SimtSpec, ...]:
    """Returns split-K kernels, which write partial sums; the last supports any alignment."""
    part = partial(_gemm, layout, split="workspace")
    small = partial(part, (32, 64, 16), (4, 4), (4, 8), (2, 2))
    any_alignment = small(4, "plain", ctas=4)
    if layout == "TN":
        large = part((64, 64, 32), (8, 4), (4, 8), (2, 2), 3, "wide", ctas=2)
        return (large, small(5, "wide", ctas=4), any_alignment)
    large = part((64, 64, 32), (8, 4), (4, 8), (2, 2), 2, "floats", ctas=2)
    wide = part((64, 128, 16), (8, 8), (4, 8), (2, 2), 3, "wide", ctas=3)
    if layout == "NT":
        return (large, wide, any_alignment)
    return (large, wide, small(5, "floats", ctas=4), any_alignment)


def _narrow(layout: str) -> tuple[SimtSpec, ...]:
    """Returns split-K kernels for many rows and few columns; they copy B, which is small, float by
    float.
    """
    part = partial(_gemm, layout, split="workspace")
    return tuple(
        replace(spec, copy_b="transpose" if layout[1] == "T" else "scalar")
        for spec in (
            part((128, 32, 32), (8, 4), (4, 8), (4, 1), 3, "floats", ctas=3),
            part((128, 64, 16), (8, 8), (4, 8), (4, 1), 3, "floats", ctas=3),
        )
    )


def _few_rows_partial(layout: str) -> tuple[SimtSpec, ...]:
    """Returns split-K kernels for few rows."""
    part = partial(_gemm, layout, split="workspace")
    if layout != "NT":
        low = partial(part, (8, 64, 32), (4, 2), (2, 16), (1, 2), 4)
        return (low("floats"), low("plain"))
    return (  # rows of both operands are contiguous along k, and stay so in shared memory
        part((1, 64, 64), (1, 1), (1, 32), (1, 2), 3, "kvector", ctas=4),
        part((8, 64, 64), (4, 2), (2, 16), (1, 2), 3, "kvector", ctas=4),
        part((16, 64, 64), (4, 4), (4, 8), (1, 2), 3, "kvector", ctas=3),
        part((32, 64, 32), (4, 4), (8, 4), (1, 4), 3, "kvector", ctas=4),
    )


def _split_k(layout: str) -> tuple[Route, ...]:
    """Returns split-K routes, for few outputs of a long reduction."""
    few = _few_rows_partial(layout)
    # CTAs of one warp, many on an SM: with few columns, more loads are in flight.
    least = _gemm(
        layout, (8, 16, 64), (2, 2), (4, 8), (1, 1), 4, "plain", split="workspace", ctas=6
    )
    large, *others = _partial(layout)
    return (
        *routes((*few, least, large, *others), "split-K: a CTA for each tile and chunk", REDUCE),
        *routes(_narrow(layout), "few columns: split-K, a CTA for each tile and chunk", REDUCE),
        *_copied_first((large, others[0]), REDUCE),
    )


def _copied_first(kernels: Iterable[SimtSpec], *then: ReduceSpec) -> Iterator[Route]:
    """Yields a route for each of ``kernels`` of layout TN: it copies A, whose rows are off 16 bytes
    if the number of tokens is odd, runs the kernel on the copy, and then ``then``.
    """
    for kernel in kernels:
        if kernel.layout == "TN":
            yield from realign.routes(kernel, *then, operands=("a",))


def _chunks(layout: str) -> tuple[Route, ...]:
    unsplit = _unsplit(layout)
    return (
        *_split_k(layout),
        *routes(THIN_SPLIT[layout], "few rows: slices of a CTA divide the chunks"),
        *routes(MEDIUM_SPLIT[layout], "more rows: a CTA computes chunks one after another"),
        *_copied_first(MEDIUM_SPLIT[layout][1:]),
        *routes(THIN[layout], "few rows, one chunk: the weight is read once"),
        *routes(_flat(layout), "one short chunk: stores take most of the time"),
        *routes(unsplit, "reductions of one chunk"),
        *_copied_first(unsplit[-2:-1]),
        *routes(_plain(layout), "operands not aligned to 16 bytes"),
        last(_filler(layout)),
    )


def _tt_routes() -> tuple[Route, ...]:
    """Returns the routes of layout TT, which only ``matmul`` of two transposed operands needs: a
    kernel for each regime.
    """
    low = _gemm("TT", (8, 16, 32), (2, 2), (4, 8), (1, 1), 3, "kvector", slices=8)
    split = _gemm("TT", (32, 32, 16), (8, 4), (4, 8), (1, 1), 4, "floats", slices=8)
    large = _gemm("TT", (128, 128, 16), (8, 8), (4, 8), (4, 2), 3, "wide", ctas=2)
    middle = _gemm("TT", (64, 64, 32), (8, 4), (4, 8), (2, 2), 2, "floats", ctas=4)
    small = _gemm("TT", (16, 32, 32), (2, 2), (4, 8), (2, 2), 4, "plain", ctas=4)
    return (
        *routes((replace(low, copy_a="scalar"), split), "slices of a CTA divide the chunks"),
        *routes((large, middle, small), "reductions of one chunk"),
        last(_filler("TT")),
    )


def _continued() -> tuple[Route, ...]:
    """Returns routes of weight gradients that start from an earlier call's result."""
    large = replace(LARGE["TN"], split="onto")
    small = _gemm(
        "TN",
        (64, 64, 16),
        (8, 4),
        (4, 8),
        (2, 2),
        2,
        "plain",
        split="onto",
        persistent=True,
        ctas=3,
    )
    return (*routes((large,), "one chain that continues an earlier result"), last(small))


ROUTES: LazyDict[Key, tuple[Route, ...]] = LazyDict(
    {
        **{
            (layout, DEFAULT_PLAN, "f32", "simt"): partial(_chunks, layout)
            for layout in ("NN", "NT", "TN")
        },
        ("TT", DEFAULT_PLAN, "f32", "simt"): _tt_routes,
        ("TN", "chain", "f32", "simt"): _continued,
    }
)
