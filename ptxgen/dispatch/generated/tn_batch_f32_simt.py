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
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    # 0: a long batch: a CTA per tile and chunk
    if (
        align_a >= 16 and align_b >= 16 and stores <= 268435456
        and tiles_128x128 * chunks <= 2147483647 and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "simt_tn_f32_128x128x32_8b2b6a", "fma", 2, sms, tiles_128x128 * chunks, -(-chunk // 32),
            chunk * 16384, tiles_128x128 * k * 1024, operands, stores,
        )
        us += time(
            "reduce_f32_128x4_4670b3", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            0, ("simt_tn_f32_128x128x32_8b2b6a", "reduce_f32_128x4_4670b3"),
            (tiles_128x128 * chunks, -(-(m * n) // 512)), (stores,),
        )
        yield Candidate(us, choice)
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 1: a long batch: a CTA per tile and chunk
    if (
        align_a >= 16 and align_b >= 16 and stores <= 268435456
        and tiles_64x64 * chunks <= 2147483647 and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "simt_tn_f32_64x64x32_a73229", "fma", 2, sms, tiles_64x64 * chunks, -(-chunk // 32),
            chunk * 4096, tiles_64x64 * k * 512, operands, stores,
        )
        us += time(
            "reduce_f32_128x4_4670b3", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            1, ("simt_tn_f32_64x64x32_a73229", "reduce_f32_128x4_4670b3"),
            (tiles_64x64 * chunks, -(-(m * n) // 512)), (stores,),
        )
        yield Candidate(us, choice)
    tiles_32x64 = -(-m // 32) * -(-n // 64)
    # 2: a long batch: a CTA per tile and chunk
    if (
        align_a >= 16 and align_b >= 16 and stores <= 268435456
        and tiles_32x64 * chunks <= 2147483647 and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "simt_tn_f32_32x64x16_f1bce6", "fma", 4, sms, tiles_32x64 * chunks, -(-chunk // 16),
            chunk * 2048, tiles_32x64 * k * 384, operands, stores,
        )
        us += time(
            "reduce_f32_128x4_4670b3", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            2, ("simt_tn_f32_32x64x16_f1bce6", "reduce_f32_128x4_4670b3"),
            (tiles_32x64 * chunks, -(-(m * n) // 512)), (stores,),
        )
        yield Candidate(us, choice)
    # 3: a long batch: a CTA per tile and chunk
    if (
        stores <= 268435456 and tiles_32x64 * chunks <= 2147483647
        and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "simt_tn_f32_32x64x16_77f3fb", "fma", 4, sms, tiles_32x64 * chunks, -(-chunk // 16),
            chunk * 2048, tiles_32x64 * k * 384, operands, stores,
        )
        us += time(
            "reduce_f32_128x4_4670b3", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            3, ("simt_tn_f32_32x64x16_77f3fb", "reduce_f32_128x4_4670b3"),
            (tiles_32x64 * chunks, -(-(m * n) // 512)), (stores,),
        )
        yield Candidate(us, choice)
    operands_1 = 0 + k * -(-m // 4) * 16
    pieces_k_m4 = k * -(-m // 4)
    # 4: A off 16 bytes: copied first
    if (
        pieces_k_m4 * 16 <= 268435456 and align_b >= 16 and stores <= 268435456
        and tiles_128x128 * chunks <= 2147483647 and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "realign_b32x1_92a718", "fma", 8, sms, -(-pieces_k_m4 // 512), 1, 0, operands_1,
            operands_1, operands_1,
        )
        us += time(
            "simt_tn_f32_128x128x32_8b2b6a", "fma", 2, sms, tiles_128x128 * chunks, -(-chunk // 32),
            chunk * 16384, tiles_128x128 * k * 1024, operands, stores,
        )
        us += time(
            "reduce_f32_128x4_4670b3", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            4, ("realign_b32x1_92a718", "simt_tn_f32_128x128x32_8b2b6a", "reduce_f32_128x4_4670b3"),
            (-(-pieces_k_m4 // 512), tiles_128x128 * chunks, -(-(m * n) // 512)),
            (pieces_k_m4 * 16, stores),
        )
        yield Candidate(us, choice)
    operands_2 = 0 + k * -(-n // 4) * 16
    pieces_k_n4 = k * -(-n // 4)
    # 5: B off 16 bytes: copied first
    if (
        pieces_k_n4 * 16 <= 268435456 and align_a >= 16 and stores <= 268435456
        and tiles_128x128 * chunks <= 2147483647 and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "realign_b32x1_92a718", "fma", 8, sms, -(-pieces_k_n4 // 512), 1, 0, operands_2,
            operands_2, operands_2,
        )
        us += time(
            "simt_tn_f32_128x128x32_8b2b6a", "fma", 2, sms, tiles_128x128 * chunks, -(-chunk // 32),
            chunk * 16384, tiles_128x128 * k * 1024, operands, stores,
        )
        us += time(
            "reduce_f32_128x4_4670b3", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            5, ("realign_b32x1_92a718", "simt_tn_f32_128x128x32_8b2b6a", "reduce_f32_128x4_4670b3"),
            (-(-pieces_k_n4 // 512), tiles_128x128 * chunks, -(-(m * n) // 512)),
            (pieces_k_n4 * 16, stores),
        )
        yield Candidate(us, choice)
    operands_3 = 0 + k * -(-m // 4) * 16 + k * -(-n // 4) * 16
    # 6: A and B off 16 bytes: copied first
    if (
        pieces_k_m4 * 16 <= 268435456 and pieces_k_n4 * 16 <= 268435456 and stores <= 268435456
        and tiles_128x128 * chunks <= 2147483647 and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "realign_b32x2_89cb89", "fma", 8, sms, -(-pieces_k_m4 // 512) + -(-pieces_k_n4 // 512),
            1, 0, operands_3, operands_3, operands_3,
        )
        us += time(
            "simt_tn_f32_128x128x32_8b2b6a", "fma", 2, sms, tiles_128x128 * chunks, -(-chunk // 32),
            chunk * 16384, tiles_128x128 * k * 1024, operands, stores,
        )
        us += time(
            "reduce_f32_128x4_4670b3", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            6, ("realign_b32x2_89cb89", "simt_tn_f32_128x128x32_8b2b6a", "reduce_f32_128x4_4670b3"),
            (
                -(-pieces_k_m4 // 512) + -(-pieces_k_n4 // 512), tiles_128x128 * chunks,
                -(-(m * n) // 512),
            ), (pieces_k_m4 * 16, pieces_k_n4 * 16, stores),
        )
        yield Candidate(us, choice)
    # 7: A off 16 bytes: copied first
    if (
        pieces_k_m4 * 16 <= 268435456 and align_b >= 16 and chunks <= 1
        and tiles_128x128 <= 2147483647
    ):
        us = time(
            "realign_b32x1_92a718", "fma", 8, sms, -(-pieces_k_m4 // 512), 1, 0, operands_1,
            operands_1, operands_1,
        )
        us += time(
            "simt_tn_f32_128x128x32_a6005b", "fma", 2, sms, tiles_128x128, -(-k // 32), k * 16384,
            tiles_128x128 * k * 1024, operands, stores_1,
        )
        choice = Choice(
            7, ("realign_b32x1_92a718", "simt_tn_f32_128x128x32_a6005b"),
            (-(-pieces_k_m4 // 512), tiles_128x128), (pieces_k_m4 * 16,),
        )
        yield Candidate(us, choice)
    # 8: B off 16 bytes: copied first
    if (
        pieces_k_n4 * 16 <= 268435456 and align_a >= 16 and chunks <= 1
        and tiles_128x128 <= 2147483647
    ):
        us = time(
            "realign_b32x1_92a718", "fma", 8, sms, -(-pieces_k_n4 // 512), 1, 0, operands_2,
            operands_2, operands_2,
        )
        us += time(
            "simt_tn_f32_128x128x32_a6005b", "fma", 2, sms, tiles_128x128, -(-k // 32), k * 16384,
            tiles_128x128 * k * 1024, operands, stores_1,
        )
        choice = Choice(
            8, ("realign_b32x1_92a718", "simt_tn_f32_128x128x32_a6005b"),
            (-(-pieces_k_n4 // 512), tiles_128x128), (pieces_k_n4 * 16,),
        )
        yield Candidate(us, choice)
    # 9: A and B off 16 bytes: copied first
    if (
        pieces_k_m4 * 16 <= 268435456 and pieces_k_n4 * 16 <= 268435456 and chunks <= 1
        and tiles_128x128 <= 2147483647
    ):
        us = time(
            "realign_b32x2_89cb89", "fma", 8, sms, -(-pieces_k_m4 // 512) + -(-pieces_k_n4 // 512),
            1, 0, operands_3, operands_3, operands_3,
        )
        us += time(
            "simt_tn_f32_128x128x32_a6005b", "fma", 2, sms, tiles_128x128, -(-k // 32), k * 16384,
            tiles_128x128 * k * 1024, operands, stores_1,
        )
        choice = Choice(
            9, ("realign_b32x2_89cb89", "simt_tn_f32_128x128x32_a6005b"),
            (-(-pieces_k_m4 // 512) + -(-pieces_k_n4 // 512), tiles_128x128),
            (pieces_k_m4 * 16, pieces_k_n4 * 16),
        )
        yield Candidate(us, choice)
    tiles_64x128 = -(-m // 64) * -(-n // 128)
    # 10: a short batch: stores decide
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_64x128 <= 2147483647:
        us = time(
            "simt_tn_f32_64x128x16_3a16f9", "fma", 4, sms, tiles_64x128, -(-k // 16), k * 8192,
            tiles_64x128 * k * 768, operands, stores_1,
        )
        yield Candidate(us, Choice(10, ("simt_tn_f32_64x128x16_3a16f9",), (tiles_64x128,), ()))
    # 11: one chain
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_128x128 <= 2147483647:
        us = time(
            "simt_tn_f32_128x128x32_a6005b", "fma", 2, sms, tiles_128x128, -(-k // 32), k * 16384,
            tiles_128x128 * k * 1024, operands, stores_1,
        )
        yield Candidate(us, Choice(11, ("simt_tn_f32_128x128x32_a6005b",), (tiles_128x128,), ()))
    # 12: one chain
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_64x64 <= 2147483647:
        us = time(
            "simt_tn_f32_64x64x32_b25768", "fma", 4, sms, tiles_64x64, -(-k // 32), k * 4096,
            tiles_64x64 * k * 512, operands, stores_1,
        )
        yield Candidate(us, Choice(12, ("simt_tn_f32_64x64x32_b25768",), (tiles_64x64,), ()))
    # 13: one chain
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_32x64 <= 2147483647:
        us = time(
            "simt_tn_f32_32x64x16_0d5445", "fma", 4, sms, tiles_32x64, -(-k // 16), k * 2048,
            tiles_32x64 * k * 384, operands, stores_1,
        )
        yield Candidate(us, Choice(13, ("simt_tn_f32_32x64x16_0d5445",), (tiles_32x64,), ()))
    tiles_16x32 = -(-m // 16) * -(-n // 32)
    # 14: one chain
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_16x32 <= 2147483647:
        us = time(
            "simt_tn_f32_16x32x32_610669", "fma", 4, sms, tiles_16x32, -(-k // 32), k * 512,
            tiles_16x32 * k * 192, operands, stores_1,
        )
        yield Candidate(us, Choice(14, ("simt_tn_f32_16x32x32_610669",), (tiles_16x32,), ()))
    # 15: operands off 16 bytes
    if chunks <= 1 and tiles_128x128 <= 2147483647:
        us = time(
            "simt_tn_f32_128x128x8_808899", "fma", 2, sms, tiles_128x128, -(-k // 8), k * 16384,
            tiles_128x128 * k * 1024, operands, stores_1,
        )
        yield Candidate(us, Choice(15, ("simt_tn_f32_128x128x8_808899",), (tiles_128x128,), ()))
    # 16: operands off 16 bytes
    if chunks <= 1 and tiles_16x32 <= 2147483647:
        us = time(
            "simt_tn_f32_16x32x32_da4f05", "fma", 4, sms, tiles_16x32, -(-k // 32), k * 512,
            tiles_16x32 * k * 192, operands, stores_1,
        )
        yield Candidate(us, Choice(16, ("simt_tn_f32_16x32x32_da4f05",), (tiles_16x32,), ()))
    tiles_chunk16_chunks1 = -(-chunk // 16) * -(-chunks // 1)
    # 17: everything else: any size, alignment and plan
    us = time(
        "simt_tn_f32_64x64x16_3be7a4", "fma", 1, sms, tiles_64x64, tiles_chunk16_chunks1, k * 4096,
        tiles_64x64 * k * 512, operands, stores_1,
    )
    choice = Choice(17, ("simt_tn_f32_64x64x16_3be7a4",), (min(tiles_64x64, 2147483647),), ())
    yield Candidate(us, choice)
