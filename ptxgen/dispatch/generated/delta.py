"""Dispatch of delta: delta.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time


def candidates(
    table: str, arch: str, pairs: int, cols: int, tokens: int, sms: int, time: Time,
) -> Iterator[Candidate]:
    """Yields the routes that serve a problem, with predicted times."""
    pieces_pairs_cols32 = pairs * -(-cols // 32)
    # 0: the only kernel
    if pieces_pairs_cols32 <= 2147483647:
        choice = Choice(0, ("delta_rule_bf16_128_32_d7f901",), (pieces_pairs_cols32,), ())
        yield Candidate(0.0, choice)
        return
