"""Dispatch of conv depthwise half: depthwise filters.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time


def candidates(
    table: str, arch: str, tiles: int, blocks: int, n: int, taps: int, shared: int, sms: int,
    time: Time,
) -> Iterator[Candidate]:
    """Yields the routes that serve a problem, with predicted times."""
    # 0: the only kernel: tiles of the image in shared memory
    if taps <= 256 and shared <= 49152 and tiles * blocks <= 2147483647:
        yield Candidate(0.0, Choice(0, ("depthwise_bf16_8x2_2648e5",), (tiles * blocks,), ()))
        return
