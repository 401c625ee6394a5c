"""Dispatch of rows: rows by formula.

Generated from ptxgen.tiles.TABLES["rows"]; do not edit.
Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time

SOME_0 = frozenset(("sm_90", "sm_100", "sm_103", "sm_110"))
SOME_1 = frozenset(("sm_90", "sm_100", "sm_103", "sm_110", "sm_120", "sm_121"))


def candidates(
    arch: str,
    rows: int,
    cols: int,
    vector: int,
    held: int,
    read: int,
    way: int,
    sms: int,
    time: Time,
) -> Iterator[Candidate]:
    """What can serve a problem, with predicted times."""
    leaves = -(-cols // 1024)
    branches = -(-cols // 32768)
    # 0: short rows: a warp a row, or half of one
    if vector == 1 and cols <= 128 and held <= 16:
        choice = Choice(0, ("rows_softmax_bf16_held_16x8_3c153f",), (-(-rows // 16),), ())
        yield Candidate(0.0, choice)
        return
    # 1: short rows: a warp a row, or half of one
    if vector == 1 and cols <= 256 and held <= 16:
        choice = Choice(1, ("rows_softmax_bf16_held_32x8_e0c396",), (-(-rows // 8),), ())
        yield Candidate(0.0, choice)
        return
    # 2: short rows: a warp a row, or half of one
    if vector == 1 and cols <= 512 and held <= 16:
        choice = Choice(2, ("rows_softmax_bf16_held_32x16_093ff7",), (-(-rows // 8),), ())
        yield Candidate(0.0, choice)
        return
    # 3: short rows: a warp a row, or half of one
    if vector == 1 and cols <= 1024 and held <= 16:
        choice = Choice(3, ("rows_softmax_bf16_held_32x32_bf80f2",), (-(-rows // 4),), ())
        yield Candidate(0.0, choice)
        return
    # 4: a CTA a row, held in registers
    if vector == 1 and cols <= 2048 and held <= 8:
        yield Candidate(0.0, Choice(4, ("rows_softmax_bf16_held_64x32_6610e8",), (rows,), ()))
        return
    # 5: a CTA a row, held in registers
    if vector == 1 and cols <= 4096 and held <= 8:
        yield Candidate(0.0, Choice(5, ("rows_softmax_bf16_held_128x32_1e3b21",), (rows,), ()))
        return
    # 6: a CTA a row, several on an SM
    if vector == 1 and cols <= 16384 and held <= 4 and (cols > 8192 or (held <= 2 and way == 1)):
        yield Candidate(0.0, Choice(6, ("rows_softmax_bf16_held_256x64_b22c81",), (rows,), ()))
        return
    # 7: a CTA a row, held in registers
    if vector == 1 and cols <= 8192 and held <= 8:
        yield Candidate(0.0, Choice(7, ("rows_softmax_bf16_held_256x32_ae3406",), (rows,), ()))
        return
    # 8: a CTA a row, several on an SM
    if vector == 1 and cols <= 32768 and held <= 4:
        yield Candidate(0.0, Choice(8, ("rows_softmax_bf16_held_512x64_1faee7",), (rows,), ()))
        return
    # 9: a CTA a row, held in registers
    if vector == 1 and cols <= 16384 and held <= 8:
        yield Candidate(0.0, Choice(9, ("rows_softmax_bf16_held_512x32_4cca29",), (rows,), ()))
        return
    # 10: a CTA walks over rows, by way of shared memory
    if (
        arch in SOME_0
        and vector == 1 and cols <= 53248 and read <= 2 and held <= 4 and sms < rows * 4
    ):
        choice = Choice(
            10, ("rows_softmax_bf16_staged_832x64_952a28",), (min(-(-rows // 1), sms * 1),), (),
        )
        yield Candidate(0.0, choice)
        return
    # 11: long rows: a cluster a row
    if arch in SOME_1 and vector == 1 and cols <= 65536 and rows * 4 <= 2147483647 and held <= 8:
        choice = Choice(11, ("rows_softmax_bf16_cluster_2048x32_8a7417",), (rows * 4,), ())
        yield Candidate(0.0, choice)
        return
    # 12: long rows: a cluster a row, two on their SMs
    if (
        arch in SOME_1
        and vector == 1 and cols <= 131072 and rows * 4 <= 2147483647 and held <= 4
        and sms < rows * 4
    ):
        choice = Choice(12, ("rows_softmax_bf16_cluster_2048x64_d183f8",), (rows * 4,), ())
        yield Candidate(0.0, choice)
        return
    # 13: long rows: a cluster a row
    if arch in SOME_1 and vector == 1 and cols <= 131072 and rows * 8 <= 2147483647 and held <= 8:
        choice = Choice(13, ("rows_softmax_bf16_cluster_4096x32_448a5d",), (rows * 8,), ())
        yield Candidate(0.0, choice)
        return
    # 14: few very long rows: branches on all SMs, then their sum
    if (
        vector == 1 and way == 1 and rows * branches * 32 <= 268435456 and rows * 64 <= 268435456
        and rows * branches <= 2147483647 and rows <= 2147483647 and rows * 2 <= sms
        and leaves > 128
    ):
        choice = Choice(
            14,
            (
                "rows_softmax_bf16_branches0_1024x32_740afe",
                "rows_softmax_bf16_combine0_512x32_814151",
            ), (rows * branches, rows), (rows * branches * 32, rows * 64),
        )
        yield Candidate(0.0, choice)
        return
    # 15: few very long rows, stage by stage, on all SMs
    if (
        vector == 1 and way >= 1 and rows * branches * 32 <= 268435456 and rows * 64 <= 268435456
        and rows * branches <= 2147483647 and rows <= 2147483647 and rows * 2 <= sms
        and leaves > 128
    ):
        choice = Choice(
            15,
            (
                "rows_softmax_bf16_branches0_512x64_cfcaad",
                "rows_softmax_bf16_combine0_512x32_401c5e",
                "rows_softmax_bf16_branches1_512x64_7efb44",
                "rows_softmax_bf16_combine1_512x32_6c052c",
                "rows_softmax_bf16_finish_512x64_2d485f",
            ), (rows * branches, rows, rows * branches, rows, rows * branches),
            (rows * branches * 32, rows * 64),
        )
        yield Candidate(0.0, choice)
        return
    # 16: the longest that a cluster holds
    if (
        arch in SOME_1
        and vector == 1 and cols <= 262144 and rows * 4 <= 2147483647 and held <= 4 and leaves > 160
    ):
        choice = Choice(16, ("rows_softmax_bf16_cluster_4096x64_1db2d5",), (rows * 4,), ())
        yield Candidate(0.0, choice)
        return
    # 17: any length: a CTA a row, stage by stage
    if vector == 1:
        yield Candidate(0.0, Choice(17, ("rows_softmax_bf16_streamed_512x64_764a74",), (rows,), ()))
        return
    # 18: short rows off 16 bytes
    if cols <= 1024 and held <= 8:
        choice = Choice(18, ("rows_softmax_bf16_held_32x32_any_59f902",), (-(-rows // 4),), ())
        yield Candidate(0.0, choice)
        return
    # 19: short rows off 16 bytes
    if cols <= 4096 and held <= 8:
        yield Candidate(0.0, Choice(19, ("rows_softmax_bf16_held_128x32_any_ea4927",), (rows,), ()))
        return
    # 20: others, by way of shared memory
    if cols <= 8192 and read <= 4 and held <= 4:
        choice = Choice(
            20, ("rows_softmax_bf16_staged_256x32_any_5f6b7b",), (min(-(-rows // 1), sms * 3),), (),
        )
        yield Candidate(0.0, choice)
        return
    # 21: others, by way of shared memory
    if cols <= 13312 and read <= 4 and held <= 4:
        choice = Choice(
            21, ("rows_softmax_bf16_staged_416x32_any_06f73f",), (min(-(-rows // 1), sms * 2),), (),
        )
        yield Candidate(0.0, choice)
        return
    # 22: others, by way of shared memory
    if arch in SOME_0 and cols <= 26624 and read <= 4 and held <= 4:
        choice = Choice(
            22, ("rows_softmax_bf16_staged_832x32_any_58fcec",), (min(-(-rows // 1), sms * 1),), (),
        )
        yield Candidate(0.0, choice)
        return
    # 23: others, by way of shared memory
    if arch in SOME_0 and cols <= 53248 and read <= 2 and held <= 4 and sms < rows * 4:
        choice = Choice(
            23, ("rows_softmax_bf16_staged_832x64_any_2cedac",), (min(-(-rows // 1), sms * 1),), (),
        )
        yield Candidate(0.0, choice)
        return
    # 24: rows off 16 bytes, held so too
    if cols <= 8192 and held <= 8:
        yield Candidate(0.0, Choice(24, ("rows_softmax_bf16_held_256x32_any_bcbc93",), (rows,), ()))
        return
    # 25: rows off 16 bytes, held so too
    if arch in SOME_1 and cols <= 65536 and rows * 8 <= 2147483647 and held <= 8:
        choice = Choice(25, ("rows_softmax_bf16_cluster_2048x32_any_f27f66",), (rows * 8,), ())
        yield Candidate(0.0, choice)
        return
    # 26: rows off 16 bytes, held so too
    if arch in SOME_1 and cols <= 131072 and rows * 8 <= 2147483647 and held <= 8:
        choice = Choice(26, ("rows_softmax_bf16_cluster_4096x32_any_660517",), (rows * 8,), ())
        yield Candidate(0.0, choice)
        return
    # 27: few very long rows: branches on all SMs, then their sum
    if (
        way == 1 and rows * branches * 32 <= 268435456 and rows * 64 <= 268435456
        and rows * branches <= 2147483647 and rows <= 2147483647 and rows * 2 <= sms
        and leaves > 128
    ):
        choice = Choice(
            27,
            (
                "rows_softmax_bf16_branches0_512x64_any_e10230",
                "rows_softmax_bf16_combine0_512x32_814151",
            ), (rows * branches, rows), (rows * branches * 32, rows * 64),
        )
        yield Candidate(0.0, choice)
        return
    # 28: few very long rows, stage by stage, on all SMs
    if (
        way >= 1 and rows * branches * 32 <= 268435456 and rows * 64 <= 268435456
        and rows * branches <= 2147483647 and rows <= 2147483647 and rows * 2 <= sms
        and leaves > 128
    ):
        choice = Choice(
            28,
            (
                "rows_softmax_bf16_branches0_512x64_any_3da237",
                "rows_softmax_bf16_combine0_512x32_401c5e",
                "rows_softmax_bf16_branches1_512x64_any_f5432d",
                "rows_softmax_bf16_combine1_512x32_6c052c",
                "rows_softmax_bf16_finish_512x64_any_c97685",
            ), (rows * branches, rows, rows * branches, rows, rows * branches),
            (rows * branches * 32, rows * 64),
        )
        yield Candidate(0.0, choice)
        return
    # 29: everything else
    yield Candidate(0.0, Choice(29, ("rows_softmax_bf16_streamed_512x64_any_03f640",), (rows,), ()))
