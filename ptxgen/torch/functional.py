"""Products with gradients: which way a call goes, and what its backward pass computes.

Where nobody but autograd could be watching, a call goes straight to :mod:`ptxgen.ops`, or through
an ``autograd.Function`` if a gradient is wanted. Whoever watches operators (``torch.compile`` and
``torch.export``, fake tensors, tensor subclasses, dispatch modes, ``torch.func``) is shown
``torch.ops.ptxgen.*`` instead (:mod:`ptxgen.torch.operators`), which are the same functions with
the same gradients. So every way gives the same bits.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd import forward_ad

import ptxgen.ops as ops
from ptxgen.errors import DtypeError, GradError, ShapeError
from ptxgen.numerics.dtype import DTYPES
from ptxgen.numerics.gemm import MATMUL
from ptxgen.ops.forward import run

NAMES = {getattr(torch, name): name for name in DTYPES}
"""The dtypes of operands, as :mod:`ptxgen.ops` calls them."""

CAST = {dtype for dtype in NAMES if dtype is not torch.float64}
"""The dtypes that autocast touches."""

PLAIN = {torch.Tensor, torch.nn.Parameter}
"""The types of tensors that have no behaviour of their own."""

_is_compiling = torch.compiler.is_compiling
_is_grad_enabled = torch.is_grad_enabled
_dispatch_modes = torch._C._len_torch_dispatch_stack
_transforms = torch._C._are_functorch_transforms_active
_tracing = torch._C._is_tracing
any_autocast = torch._C._is_any_autocast_enabled


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
    """``activation(x · W + bias)``: :func:`ptxgen.linear` with gradients.

    By default ``w`` is [N, K], as ``torch.nn.functional.linear`` has it; ``layout="kn"`` takes
    [K, N]. Operands of any strides are taken: those that no kernel reads are copied. ``out_dtype``:
    None for the operands' dtype, or ``torch.float32``.

    Under ``torch.autocast`` x and w are rounded to its dtype, and so is the bias unless it is
    float32, which is added as it is.

    Every gradient is summed in f32 and rounded once, to the dtype of what it belongs to (of w,
    not of what autocast made of it). dx is ``linear_dgrad``; dW is ``linear_wgrad``; the bias's is
    the sum of dy's rows, in the order of ``linear_wgrad`` with a column of ones for x (contract
    ``fma/2``). Activations other than relu are differentiated at ``x · W + bias`` in f32, which the
    backward pass computes again. Gradients can be differentiated again.

    If w or bias requires grad and has an attribute ``main_grad`` (float32, of its shape), its
    gradient is added to that, in f32, and its ``grad`` is left alone.

    Raises what :func:`ptxgen.linear` raises.
    """
    wanted = gradient_wanted(x, w, bias)
    if wanted is None:
        sums = main_grad_of(w), main_grad_of(bias)
        options = layout, tier, activation, out_dtype, None, *sums  # the operator minds autocast
        found: torch.Tensor = torch.ops.ptxgen.linear(x, w, bias, *options)
        return found
    dtype = None
    if any_autocast():
        x, bias, dtype = autocast(x, bias)
    if not wanted:
        return compute_linear(x, w, bias, layout, tier, activation, out_dtype, dtype)
    sum_w = sum_bias = None
    if hasattr(w, "main_grad") or hasattr(bias, "main_grad"):
        sum_w, sum_bias = main_grad_of(w), main_grad_of(bias)
    found = _recorded(x, w, bias, (layout, tier, activation, out_dtype, dtype, sum_w, sum_bias))
    return found


def matmul(
    a: torch.Tensor,
    b: torch.Tensor,
    *,
    tier: str = "auto",
    out_dtype: torch.dtype | None = None,
) -> torch.Tensor:
    """``a · b`` of matrices or batches of them: :func:`ptxgen.matmul` with gradients, which are
    products as well.

    ``a`` is [..., M, K] and ``b`` [..., K, N], with leading dimensions that broadcast; the result
    is [..., M, N]. A batch is one launch. Transposed and expanded views (``a.mT``,
    ``b.expand(...)``) cost nothing. Operands that no kernel reads are copied; both are, to the
    result's leading dimensions, where those lie along more than two strides in memory.

    A gradient has the dtype of its operand. That of an operand that was broadcast is the sum of its
    products, in f32, rounded once: for a matrix ``b``, ``linear_wgrad``; else PyTorch adds them.
    """
    return product(*_autocast_factors(a, b), tier, out_dtype)


def bmm(
    a: torch.Tensor,
    b: torch.Tensor,
    *,
    tier: str = "auto",
    out_dtype: torch.dtype | None = None,
) -> torch.Tensor:
    """:func:`matmul` of [B, M, K] and [B, K, N], as ``torch.bmm``. Raises ShapeError for others."""
    check_batches(a, b, "a", "b")
    return matmul(a, b, tier=tier, out_dtype=out_dtype)


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
    """``beta · input + alpha · (a · b)`` of [B, M, K] and [B, K, N], as ``torch.baddbmm``.

    ``input`` broadcasts to [B, M, N] and may be of any dtype. The products are those of
    :func:`bmm` in f32 (of float64 in f64); then each step that is there is rounded in it (none for
    a factor of 1; beta = 0 drops input); then one rounding to the operands' dtype, or to
    ``out_dtype``. The gradients are products, too, scaled in f32 and rounded once. Raises
    ShapeError.
    """
    check_batches(a, b, "a", "b")
    a, b = _autocast_factors(a, b)
    wanted = gradient_wanted(a, b, input)
    given = input, a, b, beta, alpha, tier, out_dtype
    if wanted is None:
        found: torch.Tensor = torch.ops.ptxgen.baddbmm(*given)
        return found
    return (Baddbmm.apply if wanted else compute_baddbmm)(*given)


def check_batches(a: torch.Tensor, b: torch.Tensor, first: str, second: str) -> None:
    """Raises ShapeError unless these are matrices and as many that they can be multiplied with."""
    if a.dim() != 3 or b.dim() != 3 or a.shape[::2] != b.shape[:2]:
        raise ShapeError(
            f"{first} has shape {list(a.shape)}, {second} {list(b.shape)}; "
            "takes [B, M, K], [B, K, N]"
        )


def _autocast_factors(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    if any_autocast() and torch.is_autocast_enabled(a.device.type):
        dtype = torch.get_autocast_dtype(a.device.type)
        return rounded(a, dtype), rounded(b, dtype)
    return a, b


# -- which way ----------------------------------------------------------------------------
def gradient_wanted(*operands: torch.Tensor | None) -> bool | None:
    """Whether autograd must record a call; None if it has to be shown as an operator."""
    if forward_ad._current_level >= 0:
        _refuse_tangents(*operands)
    if _is_compiling() or _dispatch_modes() or _transforms() or _tracing():
        return None
    wanted = False
    for operand in operands:
        if operand is not None:
            if type(operand) not in PLAIN:
                return None
            wanted = wanted or operand.requires_grad
    return wanted and _is_grad_enabled()


def _refuse_tangents(*operands: torch.Tensor | None) -> None:
    """No derivative in forward mode is defined, and the tangent would be lost in silence."""
    for operand in operands:
        if operand is not None and forward_ad.unpack_dual(operand).tangent is not None:
            raise GradError(
                "an operand has a tangent, but forward-mode derivatives of products are not "
                "defined; use reverse mode (backward), or torch.nn.functional.linear"
            )


def product(
    a: torch.Tensor, b: torch.Tensor, tier: str, out_dtype: torch.dtype | None
) -> torch.Tensor:
    """:func:`matmul`, whatever autocast says."""
    wanted = gradient_wanted(a, b)
    if wanted is None:
        found: torch.Tensor = torch.ops.ptxgen.matmul(a, b, tier, out_dtype)
        return found
    return (Matmul.apply if wanted else compute_matmul)(a, b, tier, out_dtype)


def dgrad(
    dy: torch.Tensor, w: torch.Tensor, layout: str, tier: str, out_dtype: torch.dtype | None = None
) -> torch.Tensor:
    """:func:`ptxgen.linear_dgrad`, with gradients."""
    wanted = gradient_wanted(dy, w)
    if wanted is None:
        found: torch.Tensor = torch.ops.ptxgen.linear_dgrad(dy, w, layout, tier, out_dtype)
        return found
    return (Dgrad.apply if wanted else compute_dgrad)(dy, w, layout, tier, out_dtype)


def wgrad(
    x: torch.Tensor, dy: torch.Tensor, layout: str, tier: str, out_dtype: torch.dtype | None = None
) -> torch.Tensor:
    """:func:`ptxgen.linear_wgrad`, with gradients."""
    wanted = gradient_wanted(x, dy)
    if wanted is None:
        found: torch.Tensor = torch.ops.ptxgen.linear_wgrad(x, dy, layout, tier, out_dtype)
        return found
    return (Wgrad.apply if wanted else compute_wgrad)(x, dy, layout, tier, out_dtype)


def accumulate(
    x: torch.Tensor, dy: torch.Tensor, out: torch.Tensor, layout: str, tier: str
) -> None:
    """``out += xᵀ · dy``. Raises GradError where autograd would have to record it."""
    if gradient_wanted(x, dy) is None:
        torch.ops.ptxgen.linear_wgrad_(x, dy, out, layout, tier)
    else:
        compute_accumulate(x, dy, out, layout, tier)


# -- computing ------------------------------------------------------------------------------
def compute_linear(
    x: torch.Tensor,
    w: torch.Tensor,
    bias: torch.Tensor | None = None,
    layout: str = "nk",
    tier: str = "auto",
    activation: str | None = None,
    out_dtype: torch.dtype | None = None,
    dtype: torch.dtype | None = None,
    main_grad: torch.Tensor | None = None,
    bias_main_grad: torch.Tensor | None = None,
) -> torch.Tensor:
    """The product, in ``dtype`` (None: the operands'). What follows is for the gradients only."""
    if dtype is not None:
        x, w = rounded(x, dtype), rounded(w, dtype)
    if not x.is_contiguous():
        x = rows(x)
    options = layout, tier, activation, None if out_dtype is None else name(out_dtype), None
    y: torch.Tensor
    try:
        y = run(x, w, bias, None, None, options)
    except ShapeError:  # of parameters it is cheaper to try than to ask
        readable = matrix(w), None if bias is None else bias.contiguous()
        if readable[0] is w and readable[1] is bias:
            raise
        y = run(x, *readable, None, None, options)
    return y


def compute_dgrad(
    dy: torch.Tensor,
    w: torch.Tensor,
    layout: str = "nk",
    tier: str = "auto",
    out_dtype: torch.dtype | None = None,
) -> torch.Tensor:
    """The gradient of x."""
    out = None if out_dtype is None else name(out_dtype)
    return ops.linear_dgrad(rows(dy), matrix(w), layout=layout, tier=tier, out_dtype=out)


def compute_wgrad(
    x: torch.Tensor,
    dy: torch.Tensor,
    layout: str = "nk",
    tier: str = "auto",
    out_dtype: torch.dtype | None = None,
    chain: bool = False,
) -> torch.Tensor:
    """The gradient of w, in f32 by default."""
    how: dict[str, Any] = {"layout": layout, "tier": tier, "chain": chain}
    out = None if out_dtype is None else name(out_dtype)
    return ops.linear_wgrad(rows(x), rows(dy), out_dtype=out, **how)


def compute_accumulate(
    x: torch.Tensor,
    dy: torch.Tensor,
    out: torch.Tensor,
    layout: str = "nk",
    tier: str = "auto",
    chain: bool = False,
) -> None:
    """Adds the gradient of w to ``out``, or continues the ``chain`` that it holds."""
    how: dict[str, Any] = {"layout": layout, "tier": tier, "chain": chain}
    ops.linear_wgrad(rows(x), rows(dy), out=out, accumulate=True, **how)
    torch.autograd.graph.increment_version(out)


def compute_matmul(
    a: torch.Tensor, b: torch.Tensor, tier: str = "auto", out_dtype: torch.dtype | None = None
) -> torch.Tensor:
    """The bare product."""
    out = None if out_dtype is None else name(out_dtype)
    a, b = matrix(a), matrix(b)
    y: torch.Tensor
    try:
        y = ops.matmul(a, b, tier=tier, out_dtype=out)
    except ShapeError:  # shapes that do not fit are refused again, leading dimensions copied
        (shape,) = MATMUL.infer({"a": tuple(a.shape), "b": tuple(b.shape)}, "nn").results
        a, b = (x.expand(*shape[:-2], *x.shape[-2:]).contiguous() for x in (a, b))
        y = ops.matmul(a, b, tier=tier, out_dtype=out)
    return y


def compute_baddbmm(
    input: torch.Tensor,
    a: torch.Tensor,
    b: torch.Tensor,
    beta: float = 1,
    alpha: float = 1,
    tier: str = "auto",
    out_dtype: torch.dtype | None = None,
) -> torch.Tensor:
    """What :func:`baddbmm` is."""
    y = compute_matmul(a, b, tier, wide(a.dtype))
    return added(y, input, beta, alpha, out_dtype or a.dtype)


def added(
    y: torch.Tensor, input: torch.Tensor, beta: float, alpha: float, dtype: torch.dtype
) -> torch.Tensor:
    """``alpha · y + beta · input``, with a rounding to y's dtype for each step that is there."""
    if alpha != 1:
        y = y * alpha
    if beta != 0:
        addend = input.to(y.dtype)
        y = y + (addend if beta == 1 else addend * beta).expand_as(y)
    return y.to(dtype)


def wide(dtype: torch.dtype) -> torch.dtype:
    """The dtype of the sums of products of ``dtype``."""
    return torch.float64 if dtype is torch.float64 else torch.float32


def rows(x: torch.Tensor) -> torch.Tensor:
    """``x`` if its rows are evenly spaced, apart and of stride 1, else a contiguous copy."""
    if x.is_contiguous():
        return x
    *leading, width = x.shape
    *steps, along = x.stride()
    reach = None
    for size, step in zip(reversed(leading), reversed(steps), strict=True):
        if size != 1:
            if step < width if reach is None else step != reach:
                return x.contiguous()
            reach = step * size
    return x if along == 1 else x.contiguous()


def matrix(w: torch.Tensor) -> torch.Tensor:
    """``w`` if it or its transpose has rows of stride 1 that are apart, else a contiguous copy; a
    batch if its matrices do.
    """
    if w.is_contiguous() or w.dim() < 2:
        return w
    (*_, down, along), (*_, m, n) = w.stride(), w.shape
    if (along == 1 and down >= n) or (down == 1 and along >= m):
        return w
    return w.contiguous()


def rounded(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """``x`` in ``dtype``, if it is of a dtype that autocast touches."""
    return x if x.dtype is dtype or x.dtype not in CAST else x.to(dtype)


def autocast(
    x: torch.Tensor, bias: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor | None, torch.dtype | None]:
    """What autocast makes of x and bias, and the dtype that it computes in (None: it is off)."""
    kind = x.device.type
    if not torch.is_autocast_enabled(kind):
        return x, bias, None
    dtype = torch.get_autocast_dtype(kind)
    if bias is not None and bias.dtype is not torch.float32:
        bias = rounded(bias, dtype)
    return rounded(x, dtype), bias, dtype


def name(dtype: torch.dtype) -> str:
    """The name of a dtype of results. Raises DtypeError for one that no product has."""
    if dtype not in NAMES:
        raise DtypeError(f"out_dtype is {dtype}; takes {', '.join(map(str, NAMES))}")
    return NAMES[dtype]


def main_grad_of(parameter: torch.Tensor | None) -> torch.Tensor | None:
    """Where the gradient of ``parameter`` is to be added to, if not to its ``grad``."""
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


# -- gradients --------------------------------------------------------------------------------
class Linear(torch.autograd.Function):
    """``linear`` and its gradients. Lean: it is what training pays for each call."""

    @staticmethod
    def forward(ctx: Any, x: Any, w: Any, bias: Any, options: tuple[Any, ...]) -> torch.Tensor:
        y = compute_linear(x, w, bias, *options)
        Linear.remember(ctx, x, w, bias, options, y)
        return y

    @staticmethod
    def remember(
        ctx: Any, x: Any, w: Any, bias: Any, options: tuple[Any, ...], y: torch.Tensor
    ) -> None:
        """Keeps what the gradients asked for are made of, and nothing else."""
        ctx.options = options, x.dtype, w.dtype, None if bias is None else bias.dtype
        activation = options[2]
        if activation is None or activation == "relu":
            needs = ctx.needs_input_grad
            kept = None if activation is None else y
            ctx.save_for_backward(x if needs[1] else None, w if needs[0] else None, None, kept)
        else:  # the product is made again, to differentiate the activation
            ctx.save_for_backward(x, w, bias, None)

    @staticmethod
    def setup(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        """:meth:`remember` for the operator, which has all its arguments in a row."""
        x, w, bias, *options = inputs
        Linear.remember(ctx, x, w, bias, tuple(options), output)

    @staticmethod
    def backward(ctx: Any, dy: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        x, w, bias, y = ctx.saved_tensors
        options, dtype, w_dtype, bias_dtype = ctx.options
        layout, tier, activation, _, _, main_grad, bias_main_grad = options
        need_x, need_w = ctx.needs_input_grad[:2]
        need_bias = any(ctx.needs_input_grad[2:3])  # an operator's last arguments may be missing
        if w is not None:
            w = rounded(w, dtype)
        if activation == "relu":
            dy = torch.ops.aten.threshold_backward(dy, y, 0)
        elif activation is not None:
            f32 = torch.float32
            z = recorded_linear(x, w, bias, layout, tier, None, f32, None, None, None)
            dy = derivative(activation, dy, z)
        dy = rounded(dy, dtype)
        dx = dgrad(dy, w, layout, tier) if need_x else None
        dw = db = None
        if need_w and main_grad is not None:
            accumulate(x, dy, main_grad, layout, tier)
        elif need_w:
            dw = wgrad(x, dy, layout, tier, _result(w_dtype, dtype)).to(w_dtype)
        if need_bias:
            db = bias_gradient(dy, bias_dtype, bias_main_grad)
        return dx, dw, db, None, None, None, None, None, None, None


_recorded = super(torch.autograd.Function, Linear).apply
"""``Linear.apply`` without what it does for ``torch.func``, which never comes here."""


def bias_gradient(
    dy: torch.Tensor, dtype: torch.dtype, main_grad: torch.Tensor | None
) -> torch.Tensor | None:
    """The sum of dy's rows, in ``dtype``; None if it was added to ``main_grad``."""
    ones = dy.new_ones(*dy.shape[:-1], 1)
    if main_grad is not None:
        accumulate(ones, dy, main_grad.unsqueeze(0), "kn", "simt")
        return None
    return wgrad(ones, dy, "kn", "simt", _result(dtype, dy.dtype)).squeeze(0)


def _result(wanted: torch.dtype, operands: torch.dtype) -> torch.dtype:
    """The dtype that a kernel writes so that ``wanted`` is at most one rounding from f32."""
    return wanted if wanted is operands else torch.float32


def derivative(activation: str, dy: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
    """``dy`` times the derivative of an activation at ``z``, in f32."""
    if not torch.is_grad_enabled() and gradient_wanted(dy, z) is None:
        # As one operator: compilers would round its steps in their own way.
        found: torch.Tensor = torch.ops.ptxgen.derivative(dy, z, activation)
        return found
    return compute_derivative(dy, z, activation)


def compute_derivative(dy: torch.Tensor, z: torch.Tensor, activation: str) -> torch.Tensor:
    """What :func:`derivative` is."""
    dy = dy.to(torch.float32)
    aten = torch.ops.aten
    found: torch.Tensor
    if activation != "silu":
        approximate = "tanh" if activation == "gelu_tanh" else "none"
        found = aten.gelu_backward(dy, z, approximate=approximate)
    elif torch.is_grad_enabled():  # silu_backward has no derivative
        s = torch.sigmoid(z)
        found = dy * s * (1 + z * (1 - s))
    else:
        found = aten.silu_backward(dy, z)
    return found


def recorded_linear(x: torch.Tensor, w: torch.Tensor, *rest: Any) -> torch.Tensor:
    """:func:`linear` with every argument of the operator, whatever autocast says."""
    wanted = gradient_wanted(x, w, rest[0])
    if wanted is None:
        found: torch.Tensor = torch.ops.ptxgen.linear(x, w, *rest)
        return found
    return _recorded(x, w, rest[0], rest[1:]) if wanted else compute_linear(x, w, *rest)


class Dgrad(torch.autograd.Function):
    """``linear_dgrad`` and its gradients."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> torch.Tensor:
        Dgrad.setup(ctx, inputs)
        return compute_dgrad(*inputs)

    @staticmethod
    def setup(ctx: Any, inputs: tuple[Any, ...], output: Any = None) -> None:
        """Keeps the operands."""
        dy, w, ctx.layout, ctx.tier, _ = inputs
        ctx.save_for_backward(dy, w)

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        dy, w = ctx.saved_tensors
        layout, tier = ctx.layout, ctx.tier
        g = rounded(g, dy.dtype)
        need_dy, need_w, *_ = ctx.needs_input_grad
        rest = None, layout, tier, None, None, None, None, None
        d_dy = recorded_linear(g, w, *rest) if need_dy else None
        return d_dy, wgrad(g, dy, layout, tier, w.dtype) if need_w else None, None, None, None


class Wgrad(torch.autograd.Function):
    """``linear_wgrad`` and its gradients."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> torch.Tensor:
        Wgrad.setup(ctx, inputs)
        return compute_wgrad(*inputs)

    @staticmethod
    def setup(ctx: Any, inputs: tuple[Any, ...], output: Any = None) -> None:
        """Keeps the operands."""
        x, dy, ctx.layout, ctx.tier, *_ = inputs
        ctx.save_for_backward(x, dy)

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        x, dy = ctx.saved_tensors
        layout, tier = ctx.layout, ctx.tier
        g = rounded(g, x.dtype)
        need_x, need_dy, *_ = ctx.needs_input_grad
        rest = None, layout, tier, None, None, None, None, None
        d_dy = recorded_linear(x, g, *rest) if need_dy else None
        return dgrad(dy, g, layout, tier) if need_x else None, d_dy, None, None, None, None


class Matmul(torch.autograd.Function):
    """``matmul`` and its gradients."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> torch.Tensor:
        Matmul.setup(ctx, inputs)
        return compute_matmul(*inputs)

    @staticmethod
    def setup(ctx: Any, inputs: tuple[Any, ...], output: Any = None) -> None:
        """Keeps the operands."""
        a, b, ctx.tier, _ = inputs
        ctx.save_for_backward(a, b)

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        a, b = ctx.saved_tensors
        return *_factor_gradients(ctx, rounded(g, a.dtype), a, b), None, None


class Baddbmm(torch.autograd.Function):
    """``baddbmm`` and its gradients."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> torch.Tensor:
        Baddbmm.setup(ctx, inputs)
        return compute_baddbmm(*inputs)

    @staticmethod
    def setup(ctx: Any, inputs: tuple[Any, ...], output: Any = None) -> None:
        """Keeps the factors, and what the other operand looks like."""
        input, a, b, ctx.beta, ctx.alpha, ctx.tier, _ = inputs
        ctx.like = input.shape, input.dtype
        ctx.save_for_backward(a, b)

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        a, b = ctx.saved_tensors
        d_input = None
        if ctx.needs_input_grad[0]:
            shape, dtype = ctx.like
            d_input = (g.to(wide(a.dtype)) * ctx.beta).sum_to_size(shape).to(dtype)
        found = _factor_gradients(ctx, rounded(g, a.dtype), a, b, first=1, alpha=ctx.alpha)
        return d_input, *found, None, None, None, None


def _factor_gradients(
    ctx: Any, g: torch.Tensor, a: torch.Tensor, b: torch.Tensor, first: int = 0, alpha: float = 1
) -> tuple[torch.Tensor | None, torch.Tensor | None]:
    """The gradients of a and b, the arguments from ``first`` on, from that of alpha · (a · b)."""
    need_a, need_b = ctx.needs_input_grad[first : first + 2]

    def gradient(left: torch.Tensor, right: torch.Tensor, of: torch.Tensor) -> torch.Tensor:
        if of.shape[:-2] == g.shape[:-2] and alpha == 1:
            return product(left, right, ctx.tier, None)
        y = product(left, right, ctx.tier, wide(of.dtype))
        y = y if alpha == 1 else y * alpha
        return y.sum_to_size(of.shape).to(of.dtype)

    da = gradient(g, b.mT, a) if need_a else None
    if need_b and b.dim() == 2 < a.dim():  # all rows of a meet the same matrix
        return da, wgrad(a, g, "kn", ctx.tier, b.dtype)
    return da, gradient(a.mT, g, b) if need_b else None
