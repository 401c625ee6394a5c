"""Dispatch of the NN products under the plan "rows", bf16, simt tier.

Generated from ptxgen.tiles.ROUTES["NN", "rows", "bf16", "simt"]; do not edit.
Regenerate: ptxgen generate
"""

from ptxgen.dispatch.choice import Choice, Dispatch


def sm_80(m: int, n: int, k: int, sms: int, align_a: int, align_b: int) -> Choice | None:
    """For sm_80, sm_87, sm_90, sm_100, sm_103, sm_110."""
    chunk = max(1, min(k, -(-k // 8 // 16) * 16 if n <= 4096 and k >= 2048 else k))
    chunks = -(-k // chunk)
    tiles_2x16 = -(-m // 2) * -(-n // 16)
    # 0: M <= 2: chunks side by side
    if (
        align_a >= 16
        and align_b >= 16
        and tiles_2x16 <= 2147483647
        and chunks > 1
        and m <= 2
        and n <= 2048
    ):
        return Choice(
            route=0,
            kernels=("simt_nn_bf16_2x16x32_1x1_w1x1l2x16_s4_kv_slices8",),
            grids=(tiles_2x16,),
            workspace=0,
            chunk=chunk,
        )
    tiles_4x16 = -(-m // 4) * -(-n // 16)
    # 1: M <= 16: chunks side by side
    if (
        align_a >= 16
        and align_b >= 16
        and tiles_4x16 <= 2147483647
        and chunks > 1
        and m <= 16
        and n <= 2048
    ):
        return Choice(
            route=1,
            kernels=("simt_nn_bf16_4x16x32_1x2_w1x1l4x8_s4_kv_slices8",),
            grids=(tiles_4x16,),
            workspace=0,
            chunk=chunk,
        )
    tiles_16x16 = -(-m // 16) * -(-n // 16)
    # 2: M <= 32: chunks side by side
    if (
        align_a >= 8
        and align_b >= 16
        and tiles_16x16 <= 2147483647
        and chunks > 1
        and m <= 32
        and n <= 2048
    ):
        return Choice(
            route=2,
            kernels=("simt_nn_bf16_16x16x32_4x2_w1x1l4x8_s3_sv_slices8",),
            grids=(tiles_16x16,),
            workspace=0,
            chunk=chunk,
        )
    tiles_2x32 = -(-m // 2) * -(-n // 32)
    # 3: M <= 4: chunks side by side
    if align_a >= 8 and align_b >= 16 and tiles_2x32 <= 2147483647 and chunks > 1 and m <= 4:
        return Choice(
            route=3,
            kernels=("simt_nn_bf16_2x32x32_1x2_w1x1l2x16_s4_sv_slices8",),
            grids=(tiles_2x32,),
            workspace=0,
            chunk=chunk,
        )
    tiles_8x32 = -(-m // 8) * -(-n // 32)
    # 4: M <= 8: chunks side by side
    if align_a >= 16 and align_b >= 16 and tiles_8x32 <= 2147483647 and chunks > 1 and m <= 8:
        return Choice(
            route=4,
            kernels=("simt_nn_bf16_8x32x32_4x2_w1x1l2x16_s4_kv_slices8",),
            grids=(tiles_8x32,),
            workspace=0,
            chunk=chunk,
        )
    tiles_16x32 = -(-m // 16) * -(-n // 32)
    # 5: M <= 16: chunks side by side
    if align_a >= 16 and align_b >= 16 and tiles_16x32 <= 2147483647 and chunks > 1 and m <= 16:
        return Choice(
            route=5,
            kernels=("simt_nn_bf16_16x32x32_4x4_w1x1l4x8_s4_kv_slices8",),
            grids=(tiles_16x32,),
            workspace=0,
            chunk=chunk,
        )
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    # 6: the largest tile that gives 6/4 of the SMs one
    if (
        align_a >= 8
        and align_b >= 8
        and tiles_128x128 <= 2147483647
        and chunks > 1
        and sms * 6 <= tiles_128x128 * 4
    ):
        return Choice(
            route=6,
            kernels=("simt_nn_bf16_128x128x8_8x16_w4x1l4x8_s2_sp_slices1_c2",),
            grids=(tiles_128x128,),
            workspace=0,
            chunk=chunk,
        )
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 7: the largest tile that gives 3/4 of the SMs one
    if (
        align_a >= 8
        and align_b >= 8
        and tiles_64x64 <= 2147483647
        and chunks > 1
        and sms * 3 <= tiles_64x64 * 4
    ):
        return Choice(
            route=7,
            kernels=("simt_nn_bf16_64x64x8_16x8_w1x1l4x8_s2_sp_slices8",),
            grids=(tiles_64x64,),
            workspace=0,
            chunk=chunk,
        )
    tiles_32x64 = -(-m // 32) * -(-n // 64)
    # 8: the largest tile that gives 3/4 of the SMs one
    if (
        align_a >= 8
        and align_b >= 8
        and tiles_32x64 <= 2147483647
        and chunks > 1
        and sms * 3 <= tiles_32x64 * 4
    ):
        return Choice(
            route=8,
            kernels=("simt_nn_bf16_32x64x16_8x8_w1x1l4x8_s2_sp_slices8",),
            grids=(tiles_32x64,),
            workspace=0,
            chunk=chunk,
        )
    tiles_32x32 = -(-m // 32) * -(-n // 32)
    # 9: M <= 32: chunks side by side
    if (
        align_a >= 8
        and align_b >= 8
        and tiles_32x32 <= 2147483647
        and chunks > 1
        and (m <= 32 or sms * 3 <= tiles_32x32 * 4)
    ):
        return Choice(
            route=9,
            kernels=("simt_nn_bf16_32x32x32_4x8_w1x1l8x4_s2_sp_slices8",),
            grids=(tiles_32x32,),
            workspace=0,
            chunk=chunk,
        )
    tiles_32x16 = -(-m // 32) * -(-n // 16)
    # 10: few outputs, split
    if (
        align_a >= 8
        and align_b >= 16
        and tiles_32x16 <= 2147483647
        and chunks > 1
        and sms * 4 > tiles_128x128 * 4
    ):
        return Choice(
            route=10,
            kernels=("simt_nn_bf16_32x16x32_4x4_w1x1l8x4_s3_sv_slices8",),
            grids=(tiles_32x16,),
            workspace=0,
            chunk=chunk,
        )
    tiles_4x128 = -(-m // 4) * -(-n // 128)
    # 11: M <= 8: the weight streams once
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_4x128 <= 2147483647
        and m <= 8
        and n >= 4096
    ):
        return Choice(
            route=11,
            kernels=("simt_nn_bf16_4x128x32_2x2_w1x4l2x16_s6_kv",),
            grids=(tiles_4x128,),
            workspace=0,
            chunk=chunk,
        )
    tiles_16x128 = -(-m // 16) * -(-n // 128)
    # 12: M <= 16: the weight streams once
    if (
        align_a >= 8
        and align_b >= 16
        and chunks <= 1
        and tiles_16x128 <= 2147483647
        and m <= 16
        and n >= 4096
    ):
        return Choice(
            route=12,
            kernels=("simt_nn_bf16_16x128x32_8x2_w1x4l2x16_s5_sv",),
            grids=(tiles_16x128,),
            workspace=0,
            chunk=chunk,
        )
    tiles_32x128 = -(-m // 32) * -(-n // 128)
    # 13: M <= 32: the weight streams once
    if (
        align_a >= 8
        and align_b >= 16
        and chunks <= 1
        and tiles_32x128 <= 2147483647
        and m <= 32
        and n >= 4096
    ):
        return Choice(
            route=13,
            kernels=("simt_nn_bf16_32x128x32_8x4_w1x4l4x8_s4_sv",),
            grids=(tiles_32x128,),
            workspace=0,
            chunk=chunk,
        )
    # 14: the largest tile that gives 6/4 of the SMs one
    if (
        align_a >= 8
        and align_b >= 8
        and chunks <= 1
        and tiles_128x128 <= 2147483647
        and chunks <= 1
        and sms * 6 <= tiles_128x128 * 4
    ):
        return Choice(
            route=14,
            kernels=("simt_nn_bf16_128x128x16_8x8_w4x2l4x8_s2_sp_c2",),
            grids=(tiles_128x128,),
            workspace=0,
            chunk=chunk,
        )
    # 15: the largest tile that gives 4/4 of the SMs one
    if (
        align_a >= 8
        and align_b >= 8
        and chunks <= 1
        and tiles_64x64 <= 2147483647
        and chunks <= 1
        and sms * 4 <= tiles_64x64 * 4
    ):
        return Choice(
            route=15,
            kernels=("simt_nn_bf16_64x64x16_8x4_w2x2l4x8_s2_sp_c4",),
            grids=(tiles_64x64,),
            workspace=0,
            chunk=chunk,
        )
    # 16: the largest tile that gives 4/4 of the SMs one
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_32x32 <= 2147483647
        and chunks <= 1
        and sms * 4 <= tiles_32x32 * 4
    ):
        return Choice(
            route=16,
            kernels=("simt_nn_bf16_32x32x32_4x4_w2x1l4x8_s5_kv_c4",),
            grids=(tiles_32x32,),
            workspace=0,
            chunk=chunk,
        )
    # 17: few outputs: many small tiles shorten the wait
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_16x32 <= 2147483647
        and chunks <= 1
    ):
        return Choice(
            route=17,
            kernels=("simt_nn_bf16_16x32x64_2x2_w2x2l4x8_s4_kv_c4",),
            grids=(tiles_16x32,),
            workspace=0,
            chunk=chunk,
        )
    # 18: unaligned, few outputs, split
    if tiles_32x32 <= 2147483647 and chunks > 1 and sms * 6 > tiles_64x64 * 4:
        return Choice(
            route=18,
            kernels=("simt_nn_bf16_32x32x16_8x4_w1x1l4x8_s2_ts_slices8",),
            grids=(tiles_32x32,),
            workspace=0,
            chunk=chunk,
        )
    # 19: the largest tile that gives 6/4 of the SMs one
    if chunks <= 1 and tiles_128x128 <= 2147483647 and chunks <= 1 and sms * 6 <= tiles_128x128 * 4:
        return Choice(
            route=19,
            kernels=("simt_nn_bf16_128x128x8_16x8_w2x2l4x8_s2_ts_c2",),
            grids=(tiles_128x128,),
            workspace=0,
            chunk=chunk,
        )
    # 20: unaligned, few outputs
    if chunks <= 1 and tiles_16x32 <= 2147483647 and chunks <= 1 and sms * 6 > tiles_64x64 * 4:
        return Choice(
            route=20,
            kernels=("simt_nn_bf16_16x32x96_2x2_w2x2l4x8_s2_ts_c4",),
            grids=(tiles_16x32,),
            workspace=0,
            chunk=chunk,
        )
    # 21: everything else: any size, alignment and plan
    return Choice(
        route=21,
        kernels=("simt_nn_bf16_64x64x16_8x4_w2x2l4x8_s2_ts_slices1_persistent",),
        grids=(min(tiles_64x64, 2147483647),),
        workspace=0,
        chunk=chunk,
    )


def sm_86(m: int, n: int, k: int, sms: int, align_a: int, align_b: int) -> Choice | None:
    """For sm_86, sm_89, sm_120, sm_121."""
    chunk = max(1, min(k, -(-k // 8 // 16) * 16 if n <= 4096 and k >= 2048 else k))
    chunks = -(-k // chunk)
    tiles_2x16 = -(-m // 2) * -(-n // 16)
    # 0: M <= 2: chunks side by side
    if (
        align_a >= 16
        and align_b >= 16
        and tiles_2x16 <= 2147483647
        and chunks > 1
        and m <= 2
        and n <= 2048
    ):
        return Choice(
            route=0,
            kernels=("simt_nn_bf16_2x16x32_1x1_w1x1l2x16_s4_kv_slices8",),
            grids=(tiles_2x16,),
            workspace=0,
            chunk=chunk,
        )
    tiles_4x16 = -(-m // 4) * -(-n // 16)
    # 1: M <= 16: chunks side by side
    if (
        align_a >= 16
        and align_b >= 16
        and tiles_4x16 <= 2147483647
        and chunks > 1
        and m <= 16
        and n <= 2048
    ):
        return Choice(
            route=1,
            kernels=("simt_nn_bf16_4x16x32_1x2_w1x1l4x8_s4_kv_slices8",),
            grids=(tiles_4x16,),
            workspace=0,
            chunk=chunk,
        )
    tiles_16x16 = -(-m // 16) * -(-n // 16)
    # 2: M <= 32: chunks side by side
    if (
        align_a >= 8
        and align_b >= 16
        and tiles_16x16 <= 2147483647
        and chunks > 1
        and m <= 32
        and n <= 2048
    ):
        return Choice(
            route=2,
            kernels=("simt_nn_bf16_16x16x32_4x2_w1x1l4x8_s3_sv_slices8",),
            grids=(tiles_16x16,),
            workspace=0,
            chunk=chunk,
        )
    tiles_2x32 = -(-m // 2) * -(-n // 32)
    # 3: M <= 4: chunks side by side
    if align_a >= 8 and align_b >= 16 and tiles_2x32 <= 2147483647 and chunks > 1 and m <= 4:
        return Choice(
            route=3,
            kernels=("simt_nn_bf16_2x32x32_1x2_w1x1l2x16_s4_sv_slices8",),
            grids=(tiles_2x32,),
            workspace=0,
            chunk=chunk,
        )
    tiles_8x32 = -(-m // 8) * -(-n // 32)
    # 4: M <= 8: chunks side by side
    if align_a >= 16 and align_b >= 16 and tiles_8x32 <= 2147483647 and chunks > 1 and m <= 8:
        return Choice(
            route=4,
            kernels=("simt_nn_bf16_8x32x32_4x2_w1x1l2x16_s4_kv_slices8",),
            grids=(tiles_8x32,),
            workspace=0,
            chunk=chunk,
        )
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    # 6: the largest tile that gives 6/4 of the SMs one
    if (
        align_a >= 8
        and align_b >= 8
        and tiles_128x128 <= 2147483647
        and chunks > 1
        and sms * 6 <= tiles_128x128 * 4
    ):
        return Choice(
            route=6,
            kernels=("simt_nn_bf16_128x128x8_8x16_w4x1l4x8_s2_sp_slices1_c2",),
            grids=(tiles_128x128,),
            workspace=0,
            chunk=chunk,
        )
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 7: the largest tile that gives 3/4 of the SMs one
    if (
        align_a >= 8
        and align_b >= 8
        and tiles_64x64 <= 2147483647
        and chunks > 1
        and sms * 3 <= tiles_64x64 * 4
    ):
        return Choice(
            route=7,
            kernels=("simt_nn_bf16_64x64x8_16x8_w1x1l4x8_s2_sp_slices8",),
            grids=(tiles_64x64,),
            workspace=0,
            chunk=chunk,
        )
    tiles_4x128 = -(-m // 4) * -(-n // 128)
    # 11: M <= 8: the weight streams once
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_4x128 <= 2147483647
        and m <= 8
        and n >= 4096
    ):
        return Choice(
            route=11,
            kernels=("simt_nn_bf16_4x128x32_2x2_w1x4l2x16_s6_kv",),
            grids=(tiles_4x128,),
            workspace=0,
            chunk=chunk,
        )
    tiles_16x128 = -(-m // 16) * -(-n // 128)
    # 12: M <= 16: the weight streams once
    if (
        align_a >= 8
        and align_b >= 16
        and chunks <= 1
        and tiles_16x128 <= 2147483647
        and m <= 16
        and n >= 4096
    ):
        return Choice(
            route=12,
            kernels=("simt_nn_bf16_16x128x32_8x2_w1x4l2x16_s5_sv",),
            grids=(tiles_16x128,),
            workspace=0,
            chunk=chunk,
        )
    tiles_32x128 = -(-m // 32) * -(-n // 128)
    # 13: M <= 32: the weight streams once
    if (
        align_a >= 8
        and align_b >= 16
        and chunks <= 1
        and tiles_32x128 <= 2147483647
        and m <= 32
        and n >= 4096
    ):
        return Choice(
            route=13,
            kernels=("simt_nn_bf16_32x128x32_8x4_w1x4l4x8_s4_sv",),
            grids=(tiles_32x128,),
            workspace=0,
            chunk=chunk,
        )
    # 14: the largest tile that gives 6/4 of the SMs one
    if (
        align_a >= 8
        and align_b >= 8
        and chunks <= 1
        and tiles_128x128 <= 2147483647
        and chunks <= 1
        and sms * 6 <= tiles_128x128 * 4
    ):
        return Choice(
            route=14,
            kernels=("simt_nn_bf16_128x128x16_8x8_w4x2l4x8_s2_sp_c2",),
            grids=(tiles_128x128,),
            workspace=0,
            chunk=chunk,
        )
    # 15: the largest tile that gives 4/4 of the SMs one
    if (
        align_a >= 8
        and align_b >= 8
        and chunks <= 1
        and tiles_64x64 <= 2147483647
        and chunks <= 1
        and sms * 4 <= tiles_64x64 * 4
    ):
        return Choice(
            route=15,
            kernels=("simt_nn_bf16_64x64x16_8x4_w2x2l4x8_s2_sp_c4",),
            grids=(tiles_64x64,),
            workspace=0,
            chunk=chunk,
        )
    tiles_32x32 = -(-m // 32) * -(-n // 32)
    # 16: the largest tile that gives 4/4 of the SMs one
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_32x32 <= 2147483647
        and chunks <= 1
        and sms * 4 <= tiles_32x32 * 4
    ):
        return Choice(
            route=16,
            kernels=("simt_nn_bf16_32x32x32_4x4_w2x1l4x8_s5_kv_c4",),
            grids=(tiles_32x32,),
            workspace=0,
            chunk=chunk,
        )
    tiles_16x32 = -(-m // 16) * -(-n // 32)
    # 17: few outputs: many small tiles shorten the wait
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_16x32 <= 2147483647
        and chunks <= 1
    ):
        return Choice(
            route=17,
            kernels=("simt_nn_bf16_16x32x64_2x2_w2x2l4x8_s4_kv_c4",),
            grids=(tiles_16x32,),
            workspace=0,
            chunk=chunk,
        )
    # 18: unaligned, few outputs, split
    if tiles_32x32 <= 2147483647 and chunks > 1 and sms * 6 > tiles_64x64 * 4:
        return Choice(
            route=18,
            kernels=("simt_nn_bf16_32x32x16_8x4_w1x1l4x8_s2_ts_slices8",),
            grids=(tiles_32x32,),
            workspace=0,
            chunk=chunk,
        )
    # 19: the largest tile that gives 6/4 of the SMs one
    if chunks <= 1 and tiles_128x128 <= 2147483647 and chunks <= 1 and sms * 6 <= tiles_128x128 * 4:
        return Choice(
            route=19,
            kernels=("simt_nn_bf16_128x128x8_16x8_w2x2l4x8_s2_ts_c2",),
            grids=(tiles_128x128,),
            workspace=0,
            chunk=chunk,
        )
    # 20: unaligned, few outputs
    if chunks <= 1 and tiles_16x32 <= 2147483647 and chunks <= 1 and sms * 6 > tiles_64x64 * 4:
        return Choice(
            route=20,
            kernels=("simt_nn_bf16_16x32x96_2x2_w2x2l4x8_s2_ts_c4",),
            grids=(tiles_16x32,),
            workspace=0,
            chunk=chunk,
        )
    # 21: everything else: any size, alignment and plan
    return Choice(
        route=21,
        kernels=("simt_nn_bf16_64x64x16_8x4_w2x2l4x8_s2_ts_slices1_persistent",),
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
