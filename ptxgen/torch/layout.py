"""``torch.ops.ptxgen.rope``: rotary embedding with its gradient, which turns the other way."""

from __future__ import annotations

from typing import Any

import torch

from ptxgen import layout
from ptxgen.errors import GradError
from ptxgen.torch.functional import gradient_wanted

_LIBRARY = torch.library.Library("ptxgen", "FRAGMENT")


def _compute(x: Any, cos: Any, sin: Any, interleaved: bool = False) -> Any:
    with torch.no_grad():
        return layout.rope(x, cos, sin, interleaved=interleaved)


def _fake(x: Any, cos: Any, sin: Any, interleaved: bool = False) -> Any:
    return x.new_empty(x.shape)


def _setup(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    _, cos, sin, ctx.interleaved = inputs
    ctx.save_for_backward(cos, sin)


def _backward(ctx: Any, gradient: Any) -> tuple[Any, ...]:
    cos, sin = ctx.saved_tensors
    if any(ctx.needs_input_grad[1:3]):
        raise GradError("rope has no gradients of cos and sin; detach them")
    return rope(gradient, cos, -sin, ctx.interleaved), None, None, None


class Recorded(torch.autograd.Function):
    """``rope`` and its gradient, where only autograd watches."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Any:
        _setup(ctx, inputs, None)
        x, cos, sin, interleaved = inputs
        return layout.rope(x, cos, sin, interleaved=interleaved)

    backward = staticmethod(_backward)


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


_LIBRARY.define(
    "rope(Tensor x, Tensor cos, Tensor sin, bool interleaved=False) -> Tensor",
    tags=(torch.Tag.pt2_compliant_tag,),
)
_LIBRARY.impl("rope", _compute, "CompositeExplicitAutograd")
torch.library.register_fake("ptxgen::rope", _fake, lib=_LIBRARY)
torch.library.register_autograd("ptxgen::rope", _backward, setup_context=_setup, lib=_LIBRARY)
