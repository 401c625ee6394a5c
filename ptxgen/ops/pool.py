"""Pooling: the largest or least element, mean, sum or product of windows of images, in 1 to 3
dimensions.

A window's elements are its taps. Tap j of all windows is a strided view of the image, and one
pointwise formula reads the views of all taps, ascending. Gradients are gathered: an image element
adds up the gradients of the windows that contain it, ascending. So nothing is added by atomics, and
a result depends on its own window alone.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from math import inf, prod
from typing import Annotated, Any

from ptxgen.errors import ShapeError
from ptxgen.numerics.formula import cast, const, primitive, where
from ptxgen.numerics.option import Bool, Integer, Integers, PerAxis
from ptxgen.ops.pointwise import Pointwise
from ptxgen.ops.views import check_dtype
from ptxgen.program.buffer import Buffer
from ptxgen.program.build import Builder, ProgramBuilder
from ptxgen.program.operation import Backward, Gradients, op

FLOATS = ("float32", "bfloat16", "float16", "float64")
TAPS_MAX = 32
"""Most elements of a window that one formula reads as views; larger windows are copied to rows."""
NUMBER_MAX, SIZE_MAX = (1 << 31) - 1, 1 << 16
"""Limits along a dimension. ``NUMBER_MAX``: largest window size, stride, padding or dilation.
``SIZE_MAX``: most windows of adaptive pooling.
"""
PIECE = 40
"""Largest number of arrays, one or two for each tap, that one launch of a pooling gradient adds;
longer sums take several launches.
"""
Window = Annotated[Any, Integers()]
Numbers = Annotated[Any, PerAxis(empty=True)]
Divisor = Annotated[int, Integer(0, NUMBER_MAX)]


# -- windows ----------------------------------------------------------------------------------
@dataclass(frozen=True)
class Axis:
    """Windows along one dimension of ``size`` elements: tap ``j < taps`` of window ``o < count`` is
    element ``o * step + j * dilation - before``. ``before``: padding before the image.

    ``even=False``: adaptive windows of different lengths, from ``floor(o * size / count)`` to
    before ``ceil((o + 1) * size / count)``; ``taps`` is then the greatest length.
    """

    size: int
    count: int
    taps: int
    step: int
    before: int = 0
    dilation: int = 1
    even: bool = True

    @property
    def after(self) -> int:
        """Elements of the last window beyond the end of the image."""
        last = (self.count - 1) * self.step + (self.taps - 1) * self.dilation + 1
        return max(last - self.before - self.size, 0)

    @property
    def covering(self) -> int:
        """Greatest number of windows whose first and last taps enclose one element."""
        if self.even:
            return (self.taps - 1) * self.dilation // self.step + 1
        o, n = self.count, self.size
        return max(-(-(i + 1) * o // n) - i * o // n for i in range(n))

    @property
    def rows(self) -> int:
        """Number of places where a window may begin: steps of ``step`` elements that cover the
        padding before the image and the image.
        """
        return -(-(self.size + self.before) // self.step)


def fixed(
    x: Any,
    window: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (),
    dilation: Sequence[int] = (),
    ceil: bool = False,
) -> tuple[Axis, ...]:
    """Returns the axes of windows of one size over the last dimensions of x; raises ShapeError."""
    rank = len(window)
    if not 1 <= rank <= 3 or len(x.shape) < rank:
        raise ShapeError(
            f"window is {list(window)}, x has shape {list(x.shape)}; takes 1 to 3 sizes, of the "
            "last dimensions of x"
        )
    given = {"stride": stride or window, "padding": padding or (0,), "dilation": dilation or (1,)}
    each = {}
    for name, numbers in given.items():
        if len(numbers) not in (1, rank):
            raise ShapeError(
                f"{name} is {list(numbers)}; takes one number, or {rank}, as window has"
            )
        each[name] = tuple(numbers) * (rank if len(numbers) == 1 else 1)
    for name, numbers in (("window", window), *each.items()):
        least = int(name != "padding")
        if min(numbers) < least or max(numbers) > NUMBER_MAX:
            raise ShapeError(f"{name} is {list(numbers)}; takes numbers from {least} to 2^31 - 1")
    found = []
    sizes = x.shape[len(x.shape) - rank :]
    for n, k, s, p, d in zip(sizes, window, *each.values(), strict=True):
        if 2 * p > k:
            raise ShapeError(
                f"padding is {list(each['padding'])}; takes at most half the window, {list(window)}"
            )
        span = n + 2 * p - (k - 1) * d - 1
        if span < 0 or n == 0:
            raise ShapeError(
                f"window is {list(window)}, dilation {list(each['dilation'])}: larger than the "
                f"padded image, of x of shape {list(x.shape)}"
            )
        count = (-(-span // s) if ceil else span // s) + 1
        if (count - 1) * s >= n + p:
            count -= 1  # begins in the image or before it
        found.append(Axis(n, count, k, s, p, d))
    return tuple(found)


def adapted(x: Any, size: Sequence[int]) -> tuple[Axis, ...]:
    """Returns the axes of adaptive pooling of x to ``size`` windows; raises ShapeError."""
    rank = len(size)
    if not 1 <= rank <= 3 or len(x.shape) < rank or not 1 <= min(size) <= max(size) <= SIZE_MAX:
        raise ShapeError(
            f"size is {list(size)}, x has shape {list(x.shape)}; takes 1 to 3 sizes from 1 to "
            f"{SIZE_MAX}, of the last dimensions of x"
        )
    found = []
    for n, o in zip(x.shape[len(x.shape) - rank :], size, strict=True):
        if n == 0:
            raise ShapeError(
                f"x has shape {list(x.shape)}, size is {list(size)}; takes no empty images"
            )
        if n % o == 0:
            found.append(Axis(n, o, n // o, n // o))
        else:
            taps = max(-(-(i + 1) * n // o) - i * n // o for i in range(o))
            found.append(Axis(n, o, taps, taps, even=False))
    return tuple(found)


# -- views of taps ------------------------------------------------------------------------------
def _floor(numerator: Any, denominator: Any) -> Any:
    """Formula ``floor(numerator / denominator)`` of non-negative integers, exact below 2^52."""
    half = (cast(numerator, "f64") + 0.5) / cast(denominator, "f64")
    return cast(primitive("floor", half), "i64")


_begin = Pointwise(lambda o, size, count: _floor(o * size, count), "window_begin")
_end = Pointwise(lambda o, size, count: _floor((o + 1) * size + count - 1, count), "window_end")
_inside = Pointwise(
    lambda low, high, j, other: where(low + j < high, low + j, where(other < 0, other, high - 1)),
    "window_tap",
)
_line = Pointwise(lambda o, step, before: o * step - before, "window_line")
_entered = Pointwise(
    lambda at, dilation: where(
        at < 0, at + _floor(where(at < 0, 0 - at, 0) + dilation - 1, dilation) * dilation, at
    ),
    "window_entered",
)


def _as_float(name: str, count: Callable[..., Any]) -> Mapping[str, Pointwise]:
    """Returns two pointwise functions that compute ``count``, a formula of integers, and convert
    its result to a float. Keys are the dtypes of the results, "float32" and "float64"; ``name`` is
    the name of both functions.
    """
    names = tuple(inspect.signature(count).parameters)
    return {
        wide: Pointwise(lambda to=to, **given: cast(count(**given), to), name, names)
        for wide, to in (("float32", "f32"), ("float64", "f64"))
    }


def _count(o: Any, step: Any, before: Any, taps: Any, low: Any, high: Any) -> Any:
    begin = o * step - before
    return primitive("min", begin + taps, high) - primitive("max", begin, low)


_inside_count = _as_float("window_held", _count)
_length = _as_float("window_length", lambda low, high: high - low)


def _ramp(b: Builder, count: int, like: Any) -> Any:
    """Returns the vector 0, 1 ... ``count - 1``, int64."""
    return b.cumsum(b.filled((count,), "int64", 1, like), exclusive=True)


def _broadcast_along(b: Builder, v: Any, axes: Sequence[Any], at: int) -> Any:
    """Reshapes vector ``v`` to broadcast along dimension ``axes[at]``, where ``axes`` are an
    array's last dimensions.
    """
    return b.reshape(v, (v.shape[0], *[1] * (len(axes) - 1 - at)))


def _ends(b: Builder, axis: Axis, like: Any) -> tuple[Any, Any]:
    """Returns the first element of each uneven window, and one past its last."""
    of = _ramp(b, axis.count, like)
    return tuple(b.call(f, of, axis.size, axis.count) for f in (_begin, _end))


def _gather_uneven(
    b: Builder, x: Any, low: Any, high: Any, most: int, other: int, axis: int
) -> Any:
    """Gathers the elements of ``x`` from ``low`` to before ``high`` of each window along ``axis``,
    one window after the other, and pads each window to ``most`` elements: with zeros if ``other``
    is -1, by repeating its last element if it is 0. ``low``, ``high``: vectors, one element a
    window.
    """
    j = b.reshape(_ramp(b, most, x), (1, most))
    low, high = (b.reshape(v, (v.shape[0], 1)) for v in (low, high))
    places = b.call(_inside, low, high, j, other)
    return b.gather(b.packed(x), b.reshape(places, (prod(places.shape),)), axis=axis)


def _taps(b: Builder, x: Any, axes: Sequence[Axis], outside: float) -> Any:
    """Returns ``x`` prepared such that each tap of all windows is a strided view: padded with
    ``outside`` and, along axes of uneven windows, with copies of the windows one after the other.
    """
    rank = len(axes)
    lead = len(x.shape) - rank
    widths = [(a.before, a.after) if a.even else (0, 0) for a in axes]
    if any(map(any, widths)):
        x = b.pad(x, ((0, 0),) * lead + tuple(widths), outside)
    for i, a in enumerate(axes):
        if not a.even:
            x = _gather_uneven(b, x, *_ends(b, a, x), a.taps, 0 if outside else -1, lead + i)
    return x


def _results(x: Buffer, axes: Sequence[Axis]) -> tuple[int, ...]:
    """Returns the shape of an array with one element for each window of ``x``."""
    return (*x.shape[: x.ndim - len(axes)], *(a.count for a in axes))


def _views(b: Builder, x: Any, axes: Sequence[Axis]) -> Iterator[Any]:
    """Yields a view of ``x``, which :func:`_taps` prepared, for each tap of the windows, ascending:
    it holds this tap of all windows.
    """
    lead = len(x.shape) - len(axes)
    for at in product(*(range(a.taps) for a in axes)):
        view = x
        for i, (k, a) in enumerate(zip(at, axes, strict=True)):
            view = b.narrow(view, lead + i, k * a.dilation, a.count, a.step)
        yield view


def windowed(
    b: ProgramBuilder,
    x: Buffer,
    axes: Sequence[Axis],
    out: Buffer | None = None,
) -> Buffer:
    """Copies windows to ``[..., *taps, *counts]``, in ``out`` if it is given, with 0 outside the
    images (``im2col``).
    """
    x = _taps(b, x, axes, 0)
    lead = x.ndim - len(axes)
    steps = list(zip(x.strides[lead:], axes, strict=True))
    shape = *x.shape[:lead], *(a.taps for a in axes), *(a.count for a in axes)
    by = *(s * a.dilation for s, a in steps), *(s * a.step for s, a in steps)
    return b.copied(x.laid(shape, (*x.strides[:lead], *by)), out)


def _as_rows(b: ProgramBuilder, x: Buffer, axes: Sequence[Axis]) -> Buffer:
    """Copies the windows to contiguous rows ``[..., *counts, taps]``."""
    lead = x.ndim - len(axes)
    steps = x.strides[lead:]
    shape = *x.shape[:lead], *(a.count for a in axes), *(a.taps for a in axes)
    by = [s * a.step for s, a in zip(steps, axes, strict=True)]
    within = [s * a.dilation for s, a in zip(steps, axes, strict=True)]
    found = b.copied(x.laid(shape, (*x.strides[:lead], *by, *within)))
    return b.reshape(found, (*found.shape[: x.ndim], prod(found.shape[x.ndim :])))


# -- the largest --------------------------------------------------------------------------------
def _numbered(what: str, function: Callable[..., Any]) -> Callable[[int], Pointwise]:
    """Returns a cached function that takes a number n and makes ``function`` a pointwise function
    of n arrays, named ``what`` and n.
    """

    @cache
    def made(count: int) -> Pointwise:
        names = tuple(f"x{i}" for i in range(count))
        return Pointwise(lambda **given: function(*given.values()), f"{what}{count}", names)

    return made


def _largest(*taps: Any, least: bool = False) -> Any:
    """Formula of the largest tap (the least if ``least``) and its index: the first of equal ones,
    the last of NaNs, and -1 if none is above -inf (below inf).
    """
    best, which = const(inf if least else -inf, taps[0].type), const(-1, "i32")
    for i, x in enumerate(taps):
        taken = (x < best if least else x > best) | (x != x)
        best, which = where(taken, x, best), where(taken, const(i, "i32"), which)
    return best, which


_max, _min = _numbered("largest", _largest), _numbered("least", partial(_largest, least=True))
_nan_at = Pointwise(lambda x, at: where(x != x, at, -1), "nan_at")
_index_of_first = Pointwise(
    lambda best, first, nan, beyond: where(
        cast(nan, "i64") >= 0, cast(nan, "i64"), where(best != beyond, cast(first, "i64"), -1)
    ),
    "which",
)
"""Formula of the index of a window's largest or least tap, of its index by argmax or argmin, and
that of its last NaN (or -1): -1 if ``best`` is ``beyond``, which padding holds.
"""


@cache
def _tap_index(rank: int) -> Pointwise:
    """Returns the formula that turns ``which``, the number of a tap in its window of ``rank``
    dimensions, into the tap's index in the flattened image. A negative number stands for the
    window's first element within the image. For each dimension it takes the index of the window's
    first tap (``begin``), those of its first and last elements within the image (``first``,
    ``last``), the image's ``size``, and the window's ``taps`` and ``dilation``.
    """
    names = ("begin", "first", "last", "size", "taps", "dilation")
    arguments = ("which", *(f"{n}{i}" for i in range(rank) for n in names))

    def function(which: Any, **given: Any) -> Any:
        which = cast(which, "i64")
        rest, found = where(which < 0, 0, which), None
        digits = []
        for i in reversed(range(rank)):
            taps = given[f"taps{i}"]
            digits.append(rest - _floor(rest, taps) * taps)
            rest = _floor(rest, taps)
        for i, digit in enumerate(reversed(digits)):
            begin, first, last, size, _, dilation = (given[f"{n}{i}"] for n in names)
            at = where(which < 0, first, primitive("min", begin + digit * dilation, last))
            found = at if found is None else found * size + at
        return found

    return Pointwise(function, "window_place", arguments)


_largest_alone = _numbered("largest_alone", lambda *taps: _largest(*taps)[0])


def largest(b: ProgramBuilder, x: Buffer, axes: Sequence[Axis]) -> Buffer:
    """Returns the largest element of each window."""
    check_dtype("x", x.dtype, FLOATS)
    shape = _results(x, axes)
    if b.abstract or not prod(shape):
        return b.result(shape, x.dtype)
    spread, taps = _taps(b, x, axes, -inf), prod(a.taps for a in axes)
    if taps > TAPS_MAX:
        found: Buffer = b.amax(_as_rows(b, spread, axes), axis=-1)
        return found
    found = b.call(_largest_alone(taps), *_views(b, spread, axes), out_dtype=x.dtype)
    return found


def _pooled(
    b: ProgramBuilder, x: Buffer, axes: Sequence[Axis], least: bool = False
) -> tuple[Buffer, Buffer]:
    """Returns the largest element of each window, or the least, and its flat index in the image."""
    check_dtype("x", x.dtype, FLOATS)
    shape = _results(x, axes)
    if b.abstract or not prod(shape):
        return b.result(shape, x.dtype), b.result(shape, "int64")
    outside = inf if least else -inf
    spread = _taps(b, x, axes, outside)
    taps = prod(a.taps for a in axes)
    if taps <= TAPS_MAX:
        given, function = tuple(_views(b, spread, axes)), (_min if least else _max)(taps)
        best, which = b.call(function, *given, out_dtype=(x.dtype, "int32"))
    else:
        rows = _as_rows(b, spread, axes)
        value, index = (b.amin, b.argmin) if least else (b.amax, b.argmax)
        best, first = value(rows, axis=-1), index(rows, axis=-1)
        nan = b.amax(b.call(_nan_at, rows, _ramp(b, taps, x), out_dtype="int64"), axis=-1)
        which = b.call(_index_of_first, best, first, nan, outside)
    numbers: list[Any] = []
    for i, a in enumerate(axes):
        if a.even:
            begin = b.call(_line, _ramp(b, a.count, x), a.step, a.before)
            first, last = b.call(_entered, begin, a.dilation), a.size
        else:
            begin, end = _ends(b, a, x)
            first, last = begin, b.sub(end, 1)
        facing = (
            v if isinstance(v, int) else _broadcast_along(b, v, axes, i)
            for v in (begin, first, last)
        )
        numbers += [*facing, a.size, a.taps, a.dilation]
    return best, b.call(_tap_index(len(axes)), which, *numbers, out_dtype="int64")


# -- sums ---------------------------------------------------------------------------------------
def _plus(*taps: Any) -> Any:
    total = taps[0]
    for x in taps[1:]:
        total = total + x
    return total


_sum = _numbered("sum", _plus)


def _sum_where(*given: Any) -> Any:
    """Formula ``sum(dy where index == place)``: the gradient of max pooling by the image element
    with flat index ``place``. Arguments: place, then dy and index, the flat index of the largest
    element, of each window around it.
    """
    place, *pairs = given
    pair = zip(pairs[::2], pairs[1::2], strict=True)
    return _plus(*(where(at == place, dy, 0) for dy, at in pair))


def _add_where(*given: Any) -> Any:
    """Formula ``total + sum(dy where index == place)``, of arguments (total, place, dy, index, dy,
    index ...): continues :func:`_sum_where` in a further launch.
    """
    total, place, *pairs = given
    pair = zip(pairs[::2], pairs[1::2], strict=True)
    return _plus(total, *(where(at == place, dy, 0) for dy, at in pair))


_first_where, _next_where = _numbered("own", _sum_where), _numbered("own_more", _add_where)


def _total(b: Builder, taps: Sequence[Sequence[Any]], place: Any, dtype: str, wide: str) -> Any:
    """Adds ``taps`` in ascending order, with running totals in dtype ``wide`` if that takes several
    launches, and rounds once to ``dtype``. A tap is a tuple of one array; or with ``place``, the
    flat indices of the image elements, of dy and index, where dy counts if ``index == place``.
    """
    total, piece = None, PIECE // len(taps[0])
    for start in range(0, len(taps), piece):
        part = [x for pair in taps[start : start + piece] for x in pair]
        last = start + piece >= len(taps)
        given = ([] if total is None else [total]) + ([] if place is None else [place]) + part
        if place is None:
            function = _sum(len(given))
        else:
            function = (_first_where if total is None else _next_where)(len(given))
        total = b.call(function, *given, out_dtype=dtype if last else wide)
    return total


@cache
def _shared_sum(taps: int, rank: int) -> Pointwise:
    """Returns the formula of the sum of ``taps`` taps, divided by ``rank`` element counts."""
    names = *(f"x{i}" for i in range(taps)), *(f"n{i}" for i in range(rank))

    def function(**given: Any) -> Any:
        values = list(given.values())
        return _shared(_plus(*values[:taps]), values[taps:])

    return Pointwise(function, f"mean{taps}", names)


def _shared(x: Any, counts: Iterable[Any]) -> Any:
    return x / cast(prod(counts), x.type)


_divided = {
    n: Pointwise(lambda x, **by: _shared(x, by.values()), "shared",
                 ("x", *(f"n{i}" for i in range(n))))
    for n in (1, 2, 3)
}  # fmt: skip
"""``_divided[n]`` divides a window's sum by the product of its n element counts."""


