"""Dispatch of TN rows half tc: products under the plan 'rows'.

Generated from ptxgen.tiles.TABLES["TN", "rows", "half", "tc"]; do not edit.
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
            "mma_tn_bf16_8x64x128_9f8b63", "mma", 1, sms, tiles_8x64, -(-k // 128), k * 512,
            tiles_8x64 * k * 144, operands, stores,
        )
        yield Candidate(us, Choice(0, ("mma_tn_bf16_8x64x128_9f8b63",), (tiles_8x64,), ()))
    tiles_8x32 = -(-m // 8) * -(-n // 32)
    # 1: few rows: the weight streams once
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_8x32 <= 2147483647:
        us = time(
            "mma_tn_bf16_8x32x128_acf656", "mma", 1, sms, tiles_8x32, -(-k // 128), k * 256,
            tiles_8x32 * k * 80, operands, stores,
        )
        yield Candidate(us, Choice(1, ("mma_tn_bf16_8x32x128_acf656",), (tiles_8x32,), ()))
    tiles_16x32 = -(-m // 16) * -(-n // 32)
    # 2: few rows: the weight streams once
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_16x32 <= 2147483647:
        us = time(
            "mma_tn_bf16_16x32x128_845f0d", "mma", 1, sms, tiles_16x32, -(-k // 128), k * 512,
            tiles_16x32 * k * 96, operands, stores,
        )
        yield Candidate(us, Choice(2, ("mma_tn_bf16_16x32x128_845f0d",), (tiles_16x32,), ()))
    tiles_32x32 = -(-m // 32) * -(-n // 32)
    # 3: few rows: the weight streams once
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_32x32 <= 2147483647:
        us = time(
            "mma_tn_bf16_32x32x128_9dae1a", "mma", 1, sms, tiles_32x32, -(-k // 128), k * 1024,
            tiles_32x32 * k * 128, operands, stores,
        )
        yield Candidate(us, Choice(3, ("mma_tn_bf16_32x32x128_9dae1a",), (tiles_32x32,), ()))
    tiles_32x64 = -(-m // 32) * -(-n // 64)
    # 4: few rows: the weight streams once
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_32x64 <= 2147483647
    ):
        us = time(
            "mma_tn_bf16_32x64x128_d7fc82", "mma", 1, sms, tiles_32x64, -(-k // 128), k * 2048,
            tiles_32x64 * k * 192, operands, stores,
        )
        yield Candidate(us, Choice(4, ("mma_tn_bf16_32x64x128_d7fc82",), (tiles_32x64,), ()))
    tiles_64x128 = -(-m // 64) * -(-n // 128)
    # 5: few rows: the weight streams once
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_64x128 <= 2147483647
    ):
        us = time(
            "mma_tn_bf16_64x128x64_f8b3d3", "mma", 1, sms, tiles_64x128, -(-k // 64), k * 8192,
            tiles_64x128 * k * 384, operands, stores,
        )
        yield Candidate(us, Choice(5, ("mma_tn_bf16_64x128x64_f8b3d3",), (tiles_64x128,), ()))
    tiles_128x256 = -(-m // 128) * -(-n // 256)
    # 6: many rows, by wgmma
    if (
        arch in SOME_1
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 256 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x256 + sms <= 4294967295
        and -(-n // 256) * 16 <= 4294967295
    ):
        us = time(
            "wgmma_tn_bf16_128x256x64_9bf432", "wgmma", 1, sms, tiles_128x256, -(-k // 64),
            k * 32768, tiles_128x256 * k * 768, operands, stores,
        )
        choice = Choice(
            6, ("wgmma_tn_bf16_128x256x64_9bf432",), (min(tiles_128x256, sms // 1) * 1,), (),
        )
        yield Candidate(us, choice)
    tiles_192x128 = -(-m // 192) * -(-n // 128)
    # 7: many rows, by wgmma
    if (
        arch in SOME_1
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 192 <= 2147483647
        and n + 128 <= 2147483647 and k + 64 <= 2147483647 and tiles_192x128 + sms <= 4294967295
        and -(-n // 128) * 8 <= 4294967295
    ):
        us = time(
            "wgmma_tn_bf16_192x128x64_d6d4e6", "wgmma", 1, sms, tiles_192x128, -(-k // 64),
            k * 24576, tiles_192x128 * k * 640, operands, stores,
        )
        choice = Choice(
            7, ("wgmma_tn_bf16_192x128x64_d6d4e6",), (min(tiles_192x128, sms // 1) * 1,), (),
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
            "wgmma_tn_bf16_192x128x64_5353a2", "wgmma", 1, sms, tiles_192x256 * 2, -(-k // 64),
            k * 24576, tiles_192x256 * k * 896, operands, stores,
        )
        choice = Choice(
            8, ("wgmma_tn_bf16_192x128x64_5353a2",), (min(tiles_192x256, sms // 2) * 2,), (),
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
            "wgmma_tn_bf16_128x224x64_5bb08c", "wgmma", 1, sms, tiles_128x224, -(-k // 64),
            k * 28672, tiles_128x224 * k * 704, operands, stores,
        )
        choice = Choice(
            9, ("wgmma_tn_bf16_128x224x64_5bb08c",), (min(tiles_128x224, sms // 1) * 1,), (),
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
            "wgmma_tn_bf16_128x128x64_89114b", "wgmma", 1, sms, tiles_128x128, -(-k // 64),
            k * 16384, tiles_128x128 * k * 512, operands, stores,
        )
        choice = Choice(
            10, ("wgmma_tn_bf16_128x128x64_89114b",), (min(tiles_128x128, sms // 1) * 1,), (),
        )
        yield Candidate(us, choice)
    tiles_192x96 = -(-m // 192) * -(-n // 96)
    # 11: many rows, by wgmma
    if (
        arch in SOME_1
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 192 <= 2147483647
        and n + 96 <= 2147483647 and k + 64 <= 2147483647 and tiles_192x96 + sms <= 4294967295
        and -(-n // 96) * 8 <= 4294967295
    ):
        us = time(
            "wgmma_tn_bf16_192x96x64_205679", "wgmma", 1, sms, tiles_192x96, -(-k // 64), k * 18432,
            tiles_192x96 * k * 576, operands, stores,
        )
        choice = Choice(
            11, ("wgmma_tn_bf16_192x96x64_205679",), (min(tiles_192x96, sms // 1) * 1,), (),
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
            "wgmma_tn_bf16_128x64x64_701c99", "wgmma", 1, sms, tiles_128x64, -(-k // 64), k * 8192,
            tiles_128x64 * k * 384, operands, stores,
        )
        choice = Choice(
            12, ("wgmma_tn_bf16_128x64x64_701c99",), (min(tiles_128x64, sms // 1) * 1,), (),
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
            "wgmma_tn_bf16_64x128x64_af4e2a", "wgmma", 1, sms, tiles_64x128, -(-k // 64), k * 8192,
            tiles_64x128 * k * 384, operands, stores,
        )
        choice = Choice(
            13, ("wgmma_tn_bf16_64x128x64_af4e2a",), (min(tiles_64x128, sms // 1) * 1,), (),
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
            "wgmma_tn_bf16_64x64x64_a5ae8e", "wgmma", 1, sms, tiles_64x64, -(-k // 64), k * 4096,
            tiles_64x64 * k * 256, operands, stores,
        )
        choice = Choice(
            14, ("wgmma_tn_bf16_64x64x64_a5ae8e",), (min(tiles_64x64, sms // 1) * 1,), (),
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
            "wgmma_tn_bf16_64x32x128_a91cb8", "wgmma", 1, sms, tiles_64x32, -(-k // 128), k * 2048,
            tiles_64x32 * k * 192, operands, stores,
        )
        choice = Choice(
            15, ("wgmma_tn_bf16_64x32x128_a91cb8",), (min(tiles_64x32, sms // 1) * 1,), (),
        )
        yield Candidate(us, choice)
    tiles_64x16 = -(-m // 64) * -(-n // 16)
    # 16: many rows, by wgmma
    if (
        arch in SOME_1
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 16 <= 2147483647 and k + 128 <= 2147483647 and tiles_64x16 + sms <= 4294967295
        and -(-n // 16) * 8 <= 4294967295
    ):
        us = time(
            "wgmma_tn_bf16_64x16x128_534e05", "wgmma", 1, sms, tiles_64x16, -(-k // 128), k * 1024,
            tiles_64x16 * k * 160, operands, stores,
        )
        choice = Choice(
            16, ("wgmma_tn_bf16_64x16x128_534e05",), (min(tiles_64x16, sms // 1) * 1,), (),
        )
        yield Candidate(us, choice)
    # 17: many rows, by mma
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_64x64 <= 2147483647:
        us = time(
            "mma_tn_bf16_64x64x64_2f098b", "mma", 3, sms, tiles_64x64, -(-k // 64), k * 4096,
            tiles_64x64 * k * 256, operands, stores,
        )
        yield Candidate(us, Choice(17, ("mma_tn_bf16_64x64x64_2f098b",), (tiles_64x64,), ()))
    # 18: many rows, by mma
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_128x128 <= 2147483647:
        us = time(
            "mma_tn_bf16_128x128x64_cc097b", "mma", 2, sms, tiles_128x128, -(-k // 64), k * 16384,
            tiles_128x128 * k * 512, operands, stores,
        )
        yield Candidate(us, Choice(18, ("mma_tn_bf16_128x128x64_cc097b",), (tiles_128x128,), ()))
    operands_1 = 0 + k * -(-m // 8) * 16
    pieces_k_m8 = k * -(-m // 8)
    # 19: A off 16 bytes: copied first
    if (
        arch in SOME_1
        and pieces_k_m8 * 16 <= 268435456 and align_b >= 16 and chunks <= 1 and sms >= 1
        and m + 128 <= 2147483647 and n + 256 <= 2147483647 and k + 64 <= 2147483647
        and tiles_128x256 + sms <= 4294967295 and -(-n // 256) * 16 <= 4294967295
    ):
        us = time(
            "realign_b16x1_7953b4", "fma", 8, sms, -(-pieces_k_m8 // 512), 1, 0, operands_1,
            operands_1, operands_1,
        )
        us += time(
            "wgmma_tn_bf16_128x256x64_9bf432", "wgmma", 1, sms, tiles_128x256, -(-k // 64),
            k * 32768, tiles_128x256 * k * 768, operands, stores,
        )
        choice = Choice(
            19, ("realign_b16x1_7953b4", "wgmma_tn_bf16_128x256x64_9bf432"),
            (-(-pieces_k_m8 // 512), min(tiles_128x256, sms // 1) * 1), (pieces_k_m8 * 16,),
        )
        yield Candidate(us, choice)
    operands_2 = 0 + k * -(-n // 8) * 16
    pieces_k_n8 = k * -(-n // 8)
    # 20: B off 16 bytes: copied first
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
            "wgmma_tn_bf16_128x256x64_9bf432", "wgmma", 1, sms, tiles_128x256, -(-k // 64),
            k * 32768, tiles_128x256 * k * 768, operands, stores,
        )
        choice = Choice(
            20, ("realign_b16x1_7953b4", "wgmma_tn_bf16_128x256x64_9bf432"),
            (-(-pieces_k_n8 // 512), min(tiles_128x256, sms // 1) * 1), (pieces_k_n8 * 16,),
        )
        yield Candidate(us, choice)
    operands_3 = 0 + k * -(-m // 8) * 16 + k * -(-n // 8) * 16
    # 21: A and B off 16 bytes: copied first
    if (
        arch in SOME_1
        and pieces_k_m8 * 16 <= 268435456 and pieces_k_n8 * 16 <= 268435456 and chunks <= 1
        and sms >= 1 and m + 128 <= 2147483647 and n + 256 <= 2147483647 and k + 64 <= 2147483647
        and tiles_128x256 + sms <= 4294967295 and -(-n // 256) * 16 <= 4294967295
    ):
        us = time(
            "realign_b16x2_d789c8", "fma", 8, sms, -(-pieces_k_m8 // 512) + -(-pieces_k_n8 // 512),
            1, 0, operands_3, operands_3, operands_3,
        )
        us += time(
            "wgmma_tn_bf16_128x256x64_9bf432", "wgmma", 1, sms, tiles_128x256, -(-k // 64),
            k * 32768, tiles_128x256 * k * 768, operands, stores,
        )
        choice = Choice(
            21, ("realign_b16x2_d789c8", "wgmma_tn_bf16_128x256x64_9bf432"),
            (-(-pieces_k_m8 // 512) + -(-pieces_k_n8 // 512), min(tiles_128x256, sms // 1) * 1),
            (pieces_k_m8 * 16, pieces_k_n8 * 16),
        )
        yield Candidate(us, choice)
    # 22: A off 16 bytes: copied first
    if (
        arch in SOME_1
        and pieces_k_m8 * 16 <= 268435456 and align_b >= 16 and chunks <= 1 and sms >= 1
        and m + 128 <= 2147483647 and n + 128 <= 2147483647 and k + 64 <= 2147483647
        and tiles_128x128 + sms <= 4294967295 and -(-n // 128) * 8 <= 4294967295
    ):
        us = time(
            "realign_b16x1_7953b4", "fma", 8, sms, -(-pieces_k_m8 // 512), 1, 0, operands_1,
            operands_1, operands_1,
        )
        us += time(
            "wgmma_tn_bf16_128x128x64_89114b", "wgmma", 1, sms, tiles_128x128, -(-k // 64),
            k * 16384, tiles_128x128 * k * 512, operands, stores,
        )
        choice = Choice(
            22, ("realign_b16x1_7953b4", "wgmma_tn_bf16_128x128x64_89114b"),
            (-(-pieces_k_m8 // 512), min(tiles_128x128, sms // 1) * 1), (pieces_k_m8 * 16,),
        )
        yield Candidate(us, choice)
    # 23: B off 16 bytes: copied first
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
            "wgmma_tn_bf16_128x128x64_89114b", "wgmma", 1, sms, tiles_128x128, -(-k // 64),
            k * 16384, tiles_128x128 * k * 512, operands, stores,
        )
        choice = Choice(
            23, ("realign_b16x1_7953b4", "wgmma_tn_bf16_128x128x64_89114b"),
            (-(-pieces_k_n8 // 512), min(tiles_128x128, sms // 1) * 1), (pieces_k_n8 * 16,),
        )
        yield Candidate(us, choice)
    # 24: A and B off 16 bytes: copied first
    if (
        arch in SOME_1
        and pieces_k_m8 * 16 <= 268435456 and pieces_k_n8 * 16 <= 268435456 and chunks <= 1
        and sms >= 1 and m + 128 <= 2147483647 and n + 128 <= 2147483647 and k + 64 <= 2147483647
        and tiles_128x128 + sms <= 4294967295 and -(-n // 128) * 8 <= 4294967295
    ):
        us = time(
            "realign_b16x2_d789c8", "fma", 8, sms, -(-pieces_k_m8 // 512) + -(-pieces_k_n8 // 512),
            1, 0, operands_3, operands_3, operands_3,
        )
        us += time(
            "wgmma_tn_bf16_128x128x64_89114b", "wgmma", 1, sms, tiles_128x128, -(-k // 64),
            k * 16384, tiles_128x128 * k * 512, operands, stores,
        )
        choice = Choice(
            24, ("realign_b16x2_d789c8", "wgmma_tn_bf16_128x128x64_89114b"),
            (-(-pieces_k_m8 // 512) + -(-pieces_k_n8 // 512), min(tiles_128x128, sms // 1) * 1),
            (pieces_k_m8 * 16, pieces_k_n8 * 16),
        )
        yield Candidate(us, choice)
    # 25: A off 16 bytes: copied first
    if (
        arch in SOME_1
        and pieces_k_m8 * 16 <= 268435456 and align_b >= 16 and chunks <= 1 and sms >= 1
        and m + 64 <= 2147483647 and n + 64 <= 2147483647 and k + 64 <= 2147483647
        and tiles_64x64 + sms <= 4294967295 and -(-n // 64) * 8 <= 4294967295
    ):
        us = time(
            "realign_b16x1_7953b4", "fma", 8, sms, -(-pieces_k_m8 // 512), 1, 0, operands_1,
            operands_1, operands_1,
        )
        us += time(
            "wgmma_tn_bf16_64x64x64_a5ae8e", "wgmma", 1, sms, tiles_64x64, -(-k // 64), k * 4096,
            tiles_64x64 * k * 256, operands, stores,
        )
        choice = Choice(
            25, ("realign_b16x1_7953b4", "wgmma_tn_bf16_64x64x64_a5ae8e"),
            (-(-pieces_k_m8 // 512), min(tiles_64x64, sms // 1) * 1), (pieces_k_m8 * 16,),
        )
        yield Candidate(us, choice)
    # 26: B off 16 bytes: copied first
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
            "wgmma_tn_bf16_64x64x64_a5ae8e", "wgmma", 1, sms, tiles_64x64, -(-k // 64), k * 4096,
            tiles_64x64 * k * 256, operands, stores,
        )
        choice = Choice(
            26, ("realign_b16x1_7953b4", "wgmma_tn_bf16_64x64x64_a5ae8e"),
            (-(-pieces_k_n8 // 512), min(tiles_64x64, sms // 1) * 1), (pieces_k_n8 * 16,),
        )
        yield Candidate(us, choice)
    # 27: A and B off 16 bytes: copied first
    if (
        arch in SOME_1
        and pieces_k_m8 * 16 <= 268435456 and pieces_k_n8 * 16 <= 268435456 and chunks <= 1
        and sms >= 1 and m + 64 <= 2147483647 and n + 64 <= 2147483647 and k + 64 <= 2147483647
        and tiles_64x64 + sms <= 4294967295 and -(-n // 64) * 8 <= 4294967295
    ):
        us = time(
            "realign_b16x2_d789c8", "fma", 8, sms, -(-pieces_k_m8 // 512) + -(-pieces_k_n8 // 512),
            1, 0, operands_3, operands_3, operands_3,
        )
        us += time(
            "wgmma_tn_bf16_64x64x64_a5ae8e", "wgmma", 1, sms, tiles_64x64, -(-k // 64), k * 4096,
            tiles_64x64 * k * 256, operands, stores,
        )
        choice = Choice(
            27, ("realign_b16x2_d789c8", "wgmma_tn_bf16_64x64x64_a5ae8e"),
            (-(-pieces_k_m8 // 512) + -(-pieces_k_n8 // 512), min(tiles_64x64, sms // 1) * 1),
            (pieces_k_m8 * 16, pieces_k_n8 * 16),
        )
        yield Candidate(us, choice)
    # 28: A off 16 bytes: copied first
    if (
        pieces_k_m8 * 16 <= 268435456 and align_b >= 16 and chunks <= 1
        and tiles_128x128 <= 2147483647
    ):
        us = time(
            "realign_b16x1_7953b4", "fma", 8, sms, -(-pieces_k_m8 // 512), 1, 0, operands_1,
            operands_1, operands_1,
        )
        us += time(
            "mma_tn_bf16_128x128x64_cc097b", "mma", 2, sms, tiles_128x128, -(-k // 64), k * 16384,
            tiles_128x128 * k * 512, operands, stores,
        )
        choice = Choice(
            28, ("realign_b16x1_7953b4", "mma_tn_bf16_128x128x64_cc097b"),
            (-(-pieces_k_m8 // 512), tiles_128x128), (pieces_k_m8 * 16,),
        )
        yield Candidate(us, choice)
    # 29: B off 16 bytes: copied first
    if (
        pieces_k_n8 * 16 <= 268435456 and align_a >= 16 and chunks <= 1
        and tiles_128x128 <= 2147483647
    ):
        us = time(
            "realign_b16x1_7953b4", "fma", 8, sms, -(-pieces_k_n8 // 512), 1, 0, operands_2,
            operands_2, operands_2,
        )
        us += time(
            "mma_tn_bf16_128x128x64_cc097b", "mma", 2, sms, tiles_128x128, -(-k // 64), k * 16384,
            tiles_128x128 * k * 512, operands, stores,
        )
        choice = Choice(
            29, ("realign_b16x1_7953b4", "mma_tn_bf16_128x128x64_cc097b"),
            (-(-pieces_k_n8 // 512), tiles_128x128), (pieces_k_n8 * 16,),
        )
        yield Candidate(us, choice)
    # 30: A and B off 16 bytes: copied first
    if (
        pieces_k_m8 * 16 <= 268435456 and pieces_k_n8 * 16 <= 268435456 and chunks <= 1
        and tiles_128x128 <= 2147483647
    ):
        us = time(
            "realign_b16x2_d789c8", "fma", 8, sms, -(-pieces_k_m8 // 512) + -(-pieces_k_n8 // 512),
            1, 0, operands_3, operands_3, operands_3,
        )
        us += time(
            "mma_tn_bf16_128x128x64_cc097b", "mma", 2, sms, tiles_128x128, -(-k // 64), k * 16384,
            tiles_128x128 * k * 512, operands, stores,
        )
        choice = Choice(
            30, ("realign_b16x2_d789c8", "mma_tn_bf16_128x128x64_cc097b"),
            (-(-pieces_k_m8 // 512) + -(-pieces_k_n8 // 512), tiles_128x128),
            (pieces_k_m8 * 16, pieces_k_n8 * 16),
        )
        yield Candidate(us, choice)
    # 31: operands off 16 bytes
    if align_a >= 4 and align_b >= 16 and chunks <= 1 and tiles_8x32 <= 2147483647:
        us = time(
            "mma_tn_bf16_8x32x256_4cc775", "mma", 1, sms, tiles_8x32, -(-k // 256), k * 256,
            tiles_8x32 * k * 80, operands, stores,
        )
        yield Candidate(us, Choice(31, ("mma_tn_bf16_8x32x256_4cc775",), (tiles_8x32,), ()))
    # 32: operands off 16 bytes
    if align_a >= 4 and align_b >= 4 and chunks <= 1 and tiles_16x32 <= 2147483647:
        us = time(
            "mma_tn_bf16_16x32x128_31ca24", "mma", 1, sms, tiles_16x32, -(-k // 128), k * 512,
            tiles_16x32 * k * 96, operands, stores,
        )
        yield Candidate(us, Choice(32, ("mma_tn_bf16_16x32x128_31ca24",), (tiles_16x32,), ()))
    # 33: operands off 16 bytes
    if chunks <= 1 and tiles_16x32 <= 2147483647:
        us = time(
            "mma_tn_bf16_16x32x128_f3a7d2", "mma", 1, sms, tiles_16x32, -(-k // 128), k * 512,
            tiles_16x32 * k * 96, operands, stores,
        )
        yield Candidate(us, Choice(33, ("mma_tn_bf16_16x32x128_f3a7d2",), (tiles_16x32,), ()))
    # 34: operands off 16 bytes
    if align_a >= 4 and align_b >= 4 and chunks <= 1 and tiles_64x64 <= 2147483647:
        us = time(
            "mma_tn_bf16_64x64x32_215e25", "mma", 4, sms, tiles_64x64, -(-k // 32), k * 4096,
            tiles_64x64 * k * 256, operands, stores,
        )
        yield Candidate(us, Choice(34, ("mma_tn_bf16_64x64x32_215e25",), (tiles_64x64,), ()))
    # 35: everything else: any size, alignment and plan
    if chunks <= 1:
        us = time(
            "mma_tn_bf16_64x64x32_b35a87", "mma", 4, sms, tiles_64x64, -(-k // 32), k * 4096,
            tiles_64x64 * k * 256, operands, stores,
        )
        choice = Choice(35, ("mma_tn_bf16_64x64x32_b35a87",), (min(tiles_64x64, 2147483647),), ())
        yield Candidate(us, choice)
