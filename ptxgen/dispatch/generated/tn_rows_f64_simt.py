"""Dispatch of TN rows f64 simt: products under the plan 'rows'.

Generated from ptxgen.tiles.TABLES["TN", "rows", "f64", "simt"]; do not edit.
Regenerate: ptxgen generate
"""

from ptxgen.dispatch.choice import Choice, Dispatch


def sm_80(m: int, n: int, k: int, sms: int, align_a: int, align_b: int) -> Choice | None:
    """For sm_80, sm_86, sm_87, sm_89, sm_100, sm_103, sm_110, sm_120, sm_121."""
    chunk = max(1, min(k, -(-k // 4 // 16) * 16 if n <= 2048 and k >= 2048 else k))
    chunks = -(-k // chunk)
    tiles_128x64 = -(-m // 128) * -(-n // 64)
    # 13: FMA units: a large tile for every SM
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_128x64 <= 2147483647
        and chunks <= 1 and sms * 4 <= tiles_128x64 * 1 * 4
    ):
        return Choice(13, ("f64_tn_f64_128x64x16_0d62c5",), (tiles_128x64,), ())
    tiles_64x32 = -(-m // 64) * -(-n // 32)
    # 14: everything else: any size and alignment
    return Choice(14, ("f64_tn_f64_64x32x16_5f41c9",), (min(tiles_64x32, 2147483647),), ())


def sm_90(m: int, n: int, k: int, sms: int, align_a: int, align_b: int) -> Choice | None:
    """For sm_90."""
    chunk = max(1, min(k, -(-k // 4 // 16) * 16 if n <= 2048 and k >= 2048 else k))
    chunks = -(-k // chunk)
    tiles_16x32 = -(-m // 16) * -(-n // 32)
    # 0: M <= 16: chunks side by side in a cluster
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 4 and tiles_16x32 * 4 <= 2147483647
        and chunks > 1 and m <= 16
    ):
        return Choice(0, ("f64_tn_f64_16x32x32_acd14e",), (tiles_16x32 * 4,), ())
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 1: one round of tiles, or many: chunks one after another
    if (
        align_a >= 16 and align_b >= 16 and tiles_64x64 <= 2147483647 and chunks > 1
        and sms * 6 <= tiles_64x64 * 1 * 4
        and (sms * 9 > tiles_64x64 * 1 * 4 or sms * 20 <= tiles_64x64 * 1 * 4)
    ):
        return Choice(1, ("f64_tn_f64_64x64x16_f31963",), (tiles_64x64,), ())
    tiles_32x64 = -(-m // 32) * -(-n // 64)
    # 2: chunks side by side in a cluster
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 4 and tiles_32x64 * 4 <= 2147483647
        and chunks > 1 and sms * 3 <= tiles_32x64 * 4 * 4
    ):
        return Choice(2, ("f64_tn_f64_32x64x16_e0ef0c",), (tiles_32x64 * 4,), ())
    tiles_32x32 = -(-m // 32) * -(-n // 32)
    # 3: few outputs: the smallest tile
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 4 and tiles_32x32 * 4 <= 2147483647
        and chunks > 1
    ):
        return Choice(3, ("f64_tn_f64_32x32x32_4e035a",), (tiles_32x32 * 4,), ())
    # 4: M <= 16: the weight streams once
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_16x32 <= 2147483647
        and chunks <= 1 and m <= 16
    ):
        return Choice(4, ("f64_tn_f64_16x32x32_a3d17c",), (tiles_16x32,), ())
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    # 5: large outputs
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_128x128 <= 2147483647
        and chunks <= 1 and sms * 20 <= tiles_128x128 * 1 * 4 and k >= 1024
    ):
        return Choice(5, ("f64_tn_f64_128x128x16_8d71c9",), (tiles_128x128,), ())
    # 6: the largest tile of which most SMs get two
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_64x64 <= 2147483647
        and chunks <= 1 and m > 32 and sms * 5 <= tiles_64x64 * 1 * 4
    ):
        return Choice(6, ("f64_tn_f64_64x64x16_51aec3",), (tiles_64x64,), ())
    # 7: the largest tile of which most SMs get two
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_32x64 <= 2147483647
        and chunks <= 1 and m > 16 and sms * 5 <= tiles_32x64 * 1 * 4
    ):
        return Choice(7, ("f64_tn_f64_32x64x32_68062b",), (tiles_32x64,), ())
    # 8: few outputs: the smallest tile
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_32x32 <= 2147483647
        and chunks <= 1
    ):
        return Choice(8, ("f64_tn_f64_32x32x32_1f1633",), (tiles_32x32,), ())
    # 9: odd M <= 16: the weight streams once
    if align_b >= 16 and chunks <= 1 and tiles_16x32 <= 2147483647 and chunks <= 1 and m <= 16:
        return Choice(9, ("f64_tn_f64_16x32x32_de508b",), (tiles_16x32,), ())
    # 10: odd M <= 16: chunks side by side in a cluster
    if align_b >= 16 and chunks <= 4 and tiles_16x32 * 4 <= 2147483647 and m <= 16:
        return Choice(10, ("f64_tn_f64_16x32x32_1f1bc8",), (tiles_16x32 * 4,), ())
    # 11: operands off 16 bytes: many tiles
    if tiles_64x64 <= 2147483647 and sms * 6 <= tiles_64x64 * 1 * 4:
        return Choice(11, ("f64_tn_f64_64x64x16_227970",), (tiles_64x64,), ())
    # 12: operands off 16 bytes
    if tiles_32x32 <= 2147483647:
        return Choice(12, ("f64_tn_f64_32x32x32_a9c6dd",), (tiles_32x32,), ())
    tiles_128x64 = -(-m // 128) * -(-n // 64)
    # 13: FMA units: a large tile for every SM
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_128x64 <= 2147483647
        and chunks <= 1 and sms * 4 <= tiles_128x64 * 1 * 4
    ):
        return Choice(13, ("f64_tn_f64_128x64x16_0d62c5",), (tiles_128x64,), ())
    tiles_64x32 = -(-m // 64) * -(-n // 32)
    # 14: everything else: any size and alignment
    return Choice(14, ("f64_tn_f64_64x32x16_5f41c9",), (min(tiles_64x32, 2147483647),), ())


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
