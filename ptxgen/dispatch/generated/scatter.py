"""Dispatch of scatter: scatter.

Generated from ptxgen.tiles.TABLES["scatter"]; do not edit.
Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time


def candidates(
    arch: str, rows: int, inner: int, count: int, item: int, align: int, sms: int, time: Time
) -> Iterator[Candidate]:
    """What can serve a problem, with predicted times."""
    leaves = max(-(-count // 1024), 1)
    # 0: sorted in blocks, merged 0 times
    if (
        max(-(-count // 4096), 1) <= 2147483647
        and leaves * 2 * -(-(inner * item) // 512) <= 2147483647 and align >= 16
        and -(-rows // 32) * -(-(inner * item) // 4096) <= 2147483647 and count <= 4096
    ):
        choice = Choice(
            0, ("sort_sort_d1284d", "sort_leaves_bf16_16_e35e83", "scatter_sum_bf16_16_ba95e3"),
            (
                max(-(-count // 4096), 1), leaves * 2 * -(-(inner * item) // 512),
                -(-rows // 32) * -(-(inner * item) // 4096),
            ), (max(count, 1) * 8, leaves * inner * 16),
        )
        yield Candidate(0.0, choice)
        return
    # 1: sorted in blocks, merged 1 times
    if (
        max(-(-count // 4096), 1) <= 2147483647 and max(-(-count // 256), 1) <= 2147483647
        and leaves * 2 * -(-(inner * item) // 512) <= 2147483647 and align >= 16
        and -(-rows // 32) * -(-(inner * item) // 4096) <= 2147483647 and count <= 65536
    ):
        choice = Choice(
            1,
            (
                "sort_sort_d1284d", "sort_merge_4096_032da7", "sort_leaves_bf16_16_e35e83",
                "scatter_sum_bf16_16_ba95e3",
            ),
            (
                max(-(-count // 4096), 1), max(-(-count // 256), 1),
                leaves * 2 * -(-(inner * item) // 512), -(-rows // 32) * -(-(inner * item) // 4096),
            ), (max(count, 1) * 8, max(count, 1) * 8, leaves * inner * 16),
        )
        yield Candidate(0.0, choice)
        return
    # 2: sorted in blocks, merged 2 times
    if (
        max(-(-count // 4096), 1) <= 2147483647 and max(-(-count // 256), 1) <= 2147483647
        and leaves * 2 * -(-(inner * item) // 512) <= 2147483647 and align >= 16
        and -(-rows // 32) * -(-(inner * item) // 4096) <= 2147483647 and count <= 1048576
    ):
        choice = Choice(
            2,
            (
                "sort_sort_d1284d", "sort_merge_4096_032da7", "sort_merge_65536_ac1fe0",
                "sort_leaves_bf16_16_e35e83", "scatter_sum_bf16_16_ba95e3",
            ),
            (
                max(-(-count // 4096), 1), max(-(-count // 256), 1), max(-(-count // 256), 1),
                leaves * 2 * -(-(inner * item) // 512), -(-rows // 32) * -(-(inner * item) // 4096),
            ), (max(count, 1) * 8, max(count, 1) * 8, leaves * inner * 16),
        )
        yield Candidate(0.0, choice)
        return
    # 3: sorted in blocks, merged 3 times
    if (
        max(-(-count // 4096), 1) <= 2147483647 and max(-(-count // 256), 1) <= 2147483647
        and leaves * 2 * -(-(inner * item) // 512) <= 2147483647 and align >= 16
        and -(-rows // 32) * -(-(inner * item) // 4096) <= 2147483647 and count <= 16777216
    ):
        choice = Choice(
            3,
            (
                "sort_sort_d1284d", "sort_merge_4096_032da7", "sort_merge_65536_ac1fe0",
                "sort_merge_1048576_c0f45f", "sort_leaves_bf16_16_e35e83",
                "scatter_sum_bf16_16_ba95e3",
            ),
            (
                max(-(-count // 4096), 1), max(-(-count // 256), 1), max(-(-count // 256), 1),
                max(-(-count // 256), 1), leaves * 2 * -(-(inner * item) // 512),
                -(-rows // 32) * -(-(inner * item) // 4096),
            ), (max(count, 1) * 8, max(count, 1) * 8, leaves * inner * 16),
        )
        yield Candidate(0.0, choice)
        return
    tiles_rows32_inner256 = -(-rows // 32) * -(-inner // 256)
    # 4: sorted in blocks, merged 0 times, off 16 bytes
    if (
        max(-(-count // 4096), 1) <= 2147483647 and leaves * 2 * -(-inner // 32) <= 2147483647
        and tiles_rows32_inner256 <= 2147483647 and count <= 4096
    ):
        choice = Choice(
            4, ("sort_sort_d1284d", "sort_leaves_bf16_0_db4b44", "scatter_sum_bf16_0_e63633"),
            (max(-(-count // 4096), 1), leaves * 2 * -(-inner // 32), tiles_rows32_inner256),
            (max(count, 1) * 8, leaves * inner * 16),
        )
        yield Candidate(0.0, choice)
        return
    # 5: sorted in blocks, merged 1 times, off 16 bytes
    if (
        max(-(-count // 4096), 1) <= 2147483647 and max(-(-count // 256), 1) <= 2147483647
        and leaves * 2 * -(-inner // 32) <= 2147483647 and tiles_rows32_inner256 <= 2147483647
        and count <= 65536
    ):
        choice = Choice(
            5,
            (
                "sort_sort_d1284d", "sort_merge_4096_032da7", "sort_leaves_bf16_0_db4b44",
                "scatter_sum_bf16_0_e63633",
            ),
            (
                max(-(-count // 4096), 1), max(-(-count // 256), 1), leaves * 2 * -(-inner // 32),
                tiles_rows32_inner256,
            ), (max(count, 1) * 8, max(count, 1) * 8, leaves * inner * 16),
        )
        yield Candidate(0.0, choice)
        return
    # 6: sorted in blocks, merged 2 times, off 16 bytes
    if (
        max(-(-count // 4096), 1) <= 2147483647 and max(-(-count // 256), 1) <= 2147483647
        and leaves * 2 * -(-inner // 32) <= 2147483647 and tiles_rows32_inner256 <= 2147483647
        and count <= 1048576
    ):
        choice = Choice(
            6,
            (
                "sort_sort_d1284d", "sort_merge_4096_032da7", "sort_merge_65536_ac1fe0",
                "sort_leaves_bf16_0_db4b44", "scatter_sum_bf16_0_e63633",
            ),
            (
                max(-(-count // 4096), 1), max(-(-count // 256), 1), max(-(-count // 256), 1),
                leaves * 2 * -(-inner // 32), tiles_rows32_inner256,
            ), (max(count, 1) * 8, max(count, 1) * 8, leaves * inner * 16),
        )
        yield Candidate(0.0, choice)
        return
    # 7: sorted in blocks, merged 3 times, off 16 bytes
    if (
        max(-(-count // 4096), 1) <= 2147483647 and max(-(-count // 256), 1) <= 2147483647
        and leaves * 2 * -(-inner // 32) <= 2147483647 and tiles_rows32_inner256 <= 2147483647
        and count <= 16777216
    ):
        choice = Choice(
            7,
            (
                "sort_sort_d1284d", "sort_merge_4096_032da7", "sort_merge_65536_ac1fe0",
                "sort_merge_1048576_c0f45f", "sort_leaves_bf16_0_db4b44",
                "scatter_sum_bf16_0_e63633",
            ),
            (
                max(-(-count // 4096), 1), max(-(-count // 256), 1), max(-(-count // 256), 1),
                max(-(-count // 256), 1), leaves * 2 * -(-inner // 32), tiles_rows32_inner256,
            ), (max(count, 1) * 8, max(count, 1) * 8, leaves * inner * 16),
        )
        yield Candidate(0.0, choice)
        return
