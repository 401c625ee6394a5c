"""The one way from a library call to the GPU, hot and careful. Knows no operation by name.

:func:`caller` makes the hot path of an operation: for plain torch tensors it looks the prepared
launch up and fires it. Everything that it does not know goes through :func:`careful`, which checks
every argument before anything is enqueued, and enters what it prepared into the memo.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

from ptxgen.errors import DtypeError, GradError, OptionError
from ptxgen.numerics.signature import Signature
from ptxgen.ops import autotune
from ptxgen.ops.launch import launch, remember
from ptxgen.ops.op import Numbered, Op
from ptxgen.ops.replay import (
    KEY,
    OPTIONAL,
    TENSORS,
    allocator,
    current_stream,
    may_be_negated,
    recorder_of,
)
from ptxgen.runtime import (
    ArrayView,
    Call,
    extent,
    framework_of,
    resolve,
)
from ptxgen.runtime.dlpack import contiguous_strides

Caller = Callable[..., Any]
"""Called with an operation's arguments, then the memory of its results, then the stream and a tuple
of its options, all in the signature's order."""


class _Entry:
    """A prepared launch, and what a call must check before it fires it."""

    __slots__ = ("current", "empty", "encode", "fire", "grad_enabled", "index", "sizes", "strided")

    fire: Callable[..., None]
    current: Callable[[int], int]
    """The handle of PyTorch's current stream on a GPU."""
    empty: tuple[Callable[[], Any], ...]
    """Makes each result."""
    encode: tuple[Callable[[Any], int], ...]
    """Makes of each number what kernels are given (:class:`ptxgen.ops.op.Numbered`)."""
    grad_enabled: Callable[[], bool]
    index: int
    sizes: tuple[int, ...]
    """Bytes between the ends of each argument and result, 0 for those not given."""
    strided: bool
    """Whether an operand may be a lazily negated tensor."""


NEAR = 4096
"""Bytes, short of which results are remembered by how far apart they are."""


def caller(op: Op) -> Caller:
    """How the library calls ``op``. Makes the hot path, so it is called once, at the first call."""
    memo: dict[tuple[Any, ...], _Entry] = {}
    namespace: dict[str, Any] = {
        "tensors": TENSORS,
        "optional": OPTIONAL,
        "find": memo.get,
        "resolve": resolve,
        "careful": partial(careful, op, memo),
    }
    exec(compile(hot_path(op.signature), f"<hot path of {op.name}>", "exec"), namespace)
    made: Caller = namespace["call"]
    return made


