"""Fits the constants of kernels (:mod:`ptxgen.cost.tuning`) to measured times.

A route's time is the sum of its kernels' times, each a sum of terms with non-negative constants.
They are fitted in two steps. The first makes relative errors small and balanced: least squares of
(predicted - measured) / sqrt(predicted * measured), by repeated linear least squares. Kernels far
behind a problem's fastest count less, since their times decide little. The second makes choices
good: errors that all kernels share do no harm, but errors between two close kernels do. It
minimises, by gradient descent,

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
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ptxgen.cost.tuning import TERMS, UNKNOWN, Constants

Floats = NDArray[np.float64]

ROUNDS = 6
"""Iterations of the linear least squares; each takes its weights from the predictions of the one
before. Outliers are found after half of them."""
FAR = 2.0
"""Slowdown relative to a problem's fastest route, above which a route was timed only a few times. A
time that is beyond it, and also above :data:`HICCUP` times its prediction, is an outlier."""
HICCUP = 2.5
BEHIND = 2.0
"""Exponent of the weights of measurements: a route that takes r times the fastest route's time has
weight r**-BEHIND."""
SPREAD = 0.02
"""Scale of the relative error of predictions from which chances of choices follow: a route that is
predicted to take r times as long has r**(-1 / SPREAD) times the chance."""
LIKENESS = 6.0
"""Weight of the error of predicted times in the loss of :func:`refine_for_choices`."""
DESCENT = 150
"""Maximum number of iterations of L-BFGS-B, by which :func:`refine_for_choices` minimises."""
FOLDS = 5
"""Groups of problems of a cross-validation, each of which is left out of a fit."""
HOLD = 0.01
"""Weight of a prior: a constant that deviates from its prior by 100 % costs as much as a time with
the relative error sqrt(HOLD)."""
PRIOR, LEAST = (4.0, 1.0, 1.0, 1.0, 1.0, 0.1, 0.1, 1.0), 0.05
"""Prior values of the constants in :func:`fit_with_prior`, in the order of TERMS. A deviation from
a prior is relative to that prior, or to LEAST where the prior is less."""
NO_PRIOR: Mapping[str, Constants] = MappingProxyType({})
"""Prior of a fit to measured times alone: no kernel has one."""


class Problem(Protocol):
    """Interface of a benchmark problem in a fit. Problems have an order and are keys of dicts."""

    @property
    def group(self) -> int:
        """Number of the cross-validation group; problems with the same number are left out of a fit
        together.
        """


@dataclass(frozen=True)
class Point:
    """A measured time of a route (a sequence of kernels) for one problem; all times in µs.

    ``route``: its name; ``us``: the measured time; ``best``: the time of the problem's fastest
    route. ``terms``: for each kernel whose constants are fitted, the quantities that these
    multiply, in the order of TERMS. ``held``: predicted time of the route's other kernels.
    """

    problem: Problem
    route: str
    terms: Mapping[str, tuple[float, ...]]
    us: float
    best: float
    held: float = 0.0


def fit(of: Iterable[Point], prior: Mapping[str, Constants] = NO_PRIOR) -> dict[str, Constants]:
    """Fits the constants of kernels to the measured points ``of``: by :func:`fit_relative_errors`,
    refined by :func:`refine_for_choices`. Returns the constants of TERMS by kernel.

    ``prior``: constants by kernel from which few measurements should not lead far away.
    """
    known = sorted(of, key=attrgetter("problem"))
    return refine_for_choices(fit_relative_errors(known, prior), known) if known else {}


def fit_relative_errors(
    of: Iterable[Point], prior: Mapping[str, Constants] = NO_PRIOR
) -> dict[str, Constants]:
    """Fits the constants of kernels to measured times by least squares of relative errors.

    Kernels that occur in one route are fitted together; groups of kernels without a common route
    are independent. ``prior``: constants by kernel, with the weight :data:`HOLD`; other kernels
    have none.
    """
    groups: list[tuple[set[str], list[Point]]] = []
    for point in of:
        kernels, members = {*point.terms}, [point]
        for group in [g for g in groups if g[0] & kernels]:
            groups.remove(group)
            kernels |= group[0]
            members = group[1] + members
        groups.append((kernels, members))
    return {
        name: c
        for kernels, members in groups
        for name, c in _fit(_System(kernels, members), prior).items()
    }


class _System:
    """Predicted times of measured points as a linear system, ``matrix @ constants + held``, with a
    row for each point and a column for each kernel and term.

    ``us``: the measured times; ``held``: predicted times of kernels whose constants are not fitted;
    ``behind``: each measured time / that of the problem's fastest route.
    """

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

    def trusted(self, predicted: Floats) -> NDArray[np.bool_]:
        """Returns a mask of the points, false for outliers.

        An outlier is more than :data:`FAR` times the problem's fastest route, and :data:`HICCUP`
        times its ``predicted`` time.
        """
        hiccups: NDArray[np.bool_] = (self.behind > FAR) & (self.us > HICCUP * predicted)
        return ~hiccups

    def named(self, constants: Floats) -> dict[str, Constants]:
        """Splits ``constants``, a solution of the system, into the constants of each kernel, by
        name.
        """
        each = constants.reshape(-1, len(TERMS)).tolist()
        return {name: tuple(c) for name, c in zip(self.names, each, strict=True)}


def fit_with_prior(of: Iterable[Point], others: Iterable[str] = ()) -> dict[str, Constants]:
    """Fits the constants of one table's kernels to few measured times, with a prior.

    First all kernels share their constants, whose prior is :data:`PRIOR`; then each has its own,
    whose prior is the shared ones. :data:`HOLD` is the weight of a prior. ``others``: kernels of
    the table; those without measured times get the shared constants.
    """
    members = [*of]
    if not members:
        return dict.fromkeys(others, PRIOR)
    system = _System({kernel for point in members for kernel in point.terms}, members)
    summed = system.matrix.toarray().reshape(len(members), -1, len(TERMS)).sum(axis=1)
    shared = tuple(_solve(system, summed, *_prior_equations(np.array(PRIOR))).tolist())
    return dict.fromkeys(others, shared) | _fit(system, dict.fromkeys(system.names, shared))


def _prior_equations(prior: Floats) -> tuple[Floats, Floats]:
    """Returns the matrix and the right side of least-squares equations ``constants = prior``."""
    pull = math.sqrt(HOLD) / np.maximum(prior, LEAST)
    return np.diag(pull), pull * prior


def _fit(system: _System, prior: Mapping[str, Constants]) -> dict[str, Constants]:
    """Fits constants of their own to each kernel of ``system``, near those that ``prior`` has."""
    wanted = np.concatenate([prior.get(name, PRIOR) for name in system.names])
    rows = np.repeat([name in prior for name in system.names], len(TERMS))
    held = [equations[rows] for equations in _prior_equations(wanted)]
    return system.named(_solve(system, system.matrix.toarray(), *held))


def _solve(system: _System, matrix: Floats, *more: Floats) -> Floats:
    """Returns the ``constants`` >= 0 for which ``matrix @ constants + system.held`` is closest to
    the measured times, by relative error; outliers are left out.

    ``matrix``: the system's, or a sum of its columns over kernels. ``more``: a matrix and a right
    side, further equations of the least-squares problem.
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
            kept = system.trusted(predicted)
    return constants


