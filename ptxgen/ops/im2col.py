"""Columns of windows: ``im2col`` copies the windows of images, ``col2im`` adds them up again.

They are PyTorch's ``unfold`` and ``fold``, in 1 to 3 dimensions, and each other's adjoint.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Annotated, Any

from ptxgen.errors import ShapeError
from ptxgen.numerics.option import PerAxis
from ptxgen.ops.pool import FLOATS, NUMBER_MAX, Axis, Window, overlapped, windowed
from ptxgen.ops.views import check_dtype, single
from ptxgen.program.buffer import Buffer
from ptxgen.program.build import Builder, ProgramBuilder
from ptxgen.program.operation import Backward, Gradients, op
from ptxgen.program.parameters import Out

Steps = Annotated[Any, PerAxis(1, NUMBER_MAX)]
Padding = Annotated[Any, PerAxis(0, NUMBER_MAX)]


def sliding(
    size: Sequence[int], window: Sequence[int], stride: Any, padding: Any, dilation: Any
) -> tuple[Axis, ...]:
    """Returns the windows along each dimension of images of ``size``; raises ShapeError."""
    rank = len(window)
    if not 1 <= rank <= 3 or min(window) < 1 or max(window) > NUMBER_MAX:
        raise ShapeError(
            f"window is {list(window)}; takes 1 to 3 sizes from 1 to 2^31 - 1, of the last "
            "dimensions of images"
        )
    if len(size) != rank:
        raise ShapeError(f"size is {list(size)}; takes {rank} numbers, as window has")
    found = []
    how = {"stride": stride, "padding": padding, "dilation": dilation}
    each = {name: _each(name, value, rank) for name, value in how.items()}
    for n, k, s, p, d in zip(size, window, *each.values(), strict=True):
        room = n + 2 * p - (k - 1) * d - 1
        if room < 0:
            raise ShapeError(
                f"window is {list(window)}, with dilation {list(each['dilation'])}: larger than "
                f"images of {list(size)} with padding {list(each['padding'])}"
            )
        found.append(Axis(n, room // s + 1, k, s, p, d))
    return tuple(found)


def _each(name: str, value: Sequence[int], rank: int) -> tuple[int, ...]:
    """Returns one integer per dimension; raises ShapeError for a sequence of another length."""
    given = (value,) if isinstance(value, int) else tuple(value)
    if len(given) not in (1, rank):
        raise ShapeError(f"{name} is {list(given)}; takes one number, or {rank}, as window has")
    return given * rank if len(given) == 1 else given


def _im2col_vjp(b: Builder, at: Backward) -> Gradients:
    """Gradient of ``im2col``: ``col2im`` of the result's gradient."""
    size = tuple(at["x"].shape[-len(at.options["window"]) :])
    return {"x": b.col2im(at.dys[0], size, **at.only("window", "stride", "padding", "dilation"))}


