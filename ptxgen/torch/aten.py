"""The table of what :class:`ptxgen.torch.batch_invariant` serves: an ATen operator, a function.

A function of :data:`SERVED` is called with the block's tier and the operator's own arguments,
below autograd, and returns what the operator returns. ``out=`` and in-place forms are made of it.
It may return ``NotImplemented`` (arguments that it does not take: the operator is then unknown to
the block), or :data:`ALONE` (PyTorch's kernel has the block's property for them, for the reason
that stands there). Functions of :data:`COMPOSED` run above autograd: where that records nothing the
first, which may return :data:`PARTS`; else the second, which is made of functions that can be
differentiated, with the same bits. One of :data:`WHOLE` runs there as well, where autograd records
nothing, and saves what PyTorch makes for gradients; it may return :data:`PARTS`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final

import torch
from torch.nn import functional

from ptxgen.errors import ShapeError
from ptxgen.numerics.formula import where
from ptxgen.numerics.select import K_MAX
from ptxgen.ops import columns, moves, rowwise, scan, select
from ptxgen.ops.forward import run as _linear
from ptxgen.ops.pointwise import Pointwise
from ptxgen.ops.product import run as _product
from ptxgen.ops.run import caller
from ptxgen.torch import groupnorm
from ptxgen.torch.functional import (
    NAMES,
    PLAIN,
    added,
    check_batches,
    compute_matmul,
    matmul,
    matrix,
    wide,
)

Serve = Callable[..., Any]

ALONE: Final = object()
"""Returned where PyTorch's own kernel computes each row by itself."""
PARTS: Final = object()
"""Returned where what is called instead is made of operators that are served."""


# -- products -------------------------------------------------------------------------------
@cache
def _product_options(tier: str, dtype: Any) -> tuple[Any, ...]:
    return "nn", tier, None if dtype is None else NAMES.get(dtype), None


def _mm(tier: str, a: Any, b: Any, dtype: Any = None) -> Any:
    options = _product_options(tier, dtype)
    try:
        if a.dim() == b.dim() == 2:
            return _product(a, b, None, None, options)
        return NotImplemented  # PyTorch refuses it in its own words
    except ShapeError:
        return _copied(a, b, options)


def _bmm(tier: str, a: Any, b: Any, dtype: Any = None) -> Any:
    check_batches(a, b, "batch1", "batch2")
    options = _product_options(tier, dtype)
    try:
        return _product(a, b, None, None, options)
    except ShapeError:
        return _copied(a, b, options)


def _copied(a: Any, b: Any, options: tuple[Any, ...]) -> Any:
    """A product of what no kernel reads as it lies."""
    return _product(matrix(a), matrix(b), None, None, options)


def _mv(tier: str, a: Any, v: Any, dtype: Any = None) -> Any:
    if v.dim() != 1:
        raise ShapeError(f"vec has shape {list(v.shape)}; takes [K] = [{a.shape[-1]}]")
    return _mm(tier, a, v.unsqueeze(1), dtype).squeeze(1)


def _dot(tier: str, a: Any, b: Any) -> Any:
    return _mv(tier, a.unsqueeze(0), b).squeeze(0)


def _added(multiply: Serve) -> Serve:
    """``alpha * product + beta * input``, for a product made by ``multiply``."""

    def serve(
        tier: str, input: Any, a: Any, b: Any, dtype: Any = None, *, beta: Any = 1, alpha: Any = 1
    ) -> Any:
        y = multiply(tier, a, b, wide(a.dtype))
        return y if y is NotImplemented else added(y, input, beta, alpha, dtype or a.dtype)

    return serve


_addmm_of = _added(_mm)


def _addmm(
    tier: str, input: Any, a: Any, b: Any, dtype: Any = None, *, beta: Any = 1, alpha: Any = 1
) -> Any:
    if alpha == beta == 1 and input.dim() == 1 and input.shape[0] == b.shape[1] and a.dim() == 2:
        # A linear layer. The kernel adds the bias, with the same bits.
        options = "kn", tier, None, None if dtype is None else NAMES.get(dtype), None
        try:
            return _linear(a, b, input, None, None, options)
        except ShapeError:
            return _linear(matrix(a), matrix(b), input.contiguous(), None, None, options)
    return _addmm_of(tier, input, a, b, dtype, beta=beta, alpha=alpha)


