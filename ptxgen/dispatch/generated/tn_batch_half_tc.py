"""Dispatch of TN batch half tc: products under the plan 'batch'.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Launches, Routes, Time

SOME_0 = frozenset(("sm_90",))
SOME_1 = frozenset(("sm_80", "sm_87", "sm_90", "sm_100", "sm_103", "sm_110"))
# ROUTES: route, least align_a, least align_b, launches
ROUTES = Routes({
    "tn_batch_half_tc": (
        # a long reduction: a CTA per tile and chunk
        (0, 16, 16, (0, "reduce")), (1, 16, 16, (1, "reduce")), (2, 16, 16, (2, "reduce")),
        (3, 16, 16, (3, "reduce")), (4, 16, 16, (4, "reduce")), (5, 4, 4, (5, "reduce")),
        (6, 0, 0, (6, "reduce")),
        # A off 16 bytes: copied first
        (7, 0, 16, ("realign_a", 0, "reduce")),
        # B off 16 bytes: copied first
        (8, 16, 0, ("realign_b", 0, "reduce")),
        # A and B off 16 bytes: copied first
        (9, 0, 0, ("realign_ab", 0, "reduce")),
        # A off 16 bytes: copied first
        (10, 0, 16, ("realign_a", 1, "reduce")),
        # B off 16 bytes: copied first
        (11, 16, 0, ("realign_b", 1, "reduce")),
        # A and B off 16 bytes: copied first
        (12, 0, 0, ("realign_ab", 1, "reduce")),
        # A off 16 bytes: copied first
        (13, 0, 16, ("realign_a", 2, "reduce")),
        # B off 16 bytes: copied first
        (14, 16, 0, ("realign_b", 2, "reduce")),
        # A and B off 16 bytes: copied first
        (15, 0, 0, ("realign_ab", 2, "reduce")),
        # few rows: the weight streams once
        (16, 16, 16, (16,)), (17, 16, 16, (17,)), (18, 16, 16, (18,)), (19, 16, 16, (19,)),
        (20, 16, 16, (20,)), (21, 16, 16, (21,)),
        # many rows, by wgmma
        (22, 16, 16, (22,)), (23, 16, 16, (23,)), (24, 16, 16, (24,)), (25, 16, 16, (25,)),
        (26, 16, 16, (26,)), (27, 16, 16, (27,)), (28, 16, 16, (28,)), (29, 16, 16, (29,)),
        (30, 16, 16, (30,)), (31, 16, 16, (31,)), (32, 16, 16, (32,)), (33, 16, 16, (33,)),
        (34, 16, 16, (34,)), (35, 16, 16, (35,)), (36, 16, 16, (36,)), (37, 16, 16, (37,)),
        (38, 16, 16, (38,)), (39, 16, 16, (39,)), (40, 16, 16, (40,)), (41, 16, 16, (41,)),
        (42, 16, 16, (42,)), (43, 16, 16, (43,)), (44, 16, 16, (44,)), (45, 16, 16, (45,)),
        # many rows, by mma
        (46, 16, 16, (46,)), (47, 16, 16, (47,)),
        # A off 16 bytes: copied first
        (48, 0, 16, ("realign_a", 22)),
        # B off 16 bytes: copied first
        (49, 16, 0, ("realign_b", 22)),
        # A and B off 16 bytes: copied first
        (50, 0, 0, ("realign_ab", 22)),
        # A off 16 bytes: copied first
        (51, 0, 16, ("realign_a", 23)),
        # B off 16 bytes: copied first
        (52, 16, 0, ("realign_b", 23)),
        # A and B off 16 bytes: copied first
        (53, 0, 0, ("realign_ab", 23)),
        # A off 16 bytes: copied first
        (54, 0, 16, ("realign_a", 36)),
        # B off 16 bytes: copied first
        (55, 16, 0, ("realign_b", 36)),
        # A and B off 16 bytes: copied first
        (56, 0, 0, ("realign_ab", 36)),
        # A off 16 bytes: copied first
        (57, 0, 16, ("realign_a", 43)),
        # B off 16 bytes: copied first
        (58, 16, 0, ("realign_b", 43)),
        # A and B off 16 bytes: copied first
        (59, 0, 0, ("realign_ab", 43)),
        # A off 16 bytes: copied first
        (60, 0, 16, ("realign_a", 45)),
        # B off 16 bytes: copied first
        (61, 16, 0, ("realign_b", 45)),
        # A and B off 16 bytes: copied first
        (62, 0, 0, ("realign_ab", 45)), (63, 0, 0, ("realign_ab", 47)),
        # operands off 16 bytes
        (64, 4, 16, (64,)), (65, 4, 4, (65,)), (66, 0, 0, (66,)),
        # everything else: any size, alignment and plan
        (67, 0, 0, (67,)),
    ),
})
# WGMMA: launch, kernel, bm
WGMMA = {
    "tn_batch_half_tc": (
        (0, "wgmma_tn_bf16_192x192x64_c93747", 192),
        (1, "wgmma_tn_bf16_128x128x64_6d9ab7", 128),
        (2, "wgmma_tn_bf16_64x64x64_151bd5", 64),
    ),
}
# MMA: launch, kernel, slots, bm, bn, bk
MMA = {
    "tn_batch_half_tc": (
        (3, "mma_tn_bf16_64x64x128_e2c752", 2, 64, 64, 128),
        (4, "mma_tn_bf16_128x128x64_f6b43c", 2, 128, 128, 64),
        (5, "mma_tn_bf16_64x32x64_35eed5", 4, 64, 32, 64),
        (6, "mma_tn_bf16_64x64x32_1dbb01", 4, 64, 64, 32),
    ),
}
# MMA1: launch, kernel, c0, bm, bn, bk
MMA1 = {
    "tn_batch_half_tc": (
        (16, "mma_tn_bf16_8x64x128_b577d1", 64, 8, 64, 128),
        (20, "mma_tn_bf16_32x64x128_272387", 128, 32, 64, 128),
        (21, "mma_tn_bf16_64x128x64_4765ee", 64, 64, 128, 64),
    ),
}
# MMA2: launch, kernel, slots, c0, bm, bn, bk
MMA2 = {
    "tn_batch_half_tc": (
        (17, "mma_tn_bf16_8x32x128_7c493a", 1, 128, 8, 32, 128),
        (18, "mma_tn_bf16_16x32x128_967392", 1, 128, 16, 32, 128),
        (19, "mma_tn_bf16_32x32x128_e84b71", 1, 128, 32, 32, 128),
        (46, "mma_tn_bf16_64x64x64_f7c4fc", 3, 64, 64, 64, 64),
        (64, "mma_tn_bf16_8x32x256_9756ff", 1, 128, 8, 32, 256),
        (65, "mma_tn_bf16_16x32x128_c2d4c1", 1, 128, 16, 32, 128),
        (66, "mma_tn_bf16_16x32x128_2dc9f7", 1, 128, 16, 32, 128),
    ),
}
# WGMMA1: launch, kernel, bm, bn
WGMMA1 = {
    "tn_batch_half_tc": (
        (22, "wgmma_tn_bf16_128x256x64_db9343", 128, 256),
        (27, "wgmma_tn_bf16_192x192x64_747206", 192, 192),
        (30, "wgmma_tn_bf16_192x128x64_7cc8a1", 192, 128),
        (33, "wgmma_tn_bf16_128x224x64_d31d43", 128, 224),
        (38, "wgmma_tn_bf16_64x256x64_91a39b", 64, 256),
    ),
}
# WGMMA2: launch, kernel, bk, bm, bn
WGMMA2 = {
    "tn_batch_half_tc": (
        (23, "wgmma_tn_bf16_128x256x64_6884e0", 64, 128, 256),
        (28, "wgmma_tn_bf16_192x192x64_7ddbb0", 64, 192, 192),
        (34, "wgmma_tn_bf16_128x224x64_a75d05", 64, 128, 224),
        (35, "wgmma_tn_bf16_128x176x64_7a44c4", 64, 128, 176),
        (36, "wgmma_tn_bf16_128x128x64_64c3c2", 64, 128, 128),
        (37, "wgmma_tn_bf16_128x112x64_bcc2a2", 64, 128, 112),
        (39, "wgmma_tn_bf16_64x256x64_79ee06", 64, 64, 256),
        (40, "wgmma_tn_bf16_128x64x64_0c609c", 64, 128, 64),
        (41, "wgmma_tn_bf16_64x128x64_cc0e14", 64, 64, 128),
        (43, "wgmma_tn_bf16_64x64x64_c86b5d", 64, 64, 64),
        (44, "wgmma_tn_bf16_64x32x128_01ed5d", 128, 64, 32),
        (45, "wgmma_tn_bf16_64x16x128_551c14", 128, 64, 16),
    ),
}
# WGMMA3: launch, kernel, bm, bn, c0
WGMMA3 = {
    "tn_batch_half_tc": (
        (24, "wgmma_tn_bf16_128x256x64_d699cb", 256, 256, 32768),
        (26, "wgmma_tn_bf16_128x192x64_23ffeb", 256, 192, 24576),
        (31, "wgmma_tn_bf16_192x128x64_534c0d", 192, 256, 24576),
    ),
}
# WGMMA4: launch, kernel, bm, bn, c0
WGMMA4 = {
    "tn_batch_half_tc": (
        (25, "wgmma_tn_bf16_128x256x64_61a00f", 256, 256, 32768),
        (29, "wgmma_tn_bf16_128x192x64_5b5c7f", 256, 192, 24576),
        (32, "wgmma_tn_bf16_192x128x64_0d6f38", 192, 256, 24576),
        (42, "wgmma_tn_bf16_64x128x64_bf5324", 128, 128, 8192),
    ),
}


def candidates(
    table: str, arch: str, m: int, n: int, k: int, sms: int, align_a: int, align_b: int, time: Time,
) -> Iterator[Candidate]:
    """What can serve a problem, with predicted times."""
    chunk_part_1 = -(-k // min(max(4718592 // (m * n), 1), 16))
    chunk = max(1, min(k, -(-max(chunk_part_1, min(max(m * n // 32, 512), 4096)) // 64) * 64))
    chunks = -(-k // chunk)
    fitting = ROUTES.fitting(table, align_a, align_b)
    launches: Launches = {}
    operands = (m + n) * k * 2
    stores = chunks * m * n * 4
    for launch, kernel, bm in fitting.rows(WGMMA) if arch in SOME_0 else ():
        tiles = -(-m // bm) * -(-n // bm)
        if (
            (chunk % 64 == 0 or chunks <= 1) and stores <= 268435456 and sms >= 1
            and m + bm <= 2147483647 and n + bm <= 2147483647 and k + 64 <= 2147483647
            and tiles * chunks + sms <= 4294967295
        ):
            us = time(
                kernel, "wgmma", 1, sms, tiles * chunks, -(-chunk // 64), chunk * (bm * bm),
                tiles * k * ((bm + bm) * 2 + (min(m % 16, 1) * bm + min(n % 16, 1) * bm) * 6),
                operands, stores,
            )
            launches[launch] = us, kernel, min(tiles * chunks, sms) * 1, {"workspace": stores}
    stores1 = m * n * 2
    ctas = -(-(m * n) // 512)
    if "reduce" in fitting and stores <= 268435456 and ctas <= 2147483647:
        us = time(
            "reduce_bf16_128x4_9cc9ba", "fma", 8, sms, ctas, -(-chunks // 8), 0, stores, stores,
            stores1,
        )
        launches["reduce"] = us, "reduce_bf16_128x4_9cc9ba", ctas, {"workspace": stores}
    for launch, kernel, slots, bm, bn, bk in fitting.rows(MMA):
        tiles = -(-m // bm) * -(-n // bn)
        ctas = tiles * chunks
        if stores <= 268435456 and ctas <= 2147483647:
            us = time(
                kernel, "mma", slots, sms, ctas, -(-chunk // bk), chunk * (bm * bn),
                tiles * k * ((bm + bn) * 2 + (min(m % 16, 1) * bm + min(n % 16, 1) * bn) * 6),
                operands, stores,
            )
            launches[launch] = us, kernel, ctas, {"workspace": stores}
    operands1 = 0 + k * -(-m // 8) * 16
    pieces_k_m8 = k * -(-m // 8)
    ctas = -(-pieces_k_m8 // 512)
    if "realign_a" in fitting and pieces_k_m8 * 16 <= 1073741824:
        us = time(
            "realign_b16x1_7953b4", "fma", 8, sms, ctas, 1, 0, operands1, operands1, operands1,
        )
        launches["realign_a"] = us, "realign_b16x1_7953b4", ctas, {"a_realigned": pieces_k_m8 * 16}
    operands2 = 0 + k * -(-n // 8) * 16
    pieces_k_n8 = k * -(-n // 8)
    ctas = -(-pieces_k_n8 // 512)
    if "realign_b" in fitting and pieces_k_n8 * 16 <= 1073741824:
        us = time(
            "realign_b16x1_7953b4", "fma", 8, sms, ctas, 1, 0, operands2, operands2, operands2,
        )
        launches["realign_b"] = us, "realign_b16x1_7953b4", ctas, {"b_realigned": pieces_k_n8 * 16}
    operands3 = 0 + k * -(-m // 8) * 16 + k * -(-n // 8) * 16
    ctas = -(-pieces_k_m8 // 512) + -(-pieces_k_n8 // 512)
    if (
        "realign_ab" in fitting and pieces_k_m8 * 16 <= 1073741824
        and pieces_k_n8 * 16 <= 1073741824
    ):
        us = time(
            "realign_b16x2_d789c8", "fma", 8, sms, ctas, 1, 0, operands3, operands3, operands3,
        )
        launches["realign_ab"] = (
            us, "realign_b16x2_d789c8", ctas,
            {"a_realigned": pieces_k_m8 * 16, "b_realigned": pieces_k_n8 * 16},
        )
    for launch, kernel, c0, bm, bn, bk in fitting.rows(MMA1) if arch in SOME_1 else ():
        tiles = -(-m // bm) * -(-n // bn)
        if (chunk % c0 == 0 or chunks <= 1) and tiles <= 2147483647:
            us = time(
                kernel, "mma", 1, sms, tiles, -(-k // bk), k * (bm * bn),
                tiles * k * ((bm + bn) * 2 + (min(m % 16, 1) * bm + min(n % 16, 1) * bn) * 6),
                operands, stores1,
            )
            launches[launch] = us, kernel, tiles, {}
    for launch, kernel, slots, c0, bm, bn, bk in fitting.rows(MMA2):
        tiles = -(-m // bm) * -(-n // bn)
        if (chunk % c0 == 0 or chunks <= 1) and tiles <= 2147483647:
            us = time(
                kernel, "mma", slots, sms, tiles, -(-k // bk), k * (bm * bn),
                tiles * k * ((bm + bn) * 2 + (min(m % 16, 1) * bm + min(n % 16, 1) * bn) * 6),
                operands, stores1,
            )
            launches[launch] = us, kernel, tiles, {}
    for launch, kernel, bm, bn in fitting.rows(WGMMA1) if arch in SOME_0 else ():
        tiles = -(-m // bm) * -(-n // bn)
        if (
            chunks <= 1 and sms >= 1 and m + bm <= 2147483647 and n + bn <= 2147483647
            and k + 64 <= 2147483647 and tiles + sms <= 4294967295
        ):
            us = time(
                kernel, "wgmma", 1, sms, tiles, -(-k // 64), k * (bm * bn),
                tiles * k * ((bm + bn) * 2 + (min(m % 16, 1) * bm + min(n % 16, 1) * bn) * 6),
                operands, stores1,
            )
            launches[launch] = us, kernel, min(tiles, sms) * 1, {}
    for launch, kernel, bk, bm, bn in fitting.rows(WGMMA2) if arch in SOME_0 else ():
        tiles = -(-m // bm) * -(-n // bn)
        if (
            (chunk % bk == 0 or chunks <= 1) and sms >= 1 and m + bm <= 2147483647
            and n + bn <= 2147483647 and k + bk <= 2147483647 and tiles + sms <= 4294967295
        ):
            us = time(
                kernel, "wgmma", 1, sms, tiles, -(-k // bk), k * (bm * bn),
                tiles * k * ((bm + bn) * 2 + (min(m % 16, 1) * bm + min(n % 16, 1) * bn) * 6),
                operands, stores1,
            )
            launches[launch] = us, kernel, min(tiles, sms) * 1, {}
    for launch, kernel, bm, bn, c0 in fitting.rows(WGMMA3) if arch in SOME_0 else ():
        tiles = -(-m // bm) * -(-n // bn)
        if (
            chunks <= 1 and sms >= 2 and m + bm <= 2147483647 and n + bn <= 2147483647
            and k + 64 <= 2147483647 and tiles + sms // 2 <= 4294967295
        ):
            us = time(
                kernel, "wgmma", 1, sms, tiles * 2, -(-k // 64), k * c0,
                tiles * k * ((bm + bn) * 2 + (min(m % 16, 1) * bm + min(n % 16, 1) * bn) * 6),
                operands, stores1,
            )
            launches[launch] = us, kernel, min(tiles, sms // 2) * 2, {}
    for launch, kernel, bm, bn, c0 in fitting.rows(WGMMA4) if arch in SOME_0 else ():
        tiles = -(-m // bm) * -(-n // bn)
        if (
            (chunk % 64 == 0 or chunks <= 1) and sms >= 2 and m + bm <= 2147483647
            and n + bn <= 2147483647 and k + 64 <= 2147483647 and tiles + sms // 2 <= 4294967295
        ):
            us = time(
                kernel, "wgmma", 1, sms, tiles * 2, -(-k // 64), k * c0,
                tiles * k * ((bm + bn) * 2 + (min(m % 16, 1) * bm + min(n % 16, 1) * bn) * 6),
                operands, stores1,
            )
            launches[launch] = us, kernel, min(tiles, sms // 2) * 2, {}
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    if 47 in fitting and chunks <= 1 and tiles_128x128 <= 2147483647:
        us = time(
            "mma_tn_bf16_128x128x64_0ec456", "mma", 2, sms, tiles_128x128, -(-k // 64), k * 16384,
            tiles_128x128 * k * (512 + (min(m % 16, 1) * 128 + min(n % 16, 1) * 128) * 6), operands,
            stores1,
        )
        launches[47] = us, "mma_tn_bf16_128x128x64_0ec456", tiles_128x128, {}
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    if 67 in fitting and (chunk % 32 == 0 or chunks <= 1):
        us = time(
            "mma_tn_bf16_64x64x32_0acf03", "mma", 3, sms, tiles_64x64, -(-k // 32), k * 4096,
            tiles_64x64 * k * (256 + (min(m % 16, 1) * 64 + min(n % 16, 1) * 64) * 6), operands,
            stores1,
        )
        launches[67] = us, "mma_tn_bf16_64x64x32_0acf03", min(tiles_64x64, 2147483647), {}
    yield from fitting.combined(launches)
