"""Dispatch of NT rows f32 simt: products under the plan 'rows'.

Generated from ptxgen.tiles.TABLES["NT", "rows", "f32", "simt"]; do not edit.
Regenerate: ptxgen generate
"""

from ptxgen.dispatch.choice import Choice, Dispatch


def sm_80(m: int, n: int, k: int, sms: int, align_a: int, align_b: int) -> Choice | None:
    """For sm_80, sm_87, sm_90, sm_100, sm_103, sm_110."""
    chunk = max(1, min(k, -(-k // 8 // 16) * 16 if n <= 4096 and k >= 2048 else k))
    chunks = -(-k // chunk)
    tiles_2x16 = -(-m // 2) * -(-n // 16)
    # 0: M <= 2: chunks side by side
    if (
        align_a >= 16 and align_b >= 16 and tiles_2x16 <= 2147483647 and chunks > 1 and m <= 2
        and n <= 2048
    ):
        return Choice(0, ("simt_nt_f32_2x16x64_dba5f6",), (tiles_2x16,), ())
    tiles_2x32 = -(-m // 2) * -(-n // 32)
    # 1: M <= 2: chunks side by side
    if align_a >= 16 and align_b >= 16 and tiles_2x32 <= 2147483647 and chunks > 1 and m <= 2:
        return Choice(1, ("simt_nt_f32_2x32x32_947945",), (tiles_2x32,), ())
    tiles_4x16 = -(-m // 4) * -(-n // 16)
    # 2: M <= 4: chunks side by side
    if (
        align_a >= 16 and align_b >= 16 and tiles_4x16 <= 2147483647 and chunks > 1 and m <= 4
        and n <= 2048
    ):
        return Choice(2, ("simt_nt_f32_4x16x32_362278",), (tiles_4x16,), ())
    tiles_4x32 = -(-m // 4) * -(-n // 32)
    # 3: M <= 4: chunks side by side
    if align_a >= 16 and align_b >= 16 and tiles_4x32 <= 2147483647 and chunks > 1 and m <= 4:
        return Choice(3, ("simt_nt_f32_4x32x32_27fbce",), (tiles_4x32,), ())
    tiles_8x16 = -(-m // 8) * -(-n // 16)
    # 4: M <= 8: chunks side by side
    if align_a >= 16 and align_b >= 16 and tiles_8x16 <= 2147483647 and chunks > 1 and m <= 8:
        return Choice(4, ("simt_nt_f32_8x16x32_9aefbe",), (tiles_8x16,), ())
    tiles_16x16 = -(-m // 16) * -(-n // 16)
    # 5: M <= 16: chunks side by side
    if align_a >= 16 and align_b >= 16 and tiles_16x16 <= 2147483647 and chunks > 1 and m <= 16:
        return Choice(5, ("simt_nt_f32_16x16x32_9d8f7e",), (tiles_16x16,), ())
    tiles_32x8 = -(-m // 32) * -(-n // 8)
    # 6: M <= 32: chunks side by side
    if (
        align_a >= 16 and align_b >= 16 and tiles_32x8 <= 2147483647 and chunks > 1 and m <= 32
        and n <= 2048
    ):
        return Choice(6, ("simt_nt_f32_32x8x16_ac5e9e",), (tiles_32x8,), ())
    tiles_32x32 = -(-m // 32) * -(-n // 32)
    # 7: M <= 32: chunks side by side
    if align_a >= 16 and align_b >= 16 and tiles_32x32 <= 2147483647 and chunks > 1 and m <= 32:
        return Choice(7, ("simt_nt_f32_32x32x16_765a7e",), (tiles_32x32,), ())
    pieces_m_k4 = m * -(-k // 4)
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    # 8: A off 16 bytes: copied, since the product is much more work
    if (
        pieces_m_k4 * 16 <= 268435456 and align_b >= 16 and chunks <= 1
        and tiles_128x128 <= 2147483647 and m * n * k >= 268435456 and sms * 6 <= tiles_128x128 * 4
        and align_a < 16 and n >= 256
    ):
        return Choice(
            8, ("realign_b32x1_92a718", "simt_nt_f32_128x128x16_2949eb"),
            (-(-pieces_m_k4 // 512), tiles_128x128), (pieces_m_k4 * 16,),
            "realign_a+simt_nt_f32_128x128x16_2949eb",
        )
    pieces_n_k4 = n * -(-k // 4)
    # 9: B off 16 bytes: copied, since the product is much more work
    if (
        pieces_n_k4 * 16 <= 268435456 and align_a >= 16 and chunks <= 1
        and tiles_128x128 <= 2147483647 and m * n * k >= 268435456 and sms * 6 <= tiles_128x128 * 4
        and align_b < 16 and m >= 256
    ):
        return Choice(
            9, ("realign_b32x1_92a718", "simt_nt_f32_128x128x16_2949eb"),
            (-(-pieces_n_k4 // 512), tiles_128x128), (pieces_n_k4 * 16,),
            "realign_b+simt_nt_f32_128x128x16_2949eb",
        )
    # 10: A and B off 16 bytes: copied, since the product is much more work
    if (
        pieces_m_k4 * 16 <= 268435456 and pieces_n_k4 * 16 <= 268435456 and chunks <= 1
        and tiles_128x128 <= 2147483647 and m * n * k >= 268435456 and sms * 6 <= tiles_128x128 * 4
        and align_a < 16 and align_b < 16 and n >= 256 and m >= 256
    ):
        return Choice(
            10, ("realign_b32x2_89cb89", "simt_nt_f32_128x128x16_2949eb"),
            (-(-pieces_m_k4 // 512) + -(-pieces_n_k4 // 512), tiles_128x128),
            (pieces_m_k4 * 16, pieces_n_k4 * 16), "realign_ab+simt_nt_f32_128x128x16_2949eb",
        )
    tiles_64x32 = -(-m // 64) * -(-n // 32)
    # 11: A off 16 bytes: copied, since the product is much more work
    if (
        pieces_m_k4 * 16 <= 268435456 and align_b >= 16 and tiles_64x32 <= 2147483647
        and m * n * k >= 268435456 and sms * 3 <= tiles_64x32 * 4 and align_a < 16 and n >= 256
    ):
        return Choice(
            11, ("realign_b32x1_92a718", "simt_nt_f32_64x32x16_5b298c"),
            (-(-pieces_m_k4 // 512), tiles_64x32), (pieces_m_k4 * 16,),
            "realign_a+simt_nt_f32_64x32x16_5b298c",
        )
    # 12: B off 16 bytes: copied, since the product is much more work
    if (
        pieces_n_k4 * 16 <= 268435456 and align_a >= 16 and tiles_64x32 <= 2147483647
        and m * n * k >= 268435456 and sms * 3 <= tiles_64x32 * 4 and align_b < 16 and m >= 256
    ):
        return Choice(
            12, ("realign_b32x1_92a718", "simt_nt_f32_64x32x16_5b298c"),
            (-(-pieces_n_k4 // 512), tiles_64x32), (pieces_n_k4 * 16,),
            "realign_b+simt_nt_f32_64x32x16_5b298c",
        )
    # 13: A and B off 16 bytes: copied, since the product is much more work
    if (
        pieces_m_k4 * 16 <= 268435456 and pieces_n_k4 * 16 <= 268435456
        and tiles_64x32 <= 2147483647 and m * n * k >= 268435456 and sms * 3 <= tiles_64x32 * 4
        and align_a < 16 and align_b < 16 and n >= 256 and m >= 256
    ):
        return Choice(
            13, ("realign_b32x2_89cb89", "simt_nt_f32_64x32x16_5b298c"),
            (-(-pieces_m_k4 // 512) + -(-pieces_n_k4 // 512), tiles_64x32),
            (pieces_m_k4 * 16, pieces_n_k4 * 16), "realign_ab+simt_nt_f32_64x32x16_5b298c",
        )
    # 14: the largest tile that gives 6/4 of the SMs one
    if tiles_128x128 <= 2147483647 and chunks > 1 and sms * 6 <= tiles_128x128 * 4:
        return Choice(14, ("simt_nt_f32_128x128x8_b8d6fe",), (tiles_128x128,), ())
    # 15: the largest tile that gives 3/4 of the SMs one
    if (
        align_a >= 16 and align_b >= 16 and tiles_64x32 <= 2147483647 and chunks > 1
        and sms * 3 <= tiles_64x32 * 4
    ):
        return Choice(15, ("simt_nt_f32_64x32x16_5b298c",), (tiles_64x32,), ())
    # 16: the largest tile that gives 3/4 of the SMs one
    if (
        align_a >= 16 and align_b >= 16 and tiles_32x32 <= 2147483647 and chunks > 1
        and sms * 3 <= tiles_32x32 * 4
    ):
        return Choice(16, ("simt_nt_f32_32x32x16_604682",), (tiles_32x32,), ())
    tiles_16x32 = -(-m // 16) * -(-n // 32)
    # 17: few outputs, split
    if tiles_16x32 <= 2147483647 and chunks > 1 and sms * 4 > tiles_128x128 * 4:
        return Choice(17, ("simt_nt_f32_16x32x16_87c6c1",), (tiles_16x32,), ())
    tiles_1x64 = -(-m // 1) * -(-n // 64)
    # 18: M <= 1: the weight streams once
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_1x64 <= 2147483647 and m <= 1
        and n >= 4096
    ):
        return Choice(18, ("simt_nt_f32_1x64x64_2397d3",), (tiles_1x64,), ())
    tiles_4x128 = -(-m // 4) * -(-n // 128)
    # 19: M <= 4: the weight streams once
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_4x128 <= 2147483647 and m <= 4
        and n >= 4096
    ):
        return Choice(19, ("simt_nt_f32_4x128x64_6d5f37",), (tiles_4x128,), ())
    tiles_8x128 = -(-m // 8) * -(-n // 128)
    # 20: M <= 8: the weight streams once
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_8x128 <= 2147483647 and m <= 8
        and n >= 4096
    ):
        return Choice(20, ("simt_nt_f32_8x128x64_770cd3",), (tiles_8x128,), ())
    tiles_16x128 = -(-m // 16) * -(-n // 128)
    # 21: M <= 16: the weight streams once
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_16x128 <= 2147483647 and m <= 16
        and n >= 4096
    ):
        return Choice(21, ("simt_nt_f32_16x128x64_d11885",), (tiles_16x128,), ())
    tiles_32x64 = -(-m // 32) * -(-n // 64)
    # 22: M <= 32: the weight streams once
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_32x64 <= 2147483647 and m <= 32
        and n >= 4096
    ):
        return Choice(22, ("simt_nt_f32_32x64x64_5d9b9e",), (tiles_32x64,), ())
    # 23: the largest tile that gives 6/4 of the SMs one
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_128x128 <= 2147483647
        and chunks <= 1 and sms * 6 <= tiles_128x128 * 4
    ):
        return Choice(23, ("simt_nt_f32_128x128x16_2949eb",), (tiles_128x128,), ())
    # 24: the largest tile that gives 6/4 of the SMs one
    if chunks <= 1 and tiles_128x128 <= 2147483647 and chunks <= 1 and sms * 6 <= tiles_128x128 * 4:
        return Choice(24, ("simt_nt_f32_128x128x8_e4287f",), (tiles_128x128,), ())
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 25: the largest tile that gives 4/4 of the SMs one
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_64x64 <= 2147483647
        and chunks <= 1 and sms * 4 <= tiles_64x64 * 4
    ):
        return Choice(25, ("simt_nt_f32_64x64x16_01c375",), (tiles_64x64,), ())
    # 26: the largest tile that gives 4/4 of the SMs one
    if chunks <= 1 and tiles_32x64 <= 2147483647 and chunks <= 1 and sms * 4 <= tiles_32x64 * 4:
        return Choice(26, ("simt_nt_f32_32x64x16_622c08",), (tiles_32x64,), ())
    # 27: few outputs: many small tiles shorten the wait
    if chunks <= 1 and tiles_16x32 <= 2147483647 and chunks <= 1:
        return Choice(27, ("simt_nt_f32_16x32x32_71535d",), (tiles_16x32,), ())
    # 28: everything else: any size, alignment and plan
    return Choice(28, ("simt_nt_f32_64x64x16_0a5ee2",), (min(tiles_64x64, 2147483647),), ())


def sm_86(m: int, n: int, k: int, sms: int, align_a: int, align_b: int) -> Choice | None:
    """For sm_86, sm_89, sm_120, sm_121."""
    chunk = max(1, min(k, -(-k // 8 // 16) * 16 if n <= 4096 and k >= 2048 else k))
    chunks = -(-k // chunk)
    tiles_4x16 = -(-m // 4) * -(-n // 16)
    # 2: M <= 4: chunks side by side
    if (
        align_a >= 16 and align_b >= 16 and tiles_4x16 <= 2147483647 and chunks > 1 and m <= 4
        and n <= 2048
    ):
        return Choice(2, ("simt_nt_f32_4x16x32_362278",), (tiles_4x16,), ())
    tiles_8x16 = -(-m // 8) * -(-n // 16)
    # 4: M <= 8: chunks side by side
    if align_a >= 16 and align_b >= 16 and tiles_8x16 <= 2147483647 and chunks > 1 and m <= 8:
        return Choice(4, ("simt_nt_f32_8x16x32_9aefbe",), (tiles_8x16,), ())
    pieces_m_k4 = m * -(-k // 4)
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    # 8: A off 16 bytes: copied, since the product is much more work
    if (
        pieces_m_k4 * 16 <= 268435456 and align_b >= 16 and chunks <= 1
        and tiles_128x128 <= 2147483647 and m * n * k >= 268435456 and sms * 6 <= tiles_128x128 * 4
        and align_a < 16 and n >= 256
    ):
        return Choice(
            8, ("realign_b32x1_92a718", "simt_nt_f32_128x128x16_2949eb"),
            (-(-pieces_m_k4 // 512), tiles_128x128), (pieces_m_k4 * 16,),
            "realign_a+simt_nt_f32_128x128x16_2949eb",
        )
    pieces_n_k4 = n * -(-k // 4)
    # 9: B off 16 bytes: copied, since the product is much more work
    if (
        pieces_n_k4 * 16 <= 268435456 and align_a >= 16 and chunks <= 1
        and tiles_128x128 <= 2147483647 and m * n * k >= 268435456 and sms * 6 <= tiles_128x128 * 4
        and align_b < 16 and m >= 256
    ):
        return Choice(
            9, ("realign_b32x1_92a718", "simt_nt_f32_128x128x16_2949eb"),
            (-(-pieces_n_k4 // 512), tiles_128x128), (pieces_n_k4 * 16,),
            "realign_b+simt_nt_f32_128x128x16_2949eb",
        )
    # 10: A and B off 16 bytes: copied, since the product is much more work
    if (
        pieces_m_k4 * 16 <= 268435456 and pieces_n_k4 * 16 <= 268435456 and chunks <= 1
        and tiles_128x128 <= 2147483647 and m * n * k >= 268435456 and sms * 6 <= tiles_128x128 * 4
        and align_a < 16 and align_b < 16 and n >= 256 and m >= 256
    ):
        return Choice(
            10, ("realign_b32x2_89cb89", "simt_nt_f32_128x128x16_2949eb"),
            (-(-pieces_m_k4 // 512) + -(-pieces_n_k4 // 512), tiles_128x128),
            (pieces_m_k4 * 16, pieces_n_k4 * 16), "realign_ab+simt_nt_f32_128x128x16_2949eb",
        )
    # 14: the largest tile that gives 6/4 of the SMs one
    if tiles_128x128 <= 2147483647 and chunks > 1 and sms * 6 <= tiles_128x128 * 4:
        return Choice(14, ("simt_nt_f32_128x128x8_b8d6fe",), (tiles_128x128,), ())
    tiles_1x64 = -(-m // 1) * -(-n // 64)
    # 18: M <= 1: the weight streams once
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_1x64 <= 2147483647 and m <= 1
        and n >= 4096
    ):
        return Choice(18, ("simt_nt_f32_1x64x64_2397d3",), (tiles_1x64,), ())
    tiles_32x64 = -(-m // 32) * -(-n // 64)
    # 22: M <= 32: the weight streams once
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_32x64 <= 2147483647 and m <= 32
        and n >= 4096
    ):
        return Choice(22, ("simt_nt_f32_32x64x64_5d9b9e",), (tiles_32x64,), ())
    # 23: the largest tile that gives 6/4 of the SMs one
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_128x128 <= 2147483647
        and chunks <= 1 and sms * 6 <= tiles_128x128 * 4
    ):
        return Choice(23, ("simt_nt_f32_128x128x16_2949eb",), (tiles_128x128,), ())
    # 24: the largest tile that gives 6/4 of the SMs one
    if chunks <= 1 and tiles_128x128 <= 2147483647 and chunks <= 1 and sms * 6 <= tiles_128x128 * 4:
        return Choice(24, ("simt_nt_f32_128x128x8_e4287f",), (tiles_128x128,), ())
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 25: the largest tile that gives 4/4 of the SMs one
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_64x64 <= 2147483647
        and chunks <= 1 and sms * 4 <= tiles_64x64 * 4
    ):
        return Choice(25, ("simt_nt_f32_64x64x16_01c375",), (tiles_64x64,), ())
    # 26: the largest tile that gives 4/4 of the SMs one
    if chunks <= 1 and tiles_32x64 <= 2147483647 and chunks <= 1 and sms * 4 <= tiles_32x64 * 4:
        return Choice(26, ("simt_nt_f32_32x64x16_622c08",), (tiles_32x64,), ())
    tiles_16x32 = -(-m // 16) * -(-n // 32)
    # 27: few outputs: many small tiles shorten the wait
    if chunks <= 1 and tiles_16x32 <= 2147483647 and chunks <= 1:
        return Choice(27, ("simt_nt_f32_16x32x32_71535d",), (tiles_16x32,), ())
    # 28: everything else: any size, alignment and plan
    return Choice(28, ("simt_nt_f32_64x64x16_0a5ee2",), (min(tiles_64x64, 2147483647),), ())


BY_ARCH: dict[str, Dispatch] = {
    "sm_80": sm_80,
    "sm_86": sm_86,
    "sm_87": sm_80,
    "sm_89": sm_86,
    "sm_90": sm_80,
    "sm_100": sm_80,
    "sm_103": sm_80,
    "sm_110": sm_80,
    "sm_120": sm_86,
    "sm_121": sm_86,
}
