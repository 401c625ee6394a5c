"""Dispatch of row_reductions: rows by formula.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Launches, Routes, Time

SOME_0 = frozenset(("sm_90", "sm_100", "sm_103", "sm_110"))
SOME_1 = frozenset(("sm_90", "sm_100", "sm_103", "sm_110", "sm_120", "sm_121"))
# ROUTES: route, least vector, least way, launches
ROUTES = Routes({
    "row_reductions": (
        # short rows: a warp computes a row, or half a warp
        (0, 1, 0, (0,)), (1, 1, 0, (1,)), (2, 1, 0, (2,)), (3, 1, 0, (3,)),
        # many short rows without gaps: a lane computes a row, or four do
        (4, 0, 0, (4,)), (5, 0, 0, (5,)), (6, 0, 0, (6,)), (7, 0, 0, (7,)), (8, 0, 0, (8,)),
        # a CTA holds a row in registers
        (9, 1, 0, (9,)), (10, 1, 0, (10,)), (11, 1, 0, (11,)), (12, 1, 0, (12,)),
        # a CTA holds a row in registers, several CTAs an SM
        (13, 1, 0, (13,)), (14, 1, 0, (14,)),
        # persistent CTAs: the next row is copied to shared memory meanwhile
        (15, 1, 0, (15,)),
        # long rows: a cluster holds a row
        (16, 1, 0, (16,)), (17, 1, 0, (17,)),
        # long rows: a cluster holds a row, two CTAs an SM
        (18, 1, 0, (18,)),
        # the longest rows that a cluster holds
        (19, 1, 0, (19,)),
        # few very long rows, one stage: CTAs sum branches, others add these
        (20, 1, 0, (20, "row_reductions")),
        # few very long rows, two stages: each spread over all SMs
        (
            21, 1, 1,
            (21, "row_reductions1", "row_reductions2", "row_reductions3", "row_reductions4"),
        ),
        # any length: a CTA reads a row again for every stage
        (22, 1, 0, (22,)),
        # short rows not aligned to 16 bytes
        (23, 0, 0, (23,)), (24, 0, 0, (24,)), (25, 0, 0, (25,)), (26, 0, 0, (26,)),
        # rows not aligned to 16 bytes, held in registers
        (27, 0, 0, (27,)), (28, 0, 0, (28,)),
        # rows not aligned to 16 bytes, copied to shared memory
        (29, 0, 0, (29,)), (30, 0, 0, (30,)), (31, 0, 0, (31,)), (32, 0, 0, (32,)),
        # long rows not aligned to 16 bytes: a cluster holds a row
        (33, 0, 0, (33,)),
        # few very long rows, one stage: CTAs sum branches, others add these
        (34, 0, 0, (34, "row_reductions")),
        # few very long rows, two stages: each spread over all SMs
        (
            35, 0, 1,
            (35, "row_reductions1", "row_reductions5", "row_reductions3", "row_reductions6"),
        ),
        # everything else: any length and alignment
        (36, 0, 0, (36,)),
    ),
})
# ROW_REDUCTIONS: launch, kernel, slots, most_cols, rows_each
ROW_REDUCTIONS = {
    "row_reductions": (
        (0, "row_reductions_softmax_bf16_held_16x8_1b02c7", 6, 128, 16),
        (1, "row_reductions_softmax_bf16_held_32x8_e23230", 6, 256, 8),
        (2, "row_reductions_softmax_bf16_held_32x16_d290b3", 5, 512, 8),
        (3, "row_reductions_softmax_bf16_held_32x32_ed4ca1", 8, 1024, 4),
    ),
}
# ROW_REDUCTIONS1: launch, kernel, most_dense, rows_each, cols_each
ROW_REDUCTIONS1 = {
    "row_reductions": (
        (4, "row_reductions_softmax_bf16_dense_1x128_any_796bc2", 2, 64, 8),
        (5, "row_reductions_softmax_bf16_dense_4x128_any_ab1654", 2, 16, 32),
        (6, "row_reductions_softmax_bf16_dense_1x128_any_4f913b", 4, 64, 8),
        (7, "row_reductions_softmax_bf16_dense_4x128_any_8e8c40", 4, 16, 32),
        (8, "row_reductions_softmax_bf16_dense_4x128_any_76988e", 8, 16, 32),
    ),
}
# ROW_REDUCTIONS2: launch, kernel, slots, most_cols, most_held
ROW_REDUCTIONS2 = {
    "row_reductions": (
        (9, "row_reductions_softmax_bf16_held_64x32_18b2a4", 16, 2048, 16),
        (10, "row_reductions_softmax_bf16_held_128x32_cdb3f0", 8, 4096, 16),
        (11, "row_reductions_softmax_bf16_held_256x32_b6812d", 4, 8192, 16),
        (12, "row_reductions_softmax_bf16_held_512x32_fdc2ac", 2, 16384, 8),
        (13, "row_reductions_softmax_bf16_held_256x64_4d9f7b", 3, 16384, 4),
        (14, "row_reductions_softmax_bf16_held_512x64_7ec7e1", 2, 32768, 4),
    ),
}
# ROW_REDUCTIONS3: launch, kernel, most_cols, most_read
ROW_REDUCTIONS3 = {
    "row_reductions": (
        (15, "row_reductions_softmax_bf16_staged_832x64_ee8fe9", 53248, 2),
        (31, "row_reductions_softmax_bf16_staged_832x32_any_3bd539", 26624, 4),
        (32, "row_reductions_softmax_bf16_staged_832x64_any_b42511", 53248, 2),
    ),
}
# ROW_REDUCTIONS4: launch, kernel, slots, most_cols, most_held, cols_each
ROW_REDUCTIONS4 = {
    "row_reductions": (
        (16, "row_reductions_softmax_bf16_cluster_2048x32_e79a44", 2, 65536, 8, 4),
        (17, "row_reductions_softmax_bf16_cluster_4096x32_38cd36", 2, 131072, 8, 8),
        (18, "row_reductions_softmax_bf16_cluster_2048x64_60e826", 2, 131072, 4, 4),
        (19, "row_reductions_softmax_bf16_cluster_4096x64_20585d", 1, 262144, 4, 4),
    ),
}
# ROW_REDUCTIONS5: launch, kernel
ROW_REDUCTIONS5 = {
    "row_reductions": (
        (21, "row_reductions_softmax_bf16_branches0_512x64_dde20e"),
        ("row_reductions2", "row_reductions_softmax_bf16_branches1_512x64_07f8a0"),
    ),
}
# ROW_REDUCTIONS6: launch, kernel
ROW_REDUCTIONS6 = {
    "row_reductions": (
        ("row_reductions1", "row_reductions_softmax_bf16_combine0_512x32_7da897"),
        ("row_reductions3", "row_reductions_softmax_bf16_combine1_512x32_b30c46"),
    ),
}
# ROW_REDUCTIONS7: launch, kernel, slots, most_cols, rows_each
ROW_REDUCTIONS7 = {
    "row_reductions": (
        (23, "row_reductions_softmax_bf16_held_16x8_any_1c632f", 6, 128, 16),
        (24, "row_reductions_softmax_bf16_held_32x8_any_c4fbdd", 6, 256, 8),
        (25, "row_reductions_softmax_bf16_held_32x16_any_ba9ee5", 5, 512, 8),
        (26, "row_reductions_softmax_bf16_held_32x32_any_44609c", 8, 1024, 4),
    ),
}
# ROW_REDUCTIONS8: launch, kernel, slots, most_cols
ROW_REDUCTIONS8 = {
    "row_reductions": (
        (27, "row_reductions_softmax_bf16_held_128x32_any_69af12", 8, 4096),
        (28, "row_reductions_softmax_bf16_held_256x32_any_71fb2e", 4, 8192),
    ),
}
# ROW_REDUCTIONS9: launch, kernel, slots, most_cols
ROW_REDUCTIONS9 = {
    "row_reductions": (
        (29, "row_reductions_softmax_bf16_staged_256x32_any_e7d716", 3, 8192),
        (30, "row_reductions_softmax_bf16_staged_416x32_any_1ffc85", 2, 13312),
    ),
}
# ROW_REDUCTIONS10: launch, kernel
ROW_REDUCTIONS10 = {
    "row_reductions": (
        (35, "row_reductions_softmax_bf16_branches0_512x64_any_0d8845"),
        ("row_reductions5", "row_reductions_softmax_bf16_branches1_512x64_any_e78f9f"),
    ),
}


def candidates(
    table: str, arch: str, rows: int, cols: int, vector: int, held: int, read: int, way: int,
    moved: int, work: int, passes: int, dense: int, sms: int, time: Time,
) -> Iterator[Candidate]:
    """Yields the routes that serve a problem, with predicted times."""
    branches = -(-cols // 32768)
    fitting = ROUTES.fitting(table, vector, way)
    launches: Launches = {}
    operands = rows * cols * moved
    for launch, kernel, slots, most_cols, rows_each in fitting.rows(ROW_REDUCTIONS):
        ctas = -(-rows // rows_each)
        if cols <= most_cols and held <= 16:
            us = time(
                kernel, "fma", slots, sms, ctas, 1, cols * rows_each * work, operands, operands, 0,
            )
            launches[launch] = us, kernel, ctas, {}
    for launch, kernel, most_dense, rows_each, cols_each in fitting.rows(ROW_REDUCTIONS1):
        pieces = passes * -(-cols // cols_each)
        ctas = -(-rows // rows_each)
        if cols <= 128 and dense <= most_dense:
            us = time(
                kernel, "fma", 8, sms, ctas, pieces,
                -(-cols // cols_each) * cols_each * rows_each * work, operands, operands, 0,
            )
            launches[launch] = us, kernel, ctas, {}
    for launch, kernel, slots, most_cols, most_held in fitting.rows(ROW_REDUCTIONS2):
        if cols <= most_cols and held <= most_held:
            us = time(kernel, "fma", slots, sms, rows, 1, cols * work, operands, operands, 0)
            launches[launch] = us, kernel, rows, {}
    for launch, kernel, most_cols, most_read in fitting.rows(ROW_REDUCTIONS3):
        if arch in SOME_0 and cols <= most_cols and held <= 4 and read <= most_read:
            us = time(kernel, "fma", 1, sms, rows, 1, cols * work, operands, operands, 0)
            launches[launch] = us, kernel, min(-(-rows // 1), sms * 1), {}
    for launch, kernel, slots, most_cols, most_held, cols_each in fitting.rows(ROW_REDUCTIONS4):
        ctas = rows * cols_each
        if arch in SOME_1 and cols <= most_cols and held <= most_held and ctas <= 2147483647:
            us = time(
                kernel, "fma", slots, sms, ctas, 1, -(-cols // cols_each) * work, operands,
                operands, 0,
            )
            launches[launch] = us, kernel, ctas, {}
    ctas = rows * branches
    if (
        20 in fitting and way == 1 and ctas * 32 <= 268435456 and rows * 64 <= 268435456
        and ctas <= 2147483647
    ):
        us = time(
            "row_reductions_softmax_bf16_branches0_1024x32_408549", "fma", 2, sms, ctas, 1,
            min(cols, 32768) * work, operands, operands, 0,
        )
        launches[20] = (
            us, "row_reductions_softmax_bf16_branches0_1024x32_408549", ctas,
            {"branch_sums": ctas * 32, "row_sums": rows * 64},
        )
    if (
        "row_reductions" in fitting and way == 1 and rows * branches * 32 <= 268435456
        and rows * 64 <= 268435456 and rows <= 2147483647
    ):
        us = time(
            "row_reductions_softmax_bf16_combine0_512x32_c2ea10", "fma", 2, sms, rows,
            -(-branches // 32), 0, 0, 0, 0,
        )
        launches["row_reductions"] = (
            us, "row_reductions_softmax_bf16_combine0_512x32_c2ea10", rows,
            {"branch_sums": rows * branches * 32, "row_sums": rows * 64},
        )
    for launch, kernel in fitting.rows(ROW_REDUCTIONS5):
        ctas = rows * branches
        if ctas * 32 <= 268435456 and rows * 64 <= 268435456 and ctas <= 2147483647:
            us = time(
                kernel, "fma", 1, sms, ctas, 1, min(cols, 32768) * work, operands, operands, 0,
            )
            launches[launch] = us, kernel, ctas, {"branch_sums": ctas * 32, "row_sums": rows * 64}
    for launch, kernel in fitting.rows(ROW_REDUCTIONS6):
        if rows * branches * 32 <= 268435456 and rows * 64 <= 268435456 and rows <= 2147483647:
            us = time(kernel, "fma", 2, sms, rows, -(-branches // 32), 0, 0, 0, 0)
            launches[launch] = (
                us, kernel, rows, {"branch_sums": rows * branches * 32, "row_sums": rows * 64},
            )
    ctas = rows * branches
    if "row_reductions4" in fitting and rows * 64 <= 268435456 and ctas <= 2147483647:
        us = time(
            "row_reductions_softmax_bf16_finish_512x64_4b4689", "fma", 1, sms, ctas, 1,
            min(cols, 32768) * work, operands, operands, 0,
        )
        launches["row_reductions4"] = (
            us, "row_reductions_softmax_bf16_finish_512x64_4b4689", ctas, {"row_sums": rows * 64},
        )
    operands1 = rows * cols * moved * passes
    if 22 in fitting:
        us = time(
            "row_reductions_softmax_bf16_streamed_512x64_9c6d23", "fma", 1, sms, rows,
            branches * passes * 8, cols * work, operands1, operands1, 0,
        )
        launches[22] = us, "row_reductions_softmax_bf16_streamed_512x64_9c6d23", rows, {}
    for launch, kernel, slots, most_cols, rows_each in fitting.rows(ROW_REDUCTIONS7):
        ctas = -(-rows // rows_each)
        if vector <= 0 and cols <= most_cols and held <= 16:
            us = time(
                kernel, "fma", slots, sms, ctas, 1, cols * rows_each * work, operands, operands, 0,
            )
            launches[launch] = us, kernel, ctas, {}
    for launch, kernel, slots, most_cols in fitting.rows(ROW_REDUCTIONS8):
        if vector <= 0 and cols <= most_cols and held <= 16:
            us = time(kernel, "fma", slots, sms, rows, 1, cols * work, operands, operands, 0)
            launches[launch] = us, kernel, rows, {}
    for launch, kernel, slots, most_cols in fitting.rows(ROW_REDUCTIONS9):
        if cols <= most_cols and held <= 4 and read <= 4:
            us = time(kernel, "fma", slots, sms, rows, 1, cols * work, operands, operands, 0)
            launches[launch] = us, kernel, min(-(-rows // 1), sms * slots), {}
    ctas = rows * 8
    if (
        arch in SOME_1 and 33 in fitting and vector <= 0 and cols <= 131072 and held <= 8
        and ctas <= 2147483647
    ):
        us = time(
            "row_reductions_softmax_bf16_cluster_4096x32_any_bf1153", "fma", 2, sms, ctas, 1,
            -(-cols // 8) * work, operands, operands, 0,
        )
        launches[33] = us, "row_reductions_softmax_bf16_cluster_4096x32_any_bf1153", ctas, {}
    ctas = rows * branches
    if (
        34 in fitting and vector <= 0 and way == 1 and ctas * 32 <= 268435456
        and rows * 64 <= 268435456 and ctas <= 2147483647
    ):
        us = time(
            "row_reductions_softmax_bf16_branches0_512x64_any_dd329f", "fma", 1, sms, ctas, 1,
            min(cols, 32768) * work, operands, operands, 0,
        )
        launches[34] = (
            us, "row_reductions_softmax_bf16_branches0_512x64_any_dd329f", ctas,
            {"branch_sums": ctas * 32, "row_sums": rows * 64},
        )
    for launch, kernel in fitting.rows(ROW_REDUCTIONS10):
        ctas = rows * branches
        if vector <= 0 and ctas * 32 <= 268435456 and rows * 64 <= 268435456 and ctas <= 2147483647:
            us = time(
                kernel, "fma", 1, sms, ctas, 1, min(cols, 32768) * work, operands, operands, 0,
            )
            launches[launch] = us, kernel, ctas, {"branch_sums": ctas * 32, "row_sums": rows * 64}
    ctas = rows * branches
    if (
        "row_reductions6" in fitting and vector <= 0 and rows * 64 <= 268435456
        and ctas <= 2147483647
    ):
        us = time(
            "row_reductions_softmax_bf16_finish_512x64_any_a9457e", "fma", 1, sms, ctas, 1,
            min(cols, 32768) * work, operands, operands, 0,
        )
        launches["row_reductions6"] = (
            us, "row_reductions_softmax_bf16_finish_512x64_any_a9457e", ctas,
            {"row_sums": rows * 64},
        )
    if 36 in fitting and vector <= 0:
        us = time(
            "row_reductions_softmax_bf16_streamed_512x64_any_316317", "fma", 1, sms, rows,
            branches * passes * 8, cols * work, operands1, operands1, 0,
        )
        launches[36] = us, "row_reductions_softmax_bf16_streamed_512x64_any_316317", rows, {}
    yield from fitting.combined(launches)
