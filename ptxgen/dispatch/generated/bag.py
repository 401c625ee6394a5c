"""Dispatch of bag: bag.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time


def candidates(
    table: str, arch: str, rows: int, each: int, inner: int, item: int, align: int, sms: int,
    time: Time,
) -> Iterator[Candidate]:
    """Yields the routes that serve a problem, with predicted times."""
    # 0: rows in 16-byte vectors
    if align >= 16:
        choice = Choice(
            0, ("gather_scatter_bag_bf16_16_4412a0",), (rows * -(-(inner * item) // 2048),), (),
        )
        yield Candidate(0.0, choice)
        return
    pieces_rows_inner128 = rows * -(-inner // 128)
    # 1: rows in elements
    choice = Choice(1, ("gather_scatter_bag_bf16_0_264557",), (pieces_rows_inner128,), ())
    yield Candidate(0.0, choice)
