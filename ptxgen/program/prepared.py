"""Prepared calls: generated straight-line code that repeats calls seen before.

:func:`fast_path` generates the function that users call. It looks up each call by its key (shapes,
strides, dtypes, device and low address bits of all arrays, and all options), and runs the code that
:func:`code` generated from the plan of the first such call: allocate, launch, return. A call whose
key is unknown takes the slow path (:mod:`ptxgen.program.invoke`), which checks, lowers and
launches, and caches its plan here. This module changes no result: to understand a call, read the
slow path.
"""

from __future__ import annotations

import functools
import sys
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ptxgen.numerics.dtype import PARTS
from ptxgen.numerics.option import UNSTATED, Flag
from ptxgen.program.buffer import INPUT, Buffer, Memory
from ptxgen.program.execute import Enqueue, Place, Plan, Source
from ptxgen.program.parameters import (
    ARRAY,
    ARRAYS,
    EITHER,
    NEEDED,
    OPERAND,
    OPTION,
    OPTIONAL,
    STREAM,
    WRITTEN,
    Parameter,
)
from ptxgen.program.step import Scalar
from ptxgen.runtime.strided import Ints, Strided

STRAIGHT_MAX = 64
"""Most launches that generated code writes out one by one; for more it loops over a list."""
Code = Callable[..., Any]


# -- frameworks -------------------------------------------------------------------------------
@dataclass
class Dialect:
    """Source expressions by which generated code reads arrays of one ``framework``.

    ``types``: plain array types that have been seen; subclasses are excluded, as they may behave
    differently. ``layout``: expression of shape, strides, dtype and device, with ``{0}`` for the
    array's name; ``pointer``: expression of its address. ``by_array``: whether prepared code takes
    arrays, not pointers, because they are in host memory and must be copied to the device first.
    """

    framework: str
    layout: str
    pointer: str
    by_array: bool = False
    types: set[type] = field(default_factory=set)

    def seen(self, kind: type) -> bool:
        """Whether ``kind`` is the framework's plain array type, no subclass; if so, adds it to
        ``types``.
        """
        plain = (kind.__module__, kind.__name__) in _PLAIN[self.framework]
        if plain:
            self.types.add(kind)
        return plain


_PLAIN: Mapping[str, set[tuple[str, str]]] = {
    "torch": {("torch", "Tensor"), ("torch.nn.parameter", "Parameter")},
    "cupy": {("cupy", "ndarray"), ("cupy._core.core", "ndarray")},
    "numpy": {("numpy", "ndarray")},
}
TORCH = Dialect("torch", "{0}.shape, {0}.stride(), {0}.dtype, {0}.get_device()", "{0}.data_ptr()")
CUPY = Dialect("cupy", "{0}.shape, {0}.strides, {0}.dtype, {0}.data.device_id", "{0}.data.ptr")
NUMPY = Dialect("numpy", "{0}.shape, {0}.strides, {0}.dtype", "{0}", by_array=True)
DIALECTS = {d.framework: d for d in (TORCH, CUPY, NUMPY)}

Memo = dict[tuple[Any, ...], Any]
"""Cache of prepared calls: code, :class:`NegationChecked` or :class:`Into` by the call's key."""


class NegationChecked(NamedTuple):
    """Prepared code of a call that runs only if none of its tensors is lazily negated (is_neg) or
    conjugated (is_conj).
    """

    code: Code

    def of(self, *arrays: Any) -> Code | None:
        """Returns the code, or None if one of these tensors is lazily negated or conjugated."""
        return None if any(map(is_lazy, arrays)) else self.code


def is_lazy(x: Any) -> bool:
    """Whether a PyTorch tensor is lazily negated or conjugated: its memory has other values. False
    for None.
    """
    return x is not None and bool(x.is_neg() or x.is_conj())


def may_be_lazy(x: Strided) -> bool:
    """Whether a tensor with this dtype, shape and strides may be lazily negated or conjugated. Only
    complex tensors and their imaginary parts are, and these have even strides, so a stride of 1
    rules it out.
    """
    pairs = zip(x.shape, x.strides, strict=True)
    return x.dtype in PARTS or all(stride != 1 or size == 1 for size, stride in pairs)


