"""Dispatch of selective_scan_grad: selective_scan.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time

# RECURRENCE_SELECTIVE: route, kernel, channels_each, least_states, most_states
RECURRENCE_SELECTIVE = (
    # 4 lanes share a channel
    (0, "recurrence_selective_backward_bf16_4x4x16_04bee1", 32, 1, 16),
    # 16 lanes share a channel
    (1, "recurrence_selective_backward_bf16_16x4x16_3ae0d2", 8, 17, 64),
    # 32 lanes share a channel
    (2, "recurrence_selective_backward_bf16_32x8x8_57b51c", 4, 65, 256),
)


def candidates(
    table: str, arch: str, batch: int, tokens: int, channels: int, states: int, sms: int,
    time: Time,
) -> Iterator[Candidate]:
    """Yields the routes that serve a problem, with predicted times."""
    for route, kernel, channels_each, least_states, most_states in RECURRENCE_SELECTIVE:
        pieces = batch * -(-channels // channels_each)
        if pieces <= 2147483647 and least_states <= states and states <= most_states:
            yield Candidate(0.0, Choice(route, (kernel,), (pieces,), ()))
            return
