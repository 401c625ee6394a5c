"""Handlers of the ATen operators that ptxgen computes in :class:`ptxgen.torch.batch_invariant`.

A handler in :data:`LOWERED` takes a builder, the tier of products, and the operator's arguments as
buffers; it appends steps to the builder's program and returns result buffers. One in :data:`DIRECT`
takes the tier and tensors, as its steps depend on values. ``out=`` and in-place forms are derived
from both. Handlers in :data:`INFERENCE` and :data:`RECORDED` run above autograd: the former only
where it records nothing, without results that PyTorch saves for gradients; the latter with
gradients of their own.

Handlers raise :class:`ptxgen.torch.unserved.NotServed` to decline a call: UNKNOWN for arguments
that they do not support, ROW_WISE where PyTorch's kernel computes each row by itself, TRY_NEXT
where :data:`DIRECT` has a handler, or PyTorch calls operators with handlers.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Final

import torch

from ptxgen.errors import ShapeError
from ptxgen.graph.passes import common
from ptxgen.numerics.dtype import DTYPES, PARTS
from ptxgen.numerics.formula import where
from ptxgen.numerics.option import Bool, Reduction
from ptxgen.numerics.row_reductions import no_class
from ptxgen.numerics.signature import broadcast
from ptxgen.numerics.sort import KEYS
from ptxgen.ops import OPERATIONS
from ptxgen.ops.conv import window_rows
from ptxgen.ops.grouped import has_kernels
from ptxgen.ops.norms import group_norm_gradients, group_norm_kept
from ptxgen.ops.pointwise import Pointwise
from ptxgen.ops.products import bias_gradient
from ptxgen.ops.triangular import SERVED as TRIANGULAR
from ptxgen.ops.views import readable, rows_apart
from ptxgen.ops.vocab_segments import Ignored, Smoothing
from ptxgen.program.buffer import INPUT, Buffer
from ptxgen.program.build import ProgramBuilder
from ptxgen.program.invoke import Frame
from ptxgen.program.operation import Backward, Gradients, Op
from ptxgen.program.parameters import ARRAY, Parameter
from ptxgen.program.prepared import Hooks
from ptxgen.spec.gather_scatter import COUNT_MAX
from ptxgen.torch import images, transforms
from ptxgen.torch.functional import LINEAR, NAMES, accumulated, check_batches, matmul
from ptxgen.torch.functions import FUNCTIONS, call
from ptxgen.torch.operators import added
from ptxgen.torch.record import TorchBuilder, function
from ptxgen.torch.sdpa import compute_attention, has_fused_kernel, record_fused
from ptxgen.torch.unserved import ROW_WISE, TRY_NEXT, UNKNOWN, NotServed, Serve, require_floats


# -- products -------------------------------------------------------------------------------
def _name(dtype: Any) -> str | None:
    if dtype is None:
        return None
    if dtype not in NAMES:
        raise NotServed(UNKNOWN)
    return NAMES[dtype]


def _as(b: Any, x: Any, dtype: Any) -> Any:
    return x if dtype is None else b.cast(x, _name(dtype))


def _mm(b: Any, tier: str, x: Any, y: Any, dtype: Any = None) -> Any:
    if not len(x.shape) == len(y.shape) == 2 or b.dtype(x) != b.dtype(y):
        raise NotServed(UNKNOWN)  # PyTorch refuses it in its own words
    return b.matmul(readable(b, x), readable(b, y), tier=tier, out_dtype=_name(dtype))


def _bmm(b: Any, tier: str, x: Any, y: Any, dtype: Any = None) -> Any:
    check_batches(x, y, "batch1", "batch2")
    if b.dtype(x) != b.dtype(y):
        raise NotServed(UNKNOWN)
    return b.matmul(readable(b, x), readable(b, y), tier=tier, out_dtype=_name(dtype))


def _mv(b: Any, tier: str, x: Any, v: Any, dtype: Any = None) -> Any:
    if len(v.shape) != 1:
        raise ShapeError(f"vec has shape {list(v.shape)}; takes [K] = [{x.shape[-1]}]")
    return b.squeeze(_mm(b, tier, x, b.unsqueeze(v, 1), dtype), 1)


def _dot(b: Any, tier: str, x: Any, y: Any) -> Any:
    return b.squeeze(_mv(b, tier, b.unsqueeze(x, 0), y), 0)


def _product_plus_input(multiply: Serve) -> Serve:
    """Returns a handler of ``alpha * product + beta * input``; ``multiply`` handles the product."""

    def serve(
        b: Any, tier: str, input: Any, x: Any, y: Any, dtype: Any = None, *, beta: Any, alpha: Any
    ) -> Any:
        wide = torch.float64 if x.dtype == "float64" else torch.float32
        found = multiply(b, tier, x, y, wide)
        return accumulated(b, found, input, beta, alpha, _name(dtype) or x.dtype)

    return serve


_addmm_of = _product_plus_input(_mm)


def _addmm(
    b: Any, tier: str, input: Any, x: Any, y: Any, dtype: Any = None, *, beta: Any, alpha: Any
) -> Any:
    vector = len(input.shape) == 1 and input.shape[0] == y.shape[1] and len(x.shape) == 2
    vector = vector and b.dtype(x) == b.dtype(y)
    if alpha == beta == 1 and vector:  # a linear layer: the kernel adds the bias
        given = readable(b, x), readable(b, y), b.packed(input)
        return b.linear(*given, layout="kn", tier=tier, out_dtype=_name(dtype))
    return _addmm_of(b, tier, input, x, y, dtype, beta=beta, alpha=alpha)


def _grouped(
    b: Any, tier: str, x: Any, y: Any, offs: Any = None, bias: Any = None, out_dtype: Any = None
) -> Any:
    """Lowers ``_grouped_mm`` to grouped kernels, which read offsets on the device. Raises
    NotServed(TRY_NEXT) for calls that these do not support.
    """
    ranks = len(x.shape), len(y.shape)
    wanted, kind = _name(out_dtype) or x.dtype, b.dtype(x)
    served = kind == b.dtype(y) and wanted in (kind, "float32") and ranks in ((2, 3), (2, 2))
    if bias is not None or offs is None or not served:
        raise NotServed(TRY_NEXT)
    if offs.dtype != "int32" or not has_kernels(kind, tier, offs.shape[0]):
        raise NotServed(TRY_NEXT)
    offs = b.packed(offs)
    if ranks == (2, 3):
        return b.grouped_linear(rows_apart(b, x), y, offs, out_dtype=wanted, layout="kn")
    rows = rows_apart(b, b.transpose(x))
    return b.grouped_linear_wgrad(rows, rows_apart(b, y), offs, out_dtype=wanted, layout="kn")


_weight_gradient = function(OPERATIONS["linear_wgrad"])


def _grouped_mm(
    tier: str, a: Any, b: Any, offs: Any = None, bias: Any = None, out_dtype: Any = None
) -> Any:
    """Computes ``_grouped_mm`` with one product per group: for groups of columns, and for dtypes
    without grouped kernels. Copies the offsets to the host, which synchronises.

    Where groups split K, each product has one accumulator per element, as in grouped kernels.
    """
    if bias is not None:
        raise NotServed(UNKNOWN)

    def product(x: Any, y: Any, dtype: Any) -> Any:
        return matmul(x, y, tier=tier, out_dtype=dtype)

    if offs is None:
        return product(a, b, out_dtype)
    ends = offs.tolist()
    spans = list(zip([0, *ends[:-1]], ends, strict=True))
    dtype = out_dtype or a.dtype
    if a.dim() == b.dim() == 2:
        out = a.new_empty(len(spans), a.shape[0], b.shape[1], dtype=dtype)
        chain = {"layout": "kn", "tier": tier, "chain": True, "out_dtype": dtype}
        for i, (start, end) in enumerate(spans):
            rows = a[:, start:end].mT.contiguous(), b[start:end].contiguous()
            out[i] = _weight_gradient(*rows, **chain)
        return out
    of_rows = b.dim() == 3  # else of columns
    shape = (a.shape[0], b.shape[2]) if of_rows else (a.shape[1], b.shape[1])
    out = a.new_zeros(shape, dtype=dtype)
    for i, (start, end) in enumerate(spans):
        if end > start and of_rows:
            out[start:end] = product(a[start:end], b[i], dtype)
        elif end > start:
            out[:, start:end] = product(a[i], b[:, start:end], dtype)
    return out


_dense = function(LINEAR)


def _gemm_4bit(
    tier: str, x: Any, data: Any, shape: Any, scales: Any, block: int, kind: str, bias: Any = None,
    codes: Any = None, code: Any = None, offset: Any = None,
) -> Any:  # fmt: skip
    """Computes the product of bitsandbytes with a weight of 4 bits: the dense one with the weight
    that bitsandbytes dequantizes, rounded once to x's dtype. ``codes``, ``code``, ``offset``: those
    of scales that are quantized themselves, in blocks of 256.
    """
    ops = torch.ops.bitsandbytes
    if codes is not None:
        scales = ops.dequantize_blockwise(codes, scales, code, 256, torch.float32) + offset
    w = ops.dequantize_4bit(data, scales, block, kind, shape, x.dtype)
    return _dense(x, w, bias, tier=tier)


# -- rows -----------------------------------------------------------------------------------
def axes(x: Any, dim: Any) -> Any:
    """Converts ATen's ``dim`` to the ``axis`` of ptxgen's reductions: None for all dimensions, also
    for an empty list, and for 0 or -1 of a scalar.
    """
    given = (dim,) if isinstance(dim, int) else dim
    return dim if given and (x.shape or {*given} - {0, -1}) else None


def _sum_or_mean(name: str) -> Serve:
    def serve(
        b: Any, tier: str, x: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
    ) -> Any:
        how = {"axis": axes(x, dim), "keepdims": keepdim}
        wanted = x.dtype if dtype is None else _name(dtype)
        if wanted == x.dtype:
            if x.dtype not in PARTS:
                require_floats(x)
            return getattr(b, name)(x, **how)
        if x.dtype not in DTYPES or wanted != b.wide(x):
            x = b.cast(x, wanted)
        return getattr(b, name)(x, **how, out_dtype=wanted)

    return serve


def _extreme(*names: str) -> Serve:
    """Returns the handler of max, min or both.

    For a row with +0 and -0, PyTorch's kernels return either: their order depends on sizes.
    """

    def serve(b: Any, tier: str, x: Any, dim: Any = None, keepdim: bool = False) -> Any:
        require_floats(x)
        if not math.prod(x.shape):
            raise NotServed(ROW_WISE)
        found = tuple(getattr(b, n)(x, axis=axes(x, dim), keepdims=keepdim) for n in names)
        return found if len(names) > 1 else found[0]

    return serve


def _prod(
    b: Any, tier: str, x: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Any:
    x = _as(b, x, dtype)
    if b.dtype(x) not in DTYPES:
        raise NotServed(UNKNOWN)
    return b.prod(x, axis=axes(x, dim), keepdims=keepdim)


def _prod_recorded(tier: str, x: Any, *args: Any, **options: Any) -> Any:
    """Computes ``prod`` with the gradient of each row by itself. PyTorch's formula for all rows
    changes as soon as one row of the batch contains a zero.
    """
    if x.dtype not in NAMES or x.layout is not torch.strided:
        raise NotServed(UNKNOWN)
    return _prod(TorchBuilder(OPERATIONS), tier, x, *args, **options)


def _cumprod(b: Any, tier: str, x: Any, dim: int, *, dtype: Any = None) -> Any:
    """Lowers ``cumprod`` to the recurrence ``h[t] = x[t] * h[t - 1] + 0`` in f32; each result is
    rounded when it is stored.
    """
    x = _as(b, x, dtype)
    require_floats(x)
    if not x.shape or not math.prod(x.shape) or x.dtype == "float64":
        raise NotServed(UNKNOWN)
    dim %= len(x.shape)
    ahead, behind = math.prod(x.shape[:dim]), math.prod(x.shape[dim + 1 :])
    rows = b.reshape(x, (ahead, x.shape[dim], behind))
    nothing = b.expand(b.filled((1, 1, 1), x.dtype, 0.0, x), rows.shape)
    first = b.filled((ahead, behind), "float32", 1.0, x)
    return b.reshape(b.linear_recurrence(rows, nothing, first), x.shape)


def _variance_or_std(name: str) -> Serve:
    """Returns the handler of ATen operators that compute ``name``, "var" or "std"."""

    def serve(b: Any, tier: str, x: Any, dim: Any, *, correction: Any, keepdim: bool) -> Any:
        require_floats(x)
        less = 1.0 if correction is None else float(correction)
        return getattr(b, name)(x, axis=axes(x, dim), keepdims=keepdim, correction=less)

    return serve


def _with_mean(name: str) -> Serve:
    spread, mean = _variance_or_std(name), _sum_or_mean("mean")

    def serve(b: Any, tier: str, x: Any, dim: Any, *, correction: Any, keepdim: bool) -> Any:
        found = spread(b, tier, x, dim, correction=correction, keepdim=keepdim)
        return found, mean(b, tier, x, dim, keepdim)

    return serve


def _vector_norm(
    b: Any, tier: str, x: Any, ord: Any, dim: Any, keepdim: bool, *, dtype: Any
) -> Any:
    require_floats(x)
    if ord not in (1, 2):
        raise NotServed(UNKNOWN)
    wanted = _name(dtype) or x.dtype
    x = b.cast(x, "float64" if wanted == "float64" else "float32")
    powers = b.mul(x, x) if ord == 2 else b.abs(x)
    total = b.sum(powers, axis=axes(x, dim), keepdims=keepdim)
    return b.cast(b.sqrt(total) if ord == 2 else total, wanted)


def _along(b: Any, name: str, x: Any, dim: int, **how: Any) -> Any:
    """Applies operation ``name`` along dimension ``dim``; the result is contiguous, as PyTorch's
    is.
    """
    if not x.shape:
        return b.reshape(getattr(b, name)(b.reshape(x, (1,)), **how), ())
    return b.contiguous(getattr(b, name)(x, axis=dim, **how))


def _softmax(name: str) -> Serve:
    def serve(b: Any, tier: str, x: Any, dim: int, half_to_float: bool) -> Any:
        require_floats(x)
        return _along(b, name, x, dim, out_dtype="float32" if half_to_float else None)

    return serve


def _softmax_backward(name: str) -> Serve:
    def serve(b: Any, tier: str, dy: Any, y: Any, dim: int, input_dtype: Any) -> Any:
        require_floats(dy, y)
        given = [b.reshape(v, (1,)) if not v.shape else b.move(v, dim, -1) for v in (dy, y)]
        dx = b.rows(f"{name}_backward", *map(b.packed, given))
        dx = b.move(dx, -1, dim) if y.shape else b.reshape(dx, ())
        return b.contiguous(b.cast(dx, _name(input_dtype)))

    return serve


# -- norms ----------------------------------------------------------------------------------
def _flat(b: Any, x: Any, shape: Sequence[int]) -> Any:
    """Returns x [..., *shape] with the dimensions of ``shape`` flattened into one."""
    if len(shape) == 1:
        return x
    return b.reshape(x, (*x.shape[: len(x.shape) - len(shape)], math.prod(shape)))


def _vector(b: Any, weight: Any) -> Any:
    return None if weight is None else b.packed(b.reshape(weight, (math.prod(weight.shape),)))


def _outer(x: Any, shape: Sequence[int]) -> tuple[int, ...]:
    return (*x.shape[: len(x.shape) - len(shape)], *[1] * len(shape))


def _norm_eps(x: Any, eps: Any) -> float:
    return float(torch.finfo(getattr(torch, x.dtype)).eps if eps is None else eps)


def _norm(norm: str) -> Serve:
    """Returns the handler of a norm that also returns the statistics of each row for gradients."""

    def serve(b: Any, tier: str, x: Any, shape: Any, *rest: Any) -> Any:
        *vectors, eps = rest
        require_floats(x)
        given = _flat(b, x, shape), *(_vector(b, v) for v in vectors)
        y, *kept = b.rows(f"native_{norm}", *given, eps=_norm_eps(x, eps))
        return b.reshape(y, x.shape), *(b.reshape(m, _outer(x, shape)) for m in kept)

    return serve


def _fits(x: Any, shape: Any, *weights: Any) -> None:
    """Raises NotServed(TRY_NEXT) unless the norm is over x's last dimension, and x and its weights
    have one supported dtype.
    """
    last = x.shape[-1:]
    if (
        x.dtype not in DTYPES
        or tuple(shape) != last
        or any(w is not None and (w.dtype != x.dtype or w.shape != last) for w in weights)
    ):
        raise NotServed(TRY_NEXT)


def _norm_inference(norm: str, count: int) -> Serve:
    """Returns the handler of ``norm``, "layer_norm" or "rms_norm", that computes no statistics for
    gradients. ``count``: number of its vectors (weight, bias): 2 or 1.
    """

    def serve(b: Any, tier: str, x: Any, shape: Any, *rest: Any) -> Any:
        _fits(x, shape, *rest[:count])
        return b.rows(norm, x, *rest[:count], eps=_norm_eps(x, rest[count]))

    return serve


def _group_norm_inference(b: Any, tier: str, x: Any, groups: int, *how: Any) -> Any:
    weight, bias, eps, _ = how
    require_floats(x)
    if len(x.shape) < 2 or x.shape[1] % groups:
        raise NotServed(TRY_NEXT)  # PyTorch says so
    return group_norm_kept(b, x, groups, weight, bias, eps, x.dtype)[0]


def _softmax_inference(name: str) -> Serve:
    def serve(b: Any, tier: str, x: Any, dim: int, dtype: Any) -> Any:
        if x.dtype not in DTYPES or (dtype is not None and _name(dtype) != x.dtype):
            raise NotServed(TRY_NEXT)
        return _along(b, name, x, dim)

    return serve


def _norm_backward(norm: str, count: int) -> Serve:
    """Returns the handler of the gradients of ``norm``: "layer_norm" or "rms_norm". ``count``:
    number of its vectors (weight, bias), and also of the saved statistics per row: 2 or 1.
    """

    def serve(b: Any, tier: str, dy: Any, x: Any, shape: Any, *rest: Any) -> Any:
        kept, vectors, mask = rest[:count], rest[count:-1], rest[-1]
        require_floats(dy, x)
        g, rows = (b.packed(_flat(b, v, shape)) for v in (dy, x))
        kept = tuple(b.reshape(b.cast(m, b.wide(rows)), rows.shape[:-1]) for m in kept)
        dx, found = None, [None] * count
        if mask[0]:
            given = g, rows, _vector(b, vectors[0]), *kept
            dx = b.reshape(b.rows(f"native_{norm}_backward", *given), x.shape)
        wanted = [i for i, v in enumerate(vectors) if mask[i + 1] and v is not None]
        if wanted:
            dtype = x.dtype if vectors[wanted[0]].dtype == x.dtype else b.wide(x)
            made = getattr(b, f"{norm}_wgrad")(g, rows, *kept, out_dtype=dtype)
            for i in wanted:
                d, v = made[i] if count > 1 else made, vectors[i]
                found[i] = b.reshape(b.cast(d, v.dtype), v.shape)
        return dx, *found

    return serve


def _group_norm(b: Any, tier: str, x: Any, weight: Any, bias: Any, *how: Any) -> Any:
    """Lowers ``native_group_norm``; mean and rstd get the dtype of the weight, as in PyTorch."""
    count, _, _, groups, eps = how  # the others are channels, and what lies behind them
    require_floats(x)
    y, *kept = group_norm_kept(b, x, groups, weight, bias, eps, x.dtype)
    dtype = next((v.dtype for v in (weight, bias) if v is not None), x.dtype)
    return y, *(b.cast(b.reshape(m, (count, groups)), dtype) for m in kept)


def _group_norm_backward(
    b: Any, tier: str, dy: Any, x: Any, mean: Any, rstd: Any, weight: Any, *how: Any
) -> Any:
    count, _, _, groups, mask = how
    require_floats(dy, x)
    dtype = x.dtype if weight is None else weight.dtype
    mean, scale = (b.reshape(b.cast(m, b.wide(x)), (count * groups,)) for m in (mean, rstd))
    needs = frozenset(itertools.compress(images.GRADIENTS, mask))
    found = group_norm_gradients(b, dy, x, weight, mean, scale, groups, needs, (dtype, dtype))
    return tuple(map(found.get, images.GRADIENTS))


# -- convolutions ---------------------------------------------------------------------------
def _is_channels_last(x: Any) -> bool:
    """Whether an image has memory format channels_last; results then have it, too."""
    order = (0, *range(2, len(x.shape)), 1)
    return len(x.shape) > 3 and not x.contiguous and x.permuted(order).contiguous


def _windowed(b: Any, given: Sequence[Any]) -> tuple[list[Any], str]:
    """Returns ``given``, the images and filters of a convolution, and their layout:
    "channels_first", or "channels_last" with views whose last dimension is the channels. Raises
    NotServed unless they have one dtype of :data:`ptxgen.numerics.dtype.DTYPES`, and 3 to 5
    dimensions.
    """
    if any(x.dtype != given[0].dtype for x in given) or given[0].dtype not in DTYPES:
        raise NotServed(UNKNOWN)
    if not 3 <= len(given[0].shape) <= 5:
        raise NotServed(UNKNOWN)
    if any(map(_is_channels_last, given)):
        return [b.move(x, 1, -1) for x in given], "channels_last"
    return list(given), "channels_first"


def _convolution(
    b: Any, tier: str, x: Any, w: Any, bias: Any = None, stride: Any = 1, padding: Any = 0,
    dilation: Any = 1, transposed: bool = False, output_padding: Any = 0, groups: int = 1, *_: Any,
) -> Any:  # fmt: skip
    (x, w), layout = _windowed(b, (x, w))
    of = {"stride": stride, "padding": padding, "dilation": dilation}
    of |= {"groups": groups, "layout": layout, "tier": tier}
    if transposed:
        of["output_padding"] = output_padding
    y = (b.conv_transpose if transposed else b.conv)(x, w, b.packed(bias), **of)
    return b.move(y, -1, 1) if layout == "channels_last" else y


def _convolution_by(names: str, *, transposed: bool = False) -> Serve:
    """Returns the handler of a convolution operator. ``names``: its arguments after x and w, in
    order, as parameter names of :func:`_convolution` separated by spaces; "size" is ignored.
    """

    def serve(b: Any, tier: str, x: Any, w: Any, *given: Any) -> Any:
        how = dict(zip(names.split(), given, strict=False))
        how.pop("size", None)
        return _convolution(b, tier, x, w, transposed=transposed, **how)

    return serve


def _depthwise(b: Any, tier: str, x: Any, w: Any, *given: Any) -> Any:
    _, bias, stride, padding, dilation = given
    return _convolution(b, tier, x, w, bias, stride, padding, dilation, groups=x.shape[1])


def _convolution_backward(
    b: Any, tier: str, dy: Any, x: Any, w: Any, bias_sizes: Any, stride: Any, padding: Any,
    dilation: Any, transposed: bool, output_padding: Any, groups: int, mask: Any,
) -> Any:  # fmt: skip
    (x, w, dy), layout = _windowed(b, (x, w, dy))
    last = layout == "channels_last"
    of = {"stride": stride, "padding": padding, "dilation": dilation}
    of |= {"groups": groups, "layout": layout, "tier": tier}
    dx = dw = db = None

    def sizes(v: Any) -> Any:
        return v.shape[1:-1] if last else v.shape[2:]

    if mask[0]:
        dx = b.conv(dy, w, **of) if transposed else b.conv_dgrad(dy, w, sizes(x), **of)
    if mask[1]:
        image, other = (dy, x) if transposed else (x, dy)
        dw = b.conv_wgrad(image, other, sizes(w), **of, out_dtype=w.dtype)
    if mask[2]:
        db = bias_gradient(b, window_rows(b, dy, layout), dy.dtype)
    if last:
        dx, dw = (None if v is None else b.move(v, -1, 1) for v in (dx, dw))
    return dx, dw, db


# -- systems of equations ---------------------------------------------------------------------
def _solve_triangular(
    b: Any, tier: str, a: Any, y: Any, *, upper: bool, left: bool, unitriangular: bool
) -> Any:
    if a.dtype != y.dtype or a.dtype not in TRIANGULAR or len(y.shape) < 2:
        raise NotServed(UNKNOWN)
    if left:
        return b.solve_triangular(a, y, upper=upper, unitriangular=unitriangular)
    given = b.transpose(a), b.transpose(y)
    return b.transpose(b.solve_triangular(*given, upper=not upper, unitriangular=unitriangular))


# -- order, indices ---------------------------------------------------------------------------
def _sort(
    b: Any, tier: str, x: Any, dim: int = -1, descending: bool = False, *, stable: Any = True
) -> Any:
    """Lowers ``sort``, stable or not, to a stable sort: equal elements keep their order."""
    if not x.shape or x.dtype not in KEYS:
        raise NotServed(TRY_NEXT)
    return b.sort(x, dim, descending=descending)


def _sort_stable(
    tier: str, x: Any, dim: int = -1, descending: bool = False, *, stable: Any = True
) -> Any:
    """Computes ``sort`` as PyTorch's stable one, for calls that no kernel supports."""
    if stable:
        raise NotServed(ROW_WISE)
    return torch.sort(x, stable=True, dim=dim, descending=descending)


