"""Calls of operations on PyTorch tensors, and their gradients.

In plain eager mode, a call goes straight to the library (:class:`ptxgen.program.invoke.Frame`), or
through an ``autograd.Function`` if a gradient is needed. Under tools that intercept operators
(``torch.compile`` and ``torch.export``, fake tensors, tensor subclasses, dispatch modes,
``torch.func``) it goes to ``torch.ops.ptxgen.*`` (:mod:`ptxgen.torch.operators`), which are the
same functions with the same gradients. So both paths give the same bits.

A backward pass is a program (:attr:`ptxgen.program.operation.Op.vjp`), lowered for the shapes of
its call. The forward pass saves exactly the arguments and results that this program reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import torch
from torch.autograd import forward_ad

from ptxgen.errors import GradError, OptionError
from ptxgen.numerics.dtype import BYTES
from ptxgen.ops import OPERATIONS
from ptxgen.program.buffer import Buffer, imagined
from ptxgen.program.build import Builder, ProgramBuilder, check_complex, check_pairs
from ptxgen.program.invoke import Frame
from ptxgen.program.launch import remember
from ptxgen.program.operation import Backward, Op
from ptxgen.program.parameters import (
    ARRAY,
    ARRAYS,
    OPERAND,
    OPTION,
    OPTIONAL,
    READ,
    STREAM,
    WRITTEN,
    Parameter,
)
from ptxgen.program.prepared import Hooks, exact

PLAIN = {torch.Tensor, torch.nn.Parameter}
"""Tensor types that override no behaviour, as subclasses of them may do."""
NO_TENSORS = {type(None), bool, int, float}
"""Common types of arguments that are passed instead of a tensor."""
NAMES = {getattr(torch, name): name for name in BYTES if hasattr(torch, name)}
"""Names of dtypes, such as "float32", by PyTorch dtype."""

_is_compiling = torch.compiler.is_compiling
_dispatch_modes = torch._C._len_torch_dispatch_stack
_transforms = torch._C._are_functorch_transforms_active
_tracing = torch._C._is_tracing


# -- which way --------------------------------------------------------------------------------
def is_intercepted() -> bool:
    """Whether a compiler, a tracer, a dispatch mode or ``torch.func`` intercepts operators."""
    return bool(_is_compiling() or _dispatch_modes() or _transforms() or _tracing())


def gradient_wanted(*operands: Any) -> bool | None:
    """Whether autograd must record a call with these operands. None if a compiler, tracer, dispatch
    mode, ``torch.func`` or tensor subclass intercepts it: it has to be called as an operator of
    ``torch.ops.ptxgen``. Raises GradError for operands with tangents.
    """
    if forward_ad._current_level >= 0:
        _refuse_tangents(*operands)
    if is_intercepted():
        return None
    wanted = False
    for operand in operands:
        kind = type(operand)
        if kind in PLAIN:
            wanted = wanted or operand.requires_grad
        elif kind not in NO_TENSORS and isinstance(operand, torch.Tensor | torch.fx.Proxy):
            return None
    return wanted and torch.is_grad_enabled()


def _refuse_tangents(*operands: Any) -> None:
    """Raises GradError for operands with tangents: forward-mode derivatives are not defined."""
    for x in operands:
        if isinstance(x, torch.Tensor) and forward_ad.unpack_dual(x).tangent is not None:
            raise GradError(
                "an operand has a tangent, but forward-mode derivatives are not defined; use "
                "reverse mode (backward), or PyTorch's own function"
            )


def recorded(op: Op, given: Mapping[str, Any]) -> Any:
    """Calls ``op`` with arguments by name: as an operator if :func:`gradient_wanted` returns None,
    recorded by autograd if a gradient is needed, else directly.
    """
    found = recorder(op)
    args = tuple([given[n] for n in found.names])
    tensors = found.tensors(args)
    wanted = gradient_wanted(*tensors)
    if wanted is None:
        return found.as_operator(given)
    return found.record(args, tensors) if wanted else found.plain(args)


def function(op: Op, autograd: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """Returns ``op`` as a function of tensors, with gradients. ``autograd``: function of ``op`` and
    the arguments by name for calls that need gradients or that a tool intercepts; by default
    :func:`recorded`.
    """
    if _is_compiling():  # a compiler cannot follow how code is made
        return partial(_traced, op, autograd or recorder(op).autograd)
    found = recorder(op)
    if autograd is not None:
        found.autograd = autograd
    return found.function


def _traced(op: Op, autograd: Callable[..., Any], *args: Any, **named: Any) -> Any:
    return autograd(op, op.bound(args, named))


def recorder(op: Op) -> Recorder:
    """Returns the :class:`Recorder` of ``op``, the functions by which PyTorch calls it; created
    once.
    """
    found = _recorders.get(op)
    if found is None:
        found = _recorders[op] = Recorder(op)
    return found


def _call_operator(op: Op, aside: Iterable[str], given: Mapping[str, Any]) -> Any:
    """Calls ``op`` as an operator of ``torch.ops.ptxgen``, which has no arguments ``aside``
    (``out=``, streams); raises OptionError if one of these is given.
    """
    for name in aside:
        if given[name] is not None and not isinstance(given[name], bool):
            raise OptionError(f"{op.name}: {name}= cannot be traced; leave it away")
    return Recorder.call_operator(op, given)


_recorders: dict[Op, Recorder] = {}
BEFORE = (
    "if $is_compiling() or $dispatch_modes() or $transforms() or $tracing(): return $shown({})",
    "if $forward_ad._current_level >= 0: return $shown({})",
)


class Recorder:
    """Functions by which PyTorch calls one operation: :meth:`plain` without autograd,
    :meth:`record` recorded by autograd, ``as_operator`` as an operator of ``torch.ops.ptxgen``.
    Caches the plans of its gradients.
    """

    call_operator: ClassVar[Callable[[Op, Mapping[str, Any]], Any]]
    """Function that calls an operator of ``torch.ops.ptxgen``; :mod:`ptxgen.torch.operators` sets
    it.
    """

    def __init__(self, op: Op) -> None:
        self.op, self.of = op, op.keeping or op
        self.names = tuple(p.name for p in op.parameters)
        self._read = [i for i, p in enumerate(op.parameters) if p.kind in READ]
        self._options = [i for i, p in enumerate(op.parameters) if p.kind == OPTION]
        self._aside = [p.name for p in op.parameters if p.kind in (WRITTEN, STREAM)]
        self.lists = any(p.kind == ARRAYS for p in op.parameters)
        self._plans: dict[Any, _Plan] = {}
        self._codes: dict[Any, Any] = {}
        self._by_code: dict[Any, _Plan] | None = None
        if all(p.kind != OPERAND for p in op.parameters):  # else numbers, which codes do not know
            self._by_code = {}
        self.autograd: Callable[..., Any] = recorded
        self.as_operator = partial(_call_operator, op, self._aside)

    @cached_property
    def function(self) -> Callable[..., Any]:
        """Public function of the operation, with its name, signature and docstring."""
        arguments = ", ".join(self.names)
        names = {
            "$is_compiling": _is_compiling,
            "$dispatch_modes": _dispatch_modes,
            "$transforms": _transforms,
            "$tracing": _tracing,
            "$forward_ad": forward_ad,
            "$shown": self._intercepted_call(),
        }
        before = [line.format(arguments) for line in BEFORE]
        alone = self.recorded if self.autograd is recorded else None
        hooks = Hooks(before=before, names=names, recorded=alone)
        frame = Frame(self.op, copies=True, autograd=self.autograd, hooks=hooks)
        made = frame.function
        made.__doc__, made.__module__ = self.op.doc, "ptxgen.torch"
        made.__name__ = made.__qualname__ = self.op.name
        made.__signature__ = self.op.signature  # type: ignore[attr-defined]
        return made

    @cached_property
    def compute(self) -> Callable[..., Any]:
        """Function of all arguments in order that computes without autograd; returns the results,
        followed by those that are saved for gradients only.
        """
        return self._computing(Hooks(autograd=False))

    @cached_property
    def compute_with_code(self) -> Callable[..., Any]:
        """Function like :attr:`compute` that returns a pair: the generated code that ran the call
        (None if the call took the slow path), and the results.
        """
        return self._computing(Hooks(autograd=False, returns_code=True))

    def _computing(self, hooks: Hooks) -> Callable[..., Any]:
        frame = Frame(self.of, copies=True, placed=True, memo=self._codes, hooks=hooks)
        return frame.function

    # torch 2.11 cannot follow what reads an operation from an attribute: it has a ``__get__``.
    def _intercepted_call(self) -> Callable[..., Any]:
        """Returns a function of all arguments in order for calls under ``torch.compile``, a
        dispatch mode, functorch or tracing, or with tensor subclasses.
        """
        autograd, op, names = self.autograd, self.op, self.names
        return lambda *args: autograd(op, dict(zip(names, args, strict=True)))

    def plain(self, args: tuple[Any, ...]) -> Any:
        """Returns the results of a call that autograd does not record."""
        with torch.no_grad():
            return self._public_results(self.compute(*args))

    def _public_results(self, found: Any) -> Any:
        """Returns the results of the operation, without those that are saved for gradients only."""
        if self.of is self.op:
            return found
        own = found[: len(self.op.results)]
        return own[0] if len(own) == 1 else own

    def tensors(self, args: Sequence[Any]) -> list[Any]:
        """Returns a call's operands, in order: tensors, or the numbers and None passed instead."""
        if not self.lists:
            return [args[i] for i in self._read]
        found: list[Any] = []
        for i in self._read:
            each = args[i]
            found += each if isinstance(each, tuple | list) else (each,)
        return found

    def recorded(self, *args: Any) -> Any:
        """Records a call for autograd; calls the operator instead for tensor subclasses."""
        tensors = self.tensors(args)
        if all([type(t) in PLAIN or type(t) in NO_TENSORS for t in tensors]):
            return _apply(self, args, *tensors)
        return self._intercepted_call()(*args)

    def record(self, args: tuple[Any, ...], tensors: Sequence[Any]) -> Any:
        """Returns the results of a call that autograd records. ``args``: all arguments in order;
        ``tensors``: the operands among them (:meth:`tensors`).
        """
        return _apply(self, args, *tensors)

    # -- gradients ----------------------------------------------------------------------------
    def plan(
        self,
        args: Sequence[Any],
        needs: Sequence[bool],
        tensors: Sequence[Any],
        results: Sequence[Any],
        code: Any = None,
    ) -> _Plan:
        """Returns the plan for the gradients of a call, from a cache if there was a call of the
        same shapes, dtypes and options. ``needs``: for each of ``tensors``, the operands, whether
        its gradient is needed; ``code``: generated code that ran the call, a faster key of the
        cache.
        """
        if code is None or self._by_code is None:
            return self._plan(args, needs, tensors, results)
        key = code, tuple(needs)
        found = self._by_code.get(key)
        if found is None:
            found = self._plan(args, needs, tensors, results)
            remember(self._by_code, key, found)
        return found

    def _plan(
        self, args: Sequence[Any], needs: Sequence[bool], tensors: Sequence[Any], results: Any
    ) -> _Plan:
        how = [exact(args[i]) for i in self._options]
        kinds = [
            (t.shape, t.dtype) if isinstance(t, torch.Tensor) else exact(t)
            for t in (*tensors, *results)
        ]
        key = (*how, *needs, *kinds, len(tensors))
        found = self._plans.get(key)
        if found is None:
            found = _Plan(self, args, needs, tensors, results)
            remember(self._plans, key, found)
        return found

    def named(self, args: Sequence[Any]) -> Iterator[tuple[str, Any]]:
        """Yields name and value of each operand; elements of a sequence are named ``name[i]``."""
        for i in self._read:
            name, each = self.names[i], args[i]
            if isinstance(each, tuple | list):
                yield from ((f"{name}[{j}]", x) for j, x in enumerate(each))
            else:
                yield name, each


