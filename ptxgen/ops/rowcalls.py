"""What users call of the operations over rows: :mod:`ptxgen.numerics.rowops` has their formulas.

Bits of all of them: contract ``rows/1`` (:mod:`ptxgen.numerics.rowwise`). Each operation of a
formula is rounded once in f32 (f64 for float64; integers are exact, in 64 bits where they are
added); a row is added in leaves of 1024 elements, in an order that depends on its length alone;
results are rounded once to their dtype. So a row's bits depend on that row alone, whatever else
is computed with it, and by which kernel. The functions of the same names in
:mod:`ptxgen.reference` return the same bits.

Arrays may be strided and of any alignment, as long as the reduced dimensions lie one behind the
other; others are copied first. ``out``, ``stream`` and ``kernel`` are as in :func:`ptxgen.linear`;
``out_dtype`` may ask for "float32" where arrays have 16 bits. All raise ShapeError (also for an
axis out of range), DtypeError, OptionError, DeviceError, GradError or CompileError, before
anything is launched or written.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from math import prod as product
from typing import Any

from ptxgen.errors import OptionError, ShapeError
from ptxgen.ops.columns import reduce_columns
from ptxgen.ops.replay import remembered
from ptxgen.ops.rowwise import run
from ptxgen.runtime import framework_of

Axis = int | Sequence[int] | None


@remembered("x", lists=("axis",))
def sum(
    x: Any,
    axis: Axis = None,
    *,
    keepdims: bool = False,
    out: Any = None,
    out_dtype: Any = None,
    stream: Any = None,
    kernel: str | None = None,
) -> Any:
    """The sum over ``axis`` (one or several; None: all). Of integers and bools it is int64."""
    return _reduced("sum", x, axis, keepdims, out, stream, (out_dtype, kernel))


@remembered("x", lists=("axis",))
def prod(
    x: Any,
    axis: Axis = None,
    *,
    keepdims: bool = False,
    out: Any = None,
    out_dtype: Any = None,
    stream: Any = None,
    kernel: str | None = None,
) -> Any:
    """The product over ``axis``, in the order of a sum. Of integers and bools it is int64."""
    return _reduced("prod", x, axis, keepdims, out, stream, (out_dtype, kernel))


@remembered("x", lists=("axis",))
def mean(
    x: Any,
    axis: Axis = None,
    *,
    keepdims: bool = False,
    out: Any = None,
    out_dtype: Any = None,
    stream: Any = None,
    kernel: str | None = None,
) -> Any:
    """``sum(x) / n`` over ``axis``; NaN of none."""
    return _reduced("mean", x, axis, keepdims, out, stream, (out_dtype, kernel))


@remembered("x", lists=("axis",))
def amax(
    x: Any,
    axis: Axis = None,
    *,
    keepdims: bool = False,
    out: Any = None,
    out_dtype: Any = None,
    stream: Any = None,
    kernel: str | None = None,
) -> Any:
    """The largest over ``axis``: NaN if there is one, +0.0 above -0.0. ShapeError for none."""
    return _reduced("amax", x, axis, keepdims, out, stream, (out_dtype, kernel))


@remembered("x", lists=("axis",))
def amin(
    x: Any,
    axis: Axis = None,
    *,
    keepdims: bool = False,
    out: Any = None,
    out_dtype: Any = None,
    stream: Any = None,
    kernel: str | None = None,
) -> Any:
    """The smallest over ``axis``: NaN if there is one, -0.0 below +0.0. ShapeError for none."""
    return _reduced("amin", x, axis, keepdims, out, stream, (out_dtype, kernel))


@remembered("x", lists=("axis",))
def argmax(
    x: Any,
    axis: int | None = None,
    *,
    keepdims: bool = False,
    out: Any = None,
    stream: Any = None,
    kernel: str | None = None,
) -> Any:
    """The index, int64, of the first of the largest along ``axis`` (None: of all, flattened).

    A NaN is larger than any number; zeros are equal.
    """
    return _reduced("argmax", x, axis, keepdims, out, stream, (kernel,))


@remembered("x", lists=("axis",))
def argmin(
    x: Any,
    axis: int | None = None,
    *,
    keepdims: bool = False,
    out: Any = None,
    stream: Any = None,
    kernel: str | None = None,
) -> Any:
    """The index, int64, of the first of the smallest along ``axis`` (None: of all, flattened).

    A NaN is smaller than any number; zeros are equal.
    """
    return _reduced("argmin", x, axis, keepdims, out, stream, (kernel,))


@remembered("x", lists=("axis",))
def var(
    x: Any,
    axis: Axis = None,
    *,
    correction: float = 1.0,
    keepdims: bool = False,
    out: Any = None,
    out_dtype: Any = None,
    stream: Any = None,
    kernel: str | None = None,
) -> Any:
    """``sum((x - mean)**2) / max(n - correction, 0)`` over ``axis``."""
    return _reduced("var", x, axis, keepdims, out, stream, (float(correction), out_dtype, kernel))


@remembered("x", lists=("axis",))
def std(
    x: Any,
    axis: Axis = None,
    *,
    correction: float = 1.0,
    keepdims: bool = False,
    out: Any = None,
    out_dtype: Any = None,
    stream: Any = None,
    kernel: str | None = None,
) -> Any:
    """``sqrt(var(x))`` over ``axis``."""
    return _reduced("std", x, axis, keepdims, out, stream, (float(correction), out_dtype, kernel))


@remembered("x")
def softmax(
    x: Any,
    axis: int = -1,
    *,
    out: Any = None,
    out_dtype: Any = None,
    stream: Any = None,
    kernel: str | None = None,
) -> Any:
    """``e * (1 / sum(e))`` along ``axis``, of ``e = exp(x - max(x))``.

    float32, bfloat16, float16 or float64. A row of -inf, or with a NaN or +inf, gives NaN.
    """
    return _elementwise("softmax", (x,), axis, out, stream, (out_dtype, kernel))


@remembered("x")
def log_softmax(
    x: Any,
    axis: int = -1,
    *,
    out: Any = None,
    out_dtype: Any = None,
    stream: Any = None,
    kernel: str | None = None,
) -> Any:
    """``d - log(sum(exp(d)))`` along ``axis``, of ``d = x - max(x)``.

    float32, bfloat16, float16 or float64. A row of -inf, or with a NaN or +inf, gives NaN.
    """
    return _elementwise("log_softmax", (x,), axis, out, stream, (out_dtype, kernel))


@remembered("x", "target")
def cross_entropy(
    x: Any,
    target: Any,
    *,
    reduction: str = "mean",
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    softcap: float | None = None,
    z_loss: float = 0.0,
    stream: Any = None,
    kernel: str | None = None,
) -> Any:
    """The loss of logits ``x`` [..., N] at ``target`` [...], int64 or int32; it is float32, of
    float64 logits float64.

    With ``z = x``, or ``softcap * tanh(x / softcap)``, ``m = max(z)``, ``l = log(sum(exp(z - m)))``
    a row's loss is ``l - (z[target] - m)``; with ``label_smoothing`` e it is that by ``1 - e`` plus
    ``e * (l - (mean(z) - m))``, and ``z_loss * (l + m)**2`` is added. Where the target is
    ``ignore_index``, or none of the N, it is 0.

    ``reduction``: "none" for the rows' losses [...]; "sum"; "mean" divides that by the number of
    targets that are not ``ignore_index`` (0 if there are none). ``kernel`` is that of the losses.
    """
    numbers = (int(ignore_index), float(label_smoothing), softcap, float(z_loss))
    if reduction not in ("none", "sum", "mean"):
        raise OptionError(f"reduction is {reduction!r}; takes 'none', 'sum', 'mean'")
    losses = run("cross_entropy")(x, target, None, stream, (*numbers, kernel))
    return reduced(losses, target, reduction, int(ignore_index), stream)


def reduced(losses: Any, target: Any, reduction: str, ignore_index: int, stream: Any) -> Any:
    """The rows' losses, their sum or their mean."""
    if reduction == "none":
        return losses
    losses = losses.reshape(-1)
    if reduction == "sum":
        return run("sum")(losses, None, stream, (None, None))
    return run("mean_loss")(losses, target.reshape(-1), None, stream, (ignore_index, None, None))


