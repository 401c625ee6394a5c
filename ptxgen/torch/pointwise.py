"""``torch.ops.ptxgen.pointwise``: the one operator of all pointwise functions.

It names the function by its key (:attr:`ptxgen.ops.pointwise.Pointwise.key`), so that a function
needs no registration, and has an implementation (any device), one for fake tensors, and gradients:
one kernel for those of all arguments. What an argument was broadcast along is summed by PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from ptxgen.numerics.formula import FLOATS, STORED
from ptxgen.numerics.pointwise import NAMES
from ptxgen.ops.pointwise import Pointwise, named
from ptxgen.ops.replay import Parameter, front
from ptxgen.torch.functional import gradient_wanted

_LIBRARY = torch.library.Library("ptxgen", "FRAGMENT")
_DTYPES = {short: getattr(torch, full) for full, short in NAMES.items()}
_SHORT = {dtype: short for short, dtype in _DTYPES.items()}


def _arguments(which: str, arrays: Sequence[Any], numbers: Sequence[Any]) -> tuple[Any, ...]:
    """All arguments in order: ``which`` has a letter for each, "a" of an array, "n" of a number."""
    sources = {"a": iter(arrays), "n": iter(numbers)}
    return tuple(next(sources[letter]) for letter in which)


def _wanted(dtypes: Sequence[str] | None) -> Any:
    if dtypes is None:
        return None
    return dtypes[0] if len(dtypes) == 1 else tuple(d or None for d in dtypes)


def _listed(results: Any) -> list[Any]:
    return list(results) if isinstance(results, tuple) else [results]


def _compute(
    name: str, which: str, arrays: list[Any], numbers: list[Any], dtypes: list[str] | None
) -> list[Any]:
    with torch.no_grad():  # autograd has been here, or was not wanted
        return _computed(name, which, arrays, numbers, dtypes)


def _computed(
    name: str,
    which: str,
    arrays: Sequence[Any],
    numbers: Sequence[Any],
    dtypes: Sequence[str] | None,
) -> list[Any]:
    found = named(name)(*_arguments(which, arrays, numbers), out_dtype=_wanted(dtypes))
    return _listed(found)


def _fake(
    name: str, which: str, arrays: list[Any], numbers: list[Any], dtypes: list[str] | None
) -> list[Any]:
    given = _arguments(which, arrays, numbers)
    kinds = tuple(
        _SHORT.get(a.dtype) if letter == "a" else None
        for a, letter in zip(given, which, strict=True)
    )
    formula = named(name).formula(kinds, _wanted(dtypes))
    shape = torch.broadcast_shapes(*(a.shape for a in arrays))
    return [arrays[0].new_empty(shape, dtype=_DTYPES[o.dtype]) for o in formula.outputs]


def _setup(ctx: Any, inputs: tuple[Any, ...], output: list[Any]) -> None:
    name, ctx.which, arrays, ctx.numbers, dtypes = inputs
    ctx.function = named(name)  # kept, whoever else lets go of it
    ctx.results = len(output)
    # What stands for gradients of lists that have none: torch takes an empty one as it came.
    ctx.nothing = None if ctx.numbers else [], [] if dtypes == [] else None
    ctx.save_for_backward(*arrays)


def _backward(ctx: Any, gradients: list[Any]) -> tuple[Any, ...]:
    found = _gradients(ctx, ctx.needs_input_grad[2], gradients)
    return None, None, list(found), *ctx.nothing


def _gradients(ctx: Any, needs: Sequence[bool], gradients: Sequence[Any]) -> Sequence[Any]:
    """Those of the arrays that need one, None for the others."""
    function, arrays = ctx.function, ctx.saved_tensors
    key = ctx.which, len(gradients)
    planned = function.plans.get(key)
    if planned is None:
        planned = function.plans[key] = _remembered(function, *key)
    found: Sequence[Any] = planned(*arrays, *gradients, ctx.numbers, tuple(needs))
    return found


def _remembered(function: Pointwise, which: str, results: int) -> Callable[..., Any]:
    """What computes gradients, by plans (:mod:`ptxgen.ops.replay`): of arrays, gradients of
    results, numbers, and which arrays need one.
    """
    count = which.count("a")

    def backward(*given: Any) -> tuple[Any, ...]:
        *tensors, numbers, needs = given
        arrays, gradients = tensors[:count], tensors[count:]
        asked = [
            bool(need) and STORED[_SHORT[a.dtype]] in FLOATS
            for a, need in zip(arrays, needs, strict=True)
        ]
        of = [a for a, need in zip(arrays, asked, strict=True) if need]
        if not of:
            return (None,) * count
        shape = gradients[0].shape
        each = _arguments(which, asked, [False] * len(numbers))
        # What is still to be summed is not rounded before.
        dtypes = tuple(_SHORT[a.dtype] if a.shape == shape else STORED[_SHORT[a.dtype]] for a in of)
        gradient = function.gradient(each, results)
        found = _listed(gradient(*_arguments(which, arrays, numbers), *gradients, out_dtype=dtypes))
        made = (
            g if a.shape == shape else g.sum_to_size(a.shape).to(a.dtype)
            for a, g in zip(of, found, strict=True)
        )
        return tuple(next(made) if need else None for need in asked)

    def missed(follow: Callable[..., Any] | None, *given: Any) -> Any:
        return backward(*given) if follow is None else follow(backward, *given)

    parameters = [Parameter(f"t{i}", "array") for i in range(count + results)]
    return front([*parameters, Parameter("how", "list"), Parameter("needs", "value")], missed)


class Recorded(torch.autograd.Function):
    """A function and its gradients, where only autograd watches."""

    @staticmethod
    def forward(
        ctx: Any, name: str, which: str, numbers: list[Any], dtypes: Any, *arrays: Any
    ) -> tuple[Any, ...]:
        found = _computed(name, which, arrays, numbers, dtypes)
        ctx.which, ctx.numbers, ctx.function, ctx.results = which, numbers, named(name), len(found)
        ctx.save_for_backward(*arrays)
        return tuple(found)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Any, ...]:
        return None, None, None, None, *_gradients(ctx, ctx.needs_input_grad[4:], gradients)


_recorded = super(torch.autograd.Function, Recorded).apply
"""``Recorded.apply`` without what it does for ``torch.func``, which never comes here."""


def _shown(
    name: str, which: str, arrays: list[Any], numbers: list[Any], dtypes: list[str] | None
) -> Sequence[Any]:
    """As an operator, or as a function of autograd, or as it is."""
    wanted = gradient_wanted(*arrays)
    found: Sequence[Any]
    if wanted is None:
        found = torch.ops.ptxgen.pointwise(name, which, arrays, numbers, dtypes)
    elif wanted:
        found = _recorded(name, which, numbers, dtypes, *arrays)
    else:
        found = _computed(name, which, arrays, numbers, dtypes)
    return found


_LIBRARY.define(
    "pointwise(str name, str which, Tensor[] arrays, Scalar[] numbers, str[]? dtypes) -> Tensor[]",
    tags=(torch.Tag.pt2_compliant_tag,),
)
_LIBRARY.impl("pointwise", _compute, "CompositeExplicitAutograd")
torch.library.register_fake("ptxgen::pointwise", _fake, lib=_LIBRARY)
torch.library.register_autograd("ptxgen::pointwise", _backward, setup_context=_setup, lib=_LIBRARY)
Pointwise._traced = staticmethod(torch.compiler.is_dynamo_compiling)
Pointwise._shown = staticmethod(_shown)
