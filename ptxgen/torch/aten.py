"""The table of what :class:`ptxgen.torch.batch_invariant` serves: an ATen operator, a function.

A function of :data:`SERVED` is called with the block's tier and the operator's own arguments,
below autograd, and returns what the operator returns. ``out=`` and in-place forms are made of it.
It may return ``NotImplemented`` (arguments that it does not take: the operator is then unknown to
the block), or :data:`ALONE` (PyTorch's kernel has the block's property for them, for the reason
that stands there). A function of :data:`COMPOSED` runs above autograd, and is made of functions
that can be differentiated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import torch

import ptxgen.ops as ops
from ptxgen.errors import ShapeError
from ptxgen.ops.forward import run as _linear
from ptxgen.ops.product import run as _product
from ptxgen.torch.functional import (
    NAMES,
    PLAIN,
    added,
    check_batches,
    matmul,
    matrix,
    wide,
)

Serve = Callable[..., Any]

ALONE: Final = object()
"""Returned where PyTorch's own kernel computes each row by itself."""

WARP: Final = 1024
"""The longest row that PyTorch's softmax gives to one warp, whose order of adding depends on the
length alone. Longer rows are read in vectors, whose first is cut off at an address divisible by
16: so the order depends on where a row begins, and with it on its place in the batch."""


# -- products -------------------------------------------------------------------------------
def _multiply(tier: str, a: Any, b: Any, dtype: Any = None) -> Any:
    """A product as the hot path takes it; operands that no kernel reads are copied."""
    options = "nn", tier, None if dtype is None else NAMES.get(dtype), None
    try:
        return _product(a, b, None, None, options)
    except ShapeError:
        left, right = matrix(a), matrix(b)
        if left is a and right is b:
            raise
        return _product(left, right, None, None, options)


def _mm(tier: str, a: Any, b: Any, dtype: Any = None) -> Any:
    if a.dim() != 2 or b.dim() != 2:
        return NotImplemented  # PyTorch refuses it in its own words
    return _multiply(tier, a, b, dtype)


def _bmm(tier: str, a: Any, b: Any, dtype: Any = None) -> Any:
    check_batches(a, b, "batch1", "batch2")
    return _multiply(tier, a, b, dtype)


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


# -- sums -----------------------------------------------------------------------------------
_SUM = {dtype: ("nn", "simt", NAMES[wide(dtype)], None) for dtype in NAMES}


def _row_sums(x: Any) -> Any:
    """The sums of the rows of x [R, N], in f32 (f64 of f64), as products with ones."""
    ones = x.new_ones(x.shape[1], 1)
    return _product(matrix(x), ones, None, None, _SUM[x.dtype]).squeeze(1)


def _column_sums(x: Any) -> Any:
    """The sums of the columns of x [R, N]: down the batch."""
    ones = x.new_ones(1, x.shape[0])
    return _product(ones, matrix(x), None, None, _SUM[x.dtype]).squeeze(0)


def _dims(x: Any, dim: Any) -> list[int]:
    if dim is None or (not isinstance(dim, int) and len(dim) == 0):
        return list(range(x.dim()))
    return sorted(d % max(x.dim(), 1) for d in ([dim] if isinstance(dim, int) else dim))


def _total(x: Any, dims: Sequence[int], keepdim: bool) -> Any:
    """The sum over dimensions, in f32 (f64 of f64)."""
    kept = [d for d in range(x.dim()) if d not in dims]
    shape = [x.shape[d] for d in kept]
    count = math.prod(x.shape[d] for d in dims)
    if not x.numel():
        total = x.new_zeros(shape, dtype=wide(x.dtype))
    elif kept and dims and max(dims) < min(kept):  # down the leading dimensions
        total = _column_sums(x.reshape(count, -1)).view(shape)
    else:
        total = _row_sums(x.permute(*kept, *dims).reshape(-1, count)).view(shape)
    if keepdim:
        total = total.view([1 if d in dims else x.shape[d] for d in range(x.dim())])
    return total


