"""Dispatch of attention_grad dkdv f32: attention_grad.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time

SOME_0 = frozenset(("sm_80", "sm_87", "sm_90", "sm_100", "sm_103", "sm_110"))


def candidates(
    table: str, arch: str, rows: int, extra: int, pairs: int, past: int, depth: int, width: int,
    plain: int, maps: int, sms: int, time: Time,
) -> Iterator[Candidate]:
    """Yields the routes that serve a problem, with predicted times."""
    # 0: portable; small tiles
    if (-(-rows // 32) + extra) * pairs <= 2147483647 and depth + width <= 256:
        choice = Choice(
            0, ("attention_grad_dkdv_f32_128_32_ebd028",), ((-(-rows // 32) + extra) * pairs,), (),
        )
        yield Candidate(0.0, choice)
        return
    # 1: portable; large tiles, where each SM gets one
    if (
        arch in SOME_0 and (-(-rows // 32) + extra) * pairs <= 2147483647
        and sms <= (-(-rows // 32) + extra) * pairs
    ):
        choice = Choice(
            1, ("attention_grad_dk_f32_256_32_73c6cf", "attention_grad_dv_f32_256_32_bcef4a"),
            ((-(-rows // 32) + extra) * pairs, (-(-rows // 32) + extra) * pairs), (),
        )
        yield Candidate(0.0, choice)
        return
    # 2: portable; small tiles
    if (
        (-(-rows // 16) + extra) * pairs <= 2147483647
        and (-(-rows // 32) + extra) * pairs <= 2147483647
    ):
        choice = Choice(
            2, ("attention_grad_dk_f32_256_16_64f3ab", "attention_grad_dv_f32_256_32_bcef4a"),
            ((-(-rows // 16) + extra) * pairs, (-(-rows // 32) + extra) * pairs), (),
        )
        yield Candidate(0.0, choice)
        return
