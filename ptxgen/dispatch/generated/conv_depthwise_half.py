"""Dispatch of conv depthwise half: depthwise filters.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time


def candidates(
    table: str, arch: str, groups: int, n: int, taps: int, align: int, sms: int, time: Time,
) -> Iterator[Candidate]:
    """What can serve a problem, with predicted times."""
    tiles_n64_groups128 = -(-n // 64) * -(-groups // 128)
    pieces_groups_n64 = groups * -(-n // 64)
    # 0: many windows
    if (
        align >= 16 and taps <= 64 and tiles_n64_groups128 <= 2147483647
        and sms * 2048 <= pieces_groups_n64
    ):
        yield Candidate(0.0, Choice(0, ("depthwise_bf16_8x32_23b62e",), (tiles_n64_groups128,), ()))
        return
    tiles_n64_groups32 = -(-n // 64) * -(-groups // 32)
    # 1: few windows
    if align >= 16 and taps <= 64 and tiles_n64_groups32 <= 2147483647:
        yield Candidate(0.0, Choice(1, ("depthwise_bf16_8x32_a0cf8c",), (tiles_n64_groups32,), ()))
        return
