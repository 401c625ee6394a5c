"""Products with NF4 weights, with gradients to all but the weight, which is frozen.

Ways and operators are those of :mod:`ptxgen.torch.functional`: straight, through an
``autograd.Function``, or as ``torch.ops.ptxgen.nf4_linear`` and ``nf4_linear_dgrad``, with the same
bits. A weight comes as the two tensors of :attr:`ptxgen.nf4.Weight.operands`.
"""

from __future__ import annotations

from typing import Any

import torch

from ptxgen.errors import GradError
from ptxgen.numerics.nf4 import DGRAD, LINEAR
from ptxgen.ops.nf4 import OPS
from ptxgen.ops.nf4_weight import Weight
from ptxgen.ops.run import caller
from ptxgen.torch.functional import (
    any_autocast,
    autocast,
    bias_gradient,
    derivative,
    gradient_wanted,
    main_grad_of,
    name,
    rounded,
    rows,
)

_run, _run_dgrad = caller(OPS[LINEAR.name]), caller(OPS[DGRAD.name])


def nf4_linear(
    x: torch.Tensor,
    q: Weight,
    bias: torch.Tensor | None = None,
    *,
    activation: str | None = None,
    accumulate: str = "auto",
    out_dtype: torch.dtype | None = None,
) -> torch.Tensor:
    """``activation(x · Wᵀ + bias)``: :func:`ptxgen.nf4.linear` with gradients to x and the bias.

    ``q`` is frozen: it has no gradient. dx is :func:`ptxgen.nf4.linear_dgrad`, with the same
    ``accumulate``; the bias's gradient, activations, autocast (of x, and of a bias that is not
    float32), ``main_grad`` of the bias and strides are as in :func:`ptxgen.torch.linear`.

    Raises what :func:`ptxgen.nf4.linear` raises, and GradError for scales that require grad.
    """
    return multiplied(x, *q.operands, bias, activation, accumulate, out_dtype)


def multiplied(
    x: torch.Tensor,
    data: torch.Tensor,
    scales: torch.Tensor,
    bias: torch.Tensor | None = None,
    activation: str | None = None,
    accumulate: str = "auto",
    out_dtype: torch.dtype | None = None,
) -> torch.Tensor:
    """:func:`nf4_linear` of a weight in its two tensors."""
    if scales.requires_grad:
        raise GradError("scales requires grad, but an NF4 weight is frozen; pass scales.detach()")
    options = activation, accumulate, out_dtype
    wanted = gradient_wanted(x, data, bias)
    if wanted is None:  # the operator minds autocast
        kept = main_grad_of(bias)
        found: torch.Tensor = torch.ops.ptxgen.nf4_linear(x, data, scales, bias, *options, kept)
        return found
    kept = main_grad_of(bias) if wanted and bias is not None and bias.requires_grad else None
    if any_autocast():
        x, bias, _ = autocast(x, bias)
    if not wanted:
        return compute_linear(x, data, scales, bias, *options)
    found = _recorded(x, data, scales, bias, *options, kept)
    return found


def _dgrad(
    dy: torch.Tensor, data: torch.Tensor, scales: torch.Tensor, accumulate: str
) -> torch.Tensor:
    """:func:`ptxgen.nf4.linear_dgrad`, with gradients to dy."""
    wanted = gradient_wanted(dy, data)
    if wanted is None:
        found: torch.Tensor = torch.ops.ptxgen.nf4_linear_dgrad(dy, data, scales, accumulate)
        return found
    return (Nf4Dgrad.apply if wanted else compute_dgrad)(dy, data, scales, accumulate)


def compute_linear(
    x: torch.Tensor,
    data: torch.Tensor,
    scales: torch.Tensor,
    bias: torch.Tensor | None = None,
    activation: str | None = None,
    accumulate: str = "auto",
    out_dtype: torch.dtype | None = None,
    bias_main_grad: torch.Tensor | None = None,
) -> torch.Tensor:
    """The product; ``bias_main_grad`` is for the gradients only."""
    bias = None if bias is None else bias.contiguous()
    options = accumulate, None if out_dtype is None else name(out_dtype), activation, None
    y: torch.Tensor = _run(rows(x), data, scales, bias, None, None, options)
    return y


def compute_dgrad(
    dy: torch.Tensor,
    data: torch.Tensor,
    scales: torch.Tensor,
    accumulate: str = "auto",
    out_dtype: torch.dtype | None = None,
) -> torch.Tensor:
    """The gradient of x."""
    options = accumulate, None if out_dtype is None else name(out_dtype), None
    dx: torch.Tensor = _run_dgrad(rows(dy), data, scales, None, None, options)
    return dx


class Nf4Linear(torch.autograd.Function):
    """``nf4_linear`` and its gradients."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> torch.Tensor:
        y = compute_linear(*inputs)
        Nf4Linear.setup(ctx, inputs, y)
        return y

    @staticmethod
    def setup(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        """Keeps the weight, and x or the result only for an activation's derivative."""
        x, data, scales, bias, activation, ctx.accumulate, _, ctx.main_grad = inputs
        ctx.activation, ctx.dtype = activation, x.dtype
        ctx.bias_dtype = None if bias is None else bias.dtype
        again = activation not in (None, "relu")  # the product is made again
        ctx.save_for_backward(
            data,
            scales,
            x if again else None,
            bias if again else None,
            output if activation == "relu" else None,
        )

    @staticmethod
    def backward(ctx: Any, dy: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        data, scales, x, bias, y = ctx.saved_tensors
        need_bias = any(ctx.needs_input_grad[3:4])  # an operator's last arguments may be missing
        if ctx.activation == "relu":
            dy = torch.ops.aten.threshold_backward(dy, y, 0)
        elif ctx.activation is not None:
            with torch.autocast(x.device.type, enabled=False):
                z = multiplied(x, data, scales, bias, None, ctx.accumulate, torch.float32)
            dy = derivative(ctx.activation, dy, z)
        dy = rounded(dy, ctx.dtype)
        dx = _dgrad(dy, data, scales, ctx.accumulate) if ctx.needs_input_grad[0] else None
        db = bias_gradient(dy, ctx.bias_dtype, ctx.main_grad) if need_bias else None
        return dx, None, None, db, None, None, None, None


_recorded = super(torch.autograd.Function, Nf4Linear).apply
"""As that of :class:`ptxgen.torch.functional.Linear`."""


class Nf4Dgrad(torch.autograd.Function):
    """``nf4_linear_dgrad`` and its gradient."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> torch.Tensor:
        dx = compute_dgrad(*inputs)
        Nf4Dgrad.setup(ctx, inputs)
        return dx

    @staticmethod
    def setup(ctx: Any, inputs: tuple[Any, ...], output: Any = None) -> None:
        """Keeps the weight."""
        dy, data, scales, ctx.accumulate, *_ = inputs
        ctx.dtype, ctx.given = dy.dtype, len(inputs)
        ctx.save_for_backward(data, scales)

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        data, scales = ctx.saved_tensors
        with torch.autocast(g.device.type, enabled=False):
            d_dy = multiplied(rounded(g, ctx.dtype), data, scales, None, None, ctx.accumulate)
        return d_dy, *[None] * (ctx.given - 1)