def _counts(b: Builder, axes: Sequence[Axis], padded: bool, divisor: int, like: Any) -> list[Any]:
    """Returns for each dimension the element counts by which windows' sums are divided: a scalar,
    or an array with one a window. ``padded``: padding counts, too; ``divisor``: replaces the
    product of the counts if not 0; ``like``: array whose dtype decides that of the counts.
    """
    if divisor:
        return [float(divisor), *[1.0] * (len(axes) - 1)]
    found: list[Any] = []
    for i, a in enumerate(axes):
        beyond = a.before if padded else 0
        if not a.even:
            counts = b.call(_length[b.wide(like)], *_ends(b, a, like))
        elif a.after <= beyond and (padded or not a.before):
            found.append(float(a.taps))
            continue
        else:
            how = a.step, a.before, a.taps, -beyond, a.size + beyond
            counts = b.call(_inside_count[b.wide(like)], _ramp(b, a.count, like), *how)
        found.append(_broadcast_along(b, counts, axes, i))
    return found


def _mean(
    b: ProgramBuilder, x: Buffer, axes: Sequence[Axis], padded: bool = True, divisor: int = 0
) -> Buffer:
    """Returns the mean of each window: the sum of its elements divided by their count."""
    check_dtype("x", x.dtype, FLOATS)
    shape = _results(x, axes)
    if b.abstract or not prod(shape):
        return b.result(shape, x.dtype)
    spread = _taps(b, x, axes, 0.0)
    taps = prod(a.taps for a in axes)
    counts = _counts(b, axes, padded, divisor, x)
    if taps <= TAPS_MAX:
        formula, given = _shared_sum(taps, len(axes)), [*_views(b, spread, axes)]
    else:
        formula = _divided[len(axes)]
        given = [b.sum(_as_rows(b, spread, axes), axis=-1, out_dtype=b.wide(x))]
    found: Buffer = b.call(formula, *given, *counts, out_dtype=x.dtype)
    return found


