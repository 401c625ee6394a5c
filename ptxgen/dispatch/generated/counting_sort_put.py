"""Dispatch of counting_sort put: put.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time


def candidates(
    table: str, arch: str, count: int, rows: int, inner: int, outer: int, sms: int, time: Time,
) -> Iterator[Candidate]:
    """Yields the routes that serve a problem, with predicted times."""
    # 0: the only kernel: a thread writes one element
    choice = Choice(0, ("counting_sort_put_b64_e4c0d3",), (-(-(outer * count * inner) // 256),), ())
    yield Candidate(0.0, choice)
