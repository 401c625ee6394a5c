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
        # some rows
        (3, 16, 16, (3,)),
        # some rows; 2 CTAs share a tile's k's
        (4, 16, 16, (4,)),
        # many outputs
        (5, 16, 16, (5,)),
        # many outputs; 2 CTAs share a tile's k's
        (6, 16, 16, (6,)),
        # tiles of 128 rows, by wgmma
        (7, 0, 16, ("unpack_a", 7)),
        # B off 16 bytes: copied first, then by wgmma
        (8, 0, 0, ("realign_b", "unpack_a", 7)),
        # tiles of 96 rows, by wgmma
        (9, 0, 16, ("unpack_a", 9)),
        # tiles of 64 rows, by wgmma
        (10, 0, 16, ("unpack_a", 10)), (11, 0, 16, ("unpack_a", 11)),
        # A and B off 16 bytes: copied first
        (12, 0, 0, ("realign_ab", 0)), (13, 0, 0, ("realign_ab", 5)),
        # everything else: any alignment, the longest reductions
        (14, 0, 0, (14,)),
    ),
    "int4_rrr_s4": (
        # few rows or few outputs
        (0, 16, 16, (0,)),
        # few rows or few outputs; 2 CTAs share a tile's k's
        (1, 16, 16, (1,)),
        # few rows
        (2, 16, 16, (2,)),
        # some rows
        (3, 16, 16, (3,)),
        # some rows; 2 CTAs share a tile's k's
        (4, 16, 16, (4,)),
        # many outputs
        (5, 16, 16, (5,)),
        # many outputs; 2 CTAs share a tile's k's
        (6, 16, 16, (6,)),
        # few rows, many columns
        (7, 16, 16, (7,)),
        # few rows, many columns; 2 CTAs share a tile's k's
        (8, 16, 16, (8,)),
        # tiles of 128 rows, by wgmma
        (9, 0, 16, ("unpack_a", 9)),
        # B off 16 bytes: copied first, then by wgmma
        (10, 0, 0, ("realign_b", "unpack_a", 9)),
        # tiles of 96 rows, by wgmma
        (11, 0, 16, ("unpack_a", 11)),
        # tiles of 64 rows, by wgmma
        (12, 0, 16, ("unpack_a", 12)), (13, 0, 16, ("unpack_a", 13)),
        # A off 16 bytes: copied first
        (14, 0, 16, ("realign_a", 0)),
        # A and B off 16 bytes: copied first
        (15, 0, 0, ("realign_ab", 0)),
        # A off 16 bytes: copied first
        (16, 0, 16, ("realign_a", 5)),
        # A and B off 16 bytes: copied first
        (17, 0, 0, ("realign_ab", 5)),
        # everything else: any alignment, the longest reductions
        (18, 0, 0, (18,)),
    ),
})
ROUTES["int4_rcr_u4"] = ROUTES["int4_rcr_s4"]
ROUTES["int4_rrr_u4"] = ROUTES["int4_rrr_s4"]
# INT4: launch, kernel, most_k1, bm, bn, bk, c0
INT4 = {
    "int4_rcr_s4": (
        (0, "int4_rcr_s4_32x32x512_9c9d18", 1048064, 32, 32, 512, 524288),
        (2, "int4_rcr_s4_32x64x512_fcc464", 1048064, 32, 64, 512, 1048576),
        (3, "int4_rcr_s4_64x64x256_bc0ec0", 131071, 64, 64, 256, 1048576),
        (5, "int4_rcr_s4_128x128x256_2fc5d3", 131071, 128, 128, 256, 4194304),
    ),
    "int4_rrr_s4": (
        (0, "int4_rrr_s4_32x32x512_5abe3a", 1048064, 32, 32, 512, 524288),
        (2, "int4_rrr_s4_32x64x512_0d89a2", 1048064, 32, 64, 512, 1048576),
        (3, "int4_rrr_s4_64x64x256_35dece", 131071, 64, 64, 256, 1048576),
        (5, "int4_rrr_s4_128x128x256_95cd7e", 131071, 128, 128, 256, 4194304),
        (7, "int4_rrr_s4_32x128x256_a7f786", 524032, 32, 128, 256, 1048576),
    ),
}
# INT41: launch, kernel, most_k1, bm, bn, bk, c0
INT41 = {
    "int4_rcr_s4": (
        (1, "int4_rcr_s4_32x32x512_c088fd", 2096128, 32, 32, 1024, 524288),
        (4, "int4_rcr_s4_64x64x256_89f06d", 261632, 64, 64, 512, 1048576),
        (6, "int4_rcr_s4_128x128x256_27f03f", 261632, 128, 128, 512, 4194304),
    ),
    "int4_rrr_s4": (
        (1, "int4_rrr_s4_32x64x256_54c556", 1048064, 32, 64, 512, 524288),
        (4, "int4_rrr_s4_64x64x256_40f4ae", 261632, 64, 64, 512, 1048576),
        (6, "int4_rrr_s4_128x128x256_2ca31a", 261632, 128, 128, 512, 4194304),
        (8, "int4_rrr_s4_32x128x256_1de239", 1048064, 32, 128, 512, 1048576),
    ),
}
# UNPACK: kernel, bk, c0
UNPACK = {
    "int4_rcr_s4": (("unpack_s4_d6fe17", 32, 2),),
    "int4_rcr_u4": (("unpack_u4_cc3636", 32, 2),),
    "int4_rrr_s4": (("unpack_s4_e9c788", 16, 1),),
    "int4_rrr_u4": (("unpack_u4_a46b1f", 16, 1),),
}
# PACKED: launch, kernel, bm, c0
PACKED = {
    "int4_rcr_s4": (
        (7, "packed_rcr_s4_128x128x128_ed7b6c", 128, 192),
        (9, "packed_rcr_s4_96x128x128_5bcc6a", 96, 160),
        (10, "packed_rcr_s4_64x128x128_c93bdc", 64, 128),
    ),
    "int4_rcr_u4": (
        (7, "packed_rcr_u4_128x128x128_c70611", 128, 192),
        (9, "packed_rcr_u4_96x128x128_828284", 96, 160),
        (10, "packed_rcr_u4_64x128x128_cec1df", 64, 128),
    ),
    "int4_rrr_s4": (
        (9, "packed_rrr_s4_128x128x128_f3f084", 128, 192),
        (11, "packed_rrr_s4_96x128x128_ef02f0", 96, 160),
        (12, "packed_rrr_s4_64x128x128_b512d3", 64, 128),
    ),
    "int4_rrr_u4": (
        (9, "packed_rrr_u4_128x128x128_4265ce", 128, 192),
        (11, "packed_rrr_u4_96x128x128_fc3ca1", 96, 160),
        (12, "packed_rrr_u4_64x128x128_a34466", 64, 128),
    ),
}
# PACKED1: launch, kernel
PACKED1 = {
    "int4_rcr_s4": ((11, "packed_rcr_s4_64x128x128_1fe915"),),
    "int4_rcr_u4": ((11, "packed_rcr_u4_64x128x128_31e306"),),
    "int4_rrr_s4": ((13, "packed_rrr_s4_64x128x128_7ea68f"),),
    "int4_rrr_u4": ((13, "packed_rrr_u4_64x128x128_b57fc1"),),
}
# INT42: launch, kernel, slots, bm, bn, bk, c0
INT42 = {
    "int4_rcr_s4": ((14, "int4_rcr_s4_64x64x128_29c359", 1, 64, 64, 128, 524288),),
    "int4_rcr_u4": (
        (0, "int4_rcr_u4_32x32x512_2f3d32", 2, 32, 32, 512, 524288),
        (2, "int4_rcr_u4_32x64x512_01d5ce", 2, 32, 64, 512, 1048576),
        (3, "int4_rcr_u4_64x64x256_95bbba", 2, 64, 64, 256, 1048576),
        (5, "int4_rcr_u4_128x128x256_af215d", 2, 128, 128, 256, 4194304),
        (14, "int4_rcr_u4_64x64x128_2c6ce9", 1, 64, 64, 128, 524288),
    ),
    "int4_rrr_s4": ((18, "int4_rrr_s4_64x64x128_0a50d0", 1, 64, 64, 128, 524288),),
    "int4_rrr_u4": (
        (0, "int4_rrr_u4_32x32x512_441a19", 2, 32, 32, 512, 524288),
        (2, "int4_rrr_u4_32x64x512_80cf98", 2, 32, 64, 512, 1048576),
        (3, "int4_rrr_u4_64x64x256_306146", 2, 64, 64, 256, 1048576),
        (5, "int4_rrr_u4_128x128x256_09472c", 2, 128, 128, 256, 4194304),
        (7, "int4_rrr_u4_32x128x256_7fc13c", 2, 32, 128, 256, 1048576),
        (18, "int4_rrr_u4_64x64x128_47696b", 1, 64, 64, 128, 524288),
    ),
}
# INT43: launch, kernel, bm, bn, bk, c0
INT43 = {
    "int4_rcr_u4": (
        (1, "int4_rcr_u4_32x32x512_c73aa9", 32, 32, 1024, 524288),
        (4, "int4_rcr_u4_64x64x256_66f53b", 64, 64, 512, 1048576),
        (6, "int4_rcr_u4_128x128x256_d97f35", 128, 128, 512, 4194304),
    ),
    "int4_rrr_u4": (
        (1, "int4_rrr_u4_32x64x256_a9c43d", 32, 64, 512, 524288),
        (4, "int4_rrr_u4_64x64x256_56248c", 64, 64, 512, 1048576),
        (6, "int4_rrr_u4_128x128x256_86f373", 128, 128, 512, 4194304),
        (8, "int4_rrr_u4_32x128x256_077153", 32, 128, 512, 1048576),
    ),
}


