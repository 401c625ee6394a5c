"""Fused kernels for quantized weights, by mma.sync and wgmma, contract tc16.

A line of mma.sync gives a CTA tile BM x BN x BK, the multiplying warps along m and n, the helper
warps, and the stages that these copy ahead; a line of wgmma gives the tile, consumer warpgroups,
stages, producers and their teams. docs/notes/2026-11-29-all-areas.md links to measurements.
Regimes:

- *few rows*: the weight is read once. With few columns, narrow tiles occupy more SMs, and helper
  warps widen the weight; else the warps that multiply decode codes themselves, or look them up. On
  Hopper, slices of a CTA's warps compute the chunks of a reduction side by side;
- *short reductions*: tiles of more rows, several CTAs per SM. Gradients, whose rows of A may be
  unaligned, copy A element by element, which saves a realigning kernel;
- *some rows*, on Hopper: wgmma, whose operand in registers is the decoded weight, with a CTA for
  each chunk, so that tiles of 192 columns suffice for one wave of CTAs;
- *more rows*, on Hopper: the largest tile that still gives nearly every SM one, up to the size
  where dequantizing the whole weight once takes less time than decoding it for every 256 rows;
- *few outputs* of a long reduction: the same kernels, with a CTA for each chunk.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ptxgen.numerics.contract import TC16
from ptxgen.spec import Route, Step
from ptxgen.spec.quantized_held import QuantizedHeldSpec
from ptxgen.spec.quantized_mma import QuantizedTensorSpec
from ptxgen.spec.quantized_packed import QuantizedGemmSpec
from ptxgen.spec.quantized_pairs import QuantizedPairsSpec
from ptxgen.spec.quantized_skinny import QuantizedSkinnySpec
from ptxgen.spec.quantized_wgmma import QuantizedWgmmaSpec
from ptxgen.spec.simt import ReduceSpec
from ptxgen.tiles.regimes import routes as regime_routes


def few_rows(layout: str, dtype: str) -> tuple[QuantizedTensorSpec, ...]:
    """Returns the kernels for few rows of A and few columns, in which helper warps widen the
    weight.
    """

    def kernel(
        bm: int,
        bn: int,
        warps: int,
        producer_warps: int,
        stages: int,
        prefetch: int = 7,
        **more: Any,
    ) -> QuantizedTensorSpec:
        tile = bm, bn, 256
        return QuantizedTensorSpec(
            layout, *tile, 1, warps, producer_warps, stages, prefetch, dtype=dtype, **more
        )

    if layout == "NT":
        return kernel(8, 16, 1, 4, 6), kernel(16, 16, 1, 4, 5)
    return (
        kernel(8, 32, 2, 8, 5),
        kernel(8, 32, 2, 8, 4, teams=2),  # of long reductions
        kernel(16, 32, 2, 8, 5),
        kernel(32, 32, 2, 8, 4, 3),
        kernel(16, 32, 2, 8, 5, copy_a="plain"),
        kernel(8, 32, 2, 8, 4, teams=2, copy_a="plain"),  # of long reductions
    )


def skinny(dtype: str) -> Iterator[QuantizedSkinnySpec]:
    """Yields the kernels for few rows whose warps decode in registers, by the number of chunks that
    a CTA computes at a time.
    """
    for bm, bn, bk, slices, stages, sums, ctas in (
        (8, 64, 256, 1, 3, 1, 2),
        (8, 64, 128, 1, 4, 1, 2),
        (8, 64, 256, 2, 3, 2, 1),
        (8, 32, 256, 3, 3, 3, 1),
        (8, 32, 128, 3, 3, 3, 1),
        (8, 32, 256, 4, 3, 8, 1),
        (8, 32, 128, 4, 3, 8, 1),
        (8, 32, 256, 5, 3, 10, 1),
        (8, 16, 256, 8, 3, 8, 1),
        (16, 64, 256, 1, 3, 1, 2),
        (16, 64, 128, 1, 4, 1, 2),
        (16, 64, 256, 2, 3, 2, 1),
        (16, 64, 256, 3, 3, 3, 1),
        (16, 64, 128, 3, 3, 3, 1),
        (16, 32, 256, 4, 3, 8, 1),
        (16, 32, 128, 5, 3, 10, 1),
    ):
        yield QuantizedSkinnySpec(
            *("NT", bm, bn, bk, bn // 16, slices, stages, sums),
            ctas_per_sm=ctas,
            dtype=dtype,
            min_arch="sm_90",
        )


HELD = {
    "none": (
        (32, 128, 128, 6, 1),
        (64, 64, 128, 4, 2),
        (64, 192, 128, 6, 1),
        (128, 128, 128, 4, 1),
        (192, 192, 64, 6, 1),
        (240, 192, 64, 5, 1),
    ),
    "workspace": (
        (32, 128, 128, 6, 1),
        (32, 192, 128, 6, 1),
        (64, 64, 128, 4, 2),
        (64, 192, 128, 6, 1),
        (128, 128, 128, 4, 1),
        (128, 192, 128, 4, 1),
        (192, 192, 64, 6, 1),
        (240, 192, 64, 5, 1),
        (256, 128, 64, 5, 1),
    ),
}
"""Tiles (BM, BN, BK), stages and CTAs an SM of the kernels whose decoded weight is an operand in
registers, without a split and with split-K. With 240 rows and 192 columns a thread has 120 sums;
with more, ptxas issues wgmma one by one."""


def held(layout: str, dtype: str, split: str) -> Iterator[QuantizedHeldSpec]:
    """Yields the wgmma kernels whose decoded weight is an operand in registers."""
    for bm, bn, bk, stages, ctas_per_sm in HELD[split] if layout == "NT" else ():
        yield QuantizedHeldSpec(layout, bm, bn, bk, stages, split, ctas_per_sm, dtype=dtype)


def short(layout: str, dtype: str) -> tuple[QuantizedTensorSpec, ...]:
    """Returns the mma.sync kernels for short reductions."""

    def kernel(bm: int, ctas: int) -> QuantizedTensorSpec:
        copy_a = "plain" if layout == "NN" else None
        return QuantizedTensorSpec(
            *(layout, bm, 64, 64, 2, 2, 4, 3, 1),
            ctas_per_sm=ctas,
            dtype=dtype,
            copy_a=copy_a,
        )

    return kernel(32, 3), kernel(64, 2)


def more_columns(layout: str, dtype: str) -> tuple[QuantizedPairsSpec, ...]:
    """Returns the kernels for few rows and many columns, whose multiplying warps look up the
    weight's codes themselves.
    """

    def kernel(
        bm: int, bn: int, warps: int, producer_warps: int, stages: int, bk: int = 256
    ) -> QuantizedPairsSpec:
        return QuantizedPairsSpec(
            *(layout, bm, bn, bk, warps, producer_warps, stages, 2),
            dtype=dtype,
            min_arch="sm_90",
        )

    if layout == "NT":
        return (
            kernel(8, 64, 4, 4, 8),
            kernel(8, 112, 7, 7, 6),
            kernel(16, 32, 2, 4, 8),
            kernel(16, 64, 4, 4, 6),
        )
    return kernel(8, 64, 4, 8, 7), kernel(8, 128, 4, 8, 9, 128)


def more_rows(layout: str, dtype: str) -> tuple[QuantizedWgmmaSpec, ...]:
    """Returns the wgmma kernels (Hopper) for more rows than :func:`few_rows` and :func:`short` are
    for, in tiles of 64 rows or more.
    """

    def kernel(
        tile: tuple[int, int, int],
        consumers: int,
        stages: int,
        *,
        registers: int = 0,
        producer_warps: int = 8,
        teams: int | None = None,
        index_stages: int = 4,
    ) -> QuantizedWgmmaSpec:
        return QuantizedWgmmaSpec(
            *(layout, *tile, consumers, stages),
            registers=registers,
            producer_warps=producer_warps,
            index_stages=index_stages,
            teams=teams,
            dtype=dtype,
        )

    # In layout NN a tile of 96 columns takes as much shared memory as one of 128.
    wide = (
        (kernel((128, 96, 128), 2, 3, producer_warps=12, index_stages=3),) if layout == "NT" else ()
    )
    return (
        kernel((64, 32, 128), 1, 6, teams=2),
        kernel((64, 64, 128), 1, 5),
        kernel((64, 128, 128), 1, 3),
        kernel((128, 64, 128), 2, 3),
        *wide,
        kernel((128, 128, 64), 2, 5),
        kernel((192, 128, 64), 3, 4, registers=112, teams=2, index_stages=2),
        kernel((256, 128, 64), 2, 3, registers=208, teams=2, index_stages=3),
    )


def serial(layout: str, dtype: str) -> Iterator[QuantizedWgmmaSpec]:
    """Yields the kernels of :func:`more_rows` in a variant whose CTAs compute the chunks of a tile
    one after another, for gradients.

    Those with 192 and 256 rows are omitted: next to the totals their shared memory has a stage
    less, which teams of producers cannot share evenly, or only slowly.
    """
    for spec in more_rows(layout, dtype) if layout == "NN" else ():
        if spec.bm <= 128:
            held = 16 if (spec.bm, spec.bn) == (128, 128) else None  # else registers run out
            yield replace(spec, split="serial", spilled_sums=held)


PARTIAL = {
    "NT": ((8, 16), (64, 64), (256, 128)),
    "NN": ((64, 64), (128, 128), (256, 128)),
}
"""Tiles (BM, BN) of the kernels that also exist with split-K, by layout."""


def partial(layout: str, dtype: str) -> tuple[QuantizedGemmSpec, ...]:
    """Returns the split-K kernels, whose partial sums a reduce kernel adds."""
    few, more = few_rows(layout, dtype), more_rows(layout, dtype)
    return (
        *(replace(s, split="workspace") for s in few if (s.bm, s.bn) in PARTIAL[layout]),
        *(replace(s, split="workspace") for s in more if (s.bm, s.bn) in PARTIAL[layout]),
    )


def routes(layout: str, dtype: str = "bf16") -> tuple[Route, ...]:
    """Returns the routes whose kernels read the weight as it is stored."""
    reduce = Step(ReduceSpec(dtype=dtype, contract=TC16), {"b": "data"})  # neither operand is read
    return (
        *regime_routes(
            partial(layout, dtype), "few outputs: split-K, a CTA for each tile and chunk", reduce
        ),
        *regime_routes(
            few_rows(layout, dtype), "few rows: helper warps decode the weight, which is read once"
        ),
        *regime_routes(
            skinny(dtype) if layout == "NT" else (), "few rows: warps decode in registers"
        ),
        *regime_routes(
            held(layout, dtype, "none"), "some rows, one chunk: by wgmma, decoded in registers"
        ),
        *regime_routes(
            held(layout, dtype, "workspace"),
            "some rows, several chunks: split-K by wgmma, decoded in registers",
            reduce,
        ),
        *regime_routes(short(layout, dtype), "short reductions: several CTAs an SM"),
        *regime_routes(
            more_columns(layout, dtype), "few rows, more columns: multiplying warps look up codes"
        ),
        *regime_routes(
            more_rows(layout, dtype), "more rows, one chunk: by wgmma, the weight as it is stored"
        ),
        *regime_routes(serial(layout, dtype), "more rows, several chunks: by wgmma"),
    )
