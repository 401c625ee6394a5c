"""Operators of ``torch.ops.ptxgen`` made from rows: any operation with a ``backward`` has one.

An operator has an implementation (any device; what no device serves is refused by name), one for
fake tensors, whose shapes and dtypes are what the row's ``read`` says, and the row's gradients.

As for products (:mod:`ptxgen.torch.functional`), a call that nobody but autograd watches goes
straight to the library, or through an ``autograd.Function`` where a gradient is wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import torch

from ptxgen.errors import GradError, ShapeError
from ptxgen.numerics.dtype import DTYPES
from ptxgen.numerics.signature import Option
from ptxgen.ops import OPS, columns
from ptxgen.ops.op import Op
from ptxgen.ops.replay import Parameter, front, recorder_of
from ptxgen.ops.run import caller
from ptxgen.runtime.arrays import ArrayView
from ptxgen.runtime.dlpack import contiguous_strides
from ptxgen.torch.functional import gradient_wanted

_TAGS = (torch.Tag.pt2_compliant_tag,)
_LIBRARY = torch.library.Library("ptxgen", "FRAGMENT")
_NAMES = {getattr(torch, name): name for name in DTYPES}


class Row:
    """An operation as PyTorch calls it."""

    def __init__(self, op: Op) -> None:
        self.op = op
        self._call = caller(op)
        self._outs = (None,) * len(op.signature.results)
        self._defaults = {n: o.default for n, o in op.signature.options.items()}
        self._count = len(op.signature.arguments)
        self.gradients = _remembered(self)

    def all(self, given: Sequence[Any]) -> tuple[Any, ...]:
        """All arguments; those that may be left out come last."""
        return (*given, *(None,) * (self._count - len(given)))

    def options(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """All options by name."""
        return {**self._defaults, **given}

    def compute(self, tensors: Sequence[Any], options: Mapping[str, Any]) -> Any:
        """The results. Operands that no kernel reads are copied."""
        how = (*self.options(options).values(), None)
        try:
            return self._call(*tensors, *self._outs, None, how)
        except ShapeError:
            plain = [None if t is None else t.contiguous() for t in tensors]
            if all(a is b for a, b in zip(plain, tensors, strict=True)):
                raise
            return self._call(*plain, *self._outs, None, how)

    def backward(
        self,
        saved: Sequence[Any],
        gradients: Sequence[Any],
        options: Mapping[str, Any],
        asked: Sequence[bool],
    ) -> tuple[Any, ...]:
        """The gradients of all arguments; ``saved`` are those, and the results behind them."""
        if self.op.backward is None:
            raise GradError(f"{self.op.name} has no gradient; call it under torch.no_grad()")
        # Tracing leaves trailing arguments away that are None.
        given = self.all(saved[: len(saved) - len(self._outs)])
        results = tuple(saved[len(saved) - len(self._outs) :])
        needs = (*asked, *(False,) * (self._count - len(asked)))
        return self.op.backward(given, results, tuple(gradients), self.options(options), needs)


def _remembered(row: Row) -> Callable[..., Any]:
    """:meth:`Row.backward` by plans (:mod:`ptxgen.ops.replay`): of what is saved, the gradients,
    the options that were given, as pairs, and which arguments need a gradient.
    """
    signature = row.op.signature
    count = len(signature.arguments) + len(signature.results)
    tensors = count + len(signature.results)

    def backward(*given: Any) -> tuple[Any, ...]:
        *saved, options, needs = given
        return row.backward(saved[:count], saved[count:], dict(options), needs)

    def missed(follow: Callable[..., Any] | None, *given: Any) -> Any:
        return backward(*given) if follow is None else follow(backward, *given)

    parameters = [Parameter(f"t{i}", "optional") for i in range(tensors)]
    return front([*parameters, Parameter("how", "value"), Parameter("needs", "value")], missed)


class Recorded(torch.autograd.Function):
    """A row's operation and its gradients."""

    @staticmethod
    def forward(ctx: Any, row: Row, options: Mapping[str, Any], *tensors: Any) -> Any:
        found = row.compute(tensors, options)
        ctx.row, ctx.options = row, options
        ctx.save_for_backward(*tensors, *(found if isinstance(found, tuple) else (found,)))
        return found

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Any, ...]:
        how, needs = tuple(ctx.options.items()), ctx.needs_input_grad[2:]
        return None, None, *ctx.row.gradients(*ctx.saved_tensors, *gradients, how, needs)


