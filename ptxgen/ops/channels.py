"""Norms of images: each channel over batch and positions, or each position over channels."""

from __future__ import annotations

from collections.abc import Collection
from math import prod
from typing import Annotated, Any

from ptxgen.errors import GradError, ShapeError
from ptxgen.numerics import functions
from ptxgen.numerics.dtype import FULL, NAMES
from ptxgen.numerics.formula import STORED
from ptxgen.numerics.option import Real
from ptxgen.numerics.row_reductions import REAL
from ptxgen.numerics.signature import Signature
from ptxgen.ops.norms import NORMED, slope
from ptxgen.ops.pointwise import Pointwise
from ptxgen.ops.row_reductions import Chosen
from ptxgen.ops.views import check_dtype, result_dtype, single
from ptxgen.program.buffer import Buffer
from ptxgen.program.build import Builder, ProgramBuilder
from ptxgen.program.operation import Backward, Gradients, op
from ptxgen.program.parameters import Out, Written

Positive = Annotated[float, Real(above=0.0, most=3e38)]
Momentum = Annotated[float, Real(least=0.0, most=1.0)]

_VECTORS = {"weight": "C", "bias": "C"}
_RUNNING = {"running_mean": "C", "running_var": "C"}
BATCH_NORM = Signature(
    "batch_norm",
    ("x", *_RUNNING, "weight", "bias"),
    ("out",),
    {"": {"x": "B C S", **_RUNNING, **_VECTORS, "out": "B C S"}},
    ("B", "C", "S"),
    optional=frozenset(_VECTORS),
)
BATCH_NORM_TRAIN = Signature(
    "batch_norm_train",
    ("x", "weight", "bias", *_RUNNING),
    ("out", "mean", "var"),
    {"": {"x": "B C S", **_VECTORS, **_RUNNING, "out": "B C S", "mean": "C", "var": "C"}},
    ("B", "C", "S"),
    optional=frozenset({*_VECTORS, *_RUNNING}),
)
LAYER_NORM2D = Signature(
    "layer_norm2d",
    ("x", "weight", "bias"),
    ("out",),
    {"": {"x": "B C S", **_VECTORS, "out": "B C S"}},
    ("B", "C", "S"),
    optional=frozenset(_VECTORS),
)

_scale = Pointwise(lambda var, eps: functions.rsqrt(var + eps), "batch_norm_scale")


def _by_variance(norm: Pointwise, *vectors: str) -> Pointwise:
    """Returns ``norm`` with arguments ``var`` and ``eps`` in place of ``rsqrt(var + eps)``, which
    each element then computes itself: one launch instead of two. ``vectors``: names of the
    arguments that follow, "weight" and "bias", if present.
    """
    return Pointwise(
        lambda x, mean, var, eps, **given: norm(x, mean, _scale(var, eps), *given.values()),
        "batch_norm",
        ("x", "mean", "var", "eps", *vectors),
    )


ONE_LAUNCH_MAX = 1 << 21
"""Most elements for which batch norm in evaluation is one launch: each element computes its
channel's ``rsqrt``, which costs less than a second launch.
"""
_one_launch = {
    (weight, bias): _by_variance(norm, *["weight"] * weight, *["bias"] * bias)
    for (weight, bias), norm in NORMED.items()
}
"""Formulas of batch norm in one launch, by (has a weight, has a bias)."""
_updated = Pointwise(lambda old, new, share, rest: new * share + old * rest, "updated")
_shifted = Pointwise(lambda x, by: x * by, "batch_norm_dx")
_shifted_weight = Pointwise(lambda x, by, weight: x * (by * weight), "batch_norm_dx")
_dx = Pointwise(slope, "batch_norm_dx")
_dx_weight = Pointwise(
    lambda dy, x, m, r, shift, stretch, n, w: slope(dy, x, m, r, shift, stretch, n) * w,
    "batch_norm_dx",
)


def _checked(x: Buffer, **vectors: Buffer | None) -> str:
    """Returns the dtype of the arithmetic; raises ShapeError or DtypeError."""
    if len(x.shape) < 2:
        raise ShapeError(f"x has shape {list(x.shape)}; takes [N, C, *]")
    check_dtype("x", x.dtype, [FULL[d] for d in REAL])
    wide = STORED[NAMES[x.dtype]]
    for name, vector in vectors.items():
        if vector is None:
            continue
        if vector.shape != (x.shape[1],):
            raise ShapeError(
                f"{name} has shape {list(vector.shape)}; takes [C] = [{x.shape[1]}], those of x"
            )
        check_dtype(name, vector.dtype, [FULL[d] for d in REAL if STORED[d] == wide])
    return FULL[wide]