# -- products -----------------------------------------------------------------------------------
def _times(*taps: Any) -> Any:
    total = taps[0]
    for x in taps[1:]:
        total = total * x
    return total


_product = _numbered("product", _times)


# -- gradients ----------------------------------------------------------------------------------
def _gathered(b: Builder, given: Sequence[Any], axes: Sequence[Axis]) -> list[list[Any]]:
    """Spreads the arrays ``given``, of one element a window, to the elements of the image. Returns
    a list of views, one for each array, for each k: they hold at each image element the value of
    the k-th window around it, ascending. Where there is no such window, that of the first array is
    0. Each image dimension is two dimensions, as :func:`_phases` splits it.
    """
    rank = len(axes)
    lead = len(given[0].shape) - rank
    spread = []
    for which, x in enumerate(given):
        beyond = -1 if which else 0
        widths = [(a.covering - 1, a.rows - a.count) if a.even else (0, 0) for a in axes]
        if any(map(any, widths)):
            x = b.pad(x, ((0, 0),) * lead + tuple(widths), beyond)
        for i, a in enumerate(axes):
            if not a.even:
                of = _ramp(b, a.size, x)
                low, high = (b.call(f, of, a.count, a.size) for f in (_begin, _end))
                x = _gather_uneven(b, x, low, high, a.covering, -1, lead + i)
        spread.append(x)
    found = []
    for at in product(*(range(a.covering) for a in axes)):
        views = []
        for x in spread:
            shape = list(x.shape[:lead])
            for i, (j, a) in enumerate(zip(at, axes, strict=True)):
                if a.even:
                    x = b.narrow(x, lead + i, j, a.rows)
                    shape += [a.rows, 1]
                else:
                    x = b.narrow(x, lead + i, j, a.size, a.covering)
                    shape += [a.size, 1]
            views.append(b.reshape(x, shape))
        found.append(views)
    return found


