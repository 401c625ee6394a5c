"""Fused linear cross-entropy for PyTorch: the last layer and the loss, with gradients.

Gradients are computed in the forward pass, with the logits, and saved; the backward pass multiplies
them by the gradient of the loss. With ``reduction="none"`` that is one scalar per row, known in the
backward pass only, which then computes the logits again.

In plain eager mode, calls go straight to the library; under ``torch.compile``, fake tensors and
dispatch modes, they are operators of ``torch.ops.ptxgen``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch
from torch.autograd.function import once_differentiable

from ptxgen.errors import DtypeError
from ptxgen.ops import OPERATIONS
from ptxgen.ops.pointwise import Pointwise
from ptxgen.program.invoke import Frame
from ptxgen.torch.functional import any_autocast, autocast, main_grad_of, rounded
from ptxgen.torch.operators import register
from ptxgen.torch.record import gradient_wanted

_times = Pointwise(lambda g, by: g * by, "times")
_add_times = Pointwise(lambda old, g, by: old + g * by, "add_times")

Needs = tuple[bool, ...]
_NONE: Needs = (False, False, False)


def linear_cross_entropy(
    x: torch.Tensor,
    w: torch.Tensor,
    target: torch.Tensor,
    bias: torch.Tensor | None = None,
    *,
    reduction: str = "mean",
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    softcap: float | None = None,
    z_loss: float = 0.0,
    layout: str = "nk",
    tier: str = "auto",
    chunk: int | None = None,
    out_dtype: torch.dtype | None = None,
) -> torch.Tensor:
    """``cross_entropy(linear(x, w, bias), target)``: :func:`ptxgen.linear_cross_entropy` with
    gradients with respect to x, w and the bias.

    Shapes
        Those of :func:`ptxgen.linear_cross_entropy`.
    Dtypes
        Those of :func:`ptxgen.linear_cross_entropy`. Under ``torch.autocast`` x and w are rounded
        to its dtype, and so is the bias unless it is float32.
    Order
        That of :func:`ptxgen.linear_cross_entropy`. The gradient of w is rounded to its dtype after
        each chunk of rows. If w or the bias has an attribute ``main_grad`` (float32, of its shape),
        its gradient is one chain of additions over all rows in f32 and is added to
        that; its ``grad`` is left alone.
    Gradients
        They are computed with the loss, chunk by chunk, so that neither pass stores all logits; a
        frozen x, weight or bias costs nothing. ``reduction="none"`` computes logits twice.
        Gradients cannot be differentiated again.
    Errors
        Those of :func:`ptxgen.linear_cross_entropy`.
    Source
        ``ptxgen/torch/losses.py``.
    """
    sums = main_grad_of(w), main_grad_of(bias)
    if any_autocast():
        x, bias, dtype = autocast(x, bias)
        w = w if dtype is None else rounded(w, dtype)
    how = (reduction, ignore_index, label_smoothing, softcap, z_loss, layout, tier, chunk)
    if out_dtype not in (None, x.dtype, _wide(x.dtype)):
        raise DtypeError(
            f"out_dtype is {out_dtype}; takes {_wide(x.dtype)} or {x.dtype}, that of x"
        )
    asked = (x, w, bias)
    recorded = torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in asked)
    found: torch.Tensor
    if not recorded:
        found = _op(x, w, target, bias, None, _NONE, how)[0]
    else:
        apply = _Fused.apply if gradient_wanted(*asked, target) is None else _recorded
        found = apply(x, w, bias, target, sums, how)
    return found if out_dtype is None else found.to(out_dtype)


class LinearCrossEntropy(torch.nn.Module):
    """Module for :func:`linear_cross_entropy` with a weight [V, H], such as that of a model's last
    layer.

    ``weight`` and ``bias`` become parameters of the module, and may be shared with others; options
    are those of the function. Raises the function's errors, when it is called.
    """

    def __init__(
        self, weight: torch.nn.Parameter, bias: torch.nn.Parameter | None = None, **options: Any
    ) -> None:
        super().__init__()
        self.weight, self.bias, self.options = weight, bias, options

    def forward(self, x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Returns the loss of features ``x`` [..., H] at targets [...]."""
        return linear_cross_entropy(x, self.weight, target, self.bias, **self.options)

    def extra_repr(self) -> str:
        """Returns the sizes and the given options as text."""
        sizes = f"in_features={self.weight.shape[1]}, out_features={self.weight.shape[0]}"
        return ", ".join((sizes, *(f"{k}={v!r}" for k, v in self.options.items())))


class _Fused(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Any, w: Any, bias: Any, target: Any, sums: Any, how: tuple[Any, ...]
    ) -> torch.Tensor:
        needs = tuple(t is not None and t.requires_grad for t in (x, w, bias))
        ctx.needs, ctx.sums, ctx.how = needs, sums, how
        ctx.apart = how[0] == "none"
        if ctx.apart:
            ctx.save_for_backward(x, w, target, bias)
            return _op(x, w, target, bias, None, _NONE, how)[0]
        loss, *found = _op(x, w, target, bias, None, needs, how, _widths(sums))
        ctx.save_for_backward(*found)
        return loss

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, dy: torch.Tensor) -> tuple[Any, ...]:
        by: torch.Tensor | None = dy
        if ctx.apart:
            x, w, target, bias = ctx.saved_tensors
            found = _op(x, w, target, bias, dy.contiguous(), ctx.needs, ctx.how, _widths(ctx.sums))
            found, by = found[1:], None
        else:
            found = ctx.saved_tensors
        made = iter(found)
        gradients = [next(made) if need else None for need in ctx.needs]
        for i, main in enumerate(ctx.sums, 1):
            gradient = gradients[i]
            if gradient is not None and main is not None:
                _onto(main, gradient, by)
                gradients[i] = None
        return *(gradients if by is None else _scaled(gradients, by)), None, None, None


