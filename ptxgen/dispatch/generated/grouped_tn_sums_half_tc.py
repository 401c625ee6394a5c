"""Dispatch of grouped TN sums half tc: grouped products under the plan 'chain'.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time

SOME_0 = frozenset(("sm_90",))
SOME_1 = frozenset(("sm_80", "sm_87", "sm_90", "sm_100", "sm_103", "sm_110"))


def candidates(
    table: str, arch: str, m: int, n: int, k: int, groups: int, sms: int, align_a: int,
    align_b: int, time: Time,
) -> Iterator[Candidate]:
    """Yields the routes that serve a problem, with predicted times."""
    chunk = max(1, min(k, k))
    chunks = -(-k // chunk)
    tiles_128x256 = -(-m // 128) * -(-n // 256)
    # 0: sums over each group: by wgmma
    if (
        arch in SOME_0 and align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1
        and m + 128 <= 2147483647 and n + 256 <= 2147483647 and k + 64 <= 2147483647
        and tiles_128x256 * groups + sms <= 4294967295
    ):
        choice = Choice(
            0, ("grouped_wgmma_tn_bf16_128x256x64_9423ea",), (min(tiles_128x256 * groups, sms),),
            (),
        )
        yield Candidate(0.0, choice)
        return
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    # 1: sums over each group: by mma.sync
    if arch in SOME_1 and align_a >= 16 and align_b >= 16 and chunks <= 1:
        choice = Choice(
            1, ("grouped_mma_tn_bf16_128x128x64_07a09f",),
            (min(tiles_128x128 * groups, 2147483647),), (),
        )
        yield Candidate(0.0, choice)
        return
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 2: everything else: any size, alignment and plan
    if chunks <= 1:
        choice = Choice(
            2, ("grouped_mma_tn_bf16_64x64x32_62acc6",), (min(tiles_64x64 * groups, 2147483647),),
            (),
        )
        yield Candidate(0.0, choice)
        return