class Into(NamedTuple):
    """Prepared code of a call with ``out`` or a stream, and what is checked before it is used.

    ``reach``: bytes from the lowest to the highest byte of each array (0 if absent), in the order
    of the parameters, by which overlaps are found; ``allocates``: whether the code allocates
    memory, so that calls which pass a stream take the slow path; ``gpu``: index of the GPU;
    ``negated``: whether the tensors may be lazily negated or conjugated, which must be checked.
    """

    code: Code
    reach: tuple[int, ...]
    allocates: bool
    gpu: int
    negated: bool


# -- the code of a call -----------------------------------------------------------------------
class Maker(NamedTuple):
    """The allocator of a framework on one device, and ``current``, which returns the handle of its
    current stream.
    """

    empty: Callable[[Ints, Ints, str], Callable[[], Any]]
    """Function of a shape, strides in elements and a dtype; returns a function that allocates such
    an array."""
    pointer: str
    """Source expression of an array's address, with ``{0}`` for the array's name."""
    current: Callable[[], int]
    view: Callable[[Any, Ints, Ints, int], Any]
    """Returns a view of a contiguous array, given shape, strides and offset in elements."""


def code(
    plan: Plan,
    maker: Maker,
    pointers: Sequence[Memory | None],
    arrays: Sequence[Memory | None] = (),
    *,
    single: bool = True,
    streamed: bool = False,
    enqueue: Enqueue | None = None,
) -> Code:
    """Generates the prepared code of a plan: a function that allocates the results and the arena,
    launches, and returns the outputs.

    ``maker``: the allocator of the arrays' framework. ``pointers``: the memory of each pointer
    argument, in order; None for scalars and for absent arguments. ``arrays``: the memories whose
    arrays follow the pointers as arguments, since the code returns them or views of them.
    ``single``: whether one array is returned instead of a tuple. ``streamed``: whether the first
    argument is the stream; else the current one is used. ``enqueue``: a function that enqueues the
    launches; without it the code contains them.
    """
    program = plan.program
    inputs = len(program.inputs)
    sole = _sole_outputs(program.outputs)
    names: dict[str, Any] = {"view": maker.view}
    arguments = [f"a{i}" for i in range(len(pointers))]
    given = {m: f"w{i}" for i, m in enumerate(arrays) if m is not None}
    slots = [arguments[list(pointers).index(m)] for m in program.inputs]
    slots += [f"p{i}" for i in range(inputs, inputs + len(program.results) + 1)]
    heads = [*(["stream"] if streamed else []), *arguments, *_named("w", len(arrays))]
    lines = [f"def code({', '.join(heads)}):"]
    if not streamed:
        names["current"] = maker.current
        lines.append("    stream = current()")
    for i, memory in enumerate(program.results, inputs):
        buffer = sole.get(memory)
        buffer = buffer or memory.natural
        assert buffer is not None, "all memory of programs is laid"
        shape, strides, dtype = buffer.shape, buffer.strides, buffer.dtype
        names[f"empty{i}"] = maker.empty(shape, strides, dtype)
        lines.append(f"    t{i} = empty{i}(); p{i} = {maker.pointer.format(f't{i}')}")
    bottom = inputs + len(program.results)
    if plan.nbytes:
        names[f"empty{bottom}"] = maker.empty((plan.nbytes,), (1,), "uint8")
        lines.append(f"    t{bottom} = empty{bottom}()")
        lines.append(f"    p{bottom} = {maker.pointer.format(f't{bottom}')}")
    where = f"({', '.join(slots[: bottom + bool(plan.nbytes)])},)"
    if enqueue is not None:
        names["enqueue"] = enqueue
        lines.append(f"    enqueue(stream, {where})")
    elif len(plan.launches) <= STRAIGHT_MAX:
        for i, (fire, sources) in enumerate(plan.launches):
            names[f"launch{i}"] = fire
            terms = [_term(s, f"{i}_{j}", slots, names) for j, s in enumerate(sources)]
            lines.append(f"    launch{i}({', '.join(('stream', *terms))})")
    else:
        names["launches"] = [_table(fire, sources) for fire, sources in plan.launches]
        lines.append(f"    where = {where}")
        lines.append("    for launch, slots, offsets in launches:")
        lines.append("        launch(stream, *[where[s] + o for s, o in zip(slots, offsets)])")
    returned = []
    for output in program.outputs:
        if output is None:
            returned.append("None")
        elif output.memory.role == INPUT:
            returned.append(_output_source(given[output.memory], output, output.whole))
        else:
            name = f"t{inputs + program.results.index(output.memory)}"
            returned.append(_output_source(name, output, output.memory in sole or output.whole))
    listed = ", ".join(returned)
    lines.append(f"    return {listed}" if single else f"    return ({listed}{',' * bool(listed)})")
    text = "\n".join(lines) + "\n"
    exec(_compiled(text, "<prepared call>"), names)
    made: Code = names["code"]
    made.__dict__["source"] = text
    return made


