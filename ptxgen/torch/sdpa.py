"""Attention with gradients, and ``scaled_dot_product_attention`` by it; or, where no kernel of that
serves (float64, more than 256 elements a head, another tier), by a product, weights in one pass
over the scores, and a product.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from math import inf, sqrt
from typing import Any

import torch

from ptxgen.errors import DtypeError, ShapeError
from ptxgen.numerics.attention import HEAD_MAX
from ptxgen.numerics.contract import AUTO_TIER
from ptxgen.numerics.dtype import DTYPES, SINGLE
from ptxgen.numerics.formula import where
from ptxgen.numerics.signature import broadcast
from ptxgen.ops import OPERATIONS
from ptxgen.ops.pointwise import Pointwise
from ptxgen.ops.views import readable
from ptxgen.program.build import Builder, ProgramBuilder
from ptxgen.program.operation import Backward, Gradients, Op
from ptxgen.torch.operators import added
from ptxgen.torch.record import NAMES, function, gradient_wanted, recorded, recorder

Size = Sequence[int]
_kept = Pointwise(lambda x, mask, scale: where(mask, x * scale, -inf), "kept")
_shifted = Pointwise(lambda x, mask, scale: x * scale + mask, "shifted")
_before = Pointwise(lambda x, at, seen, scale: where(at < seen, x * scale, -inf), "before")


def _widened(b: Any, query: Any, key: Any, value: Any, mask: Any, gqa: bool) -> Any:
    """Returns ``query`` expanded to all leading dimensions that the others broadcast to."""
    lead = tuple(query.shape[:-2])
    for x in (key, value):
        own = (*x.shape[:-3], 1) if gqa else x.shape[:-2]
        lead = broadcast(lead, tuple(own)) or lead
    if mask is not None:
        lead = broadcast(lead, tuple(mask.shape[:-2])) or lead
    return query if lead == query.shape[:-2] else b.expand(query, (*lead, *query.shape[-2:]))


def _check(b: Builder, query: Any, key: Any, value: Any, mask: Any) -> None:
    for name, x in (("query", query), ("key", key), ("value", value)):
        if len(x.shape) != len(query.shape) or 0 in x.shape:
            raise ShapeError(f"{name} has shape {list(x.shape)}; takes [..., H, L, D]")
    if mask is None:
        return
    if b.dtype(mask) not in ("bool", b.dtype(query), b.wide(query)):
        takes = f"bool, {b.dtype(query)}, {b.wide(query)}"
        raise DtypeError(f"attn_mask has dtype {b.dtype(mask)}; takes {takes}")
    scores = (*query.shape[:-1], key.shape[-2])
    fits = zip(reversed(mask.shape), reversed(scores), strict=False)
    if any(m not in (1, n) for m, n in fits):
        raise ShapeError(f"attn_mask has shape {list(mask.shape)}; scores {list(scores)}")


def _product(b: Builder, x: Any, y: Any, **how: Any) -> Any:
    if isinstance(b, ProgramBuilder):
        x, y = readable(b, x), readable(b, y)
    return b.matmul(x, y, **how)


def _ramp(b: Builder, count: int, like: Any, exclusive: bool) -> Any:
    """Returns 0, 1, 2, ... or 1, 2, 3, ... as int32."""
    return b.cumsum(b.filled((count,), "int32", 1, like), exclusive=exclusive)


def _composed(
    b: Builder,
    query: Any,
    key: Any,
    value: Any,
    mask: Any,
    causal: bool,
    scale: float,
    gqa: bool,
    tier: str,
) -> Any:
    """``softmax(q · kᵀ · scale + mask) · v``: scores and weights in f32 (f64 of f64), the weights
    then rounded to the dtype of ``value``. A query that sees no key gets zeros.
    """
    query = _widened(b, query, key, value, mask, gqa)
    _check(b, query, key, value, mask)
    wide, shape = b.wide(query), (*query.shape[:-1], key.shape[-2])
    # Heads that share keys are rows of one product.
    side = (*query.shape[:-3], key.shape[-3], -1, query.shape[-1]) if gqa else query.shape
    scores = _product(b, b.reshape(query, side), b.transpose(key), tier=tier, out_dtype=wide)
    each, rows = b.reshape(scores, shape), scores.shape
    if mask is not None:
        masked = _kept if b.dtype(mask) == "bool" else _shifted
        each, scale = b.call(masked, each, mask, scale), 1.0
    elif causal:
        places = _ramp(b, shape[-1], query, True), b.unsqueeze(_ramp(b, shape[-2], query, False), 1)
        each, scale = b.call(_before, each, *places, scale), 1.0
    weights = b.rows("attention_weights", b.reshape(each, rows), None, scale=scale)
    found = _product(b, b.cast(weights, b.dtype(value)), value, tier=tier)
    return b.reshape(found, (*query.shape[:-1], value.shape[-1]))


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
"""Attention with its logsumexp as a second result, which gradients read; for autograd."""


def _watched(op: Op, given: Mapping[str, Any]) -> Any:
    """Records attention; returns the results that are asked for. The logsumexp has no gradient."""
    rest = {name: x for name, x in given.items() if name != "return_lse"}
    out, lse = recorded(RECORDED, rest)
    return (out, lse.detach()) if given["return_lse"] else out


attention = function(FUSED, _watched)


def _by_token(strides: Size, shape: Size) -> bool:
    """Whether memory has queries token by token; results then do too, as in PyTorch's kernels."""
    return 0 < strides[-3] < strides[-2] and shape[-3] > 1 and shape[-2] > 1


