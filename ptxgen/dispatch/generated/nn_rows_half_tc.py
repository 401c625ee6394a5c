"""Dispatch of NN rows half tc: products under the plan 'rows'.

Generated from ptxgen.tiles.TABLES["NN", "rows", "half", "tc"]; do not edit.
Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time

SOME_0 = frozenset(("sm_80", "sm_87", "sm_90", "sm_100", "sm_103", "sm_110"))
SOME_1 = frozenset(("sm_90",))


def candidates(
    arch: str, m: int, n: int, k: int, sms: int, align_a: int, align_b: int, time: Time
) -> Iterator[Candidate]:
    """What can serve a problem, with predicted times."""
    chunk = max(1, min(k, k))
    chunks = -(-k // chunk)
    operands = (m + n) * k * 2
    stores = m * n * 2
    tiles_8x64 = -(-m // 8) * -(-n // 64)
    # 0: few rows: the weight streams once
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_8x64 <= 2147483647
    ):
        us = time(
            "mma_nn_bf16_8x64x128_c1cd43", "mma", 1, sms, tiles_8x64, -(-k // 128), k * 512,
            tiles_8x64 * k * 144, operands, stores,
        )
        yield Candidate(us, Choice(0, ("mma_nn_bf16_8x64x128_c1cd43",), (tiles_8x64,), ()))
    tiles_8x32 = -(-m // 8) * -(-n // 32)
    # 1: few rows: the weight streams once
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_8x32 <= 2147483647:
        us = time(
            "mma_nn_bf16_8x32x128_f7ec2d", "mma", 1, sms, tiles_8x32, -(-k // 128), k * 256,
            tiles_8x32 * k * 80, operands, stores,
        )
        yield Candidate(us, Choice(1, ("mma_nn_bf16_8x32x128_f7ec2d",), (tiles_8x32,), ()))
    tiles_16x32 = -(-m // 16) * -(-n // 32)
    # 2: few rows: the weight streams once
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_16x32 <= 2147483647:
        us = time(
            "mma_nn_bf16_16x32x128_c42c9b", "mma", 1, sms, tiles_16x32, -(-k // 128), k * 512,
            tiles_16x32 * k * 96, operands, stores,
        )
        yield Candidate(us, Choice(2, ("mma_nn_bf16_16x32x128_c42c9b",), (tiles_16x32,), ()))
    tiles_16x64 = -(-m // 16) * -(-n // 64)
    # 3: few rows: the weight streams once
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_16x64 <= 2147483647:
        us = time(
            "mma_nn_bf16_16x64x128_aac18e", "mma", 1, sms, tiles_16x64, -(-k // 128), k * 1024,
            tiles_16x64 * k * 160, operands, stores,
        )
        yield Candidate(us, Choice(3, ("mma_nn_bf16_16x64x128_aac18e",), (tiles_16x64,), ()))
    tiles_32x32 = -(-m // 32) * -(-n // 32)
    # 4: few rows: the weight streams once
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_32x32 <= 2147483647:
        us = time(
            "mma_nn_bf16_32x32x128_cff189", "mma", 1, sms, tiles_32x32, -(-k // 128), k * 1024,
            tiles_32x32 * k * 128, operands, stores,
        )
        yield Candidate(us, Choice(4, ("mma_nn_bf16_32x32x128_cff189",), (tiles_32x32,), ()))
    tiles_32x64 = -(-m // 32) * -(-n // 64)
    # 5: few rows: the weight streams once
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_32x64 <= 2147483647
    ):
        us = time(
            "mma_nn_bf16_32x64x128_29d365", "mma", 1, sms, tiles_32x64, -(-k // 128), k * 2048,
            tiles_32x64 * k * 192, operands, stores,
        )
        yield Candidate(us, Choice(5, ("mma_nn_bf16_32x64x128_29d365",), (tiles_32x64,), ()))
    tiles_64x128 = -(-m // 64) * -(-n // 128)
    # 6: few rows: the weight streams once
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_64x128 <= 2147483647
    ):
        us = time(
            "mma_nn_bf16_64x128x64_279d8f", "mma", 1, sms, tiles_64x128, -(-k // 64), k * 8192,
            tiles_64x128 * k * 384, operands, stores,
        )
        yield Candidate(us, Choice(6, ("mma_nn_bf16_64x128x64_279d8f",), (tiles_64x128,), ()))
    tiles_128x256 = -(-m // 128) * -(-n // 256)
    # 7: many rows, by wgmma
    if (
        arch in SOME_1
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 256 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x256 + sms <= 4294967295
        and -(-n // 256) * 16 <= 4294967295
    ):
        us = time(
            "wgmma_nn_bf16_128x256x64_21d1cf", "wgmma", 1, sms, tiles_128x256, -(-k // 64),
            k * 32768, tiles_128x256 * k * 768, operands, stores,
        )
        choice = Choice(
            7, ("wgmma_nn_bf16_128x256x64_21d1cf",), (min(tiles_128x256, sms // 1) * 1,), (),
        )
        yield Candidate(us, choice)
    tiles_192x256 = -(-m // 192) * -(-n // 256)
    # 8: many rows, by wgmma
    if (
        arch in SOME_1
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 2 and m + 192 <= 2147483647
        and n + 256 <= 2147483647 and k + 64 <= 2147483647 and tiles_192x256 + sms <= 4294967295
        and -(-n // 256) * 8 <= 4294967295
    ):
        us = time(
            "wgmma_nn_bf16_192x128x64_743440", "wgmma", 1, sms, tiles_192x256 * 2, -(-k // 64),
            k * 24576, tiles_192x256 * k * 896, operands, stores,
        )
        choice = Choice(
            8, ("wgmma_nn_bf16_192x128x64_743440",), (min(tiles_192x256, sms // 2) * 2,), (),
        )
        yield Candidate(us, choice)
    tiles_128x224 = -(-m // 128) * -(-n // 224)
    # 9: many rows, by wgmma
    if (
        arch in SOME_1
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 224 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x224 + sms <= 4294967295
        and -(-n // 224) * 8 <= 4294967295
    ):
        us = time(
            "wgmma_nn_bf16_128x224x64_9c36e6", "wgmma", 1, sms, tiles_128x224, -(-k // 64),
            k * 28672, tiles_128x224 * k * 704, operands, stores,
        )
        choice = Choice(
            9, ("wgmma_nn_bf16_128x224x64_9c36e6",), (min(tiles_128x224, sms // 1) * 1,), (),
        )
        yield Candidate(us, choice)
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    # 10: many rows, by wgmma
    if (
        arch in SOME_1
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 128 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x128 + sms <= 4294967295
        and -(-n // 128) * 8 <= 4294967295
    ):
        us = time(
            "wgmma_nn_bf16_128x128x64_b78178", "wgmma", 1, sms, tiles_128x128, -(-k // 64),
            k * 16384, tiles_128x128 * k * 512, operands, stores,
        )
        choice = Choice(
            10, ("wgmma_nn_bf16_128x128x64_b78178",), (min(tiles_128x128, sms // 1) * 1,), (),
        )
        yield Candidate(us, choice)
    tiles_128x112 = -(-m // 128) * -(-n // 112)
    # 11: many rows, by wgmma
    if (
        arch in SOME_1
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 112 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x112 + sms <= 4294967295
        and -(-n // 112) * 8 <= 4294967295
    ):
        us = time(
            "wgmma_nn_bf16_128x112x64_256c5b", "wgmma", 1, sms, tiles_128x112, -(-k // 64),
            k * 14336, tiles_128x112 * k * 480, operands, stores,
        )
        choice = Choice(
            11, ("wgmma_nn_bf16_128x112x64_256c5b",), (min(tiles_128x112, sms // 1) * 1,), (),
        )
        yield Candidate(us, choice)
    tiles_128x64 = -(-m // 128) * -(-n // 64)
    # 12: many rows, by wgmma
    if (
        arch in SOME_1
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 64 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x64 + sms <= 4294967295
        and -(-n // 64) * 8 <= 4294967295
    ):
        us = time(
            "wgmma_nn_bf16_128x64x64_abd4be", "wgmma", 1, sms, tiles_128x64, -(-k // 64), k * 8192,
            tiles_128x64 * k * 384, operands, stores,
        )
        choice = Choice(
            12, ("wgmma_nn_bf16_128x64x64_abd4be",), (min(tiles_128x64, sms // 1) * 1,), (),
        )
        yield Candidate(us, choice)
    # 13: many rows, by wgmma
    if (
        arch in SOME_1
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 128 <= 2147483647 and k + 64 <= 2147483647 and tiles_64x128 + sms <= 4294967295
        and -(-n // 128) * 8 <= 4294967295
    ):
        us = time(
            "wgmma_nn_bf16_64x128x64_2e86fc", "wgmma", 1, sms, tiles_64x128, -(-k // 64), k * 8192,
            tiles_64x128 * k * 384, operands, stores,
        )
        choice = Choice(
            13, ("wgmma_nn_bf16_64x128x64_2e86fc",), (min(tiles_64x128, sms // 1) * 1,), (),
        )
        yield Candidate(us, choice)
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 14: many rows, by wgmma
    if (
        arch in SOME_1
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 64 <= 2147483647 and k + 64 <= 2147483647 and tiles_64x64 + sms <= 4294967295
        and -(-n // 64) * 8 <= 4294967295
    ):
        us = time(
            "wgmma_nn_bf16_64x64x64_4fd254", "wgmma", 1, sms, tiles_64x64, -(-k // 64), k * 4096,
            tiles_64x64 * k * 256, operands, stores,
        )
        choice = Choice(
            14, ("wgmma_nn_bf16_64x64x64_4fd254",), (min(tiles_64x64, sms // 1) * 1,), (),
        )
        yield Candidate(us, choice)
    tiles_64x32 = -(-m // 64) * -(-n // 32)
    # 15: many rows, by wgmma
    if (
        arch in SOME_1
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 32 <= 2147483647 and k + 128 <= 2147483647 and tiles_64x32 + sms <= 4294967295
        and -(-n // 32) * 8 <= 4294967295
    ):
        us = time(
            "wgmma_nn_bf16_64x32x128_ff9e9b", "wgmma", 1, sms, tiles_64x32, -(-k // 128), k * 2048,
            tiles_64x32 * k * 192, operands, stores,
        )
        choice = Choice(
            15, ("wgmma_nn_bf16_64x32x128_ff9e9b",), (min(tiles_64x32, sms // 1) * 1,), (),
        )
        yield Candidate(us, choice)
    tiles_64x16 = -(-m // 64) * -(-n // 16)
    # 16: many rows, by wgmma
    if (
        arch in SOME_1
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 16 <= 2147483647 and k + 256 <= 2147483647 and tiles_64x16 + sms <= 4294967295
        and -(-n // 16) * 8 <= 4294967295
    ):
        us = time(
            "wgmma_nn_bf16_64x16x256_9a1dd4", "wgmma", 1, sms, tiles_64x16, -(-k // 256), k * 1024,
            tiles_64x16 * k * 160, operands, stores,
        )
        choice = Choice(
            16, ("wgmma_nn_bf16_64x16x256_9a1dd4",), (min(tiles_64x16, sms // 1) * 1,), (),
        )
        yield Candidate(us, choice)
    # 17: many rows, by mma
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_64x64 <= 2147483647:
        us = time(
            "mma_nn_bf16_64x64x64_b16dac", "mma", 3, sms, tiles_64x64, -(-k // 64), k * 4096,
            tiles_64x64 * k * 256, operands, stores,
        )
        yield Candidate(us, Choice(17, ("mma_nn_bf16_64x64x64_b16dac",), (tiles_64x64,), ()))
    # 18: many rows, by mma
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_128x128 <= 2147483647:
        us = time(
            "mma_nn_bf16_128x128x64_2f2055", "mma", 2, sms, tiles_128x128, -(-k // 64), k * 16384,
            tiles_128x128 * k * 512, operands, stores,
        )
        yield Candidate(us, Choice(18, ("mma_nn_bf16_128x128x64_2f2055",), (tiles_128x128,), ()))
    operands_1 = 0 + m * -(-k // 8) * 16
    pieces_m_k8 = m * -(-k // 8)
    # 19: A off 16 bytes: copied first
    if (
        arch in SOME_0
        and pieces_m_k8 * 16 <= 268435456 and align_b >= 16 and chunks <= 1
        and tiles_64x128 <= 2147483647
    ):
        us = time(
            "realign_b16x1_7953b4", "fma", 8, sms, -(-pieces_m_k8 // 512), 1, 0, operands_1,
            operands_1, operands_1,
        )
        us += time(
            "mma_nn_bf16_64x128x64_279d8f", "mma", 1, sms, tiles_64x128, -(-k // 64), k * 8192,
            tiles_64x128 * k * 384, operands, stores,
        )
        choice = Choice(
            19, ("realign_b16x1_7953b4", "mma_nn_bf16_64x128x64_279d8f"),
            (-(-pieces_m_k8 // 512), tiles_64x128), (pieces_m_k8 * 16,),
        )
        yield Candidate(us, choice)
    # 20: A off 16 bytes: copied first
    if (
        arch in SOME_1
        and pieces_m_k8 * 16 <= 268435456 and align_b >= 16 and chunks <= 1 and sms >= 1
        and m + 128 <= 2147483647 and n + 256 <= 2147483647 and k + 64 <= 2147483647
        and tiles_128x256 + sms <= 4294967295 and -(-n // 256) * 16 <= 4294967295
    ):
        us = time(
            "realign_b16x1_7953b4", "fma", 8, sms, -(-pieces_m_k8 // 512), 1, 0, operands_1,
            operands_1, operands_1,
        )
        us += time(
            "wgmma_nn_bf16_128x256x64_21d1cf", "wgmma", 1, sms, tiles_128x256, -(-k // 64),
            k * 32768, tiles_128x256 * k * 768, operands, stores,
        )
        choice = Choice(
            20, ("realign_b16x1_7953b4", "wgmma_nn_bf16_128x256x64_21d1cf"),
            (-(-pieces_m_k8 // 512), min(tiles_128x256, sms // 1) * 1), (pieces_m_k8 * 16,),
        )
        yield Candidate(us, choice)
    operands_2 = 0 + k * -(-n // 8) * 16
    pieces_k_n8 = k * -(-n // 8)
    # 21: B off 16 bytes: copied first
    if (
        arch in SOME_1
        and pieces_k_n8 * 16 <= 268435456 and align_a >= 16 and chunks <= 1 and sms >= 1
        and m + 128 <= 2147483647 and n + 256 <= 2147483647 and k + 64 <= 2147483647
        and tiles_128x256 + sms <= 4294967295 and -(-n // 256) * 16 <= 4294967295
    ):
        us = time(
            "realign_b16x1_7953b4", "fma", 8, sms, -(-pieces_k_n8 // 512), 1, 0, operands_2,
            operands_2, operands_2,
        )
        us += time(
            "wgmma_nn_bf16_128x256x64_21d1cf", "wgmma", 1, sms, tiles_128x256, -(-k // 64),
            k * 32768, tiles_128x256 * k * 768, operands, stores,
        )
        choice = Choice(
            21, ("realign_b16x1_7953b4", "wgmma_nn_bf16_128x256x64_21d1cf"),
            (-(-pieces_k_n8 // 512), min(tiles_128x256, sms // 1) * 1), (pieces_k_n8 * 16,),
        )
        yield Candidate(us, choice)
    operands_3 = 0 + m * -(-k // 8) * 16 + k * -(-n // 8) * 16
    # 22: A and B off 16 bytes: copied first
    if (
        arch in SOME_1
        and pieces_m_k8 * 16 <= 268435456 and pieces_k_n8 * 16 <= 268435456 and chunks <= 1
        and sms >= 1 and m + 128 <= 2147483647 and n + 256 <= 2147483647 and k + 64 <= 2147483647
        and tiles_128x256 + sms <= 4294967295 and -(-n // 256) * 16 <= 4294967295
    ):
        us = time(
            "realign_b16x2_d789c8", "fma", 8, sms, -(-pieces_m_k8 // 512) + -(-pieces_k_n8 // 512),
            1, 0, operands_3, operands_3, operands_3,
        )
        us += time(
            "wgmma_nn_bf16_128x256x64_21d1cf", "wgmma", 1, sms, tiles_128x256, -(-k // 64),
            k * 32768, tiles_128x256 * k * 768, operands, stores,
        )
        choice = Choice(
            22, ("realign_b16x2_d789c8", "wgmma_nn_bf16_128x256x64_21d1cf"),
            (-(-pieces_m_k8 // 512) + -(-pieces_k_n8 // 512), min(tiles_128x256, sms // 1) * 1),
            (pieces_m_k8 * 16, pieces_k_n8 * 16),
        )
        yield Candidate(us, choice)
    # 23: A off 16 bytes: copied first
    if (
        arch in SOME_1
        and pieces_m_k8 * 16 <= 268435456 and align_b >= 16 and chunks <= 1 and sms >= 1
        and m + 128 <= 2147483647 and n + 128 <= 2147483647 and k + 64 <= 2147483647
        and tiles_128x128 + sms <= 4294967295 and -(-n // 128) * 8 <= 4294967295
    ):
        us = time(
            "realign_b16x1_7953b4", "fma", 8, sms, -(-pieces_m_k8 // 512), 1, 0, operands_1,
            operands_1, operands_1,
        )
        us += time(
            "wgmma_nn_bf16_128x128x64_b78178", "wgmma", 1, sms, tiles_128x128, -(-k // 64),
            k * 16384, tiles_128x128 * k * 512, operands, stores,
        )
        choice = Choice(
            23, ("realign_b16x1_7953b4", "wgmma_nn_bf16_128x128x64_b78178"),
            (-(-pieces_m_k8 // 512), min(tiles_128x128, sms // 1) * 1), (pieces_m_k8 * 16,),
        )
        yield Candidate(us, choice)
    # 24: B off 16 bytes: copied first
    if (
        arch in SOME_1
        and pieces_k_n8 * 16 <= 268435456 and align_a >= 16 and chunks <= 1 and sms >= 1
        and m + 128 <= 2147483647 and n + 128 <= 2147483647 and k + 64 <= 2147483647
        and tiles_128x128 + sms <= 4294967295 and -(-n // 128) * 8 <= 4294967295
    ):
        us = time(
            "realign_b16x1_7953b4", "fma", 8, sms, -(-pieces_k_n8 // 512), 1, 0, operands_2,
            operands_2, operands_2,
        )
        us += time(
            "wgmma_nn_bf16_128x128x64_b78178", "wgmma", 1, sms, tiles_128x128, -(-k // 64),
            k * 16384, tiles_128x128 * k * 512, operands, stores,
        )
        choice = Choice(
            24, ("realign_b16x1_7953b4", "wgmma_nn_bf16_128x128x64_b78178"),
            (-(-pieces_k_n8 // 512), min(tiles_128x128, sms // 1) * 1), (pieces_k_n8 * 16,),
        )
        yield Candidate(us, choice)
    # 25: A and B off 16 bytes: copied first
    if (
        arch in SOME_1
        and pieces_m_k8 * 16 <= 268435456 and pieces_k_n8 * 16 <= 268435456 and chunks <= 1
        and sms >= 1 and m + 128 <= 2147483647 and n + 128 <= 2147483647 and k + 64 <= 2147483647
        and tiles_128x128 + sms <= 4294967295 and -(-n // 128) * 8 <= 4294967295
    ):
        us = time(
            "realign_b16x2_d789c8", "fma", 8, sms, -(-pieces_m_k8 // 512) + -(-pieces_k_n8 // 512),
            1, 0, operands_3, operands_3, operands_3,
        )
        us += time(
            "wgmma_nn_bf16_128x128x64_b78178", "wgmma", 1, sms, tiles_128x128, -(-k // 64),
            k * 16384, tiles_128x128 * k * 512, operands, stores,
        )
        choice = Choice(
            25, ("realign_b16x2_d789c8", "wgmma_nn_bf16_128x128x64_b78178"),
            (-(-pieces_m_k8 // 512) + -(-pieces_k_n8 // 512), min(tiles_128x128, sms // 1) * 1),
            (pieces_m_k8 * 16, pieces_k_n8 * 16),
        )
        yield Candidate(us, choice)
    # 26: A off 16 bytes: copied first
    if (
        arch in SOME_1
        and pieces_m_k8 * 16 <= 268435456 and align_b >= 16 and chunks <= 1 and sms >= 1
        and m + 64 <= 2147483647 and n + 64 <= 2147483647 and k + 64 <= 2147483647
        and tiles_64x64 + sms <= 4294967295 and -(-n // 64) * 8 <= 4294967295
    ):
        us = time(
            "realign_b16x1_7953b4", "fma", 8, sms, -(-pieces_m_k8 // 512), 1, 0, operands_1,
            operands_1, operands_1,
        )
        us += time(
            "wgmma_nn_bf16_64x64x64_4fd254", "wgmma", 1, sms, tiles_64x64, -(-k // 64), k * 4096,
            tiles_64x64 * k * 256, operands, stores,
        )
        choice = Choice(
            26, ("realign_b16x1_7953b4", "wgmma_nn_bf16_64x64x64_4fd254"),
            (-(-pieces_m_k8 // 512), min(tiles_64x64, sms // 1) * 1), (pieces_m_k8 * 16,),
        )
        yield Candidate(us, choice)
    # 27: B off 16 bytes: copied first
    if (
        arch in SOME_1
        and pieces_k_n8 * 16 <= 268435456 and align_a >= 16 and chunks <= 1 and sms >= 1
        and m + 64 <= 2147483647 and n + 64 <= 2147483647 and k + 64 <= 2147483647
        and tiles_64x64 + sms <= 4294967295 and -(-n // 64) * 8 <= 4294967295
    ):
        us = time(
            "realign_b16x1_7953b4", "fma", 8, sms, -(-pieces_k_n8 // 512), 1, 0, operands_2,
            operands_2, operands_2,
        )
        us += time(
            "wgmma_nn_bf16_64x64x64_4fd254", "wgmma", 1, sms, tiles_64x64, -(-k // 64), k * 4096,
            tiles_64x64 * k * 256, operands, stores,
        )
        choice = Choice(
            27, ("realign_b16x1_7953b4", "wgmma_nn_bf16_64x64x64_4fd254"),
            (-(-pieces_k_n8 // 512), min(tiles_64x64, sms // 1) * 1), (pieces_k_n8 * 16,),
        )
        yield Candidate(us, choice)
    # 28: A and B off 16 bytes: copied first
    if (
        arch in SOME_1
        and pieces_m_k8 * 16 <= 268435456 and pieces_k_n8 * 16 <= 268435456 and chunks <= 1
        and sms >= 1 and m + 64 <= 2147483647 and n + 64 <= 2147483647 and k + 64 <= 2147483647
        and tiles_64x64 + sms <= 4294967295 and -(-n // 64) * 8 <= 4294967295
    ):
        us = time(
            "realign_b16x2_d789c8", "fma", 8, sms, -(-pieces_m_k8 // 512) + -(-pieces_k_n8 // 512),
            1, 0, operands_3, operands_3, operands_3,
        )
        us += time(
            "wgmma_nn_bf16_64x64x64_4fd254", "wgmma", 1, sms, tiles_64x64, -(-k // 64), k * 4096,
            tiles_64x64 * k * 256, operands, stores,
        )
        choice = Choice(
            28, ("realign_b16x2_d789c8", "wgmma_nn_bf16_64x64x64_4fd254"),
            (-(-pieces_m_k8 // 512) + -(-pieces_k_n8 // 512), min(tiles_64x64, sms // 1) * 1),
            (pieces_m_k8 * 16, pieces_k_n8 * 16),
        )
        yield Candidate(us, choice)
    # 29: A off 16 bytes: copied first
    if (
        pieces_m_k8 * 16 <= 268435456 and align_b >= 16 and chunks <= 1
        and tiles_128x128 <= 2147483647
    ):
        us = time(
            "realign_b16x1_7953b4", "fma", 8, sms, -(-pieces_m_k8 // 512), 1, 0, operands_1,
            operands_1, operands_1,
        )
        us += time(
            "mma_nn_bf16_128x128x64_2f2055", "mma", 2, sms, tiles_128x128, -(-k // 64), k * 16384,
            tiles_128x128 * k * 512, operands, stores,
        )
        choice = Choice(
            29, ("realign_b16x1_7953b4", "mma_nn_bf16_128x128x64_2f2055"),
            (-(-pieces_m_k8 // 512), tiles_128x128), (pieces_m_k8 * 16,),
        )
        yield Candidate(us, choice)
    # 30: B off 16 bytes: copied first
    if (
        pieces_k_n8 * 16 <= 268435456 and align_a >= 16 and chunks <= 1
        and tiles_128x128 <= 2147483647
    ):
        us = time(
            "realign_b16x1_7953b4", "fma", 8, sms, -(-pieces_k_n8 // 512), 1, 0, operands_2,
            operands_2, operands_2,
        )
        us += time(
            "mma_nn_bf16_128x128x64_2f2055", "mma", 2, sms, tiles_128x128, -(-k // 64), k * 16384,
            tiles_128x128 * k * 512, operands, stores,
        )
        choice = Choice(
            30, ("realign_b16x1_7953b4", "mma_nn_bf16_128x128x64_2f2055"),
            (-(-pieces_k_n8 // 512), tiles_128x128), (pieces_k_n8 * 16,),
        )
        yield Candidate(us, choice)
    # 31: A and B off 16 bytes: copied first
    if (
        pieces_m_k8 * 16 <= 268435456 and pieces_k_n8 * 16 <= 268435456 and chunks <= 1
        and tiles_128x128 <= 2147483647
    ):
        us = time(
            "realign_b16x2_d789c8", "fma", 8, sms, -(-pieces_m_k8 // 512) + -(-pieces_k_n8 // 512),
            1, 0, operands_3, operands_3, operands_3,
        )
        us += time(
            "mma_nn_bf16_128x128x64_2f2055", "mma", 2, sms, tiles_128x128, -(-k // 64), k * 16384,
            tiles_128x128 * k * 512, operands, stores,
        )
        choice = Choice(
            31, ("realign_b16x2_d789c8", "mma_nn_bf16_128x128x64_2f2055"),
            (-(-pieces_m_k8 // 512) + -(-pieces_k_n8 // 512), tiles_128x128),
            (pieces_m_k8 * 16, pieces_k_n8 * 16),
        )
        yield Candidate(us, choice)
    # 32: operands off 16 bytes
    if align_a >= 4 and align_b >= 4 and chunks <= 1 and tiles_16x32 <= 2147483647:
        us = time(
            "mma_nn_bf16_16x32x128_5474ec", "mma", 1, sms, tiles_16x32, -(-k // 128), k * 512,
            tiles_16x32 * k * 96, operands, stores,
        )
        yield Candidate(us, Choice(32, ("mma_nn_bf16_16x32x128_5474ec",), (tiles_16x32,), ()))
    # 33: operands off 16 bytes
    if chunks <= 1 and tiles_16x32 <= 2147483647:
        us = time(
            "mma_nn_bf16_16x32x128_ee4369", "mma", 1, sms, tiles_16x32, -(-k // 128), k * 512,
            tiles_16x32 * k * 96, operands, stores,
        )
        yield Candidate(us, Choice(33, ("mma_nn_bf16_16x32x128_ee4369",), (tiles_16x32,), ()))
    # 34: operands off 16 bytes
    if align_a >= 4 and align_b >= 4 and chunks <= 1 and tiles_64x64 <= 2147483647:
        us = time(
            "mma_nn_bf16_64x64x32_87f891", "mma", 4, sms, tiles_64x64, -(-k // 32), k * 4096,
            tiles_64x64 * k * 256, operands, stores,
        )
        yield Candidate(us, Choice(34, ("mma_nn_bf16_64x64x32_87f891",), (tiles_64x64,), ()))
    # 35: everything else: any size, alignment and plan
    if chunks <= 1:
        us = time(
            "mma_nn_bf16_64x64x32_63db1d", "mma", 4, sms, tiles_64x64, -(-k // 32), k * 4096,
            tiles_64x64 * k * 256, operands, stores,
        )
        choice = Choice(35, ("mma_nn_bf16_64x64x32_63db1d",), (min(tiles_64x64, 2147483647),), ())
        yield Candidate(us, choice)
