"""The operations over rows with gradients, named and called as PyTorch's.

Dimensions that do not lie at the end are brought there by views, and copied where that must be.
Bits, dtypes and errors are those of the functions of :mod:`ptxgen` with these names.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod as product
from typing import Any

import torch

from ptxgen.errors import OptionError
from ptxgen.ops.rowcalls import axes_of, columns_of
from ptxgen.torch.generic import named

Dim = int | Sequence[int] | None


def _reduced(name: str, x: torch.Tensor, dim: Dim, keepdim: bool, **options: Any) -> torch.Tensor:
    found: torch.Tensor
    rank = x.dim()
    axes = axes_of(dim, rank)
    lead = [i for i in range(rank) if i not in axes]
    down = columns_of(name, x, axes)
    if down is not None:
        found = named(down[0])(down[1], **options)
        return found.reshape(
            [1 if i in axes else n for i, n in enumerate(x.shape) if keepdim or i not in axes]
        )
    order = (*lead, *axes)
    turned = x
    if order != tuple(range(rank)):
        turned = turned.permute(order)
    if len(axes) != 1:
        turned = turned.reshape([x.shape[i] for i in lead] + [product([x.shape[i] for i in axes])])
    found = named(name)(turned, **options)
    if not keepdim:
        return found
    return found.reshape([1 if i in axes else n for i, n in enumerate(x.shape)])


def _dtype(out_dtype: torch.dtype | None) -> str | None:
    return None if out_dtype is None else str(out_dtype).removeprefix("torch.")


def sum(
    x: torch.Tensor, dim: Dim = None, keepdim: bool = False, *, out_dtype: Any = None
) -> torch.Tensor:
    """:func:`ptxgen.sum` with a gradient."""
    return _reduced("sum", x, dim, keepdim, out_dtype=_dtype(out_dtype))


def mean(
    x: torch.Tensor, dim: Dim = None, keepdim: bool = False, *, out_dtype: Any = None
) -> torch.Tensor:
    """:func:`ptxgen.mean` with a gradient."""
    return _reduced("mean", x, dim, keepdim, out_dtype=_dtype(out_dtype))


def prod(
    x: torch.Tensor, dim: Dim = None, keepdim: bool = False, *, out_dtype: Any = None
) -> torch.Tensor:
    """:func:`ptxgen.prod`. It has no gradient: asking for one raises GradError."""
    return _reduced("prod", x, dim, keepdim, out_dtype=_dtype(out_dtype))


def amax(x: torch.Tensor, dim: Dim = None, keepdim: bool = False) -> torch.Tensor:
    """:func:`ptxgen.amax` with a gradient, shared evenly among equals."""
    return _reduced("amax", x, dim, keepdim)


def amin(x: torch.Tensor, dim: Dim = None, keepdim: bool = False) -> torch.Tensor:
    """:func:`ptxgen.amin` with a gradient, shared evenly among equals."""
    return _reduced("amin", x, dim, keepdim)


def argmax(x: torch.Tensor, dim: int | None = None, keepdim: bool = False) -> torch.Tensor:
    """:func:`ptxgen.argmax`."""
    return _reduced("argmax", x, dim, keepdim)


def argmin(x: torch.Tensor, dim: int | None = None, keepdim: bool = False) -> torch.Tensor:
    """:func:`ptxgen.argmin`."""
    return _reduced("argmin", x, dim, keepdim)


def var(
    x: torch.Tensor, dim: Dim = None, *, correction: float = 1.0, keepdim: bool = False
) -> torch.Tensor:
    """:func:`ptxgen.var` with a gradient."""
    return _reduced("var", x, dim, keepdim, correction=float(correction))


def std(
    x: torch.Tensor, dim: Dim = None, *, correction: float = 1.0, keepdim: bool = False
) -> torch.Tensor:
    """:func:`ptxgen.std` with a gradient."""
    return _reduced("std", x, dim, keepdim, correction=float(correction))


def _along(name: str, x: torch.Tensor, dim: int, out_dtype: Any) -> torch.Tensor:
    (at,) = axes_of(dim, x.dim())
    last = at == x.dim() - 1
    found: torch.Tensor = named(name)(x if last else x.movedim(at, -1), out_dtype=_dtype(out_dtype))
    return found if last else found.movedim(-1, at)


def softmax(x: torch.Tensor, dim: int = -1, *, out_dtype: Any = None) -> torch.Tensor:
    """:func:`ptxgen.softmax` with a gradient, ``(dy - sum(dy * y)) * y``."""
    return _along("softmax", x, dim, out_dtype)


def log_softmax(x: torch.Tensor, dim: int = -1, *, out_dtype: Any = None) -> torch.Tensor:
    """:func:`ptxgen.log_softmax` with a gradient, ``dy - exp(y) * sum(dy)``."""
    return _along("log_softmax", x, dim, out_dtype)


def cross_entropy(
    x: torch.Tensor,
    target: torch.Tensor,
    *,
    reduction: str = "mean",
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    softcap: float | None = None,
    z_loss: float = 0.0,
) -> torch.Tensor:
    """:func:`ptxgen.cross_entropy` with a gradient. Classes are the last dimension of ``x``."""
    if reduction not in ("none", "sum", "mean"):
        raise OptionError(f"reduction is {reduction!r}; takes 'none', 'sum', 'mean'")
    losses: torch.Tensor = named("cross_entropy")(
        x,
        target,
        ignore_index=ignore_index,
        label_smoothing=float(label_smoothing),
        softcap=softcap,
        z_loss=float(z_loss),
    )
    if reduction == "none":
        return losses
    if reduction == "sum":
        return sum(losses)
    found: torch.Tensor = named("mean_loss")(
        losses.reshape(-1), target.reshape(-1), ignore_index=ignore_index
    )
    return found


def rms_norm(
    x: torch.Tensor,
    weight: torch.Tensor | None = None,
    eps: float = 1e-6,
    *,
    residual: torch.Tensor | None = None,
    out_dtype: Any = None,
) -> Any:
    """:func:`ptxgen.rms_norm` with gradients; that of the weight is added in contract's order."""
    options = {"eps": float(eps), "out_dtype": _dtype(out_dtype)}
    if residual is None:
        return named("rms_norm")(x, weight, **options)
    return named("add_rms_norm")(x, residual, weight, **options)


def layer_norm(
    x: torch.Tensor,
    weight: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    eps: float = 1e-5,
    *,
    residual: torch.Tensor | None = None,
    out_dtype: Any = None,
) -> Any:
    """:func:`ptxgen.layer_norm` with gradients."""
    options = {"eps": float(eps), "out_dtype": _dtype(out_dtype)}
    if residual is None:
        return named("layer_norm")(x, weight, bias, **options)
    return named("add_layer_norm")(x, residual, weight, bias, **options)
