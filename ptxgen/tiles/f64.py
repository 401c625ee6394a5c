"""The f64 kernels and their routes, contract fma64/1.

How to read a line: a CTA tile BM x BN x BK, the warps along m and n, the stages of the ring.

On sm_90 tensor cores multiply, elsewhere and for operands off 16 bytes the FMA units. Regimes, as
measured on an H200 (docs/decisions.md):

- *few rows* (M <= 16): the weight streams once; one tile in flight per SM is enough;
- *one chain*: the largest tile of which most SMs get two, and the largest of all where there are
  several rounds of it;
- *a split reduction* (few columns): many rows fill the GPU, so that a CTA takes all chunks; else
  the CTAs of a cluster have one each;
- *weight gradients of few outputs*: a CTA per tile and chunk, and a second kernel that adds.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from ptxgen.expr import TRUE, Expr, ceil_div
from ptxgen.numerics.contract import K, M, N
from ptxgen.spec import CHUNKS, LAYOUTS, SMS, Key, Route
from ptxgen.spec.f64 import F64ReduceSpec, F64Spec
from ptxgen.tiles.lazy import Lazy

SPLIT = CHUNKS > 1
UNSPLIT = ~SPLIT
CLUSTER = 4
"""CTAs of a cluster, as many as the rows plan has chunks."""


def _fills(spec: F64Spec, quarters: int, pieces: Expr | int = 1) -> Expr:
    """The tiles of ``spec``, times ``pieces``, are at least ``quarters`` / 4 of the SMs."""
    return ceil_div(M, spec.bm) * ceil_div(N, spec.bn) * pieces * 4 >= SMS * quarters


def _largest(specs: tuple[F64Spec, ...], where: Expr) -> tuple[Route, ...]:
    """Largest tile first; the last takes what is left."""
    *others, last = specs
    enough = "the largest tile of which most SMs get two"
    return (
        *(Route((spec,), where & (spec.bm // 2 < M) & _fills(spec, 5), enough) for spec in others),
        Route((last,), where, "few outputs: the smallest tile"),
    )


def _chain(layout: str) -> tuple[Route, ...]:
    """One chain, on tensor cores."""
    thin = F64Spec(layout, 16, 32, 32, 1, 2, 8, ctas_per_sm=2)
    large = F64Spec(layout, 128, 128, 16, 2, 4, 5, depth=4)
    tiles = (
        F64Spec(layout, 64, 64, 16, 2, 2, 4, ctas_per_sm=2 if layout == "TT" else 3),  # 3 spill
        F64Spec(layout, 32, 64, 32, 2, 2, 4, ctas_per_sm=2),
        F64Spec(layout, 32, 32, 32, 2, 2, 6, ctas_per_sm=2),
    )
    return (
        Route((thin,), UNSPLIT & (M <= 16), "M <= 16: the weight streams once"),
        Route((large,), UNSPLIT & _fills(large, 20) & (K >= 1024), "large outputs"),
        *_largest(tiles, UNSPLIT),
    )


def _side_by_side(layout: str) -> tuple[Route, ...]:
    """A reduction of at most four chunks, on tensor cores."""

    def kernel(bm: int, bn: int, bk: int, warps: tuple[int, int], stages: int, c: int) -> F64Spec:
        return F64Spec(
            layout, bm, bn, bk, *warps, stages, split="cluster", cluster=CLUSTER, ctas_per_sm=c
        )

    thin = kernel(16, 32, 32, (1, 2), 5, 3)
    wide = kernel(32, 64, 16, (1, 4), 6, 3)
    small = kernel(32, 32, 32, (2, 2), 6, 2)
    serial = F64Spec(layout, 64, 64, 16, 2, 2, 4, split="serial", ctas_per_sm=2)
    return (
        Route((thin,), SPLIT & (M <= 16), "M <= 16: chunks side by side in a cluster"),
        Route(
            (serial,),
            SPLIT & _fills(serial, 6) & (~_fills(serial, 9) | _fills(serial, 20)),
            "one round of tiles, or many: chunks one after another",
        ),
        Route((wide,), SPLIT & _fills(wide, 3, CLUSTER), "chunks side by side in a cluster"),
        Route((small,), SPLIT, "few outputs: the smallest tile"),
    )


def _unaligned(layout: str, split: bool) -> tuple[Route, ...]:
    """Operands off 16 bytes, on tensor cores; a CTA takes all chunks unless rows are few.

    ``split``: whether split reductions come here.
    """

    def kernel(tile: int, bk: int) -> F64Spec:
        return F64Spec(
            layout, tile, tile, bk, 2, 2, 4, align_a=8, align_b=8, split="serial", ctas_per_sm=2
        )

    wide, small = kernel(64, 16), kernel(32, 32)
    thin: tuple[Route, ...] = ()
    if layout[0] == "T":  # the rows of A are M elements long, which may be one
        chain = F64Spec(layout, 16, 32, 32, 1, 2, 8, align_a=8, ctas_per_sm=2)
        thin = (Route((chain,), UNSPLIT & (M <= 16), "odd M <= 16: the weight streams once"),)
        if split:
            chunks = replace(chain, stages=5, split="cluster", cluster=CLUSTER, ctas_per_sm=3)
            thin += (Route((chunks,), M <= 16, "odd M <= 16: chunks side by side in a cluster"),)
    return (
        *thin,
        Route((wide,), _fills(wide, 6), "operands off 16 bytes: many tiles"),
        Route((small,), TRUE, "operands off 16 bytes"),
    )


def _portable(layout: str) -> tuple[Route, ...]:
    """The FMA units, for any GPU; the last takes any size and alignment."""
    large = F64Spec(layout, 128, 64, 16, 2, 2, 3, unit="fma", depth=1, ahead=0)
    filler = F64Spec(
        layout,
        64,
        32,
        16,
        2,
        2,
        4,
        unit="fma",
        align_a=8,
        align_b=8,
        split="serial",
        persistent=True,
        depth=1,
        ctas_per_sm=3,
    )
    return (
        Route((large,), UNSPLIT & _fills(large, 4), "FMA units: a large tile for every SM"),
        Route((filler,), TRUE, "everything else: any size and alignment"),
    )


def _tile(route: Route) -> tuple[int, int]:
    kernel = route.kernels[0]
    assert isinstance(kernel, F64Spec)
    return kernel.bm, kernel.bn


def _rows(layout: str) -> tuple[Route, ...]:
    tensor = (*_side_by_side(layout), *_chain(layout), *_unaligned(layout, split=True))
    if layout == "TT":  # nobody stores both like this; two sizes serve
        tensor = tuple(r for r in tensor if _tile(r) in ((64, 64), (32, 32)))
    return (*tensor, *_portable(layout))


def _batch() -> tuple[Route, ...]:
    """Weight gradients: A and B are batches, row by row; the reduction runs over the batch."""
    reduce = F64ReduceSpec()

    def kernel(
        bm: int, bn: int, bk: int, stages: int, unit: str = "mma", align: int = 16
    ) -> F64Spec:
        return F64Spec(
            "TN",
            bm,
            bn,
            bk,
            2,
            2,
            stages,
            unit=unit,
            align_a=align,
            align_b=align,
            split="workspace",
            depth=8 if unit == "mma" else 1,
            ctas_per_sm=2,
        )

    wide, small = kernel(64, 64, 16, 4), kernel(32, 32, 32, 6)
    fma = kernel(32, 32, 32, 4, "fma", align=8)
    return (
        Route((wide, reduce), SPLIT & _fills(wide, 6, CHUNKS), "a CTA per tile and chunk"),
        Route((small, reduce), SPLIT, "long batch, few outputs"),
        Route((fma, reduce), SPLIT, "long batch, on FMA units: any alignment"),
        *_chain("TN"),
        *_unaligned("TN", split=False),
        *_portable("TN"),
    )


ROUTES: Lazy[Key, tuple[Route, ...]] = Lazy(
    {
        **{(layout, "rows", "f64", "simt"): partial(_rows, layout) for layout in LAYOUTS},
        ("TN", "batch", "f64", "simt"): _batch,
    }
)
