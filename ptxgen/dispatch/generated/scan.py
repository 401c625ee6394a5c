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
    # 0: a warp has a row
    if rows >= 1 and (cols <= 512 or sms * 64 <= rows):
        yield Candidate(0.0, Choice(0, ("scan_bf16_1_c59c26",), (min(-(-rows // 8), sms * 8),), ()))
        return
    # 1: a CTA has a row
    if rows >= 1 and (cols <= 8192 or sms * 4 <= rows):
        yield Candidate(0.0, Choice(1, ("scan_bf16_8_8e74a0",), (min(-(-rows // 1), sms * 8),), ()))
        return
    # 2: few long rows
    if rows >= 1:
        choice = Choice(2, ("scan_bf16_32_c89fb8",), (min(-(-rows // 1), sms * 2),), ())
        yield Candidate(0.0, choice)
        return
