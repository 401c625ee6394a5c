"""Dispatch of sample: sample.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time

SOME_0 = frozenset(("sm_90", "sm_100", "sm_103", "sm_110", "sm_120", "sm_121"))


def candidates(
    table: str, arch: str, rows: int, cols: int, k: int, sms: int, time: Time,
) -> Iterator[Candidate]:
    """Yields the routes that serve a problem, with predicted times."""
    # 0: short rows: a CTA of 2 warps draws from a row
    if -(-cols // 256) * 12 <= 8192 and rows * 1 <= 2147483647 and cols <= 1024:
        yield Candidate(0.0, Choice(0, ("select_sample_bf16_2_5d6495",), (rows * 1,), ()))
        return
    pieces_rows_cols16384 = rows * -(-cols // 16384)
    # 1: small k: CTAs find candidates in parts of a row, one more draws
    if (
        k >= 1 and k * 32 <= 4096 and pieces_rows_cols16384 <= 2147483647
        and rows * (-(-cols // 16384) * k) * 8 <= 268435456 and -(-cols // 16384) * k <= 16384
    ):
        choice = Choice(
            1,
            (
                "select_sample_sift_part_bf16_16x32_5859ff",
                "select_sample_sift_draw_bf16_16x32_3dd1f7",
            ), (pieces_rows_cols16384, rows), (rows * (-(-cols // 16384) * k) * 8,),
        )
        yield Candidate(0.0, choice)
        return
    # 2: few long rows: a cluster draws from a row
    if (
        arch in SOME_0 and -(-cols // 2048) * 12 <= 32768 and rows * 8 <= 2147483647
        and cols >= 4096 and rows <= sms
    ):
        yield Candidate(0.0, Choice(2, ("select_sample_bf16_8x8_26524f",), (rows * 8,), ()))
        return
    # 3: a CTA draws from a row
    if -(-cols // 256) * 12 <= 65536 and rows * 1 <= 2147483647:
        yield Candidate(0.0, Choice(3, ("select_sample_bf16_16_d98e4a",), (rows * 1,), ()))
        return
