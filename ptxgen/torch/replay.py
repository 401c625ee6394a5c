"""Replay of a compiled graph as one CUDA graph, with its programs and its calls of PyTorch.

PyTorch records the CUDA graph, because it allocates the memory of its calls; all graphs share one
memory pool. Sizes are recorded when they occur for the second time. Arguments with the same address
both times (parameters, caches) are read and written in place. Other arguments are copied to memory
of the graph, and back if the graph writes them; results are returned as copies. A parameter or
cache whose address changes later is copied from then on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from functools import cache
from typing import Any, NamedTuple

import torch

from ptxgen.program.streams import Streams
from ptxgen.runtime import get_device


@cache
def _pool(index: int) -> Any:
    """Returns the memory pool that all CUDA graphs on GPU ``index`` share."""
    with torch.cuda.device(index):
        return torch.cuda.graph_pool_handle()


def captured(schedule: Any, own: Sequence[Any], index: int) -> tuple[Any, Any]:
    """Records one run of a schedule as a CUDA graph, without executing it; returns the graph and
    its results. ``own``: arguments, whose memory replays read and write; ``index``: number of the
    GPU.

    PyTorch's calls run on the recording stream. Programs start after all work on that stream, and
    the stream waits for their end.
    """
    graph: Any = torch.cuda.CUDAGraph()
    streams = schedule.replay.streams.open(get_device(f"cuda:{index}"))
    with streams, torch.cuda.graph(graph, pool=_pool(index)):
        results = schedule.run(list(own))
    return graph, results


class Replay:
    """Runs one schedule: the first time directly, then recorded as a CUDA graph and replayed.

    ``written``: indices of arguments that the schedule writes. ``streams``: most streams that its
    programs may use.
    """

    def __init__(self, schedule: Any, written: Collection[int], streams: int) -> None:
        self._schedule, self._written = schedule, written
        self.streams = Streams(streams)
        self._graph: Any = None
        self._addresses: list[int] | None = None
        self._pinned: list[tuple[int, int]] = []
        """Indices and addresses of arguments that the graph reads and writes in place."""
        self._moving: list[tuple[int, Any]] = []
        """Indices of all other arguments, and the graph's copies of them, without expanded
        dimensions.
        """
        self._result_rules: list[ResultRule] = []

    def run(self, given: list[Any]) -> Any:
        """Runs the schedule or replays its CUDA graph; returns the results as new tensors."""
        if self._graph is None:
            return self._begin(given)
        for i, address in self._pinned:
            if given[i].data_ptr() != address:
                return self._moved(given)
        for i, own in self._moving:
            own.copy_(_distinct(given[i]))
        self._graph.replay()
        self._back(given)
        return _returned(self._result_rules, given, new=False)

    def _begin(self, given: list[Any]) -> Any:
        """Runs the schedule and returns its results. The first time notes the addresses of the
        arguments; the second time also records the CUDA graph, which reads and writes arguments
        with unchanged addresses in place.
        """
        addresses = _addresses(given)
        if self._addresses is None:
            self._addresses = addresses
            return self._schedule.run(given)
        pairs = enumerate(zip(addresses, self._addresses, strict=True))
        return self._record(given, {i for i, (now, before) in pairs if now == before})

    def _moved(self, given: list[Any]) -> Any:
        """Runs the schedule and records it again, because an argument that the graph reads in place
        now has another address. Such arguments are copied to the graph's memory from now on.
        """
        addresses = _addresses(given)
        return self._record(given, {i for i, address in self._pinned if addresses[i] == address})

    def _back(self, given: Sequence[Any]) -> None:
        """Copies arguments that the graph wrote in its own memory back to the caller's tensors."""
        for i, own in self._moving:
            if i in self._written:
                _distinct(given[i]).copy_(own)

    def _record(self, given: Sequence[Any], fixed: Collection[int]) -> Any:
        """Runs the schedule once, which loads its kernels, then records it; returns the results of
        that run. ``fixed``: indices of arguments that the graph reads and writes in place.
        """
        tensors = [i for i, x in enumerate(given) if isinstance(x, torch.Tensor)]
        self._pinned = [(i, given[i].data_ptr()) for i in tensors if i in fixed]
        moving = {i: _copied(given[i]) for i in tensors if i not in fixed}
        self._moving = [(i, _distinct(x)) for i, x in moving.items()]
        own = [moving.get(i, x) for i, x in enumerate(given)]
        found = self._schedule.run(list(own))
        first = next(x for x in (*given, *found) if isinstance(x, torch.Tensor))
        self._graph, results = captured(self._schedule, own, first.get_device())
        self._result_rules = _result_rules(results, own)
        self._back(given)
        return _returned(_result_rules(found, own), given, new=True)


