"""Checks of the buffers of operations' arguments: alignment, pitch, strides, dtypes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from ptxgen.errors import DtypeError, OptionError, ShapeError
from ptxgen.program.buffer import Buffer
from ptxgen.runtime.strided import Strided

ALIGN_MAX = 16


def alignment(name: str, view: Strided, *strides: int) -> int:
    """The largest power of two up to 16 that divides the address and ``strides`` (elements), in
    bytes.

    For an empty array only its address counts: the copy engine (TMA) may be given it, though
    nothing is read. Raises ShapeError if the address of another array is off a whole element.
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
    """Raises ShapeError unless the argument ``name``, or the ``result``, is contiguous."""
    if not view.contiguous:
        raise ShapeError(
            f"{name} has strides {list(view.strides)}; takes a contiguous array: pass "
            f"a contiguous copy of {name}{f', or leave {name}= away' if result else ''}"
        )


def dense(name: str, view: Strided, *strides: int, result: bool = True) -> int:
    """The :func:`alignment` of a ``result``, or an argument, which must be contiguous."""
    found = alignment(name, view, *strides)
    check_contiguous(name, view, result=result)
    return found


def check_dtype(name: str, dtype: str, takes: Collection[str]) -> None:
    """Raises DtypeError unless an argument has one of these dtypes."""
    if dtype not in takes:
        raise DtypeError(f"{name} has dtype {dtype}; takes {' or '.join(takes)}")


def result_dtype(
    asked: str | None, out: Strided | None, natural: str, accepted: Sequence[str]
) -> str:
    """The dtype of a result: ``asked``, that of its memory, or ``natural``. Raises DtypeError."""
    what, wanted = "out_dtype", asked
    if wanted is None:
        what, wanted = "out's dtype", natural if out is None else out.dtype
    if wanted not in accepted:
        takes = " or ".join(map(repr, dict.fromkeys(accepted)))
        raise DtypeError(f"{what} is {wanted!r}; takes {takes}")
    return wanted


def check_vector(name: str, view: Strided) -> None:
    """Raises ShapeError unless a vector has stride 1 and is aligned to its elements."""
    if view.size > 1 and view.strides != (1,):
        raise ShapeError(
            f"{name} has stride {view.strides[0]}; takes stride 1: pass a contiguous copy of {name}"
        )
    alignment(name, view, 0)


def apart(name: str, view: Strided) -> ShapeError:
    """The error for an argument whose last dimension has another stride than 1."""
    return ShapeError(
        f"{name} has strides {list(view.strides)}; takes stride 1 along the last dimension: pass "
        f"a contiguous copy of {name}"
    )


def leading(rows: int, width: int, stride: int, itemsize: int) -> int:
    """Elements from row to row (the leading dimension).

    The pitch of a single row is never used; whole 16 bytes admit most kernels.
    """
    unit = ALIGN_MAX // itemsize
    return stride if rows > 1 else max(-(-width // unit) * unit, unit)


def rows_of(name: str, view: Buffer) -> tuple[int, int, int]:
    """Rows, elements of each, and elements from row to row, of an array whose last dimension has
    stride 1. Raises ShapeError.
    """
    matrix = view.matrix(name)
    (count, width), (down, along) = matrix.shape, matrix.strides
    if along != 1 and width > 1 and view.size:
        raise apart(name, view)
    return count, width, down


def row_step(name: str, view: Buffer) -> int:
    """Elements from row to row, 0 where there is one, of rows of stride 1. Raises ShapeError."""
    count, _, down = rows_of(name, view)
    alignment(name, view, 0)
    return down if count > 1 else 0


def rows_apart(b: Any, x: Buffer) -> Buffer:
    """``x`` if its rows are evenly spaced, apart and of stride 1, else a copy."""
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
    """``x`` if its matrices, or their transposes, have rows of stride 1 apart, else a copy."""
    if b.abstract or x.contiguous or len(x.shape) < 2:
        return x
    (*_, down, along), (*_, m, n) = x.strides, x.shape
    if (along == 1 and down >= n) or (down == 1 and along >= m):
        return x
    return b.contiguous(x)  # type: ignore[no-any-return]


def results(out: Buffer | tuple[Buffer, ...] | None, count: int) -> tuple[Buffer | None, ...]:
    """The memory of ``count`` results. Raises OptionError for another number of arrays."""
    if out is None:
        return (None,) * count
    several = out if isinstance(out, tuple) else (out,)
    if len(several) != count:
        takes = "one array" if count == 1 else f"a tuple of {count} arrays, one a result"
        raise OptionError(f"out is {len(several)} arrays; takes {takes}")
    return several


def single(out: Buffer | tuple[Buffer, ...] | None) -> Buffer | None:
    """The memory of the one result."""
    return results(out, 1)[0]


def axis_of(name: str, x: Strided, axis: int, what: str = "axis") -> int:
    """``axis`` of ``x``, counted from the first. Raises ShapeError for one that x does not have."""
    rank = len(x.shape)
    if not -rank <= axis < rank:
        raise ShapeError(f"{what} is {axis}; {name} has shape {list(x.shape)}")
    return axis % rank
