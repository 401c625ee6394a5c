"""Dispatch of logsumexp: rows.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time


def candidates(
    table: str, arch: str, rows: int, cols: int, sms: int, time: Time,
) -> Iterator[Candidate]:
    """What can serve a problem, with predicted times."""
    segments = -(-cols // 1024)
    pieces_rows_segments8 = rows * -(-segments // 8)
    # 0: few long rows, or more than CTAs at a time: a warp a segment
    if (
        rows * segments * 8 <= 268435456 and pieces_rows_segments8 <= 2147483647
        and -(-rows // 8) <= 2147483647 and ((rows < sms * 2 and segments >= 12) or sms * 8 < rows)
    ):
        choice = Choice(
            0, ("lse_segments_f32_8_95e5fe", "lse_combine_f32_8_711ac0"),
            (pieces_rows_segments8, -(-rows // 8)), (rows * segments * 8,),
        )
        yield Candidate(0.0, choice)
        return
    # 1: a CTA a row
    yield Candidate(0.0, Choice(1, ("lse_whole_f32_8_6a90dc",), (min(rows, sms * 8),), ()))
