"""RMS and layer norm of rows, and group norm."""

from __future__ import annotations

from math import prod
from typing import Annotated, Any

from ptxgen.errors import OptionError, ShapeError
from ptxgen.numerics.dtype import BYTES, FULL, NAMES
from ptxgen.numerics.formula import STORED
from ptxgen.numerics.option import Bool, Eps, Integer, Kernel
from ptxgen.numerics.reduction_order import GROUP
from ptxgen.numerics.row_reductions import OFFSET, REAL, TABLE
from ptxgen.numerics.signature import Signature
from ptxgen.ops.pointwise import Pointwise
from ptxgen.ops.row_reductions import Chosen
from ptxgen.ops.views import check_dtype, result_dtype, single
from ptxgen.program.buffer import Buffer
from ptxgen.program.build import Builder, ProgramBuilder
from ptxgen.program.operation import Backward, Gradients, op
from ptxgen.program.parameters import Out, Written
from ptxgen.spec.row_reductions import DOWN_COLS, DOWN_ELEMENTS

DOWN_ROWS, DOWN_LEAST = {"rms_norm": 3072, "layer_norm": 8192}, 2048
"""Thresholds from which on one kernel computes the gradients of a norm by x and by its vectors:
``DOWN_ROWS``, number of rows, by norm; ``DOWN_LEAST``, elements of a row. Below, two kernels do.
"""
Offset = Annotated[float, OFFSET]
_added = Pointwise(lambda x, y: x + y, "added")


# -- of rows ----------------------------------------------------------------------------------
def _in_one_pass(b: Builder, norm: str, x: Any, *vectors: Any) -> bool:
    """Whether one kernel computes both the gradient of ``norm`` by its rows ``x`` and those by
    ``vectors`` (weight, bias; or None).

    The bits are those of two kernels; one is faster if there are rows for all SMs.
    """
    width = x.shape[-1]
    rows, dtype = prod(x.shape[:-1]), b.dtype(x)
    alike = BYTES[dtype] == 2 and all(v is None or b.dtype(v) == dtype for v in vectors)
    many = rows >= DOWN_ROWS[norm] and rows * width <= DOWN_ELEMENTS
    return alike and many and DOWN_LEAST <= width <= DOWN_COLS and width % GROUP == 0


def _sum_rows(b: Builder, dy: Any, vector: Any) -> Any:
    """Returns the gradient by ``vector``, which was added to each row: the sum of dy's rows."""
    rows = b.reshape(b.packed(dy), (prod(dy.shape[:-1]), dy.shape[-1]))
    return b.cast(b.sum(rows, axis=0, out_dtype=b.wide(dy)), b.dtype(vector))


def _rms_vjp(b: Builder, at: Backward) -> Gradients:
    """Gradients of ``rms_norm``: those by x and the residual include the gradient of the returned
    sum; those by weight and bias are sums over rows. A rounding has the derivative 1.
    """
    weight, eps, rounded = at["weight"], at.options["eps"], at.options["rounded"]
    x = at["x"] if at["residual"] is None else at.results[1]
    x, dy, found = b.packed(x), b.packed(b.cast(at.dys[0], b.dtype(x))), {}
    factor = weight
    if at.options["offset"] and weight is not None:
        factor = b.add(weight, at.options["offset"], out_dtype=b.wide(weight))
    if "weight" in at.needs and not rounded and _in_one_pass(b, "rms_norm", x, factor):
        dx, found["weight"] = b.rows("rms_norm_gradients", dy, x, factor, eps=eps)
    else:
        dx, scale = b.rows("rms_norm_backward", dy, x, factor, eps=eps)
        if "weight" in at.needs:
            normed = x, scale
            if rounded:  # what the weight was multiplied by, times 1
                ones = b.filled(scale.shape, b.dtype(scale), 1.0, scale)
                normed = b.rows("rms_norm", x, eps=eps), ones
            found["weight"] = b.rms_norm_wgrad(dy, *normed, out_dtype=b.dtype(weight))
    if "bias" in at.needs:
        found["bias"] = _sum_rows(b, dy, at["bias"])
    return found | _through_residual(b, at, dx)


