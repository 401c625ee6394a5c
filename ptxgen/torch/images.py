"""Handlers of ATen's image operators, for the tables of :mod:`ptxgen.torch.aten`: batch norm,
pooling, unfolding, padding, resizing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import compress
from math import prod
from typing import Any, Final

import torch

from ptxgen.errors import ShapeError
from ptxgen.numerics.formula import where
from ptxgen.ops import OPERATIONS
from ptxgen.ops.channels import batch_norm_alone, batch_norm_gradients, batch_norm_scale
from ptxgen.ops.pointwise import Pointwise
from ptxgen.ops.pool import adapted, fixed, largest, max_gradient, mean_gradient
from ptxgen.ops.resize import resize_by, resize_gradient, resized
from ptxgen.program.buffer import imagined
from ptxgen.program.invoke import Frame
from ptxgen.torch.functions import empty
from ptxgen.torch.unserved import TRY_NEXT, UNKNOWN, NotServed, Serve, require_floats

GRADIENTS: Final = "x", "weight", "bias"
"""Operands of batch and group norm that have gradients, in the order of PyTorch's masks."""


def _like(b: Any, x: Any) -> Any:
    """Returns a new buffer with the shape, strides and dtype of ``x``."""
    return empty(b, x.shape, x.strides, x.dtype)


# -- batch norm -----------------------------------------------------------------------------
def _evaluated(b: Any, x: Any, vectors: Sequence[Any], eps: float) -> tuple[Any, ...]:
    """Lowers batch norm by running statistics; returns the result, and two empty buffers in place
    of the statistics that training saves. ``vectors``: weight, bias, running mean, running
    variance.
    """
    weight, bias, mean, var = vectors
    require_floats(x)
    if mean is None or var is None:
        raise NotServed(UNKNOWN)
    y = b.batch_norm(x, mean, var, weight, bias, eps=eps, out=_like(b, x))
    return y, b.empty((0,), b.wide(x)), b.empty((0,), b.wide(x))


def _several(x: Any) -> None:
    """Raises NotServed for an input ``x`` of batch norm with one element per channel, for which
    PyTorch returns NaN, and for dtypes that ptxgen does not support.
    """
    require_floats(x)
    if prod(x.shape) < 2 * x.shape[1]:
        raise NotServed(UNKNOWN)


def _batch_norm(b: Any, tier: str, x: Any, *given: Any) -> Any:
    """Lowers ``native_batch_norm`` in evaluation, or in training without running statistics; in
    training with them raises NotServed(TRY_NEXT), as this program cannot update them. ``given``:
    weight, bias, running mean, running variance, ``training``, momentum, eps.
    """
    *vectors, training, _, eps = given
    if not training:
        return _evaluated(b, x, vectors, eps)
    weight, bias, mean, var = vectors
    if mean is not None or var is not None:
        raise NotServed(TRY_NEXT)
    _several(x)
    return batch_norm_alone(b, x, weight, bias, eps, _like(b, x))[:3]


def _batch_norm_inference(b: Any, tier: str, x: Any, *given: Any) -> Any:
    """Lowers ``batch_norm`` without saved statistics; ignores its last argument
    (``cudnn_enabled``).
    """
    return _batch_norm(b, tier, x, *given[:-1])[0]


def _no_stats(b: Any, tier: str, x: Any, weight: Any, bias: Any, *how: Any) -> Any:
    return _batch_norm(b, tier, x, weight, bias, None, None, *how)


def _functional(b: Any, tier: str, x: Any, *given: Any) -> Any:
    """Lowers functional batch norm, which also returns the running statistics (in training,
    updated).
    """
    *vectors, training, momentum, eps = given
    if not training:
        return *_evaluated(b, x, vectors, eps), *vectors[2:]
    _several(x)
    return b.batch_norm_kept(x, *vectors, momentum=momentum, eps=eps, out=_like(b, x))


def _always(serve: Serve, training: bool) -> Serve:
    """Returns a handler for an operator that lacks the argument ``training``: it calls ``serve``, a
    handler of batch norm, with that argument fixed.
    """
    return lambda b, tier, x, *given: serve(b, tier, x, *given[:4], training, *given[4:])


def _reserving(serve: Serve) -> Serve:
    """Returns a handler that calls ``serve``, and returns an empty buffer for cuDNN's reserve space
    after the first three results.
    """

    def with_reserve(b: Any, tier: str, x: Any, *given: Any) -> Any:
        found = serve(b, tier, x, *given)
        return *found[:3], b.empty((0,), "uint8"), *found[3:]

    return with_reserve


@cache
def _kept() -> Serve:
    return Frame(OPERATIONS["batch_norm_kept"], copies=True).function


