"""Products with gradients: :func:`linear`, :func:`matmul`, :func:`bmm`, :func:`baddbmm` and
:func:`quantized_linear`, with autocast, and gradients that are added to ``main_grad``.

Operands may have any strides: those that no kernel reads are copied.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Any

import torch

from ptxgen.errors import DtypeError, GradError, ShapeError
from ptxgen.numerics.dtype import DTYPES
from ptxgen.numerics.option import Activation, Dtype, Layout, Tier, Value
from ptxgen.numerics.signature import broadcast
from ptxgen.numerics.weight_format import ARRAYS
from ptxgen.ops import OPERATIONS
from ptxgen.ops.gradients import through_activation
from ptxgen.ops.products import shared
from ptxgen.ops.quantized import Accumulate, Format, frozen_vjp
from ptxgen.ops.quantized_weight import QuantizedWeight, checked
from ptxgen.ops.views import readable, rows_apart
from ptxgen.program.buffer import Buffer
from ptxgen.program.build import Builder, ProgramBuilder
from ptxgen.program.operation import Backward, Gradients, Op
from ptxgen.torch.operators import LIBRARY, added, operator
from ptxgen.torch.record import function, is_intercepted, recorded

NAMES = {getattr(torch, name): name for name in DTYPES}
"""Names of the dtypes that operands may have, by PyTorch dtype."""

CAST = {dtype for dtype in NAMES if dtype is not torch.float64}
"""Dtypes that autocast casts."""

any_autocast = torch._C._is_any_autocast_enabled


# -- linear -----------------------------------------------------------------------------------
def _rounded(b: Any, x: Any, dtype: str | None) -> Any:
    """Returns ``x`` cast to ``dtype``; a float64 ``x``, or a dtype of None, stays as it is."""
    return x if dtype is None or b.dtype(x) == "float64" else b.cast(x, dtype)


def _linear_vjp(b: Builder, at: Backward) -> Gradients:
    """Computes the gradients of :func:`linear`, each rounded once, to the dtype of its operand."""
    x, w, bias = (at[n] for n in ("x", "w", "bias"))
    found: Gradients = {}
    of, rounded = at.only("layout", "tier"), _rounded(b, w, at.options["dtype"])
    own = shared(b, x, rounded)
    dy = through_activation(b, at, partial(b.linear, x, rounded, bias, **of), own)
    if "x" in at.needs:
        found["x"] = b.cast(b.linear_dgrad(dy, rounded, **of), b.dtype(x))
    if "w" in at.needs:
        dw = _sum(b, at["w_sum"], x, dy, b.dtype(w), own, **of)
        found |= {} if dw is None else {"w": dw}
    if "bias" in at.needs:
        found |= _bias_gradient(b, at, dy)
    return found


def _bias_gradient(b: Builder, at: Backward, dy: Any) -> Gradients:
    """Computes the bias's gradient: the sum of dy's rows, as ``linear_wgrad`` with a column of ones
    for x.
    """
    bias, total = at["bias"], at["bias_sum"]
    ones = b.filled((*dy.shape[:-1], 1), b.dtype(dy), 1.0, dy)
    total = None if total is None else b.reshape(total, (1, *total.shape))
    of = {"layout": "kn", "tier": "simt"}
    found = _sum(b, total, ones, dy, b.dtype(bias), b.dtype(dy), **of)
    return {} if found is None else {"bias": b.squeeze(found, 0)}


def _sum(b: Builder, total: Any, x: Any, dy: Any, wanted: str, own: str, **of: Any) -> Any:
    """Returns the gradient ``xᵀ · dy`` in dtype ``wanted``, rounded once. If ``total`` is given,
    adds the gradient to it instead, and returns None.

    ``own``: dtype of the product's operands; for another ``wanted`` the product is computed in f32
    (f64 for float64) and then cast. ``of``: options of ``linear_wgrad``.
    """
    if total is not None:
        b.linear_wgrad(x, dy, **of, out=total, accumulate=True)
        return None
    found = b.linear_wgrad(x, dy, **of, out_dtype=wanted if wanted == own else b.wide(dy))
    return b.cast(found, wanted)


def _linear(
    b: ProgramBuilder,
    x: Buffer,
    w: Buffer,
    bias: Buffer | None = None,
    w_sum: Buffer | None = None,
    bias_sum: Buffer | None = None,
    *,
    layout: Layout = "nk",
    tier: Tier = "auto",
    activation: Activation = None,
    out_dtype: Dtype = None,
    dtype: Dtype = None,
) -> Buffer:
    """Lowers :func:`linear` with a weight that is rounded to ``dtype``, autocast's (None: not
    rounded). ``w_sum``, ``bias_sum``: ``main_grad`` of weight and bias, to which the backward pass
    adds their gradients.
    """
    given = rows_apart(b, x), readable(b, _rounded(b, w, dtype)), b.packed(bias)
    how = {"layout": layout, "tier": tier, "activation": activation, "out_dtype": out_dtype}
    found: Buffer = b.linear(*given, **how)
    return found


LINEAR = added(
    Op(_linear, name="linear", vjp=_linear_vjp, updates=("w_sum", "bias_sum"), public=False)
)
"""Operation ``linear`` with PyTorch's defaults: weights are [N, K]."""


