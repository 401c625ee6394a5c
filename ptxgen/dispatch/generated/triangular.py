"""Dispatch of triangular: triangular.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time


def candidates(
    table: str, arch: str, count: int, n: int, cols: int, sms: int, time: Time,
) -> Iterator[Candidate]:
    """Yields the routes that serve a problem, with predicted times."""
    pieces_count_cols32 = count * -(-cols // 32)
    # 0: the only kernel: a lane solves for one right-hand side
    yield Candidate(0.0, Choice(0, ("triangular_f32_32_9f4f1a",), (pieces_count_cols32,), ()))
