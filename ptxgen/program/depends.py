"""Which steps wait for which, by the memory that they touch.

Nothing else orders steps. A step waits for the last that wrote a byte which it touches; one that
writes also waits for those that have read the byte since. Ranges are those of a plan, in which
temporaries and scratch memory of kernels have their places. So bytes that are used again order
steps by themselves, and so do arguments that share memory.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple


class Touch(NamedTuple):
    """The bytes [low, high) behind the address of a slot, which a step reads, or writes."""

    slot: int
    low: int
    high: int
    written: bool


def before(steps: Sequence[Sequence[Touch]], where: Sequence[int]) -> list[set[int]]:
    """For each step the earlier ones that must have ended before it begins; not all those that come
    before these. ``where``: the addresses of all slots.
    """
    ranges = [
        [(where[t.slot] + t.low, where[t.slot] + t.high, t.written) for t in touches]
        for touches in steps
    ]
    cuts = sorted({end for own in ranges for low, high, _ in own for end in (low, high)})
    writer = [-1] * len(cuts)  # of the bytes from each cut to the next
    readers: list[set[int]] = [set() for _ in cuts]
    found = []
    for number, own in enumerate(ranges):
        parts = [
            (part, written)
            for low, high, written in own
            for part in range(bisect_left(cuts, low), bisect_left(cuts, high))
        ]
        awaited = {writer[part] for part, _ in parts}
        awaited.update(*(readers[part] for part, written in parts if written))
        found.append(awaited - {-1})
        for part, written in parts:
            if written:
                writer[part] = number
                readers[part].clear()
        for part, written in parts:
            if not written:
                readers[part].add(number)
    return found
