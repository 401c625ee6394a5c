"""Oracle of attention: contract ``attention/2``, step by step."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ptxgen.numerics.activation import ROUNDER
from ptxgen.numerics.attention import (
    LANES,
    LN2,
    LOG2_E,
    PAIR,
    RANGE,
    SPLIT,
    WEIGHT,
    block,
    span,
)
from ptxgen.numerics.contract import AUTO_TIER, TensorCore
from ptxgen.numerics.dtype import DTYPES, NAMES
from ptxgen.numerics.ex2 import LOWEST
from ptxgen.numerics.softcap import tanh
from ptxgen.oracle.dot16 import TERMS, Factors, accumulate, factors, tensor_core
from ptxgen.oracle.ex2 import ex2
from ptxgen.oracle.f32 import F32, add, fma, mul
from ptxgen.oracle.formula import call, stored, widened
from ptxgen.oracle.gemm import chain, chain16
from ptxgen.oracle.half import downcast
from ptxgen.oracle.logsumexp import log

Array = NDArray[Any]
Seen = NDArray[np.bool_]
_ONE = np.float32(1)


@dataclass(frozen=True)
class Logits:
    """Conversion of attention scores ``q . k`` to logits in base 2, by the options ``scale`` and
    ``softcap``.

    ``rounded``: whether logits are rounded to f32; otherwise ``score * factor`` is a product within
    an fma (step 2 of contract ``attention``).
    """

    scale: float
    softcap: float | None = None
    rounded: bool = False

    @property
    def factor(self) -> np.float32:
        """Factor ``scale * log2(e)`` from scores to base-2 logits, f32; 1 if logits are rounded, as
        the factor is applied before.
        """
        return _ONE if self.rounded else np.float32(self.scale * math.log2(math.e))

    def of(self, s: F32, bias: F32 | None, slope: F32 | None, relative: F32) -> F32:
        """Returns the rounded base-2 logits of scores ``s``; ``s`` itself if logits are not
        rounded.

        ``bias``, if given, is added; so is ``slope * relative`` (ALiBi), where ``relative`` is the
        key's position minus the query's.
        """
        if not self.rounded:
            return s
        t = mul(s, np.float32(self.scale * math.log2(math.e)))
        if self.softcap is not None:
            u = mul(s, np.float32(self.scale / self.softcap))
            t = mul(call(tanh, u), np.float32(self.softcap * math.log2(math.e)))
        if bias is not None:
            t = fma(bias, np.float32(LOG2_E), t)
        return t if slope is None else fma(mul(slope, np.float32(LOG2_E)), relative, t)


def power(n: F32, tier: str) -> F32:
    """``2**n`` for n <= 0, in tier "simt" for integers; 0 for n < -126 and for NaN."""
    if tier != "simt":
        return ex2(np.fmax(n, np.float32(2 * LOWEST)))
    kept = np.where(n > -127, n, np.float32(-127)).astype(np.int32)
    return ((kept + 127) << 23).view(np.float32)


def weight(t: F32, factor: np.float32, top: F32, tier: str) -> F32:
    """Returns the softmax weight ``2**(t * factor - top)`` of score ``t``; in tier "simt", where
    ``top`` is an integer, twice that, which the division by the sum of weights cancels.

    ``factor``: converts scores to logits in base 2; ``top``: the row's reference exponent.
    """
    if tier == "simt":
        return weight_from_base(t, factor, mul(top, np.float32(1 / RANGE)), tier)
    return weight_from_base(t, factor, -top, tier)


def weight_from_base(t: F32, factor: np.float32, base: F32, tier: str) -> F32:
    """Returns the softmax weight ``2**(t * factor + base)`` of score ``t``; in tier "simt"
    ``2 * 2**(t * factor - 128 * base)``.

    ``base``: minus the row's reference exponent; in tier "simt" the exponent / 128.
    """
    with np.errstate(all="ignore"):
        if tier != "simt":
            return ex2(fma(t, factor, base))
        w = fma(t, np.float32(-factor / RANGE), base)
    w = np.where(w > 0, np.minimum(w, _ONE), np.float32(0))  # NaN is 0
    rounded = fma(w, np.float32(-RANGE), np.float32(ROUNDER))
    f = fma(w, np.float32(-RANGE), -add(rounded, np.float32(-ROUNDER)))
    p = np.full_like(f, WEIGHT[-1])
    for coefficient in (*WEIGHT[-2::-1], 2.0):
        p = fma(p, f, np.float32(coefficient))
    return (p.view(np.int32) + (rounded.view(np.int32) << 23)).view(np.float32)


def _reference_exponent(m: F32, factor: np.float32, tier: str) -> F32:
    """Exponent that a row's softmax weights are relative to: its maximum ``m`` times ``factor``, in
    tier "simt" rounded up to an integer.
    """
    with np.errstate(all="ignore"):
        t = np.asarray(m * factor, np.float32)
        return t if tier != "simt" else np.ceil(t)


def _finite_reference(top: F32) -> F32:
    return np.where(top == -np.inf, np.float32(0), top)


@dataclass(frozen=True)
class Sums:
    """Softmax state of R query rows after some of their keys.

    ``m`` [R]: largest score; ``top`` [R]: reference exponent of weights; ``total`` [R]: sum of
    weights; ``values`` [R, E]: weighted sum of values.
    """

    m: F32
    top: F32
    total: F32
    values: F32

    def __iter__(self) -> Iterator[F32]:
        return iter((self.m, self.top, self.total, self.values))


@dataclass(frozen=True)
class QueryRows:
    """Query rows that share keys, and the arithmetic of their attention.

    ``q`` [R, D]: the rows, as 16-bit patterns (uint16) or f32; ``tier``: "tc" or "simt"; ``dtype``:
    of queries, keys and values, short; ``core``: tensor-core model, None in tier "simt";
    ``logits``: conversion of scores to logits.
    """

    q: Array
    tier: str
    dtype: str
    core: TensorCore | None
    logits: Logits

    def scores(self, k: Array) -> F32:
        """Returns the query rows' scores ``q @ k.T``, [R, K], in f32."""
        if self.core is None:
            return chain(self.q, k.T, max(1, k.shape[1]))
        return chain16(self.q, k.T, max(1, k.shape[1]), self.dtype, self.core)

    def split(
        self,
        k: Array,
        v: Array,
        seen: Seen,
        bias: F32 | None,
        slope: F32 | None,
        relative: F32,
        keys: int,
    ) -> Sums:
        """Computes the rows' softmax state over one split, keys [K, D] and values [K, E].

        ``seen`` (whether the row sees the key), ``bias``, ``relative`` (key minus query position):
        [R, K]; ``slope`` (ALiBi): [R, 1]; ``keys``: number of keys per block.
        """
        count, factor = len(self.q), self.logits.factor
        m = np.full(count, -np.inf, np.float32)
        top = m.copy()
        sums = np.zeros((count, LANES), np.float32)
        values = np.zeros((count, v.shape[1]), np.float32)
        for start in range(0, len(k), keys):
            part = slice(start, start + keys)
            there = seen[:, part]
            added = None if bias is None else bias[:, part]
            t = self.logits.of(self.scores(k[part]), added, slope, relative[:, part])
            t = np.where(there, t, np.float32(-np.inf))
            m = np.maximum(m, t.max(axis=1))  # NaN if one is
            new = _reference_exponent(m, factor, self.tier)
            with np.errstate(all="ignore"):
                change = power(top - new, self.tier)
            top = new
            sums, values = mul(sums, change[:, None]), mul(values, change[:, None])
            p = weight(t, factor, _finite_reference(top)[:, None], self.tier)
            p = np.where(there, p, np.float32(0))
            for j in range(p.shape[1]):
                lane = j // PAIR % LANES
                sums[:, lane] = add(sums[:, lane], p[:, j])
            values = self.summed(p, v[part], there, values)
        total = add(add(sums[:, 0], sums[:, 1]), add(sums[:, 2], sums[:, 3]))
        return Sums(m, top, total, values)

    def summed(self, p: F32, v: Array, seen: Seen, values: F32) -> F32:
        """Returns ``values + p @ v`` [R, E] for weights ``p`` [R, K], over the keys that each row
        sees (``seen`` [R, K]).
        """
        if self.core is None:
            for j in range(p.shape[1]):
                own = np.where(seen[:, j, None], v[None, j], np.float32(0))
                values = fma(p[:, j, None], own, values)
            return values
        weights = factors(_pad_terms(downcast(p, self.dtype).T, 0), self.dtype)
        number = factors(_pad_terms(v, 0), self.dtype)
        masked = ~_pad_terms(seen.T, True)
        nonfinite = ~np.isfinite(number.value)
        for j in range(0, len(number.value), TERMS):
            group = slice(j, j + TERMS)
            left = Factors(weights.value[group, :, None], weights.exponent[group, :, None])
            right = Factors(number.value[group, None], number.exponent[group, None])
            if nonfinite[group].any() and masked[group].any():
                zeroed = masked[group, :, None] & nonfinite[group, None]
                zero = factors(np.zeros(1, np.uint16), self.dtype)
                right = Factors(
                    np.where(zeroed, 0.0, right.value),
                    np.where(zeroed, zero.exponent, right.exponent),
                )
            with np.errstate(all="ignore"):
                values = accumulate(left, right, values, self.core)
        return values