def _placing(b: Builder, layout: str) -> Callable[..., Any]:
    """Returns a function that makes a view between ``[..., H, S, D]`` and ``layout``."""
    return lambda x, axis=-3: x if layout == "bhsd" else b.move(x, axis, axis + 1)


def _lower(b: ProgramBuilder, /, q: Any, k: Any, v: Any, *, layout: str, **given: Any) -> Any:
    """Lowers attention; returns the result, in ``layout`` in memory, and the logsumexp."""
    placed = _placing(b, layout)
    of = {**given, "layout": layout, "return_lse": True}
    out, lse = b.attention(placed(q), placed(k), placed(v), **of)
    return placed(out), placed(lse, -2)


def _vjp(b: Builder, at: Backward) -> Gradients:
    """Computes the gradients, in the same layout."""
    placed = _placing(b, at.options["layout"])
    arguments = {n: placed(x) if n in "qkv" else x for n, x in at.arguments.items()}
    options = {**at.options, "window": None, "softcap": None}
    results = placed(at.results[0]), placed(at.results[1], -2)
    assert FUSED.vjp is not None
    found = FUSED.vjp(b, Backward(arguments, options, results, (placed(at.dys[0]),), at.needs))
    return {n: placed(x) if n in "qkv" else x for n, x in found.items()}


_NAMES = ("q", "k", "v", "causal", "bias", "mask", "scale", "layout")
_AT_ONCE: dict[str, Any] = {
    "name": FUSED.name,
    "vjp": _vjp,
    "takes": tuple(p for p in FUSED.parameters if p.name in _NAMES),
    "public": False,
}
_recorder = recorder(Op(_lower, **_AT_ONCE, keeping=Op(_lower, **_AT_ONCE, results=("out", "lse"))))
"""Records attention of ``[..., H, S, D]``, whose operands lie by a layout, as one operation."""


@lru_cache(maxsize=4096)
def _one_call(
    tier: str, q: Size, k: Size, v: Size, mask: Size | None, dtypes: tuple[Any, ...], causal: bool
) -> bool:
    """Whether operands of these sizes and dtypes (the last a mask's) are taken by one call of the
    kernel, as they are.
    """
    dtype = dtypes[0]
    if len(q) < 3 or 0 in (*q, *k, *v) or dtypes[:3] != (dtype,) * 3 or q[:-3] != k[:-3]:
        return False
    if k[:-1] != v[:-1] or not _takes(NAMES[dtype], tier, q[-1], v[-1]):
        return False
    if mask is None:
        return not causal or q[-2] == k[-2]
    pairs = [*zip(reversed(mask), reversed((*q[:-1], k[-2])), strict=False)]
    fits = len(mask) <= len(q) and all(m in (1, n) for m, n in pairs)
    return fits and not causal and dtypes[3] in (torch.bool, dtype, torch.float32)


