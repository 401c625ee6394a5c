"""Fused linear cross-entropy: the contract of ``linear_cross_entropy``, its signature, its chunks.

The ``flce`` contract, version 3
--------------------------------
For rows ``x`` [M, K], a weight of N classes, and targets, each step by the contract it names:

1. ``z = x . W (+ bias)``, with the bits of :func:`ptxgen.linear`, in the operands' dtype.
2. For each segment of a row, the maximum and the sum of exponentials; for each row, the loss, the
   maximum and the scale of its gradient; for each logit, its gradient ``g``, which includes the
   row's share of the incoming gradient: all by :mod:`ptxgen.numerics.vocab_segments`, in f32 (f64
   for float64). ``g`` is rounded once to the operands' dtype. The order in which a row is added
   depends on N alone. A share is ``times``, ``* dy``, and for the mean ``/ count``, each rounded.
3. ``dx = g . W``, with the bits of :func:`ptxgen.linear_dgrad`.
4. ``dW = g . x``, with the bits of :func:`ptxgen.linear_wgrad` with ``chain=True``: one chain over
   all rows, ascending, which starts from the old dW if the result is added to it. A dW of 16 bits
   is rounded once after each chunk of rows; the next chunk's chain starts from the rounded value.
5. ``dbias``: one such chain (contract ``fma``) of each g times 1; rounded once.
6. The loss is the rows' losses, their sum or their mean (``mean_loss``), by ``rows/1``.

Rows are processed in chunks; on tensor cores, of a multiple of :data:`GROUP` rows. A row's loss and
dx depend neither on the chunks nor on other rows; dW and dbias in f32 (f64) not on the chunks.
"""

from __future__ import annotations

from ptxgen.numerics.contract import TIERS
from ptxgen.numerics.signature import Signature
from ptxgen.numerics.vocab_segments import segments

GROUP = 16
"""Granularity of chunks, in rows: tensor cores add 16 rows of dW in one step, so chunks consist of
whole groups of 16."""
CHUNK_MAX = 2048
"""Largest default chunk, in rows; more are no faster (docs/notes/2026-11-26-cross-entropy.md)."""
ONE_CHUNK_BYTES = 1 << 24
"""Size of all logits, in bytes, up to which all rows form one chunk."""
EVALUATED = 62_000_000
"""Largest size of a chunk's logits or segments, in bytes, in calls without gradients. With the
other buffers, such a call uses less than 64 MB."""

TILE = 128
"""Number of rows per tile of the GEMM that stores segments in place of logits."""

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
    m: int, n: int, k: int, itemsize: int, gradients: bool, rows: int | None = None
) -> int:
    """Number of rows per chunk of a fused linear cross-entropy, for ``m`` rows, ``n`` classes and
    ``k`` features: a multiple of :data:`GROUP`.

    ``itemsize``: bytes per logit; ``gradients``: whether the call computes gradients; ``rows``: the
    caller's choice, which is rounded up. The default is m if all logits have at most
    :data:`ONE_CHUNK_BYTES`. Else, without gradients, it is the number of rows whose logits fit in
    :data:`EVALUATED` bytes, at least 64. With gradients it is the smallest power of two, from 128
    to :data:`CHUNK_MAX`, that is at least ``m / ceil(n / k)`` (a chunk's logits are then about as
    large as x) and at least ``k / 4`` (they are then a quarter of dW).
    """
    if rows is None:
        if m * n * itemsize <= ONE_CHUNK_BYTES:
            rows = m
        elif gradients:
            wanted = max(-(-m // max(-(-n // max(k, 1)), 1)), k // 4)
            rows = min(max(1 << (wanted - 1).bit_length(), 128), CHUNK_MAX)
        else:
            rows = max(EVALUATED // (n * itemsize) // GROUP * GROUP, 64)
    return max(-(-min(rows, m) // GROUP) * GROUP, GROUP)


def segmented(dtype: str, tier: str, smoothing: float) -> bool:
    """Whether a loss without gradients may store each segment's maximum and sum in place of logits:
    on tensor cores, and without label smoothing, which needs the mean of the logits.

    ``dtype``: short, of the operands; ``smoothing``: the option ``label_smoothing``.
    """
    return dtype in TIERS["tc"] and tier in ("auto", "tc") and not smoothing


def rows_at_once(n: int, rows: int | None = None) -> int:
    """Number of rows per chunk of a loss that stores segments in place of logits, for ``n``
    classes: ``rows``, the caller's choice, or as many tiles of :data:`TILE` rows as fit in
    :data:`EVALUATED` bytes.
    """
    return rows or max(EVALUATED // (8 * segments(n) + 16) // TILE * TILE, TILE)
