"""Dispatch of NT rows f32 simt: products under the plan 'rows'.

Generated from ptxgen.tiles.TABLES["NT", "rows", "f32", "simt"]; do not edit.
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
    tiles_8x16 = -(-m // 8) * -(-n // 16)
    # 0: chunks apart, by a CTA each
    if (
        stores <= 268435456 and tiles_8x16 * chunks <= 2147483647
        and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "simt_nt_f32_8x16x64_d6077c", "fma", 6, sms, tiles_8x16 * chunks, -(-chunk // 64),
            chunk * 128, tiles_8x16 * k * 96, operands, stores,
        )
        us += time(
            "reduce_f32_128x4_ab14e2", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            0, ("simt_nt_f32_8x16x64_d6077c", "reduce_f32_128x4_ab14e2"),
            (tiles_8x16 * chunks, -(-(m * n) // 512)), (stores,),
        )
        yield Candidate(us, choice)
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 1: chunks apart, by a CTA each
    if (
        stores <= 268435456 and tiles_64x64 * chunks <= 2147483647
        and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "simt_nt_f32_64x64x32_c92b6b", "fma", 2, sms, tiles_64x64 * chunks, -(-chunk // 32),
            chunk * 4096, tiles_64x64 * k * 512, operands, stores,
        )
        us += time(
            "reduce_f32_128x4_ab14e2", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            1, ("simt_nt_f32_64x64x32_c92b6b", "reduce_f32_128x4_ab14e2"),
            (tiles_64x64 * chunks, -(-(m * n) // 512)), (stores,),
        )
        yield Candidate(us, choice)
    tiles_64x128 = -(-m // 64) * -(-n // 128)
    # 2: chunks apart, by a CTA each
    if (
        align_a >= 16 and align_b >= 16 and stores <= 268435456
        and tiles_64x128 * chunks <= 2147483647 and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "simt_nt_f32_64x128x16_fce8ad", "fma", 3, sms, tiles_64x128 * chunks, -(-chunk // 16),
            chunk * 8192, tiles_64x128 * k * 768, operands, stores,
        )
        us += time(
            "reduce_f32_128x4_ab14e2", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            2, ("simt_nt_f32_64x128x16_fce8ad", "reduce_f32_128x4_ab14e2"),
            (tiles_64x128 * chunks, -(-(m * n) // 512)), (stores,),
        )
        yield Candidate(us, choice)
    tiles_32x64 = -(-m // 32) * -(-n // 64)
    # 3: chunks apart, by a CTA each
    if (
        stores <= 268435456 and tiles_32x64 * chunks <= 2147483647
        and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "simt_nt_f32_32x64x16_b8a3af", "fma", 4, sms, tiles_32x64 * chunks, -(-chunk // 16),
            chunk * 2048, tiles_32x64 * k * 384, operands, stores,
        )
        us += time(
            "reduce_f32_128x4_ab14e2", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            3, ("simt_nt_f32_32x64x16_b8a3af", "reduce_f32_128x4_ab14e2"),
            (tiles_32x64 * chunks, -(-(m * n) // 512)), (stores,),
        )
        yield Candidate(us, choice)
    tiles_128x32 = -(-m // 128) * -(-n // 32)
    # 4: chunks of few columns apart, by a CTA each
    if (
        stores <= 268435456 and tiles_128x32 * chunks <= 2147483647
        and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "simt_nt_f32_128x32x32_047ab5", "fma", 3, sms, tiles_128x32 * chunks, -(-chunk // 32),
            chunk * 4096, tiles_128x32 * k * 640, operands, stores,
        )
        us += time(
            "reduce_f32_128x4_ab14e2", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            4, ("simt_nt_f32_128x32x32_047ab5", "reduce_f32_128x4_ab14e2"),
            (tiles_128x32 * chunks, -(-(m * n) // 512)), (stores,),
        )
        yield Candidate(us, choice)
    tiles_128x64 = -(-m // 128) * -(-n // 64)
    # 5: chunks of few columns apart, by a CTA each
    if (
        stores <= 268435456 and tiles_128x64 * chunks <= 2147483647
        and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "simt_nt_f32_128x64x16_04a5e7", "fma", 3, sms, tiles_128x64 * chunks, -(-chunk // 16),
            chunk * 8192, tiles_128x64 * k * 768, operands, stores,
        )
        us += time(
            "reduce_f32_128x4_ab14e2", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            5, ("simt_nt_f32_128x64x16_04a5e7", "reduce_f32_128x4_ab14e2"),
            (tiles_128x64 * chunks, -(-(m * n) // 512)), (stores,),
        )
        yield Candidate(us, choice)
    tiles_2x16 = -(-m // 2) * -(-n // 16)
    tiles_chunk64_chunks8 = -(-chunk // 64) * -(-chunks // 8)
    # 6: few rows, chunks side by side
    if arch in SOME_0 and align_a >= 16 and align_b >= 16 and tiles_2x16 <= 2147483647:
        us = time(
            "simt_nt_f32_2x16x64_23e470", "fma", 1, sms, tiles_2x16, tiles_chunk64_chunks8, k * 32,
            tiles_2x16 * k * 72, operands, stores_1,
        )
        yield Candidate(us, Choice(6, ("simt_nt_f32_2x16x64_23e470",), (tiles_2x16,), ()))
    tiles_2x32 = -(-m // 2) * -(-n // 32)
    tiles_chunk32_chunks8 = -(-chunk // 32) * -(-chunks // 8)
    # 7: few rows, chunks side by side
    if arch in SOME_0 and align_a >= 16 and align_b >= 16 and tiles_2x32 <= 2147483647:
        us = time(
            "simt_nt_f32_2x32x32_1b437a", "fma", 1, sms, tiles_2x32, tiles_chunk32_chunks8, k * 64,
            tiles_2x32 * k * 136, operands, stores_1,
        )
        yield Candidate(us, Choice(7, ("simt_nt_f32_2x32x32_1b437a",), (tiles_2x32,), ()))
    tiles_4x16 = -(-m // 4) * -(-n // 16)
    # 8: few rows, chunks side by side
    if align_a >= 16 and align_b >= 16 and tiles_4x16 <= 2147483647:
        us = time(
            "simt_nt_f32_4x16x32_57a2ed", "fma", 1, sms, tiles_4x16, tiles_chunk32_chunks8, k * 64,
            tiles_4x16 * k * 80, operands, stores_1,
        )
        yield Candidate(us, Choice(8, ("simt_nt_f32_4x16x32_57a2ed",), (tiles_4x16,), ()))
    # 9: few rows, chunks side by side
    if align_a >= 16 and align_b >= 16 and tiles_8x16 <= 2147483647:
        us = time(
            "simt_nt_f32_8x16x32_e280c2", "fma", 1, sms, tiles_8x16, tiles_chunk32_chunks8, k * 128,
            tiles_8x16 * k * 96, operands, stores_1,
        )
        yield Candidate(us, Choice(9, ("simt_nt_f32_8x16x32_e280c2",), (tiles_8x16,), ()))
    tiles_16x16 = -(-m // 16) * -(-n // 16)
    # 10: few rows, chunks side by side
    if arch in SOME_0 and align_a >= 16 and align_b >= 16 and tiles_16x16 <= 2147483647:
        us = time(
            "simt_nt_f32_16x16x32_b53432", "fma", 1, sms, tiles_16x16, tiles_chunk32_chunks8,
            k * 256, tiles_16x16 * k * 128, operands, stores_1,
        )
        yield Candidate(us, Choice(10, ("simt_nt_f32_16x16x32_b53432",), (tiles_16x16,), ()))
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    tiles_chunk8_chunks1 = -(-chunk // 8) * -(-chunks // 1)
    # 11: more rows, chunks side by side or in turns
    if tiles_128x128 <= 2147483647:
        us = time(
            "simt_nt_f32_128x128x8_53a33f", "fma", 2, sms, tiles_128x128, tiles_chunk8_chunks1,
            k * 16384, tiles_128x128 * k * 1024, operands, stores_1,
        )
        yield Candidate(us, Choice(11, ("simt_nt_f32_128x128x8_53a33f",), (tiles_128x128,), ()))
    tiles_1x64 = -(-m // 1) * -(-n // 64)
    # 12: few rows: the weight streams once
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_1x64 <= 2147483647:
        us = time(
            "simt_nt_f32_1x64x64_16bf33", "fma", 1, sms, tiles_1x64, -(-k // 64), k * 64,
            tiles_1x64 * k * 260, operands, stores_1,
        )
        yield Candidate(us, Choice(12, ("simt_nt_f32_1x64x64_16bf33",), (tiles_1x64,), ()))
    tiles_4x128 = -(-m // 4) * -(-n // 128)
    # 13: few rows: the weight streams once
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_4x128 <= 2147483647
    ):
        us = time(
            "simt_nt_f32_4x128x64_65f94d", "fma", 1, sms, tiles_4x128, -(-k // 64), k * 512,
            tiles_4x128 * k * 528, operands, stores_1,
        )
        yield Candidate(us, Choice(13, ("simt_nt_f32_4x128x64_65f94d",), (tiles_4x128,), ()))
    tiles_8x128 = -(-m // 8) * -(-n // 128)
    # 14: few rows: the weight streams once
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_8x128 <= 2147483647
    ):
        us = time(
            "simt_nt_f32_8x128x64_6569b4", "fma", 1, sms, tiles_8x128, -(-k // 64), k * 1024,
            tiles_8x128 * k * 544, operands, stores_1,
        )
        yield Candidate(us, Choice(14, ("simt_nt_f32_8x128x64_6569b4",), (tiles_8x128,), ()))
    tiles_16x128 = -(-m // 16) * -(-n // 128)
    # 15: few rows: the weight streams once
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_16x128 <= 2147483647
    ):
        us = time(
            "simt_nt_f32_16x128x64_cb1c94", "fma", 1, sms, tiles_16x128, -(-k // 64), k * 2048,
            tiles_16x128 * k * 576, operands, stores_1,
        )
        yield Candidate(us, Choice(15, ("simt_nt_f32_16x128x64_cb1c94",), (tiles_16x128,), ()))
    # 16: few rows: the weight streams once
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_32x64 <= 2147483647:
        us = time(
            "simt_nt_f32_32x64x32_fe55c6", "fma", 4, sms, tiles_32x64, -(-k // 32), k * 2048,
            tiles_32x64 * k * 384, operands, stores_1,
        )
        yield Candidate(us, Choice(16, ("simt_nt_f32_32x64x32_fe55c6",), (tiles_32x64,), ()))
    # 17: few rows: the weight streams once
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_16x16 <= 2147483647:
        us = time(
            "simt_nt_f32_16x16x64_25268a", "fma", 3, sms, tiles_16x16, -(-k // 64), k * 256,
            tiles_16x16 * k * 128, operands, stores_1,
        )
        yield Candidate(us, Choice(17, ("simt_nt_f32_16x16x64_25268a",), (tiles_16x16,), ()))
    tiles_8x32 = -(-m // 8) * -(-n // 32)
    # 18: few rows: the weight streams once
    if chunks <= 1 and tiles_8x32 <= 2147483647:
        us = time(
            "simt_nt_f32_8x32x64_0d78f7", "fma", 2, sms, tiles_8x32, -(-k // 64), k * 256,
            tiles_8x32 * k * 160, operands, stores_1,
        )
        yield Candidate(us, Choice(18, ("simt_nt_f32_8x32x64_0d78f7",), (tiles_8x32,), ()))
    # 19: one chain
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_128x128 <= 2147483647:
        us = time(
            "simt_nt_f32_128x128x16_4c223b", "fma", 2, sms, tiles_128x128, -(-k // 16), k * 16384,
            tiles_128x128 * k * 1024, operands, stores_1,
        )
        yield Candidate(us, Choice(19, ("simt_nt_f32_128x128x16_4c223b",), (tiles_128x128,), ()))
    # 20: one chain
    if chunks <= 1 and tiles_128x128 <= 2147483647:
        us = time(
            "simt_nt_f32_128x128x8_f09607", "fma", 2, sms, tiles_128x128, -(-k // 8), k * 16384,
            tiles_128x128 * k * 1024, operands, stores_1,
        )
        yield Candidate(us, Choice(20, ("simt_nt_f32_128x128x8_f09607",), (tiles_128x128,), ()))
    # 21: one chain
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_64x64 <= 2147483647:
        us = time(
            "simt_nt_f32_64x64x16_70a1a6", "fma", 4, sms, tiles_64x64, -(-k // 16), k * 4096,
            tiles_64x64 * k * 512, operands, stores_1,
        )
        yield Candidate(us, Choice(21, ("simt_nt_f32_64x64x16_70a1a6",), (tiles_64x64,), ()))
    # 22: one chain
    if chunks <= 1 and tiles_32x64 <= 2147483647:
        us = time(
            "simt_nt_f32_32x64x16_2f350c", "fma", 4, sms, tiles_32x64, -(-k // 16), k * 2048,
            tiles_32x64 * k * 384, operands, stores_1,
        )
        yield Candidate(us, Choice(22, ("simt_nt_f32_32x64x16_2f350c",), (tiles_32x64,), ()))
    tiles_16x32 = -(-m // 16) * -(-n // 32)
    # 23: one chain
    if chunks <= 1 and tiles_16x32 <= 2147483647:
        us = time(
            "simt_nt_f32_16x32x32_66e169", "fma", 4, sms, tiles_16x32, -(-k // 32), k * 512,
            tiles_16x32 * k * 192, operands, stores_1,
        )
        yield Candidate(us, Choice(23, ("simt_nt_f32_16x32x32_66e169",), (tiles_16x32,), ()))
    tiles_chunk16_chunks1 = -(-chunk // 16) * -(-chunks // 1)
    # 24: everything else: any size, alignment and plan
    us = time(
        "simt_nt_f32_64x64x16_d651fe", "fma", 1, sms, tiles_64x64, tiles_chunk16_chunks1, k * 4096,
        tiles_64x64 * k * 512, operands, stores_1,
    )
    choice = Choice(24, ("simt_nt_f32_64x64x16_d651fe",), (min(tiles_64x64, 2147483647),), ())
    yield Candidate(us, choice)
