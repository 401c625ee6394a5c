"""Dispatch of grouped NN rows half tc, grouped NT rows half tc: grouped products under the plan
'chunks'.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time

SOME_0 = frozenset(("sm_90",))
# GROUPED_WGMMA: kernel
GROUPED_WGMMA = {
    "grouped_nn_rows_half_tc": ("grouped_wgmma_nn_bf16_128x256x64_8fa0cc",),
    "grouped_nt_rows_half_tc": ("grouped_wgmma_nt_bf16_128x256x64_60466d",),
}
# GROUPED_WGMMA1: kernel
GROUPED_WGMMA1 = {
    "grouped_nn_rows_half_tc": ("grouped_wgmma_nn_bf16_128x256x64_e1af89",),
    "grouped_nt_rows_half_tc": ("grouped_wgmma_nt_bf16_128x256x64_bae781",),
}
# GROUPED_WGMMA2: kernel
GROUPED_WGMMA2 = {
    "grouped_nn_rows_half_tc": ("grouped_wgmma_nn_bf16_64x128x128_199510",),
    "grouped_nt_rows_half_tc": ("grouped_wgmma_nt_bf16_64x128x128_6913d3",),
}
# GROUPED_WGMMA3: kernel
GROUPED_WGMMA3 = {
    "grouped_nn_rows_half_tc": ("grouped_wgmma_nn_bf16_64x128x128_89fced",),
    "grouped_nt_rows_half_tc": ("grouped_wgmma_nt_bf16_64x128x128_4f7e6e",),
}
# GROUPED_MMA: kernel
GROUPED_MMA = {
    "grouped_nn_rows_half_tc": ("grouped_mma_nn_bf16_16x64x128_f32ead",),
    "grouped_nt_rows_half_tc": ("grouped_mma_nt_bf16_16x64x128_5f5903",),
}
# GROUPED_MMA1: kernel
GROUPED_MMA1 = {
    "grouped_nn_rows_half_tc": ("grouped_mma_nn_bf16_64x64x64_a188b7",),
    "grouped_nt_rows_half_tc": ("grouped_mma_nt_bf16_64x64x64_48a03a",),
}
# GROUPED_MMA2: kernel
GROUPED_MMA2 = {
    "grouped_nn_rows_half_tc": ("grouped_mma_nn_bf16_64x64x32_43cb5f",),
    "grouped_nt_rows_half_tc": ("grouped_mma_nt_bf16_64x64x32_d11ed3",),
}


def candidates(
    table: str, arch: str, m: int, n: int, k: int, groups: int, sms: int, align_a: int,
    align_b: int, time: Time,
) -> Iterator[Candidate]:
    """Yields the routes that serve a problem, with predicted times."""
    chunk = max(1, min(k, k if k <= 4096 else -(-k // -(-k // 3072) // 128) * 128))
    chunks = -(-k // chunk)
    # 0: many rows a group, one chunk: by wgmma
    for kernel in GROUPED_WGMMA[table] if arch in SOME_0 else ():
        if (
            align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
            and n + 256 <= 2147483647 and k + 64 <= 2147483647
            and (m // 128 + min(groups + 1, m)) * -(-n // 256) + sms <= 4294967295
            and groups * 48 < m
        ):
            choice = Choice(
                0, (kernel,), (min((m // 128 + min(groups + 1, m)) * -(-n // 256), sms),), (),
            )
            yield Candidate(0.0, choice)
            return
    # 1: many rows a group, several chunks: by wgmma
    for kernel in GROUPED_WGMMA1[table] if arch in SOME_0 else ():
        if (
            align_a >= 16 and align_b >= 16 and (chunk % 64 == 0 or chunks <= 1) and sms >= 1
            and m + 128 <= 2147483647 and n + 256 <= 2147483647 and k + 64 <= 2147483647
            and (m // 128 + min(groups + 1, m)) * -(-n // 256) + sms <= 4294967295
            and groups * 48 < m
        ):
            choice = Choice(
                1, (kernel,), (min((m // 128 + min(groups + 1, m)) * -(-n // 256), sms),), (),
            )
            yield Candidate(0.0, choice)
            return
    # 2: some rows a group, one chunk: by wgmma
    for kernel in GROUPED_WGMMA2[table] if arch in SOME_0 else ():
        if (
            align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
            and n + 128 <= 2147483647 and k + 128 <= 2147483647
            and (m // 64 + min(groups + 1, m)) * -(-n // 128) + sms <= 4294967295 and groups * 2 < m
        ):
            choice = Choice(
                2, (kernel,), (min((m // 64 + min(groups + 1, m)) * -(-n // 128), sms),), (),
            )
            yield Candidate(0.0, choice)
            return
    # 3: some rows a group, several chunks: by wgmma
    for kernel in GROUPED_WGMMA3[table] if arch in SOME_0 else ():
        if (
            align_a >= 16 and align_b >= 16 and (chunk % 128 == 0 or chunks <= 1) and sms >= 1
            and m + 64 <= 2147483647 and n + 128 <= 2147483647 and k + 128 <= 2147483647
            and (m // 64 + min(groups + 1, m)) * -(-n // 128) + sms <= 4294967295 and groups * 2 < m
        ):
            choice = Choice(
                3, (kernel,), (min((m // 64 + min(groups + 1, m)) * -(-n // 128), sms),), (),
            )
            yield Candidate(0.0, choice)
            return
    # 4: few rows a group: each weight is read once
    for kernel in GROUPED_MMA[table]:
        if (
            align_a >= 16 and align_b >= 16 and (chunk % 128 == 0 or chunks <= 1)
            and m <= groups * 16
        ):
            choice = Choice(
                4, (kernel,), (min((m // 16 + min(groups + 1, m)) * -(-n // 64), sms * 2),), (),
            )
            yield Candidate(0.0, choice)
            return
    # 5: any number of rows a group: by mma.sync
    for kernel in GROUPED_MMA1[table]:
        if align_a >= 16 and align_b >= 16 and (chunk % 64 == 0 or chunks <= 1):
            choice = Choice(
                5, (kernel,), (min((m // 64 + min(groups + 1, m)) * -(-n // 64), sms * 2),), (),
            )
            yield Candidate(0.0, choice)
            return
    # 6: everything else: any size, alignment and plan
    for kernel in GROUPED_MMA2[table]:
        if chunk % 32 == 0 or chunks <= 1:
            choice = Choice(
                6, (kernel,), (min((m // 64 + min(groups + 1, m)) * -(-n // 64), sms * 3),), (),
            )
            yield Candidate(0.0, choice)
            return
