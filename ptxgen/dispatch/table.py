"""Route tables as input of the code generator, with the conditions of their routes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from ptxgen.dispatch.choice import named
from ptxgen.errors import SpecError
from ptxgen.expr import TRUE, Expr
from ptxgen.spec import ARCHITECTURES, KernelSpec, Key, Route, RouteTable, Space
from ptxgen.tiles import TABLES


@dataclass(frozen=True)
class Table:
    """A table of kernel sequences (routes) for one kind of problem, with conditions and costs over
    the variables of ``space``, as input of the code generator. ``key``: words that identify it.

    Raises SpecError for formulas that read variables which the space does not have.
    """

    key: Key
    space: Space
    routes: tuple[Route, ...]
    partial: bool = False

    def __post_init__(self) -> None:
        for index, route in enumerate(self.routes):
            formulas = [("prefer", route.prefer), ("requires", route.requires)]
            formulas += [("grid", step.grid) for step in route.steps]
            formulas += [(f"scratch {name!r}", size) for name, size in route.scratch.items()]
            formulas += [("cost", f) for e in route.costs or () for f in e.formulas]
            for what, formula in formulas:
                unknown = formula.variables() - self.space.names
                if unknown:
                    raise SpecError(
                        f"{self.name}, route {index} ({route.name}): {what} reads "
                        f"{sorted(unknown)}, but may read only {sorted(self.space.names)}"
                    )

    @property
    def name(self) -> str:
        """The table's name in generated code."""
        return named(self.key)

    @property
    def ordered(self) -> bool:
        """Whether routes are taken in order (see :func:`in_order`)."""
        return in_order(self.routes)

    @property
    def classes(self) -> dict[tuple[str, ...], tuple[int, ...]]:
        """Classes of architectures that run the same routes, with the indices of these routes."""
        by_routes: dict[tuple[int, ...], list[str]] = {}
        for arch in ARCHITECTURES:
            runs = tuple(i for i, r in enumerate(self.routes) if arch in running(r.kernels))
            by_routes.setdefault(runs, []).append(arch)
        return {tuple(archs): runs for runs, archs in by_routes.items()}


def in_order(routes: Iterable[Route]) -> bool:
    """Whether routes are taken in order, because a kernel has no cost to predict a time from."""
    return any(route.costs is None for route in routes)


def tables(of: Mapping[Key, RouteTable] = TABLES) -> list[Table]:
    """Converts the route tables ``of`` (default: all) for the code generator."""
    return [Table(key, found.space, found.routes, found.partial) for key, found in of.items()]


def running(kernels: Iterable[KernelSpec]) -> tuple[str, ...]:
    """Returns the architectures that run all ``kernels``."""
    kernels = tuple(kernels)
    return tuple(a for a in ARCHITECTURES if all(k.runs_on(a) for k in kernels))


def condition(table: Table, route: Route) -> Expr:
    """Returns the condition under which ``route`` is a candidate.

    It is ``requires``, and also ``prefer`` if routes are taken in order. A conjunct that occurs
    twice is kept once.
    """
    prefer = conjuncts(route.prefer) if table.ordered else ()
    result = TRUE
    for term in dict.fromkeys((*conjuncts(route.requires), *prefer)):
        result = result & term
    return result


def conjuncts(predicate: Expr) -> Iterator[Expr]:
    """Yields the terms of a conjunction, left to right."""
    if predicate.op == "and":
        for arg in predicate.args:
            yield from conjuncts(arg)
    else:
        yield predicate
