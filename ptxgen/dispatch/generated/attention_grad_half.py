"""Dispatch of attention_grad dq half, attention_grad dkdv half: attention_grad.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time

SOME_0 = frozenset(("sm_90",))
SOME_1 = frozenset(("sm_80", "sm_87", "sm_90", "sm_100", "sm_103", "sm_110"))
# ATTENTION_GRAD_WGMMA: kernel
ATTENTION_GRAD_WGMMA = {
    "attention_grad_dq_half": ("attention_grad_wgmma_dq_bf16_128_128_aaa8e8",),
    "attention_grad_dkdv_half": ("attention_grad_wgmma_dkdv_bf16_128_128_6c04cf",),
}
# ATTENTION_GRAD: kernel, rows_each
ATTENTION_GRAD = {
    "attention_grad_dq_half": (("attention_grad_dq_bf16_128_64_6fa0b2", 64),),
    "attention_grad_dkdv_half": (("attention_grad_dkdv_bf16_128_128_918c55", 128),),
}
# ATTENTION_GRAD1: kernel, rows_each
ATTENTION_GRAD1 = {
    "attention_grad_dq_half": (("attention_grad_dq_bf16_128_32_adfe83", 32),),
    "attention_grad_dkdv_half": (("attention_grad_dkdv_bf16_128_64_8b7dda", 64),),
}


def candidates(
    table: str, arch: str, rows: int, extra: int, pairs: int, past: int, depth: int, width: int,
    plain: int, sms: int, time: Time,
) -> Iterator[Candidate]:
    """What can serve a problem, with predicted times."""
    # 0: Hopper: wgmma, the copy engine
    for kernel in ATTENTION_GRAD_WGMMA[table] if arch in SOME_0 else ():
        if (
            plain == 1 and depth <= 128 and width <= 128
            and (-(-rows // 128) + extra) * pairs <= 2147483647 and rows > 64
        ):
            yield Candidate(0.0, Choice(0, (kernel,), ((-(-rows // 128) + extra) * pairs,), ()))
            return
    # 1: one for each SM
    for kernel, rows_each in ATTENTION_GRAD[table] if arch in SOME_1 else ():
        if (
            (-(-rows // rows_each) + extra) * pairs <= 2147483647
            and sms <= (-(-rows // rows_each) + extra) * pairs
        ):
            choice = Choice(1, (kernel,), ((-(-rows // rows_each) + extra) * pairs,), ())
            yield Candidate(0.0, choice)
            return
    # 2: small tiles
    for kernel, rows_each in ATTENTION_GRAD1[table]:
        if (-(-rows // rows_each) + extra) * pairs <= 2147483647:
            choice = Choice(2, (kernel,), ((-(-rows // rows_each) + extra) * pairs,), ())
            yield Candidate(0.0, choice)
            return
