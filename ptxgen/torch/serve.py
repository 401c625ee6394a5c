"""``batch_invariant``: a block inside which rows of ATen's results do not depend on the batch.

While a ``with batch_invariant():`` block is open, kernels are overridden in PyTorch's dispatcher;
operators that need no override cost nothing. The overrides are global to the process: one set for
all open blocks.
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
    BITSANDBYTES,
    DIRECT,
    INFERENCE,
    LOWERED,
    RECORDED,
    SERVED,
    WIDENED,
    autocast_widens,
    elementwise_in_place,
    operation,
)
from ptxgen.torch.functional import any_autocast
from ptxgen.torch.functions import FUNCTIONS
from ptxgen.torch.module import check_tier
from ptxgen.torch.patches import Patches, Undo, patches
from ptxgen.torch.record import PLAIN
from ptxgen.torch.trees import leaves
from ptxgen.torch.unserved import (
    ELEMENTWISE,
    REFUSED,
    ROW_WISE,
    TRY_NEXT,
    UNKNOWN,
    NotServed,
    Serve,
    draws,
    overload,
    reason,
)

KINDS = ("cuda", "cpu", "mps", "xpu")
"""Device types on which operators are overridden while a ``batch_invariant()`` block is open. On
those that ptxgen does not support, the overrides count operators as unknown.
"""


def served_kinds() -> frozenset[str]:
    """Returns the device types on which ptxgen computes now: "cuda", and "cpu" where the CPU device
    is ptxgen's default device.
    """
    try:
        kind = default_device().kind
    except DeviceError:  # a GPU that cannot be used says so when it is asked to compute
        kind = "cuda"
    return frozenset({"cuda", kind})


@dataclass
class Report:
    """Counts of the operators that ran in a ``batch_invariant()`` block, by name."""

    served: Counter[str] = field(default_factory=Counter)
    """Operators that ptxgen computed."""
    free: Counter[str] = field(default_factory=Counter)
    """Operators left to PyTorch, as their rows cannot depend on the batch; pointwise ones, copies
    and views are counted with ``watch=True`` only.
    """
    unknown: Counter[str] = field(default_factory=Counter)
    """Operators that PyTorch computed, and whose rows may depend on the batch."""

    def __str__(self) -> str:
        served, free = ("served", self.served), ("needs no serving", self.free)
        return "\n".join(counted(served, free, (UNKNOWN_TITLE, self.unknown)))


UNKNOWN_TITLE = "unknown: may depend on the batch"


def counted(*groups: tuple[str, Counter[str]]) -> list[str]:
    """Returns lines of a report: for each title and counter the total, then names with counts."""
    lines = []
    for title, counts in groups:
        lines.append(f"{title}: {sum(counts.values())}")
        lines += [f"  {count:8} {name}" for name, count in counts.most_common()]
    return lines


class batch_invariant:  # noqa: N801 - used as a statement: with batch_invariant():
    """Context manager: inside, a row of a result depends on that row, not on the rest of the batch.

    An operator of ATen (float32, bfloat16, float16, float64) falls in one of three lists. They hold
    for CUDA tensors, and for CPU tensors where the CPU device is the default one when the block is
    entered (``with ptxgen.use_device("cpu"):``, or no GPU):

    - **served**: ptxgen computes products, sums, means, variances, softmax, norms, attention and
      their backward passes (:data:`ptxgen.torch.aten.SERVED` and ``RECORDED``), and unless
      ``functions=False`` exp, tanh, silu and the like (:data:`ptxgen.torch.functions.FUNCTIONS`);
    - **free**: PyTorch computes other pointwise operators, copies, views and exact results, at no
      extra cost (:mod:`ptxgen.torch.unserved` has the rules and the reasons);
    - **unknown**: PyTorch computes all other operators, and on other devices all that are not free.
      They are counted; with ``strict=True`` they raise UnservedError, unless ``allow`` names them.
      Layers of other libraries whose kernels PyTorch's dispatcher does not see count as operators
      (:data:`ptxgen.torch.patches.LAYERS`), and so do activations that compressed-tensors
      quantizes; products of bitsandbytes with weights of 4 bits are served.

    :meth:`report` returns the three lists with counts; ``served``, ``free`` and ``unknown`` are the
    counters. Most free operators are counted with ``watch=True`` only, which costs some
    microseconds for every operator of the entering thread; ``strict=True`` watches as well, to see
    operators of other libraries.

    The overrides are global to the process, so other threads are served as well, autograd's among
    them. Backward passes started in the entering thread run in that thread: a thread of autograd
    costs each some tens of microseconds more, as Python's memory is in another core's caches.
    Blocks nest, and the one entered last applies. A block may be entered again. Code compiled by
    ``torch.compile`` runs uncompiled inside. Entering takes some milliseconds. A block warns once
    for each device type of tensors that it does not serve.

    ``tier``: units for products, "simt" (FMA), "tc" (tensor cores) or "auto". ``functions``:
    whether :mod:`ptxgen.functions` replace the elementwise functions of PyTorch's math libraries.
    Rows do not depend on the batch either way; with them, a model's results do not depend on
    versions of PyTorch and CUDA.

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
        self.tier = check_tier(tier)
        self.functions = functions
        self.strict = strict
        self.allow = frozenset(allow)
        self._report = Report()
        self.served = self._report.served
        self.free = self._report.free
        self.unknown = self._report.unknown
        self._watching = watch or strict
        self._modes: list[_CountingMode] = []
        self._threads: list[torch.autograd.set_multithreading_enabled] = []
        self._casts: list[bool] = []
        self._warned: set[str] = set()

    def report(self) -> Report:
        """Returns the report of this block, with counts of served, free and unknown operators;
        ``print`` shows them.
        """
        return self._report

    def __enter__(self) -> batch_invariant:
        _overrides.open(self)
        self._threads.append(torch.autograd.set_multithreading_enabled(False))
        self._casts.append(torch.is_autocast_cache_enabled())
        torch.set_autocast_cache_enabled(False)
        if self._watching:
            self._modes.append(_CountingMode(self))
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

    def count_unknown(self, name: str, unserved: str = "", why: str = "") -> None:
        """Counts a call of an unknown operator. If strict, raises UnservedError unless ``allow``
        names the operator. ``unserved``: the device type, if ptxgen computes the operator on
        others; the first call on each such type warns. ``why``: the reason, where there is more to
        say.
        """
        self.unknown[name] += 1
        if self.strict and name not in self.allow:
            where = f" on {unserved} tensors: {_REMEDIES[unserved]}" if unserved else ""
            where = f" ({why})" if why else where
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
"""Advice for tensors on a device type that ptxgen does not serve, by type."""


