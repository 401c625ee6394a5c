"""Dispatch of TT rows f64 simt: products under the plan 'rows'.

Generated from ptxgen.tiles.TABLES["TT", "rows", "f64", "simt"]; do not edit.
Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time

SOME_0 = frozenset(("sm_90",))


def candidates(
    arch: str, m: int, n: int, k: int, sms: int, align_a: int, align_b: int, time: Time
) -> Iterator[Candidate]:
    """What can serve a problem, with predicted times."""
    chunk = max(1, min(k, -(-k // 64) * 16 if n <= 2048 and k >= 2048 else k))
    chunks = -(-k // chunk)
    operands = (m + n) * k * 8
    stores = m * n * 8
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 0: chunks side by side, or one after another
    if arch in SOME_0 and align_a >= 16 and align_b >= 16 and tiles_64x64 <= 2147483647:
        us = time(
            "f64_tt_f64_64x64x16_44441e", "mma64", 2, sms, tiles_64x64, -(-k // 16), k * 4096,
            tiles_64x64 * k * 1024, operands, stores,
        )
        yield Candidate(us, Choice(0, ("f64_tt_f64_64x64x16_44441e",), (tiles_64x64,), ()))
    tiles_32x32 = -(-m // 32) * -(-n // 32)
    # 1: chunks side by side, or one after another
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and chunks <= 4 and tiles_32x32 * 4 <= 2147483647
    ):
        us = time(
            "f64_tt_f64_32x32x32_949209", "mma64", 2, sms, tiles_32x32 * chunks, -(-chunk // 32),
            chunk * 1024, tiles_32x32 * k * 512, operands, stores,
        )
        yield Candidate(us, Choice(1, ("f64_tt_f64_32x32x32_949209",), (tiles_32x32 * 4,), ()))
    # 2: one chain
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_64x64 <= 2147483647
    ):
        us = time(
            "f64_tt_f64_64x64x16_47dedb", "mma64", 2, sms, tiles_64x64, -(-k // 16), k * 4096,
            tiles_64x64 * k * 1024, operands, stores,
        )
        yield Candidate(us, Choice(2, ("f64_tt_f64_64x64x16_47dedb",), (tiles_64x64,), ()))
    # 3: one chain
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_32x32 <= 2147483647
    ):
        us = time(
            "f64_tt_f64_32x32x32_9687e0", "mma64", 2, sms, tiles_32x32, -(-k // 32), k * 1024,
            tiles_32x32 * k * 512, operands, stores,
        )
        yield Candidate(us, Choice(3, ("f64_tt_f64_32x32x32_9687e0",), (tiles_32x32,), ()))
    # 4: operands off 16 bytes
    if arch in SOME_0 and tiles_64x64 <= 2147483647:
        us = time(
            "f64_tt_f64_64x64x16_8a13fd", "mma64", 2, sms, tiles_64x64, -(-k // 16), k * 4096,
            tiles_64x64 * k * 1024, operands, stores,
        )
        yield Candidate(us, Choice(4, ("f64_tt_f64_64x64x16_8a13fd",), (tiles_64x64,), ()))
    # 5: operands off 16 bytes
    if arch in SOME_0 and tiles_32x32 <= 2147483647:
        us = time(
            "f64_tt_f64_32x32x32_0ad25e", "mma64", 2, sms, tiles_32x32, -(-k // 32), k * 1024,
            tiles_32x32 * k * 512, operands, stores,
        )
        yield Candidate(us, Choice(5, ("f64_tt_f64_32x32x32_0ad25e",), (tiles_32x32,), ()))
    tiles_128x64 = -(-m // 128) * -(-n // 64)
    # 6: FMA units, one chain
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_128x64 <= 2147483647:
        us = time(
            "f64_tt_f64_128x64x16_2277ad", "fma64", 1, sms, tiles_128x64, -(-k // 16), k * 8192,
            tiles_128x64 * k * 1536, operands, stores,
        )
        yield Candidate(us, Choice(6, ("f64_tt_f64_128x64x16_2277ad",), (tiles_128x64,), ()))
    tiles_64x32 = -(-m // 64) * -(-n // 32)
    # 7: everything else: any size, alignment and plan
    us = time(
        "f64_tt_f64_64x32x16_40d332", "fma64", 3, sms, tiles_64x32, -(-k // 16), k * 2048,
        tiles_64x32 * k * 768, operands, stores,
    )
    choice = Choice(7, ("f64_tt_f64_64x32x16_40d332",), (min(tiles_64x32, 2147483647),), ())
    yield Candidate(us, choice)
