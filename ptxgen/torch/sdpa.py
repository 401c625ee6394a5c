"""Attention with gradients, and ``scaled_dot_product_attention`` by it.

Where no attention kernel fits (float64, head dimensions above 256, another tier), attention is
composed: scores as a product, their softmax in one pass, and a product with the values.
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
    """Returns ``query`` expanded to the leading dimensions (all but two) that all operands
    broadcast to. ``gqa``: whether query heads share keys and values, so that numbers of heads may
    differ.
    """
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
    """Returns int32 ``[1, 2, ..., count]``, or ``[0, 1, ..., count - 1]`` if ``exclusive``."""
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
    """Computes ``softmax(q · kᵀ · scale + mask) · v``: scores and weights in f32 (f64 for f64), the
    weights then rounded to the dtype of ``value``. A query that sees no key gets zeros.
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
"""Attention with its logsumexp as a second result, which gradients read; autograd records it."""


def _record_attention(op: Op, given: Mapping[str, Any]) -> Any:
    """Calls attention with autograd; returns the result, and with ``return_lse`` the logsumexp,
    which has no gradient.
    """
    rest = {name: x for name, x in given.items() if name != "return_lse"}
    out, lse = recorded(RECORDED, rest)
    return (out, lse.detach()) if given["return_lse"] else out


attention = function(FUSED, _record_attention)


def _by_token(strides: Size, shape: Size) -> bool:
    """Whether all heads of a token are adjacent in memory, for an array ``[..., H, S, D]``. Results
    of attention are then stored so, too, as PyTorch's kernels do.
    """
    return 0 < strides[-3] < strides[-2] and shape[-3] > 1 and shape[-2] > 1


def _layout_mover(b: Builder, layout: str) -> Callable[..., Any]:
    """Returns a function that swaps the dimensions of heads and tokens of an array, as a view, if
    ``layout`` is "bshd", and returns the array itself if it is "bhsd".
    """
    return lambda x, axis=-3: x if layout == "bhsd" else b.move(x, axis, axis + 1)


def _lower(b: ProgramBuilder, /, q: Any, k: Any, v: Any, *, layout: str, **given: Any) -> Any:
    """Lowers attention of ``[..., H, S, D]``; returns the result, stored in ``layout``, and the
    logsumexp.
    """
    placed = _layout_mover(b, layout)
    of = {**given, "layout": layout, "return_lse": True}
    out, lse = b.attention(placed(q), placed(k), placed(v), **of)
    return placed(out), placed(lse, -2)


def _vjp(b: Builder, at: Backward) -> Gradients:
    """Computes the gradients of :func:`_lower`, which are stored as its operands: in the order
    ``layout``, an option of the call.
    """
    placed = _layout_mover(b, at.options["layout"])
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
"""Recorder of attention of ``[..., H, S, D]``, stored as "bhsd" or "bshd", as a single operation
that saves its logsumexp for the gradients.
"""


@lru_cache(maxsize=4096)
def _one_call(
    tier: str, q: Size, k: Size, v: Size, mask: Size | None, dtypes: tuple[Any, ...], causal: bool
) -> bool:
    """Whether one call of the attention kernels computes operands of these shapes (of q, k, v and a
    mask), without expanding or splitting q, k and v. ``dtypes``: of q, k, v and, if given, the
    mask.
    """
    dtype = dtypes[0]
    if len(q) < 3 or 0 in (*q, *k, *v) or dtypes[:3] != (dtype,) * 3 or q[:-3] != k[:-3]:
        return False
    if k[:-1] != v[:-1] or not _has_kernel(NAMES[dtype], tier, q[-1], v[-1]):
        return False
    if mask is None:
        return not causal or q[-2] == k[-2]
    pairs = [*zip(reversed(mask), reversed((*q[:-1], k[-2])), strict=False)]
    fits = len(mask) <= len(q) and all(m in (1, n) for m, n in pairs)
    return fits and not causal and dtypes[3] in (torch.bool, dtype, torch.float32)


def record_fused(
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
    pattern: Any = None,
) -> Any:
    """Runs :func:`compute_attention` on tensors as one operation that autograd records. Returns
    None if autograd does not record the call, or if one call of the kernels is not enough.
    """
    if dropout or pattern is not None or not gradient_wanted(query, key, value, mask):
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
def has_fused_kernel(dtype: str, tier: str, query: Any, value: Any) -> bool:
    """Whether attention kernels support this dtype, tier and the head dimensions of both arrays."""
    return _has_kernel(dtype, tier, query.shape[-1], value.shape[-1])


def _has_kernel(dtype: str, tier: str, *heads: int) -> bool:
    own = dtype in SINGLE and tier in ("auto", AUTO_TIER[DTYPES[dtype]])
    return own and all(1 <= n <= HEAD_MAX for n in heads)


def compute_attention(
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
    pattern: tuple[bool, int | None] | None = None,
) -> Any:
    """Computes ``scaled_dot_product_attention`` without dropout. ``causal``: query i sees keys 0 to
    i. ``pattern``: causal flag and window that replace ``mask``, if known; there the last query is
    aligned with the last key.
    """
    shared = bool(gqa and key.shape[-3] != query.shape[-3])  # heads are then rows of one product
    if not has_fused_kernel(b.dtype(query), tier, query, value):
        factor = 1 / sqrt(query.shape[-1]) if scale is None else scale
        return _composed(b, query, key, value, mask, causal, factor, shared, tier)
    query = _widened(b, query, key, value, mask, shared)
    lead = (*query.shape[:-3], (key if shared else query).shape[-3])
    key, value = (b.expand(x, (*lead, *x.shape[-2:])) for x in (key, value))
    how: dict[str, Any] = {"scale": scale}
    if pattern is not None:
        how["causal"], how["window"] = pattern
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
