"""``timeline``: records ordinary calls and replays as a trace file, and as NVTX ranges.

While a timeline is recorded, the generated functions of operations look prepared code up through a
wrapper that records a span. It is put into their namespaces at the start and taken out at the end,
so that calls cost nothing more without it. Replays ask :func:`recording`.
"""

from __future__ import annotations

import atexit
import json
import os
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache, partial
from os import PathLike
from pathlib import Path
from time import perf_counter_ns
from types import TracebackType
from typing import Any, NamedTuple

from ptxgen.errors import OptionError
from ptxgen.program.prepared import NegationChecked
from ptxgen.runtime import Device

VARIABLE = "PTXGEN_TIMELINE"
"""Environment variable with the path of a file: the process is recorded until it ends."""

_active: timeline | None = None
_functions: weakref.WeakSet[Callable[..., Any]] = weakref.WeakSet()


class Stamp(NamedTuple):
    """A step's stream, name, and the device's stamps before and after it."""

    device: Device
    stream: int
    name: str
    begin: Any
    end: Any


class timeline:  # noqa: N801 - reads like a function
    """Records calls of operations and replays of captured programs, in all threads, and writes them
    to ``path`` at its end, as a trace for Perfetto and Chrome: ``with ptxgen.timeline("a.json")``.

    Host tracks, one for each thread, have the time that each call of an operation, each trace of a
    captured function and each replay takes on the host. A replay launches its steps one after the
    other, in place of its graph; tracks of the device, one for each stream, have the time of each
    step, by CUDA events. On the CPU device, times are those of the interpreter. With the package
    ``nvtx`` (extra ``profile``) all of these are NVTX ranges of the domain ``ptxgen``, too.

    No bit depends on it, and without it nothing is slower. The environment variable
    ``PTXGEN_TIMELINE=path`` records a whole process. Operators in a
    :class:`ptxgen.torch.batch_invariant` block and in compiled models are not recorded;
    ``torch.profiler`` shows them.

    Raises OptionError if another timeline is being recorded.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = Path(path)
        self._spans: list[dict[str, Any]] = []
        self._stamps: list[Stamp] = []
        self._bases: dict[Device, tuple[float, Any]] = {}
        self._inside = threading.local()
        self._process = os.getpid()

    def __enter__(self) -> timeline:
        global _active
        if _active is not None:
            raise OptionError(f"{_active.path} is being recorded; end that timeline first")
        _active = self
        for function in list(_functions):
            _exchange(function)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        global _active
        _active = None
        for function in list(_functions):
            _exchange(function)
        self.path.write_text(json.dumps({"traceEvents": self._events()}), encoding="utf-8")

    # -- recording ----------------------------------------------------------------------------
    @contextmanager
    def span(self, name: str, category: str, **facts: Any) -> Iterator[None]:
        """Context manager that records the time of its body on the host, with an NVTX range. An
        operation inside of another's span is not recorded again.
        """
        if getattr(self._inside, "span", False):
            yield
            return
        self._inside.span = True
        begin = perf_counter_ns()
        try:
            with _range(name):
                yield
        finally:
            end = perf_counter_ns()
            self._inside.span = False
            place = {"pid": 0, "tid": threading.get_native_id()}
            times = {"ts": begin / 1e3, "dur": (end - begin) / 1e3}
            event = {"name": name, "cat": category, "ph": "X", **place, **times, "args": facts}
            self._spans.append(event)

    def replay(
        self,
        name: str,
        titles: Sequence[str],
        steps: Sequence[Callable[[int], None]],
        device: Device,
        stream: int,
    ) -> None:
        """Enqueues the steps of a program on a stream, one after the other, and records each.
        While the stream captures, times of the device are not recorded.
        """
        stamped = not device.capturing(stream)
        if stamped and device not in self._bases:
            device.synchronize(stream)
            self._bases[device] = perf_counter_ns() / 1e3, device.stamp(stream)
        with self.span(name, "replay", steps=len(steps)):
            for title, step in zip(titles, steps, strict=True):
                begin = device.stamp(stream) if stamped else None
                with _range(title):
                    step(stream)
                if stamped:
                    end = device.stamp(stream)
                    self._stamps.append(Stamp(device, stream, title, begin, end))

    # -- writing ------------------------------------------------------------------------------
    def _events(self) -> list[dict[str, Any]]:
        """Returns the events of the trace: names of the tracks, then spans of host and device."""
        devices = list(self._bases)
        names = ["host", *(f"{device} {device.name}" for device in devices)]
        found: list[dict[str, Any]] = [
            {"name": "process_name", "ph": "M", "pid": i, "tid": 0, "args": {"name": name}}
            for i, name in enumerate(names)
        ]
        found += self._spans
        for pid, device in enumerate(devices, 1):
            own = [each for each in self._stamps if each.device is device]
            at, base = self._bases[device]
            times = device.since(base, [s for each in own for s in (each.begin, each.end)])
            for i, each in enumerate(own):
                begin, end = times[2 * i : 2 * i + 2]
                place = {"pid": pid, "tid": each.stream, "ts": at + begin, "dur": end - begin}
                found.append({"name": each.name, "cat": "step", "ph": "X", **place, "args": {}})
        return found


def recording() -> timeline | None:
    """Returns the timeline that is being recorded, or None."""
    return _active


def marked(name: str, category: str) -> AbstractContextManager[None]:
    """Returns a context manager that records a span if a timeline is being recorded."""
    return nullcontext() if _active is None else _active.span(name, category)


def record(function: Callable[..., Any]) -> None:
    """Lets timelines record the calls of a generated function
    (:func:`ptxgen.program.prepared.fast_path`).
    """
    _functions.add(function)
    from_environment()
    if _active is not None:
        _exchange(function)


@cache
def from_environment() -> None:
    """Starts the timeline of :data:`VARIABLE`, if it is set, and writes it when Python ends. Does
    nothing the second time.
    """
    path = os.environ.get(VARIABLE)
    if path and _active is None:
        made = timeline(path).__enter__()

        def end() -> None:
            if _active is made and os.getpid() == made._process:
                made.__exit__(None, None, None)

        atexit.register(end)


def _range(name: str) -> Any:
    """Returns an NVTX range of the domain ``ptxgen``; one that does nothing without package
    nvtx.
    """
    try:
        import nvtx
    except ImportError:
        return nullcontext()
    return nvtx.annotate(name, domain="ptxgen")


def _exchange(function: Any) -> None:
    """Puts wrappers that record spans into the namespace of a generated function while a timeline
    is recorded, and the originals back otherwise.
    """
    names, prefix = function.__globals__, function.prefix
    find, slow, into = (f"{prefix}{name}" for name in ("find", "slow_path", "into"))
    originals = function.__dict__.setdefault("originals", {n: names[n] for n in (find, slow, into)})
    if _active is None:
        names.update(originals)
        return
    span = partial(_active.span, function.__name__, "call")

    def within(work: Callable[..., Any], *args: Any) -> Any:
        with span():
            return work(*args)

    def found(key: Any) -> Any:
        code = originals[find](key)
        if code is None:
            return None
        if type(code) is NegationChecked:
            return NegationChecked(partial(within, code.code))
        return partial(within, code)

    names[find], names[slow] = found, partial(within, originals[slow])
    names[into] = None if originals[into] is None else partial(within, originals[into])
