"""``torch.ops.ptxgen``: the products as operators, for whoever watches operators.

Each has an implementation (any device; what no device serves is refused by name), one for fake
tensors, and the gradients of :mod:`ptxgen.torch.functional`. The kernel is picked when an operator
runs, from the shapes it then sees: a graph compiled for any number of rows is served at each by
the kernel that is best there, with the same bits.

``linear`` and ``nf4_linear`` mind autocast. The others do not: they only meet what those or their
caller have rounded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ptxgen.numerics import nf4 as quantised
from ptxgen.numerics.gemm import DGRAD, LINEAR, MATMUL, WGRAD
from ptxgen.numerics.signature import Signature
from ptxgen.torch import functional as f
from ptxgen.torch import nf4

_DTYPES = 'str tier="auto", ScalarType? out_dtype=None'
_FUNCTIONAL: dict[str, tuple[str, Callable[..., Any], Any]] = {
    "linear": (
        'Tensor x, Tensor w, Tensor? bias=None, str layout="nk", str tier="auto", '
        "str? activation=None, ScalarType? out_dtype=None, ScalarType? dtype=None, "
        "Tensor? main_grad=None, Tensor? bias_main_grad=None",
        f.compute_linear,
        f.Linear,
    ),
    "linear_dgrad": (f'Tensor dy, Tensor w, str layout="nk", {_DTYPES}', f.compute_dgrad, f.Dgrad),
    "linear_wgrad": (
        f'Tensor x, Tensor dy, str layout="nk", {_DTYPES}, bool chain=False',
        f.compute_wgrad,
        f.Wgrad,
    ),
    "matmul": (f"Tensor a, Tensor b, {_DTYPES}", f.compute_matmul, f.Matmul),
    "baddbmm": (
        f"Tensor input, Tensor a, Tensor b, Scalar beta=1, Scalar alpha=1, {_DTYPES}",
        f.compute_baddbmm,
        f.Baddbmm,
    ),
    "nf4_linear": (
        "Tensor x, Tensor data, Tensor scales, Tensor? bias=None, str? activation=None, "
        'str accumulate="auto", ScalarType? out_dtype=None, Tensor? bias_main_grad=None',
        nf4.compute_linear,
        nf4.Nf4Linear,
    ),
    "nf4_linear_dgrad": (
        'Tensor dy, Tensor data, Tensor scales, str accumulate="auto", ScalarType? out_dtype=None',
        nf4.compute_dgrad,
        nf4.Nf4Dgrad,
    ),
}
"""Arguments, implementation and gradients of the operators that change nothing."""

_LIBRARY = torch.library.Library("ptxgen", "FRAGMENT")
_TAGS = (torch.Tag.pt2_compliant_tag,)


def _empty(signature: Signature, layout: str, dtype: Any, *tensors: Any) -> Any:
    """A tensor of the shape that an operation's result has, and of ``dtype``."""
    shapes = {
        name: tuple(tensor.shape)
        for name, tensor in zip(signature.arguments, tensors, strict=False)
        if tensor is not None
    }
    (shape,) = signature.infer(shapes, layout).results
    return tensors[0].new_empty(shape, dtype=dtype)


def _fake_linear(
    x: Any,
    w: Any,
    bias: Any = None,
    layout: str = "nk",
    tier: str = "auto",
    activation: str | None = None,
    out_dtype: Any = None,
    dtype: Any = None,
    main_grad: Any = None,
    bias_main_grad: Any = None,
) -> Any:
    return _empty(LINEAR, layout, out_dtype or dtype or x.dtype, x, w, bias)


def _fake_dgrad(
    dy: Any, w: Any, layout: str = "nk", tier: str = "auto", out_dtype: Any = None
) -> Any:
    return _empty(DGRAD, layout, out_dtype or dy.dtype, dy, w)


def _fake_wgrad(
    x: Any,
    dy: Any,
    layout: str = "nk",
    tier: str = "auto",
    out_dtype: Any = None,
    chain: bool = False,
) -> Any:
    wide = torch.promote_types(x.dtype, torch.float32)
    return _empty(WGRAD, layout, out_dtype or wide, x, dy)