@op(vjp=_im2col_vjp, backwards=True)
def im2col(
    b: ProgramBuilder,
    x: Buffer,
    window: Window,
    *,
    stride: Steps = 1,
    padding: Padding = 0,
    dilation: Steps = 1,
    out: Out = None,
) -> Buffer:
    """Copies the windows of images to columns (``unfold``): a convolution is a product with them.

    ``y[..., c * taps + j, p] = x[..., c, p * stride + j * dilation - padding]``; p is the index of
    a window, j of a tap, both row-major. Elements outside the image are 0.

    Shapes
        ``x`` ``[..., C, *]``; ``window`` has a size for each of the 1 to 3 image dimensions; the
        result ``[..., C * taps, windows]``, with
        ``(size + 2 * padding - dilation * (window - 1) - 1) // stride + 1`` windows along a
        dimension.
    Dtypes
        Those of :func:`ptxgen.pointwise`; the result has that of ``x``. The gradient takes those of
        :func:`ptxgen.col2im`.
    Order
        Nothing is computed: it is one copy, after a padded copy if there is padding. The gradient
        is :func:`ptxgen.col2im`. :func:`ptxgen.reference.im2col` returns the same.
    Options
        ``stride``, ``padding``, ``dilation``: an integer, or one for each dimension.
    Errors
        ShapeError for a window larger than the padded image and for other ranks, DtypeError,
        OptionError, DeviceError, GradError or CompileError, before anything is launched or written.
    """
    rank = len(window)
    if len(x.shape) <= rank:
        raise ShapeError(
            f"x has shape {list(x.shape)}; takes channels and {rank} image dimensions, as window "
            f"{list(window)} has"
        )
    axes = sliding(x.shape[len(x.shape) - rank :], window, stride, padding, dilation)
    lead, channels = x.shape[: len(x.shape) - rank - 1], x.shape[len(x.shape) - rank - 1]
    taps, counts = tuple(a.taps for a in axes), tuple(a.count for a in axes)
    target = single(out)
    result = b.result((*lead, channels * prod(taps), prod(counts)), x.dtype, target)
    if b.abstract or not result.size:
        return result
    view = result.reshaped((*lead, channels, *taps, *counts))
    found = windowed(b, x, axes, view)
    return result if view is not None else b.delivered(b.reshape(found, result.shape), result)


def _col2im_vjp(b: Builder, at: Backward) -> Gradients:
    """Gradient of ``col2im``: ``im2col`` of the result's gradient."""
    return {"x": b.im2col(at.dys[0], **at.only("window", "stride", "padding", "dilation"))}


@op(vjp=_col2im_vjp, backwards=True)
def col2im(
    b: ProgramBuilder,
    x: Buffer,
    size: Window,
    window: Window,
    *,
    stride: Steps = 1,
    padding: Padding = 0,
    dilation: Steps = 1,
) -> Buffer:
    """Adds columns up to images where their windows overlap (``fold``): the adjoint of ``im2col``.

    ``y[..., c, i]`` is the sum of ``x[..., c * taps + j, p]`` over the windows p and taps j with
    ``p * stride + j * dilation - padding = i``.

    Shapes
        ``x`` ``[..., C * taps, windows]``, with taps and windows as in :func:`ptxgen.im2col`; the
        result ``[..., C, *size]``; ``size`` and ``window`` have an integer for each of the 1 to 3
        image dimensions.
    Dtypes
        ``x`` float32, bfloat16, float16 or float64, and so the result.
    Order
        Contract ``pointwise/1``: an element adds its values in f32 (f64 of float64), ascending by
        the window's index, and +0.0 for windows that could reach it and do not; the sum is rounded
        once to the dtype. No atomics: an image's result depends on its own columns alone.
        :func:`ptxgen.reference.col2im` returns the same bits.
    Options
        ``stride``, ``padding``, ``dilation``: an integer, or one for each dimension.
    Errors
        ShapeError for a window larger than the padded image, for rows that ``taps`` does not divide
        and another number of windows; DtypeError, OptionError, DeviceError, GradError or
        CompileError, before anything is launched or written.
    """
    check_dtype("x", x.dtype, FLOATS)
    axes = sliding(size, window, stride, padding, dilation)
    taps, counts = tuple(a.taps for a in axes), tuple(a.count for a in axes)
    if len(x.shape) < 2 or x.shape[-2] % prod(taps) or x.shape[-1] != prod(counts):
        raise ShapeError(
            f"x has shape {list(x.shape)}; takes [..., C * {prod(taps)}, {prod(counts)}], as "
            f"size {list(size)} and window {list(window)} have {prod(taps)} taps and "
            f"{prod(counts)} windows"
        )
    lead = *x.shape[:-2], x.shape[-2] // prod(taps)
    shape = (*lead, *size)
    if b.abstract or not prod(shape):
        return b.result(shape, x.dtype)
    windows = b.reshape(x, (*lead, *taps, *counts))
    found: Buffer = b.contiguous(overlapped(b, windows, axes, x.dtype))
    return found
