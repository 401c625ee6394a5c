"""Dispatch of conv summed half: windows under the plan 'batch'.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Launches, Routes, Time

SOME_0 = frozenset(("sm_90",))
# ROUTES: route, least unit, least align_a, least align_b, launches
ROUTES = Routes({
    "conv_summed_half": (
        # sums over windows of an image as it lies
        (0, 8, 16, 16, (0,)), (1, 8, 16, 16, (1,)), (2, 8, 16, 16, (2,)),
        # the same, of few channels
        (3, 8, 16, 16, (3,)),
        # a CTA per tile and chunk
        (4, 8, 16, 16, (4, "reduce")), (5, 8, 16, 16, (5, "reduce")), (6, 8, 16, 16, (6, "reduce")),
        (7, 8, 16, 16, (7, "reduce")), (8, 8, 16, 16, (8, "reduce")),
    ),
})
# CONV_SUM: launch, kernel, bm, bn, panels_each, c0, c1
CONV_SUM = {
    "conv_summed_half": (
        (4, "conv_sum_tn_bf16_128x64x64_841a42", 128, 64, 1, 8192, 24576),
        (5, "conv_sum_tn_bf16_64x192x64_4afa35", 64, 192, 3, 12288, 32768),
    ),
}
# CONV_GATHER: launch, kernel, bn, c0, c1
CONV_GATHER = {
    "conv_summed_half": (
        (6, "conv_gather_tn_bf16_128x256x64_73e0a3", 256, 32768, 49152),
        (7, "conv_gather_tn_bf16_128x128x64_b98dcd", 128, 16384, 32768),
    ),
}


def candidates(
    table: str, arch: str, m: int, n: int, k: int, taps: int, unit: int, flat: int, phases: int,
    pixels: int, sms: int, align_a: int, align_b: int, time: Time,
) -> Iterator[Candidate]:
    """What can serve a problem, with predicted times."""
    chunk_part_1 = -(-k // min(max(4718592 // (m * n), 1), 16))
    chunk = max(1, min(k, -(-max(chunk_part_1, min(max(m * n // 32, 512), 4096)) // 64) * 64))
    chunks = -(-k // chunk)
    panels = taps * -(-n // (taps * 64))
    fitting = ROUTES.fitting(table, unit, align_a, align_b)
    launches: Launches = {}
    operands = (m * k + n // taps * k) * 2
    stores = m * n * 2
    tiles_m128_panels3 = -(-m // 128) * -(-panels // 3)
    if (
        arch in SOME_0 and 0 in fitting and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 192 <= 2147483647 and k + 64 <= 2147483647
        and tiles_m128_panels3 + sms <= 4294967295 and panels * 64 + 192 <= 4294967295
        and phases <= 1
    ):
        us = time(
            "conv_sum_tn_bf16_128x192x64_7f374d", "wgmma", 1, sms, tiles_m128_panels3,
            -(-(-(-k // 64) * k) // k), k * 24576, tiles_m128_panels3 * -(-k // 64) * 40960,
            operands, stores,
        )
        launches[0] = us, "conv_sum_tn_bf16_128x192x64_7f374d", min(tiles_m128_panels3, sms) * 1, {}
    tiles_m256_panels3 = -(-m // 256) * -(-panels // 3)
    if (
        arch in SOME_0 and 1 in fitting and chunks <= 1 and sms >= 2 and m + 256 <= 2147483647
        and n + 192 <= 2147483647 and k + 64 <= 2147483647
        and tiles_m256_panels3 + sms // 2 <= 4294967295 and panels * 64 + 192 <= 4294967295
        and phases <= 1
    ):
        us = time(
            "conv_sum_tn_bf16_128x192x64_83a933", "wgmma", 1, sms, tiles_m256_panels3 * 2,
            -(-(-(-k // 64) * k) // k), k * 24576, tiles_m256_panels3 * -(-k // 64) * 57344,
            operands, stores,
        )
        launches[1] = (
            us, "conv_sum_tn_bf16_128x192x64_83a933", min(tiles_m256_panels3, sms // 2) * 2, {},
        )
    tiles_m64_panels2 = -(-m // 64) * -(-panels // 2)
    if (
        arch in SOME_0 and 2 in fitting and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 128 <= 2147483647 and k + 64 <= 2147483647
        and tiles_m64_panels2 + sms * 2 <= 4294967295 and panels * 64 + 128 <= 4294967295
        and phases <= 1
    ):
        us = time(
            "conv_sum_tn_bf16_64x128x64_a86c83", "wgmma", 2, sms, tiles_m64_panels2,
            -(-(-(-k // 64) * k) // k), k * 8192, tiles_m64_panels2 * -(-k // 64) * 24576, operands,
            stores,
        )
        launches[2] = (
            us, "conv_sum_tn_bf16_64x128x64_a86c83", min(tiles_m64_panels2, sms * 2) * 1, {},
        )
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    if (
        arch in SOME_0 and 3 in fitting and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 64 <= 2147483647 and k + 64 <= 2147483647 and tiles_64x64 + sms * 2 <= 4294967295
        and phases <= 1
    ):
        us = time(
            "conv_gather_tn_bf16_64x64x64_d9ce0b", "wgmma", 2, sms, tiles_64x64,
            -(-(-(-k // 64) * k) // k), k * 4096, tiles_64x64 * -(-k // 64) * 16384, operands,
            stores,
        )
        launches[3] = us, "conv_gather_tn_bf16_64x64x64_d9ce0b", min(tiles_64x64, sms * 2) * 1, {}
    stores1 = chunks * m * n * 4
    for launch, kernel, bm, bn, panels_each, c0, c1 in fitting.rows(CONV_SUM):
        tiles = -(-m // bm) * -(-panels // panels_each)
        if (
            arch in SOME_0 and (chunk % 64 == 0 or chunks <= 1) and stores1 <= 268435456
            and sms >= 1 and m + bm <= 2147483647 and n + bn <= 2147483647 and k + 64 <= 2147483647
            and tiles * chunks + sms <= 4294967295 and panels * 64 + bn <= 4294967295
            and phases <= 1
        ):
            us = time(
                kernel, "wgmma", 1, sms, tiles * chunks, -(-(-(-k // 64) * chunk) // k), chunk * c0,
                tiles * -(-k // 64) * c1, operands, stores1,
            )
            launches[launch] = us, kernel, min(tiles * chunks, sms) * 1, {"workspace": stores1}
    ctas = -(-(m * n) // 512)
    if "reduce" in fitting and stores1 <= 268435456 and ctas <= 2147483647:
        us = time(
            "reduce_bf16_128x4_9cc9ba", "fma", 8, sms, ctas, -(-chunks // 8), 0, stores1, stores1,
            stores,
        )
        launches["reduce"] = us, "reduce_bf16_128x4_9cc9ba", ctas, {"workspace": stores1}
    for launch, kernel, bn, c0, c1 in fitting.rows(CONV_GATHER) if arch in SOME_0 else ():
        tiles = -(-m // 128) * -(-n // bn)
        if (
            (chunk % 64 == 0 or chunks <= 1) and stores1 <= 268435456 and sms >= 1
            and m + 128 <= 2147483647 and n + bn <= 2147483647 and k + 64 <= 2147483647
            and tiles * chunks + sms <= 4294967295 and phases <= 1
        ):
            us = time(
                kernel, "wgmma", 1, sms, tiles * chunks, -(-(-(-k // 64) * chunk) // k), chunk * c0,
                tiles * -(-k // 64) * c1, operands, stores1,
            )
            launches[launch] = us, kernel, min(tiles * chunks, sms) * 1, {"workspace": stores1}
    if (
        arch in SOME_0 and 8 in fitting and (chunk % 64 == 0 or chunks <= 1)
        and stores1 <= 268435456 and sms >= 1 and m + 64 <= 2147483647 and n + 64 <= 2147483647
        and k + 64 <= 2147483647 and tiles_64x64 * chunks + sms * 2 <= 4294967295 and phases <= 1
    ):
        us = time(
            "conv_gather_tn_bf16_64x64x64_b762b6", "wgmma", 2, sms, tiles_64x64 * chunks,
            -(-(-(-k // 64) * chunk) // k), chunk * 4096, tiles_64x64 * -(-k // 64) * 16384,
            operands, stores1,
        )
        launches[8] = (
            us, "conv_gather_tn_bf16_64x64x64_b762b6", min(tiles_64x64 * chunks, sms * 2) * 1,
            {"workspace": stores1},
        )
    yield from fitting.combined(launches)
