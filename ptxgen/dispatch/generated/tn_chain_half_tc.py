"""Dispatch of TN chain half tc: products under the plan 'chain'.

Generated from ptxgen.tiles.TABLES["TN", "chain", "half", "tc"]; do not edit.
Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time

SOME_0 = frozenset(("sm_90",))


def candidates(
    arch: str,
    m: int,
    n: int,
    k: int,
    sms: int,
    align_a: int,
    align_b: int,
    align_c: int,
    item_c: int,
    time: Time,
) -> Iterator[Candidate]:
    """What can serve a problem, with predicted times."""
    chunk = max(1, min(k, k))
    chunks = -(-k // chunk)
    operands = (m + n) * k * 2
    stores = m * n * (item_c * 2)
    tiles_128x256 = -(-m // 128) * -(-n // 256)
    # 0: one chain, from what is there, by wgmma
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 256 <= 2147483647 and k + 32 <= 2147483647 and tiles_128x256 + sms <= 4294967295
        and align_c >= 16 and item_c == 2 and n % 8 == 0
    ):
        us = time(
            "wgmma_chain_tn_bf16_128x256x32_bf16_517896", "wgmma", 1, sms, tiles_128x256,
            -(-k // 32), k * 32768,
            tiles_128x256 * k * (768 + (min(m % 16, 1) * 128 + min(n % 16, 1) * 256) * 6), operands,
            stores,
        )
        choice = Choice(
            0, ("wgmma_chain_tn_bf16_128x256x32_bf16_517896",), (min(tiles_128x256, sms) * 1,), (),
        )
        yield Candidate(us, choice)
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 1: one chain, from what is there, by wgmma
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 64 <= 2147483647 and k + 64 <= 2147483647 and tiles_64x64 + sms <= 4294967295
        and align_c >= 16 and item_c == 2 and n % 8 == 0
    ):
        us = time(
            "wgmma_chain_tn_bf16_64x64x64_bf16_ed5e58", "wgmma", 1, sms, tiles_64x64, -(-k // 64),
            k * 4096, tiles_64x64 * k * (256 + (min(m % 16, 1) * 64 + min(n % 16, 1) * 64) * 6),
            operands, stores,
        )
        choice = Choice(
            1, ("wgmma_chain_tn_bf16_64x64x64_bf16_ed5e58",), (min(tiles_64x64, sms) * 1,), (),
        )
        yield Candidate(us, choice)
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    # 2: one chain, from what is there, by wgmma
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 128 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x128 + sms <= 4294967295
        and align_c >= 16 and item_c == 4 and n % 4 == 0
    ):
        us = time(
            "wgmma_chain_tn_bf16_128x128x64_f32_af9f41", "wgmma", 1, sms, tiles_128x128,
            -(-k // 64), k * 16384,
            tiles_128x128 * k * (512 + (min(m % 16, 1) * 128 + min(n % 16, 1) * 128) * 6), operands,
            stores,
        )
        choice = Choice(
            2, ("wgmma_chain_tn_bf16_128x128x64_f32_af9f41",), (min(tiles_128x128, sms) * 1,), (),
        )
        yield Candidate(us, choice)
    # 3: one chain, from what is there, by wgmma
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 64 <= 2147483647 and k + 64 <= 2147483647 and tiles_64x64 + sms <= 4294967295
        and align_c >= 16 and item_c == 4 and n % 4 == 0
    ):
        us = time(
            "wgmma_chain_tn_bf16_64x64x64_f32_e78ba4", "wgmma", 1, sms, tiles_64x64, -(-k // 64),
            k * 4096, tiles_64x64 * k * (256 + (min(m % 16, 1) * 64 + min(n % 16, 1) * 64) * 6),
            operands, stores,
        )
        choice = Choice(
            3, ("wgmma_chain_tn_bf16_64x64x64_f32_e78ba4",), (min(tiles_64x64, sms) * 1,), (),
        )
        yield Candidate(us, choice)
    operands_1 = 0 + k * -(-m // 8) * 16
    pieces_k_m8 = k * -(-m // 8)
    # 4: A off 16 bytes: copied first
    if (
        arch in SOME_0
        and pieces_k_m8 * 16 <= 1073741824 and align_b >= 16 and chunks <= 1 and sms >= 1
        and m + 128 <= 2147483647 and n + 256 <= 2147483647 and k + 32 <= 2147483647
        and tiles_128x256 + sms <= 4294967295 and align_c >= 16 and item_c == 2 and n % 8 == 0
    ):
        us = time(
            "realign_b16x1_7953b4", "fma", 8, sms, -(-pieces_k_m8 // 512), 1, 0, operands_1,
            operands_1, operands_1,
        )
        us += time(
            "wgmma_chain_tn_bf16_128x256x32_bf16_517896", "wgmma", 1, sms, tiles_128x256,
            -(-k // 32), k * 32768,
            tiles_128x256 * k * (768 + (min(m % 16, 1) * 128 + min(n % 16, 1) * 256) * 6), operands,
            stores,
        )
        choice = Choice(
            4, ("realign_b16x1_7953b4", "wgmma_chain_tn_bf16_128x256x32_bf16_517896"),
            (-(-pieces_k_m8 // 512), min(tiles_128x256, sms) * 1), (pieces_k_m8 * 16,),
        )
        yield Candidate(us, choice)
    # 5: A off 16 bytes: copied first
    if (
        arch in SOME_0
        and pieces_k_m8 * 16 <= 1073741824 and align_b >= 16 and chunks <= 1 and sms >= 1
        and m + 128 <= 2147483647 and n + 128 <= 2147483647 and k + 64 <= 2147483647
        and tiles_128x128 + sms <= 4294967295 and align_c >= 16 and item_c == 4 and n % 4 == 0
    ):
        us = time(
            "realign_b16x1_7953b4", "fma", 8, sms, -(-pieces_k_m8 // 512), 1, 0, operands_1,
            operands_1, operands_1,
        )
        us += time(
            "wgmma_chain_tn_bf16_128x128x64_f32_af9f41", "wgmma", 1, sms, tiles_128x128,
            -(-k // 64), k * 16384,
            tiles_128x128 * k * (512 + (min(m % 16, 1) * 128 + min(n % 16, 1) * 128) * 6), operands,
            stores,
        )
        choice = Choice(
            5, ("realign_b16x1_7953b4", "wgmma_chain_tn_bf16_128x128x64_f32_af9f41"),
            (-(-pieces_k_m8 // 512), min(tiles_128x128, sms) * 1), (pieces_k_m8 * 16,),
        )
        yield Candidate(us, choice)
    # 6: one chain, from what is there, by mma
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_128x128 <= 2147483647:
        us = time(
            "mma_tn_bf16_128x128x64_a449f5", "mma", 2, sms, tiles_128x128, -(-k // 64), k * 16384,
            tiles_128x128 * k * (512 + (min(m % 16, 1) * 128 + min(n % 16, 1) * 128) * 6), operands,
            stores,
        )
        yield Candidate(us, Choice(6, ("mma_tn_bf16_128x128x64_a449f5",), (tiles_128x128,), ()))
    # 7: everything else: any size, alignment and plan
    if chunks <= 1:
        us = time(
            "mma_tn_bf16_64x64x32_e09c9a", "mma", 3, sms, tiles_64x64, -(-k // 32), k * 4096,
            tiles_64x64 * k * (256 + (min(m % 16, 1) * 64 + min(n % 16, 1) * 64) * 6), operands,
            stores,
        )
        choice = Choice(7, ("mma_tn_bf16_64x64x32_e09c9a",), (min(tiles_64x64, 2147483647),), ())
        yield Candidate(us, choice)
