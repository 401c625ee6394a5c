"""``torch.ops.ptxgen.pointwise``: the one operator of all pointwise functions.

A call names the function by its key (:attr:`ptxgen.ops.pointwise.Pointwise.key`), so that a
function needs no registration. The operator has an implementation (any device), one for fake
tensors, and gradients, which one kernel computes for all arguments. Gradients of broadcast
arguments are summed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from ptxgen.numerics.dtype import FULL
from ptxgen.ops import OPERATIONS
from ptxgen.ops.pointwise import Pointwise, named, short
from ptxgen.program.operation import Backward
from ptxgen.torch.record import NAMES, TorchBuilder, recorder

_LIBRARY = torch.library.Library("ptxgen", "FRAGMENT")


def call_operator(op: Pointwise, given: Mapping[str, Any]) -> Any:
    """Calls a pointwise function as the operator ``torch.ops.ptxgen.pointwise``; returns its
    result, or a tuple of several. ``given``: all arguments by name, ``out_dtype`` included.
    """
    values = [given[n] for n in op.arguments]
    tensors = [isinstance(v, torch.Tensor) for v in values]
    which = "".join("a" if t else "n" for t in tensors)
    arrays = [v for v, t in zip(values, tensors, strict=True) if t]
    numbers = [v for v, t in zip(values, tensors, strict=True) if not t]
    wanted = given["out_dtype"]
    several = wanted if isinstance(wanted, tuple | list) else [wanted]
    dtypes = None if wanted is None else [_name(d) for d in several]
    found = torch.ops.ptxgen.pointwise(op.key, which, arrays, numbers, dtypes)
    return found[0] if len(found) == 1 else tuple(found)


def _name(dtype: Any) -> str:
    if dtype is None:
        return ""
    return NAMES[dtype] if isinstance(dtype, torch.dtype) else str(dtype)


def _arguments(which: str, arrays: Sequence[Any], numbers: Sequence[Any]) -> tuple[Any, ...]:
    """Returns all arguments in order: ``which`` has "a" for each array and "n" for each number."""
    sources = {"a": iter(arrays), "n": iter(numbers)}
    return tuple(next(sources[letter]) for letter in which)


def lower(
    b: Any, key: str, which: str, arrays: Sequence[Any], numbers: Sequence[Any], dtypes: Any
) -> tuple[Any, ...]:
    """Lowers a call of ``torch.ops.ptxgen.pointwise`` to steps; returns the result buffers.

    ``key``: identifies the pointwise function; ``which``: for each of its arguments "a", the next
    of ``arrays``, or "n", the next of ``numbers``; ``dtypes``: names of the results' dtypes, or
    None.
    """
    found = b.call(named(key), *_arguments(which, arrays, numbers), out_dtype=_wanted(dtypes))
    return found if isinstance(found, tuple) else (found,)


def _wanted(dtypes: Sequence[str] | None) -> Any:
    """Converts ``dtypes`` of the operator, one name for each result ("" for the default) or None,
    to ``out_dtype`` of a pointwise function: a full name such as "float32" for "f32", a tuple of
    names and None, or None.
    """
    if dtypes is None:
        return None
    full = tuple(FULL.get(d, d) or None for d in dtypes)
    return full[0] if len(full) == 1 else full


def _compute(
    name: str, which: str, arrays: list[Any], numbers: list[Any], dtypes: list[str] | None
) -> list[Any]:
    op = named(name)
    given = dict(zip(op.arguments, _arguments(which, arrays, numbers), strict=True))
    given["out_dtype"] = _wanted(dtypes)
    found = recorder(op).plain(tuple(given.get(p.name) for p in op.parameters))
    return list(found) if isinstance(found, tuple) else [found]


def _fake(
    name: str, which: str, arrays: list[Any], numbers: list[Any], dtypes: list[str] | None
) -> list[Any]:
    op = named(name)
    given = _arguments(which, arrays, numbers)
    kinds = tuple(
        short(NAMES[x.dtype], n, op.known) if letter == "a" else None
        for x, n, letter in zip(given, op.arguments, which, strict=True)
    )
    formula = op.formula(kinds, _wanted(dtypes))
    shape = torch.broadcast_shapes(*(a.shape for a in arrays))
    made = (getattr(torch, FULL[o.dtype]) for o in formula.outputs)
    return [arrays[0].new_empty(shape, dtype=dtype) for dtype in made]


def _setup(ctx: Any, inputs: tuple[Any, ...], output: list[Any]) -> None:
    name, ctx.which, arrays, ctx.numbers, dtypes = inputs
    ctx.function = named(name)  # kept, whoever else lets go of it
    # What stands for gradients of lists that have none: torch takes an empty one as it came.
    ctx.nothing = None if ctx.numbers else [], [] if dtypes == [] else None
    ctx.save_for_backward(*arrays)


def _backward(ctx: Any, dys: list[Any]) -> tuple[Any, ...]:
    """Returns the gradients of the arrays of a ``ptxgen::pointwise`` call, computed by the gradient
    of its pointwise function; under a compiler that is an operator as well. ``ctx``: saved by
    :func:`_setup`; ``dys``: incoming gradients of the results.
    """
    op, arrays, needs = ctx.function, ctx.saved_tensors, ctx.needs_input_grad[2]
    values = _arguments(ctx.which, arrays, ctx.numbers)
    wanted = _arguments(ctx.which, needs, [False] * len(ctx.numbers))
    asked = frozenset(n for n, need in zip(op.arguments, wanted, strict=True) if need)
    of = Backward(dict(zip(op.arguments, values, strict=True)), {}, (), tuple(dys), asked)
    found = op.vjp(TorchBuilder(OPERATIONS), of)
    pairs = zip(op.arguments, ctx.which, strict=True)
    gradients = [found.get(n) for n, letter in pairs if letter == "a"]
    return None, None, gradients, *ctx.nothing


_LIBRARY.define(
    "pointwise(str name, str which, Tensor[] arrays, Scalar[] numbers, str[]? dtypes) -> Tensor[]",
    tags=(torch.Tag.pt2_compliant_tag,),
)
_LIBRARY.impl("pointwise", _compute, "CompositeExplicitAutograd")
torch.library.register_fake("ptxgen::pointwise", _fake, lib=_LIBRARY)
torch.library.register_autograd("ptxgen::pointwise", _backward, setup_context=_setup, lib=_LIBRARY)
