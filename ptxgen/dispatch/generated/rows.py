"""Dispatch of rows: rows by formula.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time

SOME_0 = frozenset(("sm_90", "sm_100", "sm_103", "sm_110"))
SOME_1 = frozenset(("sm_90", "sm_100", "sm_103", "sm_110", "sm_120", "sm_121"))
# ROWS: route, kernel, most_cols, rows_each
ROWS = (
    # short rows: a warp a row, or half of one
    (0, "rows_softmax_bf16_held_16x8_3c153f", 128, 16),
    (1, "rows_softmax_bf16_held_32x8_e0c396", 256, 8),
    (2, "rows_softmax_bf16_held_32x16_093ff7", 512, 8),
    (3, "rows_softmax_bf16_held_32x32_bf80f2", 1024, 4),
)
# ROWS1: route, kernel, most_cols
ROWS1 = (
    # a CTA a row, held in registers
    (4, "rows_softmax_bf16_held_64x32_6610e8", 2048),
    (5, "rows_softmax_bf16_held_128x32_1e3b21", 4096),
)
# ROWS2: route, kernel, most_cols, most_held
ROWS2 = (
    # a CTA a row, held in registers
    (7, "rows_softmax_bf16_held_256x32_ae3406", 8192, 8),
    # a CTA a row, several on an SM
    (8, "rows_softmax_bf16_held_512x64_1faee7", 32768, 4),
    # a CTA a row, held in registers
    (9, "rows_softmax_bf16_held_512x32_4cca29", 16384, 8),
)
# ROWS3: route, kernel, most_cols, c0
ROWS3 = (
    # others, by way of shared memory
    (20, "rows_softmax_bf16_staged_256x32_any_5f6b7b", 8192, 3),
    (21, "rows_softmax_bf16_staged_416x32_any_06f73f", 13312, 2),
)
# ROWS4: route, kernel, most_cols
ROWS4 = (
    # rows off 16 bytes, held so too
    (25, "rows_softmax_bf16_cluster_2048x32_any_f27f66", 65536),
    (26, "rows_softmax_bf16_cluster_4096x32_any_660517", 131072),
)


def candidates(
    table: str, arch: str, rows: int, cols: int, vector: int, held: int, read: int, way: int,
    sms: int, time: Time,
) -> Iterator[Candidate]:
    """What can serve a problem, with predicted times."""
    leaves = -(-cols // 1024)
    branches = -(-cols // 32768)
    for route, kernel, most_cols, rows_each in ROWS:
        if vector == 1 and cols <= most_cols and held <= 16:
            yield Candidate(0.0, Choice(route, (kernel,), (-(-rows // rows_each),), ()))
            return
    for route, kernel, most_cols in ROWS1:
        if vector == 1 and cols <= most_cols and held <= 8:
            yield Candidate(0.0, Choice(route, (kernel,), (rows,), ()))
            return
    # 6: a CTA a row, several on an SM
    if vector == 1 and cols <= 16384 and held <= 4 and (cols > 8192 or (held <= 2 and way == 1)):
        yield Candidate(0.0, Choice(6, ("rows_softmax_bf16_held_256x64_b22c81",), (rows,), ()))
        return
    for route, kernel, most_cols, most_held in ROWS2:
        if vector == 1 and cols <= most_cols and held <= most_held:
            yield Candidate(0.0, Choice(route, (kernel,), (rows,), ()))
            return
    # 10: a CTA walks over rows, by way of shared memory
    if (
        arch in SOME_0 and vector == 1 and cols <= 53248 and read <= 2 and held <= 4
        and sms < rows * 4
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
        arch in SOME_1 and vector == 1 and cols <= 131072 and rows * 4 <= 2147483647 and held <= 4
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
        arch in SOME_1 and vector == 1 and cols <= 262144 and rows * 4 <= 2147483647 and held <= 4
        and leaves > 160
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
    for route, kernel, most_cols, c0 in ROWS3:
        if cols <= most_cols and read <= 4 and held <= 4:
            yield Candidate(0.0, Choice(route, (kernel,), (min(-(-rows // 1), sms * c0),), ()))
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
    for route, kernel, most_cols in ROWS4 if arch in SOME_1 else ():
        if cols <= most_cols and rows * 8 <= 2147483647 and held <= 8:
            yield Candidate(0.0, Choice(route, (kernel,), (rows * 8,), ()))
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
