"""Dispatch of TT rows half tc: products under the plan 'rows'.

On NVIDIA H200 with 132 SMs, by its tuning.

Generated from tiles/tunings/h200_132.json; do not edit.
Regenerate: ptxgen generate
"""

from ptxgen.dispatch.choice import Choice, Dispatch


def sm_90(m: int, n: int, k: int, sms: int, align_a: int, align_b: int) -> Choice | None:
    """For sm_90."""
    chunk = max(1, min(k, k))
    chunks = -(-k // chunk)
    tiles_32x32 = -(-m // 32) * -(-n // 32)
    # 0: measured at 6 problems: 6 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_32x32 <= 2147483647 and m >= 17
        and m <= 64 and n <= 1773 and k <= 2172
    ):
        return Choice(0, ("mma_tt_bf16_32x32x128_9789f3",), (tiles_32x32,), ())
    # 1: measured at 2 problems: 1 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_32x32 <= 2147483647 and m <= 8
        and n <= 627 and k <= 2172
    ):
        return Choice(1, ("mma_tt_bf16_32x32x128_9789f3",), (tiles_32x32,), ())
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    # 2: measured at 2 problems: 34 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 128 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x128 + sms <= 4294967295
        and -(-n // 128) * 8 <= 4294967295 and m >= 33 and n >= 26842
    ):
        return Choice(
            2, ("wgmma_tt_bf16_128x128x64_82abbb",), (min(tiles_128x128, sms // 1) * 1,), (),
        )
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 3: measured at 1 problem: 6 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 64 <= 2147483647 and k + 64 <= 2147483647 and tiles_64x64 + sms <= 4294967295
        and -(-n // 64) * 8 <= 4294967295 and m >= 9 and m <= 16 and n <= 876 and k >= 444
        and k <= 2172
    ):
        return Choice(3, ("wgmma_tt_bf16_64x64x64_e81f12",), (min(tiles_64x64, sms // 1) * 1,), ())
    # 4: measured at 19 problems: 60 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 128 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x128 + sms <= 4294967295
        and -(-n // 128) * 8 <= 4294967295 and m >= 1449 and k >= 2173
    ):
        return Choice(
            4, ("wgmma_tt_bf16_128x128x64_82abbb",), (min(tiles_128x128, sms // 1) * 1,), (),
        )
    # 5: measured at 18 problems: 43 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 128 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x128 + sms <= 4294967295
        and -(-n // 128) * 8 <= 4294967295 and m >= 257 and n >= 1774
    ):
        return Choice(
            5, ("wgmma_tt_bf16_128x128x64_82abbb",), (min(tiles_128x128, sms // 1) * 1,), (),
        )
    tiles_8x32 = -(-m // 8) * -(-n // 32)
    # 6: measured at 6 problems: 16 % faster than the next
    if (
        align_a >= 4 and align_b >= 16 and chunks <= 1 and tiles_8x32 <= 2147483647 and m <= 16
        and n <= 5792 and k >= 2173 and k <= 6400 and align_a >= 16
    ):
        return Choice(6, ("mma_tt_bf16_8x32x256_a02f9a",), (tiles_8x32,), ())
    # 7: measured at 4 problems: 3 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_32x32 <= 2147483647 and m >= 17
        and m <= 256 and n <= 627 and k <= 2172
    ):
        return Choice(7, ("mma_tt_bf16_32x32x128_9789f3",), (tiles_32x32,), ())
    # 8: measured at 2 problems: 18 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 128 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x128 + sms <= 4294967295
        and -(-n // 128) * 8 <= 4294967295 and m >= 65 and n >= 10837 and k >= 444
    ):
        return Choice(
            8, ("wgmma_tt_bf16_128x128x64_82abbb",), (min(tiles_128x128, sms // 1) * 1,), (),
        )
    # 9: measured at 8 problems: 12 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_32x32 <= 2147483647 and m >= 17
        and m <= 32
    ):
        return Choice(9, ("mma_tt_bf16_32x32x128_9789f3",), (tiles_32x32,), ())
    # 10: measured at 18 problems: 27 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 64 <= 2147483647 and k + 64 <= 2147483647 and tiles_64x64 + sms <= 4294967295
        and -(-n // 64) * 8 <= 4294967295 and m >= 17 and m <= 1448 and n <= 1773
    ):
        return Choice(10, ("wgmma_tt_bf16_64x64x64_e81f12",), (min(tiles_64x64, sms // 1) * 1,), ())
    # 11: measured at 12 problems: 28 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 64 <= 2147483647 and k + 64 <= 2147483647 and tiles_64x64 + sms <= 4294967295
        and -(-n // 64) * 8 <= 4294967295 and m >= 33 and m <= 256 and n <= 5792
    ):
        return Choice(11, ("wgmma_tt_bf16_64x64x64_e81f12",), (min(tiles_64x64, sms // 1) * 1,), ())
    # 12: measured at 6 problems: 28 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 128 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x128 + sms <= 4294967295
        and -(-n // 128) * 8 <= 4294967295 and m >= 2479
    ):
        return Choice(
            12, ("wgmma_tt_bf16_128x128x64_82abbb",), (min(tiles_128x128, sms // 1) * 1,), (),
        )
    # 13: measured at 5 problems: 4 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_32x32 <= 2147483647 and m >= 9
        and m <= 32 and n >= 1774 and k >= 887
    ):
        return Choice(13, ("mma_tt_bf16_32x32x128_9789f3",), (tiles_32x32,), ())
    # 14: measured at 1 problem: 42 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 128 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x128 + sms <= 4294967295
        and -(-n // 128) * 8 <= 4294967295 and m >= 129 and n >= 1774 and k >= 2173
    ):
        return Choice(
            14, ("wgmma_tt_bf16_128x128x64_82abbb",), (min(tiles_128x128, sms // 1) * 1,), (),
        )
    # 15: measured at 9 problems: 14 % faster than the next
    if (
        align_a >= 4 and align_b >= 16 and chunks <= 1 and tiles_8x32 <= 2147483647 and m <= 16
        and n <= 26841 and align_a >= 16
    ):
        return Choice(15, ("mma_tt_bf16_8x32x256_a02f9a",), (tiles_8x32,), ())
    # 16: measured at 1 problem: 21 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 128 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x128 + sms <= 4294967295
        and -(-n // 128) * 8 <= 4294967295 and m >= 725 and n >= 628
    ):
        return Choice(
            16, ("wgmma_tt_bf16_128x128x64_82abbb",), (min(tiles_128x128, sms // 1) * 1,), (),
        )
    # 17: measured at 5 problems: 17 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 64 <= 2147483647 and k + 64 <= 2147483647 and tiles_64x64 + sms <= 4294967295
        and -(-n // 64) * 8 <= 4294967295
    ):
        return Choice(17, ("wgmma_tt_bf16_64x64x64_e81f12",), (min(tiles_64x64, sms // 1) * 1,), ())
    # 18: measured at 11 problems: 115 % faster than the next
    if align_a >= 4 and align_b >= 16 and chunks <= 1 and tiles_8x32 <= 2147483647 and align_a >= 8:
        return Choice(18, ("mma_tt_bf16_8x32x256_a02f9a",), (tiles_8x32,), ())
    tiles_16x32 = -(-m // 16) * -(-n // 32)
    # 19: measured at 1 problem: 220 % faster than the next
    if chunks <= 1 and tiles_16x32 <= 2147483647 and m <= 16 and align_a >= 16 and align_b >= 8:
        return Choice(19, ("mma_tt_bf16_16x32x128_406efa",), (tiles_16x32,), ())
    # 20: measured at 2 problems: the only kernel
    if chunks <= 1 and align_a >= 16 and align_b >= 8:
        return Choice(20, ("mma_tt_bf16_64x64x32_3bec8e",), (min(tiles_64x64, 2147483647),), ())
    # 21: measured at 4 problems: 185 % faster than the next
    if align_a >= 4 and align_b >= 16 and chunks <= 1 and tiles_8x32 <= 2147483647:
        return Choice(21, ("mma_tt_bf16_8x32x256_a02f9a",), (tiles_8x32,), ())
    # 22: measured at 12 problems: 193 % faster than the next
    if chunks <= 1 and tiles_16x32 <= 2147483647 and align_b >= 16:
        return Choice(22, ("mma_tt_bf16_16x32x128_406efa",), (tiles_16x32,), ())
    # 23: measured at 2 problems: 155 % faster than the next
    if chunks <= 1 and tiles_16x32 <= 2147483647 and m <= 128 and n <= 1025 and align_a >= 16:
        return Choice(23, ("mma_tt_bf16_16x32x128_406efa",), (tiles_16x32,), ())
    # 24: measured at 2 problems: 218 % faster than the next
    if chunks <= 1 and tiles_16x32 <= 2147483647 and m <= 16 and align_a >= 16:
        return Choice(24, ("mma_tt_bf16_16x32x128_406efa",), (tiles_16x32,), ())
    # 25: measured at 5 problems: 175 % faster than the next
    if chunks <= 1 and align_a >= 16:
        return Choice(25, ("mma_tt_bf16_64x64x32_3bec8e",), (min(tiles_64x64, 2147483647),), ())
    # 26: measured at 1 problem: 226 % faster than the next
    if chunks <= 1 and tiles_16x32 <= 2147483647 and align_b >= 8:
        return Choice(26, ("mma_tt_bf16_16x32x128_406efa",), (tiles_16x32,), ())
    # 27: measured at 3 problems: 196 % faster than the next
    if chunks <= 1 and tiles_16x32 <= 2147483647:
        return Choice(27, ("mma_tt_bf16_16x32x128_406efa",), (tiles_16x32,), ())
    # 28: everything else: any size and alignment
    if chunks <= 1:
        return Choice(28, ("mma_tt_bf16_64x64x32_3bec8e",), (min(tiles_64x64, 2147483647),), ())
    return None


BY_ARCH: dict[str, Dispatch] = {
    "sm_90": sm_90,
}
