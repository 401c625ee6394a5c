"""``export``: a model as one captured program that can be saved.

``torch.export`` traces the model to a functional graph, which is lowered to one program, as graphs
of ``torch.compile`` are (:mod:`ptxgen.torch.graphs`). Operators that would remain calls of PyTorch
are refused, unless they depend on no argument: these run once, at export, and their results become
constants.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import torch
from torch import fx
from torch.export.graph_signature import InputKind, OutputKind, TensorArgument

from ptxgen import graph
from ptxgen.errors import TraceError, UnservedError
from ptxgen.program.buffer import INPUT, Buffer
from ptxgen.program.capture import Captured
from ptxgen.program.invoke import refuse_gradients
from ptxgen.program.step import Program
from ptxgen.program.streams import STREAMS
from ptxgen.program.trace import Tracing
from ptxgen.runtime import Call
from ptxgen.torch.graphs import Options, Report, Schedule, TorchCall, attention_in_tier
from ptxgen.torch.lowering import Context, Like
from ptxgen.torch.operators import SYMBOLIC
from ptxgen.torch.tracing import as_served, resizing
from ptxgen.torch.trees import leaves
from ptxgen.torch.unserved import draws


def export(
    model: torch.nn.Module,
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    *,
    passes: Collection[str] | None = None,
    tier: str = "auto",
    functions: bool = True,
    stream: Any = None,
    streams: int = STREAMS,
) -> Captured:
    """Exports a model as one captured program, forward only, with the bits that it has in a
    :class:`ptxgen.torch.batch_invariant` block. ``save`` writes it for :func:`ptxgen.load`.

    ``model(*args, **kwargs)`` is traced, not run. The function returned takes the tensors among
    ``args`` and ``kwargs``, in their order (also those within tuples, lists and dicts), and returns
    the tensors of the model's result in theirs. Scalar arguments are fixed at export. ``passes``,
    ``tier``, ``functions``: as of :class:`ptxgen.torch.Backend`; ``streams``: as of
    :func:`ptxgen.capture`.

    Shapes
        Those of the example, at each call. Of its tensors, only shapes and dtypes matter.
    Dtypes
        Those of the example. Results have PyTorch's.
    Storage
        An argument that the model writes, such as a cache, is written in the caller's memory: see
        :class:`ptxgen.program.replay.Replayed`. So are the model's own buffers that it writes.
        Parameters and buffers are read in place; the attribute ``outside`` of the function returned
        holds them. Results are new, and contiguous. ``stream``: the stream on which memory for the
        graph is allocated.
    Order
        That of each operation's contract.
    Errors
        UnservedError, with each operator that would remain a call of PyTorch and depends on more
        than constants; TraceError for a model that is no module, takes no tensor, or returns none;
        GradError for tensors that require grad; OptionError; those of ``torch.export`` for models
        that it cannot trace.
    Source
        ``ptxgen/torch/exported.py``.
    """
    if not isinstance(model, torch.nn.Module):
        raise TraceError(f"export takes a torch.nn.Module; got a {type(model).__qualname__}")
    values = {"passes": passes, "tier": tier, "functions": functions, "streams": streams}
    options = Options.of(values)
    leaves, spec = torch.utils._pytree.tree_flatten((tuple(args), dict(kwargs or {})))
    given = [x.contiguous() if isinstance(x, torch.Tensor) else x for x in leaves]
    named = {
        f"argument {i}": x for i, x in enumerate(x for x in given if isinstance(x, torch.Tensor))
    }
    if not named:
        raise TraceError(f"{type(model).__name__} is given no tensor; takes at least one")
    refuse_gradients(named)
    call = Call(named, stream)
    example = torch.utils._pytree.tree_unflatten(given, spec)
    with torch.no_grad(), as_served():
        read = torch.export.export(model, *example, strict=False)
        read = read.run_decompositions(_decompositions(tier))
        whole = Whole(read, options)
        tracing = Tracing(type(model).__name__, next(iter(call.views.values())), call.device)
        program = whole.program(model, tracing, call)
    return Captured(graph.apply(program, options.passes)[0], tracing, call, streams)


def _decompositions(tier: str) -> dict[Any, Callable[..., Any]]:
    """Returns decompositions for ``torch.export``: AOTAutograd's, and ptxgen's attention."""
    implicit = torch._C._dispatch_has_kernel_for_dispatch_key
    found = {
        op: rule
        for op, rule in torch.export.default_decompositions().items()
        if implicit(op.name(), "CompositeImplicitAutograd")
    }
    composite = torch._C.DispatchKey.CompositeImplicitAutograd
    found |= {  # their own kernels, as the default is a rule in Python
        op: partial(op._op_dk, composite)
        for op in resizing()
        if implicit(op.name(), "CompositeImplicitAutograd")
    }
    return {**found, torch.ops.aten.scaled_dot_product_attention.default: attention_in_tier(tier)}


def _unknown(value: Any) -> bool:
    """Whether a value, or one of its sizes, is symbolic: known at run time only."""
    sizes = [tuple(x.shape) for x in leaves(value, torch.Tensor)]
    return any(True for _ in leaves((value, sizes), SYMBOLIC))


class Whole(Schedule):
    """Schedule of a graph of ``torch.export`` as one program. Calls of PyTorch run at export: they
    may depend on constants only, on no argument, parameter or buffer.
    """

    def __init__(self, read: Any, options: Options) -> None:
        signature = read.graph_signature
        self._constants = read.constants
        places = [n for n in read.graph.nodes if n.op == "placeholder"]
        self._inputs = dict(zip(places, signature.input_specs, strict=True))
        (last,) = (n for n in read.graph.nodes if n.op == "output")
        returned = list(zip(signature.output_specs, last.args[0], strict=True))
        own = InputKind.USER_INPUT
        known = {(s.kind is own, s.target or s.arg.name): n for n, s in self._inputs.items()}
        self._returned = [x for s, x in returned if s.kind is OutputKind.USER_OUTPUT]
        self._mutated = {
            known[s.kind is OutputKind.USER_INPUT_MUTATION, s.target]: x
            for s, x in returned
            if s.kind is not OutputKind.USER_OUTPUT
        }
        for node in list(read.graph.nodes):
            if node.target is torch.ops.aten._assert_tensor_metadata.default:
                read.graph.erase_node(node)  # what it asserts is known of each call
            elif _unknown(node.meta.get("val")):
                raise UnservedError(
                    f"{node.target} makes a number or a size of what is in a tensor; a program has "
                    "the same sizes at each call"
                )
        super().__init__(read.graph_module, {}, options, Report())

    def context(self, node: fx.Node) -> Context:
        """Returns the context for lowering a node; here kernels, not PyTorch, write rows at
        indices.
        """
        return replace(super().context(node), scatters=True)

    @cached_property
    def _before_programs(self) -> set[fx.Node]:
        """Nodes that depend on constants only, on no argument, parameter or buffer, and draw no
        random numbers: their values are the same at each call.
        """
        found: set[fx.Node] = set()
        for node in self.nodes:
            spec = self._inputs.get(node)
            if spec is not None:
                alone = spec.kind is InputKind.CONSTANT_TENSOR
            else:
                alone = not draws(node.target) and found.issuperset(node.all_input_nodes)
            if alone:
                found.add(node)
        return found

    def _calls(self, name: str) -> list[TorchCall]:
        """Returns the calls of PyTorch, all of which run at export. Raises UnservedError, with the
        model's ``name``, if one depends on an argument, parameter or buffer, or draws random
        numbers.
        """
        calls = [m for m in self.sequence if isinstance(m, TorchCall)]
        left = Counter(
            str(m.outputs[0].target) for m in calls if m.outputs[0] not in self._before_programs
        )
        if left:
            listed = ", ".join(f"{op} ({count})" for op, count in sorted(left.items()))
            raise UnservedError(
                f"{name} cannot be one program: PyTorch would have to compute {listed}; do that "
                'another way, or use torch.compile(model, backend="ptxgen"), which calls them'
            )
        return calls

    def _outside(self, model: torch.nn.Module) -> dict[fx.Node, tuple[str, torch.Tensor]]:
        """Returns (name, tensor) by node for all that a program may read besides its arguments:
        parameters, buffers and constants, some computed here.
        """
        calls = self._calls(type(model).__name__)
        found: dict[fx.Node, tuple[str, torch.Tensor]] = {}
        for node, spec in self._inputs.items():
            if spec.kind is InputKind.CONSTANT_TENSOR:
                found[node] = spec.target, self._constants[spec.target]
            elif spec.kind in (InputKind.PARAMETER, InputKind.BUFFER):
                found[node] = spec.target, operator.attrgetter(spec.target)(model)
        values: dict[fx.Node, Any] = {node: x for node, (_, x) in found.items()}
        for number, each in enumerate(calls):
            each.run(values)
            (node,) = each.outputs
            if isinstance(values[node], torch.Tensor):
                found[node] = f"constant {number}", values[node]
        return found

    def program(self, model: torch.nn.Module, tracing: Tracing, call: Call) -> Program:
        """Returns the graph's program. Its inputs are the arguments of ``call``, and the tensors of
        ``model`` and constants (:meth:`_outside`) that it reads. ``tracing``: the trace that
        records it.
        """
        name, b, outside = type(model).__name__, tracing.builder, self._outside(model)
        places = {
            node: spec.arg.name
            for node, spec in self._inputs.items()
            if spec.kind is InputKind.USER_INPUT and isinstance(spec.arg, TensorArgument)
        }
        pairs = zip(places.items(), call.views.values(), strict=True)
        values: dict[fx.Node, Any] = {node: b.input(n, x.packed) for (node, n), x in pairs}
        nodes = [n for n in self.nodes if n in self.lowered]
        used = {x for n in (*nodes, self.output) for x in n.all_input_nodes} | {*self._mutated}
        for node, (key, x) in outside.items():
            if node in used:
                values[node] = tracing.outer(key, x)
                values[node].memory.constant = node in self._before_programs
        for node in nodes:
            self.enter(b, values, node)
        found = [self._result(b, name, values, x) for x in self._returned]
        self._write(b, values)
        if all(x is None for x in found):
            raise TraceError(f"{name} returns no tensor; takes a model that does")
        return b.finish(found)

    def _result(self, b: Any, name: str, values: Mapping[fx.Node, Any], x: Any) -> Buffer | None:
        """Returns the buffer of result ``x``, copied if it is in the memory of an input; None if
        ``x`` is None. Raises TraceError, with the model's ``name``, if it is no tensor.
        """
        if x is None:
            return None
        if not isinstance(x, fx.Node) or not isinstance(self.likes[x], Like):
            raise TraceError(f"{name} returns {x}, which is no tensor; takes tensors, and None")
        found: Buffer = values[x]
        return b.copied(found) if found.memory.role == INPUT else found

    def _write(self, b: Any, values: Mapping[fx.Node, Any]) -> None:
        """Copies mutated values to the memory of their arguments and buffers, after all reads of
        it.
        """
        places = {values[node].memory for node in self._mutated}
        pairs = [(values[node], values[x]) for node, x in self._mutated.items()]
        pairs = [(to, b.copied(x) if x.memory in places else x) for to, x in pairs]
        for to, x in pairs:
            to.memory.written = True
            b.copied(x, to)
