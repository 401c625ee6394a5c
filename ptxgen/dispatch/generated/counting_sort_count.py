"""Dispatch of counting_sort count: count.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time


def candidates(
    table: str, arch: str, count: int, rows: int, sms: int, time: Time,
) -> Iterator[Candidate]:
    """Yields the routes that serve a problem, with predicted times."""
    # 0: the only kernel: a CTA counts for one bin
    yield Candidate(0.0, Choice(0, ("counting_sort_count_i64_0a5268",), (rows,), ()))