def _pad_terms(x: Array, fill: Any) -> Array:
    """Pads ``x`` with ``fill`` along its first axis, to a multiple of 16."""
    missing = -len(x) % TERMS
    return np.concatenate([x, np.full((missing, *x.shape[1:]), fill, x.dtype)])


def merge(parts: Sequence[Sums], tier: str) -> Sums:
    """Merges the softmax states of splits, in ascending order of keys."""
    count, width = parts[0].values.shape
    m = np.full(count, -np.inf, np.float32)
    top, total, values = m.copy(), np.zeros(count, np.float32), np.zeros((count, width), np.float32)
    for one in parts:
        m = np.maximum(m, one.m)
        with np.errstate(all="ignore"):
            new = np.maximum(top, one.top)
            old, own = power(top - new, tier), power(one.top - new, tier)
        total = fma(one.total, own, mul(total, old))
        values = fma(one.values, own[:, None], mul(values, old[:, None]))
        top = new
    return Sums(m, top, total, values)


def add_sink(sums: Sums, sink: F32, tier: str) -> Sums:
    """Adds an attention sink to the softmax state of rows: a logit ``sink`` [R] that counts in the
    sum of weights and has no value.
    """
    m, top, total, values = sums
    with np.errstate(all="ignore"):
        t = mul(sink, np.float32(LOG2_E))
        new = np.maximum(top, _reference_exponent(t, _ONE, tier))
        old = power(top - new, tier)
    total = fma(total, old, weight(t, _ONE, _finite_reference(new), tier))
    return Sums(np.maximum(m, t), new, total, mul(values, old[:, None]))


