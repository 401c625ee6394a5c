"""Replays: planned launches as one CUDA graph, in memory of their own.

A call copies its arrays to the memory that the graph reads, replays the graph, and copies the
results. An argument that is written is read and written in the caller's memory, so there is a graph
for each combination of addresses of such arguments. The CPU device has no graphs and runs the
planned launches instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from os import PathLike
from typing import Any, NamedTuple, TypeGuard

from ptxgen.errors import DeviceError, DtypeError, ShapeError, TraceError
from ptxgen.locks import Lock
from ptxgen.numerics.dtype import NAMES
from ptxgen.program import saved
from ptxgen.program.execute import fire
from ptxgen.program.invoke import refuse_gradients
from ptxgen.program.listing import Listing
from ptxgen.program.place import elements
from ptxgen.program.profiled import Profile, profiled
from ptxgen.program.recorded import Recorded, is_dense_aligned, layout_fault
from ptxgen.program.registry import OPERATIONS
from ptxgen.program.step import Program
from ptxgen.program.streams import STREAMS, enqueue, scheduled
from ptxgen.runtime import Call, Device, DeviceArray
from ptxgen.runtime.arrays import ArrayView, download, empty, host_bits, host_empty, view

OwnedArray = tuple[ArrayView, Any]
"""A view of an array on the device, and the array object in the caller's framework."""
GRAPHS_MAX = 16
"""Most CUDA graphs of a program, one for each combination of addresses of written arguments."""


class Run(NamedTuple):
    """Functions that enqueue one step each (``steps``) or the whole graph (``all``) on a stream."""

    steps: Sequence[Callable[[int], None]]
    all: Callable[[int], None]


