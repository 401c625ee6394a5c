"""Dispatch of attention_grad dq f32, attention_grad dkdv f32, attention_grad dv f32:
attention_grad.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time

# ATTENTION_GRAD: kernel
ATTENTION_GRAD = {
    "attention_grad_dq_f32": ("attention_grad_dq_f32_128_32_2d186b",),
    "attention_grad_dkdv_f32": ("attention_grad_dkdv_f32_128_32_37e422",),
    "attention_grad_dv_f32": ("attention_grad_dv_f32_256_32_81dfa6",),
}


def candidates(
    table: str, arch: str, rows: int, extra: int, pairs: int, past: int, depth: int, width: int,
    plain: int, sms: int, time: Time,
) -> Iterator[Candidate]:
    """What can serve a problem, with predicted times."""
    # 0: small tiles
    for kernel in ATTENTION_GRAD[table]:
        if (-(-rows // 32) + extra) * pairs <= 2147483647:
            yield Candidate(0.0, Choice(0, (kernel,), ((-(-rows // 32) + extra) * pairs,), ()))
            return
