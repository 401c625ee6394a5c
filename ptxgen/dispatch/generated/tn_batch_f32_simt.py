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
            0,
            ("simt_tn_f32_128x128x32_8b2b6a", "reduce_f32_128x4_4670b3"),
            (tiles_128x128 * chunks, -(-(m * n) // 512)),
            (chunks * m * n * 4,),
        )
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 1: middling outputs, long batch
    if (
        align_a >= 16 and align_b >= 16 and chunks * m * n * 4 <= 268435456
        and tiles_64x64 * chunks <= 2147483647 and -(-(m * n) // 512) <= 2147483647 and chunks > 1
        and sms * 4 <= tiles_64x64 * 4
    ):
        return Choice(
            1,
            ("simt_tn_f32_64x64x32_a73229", "reduce_f32_128x4_4670b3"),
            (tiles_64x64 * chunks, -(-(m * n) // 512)),
            (chunks * m * n * 4,),
        )
    tiles_32x64 = -(-m // 32) * -(-n // 64)
    # 2: few outputs, long batch: a CTA per tile and chunk
    if (
        align_a >= 16 and align_b >= 16 and chunks * m * n * 4 <= 268435456
        and tiles_32x64 * chunks <= 2147483647 and -(-(m * n) // 512) <= 2147483647 and chunks > 1
    ):
        return Choice(
            2,
            ("simt_tn_f32_32x64x16_f1bce6", "reduce_f32_128x4_4670b3"),
            (tiles_32x64 * chunks, -(-(m * n) // 512)),
            (chunks * m * n * 4,),
        )
    # 3: unaligned, long batch
    if (
        chunks * m * n * 4 <= 268435456 and tiles_32x64 * chunks <= 2147483647
        and -(-(m * n) // 512) <= 2147483647 and chunks > 1
    ):
        return Choice(
            3,
            ("simt_tn_f32_32x64x16_77f3fb", "reduce_f32_128x4_4670b3"),
            (tiles_32x64 * chunks, -(-(m * n) // 512)),
            (chunks * m * n * 4,),
        )
    tiles_64x128 = -(-m // 64) * -(-n // 128)
    # 4: a short batch: stores decide
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_64x128 <= 2147483647
        and chunks <= 1 and k <= 64 and sms * 4 <= tiles_64x128 * 4
    ):
        return Choice(4, ("simt_tn_f32_64x128x16_3a16f9",), (tiles_64x128,), ())
    # 5: the largest tile that gives 6/4 of the SMs one
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_128x128 <= 2147483647
        and chunks <= 1 and sms * 6 <= tiles_128x128 * 4
    ):
        return Choice(5, ("simt_tn_f32_128x128x32_a6005b",), (tiles_128x128,), ())
    # 6: the largest tile that gives 4/4 of the SMs one
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_64x64 <= 2147483647
        and chunks <= 1 and sms * 4 <= tiles_64x64 * 4
    ):
        return Choice(6, ("simt_tn_f32_64x64x32_b25768",), (tiles_64x64,), ())
    # 7: the largest tile that gives 4/4 of the SMs one
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_32x64 <= 2147483647
        and chunks <= 1 and sms * 4 <= tiles_32x64 * 4
    ):
        return Choice(7, ("simt_tn_f32_32x64x16_0d5445",), (tiles_32x64,), ())
    tiles_16x32 = -(-m // 16) * -(-n // 32)
    # 8: few outputs: many small tiles shorten the wait
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_16x32 <= 2147483647
        and chunks <= 1
    ):
        return Choice(8, ("simt_tn_f32_16x32x32_610669",), (tiles_16x32,), ())
    # 9: the largest tile that gives 6/4 of the SMs one
    if chunks <= 1 and tiles_128x128 <= 2147483647 and chunks <= 1 and sms * 6 <= tiles_128x128 * 4:
        return Choice(9, ("simt_tn_f32_128x128x8_808899",), (tiles_128x128,), ())
    # 10: unaligned, few outputs
    if chunks <= 1 and tiles_16x32 <= 2147483647 and chunks <= 1 and sms * 4 > tiles_64x64 * 4:
        return Choice(10, ("simt_tn_f32_16x32x32_da4f05",), (tiles_16x32,), ())
    # 11: everything else: any size, alignment and plan
    return Choice(11, ("simt_tn_f32_64x64x16_3be7a4",), (min(tiles_64x64, 2147483647),), ())


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
