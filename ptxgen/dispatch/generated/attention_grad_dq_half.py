"""Dispatch of attention_grad dq half: attention_grad.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time

SOME_0 = frozenset(("sm_90",))
SOME_1 = frozenset(("sm_80", "sm_87", "sm_90", "sm_100", "sm_103", "sm_110"))


def candidates(
    table: str, arch: str, rows: int, ragged: int, pairs: int, past: int, depth: int, width: int,
    plain: int, maps: int, sms: int, time: Time,
) -> Iterator[Candidate]:
    """Yields the routes that serve a problem, with predicted times."""
    further = max(rows - ragged, 0)
    # 0: Hopper: wgmma and TMA; one consumer warpgroup
    if (
        arch in SOME_0 and plain == 1 and maps == 0
        and (further // 64 + ragged) * pairs * 1 <= 2147483647 and (rows > 64 or past > 64)
        and (rows <= 64 or (further // 64 + ragged) * pairs * 1 <= sms)
    ):
        choice = Choice(
            0, ("attention_grad_wgmma_dq_bf16_128_64_3f7441",),
            ((further // 64 + ragged) * pairs * 1,), (),
        )
        yield Candidate(0.0, choice)
        return
    # 1: Hopper: wgmma and TMA; three consumer warpgroups
    if (
        arch in SOME_0 and plain == 1 and maps == 0 and depth <= 96 and width <= 96
        and (further // 192 + ragged) * pairs * 1 <= 2147483647 and (rows > 64 or past > 64)
    ):
        choice = Choice(
            1, ("attention_grad_wgmma_dq_bf16_96_192_383754",),
            ((further // 192 + ragged) * pairs * 1,), (),
        )
        yield Candidate(0.0, choice)
        return
    # 2: Hopper: wgmma and TMA; two consumer warpgroups
    if (
        arch in SOME_0 and plain == 1 and maps == 0
        and (further // 128 + ragged) * pairs * 1 <= 2147483647 and (rows > 64 or past > 64)
    ):
        choice = Choice(
            2, ("attention_grad_wgmma_dq_bf16_128_128_f68a48",),
            ((further // 128 + ragged) * pairs * 1,), (),
        )
        yield Candidate(0.0, choice)
        return
    pieces_maps_past1024 = maps * -(-past // 1024)
    # 3: Hopper: wgmma and TMA; one consumer warpgroup, bit map of the mask
    if (
        arch in SOME_0 and maps >= 1 and past <= 65536 and pieces_maps_past1024 * 4096 <= 1073741824
        and plain == 1 and (further // 64 + ragged) * pairs * 1 <= 2147483647
        and (rows > 64 or past > 64) and (rows <= 64 or (further // 64 + ragged) * pairs * 1 <= sms)
    ):
        choice = Choice(
            3, ("attention_mask_b8_8_69e8be", "attention_grad_wgmma_masked_dq_bf16_128_64_6de43f"),
            (pieces_maps_past1024, (further // 64 + ragged) * pairs * 1),
            (pieces_maps_past1024 * 4096, pieces_maps_past1024 * 8),
        )
        yield Candidate(0.0, choice)
        return
    # 4: Hopper: wgmma and TMA; three consumer warpgroups, bit map of the mask
    if (
        arch in SOME_0 and maps >= 1 and past <= 65536 and pieces_maps_past1024 * 4096 <= 1073741824
        and plain == 1 and depth <= 96 and width <= 96
        and (further // 192 + ragged) * pairs * 1 <= 2147483647 and (rows > 64 or past > 64)
    ):
        choice = Choice(
            4, ("attention_mask_b8_8_69e8be", "attention_grad_wgmma_masked_dq_bf16_96_192_27af6d"),
            (pieces_maps_past1024, (further // 192 + ragged) * pairs * 1),
            (pieces_maps_past1024 * 4096, pieces_maps_past1024 * 8),
        )
        yield Candidate(0.0, choice)
        return
    # 5: Hopper: wgmma and TMA; two consumer warpgroups, bit map of the mask
    if (
        arch in SOME_0 and maps >= 1 and past <= 65536 and pieces_maps_past1024 * 4096 <= 1073741824
        and plain == 1 and (further // 128 + ragged) * pairs * 1 <= 2147483647
        and (rows > 64 or past > 64)
    ):
        choice = Choice(
            5, ("attention_mask_b8_8_69e8be", "attention_grad_wgmma_masked_dq_bf16_128_128_0a6bbb"),
            (pieces_maps_past1024, (further // 128 + ragged) * pairs * 1),
            (pieces_maps_past1024 * 4096, pieces_maps_past1024 * 8),
        )
        yield Candidate(0.0, choice)
        return
    # 6: portable; large tiles, where each SM gets one
    if (
        arch in SOME_1 and (further // 64 + ragged) * pairs <= 2147483647
        and sms <= (further // 64 + ragged) * pairs
    ):
        choice = Choice(
            6, ("attention_grad_dq_bf16_128_64_28fe5f",), ((further // 64 + ragged) * pairs,), (),
        )
        yield Candidate(0.0, choice)
        return
    # 7: portable; small tiles
    if (further // 32 + ragged) * pairs <= 2147483647:
        choice = Choice(
            7, ("attention_grad_dq_bf16_128_32_8e4d34",), ((further // 32 + ragged) * pairs,), (),
        )
        yield Candidate(0.0, choice)
        return
