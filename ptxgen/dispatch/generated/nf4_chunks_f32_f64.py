"""Dispatch of nf4 NT chunks f32 f64, nf4 NN chunks f32 f64: products under the plan 'whole', with
NF4 weights.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Launches, Routes, Time

SOME_0 = frozenset(("sm_90",))
# ROUTES: route, least align_a, launches
ROUTES = Routes({
    "nf4_nt_chunks_f32_f64": (
        # sums in f64 on tensor cores
        (0, 0, (0, "finish")), (1, 0, (1, "finish")), (2, 16, (2, "finish")),
        (3, 16, (3, "finish")), (4, 16, (4, "finish")), (5, 16, (5, "finish")),
        # sums in f64 on FMA units
        (6, 16, (6, "finish")),
        # everything else: any alignment
        (7, 0, (7, "finish")),
    ),
    "nf4_nn_chunks_f32_f64": (
        # sums in f64 on tensor cores
        (0, 0, (0,)), (1, 0, (1,)), (2, 16, (2,)), (3, 16, (3,)), (4, 16, (4,)), (5, 16, (5,)),
        # sums in f64 on FMA units
        (6, 16, (6,)),
        # everything else: any alignment
        (7, 0, (7,)),
    ),
})
# NF4: launch, kernel, bm, bn
NF4 = {
    "nf4_nt_chunks_f32_f64": (
        (0, "nf4_nt_f64_128x64_mma_0fcabe", 128, 64),
        (1, "nf4_nt_f64_16x64_mma_caa0bf", 16, 64),
        (2, "nf4_nt_f64_32x128_mma_9de75a", 32, 128),
        (3, "nf4_nt_f64_16x64_mma_f55987", 16, 64),
        (4, "nf4_nt_f64_16x32_mma_57d7c6", 16, 32),
        (5, "nf4_nt_f64_16x16_mma_f9d3bc", 16, 16),
    ),
    "nf4_nn_chunks_f32_f64": (
        (0, "nf4_nn_f64_128x64_mma_23ca8d", 128, 64),
        (1, "nf4_nn_f64_16x64_mma_f8ca87", 16, 64),
    ),
}
# NF41: launch, kernel
NF41 = {
    "nf4_nt_chunks_f32_f64": (
        (6, "nf4_nt_f64_16x256_550926"),
        (7, "nf4_nt_f64_16x256_d9fefe"),
    ),
    "nf4_nn_chunks_f32_f64": (
        (6, "nf4_nn_f64_16x256_28c404"),
        (7, "nf4_nn_f64_16x256_475714"),
    ),
}
# NF42: launch, kernel, bm, bn
NF42 = {
    "nf4_nn_chunks_f32_f64": (
        (2, "nf4_nn_f64_32x128_mma_35e6a9", 32, 128),
        (3, "nf4_nn_f64_16x64_mma_cfc287", 16, 64),
        (4, "nf4_nn_f64_16x32_mma_851c6c", 16, 32),
        (5, "nf4_nn_f64_16x16_mma_7a4b19", 16, 16),
    ),
}


def candidates(
    table: str, arch: str, m: int, n: int, k: int, sms: int, align_a: int, time: Time,
) -> Iterator[Candidate]:
    """What can serve a problem, with predicted times."""
    chunk = max(1, min(k, k))
    chunks = -(-k // chunk)
    fitting = ROUTES.fitting(table, align_a)
    launches: Launches = {}
    operands = m * k * 4 + n * k // 2 + n * k // 16
    stores = chunks * m * n * 4
    for launch, kernel, bm, bn in fitting.rows(NF4) if arch in SOME_0 else ():
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
    if table == "nf4_nt_chunks_f32_f64" and "finish" in fitting and ctas <= 2147483647:
        us = time(
            "finish_f32_128_bf44ae", "fma", 8, sms, ctas, -(-m // 512), 0, operands1, operands1,
            operands1,
        )
        launches["finish"] = us, "finish_f32_128_bf44ae", ctas, {}
    tiles_16x256 = -(-m // 16) * -(-n // 256)
    for launch, kernel in fitting.rows(NF41):
        ctas = min(-(-m // 16), 512) * -(-n // 256) * chunks
        if ctas <= 2147483647:
            us = time(
                kernel, "fma64", 1, sms, tiles_16x256 * chunks, -(-chunk // 8), chunk * 4096,
                -(-m // 16) * (n * k // 2 + n * k // 16) + -(-n // 256) * m * k * 4, operands,
                stores,
            )
            launches[launch] = us, kernel, ctas, {}
    for launch, kernel, bm, bn in fitting.rows(NF42) if arch in SOME_0 else ():
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
