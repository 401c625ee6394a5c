"""Regret: the chosen kernel's time over that of the fastest kernel of its route table.

The minimum of thirty noisy times is biased low. So the fastest kernel is found first; then it and
the chosen one are timed again, alternately, and the quotient of these medians is the regret. It is
1 where the chosen kernel is the fastest, and about 1, above or below, where another is as fast.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ptxgen.bench import measure
from ptxgen.bench.cases import Case
from ptxgen.bench.results import Best
from ptxgen.bench.tune import GpuMeter, admissible, derived, dtype_of

NEAR = 1.15
"""Multiple of the fastest kernel's time up to which a kernel is timed again as a candidate."""


def serving(case: Case, align: tuple[int, int]) -> dict[str, tuple[str, ...]]:
    """Returns the routes that are correct for ``case`` on the current GPU: kernel names by the
    route's name. ``align``: byte alignments of A and B.
    """
    arch, sms, _ = measure.target()
    routes = derived(case.table, dtype_of(case))
    found = (routes[name] for name in admissible(case, align, arch, sms))
    return {route.name: route.names for route in found}


def best_of(
    chosen: str, times: Mapping[str, float], timed: Callable[[Sequence[str]], Sequence[float]]
) -> Best:
    """Returns the fastest kernel and the regret of ``chosen``.

    ``times``: a first time of every kernel, ``chosen`` included. ``timed(names)`` times kernels
    alternately and returns their µs. Candidates are the kernels within :data:`NEAR` times the
    fastest and the chosen one, timed together. The reported times are measured anew, so that the
    selection does not bias them.
    """
    limit = NEAR * min(times.values())
    near = [name for name, us in times.items() if us <= limit or name == chosen]
    first = dict(zip(near, timed(near), strict=True))
    best = min(near, key=first.__getitem__)
    pair = list(dict.fromkeys((best, chosen)))
    second = dict(zip(pair, timed(pair), strict=True))
    return Best(best, second[best], second[chosen] / second[best])


def time_best(
    timer: measure.Timer,
    effort: tuple[float, int, int],
    work: Mapping[str, measure.Work],
    chosen: str,
    times: Mapping[str, float],
) -> Best:
    """Times kernels on the current GPU; returns the fastest and the regret of ``chosen``, by
    :func:`best_of`.

    ``effort``: ms of timing for a call, minimum and maximum repetitions; ``work``: the call of each
    kernel by name; ``times``: a first time of each kernel, µs.
    """
    count = measure.repetitions(times[chosen], *effort)

    def timed(names: Sequence[str]) -> list[float]:
        samples = timer([work[name] for name in names], [count] * len(names))
        return [sample.median for sample in samples]

    return best_of(chosen, times, timed)


def measure_regret(
    meter: GpuMeter,
    timer: measure.Timer,
    effort: tuple[float, int, int],
    case: Case,
    operands: measure.Operands,
    out: Any,
) -> tuple[Best | None, dict[str, str]]:
    """Times all kernels that are correct for ``case`` on the current GPU; returns the fastest one
    with the regret of the chosen one, and the errors of wrong kernels by name.

    A kernel is wrong if its bits differ from the chosen one's; the result is None if that one is
    wrong. ``meter`` checks bits and takes first times; ``timer`` times the fastest with ``effort``
    (ms for a call, minimum and maximum repetitions). ``operands``, ``out``: arrays of these timed
    calls.
    """
    a, b = (measure.alignment(t) for t in operands.stored(case.layout))
    kernels = serving(case, (a, b))
    chosen = measure.chosen(case, (a, b)).name
    times, wrong = meter(case, [chosen, *(name for name in kernels if name != chosen)])
    if chosen not in times:
        return None, wrong
    work = {name: measure.ours(case, operands, out, name) for name in times}
    best = time_best(timer, effort, work, chosen, times)
    return Best(" + ".join(kernels[best.kernel]), best.us, best.regret), wrong
