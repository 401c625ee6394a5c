"""Dispatch of TN batch f32 simt, TN batch half simt: products under the plan 'batch'.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Launches, Routes, Time

# ROUTES: route, least align_a, least align_b, launches
ROUTES = Routes({
    "tn_batch_f32_simt": (
        # a long batch: a CTA per tile and chunk
        (0, 16, 16, (0, "reduce")), (1, 16, 16, (1, "reduce")), (2, 0, 0, (2, "reduce")),
        # a short batch: stores decide
        (3, 16, 16, (3,)),
        # one chain
        (4, 16, 16, (4,)), (5, 16, 16, (5,)), (6, 16, 16, (6,)), (7, 16, 16, (7,)),
        # operands off 16 bytes
        (8, 0, 0, (8,)), (9, 0, 0, (9,)),
        # everything else: any size, alignment and plan
        (10, 0, 0, (10,)),
    ),
    "tn_batch_half_simt": (
        # a long batch: a CTA per tile and chunk
        (0, 8, 8, (0, "reduce")), (1, 0, 0, (1, "reduce")),
        # one chain
        (2, 8, 8, (2,)), (3, 8, 8, (3,)), (4, 16, 16, (4,)),
        # everything else: any size, alignment and plan
        (5, 0, 0, (5,)),
    ),
})
# SIMT: launch, kernel, slots, bm, bk, c1
SIMT = {
    "tn_batch_f32_simt": (
        (0, "simt_tn_f32_64x64x32_574e94", 2, 64, 32, 512),
        (1, "simt_tn_f32_32x64x16_800bb7", 4, 32, 16, 384),
        (2, "simt_tn_f32_32x64x16_82823c", 4, 32, 16, 384),
    ),
    "tn_batch_half_simt": (
        (0, "simt_tn_bf16_64x64x16_5d3438", 4, 64, 16, 256),
        (1, "simt_tn_bf16_32x64x16_c7020c", 4, 32, 16, 192),
    ),
}
# REDUCE: kernel
REDUCE = {
    "tn_batch_f32_simt": ("reduce_f32_128x4_ab14e2",),
    "tn_batch_half_simt": ("reduce_bf16_128x4_2b7d74",),
}
# SIMT1: launch, kernel, slots, bm, bn, bk
SIMT1 = {
    "tn_batch_f32_simt": (
        (3, "simt_tn_f32_64x128x16_6468d5", 4, 64, 128, 16),
        (4, "simt_tn_f32_128x128x32_8712aa", 2, 128, 128, 32),
        (5, "simt_tn_f32_64x64x32_67642f", 4, 64, 64, 32),
        (6, "simt_tn_f32_32x64x16_bd82b3", 4, 32, 64, 16),
        (7, "simt_tn_f32_16x32x32_c3e0e2", 4, 16, 32, 32),
        (8, "simt_tn_f32_128x128x8_099abb", 2, 128, 128, 8),
        (9, "simt_tn_f32_16x32x32_65cffe", 4, 16, 32, 32),
    ),
    "tn_batch_half_simt": (
        (2, "simt_tn_bf16_128x128x16_ad45da", 2, 128, 128, 16),
        (3, "simt_tn_bf16_64x64x16_bb15ba", 4, 64, 64, 16),
        (4, "simt_tn_bf16_16x32x64_98ba99", 4, 16, 32, 64),
    ),
}
# SIMT2: launch, kernel, c1
SIMT2 = {
    "tn_batch_f32_simt": ((10, "simt_tn_f32_64x64x16_285df9", 512),),
    "tn_batch_half_simt": ((5, "simt_tn_bf16_64x64x16_03e953", 256),),
}


def candidates(
    table: str, arch: str, m: int, n: int, k: int, sms: int, align_a: int, align_b: int, time: Time,
) -> Iterator[Candidate]:
    """What can serve a problem, with predicted times."""
    c0 = {
        "tn_batch_f32_simt": 4,
        "tn_batch_half_simt": 2,
    }[table]
    chunk_part_1 = -(-k // min(max(16777216 // (m * n), 1), 128))
    chunk = max(1, min(k, -(-max(chunk_part_1, min(max(m * n // 512, 128), 1024)) // 16) * 16))
    chunks = -(-k // chunk)
    fitting = ROUTES.fitting(table, align_a, align_b)
    launches: Launches = {}
    operands = (m + n) * k * c0
    stores = chunks * m * n * 4
    for launch, kernel, slots, bm, bk, c1 in fitting.rows(SIMT):
        tiles = -(-m // bm) * -(-n // 64)
        ctas = tiles * chunks
        if stores <= 268435456 and ctas <= 2147483647:
            us = time(
                kernel, "fma", slots, sms, ctas, -(-chunk // bk), chunk * (bm * 64), tiles * k * c1,
                operands, stores,
            )
            launches[launch] = us, kernel, ctas, {"workspace": stores}
    stores1 = m * n * c0
    for kernel in REDUCE[table] if "reduce" in fitting else ():
        ctas = -(-(m * n) // 512)
        if stores <= 268435456 and ctas <= 2147483647:
            us = time(kernel, "fma", 8, sms, ctas, -(-chunks // 8), 0, stores, stores, stores1)
            launches["reduce"] = us, kernel, ctas, {"workspace": stores}
    for launch, kernel, slots, bm, bn, bk in fitting.rows(SIMT1):
        tiles = -(-m // bm) * -(-n // bn)
        if chunks <= 1 and tiles <= 2147483647:
            us = time(
                kernel, "fma", slots, sms, tiles, -(-k // bk), k * (bm * bn),
                tiles * k * ((bm + bn) * c0), operands, stores1,
            )
            launches[launch] = us, kernel, tiles, {}
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    tiles_chunk16_chunks1 = -(-chunk // 16) * -(-chunks // 1)
    for launch, kernel, c1 in fitting.rows(SIMT2):
        us = time(
            kernel, "fma", 1, sms, tiles_64x64, tiles_chunk16_chunks1, k * 4096,
            tiles_64x64 * k * c1, operands, stores1,
        )
        launches[launch] = us, kernel, min(tiles_64x64, 2147483647), {}
    yield from fitting.combined(launches)
