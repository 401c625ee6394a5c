"""Selections from rows: contracts and signatures of ``topk``, ``sample`` and ``token_logprobs``.

The ``topk`` contract, version 1
--------------------------------
The result is the k largest elements of a row, descending; ties go to the lowest indices, ascending.
-0.0 equals +0.0, and a NaN is larger than all numbers. With ``largest=False`` it is the k smallest,
ascending, NaN last.

The ``sample`` contract, version 2
----------------------------------
Each row has its own temperature, top_k, top_p and min_p; floats are f32 (a Python number is rounded
once). For a row of V logits, converted to f32 exactly (a NaN is less than -inf), with all
arithmetic except step 1 in integers:

1. ``z = x / temperature``, rounded once; m is the largest. ``e = exp(clamp(z - m))``, with ``exp``
   and ``clamp`` of contract ``lse/1``. ``weight = floor(e * 2**40)``, or 0 if ``e < min_p``. Where
   m is infinite or all logits are NaN, the largest logits have weight 1 and others 0.
2. ``top_k`` keeps the k largest logits; ties go to the lowest indices. 0 or less keeps all.
3. ``top_p`` keeps of these, in descending order (ties by ascending index), the fewest whose weights
   add up to ``max(floor(floor(top_p * 2**32) * total / 2**32), 1)``; at 1 it keeps all.
4. ``r = floor(u * total / 2**64)``, where total is the sum of the weights kept, and u the first 64
   bits of Philox4x32-10 for the counter (offset, 0) and the key seed, both 64 bits, low words
   first. The result is the lowest index at which the running sum of the weights kept, in ascending
   order of index, exceeds r.

``e`` is the probability of a token divided by the largest one, so min_p acts before top_k and
top_p, as in vLLM. In transformers it acts after them. Either keeps the same tokens unless ``top_p``
is below 1: here its share is of what min_p leaves, there of all, so fewer tokens may be kept here.

With a temperature of 0 the result is the index of the largest logit, the lowest if tied. Integer
sums have no order, so a row's result depends on the row, its settings, its seed and its offset
alone.

Values out of range in arrays are clamped: a temperature that is not at least 1e-30 (0, negative,
NaN) is 0, above 1e38 it is 1e38; top_p and min_p are clamped to 0 .. 1, and a NaN switches them
off.

Philox is J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw: Parallel random numbers: as easy as
1, 2, 3 (SC 2011).
"""

from __future__ import annotations

from ptxgen.numerics.contract import Contract
from ptxgen.numerics.signature import Signature

TOPK_CONTRACT = Contract("topk", 1, "descending; equal ones by ascending index", "any")
SAMPLE_CONTRACT = Contract("sample", 2, "integer weights, Philox4x32-10, the inverse sum", "simt")

K_MAX = 1024
VOCABULARY_MAX = 1 << 20
WEIGHT_BITS = 40
"""Number of fractional bits of weights in ``sample``: the sum of 2**20 weights fits in 64 bits."""
TEMPERATURE_MIN, TEMPERATURE_MAX = 1e-30, 1e38
"""Range of temperatures that divide logits; below it, a row is greedy."""
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
ROUTE = Signature(
    "route_tokens",
    ("logits",),
    ("weights", "experts"),
    {"": {"logits": "T E", "weights": "T J", "experts": "T J"}},
    ("T", "E", "J"),
)
NORMAL_MIN = 1e-20
"""Addend of the sum of a token's weights, by which a router divides them."""
_SETTINGS = ("temperature", "top_k", "top_p", "min_p", "seed", "offset")
SAMPLE = Signature(
    "sample",
    ("logits", *_SETTINGS),
    ("out",),
    {"": {"logits": "... N", **dict.fromkeys(_SETTINGS, "..."), "out": "..."}},
    ("M", "N"),
    optional=frozenset(_SETTINGS),
)
TOKEN_LOGPROBS = Signature(
    "token_logprobs",
    ("logits", "ids", "temperature"),
    ("out",),
    {"": {"logits": "... N", "ids": "...", "temperature": "...", "out": "..."}},
    ("M", "N"),
    optional=frozenset({"temperature"}),
)
