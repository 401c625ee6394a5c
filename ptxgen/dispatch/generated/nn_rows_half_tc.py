"""Dispatch of NN rows half tc: products under the plan 'rows'.

Generated from ptxgen.tiles.TABLES["NN", "rows", "half", "tc"]; do not edit.
Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time

SOME_0 = frozenset(("sm_90",))
SOME_1 = frozenset(("sm_80", "sm_87", "sm_90", "sm_100", "sm_103", "sm_110"))


def candidates(
    arch: str, m: int, n: int, k: int, sms: int, align_a: int, align_b: int, time: Time
) -> Iterator[Candidate]:
    """What can serve a problem, with predicted times."""
    chunk_part_1 = -(-min(-(-k // 8), 2048) // 128) * 128
    chunk = max(1, min(k, chunk_part_1 if n <= 2048 and max(6 * n, 4096) <= k else k))
    chunks = -(-k // chunk)
    operands = (m + n) * k * 2
    stores = chunks * m * n * 4
    stores_1 = m * n * 2
    tiles_16x32 = -(-m // 16) * -(-n // 32)
    # 0: few rows of few outputs
    if (
        align_a >= 16 and align_b >= 16 and stores <= 268435456
        and tiles_16x32 * chunks <= 2147483647 and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "mma_nn_bf16_16x32x128_45c9e9", "mma", 1, sms, tiles_16x32 * chunks, -(-chunk // 128),
            chunk * 512, tiles_16x32 * k * (96 + (min(k % 16, 1) * 16 + min(n % 16, 1) * 32) * 6),
            operands, stores,
        )
        us += time(
            "reduce_bf16_128x4_9cc9ba", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            0, ("mma_nn_bf16_16x32x128_45c9e9", "reduce_bf16_128x4_9cc9ba"),
            (tiles_16x32 * chunks, -(-(m * n) // 512)), (stores,),
        )
        yield Candidate(us, choice)
    tiles_192x192 = -(-m // 192) * -(-n // 192)
    # 1: a long reduction: a CTA per tile and chunk
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and (chunk % 64 == 0 or chunks <= 1)
        and stores <= 268435456 and sms >= 1 and m + 192 <= 2147483647 and n + 192 <= 2147483647
        and k + 64 <= 2147483647 and tiles_192x192 * chunks + sms <= 4294967295
        and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "wgmma_nn_bf16_192x192x64_a0d89a", "wgmma", 1, sms, tiles_192x192 * chunks,
            -(-chunk // 64), chunk * 36864,
            tiles_192x192 * k * (768 + (min(k % 16, 1) * 192 + min(n % 16, 1) * 192) * 6), operands,
            stores,
        )
        us += time(
            "reduce_bf16_128x4_9cc9ba", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            1, ("wgmma_nn_bf16_192x192x64_a0d89a", "reduce_bf16_128x4_9cc9ba"),
            (min(tiles_192x192 * chunks, sms) * 1, -(-(m * n) // 512)), (stores,),
        )
        yield Candidate(us, choice)
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    # 2: a long reduction: a CTA per tile and chunk
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and (chunk % 64 == 0 or chunks <= 1)
        and stores <= 268435456 and sms >= 1 and m + 128 <= 2147483647 and n + 128 <= 2147483647
        and k + 64 <= 2147483647 and tiles_128x128 * chunks + sms <= 4294967295
        and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "wgmma_nn_bf16_128x128x64_f64026", "wgmma", 1, sms, tiles_128x128 * chunks,
            -(-chunk // 64), chunk * 16384,
            tiles_128x128 * k * (512 + (min(k % 16, 1) * 128 + min(n % 16, 1) * 128) * 6), operands,
            stores,
        )
        us += time(
            "reduce_bf16_128x4_9cc9ba", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            2, ("wgmma_nn_bf16_128x128x64_f64026", "reduce_bf16_128x4_9cc9ba"),
            (min(tiles_128x128 * chunks, sms) * 1, -(-(m * n) // 512)), (stores,),
        )
        yield Candidate(us, choice)
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 3: a long reduction: a CTA per tile and chunk
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and (chunk % 64 == 0 or chunks <= 1)
        and stores <= 268435456 and sms >= 1 and m + 64 <= 2147483647 and n + 64 <= 2147483647
        and k + 64 <= 2147483647 and tiles_64x64 * chunks + sms <= 4294967295
        and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "wgmma_nn_bf16_64x64x64_168fdf", "wgmma", 1, sms, tiles_64x64 * chunks, -(-chunk // 64),
            chunk * 4096, tiles_64x64 * k * (256 + (min(k % 16, 1) * 64 + min(n % 16, 1) * 64) * 6),
            operands, stores,
        )
        us += time(
            "reduce_bf16_128x4_9cc9ba", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            3, ("wgmma_nn_bf16_64x64x64_168fdf", "reduce_bf16_128x4_9cc9ba"),
            (min(tiles_64x64 * chunks, sms) * 1, -(-(m * n) // 512)), (stores,),
        )
        yield Candidate(us, choice)
    # 4: a long reduction: a CTA per tile and chunk
    if (
        align_a >= 16 and align_b >= 16 and stores <= 268435456
        and tiles_64x64 * chunks <= 2147483647 and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "mma_nn_bf16_64x64x128_1f5afd", "mma", 2, sms, tiles_64x64 * chunks, -(-chunk // 128),
            chunk * 4096, tiles_64x64 * k * (256 + (min(k % 16, 1) * 64 + min(n % 16, 1) * 64) * 6),
            operands, stores,
        )
        us += time(
            "reduce_bf16_128x4_9cc9ba", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            4, ("mma_nn_bf16_64x64x128_1f5afd", "reduce_bf16_128x4_9cc9ba"),
            (tiles_64x64 * chunks, -(-(m * n) // 512)), (stores,),
        )
        yield Candidate(us, choice)
    # 5: a long reduction: a CTA per tile and chunk
    if (
        align_a >= 16 and align_b >= 16 and stores <= 268435456
        and tiles_128x128 * chunks <= 2147483647 and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "mma_nn_bf16_128x128x64_d74e2e", "mma", 2, sms, tiles_128x128 * chunks, -(-chunk // 64),
            chunk * 16384,
            tiles_128x128 * k * (512 + (min(k % 16, 1) * 128 + min(n % 16, 1) * 128) * 6), operands,
            stores,
        )
        us += time(
            "reduce_bf16_128x4_9cc9ba", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            5, ("mma_nn_bf16_128x128x64_d74e2e", "reduce_bf16_128x4_9cc9ba"),
            (tiles_128x128 * chunks, -(-(m * n) // 512)), (stores,),
        )
        yield Candidate(us, choice)
    # 6: a long reduction: a CTA per tile and chunk
    if (
        stores <= 268435456 and tiles_64x64 * chunks <= 2147483647
        and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "mma_nn_bf16_64x64x32_721827", "mma", 4, sms, tiles_64x64 * chunks, -(-chunk // 32),
            chunk * 4096, tiles_64x64 * k * (256 + (min(k % 16, 1) * 64 + min(n % 16, 1) * 64) * 6),
            operands, stores,
        )
        us += time(
            "reduce_bf16_128x4_9cc9ba", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            6, ("mma_nn_bf16_64x64x32_721827", "reduce_bf16_128x4_9cc9ba"),
            (tiles_64x64 * chunks, -(-(m * n) // 512)), (stores,),
        )
        yield Candidate(us, choice)
    operands_1 = 0 + m * -(-k // 8) * 16
    pieces_m_k8 = m * -(-k // 8)
    # 7: A off 16 bytes: copied first
    if (
        arch in SOME_0
        and pieces_m_k8 * 16 <= 1073741824 and align_b >= 16 and (chunk % 64 == 0 or chunks <= 1)
        and stores <= 268435456 and sms >= 1 and m + 192 <= 2147483647 and n + 192 <= 2147483647
        and k + 64 <= 2147483647 and tiles_192x192 * chunks + sms <= 4294967295
        and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "realign_b16x1_7953b4", "fma", 8, sms, -(-pieces_m_k8 // 512), 1, 0, operands_1,
            operands_1, operands_1,
        )
        us += time(
            "wgmma_nn_bf16_192x192x64_a0d89a", "wgmma", 1, sms, tiles_192x192 * chunks,
            -(-chunk // 64), chunk * 36864,
            tiles_192x192 * k * (768 + (min(k % 16, 1) * 192 + min(n % 16, 1) * 192) * 6), operands,
            stores,
        )
        us += time(
            "reduce_bf16_128x4_9cc9ba", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            7,
            ("realign_b16x1_7953b4", "wgmma_nn_bf16_192x192x64_a0d89a", "reduce_bf16_128x4_9cc9ba"),
            (-(-pieces_m_k8 // 512), min(tiles_192x192 * chunks, sms) * 1, -(-(m * n) // 512)),
            (pieces_m_k8 * 16, stores),
        )
        yield Candidate(us, choice)
    operands_2 = 0 + m * -(-k // 8) * 16 + k * -(-n // 8) * 16
    pieces_k_n8 = k * -(-n // 8)
    # 8: A and B off 16 bytes: copied first
    if (
        arch in SOME_0
        and pieces_m_k8 * 16 <= 1073741824 and pieces_k_n8 * 16 <= 1073741824
        and (chunk % 64 == 0 or chunks <= 1) and stores <= 268435456 and sms >= 1
        and m + 192 <= 2147483647 and n + 192 <= 2147483647 and k + 64 <= 2147483647
        and tiles_192x192 * chunks + sms <= 4294967295 and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "realign_b16x2_d789c8", "fma", 8, sms, -(-pieces_m_k8 // 512) + -(-pieces_k_n8 // 512),
            1, 0, operands_2, operands_2, operands_2,
        )
        us += time(
            "wgmma_nn_bf16_192x192x64_a0d89a", "wgmma", 1, sms, tiles_192x192 * chunks,
            -(-chunk // 64), chunk * 36864,
            tiles_192x192 * k * (768 + (min(k % 16, 1) * 192 + min(n % 16, 1) * 192) * 6), operands,
            stores,
        )
        us += time(
            "reduce_bf16_128x4_9cc9ba", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            8,
            ("realign_b16x2_d789c8", "wgmma_nn_bf16_192x192x64_a0d89a", "reduce_bf16_128x4_9cc9ba"),
            (
                -(-pieces_m_k8 // 512) + -(-pieces_k_n8 // 512),
                min(tiles_192x192 * chunks, sms) * 1, -(-(m * n) // 512),
            ), (pieces_m_k8 * 16, pieces_k_n8 * 16, stores),
        )
        yield Candidate(us, choice)
    # 9: A off 16 bytes: copied first
    if (
        arch in SOME_0
        and pieces_m_k8 * 16 <= 1073741824 and align_b >= 16 and (chunk % 64 == 0 or chunks <= 1)
        and stores <= 268435456 and sms >= 1 and m + 128 <= 2147483647 and n + 128 <= 2147483647
        and k + 64 <= 2147483647 and tiles_128x128 * chunks + sms <= 4294967295
        and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "realign_b16x1_7953b4", "fma", 8, sms, -(-pieces_m_k8 // 512), 1, 0, operands_1,
            operands_1, operands_1,
        )
        us += time(
            "wgmma_nn_bf16_128x128x64_f64026", "wgmma", 1, sms, tiles_128x128 * chunks,
            -(-chunk // 64), chunk * 16384,
            tiles_128x128 * k * (512 + (min(k % 16, 1) * 128 + min(n % 16, 1) * 128) * 6), operands,
            stores,
        )
        us += time(
            "reduce_bf16_128x4_9cc9ba", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            9,
            ("realign_b16x1_7953b4", "wgmma_nn_bf16_128x128x64_f64026", "reduce_bf16_128x4_9cc9ba"),
            (-(-pieces_m_k8 // 512), min(tiles_128x128 * chunks, sms) * 1, -(-(m * n) // 512)),
            (pieces_m_k8 * 16, stores),
        )
        yield Candidate(us, choice)
    # 10: A and B off 16 bytes: copied first
    if (
        arch in SOME_0
        and pieces_m_k8 * 16 <= 1073741824 and pieces_k_n8 * 16 <= 1073741824
        and (chunk % 64 == 0 or chunks <= 1) and stores <= 268435456 and sms >= 1
        and m + 128 <= 2147483647 and n + 128 <= 2147483647 and k + 64 <= 2147483647
        and tiles_128x128 * chunks + sms <= 4294967295 and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "realign_b16x2_d789c8", "fma", 8, sms, -(-pieces_m_k8 // 512) + -(-pieces_k_n8 // 512),
            1, 0, operands_2, operands_2, operands_2,
        )
        us += time(
            "wgmma_nn_bf16_128x128x64_f64026", "wgmma", 1, sms, tiles_128x128 * chunks,
            -(-chunk // 64), chunk * 16384,
            tiles_128x128 * k * (512 + (min(k % 16, 1) * 128 + min(n % 16, 1) * 128) * 6), operands,
            stores,
        )
        us += time(
            "reduce_bf16_128x4_9cc9ba", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            10,
            ("realign_b16x2_d789c8", "wgmma_nn_bf16_128x128x64_f64026", "reduce_bf16_128x4_9cc9ba"),
            (
                -(-pieces_m_k8 // 512) + -(-pieces_k_n8 // 512),
                min(tiles_128x128 * chunks, sms) * 1, -(-(m * n) // 512),
            ), (pieces_m_k8 * 16, pieces_k_n8 * 16, stores),
        )
        yield Candidate(us, choice)
    # 11: A off 16 bytes: copied first
    if (
        arch in SOME_0
        and pieces_m_k8 * 16 <= 1073741824 and align_b >= 16 and (chunk % 64 == 0 or chunks <= 1)
        and stores <= 268435456 and sms >= 1 and m + 64 <= 2147483647 and n + 64 <= 2147483647
        and k + 64 <= 2147483647 and tiles_64x64 * chunks + sms <= 4294967295
        and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "realign_b16x1_7953b4", "fma", 8, sms, -(-pieces_m_k8 // 512), 1, 0, operands_1,
            operands_1, operands_1,
        )
        us += time(
            "wgmma_nn_bf16_64x64x64_168fdf", "wgmma", 1, sms, tiles_64x64 * chunks, -(-chunk // 64),
            chunk * 4096, tiles_64x64 * k * (256 + (min(k % 16, 1) * 64 + min(n % 16, 1) * 64) * 6),
            operands, stores,
        )
        us += time(
            "reduce_bf16_128x4_9cc9ba", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            11,
            ("realign_b16x1_7953b4", "wgmma_nn_bf16_64x64x64_168fdf", "reduce_bf16_128x4_9cc9ba"),
            (-(-pieces_m_k8 // 512), min(tiles_64x64 * chunks, sms) * 1, -(-(m * n) // 512)),
            (pieces_m_k8 * 16, stores),
        )
        yield Candidate(us, choice)
    # 12: A and B off 16 bytes: copied first
    if (
        arch in SOME_0
        and pieces_m_k8 * 16 <= 1073741824 and pieces_k_n8 * 16 <= 1073741824
        and (chunk % 64 == 0 or chunks <= 1) and stores <= 268435456 and sms >= 1
        and m + 64 <= 2147483647 and n + 64 <= 2147483647 and k + 64 <= 2147483647
        and tiles_64x64 * chunks + sms <= 4294967295 and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "realign_b16x2_d789c8", "fma", 8, sms, -(-pieces_m_k8 // 512) + -(-pieces_k_n8 // 512),
            1, 0, operands_2, operands_2, operands_2,
        )
        us += time(
            "wgmma_nn_bf16_64x64x64_168fdf", "wgmma", 1, sms, tiles_64x64 * chunks, -(-chunk // 64),
            chunk * 4096, tiles_64x64 * k * (256 + (min(k % 16, 1) * 64 + min(n % 16, 1) * 64) * 6),
            operands, stores,
        )
        us += time(
            "reduce_bf16_128x4_9cc9ba", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            12,
            ("realign_b16x2_d789c8", "wgmma_nn_bf16_64x64x64_168fdf", "reduce_bf16_128x4_9cc9ba"),
            (
                -(-pieces_m_k8 // 512) + -(-pieces_k_n8 // 512), min(tiles_64x64 * chunks, sms) * 1,
                -(-(m * n) // 512),
            ), (pieces_m_k8 * 16, pieces_k_n8 * 16, stores),
        )
        yield Candidate(us, choice)
    tiles_8x64 = -(-m // 8) * -(-n // 64)
    # 13: few rows: the weight streams once
    if (
        arch in SOME_1
        and align_a >= 16 and align_b >= 16 and (chunk % 64 == 0 or chunks <= 1)
        and tiles_8x64 <= 2147483647
    ):
        us = time(
            "mma_nn_bf16_8x64x128_0b0b35", "mma", 1, sms, tiles_8x64, -(-k // 128), k * 512,
            tiles_8x64 * k * (144 + (min(k % 16, 1) * 8 + min(n % 16, 1) * 64) * 6), operands,
            stores_1,
        )
        yield Candidate(us, Choice(13, ("mma_nn_bf16_8x64x128_0b0b35",), (tiles_8x64,), ()))
    tiles_8x32 = -(-m // 8) * -(-n // 32)
    # 14: few rows: the weight streams once
    if (
        align_a >= 16 and align_b >= 16 and (chunk % 128 == 0 or chunks <= 1)
        and tiles_8x32 <= 2147483647
    ):
        us = time(
            "mma_nn_bf16_8x32x128_d6cffc", "mma", 1, sms, tiles_8x32, -(-k // 128), k * 256,
            tiles_8x32 * k * (80 + (min(k % 16, 1) * 8 + min(n % 16, 1) * 32) * 6), operands,
            stores_1,
        )
        yield Candidate(us, Choice(14, ("mma_nn_bf16_8x32x128_d6cffc",), (tiles_8x32,), ()))
    # 15: few rows: the weight streams once
    if (
        align_a >= 16 and align_b >= 16 and (chunk % 128 == 0 or chunks <= 1)
        and tiles_16x32 <= 2147483647
    ):
        us = time(
            "mma_nn_bf16_16x32x128_d40c24", "mma", 1, sms, tiles_16x32, -(-k // 128), k * 512,
            tiles_16x32 * k * (96 + (min(k % 16, 1) * 16 + min(n % 16, 1) * 32) * 6), operands,
            stores_1,
        )
        yield Candidate(us, Choice(15, ("mma_nn_bf16_16x32x128_d40c24",), (tiles_16x32,), ()))
    tiles_16x64 = -(-m // 16) * -(-n // 64)
    # 16: few rows: the weight streams once
    if (
        align_a >= 16 and align_b >= 16 and (chunk % 128 == 0 or chunks <= 1)
        and tiles_16x64 <= 2147483647
    ):
        us = time(
            "mma_nn_bf16_16x64x128_4f47f4", "mma", 1, sms, tiles_16x64, -(-k // 128), k * 1024,
            tiles_16x64 * k * (160 + (min(k % 16, 1) * 16 + min(n % 16, 1) * 64) * 6), operands,
            stores_1,
        )
        yield Candidate(us, Choice(16, ("mma_nn_bf16_16x64x128_4f47f4",), (tiles_16x64,), ()))
    tiles_32x32 = -(-m // 32) * -(-n // 32)
    # 17: few rows: the weight streams once
    if (
        align_a >= 16 and align_b >= 16 and (chunk % 128 == 0 or chunks <= 1)
        and tiles_32x32 <= 2147483647
    ):
        us = time(
            "mma_nn_bf16_32x32x128_5486ce", "mma", 1, sms, tiles_32x32, -(-k // 128), k * 1024,
            tiles_32x32 * k * (128 + (min(k % 16, 1) * 32 + min(n % 16, 1) * 32) * 6), operands,
            stores_1,
        )
        yield Candidate(us, Choice(17, ("mma_nn_bf16_32x32x128_5486ce",), (tiles_32x32,), ()))
    tiles_32x64 = -(-m // 32) * -(-n // 64)
    # 18: few rows: the weight streams once
    if (
        arch in SOME_1
        and align_a >= 16 and align_b >= 16 and (chunk % 128 == 0 or chunks <= 1)
        and tiles_32x64 <= 2147483647
    ):
        us = time(
            "mma_nn_bf16_32x64x128_868388", "mma", 1, sms, tiles_32x64, -(-k // 128), k * 2048,
            tiles_32x64 * k * (192 + (min(k % 16, 1) * 32 + min(n % 16, 1) * 64) * 6), operands,
            stores_1,
        )
        yield Candidate(us, Choice(18, ("mma_nn_bf16_32x64x128_868388",), (tiles_32x64,), ()))
    tiles_64x128 = -(-m // 64) * -(-n // 128)
    # 19: few rows: the weight streams once
    if (
        arch in SOME_1
        and align_a >= 16 and align_b >= 16 and (chunk % 64 == 0 or chunks <= 1)
        and tiles_64x128 <= 2147483647
    ):
        us = time(
            "mma_nn_bf16_64x128x64_0a56ed", "mma", 1, sms, tiles_64x128, -(-k // 64), k * 8192,
            tiles_64x128 * k * (384 + (min(k % 16, 1) * 64 + min(n % 16, 1) * 128) * 6), operands,
            stores_1,
        )
        yield Candidate(us, Choice(19, ("mma_nn_bf16_64x128x64_0a56ed",), (tiles_64x128,), ()))
    tiles_128x256 = -(-m // 128) * -(-n // 256)
    # 20: many rows, by wgmma
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 256 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x256 + sms <= 4294967295
    ):
        us = time(
            "wgmma_nn_bf16_128x256x64_86d2ac", "wgmma", 1, sms, tiles_128x256, -(-k // 64),
            k * 32768,
            tiles_128x256 * k * (768 + (min(k % 16, 1) * 128 + min(n % 16, 1) * 256) * 6), operands,
            stores_1,
        )
        choice = Choice(
            20, ("wgmma_nn_bf16_128x256x64_86d2ac",), (min(tiles_128x256, sms) * 1,), (),
        )
        yield Candidate(us, choice)
    tiles_256x256 = -(-m // 256) * -(-n // 256)
    # 21: many rows, by wgmma
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 2 and m + 256 <= 2147483647
        and n + 256 <= 2147483647 and k + 64 <= 2147483647
        and tiles_256x256 + sms // 2 <= 4294967295
    ):
        us = time(
            "wgmma_nn_bf16_128x256x64_74d273", "wgmma", 1, sms, tiles_256x256 * 2, -(-k // 64),
            k * 32768,
            tiles_256x256 * k * (1024 + (min(k % 16, 1) * 256 + min(n % 16, 1) * 256) * 6),
            operands, stores_1,
        )
        choice = Choice(
            21, ("wgmma_nn_bf16_128x256x64_74d273",), (min(tiles_256x256, sms // 2) * 2,), (),
        )
        yield Candidate(us, choice)
    tiles_256x192 = -(-m // 256) * -(-n // 192)
    # 22: many rows, by wgmma
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 2 and m + 256 <= 2147483647
        and n + 192 <= 2147483647 and k + 64 <= 2147483647
        and tiles_256x192 + sms // 2 <= 4294967295
    ):
        us = time(
            "wgmma_nn_bf16_128x192x64_abc7eb", "wgmma", 1, sms, tiles_256x192 * 2, -(-k // 64),
            k * 24576,
            tiles_256x192 * k * (896 + (min(k % 16, 1) * 256 + min(n % 16, 1) * 192) * 6), operands,
            stores_1,
        )
        choice = Choice(
            22, ("wgmma_nn_bf16_128x192x64_abc7eb",), (min(tiles_256x192, sms // 2) * 2,), (),
        )
        yield Candidate(us, choice)
    # 23: many rows, by wgmma
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 192 <= 2147483647
        and n + 192 <= 2147483647 and k + 64 <= 2147483647 and tiles_192x192 + sms <= 4294967295
    ):
        us = time(
            "wgmma_nn_bf16_192x192x64_0577ba", "wgmma", 1, sms, tiles_192x192, -(-k // 64),
            k * 36864,
            tiles_192x192 * k * (768 + (min(k % 16, 1) * 192 + min(n % 16, 1) * 192) * 6), operands,
            stores_1,
        )
        choice = Choice(
            23, ("wgmma_nn_bf16_192x192x64_0577ba",), (min(tiles_192x192, sms) * 1,), (),
        )
        yield Candidate(us, choice)
    tiles_192x256 = -(-m // 192) * -(-n // 256)
    # 24: many rows, by wgmma
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 2 and m + 192 <= 2147483647
        and n + 256 <= 2147483647 and k + 64 <= 2147483647
        and tiles_192x256 + sms // 2 <= 4294967295
    ):
        us = time(
            "wgmma_nn_bf16_192x128x64_8014f7", "wgmma", 1, sms, tiles_192x256 * 2, -(-k // 64),
            k * 24576,
            tiles_192x256 * k * (896 + (min(k % 16, 1) * 192 + min(n % 16, 1) * 256) * 6), operands,
            stores_1,
        )
        choice = Choice(
            24, ("wgmma_nn_bf16_192x128x64_8014f7",), (min(tiles_192x256, sms // 2) * 2,), (),
        )
        yield Candidate(us, choice)
    tiles_128x224 = -(-m // 128) * -(-n // 224)
    # 25: many rows, by wgmma
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 224 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x224 + sms <= 4294967295
    ):
        us = time(
            "wgmma_nn_bf16_128x224x64_21d9d3", "wgmma", 1, sms, tiles_128x224, -(-k // 64),
            k * 28672,
            tiles_128x224 * k * (704 + (min(k % 16, 1) * 128 + min(n % 16, 1) * 224) * 6), operands,
            stores_1,
        )
        choice = Choice(
            25, ("wgmma_nn_bf16_128x224x64_21d9d3",), (min(tiles_128x224, sms) * 1,), (),
        )
        yield Candidate(us, choice)
    tiles_128x176 = -(-m // 128) * -(-n // 176)
    # 26: many rows, by wgmma
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and (chunk % 64 == 0 or chunks <= 1) and sms >= 1
        and m + 128 <= 2147483647 and n + 176 <= 2147483647 and k + 64 <= 2147483647
        and tiles_128x176 + sms <= 4294967295
    ):
        us = time(
            "wgmma_nn_bf16_128x176x64_5c5403", "wgmma", 1, sms, tiles_128x176, -(-k // 64),
            k * 22528,
            tiles_128x176 * k * (608 + (min(k % 16, 1) * 128 + min(n % 16, 1) * 176) * 6), operands,
            stores_1,
        )
        choice = Choice(
            26, ("wgmma_nn_bf16_128x176x64_5c5403",), (min(tiles_128x176, sms) * 1,), (),
        )
        yield Candidate(us, choice)
    tiles_256x160 = -(-m // 256) * -(-n // 160)
    # 27: many rows, by wgmma
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and (chunk % 64 == 0 or chunks <= 1) and sms >= 2
        and m + 256 <= 2147483647 and n + 160 <= 2147483647 and k + 64 <= 2147483647
        and tiles_256x160 + sms // 2 <= 4294967295
    ):
        us = time(
            "wgmma_nn_bf16_128x160x64_20a7b2", "wgmma", 1, sms, tiles_256x160 * 2, -(-k // 64),
            k * 20480,
            tiles_256x160 * k * (832 + (min(k % 16, 1) * 256 + min(n % 16, 1) * 160) * 6), operands,
            stores_1,
        )
        choice = Choice(
            27, ("wgmma_nn_bf16_128x160x64_20a7b2",), (min(tiles_256x160, sms // 2) * 2,), (),
        )
        yield Candidate(us, choice)
    # 28: many rows, by wgmma
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and (chunk % 64 == 0 or chunks <= 1) and sms >= 1
        and m + 128 <= 2147483647 and n + 128 <= 2147483647 and k + 64 <= 2147483647
        and tiles_128x128 + sms <= 4294967295
    ):
        us = time(
            "wgmma_nn_bf16_128x128x64_f67370", "wgmma", 1, sms, tiles_128x128, -(-k // 64),
            k * 16384,
            tiles_128x128 * k * (512 + (min(k % 16, 1) * 128 + min(n % 16, 1) * 128) * 6), operands,
            stores_1,
        )
        choice = Choice(
            28, ("wgmma_nn_bf16_128x128x64_f67370",), (min(tiles_128x128, sms) * 1,), (),
        )
        yield Candidate(us, choice)
    tiles_128x112 = -(-m // 128) * -(-n // 112)
    # 29: many rows, by wgmma
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and (chunk % 64 == 0 or chunks <= 1) and sms >= 1
        and m + 128 <= 2147483647 and n + 112 <= 2147483647 and k + 64 <= 2147483647
        and tiles_128x112 + sms <= 4294967295
    ):
        us = time(
            "wgmma_nn_bf16_128x112x64_6ae37f", "wgmma", 1, sms, tiles_128x112, -(-k // 64),
            k * 14336,
            tiles_128x112 * k * (480 + (min(k % 16, 1) * 128 + min(n % 16, 1) * 112) * 6), operands,
            stores_1,
        )
        choice = Choice(
            29, ("wgmma_nn_bf16_128x112x64_6ae37f",), (min(tiles_128x112, sms) * 1,), (),
        )
        yield Candidate(us, choice)
    tiles_64x256 = -(-m // 64) * -(-n // 256)
    # 30: many rows, by wgmma
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 256 <= 2147483647 and k + 64 <= 2147483647 and tiles_64x256 + sms <= 4294967295
    ):
        us = time(
            "wgmma_nn_bf16_64x256x64_8f2f4a", "wgmma", 1, sms, tiles_64x256, -(-k // 64), k * 16384,
            tiles_64x256 * k * (640 + (min(k % 16, 1) * 64 + min(n % 16, 1) * 256) * 6), operands,
            stores_1,
        )
        choice = Choice(30, ("wgmma_nn_bf16_64x256x64_8f2f4a",), (min(tiles_64x256, sms) * 1,), ())
        yield Candidate(us, choice)
    tiles_128x64 = -(-m // 128) * -(-n // 64)
    # 31: many rows, by wgmma
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and (chunk % 64 == 0 or chunks <= 1) and sms >= 1
        and m + 128 <= 2147483647 and n + 64 <= 2147483647 and k + 64 <= 2147483647
        and tiles_128x64 + sms <= 4294967295
    ):
        us = time(
            "wgmma_nn_bf16_128x64x64_0dad98", "wgmma", 1, sms, tiles_128x64, -(-k // 64), k * 8192,
            tiles_128x64 * k * (384 + (min(k % 16, 1) * 128 + min(n % 16, 1) * 64) * 6), operands,
            stores_1,
        )
        choice = Choice(31, ("wgmma_nn_bf16_128x64x64_0dad98",), (min(tiles_128x64, sms) * 1,), ())
        yield Candidate(us, choice)
    # 32: many rows, by wgmma
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and (chunk % 64 == 0 or chunks <= 1) and sms >= 1
        and m + 64 <= 2147483647 and n + 128 <= 2147483647 and k + 64 <= 2147483647
        and tiles_64x128 + sms <= 4294967295
    ):
        us = time(
            "wgmma_nn_bf16_64x128x64_53820a", "wgmma", 1, sms, tiles_64x128, -(-k // 64), k * 8192,
            tiles_64x128 * k * (384 + (min(k % 16, 1) * 64 + min(n % 16, 1) * 128) * 6), operands,
            stores_1,
        )
        choice = Choice(32, ("wgmma_nn_bf16_64x128x64_53820a",), (min(tiles_64x128, sms) * 1,), ())
        yield Candidate(us, choice)
    # 33: many rows, by wgmma
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and (chunk % 64 == 0 or chunks <= 1) and sms >= 2
        and m + 128 <= 2147483647 and n + 128 <= 2147483647 and k + 64 <= 2147483647
        and tiles_128x128 + sms // 2 <= 4294967295
    ):
        us = time(
            "wgmma_nn_bf16_64x128x64_f0b5aa", "wgmma", 1, sms, tiles_128x128 * 2, -(-k // 64),
            k * 8192, tiles_128x128 * k * (512 + (min(k % 16, 1) * 128 + min(n % 16, 1) * 128) * 6),
            operands, stores_1,
        )
        choice = Choice(
            33, ("wgmma_nn_bf16_64x128x64_f0b5aa",), (min(tiles_128x128, sms // 2) * 2,), (),
        )
        yield Candidate(us, choice)
    # 34: many rows, by wgmma
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and (chunk % 64 == 0 or chunks <= 1) and sms >= 1
        and m + 64 <= 2147483647 and n + 64 <= 2147483647 and k + 64 <= 2147483647
        and tiles_64x64 + sms <= 4294967295
    ):
        us = time(
            "wgmma_nn_bf16_64x64x64_2ff8a4", "wgmma", 1, sms, tiles_64x64, -(-k // 64), k * 4096,
            tiles_64x64 * k * (256 + (min(k % 16, 1) * 64 + min(n % 16, 1) * 64) * 6), operands,
            stores_1,
        )
        choice = Choice(34, ("wgmma_nn_bf16_64x64x64_2ff8a4",), (min(tiles_64x64, sms) * 1,), ())
        yield Candidate(us, choice)
    tiles_64x32 = -(-m // 64) * -(-n // 32)
    # 35: many rows, by wgmma
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and (chunk % 128 == 0 or chunks <= 1) and sms >= 1
        and m + 64 <= 2147483647 and n + 32 <= 2147483647 and k + 128 <= 2147483647
        and tiles_64x32 + sms <= 4294967295
    ):
        us = time(
            "wgmma_nn_bf16_64x32x128_13bd40", "wgmma", 1, sms, tiles_64x32, -(-k // 128), k * 2048,
            tiles_64x32 * k * (192 + (min(k % 16, 1) * 64 + min(n % 16, 1) * 32) * 6), operands,
            stores_1,
        )
        choice = Choice(35, ("wgmma_nn_bf16_64x32x128_13bd40",), (min(tiles_64x32, sms) * 1,), ())
        yield Candidate(us, choice)
    tiles_64x16 = -(-m // 64) * -(-n // 16)
    # 36: many rows, by wgmma
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and (chunk % 128 == 0 or chunks <= 1) and sms >= 1
        and m + 64 <= 2147483647 and n + 16 <= 2147483647 and k + 128 <= 2147483647
        and tiles_64x16 + sms <= 4294967295
    ):
        us = time(
            "wgmma_nn_bf16_64x16x128_a58e3f", "wgmma", 1, sms, tiles_64x16, -(-k // 128), k * 1024,
            tiles_64x16 * k * (160 + (min(k % 16, 1) * 64 + min(n % 16, 1) * 16) * 6), operands,
            stores_1,
        )
        choice = Choice(36, ("wgmma_nn_bf16_64x16x128_a58e3f",), (min(tiles_64x16, sms) * 1,), ())
        yield Candidate(us, choice)
    # 37: many rows, by mma
    if (
        align_a >= 16 and align_b >= 16 and (chunk % 64 == 0 or chunks <= 1)
        and tiles_64x64 <= 2147483647
    ):
        us = time(
            "mma_nn_bf16_64x64x64_42490e", "mma", 3, sms, tiles_64x64, -(-k // 64), k * 4096,
            tiles_64x64 * k * (256 + (min(k % 16, 1) * 64 + min(n % 16, 1) * 64) * 6), operands,
            stores_1,
        )
        yield Candidate(us, Choice(37, ("mma_nn_bf16_64x64x64_42490e",), (tiles_64x64,), ()))
    # 38: many rows, by mma
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_128x128 <= 2147483647:
        us = time(
            "mma_nn_bf16_128x128x64_cd5bbc", "mma", 2, sms, tiles_128x128, -(-k // 64), k * 16384,
            tiles_128x128 * k * (512 + (min(k % 16, 1) * 128 + min(n % 16, 1) * 128) * 6), operands,
            stores_1,
        )
        yield Candidate(us, Choice(38, ("mma_nn_bf16_128x128x64_cd5bbc",), (tiles_128x128,), ()))
    # 39: A off 16 bytes: copied first
    if (
        arch in SOME_0
        and pieces_m_k8 * 16 <= 1073741824 and align_b >= 16 and chunks <= 1 and sms >= 1
        and m + 128 <= 2147483647 and n + 256 <= 2147483647 and k + 64 <= 2147483647
        and tiles_128x256 + sms <= 4294967295
    ):
        us = time(
            "realign_b16x1_7953b4", "fma", 8, sms, -(-pieces_m_k8 // 512), 1, 0, operands_1,
            operands_1, operands_1,
        )
        us += time(
            "wgmma_nn_bf16_128x256x64_86d2ac", "wgmma", 1, sms, tiles_128x256, -(-k // 64),
            k * 32768,
            tiles_128x256 * k * (768 + (min(k % 16, 1) * 128 + min(n % 16, 1) * 256) * 6), operands,
            stores_1,
        )
        choice = Choice(
            39, ("realign_b16x1_7953b4", "wgmma_nn_bf16_128x256x64_86d2ac"),
            (-(-pieces_m_k8 // 512), min(tiles_128x256, sms) * 1), (pieces_m_k8 * 16,),
        )
        yield Candidate(us, choice)
    # 40: A and B off 16 bytes: copied first
    if (
        arch in SOME_0
        and pieces_m_k8 * 16 <= 1073741824 and pieces_k_n8 * 16 <= 1073741824 and chunks <= 1
        and sms >= 1 and m + 128 <= 2147483647 and n + 256 <= 2147483647 and k + 64 <= 2147483647
        and tiles_128x256 + sms <= 4294967295
    ):
        us = time(
            "realign_b16x2_d789c8", "fma", 8, sms, -(-pieces_m_k8 // 512) + -(-pieces_k_n8 // 512),
            1, 0, operands_2, operands_2, operands_2,
        )
        us += time(
            "wgmma_nn_bf16_128x256x64_86d2ac", "wgmma", 1, sms, tiles_128x256, -(-k // 64),
            k * 32768,
            tiles_128x256 * k * (768 + (min(k % 16, 1) * 128 + min(n % 16, 1) * 256) * 6), operands,
            stores_1,
        )
        choice = Choice(
            40, ("realign_b16x2_d789c8", "wgmma_nn_bf16_128x256x64_86d2ac"),
            (-(-pieces_m_k8 // 512) + -(-pieces_k_n8 // 512), min(tiles_128x256, sms) * 1),
            (pieces_m_k8 * 16, pieces_k_n8 * 16),
        )
        yield Candidate(us, choice)
    # 41: A off 16 bytes: copied first
    if (
        arch in SOME_0
        and pieces_m_k8 * 16 <= 1073741824 and align_b >= 16 and (chunk % 64 == 0 or chunks <= 1)
        and sms >= 1 and m + 128 <= 2147483647 and n + 128 <= 2147483647 and k + 64 <= 2147483647
        and tiles_128x128 + sms <= 4294967295
    ):
        us = time(
            "realign_b16x1_7953b4", "fma", 8, sms, -(-pieces_m_k8 // 512), 1, 0, operands_1,
            operands_1, operands_1,
        )
        us += time(
            "wgmma_nn_bf16_128x128x64_f67370", "wgmma", 1, sms, tiles_128x128, -(-k // 64),
            k * 16384,
            tiles_128x128 * k * (512 + (min(k % 16, 1) * 128 + min(n % 16, 1) * 128) * 6), operands,
            stores_1,
        )
        choice = Choice(
            41, ("realign_b16x1_7953b4", "wgmma_nn_bf16_128x128x64_f67370"),
            (-(-pieces_m_k8 // 512), min(tiles_128x128, sms) * 1), (pieces_m_k8 * 16,),
        )
        yield Candidate(us, choice)
    # 42: A and B off 16 bytes: copied first
    if (
        arch in SOME_0
        and pieces_m_k8 * 16 <= 1073741824 and pieces_k_n8 * 16 <= 1073741824
        and (chunk % 64 == 0 or chunks <= 1) and sms >= 1 and m + 128 <= 2147483647
        and n + 128 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x128 + sms <= 4294967295
    ):
        us = time(
            "realign_b16x2_d789c8", "fma", 8, sms, -(-pieces_m_k8 // 512) + -(-pieces_k_n8 // 512),
            1, 0, operands_2, operands_2, operands_2,
        )
        us += time(
            "wgmma_nn_bf16_128x128x64_f67370", "wgmma", 1, sms, tiles_128x128, -(-k // 64),
            k * 16384,
            tiles_128x128 * k * (512 + (min(k % 16, 1) * 128 + min(n % 16, 1) * 128) * 6), operands,
            stores_1,
        )
        choice = Choice(
            42, ("realign_b16x2_d789c8", "wgmma_nn_bf16_128x128x64_f67370"),
            (-(-pieces_m_k8 // 512) + -(-pieces_k_n8 // 512), min(tiles_128x128, sms) * 1),
            (pieces_m_k8 * 16, pieces_k_n8 * 16),
        )
        yield Candidate(us, choice)
    # 43: A off 16 bytes: copied first
    if (
        arch in SOME_0
        and pieces_m_k8 * 16 <= 1073741824 and align_b >= 16 and (chunk % 64 == 0 or chunks <= 1)
        and sms >= 1 and m + 64 <= 2147483647 and n + 64 <= 2147483647 and k + 64 <= 2147483647
        and tiles_64x64 + sms <= 4294967295
    ):
        us = time(
            "realign_b16x1_7953b4", "fma", 8, sms, -(-pieces_m_k8 // 512), 1, 0, operands_1,
            operands_1, operands_1,
        )
        us += time(
            "wgmma_nn_bf16_64x64x64_2ff8a4", "wgmma", 1, sms, tiles_64x64, -(-k // 64), k * 4096,
            tiles_64x64 * k * (256 + (min(k % 16, 1) * 64 + min(n % 16, 1) * 64) * 6), operands,
            stores_1,
        )
        choice = Choice(
            43, ("realign_b16x1_7953b4", "wgmma_nn_bf16_64x64x64_2ff8a4"),
            (-(-pieces_m_k8 // 512), min(tiles_64x64, sms) * 1), (pieces_m_k8 * 16,),
        )
        yield Candidate(us, choice)
    # 44: A and B off 16 bytes: copied first
    if (
        arch in SOME_0
        and pieces_m_k8 * 16 <= 1073741824 and pieces_k_n8 * 16 <= 1073741824
        and (chunk % 64 == 0 or chunks <= 1) and sms >= 1 and m + 64 <= 2147483647
        and n + 64 <= 2147483647 and k + 64 <= 2147483647 and tiles_64x64 + sms <= 4294967295
    ):
        us = time(
            "realign_b16x2_d789c8", "fma", 8, sms, -(-pieces_m_k8 // 512) + -(-pieces_k_n8 // 512),
            1, 0, operands_2, operands_2, operands_2,
        )
        us += time(
            "wgmma_nn_bf16_64x64x64_2ff8a4", "wgmma", 1, sms, tiles_64x64, -(-k // 64), k * 4096,
            tiles_64x64 * k * (256 + (min(k % 16, 1) * 64 + min(n % 16, 1) * 64) * 6), operands,
            stores_1,
        )
        choice = Choice(
            44, ("realign_b16x2_d789c8", "wgmma_nn_bf16_64x64x64_2ff8a4"),
            (-(-pieces_m_k8 // 512) + -(-pieces_k_n8 // 512), min(tiles_64x64, sms) * 1),
            (pieces_m_k8 * 16, pieces_k_n8 * 16),
        )
        yield Candidate(us, choice)
    # 45: A and B off 16 bytes: copied first
    if (
        pieces_m_k8 * 16 <= 1073741824 and pieces_k_n8 * 16 <= 1073741824 and chunks <= 1
        and tiles_128x128 <= 2147483647
    ):
        us = time(
            "realign_b16x2_d789c8", "fma", 8, sms, -(-pieces_m_k8 // 512) + -(-pieces_k_n8 // 512),
            1, 0, operands_2, operands_2, operands_2,
        )
        us += time(
            "mma_nn_bf16_128x128x64_cd5bbc", "mma", 2, sms, tiles_128x128, -(-k // 64), k * 16384,
            tiles_128x128 * k * (512 + (min(k % 16, 1) * 128 + min(n % 16, 1) * 128) * 6), operands,
            stores_1,
        )
        choice = Choice(
            45, ("realign_b16x2_d789c8", "mma_nn_bf16_128x128x64_cd5bbc"),
            (-(-pieces_m_k8 // 512) + -(-pieces_k_n8 // 512), tiles_128x128),
            (pieces_m_k8 * 16, pieces_k_n8 * 16),
        )
        yield Candidate(us, choice)
    # 46: operands off 16 bytes
    if (
        align_a >= 4 and align_b >= 4 and (chunk % 128 == 0 or chunks <= 1)
        and tiles_16x32 <= 2147483647
    ):
        us = time(
            "mma_nn_bf16_16x32x128_0f657a", "mma", 1, sms, tiles_16x32, -(-k // 128), k * 512,
            tiles_16x32 * k * (96 + (min(k % 16, 1) * 16 + min(n % 16, 1) * 32) * 6), operands,
            stores_1,
        )
        yield Candidate(us, Choice(46, ("mma_nn_bf16_16x32x128_0f657a",), (tiles_16x32,), ()))
    # 47: operands off 16 bytes
    if (chunk % 128 == 0 or chunks <= 1) and tiles_16x32 <= 2147483647:
        us = time(
            "mma_nn_bf16_16x32x128_f8dcb3", "mma", 1, sms, tiles_16x32, -(-k // 128), k * 512,
            tiles_16x32 * k * (96 + (min(k % 16, 1) * 16 + min(n % 16, 1) * 32) * 6), operands,
            stores_1,
        )
        yield Candidate(us, Choice(47, ("mma_nn_bf16_16x32x128_f8dcb3",), (tiles_16x32,), ()))
    # 48: everything else: any size, alignment and plan
    if chunk % 32 == 0 or chunks <= 1:
        us = time(
            "mma_nn_bf16_64x64x32_782949", "mma", 3, sms, tiles_64x64, -(-k // 32), k * 4096,
            tiles_64x64 * k * (256 + (min(k % 16, 1) * 64 + min(n % 16, 1) * 64) * 6), operands,
            stores_1,
        )
        choice = Choice(48, ("mma_nn_bf16_64x64x32_782949",), (min(tiles_64x64, 2147483647),), ())
        yield Candidate(us, choice)