def _with_sums(op: Op, given: Mapping[str, Any]) -> Any:
    """Calls ``op`` with autograd; gradients are added to the parameters' ``main_grad``, if any."""
    sums = {f"{n}_sum": main_grad_of(given[n]) for n in ("w", "bias") if n in given}
    return recorded(op, {**given, **sums})


_called: Callable[..., torch.Tensor] = function(LINEAR, _with_sums)


def linear(
    x: torch.Tensor,
    w: torch.Tensor,
    bias: torch.Tensor | None = None,
    *,
    layout: str = "nk",
    tier: str = "auto",
    activation: str | None = None,
    out_dtype: torch.dtype | None = None,
) -> torch.Tensor:
    """``activation(x · wᵀ + bias)`` with gradients, for weights ``[N, K]`` as in
    ``torch.nn.functional.linear``.

    :func:`ptxgen.linear` has no default layout: its ``"kn"`` is for weights ``[K, N]``. A square
    weight fits either layout, with different results.

    Shapes
        ``x`` ``[..., K]``; ``w`` ``[N, K]``, or ``[K, N]`` with ``layout="kn"``; ``bias`` ``[N]``;
        the result ``[..., N]``. Any strides: operands that no kernel reads are copied.
    Dtypes
        Those of :func:`ptxgen.linear`; ``out_dtype``: None for the operands' dtype, or
        ``torch.float32``. Under ``torch.autocast`` x and w are rounded to its dtype, and so is the
        bias unless it is float32.
    Order
        That of :func:`ptxgen.linear`. Every gradient is summed in f32 and rounded once, to the
        dtype of its operand (of w itself, not of w after autocast). dx is ``linear_dgrad``; dW is
        ``linear_wgrad``; the bias's gradient is the sum of dy's rows, in the order of
        ``linear_wgrad`` with a column of ones for x (contract ``fma/3``).
    Gradients
        Activations other than relu are differentiated at ``x · W + bias`` in f32, which the
        backward pass computes again. Gradients can be differentiated again. If w or bias requires
        grad and has an attribute ``main_grad`` (float32, of its shape), its gradient is added to
        that, in f32, and its ``grad`` is left alone.
    Errors
        Those of :func:`ptxgen.linear`.
    Source
        ``ptxgen/torch/functional.py``.
    """
    dtype = None
    if any_autocast() and not is_intercepted():  # the operator minds autocast by itself
        x, bias, dtype = autocast(x, bias)
    how = {"layout": layout, "tier": tier, "activation": activation, "out_dtype": out_dtype}
    return _called(x, w, bias, dtype=dtype, **how)


# -- batches ----------------------------------------------------------------------------------
def matmul(
    a: torch.Tensor,
    b: torch.Tensor,
    bias: torch.Tensor | None = None,
    *,
    tier: str = "auto",
    activation: str | None = None,
    out_dtype: torch.dtype | None = None,
) -> torch.Tensor:
    """``activation(a · b + bias)`` of matrices or batches of them: :func:`ptxgen.matmul` with
    gradients, which are products as well.

    Shapes
        ``a`` ``[..., M, K]`` and ``b`` ``[..., K, N]``, with leading dimensions that broadcast;
        ``bias`` ``[N]``; the result ``[..., M, N]``. Transposed and expanded views (``a.mT``,
        ``b.expand(...)``) cost nothing. Operands with strides that no kernel reads are copied.
    Dtypes
        Those of :func:`ptxgen.matmul`; under ``torch.autocast``, its dtype. A gradient has the
        dtype of its operand.
    Order
        That of :func:`ptxgen.matmul`. The gradient of an operand that was broadcast is the sum of
        its products, in f32, rounded once: for a matrix ``b``, ``linear_wgrad``; else by
        :func:`ptxgen.sum`.
    Errors
        Those of :func:`ptxgen.matmul`.
    Source
        ``ptxgen/torch/functional.py``.
    """
    a, b = _autocast_factors(a, b)
    how = {"tier": tier, "activation": activation, "out_dtype": out_dtype}
    found: torch.Tensor = function(OPERATIONS["matmul"])(a, b, bias, **how)
    return found


