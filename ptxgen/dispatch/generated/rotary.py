"""Dispatch of rotary: rotary embedding.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time


def candidates(
    table: str, arch: str, tokens: int, heads: int, lanes: int, sms: int, time: Time,
) -> Iterator[Candidate]:
    """Yields the routes that serve a problem, with predicted times."""
    # 0: the only kernel: neighbouring lanes share a head
    choice = Choice(
        0, ("rotary_bf16_128_normed_5f8fbb",), (-(-(tokens * heads * lanes) // 128),), (),
    )
    yield Candidate(0.0, choice)
