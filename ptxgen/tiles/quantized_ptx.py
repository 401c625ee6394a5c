"""The routes of products with quantized weights whose kernels are written in PTX.

f32 routes (tier "simt") write the partial sums of the plan's chunks to scratch memory; a reduce
kernel adds them and applies the epilogue. Routes of ``accumulate="f64"`` accumulate in one chain,
on sm_90 with tensor cores; a second kernel applies bias and activation.
"""

from __future__ import annotations

from dataclasses import replace

from ptxgen.numerics.contract import FMA, Contract, N
from ptxgen.numerics.quantized import WIDE
from ptxgen.spec import Route, Step
from ptxgen.spec.quantized import LOOKED_UP
from ptxgen.spec.quantized_ptx import FinishSpec, QuantizedMmaSpec, QuantizedPtxSpec
from ptxgen.spec.simt import ReduceSpec
from ptxgen.tiles import regimes

Tile = tuple[int, int, int, int]
"""Tile sizes: rows of a CTA, rows and columns of a thread, warps."""


def _kernel(
    layout: str, tile: Tile, ahead: int = 1, lookup: str = "select", contract: Contract = FMA
) -> QuantizedPtxSpec:
    bm, tm, tn, warps = tile
    return QuantizedPtxSpec(
        layout, bm, tm, tn, warps, lookup=lookup, prefetch=ahead, contract=contract
    )


_PLAIN = {
    "gemm": QuantizedPtxSpec("NT"),
    "gemm_f64": _kernel("NT", (16, 8, 4, 4), contract=WIDE),
    "dgrad": _kernel("NN", (16, 8, 8, 4)),
    "dgrad_f64": _kernel("NN", (16, 8, 4, 4), contract=WIDE),
}
NAMED = {
    f"{row.name}_{what}": replace(kernel, format=row)
    for row in LOOKED_UP
    for what, kernel in _PLAIN.items()
}
"""GEMM kernels of quantized weights that the ``ptxgen`` command emits as PTX for any target, by
short name (format, pass and accumulators)."""

_FEW: dict[str, tuple[tuple[Tile, int], ...]] = {
    "NT": (((1, 1, 1, 1), 8), ((4, 4, 1, 2), 2), ((8, 8, 2, 2), 2)),
    "NN": (((1, 1, 4, 1), 8), ((4, 4, 4, 1), 4)),
}
"""Tiles for few rows, each with the number of steps by which codes are loaded ahead, by layout.
With more rows, dequantizing first is faster."""
_WIDE: tuple[tuple[Tile, int], ...] = (
    ((32, 4, 8, 4), 2),
    ((16, 2, 8, 2), 4),
    ((16, 2, 4, 2), 4),
    ((16, 2, 2, 2), 8),
)
"""Tensor-core tiles with f64 accumulators for rows of A that are aligned to 16 bytes, each with the
number of steps by which codes are loaded ahead."""
_ANY: dict[str, tuple[tuple[Tile, int, str], ...]] = {
    "NT": (((128, 8, 8, 4), 1, "select"), ((16, 2, 8, 2), 4, "shuffle")),
    "NN": (((128, 8, 8, 4), 1, "shuffle"), ((16, 2, 8, 2), 4, "shuffle")),
}
"""Tensor-core tiles for many outputs, and for any alignment, by layout: tile, steps by which codes
are loaded ahead, lookup method."""


def routes(layout: str) -> tuple[Route, ...]:
    """Returns the f32 routes for few rows, without dequantization."""
    reduce = Step(ReduceSpec(), {"b": "data"})  # neither operand is read
    few = (_kernel(layout, tile, ahead, "shuffle") for tile, ahead in _FEW[layout])
    return tuple(
        Route(
            (Step(kernel, {"c": "workspace"}, {"LDC": N}), reduce),
            reason="few rows: the weight is read as it is stored",
        )
        for kernel in few
    )


def wide_routes(layout: str) -> tuple[Route, ...]:
    """Returns the routes with f64 accumulators; the last supports every problem."""
    then = (FinishSpec(),) if layout == "NT" else ()
    tensor = (
        *(
            QuantizedMmaSpec(layout, bm, tm, tn, warps, lookup=lookup, prefetch=ahead)
            for (bm, tm, tn, warps), ahead, lookup in _ANY[layout]
        ),
        *(
            QuantizedMmaSpec(
                layout, bm, tm, tn, warps, lookup="shuffle", prefetch=ahead, align_a=16
            )
            for (bm, tm, tn, warps), ahead in _WIDE
        ),
    )
    aligned = _PLAIN["gemm_f64" if layout == "NT" else "dgrad_f64"]
    return (
        *regimes.routes(tensor, "sums in f64 on tensor cores", *then),
        *regimes.routes((aligned,), "sums in f64 on FMA units", *then),
        *regimes.routes((replace(aligned, align_a=4),), "everything else: any alignment", *then),
    )
