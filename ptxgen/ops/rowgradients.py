"""Gradients of the operations over rows, as operators of PyTorch compute them.

Those by an array are operations over rows themselves, those by weights of norms are sums down
columns (:mod:`ptxgen.ops.columns`), in the same order.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from ptxgen.numerics.rowwise import GROUP
from ptxgen.spec.rowwise import DOWN_COLS, DOWN_ELEMENTS

DOWN_ROWS, DOWN_LEAST = {"rms_norm": 3072, "layer_norm": 8192}, 2048
"""Rows, and elements of each, from which on gradients by weights are made along with those by
rows."""
Gradients = Callable[..., tuple[Any, ...]]
Several = tuple[Any, ...]


def _call(name: str, *tensors: Any, **options: Any) -> Any:
    """An operator, by the module that calls gradients."""
    return sys.modules["ptxgen.torch.generic"].named(name)(*tensors, **options)


def _named(tensor: Any) -> str:
    """The name of a tensor's dtype, for a sum that is to have it without a second rounding."""
    return str(tensor.dtype).removeprefix("torch.")


def _numbers(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name != "out_dtype"}


def _sum(x: Several, y: Several, dy: Several, options: Any, needs: Any) -> Several:
    return (dy[0].unsqueeze(-1).to(x[0].dtype).expand_as(x[0]),)


def _prod(x: Several, y: Several, dy: Several, options: Any, needs: Any) -> Several:
    return (_call("prod_backward", x[0], dy[0]),)


def _mean(x: Several, y: Several, dy: Several, options: Any, needs: Any) -> Several:
    wide = dy[0].to(_wide(x[0])) / x[0].shape[-1]
    return (wide.to(x[0].dtype).unsqueeze(-1).expand_as(x[0]),)


def _extreme(x: Several, y: Several, dy: Several, options: Any, needs: Any) -> Several:
    """Shared evenly among equals, as in PyTorch."""
    there = x[0] == y[0].unsqueeze(-1).to(x[0].dtype)
    count = _call("sum", there.to(_wide(x[0])))
    share = (dy[0].to(_wide(x[0])) / count).unsqueeze(-1)
    return ((there * share).to(x[0].dtype),)


def _down(rows: Gradients) -> Gradients:
    """The gradient of a reduction of [OUTER, N, INNER] down N, as that of rows of N."""

    def columns(x: Several, y: Several, dy: Several, options: Any, needs: Any) -> Several:
        (found,) = rows((x[0].transpose(1, 2),), y, dy, options, needs)
        return (found.transpose(1, 2),)

    return columns


def _var(x: Several, y: Several, dy: Several, options: Any, needs: Any) -> Several:
    n = x[0].shape[-1]
    by = dy[0].to(_wide(x[0])) * (2 / max(n - options["correction"], 0.0 if n else 1.0))
    return (_centred(x[0], by),)


def _std(x: Several, y: Several, dy: Several, options: Any, needs: Any) -> Several:
    wide = _wide(x[0])
    count = max(x[0].shape[-1] - options["correction"], 0.0)
    return (_centred(x[0], dy[0].to(wide) / (y[0].to(wide) * count)),)


def _centred(x: Any, by: Any) -> Any:
    wide = _wide(x)
    mean = _call("mean", x.to(wide))
    return ((x.to(wide) - mean.unsqueeze(-1)) * by.unsqueeze(-1)).to(x.dtype)


def _softmax(x: Several, y: Several, dy: Several, options: Any, needs: Any) -> Several:
    return (_call("softmax_backward", dy[0], y[0]).to(x[0].dtype),)


def _log_softmax(x: Several, y: Several, dy: Several, options: Any, needs: Any) -> Several:
    return (_call("log_softmax_backward", dy[0], y[0]).to(x[0].dtype),)


def _cross_entropy(x: Several, y: Several, dy: Several, options: Any, needs: Any) -> Several:
    logits, target = x
    return _call("cross_entropy_backward", logits, target, dy[0], **_numbers(options)), None


def _mean_loss(x: Several, y: Several, dy: Several, options: Any, needs: Any) -> Several:
    return _call("mean_loss_backward", dy[0], x[1], **_numbers(options)), None


