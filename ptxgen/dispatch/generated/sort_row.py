"""Dispatch of sort row: sort_row.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time

# SORT: route, kernel, most_cols
SORT = (
    # few elements: a warp compares all of them
    (0, "sort_lanes_f32_8x1_f68f41", 32), (1, "sort_lanes_f32_8x2_d5a4bb", 64),
)
# SORT1: route, kernel, most_cols
SORT1 = (
    # short rows: a warp sorts a row
    (2, "sort_row_f32_1x4_d6a1c0", 128),
    # a CTA of 4 warps sorts a row
    (3, "sort_row_f32_4x8_b9312f", 1024),
    # a CTA of 8 warps sorts a row
    (4, "sort_row_f32_8x16_b07fff", 4096),
)


def candidates(
    table: str, arch: str, rows: int, cols: int, sms: int, time: Time,
) -> Iterator[Candidate]:
    """Yields the routes that serve a problem, with predicted times."""
    for route, kernel, most_cols in SORT:
        if cols <= most_cols:
            yield Candidate(0.0, Choice(route, (kernel,), (-(-rows // 8),), ()))
            return
    for route, kernel, most_cols in SORT1:
        if cols <= most_cols:
            yield Candidate(0.0, Choice(route, (kernel,), (rows,), ()))
            return