def candidates(
    table: str, arch: str, m: int, n: int, k: int, sms: int, align_a: int, align_b: int, time: Time,
) -> Iterator[Candidate]:
    """What can serve a problem, with predicted times."""
    most_k, u, v = {
        "int4_rcr_s4": (2097151, n, k),
        "int4_rcr_u4": (9544371, n, k),
        "int4_rrr_s4": (2097151, k, n),
        "int4_rrr_u4": (9544371, k, n),
    }[table]
    fitting = ROUTES.fitting(table, align_a, align_b)
    launches: Launches = {}
    operands = -(-((m + n) * k) // 2)
    stores = -(-(m * n) // 2)
    for launch, kernel, most_k1, bm, bn, bk, c0 in fitting.rows(INT4):
        tiles = -(-m // bm) * -(-n // bn)
        if k <= most_k1:
            us = time(
                kernel, "mma8", 2, sms, tiles, -(-k // bk), -(-k // bk) * c0,
                -(-(tiles * (min(m, bm) + min(n, bn)) * k) // 2), operands, stores,
            )
            launches[launch] = us, kernel, min(tiles, 2147483647), {}
    for launch, kernel, most_k1, bm, bn, bk, c0 in fitting.rows(INT41) if arch in SOME_0 else ():
        tiles = -(-m // bm) * -(-n // bn)
        if k <= most_k1:
            us = time(
                kernel, "mma8", 2, sms, tiles * 2, -(-k // bk), -(-k // bk) * c0,
                -(-(tiles * (min(m, bm) + min(n, bn)) * k) // 2), operands, stores,
            )
            launches[launch] = us, kernel, min(tiles, 1073741823) * 2, {}
    operands1 = m * -(-k // 2)
    stores1 = 2 * (m * -(-k // 2))
    for kernel, bk, c0 in UNPACK[table] if arch in SOME_0 and "unpack_a" in fitting else ():
        pieces = m * -(-k // bk)
        ctas = -(-(pieces * c0) // 1024)
        if m * (max(-(-k // 128), 1) * 128) <= 1073741824:
            us = time(kernel, "fma", 8, sms, ctas, 1, 0, operands1, operands1, stores1)
            launches["unpack_a"] = us, kernel, ctas, {"a_bytes": m * (max(-(-k // 128), 1) * 128)}
    operands2 = m * k + -(-(n * k) // 2)
    for launch, kernel, bm, c0 in fitting.rows(PACKED) if arch in SOME_1 else ():
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
        us = time("realign_b8x1_4257e3", "fma", 8, sms, ctas, 1, 0, operands3, operands3, operands3)
        launches["realign_b"] = us, "realign_b8x1_4257e3", ctas, {"b_realigned": pieces_u_v32 * 16}
    tiles_64x128 = -(-m // 64) * -(-n // 128)
    for launch, kernel in fitting.rows(PACKED1) if arch in SOME_1 else ():
        if (
            k <= most_k and m + 64 <= 2147483647 and n + 128 <= 2147483647
            and tiles_64x128 + sms <= 4294967295
        ):
            us = time(
                kernel, "wgmma8", 1, sms, tiles_64x128, -(-k // 128), k * 8192,
                tiles_64x128 * k * 128, operands2, stores,
            )
            launches[launch] = us, kernel, min(tiles_64x128, sms), {}
    operands4 = 0 + m * -(-k // 32) * 16 + u * -(-v // 32) * 16
    pieces_m_k32 = m * -(-k // 32)
    ctas = -(-pieces_m_k32 // 512) + -(-pieces_u_v32 // 512)
    if (
        "realign_ab" in fitting and pieces_m_k32 * 16 <= 1073741824
        and pieces_u_v32 * 16 <= 1073741824
    ):
        us = time("realign_b8x2_d1c3d8", "fma", 8, sms, ctas, 1, 0, operands4, operands4, operands4)
        launches["realign_ab"] = (
            us, "realign_b8x2_d1c3d8", ctas,
            {"a_realigned": pieces_m_k32 * 16, "b_realigned": pieces_u_v32 * 16},
        )
    for launch, kernel, slots, bm, bn, bk, c0 in fitting.rows(INT42):
        tiles = -(-m // bm) * -(-n // bn)
        us = time(
            kernel, "mma8", slots, sms, tiles, -(-k // bk), -(-k // bk) * c0,
            -(-(tiles * (min(m, bm) + min(n, bn)) * k) // 2), operands, stores,
        )
        launches[launch] = us, kernel, min(tiles, 2147483647), {}
    for launch, kernel, bm, bn, bk, c0 in fitting.rows(INT43) if arch in SOME_0 else ():
        tiles = -(-m // bm) * -(-n // bn)
        us = time(
            kernel, "mma8", 2, sms, tiles * 2, -(-k // bk), -(-k // bk) * c0,
            -(-(tiles * (min(m, bm) + min(n, bn)) * k) // 2), operands, stores,
        )
        launches[launch] = us, kernel, min(tiles, 1073741823) * 2, {}
    operands5 = 0 + m * -(-k // 32) * 16
    ctas = -(-pieces_m_k32 // 512)
    if (
        table in ("int4_rrr_s4", "int4_rrr_u4") and "realign_a" in fitting
        and pieces_m_k32 * 16 <= 1073741824
    ):
        us = time("realign_b8x1_4257e3", "fma", 8, sms, ctas, 1, 0, operands5, operands5, operands5)
        launches["realign_a"] = us, "realign_b8x1_4257e3", ctas, {"a_realigned": pieces_m_k32 * 16}
    yield from fitting.combined(launches)
