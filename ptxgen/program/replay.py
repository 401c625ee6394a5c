"""Replays: planned launches as one CUDA graph, in memory of their own.

A call copies its arrays to the memory that the graph reads, replays the graph, and copies the
results. An argument that is written is read and written in the caller's memory, so there is a graph
for each combination of addresses of such arguments. The CPU device has no graphs and runs the
planned launches instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from os import PathLike
from typing import Any, NamedTuple

from ptxgen.errors import DeviceError, DtypeError, ShapeError, TraceError, described, proposal
from ptxgen.locks import Lock
from ptxgen.numerics.dtype import NAMES
from ptxgen.program import feeds, saved, timeline
from ptxgen.program.buffer import Buffer
from ptxgen.program.execute import fire
from ptxgen.program.invoke import refuse_gradients
from ptxgen.program.listing import Listing
from ptxgen.program.mapped import Work, batch_arguments, mapped
from ptxgen.program.place import elements, placed
from ptxgen.program.profiled import Profile, profiled
from ptxgen.program.recorded import Recorded, is_dense_aligned, layout_fault
from ptxgen.program.registry import OPERATIONS
from ptxgen.program.step import Program
from ptxgen.program.streams import STREAMS, enqueue, scheduled
from ptxgen.runtime import Call, Device, DeviceArray, resolve
from ptxgen.runtime.arrays import (
    ArrayView,
    common_device,
    download,
    empty,
    host_bits,
    host_empty,
    view,
)

OwnedArray = tuple[ArrayView, Any]
"""A view of an array on the device, and the array object in the caller's framework."""
GRAPHS_MAX = 16
"""Most CUDA graphs of a program, one for each combination of addresses of written arguments."""


class Run(NamedTuple):
    """Functions that enqueue one step each (``steps``) or the whole graph (``all``) on a stream."""

    steps: Sequence[Callable[[int], None]]
    all: Callable[[int], None]


class Turn:
    """Lock of the memory that replays share, and the stream (a handle) of the latest replay."""

    __slots__ = ("lock", "stream")

    def __init__(self, stream: int) -> None:
        self.lock, self.stream = Lock(), stream


class Wanted(NamedTuple):
    """Outputs that a call returns: their indices (``chosen``), whether the caller chose them
    (``asked``), and the arrays that the caller passes for them (``out``: object and view, or None).
    """

    chosen: tuple[int, ...]
    asked: bool
    out: list[tuple[Any, ArrayView] | None]


