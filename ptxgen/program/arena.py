"""One allocation for all that lives while a program runs: offsets by lifetimes.

A piece lives from the first step that touches it to the last. Pieces that never live at once may
share bytes. Placed largest first, each at the lowest offset that is free for as long as it lives,
which is the greedy-by-size order of Pisarchyk and Lee (Efficient memory management for deep neural
net inference, 2020). Where that takes more bytes than live at once, other orders are tried: by size
times steps, and by steps; then the best of these is mended: the piece that ends last in memory is
placed before one that is in its way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ptxgen.errors import SpecError

UNIT = 256
"""Pieces begin at multiples of this, bytes, as allocations of CUDA do."""
ROOM = 1.05
"""Of what lives at once, the bytes that pieces may take so that they lie apart."""
TRIES, WORK = 60, 10_000_000
"""How often an order is mended, at most, and how many pairs of pieces may be looked at for it."""


class Piece(NamedTuple):
    """Bytes that are needed from step ``first`` to step ``last``, both included."""

    nbytes: int
    first: int
    last: int


def place(pieces: Iterable[Piece]) -> tuple[tuple[int, ...], int]:
    """An offset for each piece, and the bytes of all."""
    given = list(pieces)
    bound, found, best = least(given), None, []
    for key in (_size, _area, _length):
        order = sorted(range(len(given)), key=lambda i: (key(given[i]), given[i].first, i))
        made = _placed(given, order)
        if found is None or made[1] < found[1]:
            found, best = made, order
        if found[1] == bound:
            break
    assert found is not None, "there are orders"
    made = found
    for number in range(min(TRIES, WORK // max(1, len(given)) ** 2)):
        if found[1] == bound or not _mended(given, best, *made, nearest=number % 2 == 1):
            break
        made = _placed(given, best)
        found = made if made[1] < found[1] else found
    return found


def place_apart(pieces: Sequence[Piece], steps: int) -> tuple[tuple[int, ...], int]:
    """As :func:`place`; then each piece, small ones first, is put where no other is in so many
    steps before and behind it, if there is such a place within :data:`ROOM`. So steps next to each
    other wait less for memory.
    """
    found, nbytes = place(pieces)
    offsets, room = list(found), max(nbytes, ROOM * least(pieces))
    for i in sorted(range(len(pieces)), key=lambda i: _units(pieces[i])) if steps else ():
        others = (j for j in range(len(pieces)) if j != i)
        at = _lowest(pieces, offsets, others, pieces[i], steps)
        if at + _units(pieces[i]) <= room:
            offsets[i] = at
    return tuple(offsets), _end(pieces, offsets)


def _mended(
    given: Sequence[Piece], order: list[int], offsets: Sequence[int], total: int, nearest: bool
) -> bool:
    """Moves the piece that ends last in memory before the first that lives as it does, or the
    nearest. False if there is none before it.
    """
    last = next(i for i, one in enumerate(given) if offsets[i] + _units(one) == total)
    one, at = given[last], order.index(last)
    before = [
        place
        for place, i in enumerate(order[:at])
        if given[i].first <= one.last and one.first <= given[i].last
    ]
    if before:
        order.insert(before[-1 if nearest else 0], order.pop(at))
    return bool(before)


def _size(piece: Piece) -> tuple[int, ...]:
    return (-_units(piece),)


def _area(piece: Piece) -> tuple[int, ...]:
    return -_units(piece) * (piece.last - piece.first + 1), -_units(piece)


def _length(piece: Piece) -> tuple[int, ...]:
    return piece.first - piece.last, -_units(piece)


def _units(piece: Piece) -> int:
    """The bytes that a piece takes."""
    return -(-max(piece.nbytes, 1) // UNIT) * UNIT


def _placed(given: Sequence[Piece], order: Iterable[int]) -> tuple[tuple[int, ...], int]:
    """Each where it is free, in this order."""
    offsets = [0] * len(given)
    placed: list[int] = []
    for i in order:
        offsets[i] = _lowest(given, offsets, placed, given[i])
        placed.append(i)
    return tuple(offsets), _end(given, offsets)


def _lowest(
    given: Sequence[Piece],
    offsets: Sequence[int],
    placed: Iterable[int],
    one: Piece,
    apart: int = 0,
) -> int:
    """The lowest offset that is free for ``one`` among those ``placed``, as long as it lives, and
    ``apart`` steps before and behind that.
    """
    first, last, nbytes = one.first - apart, one.last + apart, _units(one)
    taken = sorted(
        (offsets[j], offsets[j] + _units(given[j]))
        for j in placed
        if given[j].first <= last and first <= given[j].last
    )
    at = 0
    for low, high in taken:
        if at + nbytes <= low:
            break
        at = max(at, high)
    return at


def _end(given: Sequence[Piece], offsets: Sequence[int]) -> int:
    """The bytes of all."""
    return max((o + _units(p) for o, p in zip(offsets, given, strict=True)), default=0)


def least(pieces: Iterable[Piece]) -> int:
    """The bytes that live at once at some step: no placing needs fewer."""
    given = list(pieces)
    return max(
        (
            sum(_units(p) for p in given if p.first <= at <= p.last)
            for at in {p.first for p in given}
        ),
        default=0,
    )


def check(pieces: Iterable[Piece], offsets: Iterable[int]) -> None:
    """Raises SpecError, naming both, where two pieces that live at once share a byte."""
    placed = list(zip(pieces, offsets, strict=True))
    for i, (a, at) in enumerate(placed):
        for b, other in placed[:i]:
            together = a.first <= b.last and b.first <= a.last
            if together and at < other + b.nbytes and other < at + a.nbytes:
                raise SpecError(f"{a} at {at} and {b} at {other} live at once and share bytes")
