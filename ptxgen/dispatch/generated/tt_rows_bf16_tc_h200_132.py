"""Dispatch of TT rows bf16 tc: products under the plan 'rows'.

On NVIDIA H200 with 132 SMs, by its profile.

Generated from tiles/profiles/h200_132.json; do not edit.
Regenerate: ptxgen generate
"""

from ptxgen.dispatch.choice import Choice, Dispatch


def sm_90(m: int, n: int, k: int, sms: int, align_a: int, align_b: int) -> Choice | None:
    """For sm_90."""
    chunk = max(1, min(k, k))
    chunks = -(-k // chunk)
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 0: measured at 4 problems: 8 % faster than the next
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
        and m >= 65
        and m <= 256
        and n >= 257
        and n <= 26841
        and k <= 886
    ):
        return Choice(0, ("wgmma_tt_bf16_64x64x64_w1_s12",), (min(tiles_64x64, sms // 1) * 1,), ())
    tiles_8x64 = -(-m // 8) * -(-n // 64)
    # 1: measured at 1 problem: 3 % faster than the next
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_8x64 <= 2147483647
        and m <= 8
        and n >= 5793
        and n <= 26841
        and k >= 4526
    ):
        return Choice(
            1,
            ("mma_tt_bf16_8x64x128_w1x4_s5_vv_swap_r0_a7_x2_streamb",),
            (tiles_8x64,),
            (),
        )
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    # 2: measured at 2 problems: 33 % faster than the next
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
        and m >= 33
        and n >= 26842
    ):
        return Choice(
            2,
            ("wgmma_tt_bf16_128x128x64_w2_s6",),
            (min(tiles_128x128, sms // 1) * 1,),
            (),
        )
    tiles_8x16 = -(-m // 8) * -(-n // 16)
    # 3: not measured: as the nearest measured problem
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_8x16 <= 2147483647
        and m <= 8
        and n <= 627
        and k >= 2173
    ):
        return Choice(
            3,
            ("mma_tt_bf16_8x16x512_w1x1_s4_vv_swap_r0_a7_x2_streamb",),
            (tiles_8x16,),
            (),
        )
    # 4: measured at 1 problem: 5 % faster than the next
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_8x64 <= 2147483647
        and m <= 8
        and n >= 1774
        and n <= 26841
        and k <= 1254
    ):
        return Choice(
            4,
            ("mma_tt_bf16_8x64x128_w1x4_s5_vv_swap_r0_a7_x2_streamb",),
            (tiles_8x64,),
            (),
        )
    tiles_32x64 = -(-m // 32) * -(-n // 64)
    # 5: measured at 2 problems: 1 % faster than the next
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_32x64 <= 2147483647
        and m >= 17
        and m <= 32
        and n >= 5793
        and k >= 2173
    ):
        return Choice(
            5,
            ("mma_tt_bf16_32x64x128_w1x4_s6_vv_swap_r0_a7_x4_streamb",),
            (tiles_32x64,),
            (),
        )
    # 6: measured at 19 problems: 61 % faster than the next
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
        and k >= 2173
    ):
        return Choice(
            6,
            ("wgmma_tt_bf16_128x128x64_w2_s6",),
            (min(tiles_128x128, sms // 1) * 1,),
            (),
        )
    tiles_16x64 = -(-m // 16) * -(-n // 64)
    # 7: measured at 2 problems: 1 % faster than the next
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_16x64 <= 2147483647
        and m >= 9
        and m <= 16
        and n >= 10837
    ):
        return Choice(
            7,
            ("mma_tt_bf16_16x64x128_w1x4_s4_vv_swap_r0_a7_x4_streamb",),
            (tiles_16x64,),
            (),
        )
    tiles_8x32 = -(-m // 8) * -(-n // 32)
    # 8: measured at 3 problems: 4 % faster than the next
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_8x32 <= 2147483647
        and m <= 8
        and n <= 1773
        and k <= 2172
    ):
        return Choice(
            8,
            ("mma_tt_bf16_8x32x128_w1x2_s9_vv_swap_r0_a7_x4_streamb",),
            (tiles_8x32,),
            (),
        )
    tiles_16x32 = -(-m // 16) * -(-n // 32)
    # 9: measured at 3 problems: 3 % faster than the next
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_16x32 <= 2147483647
        and m >= 33
        and m <= 64
        and n <= 876
    ):
        return Choice(
            9,
            ("mma_tt_bf16_16x32x128_w1x2_s8_vv_swap_r0_a7_x4_streamb",),
            (tiles_16x32,),
            (),
        )
    # 10: measured at 18 problems: 42 % faster than the next
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
        and n >= 1774
    ):
        return Choice(
            10,
            ("wgmma_tt_bf16_128x128x64_w2_s6",),
            (min(tiles_128x128, sms // 1) * 1,),
            (),
        )
    tiles_32x32 = -(-m // 32) * -(-n // 32)
    # 11: measured at 2 problems: 1 % faster than the next
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_32x32 <= 2147483647
        and m >= 17
        and m <= 32
        and n >= 628
        and k >= 887
        and k <= 2172
    ):
        return Choice(
            11,
            ("mma_tt_bf16_32x32x128_w2x2_s6_vv_swap_r0_a7_x4_streamb",),
            (tiles_32x32,),
            (),
        )
    # 12: measured at 1 problem: 4 % faster than the next
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_32x64 <= 2147483647
        and m >= 33
        and m <= 64
        and n >= 1774
        and n <= 5792
        and k >= 2173
        and k <= 6400
    ):
        return Choice(
            12,
            ("mma_tt_bf16_32x64x128_w1x4_s6_vv_swap_r0_a7_x4_streamb",),
            (tiles_32x64,),
            (),
        )
    # 13: measured at 3 problems: 1 % faster than the next
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_32x32 <= 2147483647
        and m >= 33
        and m <= 128
        and n <= 1773
        and k <= 2172
    ):
        return Choice(
            13,
            ("mma_tt_bf16_32x32x128_w2x2_s6_vv_swap_r0_a7_x4_streamb",),
            (tiles_32x32,),
            (),
        )
    tiles_64x128 = -(-m // 64) * -(-n // 128)
    # 14: measured at 1 problem: 7 % faster than the next
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_64x128 <= 2147483647
        and m >= 33
        and m <= 64
        and n >= 10837
        and n <= 26841
        and k >= 887
        and k <= 6400
    ):
        return Choice(14, ("mma_tt_bf16_64x128x64_w2x4_s6_vv_r0_x4_streamb",), (tiles_64x128,), ())
    # 15: measured at 2 problems: 1 % faster than the next
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_8x32 <= 2147483647
        and m <= 16
        and n <= 876
        and k <= 886
    ):
        return Choice(
            15,
            ("mma_tt_bf16_8x32x128_w1x2_s9_vv_swap_r0_a7_x4_streamb",),
            (tiles_8x32,),
            (),
        )
    # 16: measured at 4 problems: 3 % faster than the next
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_8x32 <= 2147483647
        and m <= 8
        and n >= 1774
        and n <= 26841
    ):
        return Choice(
            16,
            ("mma_tt_bf16_8x32x128_w1x2_s9_vv_swap_r0_a7_x4_streamb",),
            (tiles_8x32,),
            (),
        )
    # 17: measured at 2 problems: 18 % faster than the next
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
        and n >= 10837
    ):
        return Choice(
            17,
            ("wgmma_tt_bf16_128x128x64_w2_s6",),
            (min(tiles_128x128, sms // 1) * 1,),
            (),
        )
    # 18: measured at 7 problems: 5 % faster than the next
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
            18,
            ("mma_tt_bf16_16x32x128_w1x2_s8_vv_swap_r0_a7_x4_streamb",),
            (tiles_16x32,),
            (),
        )
    # 19: measured at 17 problems: 25 % faster than the next
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
        and m <= 1448
        and n <= 1773
    ):
        return Choice(19, ("wgmma_tt_bf16_64x64x64_w1_s12",), (min(tiles_64x64, sms // 1) * 1,), ())
    # 20: measured at 9 problems: 25 % faster than the next
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
        and m <= 256
        and n <= 5792
    ):
        return Choice(20, ("wgmma_tt_bf16_64x64x64_w1_s12",), (min(tiles_64x64, sms // 1) * 1,), ())
    # 21: measured at 6 problems: 28 % faster than the next
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
    ):
        return Choice(
            21,
            ("wgmma_tt_bf16_128x128x64_w2_s6",),
            (min(tiles_128x128, sms // 1) * 1,),
            (),
        )
    # 22: measured at 3 problems: 7 % faster than the next
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_32x32 <= 2147483647
        and m >= 17
        and m <= 32
    ):
        return Choice(
            22,
            ("mma_tt_bf16_32x32x128_w2x2_s6_vv_swap_r0_a7_x4_streamb",),
            (tiles_32x32,),
            (),
        )
    # 23: measured at 2 problems: 15 % faster than the next
    if (
        align_a >= 16
        and align_b >= 16
        and chunks <= 1
        and tiles_8x16 <= 2147483647
        and m <= 8
        and n >= 628
        and n <= 26841
        and k >= 887
    ):
        return Choice(
            23,
            ("mma_tt_bf16_8x16x512_w1x1_s4_vv_swap_r0_a7_x2_streamb",),
            (tiles_8x16,),
            (),
        )
    # 24: measured at 1 problem: 41 % faster than the next
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
        and n >= 1774
        and k >= 2173
    ):
        return Choice(
            24,
            ("wgmma_tt_bf16_128x128x64_w2_s6",),
            (min(tiles_128x128, sms // 1) * 1,),
            (),
        )
    # 25: measured at 5 problems: 12 % faster than the next
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_16x32 <= 2147483647 and m <= 16:
        return Choice(
            25,
            ("mma_tt_bf16_16x32x128_w1x2_s8_vv_swap_r0_a7_x4_streamb",),
            (tiles_16x32,),
            (),
        )
    # 26: measured at 1 problem: 23 % faster than the next
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
        and m >= 725
        and n >= 628
    ):
        return Choice(
            26,
            ("wgmma_tt_bf16_128x128x64_w2_s6",),
            (min(tiles_128x128, sms // 1) * 1,),
            (),
        )
    # 27: measured at 4 problems: 14 % faster than the next
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
    ):
        return Choice(27, ("wgmma_tt_bf16_64x64x64_w1_s12",), (min(tiles_64x64, sms // 1) * 1,), ())
    # 28: measured at 11 problems: 25 % faster than the next
    if align_a >= 4 and align_b >= 16 and chunks <= 1 and tiles_8x32 <= 2147483647 and align_a >= 8:
        return Choice(
            28,
            ("mma_tt_bf16_8x32x256_w1x2_s4_wv_swap_r0_a7_x2_streamb",),
            (tiles_8x32,),
            (),
        )
    # 29: measured at 1 problem: 91 % faster than the next
    if (
        align_a >= 4
        and align_b >= 4
        and chunks <= 1
        and tiles_16x32 <= 2147483647
        and m <= 16
        and align_a >= 16
        and align_b >= 8
    ):
        return Choice(29, ("mma_tt_bf16_16x32x128_w1x2_s5_ww_swap_r0_a7_x4",), (tiles_16x32,), ())
    # 30: measured at 2 problems: 94 % faster than the next
    if (
        align_a >= 4
        and align_b >= 4
        and chunks <= 1
        and tiles_64x64 <= 2147483647
        and align_a >= 16
        and align_b >= 8
    ):
        return Choice(30, ("mma_tt_bf16_64x64x32_w2x2_s4_ww_c4",), (tiles_64x64,), ())
    # 31: measured at 4 problems: 44 % faster than the next
    if align_a >= 4 and align_b >= 16 and chunks <= 1 and tiles_8x32 <= 2147483647:
        return Choice(
            31,
            ("mma_tt_bf16_8x32x256_w1x2_s4_wv_swap_r0_a7_x2_streamb",),
            (tiles_8x32,),
            (),
        )
    # 32: measured at 12 problems: 193 % faster than the next
    if chunks <= 1 and tiles_16x32 <= 2147483647 and align_b >= 16:
        return Choice(32, ("mma_tt_bf16_16x32x128_w1x2_s5_pp_swap_r0_a7_x4",), (tiles_16x32,), ())
    # 33: measured at 2 problems: 152 % faster than the next
    if chunks <= 1 and tiles_16x32 <= 2147483647 and m <= 128 and n <= 1025 and align_a >= 16:
        return Choice(33, ("mma_tt_bf16_16x32x128_w1x2_s5_pp_swap_r0_a7_x4",), (tiles_16x32,), ())
    # 34: measured at 2 problems: 217 % faster than the next
    if chunks <= 1 and tiles_16x32 <= 2147483647 and m <= 16 and align_a >= 16:
        return Choice(34, ("mma_tt_bf16_16x32x128_w1x2_s5_pp_swap_r0_a7_x4",), (tiles_16x32,), ())
    # 35: measured at 5 problems: 170 % faster than the next
    if chunks <= 1 and align_a >= 16:
        return Choice(
            35,
            ("mma_tt_bf16_64x64x32_w2x2_s4_pp_persistent_c4",),
            (min(tiles_64x64, 2147483647),),
            (),
        )
    # 36: measured at 1 problem: 226 % faster than the next
    if chunks <= 1 and tiles_16x32 <= 2147483647 and align_b >= 8:
        return Choice(36, ("mma_tt_bf16_16x32x128_w1x2_s5_pp_swap_r0_a7_x4",), (tiles_16x32,), ())
    # 37: measured at 3 problems: 195 % faster than the next
    if chunks <= 1 and tiles_16x32 <= 2147483647:
        return Choice(37, ("mma_tt_bf16_16x32x128_w1x2_s5_pp_swap_r0_a7_x4",), (tiles_16x32,), ())
    # 38: operands off 16 bytes
    if align_a >= 4 and align_b >= 4 and chunks <= 1 and tiles_64x64 <= 2147483647:
        return Choice(38, ("mma_tt_bf16_64x64x32_w2x2_s4_ww_c4",), (tiles_64x64,), ())
    # 39: everything else: any size and alignment
    if chunks <= 1:
        return Choice(
            39,
            ("mma_tt_bf16_64x64x32_w2x2_s4_pp_persistent_c4",),
            (min(tiles_64x64, 2147483647),),
            (),
        )
    return None


BY_ARCH: dict[str, Dispatch] = {
    "sm_90": sm_90,
}
