"""The arena: one allocation for all temporaries of a program, with offsets by liveness.

A piece lives from the first step that touches it to the last. Pieces that never live at once may
share bytes. Pieces are placed largest first, each at the lowest offset that is free for as long as
it lives: the greedy-by-size order of Pisarchyk and Lee (Efficient memory management for deep neural
net inference, 2020). Where that takes more bytes than live at once, two other orders are tried: by
size times lifetime, and by lifetime. A local search then improves each order: it swaps a piece at
the top of the arena, or one below such a piece, with a piece that was placed before it and lives at
the same time. A swap is kept unless the arena grows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter
from random import Random
from typing import NamedTuple

from ptxgen.errors import SpecError

UNIT = 256
"""Alignment of pieces, bytes: that of CUDA's allocations."""
ROOM = 1.05
"""Largest accepted ratio of the arena's bytes to the bytes that live at once."""
TRIES, WORK = 60, 2_000_000
"""Swaps tried for each order, and most pairs of live pieces looked at for all swaps.

Swaps go on past ``TRIES``, up to ``WORK``, while the best order takes more than :data:`ROOM`.
"""


class Piece(NamedTuple):
    """Bytes that are needed from step ``first`` to step ``last``, both included."""

    nbytes: int
    first: int
    last: int


def place(pieces: Iterable[Piece]) -> tuple[tuple[int, ...], int]:
    """Returns the offset of each piece, and the bytes of the arena."""
    given = list(pieces)
    bound, near = least(given), _near(given)
    found: list[_Order] = []
    for key in (_size, _area, _length):
        order = sorted(range(len(given)), key=lambda i: (key(given[i]), given[i].first, i))
        found.append(_Order(given, near, order))
        if found[-1].nbytes == bound:
            break
    tries, drawn = 0, Random(0)  # the same each time
    most = WORK // max(1, len(found) * sum(map(len, near)))
    while (best := min(found, key=attrgetter("nbytes"))).nbytes > bound and tries < most:
        if tries >= TRIES and best.nbytes <= ROOM * bound:
            break
        for each in found:
            each.mend(drawn)
        tries += 1
    return tuple(best.offsets), best.nbytes


def place_apart(pieces: Sequence[Piece], steps: int) -> tuple[tuple[int, ...], int]:
    """Returns offsets and bytes as :func:`place` does, with pieces of nearby steps moved apart.

    Each piece, small ones first, moves to bytes that no piece uses within ``steps`` steps before
    or behind it, if there are such bytes within :data:`ROOM`. Steps on several streams then wait
    less often for memory to become free.
    """
    found, nbytes = place(pieces)
    offsets, room = list(found), max(nbytes, ROOM * least(pieces))
    for i in sorted(range(len(pieces)), key=lambda i: _units(pieces[i])) if steps else ():
        one = pieces[i]
        first, last = one.first - steps, one.last + steps
        others = (j for j, p in enumerate(pieces) if j != i and p.first <= last and first <= p.last)
        at = _lowest(((offsets[j], offsets[j] + _units(pieces[j])) for j in others), _units(one))
        if at + _units(one) <= room:
            offsets[i] = at
    return tuple(offsets), max(
        (o + _units(p) for o, p in zip(offsets, pieces, strict=True)), default=0
    )


class _Order:
    """Offsets of pieces that are placed in one order, and the bytes of the arena.

    ``near``: for each piece, the indices of the pieces that live at once with it.
    """

    def __init__(
        self, given: Sequence[Piece], near: Sequence[Sequence[int]], order: list[int]
    ) -> None:
        self._units, self._near, self._order = [*map(_units, given)], near, order
        self.offsets, self.nbytes = self._placed(order)

    def _placed(self, order: Sequence[int]) -> tuple[list[int], int]:
        units, found = self._units, [-1] * len(order)
        for i in order:
            taken = ((found[j], found[j] + units[j]) for j in self._near[i] if found[j] >= 0)
            found[i] = _lowest(taken, units[i])
        return found, _end(units, found)

    def mend(self, drawn: Random) -> None:
        """Swaps two pieces in the order; keeps the swap unless the arena grows.

        The first is a piece at the top of the arena, or one below such a piece; the second was
        placed before it and lives at the same time.
        """
        ends = [a + n for a, n in zip(self.offsets, self._units, strict=True)]
        stack = [i for i, end in enumerate(ends) if end == self.nbytes]
        for i in stack:
            below = (j for j in self._near[i] if ends[j] == self.offsets[i])
            stack += (j for j in below if j not in stack)
        at = {i: place for place, i in enumerate(self._order)}
        pairs = [(i, j) for i in stack for j in self._near[i] if at[j] < at[i]]
        if not pairs:
            return
        i, j = drawn.choice(pairs)
        order = list(self._order)
        order[at[i]], order[at[j]] = j, i
        offsets, nbytes = self._placed(order)
        if nbytes <= self.nbytes:
            self._order, self.offsets, self.nbytes = order, offsets, nbytes


def _end(units: Iterable[int], offsets: Iterable[int]) -> int:
    """Returns the bytes of an arena whose pieces have these sizes and offsets."""
    return max((at + n for at, n in zip(offsets, units, strict=True)), default=0)


def _near(given: Sequence[Piece]) -> list[list[int]]:
    """Returns for each piece the indices of the others that live at once with it."""
    return [
        [j for j, b in enumerate(given) if j != i and a.first <= b.last and b.first <= a.last]
        for i, a in enumerate(given)
    ]


def _lowest(taken: Iterable[tuple[int, int]], nbytes: int) -> int:
    """Returns the lowest offset with ``nbytes`` free bytes; ``taken`` has ranges [low, high)."""
    at = 0
    for low, high in sorted(taken):
        if at + nbytes <= low:
            break
        at = max(at, high)
    return at


def _size(piece: Piece) -> tuple[int, ...]:
    return (-_units(piece),)


def _area(piece: Piece) -> tuple[int, ...]:
    return -_units(piece) * (piece.last - piece.first + 1), -_units(piece)


def _length(piece: Piece) -> tuple[int, ...]:
    return piece.first - piece.last, -_units(piece)


def _units(piece: Piece) -> int:
    """Returns the bytes of a piece, rounded up to :data:`UNIT`."""
    return -(-max(piece.nbytes, 1) // UNIT) * UNIT


def least(pieces: Iterable[Piece]) -> int:
    """Returns the most bytes that live at one step: a lower bound of every arena."""
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
