"""Dispatch of grouped NN rows f32 simt, grouped NT rows f32 simt: grouped products under the plan
'chunks'.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time

# GROUPED_SIMT: kernel
GROUPED_SIMT = {
    "grouped_nn_rows_f32_simt": ("grouped_simt_nn_f32_64x64x16_5e86f6",),
    "grouped_nt_rows_f32_simt": ("grouped_simt_nt_f32_64x64x16_84a2ca",),
}


def candidates(
    table: str, arch: str, m: int, n: int, k: int, groups: int, sms: int, align_a: int,
    align_b: int, time: Time,
) -> Iterator[Candidate]:
    """Yields the routes that serve a problem, with predicted times."""
    # 0: everything else: any size, alignment and plan
    for kernel in GROUPED_SIMT[table]:
        choice = Choice(
            0, (kernel,), (min((m // 64 + min(groups + 1, m)) * -(-n // 64), sms * 3),), (),
        )
        yield Candidate(0.0, choice)
