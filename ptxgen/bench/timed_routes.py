"""Measured routes, as points that :mod:`ptxgen.cost.fit` fits constants to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import mul
from types import MappingProxyType

from ptxgen.bench.journal import Record
from ptxgen.cost.fit import Point
from ptxgen.cost.tuning import Constants, Tuning
from ptxgen.spec import Route
from ptxgen.tiles import TABLES


def points(
    records: Sequence[Record], tuning: Tuning, held: Mapping[str, Constants] = MappingProxyType({})
) -> list[Point]:
    """Returns the measured routes that the tables still have. ``held``: constants of kernels that
    are not fitted.
    """
    routes = {
        key: {r.name: r for r in TABLES[key].routes} for key in {r.problem.table for r in records}
    }
    found = []
    for record in records:
        key, (m, n, k), align, batch = record.problem
        space = TABLES[key].space
        values = dict(zip(space.arguments, (m, n, k, tuning.sms, *align), strict=True))
        env = space.environment(values)
        times = {name: us for name, us in record.times.items() if name in routes[key]}
        for name, us in times.items():
            terms = route_terms(routes[key][name], env, tuning, batch)
            known = sum(sum(map(mul, held[k], terms.pop(k))) for k in [*terms] if k in held)
            found.append(Point(record.problem, name, terms, us, min(times.values()), known))
    return found


def route_terms(
    route: Route, env: Mapping[str, int], tuning: Tuning, count: int = 1
) -> dict[str, tuple[float, ...]]:
    """The terms of each kernel of a route, with constants of 1, for ``count`` problems at once."""
    found = {}
    for kernel, cost in zip(route.kernels, route.costs or (), strict=True):
        found[kernel.name] = tuning.terms(*cost.arguments(env), count=count)
    return found