def bmm(
    a: torch.Tensor,
    b: torch.Tensor,
    *,
    tier: str = "auto",
    out_dtype: torch.dtype | None = None,
) -> torch.Tensor:
    """``a · b`` of batches, as ``torch.bmm``: :func:`ptxgen.torch.matmul` with checks of the
    shapes.

    Shapes
        ``a`` ``[B, M, K]``; ``b`` ``[B, K, N]``; the result ``[B, M, N]``.
    Dtypes
        Those of :func:`ptxgen.matmul`.
    Order
        That of :func:`ptxgen.torch.matmul`, also of the gradients.
    Errors
        ShapeError for other shapes, and those of :func:`ptxgen.matmul`.
    Source
        ``ptxgen/torch/functional.py``.
    """
    check_batches(a, b, "a", "b")
    return matmul(a, b, tier=tier, out_dtype=out_dtype)


def accumulated(b: Builder, y: Any, input: Any, beta: float, alpha: float, dtype: str) -> Any:
    """Returns ``alpha · y + beta · input`` as ``dtype``, with each step rounded to y's dtype;
    factors of 1 need no step, ``beta = 0`` drops ``input``.
    """
    if alpha != 1:
        y = b.mul(y, alpha)
    if beta != 0:
        addend = b.cast(input, b.dtype(y))
        y = b.add(y, addend if beta == 1 else b.mul(addend, beta))
    return b.cast(y, dtype)


def _baddbmm_vjp(b: Builder, at: Backward) -> Gradients:
    """Computes the gradients of :func:`baddbmm`: products, scaled in f32 (f64) and rounded once."""
    input, x, y = (at[n] for n in ("input", "a", "b"))
    alpha, tier = at.options["alpha"], at.options["tier"]
    (dy,), found = at.dys, {}
    g = b.packed(b.cast(dy, shared(b, x, y)))

    def gradient(one: Any, other: Any, of: Any) -> Any:
        if alpha == 1:
            return b.cast(b.matmul(one, other, tier=tier), b.dtype(of))
        product = b.matmul(one, other, tier=tier, out_dtype=b.wide(of))
        return b.cast(b.mul(product, alpha), b.dtype(of))

    if "input" in at.needs:
        scaled = b.mul(b.cast(dy, b.wide(x)), at.options["beta"])
        found["input"] = b.cast(b.summed_to(scaled, input.shape), b.dtype(input))
    if "a" in at.needs:
        found["a"] = gradient(g, b.transpose(y), x)
    if "b" in at.needs:
        found["b"] = gradient(b.transpose(x), g, y)
    return found


Factor = Annotated[float, Value()]


def _baddbmm(
    to: ProgramBuilder,
    input: Buffer,
    a: Buffer,
    b: Buffer,
    *,
    beta: Factor = 1,
    alpha: Factor = 1,
    tier: Tier = "auto",
    out_dtype: Dtype = None,
) -> Buffer:
    """Lowers :func:`baddbmm`: products in f32 (f64), then :func:`accumulated`."""
    y = to.matmul(readable(to, a), readable(to, b), tier=tier, out_dtype=to.wide(a))
    if broadcast(input.shape, y.shape) != y.shape:
        raise ShapeError(f"input has shape {list(input.shape)}; takes what broadcasts to {y.shape}")
    found: Buffer = accumulated(to, y, input, beta, alpha, out_dtype or shared(to, a, b))
    return found


BADDBMM = added(Op(_baddbmm, name="baddbmm", vjp=_baddbmm_vjp, public=False))


