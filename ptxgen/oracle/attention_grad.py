"""Oracle of attention's gradients: contract ``attention_grad/3``, step by step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ptxgen.numerics.attention import LOG2_E, QUERIES, RANGE, part
from ptxgen.numerics.softcap import tanh
from ptxgen.oracle.attention import (
    Array,
    QueryRows,
    arithmetic_of,
    heads_of,
    sequences,
    visibility,
    weight_from_base,
)
from ptxgen.oracle.dot16 import TERMS
from ptxgen.oracle.f32 import F32, add, fma, mul
from ptxgen.oracle.formula import call, stored, widened
from ptxgen.oracle.reduction_order import reduce

_ZERO = np.float32(0)
_NAN = np.float32(np.nan)


@dataclass(frozen=True)
class OutputGradients:
    """Per-row inputs of a backward pass: output gradients ``do`` [R, E], log-sum-exps ``lse`` [R],
    and ``delta = sum(do * o)`` [R].
    """

    do: Array
    lse: F32
    delta: F32


def row_orders(queries: int, group: int) -> list[NDArray[np.int64]]:
    """Returns, for each partial sum of ``dk`` and ``dv``, the query rows in their order of
    addition.

    A row is its index ``query * group + head``, where ``group`` query heads share a key head; -1
    stands for a row of zeros, which pads to a multiple of 16.
    """
    heads, found = part(group), []
    for first in range(0, group, heads):
        rows: list[int] = []
        for block in range(0, queries, QUERIES):
            own = range(block, min(block + QUERIES, queries))
            for head in range(first, min(first + heads, group)):
                rows += [query * group + head for query in own] + [-1] * (-len(own) % TERMS)
        found.append(np.array(rows))
    return found


def _sum_over_rows(of: QueryRows, w: F32, x: Array, seen: NDArray[np.bool_], group: int) -> F32:
    """Returns ``w.T @ x`` [K, N], where each key's sum is over the query rows that see it, in the
    order of contract ``attention_grad``.

    ``w``, ``seen`` (whether the row sees the key): [R, K]; ``x`` [R, N]; ``of``: the arithmetic;
    ``group``: query heads per key head.
    """
    total = None
    for rows in row_orders(len(w) // group, group):
        there = (rows >= 0)[:, None]
        own, values = np.where(there, w[rows], _ZERO), np.where(there, x[rows], 0).astype(x.dtype)
        zeros = np.zeros((w.shape[1], x.shape[1]), np.float32)
        sums = of.summed(own.T, values, (seen[rows] & there).T, zeros)
        total = sums if total is None else add(total, sums)
    assert total is not None, "a group has a head"
    return total


def _base(lse: F32, tier: str) -> F32:
    """Returns the ``base`` with which :func:`weight_from_base` gives a key's softmax probability
    ``exp(logit - lse)``; the probability is 0 where ``lse`` is -inf.
    """
    empty = lse == -np.inf
    with np.errstate(all="ignore"):
        if tier != "simt":
            return np.where(empty, lse, mul(lse, np.float32(-LOG2_E)))
        base = fma(lse, np.float32(LOG2_E / RANGE), np.float32(1 / RANGE))
    return np.where(empty, np.float32(np.inf), base)


def gradients(
    of: QueryRows,
    k: Array,
    v: Array,
    by: OutputGradients,
    seen: NDArray[np.bool_],
    bias: F32 | None,
    slope: F32 | None,
    relative: F32,
    group: int,
) -> tuple[F32, F32, F32, F32]:
    """Returns the gradients by queries [R, D] and keys [K, D], both before the factor ``scale``, by
    values [K, E] and by the bias [R, K], of one key head.

    ``of``: the query rows; ``by``: their output gradients; ``seen`` (whether the row sees the key),
    ``bias``, ``relative`` (key minus query position): [R, K]; ``slope`` (ALiBi): [R, 1]; ``group``:
    query heads per key head.
    """
    logits = of.logits
    s = of.scores(k)
    t = logits.of(s, bias, slope, relative)
    p = weight_from_base(t, logits.factor, _base(by.lse, of.tier)[:, None], of.tier)
    p = np.where(np.isnan(by.lse)[:, None], _NAN, p)
    dp = QueryRows(by.do, of.tier, of.dtype, of.core, logits).scores(v)
    ds = mul(p, add(dp, -by.delta[:, None]))
    dbias = np.where(seen, ds, _ZERO)
    if logits.softcap is not None:
        h = call(tanh, mul(s, np.float32(logits.scale / logits.softcap)))
        ds = mul(ds, fma(-h, h, np.float32(1)))
    p, ds = np.where(seen, p, _ZERO), np.where(seen, ds, _ZERO)
    dq = of.summed(ds, k, seen, np.zeros((len(s), k.shape[1]), np.float32))
    dk = _sum_over_rows(of, ds, of.q, seen, group)
    dv = _sum_over_rows(of, p, by.do, seen, group)
    return dq, dk, dv, dbias


def attention_backward(
    do: ArrayLike,
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    o: ArrayLike,
    lse: ArrayLike,
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
    slopes: ArrayLike | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    layout: str = "bhsd",
    dlogits: bool = False,
    arch: str = "sm_90",
) -> Any:
    """Gradients of :func:`ptxgen.attention`: returns dq, dk, dv, ``D = sum(do * o)`` and, with
    ``dlogits``, the gradient by the logits (so by the bias) [..., H, S, K].

    ``do``: gradient by the outputs; ``o``, ``lse``: results of the forward pass; ``k``, ``v``:
    arrays whose leading dimensions equal those of q, without broadcasting. The other arguments are
    those of the forward pass.
    """
    do, q, k, v, lse = (np.asarray(x) for x in (do, q, k, v, lse))
    with np.errstate(all="ignore"):
        products = np.asarray(do).astype(np.float32) * np.asarray(o).astype(np.float32)
    delta = reduce("sum", products)[..., 0]
    kind = _, dtype, core, logits = arithmetic_of(q, scale, softcap, (bias, slopes), arch)
    by = np.float32(logits.scale)
    dq, dk, dv = (np.zeros_like(x) for x in (q, k, v))
    counts = lengths, starts, query_lengths, cu_seqlens, cu_seqlens_k, None
    heads_first = layout == "bhsd" and cu_seqlens is None
    tokens = (x.shape[-2 if heads_first else -3] for x in (q, k))
    shape = *q.shape[:-3], heads_of(q, layout, counts), *tokens
    dbias = np.zeros(shape, np.float32) if dlogits else None
    group = heads_of(q, layout, counts) // heads_of(k, layout, counts)
    read = sequences((q, k, v, do, lse), mask, bias, counts, layout)
    written = sequences((dq, dk, dv, delta[..., None], delta), dbias, None, counts, layout)
    for one, to in zip(read, written, strict=True):
        queries, keys = len(one.q), len(one.k)
        positions = np.arange(queries).repeat(group)
        if not len(positions) or not keys:
            continue
        seen, relative = visibility(positions, queries, keys, causal, window)
        for head in range(one.k.shape[1]):
            own = slice(head * group, (head + 1) * group)
            rows_q, rows_do, head_k, head_v = (
                x if core is None else np.ascontiguousarray(x).view(np.uint16)
                for x in (
                    one.q[:, own].reshape(len(positions), -1),
                    one.out[:, own].reshape(len(positions), -1),
                    one.k[:, head],
                    one.v[:, head],
                )
            )
            added, there = (
                None if x is None else np.asarray(x)[own].swapaxes(0, 1).reshape(-1, keys)
                for x in (one.bias, one.mask)
            )
            slope = None if slopes is None else widened(np.asarray(slopes), "f32")[own]
            by_q, by_k, by_v, by_bias = gradients(
                QueryRows(rows_q, *kind),
                head_k,
                head_v,
                OutputGradients(rows_do, one.lse[:, own].reshape(-1), to.lse[:, own].reshape(-1)),
                seen if there is None else seen & there,
                added,
                None if slope is None else np.tile(slope, queries)[:, None],
                relative,
                group,
            )
            to.q[:, own] = stored(fma(by_q, by, _ZERO), dtype).reshape(queries, group, -1)
            to.k[:, head] = stored(fma(by_k, by, _ZERO), dtype)
            to.v[:, head] = stored(add(by_v, _ZERO), dtype)
            if to.mask is not None:
                to.mask[own] = by_bias.reshape(queries, group, keys).swapaxes(0, 1)
    return (dq, dk, dv, delta, dbias) if dlogits else (dq, dk, dv, delta)