def _rows(b: Any, x: Any, dim: int) -> Any:
    """Returns ``x`` with ``dim`` moved to the end; copied if its stride is not 1."""
    rows = b.move(x, dim, -1)
    return b.contiguous(rows) if rows.strides[-1] != 1 else rows


def _topk(b: Any, tier: str, x: Any, k: int, dim: int, largest: bool, ordered: bool) -> Any:
    """Lowers ``topk`` to the kernels that select or sort: of equal elements, those at lower indices
    are selected.
    """
    if not (k > 0 and x.shape and x.dtype in KEYS) or k > x.shape[dim]:
        raise NotServed(TRY_NEXT)
    found = b.topk(_rows(b, x, dim), k, largest=largest)
    return tuple(b.contiguous(b.move(t, -1, dim)) for t in found)


def _topk_sorted(
    tier: str, x: Any, k: int, dim: int = -1, largest: bool = True, ordered: bool = True
) -> Any:
    """Computes ``topk`` as the first k elements of a stable sort, for calls that no kernel
    supports.
    """
    if k > (x.shape[dim] if x.dim() else 1):
        raise NotServed(UNKNOWN)
    values, indices = torch.sort(x, stable=True, dim=dim, descending=largest)
    if not x.dim():
        return values, indices
    return tuple(t.narrow(dim, 0, k).contiguous() for t in (values, indices))


