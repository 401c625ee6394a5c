"""``batch_invariant``: ATen inside a block, with rows that do not depend on the batch.

Kernels are overridden in PyTorch's dispatcher while a block is open, so operators that need no
serving cost nothing. The overrides are global to the process: one set for all open blocks.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from types import TracebackType
from typing import Any

import torch
from torch.autograd import forward_ad
from torch.utils._python_dispatch import TorchDispatchMode

from ptxgen.errors import DeviceError, DtypeError, PtxgenError, UnservedError
from ptxgen.locks import Lock
from ptxgen.numerics.option import Option
from ptxgen.program.invoke import Frame, invoke
from ptxgen.program.launch import remember
from ptxgen.program.parameters import ARRAY, NEEDED, OPTION, OPTIONAL, Parameter
from ptxgen.program.prepared import Hooks, Memo
from ptxgen.runtime import default_device
from ptxgen.torch.aten import (
    DIRECT,
    LOWERED,
    RECORDED,
    SERVED,
    WHOLE,
    WIDENED,
    autocast_widens,
    elementwise_in_place,
    operation,
)
from ptxgen.torch.functional import any_autocast
from ptxgen.torch.functions import FUNCTIONS
from ptxgen.torch.module import _checked
from ptxgen.torch.reading import Sharing
from ptxgen.torch.record import PLAIN
from ptxgen.torch.trees import leaves
from ptxgen.torch.unserved import ALONE, PARTS, UNKNOWN, NotServed, Serve, overload, reason

KINDS = ("cuda", "cpu", "mps", "xpu")
"""Kinds of devices that tensors may be on. Operators that need serving, on a kind that is not
served, are unknown to the block."""


def served_kinds() -> frozenset[str]:
    """Kinds of devices whose tensors are served now: GPUs, and the CPU where it is ptxgen's default
    device.
    """
    try:
        kind = default_device().kind
    except DeviceError:  # a GPU that cannot be used says so when it is asked to compute
        kind = "cuda"
    return frozenset({"cuda", kind})


@dataclass
class Report:
    """Counts of the operators that ran in a block, by name."""

    served: Counter[str] = field(default_factory=Counter)
    """Operators that ptxgen computed."""
    free: Counter[str] = field(default_factory=Counter)
    """Operators that need no serving; pointwise ones, copies and views with ``watch=True`` only."""
    unknown: Counter[str] = field(default_factory=Counter)
    """Operators that PyTorch computed; rows may depend on the batch."""

    def __str__(self) -> str:
        served, free = ("served", self.served), ("needs no serving", self.free)
        return "\n".join(counted(served, free, (UNKNOWN_TITLE, self.unknown)))


UNKNOWN_TITLE = "unknown: may depend on the batch"


def counted(*groups: tuple[str, Counter[str]]) -> list[str]:
    """Returns lines of a report: the total of each group, then its names with counts."""
    lines = []
    for title, counts in groups:
        lines.append(f"{title}: {sum(counts.values())}")
        lines += [f"  {count:8} {name}" for name, count in counts.most_common()]
    return lines


class batch_invariant:  # noqa: N801 - used as a statement: with batch_invariant():
    """Inside the block, a row of a result depends on that row, not on what else is in the batch.

    Operators of ATen (float32, bfloat16, float16, float64) fall in one of three lists, on CUDA
    tensors, and on CPU tensors where the CPU device is the default one when the block is entered
    (``with ptxgen.use_device("cpu"):``, or no GPU):

    - **served**: products, sums, means, variances, softmax, norms, attention and their backward
      passes (:data:`ptxgen.torch.aten.SERVED` and ``RECORDED``) are computed by ptxgen, and, unless
      ``functions=False``, so are exp, tanh, silu and their kin
      (:data:`ptxgen.torch.functions.FUNCTIONS`);
    - **free**: other pointwise operators, copies, views, exact results need no serving
      (:mod:`ptxgen.torch.unserved` has the rules and the reasons). They are not touched, so they
      cost what they did;
    - **unknown**: everything else, and on tensors of other devices whatever is not free, is
      counted and goes on as before, or is refused with ``strict=True``, but for operators named in
      ``allow``.

    :meth:`report` has the three with counts; ``served``, ``free`` and ``unknown`` are the counters.
    Free operators are counted with ``watch=True`` only, which costs some microseconds for every
    operator of the thread that enters; ``strict=True`` watches as well, to see operators of other
    libraries.

    The block is the process's: other threads are served too, autograd's among them. In the thread
    that enters, backward passes run in that thread: a thread of autograd's costs each of them
    some tens of microseconds, as Python's memory is in another core's caches. Blocks nest; the one
    entered last counts, and its ``tier`` is what products have. A block may be entered again. What
    ``torch.compile`` made runs uncompiled inside. Entering takes some milliseconds. A
    block that meets tensors of a device that is not served warns once for each kind of device.

    ``functions``: whether the elementwise functions of PyTorch's libraries of mathematics are
    replaced by those of :mod:`ptxgen.functions`. Rows do not depend on the batch either way; with
    them a model's numbers do not depend on versions of PyTorch and CUDA.

    Raises UnservedError (``strict=True``), and PtxgenError where PyTorch is too old.
    """

    def __init__(
        self,
        *,
        tier: str = "auto",
        strict: bool = False,
        watch: bool = False,
        allow: Collection[str] = (),
        functions: bool = True,
    ) -> None:
        self.tier = _checked(tier)
        self.functions = functions
        self.strict = strict
        self.allow = frozenset(allow)
        self._report = Report()
        self.served = self._report.served
        self.free = self._report.free
        self.unknown = self._report.unknown
        self._watching = watch or strict
        self._modes: list[_Watch] = []
        self._threads: list[torch.autograd.set_multithreading_enabled] = []
        self._casts: list[bool] = []
        self._warned: set[str] = set()

    def report(self) -> Report:
        """Returns the counts of served, free and unknown operators; ``print`` shows them."""
        return self._report

    def __enter__(self) -> batch_invariant:
        _overrides.open(self)
        self._threads.append(torch.autograd.set_multithreading_enabled(False))
        self._casts.append(torch.is_autocast_cache_enabled())
        torch.set_autocast_cache_enabled(False)
        if self._watching:
            self._modes.append(_Watch(self))
            self._modes[-1].__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if self._watching:
                self._modes.pop().__exit__(kind, error, trace)
        finally:
            torch.set_autocast_cache_enabled(self._casts.pop())
            self._threads.pop().__exit__(None, None, None)
            _overrides.close(self)

    def count_unknown(self, name: str, unserved: str = "") -> None:
        """Counts an unknown operator. ``unserved``: the kind of device, where the operator is
        served on others. Raises UnservedError.
        """
        self.unknown[name] += 1
        if self.strict and name not in self.allow:
            where = f" on {unserved} tensors: {_REMEDIES[unserved]}" if unserved else ""
            raise UnservedError(
                f"{name} may compute rows that depend on the batch, and is not served{where}; "
                "compute it another way or outside the block, pass "
                f"allow={{{name!r}}} if it cannot matter here, or strict=False to count it only"
            )
        if unserved and unserved not in self._warned:
            self._warned.add(unserved)
            warnings.warn(
                f"batch_invariant does not serve {unserved} tensors here ({name} is computed by "
                f"PyTorch, and rows may depend on the batch): {_REMEDIES[unserved]}",
                stacklevel=4,  # the caller of the operator
            )


_REMEDIES = {
    "cpu": "the CPU device serves them where it is the default one when the block is entered, as "
    'within ptxgen.use_device("cpu")',
    **dict.fromkeys(("mps", "xpu"), "move them to a CUDA device, or to the CPU"),
}
"""Advice on tensors of a kind of device that is not served."""


class _Watch(TorchDispatchMode):
    """Dispatch mode that counts operators without an override."""

    def __init__(self, block: batch_invariant) -> None:
        super().__init__()
        self.block = block

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        space = func.namespace
        seen, optional = func in _overrides.seen, func in functions()
        # Kernels of another key are not overridden.
        odd = seen and any(
            t.layout is not torch.strided for t in leaves((args, kwargs), torch.Tensor)
        )
        if seen and not (optional and (odd or not self.block.functions)):
            if odd:
                self.block.count_unknown(str(func))
        elif space == "aten":
            if reason(func) is None:  # where autograd is off, composed operators come whole
                with self:
                    found = func.decompose(*args, **kwargs)
                if found is not NotImplemented:
                    return found
            self.block.free[func.overloadpacket.__name__] += 1
        elif space not in _KNOWN and any(
            t.device.type in _overrides.kinds for t in leaves((args, kwargs), torch.Tensor)
        ):
            self.block.count_unknown(str(func))
        return func(*args, **kwargs)


_KNOWN = {"ptxgen", "prim", "prims"}
"""The namespaces of operators that are not another library's."""


