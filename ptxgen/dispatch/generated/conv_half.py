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
        # the same, of few channels, or of an odd multiple of 8
        (6, 8, 0, 16, 16, (6,)), (7, 8, 0, 16, 16, (7,)), (8, 8, 0, 16, 16, (8,)),
        (9, 8, 0, 16, 16, (9,)),
        # few windows: a CTA per tile and chunk
        (10, 16, 1, 16, 16, (10, "reduce")), (11, 8, 1, 16, 16, (11, "reduce")),
        (12, 8, 1, 16, 16, (12, "reduce")),
    ),
    "conv_turned_half": (
        # windows of an image as it lies, and filters as they do
        (0, 16, 0, 16, 16, (0,)), (1, 16, 0, 16, 16, (1,)), (2, 16, 0, 16, 16, (2,)),
        (3, 16, 0, 16, 16, (3,)), (4, 16, 0, 16, 16, (4,)),
        # the same, of any channels, and of several phases
        (5, 8, 0, 16, 16, (5,)), (6, 8, 0, 16, 16, (6,)), (7, 8, 0, 16, 16, (7,)),
        (8, 8, 0, 16, 16, (8,)), (9, 8, 0, 16, 16, (9,)), (10, 8, 0, 16, 16, (10,)),
        (11, 1, 0, 2, 16, (11,)),
        # few windows: a CTA per tile and chunk
        (12, 8, 1, 16, 16, (12, "reduce")),
    ),
})
# CONV_WGMMA: launch, kernel, bm, bn
CONV_WGMMA = {
    "conv_half": (
        (1, "conv_wgmma_nt_bf16_128x128x64_4d3742", 128, 128),
        (2, "conv_wgmma_nt_bf16_128x64x64_ef03f0", 128, 64),
        (3, "conv_wgmma_nt_bf16_64x128x64_d31b9d", 64, 128),
        (4, "conv_wgmma_nt_bf16_64x64x64_47f60c", 64, 64),
        (5, "conv_wgmma_nt_bf16_64x32x64_5abc2c", 64, 32),
    ),
}
# CONV_GATHER: launch, kernel, bn, c0, c1
CONV_GATHER = {
    "conv_half": (
        (8, "conv_gather_nt_bf16_64x64x64_0602db", 64, 4096, 16384),
        (9, "conv_gather_nt_bf16_64x32x64_83fa96", 32, 2048, 12288),
    ),
}
# CONV_WGMMA1: launch, kernel, bm, bn
CONV_WGMMA1 = {
    "conv_turned_half": (
        (1, "conv_wgmma_nn_bf16_128x128x64_37383a", 128, 128),
        (2, "conv_wgmma_nn_bf16_128x64x64_445e18", 128, 64),
        (3, "conv_wgmma_nn_bf16_64x128x64_038114", 64, 128),
        (4, "conv_wgmma_nn_bf16_64x64x64_63aa0f", 64, 64),
    ),
}
# CONV_GATHER1: launch, kernel, bn, c0, c1
CONV_GATHER1 = {
    "conv_turned_half": (
        (5, "conv_gather_nn_bf16_128x128x64_9a320d", 128, 16384, 32768),
        (6, "conv_carried_nn_bf16_128x128x64_54a858", 128, 16384, 32768),
        (7, "conv_carried_nn_bf16_128x64x64_c790f7", 64, 8192, 24576),
    ),
}
# CONV_CARRIED: launch, kernel, bm, bn
CONV_CARRIED = {
    "conv_turned_half": (
        (8, "conv_carried_nn_bf16_128x32x64_3a35ad", 128, 32),
        (9, "conv_carried_nn_bf16_64x64x64_3b4d03", 64, 64),
        (10, "conv_carried_nn_bf16_64x32x64_97de18", 64, 32),
    ),
}


