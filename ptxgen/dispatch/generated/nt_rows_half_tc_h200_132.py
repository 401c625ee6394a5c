"""Dispatch of NT rows half tc: products under the plan 'rows'.

On NVIDIA H200 with 132 SMs, by its tuning.

Generated from tiles/tunings/h200_132.json; do not edit.
Regenerate: ptxgen generate
"""

from ptxgen.dispatch.choice import Choice, Dispatch


def sm_90(m: int, n: int, k: int, sms: int, align_a: int, align_b: int) -> Choice | None:
    """For sm_90."""
    chunk = max(1, min(k, k))
    chunks = -(-k // chunk)
    tiles_128x224 = -(-m // 128) * -(-n // 224)
    # 0: measured at 3 problems: 4 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 224 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x224 + sms <= 4294967295
        and -(-n // 224) * 8 <= 4294967295 and m >= 129 and m <= 1448 and n >= 5793 and k >= 2173
        and k <= 4525
    ):
        return Choice(
            0, ("wgmma_nt_bf16_128x224x64_246569",), (min(tiles_128x224, sms // 1) * 1,), (),
        )
    tiles_128x112 = -(-m // 128) * -(-n // 112)
    # 1: not measured: as the nearest measured problem
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 112 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x112 + sms <= 4294967295
        and -(-n // 112) * 8 <= 4294967295 and m >= 1449 and m <= 2478 and n <= 256 and k >= 3548
        and k <= 10836
    ):
        return Choice(
            1, ("wgmma_nt_bf16_128x112x64_3dcfd6",), (min(tiles_128x112, sms // 1) * 1,), (),
        )
    tiles_192x256 = -(-m // 192) * -(-n // 256)
    # 2: measured at 1 problem: 2 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 2 and m + 192 <= 2147483647
        and n + 256 <= 2147483647 and k + 64 <= 2147483647 and tiles_192x256 + sms <= 4294967295
        and -(-n // 256) * 8 <= 4294967295 and m >= 725 and n >= 26842
    ):
        return Choice(
            2, ("wgmma_nt_bf16_192x128x64_bfe691",), (min(tiles_192x256, sms // 2) * 2,), (),
        )
    # 3: measured at 1 problem: 3 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 112 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x112 + sms <= 4294967295
        and -(-n // 112) * 8 <= 4294967295 and m >= 5793 and n >= 1774 and n <= 5792 and k >= 6401
    ):
        return Choice(
            3, ("wgmma_nt_bf16_128x112x64_3dcfd6",), (min(tiles_128x112, sms // 1) * 1,), (),
        )
    tiles_8x16 = -(-m // 8) * -(-n // 16)
    # 4: measured at 7 problems: 10 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_8x16 <= 2147483647 and m <= 4
        and n >= 628 and n <= 1773 and k >= 887
    ):
        return Choice(4, ("mma_nt_bf16_8x16x512_a37313",), (tiles_8x16,), ())
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    # 5: measured at 1 problem: 14 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 128 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x128 + sms <= 4294967295
        and -(-n // 128) * 8 <= 4294967295 and m >= 1449 and m <= 2478 and n <= 1773 and k >= 3548
        and k <= 6400
    ):
        return Choice(
            5, ("wgmma_nt_bf16_128x128x64_14d5e4",), (min(tiles_128x128, sms // 1) * 1,), (),
        )
    # 6: measured at 1 problem: 45 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 2 and m + 192 <= 2147483647
        and n + 256 <= 2147483647 and k + 64 <= 2147483647 and tiles_192x256 + sms <= 4294967295
        and -(-n // 256) * 8 <= 4294967295 and m >= 2479 and m <= 3505 and n <= 1773 and k >= 3548
    ):
        return Choice(
            6, ("wgmma_nt_bf16_192x128x64_bfe691",), (min(tiles_192x256, sms // 2) * 2,), (),
        )
    # 7: measured at 1 problem: 1 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 112 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x112 + sms <= 4294967295
        and -(-n // 112) * 8 <= 4294967295 and m >= 65 and m <= 128 and n >= 10837 and n <= 26841
        and k >= 887 and k <= 6400
    ):
        return Choice(
            7, ("wgmma_nt_bf16_128x112x64_3dcfd6",), (min(tiles_128x112, sms // 1) * 1,), (),
        )
    tiles_128x256 = -(-m // 128) * -(-n // 256)
    # 8: measured at 3 problems: 2 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 256 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x256 + sms <= 4294967295
        and -(-n // 256) * 16 <= 4294967295 and m >= 3506 and m <= 5792 and n >= 628 and k >= 3548
        and k <= 6400
    ):
        return Choice(
            8, ("wgmma_nt_bf16_128x256x64_7a60b5",), (min(tiles_128x256, sms // 1) * 1,), (),
        )
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 9: measured at 1 problem: 3 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 64 <= 2147483647 and k + 64 <= 2147483647 and tiles_64x64 + sms <= 4294967295
        and -(-n // 64) * 8 <= 4294967295 and m >= 33 and m <= 64 and n >= 5793 and n <= 10836
    ):
        return Choice(9, ("wgmma_nt_bf16_64x64x64_15e6a1",), (min(tiles_64x64, sms // 1) * 1,), ())
    # 10: measured at 1 problem: as fast as the best
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 224 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x224 + sms <= 4294967295
        and -(-n // 224) * 8 <= 4294967295 and m >= 5793 and n >= 5793 and k >= 6401
    ):
        return Choice(
            10, ("wgmma_nt_bf16_128x224x64_246569",), (min(tiles_128x224, sms // 1) * 1,), (),
        )
    # 11: measured at 4 problems: 4 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 256 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x256 + sms <= 4294967295
        and -(-n // 256) * 16 <= 4294967295 and m >= 257 and n >= 5793 and k >= 6401
    ):
        return Choice(
            11, ("wgmma_nt_bf16_128x256x64_7a60b5",), (min(tiles_128x256, sms // 1) * 1,), (),
        )
    tiles_128x64 = -(-m // 128) * -(-n // 64)
    # 12: measured at 2 problems: 1.3 % behind the best
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 64 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x64 + sms <= 4294967295
        and -(-n // 64) * 8 <= 4294967295 and m >= 1449 and m <= 5792 and n <= 627 and k >= 444
        and k <= 2172
    ):
        return Choice(
            12, ("wgmma_nt_bf16_128x64x64_fba2b7",), (min(tiles_128x64, sms // 1) * 1,), (),
        )
    tiles_16x64 = -(-m // 16) * -(-n // 64)
    # 13: measured at 1 problem: 7 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_16x64 <= 2147483647 and m <= 2
        and n <= 876 and k <= 443
    ):
        return Choice(13, ("mma_nt_bf16_16x64x128_4749ec",), (tiles_16x64,), ())
    # 14: measured at 3 problems: 3 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 64 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x64 + sms <= 4294967295
        and -(-n // 64) * 8 <= 4294967295 and m >= 129 and m <= 256 and n >= 1774 and n <= 5792
        and k <= 6400
    ):
        return Choice(
            14, ("wgmma_nt_bf16_128x64x64_fba2b7",), (min(tiles_128x64, sms // 1) * 1,), (),
        )
    tiles_64x32 = -(-m // 64) * -(-n // 32)
    # 15: measured at 3 problems: 4 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 32 <= 2147483647 and k + 128 <= 2147483647 and tiles_64x32 + sms <= 4294967295
        and -(-n // 32) * 8 <= 4294967295 and m >= 65 and m <= 128 and n <= 1773 and k <= 2172
    ):
        return Choice(
            15, ("wgmma_nt_bf16_64x32x128_8abf70",), (min(tiles_64x32, sms // 1) * 1,), (),
        )
    # 16: measured at 11 problems: 1 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_16x64 <= 2147483647 and m <= 16
        and n >= 5793 and k >= 2173 and k <= 10836
    ):
        return Choice(16, ("mma_nt_bf16_16x64x128_4749ec",), (tiles_16x64,), ())
    # 17: measured at 3 problems: 9 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_8x16 <= 2147483647 and m <= 32
        and n >= 1012 and n <= 1773 and k >= 2173
    ):
        return Choice(17, ("mma_nt_bf16_8x16x512_a37313",), (tiles_8x16,), ())
    # 18: measured at 2 problems: 4 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 112 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x112 + sms <= 4294967295
        and -(-n // 112) * 8 <= 4294967295 and m >= 257 and m <= 1448 and n >= 1774 and k >= 1255
        and k <= 2172
    ):
        return Choice(
            18, ("wgmma_nt_bf16_128x112x64_3dcfd6",), (min(tiles_128x112, sms // 1) * 1,), (),
        )
    # 19: measured at 1 problem: 7 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 128 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x128 + sms <= 4294967295
        and -(-n // 128) * 8 <= 4294967295 and m >= 33 and n >= 26842
    ):
        return Choice(
            19, ("wgmma_nt_bf16_128x128x64_14d5e4",), (min(tiles_128x128, sms // 1) * 1,), (),
        )
    # 20: measured at 3 problems: 3 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 32 <= 2147483647 and k + 128 <= 2147483647 and tiles_64x32 + sms <= 4294967295
        and -(-n // 32) * 8 <= 4294967295 and m >= 9 and m <= 16 and n >= 257 and n <= 1773
        and k <= 3547
    ):
        return Choice(
            20, ("wgmma_nt_bf16_64x32x128_8abf70",), (min(tiles_64x32, sms // 1) * 1,), (),
        )
    # 21: measured at 1 problem: 12 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 112 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x112 + sms <= 4294967295
        and -(-n // 112) * 8 <= 4294967295 and m >= 1449 and m <= 2478 and n <= 1011 and k >= 2173
        and k <= 3547
    ):
        return Choice(
            21, ("wgmma_nt_bf16_128x112x64_3dcfd6",), (min(tiles_128x112, sms // 1) * 1,), (),
        )
    tiles_64x128 = -(-m // 64) * -(-n // 128)
    # 22: measured at 1 problem: 6 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_64x128 <= 2147483647 and m >= 33
        and m <= 64 and n >= 10837 and n <= 26841 and k >= 887 and k <= 6400
    ):
        return Choice(22, ("mma_nt_bf16_64x128x64_865693",), (tiles_64x128,), ())
    # 23: measured at 1 problem: 15 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 128 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x128 + sms <= 4294967295
        and -(-n // 128) * 8 <= 4294967295 and m >= 129 and m <= 256 and n >= 5793 and k >= 4526
    ):
        return Choice(
            23, ("wgmma_nt_bf16_128x128x64_14d5e4",), (min(tiles_128x128, sms // 1) * 1,), (),
        )
    # 24: measured at 4 problems: 2 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 32 <= 2147483647 and k + 128 <= 2147483647 and tiles_64x32 + sms <= 4294967295
        and -(-n // 32) * 8 <= 4294967295 and m >= 33 and m <= 64 and n >= 1774 and n <= 5792
    ):
        return Choice(
            24, ("wgmma_nt_bf16_64x32x128_8abf70",), (min(tiles_64x32, sms // 1) * 1,), (),
        )
    # 25: measured at 5 problems: 3 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 256 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x256 + sms <= 4294967295
        and -(-n // 256) * 16 <= 4294967295 and m >= 725 and m <= 5792 and n >= 1774 and n <= 10836
        and k >= 2173
    ):
        return Choice(
            25, ("wgmma_nt_bf16_128x256x64_7a60b5",), (min(tiles_128x256, sms // 1) * 1,), (),
        )
    # 26: not measured: as the nearest measured problem
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 2 and m + 192 <= 2147483647
        and n + 256 <= 2147483647 and k + 64 <= 2147483647 and tiles_192x256 + sms <= 4294967295
        and -(-n // 256) * 8 <= 4294967295 and m >= 1449 and m <= 5792 and n <= 1773 and k >= 6401
    ):
        return Choice(
            26, ("wgmma_nt_bf16_192x128x64_bfe691",), (min(tiles_192x256, sms // 2) * 2,), (),
        )
    # 27: measured at 4 problems: 4 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 32 <= 2147483647 and k + 128 <= 2147483647 and tiles_64x32 + sms <= 4294967295
        and -(-n // 32) * 8 <= 4294967295 and m >= 9 and m <= 724 and n <= 876 and k >= 444
        and k <= 2172
    ):
        return Choice(
            27, ("wgmma_nt_bf16_64x32x128_8abf70",), (min(tiles_64x32, sms // 1) * 1,), (),
        )
    # 28: measured at 3 problems: 5 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 128 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x128 + sms <= 4294967295
        and -(-n // 128) * 8 <= 4294967295 and m >= 5793 and n <= 1011
    ):
        return Choice(
            28, ("wgmma_nt_bf16_128x128x64_14d5e4",), (min(tiles_128x128, sms // 1) * 1,), (),
        )
    # 29: measured at 4 problems: 5 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 64 <= 2147483647 and k + 64 <= 2147483647 and tiles_64x64 + sms <= 4294967295
        and -(-n // 64) * 8 <= 4294967295 and m >= 257 and m <= 2478 and n <= 876 and k <= 886
    ):
        return Choice(29, ("wgmma_nt_bf16_64x64x64_15e6a1",), (min(tiles_64x64, sms // 1) * 1,), ())
    # 30: measured at 8 problems: 2 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 256 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x256 + sms <= 4294967295
        and -(-n // 256) * 16 <= 4294967295 and m >= 3506 and n >= 877 and n <= 10836 and k >= 444
        and k <= 10836
    ):
        return Choice(
            30, ("wgmma_nt_bf16_128x256x64_7a60b5",), (min(tiles_128x256, sms // 1) * 1,), (),
        )
    tiles_64x16 = -(-m // 64) * -(-n // 16)
    # 31: measured at 6 problems: 6 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 16 <= 2147483647 and k + 128 <= 2147483647 and tiles_64x16 + sms <= 4294967295
        and -(-n // 16) * 8 <= 4294967295 and m >= 33 and m <= 128 and n <= 1773
    ):
        return Choice(
            31, ("wgmma_nt_bf16_64x16x128_1e00ce",), (min(tiles_64x16, sms // 1) * 1,), (),
        )
    # 32: measured at 1 problem: 4 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 2 and m + 192 <= 2147483647
        and n + 256 <= 2147483647 and k + 64 <= 2147483647 and tiles_192x256 + sms <= 4294967295
        and -(-n // 256) * 8 <= 4294967295 and m >= 2479 and n <= 1011 and k >= 2173
    ):
        return Choice(
            32, ("wgmma_nt_bf16_192x128x64_bfe691",), (min(tiles_192x256, sms // 2) * 2,), (),
        )
    # 33: measured at 2 problems: 9 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 64 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x64 + sms <= 4294967295
        and -(-n // 64) * 8 <= 4294967295 and m >= 725 and m <= 1448 and n <= 10836 and k <= 2172
    ):
        return Choice(
            33, ("wgmma_nt_bf16_128x64x64_fba2b7",), (min(tiles_128x64, sms // 1) * 1,), (),
        )
    # 34: measured at 3 problems: 15 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 64 <= 2147483647 and k + 64 <= 2147483647 and tiles_64x64 + sms <= 4294967295
        and -(-n // 64) * 8 <= 4294967295 and m >= 257 and m <= 724 and n <= 1773
    ):
        return Choice(34, ("wgmma_nt_bf16_64x64x64_15e6a1",), (min(tiles_64x64, sms // 1) * 1,), ())
    # 35: measured at 1 problem: 1 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 256 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x256 + sms <= 4294967295
        and -(-n // 256) * 16 <= 4294967295 and m >= 129 and m <= 2478 and n >= 10837 and n <= 26841
        and k >= 887 and k <= 6400
    ):
        return Choice(
            35, ("wgmma_nt_bf16_128x256x64_7a60b5",), (min(tiles_128x256, sms // 1) * 1,), (),
        )
    tiles_32x64 = -(-m // 32) * -(-n // 64)
    # 36: measured at 2 problems: as fast as the best
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_32x64 <= 2147483647 and m >= 17
        and m <= 32 and n >= 5793 and n <= 26841 and k >= 887
    ):
        return Choice(36, ("mma_nt_bf16_32x64x128_008e0a",), (tiles_32x64,), ())
    # 37: measured at 1 problem: 3 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 128 <= 2147483647 and k + 64 <= 2147483647 and tiles_64x128 + sms <= 4294967295
        and -(-n // 128) * 8 <= 4294967295 and m >= 129 and m <= 256 and n >= 1774
    ):
        return Choice(
            37, ("wgmma_nt_bf16_64x128x64_12c7f7",), (min(tiles_64x128, sms // 1) * 1,), (),
        )
    # 38: measured at 1 problem: 5 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_8x16 <= 2147483647 and m <= 16
        and n <= 1773 and k >= 2173
    ):
        return Choice(38, ("mma_nt_bf16_8x16x512_a37313",), (tiles_8x16,), ())
    # 39: measured at 6 problems: 5 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 128 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x128 + sms <= 4294967295
        and -(-n // 128) * 8 <= 4294967295 and m >= 257 and n >= 1774
    ):
        return Choice(
            39, ("wgmma_nt_bf16_128x128x64_14d5e4",), (min(tiles_128x128, sms // 1) * 1,), (),
        )
    # 40: measured at 5 problems: 12 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 32 <= 2147483647 and k + 128 <= 2147483647 and tiles_64x32 + sms <= 4294967295
        and -(-n // 32) * 8 <= 4294967295 and m >= 17 and m <= 256 and n <= 1773 and k >= 444
    ):
        return Choice(
            40, ("wgmma_nt_bf16_64x32x128_8abf70",), (min(tiles_64x32, sms // 1) * 1,), (),
        )
    # 41: measured at 1 problem: 14 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 128 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x128 + sms <= 4294967295
        and -(-n // 128) * 8 <= 4294967295 and m >= 1449 and n >= 628 and n <= 26841 and k <= 4525
    ):
        return Choice(
            41, ("wgmma_nt_bf16_128x128x64_14d5e4",), (min(tiles_128x128, sms // 1) * 1,), (),
        )
    # 42: measured at 5 problems: 13 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 64 <= 2147483647 and k + 64 <= 2147483647 and tiles_64x64 + sms <= 4294967295
        and -(-n // 64) * 8 <= 4294967295 and m >= 33 and m <= 256 and n <= 5792
    ):
        return Choice(42, ("wgmma_nt_bf16_64x64x64_15e6a1",), (min(tiles_64x64, sms // 1) * 1,), ())
    # 43: not measured: as the nearest measured problem
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 256 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x256 + sms <= 4294967295
        and -(-n // 256) * 16 <= 4294967295 and m >= 1449 and n >= 877 and k >= 444
    ):
        return Choice(
            43, ("wgmma_nt_bf16_128x256x64_7a60b5",), (min(tiles_128x256, sms // 1) * 1,), (),
        )
    tiles_16x32 = -(-m // 16) * -(-n // 32)
    # 44: measured at 30 problems: 4 % faster than the next
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_16x32 <= 2147483647 and m <= 32:
        return Choice(44, ("mma_nt_bf16_16x32x128_f058da",), (tiles_16x32,), ())
    # 45: measured at 4 problems: 6 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 128 <= 2147483647 and k + 64 <= 2147483647 and tiles_64x128 + sms <= 4294967295
        and -(-n // 128) * 8 <= 4294967295
    ):
        return Choice(
            45, ("wgmma_nt_bf16_64x128x64_12c7f7",), (min(tiles_64x128, sms // 1) * 1,), (),
        )
    # 46: measured at 1 problem: 103 % faster than the next
    if (
        align_a >= 4 and align_b >= 4 and chunks <= 1 and tiles_16x32 <= 2147483647
        and align_a >= 16 and align_b >= 8
    ):
        return Choice(46, ("mma_nt_bf16_16x32x128_4975cf",), (tiles_16x32,), ())
    # 47: measured at 3 problems: 197 % faster than the next
    if chunks <= 1 and tiles_16x32 <= 2147483647 and align_a >= 16:
        return Choice(47, ("mma_nt_bf16_16x32x128_ed1036",), (tiles_16x32,), ())
    # 48: measured at 1 problem: 92 % faster than the next
    if (
        align_a >= 4 and align_b >= 4 and chunks <= 1 and tiles_16x32 <= 2147483647 and m <= 16
        and align_a >= 8 and align_b >= 8
    ):
        return Choice(48, ("mma_nt_bf16_16x32x128_4975cf",), (tiles_16x32,), ())
    # 49: measured at 2 problems: 74 % faster than the next
    if (
        align_a >= 4 and align_b >= 4 and chunks <= 1 and tiles_64x64 <= 2147483647 and align_a >= 8
        and align_b >= 8
    ):
        return Choice(49, ("mma_nt_bf16_64x64x32_4cffaa",), (tiles_64x64,), ())
    # 50: measured at 3 problems: 85 % faster than the next
    if chunks <= 1 and m >= 129:
        return Choice(50, ("mma_nt_bf16_64x64x32_6aedbc",), (min(tiles_64x64, 2147483647),), ())
    # 51: measured at 2 problems: 27 % faster than the next
    if chunks <= 1 and m >= 17 and n >= 1026:
        return Choice(51, ("mma_nt_bf16_64x64x32_6aedbc",), (min(tiles_64x64, 2147483647),), ())
    # 52: measured at 4 problems: 185 % faster than the next
    if chunks <= 1 and tiles_16x32 <= 2147483647:
        return Choice(52, ("mma_nt_bf16_16x32x128_ed1036",), (tiles_16x32,), ())
    return None


BY_ARCH: dict[str, Dispatch] = {
    "sm_90": sm_90,
}
