"""The mma family: kernels of bf16 and f16 on the tensor cores of sm_80 and later, contract tc16.

A line gives a CTA tile BM x BN x BK, the warps along m and n, the stages of the ring, and
``producer_warps``, warps that only copy.

Three regimes (docs/notes/2026-11-28-gemm-16-bit.md has the measurements):

- *few rows* (M <= 64): the weight is read once, which decides the time. Its columns are the
  instruction's 16 rows (``swap_operands``); some warps only copy, so that warps that multiply never
  wait for an address; fragments are loaded well ahead; the weight is loaded with L2's evict-first
  policy. The width of a tile follows from N, so that nearly every SM has one, and from the length
  of the pieces of the weight's rows that it reads.
- *the rest*: the largest tile that still gives nearly every SM one.
- *unaligned*: operands are copied by words or single elements.

For each kernel with more than 99 KB of shared memory, its regime has one with less.
"""

from __future__ import annotations

from dataclasses import replace

from ptxgen.spec.mma import MmaSpec


def _few_rows(layout: str, dtype: str) -> tuple[MmaSpec, ...]:
    def kernel(
        bm: int,
        bn: int,
        bk: int,
        warps: tuple[int, int],
        stages: int,
        producer_warps: int,
        prefetch: int = 7,
    ) -> MmaSpec:
        return MmaSpec(
            layout,
            bm,
            bn,
            bk,
            *warps,
            stages,
            swap_operands=True,
            split="serial",
            raster=0,
            producer_warps=producer_warps,
            prefetch=prefetch,
            streamed="b",
            dtype=dtype,
        )

    if layout == "TT":
        return (kernel(32, 32, 128, (2, 2), 6, 4),)
    narrow = (
        (kernel(8, 16, 512, (1, 1), 4, 2),)  # a piece of the weight's rows is BK * 2 bytes long
        if layout == "NT"
        else (kernel(8, 64, 128, (1, 4), 9, 2, prefetch=3), kernel(8, 32, 128, (1, 2), 9, 4))
    )
    return (
        *narrow,
        kernel(16, 32, 128, (1, 2), 8, 4),
        *((kernel(16, 64, 128, (1, 4), 4, 4),) if layout[0] == "N" else ()),
        kernel(32, 32, 128, (2, 2), 6, 4),
        kernel(32, 64, 128, (1, 4), 6, 4),
        MmaSpec(
            layout,
            64,
            128,
            64,
            2,
            4,
            6,
            split="serial",
            raster=0,
            producer_warps=4,
            streamed="b",
            dtype=dtype,
        ),
    )


def _tiles(layout: str, dtype: str) -> tuple[MmaSpec, ...]:
    large = MmaSpec(layout, 128, 128, 64, 2, 2, 3, ctas_per_sm=2, dtype=dtype)
    if layout == "TT":
        return (large,)
    small = MmaSpec(layout, 64, 64, 64, 2, 2, 4, split="serial", ctas_per_sm=3, dtype=dtype)
    several = MmaSpec(layout, 128, 128, 64, 2, 4, 3, split="serial", dtype=dtype)
    return (small, large, several)


def _by_words(layout: str, dtype: str) -> tuple[MmaSpec, ...]:
    """Returns kernels that copy words, for rows along k aligned to four bytes, so that no
    realigning copy is needed.
    """

    def kernel(
        bm: int, bn: int, warps: tuple[int, int], stages: int, producer_warps: int, ctas: int
    ) -> MmaSpec:
        return MmaSpec(
            layout,
            bm,
            bn,
            64,
            *warps,
            stages,
            "words",
            "words",
            split="serial",
            ctas_per_sm=ctas,
            producer_warps=producer_warps,
            dtype=dtype,
        )

    if layout[0] == "T":
        return ()
    small = (kernel(32, 32, (2, 2), 8, 4, 3),) if layout == "NT" else ()
    return (*small, kernel(128, 64, (4, 2), 6, 8, 1))


def _unaligned(layout: str, dtype: str) -> tuple[MmaSpec, ...]:
    def few_rows(copy: str) -> MmaSpec:
        return MmaSpec(
            layout,
            16,
            32,
            128,
            1,
            2,
            5,
            copy,
            copy,
            swap_operands=True,
            split="serial",
            raster=0,
            producer_warps=4,
            prefetch=7,
            dtype=dtype,
        )

    tile = MmaSpec(
        layout,
        64,
        64,
        32,
        2,
        2,
        4,
        "plain",
        "plain",
        split="serial",
        persistent=True,
        ctas_per_sm=3,
        dtype=dtype,
    )
    thin = _by_words(layout, dtype)
    if layout[0] == "T":  # the rows of A are M elements long, which may be 2, 4 or 6
        thin = (
            MmaSpec(
                layout,
                8,
                32,
                256,
                1,
                2,
                4,
                "words",
                swap_operands=True,
                split="serial",
                raster=0,
                producer_warps=2,
                prefetch=7,
                streamed="b",
                dtype=dtype,
            ),
        )
    if layout == "TT":
        return (*thin, few_rows("plain"), tile)
    return (*thin, few_rows("words"), few_rows("plain"), tile)


def specs(layout: str, dtype: str) -> tuple[MmaSpec, ...]:
    """Returns the kernels without split-K, for one chunk or several; the last supports every
    problem.
    """
    return (*_few_rows(layout, dtype), *_tiles(layout, dtype), *_unaligned(layout, dtype))


def few_rows_partial(layout: str, dtype: str) -> MmaSpec:
    """Returns the split-K kernel for few rows, which writes partial sums."""
    few = next(s for s in _few_rows(layout, dtype) if (s.bm, s.bn) == (16, 32))
    return replace(few, split="workspace")


def partial(layout: str, dtype: str) -> tuple[MmaSpec, ...]:
    """Returns the split-K kernels, which write partial sums; the last supports any alignment."""

    def kernel(
        bm: int,
        bn: int,
        bk: int,
        stages: int,
        ctas: int,
        *,
        copy: str = "vector",
        producer_warps: int = 0,
        streamed: str = "",
    ) -> MmaSpec:
        return MmaSpec(
            layout,
            bm,
            bn,
            bk,
            2,
            2,
            stages,
            copy,
            copy,
            split="workspace",
            ctas_per_sm=ctas,
            producer_warps=producer_warps,
            streamed=streamed,
            dtype=dtype,
        )

    return (
        kernel(64, 64, 128, 3, 2, producer_warps=4, streamed="ab"),
        kernel(128, 128, 64, 3, 2),
        *((kernel(64, 64, 64, 4, 2, copy="words", producer_warps=4),) if layout[0] == "N" else ()),
        kernel(64, 32, 64, 4, 4, copy="words"),  # few columns
        kernel(64, 64, 32, 4, 4, copy="plain"),
    )


def continued(dtype: str) -> tuple[MmaSpec, ...]:
    """Returns the kernels whose accumulators start from the old values of C; the last supports any
    alignment.
    """
    kernels = (*_tiles("TN", dtype), *_unaligned("TN", dtype))
    large = next(s for s in kernels if (s.bm, s.bn) == (128, 128))
    return tuple(replace(spec, split="onto") for spec in (large, kernels[-1]))
