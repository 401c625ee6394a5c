"""Dispatch of sort row: sort_row.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time

# SORT: route, kernel, most_cols
SORT = (
    # short rows: a warp sorts a row
    (0, "sort_row_f32_1x4_0530c8", 128),
    # a CTA of 4 warps sorts a row
    (1, "sort_row_f32_4x8_b69849", 1024),
    # a CTA of 8 warps sorts a row
    (2, "sort_row_f32_8x16_77e3ab", 4096),
)


def candidates(
    table: str, arch: str, rows: int, cols: int, sms: int, time: Time,
) -> Iterator[Candidate]:
    """Yields the routes that serve a problem, with predicted times."""
    for route, kernel, most_cols in SORT:
        if cols <= most_cols:
            yield Candidate(0.0, Choice(route, (kernel,), (rows,), ()))
            return
