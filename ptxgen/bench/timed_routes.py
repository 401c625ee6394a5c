"""Converts measured times of routes to data points for the fit of :mod:`ptxgen.cost.fit`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import mul
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ptxgen.bench import results
from ptxgen.bench.journal import Record
from ptxgen.cost.fit import Point
from ptxgen.cost.gpu import Rates
from ptxgen.cost.tuning import Constants, Tuning
from ptxgen.errors import PtxgenError
from ptxgen.spec import Key, Route
from ptxgen.tiles import TABLES


def environment(
    key: Key, product: tuple[int, int, int], align: tuple[int, ...], sms: int
) -> dict[str, int]:
    """Returns the values of the variables of route table ``key`` for a product.

    ``product``: M, N, K; ``align``: values of the table's memory variables (alignments, item size
    of the result); ``sms``: the GPU's SMs.
    """
    space = TABLES[key].space
    values = dict(zip(space.arguments, (*product, sms, *align), strict=True))
    return space.environment(values)


def points(
    records: Sequence[Record], tuning: Tuning, held: Mapping[str, Constants] = MappingProxyType({})
) -> list[Point]:
    """Returns a data point for each measured route that is still in its table.

    ``records``: measurements of a journal; ``tuning``: rates of the GPU that was measured;
    ``held``: constants of kernels that are not fitted, by kernel.
    """
    routes = {
        key: {r.name: r for r in TABLES[key].routes} for key in {r.problem.table for r in records}
    }
    found = []
    for record in records:
        key, product, align, batch, _ = record.problem
        env = environment(key, product, align, tuning.sms)
        times = {name: us for name, us in record.times.items() if name in routes[key]}
        for name, us in times.items():
            terms = route_terms(routes[key][name], env, tuning, batch)
            known = sum(sum(map(mul, held[k], terms.pop(k))) for k in [*terms] if k in held)
            found.append(Point(record.problem, name, terms, us, min(times.values()), known))
    return found


def route_terms(
    route: Route, env: Mapping[str, int], tuning: Tuning, count: int = 1
) -> dict[str, tuple[float, ...]]:
    """Returns, for each kernel of ``route``, the quantities that its constants multiply in the
    predicted time.

    ``env``: values of the problem's variables, derived ones included; ``tuning``: the GPU's rates;
    ``count``: problems in one launch.
    """
    found = {}
    for kernel, cost in zip(route.kernels, route.costs or (), strict=True):
        found[kernel.name] = tuning.terms(*cost.arguments(env), count=count)
    return found


# -- row operations ------------------------------------------------------------------------
@dataclass(frozen=True, order=True)
class Problem:
    """A problem of row operation ``name``: rows, columns, and the rows' memory layout."""

    name: str
    rows: int
    cols: int
    layout: str

    @property
    def group(self) -> int:
        """The number of columns: cross-validation leaves out the problems of one width together."""
        return self.cols

    def __str__(self) -> str:
        return f"{self.name} {self.rows}x{self.cols}, {self.layout}"


@dataclass(frozen=True, kw_only=True)
class Measured(Point):
    """A data point of a row operation; ``table``: key of the route table that was measured."""

    table: Key


def read_rows(files: Iterable[Path]) -> list[Mapping[str, Any]]:
    """Reads the records of files of ``ptxgen bench ops --random --regret``.

    Raises PtxgenError for other files, or if no record has times of all routes.
    """
    found: list[Mapping[str, Any]] = []
    for path in files:
        with results.reading(path, "ops --random --regret"):
            records = json.loads(path.read_text(encoding="utf-8"))
            found += [r for r in records if r["routes"] and r["steps"] and r["rates"]]
    if not found:
        raise PtxgenError("no kernel was timed but the chosen ones: --regret times all")
    return found


def row_points(records: Iterable[Mapping[str, Any]]) -> list[Measured]:
    """Converts records of ``ptxgen bench ops --random --regret`` to data points of the fit
    :func:`ptxgen.cost.fit.fit_with_prior`, one for each timed route.

    Predicted times scale with the peak rates of each record's GPU. Omitted are calls of several
    steps, and route tables with a route that has no predicted time.
    """
    found = []
    for r in records:
        key = tuple(r["table"])
        table = TABLES[key]
        twins = {route.of(r["dtype"]).name: route for route in table.routes}
        times = {name: us for name, us in (r["routes"] or {}).items() if name in twins}
        if r["steps"] > 1 or not times or any(route.costs is None for route in table.routes):
            continue
        tuning = Tuning(r["gpu"], r["sms"], "sm_90", "", Rates(**r["rates"]))
        env = table.space.environment({**r["values"], "SMS": r["sms"]})
        problem = Problem(r["name"], r["rows"], r["cols"], r["lies"])
        best = min(times.values())
        for name, us in times.items():
            route = twins[name]
            terms = route_terms(route, env, tuning)
            found.append(Measured(problem, route.name, terms, us, best, table=key))
    return found
