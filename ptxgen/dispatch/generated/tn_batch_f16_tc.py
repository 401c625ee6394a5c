"""Dispatch of the TN products under the plan "batch", f16, tc tier.

Generated from ptxgen.tiles.ROUTES["TN", "batch", "f16", "tc"]; do not edit.
Regenerate: ptxgen generate
"""

from ptxgen.dispatch.choice import Choice, Dispatch


def sm_80(m: int, n: int, k: int, sms: int, align_a: int, align_b: int) -> Choice | None:
    """For sm_80, sm_87, sm_100, sm_103, sm_110."""
    chunk_part_1 = -(-k // min(max(4718592 // (m * n), 1), 16))
    chunk = max(1, min(k, -(-max(chunk_part_1, min(max(m * n // 32, 512), 4096)) // 64) * 64))
    chunks = -(-k // chunk)
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    # 5: long batch: a CTA per tile and chunk
    if (
        align_a >= 16
        and align_b >= 16
        and chunks * m * n * 4 <= 268435456
        and tiles_128x128 * chunks <= 2147483647
        and -(-(m * n) // 512) <= 2147483647
        and chunks > 1
        and sms * 4 <= tiles_128x128 * chunks * 4
    ):
        return Choice(
            route=5,
            kernels=("mma_tn_f16_128x128x64_w2x2_s3_vv_partial_c2", "reduce_f16_128x4_b8_tc16"),
            grids=(tiles_128x128 * chunks, -(-(m * n) // 512)),
            workspace=chunks * m * n * 4,
            chunk=chunk,
        )
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 6: long batch: a CTA per tile and chunk
    if (
        align_a >= 16
        and align_b >= 16
        and chunks * m * n * 4 <= 268435456
        and tiles_64x64 * chunks <= 2147483647
        and -(-(m * n) // 512) <= 2147483647
        and chunks > 1
        and sms * 4 <= tiles_64x64 * chunks * 4
    ):
        return Choice(
            route=6,
            kernels=(
                "mma_tn_f16_64x64x128_w2x2_s3_vv_partial_c2_x4_streamab",
                "reduce_f16_128x4_b8_tc16",
            ),
            grids=(tiles_64x64 * chunks, -(-(m * n) // 512)),
            workspace=chunks * m * n * 4,
            chunk=chunk,
        )
    tiles_32x32 = -(-m // 32) * -(-n // 32)
    # 7: long batch: a CTA per tile and chunk
    if (
        align_a >= 16
        and align_b >= 16
        and chunks * m * n * 4 <= 268435456
        and tiles_32x32 * chunks <= 2147483647
        and -(-(m * n) // 512) <= 2147483647
        and chunks > 1
    ):
        return Choice(
            route=7,
            kernels=(
                "mma_tn_f16_32x32x128_w2x2_s4_vv_partial_c3_a3_x2",
                "reduce_f16_128x4_b8_tc16",
            ),
            grids=(tiles_32x32 * chunks, -(-(m * n) // 512)),
            workspace=chunks * m * n * 4,
            chunk=chunk,
        )
    # 8: unaligned, long batch
    if (
        chunks * m * n * 4 <= 268435456
        and tiles_64x64 * chunks <= 2147483647
        and -(-(m * n) // 512) <= 2147483647
        and chunks > 1
    ):
        return Choice(
            route=8,
            kernels=("mma_tn_f16_64x64x32_w2x2_s4_pp_partial_c4", "reduce_f16_128x4_b8_tc16"),
            grids=(tiles_64x64 * chunks, -(-(m * n) // 512)),
            workspace=chunks * m * n * 4,
            chunk=chunk,
        )
    tiles_8x32 = -(-m // 8) * -(-n // 32)
    # 9: M <= 8: the weight streams once
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_8x32 <= 2147483647
        and m <= 8
        and n <= 4096
    ):
        return Choice(
            route=9,
            kernels=("mma_tn_f16_8x32x128_w1x2_s9_vv_swap_r0_a7_x4_streamb",),
            grids=(tiles_8x32,),
            workspace=0,
            chunk=chunk,
        )
    tiles_8x64 = -(-m // 8) * -(-n // 64)
    # 10: M <= 8: the weight streams once
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_8x64 <= 2147483647
        and m <= 8
        and n <= 8192
    ):
        return Choice(
            route=10,
            kernels=("mma_tn_f16_8x64x128_w1x4_s9_vv_swap_r0_a3_x2_streamb",),
            grids=(tiles_8x64,),
            workspace=0,
            chunk=chunk,
        )
    # 11: M <= 8: the weight streams once
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_8x64 <= 2147483647 and m <= 8:
        return Choice(
            route=11,
            kernels=("mma_tn_f16_8x64x128_w1x4_s5_vv_swap_r0_a7_x2_streamb",),
            grids=(tiles_8x64,),
            workspace=0,
            chunk=chunk,
        )
    tiles_16x32 = -(-m // 16) * -(-n // 32)
    # 12: M <= 16: the weight streams once
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_16x32 <= 2147483647
        and m <= 16
        and n <= 4096
    ):
        return Choice(
            route=12,
            kernels=("mma_tn_f16_16x32x128_w1x2_s8_vv_swap_r0_a7_x4_streamb",),
            grids=(tiles_16x32,),
            workspace=0,
            chunk=chunk,
        )
    tiles_16x64 = -(-m // 16) * -(-n // 64)
    # 13: M <= 16: the weight streams once
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_16x64 <= 2147483647 and m <= 16:
        return Choice(
            route=13,
            kernels=("mma_tn_f16_16x64x128_w1x4_s4_vv_swap_r0_a7_x4_streamb",),
            grids=(tiles_16x64,),
            workspace=0,
            chunk=chunk,
        )
    tiles_32x16 = -(-m // 32) * -(-n // 16)
    # 14: M <= 32: the weight streams once
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_32x16 <= 2147483647
        and m <= 32
        and n <= 2048
    ):
        return Choice(
            route=14,
            kernels=("mma_tn_f16_32x16x256_w2x1_s4_vv_swap_r0_a7_x1_streamb",),
            grids=(tiles_32x16,),
            workspace=0,
            chunk=chunk,
        )
    # 15: M <= 32: the weight streams once
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_32x32 <= 2147483647
        and m <= 32
        and n <= 4096
    ):
        return Choice(
            route=15,
            kernels=("mma_tn_f16_32x32x128_w2x2_s6_vv_swap_r0_a7_x4_streamb",),
            grids=(tiles_32x32,),
            workspace=0,
            chunk=chunk,
        )
    tiles_32x64 = -(-m // 32) * -(-n // 64)
    # 16: M <= 32: the weight streams once
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_32x64 <= 2147483647
        and m <= 32
        and n <= 8192
    ):
        return Choice(
            route=16,
            kernels=("mma_tn_f16_32x64x128_w1x4_s6_vv_swap_r0_a7_x4_streamb",),
            grids=(tiles_32x64,),
            workspace=0,
            chunk=chunk,
        )
    # 30: the largest tile that gives 4/4 of the SMs one
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_128x128 <= 2147483647
        and sms * 4 <= tiles_128x128 * 1 * 4
    ):
        return Choice(
            route=30,
            kernels=("mma_tn_f16_128x128x64_w2x2_s3_vv_c2",),
            grids=(tiles_128x128,),
            workspace=0,
            chunk=chunk,
        )
    tiles_64x128 = -(-m // 64) * -(-n // 128)
    # 31: the largest tile that gives 4/4 of the SMs one
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_64x128 <= 2147483647
        and sms * 4 <= tiles_64x128 * 1 * 4
    ):
        return Choice(
            route=31,
            kernels=("mma_tn_f16_64x128x64_w2x4_s6_vv_r0_x4_streamb",),
            grids=(tiles_64x128,),
            workspace=0,
            chunk=chunk,
        )
    # 32: the largest tile that gives 4/4 of the SMs one
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_64x64 <= 2147483647
        and sms * 4 <= tiles_64x64 * 1 * 4
    ):
        return Choice(
            route=32,
            kernels=("mma_tn_f16_64x64x64_w2x2_s4_vv_c3",),
            grids=(tiles_64x64,),
            workspace=0,
            chunk=chunk,
        )
    # 33: few outputs: the smallest tile
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_32x32 <= 2147483647:
        return Choice(
            route=33,
            kernels=("mma_tn_f16_32x32x128_w2x2_s4_vv_c3_a3_x2",),
            grids=(tiles_32x32,),
            workspace=0,
            chunk=chunk,
        )
    # 34: operands off 16 bytes
    if align_a >= 4 and align_b >= 16 and chunks <= 1 and tiles_8x32 <= 2147483647 and m <= 8:
        return Choice(
            route=34,
            kernels=("mma_tn_f16_8x32x256_w1x2_s4_wv_swap_r0_a7_x2_streamb",),
            grids=(tiles_8x32,),
            workspace=0,
            chunk=chunk,
        )
    # 35: operands off 16 bytes
    if align_a >= 4 and align_b >= 4 and chunks <= 1 and tiles_16x32 <= 2147483647 and m <= 16:
        return Choice(
            route=35,
            kernels=("mma_tn_f16_16x32x128_w1x2_s5_ww_swap_r0_a7_x4",),
            grids=(tiles_16x32,),
            workspace=0,
            chunk=chunk,
        )
    # 36: operands off 16 bytes
    if chunks <= 1 and tiles_16x32 <= 2147483647 and m <= 16:
        return Choice(
            route=36,
            kernels=("mma_tn_f16_16x32x128_w1x2_s5_pp_swap_r0_a7_x4",),
            grids=(tiles_16x32,),
            workspace=0,
            chunk=chunk,
        )
    # 37: operands off 16 bytes
    if align_a >= 4 and align_b >= 4 and chunks <= 1 and tiles_64x64 <= 2147483647:
        return Choice(
            route=37,
            kernels=("mma_tn_f16_64x64x32_w2x2_s4_ww_c4",),
            grids=(tiles_64x64,),
            workspace=0,
            chunk=chunk,
        )
    # 38: everything else: any size and alignment
    if chunks <= 1:
        return Choice(
            route=38,
            kernels=("mma_tn_f16_64x64x32_w2x2_s4_pp_persistent_c4",),
            grids=(min(tiles_64x64, 2147483647),),
            workspace=0,
            chunk=chunk,
        )
    return None


def sm_86(m: int, n: int, k: int, sms: int, align_a: int, align_b: int) -> Choice | None:
    """For sm_86, sm_89, sm_120, sm_121."""
    chunk_part_1 = -(-k // min(max(4718592 // (m * n), 1), 16))
    chunk = max(1, min(k, -(-max(chunk_part_1, min(max(m * n // 32, 512), 4096)) // 64) * 64))
    chunks = -(-k // chunk)
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    # 5: long batch: a CTA per tile and chunk
    if (
        align_a >= 16
        and align_b >= 16
        and chunks * m * n * 4 <= 268435456
        and tiles_128x128 * chunks <= 2147483647
        and -(-(m * n) // 512) <= 2147483647
        and chunks > 1
        and sms * 4 <= tiles_128x128 * chunks * 4
    ):
        return Choice(
            route=5,
            kernels=("mma_tn_f16_128x128x64_w2x2_s3_vv_partial_c2", "reduce_f16_128x4_b8_tc16"),
            grids=(tiles_128x128 * chunks, -(-(m * n) // 512)),
            workspace=chunks * m * n * 4,
            chunk=chunk,
        )
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 6: long batch: a CTA per tile and chunk
    if (
        align_a >= 16
        and align_b >= 16
        and chunks * m * n * 4 <= 268435456
        and tiles_64x64 * chunks <= 2147483647
        and -(-(m * n) // 512) <= 2147483647
        and chunks > 1
        and sms * 4 <= tiles_64x64 * chunks * 4
    ):
        return Choice(
            route=6,
            kernels=(
                "mma_tn_f16_64x64x128_w2x2_s3_vv_partial_c2_x4_streamab",
                "reduce_f16_128x4_b8_tc16",
            ),
            grids=(tiles_64x64 * chunks, -(-(m * n) // 512)),
            workspace=chunks * m * n * 4,
            chunk=chunk,
        )
    tiles_32x32 = -(-m // 32) * -(-n // 32)
    # 7: long batch: a CTA per tile and chunk
    if (
        align_a >= 16
        and align_b >= 16
        and chunks * m * n * 4 <= 268435456
        and tiles_32x32 * chunks <= 2147483647
        and -(-(m * n) // 512) <= 2147483647
        and chunks > 1
    ):
        return Choice(
            route=7,
            kernels=(
                "mma_tn_f16_32x32x128_w2x2_s4_vv_partial_c3_a3_x2",
                "reduce_f16_128x4_b8_tc16",
            ),
            grids=(tiles_32x32 * chunks, -(-(m * n) // 512)),
            workspace=chunks * m * n * 4,
            chunk=chunk,
        )
    # 8: unaligned, long batch
    if (
        chunks * m * n * 4 <= 268435456
        and tiles_64x64 * chunks <= 2147483647
        and -(-(m * n) // 512) <= 2147483647
        and chunks > 1
    ):
        return Choice(
            route=8,
            kernels=("mma_tn_f16_64x64x32_w2x2_s4_pp_partial_c4", "reduce_f16_128x4_b8_tc16"),
            grids=(tiles_64x64 * chunks, -(-(m * n) // 512)),
            workspace=chunks * m * n * 4,
            chunk=chunk,
        )
    tiles_8x32 = -(-m // 8) * -(-n // 32)
    # 9: M <= 8: the weight streams once
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_8x32 <= 2147483647
        and m <= 8
        and n <= 4096
    ):
        return Choice(
            route=9,
            kernels=("mma_tn_f16_8x32x128_w1x2_s9_vv_swap_r0_a7_x4_streamb",),
            grids=(tiles_8x32,),
            workspace=0,
            chunk=chunk,
        )
    tiles_8x64 = -(-m // 8) * -(-n // 64)
    # 11: M <= 8: the weight streams once
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_8x64 <= 2147483647 and m <= 8:
        return Choice(
            route=11,
            kernels=("mma_tn_f16_8x64x128_w1x4_s5_vv_swap_r0_a7_x2_streamb",),
            grids=(tiles_8x64,),
            workspace=0,
            chunk=chunk,
        )
    tiles_16x32 = -(-m // 16) * -(-n // 32)
    # 12: M <= 16: the weight streams once
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_16x32 <= 2147483647
        and m <= 16
        and n <= 4096
    ):
        return Choice(
            route=12,
            kernels=("mma_tn_f16_16x32x128_w1x2_s8_vv_swap_r0_a7_x4_streamb",),
            grids=(tiles_16x32,),
            workspace=0,
            chunk=chunk,
        )
    tiles_16x64 = -(-m // 16) * -(-n // 64)
    # 13: M <= 16: the weight streams once
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_16x64 <= 2147483647 and m <= 16:
        return Choice(
            route=13,
            kernels=("mma_tn_f16_16x64x128_w1x4_s4_vv_swap_r0_a7_x4_streamb",),
            grids=(tiles_16x64,),
            workspace=0,
            chunk=chunk,
        )
    tiles_32x16 = -(-m // 32) * -(-n // 16)
    # 14: M <= 32: the weight streams once
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_32x16 <= 2147483647
        and m <= 32
        and n <= 2048
    ):
        return Choice(
            route=14,
            kernels=("mma_tn_f16_32x16x256_w2x1_s4_vv_swap_r0_a7_x1_streamb",),
            grids=(tiles_32x16,),
            workspace=0,
            chunk=chunk,
        )
    # 15: M <= 32: the weight streams once
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_32x32 <= 2147483647
        and m <= 32
        and n <= 4096
    ):
        return Choice(
            route=15,
            kernels=("mma_tn_f16_32x32x128_w2x2_s6_vv_swap_r0_a7_x4_streamb",),
            grids=(tiles_32x32,),
            workspace=0,
            chunk=chunk,
        )
    # 30: the largest tile that gives 4/4 of the SMs one
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_128x128 <= 2147483647
        and sms * 4 <= tiles_128x128 * 1 * 4
    ):
        return Choice(
            route=30,
            kernels=("mma_tn_f16_128x128x64_w2x2_s3_vv_c2",),
            grids=(tiles_128x128,),
            workspace=0,
            chunk=chunk,
        )
    # 32: the largest tile that gives 4/4 of the SMs one
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_64x64 <= 2147483647
        and sms * 4 <= tiles_64x64 * 1 * 4
    ):
        return Choice(
            route=32,
            kernels=("mma_tn_f16_64x64x64_w2x2_s4_vv_c3",),
            grids=(tiles_64x64,),
            workspace=0,
            chunk=chunk,
        )
    # 33: few outputs: the smallest tile
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_32x32 <= 2147483647:
        return Choice(
            route=33,
            kernels=("mma_tn_f16_32x32x128_w2x2_s4_vv_c3_a3_x2",),
            grids=(tiles_32x32,),
            workspace=0,
            chunk=chunk,
        )
    # 34: operands off 16 bytes
    if align_a >= 4 and align_b >= 16 and chunks <= 1 and tiles_8x32 <= 2147483647 and m <= 8:
        return Choice(
            route=34,
            kernels=("mma_tn_f16_8x32x256_w1x2_s4_wv_swap_r0_a7_x2_streamb",),
            grids=(tiles_8x32,),
            workspace=0,
            chunk=chunk,
        )
    # 35: operands off 16 bytes
    if align_a >= 4 and align_b >= 4 and chunks <= 1 and tiles_16x32 <= 2147483647 and m <= 16:
        return Choice(
            route=35,
            kernels=("mma_tn_f16_16x32x128_w1x2_s5_ww_swap_r0_a7_x4",),
            grids=(tiles_16x32,),
            workspace=0,
            chunk=chunk,
        )
    # 36: operands off 16 bytes
    if chunks <= 1 and tiles_16x32 <= 2147483647 and m <= 16:
        return Choice(
            route=36,
            kernels=("mma_tn_f16_16x32x128_w1x2_s5_pp_swap_r0_a7_x4",),
            grids=(tiles_16x32,),
            workspace=0,
            chunk=chunk,
        )
    # 37: operands off 16 bytes
    if align_a >= 4 and align_b >= 4 and chunks <= 1 and tiles_64x64 <= 2147483647:
        return Choice(
            route=37,
            kernels=("mma_tn_f16_64x64x32_w2x2_s4_ww_c4",),
            grids=(tiles_64x64,),
            workspace=0,
            chunk=chunk,
        )
    # 38: everything else: any size and alignment
    if chunks <= 1:
        return Choice(
            route=38,
            kernels=("mma_tn_f16_64x64x32_w2x2_s4_pp_persistent_c4",),
            grids=(min(tiles_64x64, 2147483647),),
            workspace=0,
            chunk=chunk,
        )
    return None


def sm_90(m: int, n: int, k: int, sms: int, align_a: int, align_b: int) -> Choice | None:
    """For sm_90."""
    chunk_part_1 = -(-k // min(max(4718592 // (m * n), 1), 16))
    chunk = max(1, min(k, -(-max(chunk_part_1, min(max(m * n // 32, 512), 4096)) // 64) * 64))
    chunks = -(-k // chunk)
    tiles_192x192 = -(-m // 192) * -(-n // 192)
    # 0: two chunks: pairs of CTAs add them themselves
    if (
        align_a >= 16
        and align_b >= 16
        and (chunk % 64 == 0 or chunks <= 1)
        and chunks <= 2
        and tiles_192x192 * 2 <= 2147483647
        and m + 192 <= 2147483647
        and n + 192 <= 2147483647
        and k + 64 <= 2147483647
        and tiles_192x192 + sms <= 4294967295
        and -(-n // 192) * 8 <= 4294967295
        and chunks > 1
        and k <= 16384
        and sms * 2 <= tiles_192x192 * 1 * 4
    ):
        return Choice(
            route=0,
            kernels=("wgmma_tn_f16_192x192x64_w3_s4_c1x1x2_r160",),
            grids=(tiles_192x192 * 2,),
            workspace=0,
            chunk=chunk,
        )
    # 1: long batch: a CTA per tile and chunk
    if (
        align_a >= 16
        and align_b >= 16
        and (chunk % 64 == 0 or chunks <= 1)
        and chunks * m * n * 4 <= 268435456
        and sms >= 1
        and m + 192 <= 2147483647
        and n + 192 <= 2147483647
        and k + 64 <= 2147483647
        and tiles_192x192 * chunks + sms <= 4294967295
        and -(-n // 192) * 8 <= 4294967295
        and -(-(m * n) // 512) <= 2147483647
        and chunks > 1
        and m >= 192
        and n >= 192
        and sms * 3 <= tiles_192x192 * chunks * 4
    ):
        return Choice(
            route=1,
            kernels=("wgmma_tn_f16_192x192x64_w3_s4_partial_r160", "reduce_f16_128x4_b8_tc16"),
            grids=(min(tiles_192x192 * chunks, sms // 1) * 1, -(-(m * n) // 512)),
            workspace=chunks * m * n * 4,
            chunk=chunk,
        )
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    # 2: long batch: a CTA per tile and chunk
    if (
        align_a >= 16
        and align_b >= 16
        and (chunk % 64 == 0 or chunks <= 1)
        and chunks * m * n * 4 <= 268435456
        and sms >= 1
        and m + 128 <= 2147483647
        and n + 128 <= 2147483647
        and k + 64 <= 2147483647
        and tiles_128x128 * chunks + sms <= 4294967295
        and -(-n // 128) * 8 <= 4294967295
        and -(-(m * n) // 512) <= 2147483647
        and chunks > 1
        and m >= 128
        and n >= 128
        and sms * 3 <= tiles_128x128 * chunks * 4
    ):
        return Choice(
            route=2,
            kernels=("wgmma_tn_f16_128x128x64_w2_s6_partial", "reduce_f16_128x4_b8_tc16"),
            grids=(min(tiles_128x128 * chunks, sms // 1) * 1, -(-(m * n) // 512)),
            workspace=chunks * m * n * 4,
            chunk=chunk,
        )
    tiles_128x64 = -(-m // 128) * -(-n // 64)
    # 3: long batch: a CTA per tile and chunk
    if (
        align_a >= 16
        and align_b >= 16
        and (chunk % 64 == 0 or chunks <= 1)
        and chunks * m * n * 4 <= 268435456
        and sms >= 1
        and m + 128 <= 2147483647
        and n + 64 <= 2147483647
        and k + 64 <= 2147483647
        and tiles_128x64 * chunks + sms <= 4294967295
        and -(-n // 64) * 8 <= 4294967295
        and -(-(m * n) // 512) <= 2147483647
        and chunks > 1
        and m >= 128
        and n >= 64
        and sms * 3 <= tiles_128x64 * chunks * 4
    ):
        return Choice(
            route=3,
            kernels=("wgmma_tn_f16_128x64x64_w2_s8_partial", "reduce_f16_128x4_b8_tc16"),
            grids=(min(tiles_128x64 * chunks, sms // 1) * 1, -(-(m * n) // 512)),
            workspace=chunks * m * n * 4,
            chunk=chunk,
        )
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 4: long batch, few outputs
    if (
        align_a >= 16
        and align_b >= 16
        and (chunk % 64 == 0 or chunks <= 1)
        and chunks * m * n * 4 <= 268435456
        and sms >= 1
        and m + 64 <= 2147483647
        and n + 64 <= 2147483647
        and k + 64 <= 2147483647
        and tiles_64x64 * chunks + sms <= 4294967295
        and -(-n // 64) * 8 <= 4294967295
        and -(-(m * n) // 512) <= 2147483647
        and chunks > 1
        and m > 32
        and n > 32
    ):
        return Choice(
            route=4,
            kernels=("wgmma_tn_f16_64x64x64_w1_s12_partial", "reduce_f16_128x4_b8_tc16"),
            grids=(min(tiles_64x64 * chunks, sms // 1) * 1, -(-(m * n) // 512)),
            workspace=chunks * m * n * 4,
            chunk=chunk,
        )
    # 5: long batch: a CTA per tile and chunk
    if (
        align_a >= 16
        and align_b >= 16
        and chunks * m * n * 4 <= 268435456
        and tiles_128x128 * chunks <= 2147483647
        and -(-(m * n) // 512) <= 2147483647
        and chunks > 1
        and sms * 4 <= tiles_128x128 * chunks * 4
    ):
        return Choice(
            route=5,
            kernels=("mma_tn_f16_128x128x64_w2x2_s3_vv_partial_c2", "reduce_f16_128x4_b8_tc16"),
            grids=(tiles_128x128 * chunks, -(-(m * n) // 512)),
            workspace=chunks * m * n * 4,
            chunk=chunk,
        )
    # 6: long batch: a CTA per tile and chunk
    if (
        align_a >= 16
        and align_b >= 16
        and chunks * m * n * 4 <= 268435456
        and tiles_64x64 * chunks <= 2147483647
        and -(-(m * n) // 512) <= 2147483647
        and chunks > 1
        and sms * 4 <= tiles_64x64 * chunks * 4
    ):
        return Choice(
            route=6,
            kernels=(
                "mma_tn_f16_64x64x128_w2x2_s3_vv_partial_c2_x4_streamab",
                "reduce_f16_128x4_b8_tc16",
            ),
            grids=(tiles_64x64 * chunks, -(-(m * n) // 512)),
            workspace=chunks * m * n * 4,
            chunk=chunk,
        )
    tiles_32x32 = -(-m // 32) * -(-n // 32)
    # 7: long batch: a CTA per tile and chunk
    if (
        align_a >= 16
        and align_b >= 16
        and chunks * m * n * 4 <= 268435456
        and tiles_32x32 * chunks <= 2147483647
        and -(-(m * n) // 512) <= 2147483647
        and chunks > 1
    ):
        return Choice(
            route=7,
            kernels=(
                "mma_tn_f16_32x32x128_w2x2_s4_vv_partial_c3_a3_x2",
                "reduce_f16_128x4_b8_tc16",
            ),
            grids=(tiles_32x32 * chunks, -(-(m * n) // 512)),
            workspace=chunks * m * n * 4,
            chunk=chunk,
        )
    # 8: unaligned, long batch
    if (
        chunks * m * n * 4 <= 268435456
        and tiles_64x64 * chunks <= 2147483647
        and -(-(m * n) // 512) <= 2147483647
        and chunks > 1
    ):
        return Choice(
            route=8,
            kernels=("mma_tn_f16_64x64x32_w2x2_s4_pp_partial_c4", "reduce_f16_128x4_b8_tc16"),
            grids=(tiles_64x64 * chunks, -(-(m * n) // 512)),
            workspace=chunks * m * n * 4,
            chunk=chunk,
        )
    tiles_8x32 = -(-m // 8) * -(-n // 32)
    # 9: M <= 8: the weight streams once
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_8x32 <= 2147483647
        and m <= 8
        and n <= 4096
    ):
        return Choice(
            route=9,
            kernels=("mma_tn_f16_8x32x128_w1x2_s9_vv_swap_r0_a7_x4_streamb",),
            grids=(tiles_8x32,),
            workspace=0,
            chunk=chunk,
        )
    tiles_8x64 = -(-m // 8) * -(-n // 64)
    # 10: M <= 8: the weight streams once
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_8x64 <= 2147483647
        and m <= 8
        and n <= 8192
    ):
        return Choice(
            route=10,
            kernels=("mma_tn_f16_8x64x128_w1x4_s9_vv_swap_r0_a3_x2_streamb",),
            grids=(tiles_8x64,),
            workspace=0,
            chunk=chunk,
        )
    # 11: M <= 8: the weight streams once
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_8x64 <= 2147483647 and m <= 8:
        return Choice(
            route=11,
            kernels=("mma_tn_f16_8x64x128_w1x4_s5_vv_swap_r0_a7_x2_streamb",),
            grids=(tiles_8x64,),
            workspace=0,
            chunk=chunk,
        )
    tiles_16x32 = -(-m // 16) * -(-n // 32)
    # 12: M <= 16: the weight streams once
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_16x32 <= 2147483647
        and m <= 16
        and n <= 4096
    ):
        return Choice(
            route=12,
            kernels=("mma_tn_f16_16x32x128_w1x2_s8_vv_swap_r0_a7_x4_streamb",),
            grids=(tiles_16x32,),
            workspace=0,
            chunk=chunk,
        )
    tiles_16x64 = -(-m // 16) * -(-n // 64)
    # 13: M <= 16: the weight streams once
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_16x64 <= 2147483647 and m <= 16:
        return Choice(
            route=13,
            kernels=("mma_tn_f16_16x64x128_w1x4_s4_vv_swap_r0_a7_x4_streamb",),
            grids=(tiles_16x64,),
            workspace=0,
            chunk=chunk,
        )
    tiles_32x16 = -(-m // 32) * -(-n // 16)
    # 14: M <= 32: the weight streams once
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_32x16 <= 2147483647
        and m <= 32
        and n <= 2048
    ):
        return Choice(
            route=14,
            kernels=("mma_tn_f16_32x16x256_w2x1_s4_vv_swap_r0_a7_x1_streamb",),
            grids=(tiles_32x16,),
            workspace=0,
            chunk=chunk,
        )
    # 15: M <= 32: the weight streams once
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_32x32 <= 2147483647
        and m <= 32
        and n <= 4096
    ):
        return Choice(
            route=15,
            kernels=("mma_tn_f16_32x32x128_w2x2_s6_vv_swap_r0_a7_x4_streamb",),
            grids=(tiles_32x32,),
            workspace=0,
            chunk=chunk,
        )
    tiles_32x64 = -(-m // 32) * -(-n // 64)
    # 16: M <= 32: the weight streams once
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_32x64 <= 2147483647
        and m <= 32
        and n <= 8192
    ):
        return Choice(
            route=16,
            kernels=("mma_tn_f16_32x64x128_w1x4_s6_vv_swap_r0_a7_x4_streamb",),
            grids=(tiles_32x64,),
            workspace=0,
            chunk=chunk,
        )
    tiles_128x256 = -(-m // 128) * -(-n // 256)
    # 17: large outputs
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and sms >= 1
        and m + 128 <= 2147483647
        and n + 256 <= 2147483647
        and k + 64 <= 2147483647
        and tiles_128x256 + sms <= 4294967295
        and -(-n // 256) * 16 <= 4294967295
        and k >= 64
        and sms * 24 <= tiles_128x256 * 1 * 4
    ):
        return Choice(
            route=17,
            kernels=("wgmma_tn_f16_128x256x64_w2_s4_r232_b16",),
            grids=(min(tiles_128x256, sms // 1) * 1,),
            workspace=0,
            chunk=chunk,
        )
    tiles_256x256 = -(-m // 256) * -(-n // 256)
    # 18: large outputs
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and sms >= 2
        and m + 256 <= 2147483647
        and n + 256 <= 2147483647
        and k + 64 <= 2147483647
        and tiles_256x256 + sms <= 4294967295
        and -(-n // 256) * 8 <= 4294967295
        and k >= 64
        and sms * 12 <= tiles_128x256 * 1 * 4
    ):
        return Choice(
            route=18,
            kernels=("wgmma_tn_f16_128x256x64_w2_s4_c2x1_r232",),
            grids=(min(tiles_256x256, sms // 2) * 2,),
            workspace=0,
            chunk=chunk,
        )
    tiles_192x128 = -(-m // 192) * -(-n // 128)
    # 19: large outputs
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and sms >= 1
        and m + 192 <= 2147483647
        and n + 128 <= 2147483647
        and k + 64 <= 2147483647
        and tiles_192x128 + sms <= 4294967295
        and -(-n // 128) * 8 <= 4294967295
        and k >= 64
        and sms * 8 <= tiles_192x128 * 1 * 4
    ):
        return Choice(
            route=19,
            kernels=("wgmma_tn_f16_192x128x64_w3_s4",),
            grids=(min(tiles_192x128, sms // 1) * 1,),
            workspace=0,
            chunk=chunk,
        )
    tiles_192x256 = -(-m // 192) * -(-n // 256)
    # 20: large outputs
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and sms >= 2
        and m + 192 <= 2147483647
        and n + 256 <= 2147483647
        and k + 64 <= 2147483647
        and tiles_192x256 + sms <= 4294967295
        and -(-n // 256) * 8 <= 4294967295
        and k >= 64
        and sms * 5 <= tiles_192x128 * 1 * 4
    ):
        return Choice(
            route=20,
            kernels=("wgmma_tn_f16_192x128x64_w3_s4_c1x2",),
            grids=(min(tiles_192x256, sms // 2) * 2,),
            workspace=0,
            chunk=chunk,
        )
    tiles_128x224 = -(-m // 128) * -(-n // 224)
    # 21: the largest tile that gives 3/4 of the SMs one
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and sms >= 1
        and m + 128 <= 2147483647
        and n + 224 <= 2147483647
        and k + 64 <= 2147483647
        and tiles_128x224 + sms <= 4294967295
        and -(-n // 224) * 8 <= 4294967295
        and k >= 64
        and sms * 3 <= tiles_128x224 * 1 * 4
    ):
        return Choice(
            route=21,
            kernels=("wgmma_tn_f16_128x224x64_w2_s4",),
            grids=(min(tiles_128x224, sms // 1) * 1,),
            workspace=0,
            chunk=chunk,
        )
    # 22: the largest tile that gives 3/4 of the SMs one
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and sms >= 1
        and m + 128 <= 2147483647
        and n + 128 <= 2147483647
        and k + 64 <= 2147483647
        and tiles_128x128 + sms <= 4294967295
        and -(-n // 128) * 8 <= 4294967295
        and k >= 64
        and sms * 3 <= tiles_128x128 * 1 * 4
    ):
        return Choice(
            route=22,
            kernels=("wgmma_tn_f16_128x128x64_w2_s6",),
            grids=(min(tiles_128x128, sms // 1) * 1,),
            workspace=0,
            chunk=chunk,
        )
    tiles_192x96 = -(-m // 192) * -(-n // 96)
    # 23: the largest tile that gives 3/4 of the SMs one
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and sms >= 1
        and m + 192 <= 2147483647
        and n + 96 <= 2147483647
        and k + 64 <= 2147483647
        and tiles_192x96 + sms <= 4294967295
        and -(-n // 96) * 8 <= 4294967295
        and k >= 64
        and sms * 3 <= tiles_192x96 * 1 * 4
    ):
        return Choice(
            route=23,
            kernels=("wgmma_tn_f16_192x96x64_w3_s4",),
            grids=(min(tiles_192x96, sms // 1) * 1,),
            workspace=0,
            chunk=chunk,
        )
    tiles_128x112 = -(-m // 128) * -(-n // 112)
    # 24: the largest tile that gives 3/4 of the SMs one
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and sms >= 1
        and m + 128 <= 2147483647
        and n + 112 <= 2147483647
        and k + 64 <= 2147483647
        and tiles_128x112 + sms <= 4294967295
        and -(-n // 112) * 8 <= 4294967295
        and k >= 64
        and sms * 3 <= tiles_128x112 * 1 * 4
    ):
        return Choice(
            route=24,
            kernels=("wgmma_tn_f16_128x112x64_w2_s6",),
            grids=(min(tiles_128x112, sms // 1) * 1,),
            workspace=0,
            chunk=chunk,
        )
    # 25: the largest tile that gives 3/4 of the SMs one
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and sms >= 1
        and m + 128 <= 2147483647
        and n + 64 <= 2147483647
        and k + 64 <= 2147483647
        and tiles_128x64 + sms <= 4294967295
        and -(-n // 64) * 8 <= 4294967295
        and k >= 64
        and sms * 3 <= tiles_128x64 * 1 * 4
    ):
        return Choice(
            route=25,
            kernels=("wgmma_tn_f16_128x64x64_w2_s8",),
            grids=(min(tiles_128x64, sms // 1) * 1,),
            workspace=0,
            chunk=chunk,
        )
    tiles_64x128 = -(-m // 64) * -(-n // 128)
    # 26: the largest tile that gives 3/4 of the SMs one
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and sms >= 1
        and m + 64 <= 2147483647
        and n + 128 <= 2147483647
        and k + 64 <= 2147483647
        and tiles_64x128 + sms <= 4294967295
        and -(-n // 128) * 8 <= 4294967295
        and k >= 64
        and sms * 3 <= tiles_64x128 * 1 * 4
    ):
        return Choice(
            route=26,
            kernels=("wgmma_tn_f16_64x128x64_w1_s8",),
            grids=(min(tiles_64x128, sms // 1) * 1,),
            workspace=0,
            chunk=chunk,
        )
    # 27: the largest tile that gives 3/4 of the SMs one
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and sms >= 1
        and m + 64 <= 2147483647
        and n + 64 <= 2147483647
        and k + 64 <= 2147483647
        and tiles_64x64 + sms <= 4294967295
        and -(-n // 64) * 8 <= 4294967295
        and k >= 64
        and sms * 3 <= tiles_64x64 * 1 * 4
    ):
        return Choice(
            route=27,
            kernels=("wgmma_tn_f16_64x64x64_w1_s12",),
            grids=(min(tiles_64x64, sms // 1) * 1,),
            workspace=0,
            chunk=chunk,
        )
    tiles_64x32 = -(-m // 64) * -(-n // 32)
    # 28: the largest tile that gives 3/4 of the SMs one
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and sms >= 1
        and m + 64 <= 2147483647
        and n + 32 <= 2147483647
        and k + 128 <= 2147483647
        and tiles_64x32 + sms <= 4294967295
        and -(-n // 32) * 8 <= 4294967295
        and k >= 64
        and sms * 3 <= tiles_64x32 * 1 * 4
    ):
        return Choice(
            route=28,
            kernels=("wgmma_tn_f16_64x32x128_w1_s8",),
            grids=(min(tiles_64x32, sms // 1) * 1,),
            workspace=0,
            chunk=chunk,
        )
    tiles_64x16 = -(-m // 64) * -(-n // 16)
    # 29: few outputs: the smallest tile
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and sms >= 1
        and m + 64 <= 2147483647
        and n + 16 <= 2147483647
        and k + 128 <= 2147483647
        and tiles_64x16 + sms <= 4294967295
        and -(-n // 16) * 8 <= 4294967295
        and k >= 64
    ):
        return Choice(
            route=29,
            kernels=("wgmma_tn_f16_64x16x128_w1_s10",),
            grids=(min(tiles_64x16, sms // 1) * 1,),
            workspace=0,
            chunk=chunk,
        )
    # 30: the largest tile that gives 4/4 of the SMs one
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_128x128 <= 2147483647
        and sms * 4 <= tiles_128x128 * 1 * 4
    ):
        return Choice(
            route=30,
            kernels=("mma_tn_f16_128x128x64_w2x2_s3_vv_c2",),
            grids=(tiles_128x128,),
            workspace=0,
            chunk=chunk,
        )
    # 31: the largest tile that gives 4/4 of the SMs one
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_64x128 <= 2147483647
        and sms * 4 <= tiles_64x128 * 1 * 4
    ):
        return Choice(
            route=31,
            kernels=("mma_tn_f16_64x128x64_w2x4_s6_vv_r0_x4_streamb",),
            grids=(tiles_64x128,),
            workspace=0,
            chunk=chunk,
        )
    # 32: the largest tile that gives 4/4 of the SMs one
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_64x64 <= 2147483647
        and sms * 4 <= tiles_64x64 * 1 * 4
    ):
        return Choice(
            route=32,
            kernels=("mma_tn_f16_64x64x64_w2x2_s4_vv_c3",),
            grids=(tiles_64x64,),
            workspace=0,
            chunk=chunk,
        )
    # 33: few outputs: the smallest tile
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_32x32 <= 2147483647:
        return Choice(
            route=33,
            kernels=("mma_tn_f16_32x32x128_w2x2_s4_vv_c3_a3_x2",),
            grids=(tiles_32x32,),
            workspace=0,
            chunk=chunk,
        )
    # 34: operands off 16 bytes
    if align_a >= 4 and align_b >= 16 and chunks <= 1 and tiles_8x32 <= 2147483647 and m <= 8:
        return Choice(
            route=34,
            kernels=("mma_tn_f16_8x32x256_w1x2_s4_wv_swap_r0_a7_x2_streamb",),
            grids=(tiles_8x32,),
            workspace=0,
            chunk=chunk,
        )
    # 35: operands off 16 bytes
    if align_a >= 4 and align_b >= 4 and chunks <= 1 and tiles_16x32 <= 2147483647 and m <= 16:
        return Choice(
            route=35,
            kernels=("mma_tn_f16_16x32x128_w1x2_s5_ww_swap_r0_a7_x4",),
            grids=(tiles_16x32,),
            workspace=0,
            chunk=chunk,
        )
    # 36: operands off 16 bytes
    if chunks <= 1 and tiles_16x32 <= 2147483647 and m <= 16:
        return Choice(
            route=36,
            kernels=("mma_tn_f16_16x32x128_w1x2_s5_pp_swap_r0_a7_x4",),
            grids=(tiles_16x32,),
            workspace=0,
            chunk=chunk,
        )
    # 37: operands off 16 bytes
    if align_a >= 4 and align_b >= 4 and chunks <= 1 and tiles_64x64 <= 2147483647:
        return Choice(
            route=37,
            kernels=("mma_tn_f16_64x64x32_w2x2_s4_ww_c4",),
            grids=(tiles_64x64,),
            workspace=0,
            chunk=chunk,
        )
    # 38: everything else: any size and alignment
    if chunks <= 1:
        return Choice(
            route=38,
            kernels=("mma_tn_f16_64x64x32_w2x2_s4_pp_persistent_c4",),
            grids=(min(tiles_64x64, 2147483647),),
            workspace=0,
            chunk=chunk,
        )
    return None


BY_ARCH: dict[str, Dispatch] = {
    "sm_80": sm_80,
    "sm_86": sm_86,
    "sm_87": sm_80,
    "sm_89": sm_86,
    "sm_90": sm_90,
    "sm_100": sm_80,
    "sm_103": sm_80,
    "sm_110": sm_80,
    "sm_120": sm_86,
    "sm_121": sm_86,
}
