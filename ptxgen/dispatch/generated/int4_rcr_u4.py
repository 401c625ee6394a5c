"""Dispatch of int4 rcr u4: products of u4.

Generated from ptxgen.tiles.TABLES["int4", "rcr", "u4"]; do not edit.
Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time


def candidates(
    arch: str, m: int, n: int, k: int, sms: int, align_a: int, align_b: int, time: Time
) -> Iterator[Candidate]:
    """What can serve a problem, with predicted times."""
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    tiles_32x32 = -(-m // 32) * -(-n // 32)
    # 0: few rows or few outputs
    if align_a >= 16 and align_b >= 16 and (m <= 32 or tiles_64x64 < sms):
        choice = Choice(
            0, ("int4_rcr_u4_32x32x512_4637d4",), (min(tiles_32x32, 2147483647) * 1,), (),
        )
        yield Candidate(0.0, choice)
        return
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    # 1: many outputs
    if align_a >= 16 and align_b >= 16 and sms <= tiles_128x128:
        choice = Choice(
            1, ("int4_rcr_u4_128x128x256_2b60ce",), (min(tiles_128x128, 2147483647) * 1,), (),
        )
        yield Candidate(0.0, choice)
        return
    # 2: outputs for small tiles
    if align_a >= 16 and align_b >= 16:
        choice = Choice(
            2, ("int4_rcr_u4_64x64x256_c33a13",), (min(tiles_64x64, 2147483647) * 1,), (),
        )
        yield Candidate(0.0, choice)
        return
    # 3: everything else: any alignment, the longest reductions
    choice = Choice(3, ("int4_rcr_u4_64x64x128_1fbe2e",), (min(tiles_64x64, 2147483647) * 1,), ())
    yield Candidate(0.0, choice)
