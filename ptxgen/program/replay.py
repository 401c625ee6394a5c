"""Replays: planned launches over memory of their own, as one CUDA graph.

A call copies its arrays to where the graph reads them, replays it, and copies the results. On the
CPU device, which has no graphs, the planned launches are carried out instead.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from functools import partial
from os import PathLike
from typing import Any

from ptxgen.errors import DeviceError, DtypeError, ShapeError, TraceError
from ptxgen.numerics.dtype import NAMES
from ptxgen.program import saved
from ptxgen.program.execute import fire
from ptxgen.program.invoke import refuse_gradients
from ptxgen.program.listing import Listing
from ptxgen.program.place import elements
from ptxgen.program.profiled import Profile, profiled
from ptxgen.program.recorded import Recorded
from ptxgen.program.registry import OPERATIONS
from ptxgen.program.step import Program
from ptxgen.program.streams import STREAMS, enqueue, scheduled
from ptxgen.runtime import Call, Device, DeviceArray
from ptxgen.runtime.arrays import ArrayView, download, empty, host_bits, host_empty, view

Made = tuple[ArrayView, Any]
"""An array on the device, and what the caller knows it as."""


class Replayed:
    """Launches that are replayed.

    ``program`` is what they carry out, ``nbytes`` what the one allocation has that its temporaries
    and scratch memory share. ``arguments`` are the arrays that are read, and ``results`` those that
    are written (None where nothing is returned). ``streams``: how many its graph has.

    Calls follow one another: they share this memory. On another stream than the last one, a call
    waits for that.
    """

    program: Program | Listing

    def __init__(
        self,
        of: Recorded,
        device: Device,
        stream: int,
        arrays: Sequence[Made],
        outside: Sequence[int],
        arena: tuple[int, Any] | None,
        streams: int,
    ) -> None:
        count = len(of.arguments)
        self._of, self._device, self._stream = of, device, stream
        self._lock = threading.Lock()
        self._own, self._found = ([seen for seen, _ in part] for part in _cut(arrays, count))
        self.arguments, found = (tuple(a for _, a in part) for part in _cut(arrays, count))
        self.results = tuple(None if i is None else found[i] for i in of.outputs)
        self.nbytes, self._keep = of.nbytes, arena
        where = [*(v.ptr for v in self._own), *outside, *(v.ptr for v in self._found)]
        self._where = [*where, *([arena[0]] if arena else [])]
        device.synchronize(stream)  # memory of its framework is of that stream
        self._steps = [partial(fire, step, self._where) for step in of.steps]
        schedule = scheduled(of.steps, self._where, streams)
        self.streams = max(schedule.streams, 1)
        work = partial(enqueue, schedule, self._steps, device)
        self._graph = device.recorded(work, self.streams)

    def __repr__(self) -> str:
        steps = len(self._of.steps)
        beside = f", {self.streams} streams" if self.streams > 1 else ""
        return f"<captured {self._of.name}: {steps} steps, {self.nbytes} bytes{beside}>"

    # -- calls --------------------------------------------------------------------------------
    def replay(self, stream: Any = None) -> None:
        """Replays the graph on what is in :attr:`arguments`; :attr:`results` have what it makes."""
        with self._lock:
            self._fire(Call({"argument 0": self.arguments[0]}, stream).stream)

    def _fire(self, stream: int) -> None:
        self._graph(stream)
        self._stream = stream

    def __call__(self, *given: Any, stream: Any = None) -> Any:
        """The results for arrays of the shapes and dtypes that were captured, as new arrays.

        Raises ShapeError, DtypeError and DeviceError, naming the argument, for other arrays.
        """
        if len(given) != len(self.arguments):
            raise TraceError(
                f"{self._of.name} was captured with {len(self.arguments)} arguments; "
                f"got {len(given)}"
            )
        named = {f"argument {i}": x for i, x in enumerate(given)}
        refuse_gradients(named)
        call = Call(named, stream)
        self._check(call)
        with self._lock:
            if call.stream != self._stream:
                call.device.order(call.stream, self._stream)
            if call.host:
                return self._of_host(call)
            seen = call.views.values()
            for each in zip(given, seen, self._own, self.arguments, strict=True):
                _brought(call, *each)
            self._fire(call.stream)
            found = [None if a is None else self._handed(call, a) for a in self.results]
        return found[0] if self._single else tuple(found)

    @property
    def _single(self) -> bool:
        return len(self._of.outputs) == 1

    def _check(self, call: Call) -> None:
        for (name, seen), own in zip(call.views.items(), self._own, strict=True):
            if seen.shape != own.shape:
                raise ShapeError(f"{name} has shape {list(seen.shape)}; takes {list(own.shape)}")
            if seen.dtype != own.dtype:
                raise DtypeError(f"{name} has dtype {seen.dtype}; takes {own.dtype}")
            if not (call.host or seen.contiguous or seen.dtype in NAMES):
                raise ShapeError(f"{name} has strides {list(seen.strides)}; pass a contiguous copy")
        self._check_place(call)

    def _check_place(self, call: Call) -> None:
        if call.device is not self._device:
            raise DeviceError(
                f"argument 0, in {call.lead.where}, is computed with on {call.device}; "
                f"{self._of.name} is on {self._device}"
            )

    def _handed(self, call: Call, array: Any) -> Any:
        """A copy of a result."""
        seen = view(array, "result", call.stream)
        made, give = empty(call.lead, seen.shape, seen.dtype, call.device, call.stream)
        if seen.size:
            call.device.copy(made.ptr, seen.ptr, seen.nbytes, call.stream)
        return give()

    def _of_host(self, call: Call) -> Any:
        import numpy

        device, keep = call.device, []
        for seen, own in self._host(call):
            packed = numpy.ascontiguousarray(host_bits(seen))
            keep.append(packed)
            if own.nbytes:
                device.copy_in(own.ptr, packed.ctypes.data, own.nbytes, call.stream)
        self._fire(call.stream)
        device.synchronize(call.stream)
        del keep
        found = [None if i is None else self._downloaded(call, i) for i in self._of.outputs]
        return found[0] if self._single else tuple(found)

    def _host(self, call: Call) -> Iterator[tuple[ArrayView, ArrayView]]:
        """Arrays in host memory, and where on the device they are read."""
        yield from zip(call.views.values(), self._own, strict=True)

    def _downloaded(self, call: Call, number: int) -> Any:
        found = self._found[number]
        array = host_empty(call.lead, found.shape, found.dtype)
        download(found, view(array, "out"), call.device, call.stream)
        return array

    def profile(self, *given: Any, rounds: int = 10, stream: Any = None) -> Profile:
        """What each step costs, computing the results for some arrays: on a GPU the median of
        ``rounds`` times, by events, each with a cold L2; on the CPU device what
        :func:`ptxgen.profile` counts.

        Raises as a call does.
        """
        self(*given, stream=stream)
        with self._lock:
            handle, listing = self._stream, self._listing()
            return profiled(listing, self._steps, self._graph, self._device, handle, rounds)

    # -- ahead of time ------------------------------------------------------------------------
    def save(self, path: str | PathLike[str], *, arrays: bool = True) -> None:
        """Writes a file that :func:`ptxgen.load` makes the same callable of, elsewhere too: the
        launches, their kernels as compiled, and where everything lies. ``arrays``: also what is in
        those that are read from outside, such as weights; without it they are given to ``load``.

        Raises SavedError where the file cannot be written.
        """
        found = self._contents() if arrays else None
        with self._lock:
            saved.write(path, self._of, self._listing(), self._device, found)

    def _listing(self) -> Listing:
        of = self.program
        return of if isinstance(of, Listing) else of.listing(self._device)

    def _contents(self) -> Iterator[Any]:
        """What is in the arrays from outside, as NumPy's arrays of bits, row by row."""
        for buffer, address in zip(self._of.outside, self._outer, strict=True):
            yield elements(buffer, self._device, address, self._stream)

    @property
    def _outer(self) -> Sequence[int]:
        count = len(self._own)
        return self._where[count : count + len(self._of.outside)]


