"""Dispatch of attention_grad dk half: attention_grad.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time

SOME_0 = frozenset(("sm_90",))
SOME_1 = frozenset(("sm_80", "sm_87", "sm_90", "sm_100", "sm_103", "sm_110"))


def candidates(
    table: str, arch: str, rows: int, extra: int, pairs: int, past: int, depth: int, width: int,
    plain: int, sms: int, time: Time,
) -> Iterator[Candidate]:
    """What can serve a problem, with predicted times."""
    # 0: Hopper: wgmma, the copy engine: one warpgroup
    if (
        arch in SOME_0 and plain == 1 and depth <= 192 and width <= 192
        and (-(-rows // 64) + extra) * pairs <= 2147483647
        and (rows <= 64 or (-(-rows // 64) + extra) * pairs <= sms)
    ):
        choice = Choice(
            0, ("attention_grad_wgmma_dk_bf16_192_64_f747a5",), ((-(-rows // 64) + extra) * pairs,),
            (),
        )
        yield Candidate(0.0, choice)
        return
    # 1: Hopper: wgmma, the copy engine
    if arch in SOME_0 and plain == 1 and (-(-rows // 128) + extra) * pairs <= 2147483647:
        choice = Choice(
            1, ("attention_grad_wgmma_dk_bf16_256_128_a4fe4c",),
            ((-(-rows // 128) + extra) * pairs,), (),
        )
        yield Candidate(0.0, choice)
        return
    # 2: one for each SM
    if (
        arch in SOME_1 and (-(-rows // 64) + extra) * pairs <= 2147483647
        and sms <= (-(-rows // 64) + extra) * pairs
    ):
        choice = Choice(
            2, ("attention_grad_dk_bf16_256_64_d4d96b",), ((-(-rows // 64) + extra) * pairs,), (),
        )
        yield Candidate(0.0, choice)
        return
    # 3: small tiles
    if (-(-rows // 32) + extra) * pairs <= 2147483647:
        choice = Choice(
            3, ("attention_grad_dk_bf16_256_32_8388f7",), ((-(-rows // 32) + extra) * pairs,), (),
        )
        yield Candidate(0.0, choice)
        return
