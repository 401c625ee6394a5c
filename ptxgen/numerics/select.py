"""Selections from rows: contracts and signatures of ``topk`` and ``sample``.

The ``topk`` contract, version 1
--------------------------------
The result is the k largest elements of a row, descending; ties go to the lowest indices, ascending.
-0.0 equals +0.0, and a NaN is larger than all numbers. With ``largest=False`` it is the k smallest,
ascending, NaN last.

The ``sample`` contract, version 1
----------------------------------
For a row of V logits, converted to f32 exactly (a NaN is less than -inf), with all arithmetic
except step 1 in integers:

1. ``z = x / temperature``, rounded once; m is the largest. ``weight = floor(exp(clamp(z - m)) *
   2**40)``, with ``exp`` and ``clamp`` of contract ``lse/1``. Where m is infinite or all logits are
   NaN, the largest logits have weight 1 and others 0.
2. ``top_k`` keeps the k largest logits; ties go to the lowest indices.
3. ``top_p`` keeps of these, in descending order (ties by ascending index), the fewest whose weights
   add up to ``max(floor(round(top_p * 2**32) * total / 2**32), 1)``.
4. ``r = floor(u * total / 2**64)``, where total is the sum of the weights kept, and u the first 64
   bits of Philox4x32-10 for the counter (offset, 0) and the key seed, both 64 bits, low words
   first. The result is the lowest index at which the running sum of the weights kept, in ascending
   order of index, exceeds r.

With a temperature of 0 the result is the index of the largest logit, the lowest if tied. Integer
sums have no order, so a row's result depends on the row, its seed and its offset alone.

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
"""Number of fractional bits of weights in ``sample``: the sum of 2**20 weights fits in 64 bits."""
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
