"""Dispatch of sort search: search.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time


def candidates(
    table: str, arch: str, count: int, each: int, cols: int, sms: int, time: Time,
) -> Iterator[Candidate]:
    """Yields the routes that serve a problem, with predicted times."""
    # 0: the only kernel: a thread finds a value's position
    yield Candidate(0.0, Choice(0, ("sort_search_f32_474b5e",), (-(-count // 256),), ()))
