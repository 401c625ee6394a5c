"""Captured: a function of arrays as one CUDA graph over one planned allocation.

:func:`capture` traces a function (:mod:`ptxgen.program.trace`), plans its program
(:mod:`ptxgen.program.execute`), and records the launches once. A call copies its arrays to where
the graph reads them, replays it, and copies the results. On the CPU device, which has no graphs,
the planned launches are carried out instead.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from ptxgen.errors import DeviceError, DtypeError, ShapeError, TraceError
from ptxgen.numerics.dtype import NAMES
from ptxgen.program.buffer import Buffer, Memory
from ptxgen.program.execute import plan, pointer
from ptxgen.program.invoke import refuse_gradients
from ptxgen.program.registry import OPERATIONS
from ptxgen.program.step import Operand, Program
from ptxgen.program.trace import Tracing, trace
from ptxgen.runtime import Call
from ptxgen.runtime.arrays import ArrayView, download, empty, host_bits, host_empty, view


def capture(
    function: Callable[..., Any],
    *example: Any,
    stream: Any = None,
    passes: Callable[[Program], Program] | None = None,
) -> Captured:
    """Makes of ``function`` a callable that replays a CUDA graph: ``captured(*arrays)`` has the
    bits of ``function(*arrays)``.

    ``function`` calls operations of the library and takes views, nothing else. It is called twice,
    and must do the same both times. Numbers are those of now. All memory between its operations is
    one allocation, planned by lifetimes. ``passes``: what is done to the program first, such as
    :func:`ptxgen.graph.fewer`, which moves no bit.

    Shapes
        Those of the arrays ``example``, at each call. Only where these are, their shapes and dtypes
        matter, not what is in them.
    Dtypes
        Those of ``example``. Calls return new arrays in their framework.
    Storage
        Arrays that ``function`` reads besides its arguments, such as weights, are read where they
        are, with what is in them when the graph is replayed. ``stream``: where memory for the graph
        is made; the framework's current one by default.
    Order
        That of each operation's contract.
    Errors
        TraceError, with the line, if ``function`` asks for values of an array, hands one to another
        library, or does something else the second time; GradError for arrays that require grad;
        those of the operations.
    Source
        ``ptxgen/program/capture.py``.

    >>> import numpy, ptxgen
    >>> w = numpy.eye(4, dtype="f4")
    >>> layer = ptxgen.capture(lambda x: ptxgen.softmax(ptxgen.linear(x, w)), w)
    >>> layer(numpy.zeros((4, 4), "f4"))[0]
    array([0.25, 0.25, 0.25, 0.25], dtype=float32)
    """
    if not callable(function):
        raise TraceError(f"capture takes a function; got a {type(function).__qualname__}")
    if not example:
        raise TraceError("capture takes at least one array as an example of the arguments")
    named = {f"argument {i}": x for i, x in enumerate(example)}
    refuse_gradients(named)
    call = Call(named, stream)
    views = [seen.packed for seen in call.views.values()]
    program, tracing = trace(function, views, call.device)
    if _facts(program, tracing) != _facts(*trace(function, views, call.device)):
        raise TraceError(
            f"{program.name} does something else each time that it is called, or with other arrays "
            "from outside; what is captured is replayed as it was"
        )
    return Captured(program if passes is None else passes(program), tracing, call)


def _facts(program: Program, tracing: Tracing) -> tuple[Any, ...]:
    """What makes two programs do the same."""
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


class Captured:
    """A function of arrays as one CUDA graph (:func:`capture`).

    ``program`` is what it carries out, ``nbytes`` what the one allocation has that its temporaries
    and scratch memory share. ``arguments`` are the arrays that the graph reads, in the caller's
    framework, and ``results`` those that it writes (None where the function returns None).

    Calls of one capture follow one another: they share its memory. On another stream than the last
    one, a call waits for that.
    """

    def __init__(self, program: Program, tracing: Tracing, call: Call) -> None:
        self.program = program
        self._call, self._lock = call, threading.Lock()
        self._stream: int = call.stream
        self._outside = [(x, b.memory) for x, b in tracing.outside.values()]
        count = len(program.inputs) - len(self._outside)
        made = [self._memory(m) for m in (*program.inputs[:count], *program.results)]
        own, found = [seen for seen, _ in made[:count]], [seen for seen, _ in made[count:]]
        self._arguments, self._found = own, dict(zip(program.results, found, strict=True))
        arrays = dict(zip(program.results, (a for _, a in made[count:]), strict=True))
        self.arguments = tuple(a for _, a in made[:count])
        self.results = tuple(None if b is None else arrays[b.memory] for b in self._outputs)
        planned = plan(program, call.device)
        self.nbytes = planned.nbytes
        outside = self._uploaded() if call.host else self._where()
        where = [*(v.ptr for v in own), *outside, *(v.ptr for v in found)]
        if self.nbytes:
            address, self._keep = call.scratch(self.nbytes)
            where.append(address)
        call.device.synchronize(call.stream)  # memory of its framework is of that stream

        def work(stream: int) -> None:
            for fire, sources in planned.launches:
                fire(stream, *(pointer(source, where) for source in sources))

        self._graph = call.device.recorded(work)

    def __del__(self) -> None:
        """Memory of frameworks goes back in the order of their stream, behind the last replay."""
        if not sys.is_finalizing() and getattr(self, "_stream", None) is not None:
            with suppress(DeviceError):  # of a stream that has gone, whose work has ended
                self._call.device.order(self._call.stream, self._stream)

    def __repr__(self) -> str:
        steps = len(self.program.steps)
        return f"<captured {self.program.name}: {steps} steps, {self.nbytes} bytes>"

    @property
    def _outputs(self) -> Sequence[Buffer | None]:
        return self.program.outputs

    def _memory(self, memory: Memory) -> tuple[ArrayView, Any]:
        call, natural = self._call, memory.natural
        assert natural is not None, "all memory of programs is laid"
        found, give = empty(call.lead, natural.shape, natural.dtype, call.device, call.stream)
        return found, found.owner if call.lead.framework == "jax" else give()

    # -- arrays from outside ------------------------------------------------------------------
    def _outer(self, stream: Any = None) -> list[ArrayView]:
        named = {m.name: x for x, m in self._outside}
        return list(Call(named, stream).views.values()) if named else []

    def _where(self) -> list[int]:
        return [seen.ptr for seen in self._outer(self._call.stream)]

    def _uploaded(self) -> list[int]:
        """Copies on the device of what is in host memory, which each call makes anew."""
        call = self._call
        made = []
        for _, memory in self._outside:
            assert memory.natural is not None
            natural = memory.natural
            assert natural.contiguous, "arrays in host memory are traced as they are copied"
            made.append(empty(call.lead, natural.shape, natural.dtype, call.device, call.stream)[0])
        self._copies = made
        return [v.ptr for v in made]

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
                f"{self.program.name} was captured with {len(self.arguments)} arguments; "
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
            for each in zip(given, seen, self._arguments, self.arguments, strict=True):
                _brought(call, *each)
            self._fire(call.stream)
            found = [None if a is None else self._handed(call, a) for a in self.results]
        return found[0] if self._single else tuple(found)

    @property
    def _single(self) -> bool:
        return len(self._outputs) == 1

    def _check(self, call: Call) -> None:
        for (name, seen), own in zip(call.views.items(), self._arguments, strict=True):
            if seen.shape != own.shape:
                raise ShapeError(f"{name} has shape {list(seen.shape)}; takes {list(own.shape)}")
            if seen.dtype != own.dtype:
                raise DtypeError(f"{name} has dtype {seen.dtype}; takes {own.dtype}")
            if not (call.host or seen.contiguous or seen.dtype in NAMES):
                raise ShapeError(f"{name} has strides {list(seen.strides)}; pass a contiguous copy")
        if (call.host, call.device) != (self._call.host, self._call.device):
            where = call.lead.where
            raise TraceError(f"argument 0 is in {where}; captured in {self._call.lead.where}")

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
        found = [None if b is None else self._downloaded(call, b) for b in self._outputs]
        return found[0] if self._single else tuple(found)

    def _host(self, call: Call) -> Iterator[tuple[ArrayView, ArrayView]]:
        yield from zip(call.views.values(), self._arguments, strict=True)
        if self._outside:
            yield from zip(self._outer(), self._copies, strict=True)

    def _downloaded(self, call: Call, output: Buffer) -> Any:
        memory = self._found[output.memory]
        array = host_empty(call.lead, memory.shape, memory.dtype)
        download(memory, view(array, "out"), call.device, call.stream)
        return array


def _brought(call: Call, x: Any, seen: ArrayView, own: ArrayView, to: Any) -> None:
    """Copies an argument to where the graph reads it, unless it is there."""
    if seen.ptr == own.ptr or not seen.size:
        return
    if seen.contiguous:
        call.device.copy(own.ptr, seen.ptr, own.nbytes, call.stream)
    else:
        OPERATIONS["copy"].function(x, out=to, stream=call.stream)
