"""Dispatch of TN chain f32 simt, TN chain half simt, TN chain half tc, TN chain f64 simt: products
under the plan 'chain'.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Launches, Routes, Time

SOME_0 = frozenset(("sm_90",))
# ROUTES: route, least align_a, least align_b, least align_c, launches
ROUTES = Routes({
    "tn_chain_f32_simt": (
        # one chain that continues an earlier result
        (0, 16, 16, 0, (0,)),
        # everything else: any size, alignment and plan
        (1, 0, 0, 0, (1,)),
    ),
    "tn_chain_half_simt": (
        # everything else: any size, alignment and plan
        (0, 0, 0, 0, (0,)),
    ),
    "tn_chain_half_tc": (
        # one chain that continues an earlier result, by wgmma
        (0, 16, 16, 16, (0,)), (1, 16, 16, 16, (1,)), (2, 16, 16, 16, (2,)), (3, 16, 16, 16, (3,)),
        # A not aligned to 16 bytes: copied first
        (4, 0, 16, 16, ("realign_a", 0)), (5, 0, 16, 16, ("realign_a", 2)),
        # one chain that continues an earlier result, by mma
        (6, 16, 16, 0, (6,)),
        # everything else: any size, alignment and plan
        (7, 0, 0, 0, (7,)),
    ),
    "tn_chain_f64_simt": (
        # one chain that continues an earlier result, on tensor cores
        (0, 16, 16, 0, (0,)),
        # everything else: any size, alignment and plan
        (1, 0, 0, 0, (1,)),
    ),
})
# SIMT: launch, kernel, unit, bn, c0, c1, c2
SIMT = {
    "tn_chain_f32_simt": ((1, "simt_tn_f32_64x64x16_d1ca5f", "fma", 64, 4096, 512, 4),),
    "tn_chain_half_simt": ((0, "simt_tn_bf16_64x64x16_050649", "fma", 64, 4096, 256, 2),),
    "tn_chain_f64_simt": ((1, "f64_tn_f64_64x32x16_9f551e", "fma64", 32, 2048, 768, 8),),
}
# WGMMA_CHAIN: launch, kernel, bm, bn, bk, c0, c1
WGMMA_CHAIN = {
    "tn_chain_half_tc": (
        (0, "wgmma_chain_tn_bf16_128x256x32_bf16_c4eace", 128, 256, 32, 2, 8),
        (1, "wgmma_chain_tn_bf16_64x64x64_bf16_ea06b6", 64, 64, 64, 2, 8),
        (2, "wgmma_chain_tn_bf16_128x128x64_f32_42ab9f", 128, 128, 64, 4, 4),
        (3, "wgmma_chain_tn_bf16_64x64x64_f32_83818c", 64, 64, 64, 4, 4),
    ),
}


def candidates(
    table: str, arch: str, m: int, n: int, k: int, sms: int, align_a: int, align_b: int,
    align_c: int, item_c: int, time: Time,
) -> Iterator[Candidate]:
    """Yields the routes that serve a problem, with predicted times."""
    chunk = max(1, min(k, k))
    chunks = -(-k // chunk)
    fitting = ROUTES.fitting(table, align_a, align_b, align_c)
    launches: Launches = {}
    operands = (m + n) * k * 4
    stores = m * n * (item_c * 2)
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    if (
        table == "tn_chain_f32_simt" and 0 in fitting and chunks <= 1
        and tiles_128x128 <= 2147483647
    ):
        us = time(
            "simt_tn_f32_128x128x32_fa65c9", "fma", 2, sms, tiles_128x128, -(-k // 32), k * 16384,
            tiles_128x128 * k * 1024, operands, stores,
        )
        launches[0] = us, "simt_tn_f32_128x128x32_fa65c9", tiles_128x128, {}
    for launch, kernel, unit, bn, c0, c1, c2 in fitting.rows(SIMT):
        tiles = -(-m // 64) * -(-n // bn)
        if chunks <= 1:
            us = time(
                kernel, unit, 3, sms, tiles, -(-k // 16), k * c0, tiles * k * c1, (m + n) * k * c2,
                stores,
            )
            launches[launch] = us, kernel, min(tiles, 2147483647), {}
    operands1 = (m + n) * k * 2
    for launch, kernel, bm, bn, bk, c0, c1 in fitting.rows(WGMMA_CHAIN) if arch in SOME_0 else ():
        tiles = -(-m // bm) * -(-n // bn)
        if (
            chunks <= 1 and sms >= 1 and m + bm <= 2147483647 and n + bn <= 2147483647
            and k + bk <= 2147483647 and tiles + sms <= 4294967295 and item_c == c0 and n % c1 == 0
        ):
            us = time(
                kernel, "wgmma", 1, sms, tiles, -(-k // bk), k * (bm * bn),
                tiles * k * ((bm + bn) * 2 + (min(m % 16, 1) * bm + min(n % 16, 1) * bn) * 6),
                operands1, stores,
            )
            launches[launch] = us, kernel, min(tiles, sms) * 1, {}
    operands2 = 0 + k * -(-m // 8) * 16
    pieces_k_m8 = k * -(-m // 8)
    ctas = -(-pieces_k_m8 // 512)
    if table == "tn_chain_half_tc" and "realign_a" in fitting and pieces_k_m8 * 16 <= 1073741824:
        us = time(
            "realign_b16x1_69d801", "fma", 8, sms, ctas, 1, 0, operands2, operands2, operands2,
        )
        launches["realign_a"] = us, "realign_b16x1_69d801", ctas, {"a_realigned": pieces_k_m8 * 16}
    if table == "tn_chain_half_tc" and 6 in fitting and chunks <= 1 and tiles_128x128 <= 2147483647:
        us = time(
            "mma_tn_bf16_128x128x64_18e050", "mma", 2, sms, tiles_128x128, -(-k // 64), k * 16384,
            tiles_128x128 * k * (512 + (min(m % 16, 1) * 128 + min(n % 16, 1) * 128) * 6),
            operands1, stores,
        )
        launches[6] = us, "mma_tn_bf16_128x128x64_18e050", tiles_128x128, {}
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    if table == "tn_chain_half_tc" and 7 in fitting and chunks <= 1:
        us = time(
            "mma_tn_bf16_64x64x32_012ef6", "mma", 3, sms, tiles_64x64, -(-k // 32), k * 4096,
            tiles_64x64 * k * (256 + (min(m % 16, 1) * 64 + min(n % 16, 1) * 64) * 6), operands1,
            stores,
        )
        launches[7] = us, "mma_tn_bf16_64x64x32_012ef6", min(tiles_64x64, 2147483647), {}
    operands3 = (m + n) * k * 8
    if (
        table == "tn_chain_f64_simt" and arch in SOME_0 and 0 in fitting and chunks <= 1
        and tiles_128x128 <= 2147483647
    ):
        us = time(
            "f64_tn_f64_128x128x16_30ef88", "mma64", 1, sms, tiles_128x128, -(-k // 16), k * 16384,
            tiles_128x128 * k * 2048, operands3, stores,
        )
        launches[0] = us, "f64_tn_f64_128x128x16_30ef88", tiles_128x128, {}
    yield from fitting.combined(launches)
