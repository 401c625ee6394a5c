"""Streams of a program: steps that wait for none of each other run beside each other.

:func:`schedule` gives each step a stream. One that waits for the last step of a stream goes on
there, on the first such stream: a chain stays where it is, and what nothing runs beside is on the
first. A step that waits for the last step of none begins another stream, as long as there are such.
Between streams, events say that a step has ended (:func:`enqueue`). A graph that is recorded of
this has the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from ptxgen.errors import OptionError, described
from ptxgen.program.depends import before
from ptxgen.program.execute import Enqueue, Fired, Plan, fire
from ptxgen.runtime import Device

STREAMS, STREAMS_MAX = 4, 128
"""Most streams of a program, by default and at all: no GPU runs more kernels at once."""
NEAR = 8
"""A step that is so many steps back has most likely ended: waiting for it costs nothing."""


class Placed(NamedTuple):
    """Where a step runs: the number of its stream, and the steps on others that it waits for."""

    stream: int
    waits: tuple[int, ...]


@dataclass(frozen=True)
class Schedule:
    """Where the steps of a program run. ``ends``: those on other streams that the first stream
    waits for when all has been enqueued.
    """

    steps: tuple[Placed, ...]
    ends: tuple[int, ...]

    @property
    def streams(self) -> int:
        """How many there are."""
        return len({each.stream for each in self.steps})


def checked(streams: Any) -> int:
    """``streams`` as an option. Raises OptionError."""
    if type(streams) is not int or not 1 <= streams <= STREAMS_MAX:
        raise OptionError(
            f"streams is {described(streams)}; takes an integer from 1 to {STREAMS_MAX}"
        )
    return streams


def schedule(before: Sequence[Collection[int]], streams: int) -> Schedule:
    """Gives each step one of at most ``streams`` streams. ``before``: the steps that each waits
    for. Each stream runs its steps in their order, so of another one only the last is waited for.
    """
    last = [-1] * streams  # of each stream, so far
    reached: list[list[int]] = []  # by a step that has ended: the last step of each stream
    placed: list[Placed] = []

    def waits(awaited: Collection[int], have: list[int]) -> tuple[int, ...]:
        """Those of ``awaited`` that are still to be waited for; ``have`` is what has ended then."""
        found = []
        for step in sorted(awaited, reverse=True):
            if step > have[placed[step].stream]:
                found.append(step)
                have[:] = map(max, have, reached[step])
        return tuple(found)

    for number, awaited in enumerate(before):
        ended = [-1] * streams
        for step in awaited:
            ended = list(map(max, ended, reached[step]))
        ended = [max(step, number - NEAR) for step in ended]
        free = (i for i, step in enumerate(last) if step <= ended[i])
        stream = next(free, last.index(min(last)))
        have = list(reached[last[stream]]) if last[stream] >= 0 else [-1] * streams
        found = waits(awaited, have)
        have[stream] = last[stream] = number
        placed.append(Placed(stream, found))
        reached.append(have)
    have = list(reached[last[0]]) if placed else []
    ends = waits([step for step in last if step >= 0], have)
    return Schedule(tuple(placed), ends)


def scheduled(steps: Sequence[Fired], where: Sequence[int], streams: int) -> Schedule:
    """Where planned steps run; ``where``: the addresses of all slots."""
    return schedule(before([step.touched for step in steps], where), streams)


def enqueue(
    of: Schedule, steps: Sequence[Callable[[int], None]], device: Device, *streams: int
) -> None:
    """Enqueues steps on streams, behind what is on the first one now. What is enqueued there later
    is behind all of them.
    """
    awaited = {*of.ends, *(step for each in of.steps for step in each.waits)}
    begin = device.event(streams[0]) if of.streams > 1 else None
    events: dict[int, Any] = {}
    begun = {0}
    for number, (step, (stream, waits)) in enumerate(zip(steps, of.steps, strict=True)):
        handle = streams[stream]
        if stream not in begun and not waits:
            device.wait(handle, begin)
        begun.add(stream)
        for each in waits:
            device.wait(handle, events[each])
        step(handle)
        if number in awaited:
            events[number] = device.event(handle)
    for each in of.ends:
        device.wait(streams[0], events[each])


class Streams:
    """Enqueues programs on the stream of a call; while :meth:`open`, on others beside it, too.

    ``most``: how many, all in all. ``used``: the most that a program has taken.
    """

    def __init__(self, most: int) -> None:
        self.most, self.used = most, 0
        self._beside: tuple[int, ...] | None = None

    @contextmanager
    def open(self, device: Device) -> Iterator[None]:
        """Has others on a device."""
        with device.streams(self.most - 1) as self._beside:
            try:
                yield
            finally:
                self._beside = None

    def enqueuing(self, plan: Plan, device: Device) -> Enqueue:
        """What enqueues the steps of a plan."""

        def enqueued(stream: int, where: Sequence[int]) -> None:
            if self._beside is None:
                for step in plan.steps:
                    fire(step, where, stream)
                return
            found = scheduled(plan.steps, where, self.most)
            self.used = max(self.used, found.streams)
            steps = [partial(fire, step, where) for step in plan.steps]
            enqueue(found, steps, device, stream, *self._beside)

        return enqueued
