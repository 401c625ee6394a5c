"""Dispatch of gather: gather.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time

# GATHER_SCATTER_GATHER: route, kernel, least_align
GATHER_SCATTER_GATHER = (
    # rows in 16-byte vectors
    (0, "gather_scatter_gather_16x4_043d4f", 16),
    # rows in words
    (1, "gather_scatter_gather_4x4_434c3c", 4),
    # rows in halfwords
    (2, "gather_scatter_gather_2x4_275004", 2),
)


def candidates(
    table: str, arch: str, outer: int, count: int, bytes: int, lanes: int, align: int, sms: int,
    time: Time,
) -> Iterator[Candidate]:
    """Yields the routes that serve a problem, with predicted times."""
    for route, kernel, least_align in GATHER_SCATTER_GATHER:
        if least_align <= align:
            choice = Choice(route, (kernel,), (-(-(outer * count * lanes) // 256),), ())
            yield Candidate(0.0, choice)
            return
    # 3: rows in bytes
    choice = Choice(
        3, ("gather_scatter_gather_1x4_d291de",), (-(-(outer * count * lanes) // 256),), (),
    )
    yield Candidate(0.0, choice)
