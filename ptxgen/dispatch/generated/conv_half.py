"""Dispatch of conv half, conv turned half, conv summed half: windows under the plan 'chunks'.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Launches, Routes, Time

SOME_0 = frozenset(("sm_90",))
# ROUTES: route, least unit, least flat, least align_a, least align_b, launches
ROUTES = Routes({
    "conv_half": (
        # TMA gathers windows of the image
        (0, 16, 0, 16, 16, (0,)), (1, 16, 0, 16, 16, (1,)), (2, 16, 0, 16, 16, (2,)),
        # threads gather windows: few channels, or an odd multiple of 8
        (3, 8, 0, 16, 16, (3,)), (4, 8, 0, 16, 16, (4,)), (5, 8, 0, 16, 16, (5,)),
        (6, 8, 0, 16, 16, (6,)), (7, 8, 0, 16, 16, (7,)),
        # few windows: split-K, a CTA for each tile and chunk
        (8, 8, 1, 16, 16, (8, "reduce")), (9, 8, 1, 16, 16, (9, "reduce")),
        (10, 8, 1, 16, 16, (10, "reduce")),
    ),
    "conv_turned_half": (
        # TMA gathers windows of the image; outputs of filters are contiguous
        (0, 16, 0, 16, 16, (0,)), (1, 16, 0, 16, 16, (1,)), (2, 16, 0, 16, 16, (2,)),
        (3, 16, 0, 16, 16, (3,)),
        # threads gather windows: any channels, and several phases (strided dgrad)
        (4, 16, 0, 16, 16, (4,)), (5, 16, 0, 16, 16, (5,)), (6, 16, 0, 16, 16, (6,)),
        (7, 8, 0, 16, 16, (7,)), (8, 8, 0, 16, 16, (8,)), (9, 8, 0, 16, 16, (9,)),
        (10, 8, 0, 16, 16, (10,)), (11, 8, 0, 16, 16, (11,)), (12, 8, 0, 16, 16, (12,)),
        (13, 8, 0, 16, 16, (13,)), (14, 1, 0, 2, 16, (14,)),
        # channels no multiple of 8: the image is copied first, its pixels padded with zeros
        (15, 1, 0, 0, 16, ("realign_x", 15)), (16, 1, 0, 0, 16, ("realign_x", 16)),
        (17, 1, 0, 0, 16, ("realign_x", 17)), (18, 1, 1, 0, 16, ("realign_x", 18, "reduce")),
        # few windows: split-K, a CTA for each tile and chunk
        (19, 8, 1, 16, 16, (19, "reduce")),
    ),
    "conv_summed_half": (
        # wgrad: TMA gathers windows of the image
        (0, 8, 0, 16, 16, (0,)), (1, 8, 0, 16, 16, (1,)), (2, 8, 0, 16, 16, (2,)),
        # wgrad: threads gather windows, of few channels
        (3, 8, 0, 16, 16, (3,)),
        # wgrad: split-K, a CTA for each tile and chunk
        (4, 8, 0, 16, 16, (4, "reduce")), (5, 8, 0, 16, 16, (5, "reduce")),
        (6, 8, 0, 16, 16, (6, "reduce")), (7, 8, 0, 16, 16, (7, "reduce")),
        (8, 8, 0, 16, 16, (8, "reduce")),
    ),
})
# CONV_WGMMA: launch, kernel, bm, bn
CONV_WGMMA = {
    "conv_half": (
        (0, "conv_wgmma_nt_bf16_128x64x64_1975ae", 128, 64),
        (1, "conv_wgmma_nt_bf16_64x128x64_ba970b", 64, 128),
        (2, "conv_wgmma_nt_bf16_64x64x64_8394f7", 64, 64),
    ),
    "conv_turned_half": (
        (0, "conv_wgmma_nn_bf16_128x128x64_a1ad59", 128, 128),
        (1, "conv_wgmma_nn_bf16_128x64x64_b33b47", 128, 64),
        (2, "conv_wgmma_nn_bf16_64x128x64_46092f", 64, 128),
        (3, "conv_wgmma_nn_bf16_64x64x64_c7aae7", 64, 64),
    ),
}
# CONV_GATHER: launch, kernel, bn, c0
CONV_GATHER = {
    "conv_half": (
        (3, "conv_gather_nt_bf16_128x256x64_467241", 256, 49152),
        (4, "conv_gather_nt_bf16_128x192x64_344fce", 192, 40960),
        (5, "conv_gather_nt_bf16_128x128x64_314240", 128, 32768),
    ),
}
# CONV_GATHER1: launch, kernel, bn, c0, c1
CONV_GATHER1 = {
    "conv_half": (
        (6, "conv_gather_nt_bf16_64x64x64_156098", 64, 4096, 16384),
        (7, "conv_gather_nt_bf16_64x32x64_0a450a", 32, 2048, 12288),
    ),
}
# CONV_GATHER2: launch, kernel, bn, c0, c1
CONV_GATHER2 = {
    "conv_half": (
        (8, "conv_gather_nt_bf16_128x256x64_84d193", 256, 32768, 49152),
        (9, "conv_gather_nt_bf16_128x128x64_af917c", 128, 16384, 32768),
    ),
}
# CONV_GATHER3: launch, kernel, bn, c0, c1
CONV_GATHER3 = {
    "conv_half": ((10, "conv_gather_nt_bf16_64x32x64_56a554", 32, 2048, 12288),),
    "conv_turned_half": ((19, "conv_gather_nn_bf16_64x64x64_f15d1d", 64, 4096, 16384),),
}
# CONV_GATHER4: launch, kernel, bn, c0
CONV_GATHER4 = {
    "conv_turned_half": (
        (4, "conv_gather_nn_bf16_128x256x64_8001d2", 256, 49152),
        (5, "conv_gather_nn_bf16_128x192x64_8fb0d3", 192, 40960),
        (6, "conv_gather_nn_bf16_128x128x64_8b512a", 128, 32768),
        (7, "conv_carried_nn_bf16_128x256x64_968a32", 256, 49152),
        (8, "conv_carried_nn_bf16_128x192x64_2fdbf2", 192, 40960),
        (9, "conv_carried_nn_bf16_128x128x64_5297a5", 128, 32768),
        (10, "conv_carried_nn_bf16_128x64x64_4c1217", 64, 24576),
    ),
}
# CONV_CARRIED: launch, kernel, bm, bn
CONV_CARRIED = {
    "conv_turned_half": (
        (11, "conv_carried_nn_bf16_128x32x64_18eba4", 128, 32),
        (12, "conv_carried_nn_bf16_64x64x64_070e1f", 64, 64),
        (13, "conv_carried_nn_bf16_64x32x64_950f54", 64, 32),
    ),
}
# CONV_WHOLE: launch, kernel, bm, bn, c0
CONV_WHOLE = {
    "conv_turned_half": (
        (16, "conv_whole_nn_bf16_128x32x64_743742", 128, 32, 20480),
        (17, "conv_whole_nn_bf16_64x64x64_8b02c5", 64, 64, 16384),
    ),
}
# CONV_SUM: launch, kernel, bm, bn, panels_each, c0, c1
CONV_SUM = {
    "conv_summed_half": (
        (4, "conv_sum_tn_bf16_128x64x64_a52094", 128, 64, 1, 8192, 24576),
        (5, "conv_sum_tn_bf16_64x192x64_9e7829", 64, 192, 3, 12288, 32768),
    ),
}
# CONV_GATHER5: launch, kernel, bn, c0, c1
CONV_GATHER5 = {
    "conv_summed_half": (
        (6, "conv_gather_tn_bf16_128x256x64_b4132a", 256, 32768, 49152),
        (7, "conv_gather_tn_bf16_128x128x64_bd5212", 128, 16384, 32768),
    ),
}


def candidates(
    table: str, arch: str, m: int, n: int, k: int, taps: int, unit: int, flat: int, phases: int,
    pixels: int, sms: int, align_a: int, align_b: int, time: Time,
) -> Iterator[Candidate]:
    """Yields the routes that serve a problem, with predicted times."""
    chunk = max(1, min(k, k if k <= 4096 else -(-k // -(-k // 3072) // 128) * 128))
    chunks = -(-k // chunk)
    panels = taps * -(-n // (taps * 64))
    fitting = ROUTES.fitting(table, unit, flat, align_a, align_b)
    launches: Launches = {}
    stores = m * n * 2
    for launch, kernel, bm, bn in fitting.rows(CONV_WGMMA) if arch in SOME_0 else ():
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
    operands = min(m * (k // taps) + n * k, sms * 1 * 128 * (k // taps) + n * k) * 2
    for launch, kernel, bn, c0 in fitting.rows(CONV_GATHER) if arch in SOME_0 else ():
        tiles = -(-m // 128) * -(-n // bn)
        if (
            (chunk % 64 == 0 or chunks <= 1) and sms >= 1 and m + 128 <= 2147483647
            and n + bn <= 2147483647 and k + 64 <= 2147483647 and tiles + sms <= 4294967295
            and phases <= 1
        ):
            us = time(
                kernel, "wgmma", 1, sms, tiles, -(-(-(-k // 64) * k) // k), k * ((bn + bn) * 64),
                tiles * -(-k // 64) * c0, operands, stores,
            )
            launches[launch] = us, kernel, min(tiles, sms) * 1, {}
    operands1 = min(m * (k // taps) + n * k, sms * 2 * 64 * (k // taps) + n * k) * 2
    for launch, kernel, bn, c0, c1 in fitting.rows(CONV_GATHER1) if arch in SOME_0 else ():
        tiles = -(-m // 64) * -(-n // bn)
        if (
            (chunk % 64 == 0 or chunks <= 1) and sms >= 1 and m + 64 <= 2147483647
            and n + bn <= 2147483647 and k + 64 <= 2147483647 and tiles + sms * 2 <= 4294967295
            and phases <= 1
        ):
            us = time(
                kernel, "wgmma", 2, sms, tiles, -(-(-(-k // 64) * k) // k), k * c0,
                tiles * -(-k // 64) * c1, operands1, stores,
            )
            launches[launch] = us, kernel, min(tiles, sms * 2) * 1, {}
    operands2 = min(m * (k // taps) + n * k, sms * 1 * 128 // chunks * (k // taps) + n * k) * 2
    stores1 = chunks * m * n * 4
    for launch, kernel, bn, c0, c1 in fitting.rows(CONV_GATHER2) if arch in SOME_0 else ():
        tiles = -(-m // 128) * -(-n // bn)
        if (
            (chunk % 64 == 0 or chunks <= 1) and stores1 <= 268435456 and sms >= 1
            and m + 128 <= 2147483647 and n + bn <= 2147483647 and k + 64 <= 2147483647
            and tiles * chunks + sms <= 4294967295 and phases <= 1
        ):
            us = time(
                kernel, "wgmma", 1, sms, tiles * chunks, -(-(-(-k // 64) * chunk) // k), chunk * c0,
                tiles * -(-k // 64) * c1, operands2, stores1,
            )
            launches[launch] = us, kernel, min(tiles * chunks, sms) * 1, {"workspace": stores1}
    ctas = -(-(m * n) // 512)
    if "reduce" in fitting and stores1 <= 268435456 and ctas <= 2147483647:
        us = time(
            "reduce_bf16_128x4_f3bd9b", "fma", 8, sms, ctas, -(-chunks // 8), 0, stores1, stores1,
            stores,
        )
        launches["reduce"] = us, "reduce_bf16_128x4_f3bd9b", ctas, {"workspace": stores1}
    operands3 = min(m * (k // taps) + n * k, sms * 2 * 64 // chunks * (k // taps) + n * k) * 2
    for launch, kernel, bn, c0, c1 in fitting.rows(CONV_GATHER3) if arch in SOME_0 else ():
        tiles = -(-m // 64) * -(-n // bn)
        if (
            (chunk % 64 == 0 or chunks <= 1) and stores1 <= 268435456 and sms >= 1
            and m + 64 <= 2147483647 and n + bn <= 2147483647 and k + 64 <= 2147483647
            and tiles * chunks + sms * 2 <= 4294967295 and phases <= 1
        ):
            us = time(
                kernel, "wgmma", 2, sms, tiles * chunks, -(-(-(-k // 64) * chunk) // k), chunk * c0,
                tiles * -(-k // 64) * c1, operands3, stores1,
            )
            launches[launch] = us, kernel, min(tiles * chunks, sms * 2) * 1, {"workspace": stores1}
    for launch, kernel, bn, c0 in fitting.rows(CONV_GATHER4) if arch in SOME_0 else ():
        if (
            (chunk % 64 == 0 or chunks <= 1) and sms >= 1 and m + 128 <= 2147483647
            and n + bn <= 2147483647 and k + 64 <= 2147483647
            and (-(-m // 128) + (phases - 1)) * -(-n // bn) + sms <= 4294967295
            and (-(-m // 128) + (phases - 1)) * -(-n // bn) + sms * 2 <= 4294967295
        ):
            us = time(
                kernel, "wgmma", 1, sms, (-(-m // 128) + (phases - 1)) * -(-n // bn),
                -(-(-(-k // 64) * k) // k), k * ((bn + bn) * 64),
                (-(-m // 128) + (phases - 1)) * -(-n // bn) * -(-k // 64) * c0, operands, stores,
            )
            launches[launch] = (
                us, kernel, min((-(-m // 128) + (phases - 1)) * -(-n // bn), sms) * 1, {},
            )
    for launch, kernel, bm, bn in fitting.rows(CONV_CARRIED) if arch in SOME_0 else ():
        if (
            (chunk % 64 == 0 or chunks <= 1) and sms >= 1 and m + bm <= 2147483647
            and n + bn <= 2147483647 and k + 64 <= 2147483647
            and (-(-m // bm) + (phases - 1)) * -(-n // bn) + sms * 2 <= 4294967295
            and (-(-m // bm) + (phases - 1)) * -(-n // bn) + sms * 2 * 2 <= 4294967295
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
    if (
        table == "conv_turned_half" and arch in SOME_0 and 14 in fitting
        and (chunk % 64 == 0 or chunks <= 1) and sms >= 1 and m + 64 <= 2147483647
        and n + 64 <= 2147483647 and k + 64 <= 2147483647
        and (-(-m // 64) + (phases - 1)) * -(-n // 64) + sms * 2 <= 4294967295
        and (-(-m // 64) + (phases - 1)) * -(-n // 64) + sms * 2 * 2 <= 4294967295 and unit < 8
    ):
        us = time(
            "conv_loose_nn_bf16_64x64x64_aba2b6", "wgmma", 2, sms,
            (-(-m // 64) + (phases - 1)) * -(-n // 64), -(-(-(-k // 64) * k) // k), k * 4096,
            (-(-m // 64) + (phases - 1)) * -(-n // 64) * -(-k // 64) * 16384, operands1, stores,
        )
        launches[14] = (
            us, "conv_loose_nn_bf16_64x64x64_aba2b6",
            min((-(-m // 64) + (phases - 1)) * -(-n // 64), sms * 2) * 1, {},
        )
    operands4 = 0 + pixels * -(-(k // taps) // 8) * 16
    ctas = -(-(pixels * -(-(k // taps) // 8)) // 512)
    if (
        table == "conv_turned_half" and "realign_x" in fitting
        and pixels * -(-(k // taps) // 8) * 16 <= 1073741824
    ):
        us = time(
            "realign_b16x1_69d801", "fma", 8, sms, ctas, 1, 0, operands4, operands4, operands4,
        )
        launches["realign_x"] = (
            us, "realign_b16x1_69d801", ctas, {"x_realigned": pixels * -(-(k // taps) // 8) * 16},
        )
    if (
        table == "conv_turned_half" and arch in SOME_0 and 15 in fitting
        and (chunk % 64 == 0 or chunks <= 1) and sms >= 1 and m + 128 <= 2147483647
        and n + 128 <= 2147483647 and k + 64 <= 2147483647
        and (-(-m // 128) + (phases - 1)) * -(-n // 128) + sms <= 4294967295
        and (-(-m // 128) + (phases - 1)) * -(-n // 128) + sms * 2 <= 4294967295 and unit < 8
        and k // taps >= 8 and pixels >= 1
    ):
        us = time(
            "conv_whole_nn_bf16_128x128x64_188b12", "wgmma", 1, sms,
            (-(-m // 128) + (phases - 1)) * -(-n // 128), -(-(-(-k // 64) * k) // k), k * 16384,
            (-(-m // 128) + (phases - 1)) * -(-n // 128) * -(-k // 64) * 32768, operands, stores,
        )
        launches[15] = (
            us, "conv_whole_nn_bf16_128x128x64_188b12",
            min((-(-m // 128) + (phases - 1)) * -(-n // 128), sms) * 1, {},
        )
    for launch, kernel, bm, bn, c0 in fitting.rows(CONV_WHOLE) if arch in SOME_0 else ():
        if (
            (chunk % 64 == 0 or chunks <= 1) and sms >= 1 and m + bm <= 2147483647
            and n + bn <= 2147483647 and k + 64 <= 2147483647
            and (-(-m // bm) + (phases - 1)) * -(-n // bn) + sms * 2 <= 4294967295
            and (-(-m // bm) + (phases - 1)) * -(-n // bn) + sms * 2 * 2 <= 4294967295 and unit < 8
            and k // taps >= 8 and pixels >= 1
        ):
            us = time(
                kernel, "wgmma", 2, sms, (-(-m // bm) + (phases - 1)) * -(-n // bn),
                -(-(-(-k // 64) * k) // k), k * 4096,
                (-(-m // bm) + (phases - 1)) * -(-n // bn) * -(-k // 64) * c0,
                min(m * (k // taps) + n * k, sms * 2 * bm * (k // taps) + n * k) * 2, stores,
            )
            launches[launch] = (
                us, kernel, min((-(-m // bm) + (phases - 1)) * -(-n // bn), sms * 2) * 1, {},
            )
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    if (
        table == "conv_turned_half" and arch in SOME_0 and 18 in fitting
        and (chunk % 64 == 0 or chunks <= 1) and stores1 <= 268435456 and sms >= 1
        and m + 64 <= 2147483647 and n + 64 <= 2147483647 and k + 64 <= 2147483647
        and tiles_64x64 * chunks + sms * 2 <= 4294967295 and phases <= 1 and unit < 8
        and k // taps >= 8 and pixels >= 1
    ):
        us = time(
            "conv_whole_nn_bf16_64x64x64_b4838f", "wgmma", 2, sms, tiles_64x64 * chunks,
            -(-(-(-k // 64) * chunk) // k), chunk * 4096, tiles_64x64 * -(-k // 64) * 16384,
            operands3, stores1,
        )
        launches[18] = (
            us, "conv_whole_nn_bf16_64x64x64_b4838f", min(tiles_64x64 * chunks, sms * 2) * 1,
            {"workspace": stores1},
        )
    operands5 = (m * k + n // taps * k) * 2
    tiles_m128_panels3 = -(-m // 128) * -(-panels // 3)
    if (
        table == "conv_summed_half" and arch in SOME_0 and 0 in fitting
        and (chunk % 64 == 0 or chunks <= 1) and sms >= 1 and m + 128 <= 2147483647
        and n + 192 <= 2147483647 and k + 64 <= 2147483647
        and tiles_m128_panels3 + sms <= 4294967295 and panels * 64 + 192 <= 4294967295
        and phases <= 1
    ):
        us = time(
            "conv_sum_tn_bf16_128x192x64_79b725", "wgmma", 1, sms, tiles_m128_panels3,
            -(-(-(-k // 64) * k) // k), k * 24576, tiles_m128_panels3 * -(-k // 64) * 40960,
            operands5, stores,
        )
        launches[0] = us, "conv_sum_tn_bf16_128x192x64_79b725", min(tiles_m128_panels3, sms) * 1, {}
    tiles_m256_panels3 = -(-m // 256) * -(-panels // 3)
    if (
        table == "conv_summed_half" and arch in SOME_0 and 1 in fitting
        and (chunk % 64 == 0 or chunks <= 1) and sms >= 2 and m + 256 <= 2147483647
        and n + 192 <= 2147483647 and k + 64 <= 2147483647
        and tiles_m256_panels3 + sms // 2 <= 4294967295 and panels * 64 + 192 <= 4294967295
        and phases <= 1
    ):
        us = time(
            "conv_sum_tn_bf16_128x192x64_34435c", "wgmma", 1, sms, tiles_m256_panels3 * 2,
            -(-(-(-k // 64) * k) // k), k * 24576, tiles_m256_panels3 * -(-k // 64) * 57344,
            operands5, stores,
        )
        launches[1] = (
            us, "conv_sum_tn_bf16_128x192x64_34435c", min(tiles_m256_panels3, sms // 2) * 2, {},
        )
    tiles_m64_panels2 = -(-m // 64) * -(-panels // 2)
    if (
        table == "conv_summed_half" and arch in SOME_0 and 2 in fitting
        and (chunk % 64 == 0 or chunks <= 1) and sms >= 1 and m + 64 <= 2147483647
        and n + 128 <= 2147483647 and k + 64 <= 2147483647
        and tiles_m64_panels2 + sms * 2 <= 4294967295 and panels * 64 + 128 <= 4294967295
        and phases <= 1
    ):
        us = time(
            "conv_sum_tn_bf16_64x128x64_9f8bce", "wgmma", 2, sms, tiles_m64_panels2,
            -(-(-(-k // 64) * k) // k), k * 8192, tiles_m64_panels2 * -(-k // 64) * 24576,
            operands5, stores,
        )
        launches[2] = (
            us, "conv_sum_tn_bf16_64x128x64_9f8bce", min(tiles_m64_panels2, sms * 2) * 1, {},
        )
    if (
        table == "conv_summed_half" and arch in SOME_0 and 3 in fitting
        and (chunk % 64 == 0 or chunks <= 1) and sms >= 1 and m + 64 <= 2147483647
        and n + 64 <= 2147483647 and k + 64 <= 2147483647 and tiles_64x64 + sms * 2 <= 4294967295
        and phases <= 1
    ):
        us = time(
            "conv_gather_tn_bf16_64x64x64_aaf8bc", "wgmma", 2, sms, tiles_64x64,
            -(-(-(-k // 64) * k) // k), k * 4096, tiles_64x64 * -(-k // 64) * 16384, operands5,
            stores,
        )
        launches[3] = us, "conv_gather_tn_bf16_64x64x64_aaf8bc", min(tiles_64x64, sms * 2) * 1, {}
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
                tiles * -(-k // 64) * c1, operands5, stores1,
            )
            launches[launch] = us, kernel, min(tiles * chunks, sms) * 1, {"workspace": stores1}
    for launch, kernel, bn, c0, c1 in fitting.rows(CONV_GATHER5) if arch in SOME_0 else ():
        tiles = -(-m // 128) * -(-n // bn)
        if (
            (chunk % 64 == 0 or chunks <= 1) and stores1 <= 268435456 and sms >= 1
            and m + 128 <= 2147483647 and n + bn <= 2147483647 and k + 64 <= 2147483647
            and tiles * chunks + sms <= 4294967295 and phases <= 1
        ):
            us = time(
                kernel, "wgmma", 1, sms, tiles * chunks, -(-(-(-k // 64) * chunk) // k), chunk * c0,
                tiles * -(-k // 64) * c1, operands5, stores1,
            )
            launches[launch] = us, kernel, min(tiles * chunks, sms) * 1, {"workspace": stores1}
    if (
        table == "conv_summed_half" and arch in SOME_0 and 8 in fitting
        and (chunk % 64 == 0 or chunks <= 1) and stores1 <= 268435456 and sms >= 1
        and m + 64 <= 2147483647 and n + 64 <= 2147483647 and k + 64 <= 2147483647
        and tiles_64x64 * chunks + sms * 2 <= 4294967295 and phases <= 1
    ):
        us = time(
            "conv_gather_tn_bf16_64x64x64_9cc9b1", "wgmma", 2, sms, tiles_64x64 * chunks,
            -(-(-(-k // 64) * chunk) // k), chunk * 4096, tiles_64x64 * -(-k // 64) * 16384,
            operands5, stores1,
        )
        launches[8] = (
            us, "conv_gather_tn_bf16_64x64x64_9cc9b1", min(tiles_64x64 * chunks, sms * 2) * 1,
            {"workspace": stores1},
        )
    yield from fitting.combined(launches)
