"""Dispatch of TN batch f64 simt: products under the plan 'batch'.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Launches, Routes, Time

SOME_0 = frozenset(("sm_90",))
# ROUTES: route, least align_a, least align_b, launches
ROUTES = Routes({
    "tn_batch_f64_simt": (
        # a long batch: a CTA per tile and chunk
        (0, 16, 16, (0, "reduce")), (1, 16, 16, (1, "reduce")), (2, 0, 0, (2, "reduce")),
        # one chain
        (3, 16, 16, (3,)), (4, 16, 16, (4,)), (5, 16, 16, (5,)), (6, 16, 16, (6,)),
        (7, 16, 16, (7,)),
        # operands off 16 bytes
        (8, 0, 16, (8,)), (9, 0, 0, (9,)), (10, 0, 0, (10,)),
        # FMA units, one chain
        (11, 16, 16, (11,)),
        # everything else: any size, alignment and plan
        (12, 0, 0, (12,)),
    ),
})
# F64: launch, kernel, bm, bk, c0, c1
F64 = {
    "tn_batch_f64_simt": (
        (0, "f64_tn_f64_64x64x16_f418fc", 64, 16, 4096, 1024),
        (1, "f64_tn_f64_32x32x32_e2d506", 32, 32, 1024, 512),
    ),
}
# F641: launch, kernel, slots, bm, bn, bk
F641 = {
    "tn_batch_f64_simt": (
        (3, "f64_tn_f64_16x32x32_a3d17c", 2, 16, 32, 32),
        (4, "f64_tn_f64_128x128x16_8d71c9", 1, 128, 128, 16),
        (5, "f64_tn_f64_64x64x16_51aec3", 3, 64, 64, 16),
        (6, "f64_tn_f64_32x64x32_68062b", 2, 32, 64, 32),
        (7, "f64_tn_f64_32x32x32_1f1633", 2, 32, 32, 32),
        (8, "f64_tn_f64_16x32x32_de508b", 2, 16, 32, 32),
    ),
}
# F642: launch, kernel, bm, bk, c0, c1
F642 = {
    "tn_batch_f64_simt": (
        (9, "f64_tn_f64_64x64x16_227970", 64, 16, 4096, 1024),
        (10, "f64_tn_f64_32x32x32_a9c6dd", 32, 32, 1024, 512),
    ),
}


def candidates(
    table: str, arch: str, m: int, n: int, k: int, sms: int, align_a: int, align_b: int, time: Time,
) -> Iterator[Candidate]:
    """What can serve a problem, with predicted times."""
    chunk = max(1, min(k, -(-max(-(-k // min(max(1048576 // (m * n), 1), 32)), 128) // 16) * 16))
    chunks = -(-k // chunk)
    fitting = ROUTES.fitting(table, align_a, align_b)
    launches: Launches = {}
    operands = (m + n) * k * 8
    stores = chunks * m * n * 8
    for launch, kernel, bm, bk, c0, c1 in fitting.rows(F64) if arch in SOME_0 else ():
        tiles = -(-m // bm) * -(-n // bm)
        ctas = tiles * chunks
        if stores <= 268435456 and ctas <= 2147483647:
            us = time(
                kernel, "mma64", 2, sms, ctas, -(-chunk // bk), chunk * c0, tiles * k * c1,
                operands, stores,
            )
            launches[launch] = us, kernel, ctas, {"workspace": stores}
    stores1 = m * n * 8
    ctas = -(-(m * n) // 128)
    if "reduce" in fitting and stores <= 268435456 and ctas <= 2147483647:
        us = time(
            "reduce_f64_128_7d934e", "fma64", 8, sms, ctas, -(-chunks // 8), 0, stores, stores,
            stores1,
        )
        launches["reduce"] = us, "reduce_f64_128_7d934e", ctas, {"workspace": stores}
    tiles_32x32 = -(-m // 32) * -(-n // 32)
    ctas = tiles_32x32 * chunks
    if 2 in fitting and stores <= 268435456 and ctas <= 2147483647:
        us = time(
            "f64_tn_f64_32x32x32_828dd7", "fma64", 2, sms, ctas, -(-chunk // 32), chunk * 1024,
            tiles_32x32 * k * 512, operands, stores,
        )
        launches[2] = us, "f64_tn_f64_32x32x32_828dd7", ctas, {"workspace": stores}
    for launch, kernel, slots, bm, bn, bk in fitting.rows(F641) if arch in SOME_0 else ():
        tiles = -(-m // bm) * -(-n // bn)
        if chunks <= 1 and tiles <= 2147483647:
            us = time(
                kernel, "mma64", slots, sms, tiles, -(-k // bk), k * (bm * bn),
                tiles * k * ((bm + bn) * 8), operands, stores1,
            )
            launches[launch] = us, kernel, tiles, {}
    for launch, kernel, bm, bk, c0, c1 in fitting.rows(F642) if arch in SOME_0 else ():
        tiles = -(-m // bm) * -(-n // bm)
        if tiles <= 2147483647:
            us = time(
                kernel, "mma64", 2, sms, tiles, -(-k // bk), k * c0, tiles * k * c1, operands,
                stores1,
            )
            launches[launch] = us, kernel, tiles, {}
    tiles_128x64 = -(-m // 128) * -(-n // 64)
    if 11 in fitting and chunks <= 1 and tiles_128x64 <= 2147483647:
        us = time(
            "f64_tn_f64_128x64x16_0d62c5", "fma64", 1, sms, tiles_128x64, -(-k // 16), k * 8192,
            tiles_128x64 * k * 1536, operands, stores1,
        )
        launches[11] = us, "f64_tn_f64_128x64x16_0d62c5", tiles_128x64, {}
    tiles_64x32 = -(-m // 64) * -(-n // 32)
    if 12 in fitting:
        us = time(
            "f64_tn_f64_64x32x16_5f41c9", "fma64", 3, sms, tiles_64x32, -(-k // 16), k * 2048,
            tiles_64x32 * k * 768, operands, stores1,
        )
        launches[12] = us, "f64_tn_f64_64x32x16_5f41c9", min(tiles_64x32, 2147483647), {}
    yield from fitting.combined(launches)