def _batch_norm_written(tier: str, x: Any, *given: Any) -> Any:
    """Computes batch norm in training; updates the running statistics in place. Returns the result,
    and mean and scale, which its gradients read. ``given``: as in :func:`_batch_norm`; in
    evaluation raises NotServed.
    """
    weight, bias, mean, var, training, momentum, eps = given
    if not training or x.dim() < 2 or x.numel() < 2 * x.shape[1]:
        raise NotServed(UNKNOWN)
    how = {"momentum": momentum, "eps": eps, "out": torch.empty_like(x)}
    y, *kept, new_mean, new_var = _kept()(x, weight, bias, mean, var, **how)
    if mean is not None:
        mean.copy_(new_mean)
    if var is not None:
        var.copy_(new_var)
    return y, *kept


def _with_update(tier: str, x: Any, *given: Any) -> Any:
    *vectors, momentum, eps = given
    return *_batch_norm_written(tier, x, *vectors, True, momentum, eps), _nothing(x)


def _cudnn_written(tier: str, x: Any, *given: Any) -> Any:
    return *_batch_norm_written(tier, x, *given), _nothing(x)


def _nothing(x: Any) -> Any:
    """Returns an empty tensor on x's device, for the reserve space that cuDNN would keep for the
    gradient.
    """
    return x.new_empty(0, dtype=torch.uint8)


def _batch_norm_backward(b: Any, tier: str, dy: Any, x: Any, weight: Any, *given: Any) -> Any:
    *running, save_mean, save_scale, training, eps, mask = given[:7]
    require_floats(x, dy)
    mean, scale = (save_mean, save_scale) if training else running
    if mean is None or scale is None or dy.dtype != x.dtype:
        raise NotServed(UNKNOWN)
    if not training:
        scale = batch_norm_scale(b, scale, eps)
    dtype = x.dtype if weight is None else weight.dtype
    needs = {*compress(GRADIENTS, mask)}
    found = batch_norm_gradients(
        b, dy, x, weight, mean, scale, training, needs, (dtype, dtype), _like(b, x)
    )
    return tuple(map(found.get, GRADIENTS))


def _cudnn_backward(b: Any, tier: str, x: Any, dy: Any, weight: Any, *given: Any) -> Any:
    """Lowers the gradients of ``cudnn_batch_norm``, which PyTorch asks for in training only."""
    *kept, eps = given[:5]
    return _batch_norm_backward(b, tier, dy, x, weight, *kept, True, eps, (True,) * 3)


# -- pooling --------------------------------------------------------------------------------
def _all(numbers: Sequence[int], rank: int) -> tuple[int, ...]:
    """Returns one of ``numbers`` per dimension; a single one is repeated."""
    return tuple(numbers) * rank if len(numbers) == 1 else tuple(numbers)


def _max_pool(rank: int) -> Serve:
    def serve(b: Any, tier: str, x: Any, window: Any, *how: Any) -> Any:
        require_floats(x)
        stride, padding, dilation, ceil = how
        given = {"stride": stride, "padding": padding, "dilation": dilation, "ceil": ceil}
        return b.max_pool(x, _all(window, rank), **given)

    return serve


def _max_pool_inference(rank: int) -> Serve:
    """Returns the handler of max pooling over ``rank`` dimensions that returns no indices."""

    def serve(b: Any, tier: str, x: Any, window: Any, *how: Any) -> Any:
        require_floats(x)
        return largest(b, x, fixed(x, _all(window, rank), *how))

    return serve


def _max_pool_backward(rank: int) -> Serve:
    def serve(b: Any, tier: str, dy: Any, x: Any, window: Any, *how: Any) -> Any:
        *given, indices = how
        require_floats(x)
        axes = fixed(x, _all(window, rank), *given)
        return _max_image(b, dy, x, indices, axes)

    return serve


def _max_image(b: Any, dy: Any, x: Any, indices: Any, axes: Any) -> Any:
    if dy.dtype != x.dtype or not prod(dy.shape):
        raise NotServed(UNKNOWN)
    return b.contiguous(max_gradient(b, dy, indices, axes, x.dtype))


def _avg_pool(rank: int) -> Serve:
    def serve(b: Any, tier: str, x: Any, window: Any, *how: Any) -> Any:
        require_floats(x)
        stride, padding, ceil, counted, divisor = how
        given = {"stride": stride, "padding": padding, "ceil": ceil, "count_padding": counted}
        return b.avg_pool(x, _all(window, rank), **given, divisor=divisor or 0)

    return serve


def _avg_pool_backward(rank: int) -> Serve:
    def serve(b: Any, tier: str, dy: Any, x: Any, window: Any, *how: Any) -> Any:
        stride, padding, ceil, counted, divisor = how
        axes = fixed(x, _all(window, rank), stride, padding, (), ceil)
        return _mean_image(b, dy, x, axes, counted, divisor or 0)

    return serve


