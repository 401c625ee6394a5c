"""Profiles of a program's steps: times on a GPU, operation counts on the CPU device."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from os import PathLike
from pathlib import Path
from statistics import median
from typing import Any

from ptxgen.errors import DeviceError
from ptxgen.program.line import Line
from ptxgen.program.listing import Listing, table
from ptxgen.runtime import Device


@dataclass(frozen=True)
class Step:
    """Profile of one step. ``line``: the step in the listing; ``us``: its median time on a GPU,
    with a cold L2. ``kernels``: counts of each kernel on the CPU device
    (:class:`ptxgen.interp.run.profile.KernelProfile`).
    """

    line: Line
    us: float | None = None
    kernels: tuple[Any, ...] = ()

    @property
    def flop(self) -> int:
        """Floating-point operations, counted by the CPU device; 0 for a step timed on a GPU."""
        return sum(k.flop for k in self.kernels)

    @property
    def moved(self) -> int:
        """Bytes moved between L2 and the SMs, counted by the CPU device; 0 for a step timed on a
        GPU.
        """
        return sum(k.global_memory.moved for k in self.kernels)


@dataclass(frozen=True)
class Profile:
    """Profile of a program: ``steps`` has that of each step, ``device`` names the device; ``str``
    prints it as a table.

    ``us``: the median time of a whole replay, which begins with a cold L2; None on the CPU device.
    """

    name: str
    device: str
    steps: tuple[Step, ...]
    us: float | None = None

    def _timed(self) -> Iterator[tuple[Step, float]]:
        if self.us is None:
            raise DeviceError(f"{self.device} counts what kernels do, and measures no times")
        return ((step, step.us) for step in self.steps if step.us is not None)

    def __str__(self) -> str:
        own = ("flop", "bytes moved") if self.us is None else ("µs", "predicted", "GB/s")
        heads = ["step", "kernel", "bytes", *own]
        rows = [
            [s.line.what, " + ".join(s.line.kernels), f"{s.line.nbytes:,}", *_cells(s)]
            for s in self.steps
        ]
        whole = "" if self.us is None else f"\na replay of all: {self.us:.1f} µs"
        return table(heads, rows) + whole

    def trace(self, path: str | PathLike[str]) -> None:
        """Writes the steps, one after the other, as a trace file for Perfetto or Chrome.

        Raises DeviceError on a device that measures no times.
        """
        events: list[dict[str, Any]] = [
            {"name": name, "ph": "M", "pid": 0, "tid": 0, "args": {"name": text}}
            for name, text in (("process_name", self.device), ("thread_name", self.name))
        ]
        at = 0.0
        for number, (step, us) in enumerate(self._timed()):
            line = step.line
            arrays = {"reads": list(map(str, line.reads)), "writes": list(map(str, line.writes))}
            facts = {"step": number, "kernels": line.kernels, "bytes": line.nbytes, **arrays}
            place = {"ph": "X", "pid": 0, "tid": 0, "ts": at, "dur": us}
            events.append({"name": line.what, "cat": "step", **place, "args": facts})
            at += us
        Path(path).write_text(json.dumps({"traceEvents": events}), encoding="utf-8")


def _cells(step: Step) -> list[str]:
    if step.us is None:
        return [f"{step.flop:,}", f"{step.moved:,}"]
    return [f"{step.us:.1f}", f"{step.line.us:.1f}", f"{step.line.nbytes / step.us / 1e3:.0f}"]


def _ranged(name: str, work: Callable[[], None]) -> Callable[[], None]:
    """Wraps ``work`` in an NVTX range, which Nsight shows; unchanged without package nvtx."""
    try:
        import nvtx
    except ImportError:
        return work
    ranged: Callable[[], None] = nvtx.annotate(name, domain="ptxgen")(work)
    return ranged


def profiled(
    listing: Listing,
    steps: Sequence[Callable[[int], None]],
    replay: Callable[[int], None],
    device: Device,
    stream: int,
    rounds: int,
) -> Profile:
    """Profiles each step of a program, and a replay of all, ``rounds`` times. ``steps`` and
    ``replay``: functions that enqueue one step or all on a stream.
    """
    names = *(line.what for line in listing.steps), f"a replay of {listing.name}"
    works = (partial(each, stream) for each in (*steps, replay))
    where, work = f"{device} {device.name}", list(map(_ranged, names, works))
    if device.can_time:
        *times, whole = map(median, device.timed(work, stream, rounds))
        pairs = zip(listing.steps, times, strict=True)
        return Profile(listing.name, where, tuple(Step(line, us) for line, us in pairs), whole)
    counts = zip(listing.steps, map(device.counted, work[:-1]), strict=True)
    return Profile(listing.name, where, tuple(Step(line, None, found) for line, found in counts))
