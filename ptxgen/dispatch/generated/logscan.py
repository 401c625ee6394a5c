"""Dispatch of logscan: logscan.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time


def candidates(
    table: str, arch: str, rows: int, cols: int, item: int, sms: int, time: Time,
) -> Iterator[Candidate]:
    """Yields the routes that serve a problem, with predicted times."""
    # 0: short rows: a warp scans a row, a chunk at a time
    if rows >= 1 and cols <= 256:
        choice = Choice(0, ("scan_log_bf16_1x1_9488e1",), (min(-(-rows // 8), 1048576),), ())
        yield Candidate(0.0, choice)
        return
    # 1: a warp scans a row
    if rows >= 1 and (cols <= 1024 or sms * 32 <= rows):
        choice = Choice(1, ("scan_log_bf16_1x2_9a810c",), (min(-(-rows // 8), 1048576),), ())
        yield Candidate(0.0, choice)
        return
    pieces_rows_cols2048 = rows * -(-cols // 2048)
    pieces_rows_cols256 = rows * -(-cols // 256)
    # 2: few long rows: three launches spread a row over all SMs
    if (
        pieces_rows_cols2048 <= 2147483647 and pieces_rows_cols256 * 8 <= 268435456
        and rows <= 2147483647 and rows <= sms and cols >= 32768
    ):
        choice = Choice(
            2,
            (
                "scan_log_totals_bf16_8x1_f54496", "scan_log_carry_bf16_1x1_a58ef4",
                "scan_log_apply_bf16_8x1_fbcf6e",
            ), (pieces_rows_cols2048, rows, pieces_rows_cols2048), (pieces_rows_cols256 * 8,),
        )
        yield Candidate(0.0, choice)
        return
    # 3: a CTA of 8 warps scans a row
    if rows >= 1:
        choice = Choice(3, ("scan_log_bf16_8x2_bed5f9",), (min(-(-rows // 1), 1048576),), ())
        yield Candidate(0.0, choice)
        return
