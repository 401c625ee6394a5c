"""``torch.ops.ptxgen.pointwise``: the one operator of all pointwise functions.

It names the function by its key (:attr:`ptxgen.ops.pointwise.Pointwise.key`), so that a function
needs no registration, and has an implementation (any device), one for fake tensors, and gradients:
one kernel for those of all arguments. What an argument was broadcast along is summed by PyTorch.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from ptxgen.numerics.formula import FLOATS, STORED
from ptxgen.numerics.pointwise import NAMES
from ptxgen.ops.pointwise import Pointwise, named

_LIBRARY = torch.library.Library("ptxgen", "FRAGMENT")
_DTYPES = {short: getattr(torch, full) for full, short in NAMES.items()}
_SHORT = {dtype: short for short, dtype in _DTYPES.items()}


def _arguments(which: str, arrays: list[Any], numbers: list[Any]) -> tuple[Any, ...]:
    """All arguments in order: ``which`` has a letter for each, "a" of an array, "n" of a number."""
    sources = {"a": iter(arrays), "n": iter(numbers)}
    return tuple(next(sources[letter]) for letter in which)


def _wanted(dtypes: list[str] | None) -> Any:
    if dtypes is None:
        return None
    return dtypes[0] if len(dtypes) == 1 else tuple(d or None for d in dtypes)


def _listed(results: Any) -> list[Any]:
    return list(results) if isinstance(results, tuple) else [results]


def _compute(
    name: str, which: str, arrays: list[Any], numbers: list[Any], dtypes: list[str] | None
) -> list[Any]:
    with torch.no_grad():  # autograd has been here, or was not wanted
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
    ctx.name, ctx.which, arrays, ctx.numbers, dtypes = inputs
    ctx.results = len(output)
    # Gradients of what has none, in lists as they came.
    ctx.nothing = [None] * len(ctx.numbers), dtypes and [None] * len(dtypes)
    ctx.save_for_backward(*arrays)


def _backward(ctx: Any, gradients: list[Any]) -> tuple[Any, ...]:
    arrays = list(ctx.saved_tensors)
    asked = [
        bool(need) and STORED[_SHORT[a.dtype]] in FLOATS
        for a, need in zip(arrays, ctx.needs_input_grad[2], strict=True)
    ]
    of = [a for a, need in zip(arrays, asked, strict=True) if need]
    made: Iterator[Any] = iter(())
    if of:
        shape = gradients[0].shape
        needs = _arguments(ctx.which, asked, [False] * len(ctx.numbers))
        # What is still to be summed is not rounded before.
        dtypes = tuple(_SHORT[a.dtype] if a.shape == shape else STORED[_SHORT[a.dtype]] for a in of)
        arguments = _arguments(ctx.which, arrays, ctx.numbers)
        gradient = named(ctx.name).gradient(needs, ctx.results)
        found = _listed(gradient(*arguments, *gradients, out_dtype=dtypes))
        made = (
            g if a.shape == shape else g.sum_to_size(a.shape).to(a.dtype)
            for a, g in zip(of, found, strict=True)
        )
    return None, None, [next(made) if need else None for need in asked], *ctx.nothing


_LIBRARY.define(
    "pointwise(str name, str which, Tensor[] arrays, Scalar[] numbers, str[]? dtypes) -> Tensor[]",
    tags=(torch.Tag.pt2_compliant_tag,),
)
_LIBRARY.impl("pointwise", _compute, "CompositeExplicitAutograd")
torch.library.register_fake("ptxgen::pointwise", _fake, lib=_LIBRARY)
torch.library.register_autograd("ptxgen::pointwise", _backward, setup_context=_setup, lib=_LIBRARY)
Pointwise._traced = staticmethod(torch.compiler.is_dynamo_compiling)
