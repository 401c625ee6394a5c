"""Dispatch of int4 rrr s4: products of s4.

Generated from ptxgen.tiles.TABLES["int4", "rrr", "s4"]; do not edit.
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
    if k <= 1048064 and align_a >= 16 and align_b >= 16 and (m <= 32 or tiles_64x64 < sms):
        choice = Choice(
            0, ("int4_rrr_s4_32x32x512_8e4cec",), (min(tiles_32x32, 2147483647) * 1,), (),
        )
        yield Candidate(0.0, choice)
        return
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    # 1: many outputs
    if k <= 131071 and align_a >= 16 and align_b >= 16 and sms <= tiles_128x128:
        choice = Choice(
            1, ("int4_rrr_s4_128x128x256_4e104c",), (min(tiles_128x128, 2147483647) * 1,), (),
        )
        yield Candidate(0.0, choice)
        return
    # 2: outputs for small tiles
    if k <= 131071 and align_a >= 16 and align_b >= 16:
        choice = Choice(
            2, ("int4_rrr_s4_64x64x256_03cca1",), (min(tiles_64x64, 2147483647) * 1,), (),
        )
        yield Candidate(0.0, choice)
        return
    # 3: everything else: any alignment, the longest reductions
    choice = Choice(3, ("int4_rrr_s4_64x64x128_3b06ce",), (min(tiles_64x64, 2147483647) * 1,), ())
    yield Candidate(0.0, choice)
