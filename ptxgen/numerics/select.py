"""The largest of a row, and draws from it: contracts and signatures of ``topk`` and ``sample``.

The ``topk`` contract, version 1
--------------------------------
The k largest of a row, in descending order; of equal ones those of the lowest index, ascending.
-0.0 equals +0.0, and a NaN is larger than all numbers. ``largest=False``: the smallest, ascending;
NaN are last.

The ``sample`` contract, version 1
----------------------------------
Of a row of V logits, brought to f32 exactly (a NaN counts as less than -inf), all in integers but
for the weights:

1. ``z = x / temperature``, rounded once; m is the largest. ``weight = floor(exp(clamp(z - m)) *
   2**40)``, with ``exp`` and ``clamp`` of contract ``lse/1``. Where m is infinite or there is no
   number, the largest logits weigh 1 and others 0.
2. ``top_k``: the k largest logits are kept, of equal ones those of the lowest index.
3. ``top_p``: of these, in descending order (equal ones by ascending index), the least that weigh
   ``max(floor(round(top_p * 2**32) * total / 2**32), 1)`` together are kept.
4. ``r = floor(u * total / 2**64)``, where total is what is kept, and u the first 64 bits that
   Philox4x32-10 gives for the counter (offset, 0) and the key seed, both 64 bits, low words first.
   The result is the lowest index at which the weights of what is kept, added in ascending order of
   index, exceed r.

With a temperature of 0 the result is the largest logit, that of the lowest index. Sums of integers
have no order, so a row's result depends on the row, its seed and its offset alone.

Philox is J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw: Parallel random numbers: as easy as
1, 2, 3 (SC 2011).
"""

from __future__ import annotations

from ptxgen.numerics.contract import Contract
from ptxgen.numerics.signature import Signature

TOPK_CONTRACT = Contract("topk", 1, "descending; equal ones by ascending index", "any")
SAMPLE_CONTRACT = Contract("sample", 1, "integer weights, Philox4x32-10, the inverse sum", "simt")

K_MAX = 1024
VOCABULARY_MAX = 1 << 20
WEIGHT_BITS = 40
"""Fractional bits of weights: a million of them are less than 2**64."""
PHILOX_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
PHILOX_WEYL = (0x9E3779B9, 0xBB67AE85)
PHILOX_ROUNDS = 10

TOPK = Signature(
    "topk",
    ("x",),
    ("values", "indices"),
    {"": {"x": "... N", "values": "... K", "indices": "... K"}},
    ("M", "N"),
)
SAMPLE = Signature(
    "sample",
    ("logits", "seeds", "offsets"),
    ("out",),
    {"": {"logits": "... N", "seeds": "...", "offsets": "...", "out": "..."}},
    ("M", "N"),
    optional=frozenset({"seeds", "offsets"}),
)
