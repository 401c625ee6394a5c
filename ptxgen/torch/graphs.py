"""``torch.compile(model, backend="ptxgen")``: compiles graphs of ATen operators to programs.

AOTAutograd traces two functional graphs, forward and backward, which end with copies back to
mutated arguments; most mutations are done in place instead (:mod:`ptxgen.torch.updates`). For each
set of sizes, a :class:`Schedule` is built: operators with a lowering become programs
(:mod:`ptxgen.torch.lowering`), others remain calls of PyTorch between them. Each operator has the
bits that it has in :class:`ptxgen.torch.batch_invariant`.
"""

from __future__ import annotations

import itertools
import operator
import weakref
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache, cached_property, partial
from typing import Any

import torch
from torch import fx

from ptxgen import graph
from ptxgen.errors import DeviceError, DtypeError, OptionError, PtxgenError, UnservedError
from ptxgen.ops import OPERATIONS
from ptxgen.program.buffer import INPUT, Buffer, Memory
from ptxgen.program.build import ProgramBuilder
from ptxgen.program.execute import Plan
from ptxgen.program.invoke import Frame
from ptxgen.program.operation import Op
from ptxgen.program.parameters import ARRAY, Parameter
from ptxgen.program.prepared import Hooks
from ptxgen.program.step import Program
from ptxgen.program.streams import STREAMS, Streams, checked
from ptxgen.torch import serve
from ptxgen.torch.aten import RECORDED, REDUCTIONS, autocast_widens
from ptxgen.torch.functional import rounded
from ptxgen.torch.inputs import traced
from ptxgen.torch.lowering import MOVES, VIEWS, Context, Like, lower
from ptxgen.torch.module import check_tier
from ptxgen.torch.outputs import ALIAS, rejoin, separate
from ptxgen.torch.reading import as_in_eager
from ptxgen.torch.record import NAMES
from ptxgen.torch.replay import Replay
from ptxgen.torch.tracing import as_served
from ptxgen.torch.trees import leaves
from ptxgen.torch.unserved import NotServed, draws, reason
from ptxgen.torch.updates import (
    IN_PLACE,
    Update,
    in_place,
    is_scatter,
    others,
    packet,
    readers,
    updates,
    views,
)

SIZES_MAX = 64
"""Most sets of sizes for which schedules of one graph are kept."""
PARTS, PARTS_FROM = 4, 1 << 28
"""Limits for cutting a program into parts, which saves memory (:meth:`Schedule._parts`): the
largest number of parts, and the least total size in bytes of the graph's results that it computes.
"""


def _is_served(device: torch.device) -> bool:
    """Whether ptxgen computes on tensors of a device."""
    return device.type in serve.served_kinds()


# -- what is compiled -------------------------------------------------------------------------
@dataclass
class Report:
    """Statistics of the graphs that a :class:`Backend` compiled: counts of operators by name, and
    the programs.
    """

    lowered: Counter[str] = field(default_factory=Counter)
    """Operators that became steps of programs."""
    torch: Counter[str] = field(default_factory=Counter)
    """Operators that remain calls of PyTorch, and whose rows cannot depend on the batch."""
    unknown: Counter[str] = field(default_factory=Counter)
    """Operators that remain calls of PyTorch, and whose rows may depend on the batch."""
    updated: Counter[str] = field(default_factory=Counter)
    """Counts of mutated arguments that are written "in place" or "copied back"."""
    _segments: weakref.WeakSet[Segment] = field(default_factory=weakref.WeakSet)
    _streams: weakref.WeakSet[Streams] = field(default_factory=weakref.WeakSet)

    def _ran(self) -> list[Segment]:
        ran = [s for s in self._segments if s.program is not None]
        return sorted(ran, key=lambda s: s.number)

    @property
    def programs(self) -> list[Program]:
        """Programs that have run and are still kept, after graph passes."""
        return [s.program for s in self._ran() if s.program is not None]

    @property
    def arenas(self) -> list[tuple[int, int]]:
        """Pairs for each program: bytes of the arena for its temporaries, and most bytes live at
        once.
        """
        return [s.arena for s in self._ran() if s.arena is not None]

    @property
    def streams(self) -> list[int]:
        """Number of streams that the programs use, for each set of sizes that is replayed;
        ascending.
        """
        return sorted(each.used for each in self._streams if each.used)

    @property
    def done(self) -> list[graph.Done]:
        """Records of what each graph pass changed in each program."""
        return [done for s in self._ran() for done in s.done]

    def __str__(self) -> str:
        lowered, called = ("in programs", self.lowered), ("calls of PyTorch", self.torch)
        lines = serve.counted(lowered, called, (serve.UNKNOWN_TITLE, self.unknown))
        steps = sum(len(p.steps) for p in self.programs)
        lines.append(f"programs: {len(self.programs)}, of {steps} steps")
        if self.streams:
            lines.append(f"replayed: {len(self.streams)}, on at most {max(self.streams)} streams")
        if self.arenas:
            peak, least = max(self.arenas)
            lines.append(f"largest arena: {peak:,} bytes, of which {least:,} live at once")
        if self.updated:
            how = ", ".join(f"{count} {name}" for name, count in sorted(self.updated.items()))
            lines.append(f"arguments that are written: {how}")
        for name in graph.PASSES:
            if own := [d for d in self.done if d.name == name]:
                lines.append(str(graph.Done.together(name, own)))
        return "\n".join(lines)


