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
    """Work of a route for a problem: the arguments of :meth:`ptxgen.cost.tuning.Tuning.bounds`.

    ``family``: that of the main kernel; ``launches``: number of kernels; ``ctas``: CTAs of the
    largest launch; ``nbytes``: memory traffic; ``operations``: number of operations of ``unit``,
    such as "fma".
    """

    family: str
    launches: int
    ctas: int
    nbytes: int
    unit: str
    operations: int


def demand(problem: Problem, route: Route, choice: Choice, nbytes: int, sms: int) -> Demand:
    """Returns the work of ``route`` for ``problem``, as input of a roofline prediction.

    ``choice``: the route with its grids; ``nbytes``: bytes of all arrays of the problem; ``sms``:
    number of SMs.
    """
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
    """Returns a route's predicted time as terms of :data:`ptxgen.cost.tuning.BOUNDS`, µs by name.

    ``tuning``: constants of the GPU; other arguments are those of :func:`demand`.
    """
    return tuning.bounds(*demand(problem, route, choice, nbytes, sms), sms=sms)


def epilogue(problem: Problem, choice: Choice, nbytes: int, tuning: Tuning, sms: int) -> float:
    """Returns the predicted µs that the pointwise formula in a GEMM's epilogue adds to the GEMM.

    It is the roofline time of a separate pointwise step, without its launch and the bytes of the
    GEMM's own A, B and C; 0 if the GEMM has no formula. ``nbytes``: bytes of all arrays.
    """
    if not isinstance(problem.dtype, Epilogue):
        return 0.0
    known = problem.given(sms)
    moved = max(nbytes - problem.dtype.counted.evaluate(known) * problem.count, 0)
    operations = problem.dtype.operations.evaluate(known) * problem.count
    ctas = choice.grids[-1] * problem.count
    us = tuning.bounds("pointwise", 1, ctas, moved, "fma", operations, sms=sms)
    del us["launches"]
    return sum(us.values())
