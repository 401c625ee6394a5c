"""Dispatch of attention_grad dkdv f32: attention_grad.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time

SOME_0 = frozenset(("sm_80", "sm_87", "sm_90", "sm_100", "sm_103", "sm_110"))


def candidates(
    table: str, arch: str, rows: int, ragged: int, pairs: int, past: int, depth: int, width: int,
    plain: int, maps: int, sms: int, time: Time,
) -> Iterator[Candidate]:
    """Yields the routes that serve a problem, with predicted times."""
    further = max(rows - ragged, 0)
    # 0: portable; small tiles
    if (further // 32 + ragged) * pairs <= 2147483647 and depth + width <= 256:
        choice = Choice(
            0, ("attention_grad_dkdv_f32_128_32_ebd028",), ((further // 32 + ragged) * pairs,), (),
        )
        yield Candidate(0.0, choice)
        return
    # 1: portable; large tiles, where each SM gets one
    if (
        arch in SOME_0 and (further // 32 + ragged) * pairs <= 2147483647
        and sms <= (further // 32 + ragged) * pairs
    ):
        choice = Choice(
            1, ("attention_grad_dk_f32_256_32_73c6cf", "attention_grad_dv_f32_256_32_bcef4a"),
            ((further // 32 + ragged) * pairs, (further // 32 + ragged) * pairs), (),
        )
        yield Candidate(0.0, choice)
        return
    # 2: portable; small tiles
    if (
        (further // 16 + ragged) * pairs <= 2147483647
        and (further // 32 + ragged) * pairs <= 2147483647
    ):
        choice = Choice(
            2, ("attention_grad_dk_f32_256_16_64f3ab", "attention_grad_dv_f32_256_32_bcef4a"),
            ((further // 16 + ragged) * pairs, (further // 32 + ragged) * pairs), (),
        )
        yield Candidate(0.0, choice)
        return
