"""Dispatch of counting_sort experts: experts.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time

# COUNTING_SORT_EXPERTS: route, kernel, most_count
COUNTING_SORT_EXPERTS = (
    # few slots: a thread ranks two
    (0, "counting_sort_experts_i64_2_305af8", 1024),
    # more slots: a thread ranks eight
    (1, "counting_sort_experts_i64_8_818cfa", 4096),
)


def candidates(
    table: str, arch: str, count: int, each: int, experts: int, sms: int, time: Time,
) -> Iterator[Candidate]:
    """Yields the routes that serve a problem, with predicted times."""
    for route, kernel, most_count in COUNTING_SORT_EXPERTS:
        if count <= most_count:
            yield Candidate(0.0, Choice(route, (kernel,), (1,), ()))
            return
