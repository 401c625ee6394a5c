"""Dispatch of attention f32: attention.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time


def candidates(
    table: str, arch: str, rows: int, ragged: int, pairs: int, keys: int, depth: int, width: int,
    paged: int, maps: int, sms: int, time: Time,
) -> Iterator[Candidate]:
    """Yields the routes that serve a problem, with predicted times."""
    further = max(rows - ragged, 0)
    splits = -(-keys // 1024)
    # 0: portable; few rows, many keys: a CTA computes a split
    if (
        (further // 32 + ragged) * pairs * splits <= 2147483647
        and (further // 32 + ragged) * pairs * splits * min(rows, 32) * (width + 4) <= 67108864
        and (further // 32 + ragged) * pairs * 8 <= 2147483647 and splits > 1
        and (further // 32 + ragged) * pairs * 1 < sms * 2
    ):
        choice = Choice(
            0, ("attention_split_f32_128_32_9eb3ef", "attention_join_f32_128_32_573c7d"),
            ((further // 32 + ragged) * pairs * splits, (further // 32 + ragged) * pairs * 8),
            ((further // 32 + ragged) * pairs * splits * min(rows, 32) * (width + 4) * 4,),
        )
        yield Candidate(0.0, choice)
        return
    # 1: portable; a CTA streams all keys
    if (further // 32 + ragged) * pairs * 1 <= 2147483647:
        choice = Choice(
            1, ("attention_f32_128_32_ed9a33",), ((further // 32 + ragged) * pairs * 1,), (),
        )
        yield Candidate(0.0, choice)
        return
