"""Dispatch of nf4 NN rows half tc: products under the plan 'rows', with NF4 weights.

Generated from ptxgen.tiles.TABLES["nf4", "NN", "rows", "half", "tc"]; do not edit.
Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time

SOME_0 = frozenset(("sm_90",))


def candidates(
    arch: str, m: int, n: int, k: int, sms: int, align_a: int, time: Time
) -> Iterator[Candidate]:
    """What can serve a problem, with predicted times."""
    chunk_part_1 = -(-min(-(-k // 8), 2048) // 128) * 128
    chunk = max(1, min(k, chunk_part_1 if n <= 2048 and max(6 * n, 4096) <= k else k))
    chunks = -(-k // chunk)
    operands = k * -(-n // 64) * 36
    stores = k * -(-n // 64) * 128
    operands_1 = (m + n) * k * 2
    stores_1 = m * n * 2
    pieces_k_n64 = k * -(-n // 64)
    tiles_128x256 = -(-m // 128) * -(-n // 256)
    # 0: the weight dequantised; many rows, by wgmma
    if (
        arch in SOME_0
        and stores <= 1073741824 and align_a >= 16 and chunks <= 1 and sms >= 1
        and m + 128 <= 2147483647 and n + 256 <= 2147483647 and k + 64 <= 2147483647
        and tiles_128x256 + sms <= 4294967295
    ):
        us = time(
            "nf4_bf16_531262", "fma", 8, sms, -(-(pieces_k_n64 * 8) // 1024), 1, 0, operands,
            operands, stores,
        )
        us += time(
            "wgmma_nn_bf16_128x256x64_86d2ac", "wgmma", 1, sms, tiles_128x256, -(-k // 64),
            k * 32768, tiles_128x256 * k * (768 + min(k % 16, 1) * 256 + min(n % 16, 1) * 512),
            operands_1, stores_1,
        )
        choice = Choice(
            0, ("nf4_bf16_531262", "wgmma_nn_bf16_128x256x64_86d2ac"),
            (-(-(pieces_k_n64 * 8) // 1024), min(tiles_128x256, sms) * 1), (stores,),
        )
        yield Candidate(us, choice)
    tiles_256x256 = -(-m // 256) * -(-n // 256)
    # 1: the weight dequantised; many rows, by wgmma
    if (
        arch in SOME_0
        and stores <= 1073741824 and align_a >= 16 and chunks <= 1 and sms >= 2
        and m + 256 <= 2147483647 and n + 256 <= 2147483647 and k + 64 <= 2147483647
        and tiles_256x256 + sms // 2 <= 4294967295
    ):
        us = time(
            "nf4_bf16_531262", "fma", 8, sms, -(-(pieces_k_n64 * 8) // 1024), 1, 0, operands,
            operands, stores,
        )
        us += time(
            "wgmma_nn_bf16_128x256x64_74d273", "wgmma", 1, sms, tiles_256x256 * 2, -(-k // 64),
            k * 32768, tiles_256x256 * k * (1024 + min(k % 16, 1) * 512 + min(n % 16, 1) * 512),
            operands_1, stores_1,
        )
        choice = Choice(
            1, ("nf4_bf16_531262", "wgmma_nn_bf16_128x256x64_74d273"),
            (-(-(pieces_k_n64 * 8) // 1024), min(tiles_256x256, sms // 2) * 2), (stores,),
        )
        yield Candidate(us, choice)
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    # 2: the weight dequantised; many rows, by wgmma
    if (
        arch in SOME_0
        and stores <= 1073741824 and align_a >= 16 and (chunk % 64 == 0 or chunks <= 1) and sms >= 1
        and m + 128 <= 2147483647 and n + 128 <= 2147483647 and k + 64 <= 2147483647
        and tiles_128x128 + sms <= 4294967295
    ):
        us = time(
            "nf4_bf16_531262", "fma", 8, sms, -(-(pieces_k_n64 * 8) // 1024), 1, 0, operands,
            operands, stores,
        )
        us += time(
            "wgmma_nn_bf16_128x128x64_f67370", "wgmma", 1, sms, tiles_128x128, -(-k // 64),
            k * 16384, tiles_128x128 * k * (512 + min(k % 16, 1) * 256 + min(n % 16, 1) * 256),
            operands_1, stores_1,
        )
        choice = Choice(
            2, ("nf4_bf16_531262", "wgmma_nn_bf16_128x128x64_f67370"),
            (-(-(pieces_k_n64 * 8) // 1024), min(tiles_128x128, sms) * 1), (stores,),
        )
        yield Candidate(us, choice)
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 3: the weight dequantised; many rows, by wgmma
    if (
        arch in SOME_0
        and stores <= 1073741824 and align_a >= 16 and (chunk % 64 == 0 or chunks <= 1) and sms >= 1
        and m + 64 <= 2147483647 and n + 64 <= 2147483647 and k + 64 <= 2147483647
        and tiles_64x64 + sms <= 4294967295
    ):
        us = time(
            "nf4_bf16_531262", "fma", 8, sms, -(-(pieces_k_n64 * 8) // 1024), 1, 0, operands,
            operands, stores,
        )
        us += time(
            "wgmma_nn_bf16_64x64x64_2ff8a4", "wgmma", 1, sms, tiles_64x64, -(-k // 64), k * 4096,
            tiles_64x64 * k * (256 + min(k % 16, 1) * 128 + min(n % 16, 1) * 128), operands_1,
            stores_1,
        )
        choice = Choice(
            3, ("nf4_bf16_531262", "wgmma_nn_bf16_64x64x64_2ff8a4"),
            (-(-(pieces_k_n64 * 8) // 1024), min(tiles_64x64, sms) * 1), (stores,),
        )
        yield Candidate(us, choice)
    # 4: the weight dequantised; many rows, by mma
    if (
        stores <= 1073741824 and align_a >= 16 and (chunk % 64 == 0 or chunks <= 1)
        and tiles_64x64 <= 2147483647
    ):
        us = time(
            "nf4_bf16_531262", "fma", 8, sms, -(-(pieces_k_n64 * 8) // 1024), 1, 0, operands,
            operands, stores,
        )
        us += time(
            "mma_nn_bf16_64x64x64_42490e", "mma", 3, sms, tiles_64x64, -(-k // 64), k * 4096,
            tiles_64x64 * k * (256 + min(k % 16, 1) * 128 + min(n % 16, 1) * 128), operands_1,
            stores_1,
        )
        choice = Choice(
            4, ("nf4_bf16_531262", "mma_nn_bf16_64x64x64_42490e"),
            (-(-(pieces_k_n64 * 8) // 1024), tiles_64x64), (stores,),
        )
        yield Candidate(us, choice)
    # 5: the weight dequantised; many rows, by mma
    if stores <= 1073741824 and align_a >= 16 and chunks <= 1 and tiles_128x128 <= 2147483647:
        us = time(
            "nf4_bf16_531262", "fma", 8, sms, -(-(pieces_k_n64 * 8) // 1024), 1, 0, operands,
            operands, stores,
        )
        us += time(
            "mma_nn_bf16_128x128x64_cd5bbc", "mma", 2, sms, tiles_128x128, -(-k // 64), k * 16384,
            tiles_128x128 * k * (512 + min(k % 16, 1) * 256 + min(n % 16, 1) * 256), operands_1,
            stores_1,
        )
        choice = Choice(
            5, ("nf4_bf16_531262", "mma_nn_bf16_128x128x64_cd5bbc"),
            (-(-(pieces_k_n64 * 8) // 1024), tiles_128x128), (stores,),
        )
        yield Candidate(us, choice)
    # 6: the weight dequantised; everything else: any size, alignment and plan
    if stores <= 1073741824 and (chunk % 32 == 0 or chunks <= 1):
        us = time(
            "nf4_bf16_531262", "fma", 8, sms, -(-(pieces_k_n64 * 8) // 1024), 1, 0, operands,
            operands, stores,
        )
        us += time(
            "mma_nn_bf16_64x64x32_782949", "mma", 3, sms, tiles_64x64, -(-k // 32), k * 4096,
            tiles_64x64 * k * (256 + min(k % 16, 1) * 128 + min(n % 16, 1) * 128), operands_1,
            stores_1,
        )
        choice = Choice(
            6, ("nf4_bf16_531262", "mma_nn_bf16_64x64x32_782949"),
            (-(-(pieces_k_n64 * 8) // 1024), min(tiles_64x64, 2147483647)), (stores,),
        )
        yield Candidate(us, choice)
