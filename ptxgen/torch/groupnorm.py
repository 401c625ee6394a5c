"""Group norms and their gradients, of operations over rows and columns and pointwise formulas."""

from __future__ import annotations

from math import prod
from typing import Any

import torch

from ptxgen.numerics.rowops import wanted_dtype
from ptxgen.ops.groupnorm import (
    by_group,
    check,
    dtype_of,
    of_channels,
    of_groups,
    rows_of,
    scaled,
)
from ptxgen.ops.pointwise import Pointwise
from ptxgen.torch.generic import named
from ptxgen.torch.rowwise import _dtype

Gradients = tuple[torch.Tensor | None, torch.Tensor | None, torch.Tensor | None]

_product = Pointwise(lambda x, y: x * y, "product")
_dx = Pointwise(
    lambda dy, x, mean, scale, shift, stretch, n: (
        scale * ((dy - shift / n) - (x - mean) * scale * (stretch / n))
    ),
    "group_norm_dx",
)
_dx_weight = Pointwise(
    lambda dy, x, mean, scale, shift, stretch, n, weight: (
        scale * ((dy * weight - shift / n) - (x - mean) * scale * (stretch / n))
    ),
    "group_norm_dx",
)


def group_norm(
    x: torch.Tensor,
    groups: int,
    weight: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    *,
    eps: float = 1e-5,
    out_dtype: Any = None,
) -> torch.Tensor:
    """:func:`ptxgen.group_norm` with gradients.

    Those of the weight and the bias are sums of channels (rows), which are then added down the
    batch, in f32 (f64 of float64); that by x takes the same sums, each by its weight.
    """
    check(x, groups, weight, bias)
    wanted = dtype_of(x) if out_dtype is None else wanted_dtype(_dtype(out_dtype))
    found: torch.Tensor = _GroupNorm.apply(x, weight, bias, groups, float(eps), wanted)
    return found


def forward(
    x: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    groups: int,
    eps: float,
    out_dtype: str,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The result, and the mean and the scale of each group, [N * groups], as they are computed."""
    mean, scale = named("moments")(x.reshape(rows_of(x, groups)), eps=eps)
    return scaled(x, mean, scale, weight, bias, groups, out_dtype), mean, scale


def backward(
    dy: torch.Tensor,
    x: torch.Tensor,
    weight: torch.Tensor | None,
    mean: torch.Tensor,
    scale: torch.Tensor,
    groups: int,
    needs: tuple[bool, bool, bool],
    dtypes: tuple[torch.dtype, torch.dtype],
) -> Gradients:
    """The gradients by x, weight and bias that ``needs`` says; ``dtypes``: of the last two."""
    count, channels = x.shape[:2]
    rows = count * channels, prod(x.shape[2:])
    each = [
        m.reshape(count * groups, 1).expand(-1, channels // groups).reshape(rows[0])
        for m in (mean, scale)
    ]
    sums = named("group_norm_sums")(dy.reshape(rows), x.reshape(rows), *each)
    shift, stretch = (s.view(count, channels) for s in sums)
    dx: torch.Tensor | None = None
    if needs[0]:
        weights = () if weight is None else (of_channels(weight, x, groups),)
        if weight is not None:
            wide = dtype_of(shift)
            shift, stretch = (_product(s, weight, out_dtype=wide) for s in (shift, stretch))
        by_row = count * groups, channels // groups
        totals = [named("sum")(s.reshape(by_row)) for s in (shift, stretch)]
        of = [of_groups(m, x, groups) for m in (mean, scale, *totals)]
        n = float(max(rows_of(x, groups)[1], 1))
        function = _dx if weight is None else _dx_weight
        dx = function(
            by_group(dy, groups), by_group(x, groups), *of, n, *weights, out_dtype=dtype_of(x)
        ).view(x.shape)
    dweight, dbias = (
        _down(s.view(count, channels), d) if need else None
        for s, need, d in zip(sums[::-1], needs[1:], dtypes, strict=True)
    )
    return dx, dweight, dbias


def _down(sums: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Sums of channels, added down the batch."""
    found: torch.Tensor = named("sum")(sums.t().contiguous())
    return found.to(dtype)


class _GroupNorm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Any, weight: Any, bias: Any, groups: int, eps: float, out_dtype: str
    ) -> torch.Tensor:
        y, mean, scale = forward(x, weight, bias, groups, eps, out_dtype)
        ctx.save_for_backward(x, weight, mean, scale)
        ctx.groups = groups
        ctx.dtypes = tuple(x.dtype if v is None else v.dtype for v in (weight, bias))
        return y

    @staticmethod
    def backward(ctx: Any, dy: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        x, weight, mean, scale = ctx.saved_tensors
        found = backward(
            dy.to(x.dtype),
            x,
            weight,
            mean,
            scale,
            ctx.groups,
            tuple(ctx.needs_input_grad[:3]),
            ctx.dtypes,
        )
        return (*found, None, None, None)
