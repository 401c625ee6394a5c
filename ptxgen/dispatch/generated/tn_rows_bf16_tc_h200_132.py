"""Dispatch of the TN products under the plan "rows", bf16, tc tier.

On NVIDIA H200 with 132 SMs, by its profile.

Generated from tiles/profiles/h200_132.json; do not edit.
Regenerate: ptxgen generate
"""

from ptxgen.dispatch.choice import Choice, Dispatch


def sm_90(m: int, n: int, k: int, sms: int, align_a: int, align_b: int) -> Choice | None:
    """For sm_90."""
    chunk = max(1, min(k, k))
    chunks = -(-k // chunk)
    tiles_128x64 = -(-m // 128) * -(-n // 64)
    # 0: measured at 3 problems: 4 % faster than the next
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
        and m >= 129
        and m <= 1448
        and n >= 1774
        and k <= 886
    ):
        return Choice(
            route=0,
            kernels=("wgmma_tn_bf16_128x64x64_w2_s8",),
            grids=(min(tiles_128x64, sms // 1) * 1,),
            workspace=0,
            chunk=chunk,
        )
    tiles_16x32 = -(-m // 16) * -(-n // 32)
    # 1: measured at 5 problems: 9 % faster than the next
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_16x32 <= 2147483647
        and m >= 9
        and m <= 16
        and k <= 2172
    ):
        return Choice(
            route=1,
            kernels=("mma_tn_bf16_16x32x128_w1x2_s8_vv_swap_r0_a7_x4_streamb",),
            grids=(tiles_16x32,),
            workspace=0,
            chunk=chunk,
        )
    tiles_64x32 = -(-m // 64) * -(-n // 32)
    # 2: measured at 3 problems: 5 % faster than the next
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
        and m >= 129
        and m <= 1448
        and n <= 1773
        and k <= 443
    ):
        return Choice(
            route=2,
            kernels=("wgmma_tn_bf16_64x32x128_w1_s8",),
            grids=(min(tiles_64x32, sms // 1) * 1,),
            workspace=0,
            chunk=chunk,
        )
    tiles_8x32 = -(-m // 8) * -(-n // 32)
    # 3: measured at 1 problem: 1 % faster than the next
    if (
        align_a >= 4
        and align_b >= 16
        and chunks <= 1
        and tiles_8x32 <= 2147483647
        and m <= 8
        and k <= 443
        and align_a >= 16
    ):
        return Choice(
            route=3,
            kernels=("mma_tn_bf16_8x32x256_w1x2_s4_wv_swap_r0_a7_x2_streamb",),
            grids=(tiles_8x32,),
            workspace=0,
            chunk=chunk,
        )
    tiles_32x32 = -(-m // 32) * -(-n // 32)
    # 4: measured at 1 problem: as fast as the best
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_32x32 <= 2147483647
        and m >= 17
        and m <= 32
        and k <= 443
    ):
        return Choice(
            route=4,
            kernels=("mma_tn_bf16_32x32x128_w2x2_s6_vv_swap_r0_a7_x4_streamb",),
            grids=(tiles_32x32,),
            workspace=0,
            chunk=chunk,
        )
    tiles_128x256 = -(-m // 128) * -(-n // 256)
    # 5: measured at 2 problems: 2 % faster than the next
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
        and m >= 1449
        and m <= 5792
        and n >= 10837
        and k >= 887
    ):
        return Choice(
            route=5,
            kernels=("wgmma_tn_bf16_128x256x64_w2_s4_r232_b16",),
            grids=(min(tiles_128x256, sms // 1) * 1,),
            workspace=0,
            chunk=chunk,
        )
    # 6: measured at 3 problems: 4 % faster than the next
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
        and m >= 257
        and m <= 2478
        and n >= 5793
        and n <= 10836
        and k >= 2173
    ):
        return Choice(
            route=6,
            kernels=("wgmma_tn_bf16_128x256x64_w2_s4_r232_b16",),
            grids=(min(tiles_128x256, sms // 1) * 1,),
            workspace=0,
            chunk=chunk,
        )
    tiles_192x256 = -(-m // 192) * -(-n // 256)
    # 7: measured at 1 problem: 36 % faster than the next
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
        and m >= 2479
        and m <= 3505
        and n <= 1773
        and k >= 3547
    ):
        return Choice(
            route=7,
            kernels=("wgmma_tn_bf16_192x128x64_w3_s4_c1x2",),
            grids=(min(tiles_192x256, sms // 2) * 2,),
            workspace=0,
            chunk=chunk,
        )
    tiles_128x224 = -(-m // 128) * -(-n // 224)
    # 8: measured at 2 problems: 1 % faster than the next
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
        and m >= 2479
        and n >= 5793
        and k >= 4526
    ):
        return Choice(
            route=8,
            kernels=("wgmma_tn_bf16_128x224x64_w2_s4",),
            grids=(min(tiles_128x224, sms // 1) * 1,),
            workspace=0,
            chunk=chunk,
        )
    tiles_64x16 = -(-m // 64) * -(-n // 16)
    # 9: measured at 3 problems: 3 % faster than the next
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
        and m >= 33
        and m <= 256
        and n <= 627
        and k >= 444
        and k <= 2172
    ):
        return Choice(
            route=9,
            kernels=("wgmma_tn_bf16_64x16x128_w1_s10",),
            grids=(min(tiles_64x16, sms // 1) * 1,),
            workspace=0,
            chunk=chunk,
        )
    tiles_192x128 = -(-m // 192) * -(-n // 128)
    # 10: measured at 2 problems: 2 % faster than the next
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
        and m >= 1449
        and m <= 3505
        and n >= 1774
        and k <= 2172
    ):
        return Choice(
            route=10,
            kernels=("wgmma_tn_bf16_192x128x64_w3_s4",),
            grids=(min(tiles_192x128, sms // 1) * 1,),
            workspace=0,
            chunk=chunk,
        )
    # 11: measured at 2 problems: 4 % faster than the next
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
        and m >= 33
        and m <= 64
        and n >= 1774
        and n <= 10836
        and k <= 2172
    ):
        return Choice(
            route=11,
            kernels=("wgmma_tn_bf16_64x32x128_w1_s8",),
            grids=(min(tiles_64x32, sms // 1) * 1,),
            workspace=0,
            chunk=chunk,
        )
    # 12: measured at 2 problems: 0.1 % behind the best
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
        and m >= 129
        and m <= 256
        and n >= 1774
        and n <= 5792
        and k <= 6400
    ):
        return Choice(
            route=12,
            kernels=("wgmma_tn_bf16_128x64x64_w2_s8",),
            grids=(min(tiles_128x64, sms // 1) * 1,),
            workspace=0,
            chunk=chunk,
        )
    # 13: measured at 2 problems: 3 % faster than the next
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
        and m >= 3506
        and m <= 5792
        and n >= 628
        and k >= 3547
        and k <= 6400
    ):
        return Choice(
            route=13,
            kernels=("wgmma_tn_bf16_128x256x64_w2_s4_r232_b16",),
            grids=(min(tiles_128x256, sms // 1) * 1,),
            workspace=0,
            chunk=chunk,
        )
    tiles_64x128 = -(-m // 64) * -(-n // 128)
    # 14: measured at 1 problem: 1 % faster than the next
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
        and m >= 65
        and m <= 128
        and n >= 5793
        and k >= 4526
    ):
        return Choice(
            route=14,
            kernels=("wgmma_tn_bf16_64x128x64_w1_s8",),
            grids=(min(tiles_64x128, sms // 1) * 1,),
            workspace=0,
            chunk=chunk,
        )
    # 15: measured at 2 problems: 4 % faster than the next
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
        and m >= 2479
        and n <= 876
        and k <= 443
    ):
        return Choice(
            route=15,
            kernels=("wgmma_tn_bf16_128x64x64_w2_s8",),
            grids=(min(tiles_128x64, sms // 1) * 1,),
            workspace=0,
            chunk=chunk,
        )
    # 16: measured at 1 problem: 3 % faster than the next
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
        and m >= 33
        and m <= 64
        and n >= 1774
        and n <= 5792
        and k >= 6401
    ):
        return Choice(
            route=16,
            kernels=("wgmma_tn_bf16_64x32x128_w1_s8",),
            grids=(min(tiles_64x32, sms // 1) * 1,),
            workspace=0,
            chunk=chunk,
        )
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    # 17: measured at 1 problem: 3 % faster than the next
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
        and m >= 65
        and m <= 128
        and n >= 5793
        and k >= 2173
        and k <= 4525
    ):
        return Choice(
            route=17,
            kernels=("wgmma_tn_bf16_128x128x64_w2_s6",),
            grids=(min(tiles_128x128, sms // 1) * 1,),
            workspace=0,
            chunk=chunk,
        )
    tiles_8x64 = -(-m // 8) * -(-n // 64)
    # 18: measured at 2 problems: 6 % faster than the next
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_8x64 <= 2147483647
        and m <= 8
        and n >= 5793
    ):
        return Choice(
            route=18,
            kernels=("mma_tn_bf16_8x64x128_w1x4_s9_vv_swap_r0_a3_x2_streamb",),
            grids=(tiles_8x64,),
            workspace=0,
            chunk=chunk,
        )
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 19: measured at 1 problem: 9 % faster than the next
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
        and m >= 725
        and m <= 1448
        and n <= 627
        and k <= 2172
    ):
        return Choice(
            route=19,
            kernels=("wgmma_tn_bf16_64x64x64_w1_s12",),
            grids=(min(tiles_64x64, sms // 1) * 1,),
            workspace=0,
            chunk=chunk,
        )
    # 20: measured at 1 problem: 10 % faster than the next
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
        and m >= 1449
        and m <= 2478
        and n <= 1011
        and k >= 2173
        and k <= 6400
    ):
        return Choice(
            route=20,
            kernels=("wgmma_tn_bf16_128x128x64_w2_s6",),
            grids=(min(tiles_128x128, sms // 1) * 1,),
            workspace=0,
            chunk=chunk,
        )
    # 21: measured at 2 problems: 7 % faster than the next
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
        and m >= 2479
        and m <= 5792
        and n <= 1773
        and k >= 444
        and k <= 2172
    ):
        return Choice(
            route=21,
            kernels=("wgmma_tn_bf16_128x128x64_w2_s6",),
            grids=(min(tiles_128x128, sms // 1) * 1,),
            workspace=0,
            chunk=chunk,
        )
    # 22: measured at 1 problem: 12 % faster than the next
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
        and m >= 129
        and m <= 724
        and n <= 1773
        and k <= 886
    ):
        return Choice(
            route=22,
            kernels=("wgmma_tn_bf16_64x32x128_w1_s8",),
            grids=(min(tiles_64x32, sms // 1) * 1,),
            workspace=0,
            chunk=chunk,
        )
    # 23: measured at 7 problems: 2 % faster than the next
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
        and m >= 2479
        and n >= 1012
        and n <= 10836
        and k >= 444
        and k <= 6400
    ):
        return Choice(
            route=23,
            kernels=("wgmma_tn_bf16_128x256x64_w2_s4_r232_b16",),
            grids=(min(tiles_128x256, sms // 1) * 1,),
            workspace=0,
            chunk=chunk,
        )
    # 24: measured at 2 problems: 2 % faster than the next
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
        and m >= 5793
        and n <= 1773
    ):
        return Choice(
            route=24,
            kernels=("wgmma_tn_bf16_128x128x64_w2_s6",),
            grids=(min(tiles_128x128, sms // 1) * 1,),
            workspace=0,
            chunk=chunk,
        )
    # 25: measured at 3 problems: 5 % faster than the next
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
        and m >= 129
        and m <= 2478
        and n >= 10837
        and k >= 887
        and k <= 6400
    ):
        return Choice(
            route=25,
            kernels=("wgmma_tn_bf16_128x224x64_w2_s4",),
            grids=(min(tiles_128x224, sms // 1) * 1,),
            workspace=0,
            chunk=chunk,
        )
    # 26: measured at 3 problems: 11 % faster than the next
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
        and m >= 257
        and m <= 724
        and n >= 1774
    ):
        return Choice(
            route=26,
            kernels=("wgmma_tn_bf16_128x128x64_w2_s6",),
            grids=(min(tiles_128x128, sms // 1) * 1,),
            workspace=0,
            chunk=chunk,
        )
    # 27: measured at 6 problems: 7 % faster than the next
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_16x32 <= 2147483647
        and m >= 9
        and m <= 32
        and n <= 1773
    ):
        return Choice(
            route=27,
            kernels=("mma_tn_bf16_16x32x128_w1x2_s8_vv_swap_r0_a7_x4_streamb",),
            grids=(tiles_16x32,),
            workspace=0,
            chunk=chunk,
        )
    # 28: not measured: as the nearest measured problem
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
        and m >= 1449
        and m <= 5792
        and n <= 1773
        and k >= 6401
    ):
        return Choice(
            route=28,
            kernels=("wgmma_tn_bf16_192x128x64_w3_s4_c1x2",),
            grids=(min(tiles_192x256, sms // 2) * 2,),
            workspace=0,
            chunk=chunk,
        )
    # 29: measured at 3 problems: 4 % faster than the next
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
        and m >= 725
        and m <= 1448
        and n <= 3547
        and k >= 444
        and k <= 3546
    ):
        return Choice(
            route=29,
            kernels=("wgmma_tn_bf16_128x64x64_w2_s8",),
            grids=(min(tiles_128x64, sms // 1) * 1,),
            workspace=0,
            chunk=chunk,
        )
    # 30: measured at 1 problem: 7 % faster than the next
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_8x64 <= 2147483647
        and m <= 8
        and n >= 1774
        and k >= 4526
    ):
        return Choice(
            route=30,
            kernels=("mma_tn_bf16_8x64x128_w1x4_s9_vv_swap_r0_a3_x2_streamb",),
            grids=(tiles_8x64,),
            workspace=0,
            chunk=chunk,
        )
    # 31: measured at 8 problems: 3 % faster than the next
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
        and m >= 33
        and m <= 128
        and n <= 1773
    ):
        return Choice(
            route=31,
            kernels=("wgmma_tn_bf16_64x16x128_w1_s10",),
            grids=(min(tiles_64x16, sms // 1) * 1,),
            workspace=0,
            chunk=chunk,
        )
    # 32: measured at 7 problems: 3 % faster than the next
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
        and m >= 725
        and n >= 1774
        and n <= 10836
        and k >= 2173
    ):
        return Choice(
            route=32,
            kernels=("wgmma_tn_bf16_128x256x64_w2_s4_r232_b16",),
            grids=(min(tiles_128x256, sms // 1) * 1,),
            workspace=0,
            chunk=chunk,
        )
    # 33: measured at 4 problems: 11 % faster than the next
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_32x32 <= 2147483647
        and m >= 17
        and m <= 32
        and n >= 1774
        and n <= 5792
    ):
        return Choice(
            route=33,
            kernels=("mma_tn_bf16_32x32x128_w2x2_s6_vv_swap_r0_a7_x4_streamb",),
            grids=(tiles_32x32,),
            workspace=0,
            chunk=chunk,
        )
    # 34: measured at 3 problems: 16 % faster than the next
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
        and m >= 257
        and m <= 724
        and n <= 1773
        and k >= 444
    ):
        return Choice(
            route=34,
            kernels=("wgmma_tn_bf16_64x64x64_w1_s12",),
            grids=(min(tiles_64x64, sms // 1) * 1,),
            workspace=0,
            chunk=chunk,
        )
    # 35: measured at 2 problems: 8 % faster than the next
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
        and m >= 129
        and n >= 5793
        and k >= 2173
    ):
        return Choice(
            route=35,
            kernels=("wgmma_tn_bf16_128x128x64_w2_s6",),
            grids=(min(tiles_128x128, sms // 1) * 1,),
            workspace=0,
            chunk=chunk,
        )
    # 36: measured at 3 problems: 7 % faster than the next
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_64x128 <= 2147483647
        and m <= 64
        and n >= 10837
        and k >= 887
        and k <= 6400
    ):
        return Choice(
            route=36,
            kernels=("mma_tn_bf16_64x128x64_w2x4_s6_vv_r0_x4_streamb",),
            grids=(tiles_64x128,),
            workspace=0,
            chunk=chunk,
        )
    # 37: measured at 7 problems: 10 % faster than the next
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
        and m >= 33
        and m <= 128
        and n >= 1774
        and n <= 10836
    ):
        return Choice(
            route=37,
            kernels=("wgmma_tn_bf16_64x64x64_w1_s12",),
            grids=(min(tiles_64x64, sms // 1) * 1,),
            workspace=0,
            chunk=chunk,
        )
    # 38: measured at 2 problems: 8 % faster than the next
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
        and m >= 1449
        and n >= 1012
    ):
        return Choice(
            route=38,
            kernels=("wgmma_tn_bf16_128x128x64_w2_s6",),
            grids=(min(tiles_128x128, sms // 1) * 1,),
            workspace=0,
            chunk=chunk,
        )
    # 39: measured at 3 problems: 15 % faster than the next
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_16x32 <= 2147483647
        and m >= 9
        and m <= 16
        and n <= 5792
    ):
        return Choice(
            route=39,
            kernels=("mma_tn_bf16_16x32x128_w1x2_s8_vv_swap_r0_a7_x4_streamb",),
            grids=(tiles_16x32,),
            workspace=0,
            chunk=chunk,
        )
    # 40: measured at 7 problems: 5 % faster than the next
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_8x32 <= 2147483647
        and m <= 8
        and k >= 444
    ):
        return Choice(
            route=40,
            kernels=("mma_tn_bf16_8x32x128_w1x2_s9_vv_swap_r0_a7_x4_streamb",),
            grids=(tiles_8x32,),
            workspace=0,
            chunk=chunk,
        )
    # 41: measured at 3 problems: 10 % faster than the next
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
        and m >= 9
        and m <= 256
        and n <= 1773
    ):
        return Choice(
            route=41,
            kernels=("wgmma_tn_bf16_64x32x128_w1_s8",),
            grids=(min(tiles_64x32, sms // 1) * 1,),
            workspace=0,
            chunk=chunk,
        )
    # 42: measured at 1 problem: 4 % faster than the next
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
        and m >= 2479
        and k >= 1255
    ):
        return Choice(
            route=42,
            kernels=("wgmma_tn_bf16_192x128x64_w3_s4",),
            grids=(min(tiles_192x128, sms // 1) * 1,),
            workspace=0,
            chunk=chunk,
        )
    tiles_32x64 = -(-m // 32) * -(-n // 64)
    # 43: measured at 2 problems: 11 % faster than the next
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_32x64 <= 2147483647
        and m <= 64
        and n <= 10836
    ):
        return Choice(
            route=43,
            kernels=("mma_tn_bf16_32x64x128_w1x4_s6_vv_swap_r0_a7_x4_streamb",),
            grids=(tiles_32x64,),
            workspace=0,
            chunk=chunk,
        )
    # 44: measured at 4 problems: 5 % faster than the next
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
    ):
        return Choice(
            route=44,
            kernels=("wgmma_tn_bf16_64x128x64_w1_s8",),
            grids=(min(tiles_64x128, sms // 1) * 1,),
            workspace=0,
            chunk=chunk,
        )
    # 45: measured at 11 problems: 47 % faster than the next
    if align_a >= 4 and align_b >= 16 and chunks <= 1 and tiles_8x32 <= 2147483647 and align_a >= 8:
        return Choice(
            route=45,
            kernels=("mma_tn_bf16_8x32x256_w1x2_s4_wv_swap_r0_a7_x2_streamb",),
            grids=(tiles_8x32,),
            workspace=0,
            chunk=chunk,
        )
    # 46: measured at 1 problem: 107 % faster than the next
    if (
        align_a >= 4
        and align_b >= 4
        and chunks <= 1
        and tiles_16x32 <= 2147483647
        and m <= 16
        and align_a >= 16
        and align_b >= 8
    ):
        return Choice(
            route=46,
            kernels=("mma_tn_bf16_16x32x128_w1x2_s5_ww_swap_r0_a7_x4",),
            grids=(tiles_16x32,),
            workspace=0,
            chunk=chunk,
        )
    # 47: measured at 2 problems: 88 % faster than the next
    if (
        align_a >= 4
        and align_b >= 4
        and chunks <= 1
        and tiles_64x64 <= 2147483647
        and align_a >= 16
        and align_b >= 8
    ):
        return Choice(
            route=47,
            kernels=("mma_tn_bf16_64x64x32_w2x2_s4_ww_c4",),
            grids=(tiles_64x64,),
            workspace=0,
            chunk=chunk,
        )
    # 48: measured at 4 problems: 72 % faster than the next
    if align_a >= 4 and align_b >= 16 and chunks <= 1 and tiles_8x32 <= 2147483647:
        return Choice(
            route=48,
            kernels=("mma_tn_bf16_8x32x256_w1x2_s4_wv_swap_r0_a7_x2_streamb",),
            grids=(tiles_8x32,),
            workspace=0,
            chunk=chunk,
        )
    # 49: measured at 12 problems: 121 % faster than the next
    if chunks <= 1 and tiles_16x32 <= 2147483647 and align_b >= 16:
        return Choice(
            route=49,
            kernels=("mma_tn_bf16_16x32x128_w1x2_s5_pp_swap_r0_a7_x4",),
            grids=(tiles_16x32,),
            workspace=0,
            chunk=chunk,
        )
    # 50: measured at 2 problems: 116 % faster than the next
    if chunks <= 1 and tiles_16x32 <= 2147483647 and m <= 128 and n <= 1026 and align_a >= 16:
        return Choice(
            route=50,
            kernels=("mma_tn_bf16_16x32x128_w1x2_s5_pp_swap_r0_a7_x4",),
            grids=(tiles_16x32,),
            workspace=0,
            chunk=chunk,
        )
    # 51: measured at 2 problems: 77 % faster than the next
    if chunks <= 1 and tiles_16x32 <= 2147483647 and m <= 16 and align_a >= 16:
        return Choice(
            route=51,
            kernels=("mma_tn_bf16_16x32x128_w1x2_s5_pp_swap_r0_a7_x4",),
            grids=(tiles_16x32,),
            workspace=0,
            chunk=chunk,
        )
    # 52: measured at 5 problems: the only kernel
    if chunks <= 1 and align_a >= 16:
        return Choice(
            route=52,
            kernels=("mma_tn_bf16_64x64x32_w2x2_s4_pp_persistent_c4",),
            grids=(min(tiles_64x64, 2147483647),),
            workspace=0,
            chunk=chunk,
        )
    # 53: measured at 1 problem: 158 % faster than the next
    if chunks <= 1 and tiles_16x32 <= 2147483647 and align_b >= 8:
        return Choice(
            route=53,
            kernels=("mma_tn_bf16_16x32x128_w1x2_s5_pp_swap_r0_a7_x4",),
            grids=(tiles_16x32,),
            workspace=0,
            chunk=chunk,
        )
    # 54: measured at 3 problems: 99 % faster than the next
    if chunks <= 1 and tiles_16x32 <= 2147483647:
        return Choice(
            route=54,
            kernels=("mma_tn_bf16_16x32x128_w1x2_s5_pp_swap_r0_a7_x4",),
            grids=(tiles_16x32,),
            workspace=0,
            chunk=chunk,
        )
    # 55: operands off 16 bytes
    if align_a >= 4 and align_b >= 4 and chunks <= 1 and tiles_64x64 <= 2147483647:
        return Choice(
            route=55,
            kernels=("mma_tn_bf16_64x64x32_w2x2_s4_ww_c4",),
            grids=(tiles_64x64,),
            workspace=0,
            chunk=chunk,
        )
    # 56: everything else: any size and alignment
    if chunks <= 1:
        return Choice(
            route=56,
            kernels=("mma_tn_bf16_64x64x32_w2x2_s4_pp_persistent_c4",),
            grids=(min(tiles_64x64, 2147483647),),
            workspace=0,
            chunk=chunk,
        )
    return None


BY_ARCH: dict[str, Dispatch] = {
    "sm_90": sm_90,
}
