"""Layout: copies, concatenation, padding and rotary embedding, each in one pass over memory."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from itertools import chain
from typing import Annotated, Any

from ptxgen.errors import DtypeError, GradError, OptionError, ShapeError
from ptxgen.numerics.dtype import STORABLE
from ptxgen.numerics.formula import BYTE_RANGES
from ptxgen.numerics.option import Axis, Bool, Integers, Value
from ptxgen.ops.pointwise import Pointwise, short
from ptxgen.ops.views import axis_of, single
from ptxgen.program.buffer import Buffer
from ptxgen.program.build import Builder, ProgramBuilder
from ptxgen.program.operation import Backward, Gradients, op
from ptxgen.program.parameters import Out, OverX
from ptxgen.runtime.strided import spread

FILLED_MAX = 1 << 24
"""Most bytes of a padded array that one launch fills with the padding value as a whole, before
``x`` is copied into it, if it has several borders. In a larger array each border is filled by a
launch of its own: launches cost less than the bytes that they save there.
"""
TOGETHER = 8
"""Most arrays that one launch copies."""
_rotate = Pointwise(lambda a, b, cos, sin: (a * cos - b * sin, b * cos + a * sin), "rope")


@op(vjp=lambda b, at: {"x": at.dys[0]}, public=False, backwards=True)
def contiguous(b: ProgramBuilder, x: Buffer, *, out: Out = None) -> Buffer:
    """Returns a contiguous copy of ``x``, or copies it to ``out``, of any strides.

    Shapes
        ``x`` any, and so the result.
    Dtypes
        Those of :func:`ptxgen.pointwise`; the result has that of ``x``.
    Order
        Nothing is computed. It is a pass at memory speed, also where ``x`` is transposed: square
        tiles are transposed in registers.
    Errors
        ShapeError, DtypeError, DeviceError or CompileError, before anything is launched or written.
    """
    return b.copied(x, single(out))


# -- concat -----------------------------------------------------------------------------------
def _concat_vjp(b: Builder, at: Backward) -> Gradients:
    """Gradients of ``concat``: slices of the result's gradient, as views."""
    (dy,), arrays, found, start = at.dys, at["arrays"], {}, 0
    axis = at.options["axis"] % len(dy.shape)
    for i, x in enumerate(arrays):
        if f"arrays[{i}]" in at.needs:
            found[f"arrays[{i}]"] = b.narrow(dy, axis, start, x.shape[axis])
        start += x.shape[axis]
    return found


@functools.cache
def _copies(count: int) -> Pointwise:
    """Returns the function that copies ``count`` arrays in one launch."""
    names = tuple(f"x{i}" for i in range(count))
    return Pointwise(lambda **given: tuple(given.values()), "copies", names, known=STORABLE)


@op(vjp=_concat_vjp, public=False, backwards=True)
def concat(
    b: ProgramBuilder, arrays: Sequence[Buffer], axis: Axis = 0, *, out: Out = None
) -> Buffer:
    """Concatenates ``arrays`` along ``axis``: one pass; arrays of one shape share launches.

    Shapes
        The arrays agree along all axes but ``axis``; the result has the sum of their sizes there.
    Dtypes
        Those of :func:`ptxgen.pointwise`, the same for all, and so the result.
    Order
        Nothing is computed. A gradient is a slice of the result's.
    Errors
        ShapeError or DtypeError that names the two that differ; OptionError, DeviceError or
        CompileError; before anything is launched or written.
    """
    first, target = arrays[0], single(out)
    at = axis_of("arrays[0]", first, axis)
    shape = list(first.shape)
    for i, x in enumerate(arrays):
        if x.dtype != first.dtype:
            raise DtypeError(f"arrays[{i}] has dtype {x.dtype}, arrays[0] {first.dtype}: cast one")
        wanted = list(first.shape)
        if len(x.shape) == len(wanted):
            wanted[at] = x.shape[at]
        if list(x.shape) != wanted:
            raise ShapeError(
                f"arrays[{i}] has shape {list(x.shape)}, arrays[0] {list(first.shape)}; they may "
                f"differ along axis {at} only"
            )
    shape[at] = sum(x.shape[at] for x in arrays)
    result, start = b.result(shape, first.dtype, target), 0
    if b.abstract:  # no size is known
        return result
    alike: dict[int, list[tuple[Buffer, Buffer]]] = {}
    for x in arrays:
        length = x.shape[at]
        alike.setdefault(length, []).append((x, b.narrow(result, at, start, length)))
        start += length
    for pairs in alike.values():
        for i in range(0, len(pairs), TOGETHER):
            given, parts = zip(*pairs[i : i + TOGETHER], strict=True)
            if len(given) == 1:
                b.copied(given[0], parts[0])
            else:
                b.call(_copies(len(given)), *given, out=parts)
    return result


# -- pad --------------------------------------------------------------------------------------
def _pad_vjp(b: Builder, at: Backward) -> Gradients:
    """Gradient of ``pad``: the inner slice of the result's gradient, as a view."""
    (dy,) = at.dys
    for axis, (size, (before, _)) in enumerate(
        zip(at["x"].shape, at.options["widths"], strict=True)
    ):
        dy = b.narrow(dy, axis, before, size)
    return {"x": dy}


