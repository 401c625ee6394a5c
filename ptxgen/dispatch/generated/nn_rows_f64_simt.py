"""Dispatch of NN rows f64 simt: products under the plan 'rows'.

Generated from ptxgen.tiles.TABLES["NN", "rows", "f64", "simt"]; do not edit.
Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time

SOME_0 = frozenset(("sm_90",))


def candidates(
    arch: str, m: int, n: int, k: int, sms: int, align_a: int, align_b: int, time: Time
) -> Iterator[Candidate]:
    """What can serve a problem, with predicted times."""
    chunk = max(1, min(k, -(-k // 64) * 16 if n <= 2048 and k >= 2048 else k))
    chunks = -(-k // chunk)
    operands = (m + n) * k * 8
    stores = m * n * 8
    tiles_16x32 = -(-m // 16) * -(-n // 32)
    # 0: chunks side by side, or one after another
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and chunks <= 4 and tiles_16x32 * 4 <= 2147483647
    ):
        us = time(
            "f64_nn_f64_16x32x32_4e9b81", "mma64", 3, sms, tiles_16x32 * chunks, -(-chunk // 32),
            chunk * 512, tiles_16x32 * k * 384, operands, stores,
        )
        yield Candidate(us, Choice(0, ("f64_nn_f64_16x32x32_4e9b81",), (tiles_16x32 * 4,), ()))
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 1: chunks side by side, or one after another
    if arch in SOME_0 and align_a >= 16 and align_b >= 16 and tiles_64x64 <= 2147483647:
        us = time(
            "f64_nn_f64_64x64x16_89fe3c", "mma64", 2, sms, tiles_64x64, -(-k // 16), k * 4096,
            tiles_64x64 * k * 1024, operands, stores,
        )
        yield Candidate(us, Choice(1, ("f64_nn_f64_64x64x16_89fe3c",), (tiles_64x64,), ()))
    tiles_32x64 = -(-m // 32) * -(-n // 64)
    # 2: chunks side by side, or one after another
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and chunks <= 4 and tiles_32x64 * 4 <= 2147483647
    ):
        us = time(
            "f64_nn_f64_32x64x16_c16cd6", "mma64", 3, sms, tiles_32x64 * chunks, -(-chunk // 16),
            chunk * 2048, tiles_32x64 * k * 768, operands, stores,
        )
        yield Candidate(us, Choice(2, ("f64_nn_f64_32x64x16_c16cd6",), (tiles_32x64 * 4,), ()))
    tiles_32x32 = -(-m // 32) * -(-n // 32)
    # 3: chunks side by side, or one after another
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and chunks <= 4 and tiles_32x32 * 4 <= 2147483647
    ):
        us = time(
            "f64_nn_f64_32x32x32_a1ce4a", "mma64", 2, sms, tiles_32x32 * chunks, -(-chunk // 32),
            chunk * 1024, tiles_32x32 * k * 512, operands, stores,
        )
        yield Candidate(us, Choice(3, ("f64_nn_f64_32x32x32_a1ce4a",), (tiles_32x32 * 4,), ()))
    # 4: one chain
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_16x32 <= 2147483647
    ):
        us = time(
            "f64_nn_f64_16x32x32_5605ef", "mma64", 2, sms, tiles_16x32, -(-k // 32), k * 512,
            tiles_16x32 * k * 384, operands, stores,
        )
        yield Candidate(us, Choice(4, ("f64_nn_f64_16x32x32_5605ef",), (tiles_16x32,), ()))
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    # 5: one chain
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_128x128 <= 2147483647
    ):
        us = time(
            "f64_nn_f64_128x128x16_cbddcd", "mma64", 1, sms, tiles_128x128, -(-k // 16), k * 16384,
            tiles_128x128 * k * 2048, operands, stores,
        )
        yield Candidate(us, Choice(5, ("f64_nn_f64_128x128x16_cbddcd",), (tiles_128x128,), ()))
    # 6: one chain
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_64x64 <= 2147483647
    ):
        us = time(
            "f64_nn_f64_64x64x16_36edbb", "mma64", 3, sms, tiles_64x64, -(-k // 16), k * 4096,
            tiles_64x64 * k * 1024, operands, stores,
        )
        yield Candidate(us, Choice(6, ("f64_nn_f64_64x64x16_36edbb",), (tiles_64x64,), ()))
    # 7: one chain
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_32x64 <= 2147483647
    ):
        us = time(
            "f64_nn_f64_32x64x32_1ba32a", "mma64", 2, sms, tiles_32x64, -(-k // 32), k * 2048,
            tiles_32x64 * k * 768, operands, stores,
        )
        yield Candidate(us, Choice(7, ("f64_nn_f64_32x64x32_1ba32a",), (tiles_32x64,), ()))
    # 8: one chain
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_32x32 <= 2147483647
    ):
        us = time(
            "f64_nn_f64_32x32x32_82f041", "mma64", 2, sms, tiles_32x32, -(-k // 32), k * 1024,
            tiles_32x32 * k * 512, operands, stores,
        )
        yield Candidate(us, Choice(8, ("f64_nn_f64_32x32x32_82f041",), (tiles_32x32,), ()))
    # 9: operands off 16 bytes
    if arch in SOME_0 and tiles_64x64 <= 2147483647:
        us = time(
            "f64_nn_f64_64x64x16_2fb8f0", "mma64", 2, sms, tiles_64x64, -(-k // 16), k * 4096,
            tiles_64x64 * k * 1024, operands, stores,
        )
        yield Candidate(us, Choice(9, ("f64_nn_f64_64x64x16_2fb8f0",), (tiles_64x64,), ()))
    # 10: operands off 16 bytes
    if arch in SOME_0 and tiles_32x32 <= 2147483647:
        us = time(
            "f64_nn_f64_32x32x32_2b77d5", "mma64", 2, sms, tiles_32x32, -(-k // 32), k * 1024,
            tiles_32x32 * k * 512, operands, stores,
        )
        yield Candidate(us, Choice(10, ("f64_nn_f64_32x32x32_2b77d5",), (tiles_32x32,), ()))
    tiles_128x64 = -(-m // 128) * -(-n // 64)
    # 11: FMA units, one chain
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_128x64 <= 2147483647:
        us = time(
            "f64_nn_f64_128x64x16_6e6656", "fma64", 1, sms, tiles_128x64, -(-k // 16), k * 8192,
            tiles_128x64 * k * 1536, operands, stores,
        )
        yield Candidate(us, Choice(11, ("f64_nn_f64_128x64x16_6e6656",), (tiles_128x64,), ()))
    tiles_64x32 = -(-m // 64) * -(-n // 32)
    # 12: everything else: any size, alignment and plan
    us = time(
        "f64_nn_f64_64x32x16_9621be", "fma64", 3, sms, tiles_64x32, -(-k // 16), k * 2048,
        tiles_64x32 * k * 768, operands, stores,
    )
    choice = Choice(12, ("f64_nn_f64_64x32x16_9621be",), (min(tiles_64x32, 2147483647),), ())
    yield Candidate(us, choice)
