"""Dispatch of TT rows f32 simt: products under the plan 'rows'.

Generated from ptxgen.tiles.TABLES["TT", "rows", "f32", "simt"]; do not edit.
Regenerate: ptxgen generate
"""

from ptxgen.dispatch.choice import Choice, Dispatch


def sm_80(m: int, n: int, k: int, sms: int, align_a: int, align_b: int) -> Choice | None:
    """For sm_80, sm_87, sm_90, sm_100, sm_103, sm_110."""
    chunk = max(1, min(k, -(-k // 8 // 16) * 16 if n <= 4096 and k >= 2048 else k))
    chunks = -(-k // chunk)
    tiles_8x16 = -(-m // 8) * -(-n // 16)
    # 0: M <= 16: chunks side by side
    if align_b >= 16 and tiles_8x16 <= 2147483647 and chunks > 1 and m <= 16:
        return Choice(0, ("simt_tt_f32_8x16x32_0b5cac",), (tiles_8x16,), ())
    tiles_32x32 = -(-m // 32) * -(-n // 32)
    # 1: the split reductions of more rows
    if align_a >= 16 and tiles_32x32 <= 2147483647 and chunks > 1:
        return Choice(1, ("simt_tt_f32_32x32x16_da9467",), (tiles_32x32,), ())
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    # 2: the largest tile that gives 6/4 of the SMs one
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_128x128 <= 2147483647
        and chunks <= 1 and sms * 6 <= tiles_128x128 * 4
    ):
        return Choice(2, ("simt_tt_f32_128x128x16_5583c9",), (tiles_128x128,), ())
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 3: the largest tile that gives 4/4 of the SMs one
    if (
        align_a >= 16 and chunks <= 1 and tiles_64x64 <= 2147483647 and chunks <= 1
        and sms * 4 <= tiles_64x64 * 4
    ):
        return Choice(3, ("simt_tt_f32_64x64x32_a5371f",), (tiles_64x64,), ())
    tiles_16x32 = -(-m // 16) * -(-n // 32)
    # 4: few outputs
    if chunks <= 1 and tiles_16x32 <= 2147483647 and chunks <= 1 and sms * 4 > tiles_64x64 * 4:
        return Choice(4, ("simt_tt_f32_16x32x32_079abe",), (tiles_16x32,), ())
    # 5: everything else: any size, alignment and plan
    return Choice(5, ("simt_tt_f32_64x64x16_9e62fd",), (min(tiles_64x64, 2147483647),), ())


def sm_86(m: int, n: int, k: int, sms: int, align_a: int, align_b: int) -> Choice | None:
    """For sm_86, sm_89, sm_120, sm_121."""
    chunk = max(1, min(k, -(-k // 8 // 16) * 16 if n <= 4096 and k >= 2048 else k))
    chunks = -(-k // chunk)
    tiles_8x16 = -(-m // 8) * -(-n // 16)
    # 0: M <= 16: chunks side by side
    if align_b >= 16 and tiles_8x16 <= 2147483647 and chunks > 1 and m <= 16:
        return Choice(0, ("simt_tt_f32_8x16x32_0b5cac",), (tiles_8x16,), ())
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    # 2: the largest tile that gives 6/4 of the SMs one
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_128x128 <= 2147483647
        and chunks <= 1 and sms * 6 <= tiles_128x128 * 4
    ):
        return Choice(2, ("simt_tt_f32_128x128x16_5583c9",), (tiles_128x128,), ())
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 3: the largest tile that gives 4/4 of the SMs one
    if (
        align_a >= 16 and chunks <= 1 and tiles_64x64 <= 2147483647 and chunks <= 1
        and sms * 4 <= tiles_64x64 * 4
    ):
        return Choice(3, ("simt_tt_f32_64x64x32_a5371f",), (tiles_64x64,), ())
    tiles_16x32 = -(-m // 16) * -(-n // 32)
    # 4: few outputs
    if chunks <= 1 and tiles_16x32 <= 2147483647 and chunks <= 1 and sms * 4 > tiles_64x64 * 4:
        return Choice(4, ("simt_tt_f32_16x32x32_079abe",), (tiles_16x32,), ())
    # 5: everything else: any size, alignment and plan
    return Choice(5, ("simt_tt_f32_64x64x16_9e62fd",), (min(tiles_64x64, 2147483647),), ())


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