def _grouped_mm(
    tier: str, a: Any, b: Any, offs: Any = None, bias: Any = None, out_dtype: Any = None
) -> Any:
    """Products of groups of rows, columns or summands, that end where ``offs`` says (read by the
    host, which waits for it).
    """
    if bias is not None:
        return NotImplemented
    if offs is None:
        return _bmm(tier, a, b, out_dtype)
    ends = offs.tolist()
    spans = list(zip([0, *ends[:-1]], ends, strict=True))
    dtype = out_dtype or a.dtype
    if a.dim() == b.dim() == 2:
        out = a.new_empty(len(spans), a.shape[0], b.shape[1], dtype=dtype)
        for i, (start, end) in enumerate(spans):
            out[i] = _mm(tier, a[:, start:end], b[start:end], dtype)
        return out
    if b.dim() == 3:
        out = a.new_zeros(a.shape[0], b.shape[2], dtype=dtype)
        for i, (start, end) in enumerate(spans):
            if end > start:
                out[start:end] = _mm(tier, a[start:end], b[i], dtype)
        return out
    out = a.new_zeros(a.shape[1], b.shape[1], dtype=dtype)
    for i, (start, end) in enumerate(spans):
        if end > start:
            out[:, start:end] = _mm(tier, a[i], b[:, start:end], dtype)
    return out


# -- rows -----------------------------------------------------------------------------------
def _rows(name: str, options: tuple[Any, ...], *tensors: Any) -> Any:
    """An operation over rows of the library; operands that no kernel reads are copied.

    ``options`` are those of its signature, and the kernel.
    """
    run, outs = _ROWS.get(name) or _found(name)
    try:
        return run(*tensors, *outs, None, options)
    except ShapeError:
        plain = [None if t is None else t.contiguous() for t in tensors]
        if all(a is b for a, b in zip(plain, tensors, strict=True)):
            raise
        return run(*plain, *outs, None, options)


def _found(name: str) -> tuple[Serve, tuple[None, ...]]:
    op = next(each.OPS[name] for each in _HOMES if name in each.OPS)
    made = _ROWS[name] = caller(op), (None,) * len(op.signature.results)
    return made


_HOMES = rowwise, columns, moves, scan, select
_ROWS: dict[str, tuple[Serve, tuple[None, ...]]] = {}
"""How operations are called, and None for each result."""
_OWN = (None, None)
"""Options: the dtype of results is the operand's, and no kernel is forced."""
_TO = {dtype: (name, None) for dtype, name in NAMES.items()}
"""Options: a dtype of results."""


def _dims(x: Any, dim: Any) -> list[int]:
    rank = x.dim()
    if dim is None or (not isinstance(dim, int) and len(dim) == 0):
        return list(range(rank))
    return sorted(d % max(rank, 1) for d in ([dim] if isinstance(dim, int) else dim))


def _reduced(name: str, x: Any, dim: Any, keepdim: bool, options: tuple[Any, ...]) -> Any:
    """A reduction of the library over dimensions, wherever they are: with the same bits."""
    rank = x.dim()
    if rank and (dim == [-1] or dim == -1 or dim == [rank - 1]):  # the common ones first
        y = _rows(name, options, x)
        return y.unsqueeze(-1) if keepdim else y
    downward = f"{name}_columns"
    if rank == 2 and dim == [0] and downward in columns.OPS:
        y = _rows(downward, options, x.unsqueeze(0))
        return y if keepdim else y.squeeze(0)
    dims = _dims(x, dim) if rank else []
    shape, kept = x.shape, [d for d in range(rank) if d not in dims]
    count, left = math.prod(shape[d] for d in dims), [shape[d] for d in kept]
    if not dims and rank:
        y = _rows(name, options, x.unsqueeze(-1))
    elif dims == list(range(rank - len(dims), rank)):
        y = _rows(name, options, x.reshape(*left, count))
    elif downward in columns.OPS and dims == list(range(dims[0], dims[-1] + 1)):
        outer, inner = math.prod(shape[: dims[0]]), math.prod(shape[dims[-1] + 1 :])
        y = _rows(downward, options, x.reshape(outer, count, inner)).view(left)
    else:
        y = _rows(name, options, x.permute(*kept, *dims).reshape(*left, count))
    return y.view([1 if d in dims else shape[d] for d in range(rank)]) if keepdim else y