def baddbmm(
    input: torch.Tensor,
    a: torch.Tensor,
    b: torch.Tensor,
    *,
    beta: float = 1,
    alpha: float = 1,
    tier: str = "auto",
    out_dtype: torch.dtype | None = None,
) -> torch.Tensor:
    """``beta · input + alpha · (a · b)``, as ``torch.baddbmm``.

    Shapes
        ``a`` ``[B, M, K]``; ``b`` ``[B, K, N]``; ``input`` broadcasts to the result's shape, ``[B,
        M, N]``.
    Dtypes
        ``a`` and ``b`` as of :func:`ptxgen.matmul`; ``input`` any; the result has the operands', or
        ``out_dtype``.
    Order
        The products are those of :func:`ptxgen.torch.bmm` in f32 (f64 for float64). The scalings
        and the addition are each rounded in f32 (f64), then the result to its dtype; a factor of 1
        adds no step, and beta = 0 drops input. The gradients are products, too, scaled in f32 and
        rounded once; that of a broadcast input is added by :func:`ptxgen.sum`.
    Errors
        ShapeError, and those of :func:`ptxgen.matmul`.
    Source
        ``ptxgen/torch/functional.py``.
    """
    check_batches(a, b, "a", "b")
    a, b = _autocast_factors(a, b)
    how = {"beta": beta, "alpha": alpha, "tier": tier, "out_dtype": out_dtype}
    found: torch.Tensor = function(BADDBMM)(input, a, b, **how)
    return found


def check_batches(a: Any, b: Any, first: str, second: str) -> None:
    """Raises ShapeError, with the names ``first`` and ``second``, unless ``a`` is [B, M, K] and
    ``b`` [B, K, N].
    """
    if len(a.shape) != 3 or len(b.shape) != 3 or a.shape[::2] != b.shape[:2]:
        raise ShapeError(
            f"{first} has shape {list(a.shape)}, {second} {list(b.shape)}; "
            "takes [B, M, K], [B, K, N]"
        )


# -- of quantized weights ----------------------------------------------------------------------
def _quantized_vjp(b: Builder, at: Backward) -> Gradients:
    """Computes the gradients with respect to x and the bias; the quantized weight is frozen."""
    dy, found = frozen_vjp(b, at)
    return found | (_bias_gradient(b, at, dy) if "bias" in at.needs else {})


def _quantized(
    b: ProgramBuilder,
    x: Buffer,
    data: Buffer,
    scales: Buffer,
    offsets: Buffer | None = None,
    outer: Buffer | None = None,
    groups: Buffer | None = None,
    bias: Buffer | None = None,
    bias_sum: Buffer | None = None,
    *,
    format: Format,
    activation: Activation = None,
    accumulate: Accumulate = "auto",
    out_dtype: Dtype = None,
) -> Buffer:
    """Lowers :func:`quantized_linear` with a weight given by its arrays."""
    how = {"activation": activation, "accumulate": accumulate, "out_dtype": out_dtype}
    x, bias = rows_apart(b, x), b.packed(bias)
    stored = data, scales, offsets, outer, groups
    found: Buffer = b.quantized_linear(x, *stored, bias, format=format, **how)
    return found


QUANTIZED = added(
    Op(
        _quantized,
        name="quantized_linear",
        vjp=_quantized_vjp,
        updates=("bias_sum",),
        public=False,
    )
)
_called_quantized: Callable[..., torch.Tensor] = function(QUANTIZED, _with_sums)


def quantized_linear(
    x: torch.Tensor,
    q: QuantizedWeight,
    bias: torch.Tensor | None = None,
    *,
    activation: str | None = None,
    accumulate: str = "auto",
    out_dtype: torch.dtype | None = None,
) -> torch.Tensor:
    """``activation(x · Wᵀ + bias)``: :func:`ptxgen.quantized.linear` with gradients to x and bias.

    Shapes
        ``x`` ``[..., K]``; ``q`` a :class:`ptxgen.quantized.QuantizedWeight` of PyTorch tensors,
        ``[N, K]``; ``bias`` ``[N]``; the result ``[..., N]``.
    Dtypes
        Those of :func:`ptxgen.quantized.linear`; autocast as in :func:`ptxgen.torch.linear`.
    Order
        That of :func:`ptxgen.quantized.linear`; dx is :func:`ptxgen.quantized.linear_dgrad`; the
        bias's gradient is as in :func:`ptxgen.torch.linear`. The weight is frozen. Gradients can be
        differentiated again.
    Errors
        Those of :func:`ptxgen.quantized.linear`.
    Source
        ``ptxgen/torch/functional.py``.
    """
    weight, format = checked(q).operands, q.format.name
    return multiplied(x, weight, bias, format, activation, accumulate, out_dtype)


