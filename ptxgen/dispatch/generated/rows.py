"""Dispatch of rows: rows by formula.

Generated from ptxgen.tiles.TABLES["rows"]; do not edit.
Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time

SOME_0 = frozenset(("sm_90", "sm_100", "sm_103", "sm_110", "sm_120", "sm_121"))


def candidates(
    arch: str, rows: int, cols: int, vector: int, held: int, sms: int, time: Time
) -> Iterator[Candidate]:
    """What can serve a problem, with predicted times."""
    # 0: short rows: a warp a row, or half of one
    if vector == 1 and cols <= 128 and held <= 16:
        choice = Choice(0, ("rows_softmax_bf16_held_16x8_a8e186",), (-(-rows // 16),), ())
        yield Candidate(0.0, choice)
        return
    # 1: short rows: a warp a row, or half of one
    if vector == 1 and cols <= 256 and held <= 16:
        choice = Choice(1, ("rows_softmax_bf16_held_32x8_6b49c3",), (-(-rows // 8),), ())
        yield Candidate(0.0, choice)
        return
    # 2: short rows: a warp a row, or half of one
    if vector == 1 and cols <= 512 and held <= 16:
        choice = Choice(2, ("rows_softmax_bf16_held_32x16_6b3e44",), (-(-rows // 8),), ())
        yield Candidate(0.0, choice)
        return
    # 3: short rows: a warp a row, or half of one
    if vector == 1 and cols <= 1024 and held <= 16:
        choice = Choice(3, ("rows_softmax_bf16_held_32x32_5f9c15",), (-(-rows // 4),), ())
        yield Candidate(0.0, choice)
        return
    # 4: a CTA a row, held in registers
    if vector == 1 and cols <= 2048 and held <= 8:
        yield Candidate(0.0, Choice(4, ("rows_softmax_bf16_held_64x32_71b5fe",), (rows,), ()))
        return
    # 5: a CTA a row, held in registers
    if vector == 1 and cols <= 4096 and held <= 8:
        yield Candidate(0.0, Choice(5, ("rows_softmax_bf16_held_128x32_9a1593",), (rows,), ()))
        return
    # 6: a CTA a row, held in registers
    if vector == 1 and cols <= 8192 and held <= 8:
        yield Candidate(0.0, Choice(6, ("rows_softmax_bf16_held_256x32_20136d",), (rows,), ()))
        return
    # 7: a CTA a row, held in registers
    if vector == 1 and cols <= 16384 and held <= 8:
        yield Candidate(0.0, Choice(7, ("rows_softmax_bf16_held_512x32_78689f",), (rows,), ()))
        return
    # 8: long rows: a cluster a row
    if arch in SOME_0 and vector == 1 and cols <= 32768 and rows * 2 <= 2147483647 and held <= 8:
        choice = Choice(8, ("rows_softmax_bf16_cluster_1024x32_19d099",), (rows * 2,), ())
        yield Candidate(0.0, choice)
        return
    # 9: long rows: a cluster a row
    if arch in SOME_0 and vector == 1 and cols <= 65536 and rows * 4 <= 2147483647 and held <= 8:
        choice = Choice(9, ("rows_softmax_bf16_cluster_2048x32_6cf721",), (rows * 4,), ())
        yield Candidate(0.0, choice)
        return
    # 10: long rows: a cluster a row
    if arch in SOME_0 and vector == 1 and cols <= 131072 and rows * 8 <= 2147483647 and held <= 8:
        choice = Choice(10, ("rows_softmax_bf16_cluster_4096x32_5d61b5",), (rows * 8,), ())
        yield Candidate(0.0, choice)
        return
    # 11: any length: a CTA a row, stage by stage
    if vector == 1:
        yield Candidate(0.0, Choice(11, ("rows_softmax_bf16_streamed_512x64_5b5cd2",), (rows,), ()))
        return
    # 12: rows off 16 bytes, held in registers
    if cols <= 1024 and held <= 8:
        choice = Choice(12, ("rows_softmax_bf16_held_32x32_any_16b735",), (-(-rows // 4),), ())
        yield Candidate(0.0, choice)
        return
    # 13: rows off 16 bytes, held in registers
    if cols <= 8192 and held <= 8:
        yield Candidate(0.0, Choice(13, ("rows_softmax_bf16_held_256x32_any_5ab692",), (rows,), ()))
        return
    # 14: everything else
    yield Candidate(0.0, Choice(14, ("rows_softmax_bf16_streamed_512x64_any_23a71b",), (rows,), ()))
