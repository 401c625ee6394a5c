"""Dispatch of nf4 NN rows f32 simt: products under the plan 'rows', with NF4 weights.

Generated from ptxgen.tiles.TABLES["nf4", "NN", "rows", "f32", "simt"]; do not edit.
Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time

SOME_0 = frozenset(("sm_80", "sm_87", "sm_90", "sm_100", "sm_103", "sm_110"))


def candidates(
    arch: str, m: int, n: int, k: int, sms: int, align_a: int, time: Time
) -> Iterator[Candidate]:
    """What can serve a problem, with predicted times."""
    chunk_part_1 = -(-min(-(-k // 8), 1024) // 16) * 16
    chunk = max(1, min(k, chunk_part_1 if n <= 4096 and (1024 if n <= 512 else 2048) <= k else k))
    chunks = -(-k // chunk)
    operands = k * -(-n // 64) * 36
    stores = k * -(-n // 64) * 256
    operands_1 = (m + n) * k * 4
    stores_1 = chunks * m * n * 4
    stores_2 = m * n * 4
    pieces_k_n64 = k * -(-n // 64)
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 0: the weight dequantised; chunks apart, by a CTA each
    if (
        stores <= 1073741824 and stores_1 <= 268435456 and tiles_64x64 * chunks <= 2147483647
        and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "nf4_f32_bbca54", "fma", 8, sms, -(-(pieces_k_n64 * 8) // 1024), 1, 0, operands,
            operands, stores,
        )
        us += time(
            "simt_nn_f32_64x64x32_93dc37", "fma", 2, sms, tiles_64x64 * chunks, -(-chunk // 32),
            chunk * 4096, tiles_64x64 * k * 512, operands_1, stores_1,
        )
        us += time(
            "reduce_f32_128x4_ab14e2", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores_1, stores_1, stores_2,
        )
        choice = Choice(
            0, ("nf4_f32_bbca54", "simt_nn_f32_64x64x32_93dc37", "reduce_f32_128x4_ab14e2"),
            (-(-(pieces_k_n64 * 8) // 1024), tiles_64x64 * chunks, -(-(m * n) // 512)),
            (stores, stores_1),
        )
        yield Candidate(us, choice)
    tiles_64x128 = -(-m // 64) * -(-n // 128)
    # 1: the weight dequantised; chunks apart, by a CTA each
    if (
        stores <= 1073741824 and align_a >= 16 and stores_1 <= 268435456
        and tiles_64x128 * chunks <= 2147483647 and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "nf4_f32_bbca54", "fma", 8, sms, -(-(pieces_k_n64 * 8) // 1024), 1, 0, operands,
            operands, stores,
        )
        us += time(
            "simt_nn_f32_64x128x16_ce0d71", "fma", 3, sms, tiles_64x128 * chunks, -(-chunk // 16),
            chunk * 8192, tiles_64x128 * k * 768, operands_1, stores_1,
        )
        us += time(
            "reduce_f32_128x4_ab14e2", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores_1, stores_1, stores_2,
        )
        choice = Choice(
            1, ("nf4_f32_bbca54", "simt_nn_f32_64x128x16_ce0d71", "reduce_f32_128x4_ab14e2"),
            (-(-(pieces_k_n64 * 8) // 1024), tiles_64x128 * chunks, -(-(m * n) // 512)),
            (stores, stores_1),
        )
        yield Candidate(us, choice)
    tiles_32x64 = -(-m // 32) * -(-n // 64)
    # 2: the weight dequantised; chunks apart, by a CTA each
    if (
        stores <= 1073741824 and stores_1 <= 268435456 and tiles_32x64 * chunks <= 2147483647
        and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "nf4_f32_bbca54", "fma", 8, sms, -(-(pieces_k_n64 * 8) // 1024), 1, 0, operands,
            operands, stores,
        )
        us += time(
            "simt_nn_f32_32x64x16_94a46d", "fma", 4, sms, tiles_32x64 * chunks, -(-chunk // 16),
            chunk * 2048, tiles_32x64 * k * 384, operands_1, stores_1,
        )
        us += time(
            "reduce_f32_128x4_ab14e2", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores_1, stores_1, stores_2,
        )
        choice = Choice(
            2, ("nf4_f32_bbca54", "simt_nn_f32_32x64x16_94a46d", "reduce_f32_128x4_ab14e2"),
            (-(-(pieces_k_n64 * 8) // 1024), tiles_32x64 * chunks, -(-(m * n) // 512)),
            (stores, stores_1),
        )
        yield Candidate(us, choice)
    # 3: the weight dequantised; chunks apart, by a CTA each
    if (
        stores <= 1073741824 and stores_1 <= 268435456 and tiles_32x64 * chunks <= 2147483647
        and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "nf4_f32_bbca54", "fma", 8, sms, -(-(pieces_k_n64 * 8) // 1024), 1, 0, operands,
            operands, stores,
        )
        us += time(
            "simt_nn_f32_32x64x16_9ac4a5", "fma", 4, sms, tiles_32x64 * chunks, -(-chunk // 16),
            chunk * 2048, tiles_32x64 * k * 384, operands_1, stores_1,
        )
        us += time(
            "reduce_f32_128x4_ab14e2", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores_1, stores_1, stores_2,
        )
        choice = Choice(
            3, ("nf4_f32_bbca54", "simt_nn_f32_32x64x16_9ac4a5", "reduce_f32_128x4_ab14e2"),
            (-(-(pieces_k_n64 * 8) // 1024), tiles_32x64 * chunks, -(-(m * n) // 512)),
            (stores, stores_1),
        )
        yield Candidate(us, choice)
    tiles_128x32 = -(-m // 128) * -(-n // 32)
    # 4: the weight dequantised; chunks of few columns apart, by a CTA each
    if (
        stores <= 1073741824 and stores_1 <= 268435456 and tiles_128x32 * chunks <= 2147483647
        and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "nf4_f32_bbca54", "fma", 8, sms, -(-(pieces_k_n64 * 8) // 1024), 1, 0, operands,
            operands, stores,
        )
        us += time(
            "simt_nn_f32_128x32x32_9757b9", "fma", 3, sms, tiles_128x32 * chunks, -(-chunk // 32),
            chunk * 4096, tiles_128x32 * k * 640, operands_1, stores_1,
        )
        us += time(
            "reduce_f32_128x4_ab14e2", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores_1, stores_1, stores_2,
        )
        choice = Choice(
            4, ("nf4_f32_bbca54", "simt_nn_f32_128x32x32_9757b9", "reduce_f32_128x4_ab14e2"),
            (-(-(pieces_k_n64 * 8) // 1024), tiles_128x32 * chunks, -(-(m * n) // 512)),
            (stores, stores_1),
        )
        yield Candidate(us, choice)
    tiles_128x64 = -(-m // 128) * -(-n // 64)
    # 5: the weight dequantised; chunks of few columns apart, by a CTA each
    if (
        stores <= 1073741824 and stores_1 <= 268435456 and tiles_128x64 * chunks <= 2147483647
        and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "nf4_f32_bbca54", "fma", 8, sms, -(-(pieces_k_n64 * 8) // 1024), 1, 0, operands,
            operands, stores,
        )
        us += time(
            "simt_nn_f32_128x64x16_f9a1a8", "fma", 3, sms, tiles_128x64 * chunks, -(-chunk // 16),
            chunk * 8192, tiles_128x64 * k * 768, operands_1, stores_1,
        )
        us += time(
            "reduce_f32_128x4_ab14e2", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores_1, stores_1, stores_2,
        )
        choice = Choice(
            5, ("nf4_f32_bbca54", "simt_nn_f32_128x64x16_f9a1a8", "reduce_f32_128x4_ab14e2"),
            (-(-(pieces_k_n64 * 8) // 1024), tiles_128x64 * chunks, -(-(m * n) // 512)),
            (stores, stores_1),
        )
        yield Candidate(us, choice)
    tiles_64x256 = -(-m // 64) * -(-n // 256)
    tiles_chunk8_chunks1 = -(-chunk // 8) * -(-chunks // 1)
    # 6: the weight dequantised; more rows, chunks side by side or in turns
    if arch in SOME_0 and stores <= 1073741824 and tiles_64x256 <= 2147483647:
        us = time(
            "nf4_f32_bbca54", "fma", 8, sms, -(-(pieces_k_n64 * 8) // 1024), 1, 0, operands,
            operands, stores,
        )
        us += time(
            "simt_nn_f32_64x256x8_8967fc", "fma", 2, sms, tiles_64x256, tiles_chunk8_chunks1,
            k * 16384, tiles_64x256 * k * 1280, operands_1, stores_2,
        )
        choice = Choice(
            6, ("nf4_f32_bbca54", "simt_nn_f32_64x256x8_8967fc"),
            (-(-(pieces_k_n64 * 8) // 1024), tiles_64x256), (stores,),
        )
        yield Candidate(us, choice)
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    # 7: the weight dequantised; one chain
    if stores <= 1073741824 and align_a >= 16 and chunks <= 1 and tiles_128x128 <= 2147483647:
        us = time(
            "nf4_f32_bbca54", "fma", 8, sms, -(-(pieces_k_n64 * 8) // 1024), 1, 0, operands,
            operands, stores,
        )
        us += time(
            "simt_nn_f32_128x128x16_7dd998", "fma", 2, sms, tiles_128x128, -(-k // 16), k * 16384,
            tiles_128x128 * k * 1024, operands_1, stores_2,
        )
        choice = Choice(
            7, ("nf4_f32_bbca54", "simt_nn_f32_128x128x16_7dd998"),
            (-(-(pieces_k_n64 * 8) // 1024), tiles_128x128), (stores,),
        )
        yield Candidate(us, choice)
    # 8: the weight dequantised; one chain
    if stores <= 1073741824 and chunks <= 1 and tiles_64x64 <= 2147483647:
        us = time(
            "nf4_f32_bbca54", "fma", 8, sms, -(-(pieces_k_n64 * 8) // 1024), 1, 0, operands,
            operands, stores,
        )
        us += time(
            "simt_nn_f32_64x64x32_fe4ef8", "fma", 4, sms, tiles_64x64, -(-k // 32), k * 4096,
            tiles_64x64 * k * 512, operands_1, stores_2,
        )
        choice = Choice(
            8, ("nf4_f32_bbca54", "simt_nn_f32_64x64x32_fe4ef8"),
            (-(-(pieces_k_n64 * 8) // 1024), tiles_64x64), (stores,),
        )
        yield Candidate(us, choice)
    # 9: the weight dequantised; one chain
    if stores <= 1073741824 and chunks <= 1 and tiles_32x64 <= 2147483647:
        us = time(
            "nf4_f32_bbca54", "fma", 8, sms, -(-(pieces_k_n64 * 8) // 1024), 1, 0, operands,
            operands, stores,
        )
        us += time(
            "simt_nn_f32_32x64x16_7badc1", "fma", 4, sms, tiles_32x64, -(-k // 16), k * 2048,
            tiles_32x64 * k * 384, operands_1, stores_2,
        )
        choice = Choice(
            9, ("nf4_f32_bbca54", "simt_nn_f32_32x64x16_7badc1"),
            (-(-(pieces_k_n64 * 8) // 1024), tiles_32x64), (stores,),
        )
        yield Candidate(us, choice)
    # 10: the weight dequantised; operands off 16 bytes
    if stores <= 1073741824 and chunks <= 1 and tiles_128x128 <= 2147483647:
        us = time(
            "nf4_f32_bbca54", "fma", 8, sms, -(-(pieces_k_n64 * 8) // 1024), 1, 0, operands,
            operands, stores,
        )
        us += time(
            "simt_nn_f32_128x128x8_f8719a", "fma", 2, sms, tiles_128x128, -(-k // 8), k * 16384,
            tiles_128x128 * k * 1024, operands_1, stores_2,
        )
        choice = Choice(
            10, ("nf4_f32_bbca54", "simt_nn_f32_128x128x8_f8719a"),
            (-(-(pieces_k_n64 * 8) // 1024), tiles_128x128), (stores,),
        )
        yield Candidate(us, choice)
    tiles_chunk16_chunks1 = -(-chunk // 16) * -(-chunks // 1)
    # 11: the weight dequantised; everything else: any size, alignment and plan
    if stores <= 1073741824:
        us = time(
            "nf4_f32_bbca54", "fma", 8, sms, -(-(pieces_k_n64 * 8) // 1024), 1, 0, operands,
            operands, stores,
        )
        us += time(
            "simt_nn_f32_64x64x16_ae662c", "fma", 1, sms, tiles_64x64, tiles_chunk16_chunks1,
            k * 4096, tiles_64x64 * k * 512, operands_1, stores_2,
        )
        choice = Choice(
            11, ("nf4_f32_bbca54", "simt_nn_f32_64x64x16_ae662c"),
            (-(-(pieces_k_n64 * 8) // 1024), min(tiles_64x64, 2147483647)), (stores,),
        )
        yield Candidate(us, choice)
