"""``torch.ops.ptxgen``: operations as operators, for compilers, fake tensors and dispatch modes.

An operator is created from its operation on first use. It has an implementation (for any device;
unsupported devices are refused by name), one for fake tensors, which lowers the operation without
steps, and gradients: another operator, of its name and ``_vjp``. A kernel is chosen when an
operator runs, from the shapes of that call: a graph compiled for any number of rows runs the best
kernel for each, with the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import torch

from ptxgen.errors import GradError
from ptxgen.numerics.option import DtypeName, Integers
from ptxgen.ops import OPERATIONS
from ptxgen.ops.pointwise import Pointwise
from ptxgen.program.buffer import Buffer, imagined
from ptxgen.program.build import ProgramBuilder
from ptxgen.program.operation import Op
from ptxgen.program.parameters import (
    ARRAYS,
    EITHER,
    OPTION,
    OPTIONAL,
    READ,
    STREAM,
    WRITTEN,
    Parameter,
)
from ptxgen.torch import pointwise
from ptxgen.torch.functions import meta
from ptxgen.torch.record import (
    NAMES,
    Recorder,
    _Like,
    by_result,
    is_differentiable,
    no_gradient,
    recorder,
)

LIBRARY = torch.library.Library("ptxgen", "FRAGMENT")
TAGS = (torch.Tag.pt2_compliant_tag,)


def call_operator(op: Op, given: Mapping[str, Any]) -> Any:
    """Calls ``op`` as an operator of ``torch.ops.ptxgen``, with all arguments by name."""
    if isinstance(op, Pointwise):
        return pointwise.call_operator(op, given)
    made = getattr(torch.ops.ptxgen, _registered(op.name))
    arrays, named = [], {}
    for p in op.parameters:
        value = given[p.name]
        if p.kind == EITHER and not isinstance(value, torch.Tensor):
            named[f"{p.name}_number"], value = value, None
        if p.kind in READ:
            arrays.append(value)
        elif _is_option(p):
            assert p.option is not None, "an option"
            named[p.name] = p.option.as_schema(value)
            if isinstance(p.option, DtypeName) and isinstance(value, str):
                named[p.name] = getattr(torch, value)
    found = made(*arrays, **named)
    if not isinstance(found, tuple | list):
        return found
    return found[0] if len(found) == 1 else tuple(found)


Recorder.call_operator = staticmethod(call_operator)


def _registered(name: str) -> str:
    """Registers the operator of operation ``name`` if that is not done yet; returns ``name``."""
    operator(_ops[name] if name in _ops else OPERATIONS[name])
    return name


# What torch.compiler.assume_constant_result sets, which imports the compiler. Code that is traced
# calls this, and does not trace what it does.
_registered._dynamo_marked_constant = True  # type: ignore[attr-defined]
_ops: dict[str, Op] = {}
"""Operations of :mod:`ptxgen.torch` by name; they replace the library's of the same names."""
_known: set[str] = set()


def added(op: Op) -> Op:
    """Sets ``op`` as the operation of its name in :mod:`ptxgen.torch`, in place of the library's
    operation of that name; returns it.
    """
    _ops[op.name] = op
    return op


def operator(op: Op) -> Callable[..., Any]:
    """Returns the operator of ``op``, or of the operation :func:`added` with its name, in
    ``torch.ops.ptxgen``; registers it on first use.
    """
    op = _ops.get(op.name, op)
    if op.name not in _known:
        _Operator(op).register()
    made: Callable[..., Any] = getattr(torch.ops.ptxgen, op.name)
    return made


def registered(name: str) -> _Operator | None:
    """Returns the operator named ``name``, or None if it has not been registered."""
    if name not in _known or (name not in OPERATIONS and name not in _ops):
        return None
    return _Operator(_ops[name] if name in _ops else OPERATIONS[name])


def register(schema: str, compute: Callable[..., Any], fake: Callable[..., Any]) -> str:
    """Defines an operator of ``torch.ops.ptxgen``, implemented by ``compute`` without autograd and
    by ``fake`` for fake tensors; returns its name.
    """
    name = schema.partition("(")[0]

    def implementation(*args: Any, **options: Any) -> Any:
        with torch.no_grad():
            return compute(*args, **options)

    _known.add(name)
    LIBRARY.define(schema, tags=TAGS)
    LIBRARY.impl(name, implementation, "CompositeExplicitAutograd")
    torch.library.register_fake(f"ptxgen::{name}", fake, lib=LIBRARY)
    return name


def _is_option(p: Parameter) -> bool:
    return p.kind == OPTION and p.name != "kernel"


def _in_pairs(p: Parameter) -> bool:
    return isinstance(p.option, Integers) and p.option.pairs


