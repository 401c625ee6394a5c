"""Dispatch of segments NT, segments NT capped, segments NN, segments NN capped: products under the
plan 'chunks'.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Launches, Routes, Time

SOME_0 = frozenset(("sm_90",))
# ROUTES: route, least align_a, least align_b, launches
ROUTES = Routes({
    "segments_nt": (
        # a product that stores maxima and sums of segments, but no logits
        (0, 16, 16, (0,)), (1, 16, 16, (1,)),
    ),
})
ROUTES["segments_nt_capped"] = ROUTES["segments_nt"]
ROUTES["segments_nn"] = ROUTES["segments_nt"]
ROUTES["segments_nn_capped"] = ROUTES["segments_nt"]
# VOCAB_SEGMENTS_WGMMA: kernel
VOCAB_SEGMENTS_WGMMA = {
    "segments_nt": ("vocab_segments_wgmma_nt_bf16_128x256x64_3fbcc4",),
    "segments_nt_capped": ("vocab_segments_wgmma_capped_nt_bf16_128x256x64_557746",),
    "segments_nn": ("vocab_segments_wgmma_nn_bf16_128x256x64_d93b0e",),
    "segments_nn_capped": ("vocab_segments_wgmma_capped_nn_bf16_128x256x64_53ac31",),
}
# VOCAB_SEGMENTS_WGMMA1: kernel
VOCAB_SEGMENTS_WGMMA1 = {
    "segments_nt": ("vocab_segments_wgmma_nt_bf16_128x256x64_525263",),
    "segments_nt_capped": ("vocab_segments_wgmma_capped_nt_bf16_128x256x64_c9a3df",),
    "segments_nn": ("vocab_segments_wgmma_nn_bf16_128x256x64_2acaea",),
    "segments_nn_capped": ("vocab_segments_wgmma_capped_nn_bf16_128x256x64_c08a95",),
}


def candidates(
    table: str, arch: str, m: int, n: int, k: int, sms: int, align_a: int, align_b: int, time: Time,
) -> Iterator[Candidate]:
    """Yields the routes that serve a problem, with predicted times."""
    u = {
        "segments_nt": k,
        "segments_nt_capped": k,
        "segments_nn": n,
        "segments_nn_capped": n,
    }[table]
    chunk = max(1, min(k, k if k <= 4096 else -(-k // -(-k // 3072) // 128) * 128))
    chunks = -(-k // chunk)
    fitting = ROUTES.fitting(table, align_a, align_b)
    launches: Launches = {}
    operands = (m + n) * k * 2
    stores = m * n * 2
    tiles_128x256 = -(-m // 128) * -(-n // 256)
    for kernel in VOCAB_SEGMENTS_WGMMA[table] if arch in SOME_0 and 0 in fitting else ():
        if (
            chunks <= 1 and sms >= 1 and m + 128 <= 2147483647 and n + 256 <= 2147483647
            and k + 64 <= 2147483647 and tiles_128x256 + sms <= 4294967295
        ):
            us = time(
                kernel, "wgmma", 1, sms, tiles_128x256, -(-k // 64), k * 32768,
                tiles_128x256 * k * (768 + (min(k % 16, 1) * 128 + min(u % 16, 1) * 256) * 6),
                operands, stores,
            )
            launches[0] = us, kernel, min(tiles_128x256, sms) * 1, {}
    for kernel in VOCAB_SEGMENTS_WGMMA1[table] if arch in SOME_0 and 1 in fitting else ():
        if (
            (chunk % 64 == 0 or chunks <= 1) and sms >= 1 and m + 128 <= 2147483647
            and n + 256 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x256 + sms <= 4294967295
        ):
            us = time(
                kernel, "wgmma", 1, sms, tiles_128x256, -(-k // 64), k * 32768,
                tiles_128x256 * k * (768 + (min(k % 16, 1) * 128 + min(u % 16, 1) * 256) * 6),
                operands, stores,
            )
            launches[1] = us, kernel, min(tiles_128x256, sms) * 1, {}
    yield from fitting.combined(launches)
