"""Dispatch of logsumexp: rows.

Generated from ptxgen.tiles.TABLES["logsumexp"]; do not edit.
Regenerate: ptxgen generate
"""

from ptxgen.dispatch.choice import Choice, Dispatch


def sm_80(rows: int, cols: int, sms: int) -> Choice | None:
    """For sm_80, sm_86, sm_87, sm_89, sm_90, sm_100, sm_103, sm_110, sm_120, sm_121."""
    segments = -(-cols // 1024)
    pieces_rows_segments8 = rows * -(-segments // 8)
    # 0: few long rows: a warp a segment, on all SMs
    if (
        rows * segments * 8 <= 268435456 and pieces_rows_segments8 <= 2147483647
        and -(-rows // 8) <= 2147483647 and rows < sms * 2 and segments >= 16
    ):
        return Choice(
            0, ("lse_segments_f32_8_95e5fe", "lse_combine_f32_8_711ac0"),
            (pieces_rows_segments8, -(-rows // 8)), (rows * segments * 8,),
        )
    # 1: a CTA a row
    return Choice(1, ("lse_whole_f32_8_6a90dc",), (min(rows, sms * 8),), ())


BY_ARCH: dict[str, Dispatch] = {
    "sm_80": sm_80,
    "sm_86": sm_80,
    "sm_87": sm_80,
    "sm_89": sm_80,
    "sm_90": sm_80,
    "sm_100": sm_80,
    "sm_103": sm_80,
    "sm_110": sm_80,
    "sm_120": sm_80,
    "sm_121": sm_80,
}
