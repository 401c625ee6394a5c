"""Dispatch of nf4 NT rows f32 f64: products under the plan 'rows', with NF4 weights.

Generated from ptxgen.tiles.TABLES["nf4", "NT", "rows", "f32", "f64"]; do not edit.
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
    operands_1 = m * n * 4
    tiles_64x128 = -(-m // 64) * -(-n // 128)
    # 0: sums in f64 on tensor cores
    if (
        arch in SOME_0
        and min(-(-m // 64), 512) * -(-n // 128) * chunks <= 2147483647
        and min(m, 512) * -(-n // 128) <= 2147483647
    ):
        us = time(
            "nf4_nt_f64_64x128_mma_22482d", "mma64", 1, sms, tiles_64x128 * chunks, -(-chunk // 8),
            chunk * 8192, -(-m // 64) * (n * k // 2 + n * k // 16) + -(-n // 128) * m * k * 4,
            operands, stores,
        )
        us += time(
            "finish_f32_128_bf44ae", "fma", 8, sms, min(m, 512) * -(-n // 128), -(-m // 512), 0,
            operands_1, operands_1, operands_1,
        )
        choice = Choice(
            0, ("nf4_nt_f64_64x128_mma_22482d", "finish_f32_128_bf44ae"),
            (min(-(-m // 64), 512) * -(-n // 128) * chunks, min(m, 512) * -(-n // 128)), (),
        )
        yield Candidate(us, choice)
    tiles_32x256 = -(-m // 32) * -(-n // 256)
    # 1: everything else
    if (
        min(-(-m // 32), 512) * -(-n // 256) * chunks <= 2147483647
        and min(m, 512) * -(-n // 128) <= 2147483647
    ):
        us = time(
            "nf4_nt_f64_32x256_b554c2", "fma64", 1, sms, tiles_32x256 * chunks, -(-chunk // 8),
            chunk * 8192, -(-m // 32) * (n * k // 2 + n * k // 16) + -(-n // 256) * m * k * 4,
            operands, stores,
        )
        us += time(
            "finish_f32_128_bf44ae", "fma", 8, sms, min(m, 512) * -(-n // 128), -(-m // 512), 0,
            operands_1, operands_1, operands_1,
        )
        choice = Choice(
            1, ("nf4_nt_f64_32x256_b554c2", "finish_f32_128_bf44ae"),
            (min(-(-m // 32), 512) * -(-n // 256) * chunks, min(m, 512) * -(-n // 128)), (),
        )
        yield Candidate(us, choice)
