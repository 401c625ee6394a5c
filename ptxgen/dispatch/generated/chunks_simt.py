"""Dispatch of NN chunks f32 simt, NT chunks f32 simt, TN chunks f32 simt, TT chunks f32 simt, NN
chunks half simt, NT chunks half simt, TN chunks half simt, TT chunks half simt: products under the
plan 'chunks'.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Launches, Routes, Time

SOME_0 = frozenset(("sm_80", "sm_87", "sm_90", "sm_100", "sm_103", "sm_110"))
# ROUTES: route, least align_a, least align_b, launches
ROUTES = Routes({
    "nn_chunks_f32_simt": (
        # split-K: a CTA for each tile and chunk
        (0, 0, 16, (0, "reduce")), (1, 0, 0, (1, "reduce")), (2, 0, 0, (2, "reduce")),
        (3, 0, 16, (3, "reduce")), (4, 16, 16, (4, "reduce")), (5, 0, 16, (5, "reduce")),
        (6, 0, 0, (6, "reduce")),
        # few columns: split-K, a CTA for each tile and chunk
        (7, 0, 0, (7, "reduce")), (8, 0, 0, (8, "reduce")),
        # few rows: slices of a CTA divide the chunks
        (9, 16, 16, (9,)), (10, 16, 16, (10,)),
        # more rows: a CTA computes chunks one after another
        (11, 0, 16, (11,)), (12, 0, 16, (12,)),
        # few rows, one chunk: the weight is read once
        (13, 0, 16, (13,)), (14, 16, 16, (14,)),
        # reductions of one chunk
        (15, 16, 16, (15,)), (16, 0, 16, (16,)), (17, 0, 16, (17,)), (18, 0, 16, (18,)),
        # operands not aligned to 16 bytes
        (19, 0, 0, (19,)), (20, 0, 0, (20,)),
        # everything else: any size, alignment and plan
        (21, 0, 0, (21,)),
    ),
    "nt_chunks_f32_simt": (
        # split-K: a CTA for each tile and chunk
        (0, 16, 16, (0, "reduce")), (1, 16, 16, (1, "reduce")), (2, 16, 16, (2, "reduce")),
        (3, 16, 16, (3, "reduce")), (4, 0, 0, (4, "reduce")), (5, 0, 0, (5, "reduce")),
        (6, 16, 16, (6, "reduce")), (7, 0, 0, (7, "reduce")),
        # few columns: split-K, a CTA for each tile and chunk
        (8, 0, 0, (8, "reduce")), (9, 0, 0, (9, "reduce")),
        # few rows: slices of a CTA divide the chunks
        (10, 16, 16, (10,)), (11, 16, 16, (11,)), (12, 16, 16, (12,)), (13, 16, 16, (13,)),
        (14, 16, 16, (14,)),
        # more rows: a CTA computes chunks one after another
        (15, 0, 0, (15,)), (16, 16, 16, (16,)), (17, 16, 16, (17,)),
        # few rows, one chunk: the weight is read once
        (18, 16, 16, (18,)), (19, 16, 16, (19,)), (20, 16, 16, (20,)), (21, 16, 16, (21,)),
        (22, 16, 16, (22,)), (23, 16, 16, (23,)), (24, 16, 16, (24,)), (25, 0, 0, (25,)),
        (26, 0, 0, (26,)),
        # reductions of one chunk
        (27, 16, 16, (27,)), (28, 0, 0, (28,)), (29, 16, 16, (29,)), (30, 16, 16, (30,)),
        (31, 0, 0, (31,)), (32, 0, 0, (32,)),
        # everything else: any size, alignment and plan
        (33, 0, 0, (33,)),
    ),
    "tn_chunks_f32_simt": (
        # split-K: a CTA for each tile and chunk
        (0, 16, 16, (0, "reduce")), (1, 0, 0, (1, "reduce")), (2, 0, 0, (2, "reduce")),
        (3, 16, 16, (3, "reduce")), (4, 16, 16, (4, "reduce")), (5, 0, 0, (5, "reduce")),
        # few columns: split-K, a CTA for each tile and chunk
        (6, 16, 0, (6, "reduce")), (7, 16, 0, (7, "reduce")),
        # A not aligned to 16 bytes: copied first
        (8, 0, 16, ("realign_a", 3, "reduce")), (9, 0, 16, ("realign_a", 4, "reduce")),
        # few rows: slices of a CTA divide the chunks
        (10, 0, 16, (10,)), (11, 0, 16, (11,)), (12, 0, 16, (12,)),
        # more rows: a CTA computes chunks one after another
        (13, 16, 16, (13,)), (14, 16, 16, (14,)), (15, 16, 16, (15,)),
        # A not aligned to 16 bytes: copied first
        (16, 0, 16, ("realign_a", 14)), (17, 0, 16, ("realign_a", 15)),
        # few rows, one chunk: the weight is read once
        (18, 0, 16, (18,)),
        # one short chunk: stores take most of the time
        (19, 16, 16, (19,)),
        # reductions of one chunk
        (20, 16, 16, (20,)), (21, 16, 16, (21,)), (22, 16, 16, (22,)), (23, 16, 16, (23,)),
        # A not aligned to 16 bytes: copied first
        (24, 0, 16, ("realign_a", 22)),
        # operands not aligned to 16 bytes
        (25, 0, 0, (25,)), (26, 0, 0, (26,)),
        # everything else: any size, alignment and plan
        (27, 0, 0, (27,)),
    ),
    "tt_chunks_f32_simt": (
        # slices of a CTA divide the chunks
        (0, 0, 16, (0,)), (1, 16, 0, (1,)),
        # reductions of one chunk
        (2, 16, 16, (2,)), (3, 16, 0, (3,)), (4, 0, 0, (4,)),
        # everything else: any size, alignment and plan
        (5, 0, 0, (5,)),
    ),
    "nn_chunks_half_simt": (
        # slices of a CTA divide the chunks
        (0, 16, 16, (0,)), (1, 8, 8, (1,)),
        # reductions of one chunk
        (2, 8, 8, (2,)), (3, 8, 8, (3,)), (4, 16, 16, (4,)),
        # everything else: any size, alignment and plan
        (5, 0, 0, (5,)),
    ),
    "tn_chunks_half_simt": (
        # a long reduction: split-K, a CTA for each tile and chunk
        (0, 8, 8, (0, "reduce")), (1, 0, 0, (1, "reduce")),
        # slices of a CTA divide the chunks
        (2, 0, 16, (2,)), (3, 8, 8, (3,)),
        # reductions of one chunk
        (4, 8, 8, (4,)), (5, 8, 8, (5,)), (6, 16, 16, (6,)),
        # everything else: any size, alignment and plan
        (7, 0, 0, (7,)),
    ),
    "tt_chunks_half_simt": (
        # slices of a CTA divide the chunks
        (0, 0, 16, (0,)), (1, 8, 8, (1,)),
        # reductions of one chunk
        (2, 8, 8, (2,)),
        # everything else: any size, alignment and plan
        (3, 0, 0, (3,)),
    ),
})
ROUTES["nt_chunks_half_simt"] = ROUTES["nn_chunks_half_simt"]
# SIMT: launch, kernel, slots, bm, bn, bk
SIMT = {
    "nn_chunks_f32_simt": (
        (0, "simt_nn_f32_8x64x32_37de95", 1, 8, 64, 32),
        (1, "simt_nn_f32_8x64x32_ed0509", 1, 8, 64, 32),
        (2, "simt_nn_f32_8x16x64_a51cc4", 6, 8, 16, 64),
        (3, "simt_nn_f32_64x64x32_8f88ce", 2, 64, 64, 32),
        (4, "simt_nn_f32_64x128x16_33d631", 3, 64, 128, 16),
        (5, "simt_nn_f32_32x64x16_5bf3b6", 4, 32, 64, 16),
        (6, "simt_nn_f32_32x64x16_303559", 4, 32, 64, 16),
        (7, "simt_nn_f32_128x32x32_ef18cf", 3, 128, 32, 32),
        (8, "simt_nn_f32_128x64x16_d26baa", 3, 128, 64, 16),
    ),
    "nt_chunks_f32_simt": (
        (0, "simt_nt_f32_1x64x64_d78fa3", 4, 1, 64, 64),
        (1, "simt_nt_f32_8x64x64_0c5d58", 4, 8, 64, 64),
        (2, "simt_nt_f32_16x64x64_fe2660", 3, 16, 64, 64),
        (3, "simt_nt_f32_32x64x32_4f9739", 4, 32, 64, 32),
        (4, "simt_nt_f32_8x16x64_07096b", 6, 8, 16, 64),
        (5, "simt_nt_f32_64x64x32_6db400", 2, 64, 64, 32),
        (6, "simt_nt_f32_64x128x16_b4cdc0", 3, 64, 128, 16),
        (7, "simt_nt_f32_32x64x16_f94b7f", 4, 32, 64, 16),
        (8, "simt_nt_f32_128x32x32_c441b1", 3, 128, 32, 32),
        (9, "simt_nt_f32_128x64x16_2b3df3", 3, 128, 64, 16),
    ),
    "tn_chunks_f32_simt": (
        (0, "simt_tn_f32_8x64x32_638fd5", 1, 8, 64, 32),
        (1, "simt_tn_f32_8x64x32_bd177d", 1, 8, 64, 32),
        (2, "simt_tn_f32_8x16x64_cce6ce", 6, 8, 16, 64),
        (3, "simt_tn_f32_64x64x32_9e38fd", 2, 64, 64, 32),
        (4, "simt_tn_f32_32x64x16_7da2db", 4, 32, 64, 16),
        (5, "simt_tn_f32_32x64x16_7f60a4", 4, 32, 64, 16),
        (6, "simt_tn_f32_128x32x32_0fe95b", 3, 128, 32, 32),
        (7, "simt_tn_f32_128x64x16_bc45ea", 3, 128, 64, 16),
    ),
    "tn_chunks_half_simt": (
        (0, "simt_tn_bf16_64x64x16_e547ad", 4, 64, 64, 16),
        (1, "simt_tn_bf16_32x64x16_6d5d8c", 4, 32, 64, 16),
    ),
}
# REDUCE: kernel
REDUCE = {
    "nn_chunks_f32_simt": ("reduce_f32_128x4_d22399",),
    "tn_chunks_half_simt": ("reduce_bf16_128x4_9dc73a",),
}
REDUCE["nt_chunks_f32_simt"] = REDUCE["nn_chunks_f32_simt"]
REDUCE["tn_chunks_f32_simt"] = REDUCE["nn_chunks_f32_simt"]
# SIMT1: launch, kernel, slots, bm, bn, bk, chunks_each
SIMT1 = {
    "nn_chunks_f32_simt": (
        (9, "simt_nn_f32_2x32x32_ef7e63", 1, 2, 32, 32, 8),
        (10, "simt_nn_f32_8x16x32_db513e", 1, 8, 16, 32, 8),
        (11, "simt_nn_f32_64x256x8_f5cbad", 2, 64, 256, 8, 1),
    ),
    "nt_chunks_f32_simt": (
        (11, "simt_nt_f32_2x32x32_fa7d50", 1, 2, 32, 32, 8),
        (14, "simt_nt_f32_16x16x32_4dcf3e", 1, 16, 16, 32, 8),
    ),
    "tn_chunks_f32_simt": ((10, "simt_tn_f32_2x32x32_175952", 1, 2, 32, 32, 8),),
    "tt_chunks_f32_simt": ((1, "simt_tt_f32_32x32x16_0c214c", 1, 32, 32, 16, 8),),
    "nn_chunks_half_simt": ((1, "simt_nn_bf16_32x64x16_0f4062", 1, 32, 64, 16, 8),),
    "nt_chunks_half_simt": (
        (0, "simt_nt_bf16_8x32x64_c3f8d3", 1, 8, 32, 64, 8),
        (1, "simt_nt_bf16_32x64x16_3a649b", 1, 32, 64, 16, 8),
    ),
    "tn_chunks_half_simt": ((3, "simt_tn_bf16_32x64x16_9247b9", 1, 32, 64, 16, 8),),
    "tt_chunks_half_simt": (
        (0, "simt_tt_bf16_8x32x64_7fa6e7", 1, 8, 32, 64, 8),
        (1, "simt_tt_bf16_32x64x16_48bc8e", 1, 32, 64, 16, 8),
    ),
}
# SIMT2: launch, kernel, slots, bm, bn, bk, chunks_each
SIMT2 = {
    "nn_chunks_f32_simt": ((12, "simt_nn_f32_64x128x16_c834ee", 3, 64, 128, 16, 1),),
    "nt_chunks_f32_simt": (
        (10, "simt_nt_f32_2x16x64_2cec86", 1, 2, 16, 64, 4),
        (12, "simt_nt_f32_4x16x32_4d2a9b", 1, 4, 16, 32, 8),
        (13, "simt_nt_f32_8x16x32_e574d9", 1, 8, 16, 32, 8),
        (15, "simt_nt_f32_128x128x8_267220", 2, 128, 128, 8, 1),
        (16, "simt_nt_f32_64x128x16_91e980", 3, 64, 128, 16, 1),
        (17, "simt_nt_f32_128x64x16_d7869c", 3, 128, 64, 16, 1),
    ),
    "tn_chunks_f32_simt": (
        (11, "simt_tn_f32_8x16x32_c5f5c1", 1, 8, 16, 32, 8),
        (12, "simt_tn_f32_8x32x16_26daaf", 1, 8, 32, 16, 8),
        (13, "simt_tn_f32_128x128x8_d5eae9", 2, 128, 128, 8, 1),
        (14, "simt_tn_f32_64x128x16_d05148", 3, 64, 128, 16, 1),
        (15, "simt_tn_f32_64x64x32_bd1405", 4, 64, 64, 32, 1),
    ),
    "tt_chunks_f32_simt": ((0, "simt_tt_f32_8x16x32_2ddc9d", 1, 8, 16, 32, 8),),
    "nn_chunks_half_simt": ((0, "simt_nn_bf16_8x32x32_71d125", 1, 8, 32, 32, 8),),
    "tn_chunks_half_simt": ((2, "simt_tn_bf16_4x32x32_f904b0", 1, 4, 32, 32, 8),),
}
# SIMT3: launch, kernel, slots, bm, bn, bk
SIMT3 = {
    "nn_chunks_f32_simt": (
        (13, "simt_nn_f32_8x64x64_f5d0be", 1, 8, 64, 64),
        (14, "simt_nn_f32_8x16x64_d3d8b5", 3, 8, 16, 64),
        (15, "simt_nn_f32_128x128x16_001122", 2, 128, 128, 16),
        (16, "simt_nn_f32_64x64x32_757f5d", 4, 64, 64, 32),
        (17, "simt_nn_f32_32x64x16_4900c7", 4, 32, 64, 16),
        (18, "simt_nn_f32_16x32x32_448b5d", 4, 16, 32, 32),
        (19, "simt_nn_f32_128x128x8_17f490", 2, 128, 128, 8),
        (20, "simt_nn_f32_16x32x32_a199c2", 4, 16, 32, 32),
    ),
    "nt_chunks_f32_simt": (
        (18, "simt_nt_f32_2x32x128_e2410b", 1, 2, 32, 128),
        (19, "simt_nt_f32_4x16x128_ae34aa", 1, 4, 16, 128),
        (20, "simt_nt_f32_2x64x64_71165f", 1, 2, 64, 64),
        (21, "simt_nt_f32_4x64x64_04a1be", 1, 4, 64, 64),
        (23, "simt_nt_f32_32x64x32_9b75c0", 4, 32, 64, 32),
        (24, "simt_nt_f32_16x16x64_e84837", 3, 16, 16, 64),
        (25, "simt_nt_f32_4x32x64_a909cd", 1, 4, 32, 64),
        (26, "simt_nt_f32_8x32x64_c8001e", 2, 8, 32, 64),
        (27, "simt_nt_f32_128x128x16_d03182", 2, 128, 128, 16),
        (28, "simt_nt_f32_128x128x8_fa8ad6", 2, 128, 128, 8),
        (29, "simt_nt_f32_32x32x32_7dfda1", 4, 32, 32, 32),
        (30, "simt_nt_f32_64x64x16_b03b2d", 4, 64, 64, 16),
        (31, "simt_nt_f32_32x64x16_f428c0", 4, 32, 64, 16),
        (32, "simt_nt_f32_16x32x32_9a6131", 4, 16, 32, 32),
    ),
    "tn_chunks_f32_simt": (
        (18, "simt_tn_f32_8x64x64_589873", 1, 8, 64, 64),
        (19, "simt_tn_f32_64x128x16_31a49c", 4, 64, 128, 16),
        (20, "simt_tn_f32_128x128x32_72e1e9", 2, 128, 128, 32),
        (21, "simt_tn_f32_64x64x32_636142", 4, 64, 64, 32),
        (22, "simt_tn_f32_32x64x16_dbb710", 4, 32, 64, 16),
        (23, "simt_tn_f32_16x32x32_78d1c8", 4, 16, 32, 32),
        (25, "simt_tn_f32_128x128x8_9ecef2", 2, 128, 128, 8),
        (26, "simt_tn_f32_16x32x32_a7ee99", 4, 16, 32, 32),
    ),
    "tt_chunks_f32_simt": (
        (2, "simt_tt_f32_128x128x16_232e3f", 2, 128, 128, 16),
        (3, "simt_tt_f32_64x64x32_b5a45c", 4, 64, 64, 32),
        (4, "simt_tt_f32_16x32x32_d140e4", 4, 16, 32, 32),
    ),
    "nn_chunks_half_simt": (
        (2, "simt_nn_bf16_128x128x16_1b3187", 2, 128, 128, 16),
        (3, "simt_nn_bf16_64x64x16_745d82", 4, 64, 64, 16),
        (4, "simt_nn_bf16_16x32x64_4d463e", 4, 16, 32, 64),
    ),
    "nt_chunks_half_simt": (
        (2, "simt_nt_bf16_128x128x16_b13b61", 2, 128, 128, 16),
        (3, "simt_nt_bf16_64x64x16_bfe728", 4, 64, 64, 16),
        (4, "simt_nt_bf16_16x32x64_3ff6f8", 4, 16, 32, 64),
    ),
    "tn_chunks_half_simt": (
        (4, "simt_tn_bf16_128x128x16_5c6b42", 2, 128, 128, 16),
        (5, "simt_tn_bf16_64x64x16_6f5e33", 4, 64, 64, 16),
        (6, "simt_tn_bf16_16x32x64_f64de3", 4, 16, 32, 64),
    ),
    "tt_chunks_half_simt": ((2, "simt_tt_bf16_128x128x16_0e7a1c", 2, 128, 128, 16),),
}
# SIMT4: launch, kernel, c1
SIMT4 = {
    "nn_chunks_f32_simt": ((21, "simt_nn_f32_64x64x16_ec29b0", 512),),
    "nt_chunks_f32_simt": ((33, "simt_nt_f32_64x64x16_81759e", 512),),
    "tn_chunks_f32_simt": ((27, "simt_tn_f32_64x64x16_5023a5", 512),),
    "tt_chunks_f32_simt": ((5, "simt_tt_f32_64x64x16_01a09e", 512),),
    "nn_chunks_half_simt": ((5, "simt_nn_bf16_64x64x16_5477c2", 256),),
    "nt_chunks_half_simt": ((5, "simt_nt_bf16_64x64x16_e40695", 256),),
    "tn_chunks_half_simt": ((7, "simt_tn_bf16_64x64x16_5b6def", 256),),
    "tt_chunks_half_simt": ((3, "simt_tt_bf16_64x64x16_409d22", 256),),
}


def candidates(
    table: str, arch: str, m: int, n: int, k: int, sms: int, align_a: int, align_b: int, time: Time,
) -> Iterator[Candidate]:
    """Yields the routes that serve a problem, with predicted times."""
    c0 = {
        "nn_chunks_f32_simt": 4,
        "nt_chunks_f32_simt": 4,
        "tn_chunks_f32_simt": 4,
        "tt_chunks_f32_simt": 4,
        "nn_chunks_half_simt": 2,
        "nt_chunks_half_simt": 2,
        "tn_chunks_half_simt": 2,
        "tt_chunks_half_simt": 2,
    }[table]
    chunk = max(1, min(k, k if k <= 2048 else -(-k // -(-k // 1024) // 16) * 16))
    chunks = -(-k // chunk)
    fitting = ROUTES.fitting(table, align_a, align_b)
    launches: Launches = {}
    operands = (m + n) * k * c0
    stores = chunks * m * n * 4
    for launch, kernel, slots, bm, bn, bk in fitting.rows(SIMT):
        tiles = -(-m // bm) * -(-n // bn)
        ctas = tiles * chunks
        if stores <= 268435456 and ctas <= 2147483647:
            us = time(
                kernel, "fma", slots, sms, ctas, -(-chunk // bk), chunk * (bm * bn),
                tiles * k * ((bm + bn) * c0), operands, stores,
            )
            launches[launch] = us, kernel, ctas, {"workspace": stores}
    stores1 = m * n * c0
    for kernel in REDUCE.get(table, ()) if "reduce" in fitting else ():
        ctas = -(-(m * n) // 512)
        if stores <= 268435456 and ctas <= 2147483647:
            us = time(kernel, "fma", 8, sms, ctas, -(-chunks // 8), 0, stores, stores, stores1)
            launches["reduce"] = us, kernel, ctas, {"workspace": stores}
    for launch, kernel, slots, bm, bn, bk, chunks_each in fitting.rows(SIMT1):
        tiles = -(-m // bm) * -(-n // bn)
        tiles1 = -(-chunk // bk) * -(-chunks // chunks_each)
        if arch in SOME_0 and tiles <= 2147483647:
            us = time(
                kernel, "fma", slots, sms, tiles, tiles1, k * (bm * bn),
                tiles * k * ((bm + bn) * c0), operands, stores1,
            )
            launches[launch] = us, kernel, tiles, {}
    for launch, kernel, slots, bm, bn, bk, chunks_each in fitting.rows(SIMT2):
        tiles = -(-m // bm) * -(-n // bn)
        tiles1 = -(-chunk // bk) * -(-chunks // chunks_each)
        if tiles <= 2147483647:
            us = time(
                kernel, "fma", slots, sms, tiles, tiles1, k * (bm * bn),
                tiles * k * ((bm + bn) * c0), operands, stores1,
            )
            launches[launch] = us, kernel, tiles, {}
    for launch, kernel, slots, bm, bn, bk in fitting.rows(SIMT3):
        tiles = -(-m // bm) * -(-n // bn)
        if chunks <= 1 and tiles <= 2147483647:
            us = time(
                kernel, "fma", slots, sms, tiles, -(-k // bk), k * (bm * bn),
                tiles * k * ((bm + bn) * c0), operands, stores1,
            )
            launches[launch] = us, kernel, tiles, {}
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    tiles_chunk16_chunks1 = -(-chunk // 16) * -(-chunks // 1)
    for launch, kernel, c1 in fitting.rows(SIMT4):
        us = time(
            kernel, "fma", 1, sms, tiles_64x64, tiles_chunk16_chunks1, k * 4096,
            tiles_64x64 * k * c1, operands, stores1,
        )
        launches[launch] = us, kernel, min(tiles_64x64, 2147483647), {}
    operands1 = (m + n) * k * 4
    stores2 = m * n * 4
    tiles_16x128 = -(-m // 16) * -(-n // 128)
    if (
        table == "nt_chunks_f32_simt" and arch in SOME_0 and 22 in fitting and chunks <= 1
        and tiles_16x128 <= 2147483647
    ):
        us = time(
            "simt_nt_f32_16x128x64_9d7a98", "fma", 1, sms, tiles_16x128, -(-k // 64), k * 2048,
            tiles_16x128 * k * 576, operands1, stores2,
        )
        launches[22] = us, "simt_nt_f32_16x128x64_9d7a98", tiles_16x128, {}
    operands2 = 0 + k * -(-m // 4) * 16
    pieces_k_m4 = k * -(-m // 4)
    ctas = -(-pieces_k_m4 // 512)
    if table == "tn_chunks_f32_simt" and "realign_a" in fitting and pieces_k_m4 * 16 <= 1073741824:
        us = time(
            "realign_b32x1_f1ec23", "fma", 8, sms, ctas, 1, 0, operands2, operands2, operands2,
        )
        launches["realign_a"] = us, "realign_b32x1_f1ec23", ctas, {"a_realigned": pieces_k_m4 * 16}
    yield from fitting.combined(launches)
