"""Dispatch of the TT products under the plan "rows", f32, simt tier.

Generated from ptxgen.tiles.ROUTES["TT", "rows", "f32", "simt"]; do not edit.
Regenerate: ptxgen generate
"""

from ptxgen.dispatch.choice import Choice, Dispatch


def sm_80(m: int, n: int, k: int, sms: int, align_a: int, align_b: int) -> Choice | None:
    """For sm_80, sm_87, sm_90, sm_100, sm_103, sm_110."""
    chunk = max(1, min(k, -(-k // 8 // 16) * 16 if n <= 4096 and k >= 2048 else k))
    chunks = -(-k // chunk)
    tiles_1x16 = -(-m // 1) * -(-n // 16)
    # 0: M <= 1: chunks side by side
    if align_b >= 16 and tiles_1x16 <= 2147483647 and chunks > 1 and m <= 1 and n <= 2048:
        return Choice(
            route=0,
            kernels=("simt_tt_f32_1x16x64_1x1_w1x1l1x16_s4_sk_slices8",),
            grids=(tiles_1x16,),
            workspace=0,
            chunk=chunk,
        )
    tiles_1x32 = -(-m // 1) * -(-n // 32)
    # 1: M <= 1: chunks side by side
    if align_b >= 16 and tiles_1x32 <= 2147483647 and chunks > 1 and m <= 1:
        return Choice(
            route=1,
            kernels=("simt_tt_f32_1x32x64_1x1_w1x1l1x32_s4_sk_slices4",),
            grids=(tiles_1x32,),
            workspace=0,
            chunk=chunk,
        )
    tiles_2x16 = -(-m // 2) * -(-n // 16)
    # 2: M <= 2: chunks side by side
    if align_b >= 16 and tiles_2x16 <= 2147483647 and chunks > 1 and m <= 2 and n <= 2048:
        return Choice(
            route=2,
            kernels=("simt_tt_f32_2x16x64_1x1_w1x1l2x16_s3_sk_slices8",),
            grids=(tiles_2x16,),
            workspace=0,
            chunk=chunk,
        )
    tiles_2x32 = -(-m // 2) * -(-n // 32)
    # 3: M <= 2: chunks side by side
    if align_b >= 16 and tiles_2x32 <= 2147483647 and chunks > 1 and m <= 2:
        return Choice(
            route=3,
            kernels=("simt_tt_f32_2x32x32_1x2_w1x1l2x16_s4_sk_slices8",),
            grids=(tiles_2x32,),
            workspace=0,
            chunk=chunk,
        )
    tiles_4x16 = -(-m // 4) * -(-n // 16)
    # 4: M <= 4: chunks side by side
    if align_b >= 16 and tiles_4x16 <= 2147483647 and chunks > 1 and m <= 4 and n <= 2048:
        return Choice(
            route=4,
            kernels=("simt_tt_f32_4x16x32_1x4_w1x1l4x4_s4_sk_slices8",),
            grids=(tiles_4x16,),
            workspace=0,
            chunk=chunk,
        )
    tiles_4x32 = -(-m // 4) * -(-n // 32)
    # 5: M <= 4: chunks side by side
    if align_b >= 16 and tiles_4x32 <= 2147483647 and chunks > 1 and m <= 4:
        return Choice(
            route=5,
            kernels=("simt_tt_f32_4x32x32_2x4_w1x1l2x8_s3_sk_slices8",),
            grids=(tiles_4x32,),
            workspace=0,
            chunk=chunk,
        )
    tiles_8x16 = -(-m // 8) * -(-n // 16)
    # 6: M <= 8: chunks side by side
    if align_b >= 16 and tiles_8x16 <= 2147483647 and chunks > 1 and m <= 8:
        return Choice(
            route=6,
            kernels=("simt_tt_f32_8x16x32_2x2_w1x1l4x8_s3_sk_slices8",),
            grids=(tiles_8x16,),
            workspace=0,
            chunk=chunk,
        )
    tiles_16x16 = -(-m // 16) * -(-n // 16)
    # 7: M <= 16: chunks side by side
    if align_b >= 16 and tiles_16x16 <= 2147483647 and chunks > 1 and m <= 16:
        return Choice(
            route=7,
            kernels=("simt_tt_f32_16x16x32_4x2_w1x1l4x8_s3_sk_slices8",),
            grids=(tiles_16x16,),
            workspace=0,
            chunk=chunk,
        )
    tiles_32x8 = -(-m // 32) * -(-n // 8)
    # 8: M <= 32: chunks side by side
    if align_b >= 16 and tiles_32x8 <= 2147483647 and chunks > 1 and m <= 32 and n <= 2048:
        return Choice(
            route=8,
            kernels=("simt_tt_f32_32x8x16_8x1_w1x1l4x8_s4_sk_slices8",),
            grids=(tiles_32x8,),
            workspace=0,
            chunk=chunk,
        )
    tiles_32x32 = -(-m // 32) * -(-n // 32)
    # 9: M <= 32: chunks side by side
    if align_b >= 16 and tiles_32x32 <= 2147483647 and chunks > 1 and m <= 32:
        return Choice(
            route=9,
            kernels=("simt_tt_f32_32x32x16_8x4_w1x1l4x8_s3_sk_slices8",),
            grids=(tiles_32x32,),
            workspace=0,
            chunk=chunk,
        )
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    # 10: the largest tile that gives 6/4 of the SMs one
    if (
        align_a >= 16
        and tiles_128x128 <= 2147483647
        and chunks > 1
        and sms * 6 <= tiles_128x128 * 4
    ):
        return Choice(
            route=10,
            kernels=("simt_tt_f32_128x128x8_8x16_w4x1l4x8_s4_vt_slices1_c2",),
            grids=(tiles_128x128,),
            workspace=0,
            chunk=chunk,
        )
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 11: the largest tile that gives 3/4 of the SMs one
    if align_a >= 16 and tiles_64x64 <= 2147483647 and chunks > 1 and sms * 3 <= tiles_64x64 * 4:
        return Choice(
            route=11,
            kernels=("simt_tt_f32_64x64x8_16x8_w1x1l4x8_s4_vt_slices8",),
            grids=(tiles_64x64,),
            workspace=0,
            chunk=chunk,
        )
    # 12: few outputs, split
    if align_a >= 16 and tiles_32x32 <= 2147483647 and chunks > 1 and sms * 4 > tiles_128x128 * 4:
        return Choice(
            route=12,
            kernels=("simt_tt_f32_32x32x16_8x4_w1x1l4x8_s4_vt_slices8",),
            grids=(tiles_32x32,),
            workspace=0,
            chunk=chunk,
        )
    tiles_1x64 = -(-m // 1) * -(-n // 64)
    # 13: M <= 1: the weight streams once
    if align_b >= 16 and chunks <= 1 and tiles_1x64 <= 2147483647 and m <= 1 and n >= 4096:
        return Choice(
            route=13,
            kernels=("simt_tt_f32_1x64x64_1x1_w1x2l1x32_s3_sk",),
            grids=(tiles_1x64,),
            workspace=0,
            chunk=chunk,
        )
    tiles_2x128 = -(-m // 2) * -(-n // 128)
    # 14: M <= 2: the weight streams once
    if align_b >= 16 and chunks <= 1 and tiles_2x128 <= 2147483647 and m <= 2 and n >= 4096:
        return Choice(
            route=14,
            kernels=("simt_tt_f32_2x128x64_1x2_w1x4l2x16_s3_sk",),
            grids=(tiles_2x128,),
            workspace=0,
            chunk=chunk,
        )
    tiles_4x128 = -(-m // 4) * -(-n // 128)
    # 15: M <= 4: the weight streams once
    if align_b >= 16 and chunks <= 1 and tiles_4x128 <= 2147483647 and m <= 4 and n >= 4096:
        return Choice(
            route=15,
            kernels=("simt_tt_f32_4x128x64_2x2_w1x4l2x16_s3_sk",),
            grids=(tiles_4x128,),
            workspace=0,
            chunk=chunk,
        )
    tiles_8x128 = -(-m // 8) * -(-n // 128)
    # 16: M <= 8: the weight streams once
    if align_b >= 16 and chunks <= 1 and tiles_8x128 <= 2147483647 and m <= 8 and n >= 4096:
        return Choice(
            route=16,
            kernels=("simt_tt_f32_8x128x64_2x2_w1x8l4x8_s3_sk",),
            grids=(tiles_8x128,),
            workspace=0,
            chunk=chunk,
        )
    tiles_16x128 = -(-m // 16) * -(-n // 128)
    # 17: M <= 16: the weight streams once
    if align_b >= 16 and chunks <= 1 and tiles_16x128 <= 2147483647 and m <= 16 and n >= 4096:
        return Choice(
            route=17,
            kernels=("simt_tt_f32_16x128x64_4x4_w1x4l4x8_s3_sk",),
            grids=(tiles_16x128,),
            workspace=0,
            chunk=chunk,
        )
    tiles_32x64 = -(-m // 32) * -(-n // 64)
    # 18: M <= 32: the weight streams once
    if align_b >= 16 and chunks <= 1 and tiles_32x64 <= 2147483647 and m <= 32 and n >= 4096:
        return Choice(
            route=18,
            kernels=("simt_tt_f32_32x64x64_4x4_w1x4l8x4_s3_sk",),
            grids=(tiles_32x64,),
            workspace=0,
            chunk=chunk,
        )
    # 19: the largest tile that gives 6/4 of the SMs one
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_128x128 <= 2147483647
        and chunks <= 1
        and sms * 6 <= tiles_128x128 * 4
    ):
        return Choice(
            route=19,
            kernels=("simt_tt_f32_128x128x16_8x8_w4x2l4x8_s3_vs_c2",),
            grids=(tiles_128x128,),
            workspace=0,
            chunk=chunk,
        )
    # 20: the largest tile that gives 4/4 of the SMs one
    if (
        align_a >= 16
        and chunks <= 1
        and tiles_64x64 <= 2147483647
        and chunks <= 1
        and sms * 4 <= tiles_64x64 * 4
    ):
        return Choice(
            route=20,
            kernels=("simt_tt_f32_64x64x32_8x4_w2x2l4x8_s2_vt_c4",),
            grids=(tiles_64x64,),
            workspace=0,
            chunk=chunk,
        )
    # 21: the largest tile that gives 4/4 of the SMs one
    if (
        align_a >= 16
        and chunks <= 1
        and tiles_32x64 <= 2147483647
        and chunks <= 1
        and sms * 4 <= tiles_32x64 * 4
    ):
        return Choice(
            route=21,
            kernels=("simt_tt_f32_32x64x16_4x4_w2x2l4x8_s5_vt_c4",),
            grids=(tiles_32x64,),
            workspace=0,
            chunk=chunk,
        )
    # 22: the largest tile that gives 4/4 of the SMs one
    if (
        align_a >= 16
        and chunks <= 1
        and tiles_32x32 <= 2147483647
        and chunks <= 1
        and sms * 4 <= tiles_32x32 * 4
    ):
        return Choice(
            route=22,
            kernels=("simt_tt_f32_32x32x32_4x4_w2x1l4x8_s4_vt_c6",),
            grids=(tiles_32x32,),
            workspace=0,
            chunk=chunk,
        )
    tiles_16x32 = -(-m // 16) * -(-n // 32)
    # 23: few outputs: many small tiles shorten the wait
    if align_a >= 16 and chunks <= 1 and tiles_16x32 <= 2147483647 and chunks <= 1:
        return Choice(
            route=23,
            kernels=("simt_tt_f32_16x32x32_2x2_w2x2l4x8_s4_vt_c4",),
            grids=(tiles_16x32,),
            workspace=0,
            chunk=chunk,
        )
    tiles_8x32 = -(-m // 8) * -(-n // 32)
    # 24: M <= 8: chunks side by side
    if tiles_8x32 <= 2147483647 and chunks > 1 and m <= 8:
        return Choice(
            route=24,
            kernels=("simt_tt_f32_8x32x16_4x2_w1x1l2x16_s4_st_slices8",),
            grids=(tiles_8x32,),
            workspace=0,
            chunk=chunk,
        )
    # 25: unaligned, few outputs, split
    if tiles_32x32 <= 2147483647 and chunks > 1 and sms * 6 > tiles_64x64 * 4:
        return Choice(
            route=25,
            kernels=("simt_tt_f32_32x32x16_8x4_w1x1l4x8_s3_st_slices8",),
            grids=(tiles_32x32,),
            workspace=0,
            chunk=chunk,
        )
    # 26: the largest tile that gives 6/4 of the SMs one
    if chunks <= 1 and tiles_128x128 <= 2147483647 and chunks <= 1 and sms * 6 <= tiles_128x128 * 4:
        return Choice(
            route=26,
            kernels=("simt_tt_f32_128x128x8_8x8_w4x2l4x8_s4_st_c2",),
            grids=(tiles_128x128,),
            workspace=0,
            chunk=chunk,
        )
    # 27: the largest tile that gives 4/4 of the SMs one
    if chunks <= 1 and tiles_64x64 <= 2147483647 and chunks <= 1 and sms * 4 <= tiles_64x64 * 4:
        return Choice(
            route=27,
            kernels=("simt_tt_f32_64x64x16_8x4_w2x2l4x8_s4_st_c4",),
            grids=(tiles_64x64,),
            workspace=0,
            chunk=chunk,
        )
    # 28: unaligned, few outputs
    if chunks <= 1 and tiles_16x32 <= 2147483647 and chunks <= 1:
        return Choice(
            route=28,
            kernels=("simt_tt_f32_16x32x32_2x2_w2x2l4x8_s4_st_c4",),
            grids=(tiles_16x32,),
            workspace=0,
            chunk=chunk,
        )
    # 29: everything else: any size, alignment and plan
    return Choice(
        route=29,
        kernels=("simt_tt_f32_64x64x16_8x4_w2x2l4x8_s3_st_slices1_persistent",),
        grids=(min(tiles_64x64, 2147483647),),
        workspace=0,
        chunk=chunk,
    )


def sm_86(m: int, n: int, k: int, sms: int, align_a: int, align_b: int) -> Choice | None:
    """For sm_86, sm_89, sm_120, sm_121."""
    chunk = max(1, min(k, -(-k // 8 // 16) * 16 if n <= 4096 and k >= 2048 else k))
    chunks = -(-k // chunk)
    tiles_4x16 = -(-m // 4) * -(-n // 16)
    # 4: M <= 4: chunks side by side
    if align_b >= 16 and tiles_4x16 <= 2147483647 and chunks > 1 and m <= 4 and n <= 2048:
        return Choice(
            route=4,
            kernels=("simt_tt_f32_4x16x32_1x4_w1x1l4x4_s4_sk_slices8",),
            grids=(tiles_4x16,),
            workspace=0,
            chunk=chunk,
        )
    tiles_8x16 = -(-m // 8) * -(-n // 16)
    # 6: M <= 8: chunks side by side
    if align_b >= 16 and tiles_8x16 <= 2147483647 and chunks > 1 and m <= 8:
        return Choice(
            route=6,
            kernels=("simt_tt_f32_8x16x32_2x2_w1x1l4x8_s3_sk_slices8",),
            grids=(tiles_8x16,),
            workspace=0,
            chunk=chunk,
        )
    tiles_32x8 = -(-m // 32) * -(-n // 8)
    # 8: M <= 32: chunks side by side
    if align_b >= 16 and tiles_32x8 <= 2147483647 and chunks > 1 and m <= 32 and n <= 2048:
        return Choice(
            route=8,
            kernels=("simt_tt_f32_32x8x16_8x1_w1x1l4x8_s4_sk_slices8",),
            grids=(tiles_32x8,),
            workspace=0,
            chunk=chunk,
        )
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    # 10: the largest tile that gives 6/4 of the SMs one
    if (
        align_a >= 16
        and tiles_128x128 <= 2147483647
        and chunks > 1
        and sms * 6 <= tiles_128x128 * 4
    ):
        return Choice(
            route=10,
            kernels=("simt_tt_f32_128x128x8_8x16_w4x1l4x8_s4_vt_slices1_c2",),
            grids=(tiles_128x128,),
            workspace=0,
            chunk=chunk,
        )
    tiles_1x64 = -(-m // 1) * -(-n // 64)
    # 13: M <= 1: the weight streams once
    if align_b >= 16 and chunks <= 1 and tiles_1x64 <= 2147483647 and m <= 1 and n >= 4096:
        return Choice(
            route=13,
            kernels=("simt_tt_f32_1x64x64_1x1_w1x2l1x32_s3_sk",),
            grids=(tiles_1x64,),
            workspace=0,
            chunk=chunk,
        )
    tiles_32x64 = -(-m // 32) * -(-n // 64)
    # 18: M <= 32: the weight streams once
    if align_b >= 16 and chunks <= 1 and tiles_32x64 <= 2147483647 and m <= 32 and n >= 4096:
        return Choice(
            route=18,
            kernels=("simt_tt_f32_32x64x64_4x4_w1x4l8x4_s3_sk",),
            grids=(tiles_32x64,),
            workspace=0,
            chunk=chunk,
        )
    # 19: the largest tile that gives 6/4 of the SMs one
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_128x128 <= 2147483647
        and chunks <= 1
        and sms * 6 <= tiles_128x128 * 4
    ):
        return Choice(
            route=19,
            kernels=("simt_tt_f32_128x128x16_8x8_w4x2l4x8_s3_vs_c2",),
            grids=(tiles_128x128,),
            workspace=0,
            chunk=chunk,
        )
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 20: the largest tile that gives 4/4 of the SMs one
    if (
        align_a >= 16
        and chunks <= 1
        and tiles_64x64 <= 2147483647
        and chunks <= 1
        and sms * 4 <= tiles_64x64 * 4
    ):
        return Choice(
            route=20,
            kernels=("simt_tt_f32_64x64x32_8x4_w2x2l4x8_s2_vt_c4",),
            grids=(tiles_64x64,),
            workspace=0,
            chunk=chunk,
        )
    # 21: the largest tile that gives 4/4 of the SMs one
    if (
        align_a >= 16
        and chunks <= 1
        and tiles_32x64 <= 2147483647
        and chunks <= 1
        and sms * 4 <= tiles_32x64 * 4
    ):
        return Choice(
            route=21,
            kernels=("simt_tt_f32_32x64x16_4x4_w2x2l4x8_s5_vt_c4",),
            grids=(tiles_32x64,),
            workspace=0,
            chunk=chunk,
        )
    tiles_32x32 = -(-m // 32) * -(-n // 32)
    # 22: the largest tile that gives 4/4 of the SMs one
    if (
        align_a >= 16
        and chunks <= 1
        and tiles_32x32 <= 2147483647
        and chunks <= 1
        and sms * 4 <= tiles_32x32 * 4
    ):
        return Choice(
            route=22,
            kernels=("simt_tt_f32_32x32x32_4x4_w2x1l4x8_s4_vt_c6",),
            grids=(tiles_32x32,),
            workspace=0,
            chunk=chunk,
        )
    tiles_16x32 = -(-m // 16) * -(-n // 32)
    # 23: few outputs: many small tiles shorten the wait
    if align_a >= 16 and chunks <= 1 and tiles_16x32 <= 2147483647 and chunks <= 1:
        return Choice(
            route=23,
            kernels=("simt_tt_f32_16x32x32_2x2_w2x2l4x8_s4_vt_c4",),
            grids=(tiles_16x32,),
            workspace=0,
            chunk=chunk,
        )
    tiles_8x32 = -(-m // 8) * -(-n // 32)
    # 24: M <= 8: chunks side by side
    if tiles_8x32 <= 2147483647 and chunks > 1 and m <= 8:
        return Choice(
            route=24,
            kernels=("simt_tt_f32_8x32x16_4x2_w1x1l2x16_s4_st_slices8",),
            grids=(tiles_8x32,),
            workspace=0,
            chunk=chunk,
        )
    # 26: the largest tile that gives 6/4 of the SMs one
    if chunks <= 1 and tiles_128x128 <= 2147483647 and chunks <= 1 and sms * 6 <= tiles_128x128 * 4:
        return Choice(
            route=26,
            kernels=("simt_tt_f32_128x128x8_8x8_w4x2l4x8_s4_st_c2",),
            grids=(tiles_128x128,),
            workspace=0,
            chunk=chunk,
        )
    # 27: the largest tile that gives 4/4 of the SMs one
    if chunks <= 1 and tiles_64x64 <= 2147483647 and chunks <= 1 and sms * 4 <= tiles_64x64 * 4:
        return Choice(
            route=27,
            kernels=("simt_tt_f32_64x64x16_8x4_w2x2l4x8_s4_st_c4",),
            grids=(tiles_64x64,),
            workspace=0,
            chunk=chunk,
        )
    # 28: unaligned, few outputs
    if chunks <= 1 and tiles_16x32 <= 2147483647 and chunks <= 1:
        return Choice(
            route=28,
            kernels=("simt_tt_f32_16x32x32_2x2_w2x2l4x8_s4_st_c4",),
            grids=(tiles_16x32,),
            workspace=0,
            chunk=chunk,
        )
    # 29: everything else: any size, alignment and plan
    return Choice(
        route=29,
        kernels=("simt_tt_f32_64x64x16_8x4_w2x2l4x8_s3_st_slices1_persistent",),
        grids=(min(tiles_64x64, 2147483647),),
        workspace=0,
        chunk=chunk,
    )


BY_ARCH: dict[str, Dispatch] = {
    "sm_80": sm_80,
    "sm_86": sm_86,
    "sm_87": sm_80,
    "sm_89": sm_86,
    "sm_90": sm_80,
    "sm_100": sm_80,
    "sm_103": sm_80,
    "sm_110": sm_80,
    "sm_120": sm_86,
    "sm_121": sm_86,
}