def candidates(
    table: str, arch: str, m: int, n: int, k: int, taps: int, unit: int, flat: int, phases: int,
    sms: int, align_a: int, align_b: int, time: Time,
) -> Iterator[Candidate]:
    """What can serve a problem, with predicted times."""
    chunk_part_1 = -(-min(-(-k // 8), 2048) // 128) * 128
    chunk = max(1, min(k, chunk_part_1 if n <= 2048 and max(6 * n, 4096) <= k else k))
    chunks = -(-k // chunk)
    fitting = ROUTES.fitting(table, unit, flat, align_a, align_b)
    launches: Launches = {}
    operands = (m * (k // taps) + n * k) * 2
    stores = m * n * 2
    tiles_128x256 = -(-m // 128) * -(-n // 256)
    if (
        table == "conv_half" and arch in SOME_0 and 0 in fitting and chunks <= 1 and sms >= 1
        and m + 128 <= 2147483647 and n + 256 <= 2147483647 and k + 64 <= 2147483647
        and tiles_128x256 + sms <= 4294967295 and phases <= 1
    ):
        us = time(
            "conv_wgmma_nt_bf16_128x256x64_69568e", "wgmma", 1, sms, tiles_128x256,
            -(-(taps * -(-(k // taps) // 64) * k) // k), k * 32768,
            tiles_128x256 * (taps * -(-(k // taps) // 64)) * 49152, operands, stores,
        )
        launches[0] = us, "conv_wgmma_nt_bf16_128x256x64_69568e", min(tiles_128x256, sms) * 1, {}
    for launch, kernel, bm, bn in fitting.rows(CONV_WGMMA) if arch in SOME_0 else ():
        tiles = -(-m // bm) * -(-n // bn)
        if (
            sms >= 1 and m + bm <= 2147483647 and n + bn <= 2147483647 and k + 64 <= 2147483647
            and tiles + sms <= 4294967295 and phases <= 1
        ):
            us = time(
                kernel, "wgmma", 1, sms, tiles, -(-(taps * -(-(k // taps) // 64) * k) // k),
                k * (bm * bn), tiles * (taps * -(-(k // taps) // 64)) * ((bm + bn) * 128), operands,
                stores,
            )
            launches[launch] = us, kernel, min(tiles, sms) * 1, {}
    if (
        table == "conv_half" and arch in SOME_0 and 6 in fitting and chunks <= 1 and sms >= 1
        and m + 128 <= 2147483647 and n + 256 <= 2147483647 and k + 64 <= 2147483647
        and tiles_128x256 + sms <= 4294967295 and phases <= 1
    ):
        us = time(
            "conv_gather_nt_bf16_128x256x64_a37074", "wgmma", 1, sms, tiles_128x256,
            -(-(-(-k // 64) * k) // k), k * 32768, tiles_128x256 * -(-k // 64) * 49152, operands,
            stores,
        )
        launches[6] = us, "conv_gather_nt_bf16_128x256x64_a37074", min(tiles_128x256, sms) * 1, {}
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    if (
        table == "conv_half" and arch in SOME_0 and 7 in fitting
        and (chunk % 64 == 0 or chunks <= 1) and sms >= 1 and m + 128 <= 2147483647
        and n + 128 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x128 + sms <= 4294967295
        and phases <= 1
    ):
        us = time(
            "conv_gather_nt_bf16_128x128x64_b9b79f", "wgmma", 1, sms, tiles_128x128,
            -(-(-(-k // 64) * k) // k), k * 16384, tiles_128x128 * -(-k // 64) * 32768, operands,
            stores,
        )
        launches[7] = us, "conv_gather_nt_bf16_128x128x64_b9b79f", min(tiles_128x128, sms) * 1, {}
    for launch, kernel, bn, c0, c1 in fitting.rows(CONV_GATHER) if arch in SOME_0 else ():
        tiles = -(-m // 64) * -(-n // bn)
        if (
            (chunk % 64 == 0 or chunks <= 1) and sms >= 1 and m + 64 <= 2147483647
            and n + bn <= 2147483647 and k + 64 <= 2147483647 and tiles + sms * 2 <= 4294967295
            and phases <= 1
        ):
            us = time(
                kernel, "wgmma", 2, sms, tiles, -(-(-(-k // 64) * k) // k), k * c0,
                tiles * -(-k // 64) * c1, operands, stores,
            )
            launches[launch] = us, kernel, min(tiles, sms * 2) * 1, {}
    stores1 = chunks * m * n * 4
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    if (
        table == "conv_half" and arch in SOME_0 and 10 in fitting and stores1 <= 268435456
        and sms >= 1 and m + 64 <= 2147483647 and n + 64 <= 2147483647 and k + 64 <= 2147483647
        and tiles_64x64 * chunks + sms <= 4294967295 and phases <= 1
    ):
        us = time(
            "conv_wgmma_nt_bf16_64x64x64_02a2b2", "wgmma", 1, sms, tiles_64x64 * chunks,
            -(-(taps * -(-(k // taps) // 64) * chunk) // k), chunk * 4096,
            tiles_64x64 * (taps * -(-(k // taps) // 64)) * 16384, operands, stores1,
        )
        launches[10] = (
            us, "conv_wgmma_nt_bf16_64x64x64_02a2b2", min(tiles_64x64 * chunks, sms) * 1,
            {"workspace": stores1},
        )
    ctas = -(-(m * n) // 512)
    if "reduce" in fitting and stores1 <= 268435456 and ctas <= 2147483647:
        us = time(
            "reduce_bf16_128x4_9cc9ba", "fma", 8, sms, ctas, -(-chunks // 8), 0, stores1, stores1,
            stores,
        )
        launches["reduce"] = us, "reduce_bf16_128x4_9cc9ba", ctas, {"workspace": stores1}
    if (
        table == "conv_half" and arch in SOME_0 and 11 in fitting
        and (chunk % 64 == 0 or chunks <= 1) and stores1 <= 268435456 and sms >= 1
        and m + 128 <= 2147483647 and n + 256 <= 2147483647 and k + 64 <= 2147483647
        and tiles_128x256 * chunks + sms <= 4294967295 and phases <= 1
    ):
        us = time(
            "conv_gather_nt_bf16_128x256x64_80efd2", "wgmma", 1, sms, tiles_128x256 * chunks,
            -(-(-(-k // 64) * chunk) // k), chunk * 32768, tiles_128x256 * -(-k // 64) * 49152,
            operands, stores1,
        )
        launches[11] = (
            us, "conv_gather_nt_bf16_128x256x64_80efd2", min(tiles_128x256 * chunks, sms) * 1,
            {"workspace": stores1},
        )
    tiles_64x32 = -(-m // 64) * -(-n // 32)
    if (
        table == "conv_half" and arch in SOME_0 and 12 in fitting
        and (chunk % 64 == 0 or chunks <= 1) and stores1 <= 268435456 and sms >= 1
        and m + 64 <= 2147483647 and n + 32 <= 2147483647 and k + 64 <= 2147483647
        and tiles_64x32 * chunks + sms * 2 <= 4294967295 and phases <= 1
    ):
        us = time(
            "conv_gather_nt_bf16_64x32x64_988d7f", "wgmma", 2, sms, tiles_64x32 * chunks,
            -(-(-(-k // 64) * chunk) // k), chunk * 2048, tiles_64x32 * -(-k // 64) * 12288,
            operands, stores1,
        )
        launches[12] = (
            us, "conv_gather_nt_bf16_64x32x64_988d7f", min(tiles_64x32 * chunks, sms * 2) * 1,
            {"workspace": stores1},
        )
    operands1 = min(m * (k // taps) + n * k, sms * 1 * 128 * (k // taps) + n * k) * 2
    if (
        table == "conv_turned_half" and arch in SOME_0 and 0 in fitting and chunks <= 1 and sms >= 1
        and m + 128 <= 2147483647 and n + 256 <= 2147483647 and k + 64 <= 2147483647
        and tiles_128x256 + sms <= 4294967295 and phases <= 1
    ):
        us = time(
            "conv_wgmma_nn_bf16_128x256x64_bf1a6e", "wgmma", 1, sms, tiles_128x256,
            -(-(taps * -(-(k // taps) // 64) * k) // k), k * 32768,
            tiles_128x256 * (taps * -(-(k // taps) // 64)) * 49152, operands1, stores,
        )
        launches[0] = us, "conv_wgmma_nn_bf16_128x256x64_bf1a6e", min(tiles_128x256, sms) * 1, {}
    for launch, kernel, bm, bn in fitting.rows(CONV_WGMMA1) if arch in SOME_0 else ():
        tiles = -(-m // bm) * -(-n // bn)
        if (
            sms >= 1 and m + bm <= 2147483647 and n + bn <= 2147483647 and k + 64 <= 2147483647
            and tiles + sms <= 4294967295 and phases <= 1
        ):
            us = time(
                kernel, "wgmma", 1, sms, tiles, -(-(taps * -(-(k // taps) // 64) * k) // k),
                k * (bm * bn), tiles * (taps * -(-(k // taps) // 64)) * ((bm + bn) * 128),
                min(m * (k // taps) + n * k, sms * 1 * bm * (k // taps) + n * k) * 2, stores,
            )
            launches[launch] = us, kernel, min(tiles, sms) * 1, {}
    for launch, kernel, bn, c0, c1 in fitting.rows(CONV_GATHER1) if arch in SOME_0 else ():
        if (
            (chunk % 64 == 0 or chunks <= 1) and sms >= 1 and m + 128 <= 2147483647
            and n + bn <= 2147483647 and k + 64 <= 2147483647
            and (-(-m // 128) + (phases - 1)) * -(-n // bn) + sms <= 4294967295
        ):
            us = time(
                kernel, "wgmma", 1, sms, (-(-m // 128) + (phases - 1)) * -(-n // bn),
                -(-(-(-k // 64) * k) // k), k * c0,
                (-(-m // 128) + (phases - 1)) * -(-n // bn) * -(-k // 64) * c1, operands1, stores,
            )
            launches[launch] = (
                us, kernel, min((-(-m // 128) + (phases - 1)) * -(-n // bn), sms) * 1, {},
            )
    for launch, kernel, bm, bn in fitting.rows(CONV_CARRIED) if arch in SOME_0 else ():
        if (
            (chunk % 64 == 0 or chunks <= 1) and sms >= 1 and m + bm <= 2147483647
            and n + bn <= 2147483647 and k + 64 <= 2147483647
            and (-(-m // bm) + (phases - 1)) * -(-n // bn) + sms * 2 <= 4294967295
        ):
            us = time(
                kernel, "wgmma", 2, sms, (-(-m // bm) + (phases - 1)) * -(-n // bn),
                -(-(-(-k // 64) * k) // k), k * (bm * bn),
                (-(-m // bm) + (phases - 1)) * -(-n // bn) * -(-k // 64) * ((bm + bn) * 128),
                min(m * (k // taps) + n * k, sms * 2 * bm * (k // taps) + n * k) * 2, stores,
            )
            launches[launch] = (
                us, kernel, min((-(-m // bm) + (phases - 1)) * -(-n // bn), sms * 2) * 1, {},
            )
    operands2 = min(m * (k // taps) + n * k, sms * 2 * 64 * (k // taps) + n * k) * 2
    if (
        table == "conv_turned_half" and arch in SOME_0 and 11 in fitting
        and (chunk % 64 == 0 or chunks <= 1) and sms >= 1 and m + 64 <= 2147483647
        and n + 64 <= 2147483647 and k + 64 <= 2147483647
        and (-(-m // 64) + (phases - 1)) * -(-n // 64) + sms * 2 <= 4294967295 and unit < 8
    ):
        us = time(
            "conv_loose_nn_bf16_64x64x64_8d6b38", "wgmma", 2, sms,
            (-(-m // 64) + (phases - 1)) * -(-n // 64), -(-(-(-k // 64) * k) // k), k * 4096,
            (-(-m // 64) + (phases - 1)) * -(-n // 64) * -(-k // 64) * 16384, operands2, stores,
        )
        launches[11] = (
            us, "conv_loose_nn_bf16_64x64x64_8d6b38",
            min((-(-m // 64) + (phases - 1)) * -(-n // 64), sms * 2) * 1, {},
        )
    if (
        table == "conv_turned_half" and arch in SOME_0 and 12 in fitting
        and (chunk % 64 == 0 or chunks <= 1) and stores1 <= 268435456 and sms >= 1
        and m + 64 <= 2147483647 and n + 64 <= 2147483647 and k + 64 <= 2147483647
        and tiles_64x64 * chunks + sms * 2 <= 4294967295 and phases <= 1
    ):
        us = time(
            "conv_gather_nn_bf16_64x64x64_c646fe", "wgmma", 2, sms, tiles_64x64 * chunks,
            -(-(-(-k // 64) * chunk) // k), chunk * 4096, tiles_64x64 * -(-k // 64) * 16384,
            operands2, stores1,
        )
        launches[12] = (
            us, "conv_gather_nn_bf16_64x64x64_c646fe", min(tiles_64x64 * chunks, sms * 2) * 1,
            {"workspace": stores1},
        )
    yield from fitting.combined(launches)
