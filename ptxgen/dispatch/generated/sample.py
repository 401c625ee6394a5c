"""Dispatch of sample: sample.

Generated from ptxgen.tiles.TABLES["sample"]; do not edit.
Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time


def candidates(
    arch: str, rows: int, cols: int, sms: int, time: Time
) -> Iterator[Candidate]:
    """What can serve a problem, with predicted times."""
    # 0: a CTA a row
    yield Candidate(0.0, Choice(0, ("sample_bf16_9628fd",), (rows,), ()))
