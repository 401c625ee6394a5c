"""Dispatch of conv summed half: windows under the plan 'batch'.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Launches, Routes, Time

SOME_0 = frozenset(("sm_90",))
# ROUTES: route, least unit, least align_a, least align_b, launches
ROUTES = Routes({
    "conv_summed_half": (
        # sums over windows of an image
        (0, 8, 16, 16, (0,)), (1, 8, 16, 16, (1,)), (2, 8, 16, 16, (2,)), (3, 8, 16, 16, (3,)),
        (4, 8, 16, 16, (4,)), (5, 8, 16, 16, (5,)), (6, 8, 16, 16, (6,)), (7, 8, 16, 16, (7,)),
        (8, 8, 16, 16, (8,)), (9, 8, 16, 16, (9,)),
        # the same, a CTA per tile and chunk
        (10, 8, 16, 16, (10, "reduce")), (11, 8, 16, 16, (11, "reduce")),
        (12, 8, 16, 16, (12, "reduce")), (13, 8, 16, 16, (13, "reduce")),
        (14, 8, 16, 16, (14, "reduce")), (15, 8, 16, 16, (15, "reduce")),
        (16, 8, 16, 16, (16, "reduce")), (17, 8, 16, 16, (17, "reduce")),
        (18, 8, 16, 16, (18, "reduce")), (19, 8, 16, 16, (19, "reduce")),
        # sums over windows of an image
        (20, 8, 16, 16, (20,)), (21, 8, 16, 16, (21,)), (22, 8, 16, 16, (22,)),
        (23, 8, 16, 16, (23,)),
        # the same, a CTA per tile and chunk
        (24, 8, 16, 16, (24, "reduce")), (25, 8, 16, 16, (25, "reduce")),
        (26, 8, 16, 16, (26, "reduce")), (27, 8, 16, 16, (27, "reduce")),
    ),
})
# CONV_SUM: launch, kernel, bm, bn
CONV_SUM = {
    "conv_summed_half": (
        (0, "conv_sum_tn_bf16_128x192x64_7f374d", 128, 192),
        (1, "conv_sum_tn_bf16_128x256x64_00ee1c", 128, 256),
        (2, "conv_sum_tn_bf16_128x128x64_3355e3", 128, 128),
        (3, "conv_sum_tn_bf16_128x64x64_0f1241", 128, 64),
        (4, "conv_sum_tn_bf16_64x256x64_1758a7", 64, 256),
        (5, "conv_sum_tn_bf16_64x192x64_665034", 64, 192),
        (6, "conv_sum_tn_bf16_64x128x64_a39291", 64, 128),
        (7, "conv_sum_tn_bf16_64x64x64_a01b1d", 64, 64),
    ),
}
# CONV_SUM1: launch, kernel, bn, c0, c1
CONV_SUM1 = {
    "conv_summed_half": (
        (8, "conv_sum_tn_bf16_64x64x64_b58384", 64, 4096, 16384),
        (9, "conv_sum_tn_bf16_64x128x64_a86c83", 128, 8192, 24576),
    ),
}
# CONV_SUM2: launch, kernel, bm, bn
CONV_SUM2 = {
    "conv_summed_half": (
        (10, "conv_sum_tn_bf16_128x192x64_ac5ef9", 128, 192),
        (11, "conv_sum_tn_bf16_128x256x64_6c6e37", 128, 256),
        (12, "conv_sum_tn_bf16_128x128x64_272e36", 128, 128),
        (13, "conv_sum_tn_bf16_128x64x64_841a42", 128, 64),
        (14, "conv_sum_tn_bf16_64x256x64_a8e9cf", 64, 256),
        (15, "conv_sum_tn_bf16_64x192x64_4afa35", 64, 192),
        (16, "conv_sum_tn_bf16_64x128x64_c23de0", 64, 128),
        (17, "conv_sum_tn_bf16_64x64x64_b28c15", 64, 64),
    ),
}
# CONV_SUM3: launch, kernel, bn, c0, c1
CONV_SUM3 = {
    "conv_summed_half": (
        (18, "conv_sum_tn_bf16_64x64x64_584b79", 64, 4096, 16384),
        (19, "conv_sum_tn_bf16_64x128x64_8c1348", 128, 8192, 24576),
    ),
}
# CONV_GATHER: launch, kernel, bm, c0, c1
CONV_GATHER = {
    "conv_summed_half": (
        (21, "conv_gather_tn_bf16_128x128x64_323c76", 128, 16384, 32768),
        (22, "conv_gather_tn_bf16_64x128x64_cc59e1", 64, 8192, 24576),
    ),
}
# CONV_GATHER1: launch, kernel, bm, bn
CONV_GATHER1 = {
    "conv_summed_half": (
        (24, "conv_gather_tn_bf16_128x256x64_73e0a3", 128, 256),
        (25, "conv_gather_tn_bf16_128x128x64_b98dcd", 128, 128),
        (26, "conv_gather_tn_bf16_64x128x64_c096fb", 64, 128),
    ),
}


def candidates(
    table: str, arch: str, m: int, n: int, k: int, taps: int, unit: int, flat: int, phases: int,
    sms: int, align_a: int, align_b: int, time: Time,
) -> Iterator[Candidate]:
    """What can serve a problem, with predicted times."""
    chunk_part_1 = -(-k // min(max(4718592 // (m * n), 1), 16))
    chunk = max(1, min(k, -(-max(chunk_part_1, min(max(m * n // 32, 512), 4096)) // 64) * 64))
    chunks = -(-k // chunk)
    fitting = ROUTES.fitting(table, unit, align_a, align_b)
    launches: Launches = {}
    operands = (m * k + n // taps * k) * 2
    stores = m * n * 2
    for launch, kernel, bm, bn in fitting.rows(CONV_SUM) if arch in SOME_0 else ():
        if (
            chunks <= 1 and sms >= 1 and m + bm <= 2147483647 and n + bn <= 2147483647
            and k + 64 <= 2147483647
            and -(-m // bm) * -(-(taps * -(-(n // taps) // 64) * 64) // bn) + sms <= 4294967295
            and taps * -(-(n // taps) // 64) * 64 + bn <= 4294967295 and phases <= 1
        ):
            us = time(
                kernel, "wgmma", 1, sms,
                -(-m // bm) * -(-(taps * -(-(n // taps) // 64) * 64) // bn),
                -(-(-(-k // 64) * k) // k), k * (bm * bn),
                -(-m // bm) * -(-(taps * -(-(n // taps) // 64) * 64) // bn) * -(-k // 64) * ((bm + bn) * 128),
                operands, stores,
            )
            launches[launch] = (
                us, kernel,
                min(-(-m // bm) * -(-(taps * -(-(n // taps) // 64) * 64) // bn), sms) * 1, {},
            )
    for launch, kernel, bn, c0, c1 in fitting.rows(CONV_SUM1) if arch in SOME_0 else ():
        if (
            chunks <= 1 and sms >= 1 and m + 64 <= 2147483647 and n + bn <= 2147483647
            and k + 64 <= 2147483647
            and -(-m // 64) * -(-(taps * -(-(n // taps) // 64) * 64) // bn) + sms * 2 <= 4294967295
            and taps * -(-(n // taps) // 64) * 64 + bn <= 4294967295 and phases <= 1
        ):
            us = time(
                kernel, "wgmma", 2, sms,
                -(-m // 64) * -(-(taps * -(-(n // taps) // 64) * 64) // bn),
                -(-(-(-k // 64) * k) // k), k * c0,
                -(-m // 64) * -(-(taps * -(-(n // taps) // 64) * 64) // bn) * -(-k // 64) * c1,
                operands, stores,
            )
            launches[launch] = (
                us, kernel,
                min(-(-m // 64) * -(-(taps * -(-(n // taps) // 64) * 64) // bn), sms * 2) * 1, {},
            )
    stores1 = chunks * m * n * 4
    for launch, kernel, bm, bn in fitting.rows(CONV_SUM2) if arch in SOME_0 else ():
        if (
            (chunk % 64 == 0 or chunks <= 1) and stores1 <= 268435456 and sms >= 1
            and m + bm <= 2147483647 and n + bn <= 2147483647 and k + 64 <= 2147483647
            and -(-m // bm) * -(-(taps * -(-(n // taps) // 64) * 64) // bn) * chunks + sms <= 4294967295
            and taps * -(-(n // taps) // 64) * 64 + bn <= 4294967295 and phases <= 1
        ):
            us = time(
                kernel, "wgmma", 1, sms,
                -(-m // bm) * -(-(taps * -(-(n // taps) // 64) * 64) // bn) * chunks,
                -(-(-(-k // 64) * chunk) // k), chunk * (bm * bn),
                -(-m // bm) * -(-(taps * -(-(n // taps) // 64) * 64) // bn) * -(-k // 64) * ((bm + bn) * 128),
                operands, stores1,
            )
            launches[launch] = (
                us, kernel,
                min(-(-m // bm) * -(-(taps * -(-(n // taps) // 64) * 64) // bn) * chunks, sms) * 1,
                {"workspace": stores1},
            )
    ctas = -(-(m * n) // 512)
    if "reduce" in fitting and stores1 <= 268435456 and ctas <= 2147483647:
        us = time(
            "reduce_bf16_128x4_9cc9ba", "fma", 8, sms, ctas, -(-chunks // 8), 0, stores1, stores1,
            stores,
        )
        launches["reduce"] = us, "reduce_bf16_128x4_9cc9ba", ctas, {"workspace": stores1}
    for launch, kernel, bn, c0, c1 in fitting.rows(CONV_SUM3) if arch in SOME_0 else ():
        if (
            (chunk % 64 == 0 or chunks <= 1) and stores1 <= 268435456 and sms >= 1
            and m + 64 <= 2147483647 and n + bn <= 2147483647 and k + 64 <= 2147483647
            and -(-m // 64) * -(-(taps * -(-(n // taps) // 64) * 64) // bn) * chunks + sms * 2 <= 4294967295
            and taps * -(-(n // taps) // 64) * 64 + bn <= 4294967295 and phases <= 1
        ):
            us = time(
                kernel, "wgmma", 2, sms,
                -(-m // 64) * -(-(taps * -(-(n // taps) // 64) * 64) // bn) * chunks,
                -(-(-(-k // 64) * chunk) // k), chunk * c0,
                -(-m // 64) * -(-(taps * -(-(n // taps) // 64) * 64) // bn) * -(-k // 64) * c1,
                operands, stores1,
            )
            launches[launch] = (
                us, kernel,
                min(-(-m // 64) * -(-(taps * -(-(n // taps) // 64) * 64) // bn) * chunks, sms * 2) * 1,
                {"workspace": stores1},
            )
    tiles_128x256 = -(-m // 128) * -(-n // 256)
    if (
        arch in SOME_0 and 20 in fitting and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 256 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x256 + sms <= 4294967295
        and phases <= 1
    ):
        us = time(
            "conv_gather_tn_bf16_128x256x64_d6d790", "wgmma", 1, sms, tiles_128x256,
            -(-(-(-k // 64) * k) // k), k * 32768, tiles_128x256 * -(-k // 64) * 49152, operands,
            stores,
        )
        launches[20] = us, "conv_gather_tn_bf16_128x256x64_d6d790", min(tiles_128x256, sms) * 1, {}
    for launch, kernel, bm, c0, c1 in fitting.rows(CONV_GATHER) if arch in SOME_0 else ():
        tiles = -(-m // bm) * -(-n // 128)
        if (
            (chunk % 64 == 0 or chunks <= 1) and sms >= 1 and m + bm <= 2147483647
            and n + 128 <= 2147483647 and k + 64 <= 2147483647 and tiles + sms <= 4294967295
            and phases <= 1
        ):
            us = time(
                kernel, "wgmma", 1, sms, tiles, -(-(-(-k // 64) * k) // k), k * c0,
                tiles * -(-k // 64) * c1, operands, stores,
            )
            launches[launch] = us, kernel, min(tiles, sms) * 1, {}
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    if (
        arch in SOME_0 and 23 in fitting and (chunk % 64 == 0 or chunks <= 1) and sms >= 1
        and m + 64 <= 2147483647 and n + 64 <= 2147483647 and k + 64 <= 2147483647
        and tiles_64x64 + sms * 2 <= 4294967295 and phases <= 1
    ):
        us = time(
            "conv_gather_tn_bf16_64x64x64_74b503", "wgmma", 2, sms, tiles_64x64,
            -(-(-(-k // 64) * k) // k), k * 4096, tiles_64x64 * -(-k // 64) * 16384, operands,
            stores,
        )
        launches[23] = us, "conv_gather_tn_bf16_64x64x64_74b503", min(tiles_64x64, sms * 2) * 1, {}
    for launch, kernel, bm, bn in fitting.rows(CONV_GATHER1) if arch in SOME_0 else ():
        tiles = -(-m // bm) * -(-n // bn)
        if (
            (chunk % 64 == 0 or chunks <= 1) and stores1 <= 268435456 and sms >= 1
            and m + bm <= 2147483647 and n + bn <= 2147483647 and k + 64 <= 2147483647
            and tiles * chunks + sms <= 4294967295 and phases <= 1
        ):
            us = time(
                kernel, "wgmma", 1, sms, tiles * chunks, -(-(-(-k // 64) * chunk) // k),
                chunk * (bm * bn), tiles * -(-k // 64) * ((bm + bn) * 128), operands, stores1,
            )
            launches[launch] = us, kernel, min(tiles * chunks, sms) * 1, {"workspace": stores1}
    if (
        arch in SOME_0 and 27 in fitting and (chunk % 64 == 0 or chunks <= 1)
        and stores1 <= 268435456 and sms >= 1 and m + 64 <= 2147483647 and n + 64 <= 2147483647
        and k + 64 <= 2147483647 and tiles_64x64 * chunks + sms * 2 <= 4294967295 and phases <= 1
    ):
        us = time(
            "conv_gather_tn_bf16_64x64x64_b762b6", "wgmma", 2, sms, tiles_64x64 * chunks,
            -(-(-(-k // 64) * chunk) // k), chunk * 4096, tiles_64x64 * -(-k // 64) * 16384,
            operands, stores1,
        )
        launches[27] = (
            us, "conv_gather_tn_bf16_64x64x64_b762b6", min(tiles_64x64 * chunks, sms * 2) * 1,
            {"workspace": stores1},
        )
    yield from fitting.combined(launches)
