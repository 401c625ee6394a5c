"""What a dispatch function returns, and its type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ptxgen.spec import Route


class Choice(NamedTuple):
    """The kernels that serve a problem, and how to launch them.

    Threads, shared memory and parameters are the kernel's own (``tiles.SPECS[name]``).
    """

    route: int
    """Index in the route table (``tiles.TABLES[key].routes``, or a tuning's)."""
    kernels: tuple[str, ...]
    """Names of the kernels, in launch order."""
    grids: tuple[int, ...]
    """CTAs (grid.x) of each kernel."""
    scratch: tuple[int, ...]
    """Bytes of each scratch memory, in the order of ``Route.scratch``."""
    called: str = ""
    """The route's name, if that is not its first kernel's."""

    @property
    def name(self) -> str:
        """The route's name."""
        return self.called or self.kernels[0]

    @classmethod
    def of(cls, index: int, route: Route, environment: Mapping[str, int]) -> Choice:
        """The choice of ``route`` for the problem whose variables have these values."""
        return cls(
            index,
            tuple(kernel.name for kernel in route.kernels),
            tuple(step.grid.evaluate(environment) for step in route.steps),
            tuple(size.evaluate(environment) for size in route.scratch.values()),
            route.called,
        )


Dispatch = Callable[..., Choice | None]
"""A generated function of the variables of the table's space, in order."""