def _sum(tier: str, x: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    wanted = dtype or x.dtype
    if wanted not in NAMES:
        return NotImplemented
    x = x if x.dtype in NAMES else x.to(wanted)
    if x.dtype is not torch.float64 and wanted is torch.float64:
        x = x.to(wanted)
    return _total(x, _dims(x, dim), keepdim).to(wanted)


def _mean(tier: str, x: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    total = _sum(tier, x, dim, keepdim, dtype=wide(dtype or x.dtype))
    count = math.prod(x.shape[d] for d in _dims(x, dim))
    return total if total is NotImplemented else (total / count).to(dtype or x.dtype)


def _var_mean(
    tier: str, x: Any, dim: Any = None, *, correction: Any = None, keepdim: bool = False
) -> Any:
    dims = _dims(x, dim)
    count = math.prod(x.shape[d] for d in dims)
    wanted = wide(x.dtype)
    mean = _mean(tier, x, dim, True, dtype=wanted)
    if mean is NotImplemented:
        return mean
    apart = x.to(wanted) - mean
    rest = max(count - (1 if correction is None else correction), 0)
    var = _total(apart * apart, dims, keepdim) / rest
    return var.to(x.dtype), mean.view(var.shape).to(x.dtype)


def _var(tier: str, *args: Any, **options: Any) -> Any:
    found = _var_mean(tier, *args, **options)
    return found if found is NotImplemented else found[0]


def _std(tier: str, *args: Any, **options: Any) -> Any:
    found = _std_mean(tier, *args, **options)
    return found if found is NotImplemented else found[0]


def _std_mean(tier: str, *args: Any, **options: Any) -> Any:
    found = _var_mean(tier, *args, **options)
    return found if found is NotImplemented else (found[0].sqrt(), found[1])


def _vector_norm(
    tier: str, x: Any, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Any:
    if ord not in (1, 2) or x.dtype not in NAMES:
        return NotImplemented
    wanted = wide(dtype or x.dtype)
    x32 = x.to(wanted)
    total = _total(x32 * x32 if ord == 2 else x32.abs(), _dims(x, dim), keepdim)
    return (total.sqrt() if ord == 2 else total).to(dtype or x.dtype)


# -- softmax --------------------------------------------------------------------------------
def _last(x: Any, dim: int) -> Any:
    """x with dimension ``dim`` last, in f32 (f64 of f64)."""
    return x.movedim(dim, -1).to(wide(x.dtype))


def _alone(x: torch.Tensor, dim: int) -> bool:
    return x.dim() == 0 or bool(dim % x.dim() == x.dim() - 1 and x.shape[-1] <= WARP)


def _softmax_of(log: bool) -> Serve:
    def serve(tier: str, x: Any, dim: int, half_to_float: bool) -> Any:
        if x.dtype not in NAMES or x.dtype is torch.float64:
            return NotImplemented
        if _alone(x, dim):
            return ALONE
        row = _last(x, dim).contiguous()
        if log:
            y = row - ops.logsumexp(row).unsqueeze(-1)
        else:
            e = (row - row.amax(-1, keepdim=True)).exp_()
            y = e / _total(e, [row.dim() - 1], True)
        return y.movedim(-1, dim).to(torch.float32 if half_to_float else x.dtype)

    return serve


def _softmax_backward_of(log: bool) -> Serve:
    def serve(tier: str, dy: Any, y: Any, dim: int, input_dtype: Any) -> Any:
        if y.dtype not in NAMES or y.dtype is torch.float64:
            return NotImplemented
        if _alone(y, dim):
            return ALONE
        g, p = _last(dy, dim), _last(y, dim)
        if log:
            dx = g - p.exp() * _total(g, [g.dim() - 1], True)
        else:
            dx = (g - _total(g * p, [g.dim() - 1], True)) * p
        return dx.movedim(-1, dim).to(input_dtype)

    return serve


# -- norms ----------------------------------------------------------------------------------
def _flat(x: Any, shape: Sequence[int]) -> Any:
    """x [..., *shape] as rows, in f32 (f64 of f64)."""
    return x.reshape(-1, math.prod(shape)).to(wide(x.dtype))


def _layer_norm(tier: str, x: Any, shape: Any, weight: Any, bias: Any, eps: float) -> Any:
    rows = _flat(x, shape)
    if not rows.numel() or rows.dtype is torch.float64:
        return NotImplemented
    width = rows.shape[1]
    mean = _row_sums(rows).unsqueeze(1) / width
    apart = rows - mean
    rstd = (_row_sums(apart * apart).unsqueeze(1) / width + eps).rsqrt()
    y = (apart * rstd).view(x.shape)
    y = y if weight is None else y * weight
    y = y if bias is None else y + bias
    outer = (*x.shape[: x.dim() - len(shape)], *[1] * len(shape))
    return y.to(x.dtype), mean.view(outer), rstd.view(outer)


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
    if not rows.numel() or rows.dtype is torch.float64:
        return NotImplemented
    width = rows.shape[1]
    rstd = rstd.reshape(-1, 1).to(rows.dtype)
    hat = (rows - mean.reshape(-1, 1).to(rows.dtype)) * rstd
    dx = dw = db = None
    if mask[0]:
        gw = g if weight is None else g * weight.reshape(1, -1)
        part = _row_sums(gw).unsqueeze(1) / width
        along = _row_sums(gw * hat).unsqueeze(1) / width
        dx = ((gw - part - hat * along) * rstd).view(x.shape).to(x.dtype)
    if mask[1] and weight is not None:
        dw = _column_sums(g * hat).view(weight.shape).to(weight.dtype)
    if mask[2] and bias is not None:
        db = _column_sums(g).view(bias.shape).to(bias.dtype)
    return dx, dw, db


def _rms_norm(tier: str, x: Any, shape: Any, weight: Any, eps: Any) -> Any:
    rows = _flat(x, shape)
    if not rows.numel() or rows.dtype is torch.float64:
        return NotImplemented
    eps = torch.finfo(x.dtype).eps if eps is None else eps
    rstd = (_row_sums(rows * rows).unsqueeze(1) / rows.shape[1] + eps).rsqrt()
    y = (rows * rstd).view(x.shape)
    y = y if weight is None else y * weight
    outer = (*x.shape[: x.dim() - len(shape)], *[1] * len(shape))
    return y.to(x.dtype), rstd.view(outer)


def _rms_norm_backward(
    tier: str, dy: Any, x: Any, shape: Any, rstd: Any, weight: Any, mask: Any
) -> Any:
    rows, g = _flat(x, shape), _flat(dy, shape)
    if not rows.numel() or rows.dtype is torch.float64:
        return NotImplemented
    rstd = rstd.reshape(-1, 1).to(rows.dtype)
    hat = rows * rstd
    dx = dw = None
    if mask[0]:
        gw = g if weight is None else g * weight.reshape(1, -1)
        along = _row_sums(gw * hat).unsqueeze(1) / rows.shape[1]
        dx = ((gw - hat * along) * rstd).view(x.shape).to(x.dtype)
    if mask[1] and weight is not None:
        dw = _column_sums(g * hat).view(weight.shape).to(weight.dtype)
    return dx, dw


# -- order ----------------------------------------------------------------------------------
def _sort(tier: str, x: Any, dim: int = -1, descending: bool = False, *, stable: Any = True) -> Any:
    """Of equals the first comes first, whichever kernel sorts."""
    return ALONE if stable else torch.sort(x, stable=True, dim=dim, descending=descending)


def _topk(
    tier: str, x: Any, k: int, dim: int = -1, largest: bool = True, order: bool = True
) -> Any:
    """The head of a stable sort: of equals the first ones are taken, whichever kernel sorts."""
    values, indices = torch.sort(x, stable=True, dim=dim, descending=largest)
    if k > (x.shape[dim] if x.dim() else 1):
        return NotImplemented
    return tuple(t.narrow(dim, 0, k).contiguous() if t.dim() else t for t in (values, indices))


def _index_put(
    tier: str,
    x: Any,
    indices: Any,
    values: Any,
    accumulate: bool = False,
    unsafe: bool = False,
) -> Any:
    """Values put in their places; whether sums of those that share a place read the batch's size is
    not known.
    """
    return NotImplemented if accumulate else ALONE


# -- attention ------------------------------------------------------------------------------
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
    then rounded to the dtype of ``value``. Heads that share keys are rows of one product.
    """
    tensors = (query, key, value)
    if (
        dropout_p
        or any(type(t) not in PLAIN or t.layout is not torch.strided for t in tensors)
        or any(t.dtype is not query.dtype or t.dim() != query.dim() for t in tensors)
        or query.dtype not in NAMES
        or query.dim() < 3
        or (is_causal and attn_mask is not None)
    ):
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
    if attn_mask is None:
        weights = torch.softmax(scores, -1)
    else:
        masked = (
            scores.masked_fill(~attn_mask, -math.inf)
            if attn_mask.dtype is torch.bool
            else scores + attn_mask
        )
        weights = torch._safe_softmax(masked, -1)
    weights = weights.to(value.dtype)
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
    "sum": _sum,
    "sum.dim_IntList": _sum,
    "mean": _mean,
    "mean.dim": _mean,
    "var.correction": _var,
    "var_mean.correction": _var_mean,
    "std.correction": _std,
    "std_mean.correction": _std_mean,
    "linalg_vector_norm": _vector_norm,
    "_softmax": _softmax_of(log=False),
    "_log_softmax": _softmax_of(log=True),
    "_softmax_backward_data": _softmax_backward_of(log=False),
    "_log_softmax_backward_data": _softmax_backward_of(log=True),
    "native_layer_norm": _layer_norm,
    "native_layer_norm_backward": _layer_norm_backward,
    "_fused_rms_norm": _rms_norm,
    "_fused_rms_norm_backward": _rms_norm_backward,
    "sort": _sort,
    "sort.stable": _sort,
    "topk": _topk,
    "_index_put_impl_": _index_put,
}
"""Operators of ATen, functional forms, and what serves them."""

COMPOSED: Final[dict[str, Serve]] = {"scaled_dot_product_attention": _attention}
"""Operators that are served above autograd."""
