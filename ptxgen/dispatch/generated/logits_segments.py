"""Dispatch of logits segments: logits.

Generated from ptxgen.tiles.TABLES["logits", "segments"]; do not edit.
Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time


def candidates(
    arch: str, rows: int, cols: int, sms: int, time: Time
) -> Iterator[Candidate]:
    """What can serve a problem, with predicted times."""
    segments = -(-cols // 256)
    # 0: warps walk over runs of segments
    choice = Choice(
        0, ("logits_segments_bf16_2eed59",), (-(-segments // 16) * min(rows, 2048),), (),
    )
    yield Candidate(0.0, choice)