# -- over batch and positions -----------------------------------------------------------------
def _rows(b: Builder, x: Any) -> Any:
    """Returns ``x`` [N, C, *] as contiguous rows, one a channel: elements along N, then *."""
    return b.packed(b.reshape(b.move(x, 1, 0), (x.shape[1], prod(x.shape) // max(x.shape[1], 1))))


def _wide_of(b: Builder, v: Any, x: Any) -> Any:
    """Returns ``v`` [C] as a view that broadcasts with ``x`` [N, C, *]."""
    return b.reshape(v, (x.shape[1], *[1] * (len(x.shape) - 2)))


def _normed(b: Builder, x: Any, mean: Any, scale: Any, vectors: Any, **how: Any) -> Any:
    given = (mean, scale, *(v for v in vectors if v is not None))
    formula = NORMED[vectors[0] is not None, vectors[1] is not None]
    return b.call(formula, x, *(_wide_of(b, v, x) for v in given), **how)


def batch_norm_scale(b: Builder, var: Any, eps: float) -> Any:
    """Computes ``rsqrt(var + eps)``, in the dtype of the arithmetic."""
    return b.call(_scale, var, eps, out_dtype=b.wide(var))


def batch_norm_gradients(
    b: Builder,
    dy: Any,
    x: Any,
    weight: Any,
    mean: Any,
    scale: Any,
    training: bool,
    needs: Collection[str],
    dtypes: tuple[str, str],
    out: Any = None,
) -> Gradients:
    """Returns the gradients of a batch norm by those of x, weight and bias that are in ``needs``.
    ``mean`` and ``scale``: mean and ``rsqrt(var + eps)`` of each channel, as the norm used them;
    ``training``: whether they were computed from x. ``dtypes``: dtypes of the gradients by weight
    and bias; ``out``: memory for dx, or None.
    """
    found: Gradients = {}
    how: dict[str, Any] = {"out_dtype": b.dtype(x)} if out is None else {"out": out}
    weights = () if weight is None else (_wide_of(b, weight, x),)
    mean, scale = (b.packed(b.cast(v, b.wide(x))) for v in (mean, scale))
    shift = stretch = None
    if training or "weight" in needs or "bias" in needs:
        shift, stretch = b.rows("group_norm_sums", _rows(b, dy), _rows(b, x), mean, scale)
    if "x" in needs and training:
        n = float(max(prod(x.shape) // max(x.shape[1], 1), 1))
        of = [_wide_of(b, v, x) for v in (mean, scale, shift, stretch)]
        function = _dx if weight is None else _dx_weight
        found["x"] = b.call(function, dy, x, *of, n, *weights, **how)
    elif "x" in needs:
        function = _shifted if weight is None else _shifted_weight
        found["x"] = b.call(function, dy, _wide_of(b, scale, x), *weights, **how)
    for name, total, dtype in zip(("weight", "bias"), (stretch, shift), dtypes, strict=True):
        if name in needs:
            found[name] = b.cast(total, dtype)
    return found


def _vector_dtypes(b: Builder, at: Backward) -> tuple[str, str]:
    weight, bias = (b.dtype(at["x"] if at[n] is None else at[n]) for n in ("weight", "bias"))
    return weight, bias


def _batch_norm_vjp(b: Builder, at: Backward) -> Gradients:
    """Gradients of ``batch_norm``: ``dx = dy * (rsqrt(running_var + eps) * weight)``; those by
    weight and bias are sums over batch and positions.
    """
    if at.needs & _RUNNING.keys():
        raise GradError("batch_norm has no gradients of running_mean, running_var; detach them")
    x, dy = at["x"], b.cast(at.dys[0], b.dtype(at["x"]))
    scale = batch_norm_scale(b, at["running_var"], at.options["eps"])
    given = dy, x, at["weight"], at["running_mean"], scale
    return batch_norm_gradients(b, *given, False, at.needs, _vector_dtypes(b, at))


@op(forms=BATCH_NORM, any_rank=True, vjp=_batch_norm_vjp)
def batch_norm(
    b: ProgramBuilder,
    x: Buffer,
    running_mean: Buffer,
    running_var: Buffer,
    weight: Buffer | None = None,
    bias: Buffer | None = None,
    *,
    eps: Positive = 1e-5,
    out: Annotated[Any, Written(over=("x",))] = None,
    out_dtype: Chosen = None,
) -> Buffer:
    """``(x - running_mean) * rsqrt(running_var + eps) * weight + bias`` of each channel: batch norm
    in evaluation mode.

    Shapes
        ``x`` ``[N, C, *]``, and so the result, which may be ``x``; the others ``[C]``.
    Dtypes
        float32, bfloat16, float16 or float64; the vectors of 16 bits or float32, for float64
        float64. The result has that of x; ``out`` or ``out_dtype`` may ask for float32 of 16 bits.
    Order
        Contract ``pointwise/1``: each operation rounded once in f32 (f64 of float64), from left to
        right. There are no sums, so an element's result depends on that element alone. The
        gradients by weight and bias are sums over batch, then positions, in the order of
        ``rows/1``. :func:`ptxgen.reference.batch_norm` returns the same bits.
    Errors
        ShapeError, DtypeError, OptionError (an ``eps`` that is not above 0), DeviceError, GradError
        (gradients of running statistics) or CompileError, before anything is launched or written.
    """
    target = single(out)
    running = {"running_mean": running_mean, "running_var": running_var}
    wide = _checked(x, **running, weight=weight, bias=bias)
    wanted = result_dtype(out_dtype, target, x.dtype, (x.dtype, wide))
    y = b.result(x.shape, wanted, target)
    if x.size <= ONE_LAUNCH_MAX:
        mean, var, *vectors = (
            _wide_of(b, v, x) for v in (running_mean, running_var, weight, bias) if v is not None
        )
        b.call(
            _one_launch[weight is not None, bias is not None], x, mean, var, eps, *vectors, out=y
        )
        return y
    scale = batch_norm_scale(b, running_var, eps)
    found: Buffer = _normed(b, x, running_mean, scale, (weight, bias), out=y)
    return found


def batch_norm_alone(
    b: ProgramBuilder,
    x: Buffer,
    weight: Buffer | None,
    bias: Buffer | None,
    eps: float,
    out: Buffer | None = None,
) -> tuple[Buffer, Buffer, Buffer, Buffer]:
    """Normalises each channel of ``x`` by the mean and variance of this batch, then applies weight
    and bias. Returns the result (in ``out``, if passed), the mean and ``rsqrt(var + eps)`` of each
    channel, and ``x`` as rows, one a channel. Raises ShapeError for one value a channel.
    """
    _checked(x, weight=weight, bias=bias)
    rows = _rows(b, x)
    if x.size and rows.shape[1] < 2:
        raise ShapeError(
            f"x has shape {list(x.shape)}, one value a channel; takes two or more: of one there is "
            "no variance"
        )
    mean, scale = b.rows("moments", rows, eps=eps)
    y = _normed(b, x, mean, scale, (weight, bias), out=b.result(x.shape, x.dtype, out))
    return y, mean, scale, rows


@op(public=False, results=("out", "mean", "scale", "running_mean", "running_var"))
def batch_norm_kept(
    b: ProgramBuilder,
    x: Buffer,
    weight: Buffer | None = None,
    bias: Buffer | None = None,
    running_mean: Buffer | None = None,
    running_var: Buffer | None = None,
    *,
    momentum: Momentum = 0.1,
    eps: Positive = 1e-5,
    out: Out = None,
) -> tuple[Buffer, ...]:
    """Batch norm in training. Returns the result, mean and ``rsqrt(var + eps)`` of each channel,
    and the new running mean and variance: the batch's own if none are passed.
    """
    _checked(x, running_mean=running_mean, running_var=running_var)
    y, mean, scale, rows = batch_norm_alone(b, x, weight, bias, eps, single(out))
    statistics = mean, b.rows("var", rows, correction=1.0, out_dtype=b.wide(x))
    shares = momentum, 1.0 - momentum
    new = (
        v if o is None else b.call(_updated, o, v, *shares, out_dtype=o.dtype)
        for o, v in zip((running_mean, running_var), statistics, strict=True)
    )
    return y, mean, scale, *new


def _train_vjp(b: Builder, at: Backward) -> Gradients:
    """Gradients of ``batch_norm_train`` from two sums of each channel, ``sum(dy)`` and
    ``sum(dy * (x - mean) * rsqrt(var + eps))``; the moments are recomputed.
    """
    x, dy = at["x"], b.cast(at.dys[0], b.dtype(at["x"]))
    mean, scale = b.rows("moments", _rows(b, x), eps=at.options["eps"])
    given = dy, x, at["weight"], mean, scale
    return batch_norm_gradients(b, *given, True, at.needs, _vector_dtypes(b, at))


@op(forms=BATCH_NORM_TRAIN, any_rank=True, vjp=_train_vjp)
def batch_norm_train(
    b: ProgramBuilder,
    x: Buffer,
    weight: Buffer | None = None,
    bias: Buffer | None = None,
    running_mean: Buffer | None = None,
    running_var: Buffer | None = None,
    *,
    momentum: Momentum = 0.1,
    eps: Positive = 1e-5,
) -> tuple[Buffer, Buffer, Buffer]:
    """``(x - mean) * rsqrt(var + eps) * weight + bias`` of each channel, with the moments of this
    batch; also returns the new running statistics.

    ``mean`` and ``var`` (the mean of ``(x - mean)**2``) are over batch and positions. Running
    statistics become ``momentum * new + (1 - momentum) * old``, the new variance with n - 1 degrees
    of freedom, as in PyTorch. They are returned, and arguments are not written to. Without old
    statistics the batch's own are returned.

    Shapes
        ``x`` ``[N, C, *]``, and so the first result; the vectors ``[C]``, and so the other results:
        running mean and variance.
    Dtypes
        float32, bfloat16, float16 or float64; the vectors of 16 bits or float32, for float64
        float64. Results have the dtypes of x and of the old statistics; without these float32 (for
        float64: float64).
    Order
        A channel's elements are a row, batch first, then positions: sums are those of ``rows/1``,
        the rest is ``pointwise/1``, each operation rounded once in f32 (f64 of float64). So a
        channel depends on that channel of the whole batch: the operation is not batch-invariant. No
        atomics: the same bits in every run. :func:`ptxgen.reference.batch_norm_train` returns the
        same bits.
    Errors
        ShapeError (also for one value a channel), DtypeError, OptionError (an ``eps`` that is not
        above 0, a ``momentum`` beyond 0 .. 1), DeviceError, GradError or CompileError, before
        anything is launched or written.
    """
    how = {"momentum": momentum, "eps": eps}
    y, _, _, *running = b.batch_norm_kept(x, weight, bias, running_mean, running_var, **how)
    return y, running[0], running[1]


# -- over channels ----------------------------------------------------------------------------
def _layer_norm2d_vjp(b: Builder, at: Backward) -> Gradients:
    """Gradients of ``layer_norm2d``: those of ``layer_norm``, with channels moved last."""
    x, weight, bias = (at[n] for n in ("x", "weight", "bias"))
    rows = b.packed(b.move(x, 1, -1))
    dy = b.packed(b.move(b.cast(at.dys[0], b.dtype(x)), 1, -1))
    dx, mean, scale = b.rows("layer_norm_backward", dy, rows, weight, eps=at.options["eps"])
    found = {"x": b.move(dx, -1, 1)}
    vectors = {n: v for n, v in (("weight", weight), ("bias", bias)) if n in at.needs}
    if vectors:
        made = b.layer_norm_wgrad(dy, rows, mean, scale, out_dtype=b.wide(x))
        for name, d in zip(("weight", "bias"), made, strict=True):
            if name in vectors:
                found[name] = b.cast(d, b.dtype(vectors[name]))
    return found


@op(forms=LAYER_NORM2D, any_rank=True, vjp=_layer_norm2d_vjp)
def layer_norm2d(
    b: ProgramBuilder,
    x: Buffer,
    weight: Buffer | None = None,
    bias: Buffer | None = None,
    eps: Positive = 1e-6,
    *,
    out_dtype: Chosen = None,
) -> Buffer:
    """``(x - mean) * rsqrt(var + eps) * weight + bias`` of each position over its channels.

    Models call it ``LayerNorm2d``: :func:`ptxgen.layer_norm` over the channels of images
    ``[N, C, *]``.

    Shapes
        ``x`` ``[N, C, *]``, and so the result; ``weight`` and ``bias`` ``[C]``.
    Dtypes
        Those of :func:`ptxgen.layer_norm`; the result has that of x, or ``out_dtype``.
    Order
        Contract ``rows/1`` of a position's channels, ascending. So a position's result depends on
        that position alone. A copy moves channels last, unless they have unit stride;
        :func:`ptxgen.reference.layer_norm2d` returns the same bits.
    Errors
        ShapeError, DtypeError, OptionError (an ``eps`` that is not above 0), DeviceError, GradError
        or CompileError, before anything is launched or written.
    """
    _checked(x, weight=weight, bias=bias)
    rows = b.packed(b.move(x, 1, -1))
    found = b.rows("layer_norm", rows, weight, bias, eps=eps, out_dtype=out_dtype)
    moved: Buffer = b.move(found, -1, 1)
    return moved
