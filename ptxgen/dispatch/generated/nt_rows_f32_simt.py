"""Dispatch of NT rows f32 simt: products under the plan 'rows'.

Generated from ptxgen.tiles.TABLES["NT", "rows", "f32", "simt"]; do not edit.
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
    tiles_2x16 = -(-m // 2) * -(-n // 16)
    tiles_chunk64_chunks8 = -(-chunk // 64) * -(-chunks // 8)
    # 0: few rows, chunks side by side
    if arch in SOME_0 and align_a >= 16 and align_b >= 16 and tiles_2x16 <= 2147483647:
        us = time(
            "simt_nt_f32_2x16x64_dba5f6", "fma", 1, sms, tiles_2x16, tiles_chunk64_chunks8, k * 32,
            tiles_2x16 * k * 72, operands, stores,
        )
        yield Candidate(us, Choice(0, ("simt_nt_f32_2x16x64_dba5f6",), (tiles_2x16,), ()))
    tiles_2x32 = -(-m // 2) * -(-n // 32)
    tiles_chunk32_chunks8 = -(-chunk // 32) * -(-chunks // 8)
    # 1: few rows, chunks side by side
    if arch in SOME_0 and align_a >= 16 and align_b >= 16 and tiles_2x32 <= 2147483647:
        us = time(
            "simt_nt_f32_2x32x32_947945", "fma", 1, sms, tiles_2x32, tiles_chunk32_chunks8, k * 64,
            tiles_2x32 * k * 136, operands, stores,
        )
        yield Candidate(us, Choice(1, ("simt_nt_f32_2x32x32_947945",), (tiles_2x32,), ()))
    tiles_4x16 = -(-m // 4) * -(-n // 16)
    # 2: few rows, chunks side by side
    if align_a >= 16 and align_b >= 16 and tiles_4x16 <= 2147483647:
        us = time(
            "simt_nt_f32_4x16x32_362278", "fma", 1, sms, tiles_4x16, tiles_chunk32_chunks8, k * 64,
            tiles_4x16 * k * 80, operands, stores,
        )
        yield Candidate(us, Choice(2, ("simt_nt_f32_4x16x32_362278",), (tiles_4x16,), ()))
    tiles_4x32 = -(-m // 4) * -(-n // 32)
    # 3: few rows, chunks side by side
    if arch in SOME_0 and align_a >= 16 and align_b >= 16 and tiles_4x32 <= 2147483647:
        us = time(
            "simt_nt_f32_4x32x32_27fbce", "fma", 1, sms, tiles_4x32, tiles_chunk32_chunks8, k * 128,
            tiles_4x32 * k * 144, operands, stores,
        )
        yield Candidate(us, Choice(3, ("simt_nt_f32_4x32x32_27fbce",), (tiles_4x32,), ()))
    tiles_8x16 = -(-m // 8) * -(-n // 16)
    # 4: few rows, chunks side by side
    if align_a >= 16 and align_b >= 16 and tiles_8x16 <= 2147483647:
        us = time(
            "simt_nt_f32_8x16x32_9aefbe", "fma", 1, sms, tiles_8x16, tiles_chunk32_chunks8, k * 128,
            tiles_8x16 * k * 96, operands, stores,
        )
        yield Candidate(us, Choice(4, ("simt_nt_f32_8x16x32_9aefbe",), (tiles_8x16,), ()))
    tiles_16x16 = -(-m // 16) * -(-n // 16)
    # 5: few rows, chunks side by side
    if arch in SOME_0 and align_a >= 16 and align_b >= 16 and tiles_16x16 <= 2147483647:
        us = time(
            "simt_nt_f32_16x16x32_9d8f7e", "fma", 1, sms, tiles_16x16, tiles_chunk32_chunks8,
            k * 256, tiles_16x16 * k * 128, operands, stores,
        )
        yield Candidate(us, Choice(5, ("simt_nt_f32_16x16x32_9d8f7e",), (tiles_16x16,), ()))
    tiles_32x8 = -(-m // 32) * -(-n // 8)
    tiles_chunk16_chunks8 = -(-chunk // 16) * -(-chunks // 8)
    # 6: few rows, chunks side by side
    if arch in SOME_0 and align_a >= 16 and align_b >= 16 and tiles_32x8 <= 2147483647:
        us = time(
            "simt_nt_f32_32x8x16_ac5e9e", "fma", 1, sms, tiles_32x8, tiles_chunk16_chunks8, k * 256,
            tiles_32x8 * k * 160, operands, stores,
        )
        yield Candidate(us, Choice(6, ("simt_nt_f32_32x8x16_ac5e9e",), (tiles_32x8,), ()))
    tiles_32x32 = -(-m // 32) * -(-n // 32)
    # 7: few rows, chunks side by side
    if arch in SOME_0 and align_a >= 16 and align_b >= 16 and tiles_32x32 <= 2147483647:
        us = time(
            "simt_nt_f32_32x32x16_765a7e", "fma", 1, sms, tiles_32x32, tiles_chunk16_chunks8,
            k * 1024, tiles_32x32 * k * 256, operands, stores,
        )
        yield Candidate(us, Choice(7, ("simt_nt_f32_32x32x16_765a7e",), (tiles_32x32,), ()))
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    tiles_chunk8_chunks1 = -(-chunk // 8) * -(-chunks // 1)
    # 8: more rows, chunks side by side
    if tiles_128x128 <= 2147483647:
        us = time(
            "simt_nt_f32_128x128x8_b8d6fe", "fma", 2, sms, tiles_128x128, tiles_chunk8_chunks1,
            k * 16384, tiles_128x128 * k * 1024, operands, stores,
        )
        yield Candidate(us, Choice(8, ("simt_nt_f32_128x128x8_b8d6fe",), (tiles_128x128,), ()))
    tiles_64x32 = -(-m // 64) * -(-n // 32)
    # 9: more rows, chunks side by side
    if arch in SOME_0 and align_a >= 16 and align_b >= 16 and tiles_64x32 <= 2147483647:
        us = time(
            "simt_nt_f32_64x32x16_5b298c", "fma", 1, sms, tiles_64x32, tiles_chunk16_chunks8,
            k * 2048, tiles_64x32 * k * 384, operands, stores,
        )
        yield Candidate(us, Choice(9, ("simt_nt_f32_64x32x16_5b298c",), (tiles_64x32,), ()))
    # 10: more rows, chunks side by side
    if arch in SOME_0 and align_a >= 16 and align_b >= 16 and tiles_32x32 <= 2147483647:
        us = time(
            "simt_nt_f32_32x32x16_604682", "fma", 1, sms, tiles_32x32, tiles_chunk16_chunks8,
            k * 1024, tiles_32x32 * k * 256, operands, stores,
        )
        yield Candidate(us, Choice(10, ("simt_nt_f32_32x32x16_604682",), (tiles_32x32,), ()))
    tiles_16x32 = -(-m // 16) * -(-n // 32)
    # 11: more rows, chunks side by side
    if arch in SOME_0 and tiles_16x32 <= 2147483647:
        us = time(
            "simt_nt_f32_16x32x16_87c6c1", "fma", 1, sms, tiles_16x32, tiles_chunk16_chunks8,
            k * 512, tiles_16x32 * k * 192, operands, stores,
        )
        yield Candidate(us, Choice(11, ("simt_nt_f32_16x32x16_87c6c1",), (tiles_16x32,), ()))
    tiles_1x64 = -(-m // 1) * -(-n // 64)
    # 12: few rows: the weight streams once
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_1x64 <= 2147483647:
        us = time(
            "simt_nt_f32_1x64x64_2397d3", "fma", 1, sms, tiles_1x64, -(-k // 64), k * 64,
            tiles_1x64 * k * 260, operands, stores,
        )
        yield Candidate(us, Choice(12, ("simt_nt_f32_1x64x64_2397d3",), (tiles_1x64,), ()))
    tiles_4x128 = -(-m // 4) * -(-n // 128)
    # 13: few rows: the weight streams once
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_4x128 <= 2147483647
    ):
        us = time(
            "simt_nt_f32_4x128x64_6d5f37", "fma", 1, sms, tiles_4x128, -(-k // 64), k * 512,
            tiles_4x128 * k * 528, operands, stores,
        )
        yield Candidate(us, Choice(13, ("simt_nt_f32_4x128x64_6d5f37",), (tiles_4x128,), ()))
    tiles_8x128 = -(-m // 8) * -(-n // 128)
    # 14: few rows: the weight streams once
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_8x128 <= 2147483647
    ):
        us = time(
            "simt_nt_f32_8x128x64_770cd3", "fma", 1, sms, tiles_8x128, -(-k // 64), k * 1024,
            tiles_8x128 * k * 544, operands, stores,
        )
        yield Candidate(us, Choice(14, ("simt_nt_f32_8x128x64_770cd3",), (tiles_8x128,), ()))
    tiles_16x128 = -(-m // 16) * -(-n // 128)
    # 15: few rows: the weight streams once
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_16x128 <= 2147483647
    ):
        us = time(
            "simt_nt_f32_16x128x64_d11885", "fma", 1, sms, tiles_16x128, -(-k // 64), k * 2048,
            tiles_16x128 * k * 576, operands, stores,
        )
        yield Candidate(us, Choice(15, ("simt_nt_f32_16x128x64_d11885",), (tiles_16x128,), ()))
    tiles_32x64 = -(-m // 32) * -(-n // 64)
    # 16: few rows: the weight streams once
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_32x64 <= 2147483647:
        us = time(
            "simt_nt_f32_32x64x64_5d9b9e", "fma", 1, sms, tiles_32x64, -(-k // 64), k * 2048,
            tiles_32x64 * k * 384, operands, stores,
        )
        yield Candidate(us, Choice(16, ("simt_nt_f32_32x64x64_5d9b9e",), (tiles_32x64,), ()))
    # 17: one chain
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_128x128 <= 2147483647:
        us = time(
            "simt_nt_f32_128x128x16_2949eb", "fma", 2, sms, tiles_128x128, -(-k // 16), k * 16384,
            tiles_128x128 * k * 1024, operands, stores,
        )
        yield Candidate(us, Choice(17, ("simt_nt_f32_128x128x16_2949eb",), (tiles_128x128,), ()))
    # 18: one chain
    if chunks <= 1 and tiles_128x128 <= 2147483647:
        us = time(
            "simt_nt_f32_128x128x8_e4287f", "fma", 2, sms, tiles_128x128, -(-k // 8), k * 16384,
            tiles_128x128 * k * 1024, operands, stores,
        )
        yield Candidate(us, Choice(18, ("simt_nt_f32_128x128x8_e4287f",), (tiles_128x128,), ()))
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 19: one chain
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_64x64 <= 2147483647:
        us = time(
            "simt_nt_f32_64x64x16_01c375", "fma", 4, sms, tiles_64x64, -(-k // 16), k * 4096,
            tiles_64x64 * k * 512, operands, stores,
        )
        yield Candidate(us, Choice(19, ("simt_nt_f32_64x64x16_01c375",), (tiles_64x64,), ()))
    # 20: one chain
    if chunks <= 1 and tiles_32x64 <= 2147483647:
        us = time(
            "simt_nt_f32_32x64x16_622c08", "fma", 4, sms, tiles_32x64, -(-k // 16), k * 2048,
            tiles_32x64 * k * 384, operands, stores,
        )
        yield Candidate(us, Choice(20, ("simt_nt_f32_32x64x16_622c08",), (tiles_32x64,), ()))
    # 21: one chain
    if chunks <= 1 and tiles_16x32 <= 2147483647:
        us = time(
            "simt_nt_f32_16x32x32_71535d", "fma", 4, sms, tiles_16x32, -(-k // 32), k * 512,
            tiles_16x32 * k * 192, operands, stores,
        )
        yield Candidate(us, Choice(21, ("simt_nt_f32_16x32x32_71535d",), (tiles_16x32,), ()))
    operands_1 = 0 + m * -(-k // 4) * 16
    pieces_m_k4 = m * -(-k // 4)
    # 22: A off 16 bytes: copied first
    if (
        pieces_m_k4 * 16 <= 268435456 and align_b >= 16 and chunks <= 1
        and tiles_128x128 <= 2147483647
    ):
        us = time(
            "realign_b32x1_92a718", "fma", 8, sms, -(-pieces_m_k4 // 512), 1, 0, operands_1,
            operands_1, operands_1,
        )
        us += time(
            "simt_nt_f32_128x128x16_2949eb", "fma", 2, sms, tiles_128x128, -(-k // 16), k * 16384,
            tiles_128x128 * k * 1024, operands, stores,
        )
        choice = Choice(
            22, ("realign_b32x1_92a718", "simt_nt_f32_128x128x16_2949eb"),
            (-(-pieces_m_k4 // 512), tiles_128x128), (pieces_m_k4 * 16,),
        )
        yield Candidate(us, choice)
    operands_2 = 0 + n * -(-k // 4) * 16
    pieces_n_k4 = n * -(-k // 4)
    # 23: B off 16 bytes: copied first
    if (
        pieces_n_k4 * 16 <= 268435456 and align_a >= 16 and chunks <= 1
        and tiles_128x128 <= 2147483647
    ):
        us = time(
            "realign_b32x1_92a718", "fma", 8, sms, -(-pieces_n_k4 // 512), 1, 0, operands_2,
            operands_2, operands_2,
        )
        us += time(
            "simt_nt_f32_128x128x16_2949eb", "fma", 2, sms, tiles_128x128, -(-k // 16), k * 16384,
            tiles_128x128 * k * 1024, operands, stores,
        )
        choice = Choice(
            23, ("realign_b32x1_92a718", "simt_nt_f32_128x128x16_2949eb"),
            (-(-pieces_n_k4 // 512), tiles_128x128), (pieces_n_k4 * 16,),
        )
        yield Candidate(us, choice)
    operands_3 = 0 + m * -(-k // 4) * 16 + n * -(-k // 4) * 16
    # 24: A and B off 16 bytes: copied first
    if (
        pieces_m_k4 * 16 <= 268435456 and pieces_n_k4 * 16 <= 268435456 and chunks <= 1
        and tiles_128x128 <= 2147483647
    ):
        us = time(
            "realign_b32x2_89cb89", "fma", 8, sms, -(-pieces_m_k4 // 512) + -(-pieces_n_k4 // 512),
            1, 0, operands_3, operands_3, operands_3,
        )
        us += time(
            "simt_nt_f32_128x128x16_2949eb", "fma", 2, sms, tiles_128x128, -(-k // 16), k * 16384,
            tiles_128x128 * k * 1024, operands, stores,
        )
        choice = Choice(
            24, ("realign_b32x2_89cb89", "simt_nt_f32_128x128x16_2949eb"),
            (-(-pieces_m_k4 // 512) + -(-pieces_n_k4 // 512), tiles_128x128),
            (pieces_m_k4 * 16, pieces_n_k4 * 16),
        )
        yield Candidate(us, choice)
    # 25: A off 16 bytes: copied first
    if (
        arch in SOME_0
        and pieces_m_k4 * 16 <= 268435456 and align_b >= 16 and tiles_64x32 <= 2147483647
    ):
        us = time(
            "realign_b32x1_92a718", "fma", 8, sms, -(-pieces_m_k4 // 512), 1, 0, operands_1,
            operands_1, operands_1,
        )
        us += time(
            "simt_nt_f32_64x32x16_5b298c", "fma", 1, sms, tiles_64x32, tiles_chunk16_chunks8,
            k * 2048, tiles_64x32 * k * 384, operands, stores,
        )
        choice = Choice(
            25, ("realign_b32x1_92a718", "simt_nt_f32_64x32x16_5b298c"),
            (-(-pieces_m_k4 // 512), tiles_64x32), (pieces_m_k4 * 16,),
        )
        yield Candidate(us, choice)
    # 26: B off 16 bytes: copied first
    if (
        arch in SOME_0
        and pieces_n_k4 * 16 <= 268435456 and align_a >= 16 and tiles_64x32 <= 2147483647
    ):
        us = time(
            "realign_b32x1_92a718", "fma", 8, sms, -(-pieces_n_k4 // 512), 1, 0, operands_2,
            operands_2, operands_2,
        )
        us += time(
            "simt_nt_f32_64x32x16_5b298c", "fma", 1, sms, tiles_64x32, tiles_chunk16_chunks8,
            k * 2048, tiles_64x32 * k * 384, operands, stores,
        )
        choice = Choice(
            26, ("realign_b32x1_92a718", "simt_nt_f32_64x32x16_5b298c"),
            (-(-pieces_n_k4 // 512), tiles_64x32), (pieces_n_k4 * 16,),
        )
        yield Candidate(us, choice)
    # 27: A and B off 16 bytes: copied first
    if (
        arch in SOME_0
        and pieces_m_k4 * 16 <= 268435456 and pieces_n_k4 * 16 <= 268435456
        and tiles_64x32 <= 2147483647
    ):
        us = time(
            "realign_b32x2_89cb89", "fma", 8, sms, -(-pieces_m_k4 // 512) + -(-pieces_n_k4 // 512),
            1, 0, operands_3, operands_3, operands_3,
        )
        us += time(
            "simt_nt_f32_64x32x16_5b298c", "fma", 1, sms, tiles_64x32, tiles_chunk16_chunks8,
            k * 2048, tiles_64x32 * k * 384, operands, stores,
        )
        choice = Choice(
            27, ("realign_b32x2_89cb89", "simt_nt_f32_64x32x16_5b298c"),
            (-(-pieces_m_k4 // 512) + -(-pieces_n_k4 // 512), tiles_64x32),
            (pieces_m_k4 * 16, pieces_n_k4 * 16),
        )
        yield Candidate(us, choice)
    tiles_chunk16_chunks1 = -(-chunk // 16) * -(-chunks // 1)
    # 28: everything else: any size, alignment and plan
    us = time(
        "simt_nt_f32_64x64x16_0a5ee2", "fma", 1, sms, tiles_64x64, tiles_chunk16_chunks1, k * 4096,
        tiles_64x64 * k * 512, operands, stores,
    )
    choice = Choice(28, ("simt_nt_f32_64x64x16_0a5ee2",), (min(tiles_64x64, 2147483647),), ())
    yield Candidate(us, choice)