def _is_available(kind: str) -> bool:
    """Whether tensors may be on a kind of device."""
    backend = {"mps": torch.backends.mps, "xpu": torch.xpu}.get(kind)
    return backend is None or backend.is_available()


# -- overriding -----------------------------------------------------------------------------
class _Overrides:
    """The kernels in PyTorch's dispatcher, there while any block is open: those that the block
    entered last needs, by the kinds of devices that were served when it was entered.
    """

    def __init__(self) -> None:
        self.blocks: list[batch_invariant] = []
        self.seen: set[Any] = set()
        self.kinds: frozenset[str] = frozenset()
        self._entered: list[frozenset[str]] = []
        self._lock = Lock()
        self._library: Any = None
        self._stance: Any = None
        self._sharing: Sharing | None = None

    def open(self, block: batch_invariant) -> None:
        kinds = served_kinds()
        with self._lock:
            self._install(kinds)
            self.blocks.append(block)
            self._entered.append(kinds)

    def close(self, block: batch_invariant) -> None:
        with self._lock:
            last = len(self.blocks) - 1 - self.blocks[::-1].index(block)
            del self.blocks[last], self._entered[last]
            if self.blocks:
                self._install(self._entered[-1])
            else:
                self._remove()

    def _install(self, kinds: frozenset[str]) -> None:
        """Overrides kernels so that these kinds are served, unless that is so."""
        if kinds == self.kinds:
            return
        get = getattr(torch.library, "get_kernel", None)
        if get is None:
            raise PtxgenError(
                f"batch_invariant needs torch.library.get_kernel, which PyTorch {torch.__version__}"
                " does not have; use a newer one"
            )
        self._remove()
        library = torch.library.Library("aten", "IMPL")
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message=r"[\s\S]*previously registered kernel")
                for kind in filter(_is_available, KINDS):
                    for op, key, make in _planned(kind.upper(), kind in kinds):
                        made = make(op, self.blocks, _original(op, get(op, key), key))
                        library.impl(op, made.kernel, key)
                        self.seen.add(op)
            stance = torch.compiler.set_stance("force_eager")
        except BaseException:
            library._destroy()
            self.seen.clear()
            raise
        self._library, self._stance, self.kinds = library, stance, kinds
        self._sharing = Sharing(kinds)
        self._sharing.open()

    def _remove(self) -> None:
        library, self._library = self._library, None
        stance, self._stance = self._stance, None
        self.kinds = frozenset()
        if library is None:  # another device was to be served, which failed
            return
        library._destroy()
        stance.__exit__(None, None, None)
        self.seen.clear()
        if self._sharing is not None:
            self._sharing.close()
            self._sharing = None


