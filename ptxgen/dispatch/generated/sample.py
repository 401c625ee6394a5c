"""Dispatch of sample: sample.

Generated from ptxgen.tiles.TABLES["sample"]; do not edit.
Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time


def candidates(
    arch: str, rows: int, cols: int, k: int, sms: int, time: Time
) -> Iterator[Candidate]:
    """What can serve a problem, with predicted times."""
    # 0: short rows: a CTA of two warps has one
    if -(-cols // 256) * 12 <= 8192 and cols <= 1024:
        yield Candidate(0.0, Choice(0, ("sample_bf16_2_3e12a2",), (rows,), ()))
        return
    # 1: a CTA a row
    if -(-cols // 256) * 12 <= 65536:
        yield Candidate(0.0, Choice(1, ("sample_bf16_16_1ea79e",), (rows,), ()))
        return
