"""Dispatch of sort pass: sort_pass.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time


def candidates(
    table: str, arch: str, rows: int, cols: int, sms: int, time: Time,
) -> Iterator[Candidate]:
    """Yields the routes that serve a problem, with predicted times."""
    tiles = -(-cols // 8192)
    # 0: the only kernels: count digits, add the counts, scatter
    choice = Choice(
        0,
        (
            "sort_count_f32_4x64_dddf6e", "sort_offsets_any_8x16_0b8fdf",
            "sort_scatter_f32_16x16_42aff1",
        ), (rows * tiles, rows * 32, rows * tiles), (rows * tiles * 1024, rows * 1024),
    )
    yield Candidate(0.0, choice)