class _CountingMode(TorchDispatchMode):
    """Dispatch mode that counts operators which a ``batch_invariant()`` block does not override,
    and overridden ones on sparse and other layouts, whose kernels it does not override.
    """

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
        elif (
            space not in KNOWN
            and func.name().partition(".")[0] not in ELEMENTWISE
            and any(t.device.type in _overrides.kinds for t in leaves((args, kwargs), torch.Tensor))
        ):
            self.block.count_unknown(str(func))
        return func(*args, **kwargs)


KNOWN = {"ptxgen", "prim", "prims"}
"""Namespaces of operators, besides aten, that belong to PyTorch or ptxgen: the counting mode does
not report them as unknown.
"""


def _is_available(kind: str) -> bool:
    """Whether tensors can be on device type ``kind`` in this process."""
    backend = {"mps": torch.backends.mps, "xpu": torch.xpu}.get(kind)
    return backend is None or backend.is_available()


# -- overriding -----------------------------------------------------------------------------
class _Overrides:
    """Overriding kernels in PyTorch's dispatcher while any ``batch_invariant()`` block is open.
    They serve the device types on which ptxgen computed when the last open block was entered.
    """

    def __init__(self) -> None:
        self.blocks: list[batch_invariant] = []
        self.seen: set[Any] = set()
        self.kinds: frozenset[str] = frozenset()
        self._entered: list[frozenset[str]] = []
        self._lock = Lock()
        self._library: Any = None
        self._stance: Any = None
        self._patches: Patches | None = None

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
        """Overrides PyTorch's kernels, unless that is done for ``kinds`` already: ptxgen computes
        on the device types ``kinds``, and the overrides only count calls on the others of
        :data:`KINDS`. Raises PtxgenError if PyTorch is too old.
        """
        if kinds == self.kinds:
            return
        if not hasattr(torch.library, "get_kernel"):
            raise PtxgenError(
                f"batch_invariant needs torch.library.get_kernel, which PyTorch {torch.__version__}"
                " does not have; use a newer one"
            )
        self._remove()
        library = torch.library.Library("aten", "IMPL")
        try:
            for kind in filter(_is_available, KINDS):
                self._override(library, _planned(kind.upper(), kind in kinds))
            stance = torch.compiler.set_stance("force_eager")
        except BaseException:
            library._destroy()
            self.seen.clear()
            raise
        self._library, self._stance, self.kinds = library, stance, kinds
        self._patches = Patches({**patches(kinds, self._count), "bitsandbytes": self._serve_4bit})
        self._patches.open()

    def _override(self, library: Any, planned: Iterable[_Override]) -> None:
        """Overrides operators by kernels of ``library``."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=r"[\s\S]*previously registered kernel")
            for each in planned:
                library.impl(each.op, each.kernel(self.blocks), each.key)
                self.seen.add(each.op)

    def _remove(self) -> None:
        library, self._library = self._library, None
        stance, self._stance = self._stance, None
        self.kinds = frozenset()
        if library is None:  # another device was to be served, which failed
            return
        library._destroy()
        stance.__exit__(None, None, None)
        self.seen.clear()
        if self._patches is not None:
            self._patches.close()
            self._patches = None

    def _count(self, name: str, why: str) -> None:
        """Counts a call of an unknown operator in the block entered last."""
        if self.blocks:
            self.blocks[-1].count_unknown(name, why=why)

    def _serve_4bit(self, module: Any) -> Iterator[Undo]:
        """Overrides the products of bitsandbytes, once its ``module`` has registered them."""
        library = torch.library.Library("bitsandbytes", "IMPL")
        yield library._destroy
        ops = ((overload(f"bitsandbytes::{name}"), direct) for name, direct in BITSANDBYTES.items())
        self._override(
            library,
            (
                _Override(op, key, partial(_BelowAutograd, direct=direct))
                for op, direct in ops
                for key in map(str.upper, self.kinds)
                if op is not None and _runs(op.name(), key)
            ),
        )


_overrides = _Overrides()


class _Override:
    """Overriding kernel of an operator for a dispatch key, for all ``batch_invariant()`` blocks of
    the process: it is made for the first, as its code takes three quarters of the time of entering.

    ``make``: creates the object whose ``kernel`` overrides the operator.
    """

    def __init__(self, op: Any, key: str, make: Make) -> None:
        self.op, self.key, self._make = op, key, make
        self._kernel: Callable[..., Any]
        self._original: partial[Any] | None = None

    def kernel(self, blocks: list[batch_invariant]) -> Callable[..., Any]:
        """Returns the overriding kernel. It calls what is now PyTorch's own kernel, which another
        library may have replaced since the last block.
        """
        own = torch.library.get_kernel(self.op, self.key)
        # The keys are bound: computing them in each call costs a quarter of a microsecond.
        original = partial(own.call_boxed, _key_set(self.key))
        if self._original is None:
            self._original = original
            scalar = self.op in (torch.ops.aten.pow.Scalar, torch.ops.aten.pow.Scalar_out)
            self._kernel = self._make(self.op, blocks, _scalar_power if scalar else original).kernel
        else:  # rebound in place: generated code has this object
            self._original.__setstate__((original.func, original.args, {}, None))  # type: ignore[attr-defined]
        return self._kernel


@cache
def _key_set(key: str) -> Any:
    return torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, key))


def _scalar_power(base: Any, exponent: Any, **out: Any) -> Any:
    """Computes ``torch.pow`` of a scalar ``base`` and a tensor by the overload of two tensors.
    PyTorch's own kernel calls that overload, too, but with a scalar on the GPU that PyTorch cannot
    hand to Python.
    """
    dtype = torch.result_type(base, exponent)
    return torch.pow(torch.full((), base, dtype=dtype, device=exponent.device), exponent, **out)


Make = Callable[..., Any]
"""Type of functions that create the override of an operator. They take the operator, the list of
open blocks and PyTorch's kernel, and return an object whose ``kernel`` is the overriding function.
"""


@cache
def _planned(key: str, ours: bool) -> list[_Override]:
    """Returns the overrides on device type ``key``; ``ours``: whether ptxgen computes there."""
    return [_Override(*each) for each in (_plan(key) if ours else _counted(key))]


@cache
def _rows() -> dict[Any, Serve]:
    return {overload(f"aten::{name}"): _functional(name) for name in SERVED}


@cache
def functional() -> Mapping[Any, Serve]:
    """Returns a mapping from each ATen overload that ptxgen computes to a function (tier,
    tensors...) that computes it. Overloads are functional, ``out=`` and in-place ones, and the
    functional ``index_put``, which occurs in functionalised graphs only.
    """
    put = dict.fromkeys(
        (torch.ops.aten.index_put.default, torch.ops.aten._unsafe_index_put.default), _put
    )
    return {**_rows(), **dict(_forms(_rows())), **put}


@cache
def functions() -> Collection[Any]:
    """Returns all overloads of the operators in :data:`FUNCTIONS`, ``out=`` and in-place ones
    included. Rows of PyTorch's own do not depend on the batch, either: ``functions=False`` leaves
    them to PyTorch.
    """
    rows = {op: _rows()[op] for name in FUNCTIONS if (op := overload(f"aten::{name}"))}
    return {*rows, *(form for form, _ in _forms(rows))}


_PUTS = {"index_put", "_unsafe_index_put", "_index_put_impl"}
"""Names of operators that move values, and add them only if ``accumulate`` is set."""


def listed(op: Any, args: Sequence[Any] = (), options: Mapping[str, Any] | None = None) -> str:
    """Returns the list in which a block on a GPU counts this call of an operator: "served", "free"
    or "unknown". No block needs to be open.

    Operators that PyTorch composes of others are "unknown", as their parts say what they are. So
    are operators of other libraries, unless they compute with integers only.
    """
    options = dict(options or {})
    if _exact(tuple(args), options) and not draws(op):
        return "free"
    if op.namespace != "aten":
        return "unknown"
    puts = op.overloadpacket.__name__.removesuffix("_") in _PUTS
    if puts and not (options.get("accumulate") or (len(args) > 3 and args[3])):
        return "free"
    if op in functional():
        return "served"
    return "unknown" if reason(op) is None else "free"


def _put(tier: str, x: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    if not accumulate:
        raise NotServed(ROW_WISE)  # before the copy
    return DIRECT["_index_put_impl_"](tier, x.clone(), indices, values, accumulate)


_has = torch._C._dispatch_has_kernel_for_dispatch_key
_runs = torch._C._dispatch_has_computed_kernel_for_dispatch_key


def _plan(key: str) -> Iterator[tuple[Any, str, Make]]:
    rows, forms = _rows(), functional()

    def served(op: Any) -> bool:
        name = op.name()
        return _has(name, key) or (_runs(name, key) and not _has(name, "CompositeImplicitAutograd"))

    above: dict[Any, Make] = {}
    for name, (lower, direct) in RECORDED.items():
        op = overload(f"aten::{name}")
        if _runs(op.name(), key):  # PyTorch's builds for CPUs have no kernels of GPUs
            how = {"name": op.overloadpacket.__name__, "lower": lower, "recorded": direct}
            above[op] = partial(_AboveAutograd, **how)
    for name, (part, lower) in INFERENCE.items():
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
    """Yields (operator, dispatch key, maker of the override) for device type ``key``, which ptxgen
    does not serve: these overrides count calls and run PyTorch's kernels.
    """
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
    """Yields each ``out=`` and in-place overload of the operators in ``rows``, with a function that
    calls the functional form and copies its results. ``rows``: functions by functional overload.
    """
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
    """Yields the in-place overloads of a functional operator."""
    types = [str(a.type) for a in op._schema.arguments]
    packet = getattr(torch.ops.aten, f"{op.overloadpacket.__name__}_", None)
    for name in packet.overloads() if packet is not None else ():
        form = getattr(packet, name)
        if [str(a.type) for a in form._schema.arguments] == types:
            yield form


@cache
def _writing() -> Mapping[Any, Serve]:
    """Returns handlers, by in-place overload, of elementwise functions; their programs write in
    place.
    """
    known = ((name, op) for name in FUNCTIONS if (op := overload(f"aten::{name}")))
    return {form: elementwise_in_place(name) for name, op in known for form in _in_places(op)}


def _to_out(serve: Serve, outs: list[str]) -> Serve:
    """Returns a function that calls ``serve``, copies its results to the ``out=`` arguments, and
    returns these. ``outs``: their names.
    """

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
    """Returns a function that calls ``serve``, copies its result to the first argument, and returns
    that.
    """

    def in_place(tier: str, input: Any, *args: Any, **options: Any) -> Any:
        found = serve(tier, input, *args, **options)
        _check_cast(found, input)
        return input.copy_(found)

    return in_place


def _check_cast(found: Any, target: Any) -> None:
    """Raises NotServed if a result cannot be cast to its target's dtype; PyTorch then raises its
    error.
    """
    if not torch.can_cast(found.dtype, target.dtype):
        raise NotServed(UNKNOWN)


def _exact(args: tuple[Any, ...], options: dict[str, Any]) -> bool:
    """Whether a call computes with integers only, whose sums do not depend on the order of
    additions.
    """
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
"""Python expressions, as source, that identify an argument ``{0}`` in the key of generated code, by
the argument's type in PyTorch's schemas; None where the general expression does
(:attr:`Option.key`).
"""


@dataclass(frozen=True)
class _Plain(Option):
    """Option for an argument that is no tensor. ``text``: its type in PyTorch's schema."""

    text: str

    @property
    def key(self) -> str | None:
        """Python expression, as source, that identifies the argument ``{0}`` in the key of
        generated code; None where the general expression does (:attr:`Option.key`).
        """
        optional = self.text.startswith("Optional[")
        found = _PLAIN[self.text[len("Optional[") : -1] if optional else self.text]
        lists = optional and found == "$tuple({0})"
        return f"(None if {{0}} is None else {found})" if lists else found


