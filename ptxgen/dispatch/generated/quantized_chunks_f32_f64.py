"""Dispatch of quantized NT chunks f32 f64, quantized NN chunks f32 f64: products under the plan
'whole', with quantized weights.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Launches, Routes, Time

SOME_0 = frozenset(("sm_90",))
# ROUTES: route, least align_a, launches
ROUTES = Routes({
    "quantized_nt_chunks_f32_f64": (
        # sums in f64 on tensor cores
        (0, 0, (0, "quantized_finish")), (1, 0, (1, "quantized_finish")),
        (2, 16, (2, "quantized_finish")), (3, 16, (3, "quantized_finish")),
        (4, 16, (4, "quantized_finish")), (5, 16, (5, "quantized_finish")),
        # sums in f64 on FMA units
        (6, 16, (6, "quantized_finish")),
        # everything else: any alignment
        (7, 0, (7, "quantized_finish")),
    ),
    "quantized_nn_chunks_f32_f64": (
        # sums in f64 on tensor cores
        (0, 0, (0,)), (1, 0, (1,)), (2, 16, (2,)), (3, 16, (3,)), (4, 16, (4,)), (5, 16, (5,)),
        # sums in f64 on FMA units
        (6, 16, (6,)),
        # everything else: any alignment
        (7, 0, (7,)),
    ),
})
# QUANTIZED: launch, kernel, bm, bn
QUANTIZED = {
    "quantized_nt_chunks_f32_f64": (
        (0, "quantized_nf4_nt_f64_128x64_mma_a7d65b", 128, 64),
        (1, "quantized_nf4_nt_f64_16x64_mma_f6a266", 16, 64),
        (2, "quantized_nf4_nt_f64_32x128_mma_6188f6", 32, 128),
        (3, "quantized_nf4_nt_f64_16x64_mma_4a3cdd", 16, 64),
        (4, "quantized_nf4_nt_f64_16x32_mma_ebbee8", 16, 32),
        (5, "quantized_nf4_nt_f64_16x16_mma_3429f6", 16, 16),
    ),
    "quantized_nn_chunks_f32_f64": (
        (0, "quantized_nf4_nn_f64_128x64_mma_130cbb", 128, 64),
        (1, "quantized_nf4_nn_f64_16x64_mma_acb736", 16, 64),
    ),
}
# QUANTIZED1: launch, kernel
QUANTIZED1 = {
    "quantized_nt_chunks_f32_f64": (
        (6, "quantized_nf4_nt_f64_16x256_a9f1fc"),
        (7, "quantized_nf4_nt_f64_16x256_e601a5"),
    ),
    "quantized_nn_chunks_f32_f64": (
        (6, "quantized_nf4_nn_f64_16x256_dcb648"),
        (7, "quantized_nf4_nn_f64_16x256_0d9b03"),
    ),
}
# QUANTIZED2: launch, kernel, bm, bn
QUANTIZED2 = {
    "quantized_nn_chunks_f32_f64": (
        (2, "quantized_nf4_nn_f64_32x128_mma_b1718f", 32, 128),
        (3, "quantized_nf4_nn_f64_16x64_mma_462354", 16, 64),
        (4, "quantized_nf4_nn_f64_16x32_mma_98f245", 16, 32),
        (5, "quantized_nf4_nn_f64_16x16_mma_3bab49", 16, 16),
    ),
}


def candidates(
    table: str, arch: str, m: int, n: int, k: int, sms: int, align_a: int, time: Time,
) -> Iterator[Candidate]:
    """Yields the routes that serve a problem, with predicted times."""
    chunk = max(1, min(k, k))
    chunks = -(-k // chunk)
    fitting = ROUTES.fitting(table, align_a)
    launches: Launches = {}
    operands = m * k * 4 + n * k // 2 + n * k // 16
    stores = chunks * m * n * 4
    for launch, kernel, bm, bn in fitting.rows(QUANTIZED) if arch in SOME_0 else ():
        tiles = -(-m // bm) * -(-n // bn)
        ctas = min(-(-m // bm), 512) * -(-n // bn) * chunks
        if ctas <= 2147483647:
            us = time(
                kernel, "mma64", 1, sms, tiles * chunks, -(-chunk // 8), chunk * (bm * bn),
                -(-m // bm) * (n * k // 2 + n * k // 16) + -(-n // bn) * m * k * 4, operands,
                stores,
            )
            launches[launch] = us, kernel, ctas, {}
    operands1 = m * n * 4
    ctas = min(m, 512) * -(-n // 128)
    if (
        table == "quantized_nt_chunks_f32_f64" and "quantized_finish" in fitting
        and ctas <= 2147483647
    ):
        us = time(
            "quantized_finish_f32_128_bf44ae", "fma", 8, sms, ctas, -(-m // 512), 0, operands1,
            operands1, operands1,
        )
        launches["quantized_finish"] = us, "quantized_finish_f32_128_bf44ae", ctas, {}
    tiles_16x256 = -(-m // 16) * -(-n // 256)
    for launch, kernel in fitting.rows(QUANTIZED1):
        ctas = min(-(-m // 16), 512) * -(-n // 256) * chunks
        if ctas <= 2147483647:
            us = time(
                kernel, "fma64", 1, sms, tiles_16x256 * chunks, -(-chunk // 8), chunk * 4096,
                -(-m // 16) * (n * k // 2 + n * k // 16) + -(-n // 256) * m * k * 4, operands,
                stores,
            )
            launches[launch] = us, kernel, ctas, {}
    for launch, kernel, bm, bn in fitting.rows(QUANTIZED2) if arch in SOME_0 else ():
        tiles = -(-m // bm) * -(-n // bn)
        ctas = min(-(-m // bm), 512) * -(-n // bn) * chunks
        if ctas <= 2147483647 and k % 16 == 0:
            us = time(
                kernel, "mma64", 1, sms, tiles * chunks, -(-chunk // 8), chunk * (bm * bn),
                -(-m // bm) * (n * k // 2 + n * k // 16) + -(-n // bn) * m * k * 4, operands,
                stores,
            )
            launches[launch] = us, kernel, ctas, {}
    yield from fitting.combined(launches)
