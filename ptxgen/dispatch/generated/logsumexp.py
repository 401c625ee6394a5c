"""Dispatch of logsumexp: rows.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time

# LOGSUMEXP: route, kernel, most_cols, c0, rows_each
LOGSUMEXP = (
    # many rows, up to 1/8 of a segment: a warp sums four
    (0, "logsumexp_short_f32_128x4_d45826", 128, 8, 32),
    # many short rows: a warp sums several
    (1, "logsumexp_short_f32_256x4_8125f9", 256, 128, 32),
    (2, "logsumexp_short_f32_512x2_7138d8", 512, 128, 16),
)


def candidates(
    table: str, arch: str, rows: int, cols: int, sms: int, time: Time,
) -> Iterator[Candidate]:
    """Yields the routes that serve a problem, with predicted times."""
    segments = -(-cols // 1024)
    for route, kernel, most_cols, c0, rows_each in LOGSUMEXP:
        if cols <= most_cols and sms * c0 < rows:
            yield Candidate(0.0, Choice(route, (kernel,), (-(-rows // rows_each),), ()))
            return
    # 3: rows of one segment: a warp sums a row
    if cols <= 1024:
        choice = Choice(3, ("logsumexp_short_f32_1024x1_877408",), (-(-rows // 8),), ())
        yield Candidate(0.0, choice)
        return
    pieces_rows_segments8 = rows * -(-segments // 8)
    # 4: few long rows: a warp sums a segment
    if (
        rows * segments * 8 <= 268435456 and pieces_rows_segments8 <= 2147483647
        and -(-rows // 8) <= 2147483647 and rows < sms * 2 and segments >= 12
    ):
        choice = Choice(
            4, ("logsumexp_segments_f32_8_450aeb", "logsumexp_combine_f32_8_2d00e5"),
            (pieces_rows_segments8, -(-rows // 8)), (rows * segments * 8,),
        )
        yield Candidate(0.0, choice)
        return
    # 5: four warps share a row
    if segments <= 4 or (sms * 8 < rows and segments <= 32):
        yield Candidate(0.0, Choice(5, ("logsumexp_whole_f32_4_f38e53",), (rows,), ()))
        return
    # 6: eight warps share a row
    yield Candidate(0.0, Choice(6, ("logsumexp_whole_f32_8_2176ce",), (rows,), ()))