def _rms_norm(x: Several, y: Several, dy: Several, options: Any, needs: Any) -> Several:
    values, weight = x
    return _of_rms_norm(values, weight, dy[0], options, needs[1])


def _add_rms_norm(x: Several, y: Several, dy: Several, options: Any, needs: Any) -> Several:
    dx, dweight = _of_rms_norm(y[1], x[2], dy[0], options, needs[2])
    dx = dx + dy[1]
    return dx, dx, dweight


def _of_rms_norm(x: Any, weight: Any, dy: Any, options: Any, by_weight: bool) -> Several:
    dy = dy.to(x.dtype)
    if by_weight and _together("rms_norm", x, weight):
        dx, dweight = _call("rms_norm_gradients", dy, x, weight, eps=options["eps"])
        return dx, dweight
    dx, scale = _call("rms_norm_backward", dy, x, weight, eps=options["eps"])
    dweight = None
    if weight is not None and by_weight:
        dweight = _call("rms_norm_wgrad", dy, x, scale, out_dtype=_named(weight))
    return dx, dweight


def _together(norm: str, x: Any, *vectors: Any) -> bool:
    """Whether one pass makes the gradients by rows ``x`` and by all of ``vectors`` that there are.

    The bits are those of two; it is worth it where rows are many, so that all SMs have some.
    """
    width = x.shape[-1]
    rows = x.numel() // max(width, 1)
    alike = x.element_size() == 2 and all(v is None or v.dtype == x.dtype for v in vectors)
    many = rows >= DOWN_ROWS[norm] and rows * width <= DOWN_ELEMENTS
    return alike and many and DOWN_LEAST <= width <= DOWN_COLS and width % GROUP == 0


def _layer_norm(x: Several, y: Several, dy: Several, options: Any, needs: Any) -> Several:
    values, weight, bias = x
    return _of_layer_norm(values, weight, bias, dy[0], options, needs[1:])


def _add_layer_norm(x: Several, y: Several, dy: Several, options: Any, needs: Any) -> Several:
    _, _, weight, bias = x
    dx, *others = _of_layer_norm(y[1], weight, bias, dy[0], options, needs[2:])
    dx = dx + dy[1]
    return dx, dx, *others


def _of_layer_norm(
    x: Any, weight: Any, bias: Any, dy: Any, options: Any, needs: tuple[bool, ...]
) -> Several:
    dy = dy.to(x.dtype)
    if any(needs) and _together("layer_norm", x, weight, bias):
        dx, *others = _call("layer_norm_gradients", dy, x, weight, eps=options["eps"])
        wanted = zip(others, (weight, bias), needs, strict=True)
        return dx, *(d if need and v is not None else None for d, v, need in wanted)
    dx, mean, scale = _call("layer_norm_backward", dy, x, weight, eps=options["eps"])
    dweight: Any = None
    dbias: Any = None
    if any(needs):
        like = _named(weight if weight is not None else bias)
        dweight, dbias = _call("layer_norm_wgrad", dy, x, mean, scale, out_dtype=like)
    return (
        dx,
        None if weight is None else dweight.to(weight.dtype) if needs[0] else None,
        None if bias is None else dbias.to(bias.dtype) if needs[1] else None,
    )


def _none(x: Several, y: Several, dy: Several, options: Any, needs: Any) -> Several:
    return (None,) * len(x)


def _wide(x: Any) -> Any:
    return x.double().dtype if x.element_size() == 8 else x.new_empty(0).float().dtype


GRADIENTS: dict[str, Gradients] = {
    "sum": _sum,
    "prod": _prod,
    "mean": _mean,
    "amax": _extreme,
    "amin": _extreme,
    "sum_columns": _down(_sum),
    "prod_columns": _down(_prod),
    "mean_columns": _down(_mean),
    "max_columns": _down(_extreme),
    "min_columns": _down(_extreme),
    "argmax": _none,
    "argmin": _none,
    "var": _var,
    "std": _std,
    "softmax": _softmax,
    "log_softmax": _log_softmax,
    "cross_entropy": _cross_entropy,
    "mean_loss": _mean_loss,
    "rms_norm": _rms_norm,
    "add_rms_norm": _add_rms_norm,
    "layer_norm": _layer_norm,
    "add_layer_norm": _add_layer_norm,
}
"""By operation (:attr:`ptxgen.ops.op.Op.backward`)."""
