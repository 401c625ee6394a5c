"""Regret: the time of the kernel that the dispatcher chose over that of the best of its table.

The least of thirty noisy times flatters. So the best kernel is looked for first, and it and the
chosen one are then timed again, in turns: the quotient of these medians is the regret. It is 1
where the chosen kernel is the best, and about 1, on either side, where another is as fast.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from ptxgen.bench import measure
from ptxgen.bench.cases import Case
from ptxgen.bench.results import Best
from ptxgen.bench.tune import GpuMeter, admissible
from ptxgen.spec import Key
from ptxgen.tiles import TABLES

NEAR = 1.15
"""A kernel within this factor of the fastest may be the best."""


def serving(case: Case, align: tuple[int, int]) -> dict[str, tuple[str, ...]]:
    """The routes that are correct for ``case``: their kernels, by the first, which forces them."""
    arch, sms, _ = measure.target()
    twins = _kernels(case.table, case.dtype)
    return dict(twins[name] for name in admissible(case, align, arch, sms))


@cache
def _kernels(key: Key, dtype: str) -> dict[str, tuple[str, tuple[str, ...]]]:
    """By the name of each route of a table: the name and the kernels of its twin for ``dtype``."""
    pairs = [(route, route.of(dtype)) for route in TABLES[key].routes]
    return {r.name: (twin.name, tuple(k.name for k in twin.kernels)) for r, twin in pairs}


def best_of(
    chosen: str, times: Mapping[str, float], timed: Callable[[Sequence[str]], Sequence[float]]
) -> Best:
    """The best kernel and the regret of ``chosen``.

    ``times``: a first time of every kernel, that of ``chosen`` included. ``timed``: times
    kernels in turns. The best is the fastest of those near and the chosen one, timed together;
    what is reported is of another set of timings, which had no part in choosing it.
    """
    limit = NEAR * min(times.values())
    near = [name for name, us in times.items() if us <= limit or name == chosen]
    first = dict(zip(near, timed(near), strict=True))
    best = min(near, key=first.__getitem__)
    pair = list(dict.fromkeys((best, chosen)))
    second = dict(zip(pair, timed(pair), strict=True))
    return Best(best, second[best], second[chosen] / second[best])


def best_in_turns(
    timer: measure.Timer,
    effort: tuple[float, int, int],
    work: Mapping[str, measure.Work],
    chosen: str,
    times: Mapping[str, float],
) -> Best:
    """:func:`best_of`, on the present GPU: ``work`` forces the kernels that ``times`` are of."""
    count = measure.repetitions(times[chosen], *effort)

    def timed(names: Sequence[str]) -> list[float]:
        samples = timer([work[name] for name in names], [count] * len(names))
        return [sample.median for sample in samples]

    return best_of(chosen, times, timed)


def judged(
    meter: GpuMeter,
    timer: measure.Timer,
    effort: tuple[float, int, int],
    case: Case,
    operands: measure.Operands,
    out: Any,
) -> tuple[Best | None, dict[str, str]]:
    """The best kernel that serves a case on the present GPU, and what was wrong with others; None
    where the chosen one is wrong. ``out`` has been found right: kernels are held to the bits of the
    chosen one.
    """
    a, b = (measure.alignment(t) for t in operands.stored(case.layout))
    kernels = serving(case, (a, b))
    chosen = measure.chosen(case, (a, b)).name
    times, wrong = meter(case, [chosen, *(name for name in kernels if name != chosen)])
    if chosen not in times:
        return None, wrong
    work = {name: measure.ours(case, operands, out, name) for name in times}
    best = best_in_turns(timer, effort, work, chosen, times)
    return Best(" + ".join(kernels[best.kernel]), best.us, best.regret), wrong
