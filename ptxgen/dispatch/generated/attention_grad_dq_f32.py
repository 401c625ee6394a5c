"""Dispatch of attention_grad dq f32: attention_grad.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time


def candidates(
    table: str, arch: str, rows: int, ragged: int, pairs: int, past: int, depth: int, width: int,
    plain: int, maps: int, sms: int, time: Time,
) -> Iterator[Candidate]:
    """Yields the routes that serve a problem, with predicted times."""
    further = max(rows - ragged, 0)
    # 0: portable; small tiles
    if (further // 32 + ragged) * pairs <= 2147483647:
        choice = Choice(
            0, ("attention_grad_dq_f32_128_32_4f5876",), ((further // 32 + ragged) * pairs,), (),
        )
        yield Candidate(0.0, choice)
        return
