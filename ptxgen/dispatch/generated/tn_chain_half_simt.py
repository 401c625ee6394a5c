"""Dispatch of TN chain half simt: products under the plan 'chain'.

Generated from ptxgen.tiles.TABLES["TN", "chain", "half", "simt"]; do not edit.
Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time


def candidates(
    arch: str,
    m: int,
    n: int,
    k: int,
    sms: int,
    align_a: int,
    align_b: int,
    align_c: int,
    item_c: int,
    time: Time,
) -> Iterator[Candidate]:
    """What can serve a problem, with predicted times."""
    chunk = max(1, min(k, k))
    chunks = -(-k // chunk)
    operands = (m + n) * k * 2
    stores = m * n * (item_c * 2)
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 0: everything else: any size, alignment and plan
    if chunks <= 1:
        us = time(
            "simt_tn_bf16_64x64x16_693c72", "fma", 3, sms, tiles_64x64, -(-k // 16), k * 4096,
            tiles_64x64 * k * 256, operands, stores,
        )
        choice = Choice(0, ("simt_tn_bf16_64x64x16_693c72",), (min(tiles_64x64, 2147483647),), ())
        yield Candidate(us, choice)
