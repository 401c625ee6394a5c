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
    tiles_64x128 = -(-m // 64) * -(-n // 128)
    # 0: sums in f64 on tensor cores
    if arch in SOME_0 and min(-(-m // 64), 512) * -(-n // 128) * chunks <= 2147483647:
        us = time(
            "nf4_nn_f64_64x128_mma_829db0", "mma64", 1, sms, tiles_64x128 * chunks, -(-chunk // 8),
            chunk * 8192, -(-m // 64) * (n * k // 2 + n * k // 16) + -(-n // 128) * m * k * 4,
            operands, stores,
        )
        choice = Choice(
            0, ("nf4_nn_f64_64x128_mma_829db0",), (min(-(-m // 64), 512) * -(-n // 128) * chunks,),
            (),
        )
        yield Candidate(us, choice)
    tiles_32x256 = -(-m // 32) * -(-n // 256)
    # 1: everything else
    if min(-(-m // 32), 512) * -(-n // 256) * chunks <= 2147483647:
        us = time(
            "nf4_nn_f64_32x256_da852e", "fma64", 1, sms, tiles_32x256 * chunks, -(-chunk // 8),
            chunk * 8192, -(-m // 32) * (n * k // 2 + n * k // 16) + -(-n // 256) * m * k * 4,
            operands, stores,
        )
        choice = Choice(
            1, ("nf4_nn_f64_32x256_da852e",), (min(-(-m // 32), 512) * -(-n // 256) * chunks,), (),
        )
        yield Candidate(us, choice)
