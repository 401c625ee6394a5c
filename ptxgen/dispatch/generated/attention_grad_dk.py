"""Dispatch of attention_grad dk half, attention_grad dk f32: attention_grad.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time

SOME_0 = frozenset(("sm_80", "sm_87", "sm_90", "sm_100", "sm_103", "sm_110"))
# ATTENTION_GRAD: kernel, rows_each
ATTENTION_GRAD = {
    "attention_grad_dk_half": (("attention_grad_dk_bf16_256_64_ad3844", 64),),
    "attention_grad_dk_f32": (("attention_grad_dk_f32_256_32_2e35f9", 32),),
}
# ATTENTION_GRAD1: kernel, rows_each
ATTENTION_GRAD1 = {
    "attention_grad_dk_half": (("attention_grad_dk_bf16_256_32_05d5fc", 32),),
    "attention_grad_dk_f32": (("attention_grad_dk_f32_256_16_ad20e0", 16),),
}


def candidates(
    table: str, arch: str, rows: int, extra: int, pairs: int, past: int, depth: int, width: int,
    plain: int, sms: int, time: Time,
) -> Iterator[Candidate]:
    """What can serve a problem, with predicted times."""
    # 0: one for each SM
    for kernel, rows_each in ATTENTION_GRAD[table] if arch in SOME_0 else ():
        if (
            (-(-rows // rows_each) + extra) * pairs <= 2147483647
            and sms <= (-(-rows // rows_each) + extra) * pairs
        ):
            choice = Choice(0, (kernel,), ((-(-rows // rows_each) + extra) * pairs,), ())
            yield Candidate(0.0, choice)
            return
    # 1: small tiles
    for kernel, rows_each in ATTENTION_GRAD1[table]:
        if (-(-rows // rows_each) + extra) * pairs <= 2147483647:
            choice = Choice(1, (kernel,), ((-(-rows // rows_each) + extra) * pairs,), ())
            yield Candidate(0.0, choice)
            return
