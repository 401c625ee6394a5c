"""Dispatch of counting_sort place: place.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time


def candidates(table: str, arch: str, count: int, sms: int, time: Time) -> Iterator[Candidate]:
    """Yields the routes that serve a problem, with predicted times."""
    # 0: the only kernel: a thread places one integer
    yield Candidate(0.0, Choice(0, ("counting_sort_place_i64_56fc66",), (-(-count // 256),), ()))
