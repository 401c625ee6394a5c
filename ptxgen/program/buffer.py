"""Buffers: shapes, strides and offsets of a program's arrays, before memory is allocated.

A :class:`Memory` is the allocation of an argument, a result or a temporary. A :class:`Buffer` is an
array in it; a view is another buffer of the same memory. So shapes, strides, alignment and sharing
are known when a program is built, and addresses are not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from ptxgen.errors import ShapeError
from ptxgen.numerics.dtype import PARTS, WHOLE
from ptxgen.runtime.strided import (
    Ints,
    Strided,
    contiguous_strides,
    extent,
    reshaped,
    spread,
)

INPUT, RESULT, TEMPORARY = "input", "result", "temporary"
ALIGN = 16
"""Alignment that kernels depend on, bytes: buffers record addresses modulo this."""


@dataclass(eq=False, slots=True)
class Memory:
    """One allocation of a program; its address is not known yet.

    ``role``: INPUT (the caller's), RESULT (returned to the caller) or TEMPORARY. ``low``: the
    address modulo 16; 0 if the program allocates it. ``written``: whether steps may write to an
    INPUT (passed for a result). ``constant``: whether an INPUT's contents belong to the program.
    ``nbytes``: bytes of a RESULT or TEMPORARY.
    """

    name: str
    role: str
    nbytes: int = 0
    low: int = 0
    written: bool = False
    natural: Buffer | None = None
    """The buffer that spans the memory, with the layout in which it is passed or allocated."""
    constant: bool = False

    def __repr__(self) -> str:
        return f"<{self.role} {self.name}>"


@dataclass(frozen=True, slots=True, eq=False)
class Buffer(Strided):
    """An array in a :class:`Memory`, ``offset`` bytes after its address. Strides count elements."""

    memory: Memory
    shape: Ints
    strides: Ints
    dtype: str
    offset: int = 0

    def __repr__(self) -> str:
        return f"<{self.memory.name} {self.dtype} {list(self.shape)}>"

    @property
    def address(self) -> int:
        """The first element's address modulo :data:`ALIGN`."""
        return (self.memory.low + self.offset) % ALIGN

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def whole(self) -> bool:
        """Whether this buffer is the whole array of its memory (:attr:`Memory.natural`), no other
        view.
        """
        return self.memory.natural is not None and self.same(self.memory.natural)

    def same(self, other: Buffer) -> bool:
        """Whether both buffers have the same memory, offset, shape, strides and dtype."""
        return self.memory is other.memory and (
            (self.shape, self.strides, self.dtype, self.offset)
            == (other.shape, other.strides, other.dtype, other.offset)
        )

    @property
    def footprint(self) -> int:
        """Bytes of the distinct elements: a dimension of stride 0 counts once."""
        pairs = zip(self.shape, self.strides, strict=True)
        return prod(n if step or not n else 1 for n, step in pairs) * self.itemsize

    def span(self) -> tuple[int, int]:
        """Returns the byte range [low, high) of the memory that holds all elements."""
        low, high = extent(self.shape, self.strides, self.itemsize)
        return self.offset + low, self.offset + high

    # -- views --------------------------------------------------------------------------------
    def laid(self, shape: Ints, strides: Ints) -> Buffer:
        """Returns a view with this shape and these strides that begins at the same element."""
        return replace(self, shape=shape, strides=strides)

    def reshaped(self, shape: Sequence[int]) -> Buffer | None:
        """Returns a view in another shape, of which one size may be -1; None if only a copy can
        have it. Raises ShapeError for another number of elements.
        """
        to = sizes(self.shape, shape)
        found = reshaped(self.shape, self.strides, to)
        return None if found is None else self.laid(to, found)

    def permuted(self, order: Sequence[int]) -> Buffer:
        """Returns a view with the dimensions in another order."""
        return self.laid(tuple(self.shape[i] for i in order), tuple(self.strides[i] for i in order))

    def moved(self, source: int, target: int) -> Buffer:
        """Returns a view with dimension ``source`` moved to position ``target``."""
        order = list(range(self.ndim))
        order.insert(target % self.ndim, order.pop(source % self.ndim))
        return self.permuted(order)

    def split(self, axis: int, inner: int) -> Buffer:
        """Returns a view with dimension ``axis`` split in two, the second of size ``inner``."""
        size, step = self.shape[axis], self.strides[axis]
        shape = (*self.shape[:axis], size // inner, inner, *self.shape[axis + 1 :])
        strides = (*self.strides[:axis], step * inner, step, *self.strides[axis + 1 :])
        return self.laid(shape, strides)

    def expanded(self, shape: Sequence[int]) -> Buffer:
        """Returns a view broadcast to a shape. Raises ShapeError if it does not broadcast."""
        to = tuple(shape)
        found = spread(self.shape, self.strides, to)
        if found is None:
            raise ShapeError(f"shape {list(self.shape)} does not broadcast to {list(to)}")
        return self.laid(to, found)

    def narrowed(self, axis: int, start: int, length: int, step: int = 1) -> Buffer:
        """Returns a view of ``length`` elements along ``axis``: ``start``, ``start + step``, ..."""
        axis %= self.ndim
        shape = (*self.shape[:axis], length, *self.shape[axis + 1 :])
        stride = self.strides[axis]
        strides = (*self.strides[:axis], stride * step, *self.strides[axis + 1 :])
        offset = self.offset + start * stride * self.itemsize
        return replace(self, shape=shape, strides=strides, offset=offset)

    def one(self, axis: int, index: int) -> Buffer:
        """Returns a view of one index along ``axis``, without that dimension."""
        found = self.narrowed(axis, index, 1)
        axis %= self.ndim
        return found.laid(
            (*found.shape[:axis], *found.shape[axis + 1 :]),
            (*found.strides[:axis], *found.strides[axis + 1 :]),
        )

    def as_real(self) -> Buffer:
        """Returns a view of complex numbers as pairs of real and imaginary parts, [..., 2]."""
        steps = (*(2 * s for s in self.strides), 1)
        return replace(self, shape=(*self.shape, 2), strides=steps, dtype=PARTS[self.dtype])

    def as_complex(self) -> Buffer | None:
        """Returns a view of pairs [..., 2] as complex numbers; None if only a copy can be one."""
        found = self.paired()
        if found is None:
            return None
        return replace(self, shape=found[0], strides=found[1], dtype=WHOLE[self.dtype])

    def unsqueezed(self, axis: int) -> Buffer:
        """Returns a view with a new dimension of size 1 at ``axis``."""
        axis %= self.ndim + 1
        return self.laid(
            (*self.shape[:axis], 1, *self.shape[axis:]),
            (*self.strides[:axis], 1, *self.strides[axis:]),
        )


def sizes(shape: Ints, to: Sequence[int]) -> Ints:
    """Returns shape ``to``, with -1 replaced by the size that ``shape`` implies; raises ShapeError
    for another number of elements.
    """
    count = known = 1
    for n in shape:
        count *= n
    for n in to:
        known *= n if n != -1 else 1
    found: list[Any] = [n if n != -1 else count // known if known else 0 for n in to]
    total = 1
    for n in found:
        total *= n
    if total != count:
        raise ShapeError(f"shape {list(shape)} has not as many elements as {list(to)}")
    return tuple(found)


def imagined(shape: Sequence[int], dtype: str) -> Buffer:
    """Returns a contiguous buffer outside any program, for inferring shapes and dtypes."""
    memory, of = Memory("", INPUT), tuple(shape)
    memory.natural = Buffer(memory, of, contiguous_strides(of), dtype)
    return memory.natural


def dense(memory: Memory, shape: Sequence[int], dtype: str) -> Buffer:
    """Returns a contiguous buffer that spans ``memory``, whose size and natural buffer it sets."""
    of = tuple(shape)
    found = Buffer(memory, of, contiguous_strides(of), dtype)
    memory.natural, memory.nbytes = found, found.nbytes
    return found
