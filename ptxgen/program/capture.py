"""``capture``: records a function of arrays as one CUDA graph over one planned allocation.

:func:`capture` traces a function (:mod:`ptxgen.program.trace`), plans its program
(:mod:`ptxgen.program.execute`), and records the launches once (:mod:`ptxgen.program.replay`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from ptxgen.errors import DeviceError, TraceError
from ptxgen.program.buffer import Buffer, Memory
from ptxgen.program.execute import plan
from ptxgen.program.invoke import refuse_gradients
from ptxgen.program.recorded import Recorded, recorded
from ptxgen.program.replay import Owned, OwnedArray, Replayed
from ptxgen.program.step import Operand, Program
from ptxgen.program.streams import STREAMS, checked
from ptxgen.program.trace import Tracing, refuse_untraceable, trace
from ptxgen.runtime import Call, default_device, resolve
from ptxgen.runtime.arrays import ArrayView, empty, host_bits


def capture(
    function: Callable[..., Any] | Program,
    *example: Any,
    stream: Any = None,
    passes: Callable[[Program], Program] | None = None,
    streams: int = STREAMS,
) -> Replayed:
    """Returns a callable that replays ``function`` as a CUDA graph: ``captured(*arrays)`` has the
    bits of ``function(*arrays)``. A program may be given in place of a function; its callable takes
    the program's inputs and runs on the default device.

    ``function`` calls operations of the library and takes views, nothing else. It is called twice,
    and must do the same both times. Python numbers keep the values that they have during capture.
    All temporaries share one allocation, planned by lifetimes. ``captured.save(path)`` writes a
    file for :func:`ptxgen.load`; ``captured.profile(*arrays)`` measures each step. ``passes``: a
    function that transforms the program first, such as :func:`ptxgen.graph.fewer`, which changes no
    bit. ``streams``: most streams on which the graph runs independent steps concurrently
    (``captured.streams``: the number in use); with 1 they run one after the other.

    Shapes
        Each call takes the shapes of the arrays ``example``. Only the device, shapes and dtypes of
        ``example`` matter, not its values.
    Dtypes
        Each call takes the dtypes of ``example``, and returns new arrays in their framework.
    Storage
        An argument that ``function`` passes to an operation as ``out=``, or a view of it, is
        written in the caller's own memory, at each call. Arrays that ``function`` reads besides its
        arguments, such as weights, are read in place, with the values that they have when the graph
        is replayed. ``stream``: the stream on which memory for the graph is allocated; the
        framework's current one by default. A view with strides that no kernel reads is copied if
        the arrays are in host memory, as in calls; on a device it is refused.
    Order
        Each operation has the order of its contract.
    Errors
        TraceError, with the line, if ``function`` reads values of an array, passes one to another
        library, or does something else the second time; GradError for arrays that require grad;
        OptionError for ``streams`` beyond 1 to 128; those of the operations.
    Source
        ``ptxgen/program/capture.py``.

    >>> import numpy, ptxgen
    >>> w = numpy.eye(4, dtype="f4")
    >>> layer = ptxgen.capture(lambda x: ptxgen.softmax(ptxgen.linear(x, w, layout="kn")), w)
    >>> layer(numpy.zeros((4, 4), "f4"))[0]
    array([0.25, 0.25, 0.25, 0.25], dtype=float32)
    """
    checked(streams)
    if isinstance(function, Program):
        return _of_program(function, example, stream, passes, streams)
    refuse_untraceable("capture", function, example)
    named = {f"argument {i}": x for i, x in enumerate(example)}
    refuse_gradients(named)
    call = Call(named, stream)
    views = [seen.packed for seen in call.views.values()]
    program, tracing = trace(function, views, call.device)
    if _comparison_key(program, tracing) != _comparison_key(*trace(function, views, call.device)):
        raise TraceError(
            f"{program.name} does something else each time that it is called, or with other arrays "
            "from outside; what is captured is replayed as it was"
        )
    return Captured(program if passes is None else passes(program), tracing, call, streams)


def _of_program(
    program: Program,
    example: tuple[Any, ...],
    stream: Any,
    passes: Callable[[Program], Program] | None,
    streams: int,
) -> Owned:
    """Captures a program on the default device; the inputs become the callable's arguments."""
    if example:
        raise TraceError("a program says its shapes itself; capture takes no arrays beside it")
    device = default_device()
    found = program if passes is None else passes(program)
    of = recorded(plan(found, device, streams))
    return Owned(of, found, device, (), resolve(stream, ()), streams)


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
    (:attr:`outside`) are read in place.
    """

    program: Program

    def __init__(self, program: Program, tracing: Tracing, call: Call, streams: int) -> None:
        self.program, self._call = program, call
        self._outside = [(x, b.memory) for x, b in tracing.outside.values()]
        of = recorded(plan(program, call.device, streams), len(self._outside))
        made = [self._allocated(b) for b in of.kept]
        outside = self._uploaded(of) if call.host else self._addresses()
        arena = call.scratch(of.nbytes) if of.nbytes else None
        super().__init__(of, call.device, call.stream, made, outside, arena, streams)

    def __del__(self) -> None:
        """Makes the framework's stream, on which memory is freed, wait for the last replay."""
        if not sys.is_finalizing() and getattr(self, "_last", None) is not None:
            with suppress(DeviceError):  # if the stream is gone, its work has ended
                self._device.order(self._call.stream, self._stream)

    def _allocated(self, buffer: Buffer) -> OwnedArray:
        call = self._call
        found, give = empty(call.lead, buffer.shape, buffer.dtype, call.device, call.stream)
        return found, found.owner if call.lead.framework == "jax" else give()

    def _check_device(self, call: Call) -> None:
        if (call.host, call.device) != (self._call.host, self._call.device):
            own = self._call
            raise TraceError(
                f"argument 0, in {call.lead.where}, is computed with on {call.device}; "
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
        """Allocates device copies of closed-over host arrays, which each call uploads; returns
        their addresses.
        """
        assert all(b.contiguous for b in of.outside), "arrays in host memory are traced as copied"
        self._copies = [self._allocated(b)[0] for b in of.outside]
        return [v.ptr for v in self._copies]

    def _host_copies(self, call: Call) -> Iterator[tuple[ArrayView, ArrayView]]:
        yield from super()._host_copies(call)
        yield from self._from_outside()

    def _from_outside(self) -> Iterator[tuple[ArrayView, ArrayView]]:
        return zip(self._seen(), self._copies, strict=True) if self._outside else iter(())

    def _host_updates(self) -> Iterator[tuple[ArrayView, ArrayView]]:
        pairs = zip(self._from_outside(), self._of.outside, strict=True)
        return ((copy, seen) for (seen, copy), b in pairs if b.memory.written)

    def _contents(self, all: bool) -> Iterator[Any]:
        if not self._call.host:
            yield from super()._contents(all)
            return
        for (seen, _), b in zip(self._from_outside(), self._of.outside, strict=True):
            yield host_bits(seen) if all or b.memory.constant else None
