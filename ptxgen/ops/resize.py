"""Resizing images: nearest and linear, one dimension after the other, the last one first.

Gradients are gathered: an input element adds up the weighted gradients of the outputs around it,
ascending; outputs that do not read it have weight 0. So nothing is added by atomics.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, prod
from typing import Annotated, Any

from ptxgen.errors import OptionError, ShapeError
from ptxgen.numerics.formula import cast, primitive, where
from ptxgen.numerics.option import Bool, Choice, Integers
from ptxgen.ops.pointwise import Pointwise
from ptxgen.ops.views import check_dtype
from ptxgen.program.buffer import Buffer
from ptxgen.program.build import Builder, ProgramBuilder
from ptxgen.program.operation import Backward, Gradients, op

FLOATS = ("float32", "bfloat16", "float16", "float64")
SIZE_MAX = 1 << 20
Size = Annotated[Any, Integers()]
Mode = Annotated[str, Choice("nearest", "linear")]


@dataclass(frozen=True)
class Axis:
    """Resize along one dimension: ``count`` outputs from ``size`` inputs, ``step`` inputs apart.
    Output o reads the input at coordinate ``max((o + shift) * step - shift, 0)``, by ``linear``
    interpolation or rounded down.
    """

    size: int
    count: int
    step: float
    shift: float
    linear: bool

    @property
    def most(self) -> int:
        """Number of neighbouring outputs that are added up for an input's gradient: an upper bound
        of those that read the input; the weight of the others is 0.
        """
        if self.step == 0:
            return self.count
        return min(ceil((2 if self.linear else 1) / self.step) + 3, self.count + 2)


def resized(
    x: Any,
    size: Sequence[int],
    mode: str,
    align_corners: bool = False,
    steps: Sequence[float | None] = (),
) -> tuple[Axis, ...]:
    """Returns the axes of a resize. ``steps``: input elements from output to output, or None for
    ``n / size``. Raises ShapeError or OptionError.
    """
    rank, linear = len(size), mode != "nearest"
    if not 1 <= rank <= 3 or len(x.shape) < rank or not 1 <= min(size) <= max(size) <= SIZE_MAX:
        raise ShapeError(
            f"size is {list(size)}, x has shape {list(x.shape)}; takes 1 to 3 sizes from 1 to "
            f"{SIZE_MAX}, of the last dimensions of x"
        )
    if align_corners and not linear:
        raise OptionError(f"align_corners is True; takes False with mode {mode!r}")
    found = []
    sizes = x.shape[len(x.shape) - rank :]
    for n, o, step in zip(sizes, size, steps or (None,) * rank, strict=True):
        if n == 0:
            raise ShapeError(
                f"x has shape {list(x.shape)}, size is {list(size)}; takes no empty images"
            )
        if align_corners:
            step = (n - 1) / (o - 1) if o > 1 else 0.0
        shift = 0.5 if linear and not align_corners else 0.0
        found.append(Axis(n, o, n / o if step is None else step, shift, linear))
    return tuple(found)


def _source(o: Any, step: Any, shift: Any) -> Any:
    return primitive("max", (o + shift) * step - shift, 0)


def _before(o: Any, step: Any, shift: Any, last: Any) -> Any:
    return primitive("min", primitive("floor", _source(o, step, shift)), last)


_low = Pointwise(
    lambda o, step, shift, last: cast(_before(o, step, shift, last), "i64"), "resize_low"
)
_high = Pointwise(
    lambda o, step, shift, last: cast(
        primitive("min", _before(o, step, shift, last) + 1, last), "i64"
    ),
    "resize_high",
)
_weight = Pointwise(
    lambda o, step, shift, last: _source(o, step, shift) - _before(o, step, shift, last),
    "resize_weight",
)
_mixed = Pointwise(lambda low, high, w: low * (1 - w) + high * w, "resize")
_first = Pointwise(
    lambda i, back, shift, reach: primitive(
        "max", primitive("floor", (i - reach + shift) * back - shift), 0
    ),
    "resize_first",
)
_at = Pointwise(
    lambda first, j, count: where(first + j < count, cast(first + j, "i64"), -1), "resize_at"
)


def _shares(nearest: bool) -> Pointwise:
    def function(first: Any, j: Any, i: Any, step: Any, shift: Any, last: Any) -> Any:
        o = first + j
        low = _before(o, step, shift, last)
        if nearest:
            return where(low == i, low * 0 + 1, 0)
        w = _source(o, step, shift) - low
        high = primitive("min", low + 1, last)
        return where(low == i, 1 - w, 0) + where(high == i, w, 0)

    return Pointwise(function, "resize_share")


_share = {True: _shares(False), False: _shares(True)}
"""Formulas of the weight that ``resize`` gives input ``i`` in its output ``first + j``, for the
gradient. Key: :attr:`Axis.linear`.
"""
_scaled = Pointwise(lambda x, w: x * w, "resize_gradient")
_add_scaled = Pointwise(lambda total, x, w: total + x * w, "resize_gradient")


def _ramp(b: Builder, count: int, like: Any) -> Any:
    """Returns the vector 0, 1 ... ``count - 1``, in the dtype of arithmetic on ``like``."""
    return b.cast(b.cumsum(b.filled((count,), "int64", 1, like), exclusive=True), b.wide(like))


def _broadcast_along(b: Builder, v: Any, x: Any, axis: int) -> Any:
    return b.reshape(v, (v.shape[0], *[1] * (len(x.shape) - 1 - axis)))


def _gradient_along(b: Builder, dy: Any, a: Axis, axis: int, dtype: str) -> Any:
    wide, count = b.wide(dy), a.most
    back = 1 / a.step if a.step else 0.0
    i = b.reshape(_ramp(b, a.size, dy), (a.size, 1))
    j = b.reshape(_ramp(b, count, dy), (1, count))
    first = b.call(_first, i, back, a.shift, float(a.linear) + (0.0 if a.linear else a.step))
    at = b.call(_at, first, j, float(a.count))
    how = a.step, a.shift, float(a.size - 1)
    share = b.call(_share[a.linear], first, j, i, *how, out_dtype=wide)
    spread = b.gather(b.packed(dy), b.reshape(at, (a.size * count,)), axis=axis)
    total = None
    for k in range(count):
        part = b.narrow(spread, axis, k, a.size, count)
        w = _broadcast_along(b, b.reshape(b.narrow(share, 1, k, 1), (a.size,)), dy, axis)
        to = dtype if k == count - 1 else wide
        if total is None:
            total = b.call(_scaled, part, w, out_dtype=to)
        else:
            total = b.call(_add_scaled, total, part, w, out_dtype=to)
    return total


def resize_gradient(b: Builder, dy: Any, axes: Sequence[Axis], dtype: str) -> Any:
    """Returns the gradient by x: weighted sums of ``dy``, ascending, the first dimension first."""
    lead = len(dy.shape) - len(axes)
    for k, a in enumerate(axes):
        to = dtype if k == len(axes) - 1 else b.wide(dy)
        dy = _gradient_along(b, dy, a, lead + k, to)
    return dy


def resize_by(b: ProgramBuilder, x: Buffer, axes: Sequence[Axis]) -> Buffer:
    """Resizes ``x`` along each of ``axes``, its last dimensions, the last one first."""
    check_dtype("x", x.dtype, FLOATS)
    lead, dtype, wide = x.ndim - len(axes), x.dtype, b.wide(x)
    shape = (*x.shape[:lead], *(a.count for a in axes))
    if b.abstract or not prod(shape):
        return b.result(shape, dtype)
    for k in reversed(range(len(axes))):
        a, axis = axes[k], lead + k
        o, how = _ramp(b, a.count, x), (a.step, a.shift, float(a.size - 1))
        low = b.gather(b.packed(x), b.call(_low, o, *how), axis=axis)
        if a.linear:
            high = b.gather(b.packed(x), b.call(_high, o, *how), axis=axis)
            w = _broadcast_along(b, b.call(_weight, o, *how, out_dtype=wide), x, axis)
            low = b.call(_mixed, low, high, w, out_dtype=wide if k else dtype)
        x = low
    return x


def _vjp(b: Builder, at: Backward) -> Gradients:
    """Gradient of ``resize``: each element sums weighted ``dy`` of the outputs that read it."""
    x, how = at["x"], at.only("size", "mode", "align_corners")
    if not prod(at.dys[0].shape):
        return {"x": b.filled(x.shape, b.dtype(x), 0.0, x)}
    return {"x": resize_gradient(b, at.dys[0], resized(x, **how), b.dtype(x))}


@op(vjp=_vjp)
def resize(
    b: ProgramBuilder,
    x: Buffer,
    size: Size,
    *,
    mode: Mode = "nearest",
    align_corners: Bool = False,
) -> Buffer:
    """Resizes images: ``y[o] = x[floor(o * n / size)]``, or linear interpolation.

    ``mode="linear"`` (for 2-D images: bilinear) reads output o at coordinate
    ``s = (o + 0.5) * n / size - 0.5``, not below 0, or, with ``align_corners``, at
    ``s = o * (n - 1) / (size - 1)``: ``y[o] = x[i] * (1 - w) + x[i + 1] * w`` for ``i = floor(s)``
    and ``w = s - i``.

    Shapes
        ``x`` ``[..., *]``; ``size`` has one integer for each of the 1 to 3 image dimensions; the
        result ``[..., *size]``.
    Dtypes
        ``x`` float32, bfloat16, float16 or float64, and so the result.
    Order
        Contract ``pointwise/1``, one dimension after the other, the last one first; each operation
        is rounded once in f32 (f64 of float64), coordinates too, and the result once to its dtype.
        An output depends on its neighbours in its own image alone. A gradient is the weighted sum
        of the outputs' gradients, ascending, the first dimension first; in f32 between dimensions.
        :func:`ptxgen.reference.resize` returns the same bits.
    Errors
        ShapeError for other ranks, no elements or sizes below 1; OptionError (``align_corners`` of
        nearest), DtypeError, DeviceError, GradError or CompileError, before anything is launched or
        written.
    """
    return resize_by(b, x, resized(x, size, mode, align_corners))


def _twice_vjp(b: Builder, at: Backward) -> Gradients:
    """Gradient of ``resize_nearest_2x``, computed as that of ``resize``."""
    x = at["x"]
    size = tuple(2 * n for n in x.shape[-2:])
    if not prod(x.shape):
        return {"x": b.filled(x.shape, b.dtype(x), 0.0, x)}
    return {"x": resize_gradient(b, at.dys[0], resized(x, size, "nearest"), b.dtype(x))}


@op(vjp=_twice_vjp)
def resize_nearest_2x(b: ProgramBuilder, x: Buffer) -> Buffer:
    """``x[..., i // 2, j // 2]``: images of twice the size, each element four times.

    Shapes
        ``x`` ``[..., H, W]``; the result ``[..., 2 H, 2 W]``.
    Dtypes
        ``x`` float32, bfloat16, float16 or float64, and so the result.
    Order
        Nothing is computed: it is one copy. The gradient is that of :func:`ptxgen.resize`.
        :func:`ptxgen.reference.resize_nearest_2x` returns the same bits.
    Errors
        ShapeError for less than two dimensions, DtypeError, OptionError, DeviceError, GradError or
        CompileError, before anything is launched or written.
    """
    check_dtype("x", x.dtype, FLOATS)
    if len(x.shape) < 2:
        raise ShapeError(f"x has shape {list(x.shape)}; takes [..., H, W]")
    *lead, h, w = x.shape
    spread = b.expand(b.reshape(x, (*lead, h, 1, w, 1)), (*lead, h, 2, w, 2))
    return b.reshape(b.copied(spread), (*lead, 2 * h, 2 * w))
