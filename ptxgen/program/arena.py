"""The arena: one allocation for all temporaries of a program, with offsets by liveness.

A piece is live from the first step that touches it to the last. Pieces that are never live at the
same time may share bytes. Pieces are placed largest first, each at the lowest offset that is free
while it is live: the greedy-by-size order of Pisarchyk and Lee (Efficient memory management for
deep neural net inference, 2020). If the arena exceeds the peak of live bytes, two other orders are
tried: by size times lifetime, and by lifetime. A local search then improves each order: it swaps a
piece at the top of the arena, or one below such a piece, with a piece that was placed before it and
is live at the same time. A swap is kept unless the arena grows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter
from random import Random
from typing import NamedTuple

from ptxgen.errors import SpecError

UNIT = 256
"""Alignment of the arena's pieces, bytes; that of CUDA's allocations."""
SLACK_MAX = 1.05
"""Ratio of an arena's bytes to the peak of live bytes (:func:`least`) that is good enough: the
local search ends at it, and pieces are moved to separate bytes up to it."""
TRIES, WORK = 60, 2_000_000
"""Limits of the local search: swaps tried for each order, and pairs of pieces visited in all.

It goes on past ``TRIES``, up to ``WORK``, while the smallest arena exceeds :data:`SLACK_MAX`.
"""


class Piece(NamedTuple):
    """A piece of the arena: ``nbytes`` bytes, live from step ``first`` through step ``last``."""

    nbytes: int
    first: int
    last: int


def place(pieces: Iterable[Piece]) -> tuple[tuple[int, ...], int]:
    """Places pieces in an arena. Returns the offset of each piece, and the arena's bytes."""
    given = list(pieces)
    bound, overlapping = least(given), _overlapping(given)
    found: list[_Order] = []
    for key in (_size, _area, _length):
        order = sorted(range(len(given)), key=lambda i: (key(given[i]), given[i].first, i))
        found.append(_Order(given, overlapping, order))
        if found[-1].nbytes == bound:
            break
    tries, rng = 0, Random(0)  # the same each time
    most = WORK // max(1, len(found) * sum(map(len, overlapping)))
    while (best := min(found, key=attrgetter("nbytes"))).nbytes > bound and tries < most:
        if tries >= TRIES and best.nbytes <= SLACK_MAX * bound:
            break
        for each in found:
            each.improve(rng)
        tries += 1
    return tuple(best.offsets), best.nbytes


def place_separated(pieces: Sequence[Piece], steps: int) -> tuple[tuple[int, ...], int]:
    """Places pieces as :func:`place` does, then moves pieces of nearby steps to separate bytes.

    Each piece, small ones first, moves to bytes that no piece uses within ``steps`` steps of its
    live range, if the arena then stays within :data:`SLACK_MAX`. Concurrent streams then wait less
    often for memory to become free.
    """
    found, nbytes = place(pieces)
    offsets, limit = list(found), max(nbytes, SLACK_MAX * least(pieces))
    for i in sorted(range(len(pieces)), key=lambda i: _units(pieces[i])) if steps else ():
        one = pieces[i]
        first, last = one.first - steps, one.last + steps
        others = (j for j, p in enumerate(pieces) if j != i and p.first <= last and first <= p.last)
        at = _lowest(((offsets[j], offsets[j] + _units(pieces[j])) for j in others), _units(one))
        if at + _units(one) <= limit:
            offsets[i] = at
    return tuple(offsets), max(
        (o + _units(p) for o, p in zip(offsets, pieces, strict=True)), default=0
    )


class _Order:
    """A placement of pieces in the arena, one after the other in a given order, each at its lowest
    free offset. Its result: ``offsets`` of the pieces, and ``nbytes`` of the arena.

    ``overlapping``: for each piece, the indices of the pieces that are live at the same time.
    """

    def __init__(
        self, given: Sequence[Piece], overlapping: Sequence[Sequence[int]], order: list[int]
    ) -> None:
        self._units, self._overlapping, self._order = [*map(_units, given)], overlapping, order
        self.offsets, self.nbytes = self._assigned(order)

    def _assigned(self, order: Sequence[int]) -> tuple[list[int], int]:
        units, found = self._units, [-1] * len(order)
        for i in order:
            occupied = (
                (found[j], found[j] + units[j]) for j in self._overlapping[i] if found[j] >= 0
            )
            found[i] = _lowest(occupied, units[i])
        return found, _end(units, found)

    def improve(self, rng: Random) -> None:
        """Swaps two pieces in the placement order, chosen at random; keeps the swap unless the
        arena grows.

        The first piece belongs to a stack of adjacent pieces that reaches the top of the arena. The
        second was placed before it and is live at the same time.
        """
        ends = [a + n for a, n in zip(self.offsets, self._units, strict=True)]
        stack = [i for i, end in enumerate(ends) if end == self.nbytes]
        for i in stack:
            below = (j for j in self._overlapping[i] if ends[j] == self.offsets[i])
            stack += (j for j in below if j not in stack)
        at = {i: place for place, i in enumerate(self._order)}
        pairs = [(i, j) for i in stack for j in self._overlapping[i] if at[j] < at[i]]
        if not pairs:
            return
        i, j = rng.choice(pairs)
        order = list(self._order)
        order[at[i]], order[at[j]] = j, i
        offsets, nbytes = self._assigned(order)
        if nbytes <= self.nbytes:
            self._order, self.offsets, self.nbytes = order, offsets, nbytes


def _end(units: Iterable[int], offsets: Iterable[int]) -> int:
    """Returns the bytes of an arena with pieces at ``offsets``; ``units``: their sizes, bytes."""
    return max((at + n for at, n in zip(offsets, units, strict=True)), default=0)


def _overlapping(given: Sequence[Piece]) -> list[list[int]]:
    """Returns, for each piece, the indices of the other pieces that are live at the same time."""
    return [
        [j for j, b in enumerate(given) if j != i and a.first <= b.last and b.first <= a.last]
        for i, a in enumerate(given)
    ]


def _lowest(occupied: Iterable[tuple[int, int]], nbytes: int) -> int:
    """Returns the lowest offset of ``nbytes`` free bytes. ``occupied``: ranges [low, high)."""
    at = 0
    for low, high in sorted(occupied):
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
    """Returns the bytes of a piece, rounded up to a multiple of :data:`UNIT`."""
    return -(-max(piece.nbytes, 1) // UNIT) * UNIT


def least(pieces: Iterable[Piece]) -> int:
    """Returns the peak of live bytes over all steps, a lower bound of the arena's bytes."""
    given = list(pieces)
    return max(
        (
            sum(_units(p) for p in given if p.first <= at <= p.last)
            for at in {p.first for p in given}
        ),
        default=0,
    )


def check(pieces: Iterable[Piece], offsets: Iterable[int]) -> None:
    """Raises SpecError, naming both, if two pieces that are live at the same time share a byte."""
    placed = list(zip(pieces, offsets, strict=True))
    for i, (a, at) in enumerate(placed):
        for b, other in placed[:i]:
            together = a.first <= b.last and b.first <= a.last
            if together and at < other + b.nbytes and other < at + a.nbytes:
                raise SpecError(f"{a} at {at} and {b} at {other} live at once and share bytes")
