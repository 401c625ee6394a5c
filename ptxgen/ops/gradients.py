"""Gradients of the public operations over rows, composed of other operations.

Rows of the table that only other operations call have gradients derived from their formulas
(:func:`ptxgen.ops.row_reductions.of_formula`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf, prod
from typing import Any

from ptxgen.numerics.formula import cast
from ptxgen.numerics.option import axes_of
from ptxgen.ops.pointwise import Pointwise
from ptxgen.program.build import Builder
from ptxgen.program.operation import Backward, Gradients

Vjp = Callable[[Builder, Backward], Gradients]

_equal = Pointwise(lambda x, y: cast(x == y, "f64" if x.type == "f64" else "f32"), "equal")
_shared = Pointwise(lambda there, dy, count: there * (dy / count), "shared")
_centred = Pointwise(lambda x, mean, by: (x - mean) * by, "centred")
_by_spread = Pointwise(lambda dy, y, count: dy / (y * count), "by_spread")


def through_activation(b: Builder, at: Backward, again: Callable[..., Any], dtype: str = "") -> Any:
    """Returns the gradient by an activation's argument, in ``dtype`` (default: that of x). relu's
    follows from the result, others from the argument, which ``again`` recomputes in float32.
    """
    (dy,), name = at.dys, at.options["activation"]
    if name == "relu":
        dy = b.gradient_of(name, at.results[0], dy)
    elif name not in (None, "none"):
        dy = b.gradient_of(name, again(out_dtype="float32"), dy)
    return b.packed(b.cast(dy, dtype or b.dtype(at["x"])))


def _spread(b: Builder, v: Any, at: Backward) -> Any:
    """Broadcasts ``v``, one element for each reduced row, to the shape of x."""
    x = at["x"]
    axes = axes_of(at.options["axis"], x)
    kept = tuple(1 if i in axes else n for i, n in enumerate(x.shape))
    return b.expand(b.reshape(v, kept), x.shape)


def _count(at: Backward) -> int:
    """Returns the number of elements of x that are reduced to one element of the result."""
    x = at["x"]
    return prod(x.shape[i] for i in axes_of(at.options["axis"], x))


def _reduce(b: Builder, name: str, x: Any, at: Backward) -> Any:
    """Applies reduction ``name`` to ``x`` over the axes of the differentiated operation."""
    return getattr(b, name)(x, axis=at.options["axis"], keepdims=True)


def _sum(b: Builder, at: Backward) -> Gradients:
    """The gradient is dy, broadcast to x."""
    return {"x": _spread(b, b.cast(at.dys[0], b.dtype(at["x"])), at)}


def _mean(b: Builder, at: Backward) -> Gradients:
    """The gradient is ``dy * (1 / n)``, broadcast to x."""
    x, n = at["x"], _count(at)
    share = b.mul(b.cast(at.dys[0], b.wide(x)), 1.0 / n if n else inf)
    return {"x": _spread(b, b.cast(share, b.dtype(x)), at)}


def _extreme(b: Builder, at: Backward) -> Gradients:
    """The gradient is divided evenly among the elements that equal the result."""
    x, wide = at["x"], b.wide(at["x"])
    there = b.call(_equal, x, _spread(b, b.cast(at.results[0], b.dtype(x)), at))
    count = b.expand(_reduce(b, "sum", there, at), x.shape)
    dy = _spread(b, b.cast(at.dys[0], wide), at)
    return {"x": b.cast(b.call(_shared, there, dy, count), b.dtype(x))}


def _var(b: Builder, at: Backward) -> Gradients:
    """The gradient is ``(x - mean) * (dy * 2 / max(n - correction, 0))``."""
    x, n = at["x"], _count(at)
    left = max(n - at.options["correction"], 0.0)
    by = b.mul(b.cast(at.dys[0], b.wide(x)), 2 / left if left else inf)
    return {"x": _scaled_deviation(b, at, by)}


def _std(b: Builder, at: Backward) -> Gradients:
    """The gradient is ``(x - mean) * (dy / (y * max(n - correction, 0)))``."""
    x = at["x"]
    left = max(_count(at) - at.options["correction"], 0.0)
    dy, y = (b.cast(v, b.wide(x)) for v in (at.dys[0], at.results[0]))
    return {"x": _scaled_deviation(b, at, b.call(_by_spread, dy, y, left))}


def _scaled_deviation(b: Builder, at: Backward, by: Any) -> Any:
    x = at["x"]
    wide = b.cast(x, b.wide(x))
    mean = b.expand(_reduce(b, "mean", wide, at), x.shape)
    return b.cast(b.call(_centred, wide, mean, _spread(b, by, at)), b.dtype(x))


def _prod(b: Builder, at: Backward) -> Gradients:
    """The gradient is dy times the product of the other elements, also where some are zero."""
    x = at["x"]
    axes = axes_of(at.options["axis"], x)
    lead = [i for i in range(len(x.shape)) if i not in axes]
    order = [*lead, *axes]
    sizes = tuple(x.shape[i] for i in order)
    rows = b.reshape(b.permute(x, order), (*sizes[: len(lead)], _count(at)))
    dy = b.reshape(b.cast(at.dys[0], b.wide(x)), rows.shape[:-1])
    found = b.reshape(b.rows("prod_backward", b.packed(rows), b.packed(dy)), sizes)
    back = sorted(range(len(order)), key=lambda i: order[i])
    return {"x": b.permute(found, back)}


def _none(b: Builder, at: Backward) -> Gradients:
    return {}


def of_each(b: Builder, x: Any, rows: Any) -> Any:
    """Broadcasts ``x``, such as lengths, to a contiguous array [...] that has one element for each
    row of ``rows`` [..., N].
    """
    return b.contiguous(b.expand(x, tuple(rows.shape[:-1])))


def _along(name: str, says: str) -> Vjp:
    """Returns the vjp of an operation along one axis: it moves the axis last and calls the
    operation ``{name}_backward`` with dy and y. ``says``: formula of the gradient, for the
    docstring.
    """

    def vjp(b: Builder, at: Backward) -> Gradients:
        x, axis, lengths = at["x"], at.options["axis"], at.arguments.get("lengths")
        dy, y = (b.packed(b.move(v, axis, -1)) for v in (at.dys[0], at.results[0]))
        how = {} if lengths is None else {"lengths": of_each(b, lengths, y)}
        found = b.move(b.rows(f"{name}_backward", dy, y, **how), -1, axis)
        return {"x": b.cast(found, b.dtype(x))}

    vjp.__doc__ = f"The gradient is ``{says}``."
    return vjp


def _attention_weights(b: Builder, at: Backward) -> Gradients:
    """The gradient is that of a softmax, times the scale."""
    g, scale = b.rows("softmax_backward", at.dys[0], at.results[0]), at.options["scale"]
    return {"x": g if scale == 1 else b.mul(g, scale)}


VJPS: dict[str, Vjp] = {
    "sum": _sum,
    "prod": _prod,
    "mean": _mean,
    "amax": _extreme,
    "amin": _extreme,
    "argmax": _none,
    "argmin": _none,
    "var": _var,
    "std": _std,
    "softmax": _along("softmax", "(dy - sum(dy * y)) * y"),
    "log_softmax": _along("log_softmax", "dy - exp(y) * sum(dy)"),
    "attention_weights": _attention_weights,
}
"""Vjps by operation name; their docstrings become part of the PyTorch functions' docstrings."""


def of_rows(name: str) -> Vjp | None:
    """Returns the vjp of an operation over the last axis; None if ``VJPS`` has none."""
    found = VJPS.get(name)
    if found is None:
        return None

    def vjp(b: Builder, at: Backward) -> Gradients:
        return found(b, replace(at, options={**at.options, "axis": -1}))

    return vjp
