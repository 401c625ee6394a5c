"""Types that generated dispatch functions use: choices, candidates, launches and routes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial, reduce
from operator import add, attrgetter, ge
from typing import Any, NamedTuple

from ptxgen.spec import ARCHITECTURES


class Choice(NamedTuple):
    """The kernels that serve a problem, and how to launch them.

    Threads, shared memory and parameters are the kernel's own (``tiles.SPECS[name]``).
    """

    route: int
    """Index in the route table (``tiles.TABLES[key].routes``)."""
    kernels: tuple[str, ...]
    """Names of the kernels, in launch order."""
    grids: tuple[int, ...]
    """CTAs (grid.x) of each kernel."""
    scratch: tuple[int, ...]
    """Bytes of each scratch memory, in the order of ``Route.scratch``."""


class Candidate(NamedTuple):
    """One route that is correct for a problem: its kernels with their launches, and its predicted
    time.
    """

    time: float
    """Predicted µs; 0 in a table whose routes are taken in order."""
    choice: Choice


Time = Callable[..., float]
"""A function that predicts µs, with the arguments of :meth:`ptxgen.cost.tuning.Tuning.time`."""
Dispatch = Callable[..., Iterator[Candidate]]
"""A dispatch function, which yields the routes that are correct for a problem. Arguments: the
table's name, an architecture (both may be bound), the problem's variables, and a :data:`Time`."""


def named(key: Iterable[str]) -> str:
    """Returns a table's name in generated code: ``"nn_chunks"`` for the ``key`` "NN", "chunks"."""
    return "_".join(key).lower()


def by_architecture(candidates: Dispatch, key: Iterable[str]) -> dict[str, Dispatch]:
    """Returns, by name of each architecture, the function ``candidates`` of a generated module with
    its first two arguments bound: the name of table ``key``, and the architecture.
    """
    return {arch: partial(candidates, named(key), arch) for arch in ARCHITECTURES}


Launches = dict[int | str, tuple[float, str, int, dict[str, int]]]
"""Launches that are correct for a problem, by name: predicted µs, kernel, CTAs, and bytes of
scratch memory by name."""


Name = int | str
"""Name of a launch in generated code: a text, or for a route's main kernel the index of the first
route that launches it.
"""
Rows = Mapping[str, tuple[tuple[Any, ...], ...]]
"""Rows of constants in a generated module, by table."""


class Fitting:
    """Routes of ``table`` that a call's alignments allow: their lower bounds on alignments hold.
    ``routes``: pairs of a route's index and the names of its launches.
    """

    def __init__(self, table: str, routes: Sequence[tuple[int, tuple[Name, ...]]]) -> None:
        self.table = table
        self.routes = routes
        self._names = frozenset(name for _, names in routes for name in names)
        self._rows: dict[int, list[tuple[Any, ...]]] = {}

    def __contains__(self, name: Name) -> bool:
        """Whether one of the routes has the launch of this name."""
        return name in self._names

    def rows(self, of: Rows) -> list[tuple[Any, ...]]:
        """Returns the rows of this table in the generated constant ``of`` that belong to the
        selected routes: those whose first element names one of their launches.
        """
        found = self._rows.get(id(of))
        if found is None:
            rows = of.get(self.table, ())
            found = self._rows[id(of)] = [row for row in rows if row[0] in self._names]
        return found

    def combined(self, launches: Launches) -> Iterator[Candidate]:
        """Yields a candidate for each route all of whose launches are in ``launches``."""
        for route, names in self.routes:
            if len(names) == 1:
                if (launch := launches.get(names[0])) is not None:
                    us, kernel, ctas, scratch = launch
                    choice = Choice(route, (kernel,), (ctas,), tuple(scratch.values()))
                    yield Candidate(us, choice)
            elif all(map(launches.__contains__, names)):
                times, kernels, grids, scratches = zip(
                    *map(launches.__getitem__, names), strict=True
                )
                sizes = {name: size for of in scratches for name, size in of.items()}
                us = reduce(add, times)
                yield Candidate(us, Choice(route, kernels, grids, tuple(sizes.values())))


class Routes(dict[str, tuple[tuple[Any, ...], ...]]):
    """Routes of a generated module by table, as rows: a route's index, its lower bounds of
    alignments and other variables of few values, and the names of its launches.
    """

    def __init__(self, rows: Rows) -> None:
        super().__init__(rows)
        self._known: dict[tuple[Any, ...], Fitting] = {}

    def fitting(self, table: str, *given: int) -> Fitting:
        """Returns the routes of ``table`` that a call's alignments allow: those whose lower bounds
        are at most ``given``, the call's values of the bounded variables.

        Results are cached, as these variables have few values.
        """
        found = self._known.get((table, *given))
        if found is None:
            routes = [
                (route, names) for route, *least, names in self[table] if all(map(ge, given, least))
            ]
            found = self._known[table, *given] = Fitting(table, routes)
        return found


def best(candidates: Iterable[Candidate]) -> Choice | None:
    """Returns the choice with the shortest time, the first of equals; None without candidates."""
    found = min(candidates, key=attrgetter("time"), default=None)
    return None if found is None else found.choice