_recorded = super(torch.autograd.Function, _Fused).apply
"""``_Fused.apply`` without the overhead of its ``torch.func`` support, which is not needed here."""


def _widths(sums: tuple[torch.Tensor | None, ...]) -> tuple[bool, bool]:
    """Returns whether the gradients of weight and bias stay in f32: those that are added to a
    ``main_grad`` do. ``sums``: the ``main_grad`` of weight and of bias, or None.
    """
    return sums[0] is not None, sums[1] is not None


def _scaled(gradients: list[torch.Tensor | None], by: torch.Tensor) -> list[torch.Tensor | None]:
    """Multiplies gradients by ``by`` in place, to save memory; autograd then refuses a second
    backward pass.

    Traced code has to be functional; the compiler makes it in-place again.
    """
    if torch.compiler.is_compiling():
        return [None if g is None else torch.ops.ptxgen.scaled(g, by) for g in gradients]
    there = [g for g in gradients if g is not None]
    shown = gradient_wanted(by, *there) is None
    for gradient in there:
        if shown:
            torch.ops.ptxgen.scale_(gradient, by)
        else:
            _times(gradient, by, out=gradient)
        torch.autograd.graph.increment_version(gradient)  # operators of a library do not
    return gradients


def _onto(main: torch.Tensor, gradient: torch.Tensor, by: torch.Tensor | None) -> None:
    if by is None or gradient_wanted(main, gradient, by) is None:
        torch.ops.ptxgen.add_scaled(main, gradient, by)
    else:
        _add_times(main, gradient, by, out=main)


def _op(
    x: Any,
    w: Any,
    target: Any,
    bias: Any,
    dy: Any,
    needs: Needs,
    how: tuple[Any, ...],
    widths: tuple[bool, bool] = (False, False),
) -> Sequence[torch.Tensor]:
    """Returns the loss, followed by the gradients of x, w and bias that ``needs`` selects.

    ``dy``: incoming gradient of the loss if each row has its own, else None; ``how``: options of
    :func:`linear_cross_entropy`, in order; ``widths``: whether the gradients of w and bias stay in
    f32.
    """
    if gradient_wanted(x, w, target, bias, dy) is not None:
        with torch.no_grad():
            return _computed(x, w, target, bias, dy, needs, widths, *how)
    found: list[torch.Tensor] = torch.ops.ptxgen.linear_cross_entropy(
        x, w, target, bias, dy, list(needs), list(widths), *how
    )
    return found


# -- operators ----------------------------------------------------------------------------------
def _wide(dtype: torch.dtype) -> torch.dtype:
    return torch.float64 if dtype is torch.float64 else torch.float32


@cache
def _called(name: str) -> Callable[..., Any]:
    """Returns an operation's function; operands with strides that no kernel reads are copied."""
    return Frame(OPERATIONS[name], copies=True).function


def _computed(
    x: Any, w: Any, target: Any, bias: Any, dy: Any, needs: Any, widths: Any, *how: Any
) -> list[torch.Tensor]:
    every = OPERATIONS["linear_cross_entropy"].options
    names = (n for n in every if n not in ("check", "out_dtype"))
    options = dict(zip(names, how, strict=True))
    if not any(needs):
        return [_called("linear_cross_entropy")(x, w, target, bias, **options)]
    dx, dw, dbias = map(bool, needs)
    memory = [
        w.new_empty(t.shape, dtype=_wide(t.dtype)) if need and broad else need
        for t, need, broad in zip((w, bias), (dw, dbias), widths, strict=True)
    ]
    given = {"dx": dx, "dw": memory[0], "dbias": memory[1], "dy": dy}
    found = _called("linear_cross_entropy_grad")(x, w, target, bias, **given, **options)
    return [t for t in found if t is not None]


def _fake(
    x: Any, w: Any, target: Any, bias: Any, dy: Any, needs: Any, widths: Any, *how: Any
) -> list[torch.Tensor]:
    shape = target.shape if how[0] == "none" else ()
    found = [x.new_empty(shape, dtype=_wide(x.dtype))]
    broad = (False, *widths)
    for t, need, each in zip((x, w, bias), needs, broad, strict=True):
        if need:
            found.append(t.new_empty(t.shape, dtype=_wide(t.dtype) if each else t.dtype))
    return found


def _compute_scale(gradient: torch.Tensor, by: torch.Tensor) -> None:
    _times(gradient, by, out=gradient)


def _compute_add(main: torch.Tensor, gradient: torch.Tensor, by: torch.Tensor | None) -> None:
    by = torch.ones((), dtype=torch.float32, device=main.device) if by is None else by
    _add_times(main, gradient, by, out=main)


register(
    "linear_cross_entropy(Tensor x, Tensor w, Tensor target, Tensor? bias, Tensor? dy, "
    "bool[] needs, bool[] widths, str reduction, int ignore_index, float label_smoothing, "
    "float? softcap, float z_loss, str layout, str tier, SymInt? chunk) -> Tensor[]",
    _computed,
    _fake,
)
register(
    "scaled(Tensor gradient, Tensor by) -> Tensor",
    lambda gradient, by: _times(gradient, by, out_dtype=gradient.dtype),
    lambda gradient, by: torch.empty_like(gradient),
)
register("scale_(Tensor(a!) gradient, Tensor by) -> ()", _compute_scale, lambda gradient, by: None)
register(
    "add_scaled(Tensor(a!) main, Tensor gradient, Tensor? by) -> ()",
    _compute_add,
    lambda main, gradient, by: None,
)
