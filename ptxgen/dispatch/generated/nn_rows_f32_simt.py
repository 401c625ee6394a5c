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
    chunk_part_1 = -(-min(-(-k // 8), 1024) // 16) * 16
    chunk = max(1, min(k, chunk_part_1 if n <= 4096 and (1024 if n <= 512 else 2048) <= k else k))
    chunks = -(-k // chunk)
    operands = (m + n) * k * 4
    stores = chunks * m * n * 4
    stores_1 = m * n * 4
    tiles_8x64 = -(-m // 8) * -(-n // 64)
    # 0: chunks apart, by a CTA each
    if (
        align_b >= 16 and stores <= 268435456 and tiles_8x64 * chunks <= 2147483647
        and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "simt_nn_f32_8x64x32_427bfb", "fma", 1, sms, tiles_8x64 * chunks, -(-chunk // 32),
            chunk * 512, tiles_8x64 * k * 288, operands, stores,
        )
        us += time(
            "reduce_f32_128x4_ab14e2", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            0, ("simt_nn_f32_8x64x32_427bfb", "reduce_f32_128x4_ab14e2"),
            (tiles_8x64 * chunks, -(-(m * n) // 512)), (stores,),
        )
        yield Candidate(us, choice)
    # 1: chunks apart, by a CTA each
    if (
        stores <= 268435456 and tiles_8x64 * chunks <= 2147483647
        and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "simt_nn_f32_8x64x32_0ceaef", "fma", 1, sms, tiles_8x64 * chunks, -(-chunk // 32),
            chunk * 512, tiles_8x64 * k * 288, operands, stores,
        )
        us += time(
            "reduce_f32_128x4_ab14e2", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            1, ("simt_nn_f32_8x64x32_0ceaef", "reduce_f32_128x4_ab14e2"),
            (tiles_8x64 * chunks, -(-(m * n) // 512)), (stores,),
        )
        yield Candidate(us, choice)
    tiles_8x16 = -(-m // 8) * -(-n // 16)
    # 2: chunks apart, by a CTA each
    if (
        stores <= 268435456 and tiles_8x16 * chunks <= 2147483647
        and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "simt_nn_f32_8x16x64_7100c8", "fma", 6, sms, tiles_8x16 * chunks, -(-chunk // 64),
            chunk * 128, tiles_8x16 * k * 96, operands, stores,
        )
        us += time(
            "reduce_f32_128x4_ab14e2", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            2, ("simt_nn_f32_8x16x64_7100c8", "reduce_f32_128x4_ab14e2"),
            (tiles_8x16 * chunks, -(-(m * n) // 512)), (stores,),
        )
        yield Candidate(us, choice)
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 3: chunks apart, by a CTA each
    if (
        align_b >= 16 and stores <= 268435456 and tiles_64x64 * chunks <= 2147483647
        and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "simt_nn_f32_64x64x32_93dc37", "fma", 2, sms, tiles_64x64 * chunks, -(-chunk // 32),
            chunk * 4096, tiles_64x64 * k * 512, operands, stores,
        )
        us += time(
            "reduce_f32_128x4_ab14e2", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            3, ("simt_nn_f32_64x64x32_93dc37", "reduce_f32_128x4_ab14e2"),
            (tiles_64x64 * chunks, -(-(m * n) // 512)), (stores,),
        )
        yield Candidate(us, choice)
    tiles_64x128 = -(-m // 64) * -(-n // 128)
    # 4: chunks apart, by a CTA each
    if (
        align_a >= 16 and align_b >= 16 and stores <= 268435456
        and tiles_64x128 * chunks <= 2147483647 and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "simt_nn_f32_64x128x16_ce0d71", "fma", 3, sms, tiles_64x128 * chunks, -(-chunk // 16),
            chunk * 8192, tiles_64x128 * k * 768, operands, stores,
        )
        us += time(
            "reduce_f32_128x4_ab14e2", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            4, ("simt_nn_f32_64x128x16_ce0d71", "reduce_f32_128x4_ab14e2"),
            (tiles_64x128 * chunks, -(-(m * n) // 512)), (stores,),
        )
        yield Candidate(us, choice)
    tiles_32x64 = -(-m // 32) * -(-n // 64)
    # 5: chunks apart, by a CTA each
    if (
        align_b >= 16 and stores <= 268435456 and tiles_32x64 * chunks <= 2147483647
        and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "simt_nn_f32_32x64x16_94a46d", "fma", 4, sms, tiles_32x64 * chunks, -(-chunk // 16),
            chunk * 2048, tiles_32x64 * k * 384, operands, stores,
        )
        us += time(
            "reduce_f32_128x4_ab14e2", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            5, ("simt_nn_f32_32x64x16_94a46d", "reduce_f32_128x4_ab14e2"),
            (tiles_32x64 * chunks, -(-(m * n) // 512)), (stores,),
        )
        yield Candidate(us, choice)
    # 6: chunks apart, by a CTA each
    if (
        stores <= 268435456 and tiles_32x64 * chunks <= 2147483647
        and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "simt_nn_f32_32x64x16_9ac4a5", "fma", 4, sms, tiles_32x64 * chunks, -(-chunk // 16),
            chunk * 2048, tiles_32x64 * k * 384, operands, stores,
        )
        us += time(
            "reduce_f32_128x4_ab14e2", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            6, ("simt_nn_f32_32x64x16_9ac4a5", "reduce_f32_128x4_ab14e2"),
            (tiles_32x64 * chunks, -(-(m * n) // 512)), (stores,),
        )
        yield Candidate(us, choice)
    tiles_128x32 = -(-m // 128) * -(-n // 32)
    # 7: chunks of few columns apart, by a CTA each
    if (
        stores <= 268435456 and tiles_128x32 * chunks <= 2147483647
        and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "simt_nn_f32_128x32x32_9757b9", "fma", 3, sms, tiles_128x32 * chunks, -(-chunk // 32),
            chunk * 4096, tiles_128x32 * k * 640, operands, stores,
        )
        us += time(
            "reduce_f32_128x4_ab14e2", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            7, ("simt_nn_f32_128x32x32_9757b9", "reduce_f32_128x4_ab14e2"),
            (tiles_128x32 * chunks, -(-(m * n) // 512)), (stores,),
        )
        yield Candidate(us, choice)
    tiles_128x64 = -(-m // 128) * -(-n // 64)
    # 8: chunks of few columns apart, by a CTA each
    if (
        stores <= 268435456 and tiles_128x64 * chunks <= 2147483647
        and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "simt_nn_f32_128x64x16_f9a1a8", "fma", 3, sms, tiles_128x64 * chunks, -(-chunk // 16),
            chunk * 8192, tiles_128x64 * k * 768, operands, stores,
        )
        us += time(
            "reduce_f32_128x4_ab14e2", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            8, ("simt_nn_f32_128x64x16_f9a1a8", "reduce_f32_128x4_ab14e2"),
            (tiles_128x64 * chunks, -(-(m * n) // 512)), (stores,),
        )
        yield Candidate(us, choice)
    tiles_2x32 = -(-m // 2) * -(-n // 32)
    tiles_chunk32_chunks8 = -(-chunk // 32) * -(-chunks // 8)
    # 9: few rows, chunks side by side
    if arch in SOME_0 and align_a >= 16 and align_b >= 16 and tiles_2x32 <= 2147483647:
        us = time(
            "simt_nn_f32_2x32x32_8087d5", "fma", 1, sms, tiles_2x32, tiles_chunk32_chunks8, k * 64,
            tiles_2x32 * k * 136, operands, stores_1,
        )
        yield Candidate(us, Choice(9, ("simt_nn_f32_2x32x32_8087d5",), (tiles_2x32,), ()))
    # 10: few rows, chunks side by side
    if arch in SOME_0 and align_a >= 16 and align_b >= 16 and tiles_8x16 <= 2147483647:
        us = time(
            "simt_nn_f32_8x16x32_b8868e", "fma", 1, sms, tiles_8x16, tiles_chunk32_chunks8, k * 128,
            tiles_8x16 * k * 96, operands, stores_1,
        )
        yield Candidate(us, Choice(10, ("simt_nn_f32_8x16x32_b8868e",), (tiles_8x16,), ()))
    tiles_64x256 = -(-m // 64) * -(-n // 256)
    tiles_chunk8_chunks1 = -(-chunk // 8) * -(-chunks // 1)
    # 11: more rows, chunks side by side or in turns
    if arch in SOME_0 and align_b >= 16 and tiles_64x256 <= 2147483647:
        us = time(
            "simt_nn_f32_64x256x8_8967fc", "fma", 2, sms, tiles_64x256, tiles_chunk8_chunks1,
            k * 16384, tiles_64x256 * k * 1280, operands, stores_1,
        )
        yield Candidate(us, Choice(11, ("simt_nn_f32_64x256x8_8967fc",), (tiles_64x256,), ()))
    # 12: few rows: the weight streams once
    if align_b >= 16 and chunks <= 1 and tiles_8x64 <= 2147483647:
        us = time(
            "simt_nn_f32_8x64x64_eac7c4", "fma", 1, sms, tiles_8x64, -(-k // 64), k * 512,
            tiles_8x64 * k * 288, operands, stores_1,
        )
        yield Candidate(us, Choice(12, ("simt_nn_f32_8x64x64_eac7c4",), (tiles_8x64,), ()))
    # 13: few rows: the weight streams once
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_8x16 <= 2147483647:
        us = time(
            "simt_nn_f32_8x16x64_79f51f", "fma", 3, sms, tiles_8x16, -(-k // 64), k * 128,
            tiles_8x16 * k * 96, operands, stores_1,
        )
        yield Candidate(us, Choice(13, ("simt_nn_f32_8x16x64_79f51f",), (tiles_8x16,), ()))
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    # 14: one chain
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_128x128 <= 2147483647:
        us = time(
            "simt_nn_f32_128x128x16_7dd998", "fma", 2, sms, tiles_128x128, -(-k // 16), k * 16384,
            tiles_128x128 * k * 1024, operands, stores_1,
        )
        yield Candidate(us, Choice(14, ("simt_nn_f32_128x128x16_7dd998",), (tiles_128x128,), ()))
    # 15: one chain
    if align_b >= 16 and chunks <= 1 and tiles_64x64 <= 2147483647:
        us = time(
            "simt_nn_f32_64x64x32_fe4ef8", "fma", 4, sms, tiles_64x64, -(-k // 32), k * 4096,
            tiles_64x64 * k * 512, operands, stores_1,
        )
        yield Candidate(us, Choice(15, ("simt_nn_f32_64x64x32_fe4ef8",), (tiles_64x64,), ()))
    # 16: one chain
    if align_b >= 16 and chunks <= 1 and tiles_32x64 <= 2147483647:
        us = time(
            "simt_nn_f32_32x64x16_7badc1", "fma", 4, sms, tiles_32x64, -(-k // 16), k * 2048,
            tiles_32x64 * k * 384, operands, stores_1,
        )
        yield Candidate(us, Choice(16, ("simt_nn_f32_32x64x16_7badc1",), (tiles_32x64,), ()))
    tiles_16x32 = -(-m // 16) * -(-n // 32)
    # 17: one chain
    if align_b >= 16 and chunks <= 1 and tiles_16x32 <= 2147483647:
        us = time(
            "simt_nn_f32_16x32x32_59168b", "fma", 4, sms, tiles_16x32, -(-k // 32), k * 512,
            tiles_16x32 * k * 192, operands, stores_1,
        )
        yield Candidate(us, Choice(17, ("simt_nn_f32_16x32x32_59168b",), (tiles_16x32,), ()))
    # 18: operands off 16 bytes
    if chunks <= 1 and tiles_128x128 <= 2147483647:
        us = time(
            "simt_nn_f32_128x128x8_f8719a", "fma", 2, sms, tiles_128x128, -(-k // 8), k * 16384,
            tiles_128x128 * k * 1024, operands, stores_1,
        )
        yield Candidate(us, Choice(18, ("simt_nn_f32_128x128x8_f8719a",), (tiles_128x128,), ()))
    # 19: operands off 16 bytes
    if chunks <= 1 and tiles_16x32 <= 2147483647:
        us = time(
            "simt_nn_f32_16x32x32_bb4ed4", "fma", 4, sms, tiles_16x32, -(-k // 32), k * 512,
            tiles_16x32 * k * 192, operands, stores_1,
        )
        yield Candidate(us, Choice(19, ("simt_nn_f32_16x32x32_bb4ed4",), (tiles_16x32,), ()))
    tiles_chunk16_chunks1 = -(-chunk // 16) * -(-chunks // 1)
    # 20: everything else: any size, alignment and plan
    us = time(
        "simt_nn_f32_64x64x16_ae662c", "fma", 1, sms, tiles_64x64, tiles_chunk16_chunks1, k * 4096,
        tiles_64x64 * k * 512, operands, stores_1,
    )
    choice = Choice(20, ("simt_nn_f32_64x64x16_ae662c",), (min(tiles_64x64, 2147483647),), ())
    yield Candidate(us, choice)
