"""``capture``: records a function of arrays as one CUDA graph over one planned allocation.

:func:`capture` traces a function (:mod:`ptxgen.program.trace`), plans its program
(:mod:`ptxgen.program.execute`), and records the launches once (:mod:`ptxgen.program.replay`).
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from ptxgen.errors import (
    DeviceError,
    OptionError,
    PtxgenError,
    ShapeError,
    TraceError,
    proposal,
)
from ptxgen.program import timeline
from ptxgen.program.buffer import Buffer, Memory
from ptxgen.program.execute import plan
from ptxgen.program.extents import Axes, Extent, extent_of
from ptxgen.program.invoke import refuse_gradients
from ptxgen.program.place import elements, placed
from ptxgen.program.recorded import Recorded, recorded
from ptxgen.program.replay import Owned, OwnedArray, Replayed
from ptxgen.program.step import Operand, Program
from ptxgen.program.streams import STREAMS, checked
from ptxgen.program.trace import Tracing, argument_names, line_of, refuse_untraceable, trace
from ptxgen.runtime import Call, Device, default_device, resolve
from ptxgen.runtime.arrays import ArrayView, DeviceArray, empty, host_bits, view
from ptxgen.runtime.call import strided

EXTENTS_MAX = 16
"""Most smaller extents of a capture whose programs and graphs are kept."""


def capture(
    function: Callable[..., Any] | Program,
    *example: Any,
    stream: Any = None,
    passes: Callable[[Program], Program] | None = None,
    streams: int = STREAMS,
    constants: Mapping[str, Any] | None = None,
    state: Mapping[str, Any] | None = None,
    extent: Axes | None = None,
) -> Replayed:
    """Returns a callable that replays ``function`` as a CUDA graph: ``captured(*arrays)`` has the
    bits of ``function(*arrays)``. A program may be given in place of a function; its callable takes
    the program's inputs and runs on the default device.

    ``function`` calls operations of the library and takes views, nothing else. It is called twice,
    and must do the same both times. Python numbers keep the values that they have during capture.
    All temporaries share one allocation, planned by lifetimes. ``captured.save(path)`` writes a
    file for :func:`ptxgen.load`; ``captured.profile(*arrays)`` measures each step. Arguments can
    also be passed by name, ``captured(x=x)`` or ``captured.run({"x": x})``; results have names if
    ``function`` returns a dict. ``passes``: a function that transforms the program first, such as
    :func:`ptxgen.graph.fewer`, which changes no bit. ``streams``: most streams on which the graph
    runs independent steps concurrently (``captured.streams``: the number in use); with 1 they run
    one after the other. ``constants``, ``state``: arrays by name, which ``function`` takes as
    keyword arguments (a program: as inputs) and calls do not pass; ``function`` may write those in
    ``state`` with ``out=``. ``captured.feed``, ``read`` and ``bind`` set, copy and exchange them.
    ``extent``: the axis of the arguments along which calls may pass fewer elements than
    ``example``: one axis for all arguments, one for each (None: of none), or some by name.

    Shapes
        Each call takes the shapes of the arrays ``example``, or fewer elements along the axis
        ``extent``; its results are those of a capture of that size. Only the device, shapes and
        dtypes of ``example`` matter, not its values.
    Dtypes
        Each call takes the dtypes of ``example``, and returns new arrays in their framework.
    Storage
        An argument that ``function`` passes to an operation as ``out=``, or a view of it, is
        written in the caller's own memory, at each call. Arrays that ``function`` reads besides its
        arguments, such as weights, are read in place, with the values that they have when the graph
        is replayed. So are ``constants`` and ``state`` on a device; those in host memory are copied
        to the device once. ``stream``: the stream on which memory for the graph is allocated; the
        framework's current one by default. A view with strides that no kernel reads is copied if
        the arrays are in host memory, as in calls; on a device it is refused.
    Order
        Each operation has the order of its contract.
    Errors
        TraceError, with the line, if ``function`` reads values of an array, passes one to another
        library, does something else the second time, or cannot run with fewer elements along
        ``extent``; GradError for arrays that require grad; OptionError for ``streams`` beyond 1 to
        128 and for an ``extent`` that is no axis; those of the operations.
    Source
        ``ptxgen/program/capture.py``.

    >>> import numpy, ptxgen
    >>> w = numpy.eye(4, dtype="f4")
    >>> layer = ptxgen.capture(lambda x: ptxgen.softmax(ptxgen.linear(x, w, layout="kn")), w)
    >>> layer(numpy.zeros((4, 4), "f4"))[0]
    array([0.25, 0.25, 0.25, 0.25], dtype=float32)
    """
    checked(streams)
    held = _held(constants, state)
    if isinstance(function, Program):
        if extent is not None:
            raise TraceError("a program has one size; extent takes a function, which is traced")
        return _of_program(function, example, stream, passes, streams, held, state or {})
    refuse_untraceable("capture", function, example)
    names = argument_names(function, len(example))
    named = dict(zip(names, example, strict=True))
    refuse_gradients({**named, **held})
    call = Call(named, stream)
    source = Source(
        function,
        {name: seen.packed for name, seen in call.views.items()},
        call.device,
        held,
        frozenset(state or ()),
        passes,
        None if extent is None else extent_of(extent, call.views),
    )
    program, tracing = source.traced()
    if source.key != _comparison_key(program, tracing):
        raise TraceError(
            f"{program.name} does something else each time that it is called, or with other arrays "
            "from outside; what is captured is replayed as it was"
        )
    _refuse_read_only(tracing)
    source.try_fewer(tracing)
    return Captured(source.passed(program), tracing, call, streams, source)


def _held(*given: Mapping[str, Any] | None) -> dict[str, Any]:
    """Returns the arrays of ``constants`` and ``state``. Raises TraceError for a name in both, and
    for a value that maps no names.
    """
    found: dict[str, Any] = {}
    for option, each in zip(("constants", "state"), given, strict=True):
        if each is not None and not isinstance(each, Mapping):
            raise TraceError(f"{option} is a {type(each).__qualname__}; takes a mapping of arrays")
        for name, x in (each or {}).items():
            if not isinstance(name, str) or name in found:
                raise TraceError(f"{option} has the name {name!r}; takes strings, each once")
            found[name] = x
    return found


def _of_program(
    program: Program,
    example: tuple[Any, ...],
    stream: Any,
    passes: Callable[[Program], Program] | None,
    streams: int,
    held: Mapping[str, Any],
    state: Collection[str],
) -> Owned:
    """Captures a program on the default device; the inputs become the callable's arguments, but for
    its constants and those in ``held``.
    """
    if example:
        raise TraceError("a program says its shapes itself; capture takes no arrays beside it")
    device = default_device()
    found = program if passes is None else passes(program)
    known = {m.name: m for m in found.inputs}
    for name in held:
        if name not in known:
            listed = ", ".join(known)
            raise TraceError(
                f"{found.name} has no input {name!r}{proposal(name, known)}; has {listed}"
            )
    arrays = {**found.constants, **{known[name]: x for name, x in held.items()}}
    _refuse_written(found, [m for m in arrays if m.name not in state])
    handle = resolve(stream, arrays.values())
    outside = []
    for memory, x in arrays.items():
        assert memory.natural is not None, "all memory of programs is laid"
        outside.append(placed(memory.natural, x, device, handle))
    ordered = replace(found, inputs=(*(m for m in found.inputs if m not in arrays), *arrays))
    of = recorded(plan(ordered, device, streams), len(arrays))
    return Owned(of, ordered, device, outside, handle, streams)


def _refuse_written(program: Program, constants: Collection[Memory]) -> None:
    """Raises TraceError, with the name, if a program writes one of its constants."""
    for memory in constants:
        if memory.written:
            raise TraceError(f"{program.name} writes {memory.name}, a constant; pass it as state=")


def _refuse_read_only(tracing: Tracing) -> None:
    """Raises ShapeError, with the name, for an array on a device that is written and read-only."""
    for x, buffer in tracing.outside.values():
        name = buffer.memory.name
        if buffer.memory.written:
            seen = view(x, name)
            if seen.kind != "host" and (seen.readonly or seen.framework == "jax"):
                raise ShapeError(f"{name} is written, and read-only; pass a writable array")


@dataclass(frozen=True)
class Source:
    """A function and all that a trace of it takes: the ``layouts`` of its arguments by name, the
    arrays that it takes by keyword (``held``; those in ``state`` may be written), the passes, and
    the extent that calls may make smaller, if any.
    """

    function: Callable[..., Any]
    layouts: Mapping[str, ArrayView]
    device: Device
    held: Mapping[str, Any]
    state: frozenset[str]
    passes: Callable[[Program], Program] | None
    extent: Extent | None

    @cached_property
    def key(self) -> Any:
        """Key of the function's trace with the captured sizes, at the first time."""
        return _comparison_key(*self.traced())

    @property
    def name(self) -> str:
        """Name of the function, for errors."""
        return getattr(self.function, "__name__", type(self.function).__name__)

    def traced(self, rows: int | None = None) -> tuple[Program, Tracing]:
        """Traces the function, with ``rows`` elements along the extent unless it is None."""
        views = [
            seen if rows is None or self.extent is None else self.extent.layout(name, seen, rows)
            for name, seen in self.layouts.items()
        ]
        if self.held:
            try:
                inspect.signature(self.function).bind(*views, **self.held)
            except TypeError as error:
                raise TraceError(f"{self.name} does not take its constants: {error}") from None
        with timeline.marked(self.name, "trace"):
            program, tracing = trace(self.function, views, self.device, self.held)
        made = {id(x): buffer.memory for x, buffer in tracing.outside.values()}
        _refuse_written(program, [made[id(x)] for n, x in self.held.items() if n not in self.state])
        return program, tracing

    def passed(self, program: Program) -> Program:
        """Returns the program after the passes."""
        return program if self.passes is None else self.passes(program)

    def fewer(self, rows: int, outside: Collection[int]) -> tuple[Program, Tracing]:
        """Traces the function with ``rows`` elements along the extent. Raises TraceError, with the
        line and the reason, if it cannot run with these, or reads other arrays than ``outside``
        (the keys of the first trace).
        """
        assert self.extent is not None, "only captures with an extent have fewer rows"
        what = (
            f"{self.name} was captured with extent {self.extent.upper}, and cannot run with {rows}"
        )
        try:
            program, tracing = self.traced(rows)
        except PtxgenError as error:
            raise TraceError(f"{what}: {error}, at {line_of(error)}") from error
        if not tracing.outside.keys() <= {*outside}:
            raise TraceError(f"{what}: it reads other arrays from outside")
        return program, tracing

    def try_fewer(self, tracing: Tracing) -> None:
        """Traces the function with the least and the largest smaller extent, if it has one, so that
        a step which takes no other size is found at capture.
        """
        if self.extent is not None:
            for rows in sorted({1, self.extent.upper - 1} - {0, self.extent.upper}):
                if rows > 0:
                    self.fewer(rows, tracing.outside)


