"""Buffers: where the arrays of a program lie, before there is any memory.

A :class:`Memory` is one piece of memory: an argument's, a result's, or one that lives while the
program runs. A :class:`Buffer` is an array in it. A view is another buffer of the same memory. So
shapes, strides, alignment and sharing are known when a program is built, and addresses are not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from ptxgen.errors import ShapeError
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
"""Buffers know their address modulo this."""


@dataclass(eq=False, slots=True)
class Memory:
    """One piece of memory.

    ``role``: INPUT (the caller's), RESULT (handed to the caller) or TEMPORARY. ``low``: the address
    modulo 16, which allocators make 0. ``written``: of the caller's, whether it may be written to
    (it was given for a result). ``constant``: of the caller's, whether what is in it belongs to
    the program. ``nbytes``: of what the program allocates.
    """

    name: str
    role: str
    nbytes: int = 0
    low: int = 0
    written: bool = False
    natural: Buffer | None = None
    """All of it, as it is given or allocated."""
    constant: bool = False

    def __repr__(self) -> str:
        return f"<{self.role} {self.name}>"


@dataclass(frozen=True, slots=True, eq=False)
class Buffer(Strided):
    """An array in a memory, from ``offset`` bytes behind the memory's address on."""

    memory: Memory
    shape: Ints
    strides: Ints
    dtype: str
    offset: int = 0

    def __repr__(self) -> str:
        return f"<{self.memory.name} {self.dtype} {list(self.shape)}>"

    @property
    def address(self) -> int:
        """See :attr:`Strided.address`."""
        return (self.memory.low + self.offset) % ALIGN

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def whole(self) -> bool:
        """Whether it is all of its memory, as that is given or allocated."""
        return self.memory.natural is not None and self.same(self.memory.natural)

    def same(self, other: Buffer) -> bool:
        """Whether each element of one is the element of the other at its place."""
        return self.memory is other.memory and (
            (self.shape, self.strides, self.dtype, self.offset)
            == (other.shape, other.strides, other.dtype, other.offset)
        )

    @property
    def footprint(self) -> int:
        """Bytes of the elements, each once where several indices have it by a stride of 0."""
        pairs = zip(self.shape, self.strides, strict=True)
        return prod(n if step or not n else 1 for n, step in pairs) * self.itemsize

    def span(self) -> tuple[int, int]:
        """The bytes [low, high) of the memory that the elements lie between."""
        low, high = extent(self.shape, self.strides, self.itemsize)
        return self.offset + low, self.offset + high

    # -- views --------------------------------------------------------------------------------
    def laid(self, shape: Ints, strides: Ints) -> Buffer:
        """See :meth:`Strided.laid`."""
        return replace(self, shape=shape, strides=strides)

    def reshaped(self, shape: Sequence[int]) -> Buffer | None:
        """The same elements in another shape, of which one size may be -1; None where that takes a
        copy. Raises ShapeError for another number of elements.
        """
        to = sizes(self.shape, shape)
        found = reshaped(self.shape, self.strides, to)
        return None if found is None else self.laid(to, found)

    def permuted(self, order: Sequence[int]) -> Buffer:
        """The dimensions in another order."""
        return self.laid(tuple(self.shape[i] for i in order), tuple(self.strides[i] for i in order))

    def moved(self, source: int, target: int) -> Buffer:
        """One dimension moved to another place."""
        order = list(range(self.ndim))
        order.insert(target % self.ndim, order.pop(source % self.ndim))
        return self.permuted(order)

    def split(self, axis: int, inner: int) -> Buffer:
        """With dimension ``axis`` as two, the second of size ``inner``."""
        size, step = self.shape[axis], self.strides[axis]
        shape = (*self.shape[:axis], size // inner, inner, *self.shape[axis + 1 :])
        strides = (*self.strides[:axis], step * inner, step, *self.strides[axis + 1 :])
        return self.laid(shape, strides)

    def expanded(self, shape: Sequence[int]) -> Buffer:
        """Broadcast to a shape. Raises ShapeError where that cannot be."""
        to = tuple(shape)
        found = spread(self.shape, self.strides, to)
        if found is None:
            raise ShapeError(f"shape {list(self.shape)} does not broadcast to {list(to)}")
        return self.laid(to, found)

    def narrowed(self, axis: int, start: int, length: int, step: int = 1) -> Buffer:
        """``length`` elements along ``axis``, from ``start`` on, each ``step`` behind the last."""
        axis %= self.ndim
        shape = (*self.shape[:axis], length, *self.shape[axis + 1 :])
        stride = self.strides[axis]
        strides = (*self.strides[:axis], stride * step, *self.strides[axis + 1 :])
        offset = self.offset + start * stride * self.itemsize
        return replace(self, shape=shape, strides=strides, offset=offset)

    def one(self, axis: int, index: int) -> Buffer:
        """The elements of one index along ``axis``, which goes."""
        found = self.narrowed(axis, index, 1)
        axis %= self.ndim
        return found.laid(
            (*found.shape[:axis], *found.shape[axis + 1 :]),
            (*found.strides[:axis], *found.strides[axis + 1 :]),
        )

    def unsqueezed(self, axis: int) -> Buffer:
        """With a dimension of 1 at ``axis``."""
        axis %= self.ndim + 1
        return self.laid(
            (*self.shape[:axis], 1, *self.shape[axis:]),
            (*self.strides[:axis], 1, *self.strides[axis:]),
        )


def sizes(shape: Ints, to: Sequence[int]) -> Ints:
    """The shape ``to``, of which one size may be -1. Raises ShapeError for other elements."""
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
    """An array of no program, row by row: one that is only asked for its shape and dtype."""
    memory, of = Memory("", INPUT), tuple(shape)
    memory.natural = Buffer(memory, of, contiguous_strides(of), dtype)
    return memory.natural


def dense(memory: Memory, shape: Sequence[int], dtype: str) -> Buffer:
    """All of a memory that the program allocates, row by row."""
    of = tuple(shape)
    found = Buffer(memory, of, contiguous_strides(of), dtype)
    memory.natural, memory.nbytes = found, found.nbytes
    return found
