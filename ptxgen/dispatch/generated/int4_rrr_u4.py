"""Dispatch of int4 rrr u4: products of u4.

Generated from ptxgen.tiles.TABLES["int4", "rrr", "u4"]; do not edit.
Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time

SOME_0 = frozenset(("sm_90",))


def candidates(
    arch: str, m: int, n: int, k: int, sms: int, align_a: int, align_b: int, time: Time
) -> Iterator[Candidate]:
    """What can serve a problem, with predicted times."""
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    tiles_32x32 = -(-m // 32) * -(-n // 32)
    # 0: few rows or few outputs
    if align_a >= 16 and align_b >= 16 and (m <= 32 or tiles_64x64 < sms):
        choice = Choice(0, ("int4_rrr_u4_32x32x512_d38455",), (min(tiles_32x32, 2147483647),), ())
        yield Candidate(0.0, choice)
        return
    tiles_256x256 = -(-m // 256) * -(-n // 256)
    tiles_128x256 = -(-m // 128) * -(-n // 256)
    pieces_m_k16 = m * -(-k // 16)
    tiles_k128_n128 = -(-k // 128) * -(-n // 128)
    # 1: many outputs: unpacked first
    if (
        arch in SOME_0
        and m * (max(-(-k // 128), 1) * 128) <= 1073741824
        and n * (max(-(-k // 128), 1) * 128) <= 1073741824 and sms >= 2 and m + 256 <= 2147483647
        and n + 256 <= 2147483647 and tiles_256x256 + sms // 2 <= 4294967295 and m >= 512
        and sms <= tiles_128x256
    ):
        choice = Choice(
            1, ("unpack_turned_u4_d6403e", "int8_u4_128x256x128_2ed135"),
            (-(-(pieces_m_k16 * 1) // 1024) + tiles_k128_n128, min(tiles_256x256, sms // 2) * 2),
            (m * (max(-(-k // 128), 1) * 128), n * (max(-(-k // 128), 1) * 128)),
        )
        yield Candidate(0.0, choice)
        return
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    # 2: many outputs
    if align_a >= 16 and align_b >= 16 and sms <= tiles_128x128:
        choice = Choice(
            2, ("int4_rrr_u4_128x128x256_a31230",), (min(tiles_128x128, 2147483647),), (),
        )
        yield Candidate(0.0, choice)
        return
    # 3: outputs for small tiles
    if align_a >= 16 and align_b >= 16:
        choice = Choice(3, ("int4_rrr_u4_64x64x256_3cedea",), (min(tiles_64x64, 2147483647),), ())
        yield Candidate(0.0, choice)
        return
    # 4: everything else: any alignment, the longest reductions
    choice = Choice(4, ("int4_rrr_u4_64x64x128_0899b0",), (min(tiles_64x64, 2147483647),), ())
    yield Candidate(0.0, choice)
