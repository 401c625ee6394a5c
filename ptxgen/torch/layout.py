"""Operators of layouts, which autograd and compilers see: ``torch.ops.ptxgen.concat``, ``pad`` and
``rope``. The gradients are parts of the results' (views), and the other turn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ptxgen import layout
from ptxgen.errors import GradError
from ptxgen.torch.functional import gradient_wanted

_LIBRARY = torch.library.Library("ptxgen", "FRAGMENT")


def _compute_concat(arrays: list[Any], axis: int) -> Any:
    return layout.concat(arrays, axis)


def _fake_concat(arrays: list[Any], axis: int) -> Any:
    shape = list(arrays[0].shape)
    shape[axis] = sum(x.shape[axis] for x in arrays)
    return arrays[0].new_empty(shape)


def _setup_concat(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    arrays, ctx.axis = inputs
    ctx.lengths = [x.shape[ctx.axis] for x in arrays]


def _backward_concat(ctx: Any, gradient: Any) -> tuple[Any, ...]:
    needs = ctx.needs_input_grad[0]
    parts = gradient.split(ctx.lengths, ctx.axis)
    return [g if need else None for g, need in zip(parts, needs, strict=True)], None


def _pairs(widths: list[int]) -> list[tuple[int, int]]:
    return list(zip(widths[::2], widths[1::2], strict=True))


def _compute_pad(x: Any, widths: list[int], value: Any = 0) -> Any:
    return layout.pad(x, _pairs(widths), value)


def _fake_pad(x: Any, widths: list[int], value: Any = 0) -> Any:
    return x.new_empty([n + sum(w) for n, w in zip(x.shape, _pairs(widths), strict=True)])


def _setup_pad(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    x, ctx.widths, _ = inputs
    ctx.shape = x.shape


def _backward_pad(ctx: Any, gradient: Any) -> tuple[Any, ...]:
    for axis, (size, (before, _)) in enumerate(zip(ctx.shape, _pairs(ctx.widths), strict=True)):
        gradient = gradient.narrow(axis, before, size)
    return gradient, None, None


def _compute_rope(x: Any, cos: Any, sin: Any, interleaved: bool = False) -> Any:
    return layout.rope(x, cos, sin, interleaved=interleaved)


def _fake_rope(x: Any, cos: Any, sin: Any, interleaved: bool = False) -> Any:
    return x.new_empty(x.shape)


def _setup_rope(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    _, cos, sin, ctx.interleaved = inputs
    ctx.save_for_backward(cos, sin)


def _backward_rope(ctx: Any, gradient: Any) -> tuple[Any, ...]:
    cos, sin = ctx.saved_tensors
    if any(ctx.needs_input_grad[1:3]):
        raise GradError("rope has no gradients of cos and sin; detach them")
    return rope(gradient, cos, -sin, ctx.interleaved), None, None, None


class Recorded(torch.autograd.Function):
    """``rope`` and its gradient, where only autograd watches."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Any:
        _setup_rope(ctx, inputs, None)
        x, cos, sin, interleaved = inputs
        return layout.rope(x, cos, sin, interleaved=interleaved)

    backward = staticmethod(_backward_rope)


_recorded = super(torch.autograd.Function, Recorded).apply
"""``Recorded.apply`` without what it does for ``torch.func``, which never comes here."""


def rope(x: Any, cos: Any, sin: Any, interleaved: bool = False) -> Any:
    """As an operator, or as a function of autograd, or as it is."""
    wanted = gradient_wanted(x, cos, sin)
    if wanted is None:
        return torch.ops.ptxgen.rope(x, cos, sin, interleaved)
    if wanted:
        return _recorded(x, cos, sin, interleaved)
    return layout.rope(x, cos, sin, interleaved=interleaved)


def _unrecorded(compute: Callable[..., Any]) -> Callable[..., Any]:
    """``compute`` as an operator runs it: autograd has been here, or was not wanted."""

    def implementation(*args: Any) -> Any:
        with torch.no_grad():
            return compute(*args)

    return implementation


def _register(schema: str, compute: Any, fake: Any, setup: Any, backward: Any) -> None:
    name = schema.partition("(")[0]
    _LIBRARY.define(f"{schema} -> Tensor", tags=(torch.Tag.pt2_compliant_tag,))
    _LIBRARY.impl(name, _unrecorded(compute), "CompositeExplicitAutograd")
    torch.library.register_fake(f"ptxgen::{name}", fake, lib=_LIBRARY)
    torch.library.register_autograd(f"ptxgen::{name}", backward, setup_context=setup, lib=_LIBRARY)


_register(
    "concat(Tensor[] arrays, int axis)",
    *(_compute_concat, _fake_concat, _setup_concat, _backward_concat),
)
_register(
    "pad(Tensor x, SymInt[] widths, Scalar value=0)",
    *(_compute_pad, _fake_pad, _setup_pad, _backward_pad),
)
_register(
    "rope(Tensor x, Tensor cos, Tensor sin, bool interleaved=False)",
    *(_compute_rope, _fake_rope, _setup_rope, _backward_rope),
)