class _Operator:
    """The operator of ``torch.ops.ptxgen`` for an operation, and the operators of its gradients.
    Arrays are positional arguments, options keyword arguments.
    """

    def __init__(self, op: Op) -> None:
        self.op, self.of = op, recorder(op)
        self.several = len(op.results) > 1
        self.arrays = [p.name for p in op.parameters if p.kind in READ]
        options = {p.name: p for p in op.parameters if _is_option(p)}
        numbers = {f"{p.name}_number": p for p in op.parameters if p.kind == EITHER}
        self.options = options | numbers
        """Parameters that are passed by keyword, by the operator's name of each: options, and
        numbers in place of arrays."""
        at = {name: i for i, name in enumerate(self.arrays)}
        self._sums = {at[n.removesuffix("_sum")]: at[n] for n in op.updates}

    def register(self) -> None:
        """Defines the operator, and the operators of its gradients."""
        returns = "Tensor[]" if self.several else "Tensor"
        arrays = ", ".join(self._array(p) for p in self.op.parameters if p.kind in READ)
        options = [_option(p, name) for name, p in self.options.items()]
        how = "".join(f", {each}" for each in ("*", *options)) if options else ""
        name = register(f"{self.op.name}({arrays}{how}) -> {returns}", self.compute, self.fake)
        if self.op.vjp is not None:
            takes = "Tensor?[] arrays, Tensor[] results, Tensor?[] dys, bool[] needs"
            register(f"{name}_vjp({takes}{how}) -> Tensor[]", self.vjp, self.fake_vjp)
            if self.op.updates:  # an operator of its own: what is written to returns nothing
                schema = f"{name}_vjp_({takes}, Tensor(a!)[] updates{how}) -> ()"
                register(schema, self.update, lambda *args, **named: None)
        torch.library.register_autograd(
            f"ptxgen::{name}", self.backward, setup_context=self.setup, lib=LIBRARY
        )

    def _array(self, p: Parameter) -> str:
        if p.kind == ARRAYS:
            return f"Tensor[] {p.name}"
        return f"Tensor? {p.name}=None" if p.kind in (OPTIONAL, EITHER) else f"Tensor {p.name}"

    def args(self, arrays: Sequence[Any], named: Mapping[str, Any]) -> tuple[Any, ...]:
        """Returns all arguments of the operation, in order. ``arrays``, ``named``: positional and
        keyword arguments of the operator.
        """
        given = {**dict(zip(self.arrays, arrays, strict=False)), **named}
        found = []
        for p in self.op.parameters:
            value = given.get(p.name, None if p.needed else p.default)
            if p.kind == EITHER and not isinstance(value, torch.Tensor):
                value = given.get(f"{p.name}_number", p.default)
            if value is not None and _in_pairs(p):  # which operators are given in one row
                value = tuple(zip(value[::2], value[1::2], strict=True))
            found.append(value)
        return tuple(found)

    def compute(self, *arrays: Any, **named: Any) -> Any:
        """Computes a call without autograd; returns the result, or a list of several. ``arrays``:
        tensors, or None for omitted ones; ``named``: options.
        """
        found = self.of.plain(self.args(arrays, named))
        return _listed(found) if self.several else found

    def fake(self, *arrays: Any, **named: Any) -> Any:
        """Returns fake tensors with the shapes and dtypes of the results, for a call with fake
        tensors.
        """
        args = self.args(arrays, named)
        found = results_like(self.op, dict(zip(self.of.names, args, strict=True)))
        return found if self.several else found[0]

    # -- as steps -----------------------------------------------------------------------------
    def lower(self, b: ProgramBuilder, arrays: Sequence[Any], named: Mapping[str, Any]) -> Any:
        """Lowers a call of the operator to steps; returns the result buffers."""
        args = self.args(arrays, _plainly(named))
        pairs = zip(self.op.parameters, args, strict=True)
        given = {p.name: p.read(x) if p.kind == OPTION else x for p, x in pairs if p.kind != STREAM}
        found = self.op.lower(b, **given)
        return tuple(_listed(found)) if self.several else found

    def lower_vjp(
        self, b: ProgramBuilder, arrays: Any, results: Any, dys: Any, needs: Any, **named: Any
    ) -> tuple[Any, ...]:
        """Lowers the gradients that ``needs`` selects to steps; returns their buffers."""
        like = [meta(x) for x in arrays]
        plan = self._plan(like, [meta(x) for x in results], needs, _plainly(named))
        saved, _ = plan.given(arrays, results)
        return tuple(plan.lowered(b, saved, dys))

    # -- gradients ----------------------------------------------------------------------------
    def setup(
        self, ctx: Any, inputs: Sequence[Any], output: Any, keyword_only_inputs: Any = None
    ) -> None:
        """Saves in autograd's ``ctx`` the arrays and options of a call (``inputs``,
        ``keyword_only_inputs``) and those of its results (``output``) that gradients read. Raises
        GradError for an operation without gradient.
        """
        named = keyword_only_inputs or {}
        args, results = self.args(inputs, named), _listed(output)
        if self.op.vjp is None and any(is_differentiable(r.dtype) for r in results):
            raise no_gradient(self.op)
        tensors = self.of.tensors(args)
        updated = [n in self.op.updates for n, _ in self.of.named(args)]
        ctx.updates = [t if u else None for t, u in zip(tensors, updated, strict=True)]
        ctx.named = {name: named[name] for name in self.options if name in named}
        ctx.lists = bool(self.of.lists)
        kept = [None if u or not isinstance(t, torch.Tensor) else t
                for t, u in zip(tensors, updated, strict=True)]  # fmt: skip
        ctx.count = len(kept)
        ctx.likes = [(r.shape, r.dtype) for r in results]
        read = self._results_read(args, tensors, results)
        ctx.save_for_backward(
            *kept, *(r if i in read else None for i, r in enumerate(results, len(kept)))
        )
        exact = [r for r in results if not is_differentiable(r.dtype)]
        if exact:
            ctx.mark_non_differentiable(*exact)

    def _results_read(
        self, args: Sequence[Any], tensors: Sequence[Any], results: Sequence[Any]
    ) -> Collection[int]:
        """Returns indices, counted after ``tensors``, of results that gradients read; callers may
        write to all others. Symbolic sizes are replaced by the compiler's hints.
        """
        every = range(len(tensors), len(tensors) + len(results))
        if self.op.vjp is None:
            return every
        like = [_hinted(x) for x in tensors]
        needs = [isinstance(x, torch.Tensor) and x.requires_grad for x in tensors]
        given = iter(like)
        named = dict(zip(self.of.names, args, strict=True))
        for p in self.op.parameters:
            value = named[p.name]
            if p.kind == ARRAYS:
                named[p.name] = tuple(next(given) for _ in value)
            elif p.kind in READ:
                named[p.name] = next(given)
            else:
                named[p.name] = _hint(value)
        try:
            found = self.of.plan(tuple(named.values()), needs, like, [_hinted(r) for r in results])
        except GradError:  # the backward pass raises it
            return every
        return found.saved

    def backward(self, ctx: Any, *given: Any) -> tuple[Any, ...]:
        """Returns a gradient for each array of the call, None where none is needed. ``ctx``:
        context filled by :meth:`setup`; ``given``: incoming gradients of the results. Sizes may be
        symbolic.
        """
        dys = given[0] if self.several else given
        all = ctx.saved_tensors  # once: a checkpoint computes them then
        saved = all[: ctx.count]
        lead = next(x for x in (*all, *ctx.updates, *dys) if x is not None)
        results = [
            x if x is not None else lead.new_empty(shape, dtype=dtype) if dy is None else dy
            for x, dy, (shape, dtype) in zip(all[ctx.count :], dys, ctx.likes, strict=True)
        ]  # of what is not read the shape is
        tensors = [u if u is not None else t for t, u in zip(saved, ctx.updates, strict=True)]
        asked = list(ctx.needs_input_grad[0] if ctx.lists else ctx.needs_input_grad)
        needs = [*asked, *[False] * len(tensors)][: len(tensors)]
        dys = by_result(results, dys)
        if torch.is_grad_enabled():
            plan = self._plan(tensors, results, needs, ctx.named)
            found = plan.differentiable(*plan.given(tensors, results), dys)
            gradients = list(plan.by_tensor(found))
        else:
            gradients = self._gradients(ctx, list(saved), list(results), dys, needs)
        count = len(ctx.needs_input_grad)  # tracing leaves trailing arguments away that are None
        return (gradients,) if ctx.lists else tuple(gradients[:count])

    def _gradients(
        self, ctx: Any, saved: list[Any], results: list[Any], dys: Any, needs: list[bool]
    ) -> list[Any]:
        """Computes the gradients that ``needs`` selects, by calling operators; returns a list with
        None for all other arrays. ``NAME_vjp`` returns the gradients of arrays without a
        ``main_grad``; ``NAME_vjp_`` adds those of the others to their ``main_grad``, and None is
        returned for them.

        ``saved``, ``results``: arrays and results of the forward pass; ``dys``: incoming gradients
        of the results.
        """
        adds = [need and self._sum(i, ctx.updates) is not None for i, need in enumerate(needs)]
        own = [need and not add for need, add in zip(needs, adds, strict=True)]
        made: list[Any] = []
        given = saved, results, dys
        if any(own):
            vjp = getattr(torch.ops.ptxgen, f"{self.op.name}_vjp")
            made = vjp(*given, own, **ctx.named)
        if any(adds):
            updates = [self._sum(i, ctx.updates) for i, add in enumerate(adds) if add]
            add = getattr(torch.ops.ptxgen, f"{self.op.name}_vjp_")
            add(*given, adds, updates, **ctx.named)
        found = iter(made)
        return [next(found) if need else None for need in own]

    def _sum(self, i: int, tensors: Sequence[Any]) -> Any:
        """Returns the one of ``tensors`` to which the gradient of array ``i`` is added (its
        ``main_grad``); None if the gradient is a result of its own.
        """
        at = self._sums.get(i)
        return None if at is None else tensors[at]

    def vjp(self, arrays: Any, results: Any, dys: Any, needs: Any, **named: Any) -> list[Any]:
        """Computes the gradients that ``needs`` selects; returns them in order, as new tensors.

        ``arrays``, ``results``: operands and results of the forward pass; ``dys``: incoming
        gradients of the results; ``needs``: a flag for each operand; ``named``: options.
        """
        plan = self._plan(arrays, results, needs, named)
        saved, _ = plan.given(arrays, results)
        found: list[Any] = list(plan.copies(*saved, *dys))
        return found

    def fake_vjp(self, arrays: Any, results: Any, dys: Any, needs: Any, **named: Any) -> list[Any]:
        """Returns fake tensors for the gradients that ``needs`` selects, each of the shape and
        dtype of its array; none for the others.
        """
        pairs = zip(arrays, needs, strict=True)
        return [x.new_empty(x.shape) for x, need in pairs if need]

    def update(
        self, arrays: Any, results: Any, dys: Any, needs: Any, updates: Any, **named: Any
    ) -> None:
        """Adds the gradients that ``needs`` selects to the tensors ``updates``, one for each, in
        place. The other arguments are those of :meth:`vjp`.
        """
        joined, own = list(arrays), iter(updates)
        for i, need in enumerate(needs):
            if need:
                joined[self._sums[i]] = next(own)
        plan = self._plan(joined, results, needs, named)
        saved, written = plan.given(joined, results)
        plan.copies(*saved, *written, *dys)
        for update in written:
            torch.autograd.graph.increment_version(update)

    def _plan(self, tensors: Any, results: Any, needs: Any, named: Any) -> Any:
        args = self.args((tensors,) if self.of.lists else tensors, named)
        return self.of.plan(args, needs, self.of.tensors(args), results)