_sums_of_bins = function(OPERATIONS["bincount"])


def _bincount(tier: str, x: Any, weights: Any = None, minlength: int = 0) -> Any:
    """Adds the weights of equal integers by position, without atomics. The host waits for the
    largest integer, as in PyTorch. Counts without weights are exact, and so PyTorch's.
    """
    if weights is None:
        raise NotServed(ROW_WISE)
    if x.dim() != 1 or weights.shape != x.shape or not 0 < x.numel() <= COUNT_MAX:
        raise NotServed(UNKNOWN)
    low, high = (int(each) for each in x.aminmax())
    if low < 0:  # PyTorch refuses it
        raise NotServed(UNKNOWN)
    wide = weights if weights.dtype == torch.float32 else weights.double()
    return _sums_of_bins(x.long(), max(high + 1, minlength), wide)


def _cumsum(b: Any, tier: str, x: Any, dim: int, *, dtype: Any) -> Any:
    x = _as(b, x, dtype)
    require_floats(x)
    if not x.shape:
        raise NotServed(UNKNOWN)
    return b.contiguous(b.move(b.cumsum(_rows(b, x, dim)), -1, dim))


def _embedding_backward(
    b: Any, tier: str, dy: Any, indices: Any, count: int, padding: int, by_frequency: bool
) -> Any:
    require_floats(dy)
    if by_frequency:
        raise NotServed(UNKNOWN)
    skipped = padding if padding >= 0 else None
    given = b.packed(dy), b.packed(indices)
    return b.embedding_backward(*given, rows=count, padding_idx=skipped)


