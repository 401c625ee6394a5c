"""Dispatch of NN rows half tc: products under the plan 'rows'.

On NVIDIA H200 with 132 SMs, by its tuning.

Generated from tiles/tunings/h200_132.json; do not edit.
Regenerate: ptxgen generate
"""

from ptxgen.dispatch.choice import Choice, Dispatch


def sm_90(m: int, n: int, k: int, sms: int, align_a: int, align_b: int) -> Choice | None:
    """For sm_90."""
    chunk = max(1, min(k, k))
    chunks = -(-k // chunk)
    tiles_64x128 = -(-m // 64) * -(-n // 128)
    # 0: measured at 1 problem: 0.2 % behind the best
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 128 <= 2147483647 and k + 64 <= 2147483647 and tiles_64x128 + sms <= 4294967295
        and -(-n // 128) * 8 <= 4294967295 and m >= 725 and m <= 1448 and n <= 10836 and k >= 1255
        and k <= 2172
    ):
        return Choice(
            0, ("wgmma_nn_bf16_64x128x64_2e86fc",), (min(tiles_64x128, sms // 1) * 1,), (),
        )
    tiles_8x32 = -(-m // 8) * -(-n // 32)
    # 1: measured at 1 problem: 3 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_8x32 <= 2147483647 and m >= 9
        and m <= 16 and n <= 876 and k <= 443
    ):
        return Choice(1, ("mma_nn_bf16_8x32x128_f7ec2d",), (tiles_8x32,), ())
    tiles_128x224 = -(-m // 128) * -(-n // 224)
    # 2: measured at 3 problems: 5 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 224 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x224 + sms <= 4294967295
        and -(-n // 224) * 8 <= 4294967295 and m >= 129 and m <= 1448 and n >= 10837 and k >= 887
        and k <= 6400
    ):
        return Choice(
            2, ("wgmma_nn_bf16_128x224x64_9c36e6",), (min(tiles_128x224, sms // 1) * 1,), (),
        )
    tiles_64x32 = -(-m // 64) * -(-n // 32)
    # 3: measured at 1 problem: 4 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 32 <= 2147483647 and k + 128 <= 2147483647 and tiles_64x32 + sms <= 4294967295
        and -(-n // 32) * 8 <= 4294967295 and m >= 725 and m <= 1448 and n <= 876 and k <= 443
    ):
        return Choice(3, ("wgmma_nn_bf16_64x32x128_ff9e9b",), (min(tiles_64x32, sms // 1) * 1,), ())
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 4: not measured: as the nearest measured problem
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 64 <= 2147483647 and k + 64 <= 2147483647 and tiles_64x64 + sms <= 4294967295
        and -(-n // 64) * 8 <= 4294967295 and m >= 33 and m <= 128 and n >= 5793 and k <= 2172
    ):
        return Choice(4, ("wgmma_nn_bf16_64x64x64_4fd254",), (min(tiles_64x64, sms // 1) * 1,), ())
    # 5: measured at 1 problem: 3 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 64 <= 2147483647 and k + 64 <= 2147483647 and tiles_64x64 + sms <= 4294967295
        and -(-n // 64) * 8 <= 4294967295 and m >= 33 and m <= 64 and n >= 5793 and k >= 4526
    ):
        return Choice(5, ("wgmma_nn_bf16_64x64x64_4fd254",), (min(tiles_64x64, sms // 1) * 1,), ())
    tiles_64x16 = -(-m // 64) * -(-n // 16)
    # 6: measured at 1 problem: 4 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 16 <= 2147483647 and k + 256 <= 2147483647 and tiles_64x16 + sms <= 4294967295
        and -(-n // 16) * 8 <= 4294967295 and m >= 257 and m <= 724 and n <= 876 and k <= 443
    ):
        return Choice(6, ("wgmma_nn_bf16_64x16x256_9a1dd4",), (min(tiles_64x16, sms // 1) * 1,), ())
    tiles_128x64 = -(-m // 128) * -(-n // 64)
    # 7: measured at 1 problem: 3 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 64 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x64 + sms <= 4294967295
        and -(-n // 64) * 8 <= 4294967295 and m >= 725 and m <= 1448 and n <= 876 and k >= 2173
        and k <= 4095
    ):
        return Choice(
            7, ("wgmma_nn_bf16_128x64x64_abd4be",), (min(tiles_128x64, sms // 1) * 1,), (),
        )
    # 8: not measured: as the nearest measured problem
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 128 <= 2147483647 and k + 64 <= 2147483647 and tiles_64x128 + sms <= 4294967295
        and -(-n // 128) * 8 <= 4294967295 and m >= 725 and m <= 2478 and n <= 627 and k >= 887
        and k <= 2172
    ):
        return Choice(
            8, ("wgmma_nn_bf16_64x128x64_2e86fc",), (min(tiles_64x128, sms // 1) * 1,), (),
        )
    # 9: measured at 2 problems: 2 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 32 <= 2147483647 and k + 128 <= 2147483647 and tiles_64x32 + sms <= 4294967295
        and -(-n // 32) * 8 <= 4294967295 and m >= 17 and m <= 32 and n >= 877 and n <= 1773
    ):
        return Choice(9, ("wgmma_nn_bf16_64x32x128_ff9e9b",), (min(tiles_64x32, sms // 1) * 1,), ())
    tiles_16x32 = -(-m // 16) * -(-n // 32)
    # 10: measured at 2 problems: 2 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_16x32 <= 2147483647 and m >= 2
        and m <= 2 and n <= 5792 and k <= 6400
    ):
        return Choice(10, ("mma_nn_bf16_16x32x128_c42c9b",), (tiles_16x32,), ())
    tiles_8x64 = -(-m // 8) * -(-n // 64)
    # 11: measured at 2 problems: 1.2 % behind the best
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_8x64 <= 2147483647 and m <= 4
        and n >= 1774 and k <= 1254
    ):
        return Choice(11, ("mma_nn_bf16_8x64x128_c1cd43",), (tiles_8x64,), ())
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    # 12: measured at 1 problem: as fast as the best
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 128 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x128 + sms <= 4294967295
        and -(-n // 128) * 8 <= 4294967295 and m >= 65 and m <= 128 and n >= 5793 and k >= 2173
        and k <= 4525
    ):
        return Choice(
            12, ("wgmma_nn_bf16_128x128x64_b78178",), (min(tiles_128x128, sms // 1) * 1,), (),
        )
    tiles_128x256 = -(-m // 128) * -(-n // 256)
    # 13: measured at 8 problems: 3 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 256 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x256 + sms <= 4294967295
        and -(-n // 256) * 16 <= 4294967295 and m >= 1449 and m <= 5792 and n >= 1774 and k >= 2173
    ):
        return Choice(
            13, ("wgmma_nn_bf16_128x256x64_21d1cf",), (min(tiles_128x256, sms // 1) * 1,), (),
        )
    # 14: measured at 1 problem: 6 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 16 <= 2147483647 and k + 256 <= 2147483647 and tiles_64x16 + sms <= 4294967295
        and -(-n // 16) * 8 <= 4294967295 and m >= 5 and m <= 8 and n <= 876 and k <= 443
    ):
        return Choice(
            14, ("wgmma_nn_bf16_64x16x256_9a1dd4",), (min(tiles_64x16, sms // 1) * 1,), (),
        )
    # 15: measured at 2 problems: 1 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 128 <= 2147483647 and k + 64 <= 2147483647 and tiles_64x128 + sms <= 4294967295
        and -(-n // 128) * 8 <= 4294967295 and m >= 129 and m <= 256 and n >= 1774 and n <= 5792
        and k >= 3547
    ):
        return Choice(
            15, ("wgmma_nn_bf16_64x128x64_2e86fc",), (min(tiles_64x128, sms // 1) * 1,), (),
        )
    # 16: measured at 2 problems: 4 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 256 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x256 + sms <= 4294967295
        and -(-n // 256) * 16 <= 4294967295 and m >= 257 and m <= 5792 and n >= 5793 and k >= 4526
    ):
        return Choice(
            16, ("wgmma_nn_bf16_128x256x64_21d1cf",), (min(tiles_128x256, sms // 1) * 1,), (),
        )
    # 17: measured at 2 problems: 1 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 224 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x224 + sms <= 4294967295
        and -(-n // 224) * 8 <= 4294967295 and m >= 5793 and n >= 1774 and k >= 6401
    ):
        return Choice(
            17, ("wgmma_nn_bf16_128x224x64_9c36e6",), (min(tiles_128x224, sms // 1) * 1,), (),
        )
    tiles_192x256 = -(-m // 192) * -(-n // 256)
    # 18: measured at 1 problem: 44 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 2 and m + 192 <= 2147483647
        and n + 256 <= 2147483647 and k + 64 <= 2147483647 and tiles_192x256 + sms <= 4294967295
        and -(-n // 256) * 8 <= 4294967295 and m >= 2479 and m <= 3505 and n <= 1773 and k >= 3547
    ):
        return Choice(
            18, ("wgmma_nn_bf16_192x128x64_743440",), (min(tiles_192x256, sms // 2) * 2,), (),
        )
    # 19: measured at 1 problem: 6 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 32 <= 2147483647 and k + 128 <= 2147483647 and tiles_64x32 + sms <= 4294967295
        and -(-n // 32) * 8 <= 4294967295 and m >= 17 and m <= 32 and n <= 1773 and k >= 444
        and k <= 2172
    ):
        return Choice(
            19, ("wgmma_nn_bf16_64x32x128_ff9e9b",), (min(tiles_64x32, sms // 1) * 1,), (),
        )
    # 20: not measured: as the nearest measured problem
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 128 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x128 + sms <= 4294967295
        and -(-n // 128) * 8 <= 4294967295 and m >= 1449 and m <= 2478 and k >= 4526 and k <= 6400
    ):
        return Choice(
            20, ("wgmma_nn_bf16_128x128x64_b78178",), (min(tiles_128x128, sms // 1) * 1,), (),
        )
    # 21: measured at 1 problem: 2 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 32 <= 2147483647 and k + 128 <= 2147483647 and tiles_64x32 + sms <= 4294967295
        and -(-n // 32) * 8 <= 4294967295 and m >= 33 and m <= 64 and n >= 1774 and n <= 5792
        and k >= 6401
    ):
        return Choice(
            21, ("wgmma_nn_bf16_64x32x128_ff9e9b",), (min(tiles_64x32, sms // 1) * 1,), (),
        )
    # 22: measured at 3 problems: 3 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 256 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x256 + sms <= 4294967295
        and -(-n // 256) * 16 <= 4294967295 and m >= 3506 and n >= 628 and n <= 5792 and k >= 4096
        and k <= 6400
    ):
        return Choice(
            22, ("wgmma_nn_bf16_128x256x64_21d1cf",), (min(tiles_128x256, sms // 1) * 1,), (),
        )
    # 23: measured at 3 problems: 2 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 128 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x128 + sms <= 4294967295
        and -(-n // 128) * 8 <= 4294967295 and m >= 5793 and n <= 1011
    ):
        return Choice(
            23, ("wgmma_nn_bf16_128x128x64_b78178",), (min(tiles_128x128, sms // 1) * 1,), (),
        )
    tiles_16x64 = -(-m // 16) * -(-n // 64)
    # 24: measured at 3 problems: 1.3 % behind the best
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_16x64 <= 2147483647 and m >= 5
        and m <= 128 and n <= 876 and k <= 443
    ):
        return Choice(24, ("mma_nn_bf16_16x64x128_aac18e",), (tiles_16x64,), ())
    # 25: measured at 4 problems: 2 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_8x32 <= 2147483647 and m <= 1
        and n <= 5792 and k >= 2173 and k <= 6400
    ):
        return Choice(25, ("mma_nn_bf16_8x32x128_f7ec2d",), (tiles_8x32,), ())
    # 26: measured at 2 problems: 4 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 32 <= 2147483647 and k + 128 <= 2147483647 and tiles_64x32 + sms <= 4294967295
        and -(-n // 32) * 8 <= 4294967295 and m >= 33 and m <= 64 and n >= 1774 and k <= 2172
    ):
        return Choice(
            26, ("wgmma_nn_bf16_64x32x128_ff9e9b",), (min(tiles_64x32, sms // 1) * 1,), (),
        )
    # 27: measured at 1 problem: 7 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 32 <= 2147483647 and k + 128 <= 2147483647 and tiles_64x32 + sms <= 4294967295
        and -(-n // 32) * 8 <= 4294967295 and m >= 257 and m <= 724 and n <= 627 and k <= 2172
    ):
        return Choice(
            27, ("wgmma_nn_bf16_64x32x128_ff9e9b",), (min(tiles_64x32, sms // 1) * 1,), (),
        )
    # 28: measured at 3 problems: 2 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 128 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x128 + sms <= 4294967295
        and -(-n // 128) * 8 <= 4294967295 and m >= 2479 and n <= 1773 and k >= 444 and k <= 2172
    ):
        return Choice(
            28, ("wgmma_nn_bf16_128x128x64_b78178",), (min(tiles_128x128, sms // 1) * 1,), (),
        )
    # 29: measured at 5 problems: 7 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_8x32 <= 2147483647 and m >= 5
        and m <= 8 and n >= 628 and n <= 3547 and k >= 444
    ):
        return Choice(29, ("mma_nn_bf16_8x32x128_f7ec2d",), (tiles_8x32,), ())
    tiles_128x112 = -(-m // 128) * -(-n // 112)
    # 30: measured at 2 problems: 8 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 112 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x112 + sms <= 4294967295
        and -(-n // 112) * 8 <= 4294967295 and m >= 257 and m <= 724 and n >= 1774 and n <= 10836
        and k <= 2172
    ):
        return Choice(
            30, ("wgmma_nn_bf16_128x112x64_256c5b",), (min(tiles_128x112, sms // 1) * 1,), (),
        )
    # 31: measured at 4 problems: 5 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 16 <= 2147483647 and k + 256 <= 2147483647 and tiles_64x16 + sms <= 4294967295
        and -(-n // 16) * 8 <= 4294967295 and m >= 9 and m <= 256 and n <= 627 and k >= 444
        and k <= 2172
    ):
        return Choice(
            31, ("wgmma_nn_bf16_64x16x256_9a1dd4",), (min(tiles_64x16, sms // 1) * 1,), (),
        )
    # 32: measured at 1 problem: 15 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 128 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x128 + sms <= 4294967295
        and -(-n // 128) * 8 <= 4294967295 and m >= 129 and m <= 724 and n >= 5793 and k >= 4526
    ):
        return Choice(
            32, ("wgmma_nn_bf16_128x128x64_b78178",), (min(tiles_128x128, sms // 1) * 1,), (),
        )
    # 33: measured at 2 problems: 3 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 256 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x256 + sms <= 4294967295
        and -(-n // 256) * 16 <= 4294967295 and m >= 725 and m <= 5792 and n >= 1774 and n <= 10836
        and k >= 4096
    ):
        return Choice(
            33, ("wgmma_nn_bf16_128x256x64_21d1cf",), (min(tiles_128x256, sms // 1) * 1,), (),
        )
    # 34: measured at 1 problem: 4 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 2 and m + 192 <= 2147483647
        and n + 256 <= 2147483647 and k + 64 <= 2147483647 and tiles_192x256 + sms <= 4294967295
        and -(-n // 256) * 8 <= 4294967295 and m >= 2479 and m <= 5792 and n <= 876 and k >= 2173
    ):
        return Choice(
            34, ("wgmma_nn_bf16_192x128x64_743440",), (min(tiles_192x256, sms // 2) * 2,), (),
        )
    # 35: measured at 1 problem: 8 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 64 <= 2147483647 and k + 64 <= 2147483647 and tiles_64x64 + sms <= 4294967295
        and -(-n // 64) * 8 <= 4294967295 and m >= 725 and m <= 2478 and n <= 876 and k <= 443
    ):
        return Choice(35, ("wgmma_nn_bf16_64x64x64_4fd254",), (min(tiles_64x64, sms // 1) * 1,), ())
    # 36: measured at 1 problem: 7 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 64 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x64 + sms <= 4294967295
        and -(-n // 64) * 8 <= 4294967295 and m >= 725 and m <= 1448 and n >= 1774 and n <= 10836
        and k <= 2172
    ):
        return Choice(
            36, ("wgmma_nn_bf16_128x64x64_abd4be",), (min(tiles_128x64, sms // 1) * 1,), (),
        )
    # 37: measured at 4 problems: 2 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 256 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x256 + sms <= 4294967295
        and -(-n // 256) * 16 <= 4294967295 and m >= 2479 and n >= 877 and n <= 10836 and k >= 444
        and k <= 4525
    ):
        return Choice(
            37, ("wgmma_nn_bf16_128x256x64_21d1cf",), (min(tiles_128x256, sms // 1) * 1,), (),
        )
    # 38: measured at 3 problems: 10 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 32 <= 2147483647 and k + 128 <= 2147483647 and tiles_64x32 + sms <= 4294967295
        and -(-n // 32) * 8 <= 4294967295 and m >= 129 and m <= 256 and n <= 1773 and k >= 444
    ):
        return Choice(
            38, ("wgmma_nn_bf16_64x32x128_ff9e9b",), (min(tiles_64x32, sms // 1) * 1,), (),
        )
    # 39: measured at 2 problems: 5 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_8x32 <= 2147483647 and m >= 3
        and m <= 32 and n >= 628 and n <= 1773 and k >= 444 and k <= 2172
    ):
        return Choice(39, ("mma_nn_bf16_8x32x128_f7ec2d",), (tiles_8x32,), ())
    # 40: measured at 7 problems: 3 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_64x128 <= 2147483647 and m <= 64
        and n >= 5793 and k >= 2173 and k <= 4525
    ):
        return Choice(40, ("mma_nn_bf16_64x128x64_279d8f",), (tiles_64x128,), ())
    # 41: measured at 8 problems: 5 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_8x64 <= 2147483647 and m <= 16
        and n >= 1774 and n <= 5792 and k >= 4096
    ):
        return Choice(41, ("mma_nn_bf16_8x64x128_c1cd43",), (tiles_8x64,), ())
    # 42: not measured: as the nearest measured problem
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 224 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x224 + sms <= 4294967295
        and -(-n // 224) * 8 <= 4294967295 and m >= 129 and m <= 2478 and n >= 5793 and k >= 2173
        and k <= 4525
    ):
        return Choice(
            42, ("wgmma_nn_bf16_128x224x64_9c36e6",), (min(tiles_128x224, sms // 1) * 1,), (),
        )
    # 43: measured at 3 problems: 22 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 64 <= 2147483647 and k + 64 <= 2147483647 and tiles_64x64 + sms <= 4294967295
        and -(-n // 64) * 8 <= 4294967295 and m >= 129 and m <= 724 and n <= 1773 and k >= 444
    ):
        return Choice(43, ("wgmma_nn_bf16_64x64x64_4fd254",), (min(tiles_64x64, sms // 1) * 1,), ())
    # 44: measured at 2 problems: 10 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 64 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x64 + sms <= 4294967295
        and -(-n // 64) * 8 <= 4294967295 and m >= 129 and m <= 256 and n >= 1774 and n <= 5792
    ):
        return Choice(
            44, ("wgmma_nn_bf16_128x64x64_abd4be",), (min(tiles_128x64, sms // 1) * 1,), (),
        )
    tiles_32x32 = -(-m // 32) * -(-n // 32)
    # 45: measured at 4 problems: 6 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_32x32 <= 2147483647 and m >= 17
        and m <= 32 and n >= 1774 and n <= 5792
    ):
        return Choice(45, ("mma_nn_bf16_32x32x128_cff189",), (tiles_32x32,), ())
    # 46: measured at 6 problems: 8 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 16 <= 2147483647 and k + 256 <= 2147483647 and tiles_64x16 + sms <= 4294967295
        and -(-n // 16) * 8 <= 4294967295 and m >= 33 and m <= 128 and n <= 1773
    ):
        return Choice(
            46, ("wgmma_nn_bf16_64x16x256_9a1dd4",), (min(tiles_64x16, sms // 1) * 1,), (),
        )
    # 47: measured at 5 problems: 4 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 128 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x128 + sms <= 4294967295
        and -(-n // 128) * 8 <= 4294967295 and m >= 1449 and k >= 887 and k <= 4525
    ):
        return Choice(
            47, ("wgmma_nn_bf16_128x128x64_b78178",), (min(tiles_128x128, sms // 1) * 1,), (),
        )
    # 48: measured at 3 problems: 13 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 128 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x128 + sms <= 4294967295
        and -(-n // 128) * 8 <= 4294967295 and m >= 257 and n >= 1774
    ):
        return Choice(
            48, ("wgmma_nn_bf16_128x128x64_b78178",), (min(tiles_128x128, sms // 1) * 1,), (),
        )
    # 49: measured at 5 problems: as fast as the best
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_16x64 <= 2147483647 and m <= 32
        and n >= 5793 and k >= 444
    ):
        return Choice(49, ("mma_nn_bf16_16x64x128_aac18e",), (tiles_16x64,), ())
    # 50: measured at 6 problems: 9 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 64 <= 2147483647 and k + 64 <= 2147483647 and tiles_64x64 + sms <= 4294967295
        and -(-n // 64) * 8 <= 4294967295 and m >= 33 and m <= 256 and n <= 5792
    ):
        return Choice(50, ("wgmma_nn_bf16_64x64x64_4fd254",), (min(tiles_64x64, sms // 1) * 1,), ())
    # 51: not measured: as the nearest measured problem
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 2 and m + 192 <= 2147483647
        and n + 256 <= 2147483647 and k + 64 <= 2147483647 and tiles_192x256 + sms <= 4294967295
        and -(-n // 256) * 8 <= 4294967295 and m >= 1449 and k >= 1255
    ):
        return Choice(
            51, ("wgmma_nn_bf16_192x128x64_743440",), (min(tiles_192x256, sms // 2) * 2,), (),
        )
    # 52: measured at 15 problems: 5 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_16x32 <= 2147483647 and m <= 32
        and n <= 10836
    ):
        return Choice(52, ("mma_nn_bf16_16x32x128_c42c9b",), (tiles_16x32,), ())
    # 53: measured at 6 problems: 5 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 128 <= 2147483647 and k + 64 <= 2147483647 and tiles_64x128 + sms <= 4294967295
        and -(-n // 128) * 8 <= 4294967295
    ):
        return Choice(
            53, ("wgmma_nn_bf16_64x128x64_2e86fc",), (min(tiles_64x128, sms // 1) * 1,), (),
        )
    # 54: measured at 1 problem: 111 % faster than the next
    if (
        align_a >= 4 and align_b >= 4 and chunks <= 1 and tiles_16x32 <= 2147483647
        and align_a >= 16 and align_b >= 8
    ):
        return Choice(54, ("mma_nn_bf16_16x32x128_5474ec",), (tiles_16x32,), ())
    # 55: measured at 1 problem: 145 % faster than the next
    if chunks <= 1 and tiles_16x32 <= 2147483647 and m <= 16 and align_b >= 16:
        return Choice(55, ("mma_nn_bf16_16x32x128_ee4369",), (tiles_16x32,), ())
    # 56: measured at 2 problems: 164 % faster than the next
    if chunks <= 1 and align_b >= 16:
        return Choice(56, ("mma_nn_bf16_64x64x32_63db1d",), (min(tiles_64x64, 2147483647),), ())
    # 57: measured at 1 problem: 40 % faster than the next
    if chunks <= 1 and tiles_16x32 <= 2147483647 and m <= 128 and n <= 1026 and align_a >= 16:
        return Choice(57, ("mma_nn_bf16_16x32x128_ee4369",), (tiles_16x32,), ())
    # 58: measured at 3 problems: 71 % faster than the next
    if chunks <= 1 and tiles_16x32 <= 2147483647 and m <= 16 and align_a >= 16:
        return Choice(58, ("mma_nn_bf16_16x32x128_ee4369",), (tiles_16x32,), ())
    # 59: measured at 2 problems: 148 % faster than the next
    if chunks <= 1 and align_a >= 16:
        return Choice(59, ("mma_nn_bf16_64x64x32_63db1d",), (min(tiles_64x64, 2147483647),), ())
    # 60: measured at 1 problem: 102 % faster than the next
    if (
        align_a >= 4 and align_b >= 4 and chunks <= 1 and tiles_16x32 <= 2147483647 and m <= 16
        and align_a >= 8 and align_b >= 8
    ):
        return Choice(60, ("mma_nn_bf16_16x32x128_5474ec",), (tiles_16x32,), ())
    # 61: measured at 2 problems: 84 % faster than the next
    if (
        align_a >= 4 and align_b >= 4 and chunks <= 1 and tiles_64x64 <= 2147483647 and align_a >= 8
        and align_b >= 8
    ):
        return Choice(61, ("mma_nn_bf16_64x64x32_87f891",), (tiles_64x64,), ())
    # 62: measured at 2 problems: 107 % faster than the next
    if chunks <= 1 and m >= 17 and n >= 1027:
        return Choice(62, ("mma_nn_bf16_64x64x32_63db1d",), (min(tiles_64x64, 2147483647),), ())
    # 63: measured at 1 problem: 50 % faster than the next
    if chunks <= 1 and m >= 129:
        return Choice(63, ("mma_nn_bf16_64x64x32_63db1d",), (min(tiles_64x64, 2147483647),), ())
    # 64: measured at 3 problems: 115 % faster than the next
    if chunks <= 1 and tiles_16x32 <= 2147483647:
        return Choice(64, ("mma_nn_bf16_16x32x128_ee4369",), (tiles_16x32,), ())
    return None


BY_ARCH: dict[str, Dispatch] = {
    "sm_90": sm_90,
}
