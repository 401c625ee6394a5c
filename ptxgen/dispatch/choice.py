"""What a dispatch function returns, and its type."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


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


Dispatch = Callable[..., Choice | None]
"""A generated function of the variables of the table's space, in order."""
