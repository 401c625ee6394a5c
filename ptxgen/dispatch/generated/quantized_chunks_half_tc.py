"""Dispatch of quantized NT chunks half tc, quantized NN chunks half tc: products under the plan
'chunks', with quantized weights.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Launches, Routes, Time

SOME_0 = frozenset(("sm_90",))
SOME_1 = frozenset(("sm_90", "sm_100", "sm_103", "sm_110", "sm_120", "sm_121"))
SOME_2 = frozenset(("sm_90", "sm_100", "sm_103", "sm_110"))
SOME_3 = frozenset(("sm_80", "sm_87", "sm_90", "sm_100", "sm_103", "sm_110"))
# ROUTES: route, least align_a, launches
ROUTES = Routes({
    "quantized_nt_chunks_half_tc": (
        # few outputs: split-K, a CTA for each tile and chunk
        (0, 16, (0, "reduce")), (1, 16, (1, "reduce")), (2, 16, (2, "reduce")),
        # few rows: helper warps decode the weight, which is read once
        (3, 16, (3,)), (4, 16, (4,)),
        # few rows: warps decode in registers
        (5, 16, (5,)), (6, 16, (6,)), (7, 16, (7,)), (8, 16, (8,)), (9, 16, (9,)), (10, 16, (10,)),
        (11, 16, (11,)), (12, 16, (12,)), (13, 16, (13,)), (14, 16, (14,)), (15, 16, (15,)),
        (16, 16, (16,)), (17, 16, (17,)), (18, 16, (18,)), (19, 16, (19,)), (20, 16, (20,)),
        # some rows, one chunk: by wgmma, decoded in registers
        (21, 16, (21,)), (22, 16, (22,)), (23, 16, (23,)), (24, 16, (24,)), (25, 16, (25,)),
        (26, 16, (26,)),
        # some rows, several chunks: split-K by wgmma, decoded in registers
        (27, 16, (27, "reduce")), (28, 16, (28, "reduce")), (29, 16, (29, "reduce")),
        (30, 16, (30, "reduce")), (31, 16, (31, "reduce")), (32, 16, (32, "reduce")),
        (33, 16, (33, "reduce")), (34, 16, (34, "reduce")), (35, 16, (35, "reduce")),
        # short reductions: several CTAs an SM
        (36, 16, (36,)), (37, 16, (37,)),
        # few rows, more columns: multiplying warps look up codes
        (38, 16, (38,)), (39, 16, (39,)), (40, 16, (40,)), (41, 16, (41,)),
        # more rows, one chunk: by wgmma, the weight as it is stored
        (42, 16, (42,)), (43, 16, (43,)), (44, 16, (44,)), (45, 16, (45,)), (46, 16, (46,)),
        (47, 16, (47,)), (48, 16, (48,)), (49, 16, (49,)),
        # the weight is dequantized first; a long reduction: split-K, a CTA for each tile and chunk
        (50, 16, ("quantized_datascales", 50, "reduce")),
        (51, 16, ("quantized_datascales", 51, "reduce")),
        # the weight is dequantized first; many rows, by wgmma
        (52, 16, ("quantized_datascales", 52)), (53, 16, ("quantized_datascales", 53)),
        (54, 16, ("quantized_datascales", 54)), (55, 16, ("quantized_datascales", 55)),
        (56, 16, ("quantized_datascales", 56)), (57, 16, ("quantized_datascales", 57)),
        (58, 16, ("quantized_datascales", 58)),
        # the weight is dequantized first; many rows, by mma
        (59, 16, ("quantized_datascales", 59)), (60, 16, ("quantized_datascales", 60)),
        (61, 16, ("quantized_datascales", 61)),
        # the weight is dequantized first; operands not aligned to 16 bytes
        (62, 4, ("quantized_datascales", 62)),
        # the weight is dequantized first; everything else: any size, alignment and plan
        (63, 0, ("quantized_datascales", 63)),
    ),
    "quantized_nn_chunks_half_tc": (
        # few outputs: split-K, a CTA for each tile and chunk
        (0, 16, (0, "reduce")), (1, 16, (1, "reduce")), (2, 16, (2, "reduce")),
        # few rows: helper warps decode the weight, which is read once
        (3, 16, (3,)), (4, 16, (4,)), (5, 16, (5,)), (6, 16, (6,)), (7, 0, (7,)), (8, 0, (8,)),
        # short reductions: several CTAs an SM
        (9, 0, (9,)), (10, 0, (10,)),
        # few rows, more columns: multiplying warps look up codes
        (11, 16, (11,)), (12, 16, (12,)),
        # more rows, one chunk: by wgmma, the weight as it is stored
        (13, 16, (13,)), (14, 16, (14,)), (15, 16, (15,)), (16, 16, (16,)), (17, 16, (17,)),
        (18, 16, (18,)), (19, 16, (19,)),
        # more rows, several chunks: by wgmma
        (20, 16, (20,)), (21, 16, (21,)), (22, 16, (22,)), (23, 16, (23,)), (24, 16, (24,)),
        # the weight is dequantized first; a long reduction: split-K, a CTA for each tile and chunk
        (25, 16, ("quantized_datascales", 25, "reduce")),
        (26, 16, ("quantized_datascales", 26, "reduce")),
        # the weight is dequantized first; A not aligned to 16 bytes: copied first
        (27, 0, ("quantized_datascales", "realign_a", 25, "reduce")),
        (28, 0, ("quantized_datascales", "realign_a", 26, "reduce")),
        # the weight is dequantized first; many rows, by wgmma
        (29, 16, ("quantized_datascales", 29)), (30, 16, ("quantized_datascales", 30)),
        (31, 16, ("quantized_datascales", 31)), (32, 16, ("quantized_datascales", 32)),
        (33, 16, ("quantized_datascales", 33)), (34, 16, ("quantized_datascales", 34)),
        (35, 16, ("quantized_datascales", 35)),
        # the weight is dequantized first; many rows, by mma
        (36, 16, ("quantized_datascales", 36)), (37, 16, ("quantized_datascales", 37)),
        (38, 16, ("quantized_datascales", 38)),
        # the weight is dequantized first; A not aligned to 16 bytes: copied first
        (39, 0, ("quantized_datascales", "realign_a", 29)),
        (40, 0, ("quantized_datascales", "realign_a", 30)),
        (41, 0, ("quantized_datascales", "realign_a", 33)),
        (42, 0, ("quantized_datascales", "realign_a", 35)),
        # the weight is dequantized first; operands not aligned to 16 bytes
        (43, 4, ("quantized_datascales", 43)),
        # the weight is dequantized first; everything else: any size, alignment and plan
        (44, 0, ("quantized_datascales", 44)),
    ),
})
# QUANTIZED_WGMMA: launch, kernel, bk, bm, bn
QUANTIZED_WGMMA = {
    "quantized_nt_chunks_half_tc": (
        (1, "quantized_wgmma_nf4_nt_bf16_64x64x128_1e803c", 128, 64, 64),
        (2, "quantized_wgmma_nf4_nt_bf16_256x128x64_88bb29", 64, 256, 128),
    ),
    "quantized_nn_chunks_half_tc": (
        (0, "quantized_wgmma_nf4_nn_bf16_64x64x128_23c6c1", 128, 64, 64),
        (1, "quantized_wgmma_nf4_nn_bf16_128x128x64_1ece1c", 64, 128, 128),
        (2, "quantized_wgmma_nf4_nn_bf16_256x128x64_78bfd9", 64, 256, 128),
    ),
}
# QUANTIZED_MMA: launch, kernel, slots, bm, bn, c0, bk
QUANTIZED_MMA = {
    "quantized_nt_chunks_half_tc": (
        (3, "quantized_mma_nf4_nt_bf16_8x16x256_94228c", 1, 8, 16, 128, 256),
        (4, "quantized_mma_nf4_nt_bf16_16x16x256_49b158", 1, 16, 16, 128, 256),
        (36, "quantized_mma_nf4_nt_bf16_32x64x64_f7d0f7", 3, 32, 64, 64, 64),
        (37, "quantized_mma_nf4_nt_bf16_64x64x64_f262a7", 2, 64, 64, 64, 64),
    ),
    "quantized_nn_chunks_half_tc": (
        (3, "quantized_mma_nf4_nn_bf16_8x32x256_20839a", 1, 8, 32, 128, 256),
        (5, "quantized_mma_nf4_nn_bf16_16x32x256_9dfc58", 1, 16, 32, 128, 256),
        (7, "quantized_mma_nf4_nn_bf16_16x32x256_b17108", 1, 16, 32, 128, 256),
        (9, "quantized_mma_nf4_nn_bf16_32x64x64_765103", 3, 32, 64, 64, 64),
        (10, "quantized_mma_nf4_nn_bf16_64x64x64_cc384b", 2, 64, 64, 64, 64),
    ),
}
# QUANTIZED_SKINNY: launch, kernel, slots, archs, bm, bn, most_chunks, bk, chunks_each
QUANTIZED_SKINNY = {
    "quantized_nt_chunks_half_tc": (
        (5, "quantized_skinny_nf4_nt_bf16_8x64x256_554a11", 2, SOME_1, 8, 64, 1, 256, 1),
        (6, "quantized_skinny_nf4_nt_bf16_8x64x128_054940", 2, SOME_1, 8, 64, 1, 128, 1),
        (7, "quantized_skinny_nf4_nt_bf16_8x64x256_fc693b", 1, SOME_2, 8, 64, 2, 256, 2),
        (8, "quantized_skinny_nf4_nt_bf16_8x32x256_dea620", 1, SOME_2, 8, 32, 3, 256, 3),
        (9, "quantized_skinny_nf4_nt_bf16_8x32x128_a87d7a", 1, SOME_1, 8, 32, 3, 128, 3),
        (10, "quantized_skinny_nf4_nt_bf16_8x32x256_be618f", 1, SOME_2, 8, 32, 8, 256, 4),
        (11, "quantized_skinny_nf4_nt_bf16_8x32x128_fade9b", 1, SOME_2, 8, 32, 8, 128, 4),
        (12, "quantized_skinny_nf4_nt_bf16_8x32x256_3876f2", 1, SOME_2, 8, 32, 10, 256, 5),
        (13, "quantized_skinny_nf4_nt_bf16_8x16x256_7da4ca", 1, SOME_2, 8, 16, 8, 256, 8),
        (14, "quantized_skinny_nf4_nt_bf16_16x64x256_f9573c", 2, SOME_1, 16, 64, 1, 256, 1),
        (15, "quantized_skinny_nf4_nt_bf16_16x64x128_6169af", 2, SOME_1, 16, 64, 1, 128, 1),
        (16, "quantized_skinny_nf4_nt_bf16_16x64x256_e5e4f7", 1, SOME_2, 16, 64, 2, 256, 2),
        (17, "quantized_skinny_nf4_nt_bf16_16x64x256_7cff5f", 1, SOME_2, 16, 64, 3, 256, 3),
        (18, "quantized_skinny_nf4_nt_bf16_16x64x128_03bc4c", 1, SOME_2, 16, 64, 3, 128, 3),
        (19, "quantized_skinny_nf4_nt_bf16_16x32x256_9a577a", 1, SOME_2, 16, 32, 8, 256, 4),
        (20, "quantized_skinny_nf4_nt_bf16_16x32x128_3ff266", 1, SOME_2, 16, 32, 10, 128, 5),
    ),
}
# QUANTIZED_HELD: launch, kernel, slots, bm, bn, bk
QUANTIZED_HELD = {
    "quantized_nt_chunks_half_tc": (
        (21, "quantized_held_nf4_nt_bf16_32x128x128_72e2b5", 1, 32, 128, 128),
        (22, "quantized_held_nf4_nt_bf16_64x64x128_3947c7", 2, 64, 64, 128),
        (23, "quantized_held_nf4_nt_bf16_64x192x128_c4709b", 1, 64, 192, 128),
        (24, "quantized_held_nf4_nt_bf16_128x128x128_0e469e", 1, 128, 128, 128),
        (25, "quantized_held_nf4_nt_bf16_192x192x64_a0697d", 1, 192, 192, 64),
        (26, "quantized_held_nf4_nt_bf16_240x192x64_bcfeea", 1, 240, 192, 64),
    ),
}
# QUANTIZED_HELD1: launch, kernel, slots, bm, bn, bk
QUANTIZED_HELD1 = {
    "quantized_nt_chunks_half_tc": (
        (27, "quantized_held_nf4_nt_bf16_32x128x128_155b18", 1, 32, 128, 128),
        (28, "quantized_held_nf4_nt_bf16_32x192x128_6061c6", 1, 32, 192, 128),
        (29, "quantized_held_nf4_nt_bf16_64x64x128_cd36a3", 2, 64, 64, 128),
        (30, "quantized_held_nf4_nt_bf16_64x192x128_ef7f03", 1, 64, 192, 128),
        (31, "quantized_held_nf4_nt_bf16_128x128x128_f143c0", 1, 128, 128, 128),
        (32, "quantized_held_nf4_nt_bf16_128x192x128_4bf9ec", 1, 128, 192, 128),
        (33, "quantized_held_nf4_nt_bf16_192x192x64_d9d274", 1, 192, 192, 64),
        (34, "quantized_held_nf4_nt_bf16_240x192x64_279fc7", 1, 240, 192, 64),
        (35, "quantized_held_nf4_nt_bf16_256x128x64_f0c98c", 1, 256, 128, 64),
    ),
}
# QUANTIZED_PAIRS: launch, kernel, archs, bm, bn, c0, bk
QUANTIZED_PAIRS = {
    "quantized_nt_chunks_half_tc": (
        (38, "quantized_pairs_nf4_nt_bf16_8x64x256_08fd58", SOME_2, 8, 64, 128, 256),
        (39, "quantized_pairs_nf4_nt_bf16_8x112x256_e77b30", SOME_2, 8, 112, 128, 256),
        (40, "quantized_pairs_nf4_nt_bf16_16x32x256_a44f32", SOME_2, 16, 32, 128, 256),
        (41, "quantized_pairs_nf4_nt_bf16_16x64x256_107cbd", SOME_2, 16, 64, 128, 256),
    ),
    "quantized_nn_chunks_half_tc": (
        (4, "quantized_mma_nf4_nn_bf16_8x32x256_5d154d", SOME_3, 8, 32, 128, 256),
        (6, "quantized_mma_nf4_nn_bf16_32x32x256_0555e7", SOME_3, 32, 32, 64, 256),
        (8, "quantized_mma_nf4_nn_bf16_8x32x256_50f558", SOME_3, 8, 32, 128, 256),
        (11, "quantized_pairs_nf4_nn_bf16_8x64x256_b38770", SOME_2, 8, 64, 128, 256),
        (12, "quantized_pairs_nf4_nn_bf16_8x128x128_16fa31", SOME_2, 8, 128, 128, 128),
    ),
}
# QUANTIZED_WGMMA1: launch, kernel, bm, bn, bk
QUANTIZED_WGMMA1 = {
    "quantized_nt_chunks_half_tc": (
        (42, "quantized_wgmma_nf4_nt_bf16_64x32x128_852092", 64, 32, 128),
        (43, "quantized_wgmma_nf4_nt_bf16_64x64x128_1f47c5", 64, 64, 128),
        (44, "quantized_wgmma_nf4_nt_bf16_64x128x128_617f60", 64, 128, 128),
        (45, "quantized_wgmma_nf4_nt_bf16_128x64x128_10a2e1", 128, 64, 128),
        (46, "quantized_wgmma_nf4_nt_bf16_128x96x128_568fa4", 128, 96, 128),
        (47, "quantized_wgmma_nf4_nt_bf16_128x128x64_a1d5eb", 128, 128, 64),
        (48, "quantized_wgmma_nf4_nt_bf16_192x128x64_5801b6", 192, 128, 64),
        (49, "quantized_wgmma_nf4_nt_bf16_256x128x64_781942", 256, 128, 64),
    ),
    "quantized_nn_chunks_half_tc": (
        (13, "quantized_wgmma_nf4_nn_bf16_64x32x128_305f85", 64, 32, 128),
        (14, "quantized_wgmma_nf4_nn_bf16_64x64x128_f60c6a", 64, 64, 128),
        (15, "quantized_wgmma_nf4_nn_bf16_64x128x128_88534c", 64, 128, 128),
        (16, "quantized_wgmma_nf4_nn_bf16_128x64x128_915fb3", 128, 64, 128),
        (17, "quantized_wgmma_nf4_nn_bf16_128x128x64_b56e0a", 128, 128, 64),
        (18, "quantized_wgmma_nf4_nn_bf16_192x128x64_6fb911", 192, 128, 64),
        (19, "quantized_wgmma_nf4_nn_bf16_256x128x64_873cbd", 256, 128, 64),
    ),
}
# WGMMA: launch, kernel, bm, c0, c1
WGMMA = {
    "quantized_nt_chunks_half_tc": (
        (50, "wgmma_nt_bf16_128x128x64_4f4a42", 128, 16384, 512),
        (51, "wgmma_nt_bf16_64x64x64_66a4c6", 64, 4096, 256),
    ),
    "quantized_nn_chunks_half_tc": (
        (25, "wgmma_nn_bf16_128x128x64_a00929", 128, 16384, 512),
        (26, "wgmma_nn_bf16_64x64x64_97b654", 64, 4096, 256),
    ),
}
# WGMMA1: launch, kernel
WGMMA1 = {
    "quantized_nt_chunks_half_tc": ((52, "wgmma_nt_bf16_128x256x64_95ec44"),),
    "quantized_nn_chunks_half_tc": ((29, "wgmma_nn_bf16_128x256x64_269d28"),),
}
# WGMMA2: launch, kernel, bm, bn
WGMMA2 = {
    "quantized_nt_chunks_half_tc": (
        (53, "wgmma_nt_bf16_128x256x64_3dd73c", 128, 256),
        (55, "wgmma_nt_bf16_128x224x64_2d6b5a", 128, 224),
        (56, "wgmma_nt_bf16_128x128x64_798d11", 128, 128),
        (57, "wgmma_nt_bf16_128x64x64_2d7408", 128, 64),
        (58, "wgmma_nt_bf16_64x64x64_a71b86", 64, 64),
    ),
    "quantized_nn_chunks_half_tc": (
        (30, "wgmma_nn_bf16_128x256x64_8ef526", 128, 256),
        (32, "wgmma_nn_bf16_128x224x64_f0d83a", 128, 224),
        (33, "wgmma_nn_bf16_128x128x64_25492e", 128, 128),
        (34, "wgmma_nn_bf16_128x64x64_f988ea", 128, 64),
        (35, "wgmma_nn_bf16_64x64x64_06ffad", 64, 64),
    ),
}
# WGMMA3: launch, kernel
WGMMA3 = {
    "quantized_nt_chunks_half_tc": ((54, "wgmma_nt_bf16_128x192x64_bb9c5c"),),
    "quantized_nn_chunks_half_tc": ((31, "wgmma_nn_bf16_128x192x64_1b1ed2"),),
}
# MMA: launch, kernel, slots, bm, c0, c1
MMA = {
    "quantized_nt_chunks_half_tc": (
        (59, "mma_nt_bf16_64x64x64_25611e", 3, 64, 4096, 256),
        (61, "mma_nt_bf16_128x128x64_d2c5a0", 1, 128, 16384, 512),
    ),
    "quantized_nn_chunks_half_tc": (
        (36, "mma_nn_bf16_64x64x64_fd998b", 3, 64, 4096, 256),
        (38, "mma_nn_bf16_128x128x64_5411be", 1, 128, 16384, 512),
    ),
}
# MMA1: launch, kernel
MMA1 = {
    "quantized_nt_chunks_half_tc": ((60, "mma_nt_bf16_128x128x64_c17b3f"),),
    "quantized_nn_chunks_half_tc": ((37, "mma_nn_bf16_128x128x64_f0d61c"),),
}
# MMA2: launch, kernel
MMA2 = {
    "quantized_nt_chunks_half_tc": ((62, "mma_nt_bf16_128x64x64_797e5c"),),
    "quantized_nn_chunks_half_tc": ((43, "mma_nn_bf16_128x64x64_d4d82b"),),
}
# MMA3: launch, kernel
MMA3 = {
    "quantized_nt_chunks_half_tc": ((63, "mma_nt_bf16_64x64x32_bf4a05"),),
    "quantized_nn_chunks_half_tc": ((44, "mma_nn_bf16_64x64x32_11f8f0"),),
}
# QUANTIZED_WGMMA2: launch, kernel, bk, bm, bn
QUANTIZED_WGMMA2 = {
    "quantized_nn_chunks_half_tc": (
        (20, "quantized_wgmma_nf4_nn_bf16_64x32x128_4961c1", 128, 64, 32),
        (21, "quantized_wgmma_nf4_nn_bf16_64x64x128_615bac", 128, 64, 64),
        (22, "quantized_wgmma_nf4_nn_bf16_64x128x128_b90d66", 128, 64, 128),
        (23, "quantized_wgmma_nf4_nn_bf16_128x64x128_b00b96", 128, 128, 64),
        (24, "quantized_wgmma_nf4_nn_bf16_128x128x64_38c73d", 64, 128, 128),
    ),
}


def candidates(
    table: str, arch: str, m: int, n: int, k: int, sms: int, align_a: int, time: Time,
) -> Iterator[Candidate]:
    """Yields the routes that serve a problem, with predicted times."""
    u, v = {
        "quantized_nt_chunks_half_tc": (n, k),
        "quantized_nn_chunks_half_tc": (k, n),
    }[table]
    chunk = max(1, min(k, k if k <= 4096 else -(-k // -(-k // 3072) // 128) * 128))
    chunks = -(-k // chunk)
    fitting = ROUTES.fitting(table, align_a)
    launches: Launches = {}
    operands = m * k * 2 + n * k * 9 // 16
    stores = chunks * m * n * 4
    tiles_8x16 = -(-m // 8) * -(-n // 16)
    ctas = tiles_8x16 * chunks
    if (
        table == "quantized_nt_chunks_half_tc" and 0 in fitting and ctas <= 2147483647
        and stores <= 268435456 and (chunk % 128 == 0 or chunks <= 1)
    ):
        us = time(
            "quantized_mma_nf4_nt_bf16_8x16x256_c618b6", "mma", 1, sms, ctas, -(-chunk // 256),
            chunk * 128, -(-n // 16) * (m * k * 2) + -(-m // 8) * (n * k * 9 // 16), operands,
            stores,
        )
        launches[0] = us, "quantized_mma_nf4_nt_bf16_8x16x256_c618b6", ctas, {"workspace": stores}
    stores1 = m * n * 2
    ctas = -(-(m * n) // 512)
    if "reduce" in fitting and stores <= 268435456 and ctas <= 2147483647:
        us = time(
            "reduce_bf16_128x4_f3bd9b", "fma", 8, sms, ctas, -(-chunks // 8), 0, stores, stores,
            stores1,
        )
        launches["reduce"] = us, "reduce_bf16_128x4_f3bd9b", ctas, {"workspace": stores}
    for launch, kernel, bk, bm, bn in fitting.rows(QUANTIZED_WGMMA) if arch in SOME_0 else ():
        tiles = -(-m // bm) * -(-n // bn)
        if (
            (chunks <= 1 or chunk % bk == 0) and stores <= 268435456 and m + bm <= 2147483647
            and n + bn <= 2147483647 and k + bk <= 2147483647 and tiles * chunks + sms <= 4294967295
        ):
            us = time(
                kernel, "wgmma", 1, sms, tiles * chunks, -(-chunk // bk), chunk * (bm * bn),
                -(-n // bn) * (m * k * 2) + -(-m // bm) * (n * k * 9 // 16), operands, stores,
            )
            launches[launch] = us, kernel, min(tiles * chunks, sms) * 1, {"workspace": stores}
    for launch, kernel, slots, bm, bn, c0, bk in fitting.rows(QUANTIZED_MMA):
        tiles = -(-m // bm) * -(-n // bn)
        if tiles <= 2147483647 and (chunk % c0 == 0 or chunks <= 1):
            us = time(
                kernel, "mma", slots, sms, tiles, -(-k // bk), k * (bm * bn),
                -(-n // bn) * (m * k * 2) + -(-m // bm) * (n * k * 9 // 16), operands, stores1,
            )
            launches[launch] = us, kernel, tiles, {}
    for (
        launch, kernel, slots, archs, bm, bn, most_chunks, bk, chunks_each
    ) in fitting.rows(QUANTIZED_SKINNY):
        tiles = -(-m // bm) * -(-n // bn)
        tiles1 = -(-chunk // bk) * -(-chunks // chunks_each)
        if (
            arch in archs and tiles <= 2147483647 and (chunk % 128 == 0 or chunks <= 1)
            and chunks <= most_chunks
        ):
            us = time(
                kernel, "mma", slots, sms, tiles, tiles1, k * (bm * bn),
                -(-n // bn) * (m * k * 2) + -(-m // bm) * (n * k * 9 // 16), operands, stores1,
            )
            launches[launch] = us, kernel, tiles, {}
    for launch, kernel, slots, bm, bn, bk in fitting.rows(QUANTIZED_HELD) if arch in SOME_0 else ():
        tiles = -(-m // bm) * -(-n // bn)
        if tiles <= 2147483647 and (chunk % 128 == 0 or chunks <= 1) and chunks <= 1:
            us = time(
                kernel, "wgmma", slots, sms, tiles, -(-k // bk), k * (bm * bn),
                -(-n // bn) * (m * k * 2) + -(-m // bm) * (n * k * 9 // 16), operands, stores1,
            )
            launches[launch] = us, kernel, tiles, {}
    for launch, kernel, slots, bm, bn, bk in fitting.rows(QUANTIZED_HELD1):
        tiles = -(-m // bm) * -(-n // bn)
        ctas = tiles * chunks
        if (
            arch in SOME_0 and ctas <= 2147483647 and stores <= 268435456
            and (chunk % 128 == 0 or chunks <= 1)
        ):
            us = time(
                kernel, "wgmma", slots, sms, ctas, -(-chunk // bk), chunk * (bm * bn),
                -(-n // bn) * (m * k * 2) + -(-m // bm) * (n * k * 9 // 16), operands, stores,
            )
            launches[launch] = us, kernel, ctas, {"workspace": stores}
    for launch, kernel, archs, bm, bn, c0, bk in fitting.rows(QUANTIZED_PAIRS):
        tiles = -(-m // bm) * -(-n // bn)
        if arch in archs and tiles <= 2147483647 and (chunk % c0 == 0 or chunks <= 1):
            us = time(
                kernel, "mma", 1, sms, tiles, -(-k // bk), k * (bm * bn),
                -(-n // bn) * (m * k * 2) + -(-m // bm) * (n * k * 9 // 16), operands, stores1,
            )
            launches[launch] = us, kernel, tiles, {}
    for launch, kernel, bm, bn, bk in fitting.rows(QUANTIZED_WGMMA1) if arch in SOME_0 else ():
        tiles = -(-m // bm) * -(-n // bn)
        if (
            chunks <= 1 and m + bm <= 2147483647 and n + bn <= 2147483647 and k + bk <= 2147483647
            and tiles + sms <= 4294967295
        ):
            us = time(
                kernel, "wgmma", 1, sms, tiles, -(-k // bk), k * (bm * bn),
                -(-n // bn) * (m * k * 2) + -(-m // bm) * (n * k * 9 // 16), operands, stores1,
            )
            launches[launch] = us, kernel, min(tiles, sms) * 1, {}
    operands1 = u * -(-v // 64) * 36
    stores2 = u * -(-v // 64) * 128
    pieces_u_v64 = u * -(-v // 64)
    ctas = -(-(pieces_u_v64 * 8) // 1024)
    if "quantized_datascales" in fitting and stores2 <= 1073741824:
        us = time(
            "quantized_nf4_bf16_402bd4", "fma", 8, sms, ctas, 1, 0, operands1, operands1, stores2,
        )
        launches["quantized_datascales"] = (
            us, "quantized_nf4_bf16_402bd4", ctas, {"b_dequantized": stores2},
        )
    operands2 = (m + n) * k * 2
    for launch, kernel, bm, c0, c1 in fitting.rows(WGMMA) if arch in SOME_0 else ():
        tiles = -(-m // bm) * -(-n // bm)
        if (
            (chunk % 64 == 0 or chunks <= 1) and stores <= 268435456 and sms >= 1
            and m + bm <= 2147483647 and n + bm <= 2147483647 and k + 64 <= 2147483647
            and tiles * chunks + sms <= 4294967295
        ):
            us = time(
                kernel, "wgmma", 1, sms, tiles * chunks, -(-chunk // 64), chunk * c0,
                tiles * k * (c1 + (min(k % 16, 1) * bm + min(v % 16, 1) * bm) * 6), operands2,
                stores,
            )
            launches[launch] = us, kernel, min(tiles * chunks, sms) * 1, {"workspace": stores}
    tiles_128x256 = -(-m // 128) * -(-n // 256)
    for launch, kernel in fitting.rows(WGMMA1) if arch in SOME_0 else ():
        if (
            chunks <= 1 and sms >= 1 and m + 128 <= 2147483647 and n + 256 <= 2147483647
            and k + 64 <= 2147483647 and tiles_128x256 + sms <= 4294967295
        ):
            us = time(
                kernel, "wgmma", 1, sms, tiles_128x256, -(-k // 64), k * 32768,
                tiles_128x256 * k * (768 + (min(k % 16, 1) * 128 + min(v % 16, 1) * 256) * 6),
                operands2, stores1,
            )
            launches[launch] = us, kernel, min(tiles_128x256, sms) * 1, {}
    for launch, kernel, bm, bn in fitting.rows(WGMMA2) if arch in SOME_0 else ():
        tiles = -(-m // bm) * -(-n // bn)
        if (
            (chunk % 64 == 0 or chunks <= 1) and sms >= 1 and m + bm <= 2147483647
            and n + bn <= 2147483647 and k + 64 <= 2147483647 and tiles + sms <= 4294967295
        ):
            us = time(
                kernel, "wgmma", 1, sms, tiles, -(-k // 64), k * (bm * bn),
                tiles * k * ((bm + bn) * 2 + (min(k % 16, 1) * bm + min(v % 16, 1) * bn) * 6),
                operands2, stores1,
            )
            launches[launch] = us, kernel, min(tiles, sms) * 1, {}
    tiles_256x192 = -(-m // 256) * -(-n // 192)
    for launch, kernel in fitting.rows(WGMMA3) if arch in SOME_0 else ():
        if (
            (chunk % 64 == 0 or chunks <= 1) and sms >= 2 and m + 256 <= 2147483647
            and n + 192 <= 2147483647 and k + 64 <= 2147483647
            and tiles_256x192 + sms // 2 <= 4294967295
        ):
            us = time(
                kernel, "wgmma", 1, sms, tiles_256x192 * 2, -(-k // 64), k * 24576,
                tiles_256x192 * k * (896 + (min(k % 16, 1) * 256 + min(v % 16, 1) * 192) * 6),
                operands2, stores1,
            )
            launches[launch] = us, kernel, min(tiles_256x192, sms // 2) * 2, {}
    for launch, kernel, slots, bm, c0, c1 in fitting.rows(MMA):
        tiles = -(-m // bm) * -(-n // bm)
        if (chunk % 64 == 0 or chunks <= 1) and tiles <= 2147483647:
            us = time(
                kernel, "mma", slots, sms, tiles, -(-k // 64), k * c0,
                tiles * k * (c1 + (min(k % 16, 1) * bm + min(v % 16, 1) * bm) * 6), operands2,
                stores1,
            )
            launches[launch] = us, kernel, tiles, {}
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    for launch, kernel in fitting.rows(MMA1):
        if chunks <= 1 and tiles_128x128 <= 2147483647:
            us = time(
                kernel, "mma", 2, sms, tiles_128x128, -(-k // 64), k * 16384,
                tiles_128x128 * k * (512 + (min(k % 16, 1) * 128 + min(v % 16, 1) * 128) * 6),
                operands2, stores1,
            )
            launches[launch] = us, kernel, tiles_128x128, {}
    tiles_128x64 = -(-m // 128) * -(-n // 64)
    for launch, kernel in fitting.rows(MMA2) if arch in SOME_3 else ():
        if (chunk % 64 == 0 or chunks <= 1) and tiles_128x64 <= 2147483647:
            us = time(
                kernel, "mma", 1, sms, tiles_128x64, -(-k // 64), k * 8192,
                tiles_128x64 * k * (384 + (min(k % 16, 1) * 128 + min(v % 16, 1) * 64) * 6),
                operands2, stores1,
            )
            launches[launch] = us, kernel, tiles_128x64, {}
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    for launch, kernel in fitting.rows(MMA3):
        if chunk % 32 == 0 or chunks <= 1:
            us = time(
                kernel, "mma", 3, sms, tiles_64x64, -(-k // 32), k * 4096,
                tiles_64x64 * k * (256 + (min(k % 16, 1) * 64 + min(v % 16, 1) * 64) * 6),
                operands2, stores1,
            )
            launches[launch] = us, kernel, min(tiles_64x64, 2147483647), {}
    for launch, kernel, bk, bm, bn in fitting.rows(QUANTIZED_WGMMA2) if arch in SOME_0 else ():
        tiles = -(-m // bm) * -(-n // bn)
        if (
            (chunks <= 1 or chunk % bk == 0) and m + bm <= 2147483647 and n + bn <= 2147483647
            and k + bk <= 2147483647 and tiles + sms <= 4294967295
        ):
            us = time(
                kernel, "wgmma", 1, sms, tiles, -(-k // bk), k * (bm * bn),
                -(-n // bn) * (m * k * 2) + -(-m // bm) * (n * k * 9 // 16), operands, stores1,
            )
            launches[launch] = us, kernel, min(tiles, sms) * 1, {}
    operands3 = 0 + m * -(-k // 8) * 16
    pieces_m_k8 = m * -(-k // 8)
    ctas = -(-pieces_m_k8 // 512)
    if (
        table == "quantized_nn_chunks_half_tc" and "realign_a" in fitting
        and pieces_m_k8 * 16 <= 1073741824
    ):
        us = time(
            "realign_b16x1_69d801", "fma", 8, sms, ctas, 1, 0, operands3, operands3, operands3,
        )
        launches["realign_a"] = us, "realign_b16x1_69d801", ctas, {"a_realigned": pieces_m_k8 * 16}
    yield from fitting.combined(launches)
