"""Dispatch of topk: topk.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time


def candidates(
    table: str, arch: str, rows: int, cols: int, k: int, sms: int, time: Time,
) -> Iterator[Candidate]:
    """Yields the routes that serve a problem, with predicted times."""
    # 0: short rows, small k: a warp selects from a row
    if cols <= 256 and k <= 32:
        yield Candidate(0.0, Choice(0, ("select_topk_lanes_bf16_8_fd9b8a",), (-(-rows // 8),), ()))
        return
    # 1: small k or short rows: a CTA of 4 warps selects from a row
    if cols <= 4096 and (k <= 256 or cols <= 1024):
        yield Candidate(0.0, Choice(1, ("select_topk_sift_whole_bf16_4x32_172830",), (rows,), ()))
        return
    pieces_rows_cols16384 = rows * -(-cols // 16384)
    # 2: long rows: CTAs select from parts of a row, one more from their results
    if (
        k * 32 <= 4096 and pieces_rows_cols16384 <= 2147483647
        and rows * (-(-cols // 16384) * k) * 8 <= 268435456 and -(-cols // 16384) * k <= 16384
    ):
        choice = Choice(
            2,
            ("select_topk_sift_part_bf16_16x32_c59965", "select_topk_sift_merge_bf16_16x32_0a0fdc"),
            (pieces_rows_cols16384, rows), (rows * (-(-cols // 16384) * k) * 8,),
        )
        yield Candidate(0.0, choice)
        return
    # 3: any k and length: radix selection, digit by digit
    yield Candidate(0.0, Choice(3, ("select_topk_bf16_16_86b68d",), (rows,), ()))
