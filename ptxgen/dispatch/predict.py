"""Predicts times of routes that are taken in order, and of epilogue formulas of products.

The model is :meth:`ptxgen.cost.tuning.Tuning.bounds`; this module computes its arguments from a
problem. Nothing is rendered or compiled.
"""

from __future__ import annotations

from typing import NamedTuple

from ptxgen.cost.tuning import Tuning
from ptxgen.dispatch.choice import Choice
from ptxgen.spec import Problem, Route
from ptxgen.spec.epilogue import Epilogue
from ptxgen.tiles import TABLES


class Demand(NamedTuple):
    """Work of a route for a problem: the arguments of ``Tuning.bounds``.

    ``launches``: kernels; ``ctas``: CTAs of the largest launch; ``nbytes``: memory traffic;
    ``operations``: number of operations of ``unit``, such as "fma".
    """

    family: str
    launches: int
    ctas: int
    nbytes: int
    unit: str
    operations: int


def demand(problem: Problem, route: Route, choice: Choice, nbytes: int, sms: int) -> Demand:
    """Returns the work of ``route``; ``choice`` has its grids, ``nbytes`` is that of all arrays."""
    main, count = route.main, problem.count
    work = main.roofline(problem.dtype)
    scalars = {name: value for name, value in problem.scalars if isinstance(value, int)}
    known = {**scalars, **TABLES[problem.table].space.environment(problem.given(sms))}
    moved = nbytes if work.nbytes is None else work.nbytes.evaluate(known) * count
    operations = work.operations.evaluate(known) * count
    ctas = max(choice.grids) * count
    return Demand(main.family, len(choice.grids), ctas, moved, work.unit, operations)


def bounds(
    problem: Problem, route: Route, choice: Choice, nbytes: int, tuning: Tuning, sms: int
) -> dict[str, float]:
    """Returns the predicted µs by name of :data:`ptxgen.cost.tuning.BOUNDS`.

    Arguments are those of :func:`demand`.
    """
    return tuning.bounds(*demand(problem, route, choice, nbytes, sms), sms=sms)


def epilogue(problem: Problem, choice: Choice, nbytes: int, tuning: Tuning, sms: int) -> float:
    """Returns the µs that an epilogue formula is predicted to add to a product's time.

    It is the time of a pointwise step without its launch; 0 without a formula. ``nbytes``: bytes of
    all arrays.
    """
    if not isinstance(problem.dtype, Epilogue):
        return 0.0
    known = problem.given(sms)
    moved = max(nbytes - problem.dtype.counted.evaluate(known), 0)
    operations = problem.dtype.operations.evaluate(known)
    us = tuning.bounds("pointwise", 1, choice.grids[-1], moved, "fma", operations, sms=sms)
    del us["launches"]
    return sum(us.values())
