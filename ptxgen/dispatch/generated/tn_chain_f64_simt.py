"""Dispatch of TN chain f64 simt: products under the plan 'chain'.

Generated from ptxgen.tiles.TABLES["TN", "chain", "f64", "simt"]; do not edit.
Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time

SOME_0 = frozenset(("sm_90",))


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
    operands = (m + n) * k * 8
    stores = m * n * (item_c * 2)
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    # 0: one chain, from what is there, on tensor cores
    if (
        arch in SOME_0
        and align_a >= 16 and align_b >= 16 and chunks <= 1 and tiles_128x128 <= 2147483647
    ):
        us = time(
            "f64_tn_f64_128x128x16_fe109b", "mma64", 1, sms, tiles_128x128, -(-k // 16), k * 16384,
            tiles_128x128 * k * 2048, operands, stores,
        )
        yield Candidate(us, Choice(0, ("f64_tn_f64_128x128x16_fe109b",), (tiles_128x128,), ()))
    tiles_64x32 = -(-m // 64) * -(-n // 32)
    # 1: everything else: any size, alignment and plan
    if chunks <= 1:
        us = time(
            "f64_tn_f64_64x32x16_4c3fb1", "fma64", 3, sms, tiles_64x32, -(-k // 16), k * 2048,
            tiles_64x32 * k * 768, operands, stores,
        )
        choice = Choice(1, ("f64_tn_f64_64x32x16_4c3fb1",), (min(tiles_64x32, 2147483647),), ())
        yield Candidate(us, choice)
