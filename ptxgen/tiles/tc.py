"""The routes of the tc tier: kernels of the wgmma and mma families, contract tc16/1.

These are the portable tables. A GPU that was tuned has its own order in ``tunings``; bits do not
hang on either. Regimes, in this order:

- *few rows* (M <= 32): the weight streams once, through mma kernels with swapped operands;
- on Hopper, wgmma kernels: the largest tile that still gives nearly every SM one;
- mma kernels in the same way, where there is no wgmma or the reduction is shorter than a stage;
- operands that no vector copy takes: as copies that it does, or word by word.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from ptxgen.expr import TRUE, Expr, ceil_div
from ptxgen.numerics.contract import TC16, K, M, N
from ptxgen.spec import CHUNKS, SMS, Key, Route
from ptxgen.spec.mma import MmaSpec
from ptxgen.spec.simt import ReduceSpec
from ptxgen.spec.wgmma import WgmmaSpec
from ptxgen.tiles import mma, realign, wgmma
from ptxgen.tiles.lazy import Lazy

Spec = MmaSpec | WgmmaSpec

STAGE = 64
"""The shortest reduction that fills a stage."""
SPLIT = CHUNKS > 1
MUCH = M * N * K >= 1 << 31
"""So much work that the launch of a copy is a small part of it."""
WIDE = N * K >= 1 << 24
"""So large a weight that it is, of few rows."""
REUSE = 512


def _fills(spec: Spec, quarters: int, pieces: Expr | int = 1) -> Expr:
    """The tiles of ``spec``, times ``pieces``, are at least ``quarters`` / 4 of the SMs."""
    return ceil_div(M, spec.bm) * ceil_div(N, spec.bn) * pieces * 4 >= SMS * quarters


def _few_rows(specs: Iterable[MmaSpec]) -> tuple[Route, ...]:
    """Wide tiles where they give half of the SMs one, then narrow ones; the lowest that fit."""

    def columns(spec: MmaSpec) -> Expr:
        tiles = ceil_div(N, spec.bn)
        if spec.bn == 32:
            return TRUE
        return tiles * 2 >= SMS if spec.bn > 32 else tiles <= SMS

    return tuple(
        Route((s,), (M <= s.bm) & columns(s), f"M <= {s.bm}: the weight streams once")
        for s in sorted(specs, key=lambda s: (s.bn < 64, s.bm, s.bn))
    )


def _largest(specs: Iterable[Spec], quarters: int, where: Expr) -> tuple[Route, ...]:
    """Largest tile first; the last takes what is left."""
    *others, last = specs
    return (
        *(
            Route(
                (spec,),
                where & _fills(spec, quarters),
                f"the largest tile that gives {quarters}/4 of the SMs one",
            )
            for spec in others
        ),
        Route((last,), where, "few outputs: the smallest tile"),
    )


def _wgmma(layout: str, dtype: str) -> tuple[Route, ...]:
    waves = {(128, 256, 1): 12, (192, 128, 1): 8, (192, 128, 2): 5}
    long = K >= STAGE
    specs = wgmma.specs(layout, dtype)
    large = [s for s in specs if (s.bm, s.bn, s.ctas) in waves]
    rest = [s for s in specs if s not in large]
    return (
        *(
            Route(
                (spec,),
                long & _fills(spec, waves[spec.bm, spec.bn, spec.ctas]),
                "large outputs",
            )
            for spec in large
        ),
        *_largest(rest, 3, long),
    )


def _rows(layout: str, dtype: str) -> tuple[Route, ...]:
    """``mma.specs`` has the few rows first, then tiles from small to large, then the unaligned."""
    kernels = mma.specs(layout, dtype)
    vector = [s for s in kernels if s.copy_a == s.copy_b == "vector"]
    unaligned = [s for s in kernels if s not in vector]
    few = [s for s in vector if s.stream]
    tiles = sorted((s for s in vector if not s.stream), key=lambda s: -s.bm * s.bn)
    smallest = next(s for s in few if s.bm == s.bn == 32)
    return (
        *_few_rows(few),
        *_wgmma(layout, dtype),
        *_largest((*tiles, smallest), 2, TRUE),
        *(_realigned(layout, dtype, few[-1], tiles[0]) if layout != "TT" else ()),
        *(
            Route((s,), (M <= s.bm) if s.swap else TRUE, "operands off 16 bytes")
            for s in unaligned[:-1]
        ),
        Route((unaligned[-1],), TRUE, "everything else: any size and alignment"),
    )


def _realigned(layout: str, dtype: str, low: MmaSpec, large: MmaSpec) -> Iterator[Route]:
    """Copies of operands off 16 bytes: of few rows that a wide weight is multiplied by, and of both
    where the product is large.
    """
    yield from realign.routes(low, where=(M <= low.bm) & WIDE, reuse=REUSE, operands=("a",))
    for tile, quarters in (((128, 256), 8), ((128, 128), 2)):
        kernel = next(s for s in wgmma.specs(layout, dtype) if (s.bm, s.bn) == tile)
        yield from realign.routes(
            kernel, where=(K >= STAGE) & MUCH & _fills(kernel, quarters), reuse=REUSE
        )
    yield from realign.routes(large, where=MUCH & _fills(large, 2), reuse=REUSE)


def _batch(dtype: str) -> tuple[Route, ...]:
    """Weight gradients: A and B are batches, row by row; the reduction runs over the batch."""
    reduce = ReduceSpec(dtype=dtype, contract=TC16)
    (pair,) = wgmma.clustered("TN", dtype)
    *parts, smallest = wgmma.partial("TN", dtype)
    *tiles, plain = mma.partial("TN", dtype)
    tiles = sorted(tiles, key=lambda s: -s.bm * s.bn)
    return (
        Route(
            (pair,),
            SPLIT & (K <= 1 << 14) & _fills(pair, 2),
            "two chunks: pairs of CTAs add them themselves",
        ),
        *(
            Route(
                (spec, reduce),
                SPLIT & (spec.bm <= M) & (spec.bn <= N) & _fills(spec, 3, CHUNKS),
                "long batch: a CTA per tile and chunk",
            )
            for spec in parts
        ),
        Route((smallest, reduce), SPLIT & (M > 32) & (N > 32), "long batch, few outputs"),
        *(
            Route(
                (spec, reduce),
                SPLIT & _fills(spec, 4, CHUNKS) if spec != tiles[-1] else SPLIT,
                "long batch: a CTA per tile and chunk",
            )
            for spec in tiles
        ),
        *(
            route
            for spec, where in ((parts[0], _fills(parts[0], 3, CHUNKS)), (tiles[0], TRUE))
            for route in realign.routes(spec, reduce, where=SPLIT & MUCH & where, reuse=REUSE)
        ),
        Route((plain, reduce), SPLIT, "unaligned, long batch"),
        *_rows("TN", dtype),
    )


ROUTES: Lazy[Key, tuple[Route, ...]] = Lazy(
    {
        **{
            (layout, "rows", "half", "tc"): partial(_rows, layout, "bf16")
            for layout in ("NN", "NT", "TN", "TT")
        },
        ("TN", "batch", "half", "tc"): partial(_batch, "bf16"),
    }
)
