"""The f64 kernels and their routes, contract fma64.

A line gives a CTA tile BM x BN x BK, the warps along m and n, and the stages of the ring.

On sm_90 tensor cores multiply, elsewhere the FMA units. Predicted times choose the kernel of a
problem (:mod:`ptxgen.cost.tuning`). Regimes:

- *few rows* (M <= 16): the weight streams once; one tile in flight per SM is enough;
- *one chain*: the largest tile of which most SMs get two, and the largest of all where there are
  several waves of it;
- *a split reduction*: many outputs fill the GPU, so that a CTA computes all chunks; else the CTAs
  of a cluster compute one each;
- *weight gradients of few outputs*: a CTA per tile and chunk, and a second kernel that adds.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from ptxgen.lazy import LazyDict
from ptxgen.numerics.contract import DEFAULT_PLAN
from ptxgen.spec import LAYOUTS, Key, Route
from ptxgen.spec.f64 import F64ReduceSpec, F64Spec
from ptxgen.tiles.regimes import last, routes

CLUSTER = 4
"""CTAs of a cluster: as many as the plan has chunks."""


def _chain(layout: str) -> tuple[F64Spec, ...]:
    """Returns tensor-core kernels for reductions of one chunk."""
    return (
        F64Spec(layout, 16, 32, 32, 1, 2, 8, ctas_per_sm=2),
        F64Spec(layout, 128, 128, 16, 2, 4, 5, mma_k=4),
        F64Spec(layout, 64, 64, 16, 2, 2, 4, ctas_per_sm=2 if layout == "TT" else 3),  # 3 spill
        F64Spec(layout, 32, 64, 32, 2, 2, 4, ctas_per_sm=2),
        F64Spec(layout, 32, 32, 32, 2, 2, 6, ctas_per_sm=2),
    )


def _side_by_side(layout: str) -> tuple[F64Spec, ...]:
    """Returns tensor-core kernels for reductions of at most four chunks. In most, the CTAs of a
    cluster compute one chunk each; in one a CTA computes all.
    """

    def kernel(bm: int, bn: int, bk: int, warps: tuple[int, int], stages: int, c: int) -> F64Spec:
        return F64Spec(
            layout, bm, bn, bk, *warps, stages, split="cluster", cluster=CLUSTER, ctas_per_sm=c
        )

    return (
        kernel(16, 32, 32, (1, 2), 5, 3),
        F64Spec(layout, 64, 64, 16, 2, 2, 4, split="serial", ctas_per_sm=2),
        kernel(32, 64, 16, (1, 4), 6, 3),
        kernel(32, 32, 32, (2, 2), 6, 2),
    )


def _unaligned(layout: str) -> tuple[F64Spec, ...]:
    """Returns tensor-core kernels for operands not aligned to 16 bytes; a CTA computes all chunks,
    unless rows are few.
    """

    def kernel(tile: int, bk: int) -> F64Spec:
        return F64Spec(
            layout, tile, tile, bk, 2, 2, 4, align_a=8, align_b=8, split="serial", ctas_per_sm=2
        )

    thin: tuple[F64Spec, ...] = ()
    if layout[0] == "T":  # the rows of A are M elements long, which may be one
        chain = F64Spec(layout, 16, 32, 32, 1, 2, 8, align_a=8, ctas_per_sm=2)
        apart = replace(chain, stages=5, split="cluster", cluster=CLUSTER, ctas_per_sm=3)
        thin = (chain, apart)
    return (*thin, kernel(64, 16), kernel(32, 32))


def _portable(layout: str) -> tuple[Route, ...]:
    """Returns routes on FMA units, for any GPU; the last supports any size and alignment."""
    large = F64Spec(layout, 128, 64, 16, 2, 2, 3, unit="fma", mma_k=1, prefetch=0)
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
        mma_k=1,
        ctas_per_sm=3,
    )
    return (*routes((large,), "FMA units: reductions of one chunk"), last(filler))


def _chunks(layout: str) -> tuple[Route, ...]:
    parts = {
        "tensor cores: chunks in the CTAs of a cluster, or one after another": _side_by_side(
            layout
        ),
        "tensor cores: reductions of one chunk": _chain(layout),
        "tensor cores: operands not aligned to 16 bytes": _unaligned(layout),
    }
    if layout == "TT":  # a rare layout: two sizes are enough
        parts = {
            reason: tuple(s for s in specs if (s.bm, s.bn) in ((64, 64), (32, 32)))
            for reason, specs in parts.items()
        }
    tensor = (route for reason, specs in parts.items() for route in routes(specs, reason))
    return (*(_split_k() if layout == "TN" else ()), *tensor, *_portable(layout))


def _split_k() -> tuple[Route, ...]:
    """Returns split-K routes, for weight gradients: few outputs of a long reduction."""

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
            mma_k=8 if unit == "mma" else 1,
            ctas_per_sm=2,
        )

    parts = kernel(64, 64, 16, 4), kernel(32, 32, 32, 6), kernel(32, 32, 32, 4, "fma", align=8)
    return routes(
        parts, "a long reduction: split-K, a CTA for each tile and chunk", F64ReduceSpec()
    )


def _continued() -> tuple[Route, ...]:
    """Returns routes of weight gradients that start from an earlier call's result."""
    large = next(spec for spec in _chain("TN") if (spec.bm, spec.bn) == (128, 128))
    filler = F64Spec(
        "TN",
        *(64, 32, 16, 2, 2, 4),
        unit="fma",
        align_a=8,
        align_b=8,
        split="onto",
        persistent=True,
        mma_k=1,
        ctas_per_sm=3,
    )
    reason = "one chain that continues an earlier result, on tensor cores"
    return (*routes((replace(large, split="onto"),), reason), last(filler))


ROUTES: LazyDict[Key, tuple[Route, ...]] = LazyDict(
    {
        **{(layout, DEFAULT_PLAN, "f64", "simt"): partial(_chunks, layout) for layout in LAYOUTS},
        ("TN", "chain", "f64", "simt"): _continued,
    }
)
