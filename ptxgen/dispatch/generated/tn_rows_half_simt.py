"""Dispatch of TN rows half simt: products under the plan 'rows'.

Generated from ptxgen.tiles.TABLES["TN", "rows", "half", "simt"]; do not edit.
Regenerate: ptxgen generate
"""

from ptxgen.dispatch.choice import Choice, Dispatch


def sm_80(m: int, n: int, k: int, sms: int, align_a: int, align_b: int) -> Choice | None:
    """For sm_80, sm_87, sm_90, sm_100, sm_103, sm_110."""
    chunk = max(1, min(k, -(-k // 8 // 16) * 16 if n <= 4096 and k >= 2048 else k))
    chunks = -(-k // chunk)
    tiles_4x32 = -(-m // 4) * -(-n // 32)
    # 0: M <= 16: chunks side by side
    if align_b >= 16 and tiles_4x32 <= 2147483647 and chunks > 1 and m <= 16:
        return Choice(0, ("simt_tn_bf16_4x32x32_3a8b9f",), (tiles_4x32,), ())
    tiles_32x64 = -(-m // 32) * -(-n // 64)
    # 1: the split reductions of more rows
    if align_a >= 8 and align_b >= 8 and tiles_32x64 <= 2147483647 and chunks > 1:
        return Choice(1, ("simt_tn_bf16_32x64x16_5499b8",), (tiles_32x64,), ())
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    # 2: the largest tile that gives 6/4 of the SMs one
    if (
        align_a >= 8 and align_b >= 8 and chunks <= 1 and tiles_128x128 <= 2147483647
        and chunks <= 1 and sms * 6 <= tiles_128x128 * 4
    ):
        return Choice(2, ("simt_tn_bf16_128x128x16_0071bc",), (tiles_128x128,), ())
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 3: the largest tile that gives 4/4 of the SMs one
    if (
        align_a >= 8 and align_b >= 8 and chunks <= 1 and tiles_64x64 <= 2147483647 and chunks <= 1
        and sms * 4 <= tiles_64x64 * 4
    ):
        return Choice(3, ("simt_tn_bf16_64x64x16_a5d13d",), (tiles_64x64,), ())
    tiles_16x32 = -(-m // 16) * -(-n // 32)
    # 4: few outputs: many small tiles shorten the wait
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_16x32 <= 2147483647
        and chunks <= 1
    ):
        return Choice(4, ("simt_tn_bf16_16x32x64_59631a",), (tiles_16x32,), ())
    # 5: everything else: any size, alignment and plan
    return Choice(5, ("simt_tn_bf16_64x64x16_47c955",), (min(tiles_64x64, 2147483647),), ())


def sm_86(m: int, n: int, k: int, sms: int, align_a: int, align_b: int) -> Choice | None:
    """For sm_86, sm_89, sm_120, sm_121."""
    chunk = max(1, min(k, -(-k // 8 // 16) * 16 if n <= 4096 and k >= 2048 else k))
    chunks = -(-k // chunk)
    tiles_4x32 = -(-m // 4) * -(-n // 32)
    # 0: M <= 16: chunks side by side
    if align_b >= 16 and tiles_4x32 <= 2147483647 and chunks > 1 and m <= 16:
        return Choice(0, ("simt_tn_bf16_4x32x32_3a8b9f",), (tiles_4x32,), ())
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    # 2: the largest tile that gives 6/4 of the SMs one
    if (
        align_a >= 8 and align_b >= 8 and chunks <= 1 and tiles_128x128 <= 2147483647
        and chunks <= 1 and sms * 6 <= tiles_128x128 * 4
    ):
        return Choice(2, ("simt_tn_bf16_128x128x16_0071bc",), (tiles_128x128,), ())
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 3: the largest tile that gives 4/4 of the SMs one
    if (
        align_a >= 8 and align_b >= 8 and chunks <= 1 and tiles_64x64 <= 2147483647 and chunks <= 1
        and sms * 4 <= tiles_64x64 * 4
    ):
        return Choice(3, ("simt_tn_bf16_64x64x16_a5d13d",), (tiles_64x64,), ())
    tiles_16x32 = -(-m // 16) * -(-n // 32)
    # 4: few outputs: many small tiles shorten the wait
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_16x32 <= 2147483647
        and chunks <= 1
    ):
        return Choice(4, ("simt_tn_bf16_16x32x64_59631a",), (tiles_16x32,), ())
    # 5: everything else: any size, alignment and plan
    return Choice(5, ("simt_tn_bf16_64x64x16_47c955",), (min(tiles_64x64, 2147483647),), ())


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
