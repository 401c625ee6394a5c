"""Checks of the arguments of operations: alignment, pitch, strides, dtypes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from ptxgen.errors import DtypeError, OptionError, ShapeError
from ptxgen.program.buffer import Buffer
from ptxgen.runtime.strided import Strided

ALIGN_MAX = 16


def alignment(name: str, view: Strided, *strides: int) -> int:
    """Returns the largest power of two, up to 16 bytes, that divides the address and ``strides``
    (elements).

    Of an empty array only the address counts: TMA may take it, though nothing is read. Raises
    ShapeError if the address of an array with elements is no multiple of the element size.
    """
    if view.size and view.address % view.itemsize:
        raise ShapeError(
            f"{name} starts {view.address % ALIGN_MAX} bytes behind a multiple of {ALIGN_MAX}; "
            f"takes a multiple of {view.itemsize}, the size of its elements; pass a copy of {name}"
        )
    low = view.address | ALIGN_MAX
    for stride in strides if view.size else ():
        low |= stride * view.itemsize
    return max(low & -low, view.itemsize)


def check_contiguous(name: str, view: Strided, *, result: bool = False) -> None:
    """Raises ShapeError unless an argument is contiguous. ``result``: whether it is an ``out``."""
    if not view.contiguous:
        raise ShapeError(
            f"{name} has strides {list(view.strides)}; takes a contiguous array: pass "
            f"a contiguous copy of {name}{f', or leave {name}= away' if result else ''}"
        )


def dense(name: str, view: Strided, *strides: int, result: bool = True) -> int:
    """Returns the :func:`alignment`, in bytes, of a contiguous array and of ``strides`` (elements);
    raises ShapeError for other arrays.

    ``result``: whether the array is a result (``out``), for the message.
    """
    found = alignment(name, view, *strides)
    check_contiguous(name, view, result=result)
    return found


def check_dtype(name: str, dtype: str, takes: Collection[str]) -> None:
    """Raises DtypeError unless ``dtype`` of argument ``name`` is one of ``takes``."""
    if dtype not in takes:
        raise DtypeError(f"{name} has dtype {dtype}; takes {' or '.join(takes)}")


def result_dtype(
    asked: str | None, out: Strided | None, natural: str, accepted: Sequence[str]
) -> str:
    """Returns the dtype of a result: ``asked``, else that of ``out``, else ``natural``; raises
    DtypeError unless it is ``accepted``.
    """
    what, wanted = "out_dtype", asked
    if wanted is None:
        what, wanted = "out's dtype", natural if out is None else out.dtype
    if wanted not in accepted:
        takes = " or ".join(map(repr, dict.fromkeys(accepted)))
        raise DtypeError(f"{what} is {wanted!r}; takes {takes}")
    return wanted


def check_vector(name: str, view: Strided) -> None:
    """Raises ShapeError unless a vector has stride 1 and an address aligned to its elements."""
    if view.size > 1 and view.strides != (1,):
        raise ShapeError(
            f"{name} has stride {view.strides[0]}; takes stride 1: pass a contiguous copy of {name}"
        )
    alignment(name, view, 0)


def strided_rows(name: str, view: Strided) -> ShapeError:
    """Returns the error for an argument whose last dimension does not have stride 1."""
    return ShapeError(
        f"{name} has strides {list(view.strides)}; takes stride 1 along the last dimension: pass "
        f"a contiguous copy of {name}"
    )


def leading(rows: int, width: int, stride: int, itemsize: int) -> int:
    """Returns the leading dimension, elements from row to row: ``stride``.

    A single row has no pitch: ``width`` rounded up to 16 bytes is returned, which admits most
    kernels.
    """
    unit = ALIGN_MAX // itemsize
    return stride if rows > 1 else max(-(-width // unit) * unit, unit)


def rows_of(name: str, view: Buffer) -> tuple[int, int, int]:
    """Returns (rows, elements of a row, elements from row to row) of an array viewed as a matrix;
    raises ShapeError unless the last dimension has stride 1.
    """
    matrix = view.matrix(name)
    (count, width), (down, along) = matrix.shape, matrix.strides
    if along != 1 and width > 1 and view.size:
        raise strided_rows(name, view)
    return count, width, down


def row_step(name: str, view: Buffer) -> int:
    """Returns the elements from row to row of an array, 0 if it has one row; raises ShapeError
    unless the last dimension has stride 1.
    """
    count, _, down = rows_of(name, view)
    alignment(name, view, 0)
    return down if count > 1 else 0


def rows_apart(b: Any, x: Buffer) -> Buffer:
    """Returns ``x`` if its rows have stride 1, even spacing and no overlap, else a copy."""
    if b.abstract or x.contiguous:
        return x
    *leading, width = x.shape
    *steps, along = x.strides
    reach = None
    for size, step in zip(reversed(leading), reversed(steps), strict=True):
        if size != 1:
            if step < width if reach is None else step != reach:
                return b.contiguous(x)  # type: ignore[no-any-return]
            reach = step * size
    return x if along == 1 else b.contiguous(x)


def readable(b: Any, x: Buffer) -> Buffer:
    """Returns ``x`` if its matrices, or their transposes, have rows of stride 1 without overlap,
    else a contiguous copy.
    """
    if b.abstract or x.contiguous or len(x.shape) < 2:
        return x
    (*_, down, along), (*_, m, n) = x.strides, x.shape
    if (along == 1 and down >= n) or (down == 1 and along >= m):
        return x
    return b.contiguous(x)  # type: ignore[no-any-return]


def results(out: Buffer | tuple[Buffer, ...] | None, count: int) -> tuple[Buffer | None, ...]:
    """Returns ``out`` as ``count`` buffers, or Nones; OptionError for another number of arrays."""
    if out is None:
        return (None,) * count
    several = out if isinstance(out, tuple) else (out,)
    if len(several) != count:
        takes = "one array" if count == 1 else f"a tuple of {count} arrays, one a result"
        raise OptionError(f"out is {len(several)} arrays; takes {takes}")
    return several


def single(out: Buffer | tuple[Buffer, ...] | None) -> Buffer | None:
    """Returns ``out`` of an operation with one result: a buffer, or None."""
    return results(out, 1)[0]


def axis_of(name: str, x: Strided, axis: int, what: str = "axis") -> int:
    """Returns ``axis`` of ``x`` as an index from 0; raises ShapeError if x has no such axis."""
    rank = len(x.shape)
    if not -rank <= axis < rank:
        raise ShapeError(f"{what} is {axis}; {name} has shape {list(x.shape)}")
    return axis % rank