def normalize(sums: Sums, tier: str) -> tuple[F32, F32]:
    """Returns the outputs [R, E] in f32, and the log-sum-exps [R], of a final softmax state."""
    m, top, total, values = sums
    empty, lost = total == 0, ~(m < np.inf)
    with np.errstate(all="ignore"):
        o = np.divide(add(values, np.float32(0)), total[:, None])
        base = top if tier != "simt" else add(top, np.float32(-1))
        lse = fma(base, np.float32(LN2), log(np.where(empty | lost, _ONE, total)))
    o, lse = np.where(empty[:, None], np.float32(0), o), np.where(empty, np.float32(-np.inf), lse)
    nan = np.float32(np.nan)
    return np.where(lost[:, None], nan, o), np.where(lost, nan, lse)


def visibility(
    positions: NDArray[np.int64], queries: int, keys: int, causal: bool, window: int | None
) -> tuple[Seen, F32]:
    """Returns two arrays [R, K]: whether each row may see each key, and the key's position minus
    that of the row's query.

    ``positions`` [R]: index of each row's query; a row whose index is not in [0, ``queries``) sees
    nothing. The others: see :func:`ptxgen.numerics.attention.span`.
    """
    spans = [span(int(i), queries, keys, causal, window) for i in positions]
    low, high = (np.array([s[i] for s in spans], np.int64).reshape(-1, 1) for i in (0, 1))
    at = np.arange(keys)
    seen = (low <= at) & (at < high) & ((positions >= 0) & (positions < queries))[:, None]
    return seen, (at - (positions + keys - queries)[:, None]).astype(np.float32)


