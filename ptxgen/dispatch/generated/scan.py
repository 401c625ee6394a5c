"""Dispatch of scan: scan.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Launches, Routes, Time

# ROUTES: route, launches
ROUTES = Routes({
    "scan": (
        # short rows: half a warp scans a row
        (0, (0,)),
        # a warp scans a row
        (1, (1,)), (2, (2,)),
        # a CTA of 4 warps scans a row
        (3, (3,)),
        # a CTA of 8 warps scans a row
        (4, (4,)), (5, (5,)),
        # a CTA of 16 warps scans a row
        (6, (6,)),
        # few long rows: three launches spread a row over all SMs
        (7, (7, "scan", "scan1")),
    ),
})
# SCAN: launch, kernel, slots, rows_each, cols_each, c0
SCAN = {
    "scan": (
        (1, "scan_bf16_1x1_5eef92", 4, 8, 256, 2048),
        (2, "scan_bf16_1x2_be31a0", 4, 8, 512, 4096),
        (3, "scan_bf16_4x1_3bcea3", 8, 1, 1024, 1024),
        (4, "scan_bf16_8x1_17683e", 4, 1, 2048, 2048),
        (5, "scan_bf16_8x2_55568a", 4, 1, 4096, 4096),
        (6, "scan_bf16_16x1_34c22a", 2, 1, 4096, 4096),
    ),
}


def candidates(
    table: str, arch: str, rows: int, cols: int, item: int, sms: int, time: Time,
) -> Iterator[Candidate]:
    """Yields the routes that serve a problem, with predicted times."""
    fitting = ROUTES.fitting(table)
    launches: Launches = {}
    operands = rows * cols * item
    if 0 in fitting and cols <= 128:
        us = time(
            "scan_bf16_16of32x1_e6d4ab", "fma", 4, sms, -(-rows // 16), -(-cols // 256),
            -(-cols // 256) * 4096, operands, operands, operands,
        )
        launches[0] = us, "scan_bf16_16of32x1_e6d4ab", min(-(-rows // 16), 1048576), {}
    for launch, kernel, slots, rows_each, cols_each, c0 in fitting.rows(SCAN):
        if rows >= 1:
            us = time(
                kernel, "fma", slots, sms, -(-rows // rows_each), -(-cols // cols_each),
                -(-cols // cols_each) * c0, operands, operands, operands,
            )
            launches[launch] = us, kernel, min(-(-rows // rows_each), 1048576), {}
    pieces_rows_cols2048 = rows * -(-cols // 2048)
    pieces_rows_cols256 = rows * -(-cols // 256)
    if 7 in fitting and pieces_rows_cols2048 <= 2147483647 and pieces_rows_cols256 * 4 <= 268435456:
        us = time(
            "scan_totals_bf16_8x1_f7c414", "fma", 4, sms, pieces_rows_cols2048, 1, 2048, operands,
            operands, 0,
        )
        launches[7] = (
            us, "scan_totals_bf16_8x1_f7c414", pieces_rows_cols2048,
            {"sums": pieces_rows_cols256 * 4},
        )
    if "scan" in fitting and rows <= 2147483647 and pieces_rows_cols256 * 4 <= 268435456:
        us = time("scan_carry_bf16_1x1_062a5e", "fma", 32, sms, rows, -(-cols // 8192), 0, 0, 0, 0)
        launches["scan"] = us, "scan_carry_bf16_1x1_062a5e", rows, {"sums": pieces_rows_cols256 * 4}
    if (
        "scan1" in fitting and pieces_rows_cols2048 <= 2147483647
        and pieces_rows_cols256 * 4 <= 268435456
    ):
        us = time(
            "scan_apply_bf16_8x1_d71b4a", "fma", 4, sms, pieces_rows_cols2048, 1, 2048, operands,
            operands, operands,
        )
        launches["scan1"] = (
            us, "scan_apply_bf16_8x1_d71b4a", pieces_rows_cols2048,
            {"sums": pieces_rows_cols256 * 4},
        )
    yield from fitting.combined(launches)