def _through_residual(b: Builder, at: Backward, dx: Any) -> Gradients:
    """Returns the gradients of ``norm(x + residual + residual_bias)`` by x and, if present, the
    residual and its bias. ``dx``: gradient of the norm by its input, that sum. The gradient of the
    sum, which is also returned by the call, is added to it.
    """
    if at["residual"] is None:
        return {"x": dx}
    dx = b.call(_added, dx, at.dys[1], out_dtype=b.dtype(dx))
    found = {"x": dx, "residual": dx}
    if "residual_bias" in at.needs:
        found["residual_bias"] = _sum_rows(b, dx, at["residual_bias"])
    return found


def _normed(
    b: ProgramBuilder,
    norm: str,
    x: Buffer,
    vectors: tuple[Buffer | None, ...],
    residual: Buffer | None,
    residual_bias: Buffer | None,
    **how: Any,
) -> Any:
    """Records a norm of the rows of ``x`` as one operation over rows, and returns its result. With
    a ``residual``, the norm is of x plus the residual and its bias, and that sum is also returned.
    ``norm``: "rms_norm", a variant of it, or "layer_norm"; ``vectors``: weight and bias; ``how``:
    the norm's options. Raises OptionError for a ``residual_bias`` without a residual.
    """
    if residual is not None:
        return b.rows(f"add_{norm}", x, residual, *vectors, residual_bias, **how)
    if residual_bias is not None:
        raise OptionError("residual_bias is that of a residual, of which there is none")
    return b.rows(norm, x, *vectors, **how)


@op(forms=TABLE["add_rms_norm"].signature, vjp=_rms_vjp)
def rms_norm(
    b: ProgramBuilder,
    x: Buffer,
    weight: Buffer | None = None,
    eps: Eps = 1e-6,
    *,
    bias: Buffer | None = None,
    residual: Buffer | None = None,
    residual_bias: Buffer | None = None,
    offset: Offset = 0.0,
    rounded: Bool = False,
    out: Out = None,
    out_dtype: Chosen = None,
    kernel: Kernel = None,
) -> Any:
    """``x * rsqrt(mean(x**2) + eps) * (weight + offset) + bias`` of each row.

    ``offset``: 1 for weights that are stored as their distance from 1 (Gemma). ``rounded``: whether
    ``x * rsqrt(...)`` is rounded to x's dtype before the weight (Llama).

    Shapes
        ``x`` ``[..., N]``, and so the result; ``weight``, ``bias`` and ``residual_bias`` ``[N]``;
        ``residual`` as x. A residual is first added to x, ``x + (residual + residual_bias)``, and
        the sum is rounded to x's dtype; the result (and ``out``) is then a pair, the norm of the
        sum and the sum.
    Dtypes
        float32, bfloat16, float16 or float64; ``residual`` as x; ``weight`` and biases of 16 bits
        or float32, for float64 float64. The result has that of x; ``out`` or ``out_dtype`` may ask
        for float32 of 16 bits.
    Order
        Contract ``rows/1``: each operation rounded once in f32 (f64 of float64), the sum in an
        order that N alone decides. :func:`ptxgen.reference.rms_norm` returns the same bits.
    Errors
        ShapeError, DtypeError, OptionError (a ``residual_bias`` without a residual, an ``offset``
        without a weight), DeviceError, GradError or CompileError, before anything is launched or
        written.
    Source
        ``ptxgen/ops/norms.py``, ``ptxgen/numerics/row_reductions.py``.
    """
    if weight is None and offset:
        raise OptionError(f"offset is {offset}, which is added to a weight; there is no weight")
    how = {"eps": eps, "out": out, "out_dtype": out_dtype, "kernel": kernel}
    norm = "rms_norm"
    if rounded and BYTES.get(x.dtype) == 2:
        norm, how = "rms_norm_rounded", {**how, "offset": offset}
    elif offset:
        norm, how = "rms_norm_offset", {**how, "offset": offset}
    return _normed(b, norm, x, (weight, bias), residual, residual_bias, **how)