class Replayed:
    """A program that is replayed as a CUDA graph, or on the CPU device run again.

    A program that writes arguments has a graph for each combination of their addresses, recorded at
    its first call; a call that asks for some outputs only has a graph of the steps that these need.

    ``program``: the program or its listing; ``nbytes``: bytes of the one allocation for temporaries
    and scratch memory. ``arguments``: the arrays that the graph reads (None for one that is
    written, which is the caller's); ``results``: the arrays that it writes (None for an output that
    is no array, or is an argument). ``inputs``, ``outputs``: names of the arguments, and of the
    outputs (none if the captured function returned no mapping). ``streams``: number of streams of
    the graph.

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
        turn: Turn | None = None,
    ) -> None:
        self._of, self._device, self._turn = of, device, turn or Turn(stream)
        made = iter(arrays)
        given = [None if b.memory.written else next(made) for b in of.arguments]
        self._own = [None if one is None else one[0] for one in given]
        self.arguments = tuple(None if one is None else one[1] for one in given)
        rest = list(made)
        self._found, found = [seen for seen, _ in rest], [array for _, array in rest]
        self._first = len(given) + len(of.outside)
        self.results = tuple(
            found[i - self._first] if of.is_result(i) else None for i in of.outputs
        )
        self.inputs, self.outputs = feeds.names(of), of.names
        self.nbytes, self._keep = of.nbytes, arena
        self._bound: dict[int, Any] = {}
        where = [0 if v is None else v.ptr for v in self._own]
        where += [*outside, *(v.ptr for v in self._found)]
        self._where = [*where, *([arena[0]] if arena else [])]
        device.synchronize(stream)  # the framework allocated memory on that stream
        self.streams, self._most = 1, streams
        timeline.from_environment()
        self._runs: dict[tuple[tuple[int, ...], tuple[int, ...]], Run] = {}
        self._last = None if of.written else self._run((), self._all)

    def __repr__(self) -> str:
        steps = len(self._of.steps)
        beside = f", {self.streams} streams" if self.streams > 1 else ""
        return f"<captured {self._of.name}: {steps} steps, {self.nbytes} bytes{beside}>"

    @property
    def _all(self) -> tuple[int, ...]:
        return tuple(range(len(self._of.steps)))

    def _run(self, addresses: tuple[int, ...], numbers: tuple[int, ...]) -> Run:
        """Returns the graph of the steps ``numbers`` for written arguments at ``addresses``,
        recorded at first use.
        """
        found = self._runs.get((addresses, numbers))
        if found is None:
            where = list(self._where)
            for slot, address in zip(self._of.written, addresses, strict=True):
                where[slot] = address
            chosen = [self._of.steps[i] for i in numbers]
            steps = [partial(fire, step, where) for step in chosen]
            schedule = scheduled(chosen, where, self._most)
            self.streams = max(self.streams, schedule.streams)
            work = partial(enqueue, schedule, steps, self._device)
            if len(self._runs) >= GRAPHS_MAX:
                del self._runs[next(iter(self._runs))]
            found = Run(steps, self._device.recorded(work, self.streams))
            self._runs[addresses, numbers] = found
        return found

    # -- calls --------------------------------------------------------------------------------
    def replay(self, stream: Any = None) -> None:
        """Replays the graph on the contents of :attr:`arguments`, and writes :attr:`results`.

        Raises TraceError if the program writes an argument: call it with all arguments instead.
        """
        for i in self._of.written:
            name = self.inputs[i]
            raise TraceError(f"{self._of.name} writes {name}; call it with all arguments")
        with self._turn.lock:
            self._fire(Call({self.inputs[0]: self.arguments[0]}, stream).stream)

    def _fire(
        self,
        stream: int,
        written: Sequence[ArrayView] = (),
        numbers: tuple[int, ...] | None = None,
    ) -> None:
        chosen = self._all if numbers is None else numbers
        self._last = self._run(tuple(seen.ptr for seen in written), chosen)
        recorded = timeline.recording()
        if recorded is None:
            self._last.all(stream)
        else:
            titles = [self._titles[i] for i in chosen]
            recorded.replay(self._of.name, titles, self._last.steps, self._device, stream)
        self._turn.stream = stream

    @property
    def _titles(self) -> list[str]:
        """Names of the steps: their operations."""
        if isinstance(self.program, Listing):
            return [line.what for line in self.program.steps]
        return [step.problem.what.split()[0] for step in self.program.steps]

    def __call__(
        self,
        *given: Any,
        stream: Any = None,
        out: Any = None,
        outputs: Sequence[str | int] | None = None,
        extent: int | None = None,
        **named: Any,
    ) -> Any:
        """Returns the results for arrays of the captured shapes and dtypes, as new arrays; a dict
        if the captured function returned one. An argument that is written is updated in place; if
        it is returned, it is itself the result.

        Arguments may be passed by the name of the function's parameter, or of the program's input.
        ``out``: an array to write the result to; for several results a tuple or a dict, as they are
        returned, with None for new arrays. It may be an argument that is only read. ``outputs``:
        names or indices of the outputs to return, in a dict or tuple. Only the steps that these
        need are launched, and those that write arguments or closed-over arrays. ``extent``: the
        size along the axis that ``capture(..., extent=)`` names; by default that of the arguments.
        Of longer arguments the first elements are read. Results have the shapes and bits of a
        capture of that size.

        Raises TraceError and OptionError for unknown and missing names; ShapeError, DtypeError and
        DeviceError, naming the argument, for other arrays; for one that is written also if it is
        read-only, not contiguous, not aligned to 16 bytes, shares memory with another argument, or
        is in host memory while a GPU computes.
        """
        found = feeds.matched(self._of, given, named)
        return self._called(found, stream, out, outputs, extent)

    def run(
        self,
        feed: Mapping[str, Any],
        outputs: Sequence[str | int] | None = None,
        *,
        out: Any = None,
        stream: Any = None,
        extent: int | None = None,
    ) -> Any:
        """Returns the results for the arrays in ``feed``, by name: as a call does, also for inputs
        that have the name of an option.
        """
        if not isinstance(feed, Mapping):
            raise TraceError(f"feed is a {type(feed).__qualname__}; takes a mapping of arrays")
        return self._called(feeds.matched(self._of, (), feed), stream, out, outputs, extent)

    def _resized(
        self, named: dict[str, Any], extent: int | None
    ) -> tuple[Replayed, dict[str, Any]]:
        """Returns the replay for the size of a call, and the arguments cut to it."""
        if extent is not None:
            raise TraceError(
                f"{self._of.name} has one size; extent takes a function captured with extent="
            )
        return self, named

    def _called(
        self,
        named: dict[str, Any],
        stream: Any,
        out: Any,
        outputs: Sequence[str | int] | None,
        extent: int | None,
    ) -> Any:
        resized, named = self._resized(named, extent)
        if resized is not self:
            return resized._called(named, stream, out, outputs, None)
        chosen, asked = feeds.selected(self._of, outputs), outputs is not None
        passed = feeds.targets(self._of, chosen, asked, out)
        refuse_gradients(named)
        call = Call(named, stream)
        self._check(call)
        wanted = Wanted(chosen, asked, self._targets(call, chosen, passed))
        numbers = self._of.needed(chosen) if asked else None
        given = list(named.values())
        with self._turn.lock:
            if call.stream != self._turn.stream:
                call.device.order(call.stream, self._turn.stream)
            if call.host:
                return self._run_on_host_arrays(call, given, wanted, numbers)
            call.stage()
            seen = list(call.views.values())
            for x, each, own, to in zip(given, seen, self._own, self.arguments, strict=True):
                if own is not None:
                    _copy_argument(call, x, each, own, to)
            self._fire(call.stream, [seen[i] for i in self._of.written], numbers)
            call.hold()
            return self._returned(call, given, wanted, self._result_copy)

    def _targets(
        self, call: Call, chosen: Sequence[int], passed: Sequence[Any]
    ) -> list[tuple[Any, ArrayView] | None]:
        """Returns object and view of each array that is passed for a result, checked."""
        read = tuple(b.memory.name for b in self._of.arguments if not b.memory.written)
        found: list[tuple[Any, ArrayView] | None] = []
        for i, x in zip(chosen, passed, strict=True):
            if x is None:
                found.append(None)
                continue
            name, slot = feeds.output_name(self._of, i), self._of.outputs[i]
            assert slot is not None, "feeds.targets refuses outputs that are no results"
            refuse_gradients({name: x})
            target, own = call.target(x, name, read), self._found[slot - self._first]
            if target.shape != own.shape:
                raise ShapeError(f"{name} has shape {list(target.shape)}; takes {list(own.shape)}")
            if target.dtype != own.dtype:
                raise DtypeError(f"{name} has dtype {target.dtype}; takes {own.dtype}")
            found.append((x, target))
        return found

    def _returned(
        self,
        call: Call,
        given: Sequence[Any],
        wanted: Wanted,
        copied: Callable[[Call, int, tuple[Any, ArrayView] | None], Any],
    ) -> Any:
        """Returns the wanted outputs: for results what ``copied`` returns of their index and their
        target, the caller's own array for an argument that is written and returned, and a copy of a
        closed-over array.
        """
        made: list[Any] = []
        for i, to in zip(wanted.chosen, wanted.out, strict=True):
            slot = self._of.outputs[i]
            if self._of.is_result(slot):
                made.append(copied(call, i, to))
            elif slot is None or slot < len(given):
                made.append(None if slot is None else given[slot])
            else:
                b = self._of.outside[slot - len(given)]
                made.append(self._contents_of(b, self._where[slot], call.stream, call))
        return feeds.formed(self._of, wanted.chosen, wanted.asked, made)

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
                f"{self.inputs[0]}, in {call.lead.where}, is computed with on {call.device}; "
                f"{self._of.name} is on {self._device}"
            )

    def _result_copy(self, call: Call, index: int, to: tuple[Any, ArrayView] | None) -> Any:
        """Returns a copy of result ``index`` in ``to``, or in a new array of the caller's
        framework.
        """
        slot = self._of.outputs[index]
        assert slot is not None, "the output is a result"
        seen = self._found[slot - self._first]
        if to is not None and not to[1].contiguous:
            OPERATIONS["copy"].function(self.results[index], out=to[0], stream=call.stream)
            return to[0]
        if to is not None:
            if seen.size:
                call.device.copy(to[1].ptr, seen.ptr, seen.nbytes, call.stream)
            return to[0]
        made, give = empty(call.lead, seen.shape, seen.dtype, call.device, call.stream)
        if seen.size:
            call.device.copy(made.ptr, seen.ptr, seen.nbytes, call.stream)
        return give()

    def _run_on_host_arrays(
        self,
        call: Call,
        given: Sequence[Any],
        wanted: Wanted,
        numbers: tuple[int, ...] | None,
    ) -> Any:
        import numpy

        device, keep, views = call.device, [], list(call.views.values())
        written = [views[i] for i in self._of.written]
        self._ours = ours = [call.upload(seen) for seen in written]  # for profiles, too
        for seen, own in self._host_copies(call):
            packed = numpy.ascontiguousarray(host_bits(seen))
            keep.append(packed)
            if own.nbytes:
                device.copy_in(own.ptr, packed.ctypes.data, own.nbytes, call.stream)
        self._fire(call.stream, ours, numbers)
        device.synchronize(call.stream)
        del keep
        for source, target in (*zip(ours, written, strict=True), *self._host_updates()):
            call.download(source, target)
        return self._returned(call, given, wanted, self._downloaded)

    def _host_copies(self, call: Call) -> Iterator[tuple[ArrayView, ArrayView]]:
        """Yields pairs of an array in host memory and the device copy that the graph reads."""
        pairs = zip(call.views.values(), self._own, strict=True)
        yield from ((seen, own) for seen, own in pairs if own is not None)

    def _host_updates(self) -> Iterator[tuple[ArrayView, ArrayView]]:
        """Yields pairs of a device copy that the graph writes and the closed-over host array that
        is updated from it; none here, as only :class:`Captured` has such arrays.
        """
        return iter(())

    def _downloaded(self, call: Call, index: int, to: tuple[Any, ArrayView] | None) -> Any:
        """Returns result ``index`` in host memory: in ``to``, or in a new array."""
        slot = self._of.outputs[index]
        assert slot is not None, "the output is a result"
        found = self._found[slot - self._first]
        array = host_empty(call.lead, found.shape, found.dtype) if to is None else to[0]
        download(found, view(array, "out"), call.device, call.stream)
        return array

    def map(self, batches: Iterable[Any], *, stream: Any = None) -> Iterator[Any]:
        """Yields the results of each batch of arrays in host memory, in order, with the bits of
        calls. A batch is one array, a tuple of all arguments, or a dict by name.

        Arrays are staged through pinned memory, and copied on streams of their own: a batch is
        uploaded, and results are downloaded, while the kernels of another batch run. Batches are
        taken from ``batches`` one ahead of the results. With an extent, they may differ in size.

        Raises as a call does; DeviceError for arrays on a device; TraceError for a program that
        writes arguments, or returns state.
        """
        for i in self._of.written:
            name = self.inputs[i]
            raise TraceError(f"{self._of.name} writes {name}; call it with all arguments")
        for slot in self._of.outputs:
            if slot is not None and not self._of.is_result(slot):
                name = self._of.outside[slot - len(self._own)].memory.name
                raise TraceError(f"{self._of.name} returns {name}, its state; return a copy of it")
        handle = resolve(stream, ())
        for source, copy in self._once():
            self._device.copy_in(copy.ptr, source.ptr, source.nbytes, handle)
            self._device.synchronize(handle)
        return mapped(batches, self._work, self._device, handle)

    def _once(self) -> Iterator[tuple[ArrayView, ArrayView]]:
        """Yields contiguous closed-over host arrays and their device copies, which :meth:`map`
        uploads once; none here.
        """
        return iter(())

    def _work(self, batch: Any) -> Work:
        """Reads and checks a batch of :meth:`map`."""
        given, named = batch_arguments(batch)
        resized, found = self._resized(feeds.matched(self._of, given, named), None)
        refuse_gradients(found)
        call = Call(found)
        if not call.host:
            first = next(iter(found))
            raise DeviceError(f"{first} is in {call.lead.where}; map takes arrays in host memory")
        resized._check(call)
        return resized._staged_work(call)

    def _staged_work(self, call: Call) -> Work:
        of = self._of
        slots = [slot for slot in of.outputs if of.is_result(slot)]

        def formed(made: Sequence[Any]) -> Any:
            rest = iter(made)
            values = [None if slot is None else next(rest) for slot in of.outputs]
            return feeds.formed(of, range(len(values)), False, values)

        own = [seen for seen in self._own if seen is not None]
        found = [self._found[slot - self._first] for slot in slots]
        return Work(self, call, own, found, self._taking_turn, self._fire, formed)

    @contextmanager
    def _taking_turn(self, stream: int) -> Iterator[None]:
        """Context manager in which ``stream`` alone uses the memory of this replay."""
        with self._turn.lock:
            self._device.order(stream, self._turn.stream)
            yield
            self._turn.stream = stream

    def profile(self, *given: Any, rounds: int = 10, stream: Any = None) -> Profile:
        """Profiles each step of a call with these arrays: on a GPU the median of ``rounds`` times,
        by CUDA events, with a cold L2; on the CPU device the counts of :func:`ptxgen.profile`.
        Arguments that the program writes are written each time.

        Raises as a call does.
        """
        resized, named = self._resized(feeds.matched(self._of, given, {}), None)
        if resized is not self:
            return resized.profile(*named.values(), rounds=rounds, stream=stream)
        self(*given, stream=stream)
        with self._turn.lock:
            handle, listing = self._turn.stream, self._listing()
            assert self._last is not None, "it has just been called"
            steps, replay = self._last
            return profiled(listing, steps, replay, self._device, handle, rounds)

    # -- closed-over arrays by name ---------------------------------------------------------------
    @property
    def _kept(self) -> Mapping[str, int]:
        """Indices of the closed-over arrays that are kept between calls, by name."""
        return {b.memory.name: i for i, b in enumerate(self._of.outside)}

    def _find(self, name: str) -> tuple[int, Buffer]:
        kept = self._kept
        if name not in kept:
            listed = ", ".join(kept) or "none"
            near = proposal(name, kept)
            raise TraceError(
                f"{self._of.name} keeps no array {described(name)}{near}; has {listed}"
            )
        return kept[name], self._of.outside[kept[name]]

    def feed(self, name: str, array: Any, *, stream: Any = None) -> None:
        """Copies ``array`` to the constant or state ``name``, for later calls. It may be in host
        memory or on the device of the program.

        Raises TraceError for an unknown name; ShapeError, DtypeError and DeviceError for an array
        that does not fit.
        """
        import numpy

        index, b = self._find(name)
        handle = resolve(stream, (array,))
        seen = view(array, name, handle)
        if seen.shape != b.shape:
            raise ShapeError(f"{name} has shape {list(seen.shape)}; takes {list(b.shape)}")
        if seen.dtype != b.dtype:
            raise DtypeError(f"{name} has dtype {seen.dtype}; takes {b.dtype}")
        where = common_device({name: seen})
        if where not in (None, self._device):
            raise DeviceError(f"{name} is in {seen.where}; takes an array on {self._device}")
        if not b.contiguous or (where is not None and not seen.contiguous):
            raise ShapeError(f"{name} has strides; takes contiguous arrays: pass a copy")
        device, address = self._device, self._outer[index]
        with self._turn.lock:
            device.order(handle, self._turn.stream)
            if seen.after is not None:
                device.order(handle, seen.after)
            if where is not None and seen.size:
                device.copy(address, seen.ptr, seen.nbytes, handle)
            elif seen.size:
                packed = numpy.ascontiguousarray(host_bits(seen))
                device.copy_in(address, packed.ctypes.data, seen.nbytes, handle)
                device.synchronize(handle)
            self._turn.stream = handle

    def read(self, name: str, *, stream: Any = None) -> Any:
        """Returns a copy of the constant or state ``name`` as it is after the calls so far: in the
        framework and on the device of the captured arrays; of a program or a file a NumPy array.

        Raises TraceError for an unknown name.
        """
        index, b = self._find(name)
        handle = resolve(stream, ())
        with self._turn.lock:
            self._device.order(handle, self._turn.stream)
            found = self._contents_of(b, self._outer[index], handle, self._like)
            self._turn.stream = handle
        return found

    @property
    def _like(self) -> Call | None:
        """A call whose framework and device :meth:`read` returns arrays of; None for NumPy."""
        return None

    def _contents_of(self, b: Buffer, address: int, stream: int, call: Call | None) -> Any:
        """Returns a copy of the array at ``address`` in the framework of a call, or of NumPy."""
        import numpy

        if call is not None and not call.host:
            if not b.contiguous:
                raise ShapeError(f"{b} has strides {list(b.strides)}; takes a contiguous array")
            made, give = empty(call.lead, b.shape, b.dtype, call.device, stream)
            if b.size:
                call.device.copy(made.ptr, address, b.nbytes, stream)
            return give()
        name = b.memory.name
        lead = view(numpy.empty(0, numpy.float32), name) if call is None else call.lead
        found = host_empty(lead, b.shape, b.dtype)
        host_bits(view(found, name))[...] = elements(b, self._device, address, stream)
        return found

    def bind(self, name: str, array: Any, *, stream: Any = None) -> None:
        """Makes later calls read and write ``array`` in place of the constant or state ``name``: an
        array on the program's device, with the shape, dtype, strides and alignment of the first.
        Graphs are recorded anew at the next call.

        Raises TraceError for an unknown name; ShapeError, DtypeError and DeviceError for an array
        that does not fit.
        """
        _, b = self._find(name)
        handle = resolve(stream, (array,))
        seen = view(array, name, handle)
        if common_device({name: seen}) is None:
            raise DeviceError(f"{name} is in host memory; takes an array on {self._device}")
        if b.memory.written and (seen.readonly or seen.framework == "jax"):
            raise ShapeError(f"{name} is written, and read-only; pass a writable array")
        address, keep = placed(b, array, self._device, handle)
        with self._turn.lock:
            self._device.order(handle, self._turn.stream)
            if seen.after is not None:
                self._device.order(handle, seen.after)
            self._turn.stream = handle
            self._move(name, address, keep)

    def _move(self, name: str, address: int, keep: Any) -> None:
        """Sets the address of the array ``name``, whose memory ``keep`` owns."""
        index = self._kept[name]
        self._bound[index] = keep
        self._where[len(self._own) + index] = address
        self._runs.clear()

    # -- ahead of time ------------------------------------------------------------------------
    def save(self, path: str | PathLike[str], *, arrays: bool = True) -> None:
        """Writes a file from which :func:`ptxgen.load` makes the same callable, also on another
        machine: the launches, the compiled kernels, and all offsets. ``arrays``: whether
        closed-over arrays, such as weights, are in the file; if not, they are passed to ``load``.
        Constants of the program are always in the file.

        An older file is replaced atomically; a path of anything but a regular file is refused.
        Raises SavedError if the file cannot be written.
        """
        with self._turn.lock:
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
            yield elements(buffer, self._device, address, self._turn.stream) if asked else None

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
        self._placed = held = tuple(outside)
        arena = DeviceArray(device, (of.nbytes,), "uint8", stream) if of.nbytes else None
        super().__init__(
            of,
            device,
            stream,
            [(view(a, "own"), a) for a in made],
            [address for address, _ in held],
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
