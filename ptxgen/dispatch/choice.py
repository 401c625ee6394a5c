"""What a dispatch function returns, and its type."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Choice(NamedTuple):
    """The kernels that serve a problem, and how to launch them.

    Threads and shared memory are the kernel's own (``tiles.SPECS[name]``).
    """

    route: int
    """Index in the route table: ``tiles.ROUTES[layout, plan, dtype, tier]``, or a profile's."""
    kernels: tuple[str, ...]
    """Names of the kernels, in launch order."""
    grids: tuple[int, ...]
    """CTAs (grid.x) of each kernel."""
    workspace: int
    """Scratch, bytes."""
    chunk: int
    """Chunk length of the contract's plan (1 .. K)."""


Dispatch = Callable[[int, int, int, int, int, int], Choice | None]
"""A generated function of (m, n, k, sms, align_a, align_b), the product's own dimensions."""
