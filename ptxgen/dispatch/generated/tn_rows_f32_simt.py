"""Dispatch of TN rows f32 simt: products under the plan 'rows'.

Generated from ptxgen.tiles.TABLES["TN", "rows", "f32", "simt"]; do not edit.
Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time

SOME_0 = frozenset(("sm_80", "sm_87", "sm_90", "sm_100", "sm_103", "sm_110"))


def candidates(
    arch: str, m: int, n: int, k: int, sms: int, align_a: int, align_b: int, time: Time
) -> Iterator[Candidate]:
    """What can serve a problem, with predicted times."""
    chunk = max(1, min(k, -(-k // 8 // 16) * 16 if n <= 4096 and k >= 2048 else k))
    chunks = -(-k // chunk)
    operands = (m + n) * k * 4
    stores = m * n * 4
    tiles_2x32 = -(-m // 2) * -(-n // 32)
    tiles_chunk32_chunks8 = -(-chunk // 32) * -(-chunks // 8)
    # 0: few rows, chunks side by side
    if arch in SOME_0 and align_b >= 16 and tiles_2x32 <= 2147483647:
        us = time(
            "simt_tn_f32_2x32x32_abf946", "fma", 1, sms, tiles_2x32, tiles_chunk32_chunks8, k * 64,
            tiles_2x32 * k * 136, operands, stores,
        )
        yield Candidate(us, Choice(0, ("simt_tn_f32_2x32x32_abf946",), (tiles_2x32,), ()))
    tiles_8x16 = -(-m // 8) * -(-n // 16)
    # 1: few rows, chunks side by side
    if align_b >= 16 and tiles_8x16 <= 2147483647:
        us = time(
            "simt_tn_f32_8x16x32_a97e93", "fma", 1, sms, tiles_8x16, tiles_chunk32_chunks8, k * 128,
            tiles_8x16 * k * 96, operands, stores,
        )
        yield Candidate(us, Choice(1, ("simt_tn_f32_8x16x32_a97e93",), (tiles_8x16,), ()))
    tiles_8x32 = -(-m // 8) * -(-n // 32)
    tiles_chunk16_chunks8 = -(-chunk // 16) * -(-chunks // 8)
    # 2: few rows, chunks side by side
    if align_b >= 16 and tiles_8x32 <= 2147483647:
        us = time(
            "simt_tn_f32_8x32x16_5132be", "fma", 1, sms, tiles_8x32, tiles_chunk16_chunks8, k * 256,
            tiles_8x32 * k * 160, operands, stores,
        )
        yield Candidate(us, Choice(2, ("simt_tn_f32_8x32x16_5132be",), (tiles_8x32,), ()))
    tiles_16x16 = -(-m // 16) * -(-n // 16)
    # 3: few rows, chunks side by side
    if align_b >= 16 and tiles_16x16 <= 2147483647:
        us = time(
            "simt_tn_f32_16x16x32_be0c61", "fma", 1, sms, tiles_16x16, tiles_chunk32_chunks8,
            k * 256, tiles_16x16 * k * 128, operands, stores,
        )
        yield Candidate(us, Choice(3, ("simt_tn_f32_16x16x32_be0c61",), (tiles_16x16,), ()))
    tiles_16x32 = -(-m // 16) * -(-n // 32)
    # 4: few rows, chunks side by side
    if align_b >= 16 and tiles_16x32 <= 2147483647:
        us = time(
            "simt_tn_f32_16x32x16_9b0e94", "fma", 1, sms, tiles_16x32, tiles_chunk16_chunks8,
            k * 512, tiles_16x32 * k * 192, operands, stores,
        )
        yield Candidate(us, Choice(4, ("simt_tn_f32_16x32x16_9b0e94",), (tiles_16x32,), ()))
    tiles_32x16 = -(-m // 32) * -(-n // 16)
    # 5: few rows, chunks side by side
    if align_b >= 16 and tiles_32x16 <= 2147483647:
        us = time(
            "simt_tn_f32_32x16x16_83e730", "fma", 1, sms, tiles_32x16, tiles_chunk16_chunks8,
            k * 512, tiles_32x16 * k * 192, operands, stores,
        )
        yield Candidate(us, Choice(5, ("simt_tn_f32_32x16x16_83e730",), (tiles_32x16,), ()))
    tiles_32x32 = -(-m // 32) * -(-n // 32)
    # 6: few rows, chunks side by side
    if arch in SOME_0 and align_b >= 16 and tiles_32x32 <= 2147483647:
        us = time(
            "simt_tn_f32_32x32x16_ff0291", "fma", 1, sms, tiles_32x32, tiles_chunk16_chunks8,
            k * 1024, tiles_32x32 * k * 256, operands, stores,
        )
        yield Candidate(us, Choice(6, ("simt_tn_f32_32x32x16_ff0291",), (tiles_32x32,), ()))
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    tiles_chunk16_chunks1 = -(-chunk // 16) * -(-chunks // 1)
    # 7: more rows, chunks side by side
    if align_a >= 16 and align_b >= 16 and tiles_128x128 <= 2147483647:
        us = time(
            "simt_tn_f32_128x128x16_770be0", "fma", 2, sms, tiles_128x128, tiles_chunk16_chunks1,
            k * 16384, tiles_128x128 * k * 1024, operands, stores,
        )
        yield Candidate(us, Choice(7, ("simt_tn_f32_128x128x16_770be0",), (tiles_128x128,), ()))
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    tiles_chunk8_chunks8 = -(-chunk // 8) * -(-chunks // 8)
    # 8: more rows, chunks side by side
    if arch in SOME_0 and align_a >= 16 and align_b >= 16 and tiles_64x64 <= 2147483647:
        us = time(
            "simt_tn_f32_64x64x8_77baed", "fma", 1, sms, tiles_64x64, tiles_chunk8_chunks8,
            k * 4096, tiles_64x64 * k * 512, operands, stores,
        )
        yield Candidate(us, Choice(8, ("simt_tn_f32_64x64x8_77baed",), (tiles_64x64,), ()))
    tiles_64x32 = -(-m // 64) * -(-n // 32)
    # 9: more rows, chunks side by side
    if arch in SOME_0 and align_a >= 16 and align_b >= 16 and tiles_64x32 <= 2147483647:
        us = time(
            "simt_tn_f32_64x32x16_f23be5", "fma", 1, sms, tiles_64x32, tiles_chunk16_chunks8,
            k * 2048, tiles_64x32 * k * 384, operands, stores,
        )
        yield Candidate(us, Choice(9, ("simt_tn_f32_64x32x16_f23be5",), (tiles_64x32,), ()))
    # 10: more rows, chunks side by side
    if arch in SOME_0 and align_a >= 16 and align_b >= 16 and tiles_32x32 <= 2147483647:
        us = time(
            "simt_tn_f32_32x32x32_209373", "fma", 1, sms, tiles_32x32, tiles_chunk32_chunks8,
            k * 1024, tiles_32x32 * k * 256, operands, stores,
        )
        yield Candidate(us, Choice(10, ("simt_tn_f32_32x32x32_209373",), (tiles_32x32,), ()))
    # 11: more rows, chunks side by side
    if arch in SOME_0 and align_a >= 16 and align_b >= 16 and tiles_16x32 <= 2147483647:
        us = time(
            "simt_tn_f32_16x32x32_4b0f21", "fma", 1, sms, tiles_16x32, tiles_chunk32_chunks8,
            k * 512, tiles_16x32 * k * 192, operands, stores,
        )
        yield Candidate(us, Choice(11, ("simt_tn_f32_16x32x32_4b0f21",), (tiles_16x32,), ()))
    tiles_8x64 = -(-m // 8) * -(-n // 64)
    # 12: few rows: the weight streams once
    if align_b >= 16 and chunks <= 1 and tiles_8x64 <= 2147483647:
        us = time(
            "simt_tn_f32_8x64x64_e74d10", "fma", 1, sms, tiles_8x64, -(-k // 64), k * 512,
            tiles_8x64 * k * 288, operands, stores,
        )
        yield Candidate(us, Choice(12, ("simt_tn_f32_8x64x64_e74d10",), (tiles_8x64,), ()))
    tiles_16x64 = -(-m // 16) * -(-n // 64)
    # 13: few rows: the weight streams once
    if align_b >= 16 and chunks <= 1 and tiles_16x64 <= 2147483647:
        us = time(
            "simt_tn_f32_16x64x64_467c82", "fma", 1, sms, tiles_16x64, -(-k // 64), k * 1024,
            tiles_16x64 * k * 320, operands, stores,
        )
        yield Candidate(us, Choice(13, ("simt_tn_f32_16x64x64_467c82",), (tiles_16x64,), ()))
    tiles_32x128 = -(-m // 32) * -(-n // 128)
    # 14: few rows: the weight streams once
    if align_b >= 16 and chunks <= 1 and tiles_32x128 <= 2147483647:
        us = time(
            "simt_tn_f32_32x128x32_96dc77", "fma", 1, sms, tiles_32x128, -(-k // 32), k * 4096,
            tiles_32x128 * k * 640, operands, stores,
        )
        yield Candidate(us, Choice(14, ("simt_tn_f32_32x128x32_96dc77",), (tiles_32x128,), ()))
    # 15: one chain
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_128x128 <= 2147483647:
        us = time(
            "simt_tn_f32_128x128x32_a6005b", "fma", 2, sms, tiles_128x128, -(-k // 32), k * 16384,
            tiles_128x128 * k * 1024, operands, stores,
        )
        yield Candidate(us, Choice(15, ("simt_tn_f32_128x128x32_a6005b",), (tiles_128x128,), ()))
    # 16: one chain
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_64x64 <= 2147483647:
        us = time(
            "simt_tn_f32_64x64x32_b25768", "fma", 4, sms, tiles_64x64, -(-k // 32), k * 4096,
            tiles_64x64 * k * 512, operands, stores,
        )
        yield Candidate(us, Choice(16, ("simt_tn_f32_64x64x32_b25768",), (tiles_64x64,), ()))
    tiles_32x64 = -(-m // 32) * -(-n // 64)
    # 17: one chain
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_32x64 <= 2147483647:
        us = time(
            "simt_tn_f32_32x64x16_0d5445", "fma", 4, sms, tiles_32x64, -(-k // 16), k * 2048,
            tiles_32x64 * k * 384, operands, stores,
        )
        yield Candidate(us, Choice(17, ("simt_tn_f32_32x64x16_0d5445",), (tiles_32x64,), ()))
    # 18: one chain
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_16x32 <= 2147483647:
        us = time(
            "simt_tn_f32_16x32x32_610669", "fma", 4, sms, tiles_16x32, -(-k // 32), k * 512,
            tiles_16x32 * k * 192, operands, stores,
        )
        yield Candidate(us, Choice(18, ("simt_tn_f32_16x32x32_610669",), (tiles_16x32,), ()))
    operands_1 = 0 + k * -(-m // 4) * 16
    pieces_k_m4 = k * -(-m // 4)
    # 19: A off 16 bytes: copied first
    if (
        pieces_k_m4 * 16 <= 268435456 and align_b >= 16 and chunks <= 1
        and tiles_128x128 <= 2147483647
    ):
        us = time(
            "realign_b32x1_92a718", "fma", 8, sms, -(-pieces_k_m4 // 512), 1, 0, operands_1,
            operands_1, operands_1,
        )
        us += time(
            "simt_tn_f32_128x128x32_a6005b", "fma", 2, sms, tiles_128x128, -(-k // 32), k * 16384,
            tiles_128x128 * k * 1024, operands, stores,
        )
        choice = Choice(
            19, ("realign_b32x1_92a718", "simt_tn_f32_128x128x32_a6005b"),
            (-(-pieces_k_m4 // 512), tiles_128x128), (pieces_k_m4 * 16,),
        )
        yield Candidate(us, choice)
    operands_2 = 0 + k * -(-n // 4) * 16
    pieces_k_n4 = k * -(-n // 4)
    # 20: B off 16 bytes: copied first
    if (
        pieces_k_n4 * 16 <= 268435456 and align_a >= 16 and chunks <= 1
        and tiles_128x128 <= 2147483647
    ):
        us = time(
            "realign_b32x1_92a718", "fma", 8, sms, -(-pieces_k_n4 // 512), 1, 0, operands_2,
            operands_2, operands_2,
        )
        us += time(
            "simt_tn_f32_128x128x32_a6005b", "fma", 2, sms, tiles_128x128, -(-k // 32), k * 16384,
            tiles_128x128 * k * 1024, operands, stores,
        )
        choice = Choice(
            20, ("realign_b32x1_92a718", "simt_tn_f32_128x128x32_a6005b"),
            (-(-pieces_k_n4 // 512), tiles_128x128), (pieces_k_n4 * 16,),
        )
        yield Candidate(us, choice)
    operands_3 = 0 + k * -(-m // 4) * 16 + k * -(-n // 4) * 16
    # 21: A and B off 16 bytes: copied first
    if (
        pieces_k_m4 * 16 <= 268435456 and pieces_k_n4 * 16 <= 268435456 and chunks <= 1
        and tiles_128x128 <= 2147483647
    ):
        us = time(
            "realign_b32x2_89cb89", "fma", 8, sms, -(-pieces_k_m4 // 512) + -(-pieces_k_n4 // 512),
            1, 0, operands_3, operands_3, operands_3,
        )
        us += time(
            "simt_tn_f32_128x128x32_a6005b", "fma", 2, sms, tiles_128x128, -(-k // 32), k * 16384,
            tiles_128x128 * k * 1024, operands, stores,
        )
        choice = Choice(
            21, ("realign_b32x2_89cb89", "simt_tn_f32_128x128x32_a6005b"),
            (-(-pieces_k_m4 // 512) + -(-pieces_k_n4 // 512), tiles_128x128),
            (pieces_k_m4 * 16, pieces_k_n4 * 16),
        )
        yield Candidate(us, choice)
    # 22: A off 16 bytes: copied first
    if pieces_k_m4 * 16 <= 268435456 and align_b >= 16 and tiles_128x128 <= 2147483647:
        us = time(
            "realign_b32x1_92a718", "fma", 8, sms, -(-pieces_k_m4 // 512), 1, 0, operands_1,
            operands_1, operands_1,
        )
        us += time(
            "simt_tn_f32_128x128x16_770be0", "fma", 2, sms, tiles_128x128, tiles_chunk16_chunks1,
            k * 16384, tiles_128x128 * k * 1024, operands, stores,
        )
        choice = Choice(
            22, ("realign_b32x1_92a718", "simt_tn_f32_128x128x16_770be0"),
            (-(-pieces_k_m4 // 512), tiles_128x128), (pieces_k_m4 * 16,),
        )
        yield Candidate(us, choice)
    # 23: B off 16 bytes: copied first
    if pieces_k_n4 * 16 <= 268435456 and align_a >= 16 and tiles_128x128 <= 2147483647:
        us = time(
            "realign_b32x1_92a718", "fma", 8, sms, -(-pieces_k_n4 // 512), 1, 0, operands_2,
            operands_2, operands_2,
        )
        us += time(
            "simt_tn_f32_128x128x16_770be0", "fma", 2, sms, tiles_128x128, tiles_chunk16_chunks1,
            k * 16384, tiles_128x128 * k * 1024, operands, stores,
        )
        choice = Choice(
            23, ("realign_b32x1_92a718", "simt_tn_f32_128x128x16_770be0"),
            (-(-pieces_k_n4 // 512), tiles_128x128), (pieces_k_n4 * 16,),
        )
        yield Candidate(us, choice)
    # 24: A and B off 16 bytes: copied first
    if (
        pieces_k_m4 * 16 <= 268435456 and pieces_k_n4 * 16 <= 268435456
        and tiles_128x128 <= 2147483647
    ):
        us = time(
            "realign_b32x2_89cb89", "fma", 8, sms, -(-pieces_k_m4 // 512) + -(-pieces_k_n4 // 512),
            1, 0, operands_3, operands_3, operands_3,
        )
        us += time(
            "simt_tn_f32_128x128x16_770be0", "fma", 2, sms, tiles_128x128, tiles_chunk16_chunks1,
            k * 16384, tiles_128x128 * k * 1024, operands, stores,
        )
        choice = Choice(
            24, ("realign_b32x2_89cb89", "simt_tn_f32_128x128x16_770be0"),
            (-(-pieces_k_m4 // 512) + -(-pieces_k_n4 // 512), tiles_128x128),
            (pieces_k_m4 * 16, pieces_k_n4 * 16),
        )
        yield Candidate(us, choice)
    # 25: A off 16 bytes: copied first
    if (
        arch in SOME_0
        and pieces_k_m4 * 16 <= 268435456 and align_b >= 16 and tiles_64x64 <= 2147483647
    ):
        us = time(
            "realign_b32x1_92a718", "fma", 8, sms, -(-pieces_k_m4 // 512), 1, 0, operands_1,
            operands_1, operands_1,
        )
        us += time(
            "simt_tn_f32_64x64x8_77baed", "fma", 1, sms, tiles_64x64, tiles_chunk8_chunks8,
            k * 4096, tiles_64x64 * k * 512, operands, stores,
        )
        choice = Choice(
            25, ("realign_b32x1_92a718", "simt_tn_f32_64x64x8_77baed"),
            (-(-pieces_k_m4 // 512), tiles_64x64), (pieces_k_m4 * 16,),
        )
        yield Candidate(us, choice)
    # 26: B off 16 bytes: copied first
    if (
        arch in SOME_0
        and pieces_k_n4 * 16 <= 268435456 and align_a >= 16 and tiles_64x64 <= 2147483647
    ):
        us = time(
            "realign_b32x1_92a718", "fma", 8, sms, -(-pieces_k_n4 // 512), 1, 0, operands_2,
            operands_2, operands_2,
        )
        us += time(
            "simt_tn_f32_64x64x8_77baed", "fma", 1, sms, tiles_64x64, tiles_chunk8_chunks8,
            k * 4096, tiles_64x64 * k * 512, operands, stores,
        )
        choice = Choice(
            26, ("realign_b32x1_92a718", "simt_tn_f32_64x64x8_77baed"),
            (-(-pieces_k_n4 // 512), tiles_64x64), (pieces_k_n4 * 16,),
        )
        yield Candidate(us, choice)
    # 27: A and B off 16 bytes: copied first
    if (
        arch in SOME_0
        and pieces_k_m4 * 16 <= 268435456 and pieces_k_n4 * 16 <= 268435456
        and tiles_64x64 <= 2147483647
    ):
        us = time(
            "realign_b32x2_89cb89", "fma", 8, sms, -(-pieces_k_m4 // 512) + -(-pieces_k_n4 // 512),
            1, 0, operands_3, operands_3, operands_3,
        )
        us += time(
            "simt_tn_f32_64x64x8_77baed", "fma", 1, sms, tiles_64x64, tiles_chunk8_chunks8,
            k * 4096, tiles_64x64 * k * 512, operands, stores,
        )
        choice = Choice(
            27, ("realign_b32x2_89cb89", "simt_tn_f32_64x64x8_77baed"),
            (-(-pieces_k_m4 // 512) + -(-pieces_k_n4 // 512), tiles_64x64),
            (pieces_k_m4 * 16, pieces_k_n4 * 16),
        )
        yield Candidate(us, choice)
    # 28: operands off 16 bytes
    if arch in SOME_0 and tiles_32x32 <= 2147483647:
        us = time(
            "simt_tn_f32_32x32x16_6ade48", "fma", 1, sms, tiles_32x32, tiles_chunk16_chunks8,
            k * 1024, tiles_32x32 * k * 256, operands, stores,
        )
        yield Candidate(us, Choice(28, ("simt_tn_f32_32x32x16_6ade48",), (tiles_32x32,), ()))
    # 29: operands off 16 bytes
    if chunks <= 1 and tiles_128x128 <= 2147483647:
        us = time(
            "simt_tn_f32_128x128x8_808899", "fma", 2, sms, tiles_128x128, -(-k // 8), k * 16384,
            tiles_128x128 * k * 1024, operands, stores,
        )
        yield Candidate(us, Choice(29, ("simt_tn_f32_128x128x8_808899",), (tiles_128x128,), ()))
    # 30: operands off 16 bytes
    if chunks <= 1 and tiles_16x32 <= 2147483647:
        us = time(
            "simt_tn_f32_16x32x32_da4f05", "fma", 4, sms, tiles_16x32, -(-k // 32), k * 512,
            tiles_16x32 * k * 192, operands, stores,
        )
        yield Candidate(us, Choice(30, ("simt_tn_f32_16x32x32_da4f05",), (tiles_16x32,), ()))
    # 31: everything else: any size, alignment and plan
    us = time(
        "simt_tn_f32_64x64x16_3be7a4", "fma", 1, sms, tiles_64x64, tiles_chunk16_chunks1, k * 4096,
        tiles_64x64 * k * 512, operands, stores,
    )
    choice = Choice(31, ("simt_tn_f32_64x64x16_3be7a4",), (min(tiles_64x64, 2147483647),), ())
    yield Candidate(us, choice)
