"""Dispatch of TN batch half simt: products under the plan 'batch'.

Generated from ptxgen.tiles.TABLES["TN", "batch", "half", "simt"]; do not edit.
Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time


def candidates(
    arch: str, m: int, n: int, k: int, sms: int, align_a: int, align_b: int, time: Time
) -> Iterator[Candidate]:
    """What can serve a problem, with predicted times."""
    chunk_part_1 = -(-k // min(max(16777216 // (m * n), 1), 128))
    chunk = max(1, min(k, -(-max(chunk_part_1, min(max(m * n // 512, 128), 1024)) // 16) * 16))
    chunks = -(-k // chunk)
    operands = (m + n) * k * 2
    stores = chunks * m * n * 4
    stores_1 = m * n * 2
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 0: a long batch: a CTA per tile and chunk
    if (
        align_a >= 8 and align_b >= 8 and stores <= 268435456 and tiles_64x64 * chunks <= 2147483647
        and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "simt_tn_bf16_64x64x16_621da8", "fma", 4, sms, tiles_64x64 * chunks, -(-chunk // 16),
            chunk * 4096, tiles_64x64 * k * 256, operands, stores,
        )
        us += time(
            "reduce_bf16_128x4_3764c0", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            0, ("simt_tn_bf16_64x64x16_621da8", "reduce_bf16_128x4_3764c0"),
            (tiles_64x64 * chunks, -(-(m * n) // 512)), (stores,),
        )
        yield Candidate(us, choice)
    tiles_32x64 = -(-m // 32) * -(-n // 64)
    # 1: a long batch: a CTA per tile and chunk
    if (
        stores <= 268435456 and tiles_32x64 * chunks <= 2147483647
        and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "simt_tn_bf16_32x64x16_619d53", "fma", 4, sms, tiles_32x64 * chunks, -(-chunk // 16),
            chunk * 2048, tiles_32x64 * k * 192, operands, stores,
        )
        us += time(
            "reduce_bf16_128x4_3764c0", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            1, ("simt_tn_bf16_32x64x16_619d53", "reduce_bf16_128x4_3764c0"),
            (tiles_32x64 * chunks, -(-(m * n) // 512)), (stores,),
        )
        yield Candidate(us, choice)
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    # 2: one chain
    if align_a >= 8 and align_b >= 8 and chunks <= 1 and tiles_128x128 <= 2147483647:
        us = time(
            "simt_tn_bf16_128x128x16_0071bc", "fma", 2, sms, tiles_128x128, -(-k // 16), k * 16384,
            tiles_128x128 * k * 512, operands, stores_1,
        )
        yield Candidate(us, Choice(2, ("simt_tn_bf16_128x128x16_0071bc",), (tiles_128x128,), ()))
    # 3: one chain
    if align_a >= 8 and align_b >= 8 and chunks <= 1 and tiles_64x64 <= 2147483647:
        us = time(
            "simt_tn_bf16_64x64x16_a5d13d", "fma", 4, sms, tiles_64x64, -(-k // 16), k * 4096,
            tiles_64x64 * k * 256, operands, stores_1,
        )
        yield Candidate(us, Choice(3, ("simt_tn_bf16_64x64x16_a5d13d",), (tiles_64x64,), ()))
    tiles_16x32 = -(-m // 16) * -(-n // 32)
    # 4: one chain
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_16x32 <= 2147483647:
        us = time(
            "simt_tn_bf16_16x32x64_59631a", "fma", 4, sms, tiles_16x32, -(-k // 64), k * 512,
            tiles_16x32 * k * 96, operands, stores_1,
        )
        yield Candidate(us, Choice(4, ("simt_tn_bf16_16x32x64_59631a",), (tiles_16x32,), ()))
    tiles_chunk16_chunks1 = -(-chunk // 16) * -(-chunks // 1)
    # 5: everything else: any size, alignment and plan
    us = time(
        "simt_tn_bf16_64x64x16_47c955", "fma", 1, sms, tiles_64x64, tiles_chunk16_chunks1, k * 4096,
        tiles_64x64 * k * 256, operands, stores_1,
    )
    choice = Choice(5, ("simt_tn_bf16_64x64x16_47c955",), (min(tiles_64x64, 2147483647),), ())
    yield Candidate(us, choice)
