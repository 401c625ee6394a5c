"""The kernels that read quantized weights as they are stored, by mma.sync and wgmma, of tc16.

How to read a line of mma.sync: a CTA tile BM x BN x BK, the warps along m and n that multiply,
those that help, and the stages that these copy ahead; of wgmma: the tile, consumer warpgroups,
stages, helpers and their teams. Regimes (docs/performance.md links to measurements):

- *few rows*: the weight streams past once. Where it has few columns, narrow tiles give more SMs
  one, and helping warps widen the weight; else the warps that multiply look it up themselves.
- *short reductions*: tiles of more rows, several CTAs an SM; of gradients, whose rows of A may
  begin anywhere, number by number, which saves a kernel that realigns them;
- *more rows*, on Hopper: the tile that still gives nearly every SM one, up to where dequantising
  the whole weight first takes less time than doing it again for every 256 rows;
- *few outputs* of a long reduction: the same kernels, with a CTA for each chunk.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ptxgen.numerics.contract import TC16
from ptxgen.spec import Route, Step
from ptxgen.spec.quantized_mma import QuantizedTensorSpec
from ptxgen.spec.quantized_packed import QuantizedGemmSpec
from ptxgen.spec.quantized_pairs import QuantizedPairsSpec
from ptxgen.spec.quantized_wgmma import QuantizedWgmmaSpec
from ptxgen.spec.simt import ReduceSpec
from ptxgen.tiles.regimes import routes as made


def few_rows(layout: str, dtype: str) -> tuple[QuantizedTensorSpec, ...]:
    """The kernels of few rows and few columns, whose weight helping warps widen."""

    def kernel(
        bm: int, bn: int, warps: int, helpers: int, stages: int, ahead: int = 7, **more: Any
    ) -> QuantizedTensorSpec:
        tile = bm, bn, 256
        return QuantizedTensorSpec(
            layout, *tile, 1, warps, helpers, stages, ahead, dtype=dtype, **more
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


def short(layout: str, dtype: str) -> tuple[QuantizedTensorSpec, ...]:
    """The kernels of short reductions."""

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
    """The kernels of few rows and more columns, looked up by the warps that multiply."""

    def kernel(
        bm: int, bn: int, warps: int, helpers: int, stages: int, bk: int = 256
    ) -> QuantizedPairsSpec:
        return QuantizedPairsSpec(
            *(layout, bm, bn, bk, warps, helpers, stages, 2),
            dtype=dtype,
            min_arch="sm_90",
        )

    if layout == "NT":
        return (
            kernel(8, 32, 2, 4, 10),
            kernel(8, 64, 4, 4, 8),
            kernel(8, 112, 7, 7, 6),
            kernel(16, 32, 2, 4, 8),
            kernel(16, 64, 4, 4, 6),
            kernel(32, 64, 4, 4, 5),
            kernel(32, 128, 8, 8, 4),
        )
    return kernel(8, 64, 4, 8, 7), kernel(8, 128, 4, 8, 9, 128), kernel(16, 128, 4, 8, 5)


def more_rows(layout: str, dtype: str) -> tuple[QuantizedWgmmaSpec, ...]:
    """The kernels of more rows, on Hopper."""

    def kernel(
        tile: tuple[int, int, int],
        consumers: int,
        stages: int,
        *,
        registers: int = 0,
        helpers: int = 8,
        teams: int | None = None,
        copied: int = 4,
    ) -> QuantizedWgmmaSpec:
        return QuantizedWgmmaSpec(
            *(layout, *tile, consumers, stages),
            registers=registers,
            helpers=helpers,
            copied=copied,
            teams=teams,
            dtype=dtype,
        )

    # Along n, a tile of 96 columns takes the room of 128.
    wide = (kernel((128, 96, 128), 2, 3, helpers=12, copied=3),) if layout == "NT" else ()
    return (
        kernel((64, 32, 128), 1, 6, teams=2),
        kernel((64, 64, 128), 1, 5),
        kernel((64, 128, 128), 1, 3),
        kernel((128, 64, 128), 2, 3),
        *wide,
        kernel((128, 128, 64), 2, 5),
        kernel((192, 128, 64), 3, 4, registers=112, teams=2, copied=2),
        kernel((256, 128, 64), 2, 3, registers=208, teams=2, copied=3),
    )


def in_turns(layout: str, dtype: str) -> Iterator[QuantizedWgmmaSpec]:
    """Yields the twins of these kernels whose CTAs take the chunks of a tile in turns.

    That of 96 columns would spill. Those of 192 and 256 rows have shared memory for a stage less
    beside the totals, which their teams of helpers cannot share evenly, or not fast.
    """
    for spec in more_rows(layout, dtype):
        if spec.bn != 96 and spec.bm <= 128:
            held = 16 if (spec.bm, spec.bn) == (128, 128) else None  # else registers run out
            yield replace(spec, split="serial", held=held)


PARTIAL = {
    "NT": ((8, 16), (64, 64), (128, 128), (256, 128)),
    "NN": ((64, 64), (128, 128), (256, 128)),
}
"""Of these kernels, those that also write partial sums of a split reduction: BM and BN."""


def partial(layout: str, dtype: str) -> tuple[QuantizedGemmSpec, ...]:
    """The kernels that write partial sums, for a reduce kernel to add."""
    few, more = few_rows(layout, dtype), more_rows(layout, dtype)
    return (
        *(replace(s, split="workspace") for s in few if (s.bm, s.bn) in PARTIAL[layout]),
        *(replace(s, split="workspace") for s in more if (s.bm, s.bn) in PARTIAL[layout]),
    )


def routes(layout: str, dtype: str = "bf16") -> tuple[Route, ...]:
    """Their routes."""
    reduce = Step(ReduceSpec(dtype=dtype, contract=TC16), {"b": "data"})  # neither operand is read
    return (
        *made(partial(layout, dtype), "few outputs: a CTA per tile and chunk", reduce),
        *made(few_rows(layout, dtype), "few rows: the weight streams once, as it is stored"),
        *made(short(layout, dtype), "short reductions: several tiles an SM"),
        *made(more_columns(layout, dtype), "few rows, more columns: looked up as it is multiplied"),
        *made(more_rows(layout, dtype), "more rows: the weight as it is stored, by wgmma"),
        *made(in_turns(layout, dtype), "more rows, in several chunks, by wgmma"),
    )
