"""Dispatch of TN rows f32 simt: products under the plan 'rows'.

Generated from ptxgen.tiles.TABLES["TN", "rows", "f32", "simt"]; do not edit.
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
    operands = (m + n) * k * 4
    stores = chunks * m * n * 4
    stores_1 = m * n * 4
    tiles_8x64 = -(-m // 8) * -(-n // 64)
    # 0: chunks apart, by a CTA each
    if (
        align_a >= 16 and align_b >= 16 and stores <= 268435456
        and tiles_8x64 * chunks <= 2147483647 and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "simt_tn_f32_8x64x32_e06e06", "fma", 1, sms, tiles_8x64 * chunks, -(-chunk // 32),
            chunk * 512, tiles_8x64 * k * 288, operands, stores,
        )
        us += time(
            "reduce_f32_128x4_ab14e2", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            0, ("simt_tn_f32_8x64x32_e06e06", "reduce_f32_128x4_ab14e2"),
            (tiles_8x64 * chunks, -(-(m * n) // 512)), (stores,),
        )
        yield Candidate(us, choice)
    # 1: chunks apart, by a CTA each
    if (
        stores <= 268435456 and tiles_8x64 * chunks <= 2147483647
        and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "simt_tn_f32_8x64x32_09a6cf", "fma", 1, sms, tiles_8x64 * chunks, -(-chunk // 32),
            chunk * 512, tiles_8x64 * k * 288, operands, stores,
        )
        us += time(
            "reduce_f32_128x4_ab14e2", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            1, ("simt_tn_f32_8x64x32_09a6cf", "reduce_f32_128x4_ab14e2"),
            (tiles_8x64 * chunks, -(-(m * n) // 512)), (stores,),
        )
        yield Candidate(us, choice)
    tiles_8x16 = -(-m // 8) * -(-n // 16)
    # 2: chunks apart, by a CTA each
    if (
        stores <= 268435456 and tiles_8x16 * chunks <= 2147483647
        and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "simt_tn_f32_8x16x64_658f7a", "fma", 6, sms, tiles_8x16 * chunks, -(-chunk // 64),
            chunk * 128, tiles_8x16 * k * 96, operands, stores,
        )
        us += time(
            "reduce_f32_128x4_ab14e2", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            2, ("simt_tn_f32_8x16x64_658f7a", "reduce_f32_128x4_ab14e2"),
            (tiles_8x16 * chunks, -(-(m * n) // 512)), (stores,),
        )
        yield Candidate(us, choice)
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 3: chunks apart, by a CTA each
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
            3, ("simt_tn_f32_64x64x32_574e94", "reduce_f32_128x4_ab14e2"),
            (tiles_64x64 * chunks, -(-(m * n) // 512)), (stores,),
        )
        yield Candidate(us, choice)
    tiles_32x64 = -(-m // 32) * -(-n // 64)
    # 4: chunks apart, by a CTA each
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
            4, ("simt_tn_f32_32x64x16_800bb7", "reduce_f32_128x4_ab14e2"),
            (tiles_32x64 * chunks, -(-(m * n) // 512)), (stores,),
        )
        yield Candidate(us, choice)
    # 5: chunks apart, by a CTA each
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
            5, ("simt_tn_f32_32x64x16_82823c", "reduce_f32_128x4_ab14e2"),
            (tiles_32x64 * chunks, -(-(m * n) // 512)), (stores,),
        )
        yield Candidate(us, choice)
    tiles_128x32 = -(-m // 128) * -(-n // 32)
    # 6: chunks of few columns apart, by a CTA each
    if (
        align_a >= 16 and stores <= 268435456 and tiles_128x32 * chunks <= 2147483647
        and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "simt_tn_f32_128x32x32_2b2e7f", "fma", 3, sms, tiles_128x32 * chunks, -(-chunk // 32),
            chunk * 4096, tiles_128x32 * k * 640, operands, stores,
        )
        us += time(
            "reduce_f32_128x4_ab14e2", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            6, ("simt_tn_f32_128x32x32_2b2e7f", "reduce_f32_128x4_ab14e2"),
            (tiles_128x32 * chunks, -(-(m * n) // 512)), (stores,),
        )
        yield Candidate(us, choice)
    tiles_128x64 = -(-m // 128) * -(-n // 64)
    # 7: chunks of few columns apart, by a CTA each
    if (
        align_a >= 16 and stores <= 268435456 and tiles_128x64 * chunks <= 2147483647
        and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "simt_tn_f32_128x64x16_9abd34", "fma", 3, sms, tiles_128x64 * chunks, -(-chunk // 16),
            chunk * 8192, tiles_128x64 * k * 768, operands, stores,
        )
        us += time(
            "reduce_f32_128x4_ab14e2", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            7, ("simt_tn_f32_128x64x16_9abd34", "reduce_f32_128x4_ab14e2"),
            (tiles_128x64 * chunks, -(-(m * n) // 512)), (stores,),
        )
        yield Candidate(us, choice)
    operands_1 = 0 + k * -(-m // 4) * 16
    pieces_k_m4 = k * -(-m // 4)
    # 8: A off 16 bytes: copied first
    if (
        pieces_k_m4 * 16 <= 1073741824 and align_b >= 16 and stores <= 268435456
        and tiles_64x64 * chunks <= 2147483647 and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "realign_b32x1_92a718", "fma", 8, sms, -(-pieces_k_m4 // 512), 1, 0, operands_1,
            operands_1, operands_1,
        )
        us += time(
            "simt_tn_f32_64x64x32_574e94", "fma", 2, sms, tiles_64x64 * chunks, -(-chunk // 32),
            chunk * 4096, tiles_64x64 * k * 512, operands, stores,
        )
        us += time(
            "reduce_f32_128x4_ab14e2", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            8, ("realign_b32x1_92a718", "simt_tn_f32_64x64x32_574e94", "reduce_f32_128x4_ab14e2"),
            (-(-pieces_k_m4 // 512), tiles_64x64 * chunks, -(-(m * n) // 512)),
            (pieces_k_m4 * 16, stores),
        )
        yield Candidate(us, choice)
    tiles_2x32 = -(-m // 2) * -(-n // 32)
    tiles_chunk32_chunks8 = -(-chunk // 32) * -(-chunks // 8)
    # 9: few rows, chunks side by side
    if arch in SOME_0 and align_b >= 16 and tiles_2x32 <= 2147483647:
        us = time(
            "simt_tn_f32_2x32x32_51c42a", "fma", 1, sms, tiles_2x32, tiles_chunk32_chunks8, k * 64,
            tiles_2x32 * k * 136, operands, stores_1,
        )
        yield Candidate(us, Choice(9, ("simt_tn_f32_2x32x32_51c42a",), (tiles_2x32,), ()))
    # 10: few rows, chunks side by side
    if align_b >= 16 and tiles_8x16 <= 2147483647:
        us = time(
            "simt_tn_f32_8x16x32_e823ca", "fma", 1, sms, tiles_8x16, tiles_chunk32_chunks8, k * 128,
            tiles_8x16 * k * 96, operands, stores_1,
        )
        yield Candidate(us, Choice(10, ("simt_tn_f32_8x16x32_e823ca",), (tiles_8x16,), ()))
    tiles_8x32 = -(-m // 8) * -(-n // 32)
    tiles_chunk16_chunks8 = -(-chunk // 16) * -(-chunks // 8)
    # 11: few rows, chunks side by side
    if align_b >= 16 and tiles_8x32 <= 2147483647:
        us = time(
            "simt_tn_f32_8x32x16_98349a", "fma", 1, sms, tiles_8x32, tiles_chunk16_chunks8, k * 256,
            tiles_8x32 * k * 160, operands, stores_1,
        )
        yield Candidate(us, Choice(11, ("simt_tn_f32_8x32x16_98349a",), (tiles_8x32,), ()))
    # 12: few rows: the weight streams once
    if align_b >= 16 and chunks <= 1 and tiles_8x64 <= 2147483647:
        us = time(
            "simt_tn_f32_8x64x64_afe49d", "fma", 1, sms, tiles_8x64, -(-k // 64), k * 512,
            tiles_8x64 * k * 288, operands, stores_1,
        )
        yield Candidate(us, Choice(12, ("simt_tn_f32_8x64x64_afe49d",), (tiles_8x64,), ()))
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    # 13: one chain
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_128x128 <= 2147483647:
        us = time(
            "simt_tn_f32_128x128x32_8712aa", "fma", 2, sms, tiles_128x128, -(-k // 32), k * 16384,
            tiles_128x128 * k * 1024, operands, stores_1,
        )
        yield Candidate(us, Choice(13, ("simt_tn_f32_128x128x32_8712aa",), (tiles_128x128,), ()))
    # 14: one chain
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_64x64 <= 2147483647:
        us = time(
            "simt_tn_f32_64x64x32_67642f", "fma", 4, sms, tiles_64x64, -(-k // 32), k * 4096,
            tiles_64x64 * k * 512, operands, stores_1,
        )
        yield Candidate(us, Choice(14, ("simt_tn_f32_64x64x32_67642f",), (tiles_64x64,), ()))
    # 15: one chain
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_32x64 <= 2147483647:
        us = time(
            "simt_tn_f32_32x64x16_bd82b3", "fma", 4, sms, tiles_32x64, -(-k // 16), k * 2048,
            tiles_32x64 * k * 384, operands, stores_1,
        )
        yield Candidate(us, Choice(15, ("simt_tn_f32_32x64x16_bd82b3",), (tiles_32x64,), ()))
    tiles_16x32 = -(-m // 16) * -(-n // 32)
    # 16: one chain
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_16x32 <= 2147483647:
        us = time(
            "simt_tn_f32_16x32x32_c3e0e2", "fma", 4, sms, tiles_16x32, -(-k // 32), k * 512,
            tiles_16x32 * k * 192, operands, stores_1,
        )
        yield Candidate(us, Choice(16, ("simt_tn_f32_16x32x32_c3e0e2",), (tiles_16x32,), ()))
    # 17: operands off 16 bytes
    if chunks <= 1 and tiles_128x128 <= 2147483647:
        us = time(
            "simt_tn_f32_128x128x8_099abb", "fma", 2, sms, tiles_128x128, -(-k // 8), k * 16384,
            tiles_128x128 * k * 1024, operands, stores_1,
        )
        yield Candidate(us, Choice(17, ("simt_tn_f32_128x128x8_099abb",), (tiles_128x128,), ()))
    # 18: operands off 16 bytes
    if chunks <= 1 and tiles_16x32 <= 2147483647:
        us = time(
            "simt_tn_f32_16x32x32_65cffe", "fma", 4, sms, tiles_16x32, -(-k // 32), k * 512,
            tiles_16x32 * k * 192, operands, stores_1,
        )
        yield Candidate(us, Choice(18, ("simt_tn_f32_16x32x32_65cffe",), (tiles_16x32,), ()))
    tiles_chunk16_chunks1 = -(-chunk // 16) * -(-chunks // 1)
    # 19: everything else: any size, alignment and plan
    us = time(
        "simt_tn_f32_64x64x16_285df9", "fma", 1, sms, tiles_64x64, tiles_chunk16_chunks1, k * 4096,
        tiles_64x64 * k * 512, operands, stores_1,
    )
    choice = Choice(19, ("simt_tn_f32_64x64x16_285df9",), (min(tiles_64x64, 2147483647),), ())
    yield Candidate(us, choice)
