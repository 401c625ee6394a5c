"""Dispatch of TN batch half simt: products under the plan 'batch'.

Generated from ptxgen.tiles.TABLES["TN", "batch", "half", "simt"]; do not edit.
Regenerate: ptxgen generate
"""

from ptxgen.dispatch.choice import Choice, Dispatch


def sm_80(m: int, n: int, k: int, sms: int, align_a: int, align_b: int) -> Choice | None:
    """For sm_80, sm_86, sm_87, sm_89, sm_90, sm_100, sm_103, sm_110, sm_120, sm_121."""
    chunk_part_1 = -(-k // min(max(16777216 // (m * n), 1), 128))
    chunk = max(1, min(k, -(-max(chunk_part_1, min(max(m * n // 512, 128), 1024)) // 16) * 16))
    chunks = -(-k // chunk)
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 0: long batch: a CTA per tile and chunk
    if (
        align_a >= 8 and align_b >= 8 and chunks * m * n * 4 <= 268435456
        and tiles_64x64 * chunks <= 2147483647 and -(-(m * n) // 512) <= 2147483647 and chunks > 1
    ):
        return Choice(
            0, ("simt_tn_bf16_64x64x16_621da8", "reduce_bf16_128x4_3764c0"),
            (tiles_64x64 * chunks, -(-(m * n) // 512)), (chunks * m * n * 4,),
        )
    tiles_32x64 = -(-m // 32) * -(-n // 64)
    # 1: unaligned, long batch
    if (
        chunks * m * n * 4 <= 268435456 and tiles_32x64 * chunks <= 2147483647
        and -(-(m * n) // 512) <= 2147483647 and chunks > 1
    ):
        return Choice(
            1, ("simt_tn_bf16_32x64x16_619d53", "reduce_bf16_128x4_3764c0"),
            (tiles_32x64 * chunks, -(-(m * n) // 512)), (chunks * m * n * 4,),
        )
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    # 2: the largest tile that gives 6/4 of the SMs one
    if (
        align_a >= 8 and align_b >= 8 and chunks <= 1 and tiles_128x128 <= 2147483647
        and chunks <= 1 and sms * 6 <= tiles_128x128 * 4
    ):
        return Choice(2, ("simt_tn_bf16_128x128x16_0071bc",), (tiles_128x128,), ())
    # 3: the largest tile that gives 4/4 of the SMs one
    if (
        align_a >= 8 and align_b >= 8 and chunks <= 1 and tiles_64x64 <= 2147483647 and chunks <= 1
        and sms * 4 <= tiles_64x64 * 4
    ):
        return Choice(3, ("simt_tn_bf16_64x64x16_a5d13d",), (tiles_64x64,), ())
    tiles_16x32 = -(-m // 16) * -(-n // 32)
    # 4: few outputs: many small tiles shorten the wait
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_16x32 <= 2147483647
        and chunks <= 1
    ):
        return Choice(4, ("simt_tn_bf16_16x32x64_59631a",), (tiles_16x32,), ())
    # 5: everything else: any size, alignment and plan
    return Choice(5, ("simt_tn_bf16_64x64x16_47c955",), (min(tiles_64x64, 2147483647),), ())


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
