"""Layout: what only says where elements lie, or brings them there. Views where a view will do.

Arrays are those of any framework that slices as NumPy does; results that are not views are made in
the caller's framework, by one pass over memory.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Sequence
from typing import Any

from ptxgen.errors import DtypeError, OptionError, ShapeError
from ptxgen.ops.pointwise import Pointwise, watch_torch
from ptxgen.ops.replay import recorder_of, remembered
from ptxgen.runtime.arrays import framework_of

_copy = Pointwise(lambda x: x, "copy")
_TOGETHER = 8
"""Most arrays that one launch copies."""
_fill = Pointwise(lambda x, value: value, "fill")
_turn = Pointwise(lambda a, b, cos, sin: (a * cos - b * sin, b * cos + a * sin), "rope")


# -- views ------------------------------------------------------------------------------------
def narrow(x: Any, axis: int, start: int, length: int) -> Any:
    """A view of ``x``: ``length`` elements along ``axis``, from ``start`` on.

    Raises ShapeError for an axis that ``x`` lacks, and for elements beyond its end.
    """
    axis = _axis("x", x, axis)
    size = x.shape[axis]
    if not 0 <= start <= start + length <= size:
        raise ShapeError(
            f"x has {size} elements along axis {axis}; got {length} of them from {start} on"
        )
    return x[_along(axis, slice(start, start + length))]


def transpose(x: Any, first: int = -2, second: int = -1) -> Any:
    """A view of ``x`` whose axes ``first`` and ``second`` have changed places."""
    first, second = _axis("x", x, first), _axis("x", x, second)
    if framework_of(x) == "torch":
        return x.transpose(first, second)
    return x.swapaxes(first, second)


def expand(x: Any, shape: Sequence[int]) -> Any:
    """A view of ``x`` that is broadcast to ``shape``. Raises ShapeError if it cannot be."""
    shape = tuple(shape)
    lead = len(shape) - len(x.shape)
    fits = zip(x.shape, shape[max(lead, 0) :], strict=lead >= 0)
    if lead < 0 or any(size not in (1, wanted) for size, wanted in fits):
        raise ShapeError(f"x has shape {list(x.shape)}, which does not broadcast to {list(shape)}")
    if framework_of(x) == "torch":
        return x.expand(shape)
    return _module(x).broadcast_to(x, shape)


# -- one pass ---------------------------------------------------------------------------------
def contiguous(x: Any, *, out: Any = None, stream: Any = None) -> Any:
    """A copy of ``x`` in rows one behind the other, or as ``out`` lies.

    A pass at memory speed, also where ``x`` is transposed (squares are turned in registers).
    """
    return (_copy if _copy._traced() else _copied)(x, out=out, stream=stream)


@remembered("x")
def _copied(x: Any, *, out: Any, stream: Any) -> Any:
    return _copy(x, out=out, stream=stream)


def concat(arrays: Sequence[Any], axis: int = 0, *, out: Any = None, stream: Any = None) -> Any:
    """The arrays one behind the other along ``axis``: one pass, a launch for those of one shape.

    All have one dtype, and one shape but for that axis. In PyTorch they have gradients: parts of
    the result's. Raises ShapeError or DtypeError that names the two that differ.
    """
    joined = _concat if Pointwise._traced() else _joined
    return joined(arrays, axis, out=out, stream=stream)


def _concat(arrays: Sequence[Any], axis: int, *, out: Any, stream: Any) -> Any:
    """What :func:`concat` computes."""
    if arrays and _watched(arrays, out):
        _joint(arrays, axis)
        return sys.modules["torch"].ops.ptxgen.concat(list(arrays), axis % len(arrays[0].shape))
    axis, shape = _joint(arrays, axis)
    result = _result(arrays[0], shape, out)
    at, alike = 0, dict[int, list[tuple[Any, Any]]]()
    for x in arrays:
        length = x.shape[axis]
        alike.setdefault(length, []).append((x, narrow(result, axis, at, length)))
        at += length
    for pairs in alike.values():
        for first in range(0, len(pairs), _TOGETHER):
            given, parts = zip(*pairs[first : first + _TOGETHER], strict=True)
            _copies(len(given))(*given, out=parts, stream=stream)
    return result


_joined = remembered("*arrays")(_concat)


@functools.cache
def _copies(count: int) -> Pointwise:
    """Copies of so many arrays, in one launch."""
    names = tuple(f"x{i}" for i in range(count))
    return Pointwise(lambda **given: tuple(given.values()), "copies", names) if count > 1 else _copy


def _joint(arrays: Sequence[Any], axis: int) -> tuple[int, list[int]]:
    """The axis, and the shape of arrays along it. Raises ShapeError, DtypeError, OptionError."""
    if not arrays:
        raise OptionError("concat takes at least one array; got none")
    first = arrays[0]
    axis = _axis("arrays[0]", first, axis)
    for i, x in enumerate(arrays):
        if x.dtype != first.dtype:
            raise DtypeError(f"arrays[{i}] has dtype {x.dtype}, arrays[0] {first.dtype}: cast one")
        shape, wanted = list(x.shape), list(first.shape)
        if len(shape) == len(wanted):
            wanted[axis] = shape[axis]
        if shape != wanted:
            raise ShapeError(
                f"arrays[{i}] has shape {shape}, arrays[0] {list(first.shape)}; they may differ "
                f"along axis {axis} only"
            )
    shape = list(first.shape)
    shape[axis] = sum(x.shape[axis] for x in arrays)
    return axis, shape


def pad(
    x: Any,
    widths: Sequence[tuple[int, int]],
    value: float = 0,
    *,
    out: Any = None,
    stream: Any = None,
) -> Any:
    """``x`` with ``value`` before and behind it: as many elements as ``widths`` says of each axis.

    Every element of the result is written once. In PyTorch ``x`` has a gradient: the part of the
    result's. Raises ShapeError for widths of other axes.
    """
    widths = list(widths)
    if len(widths) != len(x.shape) or any(len(w) != 2 or min(w) < 0 for w in widths):
        raise ShapeError(
            f"widths are {widths}; takes two numbers, not negative, for each axis of x, which has "
            f"shape {list(x.shape)}"
        )
    if _watched((x,), out):
        flat = [n for pair in widths for n in pair]
        return sys.modules["torch"].ops.ptxgen.pad(x, flat, value)
    shape = [size + sum(w) for size, w in zip(x.shape, widths, strict=True)]
    result = _result(x, shape, out)
    value = bool(value) if "bool" in str(x.dtype) else value
    inner = result
    for axis, (before, behind) in enumerate(widths):
        size = x.shape[axis]
        for start, length in ((0, before), (before + size, behind)):
            if length and 0 not in inner.shape:
                border = narrow(inner, axis, start, length)
                _fill(border, value, out=border, stream=stream)
        inner = narrow(inner, axis, before, size)
    if 0 not in inner.shape:
        _copy(x, out=inner, stream=stream)
    return result


def rope(
    x: Any,
    cos: Any,
    sin: Any,
    *,
    interleaved: bool = False,
    out: Any = None,
    stream: Any = None,
) -> Any:
    """Rotary position embedding: pairs of elements of ``x``, turned by angles.

    Formula
        ``a * cos - b * sin`` and ``b * cos + a * sin`` for pairs (a, b) along the last axis:
        element i of the first half of what is turned with element i of the second, or,
        ``interleaved``, elements 2i and 2i + 1. Each operation is rounded once in f32
        (f64), results once more.
    Shapes
        ``x`` ``[..., D]``; ``cos`` and ``sin`` broadcast to ``[..., R / 2]``; the first
        R elements are turned, and the others copied.
    Dtypes
        Those of pointwise functions; the result has that of ``x``.
    Gradients
        Of ``x``, in PyTorch: the same with ``-sin``.

    Raises ShapeError if R is more than D. ``out`` may be ``x``.
    """
    turned = _rope if Pointwise._traced() else _turned
    return turned(x, cos, sin, interleaved=interleaved, out=out, stream=stream)


def _rope(x: Any, cos: Any, sin: Any, *, interleaved: bool, out: Any, stream: Any) -> Any:
    """What :func:`rope` computes."""
    if _watched((x,), out):
        return sys.modules["ptxgen.torch.layout"].rope(x, cos, sin, interleaved)
    _axis("x", x, -1)
    _axis("cos", cos, -1)
    half, width = max(cos.shape[-1], sin.shape[-1]), x.shape[-1]
    if 2 * half > width:
        raise ShapeError(f"cos has {half} angles, for pairs of x, which has {width} elements a row")
    result = _result(x, list(x.shape), out)
    first, second = (
        (slice(0, 2 * half, 2), slice(1, 2 * half, 2))
        if interleaved
        else (slice(0, half), slice(half, 2 * half))
    )
    outs = result[..., first], result[..., second]
    _turn(x[..., first], x[..., second], cos, sin, out=outs, stream=stream)
    if 2 * half < width and result is not x:
        _copy(x[..., 2 * half :], out=result[..., 2 * half :], stream=stream)
    return result


_turned = remembered("x", "cos", "sin")(_rope)


# -- pieces -----------------------------------------------------------------------------------
def _watched(given: Sequence[Any], out: Any) -> bool:
    """Whether PyTorch's operator is to compute this: autograd watches, or a compiler traces."""
    if Pointwise._traced():
        if out is not None:
            raise OptionError("out= cannot be traced; leave it away")
        return True
    if out is not None or framework_of(given[0]) != "torch" or recorder_of(given) is not None:
        return False
    if not any(map(_recorded, given)):
        return False
    watch_torch()
    return True


