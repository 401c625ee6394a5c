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
        # few rows, few outputs: split-K, by mma
        (0, 16, 16, (0, "reduce")),
        # a long reduction: split-K, a CTA for each tile and chunk
        (1, 16, 16, (1, "reduce")), (2, 16, 16, (2, "reduce")), (3, 16, 16, (3, "reduce")),
        (4, 16, 16, (4, "reduce")), (5, 16, 16, (5, "reduce")), (6, 16, 16, (6, "reduce")),
        (7, 16, 16, (7, "reduce")), (8, 16, 16, (8, "reduce")), (9, 4, 4, (9, "reduce")),
        (10, 4, 4, (10, "reduce")), (11, 0, 0, (11, "reduce")),
        # A not aligned to 16 bytes: copied first
        (12, 0, 16, ("realign_a", 1, "reduce")),
        # B not aligned to 16 bytes: copied first
        (13, 16, 0, ("realign_b", 1, "reduce")),
        # A and B not aligned to 16 bytes: copied first
        (14, 0, 0, ("realign_ab", 1, "reduce")),
        # A not aligned to 16 bytes: copied first
        (15, 0, 16, ("realign_a", 2, "reduce")),
        # B not aligned to 16 bytes: copied first
        (16, 16, 0, ("realign_b", 2, "reduce")),
        # A and B not aligned to 16 bytes: copied first
        (17, 0, 0, ("realign_ab", 2, "reduce")),
        # A not aligned to 16 bytes: copied first
        (18, 0, 16, ("realign_a", 3, "reduce")),
        # B not aligned to 16 bytes: copied first
        (19, 16, 0, ("realign_b", 3, "reduce")),
        # A and B not aligned to 16 bytes: copied first
        (20, 0, 0, ("realign_ab", 3, "reduce")),
        # few rows: the weight is read once
        (21, 16, 16, (21,)), (22, 16, 16, (22,)), (23, 16, 16, (23,)), (24, 16, 16, (24,)),
        (25, 16, 16, (25,)), (26, 16, 16, (26,)), (27, 16, 16, (27,)),
        # many rows, by wgmma
        (28, 16, 16, (28,)), (29, 16, 16, (29,)), (30, 16, 16, (30,)), (31, 16, 16, (31,)),
        (32, 16, 16, (32,)), (33, 16, 16, (33,)), (34, 16, 16, (34,)), (35, 16, 16, (35,)),
        (36, 16, 16, (36,)), (37, 16, 16, (37,)), (38, 16, 16, (38,)), (39, 16, 16, (39,)),
        (40, 16, 16, (40,)), (41, 16, 16, (41,)), (42, 16, 16, (42,)), (43, 16, 16, (43,)),
        # more than 64 rows, which tiles of 64 do not divide: by wgmma with swapped operands
        (44, 16, 16, (44,)), (45, 16, 16, (45,)), (46, 16, 16, (46,)), (47, 16, 16, (47,)),
        (48, 16, 16, (48,)), (49, 16, 16, (49,)), (50, 16, 16, (50,)), (51, 16, 16, (51,)),
        (52, 16, 16, (52,)), (53, 16, 16, (53,)), (54, 16, 16, (54,)), (55, 16, 16, (55,)),
        (56, 16, 16, (56,)), (57, 16, 16, (57,)),
        # many rows, by mma
        (58, 16, 16, (58,)), (59, 16, 16, (59,)), (60, 16, 16, (60,)),
        # A not aligned to 16 bytes: copied first
        (61, 0, 16, ("realign_a", 28)),
        # B not aligned to 16 bytes: copied first
        (62, 16, 0, ("realign_b", 28)),
        # A and B not aligned to 16 bytes: copied first
        (63, 0, 0, ("realign_ab", 28)),
        # A not aligned to 16 bytes: copied first
        (64, 0, 16, ("realign_a", 29)),
        # B not aligned to 16 bytes: copied first
        (65, 16, 0, ("realign_b", 29)),
        # A and B not aligned to 16 bytes: copied first
        (66, 0, 0, ("realign_ab", 29)),
        # A not aligned to 16 bytes: copied first
        (67, 0, 16, ("realign_a", 36)),
        # B not aligned to 16 bytes: copied first
        (68, 16, 0, ("realign_b", 36)),
        # A and B not aligned to 16 bytes: copied first
        (69, 0, 0, ("realign_ab", 36)),
        # A not aligned to 16 bytes: copied first
        (70, 0, 16, ("realign_a", 41)),
        # B not aligned to 16 bytes: copied first
        (71, 16, 0, ("realign_b", 41)),
        # A and B not aligned to 16 bytes: copied first
        (72, 0, 0, ("realign_ab", 41)),
        # A not aligned to 16 bytes: copied first
        (73, 0, 16, ("realign_a", 43)),
        # B not aligned to 16 bytes: copied first
        (74, 16, 0, ("realign_b", 43)),
        # A and B not aligned to 16 bytes: copied first
        (75, 0, 0, ("realign_ab", 43)), (76, 0, 0, ("realign_ab", 59)),
        (77, 0, 0, ("realign_ab", 60)),
        # operands not aligned to 16 bytes
        (78, 4, 4, (78,)), (79, 4, 4, (79,)), (80, 0, 0, (80,)),
        # everything else: any size, alignment and plan
        (81, 0, 0, (81,)),
    ),
    "nt_chunks_half_tc": (
        # few rows, few outputs: split-K, by mma
        (0, 16, 16, (0, "reduce")),
        # a long reduction: split-K, a CTA for each tile and chunk
        (1, 16, 16, (1, "reduce")), (2, 16, 16, (2, "reduce")), (3, 16, 16, (3, "reduce")),
        (4, 16, 16, (4, "reduce")), (5, 16, 16, (5, "reduce")), (6, 16, 16, (6, "reduce")),
        (7, 16, 16, (7, "reduce")), (8, 16, 16, (8, "reduce")), (9, 4, 4, (9, "reduce")),
        (10, 4, 4, (10, "reduce")), (11, 0, 0, (11, "reduce")),
        # A and B not aligned to 16 bytes: copied first
        (12, 0, 0, ("realign_ab", 1, "reduce")), (13, 0, 0, ("realign_ab", 2, "reduce")),
        (14, 0, 0, ("realign_ab", 3, "reduce")),
        # few rows: the weight is read once
        (15, 16, 16, (15,)), (16, 16, 16, (16,)), (17, 16, 16, (17,)), (18, 16, 16, (18,)),
        (19, 16, 16, (19,)), (20, 16, 16, (20,)),
        # many rows, by wgmma
        (21, 16, 16, (21,)), (22, 16, 16, (22,)), (23, 16, 16, (23,)), (24, 16, 16, (24,)),
        (25, 16, 16, (25,)), (26, 16, 16, (26,)), (27, 16, 16, (27,)), (28, 16, 16, (28,)),
        (29, 16, 16, (29,)), (30, 16, 16, (30,)), (31, 16, 16, (31,)), (32, 16, 16, (32,)),
        (33, 16, 16, (33,)), (34, 16, 16, (34,)), (35, 16, 16, (35,)), (36, 16, 16, (36,)),
        (37, 16, 16, (37,)),
        # more than 64 rows, which tiles of 64 do not divide: by wgmma with swapped operands
        (38, 16, 16, (38,)), (39, 16, 16, (39,)), (40, 16, 16, (40,)), (41, 16, 16, (41,)),
        (42, 16, 16, (42,)), (43, 16, 16, (43,)), (44, 16, 16, (44,)), (45, 16, 16, (45,)),
        (46, 16, 16, (46,)), (47, 16, 16, (47,)), (48, 16, 16, (48,)), (49, 16, 16, (49,)),
        (50, 16, 16, (50,)), (51, 16, 16, (51,)),
        # many rows, by mma
        (52, 16, 16, (52,)), (53, 16, 16, (53,)), (54, 16, 16, (54,)),
        # A and B not aligned to 16 bytes: copied first
        (55, 0, 0, ("realign_ab", 21)), (56, 0, 0, ("realign_ab", 22)),
        (57, 0, 0, ("realign_ab", 29)), (58, 0, 0, ("realign_ab", 34)),
        (59, 0, 0, ("realign_ab", 37)), (60, 0, 0, ("realign_ab", 53)),
        (61, 0, 0, ("realign_ab", 54)),
        # operands not aligned to 16 bytes
        (62, 4, 4, (62,)), (63, 4, 4, (63,)), (64, 4, 4, (64,)), (65, 0, 0, (65,)),
        # everything else: any size, alignment and plan
        (66, 0, 0, (66,)),
    ),
    "tn_chunks_half_tc": (
        # few rows, few outputs: split-K, by mma
        (0, 16, 16, (0, "reduce")),
        # a long reduction: split-K, a CTA for each tile and chunk
        (1, 16, 16, (1, "reduce")), (2, 16, 16, (2, "reduce")), (3, 16, 16, (3, "reduce")),
        (4, 16, 16, (4, "reduce")), (5, 16, 16, (5, "reduce")), (6, 4, 4, (6, "reduce")),
        (7, 0, 0, (7, "reduce")),
        # A not aligned to 16 bytes: copied first
        (8, 0, 16, ("realign_a", 1, "reduce")),
        # B not aligned to 16 bytes: copied first
        (9, 16, 0, ("realign_b", 1, "reduce")),
        # A and B not aligned to 16 bytes: copied first
        (10, 0, 0, ("realign_ab", 1, "reduce")),
        # A not aligned to 16 bytes: copied first
        (11, 0, 16, ("realign_a", 2, "reduce")),
        # B not aligned to 16 bytes: copied first
        (12, 16, 0, ("realign_b", 2, "reduce")),
        # A and B not aligned to 16 bytes: copied first
        (13, 0, 0, ("realign_ab", 2, "reduce")),
        # A not aligned to 16 bytes: copied first
        (14, 0, 16, ("realign_a", 3, "reduce")),
        # B not aligned to 16 bytes: copied first
        (15, 16, 0, ("realign_b", 3, "reduce")),
        # A and B not aligned to 16 bytes: copied first
        (16, 0, 0, ("realign_ab", 3, "reduce")),
        # few rows: the weight is read once
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
        # A not aligned to 16 bytes: copied first
        (44, 0, 16, ("realign_a", 23)),
        # B not aligned to 16 bytes: copied first
        (45, 16, 0, ("realign_b", 23)),
        # A and B not aligned to 16 bytes: copied first
        (46, 0, 0, ("realign_ab", 23)),
        # A not aligned to 16 bytes: copied first
        (47, 0, 16, ("realign_a", 24)),
        # B not aligned to 16 bytes: copied first
        (48, 16, 0, ("realign_b", 24)),
        # A and B not aligned to 16 bytes: copied first
        (49, 0, 0, ("realign_ab", 24)),
        # A not aligned to 16 bytes: copied first
        (50, 0, 16, ("realign_a", 32)),
        # B not aligned to 16 bytes: copied first
        (51, 16, 0, ("realign_b", 32)),
        # A and B not aligned to 16 bytes: copied first
        (52, 0, 0, ("realign_ab", 32)),
        # A not aligned to 16 bytes: copied first
        (53, 0, 16, ("realign_a", 38)),
        # B not aligned to 16 bytes: copied first
        (54, 16, 0, ("realign_b", 38)),
        # A and B not aligned to 16 bytes: copied first
        (55, 0, 0, ("realign_ab", 38)),
        # A not aligned to 16 bytes: copied first
        (56, 0, 16, ("realign_a", 40)),
        # B not aligned to 16 bytes: copied first
        (57, 16, 0, ("realign_b", 40)),
        # A and B not aligned to 16 bytes: copied first
        (58, 0, 0, ("realign_ab", 40)), (59, 0, 0, ("realign_ab", 42)),
        (60, 0, 0, ("realign_ab", 43)),
        # operands not aligned to 16 bytes
        (61, 4, 16, (61,)), (62, 4, 4, (62,)), (63, 0, 0, (63,)),
        # everything else: any size, alignment and plan
        (64, 0, 0, (64,)),
    ),
    "tt_chunks_half_tc": (
        # few rows: the weight is read once
        (0, 16, 16, (0,)),
        # many rows, by wgmma
        (1, 16, 16, (1,)), (2, 16, 16, (2,)),
        # many rows, by mma
        (3, 16, 16, (3,)),
        # operands not aligned to 16 bytes
        (4, 4, 16, (4,)), (5, 0, 0, (5,)),
        # everything else: any size, alignment and plan
        (6, 0, 0, (6,)),
    ),
})
# MMA: launch, kernel, slots, bm, bn, bk
MMA = {
    "nn_chunks_half_tc": (
        (0, "mma_nn_bf16_16x32x128_7822dc", 1, 16, 32, 128),
        (7, "mma_nn_bf16_64x64x128_25ac48", 2, 64, 64, 128),
        (8, "mma_nn_bf16_128x128x64_a224b6", 2, 128, 128, 64),
        (9, "mma_nn_bf16_64x64x64_34452b", 2, 64, 64, 64),
        (10, "mma_nn_bf16_64x32x64_f6281f", 4, 64, 32, 64),
        (11, "mma_nn_bf16_64x64x32_23519d", 4, 64, 64, 32),
    ),
    "nt_chunks_half_tc": (
        (0, "mma_nt_bf16_16x32x128_ce98c1", 1, 16, 32, 128),
        (7, "mma_nt_bf16_64x64x128_3ee5c7", 2, 64, 64, 128),
        (8, "mma_nt_bf16_128x128x64_4c709e", 2, 128, 128, 64),
        (9, "mma_nt_bf16_64x64x64_704cde", 2, 64, 64, 64),
        (10, "mma_nt_bf16_64x32x64_082030", 4, 64, 32, 64),
        (11, "mma_nt_bf16_64x64x32_3e4a7e", 4, 64, 64, 32),
    ),
    "tn_chunks_half_tc": (
        (0, "mma_tn_bf16_16x32x128_a4a34f", 1, 16, 32, 128),
        (4, "mma_tn_bf16_64x64x128_e8dcb4", 2, 64, 64, 128),
        (5, "mma_tn_bf16_128x128x64_d481e3", 2, 128, 128, 64),
        (6, "mma_tn_bf16_64x32x64_65daee", 4, 64, 32, 64),
        (7, "mma_tn_bf16_64x64x32_d0be24", 4, 64, 64, 32),
    ),
}
# WGMMA: launch, kernel, bm
WGMMA = {
    "nn_chunks_half_tc": (
        (1, "wgmma_nn_bf16_192x192x64_9820a4", 192),
        (2, "wgmma_nn_bf16_128x128x64_a00929", 128),
        (3, "wgmma_nn_bf16_64x64x64_97b654", 64),
    ),
    "nt_chunks_half_tc": (
        (1, "wgmma_nt_bf16_192x192x64_7f61b0", 192),
        (2, "wgmma_nt_bf16_128x128x64_4f4a42", 128),
        (3, "wgmma_nt_bf16_64x64x64_66a4c6", 64),
    ),
    "tn_chunks_half_tc": (
        (1, "wgmma_tn_bf16_192x192x64_deb63c", 192),
        (2, "wgmma_tn_bf16_128x128x64_036ddc", 128),
        (3, "wgmma_tn_bf16_64x64x64_9ee65a", 64),
    ),
}
# WGMMA1: launch, kernel, bm, bn
WGMMA1 = {
    "nn_chunks_half_tc": (
        (4, "wgmma_swapped_nn_bf16_96x192x64_212552", 96, 192),
        (5, "wgmma_swapped_nn_bf16_80x128x64_6f72f3", 80, 128),
        (6, "wgmma_swapped_nn_bf16_96x64x64_bdeadd", 96, 64),
    ),
    "nt_chunks_half_tc": (
        (4, "wgmma_swapped_nt_bf16_96x192x64_1dbc75", 96, 192),
        (5, "wgmma_swapped_nt_bf16_80x128x64_d23718", 80, 128),
        (6, "wgmma_swapped_nt_bf16_96x64x64_b70ea3", 96, 64),
    ),
}
# MMA1: launch, kernel, c0, bm, bn, bk
MMA1 = {
    "nn_chunks_half_tc": (
        (21, "mma_nn_bf16_8x64x128_6b999a", 64, 8, 64, 128),
        (26, "mma_nn_bf16_32x64x128_8029ae", 128, 32, 64, 128),
        (27, "mma_nn_bf16_64x128x64_879731", 64, 64, 128, 64),
        (78, "mma_nn_bf16_128x64x64_d4d82b", 64, 128, 64, 64),
    ),
    "nt_chunks_half_tc": (
        (19, "mma_nt_bf16_32x64x128_66bc11", 128, 32, 64, 128),
        (20, "mma_nt_bf16_64x128x64_8af253", 64, 64, 128, 64),
        (63, "mma_nt_bf16_128x64x64_797e5c", 64, 128, 64, 64),
    ),
    "tn_chunks_half_tc": (
        (17, "mma_tn_bf16_8x64x128_a95d2e", 64, 8, 64, 128),
        (21, "mma_tn_bf16_32x64x128_106fd8", 128, 32, 64, 128),
        (22, "mma_tn_bf16_64x128x64_7a846e", 64, 64, 128, 64),
    ),
}
# MMA2: launch, kernel, slots, c0, bm, bn, bk
MMA2 = {
    "nn_chunks_half_tc": (
        (22, "mma_nn_bf16_8x32x128_b1a997", 1, 128, 8, 32, 128),
        (23, "mma_nn_bf16_16x32x128_a27564", 1, 128, 16, 32, 128),
        (24, "mma_nn_bf16_16x64x128_3b7d0a", 1, 128, 16, 64, 128),
        (25, "mma_nn_bf16_32x32x128_74b7ae", 1, 128, 32, 32, 128),
        (58, "mma_nn_bf16_64x64x64_fd998b", 3, 64, 64, 64, 64),
        (60, "mma_nn_bf16_128x128x64_5411be", 1, 64, 128, 128, 64),
        (79, "mma_nn_bf16_16x32x128_976797", 1, 128, 16, 32, 128),
        (80, "mma_nn_bf16_16x32x128_f274b8", 1, 128, 16, 32, 128),
    ),
    "nt_chunks_half_tc": (
        (15, "mma_nt_bf16_8x16x512_987e57", 1, 128, 8, 16, 512),
        (16, "mma_nt_bf16_16x32x128_d8a68f", 1, 128, 16, 32, 128),
        (17, "mma_nt_bf16_16x64x128_329c65", 1, 128, 16, 64, 128),
        (18, "mma_nt_bf16_32x32x128_6abafb", 1, 128, 32, 32, 128),
        (52, "mma_nt_bf16_64x64x64_25611e", 3, 64, 64, 64, 64),
        (54, "mma_nt_bf16_128x128x64_d2c5a0", 1, 64, 128, 128, 64),
        (62, "mma_nt_bf16_32x32x64_88d364", 3, 64, 32, 32, 64),
        (64, "mma_nt_bf16_16x32x128_20505b", 1, 128, 16, 32, 128),
        (65, "mma_nt_bf16_16x32x128_668910", 1, 128, 16, 32, 128),
    ),
    "tn_chunks_half_tc": (
        (18, "mma_tn_bf16_8x32x128_b91c74", 1, 128, 8, 32, 128),
        (19, "mma_tn_bf16_16x32x128_2ffce5", 1, 128, 16, 32, 128),
        (20, "mma_tn_bf16_32x32x128_223412", 1, 128, 32, 32, 128),
        (41, "mma_tn_bf16_64x64x64_c0fa50", 3, 64, 64, 64, 64),
        (43, "mma_tn_bf16_128x128x64_aba6f1", 1, 64, 128, 128, 64),
        (61, "mma_tn_bf16_8x32x256_c58b0b", 1, 128, 8, 32, 256),
        (62, "mma_tn_bf16_16x32x128_80f97c", 1, 128, 16, 32, 128),
        (63, "mma_tn_bf16_16x32x128_7ebf64", 1, 128, 16, 32, 128),
    ),
    "tt_chunks_half_tc": (
        (0, "mma_tt_bf16_32x32x128_8e5736", 1, 128, 32, 32, 128),
        (4, "mma_tt_bf16_8x32x256_5f8246", 1, 128, 8, 32, 256),
        (5, "mma_tt_bf16_16x32x128_9b3ff2", 1, 128, 16, 32, 128),
    ),
}
# WGMMA2: launch, kernel, bm, bn
WGMMA2 = {
    "nn_chunks_half_tc": (
        (28, "wgmma_nn_bf16_128x256x64_269d28", 128, 256),
        (32, "wgmma_nn_bf16_192x160x64_3cad35", 192, 160),
    ),
    "nt_chunks_half_tc": (
        (21, "wgmma_nt_bf16_128x256x64_95ec44", 128, 256),
        (25, "wgmma_nt_bf16_192x160x64_44d58e", 192, 160),
    ),
    "tn_chunks_half_tc": (
        (23, "wgmma_tn_bf16_128x256x64_4033a6", 128, 256),
        (28, "wgmma_tn_bf16_192x128x64_01aa63", 192, 128),
    ),
}
# WGMMA3: launch, kernel, bk, bm, bn
WGMMA3 = {
    "nn_chunks_half_tc": (
        (29, "wgmma_nn_bf16_128x256x64_8ef526", 64, 128, 256),
        (30, "wgmma_nn_bf16_192x192x64_b3974e", 64, 192, 192),
        (33, "wgmma_nn_bf16_192x160x64_cfb91e", 64, 192, 160),
        (35, "wgmma_nn_bf16_128x224x64_f0d83a", 64, 128, 224),
        (36, "wgmma_nn_bf16_128x128x64_25492e", 64, 128, 128),
        (37, "wgmma_nn_bf16_128x112x64_16fb2b", 64, 128, 112),
        (38, "wgmma_nn_bf16_64x256x64_a9b519", 64, 64, 256),
        (39, "wgmma_nn_bf16_128x64x64_f988ea", 64, 128, 64),
        (40, "wgmma_nn_bf16_64x128x64_07ac44", 64, 64, 128),
        (41, "wgmma_nn_bf16_64x64x64_06ffad", 64, 64, 64),
        (42, "wgmma_nn_bf16_64x32x128_5073a2", 128, 64, 32),
        (43, "wgmma_nn_bf16_64x16x128_706412", 128, 64, 16),
    ),
    "nt_chunks_half_tc": (
        (22, "wgmma_nt_bf16_128x256x64_3dd73c", 64, 128, 256),
        (23, "wgmma_nt_bf16_192x192x64_c81cf8", 64, 192, 192),
        (26, "wgmma_nt_bf16_192x160x64_1f6739", 64, 192, 160),
        (28, "wgmma_nt_bf16_128x224x64_2d6b5a", 64, 128, 224),
        (29, "wgmma_nt_bf16_128x128x64_798d11", 64, 128, 128),
        (30, "wgmma_nt_bf16_128x112x64_e1db5f", 64, 128, 112),
        (31, "wgmma_nt_bf16_64x256x64_2ab6da", 64, 64, 256),
        (32, "wgmma_nt_bf16_128x64x64_2d7408", 64, 128, 64),
        (33, "wgmma_nt_bf16_64x128x64_9a41df", 64, 64, 128),
        (34, "wgmma_nt_bf16_64x64x64_a71b86", 64, 64, 64),
        (35, "wgmma_nt_bf16_64x32x128_43ead3", 128, 64, 32),
        (37, "wgmma_nt_bf16_64x16x128_cd17c0", 128, 64, 16),
    ),
    "tn_chunks_half_tc": (
        (24, "wgmma_tn_bf16_128x256x64_5150be", 64, 128, 256),
        (26, "wgmma_tn_bf16_192x192x64_6c37ea", 64, 192, 192),
        (30, "wgmma_tn_bf16_128x224x64_b3de3c", 64, 128, 224),
        (31, "wgmma_tn_bf16_128x176x64_f55bf0", 64, 128, 176),
        (32, "wgmma_tn_bf16_128x128x64_12c8f9", 64, 128, 128),
        (33, "wgmma_tn_bf16_128x112x64_ca5fd3", 64, 128, 112),
        (34, "wgmma_tn_bf16_64x256x64_7b1131", 64, 64, 256),
        (35, "wgmma_tn_bf16_128x64x64_ed1b17", 64, 128, 64),
        (36, "wgmma_tn_bf16_64x128x64_29b714", 64, 64, 128),
        (38, "wgmma_tn_bf16_64x64x64_c180bf", 64, 64, 64),
        (39, "wgmma_tn_bf16_64x32x128_584ff4", 128, 64, 32),
        (40, "wgmma_tn_bf16_64x16x128_912278", 128, 64, 16),
    ),
    "tt_chunks_half_tc": (
        (1, "wgmma_tt_bf16_128x128x64_1b88da", 64, 128, 128),
        (2, "wgmma_tt_bf16_64x64x64_d4fdc2", 64, 64, 64),
    ),
}
# WGMMA4: launch, kernel, bm, bn, c0
WGMMA4 = {
    "nn_chunks_half_tc": (
        (31, "wgmma_nn_bf16_128x192x64_1b1ed2", 256, 192, 24576),
        (34, "wgmma_nn_bf16_192x128x64_0ad4f8", 192, 256, 24576),
    ),
    "nt_chunks_half_tc": (
        (24, "wgmma_nt_bf16_128x192x64_bb9c5c", 256, 192, 24576),
        (27, "wgmma_nt_bf16_192x128x64_42a601", 192, 256, 24576),
    ),
    "tn_chunks_half_tc": (
        (25, "wgmma_tn_bf16_128x256x64_7d5a26", 256, 256, 32768),
        (27, "wgmma_tn_bf16_128x192x64_c211fb", 256, 192, 24576),
        (29, "wgmma_tn_bf16_192x128x64_000174", 192, 256, 24576),
        (37, "wgmma_tn_bf16_64x128x64_6bfb72", 128, 128, 8192),
    ),
}
# WGMMA5: launch, kernel, bm, bn
WGMMA5 = {
    "nn_chunks_half_tc": (
        (44, "wgmma_swapped_nn_bf16_88x64x64_faa845", 88, 64),
        (45, "wgmma_swapped_nn_bf16_200x128x64_3b4e18", 200, 128),
        (46, "wgmma_swapped_nn_bf16_184x128x64_cd2e50", 184, 128),
        (47, "wgmma_swapped_nn_bf16_160x128x64_b87b04", 160, 128),
        (48, "wgmma_swapped_nn_bf16_152x128x64_a675c5", 152, 128),
        (49, "wgmma_swapped_nn_bf16_136x128x64_cb77f7", 136, 128),
        (50, "wgmma_swapped_nn_bf16_120x128x64_940f31", 120, 128),
        (51, "wgmma_swapped_nn_bf16_104x128x64_9f7617", 104, 128),
        (52, "wgmma_swapped_nn_bf16_80x128x64_ac58a3", 80, 128),
        (54, "wgmma_swapped_nn_bf16_120x192x64_888ba1", 120, 192),
        (55, "wgmma_swapped_nn_bf16_112x192x64_cc6d11", 112, 192),
        (56, "wgmma_swapped_nn_bf16_112x256x64_c15bfc", 112, 256),
        (57, "wgmma_swapped_nn_bf16_96x256x64_52f76f", 96, 256),
    ),
    "nt_chunks_half_tc": (
        (38, "wgmma_swapped_nt_bf16_88x64x64_cabf8c", 88, 64),
        (39, "wgmma_swapped_nt_bf16_200x128x64_15b112", 200, 128),
        (40, "wgmma_swapped_nt_bf16_184x128x64_f364d3", 184, 128),
        (41, "wgmma_swapped_nt_bf16_160x128x64_e25335", 160, 128),
        (42, "wgmma_swapped_nt_bf16_152x128x64_c5096c", 152, 128),
        (43, "wgmma_swapped_nt_bf16_136x128x64_12a1e7", 136, 128),
        (44, "wgmma_swapped_nt_bf16_120x128x64_193b21", 120, 128),
        (45, "wgmma_swapped_nt_bf16_104x128x64_10d210", 104, 128),
        (46, "wgmma_swapped_nt_bf16_80x128x64_62fe76", 80, 128),
        (48, "wgmma_swapped_nt_bf16_120x192x64_063b29", 120, 192),
        (49, "wgmma_swapped_nt_bf16_112x192x64_817a85", 112, 192),
        (50, "wgmma_swapped_nt_bf16_112x256x64_e696b9", 112, 256),
        (51, "wgmma_swapped_nt_bf16_96x256x64_353b14", 96, 256),
    ),
}
# WGMMA6: launch, kernel
WGMMA6 = {
    "nn_chunks_half_tc": ((53, "wgmma_swapped_nn_bf16_192x192x64_a0ab01"),),
    "nt_chunks_half_tc": ((47, "wgmma_swapped_nt_bf16_192x192x64_55bcf6"),),
}
# MMA3: launch, kernel
MMA3 = {
    "nn_chunks_half_tc": ((59, "mma_nn_bf16_128x128x64_f0d61c"),),
    "nt_chunks_half_tc": ((53, "mma_nt_bf16_128x128x64_c17b3f"),),
    "tn_chunks_half_tc": ((42, "mma_tn_bf16_128x128x64_0c6dfc"),),
    "tt_chunks_half_tc": ((3, "mma_tt_bf16_128x128x64_e21fc6"),),
}
# MMA4: launch, kernel
MMA4 = {
    "nn_chunks_half_tc": ((81, "mma_nn_bf16_64x64x32_11f8f0"),),
    "nt_chunks_half_tc": ((66, "mma_nt_bf16_64x64x32_bf4a05"),),
    "tn_chunks_half_tc": ((64, "mma_tn_bf16_64x64x32_e9516c"),),
    "tt_chunks_half_tc": ((6, "mma_tt_bf16_64x64x32_ad734c"),),
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
            "reduce_bf16_128x4_f3bd9b", "fma", 8, sms, ctas, -(-chunks // 8), 0, stores, stores,
            stores1,
        )
        launches["reduce"] = us, "reduce_bf16_128x4_f3bd9b", ctas, {"workspace": stores}
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
    for launch, kernel, bm, bn in fitting.rows(WGMMA1) if arch in SOME_0 else ():
        tiles = -(-m // bm) * -(-n // bn)
        if (
            (chunk % 64 == 0 or chunks <= 1) and stores <= 268435456 and sms >= 1
            and m + bm <= 2147483647 and n + bn <= 2147483647 and k + 64 <= 2147483647
            and tiles * chunks + sms <= 4294967295 and m > 64 and m <= 512
        ):
            us = time(
                kernel, "wgmma", 1, sms, tiles * chunks, -(-chunk // 64), chunk * (bm * bn),
                tiles * k * ((bm + bn) * 2 + (min(k % 16, 1) * bm + min(v % 16, 1) * bn) * 6),
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
            "realign_b16x1_69d801", "fma", 8, sms, ctas, 1, 0, operands1, operands1, operands1,
        )
        launches["realign_a"] = us, "realign_b16x1_69d801", ctas, {"a_realigned": pieces_w_u8 * 16}
    operands2 = 0 + k * -(-n // 8) * 16
    pieces_k_n8 = k * -(-n // 8)
    ctas = -(-pieces_k_n8 // 512)
    if (
        table in ("nn_chunks_half_tc", "tn_chunks_half_tc") and "realign_b" in fitting
        and pieces_k_n8 * 16 <= 1073741824
    ):
        us = time(
            "realign_b16x1_69d801", "fma", 8, sms, ctas, 1, 0, operands2, operands2, operands2,
        )
        launches["realign_b"] = us, "realign_b16x1_69d801", ctas, {"b_realigned": pieces_k_n8 * 16}
    operands3 = 0 + w * -(-u // 8) * 16 + x * -(-v // 8) * 16
    pieces_x_v8 = x * -(-v // 8)
    ctas = -(-pieces_w_u8 // 512) + -(-pieces_x_v8 // 512)
    if (
        table in ("nn_chunks_half_tc", "nt_chunks_half_tc", "tn_chunks_half_tc")
        and "realign_ab" in fitting and pieces_w_u8 * 16 <= 1073741824
        and pieces_x_v8 * 16 <= 1073741824
    ):
        us = time(
            "realign_b16x2_d371f4", "fma", 8, sms, ctas, 1, 0, operands3, operands3, operands3,
        )
        launches["realign_ab"] = (
            us, "realign_b16x2_d371f4", ctas,
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
    for launch, kernel, bm, bn in fitting.rows(WGMMA2) if arch in SOME_0 else ():
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
    for launch, kernel, bk, bm, bn in fitting.rows(WGMMA3) if arch in SOME_0 else ():
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
    for launch, kernel, bm, bn, c0 in fitting.rows(WGMMA4) if arch in SOME_0 else ():
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
    for launch, kernel, bm, bn in fitting.rows(WGMMA5) if arch in SOME_0 else ():
        tiles = -(-m // bm) * -(-n // bn)
        if (
            (chunk % 64 == 0 or chunks <= 1) and sms >= 1 and m + bm <= 2147483647
            and n + bn <= 2147483647 and k + 64 <= 2147483647 and tiles + sms <= 4294967295
            and m > 64
        ):
            us = time(
                kernel, "wgmma", 1, sms, tiles, -(-k // 64), k * (bm * bn),
                tiles * k * ((bm + bn) * 2 + (min(k % 16, 1) * bm + min(v % 16, 1) * bn) * 6),
                operands, stores1,
            )
            launches[launch] = us, kernel, min(tiles, sms) * 1, {}
    tiles_192x192 = -(-m // 192) * -(-n // 192)
    for launch, kernel in fitting.rows(WGMMA6) if arch in SOME_0 else ():
        if (
            chunks <= 1 and sms >= 1 and m + 192 <= 2147483647 and n + 192 <= 2147483647
            and k + 64 <= 2147483647 and tiles_192x192 + sms <= 4294967295 and m > 64
        ):
            us = time(
                kernel, "wgmma", 1, sms, tiles_192x192, -(-k // 64), k * 36864,
                tiles_192x192 * k * (768 + (min(k % 16, 1) * 192 + min(v % 16, 1) * 192) * 6),
                operands, stores1,
            )
            launches[launch] = us, kernel, min(tiles_192x192, sms) * 1, {}
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
    tiles_64x32 = -(-m // 64) * -(-n // 32)
    if (
        table == "nt_chunks_half_tc" and arch in SOME_0 and 36 in fitting
        and (chunk % 128 == 0 or chunks <= 1) and m % 64 == 0 and sms >= 1 and m + 64 <= 2147483647
        and n + 32 <= 2147483647 and k + 128 <= 2147483647 and tiles_64x32 + sms <= 4294967295
    ):
        us = time(
            "wgmma_nt_bf16_64x32x128_f773ae", "wgmma", 1, sms, tiles_64x32, -(-k // 128), k * 2048,
            tiles_64x32 * k * (192 + (min(k % 16, 1) * 64 + min(k % 16, 1) * 32) * 6), operands,
            stores1,
        )
        launches[36] = us, "wgmma_nt_bf16_64x32x128_f773ae", min(tiles_64x32, sms) * 1, {}
    yield from fitting.combined(launches)
