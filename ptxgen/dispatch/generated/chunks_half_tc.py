"""Dispatch of NN chunks half tc, NT chunks half tc, TN chunks half tc, TT chunks half tc: products
under the plan 'chunks'.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Launches, Routes, Time

SOME_0 = frozenset(("sm_90",))
SOME_1 = frozenset(("sm_80", "sm_87", "sm_90", "sm_100", "sm_103", "sm_110"))
# ROUTES: route, least align_a, least align_b, launches
ROUTES = Routes({
    "nn_chunks_half_tc": (
        # few rows of few outputs
        (0, 16, 16, (0, "reduce")),
        # a long reduction: a CTA per tile and chunk
        (1, 16, 16, (1, "reduce")), (2, 16, 16, (2, "reduce")), (3, 16, 16, (3, "reduce")),
        (4, 16, 16, (4, "reduce")), (5, 16, 16, (5, "reduce")), (6, 4, 4, (6, "reduce")),
        (7, 4, 4, (7, "reduce")), (8, 0, 0, (8, "reduce")),
        # A off 16 bytes: copied first
        (9, 0, 16, ("realign_a", 1, "reduce")),
        # B off 16 bytes: copied first
        (10, 16, 0, ("realign_b", 1, "reduce")),
        # A and B off 16 bytes: copied first
        (11, 0, 0, ("realign_ab", 1, "reduce")),
        # A off 16 bytes: copied first
        (12, 0, 16, ("realign_a", 2, "reduce")),
        # B off 16 bytes: copied first
        (13, 16, 0, ("realign_b", 2, "reduce")),
        # A and B off 16 bytes: copied first
        (14, 0, 0, ("realign_ab", 2, "reduce")),
        # A off 16 bytes: copied first
        (15, 0, 16, ("realign_a", 3, "reduce")),
        # B off 16 bytes: copied first
        (16, 16, 0, ("realign_b", 3, "reduce")),
        # A and B off 16 bytes: copied first
        (17, 0, 0, ("realign_ab", 3, "reduce")),
        # few rows: the weight streams once
        (18, 16, 16, (18,)), (19, 16, 16, (19,)), (20, 16, 16, (20,)), (21, 16, 16, (21,)),
        (22, 16, 16, (22,)), (23, 16, 16, (23,)), (24, 16, 16, (24,)),
        # many rows, by wgmma
        (25, 16, 16, (25,)), (26, 16, 16, (26,)), (27, 16, 16, (27,)), (28, 16, 16, (28,)),
        (29, 16, 16, (29,)), (30, 16, 16, (30,)), (31, 16, 16, (31,)), (32, 16, 16, (32,)),
        (33, 16, 16, (33,)), (34, 16, 16, (34,)), (35, 16, 16, (35,)), (36, 16, 16, (36,)),
        (37, 16, 16, (37,)), (38, 16, 16, (38,)), (39, 16, 16, (39,)), (40, 16, 16, (40,)),
        (41, 16, 16, (41,)), (42, 16, 16, (42,)), (43, 16, 16, (43,)), (44, 16, 16, (44,)),
        (45, 16, 16, (45,)),
        # many rows, by mma
        (46, 16, 16, (46,)), (47, 16, 16, (47,)), (48, 16, 16, (48,)),
        # A off 16 bytes: copied first
        (49, 0, 16, ("realign_a", 25)),
        # B off 16 bytes: copied first
        (50, 16, 0, ("realign_b", 25)),
        # A and B off 16 bytes: copied first
        (51, 0, 0, ("realign_ab", 25)),
        # A off 16 bytes: copied first
        (52, 0, 16, ("realign_a", 26)),
        # B off 16 bytes: copied first
        (53, 16, 0, ("realign_b", 26)),
        # A and B off 16 bytes: copied first
        (54, 0, 0, ("realign_ab", 26)),
        # A off 16 bytes: copied first
        (55, 0, 16, ("realign_a", 36)),
        # B off 16 bytes: copied first
        (56, 16, 0, ("realign_b", 36)),
        # A and B off 16 bytes: copied first
        (57, 0, 0, ("realign_ab", 36)),
        # A off 16 bytes: copied first
        (58, 0, 16, ("realign_a", 43)),
        # B off 16 bytes: copied first
        (59, 16, 0, ("realign_b", 43)),
        # A and B off 16 bytes: copied first
        (60, 0, 0, ("realign_ab", 43)),
        # A off 16 bytes: copied first
        (61, 0, 16, ("realign_a", 45)),
        # B off 16 bytes: copied first
        (62, 16, 0, ("realign_b", 45)),
        # A and B off 16 bytes: copied first
        (63, 0, 0, ("realign_ab", 45)), (64, 0, 0, ("realign_ab", 47)),
        (65, 0, 0, ("realign_ab", 48)),
        # operands off 16 bytes
        (66, 4, 4, (66,)), (67, 4, 4, (67,)), (68, 0, 0, (68,)),
        # everything else: any size, alignment and plan
        (69, 0, 0, (69,)),
    ),
    "nt_chunks_half_tc": (
        # few rows of few outputs
        (0, 16, 16, (0, "reduce")),
        # a long reduction: a CTA per tile and chunk
        (1, 16, 16, (1, "reduce")), (2, 16, 16, (2, "reduce")), (3, 16, 16, (3, "reduce")),
        (4, 16, 16, (4, "reduce")), (5, 16, 16, (5, "reduce")), (6, 4, 4, (6, "reduce")),
        (7, 4, 4, (7, "reduce")), (8, 0, 0, (8, "reduce")),
        # A and B off 16 bytes: copied first
        (9, 0, 0, ("realign_ab", 1, "reduce")), (10, 0, 0, ("realign_ab", 2, "reduce")),
        (11, 0, 0, ("realign_ab", 3, "reduce")),
        # few rows: the weight streams once
        (12, 16, 16, (12,)), (13, 16, 16, (13,)), (14, 16, 16, (14,)), (15, 16, 16, (15,)),
        (16, 16, 16, (16,)), (17, 16, 16, (17,)),
        # many rows, by wgmma
        (18, 16, 16, (18,)), (19, 16, 16, (19,)), (20, 16, 16, (20,)), (21, 16, 16, (21,)),
        (22, 16, 16, (22,)), (23, 16, 16, (23,)), (24, 16, 16, (24,)), (25, 16, 16, (25,)),
        (26, 16, 16, (26,)), (27, 16, 16, (27,)), (28, 16, 16, (28,)), (29, 16, 16, (29,)),
        (30, 16, 16, (30,)), (31, 16, 16, (31,)), (32, 16, 16, (32,)), (33, 16, 16, (33,)),
        (34, 16, 16, (34,)), (35, 16, 16, (35,)), (36, 16, 16, (36,)), (37, 16, 16, (37,)),
        (38, 16, 16, (38,)),
        # many rows, by mma
        (39, 16, 16, (39,)), (40, 16, 16, (40,)), (41, 16, 16, (41,)),
        # A and B off 16 bytes: copied first
        (42, 0, 0, ("realign_ab", 18)), (43, 0, 0, ("realign_ab", 19)),
        (44, 0, 0, ("realign_ab", 29)), (45, 0, 0, ("realign_ab", 36)),
        (46, 0, 0, ("realign_ab", 38)), (47, 0, 0, ("realign_ab", 40)),
        (48, 0, 0, ("realign_ab", 41)),
        # operands off 16 bytes
        (49, 4, 4, (49,)), (50, 4, 4, (50,)), (51, 4, 4, (51,)), (52, 0, 0, (52,)),
        # everything else: any size, alignment and plan
        (53, 0, 0, (53,)),
    ),
    "tn_chunks_half_tc": (
        # few rows of few outputs
        (0, 16, 16, (0, "reduce")),
        # a long reduction: a CTA per tile and chunk
        (1, 16, 16, (1, "reduce")), (2, 16, 16, (2, "reduce")), (3, 16, 16, (3, "reduce")),
        (4, 16, 16, (4, "reduce")), (5, 16, 16, (5, "reduce")), (6, 4, 4, (6, "reduce")),
        (7, 0, 0, (7, "reduce")),
        # A off 16 bytes: copied first
        (8, 0, 16, ("realign_a", 1, "reduce")),
        # B off 16 bytes: copied first
        (9, 16, 0, ("realign_b", 1, "reduce")),
        # A and B off 16 bytes: copied first
        (10, 0, 0, ("realign_ab", 1, "reduce")),
        # A off 16 bytes: copied first
        (11, 0, 16, ("realign_a", 2, "reduce")),
        # B off 16 bytes: copied first
        (12, 16, 0, ("realign_b", 2, "reduce")),
        # A and B off 16 bytes: copied first
        (13, 0, 0, ("realign_ab", 2, "reduce")),
        # A off 16 bytes: copied first
        (14, 0, 16, ("realign_a", 3, "reduce")),
        # B off 16 bytes: copied first
        (15, 16, 0, ("realign_b", 3, "reduce")),
        # A and B off 16 bytes: copied first
        (16, 0, 0, ("realign_ab", 3, "reduce")),
        # few rows: the weight streams once
        (17, 16, 16, (17,)), (18, 16, 16, (18,)), (19, 16, 16, (19,)), (20, 16, 16, (20,)),
        (21, 16, 16, (21,)), (22, 16, 16, (22,)),
        # many rows, by wgmma
        (23, 16, 16, (23,)), (24, 16, 16, (24,)), (25, 16, 16, (25,)), (26, 16, 16, (26,)),
        (27, 16, 16, (27,)), (28, 16, 16, (28,)), (29, 16, 16, (29,)), (30, 16, 16, (30,)),
        (31, 16, 16, (31,)), (32, 16, 16, (32,)), (33, 16, 16, (33,)), (34, 16, 16, (34,)),
        (35, 16, 16, (35,)), (36, 16, 16, (36,)), (37, 16, 16, (37,)), (38, 16, 16, (38,)),
        (39, 16, 16, (39,)), (40, 16, 16, (40,)),
        # many rows, by mma
        (41, 16, 16, (41,)), (42, 16, 16, (42,)), (43, 16, 16, (43,)),
        # A off 16 bytes: copied first
        (44, 0, 16, ("realign_a", 23)),
        # B off 16 bytes: copied first
        (45, 16, 0, ("realign_b", 23)),
        # A and B off 16 bytes: copied first
        (46, 0, 0, ("realign_ab", 23)),
        # A off 16 bytes: copied first
        (47, 0, 16, ("realign_a", 24)),
        # B off 16 bytes: copied first
        (48, 16, 0, ("realign_b", 24)),
        # A and B off 16 bytes: copied first
        (49, 0, 0, ("realign_ab", 24)),
        # A off 16 bytes: copied first
        (50, 0, 16, ("realign_a", 32)),
        # B off 16 bytes: copied first
        (51, 16, 0, ("realign_b", 32)),
        # A and B off 16 bytes: copied first
        (52, 0, 0, ("realign_ab", 32)),
        # A off 16 bytes: copied first
        (53, 0, 16, ("realign_a", 38)),
        # B off 16 bytes: copied first
        (54, 16, 0, ("realign_b", 38)),
        # A and B off 16 bytes: copied first
        (55, 0, 0, ("realign_ab", 38)),
        # A off 16 bytes: copied first
        (56, 0, 16, ("realign_a", 40)),
        # B off 16 bytes: copied first
        (57, 16, 0, ("realign_b", 40)),
        # A and B off 16 bytes: copied first
        (58, 0, 0, ("realign_ab", 40)), (59, 0, 0, ("realign_ab", 42)),
        (60, 0, 0, ("realign_ab", 43)),
        # operands off 16 bytes
        (61, 4, 16, (61,)), (62, 4, 4, (62,)), (63, 0, 0, (63,)),
        # everything else: any size, alignment and plan
        (64, 0, 0, (64,)),
    ),
    "tt_chunks_half_tc": (
        # few rows: the weight streams once
        (0, 16, 16, (0,)),
        # many rows, by wgmma
        (1, 16, 16, (1,)), (2, 16, 16, (2,)),
        # many rows, by mma
        (3, 16, 16, (3,)),
        # operands off 16 bytes
        (4, 4, 16, (4,)), (5, 0, 0, (5,)),
        # everything else: any size, alignment and plan
        (6, 0, 0, (6,)),
    ),
})
# MMA: launch, kernel, slots, bm, bn, bk
MMA = {
    "nn_chunks_half_tc": (
        (0, "mma_nn_bf16_16x32x128_45c9e9", 1, 16, 32, 128),
        (4, "mma_nn_bf16_64x64x128_1f5afd", 2, 64, 64, 128),
        (5, "mma_nn_bf16_128x128x64_d74e2e", 2, 128, 128, 64),
        (6, "mma_nn_bf16_64x64x64_bc65e9", 2, 64, 64, 64),
        (7, "mma_nn_bf16_64x32x64_ca7871", 4, 64, 32, 64),
        (8, "mma_nn_bf16_64x64x32_721827", 4, 64, 64, 32),
    ),
    "nt_chunks_half_tc": (
        (0, "mma_nt_bf16_16x32x128_20a9c5", 1, 16, 32, 128),
        (4, "mma_nt_bf16_64x64x128_1d04c7", 2, 64, 64, 128),
        (5, "mma_nt_bf16_128x128x64_59583c", 2, 128, 128, 64),
        (6, "mma_nt_bf16_64x64x64_572e71", 2, 64, 64, 64),
        (7, "mma_nt_bf16_64x32x64_63418f", 4, 64, 32, 64),
        (8, "mma_nt_bf16_64x64x32_81c2b9", 4, 64, 64, 32),
    ),
    "tn_chunks_half_tc": (
        (0, "mma_tn_bf16_16x32x128_46a2ec", 1, 16, 32, 128),
        (4, "mma_tn_bf16_64x64x128_e2c752", 2, 64, 64, 128),
        (5, "mma_tn_bf16_128x128x64_f6b43c", 2, 128, 128, 64),
        (6, "mma_tn_bf16_64x32x64_35eed5", 4, 64, 32, 64),
        (7, "mma_tn_bf16_64x64x32_1dbb01", 4, 64, 64, 32),
    ),
}
# WGMMA: launch, kernel, bm
WGMMA = {
    "nn_chunks_half_tc": (
        (1, "wgmma_nn_bf16_192x192x64_a0d89a", 192),
        (2, "wgmma_nn_bf16_128x128x64_f64026", 128),
        (3, "wgmma_nn_bf16_64x64x64_168fdf", 64),
    ),
    "nt_chunks_half_tc": (
        (1, "wgmma_nt_bf16_192x192x64_3adde2", 192),
        (2, "wgmma_nt_bf16_128x128x64_40a9ac", 128),
        (3, "wgmma_nt_bf16_64x64x64_15f6e1", 64),
    ),
    "tn_chunks_half_tc": (
        (1, "wgmma_tn_bf16_192x192x64_c93747", 192),
        (2, "wgmma_tn_bf16_128x128x64_6d9ab7", 128),
        (3, "wgmma_tn_bf16_64x64x64_151bd5", 64),
    ),
}
# MMA1: launch, kernel, c0, bm, bn, bk
MMA1 = {
    "nn_chunks_half_tc": (
        (18, "mma_nn_bf16_8x64x128_0b0b35", 64, 8, 64, 128),
        (23, "mma_nn_bf16_32x64x128_868388", 128, 32, 64, 128),
        (24, "mma_nn_bf16_64x128x64_0a56ed", 64, 64, 128, 64),
        (66, "mma_nn_bf16_128x64x64_c213a3", 64, 128, 64, 64),
    ),
    "nt_chunks_half_tc": (
        (16, "mma_nt_bf16_32x64x128_9edc63", 128, 32, 64, 128),
        (17, "mma_nt_bf16_64x128x64_4da3e2", 64, 64, 128, 64),
        (50, "mma_nt_bf16_128x64x64_675ed6", 64, 128, 64, 64),
    ),
    "tn_chunks_half_tc": (
        (17, "mma_tn_bf16_8x64x128_b577d1", 64, 8, 64, 128),
        (21, "mma_tn_bf16_32x64x128_272387", 128, 32, 64, 128),
        (22, "mma_tn_bf16_64x128x64_4765ee", 64, 64, 128, 64),
    ),
}
# MMA2: launch, kernel, slots, c0, bm, bn, bk
MMA2 = {
    "nn_chunks_half_tc": (
        (19, "mma_nn_bf16_8x32x128_d6cffc", 1, 128, 8, 32, 128),
        (20, "mma_nn_bf16_16x32x128_d40c24", 1, 128, 16, 32, 128),
        (21, "mma_nn_bf16_16x64x128_4f47f4", 1, 128, 16, 64, 128),
        (22, "mma_nn_bf16_32x32x128_5486ce", 1, 128, 32, 32, 128),
        (46, "mma_nn_bf16_64x64x64_42490e", 3, 64, 64, 64, 64),
        (48, "mma_nn_bf16_128x128x64_e43a98", 1, 64, 128, 128, 64),
        (67, "mma_nn_bf16_16x32x128_0f657a", 1, 128, 16, 32, 128),
        (68, "mma_nn_bf16_16x32x128_f8dcb3", 1, 128, 16, 32, 128),
    ),
    "nt_chunks_half_tc": (
        (12, "mma_nt_bf16_8x16x512_f13405", 1, 128, 8, 16, 512),
        (13, "mma_nt_bf16_16x32x128_bee8dd", 1, 128, 16, 32, 128),
        (14, "mma_nt_bf16_16x64x128_c1d35c", 1, 128, 16, 64, 128),
        (15, "mma_nt_bf16_32x32x128_15f4e3", 1, 128, 32, 32, 128),
        (39, "mma_nt_bf16_64x64x64_93d7f2", 3, 64, 64, 64, 64),
        (41, "mma_nt_bf16_128x128x64_848ada", 1, 64, 128, 128, 64),
        (49, "mma_nt_bf16_32x32x64_fd42f0", 3, 64, 32, 32, 64),
        (51, "mma_nt_bf16_16x32x128_23017e", 1, 128, 16, 32, 128),
        (52, "mma_nt_bf16_16x32x128_a132ec", 1, 128, 16, 32, 128),
    ),
    "tn_chunks_half_tc": (
        (18, "mma_tn_bf16_8x32x128_7c493a", 1, 128, 8, 32, 128),
        (19, "mma_tn_bf16_16x32x128_967392", 1, 128, 16, 32, 128),
        (20, "mma_tn_bf16_32x32x128_e84b71", 1, 128, 32, 32, 128),
        (41, "mma_tn_bf16_64x64x64_f7c4fc", 3, 64, 64, 64, 64),
        (43, "mma_tn_bf16_128x128x64_9e1b2c", 1, 64, 128, 128, 64),
        (61, "mma_tn_bf16_8x32x256_9756ff", 1, 128, 8, 32, 256),
        (62, "mma_tn_bf16_16x32x128_c2d4c1", 1, 128, 16, 32, 128),
        (63, "mma_tn_bf16_16x32x128_2dc9f7", 1, 128, 16, 32, 128),
    ),
    "tt_chunks_half_tc": (
        (0, "mma_tt_bf16_32x32x128_c8a03e", 1, 128, 32, 32, 128),
        (4, "mma_tt_bf16_8x32x256_3b9a3e", 1, 128, 8, 32, 256),
        (5, "mma_tt_bf16_16x32x128_6726d1", 1, 128, 16, 32, 128),
    ),
}
# WGMMA1: launch, kernel, bm, bn
WGMMA1 = {
    "nn_chunks_half_tc": (
        (25, "wgmma_nn_bf16_128x256x64_86d2ac", 128, 256),
        (30, "wgmma_nn_bf16_192x160x64_5c1b8b", 192, 160),
    ),
    "nt_chunks_half_tc": (
        (18, "wgmma_nt_bf16_128x256x64_b35b38", 128, 256),
        (23, "wgmma_nt_bf16_192x160x64_f20a7b", 192, 160),
    ),
    "tn_chunks_half_tc": (
        (23, "wgmma_tn_bf16_128x256x64_db9343", 128, 256),
        (28, "wgmma_tn_bf16_192x128x64_7cc8a1", 192, 128),
    ),
}
# WGMMA2: launch, kernel, bk, bm, bn
WGMMA2 = {
    "nn_chunks_half_tc": (
        (26, "wgmma_nn_bf16_128x256x64_2c5b0f", 64, 128, 256),
        (28, "wgmma_nn_bf16_192x192x64_b5a214", 64, 192, 192),
        (31, "wgmma_nn_bf16_192x160x64_6c54d8", 64, 192, 160),
        (33, "wgmma_nn_bf16_128x224x64_337f7e", 64, 128, 224),
        (34, "wgmma_nn_bf16_128x176x64_5c5403", 64, 128, 176),
        (36, "wgmma_nn_bf16_128x128x64_f67370", 64, 128, 128),
        (38, "wgmma_nn_bf16_128x112x64_6ae37f", 64, 128, 112),
        (39, "wgmma_nn_bf16_64x256x64_d96fd5", 64, 64, 256),
        (40, "wgmma_nn_bf16_128x64x64_0dad98", 64, 128, 64),
        (41, "wgmma_nn_bf16_64x128x64_53820a", 64, 64, 128),
        (43, "wgmma_nn_bf16_64x64x64_2ff8a4", 64, 64, 64),
        (44, "wgmma_nn_bf16_64x32x128_13bd40", 128, 64, 32),
        (45, "wgmma_nn_bf16_64x16x128_a58e3f", 128, 64, 16),
    ),
    "nt_chunks_half_tc": (
        (19, "wgmma_nt_bf16_128x256x64_4bc648", 64, 128, 256),
        (21, "wgmma_nt_bf16_192x192x64_0ee3ea", 64, 192, 192),
        (24, "wgmma_nt_bf16_192x160x64_3104b8", 64, 192, 160),
        (26, "wgmma_nt_bf16_128x224x64_ad8f66", 64, 128, 224),
        (27, "wgmma_nt_bf16_128x176x64_218ab3", 64, 128, 176),
        (29, "wgmma_nt_bf16_128x128x64_96a12d", 64, 128, 128),
        (30, "wgmma_nt_bf16_128x112x64_18e25a", 64, 128, 112),
        (31, "wgmma_nt_bf16_64x256x64_d95b86", 64, 64, 256),
        (32, "wgmma_nt_bf16_64x160x64_3d3368", 64, 64, 160),
        (33, "wgmma_nt_bf16_128x64x64_885da7", 64, 128, 64),
        (34, "wgmma_nt_bf16_64x128x64_deac4e", 64, 64, 128),
        (36, "wgmma_nt_bf16_64x64x64_595f63", 64, 64, 64),
        (37, "wgmma_nt_bf16_64x32x128_6d7237", 128, 64, 32),
        (38, "wgmma_nt_bf16_64x16x128_b79a3a", 128, 64, 16),
    ),
    "tn_chunks_half_tc": (
        (24, "wgmma_tn_bf16_128x256x64_6884e0", 64, 128, 256),
        (26, "wgmma_tn_bf16_192x192x64_7ddbb0", 64, 192, 192),
        (30, "wgmma_tn_bf16_128x224x64_a75d05", 64, 128, 224),
        (31, "wgmma_tn_bf16_128x176x64_7a44c4", 64, 128, 176),
        (32, "wgmma_tn_bf16_128x128x64_64c3c2", 64, 128, 128),
        (33, "wgmma_tn_bf16_128x112x64_bcc2a2", 64, 128, 112),
        (34, "wgmma_tn_bf16_64x256x64_79ee06", 64, 64, 256),
        (35, "wgmma_tn_bf16_128x64x64_0c609c", 64, 128, 64),
        (36, "wgmma_tn_bf16_64x128x64_cc0e14", 64, 64, 128),
        (38, "wgmma_tn_bf16_64x64x64_c86b5d", 64, 64, 64),
        (39, "wgmma_tn_bf16_64x32x128_01ed5d", 128, 64, 32),
        (40, "wgmma_tn_bf16_64x16x128_551c14", 128, 64, 16),
    ),
    "tt_chunks_half_tc": (
        (1, "wgmma_tt_bf16_128x128x64_34ebd8", 64, 128, 128),
        (2, "wgmma_tt_bf16_64x64x64_2ab748", 64, 64, 64),
    ),
}
# WGMMA3: launch, kernel, bm, bn, c0
WGMMA3 = {
    "nn_chunks_half_tc": (
        (27, "wgmma_nn_bf16_128x256x64_74f96d", 256, 256, 32768),
        (29, "wgmma_nn_bf16_128x192x64_05a037", 256, 192, 24576),
        (32, "wgmma_nn_bf16_192x128x64_90fdea", 192, 256, 24576),
        (35, "wgmma_nn_bf16_128x160x64_20a7b2", 256, 160, 20480),
        (37, "wgmma_nn_bf16_128x128x64_68c5f8", 256, 128, 16384),
        (42, "wgmma_nn_bf16_64x128x64_f0b5aa", 128, 128, 8192),
    ),
    "nt_chunks_half_tc": (
        (20, "wgmma_nt_bf16_128x256x64_63dcfc", 256, 256, 32768),
        (22, "wgmma_nt_bf16_128x192x64_eb3cc9", 256, 192, 24576),
        (25, "wgmma_nt_bf16_192x128x64_f4af65", 192, 256, 24576),
        (28, "wgmma_nt_bf16_128x160x64_732859", 256, 160, 20480),
        (35, "wgmma_nt_bf16_64x128x64_6a500d", 128, 128, 8192),
    ),
    "tn_chunks_half_tc": (
        (25, "wgmma_tn_bf16_128x256x64_61a00f", 256, 256, 32768),
        (27, "wgmma_tn_bf16_128x192x64_5b5c7f", 256, 192, 24576),
        (29, "wgmma_tn_bf16_192x128x64_0d6f38", 192, 256, 24576),
        (37, "wgmma_tn_bf16_64x128x64_bf5324", 128, 128, 8192),
    ),
}
# MMA3: launch, kernel
MMA3 = {
    "nn_chunks_half_tc": ((47, "mma_nn_bf16_128x128x64_cd5bbc"),),
    "nt_chunks_half_tc": ((40, "mma_nt_bf16_128x128x64_beb296"),),
    "tn_chunks_half_tc": ((42, "mma_tn_bf16_128x128x64_0ec456"),),
    "tt_chunks_half_tc": ((3, "mma_tt_bf16_128x128x64_6e031d"),),
}
# MMA4: launch, kernel
MMA4 = {
    "nn_chunks_half_tc": ((69, "mma_nn_bf16_64x64x32_782949"),),
    "nt_chunks_half_tc": ((53, "mma_nt_bf16_64x64x32_d497a1"),),
    "tn_chunks_half_tc": ((64, "mma_tn_bf16_64x64x32_0acf03"),),
    "tt_chunks_half_tc": ((6, "mma_tt_bf16_64x64x32_80086b"),),
}


def candidates(
    table: str, arch: str, m: int, n: int, k: int, sms: int, align_a: int, align_b: int, time: Time,
) -> Iterator[Candidate]:
    """Yields the routes that serve a problem, with predicted times."""
    u, v, w, x = {
        "nn_chunks_half_tc": (k, n, m, k),
        "nt_chunks_half_tc": (k, k, m, n),
        "tn_chunks_half_tc": (m, n, k, k),
        "tt_chunks_half_tc": (m, k, 0, 0),
    }[table]
    chunk = max(1, min(k, k if k <= 4096 else -(-k // -(-k // 3072) // 128) * 128))
    chunks = -(-k // chunk)
    fitting = ROUTES.fitting(table, align_a, align_b)
    launches: Launches = {}
    operands = (m + n) * k * 2
    stores = chunks * m * n * 4
    for launch, kernel, slots, bm, bn, bk in fitting.rows(MMA):
        tiles = -(-m // bm) * -(-n // bn)
        ctas = tiles * chunks
        if stores <= 268435456 and ctas <= 2147483647:
            us = time(
                kernel, "mma", slots, sms, ctas, -(-chunk // bk), chunk * (bm * bn),
                tiles * k * ((bm + bn) * 2 + (min(u % 16, 1) * bm + min(v % 16, 1) * bn) * 6),
                operands, stores,
            )
            launches[launch] = us, kernel, ctas, {"workspace": stores}
    stores1 = m * n * 2
    ctas = -(-(m * n) // 512)
    if (
        table in ("nn_chunks_half_tc", "nt_chunks_half_tc", "tn_chunks_half_tc")
        and "reduce" in fitting and stores <= 268435456 and ctas <= 2147483647
    ):
        us = time(
            "reduce_bf16_128x4_9cc9ba", "fma", 8, sms, ctas, -(-chunks // 8), 0, stores, stores,
            stores1,
        )
        launches["reduce"] = us, "reduce_bf16_128x4_9cc9ba", ctas, {"workspace": stores}
    for launch, kernel, bm in fitting.rows(WGMMA) if arch in SOME_0 else ():
        tiles = -(-m // bm) * -(-n // bm)
        if (
            (chunk % 64 == 0 or chunks <= 1) and stores <= 268435456 and sms >= 1
            and m + bm <= 2147483647 and n + bm <= 2147483647 and k + 64 <= 2147483647
            and tiles * chunks + sms <= 4294967295
        ):
            us = time(
                kernel, "wgmma", 1, sms, tiles * chunks, -(-chunk // 64), chunk * (bm * bm),
                tiles * k * ((bm + bm) * 2 + (min(u % 16, 1) * bm + min(v % 16, 1) * bm) * 6),
                operands, stores,
            )
            launches[launch] = us, kernel, min(tiles * chunks, sms) * 1, {"workspace": stores}
    operands1 = 0 + w * -(-u // 8) * 16
    pieces_w_u8 = w * -(-u // 8)
    ctas = -(-pieces_w_u8 // 512)
    if (
        table in ("nn_chunks_half_tc", "tn_chunks_half_tc") and "realign_a" in fitting
        and pieces_w_u8 * 16 <= 1073741824
    ):
        us = time(
            "realign_b16x1_7953b4", "fma", 8, sms, ctas, 1, 0, operands1, operands1, operands1,
        )
        launches["realign_a"] = us, "realign_b16x1_7953b4", ctas, {"a_realigned": pieces_w_u8 * 16}
    operands2 = 0 + k * -(-n // 8) * 16
    pieces_k_n8 = k * -(-n // 8)
    ctas = -(-pieces_k_n8 // 512)
    if (
        table in ("nn_chunks_half_tc", "tn_chunks_half_tc") and "realign_b" in fitting
        and pieces_k_n8 * 16 <= 1073741824
    ):
        us = time(
            "realign_b16x1_7953b4", "fma", 8, sms, ctas, 1, 0, operands2, operands2, operands2,
        )
        launches["realign_b"] = us, "realign_b16x1_7953b4", ctas, {"b_realigned": pieces_k_n8 * 16}
    operands3 = 0 + w * -(-u // 8) * 16 + x * -(-v // 8) * 16
    pieces_x_v8 = x * -(-v // 8)
    ctas = -(-pieces_w_u8 // 512) + -(-pieces_x_v8 // 512)
    if (
        table in ("nn_chunks_half_tc", "nt_chunks_half_tc", "tn_chunks_half_tc")
        and "realign_ab" in fitting and pieces_w_u8 * 16 <= 1073741824
        and pieces_x_v8 * 16 <= 1073741824
    ):
        us = time(
            "realign_b16x2_d789c8", "fma", 8, sms, ctas, 1, 0, operands3, operands3, operands3,
        )
        launches["realign_ab"] = (
            us, "realign_b16x2_d789c8", ctas,
            {"a_realigned": pieces_w_u8 * 16, "b_realigned": pieces_x_v8 * 16},
        )
    for launch, kernel, c0, bm, bn, bk in fitting.rows(MMA1) if arch in SOME_1 else ():
        tiles = -(-m // bm) * -(-n // bn)
        if (chunk % c0 == 0 or chunks <= 1) and tiles <= 2147483647:
            us = time(
                kernel, "mma", 1, sms, tiles, -(-k // bk), k * (bm * bn),
                tiles * k * ((bm + bn) * 2 + (min(u % 16, 1) * bm + min(v % 16, 1) * bn) * 6),
                operands, stores1,
            )
            launches[launch] = us, kernel, tiles, {}
    for launch, kernel, slots, c0, bm, bn, bk in fitting.rows(MMA2):
        tiles = -(-m // bm) * -(-n // bn)
        if (chunk % c0 == 0 or chunks <= 1) and tiles <= 2147483647:
            us = time(
                kernel, "mma", slots, sms, tiles, -(-k // bk), k * (bm * bn),
                tiles * k * ((bm + bn) * 2 + (min(u % 16, 1) * bm + min(v % 16, 1) * bn) * 6),
                operands, stores1,
            )
            launches[launch] = us, kernel, tiles, {}
    for launch, kernel, bm, bn in fitting.rows(WGMMA1) if arch in SOME_0 else ():
        tiles = -(-m // bm) * -(-n // bn)
        if (
            chunks <= 1 and sms >= 1 and m + bm <= 2147483647 and n + bn <= 2147483647
            and k + 64 <= 2147483647 and tiles + sms <= 4294967295
        ):
            us = time(
                kernel, "wgmma", 1, sms, tiles, -(-k // 64), k * (bm * bn),
                tiles * k * ((bm + bn) * 2 + (min(u % 16, 1) * bm + min(v % 16, 1) * bn) * 6),
                operands, stores1,
            )
            launches[launch] = us, kernel, min(tiles, sms) * 1, {}
    for launch, kernel, bk, bm, bn in fitting.rows(WGMMA2) if arch in SOME_0 else ():
        tiles = -(-m // bm) * -(-n // bn)
        if (
            (chunk % bk == 0 or chunks <= 1) and sms >= 1 and m + bm <= 2147483647
            and n + bn <= 2147483647 and k + bk <= 2147483647 and tiles + sms <= 4294967295
        ):
            us = time(
                kernel, "wgmma", 1, sms, tiles, -(-k // bk), k * (bm * bn),
                tiles * k * ((bm + bn) * 2 + (min(u % 16, 1) * bm + min(v % 16, 1) * bn) * 6),
                operands, stores1,
            )
            launches[launch] = us, kernel, min(tiles, sms) * 1, {}
    for launch, kernel, bm, bn, c0 in fitting.rows(WGMMA3) if arch in SOME_0 else ():
        tiles = -(-m // bm) * -(-n // bn)
        if (
            (chunk % 64 == 0 or chunks <= 1) and sms >= 2 and m + bm <= 2147483647
            and n + bn <= 2147483647 and k + 64 <= 2147483647 and tiles + sms // 2 <= 4294967295
        ):
            us = time(
                kernel, "wgmma", 1, sms, tiles * 2, -(-k // 64), k * c0,
                tiles * k * ((bm + bn) * 2 + (min(u % 16, 1) * bm + min(v % 16, 1) * bn) * 6),
                operands, stores1,
            )
            launches[launch] = us, kernel, min(tiles, sms // 2) * 2, {}
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    for launch, kernel in fitting.rows(MMA3):
        if chunks <= 1 and tiles_128x128 <= 2147483647:
            us = time(
                kernel, "mma", 2, sms, tiles_128x128, -(-k // 64), k * 16384,
                tiles_128x128 * k * (512 + (min(u % 16, 1) * 128 + min(v % 16, 1) * 128) * 6),
                operands, stores1,
            )
            launches[launch] = us, kernel, tiles_128x128, {}
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    for launch, kernel in fitting.rows(MMA4):
        if chunk % 32 == 0 or chunks <= 1:
            us = time(
                kernel, "mma", 3, sms, tiles_64x64, -(-k // 32), k * 4096,
                tiles_64x64 * k * (256 + (min(u % 16, 1) * 64 + min(v % 16, 1) * 64) * 6), operands,
                stores1,
            )
            launches[launch] = us, kernel, min(tiles_64x64, 2147483647), {}
    yield from fitting.combined(launches)