def refine_for_choices(first: Mapping[str, Constants], of: Sequence[Point]) -> dict[str, Constants]:
    """Refines the constants ``first`` (by kernel), so that the routes with the shortest predicted
    times are fast ones.

    It minimises the expected slowdown of the chosen routes, plus the error of predicted times.
    ``of``: measured points, those of one problem consecutive.
    """
    from scipy.optimize import minimize

    system = _System(first, of)
    starts = [i for i in range(len(of)) if i == 0 or of[i].problem != of[i - 1].problem]
    lengths = np.diff([*starts, len(of)])
    lost = np.minimum(np.log(system.behind), np.log(2 * FAR))
    scale = np.sqrt(np.maximum((system.matrix**2).mean(axis=0), 1e-18))
    matrix = (system.matrix / scale).tocsr()  # a single row of SciPy's coo_array gives a scalar
    start = np.concatenate([first[name] for name in system.names]) * scale
    weight = system.trusted(matrix @ start + system.held) / system.behind**BEHIND
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
    """Statistics, over problems, of the regret: time of the chosen route / time of the fastest.

    ``problems``: number of problems; ``mean``: geometric mean; ``p90``: 90th percentile; ``worst``:
    the largest regret, at problem ``worst_at``.
    """

    problems: int
    mean: float
    p90: float
    worst: float
    worst_at: str

    @classmethod
    def of(cls, ratios: Mapping[Any, float]) -> Regret:
        """Returns the statistics of ``ratios``: chosen time / fastest time, by problem."""
        if not ratios:
            return cls(0, math.nan, math.nan, math.nan, "")
        at = max(ratios, key=lambda problem: ratios[problem])
        values = sorted(ratios.values())
        p90 = float(np.quantile(values, 0.9))
        return cls(len(values), geometric_mean(values), p90, ratios[at], str(at))


def held_out(known: Sequence[Point], fit: Fit = fit) -> dict[Any, float]:
    """Cross-validates ``fit`` on the measured points ``known``: returns :func:`regrets` by problem,
    of routes chosen with constants that were fitted to the problems of other groups.
    """
    found: dict[Any, float] = {}
    for left_out in range(FOLDS):
        constants = fit(p for p in known if _fold(p.problem) != left_out)
        found |= regrets((p for p in known if _fold(p.problem) == left_out), constants)
    return found


def regrets(of: Iterable[Point], constants: Mapping[str, Constants]) -> dict[Any, float]:
    """Returns the regret by problem: measured time of the route with the shortest predicted time /
    time of the fastest route.

    ``of``: measured points; ``constants``: by kernel, which predict the times.
    """
    chosen: dict[Any, tuple[float, float]] = {}
    for point in of:
        predicted = point.held + sum(
            sum(c * t for c, t in zip(constants.get(name, UNKNOWN), terms, strict=True))
            for name, terms in point.terms.items()
        )
        if point.problem not in chosen or predicted < chosen[point.problem][0]:
            chosen[point.problem] = predicted, point.us / point.best
    return {problem: ratio for problem, (_, ratio) in chosen.items()}


def _fold(problem: Problem) -> int:
    return problem.group % FOLDS
