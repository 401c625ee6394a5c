"""Dispatch of route: route.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time

# SELECT_ROUTE: route, kernel, most_cols
SELECT_ROUTE = (
    # up to 256 experts: a warp routes a token
    (0, "select_route_bf16_1_7a997f", 256),
    # more experts: a warp routes a token
    (1, "select_route_bf16_4_755cb1", 1024),
)


def candidates(
    table: str, arch: str, rows: int, cols: int, k: int, sms: int, time: Time,
) -> Iterator[Candidate]:
    """Yields the routes that serve a problem, with predicted times."""
    for route, kernel, most_cols in SELECT_ROUTE:
        if cols <= most_cols:
            yield Candidate(0.0, Choice(route, (kernel,), (-(-rows // 4),), ()))
            return
