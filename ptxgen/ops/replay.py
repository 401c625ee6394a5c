"""Calls remembered whole: what a function of arrays launched is launched again.

A function of torch tensors that takes views of them, allocates, and calls operations of the
library fires, for tensors that lie alike, the same launches at the same places relative to them.
A call of a kind that came often is followed (:class:`Recorder`): its tensors know which argument,
or which allocation, they are parts of. If nothing else was done to them the call becomes a *plan*,
straight-line code that allocates and fires. :func:`front` makes the code that looks plans up.

What decides is in the key: shapes, strides, dtypes, device and low bits of the addresses of all
arrays, and all other arguments. Memos are bounded. A function that does anything else to its
tensors (computes with torch, reads a value) goes on being called.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from ptxgen.ops.launch import remember
from ptxgen.runtime import extent, torch_current

LIE = "{0}.shape, {0}.stride(), {0}.dtype, {0}.get_device()"
KEY = f"({LIE})"
""":func:`ptxgen.runtime.torch_key`, written out where it is needed: a call is a fifth of it."""
TENSORS: set[type] = set()
"""torch.Tensor and torch.nn.Parameter, once they have been seen; subclasses may do anything."""
OPTIONAL: set[type] = {type(None)}
_VIEWS = frozenset(
    (
        *("__get__", "__getitem__", "contiguous", "expand", "flatten", "movedim", "narrow"),
        *("permute", "reshape", "squeeze", "swapaxes", "to", "transpose", "unsqueeze", "view"),
    )
)
"""Methods of tensors that return a view; where one returns a copy, that is seen by its memory."""
_FACTS = frozenset(
    (
        *("__get__", "__len__", "data_ptr", "dim", "element_size", "get_device", "is_contiguous"),
        *("is_neg", "numel", "size", "storage_offset", "stride"),
    )
)
"""Those that say how a tensor lies, not what is in it."""

NEEDED: Any = inspect.Parameter.empty
"""The default of a parameter that has none."""
Plan = Callable[..., Any]
Memo = dict[tuple[Any, ...], Plan | int | None]
"""Plans by what decides; how often such a call came that has none yet; None where there is none."""
PATIENCE = 16
"""Calls of a kind that come before one is followed. That costs about what so many plans save, and
the sequence that grows by a token with each call never comes again.
"""
_F = TypeVar("_F", bound=Callable[..., Any])


# -- following --------------------------------------------------------------------------------
class Recorder:
    """What a call did: launches on arguments and on what it allocated, or also other things."""

    def __init__(self) -> None:
        self.bases: list[Any] = []
        """Plain tensors: the arguments (None for those not given), then what was allocated."""
        self.steps: list[tuple[Callable[..., None], tuple[str, ...]]] = []
        """What was fired, with expressions of its pointers."""
        self.whole = True
        """Whether the steps are all that was done."""

    def follow(self, tensor: Any) -> Any:
        """``tensor``, of which all views are known from here on."""
        self.bases.append(tensor)
        return None if tensor is None else self.part(tensor, len(self.bases) - 1)

    def part(self, tensor: Any, number: int) -> Any:
        """``tensor``, a view of a base."""
        found = tensor.detach().as_subclass(_followed())
        found.recorder, found.number, found.plain = self, number, tensor.detach()
        return found

    def called(self, found: Any, function: Any, args: Sequence[Any]) -> Any:
        """What a function of torch's ``found`` of a followed tensor."""
        torch = sys.modules["torch"]
        name, source = getattr(function, "__name__", ""), args[0] if args else None
        if not isinstance(found, torch.Tensor):
            self.whole = self.whole and name in _FACTS
            return found
        if type(found) is _followed():
            self.whole = self.whole and name in _VIEWS  # itself; in place it would be another name
            return found
        if name == "new_empty":
            return self.follow(found)
        own = cast(Any, source)
        if name in _VIEWS and type(own) is _followed() and _same_memory(found, own):
            return self.part(found, own.number)
        self.whole = False
        return found

    def launched(
        self,
        call: Callable[..., Any],
        arguments: Sequence[Any],
        outs: Sequence[Any],
        current: bool,
    ) -> Any:
        """Has ``call`` called with plain tensors, and notes what it fires.

        It is also given a function, which it calls with what it fires and the pointers: those of
        arguments and results, in order. ``current``: on the current stream.
        """
        fired: list[tuple[Callable[..., None], Sequence[int]]] = []
        given = [plain(x) for x in arguments], [plain(x) for x in outs]
        found = call(*map(tuple, given), lambda fire, pointers: fired.append((fire, pointers)))
        results = found if isinstance(found, tuple) else (found,)
        if outs and outs[0] is None:
            results = tuple(self.follow(r) for r in results)
        else:
            results = tuple(outs)
        self.whole = self.whole and current and len(fired) == 1
        if not self.whole:
            return found
        fire, pointers = fired[0]
        everything = (*arguments, *results)
        self.steps.append((fire, tuple(map(self._source, everything, pointers))))
        return results[0] if len(results) == 1 else results

    def _source(self, operand: Any, pointer: int) -> str:
        """The expression of a pointer, or of a number that kernels are given as one."""
        if operand is None or isinstance(operand, int | float):
            return str(pointer)  # a number follows from what is in the key
        if type(operand) is not _followed():
            self.whole = False
            return "0"
        offset = pointer - self.bases[operand.number].data_ptr()
        return f"p{operand.number}" + (f" + {offset}" if offset else "")

    def plan(self, found: Any, arguments: int) -> Plan | None:
        """The call as code, if it can be done again; ``arguments``: how many bases are such."""
        torch = sys.modules["torch"]
        results = found if isinstance(found, tuple) else (found,)
        parts = [r for r in results if r is not None]
        if not (self.whole and 0 < len(self.steps) <= STEPS_MAX and parts) or any(
            type(r) is not _followed()
            or r.number < arguments
            or r.plain.dtype is not self.bases[r.number].dtype
            for r in parts
        ):
            return None
        index = parts[0].plain.get_device()
        names: dict[str, Any] = {"current": current_stream(torch), "index": index}
        code = [f"def plan({', '.join(f'p{i}' for i in range(arguments))}):"]
        code += ["    stream = current(index)"]
        lies = {r.number: r.plain for r in parts if self._alone(r, parts)}
        lasts = {n: i for i, (_, sources) in enumerate(self.steps) for n in _numbers(sources)}
        lasts |= {r.number: len(self.steps) for r in parts}
        there = set(range(arguments))
        for i, (fire, sources) in enumerate(self.steps):
            used = _numbers(sources)
            for n in sorted(used - there):
                lie = lies.get(n, self.bases[n])
                names[f"empty{n}"] = allocator(
                    torch, tuple(lie.shape), lie.stride(), lie.dtype, index
                )
                code += [f"    t{n} = empty{n}()", f"    p{n} = t{n}.data_ptr()"]
            there |= used
            names[f"fire{i}"] = fire
            code += [f"    fire{i}({', '.join(('stream', *sources))})"]
            code += [f"    del t{n}" for n in sorted(used) if n >= arguments and lasts[n] == i]
        if not {r.number for r in parts} <= there:
            return None
        returned = ["None" if r is None else _result(r, lies) for r in results]
        several = isinstance(found, tuple)
        code += [f"    return ({', '.join(returned)},)" if several else f"    return {returned[0]}"]
        exec(compile("\n".join(code), "<plan>", "exec"), names)
        return cast(Plan, names["plan"])

    def _alone(self, result: Any, parts: Sequence[Any]) -> bool:
        """Whether this is all that is returned of what it was allocated with, so may be allocated
        as it lies.
        """
        part, base = result.plain, self.bases[result.number]
        shape, strides = tuple(part.shape), part.stride()
        return (
            sum(r.number == result.number for r in parts) == 1
            and part.data_ptr() == base.data_ptr()
            and part.numel() == base.numel()
            and extent(shape, strides, 1) == (0, base.numel())
        )

    def given_back(self, found: Any) -> Any:
        """The results of a followed call as a caller gets them: plain tensors."""
        if isinstance(found, tuple):
            return tuple(map(self.given_back, found))
        if type(found) is not _followed():
            return found
        base = self.bases[found.number]
        if base.shape == found.plain.shape and base.stride() == found.plain.stride():
            return base
        return base.as_strided(
            found.plain.shape, found.plain.stride(), found.plain.storage_offset()
        )


