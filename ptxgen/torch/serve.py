"""``batch_invariant``: ATen inside a block, with rows that do not depend on the batch.

PyTorch's kernels are overridden in its dispatcher while a block is open, so what needs no serving
is not touched and costs nothing. The overrides are the process's: one set for all open blocks.
"""

from __future__ import annotations

import functools
import os
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import torch
from torch.autograd import forward_ad
from torch.utils._python_dispatch import TorchDispatchMode

from ptxgen.errors import DtypeError, PtxgenError, UnservedError
from ptxgen.ops.replay import NEEDED, Memo, Parameter, front
from ptxgen.torch.aten import ALONE, COMPOSED, PARTS, SERVED, WHOLE, Serve
from ptxgen.torch.functional import PLAIN
from ptxgen.torch.module import _checked
from ptxgen.torch.unserved import overload, reason

DEVICES = {"cuda"}
"""The devices whose tensors are served."""


@dataclass
class Report:
    """What ran in a block, by the names of its operators, with counts."""

    served: Counter[str] = field(default_factory=Counter)
    """Computed by ptxgen."""
    free: Counter[str] = field(default_factory=Counter)
    """Needs no serving. Pointwise operators, copies and views are counted with ``watch=True``."""
    unknown: Counter[str] = field(default_factory=Counter)
    """Run as PyTorch has it; rows may depend on the batch."""

    def __str__(self) -> str:
        lines = []
        for title, counts in (
            ("served", self.served),
            ("needs no serving", self.free),
            ("unknown: may depend on the batch", self.unknown),
        ):
            lines.append(f"{title}: {sum(counts.values())}")
            lines += [f"  {count:8} {name}" for name, count in counts.most_common()]
        return "\n".join(lines)


class batch_invariant:  # noqa: N801 - used as a statement: with batch_invariant():
    """Inside the block, a row of a result depends on that row, not on what else is in the batch.

    Operators of ATen on CUDA tensors (float32, bfloat16, float16; products of float64 too) fall in
    one of three lists:

    - **served**: products, sums, means, variances, softmax, norms, attention and their backward
      passes (:data:`ptxgen.torch.aten.SERVED` and ``COMPOSED``) are computed by ptxgen;
    - **free**: pointwise functions, copies, views, exact results need no serving
      (:mod:`ptxgen.torch.unserved` has the rules and the reasons). They are not touched, so they
      cost what they did;
    - **unknown**: everything else is counted and goes on as before, or is refused with
      ``strict=True``, but for operators named in ``allow``.

    :meth:`report` has the three with counts; ``served``, ``free`` and ``unknown`` are the counters.
    Free operators are counted with ``watch=True`` only, which costs some microseconds for every
    operator of the thread that enters; ``strict=True`` watches as well, to see operators of other
    libraries.

    The block is the process's: other threads are served too, autograd's among them. Blocks nest;
    the one entered last counts, and its ``tier`` is what products have. A block may be entered
    again. What ``torch.compile`` made runs uncompiled inside. Entering takes some milliseconds.

    Raises UnservedError (``strict=True``), and PtxgenError where PyTorch is too old.
    """

    def __init__(
        self,
        *,
        tier: str = "auto",
        strict: bool = False,
        watch: bool = False,
        allow: Collection[str] = (),
    ) -> None:
        self.tier = _checked(tier)
        self.strict = strict
        self.allow = frozenset(allow)
        self._report = Report()
        self.served = self._report.served
        self.free = self._report.free
        self.unknown = self._report.unknown
        self._watching = watch or strict
        self._modes: list[_Watch] = []

    def report(self) -> Report:
        """The three lists; ``print`` shows them."""
        return self._report

    def __enter__(self) -> batch_invariant:
        _overrides.open(self)
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
            _overrides.close(self)

    def _meet(self, name: str) -> None:
        """Counts an unknown operator. Raises UnservedError."""
        self.unknown[name] += 1
        if self.strict and name not in self.allow:
            raise UnservedError(
                f"{name} may compute rows that depend on the batch, and is not served; compute it "
                "another way or outside the block, pass "
                f"allow={{{name!r}}} if it cannot matter here, or strict=False to count it only"
            )


