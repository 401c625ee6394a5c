"""Pooling: the largest, or the mean, of windows of images, in 1 to 3 dimensions.

A window's elements are taps: views of the image, each as far apart as windows are. One pointwise
formula takes them in ascending order. Gradients are gathered: an element of an image adds up what
the windows that it lies in have for it, ascending. So nothing is added by atomics, and a result
depends on its own window alone.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
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
"""Elements of a window up to which one formula takes them; more are a row."""
NUMBER_MAX, SIZE_MAX = (1 << 31) - 1, 1 << 16
"""Bounds: of a window's numbers (size, stride ...), and of adaptive windows along a dimension."""
PIECE = 40
"""Most arrays of taps that one launch of a gradient reads."""
Window = Annotated[Any, Integers()]
Numbers = Annotated[Any, PerAxis(empty=True)]
Divisor = Annotated[int, Integer(0, NUMBER_MAX)]


# -- where windows lie -------------------------------------------------------------------------
@dataclass(frozen=True)
class Axis:
    """The windows along one dimension: ``count`` of ``taps`` elements, ``step`` apart from window
    to window and ``dilation`` within one, the first of them ``before`` elements outside. ``even``:
    whether they are such; others begin at ``floor(o * size / count)`` and end before
    ``ceil((o + 1) * size / count)``, and ``taps`` is what the longest has.
    """

    size: int
    count: int
    taps: int
    step: int
    before: int = 0
    dilation: int = 1
    even: bool = True

    @property
    def behind(self) -> int:
        """Elements by which the last window reaches beyond the image."""
        last = (self.count - 1) * self.step + (self.taps - 1) * self.dilation + 1
        return max(last - self.before - self.size, 0)

    @property
    def covering(self) -> int:
        """The most windows that an element lies in, or lies between the ends of."""
        if self.even:
            return (self.taps - 1) * self.dilation // self.step + 1
        o, n = self.count, self.size
        return max(-(-(i + 1) * o // n) - i * o // n for i in range(n))

    @property
    def rows(self) -> int:
        """Windows that could begin in the image or in the padding before it."""
        return -(-(self.size + self.before) // self.step)


def fixed(
    x: Any,
    window: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (),
    dilation: Sequence[int] = (),
    ceil: bool = False,
) -> tuple[Axis, ...]:
    """Axes of windows of one size. Raises ShapeError for sizes that do not fit."""
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
        room = n + 2 * p - (k - 1) * d - 1
        if room < 0 or n == 0:
            raise ShapeError(
                f"window is {list(window)}, dilation {list(each['dilation'])}: larger than the "
                f"padded image, of x of shape {list(x.shape)}"
            )
        count = (-(-room // s) if ceil else room // s) + 1
        if (count - 1) * s >= n + p:
            count -= 1  # begins in the image or before it
        found.append(Axis(n, count, k, s, p, d))
    return tuple(found)


def adapted(x: Any, size: Sequence[int]) -> tuple[Axis, ...]:
    """Axes of adaptive pooling to ``size`` windows. Raises ShapeError for sizes that do not fit."""
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


# -- what lies there ----------------------------------------------------------------------------
def _floor(numerator: Any, denominator: Any) -> Any:
    """``floor(numerator / denominator)`` of non-negative integers, exact below 2^52."""
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
    """A count by the dtype that it is computed in."""
    names = tuple(inspect.signature(count).parameters)
    return {
        wide: Pointwise(lambda to=to, **given: cast(count(**given), to), name, names)
        for wide, to in (("float32", "f32"), ("float64", "f64"))
    }


def _count(o: Any, step: Any, before: Any, taps: Any, low: Any, high: Any) -> Any:
    begin = o * step - before
    return primitive("min", begin + taps, high) - primitive("max", begin, low)


_held = _as_float("window_held", _count)
_length = _as_float("window_length", lambda low, high: high - low)


def _ramp(b: Builder, count: int, like: Any) -> Any:
    """The vector 0, 1 ... ``count - 1``, int64."""
    return b.cumsum(b.filled((count,), "int64", 1, like), exclusive=True)


def _facing(b: Builder, v: Any, axes: Sequence[Any], at: int) -> Any:
    """Vector ``v`` as a view along the ``at``-th of the last dimensions."""
    return b.reshape(v, (v.shape[0], *[1] * (len(axes) - 1 - at)))


def _ends(b: Builder, axis: Axis, like: Any) -> tuple[Any, Any]:
    """First element of each uneven window, and the element behind its last."""
    of = _ramp(b, axis.count, like)
    return tuple(b.call(f, of, axis.size, axis.count) for f in (_begin, _end))


def _spread(b: Builder, x: Any, low: Any, high: Any, most: int, other: int, axis: int) -> Any:
    """Gathers the elements from ``low`` to ``high`` of each uneven window along ``axis``, ``most``
    a window: missing ones repeat the last, or are 0 where ``other`` is -1.
    """
    j = b.reshape(_ramp(b, most, x), (1, most))
    low, high = (b.reshape(v, (v.shape[0], 1)) for v in (low, high))
    places = b.call(_inside, low, high, j, other)
    return b.gather(b.packed(x), b.reshape(places, (prod(places.shape),)), axis=axis)


def _taps(b: Builder, x: Any, axes: Sequence[Axis], outside: float) -> Any:
    """``x`` padded and gathered so that views reach all taps; ``outside``: the value of padding."""
    rank = len(axes)
    lead = len(x.shape) - rank
    widths = [(a.before, a.behind) if a.even else (0, 0) for a in axes]
    if any(map(any, widths)):
        x = b.pad(x, ((0, 0),) * lead + tuple(widths), outside)
    for i, a in enumerate(axes):
        if not a.even:
            x = _spread(b, x, *_ends(b, a, x), a.taps, 0 if outside else -1, lead + i)
    return x


def _results(x: Buffer, axes: Sequence[Axis]) -> tuple[int, ...]:
    """The shape of an array with a number for each window."""
    return (*x.shape[: x.ndim - len(axes)], *(a.count for a in axes))


def _views(b: Builder, x: Any, axes: Sequence[Axis]) -> Iterator[Any]:
    """Yields views of each tap of all windows, ascending."""
    lead = len(x.shape) - len(axes)
    for at in product(*(range(a.taps) for a in axes)):
        view = x
        for i, (k, a) in enumerate(zip(at, axes, strict=True)):
            view = b.narrow(view, lead + i, k * a.dilation, a.count, a.step)
        yield view


def windowed(b: ProgramBuilder, x: Buffer, axes: Sequence[Axis]) -> Buffer:
    """``[..., *taps, *counts]``: each tap of all windows, 0 outside of the images (``unfold``)."""
    x = _taps(b, x, axes, 0)
    lead = x.ndim - len(axes)
    steps = list(zip(x.strides[lead:], axes, strict=True))
    shape = *x.shape[:lead], *(a.taps for a in axes), *(a.count for a in axes)
    by = *(s * a.dilation for s, a in steps), *(s * a.step for s, a in steps)
    return b.copied(x.laid(shape, (*x.strides[:lead], *by)))


def _as_rows(b: ProgramBuilder, x: Buffer, axes: Sequence[Axis]) -> Buffer:
    """The windows as rows, copied one behind the other."""
    lead = x.ndim - len(axes)
    steps = x.strides[lead:]
    shape = *x.shape[:lead], *(a.count for a in axes), *(a.taps for a in axes)
    by = [s * a.step for s, a in zip(steps, axes, strict=True)]
    within = [s * a.dilation for s, a in zip(steps, axes, strict=True)]
    found = b.copied(x.laid(shape, (*x.strides[:lead], *by, *within)))
    return b.reshape(found, (*found.shape[: x.ndim], prod(found.shape[x.ndim :])))


# -- the largest --------------------------------------------------------------------------------
def _numbered(what: str, function: Callable[..., Any]) -> Callable[[int], Pointwise]:
    """Returns a cached maker of pointwise functions of ``count`` arrays."""

    @cache
    def made(count: int) -> Pointwise:
        names = tuple(f"x{i}" for i in range(count))
        return Pointwise(lambda **given: function(*given.values()), f"{what}{count}", names)

    return made


def _largest(*taps: Any) -> Any:
    """The largest, and which it is: of equal ones the first, of NaN the last; -1 for none above
    -inf.
    """
    best, which = const(-inf, taps[0].type), const(-1, "i32")
    for i, x in enumerate(taps):
        taken = (x > best) | (x != x)
        best, which = where(taken, x, best), where(taken, const(i, "i32"), which)
    return best, which


_max = _numbered("largest", _largest)
_nan_at = Pointwise(lambda x, at: where(x != x, at, -1), "nan_at")
_which = Pointwise(
    lambda best, first, nan: where(
        cast(nan, "i64") >= 0, cast(nan, "i64"), where(best > -inf, cast(first, "i64"), -1)
    ),
    "which",
)


@cache
def _place(rank: int) -> Pointwise:
    """Formula of the flat index in its image of tap ``which`` of each window."""
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
    """The largest of each window: the first of :func:`_pooled`."""
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


def _pooled(b: ProgramBuilder, x: Buffer, axes: Sequence[Axis]) -> tuple[Buffer, Buffer]:
    """The largest of each window, and where it lies in the image."""
    check_dtype("x", x.dtype, FLOATS)
    shape = _results(x, axes)
    if b.abstract or not prod(shape):
        return b.result(shape, x.dtype), b.result(shape, "int64")
    spread = _taps(b, x, axes, -inf)
    taps = prod(a.taps for a in axes)
    if taps <= TAPS_MAX:
        given = tuple(_views(b, spread, axes))
        best, which = b.call(_max(taps), *given, out_dtype=(x.dtype, "int32"))
    else:
        rows = _as_rows(b, spread, axes)
        best, first = b.amax(rows, axis=-1), b.argmax(rows, axis=-1)
        nan = b.amax(b.call(_nan_at, rows, _ramp(b, taps, x), out_dtype="int64"), axis=-1)
        which = b.call(_which, best, first, nan)
    numbers: list[Any] = []
    for i, a in enumerate(axes):
        if a.even:
            begin = b.call(_line, _ramp(b, a.count, x), a.step, a.before)
            first, last = b.call(_entered, begin, a.dilation), a.size
        else:
            begin, end = _ends(b, a, x)
            first, last = begin, b.sub(end, 1)
        facing = (v if isinstance(v, int) else _facing(b, v, axes, i) for v in (begin, first, last))
        numbers += [*facing, a.size, a.taps, a.dilation]
    return best, b.call(_place(len(axes)), which, *numbers, out_dtype="int64")


# -- sums ---------------------------------------------------------------------------------------
def _plus(*taps: Any) -> Any:
    total = taps[0]
    for x in taps[1:]:
        total = total + x
    return total


_sum = _numbered("sum", _plus)


def _own(*given: Any) -> Any:
    """Sums ``dy`` of windows whose index is this place; takes the place, then pairs (dy, index)."""
    place, *pairs = given
    pair = zip(pairs[::2], pairs[1::2], strict=True)
    return _plus(*(where(at == place, dy, 0) for dy, at in pair))


def _own_more(*given: Any) -> Any:
    """Adds the sum of :func:`_own` to a total, which is the first argument."""
    total, place, *pairs = given
    pair = zip(pairs[::2], pairs[1::2], strict=True)
    return _plus(total, *(where(at == place, dy, 0) for dy, at in pair))


_first_own, _next_own = _numbered("own", _own), _numbered("own_more", _own_more)


def _total(b: Builder, taps: Sequence[Sequence[Any]], place: Any, dtype: str, wide: str) -> Any:
    """The sum of taps, ascending, rounded to ``dtype`` once. With ``place`` taps are pairs (dy,
    index), and only those whose index is the place count.
    """
    total, piece = None, PIECE // len(taps[0])
    for start in range(0, len(taps), piece):
        part = [x for pair in taps[start : start + piece] for x in pair]
        last = start + piece >= len(taps)
        given = ([] if total is None else [total]) + ([] if place is None else [place]) + part
        if place is None:
            function = _sum(len(given))
        else:
            function = (_first_own if total is None else _next_own)(len(given))
        total = b.call(function, *given, out_dtype=dtype if last else wide)
    return total


@cache
def _shared_sum(taps: int, rank: int) -> Pointwise:
    """Formula of the sum of ``taps`` taps over the element counts of ``rank`` dimensions."""
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
    """Divisors of windows' sums for each dimension: a number, or an array of one a window."""
    if divisor:
        return [float(divisor), *[1.0] * (len(axes) - 1)]
    found: list[Any] = []
    for i, a in enumerate(axes):
        beyond = a.before if padded else 0
        if not a.even:
            counts = b.call(_length[b.wide(like)], *_ends(b, a, like))
        elif a.behind <= beyond and (padded or not a.before):
            found.append(float(a.taps))
            continue
        else:
            how = a.step, a.before, a.taps, -beyond, a.size + beyond
            counts = b.call(_held[b.wide(like)], _ramp(b, a.count, like), *how)
        found.append(_facing(b, counts, axes, i))
    return found


def _mean(
    b: ProgramBuilder, x: Buffer, axes: Sequence[Axis], padded: bool = True, divisor: int = 0
) -> Buffer:
    """The mean of each window: the sum of its elements over their number."""
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


# -- gradients ----------------------------------------------------------------------------------
def _gathered(b: Builder, given: Sequence[Any], axes: Sequence[Axis]) -> list[list[Any]]:
    """Views of ``given``, arrays with a number for each window, of the first, the second ... window
    over each element of an image, ascending, in the shape of :func:`_places`.
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
                x = _spread(b, x, low, high, a.covering, -1, lead + i)
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
    """Each dimension of a gradient as two: (steps of windows, elements within a step)."""
    return [(a.rows, a.step) if a.even else (a.size, 1) for a in axes]


_flat = Pointwise(lambda place, at, size: place * size + at, "flat_place")


def _places(b: Builder, axes: Sequence[Axis], like: Any) -> Any:
    """Flat index in its image of each element of a gradient in phases (:func:`_phases`)."""
    found, rank = None, len(axes)
    for i, (a, (rows, within)) in enumerate(zip(axes, _phases(axes), strict=True)):
        at = b.call(_line, _ramp(b, rows * within, like), 1, a.before if a.even else 0)
        at = b.reshape(at, (rows, within, *[1] * (2 * (rank - 1 - i))))
        found = at if found is None else b.call(_flat, found, at, a.size)
    return found


def _image(b: Builder, found: Any, axes: Sequence[Axis]) -> Any:
    """The gradient of images, from that in phases (:func:`_phases`)."""
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
"""``dy`` where a window that began ``start`` before a step reaches its element ``at``, else 0."""


def mean_gradient(
    b: Builder, dy: Any, axes: Sequence[Axis], dtype: str, padded: bool = True, divisor: int = 0
) -> Any:
    """Gradient of a mean: sums ``dy / size`` of the windows that an element lies in."""
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
    """Gradient of a maximum: sums ``dy`` of the windows whose largest an element is."""
    taps = _gathered(b, [dy, indices], axes)
    found = _total(b, taps, _places(b, axes, dy), dtype, b.wide(dy))
    return _image(b, found, axes)


def overlapped(b: Builder, windows: Any, axes: Sequence[Axis], dtype: str) -> Any:
    """Images that add up their windows where these overlap (``fold``, ``col2im``).

    ``windows`` is ``[..., *taps, *counts]``. An element of an image adds what each window that it
    lies in has for it, in the order of the windows, and is rounded once.
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
    """``x`` with zeros along one axis."""
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
    """Gradient by x: the sum of ``dy`` of the windows whose largest an element is, ascending."""
    axes = adapted(at["x"], at.options["size"]) if "size" in at.options else _fixed_of(at)
    x = at["x"]
    if not prod(at.results[1].shape):
        return {"x": b.filled(x.shape, b.dtype(x), 0.0, x)}
    return {"x": max_gradient(b, at.dys[0], at.results[1], axes, b.dtype(x))}


def _mean_vjp(b: Builder, at: Backward) -> Gradients:
    """Gradient by x: the sum of ``dy / size`` of the windows around an element, ascending."""
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
    """``max(x[window])`` of each window, and where it lies in its image.

    Shapes
        ``x`` ``[..., *]``; ``window`` has as many sizes, 1 to 3, as an image has dimensions; both
        results have as many elements along each as there are windows. ``stride`` is by default the
        window, ``padding`` 0, ``dilation`` 1, each one number or one a dimension. ``ceil``: a last
        window may reach beyond the padding, if it begins before the image ends.
    Dtypes
        ``x`` float32, bfloat16, float16 or float64, and so the values; the indices are int64: of
        the image as one row.
    Order
        Nothing is added. Of equal ones the first is taken, and a NaN before all numbers, of
        several the last, as PyTorch has it. What lies beyond an image is never taken. A window's
        result depends on that window alone. :func:`ptxgen.reference.max_pool` returns the same.
    Errors
        ShapeError for a window larger than the padded image, a padding over half the window,
        numbers below 1 and other ranks; DtypeError, OptionError, DeviceError, GradError or
        CompileError, before anything is launched or written.
    """
    return _pooled(b, x, fixed(x, window, stride, padding, dilation, ceil))


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


@op(vjp=_max_vjp, results=("values", "indices"))
def adaptive_max_pool(b: ProgramBuilder, x: Buffer, size: Window) -> tuple[Buffer, Buffer]:
    """``max(x[window])`` of ``size`` windows, and where it lies in its image.

    Window i of o along a dimension of n begins at ``floor(i n / o)`` and ends before
    ``ceil((i + 1) n / o)``.

    Shapes
        ``x`` ``[..., *]``; ``size`` has as many numbers, 1 to 3, as an image has dimensions; both
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
        ``x`` ``[..., *]``; ``size`` has as many numbers, 1 to 3, as an image has dimensions; the
        result ``[..., *size]``.
    Dtypes
        As of :func:`ptxgen.avg_pool`.
    Order
        As of :func:`ptxgen.avg_pool`, of as many elements as the longest window has; what others
        lack of these is +0.0. :func:`ptxgen.reference.adaptive_avg_pool` returns the same bits.
    Errors
        As of :func:`ptxgen.adaptive_max_pool`: ShapeError, DtypeError, OptionError, DeviceError,
        GradError or CompileError, before anything is launched or written.
    """
    return _mean(b, x, adapted(x, size))
