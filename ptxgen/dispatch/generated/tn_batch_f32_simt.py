"""Dispatch of TN batch f32 simt: products under the plan 'batch'.

Generated from ptxgen.tiles.TABLES["TN", "batch", "f32", "simt"]; do not edit.
Regenerate: ptxgen generate
"""

from ptxgen.dispatch.choice import Choice, Dispatch


def sm_80(m: int, n: int, k: int, sms: int, align_a: int, align_b: int) -> Choice | None:
    """For sm_80, sm_86, sm_87, sm_89, sm_90, sm_100, sm_103, sm_110, sm_120, sm_121."""
    chunk_part_1 = -(-k // min(max(16777216 // (m * n), 1), 128))
    chunk = max(1, min(k, -(-max(chunk_part_1, min(max(m * n // 512, 128), 1024)) // 16) * 16))
    chunks = -(-k // chunk)
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    # 0: large outputs, long batch
    if (
        align_a >= 16 and align_b >= 16 and chunks * m * n * 4 <= 268435456
        and tiles_128x128 * chunks <= 2147483647 and -(-(m * n) // 512) <= 2147483647 and chunks > 1
        and sms * 6 <= tiles_128x128 * chunks
    ):
        return Choice(
            0, ("simt_tn_f32_128x128x32_8b2b6a", "reduce_f32_128x4_4670b3"),
            (tiles_128x128 * chunks, -(-(m * n) // 512)), (chunks * m * n * 4,),
        )
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 1: middling outputs, long batch
    if (
        align_a >= 16 and align_b >= 16 and chunks * m * n * 4 <= 268435456
        and tiles_64x64 * chunks <= 2147483647 and -(-(m * n) // 512) <= 2147483647 and chunks > 1
        and sms * 4 <= tiles_64x64 * 4
    ):
        return Choice(
            1, ("simt_tn_f32_64x64x32_a73229", "reduce_f32_128x4_4670b3"),
            (tiles_64x64 * chunks, -(-(m * n) // 512)), (chunks * m * n * 4,),
        )
    tiles_32x64 = -(-m // 32) * -(-n // 64)
    # 2: few outputs, long batch: a CTA per tile and chunk
    if (
        align_a >= 16 and align_b >= 16 and chunks * m * n * 4 <= 268435456
        and tiles_32x64 * chunks <= 2147483647 and -(-(m * n) // 512) <= 2147483647 and chunks > 1
    ):
        return Choice(
            2, ("simt_tn_f32_32x64x16_f1bce6", "reduce_f32_128x4_4670b3"),
            (tiles_32x64 * chunks, -(-(m * n) // 512)), (chunks * m * n * 4,),
        )
    pieces_k_m4 = k * -(-m // 4)
    # 3: A off 16 bytes: copied, since the product is much more work
    if (
        pieces_k_m4 * 16 <= 268435456 and align_b >= 16 and chunks * m * n * 4 <= 268435456
        and tiles_128x128 * chunks <= 2147483647 and -(-(m * n) // 512) <= 2147483647
        and m * n * k >= 268435456 and sms * 24 <= tiles_128x128 * 4 and align_a < 16 and n >= 256
    ):
        return Choice(
            3, ("realign_b32x1_92a718", "simt_tn_f32_128x128x32_8b2b6a", "reduce_f32_128x4_4670b3"),
            (-(-pieces_k_m4 // 512), tiles_128x128 * chunks, -(-(m * n) // 512)),
            (pieces_k_m4 * 16, chunks * m * n * 4), "realign_a+simt_tn_f32_128x128x32_8b2b6a",
        )
    pieces_k_n4 = k * -(-n // 4)
    # 4: B off 16 bytes: copied, since the product is much more work
    if (
        pieces_k_n4 * 16 <= 268435456 and align_a >= 16 and chunks * m * n * 4 <= 268435456
        and tiles_128x128 * chunks <= 2147483647 and -(-(m * n) // 512) <= 2147483647
        and m * n * k >= 268435456 and sms * 24 <= tiles_128x128 * 4 and align_b < 16 and m >= 256
    ):
        return Choice(
            4, ("realign_b32x1_92a718", "simt_tn_f32_128x128x32_8b2b6a", "reduce_f32_128x4_4670b3"),
            (-(-pieces_k_n4 // 512), tiles_128x128 * chunks, -(-(m * n) // 512)),
            (pieces_k_n4 * 16, chunks * m * n * 4), "realign_b+simt_tn_f32_128x128x32_8b2b6a",
        )
    # 5: A and B off 16 bytes: copied, since the product is much more work
    if (
        pieces_k_m4 * 16 <= 268435456 and pieces_k_n4 * 16 <= 268435456
        and chunks * m * n * 4 <= 268435456 and tiles_128x128 * chunks <= 2147483647
        and -(-(m * n) // 512) <= 2147483647 and m * n * k >= 268435456
        and sms * 24 <= tiles_128x128 * 4 and align_a < 16 and align_b < 16 and n >= 256
        and m >= 256
    ):
        return Choice(
            5, ("realign_b32x2_89cb89", "simt_tn_f32_128x128x32_8b2b6a", "reduce_f32_128x4_4670b3"),
            (
                -(-pieces_k_m4 // 512) + -(-pieces_k_n4 // 512), tiles_128x128 * chunks,
                -(-(m * n) // 512),
            ), (pieces_k_m4 * 16, pieces_k_n4 * 16, chunks * m * n * 4),
            "realign_ab+simt_tn_f32_128x128x32_8b2b6a",
        )
    # 6: A off 16 bytes: copied, since the product is much more work
    if (
        pieces_k_m4 * 16 <= 268435456 and align_b >= 16 and chunks <= 1
        and tiles_128x128 <= 2147483647 and m * n * k >= 268435456 and sms * 6 <= tiles_128x128 * 4
        and align_a < 16 and n >= 256
    ):
        return Choice(
            6, ("realign_b32x1_92a718", "simt_tn_f32_128x128x32_a6005b"),
            (-(-pieces_k_m4 // 512), tiles_128x128), (pieces_k_m4 * 16,),
            "realign_a+simt_tn_f32_128x128x32_a6005b",
        )
    # 7: B off 16 bytes: copied, since the product is much more work
    if (
        pieces_k_n4 * 16 <= 268435456 and align_a >= 16 and chunks <= 1
        and tiles_128x128 <= 2147483647 and m * n * k >= 268435456 and sms * 6 <= tiles_128x128 * 4
        and align_b < 16 and m >= 256
    ):
        return Choice(
            7, ("realign_b32x1_92a718", "simt_tn_f32_128x128x32_a6005b"),
            (-(-pieces_k_n4 // 512), tiles_128x128), (pieces_k_n4 * 16,),
            "realign_b+simt_tn_f32_128x128x32_a6005b",
        )
    # 8: A and B off 16 bytes: copied, since the product is much more work
    if (
        pieces_k_m4 * 16 <= 268435456 and pieces_k_n4 * 16 <= 268435456 and chunks <= 1
        and tiles_128x128 <= 2147483647 and m * n * k >= 268435456 and sms * 6 <= tiles_128x128 * 4
        and align_a < 16 and align_b < 16 and n >= 256 and m >= 256
    ):
        return Choice(
            8, ("realign_b32x2_89cb89", "simt_tn_f32_128x128x32_a6005b"),
            (-(-pieces_k_m4 // 512) + -(-pieces_k_n4 // 512), tiles_128x128),
            (pieces_k_m4 * 16, pieces_k_n4 * 16), "realign_ab+simt_tn_f32_128x128x32_a6005b",
        )
    # 9: unaligned, long batch
    if (
        chunks * m * n * 4 <= 268435456 and tiles_32x64 * chunks <= 2147483647
        and -(-(m * n) // 512) <= 2147483647 and chunks > 1
    ):
        return Choice(
            9, ("simt_tn_f32_32x64x16_77f3fb", "reduce_f32_128x4_4670b3"),
            (tiles_32x64 * chunks, -(-(m * n) // 512)), (chunks * m * n * 4,),
        )
    tiles_64x128 = -(-m // 64) * -(-n // 128)
    # 10: a short batch: stores decide
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_64x128 <= 2147483647
        and chunks <= 1 and k <= 64 and sms * 4 <= tiles_64x128 * 4
    ):
        return Choice(10, ("simt_tn_f32_64x128x16_3a16f9",), (tiles_64x128,), ())
    # 11: the largest tile that gives 6/4 of the SMs one
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_128x128 <= 2147483647
        and chunks <= 1 and sms * 6 <= tiles_128x128 * 4
    ):
        return Choice(11, ("simt_tn_f32_128x128x32_a6005b",), (tiles_128x128,), ())
    # 12: the largest tile that gives 4/4 of the SMs one
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_64x64 <= 2147483647
        and chunks <= 1 and sms * 4 <= tiles_64x64 * 4
    ):
        return Choice(12, ("simt_tn_f32_64x64x32_b25768",), (tiles_64x64,), ())
    # 13: the largest tile that gives 4/4 of the SMs one
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_32x64 <= 2147483647
        and chunks <= 1 and sms * 4 <= tiles_32x64 * 4
    ):
        return Choice(13, ("simt_tn_f32_32x64x16_0d5445",), (tiles_32x64,), ())
    tiles_16x32 = -(-m // 16) * -(-n // 32)
    # 14: few outputs: many small tiles shorten the wait
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_16x32 <= 2147483647
        and chunks <= 1
    ):
        return Choice(14, ("simt_tn_f32_16x32x32_610669",), (tiles_16x32,), ())
    # 15: the largest tile that gives 6/4 of the SMs one
    if chunks <= 1 and tiles_128x128 <= 2147483647 and chunks <= 1 and sms * 6 <= tiles_128x128 * 4:
        return Choice(15, ("simt_tn_f32_128x128x8_808899",), (tiles_128x128,), ())
    # 16: unaligned, few outputs
    if chunks <= 1 and tiles_16x32 <= 2147483647 and chunks <= 1 and sms * 4 > tiles_64x64 * 4:
        return Choice(16, ("simt_tn_f32_16x32x32_da4f05",), (tiles_16x32,), ())
    # 17: everything else: any size, alignment and plan
    return Choice(17, ("simt_tn_f32_64x64x16_3be7a4",), (min(tiles_64x64, 2147483647),), ())


BY_ARCH: dict[str, Dispatch] = {
    "sm_80": sm_80,
    "sm_86": sm_80,
    "sm_87": sm_80,
    "sm_89": sm_80,
    "sm_90": sm_80,
    "sm_100": sm_80,
    "sm_103": sm_80,
    "sm_110": sm_80,
    "sm_120": sm_80,
    "sm_121": sm_80,
}
