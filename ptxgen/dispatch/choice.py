"""What a dispatch function returns, and its type."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from operator import attrgetter
from typing import NamedTuple

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
    """Kernels that are correct for a problem, and the time that they are predicted to take."""

    time: float
    """µs; where routes are taken in order, 0 for all."""
    choice: Choice


Time = Callable[[str, str, int, int, int, int, int, int, int, int], float]
"""As :meth:`ptxgen.tiles.tunings.Tuning.time`."""
Dispatch = Callable[..., Iterator[Candidate]]
"""A generated function, for an architecture: of the variables of the table's space, in order, and a
:data:`Time`."""


def by_architecture(candidates: Dispatch) -> dict[str, Dispatch]:
    """A generated function, whose first argument is the architecture, for each of them."""
    return {arch: partial(candidates, arch) for arch in ARCHITECTURES}


def best(candidates: Iterable[Candidate]) -> Choice | None:
    """The fastest; of equals the first."""
    found = min(candidates, key=attrgetter("time"), default=None)
    return None if found is None else found.choice