def recorder_of(operands: Iterable[Any]) -> Recorder | None:
    """Who follows these, if anybody does."""
    for operand in operands:
        found = getattr(type(operand), "follows", None)
        if found is not None:
            return cast(Recorder, operand.recorder)
    return None


def plain(operand: Any) -> Any:
    """The tensor behind a followed one; anything else as it is."""
    return operand.plain if getattr(type(operand), "follows", None) else operand


def _same_memory(a: Any, b: Any) -> bool:
    return bool(a.untyped_storage()._cdata == b.plain.untyped_storage()._cdata)


def _numbers(sources: Iterable[str]) -> set[int]:
    """The bases that pointers lie in."""
    return {int(source.partition(" ")[0][1:]) for source in sources if source[0] == "p"}


def _result(result: Any, lies: dict[int, Any]) -> str:
    """The expression of a result."""
    n, lie = result.number, result.plain
    if n in lies:
        return f"t{n}"
    return f"t{n}.as_strided{(tuple(lie.shape), lie.stride(), lie.storage_offset())!r}"


@functools.cache
def _followed() -> Any:
    """The type of followed tensors."""
    torch = sys.modules["torch"]

    class Followed(torch.Tensor):  # type: ignore[misc, name-defined]
        """A tensor whose views and launches a :class:`Recorder` knows."""

        follows = True
        recorder: Recorder
        number: int
        plain: Any

        @classmethod
        def __torch_function__(
            cls, function: Any, types: Any, args: Any = (), named: Any = None
        ) -> Any:
            with torch._C.DisableTorchFunctionSubclass():
                found = function(*args, **(named or {}))
                own = [a for a in args if type(a) is cls]
                if not own:  # in lists, say
                    for each in args:
                        own += [a for a in each if type(a) is cls] if _several(each) else []
                return own[0].recorder.called(found, function, args) if own else found

    return Followed


