"""Dispatch of nf4 NN rows f32 f64: products under the plan 'rows', with NF4 weights.

Generated from ptxgen.tiles.TABLES["nf4", "NN", "rows", "f32", "f64"]; do not edit.
Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time

SOME_0 = frozenset(("sm_90",))


def candidates(
    arch: str, m: int, n: int, k: int, sms: int, align_a: int, time: Time
) -> Iterator[Candidate]:
    """What can serve a problem, with predicted times."""
    chunk = max(1, min(k, k))
    chunks = -(-k // chunk)
    operands = m * k * 4 + n * k // 2 + n * k // 16
    stores = chunks * m * n * 4
    tiles_128x64 = -(-m // 128) * -(-n // 64)
    # 0: sums in f64 on tensor cores
    if arch in SOME_0 and min(-(-m // 128), 512) * -(-n // 64) * chunks <= 2147483647:
        us = time(
            "nf4_nn_f64_128x64_mma_23ca8d", "mma64", 1, sms, tiles_128x64 * chunks, -(-chunk // 8),
            chunk * 8192, -(-m // 128) * (n * k // 2 + n * k // 16) + -(-n // 64) * m * k * 4,
            operands, stores,
        )
        choice = Choice(
            0, ("nf4_nn_f64_128x64_mma_23ca8d",), (min(-(-m // 128), 512) * -(-n // 64) * chunks,),
            (),
        )
        yield Candidate(us, choice)
    tiles_16x64 = -(-m // 16) * -(-n // 64)
    # 1: sums in f64 on tensor cores
    if arch in SOME_0 and min(-(-m // 16), 512) * -(-n // 64) * chunks <= 2147483647:
        us = time(
            "nf4_nn_f64_16x64_mma_f8ca87", "mma64", 1, sms, tiles_16x64 * chunks, -(-chunk // 8),
            chunk * 1024, -(-m // 16) * (n * k // 2 + n * k // 16) + -(-n // 64) * m * k * 4,
            operands, stores,
        )
        choice = Choice(
            1, ("nf4_nn_f64_16x64_mma_f8ca87",), (min(-(-m // 16), 512) * -(-n // 64) * chunks,),
            (),
        )
        yield Candidate(us, choice)
    tiles_32x128 = -(-m // 32) * -(-n // 128)
    # 2: sums in f64 on tensor cores
    if (
        arch in SOME_0
        and min(-(-m // 32), 512) * -(-n // 128) * chunks <= 2147483647 and align_a >= 16
        and k % 16 == 0
    ):
        us = time(
            "nf4_nn_f64_32x128_mma_35e6a9", "mma64", 1, sms, tiles_32x128 * chunks, -(-chunk // 8),
            chunk * 4096, -(-m // 32) * (n * k // 2 + n * k // 16) + -(-n // 128) * m * k * 4,
            operands, stores,
        )
        choice = Choice(
            2, ("nf4_nn_f64_32x128_mma_35e6a9",), (min(-(-m // 32), 512) * -(-n // 128) * chunks,),
            (),
        )
        yield Candidate(us, choice)
    # 3: sums in f64 on tensor cores
    if (
        arch in SOME_0
        and min(-(-m // 16), 512) * -(-n // 64) * chunks <= 2147483647 and align_a >= 16
        and k % 16 == 0
    ):
        us = time(
            "nf4_nn_f64_16x64_mma_cfc287", "mma64", 1, sms, tiles_16x64 * chunks, -(-chunk // 8),
            chunk * 1024, -(-m // 16) * (n * k // 2 + n * k // 16) + -(-n // 64) * m * k * 4,
            operands, stores,
        )
        choice = Choice(
            3, ("nf4_nn_f64_16x64_mma_cfc287",), (min(-(-m // 16), 512) * -(-n // 64) * chunks,),
            (),
        )
        yield Candidate(us, choice)
    tiles_16x32 = -(-m // 16) * -(-n // 32)
    # 4: sums in f64 on tensor cores
    if (
        arch in SOME_0
        and min(-(-m // 16), 512) * -(-n // 32) * chunks <= 2147483647 and align_a >= 16
        and k % 16 == 0
    ):
        us = time(
            "nf4_nn_f64_16x32_mma_851c6c", "mma64", 1, sms, tiles_16x32 * chunks, -(-chunk // 8),
            chunk * 512, -(-m // 16) * (n * k // 2 + n * k // 16) + -(-n // 32) * m * k * 4,
            operands, stores,
        )
        choice = Choice(
            4, ("nf4_nn_f64_16x32_mma_851c6c",), (min(-(-m // 16), 512) * -(-n // 32) * chunks,),
            (),
        )
        yield Candidate(us, choice)
    tiles_16x16 = -(-m // 16) * -(-n // 16)
    # 5: sums in f64 on tensor cores
    if (
        arch in SOME_0
        and min(-(-m // 16), 512) * -(-n // 16) * chunks <= 2147483647 and align_a >= 16
        and k % 16 == 0
    ):
        us = time(
            "nf4_nn_f64_16x16_mma_7a4b19", "mma64", 1, sms, tiles_16x16 * chunks, -(-chunk // 8),
            chunk * 256, -(-m // 16) * (n * k // 2 + n * k // 16) + -(-n // 16) * m * k * 4,
            operands, stores,
        )
        choice = Choice(
            5, ("nf4_nn_f64_16x16_mma_7a4b19",), (min(-(-m // 16), 512) * -(-n // 16) * chunks,),
            (),
        )
        yield Candidate(us, choice)
    tiles_16x256 = -(-m // 16) * -(-n // 256)
    # 6: sums in f64 on FMA units
    if min(-(-m // 16), 512) * -(-n // 256) * chunks <= 2147483647 and align_a >= 16:
        us = time(
            "nf4_nn_f64_16x256_28c404", "fma64", 1, sms, tiles_16x256 * chunks, -(-chunk // 8),
            chunk * 4096, -(-m // 16) * (n * k // 2 + n * k // 16) + -(-n // 256) * m * k * 4,
            operands, stores,
        )
        choice = Choice(
            6, ("nf4_nn_f64_16x256_28c404",), (min(-(-m // 16), 512) * -(-n // 256) * chunks,), (),
        )
        yield Candidate(us, choice)
    # 7: everything else: any alignment
    if min(-(-m // 16), 512) * -(-n // 256) * chunks <= 2147483647:
        us = time(
            "nf4_nn_f64_16x256_475714", "fma64", 1, sms, tiles_16x256 * chunks, -(-chunk // 8),
            chunk * 4096, -(-m // 16) * (n * k // 2 + n * k // 16) + -(-n // 256) * m * k * 4,
            operands, stores,
        )
        choice = Choice(
            7, ("nf4_nn_f64_16x256_475714",), (min(-(-m // 16), 512) * -(-n // 256) * chunks,), (),
        )
        yield Candidate(us, choice)
