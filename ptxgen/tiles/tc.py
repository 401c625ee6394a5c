"""The routes of the tc tier: kernels of the wgmma and mma families, contract tc16/1.

Which of them serves a problem is decided by predicted times (:mod:`ptxgen.tiles.tunings`); the
order here says nothing. Regimes:

- *few rows* (M <= 32): the weight streams once, through mma kernels with swapped operands;
- wgmma kernels, on Hopper, and mma kernels: the largest tile that still gives nearly every SM one;
- operands that no vector copy takes.
"""

from __future__ import annotations

from functools import partial

from ptxgen.numerics.contract import TC16
from ptxgen.spec import Key, Route
from ptxgen.spec.simt import ReduceSpec
from ptxgen.tiles import mma, wgmma
from ptxgen.tiles.lazy import Lazy
from ptxgen.tiles.regimes import last, routes


def _rows(layout: str, dtype: str) -> tuple[Route, ...]:
    """``mma.specs`` has the few rows first, then tiles from small to large, then the unaligned."""
    *kernels, filler = mma.specs(layout, dtype)
    vector = [s for s in kernels if s.copy_a == s.copy_b == "vector"]
    return (
        *routes((s for s in vector if s.stream), "few rows: the weight streams once"),
        *routes(wgmma.specs(layout, dtype), "many rows, by wgmma"),
        *routes((s for s in vector if not s.stream), "many rows, by mma"),
        *routes((s for s in kernels if s not in vector), "operands off 16 bytes"),
        last(filler),
    )


def _batch(dtype: str) -> tuple[Route, ...]:
    """Weight gradients: A and B are batches, row by row; the reduction runs over the batch."""
    reduce = ReduceSpec(dtype=dtype, contract=TC16)
    parts = (*wgmma.partial("TN", dtype), *mma.partial("TN", dtype))
    return (
        *routes(wgmma.clustered("TN", dtype), "two chunks: pairs of CTAs add them themselves"),
        *routes(parts, "a long batch: a CTA per tile and chunk", reduce),
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
