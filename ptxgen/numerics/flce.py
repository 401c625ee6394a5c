"""Fused linear cross-entropy: the contract of ``linear_cross_entropy``, its signature, its chunks.

The ``flce`` contract, version 3
--------------------------------
For rows ``x`` [M, K], a weight of N classes, and targets, each step by the contract it names:

1. ``z = x . W (+ bias)`` as :func:`ptxgen.linear` gives it, rounded once to the operands' dtype.
2. Of each segment of a row its maximum and sum, of the row its loss, its maximum and the scale of
   its gradient, and ``g``, the gradient by each logit times the row's share of the gradient that
   comes from above: as :mod:`ptxgen.numerics.vocab_segments` has them, in f32 (f64 of float64);
   ``g`` is rounded once to the operands' dtype. N alone decides in which order a row is added. A
   share is ``times``, ``* dy``, and for the mean ``/ count``, each step rounded once.
3. ``dx = g . W``, as :func:`ptxgen.linear_dgrad` gives it.
4. ``dW = g . x``: one chain over all rows, ascending, as :func:`ptxgen.linear_wgrad` with
   ``chain=True`` has it, which begins with what is there if it is added to that. A dW of 16 bits
   is rounded once after each chunk of rows, with which the next one's chain begins.
5. ``dbias``: the same chain (contract ``fma``), each g times 1; rounded once.
6. The loss is the rows' losses, their sum or their mean (``mean_loss``), by ``rows/1``.

Rows are taken in chunks, on tensor cores of a multiple of :data:`GROUP` rows. Loss and dx depend on
neither the chunks nor the other rows, dW and dbias of full width not on the chunks.
"""

from __future__ import annotations

from ptxgen.numerics.contract import TIERS
from ptxgen.numerics.signature import Signature
from ptxgen.numerics.vocab_segments import segments

GROUP = 16
"""Rows that tensor cores add at a time; chunks are multiples, so that groups are whole."""
CHUNK_MAX = 2048
"""Most rows of a chunk by default: more gain nothing (docs/notes/2026-11-26-cross-entropy.md)."""
WHOLE = 1 << 24
"""Bytes of logits up to which all rows are one chunk."""
EVALUATED = 62_000_000
"""Most bytes of a chunk's logits without gradients, so that a call needs less than 64 MB."""

TILE = 128
"""Rows of a tile of the product that keeps segments."""

REDUCTIONS = ("mean", "sum", "none")

LINEAR_CROSS_ENTROPY = Signature(
    "linear_cross_entropy",
    ("x", "w", "target", "bias"),
    ("loss",),
    {
        "nk": {"x": "... K", "w": "N K", "target": "...", "bias": "N", "loss": "..."},
        "kn": {"x": "... K", "w": "K N", "target": "...", "bias": "N", "loss": "..."},
    },
    ("M", "N", "K"),
    optional=frozenset({"bias"}),
)


def chunk_of(
    m: int, n: int, k: int, itemsize: int, gradients: bool, asked: int | None = None
) -> int:
    """Rows of a chunk of ``m`` rows, ``n`` classes and ``k`` features.

    With gradients the smallest power of two of at least ``m / ceil(n / k)`` rows, whose logits take
    about the memory of x, and of ``k / 4``, whose logits take a quarter of that of dW, from 128 to
    :data:`CHUNK_MAX`; without, what :data:`EVALUATED` bytes hold. Logits of :data:`WHOLE` bytes are
    one chunk.
    """
    if asked is None:
        if m * n * itemsize <= WHOLE:
            asked = m
        elif gradients:
            wanted = max(-(-m // max(-(-n // max(k, 1)), 1)), k // 4)
            asked = min(max(1 << (wanted - 1).bit_length(), 128), CHUNK_MAX)
        else:
            asked = max(EVALUATED // (n * itemsize) // GROUP * GROUP, 64)
    return max(-(-min(asked, m) // GROUP) * GROUP, GROUP)


def segmented(dtype: str, tier: str, smoothing: float) -> bool:
    """Whether a product without gradients may store segments in place of logits: on tensor cores,
    and without label smoothing, which needs the mean of the logits.
    """
    return dtype in TIERS["tc"] and tier in ("auto", "tc") and not smoothing


def rows_at_once(n: int, asked: int | None = None) -> int:
    """Rows of ``n`` classes whose segments are in memory at a time, in less than 64 MB."""
    return asked or max(EVALUATED // (8 * segments(n) + 16) // TILE * TILE, TILE)