@op(vjp=_pad_vjp, public=False, backwards=True)
def pad(
    b: ProgramBuilder,
    x: Buffer,
    widths: Annotated[Any, Integers(pairs=True)],
    value: Annotated[float, Value()] = 0,
    *,
    out: Out = None,
) -> Buffer:
    """Pads ``x`` with ``value``; ``widths``: elements before and after it, a pair for each axis.

    Shapes
        ``x`` any; the result is longer by the sum of an axis's pair in ``widths``.
    Dtypes
        Those of :func:`ptxgen.pointwise`; the result has that of ``x``.
    Order
        Nothing is computed: the border is filled, and ``x`` is copied. The gradient is a slice of
        the result's.
    Errors
        ShapeError for another number of pairs, OptionError for a ``value`` that the dtype lacks,
        DtypeError, DeviceError or CompileError, before anything is launched or written.
    """
    if len(widths) != len(x.shape):
        raise ShapeError(
            f"widths are {list(widths)}; takes two numbers, not negative, for each axis of x, "
            f"which has shape {list(x.shape)}"
        )
    shape = [size + sum(w) for size, w in zip(x.shape, widths, strict=True)]
    result = b.result(shape, x.dtype, single(out))
    number = bool(value) if x.dtype == "bool" else value
    low, high = BYTE_RANGES.get(STORABLE.get(x.dtype, ""), (value, value))
    if value < low or value > high:
        raise OptionError(f"value is {value}; {x.dtype} has {low} .. {high}")
    inner = result
    whole = sum(map(bool, chain(*widths))) > 1 and result.nbytes <= FILLED_MAX
    if whole:
        b.fill(result, number, out=result)
    for axis, (before, behind) in enumerate(widths):
        size = x.shape[axis]
        for start, length in ((0, before), (before + size, behind)):
            if length and not whole:
                border = b.narrow(inner, axis, start, length)
                b.fill(border, number, out=border)
        inner = b.narrow(inner, axis, before, size)
    b.copied(x, inner)
    return result


# -- rope -------------------------------------------------------------------------------------
def _rope_vjp(b: Builder, at: Backward) -> Gradients:
    """Gradient of ``rope``: dy, rotated by the opposite angles."""
    if at.needs & {"cos", "sin"}:
        raise GradError("rope has no gradients of cos and sin; detach them")
    of = at["cos"], b.neg(at["sin"])
    return {"x": b.rope(at.dys[0], *of, **at.only("interleaved"))}


@op(vjp=_rope_vjp, public=False, backwards=True)
def rope(
    b: ProgramBuilder,
    x: Buffer,
    cos: Buffer,
    sin: Buffer,
    *,
    interleaved: Bool = False,
    out: OverX = None,
) -> Buffer:
    """Rotary position embedding: rotates pairs of elements of ``x`` by angles.

    ``a * cos - b * sin`` and ``b * cos + a * sin`` for pairs (a, b) along the last axis: elements i
    and R / 2 + i of the R rotated elements, or, ``interleaved``, elements 2i and 2i + 1.

    Shapes
        ``x`` ``[..., D]``, and so the result, which may be ``x`` (``out=x``); ``cos`` and ``sin``
        broadcast to ``[..., R / 2]``; the first R elements are rotated, and the others copied.
    Dtypes
        Those of pointwise functions; the result has that of ``x``.
    Order
        Contract ``pointwise/1``: each operation is rounded once in f32 (f64), results once more.
        The gradient of ``x`` is the same with ``-sin``.
    Errors
        ShapeError if R is more than D, DtypeError, OptionError, DeviceError, GradError (gradients
        of ``cos`` or ``sin``) or CompileError, before anything is launched or written.
    """
    for name, v in (("x", x), ("cos", cos), ("sin", sin)):
        axis_of(name, v, -1)
        short(v.dtype, name)
    half, width = max(cos.shape[-1], sin.shape[-1]), x.shape[-1]
    if 2 * half > width:
        raise ShapeError(
            f"cos and sin have {half} angles, for pairs of x, which has {width} elements a row"
        )
    result = b.result(x.shape, x.dtype, single(out))
    starts, step = ((0, 1), 2) if interleaved else ((0, half), 1)
    parts, outs = ([b.narrow(v, -1, at, half, step) for at in starts] for v in (x, result))
    for name, v in (("cos", cos), ("sin", sin)):
        if spread(v.shape, v.strides, parts[0].shape) is None:
            raise ShapeError(
                f"{name} has shape {list(v.shape)}; takes what broadcasts to pairs of x, "
                f"{list(parts[0].shape)}"
            )
    b.call(_rotate, *parts, cos, sin, out=tuple(outs))
    if 2 * half < width and not result.same(x):
        rest = width - 2 * half
        b.copied(b.narrow(x, -1, 2 * half, rest), b.narrow(result, -1, 2 * half, rest))
    return result
