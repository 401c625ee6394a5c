"""Dispatch of grouped TN sums f32 simt: grouped products under the plan 'chain'.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time


def candidates(
    table: str, arch: str, m: int, n: int, k: int, groups: int, sms: int, align_a: int,
    align_b: int, time: Time,
) -> Iterator[Candidate]:
    """Yields the routes that serve a problem, with predicted times."""
    chunk = max(1, min(k, k))
    chunks = -(-k // chunk)
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 0: everything else: any size, alignment and plan
    if chunks <= 1:
        choice = Choice(
            0, ("grouped_simt_tn_f32_64x64x16_9cd0f7",), (min(tiles_64x64 * groups, 2147483647),),
            (),
        )
        yield Candidate(0.0, choice)
        return
