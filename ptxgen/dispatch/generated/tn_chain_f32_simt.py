"""Dispatch of TN chain f32 simt: products under the plan 'chain'.

Generated from ptxgen.tiles.TABLES["TN", "chain", "f32", "simt"]; do not edit.
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
    operands = (m + n) * k * 4
    stores = m * n * (item_c * 2)
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    # 0: one chain, from what is there
    if align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_128x128 <= 2147483647:
        us = time(
            "simt_tn_f32_128x128x32_392618", "fma", 2, sms, tiles_128x128, -(-k // 32), k * 16384,
            tiles_128x128 * k * 1024, operands, stores,
        )
        yield Candidate(us, Choice(0, ("simt_tn_f32_128x128x32_392618",), (tiles_128x128,), ()))
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 1: everything else: any size, alignment and plan
    if chunks <= 1:
        us = time(
            "simt_tn_f32_64x64x16_e0f946", "fma", 3, sms, tiles_64x64, -(-k // 16), k * 4096,
            tiles_64x64 * k * 512, operands, stores,
        )
        choice = Choice(1, ("simt_tn_f32_64x64x16_e0f946",), (min(tiles_64x64, 2147483647),), ())
        yield Candidate(us, choice)
