"""Dispatch of TN batch f64 simt: products under the plan 'batch'.

Generated from ptxgen.tiles.TABLES["TN", "batch", "f64", "simt"]; do not edit.
Regenerate: ptxgen generate
"""

from ptxgen.dispatch.choice import Choice, Dispatch


def sm_80(m: int, n: int, k: int, sms: int, align_a: int, align_b: int) -> Choice | None:
    """For sm_80, sm_86, sm_87, sm_89, sm_100, sm_103, sm_110, sm_120, sm_121."""
    chunk = max(1, min(k, -(-max(-(-k // min(max(1048576 // (m * n), 1), 32)), 128) // 16) * 16))
    chunks = -(-k // chunk)
    tiles_32x32 = -(-m // 32) * -(-n // 32)
    # 2: long batch, on FMA units: any alignment
    if (
        chunks * m * n * 8 <= 268435456 and tiles_32x32 * chunks <= 2147483647
        and -(-(m * n) // 128) <= 2147483647 and chunks > 1
    ):
        return Choice(
            2, ("f64_tn_f64_32x32x32_828dd7", "reduce_f64_128_7d934e"),
            (tiles_32x32 * chunks, -(-(m * n) // 128)), (chunks * m * n * 8,),
        )
    tiles_128x64 = -(-m // 128) * -(-n // 64)
    # 11: FMA units: a large tile for every SM
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_128x64 <= 2147483647
        and chunks <= 1 and sms * 4 <= tiles_128x64 * 1 * 4
    ):
        return Choice(11, ("f64_tn_f64_128x64x16_0d62c5",), (tiles_128x64,), ())
    tiles_64x32 = -(-m // 64) * -(-n // 32)
    # 12: everything else: any size and alignment
    return Choice(12, ("f64_tn_f64_64x32x16_5f41c9",), (min(tiles_64x32, 2147483647),), ())


def sm_90(m: int, n: int, k: int, sms: int, align_a: int, align_b: int) -> Choice | None:
    """For sm_90."""
    chunk = max(1, min(k, -(-max(-(-k // min(max(1048576 // (m * n), 1), 32)), 128) // 16) * 16))
    chunks = -(-k // chunk)
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 0: a CTA per tile and chunk
    if (
        align_a >= 16 and align_b >= 16 and chunks * m * n * 8 <= 268435456
        and tiles_64x64 * chunks <= 2147483647 and -(-(m * n) // 128) <= 2147483647 and chunks > 1
        and sms * 6 <= tiles_64x64 * chunks * 4
    ):
        return Choice(
            0, ("f64_tn_f64_64x64x16_f418fc", "reduce_f64_128_7d934e"),
            (tiles_64x64 * chunks, -(-(m * n) // 128)), (chunks * m * n * 8,),
        )
    tiles_32x32 = -(-m // 32) * -(-n // 32)
    # 1: long batch, few outputs
    if (
        align_a >= 16 and align_b >= 16 and chunks * m * n * 8 <= 268435456
        and tiles_32x32 * chunks <= 2147483647 and -(-(m * n) // 128) <= 2147483647 and chunks > 1
    ):
        return Choice(
            1, ("f64_tn_f64_32x32x32_e2d506", "reduce_f64_128_7d934e"),
            (tiles_32x32 * chunks, -(-(m * n) // 128)), (chunks * m * n * 8,),
        )
    # 2: long batch, on FMA units: any alignment
    if (
        chunks * m * n * 8 <= 268435456 and tiles_32x32 * chunks <= 2147483647
        and -(-(m * n) // 128) <= 2147483647 and chunks > 1
    ):
        return Choice(
            2, ("f64_tn_f64_32x32x32_828dd7", "reduce_f64_128_7d934e"),
            (tiles_32x32 * chunks, -(-(m * n) // 128)), (chunks * m * n * 8,),
        )
    tiles_16x32 = -(-m // 16) * -(-n // 32)
    # 3: M <= 16: the weight streams once
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_16x32 <= 2147483647
        and chunks <= 1 and m <= 16
    ):
        return Choice(3, ("f64_tn_f64_16x32x32_a3d17c",), (tiles_16x32,), ())
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    # 4: large outputs
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_128x128 <= 2147483647
        and chunks <= 1 and sms * 20 <= tiles_128x128 * 1 * 4 and k >= 1024
    ):
        return Choice(4, ("f64_tn_f64_128x128x16_8d71c9",), (tiles_128x128,), ())
    # 5: the largest tile of which most SMs get two
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_64x64 <= 2147483647
        and chunks <= 1 and m > 32 and sms * 5 <= tiles_64x64 * 1 * 4
    ):
        return Choice(5, ("f64_tn_f64_64x64x16_51aec3",), (tiles_64x64,), ())
    tiles_32x64 = -(-m // 32) * -(-n // 64)
    # 6: the largest tile of which most SMs get two
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_32x64 <= 2147483647
        and chunks <= 1 and m > 16 and sms * 5 <= tiles_32x64 * 1 * 4
    ):
        return Choice(6, ("f64_tn_f64_32x64x32_68062b",), (tiles_32x64,), ())
    # 7: few outputs: the smallest tile
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_32x32 <= 2147483647
        and chunks <= 1
    ):
        return Choice(7, ("f64_tn_f64_32x32x32_1f1633",), (tiles_32x32,), ())
    # 8: odd M <= 16: the weight streams once
    if align_b >= 16 and chunks <= 1 and tiles_16x32 <= 2147483647 and chunks <= 1 and m <= 16:
        return Choice(8, ("f64_tn_f64_16x32x32_de508b",), (tiles_16x32,), ())
    # 9: operands off 16 bytes: many tiles
    if tiles_64x64 <= 2147483647 and sms * 6 <= tiles_64x64 * 1 * 4:
        return Choice(9, ("f64_tn_f64_64x64x16_227970",), (tiles_64x64,), ())
    # 10: operands off 16 bytes
    if tiles_32x32 <= 2147483647:
        return Choice(10, ("f64_tn_f64_32x32x32_a9c6dd",), (tiles_32x32,), ())
    tiles_128x64 = -(-m // 128) * -(-n // 64)
    # 11: FMA units: a large tile for every SM
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_128x64 <= 2147483647
        and chunks <= 1 and sms * 4 <= tiles_128x64 * 1 * 4
    ):
        return Choice(11, ("f64_tn_f64_128x64x16_0d62c5",), (tiles_128x64,), ())
    tiles_64x32 = -(-m // 64) * -(-n // 32)
    # 12: everything else: any size and alignment
    return Choice(12, ("f64_tn_f64_64x32x16_5f41c9",), (min(tiles_64x32, 2147483647),), ())


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
