"""Replays of many batches in host memory, whose copies overlap the kernels of other batches.

Two slots take turns. Each has a stream for its copies, page-locked (pinned) host memory and device
memory for the arguments and results of a batch. While the stream of the calls computes a batch, the
stream of the other slot downloads the results before it, and uploads the arguments behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from ptxgen.runtime import Call, Device, DeviceArray
from ptxgen.runtime.arrays import ArrayView, host_bits, host_empty, view

SLOTS = 2
"""Number of batches that are in memory at a time."""


class Work(NamedTuple):
    """Functions of one batch's replay, for arguments of one size.

    ``call``: the arrays of the batch; ``own``, ``found``: the replay's arguments, and the result of
    each output, on the device; ``turn``: context manager in which a stream has this memory to
    itself; ``fire``: enqueues the replay on a stream; ``formed``: makes of the results' host arrays
    what the caller receives. ``key``: equal for batches of one size.
    """

    key: Any
    call: Call
    own: Sequence[ArrayView]
    found: Sequence[ArrayView]
    turn: Callable[[int], AbstractContextManager[None]]
    fire: Callable[[int], None]
    formed: Callable[[Sequence[Any]], Any]


class Staging:
    """Pinned host memory and device memory for one array."""

    def __init__(self, device: Device, of: ArrayView) -> None:
        self.of = of
        self.host, self._keep = device.pinned(max(of.nbytes, 1))
        self.device = DeviceArray(device, of.shape, of.dtype)

    @property
    def bits(self) -> Any:
        """The pinned memory as a contiguous NumPy array of unsigned integers."""
        return host_bits(view_of(self.of, self.host))


def view_of(like: ArrayView, address: int) -> ArrayView:
    """Returns a view of host memory with the contiguous layout of ``like``."""
    rest = "host", 0, False, "numpy", None
    return ArrayView(address, like.shape, like.packed.strides, like.dtype, *rest)


class Slot:
    """A stream for copies, and the staging memory of batches by their size."""

    def __init__(self, device: Device, stream: int) -> None:
        self._device, self._stream = device, stream
        self._staged: dict[Any, tuple[list[Staging], list[Staging]]] = {}
        self._pending: Work | None = None

    def enqueue(self, work: Work, stream: int) -> None:
        """Enqueues the upload of a batch, its replay on ``stream``, and the download of its
        results.
        """
        device, own = self._device, self._stream
        if work.key not in self._staged:
            made = [Staging(device, each) for each in (*work.own, *work.found)]
            device.synchronize()  # memory is there for every stream
            self._staged[work.key] = made[: len(work.own)], made[len(work.own) :]
        arguments, results = self._staged[work.key]
        for seen, staged in zip(work.call.views.values(), arguments, strict=True):
            if seen.nbytes:
                staged.bits[...] = host_bits(seen)
                device.copy_in(staged.device.ptr, staged.host, seen.nbytes, own)
        device.order(stream, own)
        with work.turn(stream):
            for to, staged in zip(work.own, arguments, strict=True):
                if to.nbytes:
                    device.copy(to.ptr, staged.device.ptr, to.nbytes, stream)
            work.fire(stream)
            for source, staged in zip(work.found, results, strict=True):
                if source.nbytes:
                    device.copy(staged.device.ptr, source.ptr, source.nbytes, stream)
        device.order(own, stream)
        for source, staged in zip(work.found, results, strict=True):
            if source.nbytes:
                device.copy_out(staged.host, staged.device.ptr, source.nbytes, own)
        self._pending = work

    def finished(self) -> Iterator[Any]:
        """Waits for the batch that was enqueued, if any, and yields its results."""
        work, self._pending = self._pending, None
        if work is None:
            return
        self._device.synchronize(self._stream)
        made = []
        for staged in self._staged[work.key][1]:
            array = host_empty(work.call.lead, staged.of.shape, staged.of.dtype)
            host_bits(view(array, "out"))[...] = staged.bits
            made.append(array)
        yield work.formed(made)


def mapped(
    batches: Iterable[Any], work_of: Callable[[Any], Work], device: Device, stream: int
) -> Iterator[Any]:
    """Yields the results of each batch, in order, while the next is computed. ``work_of``: reads
    and checks a batch; ``stream``: the stream of the replays.
    """
    with device.streams(SLOTS) as handles:
        slots = [Slot(device, handle) for handle in handles]
        count = 0
        try:
            for count, batch in enumerate(batches, 1):
                slots[count % SLOTS].enqueue(work_of(batch), stream)
                yield from slots[(count + 1) % SLOTS].finished()
            for number in range(count + 1, count + 1 + SLOTS):
                yield from slots[number % SLOTS].finished()
        finally:
            device.synchronize(stream)
            for handle in handles:
                device.synchronize(handle)


def batch_arguments(batch: Any) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """Returns the arguments of a batch by position, and by name: of one array, a sequence of
    arrays, or a mapping.
    """
    if isinstance(batch, Mapping):
        return (), batch
    return (tuple(batch), {}) if isinstance(batch, tuple | list) else ((batch,), {})
