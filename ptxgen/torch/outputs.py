"""Outputs of a graph that share memory with its inputs or with one another.

AOTAutograd recreates such outputs outside of the graph. Their gradients are then added outside,
``(a + b) + c``, where autograd adds ``a + (b + c)`` in eager mode. :func:`separate` hides the
sharing from AOTAutograd behind an operator, so that the traced graph adds in autograd's order.
:func:`rejoin` replaces the operator by views before the graph is scheduled.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

import torch
from torch import fx

from ptxgen.torch.operators import LIBRARY, register
from ptxgen.torch.trees import leaves

ALIAS: Final = "ptxgen_output_view"
"""Key in ``node.meta`` of the view nodes that :func:`rejoin` creates. PyTorch computes them, so
that autograd sees views of the very tensors that are returned.
"""
SOURCES: Final = ("placeholder", "get_attr")
"""Values of ``node.op`` for tensors that outlive a call: inputs and attributes."""
SUMMANDS_MIN: Final = 3
"""Least number of gradients whose sum depends on the order of additions."""


@cache
def _separated() -> Any:
    """Returns the operator ``ptxgen::output_view``: identity, opaque to alias analysis."""
    name = register(
        "output_view(Tensor x) -> Tensor",
        torch.ops.aten.alias.default,
        lambda x: torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device=x.device),
    )
    torch.library.register_autograd(f"ptxgen::{name}", lambda _, dy: dy, lib=LIBRARY)
    return getattr(torch.ops.ptxgen, name).default


def separate(module: fx.GraphModule) -> None:
    """Hides from AOTAutograd that outputs of a Dynamo graph share memory, where that would change
    the order in which gradients are added: passes these outputs through ``ptxgen::output_view``.

    An output is hidden if it shares memory with an input or another output, and if three or more
    gradients may add up in that memory. Any reader counts as several gradients, as it may become
    several ATen operators. Inputs that the graph writes are left alone: PyTorch writes them
    outside.
    """
    nodes = list(module.graph.nodes)
    (output,) = (n for n in nodes if n.op == "output")
    tensors = {n: list(_tensors(n.meta.get("example_value"))) for n in nodes}
    storages = {n: {_storage(x) for x in own} for n, own in tensors.items()}
    inputs = {_storage(x) for n in nodes if n.op in SOURCES for x in tensors[n]}
    written = {_storage(x) for n in nodes if n.op in SOURCES for x in tensors[n] if x._version}
    outputs = output.all_input_nodes
    sharing = Counter(s for n in outputs for s in storages[n])
    read: set[int] = set()
    for node in nodes:
        if node is not output and has_gradient(node):
            for source in node.all_input_nodes:
                read |= storages[source] - storages[node]  # views read nothing
    for node in outputs:
        for x in tensors[node]:
            storage = _storage(x)
            is_alias = storage in inputs or (x._base is not None and sharing[storage] > 1)
            is_ordered = storage in read or sharing[storage] >= SUMMANDS_MIN
            if x.requires_grad and is_alias and is_ordered and storage not in written:
                with module.graph.inserting_before(output):
                    hidden = module.graph.call_function(_separated(), (node,))
                output.replace_input_with(node, hidden)


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    """Yields the strided tensors in the value of a node."""
    found = leaves(value, torch._subclasses.FakeTensor)
    return (x for x in found if x.layout == torch.strided)


def _storage(x: torch.Tensor) -> int:
    return int(x.untyped_storage()._cdata)


def has_gradient(node: fx.Node) -> bool:
    """Whether gradients may flow through a node; True for nodes without a value (``setitem``)."""
    value = node.meta.get("example_value")
    return value is None or any(x.requires_grad for x in _tensors(value))


def rejoin(module: fx.GraphModule) -> None:
    """Replaces ``ptxgen::output_view`` in a graph of ATen by the views that compute its argument.

    These views are computed again at the end of the graph, for each output separately.
    """
    found = [n for n in module.graph.nodes if n.target is _separated()]
    for node in found:
        with module.graph.inserting_before(node):
            view = _again(module.graph, node.args[0])
            if view is node.args[0]:
                view = module.graph.call_function(torch.ops.aten.alias.default, (view,))
                view.meta.update(node.meta)
                view.meta[ALIAS] = True
        node.replace_all_uses_with(view)
        module.graph.erase_node(node)
    if found:
        module.recompile()


def _again(graph: fx.Graph, node: fx.Node) -> fx.Node:
    """Copies the chain of view nodes that ends with ``node``; returns the last, or ``node`` if it
    is no view.
    """
    op, base = node.target, node.args[0] if node.args else None
    of = base.target if op is operator.getitem and isinstance(base, fx.Node) else op
    if not isinstance(of, torch._ops.OpOverload) or not of.is_view:
        return node
    assert isinstance(base, fx.Node), "views have their base in the first place"
    copied = _again(graph, base)
    view = graph.node_copy(node, lambda x: copied if x is base else x)
    view.meta[ALIAS] = True
    return view
