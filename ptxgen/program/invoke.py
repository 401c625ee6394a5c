"""The slow path of a call: reads its arguments, lowers the operation and runs the program.

Every call takes this path the first time. :class:`Frame` joins it to the fast path, the prepared
code of calls that have been seen before (:mod:`ptxgen.program.prepared`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from ptxgen.errors import DtypeError, GradError, OptionError, PtxgenError, ShapeError
from ptxgen.program import autotune, frameworks, prepared, timeline
from ptxgen.program.buffer import Buffer, Memory
from ptxgen.program.build import ProgramBuilder
from ptxgen.program.description import Description
from ptxgen.program.execute import Enqueue, Given, Plan, plan, run, run_eager
from ptxgen.program.launch import covered, remember
from ptxgen.program.parameters import (
    ARRAYS,
    EITHER,
    OPERAND,
    OPTION,
    OPTIONAL,
    STREAM,
    WRITTEN,
    Parameter,
    is_array,
)
from ptxgen.program.registry import OPERATIONS
from ptxgen.program.step import Program, Scalar
from ptxgen.program.streams import Streams
from ptxgen.program.trace import Traced, leaves, traced
from ptxgen.runtime import ArrayView, Call, default_device, framework_of
from ptxgen.runtime.arrays import scalar
from ptxgen.runtime.call import strided


@dataclass
class Arguments:
    """The arguments of a call, sorted by kind.

    ``values``: options in canonical form, and values passed in place of arrays: None, a bool for a
    result's memory, an option for an array. ``stream``: the stream that was passed, or None.
    """

    arrays: dict[str, Any] = field(default_factory=dict)
    """Arrays that are read, by argument name; elements of a sequence as ``name[i]``."""
    several: dict[str, list[str]] = field(default_factory=dict)
    """Names ``name[i]`` of the arrays in each argument that is a sequence."""
    written: dict[str, Any] = field(default_factory=dict)
    """Arrays that are written, by argument name; elements of a tuple as ``name[i]``."""
    groups: dict[str, list[str]] = field(default_factory=dict)
    """Names ``name[i]`` of the arrays in each tuple that is passed for results."""
    numbers: dict[str, Any] = field(default_factory=dict)
    """Python scalars passed for parameters that may also be arrays, by argument name."""
    values: dict[str, Any] = field(default_factory=dict)
    stream: Any = None


def read(op: Description, given: Mapping[str, Any]) -> Arguments:
    """Sorts the arguments of a call by kind. Raises an error that names an invalid argument."""
    found = Arguments()
    operands = [p for p in op.parameters if p.kind == OPERAND]
    plain = numbers_of([given[p.name] for p in operands])
    numbers = [p for p, number in zip(operands, plain, strict=True) if number]
    for p in op.parameters:
        name, value = p.name, given[p.name]
        if p.kind == OPTION:
            found.values[name] = p.read(value)
        elif p.kind == STREAM:
            found.stream = value
        elif p.kind == WRITTEN:
            _written(p, value, found)
        elif p.kind == ARRAYS:
            several = p.items(value)
            found.arrays |= several
            found.several[name] = list(several)
        elif p in numbers:
            found.numbers[name] = value
        elif p.kind == OPERAND and type(value) is complex:
            raise DtypeError(
                f"{name} is {value}, a Python complex number; takes arrays and real numbers: pass "
                "an array without dimensions, or write the number in a pointwise function"
            )
        elif value is None and p.kind == OPTIONAL:
            found.values[name] = None
        elif p.kind == EITHER and not isinstance(value, Traced) and not is_array(value):
            found.values[name] = p.read(value)
        elif value is None:
            raise DtypeError(f"{name} is None; takes an array")
        else:
            found.arrays[name] = value
    if not found.arrays:
        takes = ", ".join(n for n in op.arrays) or "what it reads"
        raise DtypeError(f"{op.name} takes at least one array among {takes}; got none")
    return found


def numbers_of(values: Sequence[Any]) -> list[bool]:
    """Returns for each value whether it is a scalar: a Python number, or torch.compile's symbolic
    one.

    A NumPy scalar that is also a Python number (``numpy.float64``) counts as a scalar if there is
    an array among the values, else as an array.
    """
    found = [
        isinstance(v, int | float | Number) or type(v).__name__ in ("SymInt", "SymFloat", "SymBool")
        for v in values
    ]
    if all(n or scalar(v) for v, n in zip(values, found, strict=True)):
        return [n and not scalar(v) for v, n in zip(values, found, strict=True)]
    return found


def _written(p: Parameter, value: Any, found: Arguments) -> None:
    if value is None or (p.flag and isinstance(value, bool)):
        found.values[p.name] = value
    elif isinstance(value, tuple | list):
        if p.flag or not value:
            takes = "a bool or an array" if p.flag else "an array a result, or None"
            raise OptionError(f"{p.name} is {len(value)} arrays; takes {takes}")
        if any(v is None for v in value):
            if all(v is None for v in value):
                found.values[p.name] = None
                return
            raise OptionError(f"{p.name} has None beside arrays; pass all or none")
        names = [f"{p.name}[{i}]" for i in range(len(value))]
        found.written |= dict(zip(names, value, strict=True))
        found.groups[p.name] = names
    else:
        found.written[p.name] = value


# -- lowering -------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class Lowered:
    """A call as a program. ``single``: whether it returns one array instead of a tuple.

    ``given``: for each argument that may be an array, in order, whether it is written, and its
    memory (None for scalars and absent arguments). ``numbers``: for each argument that is read, its
    value if it is a Python scalar, else None.
    """

    program: Program
    single: bool
    given: tuple[tuple[bool, Memory | None], ...]
    numbers: tuple[Any, ...]


class _Lowering:
    """State of lowering one call: the buffer and the memory of each array argument."""

    def __init__(self, op: Description, arguments: Arguments, builder: ProgramBuilder) -> None:
        self.op, self.arguments, self.builder = op, arguments, builder
        self.buffers: dict[str, Buffer] = {}
        self.given: dict[str, Memory] = {}

    def lowered(self) -> Lowered:
        """Lowers the operation; returns the program, with the memory of each argument."""
        op, given = self.op, self.arguments
        memories: list[tuple[bool, Memory | None]] = []
        numbers: list[Any] = []
        named: dict[str, Any] = dict(given.values)
        for p in op.parameters:
            if p.kind in (OPTION, STREAM):
                continue
            names = given.several.get(p.name) or given.groups.get(p.name)
            if names is not None:
                several = tuple(self.buffers[n] for n in names)
                named[p.name] = several
                memories += [(p.kind == WRITTEN, self.given[n]) for n in names]
                numbers += [None] * len(several)
                continue
            found = self.buffers.get(p.name)
            if p.name in given.numbers:
                named[p.name] = Number(given.numbers[p.name], len(numbers))
            elif found is not None:
                named[p.name] = found
            memories.append((p.kind == WRITTEN, self.given.get(p.name)))
            if p.kind != WRITTEN:
                numbers.append(given.numbers.get(p.name))
        op.check_shapes({n: b.shape for n, b in self.buffers.items()}, given.values)
        try:
            made = op.lower(self.builder, **named)
        except PtxgenError as error:
            error.name_call(op.name)
            raise
        program = self.builder.finish(made)
        if op.passes is not None:
            program = op.passes(program)
        single = not isinstance(made, tuple | list)
        return Lowered(program, single, tuple(memories), tuple(numbers))


@dataclass(frozen=True)
class Number:
    """A Python scalar passed instead of an array; ``position``: index in ``Lowered.numbers``."""

    value: Any
    position: int

    def scalar(self, encode: Callable[[Any], int]) -> Scalar:
        """Returns this scalar as an operand of a launch; ``encode`` packs it into 8 bytes."""
        encode(self.value)  # raises now for a value that it cannot pack
        return Scalar(self.position, encode)


def lower(frame: Frame, arguments: Arguments, call: Call) -> Lowered:
    """Returns the program of a call. Checks the arrays that are written; enqueues nothing.

    If no kernel takes an argument's strides and ``frame.copies`` is set, the program copies strided
    arguments first.
    """
    try:
        return _lowered(frame, arguments, call, copies=False)
    except ShapeError:
        strided = not call.host and any(not v.contiguous for v in call.views.values())
        if not (frame.copies and strided):
            raise
        call.targets.clear()
        return _lowered(frame, arguments, call, copies=True)


def _lowered(frame: Frame, arguments: Arguments, call: Call, *, copies: bool) -> Lowered:
    op = frame.op
    builder = ProgramBuilder(
        OPERATIONS,
        op.name,
        contiguous_results=not call.strided,
        aliases=frame.aliases,
        covered=partial(covered, device=call.device),
    )
    found = _Lowering(op, arguments, builder)
    for name, seen in call.views.items():
        backwards = not call.host and any(s < 0 for s in seen.strides)
        if backwards and not op.backwards and not copies:
            raise ShapeError(
                f"{name} has negative strides {list(seen.strides)}; pass a contiguous copy of "
                f"{name}"
            )
        buffer = builder.input(name, seen.packed if call.host else seen)
        found.given[name] = buffer.memory
        found.buffers[name] = buffer
    if copies:
        found.buffers = {n: builder.contiguous(b) for n, b in found.buffers.items()}
    over = {p.name: p.over for p in op.parameters}
    for name, obj in arguments.written.items():
        target = call.target(obj, name, over.get(name.partition("[")[0], ()))
        same = [n for n, v in call.views.items() if target.coincides(v)]
        if same and not call.host:
            memory = found.given[name] = found.given[same[0]]
            assert memory.natural is not None, "arguments are laid"
            memory.written, found.buffers[name] = True, memory.natural
        else:
            layout = target.packed if call.host else target
            found.buffers[name] = builder.input(name, layout, written=True)
            found.given[name] = found.buffers[name].memory
    return found.lowered()


# -- the frame ------------------------------------------------------------------------------------
class Frame:
    """The call path of operation ``op``, from arguments to results; :attr:`function` is what
    callers call.

    ``copies``: whether arguments whose strides no kernel takes are copied first. ``placed``:
    whether :attr:`function` takes all arguments by position, each None if omitted. ``given``: the
    parameters of :attr:`function`, if not those of ``op``. ``memo``: the cache of prepared calls.
    ``aliases``: whether results may be views of arguments. ``autograd``: the function for tensors
    that autograd records, instead of the operation's. ``hooks``: additions to the source of the
    fast path. ``slow_path``: the function for calls that are not in the cache; it takes this frame,
    the memo, the call's key and all arguments. ``planned``: a callback that receives each new plan.
    ``streams``: enqueues the plans, on several streams inside :meth:`Streams.open`.
    """

    def __init__(
        self,
        op: Description,
        *,
        copies: bool = False,
        aliases: bool = False,
        placed: bool = False,
        given: Sequence[Parameter] | None = None,
        memo: prepared.Memo | None = None,
        autograd: Callable[..., Any] | None = None,
        hooks: prepared.Hooks = prepared.PLAIN,
        slow_path: Callable[..., Any] | None = None,
        planned: Callable[[Plan], None] | None = None,
        streams: Streams | None = None,
    ) -> None:
        self.op, self.copies, self.aliases = op, copies, aliases
        self.planned, self.streams = planned, streams
        self._autograd = autograd
        self.names = tuple(p.name for p in op.parameters)
        self.memo: prepared.Memo = {} if memo is None else memo
        self.writing: prepared.Memo = {}
        self.others: dict[str, Callable[..., Any]] = {}
        if aliases:
            hooks = replace(hooks, arrays=True)
        followed = (
            partial(slow_path, self, self.memo) if slow_path else partial(self.slow_path, self.memo)
        )
        taken = op.parameters if given is None else given
        if placed:
            taken = [replace(p, default=None, keyword=False) for p in taken]
        self.function = prepared.fast_path(
            op.name,
            taken,
            followed,
            self.memo.get,
            hooks=hooks,
            into=self._into(),
            autograd=None if slow_path else self.recorded,
        )
        if hooks is prepared.PLAIN and slow_path is None:
            timeline.record(self.function)

    @property
    def autograd(self) -> Callable[..., Any] | None:
        """The function that is called for tensors that autograd records, or None."""
        return self._autograd or self.op.autograd

    def _into(self) -> Callable[..., Any]:
        """Returns the function for calls that pass ``out`` or a stream: their own fast path, or the
        slow path for operations that have none.
        """
        kinds = [p.kind for p in self.op.parameters]
        if WRITTEN not in kinds or ARRAYS in kinds:
            return partial(self.slow_path, None, None)
        followed = partial(self.slow_path, self.writing)
        where = frameworks.current_torch, frameworks.resolve
        return prepared.writing_fast_path(
            self.op.name, self.op.parameters, followed, self.writing, *where
        )

    def recorded(self, *args: Any) -> Any:
        """Runs a call whose tensors need gradients: calls the function of :attr:`autograd`, or
        raises GradError if there is none.
        """
        if self.autograd is None:
            return self.follow(None, None, *args)
        return self.autograd(self.op, dict(zip(self.names, args, strict=True)))

    def slow_path(self, memo: prepared.Memo | None, key: Any, *args: Any) -> Any:
        """Runs a call that is not in the cache ``memo``. Arrays of CuPy or NumPy take the fast path
        of their framework, all others are lowered and launched (:meth:`follow`). ``key``: the
        call's key, None if it has none; ``args``: all arguments, in order.
        """
        framework = _framework(args)
        if framework in ("cupy", "numpy"):
            found = self.others.get(framework) or self._framework_path(framework)
            return found(*args)
        return self.follow(memo, key, *args)

    def _framework_path(self, framework: str) -> Callable[..., Any]:
        """Generates the fast path for arrays of ``framework``, "cupy" or "numpy", and keeps it in
        ``others`` for later calls.
        """
        memo: prepared.Memo = {}
        placed = [replace(p, default=None, keyword=False) for p in self.op.parameters]
        dialect = prepared.DIALECTS[framework]
        made = prepared.fast_path(
            self.op.name,
            placed,
            partial(self.follow, memo),
            self._host_code if dialect.by_array else memo.get,
            dialect,
            into=partial(self.follow, None, None),
        )
        self.others[framework] = made
        timeline.record(made)
        return made

    def _host_code(self, key: Any) -> Any:
        """Returns the prepared code of a call on host arrays, from the default device's cache, or
        None.
        """
        return default_device().calls.get((self, key))

    def follow(self, memo: prepared.Memo | None, key: Any, *args: Any) -> Any:
        """Runs a call without prepared code: reads, lowers, plans and launches it (:func:`invoke`).
        ``args``: all arguments, in order; ``memo``, ``key``: where its prepared code is cached.
        """
        return invoke(self, dict(zip(self.names, args, strict=True)), memo, key)


def _framework(args: Iterable[Any]) -> str:
    """Returns the framework of the first array; "other" if there is none."""
    for each in args:
        found = _framework(each) if isinstance(each, tuple | list) else framework_of(each)
        if found != "other" and not (found == "numpy" and isinstance(each, int | float)):
            return found
    return "other"


def invoke(
    frame: Frame, given: Mapping[str, Any], memo: prepared.Memo | None = None, key: Any = None
) -> Any:
    """Runs a call without prepared code: reads its arguments, lowers the operation, plans the
    program and launches it. Calls with traced arrays, with nodes of a formula, or with tensors that
    autograd records are passed on instead.

    ``given``: all arguments by name. Prepared code for such calls enters ``memo`` under ``key``.
    """
    op = frame.op
    if any(isinstance(x, Traced) for x in leaves(given.values())):
        return traced(op, given)
    value = op.of_values(given)
    if value is not NotImplemented:
        return value
    arguments = read(op, given)
    if (
        frame.autograd is not None
        and not arguments.written
        and records_gradient(arguments.arrays.values())
    ):
        return frame.autograd(op, given)
    call = called(arguments)
    lowered = lower(frame, arguments, call)
    checked = op.checks_values(arguments.arrays) and (call.host or arguments.values.get("check"))
    if checked and op.checks is not None:
        op.checks(arguments.arrays, arguments.values)
    most = frame.streams.most if frame.streams else 1
    made = None if autotune.enabled() else plan(lowered.program, call.device, most)
    enqueue = frame.streams.enqueuing(made, call.device) if made and frame.streams else None
    call.stage()
    host = _staged(call, lowered.program)
    views = {**call.views, **call.targets, **host}
    pointers = [views[m.name].ptr for m in lowered.program.inputs]
    where = Given(call, pointers, lowered.numbers)
    if made is None:
        results, made = run_eager(lowered.program, where)
    else:
        results = run(made, where, enqueue)
    if frame.planned is not None and made is not None:
        frame.planned(made)
    found = _outputs(call, lowered, results, _owners(arguments, lowered), host)
    call.hold()
    if checked and op.verifies is not None:
        made_of = found if isinstance(found, tuple) else (found,)
        op.verifies(arguments.arrays, arguments.values, made_of)
    if memo is not None and made is not None and not checked and call.device.can_run:
        _cache_call(frame, memo, key, call, lowered, made, arguments, enqueue)
    return found


def called(arguments: Arguments) -> Call:
    """Returns the :class:`Call` with the arrays' addresses and layouts, and the stream. Raises
    GradError for tensors that require gradients.
    """
    refuse_gradients({**arguments.arrays, **arguments.written})
    return Call(arguments.arrays, arguments.stream)


def _staged(call: Call, program: Program) -> dict[str, ArrayView]:
    """Uploads the arrays of a call that are in host memory. Returns the device copies by name,
    those that are only written uninitialised; nothing for arrays on a device.
    """
    if not call.host:
        return {}
    read = {b.memory for step in program.steps for b in step.reads()}
    found = {}
    for memory in program.inputs:
        target = call.targets.get(memory.name)
        if target is None:
            found[memory.name] = call.upload(call.views[memory.name])
        elif memory in read:
            found[memory.name] = call.upload(target)
        else:
            found[memory.name] = call.fresh(target)
    return found


def _owners(arguments: Arguments, lowered: Lowered) -> dict[str, Any]:
    """Returns the caller's arrays by memory name. Of an argument that is also passed for a result,
    this is the array that was passed for the result.
    """
    found = {**arguments.arrays, **arguments.written}
    written = iter(arguments.written.values())
    for is_written, memory in lowered.given:
        if is_written and memory is not None:
            found[memory.name] = next(written)
    return found


def _outputs(
    call: Call,
    lowered: Lowered,
    results: tuple[Any, ...],
    own: Mapping[str, Any],
    host: Mapping[str, ArrayView],
) -> Any:
    """Returns the caller's results, after downloading to host arrays. An output in memory that the
    caller passed becomes that array.

    ``results``: outputs of :func:`run`; ``own``: the caller's arrays, and ``host``: device copies
    of those in host memory, both by name.
    """
    if host:
        written = {m.name for m in lowered.program.inputs if m.written}
        updated = ((n, x) for n, x in call.views.items() if n in written)
        for name, target in (*updated, *call.targets.items()):
            if name in host:
                call.download(host[name], target)
    handed = [_caller_view(own, r, call.host) if isinstance(r, Buffer) else r for r in results]
    return handed[0] if lowered.single else tuple(handed)


def _caller_view(own: Mapping[str, Any], result: Buffer, host: bool) -> Any:
    """Returns an output in the caller's own memory: the array that the caller passed, or a view of
    it with the layout of ``result``. ``own``: the caller's arrays by memory name; ``host``: whether
    they are in host memory.
    """
    base = own[result.memory.name]
    if result.whole:
        return base
    if host and framework_of(base) == "torch":
        base = base.contiguous()
    return strided(base, result.shape, result.strides, result.offset // result.itemsize)


def records_gradient(given: Iterable[Any]) -> bool:
    """Whether autograd records one of the tensors, or one is of a subclass (fake, traced ...)."""
    torch = sys.modules.get("torch")
    if torch is None:
        return False
    tensors = [x for x in given if isinstance(x, torch.Tensor | torch.fx.Proxy)]
    if any(type(x) not in (torch.Tensor, torch.nn.Parameter) for x in tensors):
        return True
    return torch.is_grad_enabled() and any(x.requires_grad for x in tensors)


def refuse_gradients(given: Mapping[str, Any]) -> None:
    """Raises GradError for tensors that require gradients, which would silently be missing."""
    for name, obj in given.items():
        if framework_of(obj) == "torch" and obj.requires_grad:
            if not sys.modules["torch"].is_grad_enabled():
                return
            raise GradError(
                f"{name} requires grad, but ptxgen's operations record nothing for autograd; call "
                f"the function of this name in ptxgen.torch, which does, or call this one under "
                f"torch.no_grad(), or pass {name}.detach()"
            )


def _cache_call(
    frame: Frame,
    memo: prepared.Memo,
    key: Any,
    call: Call,
    lowered: Lowered,
    made: Plan,
    arguments: Arguments,
    enqueue: Enqueue | None,
) -> None:
    """Adds prepared code of plan ``made`` to the cache ``memo`` under ``key``, for calls like this
    one, if all arrays are of plain types (no subclasses). Code for host arrays enters the device's
    cache instead. ``enqueue``: as in :func:`ptxgen.program.prepared.code`.

    The first call with arrays of a type has no key. It registers the type, so that later calls do.
    """
    dialect = prepared.DIALECTS.get(call.lead.framework)
    views = (*call.views.values(), *call.targets.values())
    if dialect is None or (call.host != dialect.by_array):
        return
    owners = (*arguments.arrays.values(), *arguments.written.values())
    if not all([dialect.seen(type(x)) for x in owners]) or key is None:
        return
    if dialect.by_array:
        if not arguments.written and not frame.aliases:
            remember(call.device.calls, (frame, key), partial(_run_cached, made, lowered))
        return
    maker, memories = frameworks.maker(call), [m for _, m in lowered.given]
    torch = dialect is prepared.TORCH
    negated = torch and any(map(prepared.may_be_lazy, views))
    single = lowered.single
    if call.targets or arguments.stream is not None:
        written = [m for w, m in lowered.given if w]
        if torch and not frame.aliases:
            found = prepared.code(made, maker, memories, written, single=single, streamed=True)
            by_name = {v: seen.reach for v, seen in (*call.views.items(), *call.targets.items())}
            reach = tuple(0 if m is None else by_name[m.name] for m in memories)
            allocates = bool(made.nbytes or lowered.program.results)
            into = prepared.Into(found, reach, allocates, call.lead.index, negated)
            remember(memo, key, into)
        return
    read_only = [m for w, m in lowered.given if not w]
    handed = read_only if frame.aliases else ()
    found = prepared.code(made, maker, read_only, handed, single=single, enqueue=enqueue)
    remember(memo, key, prepared.NegationChecked(found) if negated else found)


def _run_cached(made: Plan, lowered: Lowered, *arrays: Any) -> Any:
    """Runs a cached call on host arrays: uploads them, runs the plan, and downloads results."""
    memories = [m for written, m in lowered.given if not written]
    pairs = list(zip(memories, arrays, strict=True))
    given = {m.name: x for m, x in pairs if m is not None}
    call = Call(given)
    host = _staged(call, lowered.program)
    pointers = [host[m.name].ptr for m in lowered.program.inputs]
    numbers = tuple(None if m is not None else x for m, x in pairs)
    return _outputs(call, lowered, run(made, Given(call, pointers, numbers)), given, host)