class _Watch(TorchDispatchMode):
    """Counts what the overrides do not see."""

    def __init__(self, block: batch_invariant) -> None:
        super().__init__()
        self.block = block

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        space = func.namespace
        if func in _overrides.seen:
            if any(t.layout is not torch.strided for t in _tensors((args, kwargs))):
                self.block._meet(str(func))  # kernels of another key, not overridden
        elif space == "aten":
            if reason(func) is None:  # where autograd is off, composed operators come whole
                with self:
                    found = func.decompose(*args, **kwargs)
                if found is not NotImplemented:
                    return found
            self.block.free[func.overloadpacket.__name__] += 1
        elif space not in _KNOWN and _on_device((args, kwargs)):
            self.block._meet(str(func))
        return func(*args, **kwargs)


_KNOWN = {"ptxgen", "prim", "prims"}
"""The namespaces of operators that are not another library's."""


def _tensors(tree: Any) -> Iterator[torch.Tensor]:
    if isinstance(tree, torch.Tensor):
        yield tree
    elif isinstance(tree, (tuple, list)):
        for each in tree:
            yield from _tensors(each)
    elif isinstance(tree, dict):
        yield from _tensors(tuple(tree.values()))


def _on_device(tree: Any) -> bool:
    return any(t.device.type in DEVICES for t in _tensors(tree))


# -- overriding -----------------------------------------------------------------------------
class _Overrides:
    """The kernels in PyTorch's dispatcher, there while any block is open."""

    def __init__(self) -> None:
        self.blocks: list[batch_invariant] = []
        self.seen: set[Any] = set()
        self._lock = threading.Lock()
        self._library: Any = None
        self._stance: Any = None
        self._forked = False

    def open(self, block: batch_invariant) -> None:
        if not self._forked:  # a child of fork has one thread: nobody else holds the lock
            self._forked = True
            os.register_at_fork(after_in_child=self._renew)
        with self._lock:
            if not self.blocks:
                self._install()
            self.blocks.append(block)

    def close(self, block: batch_invariant) -> None:
        with self._lock:
            last = len(self.blocks) - 1 - self.blocks[::-1].index(block)
            del self.blocks[last]
            if not self.blocks:
                self._remove()

    def _renew(self) -> None:
        self._lock = threading.Lock()

    def _install(self) -> None:
        get = getattr(torch.library, "get_kernel", None)
        if get is None:
            raise PtxgenError(
                f"batch_invariant needs torch.library.get_kernel, which PyTorch {torch.__version__}"
                " does not have; use a newer one"
            )
        library = torch.library.Library("aten", "IMPL")
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message=r"[\s\S]*previously registered kernel")
                for device in DEVICES:
                    for op, key, made in _planned(device.upper()):
                        kernel = made(self.blocks, _original(get(op, key), key))
                        library.impl(op, kernel, key)
                        self.seen.add(op)
            stance = torch.compiler.set_stance("force_eager")
        except BaseException:
            library._destroy()
            self.seen.clear()
            raise
        self._library, self._stance = library, stance

    def _remove(self) -> None:
        library, self._library = self._library, None
        stance, self._stance = self._stance, None
        library._destroy()
        stance.__exit__(None, None, None)
        self.seen.clear()


_overrides = _Overrides()


def _original(kernel: Any, key: str) -> Callable[..., Any]:
    """PyTorch's own kernel. It is told the key that it stands under: to be told by each call which
    keys there are costs a quarter of a microsecond.
    """
    keys = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, key))
    return functools.partial(kernel.call_boxed, keys)


Make = Callable[[list[batch_invariant], Any], Callable[..., Any]]


def _planned(key: str) -> Iterator[tuple[Any, str, Make]]:
    """Each operator to override, under which key, and what makes the kernel."""
    plan = _plans.get(key)
    if plan is None:
        plan = _plans[key] = list(_plan(key))
    return iter(plan)


_plans: dict[str, list[tuple[Any, str, Make]]] = {}