class Owned(Replayed):
    """A program over memory of ptxgen's own. It takes arrays of any framework, those in host memory
    too, and returns such. ``arguments`` and ``results`` have ``__dlpack__``.

    ``outside``: where what it reads besides lies on its device, and what keeps that.
    """

    def __init__(
        self,
        of: Recorded,
        program: Program | Listing,
        device: Device,
        outside: Sequence[tuple[int, Any]] = (),
        stream: int = 0,
        streams: int = STREAMS,
    ) -> None:
        self.program = program
        if not of.arguments:
            raise TraceError(f"{of.name} has no inputs; takes a program that has")
        for b in of.arguments:
            if not b.contiguous or b.address:
                raise ShapeError(
                    f"{b.memory.name} has strides {list(b.strides)} and lies {b.address} bytes "
                    "behind a multiple of 16; takes programs whose inputs lie row by row"
                )
        made = [DeviceArray(device, b.shape, b.dtype, stream) for b in (*of.arguments, *of.results)]
        self._placed = placed = tuple(outside)
        arena = DeviceArray(device, (of.nbytes,), "uint8", stream) if of.nbytes else None
        super().__init__(
            of,
            device,
            stream,
            [(view(a, "own"), a) for a in made],
            [address for address, _ in placed],
            None if arena is None else (arena.ptr, arena),
            streams,
        )


def _cut(arrays: Sequence[Made], count: int) -> tuple[Sequence[Made], Sequence[Made]]:
    return arrays[:count], arrays[count:]


def _brought(call: Call, x: Any, seen: ArrayView, own: ArrayView, to: Any) -> None:
    """Copies an argument to where the graph reads it, unless it is there."""
    if seen.ptr == own.ptr or not seen.size:
        return
    if seen.contiguous:
        call.device.copy(own.ptr, seen.ptr, own.nbytes, call.stream)
    else:
        OPERATIONS["copy"].function(x, out=to, stream=call.stream)
