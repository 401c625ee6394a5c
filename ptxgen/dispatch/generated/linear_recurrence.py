"""Dispatch of linear_recurrence: linear_recurrence.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time


def candidates(
    table: str, arch: str, batch: int, tokens: int, channels: int, sms: int, time: Time,
) -> Iterator[Candidate]:
    """Yields the routes that serve a problem, with predicted times."""
    pieces_batch_channels32 = batch * -(-channels // 32)
    # 0: the only kernel: a thread computes a channel
    if pieces_batch_channels32 <= 2147483647:
        choice = Choice(
            0, ("recurrence_linear_forward_bf16_32x48_1bc3a6",), (pieces_batch_channels32,), (),
        )
        yield Candidate(0.0, choice)
        return
