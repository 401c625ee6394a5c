"""Dispatch of conv half, conv turned half: windows under the plan 'rows'.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Launches, Routes, Time

SOME_0 = frozenset(("sm_90",))
# ROUTES: route, least unit, least flat, least align_a, least align_b, launches
ROUTES = Routes({
    "conv_half": (
        # windows of an image as it lies
        (0, 16, 0, 16, 16, (0,)), (1, 16, 0, 16, 16, (1,)), (2, 16, 0, 16, 16, (2,)),
        (3, 16, 0, 16, 16, (3,)), (4, 16, 0, 16, 16, (4,)), (5, 16, 0, 16, 16, (5,)),
        # the same, of channels that are an odd multiple of 8
        (6, 8, 0, 16, 16, (6,)), (7, 8, 0, 16, 16, (7,)), (8, 8, 0, 16, 16, (8,)),
        (9, 8, 0, 16, 16, (9,)), (10, 8, 0, 16, 16, (10,)),
        # few windows: a CTA per tile and chunk
        (11, 16, 1, 16, 16, (11, "reduce")), (12, 16, 1, 16, 16, (12, "reduce")),
    ),
    "conv_turned_half": (
        # windows of an image as it lies, and filters as they do
        (0, 16, 0, 16, 16, (0,)), (1, 16, 0, 16, 16, (1,)), (2, 16, 0, 16, 16, (2,)),
        (3, 16, 0, 16, 16, (3,)), (4, 16, 0, 16, 16, (4,)),
    ),
})
# CONV_WGMMA: kernel
CONV_WGMMA = {
    "conv_half": ("conv_wgmma_nt_bf16_128x256x64_16_5a227c",),
    "conv_turned_half": ("conv_wgmma_nn_bf16_128x256x64_16_dee79e",),
}
# CONV_WGMMA1: launch, kernel, bm, bn
CONV_WGMMA1 = {
    "conv_half": (
        (1, "conv_wgmma_nt_bf16_128x128x64_16_651852", 128, 128),
        (2, "conv_wgmma_nt_bf16_128x64x64_16_ac14d1", 128, 64),
        (3, "conv_wgmma_nt_bf16_64x128x64_16_ec48d3", 64, 128),
        (4, "conv_wgmma_nt_bf16_64x64x64_16_0b47c7", 64, 64),
        (5, "conv_wgmma_nt_bf16_64x32x64_16_7c95a5", 64, 32),
        (6, "conv_wgmma_nt_bf16_128x128x64_8_2ac835", 128, 128),
        (7, "conv_wgmma_nt_bf16_128x64x64_8_60725c", 128, 64),
        (8, "conv_wgmma_nt_bf16_64x128x64_8_68cf91", 64, 128),
        (9, "conv_wgmma_nt_bf16_64x64x64_8_ffdd1e", 64, 64),
        (10, "conv_wgmma_nt_bf16_64x32x64_8_3206a6", 64, 32),
    ),
    "conv_turned_half": (
        (1, "conv_wgmma_nn_bf16_128x128x64_16_39d1ae", 128, 128),
        (2, "conv_wgmma_nn_bf16_128x64x64_16_0733d8", 128, 64),
        (3, "conv_wgmma_nn_bf16_64x128x64_16_8df501", 64, 128),
        (4, "conv_wgmma_nn_bf16_64x64x64_16_614fbb", 64, 64),
    ),
}
# CONV_WGMMA2: launch, kernel, bm, c0, c1
CONV_WGMMA2 = {
    "conv_half": (
        (11, "conv_wgmma_nt_bf16_128x128x64_16_9856dc", 128, 16384, 512),
        (12, "conv_wgmma_nt_bf16_64x64x64_16_d22270", 64, 4096, 256),
    ),
}


def candidates(
    table: str, arch: str, m: int, n: int, k: int, unit: int, flat: int, sms: int, align_a: int,
    align_b: int, time: Time,
) -> Iterator[Candidate]:
    """What can serve a problem, with predicted times."""
    u = {
        "conv_half": k,
        "conv_turned_half": n,
    }[table]
    chunk_part_1 = -(-min(-(-k // 8), 2048) // 128) * 128
    chunk = max(1, min(k, chunk_part_1 if n <= 2048 and max(6 * n, 4096) <= k else k))
    chunks = -(-k // chunk)
    fitting = ROUTES.fitting(table, unit, flat, align_a, align_b)
    launches: Launches = {}
    operands = (m + n) * k * 2
    stores = m * n * 2
    tiles_128x256 = -(-m // 128) * -(-n // 256)
    for kernel in CONV_WGMMA[table] if arch in SOME_0 and 0 in fitting else ():
        if (
            chunks <= 1 and sms >= 1 and m + 128 <= 2147483647 and n + 256 <= 2147483647
            and k + 64 <= 2147483647 and tiles_128x256 + sms <= 4294967295
        ):
            us = time(
                kernel, "wgmma", 1, sms, tiles_128x256, -(-k // 64), k * 32768,
                tiles_128x256 * k * (768 + (min(k % 16, 1) * 128 + min(u % 16, 1) * 256) * 6),
                operands, stores,
            )
            launches[0] = us, kernel, min(tiles_128x256, sms) * 1, {}
    for launch, kernel, bm, bn in fitting.rows(CONV_WGMMA1) if arch in SOME_0 else ():
        tiles = -(-m // bm) * -(-n // bn)
        if (
            sms >= 1 and m + bm <= 2147483647 and n + bn <= 2147483647 and k + 64 <= 2147483647
            and tiles + sms <= 4294967295
        ):
            us = time(
                kernel, "wgmma", 1, sms, tiles, -(-k // 64), k * (bm * bn),
                tiles * k * ((bm + bn) * 2 + (min(k % 16, 1) * bm + min(u % 16, 1) * bn) * 6),
                operands, stores,
            )
            launches[launch] = us, kernel, min(tiles, sms) * 1, {}
    stores1 = chunks * m * n * 4
    for launch, kernel, bm, c0, c1 in fitting.rows(CONV_WGMMA2) if arch in SOME_0 else ():
        tiles = -(-m // bm) * -(-n // bm)
        if (
            stores1 <= 268435456 and sms >= 1 and m + bm <= 2147483647 and n + bm <= 2147483647
            and k + 64 <= 2147483647 and tiles * chunks + sms <= 4294967295
        ):
            us = time(
                kernel, "wgmma", 1, sms, tiles * chunks, -(-chunk // 64), chunk * c0,
                tiles * k * (c1 + (min(k % 16, 1) * bm + min(k % 16, 1) * bm) * 6), operands,
                stores1,
            )
            launches[launch] = us, kernel, min(tiles * chunks, sms) * 1, {"workspace": stores1}
    ctas = -(-(m * n) // 512)
    if table == "conv_half" and "reduce" in fitting and stores1 <= 268435456 and ctas <= 2147483647:
        us = time(
            "reduce_bf16_128x4_9cc9ba", "fma", 8, sms, ctas, -(-chunks // 8), 0, stores1, stores1,
            stores,
        )
        launches["reduce"] = us, "reduce_bf16_128x4_9cc9ba", ctas, {"workspace": stores1}
    yield from fitting.combined(launches)
