"""Dispatch of nf4 NT rows f32 simt: products under the plan 'rows', with NF4 weights.

Generated from ptxgen.tiles.TABLES["nf4", "NT", "rows", "f32", "simt"]; do not edit.
Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time


def candidates(
    arch: str, m: int, n: int, k: int, sms: int, align_a: int, time: Time
) -> Iterator[Candidate]:
    """What can serve a problem, with predicted times."""
    chunk_part_1 = -(-min(-(-k // 8), 1024) // 16) * 16
    chunk = max(1, min(k, chunk_part_1 if n <= 4096 and (1024 if n <= 512 else 2048) <= k else k))
    chunks = -(-k // chunk)
    operands = m * k * 4 + n * k // 2 + n * k // 16
    stores = chunks * m * n * 4
    stores_1 = m * n * 4
    tiles_1x32 = -(-m // 1) * -(-n // 32)
    # 0: few rows: the weight is read as it is stored
    if (
        min(-(-m // 1), 512) * -(-n // 32) * chunks <= 2147483647 and align_a >= 16
        and stores <= 268435456 and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "nf4_nt_f32_1x32_ddd2bb", "fma", 1, sms, tiles_1x32 * chunks, -(-chunk // 8),
            chunk * 32, -(-m // 1) * (n * k // 2 + n * k // 16) + -(-n // 32) * m * k * 4, operands,
            stores,
        )
        us += time(
            "reduce_f32_128x4_ab14e2", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            0, ("nf4_nt_f32_1x32_ddd2bb", "reduce_f32_128x4_ab14e2"),
            (min(-(-m // 1), 512) * -(-n // 32) * chunks, -(-(m * n) // 512)), (stores,),
        )
        yield Candidate(us, choice)
    tiles_4x64 = -(-m // 4) * -(-n // 64)
    # 1: few rows: the weight is read as it is stored
    if (
        min(-(-m // 4), 512) * -(-n // 64) * chunks <= 2147483647 and align_a >= 16
        and stores <= 268435456 and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "nf4_nt_f32_4x64_92cfbd", "fma", 1, sms, tiles_4x64 * chunks, -(-chunk // 8),
            chunk * 256, -(-m // 4) * (n * k // 2 + n * k // 16) + -(-n // 64) * m * k * 4,
            operands, stores,
        )
        us += time(
            "reduce_f32_128x4_ab14e2", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            1, ("nf4_nt_f32_4x64_92cfbd", "reduce_f32_128x4_ab14e2"),
            (min(-(-m // 4), 512) * -(-n // 64) * chunks, -(-(m * n) // 512)), (stores,),
        )
        yield Candidate(us, choice)
    tiles_8x128 = -(-m // 8) * -(-n // 128)
    # 2: few rows: the weight is read as it is stored
    if (
        min(-(-m // 8), 512) * -(-n // 128) * chunks <= 2147483647 and align_a >= 16
        and stores <= 268435456 and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "nf4_nt_f32_8x128_b38e73", "fma", 1, sms, tiles_8x128 * chunks, -(-chunk // 8),
            chunk * 1024, -(-m // 8) * (n * k // 2 + n * k // 16) + -(-n // 128) * m * k * 4,
            operands, stores,
        )
        us += time(
            "reduce_f32_128x4_ab14e2", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            2, ("nf4_nt_f32_8x128_b38e73", "reduce_f32_128x4_ab14e2"),
            (min(-(-m // 8), 512) * -(-n // 128) * chunks, -(-(m * n) // 512)), (stores,),
        )
        yield Candidate(us, choice)
    operands_1 = n * -(-k // 64) * 36
    stores_2 = n * -(-k // 64) * 256
    operands_2 = (m + n) * k * 4
    pieces_n_k64 = n * -(-k // 64)
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 3: the weight dequantised; chunks apart, by a CTA each
    if (
        stores_2 <= 1073741824 and stores <= 268435456 and tiles_64x64 * chunks <= 2147483647
        and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "nf4_f32_bbca54", "fma", 8, sms, -(-(pieces_n_k64 * 8) // 1024), 1, 0, operands_1,
            operands_1, stores_2,
        )
        us += time(
            "simt_nt_f32_64x64x32_c92b6b", "fma", 2, sms, tiles_64x64 * chunks, -(-chunk // 32),
            chunk * 4096, tiles_64x64 * k * 512, operands_2, stores,
        )
        us += time(
            "reduce_f32_128x4_ab14e2", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            3, ("nf4_f32_bbca54", "simt_nt_f32_64x64x32_c92b6b", "reduce_f32_128x4_ab14e2"),
            (-(-(pieces_n_k64 * 8) // 1024), tiles_64x64 * chunks, -(-(m * n) // 512)),
            (stores_2, stores),
        )
        yield Candidate(us, choice)
    tiles_32x64 = -(-m // 32) * -(-n // 64)
    # 4: the weight dequantised; chunks apart, by a CTA each
    if (
        stores_2 <= 1073741824 and stores <= 268435456 and tiles_32x64 * chunks <= 2147483647
        and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "nf4_f32_bbca54", "fma", 8, sms, -(-(pieces_n_k64 * 8) // 1024), 1, 0, operands_1,
            operands_1, stores_2,
        )
        us += time(
            "simt_nt_f32_32x64x16_b8a3af", "fma", 4, sms, tiles_32x64 * chunks, -(-chunk // 16),
            chunk * 2048, tiles_32x64 * k * 384, operands_2, stores,
        )
        us += time(
            "reduce_f32_128x4_ab14e2", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            4, ("nf4_f32_bbca54", "simt_nt_f32_32x64x16_b8a3af", "reduce_f32_128x4_ab14e2"),
            (-(-(pieces_n_k64 * 8) // 1024), tiles_32x64 * chunks, -(-(m * n) // 512)),
            (stores_2, stores),
        )
        yield Candidate(us, choice)
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    tiles_chunk8_chunks1 = -(-chunk // 8) * -(-chunks // 1)
    # 5: the weight dequantised; more rows, chunks side by side or in turns
    if stores_2 <= 1073741824 and tiles_128x128 <= 2147483647:
        us = time(
            "nf4_f32_bbca54", "fma", 8, sms, -(-(pieces_n_k64 * 8) // 1024), 1, 0, operands_1,
            operands_1, stores_2,
        )
        us += time(
            "simt_nt_f32_128x128x8_53a33f", "fma", 2, sms, tiles_128x128, tiles_chunk8_chunks1,
            k * 16384, tiles_128x128 * k * 1024, operands_2, stores_1,
        )
        choice = Choice(
            5, ("nf4_f32_bbca54", "simt_nt_f32_128x128x8_53a33f"),
            (-(-(pieces_n_k64 * 8) // 1024), tiles_128x128), (stores_2,),
        )
        yield Candidate(us, choice)
    # 6: the weight dequantised; few rows: the weight streams once
    if stores_2 <= 1073741824 and align_a >= 16 and chunks <= 1 and tiles_32x64 <= 2147483647:
        us = time(
            "nf4_f32_bbca54", "fma", 8, sms, -(-(pieces_n_k64 * 8) // 1024), 1, 0, operands_1,
            operands_1, stores_2,
        )
        us += time(
            "simt_nt_f32_32x64x32_fe55c6", "fma", 4, sms, tiles_32x64, -(-k // 32), k * 2048,
            tiles_32x64 * k * 384, operands_2, stores_1,
        )
        choice = Choice(
            6, ("nf4_f32_bbca54", "simt_nt_f32_32x64x32_fe55c6"),
            (-(-(pieces_n_k64 * 8) // 1024), tiles_32x64), (stores_2,),
        )
        yield Candidate(us, choice)
    # 7: the weight dequantised; one chain
    if stores_2 <= 1073741824 and align_a >= 16 and chunks <= 1 and tiles_128x128 <= 2147483647:
        us = time(
            "nf4_f32_bbca54", "fma", 8, sms, -(-(pieces_n_k64 * 8) // 1024), 1, 0, operands_1,
            operands_1, stores_2,
        )
        us += time(
            "simt_nt_f32_128x128x16_4c223b", "fma", 2, sms, tiles_128x128, -(-k // 16), k * 16384,
            tiles_128x128 * k * 1024, operands_2, stores_1,
        )
        choice = Choice(
            7, ("nf4_f32_bbca54", "simt_nt_f32_128x128x16_4c223b"),
            (-(-(pieces_n_k64 * 8) // 1024), tiles_128x128), (stores_2,),
        )
        yield Candidate(us, choice)
    # 8: the weight dequantised; one chain
    if stores_2 <= 1073741824 and chunks <= 1 and tiles_128x128 <= 2147483647:
        us = time(
            "nf4_f32_bbca54", "fma", 8, sms, -(-(pieces_n_k64 * 8) // 1024), 1, 0, operands_1,
            operands_1, stores_2,
        )
        us += time(
            "simt_nt_f32_128x128x8_f09607", "fma", 2, sms, tiles_128x128, -(-k // 8), k * 16384,
            tiles_128x128 * k * 1024, operands_2, stores_1,
        )
        choice = Choice(
            8, ("nf4_f32_bbca54", "simt_nt_f32_128x128x8_f09607"),
            (-(-(pieces_n_k64 * 8) // 1024), tiles_128x128), (stores_2,),
        )
        yield Candidate(us, choice)
    # 9: the weight dequantised; one chain
    if stores_2 <= 1073741824 and align_a >= 16 and chunks <= 1 and tiles_64x64 <= 2147483647:
        us = time(
            "nf4_f32_bbca54", "fma", 8, sms, -(-(pieces_n_k64 * 8) // 1024), 1, 0, operands_1,
            operands_1, stores_2,
        )
        us += time(
            "simt_nt_f32_64x64x16_70a1a6", "fma", 4, sms, tiles_64x64, -(-k // 16), k * 4096,
            tiles_64x64 * k * 512, operands_2, stores_1,
        )
        choice = Choice(
            9, ("nf4_f32_bbca54", "simt_nt_f32_64x64x16_70a1a6"),
            (-(-(pieces_n_k64 * 8) // 1024), tiles_64x64), (stores_2,),
        )
        yield Candidate(us, choice)
    # 10: the weight dequantised; one chain
    if stores_2 <= 1073741824 and chunks <= 1 and tiles_32x64 <= 2147483647:
        us = time(
            "nf4_f32_bbca54", "fma", 8, sms, -(-(pieces_n_k64 * 8) // 1024), 1, 0, operands_1,
            operands_1, stores_2,
        )
        us += time(
            "simt_nt_f32_32x64x16_2f350c", "fma", 4, sms, tiles_32x64, -(-k // 16), k * 2048,
            tiles_32x64 * k * 384, operands_2, stores_1,
        )
        choice = Choice(
            10, ("nf4_f32_bbca54", "simt_nt_f32_32x64x16_2f350c"),
            (-(-(pieces_n_k64 * 8) // 1024), tiles_32x64), (stores_2,),
        )
        yield Candidate(us, choice)
    tiles_chunk16_chunks1 = -(-chunk // 16) * -(-chunks // 1)
    # 11: the weight dequantised; everything else: any size, alignment and plan
    if stores_2 <= 1073741824:
        us = time(
            "nf4_f32_bbca54", "fma", 8, sms, -(-(pieces_n_k64 * 8) // 1024), 1, 0, operands_1,
            operands_1, stores_2,
        )
        us += time(
            "simt_nt_f32_64x64x16_d651fe", "fma", 1, sms, tiles_64x64, tiles_chunk16_chunks1,
            k * 4096, tiles_64x64 * k * 512, operands_2, stores_1,
        )
        choice = Choice(
            11, ("nf4_f32_bbca54", "simt_nt_f32_64x64x16_d651fe"),
            (-(-(pieces_n_k64 * 8) // 1024), min(tiles_64x64, 2147483647)), (stores_2,),
        )
        yield Candidate(us, choice)
