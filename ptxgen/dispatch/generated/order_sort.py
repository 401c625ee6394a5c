"""Dispatch of order sort: sort.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time


def candidates(table: str, arch: str, count: int, sms: int, time: Time) -> Iterator[Candidate]:
    """Yields the routes that serve a problem, with predicted times."""
    # 0: sorted in blocks, merged 0 times
    if count <= 4096:
        choice = Choice(0, ("counting_sort_block_i64_0db351",), (-(-count // 4096),), ())
        yield Candidate(0.0, choice)
        return
    # 1: sorted in blocks, merged 1 times
    if count <= 65536:
        choice = Choice(
            1,
            ("counting_sort_runs_block_i64_between_8e7057", "counting_sort_merge_i64_4096_936d54"),
            (-(-count // 4096), -(-count // 256)), (count * 8, count * 4),
        )
        yield Candidate(0.0, choice)
        return
    # 2: sorted in blocks, merged 2 times
    if count <= 1048576:
        choice = Choice(
            2,
            (
                "counting_sort_runs_block_i64_between_8e7057",
                "counting_sort_runs_merge_i64_4096_between_ce3ee0",
                "counting_sort_merge_i64_65536_264848",
            ), (-(-count // 4096), -(-count // 256), -(-count // 256)),
            (count * 8, count * 4, count * 8, count * 4),
        )
        yield Candidate(0.0, choice)
        return
