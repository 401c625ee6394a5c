"""Gradients of graph inputs that are read several times, added in the order of eager autograd.

AOTAutograd adds them inside the graph: ``h + (b + a)``, where ``h`` comes from readers of the
tensor after the graph. Eager autograd adds ``(h + b) + a``. :class:`Summands` returns each summand
as the gradient of a separate view, and autograd adds them in its own order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import fx
from torch.autograd.graph import GradientEdge, Node, get_gradient_edge
from torch.overrides import TorchFunctionMode

from ptxgen.torch.outputs import has_gradient


class _MoreViewsError(Exception):
    """Raised when the gradient of a graph's input has more summands than one for the input and one
    for each of its views. ``views``: for each view that is needed, the index of its input.
    """

    def __init__(self, views: list[int]) -> None:
        super().__init__()
        self.views = views


class Summands(TorchFunctionMode):
    """Mode in which ``torch.autograd.grad`` of a traced graph returns the summands of a gradient
    separately.

    ``given``: the inputs of the graph, followed by views of some of them; ``views``: for each view,
    the index of its input. The summand that autograd adds first is returned as the gradient of the
    input, the second as that of the input's last view, the third as that of the view before it. An
    input that is also an output has one gradient. Raises _MoreViewsError if there are too few
    views.
    """

    def __init__(self, given: Sequence[Any], views: Sequence[int]) -> None:
        super().__init__()
        origins = [*range(len(given) - len(views)), *views]
        with_gradient = [i for i, x in zip(origins, given, strict=True) if _has_gradient(x)]
        self._count = len(with_gradient)
        self._places: dict[int, list[int]] = {i: [] for i in with_gradient}
        """Positions of an input and its views among the tensors that require grad, by input."""
        for place, i in enumerate(with_gradient):
            self._places[i].append(place)

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Calls ``func``. From ``torch.autograd.grad`` with respect to the graph's inputs and
        views, it returns the summands of each gradient separately.
        """
        if func is not torch.autograd.grad or len(args[1]) != self._count:
            return func(*args, **(kwargs or {}))
        outputs, inputs = args
        edges = [get_gradient_edge(x) for x in inputs]
        ends = {get_gradient_edge(y) for y in outputs}
        with _watching(outputs, [e for e in edges if e not in ends]) as found:
            gradients = list(func(*args, **(kwargs or {})))
        summands = {i: found.get(edges[own], []) for i, (own, *_) in self._places.items()}
        if any(len(each) > len(self._places[i]) for i, each in summands.items()):
            raise _MoreViewsError([i for i, each in summands.items() for _ in each[1:]])
        for i, each in summands.items():
            places = self._places[i][: len(each)]
            for place, summand in zip(places[:1] + places[:0:-1], each, strict=True):
                gradients[place] = summand
        return tuple(gradients)


@contextmanager
def _watching(
    outputs: Sequence[Any], edges: Sequence[GradientEdge]
) -> Iterator[dict[GradientEdge, list[Any]]]:
    """Context manager: collects, by edge, the gradients that backward passes from ``outputs`` add
    up at each of ``edges``, in their order.
    """
    found: dict[GradientEdge, list[Any]] = {edge: [] for edge in edges}
    hooks = []

    def note(own: Sequence[tuple[int, GradientEdge]], gradients: Sequence[Any], _: Any) -> None:
        for at, edge in own:
            if gradients[at] is not None:
                found[edge].append(gradients[at])

    for node in _nodes(outputs):
        following = [GradientEdge(*edge) for edge in node.next_functions]
        own = [(at, edge) for at, edge in enumerate(following) if edge in found]
        if own:
            hooks.append(node.register_hook(partial(note, own)))
    try:
        yield found
    finally:
        for hook in hooks:
            hook.remove()


def _nodes(outputs: Sequence[Any]) -> list[Node]:
    """Returns the autograd nodes that gradients of ``outputs`` flow through."""
    waiting = [x.grad_fn for x in outputs if x.grad_fn is not None]
    found = dict.fromkeys(waiting)
    while waiting:
        for node, _ in waiting.pop().next_functions:
            if node is not None and node not in found:
                found[node] = None
                waiting.append(node)
    return list(found)


def traced(
    trace: Callable[[fx.GraphModule, list[Any]], Callable[..., Any]],
    module: fx.GraphModule,
    example: Sequence[Any],
) -> Callable[..., Any]:
    """Compiles a graph of Dynamo with ``trace`` so that the gradients of its inputs are added in
    the order of eager mode. Returns a function of the graph's inputs; it passes them to the
    compiled graph, and views of those that are read several times, one for each further gradient.

    ``trace`` takes the graph, and its inputs followed by these views, and calls
    ``torch.autograd.grad``. ``example``: the inputs to trace with.
    """
    views = _expected(module, example)
    while True:
        given = _with_views(example, views)
        try:
            with _placeholders(module, given[len(example) :]), Summands(given, views):
                made = trace(module, given)
        except _MoreViewsError as more:
            views = more.views
        else:
            return _called(made, views)


def _called(made: Callable[..., Any], views: Sequence[int]) -> Callable[..., Any]:
    return (lambda *given: made(*_with_views(given, views))) if views else made


def _with_views(given: Sequence[Any], views: Sequence[int]) -> list[Any]:
    return [*given, *(given[i].view_as(given[i]) for i in views)]


def _has_gradient(x: Any) -> bool:
    return torch.is_grad_enabled() and isinstance(x, torch.Tensor) and x.requires_grad


def _expected(module: fx.GraphModule, example: Sequence[Any]) -> list[int]:
    """Returns, for each view that the inputs probably need, the index of its input. An input with n
    readers needs n - 1 views, if each reader adds one gradient.
    """
    found: list[int] = []
    for i, (node, x) in enumerate(zip(_inputs(module), example, strict=True)):
        if _has_gradient(x):
            readers = sum(user.op != "output" and has_gradient(user) for user in node.users)
            found += [i] * (readers - 1)
    return found


def _inputs(module: fx.GraphModule) -> list[fx.Node]:
    return [node for node in module.graph.nodes if node.op == "placeholder"]


@contextmanager
def _placeholders(module: fx.GraphModule, values: Sequence[Any]) -> Iterator[None]:
    """Context manager: adds an input for each of ``values`` to the graph, and removes these inputs
    afterwards. No node reads them: they are the views, which Dynamo's graph lacks.
    """
    last = next(reversed(_inputs(module)), None)
    added = []
    for value in values:
        with module.graph.inserting_after(last):
            last = module.graph.placeholder("summand")
        last.meta["example_value"] = value
        last._dynamo_source = None
        added.append(last)
    if added:
        module.recompile()
    try:
        yield
    finally:
        for node in added:
            module.graph.erase_node(node)
        if added:
            module.recompile()
