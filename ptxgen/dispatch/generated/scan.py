"""Dispatch of scan: scan.

Generated from ptxgen.tiles.TABLES["scan"]; do not edit.
Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time


def candidates(
    arch: str, rows: int, cols: int, sms: int, time: Time
) -> Iterator[Candidate]:
    """What can serve a problem, with predicted times."""
    # 0: short rows: a warp has one
    if rows >= 1 and cols <= 256:
        choice = Choice(0, ("scan_bf16_1x1_7d5b78",), (min(-(-rows // 8), sms * 8),), ())
        yield Candidate(0.0, choice)
        return
    # 1: a warp has a row
    if rows >= 1 and (cols <= 1024 or sms * 64 <= rows):
        choice = Choice(1, ("scan_bf16_1x4_2c5174",), (min(-(-rows // 8), sms * 8),), ())
        yield Candidate(0.0, choice)
        return
    # 2: a CTA has a row
    if rows >= 1 and (cols <= 8192 or sms * 4 <= rows):
        choice = Choice(2, ("scan_bf16_8x4_76cb25",), (min(-(-rows // 1), sms * 8),), ())
        yield Candidate(0.0, choice)
        return
    # 3: few long rows
    if rows >= 1:
        choice = Choice(3, ("scan_bf16_32x1_59fde4",), (min(-(-rows // 1), sms * 2),), ())
        yield Candidate(0.0, choice)
        return