@dataclass(frozen=True)
class Options:
    """Checked options of a :class:`Backend`. ``passes``: names of graph passes, or None for all."""

    passes: tuple[str, ...] | None = None
    tier: str = "auto"
    strict: bool = False
    capture: bool = False
    streams: int = STREAMS
    functions: bool = True

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Options:
        """Reads the options of ``torch.compile(options=...)``. Raises OptionError."""
        names = [each.name for each in fields(cls)]
        if unknown := sorted(given.keys() - set(names)):
            raise OptionError(f"there is no option {unknown[0]!r}; takes {', '.join(names)}")
        passes = given.get("passes")
        if passes is not None:
            passes = tuple(name for name, _ in graph.chosen(passes, "passes"))
        read = {"passes": lambda _: passes, "tier": check_tier, "streams": checked}
        values: dict[str, Any] = {name: read.get(name, bool)(x) for name, x in given.items()}
        return cls(**values)


class Backend:
    """Backend of ``torch.compile``: compiles graphs to programs with the bits of
    :class:`batch_invariant`. Its report covers all that it compiled.

    ``torch.compile(model, backend="ptxgen")`` uses :data:`backend`, with the arguments as
    ``options``. ``passes``: names of graph passes to run (:data:`ptxgen.graph.PASSES`), by default
    all. ``tier``: units for products, "simt" (FMA), "tc" (tensor cores) or "auto". ``strict``:
    whether operators are refused whose rows may depend on the batch. ``capture``: on a GPU, whether
    sizes that recur are replayed as a CUDA graph, if no step waits for the host or draws random
    numbers; ``streams``: most streams of a replay (:mod:`ptxgen.program.streams`). ``functions``:
    as in :class:`batch_invariant`.

    Raises OptionError; UnservedError (``strict=True``) when a model is called.
    """

    def __init__(
        self,
        *,
        passes: Collection[str] | None = None,
        tier: str = "auto",
        strict: bool = False,
        capture: bool = False,
        streams: int = STREAMS,
        functions: bool = True,
    ) -> None:
        how: dict[str, Any] = {"passes": passes, "tier": tier, "strict": strict}
        self._options = {**how, "capture": capture, "streams": streams, "functions": functions}
        Options.of(self._options)
        self._report = Report()

    def register(self, name: str = "ptxgen") -> None:
        """Registers this backend as ``torch.compile(backend=name)``. An installed ptxgen needs no
        call for :data:`backend`, which PyTorch finds as ``"ptxgen"``.

        Raises OptionError if another backend has this name, as PyTorch cannot remove it.
        """
        try:
            torch._dynamo.register_backend(self, name=name)
        except AssertionError:  # the name is taken
            if torch._dynamo.lookup_backend(name) is not self:
                raise OptionError(f"torch.compile has another backend {name!r} already") from None

    def report(self) -> Report:
        """Returns statistics of all graphs compiled so far; ``print`` shows them."""
        return self._report

    def __call__(
        self, module: fx.GraphModule, example: Sequence[Any], *, options: Any = None
    ) -> Callable[..., Any]:
        from torch._dynamo.backends.common import aot_autograd
        from torch._functorch.partitioners import min_cut_rematerialization_partition

        how = Options.of({**self._options, **(options or {})})
        compiler = partial(_compiled, how, self._report)
        separate(module)
        _above_autograd(module, how.tier)
        made = aot_autograd(
            fw_compiler=compiler,
            bw_compiler=compiler,
            partition_fn=min_cut_rematerialization_partition,
            keep_inference_input_mutations=True,
        )
        with as_served():
            return traced(made, module, example)


backend = Backend()
"""The instance behind ``torch.compile(backend="ptxgen")``."""


def _above_autograd(module: fx.GraphModule, tier: str) -> None:
    """Replaces attention and cross-entropy in a Dynamo graph by ptxgen's, before autograd is
    traced.
    """
    served = {_sdpa: attention_in_tier(tier), _cross_entropy: cross_entropy_in_tier(tier)}
    for each in module.modules():
        if isinstance(each, fx.GraphModule):
            for node in each.graph.nodes:
                if node.op == "call_function" and node.target in served:
                    node.target = served[node.target]
                if node.target is served[_cross_entropy]:
                    _narrow_logits(node)
            as_in_eager(each, attention_in_tier(tier), tier, _is_served)
            each.recompile()


