"""Dispatch of counting_sort experts: experts.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time

# COUNTING_SORT_EXPERTS: route, kernel, most_experts
COUNTING_SORT_EXPERTS = (
    # more slots: 16 warps count
    (1, "counting_sort_experts_i64_8_16_ff626c", 256),
    # more experts: eight warps count
    (2, "counting_sort_experts_i64_10_8_5279af", 1024),
)


def candidates(
    table: str, arch: str, count: int, each: int, experts: int, sms: int, time: Time,
) -> Iterator[Candidate]:
    """Yields the routes that serve a problem, with predicted times."""
    # 0: few slots: eight warps count
    if experts < 256 and count <= 512:
        yield Candidate(0.0, Choice(0, ("counting_sort_experts_i64_8_8_877321",), (1,), ()))
        return
    for route, kernel, most_experts in COUNTING_SORT_EXPERTS:
        if experts < most_experts:
            yield Candidate(0.0, Choice(route, (kernel,), (1,), ()))
            return
