"""Dispatch of columns: columns.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time


def candidates(
    table: str, arch: str, outer: int, n: int, inner: int, item: int, align: int, state: int,
    sms: int, time: Time,
) -> Iterator[Candidate]:
    """What can serve a problem, with predicted times."""
    leaves = -(-n // 1024)
    # 0: long columns
    if (
        outer * -(-(inner * item) // 256) * leaves <= 2147483647 and leaves >= 1
        and outer * inner * leaves * state <= 268435456 and align >= 8 and item <= 8
        and -(-(outer * inner) // 32) <= 2147483647 and leaves >= 2
        and outer * -(-(inner * item) // 512) < sms * 2
        and sms <= outer * -(-(inner * item) // 256) * leaves and inner * item >= 256
    ):
        choice = Choice(
            0,
            (
                "columns_leaves_sum_columns_ecea2a_8x8_8a36b5",
                "columns_join_sum_columns_ecea2a_0x1_faf20f",
            ), (outer * -(-(inner * item) // 256) * leaves, -(-(outer * inner) // 32)),
            (outer * inner * leaves * state,),
        )
        yield Candidate(0.0, choice)
        return
    # 1: few long columns
    if (
        outer * -(-(inner * item) // 128) * leaves <= 2147483647 and leaves >= 1
        and outer * inner * leaves * state <= 268435456 and align >= 4 and item <= 4
        and -(-(outer * inner) // 32) <= 2147483647 and leaves >= 2
        and outer * -(-(inner * item) // 512) < sms * 2
    ):
        choice = Choice(
            1,
            (
                "columns_leaves_sum_columns_ecea2a_4x16_2dfdb7",
                "columns_join_sum_columns_ecea2a_0x1_faf20f",
            ), (outer * -(-(inner * item) // 128) * leaves, -(-(outer * inner) // 32)),
            (outer * inner * leaves * state,),
        )
        yield Candidate(0.0, choice)
        return
    pieces_outer_inner32 = outer * -(-inner // 32)
    # 2: few long columns at odd addresses
    if (
        pieces_outer_inner32 * leaves <= 2147483647 and leaves >= 1
        and outer * inner * leaves * state <= 268435456 and -(-(outer * inner) // 32) <= 2147483647
        and leaves >= 2 and pieces_outer_inner32 < sms * 2
    ):
        choice = Choice(
            2,
            (
                "columns_leaves_sum_columns_ecea2a_0x8_8f8c93",
                "columns_join_sum_columns_ecea2a_0x1_faf20f",
            ), (pieces_outer_inner32 * leaves, -(-(outer * inner) // 32)),
            (outer * inner * leaves * state,),
        )
        yield Candidate(0.0, choice)
        return
    # 3: a warp has whole columns
    if (
        outer * -(-(inner * item) // 2048) * 1 <= 2147483647 and align >= 8 and item <= 8
        and (sms * 16 <= outer * -(-(inner * item) // 512) or n <= 64)
    ):
        choice = Choice(
            3, ("columns_whole_sum_columns_ecea2a_8x1_58909c",),
            (outer * -(-(inner * item) // 2048) * 1,), (),
        )
        yield Candidate(0.0, choice)
        return
    # 4: warps share columns
    if (
        outer * -(-(inner * item) // 512) * 1 <= 2147483647 and align >= 16 and item <= 16
        and sms <= outer * -(-(inner * item) // 512)
    ):
        choice = Choice(
            4, ("columns_whole_sum_columns_ecea2a_16x8_3228e4",),
            (outer * -(-(inner * item) // 512) * 1,), (),
        )
        yield Candidate(0.0, choice)
        return
    # 5: few short columns: a warp has two lanes
    if outer * -(-(inner * item) // 128) * 1 <= 2147483647 and align >= 4 and item <= 4:
        choice = Choice(
            5, ("columns_whole_sum_columns_ecea2a_4x16_4de657",),
            (outer * -(-(inner * item) // 128) * 1,), (),
        )
        yield Candidate(0.0, choice)
        return
    pieces_outer_inner256 = outer * -(-inner // 256)
    # 6: columns at odd addresses
    if pieces_outer_inner256 * 1 <= 2147483647 and (sms * 16 <= pieces_outer_inner32 or n <= 64):
        choice = Choice(
            6, ("columns_whole_sum_columns_ecea2a_0x1_b4434d",), (pieces_outer_inner256 * 1,), (),
        )
        yield Candidate(0.0, choice)
        return
    # 7: columns at odd addresses, warps share them
    if pieces_outer_inner32 * 1 <= 2147483647:
        choice = Choice(
            7, ("columns_whole_sum_columns_ecea2a_0x8_bf7575",), (pieces_outer_inner32 * 1,), (),
        )
        yield Candidate(0.0, choice)
        return
