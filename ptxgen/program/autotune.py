"""``autotune``: when a problem first occurs, times the kernels predicted to be fastest.

All kernels of a contract return the same bits, so a measurement changes times and nothing else.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from types import TracebackType
from typing import Any

from ptxgen.dispatch import Candidate, candidates
from ptxgen.dispatch.choice import Choice
from ptxgen.errors import OptionError, described
from ptxgen.program.launch import architecture, question, ready, remember
from ptxgen.runtime import Device, Launch
from ptxgen.spec import Problem

MOST = 4
ROUNDS = 7
"""Number of timed runs of each candidate kernel; the candidates alternate."""

_active: autotune | None = None
"""The active :class:`autotune`, or None; for all threads, as backward passes have their own."""


class autotune:  # noqa: N801 - reads like a function
    """Times the kernels predicted to be fastest for each problem that is new to the process.

    It is on inside ``with ptxgen.autotune(): ...``, or after ``ptxgen.autotune()`` alone, in all
    threads of the process. ``most``: number of kernels that are timed; ``show``: whether a line on
    stderr reports each problem; ``on=False`` turns it off.

    The kernels run on the operands of the first call of the problem, with a cold L2, into scratch
    memory; the call itself writes the results. Timing takes some milliseconds, besides compilation,
    and waits for the GPU. The winner is stored on disk, next to the compiled kernels, for this GPU,
    driver and version of the kernels. Nothing is timed while a stream captures, nor on the CPU
    device. Calls that the process has made before, and problems whose kernel is forced, keep their
    kernel.

    No bit depends on it. Raises OptionError for ``most`` < 1.
    """

    def __init__(self, on: bool = True, *, most: int = MOST, show: bool = True) -> None:
        if type(most) is not int or most < 1:
            raise OptionError(f"most is {described(most)}; takes a whole number from 1 on")
        global _active
        self.most, self.show = most, show
        self._before, _active = _active, self if on else None

    def __enter__(self) -> autotune:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        global _active
        _active = self._before


def enabled() -> bool:
    """Whether autotuning is on: new problems are timed."""
    return _active is not None


def tuned(
    problem: Problem,
    names: Sequence[str],
    device: Device,
    stream: int,
    pointers: Sequence[int],
    sizes: Mapping[str, int],
) -> Launch | None:
    """Returns the fastest launch for ``problem``, timed now or earlier; None if nothing can be
    timed.

    ``names``, ``pointers``: the launch's pointer parameters and their addresses; ``sizes``: bytes
    of each array that is written.
    """
    setting = _active
    if setting is None or not device.can_time or device.capturing(stream):
        return None
    key = problem, tuple(names), "autotune"
    found = device.prepared.get(key)
    if found is None:
        choice = _tuned_choice(setting, problem, names, device, stream, pointers, sizes)
        found = ready(problem, names, device, choice)
        remember(device.prepared, key, found)
    return found


def _tuned_choice(
    setting: autotune,
    problem: Problem,
    names: Sequence[str],
    device: Device,
    stream: int,
    pointers: Sequence[int],
    sizes: Mapping[str, int],
) -> Choice:
    best = sorted(candidates(problem.table, **question(problem, device)), key=_time)[: setting.most]
    if len(best) == 1:
        return best[0].choice

    def measure() -> dict[str, float]:
        times = _timed(problem, names, device, stream, pointers, sizes, best)
        named = {_name(c.choice): us for c, us in zip(best, times, strict=True)}
        if setting.show:
            _report(problem, best, named)
        return named

    times = remembered(problem, device, best, measure)
    return min(best, key=lambda c: times[_name(c.choice)]).choice


def remembered(
    problem: Problem,
    device: Device,
    best: Sequence[Candidate],
    measure: Callable[[], dict[str, float]],
) -> dict[str, float]:
    """Returns the times of candidates ``best`` by kernel name, µs: from the cache on disk, else
    from ``measure()``.
    """
    from ptxgen.build.cache import Entry, Key, default_cache
    from ptxgen.build.render import PACKAGE, renderer

    names = sorted(_name(c.choice) for c in best)
    values = [f"{name}={value}" for name, value in (*problem.values, ("BATCH", problem.batch))]
    text = " ".join((*problem.table, str(problem.dtype), *values, *names, renderer(PACKAGE)))
    key = Key(text, (), architecture(device), device.identity, "autotune")

    def build() -> Entry:
        return Entry(b"", {"times": measure()})

    def fault(entry: Entry) -> str | None:
        times = entry.meta.get("times")
        if not isinstance(times, dict) or sorted(times) != names:
            return "it has no times of these kernels"
        fine = all(isinstance(us, float) and 0 < us < 1e12 for us in times.values())
        return None if fine else "its times cannot be"

    times: dict[str, float] = default_cache().get_or_build(key, build, fault)[0].meta["times"]
    return times


def _timed(
    problem: Problem,
    names: Sequence[str],
    device: Device,
    stream: int,
    pointers: Sequence[int],
    sizes: Mapping[str, int],
    best: Sequence[Candidate],
) -> list[float]:
    """Times each of the candidates ``best`` with a cold L2, writing to scratch memory; returns the
    medians, µs. ``names``, ``pointers``, ``sizes``: as in :func:`tuned`.
    """
    launches = [ready(problem, names, device, candidate.choice) for candidate in best]
    scratch = {name: device.alloc(size) for name, size in sizes.items()}
    try:
        for name, pointer in scratch.items():  # kernels that accumulate read it
            device.memset(pointer, 0, sizes[name], stream)
        given = tuple(scratch.get(n, p) for n, p in zip(names, pointers, strict=True))
        work = [_enqueuing(launch, stream, given) for launch in launches]
        return [median(times) for times in device.timed(work, stream, ROUNDS)]
    finally:
        for pointer in scratch.values():
            device.free(pointer)


def _enqueuing(launch: Launch, stream: int, pointers: tuple[int, ...]) -> Callable[[], None]:
    return lambda: launch.fire(stream, *pointers)


def _report(problem: Problem, best: Sequence[Candidate], times: dict[str, float]) -> None:
    chosen = min(times, key=lambda name: times[name])
    predicted = times[_name(best[0].choice)]
    print(
        f"ptxgen.autotune: {problem} {problem.dtype}: {chosen} {times[chosen]:.1f} µs, of "
        f"{len(times)}; that predicted to be fastest {predicted:.1f} µs",
        file=sys.stderr,
    )


def _name(choice: Choice) -> str:
    return " + ".join(choice.kernels)


def _time(candidate: Candidate) -> Any:
    return candidate.time
