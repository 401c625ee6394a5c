"""Dispatch of TT rows f64 simt: products under the plan 'rows'.

Generated from ptxgen.tiles.TABLES["TT", "rows", "f64", "simt"]; do not edit.
Regenerate: ptxgen generate
"""

from ptxgen.dispatch.choice import Choice, Dispatch


def sm_80(m: int, n: int, k: int, sms: int, align_a: int, align_b: int) -> Choice | None:
    """For sm_80, sm_86, sm_87, sm_89, sm_100, sm_103, sm_110, sm_120, sm_121."""
    chunk = max(1, min(k, -(-k // 4 // 16) * 16 if n <= 2048 and k >= 2048 else k))
    chunks = -(-k // chunk)
    tiles_128x64 = -(-m // 128) * -(-n // 64)
    # 6: FMA units: a large tile for every SM
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_128x64 <= 2147483647
        and chunks <= 1 and sms * 4 <= tiles_128x64 * 1 * 4
    ):
        return Choice(6, ("f64_tt_f64_128x64x16_2277ad",), (tiles_128x64,), ())
    tiles_64x32 = -(-m // 64) * -(-n // 32)
    # 7: everything else: any size and alignment
    return Choice(7, ("f64_tt_f64_64x32x16_40d332",), (min(tiles_64x32, 2147483647),), ())


def sm_90(m: int, n: int, k: int, sms: int, align_a: int, align_b: int) -> Choice | None:
    """For sm_90."""
    chunk = max(1, min(k, -(-k // 4 // 16) * 16 if n <= 2048 and k >= 2048 else k))
    chunks = -(-k // chunk)
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 0: one round of tiles, or many: chunks one after another
    if (
        align_a >= 16 and align_b >= 16 and tiles_64x64 <= 2147483647 and chunks > 1
        and sms * 6 <= tiles_64x64 * 1 * 4
        and (sms * 9 > tiles_64x64 * 1 * 4 or sms * 20 <= tiles_64x64 * 1 * 4)
    ):
        return Choice(0, ("f64_tt_f64_64x64x16_44441e",), (tiles_64x64,), ())
    tiles_32x32 = -(-m // 32) * -(-n // 32)
    # 1: few outputs: the smallest tile
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 4 and tiles_32x32 * 4 <= 2147483647
        and chunks > 1
    ):
        return Choice(1, ("f64_tt_f64_32x32x32_949209",), (tiles_32x32 * 4,), ())
    # 2: the largest tile of which most SMs get two
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_64x64 <= 2147483647
        and chunks <= 1 and m > 32 and sms * 5 <= tiles_64x64 * 1 * 4
    ):
        return Choice(2, ("f64_tt_f64_64x64x16_47dedb",), (tiles_64x64,), ())
    # 3: few outputs: the smallest tile
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_32x32 <= 2147483647
        and chunks <= 1
    ):
        return Choice(3, ("f64_tt_f64_32x32x32_9687e0",), (tiles_32x32,), ())
    # 4: operands off 16 bytes: many tiles
    if tiles_64x64 <= 2147483647 and sms * 6 <= tiles_64x64 * 1 * 4:
        return Choice(4, ("f64_tt_f64_64x64x16_8a13fd",), (tiles_64x64,), ())
    # 5: operands off 16 bytes
    if tiles_32x32 <= 2147483647:
        return Choice(5, ("f64_tt_f64_32x32x32_0ad25e",), (tiles_32x32,), ())
    tiles_128x64 = -(-m // 128) * -(-n // 64)
    # 6: FMA units: a large tile for every SM
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_128x64 <= 2147483647
        and chunks <= 1 and sms * 4 <= tiles_128x64 * 1 * 4
    ):
        return Choice(6, ("f64_tt_f64_128x64x16_2277ad",), (tiles_128x64,), ())
    tiles_64x32 = -(-m // 64) * -(-n // 32)
    # 7: everything else: any size and alignment
    return Choice(7, ("f64_tt_f64_64x32x16_40d332",), (min(tiles_64x32, 2147483647),), ())


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