def _phases(axes: Sequence[Axis]) -> list[tuple[int, int]]:
    """Returns, for each image dimension, the two dimensions into which the image and the padding
    before it are split in a pooling gradient: (number of steps, elements per step), where a step is
    the windows' stride. Uneven windows: (size, 1).
    """
    return [(a.rows, a.step) if a.even else (a.size, 1) for a in axes]


_flat = Pointwise(lambda place, at, size: place * size + at, "flat_place")


def _flat_indices(b: Builder, axes: Sequence[Axis], like: Any) -> Any:
    """Returns the int64 index of each element in its flattened image; each dimension of the image
    is two dimensions, as :func:`_phases` splits it. ``like``: an array on the same device.
    """
    found, rank = None, len(axes)
    for i, (a, (rows, within)) in enumerate(zip(axes, _phases(axes), strict=True)):
        at = b.call(_line, _ramp(b, rows * within, like), 1, a.before if a.even else 0)
        at = b.reshape(at, (rows, within, *[1] * (2 * (rank - 1 - i))))
        found = at if found is None else b.call(_flat, found, at, a.size)
    return found


def _image(b: Builder, found: Any, axes: Sequence[Axis]) -> Any:
    """Returns the gradient of images, without padding, from ``found``, in which each image
    dimension is two dimensions, as :func:`_phases` splits it.
    """
    lead = len(found.shape) - 2 * len(axes)
    shape = [rows * within for rows, within in _phases(axes)]
    x = b.reshape(found, (*found.shape[:lead], *shape))
    for i, a in enumerate(axes):
        if shape[i] != a.size:
            x = b.narrow(x, lead + i, a.before, a.size)
    return x


