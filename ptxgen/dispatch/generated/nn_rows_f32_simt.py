"""Dispatch of NN rows f32 simt: products under the plan 'rows'.

Generated from ptxgen.tiles.TABLES["NN", "rows", "f32", "simt"]; do not edit.
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
    if arch in SOME_0 and align_a >= 16 and align_b >= 16 and tiles_2x32 <= 2147483647:
        us = time(
            "simt_nn_f32_2x32x32_2461bb", "fma", 1, sms, tiles_2x32, tiles_chunk32_chunks8, k * 64,
            tiles_2x32 * k * 136, operands, stores,
        )
        yield Candidate(us, Choice(0, ("simt_nn_f32_2x32x32_2461bb",), (tiles_2x32,), ()))
    tiles_4x32 = -(-m // 4) * -(-n // 32)
    # 1: few rows, chunks side by side
    if arch in SOME_0 and align_a >= 16 and align_b >= 16 and tiles_4x32 <= 2147483647:
        us = time(
            "simt_nn_f32_4x32x32_45a5fc", "fma", 1, sms, tiles_4x32, tiles_chunk32_chunks8, k * 128,
            tiles_4x32 * k * 144, operands, stores,
        )
        yield Candidate(us, Choice(1, ("simt_nn_f32_4x32x32_45a5fc",), (tiles_4x32,), ()))
    tiles_chunk16_chunks8 = -(-chunk // 16) * -(-chunks // 8)
    # 2: few rows, chunks side by side
    if align_b >= 16 and tiles_4x32 <= 2147483647:
        us = time(
            "simt_nn_f32_4x32x16_e13d9e", "fma", 1, sms, tiles_4x32, tiles_chunk16_chunks8, k * 128,
            tiles_4x32 * k * 144, operands, stores,
        )
        yield Candidate(us, Choice(2, ("simt_nn_f32_4x32x16_e13d9e",), (tiles_4x32,), ()))
    tiles_8x16 = -(-m // 8) * -(-n // 16)
    # 3: few rows, chunks side by side
    if arch in SOME_0 and align_a >= 16 and align_b >= 16 and tiles_8x16 <= 2147483647:
        us = time(
            "simt_nn_f32_8x16x32_43d607", "fma", 1, sms, tiles_8x16, tiles_chunk32_chunks8, k * 128,
            tiles_8x16 * k * 96, operands, stores,
        )
        yield Candidate(us, Choice(3, ("simt_nn_f32_8x16x32_43d607",), (tiles_8x16,), ()))
    tiles_8x32 = -(-m // 8) * -(-n // 32)
    # 4: few rows, chunks side by side
    if align_b >= 16 and tiles_8x32 <= 2147483647:
        us = time(
            "simt_nn_f32_8x32x16_a9acde", "fma", 1, sms, tiles_8x32, tiles_chunk16_chunks8, k * 256,
            tiles_8x32 * k * 160, operands, stores,
        )
        yield Candidate(us, Choice(4, ("simt_nn_f32_8x32x16_a9acde",), (tiles_8x32,), ()))
    tiles_16x16 = -(-m // 16) * -(-n // 16)
    # 5: few rows, chunks side by side
    if arch in SOME_0 and align_a >= 16 and align_b >= 16 and tiles_16x16 <= 2147483647:
        us = time(
            "simt_nn_f32_16x16x32_b99aa6", "fma", 1, sms, tiles_16x16, tiles_chunk32_chunks8,
            k * 256, tiles_16x16 * k * 128, operands, stores,
        )
        yield Candidate(us, Choice(5, ("simt_nn_f32_16x16x32_b99aa6",), (tiles_16x16,), ()))
    tiles_16x32 = -(-m // 16) * -(-n // 32)
    # 6: few rows, chunks side by side
    if arch in SOME_0 and align_a >= 16 and align_b >= 16 and tiles_16x32 <= 2147483647:
        us = time(
            "simt_nn_f32_16x32x16_6c0738", "fma", 1, sms, tiles_16x32, tiles_chunk16_chunks8,
            k * 512, tiles_16x32 * k * 192, operands, stores,
        )
        yield Candidate(us, Choice(6, ("simt_nn_f32_16x32x16_6c0738",), (tiles_16x32,), ()))
    tiles_32x16 = -(-m // 32) * -(-n // 16)
    # 7: few rows, chunks side by side
    if arch in SOME_0 and align_a >= 16 and align_b >= 16 and tiles_32x16 <= 2147483647:
        us = time(
            "simt_nn_f32_32x16x16_ca3542", "fma", 1, sms, tiles_32x16, tiles_chunk16_chunks8,
            k * 512, tiles_32x16 * k * 192, operands, stores,
        )
        yield Candidate(us, Choice(7, ("simt_nn_f32_32x16x16_ca3542",), (tiles_32x16,), ()))
    tiles_32x32 = -(-m // 32) * -(-n // 32)
    # 8: few rows, chunks side by side
    if arch in SOME_0 and align_a >= 16 and align_b >= 16 and tiles_32x32 <= 2147483647:
        us = time(
            "simt_nn_f32_32x32x16_95bc35", "fma", 1, sms, tiles_32x32, tiles_chunk16_chunks8,
            k * 1024, tiles_32x32 * k * 256, operands, stores,
        )
        yield Candidate(us, Choice(8, ("simt_nn_f32_32x32x16_95bc35",), (tiles_32x32,), ()))
    tiles_64x256 = -(-m // 64) * -(-n // 256)
    tiles_chunk8_chunks1 = -(-chunk // 8) * -(-chunks // 1)
    # 9: more rows, chunks side by side
    if arch in SOME_0 and align_b >= 16 and tiles_64x256 <= 2147483647:
        us = time(
            "simt_nn_f32_64x256x8_0db658", "fma", 2, sms, tiles_64x256, tiles_chunk8_chunks1,
            k * 16384, tiles_64x256 * k * 1280, operands, stores,
        )
        yield Candidate(us, Choice(9, ("simt_nn_f32_64x256x8_0db658",), (tiles_64x256,), ()))
    tiles_32x64 = -(-m // 32) * -(-n // 64)
    # 10: more rows, chunks side by side
    if arch in SOME_0 and align_a >= 16 and align_b >= 16 and tiles_32x64 <= 2147483647:
        us = time(
            "simt_nn_f32_32x64x16_70b665", "fma", 1, sms, tiles_32x64, tiles_chunk16_chunks8,
            k * 2048, tiles_32x64 * k * 384, operands, stores,
        )
        yield Candidate(us, Choice(10, ("simt_nn_f32_32x64x16_70b665",), (tiles_32x64,), ()))
    tiles_16x64 = -(-m // 16) * -(-n // 64)
    # 11: more rows, chunks side by side
    if arch in SOME_0 and align_a >= 16 and align_b >= 16 and tiles_16x64 <= 2147483647:
        us = time(
            "simt_nn_f32_16x64x16_371f11", "fma", 1, sms, tiles_16x64, tiles_chunk16_chunks8,
            k * 1024, tiles_16x64 * k * 320, operands, stores,
        )
        yield Candidate(us, Choice(11, ("simt_nn_f32_16x64x16_371f11",), (tiles_16x64,), ()))
    # 12: more rows, chunks side by side
    if arch in SOME_0 and align_a >= 16 and align_b >= 16 and tiles_16x32 <= 2147483647:
        us = time(
            "simt_nn_f32_16x32x32_75901d", "fma", 1, sms, tiles_16x32, tiles_chunk32_chunks8,
            k * 512, tiles_16x32 * k * 192, operands, stores,
        )
        yield Candidate(us, Choice(12, ("simt_nn_f32_16x32x32_75901d",), (tiles_16x32,), ()))
    tiles_8x64 = -(-m // 8) * -(-n // 64)
    # 13: few rows: the weight streams once
    if align_b >= 16 and chunks <= 1 and tiles_8x64 <= 2147483647:
        us = time(
            "simt_nn_f32_8x64x64_568ac5", "fma", 1, sms, tiles_8x64, -(-k // 64), k * 512,
            tiles_8x64 * k * 288, operands, stores,
        )
        yield Candidate(us, Choice(13, ("simt_nn_f32_8x64x64_568ac5",), (tiles_8x64,), ()))
    # 14: few rows: the weight streams once
    if align_b >= 16 and chunks <= 1 and tiles_16x64 <= 2147483647:
        us = time(
            "simt_nn_f32_16x64x64_2cb8a0", "fma", 1, sms, tiles_16x64, -(-k // 64), k * 1024,
            tiles_16x64 * k * 320, operands, stores,
        )
        yield Candidate(us, Choice(14, ("simt_nn_f32_16x64x64_2cb8a0",), (tiles_16x64,), ()))
    tiles_32x128 = -(-m // 32) * -(-n // 128)
    # 15: few rows: the weight streams once
    if align_b >= 16 and chunks <= 1 and tiles_32x128 <= 2147483647:
        us = time(
            "simt_nn_f32_32x128x32_0ef257", "fma", 1, sms, tiles_32x128, -(-k // 32), k * 4096,
            tiles_32x128 * k * 640, operands, stores,
        )
        yield Candidate(us, Choice(15, ("simt_nn_f32_32x128x32_0ef257",), (tiles_32x128,), ()))
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    # 16: one chain
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_128x128 <= 2147483647:
        us = time(
            "simt_nn_f32_128x128x16_83a595", "fma", 2, sms, tiles_128x128, -(-k // 16), k * 16384,
            tiles_128x128 * k * 1024, operands, stores,
        )
        yield Candidate(us, Choice(16, ("simt_nn_f32_128x128x16_83a595",), (tiles_128x128,), ()))
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 17: one chain
    if align_b >= 16 and chunks <= 1 and tiles_64x64 <= 2147483647:
        us = time(
            "simt_nn_f32_64x64x32_9b1beb", "fma", 4, sms, tiles_64x64, -(-k // 32), k * 4096,
            tiles_64x64 * k * 512, operands, stores,
        )
        yield Candidate(us, Choice(17, ("simt_nn_f32_64x64x32_9b1beb",), (tiles_64x64,), ()))
    # 18: one chain
    if align_b >= 16 and chunks <= 1 and tiles_32x64 <= 2147483647:
        us = time(
            "simt_nn_f32_32x64x16_cde40b", "fma", 4, sms, tiles_32x64, -(-k // 16), k * 2048,
            tiles_32x64 * k * 384, operands, stores,
        )
        yield Candidate(us, Choice(18, ("simt_nn_f32_32x64x16_cde40b",), (tiles_32x64,), ()))
    # 19: one chain
    if align_b >= 16 and chunks <= 1 and tiles_16x32 <= 2147483647:
        us = time(
            "simt_nn_f32_16x32x32_22d5c9", "fma", 4, sms, tiles_16x32, -(-k // 32), k * 512,
            tiles_16x32 * k * 192, operands, stores,
        )
        yield Candidate(us, Choice(19, ("simt_nn_f32_16x32x32_22d5c9",), (tiles_16x32,), ()))
    operands_1 = 0 + m * -(-k // 4) * 16
    pieces_m_k4 = m * -(-k // 4)
    # 20: A off 16 bytes: copied first
    if (
        pieces_m_k4 * 16 <= 268435456 and align_b >= 16 and chunks <= 1
        and tiles_128x128 <= 2147483647
    ):
        us = time(
            "realign_b32x1_92a718", "fma", 8, sms, -(-pieces_m_k4 // 512), 1, 0, operands_1,
            operands_1, operands_1,
        )
        us += time(
            "simt_nn_f32_128x128x16_83a595", "fma", 2, sms, tiles_128x128, -(-k // 16), k * 16384,
            tiles_128x128 * k * 1024, operands, stores,
        )
        choice = Choice(
            20, ("realign_b32x1_92a718", "simt_nn_f32_128x128x16_83a595"),
            (-(-pieces_m_k4 // 512), tiles_128x128), (pieces_m_k4 * 16,),
        )
        yield Candidate(us, choice)
    operands_2 = 0 + k * -(-n // 4) * 16
    pieces_k_n4 = k * -(-n // 4)
    # 21: B off 16 bytes: copied first
    if (
        pieces_k_n4 * 16 <= 268435456 and align_a >= 16 and chunks <= 1
        and tiles_128x128 <= 2147483647
    ):
        us = time(
            "realign_b32x1_92a718", "fma", 8, sms, -(-pieces_k_n4 // 512), 1, 0, operands_2,
            operands_2, operands_2,
        )
        us += time(
            "simt_nn_f32_128x128x16_83a595", "fma", 2, sms, tiles_128x128, -(-k // 16), k * 16384,
            tiles_128x128 * k * 1024, operands, stores,
        )
        choice = Choice(
            21, ("realign_b32x1_92a718", "simt_nn_f32_128x128x16_83a595"),
            (-(-pieces_k_n4 // 512), tiles_128x128), (pieces_k_n4 * 16,),
        )
        yield Candidate(us, choice)
    operands_3 = 0 + m * -(-k // 4) * 16 + k * -(-n // 4) * 16
    # 22: A and B off 16 bytes: copied first
    if (
        pieces_m_k4 * 16 <= 268435456 and pieces_k_n4 * 16 <= 268435456 and chunks <= 1
        and tiles_128x128 <= 2147483647
    ):
        us = time(
            "realign_b32x2_89cb89", "fma", 8, sms, -(-pieces_m_k4 // 512) + -(-pieces_k_n4 // 512),
            1, 0, operands_3, operands_3, operands_3,
        )
        us += time(
            "simt_nn_f32_128x128x16_83a595", "fma", 2, sms, tiles_128x128, -(-k // 16), k * 16384,
            tiles_128x128 * k * 1024, operands, stores,
        )
        choice = Choice(
            22, ("realign_b32x2_89cb89", "simt_nn_f32_128x128x16_83a595"),
            (-(-pieces_m_k4 // 512) + -(-pieces_k_n4 // 512), tiles_128x128),
            (pieces_m_k4 * 16, pieces_k_n4 * 16),
        )
        yield Candidate(us, choice)
    # 23: B off 16 bytes: copied first
    if arch in SOME_0 and pieces_k_n4 * 16 <= 268435456 and tiles_64x256 <= 2147483647:
        us = time(
            "realign_b32x1_92a718", "fma", 8, sms, -(-pieces_k_n4 // 512), 1, 0, operands_2,
            operands_2, operands_2,
        )
        us += time(
            "simt_nn_f32_64x256x8_0db658", "fma", 2, sms, tiles_64x256, tiles_chunk8_chunks1,
            k * 16384, tiles_64x256 * k * 1280, operands, stores,
        )
        choice = Choice(
            23, ("realign_b32x1_92a718", "simt_nn_f32_64x256x8_0db658"),
            (-(-pieces_k_n4 // 512), tiles_64x256), (pieces_k_n4 * 16,),
        )
        yield Candidate(us, choice)
    # 24: A off 16 bytes: copied first
    if (
        arch in SOME_0
        and pieces_m_k4 * 16 <= 268435456 and align_b >= 16 and tiles_32x64 <= 2147483647
    ):
        us = time(
            "realign_b32x1_92a718", "fma", 8, sms, -(-pieces_m_k4 // 512), 1, 0, operands_1,
            operands_1, operands_1,
        )
        us += time(
            "simt_nn_f32_32x64x16_70b665", "fma", 1, sms, tiles_32x64, tiles_chunk16_chunks8,
            k * 2048, tiles_32x64 * k * 384, operands, stores,
        )
        choice = Choice(
            24, ("realign_b32x1_92a718", "simt_nn_f32_32x64x16_70b665"),
            (-(-pieces_m_k4 // 512), tiles_32x64), (pieces_m_k4 * 16,),
        )
        yield Candidate(us, choice)
    # 25: B off 16 bytes: copied first
    if (
        arch in SOME_0
        and pieces_k_n4 * 16 <= 268435456 and align_a >= 16 and tiles_32x64 <= 2147483647
    ):
        us = time(
            "realign_b32x1_92a718", "fma", 8, sms, -(-pieces_k_n4 // 512), 1, 0, operands_2,
            operands_2, operands_2,
        )
        us += time(
            "simt_nn_f32_32x64x16_70b665", "fma", 1, sms, tiles_32x64, tiles_chunk16_chunks8,
            k * 2048, tiles_32x64 * k * 384, operands, stores,
        )
        choice = Choice(
            25, ("realign_b32x1_92a718", "simt_nn_f32_32x64x16_70b665"),
            (-(-pieces_k_n4 // 512), tiles_32x64), (pieces_k_n4 * 16,),
        )
        yield Candidate(us, choice)
    # 26: A and B off 16 bytes: copied first
    if (
        arch in SOME_0
        and pieces_m_k4 * 16 <= 268435456 and pieces_k_n4 * 16 <= 268435456
        and tiles_32x64 <= 2147483647
    ):
        us = time(
            "realign_b32x2_89cb89", "fma", 8, sms, -(-pieces_m_k4 // 512) + -(-pieces_k_n4 // 512),
            1, 0, operands_3, operands_3, operands_3,
        )
        us += time(
            "simt_nn_f32_32x64x16_70b665", "fma", 1, sms, tiles_32x64, tiles_chunk16_chunks8,
            k * 2048, tiles_32x64 * k * 384, operands, stores,
        )
        choice = Choice(
            26, ("realign_b32x2_89cb89", "simt_nn_f32_32x64x16_70b665"),
            (-(-pieces_m_k4 // 512) + -(-pieces_k_n4 // 512), tiles_32x64),
            (pieces_m_k4 * 16, pieces_k_n4 * 16),
        )
        yield Candidate(us, choice)
    # 27: operands off 16 bytes
    if tiles_8x32 <= 2147483647:
        us = time(
            "simt_nn_f32_8x32x16_a4eea3", "fma", 1, sms, tiles_8x32, tiles_chunk16_chunks8, k * 256,
            tiles_8x32 * k * 160, operands, stores,
        )
        yield Candidate(us, Choice(27, ("simt_nn_f32_8x32x16_a4eea3",), (tiles_8x32,), ()))
    # 28: operands off 16 bytes
    if arch in SOME_0 and tiles_32x32 <= 2147483647:
        us = time(
            "simt_nn_f32_32x32x16_eacec4", "fma", 1, sms, tiles_32x32, tiles_chunk16_chunks8,
            k * 1024, tiles_32x32 * k * 256, operands, stores,
        )
        yield Candidate(us, Choice(28, ("simt_nn_f32_32x32x16_eacec4",), (tiles_32x32,), ()))
    # 29: operands off 16 bytes
    if chunks <= 1 and tiles_128x128 <= 2147483647:
        us = time(
            "simt_nn_f32_128x128x8_0b8ba8", "fma", 2, sms, tiles_128x128, -(-k // 8), k * 16384,
            tiles_128x128 * k * 1024, operands, stores,
        )
        yield Candidate(us, Choice(29, ("simt_nn_f32_128x128x8_0b8ba8",), (tiles_128x128,), ()))
    # 30: operands off 16 bytes
    if chunks <= 1 and tiles_16x32 <= 2147483647:
        us = time(
            "simt_nn_f32_16x32x32_ef831f", "fma", 4, sms, tiles_16x32, -(-k // 32), k * 512,
            tiles_16x32 * k * 192, operands, stores,
        )
        yield Candidate(us, Choice(30, ("simt_nn_f32_16x32x32_ef831f",), (tiles_16x32,), ()))
    tiles_chunk16_chunks1 = -(-chunk // 16) * -(-chunks // 1)
    # 31: everything else: any size, alignment and plan
    us = time(
        "simt_nn_f32_64x64x16_bf213f", "fma", 1, sms, tiles_64x64, tiles_chunk16_chunks1, k * 4096,
        tiles_64x64 * k * 512, operands, stores,
    )
    choice = Choice(31, ("simt_nn_f32_64x64x16_bf213f",), (min(tiles_64x64, 2147483647),), ())
    yield Candidate(us, choice)
