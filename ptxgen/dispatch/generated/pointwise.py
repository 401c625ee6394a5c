"""Dispatch of pointwise: elements.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time


def candidates(
    table: str, arch: str, count: int, chunks: int, blocks: int, rank: int, step: int, factor: int,
    sms: int, time: Time,
) -> Iterator[Candidate]:
    """Yields the routes that serve a problem, with predicted times."""
    # 0: in-place products by a scalar in memory: few CTAs, which return at once if it is 1
    if (
        step == 2 and rank == 1 and factor == 1
        and max(-(-chunks // 4096), min(-(-chunks // 128), sms * 16)) <= 2147483647
    ):
        choice = Choice(
            0, ("pointwise_factor_bf16_72ee00",),
            (max(-(-chunks // 4096), min(-(-chunks // 128), sms * 16)),), (),
        )
        yield Candidate(0.0, choice)
        return
    # 1: contiguous arrays
    if (
        step == 2 and rank == 1
        and max(-(-chunks // 256), min(-(-chunks // 128), sms * 2)) <= 2147483647
    ):
        choice = Choice(
            1, ("pointwise_flat_bf16_dee1f9",),
            (max(-(-chunks // 256), min(-(-chunks // 128), sms * 2)),), (),
        )
        yield Candidate(0.0, choice)
        return
    # 2: vectors of the innermost dimension
    if (
        step == 2 and rank >= 2 and chunks <= 2147483647
        and max(-(-chunks // 256), min(-(-chunks // 128), sms * 2)) <= 2147483647
    ):
        choice = Choice(
            2, ("pointwise_rows_bf16_deb85a",),
            (max(-(-chunks // 256), min(-(-chunks // 128), sms * 2)),), (),
        )
        yield Candidate(0.0, choice)
        return
    # 3: square blocks of two dimensions; each array is contiguous along one of them
    if (
        step == 3 and rank >= 2 and blocks >= 1 and blocks <= 2147483647
        and -(-blocks // 128) <= 2147483647
    ):
        yield Candidate(0.0, Choice(3, ("pointwise_blocks_bf16_865316",), (-(-blocks // 128),), ()))
        return
    # 4: single elements, any strides
    if count <= 2147483647 and max(-(-count // 512), min(-(-count // 128), sms * 2)) <= 2147483647:
        choice = Choice(
            4, ("pointwise_any_bf16_25318d",),
            (max(-(-count // 512), min(-(-count // 128), sms * 2)),), (),
        )
        yield Candidate(0.0, choice)
        return
    # 5: single elements, more than 2^31 of them
    if max(-(-count // 512), min(-(-count // 128), sms * 2)) <= 2147483647:
        choice = Choice(
            5, ("pointwise_wide_bf16_889947",),
            (max(-(-count // 512), min(-(-count // 128), sms * 2)),), (),
        )
        yield Candidate(0.0, choice)
        return
