"""Dispatch of TN batch half tc: products under the plan 'batch'.

Generated from ptxgen.tiles.TABLES["TN", "batch", "half", "tc"]; do not edit.
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
    chunk_part_1 = -(-k // min(max(4718592 // (m * n), 1), 16))
    chunk = max(1, min(k, -(-max(chunk_part_1, min(max(m * n // 32, 512), 4096)) // 64) * 64))
    chunks = -(-k // chunk)
    operands = (m + n) * k * 2
    stores = chunks * m * n * 4
    stores_1 = m * n * 2
    tiles_192x192 = -(-m // 192) * -(-n // 192)
    # 0: a long reduction: a CTA per tile and chunk
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and (chunk % 64 == 0 or chunks <= 1)
        and stores <= 268435456 and sms >= 1 and m + 192 <= 2147483647 and n + 192 <= 2147483647
        and k + 64 <= 2147483647 and tiles_192x192 * chunks + sms <= 4294967295
        and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "wgmma_tn_bf16_192x192x64_c93747", "wgmma", 1, sms, tiles_192x192 * chunks,
            -(-chunk // 64), chunk * 36864,
            tiles_192x192 * k * (768 + (min(m % 16, 1) * 192 + min(n % 16, 1) * 192) * 6), operands,
            stores,
        )
        us += time(
            "reduce_bf16_128x4_9cc9ba", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            0, ("wgmma_tn_bf16_192x192x64_c93747", "reduce_bf16_128x4_9cc9ba"),
            (min(tiles_192x192 * chunks, sms) * 1, -(-(m * n) // 512)), (stores,),
        )
        yield Candidate(us, choice)
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    # 1: a long reduction: a CTA per tile and chunk
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and (chunk % 64 == 0 or chunks <= 1)
        and stores <= 268435456 and sms >= 1 and m + 128 <= 2147483647 and n + 128 <= 2147483647
        and k + 64 <= 2147483647 and tiles_128x128 * chunks + sms <= 4294967295
        and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "wgmma_tn_bf16_128x128x64_6d9ab7", "wgmma", 1, sms, tiles_128x128 * chunks,
            -(-chunk // 64), chunk * 16384,
            tiles_128x128 * k * (512 + (min(m % 16, 1) * 128 + min(n % 16, 1) * 128) * 6), operands,
            stores,
        )
        us += time(
            "reduce_bf16_128x4_9cc9ba", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            1, ("wgmma_tn_bf16_128x128x64_6d9ab7", "reduce_bf16_128x4_9cc9ba"),
            (min(tiles_128x128 * chunks, sms) * 1, -(-(m * n) // 512)), (stores,),
        )
        yield Candidate(us, choice)
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 2: a long reduction: a CTA per tile and chunk
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and (chunk % 64 == 0 or chunks <= 1)
        and stores <= 268435456 and sms >= 1 and m + 64 <= 2147483647 and n + 64 <= 2147483647
        and k + 64 <= 2147483647 and tiles_64x64 * chunks + sms <= 4294967295
        and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "wgmma_tn_bf16_64x64x64_151bd5", "wgmma", 1, sms, tiles_64x64 * chunks, -(-chunk // 64),
            chunk * 4096, tiles_64x64 * k * (256 + (min(m % 16, 1) * 64 + min(n % 16, 1) * 64) * 6),
            operands, stores,
        )
        us += time(
            "reduce_bf16_128x4_9cc9ba", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            2, ("wgmma_tn_bf16_64x64x64_151bd5", "reduce_bf16_128x4_9cc9ba"),
            (min(tiles_64x64 * chunks, sms) * 1, -(-(m * n) // 512)), (stores,),
        )
        yield Candidate(us, choice)
    # 3: a long reduction: a CTA per tile and chunk
    if (
        align_a >= 16 and align_b >= 16 and stores <= 268435456
        and tiles_64x64 * chunks <= 2147483647 and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "mma_tn_bf16_64x64x128_e2c752", "mma", 2, sms, tiles_64x64 * chunks, -(-chunk // 128),
            chunk * 4096, tiles_64x64 * k * (256 + (min(m % 16, 1) * 64 + min(n % 16, 1) * 64) * 6),
            operands, stores,
        )
        us += time(
            "reduce_bf16_128x4_9cc9ba", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            3, ("mma_tn_bf16_64x64x128_e2c752", "reduce_bf16_128x4_9cc9ba"),
            (tiles_64x64 * chunks, -(-(m * n) // 512)), (stores,),
        )
        yield Candidate(us, choice)
    # 4: a long reduction: a CTA per tile and chunk
    if (
        align_a >= 16 and align_b >= 16 and stores <= 268435456
        and tiles_128x128 * chunks <= 2147483647 and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "mma_tn_bf16_128x128x64_f6b43c", "mma", 2, sms, tiles_128x128 * chunks, -(-chunk // 64),
            chunk * 16384,
            tiles_128x128 * k * (512 + (min(m % 16, 1) * 128 + min(n % 16, 1) * 128) * 6), operands,
            stores,
        )
        us += time(
            "reduce_bf16_128x4_9cc9ba", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            4, ("mma_tn_bf16_128x128x64_f6b43c", "reduce_bf16_128x4_9cc9ba"),
            (tiles_128x128 * chunks, -(-(m * n) // 512)), (stores,),
        )
        yield Candidate(us, choice)
    tiles_64x32 = -(-m // 64) * -(-n // 32)
    # 5: a long reduction: a CTA per tile and chunk
    if (
        align_a >= 4 and align_b >= 4 and stores <= 268435456 and tiles_64x32 * chunks <= 2147483647
        and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "mma_tn_bf16_64x32x64_35eed5", "mma", 4, sms, tiles_64x32 * chunks, -(-chunk // 64),
            chunk * 2048, tiles_64x32 * k * (192 + (min(m % 16, 1) * 64 + min(n % 16, 1) * 32) * 6),
            operands, stores,
        )
        us += time(
            "reduce_bf16_128x4_9cc9ba", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            5, ("mma_tn_bf16_64x32x64_35eed5", "reduce_bf16_128x4_9cc9ba"),
            (tiles_64x32 * chunks, -(-(m * n) // 512)), (stores,),
        )
        yield Candidate(us, choice)
    # 6: a long reduction: a CTA per tile and chunk
    if (
        stores <= 268435456 and tiles_64x64 * chunks <= 2147483647
        and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "mma_tn_bf16_64x64x32_1dbb01", "mma", 4, sms, tiles_64x64 * chunks, -(-chunk // 32),
            chunk * 4096, tiles_64x64 * k * (256 + (min(m % 16, 1) * 64 + min(n % 16, 1) * 64) * 6),
            operands, stores,
        )
        us += time(
            "reduce_bf16_128x4_9cc9ba", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            6, ("mma_tn_bf16_64x64x32_1dbb01", "reduce_bf16_128x4_9cc9ba"),
            (tiles_64x64 * chunks, -(-(m * n) // 512)), (stores,),
        )
        yield Candidate(us, choice)
    operands_1 = 0 + k * -(-m // 8) * 16
    pieces_k_m8 = k * -(-m // 8)
    # 7: A off 16 bytes: copied first
    if (
        arch in SOME_0
        and pieces_k_m8 * 16 <= 1073741824 and align_b >= 16 and (chunk % 64 == 0 or chunks <= 1)
        and stores <= 268435456 and sms >= 1 and m + 192 <= 2147483647 and n + 192 <= 2147483647
        and k + 64 <= 2147483647 and tiles_192x192 * chunks + sms <= 4294967295
        and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "realign_b16x1_7953b4", "fma", 8, sms, -(-pieces_k_m8 // 512), 1, 0, operands_1,
            operands_1, operands_1,
        )
        us += time(
            "wgmma_tn_bf16_192x192x64_c93747", "wgmma", 1, sms, tiles_192x192 * chunks,
            -(-chunk // 64), chunk * 36864,
            tiles_192x192 * k * (768 + (min(m % 16, 1) * 192 + min(n % 16, 1) * 192) * 6), operands,
            stores,
        )
        us += time(
            "reduce_bf16_128x4_9cc9ba", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            7,
            ("realign_b16x1_7953b4", "wgmma_tn_bf16_192x192x64_c93747", "reduce_bf16_128x4_9cc9ba"),
            (-(-pieces_k_m8 // 512), min(tiles_192x192 * chunks, sms) * 1, -(-(m * n) // 512)),
            (pieces_k_m8 * 16, stores),
        )
        yield Candidate(us, choice)
    operands_2 = 0 + k * -(-m // 8) * 16 + k * -(-n // 8) * 16
    pieces_k_n8 = k * -(-n // 8)
    # 8: A and B off 16 bytes: copied first
    if (
        arch in SOME_0
        and pieces_k_m8 * 16 <= 1073741824 and pieces_k_n8 * 16 <= 1073741824
        and (chunk % 64 == 0 or chunks <= 1) and stores <= 268435456 and sms >= 1
        and m + 192 <= 2147483647 and n + 192 <= 2147483647 and k + 64 <= 2147483647
        and tiles_192x192 * chunks + sms <= 4294967295 and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "realign_b16x2_d789c8", "fma", 8, sms, -(-pieces_k_m8 // 512) + -(-pieces_k_n8 // 512),
            1, 0, operands_2, operands_2, operands_2,
        )
        us += time(
            "wgmma_tn_bf16_192x192x64_c93747", "wgmma", 1, sms, tiles_192x192 * chunks,
            -(-chunk // 64), chunk * 36864,
            tiles_192x192 * k * (768 + (min(m % 16, 1) * 192 + min(n % 16, 1) * 192) * 6), operands,
            stores,
        )
        us += time(
            "reduce_bf16_128x4_9cc9ba", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            8,
            ("realign_b16x2_d789c8", "wgmma_tn_bf16_192x192x64_c93747", "reduce_bf16_128x4_9cc9ba"),
            (
                -(-pieces_k_m8 // 512) + -(-pieces_k_n8 // 512),
                min(tiles_192x192 * chunks, sms) * 1, -(-(m * n) // 512),
            ), (pieces_k_m8 * 16, pieces_k_n8 * 16, stores),
        )
        yield Candidate(us, choice)
    # 9: A off 16 bytes: copied first
    if (
        arch in SOME_0
        and pieces_k_m8 * 16 <= 1073741824 and align_b >= 16 and (chunk % 64 == 0 or chunks <= 1)
        and stores <= 268435456 and sms >= 1 and m + 128 <= 2147483647 and n + 128 <= 2147483647
        and k + 64 <= 2147483647 and tiles_128x128 * chunks + sms <= 4294967295
        and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "realign_b16x1_7953b4", "fma", 8, sms, -(-pieces_k_m8 // 512), 1, 0, operands_1,
            operands_1, operands_1,
        )
        us += time(
            "wgmma_tn_bf16_128x128x64_6d9ab7", "wgmma", 1, sms, tiles_128x128 * chunks,
            -(-chunk // 64), chunk * 16384,
            tiles_128x128 * k * (512 + (min(m % 16, 1) * 128 + min(n % 16, 1) * 128) * 6), operands,
            stores,
        )
        us += time(
            "reduce_bf16_128x4_9cc9ba", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            9,
            ("realign_b16x1_7953b4", "wgmma_tn_bf16_128x128x64_6d9ab7", "reduce_bf16_128x4_9cc9ba"),
            (-(-pieces_k_m8 // 512), min(tiles_128x128 * chunks, sms) * 1, -(-(m * n) // 512)),
            (pieces_k_m8 * 16, stores),
        )
        yield Candidate(us, choice)
    # 10: A and B off 16 bytes: copied first
    if (
        arch in SOME_0
        and pieces_k_m8 * 16 <= 1073741824 and pieces_k_n8 * 16 <= 1073741824
        and (chunk % 64 == 0 or chunks <= 1) and stores <= 268435456 and sms >= 1
        and m + 128 <= 2147483647 and n + 128 <= 2147483647 and k + 64 <= 2147483647
        and tiles_128x128 * chunks + sms <= 4294967295 and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "realign_b16x2_d789c8", "fma", 8, sms, -(-pieces_k_m8 // 512) + -(-pieces_k_n8 // 512),
            1, 0, operands_2, operands_2, operands_2,
        )
        us += time(
            "wgmma_tn_bf16_128x128x64_6d9ab7", "wgmma", 1, sms, tiles_128x128 * chunks,
            -(-chunk // 64), chunk * 16384,
            tiles_128x128 * k * (512 + (min(m % 16, 1) * 128 + min(n % 16, 1) * 128) * 6), operands,
            stores,
        )
        us += time(
            "reduce_bf16_128x4_9cc9ba", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            10,
            ("realign_b16x2_d789c8", "wgmma_tn_bf16_128x128x64_6d9ab7", "reduce_bf16_128x4_9cc9ba"),
            (
                -(-pieces_k_m8 // 512) + -(-pieces_k_n8 // 512),
                min(tiles_128x128 * chunks, sms) * 1, -(-(m * n) // 512),
            ), (pieces_k_m8 * 16, pieces_k_n8 * 16, stores),
        )
        yield Candidate(us, choice)
    # 11: A off 16 bytes: copied first
    if (
        arch in SOME_0
        and pieces_k_m8 * 16 <= 1073741824 and align_b >= 16 and (chunk % 64 == 0 or chunks <= 1)
        and stores <= 268435456 and sms >= 1 and m + 64 <= 2147483647 and n + 64 <= 2147483647
        and k + 64 <= 2147483647 and tiles_64x64 * chunks + sms <= 4294967295
        and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "realign_b16x1_7953b4", "fma", 8, sms, -(-pieces_k_m8 // 512), 1, 0, operands_1,
            operands_1, operands_1,
        )
        us += time(
            "wgmma_tn_bf16_64x64x64_151bd5", "wgmma", 1, sms, tiles_64x64 * chunks, -(-chunk // 64),
            chunk * 4096, tiles_64x64 * k * (256 + (min(m % 16, 1) * 64 + min(n % 16, 1) * 64) * 6),
            operands, stores,
        )
        us += time(
            "reduce_bf16_128x4_9cc9ba", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            11,
            ("realign_b16x1_7953b4", "wgmma_tn_bf16_64x64x64_151bd5", "reduce_bf16_128x4_9cc9ba"),
            (-(-pieces_k_m8 // 512), min(tiles_64x64 * chunks, sms) * 1, -(-(m * n) // 512)),
            (pieces_k_m8 * 16, stores),
        )
        yield Candidate(us, choice)
    # 12: A and B off 16 bytes: copied first
    if (
        arch in SOME_0
        and pieces_k_m8 * 16 <= 1073741824 and pieces_k_n8 * 16 <= 1073741824
        and (chunk % 64 == 0 or chunks <= 1) and stores <= 268435456 and sms >= 1
        and m + 64 <= 2147483647 and n + 64 <= 2147483647 and k + 64 <= 2147483647
        and tiles_64x64 * chunks + sms <= 4294967295 and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "realign_b16x2_d789c8", "fma", 8, sms, -(-pieces_k_m8 // 512) + -(-pieces_k_n8 // 512),
            1, 0, operands_2, operands_2, operands_2,
        )
        us += time(
            "wgmma_tn_bf16_64x64x64_151bd5", "wgmma", 1, sms, tiles_64x64 * chunks, -(-chunk // 64),
            chunk * 4096, tiles_64x64 * k * (256 + (min(m % 16, 1) * 64 + min(n % 16, 1) * 64) * 6),
            operands, stores,
        )
        us += time(
            "reduce_bf16_128x4_9cc9ba", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores, stores, stores_1,
        )
        choice = Choice(
            12,
            ("realign_b16x2_d789c8", "wgmma_tn_bf16_64x64x64_151bd5", "reduce_bf16_128x4_9cc9ba"),
            (
                -(-pieces_k_m8 // 512) + -(-pieces_k_n8 // 512), min(tiles_64x64 * chunks, sms) * 1,
                -(-(m * n) // 512),
            ), (pieces_k_m8 * 16, pieces_k_n8 * 16, stores),
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
            "mma_tn_bf16_8x64x128_b577d1", "mma", 1, sms, tiles_8x64, -(-k // 128), k * 512,
            tiles_8x64 * k * (144 + (min(m % 16, 1) * 8 + min(n % 16, 1) * 64) * 6), operands,
            stores_1,
        )
        yield Candidate(us, Choice(13, ("mma_tn_bf16_8x64x128_b577d1",), (tiles_8x64,), ()))
    tiles_8x32 = -(-m // 8) * -(-n // 32)
    # 14: few rows: the weight streams once
    if (
        align_a >= 16 and align_b >= 16 and (chunk % 128 == 0 or chunks <= 1)
        and tiles_8x32 <= 2147483647
    ):
        us = time(
            "mma_tn_bf16_8x32x128_7c493a", "mma", 1, sms, tiles_8x32, -(-k // 128), k * 256,
            tiles_8x32 * k * (80 + (min(m % 16, 1) * 8 + min(n % 16, 1) * 32) * 6), operands,
            stores_1,
        )
        yield Candidate(us, Choice(14, ("mma_tn_bf16_8x32x128_7c493a",), (tiles_8x32,), ()))
    tiles_16x32 = -(-m // 16) * -(-n // 32)
    # 15: few rows: the weight streams once
    if (
        align_a >= 16 and align_b >= 16 and (chunk % 128 == 0 or chunks <= 1)
        and tiles_16x32 <= 2147483647
    ):
        us = time(
            "mma_tn_bf16_16x32x128_967392", "mma", 1, sms, tiles_16x32, -(-k // 128), k * 512,
            tiles_16x32 * k * (96 + (min(m % 16, 1) * 16 + min(n % 16, 1) * 32) * 6), operands,
            stores_1,
        )
        yield Candidate(us, Choice(15, ("mma_tn_bf16_16x32x128_967392",), (tiles_16x32,), ()))
    tiles_32x32 = -(-m // 32) * -(-n // 32)
    # 16: few rows: the weight streams once
    if (
        align_a >= 16 and align_b >= 16 and (chunk % 128 == 0 or chunks <= 1)
        and tiles_32x32 <= 2147483647
    ):
        us = time(
            "mma_tn_bf16_32x32x128_e84b71", "mma", 1, sms, tiles_32x32, -(-k // 128), k * 1024,
            tiles_32x32 * k * (128 + (min(m % 16, 1) * 32 + min(n % 16, 1) * 32) * 6), operands,
            stores_1,
        )
        yield Candidate(us, Choice(16, ("mma_tn_bf16_32x32x128_e84b71",), (tiles_32x32,), ()))
    tiles_32x64 = -(-m // 32) * -(-n // 64)
    # 17: few rows: the weight streams once
    if (
        arch in SOME_1
        and align_a >= 16 and align_b >= 16 and (chunk % 128 == 0 or chunks <= 1)
        and tiles_32x64 <= 2147483647
    ):
        us = time(
            "mma_tn_bf16_32x64x128_272387", "mma", 1, sms, tiles_32x64, -(-k // 128), k * 2048,
            tiles_32x64 * k * (192 + (min(m % 16, 1) * 32 + min(n % 16, 1) * 64) * 6), operands,
            stores_1,
        )
        yield Candidate(us, Choice(17, ("mma_tn_bf16_32x64x128_272387",), (tiles_32x64,), ()))
    tiles_64x128 = -(-m // 64) * -(-n // 128)
    # 18: few rows: the weight streams once
    if (
        arch in SOME_1
        and align_a >= 16 and align_b >= 16 and (chunk % 64 == 0 or chunks <= 1)
        and tiles_64x128 <= 2147483647
    ):
        us = time(
            "mma_tn_bf16_64x128x64_4765ee", "mma", 1, sms, tiles_64x128, -(-k // 64), k * 8192,
            tiles_64x128 * k * (384 + (min(m % 16, 1) * 64 + min(n % 16, 1) * 128) * 6), operands,
            stores_1,
        )
        yield Candidate(us, Choice(18, ("mma_tn_bf16_64x128x64_4765ee",), (tiles_64x128,), ()))
    tiles_128x256 = -(-m // 128) * -(-n // 256)
    # 19: many rows, by wgmma
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 256 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x256 + sms <= 4294967295
    ):
        us = time(
            "wgmma_tn_bf16_128x256x64_db9343", "wgmma", 1, sms, tiles_128x256, -(-k // 64),
            k * 32768,
            tiles_128x256 * k * (768 + (min(m % 16, 1) * 128 + min(n % 16, 1) * 256) * 6), operands,
            stores_1,
        )
        choice = Choice(
            19, ("wgmma_tn_bf16_128x256x64_db9343",), (min(tiles_128x256, sms) * 1,), (),
        )
        yield Candidate(us, choice)
    tiles_256x256 = -(-m // 256) * -(-n // 256)
    # 20: many rows, by wgmma
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 2 and m + 256 <= 2147483647
        and n + 256 <= 2147483647 and k + 64 <= 2147483647
        and tiles_256x256 + sms // 2 <= 4294967295
    ):
        us = time(
            "wgmma_tn_bf16_128x256x64_d699cb", "wgmma", 1, sms, tiles_256x256 * 2, -(-k // 64),
            k * 32768,
            tiles_256x256 * k * (1024 + (min(m % 16, 1) * 256 + min(n % 16, 1) * 256) * 6),
            operands, stores_1,
        )
        choice = Choice(
            20, ("wgmma_tn_bf16_128x256x64_d699cb",), (min(tiles_256x256, sms // 2) * 2,), (),
        )
        yield Candidate(us, choice)
    tiles_256x192 = -(-m // 256) * -(-n // 192)
    # 21: many rows, by wgmma
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 2 and m + 256 <= 2147483647
        and n + 192 <= 2147483647 and k + 64 <= 2147483647
        and tiles_256x192 + sms // 2 <= 4294967295
    ):
        us = time(
            "wgmma_tn_bf16_128x192x64_23ffeb", "wgmma", 1, sms, tiles_256x192 * 2, -(-k // 64),
            k * 24576,
            tiles_256x192 * k * (896 + (min(m % 16, 1) * 256 + min(n % 16, 1) * 192) * 6), operands,
            stores_1,
        )
        choice = Choice(
            21, ("wgmma_tn_bf16_128x192x64_23ffeb",), (min(tiles_256x192, sms // 2) * 2,), (),
        )
        yield Candidate(us, choice)
    # 22: many rows, by wgmma
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 192 <= 2147483647
        and n + 192 <= 2147483647 and k + 64 <= 2147483647 and tiles_192x192 + sms <= 4294967295
    ):
        us = time(
            "wgmma_tn_bf16_192x192x64_747206", "wgmma", 1, sms, tiles_192x192, -(-k // 64),
            k * 36864,
            tiles_192x192 * k * (768 + (min(m % 16, 1) * 192 + min(n % 16, 1) * 192) * 6), operands,
            stores_1,
        )
        choice = Choice(
            22, ("wgmma_tn_bf16_192x192x64_747206",), (min(tiles_192x192, sms) * 1,), (),
        )
        yield Candidate(us, choice)
    tiles_192x128 = -(-m // 192) * -(-n // 128)
    # 23: many rows, by wgmma
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 192 <= 2147483647
        and n + 128 <= 2147483647 and k + 64 <= 2147483647 and tiles_192x128 + sms <= 4294967295
    ):
        us = time(
            "wgmma_tn_bf16_192x128x64_7cc8a1", "wgmma", 1, sms, tiles_192x128, -(-k // 64),
            k * 24576,
            tiles_192x128 * k * (640 + (min(m % 16, 1) * 192 + min(n % 16, 1) * 128) * 6), operands,
            stores_1,
        )
        choice = Choice(
            23, ("wgmma_tn_bf16_192x128x64_7cc8a1",), (min(tiles_192x128, sms) * 1,), (),
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
            "wgmma_tn_bf16_192x128x64_534c0d", "wgmma", 1, sms, tiles_192x256 * 2, -(-k // 64),
            k * 24576,
            tiles_192x256 * k * (896 + (min(m % 16, 1) * 192 + min(n % 16, 1) * 256) * 6), operands,
            stores_1,
        )
        choice = Choice(
            24, ("wgmma_tn_bf16_192x128x64_534c0d",), (min(tiles_192x256, sms // 2) * 2,), (),
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
            "wgmma_tn_bf16_128x224x64_d31d43", "wgmma", 1, sms, tiles_128x224, -(-k // 64),
            k * 28672,
            tiles_128x224 * k * (704 + (min(m % 16, 1) * 128 + min(n % 16, 1) * 224) * 6), operands,
            stores_1,
        )
        choice = Choice(
            25, ("wgmma_tn_bf16_128x224x64_d31d43",), (min(tiles_128x224, sms) * 1,), (),
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
            "wgmma_tn_bf16_128x176x64_7a44c4", "wgmma", 1, sms, tiles_128x176, -(-k // 64),
            k * 22528,
            tiles_128x176 * k * (608 + (min(m % 16, 1) * 128 + min(n % 16, 1) * 176) * 6), operands,
            stores_1,
        )
        choice = Choice(
            26, ("wgmma_tn_bf16_128x176x64_7a44c4",), (min(tiles_128x176, sms) * 1,), (),
        )
        yield Candidate(us, choice)
    # 27: many rows, by wgmma
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and (chunk % 64 == 0 or chunks <= 1) and sms >= 1
        and m + 128 <= 2147483647 and n + 128 <= 2147483647 and k + 64 <= 2147483647
        and tiles_128x128 + sms <= 4294967295
    ):
        us = time(
            "wgmma_tn_bf16_128x128x64_64c3c2", "wgmma", 1, sms, tiles_128x128, -(-k // 64),
            k * 16384,
            tiles_128x128 * k * (512 + (min(m % 16, 1) * 128 + min(n % 16, 1) * 128) * 6), operands,
            stores_1,
        )
        choice = Choice(
            27, ("wgmma_tn_bf16_128x128x64_64c3c2",), (min(tiles_128x128, sms) * 1,), (),
        )
        yield Candidate(us, choice)
    tiles_128x112 = -(-m // 128) * -(-n // 112)
    # 28: many rows, by wgmma
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and (chunk % 64 == 0 or chunks <= 1) and sms >= 1
        and m + 128 <= 2147483647 and n + 112 <= 2147483647 and k + 64 <= 2147483647
        and tiles_128x112 + sms <= 4294967295
    ):
        us = time(
            "wgmma_tn_bf16_128x112x64_bcc2a2", "wgmma", 1, sms, tiles_128x112, -(-k // 64),
            k * 14336,
            tiles_128x112 * k * (480 + (min(m % 16, 1) * 128 + min(n % 16, 1) * 112) * 6), operands,
            stores_1,
        )
        choice = Choice(
            28, ("wgmma_tn_bf16_128x112x64_bcc2a2",), (min(tiles_128x112, sms) * 1,), (),
        )
        yield Candidate(us, choice)
    tiles_64x256 = -(-m // 64) * -(-n // 256)
    # 29: many rows, by wgmma
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 256 <= 2147483647 and k + 64 <= 2147483647 and tiles_64x256 + sms <= 4294967295
    ):
        us = time(
            "wgmma_tn_bf16_64x256x64_91a39b", "wgmma", 1, sms, tiles_64x256, -(-k // 64), k * 16384,
            tiles_64x256 * k * (640 + (min(m % 16, 1) * 64 + min(n % 16, 1) * 256) * 6), operands,
            stores_1,
        )
        choice = Choice(29, ("wgmma_tn_bf16_64x256x64_91a39b",), (min(tiles_64x256, sms) * 1,), ())
        yield Candidate(us, choice)
    tiles_128x64 = -(-m // 128) * -(-n // 64)
    # 30: many rows, by wgmma
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and (chunk % 64 == 0 or chunks <= 1) and sms >= 1
        and m + 128 <= 2147483647 and n + 64 <= 2147483647 and k + 64 <= 2147483647
        and tiles_128x64 + sms <= 4294967295
    ):
        us = time(
            "wgmma_tn_bf16_128x64x64_0c609c", "wgmma", 1, sms, tiles_128x64, -(-k // 64), k * 8192,
            tiles_128x64 * k * (384 + (min(m % 16, 1) * 128 + min(n % 16, 1) * 64) * 6), operands,
            stores_1,
        )
        choice = Choice(30, ("wgmma_tn_bf16_128x64x64_0c609c",), (min(tiles_128x64, sms) * 1,), ())
        yield Candidate(us, choice)
    # 31: many rows, by wgmma
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and (chunk % 64 == 0 or chunks <= 1) and sms >= 1
        and m + 64 <= 2147483647 and n + 128 <= 2147483647 and k + 64 <= 2147483647
        and tiles_64x128 + sms <= 4294967295
    ):
        us = time(
            "wgmma_tn_bf16_64x128x64_cc0e14", "wgmma", 1, sms, tiles_64x128, -(-k // 64), k * 8192,
            tiles_64x128 * k * (384 + (min(m % 16, 1) * 64 + min(n % 16, 1) * 128) * 6), operands,
            stores_1,
        )
        choice = Choice(31, ("wgmma_tn_bf16_64x128x64_cc0e14",), (min(tiles_64x128, sms) * 1,), ())
        yield Candidate(us, choice)
    # 32: many rows, by wgmma
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and (chunk % 64 == 0 or chunks <= 1) and sms >= 2
        and m + 128 <= 2147483647 and n + 128 <= 2147483647 and k + 64 <= 2147483647
        and tiles_128x128 + sms // 2 <= 4294967295
    ):
        us = time(
            "wgmma_tn_bf16_64x128x64_bf5324", "wgmma", 1, sms, tiles_128x128 * 2, -(-k // 64),
            k * 8192, tiles_128x128 * k * (512 + (min(m % 16, 1) * 128 + min(n % 16, 1) * 128) * 6),
            operands, stores_1,
        )
        choice = Choice(
            32, ("wgmma_tn_bf16_64x128x64_bf5324",), (min(tiles_128x128, sms // 2) * 2,), (),
        )
        yield Candidate(us, choice)
    # 33: many rows, by wgmma
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and (chunk % 64 == 0 or chunks <= 1) and sms >= 1
        and m + 64 <= 2147483647 and n + 64 <= 2147483647 and k + 64 <= 2147483647
        and tiles_64x64 + sms <= 4294967295
    ):
        us = time(
            "wgmma_tn_bf16_64x64x64_c86b5d", "wgmma", 1, sms, tiles_64x64, -(-k // 64), k * 4096,
            tiles_64x64 * k * (256 + (min(m % 16, 1) * 64 + min(n % 16, 1) * 64) * 6), operands,
            stores_1,
        )
        choice = Choice(33, ("wgmma_tn_bf16_64x64x64_c86b5d",), (min(tiles_64x64, sms) * 1,), ())
        yield Candidate(us, choice)
    # 34: many rows, by wgmma
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and (chunk % 128 == 0 or chunks <= 1) and sms >= 1
        and m + 64 <= 2147483647 and n + 32 <= 2147483647 and k + 128 <= 2147483647
        and tiles_64x32 + sms <= 4294967295
    ):
        us = time(
            "wgmma_tn_bf16_64x32x128_01ed5d", "wgmma", 1, sms, tiles_64x32, -(-k // 128), k * 2048,
            tiles_64x32 * k * (192 + (min(m % 16, 1) * 64 + min(n % 16, 1) * 32) * 6), operands,
            stores_1,
        )
        choice = Choice(34, ("wgmma_tn_bf16_64x32x128_01ed5d",), (min(tiles_64x32, sms) * 1,), ())
        yield Candidate(us, choice)
    tiles_64x16 = -(-m // 64) * -(-n // 16)
    # 35: many rows, by wgmma
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and (chunk % 128 == 0 or chunks <= 1) and sms >= 1
        and m + 64 <= 2147483647 and n + 16 <= 2147483647 and k + 128 <= 2147483647
        and tiles_64x16 + sms <= 4294967295
    ):
        us = time(
            "wgmma_tn_bf16_64x16x128_551c14", "wgmma", 1, sms, tiles_64x16, -(-k // 128), k * 1024,
            tiles_64x16 * k * (160 + (min(m % 16, 1) * 64 + min(n % 16, 1) * 16) * 6), operands,
            stores_1,
        )
        choice = Choice(35, ("wgmma_tn_bf16_64x16x128_551c14",), (min(tiles_64x16, sms) * 1,), ())
        yield Candidate(us, choice)
    # 36: many rows, by mma
    if (
        align_a >= 16 and align_b >= 16 and (chunk % 64 == 0 or chunks <= 1)
        and tiles_64x64 <= 2147483647
    ):
        us = time(
            "mma_tn_bf16_64x64x64_f7c4fc", "mma", 3, sms, tiles_64x64, -(-k // 64), k * 4096,
            tiles_64x64 * k * (256 + (min(m % 16, 1) * 64 + min(n % 16, 1) * 64) * 6), operands,
            stores_1,
        )
        yield Candidate(us, Choice(36, ("mma_tn_bf16_64x64x64_f7c4fc",), (tiles_64x64,), ()))
    # 37: many rows, by mma
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_128x128 <= 2147483647:
        us = time(
            "mma_tn_bf16_128x128x64_0ec456", "mma", 2, sms, tiles_128x128, -(-k // 64), k * 16384,
            tiles_128x128 * k * (512 + (min(m % 16, 1) * 128 + min(n % 16, 1) * 128) * 6), operands,
            stores_1,
        )
        yield Candidate(us, Choice(37, ("mma_tn_bf16_128x128x64_0ec456",), (tiles_128x128,), ()))
    # 38: A off 16 bytes: copied first
    if (
        arch in SOME_0
        and pieces_k_m8 * 16 <= 1073741824 and align_b >= 16 and chunks <= 1 and sms >= 1
        and m + 128 <= 2147483647 and n + 256 <= 2147483647 and k + 64 <= 2147483647
        and tiles_128x256 + sms <= 4294967295
    ):
        us = time(
            "realign_b16x1_7953b4", "fma", 8, sms, -(-pieces_k_m8 // 512), 1, 0, operands_1,
            operands_1, operands_1,
        )
        us += time(
            "wgmma_tn_bf16_128x256x64_db9343", "wgmma", 1, sms, tiles_128x256, -(-k // 64),
            k * 32768,
            tiles_128x256 * k * (768 + (min(m % 16, 1) * 128 + min(n % 16, 1) * 256) * 6), operands,
            stores_1,
        )
        choice = Choice(
            38, ("realign_b16x1_7953b4", "wgmma_tn_bf16_128x256x64_db9343"),
            (-(-pieces_k_m8 // 512), min(tiles_128x256, sms) * 1), (pieces_k_m8 * 16,),
        )
        yield Candidate(us, choice)
    # 39: A and B off 16 bytes: copied first
    if (
        arch in SOME_0
        and pieces_k_m8 * 16 <= 1073741824 and pieces_k_n8 * 16 <= 1073741824 and chunks <= 1
        and sms >= 1 and m + 128 <= 2147483647 and n + 256 <= 2147483647 and k + 64 <= 2147483647
        and tiles_128x256 + sms <= 4294967295
    ):
        us = time(
            "realign_b16x2_d789c8", "fma", 8, sms, -(-pieces_k_m8 // 512) + -(-pieces_k_n8 // 512),
            1, 0, operands_2, operands_2, operands_2,
        )
        us += time(
            "wgmma_tn_bf16_128x256x64_db9343", "wgmma", 1, sms, tiles_128x256, -(-k // 64),
            k * 32768,
            tiles_128x256 * k * (768 + (min(m % 16, 1) * 128 + min(n % 16, 1) * 256) * 6), operands,
            stores_1,
        )
        choice = Choice(
            39, ("realign_b16x2_d789c8", "wgmma_tn_bf16_128x256x64_db9343"),
            (-(-pieces_k_m8 // 512) + -(-pieces_k_n8 // 512), min(tiles_128x256, sms) * 1),
            (pieces_k_m8 * 16, pieces_k_n8 * 16),
        )
        yield Candidate(us, choice)
    # 40: A off 16 bytes: copied first
    if (
        arch in SOME_0
        and pieces_k_m8 * 16 <= 1073741824 and align_b >= 16 and (chunk % 64 == 0 or chunks <= 1)
        and sms >= 1 and m + 128 <= 2147483647 and n + 128 <= 2147483647 and k + 64 <= 2147483647
        and tiles_128x128 + sms <= 4294967295
    ):
        us = time(
            "realign_b16x1_7953b4", "fma", 8, sms, -(-pieces_k_m8 // 512), 1, 0, operands_1,
            operands_1, operands_1,
        )
        us += time(
            "wgmma_tn_bf16_128x128x64_64c3c2", "wgmma", 1, sms, tiles_128x128, -(-k // 64),
            k * 16384,
            tiles_128x128 * k * (512 + (min(m % 16, 1) * 128 + min(n % 16, 1) * 128) * 6), operands,
            stores_1,
        )
        choice = Choice(
            40, ("realign_b16x1_7953b4", "wgmma_tn_bf16_128x128x64_64c3c2"),
            (-(-pieces_k_m8 // 512), min(tiles_128x128, sms) * 1), (pieces_k_m8 * 16,),
        )
        yield Candidate(us, choice)
    # 41: A and B off 16 bytes: copied first
    if (
        arch in SOME_0
        and pieces_k_m8 * 16 <= 1073741824 and pieces_k_n8 * 16 <= 1073741824
        and (chunk % 64 == 0 or chunks <= 1) and sms >= 1 and m + 128 <= 2147483647
        and n + 128 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x128 + sms <= 4294967295
    ):
        us = time(
            "realign_b16x2_d789c8", "fma", 8, sms, -(-pieces_k_m8 // 512) + -(-pieces_k_n8 // 512),
            1, 0, operands_2, operands_2, operands_2,
        )
        us += time(
            "wgmma_tn_bf16_128x128x64_64c3c2", "wgmma", 1, sms, tiles_128x128, -(-k // 64),
            k * 16384,
            tiles_128x128 * k * (512 + (min(m % 16, 1) * 128 + min(n % 16, 1) * 128) * 6), operands,
            stores_1,
        )
        choice = Choice(
            41, ("realign_b16x2_d789c8", "wgmma_tn_bf16_128x128x64_64c3c2"),
            (-(-pieces_k_m8 // 512) + -(-pieces_k_n8 // 512), min(tiles_128x128, sms) * 1),
            (pieces_k_m8 * 16, pieces_k_n8 * 16),
        )
        yield Candidate(us, choice)
    # 42: A off 16 bytes: copied first
    if (
        arch in SOME_0
        and pieces_k_m8 * 16 <= 1073741824 and align_b >= 16 and (chunk % 64 == 0 or chunks <= 1)
        and sms >= 1 and m + 64 <= 2147483647 and n + 64 <= 2147483647 and k + 64 <= 2147483647
        and tiles_64x64 + sms <= 4294967295
    ):
        us = time(
            "realign_b16x1_7953b4", "fma", 8, sms, -(-pieces_k_m8 // 512), 1, 0, operands_1,
            operands_1, operands_1,
        )
        us += time(
            "wgmma_tn_bf16_64x64x64_c86b5d", "wgmma", 1, sms, tiles_64x64, -(-k // 64), k * 4096,
            tiles_64x64 * k * (256 + (min(m % 16, 1) * 64 + min(n % 16, 1) * 64) * 6), operands,
            stores_1,
        )
        choice = Choice(
            42, ("realign_b16x1_7953b4", "wgmma_tn_bf16_64x64x64_c86b5d"),
            (-(-pieces_k_m8 // 512), min(tiles_64x64, sms) * 1), (pieces_k_m8 * 16,),
        )
        yield Candidate(us, choice)
    # 43: A and B off 16 bytes: copied first
    if (
        arch in SOME_0
        and pieces_k_m8 * 16 <= 1073741824 and pieces_k_n8 * 16 <= 1073741824
        and (chunk % 64 == 0 or chunks <= 1) and sms >= 1 and m + 64 <= 2147483647
        and n + 64 <= 2147483647 and k + 64 <= 2147483647 and tiles_64x64 + sms <= 4294967295
    ):
        us = time(
            "realign_b16x2_d789c8", "fma", 8, sms, -(-pieces_k_m8 // 512) + -(-pieces_k_n8 // 512),
            1, 0, operands_2, operands_2, operands_2,
        )
        us += time(
            "wgmma_tn_bf16_64x64x64_c86b5d", "wgmma", 1, sms, tiles_64x64, -(-k // 64), k * 4096,
            tiles_64x64 * k * (256 + (min(m % 16, 1) * 64 + min(n % 16, 1) * 64) * 6), operands,
            stores_1,
        )
        choice = Choice(
            43, ("realign_b16x2_d789c8", "wgmma_tn_bf16_64x64x64_c86b5d"),
            (-(-pieces_k_m8 // 512) + -(-pieces_k_n8 // 512), min(tiles_64x64, sms) * 1),
            (pieces_k_m8 * 16, pieces_k_n8 * 16),
        )
        yield Candidate(us, choice)
    # 44: A and B off 16 bytes: copied first
    if (
        pieces_k_m8 * 16 <= 1073741824 and pieces_k_n8 * 16 <= 1073741824 and chunks <= 1
        and tiles_128x128 <= 2147483647
    ):
        us = time(
            "realign_b16x2_d789c8", "fma", 8, sms, -(-pieces_k_m8 // 512) + -(-pieces_k_n8 // 512),
            1, 0, operands_2, operands_2, operands_2,
        )
        us += time(
            "mma_tn_bf16_128x128x64_0ec456", "mma", 2, sms, tiles_128x128, -(-k // 64), k * 16384,
            tiles_128x128 * k * (512 + (min(m % 16, 1) * 128 + min(n % 16, 1) * 128) * 6), operands,
            stores_1,
        )
        choice = Choice(
            44, ("realign_b16x2_d789c8", "mma_tn_bf16_128x128x64_0ec456"),
            (-(-pieces_k_m8 // 512) + -(-pieces_k_n8 // 512), tiles_128x128),
            (pieces_k_m8 * 16, pieces_k_n8 * 16),
        )
        yield Candidate(us, choice)
    # 45: operands off 16 bytes
    if (
        align_a >= 4 and align_b >= 16 and (chunk % 128 == 0 or chunks <= 1)
        and tiles_8x32 <= 2147483647
    ):
        us = time(
            "mma_tn_bf16_8x32x256_9756ff", "mma", 1, sms, tiles_8x32, -(-k // 256), k * 256,
            tiles_8x32 * k * (80 + (min(m % 16, 1) * 8 + min(n % 16, 1) * 32) * 6), operands,
            stores_1,
        )
        yield Candidate(us, Choice(45, ("mma_tn_bf16_8x32x256_9756ff",), (tiles_8x32,), ()))
    # 46: operands off 16 bytes
    if (
        align_a >= 4 and align_b >= 4 and (chunk % 128 == 0 or chunks <= 1)
        and tiles_16x32 <= 2147483647
    ):
        us = time(
            "mma_tn_bf16_16x32x128_c2d4c1", "mma", 1, sms, tiles_16x32, -(-k // 128), k * 512,
            tiles_16x32 * k * (96 + (min(m % 16, 1) * 16 + min(n % 16, 1) * 32) * 6), operands,
            stores_1,
        )
        yield Candidate(us, Choice(46, ("mma_tn_bf16_16x32x128_c2d4c1",), (tiles_16x32,), ()))
    # 47: operands off 16 bytes
    if (chunk % 128 == 0 or chunks <= 1) and tiles_16x32 <= 2147483647:
        us = time(
            "mma_tn_bf16_16x32x128_2dc9f7", "mma", 1, sms, tiles_16x32, -(-k // 128), k * 512,
            tiles_16x32 * k * (96 + (min(m % 16, 1) * 16 + min(n % 16, 1) * 32) * 6), operands,
            stores_1,
        )
        yield Candidate(us, Choice(47, ("mma_tn_bf16_16x32x128_2dc9f7",), (tiles_16x32,), ()))
    # 48: everything else: any size, alignment and plan
    if chunk % 32 == 0 or chunks <= 1:
        us = time(
            "mma_tn_bf16_64x64x32_0acf03", "mma", 3, sms, tiles_64x64, -(-k // 32), k * 4096,
            tiles_64x64 * k * (256 + (min(m % 16, 1) * 64 + min(n % 16, 1) * 64) * 6), operands,
            stores_1,
        )
        choice = Choice(48, ("mma_tn_bf16_64x64x32_0acf03",), (min(tiles_64x64, 2147483647),), ())
        yield Candidate(us, choice)