def _narrow_logits(loss: fx.Node) -> None:
    """Removes a cast of 16-bit logits to f32 before a loss.

    The loss computes in f32 anyway, and the gradient is rounded once in either case.
    """
    views: list[fx.Node] = []
    node = loss.args[0] if loss.args else None
    while isinstance(node, fx.Node) and node.op == "call_method":
        if node.target not in ("view", "reshape", "contiguous"):
            break
        views.append(node)
        node = node.args[0]
    if not isinstance(node, fx.Node) or node.op != "call_method" or not node.args:
        return
    widened = node.target == "float" or (node.target, node.args[1:]) == ("to", (torch.float32,))
    logits = node.args[0]
    if not widened or node.kwargs or not isinstance(logits, fx.Node):
        return
    dtypes = [getattr(n.meta.get("example_value"), "dtype", None) for n in (logits, node)]
    if dtypes[0] not in (torch.bfloat16, torch.float16) or dtypes[1] is not torch.float32:
        return
    with loss.graph.inserting_before(loss):
        for view in reversed(views):
            logits = loss.graph.call_method(view.target, (logits, *view.args[1:]), view.kwargs)
    loss.args = (logits, *loss.args[1:])
    loss.kwargs = {**loss.kwargs, "wide": True}


_sdpa = torch.nn.functional.scaled_dot_product_attention
_cross_entropy = torch.nn.functional.cross_entropy


@cache
def attention_in_tier(tier: str) -> Callable[..., Any]:
    """Returns ``scaled_dot_product_attention`` as ``batch_invariant(tier=...)`` computes it, with
    PyTorch's own for unsupported calls. The function also takes ``pattern``, causal flag and window
    of the mask if known (:func:`ptxgen.torch.reading.as_in_eager`).
    """

    def attention(
        query: Any,
        key: Any,
        value: Any,
        attn_mask: Any = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: Any = None,
        enable_gqa: bool = False,
        pattern: tuple[bool, int | None] | None = None,
    ) -> Any:
        query, key, value, attn_mask = _autocast(query, key, value, attn_mask)
        given = query, key, value, attn_mask, dropout_p, is_causal
        how = {"scale": scale, "enable_gqa": enable_gqa}
        if _is_served(query.device):
            try:
                serve = RECORDED["scaled_dot_product_attention"][1]
                return serve(tier, *given, **how, pattern=pattern)
            except (NotServed, DtypeError):
                pass
        return _sdpa(*given, **how)

    return attention


@cache
def cross_entropy_in_tier(tier: str) -> Callable[..., Any]:
    """Returns ``cross_entropy`` as ``batch_invariant(tier=...)`` computes it, with PyTorch's own
    for unsupported calls. The function also takes ``wide``: whether 16-bit logits get a loss in
    f32.
    """

    def cross_entropy(
        input: Any,
        target: Any,
        weight: Any = None,
        size_average: Any = None,
        ignore_index: int = -100,
        reduce: Any = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
        wide: bool = False,
    ) -> Any:
        old = size_average is not None or reduce is not None
        input = input.float() if autocast_widens(input) else input
        if not old and reduction in REDUCTIONS and _is_served(input.device):
            serve = RECORDED["cross_entropy_loss"][1]
            given = input, target, weight, REDUCTIONS.index(reduction), ignore_index
            try:
                return serve(tier, *given, label_smoothing, wide=wide)
            except (NotServed, DtypeError):
                pass
        input = input.float() if wide else input
        rest = size_average, ignore_index, reduce, reduction, label_smoothing
        return _cross_entropy(input, target, weight, *rest)

    return cross_entropy


def _autocast(*arrays: Any) -> Iterator[Any]:
    """Yields attention's arguments cast as by autocast, whose dispatch key the functions here
    bypass.
    """
    kind = arrays[0].device.type
    dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else None
    return (x if x is None or dtype is None else rounded(x, dtype) for x in arrays)


def _compiled(
    options: Options, report: Report, module: fx.GraphModule, example: Sequence[Any]
) -> Callable[..., Any]:
    """Compiles a graph of ATen operators; returns a function that takes a list of arguments,
    empties it and returns the results. ``report``: statistics, which are updated; ``example``: not
    used.
    """
    rejoin(module)
    found = Compiled(module, options, report)

    def call(args: list[Any]) -> Any:
        given = list(args)
        args.clear()
        with torch.no_grad():
            return found(given)

    call._boxed_call = True  # type: ignore[attr-defined]
    return call


