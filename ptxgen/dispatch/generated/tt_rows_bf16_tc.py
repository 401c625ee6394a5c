"""Dispatch of the TT products under the plan "rows", bf16, tc tier.

Generated from ptxgen.tiles.ROUTES["TT", "rows", "bf16", "tc"]; do not edit.
Regenerate: ptxgen generate
"""

from ptxgen.dispatch.choice import Choice, Dispatch


def sm_80(m: int, n: int, k: int, sms: int, align_a: int, align_b: int) -> Choice | None:
    """For sm_80, sm_87, sm_100, sm_103, sm_110."""
    chunk = max(1, min(k, k))
    chunks = -(-k // chunk)
    tiles_8x16 = -(-m // 8) * -(-n // 16)
    # 0: M <= 8: the weight streams once
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_8x16 <= 2147483647
        and m <= 8
        and n <= 2048
    ):
        return Choice(
            route=0,
            kernels=("mma_tt_bf16_8x16x512_w1x1_s4_vv_swap_r0_a7_x2_streamb",),
            grids=(tiles_8x16,),
            workspace=0,
            chunk=chunk,
        )
    tiles_8x32 = -(-m // 8) * -(-n // 32)
    # 1: M <= 8: the weight streams once
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_8x32 <= 2147483647
        and m <= 8
        and n <= 4096
    ):
        return Choice(
            route=1,
            kernels=("mma_tt_bf16_8x32x128_w1x2_s9_vv_swap_r0_a7_x4_streamb",),
            grids=(tiles_8x32,),
            workspace=0,
            chunk=chunk,
        )
    tiles_8x64 = -(-m // 8) * -(-n // 64)
    # 2: M <= 8: the weight streams once
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_8x64 <= 2147483647 and m <= 8:
        return Choice(
            route=2,
            kernels=("mma_tt_bf16_8x64x128_w1x4_s5_vv_swap_r0_a7_x2_streamb",),
            grids=(tiles_8x64,),
            workspace=0,
            chunk=chunk,
        )
    tiles_16x32 = -(-m // 16) * -(-n // 32)
    # 3: M <= 16: the weight streams once
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_16x32 <= 2147483647
        and m <= 16
        and n <= 4096
    ):
        return Choice(
            route=3,
            kernels=("mma_tt_bf16_16x32x128_w1x2_s8_vv_swap_r0_a7_x4_streamb",),
            grids=(tiles_16x32,),
            workspace=0,
            chunk=chunk,
        )
    tiles_16x64 = -(-m // 16) * -(-n // 64)
    # 4: M <= 16: the weight streams once
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_16x64 <= 2147483647 and m <= 16:
        return Choice(
            route=4,
            kernels=("mma_tt_bf16_16x64x128_w1x4_s4_vv_swap_r0_a7_x4_streamb",),
            grids=(tiles_16x64,),
            workspace=0,
            chunk=chunk,
        )
    tiles_32x16 = -(-m // 32) * -(-n // 16)
    # 5: M <= 32: the weight streams once
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_32x16 <= 2147483647
        and m <= 32
        and n <= 2048
    ):
        return Choice(
            route=5,
            kernels=("mma_tt_bf16_32x16x256_w2x1_s4_vv_swap_r0_a7_x1_streamb",),
            grids=(tiles_32x16,),
            workspace=0,
            chunk=chunk,
        )
    tiles_32x32 = -(-m // 32) * -(-n // 32)
    # 6: M <= 32: the weight streams once
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_32x32 <= 2147483647
        and m <= 32
        and n <= 4096
    ):
        return Choice(
            route=6,
            kernels=("mma_tt_bf16_32x32x128_w2x2_s6_vv_swap_r0_a7_x4_streamb",),
            grids=(tiles_32x32,),
            workspace=0,
            chunk=chunk,
        )
    tiles_32x64 = -(-m // 32) * -(-n // 64)
    # 7: M <= 32: the weight streams once
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_32x64 <= 2147483647
        and m <= 32
        and n <= 8192
    ):
        return Choice(
            route=7,
            kernels=("mma_tt_bf16_32x64x128_w1x4_s6_vv_swap_r0_a7_x4_streamb",),
            grids=(tiles_32x64,),
            workspace=0,
            chunk=chunk,
        )
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    # 10: the largest tile that gives 4/4 of the SMs one
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_128x128 <= 2147483647
        and sms * 4 <= tiles_128x128 * 1 * 4
    ):
        return Choice(
            route=10,
            kernels=("mma_tt_bf16_128x128x64_w2x2_s3_vv_c2",),
            grids=(tiles_128x128,),
            workspace=0,
            chunk=chunk,
        )
    tiles_64x128 = -(-m // 64) * -(-n // 128)
    # 11: the largest tile that gives 4/4 of the SMs one
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_64x128 <= 2147483647
        and sms * 4 <= tiles_64x128 * 1 * 4
    ):
        return Choice(
            route=11,
            kernels=("mma_tt_bf16_64x128x64_w2x4_s6_vv_r0_x4_streamb",),
            grids=(tiles_64x128,),
            workspace=0,
            chunk=chunk,
        )
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 12: the largest tile that gives 4/4 of the SMs one
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_64x64 <= 2147483647
        and sms * 4 <= tiles_64x64 * 1 * 4
    ):
        return Choice(
            route=12,
            kernels=("mma_tt_bf16_64x64x64_w2x2_s4_vv_c3",),
            grids=(tiles_64x64,),
            workspace=0,
            chunk=chunk,
        )
    # 13: few outputs: the smallest tile
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_32x32 <= 2147483647:
        return Choice(
            route=13,
            kernels=("mma_tt_bf16_32x32x128_w2x2_s4_vv_c3_a3_x2",),
            grids=(tiles_32x32,),
            workspace=0,
            chunk=chunk,
        )
    # 14: operands off 16 bytes
    if align_a >= 4 and align_b >= 16 and chunks <= 1 and tiles_8x32 <= 2147483647 and m <= 8:
        return Choice(
            route=14,
            kernels=("mma_tt_bf16_8x32x256_w1x2_s4_wv_swap_r0_a7_x2_streamb",),
            grids=(tiles_8x32,),
            workspace=0,
            chunk=chunk,
        )
    # 15: operands off 16 bytes
    if align_a >= 4 and align_b >= 4 and chunks <= 1 and tiles_16x32 <= 2147483647 and m <= 16:
        return Choice(
            route=15,
            kernels=("mma_tt_bf16_16x32x128_w1x2_s5_ww_swap_r0_a7_x4",),
            grids=(tiles_16x32,),
            workspace=0,
            chunk=chunk,
        )
    # 16: operands off 16 bytes
    if chunks <= 1 and tiles_16x32 <= 2147483647 and m <= 16:
        return Choice(
            route=16,
            kernels=("mma_tt_bf16_16x32x128_w1x2_s5_pp_swap_r0_a7_x4",),
            grids=(tiles_16x32,),
            workspace=0,
            chunk=chunk,
        )
    # 17: operands off 16 bytes
    if align_a >= 4 and align_b >= 4 and chunks <= 1 and tiles_64x64 <= 2147483647:
        return Choice(
            route=17,
            kernels=("mma_tt_bf16_64x64x32_w2x2_s4_ww_c4",),
            grids=(tiles_64x64,),
            workspace=0,
            chunk=chunk,
        )
    # 18: everything else: any size and alignment
    if chunks <= 1:
        return Choice(
            route=18,
            kernels=("mma_tt_bf16_64x64x32_w2x2_s4_pp_persistent_c4",),
            grids=(min(tiles_64x64, 2147483647),),
            workspace=0,
            chunk=chunk,
        )
    return None


def sm_86(m: int, n: int, k: int, sms: int, align_a: int, align_b: int) -> Choice | None:
    """For sm_86, sm_89, sm_120, sm_121."""
    chunk = max(1, min(k, k))
    chunks = -(-k // chunk)
    tiles_8x16 = -(-m // 8) * -(-n // 16)
    # 0: M <= 8: the weight streams once
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_8x16 <= 2147483647
        and m <= 8
        and n <= 2048
    ):
        return Choice(
            route=0,
            kernels=("mma_tt_bf16_8x16x512_w1x1_s4_vv_swap_r0_a7_x2_streamb",),
            grids=(tiles_8x16,),
            workspace=0,
            chunk=chunk,
        )
    tiles_8x32 = -(-m // 8) * -(-n // 32)
    # 1: M <= 8: the weight streams once
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_8x32 <= 2147483647
        and m <= 8
        and n <= 4096
    ):
        return Choice(
            route=1,
            kernels=("mma_tt_bf16_8x32x128_w1x2_s9_vv_swap_r0_a7_x4_streamb",),
            grids=(tiles_8x32,),
            workspace=0,
            chunk=chunk,
        )
    tiles_8x64 = -(-m // 8) * -(-n // 64)
    # 2: M <= 8: the weight streams once
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_8x64 <= 2147483647 and m <= 8:
        return Choice(
            route=2,
            kernels=("mma_tt_bf16_8x64x128_w1x4_s5_vv_swap_r0_a7_x2_streamb",),
            grids=(tiles_8x64,),
            workspace=0,
            chunk=chunk,
        )
    tiles_16x32 = -(-m // 16) * -(-n // 32)
    # 3: M <= 16: the weight streams once
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_16x32 <= 2147483647
        and m <= 16
        and n <= 4096
    ):
        return Choice(
            route=3,
            kernels=("mma_tt_bf16_16x32x128_w1x2_s8_vv_swap_r0_a7_x4_streamb",),
            grids=(tiles_16x32,),
            workspace=0,
            chunk=chunk,
        )
    tiles_16x64 = -(-m // 16) * -(-n // 64)
    # 4: M <= 16: the weight streams once
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_16x64 <= 2147483647 and m <= 16:
        return Choice(
            route=4,
            kernels=("mma_tt_bf16_16x64x128_w1x4_s4_vv_swap_r0_a7_x4_streamb",),
            grids=(tiles_16x64,),
            workspace=0,
            chunk=chunk,
        )
    tiles_32x16 = -(-m // 32) * -(-n // 16)
    # 5: M <= 32: the weight streams once
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_32x16 <= 2147483647
        and m <= 32
        and n <= 2048
    ):
        return Choice(
            route=5,
            kernels=("mma_tt_bf16_32x16x256_w2x1_s4_vv_swap_r0_a7_x1_streamb",),
            grids=(tiles_32x16,),
            workspace=0,
            chunk=chunk,
        )
    tiles_32x32 = -(-m // 32) * -(-n // 32)
    # 6: M <= 32: the weight streams once
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_32x32 <= 2147483647
        and m <= 32
        and n <= 4096
    ):
        return Choice(
            route=6,
            kernels=("mma_tt_bf16_32x32x128_w2x2_s6_vv_swap_r0_a7_x4_streamb",),
            grids=(tiles_32x32,),
            workspace=0,
            chunk=chunk,
        )
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    # 10: the largest tile that gives 4/4 of the SMs one
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_128x128 <= 2147483647
        and sms * 4 <= tiles_128x128 * 1 * 4
    ):
        return Choice(
            route=10,
            kernels=("mma_tt_bf16_128x128x64_w2x2_s3_vv_c2",),
            grids=(tiles_128x128,),
            workspace=0,
            chunk=chunk,
        )
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 12: the largest tile that gives 4/4 of the SMs one
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_64x64 <= 2147483647
        and sms * 4 <= tiles_64x64 * 1 * 4
    ):
        return Choice(
            route=12,
            kernels=("mma_tt_bf16_64x64x64_w2x2_s4_vv_c3",),
            grids=(tiles_64x64,),
            workspace=0,
            chunk=chunk,
        )
    # 13: few outputs: the smallest tile
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_32x32 <= 2147483647:
        return Choice(
            route=13,
            kernels=("mma_tt_bf16_32x32x128_w2x2_s4_vv_c3_a3_x2",),
            grids=(tiles_32x32,),
            workspace=0,
            chunk=chunk,
        )
    # 14: operands off 16 bytes
    if align_a >= 4 and align_b >= 16 and chunks <= 1 and tiles_8x32 <= 2147483647 and m <= 8:
        return Choice(
            route=14,
            kernels=("mma_tt_bf16_8x32x256_w1x2_s4_wv_swap_r0_a7_x2_streamb",),
            grids=(tiles_8x32,),
            workspace=0,
            chunk=chunk,
        )
    # 15: operands off 16 bytes
    if align_a >= 4 and align_b >= 4 and chunks <= 1 and tiles_16x32 <= 2147483647 and m <= 16:
        return Choice(
            route=15,
            kernels=("mma_tt_bf16_16x32x128_w1x2_s5_ww_swap_r0_a7_x4",),
            grids=(tiles_16x32,),
            workspace=0,
            chunk=chunk,
        )
    # 16: operands off 16 bytes
    if chunks <= 1 and tiles_16x32 <= 2147483647 and m <= 16:
        return Choice(
            route=16,
            kernels=("mma_tt_bf16_16x32x128_w1x2_s5_pp_swap_r0_a7_x4",),
            grids=(tiles_16x32,),
            workspace=0,
            chunk=chunk,
        )
    # 17: operands off 16 bytes
    if align_a >= 4 and align_b >= 4 and chunks <= 1 and tiles_64x64 <= 2147483647:
        return Choice(
            route=17,
            kernels=("mma_tt_bf16_64x64x32_w2x2_s4_ww_c4",),
            grids=(tiles_64x64,),
            workspace=0,
            chunk=chunk,
        )
    # 18: everything else: any size and alignment
    if chunks <= 1:
        return Choice(
            route=18,
            kernels=("mma_tt_bf16_64x64x32_w2x2_s4_pp_persistent_c4",),
            grids=(min(tiles_64x64, 2147483647),),
            workspace=0,
            chunk=chunk,
        )
    return None


def sm_90(m: int, n: int, k: int, sms: int, align_a: int, align_b: int) -> Choice | None:
    """For sm_90."""
    chunk = max(1, min(k, k))
    chunks = -(-k // chunk)
    tiles_8x16 = -(-m // 8) * -(-n // 16)
    # 0: M <= 8: the weight streams once
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_8x16 <= 2147483647
        and m <= 8
        and n <= 2048
    ):
        return Choice(
            route=0,
            kernels=("mma_tt_bf16_8x16x512_w1x1_s4_vv_swap_r0_a7_x2_streamb",),
            grids=(tiles_8x16,),
            workspace=0,
            chunk=chunk,
        )
    tiles_8x32 = -(-m // 8) * -(-n // 32)
    # 1: M <= 8: the weight streams once
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_8x32 <= 2147483647
        and m <= 8
        and n <= 4096
    ):
        return Choice(
            route=1,
            kernels=("mma_tt_bf16_8x32x128_w1x2_s9_vv_swap_r0_a7_x4_streamb",),
            grids=(tiles_8x32,),
            workspace=0,
            chunk=chunk,
        )
    tiles_8x64 = -(-m // 8) * -(-n // 64)
    # 2: M <= 8: the weight streams once
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_8x64 <= 2147483647 and m <= 8:
        return Choice(
            route=2,
            kernels=("mma_tt_bf16_8x64x128_w1x4_s5_vv_swap_r0_a7_x2_streamb",),
            grids=(tiles_8x64,),
            workspace=0,
            chunk=chunk,
        )
    tiles_16x32 = -(-m // 16) * -(-n // 32)
    # 3: M <= 16: the weight streams once
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_16x32 <= 2147483647
        and m <= 16
        and n <= 4096
    ):
        return Choice(
            route=3,
            kernels=("mma_tt_bf16_16x32x128_w1x2_s8_vv_swap_r0_a7_x4_streamb",),
            grids=(tiles_16x32,),
            workspace=0,
            chunk=chunk,
        )
    tiles_16x64 = -(-m // 16) * -(-n // 64)
    # 4: M <= 16: the weight streams once
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_16x64 <= 2147483647 and m <= 16:
        return Choice(
            route=4,
            kernels=("mma_tt_bf16_16x64x128_w1x4_s4_vv_swap_r0_a7_x4_streamb",),
            grids=(tiles_16x64,),
            workspace=0,
            chunk=chunk,
        )
    tiles_32x16 = -(-m // 32) * -(-n // 16)
    # 5: M <= 32: the weight streams once
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_32x16 <= 2147483647
        and m <= 32
        and n <= 2048
    ):
        return Choice(
            route=5,
            kernels=("mma_tt_bf16_32x16x256_w2x1_s4_vv_swap_r0_a7_x1_streamb",),
            grids=(tiles_32x16,),
            workspace=0,
            chunk=chunk,
        )
    tiles_32x32 = -(-m // 32) * -(-n // 32)
    # 6: M <= 32: the weight streams once
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_32x32 <= 2147483647
        and m <= 32
        and n <= 4096
    ):
        return Choice(
            route=6,
            kernels=("mma_tt_bf16_32x32x128_w2x2_s6_vv_swap_r0_a7_x4_streamb",),
            grids=(tiles_32x32,),
            workspace=0,
            chunk=chunk,
        )
    tiles_32x64 = -(-m // 32) * -(-n // 64)
    # 7: M <= 32: the weight streams once
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_32x64 <= 2147483647
        and m <= 32
        and n <= 8192
    ):
        return Choice(
            route=7,
            kernels=("mma_tt_bf16_32x64x128_w1x4_s6_vv_swap_r0_a7_x4_streamb",),
            grids=(tiles_32x64,),
            workspace=0,
            chunk=chunk,
        )
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    # 8: the largest tile that gives 3/4 of the SMs one
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
            route=8,
            kernels=("wgmma_tt_bf16_128x128x64_w2_s6",),
            grids=(min(tiles_128x128, sms // 1) * 1,),
            workspace=0,
            chunk=chunk,
        )
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 9: few outputs: the smallest tile
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
    ):
        return Choice(
            route=9,
            kernels=("wgmma_tt_bf16_64x64x64_w1_s12",),
            grids=(min(tiles_64x64, sms // 1) * 1,),
            workspace=0,
            chunk=chunk,
        )
    # 10: the largest tile that gives 4/4 of the SMs one
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_128x128 <= 2147483647
        and sms * 4 <= tiles_128x128 * 1 * 4
    ):
        return Choice(
            route=10,
            kernels=("mma_tt_bf16_128x128x64_w2x2_s3_vv_c2",),
            grids=(tiles_128x128,),
            workspace=0,
            chunk=chunk,
        )
    tiles_64x128 = -(-m // 64) * -(-n // 128)
    # 11: the largest tile that gives 4/4 of the SMs one
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_64x128 <= 2147483647
        and sms * 4 <= tiles_64x128 * 1 * 4
    ):
        return Choice(
            route=11,
            kernels=("mma_tt_bf16_64x128x64_w2x4_s6_vv_r0_x4_streamb",),
            grids=(tiles_64x128,),
            workspace=0,
            chunk=chunk,
        )
    # 12: the largest tile that gives 4/4 of the SMs one
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_64x64 <= 2147483647
        and sms * 4 <= tiles_64x64 * 1 * 4
    ):
        return Choice(
            route=12,
            kernels=("mma_tt_bf16_64x64x64_w2x2_s4_vv_c3",),
            grids=(tiles_64x64,),
            workspace=0,
            chunk=chunk,
        )
    # 13: few outputs: the smallest tile
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_32x32 <= 2147483647:
        return Choice(
            route=13,
            kernels=("mma_tt_bf16_32x32x128_w2x2_s4_vv_c3_a3_x2",),
            grids=(tiles_32x32,),
            workspace=0,
            chunk=chunk,
        )
    # 14: operands off 16 bytes
    if align_a >= 4 and align_b >= 16 and chunks <= 1 and tiles_8x32 <= 2147483647 and m <= 8:
        return Choice(
            route=14,
            kernels=("mma_tt_bf16_8x32x256_w1x2_s4_wv_swap_r0_a7_x2_streamb",),
            grids=(tiles_8x32,),
            workspace=0,
            chunk=chunk,
        )
    # 15: operands off 16 bytes
    if align_a >= 4 and align_b >= 4 and chunks <= 1 and tiles_16x32 <= 2147483647 and m <= 16:
        return Choice(
            route=15,
            kernels=("mma_tt_bf16_16x32x128_w1x2_s5_ww_swap_r0_a7_x4",),
            grids=(tiles_16x32,),
            workspace=0,
            chunk=chunk,
        )
    # 16: operands off 16 bytes
    if chunks <= 1 and tiles_16x32 <= 2147483647 and m <= 16:
        return Choice(
            route=16,
            kernels=("mma_tt_bf16_16x32x128_w1x2_s5_pp_swap_r0_a7_x4",),
            grids=(tiles_16x32,),
            workspace=0,
            chunk=chunk,
        )
    # 17: operands off 16 bytes
    if align_a >= 4 and align_b >= 4 and chunks <= 1 and tiles_64x64 <= 2147483647:
        return Choice(
            route=17,
            kernels=("mma_tt_bf16_64x64x32_w2x2_s4_ww_c4",),
            grids=(tiles_64x64,),
            workspace=0,
            chunk=chunk,
        )
    # 18: everything else: any size and alignment
    if chunks <= 1:
        return Choice(
            route=18,
            kernels=("mma_tt_bf16_64x64x32_w2x2_s4_pp_persistent_c4",),
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
