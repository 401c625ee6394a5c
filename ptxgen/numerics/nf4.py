"""NF4 weights: the codebook, the contract of dequantising, and the signatures of their products.

A weight W ``[N, K]`` (``nn.Linear``'s, K a multiple of :data:`BLOCK`) is kept as an index of 4 bits
for each number and an f32 scale for each :data:`BLOCK` of them along K:

    w[n, k] = scale[n, k / 64] * CODE[index[n, k]]        one f32 rounding

``data`` has 32 bytes a block, the even k of two neighbours in the low nibble, blocks row by row;
``scales`` a number a block, in the same order. A weight of another dtype is rounded once more.

What products of such a weight are, by ``accumulate``:

======== ==========================================================================================
"tc"     contract ``tc16`` on the weight in x's dtype, bfloat16 or float16
"simt"   contract ``fma`` on the weight in f32
"f64"    contract ``wide``, of f32 operands: ``acc = fma(x[k], w[k], acc)`` in f64, where products
         are exact, k ascending, one chain from +0.0; ``acc + 0.0``; rounded once to f32, and on
         with the epilogue of the others
======== ==========================================================================================

The codebook is that of the QLoRA paper (Dettmers et al., arXiv 2305.14314, appendix E).
"""

from __future__ import annotations

from ptxgen.numerics.contract import Contract, K, Plan
from ptxgen.numerics.option import Choice
from ptxgen.numerics.signature import Signature

BLOCK = 64
"""Neighbours along K that share a scale."""

CODE: tuple[float, ...] = (
    -1.0,
    -0.6961928009986877,
    -0.5250730514526367,
    -0.39491748809814453,
    -0.28444138169288635,
    -0.18477343022823334,
    -0.09105003625154495,
    0.0,
    0.07958029955625534,
    0.16093020141124725,
    0.24611230194568634,
    0.33791524171829224,
    0.44070982933044434,
    0.5626170039176941,
    0.7229568362236023,
    1.0,
)
"""What the indices stand for, ascending, as exact f32 numbers."""

WIDE = Contract(
    "wide",
    1,
    "acc = fma_rn(x[k], w[k], acc) in f64 of f32 operands, k ascending; rounded to f32 at the end",
    "f64",
    accumulator="f64",
)
"""That of ``accumulate="f64"``, whose plan is :data:`WHOLE`."""
WHOLE = Plan("whole", K)
"""One chain."""

DEQUANTISE = Contract("nf4", 1, "w = round(scale * CODE[index]), in f32; then to its dtype", "any")

ACCUMULATED = {"float32": ("simt", "f64"), "bfloat16": ("tc",), "float16": ("tc",)}
"""What products of operands of each dtype may be accumulated by, ``"auto"`` first."""

_WEIGHT = {"data": "N K/2", "scales": "N K/64"}
ACCUMULATE = Choice("auto", "tc", "simt", "f64")
"""What products may add in: which of these, the dtype says (:data:`ACCUMULATED`)."""

LINEAR = Signature(
    "nf4_linear",
    ("x", "data", "scales", "bias"),
    ("out",),
    {"": {"x": "... K", **_WEIGHT, "bias": "N", "out": "... N"}},
    ("M", "N", "K"),
    optional=frozenset({"bias"}),
)
DGRAD = Signature(
    "nf4_linear_dgrad",
    ("dy", "data", "scales"),
    ("out",),
    {"": {"dy": "... N", **_WEIGHT, "out": "... K"}},
    ("M", "N", "K"),
)