def _mean_image(b: Any, dy: Any, x: Any, axes: Any, *how: Any) -> Any:
    require_floats(x)
    if dy.dtype != x.dtype or not prod(dy.shape):
        raise NotServed(UNKNOWN)
    return b.contiguous(mean_gradient(b, dy, axes, x.dtype, *how))


def _adaptive(name: str) -> Serve:
    def serve(b: Any, tier: str, x: Any, size: Any) -> Any:
        require_floats(x)
        return getattr(b, name)(x, size)

    return serve


def _adaptive_avg_backward(rank: int) -> Serve:
    def serve(b: Any, tier: str, dy: Any, x: Any) -> Any:
        return _mean_image(b, dy, x, adapted(x, dy.shape[-rank:]))

    return serve


def _adaptive_max_backward(rank: int) -> Serve:
    def serve(b: Any, tier: str, dy: Any, x: Any, indices: Any) -> Any:
        require_floats(x)
        return _max_image(b, dy, x, indices, adapted(x, dy.shape[-rank:]))

    return serve


_POOLING: Final[dict[str, Serve]] = {
    f"{name}{of}": serve
    for rank in (2, 3)
    for name, of, serve in (
        (f"max_pool{rank}d_with_indices", "", _max_pool(rank)),
        (f"max_pool{rank}d_with_indices", "_backward", _max_pool_backward(rank)),
        (f"avg_pool{rank}d", "", _avg_pool(rank)),
        (f"avg_pool{rank}d", "_backward", _avg_pool_backward(rank)),
        (f"_adaptive_avg_pool{rank}d", "", _adaptive("adaptive_avg_pool")),
        (f"_adaptive_avg_pool{rank}d", "_backward", _adaptive_avg_backward(rank)),
        (f"adaptive_max_pool{rank}d", "", _adaptive("adaptive_max_pool")),
        (f"adaptive_max_pool{rank}d", "_backward", _adaptive_max_backward(rank)),
    )
}
"""Handlers of pooling operators, by name; PyTorch calls those of 2 dimensions for 1 dimension."""


def _im2col(b: Any, tier: str, x: Any, window: Any, *how: Any) -> Any:
    """Lowers ``im2col`` (``F.unfold``); ``how``: dilation, padding and stride."""
    return _columns(b.im2col, x, window, how=how)


def _col2im(b: Any, tier: str, x: Any, size: Any, window: Any, *how: Any) -> Any:
    """Lowers ``col2im`` (``F.fold``); ``how``: dilation, padding and stride."""
    require_floats(x)
    return _columns(b.col2im, x, size, window, how=how)


def _columns(function: Callable[..., Any], x: Any, *sizes: Any, how: Sequence[Any]) -> Any:
    if not prod(x.shape):
        raise NotServed(UNKNOWN)
    dilation, padding, stride = how
    try:
        return function(x, *sizes, stride=stride, padding=padding, dilation=dilation)
    except ShapeError:  # PyTorch refuses it in its own words
        raise NotServed(UNKNOWN) from None


# -- padding with what is there -------------------------------------------------------------
def _absolute(x: Any) -> Any:
    return where(x < 0, -x, x)


_source: Final = {
    "reflection": Pointwise(
        lambda o, low, last: last - _absolute(last - _absolute(o - low)), "reflected"
    ),
    "replication": Pointwise(
        lambda o, low, last: where(o < low, 0, where(o - low > last, last, o - low)), "replicated"
    ),
}
"""Formulas, by kind of padding, of the image index that padded index ``o`` copies; ``low``: width
of the padding before, ``last``: the last image index.
"""


def _sources(b: Any, kind: str, x: Any, widths: Sequence[int]) -> Iterator[tuple[int, Any]]:
    """Yields pairs for each padded dimension, the last first: the axis, and an array of the image
    index from which each padded element is copied. ``kind``: "reflection" or "replication";
    ``widths``: padding before and after, for each dimension from the last on.
    """
    pairs = zip(widths[::2], widths[1::2], strict=True)
    for axis, (low, high) in zip(range(len(x.shape) - 1, -1, -1), pairs, strict=False):
        size = x.shape[axis]
        ramp = b.cumsum(b.filled((low + size + high,), "int64", 1, x), exclusive=True)
        yield axis, b.call(_source[kind], ramp, low, size - 1)


def padded(b: Any, kind: str, x: Any, widths: Sequence[int]) -> Any:
    """Lowers ``reflection_pad*`` and ``replication_pad*`` to gathers, one for each dimension."""
    for axis, places in _sources(b, kind, x, widths):
        x = b.gather(b.packed(x), places, axis=axis)
    return x


