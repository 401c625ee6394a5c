"""What a problem's time is predicted to be where its routes are taken in order, and what a formula
behind a product adds to the time of that.

The model is :meth:`ptxgen.cost.tuning.Tuning.bounds`; here it is told what a problem asks for.
Nothing is rendered or compiled, and no kernel is made.
"""

from __future__ import annotations

from typing import NamedTuple

from ptxgen.cost.tuning import Tuning
from ptxgen.dispatch.choice import Choice
from ptxgen.spec import Problem, Route
from ptxgen.spec.epilogue import Epilogue
from ptxgen.tiles import TABLES


class Demand(NamedTuple):
    """What a route has to do for a problem; the arguments of ``Tuning.bounds``."""

    family: str
    launches: int
    ctas: int
    nbytes: int
    unit: str
    operations: int


def demand(problem: Problem, route: Route, choice: Choice, nbytes: int, sms: int) -> Demand:
    """What ``route`` has to do. ``choice``: its grids; ``nbytes``: of the problem's arrays."""
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
    """The predicted µs, by :data:`ptxgen.cost.tuning.BOUNDS`; as :func:`demand`."""
    return tuning.bounds(*demand(problem, route, choice, nbytes, sms), sms=sms)


def epilogue(problem: Problem, choice: Choice, nbytes: int, tuning: Tuning, sms: int) -> float:
    """The predicted µs of a formula behind a product, beside the product's own: what a pointwise
    step takes without its launch; 0 where there is none. ``nbytes``: of all arrays.
    """
    if not isinstance(problem.dtype, Epilogue):
        return 0.0
    known = problem.given(sms)
    moved = max(nbytes - problem.dtype.counted.evaluate(known), 0)
    operations = problem.dtype.operations.evaluate(known)
    us = tuning.bounds("pointwise", 1, choice.grids[-1], moved, "fma", operations, sms=sms)
    del us["launches"]
    return sum(us.values())