def _adding(name: str) -> Serve:
    def serve(
        tier: str, x: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
    ) -> Any:
        if dtype is None or dtype is x.dtype:
            return _reduced(name, x, dim, keepdim, _OWN) if x.dtype in NAMES else NotImplemented
        if dtype not in NAMES:
            return NotImplemented
        if x.dtype not in NAMES or dtype is not wide(x.dtype):
            x = x.to(dtype)
        return _reduced(name, x, dim, keepdim, _TO[dtype])

    return serve


def _spread(name: str) -> Serve:
    """The variance or standard deviation."""

    def serve(
        tier: str, x: Any, dim: Any = None, *, correction: Any = None, keepdim: bool = False
    ) -> Any:
        if x.dtype not in NAMES:
            return NotImplemented
        less = 1.0 if correction is None else float(correction)
        return _reduced(name, x, dim, keepdim, (less, None, None))

    return serve


def _with_mean(name: str) -> Serve:
    spread, mean = _spread(name), _adding("mean")

    def serve(
        tier: str, x: Any, dim: Any = None, *, correction: Any = None, keepdim: bool = False
    ) -> Any:
        found = spread(tier, x, dim, correction=correction, keepdim=keepdim)
        return found if found is NotImplemented else (found, mean(tier, x, dim, keepdim))

    return serve


