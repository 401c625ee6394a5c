"""Replayed: what a compiled graph does as one CUDA graph, programs and PyTorch's own calls alike.

PyTorch records it, because memory of its calls is PyTorch's: all graphs share one pool. A set of
sizes that has come twice is recorded. What lay at the same place both times (parameters, caches) is
read and written there. Other arguments are copied to where the graph reads them, and back if it
writes them; results are handed out as copies. A parameter or a cache that has moved since is one of
the others from then on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from functools import cache
from typing import Any

import torch

from ptxgen.program.streams import Streams
from ptxgen.runtime import get_device


@cache
def _pool(index: int) -> Any:
    """The memory that all graphs on a GPU share."""
    with torch.cuda.device(index):
        return torch.cuda.graph_pool_handle()


def captured(schedule: Any, own: Sequence[Any], index: int) -> tuple[Any, Any]:
    """A CUDA graph of a schedule of these arguments on a GPU, and its results. Nothing is done.

    PyTorch's calls are on the stream that it records on. Programs begin behind all that is there,
    and end on it.
    """
    graph: Any = torch.cuda.CUDAGraph()
    streams = schedule.replay.streams.open(get_device(f"cuda:{index}"))
    with streams, torch.cuda.graph(graph, pool=_pool(index)):
        results = schedule.run(list(own))
    return graph, results


class Replay:
    """One schedule: carried out at first, then recorded, then replayed. ``written``: which of the
    arguments it writes. ``streams``: on how many its programs may run.
    """

    def __init__(self, schedule: Any, written: Collection[int], streams: int) -> None:
        self._schedule, self._written = schedule, written
        self.streams = Streams(streams)
        self._graph: Any = None
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
            return self._record(given)
        if not all(s or not f for s, f in zip(same, self._fixed, strict=True)):
            self._fixed = [s and f for s, f in zip(same, self._fixed, strict=True)]
            return self._record(given)
        for x, own, fixed in zip(given, self._own, self._fixed, strict=True):
            if isinstance(x, torch.Tensor) and not fixed:
                own.copy_(x)
        self._graph.replay()
        self._back(given)
        return self._handed(self._results, given, new=False)

    def _back(self, given: Sequence[Any]) -> None:
        """What has been written elsewhere is copied to where it belongs."""
        for i in self._written:
            if not self._fixed[i]:
                given[i].copy_(self._own[i])

    def _record(self, given: Sequence[Any]) -> Any:
        """Carries out the schedule, so that what it needs is loaded, and records it."""
        pairs = zip(given, self._fixed, strict=True)
        self._own = [
            x if fixed or not isinstance(x, torch.Tensor) else _copied(x) for x, fixed in pairs
        ]
        found = self._schedule.run(list(self._own))
        first = next(x for x in (*given, *found) if isinstance(x, torch.Tensor))
        self._graph, self._results = captured(self._schedule, self._own, first.get_device())
        self._back(given)
        return self._handed(found, given, new=True)

    def _handed(self, results: Sequence[Any], given: Sequence[Any], *, new: bool) -> list[Any]:
        """Returns results as the caller's: views of its arguments, or copies unless they are new.

        Results that share memory share it in the copy, as autograd's views of one tensor.
        """
        tensors = [x for x in results if isinstance(x, torch.Tensor)]
        sharing = Counter(_storage(x) for x in tensors if _storage(x))
        pairs = list(zip(self._own, given, strict=True))
        owned = {_storage(x): (x, y) for x, y in reversed(pairs) if isinstance(x, torch.Tensor)}
        bases: dict[int, Any] = {}
        for x in tensors:
            base = x if x._base is None else x._base
            bases[_storage(x)] = max(bases.get(_storage(x), base), base, key=torch.numel)
        copies: dict[int, Any] = {}
        found = []
        for x in results:
            storage = _storage(x) if isinstance(x, torch.Tensor) else 0
            if storage and storage in owned:
                x = _placed(x, *owned[storage])
            elif not new and sharing[storage] > 1:
                base = bases[storage]
                if storage not in copies:
                    copies[storage] = _copied(base)
                x = copies[storage] if x is base else _placed(x, base, copies[storage])
            elif not new and isinstance(x, torch.Tensor):
                x = x.clone()
            found.append(x)
        return found


def _storage(x: Any) -> int:
    """Returns the address of a tensor's storage, 0 if it has none."""
    return int(x.untyped_storage().data_ptr())


def _copied(x: Any) -> Any:
    """Returns a copy with the strides of ``x``."""
    return torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device=x.device).copy_(x)


def _placed(x: Any, base: Any, to: Any) -> Any:
    """Returns the view of ``to`` that lies in it as ``x`` lies in ``base``."""
    offset = to.storage_offset() + x.storage_offset() - base.storage_offset()
    return to.as_strided(x.shape, x.stride(), offset)
