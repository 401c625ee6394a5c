"""Dispatch of NT rows half tc: products under the plan 'rows'.

Generated from ptxgen.tiles.TABLES["NT", "rows", "half", "tc"]; do not edit.
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
    tiles_8x16 = -(-m // 8) * -(-n // 16)
    # 0: few rows: the weight streams once
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_8x16 <= 2147483647:
        us = time(
            "mma_nt_bf16_8x16x512_a37313", "mma", 1, sms, tiles_8x16, -(-k // 512), k * 128,
            tiles_8x16 * k * 48, operands, stores,
        )
        yield Candidate(us, Choice(0, ("mma_nt_bf16_8x16x512_a37313",), (tiles_8x16,), ()))
    tiles_16x32 = -(-m // 16) * -(-n // 32)
    # 1: few rows: the weight streams once
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_16x32 <= 2147483647:
        us = time(
            "mma_nt_bf16_16x32x128_f058da", "mma", 1, sms, tiles_16x32, -(-k // 128), k * 512,
            tiles_16x32 * k * 96, operands, stores,
        )
        yield Candidate(us, Choice(1, ("mma_nt_bf16_16x32x128_f058da",), (tiles_16x32,), ()))
    tiles_16x64 = -(-m // 16) * -(-n // 64)
    # 2: few rows: the weight streams once
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_16x64 <= 2147483647:
        us = time(
            "mma_nt_bf16_16x64x128_4749ec", "mma", 1, sms, tiles_16x64, -(-k // 128), k * 1024,
            tiles_16x64 * k * 160, operands, stores,
        )
        yield Candidate(us, Choice(2, ("mma_nt_bf16_16x64x128_4749ec",), (tiles_16x64,), ()))
    tiles_32x32 = -(-m // 32) * -(-n // 32)
    # 3: few rows: the weight streams once
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_32x32 <= 2147483647:
        us = time(
            "mma_nt_bf16_32x32x128_d93f94", "mma", 1, sms, tiles_32x32, -(-k // 128), k * 1024,
            tiles_32x32 * k * 128, operands, stores,
        )
        yield Candidate(us, Choice(3, ("mma_nt_bf16_32x32x128_d93f94",), (tiles_32x32,), ()))
    tiles_32x64 = -(-m // 32) * -(-n // 64)
    # 4: few rows: the weight streams once
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_32x64 <= 2147483647
    ):
        us = time(
            "mma_nt_bf16_32x64x128_008e0a", "mma", 1, sms, tiles_32x64, -(-k // 128), k * 2048,
            tiles_32x64 * k * 192, operands, stores,
        )
        yield Candidate(us, Choice(4, ("mma_nt_bf16_32x64x128_008e0a",), (tiles_32x64,), ()))
    tiles_64x128 = -(-m // 64) * -(-n // 128)
    # 5: few rows: the weight streams once
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_64x128 <= 2147483647
    ):
        us = time(
            "mma_nt_bf16_64x128x64_865693", "mma", 1, sms, tiles_64x128, -(-k // 64), k * 8192,
            tiles_64x128 * k * 384, operands, stores,
        )
        yield Candidate(us, Choice(5, ("mma_nt_bf16_64x128x64_865693",), (tiles_64x128,), ()))
    tiles_128x256 = -(-m // 128) * -(-n // 256)
    # 6: many rows, by wgmma
    if (
        arch in SOME_1
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 256 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x256 + sms <= 4294967295
        and -(-n // 256) * 16 <= 4294967295
    ):
        us = time(
            "wgmma_nt_bf16_128x256x64_7a60b5", "wgmma", 1, sms, tiles_128x256, -(-k // 64),
            k * 32768, tiles_128x256 * k * 768, operands, stores,
        )
        choice = Choice(
            6, ("wgmma_nt_bf16_128x256x64_7a60b5",), (min(tiles_128x256, sms // 1) * 1,), (),
        )
        yield Candidate(us, choice)
    tiles_192x256 = -(-m // 192) * -(-n // 256)
    # 7: many rows, by wgmma
    if (
        arch in SOME_1
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 2 and m + 192 <= 2147483647
        and n + 256 <= 2147483647 and k + 64 <= 2147483647 and tiles_192x256 + sms <= 4294967295
        and -(-n // 256) * 8 <= 4294967295
    ):
        us = time(
            "wgmma_nt_bf16_192x128x64_bfe691", "wgmma", 1, sms, tiles_192x256 * 2, -(-k // 64),
            k * 24576, tiles_192x256 * k * 896, operands, stores,
        )
        choice = Choice(
            7, ("wgmma_nt_bf16_192x128x64_bfe691",), (min(tiles_192x256, sms // 2) * 2,), (),
        )
        yield Candidate(us, choice)
    tiles_128x224 = -(-m // 128) * -(-n // 224)
    # 8: many rows, by wgmma
    if (
        arch in SOME_1
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 224 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x224 + sms <= 4294967295
        and -(-n // 224) * 8 <= 4294967295
    ):
        us = time(
            "wgmma_nt_bf16_128x224x64_246569", "wgmma", 1, sms, tiles_128x224, -(-k // 64),
            k * 28672, tiles_128x224 * k * 704, operands, stores,
        )
        choice = Choice(
            8, ("wgmma_nt_bf16_128x224x64_246569",), (min(tiles_128x224, sms // 1) * 1,), (),
        )
        yield Candidate(us, choice)
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    # 9: many rows, by wgmma
    if (
        arch in SOME_1
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 128 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x128 + sms <= 4294967295
        and -(-n // 128) * 8 <= 4294967295
    ):
        us = time(
            "wgmma_nt_bf16_128x128x64_14d5e4", "wgmma", 1, sms, tiles_128x128, -(-k // 64),
            k * 16384, tiles_128x128 * k * 512, operands, stores,
        )
        choice = Choice(
            9, ("wgmma_nt_bf16_128x128x64_14d5e4",), (min(tiles_128x128, sms // 1) * 1,), (),
        )
        yield Candidate(us, choice)
    tiles_128x112 = -(-m // 128) * -(-n // 112)
    # 10: many rows, by wgmma
    if (
        arch in SOME_1
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 112 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x112 + sms <= 4294967295
        and -(-n // 112) * 8 <= 4294967295
    ):
        us = time(
            "wgmma_nt_bf16_128x112x64_3dcfd6", "wgmma", 1, sms, tiles_128x112, -(-k // 64),
            k * 14336, tiles_128x112 * k * 480, operands, stores,
        )
        choice = Choice(
            10, ("wgmma_nt_bf16_128x112x64_3dcfd6",), (min(tiles_128x112, sms // 1) * 1,), (),
        )
        yield Candidate(us, choice)
    tiles_128x64 = -(-m // 128) * -(-n // 64)
    # 11: many rows, by wgmma
    if (
        arch in SOME_1
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 64 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x64 + sms <= 4294967295
        and -(-n // 64) * 8 <= 4294967295
    ):
        us = time(
            "wgmma_nt_bf16_128x64x64_fba2b7", "wgmma", 1, sms, tiles_128x64, -(-k // 64), k * 8192,
            tiles_128x64 * k * 384, operands, stores,
        )
        choice = Choice(
            11, ("wgmma_nt_bf16_128x64x64_fba2b7",), (min(tiles_128x64, sms // 1) * 1,), (),
        )
        yield Candidate(us, choice)
    # 12: many rows, by wgmma
    if (
        arch in SOME_1
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 128 <= 2147483647 and k + 64 <= 2147483647 and tiles_64x128 + sms <= 4294967295
        and -(-n // 128) * 8 <= 4294967295
    ):
        us = time(
            "wgmma_nt_bf16_64x128x64_12c7f7", "wgmma", 1, sms, tiles_64x128, -(-k // 64), k * 8192,
            tiles_64x128 * k * 384, operands, stores,
        )
        choice = Choice(
            12, ("wgmma_nt_bf16_64x128x64_12c7f7",), (min(tiles_64x128, sms // 1) * 1,), (),
        )
        yield Candidate(us, choice)
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 13: many rows, by wgmma
    if (
        arch in SOME_1
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 64 <= 2147483647 and k + 64 <= 2147483647 and tiles_64x64 + sms <= 4294967295
        and -(-n // 64) * 8 <= 4294967295
    ):
        us = time(
            "wgmma_nt_bf16_64x64x64_15e6a1", "wgmma", 1, sms, tiles_64x64, -(-k // 64), k * 4096,
            tiles_64x64 * k * 256, operands, stores,
        )
        choice = Choice(
            13, ("wgmma_nt_bf16_64x64x64_15e6a1",), (min(tiles_64x64, sms // 1) * 1,), (),
        )
        yield Candidate(us, choice)
    tiles_64x32 = -(-m // 64) * -(-n // 32)
    # 14: many rows, by wgmma
    if (
        arch in SOME_1
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 32 <= 2147483647 and k + 128 <= 2147483647 and tiles_64x32 + sms <= 4294967295
        and -(-n // 32) * 8 <= 4294967295
    ):
        us = time(
            "wgmma_nt_bf16_64x32x128_8abf70", "wgmma", 1, sms, tiles_64x32, -(-k // 128), k * 2048,
            tiles_64x32 * k * 192, operands, stores,
        )
        choice = Choice(
            14, ("wgmma_nt_bf16_64x32x128_8abf70",), (min(tiles_64x32, sms // 1) * 1,), (),
        )
        yield Candidate(us, choice)
    tiles_64x16 = -(-m // 64) * -(-n // 16)
    # 15: many rows, by wgmma
    if (
        arch in SOME_1
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 16 <= 2147483647 and k + 128 <= 2147483647 and tiles_64x16 + sms <= 4294967295
        and -(-n // 16) * 8 <= 4294967295
    ):
        us = time(
            "wgmma_nt_bf16_64x16x128_1e00ce", "wgmma", 1, sms, tiles_64x16, -(-k // 128), k * 1024,
            tiles_64x16 * k * 160, operands, stores,
        )
        choice = Choice(
            15, ("wgmma_nt_bf16_64x16x128_1e00ce",), (min(tiles_64x16, sms // 1) * 1,), (),
        )
        yield Candidate(us, choice)
    # 16: many rows, by mma
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_64x64 <= 2147483647:
        us = time(
            "mma_nt_bf16_64x64x64_d69a1a", "mma", 3, sms, tiles_64x64, -(-k // 64), k * 4096,
            tiles_64x64 * k * 256, operands, stores,
        )
        yield Candidate(us, Choice(16, ("mma_nt_bf16_64x64x64_d69a1a",), (tiles_64x64,), ()))
    # 17: many rows, by mma
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_128x128 <= 2147483647:
        us = time(
            "mma_nt_bf16_128x128x64_043f53", "mma", 2, sms, tiles_128x128, -(-k // 64), k * 16384,
            tiles_128x128 * k * 512, operands, stores,
        )
        yield Candidate(us, Choice(17, ("mma_nt_bf16_128x128x64_043f53",), (tiles_128x128,), ()))
    operands_1 = 0 + m * -(-k // 8) * 16
    pieces_m_k8 = m * -(-k // 8)
    # 18: A off 16 bytes: copied first
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
            "mma_nt_bf16_64x128x64_865693", "mma", 1, sms, tiles_64x128, -(-k // 64), k * 8192,
            tiles_64x128 * k * 384, operands, stores,
        )
        choice = Choice(
            18, ("realign_b16x1_7953b4", "mma_nt_bf16_64x128x64_865693"),
            (-(-pieces_m_k8 // 512), tiles_64x128), (pieces_m_k8 * 16,),
        )
        yield Candidate(us, choice)
    # 19: A off 16 bytes: copied first
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
            "wgmma_nt_bf16_128x256x64_7a60b5", "wgmma", 1, sms, tiles_128x256, -(-k // 64),
            k * 32768, tiles_128x256 * k * 768, operands, stores,
        )
        choice = Choice(
            19, ("realign_b16x1_7953b4", "wgmma_nt_bf16_128x256x64_7a60b5"),
            (-(-pieces_m_k8 // 512), min(tiles_128x256, sms // 1) * 1), (pieces_m_k8 * 16,),
        )
        yield Candidate(us, choice)
    operands_2 = 0 + n * -(-k // 8) * 16
    pieces_n_k8 = n * -(-k // 8)
    # 20: B off 16 bytes: copied first
    if (
        arch in SOME_1
        and pieces_n_k8 * 16 <= 268435456 and align_a >= 16 and chunks <= 1 and sms >= 1
        and m + 128 <= 2147483647 and n + 256 <= 2147483647 and k + 64 <= 2147483647
        and tiles_128x256 + sms <= 4294967295 and -(-n // 256) * 16 <= 4294967295
    ):
        us = time(
            "realign_b16x1_7953b4", "fma", 8, sms, -(-pieces_n_k8 // 512), 1, 0, operands_2,
            operands_2, operands_2,
        )
        us += time(
            "wgmma_nt_bf16_128x256x64_7a60b5", "wgmma", 1, sms, tiles_128x256, -(-k // 64),
            k * 32768, tiles_128x256 * k * 768, operands, stores,
        )
        choice = Choice(
            20, ("realign_b16x1_7953b4", "wgmma_nt_bf16_128x256x64_7a60b5"),
            (-(-pieces_n_k8 // 512), min(tiles_128x256, sms // 1) * 1), (pieces_n_k8 * 16,),
        )
        yield Candidate(us, choice)
    operands_3 = 0 + m * -(-k // 8) * 16 + n * -(-k // 8) * 16
    # 21: A and B off 16 bytes: copied first
    if (
        arch in SOME_1
        and pieces_m_k8 * 16 <= 268435456 and pieces_n_k8 * 16 <= 268435456 and chunks <= 1
        and sms >= 1 and m + 128 <= 2147483647 and n + 256 <= 2147483647 and k + 64 <= 2147483647
        and tiles_128x256 + sms <= 4294967295 and -(-n // 256) * 16 <= 4294967295
    ):
        us = time(
            "realign_b16x2_d789c8", "fma", 8, sms, -(-pieces_m_k8 // 512) + -(-pieces_n_k8 // 512),
            1, 0, operands_3, operands_3, operands_3,
        )
        us += time(
            "wgmma_nt_bf16_128x256x64_7a60b5", "wgmma", 1, sms, tiles_128x256, -(-k // 64),
            k * 32768, tiles_128x256 * k * 768, operands, stores,
        )
        choice = Choice(
            21, ("realign_b16x2_d789c8", "wgmma_nt_bf16_128x256x64_7a60b5"),
            (-(-pieces_m_k8 // 512) + -(-pieces_n_k8 // 512), min(tiles_128x256, sms // 1) * 1),
            (pieces_m_k8 * 16, pieces_n_k8 * 16),
        )
        yield Candidate(us, choice)
    # 22: A off 16 bytes: copied first
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
            "wgmma_nt_bf16_128x128x64_14d5e4", "wgmma", 1, sms, tiles_128x128, -(-k // 64),
            k * 16384, tiles_128x128 * k * 512, operands, stores,
        )
        choice = Choice(
            22, ("realign_b16x1_7953b4", "wgmma_nt_bf16_128x128x64_14d5e4"),
            (-(-pieces_m_k8 // 512), min(tiles_128x128, sms // 1) * 1), (pieces_m_k8 * 16,),
        )
        yield Candidate(us, choice)
    # 23: B off 16 bytes: copied first
    if (
        arch in SOME_1
        and pieces_n_k8 * 16 <= 268435456 and align_a >= 16 and chunks <= 1 and sms >= 1
        and m + 128 <= 2147483647 and n + 128 <= 2147483647 and k + 64 <= 2147483647
        and tiles_128x128 + sms <= 4294967295 and -(-n // 128) * 8 <= 4294967295
    ):
        us = time(
            "realign_b16x1_7953b4", "fma", 8, sms, -(-pieces_n_k8 // 512), 1, 0, operands_2,
            operands_2, operands_2,
        )
        us += time(
            "wgmma_nt_bf16_128x128x64_14d5e4", "wgmma", 1, sms, tiles_128x128, -(-k // 64),
            k * 16384, tiles_128x128 * k * 512, operands, stores,
        )
        choice = Choice(
            23, ("realign_b16x1_7953b4", "wgmma_nt_bf16_128x128x64_14d5e4"),
            (-(-pieces_n_k8 // 512), min(tiles_128x128, sms // 1) * 1), (pieces_n_k8 * 16,),
        )
        yield Candidate(us, choice)
    # 24: A and B off 16 bytes: copied first
    if (
        arch in SOME_1
        and pieces_m_k8 * 16 <= 268435456 and pieces_n_k8 * 16 <= 268435456 and chunks <= 1
        and sms >= 1 and m + 128 <= 2147483647 and n + 128 <= 2147483647 and k + 64 <= 2147483647
        and tiles_128x128 + sms <= 4294967295 and -(-n // 128) * 8 <= 4294967295
    ):
        us = time(
            "realign_b16x2_d789c8", "fma", 8, sms, -(-pieces_m_k8 // 512) + -(-pieces_n_k8 // 512),
            1, 0, operands_3, operands_3, operands_3,
        )
        us += time(
            "wgmma_nt_bf16_128x128x64_14d5e4", "wgmma", 1, sms, tiles_128x128, -(-k // 64),
            k * 16384, tiles_128x128 * k * 512, operands, stores,
        )
        choice = Choice(
            24, ("realign_b16x2_d789c8", "wgmma_nt_bf16_128x128x64_14d5e4"),
            (-(-pieces_m_k8 // 512) + -(-pieces_n_k8 // 512), min(tiles_128x128, sms // 1) * 1),
            (pieces_m_k8 * 16, pieces_n_k8 * 16),
        )
        yield Candidate(us, choice)
    # 25: A off 16 bytes: copied first
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
            "wgmma_nt_bf16_64x64x64_15e6a1", "wgmma", 1, sms, tiles_64x64, -(-k // 64), k * 4096,
            tiles_64x64 * k * 256, operands, stores,
        )
        choice = Choice(
            25, ("realign_b16x1_7953b4", "wgmma_nt_bf16_64x64x64_15e6a1"),
            (-(-pieces_m_k8 // 512), min(tiles_64x64, sms // 1) * 1), (pieces_m_k8 * 16,),
        )
        yield Candidate(us, choice)
    # 26: B off 16 bytes: copied first
    if (
        arch in SOME_1
        and pieces_n_k8 * 16 <= 268435456 and align_a >= 16 and chunks <= 1 and sms >= 1
        and m + 64 <= 2147483647 and n + 64 <= 2147483647 and k + 64 <= 2147483647
        and tiles_64x64 + sms <= 4294967295 and -(-n // 64) * 8 <= 4294967295
    ):
        us = time(
            "realign_b16x1_7953b4", "fma", 8, sms, -(-pieces_n_k8 // 512), 1, 0, operands_2,
            operands_2, operands_2,
        )
        us += time(
            "wgmma_nt_bf16_64x64x64_15e6a1", "wgmma", 1, sms, tiles_64x64, -(-k // 64), k * 4096,
            tiles_64x64 * k * 256, operands, stores,
        )
        choice = Choice(
            26, ("realign_b16x1_7953b4", "wgmma_nt_bf16_64x64x64_15e6a1"),
            (-(-pieces_n_k8 // 512), min(tiles_64x64, sms // 1) * 1), (pieces_n_k8 * 16,),
        )
        yield Candidate(us, choice)
    # 27: A and B off 16 bytes: copied first
    if (
        arch in SOME_1
        and pieces_m_k8 * 16 <= 268435456 and pieces_n_k8 * 16 <= 268435456 and chunks <= 1
        and sms >= 1 and m + 64 <= 2147483647 and n + 64 <= 2147483647 and k + 64 <= 2147483647
        and tiles_64x64 + sms <= 4294967295 and -(-n // 64) * 8 <= 4294967295
    ):
        us = time(
            "realign_b16x2_d789c8", "fma", 8, sms, -(-pieces_m_k8 // 512) + -(-pieces_n_k8 // 512),
            1, 0, operands_3, operands_3, operands_3,
        )
        us += time(
            "wgmma_nt_bf16_64x64x64_15e6a1", "wgmma", 1, sms, tiles_64x64, -(-k // 64), k * 4096,
            tiles_64x64 * k * 256, operands, stores,
        )
        choice = Choice(
            27, ("realign_b16x2_d789c8", "wgmma_nt_bf16_64x64x64_15e6a1"),
            (-(-pieces_m_k8 // 512) + -(-pieces_n_k8 // 512), min(tiles_64x64, sms // 1) * 1),
            (pieces_m_k8 * 16, pieces_n_k8 * 16),
        )
        yield Candidate(us, choice)
    # 28: A off 16 bytes: copied first
    if (
        pieces_m_k8 * 16 <= 268435456 and align_b >= 16 and chunks <= 1
        and tiles_128x128 <= 2147483647
    ):
        us = time(
            "realign_b16x1_7953b4", "fma", 8, sms, -(-pieces_m_k8 // 512), 1, 0, operands_1,
            operands_1, operands_1,
        )
        us += time(
            "mma_nt_bf16_128x128x64_043f53", "mma", 2, sms, tiles_128x128, -(-k // 64), k * 16384,
            tiles_128x128 * k * 512, operands, stores,
        )
        choice = Choice(
            28, ("realign_b16x1_7953b4", "mma_nt_bf16_128x128x64_043f53"),
            (-(-pieces_m_k8 // 512), tiles_128x128), (pieces_m_k8 * 16,),
        )
        yield Candidate(us, choice)
    # 29: B off 16 bytes: copied first
    if (
        pieces_n_k8 * 16 <= 268435456 and align_a >= 16 and chunks <= 1
        and tiles_128x128 <= 2147483647
    ):
        us = time(
            "realign_b16x1_7953b4", "fma", 8, sms, -(-pieces_n_k8 // 512), 1, 0, operands_2,
            operands_2, operands_2,
        )
        us += time(
            "mma_nt_bf16_128x128x64_043f53", "mma", 2, sms, tiles_128x128, -(-k // 64), k * 16384,
            tiles_128x128 * k * 512, operands, stores,
        )
        choice = Choice(
            29, ("realign_b16x1_7953b4", "mma_nt_bf16_128x128x64_043f53"),
            (-(-pieces_n_k8 // 512), tiles_128x128), (pieces_n_k8 * 16,),
        )
        yield Candidate(us, choice)
    # 30: A and B off 16 bytes: copied first
    if (
        pieces_m_k8 * 16 <= 268435456 and pieces_n_k8 * 16 <= 268435456 and chunks <= 1
        and tiles_128x128 <= 2147483647
    ):
        us = time(
            "realign_b16x2_d789c8", "fma", 8, sms, -(-pieces_m_k8 // 512) + -(-pieces_n_k8 // 512),
            1, 0, operands_3, operands_3, operands_3,
        )
        us += time(
            "mma_nt_bf16_128x128x64_043f53", "mma", 2, sms, tiles_128x128, -(-k // 64), k * 16384,
            tiles_128x128 * k * 512, operands, stores,
        )
        choice = Choice(
            30, ("realign_b16x2_d789c8", "mma_nt_bf16_128x128x64_043f53"),
            (-(-pieces_m_k8 // 512) + -(-pieces_n_k8 // 512), tiles_128x128),
            (pieces_m_k8 * 16, pieces_n_k8 * 16),
        )
        yield Candidate(us, choice)
    # 31: operands off 16 bytes
    if align_a >= 4 and align_b >= 4 and chunks <= 1 and tiles_16x32 <= 2147483647:
        us = time(
            "mma_nt_bf16_16x32x128_4975cf", "mma", 1, sms, tiles_16x32, -(-k // 128), k * 512,
            tiles_16x32 * k * 96, operands, stores,
        )
        yield Candidate(us, Choice(31, ("mma_nt_bf16_16x32x128_4975cf",), (tiles_16x32,), ()))
    # 32: operands off 16 bytes
    if chunks <= 1 and tiles_16x32 <= 2147483647:
        us = time(
            "mma_nt_bf16_16x32x128_ed1036", "mma", 1, sms, tiles_16x32, -(-k // 128), k * 512,
            tiles_16x32 * k * 96, operands, stores,
        )
        yield Candidate(us, Choice(32, ("mma_nt_bf16_16x32x128_ed1036",), (tiles_16x32,), ()))
    # 33: operands off 16 bytes
    if align_a >= 4 and align_b >= 4 and chunks <= 1 and tiles_64x64 <= 2147483647:
        us = time(
            "mma_nt_bf16_64x64x32_4cffaa", "mma", 4, sms, tiles_64x64, -(-k // 32), k * 4096,
            tiles_64x64 * k * 256, operands, stores,
        )
        yield Candidate(us, Choice(33, ("mma_nt_bf16_64x64x32_4cffaa",), (tiles_64x64,), ()))
    # 34: everything else: any size, alignment and plan
    if chunks <= 1:
        us = time(
            "mma_nt_bf16_64x64x32_6aedbc", "mma", 4, sms, tiles_64x64, -(-k // 32), k * 4096,
            tiles_64x64 * k * 256, operands, stores,
        )
        choice = Choice(34, ("mma_nt_bf16_64x64x32_6aedbc",), (min(tiles_64x64, 2147483647),), ())
        yield Candidate(us, choice)