def _output_source(name: str, output: Buffer, whole: bool) -> str:
    """Returns the source expression of an output: ``name``, the array in its memory, if it is all
    of that (``whole``), else a view of it.
    """
    layout = output.shape, output.strides, output.offset // output.itemsize
    return name if whole else f"view({name}, {', '.join(map(repr, layout))})"


def _sole_outputs(outputs: Sequence[Buffer | None]) -> dict[Any, Buffer]:
    """Returns the outputs that fill their memory and share it with no other output, by memory. They
    are allocated with their own shape and strides, so that no view is needed.
    """
    found: dict[Any, list[Buffer]] = {}
    for output in outputs:
        if output is not None and output.memory.role != INPUT:
            found.setdefault(output.memory, []).append(output)
    sole = {}
    for memory, buffers in found.items():
        (first, *others) = buffers
        low, high = first.span()
        if not others and low == first.offset == 0 and high == first.nbytes == memory.nbytes:
            sole[memory] = first
    return sole


def _named(letter: str, count: int) -> list[str]:
    return [f"{letter}{i}" for i in range(count)]


def _term(source: Source, number: str, slots: Sequence[str], names: dict[str, Any]) -> str:
    if isinstance(source, int):
        return str(source)
    if isinstance(source, Place):
        slot = slots[source.slot]
        return f"{slot} + {source.offset}" if source.offset else slot
    names[f"encode{number}"] = source.encode
    return f"encode{number}(a{source.number})"


def _table(fire: Code, sources: Sequence[Source]) -> tuple[Code, tuple[int, ...], tuple[int, ...]]:
    """Returns (fire, slots, offsets) of a launch, for generated code that loops over launches.
    Pointer i is ``where[slots[i]] + offsets[i]``, with the addresses ``where`` of all slots; a
    constant pointer has a :class:`_Literal` as its offset.
    """
    slots: list[int] = []
    offsets: list[int] = []
    for source in sources:
        assert not isinstance(source, Scalar), "numbers of calls are of single launches"
        if isinstance(source, int):
            slots.append(0)
            offsets.append(_Literal(source))
        else:
            slots.append(source.slot)
            offsets.append(source.offset)
    return fire, tuple(slots), tuple(offsets)


class _Literal(int):
    """An integer that absorbs addition: ``x + _Literal(n) == n``, for constants among pointers."""

    def __radd__(self, other: Any) -> int:
        return int(self)


@functools.lru_cache(maxsize=4096)
def _compiled(text: str, name: str) -> Any:
    return compile(text, name, "exec")


