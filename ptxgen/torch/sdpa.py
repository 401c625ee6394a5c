"""Attention with gradients, and ``scaled_dot_product_attention`` by it; or, where no kernel of that
serves (float64, more than 256 elements a head, another tier), by a product, weights in one pass
over the scores, and a product.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, prod, sqrt
from typing import Annotated, Any

from ptxgen.errors import DtypeError, ShapeError
from ptxgen.numerics.attention import HEAD_MAX
from ptxgen.numerics.contract import AUTO_TIER
from ptxgen.numerics.dtype import DTYPES
from ptxgen.numerics.formula import where
from ptxgen.numerics.option import Bool, Real, Tier
from ptxgen.numerics.signature import broadcast
from ptxgen.ops import OPERATIONS
from ptxgen.ops.attention import TAKES
from ptxgen.ops.pointwise import Pointwise
from ptxgen.ops.views import readable
from ptxgen.program.buffer import Buffer
from ptxgen.program.build import Builder, ProgramBuilder
from ptxgen.program.operation import Backward, Gradients, Op
from ptxgen.torch.operators import added
from ptxgen.torch.record import function, recorded

_kept = Pointwise(lambda x, mask, scale: where(mask, x * scale, -inf), "kept")
_shifted = Pointwise(lambda x, mask, scale: x * scale + mask, "shifted")
_below = Pointwise(lambda g, place, seen, scale: where(place < seen, g, 0) * scale, "below")
_kept_gradient = Pointwise(lambda g, mask, scale: where(mask, g, 0) * scale, "kept_gradient")
Scale = Annotated[float | None, Real(least=-3e38, most=3e38)]


def _grouped(query: Any, key: Any, gqa: bool) -> bool:
    """Whether heads share keys: they are then rows of one product."""
    return bool(gqa and key.shape[-3] != query.shape[-3])


def _rows(b: Builder, x: Any, key: Any, gqa: bool) -> Any:
    """``x`` [..., H, L, D] with the heads that share keys as rows."""
    if not _grouped(x, key, gqa):
        return x
    return b.reshape(x, (*x.shape[:-3], key.shape[-3], -1, x.shape[-1]))


def _widened(b: Any, query: Any, key: Any, value: Any, mask: Any, gqa: bool) -> Any:
    """``query`` with all the leading dimensions that the others are broadcast along."""
    lead = tuple(query.shape[:-2])
    for x in (key, value):
        own = (*x.shape[:-3], 1) if gqa else x.shape[:-2]
        lead = broadcast(lead, tuple(own)) or lead
    if mask is not None:
        lead = broadcast(lead, tuple(mask.shape[:-2])) or lead
    return query if lead == query.shape[:-2] else b.expand(query, (*lead, *query.shape[-2:]))


def _ramp(b: Any, count: int, exclusive: bool) -> Any:
    """0 or 1 and so on, in int32."""
    ones = b.filled((count,), "int32", 1)
    return b.cumsum(ones, exclusive=exclusive)


def _weights(
    b: ProgramBuilder,
    query: Buffer,
    key: Buffer,
    mask: Buffer | None,
    is_causal: bool,
    scale: float,
    gqa: bool,
    tier: str,
    dtype: str,
) -> Buffer:
    """``softmax(q · kᵀ · scale + mask)``, of heads that share keys as rows. A query that sees no
    key gets zeros.
    """
    q = _rows(b, query, key, gqa)
    given = readable(b, q), readable(b, b.transpose(key))
    scores = b.matmul(*given, tier=tier, out_dtype=b.wide(query))
    length, keys, seen = query.shape[-2], key.shape[-2], None
    if mask is not None:
        each = b.reshape(scores, (*query.shape[:-1], keys))
        masked = _kept if mask.dtype == "bool" else _shifted
        b.call(masked, each, mask, scale, out=each)
        scale = 1.0
    elif is_causal:
        each = b.expand(_ramp(b, length, False), (prod(scores.shape[:-1]) // length, length))
        seen = b.reshape(b.contiguous(each), scores.shape[:-1])
    found: Buffer = b.rows("attention_weights", scores, seen, scale=scale, out_dtype=dtype)
    return found


def _attended(b: ProgramBuilder, query: Buffer, weights: Buffer, value: Buffer, tier: str) -> Any:
    found = b.matmul(weights, readable(b, value), tier=tier)
    return b.reshape(found, (*query.shape[:-1], value.shape[-1]))


def _check(query: Buffer, key: Buffer, value: Buffer, mask: Buffer | None, causal: bool) -> None:
    for name, x in (("query", query), ("key", key), ("value", value)):
        if x.dtype not in DTYPES or x.dtype != query.dtype:
            raise DtypeError(f"{name} has dtype {x.dtype}; takes {query.dtype}, that of query")
        if len(x.shape) != len(query.shape) or len(x.shape) < 3 or 0 in x.shape:
            raise ShapeError(f"{name} has shape {list(x.shape)}; takes [..., H, L, D]")
    if mask is None:
        return
    wide = "float64" if query.dtype == "float64" else "float32"
    if causal or mask.dtype not in ("bool", query.dtype, wide):
        raise DtypeError(f"attn_mask has dtype {mask.dtype}; takes bool, {query.dtype}, {wide}")
    scores = (*query.shape[:-1], key.shape[-2])
    fits = zip(reversed(mask.shape), reversed(scores), strict=False)
    if any(m not in (1, n) for m, n in fits):
        raise ShapeError(f"attn_mask has shape {list(mask.shape)}; scores {list(scores)}")


def _scale(query: Any, scale: float | None) -> float:
    return 1 / sqrt(query.shape[-1]) if scale is None else float(scale)


def _attention(
    b: ProgramBuilder,
    query: Buffer,
    key: Buffer,
    value: Buffer,
    attn_mask: Buffer | None = None,
    *,
    is_causal: Bool = False,
    scale: Scale = None,
    enable_gqa: Bool = False,
    tier: Tier = "auto",
) -> Buffer:
    """``softmax(q · kᵀ · scale + mask) · v``: scores and weights in f32 (f64 of f64), the weights
    then rounded to the dtype of ``value``.
    """
    query = _widened(b, query, key, value, attn_mask, _grouped(query, key, enable_gqa))
    _check(query, key, value, attn_mask, is_causal)
    if b.abstract:
        return b.empty((*query.shape[:-1], value.shape[-1]), query.dtype)
    how = is_causal, _scale(query, scale), enable_gqa, tier
    weights = _weights(b, query, key, attn_mask, *how, value.dtype)
    found: Buffer = _attended(b, query, weights, value, tier)
    return found


def _attention_kept(
    b: ProgramBuilder,
    query: Buffer,
    key: Buffer,
    value: Buffer,
    attn_mask: Buffer | None = None,
    *,
    is_causal: Bool = False,
    scale: Scale = None,
    enable_gqa: Bool = False,
    tier: Tier = "auto",
) -> tuple[Buffer, Buffer]:
    """The same, and the weights before they are rounded."""
    query = _widened(b, query, key, value, attn_mask, _grouped(query, key, enable_gqa))
    _check(query, key, value, attn_mask, is_causal)
    how = is_causal, _scale(query, scale), enable_gqa, tier
    weights = _weights(b, query, key, attn_mask, *how, b.wide(query))
    return _attended(b, query, b.cast(weights, value.dtype), value, tier), weights


def _product(b: Builder, one: Any, other: Any, of: Any, tier: str) -> Any:
    """A gradient that is a product, summed along what its operand was broadcast along."""
    lead = tuple(of.shape[:-2])
    if lead == broadcast(tuple(one.shape[:-2]), tuple(other.shape[:-2])):
        return b.matmul(one, other, tier=tier)
    found = b.matmul(one, other, tier=tier, out_dtype=b.wide(of))
    return b.cast(b.summed_to(found, (*lead, *found.shape[-2:])), b.dtype(of))


def _vjp(b: Builder, at: Backward) -> Gradients:
    """Through the rounded weights, each product rounded to the dtype of its operands."""
    query, key, value, mask = (at[n] for n in ("query", "key", "value", "attn_mask"))
    wide, gqa, tier = at.results[1], at.options["enable_gqa"], at.options["tier"]
    found: Gradients = {}
    wider = _widened(b, query, key, value, mask, _grouped(query, key, gqa))
    q = _rows(b, wider, key, gqa)
    dy = b.packed(_rows(b, b.cast(at.dys[0], b.dtype(value)), key, gqa))
    if "value" in at.needs:
        weights = b.cast(wide, b.dtype(value))
        found["value"] = _product(b, b.transpose(weights), dy, value, tier)
    g = b.cast(b.matmul(dy, b.transpose(value), tier=tier), b.dtype(wide))
    g = b.rows("softmax_backward", g, wide)
    scale = _scale(query, at.options["scale"])
    each = b.reshape(g, (*wider.shape[:-1], key.shape[-2]))
    if mask is not None and b.dtype(mask) == "bool":
        each = b.call(_kept_gradient, each, mask, scale)
    elif at.options["is_causal"]:
        seen = b.unsqueeze(_ramp(b, query.shape[-2], False), 1)
        each = b.call(_below, each, _ramp(b, key.shape[-2], True), seen, scale)
    else:
        if "attn_mask" in at.needs:
            found["attn_mask"] = b.cast(b.summed_to(each, mask.shape), b.dtype(mask))
        each = b.mul(each, scale)
    g = b.reshape(b.cast(each, b.dtype(query)), g.shape)
    if "query" in at.needs:
        own = _rows(b, query, key, gqa)
        found["query"] = b.reshape(_product(b, g, key, own, tier), query.shape)
    if "key" in at.needs:
        turned = _product(b, b.transpose(q), g, b.transpose(key), tier)
        found["key"] = b.transpose(turned)
    return found


NAME = "composed_attention"
KEPT = Op(_attention_kept, name=NAME, vjp=_vjp, results=("out", "weights"), public=False)
COMPOSED = added(Op(_attention, name=NAME, vjp=_vjp, keeping=KEPT, public=False))


# -- the fused operation ----------------------------------------------------------------------
FUSED = OPERATIONS["attention"]


def _with_lse(b: ProgramBuilder, /, **given: Any) -> Any:
    return FUSED.lower(b, **given, return_lse=True)


RECORDED = added(
    Op(
        _with_lse,
        name=FUSED.name,
        vjp=FUSED.vjp,
        checks=FUSED.checks,
        takes=tuple(p for p in FUSED.parameters if p.name != "return_lse"),
        results=("out", "lse"),
        public=False,
    )
)
"""What watchers are shown: gradients are made of the logarithms as well."""


def _watched(op: Op, given: Mapping[str, Any]) -> Any:
    """The results that are asked for. The logarithms have no gradient."""
    rest = {name: x for name, x in given.items() if name != "return_lse"}
    out, lse = recorded(RECORDED, rest)
    return (out, lse.detach()) if given["return_lse"] else out


attention = function(FUSED, _watched)


# -- which of both ----------------------------------------------------------------------------
def fused(dtype: str, tier: str, query: Any, value: Any) -> bool:
    """Whether the operation takes it."""
    own = dtype in TAKES and tier in ("auto", AUTO_TIER[DTYPES[dtype]])
    return own and all(1 <= x.shape[-1] <= HEAD_MAX for x in (query, value))


def attended(
    b: Builder,
    query: Any,
    key: Any,
    value: Any,
    mask: Any = None,
    *,
    causal: bool = False,
    scale: float | None = None,
    gqa: bool = False,
    tier: str = "auto",
) -> Any:
    """``scaled_dot_product_attention`` without dropout. ``causal``: of queries and keys that both
    begin at 0.
    """
    if not fused(b.dtype(query), tier, query, value):
        old: dict[str, Any] = {"is_causal": causal, "scale": scale, "enable_gqa": gqa}
        return b.call(COMPOSED, query, key, value, mask, **old, tier=tier)
    shared = _grouped(query, key, gqa)
    query = _widened(b, query, key, value, mask, shared)
    lead = (*query.shape[:-3], (key if shared else query).shape[-3])
    key, value = (b.expand(x, (*lead, *x.shape[-2:])) for x in (key, value))
    how: dict[str, Any] = {"scale": scale}
    if mask is not None:
        how["mask" if b.dtype(mask) == "bool" else "bias"] = mask
    queries, keys = query.shape[-2], key.shape[-2]
    if not causal or queries == keys:
        return b.attention(query, key, value, causal=causal, **how)
    # Keys behind the last query are not seen; queries behind the last key see all.
    both = min(queries, keys)
    given = (b.narrow(x, -2, 0, both) for x in (query, key, value))
    first = b.attention(*given, causal=True, **how)
    if queries == both:
        return first
    rest = b.attention(b.narrow(query, -2, both, queries - both), key, value, **how)
    return b.concat((first, rest), -2)
