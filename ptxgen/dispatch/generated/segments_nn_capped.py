"""Dispatch of segments NN capped: products under the plan 'rows'.

Generated from ptxgen.tiles.TABLES["segments", "NN", "capped"]; do not edit.
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
    tiles_128x256 = -(-m // 128) * -(-n // 256)
    # 0: no logit reaches memory
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 256 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x256 + sms <= 4294967295
    ):
        us = time(
            "wgmma_segments_capped_nn_bf16_128x256x64_29fcb4", "wgmma", 1, sms, tiles_128x256,
            -(-k // 64), k * 32768,
            tiles_128x256 * k * (768 + (min(k % 16, 1) * 128 + min(n % 16, 1) * 256) * 6), operands,
            stores,
        )
        choice = Choice(
            0, ("wgmma_segments_capped_nn_bf16_128x256x64_29fcb4",), (min(tiles_128x256, sms) * 1,),
            (),
        )
        yield Candidate(us, choice)