def _plan(key: str) -> Iterator[tuple[Any, str, Make]]:
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    runs = torch._C._dispatch_has_computed_kernel_for_dispatch_key

    def served(op: Any) -> bool:
        name = op.name()
        return has(name, key) or (runs(name, key) and not has(name, "CompositeImplicitAutograd"))

    rows = {overload(f"aten::{name}"): serve for name, serve in SERVED.items()}
    forms, planned = {**rows, **dict(_forms(rows))}, set(rows)
    del rows
    composed = {overload(f"aten::{name}"): how for name, how in COMPOSED.items()}
    for op, (alone, serve) in composed.items():
        for each in (f"Autograd{key}", key):
            yield op, each, _composed(op, alone, serve)
    for name, (part, serve) in WHOLE.items():
        op = overload(f"aten::{name}")
        if op is not None and served(overload(f"aten::{part}")):
            for each in (f"Autograd{key}", key):
                yield op, each, _whole(op, part, serve)
    for name in sorted(torch._C._dispatch_get_all_op_names()):
        if not name.startswith("aten::"):
            continue
        op = overload(name)
        if op is None or op in composed:
            continue
        if op in forms:
            if served(op):
                yield op, key, _serving(op, forms[op], op in planned)
        elif has(name, key) and reason(op) is None:
            yield op, key, _unknown(op)


def _forms(rows: dict[Any, Serve]) -> Iterator[tuple[Any, Serve]]:
    """The ``out=`` and in-place forms of operators, made of their functional forms."""
    for op, serve in rows.items():
        if op is None:
            continue
        packet, which = op.overloadpacket, op._schema.overload_name
        for name in packet.overloads():
            form = getattr(packet, name)
            arguments = form._schema.arguments
            outs = [a.name for a in arguments if a.kwarg_only and a.alias_info is not None]
            given = [(a.name, str(a.type)) for a in arguments if a.name not in outs]
            if outs and given == [(a.name, str(a.type)) for a in op._schema.arguments]:
                yield form, _to_out(serve, outs)
        in_place = getattr(torch.ops.aten, f"{packet.__name__}_", None)
        found = getattr(in_place, which or "default", None)
        if found is not None:
            yield found, _in_place(serve)


def _to_out(serve: Serve, outs: list[str]) -> Serve:
    """``serve``, written to memory that is given."""

    def to_out(tier: str, *args: Any, **options: Any) -> Any:
        targets = [options.pop(name) for name in outs]
        found = serve(tier, *args, **options)
        if found is NotImplemented or found is ALONE:
            return found
        for target, y in zip(targets, found if len(outs) > 1 else (found,), strict=True):
            if target.shape != y.shape:
                target.resize_(y.shape)
            target.copy_(y)
        return tuple(targets) if len(outs) > 1 else targets[0]

    return to_out


def _in_place(serve: Serve) -> Serve:
    """``serve``, written to its first argument."""

    def in_place(tier: str, input: Any, *args: Any, **options: Any) -> Any:
        found = serve(tier, input, *args, **options)
        return found if found is NotImplemented or found is ALONE else input.copy_(found)

    return in_place


def _exact(args: tuple[Any, ...], options: dict[str, Any]) -> bool:
    """Whether no argument is a float: sums of integers have no order."""
    dtype = options.get("dtype")
    if isinstance(dtype, torch.dtype):
        return not (dtype.is_floating_point or dtype.is_complex)
    return not any(
        t.dtype.is_floating_point or t.dtype.is_complex for t in _tensors((args, options))
    )


def _serving(op: Any, serve: Serve, planned: bool) -> Make:
    """``planned``: what it launches is remembered (:mod:`ptxgen.ops.replay`)."""
    parameters = _parameters(op) if planned else None
    name, qualified = op.overloadpacket.__name__, str(op)
    enabled, switch = torch.is_grad_enabled, torch._C._set_grad_enabled

    def make(blocks: list[batch_invariant], original: Any) -> Callable[..., Any]:
        def serving(follow: Any, *args: Any, **options: Any) -> Any:
            if not blocks:
                return original(*args, **options)
            block = blocks[-1]
            recording = enabled()
            if recording:  # autograd has been here
                switch(False)
            try:
                compute = functools.partial(serve, block.tier)
                if follow is not None:
                    compute = functools.partial(follow, compute)
                found = compute(*args, **options)
            except DtypeError:
                found = NotImplemented
            finally:
                if recording:
                    switch(True)
            if found is NotImplemented or found is ALONE:
                if found is ALONE or _exact(args, options):
                    block.free[name] += 1
                else:
                    block._meet(qualified)
                return original(*args, **options)
            counts = block.served
            counts[name] = counts.get(name, 0) + 1  # quicker than a Counter's own +=
            return found

        if parameters is None:
            return functools.partial(serving, None)
        return _front(parameters, serving, blocks, name, autograd=False)  # which has been here

    return make


