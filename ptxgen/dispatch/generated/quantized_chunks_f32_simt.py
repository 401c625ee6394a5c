"""Dispatch of quantized NT chunks f32 simt, quantized NN chunks f32 simt: products under the plan
'chunks', with quantized weights.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Launches, Routes, Time

SOME_0 = frozenset(("sm_80", "sm_87", "sm_90", "sm_100", "sm_103", "sm_110"))
# ROUTES: route, least align_a, launches
ROUTES = Routes({
    "quantized_nt_chunks_f32_simt": (
        # few rows: the weight is read as it is stored
        (0, 16, (0, "reduce")), (1, 16, (1, "reduce")), (2, 16, (2, "reduce")),
        # the weight is dequantized first; split-K: a CTA for each tile and chunk
        (3, 16, ("quantized_datascales", 3, "reduce")),
        (4, 0, ("quantized_datascales", 4, "reduce")),
        (5, 0, ("quantized_datascales", 5, "reduce")),
        # the weight is dequantized first; more rows: a CTA computes chunks one after another
        (6, 0, ("quantized_datascales", 6)),
        # the weight is dequantized first; few rows, one chunk: the weight is read once
        (7, 16, ("quantized_datascales", 7)),
        # the weight is dequantized first; reductions of one chunk
        (8, 16, ("quantized_datascales", 8)), (9, 0, ("quantized_datascales", 9)),
        (10, 16, ("quantized_datascales", 10)), (11, 0, ("quantized_datascales", 11)),
        # the weight is dequantized first; everything else: any size, alignment and plan
        (12, 0, ("quantized_datascales", 12)),
    ),
    "quantized_nn_chunks_f32_simt": (
        # few rows: the weight is read as it is stored
        (0, 16, (0, "reduce")), (1, 16, (1, "reduce")),
        # the weight is dequantized first; split-K: a CTA for each tile and chunk
        (2, 0, ("quantized_datascales", 2, "reduce")),
        (3, 0, ("quantized_datascales", 3, "reduce")),
        (4, 0, ("quantized_datascales", 4, "reduce")),
        # the weight is dequantized first; more rows: a CTA computes chunks one after another
        (5, 0, ("quantized_datascales", 5)),
        # the weight is dequantized first; reductions of one chunk
        (6, 16, ("quantized_datascales", 6)), (7, 0, ("quantized_datascales", 7)),
        (8, 0, ("quantized_datascales", 8)),
        # the weight is dequantized first; operands not aligned to 16 bytes
        (9, 0, ("quantized_datascales", 9)),
        # the weight is dequantized first; everything else: any size, alignment and plan
        (10, 0, ("quantized_datascales", 10)),
    ),
})
# QUANTIZED: launch, kernel, bm, bn
QUANTIZED = {
    "quantized_nt_chunks_f32_simt": (
        (0, "quantized_nf4_nt_f32_1x32_b6b2d2", 1, 32),
        (1, "quantized_nf4_nt_f32_4x64_0f2e34", 4, 64),
        (2, "quantized_nf4_nt_f32_8x128_489612", 8, 128),
    ),
    "quantized_nn_chunks_f32_simt": (
        (0, "quantized_nf4_nn_f32_1x128_91f740", 1, 128),
        (1, "quantized_nf4_nn_f32_4x128_d8d697", 4, 128),
    ),
}
# SIMT: launch, kernel, slots, bm, bk, c0
SIMT = {
    "quantized_nt_chunks_f32_simt": (
        (3, "simt_nt_f32_32x64x32_4f9739", 4, 32, 32, 384),
        (4, "simt_nt_f32_64x64x32_6db400", 2, 64, 32, 512),
        (5, "simt_nt_f32_32x64x16_f94b7f", 4, 32, 16, 384),
    ),
    "quantized_nn_chunks_f32_simt": (
        (2, "simt_nn_f32_64x64x32_8f88ce", 2, 64, 32, 512),
        (3, "simt_nn_f32_32x64x16_5bf3b6", 4, 32, 16, 384),
        (4, "simt_nn_f32_32x64x16_303559", 4, 32, 16, 384),
    ),
}
# SIMT1: launch, kernel, slots, bm, bn, bk
SIMT1 = {
    "quantized_nt_chunks_f32_simt": (
        (7, "simt_nt_f32_32x64x32_9b75c0", 4, 32, 64, 32),
        (8, "simt_nt_f32_128x128x16_d03182", 2, 128, 128, 16),
        (9, "simt_nt_f32_128x128x8_fa8ad6", 2, 128, 128, 8),
        (10, "simt_nt_f32_64x64x16_b03b2d", 4, 64, 64, 16),
        (11, "simt_nt_f32_32x64x16_f428c0", 4, 32, 64, 16),
    ),
    "quantized_nn_chunks_f32_simt": (
        (6, "simt_nn_f32_128x128x16_001122", 2, 128, 128, 16),
        (7, "simt_nn_f32_64x64x32_757f5d", 4, 64, 64, 32),
        (8, "simt_nn_f32_32x64x16_4900c7", 4, 32, 64, 16),
        (9, "simt_nn_f32_128x128x8_17f490", 2, 128, 128, 8),
    ),
}
# SIMT2: launch, kernel
SIMT2 = {
    "quantized_nt_chunks_f32_simt": ((12, "simt_nt_f32_64x64x16_81759e"),),
    "quantized_nn_chunks_f32_simt": ((10, "simt_nn_f32_64x64x16_ec29b0"),),
}


def candidates(
    table: str, arch: str, m: int, n: int, k: int, sms: int, align_a: int, time: Time,
) -> Iterator[Candidate]:
    """Yields the routes that serve a problem, with predicted times."""
    u, v = {
        "quantized_nt_chunks_f32_simt": (n, k),
        "quantized_nn_chunks_f32_simt": (k, n),
    }[table]
    chunk = max(1, min(k, k if k <= 2048 else -(-k // -(-k // 1024) // 16) * 16))
    chunks = -(-k // chunk)
    fitting = ROUTES.fitting(table, align_a)
    launches: Launches = {}
    operands = m * k * 4 + n * k // 2 + n * k // 16
    stores = chunks * m * n * 4
    for launch, kernel, bm, bn in fitting.rows(QUANTIZED):
        tiles = -(-m // bm) * -(-n // bn)
        ctas = min(-(-m // bm), 512) * -(-n // bn) * chunks
        if ctas <= 2147483647 and stores <= 268435456:
            us = time(
                kernel, "fma", 1, sms, tiles * chunks, -(-chunk // 8), chunk * (bm * bn),
                -(-m // bm) * (n * k // 2 + n * k // 16) + -(-n // bn) * m * k * 4, operands,
                stores,
            )
            launches[launch] = us, kernel, ctas, {"workspace": stores}
    stores1 = m * n * 4
    ctas = -(-(m * n) // 512)
    if "reduce" in fitting and stores <= 268435456 and ctas <= 2147483647:
        us = time(
            "reduce_f32_128x4_d22399", "fma", 8, sms, ctas, -(-chunks // 8), 0, stores, stores,
            stores1,
        )
        launches["reduce"] = us, "reduce_f32_128x4_d22399", ctas, {"workspace": stores}
    operands1 = u * -(-v // 64) * 36
    stores2 = u * -(-v // 64) * 256
    pieces_u_v64 = u * -(-v // 64)
    ctas = -(-(pieces_u_v64 * 8) // 1024)
    if "quantized_datascales" in fitting and stores2 <= 1073741824:
        us = time(
            "quantized_nf4_f32_aac725", "fma", 8, sms, ctas, 1, 0, operands1, operands1, stores2,
        )
        launches["quantized_datascales"] = (
            us, "quantized_nf4_f32_aac725", ctas, {"b_dequantized": stores2},
        )
    operands2 = (m + n) * k * 4
    for launch, kernel, slots, bm, bk, c0 in fitting.rows(SIMT):
        tiles = -(-m // bm) * -(-n // 64)
        ctas = tiles * chunks
        if stores <= 268435456 and ctas <= 2147483647:
            us = time(
                kernel, "fma", slots, sms, ctas, -(-chunk // bk), chunk * (bm * 64), tiles * k * c0,
                operands2, stores,
            )
            launches[launch] = us, kernel, ctas, {"workspace": stores}
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    tiles_chunk8_chunks1 = -(-chunk // 8) * -(-chunks // 1)
    if table == "quantized_nt_chunks_f32_simt" and 6 in fitting and tiles_128x128 <= 2147483647:
        us = time(
            "simt_nt_f32_128x128x8_267220", "fma", 2, sms, tiles_128x128, tiles_chunk8_chunks1,
            k * 16384, tiles_128x128 * k * 1024, operands2, stores1,
        )
        launches[6] = us, "simt_nt_f32_128x128x8_267220", tiles_128x128, {}
    for launch, kernel, slots, bm, bn, bk in fitting.rows(SIMT1):
        tiles = -(-m // bm) * -(-n // bn)
        if chunks <= 1 and tiles <= 2147483647:
            us = time(
                kernel, "fma", slots, sms, tiles, -(-k // bk), k * (bm * bn),
                tiles * k * ((bm + bn) * 4), operands2, stores1,
            )
            launches[launch] = us, kernel, tiles, {}
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    tiles_chunk16_chunks1 = -(-chunk // 16) * -(-chunks // 1)
    for launch, kernel in fitting.rows(SIMT2):
        us = time(
            kernel, "fma", 1, sms, tiles_64x64, tiles_chunk16_chunks1, k * 4096,
            tiles_64x64 * k * 512, operands2, stores1,
        )
        launches[launch] = us, kernel, min(tiles_64x64, 2147483647), {}
    tiles_64x256 = -(-m // 64) * -(-n // 256)
    if (
        table == "quantized_nn_chunks_f32_simt" and arch in SOME_0 and 5 in fitting
        and tiles_64x256 <= 2147483647
    ):
        us = time(
            "simt_nn_f32_64x256x8_f5cbad", "fma", 2, sms, tiles_64x256, tiles_chunk8_chunks1,
            k * 16384, tiles_64x256 * k * 1280, operands2, stores1,
        )
        launches[5] = us, "simt_nn_f32_64x256x8_f5cbad", tiles_64x256, {}
    yield from fitting.combined(launches)
