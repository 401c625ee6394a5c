"""Streams of a program, on which independent steps run concurrently.

:func:`schedule` gives each step a stream. A step that waits for the last step of a stream follows
it there (on the first such stream), so a chain of steps stays on one stream, and a program without
parallelism uses only the first. Other steps start another stream, while there are unused ones.
Events order steps across streams (:func:`enqueue`). A graph that is captured from these streams has
the same order.
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
"""Default and largest number of a program's streams: no GPU runs more kernels concurrently."""
NEAR = 8
"""Number of steps after which :func:`schedule` assumes that a step has ended: a stream whose last
step is that far back counts as free."""


class Assignment(NamedTuple):
    """The stream index of a step, and the steps on other streams that it waits for."""

    stream: int
    waits: tuple[int, ...]


@dataclass(frozen=True)
class Schedule:
    """The streams of a program's steps. ``steps``: for each step its stream, and the steps on other
    streams that it waits for; ``ends``: the steps on other streams that the first stream waits for
    at the end.
    """

    steps: tuple[Assignment, ...]
    ends: tuple[int, ...]

    @property
    def streams(self) -> int:
        """Number of streams that the schedule uses."""
        return len({each.stream for each in self.steps})


def checked(streams: Any) -> int:
    """Returns ``streams`` if it is an int from 1 to 128. Raises OptionError."""
    if type(streams) is not int or not 1 <= streams <= STREAMS_MAX:
        raise OptionError(
            f"streams is {described(streams)}; takes an integer from 1 to {STREAMS_MAX}"
        )
    return streams


def schedule(before: Sequence[Collection[int]], streams: int) -> Schedule:
    """Assigns each step to one of at most ``streams`` streams.

    ``before``: the steps that each step waits for. A stream runs its steps in order, so a step
    waits only for the last of its predecessors on each other stream.
    """
    last = [-1] * streams  # the last step of each stream, so far
    reached: list[list[int]] = []  # by step: the last step of each stream ended by then
    assigned: list[Assignment] = []

    def waits(awaited: Collection[int], have: list[int]) -> tuple[int, ...]:
        """Returns the steps in ``awaited`` that have not ended; ``have``: the last that have."""
        found = []
        for step in sorted(awaited, reverse=True):
            if step > have[assigned[step].stream]:
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
        assigned.append(Assignment(stream, found))
        reached.append(have)
    have = list(reached[last[0]]) if assigned else []
    ends = waits([step for step in last if step >= 0], have)
    return Schedule(tuple(assigned), ends)


def scheduled(steps: Sequence[Fired], addresses: Sequence[int], streams: int) -> Schedule:
    """Returns the schedule of planned steps on at most ``streams`` streams; ``addresses``: the
    addresses of all slots, by which steps that touch the same bytes are found.
    """
    return schedule(before([step.touched for step in steps], addresses), streams)


def enqueue(
    of: Schedule, steps: Sequence[Callable[[int], None]], device: Device, *streams: int
) -> None:
    """Enqueues the steps of a program, each on the stream that its schedule says, with events where
    a step waits for another stream. Earlier and later work on the first stream is ordered before
    and after all steps.

    ``steps``: functions that enqueue one step on a stream; ``streams``: their handles.
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
    """Enqueues programs on the stream of a call, and inside :meth:`open` also on more streams.

    ``most``: largest number of streams in all. ``used``: the most that a program has used.
    """

    def __init__(self, most: int) -> None:
        self.most, self.used = most, 0
        self._extra: tuple[int, ...] | None = None

    @contextmanager
    def open(self, device: Device) -> Iterator[None]:
        """Creates ``most - 1`` more streams on a device, for programs enqueued inside."""
        with device.streams(self.most - 1) as self._extra:
            try:
                yield
            finally:
                self._extra = None

    def enqueuing(self, plan: Plan, device: Device) -> Enqueue:
        """Returns a function that enqueues a plan, given a stream and all slots' addresses."""

        def enqueued(stream: int, addresses: Sequence[int]) -> None:
            if self._extra is None:
                for step in plan.steps:
                    fire(step, addresses, stream)
                return
            found = scheduled(plan.steps, addresses, self.most)
            self.used = max(self.used, found.streams)
            steps = [partial(fire, step, addresses) for step in plan.steps]
            enqueue(found, steps, device, stream, *self._extra)

        return enqueued
