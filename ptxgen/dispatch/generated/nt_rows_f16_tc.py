"""Dispatch of the NT products under the plan "rows", f16, tc tier.

Generated from ptxgen.tiles.ROUTES["NT", "rows", "f16", "tc"]; do not edit.
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
            kernels=("mma_nt_f16_8x16x512_w1x1_s4_vv_swap_r0_a7_x2_streamb",),
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
            kernels=("mma_nt_f16_8x32x128_w1x2_s9_vv_swap_r0_a7_x4_streamb",),
            grids=(tiles_8x32,),
            workspace=0,
            chunk=chunk,
        )
    tiles_8x64 = -(-m // 8) * -(-n // 64)
    # 2: M <= 8: the weight streams once
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_8x64 <= 2147483647 and m <= 8:
        return Choice(
            route=2,
            kernels=("mma_nt_f16_8x64x128_w1x4_s5_vv_swap_r0_a7_x2_streamb",),
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
            kernels=("mma_nt_f16_16x32x128_w1x2_s8_vv_swap_r0_a7_x4_streamb",),
            grids=(tiles_16x32,),
            workspace=0,
            chunk=chunk,
        )
    tiles_16x64 = -(-m // 16) * -(-n // 64)
    # 4: M <= 16: the weight streams once
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_16x64 <= 2147483647 and m <= 16:
        return Choice(
            route=4,
            kernels=("mma_nt_f16_16x64x128_w1x4_s4_vv_swap_r0_a7_x4_streamb",),
            grids=(tiles_16x64,),
            workspace=0,
            chunk=chunk,
        )
    tiles_32x32 = -(-m // 32) * -(-n // 32)
    # 5: M <= 32: the weight streams once
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_32x32 <= 2147483647
        and m <= 32
        and n <= 4096
    ):
        return Choice(
            route=5,
            kernels=("mma_nt_f16_32x32x128_w2x2_s6_vv_swap_r0_a7_x4_streamb",),
            grids=(tiles_32x32,),
            workspace=0,
            chunk=chunk,
        )
    tiles_32x64 = -(-m // 32) * -(-n // 64)
    # 6: M <= 32: the weight streams once
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_32x64 <= 2147483647
        and m <= 32
        and n <= 8192
    ):
        return Choice(
            route=6,
            kernels=("mma_nt_f16_32x64x128_w1x4_s6_vv_swap_r0_a7_x4_streamb",),
            grids=(tiles_32x64,),
            workspace=0,
            chunk=chunk,
        )
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    # 19: the largest tile that gives 4/4 of the SMs one
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_128x128 <= 2147483647
        and sms * 4 <= tiles_128x128 * 1 * 4
    ):
        return Choice(
            route=19,
            kernels=("mma_nt_f16_128x128x64_w2x2_s3_vv_c2",),
            grids=(tiles_128x128,),
            workspace=0,
            chunk=chunk,
        )
    tiles_64x128 = -(-m // 64) * -(-n // 128)
    # 20: the largest tile that gives 4/4 of the SMs one
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_64x128 <= 2147483647
        and sms * 4 <= tiles_64x128 * 1 * 4
    ):
        return Choice(
            route=20,
            kernels=("mma_nt_f16_64x128x64_w2x4_s6_vv_r0_x4_streamb",),
            grids=(tiles_64x128,),
            workspace=0,
            chunk=chunk,
        )
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 21: the largest tile that gives 4/4 of the SMs one
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_64x64 <= 2147483647
        and sms * 4 <= tiles_64x64 * 1 * 4
    ):
        return Choice(
            route=21,
            kernels=("mma_nt_f16_64x64x64_w2x2_s4_vv_c3",),
            grids=(tiles_64x64,),
            workspace=0,
            chunk=chunk,
        )
    # 22: few outputs: the smallest tile
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_32x32 <= 2147483647:
        return Choice(
            route=22,
            kernels=("mma_nt_f16_32x32x128_w2x2_s4_vv_c3_a3_x2",),
            grids=(tiles_32x32,),
            workspace=0,
            chunk=chunk,
        )
    # 23: operands off 16 bytes
    if align_a >= 4 and align_b >= 4 and chunks <= 1 and tiles_16x32 <= 2147483647 and m <= 16:
        return Choice(
            route=23,
            kernels=("mma_nt_f16_16x32x128_w1x2_s5_ww_swap_r0_a7_x4",),
            grids=(tiles_16x32,),
            workspace=0,
            chunk=chunk,
        )
    # 24: operands off 16 bytes
    if chunks <= 1 and tiles_16x32 <= 2147483647 and m <= 16:
        return Choice(
            route=24,
            kernels=("mma_nt_f16_16x32x128_w1x2_s5_pp_swap_r0_a7_x4",),
            grids=(tiles_16x32,),
            workspace=0,
            chunk=chunk,
        )
    # 25: operands off 16 bytes
    if align_a >= 4 and align_b >= 4 and chunks <= 1 and tiles_64x64 <= 2147483647:
        return Choice(
            route=25,
            kernels=("mma_nt_f16_64x64x32_w2x2_s4_ww_c4",),
            grids=(tiles_64x64,),
            workspace=0,
            chunk=chunk,
        )
    # 26: everything else: any size and alignment
    if chunks <= 1:
        return Choice(
            route=26,
            kernels=("mma_nt_f16_64x64x32_w2x2_s4_pp_persistent_c4",),
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
            kernels=("mma_nt_f16_8x16x512_w1x1_s4_vv_swap_r0_a7_x2_streamb",),
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
            kernels=("mma_nt_f16_8x32x128_w1x2_s9_vv_swap_r0_a7_x4_streamb",),
            grids=(tiles_8x32,),
            workspace=0,
            chunk=chunk,
        )
    tiles_8x64 = -(-m // 8) * -(-n // 64)
    # 2: M <= 8: the weight streams once
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_8x64 <= 2147483647 and m <= 8:
        return Choice(
            route=2,
            kernels=("mma_nt_f16_8x64x128_w1x4_s5_vv_swap_r0_a7_x2_streamb",),
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
            kernels=("mma_nt_f16_16x32x128_w1x2_s8_vv_swap_r0_a7_x4_streamb",),
            grids=(tiles_16x32,),
            workspace=0,
            chunk=chunk,
        )
    tiles_16x64 = -(-m // 16) * -(-n // 64)
    # 4: M <= 16: the weight streams once
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_16x64 <= 2147483647 and m <= 16:
        return Choice(
            route=4,
            kernels=("mma_nt_f16_16x64x128_w1x4_s4_vv_swap_r0_a7_x4_streamb",),
            grids=(tiles_16x64,),
            workspace=0,
            chunk=chunk,
        )
    tiles_32x32 = -(-m // 32) * -(-n // 32)
    # 5: M <= 32: the weight streams once
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_32x32 <= 2147483647
        and m <= 32
        and n <= 4096
    ):
        return Choice(
            route=5,
            kernels=("mma_nt_f16_32x32x128_w2x2_s6_vv_swap_r0_a7_x4_streamb",),
            grids=(tiles_32x32,),
            workspace=0,
            chunk=chunk,
        )
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    # 19: the largest tile that gives 4/4 of the SMs one
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_128x128 <= 2147483647
        and sms * 4 <= tiles_128x128 * 1 * 4
    ):
        return Choice(
            route=19,
            kernels=("mma_nt_f16_128x128x64_w2x2_s3_vv_c2",),
            grids=(tiles_128x128,),
            workspace=0,
            chunk=chunk,
        )
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 21: the largest tile that gives 4/4 of the SMs one
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_64x64 <= 2147483647
        and sms * 4 <= tiles_64x64 * 1 * 4
    ):
        return Choice(
            route=21,
            kernels=("mma_nt_f16_64x64x64_w2x2_s4_vv_c3",),
            grids=(tiles_64x64,),
            workspace=0,
            chunk=chunk,
        )
    # 22: few outputs: the smallest tile
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_32x32 <= 2147483647:
        return Choice(
            route=22,
            kernels=("mma_nt_f16_32x32x128_w2x2_s4_vv_c3_a3_x2",),
            grids=(tiles_32x32,),
            workspace=0,
            chunk=chunk,
        )
    # 23: operands off 16 bytes
    if align_a >= 4 and align_b >= 4 and chunks <= 1 and tiles_16x32 <= 2147483647 and m <= 16:
        return Choice(
            route=23,
            kernels=("mma_nt_f16_16x32x128_w1x2_s5_ww_swap_r0_a7_x4",),
            grids=(tiles_16x32,),
            workspace=0,
            chunk=chunk,
        )
    # 24: operands off 16 bytes
    if chunks <= 1 and tiles_16x32 <= 2147483647 and m <= 16:
        return Choice(
            route=24,
            kernels=("mma_nt_f16_16x32x128_w1x2_s5_pp_swap_r0_a7_x4",),
            grids=(tiles_16x32,),
            workspace=0,
            chunk=chunk,
        )
    # 25: operands off 16 bytes
    if align_a >= 4 and align_b >= 4 and chunks <= 1 and tiles_64x64 <= 2147483647:
        return Choice(
            route=25,
            kernels=("mma_nt_f16_64x64x32_w2x2_s4_ww_c4",),
            grids=(tiles_64x64,),
            workspace=0,
            chunk=chunk,
        )
    # 26: everything else: any size and alignment
    if chunks <= 1:
        return Choice(
            route=26,
            kernels=("mma_nt_f16_64x64x32_w2x2_s4_pp_persistent_c4",),
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
            kernels=("mma_nt_f16_8x16x512_w1x1_s4_vv_swap_r0_a7_x2_streamb",),
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
            kernels=("mma_nt_f16_8x32x128_w1x2_s9_vv_swap_r0_a7_x4_streamb",),
            grids=(tiles_8x32,),
            workspace=0,
            chunk=chunk,
        )
    tiles_8x64 = -(-m // 8) * -(-n // 64)
    # 2: M <= 8: the weight streams once
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_8x64 <= 2147483647 and m <= 8:
        return Choice(
            route=2,
            kernels=("mma_nt_f16_8x64x128_w1x4_s5_vv_swap_r0_a7_x2_streamb",),
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
            kernels=("mma_nt_f16_16x32x128_w1x2_s8_vv_swap_r0_a7_x4_streamb",),
            grids=(tiles_16x32,),
            workspace=0,
            chunk=chunk,
        )
    tiles_16x64 = -(-m // 16) * -(-n // 64)
    # 4: M <= 16: the weight streams once
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_16x64 <= 2147483647 and m <= 16:
        return Choice(
            route=4,
            kernels=("mma_nt_f16_16x64x128_w1x4_s4_vv_swap_r0_a7_x4_streamb",),
            grids=(tiles_16x64,),
            workspace=0,
            chunk=chunk,
        )
    tiles_32x32 = -(-m // 32) * -(-n // 32)
    # 5: M <= 32: the weight streams once
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_32x32 <= 2147483647
        and m <= 32
        and n <= 4096
    ):
        return Choice(
            route=5,
            kernels=("mma_nt_f16_32x32x128_w2x2_s6_vv_swap_r0_a7_x4_streamb",),
            grids=(tiles_32x32,),
            workspace=0,
            chunk=chunk,
        )
    tiles_32x64 = -(-m // 32) * -(-n // 64)
    # 6: M <= 32: the weight streams once
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_32x64 <= 2147483647
        and m <= 32
        and n <= 8192
    ):
        return Choice(
            route=6,
            kernels=("mma_nt_f16_32x64x128_w1x4_s6_vv_swap_r0_a7_x4_streamb",),
            grids=(tiles_32x64,),
            workspace=0,
            chunk=chunk,
        )
    tiles_128x256 = -(-m // 128) * -(-n // 256)
    # 7: large outputs
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
            route=7,
            kernels=("wgmma_nt_f16_128x256x64_w2_s4_r232_b16",),
            grids=(min(tiles_128x256, sms // 1) * 1,),
            workspace=0,
            chunk=chunk,
        )
    tiles_256x256 = -(-m // 256) * -(-n // 256)
    # 8: large outputs
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
            route=8,
            kernels=("wgmma_nt_f16_128x256x64_w2_s4_c2x1_r232",),
            grids=(min(tiles_256x256, sms // 2) * 2,),
            workspace=0,
            chunk=chunk,
        )
    tiles_192x128 = -(-m // 192) * -(-n // 128)
    # 9: large outputs
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
            route=9,
            kernels=("wgmma_nt_f16_192x128x64_w3_s4",),
            grids=(min(tiles_192x128, sms // 1) * 1,),
            workspace=0,
            chunk=chunk,
        )
    tiles_192x256 = -(-m // 192) * -(-n // 256)
    # 10: large outputs
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
            route=10,
            kernels=("wgmma_nt_f16_192x128x64_w3_s4_c1x2",),
            grids=(min(tiles_192x256, sms // 2) * 2,),
            workspace=0,
            chunk=chunk,
        )
    tiles_128x224 = -(-m // 128) * -(-n // 224)
    # 11: the largest tile that gives 3/4 of the SMs one
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
            route=11,
            kernels=("wgmma_nt_f16_128x224x64_w2_s4",),
            grids=(min(tiles_128x224, sms // 1) * 1,),
            workspace=0,
            chunk=chunk,
        )
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    # 12: the largest tile that gives 3/4 of the SMs one
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
            route=12,
            kernels=("wgmma_nt_f16_128x128x64_w2_s6",),
            grids=(min(tiles_128x128, sms // 1) * 1,),
            workspace=0,
            chunk=chunk,
        )
    tiles_128x112 = -(-m // 128) * -(-n // 112)
    # 13: the largest tile that gives 3/4 of the SMs one
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
            route=13,
            kernels=("wgmma_nt_f16_128x112x64_w2_s6",),
            grids=(min(tiles_128x112, sms // 1) * 1,),
            workspace=0,
            chunk=chunk,
        )
    tiles_128x64 = -(-m // 128) * -(-n // 64)
    # 14: the largest tile that gives 3/4 of the SMs one
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
            route=14,
            kernels=("wgmma_nt_f16_128x64x64_w2_s8",),
            grids=(min(tiles_128x64, sms // 1) * 1,),
            workspace=0,
            chunk=chunk,
        )
    tiles_64x128 = -(-m // 64) * -(-n // 128)
    # 15: the largest tile that gives 3/4 of the SMs one
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
            route=15,
            kernels=("wgmma_nt_f16_64x128x64_w1_s8",),
            grids=(min(tiles_64x128, sms // 1) * 1,),
            workspace=0,
            chunk=chunk,
        )
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 16: the largest tile that gives 3/4 of the SMs one
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
            route=16,
            kernels=("wgmma_nt_f16_64x64x64_w1_s12",),
            grids=(min(tiles_64x64, sms // 1) * 1,),
            workspace=0,
            chunk=chunk,
        )
    tiles_64x32 = -(-m // 64) * -(-n // 32)
    # 17: the largest tile that gives 3/4 of the SMs one
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
            route=17,
            kernels=("wgmma_nt_f16_64x32x128_w1_s8",),
            grids=(min(tiles_64x32, sms // 1) * 1,),
            workspace=0,
            chunk=chunk,
        )
    tiles_64x16 = -(-m // 64) * -(-n // 16)
    # 18: few outputs: the smallest tile
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
            route=18,
            kernels=("wgmma_nt_f16_64x16x128_w1_s10",),
            grids=(min(tiles_64x16, sms // 1) * 1,),
            workspace=0,
            chunk=chunk,
        )
    # 19: the largest tile that gives 4/4 of the SMs one
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_128x128 <= 2147483647
        and sms * 4 <= tiles_128x128 * 1 * 4
    ):
        return Choice(
            route=19,
            kernels=("mma_nt_f16_128x128x64_w2x2_s3_vv_c2",),
            grids=(tiles_128x128,),
            workspace=0,
            chunk=chunk,
        )
    # 20: the largest tile that gives 4/4 of the SMs one
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_64x128 <= 2147483647
        and sms * 4 <= tiles_64x128 * 1 * 4
    ):
        return Choice(
            route=20,
            kernels=("mma_nt_f16_64x128x64_w2x4_s6_vv_r0_x4_streamb",),
            grids=(tiles_64x128,),
            workspace=0,
            chunk=chunk,
        )
    # 21: the largest tile that gives 4/4 of the SMs one
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_64x64 <= 2147483647
        and sms * 4 <= tiles_64x64 * 1 * 4
    ):
        return Choice(
            route=21,
            kernels=("mma_nt_f16_64x64x64_w2x2_s4_vv_c3",),
            grids=(tiles_64x64,),
            workspace=0,
            chunk=chunk,
        )
    # 22: few outputs: the smallest tile
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_32x32 <= 2147483647:
        return Choice(
            route=22,
            kernels=("mma_nt_f16_32x32x128_w2x2_s4_vv_c3_a3_x2",),
            grids=(tiles_32x32,),
            workspace=0,
            chunk=chunk,
        )
    # 23: operands off 16 bytes
    if align_a >= 4 and align_b >= 4 and chunks <= 1 and tiles_16x32 <= 2147483647 and m <= 16:
        return Choice(
            route=23,
            kernels=("mma_nt_f16_16x32x128_w1x2_s5_ww_swap_r0_a7_x4",),
            grids=(tiles_16x32,),
            workspace=0,
            chunk=chunk,
        )
    # 24: operands off 16 bytes
    if chunks <= 1 and tiles_16x32 <= 2147483647 and m <= 16:
        return Choice(
            route=24,
            kernels=("mma_nt_f16_16x32x128_w1x2_s5_pp_swap_r0_a7_x4",),
            grids=(tiles_16x32,),
            workspace=0,
            chunk=chunk,
        )
    # 25: operands off 16 bytes
    if align_a >= 4 and align_b >= 4 and chunks <= 1 and tiles_64x64 <= 2147483647:
        return Choice(
            route=25,
            kernels=("mma_nt_f16_64x64x32_w2x2_s4_ww_c4",),
            grids=(tiles_64x64,),
            workspace=0,
            chunk=chunk,
        )
    # 26: everything else: any size and alignment
    if chunks <= 1:
        return Choice(
            route=26,
            kernels=("mma_nt_f16_64x64x32_w2x2_s4_pp_persistent_c4",),
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
