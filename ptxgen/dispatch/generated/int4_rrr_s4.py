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
    operands = -(-((m + n) * k) // 2)
    stores = -(-(m * n) // 2)
    tiles_32x32 = -(-m // 32) * -(-n // 32)
    # 0: few rows or few outputs
    if k <= 1048064 and align_a >= 16 and align_b >= 16:
        us = time(
            "int4_rrr_s4_32x32x512_8e4cec", "mma8", 1, sms, tiles_32x32 * 1, -(-k // 512 // 1),
            -(-k // 512 // 1) * 524288, -(-(tiles_32x32 * (min(m, 32) + min(n, 32)) * k) // 2),
            operands, stores,
        )
        choice = Choice(
            0, ("int4_rrr_s4_32x32x512_8e4cec",), (min(tiles_32x32, 2147483647) * 1,), (),
        )
        yield Candidate(us, choice)
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    # 1: many outputs
    if k <= 131071 and align_a >= 16 and align_b >= 16:
        us = time(
            "int4_rrr_s4_128x128x256_4e104c", "mma8", 2, sms, tiles_128x128 * 1, -(-k // 256 // 1),
            -(-k // 256 // 1) * 4194304, -(-(tiles_128x128 * (min(m, 128) + min(n, 128)) * k) // 2),
            operands, stores,
        )
        choice = Choice(
            1, ("int4_rrr_s4_128x128x256_4e104c",), (min(tiles_128x128, 2147483647) * 1,), (),
        )
        yield Candidate(us, choice)
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 2: outputs for small tiles
    if k <= 131071 and align_a >= 16 and align_b >= 16:
        us = time(
            "int4_rrr_s4_64x64x256_03cca1", "mma8", 3, sms, tiles_64x64 * 1, -(-k // 256 // 1),
            -(-k // 256 // 1) * 1048576, -(-(tiles_64x64 * (min(m, 64) + min(n, 64)) * k) // 2),
            operands, stores,
        )
        choice = Choice(
            2, ("int4_rrr_s4_64x64x256_03cca1",), (min(tiles_64x64, 2147483647) * 1,), (),
        )
        yield Candidate(us, choice)
    # 3: everything else: any alignment, the longest reductions
    us = time(
        "int4_rrr_s4_64x64x128_3b06ce", "mma8", 1, sms, tiles_64x64 * 1, -(-k // 128 // 1),
        -(-k // 128 // 1) * 524288, -(-(tiles_64x64 * (min(m, 64) + min(n, 64)) * k) // 2),
        operands, stores,
    )
    choice = Choice(3, ("int4_rrr_s4_64x64x128_3b06ce",), (min(tiles_64x64, 2147483647) * 1,), ())
    yield Candidate(us, choice)
