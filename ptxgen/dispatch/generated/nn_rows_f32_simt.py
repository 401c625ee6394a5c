"""Dispatch of NN rows f32 simt: products under the plan 'rows'.

Generated from ptxgen.tiles.TABLES["NN", "rows", "f32", "simt"]; do not edit.
Regenerate: ptxgen generate
"""

from ptxgen.dispatch.choice import Choice, Dispatch


def sm_80(m: int, n: int, k: int, sms: int, align_a: int, align_b: int) -> Choice | None:
    """For sm_80, sm_87, sm_90, sm_100, sm_103, sm_110."""
    chunk = max(1, min(k, -(-k // 8 // 16) * 16 if n <= 4096 and k >= 2048 else k))
    chunks = -(-k // chunk)
    tiles_2x32 = -(-m // 2) * -(-n // 32)
    # 0: M <= 2: chunks side by side
    if (
        align_a >= 16 and align_b >= 16 and tiles_2x32 <= 2147483647 and chunks > 1 and m <= 2
        and n <= 2048
    ):
        return Choice(0, ("simt_nn_f32_2x32x32_2461bb",), (tiles_2x32,), ())
    tiles_4x32 = -(-m // 4) * -(-n // 32)
    # 1: M <= 4: chunks side by side
    if (
        align_a >= 16 and align_b >= 16 and tiles_4x32 <= 2147483647 and chunks > 1 and m <= 4
        and n <= 2048
    ):
        return Choice(1, ("simt_nn_f32_4x32x32_45a5fc",), (tiles_4x32,), ())
    # 2: M <= 4: chunks side by side
    if align_b >= 16 and tiles_4x32 <= 2147483647 and chunks > 1 and m <= 4:
        return Choice(2, ("simt_nn_f32_4x32x16_e13d9e",), (tiles_4x32,), ())
    tiles_8x16 = -(-m // 8) * -(-n // 16)
    # 3: M <= 8: chunks side by side
    if (
        align_a >= 16 and align_b >= 16 and tiles_8x16 <= 2147483647 and chunks > 1 and m <= 8
        and n <= 2048
    ):
        return Choice(3, ("simt_nn_f32_8x16x32_43d607",), (tiles_8x16,), ())
    tiles_8x32 = -(-m // 8) * -(-n // 32)
    # 4: M <= 8: chunks side by side
    if align_b >= 16 and tiles_8x32 <= 2147483647 and chunks > 1 and m <= 8:
        return Choice(4, ("simt_nn_f32_8x32x16_a9acde",), (tiles_8x32,), ())
    tiles_16x16 = -(-m // 16) * -(-n // 16)
    # 5: M <= 16: chunks side by side
    if (
        align_a >= 16 and align_b >= 16 and tiles_16x16 <= 2147483647 and chunks > 1 and m <= 16
        and n <= 2048
    ):
        return Choice(5, ("simt_nn_f32_16x16x32_b99aa6",), (tiles_16x16,), ())
    tiles_16x32 = -(-m // 16) * -(-n // 32)
    # 6: M <= 16: chunks side by side
    if align_a >= 16 and align_b >= 16 and tiles_16x32 <= 2147483647 and chunks > 1 and m <= 16:
        return Choice(6, ("simt_nn_f32_16x32x16_6c0738",), (tiles_16x32,), ())
    tiles_32x16 = -(-m // 32) * -(-n // 16)
    # 7: M <= 32: chunks side by side
    if (
        align_a >= 16 and align_b >= 16 and tiles_32x16 <= 2147483647 and chunks > 1 and m <= 32
        and n <= 2048
    ):
        return Choice(7, ("simt_nn_f32_32x16x16_ca3542",), (tiles_32x16,), ())
    tiles_32x32 = -(-m // 32) * -(-n // 32)
    # 8: M <= 32: chunks side by side
    if align_a >= 16 and align_b >= 16 and tiles_32x32 <= 2147483647 and chunks > 1 and m <= 32:
        return Choice(8, ("simt_nn_f32_32x32x16_95bc35",), (tiles_32x32,), ())
    pieces_m_k4 = m * -(-k // 4)
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    # 9: A off 16 bytes: copied, since the product is much more work
    if (
        pieces_m_k4 * 16 <= 268435456 and align_b >= 16 and chunks <= 1
        and tiles_128x128 <= 2147483647 and m * n * k >= 268435456 and sms * 6 <= tiles_128x128 * 4
        and align_a < 16 and n >= 256
    ):
        return Choice(
            9, ("realign_b32x1_92a718", "simt_nn_f32_128x128x16_83a595"),
            (-(-pieces_m_k4 // 512), tiles_128x128), (pieces_m_k4 * 16,),
            "realign_a+simt_nn_f32_128x128x16_83a595",
        )
    pieces_k_n4 = k * -(-n // 4)
    # 10: B off 16 bytes: copied, since the product is much more work
    if (
        pieces_k_n4 * 16 <= 268435456 and align_a >= 16 and chunks <= 1
        and tiles_128x128 <= 2147483647 and m * n * k >= 268435456 and sms * 6 <= tiles_128x128 * 4
        and align_b < 16 and m >= 256
    ):
        return Choice(
            10, ("realign_b32x1_92a718", "simt_nn_f32_128x128x16_83a595"),
            (-(-pieces_k_n4 // 512), tiles_128x128), (pieces_k_n4 * 16,),
            "realign_b+simt_nn_f32_128x128x16_83a595",
        )
    # 11: A and B off 16 bytes: copied, since the product is much more work
    if (
        pieces_m_k4 * 16 <= 268435456 and pieces_k_n4 * 16 <= 268435456 and chunks <= 1
        and tiles_128x128 <= 2147483647 and m * n * k >= 268435456 and sms * 6 <= tiles_128x128 * 4
        and align_a < 16 and align_b < 16 and n >= 256 and m >= 256
    ):
        return Choice(
            11, ("realign_b32x2_89cb89", "simt_nn_f32_128x128x16_83a595"),
            (-(-pieces_m_k4 // 512) + -(-pieces_k_n4 // 512), tiles_128x128),
            (pieces_m_k4 * 16, pieces_k_n4 * 16), "realign_ab+simt_nn_f32_128x128x16_83a595",
        )
    tiles_64x256 = -(-m // 64) * -(-n // 256)
    # 12: B off 16 bytes: copied, since the product is much more work
    if (
        pieces_k_n4 * 16 <= 268435456 and tiles_64x256 <= 2147483647 and m * n * k >= 268435456
        and sms * 6 <= tiles_64x256 * 4 and align_b < 16 and m >= 256
    ):
        return Choice(
            12, ("realign_b32x1_92a718", "simt_nn_f32_64x256x8_0db658"),
            (-(-pieces_k_n4 // 512), tiles_64x256), (pieces_k_n4 * 16,),
            "realign_b+simt_nn_f32_64x256x8_0db658",
        )
    tiles_32x64 = -(-m // 32) * -(-n // 64)
    # 13: A off 16 bytes: copied, since the product is much more work
    if (
        pieces_m_k4 * 16 <= 268435456 and align_b >= 16 and tiles_32x64 <= 2147483647
        and m * n * k >= 268435456 and sms * 3 <= tiles_32x64 * 4 and align_a < 16 and n >= 256
    ):
        return Choice(
            13, ("realign_b32x1_92a718", "simt_nn_f32_32x64x16_70b665"),
            (-(-pieces_m_k4 // 512), tiles_32x64), (pieces_m_k4 * 16,),
            "realign_a+simt_nn_f32_32x64x16_70b665",
        )
    # 14: B off 16 bytes: copied, since the product is much more work
    if (
        pieces_k_n4 * 16 <= 268435456 and align_a >= 16 and tiles_32x64 <= 2147483647
        and m * n * k >= 268435456 and sms * 3 <= tiles_32x64 * 4 and align_b < 16 and m >= 256
    ):
        return Choice(
            14, ("realign_b32x1_92a718", "simt_nn_f32_32x64x16_70b665"),
            (-(-pieces_k_n4 // 512), tiles_32x64), (pieces_k_n4 * 16,),
            "realign_b+simt_nn_f32_32x64x16_70b665",
        )
    # 15: A and B off 16 bytes: copied, since the product is much more work
    if (
        pieces_m_k4 * 16 <= 268435456 and pieces_k_n4 * 16 <= 268435456
        and tiles_32x64 <= 2147483647 and m * n * k >= 268435456 and sms * 3 <= tiles_32x64 * 4
        and align_a < 16 and align_b < 16 and n >= 256 and m >= 256
    ):
        return Choice(
            15, ("realign_b32x2_89cb89", "simt_nn_f32_32x64x16_70b665"),
            (-(-pieces_m_k4 // 512) + -(-pieces_k_n4 // 512), tiles_32x64),
            (pieces_m_k4 * 16, pieces_k_n4 * 16), "realign_ab+simt_nn_f32_32x64x16_70b665",
        )
    # 16: the largest tile that gives 6/4 of the SMs one
    if align_b >= 16 and tiles_64x256 <= 2147483647 and chunks > 1 and sms * 6 <= tiles_64x256 * 4:
        return Choice(16, ("simt_nn_f32_64x256x8_0db658",), (tiles_64x256,), ())
    # 17: the largest tile that gives 3/4 of the SMs one
    if (
        align_a >= 16 and align_b >= 16 and tiles_32x64 <= 2147483647 and chunks > 1
        and sms * 3 <= tiles_32x64 * 4
    ):
        return Choice(17, ("simt_nn_f32_32x64x16_70b665",), (tiles_32x64,), ())
    tiles_16x64 = -(-m // 16) * -(-n // 64)
    # 18: the largest tile that gives 3/4 of the SMs one
    if (
        align_a >= 16 and align_b >= 16 and tiles_16x64 <= 2147483647 and chunks > 1
        and sms * 3 <= tiles_16x64 * 4
    ):
        return Choice(18, ("simt_nn_f32_16x64x16_371f11",), (tiles_16x64,), ())
    # 19: few outputs, split
    if (
        align_a >= 16 and align_b >= 16 and tiles_16x32 <= 2147483647 and chunks > 1
        and sms * 4 > tiles_128x128 * 4
    ):
        return Choice(19, ("simt_nn_f32_16x32x32_75901d",), (tiles_16x32,), ())
    tiles_8x64 = -(-m // 8) * -(-n // 64)
    # 20: M <= 8: the weight streams once
    if align_b >= 16 and chunks <= 1 and tiles_8x64 <= 2147483647 and m <= 8 and n >= 4096:
        return Choice(20, ("simt_nn_f32_8x64x64_568ac5",), (tiles_8x64,), ())
    # 21: M <= 16: the weight streams once
    if align_b >= 16 and chunks <= 1 and tiles_16x64 <= 2147483647 and m <= 16 and n >= 4096:
        return Choice(21, ("simt_nn_f32_16x64x64_2cb8a0",), (tiles_16x64,), ())
    tiles_32x128 = -(-m // 32) * -(-n // 128)
    # 22: M <= 32: the weight streams once
    if align_b >= 16 and chunks <= 1 and tiles_32x128 <= 2147483647 and m <= 32 and n >= 4096:
        return Choice(22, ("simt_nn_f32_32x128x32_0ef257",), (tiles_32x128,), ())
    # 23: the largest tile that gives 6/4 of the SMs one
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_128x128 <= 2147483647
        and chunks <= 1 and sms * 6 <= tiles_128x128 * 4
    ):
        return Choice(23, ("simt_nn_f32_128x128x16_83a595",), (tiles_128x128,), ())
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 24: the largest tile that gives 4/4 of the SMs one
    if (
        align_b >= 16 and chunks <= 1 and tiles_64x64 <= 2147483647 and chunks <= 1
        and sms * 4 <= tiles_64x64 * 4
    ):
        return Choice(24, ("simt_nn_f32_64x64x32_9b1beb",), (tiles_64x64,), ())
    # 25: the largest tile that gives 4/4 of the SMs one
    if (
        align_b >= 16 and chunks <= 1 and tiles_32x64 <= 2147483647 and chunks <= 1
        and sms * 4 <= tiles_32x64 * 4
    ):
        return Choice(25, ("simt_nn_f32_32x64x16_cde40b",), (tiles_32x64,), ())
    # 26: few outputs: many small tiles shorten the wait
    if align_b >= 16 and chunks <= 1 and tiles_16x32 <= 2147483647 and chunks <= 1:
        return Choice(26, ("simt_nn_f32_16x32x32_22d5c9",), (tiles_16x32,), ())
    # 27: M <= 8: chunks side by side
    if tiles_8x32 <= 2147483647 and chunks > 1 and m <= 8:
        return Choice(27, ("simt_nn_f32_8x32x16_a4eea3",), (tiles_8x32,), ())
    # 28: unaligned, few outputs, split
    if tiles_32x32 <= 2147483647 and chunks > 1 and sms * 6 > tiles_64x64 * 4:
        return Choice(28, ("simt_nn_f32_32x32x16_eacec4",), (tiles_32x32,), ())
    # 29: the largest tile that gives 6/4 of the SMs one
    if chunks <= 1 and tiles_128x128 <= 2147483647 and chunks <= 1 and sms * 6 <= tiles_128x128 * 4:
        return Choice(29, ("simt_nn_f32_128x128x8_0b8ba8",), (tiles_128x128,), ())
    # 30: unaligned, few outputs
    if chunks <= 1 and tiles_16x32 <= 2147483647 and chunks <= 1 and sms * 4 > tiles_64x64 * 4:
        return Choice(30, ("simt_nn_f32_16x32x32_ef831f",), (tiles_16x32,), ())
    # 31: everything else: any size, alignment and plan
    return Choice(31, ("simt_nn_f32_64x64x16_bf213f",), (min(tiles_64x64, 2147483647),), ())


def sm_86(m: int, n: int, k: int, sms: int, align_a: int, align_b: int) -> Choice | None:
    """For sm_86, sm_89, sm_120, sm_121."""
    chunk = max(1, min(k, -(-k // 8 // 16) * 16 if n <= 4096 and k >= 2048 else k))
    chunks = -(-k // chunk)
    tiles_4x32 = -(-m // 4) * -(-n // 32)
    # 2: M <= 4: chunks side by side
    if align_b >= 16 and tiles_4x32 <= 2147483647 and chunks > 1 and m <= 4:
        return Choice(2, ("simt_nn_f32_4x32x16_e13d9e",), (tiles_4x32,), ())
    tiles_8x32 = -(-m // 8) * -(-n // 32)
    # 4: M <= 8: chunks side by side
    if align_b >= 16 and tiles_8x32 <= 2147483647 and chunks > 1 and m <= 8:
        return Choice(4, ("simt_nn_f32_8x32x16_a9acde",), (tiles_8x32,), ())
    pieces_m_k4 = m * -(-k // 4)
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    # 9: A off 16 bytes: copied, since the product is much more work
    if (
        pieces_m_k4 * 16 <= 268435456 and align_b >= 16 and chunks <= 1
        and tiles_128x128 <= 2147483647 and m * n * k >= 268435456 and sms * 6 <= tiles_128x128 * 4
        and align_a < 16 and n >= 256
    ):
        return Choice(
            9, ("realign_b32x1_92a718", "simt_nn_f32_128x128x16_83a595"),
            (-(-pieces_m_k4 // 512), tiles_128x128), (pieces_m_k4 * 16,),
            "realign_a+simt_nn_f32_128x128x16_83a595",
        )
    pieces_k_n4 = k * -(-n // 4)
    # 10: B off 16 bytes: copied, since the product is much more work
    if (
        pieces_k_n4 * 16 <= 268435456 and align_a >= 16 and chunks <= 1
        and tiles_128x128 <= 2147483647 and m * n * k >= 268435456 and sms * 6 <= tiles_128x128 * 4
        and align_b < 16 and m >= 256
    ):
        return Choice(
            10, ("realign_b32x1_92a718", "simt_nn_f32_128x128x16_83a595"),
            (-(-pieces_k_n4 // 512), tiles_128x128), (pieces_k_n4 * 16,),
            "realign_b+simt_nn_f32_128x128x16_83a595",
        )
    # 11: A and B off 16 bytes: copied, since the product is much more work
    if (
        pieces_m_k4 * 16 <= 268435456 and pieces_k_n4 * 16 <= 268435456 and chunks <= 1
        and tiles_128x128 <= 2147483647 and m * n * k >= 268435456 and sms * 6 <= tiles_128x128 * 4
        and align_a < 16 and align_b < 16 and n >= 256 and m >= 256
    ):
        return Choice(
            11, ("realign_b32x2_89cb89", "simt_nn_f32_128x128x16_83a595"),
            (-(-pieces_m_k4 // 512) + -(-pieces_k_n4 // 512), tiles_128x128),
            (pieces_m_k4 * 16, pieces_k_n4 * 16), "realign_ab+simt_nn_f32_128x128x16_83a595",
        )
    tiles_8x64 = -(-m // 8) * -(-n // 64)
    # 20: M <= 8: the weight streams once
    if align_b >= 16 and chunks <= 1 and tiles_8x64 <= 2147483647 and m <= 8 and n >= 4096:
        return Choice(20, ("simt_nn_f32_8x64x64_568ac5",), (tiles_8x64,), ())
    tiles_16x64 = -(-m // 16) * -(-n // 64)
    # 21: M <= 16: the weight streams once
    if align_b >= 16 and chunks <= 1 and tiles_16x64 <= 2147483647 and m <= 16 and n >= 4096:
        return Choice(21, ("simt_nn_f32_16x64x64_2cb8a0",), (tiles_16x64,), ())
    tiles_32x128 = -(-m // 32) * -(-n // 128)
    # 22: M <= 32: the weight streams once
    if align_b >= 16 and chunks <= 1 and tiles_32x128 <= 2147483647 and m <= 32 and n >= 4096:
        return Choice(22, ("simt_nn_f32_32x128x32_0ef257",), (tiles_32x128,), ())
    # 23: the largest tile that gives 6/4 of the SMs one
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_128x128 <= 2147483647
        and chunks <= 1 and sms * 6 <= tiles_128x128 * 4
    ):
        return Choice(23, ("simt_nn_f32_128x128x16_83a595",), (tiles_128x128,), ())
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 24: the largest tile that gives 4/4 of the SMs one
    if (
        align_b >= 16 and chunks <= 1 and tiles_64x64 <= 2147483647 and chunks <= 1
        and sms * 4 <= tiles_64x64 * 4
    ):
        return Choice(24, ("simt_nn_f32_64x64x32_9b1beb",), (tiles_64x64,), ())
    tiles_32x64 = -(-m // 32) * -(-n // 64)
    # 25: the largest tile that gives 4/4 of the SMs one
    if (
        align_b >= 16 and chunks <= 1 and tiles_32x64 <= 2147483647 and chunks <= 1
        and sms * 4 <= tiles_32x64 * 4
    ):
        return Choice(25, ("simt_nn_f32_32x64x16_cde40b",), (tiles_32x64,), ())
    tiles_16x32 = -(-m // 16) * -(-n // 32)
    # 26: few outputs: many small tiles shorten the wait
    if align_b >= 16 and chunks <= 1 and tiles_16x32 <= 2147483647 and chunks <= 1:
        return Choice(26, ("simt_nn_f32_16x32x32_22d5c9",), (tiles_16x32,), ())
    # 27: M <= 8: chunks side by side
    if tiles_8x32 <= 2147483647 and chunks > 1 and m <= 8:
        return Choice(27, ("simt_nn_f32_8x32x16_a4eea3",), (tiles_8x32,), ())
    # 29: the largest tile that gives 6/4 of the SMs one
    if chunks <= 1 and tiles_128x128 <= 2147483647 and chunks <= 1 and sms * 6 <= tiles_128x128 * 4:
        return Choice(29, ("simt_nn_f32_128x128x8_0b8ba8",), (tiles_128x128,), ())
    # 30: unaligned, few outputs
    if chunks <= 1 and tiles_16x32 <= 2147483647 and chunks <= 1 and sms * 4 > tiles_64x64 * 4:
        return Choice(30, ("simt_nn_f32_16x32x32_ef831f",), (tiles_16x32,), ())
    # 31: everything else: any size, alignment and plan
    return Choice(31, ("simt_nn_f32_64x64x16_bf213f",), (min(tiles_64x64, 2147483647),), ())


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
