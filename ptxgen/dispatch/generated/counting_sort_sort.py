"""Dispatch of counting_sort sort: sort.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time


def candidates(table: str, arch: str, count: int, sms: int, time: Time) -> Iterator[Candidate]:
    """Yields the routes that serve a problem, with predicted times."""
    # 0: CTAs sort blocks, then 0 merge passes
    if count <= 4096:
        choice = Choice(0, ("counting_sort_block_i64_3e8e79",), (-(-count // 4096),), ())
        yield Candidate(0.0, choice)
        return
    # 1: CTAs sort blocks, then 1 merge passes
    if count <= 65536:
        choice = Choice(
            1,
            ("counting_sort_runs_block_i64_between_ba2ec2", "counting_sort_merge_i64_4096_414a46"),
            (-(-count // 4096), -(-count // 256)), (count * 8, count * 4),
        )
        yield Candidate(0.0, choice)
        return
    # 2: CTAs sort blocks, then 2 merge passes
    if count <= 1048576:
        choice = Choice(
            2,
            (
                "counting_sort_runs_block_i64_between_ba2ec2",
                "counting_sort_runs_merge_i64_4096_between_225c6b",
                "counting_sort_merge_i64_65536_7e6019",
            ), (-(-count // 4096), -(-count // 256), -(-count // 256)),
            (count * 8, count * 4, count * 8, count * 4),
        )
        yield Candidate(0.0, choice)
        return