_overrides = _Overrides()


def _original(op: Any, kernel: Any, key: str) -> Callable[..., Any]:
    """PyTorch's own kernel. It is told the key that it stands under: to be told by each call which
    keys there are costs a quarter of a microsecond.
    """
    if op in (torch.ops.aten.pow.Scalar, torch.ops.aten.pow.Scalar_out):
        return _power_of_number
    keys = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, key))
    return partial(kernel.call_boxed, keys)


def _power_of_number(base: Any, exponent: Any, **out: Any) -> Any:
    """PyTorch's power of a number. Its own kernel calls that of tensors, with a number on the GPU
    that PyTorch cannot hand to Python.
    """
    dtype = torch.result_type(base, exponent)
    return torch.pow(torch.full((), base, dtype=dtype, device=exponent.device), exponent, **out)


Make = Callable[..., Any]
"""Function of (operator, open blocks, PyTorch's kernel) that returns the overriding object."""


@cache
def _planned(key: str, ours: bool) -> list[tuple[Any, str, Make]]:
    """Returns operator, dispatch key and maker of the kernel for each override."""
    return list(_plan(key) if ours else _counted(key))


@cache
def _rows() -> dict[Any, Serve]:
    return {overload(f"aten::{name}"): _functional(name) for name in SERVED}