def at_once(
    tier: str,
    query: Any,
    key: Any,
    value: Any,
    mask: Any = None,
    dropout: float = 0.0,
    causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
    seen: Any = None,
) -> Any:
    """:func:`attended` of tensors as one operation that autograd records; None where a gradient is
    not all that is wanted, or where more than one call of the kernel would be needed.
    """
    if dropout or seen is not None or not gradient_wanted(query, key, value, mask):
        return None  # sizes may then be a compiler's
    q, k, bias = query.shape, key.shape, None
    dtypes: tuple[Any, ...] = query.dtype, key.dtype, value.dtype
    of = None
    if mask is not None:
        of, dtypes = mask.shape, (*dtypes, mask.dtype)
    if not (enable_gqa or q[-3] == k[-3]):
        return None
    if not _one_call(tier, q, k, value.shape, of, dtypes, causal):
        return None
    if mask is not None and mask.dtype is not torch.bool:
        bias, mask = mask, None
    layout = "bshd" if _by_token(query.stride(), q) else "bhsd"
    args = (query, key, value, causal, bias, mask, scale, layout)
    return _recorder.record(args, (query, key, value, bias, mask))


# -- which of both ----------------------------------------------------------------------------
def fused(dtype: str, tier: str, query: Any, value: Any) -> bool:
    """Whether the operation takes it."""
    return _takes(dtype, tier, query.shape[-1], value.shape[-1])


def _takes(dtype: str, tier: str, *heads: int) -> bool:
    own = dtype in SINGLE and tier in ("auto", AUTO_TIER[DTYPES[dtype]])
    return own and all(1 <= n <= HEAD_MAX for n in heads)


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
    seen: tuple[bool, int | None] | None = None,
) -> Any:
    """``scaled_dot_product_attention`` without dropout. ``causal``: of queries and keys that both
    begin at 0. ``seen``: what ``mask`` says, where that is known: whether it is causal, with the
    last query at the last key, and its window.
    """
    shared = bool(gqa and key.shape[-3] != query.shape[-3])  # heads are then rows of one product
    if not fused(b.dtype(query), tier, query, value):
        factor = 1 / sqrt(query.shape[-1]) if scale is None else scale
        return _composed(b, query, key, value, mask, causal, factor, shared, tier)
    query = _widened(b, query, key, value, mask, shared)
    lead = (*query.shape[:-3], (key if shared else query).shape[-3])
    key, value = (b.expand(x, (*lead, *x.shape[-2:])) for x in (key, value))
    how: dict[str, Any] = {"scale": scale}
    if seen is not None:
        how["causal"], how["window"] = seen
    elif mask is not None:
        how["mask" if b.dtype(mask) == "bool" else "bias"] = mask
    queries, keys = query.shape[-2], key.shape[-2]
    if not causal or queries == keys:
        how.setdefault("causal", causal)
        if not _by_token(b.strides(query), query.shape):
            return b.attention(query, key, value, **how)
        given = (b.move(x, -3, -2) for x in (query, key, value))
        return b.move(b.attention(*given, layout="bshd", **how), -3, -2)
    # Keys behind the last query are not seen; queries behind the last key see all.
    both = min(queries, keys)
    given = (b.narrow(x, -2, 0, both) for x in (query, key, value))
    first = b.attention(*given, causal=True, **how)
    if queries == both:
        return first
    rest = b.attention(b.narrow(query, -2, both, queries - both), key, value, **how)
    return b.concat((first, rest), -2)
