"""Bytes of quantized weights in files, as data.

A file stores rows of a weight as blocks of bytes, in which codes, scales and offsets are
interleaved. :class:`Packing` names the bits of a block that make each item of each array of a
format (:mod:`ptxgen.numerics.weight_format`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType


@dataclass(frozen=True)
class Bits:
    """Bits of each item of an array: ``width`` bits of byte ``bytes[i]`` of the block, from bit
    ``shifts[i]`` on, are bits ``to`` and up of item i.
    """

    bytes: tuple[int, ...]
    shifts: tuple[int, ...]
    width: int
    to: int = 0


@dataclass(frozen=True)
class Packing:
    """Layout of a block of ``elements`` weights of one row in ``nbytes`` bytes of a file.

    ``arrays``: for each array of the format, the bits of its items, which lie in the order of the
    array; items of 16 bits are the bits of floats. ``less``: number that is subtracted from each
    item of an array, by name.
    """

    elements: int
    nbytes: int
    arrays: Mapping[str, tuple[Bits, ...]]
    less: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))


def bits(places: Iterable[tuple[int, int]], width: int, to: int = 0) -> Bits:
    """Returns :class:`Bits` from the (byte, shift) of each item."""
    found = tuple(places)
    return Bits(tuple(b for b, _ in found), tuple(s for _, s in found), width, to)


def halves(*starts: int) -> tuple[Bits, Bits]:
    """Returns the bits of 16-bit items, which start at bytes ``starts``, low byte first."""
    return bits(((at, 0) for at in starts), 8), bits(((at + 1, 0) for at in starts), 8, 8)


def whole(start: int, count: int) -> tuple[Bits]:
    """Returns the bits of ``count`` items of one byte, from byte ``start`` on."""
    return (bits(((start + i, 0) for i in range(count)), 8),)
