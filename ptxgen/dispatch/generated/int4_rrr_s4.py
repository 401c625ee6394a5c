"""Dispatch of int4 rrr s4: products of s4.

Generated from ptxgen.tiles.TABLES["int4", "rrr", "s4"]; do not edit.
Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time

SOME_0 = frozenset(("sm_90", "sm_100", "sm_103", "sm_110", "sm_120", "sm_121"))
SOME_1 = frozenset(("sm_90",))


def candidates(
    arch: str, m: int, n: int, k: int, sms: int, align_a: int, align_b: int, time: Time
) -> Iterator[Candidate]:
    """What can serve a problem, with predicted times."""
    operands = -(-((m + n) * k) // 2)
    stores = -(-(m * n) // 2)
    tiles_32x32 = -(-m // 32) * -(-n // 32)
    # 0: few rows or few outputs
    if k <= 1048064 and align_a >= 16 and align_b >= 16:
        us = time(
            "int4_rrr_s4_32x32x512_5abe3a", "mma8", 2, sms, tiles_32x32, -(-k // 512),
            -(-k // 512) * 524288, -(-(tiles_32x32 * (min(m, 32) + min(n, 32)) * k) // 2), operands,
            stores,
        )
        choice = Choice(0, ("int4_rrr_s4_32x32x512_5abe3a",), (min(tiles_32x32, 2147483647),), ())
        yield Candidate(us, choice)
    tiles_32x64 = -(-m // 32) * -(-n // 64)
    # 1: few rows or few outputs; 2 CTAs share a tile's k's
    if arch in SOME_0 and k <= 1048064 and align_a >= 16 and align_b >= 16:
        us = time(
            "int4_rrr_s4_32x64x256_54c556", "mma8", 2, sms, tiles_32x64 * 2, -(-k // 512),
            -(-k // 512) * 524288, -(-(tiles_32x64 * (min(m, 32) + min(n, 64)) * k) // 2), operands,
            stores,
        )
        choice = Choice(
            1, ("int4_rrr_s4_32x64x256_54c556",), (min(tiles_32x64, 1073741823) * 2,), (),
        )
        yield Candidate(us, choice)
    # 2: few rows
    if k <= 1048064 and align_a >= 16 and align_b >= 16:
        us = time(
            "int4_rrr_s4_32x64x512_0d89a2", "mma8", 2, sms, tiles_32x64, -(-k // 512),
            -(-k // 512) * 1048576, -(-(tiles_32x64 * (min(m, 32) + min(n, 64)) * k) // 2),
            operands, stores,
        )
        choice = Choice(2, ("int4_rrr_s4_32x64x512_0d89a2",), (min(tiles_32x64, 2147483647),), ())
        yield Candidate(us, choice)
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 3: some rows
    if k <= 131071 and align_a >= 16 and align_b >= 16:
        us = time(
            "int4_rrr_s4_64x64x256_35dece", "mma8", 2, sms, tiles_64x64, -(-k // 256),
            -(-k // 256) * 1048576, -(-(tiles_64x64 * (min(m, 64) + min(n, 64)) * k) // 2),
            operands, stores,
        )
        choice = Choice(3, ("int4_rrr_s4_64x64x256_35dece",), (min(tiles_64x64, 2147483647),), ())
        yield Candidate(us, choice)
    # 4: some rows; 2 CTAs share a tile's k's
    if arch in SOME_0 and k <= 261632 and align_a >= 16 and align_b >= 16:
        us = time(
            "int4_rrr_s4_64x64x256_40f4ae", "mma8", 2, sms, tiles_64x64 * 2, -(-k // 512),
            -(-k // 512) * 1048576, -(-(tiles_64x64 * (min(m, 64) + min(n, 64)) * k) // 2),
            operands, stores,
        )
        choice = Choice(
            4, ("int4_rrr_s4_64x64x256_40f4ae",), (min(tiles_64x64, 1073741823) * 2,), (),
        )
        yield Candidate(us, choice)
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    # 5: many outputs
    if k <= 131071 and align_a >= 16 and align_b >= 16:
        us = time(
            "int4_rrr_s4_128x128x256_95cd7e", "mma8", 2, sms, tiles_128x128, -(-k // 256),
            -(-k // 256) * 4194304, -(-(tiles_128x128 * (min(m, 128) + min(n, 128)) * k) // 2),
            operands, stores,
        )
        choice = Choice(
            5, ("int4_rrr_s4_128x128x256_95cd7e",), (min(tiles_128x128, 2147483647),), (),
        )
        yield Candidate(us, choice)
    # 6: many outputs; 2 CTAs share a tile's k's
    if arch in SOME_0 and k <= 261632 and align_a >= 16 and align_b >= 16:
        us = time(
            "int4_rrr_s4_128x128x256_2ca31a", "mma8", 2, sms, tiles_128x128 * 2, -(-k // 512),
            -(-k // 512) * 4194304, -(-(tiles_128x128 * (min(m, 128) + min(n, 128)) * k) // 2),
            operands, stores,
        )
        choice = Choice(
            6, ("int4_rrr_s4_128x128x256_2ca31a",), (min(tiles_128x128, 1073741823) * 2,), (),
        )
        yield Candidate(us, choice)
    tiles_32x128 = -(-m // 32) * -(-n // 128)
    # 7: few rows, many columns
    if k <= 524032 and align_a >= 16 and align_b >= 16:
        us = time(
            "int4_rrr_s4_32x128x256_a7f786", "mma8", 2, sms, tiles_32x128, -(-k // 256),
            -(-k // 256) * 1048576, -(-(tiles_32x128 * (min(m, 32) + min(n, 128)) * k) // 2),
            operands, stores,
        )
        choice = Choice(7, ("int4_rrr_s4_32x128x256_a7f786",), (min(tiles_32x128, 2147483647),), ())
        yield Candidate(us, choice)
    # 8: few rows, many columns; 2 CTAs share a tile's k's
    if arch in SOME_0 and k <= 1048064 and align_a >= 16 and align_b >= 16:
        us = time(
            "int4_rrr_s4_32x128x256_1de239", "mma8", 2, sms, tiles_32x128 * 2, -(-k // 512),
            -(-k // 512) * 1048576, -(-(tiles_32x128 * (min(m, 32) + min(n, 128)) * k) // 2),
            operands, stores,
        )
        choice = Choice(
            8, ("int4_rrr_s4_32x128x256_1de239",), (min(tiles_32x128, 1073741823) * 2,), (),
        )
        yield Candidate(us, choice)
    operands_1 = m * -(-k // 2)
    stores_1 = 2 * (m * -(-k // 2))
    operands_2 = m * k + -(-(n * k) // 2)
    pieces_m_k16 = m * -(-k // 16)
    # 9: tiles of 128 rows, by wgmma
    if (
        arch in SOME_1
        and m * (max(-(-k // 128), 1) * 128) <= 1073741824 and align_b >= 16 and k <= 2097151
        and m + 128 <= 2147483647 and n + 128 <= 2147483647
        and tiles_128x128 + sms * 2 <= 4294967295
    ):
        us = time(
            "unpack_s4_e9c788", "fma", 8, sms, -(-(pieces_m_k16 * 1) // 1024), 1, 0, operands_1,
            operands_1, stores_1,
        )
        us += time(
            "packed_rrr_s4_128x128x128_f3f084", "wgmma8", 2, sms, tiles_128x128, -(-k // 128),
            k * 16384, tiles_128x128 * k * 192, operands_2, stores,
        )
        choice = Choice(
            9, ("unpack_s4_e9c788", "packed_rrr_s4_128x128x128_f3f084"),
            (-(-(pieces_m_k16 * 1) // 1024), min(tiles_128x128, sms * 2)),
            (m * (max(-(-k // 128), 1) * 128),),
        )
        yield Candidate(us, choice)
    operands_3 = 0 + k * -(-n // 32) * 16
    pieces_k_n32 = k * -(-n // 32)
    # 10: B off 16 bytes: copied first, then by wgmma
    if (
        arch in SOME_1
        and pieces_k_n32 * 16 <= 1073741824 and m * (max(-(-k // 128), 1) * 128) <= 1073741824
        and k <= 2097151 and m + 128 <= 2147483647 and n + 128 <= 2147483647
        and tiles_128x128 + sms * 2 <= 4294967295
    ):
        us = time(
            "realign_b8x1_4257e3", "fma", 8, sms, -(-pieces_k_n32 // 512), 1, 0, operands_3,
            operands_3, operands_3,
        )
        us += time(
            "unpack_s4_e9c788", "fma", 8, sms, -(-(pieces_m_k16 * 1) // 1024), 1, 0, operands_1,
            operands_1, stores_1,
        )
        us += time(
            "packed_rrr_s4_128x128x128_f3f084", "wgmma8", 2, sms, tiles_128x128, -(-k // 128),
            k * 16384, tiles_128x128 * k * 192, operands_2, stores,
        )
        choice = Choice(
            10, ("realign_b8x1_4257e3", "unpack_s4_e9c788", "packed_rrr_s4_128x128x128_f3f084"),
            (-(-pieces_k_n32 // 512), -(-(pieces_m_k16 * 1) // 1024), min(tiles_128x128, sms * 2)),
            (pieces_k_n32 * 16, m * (max(-(-k // 128), 1) * 128)),
        )
        yield Candidate(us, choice)
    tiles_96x128 = -(-m // 96) * -(-n // 128)
    # 11: tiles of 96 rows, by wgmma
    if (
        arch in SOME_1
        and m * (max(-(-k // 128), 1) * 128) <= 1073741824 and align_b >= 16 and k <= 2097151
        and m + 96 <= 2147483647 and n + 128 <= 2147483647 and tiles_96x128 + sms * 2 <= 4294967295
    ):
        us = time(
            "unpack_s4_e9c788", "fma", 8, sms, -(-(pieces_m_k16 * 1) // 1024), 1, 0, operands_1,
            operands_1, stores_1,
        )
        us += time(
            "packed_rrr_s4_96x128x128_ef02f0", "wgmma8", 2, sms, tiles_96x128, -(-k // 128),
            k * 12288, tiles_96x128 * k * 160, operands_2, stores,
        )
        choice = Choice(
            11, ("unpack_s4_e9c788", "packed_rrr_s4_96x128x128_ef02f0"),
            (-(-(pieces_m_k16 * 1) // 1024), min(tiles_96x128, sms * 2)),
            (m * (max(-(-k // 128), 1) * 128),),
        )
        yield Candidate(us, choice)
    tiles_64x128 = -(-m // 64) * -(-n // 128)
    # 12: tiles of 64 rows, by wgmma
    if (
        arch in SOME_1
        and m * (max(-(-k // 128), 1) * 128) <= 1073741824 and align_b >= 16 and k <= 2097151
        and m + 64 <= 2147483647 and n + 128 <= 2147483647 and tiles_64x128 + sms * 2 <= 4294967295
    ):
        us = time(
            "unpack_s4_e9c788", "fma", 8, sms, -(-(pieces_m_k16 * 1) // 1024), 1, 0, operands_1,
            operands_1, stores_1,
        )
        us += time(
            "packed_rrr_s4_64x128x128_b512d3", "wgmma8", 2, sms, tiles_64x128, -(-k // 128),
            k * 8192, tiles_64x128 * k * 128, operands_2, stores,
        )
        choice = Choice(
            12, ("unpack_s4_e9c788", "packed_rrr_s4_64x128x128_b512d3"),
            (-(-(pieces_m_k16 * 1) // 1024), min(tiles_64x128, sms * 2)),
            (m * (max(-(-k // 128), 1) * 128),),
        )
        yield Candidate(us, choice)
    # 13: tiles of 64 rows, by wgmma
    if (
        arch in SOME_1
        and m * (max(-(-k // 128), 1) * 128) <= 1073741824 and align_b >= 16 and k <= 2097151
        and m + 64 <= 2147483647 and n + 128 <= 2147483647 and tiles_64x128 + sms <= 4294967295
    ):
        us = time(
            "unpack_s4_e9c788", "fma", 8, sms, -(-(pieces_m_k16 * 1) // 1024), 1, 0, operands_1,
            operands_1, stores_1,
        )
        us += time(
            "packed_rrr_s4_64x128x128_7ea68f", "wgmma8", 1, sms, tiles_64x128, -(-k // 128),
            k * 8192, tiles_64x128 * k * 128, operands_2, stores,
        )
        choice = Choice(
            13, ("unpack_s4_e9c788", "packed_rrr_s4_64x128x128_7ea68f"),
            (-(-(pieces_m_k16 * 1) // 1024), min(tiles_64x128, sms)),
            (m * (max(-(-k // 128), 1) * 128),),
        )
        yield Candidate(us, choice)
    operands_4 = 0 + m * -(-k // 32) * 16
    pieces_m_k32 = m * -(-k // 32)
    # 14: A off 16 bytes: copied first
    if pieces_m_k32 * 16 <= 1073741824 and k <= 1048064 and align_b >= 16:
        us = time(
            "realign_b8x1_4257e3", "fma", 8, sms, -(-pieces_m_k32 // 512), 1, 0, operands_4,
            operands_4, operands_4,
        )
        us += time(
            "int4_rrr_s4_32x32x512_5abe3a", "mma8", 2, sms, tiles_32x32, -(-k // 512),
            -(-k // 512) * 524288, -(-(tiles_32x32 * (min(m, 32) + min(n, 32)) * k) // 2), operands,
            stores,
        )
        choice = Choice(
            14, ("realign_b8x1_4257e3", "int4_rrr_s4_32x32x512_5abe3a"),
            (-(-pieces_m_k32 // 512), min(tiles_32x32, 2147483647)), (pieces_m_k32 * 16,),
        )
        yield Candidate(us, choice)
    operands_5 = 0 + m * -(-k // 32) * 16 + k * -(-n // 32) * 16
    # 15: A and B off 16 bytes: copied first
    if pieces_m_k32 * 16 <= 1073741824 and pieces_k_n32 * 16 <= 1073741824 and k <= 1048064:
        us = time(
            "realign_b8x2_d1c3d8", "fma", 8, sms, -(-pieces_m_k32 // 512) + -(-pieces_k_n32 // 512),
            1, 0, operands_5, operands_5, operands_5,
        )
        us += time(
            "int4_rrr_s4_32x32x512_5abe3a", "mma8", 2, sms, tiles_32x32, -(-k // 512),
            -(-k // 512) * 524288, -(-(tiles_32x32 * (min(m, 32) + min(n, 32)) * k) // 2), operands,
            stores,
        )
        choice = Choice(
            15, ("realign_b8x2_d1c3d8", "int4_rrr_s4_32x32x512_5abe3a"),
            (-(-pieces_m_k32 // 512) + -(-pieces_k_n32 // 512), min(tiles_32x32, 2147483647)),
            (pieces_m_k32 * 16, pieces_k_n32 * 16),
        )
        yield Candidate(us, choice)
    # 16: A off 16 bytes: copied first
    if pieces_m_k32 * 16 <= 1073741824 and k <= 131071 and align_b >= 16:
        us = time(
            "realign_b8x1_4257e3", "fma", 8, sms, -(-pieces_m_k32 // 512), 1, 0, operands_4,
            operands_4, operands_4,
        )
        us += time(
            "int4_rrr_s4_128x128x256_95cd7e", "mma8", 2, sms, tiles_128x128, -(-k // 256),
            -(-k // 256) * 4194304, -(-(tiles_128x128 * (min(m, 128) + min(n, 128)) * k) // 2),
            operands, stores,
        )
        choice = Choice(
            16, ("realign_b8x1_4257e3", "int4_rrr_s4_128x128x256_95cd7e"),
            (-(-pieces_m_k32 // 512), min(tiles_128x128, 2147483647)), (pieces_m_k32 * 16,),
        )
        yield Candidate(us, choice)
    # 17: A and B off 16 bytes: copied first
    if pieces_m_k32 * 16 <= 1073741824 and pieces_k_n32 * 16 <= 1073741824 and k <= 131071:
        us = time(
            "realign_b8x2_d1c3d8", "fma", 8, sms, -(-pieces_m_k32 // 512) + -(-pieces_k_n32 // 512),
            1, 0, operands_5, operands_5, operands_5,
        )
        us += time(
            "int4_rrr_s4_128x128x256_95cd7e", "mma8", 2, sms, tiles_128x128, -(-k // 256),
            -(-k // 256) * 4194304, -(-(tiles_128x128 * (min(m, 128) + min(n, 128)) * k) // 2),
            operands, stores,
        )
        choice = Choice(
            17, ("realign_b8x2_d1c3d8", "int4_rrr_s4_128x128x256_95cd7e"),
            (-(-pieces_m_k32 // 512) + -(-pieces_k_n32 // 512), min(tiles_128x128, 2147483647)),
            (pieces_m_k32 * 16, pieces_k_n32 * 16),
        )
        yield Candidate(us, choice)
    # 18: everything else: any alignment, the longest reductions
    us = time(
        "int4_rrr_s4_64x64x128_0a50d0", "mma8", 1, sms, tiles_64x64, -(-k // 128),
        -(-k // 128) * 524288, -(-(tiles_64x64 * (min(m, 64) + min(n, 64)) * k) // 2), operands,
        stores,
    )
    choice = Choice(18, ("int4_rrr_s4_64x64x128_0a50d0",), (min(tiles_64x64, 2147483647),), ())
    yield Candidate(us, choice)