# -- results ------------------------------------------------------------------------------------
class ResultRule(NamedTuple):
    """Rule for returning ``result`` of a CUDA graph to the caller.

    ``argument``: index of the argument that it is a view of, or None; ``own``: that argument as the
    graph was recorded with it; ``base``: the tensor whose memory it shares with other results, or
    None.
    """

    result: Any
    argument: int | None = None
    own: Any = None
    base: Any = None


def _result_rules(results: Sequence[Any], own: Sequence[Any]) -> list[ResultRule]:
    """Returns the rule for each result of a graph that was recorded with the arguments ``own``."""
    tensors = [x for x in results if isinstance(x, torch.Tensor)]
    sharing = Counter(_storage(x) for x in tensors if _storage(x))
    owned = {_storage(x): i for i, x in reversed([*enumerate(own)]) if isinstance(x, torch.Tensor)}
    bases: dict[int, Any] = {}
    for x in tensors:
        base = x if x._base is None else x._base
        bases[_storage(x)] = max(bases.get(_storage(x), base), base, key=torch.numel)
    found = []
    for x in results:
        storage = _storage(x) if isinstance(x, torch.Tensor) else 0
        if storage and storage in owned:
            found.append(ResultRule(x, owned[storage], own[owned[storage]]))
        else:
            found.append(ResultRule(x, base=bases[storage] if sharing[storage] > 1 else None))
    return found


def _returned(rules: Sequence[ResultRule], given: Sequence[Any], *, new: bool) -> list[Any]:
    """Returns the results of a run as the caller gets them: views of the arguments ``given`` for
    results that are views of arguments, else copies. ``rules``: one for each result; ``new``:
    whether the results are new tensors already, which need no copy.

    Results that share memory share it in the copy, as views of one tensor for autograd.
    """
    copies: dict[int, Any] = {}
    found = []
    for x, argument, own, base in rules:
        if argument is not None:
            x = _same_view(x, own, given[argument])
        elif new or not isinstance(x, torch.Tensor):
            pass
        elif base is None:
            x = x.clone()
        else:
            if id(base) not in copies:
                copies[id(base)] = _copied(base)
            x = copies[id(base)] if x is base else _same_view(x, base, copies[id(base)])
        found.append(x)
    return found


def _addresses(given: Sequence[Any]) -> list[int]:
    """Returns the addresses of tensors, and 0 for other arguments."""
    return [x.data_ptr() if isinstance(x, torch.Tensor) else 0 for x in given]


def _storage(x: Any) -> int:
    """Returns the address of a tensor's storage, 0 if it has none."""
    return int(x.untyped_storage().data_ptr())


def _distinct(x: Any) -> Any:
    """Returns a view of ``x`` with each element once: expanded dimensions get size 1.

    PyTorch refuses to write to an expanded tensor.
    """
    strides = x.stride()
    if 0 in strides:
        for dim, stride in enumerate(strides):
            if stride == 0 and x.shape[dim] > 1:
                x = x.narrow(dim, 0, 1)
    return x


def _copied(x: Any) -> Any:
    """Returns a copy with the strides of ``x``."""
    made = torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device=x.device)
    _distinct(made).copy_(_distinct(x))
    return made


def _same_view(x: Any, base: Any, to: Any) -> Any:
    """Returns a view of ``to`` with shape and strides of ``x``, and the offset in ``to`` that ``x``
    has in ``base``.
    """
    offset = to.storage_offset() + x.storage_offset() - base.storage_offset()
    return to.as_strided(x.shape, x.stride(), offset)
