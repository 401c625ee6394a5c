"""Dispatch of attention f32: attention.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time


def candidates(
    table: str, arch: str, rows: int, extra: int, pairs: int, keys: int, depth: int, width: int,
    paged: int, maps: int, sms: int, time: Time,
) -> Iterator[Candidate]:
    """Yields the routes that serve a problem, with predicted times."""
    splits = -(-keys // 1024)
    # 0: portable; few rows, many keys: a CTA computes a split
    if (
        (-(-rows // 32) + extra) * pairs * splits <= 2147483647
        and (-(-rows // 32) + extra) * pairs * splits * min(rows, 32) * (width + 4) <= 67108864
        and (-(-rows // 32) + extra) * pairs * 2 <= 2147483647 and splits > 1
        and (-(-rows // 32) + extra) * pairs * 1 < sms * 2
    ):
        choice = Choice(
            0, ("attention_split_f32_128_32_9eb3ef", "attention_join_f32_128_32_573c7d"),
            ((-(-rows // 32) + extra) * pairs * splits, (-(-rows // 32) + extra) * pairs * 2),
            ((-(-rows // 32) + extra) * pairs * splits * min(rows, 32) * (width + 4) * 4,),
        )
        yield Candidate(0.0, choice)
        return
    # 1: portable; a CTA streams all keys
    if (-(-rows // 32) + extra) * pairs * 1 <= 2147483647:
        choice = Choice(
            1, ("attention_f32_128_32_ed9a33",), ((-(-rows // 32) + extra) * pairs * 1,), (),
        )
        yield Candidate(0.0, choice)
        return
