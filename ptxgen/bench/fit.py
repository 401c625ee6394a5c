"""From measured times to the constants of kernels (:mod:`ptxgen.tiles.tunings`).

A route's time is the sum of its kernels' times, each a sum of terms with constants that are not
negative. They are fitted so that predictions are as many percent too high as too low: least squares
of (predicted - measured) / sqrt(predicted * measured), by repeated linear least squares. Kernels
far behind a problem's fastest count less: what they take there decides little.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import geometric_mean

import numpy as np
from numpy.typing import NDArray

from ptxgen.bench.bands import quantile
from ptxgen.bench.journal import Record
from ptxgen.spec import Route
from ptxgen.tiles import TABLES
from ptxgen.tiles.tunings import TERMS, UNKNOWN, Constants, Tuning

Floats = NDArray[np.float64]

ROUNDS = 6
FAR = 2.0
"""So many times the fastest, and a kernel was timed little: what is then so many times
(:data:`HICCUP`) over its fit is no time of the kernel's."""
HICCUP = 2.5
FOLDS = 5


@dataclass(frozen=True)
class Point:
    """A measured route: its kernels' terms, its time, and that of the problem's fastest route."""

    problem: int
    route: str
    terms: Mapping[str, tuple[float, ...]]
    us: float
    best: float


def points(records: Sequence[Record], tuning: Tuning) -> list[Point]:
    """What was measured of the routes that the tables still have."""
    routes = {
        key: {r.name: r for r in TABLES[key].routes} for key in {r.problem[0] for r in records}
    }
    found = []
    for number, record in enumerate(records):
        key, (m, n, k), align = record.problem
        space = TABLES[key].space
        values = dict(zip(space.arguments, (m, n, k, tuning.sms, *align), strict=True))
        env = space.environment(values)
        times = {name: us for name, us in record.times.items() if name in routes[key]}
        for name, us in times.items():
            terms = route_terms(routes[key][name], env, tuning)
            found.append(Point(number, name, terms, us, min(times.values())))
    return found


def route_terms(
    route: Route, env: Mapping[str, int], tuning: Tuning
) -> dict[str, tuple[float, ...]]:
    """The terms of each kernel of a route, with constants of 1."""
    found = {}
    for kernel, effort in zip(route.kernels, route.efforts or (), strict=True):
        numbers = (formula.evaluate(env) for formula in effort.formulas)
        found[kernel.name] = tuning.terms(effort.unit, effort.slots, tuning.sms, *numbers)
    return found


def fit(of: Iterable[Point]) -> dict[str, Constants]:
    """The constants of all kernels in ``of``, those that share routes together."""
    groups: list[tuple[set[str], list[Point]]] = []
    for point in of:
        kernels, members = {*point.terms}, [point]
        for group in [g for g in groups if g[0] & kernels]:
            groups.remove(group)
            kernels |= group[0]
            members = group[1] + members
        groups.append((kernels, members))
    return {name: c for kernels, members in groups for name, c in _fitted(kernels, members).items()}


def _fitted(kernels: set[str], members: Sequence[Point]) -> dict[str, Constants]:
    names = sorted(kernels)
    column = {name: i * len(TERMS) for i, name in enumerate(names)}
    matrix: Floats = np.zeros((len(members), len(names) * len(TERMS)))
    for row, point in enumerate(members):
        for name, terms in point.terms.items():
            matrix[row, column[name] : column[name] + len(TERMS)] += terms
    us = np.array([point.us for point in members])
    behind = us / np.array([point.best for point in members])
    predicted, kept = us.copy(), np.ones(len(us), bool)
    constants: Floats = np.zeros(matrix.shape[1])
    for number in range(ROUNDS):
        weight = kept / np.sqrt(behind * predicted * us)
        constants = _least_squares(matrix * weight[:, None], us * weight)
        predicted = np.maximum(matrix @ constants, 0.3 * us)
        if number == ROUNDS // 2:
            kept = ~((behind > FAR) & (us > HICCUP * predicted))
    return {
        name: tuple(map(float, constants[column[name] : column[name] + len(TERMS)]))
        for name in names
    }


def _least_squares(matrix: Floats, wanted: Floats) -> Floats:
    """The x >= 0 with the least ``|matrix x - wanted|``."""
    from scipy.optimize import nnls

    scale = np.maximum(np.abs(matrix).max(axis=0), 1e-300)
    # The triangle has the same least squares as the matrix, and fewer rows.
    q, r = np.linalg.qr(matrix / scale)
    found: Floats = nnls(r, q.T @ wanted, maxiter=100 * r.shape[1])[0] / scale
    return found


# -- how good that is ---------------------------------------------------------------
@dataclass(frozen=True)
class Regret:
    """Times of what was chosen over those of the fastest."""

    problems: int
    mean: float
    p90: float
    worst: float
    worst_at: str

    @classmethod
    def of(cls, ratios: Mapping[str, float]) -> Regret:
        """Of the ratios of problems, by what the problems are called."""
        if not ratios:
            return cls(0, math.nan, math.nan, math.nan, "")
        at = max(ratios, key=lambda name: ratios[name])
        values = sorted(ratios.values())
        p90 = quantile(values, 0.9)
        return cls(len(values), geometric_mean(values), p90, ratios[at], at)


def held_out(records: Sequence[Record], tuning: Tuning) -> dict[str, tuple[float, int]]:
    """Chosen over fastest, and M, of each problem, by constants fitted without its K and N."""
    known = points(records, tuning)
    fold = [_fold(record) for record in records]
    found: dict[str, tuple[float, int]] = {}
    for left_out in range(FOLDS):
        constants = fit(p for p in known if fold[p.problem] != left_out)
        found |= regrets(records, [p for p in known if fold[p.problem] == left_out], constants)
    return found


def regrets(
    records: Sequence[Record], of: Iterable[Point], constants: Mapping[str, Constants]
) -> dict[str, tuple[float, int]]:
    """Chosen over fastest, and M, by problem."""
    chosen: dict[int, tuple[float, float]] = {}
    for point in of:
        predicted = sum(
            sum(c * t for c, t in zip(constants.get(name, UNKNOWN), terms, strict=True))
            for name, terms in point.terms.items()
        )
        if point.problem not in chosen or predicted < chosen[point.problem][0]:
            chosen[point.problem] = predicted, point.us / point.best
    return {
        _name(records[i]): (ratio, records[i].problem[1][0]) for i, (_, ratio) in chosen.items()
    }


def _fold(record: Record) -> int:
    _, (_, n, k), _ = record.problem
    return (k * 7919 + n * 104729) % FOLDS


def _name(record: Record) -> str:
    key, (m, n, k), (a, b) = record.problem
    return f"{' '.join(key)} M={m} N={n} K={k} align {a},{b}"
