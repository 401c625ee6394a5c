"""Dispatch of NN rows half tc: products under the plan 'rows'.

Generated from ptxgen.tiles.TABLES["NN", "rows", "half", "tc"]; do not edit.
Regenerate: ptxgen generate
"""

from ptxgen.dispatch.choice import Choice, Dispatch


def sm_80(m: int, n: int, k: int, sms: int, align_a: int, align_b: int) -> Choice | None:
    """For sm_80, sm_87, sm_100, sm_103, sm_110."""
    chunk = max(1, min(k, k))
    chunks = -(-k // chunk)
    tiles_8x64 = -(-m // 8) * -(-n // 64)
    # 0: M <= 8: the weight streams once
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_8x64 <= 2147483647 and m <= 8
        and sms <= -(-n // 64) * 2
    ):
        return Choice(0, ("mma_nn_bf16_8x64x128_c1cd43",), (tiles_8x64,), ())
    tiles_16x64 = -(-m // 16) * -(-n // 64)
    # 1: M <= 16: the weight streams once
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_16x64 <= 2147483647 and m <= 16
        and sms <= -(-n // 64) * 2
    ):
        return Choice(1, ("mma_nn_bf16_16x64x128_aac18e",), (tiles_16x64,), ())
    tiles_32x64 = -(-m // 32) * -(-n // 64)
    # 2: M <= 32: the weight streams once
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_32x64 <= 2147483647 and m <= 32
        and sms <= -(-n // 64) * 2
    ):
        return Choice(2, ("mma_nn_bf16_32x64x128_29d365",), (tiles_32x64,), ())
    tiles_64x128 = -(-m // 64) * -(-n // 128)
    # 3: M <= 64: the weight streams once
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_64x128 <= 2147483647 and m <= 64
        and sms <= -(-n // 128) * 2
    ):
        return Choice(3, ("mma_nn_bf16_64x128x64_279d8f",), (tiles_64x128,), ())
    tiles_8x32 = -(-m // 8) * -(-n // 32)
    # 4: M <= 8: the weight streams once
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_8x32 <= 2147483647 and m <= 8:
        return Choice(4, ("mma_nn_bf16_8x32x128_f7ec2d",), (tiles_8x32,), ())
    tiles_16x32 = -(-m // 16) * -(-n // 32)
    # 5: M <= 16: the weight streams once
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_16x32 <= 2147483647 and m <= 16:
        return Choice(5, ("mma_nn_bf16_16x32x128_c42c9b",), (tiles_16x32,), ())
    tiles_32x32 = -(-m // 32) * -(-n // 32)
    # 6: M <= 32: the weight streams once
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_32x32 <= 2147483647 and m <= 32:
        return Choice(6, ("mma_nn_bf16_32x32x128_cff189",), (tiles_32x32,), ())
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    # 17: the largest tile that gives 2/4 of the SMs one
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_128x128 <= 2147483647
        and sms * 2 <= tiles_128x128 * 1 * 4
    ):
        return Choice(17, ("mma_nn_bf16_128x128x64_2f2055",), (tiles_128x128,), ())
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 18: the largest tile that gives 2/4 of the SMs one
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_64x64 <= 2147483647
        and sms * 2 <= tiles_64x64 * 1 * 4
    ):
        return Choice(18, ("mma_nn_bf16_64x64x64_b16dac",), (tiles_64x64,), ())
    # 19: few outputs: the smallest tile
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_32x32 <= 2147483647:
        return Choice(19, ("mma_nn_bf16_32x32x128_cff189",), (tiles_32x32,), ())
    pieces_m_k8 = m * -(-k // 8)
    # 20: A off 16 bytes: copied, since the product is much more work
    if (
        pieces_m_k8 * 16 <= 268435456 and align_b >= 16 and chunks <= 1
        and tiles_64x128 <= 2147483647 and m <= 64 and n * k >= 16777216 and align_a < 16
        and n >= 512
    ):
        return Choice(
            20, ("realign_b16x1_7953b4", "mma_nn_bf16_64x128x64_279d8f"),
            (-(-pieces_m_k8 // 512), tiles_64x128), (pieces_m_k8 * 16,),
            "realign_a+mma_nn_bf16_64x128x64_279d8f",
        )
    # 27: A off 16 bytes: copied, since the product is much more work
    if (
        pieces_m_k8 * 16 <= 268435456 and align_b >= 16 and chunks <= 1
        and tiles_128x128 <= 2147483647 and m * n * k >= 2147483648
        and sms * 2 <= tiles_128x128 * 1 * 4 and align_a < 16 and n >= 512
    ):
        return Choice(
            27, ("realign_b16x1_7953b4", "mma_nn_bf16_128x128x64_2f2055"),
            (-(-pieces_m_k8 // 512), tiles_128x128), (pieces_m_k8 * 16,),
            "realign_a+mma_nn_bf16_128x128x64_2f2055",
        )
    pieces_k_n8 = k * -(-n // 8)
    # 28: B off 16 bytes: copied, since the product is much more work
    if (
        pieces_k_n8 * 16 <= 268435456 and align_a >= 16 and chunks <= 1
        and tiles_128x128 <= 2147483647 and m * n * k >= 2147483648
        and sms * 2 <= tiles_128x128 * 1 * 4 and align_b < 16 and m >= 512
    ):
        return Choice(
            28, ("realign_b16x1_7953b4", "mma_nn_bf16_128x128x64_2f2055"),
            (-(-pieces_k_n8 // 512), tiles_128x128), (pieces_k_n8 * 16,),
            "realign_b+mma_nn_bf16_128x128x64_2f2055",
        )
    # 29: A and B off 16 bytes: copied, since the product is much more work
    if (
        pieces_m_k8 * 16 <= 268435456 and pieces_k_n8 * 16 <= 268435456 and chunks <= 1
        and tiles_128x128 <= 2147483647 and m * n * k >= 2147483648
        and sms * 2 <= tiles_128x128 * 1 * 4 and align_a < 16 and align_b < 16 and n >= 512
        and m >= 512
    ):
        return Choice(
            29, ("realign_b16x2_d789c8", "mma_nn_bf16_128x128x64_2f2055"),
            (-(-pieces_m_k8 // 512) + -(-pieces_k_n8 // 512), tiles_128x128),
            (pieces_m_k8 * 16, pieces_k_n8 * 16), "realign_ab+mma_nn_bf16_128x128x64_2f2055",
        )
    # 30: operands off 16 bytes
    if align_a >= 4 and align_b >= 4 and chunks <= 1 and tiles_16x32 <= 2147483647 and m <= 16:
        return Choice(30, ("mma_nn_bf16_16x32x128_5474ec",), (tiles_16x32,), ())
    # 31: operands off 16 bytes
    if chunks <= 1 and tiles_16x32 <= 2147483647 and m <= 16:
        return Choice(31, ("mma_nn_bf16_16x32x128_ee4369",), (tiles_16x32,), ())
    # 32: operands off 16 bytes
    if align_a >= 4 and align_b >= 4 and chunks <= 1 and tiles_64x64 <= 2147483647:
        return Choice(32, ("mma_nn_bf16_64x64x32_87f891",), (tiles_64x64,), ())
    # 33: everything else: any size and alignment
    if chunks <= 1:
        return Choice(33, ("mma_nn_bf16_64x64x32_63db1d",), (min(tiles_64x64, 2147483647),), ())
    return None


def sm_86(m: int, n: int, k: int, sms: int, align_a: int, align_b: int) -> Choice | None:
    """For sm_86, sm_89, sm_120, sm_121."""
    chunk = max(1, min(k, k))
    chunks = -(-k // chunk)
    tiles_16x64 = -(-m // 16) * -(-n // 64)
    # 1: M <= 16: the weight streams once
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_16x64 <= 2147483647 and m <= 16
        and sms <= -(-n // 64) * 2
    ):
        return Choice(1, ("mma_nn_bf16_16x64x128_aac18e",), (tiles_16x64,), ())
    tiles_8x32 = -(-m // 8) * -(-n // 32)
    # 4: M <= 8: the weight streams once
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_8x32 <= 2147483647 and m <= 8:
        return Choice(4, ("mma_nn_bf16_8x32x128_f7ec2d",), (tiles_8x32,), ())
    tiles_16x32 = -(-m // 16) * -(-n // 32)
    # 5: M <= 16: the weight streams once
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_16x32 <= 2147483647 and m <= 16:
        return Choice(5, ("mma_nn_bf16_16x32x128_c42c9b",), (tiles_16x32,), ())
    tiles_32x32 = -(-m // 32) * -(-n // 32)
    # 6: M <= 32: the weight streams once
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_32x32 <= 2147483647 and m <= 32:
        return Choice(6, ("mma_nn_bf16_32x32x128_cff189",), (tiles_32x32,), ())
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    # 17: the largest tile that gives 2/4 of the SMs one
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_128x128 <= 2147483647
        and sms * 2 <= tiles_128x128 * 1 * 4
    ):
        return Choice(17, ("mma_nn_bf16_128x128x64_2f2055",), (tiles_128x128,), ())
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 18: the largest tile that gives 2/4 of the SMs one
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_64x64 <= 2147483647
        and sms * 2 <= tiles_64x64 * 1 * 4
    ):
        return Choice(18, ("mma_nn_bf16_64x64x64_b16dac",), (tiles_64x64,), ())
    # 19: few outputs: the smallest tile
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_32x32 <= 2147483647:
        return Choice(19, ("mma_nn_bf16_32x32x128_cff189",), (tiles_32x32,), ())
    pieces_m_k8 = m * -(-k // 8)
    # 27: A off 16 bytes: copied, since the product is much more work
    if (
        pieces_m_k8 * 16 <= 268435456 and align_b >= 16 and chunks <= 1
        and tiles_128x128 <= 2147483647 and m * n * k >= 2147483648
        and sms * 2 <= tiles_128x128 * 1 * 4 and align_a < 16 and n >= 512
    ):
        return Choice(
            27, ("realign_b16x1_7953b4", "mma_nn_bf16_128x128x64_2f2055"),
            (-(-pieces_m_k8 // 512), tiles_128x128), (pieces_m_k8 * 16,),
            "realign_a+mma_nn_bf16_128x128x64_2f2055",
        )
    pieces_k_n8 = k * -(-n // 8)
    # 28: B off 16 bytes: copied, since the product is much more work
    if (
        pieces_k_n8 * 16 <= 268435456 and align_a >= 16 and chunks <= 1
        and tiles_128x128 <= 2147483647 and m * n * k >= 2147483648
        and sms * 2 <= tiles_128x128 * 1 * 4 and align_b < 16 and m >= 512
    ):
        return Choice(
            28, ("realign_b16x1_7953b4", "mma_nn_bf16_128x128x64_2f2055"),
            (-(-pieces_k_n8 // 512), tiles_128x128), (pieces_k_n8 * 16,),
            "realign_b+mma_nn_bf16_128x128x64_2f2055",
        )
    # 29: A and B off 16 bytes: copied, since the product is much more work
    if (
        pieces_m_k8 * 16 <= 268435456 and pieces_k_n8 * 16 <= 268435456 and chunks <= 1
        and tiles_128x128 <= 2147483647 and m * n * k >= 2147483648
        and sms * 2 <= tiles_128x128 * 1 * 4 and align_a < 16 and align_b < 16 and n >= 512
        and m >= 512
    ):
        return Choice(
            29, ("realign_b16x2_d789c8", "mma_nn_bf16_128x128x64_2f2055"),
            (-(-pieces_m_k8 // 512) + -(-pieces_k_n8 // 512), tiles_128x128),
            (pieces_m_k8 * 16, pieces_k_n8 * 16), "realign_ab+mma_nn_bf16_128x128x64_2f2055",
        )
    # 30: operands off 16 bytes
    if align_a >= 4 and align_b >= 4 and chunks <= 1 and tiles_16x32 <= 2147483647 and m <= 16:
        return Choice(30, ("mma_nn_bf16_16x32x128_5474ec",), (tiles_16x32,), ())
    # 31: operands off 16 bytes
    if chunks <= 1 and tiles_16x32 <= 2147483647 and m <= 16:
        return Choice(31, ("mma_nn_bf16_16x32x128_ee4369",), (tiles_16x32,), ())
    # 32: operands off 16 bytes
    if align_a >= 4 and align_b >= 4 and chunks <= 1 and tiles_64x64 <= 2147483647:
        return Choice(32, ("mma_nn_bf16_64x64x32_87f891",), (tiles_64x64,), ())
    # 33: everything else: any size and alignment
    if chunks <= 1:
        return Choice(33, ("mma_nn_bf16_64x64x32_63db1d",), (min(tiles_64x64, 2147483647),), ())
    return None


def sm_90(m: int, n: int, k: int, sms: int, align_a: int, align_b: int) -> Choice | None:
    """For sm_90."""
    chunk = max(1, min(k, k))
    chunks = -(-k // chunk)
    tiles_8x64 = -(-m // 8) * -(-n // 64)
    # 0: M <= 8: the weight streams once
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_8x64 <= 2147483647 and m <= 8
        and sms <= -(-n // 64) * 2
    ):
        return Choice(0, ("mma_nn_bf16_8x64x128_c1cd43",), (tiles_8x64,), ())
    tiles_16x64 = -(-m // 16) * -(-n // 64)
    # 1: M <= 16: the weight streams once
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_16x64 <= 2147483647 and m <= 16
        and sms <= -(-n // 64) * 2
    ):
        return Choice(1, ("mma_nn_bf16_16x64x128_aac18e",), (tiles_16x64,), ())
    tiles_32x64 = -(-m // 32) * -(-n // 64)
    # 2: M <= 32: the weight streams once
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_32x64 <= 2147483647 and m <= 32
        and sms <= -(-n // 64) * 2
    ):
        return Choice(2, ("mma_nn_bf16_32x64x128_29d365",), (tiles_32x64,), ())
    tiles_64x128 = -(-m // 64) * -(-n // 128)
    # 3: M <= 64: the weight streams once
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_64x128 <= 2147483647 and m <= 64
        and sms <= -(-n // 128) * 2
    ):
        return Choice(3, ("mma_nn_bf16_64x128x64_279d8f",), (tiles_64x128,), ())
    tiles_8x32 = -(-m // 8) * -(-n // 32)
    # 4: M <= 8: the weight streams once
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_8x32 <= 2147483647 and m <= 8:
        return Choice(4, ("mma_nn_bf16_8x32x128_f7ec2d",), (tiles_8x32,), ())
    tiles_16x32 = -(-m // 16) * -(-n // 32)
    # 5: M <= 16: the weight streams once
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_16x32 <= 2147483647 and m <= 16:
        return Choice(5, ("mma_nn_bf16_16x32x128_c42c9b",), (tiles_16x32,), ())
    tiles_32x32 = -(-m // 32) * -(-n // 32)
    # 6: M <= 32: the weight streams once
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_32x32 <= 2147483647 and m <= 32:
        return Choice(6, ("mma_nn_bf16_32x32x128_cff189",), (tiles_32x32,), ())
    tiles_128x256 = -(-m // 128) * -(-n // 256)
    # 7: large outputs
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 256 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x256 + sms <= 4294967295
        and -(-n // 256) * 16 <= 4294967295 and k >= 64 and sms * 12 <= tiles_128x256 * 1 * 4
    ):
        return Choice(
            7, ("wgmma_nn_bf16_128x256x64_21d1cf",), (min(tiles_128x256, sms // 1) * 1,), (),
        )
    tiles_192x256 = -(-m // 192) * -(-n // 256)
    tiles_192x128 = -(-m // 192) * -(-n // 128)
    # 8: large outputs
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 2 and m + 192 <= 2147483647
        and n + 256 <= 2147483647 and k + 64 <= 2147483647 and tiles_192x256 + sms <= 4294967295
        and -(-n // 256) * 8 <= 4294967295 and k >= 64 and sms * 5 <= tiles_192x128 * 1 * 4
    ):
        return Choice(
            8, ("wgmma_nn_bf16_192x128x64_743440",), (min(tiles_192x256, sms // 2) * 2,), (),
        )
    tiles_128x224 = -(-m // 128) * -(-n // 224)
    # 9: the largest tile that gives 3/4 of the SMs one
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 224 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x224 + sms <= 4294967295
        and -(-n // 224) * 8 <= 4294967295 and k >= 64 and sms * 3 <= tiles_128x224 * 1 * 4
    ):
        return Choice(
            9, ("wgmma_nn_bf16_128x224x64_9c36e6",), (min(tiles_128x224, sms // 1) * 1,), (),
        )
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    # 10: the largest tile that gives 3/4 of the SMs one
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 128 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x128 + sms <= 4294967295
        and -(-n // 128) * 8 <= 4294967295 and k >= 64 and sms * 3 <= tiles_128x128 * 1 * 4
    ):
        return Choice(
            10, ("wgmma_nn_bf16_128x128x64_b78178",), (min(tiles_128x128, sms // 1) * 1,), (),
        )
    tiles_128x112 = -(-m // 128) * -(-n // 112)
    # 11: the largest tile that gives 3/4 of the SMs one
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 112 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x112 + sms <= 4294967295
        and -(-n // 112) * 8 <= 4294967295 and k >= 64 and sms * 3 <= tiles_128x112 * 1 * 4
    ):
        return Choice(
            11, ("wgmma_nn_bf16_128x112x64_256c5b",), (min(tiles_128x112, sms // 1) * 1,), (),
        )
    tiles_128x64 = -(-m // 128) * -(-n // 64)
    # 12: the largest tile that gives 3/4 of the SMs one
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 64 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x64 + sms <= 4294967295
        and -(-n // 64) * 8 <= 4294967295 and k >= 64 and sms * 3 <= tiles_128x64 * 1 * 4
    ):
        return Choice(
            12, ("wgmma_nn_bf16_128x64x64_abd4be",), (min(tiles_128x64, sms // 1) * 1,), (),
        )
    # 13: the largest tile that gives 3/4 of the SMs one
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 128 <= 2147483647 and k + 64 <= 2147483647 and tiles_64x128 + sms <= 4294967295
        and -(-n // 128) * 8 <= 4294967295 and k >= 64 and sms * 3 <= tiles_64x128 * 1 * 4
    ):
        return Choice(
            13, ("wgmma_nn_bf16_64x128x64_2e86fc",), (min(tiles_64x128, sms // 1) * 1,), (),
        )
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 14: the largest tile that gives 3/4 of the SMs one
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 64 <= 2147483647 and k + 64 <= 2147483647 and tiles_64x64 + sms <= 4294967295
        and -(-n // 64) * 8 <= 4294967295 and k >= 64 and sms * 3 <= tiles_64x64 * 1 * 4
    ):
        return Choice(14, ("wgmma_nn_bf16_64x64x64_4fd254",), (min(tiles_64x64, sms // 1) * 1,), ())
    tiles_64x32 = -(-m // 64) * -(-n // 32)
    # 15: the largest tile that gives 3/4 of the SMs one
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 32 <= 2147483647 and k + 128 <= 2147483647 and tiles_64x32 + sms <= 4294967295
        and -(-n // 32) * 8 <= 4294967295 and k >= 64 and sms * 3 <= tiles_64x32 * 1 * 4
    ):
        return Choice(
            15, ("wgmma_nn_bf16_64x32x128_ff9e9b",), (min(tiles_64x32, sms // 1) * 1,), (),
        )
    tiles_64x16 = -(-m // 64) * -(-n // 16)
    # 16: few outputs: the smallest tile
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 16 <= 2147483647 and k + 256 <= 2147483647 and tiles_64x16 + sms <= 4294967295
        and -(-n // 16) * 8 <= 4294967295 and k >= 64
    ):
        return Choice(
            16, ("wgmma_nn_bf16_64x16x256_9a1dd4",), (min(tiles_64x16, sms // 1) * 1,), (),
        )
    # 17: the largest tile that gives 2/4 of the SMs one
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_128x128 <= 2147483647
        and sms * 2 <= tiles_128x128 * 1 * 4
    ):
        return Choice(17, ("mma_nn_bf16_128x128x64_2f2055",), (tiles_128x128,), ())
    # 18: the largest tile that gives 2/4 of the SMs one
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_64x64 <= 2147483647
        and sms * 2 <= tiles_64x64 * 1 * 4
    ):
        return Choice(18, ("mma_nn_bf16_64x64x64_b16dac",), (tiles_64x64,), ())
    # 19: few outputs: the smallest tile
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_32x32 <= 2147483647:
        return Choice(19, ("mma_nn_bf16_32x32x128_cff189",), (tiles_32x32,), ())
    pieces_m_k8 = m * -(-k // 8)
    # 20: A off 16 bytes: copied, since the product is much more work
    if (
        pieces_m_k8 * 16 <= 268435456 and align_b >= 16 and chunks <= 1
        and tiles_64x128 <= 2147483647 and m <= 64 and n * k >= 16777216 and align_a < 16
        and n >= 512
    ):
        return Choice(
            20, ("realign_b16x1_7953b4", "mma_nn_bf16_64x128x64_279d8f"),
            (-(-pieces_m_k8 // 512), tiles_64x128), (pieces_m_k8 * 16,),
            "realign_a+mma_nn_bf16_64x128x64_279d8f",
        )
    # 21: A off 16 bytes: copied, since the product is much more work
    if (
        pieces_m_k8 * 16 <= 268435456 and align_b >= 16 and chunks <= 1 and sms >= 1
        and m + 128 <= 2147483647 and n + 256 <= 2147483647 and k + 64 <= 2147483647
        and tiles_128x256 + sms <= 4294967295 and -(-n // 256) * 16 <= 4294967295 and k >= 64
        and m * n * k >= 2147483648 and sms * 8 <= tiles_128x256 * 1 * 4 and align_a < 16
        and n >= 512
    ):
        return Choice(
            21, ("realign_b16x1_7953b4", "wgmma_nn_bf16_128x256x64_21d1cf"),
            (-(-pieces_m_k8 // 512), min(tiles_128x256, sms // 1) * 1), (pieces_m_k8 * 16,),
            "realign_a+wgmma_nn_bf16_128x256x64_21d1cf",
        )
    pieces_k_n8 = k * -(-n // 8)
    # 22: B off 16 bytes: copied, since the product is much more work
    if (
        pieces_k_n8 * 16 <= 268435456 and align_a >= 16 and chunks <= 1 and sms >= 1
        and m + 128 <= 2147483647 and n + 256 <= 2147483647 and k + 64 <= 2147483647
        and tiles_128x256 + sms <= 4294967295 and -(-n // 256) * 16 <= 4294967295 and k >= 64
        and m * n * k >= 2147483648 and sms * 8 <= tiles_128x256 * 1 * 4 and align_b < 16
        and m >= 512
    ):
        return Choice(
            22, ("realign_b16x1_7953b4", "wgmma_nn_bf16_128x256x64_21d1cf"),
            (-(-pieces_k_n8 // 512), min(tiles_128x256, sms // 1) * 1), (pieces_k_n8 * 16,),
            "realign_b+wgmma_nn_bf16_128x256x64_21d1cf",
        )
    # 23: A and B off 16 bytes: copied, since the product is much more work
    if (
        pieces_m_k8 * 16 <= 268435456 and pieces_k_n8 * 16 <= 268435456 and chunks <= 1 and sms >= 1
        and m + 128 <= 2147483647 and n + 256 <= 2147483647 and k + 64 <= 2147483647
        and tiles_128x256 + sms <= 4294967295 and -(-n // 256) * 16 <= 4294967295 and k >= 64
        and m * n * k >= 2147483648 and sms * 8 <= tiles_128x256 * 1 * 4 and align_a < 16
        and align_b < 16 and n >= 512 and m >= 512
    ):
        return Choice(
            23, ("realign_b16x2_d789c8", "wgmma_nn_bf16_128x256x64_21d1cf"),
            (-(-pieces_m_k8 // 512) + -(-pieces_k_n8 // 512), min(tiles_128x256, sms // 1) * 1),
            (pieces_m_k8 * 16, pieces_k_n8 * 16), "realign_ab+wgmma_nn_bf16_128x256x64_21d1cf",
        )
    # 24: A off 16 bytes: copied, since the product is much more work
    if (
        pieces_m_k8 * 16 <= 268435456 and align_b >= 16 and chunks <= 1 and sms >= 1
        and m + 128 <= 2147483647 and n + 128 <= 2147483647 and k + 64 <= 2147483647
        and tiles_128x128 + sms <= 4294967295 and -(-n // 128) * 8 <= 4294967295 and k >= 64
        and m * n * k >= 2147483648 and sms * 2 <= tiles_128x128 * 1 * 4 and align_a < 16
        and n >= 512
    ):
        return Choice(
            24, ("realign_b16x1_7953b4", "wgmma_nn_bf16_128x128x64_b78178"),
            (-(-pieces_m_k8 // 512), min(tiles_128x128, sms // 1) * 1), (pieces_m_k8 * 16,),
            "realign_a+wgmma_nn_bf16_128x128x64_b78178",
        )
    # 25: B off 16 bytes: copied, since the product is much more work
    if (
        pieces_k_n8 * 16 <= 268435456 and align_a >= 16 and chunks <= 1 and sms >= 1
        and m + 128 <= 2147483647 and n + 128 <= 2147483647 and k + 64 <= 2147483647
        and tiles_128x128 + sms <= 4294967295 and -(-n // 128) * 8 <= 4294967295 and k >= 64
        and m * n * k >= 2147483648 and sms * 2 <= tiles_128x128 * 1 * 4 and align_b < 16
        and m >= 512
    ):
        return Choice(
            25, ("realign_b16x1_7953b4", "wgmma_nn_bf16_128x128x64_b78178"),
            (-(-pieces_k_n8 // 512), min(tiles_128x128, sms // 1) * 1), (pieces_k_n8 * 16,),
            "realign_b+wgmma_nn_bf16_128x128x64_b78178",
        )
    # 26: A and B off 16 bytes: copied, since the product is much more work
    if (
        pieces_m_k8 * 16 <= 268435456 and pieces_k_n8 * 16 <= 268435456 and chunks <= 1 and sms >= 1
        and m + 128 <= 2147483647 and n + 128 <= 2147483647 and k + 64 <= 2147483647
        and tiles_128x128 + sms <= 4294967295 and -(-n // 128) * 8 <= 4294967295 and k >= 64
        and m * n * k >= 2147483648 and sms * 2 <= tiles_128x128 * 1 * 4 and align_a < 16
        and align_b < 16 and n >= 512 and m >= 512
    ):
        return Choice(
            26, ("realign_b16x2_d789c8", "wgmma_nn_bf16_128x128x64_b78178"),
            (-(-pieces_m_k8 // 512) + -(-pieces_k_n8 // 512), min(tiles_128x128, sms // 1) * 1),
            (pieces_m_k8 * 16, pieces_k_n8 * 16), "realign_ab+wgmma_nn_bf16_128x128x64_b78178",
        )
    # 27: A off 16 bytes: copied, since the product is much more work
    if (
        pieces_m_k8 * 16 <= 268435456 and align_b >= 16 and chunks <= 1
        and tiles_128x128 <= 2147483647 and m * n * k >= 2147483648
        and sms * 2 <= tiles_128x128 * 1 * 4 and align_a < 16 and n >= 512
    ):
        return Choice(
            27, ("realign_b16x1_7953b4", "mma_nn_bf16_128x128x64_2f2055"),
            (-(-pieces_m_k8 // 512), tiles_128x128), (pieces_m_k8 * 16,),
            "realign_a+mma_nn_bf16_128x128x64_2f2055",
        )
    # 28: B off 16 bytes: copied, since the product is much more work
    if (
        pieces_k_n8 * 16 <= 268435456 and align_a >= 16 and chunks <= 1
        and tiles_128x128 <= 2147483647 and m * n * k >= 2147483648
        and sms * 2 <= tiles_128x128 * 1 * 4 and align_b < 16 and m >= 512
    ):
        return Choice(
            28, ("realign_b16x1_7953b4", "mma_nn_bf16_128x128x64_2f2055"),
            (-(-pieces_k_n8 // 512), tiles_128x128), (pieces_k_n8 * 16,),
            "realign_b+mma_nn_bf16_128x128x64_2f2055",
        )
    # 29: A and B off 16 bytes: copied, since the product is much more work
    if (
        pieces_m_k8 * 16 <= 268435456 and pieces_k_n8 * 16 <= 268435456 and chunks <= 1
        and tiles_128x128 <= 2147483647 and m * n * k >= 2147483648
        and sms * 2 <= tiles_128x128 * 1 * 4 and align_a < 16 and align_b < 16 and n >= 512
        and m >= 512
    ):
        return Choice(
            29, ("realign_b16x2_d789c8", "mma_nn_bf16_128x128x64_2f2055"),
            (-(-pieces_m_k8 // 512) + -(-pieces_k_n8 // 512), tiles_128x128),
            (pieces_m_k8 * 16, pieces_k_n8 * 16), "realign_ab+mma_nn_bf16_128x128x64_2f2055",
        )
    # 30: operands off 16 bytes
    if align_a >= 4 and align_b >= 4 and chunks <= 1 and tiles_16x32 <= 2147483647 and m <= 16:
        return Choice(30, ("mma_nn_bf16_16x32x128_5474ec",), (tiles_16x32,), ())
    # 31: operands off 16 bytes
    if chunks <= 1 and tiles_16x32 <= 2147483647 and m <= 16:
        return Choice(31, ("mma_nn_bf16_16x32x128_ee4369",), (tiles_16x32,), ())
    # 32: operands off 16 bytes
    if align_a >= 4 and align_b >= 4 and chunks <= 1 and tiles_64x64 <= 2147483647:
        return Choice(32, ("mma_nn_bf16_64x64x32_87f891",), (tiles_64x64,), ())
    # 33: everything else: any size and alignment
    if chunks <= 1:
        return Choice(33, ("mma_nn_bf16_64x64x32_63db1d",), (min(tiles_64x64, 2147483647),), ())
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
