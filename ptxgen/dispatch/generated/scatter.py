"""Dispatch of scatter, scatter old: scatter.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time


def candidates(
    table: str, arch: str, rows: int, inner: int, count: int, item: int, align: int, sms: int,
    time: Time,
) -> Iterator[Candidate]:
    """Yields the routes that serve a problem, with predicted times."""
    kernel, kernel1, kernel2 = {
        "scatter": (
            "gather_scatter_scatter_sum_bf16_16_7170f6", "gather_scatter_scatter_sum_bf16_0_86180f",
            "gather_scatter_scatter_sum_bf16_0_d627c4",
        ),
        "scatter_old": (
            "gather_scatter_scatter_sum_bf16_16_d9c8be", "gather_scatter_scatter_sum_bf16_0_2558b9",
            "gather_scatter_scatter_sum_bf16_0_205ec8",
        ),
    }[table]
    leaves = max(-(-count // 1024), 1)
    shares = -(-count // 256)
    # 0: CTAs sort blocks of indices, 0 merge passes
    if (
        max(-(-count // 4096), 1) <= 2147483647
        and leaves * 2 * -(-(inner * item) // 512) <= 2147483647 and align >= 16 and count <= 4096
    ):
        choice = Choice(
            0,
            (
                "gather_scatter_sort_sort_14f9d2", "gather_scatter_sort_leaves_bf16_16_a8fb53",
                kernel,
            ),
            (
                max(-(-count // 4096), 1), leaves * 2 * -(-(inner * item) // 512),
                shares * -(-(inner * item) // 512) + -(-rows // 16) * -(-(inner * item) // 4096),
            ), (max(count, 1) * 8, leaves * inner * 16),
        )
        yield Candidate(0.0, choice)
        return
    # 1: CTAs sort blocks of indices, 1 merge passes
    if (
        max(-(-count // 4096), 1) <= 2147483647 and max(-(-count // 256), 1) <= 2147483647
        and leaves * 2 * -(-(inner * item) // 512) <= 2147483647 and align >= 16 and count <= 65536
    ):
        choice = Choice(
            1,
            (
                "gather_scatter_sort_sort_14f9d2", "gather_scatter_sort_merge_4096_b95570",
                "gather_scatter_sort_leaves_bf16_16_a8fb53", kernel,
            ),
            (
                max(-(-count // 4096), 1), max(-(-count // 256), 1),
                leaves * 2 * -(-(inner * item) // 512),
                shares * -(-(inner * item) // 512) + -(-rows // 16) * -(-(inner * item) // 4096),
            ), (max(count, 1) * 8, max(count, 1) * 8, leaves * inner * 16),
        )
        yield Candidate(0.0, choice)
        return
    # 2: CTAs sort blocks of indices, 2 merge passes
    if (
        max(-(-count // 4096), 1) <= 2147483647 and max(-(-count // 256), 1) <= 2147483647
        and leaves * 2 * -(-(inner * item) // 512) <= 2147483647 and align >= 16
        and count <= 1048576
    ):
        choice = Choice(
            2,
            (
                "gather_scatter_sort_sort_14f9d2", "gather_scatter_sort_merge_4096_b95570",
                "gather_scatter_sort_merge_65536_aa3ade",
                "gather_scatter_sort_leaves_bf16_16_a8fb53", kernel,
            ),
            (
                max(-(-count // 4096), 1), max(-(-count // 256), 1), max(-(-count // 256), 1),
                leaves * 2 * -(-(inner * item) // 512),
                shares * -(-(inner * item) // 512) + -(-rows // 16) * -(-(inner * item) // 4096),
            ), (max(count, 1) * 8, max(count, 1) * 8, leaves * inner * 16),
        )
        yield Candidate(0.0, choice)
        return
    # 3: CTAs sort blocks of indices, 3 merge passes
    if (
        max(-(-count // 4096), 1) <= 2147483647 and max(-(-count // 256), 1) <= 2147483647
        and leaves * 2 * -(-(inner * item) // 512) <= 2147483647 and align >= 16
        and count <= 16777216
    ):
        choice = Choice(
            3,
            (
                "gather_scatter_sort_sort_14f9d2", "gather_scatter_sort_merge_4096_b95570",
                "gather_scatter_sort_merge_65536_aa3ade",
                "gather_scatter_sort_merge_1048576_02eca5",
                "gather_scatter_sort_leaves_bf16_16_a8fb53", kernel,
            ),
            (
                max(-(-count // 4096), 1), max(-(-count // 256), 1), max(-(-count // 256), 1),
                max(-(-count // 256), 1), leaves * 2 * -(-(inner * item) // 512),
                shares * -(-(inner * item) // 512) + -(-rows // 16) * -(-(inner * item) // 4096),
            ), (max(count, 1) * 8, max(count, 1) * 8, leaves * inner * 16),
        )
        yield Candidate(0.0, choice)
        return
    pieces_shares_inner32 = shares * -(-inner // 32)
    tiles_rows256_inner256 = -(-rows // 256) * -(-inner // 256)
    # 4: CTAs sort blocks of indices, 0 merge passes; short rows
    if (
        max(-(-count // 4096), 1) <= 2147483647 and leaves * 2 * -(-inner // 32) <= 2147483647
        and count <= 4096 and inner <= 32
    ):
        choice = Choice(
            4,
            (
                "gather_scatter_sort_sort_14f9d2", "gather_scatter_sort_leaves_bf16_0_012090",
                kernel1,
            ),
            (
                max(-(-count // 4096), 1), leaves * 2 * -(-inner // 32),
                pieces_shares_inner32 + tiles_rows256_inner256,
            ), (max(count, 1) * 8, leaves * inner * 16),
        )
        yield Candidate(0.0, choice)
        return
    # 5: CTAs sort blocks of indices, 1 merge passes; short rows
    if (
        max(-(-count // 4096), 1) <= 2147483647 and max(-(-count // 256), 1) <= 2147483647
        and leaves * 2 * -(-inner // 32) <= 2147483647 and count <= 65536 and inner <= 32
    ):
        choice = Choice(
            5,
            (
                "gather_scatter_sort_sort_14f9d2", "gather_scatter_sort_merge_4096_b95570",
                "gather_scatter_sort_leaves_bf16_0_012090", kernel1,
            ),
            (
                max(-(-count // 4096), 1), max(-(-count // 256), 1), leaves * 2 * -(-inner // 32),
                pieces_shares_inner32 + tiles_rows256_inner256,
            ), (max(count, 1) * 8, max(count, 1) * 8, leaves * inner * 16),
        )
        yield Candidate(0.0, choice)
        return
    # 6: CTAs sort blocks of indices, 2 merge passes; short rows
    if (
        max(-(-count // 4096), 1) <= 2147483647 and max(-(-count // 256), 1) <= 2147483647
        and leaves * 2 * -(-inner // 32) <= 2147483647 and count <= 1048576 and inner <= 32
    ):
        choice = Choice(
            6,
            (
                "gather_scatter_sort_sort_14f9d2", "gather_scatter_sort_merge_4096_b95570",
                "gather_scatter_sort_merge_65536_aa3ade",
                "gather_scatter_sort_leaves_bf16_0_012090", kernel1,
            ),
            (
                max(-(-count // 4096), 1), max(-(-count // 256), 1), max(-(-count // 256), 1),
                leaves * 2 * -(-inner // 32), pieces_shares_inner32 + tiles_rows256_inner256,
            ), (max(count, 1) * 8, max(count, 1) * 8, leaves * inner * 16),
        )
        yield Candidate(0.0, choice)
        return
    # 7: CTAs sort blocks of indices, 3 merge passes; short rows
    if (
        max(-(-count // 4096), 1) <= 2147483647 and max(-(-count // 256), 1) <= 2147483647
        and leaves * 2 * -(-inner // 32) <= 2147483647 and count <= 16777216 and inner <= 32
    ):
        choice = Choice(
            7,
            (
                "gather_scatter_sort_sort_14f9d2", "gather_scatter_sort_merge_4096_b95570",
                "gather_scatter_sort_merge_65536_aa3ade",
                "gather_scatter_sort_merge_1048576_02eca5",
                "gather_scatter_sort_leaves_bf16_0_012090", kernel1,
            ),
            (
                max(-(-count // 4096), 1), max(-(-count // 256), 1), max(-(-count // 256), 1),
                max(-(-count // 256), 1), leaves * 2 * -(-inner // 32),
                pieces_shares_inner32 + tiles_rows256_inner256,
            ), (max(count, 1) * 8, max(count, 1) * 8, leaves * inner * 16),
        )
        yield Candidate(0.0, choice)
        return
    tiles_rows16_inner256 = -(-rows // 16) * -(-inner // 256)
    # 8: CTAs sort blocks of indices, 0 merge passes; rows not aligned to 16 bytes
    if (
        max(-(-count // 4096), 1) <= 2147483647 and leaves * 2 * -(-inner // 32) <= 2147483647
        and count <= 4096
    ):
        choice = Choice(
            8,
            (
                "gather_scatter_sort_sort_14f9d2", "gather_scatter_sort_leaves_bf16_0_012090",
                kernel2,
            ),
            (
                max(-(-count // 4096), 1), leaves * 2 * -(-inner // 32),
                pieces_shares_inner32 + tiles_rows16_inner256,
            ), (max(count, 1) * 8, leaves * inner * 16),
        )
        yield Candidate(0.0, choice)
        return
    # 9: CTAs sort blocks of indices, 1 merge passes; rows not aligned to 16 bytes
    if (
        max(-(-count // 4096), 1) <= 2147483647 and max(-(-count // 256), 1) <= 2147483647
        and leaves * 2 * -(-inner // 32) <= 2147483647 and count <= 65536
    ):
        choice = Choice(
            9,
            (
                "gather_scatter_sort_sort_14f9d2", "gather_scatter_sort_merge_4096_b95570",
                "gather_scatter_sort_leaves_bf16_0_012090", kernel2,
            ),
            (
                max(-(-count // 4096), 1), max(-(-count // 256), 1), leaves * 2 * -(-inner // 32),
                pieces_shares_inner32 + tiles_rows16_inner256,
            ), (max(count, 1) * 8, max(count, 1) * 8, leaves * inner * 16),
        )
        yield Candidate(0.0, choice)
        return
    # 10: CTAs sort blocks of indices, 2 merge passes; rows not aligned to 16 bytes
    if (
        max(-(-count // 4096), 1) <= 2147483647 and max(-(-count // 256), 1) <= 2147483647
        and leaves * 2 * -(-inner // 32) <= 2147483647 and count <= 1048576
    ):
        choice = Choice(
            10,
            (
                "gather_scatter_sort_sort_14f9d2", "gather_scatter_sort_merge_4096_b95570",
                "gather_scatter_sort_merge_65536_aa3ade",
                "gather_scatter_sort_leaves_bf16_0_012090", kernel2,
            ),
            (
                max(-(-count // 4096), 1), max(-(-count // 256), 1), max(-(-count // 256), 1),
                leaves * 2 * -(-inner // 32), pieces_shares_inner32 + tiles_rows16_inner256,
            ), (max(count, 1) * 8, max(count, 1) * 8, leaves * inner * 16),
        )
        yield Candidate(0.0, choice)
        return
    # 11: CTAs sort blocks of indices, 3 merge passes; rows not aligned to 16 bytes
    if (
        max(-(-count // 4096), 1) <= 2147483647 and max(-(-count // 256), 1) <= 2147483647
        and leaves * 2 * -(-inner // 32) <= 2147483647 and count <= 16777216
    ):
        choice = Choice(
            11,
            (
                "gather_scatter_sort_sort_14f9d2", "gather_scatter_sort_merge_4096_b95570",
                "gather_scatter_sort_merge_65536_aa3ade",
                "gather_scatter_sort_merge_1048576_02eca5",
                "gather_scatter_sort_leaves_bf16_0_012090", kernel2,
            ),
            (
                max(-(-count // 4096), 1), max(-(-count // 256), 1), max(-(-count // 256), 1),
                max(-(-count // 256), 1), leaves * 2 * -(-inner // 32),
                pieces_shares_inner32 + tiles_rows16_inner256,
            ), (max(count, 1) * 8, max(count, 1) * 8, leaves * inner * 16),
        )
        yield Candidate(0.0, choice)
        return