def _recorded(x: Any) -> bool:
    """Whether autograd watches ``x``, or it is no plain tensor."""
    torch = sys.modules["torch"]
    plain = type(x) in (torch.Tensor, torch.nn.Parameter)
    return not plain or (x.requires_grad and torch.is_grad_enabled())


def _axis(name: str, x: Any, axis: int) -> int:
    count = len(x.shape)
    if not -count <= axis < count:
        raise ShapeError(f"{name} has shape {list(x.shape)}, so no axis {axis}")
    return axis % count


def _along(axis: int, part: slice) -> tuple[slice, ...]:
    return (*[slice(None)] * axis, part)


def _module(x: Any) -> Any:
    """The framework of ``x``, which has NumPy's functions."""
    framework = framework_of(x)
    if framework not in ("numpy", "cupy"):
        raise DtypeError(
            f"x is a {type(x).__qualname__}, in which ptxgen makes no array to write to; takes "
            "PyTorch, CuPy or NumPy"
        )
    return sys.modules[framework]


def _result(like: Any, shape: list[int], out: Any) -> Any:
    """Memory for a result."""
    if out is not None:
        if list(out.shape) != shape:
            raise ShapeError(f"out has shape {list(out.shape)}; takes {shape}")
        if out.dtype != like.dtype:
            raise DtypeError(f"out has dtype {out.dtype}; takes {like.dtype}")
        return out
    if framework_of(like) == "torch":
        return like.new_empty(shape)
    return _module(like).empty(shape, like.dtype)