def _fake_matmul(a: Any, b: Any, tier: str = "auto", out_dtype: Any = None) -> Any:
    return _empty(MATMUL, "nn", out_dtype or a.dtype, a, b)


def _fake_baddbmm(
    input: Any,
    a: Any,
    b: Any,
    beta: Any = 1,
    alpha: Any = 1,
    tier: str = "auto",
    out_dtype: Any = None,
) -> Any:
    return _fake_matmul(a, b, tier, out_dtype)


def _fake_nf4_linear(
    x: Any,
    data: Any,
    scales: Any,
    bias: Any = None,
    activation: str | None = None,
    accumulate: str = "auto",
    out_dtype: Any = None,
    bias_main_grad: Any = None,
) -> Any:
    return _empty(quantised.LINEAR, "", out_dtype or x.dtype, x, data, scales, bias)


def _fake_nf4_dgrad(
    dy: Any, data: Any, scales: Any, accumulate: str = "auto", out_dtype: Any = None
) -> Any:
    return _empty(quantised.DGRAD, "", out_dtype or dy.dtype, dy, data, scales)


def _fake_derivative(dy: Any, z: Any, activation: str) -> Any:
    return torch.empty_like(dy, dtype=torch.float32)


def _unrecorded(compute: Callable[..., Any]) -> Callable[..., Any]:
    """``compute`` as an operator runs it: autograd has been here, or was not wanted."""

    def implementation(*args: Any, **options: Any) -> Any:
        with torch.no_grad():
            return compute(*args, **options)

    return implementation


def _autocast_linear(
    x: Any,
    w: Any,
    bias: Any = None,
    layout: str = "nk",
    tier: str = "auto",
    activation: str | None = None,
    out_dtype: Any = None,
    dtype: Any = None,
    main_grad: Any = None,
    bias_main_grad: Any = None,
) -> Any:
    x, bias, found = f.autocast(x, bias)
    with torch.autocast(x.device.type, enabled=False):
        return torch.ops.ptxgen.linear(
            x,
            w,
            bias,
            layout,
            tier,
            activation,
            out_dtype,
            found or dtype,
            main_grad,
            bias_main_grad,
        )


def _autocast_nf4_linear(
    x: Any, data: Any, scales: Any, bias: Any = None, *options: Any, **named: Any
) -> Any:
    x, bias, _ = f.autocast(x, bias)
    with torch.autocast(x.device.type, enabled=False):
        return torch.ops.ptxgen.nf4_linear(x, data, scales, bias, *options, **named)


def _register() -> None:
    fakes = (
        *(_fake_linear, _fake_dgrad, _fake_wgrad, _fake_matmul, _fake_baddbmm),
        *(_fake_nf4_linear, _fake_nf4_dgrad),
    )
    for (name, (arguments, compute, function)), fake in zip(
        _FUNCTIONAL.items(), fakes, strict=True
    ):
        _LIBRARY.define(f"{name}({arguments}) -> Tensor", tags=_TAGS)
        _LIBRARY.impl(name, _unrecorded(compute), "CompositeExplicitAutograd")
        torch.library.register_fake(f"ptxgen::{name}", fake, lib=_LIBRARY)
        torch.library.register_autograd(
            f"ptxgen::{name}", function.backward, setup_context=function.setup, lib=_LIBRARY
        )
    for key in ("AutocastCPU", "AutocastCUDA"):
        _LIBRARY.impl("linear", _autocast_linear, key)
        _LIBRARY.impl("nf4_linear", _autocast_nf4_linear, key)
    _LIBRARY.define("derivative(Tensor dy, Tensor z, str activation) -> Tensor", tags=_TAGS)
    _LIBRARY.impl("derivative", f.compute_derivative, "CompositeExplicitAutograd")
    torch.library.register_fake("ptxgen::derivative", _fake_derivative, lib=_LIBRARY)
    _LIBRARY.define(
        "linear_wgrad_(Tensor x, Tensor dy, Tensor(a!) out, "
        'str layout="nk", str tier="auto", bool chain=False) -> ()',
        tags=_TAGS,
    )
    _LIBRARY.impl("linear_wgrad_", f.compute_accumulate, "CompositeExplicitAutograd")
    torch.library.register_fake("ptxgen::linear_wgrad_", lambda *_: None, lib=_LIBRARY)


_register()
