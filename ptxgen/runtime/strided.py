"""Strided layouts: contiguity, byte extents, reshaping, broadcasting and overlap.

:class:`Strided` is the base class of arrays of the caller
(:class:`ptxgen.runtime.arrays.ArrayView`) and of buffers of programs
(:class:`ptxgen.program.buffer.Buffer`). Strides count elements.
"""

from __future__ import annotations

from math import prod
from typing import Self

from ptxgen.errors import ShapeError
from ptxgen.numerics.dtype import BYTES

Ints = tuple[int, ...]


class Strided:
    """Base class of arrays with ``shape``, ``strides`` (in elements) and ``dtype``."""

    __slots__ = ()
    shape: Ints
    strides: Ints
    dtype: str

    def laid(self, shape: Ints, strides: Ints) -> Self:
        """Returns a view from the same first element, with this shape and these strides."""
        raise NotImplementedError

    @property
    def address(self) -> int:
        """The first element's address, or a number equal to it modulo 16."""
        raise NotImplementedError

    @property
    def itemsize(self) -> int:
        """Bytes per element."""
        return BYTES[self.dtype]

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the elements, gaps not counted."""
        return self.size * self.itemsize

    @property
    def reach(self) -> int:
        """Bytes from the lowest to the highest byte of all elements, gaps included."""
        low, high = extent(self.shape, self.strides, self.itemsize)
        return high - low

    @property
    def contiguous(self) -> bool:
        """Whether the elements are row-major without gaps."""
        return is_contiguous(self.shape, self.strides)

    def paired(self) -> tuple[Ints, Ints] | None:
        """Returns shape and strides of a view as complex numbers of an array of pairs: the last
        dimension, of size 2 and stride 1, is left out, and the others count pairs. None if no view
        has these strides.
        """
        if not self.shape or self.shape[-1] != 2 or self.strides[-1] != 1:
            return None
        sized = zip(self.strides[:-1], self.shape[:-1], strict=True)
        steps = [0 if n <= 1 and s % 2 else s for s, n in sized]
        if any(s % 2 for s in steps) or self.address % (2 * self.itemsize):
            return None
        return self.shape[:-1], tuple(s // 2 for s in steps)

    def matrix(self, name: str) -> Self:
        """Returns a view as [rows, columns], with all leading dimensions flattened into rows.

        One dimension counts as one row. Raises ShapeError for no dimension, and for leading
        dimensions that one stride cannot describe.
        """
        if not self.shape:
            raise ShapeError(f"{name} has no dimensions; takes at least one")
        *leading, columns = self.shape
        rows = prod(leading)
        stride: int | None = None
        reach = 0  # the stride that the next outer dimension must have
        for step, size in zip(self.strides[-2::-1], leading[::-1], strict=True):
            if size == 1:
                continue
            if stride is None:
                stride = step
            elif step != reach and rows:
                raise ShapeError(
                    f"{name} has shape {list(self.shape)} and strides {list(self.strides)}: its "
                    "leading dimensions do not flatten into evenly spaced rows; pass a "
                    f"contiguous copy of {name}"
                )
            reach = step * size
        strides = (
            max(columns, 1) if stride is None else stride,
            self.strides[-1] if columns > 1 else 1,
        )
        return self.laid((rows, columns), strides)


def contiguous_strides(shape: Ints) -> Ints:
    """Returns row-major strides, in elements."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


def is_contiguous(shape: Ints, strides: Ints) -> bool:
    """Whether elements of this shape and these strides are row-major without gaps."""
    step = 1
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size == 0:
            return True
        if size != 1:
            if stride != step:
                return 0 in shape
            step *= size
    return True


def extent(shape: Ints, strides: Ints, itemsize: int) -> tuple[int, int]:
    """Returns the byte range [low, high) of all elements, relative to the first element."""
    low = high = 0
    for size, stride in zip(shape, strides, strict=True):
        if size == 0:
            return 0, 0
        reach = (size - 1) * stride
        if reach < 0:
            low += reach
        else:
            high += reach
    return low * itemsize, (high + 1) * itemsize


def reshaped(shape: Ints, strides: Ints, to: Ints) -> Ints | None:
    """Returns the strides of an array's view with shape ``to``; None if that takes a copy."""
    if prod(shape) == 0:
        return contiguous_strides(to)
    runs = [(1, 1)]  # (size, stride) of each run of dimensions that merge into one
    for n, step in zip(shape, strides, strict=True):
        size, outer = runs[-1]
        if n != 1 and outer == n * step:
            runs[-1] = size * n, step
        elif n != 1:
            runs.append((n, step))
    found: list[int] = []
    (rest, step), usual = runs.pop(), 1
    for n in reversed(to):
        if n == 1:  # a dimension of one element may have any stride
            found.append(usual)
            continue
        if rest == 1 and runs:
            rest, step = runs.pop()
        if rest % n:
            return None
        found.append(step)
        rest, step = rest // n, step * n
        usual = step
    return tuple(reversed(found))


def spread(shape: Ints, strides: Ints, to: Ints) -> Ints | None:
    """Returns the strides of an array broadcast to shape ``to``; None if it does not broadcast."""
    lead = len(to) - len(shape)
    if lead < 0:
        return None
    found = [0] * lead
    for size, stride, wanted in zip(shape, strides, to[lead:], strict=True):
        if size != wanted and size != 1:
            return None
        found.append(stride if size == wanted else 0)
    return tuple(found)


def steps(shape: Ints, strides: Ints) -> list[tuple[int, int]]:
    """Returns (absolute stride, size) of each dimension of more than one element, sorted."""
    pairs = zip(strides, shape, strict=True)
    return sorted((abs(stride), size) for stride, size in pairs if size > 1)


def overlaps_itself(shape: Ints, strides: Ints) -> bool:
    """Whether two elements of an array may share memory (zero strides, too short a pitch)."""
    reach = 1
    for stride, size in steps(shape, strides):
        if stride < reach:
            return prod(shape) > 0
        reach += stride * (size - 1)
    return False


def rows_of(shape: Ints, strides: Ints) -> tuple[int, int] | None:
    """Returns (row pitch, row width) in elements, if the array is dense rows with a constant pitch;
    else None.

    The pitch of a single row is 0.
    """
    outer = steps(shape, strides)
    width = 1
    while outer and outer[0][0] == width:
        width *= outer.pop(0)[1]
    if not outer:
        return 0, width
    pitch = expected = outer[0][0]
    for stride, size in outer:
        if stride != expected:
            return None
        expected = stride * size
    return (pitch, width) if pitch > width else None