def _layer_vjp(b: Builder, at: Backward) -> Gradients:
    """Gradients of ``layer_norm``, as those of ``rms_norm``; that by the bias sums dy's rows."""
    weight, bias, eps = at["weight"], at["bias"], at.options["eps"]
    x = at["x"] if at["residual"] is None else at.results[1]
    x, dy = b.packed(x), b.packed(b.cast(at.dys[0], b.dtype(x)))
    vectors = {n: v for n, v in (("weight", weight), ("bias", bias)) if n in at.needs}
    found: Gradients = {}
    if vectors and _in_one_pass(b, "layer_norm", x, weight, bias):
        dx, *both = b.rows("layer_norm_gradients", dy, x, weight, eps=eps)
    else:
        dx, mean, scale = b.rows("layer_norm_backward", dy, x, weight, eps=eps)
        like = b.dtype(weight if weight is not None else bias) if vectors else ""
        both = b.layer_norm_wgrad(dy, x, mean, scale, out_dtype=like) if vectors else ()
    for (name, v), d in zip((("weight", weight), ("bias", bias)), both, strict=False):
        if name in vectors and v is not None:
            found[name] = b.cast(d, b.dtype(v))
    return found | _through_residual(b, at, dx)


@op(forms=TABLE["add_layer_norm"].signature, vjp=_layer_vjp)
def layer_norm(
    b: ProgramBuilder,
    x: Buffer,
    weight: Buffer | None = None,
    bias: Buffer | None = None,
    eps: Eps = 1e-5,
    *,
    residual: Buffer | None = None,
    residual_bias: Buffer | None = None,
    out: Out = None,
    out_dtype: Chosen = None,
    kernel: Kernel = None,
) -> Any:
    """``(x - mean) * rsqrt(var + eps) * weight + bias`` of each row.

    ``var`` is the mean of ``(x - mean)**2``.

    Shapes
        ``x`` ``[..., N]``, and so the result; ``weight``, ``bias`` and ``residual_bias`` ``[N]``;
        ``residual`` as x. A residual is first added to x, ``x + (residual + residual_bias)``, and
        the sum is rounded to x's dtype; the result (and ``out``) is then a pair, the norm of the
        sum and the sum.
    Dtypes
        float32, bfloat16, float16 or float64; ``residual`` as x; ``weight`` and biases of 16 bits
        or float32, for float64 float64. The result has that of x; ``out`` or ``out_dtype`` may ask
        for float32 of 16 bits.
    Order
        Contract ``rows/1``: each operation rounded once in f32 (f64 of float64), sums in an order
        that N alone decides. :func:`ptxgen.reference.layer_norm` returns the same bits.
    Errors
        ShapeError, DtypeError, OptionError (a ``residual_bias`` without a residual), DeviceError,
        GradError or CompileError, before anything is launched or written.
    Source
        ``ptxgen/ops/norms.py``, ``ptxgen/numerics/row_reductions.py``.
    """
    how = {"eps": eps, "out": out, "out_dtype": out_dtype, "kernel": kernel}
    return _normed(b, "layer_norm", x, (weight, bias), residual, residual_bias, **how)


# -- of groups --------------------------------------------------------------------------------
NORMED = {
    (False, False): Pointwise(lambda x, m, r: (x - m) * r, "group_norm"),
    (True, False): Pointwise(lambda x, m, r, weight: (x - m) * r * weight, "group_norm"),
    (False, True): Pointwise(lambda x, m, r, bias: (x - m) * r + bias, "group_norm"),
    (True, True): Pointwise(
        lambda x, m, r, weight, bias: (x - m) * r * weight + bias, "group_norm"
    ),
}
"""Formulas of a norm, by (has a weight, has a bias); m: mean, r: ``rsqrt(var + eps)``."""


def slope(dy: Any, x: Any, mean: Any, scale: Any, shift: Any, stretch: Any, n: Any) -> Any:
    """Formula of a norm's gradient by x, ``scale * ((dy - shift / n) - (x - mean) * scale *
    (stretch / n))``. ``mean``, ``scale``: the mean and ``rsqrt(var + eps)`` of the n elements of a
    row or group; ``shift = sum(dy)``; ``stretch = sum(dy * (x - mean) * scale)``.
    """
    return scale * ((dy - shift / n) - (x - mean) * scale * (stretch / n))


