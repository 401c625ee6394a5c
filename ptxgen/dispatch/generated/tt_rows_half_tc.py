"""Dispatch of TT rows half tc: products under the plan 'rows'.

Generated from ptxgen.tiles.TABLES["TT", "rows", "half", "tc"]; do not edit.
Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time

SOME_0 = frozenset(("sm_90",))


def candidates(
    arch: str, m: int, n: int, k: int, sms: int, align_a: int, align_b: int, time: Time
) -> Iterator[Candidate]:
    """What can serve a problem, with predicted times."""
    chunk_part_1 = -(-min(-(-k // 8), 2048) // 128) * 128
    chunk = max(1, min(k, chunk_part_1 if n <= 2048 and max(6 * n, 4096) <= k else k))
    chunks = -(-k // chunk)
    operands = (m + n) * k * 2
    stores = m * n * 2
    tiles_32x32 = -(-m // 32) * -(-n // 32)
    # 0: few rows: the weight streams once
    if (
        align_a >= 16 and align_b >= 16 and (chunk % 128 == 0 or chunks <= 1)
        and tiles_32x32 <= 2147483647
    ):
        us = time(
            "mma_tt_bf16_32x32x128_c8a03e", "mma", 1, sms, tiles_32x32, -(-k // 128), k * 1024,
            tiles_32x32 * k * (128 + (min(m % 16, 1) * 32 + min(k % 16, 1) * 32) * 6), operands,
            stores,
        )
        yield Candidate(us, Choice(0, ("mma_tt_bf16_32x32x128_c8a03e",), (tiles_32x32,), ()))
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    # 1: many rows, by wgmma
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and (chunk % 64 == 0 or chunks <= 1) and sms >= 1
        and m + 128 <= 2147483647 and n + 128 <= 2147483647 and k + 64 <= 2147483647
        and tiles_128x128 + sms <= 4294967295
    ):
        us = time(
            "wgmma_tt_bf16_128x128x64_34ebd8", "wgmma", 1, sms, tiles_128x128, -(-k // 64),
            k * 16384,
            tiles_128x128 * k * (512 + (min(m % 16, 1) * 128 + min(k % 16, 1) * 128) * 6), operands,
            stores,
        )
        choice = Choice(1, ("wgmma_tt_bf16_128x128x64_34ebd8",), (min(tiles_128x128, sms) * 1,), ())
        yield Candidate(us, choice)
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 2: many rows, by wgmma
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and (chunk % 64 == 0 or chunks <= 1) and sms >= 1
        and m + 64 <= 2147483647 and n + 64 <= 2147483647 and k + 64 <= 2147483647
        and tiles_64x64 + sms <= 4294967295
    ):
        us = time(
            "wgmma_tt_bf16_64x64x64_2ab748", "wgmma", 1, sms, tiles_64x64, -(-k // 64), k * 4096,
            tiles_64x64 * k * (256 + (min(m % 16, 1) * 64 + min(k % 16, 1) * 64) * 6), operands,
            stores,
        )
        choice = Choice(2, ("wgmma_tt_bf16_64x64x64_2ab748",), (min(tiles_64x64, sms) * 1,), ())
        yield Candidate(us, choice)
    # 3: many rows, by mma
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_128x128 <= 2147483647:
        us = time(
            "mma_tt_bf16_128x128x64_6e031d", "mma", 2, sms, tiles_128x128, -(-k // 64), k * 16384,
            tiles_128x128 * k * (512 + (min(m % 16, 1) * 128 + min(k % 16, 1) * 128) * 6), operands,
            stores,
        )
        yield Candidate(us, Choice(3, ("mma_tt_bf16_128x128x64_6e031d",), (tiles_128x128,), ()))
    tiles_8x32 = -(-m // 8) * -(-n // 32)
    # 4: operands off 16 bytes
    if (
        align_a >= 4 and align_b >= 16 and (chunk % 128 == 0 or chunks <= 1)
        and tiles_8x32 <= 2147483647
    ):
        us = time(
            "mma_tt_bf16_8x32x256_3b9a3e", "mma", 1, sms, tiles_8x32, -(-k // 256), k * 256,
            tiles_8x32 * k * (80 + (min(m % 16, 1) * 8 + min(k % 16, 1) * 32) * 6), operands,
            stores,
        )
        yield Candidate(us, Choice(4, ("mma_tt_bf16_8x32x256_3b9a3e",), (tiles_8x32,), ()))
    tiles_16x32 = -(-m // 16) * -(-n // 32)
    # 5: operands off 16 bytes
    if (chunk % 128 == 0 or chunks <= 1) and tiles_16x32 <= 2147483647:
        us = time(
            "mma_tt_bf16_16x32x128_6726d1", "mma", 1, sms, tiles_16x32, -(-k // 128), k * 512,
            tiles_16x32 * k * (96 + (min(m % 16, 1) * 16 + min(k % 16, 1) * 32) * 6), operands,
            stores,
        )
        yield Candidate(us, Choice(5, ("mma_tt_bf16_16x32x128_6726d1",), (tiles_16x32,), ()))
    # 6: everything else: any size, alignment and plan
    if chunk % 32 == 0 or chunks <= 1:
        us = time(
            "mma_tt_bf16_64x64x32_80086b", "mma", 3, sms, tiles_64x64, -(-k // 32), k * 4096,
            tiles_64x64 * k * (256 + (min(m % 16, 1) * 64 + min(k % 16, 1) * 64) * 6), operands,
            stores,
        )
        choice = Choice(6, ("mma_tt_bf16_64x64x32_80086b",), (min(tiles_64x64, 2147483647),), ())
        yield Candidate(us, choice)
