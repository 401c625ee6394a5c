"""Formulas of the public operations in float64, written from their definitions, not from oracles.

A formula is called with an operation's arguments by name. It gives, for each result, numbers with
their bound (:class:`exact64.Num`), an array that is to be met exactly, a function that says what is
wrong with a result, or None where there is nothing to say. Bounds follow from what the formula
says is rounded; :mod:`exact64` derives them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from math import prod, sqrt
from typing import Any

import numpy as np
from exact64 import F32, F64, Num, _settled, _summed, dot, fault, rounded, where, working
from scipy import special

from ptxgen.numerics.contract import TENSOR_CORES
from ptxgen.numerics.delta import GROUP
from ptxgen.numerics.delta import groups as groups_of
from ptxgen.numerics.formats import FORMATS

Formula = Callable[..., Any]
CORE = TENSOR_CORES["sm_90"]
"""Tensor cores of the CPU device's architecture."""
ULPS = {
    **{"exp": 0.9, "exp2": 1.0, "expm1": 1.9, "log": 1.1, "log2": 1.0, "log1p": 1.1, "pow": 2.0},
    **{"rsqrt": 1.5, "sin": 1.6, "cos": 1.6, "tan": 3.4, "atan": 1.4, "erf": 1.9, "tanh": 2.6},
    **{"sigmoid": 2.8, "softplus": 1.9, "relu": 0.0, "silu": 1.1, "gelu": 1.6, "gelu_tanh": 1.2},
    "sqrt": 0.5,
}
"""Largest errors, of docs/reference/functions.md, rounded up; ``x ** n`` may round twice."""
_C = sqrt(2 / np.pi)
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    **{n: getattr(np, n) for n in ("exp", "exp2", "expm1", "log", "log2", "log1p", "sqrt")},
    **{n: getattr(np, n) for n in ("sin", "cos", "tan", "tanh")},
    "atan": np.arctan,
    "erf": special.erf,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": special.expit,
    "softplus": lambda x: np.logaddexp(0, x),
    "relu": lambda x: np.maximum(x, 0),
    "silu": lambda x: _gated(x, special.expit(x)),
    "gelu": lambda x: _gated(x, special.erfc(-x / sqrt(2)) / 2),
    "gelu_tanh": lambda x: _gated(x, special.expit(2 * _C * (x + 0.044715 * x**3))),
}
OWN: dict[str, Callable[[Any], Any]] = {
    "gelu": lambda x: 4 + x * x,
    "gelu_tanh": lambda x: 4 + 8 * abs(_C * (x + 0.044715 * x**3)),
}
"""Errors of these float64 formulas, in ulps; each rounding of an exponent counts as often as it is
large. Other functions have four.
"""
STEEP = {"silu": 1.1, "gelu": 1.13, "gelu_tanh": 1.13, "sin": 1.0, "cos": 1.0}
"""Largest slopes of functions that are not monotonic."""


def num(x: Any) -> Num:
    """Returns an array as exact numbers."""
    x = np.asarray(x)
    return Num(x.astype(np.float64), 0.0, working(x.dtype))


def _gated(x: Any, gate: Any) -> Any:
    """Returns ``x * gate``, 0 where x is -infinity."""
    return np.where(x == -np.inf, 0.0, x * gate)


def call(name: str, x: Num) -> Num:
    """A function of numbers."""
    found = x.apply(FUNCTIONS[name], ULPS[name], STEEP.get(name))
    own = OWN.get(name, lambda x: 4.0)(x.v) * 2.0**-53 * abs(found.v)
    return Num(found.v, found.e + np.where(np.isfinite(own), own, 0.0), x.p)


def decay(x: Num) -> Num:
    """``exp(x)`` of rows, which is 0 where it is not a normal number."""
    found = call("exp", x)
    least = 2.0**-1022.4 if x.p is F64 else 2.0**-126.4
    return Num(found.v, found.e + np.where(found.v < least, found.v, 0.0), found.p)


def activated(name: str | None, x: Num) -> Num:
    return x if name in (None, "none", "identity") else call(name, x)


def core_of(dtype: Any, tier: str = "auto") -> Any:
    """Tensor cores, where products of this dtype may be computed on them."""
    return CORE if np.dtype(dtype).itemsize == 2 and tier != "simt" else None


# -- products -------------------------------------------------------------------------------------
def linear(
    x: Any,
    w: Any,
    bias: Any = None,
    *,
    layout: str,
    tier: str = "auto",
    activation: str | None = None,
    **_: Any,
) -> Num:
    a, b = num(x), num(w)
    b = b if layout == "kn" else b.mT
    z = dot(a.reshape(-1, a.shape[-1]) if a.v.size else _no_rows(a), b, core_of(x.dtype, tier))
    z = z.reshape(*a.shape[:-1], b.shape[-1])
    return activated(activation, z if bias is None else z + num(bias))


def _no_rows(a: Num) -> Num:
    return Num(np.zeros((prod(a.shape[:-1]), a.shape[-1])), 0.0, a.p)


def dgrad(dy: Any, w: Any, *, layout: str, **_: Any) -> Num:
    return linear(dy, np.asarray(w).T, layout=layout)


def wgrad(x: Any, dy: Any, *, layout: str, chain: bool = False, **_: Any) -> Num:
    found = dot(num(x).mT, num(dy), core_of(x.dtype))
    return found if layout == "kn" else found.mT


def matmul(
    a: Any,
    b: Any,
    bias: Any = None,
    transpose_a: bool = False,
    transpose_b: bool = False,
    activation: str | None = None,
    **_: Any,
) -> Num:
    one, other = num(a), num(b)
    one, other = one.mT if transpose_a else one, other.mT if transpose_b else other
    z = dot(one, other, core_of(a.dtype))
    return activated(activation, z if bias is None else z + num(bias))


def spans(offsets: Any, rows: int) -> list[slice]:
    ends = [0, *(int(x) for x in offsets)]
    return [slice(a, b) for a, b in itertools.pairwise(ends)]


def grouped(x: Any, w: Any, offsets: Any, bias: Any = None, *, layout: str, **how: Any) -> Num:
    n = w.shape[2 if layout == "kn" else 1]
    v, e = np.zeros((2, len(x), n))
    for g, rows in enumerate(spans(offsets, len(x))):
        own = linear(x[rows], w[g], None if bias is None else bias[g], layout=layout, **how)
        v[rows], e[rows] = own.v, own.e
    return Num(v, e)


def grouped_wgrad(x: Any, dy: Any, offsets: Any, *, layout: str, **_: Any) -> Num:
    found = [wgrad(x[rows], dy[rows], layout=layout) for rows in spans(offsets, len(x))]
    return Num(np.stack([f.v for f in found]), np.stack([f.e for f in found]))


def triangular(a: Any, b: Any, upper: bool = False, unitriangular: bool = False) -> Num:
    a, b = np.asarray(a), np.asarray(b)
    lead, n = np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-1]
    t, left = (
        num(np.broadcast_to(a, (*lead, n, n))),
        num(np.broadcast_to(b, (*lead, *b.shape[-2:]))),
    )
    v, e = np.array(left.v), np.zeros(left.shape)
    for i in range(n)[:: -1 if upper else 1]:
        done = slice(i + 1, n) if upper else slice(0, i)
        x = Num(v[..., done, :], e[..., done, :], t.p)
        # b is the first term of the sum.
        terms = [
            np.concatenate([getattr(left[..., i : i + 1, :], a), getattr(-x, a)], -2) for a in "ve"
        ]
        row = np.concatenate([np.ones((*lead, 1, 1)), t.v[..., i : i + 1, done]], -1)
        rest = dot(Num(row, 0.0, t.p), Num(*terms, t.p))
        own = rest if unitriangular else rest / t[..., i : i + 1, i : i + 1]
        v[..., i : i + 1, :], e[..., i : i + 1, :] = own.v, own.e
    return Num(v, e, t.p)


def fft_block(x: Any, inverse: bool = False, norm: str = "backward") -> Num:
    """A result is off by a few roundings of each of log2 n levels, of chirps three times as many,
    each relative to the sum of all terms. Sums near the limits of the dtype may overflow.
    """
    given = num(x)
    n = given.shape[-1] // 2
    with np.errstate(all="ignore"):
        z = given.v[..., :n] + 1j * given.v[..., n:]
        k = np.arange(n)
        w = np.exp((2j if inverse else -2j) * np.pi * (np.outer(k, k) % n) / n)
        scale = {"backward": 1 / n if inverse else 1, "ortho": n**-0.5, "forward": 1 / n}[norm]
        scale = 1 if norm == "forward" and inverse else scale
        found = z @ w * scale
        total = abs(given.v).sum(-1, keepdims=True) * scale
        e = 4 * (8 + 6 * np.log2(n + 1)) * (given.p.u * total + n * given.p.tiny)
        largest = float(np.finfo(np.float32 if given.p is F32 else np.float64).max)
        e = np.where(total / scale < largest / (64 * n), e, np.inf)
    v = np.concatenate([found.real, found.imag], -1)
    return Num(v, np.broadcast_to(e, v.shape), given.p)


# -- rows -----------------------------------------------------------------------------------------
def _flat(x: Any, axis: Any) -> tuple[Any, tuple[int, ...]]:
    """An array whose last dimension is what ``axis`` means, and which dimensions that are."""
    x = np.asarray(x)
    rank = x.ndim
    axes = range(rank) if axis is None else (axis,) if np.ndim(axis) == 0 else axis
    axes = tuple(sorted(a % rank for a in axes))
    kept = [a for a in range(rank) if a not in axes]
    moved = x.transpose(*kept, *axes)
    return moved.reshape(*(x.shape[a] for a in kept), -1), axes


def reduction(name: str) -> Formula:
    def formula(x: Any, axis: Any = None, keepdims: bool = False, **how: Any) -> Any:
        rows, axes = _flat(x, axis)
        found = REDUCE[name](rows, **how)
        shape = tuple(1 if a in axes else n for a, n in enumerate(np.shape(x)))
        return found.reshape(*shape) if keepdims else found

    return formula


def _sum(rows: Any) -> Any:
    return rows.sum(-1, dtype=np.int64) if rows.dtype.kind in "biu" else num(rows).sum(-1)