def no_gradient(op: Op) -> GradError:
    """Returns the error for operands that require grad, of an operation without gradient."""
    return GradError(
        f"{op.name} has no gradient; call it under torch.no_grad(), or pass what does not require "
        "grad"
    )


class _Plan:
    """Plan for the gradients of an operation, for given shapes of arguments and results.

    ``saved``: indices, into arguments followed by results, of tensors that gradients read.
    ``updates``: indices of arguments to which gradients are added. ``exact``: indices of results
    without an incoming gradient: those of integers, and those whose incoming gradient is not read.
    """

    def __init__(
        self,
        of: Recorder,
        args: Sequence[Any],
        needs: Sequence[bool],
        tensors: Sequence[Any],
        results: Sequence[Any],
    ) -> None:
        if of.op.vjp is None:
            raise no_gradient(of.op)
        self.recorder, self.vjp = of, of.of.vjp or of.op.vjp
        self._names = [name for name, _ in of.named(args)]
        self._lists = {
            of.names[i]: len(args[i]) for i in of._read if isinstance(args[i], tuple | list)
        }
        self._options = {
            of.names[i]: of.op.parameters[i].read(args[i])
            for i in of._options
            if of.names[i] != "kernel"
        }
        self._like = [_Like.of(t) for t in (*tensors, *results)]
        self._count, self.results = len(tensors), self._like[len(tensors) :]
        self._needs = frozenset(n for n, need in zip(self._names, needs, strict=True) if need)
        self.wanted = [i for i, need in enumerate(needs) if need]
        self.exact = [i for i, r in enumerate(results) if not is_differentiable(r.dtype)]
        updated = {i for i, n in enumerate(self._names) if n in of.op.updates}
        self.updates = [i for i in updated if tensors[i] is not None]
        self.saved = [i for i in self._used() if i not in self.updates]
        count, own = len(tensors), len(results if of.of is of.op else of.op.results)
        self._kept = (None,) * (len(self.results) - own)
        self._floats = all(r.dtype.is_floating_point for r in self.results[:own])
        at = {t: i for i, t in enumerate(self.wanted)}
        self._picked = None if len(at) == count else [at.get(t, -1) for t in range(count)]

    def by_result(self, dys: tuple[Any, ...]) -> Sequence[Any]:
        """Returns an incoming gradient, or None, for each result, also for those that are only
        saved for the gradients. ``dys``: incoming gradients of the public results.
        """
        return (*dys, *self._kept) if self._floats else by_result(self.results, dys)

    def by_tensor(self, found: tuple[Any, ...]) -> Iterable[Any]:
        """Returns a gradient for each operand, in order; None where none is needed. ``found``: the
        gradients of the operands that need one.
        """
        if self._picked is None:
            return found
        all = *found, None
        return [all[i] for i in self._picked]

    def given(self, tensors: Sequence[Any], results: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Returns two lists: tensors to save for the backward pass, and tensors to which gradients
        are added.
        """
        both = (*tensors, *results)
        return [both[i] for i in self.saved], [tensors[i] for i in self.updates]

    def _used(self) -> list[int]:
        """Returns indices, into arguments followed by results, of tensors that the gradients read
        or are views of. Adds to ``exact`` the results whose incoming gradient they do not read.
        """
        builder = ProgramBuilder(OPERATIONS, f"{self.recorder.op.name}_vjp", aliases=True)
        buffers: list[Any] = []
        for i, like in enumerate(self._like):
            if isinstance(like, _Like):
                buffers.append(builder.input(f"t{i}", like.buffer, written=i in self.updates))
            else:
                buffers.append(like)
        dys = [builder.input(f"d{i}", x.buffer) for i, x in enumerate(self._like[self._count :])]
        program = builder.finish(self._gradients(builder, buffers, dys))
        self.gives = [b is not None for b in program.outputs]
        read = {b.memory for step in program.steps for b in step.reads()}
        read |= {b.memory for b in program.outputs if b is not None}
        own = range(len(self.recorder.op.results))
        unread = [i for i in own if i < len(dys) and dys[i].memory not in read]
        if len(unread) < len(dys):  # gradients that are zeros read none
            self.exact = sorted({*self.exact, *unread})
        return [i for i, b in enumerate(buffers) if isinstance(b, Buffer) and b.memory in read]

    def _gradients(self, b: Builder, all: Sequence[Any], dys: Sequence[Any]) -> tuple[Any, ...]:
        """Computes the needed gradients, in order; None for undefined ones. ``all``: arguments,
        then results.
        """
        arguments = dict(zip(self._names, all, strict=False))
        for name, count in self._lists.items():
            arguments[name] = tuple(arguments.pop(f"{name}[{i}]") for i in range(count))
        results, kept = tuple(all[self._count :]), self.recorder.of
        if kept is not self.recorder.op and len(results) < len(kept.results):  # of an operator
            results = tuple(kept.lower(b, **arguments, **self._options))
        of = Backward(arguments, self._options, results, tuple(dys), self._needs)
        found = self.vjp(b, of)
        return tuple(found.get(self._names[i]) for i in self.wanted)

    def _placed(self, saved: Sequence[Any], updates: Sequence[Any], stub: Any) -> list[Any]:
        """Returns the values of all arguments, then of all results: ``saved`` and ``updates``, the
        two lists of :meth:`given`, in their places, and ``stub(like)``, of shape and dtype
        ``like``, for tensors that were not saved.
        """
        found = [stub(x) if isinstance(x, _Like) else x for x in self._like]
        for i, x in zip((*self.saved, *self.updates), (*saved, *updates), strict=True):
            found[i] = x
        return found

    def program(self, aliases: bool) -> Callable[..., Any]:
        """Returns the backward pass as a function of saved tensors, tensors to which gradients are
        added (``main_grad``) and incoming gradients, in this order. It returns the needed
        gradients. ``aliases``: whether these may be views of its arguments.
        """
        saved = [f"s{i}" for i in range(len(self.saved))]
        updates = [f"u{i}" for i in range(len(self.updates))]
        dys = [f"d{i}" for i in range(len(self._like) - self._count)]

        def lower(b: ProgramBuilder, /, **given: Any) -> tuple[Any, ...]:
            of, to = [given[n] for n in saved], [given[n] for n in updates]
            return self.lowered(b, of, [given[n] for n in dys], to)

        takes = (
            *(Parameter(n, ARRAY) for n in saved),
            *(Parameter(n, WRITTEN) for n in updates),
            *(Parameter(n, OPTIONAL) for n in dys),
        )
        op = Op(lower, name=f"{self.recorder.op.name}_vjp", takes=takes, public=False)
        how: dict[str, Any] = {"copies": True, "aliases": aliases and not updates}
        return Frame(op, **how, hooks=Hooks(autograd=False)).function

    def lowered(
        self, b: Builder, saved: Sequence[Any], dys: Sequence[Any], updates: Sequence[Any] = ()
    ) -> tuple[Any, ...]:
        """Lowers the backward pass to steps; returns the buffers of the needed gradients.
        ``saved``, ``updates``: buffers for the two lists that :meth:`given` returns; ``dys``:
        incoming gradients of all results.
        """
        return self._gradients(b, self._placed(saved, updates, lambda x: x.buffer), dys)

    @cached_property
    def views(self) -> Callable[..., Any]:
        """Backward pass (:meth:`program`) that may return views of its arguments."""
        return self.program(True)

    @cached_property
    def copies(self) -> Callable[..., Any]:
        """Backward pass (:meth:`program`) that returns new tensors, no views of its arguments."""
        return self.program(False)

    def differentiable(
        self, saved: Sequence[Any], updates: Sequence[Any], dys: Sequence[Any]
    ) -> tuple[Any, ...]:
        """Computes the needed gradients by operations that autograd records in turn
        (``create_graph``). ``saved``, ``updates``: the two lists of :meth:`given`; ``dys``:
        incoming gradients of all results.

        Raises GradError for an operation that saves additional results for its gradients.
        """
        if self.recorder.of is not self.recorder.op:
            name = self.recorder.op.name
            raise GradError(f"gradients of {name} have no gradient; leave create_graph away")
        device = next(d.device for d in dys if d is not None)
        at = self._placed(saved, updates, partial(_Stub, device))
        return self._gradients(TorchBuilder(OPERATIONS), at, dys)


@dataclass(frozen=True)
class _Like:
    """Shape and dtype of a tensor."""

    shape: tuple[int, ...]
    dtype: torch.dtype

    @classmethod
    def of(cls, x: Any) -> Any:
        """Returns shape and dtype of a tensor; any other value as it is."""
        return cls(tuple(x.shape), x.dtype) if isinstance(x, torch.Tensor) else x

    @property
    def buffer(self) -> Buffer:
        """Buffer of this shape and dtype that belongs to no program."""
        return imagined(self.shape, NAMES[self.dtype])


class _Stub:
    """Placeholder for a tensor that was not saved, with its shape and dtype."""

    def __init__(self, device: torch.device, like: _Like) -> None:
        self.device, self.shape, self.dtype = device, like.shape, like.dtype


class Recorded(torch.autograd.Function):
    """Autograd function of an operation in plain eager mode. ``forward`` computes the results and
    saves the tensors that gradients read; ``backward`` runs the program of the gradients.
    """

    @staticmethod
    def forward(ctx: Any, of: Recorder, args: tuple[Any, ...], *tensors: Any) -> Any:
        code, found = of.compute_with_code(*args)
        results = found if isinstance(found, tuple) else (found,)
        plan = ctx.plan = of.plan(args, ctx.needs_input_grad[2:], tensors, results, code)
        saved, updates = plan.given(tensors, results)
        if updates:
            ctx.updates = updates
        ctx.save_for_backward(*saved)
        if plan.exact:
            ctx.mark_non_differentiable(*[results[i] for i in plan.exact])
        return of._public_results(found)

    @staticmethod
    def backward(ctx: Any, *dys: Any) -> tuple[Any, ...]:
        plan = ctx.plan
        saved, updates = ctx.saved_tensors, ctx.updates if plan.updates else ()
        dys = plan.by_result(dys)
        if torch.is_grad_enabled():
            found = plan.differentiable(saved, updates, dys)
        else:
            found = plan.views(*saved, *updates, *dys)
        for update in updates:
            torch.autograd.graph.increment_version(update)
        return None, None, *plan.by_tensor(found)


_apply = super(torch.autograd.Function, Recorded).apply
"""``Recorded.apply`` without the overhead of supporting ``torch.func``, not needed here."""


def by_result(results: Sequence[Any], dys: Sequence[Any]) -> list[Any]:
    """Returns an incoming gradient for each of ``results``: None for integers, and for those after
    the last of ``dys``, which are saved only. A lazily conjugated gradient is resolved.
    """
    found: list[Any] = [None] * len(results)
    for i, dy in enumerate(dys):
        if dy is not None and is_differentiable(results[i].dtype):
            found[i] = dy.resolve_conj()
    return found


def is_differentiable(dtype: torch.dtype) -> bool:
    """Whether tensors of a dtype have gradients: floats and complex numbers."""
    return bool(dtype.is_floating_point or dtype.is_complex)


# -- programs of tensors ----------------------------------------------------------------------
class TorchBuilder(Builder):
    """Builder that computes with tensors at once, so that autograd records each operation."""

    def call(self, op: Any, *args: Any, **options: Any) -> Any:
        if options.get("out") is not None:
            return op.function(*args, **options)
        return function(op)(*args, **options)

    def strides(self, x: Any) -> tuple[int, ...]:
        return tuple(x.stride())

    def dtype(self, x: Any) -> str:
        return NAMES[x.dtype]

    def reshape(self, x: Any, shape: Sequence[int]) -> Any:
        return x.reshape(tuple(shape))

    def permute(self, x: Any, order: Sequence[int]) -> Any:
        return x.permute(tuple(order))

    def expand(self, x: Any, shape: Sequence[int]) -> Any:
        return x.expand(tuple(shape))

    def narrow(self, x: Any, axis: int, start: int, length: int, step: int = 1) -> Any:
        part = slice(start, start + length * step, step)
        return x[(*[slice(None)] * (axis % x.dim()), part)]

    def view_as_real(self, x: Any) -> Any:
        self._check(check_complex, x)
        return torch.view_as_real(x.resolve_conj())

    def view_as_complex(self, x: Any) -> Any:
        self._check(check_pairs, x)
        pairs = [s for s, n in zip(x.stride()[:-1], x.shape[:-1], strict=True) if n > 1]
        even = x.stride(-1) == 1 and not any(s % 2 for s in pairs) and x.storage_offset() % 2 == 0
        return torch.view_as_complex(x if even else x.contiguous())

    def _check(self, check: Callable[[Buffer], None], x: Any) -> None:
        check(imagined(x.shape, self.dtype(x)))

    def contiguous(self, x: Any) -> Any:
        return x.contiguous()

    def filled(self, shape: Sequence[int], dtype: str, value: Any, like: Any) -> Any:
        kind = getattr(torch, dtype)
        return torch.full(tuple(shape), value, dtype=kind, device=like.device)
