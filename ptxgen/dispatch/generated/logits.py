"""Dispatch of logits segments, logits segments capped, logits gradient, logits gradient capped:
logits.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time

# VOCAB_SEGMENTS_LOGITS: kernel
VOCAB_SEGMENTS_LOGITS = {
    "logits_segments": ("vocab_segments_logits_segments_bf16_0ffc30",),
    "logits_segments_capped": ("vocab_segments_logits_segments_capped_bf16_2f3949",),
    "logits_gradient": ("vocab_segments_logits_gradient_bf16_7538b7",),
    "logits_gradient_capped": ("vocab_segments_logits_gradient_capped_bf16_cbff03",),
}


def candidates(
    table: str, arch: str, rows: int, cols: int, sms: int, time: Time,
) -> Iterator[Candidate]:
    """Yields the routes that serve a problem, with predicted times."""
    segments = -(-cols // 256)
    # 0: the only kernel: warps compute runs of segments
    for kernel in VOCAB_SEGMENTS_LOGITS[table]:
        yield Candidate(0.0, Choice(0, (kernel,), (-(-segments // 16) * min(rows, 2048),), ()))
