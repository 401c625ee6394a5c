"""Measured routes, as points that :mod:`ptxgen.cost.fit` fits constants to."""

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
    """The problem variables of a product."""
    space = TABLES[key].space
    values = dict(zip(space.arguments, (*product, sms, *align), strict=True))
    return space.environment(values)


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
        key, product, align, batch = record.problem
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
    """The terms of each kernel of a route, with constants of 1, for ``count`` problems at once."""
    found = {}
    for kernel, cost in zip(route.kernels, route.costs or (), strict=True):
        found[kernel.name] = tuning.terms(*cost.arguments(env), count=count)
    return found


# -- of row operations ---------------------------------------------------------------------
@dataclass(frozen=True, order=True)
class Problem:
    """The problem of a result: the operation, its rows and columns, and how rows lie."""

    name: str
    rows: int
    cols: int
    lies: str

    @property
    def group(self) -> int:
        """Problems of as many columns are left out of a fit together."""
        return self.cols

    def __str__(self) -> str:
        return f"{self.name} {self.rows}x{self.cols}, {self.lies}"


@dataclass(frozen=True, kw_only=True)
class Measured(Point):
    """A measured route of a table."""

    table: Key


def read_rows(files: Iterable[Path]) -> list[Mapping[str, Any]]:
    """Records of ``ptxgen bench ops --random --regret``. Raises PtxgenError for other files."""
    found: list[Mapping[str, Any]] = []
    for path in files:
        with results.reading(path, "ops --random --regret"):
            records = json.loads(path.read_text(encoding="utf-8"))
            found += [r for r in records if r["routes"] and r["steps"] and r["rates"]]
    if not found:
        raise PtxgenError("no kernel was timed but the chosen ones: --regret times all")
    return found


def row_points(records: Iterable[Mapping[str, Any]]) -> list[Measured]:
    """The measured routes whose times are predicted, of calls of one step: what
    :func:`ptxgen.cost.fit.near` learns from, each by the rates of the GPU that it was measured on.
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