@cache
def functional() -> Mapping[Any, Serve]:
    """Returns functions of (tier, tensors) by operator: also ``out=`` and in-place forms, and
    operators of functional graphs that a block meets in another form.
    """
    put = dict.fromkeys(
        (torch.ops.aten.index_put.default, torch.ops.aten._unsafe_index_put.default), _put
    )
    return {**_rows(), **dict(_forms(_rows())), **put}


@cache
def functions() -> Collection[Any]:
    """Returns the operators of :func:`functional` that need no serving, but have a formula."""
    rows = {op: _rows()[op] for name in FUNCTIONS if (op := overload(f"aten::{name}"))}
    return {*rows, *(form for form, _ in _forms(rows))}


def _put(tier: str, x: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    if not accumulate:
        raise NotServed(ALONE)  # before the copy
    return DIRECT["_index_put_impl_"](tier, x.clone(), indices, values, accumulate)


_has = torch._C._dispatch_has_kernel_for_dispatch_key


def _plan(key: str) -> Iterator[tuple[Any, str, Make]]:
    rows, forms = _rows(), functional()
    runs = torch._C._dispatch_has_computed_kernel_for_dispatch_key

    def served(op: Any) -> bool:
        name = op.name()
        return _has(name, key) or (runs(name, key) and not _has(name, "CompositeImplicitAutograd"))

    above: dict[Any, Make] = {}
    for name, (lower, direct) in RECORDED.items():
        op = overload(f"aten::{name}")
        if runs(op.name(), key):  # PyTorch's builds for CPUs have no kernels of GPUs
            how = {"name": op.overloadpacket.__name__, "lower": lower, "recorded": direct}
            above[op] = partial(_AboveAutograd, **how)
    for name, (part, lower) in WHOLE.items():
        op = overload(f"aten::{name}")
        if op is not None and served(overload(f"aten::{part}")):
            above[op] = partial(_AboveAutograd, name=part, lower=lower)
    for op, make in above.items():
        yield op, f"Autograd{key}", make
        yield op, key, make
    for op in _operators():
        if op in above:
            continue
        if op in rows and served(op):
            name = op.name().removeprefix("aten::")
            how = {"lower": LOWERED.get(name), "direct": DIRECT.get(name)}
            yield op, key, partial(_BelowAutograd, **how)
        elif op in forms and served(op):
            yield op, key, partial(_BelowAutograd, lower=_writing().get(op), direct=forms[op])
        elif _has(op.name(), key) and reason(op) is None:
            yield op, key, _BelowAutograd


def _counted(key: str) -> Iterator[tuple[Any, str, Make]]:
    """Yields overrides that only count operators, for a device that is not served."""
    for op in _operators():
        served = op in functional() and op not in functions()
        if _has(op.name(), key) and (served or reason(op) is None):
            yield op, key, partial(_BelowAutograd, unserved=key.lower() if served else "")


def _operators() -> Iterator[Any]:
    for name in sorted(torch._C._dispatch_get_all_op_names()):
        found = overload(name) if name.startswith("aten::") else None
        if found is not None:
            yield found


def _forms(rows: dict[Any, Serve]) -> Iterator[tuple[Any, Serve]]:
    """Yields ``out=`` and in-place forms of operators, served by their functional forms."""
    for op, serve in rows.items():
        if op is None:
            continue
        packet = op.overloadpacket
        for name in packet.overloads():
            form = getattr(packet, name)
            arguments = form._schema.arguments
            outs = [a.name for a in arguments if a.kwarg_only and a.alias_info is not None]
            given = [(a.name, str(a.type)) for a in arguments if a.name not in outs]
            if outs and given == [(a.name, str(a.type)) for a in op._schema.arguments]:
                yield form, _to_out(serve, outs)
        for form in _in_places(op):
            yield form, _in_place(serve)


def _in_places(op: Any) -> Iterator[Any]:
    """Yields the in-place forms of an operator."""
    types = [str(a.type) for a in op._schema.arguments]
    packet = getattr(torch.ops.aten, f"{op.overloadpacket.__name__}_", None)
    for name in packet.overloads() if packet is not None else ():
        form = getattr(packet, name)
        if [str(a.type) for a in form._schema.arguments] == types:
            yield form


@cache
def _writing() -> Mapping[Any, Serve]:
    """Returns programs of the in-place forms of elementwise functions."""
    known = ((name, op) for name in FUNCTIONS if (op := overload(f"aten::{name}")))
    return {form: elementwise_in_place(name) for name, op in known for form in _in_places(op)}


def _to_out(serve: Serve, outs: list[str]) -> Serve:
    """Returns ``serve`` with its results copied to the ``out=`` arguments."""

    def to_out(tier: str, *args: Any, **options: Any) -> Any:
        targets = [options.pop(name) for name in outs]
        found = serve(tier, *args, **options)
        for target, y in zip(targets, found if len(outs) > 1 else (found,), strict=True):
            _check_cast(y, target)
            if target.shape != y.shape:
                target.resize_(y.shape)
            target.copy_(y)
        return tuple(targets) if len(outs) > 1 else targets[0]

    return to_out


def _in_place(serve: Serve) -> Serve:
    """Returns ``serve`` with its result copied to its first argument."""

    def in_place(tier: str, input: Any, *args: Any, **options: Any) -> Any:
        found = serve(tier, input, *args, **options)
        _check_cast(found, input)
        return input.copy_(found)

    return in_place


def _check_cast(found: Any, target: Any) -> None:
    """Raises NotServed where the result's dtype cannot be cast; PyTorch then raises its error."""
    if not torch.can_cast(found.dtype, target.dtype):
        raise NotServed(UNKNOWN)


def _exact(args: tuple[Any, ...], options: dict[str, Any]) -> bool:
    """Whether no argument is a float: sums of integers have no order."""
    dtype = options.get("dtype")
    if isinstance(dtype, torch.dtype):
        return not (dtype.is_floating_point or dtype.is_complex)
    return not any(
        t.dtype.is_floating_point or t.dtype.is_complex
        for t in leaves((args, options), torch.Tensor)
    )


# -- programs ---------------------------------------------------------------------------------
_KINDS = {"Tensor": ARRAY, "Optional[Tensor]": OPTIONAL}
_PLAIN = {
    **dict.fromkeys(("int", "bool", "str"), "{0}"),
    **dict.fromkeys(("List[int]", "List[bool]"), "$tuple({0})"),
    **dict.fromkeys(("float", "number"), None),
}
"""Code that makes a memo key of an argument, by its type in PyTorch's schemas."""


@dataclass(frozen=True)
class _Plain(Option):
    """An argument that is no tensor, of a type in PyTorch's schemas."""

    text: str

    @property
    def key(self) -> str | None:
        """Code that makes a hashable key of the argument (:attr:`Option.key`)."""
        optional = self.text.startswith("Optional[")
        found = _PLAIN[self.text[len("Optional[") : -1] if optional else self.text]
        lists = optional and found == "$tuple({0})"
        return f"(None if {{0}} is None else {found})" if lists else found


_TIER = Parameter("tier", OPTION, "auto", True, Option())
_DECIDES = ("$default_dtype()",)
"""Code of further key parts of functions: the default dtype, which integers are promoted to."""
_DECIDING_NAMES = {"$default_dtype": torch.get_default_dtype}
_memos: dict[tuple[str, bool], Memo] = {}
"""Generated code of each operator, by name; shared by all blocks of the process."""


def _parameters(op: Any) -> list[Parameter]:
    """Returns the parameters of an operator, then the tier."""
    found = []
    for i, argument in enumerate(op._schema.arguments):
        kind, text = OPTION, str(argument.type)
        if text in _KINDS:
            kind = _KINDS[text]
        name = argument.name if argument.kwarg_only else f"a{i}"
        default = argument.default_value if argument.has_default_value() else NEEDED
        option = _Plain(text) if kind == OPTION else None
        found.append(Parameter(name, kind, default, argument.kwarg_only, option))
    return [*found, _TIER]


def _frame(
    op: Any,
    name: str,
    lower: Serve,
    blocks: list[batch_invariant],
    slow_path: Any,
    recorded: Callable[..., Any] | None = None,
) -> Frame:
    """Returns the frame that calls an operator's program, for the block entered last. ``recorded``:
    for an operator above autograd, the function of all arguments by place that autograd records.
    """
    above = recorded is not None
    checks = ("$block is not None", *(("$forward_ad._current_level < 0",) if above else ()))
    if name in WIDENED:
        checks = (*checks, "not $any_autocast()")
    keyed: tuple[str, ...] = ("$block.tier",)
    if op in functions():
        checks, keyed = (*checks, "$block.functions"), (*keyed, *_DECIDES)
    hooks = Hooks(
        before=("$block = $blocks[-1] if $blocks else None",),
        checks=checks,
        keyed=keyed,
        hit=("$counts = $block.served", "$counts[$name] = $counts.get($name, 0) + 1"),
        names={
            "$blocks": blocks,
            "$name": name,
            "$forward_ad": forward_ad,
            "$any_autocast": any_autocast,
            "$recording": torch.is_grad_enabled,
            **_DECIDING_NAMES,
        },
        autograd=above,
        recorded=recorded,
    )
    takes = _parameters(op)
    memo = _memos.setdefault((str(op), above), {})
    made = operation(op.overloadpacket.__name__, lower, takes)
    return Frame(
        made,
        copies=True,
        aliases=op in _writing(),
        hooks=hooks,
        slow_path=slow_path,
        memo=memo,
        given=takes[:-1],
    )


def _carried_out(frame: Frame, memo: Memo | None, key: Any, args: Sequence[Any], tier: str) -> Any:
    """Runs a call by its operator's program."""
    return invoke(frame, dict(zip(frame.names, (*args, tier), strict=True)), memo, key)


class _unrecorded:  # noqa: N801 - read like torch.no_grad, of which it is the quick half
    def __enter__(self) -> None:
        self.before = torch.is_grad_enabled()
        if self.before:
            torch._C._set_grad_enabled(False)

    def __exit__(self, *_: object) -> None:
        if self.before:
            torch._C._set_grad_enabled(True)


def _functional(name: str) -> Serve:
    """Returns the function of (tier, tensors) for ATen operator ``name``.

    It runs the operator's program if there is one, else the direct implementation.
    """
    if name not in LOWERED:
        return DIRECT[name]

    @cache
    def function() -> Callable[..., Any]:
        op = operation(name, LOWERED[name], _parameters(overload(f"aten::{name}")))
        hooks = Hooks(keyed=_DECIDES, names=_DECIDING_NAMES) if name in FUNCTIONS else Hooks()
        return Frame(op, copies=True, hooks=hooks).function

    def serve(tier: str, *args: Any, **named: Any) -> Any:
        with _unrecorded():
            try:
                return function()(*args, **named, tier=tier)
            except NotServed as left:
                if left.args[0] != PARTS or name not in DIRECT:
                    raise
        return DIRECT[name](tier, *args, **named)

    return serve


def _splitting(op: Any) -> Callable[[tuple[Any, ...]], tuple[tuple[Any, ...], dict[str, Any]]]:
    """Returns a function that splits arguments by place into positional and keyword arguments."""
    named = [a.name for a in op._schema.arguments if a.kwarg_only]
    count = len(op._schema.arguments) - len(named)
    return lambda args: (args[:count], dict(zip(named, args[count:], strict=True)))


class _BelowAutograd:
    """Overriding kernel of an operator below autograd, for one set of open blocks.

    A call runs the operator's program (``lower``), or a function of tensors (``direct``) where
    there is no program or it raises NotServed with PARTS. Where neither serves the call, it is
    counted and goes to PyTorch's kernel (``original``). ``unserved``: the kind of device, if the
    operator is served on others.
    """

    def __init__(
        self,
        op: Any,
        blocks: list[batch_invariant],
        original: Callable[..., Any],
        lower: Serve | None = None,
        direct: Serve | None = None,
        unserved: str = "",
    ) -> None:
        self.op, self.direct, self.unserved = op, direct, unserved
        self.blocks, self.original = blocks, original
        self.name, self.optional = op.overloadpacket.__name__, op in functions()
        self.split = _splitting(op)
        self.free: dict[Any, bool] = {}
        """Calls of elementwise functions without a formula, by key."""
        self.parts: dict[Any, bool] = {}
        """Calls that no program serves, by key."""
        self.kernel: Callable[..., Any] = self.call
        if lower is not None:
            self.kernel = _frame(op, self.name, lower, blocks, self.slow_path).function

    def call(self, *args: Any, **options: Any) -> Any:
        """Serves a call of an operator without a program."""
        return self._served([], args, options, None)

    def slow_path(self, frame: Frame, memo: Memo | None, key: Any, *args: Any) -> Any:
        """Serves a call for which no code has been generated yet."""
        ways: list[Callable[[str], Any]] = []
        # Programs do not write to expanded tensors; the function of tensors raises PyTorch's error.
        if key not in self.parts and not (self.op in _writing() and 0 in args[0].stride()):
            ways.append(partial(_carried_out, frame, memo, key, args))
        return self._served(ways, *self.split(args), key)

    def _served(self, ways: list[Callable[[str], Any]], args: Any, options: Any, key: Any) -> Any:
        """Returns the result of the first of ``ways`` that serves the call, else of PyTorch."""
        if not self.blocks or (self.optional and not self.blocks[-1].functions):
            return self.original(*args, **options)
        block, why, direct = self.blocks[-1], UNKNOWN, self.direct
        if key in self.free:
            block.free[self.name] += 1
            return self.original(*args, **options)
        if direct is not None:
            ways.append(lambda tier: direct(tier, *args, **options))
        for way in ways:
            try:
                with _unrecorded():
                    found = way(block.tier)
                block.served[self.name] += 1
                return found
            except NotServed as left:
                why = left.args[0]
            except (DtypeError, DeviceError):
                why = UNKNOWN
            if why != PARTS:
                break
            if key is not None:
                remember(self.parts, key, True)
        if self.optional and key is not None:
            remember(self.free, key, True)
        if why == ALONE or self.optional or _exact(args, options):
            block.free[self.name] += 1
        else:
            block.count_unknown(str(self.op), self.unserved)
        return self.original(*args, **options)


class _AboveAutograd:
    """Overriding kernel of an operator above autograd, counted as ``name``. Runs the program where
    autograd records nothing, else the function ``recorded``, if there is one.
    """

    def __init__(
        self,
        op: Any,
        blocks: list[batch_invariant],
        original: Callable[..., Any],
        name: str,
        lower: Serve,
        recorded: Serve | None = None,
    ) -> None:
        self.op, self.name, self.recorded = op, name, recorded
        self.blocks, self.original = blocks, original
        self.split, self.widens = _splitting(op), name in WIDENED
        self.refused = NotServed if recorded is None else (NotServed, DtypeError)
        self.parts: dict[Any, bool] = {}
        """Calls that no program of this operator serves, by key."""
        plain = not any(a.kwarg_only for a in op._schema.arguments)
        autograd = original if recorded is None and plain else self.autograd
        self.kernel = _frame(op, name, lower, blocks, self.slow_path, autograd).function

    def autograd(self, *args: Any) -> Any:
        """Serves a call that autograd records."""
        if self.widens and autocast_widens(args[0]):
            args = args[0].float(), *args[1:]
        placed, options = self.split(args)
        if not self.blocks or self.recorded is None:
            return self.original(*placed, **options)
        block = self.blocks[-1]
        try:
            found = self.recorded(block.tier, *placed, **options)
        except (NotServed, DtypeError) as why:
            return self._left(block, why, placed, options)
        block.served[self.name] += 1
        return found

    def slow_path(self, frame: Frame, memo: Memo | None, key: Any, *args: Any) -> Any:
        """Serves a call for which no code has been generated yet."""
        if not self.blocks or _watched(args) or (self.widens and autocast_widens(args[0])):
            return self.autograd(*args)
        block, (placed, options) = self.blocks[-1], self.split(args)
        if key in self.parts:
            return self.original(*placed, **options)
        try:
            with _unrecorded():
                found = _carried_out(frame, memo, key, args, block.tier)
        except self.refused as why:
            if self.recorded is None and key is not None:
                remember(self.parts, key, True)
            return self._left(block, why, placed, options)
        block.served[self.name] += 1
        return found

    def _left(self, block: batch_invariant, why: Exception, placed: Any, options: Any) -> Any:
        """Returns the result of PyTorch's kernel for a call that is not served."""
        if self.recorded is not None and _exact(placed, options):
            block.free[self.name] += 1
        elif self.recorded is not None and why.args[0] != PARTS:  # each part says what it is
            block.count_unknown(str(self.op))
        return self.original(*placed, **options)


def _watched(given: Iterable[Any]) -> bool:
    """Whether some tensor is a subclass, requires grad or may have a tangent."""
    recorded = torch.is_grad_enabled()
    return forward_ad._current_level >= 0 or any(
        type(t) not in PLAIN or (recorded and t.requires_grad)
        for t in given
        if isinstance(t, torch.Tensor)
    )
