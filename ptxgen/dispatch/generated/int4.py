"""Dispatch of int4 rcr s4, int4 rcr u4, int4 rrr s4, int4 rrr u4: products of s4, products of u4.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Launches, Routes, Time

SOME_0 = frozenset(("sm_90", "sm_100", "sm_103", "sm_110", "sm_120", "sm_121"))
SOME_1 = frozenset(("sm_90",))
# ROUTES: route, least align_a, least align_b, launches
ROUTES = Routes({
    "int4_rcr_s4": (
        # few rows or few outputs
        (0, 16, 16, (0,)),
        # few rows or few outputs; 2 CTAs share a tile's k's
        (1, 16, 16, (1,)),
        # few rows
        (2, 16, 16, (2,)),
        # a medium number of rows
        (3, 16, 16, (3,)),
        # a medium number of rows; 2 CTAs share a tile's k's
        (4, 16, 16, (4,)),
        # many outputs
        (5, 16, 16, (5,)),
        # few rows or few outputs; copied by words
        (6, 4, 4, (6,)),
        # few rows or few outputs; copied by words; 4 CTAs share a tile's k's
        (7, 4, 4, (7,)),
        # few rows or few outputs; copied by words; 8 CTAs share a tile's k's
        (8, 4, 4, (8,)),
        # short reductions; copied by words
        (9, 4, 4, (9,)),
        # a medium number of rows; copied by words
        (10, 4, 4, (10,)),
        # tiles of 128 rows, by wgmma: A is unpacked to bytes first
        (11, 0, 16, ("int4_unpack_a", 11)),
        # B not aligned to 16 bytes: copied first, then by wgmma
        (12, 0, 0, ("realign_b", "int4_unpack_a", 11)),
        # tiles of 96 rows, by wgmma: A is unpacked to bytes first
        (13, 0, 16, ("int4_unpack_a", 13)),
        # tiles of 64 rows, by wgmma: A is unpacked to bytes first
        (14, 0, 16, ("int4_unpack_a", 14)),
        # A and B not aligned to 16 bytes: copied first
        (15, 0, 0, ("realign_ab", 0)), (16, 0, 0, ("realign_ab", 5)),
        # everything else: any alignment, the longest reductions
        (17, 0, 0, (17,)),
    ),
    "int4_rrr_s4": (
        # few rows or few outputs
        (0, 16, 16, (0,)),
        # few rows or few outputs; 4 CTAs share a tile's k's
        (1, 16, 16, (1,)),
        # few rows
        (2, 16, 16, (2,)),
        # a medium number of rows
        (3, 16, 16, (3,)),
        # a medium number of rows; 2 CTAs share a tile's k's
        (4, 16, 16, (4,)),
        # many outputs
        (5, 16, 16, (5,)),
        # few rows, many columns
        (6, 16, 16, (6,)),
        # few rows or few outputs; copied by words
        (7, 4, 4, (7,)),
        # few rows or few outputs; copied by words; 4 CTAs share a tile's k's
        (8, 4, 4, (8,)),
        # few rows or few outputs; copied by words; 8 CTAs share a tile's k's
        (9, 4, 4, (9,)),
        # short reductions; copied by words
        (10, 4, 4, (10,)),
        # a medium number of rows; copied by words
        (11, 4, 4, (11,)),
        # tiles of 128 rows, by wgmma: A is unpacked to bytes first
        (12, 0, 16, ("int4_unpack_a", 12)),
        # B not aligned to 16 bytes: copied first, then by wgmma
        (13, 0, 0, ("realign_b", "int4_unpack_a", 12)),
        # tiles of 96 rows, by wgmma: A is unpacked to bytes first
        (14, 0, 16, ("int4_unpack_a", 14)),
        # tiles of 64 rows, by wgmma: A is unpacked to bytes first
        (15, 0, 16, ("int4_unpack_a", 15)),
        # A and B not aligned to 16 bytes: copied first
        (16, 0, 0, ("realign_ab", 0)), (17, 0, 0, ("realign_ab", 5)),
        # everything else: any alignment, the longest reductions
        (18, 0, 0, (18,)),
    ),
})
ROUTES["int4_rcr_u4"] = ROUTES["int4_rcr_s4"]
ROUTES["int4_rrr_u4"] = ROUTES["int4_rrr_s4"]
# INT4: launch, kernel, most_k, bm, bn, bk, c0
INT4 = {
    "int4_rcr_s4": (
        (0, "int4_rcr_s4_32x32x512_20dde4", 1048064, 32, 32, 512, 524288),
        (2, "int4_rcr_s4_32x64x512_8767ac", 1048064, 32, 64, 512, 1048576),
        (3, "int4_rcr_s4_64x64x256_0eed41", 131071, 64, 64, 256, 1048576),
        (5, "int4_rcr_s4_128x128x256_b1386e", 131071, 128, 128, 256, 4194304),
        (6, "int4_rcr_s4_32x32x512_348860", 1048064, 32, 32, 512, 524288),
        (9, "int4_rcr_s4_64x64x128_c79602", 131071, 64, 64, 128, 524288),
        (10, "int4_rcr_s4_64x64x256_be68c7", 131071, 64, 64, 256, 1048576),
    ),
    "int4_rrr_s4": (
        (0, "int4_rrr_s4_32x32x512_e1b910", 1048064, 32, 32, 512, 524288),
        (2, "int4_rrr_s4_32x64x512_410dd0", 1048064, 32, 64, 512, 1048576),
        (3, "int4_rrr_s4_64x64x256_d461e3", 131071, 64, 64, 256, 1048576),
        (5, "int4_rrr_s4_128x128x256_381490", 131071, 128, 128, 256, 4194304),
        (6, "int4_rrr_s4_32x128x256_af2d87", 524032, 32, 128, 256, 1048576),
        (7, "int4_rrr_s4_32x32x512_fc6b83", 1048064, 32, 32, 512, 524288),
        (10, "int4_rrr_s4_64x64x128_9df9fe", 131071, 64, 64, 128, 524288),
        (11, "int4_rrr_s4_64x64x256_7d6d48", 131071, 64, 64, 256, 1048576),
    ),
}
# INT41: launch, kernel, most_k, bm, bn, c0, bk, c1
INT41 = {
    "int4_rcr_s4": (
        (1, "int4_rcr_s4_32x32x512_a7d64b", 2096128, 32, 32, 2, 1024, 1073741823),
        (4, "int4_rcr_s4_64x64x256_2ee41b", 261632, 64, 64, 2, 512, 1073741823),
        (7, "int4_rcr_s4_32x32x512_b865d9", 4192256, 32, 32, 4, 2048, 536870911),
        (8, "int4_rcr_s4_32x32x512_664899", 8384512, 32, 32, 8, 4096, 268435455),
    ),
    "int4_rrr_s4": (
        (1, "int4_rrr_s4_32x64x256_18d129", 2096128, 32, 64, 4, 1024, 536870911),
        (4, "int4_rrr_s4_64x64x256_69a1ab", 261632, 64, 64, 2, 512, 1073741823),
        (8, "int4_rrr_s4_32x32x512_234c3b", 4192256, 32, 32, 4, 2048, 536870911),
        (9, "int4_rrr_s4_32x32x512_9b8f2d", 8384512, 32, 32, 8, 4096, 268435455),
    ),
}
# INT4_UNPACK: kernel, bk, c0
INT4_UNPACK = {
    "int4_rcr_s4": (("int4_unpack_s4_f104e2", 32, 2),),
    "int4_rcr_u4": (("int4_unpack_u4_1a33b0", 32, 2),),
    "int4_rrr_s4": (("int4_unpack_s4_b91608", 16, 1),),
    "int4_rrr_u4": (("int4_unpack_u4_3b1dae", 16, 1),),
}
# INT4_PACKED: launch, kernel, most_k, bm, c0
INT4_PACKED = {
    "int4_rcr_s4": (
        (11, "int4_packed_rcr_s4_128x128x128_ed7b6c", 2097151, 128, 192),
        (13, "int4_packed_rcr_s4_96x128x128_5bcc6a", 2097151, 96, 160),
        (14, "int4_packed_rcr_s4_64x128x128_c93bdc", 2097151, 64, 128),
    ),
    "int4_rcr_u4": (
        (11, "int4_packed_rcr_u4_128x128x128_c70611", 9544371, 128, 192),
        (13, "int4_packed_rcr_u4_96x128x128_828284", 9544371, 96, 160),
        (14, "int4_packed_rcr_u4_64x128x128_cec1df", 9544371, 64, 128),
    ),
    "int4_rrr_s4": (
        (12, "int4_packed_rrr_s4_128x128x128_f3f084", 2097151, 128, 192),
        (14, "int4_packed_rrr_s4_96x128x128_ef02f0", 2097151, 96, 160),
        (15, "int4_packed_rrr_s4_64x128x128_b512d3", 2097151, 64, 128),
    ),
    "int4_rrr_u4": (
        (12, "int4_packed_rrr_u4_128x128x128_4265ce", 9544371, 128, 192),
        (14, "int4_packed_rrr_u4_96x128x128_fc3ca1", 9544371, 96, 160),
        (15, "int4_packed_rrr_u4_64x128x128_a34466", 9544371, 64, 128),
    ),
}
# INT42: launch, kernel, slots, bm, bn, bk, c0
INT42 = {
    "int4_rcr_s4": ((17, "int4_rcr_s4_64x64x128_becef3", 1, 64, 64, 128, 524288),),
    "int4_rcr_u4": (
        (0, "int4_rcr_u4_32x32x512_57cc63", 2, 32, 32, 512, 524288),
        (2, "int4_rcr_u4_32x64x512_a63732", 2, 32, 64, 512, 1048576),
        (3, "int4_rcr_u4_64x64x256_7a2e48", 2, 64, 64, 256, 1048576),
        (5, "int4_rcr_u4_128x128x256_abf3af", 2, 128, 128, 256, 4194304),
        (6, "int4_rcr_u4_32x32x512_0fa4b4", 2, 32, 32, 512, 524288),
        (9, "int4_rcr_u4_64x64x128_f527d2", 2, 64, 64, 128, 524288),
        (10, "int4_rcr_u4_64x64x256_d134d0", 2, 64, 64, 256, 1048576),
        (17, "int4_rcr_u4_64x64x128_7eeb8d", 1, 64, 64, 128, 524288),
    ),
    "int4_rrr_s4": ((18, "int4_rrr_s4_64x64x128_99623d", 1, 64, 64, 128, 524288),),
    "int4_rrr_u4": (
        (0, "int4_rrr_u4_32x32x512_ae27a7", 2, 32, 32, 512, 524288),
        (2, "int4_rrr_u4_32x64x512_fc8bdb", 2, 32, 64, 512, 1048576),
        (3, "int4_rrr_u4_64x64x256_1d64e5", 2, 64, 64, 256, 1048576),
        (5, "int4_rrr_u4_128x128x256_e1120e", 2, 128, 128, 256, 4194304),
        (6, "int4_rrr_u4_32x128x256_fa8ce5", 2, 32, 128, 256, 1048576),
        (7, "int4_rrr_u4_32x32x512_7bd54a", 2, 32, 32, 512, 524288),
        (10, "int4_rrr_u4_64x64x128_84d49b", 2, 64, 64, 128, 524288),
        (11, "int4_rrr_u4_64x64x256_e84153", 2, 64, 64, 256, 1048576),
        (18, "int4_rrr_u4_64x64x128_0635f6", 1, 64, 64, 128, 524288),
    ),
}
# INT43: launch, kernel, bm, bn, c0, bk, c1
INT43 = {
    "int4_rcr_u4": (
        (1, "int4_rcr_u4_32x32x512_975707", 32, 32, 2, 1024, 1073741823),
        (4, "int4_rcr_u4_64x64x256_c950b7", 64, 64, 2, 512, 1073741823),
        (7, "int4_rcr_u4_32x32x512_0f5813", 32, 32, 4, 2048, 536870911),
        (8, "int4_rcr_u4_32x32x512_b342a8", 32, 32, 8, 4096, 268435455),
    ),
    "int4_rrr_u4": (
        (1, "int4_rrr_u4_32x64x256_ce1c44", 32, 64, 4, 1024, 536870911),
        (4, "int4_rrr_u4_64x64x256_c80186", 64, 64, 2, 512, 1073741823),
        (8, "int4_rrr_u4_32x32x512_094090", 32, 32, 4, 2048, 536870911),
        (9, "int4_rrr_u4_32x32x512_bff89b", 32, 32, 8, 4096, 268435455),
    ),
}


def candidates(
    table: str, arch: str, m: int, n: int, k: int, sms: int, align_a: int, align_b: int, time: Time,
) -> Iterator[Candidate]:
    """Yields the routes that serve a problem, with predicted times."""
    u, v = {
        "int4_rcr_s4": (n, k),
        "int4_rcr_u4": (n, k),
        "int4_rrr_s4": (k, n),
        "int4_rrr_u4": (k, n),
    }[table]
    fitting = ROUTES.fitting(table, align_a, align_b)
    launches: Launches = {}
    operands = -(-((m + n) * k) // 2)
    stores = -(-(m * n) // 2)
    for launch, kernel, most_k, bm, bn, bk, c0 in fitting.rows(INT4):
        tiles = -(-m // bm) * -(-n // bn)
        if k <= most_k:
            us = time(
                kernel, "mma8", 2, sms, tiles, -(-k // bk), -(-k // bk) * c0,
                -(-(tiles * (min(m, bm) + min(n, bn)) * k) // 2), operands, stores,
            )
            launches[launch] = us, kernel, min(tiles, 2147483647), {}
    for launch, kernel, most_k, bm, bn, c0, bk, c1 in fitting.rows(INT41) if arch in SOME_0 else ():
        tiles = -(-m // bm) * -(-n // bn)
        if k <= most_k:
            us = time(
                kernel, "mma8", 2, sms, tiles * c0, -(-k // bk), -(-k // bk) * (bm * 16384),
                -(-(tiles * (min(m, bm) + min(n, bn)) * k) // 2), operands, stores,
            )
            launches[launch] = us, kernel, min(tiles, c1) * c0, {}
    operands1 = m * -(-k // 2)
    stores1 = 2 * (m * -(-k // 2))
    for kernel, bk, c0 in INT4_UNPACK[table]:
        pieces = m * -(-k // bk)
        ctas = -(-(pieces * c0) // 1024)
        if (
            arch in SOME_0 and "int4_unpack_a" in fitting
            and m * (max(-(-k // 128), 1) * 128) <= 1073741824
        ):
            us = time(kernel, "fma", 8, sms, ctas, 1, 0, operands1, operands1, stores1)
            launches["int4_unpack_a"] = (
                us, kernel, ctas, {"a_bytes": m * (max(-(-k // 128), 1) * 128)},
            )
    operands2 = m * k + -(-(n * k) // 2)
    for launch, kernel, most_k, bm, c0 in fitting.rows(INT4_PACKED) if arch in SOME_1 else ():
        tiles = -(-m // bm) * -(-n // 128)
        if (
            k <= most_k and m + bm <= 2147483647 and n + 128 <= 2147483647
            and tiles + sms * 2 <= 4294967295
        ):
            us = time(
                kernel, "wgmma8", 2, sms, tiles, -(-k // 128), k * ((bm + bm) * 64), tiles * k * c0,
                operands2, stores,
            )
            launches[launch] = us, kernel, min(tiles, sms * 2), {}
    operands3 = 0 + u * -(-v // 32) * 16
    pieces_u_v32 = u * -(-v // 32)
    ctas = -(-pieces_u_v32 // 512)
    if "realign_b" in fitting and pieces_u_v32 * 16 <= 1073741824:
        us = time("realign_b8x1_d46aa1", "fma", 8, sms, ctas, 1, 0, operands3, operands3, operands3)
        launches["realign_b"] = us, "realign_b8x1_d46aa1", ctas, {"b_realigned": pieces_u_v32 * 16}
    operands4 = 0 + m * -(-k // 32) * 16 + u * -(-v // 32) * 16
    pieces_m_k32 = m * -(-k // 32)
    ctas = -(-pieces_m_k32 // 512) + -(-pieces_u_v32 // 512)
    if (
        "realign_ab" in fitting and pieces_m_k32 * 16 <= 1073741824
        and pieces_u_v32 * 16 <= 1073741824
    ):
        us = time("realign_b8x2_e429e8", "fma", 8, sms, ctas, 1, 0, operands4, operands4, operands4)
        launches["realign_ab"] = (
            us, "realign_b8x2_e429e8", ctas,
            {"a_realigned": pieces_m_k32 * 16, "b_realigned": pieces_u_v32 * 16},
        )
    for launch, kernel, slots, bm, bn, bk, c0 in fitting.rows(INT42):
        tiles = -(-m // bm) * -(-n // bn)
        us = time(
            kernel, "mma8", slots, sms, tiles, -(-k // bk), -(-k // bk) * c0,
            -(-(tiles * (min(m, bm) + min(n, bn)) * k) // 2), operands, stores,
        )
        launches[launch] = us, kernel, min(tiles, 2147483647), {}
    for launch, kernel, bm, bn, c0, bk, c1 in fitting.rows(INT43) if arch in SOME_0 else ():
        tiles = -(-m // bm) * -(-n // bn)
        us = time(
            kernel, "mma8", 2, sms, tiles * c0, -(-k // bk), -(-k // bk) * (bm * 16384),
            -(-(tiles * (min(m, bm) + min(n, bn)) * k) // 2), operands, stores,
        )
        launches[launch] = us, kernel, min(tiles, c1) * c0, {}
    yield from fitting.combined(launches)
