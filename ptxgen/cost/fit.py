"""Fits the constants of kernels (:mod:`ptxgen.cost.tuning`) to measured times.

A route's time is the sum of its kernels' times, each a sum of terms with non-negative constants.
They are fitted in two steps. The first makes relative errors small and balanced: least squares of
(predicted - measured) / sqrt(predicted * measured), by repeated linear least squares. Kernels far
behind a problem's fastest count less, since their times decide little. The second makes choices
good: errors that all kernels share do no harm, but errors between two close kernels do. It descends
on

    mean over problems of (sum over routes of p * log(time / fastest))
    + LIKENESS * mean of log(predicted / measured)**2

where p is the chance that a route is chosen, if predictions were off by about SPREAD.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from statistics import geometric_mean
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ptxgen.cost.tuning import TERMS, UNKNOWN, Constants

Floats = NDArray[np.float64]

ROUNDS = 6
FAR = 2.0
"""Slowdown, relative to a problem's fastest route, beyond which a kernel was timed only briefly: a
time that exceeds its fit by a factor of :data:`HICCUP` is then taken for a hiccup."""
HICCUP = 2.5
BEHIND = 2.0
"""Exponent of the weights: a route that takes r times the fastest route's time has weight
r**-BEHIND."""
SPREAD = 0.02
LIKENESS = 6.0
DESCENT = 150
"""Most steps of the descent."""
FOLDS = 5
HOLD = 0.01
"""Strength with which :func:`near` holds constants to their prior: one that is off by as much as
its prior costs as much as a time that is off by sqrt(HOLD)."""
PRIOR, LEAST = (4.0, 1.0, 1.0, 1.0, 1.0, 0.1, 0.1, 1.0), 0.05
"""Prior constants of :func:`near`, in the order of TERMS, and the least prior that deviations are
measured by."""


class Posed(Protocol):
    """Protocol of a problem; problems of a kind are ordered."""

    @property
    def group(self) -> int:
        """Number of the group of problems that are left out of a fit together."""


@dataclass(frozen=True)
class Point:
    """A measured route: its kernels' terms, its time, and that of the problem's fastest route.

    ``held``: the time, in µs, of those of its kernels whose constants are known.
    """

    problem: Posed
    route: str
    terms: Mapping[str, tuple[float, ...]]
    us: float
    best: float
    held: float = 0.0


def fit(of: Iterable[Point]) -> dict[str, Constants]:
    """Returns the constants of all kernels in ``of``."""
    known = sorted(of, key=attrgetter("problem"))
    return sharpened(alike(known), known) if known else {}


def alike(of: Iterable[Point]) -> dict[str, Constants]:
    """Returns constants by which predicted times are close to the measured ones.

    Kernels that share routes are fitted together.
    """
    groups: list[tuple[set[str], list[Point]]] = []
    for point in of:
        kernels, members = {*point.terms}, [point]
        for group in [g for g in groups if g[0] & kernels]:
            groups.remove(group)
            kernels |= group[0]
            members = group[1] + members
        groups.append((kernels, members))
    return {name: c for kernels, members in groups for name, c in _fitted(kernels, members).items()}


class _System:
    """A linear system with a row for each point: matrix times constants is predicted times."""

    def __init__(self, kernels: Iterable[str], of: Sequence[Point]) -> None:
        from scipy.sparse import csr_array

        self.names = sorted(kernels)
        first = {name: i * len(TERMS) for i, name in enumerate(self.names)}
        entries = [
            (row, first[name] + i, term)
            for row, point in enumerate(of)
            for name, terms in point.terms.items()
            for i, term in enumerate(terms)
        ]
        rows, columns, values = zip(*entries, strict=True)
        shape = len(of), len(self.names) * len(TERMS)
        self.matrix = csr_array((values, (rows, columns)), shape=shape)
        self.us = np.array([point.us for point in of])
        self.held = np.array([point.held for point in of])
        self.behind = self.us / np.array([point.best for point in of])

    def timed(self, predicted: Floats) -> NDArray[np.bool_]:
        """Returns which times are the kernel's own; a time far behind the fastest and far above its
        fit may be a hiccup.
        """
        hiccups: NDArray[np.bool_] = (self.behind > FAR) & (self.us > HICCUP * predicted)
        return ~hiccups

    def named(self, constants: Floats) -> dict[str, Constants]:
        """Returns the constants by kernel."""
        each = constants.reshape(-1, len(TERMS)).tolist()
        return {name: tuple(c) for name, c in zip(self.names, each, strict=True)}


def near(of: Iterable[Point], others: Iterable[str] = ()) -> dict[str, Constants]:
    """Returns constants close to the measured times for the kernels of one table, with few results
    for each.

    First all kernels share their constants, held near :data:`PRIOR`; then each has its own, held
    near the shared ones. A constant that is off by as much as its prior counts as a result that is
    ``sqrt(HOLD)`` off. ``others``: kernels of the table; those without results get the shared
    constants.
    """
    members = [*of]
    system = _System({kernel for point in members for kernel in point.terms}, members)
    matrix = system.matrix.toarray()
    count, summed = len(system.names), matrix.reshape(len(members), -1, len(TERMS)).sum(axis=1)
    shared = _solved(system, summed, *_held(np.array(PRIOR)))
    found = system.named(_solved(system, matrix, *_held(np.tile(shared, count))))
    return dict.fromkeys(others, tuple(shared.tolist())) | found


def _held(wanted: Floats) -> tuple[Floats, Floats]:
    """Returns equations, and their right sides, that hold constants near ``wanted``."""
    pull = math.sqrt(HOLD) / np.maximum(wanted, LEAST)
    return np.diag(pull), pull * wanted


def _fitted(kernels: set[str], members: Sequence[Point]) -> dict[str, Constants]:
    system = _System(kernels, members)
    return system.named(_solved(system, system.matrix.toarray()))


def _solved(system: _System, matrix: Floats, *more: Floats) -> Floats:
    """Returns the constants whose product with ``matrix`` gives the system's times. ``more``:
    further equations, as a matrix and its right side.
    """
    us = system.us
    predicted, kept = us.copy(), np.ones(len(us), bool)
    constants: Floats = np.zeros(matrix.shape[1])
    for number in range(ROUNDS):
        weight = kept / np.sqrt(system.behind**BEHIND * predicted * us)
        left, right = matrix * weight[:, None], (us - system.held) * weight
        if more:
            left, right = np.vstack((left, more[0])), np.concatenate((right, more[1]))
        constants = _least_squares(left, right)
        predicted = np.maximum(matrix @ constants + system.held, 0.3 * us)
        if number == ROUNDS // 2:
            kept = system.timed(predicted)
    return constants


def sharpened(first: Mapping[str, Constants], of: Sequence[Point]) -> dict[str, Constants]:
    """Returns ``first``, changed so that choices are good, too. The points of a problem are
    consecutive.
    """
    from scipy.optimize import minimize

    system = _System(first, of)
    starts = [i for i in range(len(of)) if i == 0 or of[i].problem != of[i - 1].problem]
    lengths = np.diff([*starts, len(of)])
    lost = np.minimum(np.log(system.behind), np.log(2 * FAR))
    scale = np.sqrt(np.maximum((system.matrix**2).mean(axis=0), 1e-18))
    matrix = (system.matrix / scale).tocsr()  # a single row of SciPy's coo_array gives a scalar
    start = np.concatenate([first[name] for name in system.names]) * scale
    weight = system.timed(matrix @ start + system.held) / system.behind**BEHIND
    weight *= LIKENESS / weight.sum()

    def loss(constants: Floats) -> tuple[float, Floats]:
        """Returns the loss and its derivative."""
        predicted = np.maximum(matrix @ constants + system.held, 1e-3)
        off = np.log(predicted / system.us)
        score = -np.log(predicted) / SPREAD
        score -= np.repeat(np.maximum.reduceat(score, starts), lengths)
        chance = np.exp(score)
        chance /= np.repeat(np.add.reduceat(chance, starts), lengths)
        expected = np.add.reduceat(chance * lost, starts)
        slope = chance * (np.repeat(expected, lengths) - lost) / (SPREAD * len(starts))
        slope += 2 * weight * off
        return float(expected.mean() + weight @ off**2), matrix.T @ (slope / predicted)

    bounds = [(0.0, None)] * len(start)
    steps = {"maxiter": DESCENT, "maxfun": 2 * DESCENT}
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=steps)
    return system.named(np.maximum(found.x, 0.0) / scale)


def _least_squares(matrix: Floats, wanted: Floats) -> Floats:
    """Returns the x >= 0 with the least ``|matrix x - wanted|``."""
    from scipy.optimize import nnls

    scale = np.maximum(np.abs(matrix).max(axis=0), 1e-300)
    # R of the QR decomposition has the same least-squares solution, and fewer rows.
    q, r = np.linalg.qr(matrix / scale)
    found: Floats = nnls(r, q.T @ wanted, maxiter=100 * r.shape[1])[0] / scale
    return found


Fit = Callable[[Iterable[Point]], dict[str, Constants]]
"""Type of a function like :func:`fit`: from points to constants by kernel."""


# -- how good that is ---------------------------------------------------------------
@dataclass(frozen=True)
class Regret:
    """Statistics of the chosen route's time over the fastest route's, over problems."""

    problems: int
    mean: float
    p90: float
    worst: float
    worst_at: str

    @classmethod
    def of(cls, ratios: Mapping[Any, float]) -> Regret:
        """Returns the statistics of ``ratios``, chosen over fastest time by problem."""
        if not ratios:
            return cls(0, math.nan, math.nan, math.nan, "")
        at = max(ratios, key=lambda problem: ratios[problem])
        values = sorted(ratios.values())
        p90 = float(np.quantile(values, 0.9))
        return cls(len(values), geometric_mean(values), p90, ratios[at], str(at))


def held_out(known: Sequence[Point], fit: Fit = fit) -> dict[Any, float]:
    """Returns the ratio of chosen to fastest time of each problem, by constants that ``fit`` found
    without the problem's group.
    """
    found: dict[Any, float] = {}
    for left_out in range(FOLDS):
        constants = fit(p for p in known if _fold(p.problem) != left_out)
        found |= regrets((p for p in known if _fold(p.problem) == left_out), constants)
    return found


def regrets(of: Iterable[Point], constants: Mapping[str, Constants]) -> dict[Any, float]:
    """Returns the ratio of chosen to fastest time, by problem."""
    chosen: dict[Any, tuple[float, float]] = {}
    for point in of:
        predicted = point.held + sum(
            sum(c * t for c, t in zip(constants.get(name, UNKNOWN), terms, strict=True))
            for name, terms in point.terms.items()
        )
        if point.problem not in chosen or predicted < chosen[point.problem][0]:
            chosen[point.problem] = predicted, point.us / point.best
    return {problem: ratio for problem, (_, ratio) in chosen.items()}


def _fold(problem: Posed) -> int:
    return problem.group % FOLDS