def _comparison_key(program: Program, tracing: Tracing) -> tuple[Any, ...]:
    """Returns a key that is equal for traces with the same steps on the same arrays."""
    number: dict[Memory, int] = {}

    def fact(operand: Operand) -> Any:
        if not isinstance(operand, Buffer):
            return operand
        at = number.setdefault(operand.memory, len(number))
        return at, operand.offset, operand.shape, operand.strides, operand.dtype

    inputs = [fact(m.natural) for m in program.inputs]
    steps = [
        (step.problem, step.kernel, [(n, fact(x)) for n, x in step.bind.items()])
        for step in program.steps
    ]
    return inputs, steps, [fact(x) for x in program.outputs], list(tracing.outside)


class Captured(Replayed):
    """A function of arrays that is replayed as one CUDA graph (:func:`capture`).

    ``arguments`` and ``results`` are arrays of the caller's framework. Closed-over arrays
    (:attr:`outside`) are read in place. ``upper``: the capture whose memory this one uses, for
    fewer elements along an extent.
    """

    program: Program

    def __init__(
        self,
        program: Program,
        tracing: Tracing,
        call: Call,
        streams: int,
        source: Source | None = None,
        upper: Captured | None = None,
    ) -> None:
        self.program, self._call, self._source = program, call, source
        self._is_part, self._smaller = upper is not None, dict[int, Captured]()
        self._keys = list(tracing.outside)
        self._outside = [(x, b.memory) for x, b in tracing.outside.values()]
        held = {} if source is None else source.held
        self._held = {n: self._keys.index(id(x)) for n, x in held.items() if id(x) in self._keys}
        of = recorded(plan(program, call.device, streams), len(self._outside))
        if upper is None:
            made = [self._allocated(b) for b in of.kept]
            outside = self._uploaded(of) if call.host else self._addresses()
            arena = call.scratch(of.nbytes) if of.nbytes else None
        else:
            made, outside = self._shared(of, upper), self._shared_outside(upper)
            own = upper._keep if of.nbytes <= upper.nbytes else call.scratch(of.nbytes)
            arena = own if of.nbytes else None
        turn = None if upper is None else upper._turn
        super().__init__(of, call.device, call.stream, made, outside, arena, streams, turn)

    def __del__(self) -> None:
        """Makes the framework's stream, on which memory is freed, wait for the last replay."""
        if not sys.is_finalizing() and getattr(self, "_last", None) is not None:
            with suppress(DeviceError):  # if the stream is gone, its work has ended
                self._device.order(self._call.stream, self._turn.stream)

    def _allocated(self, buffer: Buffer) -> OwnedArray:
        call = self._call
        found, give = empty(call.lead, buffer.shape, buffer.dtype, call.device, call.stream)
        return found, found.owner if call.lead.framework == "jax" else give()

    def _check_device(self, call: Call) -> None:
        if (call.host, call.device) != (self._call.host, self._call.device):
            own = self._call
            raise TraceError(
                f"{self.inputs[0]}, in {call.lead.where}, is computed with on {call.device}; "
                f"captured in {own.lead.where}, on {own.device}"
            )

    # -- arrays from outside ------------------------------------------------------------------
    @property
    def outside(self) -> tuple[Any, ...]:
        """Closed-over arrays, such as weights, in the order of their first use."""
        return tuple(x for x, _ in self._outside)

    def _seen(self, stream: Any = None) -> list[ArrayView]:
        named = {m.name: x for x, m in self._outside}
        return list(Call(named, stream).views.values()) if named else []

    def _addresses(self) -> list[int]:
        return [seen.ptr for seen in self._seen(self._call.stream)]

    def _uploaded(self, of: Recorded) -> list[int]:
        """Allocates device copies of closed-over host arrays; returns their addresses. Constants
        and state are uploaded now, the others at each call.
        """
        assert all(b.contiguous for b in of.outside), "arrays in host memory are traced as copied"
        self._copies = [self._allocated(b)[0] for b in of.outside]
        call, seen = self._call, self._seen()
        for i in self._held.values():
            staged = call.upload(seen[i])
            if staged.nbytes:
                call.device.copy(self._copies[i].ptr, staged.ptr, staged.nbytes, call.stream)
            call.device.synchronize(call.stream)
        return [v.ptr for v in self._copies]

    def _host_copies(self, call: Call) -> Iterator[tuple[ArrayView, ArrayView]]:
        yield from super()._host_copies(call)
        yield from ((seen, copy) for seen, copy, _ in self._from_outside())

    def _from_outside(self) -> Iterator[tuple[ArrayView, ArrayView, Memory]]:
        """Yields host array, device copy and memory of each closed-over array that each call
        uploads.
        """
        kept = {*self._held.values()}
        if len(kept) < len(self._outside):
            rows = zip(self._seen(), self._copies, self._outside, strict=True)
            for i, (seen, copy, (_, memory)) in enumerate(rows):
                if i not in kept:
                    yield seen, copy, memory

    def _host_updates(self) -> Iterator[tuple[ArrayView, ArrayView]]:
        return ((copy, seen) for seen, copy, memory in self._from_outside() if memory.written)

    def _once(self) -> Iterator[tuple[ArrayView, ArrayView]]:
        import numpy

        for seen, copy, memory in self._from_outside() if self._call.host else ():
            if memory.written:
                raise TraceError(f"{self._of.name} writes {memory.name} in host memory; call it")
            packed = numpy.ascontiguousarray(host_bits(seen))
            if seen.nbytes:
                yield replace(seen, ptr=packed.ctypes.data, owner=packed), copy

    def _contents(self, all: bool) -> Iterator[Any]:
        if not self._call.host:
            yield from super()._contents(all)
            return
        kept, seen = {*self._held.values()}, self._seen()
        for i, b in enumerate(self._of.outside):
            if not (all or b.memory.constant):
                yield None
            elif i in kept:
                yield elements(b, self._device, self._outer[i], self._turn.stream)
            else:
                yield host_bits(seen[i])

    # -- constants and state ------------------------------------------------------------------
    @property
    def _kept(self) -> Mapping[str, int]:
        return self._held

    @property
    def _like(self) -> Call:
        return self._call

    def _move(self, name: str, address: int, keep: Any) -> None:
        super()._move(name, address, keep)
        for each in self._smaller.values():
            if name in each._held:
                each._move(name, address, keep)

    # -- fewer elements along an extent -----------------------------------------------------------
    def at(self, extent: int) -> Captured:
        """Returns the callable for ``extent`` elements along the axis that was named at capture. It
        shares the memory of this one, and has a program and graphs of its own, made at
        first use; the latest 16 are kept.

        Raises TraceError if the function was captured without an extent, or no longer does what it
        did then.
        """
        source = self._source
        if source is None or source.extent is None or self._is_part:
            raise TraceError(f"{self._of.name} has one size; capture it with extent=")
        if type(extent) is not int or not 0 <= extent <= source.extent.upper:
            raise OptionError(f"extent is {extent!r}; takes 0 to {source.extent.upper}")
        if extent == source.extent.upper:
            return self
        with self._turn.lock:
            found = self._smaller.pop(extent, None)
            if found is None:
                if _comparison_key(*source.traced()) != source.key:
                    raise TraceError(
                        f"{self._of.name} no longer does what it did when it was captured; its "
                        "numbers and arrays from outside have to stay for another extent"
                    )
                program, tracing = source.fewer(extent, self._keys)
                passed = source.passed(program)
                found = Captured(passed, tracing, self._call, self._most, source, self)
                for name, index in self._held.items():
                    found._bound[found._held[name]] = self._bound.get(index)
            while len(self._smaller) >= EXTENTS_MAX:
                del self._smaller[next(iter(self._smaller))]
            self._smaller[extent] = found
        return found

    def _resized(
        self, named: dict[str, Any], extent: int | None
    ) -> tuple[Replayed, dict[str, Any]]:
        own = None if self._source is None else self._source.extent
        if own is None or self._is_part:
            return super()._resized(named, extent)
        rows = own.rows(self._of.name, named, extent)
        return self.at(rows), own.cut(named, rows)

    def _shared(self, of: Recorded, upper: Captured) -> list[OwnedArray]:
        """Returns the arrays that a replay keeps, in the memory of those of ``upper`` where they
        fit.
        """
        arguments = zip(of.arguments, upper._own, upper.arguments, strict=True)
        found = [self._in(b, own, x) for b, own, x in arguments if not b.memory.written]
        places = [upper._result(i) for i in range(len(upper._found))]
        for i, b in enumerate(of.results):
            found.append(self._in(b, *(places[i] if i < len(places) else (None, None))))
        return found

    def _result(self, number: int) -> tuple[ArrayView | None, Any]:
        """Returns view and array of a result; None for one that is no output of its own."""
        slot = self._first + number
        at = next((i for i, each in enumerate(self._of.outputs) if each == slot), None)
        return self._found[number], None if at is None else self.results[at]

    def _in(self, b: Buffer, own: ArrayView | None, x: Any) -> OwnedArray:
        """Returns array ``b`` in the memory of array ``x``, seen as ``own``; newly allocated if it
        does not fit there.
        """
        if own is None or x is None or own.dtype != b.dtype or own.nbytes < b.nbytes:
            return self._allocated(b)
        if isinstance(x, DeviceArray):
            part = DeviceArray(x.device, b.shape, b.dtype, x.stream, x)
            return view(part, b.memory.name), part
        part = strided(x, b.shape, b.strides, 0)
        return view(part, b.memory.name), part

    def _shared_outside(self, upper: Captured) -> list[int]:
        """Returns the addresses of the closed-over arrays, which ``upper`` reads as well."""
        places = [upper._keys.index(key) for key in self._keys]
        if self._call.host:
            self._copies = [upper._copies[i] for i in places]
        return [upper._outer[i] for i in places]