class Compiled:
    """Compiled graph, with a :class:`Schedule` for each set of sizes."""

    def __init__(self, module: fx.GraphModule, options: Options, report: Report) -> None:
        self.module, self.options, self.report = module, options, report
        places = (n for n in module.graph.nodes if n.op == "placeholder")
        self._symbols: list[tuple[int, int | None, Any]] = []
        seen = set()
        for i, node in enumerate(places):
            value = node.meta.get("val")
            sizes: list[tuple[int | None, Any]] = [(None, value)]
            if isinstance(value, torch.Tensor):
                sizes = [*enumerate(value.shape)]
            for axis, size in sizes:
                expr = size.node.expr if isinstance(size, torch.SymInt) else None
                if expr is not None and expr.is_Symbol and expr not in seen:
                    seen.add(expr)
                    self._symbols.append((i, axis, expr))
        self._known: dict[Any, Schedule] = {}

    def __call__(self, given: list[Any]) -> Any:
        key = tuple(given[i] if d is None else given[i].shape[d] for i, d, _ in self._symbols)
        found = self._known.get(key)
        if found is None:
            sizes = dict(zip((s for _, _, s in self._symbols), key, strict=True))
            found = Schedule(self.module, sizes, self.options, self.report)
            if len(self._known) >= SIZES_MAX:
                del self._known[next(iter(self._known))]
            self._known[key] = found
        return found.run(given) if found.replay is None else found.replay.run(given)


# -- the schedule -----------------------------------------------------------------------------
_REFUSED = (NotServed, PtxgenError, NotImplementedError)


