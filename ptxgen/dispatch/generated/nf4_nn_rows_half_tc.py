"""Dispatch of nf4 NN rows half tc: products under the plan 'rows', with NF4 weights.

Generated from ptxgen.tiles.TABLES["nf4", "NN", "rows", "half", "tc"]; do not edit.
Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time

SOME_0 = frozenset(("sm_80", "sm_87", "sm_90", "sm_100", "sm_103", "sm_110"))
SOME_1 = frozenset(("sm_90", "sm_100", "sm_103", "sm_110"))
SOME_2 = frozenset(("sm_90",))


def candidates(
    arch: str, m: int, n: int, k: int, sms: int, align_a: int, time: Time
) -> Iterator[Candidate]:
    """What can serve a problem, with predicted times."""
    chunk_part_1 = -(-min(-(-k // 8), 2048) // 128) * 128
    chunk = max(1, min(k, chunk_part_1 if n <= 2048 and max(6 * n, 4096) <= k else k))
    chunks = -(-k // chunk)
    operands = m * k * 2 + n * k * 9 // 16
    stores = m * n * 2
    tiles_8x32 = -(-m // 8) * -(-n // 32)
    # 0: few rows: the weight streams once, as it is stored
    if align_a >= 16 and tiles_8x32 <= 2147483647 and (chunk % 128 == 0 or chunks <= 1):
        us = time(
            "nf4_mma_nn_bf16_8x32x256_c33bcd", "mma", 1, sms, tiles_8x32, -(-k // 256), k * 256,
            -(-n // 32) * (m * k * 2) + -(-m // 8) * (n * k * 9 // 16), operands, stores,
        )
        yield Candidate(us, Choice(0, ("nf4_mma_nn_bf16_8x32x256_c33bcd",), (tiles_8x32,), ()))
    tiles_16x32 = -(-m // 16) * -(-n // 32)
    # 1: few rows: the weight streams once, as it is stored
    if align_a >= 16 and tiles_16x32 <= 2147483647 and (chunk % 128 == 0 or chunks <= 1):
        us = time(
            "nf4_mma_nn_bf16_16x32x256_5760d5", "mma", 1, sms, tiles_16x32, -(-k // 256), k * 512,
            -(-n // 32) * (m * k * 2) + -(-m // 16) * (n * k * 9 // 16), operands, stores,
        )
        yield Candidate(us, Choice(1, ("nf4_mma_nn_bf16_16x32x256_5760d5",), (tiles_16x32,), ()))
    tiles_32x32 = -(-m // 32) * -(-n // 32)
    # 2: few rows: the weight streams once, as it is stored
    if (
        arch in SOME_0
        and align_a >= 16 and tiles_32x32 <= 2147483647 and (chunk % 64 == 0 or chunks <= 1)
    ):
        us = time(
            "nf4_mma_nn_bf16_32x32x256_8e7dd0", "mma", 1, sms, tiles_32x32, -(-k // 256), k * 1024,
            -(-n // 32) * (m * k * 2) + -(-m // 32) * (n * k * 9 // 16), operands, stores,
        )
        yield Candidate(us, Choice(2, ("nf4_mma_nn_bf16_32x32x256_8e7dd0",), (tiles_32x32,), ()))
    tiles_8x64 = -(-m // 8) * -(-n // 64)
    # 3: few rows, more columns: looked up as it is multiplied
    if (
        arch in SOME_1
        and align_a >= 16 and tiles_8x64 <= 2147483647 and (chunk % 128 == 0 or chunks <= 1)
    ):
        us = time(
            "nf4_pairs_nn_bf16_8x64x256_496201", "mma", 1, sms, tiles_8x64, -(-k // 256), k * 512,
            -(-n // 64) * (m * k * 2) + -(-m // 8) * (n * k * 9 // 16), operands, stores,
        )
        yield Candidate(us, Choice(3, ("nf4_pairs_nn_bf16_8x64x256_496201",), (tiles_8x64,), ()))
    tiles_8x128 = -(-m // 8) * -(-n // 128)
    # 4: few rows, more columns: looked up as it is multiplied
    if (
        arch in SOME_1
        and align_a >= 16 and tiles_8x128 <= 2147483647 and (chunk % 128 == 0 or chunks <= 1)
    ):
        us = time(
            "nf4_pairs_nn_bf16_8x128x128_75601a", "mma", 1, sms, tiles_8x128, -(-k // 128),
            k * 1024, -(-n // 128) * (m * k * 2) + -(-m // 8) * (n * k * 9 // 16), operands, stores,
        )
        yield Candidate(us, Choice(4, ("nf4_pairs_nn_bf16_8x128x128_75601a",), (tiles_8x128,), ()))
    tiles_16x128 = -(-m // 16) * -(-n // 128)
    # 5: few rows, more columns: looked up as it is multiplied
    if (
        arch in SOME_1
        and align_a >= 16 and tiles_16x128 <= 2147483647 and (chunk % 128 == 0 or chunks <= 1)
    ):
        us = time(
            "nf4_pairs_nn_bf16_16x128x256_0693e9", "mma", 1, sms, tiles_16x128, -(-k // 256),
            k * 2048, -(-n // 128) * (m * k * 2) + -(-m // 16) * (n * k * 9 // 16), operands,
            stores,
        )
        choice = Choice(5, ("nf4_pairs_nn_bf16_16x128x256_0693e9",), (tiles_16x128,), ())
        yield Candidate(us, choice)
    tiles_64x32 = -(-m // 64) * -(-n // 32)
    # 6: more rows: the weight as it is stored, by wgmma
    if (
        arch in SOME_2
        and align_a >= 16 and chunks <= 1 and m + 64 <= 2147483647 and n + 32 <= 2147483647
        and k + 128 <= 2147483647 and tiles_64x32 + sms <= 4294967295
    ):
        us = time(
            "nf4_wgmma_nn_bf16_64x32x128_059fb2", "wgmma", 1, sms, tiles_64x32, -(-k // 128),
            k * 2048, -(-n // 32) * (m * k * 2) + -(-m // 64) * (n * k * 9 // 16), operands, stores,
        )
        choice = Choice(
            6, ("nf4_wgmma_nn_bf16_64x32x128_059fb2",), (min(tiles_64x32, sms) * 1,), (),
        )
        yield Candidate(us, choice)
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 7: more rows: the weight as it is stored, by wgmma
    if (
        arch in SOME_2
        and align_a >= 16 and chunks <= 1 and m + 64 <= 2147483647 and n + 64 <= 2147483647
        and k + 128 <= 2147483647 and tiles_64x64 + sms <= 4294967295
    ):
        us = time(
            "nf4_wgmma_nn_bf16_64x64x128_7b65e9", "wgmma", 1, sms, tiles_64x64, -(-k // 128),
            k * 4096, -(-n // 64) * (m * k * 2) + -(-m // 64) * (n * k * 9 // 16), operands, stores,
        )
        choice = Choice(
            7, ("nf4_wgmma_nn_bf16_64x64x128_7b65e9",), (min(tiles_64x64, sms) * 1,), (),
        )
        yield Candidate(us, choice)
    tiles_128x64 = -(-m // 128) * -(-n // 64)
    # 8: more rows: the weight as it is stored, by wgmma
    if (
        arch in SOME_2
        and align_a >= 16 and chunks <= 1 and m + 128 <= 2147483647 and n + 64 <= 2147483647
        and k + 128 <= 2147483647 and tiles_128x64 + sms <= 4294967295
    ):
        us = time(
            "nf4_wgmma_nn_bf16_128x64x128_d3865f", "wgmma", 1, sms, tiles_128x64, -(-k // 128),
            k * 8192, -(-n // 64) * (m * k * 2) + -(-m // 128) * (n * k * 9 // 16), operands,
            stores,
        )
        choice = Choice(
            8, ("nf4_wgmma_nn_bf16_128x64x128_d3865f",), (min(tiles_128x64, sms) * 1,), (),
        )
        yield Candidate(us, choice)
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    # 9: more rows: the weight as it is stored, by wgmma
    if (
        arch in SOME_2
        and align_a >= 16 and chunks <= 1 and m + 128 <= 2147483647 and n + 128 <= 2147483647
        and k + 64 <= 2147483647 and tiles_128x128 + sms <= 4294967295
    ):
        us = time(
            "nf4_wgmma_nn_bf16_128x128x64_40b3f8", "wgmma", 1, sms, tiles_128x128, -(-k // 64),
            k * 16384, -(-n // 128) * (m * k * 2) + -(-m // 128) * (n * k * 9 // 16), operands,
            stores,
        )
        choice = Choice(
            9, ("nf4_wgmma_nn_bf16_128x128x64_40b3f8",), (min(tiles_128x128, sms) * 1,), (),
        )
        yield Candidate(us, choice)
    tiles_256x128 = -(-m // 256) * -(-n // 128)
    # 10: more rows: the weight as it is stored, by wgmma
    if (
        arch in SOME_2
        and align_a >= 16 and chunks <= 1 and m + 256 <= 2147483647 and n + 128 <= 2147483647
        and k + 64 <= 2147483647 and tiles_256x128 + sms <= 4294967295
    ):
        us = time(
            "nf4_wgmma_nn_bf16_256x128x64_1a0d09", "wgmma", 1, sms, tiles_256x128, -(-k // 64),
            k * 32768, -(-n // 128) * (m * k * 2) + -(-m // 256) * (n * k * 9 // 16), operands,
            stores,
        )
        choice = Choice(
            10, ("nf4_wgmma_nn_bf16_256x128x64_1a0d09",), (min(tiles_256x128, sms) * 1,), (),
        )
        yield Candidate(us, choice)
    operands_1 = k * -(-n // 64) * 36
    stores_1 = k * -(-n // 64) * 128
    operands_2 = (m + n) * k * 2
    pieces_k_n64 = k * -(-n // 64)
    tiles_128x256 = -(-m // 128) * -(-n // 256)
    # 11: the weight dequantised; many rows, by wgmma
    if (
        arch in SOME_2
        and stores_1 <= 1073741824 and align_a >= 16 and chunks <= 1 and sms >= 1
        and m + 128 <= 2147483647 and n + 256 <= 2147483647 and k + 64 <= 2147483647
        and tiles_128x256 + sms <= 4294967295
    ):
        us = time(
            "nf4_bf16_531262", "fma", 8, sms, -(-(pieces_k_n64 * 8) // 1024), 1, 0, operands_1,
            operands_1, stores_1,
        )
        us += time(
            "wgmma_nn_bf16_128x256x64_86d2ac", "wgmma", 1, sms, tiles_128x256, -(-k // 64),
            k * 32768,
            tiles_128x256 * k * (768 + (min(k % 16, 1) * 128 + min(n % 16, 1) * 256) * 6),
            operands_2, stores,
        )
        choice = Choice(
            11, ("nf4_bf16_531262", "wgmma_nn_bf16_128x256x64_86d2ac"),
            (-(-(pieces_k_n64 * 8) // 1024), min(tiles_128x256, sms) * 1), (stores_1,),
        )
        yield Candidate(us, choice)
    tiles_256x256 = -(-m // 256) * -(-n // 256)
    # 12: the weight dequantised; many rows, by wgmma
    if (
        arch in SOME_2
        and stores_1 <= 1073741824 and align_a >= 16 and chunks <= 1 and sms >= 2
        and m + 256 <= 2147483647 and n + 256 <= 2147483647 and k + 64 <= 2147483647
        and tiles_256x256 + sms // 2 <= 4294967295
    ):
        us = time(
            "nf4_bf16_531262", "fma", 8, sms, -(-(pieces_k_n64 * 8) // 1024), 1, 0, operands_1,
            operands_1, stores_1,
        )
        us += time(
            "wgmma_nn_bf16_128x256x64_74d273", "wgmma", 1, sms, tiles_256x256 * 2, -(-k // 64),
            k * 32768,
            tiles_256x256 * k * (1024 + (min(k % 16, 1) * 256 + min(n % 16, 1) * 256) * 6),
            operands_2, stores,
        )
        choice = Choice(
            12, ("nf4_bf16_531262", "wgmma_nn_bf16_128x256x64_74d273"),
            (-(-(pieces_k_n64 * 8) // 1024), min(tiles_256x256, sms // 2) * 2), (stores_1,),
        )
        yield Candidate(us, choice)
    tiles_128x224 = -(-m // 128) * -(-n // 224)
    # 13: the weight dequantised; many rows, by wgmma
    if (
        arch in SOME_2
        and stores_1 <= 1073741824 and align_a >= 16 and chunks <= 1 and sms >= 1
        and m + 128 <= 2147483647 and n + 224 <= 2147483647 and k + 64 <= 2147483647
        and tiles_128x224 + sms <= 4294967295
    ):
        us = time(
            "nf4_bf16_531262", "fma", 8, sms, -(-(pieces_k_n64 * 8) // 1024), 1, 0, operands_1,
            operands_1, stores_1,
        )
        us += time(
            "wgmma_nn_bf16_128x224x64_21d9d3", "wgmma", 1, sms, tiles_128x224, -(-k // 64),
            k * 28672,
            tiles_128x224 * k * (704 + (min(k % 16, 1) * 128 + min(n % 16, 1) * 224) * 6),
            operands_2, stores,
        )
        choice = Choice(
            13, ("nf4_bf16_531262", "wgmma_nn_bf16_128x224x64_21d9d3"),
            (-(-(pieces_k_n64 * 8) // 1024), min(tiles_128x224, sms) * 1), (stores_1,),
        )
        yield Candidate(us, choice)
    tiles_256x160 = -(-m // 256) * -(-n // 160)
    # 14: the weight dequantised; many rows, by wgmma
    if (
        arch in SOME_2
        and stores_1 <= 1073741824 and align_a >= 16 and (chunk % 64 == 0 or chunks <= 1)
        and sms >= 2 and m + 256 <= 2147483647 and n + 160 <= 2147483647 and k + 64 <= 2147483647
        and tiles_256x160 + sms // 2 <= 4294967295
    ):
        us = time(
            "nf4_bf16_531262", "fma", 8, sms, -(-(pieces_k_n64 * 8) // 1024), 1, 0, operands_1,
            operands_1, stores_1,
        )
        us += time(
            "wgmma_nn_bf16_128x160x64_20a7b2", "wgmma", 1, sms, tiles_256x160 * 2, -(-k // 64),
            k * 20480,
            tiles_256x160 * k * (832 + (min(k % 16, 1) * 256 + min(n % 16, 1) * 160) * 6),
            operands_2, stores,
        )
        choice = Choice(
            14, ("nf4_bf16_531262", "wgmma_nn_bf16_128x160x64_20a7b2"),
            (-(-(pieces_k_n64 * 8) // 1024), min(tiles_256x160, sms // 2) * 2), (stores_1,),
        )
        yield Candidate(us, choice)
    # 15: the weight dequantised; many rows, by wgmma
    if (
        arch in SOME_2
        and stores_1 <= 1073741824 and align_a >= 16 and (chunk % 64 == 0 or chunks <= 1)
        and sms >= 1 and m + 128 <= 2147483647 and n + 128 <= 2147483647 and k + 64 <= 2147483647
        and tiles_128x128 + sms <= 4294967295
    ):
        us = time(
            "nf4_bf16_531262", "fma", 8, sms, -(-(pieces_k_n64 * 8) // 1024), 1, 0, operands_1,
            operands_1, stores_1,
        )
        us += time(
            "wgmma_nn_bf16_128x128x64_f67370", "wgmma", 1, sms, tiles_128x128, -(-k // 64),
            k * 16384,
            tiles_128x128 * k * (512 + (min(k % 16, 1) * 128 + min(n % 16, 1) * 128) * 6),
            operands_2, stores,
        )
        choice = Choice(
            15, ("nf4_bf16_531262", "wgmma_nn_bf16_128x128x64_f67370"),
            (-(-(pieces_k_n64 * 8) // 1024), min(tiles_128x128, sms) * 1), (stores_1,),
        )
        yield Candidate(us, choice)
    # 16: the weight dequantised; many rows, by wgmma
    if (
        arch in SOME_2
        and stores_1 <= 1073741824 and align_a >= 16 and (chunk % 64 == 0 or chunks <= 1)
        and sms >= 1 and m + 64 <= 2147483647 and n + 64 <= 2147483647 and k + 64 <= 2147483647
        and tiles_64x64 + sms <= 4294967295
    ):
        us = time(
            "nf4_bf16_531262", "fma", 8, sms, -(-(pieces_k_n64 * 8) // 1024), 1, 0, operands_1,
            operands_1, stores_1,
        )
        us += time(
            "wgmma_nn_bf16_64x64x64_2ff8a4", "wgmma", 1, sms, tiles_64x64, -(-k // 64), k * 4096,
            tiles_64x64 * k * (256 + (min(k % 16, 1) * 64 + min(n % 16, 1) * 64) * 6), operands_2,
            stores,
        )
        choice = Choice(
            16, ("nf4_bf16_531262", "wgmma_nn_bf16_64x64x64_2ff8a4"),
            (-(-(pieces_k_n64 * 8) // 1024), min(tiles_64x64, sms) * 1), (stores_1,),
        )
        yield Candidate(us, choice)
    # 17: the weight dequantised; many rows, by mma
    if (
        stores_1 <= 1073741824 and align_a >= 16 and (chunk % 64 == 0 or chunks <= 1)
        and tiles_64x64 <= 2147483647
    ):
        us = time(
            "nf4_bf16_531262", "fma", 8, sms, -(-(pieces_k_n64 * 8) // 1024), 1, 0, operands_1,
            operands_1, stores_1,
        )
        us += time(
            "mma_nn_bf16_64x64x64_42490e", "mma", 3, sms, tiles_64x64, -(-k // 64), k * 4096,
            tiles_64x64 * k * (256 + (min(k % 16, 1) * 64 + min(n % 16, 1) * 64) * 6), operands_2,
            stores,
        )
        choice = Choice(
            17, ("nf4_bf16_531262", "mma_nn_bf16_64x64x64_42490e"),
            (-(-(pieces_k_n64 * 8) // 1024), tiles_64x64), (stores_1,),
        )
        yield Candidate(us, choice)
    # 18: the weight dequantised; many rows, by mma
    if stores_1 <= 1073741824 and align_a >= 16 and chunks <= 1 and tiles_128x128 <= 2147483647:
        us = time(
            "nf4_bf16_531262", "fma", 8, sms, -(-(pieces_k_n64 * 8) // 1024), 1, 0, operands_1,
            operands_1, stores_1,
        )
        us += time(
            "mma_nn_bf16_128x128x64_cd5bbc", "mma", 2, sms, tiles_128x128, -(-k // 64), k * 16384,
            tiles_128x128 * k * (512 + (min(k % 16, 1) * 128 + min(n % 16, 1) * 128) * 6),
            operands_2, stores,
        )
        choice = Choice(
            18, ("nf4_bf16_531262", "mma_nn_bf16_128x128x64_cd5bbc"),
            (-(-(pieces_k_n64 * 8) // 1024), tiles_128x128), (stores_1,),
        )
        yield Candidate(us, choice)
    operands_3 = 0 + m * -(-k // 8) * 16
    pieces_m_k8 = m * -(-k // 8)
    # 19: the weight dequantised; A off 16 bytes: copied first
    if (
        arch in SOME_2
        and stores_1 <= 1073741824 and pieces_m_k8 * 16 <= 1073741824 and chunks <= 1 and sms >= 1
        and m + 128 <= 2147483647 and n + 256 <= 2147483647 and k + 64 <= 2147483647
        and tiles_128x256 + sms <= 4294967295
    ):
        us = time(
            "nf4_bf16_531262", "fma", 8, sms, -(-(pieces_k_n64 * 8) // 1024), 1, 0, operands_1,
            operands_1, stores_1,
        )
        us += time(
            "realign_b16x1_7953b4", "fma", 8, sms, -(-pieces_m_k8 // 512), 1, 0, operands_3,
            operands_3, operands_3,
        )
        us += time(
            "wgmma_nn_bf16_128x256x64_86d2ac", "wgmma", 1, sms, tiles_128x256, -(-k // 64),
            k * 32768,
            tiles_128x256 * k * (768 + (min(k % 16, 1) * 128 + min(n % 16, 1) * 256) * 6),
            operands_2, stores,
        )
        choice = Choice(
            19, ("nf4_bf16_531262", "realign_b16x1_7953b4", "wgmma_nn_bf16_128x256x64_86d2ac"),
            (-(-(pieces_k_n64 * 8) // 1024), -(-pieces_m_k8 // 512), min(tiles_128x256, sms) * 1),
            (stores_1, pieces_m_k8 * 16),
        )
        yield Candidate(us, choice)
    # 20: the weight dequantised; A off 16 bytes: copied first
    if (
        arch in SOME_2
        and stores_1 <= 1073741824 and pieces_m_k8 * 16 <= 1073741824
        and (chunk % 64 == 0 or chunks <= 1) and sms >= 1 and m + 128 <= 2147483647
        and n + 128 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x128 + sms <= 4294967295
    ):
        us = time(
            "nf4_bf16_531262", "fma", 8, sms, -(-(pieces_k_n64 * 8) // 1024), 1, 0, operands_1,
            operands_1, stores_1,
        )
        us += time(
            "realign_b16x1_7953b4", "fma", 8, sms, -(-pieces_m_k8 // 512), 1, 0, operands_3,
            operands_3, operands_3,
        )
        us += time(
            "wgmma_nn_bf16_128x128x64_f67370", "wgmma", 1, sms, tiles_128x128, -(-k // 64),
            k * 16384,
            tiles_128x128 * k * (512 + (min(k % 16, 1) * 128 + min(n % 16, 1) * 128) * 6),
            operands_2, stores,
        )
        choice = Choice(
            20, ("nf4_bf16_531262", "realign_b16x1_7953b4", "wgmma_nn_bf16_128x128x64_f67370"),
            (-(-(pieces_k_n64 * 8) // 1024), -(-pieces_m_k8 // 512), min(tiles_128x128, sms) * 1),
            (stores_1, pieces_m_k8 * 16),
        )
        yield Candidate(us, choice)
    # 21: the weight dequantised; A off 16 bytes: copied first
    if (
        arch in SOME_2
        and stores_1 <= 1073741824 and pieces_m_k8 * 16 <= 1073741824
        and (chunk % 64 == 0 or chunks <= 1) and sms >= 1 and m + 64 <= 2147483647
        and n + 64 <= 2147483647 and k + 64 <= 2147483647 and tiles_64x64 + sms <= 4294967295
    ):
        us = time(
            "nf4_bf16_531262", "fma", 8, sms, -(-(pieces_k_n64 * 8) // 1024), 1, 0, operands_1,
            operands_1, stores_1,
        )
        us += time(
            "realign_b16x1_7953b4", "fma", 8, sms, -(-pieces_m_k8 // 512), 1, 0, operands_3,
            operands_3, operands_3,
        )
        us += time(
            "wgmma_nn_bf16_64x64x64_2ff8a4", "wgmma", 1, sms, tiles_64x64, -(-k // 64), k * 4096,
            tiles_64x64 * k * (256 + (min(k % 16, 1) * 64 + min(n % 16, 1) * 64) * 6), operands_2,
            stores,
        )
        choice = Choice(
            21, ("nf4_bf16_531262", "realign_b16x1_7953b4", "wgmma_nn_bf16_64x64x64_2ff8a4"),
            (-(-(pieces_k_n64 * 8) // 1024), -(-pieces_m_k8 // 512), min(tiles_64x64, sms) * 1),
            (stores_1, pieces_m_k8 * 16),
        )
        yield Candidate(us, choice)
    # 22: the weight dequantised; everything else: any size, alignment and plan
    if stores_1 <= 1073741824 and (chunk % 32 == 0 or chunks <= 1):
        us = time(
            "nf4_bf16_531262", "fma", 8, sms, -(-(pieces_k_n64 * 8) // 1024), 1, 0, operands_1,
            operands_1, stores_1,
        )
        us += time(
            "mma_nn_bf16_64x64x32_782949", "mma", 3, sms, tiles_64x64, -(-k // 32), k * 4096,
            tiles_64x64 * k * (256 + (min(k % 16, 1) * 64 + min(n % 16, 1) * 64) * 6), operands_2,
            stores,
        )
        choice = Choice(
            22, ("nf4_bf16_531262", "mma_nn_bf16_64x64x32_782949"),
            (-(-(pieces_k_n64 * 8) // 1024), min(tiles_64x64, 2147483647)), (stores_1,),
        )
        yield Candidate(us, choice)
