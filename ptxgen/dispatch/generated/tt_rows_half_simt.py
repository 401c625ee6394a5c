"""Dispatch of TT rows half simt: products under the plan 'rows'.

Generated from ptxgen.tiles.TABLES["TT", "rows", "half", "simt"]; do not edit.
Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time

SOME_0 = frozenset(("sm_80", "sm_87", "sm_90", "sm_100", "sm_103", "sm_110"))


def candidates(
    arch: str, m: int, n: int, k: int, sms: int, align_a: int, align_b: int, time: Time
) -> Iterator[Candidate]:
    """What can serve a problem, with predicted times."""
    chunk_part_1 = -(-min(-(-k // 8), 1024) // 16) * 16
    chunk = max(1, min(k, chunk_part_1 if n <= 4096 and (1024 if n <= 512 else 2048) <= k else k))
    chunks = -(-k // chunk)
    operands = (m + n) * k * 2
    stores = m * n * 2
    tiles_8x32 = -(-m // 8) * -(-n // 32)
    tiles_chunk64_chunks8 = -(-chunk // 64) * -(-chunks // 8)
    # 0: chunks side by side
    if arch in SOME_0 and align_b >= 16 and tiles_8x32 <= 2147483647:
        us = time(
            "simt_tt_bf16_8x32x64_8362de", "fma", 1, sms, tiles_8x32, tiles_chunk64_chunks8,
            k * 256, tiles_8x32 * k * 80, operands, stores,
        )
        yield Candidate(us, Choice(0, ("simt_tt_bf16_8x32x64_8362de",), (tiles_8x32,), ()))
    tiles_32x64 = -(-m // 32) * -(-n // 64)
    tiles_chunk16_chunks8 = -(-chunk // 16) * -(-chunks // 8)
    # 1: chunks side by side
    if arch in SOME_0 and align_a >= 8 and align_b >= 8 and tiles_32x64 <= 2147483647:
        us = time(
            "simt_tt_bf16_32x64x16_48ee86", "fma", 1, sms, tiles_32x64, tiles_chunk16_chunks8,
            k * 2048, tiles_32x64 * k * 192, operands, stores,
        )
        yield Candidate(us, Choice(1, ("simt_tt_bf16_32x64x16_48ee86",), (tiles_32x64,), ()))
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    # 2: one chain
    if align_a >= 8 and align_b >= 8 and chunks <= 1 and tiles_128x128 <= 2147483647:
        us = time(
            "simt_tt_bf16_128x128x16_6ef81d", "fma", 2, sms, tiles_128x128, -(-k // 16), k * 16384,
            tiles_128x128 * k * 512, operands, stores,
        )
        yield Candidate(us, Choice(2, ("simt_tt_bf16_128x128x16_6ef81d",), (tiles_128x128,), ()))
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    tiles_chunk16_chunks1 = -(-chunk // 16) * -(-chunks // 1)
    # 3: everything else: any size, alignment and plan
    us = time(
        "simt_tt_bf16_64x64x16_54a60c", "fma", 1, sms, tiles_64x64, tiles_chunk16_chunks1, k * 4096,
        tiles_64x64 * k * 256, operands, stores,
    )
    choice = Choice(3, ("simt_tt_bf16_64x64x16_54a60c",), (min(tiles_64x64, 2147483647),), ())
    yield Candidate(us, choice)