class Replayed:
    """A program that is replayed as a CUDA graph, or on the CPU device run again.

    A program that writes arguments has a graph for each combination of their addresses, recorded at
    its first call.

    ``program``: the program or its listing; ``nbytes``: bytes of the one allocation for temporaries
    and scratch memory. ``arguments``: the arrays that the graph reads (None for one that is
    written, which is the caller's); ``results``: the arrays that it writes (None for an output that
    is no array, or is an argument). ``streams``: number of streams of the graph.

    Calls share this memory, so they run one after the other, on any stream.
    """

    program: Program | Listing

    def __init__(
        self,
        of: Recorded,
        device: Device,
        stream: int,
        arrays: Sequence[OwnedArray],
        outside: Sequence[int],
        arena: tuple[int, Any] | None,
        streams: int,
    ) -> None:
        self._of, self._device, self._stream = of, device, stream
        self._lock = Lock()
        made = iter(arrays)
        given = [None if b.memory.written else next(made) for b in of.arguments]
        self._own = [None if one is None else one[0] for one in given]
        self.arguments = tuple(None if one is None else one[1] for one in given)
        rest = list(made)
        self._found, found = [seen for seen, _ in rest], [array for _, array in rest]
        self._first = len(given) + len(of.outside)
        self.results = tuple(
            found[i - self._first] if self._is_result(i) else None for i in of.outputs
        )
        self.nbytes, self._keep = of.nbytes, arena
        where = [0 if v is None else v.ptr for v in self._own]
        where += [*outside, *(v.ptr for v in self._found)]
        self._where = [*where, *([arena[0]] if arena else [])]
        device.synchronize(stream)  # the framework allocated memory on that stream
        self.streams, self._most = 1, streams
        self._runs: dict[tuple[int, ...], Run] = {}
        self._last = None if of.written else self._run(())

    def __repr__(self) -> str:
        steps = len(self._of.steps)
        beside = f", {self.streams} streams" if self.streams > 1 else ""
        return f"<captured {self._of.name}: {steps} steps, {self.nbytes} bytes{beside}>"

    def _is_result(self, output: int | None) -> TypeGuard[int]:
        """Whether ``output``, an entry of ``Recorded.outputs``, is the slot of a result: neither
        that of a written argument nor None.
        """
        return output is not None and output >= self._first

    def _run(self, addresses: tuple[int, ...]) -> Run:
        """Returns the graph for written arguments at ``addresses``, recorded at first use."""
        found = self._runs.get(addresses)
        if found is None:
            where = list(self._where)
            for slot, address in zip(self._of.written, addresses, strict=True):
                where[slot] = address
            steps = [partial(fire, step, where) for step in self._of.steps]
            schedule = scheduled(self._of.steps, where, self._most)
            self.streams = max(self.streams, schedule.streams)
            work = partial(enqueue, schedule, steps, self._device)
            if len(self._runs) >= GRAPHS_MAX:
                del self._runs[next(iter(self._runs))]
            found = self._runs[addresses] = Run(steps, self._device.recorded(work, self.streams))
        return found

    # -- calls --------------------------------------------------------------------------------
    def replay(self, stream: Any = None) -> None:
        """Replays the graph on the contents of :attr:`arguments`, and writes :attr:`results`.

        Raises TraceError if the program writes an argument: call it with all arguments instead.
        """
        for i in self._of.written:
            raise TraceError(f"{self._of.name} writes argument {i}; call it with all arguments")
        with self._lock:
            self._fire(Call({"argument 0": self.arguments[0]}, stream).stream)

    def _fire(self, stream: int, written: Sequence[ArrayView] = ()) -> None:
        self._last = self._run(tuple(seen.ptr for seen in written))
        self._last.all(stream)
        self._stream = stream

    def __call__(self, *given: Any, stream: Any = None) -> Any:
        """Returns the results for arrays of the captured shapes and dtypes, as new arrays. An
        argument that is written is updated in place; if it is returned, it is itself the result.

        Raises ShapeError, DtypeError and DeviceError, naming the argument, for other arrays; for
        one that is written also if it is read-only, not contiguous, not aligned to 16 bytes, shares
        memory with another argument, or is in host memory while a GPU computes.
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
                return self._run_on_host_arrays(call, given)
            call.stage()
            seen = list(call.views.values())
            for x, each, own, to in zip(given, seen, self._own, self.arguments, strict=True):
                if own is not None:
                    _copy_argument(call, x, each, own, to)
            self._fire(call.stream, [seen[i] for i in self._of.written])
            call.hold()
            made = [None if a is None else self._result_copy(call, a) for a in self.results]
            found = self._with_own(made, given)
        return found[0] if self._single else tuple(found)

    @property
    def _single(self) -> bool:
        return len(self._of.outputs) == 1

    def _with_own(self, made: Sequence[Any], given: Sequence[Any]) -> list[Any]:
        """Returns the outputs in order: arrays of ``made`` for results, and the caller's own arrays
        in ``given`` for arguments that are written and returned.
        """
        pairs = zip(self._of.outputs, made, strict=True)
        return [x if i is None or self._is_result(i) else given[i] for i, x in pairs]

    def _check(self, call: Call) -> None:
        for (name, seen), own in zip(call.views.items(), self._of.arguments, strict=True):
            if seen.shape != own.shape:
                raise ShapeError(f"{name} has shape {list(seen.shape)}; takes {list(own.shape)}")
            if seen.dtype != own.dtype:
                raise DtypeError(f"{name} has dtype {seen.dtype}; takes {own.dtype}")
            if not (call.host or seen.contiguous or seen.dtype in NAMES):
                raise ShapeError(f"{name} has strides {list(seen.strides)}; pass a contiguous copy")
        self._check_device(call)
        views = list(call.views.items())
        for name, seen in (views[i] for i in self._of.written):
            if call.host and self._device.kind == "cuda":
                raise DeviceError(
                    f"{name} is written, and in {seen.where}; takes an array on {self._device}"
                )
            if seen.readonly or seen.framework == "jax":
                raise ShapeError(f"{name} is written, and read-only; pass a writable array")
            if not is_dense_aligned(replace(seen, ptr=0) if call.host else seen):
                raise ShapeError(f"{name} is written, and {layout_fault(seen)}")
            for other, each in views:
                if other != name and seen.overlaps(each):
                    raise ShapeError(f"{name} is written, and shares memory with {other}")

    def _check_device(self, call: Call) -> None:
        if call.device is not self._device:
            raise DeviceError(
                f"argument 0, in {call.lead.where}, is computed with on {call.device}; "
                f"{self._of.name} is on {self._device}"
            )

    def _result_copy(self, call: Call, array: Any) -> Any:
        """Returns a copy of a result in a new array of the caller's framework."""
        seen = view(array, "result", call.stream)
        made, give = empty(call.lead, seen.shape, seen.dtype, call.device, call.stream)
        if seen.size:
            call.device.copy(made.ptr, seen.ptr, seen.nbytes, call.stream)
        return give()

    def _run_on_host_arrays(self, call: Call, given: Sequence[Any]) -> Any:
        import numpy

        device, keep, views = call.device, [], list(call.views.values())
        written = [views[i] for i in self._of.written]
        self._ours = ours = [call.upload(seen) for seen in written]  # for profiles, too
        for seen, own in self._host_copies(call):
            packed = numpy.ascontiguousarray(host_bits(seen))
            keep.append(packed)
            if own.nbytes:
                device.copy_in(own.ptr, packed.ctypes.data, own.nbytes, call.stream)
        self._fire(call.stream, ours)
        device.synchronize(call.stream)
        del keep
        for source, target in (*zip(ours, written, strict=True), *self._host_updates()):
            call.download(source, target)
        made = [self._downloaded(call, i) if self._is_result(i) else None for i in self._of.outputs]
        found = self._with_own(made, given)
        return found[0] if self._single else tuple(found)

    def _host_copies(self, call: Call) -> Iterator[tuple[ArrayView, ArrayView]]:
        """Yields pairs of an array in host memory and the device copy that the graph reads."""
        pairs = zip(call.views.values(), self._own, strict=True)
        yield from ((seen, own) for seen, own in pairs if own is not None)

    def _host_updates(self) -> Iterator[tuple[ArrayView, ArrayView]]:
        """Yields pairs of a device copy that the graph writes and the closed-over host array that
        is updated from it; none here, as only :class:`Captured` has such arrays.
        """
        return iter(())

    def _downloaded(self, call: Call, number: int) -> Any:
        found = self._found[number - self._first]
        array = host_empty(call.lead, found.shape, found.dtype)
        download(found, view(array, "out"), call.device, call.stream)
        return array

    def profile(self, *given: Any, rounds: int = 10, stream: Any = None) -> Profile:
        """Profiles each step of a call with these arrays: on a GPU the median of ``rounds`` times,
        by CUDA events, with a cold L2; on the CPU device the counts of :func:`ptxgen.profile`.
        Arguments that the program writes are written each time.

        Raises as a call does.
        """
        self(*given, stream=stream)
        with self._lock:
            handle, listing = self._stream, self._listing()
            assert self._last is not None, "it has just been called"
            steps, replay = self._last
            return profiled(listing, steps, replay, self._device, handle, rounds)

    # -- ahead of time ------------------------------------------------------------------------
    def save(self, path: str | PathLike[str], *, arrays: bool = True) -> None:
        """Writes a file from which :func:`ptxgen.load` makes the same callable, also on another
        machine: the launches, the compiled kernels, and all offsets. ``arrays``: whether
        closed-over arrays, such as weights, are in the file; if not, they are passed to ``load``.
        Constants of the program are always in the file.

        An older file is replaced atomically; a path of anything but a regular file is refused.
        Raises SavedError if the file cannot be written.
        """
        with self._lock:
            found = self._contents(arrays)
            saved.write(path, self._of, self._listing(), self._device, found)

    def _listing(self) -> Listing:
        of = self.program
        return of if isinstance(of, Listing) else of.listing(self._device)

    def _contents(self, all: bool) -> Iterator[Any]:
        """Yields the elements of each closed-over array, for a file: a contiguous NumPy array of
        their bits, or None for one to leave out. ``all``: whether to yield all arrays, not
        constants alone.
        """
        for buffer, address in zip(self._of.outside, self._outer, strict=True):
            asked = all or buffer.memory.constant
            yield elements(buffer, self._device, address, self._stream) if asked else None

    @property
    def _outer(self) -> Sequence[int]:
        count = len(self._own)
        return self._where[count : count + len(self._of.outside)]


class Owned(Replayed):
    """A program replayed over memory that ptxgen allocates. It takes arrays of any framework, also
    in host memory, and returns arrays of that framework. ``arguments`` and ``results`` support
    DLPack.

    ``outside``: the device address of each closed-over array, and the object that keeps it alive.
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
            if not is_dense_aligned(b):
                raise ShapeError(f"{of.name} reads {b}, which {layout_fault(b)}")
        made = [DeviceArray(device, b.shape, b.dtype, stream) for b in of.kept]
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


def _copy_argument(call: Call, x: Any, seen: ArrayView, own: ArrayView, to: Any) -> None:
    """Copies argument ``x``, whose view is ``seen``, to the memory that the graph reads, unless it
    is that memory. ``own``, ``to``: view and array of that memory.
    """
    if seen.ptr == own.ptr or not seen.size:
        return
    if seen.contiguous:
        call.device.copy(own.ptr, seen.ptr, own.nbytes, call.stream)
    else:
        OPERATIONS["copy"].function(x, out=to, stream=call.stream)
