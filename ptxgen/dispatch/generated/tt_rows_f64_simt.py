"""Dispatch of TT rows f64 simt: products under the plan 'rows'.

Generated from ptxgen.tiles.TABLES["TT", "rows", "f64", "simt"]; do not edit.
Regenerate: ptxgen generate
"""

from ptxgen.dispatch.choice import Choice, Dispatch


def sm_80(m: int, n: int, k: int, sms: int, align_a: int, align_b: int) -> Choice | None:
    """For sm_80, sm_86, sm_87, sm_89, sm_90, sm_100, sm_103, sm_110, sm_120, sm_121."""
    chunk = max(1, min(k, -(-k // 4 // 16) * 16 if n <= 2048 and k >= 2048 else k))
    chunks = -(-k // chunk)
    tiles_128x64 = -(-m // 128) * -(-n // 64)
    # 0: FMA units: a large tile for every SM
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_128x64 <= 2147483647
        and chunks <= 1 and sms * 4 <= tiles_128x64 * 1 * 4
    ):
        return Choice(0, ("f64_tt_f64_128x64x16_2277ad",), (tiles_128x64,), ())
    tiles_64x32 = -(-m // 64) * -(-n // 32)
    # 1: everything else: any size and alignment
    return Choice(1, ("f64_tt_f64_64x32x16_40d332",), (min(tiles_64x32, 2147483647),), ())


BY_ARCH: dict[str, Dispatch] = {
    "sm_80": sm_80,
    "sm_86": sm_80,
    "sm_87": sm_80,
    "sm_89": sm_80,
    "sm_90": sm_80,
    "sm_100": sm_80,
    "sm_103": sm_80,
    "sm_110": sm_80,
    "sm_120": sm_80,
    "sm_121": sm_80,
}