_row = cache(Row)
_recorded = super(torch.autograd.Function, Recorded).apply
"""``Recorded.apply`` without what it does for ``torch.func``, which never comes here."""


@cache
def called(op: Op) -> Callable[..., Any]:
    """What calls ``op`` in PyTorch."""
    row, shown = _row(op), operator(op)

    def call(*given: Any, **options: Any) -> Any:
        wanted = gradient_wanted(*given)
        if wanted is None and recorder_of(given) is None:
            return shown(*given, **options)
        if wanted:
            return _recorded(row, options, *row.all(given))
        return row.compute(row.all(given), options)

    call.__name__ = call.__qualname__ = op.name
    return call


@cache
def operator(op: Op) -> Callable[..., Any]:
    """The operator of ``op``, registered when it is first asked for."""
    row, signature = _row(op), op.signature
    names = signature.arguments

    def compute(*given: Any, **options: Any) -> Any:
        with torch.no_grad():  # autograd has been here, or was not wanted
            return row.compute(row.all(given), options)

    def fake(*given: Any, **options: Any) -> Any:
        views = {
            name: _view(tensor)
            for name, tensor in zip(names, row.all(given), strict=True)
            if tensor is not None
        }
        nothing = (None,) * len(signature.results)
        reading = op.read(views, {**row.options(options), "kernel": None}, nothing)
        results = tuple(
            given[0].new_empty(r.shape, dtype=getattr(torch, r.dtype)) for r in reading.results
        )
        return results[0] if len(results) == 1 else results

    def setup(
        ctx: Any, inputs: tuple[Any, ...], output: Any, keyword_only_inputs: Any = None
    ) -> None:
        results = output if isinstance(output, tuple) else (output,)
        ctx.count = len(inputs)
        ctx.options = dict(keyword_only_inputs or {})  # torch names none where there are none
        ctx.save_for_backward(*inputs, *results)

    def backward(ctx: Any, *gradients: Any) -> tuple[Any, ...]:
        asked = ctx.needs_input_grad[: ctx.count]
        return row.backward(ctx.saved_tensors, gradients, ctx.options, asked)[: ctx.count]

    results = (
        "Tensor"
        if len(signature.results) == 1
        else (f"({', '.join(['Tensor'] * len(signature.results))})")
    )
    _LIBRARY.define(f"{op.name}({_schema(op)}) -> {results}", tags=_TAGS)
    _LIBRARY.impl(op.name, compute, "CompositeExplicitAutograd")
    torch.library.register_fake(f"ptxgen::{op.name}", fake, lib=_LIBRARY)
    torch.library.register_autograd(
        f"ptxgen::{op.name}", backward, setup_context=setup, lib=_LIBRARY
    )
    made: Callable[..., Any] = getattr(torch.ops.ptxgen, op.name)
    return made


def named(name: str) -> Callable[..., Any]:
    """What calls a row of the library, by its name."""
    if torch.compiler.is_compiling():
        made: Callable[..., Any] = getattr(torch.ops.ptxgen, _registered(name))
        return made
    return _called(name)


@cache
def _called(name: str) -> Callable[..., Any]:
    return called(_named(name))


def _named(name: str) -> Op:
    return columns.OPS[name] if name in columns.OPS else OPS[name]


def _registered(name: str) -> str:
    """The name of an operator, which is there now."""
    operator(_named(name))
    return name


# What torch.compiler.assume_constant_result sets, which imports the compiler. Code that is traced
# calls this, and does not trace what it does.
_registered._dynamo_marked_constant = True  # type: ignore[attr-defined]


def _schema(op: Op) -> str:
    signature = op.signature
    arguments = [
        f"Tensor? {n}=None" if n in signature.optional else f"Tensor {n}"
        for n in signature.arguments
    ]
    return ", ".join(
        [*arguments, "*", *map(_option, signature.options, signature.options.values())]
    )


def _option(name: str, option: Option) -> str:
    if option.default is None:
        return f"{option.kind}? {name}=None"
    text = f'"{option.default}"' if isinstance(option.default, str) else str(option.default)
    return f"{option.kind} {name}={text}"


def _view(tensor: Any) -> ArrayView:
    """A tensor without memory, as ``read`` sees arrays: packed, at an address of any alignment."""
    return ArrayView(
        ptr=0,
        shape=tuple(tensor.shape),
        strides=contiguous_strides(tuple(tensor.shape)),
        dtype=_NAMES.get(tensor.dtype, str(tensor.dtype).removeprefix("torch.")),
        kind="cuda",
        index=0,
        readonly=False,
        framework="torch",
        owner=None,
    )