def hot_path(signature: Signature) -> str:
    """The source of a hot path, straight-line code: each loop over operands costs what they cost.

    Key and checks are these: all operands are plain torch tensors of known shapes, strides, dtypes
    and device, and known low bits of the addresses; none needs a gradient; results that are given
    share no memory with anything, but for what the signature says that they may be.
    """
    arguments, outs, numbers = signature.arguments, signature.results, signature.scalars
    given = (*arguments, *outs)
    names = tuple(n for n in given if n not in numbers)
    always = [n for n in signature.arrays if n not in signature.optional]
    maybe = [n for n in names if n not in always]

    def joined(form: str, over: Any, by: str = ", ") -> str:
        return by.join(form.format(n) for n in over)

    fired = joined("p_{}", given)
    lines = [
        f"def call({', '.join(given)}, stream, options):",
        "    key = entry = None",
        f"    if {joined('type({}) in tensors', always, ' and ')}:",
        f"        if {joined('type({}) in optional', maybe, ' and ') or 'True'}:",
        "            try:",
        *(f"                p_{n} = {n}.data_ptr(); k_{n} = {KEY.format(n)}" for n in always),
        *(f"                p_{n} = 0; k_{n} = None" for n in maybe),
        f"                grad = {joined('{}.requires_grad', always, ' or ')}",
    ]
    for n in maybe:
        lines += [
            f"                if {n} is not None:",
            f"                    p_{n} = {n}.data_ptr(); k_{n} = {KEY.format(n)}",
            f"                    grad = grad or {n}.requires_grad",
        ]

    # Results that lie close together, as parts of one array do, do so in each call of a key.
    near = [(a, b, f"n_{i}") for i, (a, b) in enumerate(itertools.combinations(outs, 2))]
    for a, b, distance in near:
        lines += [
            f"                {distance} = p_{a} - p_{b}",
            f"                {distance} = {distance} if -{NEAR} < {distance} < {NEAR} else 0",
        ]
    lines += [
        f"                low = ({joined('p_{}', names, ' | ')}) & 15",
        f"                low = low and ({joined('p_{} & 15', names)},)",
        f"                key = ({joined('k_{}', names)}, options, low"
        f"{''.join(f', {n}' for *_, n in near)})",
        "                entry = find(key)",
    ]
    if numbers:
        lines.append("                if entry is not None:")
    lines += [
        *(f"                    p_{n} = entry.encode[{i}]({n})" for i, n in enumerate(numbers)),
        "            except (RuntimeError, TypeError):  # no memory; unhashable options; no number",
        "                key = entry = None",
        "    if entry is not None and entry.strided:",
        f"        if {joined('{0} is not None and {0}.is_neg()', names, ' or ')}:",
        "            key = entry = None",
        "    if entry is not None and not (grad and entry.grad_enabled()):",
        f"        if stream is None and {joined('{} is None', outs, ' and ')}:",
    ]
    for i, out in enumerate(outs):
        lines += [
            f"            {out} = entry.empty[{i}]()",
            f"            p_{out} = {out}.data_ptr()",
        ]
    returned = outs[0] if len(outs) == 1 else f"({', '.join(outs)})"
    lines += [
        f"            entry.fire(entry.current(entry.index), {fired})",
        f"            return {returned}",
        f"        if {joined('{} is not None', outs, ' and ')}:",
        "            sizes = entry.sizes",
    ]
    apart = []
    for i, out in enumerate(outs):
        lines.append(f"            e_{out} = p_{out} + sizes[{names.index(out)}]")
        for other in names[: len(signature.arrays) + i]:
            j = names.index(other)
            ways = [f"e_{out} <= p_{other}", f"p_{other} + sizes[{j}] <= p_{out}"]
            if other in signature.over.get(out, ()):
                ways.append(f"p_{out} == p_{other} and k_{out} == k_{other}")
            ways += [n for a, b, n in near if {a, b} == {out, other}]
            apart.append(f"({' or '.join(ways)})")
    lines += [
        f"            if {' and '.join(apart)}:",
        "                index = entry.index",
        f"                handle = entry.current(index) if stream is None else resolve(stream, "
        f"({', '.join(always)},))",
        f"                entry.fire(handle, {fired})",
        f"                return {returned}",
        f"    given = ({', '.join(arguments)},), ({', '.join(outs)},)",
        "    return careful(*given, stream, options, key)",
    ]
    return "\n".join(lines) + "\n"


def careful(
    op: Op,
    memo: dict[tuple[Any, ...], _Entry],
    arguments: tuple[Any, ...],
    outs: tuple[Any, ...],
    stream: Any,
    options: tuple[Any, ...],
    key: tuple[Any, ...] | None,
) -> Any:
    """A call, checked argument by argument."""
    recorder = recorder_of((*arguments, *outs))
    if recorder is None:
        return _checked(op, memo, arguments, outs, stream, options, key, None)

    def call(given: tuple[Any, ...], results: tuple[Any, ...], note: Noted) -> Any:
        return _checked(op, memo, given, results, stream, options, None, note)

    return recorder.launched(call, arguments, outs, stream is None)


Noted = Callable[[Callable[..., None], Sequence[int]], None]
"""Is told what is fired, and with which pointers."""