def _padded_backward(kind: str) -> Serve:
    def serve(b: Any, tier: str, dy: Any, x: Any, widths: Any) -> Any:
        """Lowers the gradient: sums the gradients of an element's copies, ascending, dimension by
        dimension.
        """
        require_floats(dy, x)
        if not prod(dy.shape):
            raise NotServed(UNKNOWN)
        found = b.cast(dy, b.wide(dy))
        for axis, places in _sources(b, kind, x, widths):
            rows = b.move(found, axis, 0)
            others = tuple(rows.shape[1:])
            rows = b.packed(b.reshape(rows, (rows.shape[0], prod(others))))
            found = b.embedding_backward(rows, places, rows=x.shape[axis])
            found = b.move(b.reshape(found, (x.shape[axis], *others)), 0, axis)
        return b.contiguous(b.cast(found, x.dtype))

    return serve


# -- resizing -------------------------------------------------------------------------------
def _steps(scales: Sequence[Any]) -> tuple[float | None, ...]:
    """Returns source elements per output element, 1 / scale, as PyTorch does; None for scales not
    given.
    """
    return tuple(1.0 / s if s is not None and s > 0 else None for s in scales)


def _linear(b: Any, tier: str, x: Any, size: Any, corners: bool, *scales: Any) -> Any:
    require_floats(x)
    return resize_by(b, x, resized(x, size, "linear", corners, _steps(scales)))


def nearest(b: Any, x: Any, size: Any, *scales: Any) -> Any:
    """Lowers ``upsample_nearest*``, for compiled graphs: it moves values, so blocks leave it to
    PyTorch.
    """
    require_floats(x)
    return resize_by(b, x, resized(x, size, "nearest", False, _steps(scales)))


def _resize_backward(mode: str) -> Serve:
    def serve(b: Any, tier: str, dy: Any, size: Any, shape: Any, *how: Any) -> Any:
        corners, *scales = how if mode == "linear" else (False, *how)
        require_floats(dy)
        if not prod(dy.shape):
            raise NotServed(UNKNOWN)
        axes = resized(imagined(shape, dy.dtype), size, mode, corners, _steps(scales))
        return resize_gradient(b, dy, axes, dy.dtype)

    return serve


_LINEAR = "upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d"
_RESIZING: Final[dict[str, Serve]] = {
    **dict.fromkeys(_LINEAR, _linear),
    **{f"{name}_backward": _resize_backward("linear") for name in _LINEAR},
    **{f"upsample_nearest{rank}d_backward": _resize_backward("nearest") for rank in (1, 2, 3)},
}
"""Handlers of resizing operators that add elements, by name: linear resizing, and the gradients of
linear and nearest. (Nearest resizing itself only moves elements.)
"""

LOWERED: Final[dict[str, Serve]] = {
    **dict.fromkeys(("native_batch_norm", "_native_batch_norm_legit"), _batch_norm),
    "_native_batch_norm_legit.no_stats": _no_stats,
    "_native_batch_norm_legit_no_training": _always(_batch_norm, False),
    "_native_batch_norm_legit_functional": _functional,
    "_batch_norm_no_update": _reserving(_always(_batch_norm, False)),
    "_batch_norm_with_update_functional": _reserving(_always(_functional, True)),
    "cudnn_batch_norm": _reserving(_batch_norm),
    **dict.fromkeys(("native_batch_norm_backward", "batch_norm_backward"), _batch_norm_backward),
    "cudnn_batch_norm_backward": _cudnn_backward,
    "im2col": _im2col,
    "col2im": _col2im,
    **{
        f"{kind}_pad{rank}d_backward": _padded_backward(kind)
        for kind in _source
        for rank in (1, 2, 3)
    },
    **_POOLING,
    **_RESIZING,
}
"""Handlers of image operators, by name, that append steps to a program."""

DIRECT: Final[dict[str, Serve]] = {
    "native_batch_norm": _batch_norm_written,
    "_native_batch_norm_legit": _batch_norm_written,
    "_batch_norm_with_update": _with_update,
    "cudnn_batch_norm": _cudnn_written,
}
"""Handlers of image operators, by name, that take tensors and write to some."""

INFERENCE: Final[dict[str, tuple[str, Serve]]] = {
    "batch_norm": ("native_batch_norm", _batch_norm_inference),
    **{
        f"max_pool{rank}d": (f"max_pool{rank}d_with_indices", _max_pool_inference(rank))
        for rank in (2, 3)
    },
}
"""Handlers of batch norm and max pooling for calls that autograd does not record, by operator name,
each with the name under which reports count it. Part of :data:`ptxgen.torch.aten.INFERENCE`.
"""
