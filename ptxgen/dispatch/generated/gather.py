"""Dispatch of gather: gather.

Generated from ptxgen.tiles.TABLES["gather"]; do not edit.
Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time


def candidates(
    arch: str, outer: int, count: int, bytes: int, lanes: int, align: int, sms: int, time: Time
) -> Iterator[Candidate]:
    """What can serve a problem, with predicted times."""
    # 0: whole vectors
    if align >= 16:
        choice = Choice(0, ("gather_16x4_0eab61",), (-(-(outer * count * lanes) // 256),), ())
        yield Candidate(0.0, choice)
        return
    # 1: rows off 16 bytes
    if align >= 4:
        choice = Choice(1, ("gather_4x4_b595ae",), (-(-(outer * count * lanes) // 256),), ())
        yield Candidate(0.0, choice)
        return
    # 2: rows off 4 bytes
    choice = Choice(2, ("gather_2x4_da3935",), (-(-(outer * count * lanes) // 256),), ())
    yield Candidate(0.0, choice)
