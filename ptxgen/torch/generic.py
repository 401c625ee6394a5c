"""Operators of ``torch.ops.ptxgen`` made from rows: any operation with a ``backward`` has one.

An operator has an implementation (any device; what no device serves is refused by name), one for
fake tensors, whose shapes and dtypes are what the row's ``read`` says, and the row's gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import torch

from ptxgen.errors import GradError, ShapeError
from ptxgen.numerics.dtype import DTYPES
from ptxgen.numerics.signature import Option
from ptxgen.ops import OPS, columns
from ptxgen.ops.op import Op
from ptxgen.ops.run import caller
from ptxgen.runtime.arrays import ArrayView
from ptxgen.runtime.dlpack import contiguous_strides

_TAGS = (torch.Tag.pt2_compliant_tag,)
_LIBRARY = torch.library.Library("ptxgen", "FRAGMENT")
_NAMES = {getattr(torch, name): name for name in DTYPES}


@cache
def operator(op: Op) -> Callable[..., Any]:
    """The operator of ``op``, registered when it is first asked for."""
    signature = op.signature
    call = caller(op)
    names = signature.arguments

    def bound(
        given: tuple[Any, ...], options: Mapping[str, Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        """All arguments, and all options by name."""
        tensors = [*given, *([None] * (len(names) - len(given)))]
        wanted = {n: options.get(n, o.default) for n, o in signature.options.items()}
        return tensors, wanted

    def compute(*given: Any, **options: Any) -> Any:
        tensors, wanted = bound(given, options)
        outs = (None,) * len(signature.results)
        how = (*wanted.values(), None)
        with torch.no_grad():  # autograd has been here, or was not wanted
            try:
                return call(*tensors, *outs, None, how)
            except ShapeError:
                plain = [None if t is None else t.contiguous() for t in tensors]
                if all(a is b for a, b in zip(plain, tensors, strict=True)):
                    raise
                return call(*plain, *outs, None, how)

    def fake(*given: Any, **options: Any) -> Any:
        tensors, wanted = bound(given, options)
        views = {
            name: _view(tensor)
            for name, tensor in zip(names, tensors, strict=True)
            if tensor is not None
        }
        nothing = (None,) * len(signature.results)
        reading = op.read(views, {**wanted, "kernel": None}, nothing)
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
        saved = ctx.saved_tensors
        tensors, wanted = bound(saved[: ctx.count], ctx.options)
        if op.backward is None:
            raise GradError(f"{op.name} has no gradient; call it under torch.no_grad()")
        # Tracing leaves trailing arguments away that are None.
        asked = ctx.needs_input_grad[: ctx.count]
        needs = (*asked, *([False] * (len(names) - len(asked))))
        found = op.backward(tuple(tensors), saved[ctx.count :], gradients, wanted, needs)
        return tuple(found[: ctx.count])

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
    """The operator of a row of the library, by its name."""
    made: Callable[..., Any] = getattr(torch.ops.ptxgen, _registered(name))
    return made


def _registered(name: str) -> str:
    """The name of an operator, which is there now."""
    operator(columns.OPS[name] if name in columns.OPS else OPS[name])
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