_dx = Pointwise(slope, "group_norm_dx")
_dx_weight = Pointwise(
    lambda dy, x, m, r, shift, stretch, n, w: slope(dy * w, x, m, r, shift, stretch, n),
    "group_norm_dx",
)
_FORMS = {"x": "B C S", "weight": "C", "bias": "C", "out": "B C S"}
GROUP_NORM = Signature(
    "group_norm",
    ("x", "weight", "bias"),
    ("out",),
    {"": _FORMS},
    ("B", "C", "S"),
    optional=frozenset({"weight", "bias"}),
)


def _by_group(b: Builder, x: Any, groups: int) -> Any:
    """Returns ``x`` [N, C, *] as a view [N, G, C / G, *]; G: ``groups``."""
    return b.reshape(x, (x.shape[0], groups, x.shape[1] // groups, *x.shape[2:]))


def _of_groups(b: Builder, v: Any, x: Any, groups: int) -> Any:
    """Returns ``v``, one element a group [N * G], as a view that broadcasts with ``x`` viewed as
    [N, G, C / G, *].
    """
    return b.reshape(v, (x.shape[0], groups, *[1] * (len(x.shape) - 1)))


def _of_channels(b: Builder, v: Any, x: Any, groups: int) -> Any:
    """Returns ``v`` [C] as a view that broadcasts with ``x`` viewed as [N, G, C / G, *]."""
    return b.reshape(v, (groups, x.shape[1] // groups, *[1] * (len(x.shape) - 2)))


def group_rows(x: Any, groups: int) -> tuple[int, int]:
    """Returns the shape [N * groups, elements of a group] of ``x`` [N, C, *]."""
    return x.shape[0] * groups, x.shape[1] // groups * prod(x.shape[2:])


def group_norm_kept(
    b: Builder,
    x: Any,
    groups: int,
    weight: Any,
    bias: Any,
    eps: float,
    out_dtype: str,
    out: Any = None,
) -> tuple[Any, Any, Any]:
    """Records a group norm. Returns the result, and mean and ``rsqrt(var + eps)`` of each group,
    [N * groups], in the dtype of the arithmetic.
    """
    mean, scale = b.rows("moments", b.packed(b.reshape(x, group_rows(x, groups))), eps=eps)
    vectors = [_of_channels(b, v, x, groups) for v in (weight, bias) if v is not None]
    into = {} if out is None else {"out": _by_group(b, out, groups)}
    found = b.call(
        NORMED[weight is not None, bias is not None],
        _by_group(b, x, groups),
        *(_of_groups(b, m, x, groups) for m in (mean, scale)),
        *vectors,
        out_dtype=out_dtype,
        **into,
    )
    return b.reshape(found, x.shape), mean, scale


def group_norm_gradients(
    b: Builder,
    dy: Any,
    x: Any,
    weight: Any,
    mean: Any,
    scale: Any,
    groups: int,
    needs: frozenset[str],
    dtypes: tuple[str, str],
) -> Gradients:
    """Returns the gradients of a group norm by those of x, weight and bias that are in ``needs``.
    ``mean``, ``scale``: mean and ``rsqrt(var + eps)`` of each group; ``dtypes``: dtypes of the
    gradients by weight and bias.
    """
    count, channels = x.shape[:2]
    rows, found = (count * channels, prod(x.shape[2:])), {}
    wide = (count, groups, channels // groups)
    each = [
        b.reshape(b.packed(b.expand(b.reshape(m, (count, groups, 1)), wide)), rows[:1])
        for m in (mean, scale)
    ]
    given = (b.packed(b.reshape(v, rows)) for v in (dy, x))
    sums = b.rows("group_norm_sums", *given, *each)
    shift, stretch = (b.reshape(s, (count, channels)) for s in sums)
    if "x" in needs:
        weights = () if weight is None else (_of_channels(b, weight, x, groups),)
        by = (shift, stretch)
        if weight is not None:
            by = tuple(b.mul(s, weight, out_dtype=b.dtype(s)) for s in by)
        totals = [b.rows("sum", b.reshape(s, (count * groups, channels // groups))) for s in by]
        of = [_of_groups(b, m, x, groups) for m in (mean, scale, *totals)]
        n = float(max(group_rows(x, groups)[1], 1))
        function = _dx if weight is None else _dx_weight
        grouped = (_by_group(b, v, groups) for v in (dy, x))
        dx = b.call(function, *grouped, *of, n, *weights, out_dtype=b.dtype(x))
        found["x"] = b.reshape(dx, x.shape)
    for name, s, dtype in zip(("weight", "bias"), (stretch, shift), dtypes, strict=True):
        if name in needs:  # the sum down the batch
            found[name] = b.cast(b.rows("sum", b.packed(b.transpose(s))), dtype)
    return found


def _group_vjp(b: Builder, at: Backward) -> Gradients:
    """Gradients of ``group_norm``. Those by weight and bias sum each channel's positions, then the
    batch, in f32 (f64 of float64). That by x uses the channels' sums, each times the channel's
    weight, added over a group. The moments are recomputed.
    """
    x, weight, groups = at["x"], at["weight"], at.options["groups"]
    rows = b.packed(b.reshape(x, group_rows(x, groups)))
    mean, scale = b.rows("moments", rows, eps=at.options["eps"])
    dtypes = tuple(b.dtype(x if v is None else v) for v in (weight, at["bias"]))
    dy = b.cast(at.dys[0], b.dtype(x))
    return group_norm_gradients(
        b, dy, x, weight, mean, scale, groups, at.needs, (dtypes[0], dtypes[1])
    )


@op(forms=GROUP_NORM, any_rank=True, vjp=_group_vjp)
def group_norm(
    b: ProgramBuilder,
    x: Buffer,
    groups: Annotated[int, Integer(1)],
    weight: Buffer | None = None,
    bias: Buffer | None = None,
    *,
    eps: Eps = 1e-5,
    out: Annotated[Any, Written(over=("x",))] = None,
    out_dtype: Chosen = None,
) -> Buffer:
    """``(x - mean) * rsqrt(var + eps) * weight + bias`` of each group of channels.

    ``mean`` and ``var`` (the mean of ``(x - mean)**2``) are those of a group.

    Shapes
        ``x`` ``[N, C, *]``, and so the result, which may be ``x``; ``weight`` and ``bias`` ``[C]``.
        A group is C / ``groups`` neighbouring channels of one of the N, at all positions.
    Dtypes
        float32, bfloat16, float16 or float64; ``weight`` and ``bias`` of 16 bits or float32, for
        float64 float64. The result has that of x; ``out`` or ``out_dtype`` may ask for float32 of
        16 bits.
    Order
        Two launches: moments (contract ``rows/1``), then ``pointwise/1``; rounded once to the
        dtype. The moments are those of :func:`ptxgen.layer_norm` with groups as rows, and the
        formula has its order of roundings. :func:`ptxgen.reference.group_norm` returns the same
        bits.
    Errors
        ShapeError (C no multiple of ``groups``), DtypeError, OptionError, DeviceError, GradError or
        CompileError, before anything is launched or written.
    """
    target = single(out)
    wide = _check(x, groups, weight, bias)
    wanted = result_dtype(out_dtype, target, x.dtype, (x.dtype, wide))
    if target is not None:
        b.result(x.shape, wanted, target)
    view = None if target is None or target.reshaped(group_rows(x, groups)) is None else target
    found, *_ = group_norm_kept(b, x, groups, weight, bias, eps, wanted, view)
    return b.delivered(found, target)


def _check(x: Buffer, groups: int, weight: Buffer | None, bias: Buffer | None) -> str:
    """Returns the dtype of the arithmetic; raises ShapeError or DtypeError."""
    if len(x.shape) < 2:
        raise ShapeError(f"x has shape {list(x.shape)}; takes [N, C, *]")
    channels = x.shape[1]
    if channels % groups:
        raise ShapeError(f"x has {channels} channels; takes a multiple of groups, {groups}")
    check_dtype("x", x.dtype, [FULL[d] for d in REAL])
    wide = STORED[NAMES[x.dtype]]
    taken = [FULL[d] for d in REAL if STORED[d] == wide]
    for name, vector in (("weight", weight), ("bias", bias)):
        if vector is None:
            continue
        if vector.shape != (channels,):
            raise ShapeError(
                f"{name} has shape {list(vector.shape)}; takes [C] = [{channels}], those of x"
            )
        check_dtype(name, vector.dtype, taken)
    return FULL[wide]