def _listed(found: Any) -> list[Any]:
    return list(found) if isinstance(found, tuple | list) else [found]


def _option(p: Parameter, name: str) -> str:
    assert p.option is not None, "an option"
    kind = p.option.schema
    if p.needed:
        return f"{kind} {name}"
    if p.default is None:
        return f"{kind}? {name}=None"
    default = p.option.as_schema(p.default)
    default = list(default) if isinstance(default, tuple) else default
    text = f'"{default}"' if isinstance(default, str) else str(default)
    return f"{kind} {name}={text}"


SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)
"""Types of a compiler's symbolic scalars."""


def results_like(op: Op, given: Mapping[str, Any]) -> list[Any]:
    """Returns fake tensors for the results of a call with fake tensors; sizes may be symbolic."""
    builder = ProgramBuilder(OPERATIONS, op.name)
    builder.abstract = True
    lead: Any = None
    named: dict[str, Any] = {}
    for p in op.parameters:
        value = given[p.name]
        if p.kind == STREAM:
            continue
        if isinstance(value, torch.Tensor):
            lead = value if lead is None else lead
            named[p.name] = _buffer(value)
        elif p.kind == ARRAYS:
            lead = value[0]
            named[p.name] = tuple(map(_buffer, value))
        elif p.kind == OPTION:
            named[p.name] = value if isinstance(value, SYMBOLIC) else p.read(value)
        elif p.kind != WRITTEN or value is not None:
            named[p.name] = value
    found = op.lower(builder, **named)
    several = found if isinstance(found, tuple | list) else (found,)
    kinds = {name: dtype for dtype, name in NAMES.items()}
    return [lead.new_empty(b.shape, dtype=kinds[b.dtype]) for b in several if b is not None]


def _hint(x: Any) -> Any:
    """Returns a scalar; of a symbolic one its hint, the value in the example that is traced."""
    return x.node.hint if isinstance(x, SYMBOLIC) else x


def _hinted(x: Any) -> Any:
    """Returns shape and dtype of a tensor, with hints (:func:`_hint`) for symbolic sizes; any other
    value as it is.
    """
    if not isinstance(x, torch.Tensor):
        return x
    return _Like(tuple(map(_hint, x.shape)), x.dtype)


def _buffer(x: Any) -> Buffer:
    return imagined(x.shape, NAMES[x.dtype])


def _plainly(named: Mapping[str, Any]) -> dict[str, Any]:
    """Returns options with dtypes replaced by their names."""
    return {n: NAMES[x] if isinstance(x, torch.dtype) else x for n, x in named.items()}
