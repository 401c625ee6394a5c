"""Dispatch of topk: topk.

Generated from ptxgen.tiles.TABLES["topk"]; do not edit.
Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time


def candidates(
    arch: str, rows: int, cols: int, sms: int, time: Time
) -> Iterator[Candidate]:
    """What can serve a problem, with predicted times."""
    # 0: short rows: a CTA of two warps has one
    if cols <= 1024:
        yield Candidate(0.0, Choice(0, ("topk_bf16_2_d9a94f",), (rows,), ()))
        return
    # 1: a CTA a row
    yield Candidate(0.0, Choice(1, ("topk_bf16_16_86b68d",), (rows,), ()))
