"""Replayed: what a compiled graph does as one CUDA graph, programs and PyTorch's own calls alike.

PyTorch records it, because memory of its calls is PyTorch's: all graphs share one pool. A set of
sizes that has come twice is recorded. What lay at the same place both times (parameters) is read
there, other arguments are copied to where the graph reads them, and results are handed out as
copies. A parameter that has moved since is one of the others from then on.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import torch


@cache
def _pool(index: int) -> Any:
    """The memory that all graphs on a GPU share."""
    with torch.cuda.device(index):
        return torch.cuda.graph_pool_handle()


class Replay:
    """One schedule: carried out at first, then recorded, then replayed."""

    def __init__(self, schedule: Any) -> None:
        self._schedule, self._graph = schedule, None
        self._places: list[int] | None = None
        self._fixed: list[bool] = []
        self._own: list[Any] = []
        self._results: Any = ()

    def run(self, given: list[Any]) -> Any:
        """The results, as new tensors."""
        places = [x.data_ptr() if isinstance(x, torch.Tensor) else 0 for x in given]
        if self._places is None:
            self._places = places
            return self._schedule.run(given)
        same = [a == b for a, b in zip(places, self._places, strict=True)]
        if self._graph is None:
            self._fixed = same
            self._record(given)
        elif not all(s or not f for s, f in zip(same, self._fixed, strict=True)):
            self._fixed = [s and f for s, f in zip(same, self._fixed, strict=True)]
            self._record(given)
        for x, own, fixed in zip(given, self._own, self._fixed, strict=True):
            if isinstance(x, torch.Tensor) and not fixed:
                own.copy_(x)
        self._graph.replay()  # type: ignore[attr-defined]
        return [self._handed(x, given) for x in self._results]

    def _record(self, given: Sequence[Any]) -> None:
        pairs = zip(given, self._fixed, strict=True)
        self._own = [
            x if fixed or not isinstance(x, torch.Tensor)
            else torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device=x.device).copy_(x)
            for x, fixed in pairs
        ]  # fmt: skip
        first = next(x for x in given if isinstance(x, torch.Tensor))
        aside, here = torch.cuda.Stream(first.device), torch.cuda.current_stream(first.device)
        aside.wait_stream(here)
        with torch.cuda.stream(aside):  # what it needs is loaded, and its kernels are chosen
            self._schedule.run(list(self._own))
        here.wait_stream(aside)
        graph: Any = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=_pool(first.get_device())):
            self._results = self._schedule.run(list(self._own))
        self._graph = graph

    def _handed(self, x: Any, given: Sequence[Any]) -> Any:
        """A result: a copy, or the view of an argument that it is."""
        if not isinstance(x, torch.Tensor):
            return x
        for argument, own in zip(given, self._own, strict=True):
            if isinstance(own, torch.Tensor):
                storage = own.untyped_storage().data_ptr()
                if storage and x.untyped_storage().data_ptr() == storage:
                    offset = argument.storage_offset() + x.storage_offset() - own.storage_offset()
                    return argument.as_strided(x.shape, x.stride(), offset)
        return x.clone()