def _whole(op: Any, name: str, serve: Serve) -> Make:
    parameters = _parameters(op)
    assert parameters is not None, "of numbers and tensors"

    def make(blocks: list[batch_invariant], original: Any) -> Callable[..., Any]:
        def serving(follow: Any, *args: Any) -> Any:
            if not blocks or _watched(args):
                return original(*args)
            block = blocks[-1]
            compute = functools.partial(serve, block.tier)
            found = compute(*args) if follow is None else follow(compute, *args)
            if found is PARTS:
                return original(*args)
            block.served[name] += 1
            return found

        return _front(parameters, serving, blocks, name, autograd=True)

    return make


def _watched(given: Iterable[Any]) -> bool:
    """Whether somebody has to see what is done to some tensor."""
    recorded = torch.is_grad_enabled()
    return forward_ad._current_level >= 0 or any(
        type(t) not in PLAIN or (recorded and t.requires_grad)
        for t in given
        if isinstance(t, torch.Tensor)
    )


_memos: dict[tuple[Any, ...], Memo] = {}
"""Plans of each operator and overload, by name and arguments; they outlive blocks."""


def _front(
    parameters: Sequence[Parameter],
    serving: Callable[..., Any],
    blocks: list[batch_invariant],
    name: str,
    autograd: bool,
) -> Callable[..., Any]:
    """``serving`` by plans, of the block entered last."""
    return front(
        parameters,
        serving,
        autograd=autograd,
        before=("block = blocks[-1] if blocks else None",),
        checks=("block is not None", *(("forward_ad._current_level < 0",) if autograd else ())),
        keyed=("block.tier",),
        hit=("counts = block.served", "counts[name] = counts.get(name, 0) + 1"),
        given={"blocks": blocks, "name": name, "forward_ad": forward_ad},
        memo=_memos.setdefault((name, autograd, *((p.name, p.kind) for p in parameters)), {}),
    )


def _parameters(op: Any) -> list[Parameter] | None:
    """The arguments of an operator whose calls can be remembered; None if there are others."""
    found = []
    for i, argument in enumerate(op._schema.arguments):
        kind = _KINDS.get(str(argument.type))
        if kind is None:
            return None
        name = argument.name if argument.kwarg_only else f"a{i}"
        default = argument.default_value if argument.has_default_value() else NEEDED
        found.append(Parameter(name, kind, default, argument.kwarg_only))
    return found


_KINDS = {
    "Tensor": "array",
    "Optional[Tensor]": "optional",
    **dict.fromkeys(("List[int]", "List[bool]", "Optional[List[int]]"), "list"),
    **dict.fromkeys(("int", "bool", "float", "number"), "value"),
    **dict.fromkeys(("Optional[int]", "Optional[bool]", "Optional[float]"), "value"),
    **dict.fromkeys(("Optional[number]", "str", "Optional[str]"), "value"),
}
"""How :mod:`ptxgen.ops.replay` takes arguments of a type."""


def _composed(op: Any, alone: Serve, serve: Serve) -> Make:
    name, qualified, parameters = op.overloadpacket.__name__, str(op), _parameters(op)
    assert parameters is not None, "of numbers and tensors"

    def make(blocks: list[batch_invariant], original: Any) -> Callable[..., Any]:
        def serving(follow: Any, *args: Any, **options: Any) -> Any:
            if not blocks:
                return original(*args, **options)
            block, found = blocks[-1], PARTS
            if not _watched((*args, *options.values())):
                compute = functools.partial(alone, block.tier)
                if follow is not None:
                    compute = functools.partial(follow, compute)
                found = compute(*args, **options)
            if found is PARTS:
                found = serve(block.tier, *args, **options)
            if found is NotImplemented:
                block._meet(qualified)
                return original(*args, **options)
            block.served[name] += 1
            return found

        return _front(parameters, serving, blocks, name, autograd=True)

    return make


def _unknown(op: Any) -> Make:
    name, qualified = op.overloadpacket.__name__, str(op)

    def make(blocks: list[batch_invariant], original: Any) -> Callable[..., Any]:
        def kernel(*args: Any, **options: Any) -> Any:
            if blocks:
                if _exact(args, options):
                    blocks[-1].free[name] += 1
                else:
                    blocks[-1]._meet(qualified)
            return original(*args, **options)

        return kernel

    return make
