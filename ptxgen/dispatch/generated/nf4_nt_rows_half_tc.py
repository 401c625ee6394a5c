"""Dispatch of nf4 NT rows half tc: products under the plan 'rows', with NF4 weights.

Generated from ptxgen.tiles.TABLES["nf4", "NT", "rows", "half", "tc"]; do not edit.
Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time

SOME_0 = frozenset(("sm_90",))
SOME_1 = frozenset(("sm_80", "sm_87", "sm_90", "sm_100", "sm_103", "sm_110"))


def candidates(
    arch: str, m: int, n: int, k: int, sms: int, align_a: int, time: Time
) -> Iterator[Candidate]:
    """What can serve a problem, with predicted times."""
    chunk_part_1 = -(-min(-(-k // 8), 2048) // 128) * 128
    chunk = max(1, min(k, chunk_part_1 if n <= 2048 and max(6 * n, 4096) <= k else k))
    chunks = -(-k // chunk)
    operands = n * -(-k // 64) * 36
    stores = n * -(-k // 64) * 128
    operands_1 = (m + n) * k * 2
    stores_1 = chunks * m * n * 4
    stores_2 = m * n * 2
    pieces_n_k64 = n * -(-k // 64)
    tiles_192x192 = -(-m // 192) * -(-n // 192)
    # 0: the weight dequantised; a long reduction: a CTA per tile and chunk
    if (
        arch in SOME_0
        and stores <= 1073741824 and align_a >= 16 and (chunk % 64 == 0 or chunks <= 1)
        and stores_1 <= 268435456 and sms >= 1 and m + 192 <= 2147483647 and n + 192 <= 2147483647
        and k + 64 <= 2147483647 and tiles_192x192 * chunks + sms <= 4294967295
        and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "nf4_bf16_531262", "fma", 8, sms, -(-(pieces_n_k64 * 8) // 1024), 1, 0, operands,
            operands, stores,
        )
        us += time(
            "wgmma_nt_bf16_192x192x64_3adde2", "wgmma", 1, sms, tiles_192x192 * chunks,
            -(-chunk // 64), chunk * 36864,
            tiles_192x192 * k * (768 + min(k % 16, 1) * 384 + min(k % 16, 1) * 384), operands_1,
            stores_1,
        )
        us += time(
            "reduce_bf16_128x4_9cc9ba", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores_1, stores_1, stores_2,
        )
        choice = Choice(
            0, ("nf4_bf16_531262", "wgmma_nt_bf16_192x192x64_3adde2", "reduce_bf16_128x4_9cc9ba"),
            (
                -(-(pieces_n_k64 * 8) // 1024), min(tiles_192x192 * chunks, sms) * 1,
                -(-(m * n) // 512),
            ), (stores, stores_1),
        )
        yield Candidate(us, choice)
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    # 1: the weight dequantised; a long reduction: a CTA per tile and chunk
    if (
        arch in SOME_0
        and stores <= 1073741824 and align_a >= 16 and (chunk % 64 == 0 or chunks <= 1)
        and stores_1 <= 268435456 and sms >= 1 and m + 128 <= 2147483647 and n + 128 <= 2147483647
        and k + 64 <= 2147483647 and tiles_128x128 * chunks + sms <= 4294967295
        and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "nf4_bf16_531262", "fma", 8, sms, -(-(pieces_n_k64 * 8) // 1024), 1, 0, operands,
            operands, stores,
        )
        us += time(
            "wgmma_nt_bf16_128x128x64_40a9ac", "wgmma", 1, sms, tiles_128x128 * chunks,
            -(-chunk // 64), chunk * 16384,
            tiles_128x128 * k * (512 + min(k % 16, 1) * 256 + min(k % 16, 1) * 256), operands_1,
            stores_1,
        )
        us += time(
            "reduce_bf16_128x4_9cc9ba", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores_1, stores_1, stores_2,
        )
        choice = Choice(
            1, ("nf4_bf16_531262", "wgmma_nt_bf16_128x128x64_40a9ac", "reduce_bf16_128x4_9cc9ba"),
            (
                -(-(pieces_n_k64 * 8) // 1024), min(tiles_128x128 * chunks, sms) * 1,
                -(-(m * n) // 512),
            ), (stores, stores_1),
        )
        yield Candidate(us, choice)
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 2: the weight dequantised; a long reduction: a CTA per tile and chunk
    if (
        arch in SOME_0
        and stores <= 1073741824 and align_a >= 16 and (chunk % 64 == 0 or chunks <= 1)
        and stores_1 <= 268435456 and sms >= 1 and m + 64 <= 2147483647 and n + 64 <= 2147483647
        and k + 64 <= 2147483647 and tiles_64x64 * chunks + sms <= 4294967295
        and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "nf4_bf16_531262", "fma", 8, sms, -(-(pieces_n_k64 * 8) // 1024), 1, 0, operands,
            operands, stores,
        )
        us += time(
            "wgmma_nt_bf16_64x64x64_15f6e1", "wgmma", 1, sms, tiles_64x64 * chunks, -(-chunk // 64),
            chunk * 4096, tiles_64x64 * k * (256 + min(k % 16, 1) * 128 + min(k % 16, 1) * 128),
            operands_1, stores_1,
        )
        us += time(
            "reduce_bf16_128x4_9cc9ba", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores_1, stores_1, stores_2,
        )
        choice = Choice(
            2, ("nf4_bf16_531262", "wgmma_nt_bf16_64x64x64_15f6e1", "reduce_bf16_128x4_9cc9ba"),
            (
                -(-(pieces_n_k64 * 8) // 1024), min(tiles_64x64 * chunks, sms) * 1,
                -(-(m * n) // 512),
            ), (stores, stores_1),
        )
        yield Candidate(us, choice)
    # 3: the weight dequantised; a long reduction: a CTA per tile and chunk
    if (
        stores <= 1073741824 and align_a >= 16 and stores_1 <= 268435456
        and tiles_64x64 * chunks <= 2147483647 and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "nf4_bf16_531262", "fma", 8, sms, -(-(pieces_n_k64 * 8) // 1024), 1, 0, operands,
            operands, stores,
        )
        us += time(
            "mma_nt_bf16_64x64x128_1d04c7", "mma", 2, sms, tiles_64x64 * chunks, -(-chunk // 128),
            chunk * 4096, tiles_64x64 * k * (256 + min(k % 16, 1) * 128 + min(k % 16, 1) * 128),
            operands_1, stores_1,
        )
        us += time(
            "reduce_bf16_128x4_9cc9ba", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores_1, stores_1, stores_2,
        )
        choice = Choice(
            3, ("nf4_bf16_531262", "mma_nt_bf16_64x64x128_1d04c7", "reduce_bf16_128x4_9cc9ba"),
            (-(-(pieces_n_k64 * 8) // 1024), tiles_64x64 * chunks, -(-(m * n) // 512)),
            (stores, stores_1),
        )
        yield Candidate(us, choice)
    # 4: the weight dequantised; a long reduction: a CTA per tile and chunk
    if (
        stores <= 1073741824 and align_a >= 16 and stores_1 <= 268435456
        and tiles_128x128 * chunks <= 2147483647 and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "nf4_bf16_531262", "fma", 8, sms, -(-(pieces_n_k64 * 8) // 1024), 1, 0, operands,
            operands, stores,
        )
        us += time(
            "mma_nt_bf16_128x128x64_59583c", "mma", 2, sms, tiles_128x128 * chunks, -(-chunk // 64),
            chunk * 16384, tiles_128x128 * k * (512 + min(k % 16, 1) * 256 + min(k % 16, 1) * 256),
            operands_1, stores_1,
        )
        us += time(
            "reduce_bf16_128x4_9cc9ba", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores_1, stores_1, stores_2,
        )
        choice = Choice(
            4, ("nf4_bf16_531262", "mma_nt_bf16_128x128x64_59583c", "reduce_bf16_128x4_9cc9ba"),
            (-(-(pieces_n_k64 * 8) // 1024), tiles_128x128 * chunks, -(-(m * n) // 512)),
            (stores, stores_1),
        )
        yield Candidate(us, choice)
    # 5: the weight dequantised; a long reduction: a CTA per tile and chunk
    if (
        stores <= 1073741824 and stores_1 <= 268435456 and tiles_64x64 * chunks <= 2147483647
        and -(-(m * n) // 512) <= 2147483647
    ):
        us = time(
            "nf4_bf16_531262", "fma", 8, sms, -(-(pieces_n_k64 * 8) // 1024), 1, 0, operands,
            operands, stores,
        )
        us += time(
            "mma_nt_bf16_64x64x32_81c2b9", "mma", 4, sms, tiles_64x64 * chunks, -(-chunk // 32),
            chunk * 4096, tiles_64x64 * k * (256 + min(k % 16, 1) * 128 + min(k % 16, 1) * 128),
            operands_1, stores_1,
        )
        us += time(
            "reduce_bf16_128x4_9cc9ba", "fma", 8, sms, -(-(m * n) // 512), -(-chunks // 8), 0,
            stores_1, stores_1, stores_2,
        )
        choice = Choice(
            5, ("nf4_bf16_531262", "mma_nt_bf16_64x64x32_81c2b9", "reduce_bf16_128x4_9cc9ba"),
            (-(-(pieces_n_k64 * 8) // 1024), tiles_64x64 * chunks, -(-(m * n) // 512)),
            (stores, stores_1),
        )
        yield Candidate(us, choice)
    tiles_32x32 = -(-m // 32) * -(-n // 32)
    # 6: the weight dequantised; few rows: the weight streams once
    if (
        stores <= 1073741824 and align_a >= 16 and (chunk % 128 == 0 or chunks <= 1)
        and tiles_32x32 <= 2147483647
    ):
        us = time(
            "nf4_bf16_531262", "fma", 8, sms, -(-(pieces_n_k64 * 8) // 1024), 1, 0, operands,
            operands, stores,
        )
        us += time(
            "mma_nt_bf16_32x32x128_15f4e3", "mma", 1, sms, tiles_32x32, -(-k // 128), k * 1024,
            tiles_32x32 * k * (128 + min(k % 16, 1) * 64 + min(k % 16, 1) * 64), operands_1,
            stores_2,
        )
        choice = Choice(
            6, ("nf4_bf16_531262", "mma_nt_bf16_32x32x128_15f4e3"),
            (-(-(pieces_n_k64 * 8) // 1024), tiles_32x32), (stores,),
        )
        yield Candidate(us, choice)
    tiles_32x64 = -(-m // 32) * -(-n // 64)
    # 7: the weight dequantised; few rows: the weight streams once
    if (
        arch in SOME_1
        and stores <= 1073741824 and align_a >= 16 and (chunk % 128 == 0 or chunks <= 1)
        and tiles_32x64 <= 2147483647
    ):
        us = time(
            "nf4_bf16_531262", "fma", 8, sms, -(-(pieces_n_k64 * 8) // 1024), 1, 0, operands,
            operands, stores,
        )
        us += time(
            "mma_nt_bf16_32x64x128_9edc63", "mma", 1, sms, tiles_32x64, -(-k // 128), k * 2048,
            tiles_32x64 * k * (192 + min(k % 16, 1) * 64 + min(k % 16, 1) * 128), operands_1,
            stores_2,
        )
        choice = Choice(
            7, ("nf4_bf16_531262", "mma_nt_bf16_32x64x128_9edc63"),
            (-(-(pieces_n_k64 * 8) // 1024), tiles_32x64), (stores,),
        )
        yield Candidate(us, choice)
    tiles_64x128 = -(-m // 64) * -(-n // 128)
    # 8: the weight dequantised; few rows: the weight streams once
    if (
        arch in SOME_1
        and stores <= 1073741824 and align_a >= 16 and (chunk % 64 == 0 or chunks <= 1)
        and tiles_64x128 <= 2147483647
    ):
        us = time(
            "nf4_bf16_531262", "fma", 8, sms, -(-(pieces_n_k64 * 8) // 1024), 1, 0, operands,
            operands, stores,
        )
        us += time(
            "mma_nt_bf16_64x128x64_4da3e2", "mma", 1, sms, tiles_64x128, -(-k // 64), k * 8192,
            tiles_64x128 * k * (384 + min(k % 16, 1) * 128 + min(k % 16, 1) * 256), operands_1,
            stores_2,
        )
        choice = Choice(
            8, ("nf4_bf16_531262", "mma_nt_bf16_64x128x64_4da3e2"),
            (-(-(pieces_n_k64 * 8) // 1024), tiles_64x128), (stores,),
        )
        yield Candidate(us, choice)
    tiles_128x256 = -(-m // 128) * -(-n // 256)
    # 9: the weight dequantised; many rows, by wgmma
    if (
        arch in SOME_0
        and stores <= 1073741824 and align_a >= 16 and chunks <= 1 and sms >= 1
        and m + 128 <= 2147483647 and n + 256 <= 2147483647 and k + 64 <= 2147483647
        and tiles_128x256 + sms <= 4294967295
    ):
        us = time(
            "nf4_bf16_531262", "fma", 8, sms, -(-(pieces_n_k64 * 8) // 1024), 1, 0, operands,
            operands, stores,
        )
        us += time(
            "wgmma_nt_bf16_128x256x64_b35b38", "wgmma", 1, sms, tiles_128x256, -(-k // 64),
            k * 32768, tiles_128x256 * k * (768 + min(k % 16, 1) * 256 + min(k % 16, 1) * 512),
            operands_1, stores_2,
        )
        choice = Choice(
            9, ("nf4_bf16_531262", "wgmma_nt_bf16_128x256x64_b35b38"),
            (-(-(pieces_n_k64 * 8) // 1024), min(tiles_128x256, sms) * 1), (stores,),
        )
        yield Candidate(us, choice)
    tiles_256x256 = -(-m // 256) * -(-n // 256)
    # 10: the weight dequantised; many rows, by wgmma
    if (
        arch in SOME_0
        and stores <= 1073741824 and align_a >= 16 and chunks <= 1 and sms >= 2
        and m + 256 <= 2147483647 and n + 256 <= 2147483647 and k + 64 <= 2147483647
        and tiles_256x256 + sms // 2 <= 4294967295
    ):
        us = time(
            "nf4_bf16_531262", "fma", 8, sms, -(-(pieces_n_k64 * 8) // 1024), 1, 0, operands,
            operands, stores,
        )
        us += time(
            "wgmma_nt_bf16_128x256x64_362a60", "wgmma", 1, sms, tiles_256x256 * 2, -(-k // 64),
            k * 32768, tiles_256x256 * k * (1024 + min(k % 16, 1) * 512 + min(k % 16, 1) * 512),
            operands_1, stores_2,
        )
        choice = Choice(
            10, ("nf4_bf16_531262", "wgmma_nt_bf16_128x256x64_362a60"),
            (-(-(pieces_n_k64 * 8) // 1024), min(tiles_256x256, sms // 2) * 2), (stores,),
        )
        yield Candidate(us, choice)
    tiles_256x192 = -(-m // 256) * -(-n // 192)
    # 11: the weight dequantised; many rows, by wgmma
    if (
        arch in SOME_0
        and stores <= 1073741824 and align_a >= 16 and chunks <= 1 and sms >= 2
        and m + 256 <= 2147483647 and n + 192 <= 2147483647 and k + 64 <= 2147483647
        and tiles_256x192 + sms // 2 <= 4294967295
    ):
        us = time(
            "nf4_bf16_531262", "fma", 8, sms, -(-(pieces_n_k64 * 8) // 1024), 1, 0, operands,
            operands, stores,
        )
        us += time(
            "wgmma_nt_bf16_128x192x64_cf3d87", "wgmma", 1, sms, tiles_256x192 * 2, -(-k // 64),
            k * 24576, tiles_256x192 * k * (896 + min(k % 16, 1) * 512 + min(k % 16, 1) * 384),
            operands_1, stores_2,
        )
        choice = Choice(
            11, ("nf4_bf16_531262", "wgmma_nt_bf16_128x192x64_cf3d87"),
            (-(-(pieces_n_k64 * 8) // 1024), min(tiles_256x192, sms // 2) * 2), (stores,),
        )
        yield Candidate(us, choice)
    # 12: the weight dequantised; many rows, by wgmma
    if (
        arch in SOME_0
        and stores <= 1073741824 and align_a >= 16 and chunks <= 1 and sms >= 1
        and m + 192 <= 2147483647 and n + 192 <= 2147483647 and k + 64 <= 2147483647
        and tiles_192x192 + sms <= 4294967295
    ):
        us = time(
            "nf4_bf16_531262", "fma", 8, sms, -(-(pieces_n_k64 * 8) // 1024), 1, 0, operands,
            operands, stores,
        )
        us += time(
            "wgmma_nt_bf16_192x192x64_f483cd", "wgmma", 1, sms, tiles_192x192, -(-k // 64),
            k * 36864, tiles_192x192 * k * (768 + min(k % 16, 1) * 384 + min(k % 16, 1) * 384),
            operands_1, stores_2,
        )
        choice = Choice(
            12, ("nf4_bf16_531262", "wgmma_nt_bf16_192x192x64_f483cd"),
            (-(-(pieces_n_k64 * 8) // 1024), min(tiles_192x192, sms) * 1), (stores,),
        )
        yield Candidate(us, choice)
    tiles_192x256 = -(-m // 192) * -(-n // 256)
    # 13: the weight dequantised; many rows, by wgmma
    if (
        arch in SOME_0
        and stores <= 1073741824 and align_a >= 16 and chunks <= 1 and sms >= 2
        and m + 192 <= 2147483647 and n + 256 <= 2147483647 and k + 64 <= 2147483647
        and tiles_192x256 + sms // 2 <= 4294967295
    ):
        us = time(
            "nf4_bf16_531262", "fma", 8, sms, -(-(pieces_n_k64 * 8) // 1024), 1, 0, operands,
            operands, stores,
        )
        us += time(
            "wgmma_nt_bf16_192x128x64_481d7f", "wgmma", 1, sms, tiles_192x256 * 2, -(-k // 64),
            k * 24576, tiles_192x256 * k * (896 + min(k % 16, 1) * 384 + min(k % 16, 1) * 512),
            operands_1, stores_2,
        )
        choice = Choice(
            13, ("nf4_bf16_531262", "wgmma_nt_bf16_192x128x64_481d7f"),
            (-(-(pieces_n_k64 * 8) // 1024), min(tiles_192x256, sms // 2) * 2), (stores,),
        )
        yield Candidate(us, choice)
    tiles_128x224 = -(-m // 128) * -(-n // 224)
    # 14: the weight dequantised; many rows, by wgmma
    if (
        arch in SOME_0
        and stores <= 1073741824 and align_a >= 16 and chunks <= 1 and sms >= 1
        and m + 128 <= 2147483647 and n + 224 <= 2147483647 and k + 64 <= 2147483647
        and tiles_128x224 + sms <= 4294967295
    ):
        us = time(
            "nf4_bf16_531262", "fma", 8, sms, -(-(pieces_n_k64 * 8) // 1024), 1, 0, operands,
            operands, stores,
        )
        us += time(
            "wgmma_nt_bf16_128x224x64_18067c", "wgmma", 1, sms, tiles_128x224, -(-k // 64),
            k * 28672, tiles_128x224 * k * (704 + min(k % 16, 1) * 256 + min(k % 16, 1) * 448),
            operands_1, stores_2,
        )
        choice = Choice(
            14, ("nf4_bf16_531262", "wgmma_nt_bf16_128x224x64_18067c"),
            (-(-(pieces_n_k64 * 8) // 1024), min(tiles_128x224, sms) * 1), (stores,),
        )
        yield Candidate(us, choice)
    tiles_128x176 = -(-m // 128) * -(-n // 176)
    # 15: the weight dequantised; many rows, by wgmma
    if (
        arch in SOME_0
        and stores <= 1073741824 and align_a >= 16 and (chunk % 64 == 0 or chunks <= 1) and sms >= 1
        and m + 128 <= 2147483647 and n + 176 <= 2147483647 and k + 64 <= 2147483647
        and tiles_128x176 + sms <= 4294967295
    ):
        us = time(
            "nf4_bf16_531262", "fma", 8, sms, -(-(pieces_n_k64 * 8) // 1024), 1, 0, operands,
            operands, stores,
        )
        us += time(
            "wgmma_nt_bf16_128x176x64_218ab3", "wgmma", 1, sms, tiles_128x176, -(-k // 64),
            k * 22528, tiles_128x176 * k * (608 + min(k % 16, 1) * 256 + min(k % 16, 1) * 352),
            operands_1, stores_2,
        )
        choice = Choice(
            15, ("nf4_bf16_531262", "wgmma_nt_bf16_128x176x64_218ab3"),
            (-(-(pieces_n_k64 * 8) // 1024), min(tiles_128x176, sms) * 1), (stores,),
        )
        yield Candidate(us, choice)
    tiles_256x160 = -(-m // 256) * -(-n // 160)
    # 16: the weight dequantised; many rows, by wgmma
    if (
        arch in SOME_0
        and stores <= 1073741824 and align_a >= 16 and (chunk % 64 == 0 or chunks <= 1) and sms >= 2
        and m + 256 <= 2147483647 and n + 160 <= 2147483647 and k + 64 <= 2147483647
        and tiles_256x160 + sms // 2 <= 4294967295
    ):
        us = time(
            "nf4_bf16_531262", "fma", 8, sms, -(-(pieces_n_k64 * 8) // 1024), 1, 0, operands,
            operands, stores,
        )
        us += time(
            "wgmma_nt_bf16_128x160x64_732859", "wgmma", 1, sms, tiles_256x160 * 2, -(-k // 64),
            k * 20480, tiles_256x160 * k * (832 + min(k % 16, 1) * 512 + min(k % 16, 1) * 320),
            operands_1, stores_2,
        )
        choice = Choice(
            16, ("nf4_bf16_531262", "wgmma_nt_bf16_128x160x64_732859"),
            (-(-(pieces_n_k64 * 8) // 1024), min(tiles_256x160, sms // 2) * 2), (stores,),
        )
        yield Candidate(us, choice)
    # 17: the weight dequantised; many rows, by wgmma
    if (
        arch in SOME_0
        and stores <= 1073741824 and align_a >= 16 and (chunk % 64 == 0 or chunks <= 1) and sms >= 1
        and m + 128 <= 2147483647 and n + 128 <= 2147483647 and k + 64 <= 2147483647
        and tiles_128x128 + sms <= 4294967295
    ):
        us = time(
            "nf4_bf16_531262", "fma", 8, sms, -(-(pieces_n_k64 * 8) // 1024), 1, 0, operands,
            operands, stores,
        )
        us += time(
            "wgmma_nt_bf16_128x128x64_96a12d", "wgmma", 1, sms, tiles_128x128, -(-k // 64),
            k * 16384, tiles_128x128 * k * (512 + min(k % 16, 1) * 256 + min(k % 16, 1) * 256),
            operands_1, stores_2,
        )
        choice = Choice(
            17, ("nf4_bf16_531262", "wgmma_nt_bf16_128x128x64_96a12d"),
            (-(-(pieces_n_k64 * 8) // 1024), min(tiles_128x128, sms) * 1), (stores,),
        )
        yield Candidate(us, choice)
    tiles_128x112 = -(-m // 128) * -(-n // 112)
    # 18: the weight dequantised; many rows, by wgmma
    if (
        arch in SOME_0
        and stores <= 1073741824 and align_a >= 16 and (chunk % 64 == 0 or chunks <= 1) and sms >= 1
        and m + 128 <= 2147483647 and n + 112 <= 2147483647 and k + 64 <= 2147483647
        and tiles_128x112 + sms <= 4294967295
    ):
        us = time(
            "nf4_bf16_531262", "fma", 8, sms, -(-(pieces_n_k64 * 8) // 1024), 1, 0, operands,
            operands, stores,
        )
        us += time(
            "wgmma_nt_bf16_128x112x64_18e25a", "wgmma", 1, sms, tiles_128x112, -(-k // 64),
            k * 14336, tiles_128x112 * k * (480 + min(k % 16, 1) * 256 + min(k % 16, 1) * 224),
            operands_1, stores_2,
        )
        choice = Choice(
            18, ("nf4_bf16_531262", "wgmma_nt_bf16_128x112x64_18e25a"),
            (-(-(pieces_n_k64 * 8) // 1024), min(tiles_128x112, sms) * 1), (stores,),
        )
        yield Candidate(us, choice)
    tiles_64x256 = -(-m // 64) * -(-n // 256)
    # 19: the weight dequantised; many rows, by wgmma
    if (
        arch in SOME_0
        and stores <= 1073741824 and align_a >= 16 and chunks <= 1 and sms >= 1
        and m + 64 <= 2147483647 and n + 256 <= 2147483647 and k + 64 <= 2147483647
        and tiles_64x256 + sms <= 4294967295
    ):
        us = time(
            "nf4_bf16_531262", "fma", 8, sms, -(-(pieces_n_k64 * 8) // 1024), 1, 0, operands,
            operands, stores,
        )
        us += time(
            "wgmma_nt_bf16_64x256x64_7ed76b", "wgmma", 1, sms, tiles_64x256, -(-k // 64), k * 16384,
            tiles_64x256 * k * (640 + min(k % 16, 1) * 128 + min(k % 16, 1) * 512), operands_1,
            stores_2,
        )
        choice = Choice(
            19, ("nf4_bf16_531262", "wgmma_nt_bf16_64x256x64_7ed76b"),
            (-(-(pieces_n_k64 * 8) // 1024), min(tiles_64x256, sms) * 1), (stores,),
        )
        yield Candidate(us, choice)
    tiles_64x160 = -(-m // 64) * -(-n // 160)
    # 20: the weight dequantised; many rows, by wgmma
    if (
        arch in SOME_0
        and stores <= 1073741824 and align_a >= 16 and (chunk % 64 == 0 or chunks <= 1) and sms >= 1
        and m + 64 <= 2147483647 and n + 160 <= 2147483647 and k + 64 <= 2147483647
        and tiles_64x160 + sms <= 4294967295
    ):
        us = time(
            "nf4_bf16_531262", "fma", 8, sms, -(-(pieces_n_k64 * 8) // 1024), 1, 0, operands,
            operands, stores,
        )
        us += time(
            "wgmma_nt_bf16_64x160x64_3d3368", "wgmma", 1, sms, tiles_64x160, -(-k // 64), k * 10240,
            tiles_64x160 * k * (448 + min(k % 16, 1) * 128 + min(k % 16, 1) * 320), operands_1,
            stores_2,
        )
        choice = Choice(
            20, ("nf4_bf16_531262", "wgmma_nt_bf16_64x160x64_3d3368"),
            (-(-(pieces_n_k64 * 8) // 1024), min(tiles_64x160, sms) * 1), (stores,),
        )
        yield Candidate(us, choice)
    tiles_128x64 = -(-m // 128) * -(-n // 64)
    # 21: the weight dequantised; many rows, by wgmma
    if (
        arch in SOME_0
        and stores <= 1073741824 and align_a >= 16 and (chunk % 64 == 0 or chunks <= 1) and sms >= 1
        and m + 128 <= 2147483647 and n + 64 <= 2147483647 and k + 64 <= 2147483647
        and tiles_128x64 + sms <= 4294967295
    ):
        us = time(
            "nf4_bf16_531262", "fma", 8, sms, -(-(pieces_n_k64 * 8) // 1024), 1, 0, operands,
            operands, stores,
        )
        us += time(
            "wgmma_nt_bf16_128x64x64_885da7", "wgmma", 1, sms, tiles_128x64, -(-k // 64), k * 8192,
            tiles_128x64 * k * (384 + min(k % 16, 1) * 256 + min(k % 16, 1) * 128), operands_1,
            stores_2,
        )
        choice = Choice(
            21, ("nf4_bf16_531262", "wgmma_nt_bf16_128x64x64_885da7"),
            (-(-(pieces_n_k64 * 8) // 1024), min(tiles_128x64, sms) * 1), (stores,),
        )
        yield Candidate(us, choice)
    # 22: the weight dequantised; many rows, by wgmma
    if (
        arch in SOME_0
        and stores <= 1073741824 and align_a >= 16 and (chunk % 64 == 0 or chunks <= 1) and sms >= 1
        and m + 64 <= 2147483647 and n + 128 <= 2147483647 and k + 64 <= 2147483647
        and tiles_64x128 + sms <= 4294967295
    ):
        us = time(
            "nf4_bf16_531262", "fma", 8, sms, -(-(pieces_n_k64 * 8) // 1024), 1, 0, operands,
            operands, stores,
        )
        us += time(
            "wgmma_nt_bf16_64x128x64_deac4e", "wgmma", 1, sms, tiles_64x128, -(-k // 64), k * 8192,
            tiles_64x128 * k * (384 + min(k % 16, 1) * 128 + min(k % 16, 1) * 256), operands_1,
            stores_2,
        )
        choice = Choice(
            22, ("nf4_bf16_531262", "wgmma_nt_bf16_64x128x64_deac4e"),
            (-(-(pieces_n_k64 * 8) // 1024), min(tiles_64x128, sms) * 1), (stores,),
        )
        yield Candidate(us, choice)
    # 23: the weight dequantised; many rows, by wgmma
    if (
        arch in SOME_0
        and stores <= 1073741824 and align_a >= 16 and (chunk % 64 == 0 or chunks <= 1) and sms >= 2
        and m + 128 <= 2147483647 and n + 128 <= 2147483647 and k + 64 <= 2147483647
        and tiles_128x128 + sms // 2 <= 4294967295
    ):
        us = time(
            "nf4_bf16_531262", "fma", 8, sms, -(-(pieces_n_k64 * 8) // 1024), 1, 0, operands,
            operands, stores,
        )
        us += time(
            "wgmma_nt_bf16_64x128x64_6a500d", "wgmma", 1, sms, tiles_128x128 * 2, -(-k // 64),
            k * 8192, tiles_128x128 * k * (512 + min(k % 16, 1) * 256 + min(k % 16, 1) * 256),
            operands_1, stores_2,
        )
        choice = Choice(
            23, ("nf4_bf16_531262", "wgmma_nt_bf16_64x128x64_6a500d"),
            (-(-(pieces_n_k64 * 8) // 1024), min(tiles_128x128, sms // 2) * 2), (stores,),
        )
        yield Candidate(us, choice)
    # 24: the weight dequantised; many rows, by wgmma
    if (
        arch in SOME_0
        and stores <= 1073741824 and align_a >= 16 and (chunk % 64 == 0 or chunks <= 1) and sms >= 1
        and m + 64 <= 2147483647 and n + 64 <= 2147483647 and k + 64 <= 2147483647
        and tiles_64x64 + sms <= 4294967295
    ):
        us = time(
            "nf4_bf16_531262", "fma", 8, sms, -(-(pieces_n_k64 * 8) // 1024), 1, 0, operands,
            operands, stores,
        )
        us += time(
            "wgmma_nt_bf16_64x64x64_595f63", "wgmma", 1, sms, tiles_64x64, -(-k // 64), k * 4096,
            tiles_64x64 * k * (256 + min(k % 16, 1) * 128 + min(k % 16, 1) * 128), operands_1,
            stores_2,
        )
        choice = Choice(
            24, ("nf4_bf16_531262", "wgmma_nt_bf16_64x64x64_595f63"),
            (-(-(pieces_n_k64 * 8) // 1024), min(tiles_64x64, sms) * 1), (stores,),
        )
        yield Candidate(us, choice)
    tiles_64x32 = -(-m // 64) * -(-n // 32)
    # 25: the weight dequantised; many rows, by wgmma
    if (
        arch in SOME_0
        and stores <= 1073741824 and align_a >= 16 and (chunk % 128 == 0 or chunks <= 1)
        and sms >= 1 and m + 64 <= 2147483647 and n + 32 <= 2147483647 and k + 128 <= 2147483647
        and tiles_64x32 + sms <= 4294967295
    ):
        us = time(
            "nf4_bf16_531262", "fma", 8, sms, -(-(pieces_n_k64 * 8) // 1024), 1, 0, operands,
            operands, stores,
        )
        us += time(
            "wgmma_nt_bf16_64x32x128_6d7237", "wgmma", 1, sms, tiles_64x32, -(-k // 128), k * 2048,
            tiles_64x32 * k * (192 + min(k % 16, 1) * 128 + min(k % 16, 1) * 64), operands_1,
            stores_2,
        )
        choice = Choice(
            25, ("nf4_bf16_531262", "wgmma_nt_bf16_64x32x128_6d7237"),
            (-(-(pieces_n_k64 * 8) // 1024), min(tiles_64x32, sms) * 1), (stores,),
        )
        yield Candidate(us, choice)
    tiles_64x16 = -(-m // 64) * -(-n // 16)
    # 26: the weight dequantised; many rows, by wgmma
    if (
        arch in SOME_0
        and stores <= 1073741824 and align_a >= 16 and (chunk % 128 == 0 or chunks <= 1)
        and sms >= 1 and m + 64 <= 2147483647 and n + 16 <= 2147483647 and k + 128 <= 2147483647
        and tiles_64x16 + sms <= 4294967295
    ):
        us = time(
            "nf4_bf16_531262", "fma", 8, sms, -(-(pieces_n_k64 * 8) // 1024), 1, 0, operands,
            operands, stores,
        )
        us += time(
            "wgmma_nt_bf16_64x16x128_b79a3a", "wgmma", 1, sms, tiles_64x16, -(-k // 128), k * 1024,
            tiles_64x16 * k * (160 + min(k % 16, 1) * 128 + min(k % 16, 1) * 32), operands_1,
            stores_2,
        )
        choice = Choice(
            26, ("nf4_bf16_531262", "wgmma_nt_bf16_64x16x128_b79a3a"),
            (-(-(pieces_n_k64 * 8) // 1024), min(tiles_64x16, sms) * 1), (stores,),
        )
        yield Candidate(us, choice)
    # 27: the weight dequantised; many rows, by mma
    if (
        stores <= 1073741824 and align_a >= 16 and (chunk % 64 == 0 or chunks <= 1)
        and tiles_64x64 <= 2147483647
    ):
        us = time(
            "nf4_bf16_531262", "fma", 8, sms, -(-(pieces_n_k64 * 8) // 1024), 1, 0, operands,
            operands, stores,
        )
        us += time(
            "mma_nt_bf16_64x64x64_93d7f2", "mma", 3, sms, tiles_64x64, -(-k // 64), k * 4096,
            tiles_64x64 * k * (256 + min(k % 16, 1) * 128 + min(k % 16, 1) * 128), operands_1,
            stores_2,
        )
        choice = Choice(
            27, ("nf4_bf16_531262", "mma_nt_bf16_64x64x64_93d7f2"),
            (-(-(pieces_n_k64 * 8) // 1024), tiles_64x64), (stores,),
        )
        yield Candidate(us, choice)
    # 28: the weight dequantised; many rows, by mma
    if stores <= 1073741824 and align_a >= 16 and chunks <= 1 and tiles_128x128 <= 2147483647:
        us = time(
            "nf4_bf16_531262", "fma", 8, sms, -(-(pieces_n_k64 * 8) // 1024), 1, 0, operands,
            operands, stores,
        )
        us += time(
            "mma_nt_bf16_128x128x64_beb296", "mma", 2, sms, tiles_128x128, -(-k // 64), k * 16384,
            tiles_128x128 * k * (512 + min(k % 16, 1) * 256 + min(k % 16, 1) * 256), operands_1,
            stores_2,
        )
        choice = Choice(
            28, ("nf4_bf16_531262", "mma_nt_bf16_128x128x64_beb296"),
            (-(-(pieces_n_k64 * 8) // 1024), tiles_128x128), (stores,),
        )
        yield Candidate(us, choice)
    # 29: the weight dequantised; everything else: any size, alignment and plan
    if stores <= 1073741824 and (chunk % 32 == 0 or chunks <= 1):
        us = time(
            "nf4_bf16_531262", "fma", 8, sms, -(-(pieces_n_k64 * 8) // 1024), 1, 0, operands,
            operands, stores,
        )
        us += time(
            "mma_nt_bf16_64x64x32_d497a1", "mma", 3, sms, tiles_64x64, -(-k // 32), k * 4096,
            tiles_64x64 * k * (256 + min(k % 16, 1) * 128 + min(k % 16, 1) * 128), operands_1,
            stores_2,
        )
        choice = Choice(
            29, ("nf4_bf16_531262", "mma_nt_bf16_64x64x32_d497a1"),
            (-(-(pieces_n_k64 * 8) // 1024), min(tiles_64x64, 2147483647)), (stores,),
        )
        yield Candidate(us, choice)
