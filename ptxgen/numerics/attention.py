"""Attention: its contract, its constants, and which keys a query sees.

The ``attention`` contract, version 2
-------------------------------------
The contract computes the output of one query ``q`` of a head from the keys ``k[j]`` and values
``v[j]`` of its sequence; j is the key's position. The query *sees* a key if :func:`span` and the
boolean mask allow it. All is f32, each step rounded once. ``dot16`` is a step of contract ``tc16``,
``ex2`` that of :mod:`ptxgen.numerics.ex2`. In ``attention32``, for f32 operands, at version 1,
``dot16`` is 16 steps of ``fma``. Parenthesized forms hold where t is rounded (step 2).

1. Keys are processed in blocks of :func:`block` keys and splits of :data:`SPLIT` keys, ascending
   from key 0. A split starts with ``m = -inf``, ``M = -inf``, ``l[0..3] = +0``, ``o = +0``.
2. *Scores*: ``s = dot16(q[c:c+16], k[j, c:c+16], s)`` for c ascending, from +0, the last group
   padded with zeros; then ``s + 0``. The logit in base 2 is ``t = s * c``, where ``c`` is
   ``scale * LOG2_E`` rounded. The product is a term of an fma (below), and so is not rounded.
   With a softcap, a bias or slopes, or a scale that is not positive, t is rounded. With a softcap
   ``t = cap2 * tanh(s * (scale / cap))``, ``cap2 = cap * LOG2_E``; then
   ``t = fma(bias, LOG2_E, t)``; then ``t = fma(slope2, j - i, t)``, where ``slope2`` is
   ``slope * LOG2_E`` and i the query's position.
3. *Maximum*: ``m`` is the largest of m and the block's scores (logits), NaN if any is NaN.
   ``M' = m * c`` (``m``). ``l`` and ``o`` are multiplied by ``power(M - M')``; then M is M', and
   step 4 uses 0 where it is -inf. In ``attention32`` ``M' = ceil(m * c)`` (``ceil(m)``), so that
   these factors are powers of two.
4. *Weights*: ``p = ex2(fma(s, c, -M))`` (``ex2(t - M)``), +0 for a key that is not seen. In
   ``attention32`` ``w = saturate(fma(s, -c / 128, M / 128))`` (``fma(t, -1 / 128, M / 128)``),
   between 0 and 1, where NaN becomes 0; a key that is not seen has w = 1. ``n = rint(-128 w)``,
   ``f = -128 w - n``, ``p = 2 + f * WEIGHT(f)`` by Horner's rule, in fma, and n is added to the
   exponent field of p: ``p = 2 * 2**(t - M)``, and +0 for w = 1.
5. *Sums*: ``l[j / 2 % 4] += p`` for j ascending. ``o = dot16(p16[j:j+16], v[j:j+16], o)`` for j
   ascending, where p16 is p rounded once to the dtype of v. Where the key is not seen, the value
   counts as 0, even if it is NaN or infinite.
6. *Merge*: at the end of a split ``l = (l[0] + l[1]) + (l[2] + l[3])``. Splits are merged in
   ascending order, from ``(m, M, l, o) = (-inf, -inf, 0, 0)``: ``m = max(m, m')``,
   ``M = max(M, M')``, and l and o are ``fma(x', power(M' - M), x * power(old M - M))``. A sink is
   a logit of the head without a value: ``t = sink * LOG2_E``, ``M = max(M, t)`` (``ceil(t)`` in
   ``attention32``), ``l = fma(l, power(old M - M), p)``, where p is the weight of t, and o is
   multiplied by ``power(old M - M)``.
7. *Result*: ``(o + 0) / l`` rounded to f32, then to its dtype; ``lse = fma(M, LN2, log(l))``
   (``M - 1`` in ``attention32``), by the logarithm of ``lse/1``. Where l is 0 (no key is seen)
   they are 0 and -inf; where m is NaN or +inf both are NaN.

``power(n)`` is ``ex2(n)``, and 0 for NaN; in ``attention32`` ``2**n`` for -127 < n <= 0, else 0.
A block without a key that the query sees changes no bit, so kernels skip it. A result depends on
the query, its keys and values, and their positions alone: not on the batch, the number of queries
or heads, or the addresses of keys.

The ``attention_grad`` contract, version 3
------------------------------------------
The contract computes the gradients of one sequence and one key head. A row is one query of one of
the query heads that share the key head; ``do``, ``o`` and ``lse`` are its output gradient, output
and log-sum-exp. ``dx`` is the gradient by x. In ``attention_grad32``, for f32 operands, at version
2, ``dot16`` is 16 steps of ``fma``.

1. ``D = sum(do * o)`` of a row, in the order of ``rows/1``.
2. *Weights*: s and t as in step 2 above. ``p = ex2(fma(s, c, b))``, or ``ex2(fma(t, 1, b))``,
   where ``b = -lse * LOG2_E``, and -inf where lse is -inf: ``p = 2**(t - lse LOG2_E)``, the
   softmax probability. In ``attention_grad32`` p follows as in step 4 above from
   ``w = saturate(fma(s, -c / 128, b))``, or ``fma(t, -1 / 128, b)``, where
   ``b = fma(lse, LOG2_E / 128, 1 / 128)``, and +inf where lse is -inf. p is NaN where lse is.
3. *Logits*: ``dp = dot16(do[c:c+16], v[j, c:c+16], dp)``, as scores are; ``ds = p * (dp - D)``, two
   roundings: the gradient by the bias. With a softcap it is then multiplied by ``fma(-h, h, 1)``,
   where h is the tanh of step 2.
4. *Sums*, from +0, of p16 and ds16, which are p and ds in the dtype of q, rounded once:
   ``dv[j] = dot16(p16[r:r+16, j], do[r:r+16], dv[j])`` and
   ``dk[j] = dot16(ds16[r:r+16, j], q[r:r+16], dk[j])`` for rows r ascending, 16 at a time;
   ``dq[r] = dot16(ds16[r, j:j+16], k[j:j+16], dq[r])`` for keys j ascending, multiples of 16.
   Rows are ordered by block of :data:`QUERIES` queries, then by head, then by query; zeros pad the
   rows of each head, and the last keys, to a multiple of 16. Where a row does not see a key, p16
   and ds16 are 0, and their factors count as 0, even if NaN or infinite.
5. *Parts*: the heads that share keys are split into parts of :func:`part` heads. Each part has its
   own sums for ``dk`` and ``dv``, which are added in f32 in order: ``(dk0 + dk1) + dk2``.
6. *Results*: ``dv + 0``, ``fma(dk, scale, 0)`` and ``fma(dq, scale, 0)``, rounded to the dtype.

Groups of 16 rows that do not see a key change no bit of its gradients, nor do groups of 16 keys
that a row does not see change the row's. So gradients depend on the sequence alone.
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
"""Contract of attention by tier: "tc" for 16-bit operands, "simt" for f32."""

_GRAD = "p = 2^(t - lse log2 e), ds = p (dp - D); sums over rows and over keys ascending, by {}"
ATTENTION_GRAD: Mapping[str, Contract] = MappingProxyType(
    {
        "tc": Contract("attention_grad", 3, _GRAD.format("dot16"), "tc", activations=False),
        "simt": Contract("attention_grad32", 2, _GRAD.format("fma"), "simt", activations=False),
    }
)
"""Contract of attention's gradients by tier: "tc" for 16-bit operands, "simt" for f32."""

