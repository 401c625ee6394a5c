"""Rewrites graphs of `transformers` models to compute as these models do in eager mode.

While a compiler traces it, such a model builds a mask tensor where it is simply causal in eager
mode. It repeats keys and values for the query heads that share them, and calls an operator of its
own for the experts' products. :func:`as_in_eager` undoes that in a graph, before autograd is
traced:

- a mask that depends on sizes alone is evaluated once. If it is causal, a window, or both, it
  becomes options of attention (:class:`MaskPattern`), which then skips masked blocks of keys;
- keys that :data:`REPEATS` repeats are read once for all heads that share them, and their gradients
  are summed as those of shared heads;
- the operator becomes ``grouped_linear``.

A ``batch_invariant()`` block sees no graph; while one is open, :mod:`ptxgen.torch.patches` stops
`transformers` from repeating keys. Options instead of a mask change no bits. So results and
gradients of a compiled model are those of the block.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import cache
from typing import Any, Final, NamedTuple

import torch
from torch import fx
from torch._subclasses.fake_tensor import unset_fake_temporarily

from ptxgen.ops.grouped import has_kernels
from ptxgen.torch.experts import grouped_linear
from ptxgen.torch.record import NAMES

REPEATS: Final = "/transformers/integrations/sdpa_attention.py", "in repeat_kv"
"""Texts in the stack trace of a node that repeats keys: the file, and the function."""

_BINARY: Final = (
    *("add", "sub", "mul", "floordiv", "mod", "le", "lt", "ge", "gt", "eq", "ne"),
    *("and_", "or_", "xor"),
)
EXACT: Final = frozenset(
    {
        *(getattr(operator, name) for name in (*_BINARY, "getitem", "invert", "neg")),
        *(torch.arange, torch.ones, torch.zeros, torch.full, torch.ones_like, torch.zeros_like),
        *(torch.where, torch.cumsum, torch.diff, torch.tril, torch.triu, torch.abs),
        *(torch.logical_and, torch.logical_or, torch.logical_not, torch.logical_xor),
    }
)
"""Functions that may build a mask: their results on integers and booleans are exact."""
METHODS: Final = frozenset(
    {
        *("unsqueeze", "squeeze", "expand", "view", "reshape", "transpose", "contiguous", "clone"),
        *("to", "bool", "int", "long", "new_ones", "new_zeros", "new_full", "cumsum", "tril"),
        *("triu", "masked_fill", "logical_not", "logical_and", "logical_or", "abs"),
        *(f"__{name.strip('_')}__" for name in _BINARY),  # PyTorch 2.11 reads a == b so
    }
)
"""Tensor methods that may build a mask."""


class MaskPattern(NamedTuple):
    """Keys that each query attends to, where the last query is aligned with the last key."""

    causal: bool
    """Whether a query attends to no key after its own position."""
    window: int | None
    """Bound of the distance: a query attends only to keys nearer than this; None for no bound."""


def mask_pattern(mask: torch.Tensor) -> MaskPattern | None:
    """Describes a boolean mask ``[..., S, L]`` by a causal flag and a window; None if no such pair
    does.
    """
    if mask.dtype is not torch.bool or mask.ndim < 2 or 0 in mask.shape:
        return None
    rows = mask.reshape(-1, *mask.shape[-2:]) if mask.ndim > 2 else mask[None]
    if len(rows) > 1 and not torch.equal(rows, rows[:1].expand_as(rows)):
        return None
    keys = rows.shape[-1]
    counts = rows[0].sum(-1).cpu()
    bits = rows[0].to(torch.uint8)
    firsts, lasts = bits.argmax(-1).cpu(), keys - 1 - bits.flip(-1).argmax(-1).cpu()
    places = torch.arange(keys - len(counts), keys)  # where queries stand
    whole = counts > 0
    causal = bool((lasts <= places)[whole].all())
    reach = torch.maximum(places - firsts, lasts - places)[whole]
    window = int(reach.max()) + 1 if len(reach) else 1
    begin = (places - (window - 1)).clamp(min=0)
    end = (places + (0 if causal else window - 1)).clamp(max=keys - 1) + 1
    expected = (end - begin).clamp(min=0)
    if not torch.equal(counts, expected):
        return None
    if not torch.equal(
        torch.stack((firsts, lasts + 1))[:, whole], torch.stack((begin, end))[:, whole]
    ):
        return None
    far = int(places[-1]) if causal else max(int(places[-1]), keys - 1 - int(places[0]))
    return MaskPattern(causal, None if window > far else window)


def as_in_eager(
    module: fx.GraphModule,
    attention: Callable[..., Any],
    tier: str,
    served: Callable[[torch.device], bool],
) -> None:
    """Rewrites a graph to compute as the model does in a ``batch_invariant()`` block of ``tier``.

    ``attention``: the function that has replaced ``scaled_dot_product_attention`` in the graph, and
    takes ``pattern`` as well. ``served``: whether ptxgen computes on a device.
    """
    masks: dict[fx.Node, MaskPattern | None] = {}
    for node in list(module.graph.nodes):
        if node.op != "call_function":
            continue
        if node.target is attention:
            _share(module.graph, node)
            _set_pattern(node, masks)
        elif node.target in _own_attention():
            _set_own_pattern(node, masks)
        elif (operands := _grouped(node, tier, served)) is not None:
            node.target, node.args, node.kwargs = grouped_linear, operands, {"layout": "kn"}


def _grouped(
    node: fx.Node, tier: str, served: Callable[[torch.device], bool]
) -> tuple[fx.Node, ...] | None:
    """Returns the operands (rows, weights, group ends) of a node that is the grouped product of
    `transformers`; None for other nodes, and where ptxgen has no kernels for it. ``tier``: units
    for products; ``served``: whether ptxgen computes on a device.
    """
    packet = getattr(node.target, "overloadpacket", node.target)
    if getattr(packet, "_qualified_op_name", "") != "transformers::grouped_mm_fallback":
        return None
    given = node.normalized_arguments(node.graph.owning_module, normalize_to_only_use_kwargs=True)
    operands = () if given is None else tuple(given.kwargs.values())
    if len(operands) != 3 or not all(isinstance(x, fx.Node) for x in operands):
        return None
    values = [x.meta.get("example_value") for x in operands]
    if not all(isinstance(x, torch.Tensor) for x in values):
        return None
    x, weight, ends = values
    alike = x.dtype == weight.dtype and ends.dtype == torch.int32 and served(x.device)
    return operands if alike and has_kernels(NAMES.get(x.dtype), tier, len(ends)) else None


# -- masks --------------------------------------------------------------------------------------
def _set_pattern(attention: fx.Node, known: dict[fx.Node, MaskPattern | None]) -> None:
    """Sets the option ``pattern`` in a call of attention to the :class:`MaskPattern` of its mask,
    if the mask has one.

    ``attention``: the node of the call. ``known``: patterns of masks found so far, by mask.
    """
    place = attention.args[3] if len(attention.args) > 3 else None
    if (found := _pattern_of(attention.kwargs.get("attn_mask", place), known)) is not None:
        attention.kwargs = {**attention.kwargs, "pattern": tuple(found)}


def _set_own_pattern(attention: fx.Node, known: dict[fx.Node, MaskPattern | None]) -> None:
    """Replaces the mask in a call of :func:`ptxgen.torch.attention` by ``causal`` and ``window``,
    if they describe it and no other argument restricts the keys.

    ``attention``: the node of the call. ``known``: patterns of masks found so far, by mask.
    """
    schema = torch.ops.ptxgen.attention.default._schema.arguments
    names = [each.name for each in schema if not each.kwarg_only]
    given = dict(zip(names, attention.args, strict=False)) | attention.kwargs
    places = ("lengths", "starts", "query_lengths", "cu_seqlens", "cu_seqlens_k", "block_table")
    if any(given.get(name) for name in ("causal", "window", *places)):
        return
    if (found := _pattern_of(given.get("mask"), known)) is not None:
        given |= {"mask": None, "causal": found.causal, "window": found.window}
        attention.args = tuple(given.pop(name) for name in names if name in given)
        attention.kwargs = given


def _pattern_of(mask: Any, known: dict[fx.Node, MaskPattern | None]) -> MaskPattern | None:
    """Returns the pattern of a mask node whose values depend on sizes alone. Returns None for other
    masks, for masks without a pattern, and without a mask. ``known``: patterns found so far, by
    mask; the new one is added.
    """
    if not isinstance(mask, fx.Node):
        return None
    if mask not in known:
        known[mask] = _evaluated(mask)
    return known[mask]


@cache
def _own_attention() -> tuple[Any, ...]:
    """Returns the node targets by which graphs of Dynamo call :func:`ptxgen.torch.attention`."""
    packet = torch.ops.ptxgen.attention
    return packet, packet.default


def _evaluated(mask: fx.Node) -> MaskPattern | None:
    """Evaluates a mask that depends on no input of the graph, and returns its pattern, or None."""
    order = _made_of(mask)
    if order is None:
        return None
    values: dict[fx.Node, Any] = {}
    with unset_fake_temporarily(), torch.no_grad():
        for node in order:
            args, how = fx.node.map_arg((node.args, dict(node.kwargs)), values.__getitem__)
            if node.op == "call_method":
                values[node] = getattr(args[0], node.target)(*args[1:], **how)
            else:
                values[node] = node.target(*args, **how)
        return mask_pattern(values[mask])


def _made_of(mask: fx.Node) -> list[fx.Node] | None:
    """Returns the nodes that a mask is computed from, in graph order, the mask last. Returns None
    if one is no function of :data:`EXACT` or method of :data:`METHODS`, or its tensor is mutated
    later (traced tensors count versions, also for writes through views).
    """
    found: dict[fx.Node, None] = {}
    waiting = [mask]
    while waiting:
        node = waiting.pop()
        if node in found:
            continue
        called = node.op == "call_function" and node.target in EXACT
        if not called and not (node.op == "call_method" and node.target in METHODS):
            return None
        value = node.meta.get("example_value")
        if not isinstance(value, torch.Tensor) or value._version:
            return None
        found[node] = None
        waiting.extend(node.all_input_nodes)
    return [node for node in mask.graph.nodes if node in found]


# -- shared heads -------------------------------------------------------------------------------
def _share(graph: fx.Graph, attention: fx.Node) -> None:
    """Replaces keys and values that `transformers` repeated for several query heads by the original
    ones, and sets ``enable_gqa``. ``attention``: node of the call, which stays as it is if its keys
    and values are not repeated.
    """
    if len(attention.args) < 3 or len(attention.args) > 7:
        return
    query, *repeated = attention.args[:3]
    shared = [_repeat_source(x) for x in repeated if isinstance(x, fx.Node)]
    if len(shared) < 2 or None in shared:
        return
    with graph.inserting_before(attention):
        given = [_cut(graph, *each) for each in shared if each is not None]
    attention.args = (query, *given, *attention.args[3:])
    attention.kwargs = {**attention.kwargs, "enable_gqa": True}


def _repeat_source(node: fx.Node) -> tuple[fx.Node, list[Any]] | None:
    """Returns the keys before they were repeated, and the slices taken of the copies; None for
    other nodes.
    """
    slices: list[Any] = []
    while node.op == "call_function" and node.target is operator.getitem:
        source, index = node.args
        everything = isinstance(index, tuple) and all(isinstance(i, slice) for i in index)
        if not isinstance(source, fx.Node) or not everything or index[1] != slice(None):
            return None
        slices.append(index)
        node = source
    for name in ("reshape", "expand"):
        if node.op != "call_method" or node.target != name or not _repeats(node):
            return None
        (node, *_) = node.args
    if node.target is not operator.getitem or not _repeats(node):
        return None
    source = node.args[0]
    return (source, slices[::-1]) if isinstance(source, fx.Node) else None


def _cut(graph: fx.Graph, node: fx.Node, slices: list[Any]) -> fx.Node:
    for index in slices:
        node = graph.call_function(operator.getitem, (node, index))
    return node


def _repeats(node: fx.Node) -> bool:
    """Whether a node was created by `transformers` to repeat keys for attention."""
    frames = [x for x in (node.meta.get("stack_trace") or "").splitlines() if ", in " in x]
    return bool(frames) and all(part in frames[-1].replace("\\", "/") for part in REPEATS)
