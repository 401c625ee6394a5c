"""Calls remembered whole: what a function of arrays launched is launched again.

A function of torch tensors that takes views of them, allocates, and calls operations of the library
fires, for tensors that lie alike, the same launches at the same places relative to them. The first
call of a kind is followed (:class:`Recorder`): its tensors know which argument, or which allocation,
they are parts of. If nothing else was done to them the call becomes a *plan*, straight-line code
that allocates and fires. :func:`front` makes the code that looks plans up.

What decides is in the key: shapes, strides, dtypes, device and low bits of the addresses of all
arrays, and all other arguments. Memos are bounded. A function that does anything else to its tensors
(computes with torch, reads a value) goes on being called.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypeVar, cast

from ptxgen.ops.launch import remember
from ptxgen.runtime import extent, torch_current

KEY = "({0}.shape, {0}.stride(), {0}.dtype, {0}.get_device())"
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
        if name in _VIEWS and type(source) is _followed() and _same_memory(found, source):
            return self.part(found, source.number)
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
        """The expression of a pointer."""
        if operand is None:
            return "0"
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
        if not (self.whole and self.steps and parts):
            return None
        if any(type(r) is not _followed() or r.number < arguments for r in parts):
            return None
        index = parts[0].plain.get_device()
        namespace: dict[str, Any] = {"current": current_stream(torch), "index": index}
        lines = [f"def plan({', '.join(f'p{i}' for i in range(arguments))}):"]
        lines += ["    stream = current(index)"]
        returned, direct = [], {}
        for result in results:
            if result is None:
                returned.append("None")
                continue
            base, n = self.bases[result.number], result.number
            one = sum(r.number == n for r in parts) == 1
            if one and _covers(result.plain, base):
                direct[n] = result.plain
                returned.append(f"t{n}")
            else:
                lie = (
                    tuple(result.plain.shape),
                    result.plain.stride(),
                    result.plain.storage_offset(),
                )
                returned.append(f"t{n}.as_strided{lie!r}")
        there: set[int] = set()
        used = [
            {int(s[1:].split(" ")[0]) for s in sources if s != "0"} for _, sources in self.steps
        ]
        kept = {r.number for r in parts}
        for i, (fire, sources) in enumerate(self.steps):
            for n in sorted(used[i] - there):
                if n < arguments:
                    continue
                made = direct.get(n, self.bases[n])
                namespace[f"empty{n}"] = allocator(
                    torch, tuple(made.shape), made.stride(), made.dtype, index
                )
                lines += [f"    t{n} = empty{n}()", f"    p{n} = t{n}.data_ptr()"]
            there |= used[i]
            namespace[f"fire{i}"] = fire
            lines += [f"    fire{i}({', '.join(('stream', *sources))})"]
            later: set[int] = set().union(*used[i + 1 :])
            lines += [f"    del t{n}" for n in sorted(used[i] - later - kept) if n >= arguments]
        if not kept <= there:
            return None
        form = f"({', '.join(returned)},)" if isinstance(found, tuple) else returned[0]
        lines += [f"    return {form}"]
        exec(compile("\n".join(lines), "<plan>", "exec"), namespace)
        made_plan: Plan = namespace["plan"]
        return made_plan

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


def _covers(part: Any, base: Any) -> bool:
    """Whether a part is all of a contiguous base, its dimensions arranged in another way."""
    if part.data_ptr() != base.data_ptr() or part.numel() != base.numel():
        return False
    shape, strides = tuple(part.shape), part.stride()
    return extent(shape, strides, 1) == (0, base.numel()) and prod(shape) > 0


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
    such; "value"; "none", for which there are no plans unless it is None.
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
    names: dict[str, Any] | None = None,
) -> Callable[..., Any]:
    """Code with these parameters that carries out the plan of its arguments, straight-line.

    Where there is none ``missed`` is called with a function of which it may have the call followed
    (``None`` where that cannot be), and all arguments, positional ones first. ``autograd``: plain
    tensors that need gradients have no plans. ``before``, ``hit``: lines at the beginning, and
    before a plan is carried out; ``checks``: without which there is none; ``keyed``: expressions in
    the key besides; ``names``: what they speak of.
    """
    memo: dict[tuple[Any, ...], Plan | None] = {}

    def follow(key: tuple[Any, ...]) -> Callable[..., Any]:
        return functools.partial(followed, memo, key, parameters)

    def watched() -> bool:
        return bool(sys.modules["torch"].is_grad_enabled())

    namespace: dict[str, Any] = {
        "tensors": TENSORS,
        "optional": OPTIONAL,
        "find": memo.get,
        "new": _NEW,
        "follow": follow,
        "missed": missed,
        "watched": watched,
        **(names or {}),
    }
    heads = []
    for i, p in enumerate(parameters):
        if p.keyword and not any(h == "*" for h in heads):
            heads.append("*")
        if p.default is NEEDED:
            heads.append(p.name)
        else:
            namespace[f"default{i}"] = p.default
            heads.append(f"{p.name}=default{i}")
    arrays = [p.name for p in parameters if p.kind == "array"]
    optional = [p.name for p in parameters if p.kind == "optional"]
    several = [p.name for p in parameters if p.kind == "arrays"]
    checks = [*checks, *(f"type({n}) in tensors" for n in arrays)]
    checks += [f"type({n}) in optional" for n in optional]
    checks += [f"type({n}) in many and all([type(x) in tensors for x in {n}])" for n in several]
    checks += [f"{p.name} is None" for p in parameters if p.kind == "none"]
    namespace["many"] = (tuple, list)
    lines = [f"def call({', '.join(heads)}):", *(f"    {line}" for line in before)]
    lines += ["    key = None", f"    if {' and '.join(checks)}:", "        try:"]
    body = [f"p_{n} = {n}.data_ptr(); k_{n} = {KEY.format(n)}" for n in arrays]
    for n in optional:
        body += [
            f"p_{n} = 0; k_{n} = None",
            f"if {n} is not None: p_{n} = {n}.data_ptr(); k_{n} = {KEY.format(n)}",
        ]
    for n in several:
        body += [
            f"p_{n} = [x.data_ptr() for x in {n}]",
            f"k_{n} = (*[{KEY.format('x')} for x in {n}], *[x & 15 for x in p_{n}])",
        ]
    parts = [f"k_{n}" for n in (*arrays, *optional, *several)]
    if low := [f"p_{n}" for n in (*arrays, *optional)]:
        body += [
            f"low = ({' | '.join(low)}) & 15",
            f"low = low and ({', '.join(f'{p} & 15' for p in low)},)",
        ]
        parts.append("low")
    for p in parameters:
        if p.kind == "list":
            parts.append(f"(tuple({p.name}) if type({p.name}) is list else {p.name})")
        elif p.kind == "value":
            parts.append(p.name)
    body += [f"key = ({', '.join((*parts, *keyed))},)", "plan = find(key, new)"]
    lines += [f"            {line}" for line in body]
    lines += [
        "        except (RuntimeError, TypeError):  # no memory; what has no hash",
        "            key = None",
    ]
    if autograd:
        grads = [f"{n}.requires_grad" for n in arrays]
        grads += [f"({n} is not None and {n}.requires_grad)" for n in optional]
        grads += [f"any([x.requires_grad for x in {n}])" for n in several]
        lines += [f"        if key is not None and ({' or '.join(grads)}) and watched():"]
        lines += ["            key = None"]
    forms = {"array": "p_{}", "optional": "p_{}", "arrays": "*p_{}"}
    pointers = [forms[p.kind].format(p.name) for p in parameters if p.kind in forms]
    passed = [f"{p.name}={p.name}" if p.keyword else p.name for p in parameters]
    lines += [
        "        if key is not None and plan is not new and plan is not None:",
        *(f"            {line}" for line in hit),
        f"            return plan({', '.join(pointers)})",
        "        if key is not None and plan is new:",
        f"            return missed(follow(key), {', '.join(passed)})",
        f"    return missed(None, {', '.join(passed)})",
    ]
    exec(compile("\n".join(lines) + "\n", f"<plans>", "exec"), namespace)
    made: Callable[..., Any] = namespace["call"]
    return made


def remembered(*arrays: str, lists: tuple[str, ...] = ()) -> Callable[[_F], _F]:
    """Makes a function of the library one whose calls are remembered.

    ``arrays``: its arguments that are arrays, those with "*" sequences of such; ``lists``: those
    that may be lists of numbers. Calls with ``out``, ``stream`` or ``kernel`` are as they were.
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
            elif p.name in ("out", "stream", "kernel"):
                kind = "none"
            parameters.append(Parameter(p.name, kind, p.default, p.kind is p.KEYWORD_ONLY))

        def missed(follow: Callable[..., Any] | None, *args: Any, **named: Any) -> Any:
            return function(*args, **named) if follow is None else follow(function, *args, **named)

        return cast(_F, functools.update_wrapper(front(parameters, missed), function))

    return make


_NEW: Any = object()


def followed(
    memo: dict[tuple[Any, ...], Plan | None],
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
    # A lazily negated tensor has no dimension of unit stride.
    if any(t is not None and 1 not in t.stride() for t in recorder.bases):
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
