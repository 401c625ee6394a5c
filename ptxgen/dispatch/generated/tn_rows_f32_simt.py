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
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    # 7: the largest tile that gives 6/4 of the SMs one
    if (
        align_a >= 16 and align_b >= 16 and tiles_128x128 <= 2147483647 and chunks > 1
        and sms * 6 <= tiles_128x128 * 4
    ):
        return Choice(7, ("simt_tn_f32_128x128x16_770be0",), (tiles_128x128,), ())
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 8: the largest tile that gives 3/4 of the SMs one
    if (
        align_a >= 16 and align_b >= 16 and tiles_64x64 <= 2147483647 and chunks > 1
        and sms * 3 <= tiles_64x64 * 4
    ):
        return Choice(8, ("simt_tn_f32_64x64x8_77baed",), (tiles_64x64,), ())
    tiles_64x32 = -(-m // 64) * -(-n // 32)
    # 9: the largest tile that gives 3/4 of the SMs one
    if (
        align_a >= 16 and align_b >= 16 and tiles_64x32 <= 2147483647 and chunks > 1
        and sms * 3 <= tiles_64x32 * 4
    ):
        return Choice(9, ("simt_tn_f32_64x32x16_f23be5",), (tiles_64x32,), ())
    # 10: the largest tile that gives 3/4 of the SMs one
    if (
        align_a >= 16 and align_b >= 16 and tiles_32x32 <= 2147483647 and chunks > 1
        and sms * 3 <= tiles_32x32 * 4
    ):
        return Choice(10, ("simt_tn_f32_32x32x32_209373",), (tiles_32x32,), ())
    # 11: few outputs, split
    if (
        align_a >= 16 and align_b >= 16 and tiles_16x32 <= 2147483647 and chunks > 1
        and sms * 4 > tiles_128x128 * 4
    ):
        return Choice(11, ("simt_tn_f32_16x32x32_4b0f21",), (tiles_16x32,), ())
    tiles_8x64 = -(-m // 8) * -(-n // 64)
    # 12: M <= 8: the weight streams once
    if align_b >= 16 and chunks <= 1 and tiles_8x64 <= 2147483647 and m <= 8 and n >= 4096:
        return Choice(12, ("simt_tn_f32_8x64x64_e74d10",), (tiles_8x64,), ())
    tiles_16x64 = -(-m // 16) * -(-n // 64)
    # 13: M <= 16: the weight streams once
    if align_b >= 16 and chunks <= 1 and tiles_16x64 <= 2147483647 and m <= 16 and n >= 4096:
        return Choice(13, ("simt_tn_f32_16x64x64_467c82",), (tiles_16x64,), ())
    tiles_32x128 = -(-m // 32) * -(-n // 128)
    # 14: M <= 32: the weight streams once
    if align_b >= 16 and chunks <= 1 and tiles_32x128 <= 2147483647 and m <= 32 and n >= 4096:
        return Choice(14, ("simt_tn_f32_32x128x32_96dc77",), (tiles_32x128,), ())
    # 15: the largest tile that gives 6/4 of the SMs one
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_128x128 <= 2147483647
        and chunks <= 1 and sms * 6 <= tiles_128x128 * 4
    ):
        return Choice(15, ("simt_tn_f32_128x128x32_a6005b",), (tiles_128x128,), ())
    # 16: the largest tile that gives 4/4 of the SMs one
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_64x64 <= 2147483647
        and chunks <= 1 and sms * 4 <= tiles_64x64 * 4
    ):
        return Choice(16, ("simt_tn_f32_64x64x32_b25768",), (tiles_64x64,), ())
    tiles_32x64 = -(-m // 32) * -(-n // 64)
    # 17: the largest tile that gives 4/4 of the SMs one
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_32x64 <= 2147483647
        and chunks <= 1 and sms * 4 <= tiles_32x64 * 4
    ):
        return Choice(17, ("simt_tn_f32_32x64x16_0d5445",), (tiles_32x64,), ())
    # 18: few outputs: many small tiles shorten the wait
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_16x32 <= 2147483647
        and chunks <= 1
    ):
        return Choice(18, ("simt_tn_f32_16x32x32_610669",), (tiles_16x32,), ())
    # 19: unaligned, few outputs, split
    if tiles_32x32 <= 2147483647 and chunks > 1 and sms * 6 > tiles_64x64 * 4:
        return Choice(19, ("simt_tn_f32_32x32x16_6ade48",), (tiles_32x32,), ())
    # 20: the largest tile that gives 6/4 of the SMs one
    if chunks <= 1 and tiles_128x128 <= 2147483647 and chunks <= 1 and sms * 6 <= tiles_128x128 * 4:
        return Choice(20, ("simt_tn_f32_128x128x8_808899",), (tiles_128x128,), ())
    # 21: unaligned, few outputs
    if chunks <= 1 and tiles_16x32 <= 2147483647 and chunks <= 1 and sms * 4 > tiles_64x64 * 4:
        return Choice(21, ("simt_tn_f32_16x32x32_da4f05",), (tiles_16x32,), ())
    # 22: everything else: any size, alignment and plan
    return Choice(22, ("simt_tn_f32_64x64x16_3be7a4",), (min(tiles_64x64, 2147483647),), ())


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
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    # 7: the largest tile that gives 6/4 of the SMs one
    if (
        align_a >= 16 and align_b >= 16 and tiles_128x128 <= 2147483647 and chunks > 1
        and sms * 6 <= tiles_128x128 * 4
    ):
        return Choice(7, ("simt_tn_f32_128x128x16_770be0",), (tiles_128x128,), ())
    tiles_8x64 = -(-m // 8) * -(-n // 64)
    # 12: M <= 8: the weight streams once
    if align_b >= 16 and chunks <= 1 and tiles_8x64 <= 2147483647 and m <= 8 and n >= 4096:
        return Choice(12, ("simt_tn_f32_8x64x64_e74d10",), (tiles_8x64,), ())
    tiles_16x64 = -(-m // 16) * -(-n // 64)
    # 13: M <= 16: the weight streams once
    if align_b >= 16 and chunks <= 1 and tiles_16x64 <= 2147483647 and m <= 16 and n >= 4096:
        return Choice(13, ("simt_tn_f32_16x64x64_467c82",), (tiles_16x64,), ())
    tiles_32x128 = -(-m // 32) * -(-n // 128)
    # 14: M <= 32: the weight streams once
    if align_b >= 16 and chunks <= 1 and tiles_32x128 <= 2147483647 and m <= 32 and n >= 4096:
        return Choice(14, ("simt_tn_f32_32x128x32_96dc77",), (tiles_32x128,), ())
    # 15: the largest tile that gives 6/4 of the SMs one
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_128x128 <= 2147483647
        and chunks <= 1 and sms * 6 <= tiles_128x128 * 4
    ):
        return Choice(15, ("simt_tn_f32_128x128x32_a6005b",), (tiles_128x128,), ())
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 16: the largest tile that gives 4/4 of the SMs one
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_64x64 <= 2147483647
        and chunks <= 1 and sms * 4 <= tiles_64x64 * 4
    ):
        return Choice(16, ("simt_tn_f32_64x64x32_b25768",), (tiles_64x64,), ())
    tiles_32x64 = -(-m // 32) * -(-n // 64)
    # 17: the largest tile that gives 4/4 of the SMs one
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_32x64 <= 2147483647
        and chunks <= 1 and sms * 4 <= tiles_32x64 * 4
    ):
        return Choice(17, ("simt_tn_f32_32x64x16_0d5445",), (tiles_32x64,), ())
    # 18: few outputs: many small tiles shorten the wait
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_16x32 <= 2147483647
        and chunks <= 1
    ):
        return Choice(18, ("simt_tn_f32_16x32x32_610669",), (tiles_16x32,), ())
    # 20: the largest tile that gives 6/4 of the SMs one
    if chunks <= 1 and tiles_128x128 <= 2147483647 and chunks <= 1 and sms * 6 <= tiles_128x128 * 4:
        return Choice(20, ("simt_tn_f32_128x128x8_808899",), (tiles_128x128,), ())
    # 21: unaligned, few outputs
    if chunks <= 1 and tiles_16x32 <= 2147483647 and chunks <= 1 and sms * 4 > tiles_64x64 * 4:
        return Choice(21, ("simt_tn_f32_16x32x32_da4f05",), (tiles_16x32,), ())
    # 22: everything else: any size, alignment and plan
    return Choice(22, ("simt_tn_f32_64x64x16_3be7a4",), (min(tiles_64x64, 2147483647),), ())


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
