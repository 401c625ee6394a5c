"""Dispatch of row_reductions down: rows by formula, with sums down them.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time

# ROW_REDUCTIONS: route, kernel, most_cols
ROW_REDUCTIONS = (
    # a CTA adds 32 rows, one after the other in registers
    (0, "row_reductions_rms_norm_gradients_bf16_lane_64x32_9bbe82", 2048),
    (1, "row_reductions_rms_norm_gradients_bf16_lane_128x32_47d662", 4096),
    (2, "row_reductions_rms_norm_gradients_bf16_lane_256x32_70fa4e", 8192),
)


def candidates(
    table: str, arch: str, rows: int, cols: int, vector: int, read: int, sms: int, time: Time,
) -> Iterator[Candidate]:
    """Yields the routes that serve a problem, with predicted times."""
    lane_sums = -(-rows // 1024) * 32
    for route, kernel, most_cols in ROW_REDUCTIONS:
        if vector >= 1 and cols <= most_cols and read <= 4 and lane_sums * cols <= 16777216:
            choice = Choice(
                route, (kernel, "row_reductions_rms_norm_gradients_bf16_lanes_256x32_15c2f8"),
                (lane_sums, -(-cols // 32)), (lane_sums * cols * 16,),
            )
            yield Candidate(0.0, choice)
            return
    # 3: rows not aligned to 16 bytes
    if cols <= 8192 and read <= 4 and lane_sums * cols <= 16777216:
        choice = Choice(
            3,
            (
                "row_reductions_rms_norm_gradients_bf16_lane_256x32_any_476b41",
                "row_reductions_rms_norm_gradients_bf16_lanes_256x32_15c2f8",
            ), (lane_sums, -(-cols // 32)), (lane_sums * cols * 16,),
        )
        yield Candidate(0.0, choice)
        return
