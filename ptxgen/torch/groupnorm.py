"""Group norms and their gradients, of operations over rows and columns and pointwise formulas."""

from __future__ import annotations

from math import prod
from typing import Any, NoReturn

import torch

from ptxgen.errors import GradError
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
from ptxgen.torch.functional import wide
from ptxgen.torch.generic import named
from ptxgen.torch.rowwise import _dtype

Gradients = tuple[torch.Tensor | None, torch.Tensor | None, torch.Tensor | None]

_LIBRARY = torch.library.Library("ptxgen", "FRAGMENT")
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
    found: torch.Tensor = torch.ops.ptxgen.group_norm(x, weight, bias, groups, float(eps), wanted)[
        0
    ]
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
            shift, stretch = (_product(s, weight, out_dtype=dtype_of(s)) for s in (shift, stretch))
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


# -- operators ----------------------------------------------------------------------------------
def _compute(
    x: Any, weight: Any, bias: Any, groups: int, eps: float, out_dtype: str
) -> tuple[torch.Tensor, ...]:
    with torch.no_grad():
        return forward(x, weight, bias, groups, eps, out_dtype)


def _fake(
    x: Any, weight: Any, bias: Any, groups: int, eps: float, out_dtype: str
) -> tuple[torch.Tensor, ...]:
    kept = (x.new_empty(x.shape[0] * groups, dtype=wide(x.dtype)) for _ in range(2))
    return x.new_empty(x.shape, dtype=getattr(torch, out_dtype)), *kept


def _setup(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
    x, weight, bias, ctx.groups, _, _ = inputs
    ctx.save_for_backward(x, weight, *output[1:])
    ctx.dtypes = tuple(x.dtype if v is None else v.dtype for v in (weight, bias))
    ctx.mark_non_differentiable(*output[1:])


def _backward(ctx: Any, dy: torch.Tensor, *_: Any) -> tuple[torch.Tensor | None, ...]:
    needs = list(ctx.needs_input_grad[:3])
    found = iter(
        torch.ops.ptxgen.group_norm_backward(dy, *ctx.saved_tensors, ctx.groups, needs, *ctx.dtypes)
    )
    return (*(next(found) if need else None for need in needs), None, None, None)


def _compute_backward(
    dy: Any, x: Any, weight: Any, mean: Any, scale: Any, groups: int, needs: Any, *dtypes: Any
) -> list[torch.Tensor]:
    with torch.no_grad():
        given = dy.to(x.dtype), x, weight, mean, scale, groups
        return [g for g in backward(*given, tuple(needs), dtypes) if g is not None]


def _fake_backward(
    dy: Any, x: Any, weight: Any, mean: Any, scale: Any, groups: int, needs: Any, *dtypes: Any
) -> list[torch.Tensor]:
    shapes = x.shape, x.shape[1:2], x.shape[1:2]
    every = zip(needs, shapes, (x.dtype, *dtypes), strict=True)
    return [x.new_empty(shape, dtype=dtype) for need, shape, dtype in every if need]


def _once(ctx: Any, *_: Any) -> NoReturn:
    raise GradError("gradients of group_norm have no gradient; leave create_graph away")


def _register() -> None:
    kept, vectors = "Tensor mean, Tensor scale", "Tensor? weight, Tensor? bias"
    for schema, compute, fake in (
        (
            f"group_norm(Tensor x, {vectors}, int groups, float eps, str out_dtype)"
            " -> (Tensor, Tensor, Tensor)",
            _compute,
            _fake,
        ),
        (
            f"group_norm_backward(Tensor dy, Tensor x, Tensor? weight, {kept}, int groups, "
            "bool[] needs, ScalarType weight_dtype, ScalarType bias_dtype) -> Tensor[]",
            _compute_backward,
            _fake_backward,
        ),
    ):
        name = schema.partition("(")[0]
        _LIBRARY.define(schema, tags=(torch.Tag.pt2_compliant_tag,))
        _LIBRARY.impl(name, compute, "CompositeExplicitAutograd")
        torch.library.register_fake(f"ptxgen::{name}", fake, lib=_LIBRARY)
    register = torch.library.register_autograd
    register("ptxgen::group_norm", _backward, setup_context=_setup, lib=_LIBRARY)
    register("ptxgen::group_norm_backward", _once, lib=_LIBRARY)


_register()