# -- the function that is called ------------------------------------------------------------------
@dataclass
class Hooks:
    """Source lines and options that are added to a generated fast path.

    ``before``: lines at its beginning; ``checks``: conditions of the fast path: a call that fails
    one takes the slow path; ``keyed``: expressions that are appended to the key of cached code;
    ``hit``: lines before cached code is run; ``names``: values of the names in these lines, each
    written with a ``$``. ``autograd``: whether the fast path looks for tensors that require
    gradients; ``recorded``: called with all arguments, in order, when it finds one. ``arrays``:
    whether cached code is passed the arrays, too, after their pointers. ``returns_code``: whether
    the fast path returns the pair (code, results), with None for the code if the call took the slow
    path.
    """

    before: Sequence[str] = ()
    checks: Sequence[str] = ()
    keyed: Sequence[str] = ()
    hit: Sequence[str] = ()
    names: Mapping[str, Any] = field(default_factory=dict)
    autograd: bool = True
    recorded: Callable[..., Any] | None = None
    arrays: bool = False
    returns_code: bool = False


PLAIN = Hooks()


def fast_path(
    name: str,
    parameters: Sequence[Parameter],
    slow_path: Callable[..., Any],
    find: Callable[[Any], Any],
    dialect: Dialect = TORCH,
    hooks: Hooks = PLAIN,
    into: Callable[..., Any] | None = None,
    autograd: Callable[..., Any] | None = None,
) -> Callable[..., Any]:
    """Generates the function that users call, which runs the prepared code of a call.

    ``find`` returns the code of a key, or None. ``slow_path`` takes the key (None for a call that
    has none) and all arguments in order. ``dialect``: expressions that read the arrays; ``hooks``:
    additions to the source. ``into``: the function for calls with ``out`` or a stream;
    ``autograd``: the function for calls that need gradients. Both take all arguments in order.
    """
    namespace: dict[str, Any] = {
        **_COMMON_NAMES,
        "$tensors": dialect.types,
        "$find": find,
        "$slow_path": slow_path,
        "$into": into,
        "$recorded": hooks.recorded or autograd or functools.partial(slow_path, None),
        **hooks.names,
    }
    heads, passed = [], []
    for i, p in enumerate(parameters):
        if p.keyword and "*" not in heads:
            heads.append("*")
        namespace[f"$default{i}"] = UNSTATED if p.stated else p.default
        heads.append(p.name if p.default is NEEDED else f"{p.name}=$default{i}")
        passed.append(p.name)
    body = _Body(parameters, dialect)
    arguments = ", ".join(passed)
    lines = [f"def $call({', '.join(heads)}):"]
    lines += [f"    {line}" for line in hooks.before]
    redirected = [p.name for p in parameters if p.kind == STREAM or (p.kind == WRITTEN)]
    if into is not None and redirected:
        plain = [
            f"$type({p.name}) in $flags" if p.flag else f"{p.name} is None"
            for p in parameters
            if p.kind in (STREAM, WRITTEN)
        ]
        lines += [f"    if not ({' and '.join(plain)}):", f"        return $into({arguments})"]
    checks = [*hooks.checks, *body.checks] or ["True"]
    key = ", ".join((*body.keys, *hooks.keyed))
    lines.append(f"    if {' and '.join(checks)}:")
    if hooks.autograd and dialect is TORCH and body.grads:
        lines.append(f"        if ({' or '.join(body.grads)}) and $recording():")
        lines.append(f"            return $recorded({arguments})")
    passed_on = [*body.pointers, *(body.arrays if hooks.arrays else ())]
    code, none = ("$code, ", "None, ") if hooks.returns_code else ("", "")
    lines += [
        "        try:",
        *(f"            {line}" for line in body.lines),
        f"            $key = ({key},)",
        "            $code = $find($key)",
        "        except $UNKNOWN:  # no memory, no hash, no number",
        "            $key = $code = None",
        "        if $type($code) is $negation_checked:",
        f"            $code = $code.of({', '.join(body.arrays)})",
        "        if $code is not None:",
        *(f"            {line}" for line in hooks.hit),
        f"            return {code}$code({', '.join(passed_on)})",
        f"        return {none}$slow_path($key, {arguments})",
        f"    return {none}$slow_path(None, {arguments})",
    ]
    if any(p.stated for p in parameters):
        for slow in {"$into", "$slow_path", "$recorded", "$shown"} & namespace.keys():
            namespace[slow] = _stating(name, parameters, namespace, namespace[slow])
    made = namespace["$call"] = _compiled_function(
        name, parameters, lines, f"<prepared {name}>", namespace
    )
    return made


