"""Dependencies between steps, found from the bytes that each step reads and writes.

A step waits for the last step that wrote a byte that it reads or writes (RAW, WAW). A step that
writes a byte also waits for the steps that have read it since (WAR). Nothing else orders steps. The
byte ranges are those of a plan, with the offsets of temporaries and of scratch memory. So reused
arena bytes, and arguments that share memory, order steps without further rules.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple


class Touch(NamedTuple):
    """A byte range [low, high) that a step reads or writes (``written``), relative to the address
    of a slot: an input, a result or the arena.
    """

    slot: int
    low: int
    high: int
    written: bool


def before(steps: Sequence[Sequence[Touch]], addresses: Sequence[int]) -> list[set[int]]:
    """Returns for each step the earlier steps that it waits for directly: the last writers of the
    bytes that it touches, and the steps that have since read bytes that it writes.

    ``steps``: the byte ranges of each step; ``addresses``: the address of each slot.
    """
    ranges = [
        [(addresses[t.slot] + t.low, addresses[t.slot] + t.high, t.written) for t in touches]
        for touches in steps
    ]
    cuts = sorted({end for own in ranges for low, high, _ in own for end in (low, high)})
    writer = [-1] * len(cuts)  # the last step that wrote the bytes from each cut to the next
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
