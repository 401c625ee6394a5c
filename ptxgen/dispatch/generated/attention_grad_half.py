"""Dispatch of attention_grad dq half, attention_grad dk half: attention_grad.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time

SOME_0 = frozenset(("sm_90",))
SOME_1 = frozenset(("sm_80", "sm_87", "sm_90", "sm_100", "sm_103", "sm_110"))
# ATTENTION_GRAD_WGMMA: kernel
ATTENTION_GRAD_WGMMA = {
    "attention_grad_dq_half": ("attention_grad_wgmma_dq_bf16_128_64_8f8f95",),
    "attention_grad_dk_half": ("attention_grad_wgmma_dk_bf16_192_64_58f906",),
}
# ATTENTION_GRAD_WGMMA1: kernel
ATTENTION_GRAD_WGMMA1 = {
    "attention_grad_dq_half": ("attention_grad_wgmma_dq_bf16_128_128_384da2",),
    "attention_grad_dk_half": ("attention_grad_wgmma_dk_bf16_256_128_9432a1",),
}
# ATTENTION_GRAD: kernel
ATTENTION_GRAD = {
    "attention_grad_dq_half": ("attention_grad_dq_bf16_128_64_c13790",),
    "attention_grad_dk_half": ("attention_grad_dk_bf16_256_64_607792",),
}
# ATTENTION_GRAD1: kernel
ATTENTION_GRAD1 = {
    "attention_grad_dq_half": ("attention_grad_dq_bf16_128_32_a4d96d",),
    "attention_grad_dk_half": ("attention_grad_dk_bf16_256_32_fb199b",),
}


def candidates(
    table: str, arch: str, rows: int, extra: int, pairs: int, past: int, depth: int, width: int,
    plain: int, sms: int, time: Time,
) -> Iterator[Candidate]:
    """What can serve a problem, with predicted times."""
    # 0: Hopper: wgmma, the copy engine: one warpgroup
    for kernel in ATTENTION_GRAD_WGMMA[table] if arch in SOME_0 else ():
        if (
            plain == 1 and depth <= 192 and width <= 192
            and (-(-rows // 64) + extra) * pairs <= 2147483647
            and (rows <= 64 or (-(-rows // 64) + extra) * pairs <= sms)
        ):
            yield Candidate(0.0, Choice(0, (kernel,), ((-(-rows // 64) + extra) * pairs,), ()))
            return
    # 1: Hopper: wgmma, the copy engine
    for kernel in ATTENTION_GRAD_WGMMA1[table] if arch in SOME_0 else ():
        if plain == 1 and (-(-rows // 128) + extra) * pairs <= 2147483647:
            yield Candidate(0.0, Choice(1, (kernel,), ((-(-rows // 128) + extra) * pairs,), ()))
            return
    # 2: one for each SM
    for kernel in ATTENTION_GRAD[table] if arch in SOME_1 else ():
        if (
            (-(-rows // 64) + extra) * pairs <= 2147483647
            and sms <= (-(-rows // 64) + extra) * pairs
        ):
            yield Candidate(0.0, Choice(2, (kernel,), ((-(-rows // 64) + extra) * pairs,), ()))
            return
    # 3: small tiles
    for kernel in ATTENTION_GRAD1[table]:
        if (-(-rows // 32) + extra) * pairs <= 2147483647:
            yield Candidate(0.0, Choice(3, (kernel,), ((-(-rows // 32) + extra) * pairs,), ()))
            return