SPLIT = 1024
"""Number of keys per split; each split has its own softmax sums, which are merged in order."""
LANES = 4
"""Number of partial sums among which a split's softmax weights are distributed."""
PAIR = 2
"""Number of neighbouring keys whose weights go to the same partial sum: for key j it is sum
``j // PAIR % LANES``."""
HEAD_MAX = 256
"""Largest supported head dimension."""
RANGE = 128
"""Exponent range of softmax weights in ``attention32``: a weight of at most ``2**-RANGE`` times the
largest one is 0."""
LN2 = float.fromhex("0x1.62e430p-1")

WEIGHT = tuple(2 * c for c in EXP2)
"""Ascending coefficients of ``2 (2**f - 1) / f``, |f| <= 1/2, for the softmax weights of
``attention32``; their relative error is 2**-28 (``tools/fit_functions.py``)."""


def block(head: int, head_v: int) -> int:
    """Number of keys per block, the step of the online softmax, by the head dimensions of keys
    (``head``) and of values (``head_v``).
    """
    return 128 if max(head, head_v) <= 128 else 64


QUERIES = 64
"""Number of queries per block in the sums over query rows, ``dk`` and ``dv``. A sum adds a block's
rows head by head, then the rows of the next block."""
PART = 4
"""Largest number of query heads whose rows are added in one partial sum of ``dk`` or ``dv``."""


def parts(group: int) -> int:
    """Number of partial sums of ``dk`` and ``dv``, where ``group`` query heads share a key head."""
    return -(-group // PART)


def part(group: int) -> int:
    """Number of query heads per partial sum of ``dk`` and ``dv``, where ``group`` query heads share
    a key head. The last partial sum may have fewer.
    """
    return -(-group // parts(group))


def span(query: int, queries: int, keys: int, causal: bool, window: int | None) -> tuple[int, int]:
    """Returns the half-open range of key indices that a query may attend to.

    ``query``: its index; its key position is ``query + keys - queries``, so the last query is at
    the last key. ``causal``: excludes later keys; ``window``: excludes keys at a distance of
    ``window`` or more.
    """
    at = query + keys - queries
    low = 0 if window is None else max(0, at - window + 1)
    high = min(keys, at + 1) if causal else keys if window is None else min(keys, at + window)
    return low, max(low, high)