def multiplied(
    x: torch.Tensor,
    weight: tuple[torch.Tensor | None, ...],
    bias: torch.Tensor | None,
    format: str,
    activation: str | None = None,
    accumulate: str = "auto",
    out_dtype: torch.dtype | None = None,
) -> torch.Tensor:
    """Computes :func:`quantized_linear` for a weight given as tensors, in the order of ``ARRAYS``
    (None for those that the format has not). ``format``: name of its format. Raises GradError if
    one requires grad.
    """
    for name, each in zip(ARRAYS, weight, strict=True):
        if each is not None and each.requires_grad:
            raise GradError(
                f"{name} requires grad, but a quantized weight is frozen; pass {name}.detach()"
            )
    if any_autocast() and not is_intercepted():
        x, bias, _ = autocast(x, bias)
    how = {"activation": activation, "accumulate": accumulate, "out_dtype": out_dtype}
    return _called_quantized(x, *weight, bias, format=format, **how)


# -- autocast, main gradients -----------------------------------------------------------------
def _autocast_factors(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    if any_autocast():
        a, _, dtype = autocast(a, None)
        b = b if dtype is None else rounded(b, dtype)
    return a, b


def rounded(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Returns ``x`` cast to ``dtype``, if autocast casts its dtype; else as it is."""
    return x if x.dtype is dtype or x.dtype not in CAST else x.to(dtype)


def autocast(
    x: torch.Tensor, bias: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor | None, torch.dtype | None]:
    """Returns x and bias as autocast casts them, and autocast's dtype (None if it is off)."""
    kind = x.device.type
    if not torch.is_autocast_enabled(kind):
        return x, bias, None
    dtype = torch.get_autocast_dtype(kind)
    if bias is not None and bias.dtype is not torch.float32:
        bias = rounded(bias, dtype)
    return rounded(x, dtype), bias, dtype


def main_grad_of(parameter: torch.Tensor | None) -> torch.Tensor | None:
    """Returns the checked ``main_grad`` of ``parameter``; None if gradients go to its ``grad``."""
    found: torch.Tensor | None = getattr(parameter, "main_grad", None)
    if found is None or not isinstance(parameter, torch.Tensor) or not parameter.requires_grad:
        return None  # not a tensor: what torch.fx traces with
    if found.dtype is not torch.float32:
        raise DtypeError(f"main_grad has dtype {found.dtype}; takes torch.float32")
    if found.shape != parameter.shape:
        raise ShapeError(
            f"main_grad has shape {list(found.shape)}; takes {list(parameter.shape)}, that of its "
            "parameter"
        )
    if found.requires_grad:
        raise GradError(
            "main_grad requires grad, but what is added to it is not recorded; pass "
            "main_grad.detach()"
        )
    return found


def _autocasting(op: Op, weights: int) -> Any:
    """Returns the autocast kernel of a linear layer's operator: a function that casts operands as
    autocast does, and calls the operator with autocast off. ``weights``: number of tensors that the
    weight has, after x and before the bias.
    """
    rounds_weight = any(p.name == "dtype" for p in op.parameters)

    def operator(x: Any, *rest: Any, **named: Any) -> Any:
        bias = rest[weights] if len(rest) > weights else None
        x, bias, found = autocast(x, bias)
        given = (x, *rest[:weights], bias, *rest[weights + 1 :])
        if rounds_weight and found is not None:
            named["dtype"] = found
        with torch.autocast(x.device.type, enabled=False):
            return getattr(torch.ops.ptxgen, op.name)(*given, **named)

    return operator


_NAMED = ("int4_gemm", "quantized_linear_dgrad", "concat", "pad", "rope")
"""Operations for which :func:`register` creates operators although they are not public or have no
gradient; it creates those of all public operations with gradients.
"""


def register() -> None:
    """Registers at import all operators that exported programs may name."""
    for made, weights in ((LINEAR, 1), (QUANTIZED, 3)):
        operator(made)
        for key in ("AutocastCPU", "AutocastCUDA"):
            LIBRARY.impl(made.name, _autocasting(made, weights), key)
    operator(BADDBMM)
    for name, op in OPERATIONS.items():
        if name != LINEAR.name and ((op.public and op.vjp is not None) or name in _NAMED):
            operator(op)
