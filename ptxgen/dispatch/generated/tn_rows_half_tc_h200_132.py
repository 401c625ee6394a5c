"""Dispatch of TN rows half tc: products under the plan 'rows'.

On NVIDIA H200 with 132 SMs, by its tuning.

Generated from tiles/tunings/h200_132.json; do not edit.
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
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 64 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x64 + sms <= 4294967295
        and -(-n // 64) * 8 <= 4294967295 and m >= 129 and m <= 1448 and n >= 1774 and k <= 886
    ):
        return Choice(
            0, ("wgmma_tn_bf16_128x64x64_701c99",), (min(tiles_128x64, sms // 1) * 1,), (),
        )
    tiles_16x32 = -(-m // 16) * -(-n // 32)
    # 1: measured at 5 problems: 9 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_16x32 <= 2147483647 and m >= 9
        and m <= 16 and k <= 2172
    ):
        return Choice(1, ("mma_tn_bf16_16x32x128_845f0d",), (tiles_16x32,), ())
    tiles_64x32 = -(-m // 64) * -(-n // 32)
    # 2: measured at 3 problems: 5 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 32 <= 2147483647 and k + 128 <= 2147483647 and tiles_64x32 + sms <= 4294967295
        and -(-n // 32) * 8 <= 4294967295 and m >= 129 and m <= 1448 and n <= 1773 and k <= 443
    ):
        return Choice(2, ("wgmma_tn_bf16_64x32x128_a91cb8",), (min(tiles_64x32, sms // 1) * 1,), ())
    tiles_8x32 = -(-m // 8) * -(-n // 32)
    # 3: measured at 1 problem: 1 % faster than the next
    if (
        align_a >= 4 and align_b >= 16 and chunks <= 1 and tiles_8x32 <= 2147483647 and m <= 8
        and k <= 443 and align_a >= 16
    ):
        return Choice(3, ("mma_tn_bf16_8x32x256_4cc775",), (tiles_8x32,), ())
    tiles_32x32 = -(-m // 32) * -(-n // 32)
    # 4: measured at 1 problem: as fast as the best
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_32x32 <= 2147483647 and m >= 17
        and m <= 32 and k <= 443
    ):
        return Choice(4, ("mma_tn_bf16_32x32x128_9dae1a",), (tiles_32x32,), ())
    tiles_128x256 = -(-m // 128) * -(-n // 256)
    # 5: measured at 2 problems: 2 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 256 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x256 + sms <= 4294967295
        and -(-n // 256) * 16 <= 4294967295 and m >= 1449 and m <= 5792 and n >= 10837 and k >= 887
    ):
        return Choice(
            5, ("wgmma_tn_bf16_128x256x64_9bf432",), (min(tiles_128x256, sms // 1) * 1,), (),
        )
    # 6: measured at 3 problems: 4 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 256 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x256 + sms <= 4294967295
        and -(-n // 256) * 16 <= 4294967295 and m >= 257 and m <= 2478 and n >= 5793 and n <= 10836
        and k >= 2173
    ):
        return Choice(
            6, ("wgmma_tn_bf16_128x256x64_9bf432",), (min(tiles_128x256, sms // 1) * 1,), (),
        )
    tiles_192x256 = -(-m // 192) * -(-n // 256)
    # 7: measured at 1 problem: 36 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 2 and m + 192 <= 2147483647
        and n + 256 <= 2147483647 and k + 64 <= 2147483647 and tiles_192x256 + sms <= 4294967295
        and -(-n // 256) * 8 <= 4294967295 and m >= 2479 and m <= 3505 and n <= 1773 and k >= 3547
    ):
        return Choice(
            7, ("wgmma_tn_bf16_192x128x64_5353a2",), (min(tiles_192x256, sms // 2) * 2,), (),
        )
    tiles_128x224 = -(-m // 128) * -(-n // 224)
    # 8: measured at 2 problems: 1 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 224 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x224 + sms <= 4294967295
        and -(-n // 224) * 8 <= 4294967295 and m >= 2479 and n >= 5793 and k >= 4526
    ):
        return Choice(
            8, ("wgmma_tn_bf16_128x224x64_5bb08c",), (min(tiles_128x224, sms // 1) * 1,), (),
        )
    tiles_64x16 = -(-m // 64) * -(-n // 16)
    # 9: measured at 3 problems: 3 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 16 <= 2147483647 and k + 128 <= 2147483647 and tiles_64x16 + sms <= 4294967295
        and -(-n // 16) * 8 <= 4294967295 and m >= 33 and m <= 256 and n <= 627 and k >= 444
        and k <= 2172
    ):
        return Choice(9, ("wgmma_tn_bf16_64x16x128_534e05",), (min(tiles_64x16, sms // 1) * 1,), ())
    tiles_192x128 = -(-m // 192) * -(-n // 128)
    # 10: measured at 2 problems: 2 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 192 <= 2147483647
        and n + 128 <= 2147483647 and k + 64 <= 2147483647 and tiles_192x128 + sms <= 4294967295
        and -(-n // 128) * 8 <= 4294967295 and m >= 1449 and m <= 3505 and n >= 1774 and k <= 2172
    ):
        return Choice(
            10, ("wgmma_tn_bf16_192x128x64_d6d4e6",), (min(tiles_192x128, sms // 1) * 1,), (),
        )
    # 11: measured at 2 problems: 4 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 32 <= 2147483647 and k + 128 <= 2147483647 and tiles_64x32 + sms <= 4294967295
        and -(-n // 32) * 8 <= 4294967295 and m >= 33 and m <= 64 and n >= 1774 and n <= 10836
        and k <= 2172
    ):
        return Choice(
            11, ("wgmma_tn_bf16_64x32x128_a91cb8",), (min(tiles_64x32, sms // 1) * 1,), (),
        )
    # 12: measured at 2 problems: 0.1 % behind the best
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 64 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x64 + sms <= 4294967295
        and -(-n // 64) * 8 <= 4294967295 and m >= 129 and m <= 256 and n >= 1774 and n <= 5792
        and k <= 6400
    ):
        return Choice(
            12, ("wgmma_tn_bf16_128x64x64_701c99",), (min(tiles_128x64, sms // 1) * 1,), (),
        )
    # 13: measured at 2 problems: 3 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 256 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x256 + sms <= 4294967295
        and -(-n // 256) * 16 <= 4294967295 and m >= 3506 and m <= 5792 and n >= 628 and k >= 3547
        and k <= 6400
    ):
        return Choice(
            13, ("wgmma_tn_bf16_128x256x64_9bf432",), (min(tiles_128x256, sms // 1) * 1,), (),
        )
    tiles_64x128 = -(-m // 64) * -(-n // 128)
    # 14: measured at 1 problem: 1 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 128 <= 2147483647 and k + 64 <= 2147483647 and tiles_64x128 + sms <= 4294967295
        and -(-n // 128) * 8 <= 4294967295 and m >= 65 and m <= 128 and n >= 5793 and k >= 4526
    ):
        return Choice(
            14, ("wgmma_tn_bf16_64x128x64_af4e2a",), (min(tiles_64x128, sms // 1) * 1,), (),
        )
    # 15: measured at 2 problems: 4 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 64 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x64 + sms <= 4294967295
        and -(-n // 64) * 8 <= 4294967295 and m >= 2479 and n <= 876 and k <= 443
    ):
        return Choice(
            15, ("wgmma_tn_bf16_128x64x64_701c99",), (min(tiles_128x64, sms // 1) * 1,), (),
        )
    # 16: measured at 1 problem: 3 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 32 <= 2147483647 and k + 128 <= 2147483647 and tiles_64x32 + sms <= 4294967295
        and -(-n // 32) * 8 <= 4294967295 and m >= 33 and m <= 64 and n >= 1774 and n <= 5792
        and k >= 6401
    ):
        return Choice(
            16, ("wgmma_tn_bf16_64x32x128_a91cb8",), (min(tiles_64x32, sms // 1) * 1,), (),
        )
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    # 17: measured at 1 problem: 3 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 128 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x128 + sms <= 4294967295
        and -(-n // 128) * 8 <= 4294967295 and m >= 65 and m <= 128 and n >= 5793 and k >= 2173
        and k <= 4525
    ):
        return Choice(
            17, ("wgmma_tn_bf16_128x128x64_89114b",), (min(tiles_128x128, sms // 1) * 1,), (),
        )
    tiles_8x64 = -(-m // 8) * -(-n // 64)
    # 18: measured at 2 problems: 6 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_8x64 <= 2147483647 and m <= 8
        and n >= 5793
    ):
        return Choice(18, ("mma_tn_bf16_8x64x128_9f8b63",), (tiles_8x64,), ())
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 19: measured at 1 problem: 9 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 64 <= 2147483647 and k + 64 <= 2147483647 and tiles_64x64 + sms <= 4294967295
        and -(-n // 64) * 8 <= 4294967295 and m >= 725 and m <= 1448 and n <= 627 and k <= 2172
    ):
        return Choice(19, ("wgmma_tn_bf16_64x64x64_a5ae8e",), (min(tiles_64x64, sms // 1) * 1,), ())
    # 20: measured at 1 problem: 10 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 128 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x128 + sms <= 4294967295
        and -(-n // 128) * 8 <= 4294967295 and m >= 1449 and m <= 2478 and n <= 1011 and k >= 2173
        and k <= 6400
    ):
        return Choice(
            20, ("wgmma_tn_bf16_128x128x64_89114b",), (min(tiles_128x128, sms // 1) * 1,), (),
        )
    # 21: measured at 2 problems: 7 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 128 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x128 + sms <= 4294967295
        and -(-n // 128) * 8 <= 4294967295 and m >= 2479 and m <= 5792 and n <= 1773 and k >= 444
        and k <= 2172
    ):
        return Choice(
            21, ("wgmma_tn_bf16_128x128x64_89114b",), (min(tiles_128x128, sms // 1) * 1,), (),
        )
    # 22: measured at 1 problem: 12 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 32 <= 2147483647 and k + 128 <= 2147483647 and tiles_64x32 + sms <= 4294967295
        and -(-n // 32) * 8 <= 4294967295 and m >= 129 and m <= 724 and n <= 1773 and k <= 886
    ):
        return Choice(
            22, ("wgmma_tn_bf16_64x32x128_a91cb8",), (min(tiles_64x32, sms // 1) * 1,), (),
        )
    # 23: measured at 7 problems: 2 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 256 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x256 + sms <= 4294967295
        and -(-n // 256) * 16 <= 4294967295 and m >= 2479 and n >= 1012 and n <= 10836 and k >= 444
        and k <= 6400
    ):
        return Choice(
            23, ("wgmma_tn_bf16_128x256x64_9bf432",), (min(tiles_128x256, sms // 1) * 1,), (),
        )
    # 24: measured at 2 problems: 2 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 128 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x128 + sms <= 4294967295
        and -(-n // 128) * 8 <= 4294967295 and m >= 5793 and n <= 1773
    ):
        return Choice(
            24, ("wgmma_tn_bf16_128x128x64_89114b",), (min(tiles_128x128, sms // 1) * 1,), (),
        )
    # 25: measured at 3 problems: 5 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 224 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x224 + sms <= 4294967295
        and -(-n // 224) * 8 <= 4294967295 and m >= 129 and m <= 2478 and n >= 10837 and k >= 887
        and k <= 6400
    ):
        return Choice(
            25, ("wgmma_tn_bf16_128x224x64_5bb08c",), (min(tiles_128x224, sms // 1) * 1,), (),
        )
    # 26: measured at 3 problems: 11 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 128 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x128 + sms <= 4294967295
        and -(-n // 128) * 8 <= 4294967295 and m >= 257 and m <= 724 and n >= 1774
    ):
        return Choice(
            26, ("wgmma_tn_bf16_128x128x64_89114b",), (min(tiles_128x128, sms // 1) * 1,), (),
        )
    # 27: measured at 6 problems: 7 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_16x32 <= 2147483647 and m >= 9
        and m <= 32 and n <= 1773
    ):
        return Choice(27, ("mma_tn_bf16_16x32x128_845f0d",), (tiles_16x32,), ())
    # 28: not measured: as the nearest measured problem
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 2 and m + 192 <= 2147483647
        and n + 256 <= 2147483647 and k + 64 <= 2147483647 and tiles_192x256 + sms <= 4294967295
        and -(-n // 256) * 8 <= 4294967295 and m >= 1449 and m <= 5792 and n <= 1773 and k >= 6401
    ):
        return Choice(
            28, ("wgmma_tn_bf16_192x128x64_5353a2",), (min(tiles_192x256, sms // 2) * 2,), (),
        )
    # 29: measured at 3 problems: 4 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 64 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x64 + sms <= 4294967295
        and -(-n // 64) * 8 <= 4294967295 and m >= 725 and m <= 1448 and n <= 3547 and k >= 444
        and k <= 3546
    ):
        return Choice(
            29, ("wgmma_tn_bf16_128x64x64_701c99",), (min(tiles_128x64, sms // 1) * 1,), (),
        )
    # 30: measured at 1 problem: 7 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_8x64 <= 2147483647 and m <= 8
        and n >= 1774 and k >= 4526
    ):
        return Choice(30, ("mma_tn_bf16_8x64x128_9f8b63",), (tiles_8x64,), ())
    # 31: measured at 8 problems: 3 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 16 <= 2147483647 and k + 128 <= 2147483647 and tiles_64x16 + sms <= 4294967295
        and -(-n // 16) * 8 <= 4294967295 and m >= 33 and m <= 128 and n <= 1773
    ):
        return Choice(
            31, ("wgmma_tn_bf16_64x16x128_534e05",), (min(tiles_64x16, sms // 1) * 1,), (),
        )
    # 32: measured at 7 problems: 3 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 256 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x256 + sms <= 4294967295
        and -(-n // 256) * 16 <= 4294967295 and m >= 725 and n >= 1774 and n <= 10836 and k >= 2173
    ):
        return Choice(
            32, ("wgmma_tn_bf16_128x256x64_9bf432",), (min(tiles_128x256, sms // 1) * 1,), (),
        )
    # 33: measured at 4 problems: 11 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_32x32 <= 2147483647 and m >= 17
        and m <= 32 and n >= 1774 and n <= 5792
    ):
        return Choice(33, ("mma_tn_bf16_32x32x128_9dae1a",), (tiles_32x32,), ())
    # 34: measured at 3 problems: 16 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 64 <= 2147483647 and k + 64 <= 2147483647 and tiles_64x64 + sms <= 4294967295
        and -(-n // 64) * 8 <= 4294967295 and m >= 257 and m <= 724 and n <= 1773 and k >= 444
    ):
        return Choice(34, ("wgmma_tn_bf16_64x64x64_a5ae8e",), (min(tiles_64x64, sms // 1) * 1,), ())
    # 35: measured at 2 problems: 8 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 128 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x128 + sms <= 4294967295
        and -(-n // 128) * 8 <= 4294967295 and m >= 129 and n >= 5793 and k >= 2173
    ):
        return Choice(
            35, ("wgmma_tn_bf16_128x128x64_89114b",), (min(tiles_128x128, sms // 1) * 1,), (),
        )
    # 36: measured at 3 problems: 7 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_64x128 <= 2147483647 and m <= 64
        and n >= 10837 and k >= 887 and k <= 6400
    ):
        return Choice(36, ("mma_tn_bf16_64x128x64_f8b3d3",), (tiles_64x128,), ())
    # 37: measured at 7 problems: 10 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 64 <= 2147483647 and k + 64 <= 2147483647 and tiles_64x64 + sms <= 4294967295
        and -(-n // 64) * 8 <= 4294967295 and m >= 33 and m <= 128 and n >= 1774 and n <= 10836
    ):
        return Choice(37, ("wgmma_tn_bf16_64x64x64_a5ae8e",), (min(tiles_64x64, sms // 1) * 1,), ())
    # 38: measured at 2 problems: 8 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 128 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x128 + sms <= 4294967295
        and -(-n // 128) * 8 <= 4294967295 and m >= 1449 and n >= 1012
    ):
        return Choice(
            38, ("wgmma_tn_bf16_128x128x64_89114b",), (min(tiles_128x128, sms // 1) * 1,), (),
        )
    # 39: measured at 3 problems: 15 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_16x32 <= 2147483647 and m >= 9
        and m <= 16 and n <= 5792
    ):
        return Choice(39, ("mma_tn_bf16_16x32x128_845f0d",), (tiles_16x32,), ())
    # 40: measured at 7 problems: 5 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_8x32 <= 2147483647 and m <= 8
        and k >= 444
    ):
        return Choice(40, ("mma_tn_bf16_8x32x128_acf656",), (tiles_8x32,), ())
    # 41: measured at 3 problems: 10 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 32 <= 2147483647 and k + 128 <= 2147483647 and tiles_64x32 + sms <= 4294967295
        and -(-n // 32) * 8 <= 4294967295 and m >= 9 and m <= 256 and n <= 1773
    ):
        return Choice(
            41, ("wgmma_tn_bf16_64x32x128_a91cb8",), (min(tiles_64x32, sms // 1) * 1,), (),
        )
    # 42: measured at 1 problem: 4 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 192 <= 2147483647
        and n + 128 <= 2147483647 and k + 64 <= 2147483647 and tiles_192x128 + sms <= 4294967295
        and -(-n // 128) * 8 <= 4294967295 and m >= 2479 and k >= 1255
    ):
        return Choice(
            42, ("wgmma_tn_bf16_192x128x64_d6d4e6",), (min(tiles_192x128, sms // 1) * 1,), (),
        )
    tiles_32x64 = -(-m // 32) * -(-n // 64)
    # 43: measured at 2 problems: 11 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_32x64 <= 2147483647 and m <= 64
        and n <= 10836
    ):
        return Choice(43, ("mma_tn_bf16_32x64x128_d7fc82",), (tiles_32x64,), ())
    # 44: measured at 4 problems: 5 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 128 <= 2147483647 and k + 64 <= 2147483647 and tiles_64x128 + sms <= 4294967295
        and -(-n // 128) * 8 <= 4294967295
    ):
        return Choice(
            44, ("wgmma_tn_bf16_64x128x64_af4e2a",), (min(tiles_64x128, sms // 1) * 1,), (),
        )
    # 45: measured at 11 problems: 47 % faster than the next
    if align_a >= 4 and align_b >= 16 and chunks <= 1 and tiles_8x32 <= 2147483647 and align_a >= 8:
        return Choice(45, ("mma_tn_bf16_8x32x256_4cc775",), (tiles_8x32,), ())
    # 46: measured at 1 problem: 107 % faster than the next
    if (
        align_a >= 4 and align_b >= 4 and chunks <= 1 and tiles_16x32 <= 2147483647 and m <= 16
        and align_a >= 16 and align_b >= 8
    ):
        return Choice(46, ("mma_tn_bf16_16x32x128_31ca24",), (tiles_16x32,), ())
    # 47: measured at 2 problems: 88 % faster than the next
    if (
        align_a >= 4 and align_b >= 4 and chunks <= 1 and tiles_64x64 <= 2147483647
        and align_a >= 16 and align_b >= 8
    ):
        return Choice(47, ("mma_tn_bf16_64x64x32_215e25",), (tiles_64x64,), ())
    # 48: measured at 4 problems: 72 % faster than the next
    if align_a >= 4 and align_b >= 16 and chunks <= 1 and tiles_8x32 <= 2147483647:
        return Choice(48, ("mma_tn_bf16_8x32x256_4cc775",), (tiles_8x32,), ())
    # 49: measured at 12 problems: 121 % faster than the next
    if chunks <= 1 and tiles_16x32 <= 2147483647 and align_b >= 16:
        return Choice(49, ("mma_tn_bf16_16x32x128_f3a7d2",), (tiles_16x32,), ())
    # 50: measured at 2 problems: 116 % faster than the next
    if chunks <= 1 and tiles_16x32 <= 2147483647 and m <= 128 and n <= 1026 and align_a >= 16:
        return Choice(50, ("mma_tn_bf16_16x32x128_f3a7d2",), (tiles_16x32,), ())
    # 51: measured at 2 problems: 77 % faster than the next
    if chunks <= 1 and tiles_16x32 <= 2147483647 and m <= 16 and align_a >= 16:
        return Choice(51, ("mma_tn_bf16_16x32x128_f3a7d2",), (tiles_16x32,), ())
    # 52: measured at 5 problems: the only kernel
    if chunks <= 1 and align_a >= 16:
        return Choice(52, ("mma_tn_bf16_64x64x32_b35a87",), (min(tiles_64x64, 2147483647),), ())
    # 53: measured at 1 problem: 158 % faster than the next
    if chunks <= 1 and tiles_16x32 <= 2147483647 and align_b >= 8:
        return Choice(53, ("mma_tn_bf16_16x32x128_f3a7d2",), (tiles_16x32,), ())
    # 54: measured at 3 problems: 99 % faster than the next
    if chunks <= 1 and tiles_16x32 <= 2147483647:
        return Choice(54, ("mma_tn_bf16_16x32x128_f3a7d2",), (tiles_16x32,), ())
    # 55: operands off 16 bytes
    if align_a >= 4 and align_b >= 4 and chunks <= 1 and tiles_64x64 <= 2147483647:
        return Choice(55, ("mma_tn_bf16_64x64x32_215e25",), (tiles_64x64,), ())
    # 56: everything else: any size and alignment
    if chunks <= 1:
        return Choice(56, ("mma_tn_bf16_64x64x32_b35a87",), (min(tiles_64x64, 2147483647),), ())
    return None


BY_ARCH: dict[str, Dispatch] = {
    "sm_90": sm_90,
}