def rows(
    of: QueryRows,
    k: Array,
    v: Array,
    positions: NDArray[np.int64],
    queries: int,
    *,
    causal: bool = False,
    window: int | None = None,
    mask: Seen | None = None,
    bias: F32 | None = None,
    slopes: F32 | None = None,
    sinks: F32 | None = None,
) -> tuple[F32, F32]:
    """Computes outputs [R, E] and log-sum-exps [R] of query rows ``of`` that share keys ``k`` [K,
    D] and values ``v`` [K, E].

    ``positions`` [R]: index of each row's query in its sequence of ``queries``; ``causal``,
    ``window``: see :func:`ptxgen.numerics.attention.span`; ``mask`` (true: visible), ``bias`` [R,
    K]; ``slopes``, ``sinks`` [R].
    """
    keys = len(k)
    seen, relative = visibility(positions, queries, keys, causal, window)
    seen = seen if mask is None else seen & mask
    slope = None if slopes is None else slopes[:, None]
    width = block(k.shape[1], v.shape[1])
    parts = []
    for start in range(0, keys, SPLIT):
        part = slice(start, start + SPLIT)
        added = None if bias is None else bias[:, part]
        arrays = k[part], v[part], seen[:, part], added, slope, relative[:, part]
        parts.append(of.split(*arrays, width))
    if not parts:
        count = len(of.q)
        none = np.full(count, -np.inf, np.float32)
        nothing = np.zeros(count, np.float32), np.zeros((count, v.shape[1]), np.float32)
        parts.append(Sums(none, none.copy(), *nothing))
    sums = merge(parts, of.tier)
    if sinks is not None:
        sums = add_sink(sums, sinks, of.tier)
    return normalize(sums, of.tier)


@dataclass(frozen=True)
class OneSequence:
    """Arrays of one sequence: queries [S, H, D], keys [K, HK, D], values [K, HK, E], mask and bias
    [H, S, K], and views to write results to: ``out`` [S, H, E] and ``lse`` [S, H].
    """

    q: Array
    k: Array
    v: Array
    mask: Seen | None
    bias: Array | None
    out: Array
    lse: F32


def attention(
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    *,
    causal: bool = False,
    window: int | None = None,
    bias: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    lengths: ArrayLike | None = None,
    starts: ArrayLike | None = None,
    query_lengths: ArrayLike | None = None,
    cu_seqlens: ArrayLike | None = None,
    cu_seqlens_k: ArrayLike | None = None,
    block_table: ArrayLike | None = None,
    sinks: ArrayLike | None = None,
    slopes: ArrayLike | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    layout: str = "bhsd",
    return_lse: bool = False,
    check: bool = False,
    arch: str = "sm_90",
) -> Any:
    """``softmax(scale · q kᵀ + mask) v`` with the bits of :func:`ptxgen.attention`, whose arguments
    it takes. ``check`` is ignored; ``arch`` selects the model of tensor cores.
    """
    q, k, v = (np.asarray(x) for x in (q, k, v))
    kind = _, dtype, core, _ = arithmetic_of(q, scale, softcap, (bias, slopes), arch)
    out = np.zeros((*q.shape[:-1], v.shape[-1]), q.dtype)
    lse = np.full(q.shape[:-1], -np.inf, np.float32)
    arrays = q, k, v, out, lse
    counts = lengths, starts, query_lengths, cu_seqlens, cu_seqlens_k, block_table
    group = heads_of(q, layout, counts) // heads_of(k, layout, counts, block_table is not None)
    for one in sequences(arrays, mask, bias, counts, layout):
        positions = np.arange(len(one.q)).repeat(group)
        if not len(positions):
            continue
        for head in range(one.k.shape[1]):
            own = slice(head * group, (head + 1) * group)
            shape = len(positions), -1
            rows_q, keys, values = (
                x if core is None else np.ascontiguousarray(x).view(np.uint16)
                for x in (one.q[:, own].reshape(shape), one.k[:, head], one.v[:, head])
            )
            each = {
                name: None if x is None else np.asarray(x)[own].swapaxes(0, 1).reshape(shape)
                for name, x in (("mask", one.mask), ("bias", one.bias))
            }
            heads: dict[str, Any] = {
                name: None if x is None else np.tile(_per_head(x)[own], len(one.q))
                for name, x in (("sinks", sinks), ("slopes", slopes))
            }
            found, sums = rows(
                QueryRows(rows_q, *kind),
                keys,
                values,
                positions,
                len(one.q),
                causal=causal,
                window=window,
                **each,
                **heads,
            )
            one.out[:, own] = stored(found, dtype).reshape(len(one.q), group, -1)
            one.lse[:, own] = sums.reshape(len(one.q), group)
    return (out, lse) if return_lse else out