def _stating(
    name: str, parameters: Sequence[Parameter], namespace: Mapping[str, Any], slow: Any
) -> Any:
    """Wraps ``slow``, a function to which the fast path hands calls over, for calls that omit an
    argument which callers should pass (:attr:`Parameter.stated`).

    Such a call warns, and takes the fast path (``$call`` of ``namespace``) again with the assumed
    value. No code is cached for the call as it was made, so it warns each time, and calls that pass
    the argument pay nothing. Returns None if ``slow`` is None.
    """

    def stating(*args: Any) -> Any:
        if all(x is not UNSTATED for x in args):
            return slow(*args)
        found = zip(parameters, args[-len(parameters) :], strict=True)
        named = {p.name: p.absent(name) if x is UNSTATED else x for p, x in found}
        return namespace["$call"](**named)

    return None if slow is None else stating


def _compiled_function(
    name: str,
    parameters: Sequence[Parameter],
    lines: Sequence[str],
    file: str,
    namespace: Mapping[str, Any],
) -> Code:
    """Compiles the function ``$call`` that these source lines define, and returns it under the name
    ``name``, which may be any text. ``file``: its file name in tracebacks; ``namespace``: values of
    its global names.

    Users choose the names of parameters. All other names in the lines, and the keys of
    ``namespace``, begin with ``$``, which becomes a prefix that no parameter begins with.
    """
    prefix = _prefix(parameters)
    scope = {n.replace("$", prefix): x for n, x in namespace.items()}
    text = "\n".join(lines).replace("$", prefix) + "\n"
    exec(_compiled(text, file), scope)
    made: Code = scope[f"{prefix}call"]
    made.__name__ = made.__qualname__ = name
    made.__dict__["source"], made.__dict__["prefix"] = text, prefix
    return made


def _prefix(parameters: Sequence[Parameter]) -> str:
    """Returns the prefix that keeps generated names apart from those of parameters: underscores,
    one more than any parameter's name begins with.
    """
    names = (unicodedata.normalize("NFKC", p.name) for p in parameters)  # as Python reads them
    return "_" * (1 + max((len(n) - len(n.lstrip("_")) for n in names), default=0))


def writing_fast_path(
    name: str,
    parameters: Sequence[Parameter],
    slow_path: Callable[..., Any],
    memo: Memo,
    current: Callable[[int], int],
    resolve: Callable[..., int],
) -> Callable[..., Any]:
    """Generates the fast path of calls with PyTorch's tensors and ``out`` or a stream. Each call
    checks by addresses that written memory overlaps no other argument.

    ``memo``: prepared code (:class:`Into`) by key; ``slow_path``: as in :func:`fast_path`;
    ``current``: returns the handle of the current stream of a GPU; ``resolve``: takes the stream
    that the caller passed and the tensors, and returns the stream's handle.
    """
    body = _Body(parameters, TORCH, into=True)
    arguments = ", ".join(p.name for p in parameters)
    stream = next((p.name for p in parameters if p.kind == STREAM), None)
    apart = []
    of = [p for p in parameters if p.kind in (ARRAY, OPTIONAL, EITHER, OPERAND, WRITTEN)]
    at = {p.name: ("$l_" if p.kind == OPERAND else "$p_") + p.name for p in of}
    for i, p in enumerate(of):
        if p.kind != WRITTEN:
            continue
        for j, other in enumerate(of):
            if other.kind == WRITTEN and j >= i:
                continue
            a, b = at[p.name], at[other.name]
            conditions = [f"{a} + $reach[{i}] <= {b}", f"{b} + $reach[{j}] <= {a}", f"not {a}"]
            conditions += [f"{a} == {b}"] if other.name in p.over else []
            apart.append(f"({' or '.join([*conditions, f'not {b}'])})")
    arrays = f"{', '.join(body.arrays)},"
    lines = [
        f"def $call({arguments}):",
        "    $key = None",
        f"    if {' and '.join(body.checks or ['True'])}:",
        "        try:",
        *(f"            {line}" for line in body.lines),
        f"            $key = ({', '.join(body.keys)},)",
        "            $found = $find($key)",
        "        except $UNKNOWN:",
        "            $key = $found = None",
        f"        if $found is not None and not (({' or '.join(body.grads)}) and $recording()):",
        "            $code, $reach, $allocates, $index, $negated = $found",
        f"            if $negated and $any([$is_lazy($x) for $x in ({arrays})]):",
        f"                return $slow_path(None, {arguments})",
        f"            if ({stream} is None or not $allocates) and {' and '.join(apart) or 'True'}:",
        f"                $at = $current($index) if {stream} is None else "
        f"$resolve({stream}, ({arrays}))",
        f"                return $code({', '.join(('$at', *body.pointers, *body.written))})",
        f"    return $slow_path($key, {arguments})",
    ]
    namespace: dict[str, Any] = {
        **_COMMON_NAMES,
        "$tensors": TORCH.types,
        "$find": memo.get,
        "$slow_path": slow_path,
        "$current": current,
        "$resolve": resolve,
    }
    return _compiled_function(name, parameters, lines, f"<prepared {name}, into memory>", namespace)