@remembered("x", "weight", "residual")
def rms_norm(
    x: Any,
    weight: Any = None,
    eps: float = 1e-6,
    *,
    residual: Any = None,
    out: Any = None,
    out_dtype: Any = None,
    stream: Any = None,
    kernel: str | None = None,
) -> Any:
    """``x * rsqrt(mean(x**2) + eps) * weight`` of each row of ``x`` [..., N]; ``weight`` [N].

    With a ``residual`` of the shape of x that is added first, rounded to x's dtype; the result is
    then a pair, of the norm and that sum (and so is ``out``).
    """
    how = (float(eps), out_dtype, kernel)
    if residual is None:
        return run("rms_norm")(x, weight, out, stream, how)
    return run("add_rms_norm")(x, residual, weight, *_pair(out), stream, how)


@remembered("x", "weight", "bias", "residual")
def layer_norm(
    x: Any,
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
    *,
    residual: Any = None,
    out: Any = None,
    out_dtype: Any = None,
    stream: Any = None,
    kernel: str | None = None,
) -> Any:
    """``(x - mean) * rsqrt(var + eps) * weight + bias`` of each row of ``x`` [..., N].

    ``var`` is the mean of ``(x - mean)**2``; ``weight`` and ``bias`` are [N]. ``residual`` as in
    :func:`rms_norm`.
    """
    how = (float(eps), out_dtype, kernel)
    if residual is None:
        return run("layer_norm")(x, weight, bias, out, stream, how)
    return run("add_layer_norm")(x, residual, weight, bias, *_pair(out), stream, how)


# -- axes -------------------------------------------------------------------------------------
def _pair(out: Any) -> tuple[Any, Any]:
    if out is None:
        return None, None
    if not isinstance(out, tuple | list) or len(out) != 2:
        raise OptionError("out is no pair; with a residual there are two results: pass both")
    return out[0], out[1]


