"""Dispatch of nf4 NT chunks half tc, nf4 NN chunks half tc: products under the plan 'chunks', with
NF4 weights.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Launches, Routes, Time

SOME_0 = frozenset(("sm_90",))
SOME_1 = frozenset(("sm_90", "sm_100", "sm_103", "sm_110"))
SOME_2 = frozenset(("sm_80", "sm_87", "sm_90", "sm_100", "sm_103", "sm_110"))
# ROUTES: route, least align_a, launches
ROUTES = Routes({
    "nf4_nt_chunks_half_tc": (
        # few outputs: a CTA per tile and chunk
        (0, 16, (0, "reduce")), (1, 16, (1, "reduce")), (2, 16, (2, "reduce")),
        (3, 16, (3, "reduce")),
        # few rows: the weight streams once, as it is stored
        (4, 16, (4,)), (5, 16, (5,)),
        # short reductions: several tiles an SM
        (6, 16, (6,)), (7, 16, (7,)),
        # few rows, more columns: looked up as it is multiplied
        (8, 16, (8,)), (9, 16, (9,)), (10, 16, (10,)), (11, 16, (11,)), (12, 16, (12,)),
        (13, 16, (13,)), (14, 16, (14,)),
        # more rows: the weight as it is stored, by wgmma
        (15, 16, (15,)), (16, 16, (16,)), (17, 16, (17,)), (18, 16, (18,)), (19, 16, (19,)),
        (20, 16, (20,)), (21, 16, (21,)), (22, 16, (22,)),
        # more rows, in several chunks, by wgmma
        (23, 16, (23,)), (24, 16, (24,)), (25, 16, (25,)), (26, 16, (26,)), (27, 16, (27,)),
        # the weight dequantised; a long reduction: a CTA per tile and chunk
        (28, 16, ("nf4_datascales", 28, "reduce")), (29, 16, ("nf4_datascales", 29, "reduce")),
        # the weight dequantised; many rows, by wgmma
        (30, 16, ("nf4_datascales", 30)), (31, 16, ("nf4_datascales", 31)),
        (32, 16, ("nf4_datascales", 32)), (33, 16, ("nf4_datascales", 33)),
        (34, 16, ("nf4_datascales", 34)), (35, 16, ("nf4_datascales", 35)),
        (36, 16, ("nf4_datascales", 36)), (37, 16, ("nf4_datascales", 37)),
        (38, 16, ("nf4_datascales", 38)),
        # the weight dequantised; many rows, by mma
        (39, 16, ("nf4_datascales", 39)), (40, 16, ("nf4_datascales", 40)),
        (41, 16, ("nf4_datascales", 41)),
        # the weight dequantised; operands off 16 bytes
        (42, 4, ("nf4_datascales", 42)),
        # the weight dequantised; everything else: any size, alignment and plan
        (43, 0, ("nf4_datascales", 43)),
    ),
    "nf4_nn_chunks_half_tc": (
        # few outputs: a CTA per tile and chunk
        (0, 16, (0, "reduce")), (1, 16, (1, "reduce")), (2, 16, (2, "reduce")),
        # few rows: the weight streams once, as it is stored
        (3, 16, (3,)), (4, 16, (4,)), (5, 16, (5,)), (6, 16, (6,)), (7, 0, (7,)), (8, 0, (8,)),
        # short reductions: several tiles an SM
        (9, 0, (9,)), (10, 0, (10,)),
        # few rows, more columns: looked up as it is multiplied
        (11, 16, (11,)), (12, 16, (12,)), (13, 16, (13,)),
        # more rows: the weight as it is stored, by wgmma
        (14, 16, (14,)), (15, 16, (15,)), (16, 16, (16,)), (17, 16, (17,)), (18, 16, (18,)),
        (19, 16, (19,)), (20, 16, (20,)),
        # more rows, in several chunks, by wgmma
        (21, 16, (21,)), (22, 16, (22,)), (23, 16, (23,)), (24, 16, (24,)), (25, 16, (25,)),
        # the weight dequantised; a long reduction: a CTA per tile and chunk
        (26, 16, ("nf4_datascales", 26, "reduce")), (27, 16, ("nf4_datascales", 27, "reduce")),
        # the weight dequantised; A off 16 bytes: copied first
        (28, 0, ("nf4_datascales", "realign_a", 26, "reduce")),
        (29, 0, ("nf4_datascales", "realign_a", 27, "reduce")),
        # the weight dequantised; many rows, by wgmma
        (30, 16, ("nf4_datascales", 30)), (31, 16, ("nf4_datascales", 31)),
        (32, 16, ("nf4_datascales", 32)), (33, 16, ("nf4_datascales", 33)),
        (34, 16, ("nf4_datascales", 34)), (35, 16, ("nf4_datascales", 35)),
        (36, 16, ("nf4_datascales", 36)), (37, 16, ("nf4_datascales", 37)),
        (38, 16, ("nf4_datascales", 38)), (39, 16, ("nf4_datascales", 39)),
        # the weight dequantised; many rows, by mma
        (40, 16, ("nf4_datascales", 40)), (41, 16, ("nf4_datascales", 41)),
        (42, 16, ("nf4_datascales", 42)),
        # the weight dequantised; A off 16 bytes: copied first
        (43, 0, ("nf4_datascales", "realign_a", 30)), (44, 0, ("nf4_datascales", "realign_a", 31)),
        (45, 0, ("nf4_datascales", "realign_a", 36)), (46, 0, ("nf4_datascales", "realign_a", 39)),
        # the weight dequantised; operands off 16 bytes
        (47, 4, ("nf4_datascales", 47)),
        # the weight dequantised; everything else: any size, alignment and plan
        (48, 0, ("nf4_datascales", 48)),
    ),
})
# NF4_WGMMA: launch, kernel, bk, bm, bn
NF4_WGMMA = {
    "nf4_nt_chunks_half_tc": (
        (1, "nf4_wgmma_nt_bf16_64x64x128_1a9d16", 128, 64, 64),
        (2, "nf4_wgmma_nt_bf16_128x128x64_667de4", 64, 128, 128),
        (3, "nf4_wgmma_nt_bf16_256x128x64_5f8aed", 64, 256, 128),
    ),
    "nf4_nn_chunks_half_tc": (
        (0, "nf4_wgmma_nn_bf16_64x64x128_072a5f", 128, 64, 64),
        (1, "nf4_wgmma_nn_bf16_128x128x64_c2d07b", 64, 128, 128),
        (2, "nf4_wgmma_nn_bf16_256x128x64_f5677d", 64, 256, 128),
    ),
}
# NF4_MMA: launch, kernel, slots, bm, bn, c0, bk
NF4_MMA = {
    "nf4_nt_chunks_half_tc": (
        (4, "nf4_mma_nt_bf16_8x16x256_da69e6", 1, 8, 16, 128, 256),
        (5, "nf4_mma_nt_bf16_16x16x256_ad3b9b", 1, 16, 16, 128, 256),
        (6, "nf4_mma_nt_bf16_32x64x64_a09552", 3, 32, 64, 64, 64),
        (7, "nf4_mma_nt_bf16_64x64x64_b491ed", 2, 64, 64, 64, 64),
    ),
    "nf4_nn_chunks_half_tc": (
        (3, "nf4_mma_nn_bf16_8x32x256_c33bcd", 1, 8, 32, 128, 256),
        (5, "nf4_mma_nn_bf16_16x32x256_5760d5", 1, 16, 32, 128, 256),
        (7, "nf4_mma_nn_bf16_16x32x256_cc51c1", 1, 16, 32, 128, 256),
        (9, "nf4_mma_nn_bf16_32x64x64_d94f77", 3, 32, 64, 64, 64),
        (10, "nf4_mma_nn_bf16_64x64x64_356e98", 2, 64, 64, 64, 64),
    ),
}
# NF4_PAIRS: launch, kernel, archs, bm, bn, c0, bk
NF4_PAIRS = {
    "nf4_nt_chunks_half_tc": (
        (8, "nf4_pairs_nt_bf16_8x32x256_4c7975", SOME_1, 8, 32, 128, 256),
        (9, "nf4_pairs_nt_bf16_8x64x256_90ede8", SOME_1, 8, 64, 128, 256),
        (10, "nf4_pairs_nt_bf16_8x112x256_9f6401", SOME_1, 8, 112, 128, 256),
        (11, "nf4_pairs_nt_bf16_16x32x256_fe7967", SOME_1, 16, 32, 128, 256),
        (12, "nf4_pairs_nt_bf16_16x64x256_a0b32b", SOME_1, 16, 64, 128, 256),
        (13, "nf4_pairs_nt_bf16_32x64x256_1b3cf0", SOME_1, 32, 64, 128, 256),
        (14, "nf4_pairs_nt_bf16_32x128x256_7f57a6", SOME_1, 32, 128, 128, 256),
    ),
    "nf4_nn_chunks_half_tc": (
        (4, "nf4_mma_nn_bf16_8x32x256_5c126a", SOME_2, 8, 32, 128, 256),
        (6, "nf4_mma_nn_bf16_32x32x256_8e7dd0", SOME_2, 32, 32, 64, 256),
        (8, "nf4_mma_nn_bf16_8x32x256_ba6f77", SOME_2, 8, 32, 128, 256),
        (11, "nf4_pairs_nn_bf16_8x64x256_496201", SOME_1, 8, 64, 128, 256),
        (12, "nf4_pairs_nn_bf16_8x128x128_75601a", SOME_1, 8, 128, 128, 128),
        (13, "nf4_pairs_nn_bf16_16x128x256_0693e9", SOME_1, 16, 128, 128, 256),
    ),
}
# NF4_WGMMA1: launch, kernel, bm, bn, bk
NF4_WGMMA1 = {
    "nf4_nt_chunks_half_tc": (
        (15, "nf4_wgmma_nt_bf16_64x32x128_043981", 64, 32, 128),
        (16, "nf4_wgmma_nt_bf16_64x64x128_475987", 64, 64, 128),
        (17, "nf4_wgmma_nt_bf16_64x128x128_4001e6", 64, 128, 128),
        (18, "nf4_wgmma_nt_bf16_128x64x128_b197e8", 128, 64, 128),
        (19, "nf4_wgmma_nt_bf16_128x96x128_6a8bdc", 128, 96, 128),
        (20, "nf4_wgmma_nt_bf16_128x128x64_33f264", 128, 128, 64),
        (21, "nf4_wgmma_nt_bf16_192x128x64_20d24a", 192, 128, 64),
        (22, "nf4_wgmma_nt_bf16_256x128x64_fbaf91", 256, 128, 64),
    ),
    "nf4_nn_chunks_half_tc": (
        (14, "nf4_wgmma_nn_bf16_64x32x128_45d6b3", 64, 32, 128),
        (15, "nf4_wgmma_nn_bf16_64x64x128_7b65e9", 64, 64, 128),
        (16, "nf4_wgmma_nn_bf16_64x128x128_f7f954", 64, 128, 128),
        (17, "nf4_wgmma_nn_bf16_128x64x128_d3865f", 128, 64, 128),
        (18, "nf4_wgmma_nn_bf16_128x128x64_40b3f8", 128, 128, 64),
        (19, "nf4_wgmma_nn_bf16_192x128x64_70ddf1", 192, 128, 64),
        (20, "nf4_wgmma_nn_bf16_256x128x64_d2ae0f", 256, 128, 64),
    ),
}
# NF4_WGMMA2: launch, kernel, bk, bm, bn
NF4_WGMMA2 = {
    "nf4_nt_chunks_half_tc": (
        (23, "nf4_wgmma_nt_bf16_64x32x128_b8101d", 128, 64, 32),
        (24, "nf4_wgmma_nt_bf16_64x64x128_d6e62d", 128, 64, 64),
        (25, "nf4_wgmma_nt_bf16_64x128x128_d51619", 128, 64, 128),
        (26, "nf4_wgmma_nt_bf16_128x64x128_6b6b81", 128, 128, 64),
        (27, "nf4_wgmma_nt_bf16_128x128x64_8a4c21", 64, 128, 128),
    ),
    "nf4_nn_chunks_half_tc": (
        (21, "nf4_wgmma_nn_bf16_64x32x128_80d085", 128, 64, 32),
        (22, "nf4_wgmma_nn_bf16_64x64x128_14cc97", 128, 64, 64),
        (23, "nf4_wgmma_nn_bf16_64x128x128_39a8ed", 128, 64, 128),
        (24, "nf4_wgmma_nn_bf16_128x64x128_da51c8", 128, 128, 64),
        (25, "nf4_wgmma_nn_bf16_128x128x64_5ce028", 64, 128, 128),
    ),
}
# WGMMA: launch, kernel, bm, c0, c1
WGMMA = {
    "nf4_nt_chunks_half_tc": (
        (28, "wgmma_nt_bf16_128x128x64_40a9ac", 128, 16384, 512),
        (29, "wgmma_nt_bf16_64x64x64_15f6e1", 64, 4096, 256),
    ),
    "nf4_nn_chunks_half_tc": (
        (26, "wgmma_nn_bf16_128x128x64_f64026", 128, 16384, 512),
        (27, "wgmma_nn_bf16_64x64x64_168fdf", 64, 4096, 256),
    ),
}
# WGMMA1: kernel
WGMMA1 = {
    "nf4_nt_chunks_half_tc": ("wgmma_nt_bf16_128x256x64_b35b38",),
    "nf4_nn_chunks_half_tc": ("wgmma_nn_bf16_128x256x64_86d2ac",),
}
# WGMMA2: launch, kernel, bm, bn
WGMMA2 = {
    "nf4_nt_chunks_half_tc": (
        (31, "wgmma_nt_bf16_128x256x64_4bc648", 128, 256),
        (34, "wgmma_nt_bf16_128x224x64_ad8f66", 128, 224),
        (36, "wgmma_nt_bf16_128x128x64_96a12d", 128, 128),
        (37, "wgmma_nt_bf16_128x64x64_885da7", 128, 64),
        (38, "wgmma_nt_bf16_64x64x64_595f63", 64, 64),
    ),
    "nf4_nn_chunks_half_tc": (
        (31, "wgmma_nn_bf16_128x256x64_2c5b0f", 128, 256),
        (34, "wgmma_nn_bf16_128x224x64_337f7e", 128, 224),
        (36, "wgmma_nn_bf16_128x128x64_f67370", 128, 128),
        (38, "wgmma_nn_bf16_128x64x64_0dad98", 128, 64),
        (39, "wgmma_nn_bf16_64x64x64_2ff8a4", 64, 64),
    ),
}
# WGMMA3: launch, kernel, bn, c0
WGMMA3 = {
    "nf4_nt_chunks_half_tc": (
        (32, "wgmma_nt_bf16_128x256x64_63dcfc", 256, 1024),
        (33, "wgmma_nt_bf16_128x192x64_eb3cc9", 192, 896),
        (35, "wgmma_nt_bf16_128x160x64_732859", 160, 832),
    ),
    "nf4_nn_chunks_half_tc": (
        (32, "wgmma_nn_bf16_128x256x64_74f96d", 256, 1024),
        (33, "wgmma_nn_bf16_128x192x64_05a037", 192, 896),
        (35, "wgmma_nn_bf16_128x160x64_20a7b2", 160, 832),
        (37, "wgmma_nn_bf16_128x128x64_68c5f8", 128, 768),
    ),
}
# MMA: launch, kernel, slots, bm, c0, c1
MMA = {
    "nf4_nt_chunks_half_tc": (
        (39, "mma_nt_bf16_64x64x64_93d7f2", 3, 64, 4096, 256),
        (41, "mma_nt_bf16_128x128x64_848ada", 1, 128, 16384, 512),
    ),
    "nf4_nn_chunks_half_tc": (
        (40, "mma_nn_bf16_64x64x64_42490e", 3, 64, 4096, 256),
        (42, "mma_nn_bf16_128x128x64_e43a98", 1, 128, 16384, 512),
    ),
}
# MMA1: launch, kernel
MMA1 = {
    "nf4_nt_chunks_half_tc": ((40, "mma_nt_bf16_128x128x64_beb296"),),
    "nf4_nn_chunks_half_tc": ((41, "mma_nn_bf16_128x128x64_cd5bbc"),),
}
# MMA2: launch, kernel
MMA2 = {
    "nf4_nt_chunks_half_tc": ((42, "mma_nt_bf16_128x64x64_675ed6"),),
    "nf4_nn_chunks_half_tc": ((47, "mma_nn_bf16_128x64x64_c213a3"),),
}
# MMA3: launch, kernel
MMA3 = {
    "nf4_nt_chunks_half_tc": ((43, "mma_nt_bf16_64x64x32_d497a1"),),
    "nf4_nn_chunks_half_tc": ((48, "mma_nn_bf16_64x64x32_782949"),),
}


def candidates(
    table: str, arch: str, m: int, n: int, k: int, sms: int, align_a: int, time: Time,
) -> Iterator[Candidate]:
    """What can serve a problem, with predicted times."""
    u, v = {
        "nf4_nt_chunks_half_tc": (n, k),
        "nf4_nn_chunks_half_tc": (k, n),
    }[table]
    chunk = max(1, min(k, k if k <= 4096 else -(-k // -(-k // 3072) // 128) * 128))
    chunks = -(-k // chunk)
    fitting = ROUTES.fitting(table, align_a)
    launches: Launches = {}
    operands = m * k * 2 + n * k * 9 // 16
    stores = chunks * m * n * 4
    tiles_8x16 = -(-m // 8) * -(-n // 16)
    ctas = tiles_8x16 * chunks
    if (
        table == "nf4_nt_chunks_half_tc" and 0 in fitting and ctas <= 2147483647
        and stores <= 268435456 and (chunk % 128 == 0 or chunks <= 1)
    ):
        us = time(
            "nf4_mma_nt_bf16_8x16x256_292cf6", "mma", 1, sms, ctas, -(-chunk // 256), chunk * 128,
            -(-n // 16) * (m * k * 2) + -(-m // 8) * (n * k * 9 // 16), operands, stores,
        )
        launches[0] = us, "nf4_mma_nt_bf16_8x16x256_292cf6", ctas, {"workspace": stores}
    stores1 = m * n * 2
    ctas = -(-(m * n) // 512)
    if "reduce" in fitting and stores <= 268435456 and ctas <= 2147483647:
        us = time(
            "reduce_bf16_128x4_9cc9ba", "fma", 8, sms, ctas, -(-chunks // 8), 0, stores, stores,
            stores1,
        )
        launches["reduce"] = us, "reduce_bf16_128x4_9cc9ba", ctas, {"workspace": stores}
    for launch, kernel, bk, bm, bn in fitting.rows(NF4_WGMMA) if arch in SOME_0 else ():
        tiles = -(-m // bm) * -(-n // bn)
        if (
            (chunks <= 1 or chunk % bk == 0) and stores <= 268435456 and m + bm <= 2147483647
            and n + bn <= 2147483647 and k + bk <= 2147483647 and tiles * chunks + sms <= 4294967295
        ):
            us = time(
                kernel, "wgmma", 1, sms, tiles * chunks, -(-chunk // bk), chunk * (bm * bn),
                -(-n // bn) * (m * k * 2) + -(-m // bm) * (n * k * 9 // 16), operands, stores,
            )
            launches[launch] = us, kernel, min(tiles * chunks, sms) * 1, {"workspace": stores}
    for launch, kernel, slots, bm, bn, c0, bk in fitting.rows(NF4_MMA):
        tiles = -(-m // bm) * -(-n // bn)
        if tiles <= 2147483647 and (chunk % c0 == 0 or chunks <= 1):
            us = time(
                kernel, "mma", slots, sms, tiles, -(-k // bk), k * (bm * bn),
                -(-n // bn) * (m * k * 2) + -(-m // bm) * (n * k * 9 // 16), operands, stores1,
            )
            launches[launch] = us, kernel, tiles, {}
    for launch, kernel, archs, bm, bn, c0, bk in fitting.rows(NF4_PAIRS):
        tiles = -(-m // bm) * -(-n // bn)
        if arch in archs and tiles <= 2147483647 and (chunk % c0 == 0 or chunks <= 1):
            us = time(
                kernel, "mma", 1, sms, tiles, -(-k // bk), k * (bm * bn),
                -(-n // bn) * (m * k * 2) + -(-m // bm) * (n * k * 9 // 16), operands, stores1,
            )
            launches[launch] = us, kernel, tiles, {}
    for launch, kernel, bm, bn, bk in fitting.rows(NF4_WGMMA1) if arch in SOME_0 else ():
        tiles = -(-m // bm) * -(-n // bn)
        if (
            chunks <= 1 and m + bm <= 2147483647 and n + bn <= 2147483647 and k + bk <= 2147483647
            and tiles + sms <= 4294967295
        ):
            us = time(
                kernel, "wgmma", 1, sms, tiles, -(-k // bk), k * (bm * bn),
                -(-n // bn) * (m * k * 2) + -(-m // bm) * (n * k * 9 // 16), operands, stores1,
            )
            launches[launch] = us, kernel, min(tiles, sms) * 1, {}
    for launch, kernel, bk, bm, bn in fitting.rows(NF4_WGMMA2) if arch in SOME_0 else ():
        tiles = -(-m // bm) * -(-n // bn)
        if (
            (chunks <= 1 or chunk % bk == 0) and m + bm <= 2147483647 and n + bn <= 2147483647
            and k + bk <= 2147483647 and tiles + sms <= 4294967295
        ):
            us = time(
                kernel, "wgmma", 1, sms, tiles, -(-k // bk), k * (bm * bn),
                -(-n // bn) * (m * k * 2) + -(-m // bm) * (n * k * 9 // 16), operands, stores1,
            )
            launches[launch] = us, kernel, min(tiles, sms) * 1, {}
    operands1 = u * -(-v // 64) * 36
    stores2 = u * -(-v // 64) * 128
    pieces_u_v64 = u * -(-v // 64)
    ctas = -(-(pieces_u_v64 * 8) // 1024)
    if "nf4_datascales" in fitting and stores2 <= 1073741824:
        us = time("nf4_bf16_531262", "fma", 8, sms, ctas, 1, 0, operands1, operands1, stores2)
        launches["nf4_datascales"] = us, "nf4_bf16_531262", ctas, {"b_dequantised": stores2}
    operands2 = (m + n) * k * 2
    for launch, kernel, bm, c0, c1 in fitting.rows(WGMMA) if arch in SOME_0 else ():
        tiles = -(-m // bm) * -(-n // bm)
        if (
            (chunk % 64 == 0 or chunks <= 1) and stores <= 268435456 and sms >= 1
            and m + bm <= 2147483647 and n + bm <= 2147483647 and k + 64 <= 2147483647
            and tiles * chunks + sms <= 4294967295
        ):
            us = time(
                kernel, "wgmma", 1, sms, tiles * chunks, -(-chunk // 64), chunk * c0,
                tiles * k * (c1 + (min(k % 16, 1) * bm + min(v % 16, 1) * bm) * 6), operands2,
                stores,
            )
            launches[launch] = us, kernel, min(tiles * chunks, sms) * 1, {"workspace": stores}
    tiles_128x256 = -(-m // 128) * -(-n // 256)
    for kernel in WGMMA1[table] if arch in SOME_0 and 30 in fitting else ():
        if (
            chunks <= 1 and sms >= 1 and m + 128 <= 2147483647 and n + 256 <= 2147483647
            and k + 64 <= 2147483647 and tiles_128x256 + sms <= 4294967295
        ):
            us = time(
                kernel, "wgmma", 1, sms, tiles_128x256, -(-k // 64), k * 32768,
                tiles_128x256 * k * (768 + (min(k % 16, 1) * 128 + min(v % 16, 1) * 256) * 6),
                operands2, stores1,
            )
            launches[30] = us, kernel, min(tiles_128x256, sms) * 1, {}
    for launch, kernel, bm, bn in fitting.rows(WGMMA2) if arch in SOME_0 else ():
        tiles = -(-m // bm) * -(-n // bn)
        if (
            (chunk % 64 == 0 or chunks <= 1) and sms >= 1 and m + bm <= 2147483647
            and n + bn <= 2147483647 and k + 64 <= 2147483647 and tiles + sms <= 4294967295
        ):
            us = time(
                kernel, "wgmma", 1, sms, tiles, -(-k // 64), k * (bm * bn),
                tiles * k * ((bm + bn) * 2 + (min(k % 16, 1) * bm + min(v % 16, 1) * bn) * 6),
                operands2, stores1,
            )
            launches[launch] = us, kernel, min(tiles, sms) * 1, {}
    for launch, kernel, bn, c0 in fitting.rows(WGMMA3) if arch in SOME_0 else ():
        tiles = -(-m // 256) * -(-n // bn)
        if (
            (chunk % 64 == 0 or chunks <= 1) and sms >= 2 and m + 256 <= 2147483647
            and n + bn <= 2147483647 and k + 64 <= 2147483647 and tiles + sms // 2 <= 4294967295
        ):
            us = time(
                kernel, "wgmma", 1, sms, tiles * 2, -(-k // 64), k * ((bn + bn) * 64),
                tiles * k * (c0 + (min(k % 16, 1) * 256 + min(v % 16, 1) * bn) * 6), operands2,
                stores1,
            )
            launches[launch] = us, kernel, min(tiles, sms // 2) * 2, {}
    for launch, kernel, slots, bm, c0, c1 in fitting.rows(MMA):
        tiles = -(-m // bm) * -(-n // bm)
        if (chunk % 64 == 0 or chunks <= 1) and tiles <= 2147483647:
            us = time(
                kernel, "mma", slots, sms, tiles, -(-k // 64), k * c0,
                tiles * k * (c1 + (min(k % 16, 1) * bm + min(v % 16, 1) * bm) * 6), operands2,
                stores1,
            )
            launches[launch] = us, kernel, tiles, {}
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    for launch, kernel in fitting.rows(MMA1):
        if chunks <= 1 and tiles_128x128 <= 2147483647:
            us = time(
                kernel, "mma", 2, sms, tiles_128x128, -(-k // 64), k * 16384,
                tiles_128x128 * k * (512 + (min(k % 16, 1) * 128 + min(v % 16, 1) * 128) * 6),
                operands2, stores1,
            )
            launches[launch] = us, kernel, tiles_128x128, {}
    tiles_128x64 = -(-m // 128) * -(-n // 64)
    for launch, kernel in fitting.rows(MMA2) if arch in SOME_2 else ():
        if (chunk % 64 == 0 or chunks <= 1) and tiles_128x64 <= 2147483647:
            us = time(
                kernel, "mma", 1, sms, tiles_128x64, -(-k // 64), k * 8192,
                tiles_128x64 * k * (384 + (min(k % 16, 1) * 128 + min(v % 16, 1) * 64) * 6),
                operands2, stores1,
            )
            launches[launch] = us, kernel, tiles_128x64, {}
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    for launch, kernel in fitting.rows(MMA3):
        if chunk % 32 == 0 or chunks <= 1:
            us = time(
                kernel, "mma", 3, sms, tiles_64x64, -(-k // 32), k * 4096,
                tiles_64x64 * k * (256 + (min(k % 16, 1) * 64 + min(v % 16, 1) * 64) * 6),
                operands2, stores1,
            )
            launches[launch] = us, kernel, min(tiles_64x64, 2147483647), {}
    operands3 = 0 + m * -(-k // 8) * 16
    pieces_m_k8 = m * -(-k // 8)
    ctas = -(-pieces_m_k8 // 512)
    if (
        table == "nf4_nn_chunks_half_tc" and "realign_a" in fitting
        and pieces_m_k8 * 16 <= 1073741824
    ):
        us = time(
            "realign_b16x1_7953b4", "fma", 8, sms, ctas, 1, 0, operands3, operands3, operands3,
        )
        launches["realign_a"] = us, "realign_b16x1_7953b4", ctas, {"a_realigned": pieces_m_k8 * 16}
    yield from fitting.combined(launches)
