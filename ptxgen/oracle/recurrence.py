"""Oracles of contracts ``selective_scan/1`` and ``linear_recurrence/1``, step by step."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ptxgen.errors import DtypeError
from ptxgen.numerics import functions, recurrence
from ptxgen.numerics.dtype import DTYPES
from ptxgen.oracle.f32 import F32, add, fma, mul
from ptxgen.oracle.formula import call, stored, widened

Array = NDArray[Any]


def _wide(name: str, x: ArrayLike, takes: tuple[str, ...] = recurrence.DTYPES) -> F32:
    array = np.asarray(x)
    if array.dtype.name not in takes:
        raise DtypeError(f"{name} has dtype {array.dtype.name}; takes {' or '.join(takes)}")
    return widened(array, DTYPES[array.dtype.name])


def _initial_state(state: ArrayLike | None, shape: tuple[int, ...]) -> F32:
    return np.zeros(shape, np.float32) if state is None else _wide("state", state, ("float32",))


def _tree(x: Array, axis: int, leaves: int) -> F32:
    """Sums ``x`` along ``axis`` as a binary tree of neighbouring pairs.

    ``leaves``: at least the length of the axis, which zeros pad to the next power of two from
    ``leaves`` on.
    """
    x = np.moveaxis(x, axis, -1)
    size = 1 << max(leaves - 1, 0).bit_length()
    x = np.concatenate([x, np.zeros((*x.shape[:-1], size - x.shape[-1]), np.float32)], -1)
    while x.shape[-1] > 1:
        x = add(x[..., ::2], x[..., 1::2])
    return x[..., 0]


def _over_states(a: Array, b: Array) -> F32:
    """Sum of ``a * b`` over states, the last dimension: fma chains of ``recurrence.LEAF`` states,
    which are added as a binary tree.
    """
    a, b = np.broadcast_arrays(a, b)
    leaf, n = recurrence.LEAF, a.shape[-1]
    sums = []
    for begin in range(0, n, leaf):
        q = np.zeros(a.shape[:-1], np.float32)
        for i in range(begin, min(begin + leaf, n)):
            q = fma(a[..., i], b[..., i], q)
        sums.append(q)
    return add(_tree(np.stack(sums, -1), -1, len(sums)), np.float32(0))


def _step_sizes(delta: ArrayLike, bias: ArrayLike | None, softplus: bool) -> F32:
    d = _wide("delta", delta)
    if bias is not None:
        d = add(d, _wide("delta_bias", bias, ("float32",)))
    return call(functions.softplus, d) if softplus else d


def selective_scan(
    x: ArrayLike,
    delta: ArrayLike,
    A: ArrayLike,
    B: ArrayLike,
    C: ArrayLike,
    D: ArrayLike | None = None,
    z: ArrayLike | None = None,
    delta_bias: ArrayLike | None = None,
    state: ArrayLike | None = None,
    *,
    softplus: bool = False,
    return_state: bool = False,
) -> Any:
    """Selective scan (Mamba), with the arguments and bits of :func:`ptxgen.selective_scan`."""
    found, h, _ = _selective(x, delta, A, B, C, D, delta_bias, state, softplus)
    if z is not None:
        found = call(recurrence.gated, found, _wide("z", z))
    y = stored(found, DTYPES[np.asarray(x).dtype.name])
    return (y, h) if return_state else y


def _selective(
    x: ArrayLike,
    delta: ArrayLike,
    A: ArrayLike,
    B: ArrayLike,
    C: ArrayLike,
    D: ArrayLike | None,
    delta_bias: ArrayLike | None,
    state: ArrayLike | None,
    softplus: bool,
) -> tuple[F32, F32, list[F32]]:
    """Runs a selective scan in f32: returns the results before the gate ``z`` is applied, the last
    state, and a list of the states before each token.
    """
    wide, b, c = (_wide(n, v) for n, v in (("x", x), ("B", B), ("C", C)))
    a = _wide("A", A, ("float32",))
    d = _step_sizes(delta, delta_bias, softplus)
    (batch, tokens, channels), states = wide.shape, a.shape[1]
    u, rate = mul(d, wide), call(recurrence.rate, a)
    h, y, before = _initial_state(state, (batch, channels, states)), np.zeros_like(wide), []
    for t in range(tokens):
        before.append(h)
        w = call(recurrence.decay, d[:, t, :, None], rate[None])
        h = fma(w, h, mul(u[:, t, :, None], b[:, t, None]))
        y[:, t] = _over_states(c[:, t, None], h)
    if D is not None:
        y = fma(_wide("D", D, ("float32",)), wide, y)
    return y, h, before


def selective_scan_kept(
    x: ArrayLike,
    delta: ArrayLike,
    A: ArrayLike,
    B: ArrayLike,
    C: ArrayLike,
    D: ArrayLike | None = None,
    delta_bias: ArrayLike | None = None,
    state: ArrayLike | None = None,
    *,
    softplus: bool = False,
    gated: bool = False,
) -> Any:
    """Returns the states that a selective scan's backward pass reads: those before the first token
    of each tile (``recurrence.tile``), [batch, tiles, channels, states].

    ``gated``: whether to return the results before the gate, too, in f32 and first. The other
    arguments are those of :func:`ptxgen.selective_scan`.
    """
    y, last, before = _selective(x, delta, A, B, C, D, delta_bias, state, softplus)
    each = before[:: recurrence.tile(last.shape[-1])]
    kept = np.stack(each, 1)
    return (y, kept) if gated else kept


def selective_scan_backward(
    dy: ArrayLike,
    kept: ArrayLike,
    x: ArrayLike,
    delta: ArrayLike,
    A: ArrayLike,
    B: ArrayLike,
    C: ArrayLike,
    D: ArrayLike | None = None,
    delta_bias: ArrayLike | None = None,
    dlast: ArrayLike | None = None,
    *,
    softplus: bool = False,
) -> tuple[Array, ...]:
    """Backward pass of a selective scan, by contract ``selective_scan/1``.

    ``dy``: gradient by the results before the gate; ``kept``: result of
    :func:`selective_scan_kept`; ``dlast``: gradient by the last state, by default zeros. Returns
    ``dx``, and in f32 ``dd`` (gradient by the step size d), ``dA`` per sequence, ``dB`` and ``dC``
    per block of channels, and the gradient by the first state.
    """
    begin = np.asarray(kept)[:, 0]
    _, last, before = _selective(x, delta, A, B, C, D, delta_bias, begin, softplus)
    wide, b, c, g_y = (_wide(n, v) for n, v in (("x", x), ("B", B), ("C", C), ("dy", dy)))
    a, d = _wide("A", A, ("float32",)), _step_sizes(delta, delta_bias, softplus)
    (batch, tokens, channels), states = wide.shape, a.shape[1]
    u, rate = mul(d, wide), call(recurrence.rate, a)
    k, da = _initial_state(dlast, last.shape), np.zeros(last.shape, np.float32)
    du, e = np.zeros_like(wide), np.zeros_like(wide)
    size = recurrence.block(states)
    parts = np.zeros((2, -(-channels // size), batch, tokens, states), np.float32)
    after = [*before[1:], last]
    for t in reversed(range(tokens)):
        now, dy_t = d[:, t, :, None], g_y[:, t, :, None]
        w = call(recurrence.decay, now, rate[None])
        g = fma(dy_t, c[:, t, None], k)
        s = mul(mul(g, before[t]), w)
        du[:, t], e[:, t] = _over_states(g, b[:, t, None]), _over_states(s, a[None])
        da, k = fma(s, now, da), mul(g, w)
        for i, each in enumerate((mul(g, u[:, t, :, None]), mul(dy_t, after[t]))):
            for j in range(parts.shape[1]):
                parts[i, j, :, t] = _tree(each[:, j * size : (j + 1) * size], 1, size)
    dx = mul(du, d)
    if D is not None:
        dx = fma(_wide("D", D, ("float32",)), g_y, dx)
    dtype = DTYPES[np.asarray(x).dtype.name]
    return stored(dx, dtype), fma(du, wide, e), da, parts[0], parts[1], k


def linear_recurrence(
    a: ArrayLike,
    b: ArrayLike,
    state: ArrayLike | None = None,
    *,
    return_state: bool = False,
    out_dtype: Any = None,
) -> Any:
    """``h = a * h + b`` token by token, with the arguments and bits of
    :func:`ptxgen.linear_recurrence`.
    """
    factors, terms = _wide("a", a), _wide("b", b)
    h = _initial_state(state, factors.shape[::2])
    y = np.zeros_like(factors)
    for t in range(factors.shape[1]):
        h = y[:, t] = fma(factors[:, t], h, terms[:, t])
    wanted = DTYPES[np.asarray(a).dtype.name if out_dtype is None else np.dtype(out_dtype).name]
    return (stored(y, wanted), h) if return_state else stored(y, wanted)


def linear_recurrence_backward(
    dy: ArrayLike,
    a: ArrayLike,
    h: ArrayLike,
    state: ArrayLike | None = None,
    dlast: ArrayLike | None = None,
) -> tuple[Array, ...]:
    """Backward pass of a linear recurrence: returns ``da`` and ``db`` in the dtype of ``a``, and
    the gradient by the first state in f32.

    ``dy``: gradient by the results ``h``; ``state``: the first state; ``dlast``: gradient by the
    last state. Both are zeros by default.
    """
    factors, given, states = (_wide(n, v) for n, v in (("a", a), ("dy", dy), ("h", h)))
    begin = _initial_state(state, factors.shape[::2])
    k = _initial_state(dlast, factors.shape[::2])
    da, db = np.zeros_like(factors), np.zeros_like(factors)
    for t in reversed(range(factors.shape[1])):
        g = add(given[:, t], k)
        da[:, t], db[:, t] = mul(g, states[:, t - 1] if t else begin), g
        k = mul(factors[:, t], g)
    dtype = DTYPES[np.asarray(a).dtype.name]
    return stored(da, dtype), stored(db, dtype), k