def _vector_norm(
    tier: str, x: Any, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Any:
    if ord not in (1, 2) or x.dtype not in NAMES:
        return NotImplemented
    x = x.to(wide(dtype or x.dtype))
    total = _reduced("sum", x * x if ord == 2 else x.abs(), dim, keepdim, _OWN)
    return (total.sqrt() if ord == 2 else total).to(dtype or x.dtype)


def _softmax(name: str) -> Serve:
    def serve(tier: str, x: Any, dim: int, half_to_float: bool) -> Any:
        options, rank = _TO[torch.float32] if half_to_float else _OWN, x.dim()
        if dim == -1 or dim == rank - 1:
            return _rows(name, options, x)
        if rank == 0:
            return _rows(name, options, x.view(1)).view(())
        return _rows(name, options, x.movedim(dim, -1)).movedim(-1, dim).contiguous()

    return serve


def _softmax_backward(name: str) -> Serve:
    def serve(tier: str, dy: Any, y: Any, dim: int, input_dtype: Any) -> Any:
        rank = y.dim()
        if dim == -1 or dim == rank - 1:
            dx = _rows(name, _OWN, dy, y)
        elif rank == 0:
            dx = _rows(name, _OWN, dy.view(1), y.view(1)).view(())
        else:
            dx = _rows(name, _OWN, dy.movedim(dim, -1), y.movedim(dim, -1))
            dx = dx.movedim(-1, dim).contiguous()
        return dx if dx.dtype is input_dtype else dx.to(input_dtype)

    return serve


# -- norms ----------------------------------------------------------------------------------
def _flat(x: Any, shape: Sequence[int]) -> Any:
    """x [..., *shape] with its last dimensions as one."""
    return x if len(shape) == 1 else x.reshape(*x.shape[: x.dim() - len(shape)], -1)


def _vector(weight: Any) -> Any:
    return weight if weight is None or weight.dim() == 1 else weight.reshape(-1)


def _outer(x: Any, shape: Sequence[int]) -> list[int]:
    return [*x.shape[: x.dim() - len(shape)], *[1] * len(shape)]


def _layer_norm(tier: str, x: Any, shape: Any, weight: Any, bias: Any, eps: float) -> Any:
    options = eps, None, None
    if len(shape) == 1:
        y, mean, scale = _rows("native_layer_norm", options, x, weight, bias)
        return y, mean.unsqueeze(-1), scale.unsqueeze(-1)
    given = _flat(x, shape), _vector(weight), _vector(bias)
    y, mean, scale = _rows("native_layer_norm", options, *given)
    outer = _outer(x, shape)
    return y.view(x.shape), mean.view(outer), scale.view(outer)


def _rms_norm(tier: str, x: Any, shape: Any, weight: Any, eps: Any) -> Any:
    options = torch.finfo(x.dtype).eps if eps is None else eps, None, None
    if len(shape) == 1:
        y, scale = _rows("native_rms_norm", options, x, weight)
        return y, scale.unsqueeze(-1)
    y, scale = _rows("native_rms_norm", options, _flat(x, shape), _vector(weight))
    return y.view(x.shape), scale.view(_outer(x, shape))


def _fits(x: Any, shape: Any, *weights: Any) -> bool:
    """Whether these are rows that a norm takes, of one dtype."""
    last = x.shape[-1:]
    return (
        x.dtype in NAMES
        and tuple(shape) == last
        and all(w is None or (w.dtype is x.dtype and w.shape == last) for w in weights)
    )


def _layer_norm_alone(
    tier: str, x: Any, shape: Any, weight: Any, bias: Any, eps: float, _: bool
) -> Any:
    if not _fits(x, shape, weight, bias):
        return PARTS
    return _rows("layer_norm", (eps, None, None), x, weight, bias)


def _rms_norm_alone(tier: str, x: Any, shape: Any, weight: Any, eps: Any) -> Any:
    if not _fits(x, shape, weight):
        return PARTS
    eps = torch.finfo(x.dtype).eps if eps is None else eps
    return _rows("rms_norm", (eps, None, None), x, weight)


def _softmax_alone(name: str) -> Serve:
    serve = _softmax(name)

    def alone(tier: str, x: Any, dim: int, dtype: Any) -> Any:
        if x.dtype not in NAMES or (dtype is not None and dtype is not x.dtype):
            return PARTS
        return serve(tier, x, dim, False)

    return alone


def _layer_norm_backward(
    tier: str,
    dy: Any,
    x: Any,
    shape: Any,
    mean: Any,
    rstd: Any,
    weight: Any,
    bias: Any,
    mask: Any,
) -> Any:
    rows, g = _flat(x, shape), _flat(dy, shape)
    mean, rstd = mean.reshape(rows.shape[:-1]), rstd.reshape(rows.shape[:-1])
    dx: Any = None
    dw: Any = None
    db: Any = None
    if mask[0]:
        given = g, rows, _vector(weight), mean, rstd
        dx = _rows("native_layer_norm_backward", _OWN, *given).view(x.shape)
    need_w, need_b = mask[1] and weight is not None, mask[2] and bias is not None
    if need_w or need_b:
        like = weight if need_w else bias
        options = _OWN if like.dtype is x.dtype else _TO[wide(x.dtype)]
        dw, db = _rows("layer_norm_wgrad", options, g, rows, mean, rstd)
    dw = dw.view(weight.shape).to(weight.dtype) if need_w else None
    return dx, dw, db.view(bias.shape).to(bias.dtype) if need_b else None


def _rms_norm_backward(
    tier: str, dy: Any, x: Any, shape: Any, rstd: Any, weight: Any, mask: Any
) -> Any:
    rows, g = _flat(x, shape), _flat(dy, shape)
    rstd = rstd.reshape(rows.shape[:-1])
    dx: Any = None
    dw: Any = None
    if mask[0]:
        dx = _rows("native_rms_norm_backward", _OWN, g, rows, _vector(weight), rstd).view(x.shape)
    if mask[1] and weight is not None:
        options = _OWN if weight.dtype is x.dtype else _TO[wide(x.dtype)]
        dw = _rows("rms_norm_wgrad", options, g, rows, rstd)
        dw = dw.view(weight.shape).to(weight.dtype)
    return dx, dw


def _group_norm(
    tier: str,
    x: Any,
    weight: Any,
    bias: Any,
    count: int,
    channels: int,
    spatial: int,
    groups: int,
    eps: float,
) -> Any:
    """What PyTorch keeps has the dtype that its own kernel gives it."""
    if x.dtype not in NAMES:
        return NotImplemented
    with torch.no_grad():
        y, *kept = groupnorm.forward(x, weight, bias, groups, eps, NAMES[x.dtype])
    dtype = next((v.dtype for v in (weight, bias) if v is not None), x.dtype)
    return y, *(m.view(count, groups).to(dtype) for m in kept)


def _group_norm_backward(
    tier: str,
    dy: Any,
    x: Any,
    mean: Any,
    rstd: Any,
    weight: Any,
    count: int,
    channels: int,
    spatial: int,
    groups: int,
    mask: Any,
) -> Any:
    dtype = x.dtype if weight is None else weight.dtype
    mean, rstd = (m.to(wide(x.dtype)).reshape(-1) for m in (mean, rstd))
    with torch.no_grad():
        return groupnorm.backward(dy, x, weight, mean, rstd, groups, tuple(mask), (dtype, dtype))


# -- order, indices ---------------------------------------------------------------------------
def _sort(tier: str, x: Any, dim: int = -1, descending: bool = False, *, stable: Any = True) -> Any:
    """Of equals the first comes first, whichever kernel sorts."""
    return ALONE if stable else torch.sort(x, stable=True, dim=dim, descending=descending)


def _topk(
    tier: str, x: Any, k: int, dim: int = -1, largest: bool = True, ordered: bool = True
) -> Any:
    """Of equals the first ones are taken. Where there is no kernel, the head of a stable sort."""
    if k > (x.shape[dim] if x.dim() else 1):
        return NotImplemented
    if 0 < k <= K_MAX and x.dim() and x.dtype in _SELECTED:
        if dim in (-1, x.dim() - 1):
            return _rows("topk", (k, largest, None), x)
        found = _rows("topk", (k, largest, None), x.movedim(dim, -1))
    else:
        values, indices = torch.sort(x, stable=True, dim=dim, descending=largest)
        if not x.dim():
            return values, indices
        found = tuple(t.movedim(dim, -1)[..., :k] for t in (values, indices))
    return tuple(t.movedim(-1, dim).contiguous() for t in found)


_SELECTED = {torch.float32, torch.bfloat16, torch.float16, torch.int32}


_FORWARD = (False, False, None)
"""Options: inclusive, from the first on."""


def _cumsum(tier: str, x: Any, dim: int, *, dtype: Any = None) -> Any:
    x = x if dtype is None else x.to(dtype)
    if x.dtype not in NAMES or not x.dim():
        return NotImplemented
    if dim in (-1, x.dim() - 1):
        return _rows("cumsum", _FORWARD, x)
    found = _rows("cumsum", _FORWARD, x.movedim(dim, -1))
    return found.movedim(-1, dim).contiguous()


def _embedding_backward(
    tier: str, dy: Any, indices: Any, count: int, padding: int, by_frequency: bool
) -> Any:
    if by_frequency or dy.dtype not in NAMES:
        return NotImplemented
    skipped = padding if padding >= 0 else None
    return _rows("embedding_backward", (count, skipped, None), dy, indices)


def _added_rows(x: Any, index: Any, source: Any) -> Any:
    """x [V, I], to whose rows those of ``source`` [K, I] are added, in their order."""
    index = torch.where(index < 0, index + x.shape[0], index)
    return _rows("index_add", (None,), x, index, source)


def _index_add(tier: str, x: Any, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> Any:
    if x.dim() == 0 or x.dtype not in NAMES or source.dtype is not x.dtype:
        return NotImplemented
    source = source if alpha == 1 else source * alpha
    rows, of = x.movedim(dim, 0), source.movedim(dim, 0)
    width = rows[0].numel() if len(rows) else 1
    y = _added_rows(rows.reshape(-1, width), index.reshape(-1), of.reshape(-1, width))
    return y.view(rows.shape).movedim(0, dim).contiguous()


def _scatter_add(tier: str, x: Any, dim: int, index: Any, source: Any) -> Any:
    if x.dim() == 0 or x.dtype not in NAMES or source.dtype is not x.dtype:
        return NotImplemented
    dim %= x.dim()
    part = source[tuple(slice(n) for n in index.shape)]
    wide = [n if d == dim else x.shape[d] for d, n in enumerate(index.shape)]
    if wide != list(index.shape):  # what an index lacks is an index of nothing
        ends = [n for d in reversed(range(x.dim())) for n in (0, wide[d] - index.shape[d])]
        index, part = functional.pad(index, ends, value=-1), functional.pad(part, ends)
    sides = math.prod(x.shape[:dim]), math.prod(x.shape[dim + 1 :])
    given = (t.reshape(sides[0], t.shape[dim], sides[1]).contiguous() for t in (x, index, part))
    return _rows("scatter_add_along", (None,), *given).view(x.shape)


def _scatter_reduce(
    tier: str,
    x: Any,
    dim: int,
    index: Any,
    source: Any,
    reduce: str,
    *,
    include_self: bool = True,
) -> Any:
    if reduce in ("amax", "amin"):
        return ALONE
    if reduce not in ("sum", "add") or x.dim() == 0:
        return NotImplemented
    return _scatter_add(tier, x if include_self else x.scatter(dim, index, 0), dim, index, source)


def _index_put_(
    tier: str,
    x: Any,
    indices: Any,
    values: Any,
    accumulate: bool = False,
    unsafe: bool = False,
) -> Any:
    """Values put in their places; those that share a place are added in their order."""
    if not accumulate:
        return ALONE
    given = [i for i in indices if i is not None]
    if (
        x.dtype not in NAMES
        or values.dtype is not x.dtype
        or not given
        or any(i is None for i in indices[: len(given)])
        or any(i.dtype not in (torch.int64, torch.int32) for i in given)
    ):
        return NotImplemented
    place = torch.zeros((), dtype=torch.int64, device=x.device)
    for size, at in zip(x.shape, given, strict=False):
        place = place * size + torch.where(at < 0, at + size, at)
    count = math.prod(x.shape[: len(given)])
    rest = x.shape[len(given) :]
    source = values.expand(*place.shape, *rest)
    width = math.prod(rest)
    y = _added_rows(
        x.reshape(count, width), place.reshape(-1), source.reshape(place.numel(), width)
    )
    return x.copy_(y.view(x.shape))


# -- attention ------------------------------------------------------------------------------
def _attends(query: Any, key: Any, value: Any, mask: Any, dropout: float, causal: bool) -> bool:
    """Whether this is attention as it is served."""
    tensors = (query, key, value)
    return not (
        dropout
        or any(t.layout is not torch.strided for t in tensors)
        or any(t.dtype is not query.dtype or t.dim() != query.dim() for t in tensors)
        or query.dtype not in NAMES
        or query.dim() < 3
        or (causal and mask is not None)
    )


def _attention_alone(
    tier: str,
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: Any = None,
    enable_gqa: bool = False,
) -> Any:
    """As :func:`_attention`: a product, weights in one pass over the scores (a mask is added in
    another), a product.
    """
    if not _attends(query, key, value, attn_mask, dropout_p, is_causal):
        return PARTS
    wider = wide(query.dtype)
    if 0 in (*query.shape, *key.shape, *value.shape):
        return PARTS
    heads, length, width = query.shape[-3:]
    shared, keys = key.shape[-3], key.shape[-2]
    grouped = enable_gqa and shared != heads
    q = query.reshape(*query.shape[:-3], shared, -1, width) if grouped else query
    scores = compute_matmul(q, key.mT, tier, wider)
    by, seen = 1 / math.sqrt(width) if scale is None else scale, None
    if attn_mask is not None:
        each = scores.view(*query.shape[:-1], keys) if grouped else scores
        sizes = zip(reversed(attn_mask.shape), reversed(each.shape), strict=False)
        if (
            attn_mask.dtype not in (torch.bool, query.dtype, wider)
            or attn_mask.dim() > each.dim()
            or any(size not in (1, of) for size, of in sizes)
        ):
            return PARTS
        masked = _kept if attn_mask.dtype is torch.bool else _shifted
        masked(each, attn_mask, float(by), out=each)
        by = 1.0
    elif is_causal:
        seen = query.new_empty((math.prod(scores.shape[:-1]) // length, length), dtype=torch.int32)
        _filled(seen, 1, out=seen)
        seen = scan.run(seen, seen, None, _FORWARD).view(scores.shape[:-1])
    options = float(by), NAMES[value.dtype], None
    weights = _rows("attention_weights", options, scores, seen)
    found = compute_matmul(weights, value, tier)
    return found.view(*query.shape[:-1], value.shape[-1]) if grouped else found


_kept = Pointwise(lambda x, mask, scale: where(mask, x * scale, -math.inf), "kept")
_shifted = Pointwise(lambda x, mask, scale: x * scale + mask, "shifted")
_filled = Pointwise(lambda x, value: value, "filled")


def _attention(
    tier: str,
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: Any = None,
    enable_gqa: bool = False,
) -> Any:
    """``softmax(q · kᵀ · scale + mask) · v``: scores and weights in f32 (f64 of f64), the weights
    then rounded to the dtype of ``value``. A query that sees no key gets zeros. Heads that share
    keys are rows of one product.
    """
    tensors = (query, key, value)
    plain = all(type(t) in PLAIN for t in tensors)
    if not (plain and _attends(*tensors, attn_mask, dropout_p, is_causal)):
        return NotImplemented
    heads, length, width = query.shape[-3:]
    shared, keys = key.shape[-3], key.shape[-2]
    grouped = enable_gqa and shared != heads
    q = query.reshape(*query.shape[:-3], shared, -1, width) if grouped else query
    scores = matmul(q, key.mT, tier=tier, out_dtype=wide(query.dtype))
    if grouped:
        scores = scores.view(*query.shape[:-1], keys)
    scores = scores * (1 / math.sqrt(width) if scale is None else scale)
    if is_causal:
        attn_mask = torch.ones(length, keys, dtype=torch.bool, device=query.device).tril_()
    if attn_mask is not None:
        scores = (
            scores.masked_fill(~attn_mask, -math.inf)
            if attn_mask.dtype is torch.bool
            else scores + attn_mask
        )
    weights = torch._safe_softmax(scores, -1).to(value.dtype)
    if grouped:
        weights = weights.reshape(*q.shape[:-1], keys)
    found = matmul(weights, value, tier=tier)
    return found.view(*query.shape[:-1], value.shape[-1]) if grouped else found


# -- the table ------------------------------------------------------------------------------
SERVED: Final[dict[str, Serve]] = {
    "mm": _mm,
    "mm.dtype": _mm,
    "addmm": _addmm,
    "addmm.dtype": _addmm,
    "bmm": _bmm,
    "bmm.dtype": _bmm,
    "baddbmm": _added(_bmm),
    "baddbmm.dtype": _added(_bmm),
    "mv": _mv,
    "addmv": _added(_mv),
    "dot": _dot,
    "vdot": _dot,
    "_grouped_mm": _grouped_mm,
    "sum": _adding("sum"),
    "sum.dim_IntList": _adding("sum"),
    "mean": _adding("mean"),
    "mean.dim": _adding("mean"),
    "var.correction": _spread("var"),
    "std.correction": _spread("std"),
    "var_mean.correction": _with_mean("var"),
    "std_mean.correction": _with_mean("std"),
    "linalg_vector_norm": _vector_norm,
    "_softmax": _softmax("softmax"),
    "_log_softmax": _softmax("log_softmax"),
    "_softmax_backward_data": _softmax_backward("softmax_backward"),
    "_log_softmax_backward_data": _softmax_backward("log_softmax_backward"),
    "native_layer_norm": _layer_norm,
    "native_layer_norm_backward": _layer_norm_backward,
    "native_group_norm": _group_norm,
    "native_group_norm_backward": _group_norm_backward,
    "_fused_rms_norm": _rms_norm,
    "_fused_rms_norm_backward": _rms_norm_backward,
    "sort": _sort,
    "sort.stable": _sort,
    "topk": _topk,
    "cumsum": _cumsum,
    "embedding_dense_backward": _embedding_backward,
    "index_add": _index_add,
    "scatter_add": _scatter_add,
    "scatter.reduce": _scatter_reduce,
    "scatter_reduce.two": _scatter_reduce,
    "_index_put_impl_": _index_put_,
}
"""Operators of ATen, functional forms, and what serves them."""

COMPOSED: Final[dict[str, tuple[Serve, Serve]]] = {
    "scaled_dot_product_attention": (_attention_alone, _attention)
}
"""Operators that are served above autograd: what does where nothing is recorded, and what else."""

WHOLE: Final[dict[str, tuple[str, Serve]]] = {
    "layer_norm": ("native_layer_norm", _layer_norm_alone),
    "rms_norm": ("_fused_rms_norm", _rms_norm_alone),
    "softmax.int": ("_softmax", _softmax_alone("softmax")),
    "log_softmax.int": ("_log_softmax", _softmax_alone("log_softmax")),
}
"""Operators that are served above autograd where that records nothing: the operator of
:data:`SERVED` that they are counted as, and what serves them, given all arguments.
"""