def _prod(rows: Any) -> Any:
    if rows.dtype.kind in "biu":
        return rows.prod(-1, dtype=np.int64)
    x, n = num(rows), rows.shape[-1]
    # Each of n - 1 products rounds once, relatively or by half the least subnormal, which the
    # factors that follow enlarge. Partial products are at most the product of factors above 1.
    most = np.where(np.isfinite(x.v), np.maximum(abs(x.v), 1), 1).prod(-1)
    v = x.v.prod(-1)
    e = n * x.p.u * abs(v) + n * x.p.tiny * most
    least = np.where(x.v == 0, 0, np.minimum(abs(x.v), 1)).prod(-1)
    sure = (most < x.p.top) & ((least > 4 * x.p.tiny / x.p.u) | np.isfinite(x.v).all(-1))
    return _settled(Num(v, np.where(sure, np.where(np.isfinite(v), e, 0), np.inf), x.p))


def _mean(rows: Any) -> Num:
    return num(rows).sum(-1) / rows.shape[-1]


def _extreme(largest: bool, index: bool) -> Callable[..., Any]:
    def formula(rows: Any) -> Any:
        wide = rows.astype(np.int64 if rows.dtype.kind in "iu" else np.float64)
        nan = np.isnan(wide) if wide.dtype.kind == "f" else np.zeros(wide.shape, bool)
        best = (wide.max if largest else wide.min)(-1, keepdims=True)
        hit = np.where(nan.any(-1, keepdims=True), nan, wide == best)
        return (
            hit.argmax(-1)
            if index
            else np.take_along_axis(rows, hit.argmax(-1)[..., None], -1)[..., 0]
        )

    return formula


def _var(rows: Any, correction: float = 1.0) -> Num:
    x, n = num(rows), rows.shape[-1]
    d = x - x.sum(-1, keepdims=True) / n
    return (d * d).sum(-1) / max(n - correction, 0.0)


def _std(rows: Any, **how: Any) -> Num:
    return call("sqrt", _var(rows, **how))


REDUCE: dict[str, Callable[..., Any]] = {
    **{"sum": _sum, "prod": _prod, "mean": _mean, "var": _var, "std": _std},
    **{"amax": _extreme(True, False), "amin": _extreme(False, False)},
    **{"argmax": _extreme(True, True), "argmin": _extreme(False, True)},
}


def softmax(x: Any, axis: int = -1, log: bool = False) -> Num:
    rows = num(np.moveaxis(np.asarray(x), axis, -1))
    d = rows - rows.max(-1, True)
    e = decay(d)
    s = e.sum(-1, True)
    found = d - call("log", s) if log else e * (1 / s)
    return found.each(lambda y: np.moveaxis(y, -1, axis))


def log_sum(z: Num) -> tuple[Num, Num]:
    """The maximum m of each row, and ``log(sum(exp(z - m)))``."""
    m = z.max(-1)
    return m, call("log", decay(z - m[..., None]).sum(-1))


def logsumexp(x: Any, **_: Any) -> Num:
    z = num(x)
    m, log = log_sum(z)
    found = m + log
    return where(np.isinf(m.v) & (m.e == 0), m, found)


def _scanned(x: Any, exclusive: bool, reverse: bool, prefix: Callable[[Num], Num]) -> Num:
    z = num(x)[..., ::-1] if reverse else num(x)
    n = z.shape[-1]
    parts = [prefix(z[..., : i + (not exclusive)]) for i in range(n)]
    v, e = (np.stack([getattr(p, a) for p in parts], -1) if n else z.v for a in "ve")
    found = Num(v, e if n else 0.0, z.p)
    return found[..., ::-1] if reverse else found


def cumsum(x: Any, exclusive: bool = False, reverse: bool = False, **_: Any) -> Any:
    x = np.asarray(x)
    if x.dtype.kind in "iu":
        y = x[..., ::-1] if reverse else x
        total = np.cumsum(y, -1, dtype=x.dtype)
        total = total - y if exclusive else total
        return total[..., ::-1] if reverse else total
    return _scanned(x, exclusive, reverse, lambda z: z.sum(-1, more=12))


def _log_prefix(z: Num) -> Num:
    """Terms are brought to larger maxima up to n times: the exponents add up to that of a term, so
    each is off by a rounding of that, and by an ulp and a product for each time.
    """
    n = z.shape[-1]
    if not n:
        return Num(np.full(z.shape[:-1], -np.inf), 0.0, z.p)
    m = z.max(-1)
    d = z - m[..., None]
    e = decay(d)
    more = (n + 12) * z.p.u * (4 + 2 * np.where(np.isfinite(d.v), abs(d.v), 0)) * e.v
    terms = Num(e.v, np.where(np.isnan(e.v), e.e, e.e + more + 4 * z.p.tiny * n), z.p)
    found = call("log", terms.sum(-1, more=12)) + m
    return where(np.isinf(m.v) & (m.e == 0), m, found)


def logcumsumexp(x: Any, exclusive: bool = False, reverse: bool = False, **_: Any) -> Num:
    return _scanned(x, exclusive, reverse, _log_prefix)


# -- norms ----------------------------------------------------------------------------------------
def _affine(y: Num, weight: Any, bias: Any, shape: Any = (-1,)) -> Num:
    y = y if weight is None else y * num(weight).reshape(*shape)
    return y if bias is None else y + num(bias).reshape(*shape)


def _added(x: Any, residual: Any, residual_bias: Any) -> Any:
    """``x + (residual + residual_bias)``, whose roundings NumPy has, too."""
    if residual is None:
        return np.asarray(x)
    wide = np.float64 if x.dtype == np.float64 else np.float32
    with np.errstate(all="ignore"):
        more = np.asarray(residual).astype(wide)
        more = more if residual_bias is None else more + np.asarray(residual_bias).astype(wide)
        return (np.asarray(x).astype(wide) + more).astype(x.dtype)


def rms_norm(
    x: Any,
    weight: Any = None,
    eps: float = 1e-6,
    bias: Any = None,
    residual: Any = None,
    residual_bias: Any = None,
    offset: float = 0.0,
    rounded: bool = False,
    **_: Any,
) -> Any:
    h = _added(x, residual, residual_bias)
    z = num(h)
    y = z * call("rsqrt", (z * z).sum(-1, True) / z.shape[-1] + eps)
    y = y.rounded(h.dtype) if rounded and h.dtype.itemsize == 2 else y
    if weight is not None:
        y = y * (num(weight) + offset)
    y = _affine(y, None, bias)
    return y if residual is None else (y, h)


def normal(z: Num, eps: float) -> Num:
    d = z - z.sum(-1, True) / z.shape[-1]
    return d * call("rsqrt", (d * d).sum(-1, True) / z.shape[-1] + eps)


def layer_norm(
    x: Any,
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
    residual: Any = None,
    residual_bias: Any = None,
    **_: Any,
) -> Any:
    h = _added(x, residual, residual_bias)
    y = _affine(normal(num(h), eps), weight, bias)
    return y if residual is None else (y, h)


def _by_channel(x: Any) -> tuple[int, ...]:
    return (-1, *(1,) * (np.ndim(x) - 2))


