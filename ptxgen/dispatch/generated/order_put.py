"""Dispatch of order put: put.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time


def candidates(
    table: str, arch: str, count: int, rows: int, inner: int, sms: int, time: Time,
) -> Iterator[Candidate]:
    """What can serve a problem, with predicted times."""
    # 0: a thread an element
    yield Candidate(0.0, Choice(0, ("order_put_b64_68e438",), (-(-(rows * inner) // 256),), ()))
