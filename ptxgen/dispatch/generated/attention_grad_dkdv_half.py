"""Dispatch of attention_grad dkdv half: attention_grad.

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
        arch in SOME_0 and plain == 1 and maps == 0 and depth + width <= 256
        and (further // 64 + ragged) * pairs * 1 <= 2147483647
        and (rows <= 64 or (further // 64 + ragged) * pairs * 1 <= sms)
    ):
        choice = Choice(
            0, ("attention_grad_wgmma_dkdv_bf16_128_64_a6a920",),
            ((further // 64 + ragged) * pairs * 1,), (),
        )
        yield Candidate(0.0, choice)
        return
    # 1: Hopper: wgmma and TMA; two consumer warpgroups
    if (
        arch in SOME_0 and plain == 1 and maps == 0 and depth + width <= 256
        and (further // 128 + ragged) * pairs * 1 <= 2147483647
    ):
        choice = Choice(
            1, ("attention_grad_wgmma_dkdv_bf16_128_128_839c8f",),
            ((further // 128 + ragged) * pairs * 1,), (),
        )
        yield Candidate(0.0, choice)
        return
    pieces_maps_rows1024 = maps * -(-rows // 1024)
    # 2: Hopper: wgmma and TMA; one consumer warpgroup, bit map of the mask
    if (
        arch in SOME_0 and maps >= 1 and rows <= 65536 and pieces_maps_rows1024 * 4096 <= 1073741824
        and plain == 1 and past <= 262144 and depth + width <= 256
        and (further // 64 + ragged) * pairs * 1 <= 2147483647
        and (rows <= 64 or (further // 64 + ragged) * pairs * 1 <= sms)
    ):
        choice = Choice(
            2,
            ("attention_mask_b8_8_69e8be", "attention_grad_wgmma_masked_dkdv_bf16_128_64_b5a0d1"),
            (pieces_maps_rows1024, (further // 64 + ragged) * pairs * 1),
            (pieces_maps_rows1024 * 4096, pieces_maps_rows1024 * 8),
        )
        yield Candidate(0.0, choice)
        return
    # 3: Hopper: wgmma and TMA; two consumer warpgroups, bit map of the mask
    if (
        arch in SOME_0 and maps >= 1 and rows <= 65536 and pieces_maps_rows1024 * 4096 <= 1073741824
        and plain == 1 and past <= 262144 and depth + width <= 256
        and (further // 128 + ragged) * pairs * 1 <= 2147483647
    ):
        choice = Choice(
            3,
            ("attention_mask_b8_8_69e8be", "attention_grad_wgmma_masked_dkdv_bf16_128_128_5336be"),
            (pieces_maps_rows1024, (further // 128 + ragged) * pairs * 1),
            (pieces_maps_rows1024 * 4096, pieces_maps_rows1024 * 8),
        )
        yield Candidate(0.0, choice)
        return
    # 4: portable; large tiles, where each SM gets one
    if (
        arch in SOME_1 and (further // 128 + ragged) * pairs <= 2147483647 and depth + width <= 256
        and sms <= (further // 128 + ragged) * pairs
    ):
        choice = Choice(
            4, ("attention_grad_dkdv_bf16_128_128_448dc2",), ((further // 128 + ragged) * pairs,),
            (),
        )
        yield Candidate(0.0, choice)
        return
    # 5: portable; small tiles
    if (further // 64 + ragged) * pairs <= 2147483647 and depth + width <= 256:
        choice = Choice(
            5, ("attention_grad_dkdv_bf16_128_64_0611df",), ((further // 64 + ragged) * pairs,), (),
        )
        yield Candidate(0.0, choice)
        return
    # 6: Hopper: wgmma and TMA; one consumer warpgroup
    if (
        arch in SOME_0 and plain == 1 and maps == 0 and depth + width > 256
        and (further // 64 + ragged) * pairs * 2 <= 2147483647
        and (rows <= 64 or (further // 64 + ragged) * pairs * 2 <= sms)
    ):
        choice = Choice(
            6, ("attention_grad_wgmma_dkdv_bf16_256_64_fb05ba",),
            ((further // 64 + ragged) * pairs * 2,), (),
        )
        yield Candidate(0.0, choice)
        return
    # 7: Hopper: wgmma and TMA; two consumer warpgroups
    if (
        arch in SOME_0 and plain == 1 and maps == 0 and depth + width > 256
        and (further // 128 + ragged) * pairs * 2 <= 2147483647
    ):
        choice = Choice(
            7, ("attention_grad_wgmma_dkdv_bf16_256_128_b8f62a",),
            ((further // 128 + ragged) * pairs * 2,), (),
        )
        yield Candidate(0.0, choice)
        return
    # 8: Hopper: wgmma and TMA; one consumer warpgroup, bit map of the mask
    if (
        arch in SOME_0 and maps >= 1 and rows <= 65536 and pieces_maps_rows1024 * 4096 <= 1073741824
        and plain == 1 and past <= 262144 and depth + width > 256
        and (further // 64 + ragged) * pairs * 2 <= 2147483647
    ):
        choice = Choice(
            8,
            ("attention_mask_b8_8_69e8be", "attention_grad_wgmma_masked_dkdv_bf16_256_64_26f7be"),
            (pieces_maps_rows1024, (further // 64 + ragged) * pairs * 2),
            (pieces_maps_rows1024 * 4096, pieces_maps_rows1024 * 8),
        )
        yield Candidate(0.0, choice)
        return
    # 9: portable; large tiles, where each SM gets one
    if (
        arch in SOME_1 and (further // 64 + ragged) * pairs <= 2147483647
        and sms <= (further // 64 + ragged) * pairs
    ):
        choice = Choice(
            9, ("attention_grad_dk_bf16_256_64_8a9fb9", "attention_grad_dv_bf16_256_64_86469f"),
            ((further // 64 + ragged) * pairs, (further // 64 + ragged) * pairs), (),
        )
        yield Candidate(0.0, choice)
        return
    # 10: portable; small tiles
    if (further // 32 + ragged) * pairs <= 2147483647:
        choice = Choice(
            10, ("attention_grad_dk_bf16_256_32_d004dd", "attention_grad_dv_bf16_256_32_bd8608"),
            ((further // 32 + ragged) * pairs, (further // 32 + ragged) * pairs), (),
        )
        yield Candidate(0.0, choice)
        return
