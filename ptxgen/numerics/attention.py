"""Attention: its contract, its constants, and which keys a query sees.

The ``attention`` contract, version 2
-------------------------------------
Of one query ``q`` of a head, and the keys ``k[j]`` and values ``v[j]`` of its sequence that it sees
(:func:`span`, and a boolean mask), j counting from the first key of the sequence. All in f32, each
step rounded once; ``dot16`` is a step of ``tc16``, and ``ex2`` that of :mod:`ptxgen.numerics.ex2`.
``attention32``, of f32, is at version 1, and ``dot16`` is 16 steps of ``fma`` there.

1. Keys are taken in blocks of :func:`block` keys from key 0 on, blocks in splits of :data:`SPLIT`
   keys, ascending. A split begins with ``m = -inf``, ``M = -inf``, ``l[0..3] = +0``, ``o = +0``.
2. *Scores*: ``s = dot16(q[c:c+16], k[j, c:c+16], s)`` for c ascending, from +0, the last group
   filled up with zeros; then ``s + 0``. The logit in base 2 is ``t = s * c``, where ``c`` is
   ``scale * LOG2_E`` rounded. It is not rounded where the product is a term of an fma (below).
   With a softcap, a bias or slopes, or a scale that is not positive, it is rounded, and
   ``t = cap2 * tanh(s * (scale / cap))`` with a softcap, ``cap2 = cap * LOG2_E``; then
   ``t = fma(bias, LOG2_E, t)``; then ``t = fma(slope2, j - i, t)``, where ``slope2`` is
   ``slope * LOG2_E``, and i the query's own position.
3. *Maximum*: ``m`` is the largest of m and the block's scores (where t is rounded: logits), NaN if
   one is. ``M' = m * c`` (``m``); 0 stands for it below where it is -inf. ``l`` and ``o`` are
   multiplied by ``power(M - M')``; then M is M'. In ``attention32`` ``M' = ceil(m * c)``
   (``ceil(m)``), so that these factors are powers of two.
4. *Weights*: ``p = ex2(fma(s, c, -M))`` (``ex2(t - M)``), +0 for a key that is not seen. In
   ``attention32`` ``w = saturate(fma(s, -c / 128, M / 128))`` (``fma(t, -1 / 128, M / 128)``),
   between 0 and 1, where NaN becomes 0; a key that is not seen has w = 1. ``n = rint(-128 w)``,
   ``f = -128 w - n``, ``p = 2 + f * EXP2(f)`` by Horner's rule, in fma, and n is added to the
   exponent field of p: ``p = 2 * 2**(t - M)``, and +0 for w = 1.
5. *Sums*: ``l[j / 2 % 4] += p`` for j ascending. ``o = dot16(p16[j:j+16], v[j:j+16], o)`` for j
   ascending, where p16 is p in the dtype of v, rounded once. A value whose key is not seen counts
   as 0, whatever it is.
6. *Merge*: at the end of a split ``l = (l[0] + l[1]) + (l[2] + l[3])``. Splits are joined
   ascending, from ``(-inf, -inf, 0, 0)``: ``m = max(m, m')``, ``M = max(M, M')``, and l and o are
   ``fma(x', power(M' - M), x * power(old M - M))``. With a sink, a logit of the head without a
   value, ``t = sink * LOG2_E``, ``M = max(M, t)`` (``ceil(t)`` in ``attention32``), and l is
   ``fma(l, power(old M - M), p)``, p being the weight of t; o is multiplied by the power.
7. *Result*: ``(o + 0) / l`` rounded to f32, then to its dtype; ``lse = fma(M, LN2, log(l))``
   (``M - 1`` in ``attention32``), by the logarithm of ``lse/1``. Where l is 0 (nothing is seen)
   they are 0 and -inf; where m is NaN or +inf both are NaN.

``power(n)`` is ``ex2(n)``, and 0 of NaN; in ``attention32`` ``2**n`` for -127 < n <= 0, else 0.
A block of which a query sees nothing changes no bit, so kernels leave it out. Nothing but the
query, its keys and values, and their places in the sequence is read: not the batch, nor the number
of queries or heads, nor where keys lie in memory.

The ``attention_grad`` contract, version 3
------------------------------------------
Of a sequence and a head of keys. A row is a query of one of the heads that share it; ``do``,
``o``, ``lse`` are its gradient, result and logarithm, and d is a gradient. ``attention_grad32``,
of f32, is at version 2, and ``dot16`` is 16 steps of ``fma`` there.

1. ``D = sum(do * o)`` of a row, in the order of ``rows/1``.
2. *Weights*: s and t as in step 2 above. ``p = ex2(fma(s, c, b))``, or ``ex2(fma(t, 1, b))``,
   where ``b = -lse * LOG2_E``, -inf where lse is: ``p = 2**(t - lse LOG2_E)``, a share as the
   result has it. In ``attention_grad32`` p is that of ``w = saturate(fma(s, -c / 128, b))``, or
   ``fma(t, -1 / 128, b)``, as in step 4, where ``b = fma(lse, LOG2_E / 128, 1 / 128)``, +inf where
   lse is -inf. It is NaN where lse is.
3. *Logits*: ``dp = dot16(do[c:c+16], v[j, c:c+16], dp)``, as scores are; ``ds = p * (dp - D)``, two
   roundings: the gradient of the bias. With a softcap it is then multiplied by ``fma(-h, h, 1)``,
   where h is the tanh of step 2.
4. *Sums*, from +0, of p16 and ds16, which are p and ds in the dtype of q, rounded once:
   ``dv[j] = dot16(p16[r:r+16, j], do[r:r+16], dv[j])`` and
   ``dk[j] = dot16(ds16[r:r+16, j], q[r:r+16], dk[j])`` for rows r ascending, 16 at a time;
   ``dq[r] = dot16(ds16[r, j:j+16], k[j:j+16], dq[r])`` for keys j ascending, multiples of 16.
   Rows are in order of blocks of :data:`QUERIES` queries, of heads, and of queries of the block;
   each head's are filled up to 16 with zeros, as the last keys are. Where a row does not see a key
   p16 and ds16 are 0, and so is what they are multiplied by, whatever it is.
5. *Parts*: heads that share keys are taken in parts of :func:`part`. Each has sums of its own, and
   ``dk`` and ``dv`` are these, added in f32 in order: ``(dk0 + dk1) + dk2``.
6. *Results*: ``dv + 0``, ``fma(dk, scale, 0)`` and ``fma(dq, scale, 0)``, rounded to the dtype.

Sixteen rows that do not see a key change no bit of its gradients, nor sixteen keys that a row does
not see. So gradients depend on the sequence alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ptxgen.numerics.activation import LOG2_E as LOG2_E
from ptxgen.numerics.contract import Contract
from ptxgen.numerics.functions import EXP2

_WORDS = "blocks of 128 keys (64): p = 2^(t - m), o = {}(p, v, o); splits of 1024"
ATTENTION: Mapping[str, Contract] = MappingProxyType(
    {
        "tc": Contract("attention", 2, _WORDS.format("dot16"), "tc", activations=False),
        "simt": Contract("attention32", 1, _WORDS.format("fma"), "simt", activations=False),
    }
)
"""The contract by tier."""

_GRAD = "p = 2^(t - lse log2 e), ds = p (dp - D); sums over rows and over keys ascending, by {}"
ATTENTION_GRAD: Mapping[str, Contract] = MappingProxyType(
    {
        "tc": Contract("attention_grad", 3, _GRAD.format("dot16"), "tc", activations=False),
        "simt": Contract("attention_grad32", 2, _GRAD.format("fma"), "simt", activations=False),
    }
)
"""The contract of the gradients by tier."""

SPLIT = 1024
"""Keys of a split. Each split has sums of its own, which are then merged in order."""
LANES = 4
"""Partial sums of weights in a split."""
PAIR = 2
"""Neighbouring keys whose weights are added to the same partial sum."""
HEAD_MAX = 256
"""The largest head dimension."""
RANGE = 128
"""Powers of two, from the maximum downwards, that weights of ``attention32`` have."""
LN2 = float.fromhex("0x1.62e430p-1")

WEIGHT = tuple(2 * c for c in EXP2)
"""Ascending coefficients of ``2 (2**f - 1) / f``, |f| <= 1/2: weights of ``attention32`` to 2**-28
(``tools/fit_functions.py``)."""


def block(head: int, head_v: int) -> int:
    """Keys of a block, by the head dimensions of keys and values."""
    return 128 if max(head, head_v) <= 128 else 64


QUERIES = 64
"""Queries of one head that are added one after the other in sums over rows."""
PART = 4
"""Most query heads, of those that share keys, whose rows go into one partial sum."""


def parts(group: int) -> int:
    """Number of partial sums over rows for ``group`` query heads that share keys."""
    return -(-group // PART)


def part(group: int) -> int:
    """Query heads of one partial sum over rows; the last sum may have fewer."""
    return -(-group // parts(group))


def span(query: int, queries: int, keys: int, causal: bool, window: int | None) -> tuple[int, int]:
    """Returns the half-open range of keys that a query may see.

    ``query``: its index in a sequence of ``queries`` queries and ``keys`` keys, whose last query
    stands at the last key. ``causal``: no key behind it; ``window``: no key that is ``window`` or
    more places away.
    """
    at = query + keys - queries
    low = 0 if window is None else max(0, at - window + 1)
    high = min(keys, at + 1) if causal else keys if window is None else min(keys, at + window)
    return low, max(low, high)
