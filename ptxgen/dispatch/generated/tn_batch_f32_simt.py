"""Dispatch of TN batch f32 simt: products under the plan 'batch'.

Generated from ptxgen.tiles.TABLES["TN", "batch", "f32", "simt"]; do not edit.
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
    operands = (m + n) * k * 4
    stores = chunks * m * n * 4
    stores_1 = m * n * 4
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 0: a long batch: a CTA per tile and chunk
    if (
        align_a >= 16 and align_b >= 16 and stores <= 268435456
        and tiles_64x64 * chunks <= 2147483647 and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "simt_tn_f32_64x64x32_574e94", "fma", 2, sms, tiles_64x64 * chunks, -(-chunk // 32),
            chunk * 4096, tiles_64x64 * k * 512, operands, stores,
        )
        us += time(
            "reduce_f32_128x4_ab14e2", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            0, ("simt_tn_f32_64x64x32_574e94", "reduce_f32_128x4_ab14e2"),
            (tiles_64x64 * chunks, -(-(m * n) // 512)), (stores,),
        )
        yield Candidate(us, choice)
    tiles_32x64 = -(-m // 32) * -(-n // 64)
    # 1: a long batch: a CTA per tile and chunk
    if (
        align_a >= 16 and align_b >= 16 and stores <= 268435456
        and tiles_32x64 * chunks <= 2147483647 and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "simt_tn_f32_32x64x16_800bb7", "fma", 4, sms, tiles_32x64 * chunks, -(-chunk // 16),
            chunk * 2048, tiles_32x64 * k * 384, operands, stores,
        )
        us += time(
            "reduce_f32_128x4_ab14e2", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            1, ("simt_tn_f32_32x64x16_800bb7", "reduce_f32_128x4_ab14e2"),
            (tiles_32x64 * chunks, -(-(m * n) // 512)), (stores,),
        )
        yield Candidate(us, choice)
    # 2: a long batch: a CTA per tile and chunk
    if (
        stores <= 268435456 and tiles_32x64 * chunks <= 2147483647
        and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "simt_tn_f32_32x64x16_82823c", "fma", 4, sms, tiles_32x64 * chunks, -(-chunk // 16),
            chunk * 2048, tiles_32x64 * k * 384, operands, stores,
        )
        us += time(
            "reduce_f32_128x4_ab14e2", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            2, ("simt_tn_f32_32x64x16_82823c", "reduce_f32_128x4_ab14e2"),
            (tiles_32x64 * chunks, -(-(m * n) // 512)), (stores,),
        )
        yield Candidate(us, choice)
    tiles_64x128 = -(-m // 64) * -(-n // 128)
    # 3: a short batch: stores decide
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_64x128 <= 2147483647:
        us = time(
            "simt_tn_f32_64x128x16_6468d5", "fma", 4, sms, tiles_64x128, -(-k // 16), k * 8192,
            tiles_64x128 * k * 768, operands, stores_1,
        )
        yield Candidate(us, Choice(3, ("simt_tn_f32_64x128x16_6468d5",), (tiles_64x128,), ()))
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    # 4: one chain
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_128x128 <= 2147483647:
        us = time(
            "simt_tn_f32_128x128x32_8712aa", "fma", 2, sms, tiles_128x128, -(-k // 32), k * 16384,
            tiles_128x128 * k * 1024, operands, stores_1,
        )
        yield Candidate(us, Choice(4, ("simt_tn_f32_128x128x32_8712aa",), (tiles_128x128,), ()))
    # 5: one chain
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_64x64 <= 2147483647:
        us = time(
            "simt_tn_f32_64x64x32_67642f", "fma", 4, sms, tiles_64x64, -(-k // 32), k * 4096,
            tiles_64x64 * k * 512, operands, stores_1,
        )
        yield Candidate(us, Choice(5, ("simt_tn_f32_64x64x32_67642f",), (tiles_64x64,), ()))
    # 6: one chain
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_32x64 <= 2147483647:
        us = time(
            "simt_tn_f32_32x64x16_bd82b3", "fma", 4, sms, tiles_32x64, -(-k // 16), k * 2048,
            tiles_32x64 * k * 384, operands, stores_1,
        )
        yield Candidate(us, Choice(6, ("simt_tn_f32_32x64x16_bd82b3",), (tiles_32x64,), ()))
    tiles_16x32 = -(-m // 16) * -(-n // 32)
    # 7: one chain
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_16x32 <= 2147483647:
        us = time(
            "simt_tn_f32_16x32x32_c3e0e2", "fma", 4, sms, tiles_16x32, -(-k // 32), k * 512,
            tiles_16x32 * k * 192, operands, stores_1,
        )
        yield Candidate(us, Choice(7, ("simt_tn_f32_16x32x32_c3e0e2",), (tiles_16x32,), ()))
    # 8: operands off 16 bytes
    if chunks <= 1 and tiles_128x128 <= 2147483647:
        us = time(
            "simt_tn_f32_128x128x8_099abb", "fma", 2, sms, tiles_128x128, -(-k // 8), k * 16384,
            tiles_128x128 * k * 1024, operands, stores_1,
        )
        yield Candidate(us, Choice(8, ("simt_tn_f32_128x128x8_099abb",), (tiles_128x128,), ()))
    # 9: operands off 16 bytes
    if chunks <= 1 and tiles_16x32 <= 2147483647:
        us = time(
            "simt_tn_f32_16x32x32_65cffe", "fma", 4, sms, tiles_16x32, -(-k // 32), k * 512,
            tiles_16x32 * k * 192, operands, stores_1,
        )
        yield Candidate(us, Choice(9, ("simt_tn_f32_16x32x32_65cffe",), (tiles_16x32,), ()))
    tiles_chunk16_chunks1 = -(-chunk // 16) * -(-chunks // 1)
    # 10: everything else: any size, alignment and plan
    us = time(
        "simt_tn_f32_64x64x16_285df9", "fma", 1, sms, tiles_64x64, tiles_chunk16_chunks1, k * 4096,
        tiles_64x64 * k * 512, operands, stores_1,
    )
    choice = Choice(10, ("simt_tn_f32_64x64x16_285df9",), (min(tiles_64x64, 2147483647),), ())
    yield Candidate(us, choice)
