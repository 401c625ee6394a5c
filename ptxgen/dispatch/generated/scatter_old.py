"""Dispatch of scatter old: scatter.

Generated from ptxgen.tiles.TABLES["scatter", "old"]; do not edit.
Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time


def candidates(
    arch: str, rows: int, inner: int, count: int, item: int, align: int, sms: int, time: Time
) -> Iterator[Candidate]:
    """What can serve a problem, with predicted times."""
    # 0: a CTA sorts all
    if (
        max(-(-count // 4096), 1) <= 2147483647
        and -(-rows // 32) * -(-(inner * item) // 512) <= 2147483647 and align >= 16
        and count <= 4096
    ):
        choice = Choice(
            0, ("sort_sort_f39f40", "scatter_sum_bf16_16_06ea96"),
            (max(-(-count // 4096), 1), -(-rows // 32) * -(-(inner * item) // 512)),
            (max(count, 1) * 8,),
        )
        yield Candidate(0.0, choice)
        return
    # 1: sorted blocks are merged
    if (
        max(-(-count // 4096), 1) <= 2147483647 and max(-(-count // 256), 1) <= 2147483647
        and -(-rows // 32) * -(-(inner * item) // 512) <= 2147483647 and align >= 16
    ):
        choice = Choice(
            1, ("sort_sort_f39f40", "sort_merge_596519", "scatter_sum_bf16_16_06ea96"),
            (
                max(-(-count // 4096), 1), max(-(-count // 256), 1),
                -(-rows // 32) * -(-(inner * item) // 512),
            ), (max(count, 1) * 8, max(count, 1) * 8),
        )
        yield Candidate(0.0, choice)
        return
    tiles_rows32_inner32 = -(-rows // 32) * -(-inner // 32)
    # 2: a CTA sorts all, off 16 bytes
    if (
        max(-(-count // 4096), 1) <= 2147483647 and tiles_rows32_inner32 <= 2147483647
        and count <= 4096
    ):
        choice = Choice(
            2, ("sort_sort_f39f40", "scatter_sum_bf16_0_0544f4"),
            (max(-(-count // 4096), 1), tiles_rows32_inner32), (max(count, 1) * 8,),
        )
        yield Candidate(0.0, choice)
        return
    # 3: sorted blocks are merged, off 16 bytes
    if (
        max(-(-count // 4096), 1) <= 2147483647 and max(-(-count // 256), 1) <= 2147483647
        and tiles_rows32_inner32 <= 2147483647
    ):
        choice = Choice(
            3, ("sort_sort_f39f40", "sort_merge_596519", "scatter_sum_bf16_0_0544f4"),
            (max(-(-count // 4096), 1), max(-(-count // 256), 1), tiles_rows32_inner32),
            (max(count, 1) * 8, max(count, 1) * 8),
        )
        yield Candidate(0.0, choice)
        return