_within = Pointwise(
    lambda dy, at, start, taps: where(
        cast(at, "f64") + cast(start, "f64") < cast(taps, "f64"), dy, 0
    ),
    "within",
)
"""Formula of ``dy`` if ``at + start < taps``, else 0: the gradient that an image element has from
one window. The image is split into steps as long as the windows' stride. ``at``: index of the
element in its step; ``start``: how many elements before that step the window of ``taps`` elements
begins.
"""


def mean_gradient(
    b: Builder, dy: Any, axes: Sequence[Axis], dtype: str, padded: bool = True, divisor: int = 0
) -> Any:
    """Gradient of a mean: each element sums ``dy / n`` of the windows that contain it. n counts a
    window's elements, with padding if ``padded``; or is ``divisor``, if that is not 0.
    """
    wide, rank = b.wide(dy), len(axes)
    counts = _counts(b, axes, padded, divisor, dy)
    each = b.call(_divided[rank], dy, *counts, out_dtype=wide)
    order = product(*(range(a.covering) for a in axes))
    taps = []
    for at, (view,) in zip(order, _gathered(b, [each], axes), strict=True):
        for i, (j, a) in enumerate(zip(at, axes, strict=True)):
            start = (a.covering - 1 - j) * a.step
            if a.even and start + a.step > a.taps:
                ramp = b.reshape(_ramp(b, a.step, dy), (a.step, *[1] * (2 * (rank - 1 - i))))
                view = b.call(_within, view, ramp, start, a.taps, out_dtype=wide)
        taps.append([view])
    found = _total(b, taps, None, dtype, wide)
    shape = (*dy.shape[: len(dy.shape) - rank], *(n for pair in _phases(axes) for n in pair))
    return _image(b, b.expand(found, shape), axes)


