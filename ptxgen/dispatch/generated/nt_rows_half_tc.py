"""Dispatch of NT rows half tc: products under the plan 'rows'.

Generated from ptxgen.tiles.TABLES["NT", "rows", "half", "tc"]; do not edit.
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
            "mma_nt_bf16_16x32x128_20a9c5", "mma", 1, sms, tiles_16x32 * chunks, -(-chunk // 128),
            chunk * 512, tiles_16x32 * k * (96 + (min(k % 16, 1) * 16 + min(k % 16, 1) * 32) * 6),
            operands, stores,
        )
        us += time(
            "reduce_bf16_128x4_9cc9ba", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            0, ("mma_nt_bf16_16x32x128_20a9c5", "reduce_bf16_128x4_9cc9ba"),
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
            "wgmma_nt_bf16_192x192x64_3adde2", "wgmma", 1, sms, tiles_192x192 * chunks,
            -(-chunk // 64), chunk * 36864,
            tiles_192x192 * k * (768 + (min(k % 16, 1) * 192 + min(k % 16, 1) * 192) * 6), operands,
            stores,
        )
        us += time(
            "reduce_bf16_128x4_9cc9ba", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            1, ("wgmma_nt_bf16_192x192x64_3adde2", "reduce_bf16_128x4_9cc9ba"),
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
            "wgmma_nt_bf16_128x128x64_40a9ac", "wgmma", 1, sms, tiles_128x128 * chunks,
            -(-chunk // 64), chunk * 16384,
            tiles_128x128 * k * (512 + (min(k % 16, 1) * 128 + min(k % 16, 1) * 128) * 6), operands,
            stores,
        )
        us += time(
            "reduce_bf16_128x4_9cc9ba", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            2, ("wgmma_nt_bf16_128x128x64_40a9ac", "reduce_bf16_128x4_9cc9ba"),
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
            "wgmma_nt_bf16_64x64x64_15f6e1", "wgmma", 1, sms, tiles_64x64 * chunks, -(-chunk // 64),
            chunk * 4096, tiles_64x64 * k * (256 + (min(k % 16, 1) * 64 + min(k % 16, 1) * 64) * 6),
            operands, stores,
        )
        us += time(
            "reduce_bf16_128x4_9cc9ba", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            3, ("wgmma_nt_bf16_64x64x64_15f6e1", "reduce_bf16_128x4_9cc9ba"),
            (min(tiles_64x64 * chunks, sms) * 1, -(-(m * n) // 512)), (stores,),
        )
        yield Candidate(us, choice)
    # 4: a long reduction: a CTA per tile and chunk
    if (
        align_a >= 16 and align_b >= 16 and stores <= 268435456
        and tiles_64x64 * chunks <= 2147483647 and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "mma_nt_bf16_64x64x128_1d04c7", "mma", 2, sms, tiles_64x64 * chunks, -(-chunk // 128),
            chunk * 4096, tiles_64x64 * k * (256 + (min(k % 16, 1) * 64 + min(k % 16, 1) * 64) * 6),
            operands, stores,
        )
        us += time(
            "reduce_bf16_128x4_9cc9ba", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            4, ("mma_nt_bf16_64x64x128_1d04c7", "reduce_bf16_128x4_9cc9ba"),
            (tiles_64x64 * chunks, -(-(m * n) // 512)), (stores,),
        )
        yield Candidate(us, choice)
    # 5: a long reduction: a CTA per tile and chunk
    if (
        align_a >= 16 and align_b >= 16 and stores <= 268435456
        and tiles_128x128 * chunks <= 2147483647 and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "mma_nt_bf16_128x128x64_59583c", "mma", 2, sms, tiles_128x128 * chunks, -(-chunk // 64),
            chunk * 16384,
            tiles_128x128 * k * (512 + (min(k % 16, 1) * 128 + min(k % 16, 1) * 128) * 6), operands,
            stores,
        )
        us += time(
            "reduce_bf16_128x4_9cc9ba", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            5, ("mma_nt_bf16_128x128x64_59583c", "reduce_bf16_128x4_9cc9ba"),
            (tiles_128x128 * chunks, -(-(m * n) // 512)), (stores,),
        )
        yield Candidate(us, choice)
    # 6: a long reduction: a CTA per tile and chunk
    if (
        stores <= 268435456 and tiles_64x64 * chunks <= 2147483647
        and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "mma_nt_bf16_64x64x32_81c2b9", "mma", 4, sms, tiles_64x64 * chunks, -(-chunk // 32),
            chunk * 4096, tiles_64x64 * k * (256 + (min(k % 16, 1) * 64 + min(k % 16, 1) * 64) * 6),
            operands, stores,
        )
        us += time(
            "reduce_bf16_128x4_9cc9ba", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            6, ("mma_nt_bf16_64x64x32_81c2b9", "reduce_bf16_128x4_9cc9ba"),
            (tiles_64x64 * chunks, -(-(m * n) // 512)), (stores,),
        )
        yield Candidate(us, choice)
    operands_1 = 0 + m * -(-k // 8) * 16 + n * -(-k // 8) * 16
    pieces_m_k8 = m * -(-k // 8)
    pieces_n_k8 = n * -(-k // 8)
    # 7: A and B off 16 bytes: copied first
    if (
        arch in SOME_0
        and pieces_m_k8 * 16 <= 1073741824 and pieces_n_k8 * 16 <= 1073741824
        and (chunk % 64 == 0 or chunks <= 1) and stores <= 268435456 and sms >= 1
        and m + 192 <= 2147483647 and n + 192 <= 2147483647 and k + 64 <= 2147483647
        and tiles_192x192 * chunks + sms <= 4294967295 and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "realign_b16x2_d789c8", "fma", 8, sms, -(-pieces_m_k8 // 512) + -(-pieces_n_k8 // 512),
            1, 0, operands_1, operands_1, operands_1,
        )
        us += time(
            "wgmma_nt_bf16_192x192x64_3adde2", "wgmma", 1, sms, tiles_192x192 * chunks,
            -(-chunk // 64), chunk * 36864,
            tiles_192x192 * k * (768 + (min(k % 16, 1) * 192 + min(k % 16, 1) * 192) * 6), operands,
            stores,
        )
        us += time(
            "reduce_bf16_128x4_9cc9ba", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            7,
            ("realign_b16x2_d789c8", "wgmma_nt_bf16_192x192x64_3adde2", "reduce_bf16_128x4_9cc9ba"),
            (
                -(-pieces_m_k8 // 512) + -(-pieces_n_k8 // 512),
                min(tiles_192x192 * chunks, sms) * 1, -(-(m * n) // 512),
            ), (pieces_m_k8 * 16, pieces_n_k8 * 16, stores),
        )
        yield Candidate(us, choice)
    # 8: A and B off 16 bytes: copied first
    if (
        arch in SOME_0
        and pieces_m_k8 * 16 <= 1073741824 and pieces_n_k8 * 16 <= 1073741824
        and (chunk % 64 == 0 or chunks <= 1) and stores <= 268435456 and sms >= 1
        and m + 128 <= 2147483647 and n + 128 <= 2147483647 and k + 64 <= 2147483647
        and tiles_128x128 * chunks + sms <= 4294967295 and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "realign_b16x2_d789c8", "fma", 8, sms, -(-pieces_m_k8 // 512) + -(-pieces_n_k8 // 512),
            1, 0, operands_1, operands_1, operands_1,
        )
        us += time(
            "wgmma_nt_bf16_128x128x64_40a9ac", "wgmma", 1, sms, tiles_128x128 * chunks,
            -(-chunk // 64), chunk * 16384,
            tiles_128x128 * k * (512 + (min(k % 16, 1) * 128 + min(k % 16, 1) * 128) * 6), operands,
            stores,
        )
        us += time(
            "reduce_bf16_128x4_9cc9ba", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            8,
            ("realign_b16x2_d789c8", "wgmma_nt_bf16_128x128x64_40a9ac", "reduce_bf16_128x4_9cc9ba"),
            (
                -(-pieces_m_k8 // 512) + -(-pieces_n_k8 // 512),
                min(tiles_128x128 * chunks, sms) * 1, -(-(m * n) // 512),
            ), (pieces_m_k8 * 16, pieces_n_k8 * 16, stores),
        )
        yield Candidate(us, choice)
    # 9: A and B off 16 bytes: copied first
    if (
        arch in SOME_0
        and pieces_m_k8 * 16 <= 1073741824 and pieces_n_k8 * 16 <= 1073741824
        and (chunk % 64 == 0 or chunks <= 1) and stores <= 268435456 and sms >= 1
        and m + 64 <= 2147483647 and n + 64 <= 2147483647 and k + 64 <= 2147483647
        and tiles_64x64 * chunks + sms <= 4294967295 and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "realign_b16x2_d789c8", "fma", 8, sms, -(-pieces_m_k8 // 512) + -(-pieces_n_k8 // 512),
            1, 0, operands_1, operands_1, operands_1,
        )
        us += time(
            "wgmma_nt_bf16_64x64x64_15f6e1", "wgmma", 1, sms, tiles_64x64 * chunks, -(-chunk // 64),
            chunk * 4096, tiles_64x64 * k * (256 + (min(k % 16, 1) * 64 + min(k % 16, 1) * 64) * 6),
            operands, stores,
        )
        us += time(
            "reduce_bf16_128x4_9cc9ba", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            9,
            ("realign_b16x2_d789c8", "wgmma_nt_bf16_64x64x64_15f6e1", "reduce_bf16_128x4_9cc9ba"),
            (
                -(-pieces_m_k8 // 512) + -(-pieces_n_k8 // 512), min(tiles_64x64 * chunks, sms) * 1,
                -(-(m * n) // 512),
            ), (pieces_m_k8 * 16, pieces_n_k8 * 16, stores),
        )
        yield Candidate(us, choice)
    tiles_8x16 = -(-m // 8) * -(-n // 16)
    # 10: few rows: the weight streams once
    if (
        align_a >= 16 and align_b >= 16 and (chunk % 128 == 0 or chunks <= 1)
        and tiles_8x16 <= 2147483647
    ):
        us = time(
            "mma_nt_bf16_8x16x512_f13405", "mma", 1, sms, tiles_8x16, -(-k // 512), k * 128,
            tiles_8x16 * k * (48 + (min(k % 16, 1) * 8 + min(k % 16, 1) * 16) * 6), operands,
            stores_1,
        )
        yield Candidate(us, Choice(10, ("mma_nt_bf16_8x16x512_f13405",), (tiles_8x16,), ()))
    # 11: few rows: the weight streams once
    if (
        align_a >= 16 and align_b >= 16 and (chunk % 128 == 0 or chunks <= 1)
        and tiles_16x32 <= 2147483647
    ):
        us = time(
            "mma_nt_bf16_16x32x128_bee8dd", "mma", 1, sms, tiles_16x32, -(-k // 128), k * 512,
            tiles_16x32 * k * (96 + (min(k % 16, 1) * 16 + min(k % 16, 1) * 32) * 6), operands,
            stores_1,
        )
        yield Candidate(us, Choice(11, ("mma_nt_bf16_16x32x128_bee8dd",), (tiles_16x32,), ()))
    tiles_16x64 = -(-m // 16) * -(-n // 64)
    # 12: few rows: the weight streams once
    if (
        align_a >= 16 and align_b >= 16 and (chunk % 128 == 0 or chunks <= 1)
        and tiles_16x64 <= 2147483647
    ):
        us = time(
            "mma_nt_bf16_16x64x128_c1d35c", "mma", 1, sms, tiles_16x64, -(-k // 128), k * 1024,
            tiles_16x64 * k * (160 + (min(k % 16, 1) * 16 + min(k % 16, 1) * 64) * 6), operands,
            stores_1,
        )
        yield Candidate(us, Choice(12, ("mma_nt_bf16_16x64x128_c1d35c",), (tiles_16x64,), ()))
    tiles_32x32 = -(-m // 32) * -(-n // 32)
    # 13: few rows: the weight streams once
    if (
        align_a >= 16 and align_b >= 16 and (chunk % 128 == 0 or chunks <= 1)
        and tiles_32x32 <= 2147483647
    ):
        us = time(
            "mma_nt_bf16_32x32x128_15f4e3", "mma", 1, sms, tiles_32x32, -(-k // 128), k * 1024,
            tiles_32x32 * k * (128 + (min(k % 16, 1) * 32 + min(k % 16, 1) * 32) * 6), operands,
            stores_1,
        )
        yield Candidate(us, Choice(13, ("mma_nt_bf16_32x32x128_15f4e3",), (tiles_32x32,), ()))
    tiles_32x64 = -(-m // 32) * -(-n // 64)
    # 14: few rows: the weight streams once
    if (
        arch in SOME_1
        and align_a >= 16 and align_b >= 16 and (chunk % 128 == 0 or chunks <= 1)
        and tiles_32x64 <= 2147483647
    ):
        us = time(
            "mma_nt_bf16_32x64x128_9edc63", "mma", 1, sms, tiles_32x64, -(-k // 128), k * 2048,
            tiles_32x64 * k * (192 + (min(k % 16, 1) * 32 + min(k % 16, 1) * 64) * 6), operands,
            stores_1,
        )
        yield Candidate(us, Choice(14, ("mma_nt_bf16_32x64x128_9edc63",), (tiles_32x64,), ()))
    tiles_64x128 = -(-m // 64) * -(-n // 128)
    # 15: few rows: the weight streams once
    if (
        arch in SOME_1
        and align_a >= 16 and align_b >= 16 and (chunk % 64 == 0 or chunks <= 1)
        and tiles_64x128 <= 2147483647
    ):
        us = time(
            "mma_nt_bf16_64x128x64_4da3e2", "mma", 1, sms, tiles_64x128, -(-k // 64), k * 8192,
            tiles_64x128 * k * (384 + (min(k % 16, 1) * 64 + min(k % 16, 1) * 128) * 6), operands,
            stores_1,
        )
        yield Candidate(us, Choice(15, ("mma_nt_bf16_64x128x64_4da3e2",), (tiles_64x128,), ()))
    tiles_128x256 = -(-m // 128) * -(-n // 256)
    # 16: many rows, by wgmma
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 256 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x256 + sms <= 4294967295
    ):
        us = time(
            "wgmma_nt_bf16_128x256x64_b35b38", "wgmma", 1, sms, tiles_128x256, -(-k // 64),
            k * 32768,
            tiles_128x256 * k * (768 + (min(k % 16, 1) * 128 + min(k % 16, 1) * 256) * 6), operands,
            stores_1,
        )
        choice = Choice(
            16, ("wgmma_nt_bf16_128x256x64_b35b38",), (min(tiles_128x256, sms) * 1,), (),
        )
        yield Candidate(us, choice)
    tiles_256x256 = -(-m // 256) * -(-n // 256)
    # 17: many rows, by wgmma
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 2 and m + 256 <= 2147483647
        and n + 256 <= 2147483647 and k + 64 <= 2147483647
        and tiles_256x256 + sms // 2 <= 4294967295
    ):
        us = time(
            "wgmma_nt_bf16_128x256x64_362a60", "wgmma", 1, sms, tiles_256x256 * 2, -(-k // 64),
            k * 32768,
            tiles_256x256 * k * (1024 + (min(k % 16, 1) * 256 + min(k % 16, 1) * 256) * 6),
            operands, stores_1,
        )
        choice = Choice(
            17, ("wgmma_nt_bf16_128x256x64_362a60",), (min(tiles_256x256, sms // 2) * 2,), (),
        )
        yield Candidate(us, choice)
    tiles_256x192 = -(-m // 256) * -(-n // 192)
    # 18: many rows, by wgmma
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 2 and m + 256 <= 2147483647
        and n + 192 <= 2147483647 and k + 64 <= 2147483647
        and tiles_256x192 + sms // 2 <= 4294967295
    ):
        us = time(
            "wgmma_nt_bf16_128x192x64_cf3d87", "wgmma", 1, sms, tiles_256x192 * 2, -(-k // 64),
            k * 24576,
            tiles_256x192 * k * (896 + (min(k % 16, 1) * 256 + min(k % 16, 1) * 192) * 6), operands,
            stores_1,
        )
        choice = Choice(
            18, ("wgmma_nt_bf16_128x192x64_cf3d87",), (min(tiles_256x192, sms // 2) * 2,), (),
        )
        yield Candidate(us, choice)
    # 19: many rows, by wgmma
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 192 <= 2147483647
        and n + 192 <= 2147483647 and k + 64 <= 2147483647 and tiles_192x192 + sms <= 4294967295
    ):
        us = time(
            "wgmma_nt_bf16_192x192x64_f483cd", "wgmma", 1, sms, tiles_192x192, -(-k // 64),
            k * 36864,
            tiles_192x192 * k * (768 + (min(k % 16, 1) * 192 + min(k % 16, 1) * 192) * 6), operands,
            stores_1,
        )
        choice = Choice(
            19, ("wgmma_nt_bf16_192x192x64_f483cd",), (min(tiles_192x192, sms) * 1,), (),
        )
        yield Candidate(us, choice)
    tiles_192x256 = -(-m // 192) * -(-n // 256)
    # 20: many rows, by wgmma
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 2 and m + 192 <= 2147483647
        and n + 256 <= 2147483647 and k + 64 <= 2147483647
        and tiles_192x256 + sms // 2 <= 4294967295
    ):
        us = time(
            "wgmma_nt_bf16_192x128x64_481d7f", "wgmma", 1, sms, tiles_192x256 * 2, -(-k // 64),
            k * 24576,
            tiles_192x256 * k * (896 + (min(k % 16, 1) * 192 + min(k % 16, 1) * 256) * 6), operands,
            stores_1,
        )
        choice = Choice(
            20, ("wgmma_nt_bf16_192x128x64_481d7f",), (min(tiles_192x256, sms // 2) * 2,), (),
        )
        yield Candidate(us, choice)
    tiles_128x224 = -(-m // 128) * -(-n // 224)
    # 21: many rows, by wgmma
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 224 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x224 + sms <= 4294967295
    ):
        us = time(
            "wgmma_nt_bf16_128x224x64_18067c", "wgmma", 1, sms, tiles_128x224, -(-k // 64),
            k * 28672,
            tiles_128x224 * k * (704 + (min(k % 16, 1) * 128 + min(k % 16, 1) * 224) * 6), operands,
            stores_1,
        )
        choice = Choice(
            21, ("wgmma_nt_bf16_128x224x64_18067c",), (min(tiles_128x224, sms) * 1,), (),
        )
        yield Candidate(us, choice)
    tiles_128x176 = -(-m // 128) * -(-n // 176)
    # 22: many rows, by wgmma
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and (chunk % 64 == 0 or chunks <= 1) and sms >= 1
        and m + 128 <= 2147483647 and n + 176 <= 2147483647 and k + 64 <= 2147483647
        and tiles_128x176 + sms <= 4294967295
    ):
        us = time(
            "wgmma_nt_bf16_128x176x64_218ab3", "wgmma", 1, sms, tiles_128x176, -(-k // 64),
            k * 22528,
            tiles_128x176 * k * (608 + (min(k % 16, 1) * 128 + min(k % 16, 1) * 176) * 6), operands,
            stores_1,
        )
        choice = Choice(
            22, ("wgmma_nt_bf16_128x176x64_218ab3",), (min(tiles_128x176, sms) * 1,), (),
        )
        yield Candidate(us, choice)
    tiles_256x160 = -(-m // 256) * -(-n // 160)
    # 23: many rows, by wgmma
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and (chunk % 64 == 0 or chunks <= 1) and sms >= 2
        and m + 256 <= 2147483647 and n + 160 <= 2147483647 and k + 64 <= 2147483647
        and tiles_256x160 + sms // 2 <= 4294967295
    ):
        us = time(
            "wgmma_nt_bf16_128x160x64_732859", "wgmma", 1, sms, tiles_256x160 * 2, -(-k // 64),
            k * 20480,
            tiles_256x160 * k * (832 + (min(k % 16, 1) * 256 + min(k % 16, 1) * 160) * 6), operands,
            stores_1,
        )
        choice = Choice(
            23, ("wgmma_nt_bf16_128x160x64_732859",), (min(tiles_256x160, sms // 2) * 2,), (),
        )
        yield Candidate(us, choice)
    # 24: many rows, by wgmma
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and (chunk % 64 == 0 or chunks <= 1) and sms >= 1
        and m + 128 <= 2147483647 and n + 128 <= 2147483647 and k + 64 <= 2147483647
        and tiles_128x128 + sms <= 4294967295
    ):
        us = time(
            "wgmma_nt_bf16_128x128x64_96a12d", "wgmma", 1, sms, tiles_128x128, -(-k // 64),
            k * 16384,
            tiles_128x128 * k * (512 + (min(k % 16, 1) * 128 + min(k % 16, 1) * 128) * 6), operands,
            stores_1,
        )
        choice = Choice(
            24, ("wgmma_nt_bf16_128x128x64_96a12d",), (min(tiles_128x128, sms) * 1,), (),
        )
        yield Candidate(us, choice)
    tiles_128x112 = -(-m // 128) * -(-n // 112)
    # 25: many rows, by wgmma
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and (chunk % 64 == 0 or chunks <= 1) and sms >= 1
        and m + 128 <= 2147483647 and n + 112 <= 2147483647 and k + 64 <= 2147483647
        and tiles_128x112 + sms <= 4294967295
    ):
        us = time(
            "wgmma_nt_bf16_128x112x64_18e25a", "wgmma", 1, sms, tiles_128x112, -(-k // 64),
            k * 14336,
            tiles_128x112 * k * (480 + (min(k % 16, 1) * 128 + min(k % 16, 1) * 112) * 6), operands,
            stores_1,
        )
        choice = Choice(
            25, ("wgmma_nt_bf16_128x112x64_18e25a",), (min(tiles_128x112, sms) * 1,), (),
        )
        yield Candidate(us, choice)
    tiles_64x256 = -(-m // 64) * -(-n // 256)
    # 26: many rows, by wgmma
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 256 <= 2147483647 and k + 64 <= 2147483647 and tiles_64x256 + sms <= 4294967295
    ):
        us = time(
            "wgmma_nt_bf16_64x256x64_7ed76b", "wgmma", 1, sms, tiles_64x256, -(-k // 64), k * 16384,
            tiles_64x256 * k * (640 + (min(k % 16, 1) * 64 + min(k % 16, 1) * 256) * 6), operands,
            stores_1,
        )
        choice = Choice(26, ("wgmma_nt_bf16_64x256x64_7ed76b",), (min(tiles_64x256, sms) * 1,), ())
        yield Candidate(us, choice)
    tiles_64x160 = -(-m // 64) * -(-n // 160)
    # 27: many rows, by wgmma
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and (chunk % 64 == 0 or chunks <= 1) and sms >= 1
        and m + 64 <= 2147483647 and n + 160 <= 2147483647 and k + 64 <= 2147483647
        and tiles_64x160 + sms <= 4294967295
    ):
        us = time(
            "wgmma_nt_bf16_64x160x64_3d3368", "wgmma", 1, sms, tiles_64x160, -(-k // 64), k * 10240,
            tiles_64x160 * k * (448 + (min(k % 16, 1) * 64 + min(k % 16, 1) * 160) * 6), operands,
            stores_1,
        )
        choice = Choice(27, ("wgmma_nt_bf16_64x160x64_3d3368",), (min(tiles_64x160, sms) * 1,), ())
        yield Candidate(us, choice)
    tiles_128x64 = -(-m // 128) * -(-n // 64)
    # 28: many rows, by wgmma
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and (chunk % 64 == 0 or chunks <= 1) and sms >= 1
        and m + 128 <= 2147483647 and n + 64 <= 2147483647 and k + 64 <= 2147483647
        and tiles_128x64 + sms <= 4294967295
    ):
        us = time(
            "wgmma_nt_bf16_128x64x64_885da7", "wgmma", 1, sms, tiles_128x64, -(-k // 64), k * 8192,
            tiles_128x64 * k * (384 + (min(k % 16, 1) * 128 + min(k % 16, 1) * 64) * 6), operands,
            stores_1,
        )
        choice = Choice(28, ("wgmma_nt_bf16_128x64x64_885da7",), (min(tiles_128x64, sms) * 1,), ())
        yield Candidate(us, choice)
    # 29: many rows, by wgmma
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and (chunk % 64 == 0 or chunks <= 1) and sms >= 1
        and m + 64 <= 2147483647 and n + 128 <= 2147483647 and k + 64 <= 2147483647
        and tiles_64x128 + sms <= 4294967295
    ):
        us = time(
            "wgmma_nt_bf16_64x128x64_deac4e", "wgmma", 1, sms, tiles_64x128, -(-k // 64), k * 8192,
            tiles_64x128 * k * (384 + (min(k % 16, 1) * 64 + min(k % 16, 1) * 128) * 6), operands,
            stores_1,
        )
        choice = Choice(29, ("wgmma_nt_bf16_64x128x64_deac4e",), (min(tiles_64x128, sms) * 1,), ())
        yield Candidate(us, choice)
    # 30: many rows, by wgmma
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and (chunk % 64 == 0 or chunks <= 1) and sms >= 2
        and m + 128 <= 2147483647 and n + 128 <= 2147483647 and k + 64 <= 2147483647
        and tiles_128x128 + sms // 2 <= 4294967295
    ):
        us = time(
            "wgmma_nt_bf16_64x128x64_6a500d", "wgmma", 1, sms, tiles_128x128 * 2, -(-k // 64),
            k * 8192, tiles_128x128 * k * (512 + (min(k % 16, 1) * 128 + min(k % 16, 1) * 128) * 6),
            operands, stores_1,
        )
        choice = Choice(
            30, ("wgmma_nt_bf16_64x128x64_6a500d",), (min(tiles_128x128, sms // 2) * 2,), (),
        )
        yield Candidate(us, choice)
    # 31: many rows, by wgmma
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and (chunk % 64 == 0 or chunks <= 1) and sms >= 1
        and m + 64 <= 2147483647 and n + 64 <= 2147483647 and k + 64 <= 2147483647
        and tiles_64x64 + sms <= 4294967295
    ):
        us = time(
            "wgmma_nt_bf16_64x64x64_595f63", "wgmma", 1, sms, tiles_64x64, -(-k // 64), k * 4096,
            tiles_64x64 * k * (256 + (min(k % 16, 1) * 64 + min(k % 16, 1) * 64) * 6), operands,
            stores_1,
        )
        choice = Choice(31, ("wgmma_nt_bf16_64x64x64_595f63",), (min(tiles_64x64, sms) * 1,), ())
        yield Candidate(us, choice)
    tiles_64x32 = -(-m // 64) * -(-n // 32)
    # 32: many rows, by wgmma
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and (chunk % 128 == 0 or chunks <= 1) and sms >= 1
        and m + 64 <= 2147483647 and n + 32 <= 2147483647 and k + 128 <= 2147483647
        and tiles_64x32 + sms <= 4294967295
    ):
        us = time(
            "wgmma_nt_bf16_64x32x128_6d7237", "wgmma", 1, sms, tiles_64x32, -(-k // 128), k * 2048,
            tiles_64x32 * k * (192 + (min(k % 16, 1) * 64 + min(k % 16, 1) * 32) * 6), operands,
            stores_1,
        )
        choice = Choice(32, ("wgmma_nt_bf16_64x32x128_6d7237",), (min(tiles_64x32, sms) * 1,), ())
        yield Candidate(us, choice)
    tiles_64x16 = -(-m // 64) * -(-n // 16)
    # 33: many rows, by wgmma
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and (chunk % 128 == 0 or chunks <= 1) and sms >= 1
        and m + 64 <= 2147483647 and n + 16 <= 2147483647 and k + 128 <= 2147483647
        and tiles_64x16 + sms <= 4294967295
    ):
        us = time(
            "wgmma_nt_bf16_64x16x128_b79a3a", "wgmma", 1, sms, tiles_64x16, -(-k // 128), k * 1024,
            tiles_64x16 * k * (160 + (min(k % 16, 1) * 64 + min(k % 16, 1) * 16) * 6), operands,
            stores_1,
        )
        choice = Choice(33, ("wgmma_nt_bf16_64x16x128_b79a3a",), (min(tiles_64x16, sms) * 1,), ())
        yield Candidate(us, choice)
    # 34: many rows, by mma
    if (
        align_a >= 16 and align_b >= 16 and (chunk % 64 == 0 or chunks <= 1)
        and tiles_64x64 <= 2147483647
    ):
        us = time(
            "mma_nt_bf16_64x64x64_93d7f2", "mma", 3, sms, tiles_64x64, -(-k // 64), k * 4096,
            tiles_64x64 * k * (256 + (min(k % 16, 1) * 64 + min(k % 16, 1) * 64) * 6), operands,
            stores_1,
        )
        yield Candidate(us, Choice(34, ("mma_nt_bf16_64x64x64_93d7f2",), (tiles_64x64,), ()))
    # 35: many rows, by mma
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_128x128 <= 2147483647:
        us = time(
            "mma_nt_bf16_128x128x64_beb296", "mma", 2, sms, tiles_128x128, -(-k // 64), k * 16384,
            tiles_128x128 * k * (512 + (min(k % 16, 1) * 128 + min(k % 16, 1) * 128) * 6), operands,
            stores_1,
        )
        yield Candidate(us, Choice(35, ("mma_nt_bf16_128x128x64_beb296",), (tiles_128x128,), ()))
    # 36: A and B off 16 bytes: copied first
    if (
        arch in SOME_0
        and pieces_m_k8 * 16 <= 1073741824 and pieces_n_k8 * 16 <= 1073741824 and chunks <= 1
        and sms >= 1 and m + 128 <= 2147483647 and n + 256 <= 2147483647 and k + 64 <= 2147483647
        and tiles_128x256 + sms <= 4294967295
    ):
        us = time(
            "realign_b16x2_d789c8", "fma", 8, sms, -(-pieces_m_k8 // 512) + -(-pieces_n_k8 // 512),
            1, 0, operands_1, operands_1, operands_1,
        )
        us += time(
            "wgmma_nt_bf16_128x256x64_b35b38", "wgmma", 1, sms, tiles_128x256, -(-k // 64),
            k * 32768,
            tiles_128x256 * k * (768 + (min(k % 16, 1) * 128 + min(k % 16, 1) * 256) * 6), operands,
            stores_1,
        )
        choice = Choice(
            36, ("realign_b16x2_d789c8", "wgmma_nt_bf16_128x256x64_b35b38"),
            (-(-pieces_m_k8 // 512) + -(-pieces_n_k8 // 512), min(tiles_128x256, sms) * 1),
            (pieces_m_k8 * 16, pieces_n_k8 * 16),
        )
        yield Candidate(us, choice)
    # 37: A and B off 16 bytes: copied first
    if (
        arch in SOME_0
        and pieces_m_k8 * 16 <= 1073741824 and pieces_n_k8 * 16 <= 1073741824
        and (chunk % 64 == 0 or chunks <= 1) and sms >= 1 and m + 128 <= 2147483647
        and n + 128 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x128 + sms <= 4294967295
    ):
        us = time(
            "realign_b16x2_d789c8", "fma", 8, sms, -(-pieces_m_k8 // 512) + -(-pieces_n_k8 // 512),
            1, 0, operands_1, operands_1, operands_1,
        )
        us += time(
            "wgmma_nt_bf16_128x128x64_96a12d", "wgmma", 1, sms, tiles_128x128, -(-k // 64),
            k * 16384,
            tiles_128x128 * k * (512 + (min(k % 16, 1) * 128 + min(k % 16, 1) * 128) * 6), operands,
            stores_1,
        )
        choice = Choice(
            37, ("realign_b16x2_d789c8", "wgmma_nt_bf16_128x128x64_96a12d"),
            (-(-pieces_m_k8 // 512) + -(-pieces_n_k8 // 512), min(tiles_128x128, sms) * 1),
            (pieces_m_k8 * 16, pieces_n_k8 * 16),
        )
        yield Candidate(us, choice)
    # 38: A and B off 16 bytes: copied first
    if (
        arch in SOME_0
        and pieces_m_k8 * 16 <= 1073741824 and pieces_n_k8 * 16 <= 1073741824
        and (chunk % 64 == 0 or chunks <= 1) and sms >= 1 and m + 64 <= 2147483647
        and n + 64 <= 2147483647 and k + 64 <= 2147483647 and tiles_64x64 + sms <= 4294967295
    ):
        us = time(
            "realign_b16x2_d789c8", "fma", 8, sms, -(-pieces_m_k8 // 512) + -(-pieces_n_k8 // 512),
            1, 0, operands_1, operands_1, operands_1,
        )
        us += time(
            "wgmma_nt_bf16_64x64x64_595f63", "wgmma", 1, sms, tiles_64x64, -(-k // 64), k * 4096,
            tiles_64x64 * k * (256 + (min(k % 16, 1) * 64 + min(k % 16, 1) * 64) * 6), operands,
            stores_1,
        )
        choice = Choice(
            38, ("realign_b16x2_d789c8", "wgmma_nt_bf16_64x64x64_595f63"),
            (-(-pieces_m_k8 // 512) + -(-pieces_n_k8 // 512), min(tiles_64x64, sms) * 1),
            (pieces_m_k8 * 16, pieces_n_k8 * 16),
        )
        yield Candidate(us, choice)
    # 39: A and B off 16 bytes: copied first
    if (
        pieces_m_k8 * 16 <= 1073741824 and pieces_n_k8 * 16 <= 1073741824 and chunks <= 1
        and tiles_128x128 <= 2147483647
    ):
        us = time(
            "realign_b16x2_d789c8", "fma", 8, sms, -(-pieces_m_k8 // 512) + -(-pieces_n_k8 // 512),
            1, 0, operands_1, operands_1, operands_1,
        )
        us += time(
            "mma_nt_bf16_128x128x64_beb296", "mma", 2, sms, tiles_128x128, -(-k // 64), k * 16384,
            tiles_128x128 * k * (512 + (min(k % 16, 1) * 128 + min(k % 16, 1) * 128) * 6), operands,
            stores_1,
        )
        choice = Choice(
            39, ("realign_b16x2_d789c8", "mma_nt_bf16_128x128x64_beb296"),
            (-(-pieces_m_k8 // 512) + -(-pieces_n_k8 // 512), tiles_128x128),
            (pieces_m_k8 * 16, pieces_n_k8 * 16),
        )
        yield Candidate(us, choice)
    # 40: operands off 16 bytes
    if (
        align_a >= 4 and align_b >= 4 and (chunk % 128 == 0 or chunks <= 1)
        and tiles_16x32 <= 2147483647
    ):
        us = time(
            "mma_nt_bf16_16x32x128_23017e", "mma", 1, sms, tiles_16x32, -(-k // 128), k * 512,
            tiles_16x32 * k * (96 + (min(k % 16, 1) * 16 + min(k % 16, 1) * 32) * 6), operands,
            stores_1,
        )
        yield Candidate(us, Choice(40, ("mma_nt_bf16_16x32x128_23017e",), (tiles_16x32,), ()))
    # 41: operands off 16 bytes
    if (chunk % 128 == 0 or chunks <= 1) and tiles_16x32 <= 2147483647:
        us = time(
            "mma_nt_bf16_16x32x128_a132ec", "mma", 1, sms, tiles_16x32, -(-k // 128), k * 512,
            tiles_16x32 * k * (96 + (min(k % 16, 1) * 16 + min(k % 16, 1) * 32) * 6), operands,
            stores_1,
        )
        yield Candidate(us, Choice(41, ("mma_nt_bf16_16x32x128_a132ec",), (tiles_16x32,), ()))
    # 42: everything else: any size, alignment and plan
    if chunk % 32 == 0 or chunks <= 1:
        us = time(
            "mma_nt_bf16_64x64x32_d497a1", "mma", 3, sms, tiles_64x64, -(-k // 32), k * 4096,
            tiles_64x64 * k * (256 + (min(k % 16, 1) * 64 + min(k % 16, 1) * 64) * 6), operands,
            stores_1,
        )
        choice = Choice(42, ("mma_nt_bf16_64x64x32_d497a1",), (min(tiles_64x64, 2147483647),), ())
        yield Candidate(us, choice)
