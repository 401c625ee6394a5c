"""Dispatch of TN rows f32 simt: products under the plan 'rows'.

Generated from ptxgen.tiles.TABLES["TN", "rows", "f32", "simt"]; do not edit.
Regenerate: ptxgen generate
"""

from ptxgen.dispatch.choice import Choice, Dispatch


def sm_80(m: int, n: int, k: int, sms: int, align_a: int, align_b: int) -> Choice | None:
    """For sm_80, sm_87, sm_90, sm_100, sm_103, sm_110."""
    chunk = max(1, min(k, -(-k // 8 // 16) * 16 if n <= 4096 and k >= 2048 else k))
    chunks = -(-k // chunk)
    tiles_2x32 = -(-m // 2) * -(-n // 32)
    # 0: M <= 2: chunks side by side
    if align_b >= 16 and tiles_2x32 <= 2147483647 and chunks > 1 and m <= 2 and n <= 2048:
        return Choice(0, ("simt_tn_f32_2x32x32_abf946",), (tiles_2x32,), ())
    tiles_8x16 = -(-m // 8) * -(-n // 16)
    # 1: M <= 8: chunks side by side
    if align_b >= 16 and tiles_8x16 <= 2147483647 and chunks > 1 and m <= 8 and n <= 2048:
        return Choice(1, ("simt_tn_f32_8x16x32_a97e93",), (tiles_8x16,), ())
    tiles_8x32 = -(-m // 8) * -(-n // 32)
    # 2: M <= 8: chunks side by side
    if align_b >= 16 and tiles_8x32 <= 2147483647 and chunks > 1 and m <= 8:
        return Choice(2, ("simt_tn_f32_8x32x16_5132be",), (tiles_8x32,), ())
    tiles_16x16 = -(-m // 16) * -(-n // 16)
    # 3: M <= 16: chunks side by side
    if align_b >= 16 and tiles_16x16 <= 2147483647 and chunks > 1 and m <= 16 and n <= 2048:
        return Choice(3, ("simt_tn_f32_16x16x32_be0c61",), (tiles_16x16,), ())
    tiles_16x32 = -(-m // 16) * -(-n // 32)
    # 4: M <= 16: chunks side by side
    if align_b >= 16 and tiles_16x32 <= 2147483647 and chunks > 1 and m <= 16:
        return Choice(4, ("simt_tn_f32_16x32x16_9b0e94",), (tiles_16x32,), ())
    tiles_32x16 = -(-m // 32) * -(-n // 16)
    # 5: M <= 32: chunks side by side
    if align_b >= 16 and tiles_32x16 <= 2147483647 and chunks > 1 and m <= 32 and n <= 2048:
        return Choice(5, ("simt_tn_f32_32x16x16_83e730",), (tiles_32x16,), ())
    tiles_32x32 = -(-m // 32) * -(-n // 32)
    # 6: M <= 32: chunks side by side
    if align_b >= 16 and tiles_32x32 <= 2147483647 and chunks > 1 and m <= 32:
        return Choice(6, ("simt_tn_f32_32x32x16_ff0291",), (tiles_32x32,), ())
    pieces_k_m4 = k * -(-m // 4)
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    # 7: A off 16 bytes: copied, since the product is much more work
    if (
        pieces_k_m4 * 16 <= 268435456 and align_b >= 16 and chunks <= 1
        and tiles_128x128 <= 2147483647 and m * n * k >= 268435456 and sms * 6 <= tiles_128x128 * 4
        and align_a < 16 and n >= 256
    ):
        return Choice(
            7, ("realign_b32x1_92a718", "simt_tn_f32_128x128x32_a6005b"),
            (-(-pieces_k_m4 // 512), tiles_128x128), (pieces_k_m4 * 16,),
            "realign_a+simt_tn_f32_128x128x32_a6005b",
        )
    pieces_k_n4 = k * -(-n // 4)
    # 8: B off 16 bytes: copied, since the product is much more work
    if (
        pieces_k_n4 * 16 <= 268435456 and align_a >= 16 and chunks <= 1
        and tiles_128x128 <= 2147483647 and m * n * k >= 268435456 and sms * 6 <= tiles_128x128 * 4
        and align_b < 16 and m >= 256
    ):
        return Choice(
            8, ("realign_b32x1_92a718", "simt_tn_f32_128x128x32_a6005b"),
            (-(-pieces_k_n4 // 512), tiles_128x128), (pieces_k_n4 * 16,),
            "realign_b+simt_tn_f32_128x128x32_a6005b",
        )
    # 9: A and B off 16 bytes: copied, since the product is much more work
    if (
        pieces_k_m4 * 16 <= 268435456 and pieces_k_n4 * 16 <= 268435456 and chunks <= 1
        and tiles_128x128 <= 2147483647 and m * n * k >= 268435456 and sms * 6 <= tiles_128x128 * 4
        and align_a < 16 and align_b < 16 and n >= 256 and m >= 256
    ):
        return Choice(
            9, ("realign_b32x2_89cb89", "simt_tn_f32_128x128x32_a6005b"),
            (-(-pieces_k_m4 // 512) + -(-pieces_k_n4 // 512), tiles_128x128),
            (pieces_k_m4 * 16, pieces_k_n4 * 16), "realign_ab+simt_tn_f32_128x128x32_a6005b",
        )
    # 10: A off 16 bytes: copied, since the product is much more work
    if (
        pieces_k_m4 * 16 <= 268435456 and align_b >= 16 and tiles_128x128 <= 2147483647
        and m * n * k >= 268435456 and sms * 6 <= tiles_128x128 * 4 and align_a < 16 and n >= 256
    ):
        return Choice(
            10, ("realign_b32x1_92a718", "simt_tn_f32_128x128x16_770be0"),
            (-(-pieces_k_m4 // 512), tiles_128x128), (pieces_k_m4 * 16,),
            "realign_a+simt_tn_f32_128x128x16_770be0",
        )
    # 11: B off 16 bytes: copied, since the product is much more work
    if (
        pieces_k_n4 * 16 <= 268435456 and align_a >= 16 and tiles_128x128 <= 2147483647
        and m * n * k >= 268435456 and sms * 6 <= tiles_128x128 * 4 and align_b < 16 and m >= 256
    ):
        return Choice(
            11, ("realign_b32x1_92a718", "simt_tn_f32_128x128x16_770be0"),
            (-(-pieces_k_n4 // 512), tiles_128x128), (pieces_k_n4 * 16,),
            "realign_b+simt_tn_f32_128x128x16_770be0",
        )
    # 12: A and B off 16 bytes: copied, since the product is much more work
    if (
        pieces_k_m4 * 16 <= 268435456 and pieces_k_n4 * 16 <= 268435456
        and tiles_128x128 <= 2147483647 and m * n * k >= 268435456 and sms * 6 <= tiles_128x128 * 4
        and align_a < 16 and align_b < 16 and n >= 256 and m >= 256
    ):
        return Choice(
            12, ("realign_b32x2_89cb89", "simt_tn_f32_128x128x16_770be0"),
            (-(-pieces_k_m4 // 512) + -(-pieces_k_n4 // 512), tiles_128x128),
            (pieces_k_m4 * 16, pieces_k_n4 * 16), "realign_ab+simt_tn_f32_128x128x16_770be0",
        )
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 13: A off 16 bytes: copied, since the product is much more work
    if (
        pieces_k_m4 * 16 <= 268435456 and align_b >= 16 and tiles_64x64 <= 2147483647
        and m * n * k >= 268435456 and sms * 3 <= tiles_64x64 * 4 and align_a < 16 and n >= 256
    ):
        return Choice(
            13, ("realign_b32x1_92a718", "simt_tn_f32_64x64x8_77baed"),
            (-(-pieces_k_m4 // 512), tiles_64x64), (pieces_k_m4 * 16,),
            "realign_a+simt_tn_f32_64x64x8_77baed",
        )
    # 14: B off 16 bytes: copied, since the product is much more work
    if (
        pieces_k_n4 * 16 <= 268435456 and align_a >= 16 and tiles_64x64 <= 2147483647
        and m * n * k >= 268435456 and sms * 3 <= tiles_64x64 * 4 and align_b < 16 and m >= 256
    ):
        return Choice(
            14, ("realign_b32x1_92a718", "simt_tn_f32_64x64x8_77baed"),
            (-(-pieces_k_n4 // 512), tiles_64x64), (pieces_k_n4 * 16,),
            "realign_b+simt_tn_f32_64x64x8_77baed",
        )
    # 15: A and B off 16 bytes: copied, since the product is much more work
    if (
        pieces_k_m4 * 16 <= 268435456 and pieces_k_n4 * 16 <= 268435456
        and tiles_64x64 <= 2147483647 and m * n * k >= 268435456 and sms * 3 <= tiles_64x64 * 4
        and align_a < 16 and align_b < 16 and n >= 256 and m >= 256
    ):
        return Choice(
            15, ("realign_b32x2_89cb89", "simt_tn_f32_64x64x8_77baed"),
            (-(-pieces_k_m4 // 512) + -(-pieces_k_n4 // 512), tiles_64x64),
            (pieces_k_m4 * 16, pieces_k_n4 * 16), "realign_ab+simt_tn_f32_64x64x8_77baed",
        )
    # 16: the largest tile that gives 6/4 of the SMs one
    if (
        align_a >= 16 and align_b >= 16 and tiles_128x128 <= 2147483647 and chunks > 1
        and sms * 6 <= tiles_128x128 * 4
    ):
        return Choice(16, ("simt_tn_f32_128x128x16_770be0",), (tiles_128x128,), ())
    # 17: the largest tile that gives 3/4 of the SMs one
    if (
        align_a >= 16 and align_b >= 16 and tiles_64x64 <= 2147483647 and chunks > 1
        and sms * 3 <= tiles_64x64 * 4
    ):
        return Choice(17, ("simt_tn_f32_64x64x8_77baed",), (tiles_64x64,), ())
    tiles_64x32 = -(-m // 64) * -(-n // 32)
    # 18: the largest tile that gives 3/4 of the SMs one
    if (
        align_a >= 16 and align_b >= 16 and tiles_64x32 <= 2147483647 and chunks > 1
        and sms * 3 <= tiles_64x32 * 4
    ):
        return Choice(18, ("simt_tn_f32_64x32x16_f23be5",), (tiles_64x32,), ())
    # 19: the largest tile that gives 3/4 of the SMs one
    if (
        align_a >= 16 and align_b >= 16 and tiles_32x32 <= 2147483647 and chunks > 1
        and sms * 3 <= tiles_32x32 * 4
    ):
        return Choice(19, ("simt_tn_f32_32x32x32_209373",), (tiles_32x32,), ())
    # 20: few outputs, split
    if (
        align_a >= 16 and align_b >= 16 and tiles_16x32 <= 2147483647 and chunks > 1
        and sms * 4 > tiles_128x128 * 4
    ):
        return Choice(20, ("simt_tn_f32_16x32x32_4b0f21",), (tiles_16x32,), ())
    tiles_8x64 = -(-m // 8) * -(-n // 64)
    # 21: M <= 8: the weight streams once
    if align_b >= 16 and chunks <= 1 and tiles_8x64 <= 2147483647 and m <= 8 and n >= 4096:
        return Choice(21, ("simt_tn_f32_8x64x64_e74d10",), (tiles_8x64,), ())
    tiles_16x64 = -(-m // 16) * -(-n // 64)
    # 22: M <= 16: the weight streams once
    if align_b >= 16 and chunks <= 1 and tiles_16x64 <= 2147483647 and m <= 16 and n >= 4096:
        return Choice(22, ("simt_tn_f32_16x64x64_467c82",), (tiles_16x64,), ())
    tiles_32x128 = -(-m // 32) * -(-n // 128)
    # 23: M <= 32: the weight streams once
    if align_b >= 16 and chunks <= 1 and tiles_32x128 <= 2147483647 and m <= 32 and n >= 4096:
        return Choice(23, ("simt_tn_f32_32x128x32_96dc77",), (tiles_32x128,), ())
    # 24: the largest tile that gives 6/4 of the SMs one
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_128x128 <= 2147483647
        and chunks <= 1 and sms * 6 <= tiles_128x128 * 4
    ):
        return Choice(24, ("simt_tn_f32_128x128x32_a6005b",), (tiles_128x128,), ())
    # 25: the largest tile that gives 4/4 of the SMs one
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_64x64 <= 2147483647
        and chunks <= 1 and sms * 4 <= tiles_64x64 * 4
    ):
        return Choice(25, ("simt_tn_f32_64x64x32_b25768",), (tiles_64x64,), ())
    tiles_32x64 = -(-m // 32) * -(-n // 64)
    # 26: the largest tile that gives 4/4 of the SMs one
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_32x64 <= 2147483647
        and chunks <= 1 and sms * 4 <= tiles_32x64 * 4
    ):
        return Choice(26, ("simt_tn_f32_32x64x16_0d5445",), (tiles_32x64,), ())
    # 27: few outputs: many small tiles shorten the wait
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_16x32 <= 2147483647
        and chunks <= 1
    ):
        return Choice(27, ("simt_tn_f32_16x32x32_610669",), (tiles_16x32,), ())
    # 28: unaligned, few outputs, split
    if tiles_32x32 <= 2147483647 and chunks > 1 and sms * 6 > tiles_64x64 * 4:
        return Choice(28, ("simt_tn_f32_32x32x16_6ade48",), (tiles_32x32,), ())
    # 29: the largest tile that gives 6/4 of the SMs one
    if chunks <= 1 and tiles_128x128 <= 2147483647 and chunks <= 1 and sms * 6 <= tiles_128x128 * 4:
        return Choice(29, ("simt_tn_f32_128x128x8_808899",), (tiles_128x128,), ())
    # 30: unaligned, few outputs
    if chunks <= 1 and tiles_16x32 <= 2147483647 and chunks <= 1 and sms * 4 > tiles_64x64 * 4:
        return Choice(30, ("simt_tn_f32_16x32x32_da4f05",), (tiles_16x32,), ())
    # 31: everything else: any size, alignment and plan
    return Choice(31, ("simt_tn_f32_64x64x16_3be7a4",), (min(tiles_64x64, 2147483647),), ())


def sm_86(m: int, n: int, k: int, sms: int, align_a: int, align_b: int) -> Choice | None:
    """For sm_86, sm_89, sm_120, sm_121."""
    chunk = max(1, min(k, -(-k // 8 // 16) * 16 if n <= 4096 and k >= 2048 else k))
    chunks = -(-k // chunk)
    tiles_8x16 = -(-m // 8) * -(-n // 16)
    # 1: M <= 8: chunks side by side
    if align_b >= 16 and tiles_8x16 <= 2147483647 and chunks > 1 and m <= 8 and n <= 2048:
        return Choice(1, ("simt_tn_f32_8x16x32_a97e93",), (tiles_8x16,), ())
    tiles_8x32 = -(-m // 8) * -(-n // 32)
    # 2: M <= 8: chunks side by side
    if align_b >= 16 and tiles_8x32 <= 2147483647 and chunks > 1 and m <= 8:
        return Choice(2, ("simt_tn_f32_8x32x16_5132be",), (tiles_8x32,), ())
    tiles_16x16 = -(-m // 16) * -(-n // 16)
    # 3: M <= 16: chunks side by side
    if align_b >= 16 and tiles_16x16 <= 2147483647 and chunks > 1 and m <= 16 and n <= 2048:
        return Choice(3, ("simt_tn_f32_16x16x32_be0c61",), (tiles_16x16,), ())
    tiles_16x32 = -(-m // 16) * -(-n // 32)
    # 4: M <= 16: chunks side by side
    if align_b >= 16 and tiles_16x32 <= 2147483647 and chunks > 1 and m <= 16:
        return Choice(4, ("simt_tn_f32_16x32x16_9b0e94",), (tiles_16x32,), ())
    tiles_32x16 = -(-m // 32) * -(-n // 16)
    # 5: M <= 32: chunks side by side
    if align_b >= 16 and tiles_32x16 <= 2147483647 and chunks > 1 and m <= 32 and n <= 2048:
        return Choice(5, ("simt_tn_f32_32x16x16_83e730",), (tiles_32x16,), ())
    pieces_k_m4 = k * -(-m // 4)
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    # 7: A off 16 bytes: copied, since the product is much more work
    if (
        pieces_k_m4 * 16 <= 268435456 and align_b >= 16 and chunks <= 1
        and tiles_128x128 <= 2147483647 and m * n * k >= 268435456 and sms * 6 <= tiles_128x128 * 4
        and align_a < 16 and n >= 256
    ):
        return Choice(
            7, ("realign_b32x1_92a718", "simt_tn_f32_128x128x32_a6005b"),
            (-(-pieces_k_m4 // 512), tiles_128x128), (pieces_k_m4 * 16,),
            "realign_a+simt_tn_f32_128x128x32_a6005b",
        )
    pieces_k_n4 = k * -(-n // 4)
    # 8: B off 16 bytes: copied, since the product is much more work
    if (
        pieces_k_n4 * 16 <= 268435456 and align_a >= 16 and chunks <= 1
        and tiles_128x128 <= 2147483647 and m * n * k >= 268435456 and sms * 6 <= tiles_128x128 * 4
        and align_b < 16 and m >= 256
    ):
        return Choice(
            8, ("realign_b32x1_92a718", "simt_tn_f32_128x128x32_a6005b"),
            (-(-pieces_k_n4 // 512), tiles_128x128), (pieces_k_n4 * 16,),
            "realign_b+simt_tn_f32_128x128x32_a6005b",
        )
    # 9: A and B off 16 bytes: copied, since the product is much more work
    if (
        pieces_k_m4 * 16 <= 268435456 and pieces_k_n4 * 16 <= 268435456 and chunks <= 1
        and tiles_128x128 <= 2147483647 and m * n * k >= 268435456 and sms * 6 <= tiles_128x128 * 4
        and align_a < 16 and align_b < 16 and n >= 256 and m >= 256
    ):
        return Choice(
            9, ("realign_b32x2_89cb89", "simt_tn_f32_128x128x32_a6005b"),
            (-(-pieces_k_m4 // 512) + -(-pieces_k_n4 // 512), tiles_128x128),
            (pieces_k_m4 * 16, pieces_k_n4 * 16), "realign_ab+simt_tn_f32_128x128x32_a6005b",
        )
    # 10: A off 16 bytes: copied, since the product is much more work
    if (
        pieces_k_m4 * 16 <= 268435456 and align_b >= 16 and tiles_128x128 <= 2147483647
        and m * n * k >= 268435456 and sms * 6 <= tiles_128x128 * 4 and align_a < 16 and n >= 256
    ):
        return Choice(
            10, ("realign_b32x1_92a718", "simt_tn_f32_128x128x16_770be0"),
            (-(-pieces_k_m4 // 512), tiles_128x128), (pieces_k_m4 * 16,),
            "realign_a+simt_tn_f32_128x128x16_770be0",
        )
    # 11: B off 16 bytes: copied, since the product is much more work
    if (
        pieces_k_n4 * 16 <= 268435456 and align_a >= 16 and tiles_128x128 <= 2147483647
        and m * n * k >= 268435456 and sms * 6 <= tiles_128x128 * 4 and align_b < 16 and m >= 256
    ):
        return Choice(
            11, ("realign_b32x1_92a718", "simt_tn_f32_128x128x16_770be0"),
            (-(-pieces_k_n4 // 512), tiles_128x128), (pieces_k_n4 * 16,),
            "realign_b+simt_tn_f32_128x128x16_770be0",
        )
    # 12: A and B off 16 bytes: copied, since the product is much more work
    if (
        pieces_k_m4 * 16 <= 268435456 and pieces_k_n4 * 16 <= 268435456
        and tiles_128x128 <= 2147483647 and m * n * k >= 268435456 and sms * 6 <= tiles_128x128 * 4
        and align_a < 16 and align_b < 16 and n >= 256 and m >= 256
    ):
        return Choice(
            12, ("realign_b32x2_89cb89", "simt_tn_f32_128x128x16_770be0"),
            (-(-pieces_k_m4 // 512) + -(-pieces_k_n4 // 512), tiles_128x128),
            (pieces_k_m4 * 16, pieces_k_n4 * 16), "realign_ab+simt_tn_f32_128x128x16_770be0",
        )
    # 16: the largest tile that gives 6/4 of the SMs one
    if (
        align_a >= 16 and align_b >= 16 and tiles_128x128 <= 2147483647 and chunks > 1
        and sms * 6 <= tiles_128x128 * 4
    ):
        return Choice(16, ("simt_tn_f32_128x128x16_770be0",), (tiles_128x128,), ())
    tiles_8x64 = -(-m // 8) * -(-n // 64)
    # 21: M <= 8: the weight streams once
    if align_b >= 16 and chunks <= 1 and tiles_8x64 <= 2147483647 and m <= 8 and n >= 4096:
        return Choice(21, ("simt_tn_f32_8x64x64_e74d10",), (tiles_8x64,), ())
    tiles_16x64 = -(-m // 16) * -(-n // 64)
    # 22: M <= 16: the weight streams once
    if align_b >= 16 and chunks <= 1 and tiles_16x64 <= 2147483647 and m <= 16 and n >= 4096:
        return Choice(22, ("simt_tn_f32_16x64x64_467c82",), (tiles_16x64,), ())
    tiles_32x128 = -(-m // 32) * -(-n // 128)
    # 23: M <= 32: the weight streams once
    if align_b >= 16 and chunks <= 1 and tiles_32x128 <= 2147483647 and m <= 32 and n >= 4096:
        return Choice(23, ("simt_tn_f32_32x128x32_96dc77",), (tiles_32x128,), ())
    # 24: the largest tile that gives 6/4 of the SMs one
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_128x128 <= 2147483647
        and chunks <= 1 and sms * 6 <= tiles_128x128 * 4
    ):
        return Choice(24, ("simt_tn_f32_128x128x32_a6005b",), (tiles_128x128,), ())
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 25: the largest tile that gives 4/4 of the SMs one
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_64x64 <= 2147483647
        and chunks <= 1 and sms * 4 <= tiles_64x64 * 4
    ):
        return Choice(25, ("simt_tn_f32_64x64x32_b25768",), (tiles_64x64,), ())
    tiles_32x64 = -(-m // 32) * -(-n // 64)
    # 26: the largest tile that gives 4/4 of the SMs one
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_32x64 <= 2147483647
        and chunks <= 1 and sms * 4 <= tiles_32x64 * 4
    ):
        return Choice(26, ("simt_tn_f32_32x64x16_0d5445",), (tiles_32x64,), ())
    # 27: few outputs: many small tiles shorten the wait
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_16x32 <= 2147483647
        and chunks <= 1
    ):
        return Choice(27, ("simt_tn_f32_16x32x32_610669",), (tiles_16x32,), ())
    # 29: the largest tile that gives 6/4 of the SMs one
    if chunks <= 1 and tiles_128x128 <= 2147483647 and chunks <= 1 and sms * 6 <= tiles_128x128 * 4:
        return Choice(29, ("simt_tn_f32_128x128x8_808899",), (tiles_128x128,), ())
    # 30: unaligned, few outputs
    if chunks <= 1 and tiles_16x32 <= 2147483647 and chunks <= 1 and sms * 4 > tiles_64x64 * 4:
        return Choice(30, ("simt_tn_f32_16x32x32_da4f05",), (tiles_16x32,), ())
    # 31: everything else: any size, alignment and plan
    return Choice(31, ("simt_tn_f32_64x64x16_3be7a4",), (min(tiles_64x64, 2147483647),), ())


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