wrapped = Pointwise(lambda index, size: where(index < 0, index + size, index), "wrapped")


def _index_add(b: Any, tier: str, x: Any, dim: int, index: Any, source: Any, *, alpha: Any) -> Any:
    require_floats(x)
    if not x.shape or source.dtype != x.dtype:
        raise NotServed(UNKNOWN)
    source = source if alpha == 1 else b.mul(source, alpha)
    rows, of = (b.move(v, dim, 0) for v in (x, source))
    width = math.prod(rows.shape[1:])
    flat = [b.packed(b.reshape(v, (v.shape[0], width))) for v in (rows, of)]
    index = b.call(wrapped, b.reshape(index, (math.prod(index.shape),)), rows.shape[0])
    y = b.index_add(flat[0], index, flat[1])
    return b.contiguous(b.move(b.reshape(y, rows.shape), 0, dim))


def _scatter_add(b: Any, tier: str, x: Any, dim: int, index: Any, source: Any) -> Any:
    require_floats(x)
    if not x.shape or source.dtype != x.dtype:
        raise NotServed(UNKNOWN)
    dim %= len(x.shape)
    part = source
    for axis, size in enumerate(index.shape):
        part = b.narrow(part, axis, 0, size)
    shape = [n if d == dim else x.shape[d] for d, n in enumerate(index.shape)]
    if shape != list(index.shape):  # what an index lacks is an index of nothing
        widths = [(0, n - own) for n, own in zip(shape, index.shape, strict=True)]
        index, part = b.pad(index, widths, -1), b.pad(part, widths, 0)
    return b.scatter_add(*map(b.packed, (x, index, part)), axis=dim)