class Schedule:
    """Execution plan of a graph for one set of sizes: programs, and calls of PyTorch, in order.

    A node's level increases where a program has to wait for a call of PyTorch. Calls that depend on
    no program have level 0, programs begin with level 1; lowered nodes of one level form one
    program.
    """

    def __init__(
        self, module: fx.GraphModule, sizes: Mapping[Any, int], options: Options, report: Report
    ) -> None:
        self.module, self.sizes, self.options, self.report = module, sizes, options, report
        self._numbers: dict[Any, int | float] = {}
        self.nodes = [n for n in module.graph.nodes if n.op != "output"]
        (self.output,) = (n for n in module.graph.nodes if n.op == "output")
        self._places = [n for n in self.nodes if n.op == "placeholder"]
        self._attributes = [n for n in self.nodes if n.op == "get_attr"]
        self.likes = {n: self._like(n.meta.get("val")) for n in self.nodes}
        self.lowered = self._classified()
        self.lowered -= self._early()
        self._updates = updates(self.nodes)
        while alone := self._without_tensors():
            self.lowered -= alone
        self.levels = self._leveled()
        self.updates = [u for u in self._updates if self._in_place(u)]
        self._updated_nodes = {new for u in self.updates for new in u.versions}
        self._count()
        self.sequence = list(self._ordered())
        self.frees = list(self._freed())
        self.replay = None
        if options.capture and self._recordable():
            written = [self._places.index(n) for n in self._written()]
            self.replay = Replay(self, written, options.streams)
            report._streams.add(self.replay.streams)

    # -- sizes --------------------------------------------------------------------------------
    def _number(self, x: Any) -> Any:
        """Returns a scalar, evaluated for these sizes if it is symbolic."""
        if not isinstance(x, torch.SymInt | torch.SymFloat):
            return x
        expr, of = x.node.expr, int if isinstance(x, torch.SymInt) else float
        if (of, expr) not in self._numbers:
            self._numbers[of, expr] = of(expr.xreplace(self.sizes))
        return self._numbers[of, expr]

    def _like(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            shape, strides = (tuple(map(self._number, x)) for x in (value.shape, value.stride()))
            return Like(shape, strides, value.dtype, value.device)
        if isinstance(value, tuple | list):
            return tuple(map(self._like, value))
        return self._number(value)

    def arguments(self, node: fx.Node, of: Callable[[fx.Node], Any]) -> tuple[Any, dict[str, Any]]:
        """Returns the positional and keyword arguments of a node; ``of(node)`` returns a node's
        tensor.
        """
        value = partial(self.value, of=of)
        args = fx.node.map_arg(node.args, value)
        how = fx.node.map_arg(node.kwargs, value)
        return _plain(args, self._number), _plain(how, self._number)

    def value(self, node: fx.Node, of: Callable[[fx.Node], Any]) -> Any:
        """Returns the value of a node: its Python scalar for these sizes, or ``of(node)``."""
        like = self.likes[node]
        return like if isinstance(like, bool | int | float) else of(node)

    # -- what is known ------------------------------------------------------------------------
    def context(self, node: fx.Node) -> Context:
        """Returns the context for lowering a node: its results' shapes, tier and device kind."""
        like = self.likes[node]
        likes = like if isinstance(like, tuple) else (like,)
        device = next(x.device for x in likes if isinstance(x, Like))
        return Context(likes, self.options.tier, device.type, self.options.functions)

    def enter(self, b: ProgramBuilder, values: dict[fx.Node, Any], node: fx.Node) -> None:
        """Lowers a node, and stores its result buffers in ``values``."""
        if node.target is operator.getitem:
            values[node] = values[node.args[0]][node.args[1]]
        else:
            args, how = self.arguments(node, values.__getitem__)
            values[node] = lower(b, node.target, self.context(node), args, how)

    def _classified(self) -> set[fx.Node]:
        """Lowers each node on trial; returns the nodes for which that succeeds, which become steps
        of programs.
        """
        b = ProgramBuilder(OPERATIONS, "graph", aliases=True)
        values: dict[fx.Node, Any] = {}
        lowered: set[fx.Node] = set()
        for node in self.nodes:
            like = self.likes[node]
            values[node] = _imagined(b, like)
            if node.op != "call_function" or ALIAS in node.meta:
                continue
            if node.target is operator.getitem:
                if node.args[0] in lowered:
                    values[node] = values[node.args[0]][node.args[1]]
                    lowered.add(node)
                continue
            made = [*leaves(like, Like)]
            likes = [*made, *self._tensors_read(node)]
            if not made or not isinstance(node.target, torch._ops.OpOverload):
                continue
            if len({x.device for x in likes}) > 1 or not _is_served(likes[0].device):
                continue
            if any(x.dtype not in NAMES for x in likes) or _mutable(node):
                continue
            try:
                args, how = self.arguments(node, values.__getitem__)
                found = lower(b, node.target, self.context(node), args, how)
            except _REFUSED:
                continue
            values[node] = found
            lowered.add(node)
        return lowered

    def _early(self) -> set[fx.Node]:
        """Returns the lowered nodes that PyTorch has to compute instead, because its calls before
        the first program read them.
        """
        needed: set[fx.Node] = set()
        for node in reversed(self.nodes):
            if node in self._before_programs and (node in needed or node not in self.lowered):
                needed.update(node.all_input_nodes)
        return self.lowered & needed & self._before_programs

    @cached_property
    def _before_programs(self) -> set[fx.Node]:
        """Nodes that mutate nothing, and without floating-point values in them or their ancestors,
        such as masks and positions. PyTorch may compute them before the first program.
        """
        exact: set[fx.Node] = set()
        for node in self.nodes:
            dtypes = [x.dtype for x in leaves(self.likes[node], Like)]
            real = any(d.is_floating_point or d.is_complex for d in dtypes)
            if not (real or _mutable(node)) and exact.issuperset(node.all_input_nodes):
                exact.add(node)
        return exact

    def _without_tensors(self) -> set[fx.Node]:
        """Returns the lowered nodes of levels whose programs would read no tensor, so that nothing
        determines their device; PyTorch computes these nodes instead.
        """
        levels = self.levels = self._leveled()
        alone: set[fx.Node] = set()
        for level in set(levels.values()):
            nodes = [n for n in self.lowered if levels[n] == level]
            inner = set(nodes)
            outside = (x for n in nodes for x in n.all_input_nodes if x not in inner)
            if nodes and not any(isinstance(self.likes[x], Like) for x in outside):
                alone |= inner
        return alone

    def _leveled(self) -> dict[fx.Node, int]:
        levels: dict[fx.Node, int] = {}
        drawn = 0
        before = {new: readers(old) for u in self._updates for old, new in u.steps()}
        for node in self.nodes:
            if isinstance(self.likes[node], bool | int | float):
                levels[node] = 0  # a number of these sizes: nothing waits for it
                continue
            awaited = {*node.all_input_nodes, *(x for x in before.get(node, ()) if x in levels)}
            calls = [x.op == "call_function" and x not in self.lowered for x in awaited]
            behind = zip(awaited, calls, strict=True)
            # Calls that depend on no program and mutate nothing run before the first program.
            first = int(node in self.lowered or _mutable(node))
            level = max(first, *(levels[x] + (c and node in self.lowered) for x, c in behind), 0)
            if _mutable(node):
                level = max(first, *levels.values())  # behind all that is there
            if draws(node.target):
                level = drawn = max(level, drawn)  # random numbers are drawn in their order
            levels[node] = level
        return levels

    def _in_place(self, update: Update) -> bool:
        """Whether a mutated argument is written in place; counts it in the report."""
        number = {n: i for i, n in enumerate(self.nodes)}

        def when(node: fx.Node) -> tuple[int, ...]:
            alike = node in self.lowered
            return self.levels[node], not alike, 0 if alike else number[node]

        passes = self.options.passes
        found = passes is None or "inplace" in passes
        found = found and in_place(update, self.likes, self.lowered, when)
        self.report.updated["in place" if found else "copied back"] += 1
        return found

    def _count(self) -> None:
        done = {u.copy for u in self.updates}
        for node in self.nodes:
            if node in done or ALIAS in node.meta:
                continue
            if node.op != "call_function" or node.target is operator.getitem:
                continue
            if not any(True for _ in leaves(self.likes[node], Like)):
                continue
            name = str(node.target)
            if node in self.lowered:
                self.report.lowered[name] += 1
            elif self._understood(node):
                self.report.torch[name] += 1
            else:
                self.report.unknown[name] += 1
                if self.options.strict:
                    raise UnservedError(
                        f"{name} may compute rows that depend on the batch, and nothing else is "
                        "known of it; compute it another way, or pass strict=False to have it only "
                        "listed"
                    )

    def _understood(self, node: fx.Node) -> bool:
        op = node.target
        if not isinstance(op, torch._ops.OpOverload):
            return False
        if op.namespace == "ptxgen" or op in serve.functional() or reason(op) is not None:
            return True
        if op.namespace == "aten" and op.overloadpacket.__name__ in MOVES:
            return True  # the block never sees these: they are in functional graphs alone
        if draws(op):
            return False  # random numbers depend on the batch, as in the block
        return op.namespace == "aten" and not any(
            x.dtype.is_floating_point or x.dtype.is_complex for x in self._tensors_read(node)
        )

    def _tensors_read(self, node: fx.Node) -> Iterator[Like]:
        """Yields shape, strides, dtype and device of each tensor that a node reads."""
        return leaves([self.likes[x] for x in node.all_input_nodes], Like)

    # -- order --------------------------------------------------------------------------------
    def _ordered(self) -> Iterator[Segment | TorchCall]:
        """Yields programs and calls of PyTorch in the order in which they run."""
        roots = {x for u in self.updates for x in (u.argument, *u.versions)}
        shared = {x for root in roots for x in views(root)} - roots
        copies = {u.copy for u in self.updates}
        returned = set(self.output.all_input_nodes)
        for level in range(max(self.levels.values(), default=0) + 1):
            own = [n for n in self.nodes if self.levels[n] == level]
            lowered = [n for n in own if n in self.lowered]
            updated = list(self._versions(lowered))
            within = {new for _, new in updated}
            for part in [lowered] if self.updates else self._parts(lowered):
                inner, outputs = set(part), []
                for n in (n for n in part if isinstance(self.likes[n], Like)):
                    users = [u for u in n.users if u not in inner and u not in copies]
                    if n in shared:  # programs make their own views of what is written
                        users = [u for u in users if u not in self.lowered]
                    if n not in within and (n in returned or users):
                        outputs.append(n)
                if outputs or updated:
                    waiting = [x for n in inner for x in n.all_input_nodes]
                    while waiting:
                        x = waiting.pop()
                        if x in shared and x in self.lowered and x not in inner:
                            inner.add(x)
                            waiting += x.all_input_nodes
                    nodes = [n for n in self.nodes if n in inner]
                    read = [x for n in nodes for x in n.all_input_nodes if x not in inner]
                    read += [old for old, _ in updated]
                    sources = dict.fromkeys(x for x in read if isinstance(self.likes[x], Like))
                    yield Segment(self, nodes, tuple(sources), tuple(outputs), tuple(updated))
            for node in own:
                number = isinstance(self.likes[node], bool | int | float)
                call = node.op == "call_function" and node not in self.lowered and not number
                if call and node not in copies:
                    yield TorchCall(self, node)

    def _parts(self, nodes: list[fx.Node]) -> Iterator[list[fx.Node]]:
        """Cuts the nodes of a program with large results into parts that run one after the other.

        A program's results and temporaries are allocated when it starts. In parts, gradients of the
        first layers are not allocated while those of the last are computed, and tensors that only
        earlier parts read are freed. A cut is made where few live bytes belong to no result.
        """
        size = {n: self.likes[n].nbytes if isinstance(self.likes[n], Like) else 0 for n in nodes}
        returned = set(self.output.all_input_nodes)
        total = sum(size[n] for n in nodes if n in returned)
        part = total / PARTS
        last = {x: i for i, n in enumerate(nodes) for x in n.all_input_nodes}
        live: set[fx.Node] = set()
        begin, made, until = 0, 0, part
        for i, node in enumerate(nodes if total >= PARTS_FROM else ()):
            made += size[node] if node in returned else 0
            live = {x for x in (*live, node) if last.get(x, -1) > i}
            if made < until or i + 1 == len(nodes):
                continue
            whole = all(isinstance(self.likes[x], Like) for x in live)
            if whole and sum(size[x] for x in live - returned) <= part / 4:
                yield nodes[begin : i + 1]
                begin, until = i + 1, made + part
        yield nodes[begin:]

    def _versions(self, inner: Collection[fx.Node]) -> Iterator[tuple[fx.Node, fx.Node]]:
        """Yields, for each argument that a program of nodes ``inner`` mutates, its versions before
        and after the program.
        """
        for update in self.updates:
            steps = [(old, new) for old, new in update.steps() if new in inner]
            if steps:
                yield steps[0][0], steps[-1][1]

    def _freed(self) -> Iterator[list[fx.Node]]:
        """Yields, for each program or call, the values that are freed after it."""
        last = {n: i for i, item in enumerate(self.sequence) for n in item.touched}
        for number, item in enumerate(self.sequence):
            own = dict.fromkeys(item.touched)
            yield [n for n in own if last[n] == number and n not in self.output.all_input_nodes]

    def _recordable(self) -> bool:
        """Whether a CUDA graph can record the schedule: one GPU, no host wait and no random
        numbers.
        """
        likes = [*leaves(self.likes, Like)]
        if {x.device.type for x in likes} != {"cuda"} or len({x.device for x in likes}) > 1:
            return False
        own = [m.outputs[0] for m in self.sequence if isinstance(m, TorchCall)]
        if not set(self._written()) <= set(self._places):
            return False
        return all(n.target is operator.getitem or self._enqueued(n) for n in own)

    def _written(self) -> list[fx.Node]:
        """Returns the nodes that the graph's mutating operators write."""
        return [n.args[0] for n in self.nodes if _mutable(n)]

    def _enqueued(self, node: fx.Node) -> bool:
        """Whether a call only enqueues kernels: it does not synchronise and draws no random
        numbers.
        """
        op = node.target
        if not isinstance(op, torch._ops.OpOverload) or op.is_view:
            return isinstance(op, torch._ops.OpOverload)
        if is_scatter(node) or packet(node) == "index":  # a mask is counted by the host
            likes = [self.likes[x] for x in others(node)]
            return all(not isinstance(x, Like) or x.dtype not in _MASKS for x in likes)
        known = torch.Tag.pointwise in op.tags or packet(node) in _ENQUEUED
        return not draws(op) and (known or op.namespace == "ptxgen")

    def run(self, given: list[Any]) -> Any:
        """Runs all programs and calls; returns the results. Frees values after their last use.
        ``given``: the arguments, in a list that is emptied.
        """
        values: dict[fx.Node, Any] = dict(zip(self._places, given, strict=True))
        given.clear()
        for update in self.updates:
            values[update.copy] = values[update.argument]
        for node in self._attributes:
            values[node] = operator.attrgetter(node.target)(self.module)
        for item, done in zip(self.sequence, self.frees, strict=True):
            item.run(values)
            for node in done:
                values.pop(node, None)
        of = partial(self.value, of=values.__getitem__)
        return fx.node.map_arg(self.output.args[0], of)


def _mutable(node: fx.Node) -> bool:
    op = node.target
    return isinstance(op, torch._ops.OpOverload) and op._schema.is_mutable


_ENQUEUED = {*MOVES, "arange", "copy_", "cumsum", "gather", "scalar_tensor", "scatter"}
_MASKS = {torch.bool, torch.uint8}
"""Dtypes of indices that are masks, whose true elements the host has to count."""


def _plain(tree: Any, number: Callable[[Any], Any]) -> Any:
    """Returns arguments as plain tuples, lists and dicts, with symbolic numbers evaluated."""
    if isinstance(tree, tuple | list):
        found = [_plain(x, number) for x in tree]
        return found if isinstance(tree, list) else tuple(found)
    if isinstance(tree, dict):
        return {k: _plain(x, number) for k, x in tree.items()}
    return number(tree)


def _imagined(b: ProgramBuilder, like: Any) -> Any:
    if isinstance(like, tuple):
        return tuple(_imagined(b, x) for x in like)
    if not isinstance(like, Like) or like.dtype not in NAMES:
        return like
    memory = Memory(f"n{len(b.inputs)}", INPUT)
    memory.natural = Buffer(memory, like.shape, like.strides, NAMES[like.dtype])
    b.inputs.append(memory)
    return memory.natural


# -- what is done -------------------------------------------------------------------------------
class TorchCall:
    """Call of a node's operator between programs, to ptxgen's function of tensors or to PyTorch."""

    def __init__(self, of: Schedule, node: fx.Node) -> None:
        self.sources = tuple(
            x for x in node.all_input_nodes if isinstance(of.likes[x], Like | tuple)
        )
        self.outputs = (node,)
        self._of, self._node = of, node
        own = of.options.functions or node.target not in serve.functions()
        self._served = serve.functional().get(node.target) if own else None
        if node in of._updated_nodes:  # written in place of its first argument
            self._served = partial(_put, IN_PLACE[node.target])

    @property
    def touched(self) -> tuple[fx.Node, ...]:
        """Nodes whose values the call reads or stores."""
        return *self.sources, *self.outputs

    def run(self, values: dict[fx.Node, Any]) -> None:
        """Runs the call, and stores its result in ``values``."""
        args, how = self._of.arguments(self._node, values.__getitem__)
        values[self._node] = self._result(args, how)

    def _result(self, args: tuple[Any, ...], how: Mapping[str, Any]) -> Any:
        target: Any = self._node.target
        if self._served is not None:
            try:
                return self._served(self._of.options.tier, *args, **how)
            except (NotServed, DtypeError, DeviceError):
                pass
        return target(*args, **how)


def _put(op: Any, tier: str, *args: Any, **how: Any) -> Any:
    return op(*args, **how)


_count = itertools.count()


class Segment:
    """Nodes of a schedule that form one program, which reads ``sources`` and returns ``outputs``.

    ``updated``: pairs of versions of mutated arguments, before and after the program; the program
    writes the second into the memory of the first.
    """

    def __init__(
        self,
        of: Schedule,
        nodes: Sequence[fx.Node],
        sources: tuple[fx.Node, ...],
        outputs: tuple[fx.Node, ...],
        updated: tuple[tuple[fx.Node, fx.Node], ...] = (),
    ) -> None:
        self.of, self.nodes, self.sources, self.outputs = of, nodes, sources, outputs
        self.updated = updated
        self.number = next(_count)
        self.program: Program | None = None
        self.arena: tuple[int, int] | None = None
        self.done: tuple[graph.Done, ...] = ()
        of.report._segments.add(self)

    @cached_property
    def function(self) -> Callable[..., Any]:
        """Function that runs the program on tensors in the order of ``sources``."""
        takes = tuple(Parameter(f"a{i}", ARRAY) for i in range(len(self.sources)))
        op = Op(self.lower, name="graph", takes=takes, public=False, passes=self.passes)
        replay, hooks = self.of.replay, Hooks(autograd=False)
        frame = Frame(
            op,
            aliases=True,
            placed=True,
            hooks=hooks,
            planned=self.planned,
            streams=replay.streams if replay else None,
        )
        return frame.function

    @property
    def touched(self) -> tuple[fx.Node, ...]:
        """Nodes whose values the program reads or stores."""
        return *self.sources, *self.outputs, *(new for _, new in self.updated)

    def run(self, values: dict[fx.Node, Any]) -> None:
        """Runs the program, and stores its results in ``values``."""
        found = self.function(*[values[x] for x in self.sources])
        values.update(zip(self.outputs, found, strict=True))
        values.update((new, values[old]) for old, new in self.updated)

    def planned(self, plan: Plan) -> None:
        """Stores the arena size and the peak of live bytes of ``plan`` for the report."""
        self.arena = plan.nbytes, plan.least

    def passes(self, program: Program) -> Program:
        """Runs the graph passes of the options on ``program``; stores the result for the report,
        and returns it.
        """
        self.program, self.done = graph.apply(program, self.of.options.passes)
        return self.program

    def lower(self, b: ProgramBuilder, /, **given: Buffer) -> tuple[Buffer, ...]:
        """Lowers the nodes to steps; returns the buffers of ``outputs``, in order. ``given``:
        buffers of ``sources``, in order; their keywords are ignored.
        """
        values: dict[fx.Node, Any] = dict(zip(self.sources, given.values(), strict=True))
        owners = {values[n].memory: _root(n) for n in self.sources}
        for node in self.nodes:
            self.of.enter(b, values, node)
        late = {new for _, new in self.updated}
        behind = [n for n in self.nodes if n not in late and _root(n) in late]
        first = [n for n in self.outputs if n not in behind]
        found = {n: self._result_buffer(b, n, values[n], owners) for n in first}
        self._write_updated(b, values, owners)
        if not found.keys() >= set(self.outputs):  # views of what has been written
            for node in behind:
                self.of.enter(b, values, node)
        found |= {
            n: self._result_buffer(b, n, values[n], owners) for n in self.outputs if n in behind
        }
        return tuple(found[n] for n in self.outputs)

    def _write_updated(
        self, b: ProgramBuilder, values: dict[fx.Node, Any], owners: dict[Memory, fx.Node]
    ) -> None:
        """Copies new versions of mutated arguments to the memory of the arguments. ``values``:
        buffers by node; ``owners``: node by memory, as in :meth:`_result_buffer`; both are updated.
        """
        places = {new: values[old] for old, new in self.updated}
        written = {place.memory for place in places.values()}
        found = {new: values[new] for new in places}
        for new, value in found.items():
            if value.memory in written:  # what is to be written, or another's
                found[new] = b.copied(value)
        for new, place in places.items():
            place.memory.written = True
            b.copied(found[new], place)
            values[new], owners[place.memory] = place, new

    def _result_buffer(
        self, b: ProgramBuilder, node: fx.Node, found: Buffer, owners: dict[Memory, fx.Node]
    ) -> Buffer:
        """Returns a result's buffer: ``found``, or a copy if its strides are not PyTorch's, or if
        it shares memory that PyTorch's result does not share. ``owners``: for each memory, the node
        whose views may be in it; the result's is added.
        """
        like, root = self.of.likes[node], _root(node)
        own = owners.setdefault(found.memory, root) is root
        if not own or (found.memory.role != INPUT and like.dense and not like.strides_match(found)):
            found = b.copied(found, like.empty(b))
        return found


def _root(node: fx.Node) -> fx.Node:
    """Returns the node that ``node`` is a view of, or ``node`` itself."""
    while node.target is operator.getitem or packet(node) in VIEWS:
        node = node.args[0]
    return node