def _several(x: Any) -> bool:
    return isinstance(x, tuple | list)


def may_be_negated(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether a tensor that lies so may be a lazily negated one: those are the imaginary parts of
    complex ones, so all their steps are even.
    """
    return all(stride != 1 or size == 1 for size, stride in zip(shape, strides, strict=True))


# -- memory -----------------------------------------------------------------------------------
def current_stream(torch: Any) -> Callable[[int], int]:
    """What gives the handle of PyTorch's current stream on a GPU."""
    return getattr(torch._C, "_cuda_getCurrentRawStream", None) or torch_current


def allocator(
    torch: Any, shape: tuple[int, ...], strides: tuple[int, ...], dtype: Any, index: int
) -> Callable[[], Any]:
    """Makes tensors that lie so.

    In the way of torch's own compiled code, if this torch has it (private; a third of the cost
    of ``torch.empty``). That allocates on the current GPU, so it is asked which one that is.
    """
    slow = functools.partial(
        torch.empty_strided, shape, strides, dtype=dtype, device=torch.device("cuda", index)
    )
    guards = getattr(getattr(torch._C, "_dynamo", None), "guards", None)
    fast = getattr(guards, "_empty_strided_cuda", None)
    current = getattr(torch._C, "_cuda_getDevice", None)
    if fast is None or current is None:
        return slow
    if torch.cuda.device_count() == 1:
        return functools.partial(fast, shape, strides, dtype)
    return lambda: fast(shape, strides, dtype) if current() == index else slow()


# -- calls ------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Parameter:
    """One of a remembered function.

    ``kind``: "array"; "optional", an array or None; "arrays", several; "list", numbers or a list of
    such; "value"; "flag" and "none", for which there are no plans unless it is a bool or None, or
    None.
    """

    name: str
    kind: str
    default: Any = NEEDED
    keyword: bool = False


def front(
    parameters: Sequence[Parameter],
    missed: Callable[..., Any],
    *,
    autograd: bool = True,
    before: Sequence[str] = (),
    checks: Sequence[str] = (),
    keyed: Sequence[str] = (),
    hit: Sequence[str] = (),
    given: dict[str, Any] | None = None,
    memo: Memo | None = None,
) -> Callable[..., Any]:
    """Code with these parameters that carries out the plan of its arguments, straight-line.

    Where there is none ``missed`` is called with a function of which it may have the call followed
    (``None`` where that cannot be), and all arguments, positional ones first. ``autograd``: plain
    tensors that need gradients have no plans. ``before``, ``hit``: lines at the beginning, and
    before a plan is carried out; ``checks``: without which there is none; ``keyed``: expressions in
    the key besides; ``given``: what they speak of. ``memo``: where plans are kept.

    A call is followed when :data:`PATIENCE` like it have come.
    """
    memo = {} if memo is None else memo

    def seen(key: tuple[Any, ...], times: int) -> Callable[..., Any] | None:
        """Such a call came so many times: None, or what is to follow this one."""
        if times < PATIENCE:
            remember(memo, key, times + 1)
            return None
        return functools.partial(followed, memo, key, parameters)

    def watched() -> bool:
        return bool(sys.modules["torch"].is_grad_enabled())

    namespace: dict[str, Any] = {
        "tensors": TENSORS,
        "optional": OPTIONAL,
        "flags": _FLAGS,
        "find": memo.get,
        "seen": seen,
        "missed": missed,
        "watched": watched,
        **(given or {}),
    }
    names = [p.name for p in parameters if p.kind in ("array", "optional")]
    heads: list[str] = []
    keys: list[str] = []
    checks, values, grads, pointers = [*checks], [*keyed], [], []
    body = []
    for i, p in enumerate(parameters):
        n = p.name
        if p.keyword and "*" not in heads:
            heads.append("*")
        namespace[f"default{i}"] = p.default
        heads.append(n if p.default is NEEDED else f"{n}=default{i}")
        if p.kind == "array":
            checks.append(f"type({n}) in tensors")
            body.append(f"p_{n} = {n}.data_ptr()")
            keys.append(LIE.format(n))
            grads.append(f"{n}.requires_grad")
            pointers.append(f"p_{n}")
        elif p.kind == "optional":
            checks.append(f"type({n}) in optional")
            body.append(f"p_{n} = 0; k_{n} = None")
            body.append(f"if {n} is not None: p_{n} = {n}.data_ptr(); k_{n} = {KEY.format(n)}")
            keys.append(f"k_{n}")
            grads.append(f"({n} is not None and {n}.requires_grad)")
            pointers.append(f"p_{n}")
        elif p.kind == "arrays":
            checks.append(f"type({n}) in (tuple, list) and all([type(x) in tensors for x in {n}])")
            body.append(f"p_{n} = [x.data_ptr() for x in {n}]")
            body.append(f"k_{n} = (*[{KEY.format('x')} for x in {n}], *[x & 15 for x in p_{n}])")
            keys.append(f"k_{n}")
            grads.append(f"any([x.requires_grad for x in {n}])")
            pointers.append(f"*p_{n}")
        elif p.kind == "list":
            values.append(f"(tuple({n}) if type({n}) is list else {n})")
        elif p.kind in ("value", "flag"):
            values.append(n)
            if p.kind == "flag":
                checks.append(f"type({n}) in flags")
        else:
            checks.append(f"{n} is None")
    if names:
        body.append(f"low = ({' | '.join(f'p_{n}' for n in names)}) & 15")
        if len(names) > 1:
            body.append(f"low = low and ({', '.join(f'p_{n} & 15' for n in names)})")
        values.append("low")
    body.append(f"key = ({', '.join((*keys, *values))},)")
    passed = ", ".join(f"{p.name}={p.name}" if p.keyword else p.name for p in parameters)
    lines = [
        f"def call({', '.join(heads)}):",
        *(f"    {line}" for line in before),
        f"    if {' and '.join(checks)}:",
        "        try:",
        *(f"            {line}" for line in body),
        "            plan = find(key, 0)",
        "        except (RuntimeError, TypeError):  # no memory; what has no hash",
        "            plan = None",
    ]
    if autograd:
        lines += [f"        if plan is not None and ({' or '.join(grads)}) and watched():"]
        lines += ["            plan = None"]
    lines += [
        "        if plan is not None:",
        "            if type(plan) is int:",
        f"                return missed(seen(key, plan), {passed})",
        *(f"            {line}" for line in hit),
        f"            return plan({', '.join(pointers)})",
        f"    return missed(None, {passed})",
    ]
    exec(compile("\n".join(lines) + "\n", "<plans>", "exec"), namespace)
    return cast(Callable[..., Any], namespace["call"])


def remembered(
    *arrays: str, lists: tuple[str, ...] = (), flags: tuple[str, ...] = ()
) -> Callable[[_F], _F]:
    """Makes a function of the library one whose calls are remembered.

    ``arrays``: its arguments that are arrays, those with "*" sequences of such; ``lists``: those
    that may be lists of numbers; ``flags``: those that may be memory in place of a bool. Calls with
    ``out``, ``stream``, ``kernel`` or such memory are as they were.
    """

    def make(function: _F) -> _F:
        parameters = []
        for p in inspect.signature(function).parameters.values():
            kind = "value"
            if p.name in arrays:
                kind = "array" if p.default is p.empty else "optional"
            elif f"*{p.name}" in arrays:
                kind = "arrays"
            elif p.name in lists:
                kind = "list"
            elif p.name in flags:
                kind = "flag"
            elif p.name in ("out", "stream", "kernel"):
                kind = "none"
            parameters.append(Parameter(p.name, kind, p.default, p.kind is p.KEYWORD_ONLY))

        def missed(follow: Callable[..., Any] | None, *args: Any, **named: Any) -> Any:
            return function(*args, **named) if follow is None else follow(function, *args, **named)

        return cast(_F, functools.update_wrapper(front(parameters, missed), function))

    return make


def followed(
    memo: Memo,
    key: tuple[Any, ...],
    parameters: Sequence[Parameter],
    function: Callable[..., Any],
    *args: Any,
    **named: Any,
) -> Any:
    """Calls ``function``, and remembers what it did, or that it cannot be done again."""
    given = dict(zip((p.name for p in parameters), (*args, *named.values()), strict=True))
    recorder, arguments = Recorder(), dict(given)
    for p in parameters:
        x = given[p.name]
        if p.kind == "arrays":
            arguments[p.name] = type(x)(map(recorder.follow, x))
        elif p.kind in ("array", "optional"):
            arguments[p.name] = recorder.follow(x)
        elif not _by_value(x):
            return function(*args, **named)
    count = len(recorder.bases)
    if any(t is not None and may_be_negated(t.shape, t.stride()) for t in recorder.bases):
        remember(memo, key, None)
        return function(*args, **named)
    values = tuple(arguments.values())
    try:
        found = function(*values[: len(args)], **dict(zip(named, values[len(args) :], strict=True)))
    except Exception:
        remember(memo, key, None)
        return function(*args, **named)  # which raises it of the caller's own tensors
    remember(memo, key, recorder.plan(found, count))
    return recorder.given_back(found)


def _by_value(x: Any) -> bool:
    """Whether a key may hold this argument, which equals no other one but by its value."""
    if isinstance(x, tuple | list):
        return all(map(_by_value, x))
    return type(x) in _VALUES or (type(x).__module__, type(x).__name__) == ("torch", "dtype")


_VALUES = (bool, int, float, str, type(None))
_FLAGS = {bool, type(None)}
STEPS_MAX = 256
"""Most launches of a plan. Of more, deciding is a small part of what they cost."""
