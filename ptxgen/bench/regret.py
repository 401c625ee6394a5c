"""Regret: the time of the kernel that the dispatcher chose over that of the best of its table.

The minimum of thirty noisy times is biased low. So the best kernel is found first, and it and the
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
"""Ratio to the fastest first time within which a kernel is timed again as a possible best."""


def serving(case: Case, align: tuple[int, int]) -> dict[str, tuple[str, ...]]:
    """Returns the routes that are correct for ``case``: the names of their kernels, by the name
    that forces the route.
    """
    arch, sms, _ = measure.target()
    twins = _kernels(case.table, case.dtype)
    return dict(twins[name] for name in admissible(case, align, arch, sms))


@cache
def _kernels(key: Key, dtype: str) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Returns, by the name of each route of a table, its name and kernels for ``dtype``."""
    pairs = [(route, route.of(dtype)) for route in TABLES[key].routes]
    return {r.name: (twin.name, tuple(k.name for k in twin.kernels)) for r, twin in pairs}


def best_of(
    chosen: str, times: Mapping[str, float], timed: Callable[[Sequence[str]], Sequence[float]]
) -> Best:
    """Returns the best kernel and the regret of ``chosen``.

    ``times``: a first time of every kernel, ``chosen`` included. ``timed`` times kernels in turns.
    The best is the fastest of the kernels within :data:`NEAR` and the chosen one, timed together.
    The reported times are another set, which had no part in the selection.
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
    """Returns :func:`best_of` on the current GPU; ``work`` has the call of each kernel."""
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
    """Returns the best kernel of a case on the current GPU (None if the chosen kernel is wrong),
    and why others are wrong.

    Kernels are compared with the bits of the chosen one, whose result ``out`` was checked before.
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
