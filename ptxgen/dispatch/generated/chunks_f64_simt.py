"""Dispatch of NN chunks f64 simt, NT chunks f64 simt, TN chunks f64 simt, TT chunks f64 simt:
products under the plan 'chunks'.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Launches, Routes, Time

SOME_0 = frozenset(("sm_90",))
# ROUTES: route, least align_a, least align_b, launches
ROUTES = Routes({
    "nn_chunks_f64_simt": (
        # tensor cores: chunks in the CTAs of a cluster, or one after another
        (0, 16, 16, (0,)), (1, 16, 16, (1,)), (2, 16, 16, (2,)), (3, 16, 16, (3,)),
        # tensor cores: reductions of one chunk
        (4, 16, 16, (4,)), (5, 16, 16, (5,)), (6, 16, 16, (6,)), (7, 16, 16, (7,)),
        (8, 16, 16, (8,)),
        # tensor cores: operands not aligned to 16 bytes
        (9, 0, 0, (9,)), (10, 0, 0, (10,)),
        # FMA units: reductions of one chunk
        (11, 16, 16, (11,)),
        # everything else: any size, alignment and plan
        (12, 0, 0, (12,)),
    ),
    "tn_chunks_f64_simt": (
        # a long reduction: split-K, a CTA for each tile and chunk
        (0, 16, 16, (0, "reduce")), (1, 16, 16, (1, "reduce")), (2, 0, 0, (2, "reduce")),
        # tensor cores: chunks in the CTAs of a cluster, or one after another
        (3, 16, 16, (3,)), (4, 16, 16, (4,)), (5, 16, 16, (5,)), (6, 16, 16, (6,)),
        # tensor cores: reductions of one chunk
        (7, 16, 16, (7,)), (8, 16, 16, (8,)), (9, 16, 16, (9,)), (10, 16, 16, (10,)),
        (11, 16, 16, (11,)),
        # tensor cores: operands not aligned to 16 bytes
        (12, 0, 16, (12,)), (13, 0, 16, (13,)), (14, 0, 0, (14,)), (15, 0, 0, (15,)),
        # FMA units: reductions of one chunk
        (16, 16, 16, (16,)),
        # everything else: any size, alignment and plan
        (17, 0, 0, (17,)),
    ),
    "tt_chunks_f64_simt": (
        # tensor cores: chunks in the CTAs of a cluster, or one after another
        (0, 16, 16, (0,)), (1, 16, 16, (1,)),
        # tensor cores: reductions of one chunk
        (2, 16, 16, (2,)), (3, 16, 16, (3,)),
        # tensor cores: operands not aligned to 16 bytes
        (4, 0, 0, (4,)), (5, 0, 0, (5,)),
        # FMA units: reductions of one chunk
        (6, 16, 16, (6,)),
        # everything else: any size, alignment and plan
        (7, 0, 0, (7,)),
    ),
})
ROUTES["nt_chunks_f64_simt"] = ROUTES["nn_chunks_f64_simt"]
# F64: launch, kernel, slots, bm, bn, bk
F64 = {
    "nn_chunks_f64_simt": (
        (0, "f64_nn_f64_16x32x32_4ab10c", 3, 16, 32, 32),
        (2, "f64_nn_f64_32x64x16_2bff3e", 3, 32, 64, 16),
        (3, "f64_nn_f64_32x32x32_912831", 2, 32, 32, 32),
    ),
    "nt_chunks_f64_simt": (
        (0, "f64_nt_f64_16x32x32_aa6ba3", 3, 16, 32, 32),
        (2, "f64_nt_f64_32x64x16_61d650", 3, 32, 64, 16),
        (3, "f64_nt_f64_32x32x32_832da3", 2, 32, 32, 32),
    ),
    "tn_chunks_f64_simt": (
        (3, "f64_tn_f64_16x32x32_9fa969", 3, 16, 32, 32),
        (5, "f64_tn_f64_32x64x16_eca683", 3, 32, 64, 16),
        (6, "f64_tn_f64_32x32x32_402698", 2, 32, 32, 32),
        (13, "f64_tn_f64_16x32x32_10b2c5", 3, 16, 32, 32),
    ),
    "tt_chunks_f64_simt": ((1, "f64_tt_f64_32x32x32_eec770", 2, 32, 32, 32),),
}
# F641: launch, kernel, bm, bk, c0, c1
F641 = {
    "nn_chunks_f64_simt": (
        (1, "f64_nn_f64_64x64x16_1f1d9e", 64, 16, 4096, 1024),
        (9, "f64_nn_f64_64x64x16_d8a054", 64, 16, 4096, 1024),
        (10, "f64_nn_f64_32x32x32_a2dd71", 32, 32, 1024, 512),
    ),
    "nt_chunks_f64_simt": (
        (1, "f64_nt_f64_64x64x16_38516f", 64, 16, 4096, 1024),
        (9, "f64_nt_f64_64x64x16_7298be", 64, 16, 4096, 1024),
        (10, "f64_nt_f64_32x32x32_834559", 32, 32, 1024, 512),
    ),
    "tn_chunks_f64_simt": (
        (4, "f64_tn_f64_64x64x16_dc4737", 64, 16, 4096, 1024),
        (14, "f64_tn_f64_64x64x16_58d961", 64, 16, 4096, 1024),
        (15, "f64_tn_f64_32x32x32_12bbf3", 32, 32, 1024, 512),
    ),
    "tt_chunks_f64_simt": (
        (0, "f64_tt_f64_64x64x16_2ab0cc", 64, 16, 4096, 1024),
        (4, "f64_tt_f64_64x64x16_912a7a", 64, 16, 4096, 1024),
        (5, "f64_tt_f64_32x32x32_14ac39", 32, 32, 1024, 512),
    ),
}
# F642: launch, kernel, slots, bm, bn, bk
F642 = {
    "nn_chunks_f64_simt": (
        (4, "f64_nn_f64_16x32x32_20338a", 2, 16, 32, 32),
        (5, "f64_nn_f64_128x128x16_84e5ba", 1, 128, 128, 16),
        (6, "f64_nn_f64_64x64x16_13458a", 3, 64, 64, 16),
        (7, "f64_nn_f64_32x64x32_81837b", 2, 32, 64, 32),
        (8, "f64_nn_f64_32x32x32_696544", 2, 32, 32, 32),
    ),
    "nt_chunks_f64_simt": (
        (4, "f64_nt_f64_16x32x32_eaabc2", 2, 16, 32, 32),
        (5, "f64_nt_f64_128x128x16_e504b9", 1, 128, 128, 16),
        (6, "f64_nt_f64_64x64x16_e5a0eb", 3, 64, 64, 16),
        (7, "f64_nt_f64_32x64x32_81a692", 2, 32, 64, 32),
        (8, "f64_nt_f64_32x32x32_6a9621", 2, 32, 32, 32),
    ),
    "tn_chunks_f64_simt": (
        (7, "f64_tn_f64_16x32x32_2b2686", 2, 16, 32, 32),
        (8, "f64_tn_f64_128x128x16_bcfde3", 1, 128, 128, 16),
        (9, "f64_tn_f64_64x64x16_3693d4", 3, 64, 64, 16),
        (10, "f64_tn_f64_32x64x32_b6e4f7", 2, 32, 64, 32),
        (11, "f64_tn_f64_32x32x32_b70fd8", 2, 32, 32, 32),
        (12, "f64_tn_f64_16x32x32_6e7dc1", 2, 16, 32, 32),
    ),
    "tt_chunks_f64_simt": (
        (2, "f64_tt_f64_64x64x16_aef351", 2, 64, 64, 16),
        (3, "f64_tt_f64_32x32x32_f7a7cf", 2, 32, 32, 32),
    ),
}
# F643: launch, kernel
F643 = {
    "nn_chunks_f64_simt": ((11, "f64_nn_f64_128x64x16_05c50b"),),
    "nt_chunks_f64_simt": ((11, "f64_nt_f64_128x64x16_20e0b4"),),
    "tn_chunks_f64_simt": ((16, "f64_tn_f64_128x64x16_4427c4"),),
    "tt_chunks_f64_simt": ((6, "f64_tt_f64_128x64x16_d877d6"),),
}
# F644: launch, kernel
F644 = {
    "nn_chunks_f64_simt": ((12, "f64_nn_f64_64x32x16_7607b6"),),
    "nt_chunks_f64_simt": ((12, "f64_nt_f64_64x32x16_b89ed7"),),
    "tn_chunks_f64_simt": ((17, "f64_tn_f64_64x32x16_447f38"),),
    "tt_chunks_f64_simt": ((7, "f64_tt_f64_64x32x16_9ec3e6"),),
}
# F645: launch, kernel, bm, bk, c0, c1
F645 = {
    "tn_chunks_f64_simt": (
        (0, "f64_tn_f64_64x64x16_8aa4b2", 64, 16, 4096, 1024),
        (1, "f64_tn_f64_32x32x32_0a8b68", 32, 32, 1024, 512),
    ),
}


def candidates(
    table: str, arch: str, m: int, n: int, k: int, sms: int, align_a: int, align_b: int, time: Time,
) -> Iterator[Candidate]:
    """Yields the routes that serve a problem, with predicted times."""
    chunk = max(1, min(k, k if k < 2048 else -(-k // 64) * 16))
    chunks = -(-k // chunk)
    fitting = ROUTES.fitting(table, align_a, align_b)
    launches: Launches = {}
    operands = (m + n) * k * 8
    stores = m * n * 8
    for launch, kernel, slots, bm, bn, bk in fitting.rows(F64) if arch in SOME_0 else ():
        tiles = -(-m // bm) * -(-n // bn)
        ctas = tiles * 4
        if chunks <= 4 and ctas <= 2147483647:
            us = time(
                kernel, "mma64", slots, sms, tiles * chunks, -(-chunk // bk), chunk * (bm * bn),
                tiles * k * ((bm + bn) * 8), operands, stores,
            )
            launches[launch] = us, kernel, ctas, {}
    for launch, kernel, bm, bk, c0, c1 in fitting.rows(F641) if arch in SOME_0 else ():
        tiles = -(-m // bm) * -(-n // bm)
        if tiles <= 2147483647:
            us = time(
                kernel, "mma64", 2, sms, tiles, -(-k // bk), k * c0, tiles * k * c1, operands,
                stores,
            )
            launches[launch] = us, kernel, tiles, {}
    for launch, kernel, slots, bm, bn, bk in fitting.rows(F642) if arch in SOME_0 else ():
        tiles = -(-m // bm) * -(-n // bn)
        if chunks <= 1 and tiles <= 2147483647:
            us = time(
                kernel, "mma64", slots, sms, tiles, -(-k // bk), k * (bm * bn),
                tiles * k * ((bm + bn) * 8), operands, stores,
            )
            launches[launch] = us, kernel, tiles, {}
    tiles_128x64 = -(-m // 128) * -(-n // 64)
    for launch, kernel in fitting.rows(F643):
        if chunks <= 1 and tiles_128x64 <= 2147483647:
            us = time(
                kernel, "fma64", 1, sms, tiles_128x64, -(-k // 16), k * 8192,
                tiles_128x64 * k * 1536, operands, stores,
            )
            launches[launch] = us, kernel, tiles_128x64, {}
    tiles_64x32 = -(-m // 64) * -(-n // 32)
    for launch, kernel in fitting.rows(F644):
        us = time(
            kernel, "fma64", 3, sms, tiles_64x32, -(-k // 16), k * 2048, tiles_64x32 * k * 768,
            operands, stores,
        )
        launches[launch] = us, kernel, min(tiles_64x32, 2147483647), {}
    stores1 = chunks * m * n * 8
    for launch, kernel, bm, bk, c0, c1 in fitting.rows(F645) if arch in SOME_0 else ():
        tiles = -(-m // bm) * -(-n // bm)
        ctas = tiles * chunks
        if stores1 <= 268435456 and ctas <= 2147483647:
            us = time(
                kernel, "mma64", 2, sms, ctas, -(-chunk // bk), chunk * c0, tiles * k * c1,
                operands, stores1,
            )
            launches[launch] = us, kernel, ctas, {"workspace": stores1}
    ctas = -(-(m * n) // 128)
    if (
        table == "tn_chunks_f64_simt" and "reduce" in fitting and stores1 <= 268435456
        and ctas <= 2147483647
    ):
        us = time(
            "reduce_f64_128_201544", "fma64", 8, sms, ctas, -(-chunks // 8), 0, stores1, stores1,
            stores,
        )
        launches["reduce"] = us, "reduce_f64_128_201544", ctas, {"workspace": stores1}
    tiles_32x32 = -(-m // 32) * -(-n // 32)
    ctas = tiles_32x32 * chunks
    if (
        table == "tn_chunks_f64_simt" and 2 in fitting and stores1 <= 268435456
        and ctas <= 2147483647
    ):
        us = time(
            "f64_tn_f64_32x32x32_87901a", "fma64", 2, sms, ctas, -(-chunk // 32), chunk * 1024,
            tiles_32x32 * k * 512, operands, stores1,
        )
        launches[2] = us, "f64_tn_f64_32x32x32_87901a", ctas, {"workspace": stores1}
    yield from fitting.combined(launches)
