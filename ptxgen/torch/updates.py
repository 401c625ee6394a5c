"""Mutated arguments of a graph, and the choice of those that are written in place.

AOTAutograd makes mutation functional: ``x.index_copy_(...)`` becomes ``x1 = index_copy(x, ...)``,
later reads of ``x`` read ``x1``, and the graph ends with ``copy_(x, x1)``. An :class:`Update` has
these versions of an argument, in order. If all reads of each version run before the next version is
computed, all versions may share the argument's memory.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import fx

from ptxgen.torch.lowering import VIEWS
from ptxgen.torch.trees import leaves

SCATTERS: Final = {"slice_scatter", "select_scatter", "index_copy", "index_put", "scatter"}
"""Operators that return their first argument with some elements replaced."""
_ATEN = torch.ops.aten
IN_PLACE: Final = {
    _ATEN.index_copy.default: _ATEN.index_copy_.default,
    _ATEN.index_put.default: _ATEN.index_put_.default,
    _ATEN.scatter.src: _ATEN.scatter_.src,
    _ATEN.scatter.value: _ATEN.scatter_.value,
}
"""In-place overloads, by functional overload, of operators in :data:`SCATTERS`. PyTorch is called
with them for nodes whose result may overwrite their first argument.
"""


@dataclass(frozen=True, eq=False)
class Update:
    """Mutated ``argument`` of a graph, and its later ``versions`` in order. Node ``copy``, a
    ``copy_``, writes the last one back.
    """

    argument: fx.Node
    copy: fx.Node
    versions: tuple[fx.Node, ...]

    def steps(self) -> Iterator[tuple[fx.Node, fx.Node]]:
        """Yields pairs of a version and the next one; the first version is the argument."""
        return zip((self.argument, *self.versions), self.versions, strict=False)


def packet(node: fx.Node) -> str:
    """Returns the name of a node's overload packet; an empty text for other nodes."""
    return getattr(getattr(node.target, "overloadpacket", None), "__name__", "")


def is_scatter(node: fx.Node) -> bool:
    """Whether a node replaces elements at indices, so that PyTorch can compute it in place."""
    added = node.args[3] if len(node.args) > 3 else node.kwargs.get("accumulate", False)
    return node.target in IN_PLACE and (packet(node) != "index_put" or added is False)


def others(node: fx.Node) -> list[fx.Node]:
    """Returns the nodes among a node's arguments, without its first argument."""
    return list(leaves((node.args[1:], node.kwargs), fx.Node))


def views(of: fx.Node) -> Iterator[fx.Node]:
    """Yields the nodes that may share memory with ``of``, and ``of`` itself first."""
    yield of
    for user in of.users:
        if user.op == "call_function" and user.args[0] is of and _viewing(user):
            yield from views(user)


def _viewing(node: fx.Node) -> bool:
    op = node.target
    view = isinstance(op, torch._ops.OpOverload) and op.is_view
    return view or packet(node) in VIEWS or op is operator.getitem


def readers(of: fx.Node) -> dict[fx.Node, None]:
    """Returns the nodes that read a node or a view of it."""
    shared = dict.fromkeys(views(of))
    return dict.fromkeys(u for x in shared for u in x.users if u not in shared)


def updates(nodes: Iterable[fx.Node]) -> list[Update]:
    """Returns an :class:`Update` for each mutated argument of a graph."""
    made: list[Update] = []
    taken: set[fx.Node] = set()
    for node in nodes:
        if node.target is not _ATEN.copy_.default:
            continue
        argument, value = node.args[:2]
        versions: list[fx.Node] = []
        while isinstance(value, fx.Node) and value is not argument:
            versions.insert(0, value)
            if packet(value) not in SCATTERS:
                break
            value = value.args[0]
        own = isinstance(argument, fx.Node) and argument.op == "placeholder"
        if own and versions and taken.isdisjoint({argument, *versions}):
            taken |= {argument, *versions}
            made.append(Update(argument, node, tuple(versions)))
    return made


def in_place(
    update: Update,
    likes: Mapping[fx.Node, Any],
    lowered: Collection[fx.Node],
    when: Callable[[fx.Node], tuple[int, ...]],
) -> bool:
    """Whether all versions of an argument may share its memory: they have its shape, strides and
    dtype, and none is read after the next one has been computed.

    ``likes``: shape, strides, dtype and device by node (:class:`ptxgen.torch.lowering.Like`);
    ``lowered``: nodes that programs compute; ``when``: sort key of a node's execution, equal within
    a program.
    """
    like, last = likes[update.argument], update.versions[-1]
    if any(likes[v] != like for v in update.versions) or not like.dense:
        return False
    for old, new in update.steps():
        shared = set(views(old))
        if new.op != "call_function" or not shared - {old} <= set(lowered):
            return False
        if new not in lowered:
            if not is_scatter(new) or new.args[0] is not old:
                return False
            if not shared.isdisjoint(others(new)):
                return False
        for reader in readers(old):
            own = reader in (new, update.copy)
            if not own and (reader.op == "output" or when(reader) > when(new)):
                return False
    return not any(u.op == "output" for x in views(last) for u in x.users)