def _scatter_reduce(
    tier: str, x: Any, dim: int, index: Any, source: Any, reduce: str, *, include_self: bool = True
) -> Any:
    if reduce in ("amax", "amin"):
        raise NotServed(ROW_WISE)
    if reduce not in ("sum", "add") or x.dim() == 0:
        raise NotServed(UNKNOWN)
    x = x if include_self else x.scatter(dim, index, 0)
    return _scatter_add_function(dim)(x, index, source)


_flat_index = Pointwise(
    lambda place, index, size: place * size + where(index < 0, index + size, index), "place"
)


def add_at_indices(b: Any, rows: Any, source: Any, *indices: Any) -> Any:
    """Returns ``rows`` ``[*sizes, *rest]`` plus ``source`` ``[*P, *rest]`` at ``indices``: a tensor
    for each of ``sizes``, broadcast to ``[*P]``.

    Elements of ``source`` with equal indices are added in order, then the element of ``rows``.
    """
    rest = rows.shape[len(indices) :]
    places = tuple(source.shape[: len(source.shape) - len(rest)])
    place = b.filled(places, "int64", 0, rows)
    for size, index in zip(rows.shape, indices, strict=False):
        place = b.call(_flat_index, place, b.expand(b.cast(index, "int64"), places), size)
    width = math.prod(rest)
    flat = [
        b.reshape(b.contiguous(x), (math.prod(x.shape) // width if width else 0, width))
        for x in (rows, source)
    ]
    found = b.index_add(flat[0], b.reshape(place, (math.prod(places),)), flat[1])
    return b.reshape(found, rows.shape)


def indexed_dims_first(
    b: Any, x: Any, indices: Sequence[Any], values: Any
) -> tuple[Any, Any, list[int]]:
    """Permutes operands of index_put. Returns ``x`` with the indexed dimensions first, ``values``
    (expanded) with the dimensions of the indices first, and the permutation of ``x``.
    """
    at = [d for d, i in enumerate(indices) if i is not None]
    order = [*at, *(d for d in range(len(x.shape)) if d not in at)]
    places: tuple[int, ...] = ()
    for d in at:
        places = broadcast(places, tuple(indices[d].shape)) or places
    rows = b.permute(x, order)
    rest = tuple(rows.shape[len(at) :])
    first = at[0] if at == list(range(at[0], at[0] + len(at))) else 0  # where places stand
    shape = (*rest[:first], *places, *rest[first:])
    moved = range(first, first + len(places))
    others = [d for d in range(len(shape)) if d not in moved]
    return rows, b.permute(b.expand(values, shape), (*moved, *others)), order


def can_add_at_indices(
    x: Any, indices: Sequence[Any], values: Any, integers: Sequence[Any]
) -> bool:
    """Whether :func:`add_at_indices` supports these arguments of index_put. ``integers``: the
    dtypes that indices may have.
    """
    given = [i for i in indices if i is not None]
    return bool(given) and values.dtype == x.dtype and all(i.dtype in integers for i in given)


def _index_put_(
    tier: str, x: Any, indices: Any, values: Any, accumulate: bool = False, unsafe: bool = False
) -> Any:
    """Computes ``index_put_`` with ``accumulate=True``: values with equal indices are added in
    their order.
    """
    if not accumulate:
        raise NotServed(ROW_WISE)
    if x.dtype not in NAMES or not can_add_at_indices(
        x, indices, values, (torch.int64, torch.int32)
    ):
        raise NotServed(UNKNOWN)
    rows, source, _ = indexed_dims_first(TorchBuilder(OPERATIONS), x, indices, values)
    given = [i for i in indices if i is not None]
    rows.copy_(_index_put_function(len(given))(rows, source, *given))
    return x


def _tensor_function(name: str, lower: Callable[..., Any], count: int) -> Callable[..., Any]:
    """Returns a function of ``count`` tensors that runs ``lower``, a function of a builder and
    buffers, as a program, inside and outside of ``batch_invariant()`` blocks.
    """

    def lowered(b: Any, /, **given: Any) -> Any:
        return lower(b, *given.values())

    takes = tuple(Parameter(f"x{i}", ARRAY) for i in range(count))
    op = Op(lowered, name=name, takes=takes, public=False)
    return Frame(op, copies=True, hooks=Hooks(autograd=False)).function


@cache
def _scatter_add_function(dim: int) -> Callable[..., Any]:
    return _tensor_function(
        "scatter_add", lambda b, x, *given: _scatter_add(b, "", x, dim, *given), 3
    )


@cache
def _index_put_function(indices: int) -> Callable[..., Any]:
    return _tensor_function("index_put", add_at_indices, 2 + indices)


# -- losses ---------------------------------------------------------------------------------
REDUCTIONS = ("none", "mean", "sum")
"""Names of the reductions of losses; ATen passes an index into this tuple."""
_wrong = Pointwise(no_class, "wrong")
_marked = Pointwise(lambda wrong, loss: where(wrong, math.nan, loss), "marked")


def _cross_entropy_loss(
    b: ProgramBuilder,
    x: Buffer,
    target: Buffer,
    *,
    reduction: Reduction = "mean",
    ignore_index: Ignored = -100,
    label_smoothing: Smoothing = 0.0,
    wide: Bool = False,
) -> Any:
    """``torch.nn.functional.cross_entropy`` for class indices, by :func:`ptxgen.cross_entropy`.

    The loss of a target that is no class is NaN, and so is the mean over no targets. ``wide``:
    whether 16-bit logits get a loss in f32.
    """
    how: dict[str, Any] = {"ignore_index": ignore_index}
    losses = b.cross_entropy(x, target, reduction="none", label_smoothing=label_smoothing, **how)
    classes = x.shape[-1]
    if reduction == "none":
        found = b.call(_marked, b.call(_wrong, target, ignore_index, classes), losses)
    else:
        flat = [b.reshape(b.packed(v), (math.prod(target.shape),)) for v in (losses, target)]
        name = {"sum": "summed_loss", "mean": "averaged_loss"}[reduction]
        found = b.rows(name, *flat, classes=classes, **how)
    return found if wide else b.cast(found, b.dtype(x))


def _cross_entropy_loss_vjp(b: Any, at: Backward) -> Gradients:
    """Returns the gradient with respect to the logits, computed as that of
    :func:`ptxgen.cross_entropy`.
    """
    of, (dy,) = OPERATIONS["cross_entropy"], at.dys
    assert of.vjp is not None
    options = {**of.options, **at.only("reduction", "ignore_index", "label_smoothing")}
    wide = b.cast(dy, b.wide(at["x"]))
    found: Gradients = of.vjp(b, replace(at, options=options, dys=(wide,)))
    return found


CROSS_ENTROPY = added(
    Op(
        _cross_entropy_loss,
        name="cross_entropy_loss",
        vjp=_cross_entropy_loss_vjp,
        dtypes={"target": "int64"},
        public=False,
    )
)


def _cross_entropy(
    b: Any,
    tier: str,
    x: Any,
    target: Any,
    weight: Any = None,
    reduction: int = 1,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    wide: bool = False,
) -> Any:
    """Lowers ``cross_entropy_loss`` for class indices without class weights. Other calls raise
    NotServed(TRY_NEXT): PyTorch composes them of operators with handlers.
    """
    rank = len(x.shape)
    if weight is not None or rank not in (1, 2) or len(target.shape) != rank - 1:
        raise NotServed(TRY_NEXT)
    if b.dtype(x) not in DTYPES or b.dtype(target) != "int64" or x.shape[:-1] != target.shape:
        raise NotServed(TRY_NEXT)
    if 0 in x.shape:
        raise NotServed(TRY_NEXT)
    how = {"ignore_index": ignore_index, "label_smoothing": label_smoothing, "wide": wide}
    return b.call(CROSS_ENTROPY, x, target, reduction=REDUCTIONS[reduction], **how)


def _cross_entropy_recorded(tier: str, *args: Any, **options: Any) -> Any:
    """Computes ``cross_entropy_loss`` of tensors, as a single node of autograd's graph."""
    return _cross_entropy(TorchBuilder(OPERATIONS), tier, *args, **options)


def autocast_widens(x: Any) -> bool:
    """Whether autocast would cast ``x`` to float32 as the input of a loss: it is on, and ``x`` is
    16-bit.
    """
    return x.dtype in (torch.bfloat16, torch.float16) and torch.is_autocast_enabled(x.device.type)


_sum = function(OPERATIONS["sum"])


def _nll_loss2d(
    tier: str, x: Any, target: Any, weight: Any, reduction: int, ignored: int
) -> tuple[Any, Any]:
    """Computes ``nll_loss2d_forward``, and the total weight, with additions in a fixed order;
    PyTorch's kernel uses atomics.
    """
    if reduction == 0:
        raise NotServed(ROW_WISE)
    if x.dtype not in NAMES:
        raise NotServed(UNKNOWN)
    losses, _ = torch.ops.aten.nll_loss2d_forward(x, target, weight, 0, ignored)
    taken = target != ignored
    own = taken.to(x.dtype)
    if weight is not None:
        own = torch.where(taken, weight[target.where(taken, 0)], 0)
    wide = x.dtype if x.dtype is torch.float64 else torch.float32
    total, count = (_sum(v, out_dtype=wide) for v in (losses, own))
    total = total / count if reduction == 1 else total
    return total.to(x.dtype), count.to(x.dtype)


# -- attention ------------------------------------------------------------------------------
def _attention(
    b: Any,
    tier: str,
    query: Any,
    key: Any,
    value: Any,
    mask: Any,
    dropout: float,
    causal: bool,
    *,
    scale: Any,
    enable_gqa: bool,
    pattern: tuple[bool, int | None] | None = None,
) -> Any:
    given = query, key, value
    if dropout or len({b.dtype(x) for x in given}) > 1 or len({len(x.shape) for x in given}) > 1:
        raise NotServed(UNKNOWN)
    if b.dtype(query) not in DTYPES or len(query.shape) < 3 or (causal and mask is not None):
        raise NotServed(UNKNOWN)
    how = {"causal": causal, "scale": scale, "gqa": enable_gqa, "tier": tier}
    return compute_attention(b, query, key, value, mask, pattern=pattern, **how)


def _attention_recorded(tier: str, *args: Any, **how: Any) -> Any:
    """Computes ``scaled_dot_product_attention`` of tensors, with gradients."""
    if any([t.layout is not torch.strided or t.dtype not in NAMES for t in args[:3]]):
        raise NotServed(UNKNOWN)
    found = record_fused(tier, *args, **how)
    return found if found is not None else _attention(TorchBuilder(OPERATIONS), tier, *args, **how)


def _backend(
    tier: str,
    given: Sequence[Any],
    mask: Any,
    dropout: Any,
    causal: bool,
    scale: Any,
    at_end: bool = False,
) -> Any:
    """Computes PyTorch's fused attention. From ``given`` (q, k, v) it returns the result and the
    logsumexp [B, H, S]; from (dy, q, k, v, result, logsumexp) the gradients, also of a float mask.
    ``at_end``: whether a causal mask aligns the last query with the last key.
    """
    q, k, v = given[-5:-2] if len(given) > 3 else given
    aligned = not causal or at_end or q.shape[-2] == k.shape[-2]
    if dropout or not aligned or len(q.shape) != 4 or not q.dtype == k.dtype == v.dtype:
        raise NotServed(UNKNOWN)
    if q.dtype not in NAMES or not has_fused_kernel(NAMES[q.dtype], tier, q, v):
        raise NotServed(UNKNOWN)
    how = {"causal": causal, "scale": scale}
    kind = "mask" if mask is not None and mask.dtype is torch.bool else "bias"
    if len(given) == 3:
        return function(OPERATIONS["attention"])(*given, **how, **{kind: mask}, return_lse=True)
    how["bias_grad"] = mask is not None and kind == "bias"
    return function(OPERATIONS["attention_grad"])(*given, **how, **{kind: mask})


def _flash(tier: str, q: Any, k: Any, v: Any, dropout: float = 0.0, causal: bool = False,
           weights: bool = False, *, scale: Any = None) -> Any:  # fmt: skip
    out, lse = _backend(tier, (q, k, v), None, dropout or weights, causal, scale, True)
    drawn = _zero_rng_state(q, (2,), torch.uint64)
    return out, lse, None, None, q.shape[2], k.shape[2], *drawn, q.new_empty(0)


def _flash_backward(tier: str, *given: Any, scale: Any = None) -> Any:
    return _backend(tier, given[:6], None, given[10], given[11], scale, True)


def _cudnn(tier: str, q: Any, k: Any, v: Any, mask: Any, wanted: bool, dropout: float = 0.0,
           causal: bool = False, weights: bool = False, *, scale: Any = None) -> Any:  # fmt: skip
    out, lse = _backend(tier, (q, k, v), mask, dropout or weights, causal, scale)
    drawn = _zero_rng_state(q, (), torch.int64)
    return out, lse[..., None], None, None, q.shape[2], k.shape[2], *drawn, None


def _cudnn_backward(tier: str, *given: Any, scale: Any = None) -> Any:
    saved = *given[:5], given[5][..., 0]
    return _backend(tier, saved, given[8], given[13], given[14], scale)[:3]


def _efficient(tier: str, q: Any, k: Any, v: Any, mask: Any, wanted: bool, dropout: float = 0.0,
               causal: bool = False, *, scale: Any = None) -> Any:  # fmt: skip
    out, lse = _backend(tier, (q, k, v), mask, dropout, causal, scale)
    room = torch.nn.functional.pad(lse, (0, -lse.shape[-1] % 32), value=math.inf)
    return out, room if wanted else room[..., :0], *_zero_rng_state(q, (), torch.int64)


def _efficient_backward(tier: str, dy: Any, q: Any, k: Any, v: Any, mask: Any, out: Any, lse: Any,
                        seed: Any, offset: Any, dropout: float, needs: Any, causal: bool = False,
                        *, scale: Any = None) -> Any:  # fmt: skip
    given = dy, q, k, v, out, lse[..., : q.shape[2]]
    found = *_backend(tier, given, mask, dropout, causal, scale), None
    return tuple(x if need else None for x, need in zip(found, needs, strict=False))


def _on_cpu(tier: str, q: Any, k: Any, v: Any, dropout: float = 0.0, causal: bool = False,
            *, attn_mask: Any = None, scale: Any = None) -> Any:  # fmt: skip
    return _backend(tier, (q, k, v), attn_mask, dropout, causal, scale)


def _on_cpu_backward(tier: str, *given: Any, attn_mask: Any = None, scale: Any = None) -> Any:
    return _backend(tier, given[:6], attn_mask, given[6], given[7], scale)[:3]


def _zero_rng_state(x: Any, first: tuple[int, ...], dtype: Any) -> tuple[Any, Any]:
    """Returns zeros for the seed, of shape ``first``, and the offset, a scalar tensor, of dropout's
    random numbers, as none are drawn.
    """
    return x.new_zeros(first, dtype=dtype), x.new_zeros((), dtype=dtype)


# -- functions ------------------------------------------------------------------------------
def _elementwise(name: str) -> Serve:
    return lambda b, tier, *args, **options: call(b, name, args, options)


def elementwise_in_place(name: str) -> Serve:
    """Returns the handler of the in-place form of an operator of :data:`FUNCTIONS` with one tensor;
    the program writes that tensor's memory.
    """

    def serve(b: Any, tier: str, x: Any, *args: Any, **options: Any) -> Any:
        alone = not any(isinstance(v, Buffer) for v in args)
        if not alone or x.memory.role != INPUT or not x.whole:
            raise NotServed(TRY_NEXT)
        x.memory.written = True
        call(b, name, (x, *args), options, out=x)
        return x

    return serve


# -- the tables -----------------------------------------------------------------------------
_SOFTMAXES = "softmax", "log_softmax"
LOWERED: Final[dict[str, Serve]] = {
    **dict.fromkeys(("mm", "mm.dtype"), _mm),
    **dict.fromkeys(("addmm", "addmm.dtype"), _addmm),
    **dict.fromkeys(("bmm", "bmm.dtype"), _bmm),
    **dict.fromkeys(("baddbmm", "baddbmm.dtype"), _product_plus_input(_bmm)),
    "mv": _mv,
    "addmv": _product_plus_input(_mv),
    "_grouped_mm": _grouped,
    **dict.fromkeys(("dot", "vdot"), _dot),
    **dict.fromkeys(("sum", "sum.dim_IntList"), _sum_or_mean("sum")),
    **dict.fromkeys(("mean", "mean.dim"), _sum_or_mean("mean")),
    **dict.fromkeys(("prod", "prod.dim_int"), _prod),
    **dict.fromkeys(("amax", "max"), _extreme("amax")),
    **dict.fromkeys(("amin", "min"), _extreme("amin")),
    "aminmax": _extreme("amin", "amax"),
    **{f"{name}.correction": _variance_or_std(name) for name in ("var", "std")},
    **{f"{name}_mean.correction": _with_mean(name) for name in ("var", "std")},
    "linalg_vector_norm": _vector_norm,
    **{f"_{name}": _softmax(name) for name in _SOFTMAXES},
    **{f"_{name}_backward_data": _softmax_backward(name) for name in _SOFTMAXES},
    "native_layer_norm": _norm("layer_norm"),
    "native_layer_norm_backward": _norm_backward("layer_norm", 2),
    "native_group_norm": _group_norm,
    "native_group_norm_backward": _group_norm_backward,
    "_fused_rms_norm": _norm("rms_norm"),
    "_fused_rms_norm_backward": _norm_backward("rms_norm", 1),
    **dict.fromkeys(("convolution", "_convolution"), _convolution),
    "convolution_backward": _convolution_backward,
    "cudnn_convolution": _convolution_by("padding stride dilation groups"),
    "cudnn_convolution_transpose": _convolution_by(
        "padding output_padding stride dilation groups", transposed=True
    ),
    **dict.fromkeys(("_conv_depthwise2d", "conv_depthwise3d"), _depthwise),
    # What is called for convolutions that cuDNN does not take.
    **dict.fromkeys(
        (
            "_slow_conv2d_forward",
            "slow_conv3d_forward",
            "slow_conv_dilated2d",
            "slow_conv_dilated3d",
        ),
        _convolution_by("size bias stride padding dilation"),
    ),
    "linalg_solve_triangular": _solve_triangular,
    **dict.fromkeys(("sort", "sort.stable"), _sort),
    "topk": _topk,
    "cumsum": _cumsum,
    "cumprod": _cumprod,
    "embedding_dense_backward": _embedding_backward,
    "index_add": _index_add,
    "scatter_add": _scatter_add,
    **images.LOWERED,
    **transforms.LOWERED,
    **{name: _elementwise(name) for name in FUNCTIONS},
}
"""Handlers of functional ATen operators, by name, that append steps to a program."""

DIRECT: Final[dict[str, Serve]] = {
    "_grouped_mm": _grouped_mm,
    "_scaled_dot_product_flash_attention": _flash,
    "_scaled_dot_product_flash_attention_backward": _flash_backward,
    "_scaled_dot_product_cudnn_attention": _cudnn,
    "_scaled_dot_product_cudnn_attention_backward": _cudnn_backward,
    "_scaled_dot_product_efficient_attention": _efficient,
    "_scaled_dot_product_efficient_attention_backward": _efficient_backward,
    "_scaled_dot_product_flash_attention_for_cpu": _on_cpu,
    "_scaled_dot_product_flash_attention_for_cpu_backward": _on_cpu_backward,
    **dict.fromkeys(("sort", "sort.stable"), _sort_stable),
    "topk": _topk_sorted,
    "bincount": _bincount,
    **dict.fromkeys(("scatter.reduce", "scatter_reduce.two"), _scatter_reduce),
    "_index_put_impl_": _index_put_,
    "nll_loss2d_forward": _nll_loss2d,
    **images.DIRECT,
}
"""Handlers that take tensors, by operator name: for operators that :data:`LOWERED` lacks, and where
its handler raises NotServed(TRY_NEXT).
"""

BITSANDBYTES: Final[dict[str, Serve | None]] = {
    "gemm_4bit": _gemm_4bit,
    **dict.fromkeys(
        ("gemv_4bit", "int8_vectorwise_quant", "int8_scaled_mm", "int8_mixed_scaled_mm")
    ),
}
"""Handlers of operators of bitsandbytes that take tensors, by name; None for those that are only
counted.
"""

INFERENCE: Final[dict[str, tuple[str, Serve]]] = {
    "layer_norm": ("native_layer_norm", _norm_inference("layer_norm", 2)),
    "rms_norm": ("_fused_rms_norm", _norm_inference("rms_norm", 1)),
    "group_norm": ("native_group_norm", _group_norm_inference),
    **images.INFERENCE,
    **{f"{name}.int": (f"_{name}", _softmax_inference(name)) for name in _SOFTMAXES},
}
"""Handlers that run above autograd where it records nothing, by operator name, each with the name
in :data:`LOWERED` under which reports count it.
"""

RECORDED: Final[dict[str, tuple[Serve, Serve]]] = {
    "scaled_dot_product_attention": (_attention, _attention_recorded),
    "cross_entropy_loss": (_cross_entropy, _cross_entropy_recorded),
    **dict.fromkeys(("prod", "prod.dim_int"), (_prod, _prod_recorded)),
}
"""Pairs of handlers that run above autograd, by operator name. The first lowers the operator to a
program, for calls that autograd does not record; the second computes those that it records.
"""

WIDENED: Final = frozenset({"cross_entropy_loss"})
"""Operators of :data:`RECORDED` whose first argument autocast casts to float32, as PyTorch does
within its decomposition.
"""

SERVED: Final = {**LOWERED, **DIRECT}
"""Handlers by name of operators that ptxgen computes below autograd."""


def operation(name: str, serve: Serve, takes: Sequence[Any]) -> Op:
    """Returns the operation of an ATen operator with handler ``serve``; ``takes``: its parameters,
    the tier last.
    """
    placed = [p.name for p in takes[:-1] if not p.keyword]

    def lower(b: Any, /, **given: Any) -> Any:
        tier = given.pop("tier")
        args = [given.pop(n) for n in placed]
        return serve(b, tier, *args, **given)

    return Op(lower, name=name, takes=tuple(takes), public=False, passes=common)