def max_gradient(b: Builder, dy: Any, indices: Any, axes: Sequence[Axis], dtype: str) -> Any:
    """Gradient of a maximum: each element sums ``dy`` of the windows whose largest it is.
    ``indices``: the largest element of each window, as an index into the flattened image.
    """
    taps = _gathered(b, [dy, indices], axes)
    found = _total(b, taps, _flat_indices(b, axes, dy), dtype, b.wide(dy))
    return _image(b, found, axes)


def overlapped(b: Builder, windows: Any, axes: Sequence[Axis], dtype: str) -> Any:
    """Adds windows ``[..., *taps, *counts]`` up to images where they overlap (``fold``,
    ``col2im``).

    An image element adds its values in the windows that contain it, in their order, and is rounded
    once.
    """
    rank = len(axes)
    lead = len(windows.shape) - 2 * rank
    x, reach, rows = windows, [], []
    for i, a in enumerate(axes):
        tap, window = lead + i, lead + rank + i
        if a.dilation > 1:  # zeros between taps
            x = _padded(b, b.unsqueeze(x, tap + 1), tap + 1, 0, a.dilation - 1)
            x = b.reshape(x, (*x.shape[:tap], a.taps * a.dilation, *x.shape[tap + 2 :]))
        reach.append(-(-x.shape[tap] // a.step))  # windows that an element may lie in
        rows.append(max(a.rows, a.count))
        x = _padded(b, x, tap, 0, reach[i] * a.step - x.shape[tap])
        x = _padded(b, x, window, reach[i] - 1, rows[i] - a.count)
    taps = []
    for at in product(*map(range, reach)):
        view = x
        for i, (first, a) in enumerate(zip(at, axes, strict=True)):
            view = b.narrow(view, lead + i, (reach[i] - 1 - first) * a.step, a.step)
            view = b.narrow(view, lead + rank + i, first, rows[i])
        taps.append([view])
    total = _total(b, taps, None, dtype, b.wide(windows))
    order = [*range(lead), *(d for i in range(rank) for d in (lead + rank + i, lead + i))]
    sizes = (n * a.step for n, a in zip(rows, axes, strict=True))
    image = b.reshape(b.permute(total, order), (*windows.shape[:lead], *sizes))
    for i, a in enumerate(axes):
        image = b.narrow(image, lead + i, a.before, a.size)
    return image


def _padded(b: Builder, x: Any, axis: int, low: int, high: int) -> Any:
    """Pads ``x`` with zeros along one axis: ``low`` before it, ``high`` after."""
    if not low and not high:
        return x
    return b.pad(x, [(low, high) if i == axis else (0, 0) for i in range(len(x.shape))], 0)


# -- operations ---------------------------------------------------------------------------------
_HOW = ("window", "stride", "padding", "dilation", "ceil")


def _fixed_of(at: Backward) -> tuple[Axis, ...]:
    given = (at.options[n] for n in _HOW if n in at.options)
    if "dilation" in at.options:
        return fixed(at["x"], *given)
    window, stride, padding, ceil = given
    return fixed(at["x"], window, stride, padding, (), ceil)


def _max_vjp(b: Builder, at: Backward) -> Gradients:
    """Gradient of max pooling: each element sums ``dy`` of the windows whose largest it is."""
    axes = adapted(at["x"], at.options["size"]) if "size" in at.options else _fixed_of(at)
    x = at["x"]
    if not prod(at.results[1].shape):
        return {"x": b.filled(x.shape, b.dtype(x), 0.0, x)}
    return {"x": max_gradient(b, at.dys[0], at.results[1], axes, b.dtype(x))}


def _sum_vjp(b: Builder, at: Backward) -> Gradients:
    """Gradient of sum pooling: each element sums ``dy`` of the windows around it."""
    x, dy = at["x"], at.dys[0]
    if not prod(dy.shape):
        return {"x": b.filled(x.shape, b.dtype(x), 0.0, x)}
    return {"x": mean_gradient(b, dy, _fixed_of(at), b.dtype(x), divisor=1)}


def _prod_vjp(b: Builder, at: Backward) -> Gradients:
    """Gradient of product pooling: each element sums, over the windows around it, ``dy`` times the
    product of the window's other elements.
    """
    x, dy, axes = at["x"], at.dys[0], _fixed_of(at)
    rank = len(axes)
    if not prod(dy.shape):
        return {"x": b.filled(x.shape, b.dtype(x), 0.0, x)}
    spread = _taps(b, b.cast(x, b.wide(x)), axes, 1.0)
    size = spread.shape[len(spread.shape) - rank :]
    how = {"window": tuple(a.taps for a in axes), "stride": tuple(a.step for a in axes)}
    how["dilation"] = tuple(a.dilation for a in axes)
    columns = b.im2col(b.reshape(spread, (-1, 1, *size)), **how)
    rows = b.packed(b.transpose(columns))
    each = b.packed(b.reshape(b.cast(dy, b.wide(x)), rows.shape[:-1]))
    found = b.transpose(b.rows("prod_backward", rows, each))
    found = b.cast(b.col2im(found, size, **how), b.dtype(x))
    found = b.reshape(found, spread.shape)
    for i, a in enumerate(axes, len(x.shape) - rank):
        found = b.narrow(found, i, a.before, a.size)
    return {"x": found}


def _mean_vjp(b: Builder, at: Backward) -> Gradients:
    """Gradient of mean pooling: each element sums ``dy / size`` of the windows around it."""
    axes = adapted(at["x"], at.options["size"]) if "size" in at.options else _fixed_of(at)
    x, dy = at["x"], at.dys[0]
    if not prod(dy.shape):
        return {"x": b.filled(x.shape, b.dtype(x), 0.0, x)}
    how = {n: at.options[o] for n, o in (("padded", "count_padding"), ("divisor", "divisor"))
           if o in at.options}  # fmt: skip
    return {"x": mean_gradient(b, dy, axes, b.dtype(x), **how)}


@op(vjp=_max_vjp, results=("values", "indices"))
def max_pool(
    b: ProgramBuilder,
    x: Buffer,
    window: Window,
    *,
    stride: Numbers = (),
    padding: Numbers = (),
    dilation: Numbers = (),
    ceil: Bool = False,
) -> tuple[Buffer, Buffer]:
    """``max(x[window])`` of each window, and its flat index in its image.

    Shapes
        ``x`` ``[..., *]``; ``window`` has a size for each of the 1 to 3 image dimensions; both
        results have as many elements along each as there are windows. ``stride`` is by default the
        window, ``padding`` 0, ``dilation`` 1; each is an integer, or one a dimension. ``ceil``: a
        last window may reach beyond the padding, if it begins before the image ends.
    Dtypes
        ``x`` float32, bfloat16, float16 or float64, and so the values; the indices are int64, into
        the flattened image.
    Order
        Nothing is added. The first of equal elements is taken; a NaN before all numbers, of several
        NaNs the last, as in PyTorch. Padding is never taken. A window's result depends on that
        window alone. :func:`ptxgen.reference.max_pool` returns the same.
    Errors
        ShapeError for a window larger than the padded image, a padding over half the window, sizes
        below 1 and other ranks; DtypeError, OptionError, DeviceError, GradError or
        CompileError, before anything is launched or written.
    """
    return _pooled(b, x, fixed(x, window, stride, padding, dilation, ceil))


@op(vjp=_max_vjp, results=("values", "indices"))
def min_pool(
    b: ProgramBuilder,
    x: Buffer,
    window: Window,
    *,
    stride: Numbers = (),
    padding: Numbers = (),
    dilation: Numbers = (),
    ceil: Bool = False,
) -> tuple[Buffer, Buffer]:
    """``min(x[window])`` of each window, and its flat index in its image.

    Shapes
        As of :func:`ptxgen.max_pool`.
    Dtypes
        As of :func:`ptxgen.max_pool`.
    Order
        Nothing is added. The first of equal elements is taken; a NaN before all numbers, of several
        NaNs the last. Padding is never taken. A window's result depends on that window alone.
        :func:`ptxgen.reference.min_pool` returns the same.
    Errors
        As of :func:`ptxgen.max_pool`: ShapeError, DtypeError, OptionError, DeviceError, GradError
        or CompileError, before anything is launched or written.
    """
    return _pooled(b, x, fixed(x, window, stride, padding, dilation, ceil), least=True)


@op(vjp=_mean_vjp)
def avg_pool(
    b: ProgramBuilder,
    x: Buffer,
    window: Window,
    *,
    stride: Numbers = (),
    padding: Numbers = (),
    ceil: Bool = False,
    count_padding: Bool = True,
    divisor: Divisor = 0,
) -> Buffer:
    """``sum(x[window]) / n`` of each window.

    Shapes
        As of :func:`ptxgen.max_pool`, without dilation.
    Dtypes
        ``x`` float32, bfloat16, float16 or float64, and so the result.
    Order
        Contract ``pointwise/1``: up to 32 elements of a window are added ascending, more as a row
        of ``rows/1``, in f32 (f64 of float64); the padding is +0.0. The sum is divided by n and
        rounded to the dtype. A window's result depends on that window alone.
        :func:`ptxgen.reference.avg_pool` returns the same bits.
    Options
        n is the size of the window within the padding, or within the image
        (``count_padding=False``), or ``divisor``, if that is not 0.
    Errors
        As of :func:`ptxgen.max_pool`: ShapeError, DtypeError, OptionError, DeviceError, GradError
        or CompileError, before anything is launched or written.
    """
    axes = fixed(x, window, stride, padding, (), ceil)
    return _mean(b, x, axes, count_padding, divisor)


@op(vjp=_sum_vjp)
def sum_pool(
    b: ProgramBuilder,
    x: Buffer,
    window: Window,
    *,
    stride: Numbers = (),
    padding: Numbers = (),
    ceil: Bool = False,
) -> Buffer:
    """``sum(x[window])`` of each window.

    Shapes
        As of :func:`ptxgen.max_pool`, without dilation.
    Dtypes
        ``x`` float32, bfloat16, float16 or float64, and so the result.
    Order
        The sum of :func:`ptxgen.avg_pool`, rounded to the dtype: the bits of ``avg_pool`` with
        ``divisor=1``. :func:`ptxgen.reference.sum_pool` returns the same bits.
    Errors
        As of :func:`ptxgen.max_pool`: ShapeError, DtypeError, OptionError, DeviceError, GradError
        or CompileError, before anything is launched or written.
    """
    return _mean(b, x, fixed(x, window, stride, padding, (), ceil), divisor=1)


@op(vjp=_prod_vjp)
def prod_pool(
    b: ProgramBuilder,
    x: Buffer,
    window: Window,
    *,
    stride: Numbers = (),
    padding: Numbers = (),
    dilation: Numbers = (),
    ceil: Bool = False,
) -> Buffer:
    """``prod(x[window])`` of each window.

    Shapes
        As of :func:`ptxgen.max_pool`.
    Dtypes
        ``x`` float32, bfloat16, float16 or float64, and so the result.
    Order
        Contract ``pointwise/1``: up to 32 elements of a window are multiplied ascending, more as a
        row of ``rows/1``, in f32 (f64 of float64); the padding is 1. The product is rounded to the
        dtype. A window's result depends on that window alone. In its gradient each window is a row
        of ``prod``'s; they are added as by :func:`ptxgen.col2im`, and rounded once.
        :func:`ptxgen.reference.prod_pool` returns the same bits.
    Errors
        As of :func:`ptxgen.max_pool`: ShapeError, DtypeError, OptionError, DeviceError, GradError
        or CompileError, before anything is launched or written.
    """
    check_dtype("x", x.dtype, FLOATS)
    axes = fixed(x, window, stride, padding, dilation, ceil)
    shape, taps = _results(x, axes), prod(a.taps for a in axes)
    if b.abstract or not prod(shape):
        return b.result(shape, x.dtype)
    spread = _taps(b, x, axes, 1.0)
    if taps > TAPS_MAX:
        found: Buffer = b.prod(_as_rows(b, spread, axes), axis=-1, out_dtype=x.dtype)
        return found
    found = b.call(_product(taps), *_views(b, spread, axes), out_dtype=x.dtype)
    return found


@op(vjp=_max_vjp, results=("values", "indices"))
def adaptive_max_pool(b: ProgramBuilder, x: Buffer, size: Window) -> tuple[Buffer, Buffer]:
    """``max(x[window])`` of ``size`` windows, and its flat index in its image.

    Window i of o along a dimension of n begins at ``floor(i n / o)`` and ends before
    ``ceil((i + 1) n / o)``.

    Shapes
        ``x`` ``[..., *]``; ``size`` has an integer for each of the 1 to 3 image dimensions; both
        results ``[..., *size]``.
    Dtypes
        As of :func:`ptxgen.max_pool`.
    Order
        As of :func:`ptxgen.max_pool`. :func:`ptxgen.reference.adaptive_max_pool` returns the same.
    Errors
        ShapeError for other ranks, no windows or no elements; DtypeError, OptionError, DeviceError,
        GradError or CompileError, before anything is launched or written.
    """
    return _pooled(b, x, adapted(x, size))


@op(vjp=_mean_vjp)
def adaptive_avg_pool(b: ProgramBuilder, x: Buffer, size: Window) -> Buffer:
    """``mean(x[window])`` of ``size`` windows, which are those of
    :func:`ptxgen.adaptive_max_pool`.

    Shapes
        ``x`` ``[..., *]``; ``size`` has an integer for each of the 1 to 3 image dimensions; the
        result ``[..., *size]``.
    Dtypes
        As of :func:`ptxgen.avg_pool`.
    Order
        As of :func:`ptxgen.avg_pool`; shorter windows are padded with +0.0 to the length of the
        longest. :func:`ptxgen.reference.adaptive_avg_pool` returns the same bits.
    Errors
        As of :func:`ptxgen.adaptive_max_pool`: ShapeError, DtypeError, OptionError, DeviceError,
        GradError or CompileError, before anything is launched or written.
    """
    return _mean(b, x, adapted(x, size))