class _Body:
    """Generated source that reads the arguments of a call and computes its key.

    ``checks``: conditions without which a call has no key; ``lines``: statements that read
    addresses and layouts; ``keys``: expressions of the key's parts; ``pointers``, ``arrays``:
    expressions of the addresses and of the arrays, which prepared code takes; ``written``: names of
    arrays for results; ``grads``: conditions that a tensor requires gradients. ``into``: whether
    calls may have ``out`` or a stream.
    """

    def __init__(
        self, parameters: Sequence[Parameter], dialect: Dialect, into: bool = False
    ) -> None:
        self.checks: list[str] = []
        self.written: list[str] = []
        self.lines: list[str] = []
        self.keys: list[str] = []
        self.pointers: list[str] = []
        self.grads: list[str] = []
        self.arrays: list[str] = []
        low: list[str] = []
        layout, key = dialect.layout, f"({dialect.layout})"
        for p in parameters:
            n = p.name
            pointer, whole = dialect.pointer.format(n), key.format(n)
            if p.kind == ARRAY:
                self.checks.append(f"$type({n}) in $tensors")
                self.lines.append(f"$p_{n} = {pointer}")
                self.keys.append(layout.format(n))
                self.grads.append(f"{n}.requires_grad")
                low.append(n)
            elif p.kind in (OPTIONAL, EITHER):
                none = "None" if dialect.by_array else "0"
                self.lines.append(f"if {n} is None: $p_{n} = {none}; $k_{n} = None")
                self.lines.append(f"elif $type({n}) in $tensors:")
                self.lines.append(f"    $p_{n} = {pointer}; $k_{n} = {whole}")
                self.lines.append(
                    f"else: $p_{n} = {none}; $k_{n} = $numbers[$type({n})], {_NUMBER.format(n)}"
                )
                self.keys.append(f"$k_{n}")
                is_tensor = f"{n} is not None and $type({n}) in $tensors"
                self.grads.append(f"({is_tensor} and {n}.requires_grad)")
                low.append(n)
            elif p.kind == OPERAND:
                self.lines.append(f"if $type({n}) in $tensors:")
                where = "1" if dialect.by_array else f"$p_{n}"
                self.lines.append(f"    $p_{n} = {pointer}; $l_{n} = {where}; $k_{n} = {whole}")
                self.lines.append(f"else: $p_{n} = {n}; $l_{n} = 0; $k_{n} = $numbers[$type({n})]")
                self.keys.append(f"$k_{n}")
                self.grads.append(f"($type({n}) in $tensors and {n}.requires_grad)")
                low.append(n)
            elif p.kind == ARRAYS:
                each = dialect.pointer.format("$x")
                self.checks.append(f"$type({n}) in ($tuple, $list)")
                self.checks.append(f"$all([$type($x) in $tensors for $x in {n}])")
                self.lines.append(f"$p_{n} = [{each} for $x in {n}]")
                bits = f", *[$x & 15 for $x in $p_{n}]" if not dialect.by_array else ""
                lists = f"*[{key.format('$x')} for $x in {n}]"
                self.lines.append(f"$k_{n} = ({lists}{bits},)")
                self.keys.append(f"$k_{n}")
                self.grads.append(f"$any([$x.requires_grad for $x in {n}])")
            elif p.kind == OPTION:
                self.keys.append(_option(p).format(n))
            elif p.kind == WRITTEN and into:
                self.lines.append(f"if $type({n}) in $tensors:")
                self.lines.append(f"    $p_{n} = $l_{n} = {pointer}; $k_{n} = {whole}")
                self.lines.append(f"else: $p_{n} = $l_{n} = 0; $k_{n} = $numbers[$type({n})], {n}")
                self.keys.append(f"$k_{n}")
                self.keys += [f"$p_{n} == $p_{other}" for other in p.over]
                self.grads.append(f"($type({n}) in $tensors and {n}.requires_grad)")
                low.append(n)
                self.written.append(n)
            elif p.kind == WRITTEN:
                self.checks.append(f"$type({n}) in $flags" if p.flag else f"{n} is None")
                self.keys += [n] if p.flag else []
            elif not into:
                self.checks.append(f"{n} is None")
            if p.kind in (ARRAY, OPTIONAL, EITHER, OPERAND) or (p.kind == WRITTEN and into):
                self.pointers.append(f"$p_{n}")
                self.arrays.append(n if p.kind == ARRAY else f"({n} if $p_{n} else None)")
            elif p.kind == ARRAYS:
                self.pointers.append(f"*$p_{n}")
                self.arrays.append(f"*{n}")
        operands = any(p.kind == OPERAND for p in parameters)
        if operands:
            self.arrays = [f"({n} if $l_{n} else None)" for n in low]
        if low and not dialect.by_array:
            addresses = [f"$l_{n}" if operands else f"$p_{n}" for n in low]
            self.lines.append(f"$low = ({' | '.join(addresses)}) & 15")
            if len(low) > 1:
                self.lines.append(f"$low = $low and ({', '.join(f'{m} & 15' for m in addresses)})")
            self.keys.append("$low")
        if operands:
            self.lines.append(f"if not ({' or '.join(f'$l_{n}' for n in low)}): raise $KeyError")


