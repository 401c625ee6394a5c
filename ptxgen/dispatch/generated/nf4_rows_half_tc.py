"""Dispatch of nf4 NT rows half tc, nf4 NN rows half tc: products under the plan 'rows', with NF4
weights.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Launches, Routes, Time

SOME_0 = frozenset(("sm_90", "sm_100", "sm_103", "sm_110"))
SOME_1 = frozenset(("sm_80", "sm_87", "sm_90", "sm_100", "sm_103", "sm_110"))
SOME_2 = frozenset(("sm_90",))
# ROUTES: route, least align_a, launches
ROUTES = Routes({
    "nf4_nt_rows_half_tc": (
        # few rows: the weight streams once, as it is stored
        (0, 16, (0,)), (1, 16, (1,)),
        # few rows, more columns: looked up as it is multiplied
        (2, 16, (2,)), (3, 16, (3,)), (4, 16, (4,)), (5, 16, (5,)), (6, 16, (6,)), (7, 16, (7,)),
        (8, 16, (8,)),
        # more rows: the weight as it is stored, by wgmma
        (9, 16, (9,)), (10, 16, (10,)), (11, 16, (11,)), (12, 16, (12,)), (13, 16, (13,)),
        # the weight dequantised; many rows, by wgmma
        (14, 16, ("nf4_datascales", 14)), (15, 16, ("nf4_datascales", 15)),
        (16, 16, ("nf4_datascales", 16)), (17, 16, ("nf4_datascales", 17)),
        (18, 16, ("nf4_datascales", 18)), (19, 16, ("nf4_datascales", 19)),
        # the weight dequantised; many rows, by mma
        (20, 16, ("nf4_datascales", 20)), (21, 16, ("nf4_datascales", 21)),
        # the weight dequantised; everything else: any size, alignment and plan
        (22, 0, ("nf4_datascales", 22)),
    ),
    "nf4_nn_rows_half_tc": (
        # few rows: the weight streams once, as it is stored
        (0, 16, (0,)), (1, 16, (1,)), (2, 16, (2,)),
        # few rows, more columns: looked up as it is multiplied
        (3, 16, (3,)), (4, 16, (4,)), (5, 16, (5,)),
        # more rows: the weight as it is stored, by wgmma
        (6, 16, (6,)), (7, 16, (7,)), (8, 16, (8,)), (9, 16, (9,)), (10, 16, (10,)),
        # the weight dequantised; many rows, by wgmma
        (11, 16, ("nf4_datascales", 11)), (12, 16, ("nf4_datascales", 12)),
        (13, 16, ("nf4_datascales", 13)), (14, 16, ("nf4_datascales", 14)),
        (15, 16, ("nf4_datascales", 15)), (16, 16, ("nf4_datascales", 16)),
        (17, 16, ("nf4_datascales", 17)),
        # the weight dequantised; many rows, by mma
        (18, 16, ("nf4_datascales", 18)), (19, 16, ("nf4_datascales", 19)),
        # the weight dequantised; A off 16 bytes: copied first
        (20, 0, ("nf4_datascales", "realign_a", 11)), (21, 0, ("nf4_datascales", "realign_a", 15)),
        (22, 0, ("nf4_datascales", "realign_a", 17)),
        # the weight dequantised; everything else: any size, alignment and plan
        (23, 0, ("nf4_datascales", 23)),
    ),
})
# NF4_MMA: launch, kernel, bm, bn
NF4_MMA = {
    "nf4_nt_rows_half_tc": (
        (0, "nf4_mma_nt_bf16_8x16x256_da69e6", 8, 16),
        (1, "nf4_mma_nt_bf16_16x16x256_ad3b9b", 16, 16),
    ),
    "nf4_nn_rows_half_tc": (
        (0, "nf4_mma_nn_bf16_8x32x256_c33bcd", 8, 32),
        (1, "nf4_mma_nn_bf16_16x32x256_5760d5", 16, 32),
    ),
}
# NF4_PAIRS: launch, kernel, archs, bm, bn, c0, bk
NF4_PAIRS = {
    "nf4_nt_rows_half_tc": (
        (2, "nf4_pairs_nt_bf16_8x32x256_4c7975", SOME_0, 8, 32, 128, 256),
        (3, "nf4_pairs_nt_bf16_8x64x256_90ede8", SOME_0, 8, 64, 128, 256),
        (4, "nf4_pairs_nt_bf16_8x112x256_9f6401", SOME_0, 8, 112, 128, 256),
        (5, "nf4_pairs_nt_bf16_16x32x256_fe7967", SOME_0, 16, 32, 128, 256),
        (6, "nf4_pairs_nt_bf16_16x64x256_a0b32b", SOME_0, 16, 64, 128, 256),
        (7, "nf4_pairs_nt_bf16_32x64x256_1b3cf0", SOME_0, 32, 64, 128, 256),
        (8, "nf4_pairs_nt_bf16_32x128x256_7f57a6", SOME_0, 32, 128, 128, 256),
    ),
    "nf4_nn_rows_half_tc": (
        (2, "nf4_mma_nn_bf16_32x32x256_8e7dd0", SOME_1, 32, 32, 64, 256),
        (3, "nf4_pairs_nn_bf16_8x64x256_496201", SOME_0, 8, 64, 128, 256),
        (4, "nf4_pairs_nn_bf16_8x128x128_75601a", SOME_0, 8, 128, 128, 128),
        (5, "nf4_pairs_nn_bf16_16x128x256_0693e9", SOME_0, 16, 128, 128, 256),
    ),
}
# NF4_WGMMA: launch, kernel, bm, bn, bk
NF4_WGMMA = {
    "nf4_nt_rows_half_tc": (
        (9, "nf4_wgmma_nt_bf16_64x32x128_0db1a4", 64, 32, 128),
        (10, "nf4_wgmma_nt_bf16_64x64x128_475987", 64, 64, 128),
        (11, "nf4_wgmma_nt_bf16_128x64x128_b197e8", 128, 64, 128),
        (12, "nf4_wgmma_nt_bf16_128x128x64_33f264", 128, 128, 64),
        (13, "nf4_wgmma_nt_bf16_256x128x64_5445ce", 256, 128, 64),
    ),
    "nf4_nn_rows_half_tc": (
        (6, "nf4_wgmma_nn_bf16_64x32x128_059fb2", 64, 32, 128),
        (7, "nf4_wgmma_nn_bf16_64x64x128_7b65e9", 64, 64, 128),
        (8, "nf4_wgmma_nn_bf16_128x64x128_d3865f", 128, 64, 128),
        (9, "nf4_wgmma_nn_bf16_128x128x64_40b3f8", 128, 128, 64),
        (10, "nf4_wgmma_nn_bf16_256x128x64_1a0d09", 256, 128, 64),
    ),
}
# WGMMA: launch, kernel, bn, c0, c1
WGMMA = {
    "nf4_nt_rows_half_tc": (
        (14, "wgmma_nt_bf16_128x256x64_b35b38", 256, 32768, 768),
        (16, "wgmma_nt_bf16_128x224x64_18067c", 224, 28672, 704),
    ),
    "nf4_nn_rows_half_tc": (
        (11, "wgmma_nn_bf16_128x256x64_86d2ac", 256, 32768, 768),
        (13, "wgmma_nn_bf16_128x224x64_21d9d3", 224, 28672, 704),
    ),
}
# WGMMA1: launch, kernel
WGMMA1 = {
    "nf4_nt_rows_half_tc": ((15, "wgmma_nt_bf16_128x256x64_362a60"),),
    "nf4_nn_rows_half_tc": ((12, "wgmma_nn_bf16_128x256x64_74d273"),),
}
# WGMMA2: launch, kernel, bn, c0, c1
WGMMA2 = {
    "nf4_nt_rows_half_tc": ((17, "wgmma_nt_bf16_128x160x64_732859", 160, 20480, 832),),
    "nf4_nn_rows_half_tc": (
        (14, "wgmma_nn_bf16_128x160x64_20a7b2", 160, 20480, 832),
        (16, "wgmma_nn_bf16_128x128x64_68c5f8", 128, 16384, 768),
    ),
}
# WGMMA3: launch, kernel, bm, c0, c1
WGMMA3 = {
    "nf4_nt_rows_half_tc": (
        (18, "wgmma_nt_bf16_128x128x64_96a12d", 128, 16384, 512),
        (19, "wgmma_nt_bf16_64x64x64_595f63", 64, 4096, 256),
    ),
    "nf4_nn_rows_half_tc": (
        (15, "wgmma_nn_bf16_128x128x64_f67370", 128, 16384, 512),
        (17, "wgmma_nn_bf16_64x64x64_2ff8a4", 64, 4096, 256),
    ),
}
# MMA: launch, kernel
MMA = {
    "nf4_nt_rows_half_tc": ((20, "mma_nt_bf16_64x64x64_93d7f2"),),
    "nf4_nn_rows_half_tc": ((18, "mma_nn_bf16_64x64x64_42490e"),),
}
# MMA1: launch, kernel
MMA1 = {
    "nf4_nt_rows_half_tc": ((21, "mma_nt_bf16_128x128x64_beb296"),),
    "nf4_nn_rows_half_tc": ((19, "mma_nn_bf16_128x128x64_cd5bbc"),),
}
# MMA2: launch, kernel
MMA2 = {
    "nf4_nt_rows_half_tc": ((22, "mma_nt_bf16_64x64x32_d497a1"),),
    "nf4_nn_rows_half_tc": ((23, "mma_nn_bf16_64x64x32_782949"),),
}


def candidates(
    table: str, arch: str, m: int, n: int, k: int, sms: int, align_a: int, time: Time,
) -> Iterator[Candidate]:
    """What can serve a problem, with predicted times."""
    u, v = {
        "nf4_nt_rows_half_tc": (n, k),
        "nf4_nn_rows_half_tc": (k, n),
    }[table]
    chunk_part_1 = -(-min(-(-k // 8), 2048) // 128) * 128
    chunk = max(1, min(k, chunk_part_1 if n <= 2048 and max(6 * n, 4096) <= k else k))
    chunks = -(-k // chunk)
    fitting = ROUTES.fitting(table, align_a)
    launches: Launches = {}
    operands = m * k * 2 + n * k * 9 // 16
    stores = m * n * 2
    for launch, kernel, bm, bn in fitting.rows(NF4_MMA):
        tiles = -(-m // bm) * -(-n // bn)
        if tiles <= 2147483647 and (chunk % 128 == 0 or chunks <= 1):
            us = time(
                kernel, "mma", 1, sms, tiles, -(-k // 256), k * (bm * bn),
                -(-n // bn) * (m * k * 2) + -(-m // bm) * (n * k * 9 // 16), operands, stores,
            )
            launches[launch] = us, kernel, tiles, {}
    for launch, kernel, archs, bm, bn, c0, bk in fitting.rows(NF4_PAIRS):
        tiles = -(-m // bm) * -(-n // bn)
        if arch in archs and tiles <= 2147483647 and (chunk % c0 == 0 or chunks <= 1):
            us = time(
                kernel, "mma", 1, sms, tiles, -(-k // bk), k * (bm * bn),
                -(-n // bn) * (m * k * 2) + -(-m // bm) * (n * k * 9 // 16), operands, stores,
            )
            launches[launch] = us, kernel, tiles, {}
    for launch, kernel, bm, bn, bk in fitting.rows(NF4_WGMMA) if arch in SOME_2 else ():
        tiles = -(-m // bm) * -(-n // bn)
        if (
            chunks <= 1 and m + bm <= 2147483647 and n + bn <= 2147483647 and k + bk <= 2147483647
            and tiles + sms <= 4294967295
        ):
            us = time(
                kernel, "wgmma", 1, sms, tiles, -(-k // bk), k * (bm * bn),
                -(-n // bn) * (m * k * 2) + -(-m // bm) * (n * k * 9 // 16), operands, stores,
            )
            launches[launch] = us, kernel, min(tiles, sms) * 1, {}
    operands1 = u * -(-v // 64) * 36
    stores1 = u * -(-v // 64) * 128
    pieces_u_v64 = u * -(-v // 64)
    ctas = -(-(pieces_u_v64 * 8) // 1024)
    if "nf4_datascales" in fitting and stores1 <= 1073741824:
        us = time("nf4_bf16_531262", "fma", 8, sms, ctas, 1, 0, operands1, operands1, stores1)
        launches["nf4_datascales"] = us, "nf4_bf16_531262", ctas, {"b_dequantised": stores1}
    operands2 = (m + n) * k * 2
    for launch, kernel, bn, c0, c1 in fitting.rows(WGMMA) if arch in SOME_2 else ():
        tiles = -(-m // 128) * -(-n // bn)
        if (
            chunks <= 1 and sms >= 1 and m + 128 <= 2147483647 and n + bn <= 2147483647
            and k + 64 <= 2147483647 and tiles + sms <= 4294967295
        ):
            us = time(
                kernel, "wgmma", 1, sms, tiles, -(-k // 64), k * c0,
                tiles * k * (c1 + (min(k % 16, 1) * 128 + min(v % 16, 1) * bn) * 6), operands2,
                stores,
            )
            launches[launch] = us, kernel, min(tiles, sms) * 1, {}
    tiles_256x256 = -(-m // 256) * -(-n // 256)
    for launch, kernel in fitting.rows(WGMMA1) if arch in SOME_2 else ():
        if (
            chunks <= 1 and sms >= 2 and m + 256 <= 2147483647 and n + 256 <= 2147483647
            and k + 64 <= 2147483647 and tiles_256x256 + sms // 2 <= 4294967295
        ):
            us = time(
                kernel, "wgmma", 1, sms, tiles_256x256 * 2, -(-k // 64), k * 32768,
                tiles_256x256 * k * (1024 + (min(k % 16, 1) * 256 + min(v % 16, 1) * 256) * 6),
                operands2, stores,
            )
            launches[launch] = us, kernel, min(tiles_256x256, sms // 2) * 2, {}
    for launch, kernel, bn, c0, c1 in fitting.rows(WGMMA2) if arch in SOME_2 else ():
        tiles = -(-m // 256) * -(-n // bn)
        if (
            (chunk % 64 == 0 or chunks <= 1) and sms >= 2 and m + 256 <= 2147483647
            and n + bn <= 2147483647 and k + 64 <= 2147483647 and tiles + sms // 2 <= 4294967295
        ):
            us = time(
                kernel, "wgmma", 1, sms, tiles * 2, -(-k // 64), k * c0,
                tiles * k * (c1 + (min(k % 16, 1) * 256 + min(v % 16, 1) * bn) * 6), operands2,
                stores,
            )
            launches[launch] = us, kernel, min(tiles, sms // 2) * 2, {}
    for launch, kernel, bm, c0, c1 in fitting.rows(WGMMA3) if arch in SOME_2 else ():
        tiles = -(-m // bm) * -(-n // bm)
        if (
            (chunk % 64 == 0 or chunks <= 1) and sms >= 1 and m + bm <= 2147483647
            and n + bm <= 2147483647 and k + 64 <= 2147483647 and tiles + sms <= 4294967295
        ):
            us = time(
                kernel, "wgmma", 1, sms, tiles, -(-k // 64), k * c0,
                tiles * k * (c1 + (min(k % 16, 1) * bm + min(v % 16, 1) * bm) * 6), operands2,
                stores,
            )
            launches[launch] = us, kernel, min(tiles, sms) * 1, {}
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    for launch, kernel in fitting.rows(MMA):
        if (chunk % 64 == 0 or chunks <= 1) and tiles_64x64 <= 2147483647:
            us = time(
                kernel, "mma", 3, sms, tiles_64x64, -(-k // 64), k * 4096,
                tiles_64x64 * k * (256 + (min(k % 16, 1) * 64 + min(v % 16, 1) * 64) * 6),
                operands2, stores,
            )
            launches[launch] = us, kernel, tiles_64x64, {}
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    for launch, kernel in fitting.rows(MMA1):
        if chunks <= 1 and tiles_128x128 <= 2147483647:
            us = time(
                kernel, "mma", 2, sms, tiles_128x128, -(-k // 64), k * 16384,
                tiles_128x128 * k * (512 + (min(k % 16, 1) * 128 + min(v % 16, 1) * 128) * 6),
                operands2, stores,
            )
            launches[launch] = us, kernel, tiles_128x128, {}
    for launch, kernel in fitting.rows(MMA2):
        if chunk % 32 == 0 or chunks <= 1:
            us = time(
                kernel, "mma", 3, sms, tiles_64x64, -(-k // 32), k * 4096,
                tiles_64x64 * k * (256 + (min(k % 16, 1) * 64 + min(v % 16, 1) * 64) * 6),
                operands2, stores,
            )
            launches[launch] = us, kernel, min(tiles_64x64, 2147483647), {}
    operands3 = 0 + m * -(-k // 8) * 16
    pieces_m_k8 = m * -(-k // 8)
    ctas = -(-pieces_m_k8 // 512)
    if table == "nf4_nn_rows_half_tc" and "realign_a" in fitting and pieces_m_k8 * 16 <= 1073741824:
        us = time(
            "realign_b16x1_7953b4", "fma", 8, sms, ctas, 1, 0, operands3, operands3, operands3,
        )
        launches["realign_a"] = us, "realign_b16x1_7953b4", ctas, {"a_realigned": pieces_m_k8 * 16}
    yield from fitting.combined(launches)