def axes_of(axis: Axis, rank: int) -> tuple[int, ...]:
    """The dimensions that are meant, ascending, from 0. ShapeError for one that is not there."""
    if axis is None:
        return tuple(range(rank))
    if type(axis) is int and -rank <= axis < rank:
        return (axis % rank,)
    found = []
    for each in (axis,) if not isinstance(axis, Sequence) else axis:
        try:
            number = operator.index(each)
        except TypeError:
            raise ShapeError(f"axis is {axis!r}; takes integers, or None for all") from None
        if not -rank <= number < rank:
            raise ShapeError(f"axis is {axis!r}; takes -{rank} .. {rank - 1}, or None for all")
        found.append(number % rank)
    if len(set(found)) < len(found):
        raise ShapeError(f"axis is {axis!r}; takes each dimension once")
    return tuple(sorted(found))


def _last(x: Any, axes: tuple[int, ...], stream: Any) -> Any:
    """``x`` with these dimensions at the end, as one: a view, or a copy where that cannot be."""
    rank = len(x.shape)
    lead = [i for i in range(rank) if i not in axes]
    order = (*lead, *axes)
    shape = (*(x.shape[i] for i in lead), product(x.shape[i] for i in axes))
    if order == tuple(range(rank)) and len(axes) == 1:
        return x
    if stream is not None:
        raise OptionError(
            f"stream is given, but x must be copied for axis {list(axes)} first, by its framework: "
            "pass a contiguous array with these dimensions at the end, or leave stream= away"
        )
    turned = x if order == tuple(range(rank)) else _permuted(x, order)
    found = turned.reshape(shape)
    if framework_of(x) == "torch" and shape[-1] > 1 and found.stride(-1) != 1:
        return found.contiguous()
    return found


def _permuted(x: Any, order: tuple[int, ...]) -> Any:
    return x.permute(order) if hasattr(x, "permute") else x.transpose(order)


def _assign(out: Any, value: Any) -> Any:
    if tuple(out.shape) != tuple(value.shape):
        raise ShapeError(f"out has shape {list(out.shape)}; takes {list(value.shape)}")
    if hasattr(out, "copy_"):
        return out.copy_(value)
    out[...] = value
    return out


def _reduced(
    name: str, x: Any, axis: Axis, keepdims: bool, out: Any, stream: Any, how: tuple[Any, ...]
) -> Any:
    rank = len(getattr(x, "shape", (0,)))
    axes = axes_of(axis, rank)
    if axes == (rank - 1,) and not keepdims:
        return run(name)(x, out, stream, how)
    down = columns_of(name, x, axes)
    if down is not None:
        wanted, kernel = _typed(name, how, out)
        found = reduce_columns(down[0], down[1], out_dtype=wanted, stream=stream, kernel=kernel)
        found = found.reshape(tuple(n for i, n in enumerate(x.shape) if i not in axes))
    else:
        found = run(name)(_last(x, axes, stream), None, stream, _typed(name, how, out))
    if keepdims:
        found = found.reshape(tuple(1 if i in axes else n for i, n in enumerate(x.shape)))
    return found if out is None else _assign(out, found)


DOWN = {"sum": "sum", "prod": "prod", "mean": "mean", "amax": "max", "amin": "min"}
"""Those that kernels for columns carry out as well, of floats."""


def columns_of(name: str, x: Any, axes: tuple[int, ...]) -> tuple[str, Any] | None:
    """The reduction down columns that this is, and x as [OUTER, N, INNER]; None if it is none.

    The dimensions must be neighbours, and others lie behind them.
    """
    rank = len(x.shape)
    if not axes or axes[-1] == rank - 1 or axes[-1] - axes[0] != len(axes) - 1:
        return None
    if name not in DOWN or "float" not in str(x.dtype) or 0 in x.shape:
        return None
    parts = x.shape[: axes[0]], x.shape[axes[0] : axes[-1] + 1], x.shape[axes[-1] + 1 :]
    return f"{DOWN[name]}_columns", x.reshape(tuple(map(product, parts)))


def _typed(name: str, how: tuple[Any, ...], out: Any) -> tuple[Any, ...]:
    """Options that ask for out's dtype, where they ask for none."""
    if out is None or len(how) < 2 or how[-2] is not None:
        return how
    return (*how[:-2], out.dtype, how[-1])


def _elementwise(
    name: str, arrays: tuple[Any, ...], axis: int, out: Any, stream: Any, how: tuple[Any, ...]
) -> Any:
    (x,) = arrays
    rank = len(getattr(x, "shape", (0,)))
    (along,) = axes_of(operator.index(axis), rank)
    if along == rank - 1:
        return run(name)(x, out, stream, how)
    found = run(name)(_last(x, (along,), stream), None, stream, _typed(name, how, out))
    order = (*range(along), rank - 1, *range(along, rank - 1))
    found = _permuted(found, order)
    return found if out is None else _assign(out, found)