_TIER = Parameter("tier", OPTION, "auto", True, Option())
_DECIDES = ("$default_dtype()",)
"""Python expression, as source, added to the key of an elementwise function's generated code: the
default dtype, which decides the result's dtype for integers.
"""
_DECIDING_NAMES = {"$default_dtype": torch.get_default_dtype}
_memos: dict[tuple[str, bool], Memo] = {}
"""Generated code of each operator by (overload, whether above autograd), for all blocks of the
process.
"""


def _parameters(op: Any) -> list[Parameter]:
    """Returns an ATen operator's parameters as those of an operation, the tier last."""
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
    """Returns the :class:`Frame` that runs operator ``op`` as a program, with the tier of the block
    entered last.

    ``name``: the operator's name in reports; ``lower``: its handler; ``slow_path``: the function
    for calls without generated code; ``recorded``: for an operator above autograd, the function (of
    all arguments in order) for calls that autograd records.
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


def _run_program(frame: Frame, memo: Memo | None, key: Any, args: Sequence[Any], tier: str) -> Any:
    """Runs a call as a program; returns the results. Caches its generated code in ``memo`` under
    ``key``. ``args``: all arguments in order, without the tier.
    """
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
    """Returns the function (tier, tensors...) that computes ATen operator ``name``.

    It runs the operator's program; without one, or after NotServed(TRY_NEXT), the handler in
    DIRECT.
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
                if left.args[0] != TRY_NEXT or name not in DIRECT:
                    raise
        return DIRECT[name](tier, *args, **named)

    return serve