_NUMBER = "{0} or $str({0})"
"""Key expression of a scalar. Zeros become text, since 0.0 == -0.0 would share a key."""


def _option(p: Parameter) -> str:
    """Returns the source expression that puts an option into a call's key, with ``{0}`` for the
    option's name. It includes the value's type, since 1 == 1.0 == True.
    """
    if p.option is not None and p.option.key:
        return p.option.key
    if isinstance(p.option, Flag):
        return "({0} if {0} is True or {0} is False else $exact({0}))"
    number = f"($type({{0}}), {_NUMBER})"
    return f"({{0}} if {{0}} is None else $exact({{0}}) if $type({{0}}) in $several else {number})"


def exact(value: Any) -> Any:
    """Returns a key that two values share only if they have the same types and members."""
    if isinstance(value, _SEVERAL):
        plain = all([type(each) is int for each in value])
        return tuple(value) if plain else tuple([exact(each) for each in value])
    return type(value), value or str(value)


_SEVERAL = (tuple, list)
_NUMBERS = {kind: kind for kind in (int, float, bool, type(None))}
_FLAGS = {bool, type(None)}


def _recording() -> bool:
    return bool(sys.modules["torch"].is_grad_enabled())


_COMMON_NAMES: Mapping[str, Any] = {
    **{f"${x.__name__}": x for x in (type, any, all, str, tuple, list, KeyError)},
    "$numbers": _NUMBERS,
    "$UNKNOWN": (RuntimeError, TypeError, KeyError, ValueError),
    "$exact": exact,
    "$several": _SEVERAL,
    "$flags": _FLAGS,
    "$negation_checked": NegationChecked,
    "$is_lazy": is_lazy,
    "$recording": _recording,
}
"""Values of the names that every generated fast path uses."""
