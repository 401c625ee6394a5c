"""Scratch memory of kernels, reused in stream order.

Scratch belongs to a *lane* (:meth:`Device.lane`): a stream, or one capture on a stream.
Work of one lane never overlaps in time, so consecutive launches may share a buffer.

No buffer is freed automatically: freeing would have to wait for enqueued work, and a
captured graph may be replayed at any time. A buffer that became too small is kept;
since capacities at least double, all outgrown buffers together are smaller than
the newest. Each captured graph has buffers of its own, because it may be replayed on any
stream, next to eager work on the stream that captured it. :meth:`Workspace.release` frees
all buffers, once the caller knows that no work will use them.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Protocol

from ptxgen.locks import Lock

SMALLEST = 1 << 20
"""Least size of a scratch buffer, in bytes."""


class Memory(Protocol):
    """The part of :class:`ptxgen.runtime.device.Device` that a workspace uses."""

    def lane(self, stream: int) -> Hashable:
        """Returns a key of the queue behind ``stream``. Work with one key never overlaps in time,
        so it may share a buffer.
        """

    def alloc(self, nbytes: int) -> int:
        """Allocates device memory."""

    def free(self, ptr: int) -> None:
        """Frees device memory that :meth:`alloc` returned."""

    def synchronize(self, stream: int | None = None) -> None:
        """Waits for ``stream``, or for the whole device."""


@dataclass(frozen=True, slots=True)
class Scratch:
    """A buffer of scratch memory: device address and size in bytes."""

    ptr: int
    nbytes: int


class Workspace:
    """The scratch buffers of one device, which kernels reuse. Thread-safe."""

    def __init__(self, device: Memory) -> None:
        self._device = device
        self._idle: dict[Hashable, list[Scratch]] = {}
        self._all: list[Scratch] = []
        self._lock = Lock()

    @property
    def nbytes(self) -> int:
        """Device memory of all scratch buffers, in bytes."""
        return sum(scratch.nbytes for scratch in self._all)

    def borrow(self, stream: int, nbytes: int) -> tuple[list[Scratch], Scratch]:
        """Returns the stream's list of idle buffers, and a buffer of at least ``nbytes`` from it.

        Append the buffer to the list as soon as the work that uses it has been enqueued. Without an
        idle buffer of that size one is allocated, which is allowed during capture.
        """
        lane = self._device.lane(stream)
        idle = self._idle.get(lane)
        if idle is None:
            idle = self._idle.setdefault(lane, [])
        try:
            scratch = idle.pop()  # atomic: of two threads on one lane each gets its own
        except IndexError:
            return idle, self._allocate(max(nbytes, SMALLEST))
        if scratch.nbytes < nbytes:  # outgrown: kept in _all, never lent again
            return idle, self._allocate(max(nbytes, 2 * scratch.nbytes))
        return idle, scratch

    def _allocate(self, nbytes: int) -> Scratch:
        scratch = Scratch(self._device.alloc(nbytes), nbytes)
        with self._lock:
            self._all.append(scratch)
        return scratch

    def release(self) -> None:
        """Waits for the device and frees all scratch buffers.

        The caller guarantees that no other thread is launching, and that no captured graph that
        uses scratch memory will be replayed again.
        """
        self._device.synchronize()
        with self._lock:
            self._idle.clear()
            while self._all:
                self._device.free(self._all.pop().ptr)