def _splitting(op: Any) -> Callable[[tuple[Any, ...]], tuple[tuple[Any, ...], dict[str, Any]]]:
    """Returns a function that splits an operator's arguments, all given in order, into positional
    and keyword arguments.
    """
    named = [a.name for a in op._schema.arguments if a.kwarg_only]
    count = len(op._schema.arguments) - len(named)
    return lambda args: (args[:count], dict(zip(named, args[count:], strict=True)))


class _BelowAutograd:
    """Overriding kernel of an operator below autograd, for the open ``batch_invariant()``
    ``blocks``.

    A call runs the operator's program (``lower``); without one, or after NotServed(TRY_NEXT), the
    handler of tensors ``direct``. A call that neither supports is counted and goes to PyTorch's
    kernel (``original``). ``unserved``: the device type, if ptxgen computes the operator on others.
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
        self.why, self.split = REFUSED.get(self.name, ""), _splitting(op)
        self.free: dict[Any, bool] = {}
        """Keys of the calls of elementwise functions that no formula supports."""
        self.parts: dict[Any, bool] = {}
        """Keys of the calls that no program supports."""
        self.kernel: Callable[..., Any] = self.call
        if lower is not None:
            self.kernel = _frame(op, self.name, lower, blocks, self.slow_path).function

    def call(self, *args: Any, **options: Any) -> Any:
        """Computes a call of an operator that has no program, by the handler ``direct`` or
        PyTorch's kernel.
        """
        return self._served([], args, options, None)

    def slow_path(self, frame: Frame, memo: Memo | None, key: Any, *args: Any) -> Any:
        """Computes a call for which there is no generated code yet: by the operator's program,
        whose code is then generated and cached in ``memo`` under ``key``; else by the handler
        ``direct`` or PyTorch's kernel. ``args``: all arguments in order.
        """
        attempts: list[Callable[[str], Any]] = []
        # Programs do not write to expanded tensors; the function of tensors raises PyTorch's error.
        if key not in self.parts and not (self.op in _writing() and 0 in args[0].stride()):
            attempts.append(partial(_run_program, frame, memo, key, args))
        return self._served(attempts, *self.split(args), key)

    def _served(
        self, attempts: list[Callable[[str], Any]], args: Any, options: Any, key: Any
    ) -> Any:
        """Returns the result of the first function that supports the call: those in ``attempts``,
        which take the tier, the handler ``direct``, and at last PyTorch's kernel. Counts the call
        as served, free or unknown. ``key``: identifies calls of one kind, to skip what failed
        before; or None.
        """
        if not self.blocks or (self.optional and not self.blocks[-1].functions):
            return self.original(*args, **options)
        block, why, direct = self.blocks[-1], UNKNOWN, self.direct
        if key in self.free:
            block.free[self.name] += 1
            return self.original(*args, **options)
        if direct is not None:
            attempts.append(lambda tier: direct(tier, *args, **options))
        for attempt in attempts:
            try:
                with _unrecorded():
                    found = attempt(block.tier)
                block.served[self.name] += 1
                return found
            except NotServed as left:
                why = left.args[0]
            except (DtypeError, DeviceError):
                why = UNKNOWN
            if why != TRY_NEXT:
                break
            if key is not None:
                remember(self.parts, key, True)
        if self.optional and key is not None:
            remember(self.free, key, True)
        if why == ROW_WISE or self.optional or _exact(args, options):
            block.free[self.name] += 1
        else:
            block.count_unknown(str(self.op), self.unserved, self.why)
        return self.original(*args, **options)


class _AboveAutograd:
    """Overriding kernel of an operator above autograd, counted as ``name``. Runs the program
    ``lower`` where autograd records nothing, else ``recorded`` or, without one, PyTorch's kernel.
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
        """Keys of the calls that no program of this operator supports."""
        plain = not any(a.kwarg_only for a in op._schema.arguments)
        autograd = original if recorded is None and plain else self.autograd
        self.kernel = _frame(op, name, lower, blocks, self.slow_path, autograd).function

    def autograd(self, *args: Any) -> Any:
        """Computes a call that autograd records, by the handler ``recorded`` if there is one and it
        supports the call, else by PyTorch's kernel. ``args``: all arguments in order.
        """
        if self.widens and autocast_widens(args[0]):
            args = args[0].float(), *args[1:]
        placed, options = self.split(args)
        if not self.blocks or self.recorded is None:
            return self.original(*placed, **options)
        block = self.blocks[-1]
        try:
            found = self.recorded(block.tier, *placed, **options)
        except (NotServed, DtypeError) as why:
            return self._fall_back(block, why, placed, options)
        block.served[self.name] += 1
        return found

    def slow_path(self, frame: Frame, memo: Memo | None, key: Any, *args: Any) -> Any:
        """Computes a call for which there is no generated code yet: by the operator's program,
        whose code is then generated and cached in ``memo`` under ``key``; by :meth:`autograd` if
        autograd records the call; else by PyTorch's kernel. ``args``: all arguments in order.
        """
        if not self.blocks or _needs_autograd(args) or (self.widens and autocast_widens(args[0])):
            return self.autograd(*args)
        block, (placed, options) = self.blocks[-1], self.split(args)
        if key in self.parts:
            return self.original(*placed, **options)
        try:
            with _unrecorded():
                found = _run_program(frame, memo, key, args, block.tier)
        except self.refused as why:
            if self.recorded is None and key is not None:
                remember(self.parts, key, True)
            return self._fall_back(block, why, placed, options)
        block.served[self.name] += 1
        return found

    def _fall_back(self, block: batch_invariant, why: Exception, placed: Any, options: Any) -> Any:
        """Returns the result of PyTorch's kernel for a call that ptxgen does not support. Counts
        the call as free or unknown, unless PyTorch composes it of operators that are counted
        themselves.

        ``why``: the exception that declined the call; ``placed``, ``options``: its positional and
        keyword arguments.
        """
        if self.recorded is not None and _exact(placed, options):
            block.free[self.name] += 1
        elif self.recorded is not None and why.args[0] != TRY_NEXT:  # each part says what it is
            block.count_unknown(str(self.op))
        return self.original(*placed, **options)


def _needs_autograd(given: Iterable[Any]) -> bool:
    """Whether an argument is a tensor subclass, requires grad, or may have a tangent."""
    recorded = torch.is_grad_enabled()
    return forward_ad._current_level >= 0 or any(
        type(t) not in PLAIN or (recorded and t.requires_grad)
        for t in given
        if isinstance(t, torch.Tensor)
    )