def group_norm(x: Any, groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Num:
    shape = np.shape(x)
    rows = np.asarray(x).reshape(shape[0], groups, prod(shape[1:]) // groups)
    y = normal(num(rows), eps).reshape(*shape)
    return _affine(y, weight, bias, _by_channel(x))


def batch_norm(
    x: Any,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
) -> Num:
    at = _by_channel(x)
    r = call("rsqrt", num(running_var) + eps)
    return _affine((num(x) - num(running_mean).reshape(*at)) * r.reshape(*at), weight, bias, at)


def batch_norm_train(
    x: Any,
    weight: Any = None,
    bias: Any = None,
    running_mean: Any = None,
    running_var: Any = None,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:
    moved = np.moveaxis(np.asarray(x), 1, 0)
    z = num(moved.reshape(len(moved), -1))
    n = z.shape[-1]
    mean = z.sum(-1, True) / n
    d = z - mean
    squares = (d * d).sum(-1, True)
    y = d * call("rsqrt", squares / n + eps)
    y = y.reshape(*moved.shape).each(lambda v: np.moveaxis(v, 0, 1))
    found = [_affine(y, weight, bias, _by_channel(x))]
    for new, old in ((mean[:, 0], running_mean), ((squares / (n - 1))[:, 0], running_var)):
        # 1 - momentum is rounded, too, of a momentum that may be.
        share = Num(momentum, 2.0**-24, z.p) if z.p is F32 else Num(momentum, 0.0, z.p)
        found.append(new if old is None else share * new + (1 - share) * num(old))
    return tuple(found)


def layer_norm2d(x: Any, weight: Any = None, bias: Any = None, eps: float = 1e-6, **_: Any) -> Num:
    y = layer_norm(np.moveaxis(np.asarray(x), 1, -1), weight, bias, eps)
    return y.each(lambda v: np.moveaxis(v, -1, 1))


def rms_norm_wgrad(dy: Any, x: Any, rstd: Any, **_: Any) -> Num:
    terms = num(dy) * (num(x) * num(rstd)[..., None])
    return terms.sum(tuple(range(np.ndim(x) - 1)))


def layer_norm_wgrad(dy: Any, x: Any, mean: Any, rstd: Any, **_: Any) -> Any:
    d = (num(x) - num(mean)[..., None]) * num(rstd)[..., None]
    axes = tuple(range(np.ndim(x) - 1))
    return (num(dy) * d).sum(axes), num(dy).sum(axes)


# -- losses ---------------------------------------------------------------------------------------
def _capped(z: Num, softcap: float | None) -> tuple[Num, Num | None]:
    if softcap is None:
        return z, None
    t = call("tanh", z * (1 / Num(softcap, 0.0, z.p)))
    return t * softcap, 1 - t * t


def _loss(
    z: Num,
    target: Any,
    reduction: str,
    ignore_index: int,
    label_smoothing: float,
    softcap: float | None,
    z_loss: float,
) -> tuple[Num, Any]:
    """The loss of logits [M, N], and of what its gradient is made."""
    target = np.asarray(target).reshape(-1).astype(np.int64)
    z, slope = _capped(z, softcap)
    m, log = log_sum(z)
    alive = target != ignore_index
    at = np.arange(len(target)), np.where(alive, target, 0)
    rows = log - (z[at] - m)
    if label_smoothing:
        even = log - (z.sum(-1) / z.shape[-1] - m)
        rows = rows * (1 - Num(label_smoothing, 0.0, z.p)) + even * label_smoothing
    if z_loss:
        rows = rows + (log + m) * (log + m) * z_loss
    rows = where(alive, rows, Num(np.zeros(len(target)), 0.0, z.p))
    count = int(alive.sum())
    if reduction == "none":
        found = rows
    else:
        found = rows.sum(0)
        if reduction == "mean":
            found = found / count if count else Num(0.0, 0.0, z.p)
    return found, (z, m, log, alive, at, slope, count)


_LOSS = {
    "reduction": "mean",
    "ignore_index": -100,
    "label_smoothing": 0.0,
    "softcap": None,
    "z_loss": 0.0,
}


def cross_entropy(x: Any, target: Any, **how: Any) -> Num:
    z = num(x).reshape(-1, np.shape(x)[-1])
    how = {**_LOSS, **how}
    found, _ = _loss(z, target, **how)
    return found.reshape(*np.shape(target)) if how["reduction"] == "none" else found


def linear_cross_entropy(
    x: Any,
    w: Any,
    target: Any,
    bias: Any = None,
    chunk: Any = None,
    out_dtype: Any = None,
    **how: Any,
) -> Num:
    z = linear(x, w, bias, layout="nk").rounded(x.dtype)
    return _loss(z, target, **{**_LOSS, **how})[0]


def linear_cross_entropy_grad(
    x: Any,
    w: Any,
    target: Any,
    bias: Any = None,
    chunk: Any = None,
    out_dtype: Any = None,
    **how: Any,
) -> Any:
    how = {**_LOSS, **how}
    z = linear(x, w, bias, layout="nk").rounded(x.dtype)
    loss, (z, m, log, alive, at, slope, count) = _loss(z, target, **how)
    n, smooth = z.shape[-1], how["label_smoothing"]
    p = decay(z - m[:, None]) * (1 / call("exp", log))[:, None]
    p = p * (1 + (log + m)[:, None] * (2 * how["z_loss"])) if how["z_loss"] else p
    wanted = np.full(z.shape, smooth / n)
    wanted[at] += 1 - smooth
    g = p - Num(wanted, 2 * z.p.u * wanted, z.p)
    g = g if slope is None else g * slope
    g = g / count if how["reduction"] == "mean" and count else g
    g = where(alive[:, None], g, Num(np.zeros(z.shape), 0.0, z.p)).rounded(x.dtype)
    core = core_of(x.dtype)
    dx, dw = dot(g, num(w), core), dot(g.mT, num(x), core)
    # A dw of 16 bits is rounded after each chunk, at least 16 rows.
    size = np.matmul(
        np.where(np.isfinite(g.v), abs(g.v), 0).T, np.where(np.isfinite(num(x).v), abs(num(x).v), 0)
    )
    times = -(-len(at[0]) // 16)
    dw = Num(dw.v, dw.e + times * 2 * _unit(w.dtype) * size, dw.p)
    return loss, dx, dw, None if bias is None else g.sum(0)


def _unit(dtype: Any) -> float:
    return {2: 2.0**-8, 4: 0.0, 8: 0.0}[np.dtype(dtype).itemsize]


# -- experts, indices -----------------------------------------------------------------------------
def moe_dispatch(x: Any, experts: Any, count: int) -> Any:
    of = np.asarray(experts).reshape(-1)
    order = np.argsort(of, kind="stable")
    places = np.empty(len(of), np.int64)
    places[order] = np.arange(len(of))
    ends = np.cumsum(np.bincount(of, minlength=count)).astype(np.int32)
    rows = np.repeat(np.asarray(x), np.shape(experts)[1], 0)[order]
    return rows, places.reshape(np.shape(experts)), ends


def moe_combine(y: Any, places: Any, weights: Any) -> Num:
    return (num(weights)[..., None] * num(np.asarray(y)[np.asarray(places)])).sum(1)


def moe_router(
    logits: Any,
    k: int,
    bias: Any = None,
    scoring: str = "softmax",
    groups: int = 1,
    top_groups: int = 1,
    normalize: bool = False,
    scale: float = 1.0,
) -> Any:
    """Judges the choice by scores: no expert that is left may be clearly better."""
    scores = softmax(logits) if scoring == "softmax" else call("sigmoid", num(logits))
    choice = scores if bias is None else scores + num(bias)
    lead, count = choice.shape
    chosen: list[Any] = []

    def experts(got: Any) -> str:
        chosen[:] = [np.asarray(got)]
        if not np.isfinite(choice.v).all() or np.isinf(choice.e).any():
            return ""
        low, high = choice.v - choice.e, choice.v + choice.e
        for t in range(lead):
            rows = [(b[t].reshape(groups, -1), b[t]) for b in (low, high)]
            two = bias is not None and groups > 1
            rate = [np.sort(r, -1)[:, -2:].sum(-1) if two else r.max(-1) for r, _ in rows]
            own = got[t] // (count // groups)
            taken = np.unique(own)
            if len(set(got[t].tolist())) < k or len(taken) > top_groups:
                return f"f64: token {t} goes to {got[t].tolist()}"
            slack = 4 * F32.u * abs(rate[1]).max()
            spare = np.sort(rate[0])[::-1][top_groups - 1]  # of the last group that may be taken
            if any(rate[1][g] + slack < spare for g in taken):
                return f"f64: token {t} goes to groups {taken.tolist()}, better ones are left"
            surely = [
                g for g in range(groups) if (rate[1] + slack >= rate[0][g]).sum() <= top_groups
            ]
            left = [
                e
                for e in range(count)
                if e not in got[t]
                and e // (count // groups) in {*surely, *taken.tolist()}
                and (len(taken) == top_groups or e // (count // groups) in surely)
            ]
            if left and max(low[t, e] for e in left) > min(high[t, e] for e in got[t]):
                return f"f64: token {t} goes to {got[t].tolist()}, a better expert is left"
        return ""

    def weights(got: Any) -> str:
        own = scores.each(lambda v: np.take_along_axis(v, chosen[0], -1))
        own = own / (own.sum(-1, True) + 1e-20) if normalize else own
        return fault(got, own * scale)

    return weights, experts


def embedding(weight: Any, indices: Any, **_: Any) -> Any:
    return np.asarray(weight)[np.asarray(indices)]


def gather(x: Any, indices: Any, axis: int = 0, **_: Any) -> Any:
    moved = np.moveaxis(np.asarray(x), axis, 0)[np.asarray(indices)]
    lead = np.ndim(indices)
    at = axis % np.ndim(x)
    order = [*range(lead, lead + at), *range(lead), *range(lead + at, moved.ndim)]
    return moved.transpose(order)


def _scattered(shape: Any, at: Any, source: Any, x: Any = None) -> Any:
    """``x`` with ``source`` added at the places ``at``, each sum in any order."""
    source = np.asarray(source)
    if source.dtype.kind in "iu":
        found = np.zeros(shape, source.dtype) if x is None else np.array(x)
        np.add.at(found, at, source)
        return found
    s = num(source)
    finite = np.isfinite(s.v)
    v, size, count = (np.zeros(shape) for _ in range(3))
    np.add.at(v, at, s.v)
    np.add.at(size, at, np.where(finite, abs(s.v), 0))
    np.add.at(count, at, 1)
    total = _summed(s, v, np.zeros(shape), size, int(count.max(initial=0)) + 10)
    return total if x is None else total + num(x)


def embedding_backward(dy: Any, indices: Any, rows: int, **_: Any) -> Any:
    dy = np.asarray(dy)
    width = dy.shape[-1]
    return _scattered(
        (rows, width), np.asarray(indices).reshape(-1), dy.reshape(np.size(indices), width)
    )


def index_add(x: Any, indices: Any, source: Any, **_: Any) -> Any:
    return _scattered(np.shape(x), np.asarray(indices), source, x)


def scatter_add(x: Any, indices: Any, source: Any, axis: int = 0, **_: Any) -> Any:
    at = list(np.indices(np.shape(indices)))
    at[axis] = np.asarray(indices)
    return _scattered(np.shape(x), tuple(at), source, x)


def roll(x: Any, shifts: int, axis: int = 0, **_: Any) -> Any:
    n = np.shape(x)[axis]
    return np.take(x, [(i - shifts) % n for i in range(n)], axis)


def _key(value: Any, descending: bool = False) -> tuple[bool, float]:
    """The order of a number: a NaN is larger than any other."""
    nan = value != value
    return nan != descending, 0.0 if nan else -float(value) if descending else float(value)


def argsort(x: Any, axis: int = -1, descending: bool = False, **_: Any) -> Any:
    def order(row: Any) -> Any:
        found = sorted(range(len(row)), key=lambda i: _key(row[i], descending))
        return np.array(found, np.int64)

    x = np.asarray(x)
    return np.apply_along_axis(order, axis, x) if x.size else np.empty(x.shape, np.int64)


def sort(x: Any, axis: int = -1, descending: bool = False, **_: Any) -> Any:
    indices = argsort(x, axis, descending)
    return np.take_along_axis(np.asarray(x), indices, axis), indices


def topk(x: Any, k: int, largest: bool = True, **_: Any) -> Any:
    return tuple(each[..., :k] for each in sort(x, -1, largest))


def searchsorted(x: Any, values: Any, right: bool = False, **_: Any) -> Any:
    x, values = np.asarray(x), np.asarray(values)
    found = np.empty(values.shape, np.int64)
    for at in np.ndindex(values.shape):
        row, key = x[at[:-1]] if x.ndim > 1 else x, _key(values[at])
        found[at] = sum(_key(v) < key or (right and _key(v) == key) for v in row)
    return found


def bincount(x: Any, minlength: int, weights: Any = None, **_: Any) -> Any:
    if weights is None:
        return np.array([np.count_nonzero(np.asarray(x) == i) for i in range(minlength)], np.int64)
    return _scattered((minlength,), np.asarray(x), weights)


def unique(x: Any, size: int, **_: Any) -> Any:
    flat = np.asarray(x).reshape(-1)
    keys = sorted({_key(v) for v in flat.tolist()})
    at = {key: i for i, key in enumerate(keys)}
    inverse = np.array([at[_key(v)] for v in flat.tolist()], np.int64)
    of = [int(np.argmax(inverse == min(i, len(keys) - 1))) for i in range(size)]
    values = flat[of] if flat.size else np.zeros(size, flat.dtype)
    counts = np.array([np.count_nonzero(inverse == i) for i in range(size)], np.int64)
    return values, np.array(len(keys), np.int64), inverse.reshape(np.shape(x)), counts


# -- random numbers -------------------------------------------------------------------------------
def philox(key: int, low: int, high: int) -> list[int]:
    """Philox4x32-10 of the counter (low, high) and a key, 64 bits each (Salmon et al., 2011)."""
    mask = 2**32 - 1
    c = [low & mask, low >> 32 & mask, high & mask, high >> 32 & mask]
    k = [key & mask, key >> 32 & mask]
    for i in range(10):
        if i:
            k = [(k[0] + 0x9E3779B9) & mask, (k[1] + 0xBB67AE85) & mask]
        one, other = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [other >> 32 ^ c[1] ^ k[0], other & mask, one >> 32 ^ c[3] ^ k[1], one & mask]
    return c


def dropout(x: Any, seeds: Any, positions: Any, p: float = 0.5) -> Num:
    lead, n = np.shape(x)[:-1], np.shape(x)[-1]
    seeds, places = (np.broadcast_to(s, lead).reshape(-1) for s in (seeds, positions))
    bits = [
        philox(int(s), int(t), j)[0] for s, t in zip(seeds, places, strict=True) for j in range(n)
    ]
    kept = np.reshape(np.array(bits, np.int64) >= round(p * 2**32), np.shape(x))
    z = num(x)
    zeros = Num(np.zeros(z.shape), 0.0, z.p)
    return zeros if p == 1 else where(kept, z * (1 / (1 - Num(p, 0.0, z.p))), zeros)


def sample(
    logits: Any,
    temperature: Any = 0.0,
    top_k: Any = 0,
    top_p: Any = 1.0,
    min_p: Any = 0.0,
    seed: Any = 0,
    offset: Any = 0,
    **_: Any,
) -> Any:
    """An index is right where the probabilities before and up to it are on both sides of the random
    number, within what weights and the nucleus may be off by. Rows with a probability near the
    least of min_p are not judged.
    """
    lead, n = np.shape(logits)[:-1], np.shape(logits)[-1]
    rows = np.asarray(logits).astype(np.float64).reshape(-1, n)
    seeds = np.broadcast_to(seed, lead).reshape(-1)
    places = np.reshape(offset, -1) if np.ndim(offset) else np.arange(len(rows)) + int(offset)
    settings = [
        np.broadcast_to(s, lead).reshape(-1).tolist() for s in (temperature, top_k, top_p, min_p)
    ]

    def right(row: Any, got: int, u: float, temperature: float, top_k: int, top_p: float,
              min_p: float) -> bool:  # fmt: skip
        numbers = np.where(np.isnan(row), -np.inf, row)
        order = sorted(range(n), key=lambda i: (-numbers[i], np.isnan(row[i]), i))
        if temperature == 0:
            return got == order[0]
        best = numbers[order[0]]
        if not np.isfinite(best):
            return True
        with np.errstate(all="ignore"):
            w = np.exp(np.maximum((numbers - best) / temperature, -200))
        w = np.where(np.isnan(row), 0, w)
        kept = order[:top_k] if top_k else order
        off = 2.0**-20 * (1 + abs(best / temperature)) + n * 2.0**-39
        if off > 2.0**-8 or (abs(w - min_p) <= off * min_p).any():
            return True
        w = np.where(w < min_p, 0, w)
        if top_p < 1:
            mass = np.cumsum(w[kept]) / w[kept].sum()
            counts = {int(np.searchsorted(mass, min(max(top_p + s * off, 0), 1))) for s in (-1, 1)}
            if len(counts) > 1:
                return got in kept[: max(counts) + 1]
            kept = kept[: counts.pop() + 1]
        kept = sorted(kept)
        if got not in kept:
            return False
        mass = np.cumsum(w[kept]) / w[kept].sum()
        at = kept.index(got)
        return bool((mass[at - 1] if at else 0) - off <= u <= mass[at] + off)

    def judged(got: Any) -> str:
        for i, at in enumerate(np.reshape(got, -1).tolist()):
            c = philox(int(seeds[i]), int(places[i]), 0)
            if not right(rows[i], at, (c[1] << 32 | c[0]) / 2.0**64, *(s[i] for s in settings)):
                return f"f64: row {i} draws {at}"
        return ""

    return judged


def token_logprobs(logits: Any, ids: Any, temperature: Any = 1.0) -> Num:
    z, lead = num(logits), np.shape(logits)[:-1]
    t = np.broadcast_to(np.asarray(temperature, np.float32), lead)[..., None]
    z = (z / Num(np.where(t >= 1e-30, t, 1).astype(np.float64), 0.0, z.p)).reshape(-1, z.shape[-1])
    m, log = log_sum(z)
    rows = z[np.arange(z.shape[0]), np.reshape(ids, -1)] - m - log
    return rows.reshape(*lead)


def umap_knn(x: Any, k: int) -> Any:
    z = num(x)
    squares = (z * z).sum(-1)
    d = squares[:, None] + squares[None] - dot(z, z.mT, core_of(x.dtype)) * 2
    low, high = np.maximum(d.v - d.e, 0), np.maximum(d.v + d.e, 0)
    for side in (low, high):
        np.fill_diagonal(side, 0)
    taken: list[Any] = []
    sure = np.isfinite(d.v).all() and np.isfinite(d.e).all()

    def indices(got: Any) -> str:
        taken[:] = [got]
        if not sure:
            return ""
        for i, row in enumerate(got.tolist()):
            left = set(range(len(z.v))) - set(row)
            if len(set(row)) < k or (
                left and min(high[i, j] for j in left) < max(low[i, j] for j in row)
            ):
                return f"f64: the nearest of {i} are {row}"
        return ""

    def distances(got: Any) -> str:
        if not sure or np.size(got) == 0:
            return ""
        ends = [np.sqrt(np.take_along_axis(s, taken[0], -1)) for s in (low, high)]
        wide = (1 - 2.0**-22) * ends[0], (1 + 2.0**-22) * ends[1]
        wrong = (got < wide[0]) | (got > wide[1])
        return f"f64: distances are off: {got[wrong][0]}" if wrong.any() else ""

    return distances, indices


# -- images ---------------------------------------------------------------------------------------
def _per(value: Any, rank: int) -> tuple[int, ...]:
    return tuple(value) if isinstance(value, tuple | list) else (value,) * rank


class Places:
    """Placement of windows: ``stride``, ``padding`` and ``dilation`` of each dimension."""

    def __init__(
        self, rank: int, stride: Any = 1, padding: Any = 0, dilation: Any = 1, **_: Any
    ) -> None:
        self.stride, self.padding, self.dilation = (
            _per(v, rank) for v in (stride, padding, dilation)
        )

    def windows(self, image: Any, taps: Any) -> tuple[int, ...]:
        each = zip(image, taps, self.stride, self.padding, self.dilation, strict=True)
        return tuple((n + 2 * p - d * (t - 1) - 1) // s + 1 for n, t, s, p, d in each)

    def columns(self, x: Any, taps: Any, windows: Any) -> Any:
        """Elements of each window of [N, C, *], [N, C, *windows, *taps]; 0.0 beyond the image."""
        for a in range(len(taps)):
            at = (
                np.arange(windows[a])[:, None] * self.stride[a]
                - self.padding[a]
                + np.arange(taps[a]) * self.dilation[a]
            )
            inside = (at >= 0) & (at < x.shape[2 + 2 * a])
            # Behind each of the windows' dimensions is that of its taps, for now.
            x = np.take(x, np.where(inside, at, 0), 2 + 2 * a) if x.shape[2 + 2 * a] else x
            shape = [1] * x.ndim
            shape[2 + 2 * a : 4 + 2 * a] = at.shape
            x = np.where(inside.reshape(shape), x, 0.0)
        rank = len(taps)
        return x.transpose(0, 1, *range(2, 2 + 2 * rank, 2), *range(3, 3 + 2 * rank, 2))


def _first(x: Any, layout: str) -> Any:
    """Channels first, in float64."""
    x = np.asarray(x).astype(np.float64)
    return np.moveaxis(x, -1, 1) if layout == "channels_last" else x


def _last(found: Num, layout: str) -> Num:
    return found.each(lambda v: np.moveaxis(v, 1, -1)) if layout == "channels_last" else found


def conv(
    x: Any,
    w: Any,
    bias: Any = None,
    *,
    groups: int = 1,
    layout: str = "channels_first",
    activation: str | None = None,
    tier: str = "auto",
    **how: Any,
) -> Num:
    image, filters, p = _first(x, layout), _first(w, layout), working(x.dtype)
    rank = image.ndim - 2
    taps, at = filters.shape[2:], Places(rank, **how)
    windows = at.windows(image.shape[2:], taps)
    columns = at.columns(image, taps, windows)
    n, outs, each = len(image), len(filters) // groups, filters.shape[1]
    rows = columns.reshape(n, groups, each, prod(windows), prod(taps)).transpose(1, 0, 3, 2, 4)
    matrix = filters.reshape(groups, outs, each * prod(taps)).swapaxes(-1, -2)
    rows = rows.reshape(groups, n * prod(windows), each * prod(taps))
    y = dot(Num(rows, 0.0, p), Num(matrix, 0.0, p), core_of(x.dtype, tier))
    y = y.reshape(groups, n, prod(windows), outs)
    y = y.each(lambda v: v.transpose(1, 0, 3, 2)).reshape(n, groups * outs, *windows)
    y = y if bias is None else y + num(bias).reshape(-1, *(1,) * rank)
    return _last(activated(activation, y), layout)


def conv_dgrad(
    dy: Any,
    w: Any,
    image: Any,
    *,
    groups: int = 1,
    layout: str = "channels_first",
    tier: str = "auto",
    **how: Any,
) -> Num:
    """Sums over the taps that a window at a whole place has at an element; 0.0 beyond dy."""
    d, filters, p = _first(dy, layout), _first(w, layout), working(dy.dtype)
    rank, taps = d.ndim - 2, filters.shape[2:]
    image, at = _per(tuple(image), rank), Places(rank, **how)
    n, outs, each = len(d), len(filters) // groups, filters.shape[1]
    v, size = np.zeros((2, n, groups * each, *image))
    count = np.zeros(image)
    d = d.reshape(n, groups, outs, *d.shape[2:])
    filters = filters.reshape(groups, outs, each, *taps)
    with np.errstate(all="ignore"):
        for tap in itertools.product(*map(range, taps)):
            picked, whole, inside = d, [], []
            for a in range(rank):
                place = np.arange(image[a]) + at.padding[a] - tap[a] * at.dilation[a]
                window = place // at.stride[a]
                whole.append(place % at.stride[a] == 0)
                inside.append((window >= 0) & (window < d.shape[3 + a]))
                picked = np.take(picked, np.where(inside[a], window, 0), 3 + a)
            reach, there = (
                np.array(np.meshgrid(*m, indexing="ij")).all(0) for m in (whole, inside)
            )
            picked = np.where(there, picked, 0.0)
            own = filters[(..., *tap)]
            term = np.einsum("ngo...,goc->ngc...", picked, own).reshape(v.shape)
            large = [np.where(np.isfinite(z), abs(z), 0) for z in (picked, own)]
            most = np.einsum("ngo...,goc->ngc...", *large).reshape(v.shape)
            v, size = v + np.where(reach, term, 0), size + np.where(reach, most, 0)
            count += reach * outs
    return _last(_reduced(v, size, int(count.max(initial=0)), p, core_of(dy.dtype, tier)), layout)


def _reduced(v: Any, size: Any, k: int, p: Any, core: Any) -> Num:
    """Sums of at most k products, of these sizes; on tensor cores if there are any."""
    found = _summed(Num(v, 0.0, p), v, np.zeros(v.shape), size, 2 * k + 4)
    if core is None:
        return found
    steps = k + 2  # a tap's channels are filled up to whole steps
    more = steps * ((core.terms + 1) * 2.0**-core.bits + 2 * p.u) * size
    more = more + steps * (core.terms + 1) * 2.0 ** (core.floor - core.bits)
    return _settled(Num(v, found.e + np.where(np.isfinite(v), more, 0), p))


def conv_transpose(
    x: Any,
    w: Any,
    bias: Any = None,
    *,
    output_padding: Any = 0,
    groups: int = 1,
    layout: str = "channels_first",
    activation: str | None = None,
    **how: Any,
) -> Num:
    d, filters = _first(x, layout), _first(w, layout)
    rank = d.ndim - 2
    at = Places(rank, **how)
    each = zip(
        d.shape[2:],
        filters.shape[2:],
        at.stride,
        at.padding,
        at.dilation,
        _per(output_padding, rank),
        strict=True,
    )
    image = tuple((n - 1) * s - 2 * p + far * (t - 1) + 1 + more for n, t, s, p, far, more in each)
    y = conv_dgrad(x, w, image, groups=groups, layout=layout, **how)
    if bias is not None:
        y = y + num(bias).reshape(*((-1,) if layout == "channels_last" else (-1, *(1,) * rank)))
    return activated(activation, y)


def conv_wgrad(
    x: Any,
    dy: Any,
    taps: Any,
    *,
    groups: int = 1,
    layout: str = "channels_first",
    chain: bool = False,
    **how: Any,
) -> Num:
    image, d, p = _first(x, layout), _first(dy, layout), working(x.dtype)
    rank, windows = image.ndim - 2, d.shape[2:]
    taps = _per(tuple(taps), rank)
    columns = Places(rank, **how).columns(image, taps, windows)
    n, each, outs = len(image), image.shape[1] // groups, d.shape[1] // groups
    rows = columns.reshape(n, groups, each, prod(windows), prod(taps)).transpose(1, 0, 3, 2, 4)
    rows = rows.reshape(groups, n * prod(windows), each * prod(taps))
    left = d.reshape(n, groups, outs, prod(windows)).transpose(1, 2, 0, 3).reshape(groups, outs, -1)
    found = dot(Num(left, 0.0, p), Num(rows, 0.0, p), core_of(x.dtype))
    return _last(found.reshape(groups * outs, each, *taps), layout)


def _pooled(x: Any, spans: Any) -> Any:
    """Yields the place of each result, its elements, and their slices, of windows as spans."""
    for at in itertools.product(*(range(len(s)) for s in spans)):
        cut = tuple(slice(*spans[a][i]) for a, i in enumerate(at))
        yield at, np.asarray(x)[(..., *cut)], cut


def _max_of(x: Any, spans: Any, least: bool = False) -> Any:
    x, rank = np.asarray(x), len(spans)
    image = x.shape[-rank:]
    lead, shape = x.shape[:-rank], tuple(len(s) for s in spans)
    values, indices = np.empty((*lead, *shape), x.dtype), np.empty((*lead, *shape), np.int64)
    places = np.arange(prod(image)).reshape(image)
    for at, window, cut in _pooled(x, spans):
        where_ = places[cut].reshape(-1)
        flat = window.reshape(*lead, len(where_))
        wide = -flat.astype(np.float64) if least else flat.astype(np.float64)
        nan = np.isnan(wide)
        first = np.where(nan, -np.inf, wide).argmax(-1)
        last = flat.shape[-1] - 1 - nan[..., ::-1].argmax(-1)
        best = np.where(nan.any(-1), last, first)
        values[(..., *at)] = np.take_along_axis(flat, best[..., None], -1)[..., 0]
        indices[(..., *at)] = where_[best]
    return values, indices


def _spans(image: Any, window: Any, stride: Any, padding: Any, dilation: Any, ceil: bool) -> Any:
    """Windows within the image: begin, end and step; and how many elements within the padding."""
    found, wide = [], []
    for n, k, s, p, d in zip(image, window, stride, padding, dilation, strict=True):
        room = n + 2 * p - d * (k - 1) - 1
        count = (-(-room // s) if ceil else room // s) + 1
        if ceil and (count - 1) * s >= n + p:
            count -= 1
        each, sizes = [], []
        for i in range(count):
            begin, end = i * s - p, i * s - p + d * (k - 1) + 1
            sizes.append(min(end, n + p) - begin)
            begin += -(begin // d) * d if begin < 0 else 0
            each.append((begin, min(end, n), d))
        found.append(each)
        wide.append(sizes)
    return found, wide


def _pool_how(x: Any, window: Any, stride: Any, padding: Any, dilation: Any, ceil: bool) -> Any:
    rank = len(window)
    stride = window if stride in ((), None) else _per(stride, rank)
    padding = (0,) * rank if padding in ((), None) else _per(padding, rank)
    dilation = (1,) * rank if dilation in ((), None) else _per(dilation, rank)
    return _spans(np.shape(x)[-rank:], window, stride, padding, dilation, ceil)


def max_pool(
    x: Any, window: Any, stride: Any = (), padding: Any = (), dilation: Any = (), ceil: bool = False
) -> Any:
    return _max_of(x, _pool_how(x, window, stride, padding, dilation, ceil)[0])


def min_pool(
    x: Any, window: Any, stride: Any = (), padding: Any = (), dilation: Any = (), ceil: bool = False
) -> Any:
    return _max_of(x, _pool_how(x, window, stride, padding, dilation, ceil)[0], True)


def sum_pool(x: Any, window: Any, stride: Any = (), padding: Any = (), ceil: bool = False) -> Num:
    return avg_pool(x, window, stride, padding, ceil, divisor=1)


def prod_pool(
    x: Any, window: Any, stride: Any = (), padding: Any = (), dilation: Any = (), ceil: bool = False
) -> Num:
    spans = _pool_how(x, window, stride, padding, dilation, ceil)[0]
    rank = len(spans)
    shape = (*np.shape(x)[:-rank], *(len(s) for s in spans))
    v, e = np.zeros(shape), np.zeros(shape)
    for at, taps, _ in _pooled(x, spans):
        own = _prod(taps.reshape(*taps.shape[:-rank], prod(taps.shape[-rank:])))
        v[(..., *at)], e[(..., *at)] = own.v, own.e
    return Num(v, e, working(x.dtype))


def _column_places(size: Any, window: Any, stride: Any, padding: Any, dilation: Any) -> Any:
    """Yields tap, window, and the image coordinates of each element of a channel's columns."""
    rank = len(window)
    s, p, d = (_per(v, rank) for v in (stride, padding, dilation))
    counts = [(size[i] + 2 * p[i] - d[i] * (window[i] - 1) - 1) // s[i] + 1 for i in range(rank)]
    for j, tap in enumerate(np.ndindex(*window)):
        for o, at in enumerate(np.ndindex(*counts)):
            place = tuple(at[i] * s[i] + tap[i] * d[i] - p[i] for i in range(rank))
            yield j, o, place, all(0 <= q < n for q, n in zip(place, size, strict=True))


def im2col(
    x: Any, window: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, **_: Any
) -> Any:
    x, rank = np.asarray(x), len(window)
    size = x.shape[-rank:]
    places = list(_column_places(size, window, stride, padding, dilation))
    y = np.zeros((*x.shape[:-rank], places[-1][0] + 1, places[-1][1] + 1), x.dtype)
    for j, o, place, inside in places:
        if inside:
            y[..., j, o] = x[(..., *place)]
    return y.reshape(*x.shape[: -rank - 1], -1 if x.size else y.shape[-3] * y.shape[-2],
                     y.shape[-1])  # fmt: skip


def col2im(
    x: Any, size: Any, window: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1
) -> Num:
    taps = prod(window)
    z = num(np.reshape(x, (*np.shape(x)[:-2], np.shape(x)[-2] // taps, taps, np.shape(x)[-1])))
    terms: dict[Any, Any] = {}
    for j, o, place, inside in _column_places(size, window, stride, padding, dilation):
        if inside:
            terms.setdefault(place, []).append((j, o))
    lead = z.shape[:-2]
    v, e = np.zeros((*lead, *size)), np.zeros((*lead, *size))
    for place, pairs in terms.items():
        j, o = map(list, zip(*sorted(pairs, key=lambda pair: pair[1]), strict=True))
        own = z[..., j, o].sum(-1)
        v[(..., *place)], e[(..., *place)] = own.v, own.e
    return Num(v, e, z.p)


def avg_pool(
    x: Any,
    window: Any,
    stride: Any = (),
    padding: Any = (),
    ceil: bool = False,
    count_padding: bool = True,
    divisor: int = 0,
) -> Num:
    spans, wide = _pool_how(x, window, stride, padding, (), ceil)
    rank = len(spans)

    def by(at: Any) -> int:
        if divisor:
            return divisor
        inside = prod(spans[a][i][1] - spans[a][i][0] for a, i in enumerate(at))
        return prod(wide[a][i] for a, i in enumerate(at)) if count_padding else inside

    return _mean_of(x, spans, by, rank)


def _mean_of(x: Any, spans: Any, by: Any, rank: int) -> Num:
    shape = (*np.shape(x)[:-rank], *(len(s) for s in spans))
    v, e, p = np.zeros(shape), np.zeros(shape), working(x.dtype)
    for at, window, _ in _pooled(x, spans):
        own = num(window).sum(tuple(range(-rank, 0))) / by(at)
        v[(..., *at)], e[(..., *at)] = own.v, own.e
    return Num(v, e, p)


def _adaptive(x: Any, size: Any) -> Any:
    image = np.shape(x)[-len(size) :]
    return [
        [(i * n // o, -(-(i + 1) * n // o), 1) for i in range(o)]
        for n, o in zip(image, size, strict=True)
    ]


def adaptive_max_pool(x: Any, size: Any) -> Any:
    return _max_of(x, _adaptive(x, size))


def adaptive_avg_pool(x: Any, size: Any) -> Num:
    spans = _adaptive(x, size)
    return _mean_of(
        x,
        spans,
        lambda at: prod(spans[a][i][1] - spans[a][i][0] for a, i in enumerate(at)),
        len(size),
    )


def resize(x: Any, size: Any, mode: str = "nearest", align_corners: bool = False) -> Any:
    x, rank = np.asarray(x), len(size)
    if mode == "nearest":
        for a, o in enumerate(size, x.ndim - rank):
            x = np.take(x, [i * x.shape[a] // o for i in range(o)], a)
        return x
    z = num(x)
    for a in reversed(range(x.ndim - rank, x.ndim)):
        z = _between(z.swapaxes(a, -1), size[a - x.ndim], align_corners).swapaxes(a, -1)
    return z


def _between(z: Num, o: int, align_corners: bool) -> Num:
    """Between neighbours of the last dimension. A place is computed with four roundings; where that
    moves it, the result moves by the slope to a neighbour.
    """
    n, i = z.shape[-1], np.arange(o)
    s = (
        i * ((n - 1) / (o - 1) if o > 1 else 0.0)
        if align_corners
        else np.maximum((i + 0.5) * n / o - 0.5, 0)
    )
    low = np.minimum(np.floor(s).astype(int), n - 1)
    w = s - low
    off = 6 * z.p.u * (s + 1)
    a, b = z[..., low], z[..., np.minimum(low + 1, n - 1)]
    share = Num(np.broadcast_to(w, a.shape), np.broadcast_to(off, a.shape), z.p)
    found = a * (1 - share) + b * share
    around = np.stack([z.v[..., np.clip(low + d, 0, n - 1)] for d in (-1, 0, 1, 2)])
    step = abs(np.diff(around, axis=0)).max(0)
    sure = np.isfinite(around).all(0)
    return Num(found.v, np.where(sure, found.e + off * step, np.inf), z.p)


def resize_nearest_2x(x: Any) -> Any:
    return np.asarray(x).repeat(2, -1).repeat(2, -2)


# -- recurrences ----------------------------------------------------------------------------------
def _stacked(parts: list[Num], shape: Any, axis: int, p: Any) -> Num:
    if not parts:
        return Num(np.zeros(shape), 0.0, p)
    return Num(np.stack([x.v for x in parts], axis), np.stack([x.e for x in parts], axis), p)


def linear_recurrence(
    a: Any, b: Any, state: Any = None, return_state: bool = False, **_: Any
) -> Any:
    x, y = num(a), num(b)
    h = Num(np.zeros(x.v[:, :1].shape)[:, 0] if x.shape[1] else np.zeros((x.shape[0], x.shape[2])))
    h, found = h if state is None else num(state), []
    for t in range(x.shape[1]):
        h = x[:, t] * h + y[:, t]
        found.append(h)
    made = _stacked(found, x.shape, 1, F32)
    return (made, h) if return_state else made


def selective_scan(
    x: Any,
    delta: Any,
    z: Any = None,
    delta_bias: Any = None,
    state: Any = None,
    softplus: bool = False,
    return_state: bool = False,
    **of: Any,
) -> Any:
    u, d, rate = num(x), num(delta), num(of["A"]) * (1 / np.log(2))
    d = d if delta_bias is None else d + num(delta_bias)
    d = call("softplus", d) if softplus else d
    b, c = num(of["B"]), num(of["C"])
    h = Num(np.zeros((u.shape[0], *rate.shape))) if state is None else num(state)
    found = []
    for t in range(u.shape[1]):
        power = d[:, t, :, None] * rate
        held = Num(np.clip(power.v, -126, 127), power.e, F32)
        held = Num(
            np.where(np.isnan(power.v), np.nan, held.v), np.where(np.isnan(power.v), np.inf, held.e)
        )
        w = held.apply(np.exp2, 2.0)
        h = w * h + (d[:, t] * u[:, t])[..., None] * b[:, t, None]
        y = (c[:, t, None] * h).sum(-1, more=2)
        found.append(y if of.get("D") is None else num(of["D"]) * u[:, t] + y)
    y = _stacked(found, u.shape, 1, F32)
    y = y if z is None else y * call("silu", num(z))
    return (y, h) if return_state else y


def _delta(
    q: Num,
    k: Num,
    v: Num,
    g: Num,
    beta: Num,
    state: Any,
    scale: float,
    rule: bool,
    skip: Any,
    return_state: bool,
) -> Any:
    """The recurrence of ``delta``: heads share keys; a state is [..., H, N, P].

    Rows of zeros fill a state up, which are NaN where an infinity is multiplied by them.
    """
    rows, heads, shared = k.shape[-1], v.shape[-2], k.shape[-2]
    fill = groups_of(rows) * GROUP - rows

    def filled(x: Any) -> Any:
        return np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, fill)])

    q, k = (x.each(lambda y: filled(y.repeat(heads // shared, -2))) for x in (q, k))
    lead, tokens = v.shape[:-3], v.shape[-3]
    s = Num(np.zeros((*lead, heads, rows, v.shape[-1]))) if state is None else state
    s = s.each(lambda y: filled(y.swapaxes(-1, -2)).swapaxes(-1, -2))
    found = []
    for t in range(tokens):
        at = (..., t, slice(None), slice(None))
        a = call("exp", g[..., t, :])[..., None, None]
        own, w = k[at][..., None], v[at]
        if rule:
            w = w - a[..., 0] * (own * s).sum(-2, more=2)
        d = beta[..., t, :, None] * w
        s = own * d[..., None, :] + a * s
        o = (q[at][..., None] * s).sum(-2, more=2) * scale
        found.append(o if skip is None else skip[:, None] * v[at] + o)
    made = _stacked(found, v.shape, -3, F32)
    return (made, s[..., :rows, :]) if return_state else made


def gated_delta_rule(
    q: Any,
    k: Any,
    v: Any,
    g: Any,
    beta: Any,
    state: Any = None,
    scale: Any = None,
    l2_norm: bool = False,
    return_state: bool = False,
    **_: Any,
) -> Any:
    def keys(x: Any) -> Num:
        y = num(x)
        if not l2_norm:
            return y
        return (y * call("rsqrt", (y * y).sum(-1, True) + 1e-6)).rounded(x.dtype)

    scale = 1 / sqrt(np.shape(k)[-1]) if scale is None else scale
    state = None if state is None else num(state)
    return _delta(
        keys(q), keys(k), num(v), num(g), num(beta), state, scale, True, None, return_state
    )


def ssd(
    x: Any,
    dt: Any,
    a: Any,
    b: Any,
    c: Any,
    d: Any = None,
    dt_bias: Any = None,
    state: Any = None,
    softplus: bool = False,
    return_state: bool = False,
    **_: Any,
) -> Any:
    step = num(dt) if dt_bias is None else num(dt) + num(dt_bias)
    step = call("softplus", step) if softplus else step
    state = None if state is None else num(state).mT
    skip = None if d is None else num(d)
    found = _delta(
        num(c), num(b), num(x), step * num(a), step, state, 1.0, False, skip, return_state
    )
    return (found[0], found[1].mT) if return_state else found


# -- attention ------------------------------------------------------------------------------------
class Attention:
    """Logits of all queries and keys, [B, H, S, L], and which of them are seen."""

    def __init__(
        self,
        q: Any,
        k: Any,
        v: Any,
        *,
        layout: str = "bhsd",
        causal: bool = False,
        window: int | None = None,
        mask: Any = None,
        bias: Any = None,
        lengths: Any = None,
        starts: Any = None,
        query_lengths: Any = None,
        sinks: Any = None,
        slopes: Any = None,
        scale: float | None = None,
        softcap: float | None = None,
        **_: Any,
    ) -> None:
        self.layout, self.dtype = layout, q.dtype
        self.q, self.k, self.v = (num(self.turned(x)) for x in (q, k, v))
        b, h, s, _ = self.q.shape
        keys, self.group = self.k.shape[2], h // self.k.shape[1]
        self.core = core_of(q.dtype)
        self.scale = 1 / sqrt(q.shape[-1]) if scale is None else scale
        self.k, self.v = (x.each(lambda y: y.repeat(self.group, 1)) for x in (self.k, self.v))
        begin = np.zeros(b, int) if starts is None else np.clip(starts, 0, keys)
        end = np.full(b, keys) if lengths is None else np.clip(begin + lengths, begin, keys)
        asked = np.full(b, s) if query_lengths is None else np.clip(query_lengths, 0, s)
        i, j = np.arange(s)[:, None], np.arange(keys)
        at = i + (end - asked)[:, None, None]
        seen = (j < end[:, None, None]) & (j >= begin[:, None, None]) & (i < asked[:, None, None])
        seen &= (j <= at) if causal else True
        seen &= (abs(at - j) < window) if window is not None else True
        self.seen = np.broadcast_to(seen[:, None], (b, h, s, keys))
        self.seen = (
            self.seen if mask is None else self.seen & np.broadcast_to(mask, self.seen.shape)
        )
        with np.errstate(all="ignore"):
            t = dot(self.q, self.k.mT, self.core) * Num(self.scale, 2 * F32.u * abs(self.scale))
            self.tanh = None
            if softcap is not None:
                self.tanh = call("tanh", t * (1 / Num(softcap)))
                t = self.tanh * softcap
            if bias is not None:
                t = t + num(np.broadcast_to(bias, self.seen.shape))
            if slopes is not None:
                t = t + num(slopes)[:, None, None] * (j - at)[:, None]
        # In base 2: a product with log2(e), rounded, and one with its constant, which is rounded.
        self.t = Num(t.v, t.e + 4 * F32.u * np.where(np.isfinite(t.v), abs(t.v), 0))
        self.sinks = None if sinks is None else num(sinks)[:, None]

    def turned(self, x: Any) -> Any:
        return np.swapaxes(np.asarray(x), 1, 2) if self.layout == "bshd" else np.asarray(x)

    def weights(self, t: Num, m: Num, times: int) -> Num:
        """``exp(t - m)``, off by what the instruction or the polynomial is, and by being brought to
        a larger maximum so many times; those below 2^-126 may be 0.
        """
        d = t - m
        d = Num(d.v, d.e + 4 * F32.u * np.where(np.isfinite(m.v), abs(m.v), 0))
        p = d.apply(np.exp, 4.0 + 4 * times)
        more = times * 2 * F32.u * (1 + np.where(np.isfinite(d.v), abs(d.v), 0)) * p.v
        if self.core is None:  # multiples of 2^-24 of 128 powers of two
            more = more + 2.0**-16 * p.v
        return Num(p.v, np.where(np.isfinite(p.v), p.e + more + 2.0**-125, p.e))

    def masked(self, x: Num, nothing: float = 0.0) -> Num:
        return where(self.seen, x, Num(np.full(x.shape, nothing)))

    def back(self, x: Num) -> Num:
        return x.swapaxes(1, 2) if self.layout == "bshd" else x


def attention(q: Any, k: Any, v: Any, return_lse: bool = False, **how: Any) -> Any:
    of = Attention(q, k, v, **how)
    t = of.masked(of.t, -np.inf)
    m = t.max(-1)
    any_ = of.seen.any(-1)
    if of.sinks is not None:
        sink = np.broadcast_to(of.sinks.v, m.shape)
        m = Num(np.where(np.isnan(m.v), m.v, np.maximum(m.v, sink)), m.e)
    base = Num(np.where(np.isfinite(m.v), m.v, 0), np.where(np.isfinite(m.v), m.e, 0))[..., None]
    times = 3 + t.shape[-1] // 64
    p = of.masked(of.weights(of.t, base, times))
    total = p.sum(-1, more=2 * times)
    if of.sinks is not None:
        own = of.weights(Num(np.broadcast_to(of.sinks.v, m.shape)), base[..., 0], times)
        total = total + own
    values = of.v
    held = where(of.seen.any(2)[..., None], values, Num(np.zeros(values.shape)))
    part = rounded(p, _sixteen(of.dtype)) if of.core is not None else p
    o = dot(part, held, of.core, more=2 * times)
    # A value that some queries see counts as 0 where another does not.
    bad = ~np.isfinite(held.v).all(-1)
    unsure = (bad[:, :, None, :] & ~of.seen & True).any(-1)
    y = o / total[..., None]
    y = Num(y.v, np.where(unsure[..., None], np.inf, y.e))
    lse = m + call("log", total)
    nothing = ~any_
    none = np.zeros(m.shape)
    y = where(nothing[..., None] & (total.v == 0)[..., None], Num(np.zeros(y.shape)), y)
    lse = where(nothing & (total.v == 0), Num(none - np.inf), lse)
    odd = np.isnan(m.v) | (m.v == np.inf)
    y, lse = (
        where(odd if x is lse else odd[..., None], Num(np.full(x.shape, np.nan)), x)
        for x in (y, lse)
    )
    unknown = np.isinf(t.e).any(-1)
    y = of.back(Num(y.v, np.where(unknown[..., None], np.inf, y.e)))
    lse = Num(lse.v, np.where(unknown, np.inf, lse.e))
    return (y, lse if of.layout != "bshd" else lse.swapaxes(1, 2)) if return_lse else y


def _sixteen(dtype: Any) -> Any:
    from exact64 import OF

    return OF[np.dtype(dtype).name]


def attention_grad(
    do: Any,
    q: Any,
    k: Any,
    v: Any,
    o: Any,
    lse: Any,
    bias_grad: bool = False,
    sinks_grad: bool = False,
    **how: Any,
) -> Any:
    of, p16 = Attention(q, k, v, **how), _sixteen(q.dtype)
    g, y = (num(of.turned(x)) for x in (do, o))
    log = num(of.turned(lse))
    zeros = Num(np.zeros(of.t.shape))
    share = (g * y).sum(-1)
    base = Num(np.where(log.v == -np.inf, 0, log.v))[..., None]
    p = of.weights(of.t, base, 1)
    if of.core is None:  # w is brought between 0 and 1: at most 2, of lse plus its rounding
        p = Num(p.v, np.where(p.v > 1.9, np.inf, p.e))
    p = where(of.seen & (log.v != -np.inf)[..., None], p, zeros)
    dp = dot(g, of.v.mT, of.core)
    ds = where(of.seen, p * (dp - share[..., None]), zeros)
    raw = ds
    if of.tanh is not None:
        ds = where(of.seen, ds * (1 - of.tanh * of.tanh), zeros)
    few, less = (rounded(x, p16) if of.core is not None else x for x in (p, ds))
    unsure = ~np.isfinite(np.concatenate([x.v.reshape(-1) for x in (g, y, of.q, of.k, of.v)])).all()
    more = 2 * of.q.shape[2] + 64
    dq = dot(less, of.k, of.core, more=more) * of.scale
    dk = dot(less.mT, of.q, of.core, more=more) * of.scale
    dv = dot(few.mT, g, of.core, more=more)

    def shared(x: Num) -> Num:
        b, h, n, d = x.shape
        return x.reshape(b, h // of.group, of.group, n, d).sum(2, more=4)

    found = [of.back(x) for x in (dq, shared(dk), shared(dv))]
    if bias_grad:
        shape = np.shape(how["bias"])
        lead = raw.v.ndim - len(shape)
        axes = tuple(
            a for a in range(raw.v.ndim) if a < lead or shape[a - lead] == 1 != raw.shape[a]
        )
        found.append((raw.sum(axes) if axes else raw).reshape(*shape))
    if sinks_grad:
        own = of.weights(Num(np.broadcast_to(of.sinks.v, log.shape)), base[..., 0], 1)
        own = where(log.v == -np.inf, Num(np.zeros(log.shape)), own)
        found.append(-(own * share).sum((0, 2)))
    if unsure:  # what is not seen counts as 0, which a product of all would not say
        found = [Num(x.v, np.inf) for x in found]
    return tuple(found)


# -- numbers of 4 bits ----------------------------------------------------------------------------
def _nibbles(x: Any, signed: bool) -> Any:
    x = np.asarray(x).astype(np.int64)
    both = np.stack([x % 16, x // 16], -1).reshape(*x.shape[:-1], 2 * x.shape[-1])
    return np.where(both > 7, both - 16, both) if signed else both


def int4_gemm(
    a: Any,
    b: Any,
    c: Any = None,
    bias: Any = None,
    *,
    dtype: str = "s4",
    alpha: float = 1.0,
    beta: float = 0.0,
    **_: Any,
) -> Any:
    signed = dtype == "s4"
    low, high = (-8, 7) if signed else (0, 15)
    v = num(_nibbles(a, signed) @ _nibbles(b, signed).T * 1.0)
    v = Num(v.v) * alpha
    v = v if c is None else v + num(_nibbles(c, signed) * 1.0) * beta

    def judged(got: Any) -> str:
        mine = _nibbles(got, signed)
        off = abs(mine - np.clip(v.v, low, high)) > 0.5 + v.e
        return f"f64: {mine[off][0]} of {v.v[off][0]}" if off.any() else ""

    return judged


def int4_pack(x: Any, dtype: str = "s4") -> Any:
    y = np.asarray(x).astype(np.int64) % 16
    return (y[..., 0::2] + 16 * y[..., 1::2]).astype(np.uint8)


def int4_unpack(x: Any, dtype: str = "s4") -> Any:
    return _nibbles(x, dtype == "s4").astype(np.int8 if dtype == "s4" else np.uint8)


def _codes(data: Any, bits: int) -> Any:
    each = np.unpackbits(np.asarray(data).reshape(-1), bitorder="little").reshape(-1, bits)
    return each.astype(np.int64) @ (1 << np.arange(bits))


def dequantize(q: Any, dtype: Any = "float32", layout: str = "nk") -> Any:
    row = q.format
    codes = np.array(row.values, np.float32)[_codes(q.data, row.bits)].reshape(-1, row.block)
    with np.errstate(all="ignore"):
        rows = (codes * np.asarray(q.scales)[:, None]).reshape(q.n, q.k).astype(dtype)
    return rows if layout == "nk" else rows.T


def quantize(w: Any, format: str, layout: str = "nk") -> Any:
    row = FORMATS[format]
    rows, values = np.asarray(w).astype(np.float64), np.array(row.values)
    blocks = (rows if layout == "nk" else rows.T).reshape(-1, row.block)
    with np.errstate(all="ignore"):
        scales = abs(blocks).max(-1).astype(np.float32) / np.float32(values.max())

    def data(got: Any) -> str:
        codes = values[_codes(got, row.bits)].reshape(-1, row.block)
        sure = np.isfinite(scales)
        mine = abs(blocks - scales[:, None] * codes)[sure]
        best = abs(blocks[..., None] - scales[:, None, None] * values).min(-1)[sure]
        return "f64: a code is not the nearest" if (mine > best * (1 + 2.0**-40)).any() else ""

    return data, scales


def quantized_linear(x: Any, q: Any, bias: Any = None, **how: Any) -> Num:
    return linear(x, dequantize(q, x.dtype), bias, layout="nk", **how)


def quantized_embedding(indices: Any, q: Any, dtype: Any = "float32") -> Any:
    return dequantize(q, dtype)[np.asarray(indices)]


def quantized_grouped_linear(x: Any, q: Any, ends: Any, bias: Any = None, **how: Any) -> Num:
    w = dequantize(q, x.dtype).reshape(len(ends), -1, q.k)
    return grouped(x, w, ends, bias, layout="nk", **how)


def quantized_linear_dgrad(dy: Any, q: Any, **_: Any) -> Num:
    return linear(dy, dequantize(q, dy.dtype), layout="kn")


# -- layout ---------------------------------------------------------------------------------------
def rope(x: Any, cos: Any, sin: Any, interleaved: bool = False) -> Num:
    z, c, s = num(x), num(cos), num(sin)
    half = c.shape[-1]
    one = (..., slice(0, 2 * half, 2) if interleaved else slice(0, half))
    other = (..., slice(1, 2 * half, 2) if interleaved else slice(half, 2 * half))
    v, e = np.array(z.v), np.zeros(z.shape)
    a, b = z[one], z[other]
    for at, y in ((one, a * c - b * s), (other, b * c + a * s)):
        v[at], e[at] = y.v, y.e
    return Num(v, e, z.p)


def split_qkv(x: Any, heads: int, kv_heads: int) -> Any:
    x = np.asarray(x)
    size = x.shape[-1] // (heads + 2 * kv_heads)
    rows = x.reshape(*x.shape[:-1], heads + 2 * kv_heads, size)
    ends = [0, heads, heads + kv_heads, heads + 2 * kv_heads]
    return tuple(rows[..., a:b, :] for a, b in itertools.pairwise(ends))


def pad(x: Any, widths: Any, value: Any = 0) -> Any:
    x = np.asarray(x)
    found = np.empty([n + a + b for n, (a, b) in zip(x.shape, widths, strict=True)], x.dtype)
    found[...] = value
    found[tuple(slice(a, a + n) for n, (a, _) in zip(x.shape, widths, strict=True))] = x
    return found


def narrow(x: Any, axis: int, start: int, length: int) -> Any:
    moved = np.moveaxis(np.asarray(x), axis, 0)
    return np.moveaxis(moved[start : start + length], 0, axis)


def transpose(x: Any, first: int = -2, second: int = -1) -> Any:
    order = list(range(np.ndim(x)))
    order[first], order[second] = order[second], order[first]
    return np.transpose(x, order)


def expand(x: Any, shape: Any) -> Any:
    return (
        np.zeros(shape, x.dtype) + np.asarray(x)
        if np.isfinite(x).all()
        else np.broadcast_to(x, shape)
    )


def concat(arrays: Any, axis: int = 0) -> Any:
    shape = list(np.shape(arrays[0]))
    shape[axis] = sum(np.shape(x)[axis] for x in arrays)
    found, start = np.empty(shape, arrays[0].dtype), 0
    for x in arrays:
        end = start + np.shape(x)[axis]
        np.moveaxis(found, axis, 0)[start:end] = np.moveaxis(x, axis, 0)
        start = end
    return found


def cast(x: Any, dtype: str) -> Any:
    return np.asarray(x).astype(dtype)


# -- functions ------------------------------------------------------------------------------------
_INTEGER: dict[str, Callable[..., Any]] = {
    **{n: getattr(np, n) for n in ("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not")},
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "neg": np.negative,
    "abs": np.abs,
    "sign": np.sign,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "copy": np.array,
    "clamp": lambda x, low, high: np.minimum(np.maximum(x, low), high),
}
_COMPARED = {
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "isnan": "isnan",
    "isinf": "isinf",
    "isfinite": "isfinite",
}
_EXACT: dict[str, Callable[..., Any]] = {
    **{n: _INTEGER[n] for n in ("neg", "abs", "sign", "maximum", "minimum", "copy", "clamp")},
    **{n: getattr(np, n) for n in ("floor", "ceil", "trunc", "round")},
    "relu": FUNCTIONS["relu"],
}
_ARITHMETIC: dict[str, Callable[..., Num]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "fma": lambda x, y, z: x * y + z,
    "swiglu": lambda x, y: x * call("sigmoid", x) * y,
    "geglu": lambda x, y: call("gelu", x) * y,
    "reglu": lambda x, y: call("relu", x) * y,
}


def function(name: str) -> Formula:
    """The formula of a function of numbers: in the dtype of its arrays."""

    def formula(**given: Any) -> Any:
        arrays = [
            np.asarray(x)
            for n, x in given.items()
            if isinstance(x, np.ndarray | np.generic) and n != "condition"
        ]
        dtype = arrays[0].dtype
        wide = dtype if dtype.kind in "biu" else np.dtype(np.float64)
        kinds = {n: np.dtype(bool) if n == "condition" else wide for n in given}
        own = [np.asarray(x).astype(kinds[n]) for n, x in given.items()]
        if name in _COMPARED:
            return getattr(np, _COMPARED[name])(*own)
        if name == "where":
            return np.where(*own).astype(dtype)
        if dtype.kind in "biu":
            return _INTEGER[name](*own)
        p = working(dtype)
        if name in _EXACT:
            return Num(_EXACT[name](*own), 0.0, p)
        values = [Num(x, 0.0, p) for x in own]
        if name in _ARITHMETIC:
            return _ARITHMETIC[name](*values)
        if name == "pow":
            x, y = np.broadcast_arrays(*own)
            return Num(x, 0.0, p).apply(lambda v: np.power(v, y), ULPS["pow"])
        return call(name, values[0])

    return formula


FORMULAS: dict[str, Formula] = {
    **{name: reduction(name) for name in REDUCE},
    **{"softmax": softmax, "log_softmax": partial(softmax, log=True), "logsumexp": logsumexp},
    **{"linear": linear, "linear_dgrad": dgrad, "linear_wgrad": wgrad, "matmul": matmul},
    **{"grouped_linear": grouped, "grouped_linear_wgrad": grouped_wgrad},
    **{"solve_triangular": triangular, "cumsum": cumsum, "logcumsumexp": logcumsumexp},
    "fft_block": fft_block,
    **{"rms_norm": rms_norm, "layer_norm": layer_norm, "group_norm": group_norm},
    **{"batch_norm": batch_norm, "batch_norm_train": batch_norm_train},
    **{"layer_norm2d": layer_norm2d, "rms_norm_wgrad": rms_norm_wgrad},
    **{"layer_norm_wgrad": layer_norm_wgrad, "cross_entropy": cross_entropy},
    "linear_cross_entropy": linear_cross_entropy,
    "linear_cross_entropy_grad": linear_cross_entropy_grad,
    **{"moe_dispatch": moe_dispatch, "moe_combine": moe_combine, "moe_router": moe_router},
    **{"embedding": embedding, "embedding_backward": embedding_backward, "gather": gather},
    **{"index_add": index_add, "scatter_add": scatter_add, "roll": roll, "topk": topk},
    **{"sort": sort, "argsort": argsort, "searchsorted": searchsorted},
    **{"bincount": bincount, "unique": unique},
    **{"dropout": dropout, "sample": sample, "umap_knn": umap_knn, "conv": conv},
    "token_logprobs": token_logprobs,
    **{"conv_dgrad": conv_dgrad, "conv_wgrad": conv_wgrad, "conv_transpose": conv_transpose},
    **{"max_pool": max_pool, "avg_pool": avg_pool, "adaptive_max_pool": adaptive_max_pool},
    **{"min_pool": min_pool, "sum_pool": sum_pool, "prod_pool": prod_pool},
    **{"im2col": im2col, "col2im": col2im},
    **{"adaptive_avg_pool": adaptive_avg_pool, "resize": resize},
    **{"resize_nearest_2x": resize_nearest_2x, "linear_recurrence": linear_recurrence},
    **{"selective_scan": selective_scan, "gated_delta_rule": gated_delta_rule, "ssd": ssd},
    **{"attention": attention, "attention_grad": attention_grad, "int4.gemm": int4_gemm},
    **{"int4.pack": int4_pack, "int4.unpack": int4_unpack, "quantized.linear": quantized_linear},
    **{"quantized.linear_dgrad": quantized_linear_dgrad, "quantized.quantize": quantize},
    **{"quantized.embedding": quantized_embedding},
    **{"quantized.grouped_linear": quantized_grouped_linear},
    **{"quantized.dequantize": dequantize, "layout.narrow": narrow, "layout.rope": rope},
    **{"layout.transpose": transpose, "layout.expand": expand, "layout.split_qkv": split_qkv},
    **{"layout.contiguous": lambda x: np.array(x), "layout.concat": concat, "layout.pad": pad},
    "functions.cast": cast,
}


def formula(name: str) -> Formula:
    """The formula of an operation by its name."""
    room, _, own = name.rpartition(".")
    return (
        FORMULAS[name]
        if name in FORMULAS
        else function(own)
        if room == "functions"
        else FORMULAS[name]
    )


def has(name: str) -> bool:
    """Whether there is a formula of an operation."""
    room, _, own = name.rpartition(".")
    known = {*_COMPARED, *_INTEGER, *_EXACT, *_ARITHMETIC, *FUNCTIONS, "where", "pow"}
    return name in FORMULAS or (room == "functions" and own in known)


def judge(name: str, given: dict[str, Any], got: Any) -> str:
    """Fault of the results of a call by its formula; empty if there is none."""
    with np.errstate(all="ignore"):
        expected = formula(name)(**given)
        many = expected if isinstance(expected, tuple) else (expected,)
        results = got if isinstance(got, tuple) else (got,)
        order = range(len(many))[:: -1 if name in ("moe_router", "umap_knn") else 1]
        for i in order:
            mine, of = results[i], many[i]
            if of is None or mine is None:
                continue
            found = _fault(mine, of)
            if found:
                return f"result {i}: {found}"
    return ""


def _fault(mine: Any, of: Any) -> str:
    mine = np.asarray(mine)
    if callable(of):
        return str(of(mine))
    if isinstance(of, Num):
        return fault(mine, of.rounded(mine.dtype))
    of = np.asarray(of)
    wide = np.float64 if of.dtype.kind not in "biuOSUMV" else of.dtype
    if mine.shape != of.shape:
        return f"f64: shape {list(mine.shape)}, where the formula has {list(of.shape)}"
    a, b = mine.astype(wide), of.astype(wide)
    same = (a == b) | ((a != a) & (b != b))
    return "" if same.all() else f"f64: {int((~same).sum())} of {same.size} differ"
