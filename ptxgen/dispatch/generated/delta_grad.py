"""Dispatch of delta_grad descend, delta_grad ascend: delta.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time

# DELTA_GRAD: kernel
DELTA_GRAD = {
    "delta_grad_descend": ("delta_grad_descend_rule_bf16_128_3229f5",),
    "delta_grad_ascend": ("delta_grad_ascend_rule_bf16_128_05f425",),
}


def candidates(
    table: str, arch: str, pairs: int, cols: int, tokens: int, sms: int, time: Time,
) -> Iterator[Candidate]:
    """Yields the routes that serve a problem, with predicted times."""
    pieces_pairs_cols64 = pairs * -(-cols // 64)
    # 0: the only kernel
    for kernel in DELTA_GRAD[table]:
        if pieces_pairs_cols64 <= 2147483647:
            yield Candidate(0.0, Choice(0, (kernel,), (pieces_pairs_cols64,), ()))
            return
