"""Dispatch of TT rows half tc: products under the plan 'rows'.

Generated from ptxgen.tiles.TABLES["TT", "rows", "half", "tc"]; do not edit.
Regenerate: ptxgen generate
"""

from ptxgen.dispatch.choice import Choice, Dispatch


def sm_80(m: int, n: int, k: int, sms: int, align_a: int, align_b: int) -> Choice | None:
    """For sm_80, sm_86, sm_87, sm_89, sm_100, sm_103, sm_110, sm_120, sm_121."""
    chunk = max(1, min(k, k))
    chunks = -(-k // chunk)
    tiles_32x32 = -(-m // 32) * -(-n // 32)
    # 0: M <= 32: the weight streams once
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_32x32 <= 2147483647 and m <= 32:
        return Choice(0, ("mma_tt_bf16_32x32x128_9789f3",), (tiles_32x32,), ())
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    # 3: the largest tile that gives 2/4 of the SMs one
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_128x128 <= 2147483647
        and sms * 2 <= tiles_128x128 * 1 * 4
    ):
        return Choice(3, ("mma_tt_bf16_128x128x64_1a3fc2",), (tiles_128x128,), ())
    # 4: few outputs: the smallest tile
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_32x32 <= 2147483647:
        return Choice(4, ("mma_tt_bf16_32x32x128_9789f3",), (tiles_32x32,), ())
    tiles_8x32 = -(-m // 8) * -(-n // 32)
    # 5: operands off 16 bytes
    if align_a >= 4 and align_b >= 16 and chunks <= 1 and tiles_8x32 <= 2147483647 and m <= 8:
        return Choice(5, ("mma_tt_bf16_8x32x256_a02f9a",), (tiles_8x32,), ())
    tiles_16x32 = -(-m // 16) * -(-n // 32)
    # 6: operands off 16 bytes
    if chunks <= 1 and tiles_16x32 <= 2147483647 and m <= 16:
        return Choice(6, ("mma_tt_bf16_16x32x128_406efa",), (tiles_16x32,), ())
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 7: everything else: any size and alignment
    if chunks <= 1:
        return Choice(7, ("mma_tt_bf16_64x64x32_3bec8e",), (min(tiles_64x64, 2147483647),), ())
    return None


def sm_90(m: int, n: int, k: int, sms: int, align_a: int, align_b: int) -> Choice | None:
    """For sm_90."""
    chunk = max(1, min(k, k))
    chunks = -(-k // chunk)
    tiles_32x32 = -(-m // 32) * -(-n // 32)
    # 0: M <= 32: the weight streams once
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_32x32 <= 2147483647 and m <= 32:
        return Choice(0, ("mma_tt_bf16_32x32x128_9789f3",), (tiles_32x32,), ())
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    # 1: the largest tile that gives 3/4 of the SMs one
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 128 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x128 + sms <= 4294967295
        and -(-n // 128) * 8 <= 4294967295 and k >= 64 and sms * 3 <= tiles_128x128 * 1 * 4
    ):
        return Choice(
            1, ("wgmma_tt_bf16_128x128x64_82abbb",), (min(tiles_128x128, sms // 1) * 1,), (),
        )
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 2: few outputs: the smallest tile
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 64 <= 2147483647 and k + 64 <= 2147483647 and tiles_64x64 + sms <= 4294967295
        and -(-n // 64) * 8 <= 4294967295 and k >= 64
    ):
        return Choice(2, ("wgmma_tt_bf16_64x64x64_e81f12",), (min(tiles_64x64, sms // 1) * 1,), ())
    # 3: the largest tile that gives 2/4 of the SMs one
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_128x128 <= 2147483647
        and sms * 2 <= tiles_128x128 * 1 * 4
    ):
        return Choice(3, ("mma_tt_bf16_128x128x64_1a3fc2",), (tiles_128x128,), ())
    # 4: few outputs: the smallest tile
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_32x32 <= 2147483647:
        return Choice(4, ("mma_tt_bf16_32x32x128_9789f3",), (tiles_32x32,), ())
    tiles_8x32 = -(-m // 8) * -(-n // 32)
    # 5: operands off 16 bytes
    if align_a >= 4 and align_b >= 16 and chunks <= 1 and tiles_8x32 <= 2147483647 and m <= 8:
        return Choice(5, ("mma_tt_bf16_8x32x256_a02f9a",), (tiles_8x32,), ())
    tiles_16x32 = -(-m // 16) * -(-n // 32)
    # 6: operands off 16 bytes
    if chunks <= 1 and tiles_16x32 <= 2147483647 and m <= 16:
        return Choice(6, ("mma_tt_bf16_16x32x128_406efa",), (tiles_16x32,), ())
    # 7: everything else: any size and alignment
    if chunks <= 1:
        return Choice(7, ("mma_tt_bf16_64x64x32_3bec8e",), (min(tiles_64x64, 2147483647),), ())
    return None


BY_ARCH: dict[str, Dispatch] = {
    "sm_80": sm_80,
    "sm_86": sm_80,
    "sm_87": sm_80,
    "sm_89": sm_80,
    "sm_90": sm_90,
    "sm_100": sm_80,
    "sm_103": sm_80,
    "sm_110": sm_80,
    "sm_120": sm_80,
    "sm_121": sm_80,
}