def _per_head(x: ArrayLike) -> F32:
    """Converts an array of one value per head to f32, exactly."""
    return np.asarray(x).astype(np.float32)


def arithmetic_of(
    q: Array, scale: float | None, softcap: float | None, added: Sequence[Any], arch: str
) -> tuple[str, str, TensorCore | None, Logits]:
    """Returns a call's tier, short dtype, tensor-core model (None in tier "simt"), and conversion
    of scores to logits.

    ``q``: the queries; ``added``: bias and slopes, None if absent. Logits are rounded if there is
    one of these or a softcap, or if ``scale`` is not positive.
    """
    dtype = DTYPES[q.dtype.name]
    tier = AUTO_TIER[dtype]
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    rounded = softcap is not None or any(x is not None for x in added) or scale <= 0
    core = tensor_core(arch) if tier == "tc" else None
    return tier, dtype, core, Logits(scale, softcap, rounded)


def _broadcast(x: Array, shape: tuple[int, ...]) -> Array:
    """Broadcasts ``x`` to ``shape``; an array of this shape is returned as it is, writable."""
    return x if x.shape == shape else np.broadcast_to(x, shape)


def heads_of(x: Array, layout: str, counts: Sequence[Any], paged: bool = False) -> int:
    """Number of heads of ``x``, the array q, k or v of an attention call.

    ``layout``: the call's option, "bhsd" or "bshd"; ``counts``: its arguments as in
    :func:`sequences`; ``paged``: whether x is a paged KV cache.
    """
    packed = paged or counts[3] is not None
    return int(x.shape[-3 if layout == "bhsd" and not packed else -2])


def sequences(
    arrays: tuple[Array, ...], mask: Any, bias: Any, counts: Sequence[Any], layout: str
) -> Iterator[OneSequence]:
    """Yields the sequences of an attention call, as views of ``arrays`` (q, k, v, out, lse); the
    keys and values of a paged cache are copies.

    ``mask``, ``bias``, ``layout``: arguments of the call; ``counts``: its arguments lengths,
    starts, query_lengths, cu_seqlens, cu_seqlens_k, block_table, None if absent.
    """
    q, k, v, out, lse = arrays
    lengths, starts, query_lengths, cu, cu_k, table = (
        None if x is None else np.asarray(x).astype(np.int64) for x in counts
    )
    if layout == "bhsd":
        if cu is None and table is None:
            q, k, v, out = (x.swapaxes(-3, -2) for x in (q, k, v, out))
            lse = lse.swapaxes(-2, -1)
        elif cu is None:
            q, out, lse = q.swapaxes(-3, -2), out.swapaxes(-3, -2), lse.swapaxes(-2, -1)
    lead = q.shape[:-3]
    count = len(cu) - 1 if cu is not None else math.prod(lead)
    for b in range(count):
        at = np.unravel_index(b, lead) if cu is None else (slice(cu[b], cu[b + 1]),)
        own = q[at], out[at], lse[at]
        if table is not None:
            keys, values = (
                x[table[b]].reshape(-1, *x.shape[2:])
                if len(table[b])
                else x[:0].reshape(-1, *x.shape[2:])
                for x in (k, v)
            )
        elif cu is not None:
            ends = cu if cu_k is None else cu_k
            keys, values = (x[ends[b] : ends[b + 1]] for x in (k, v))
        else:
            keys, values = (_broadcast(x, (*lead, *x.shape[-3:]))[at] for x in (k, v))
        first = 0 if starts is None else min(max(int(starts[b]), 0), len(keys))
        last = len(keys) if lengths is None else first + max(int(lengths[b]), 0)
        live = slice(0, len(own[0]) if query_lengths is None else max(int(query_lengths[b]), 0))
        queries, outs, sums = (x[live] for x in own)
        shape = *lead, q.shape[-2], q.shape[-3], len(keys)
        seen, added = (
            None if x is None else _broadcast(x, shape)[at][:, live, first:last]
            for x in (mask, bias)
        )
        wide = None if added is None else widened(added, NAMES[added.dtype.name])
        yield OneSequence(queries, keys[first:last], values[first:last], seen, wide, outs, sums)
