"""Dispatch of column_reductions: columns.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Launches, Routes, Time

SOME_0 = frozenset(("sm_90", "sm_100", "sm_103", "sm_110", "sm_120", "sm_121"))
# ROUTES: route, least align, launches
ROUTES = Routes({
    "column_reductions": (
        # long columns: a CTA sums a leaf
        (0, 8, (0, "column_reductions")),
        # few long columns: a CTA sums a leaf, a warp two lanes of it
        (1, 4, (1, "column_reductions")),
        # few long columns: a CTA sums a leaf, a warp one lane of it
        (2, 4, (2, "column_reductions")),
        # some thousand rows: each CTA of a cluster sums a leaf
        (3, 4, (3,)),
        # many columns: a warp sums whole columns
        (4, 8, (4,)),
        # the warps of a CTA share columns
        (5, 16, (5,)),
        # few short columns: a warp sums two lanes of a leaf
        (6, 4, (6,)),
        # few short columns: a warp sums one lane of a leaf
        (7, 4, (7,)),
        # long columns, unaligned: a CTA sums a leaf
        (8, 0, (8, "column_reductions")),
        # few long columns, unaligned: a warp sums one lane of a leaf
        (9, 0, (9, "column_reductions")),
        # columns, unaligned: a warp sums whole columns
        (10, 0, (10,)),
        # columns, unaligned: the warps of a CTA share columns
        (11, 0, (11,)),
        # few short columns, unaligned: a warp sums two lanes of a leaf
        (12, 0, (12,)),
        # few short columns, unaligned: a warp sums one lane of a leaf
        (13, 0, (13,)),
    ),
})
# COLUMN_REDUCTIONS: launch, kernel, slots, c0, most_item, c1, c2, bn
COLUMN_REDUCTIONS = {
    "column_reductions": (
        (0, "column_reductions_leaves_sum_columns_ecea2a_8x8_f736a4", 4, 256, 8, 2048, 2, 512),
        (1, "column_reductions_leaves_sum_columns_ecea2a_4x16_b4df9b", 2, 128, 4, 2048, 2, 512),
        (2, "column_reductions_leaves_sum_columns_ecea2a_4x32_4d18e8", 1, 128, 4, 4096, 1, 1024),
    ),
}
# COLUMN_REDUCTIONS1: launch, kernel, slots, c0, most_item, c1, c2, bn
COLUMN_REDUCTIONS1 = {
    "column_reductions": (
        (5, "column_reductions_whole_sum_columns_ecea2a_16x8_5d4514", 4, 512, 16, 4096, 2, 512),
        (6, "column_reductions_whole_sum_columns_ecea2a_4x16_83dc4a", 2, 128, 4, 2048, 2, 512),
        (7, "column_reductions_whole_sum_columns_ecea2a_4x32_ac74bf", 1, 128, 4, 4096, 1, 1024),
    ),
}
# COLUMN_REDUCTIONS2: launch, kernel, slots, c0, c1, bn
COLUMN_REDUCTIONS2 = {
    "column_reductions": (
        (8, "column_reductions_leaves_sum_columns_ecea2a_0x8_f557cb", 4, 256, 2, 512),
        (9, "column_reductions_leaves_sum_columns_ecea2a_0x32_ceecfa", 1, 1024, 1, 1024),
    ),
}
# COLUMN_REDUCTIONS3: launch, kernel, slots, c0, c1, bn
COLUMN_REDUCTIONS3 = {
    "column_reductions": (
        (11, "column_reductions_whole_sum_columns_ecea2a_0x8_43e26e", 4, 256, 2, 512),
        (12, "column_reductions_whole_sum_columns_ecea2a_0x16_e03a77", 2, 512, 2, 512),
        (13, "column_reductions_whole_sum_columns_ecea2a_0x32_22792b", 1, 1024, 1, 1024),
    ),
}


def candidates(
    table: str, arch: str, outer: int, n: int, inner: int, item: int, align: int, state: int,
    read: int, sms: int, time: Time,
) -> Iterator[Candidate]:
    """Yields the routes that serve a problem, with predicted times."""
    leaves = -(-n // 1024)
    fitting = ROUTES.fitting(table, align)
    launches: Launches = {}
    operands = outer * n * inner * read
    stores = outer * inner * leaves * state
    for launch, kernel, slots, c0, most_item, c1, c2, bn in fitting.rows(COLUMN_REDUCTIONS):
        ctas = outer * -(-(inner * item) // c0) * leaves
        if (
            ctas <= 2147483647 and leaves >= 1 and stores <= 268435456 and item <= most_item
            and state * c1 <= item * 49152
        ):
            us = time(
                kernel, "fma", slots, sms, ctas, min(slots, -(-n // 8)) * min(c2, -(-n // bn)),
                min(n, 1024) * -(-c0 // item), operands, operands, stores,
            )
            launches[launch] = us, kernel, ctas, {"partial": stores}
    ctas = -(-(outer * inner) // 32)
    if (
        "column_reductions" in fitting and ctas <= 2147483647 and leaves >= 1
        and stores <= 268435456
    ):
        us = time(
            "column_reductions_join_sum_columns_ecea2a_0x1_5783f6", "fma", 4, sms, ctas,
            -(-leaves // 8), 0, stores, stores, 0,
        )
        launches["column_reductions"] = (
            us, "column_reductions_join_sum_columns_ecea2a_0x1_5783f6", ctas, {"partial": stores},
        )
    stores1 = outer * inner * 4
    ctas = outer * -(-(inner * item) // 128) * 8
    if (
        arch in SOME_0 and 3 in fitting and ctas <= 2147483647 and leaves >= 1 and leaves <= 8
        and item <= 4 and state * 5120 <= item * 49152
    ):
        us = time(
            "column_reductions_cluster_sum_columns_ecea2a_4x32_633258", "fma", 1, sms, ctas,
            min(1, -(-n // 8)) * min(1, -(-n // 1024)), min(n, 1024) * -(-128 // item), operands,
            operands, stores1,
        )
        launches[3] = us, "column_reductions_cluster_sum_columns_ecea2a_4x32_633258", ctas, {}
    ctas = outer * -(-(inner * item) // 2048) * 1
    if 4 in fitting and ctas <= 2147483647 and item <= 8:
        us = time(
            "column_reductions_whole_sum_columns_ecea2a_8x1_8a7d26", "fma", 4, sms, ctas,
            min(32, -(-n // 8)) * min(2, -(-n // 512)) * leaves, n * -(-2048 // item), operands,
            operands, stores1,
        )
        launches[4] = us, "column_reductions_whole_sum_columns_ecea2a_8x1_8a7d26", ctas, {}
    for launch, kernel, slots, c0, most_item, c1, c2, bn in fitting.rows(COLUMN_REDUCTIONS1):
        pieces = n * -(-c0 // item)
        ctas = outer * -(-(inner * item) // c0) * 1
        if ctas <= 2147483647 and item <= most_item and state * c1 <= item * 49152:
            us = time(
                kernel, "fma", slots, sms, ctas,
                min(slots, -(-n // 8)) * min(c2, -(-n // bn)) * leaves, pieces, operands, operands,
                stores1,
            )
            launches[launch] = us, kernel, ctas, {}
    pieces_outer_inner32 = outer * -(-inner // 32)
    for launch, kernel, slots, c0, c1, bn in fitting.rows(COLUMN_REDUCTIONS2):
        ctas = pieces_outer_inner32 * leaves
        if ctas <= 2147483647 and leaves >= 1 and stores <= 268435456 and state * c0 <= 49152:
            us = time(
                kernel, "fma", slots, sms, ctas, min(slots, -(-n // 8)) * min(c1, -(-n // bn)),
                min(n, 1024) * -(-32 // item), operands, operands, stores,
            )
            launches[launch] = us, kernel, ctas, {"partial": stores}
    pieces_outer_inner256 = outer * -(-inner // 256)
    ctas = pieces_outer_inner256 * 1
    if 10 in fitting and ctas <= 2147483647:
        us = time(
            "column_reductions_whole_sum_columns_ecea2a_0x1_1774e7", "fma", 4, sms, ctas,
            min(32, -(-n // 8)) * min(2, -(-n // 512)) * leaves, n * -(-256 // item), operands,
            operands, stores1,
        )
        launches[10] = us, "column_reductions_whole_sum_columns_ecea2a_0x1_1774e7", ctas, {}
    for launch, kernel, slots, c0, c1, bn in fitting.rows(COLUMN_REDUCTIONS3):
        ctas = pieces_outer_inner32 * 1
        if ctas <= 2147483647 and state * c0 <= 49152:
            us = time(
                kernel, "fma", slots, sms, ctas,
                min(slots, -(-n // 8)) * min(c1, -(-n // bn)) * leaves, n * -(-32 // item),
                operands, operands, stores1,
            )
            launches[launch] = us, kernel, ctas, {}
    yield from fitting.combined(launches)