def _checked(
    op: Op,
    memo: dict[tuple[Any, ...], _Entry],
    arguments: tuple[Any, ...],
    outs: tuple[Any, ...],
    stream: Any,
    options: tuple[Any, ...],
    key: tuple[Any, ...] | None,
    note: Noted | None,
) -> Any:
    signature = op.signature
    named = dict(zip((*signature.options, "kernel"), options, strict=True))
    kernel = named["kernel"]
    signature.check(named)
    if kernel is not None and not isinstance(kernel, str):
        raise OptionError(f"kernel is {kernel!r}; takes None or the name of a kernel")
    everything = dict(zip(signature.arguments, arguments, strict=True))
    given = {name: everything[name] for name in signature.arrays}
    for name, array in given.items():
        if array is None and name not in signature.optional:
            raise DtypeError(f"{name} is None; takes an array")
    targets = dict(zip(signature.results, outs, strict=True))
    if op.watched is not None and all(t is None for t in outs) and _watched(given.values()):
        return op.watched(arguments, options)
    refuse_gradients({**given, **targets})
    if any(t is None for t in outs) and any(t is not None for t in outs):
        missing = ", ".join(name for name, t in targets.items() if t is None)
        raise OptionError(f"results are given, but not {missing}; pass all or none")
    call = Call(given, stream, backwards=op.backwards)
    dtypes = tuple(None if t is None else call.view(t, name).dtype for name, t in targets.items())
    reading = op.read(as_computed(call), named, dtypes)
    encoders = cast(Numbered, reading).encoders if signature.scalars else ()
    numbers = {n: e(everything[n]) for n, e in zip(signature.scalars, encoders, strict=True)}
    over = signature.over
    written = tuple(
        call.output(
            r.shape, r.dtype, targets[name], read=r.read, over=over.get(name, ()), name=name
        )
        for name, r in zip(signature.results, reading.results, strict=True)
    )
    problem = reading.problem(written)
    if problem is None:
        return call.finish()
    prepared = launch(problem, call.device, kernel)
    call.stage()
    views = call.views
    pointers = [
        views[name].ptr if name in views else numbers.get(name, 0) for name in signature.arguments
    ]
    pointers += [target.ptr for target in written]
    found, timing = None, kernel is None and autotune.enabled()
    if timing:
        sizes = [_nbytes(target) for target in written]
        found = autotune.tuned(problem, call.device, call.stream, pointers, sizes)
        prepared = found or prepared
    prepared.fire(call.stream, *pointers)
    result = call.finish()
    if found is not None or not timing:  # else it is still to be timed
        seen = [views.get(name) for name in signature.arrays]
        _learn(memo, key, seen, written, prepared.fire, encoders)
        if note is not None and not call.host:
            note(prepared.fire, pointers)
    return result


def _watched(given: Iterable[Any]) -> bool:
    """Whether autograd records some tensor, or one is no plain one (fake, functional ...)."""
    tensors = [x for x in given if framework_of(x) == "torch"]
    if not tensors:
        return False
    torch = sys.modules["torch"]
    if any(type(x) not in (torch.Tensor, torch.nn.Parameter) for x in tensors):
        return True
    return torch.is_grad_enabled() and any(x.requires_grad for x in tensors)


def refuse_gradients(given: Mapping[str, Any]) -> None:
    """Nothing would be recorded, so a gradient asked for would silently be missing."""
    for name, obj in given.items():
        if framework_of(obj) == "torch" and obj.requires_grad:
            if not sys.modules["torch"].is_grad_enabled():
                return
            raise GradError(
                f"{name} requires grad, but ptxgen's operations record nothing for autograd; call "
                f"them under torch.no_grad(), pass {name}.detach(), or wrap them in a "
                "torch.autograd.Function (linear_dgrad and linear_wgrad are its backward)"
            )


def as_computed(call: Call) -> dict[str, ArrayView]:
    """The arguments as the kernel will see them: host arrays will be packed and aligned."""
    if not call.host:
        return dict(call.views)
    return {
        name: replace(view, ptr=0, strides=contiguous_strides(view.shape))
        for name, view in call.views.items()
    }


def _learn(
    memo: dict[tuple[Any, ...], _Entry],
    key: tuple[Any, ...] | None,
    arguments: list[ArrayView | None],
    targets: tuple[ArrayView, ...],
    fire: Callable[..., None],
    encoders: tuple[Callable[[Any], int], ...],
) -> None:
    """Makes the next call like this one a hot one, if it was one of plain torch tensors."""
    everything = [v for v in (*arguments, *targets) if v is not None]
    if any(v.framework != "torch" or v.kind != "cuda" for v in everything):
        return
    for seen in everything:
        kind = type(seen.owner)
        if (kind.__module__, kind.__name__) not in (
            ("torch", "Tensor"),
            ("torch.nn.parameter", "Parameter"),
        ):
            return
        TENSORS.add(kind)
        OPTIONAL.add(kind)
    if key is None:
        return
    torch = sys.modules["torch"]
    entry = _Entry()
    entry.fire, entry.index, entry.encode = fire, targets[0].index, encoders
    entry.current = current_stream(torch)
    entry.strided = any(may_be_negated(v.shape, v.strides) for v in everything)
    entry.sizes = tuple(0 if v is None else _nbytes(v) for v in (*arguments, *targets))
    entry.grad_enabled = torch.is_grad_enabled
    entry.empty = tuple(
        allocator(
            torch,
            target.shape,
            contiguous_strides(target.shape),
            getattr(torch, target.dtype),
            target.index,
        )
        for target in targets
    )
    remember(memo, key, entry)


def _nbytes(view: ArrayView) -> int:
    """Bytes between the first and the end of the last element."""
    return extent(view.shape, view.strides, view.itemsize)[1]
