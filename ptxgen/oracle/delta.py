"""The oracles of recurrences of a matrix: contracts ``delta/1`` and ``delta_grad/1``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxgen.numerics.delta import CHAINS, GROUP, PART, QUAD, groups, parts
from ptxgen.numerics.dtype import NAMES
from ptxgen.numerics.functions import exp
from ptxgen.oracle.f32 import F32, add, fma, mul
from ptxgen.oracle.formula import call, stored, widened

Array = NDArray[Any]


def recurrence(
    q: Array,
    k: Array,
    v: Array,
    g: Array,
    beta: Array,
    *,
    skip: Array | None = None,
    state: Array | None = None,
    scale: float = 1.0,
    delta: bool = True,
    return_state: bool = True,
    return_writes: bool = False,
) -> Any:
    """The results, the last state and the writes of ``recurrence``, with its bits."""
    of = Walk(q, k, v, g, beta, state, delta)
    out, w = np.empty(of.v.shape, np.float32), np.empty(of.v.shape, np.float32)
    for t in range(of.tokens):
        of.step(t)
        w[:, t] = of.w
        o = mul(np.float32(scale), of.answer(of.q[:, t]))
        out[:, t] = o if skip is None else fma(np.asarray(skip)[:, None], of.v[:, t], o)
    y = stored(out, NAMES[v.dtype.name]).reshape(v.shape)
    found = [y, *([of.last()] if return_state else []), *([w.reshape(v.shape)] * return_writes)]
    return tuple(found) if len(found) > 1 else y


def descend(
    do: Array,
    q: Array,
    k: Array,
    w: Array,
    g: Array,
    beta: Array,
    *,
    dstate: Array | None = None,
    scale: float = 1.0,
    delta: bool = True,
) -> tuple[Array, Array, Array]:
    """The results of ``delta_descend``: the first walk of ``delta_grad``."""
    of = Walk(q, k, do, g, beta, dstate, delta)
    ws, e = wide(w).reshape(of.v.shape), mul(np.float32(scale), of.v)
    dd, dk = np.empty(of.v.shape, np.float32), []
    for t in reversed(range(of.tokens)):
        of.state = fma(of.q[:, t, :, :, None], e[:, t, :, None], of.state)
        dd[:, t] = over_rows(of.k[:, t], of.state)
        dw = mul(of.beta[:, t], dd[:, t])
        dk.append(over_columns(mul(of.beta[:, t], ws[:, t]), of.state))
        if delta:
            of.state = fma(-of.k[:, t, :, :, None], dw[:, :, None], of.state)
        of.state = mul(call(exp, of.g[:, t])[..., None], of.state)
    return dd.reshape(do.shape), of.parts(dk[::-1]), of.last()


def ascend(
    do: Array,
    k: Array,
    w: Array,
    g: Array,
    beta: Array,
    dd: Array | None = None,
    *,
    state: Array | None = None,
    scale: float = 1.0,
) -> Any:
    """The results of ``delta_ascend``: the second walk of ``delta_grad``."""
    of = Walk(k, k, w, g, beta, state, dd is not None)
    e, dq, dk = mul(np.float32(scale), wide(do).reshape(of.v.shape)), [], []
    for t in range(of.tokens):
        of.step(t, of.v[:, t])
        dq.append(over_columns(e[:, t], of.state))
        if dd is not None:
            dw = mul(of.beta[:, t], wide(dd).reshape(of.v.shape)[:, t])
            dk.append(over_columns(-dw, of.before))
    return of.parts(dq) if dd is None else (of.parts(dq), of.parts(dk))


class Walk:
    """A state [batch, heads, rows, columns] that is updated token by token."""

    def __init__(
        self,
        q: Array,
        k: Array,
        v: Array,
        g: Array,
        beta: Array,
        state: Array | None,
        delta: bool,
    ) -> None:
        *lead, self.tokens, heads, columns = v.shape
        self.lead, self.rows, self.delta = tuple(lead), q.shape[-1], delta
        seqs, filled = int(np.prod(lead)), groups(self.rows) * GROUP
        self.v = wide(v).reshape(seqs, self.tokens, heads, columns)
        self.q, self.k = (self._keys(x, seqs, heads, filled) for x in (q, k))
        self.g, self.beta = (wide(x).reshape(seqs, self.tokens, heads, 1) for x in (g, beta))
        self.state = np.zeros((seqs, heads, filled, columns), np.float32)
        if state is not None:
            given = np.asarray(state, np.float32)
            given = given if delta else given.swapaxes(-1, -2)
            self.state[:, :, : self.rows] = given.reshape(seqs, heads, self.rows, columns)

    def _keys(self, x: Array, seqs: int, heads: int, filled: int) -> F32:
        """Keys (or queries) for each head of values, their rows padded with zeros."""
        shared = x.shape[-2]
        found = np.zeros((seqs, self.tokens, shared, filled), np.float32)
        found[..., : self.rows] = wide(x).reshape(seqs, self.tokens, shared, self.rows)
        return np.repeat(found, heads // max(shared, 1), axis=2)

    def step(self, t: int, w: F32 | None = None) -> None:
        """Advances the state over token ``t``. ``w``: the value written, if it is known."""
        self.a = call(exp, self.g[:, t])
        self.w = self.v[:, t] if w is None else w
        if self.delta and w is None:
            self.w = fma(-self.a, self.answer(self.k[:, t]), self.v[:, t])
        self.d = mul(self.beta[:, t], self.w)
        self.before = mul(self.a[..., None], self.state)
        self.state = fma(self.k[:, t, :, :, None], self.d[:, :, None], self.before)

    def answer(self, x: F32) -> F32:
        """The state read by ``x``: ``sum_n x[n] S[n, p]``."""
        return over_rows(x, self.state)

    def last(self) -> Array:
        """The state as it is returned."""
        found = self.state[:, :, : self.rows]
        found = found if self.delta else found.swapaxes(-1, -2)
        return np.ascontiguousarray(found.reshape(*self.lead, *found.shape[1:]))

    def parts(self, found: list[Array]) -> Array:
        """Stacks the tokens' parts as they are returned: [..., tokens, heads, parts, rows]."""
        heads, count = self.v.shape[2], parts(self.v.shape[3])
        shape = (*self.lead, self.tokens, heads, count, self.rows)
        if not found:
            return np.empty(shape, np.float32)
        return np.ascontiguousarray(np.stack(found, 1)[..., : self.rows].reshape(shape))


def over_columns(x: F32, state: F32) -> F32:
    """Parts of ``sum_p x[p] S[n, p]``: x [..., columns] and S [..., rows, columns] to
    [..., parts, rows].
    """
    *lead, rows, columns = state.shape
    count, more = parts(columns), -columns % PART
    each = np.pad(state, [*[(0, 0)] * (state.ndim - 1), (0, more)])
    by = np.pad(x, [*[(0, 0)] * (x.ndim - 1), (0, more)])
    each = each.reshape(*lead, rows, count, PART // QUAD, QUAD)
    by = by.reshape(*lead, 1, count, PART // QUAD, QUAD)
    sums = np.zeros(each.shape[:-1], np.float32)
    for i in range(QUAD):
        sums = fma(by[..., i], each[..., i], sums)
    return np.moveaxis(by_twos(sums[..., None])[..., 0], -1, -2)


def over_rows(x: F32, state: F32) -> F32:
    """``sum_n x[n] S[n, p]``, x [..., rows] and S [..., rows, columns], in the contract's order."""
    *lead, rows, columns = state.shape
    each = state.reshape(*lead, rows // GROUP, GROUP // CHAINS, CHAINS, columns)
    by = x.reshape(*lead, rows // GROUP, GROUP // CHAINS, CHAINS, 1)
    chain = np.zeros((*lead, rows // GROUP, CHAINS, columns), np.float32)
    for i in range(GROUP // CHAINS):
        chain = fma(by[..., i, :, :], each[..., i, :, :], chain)
    return by_twos(by_twos(chain))


def by_twos(x: F32) -> F32:
    """Sums along the dimension before the last, as a tree of neighbouring pairs."""
    while x.shape[-2] > 1:
        x = add(x[..., ::2, :], x[..., 1::2, :])
    return x[..., 0, :]


def wide(x: Array) -> F32:
    """``x`` in f32, exactly."""
    array = np.asarray(x)
    return np.asarray(widened(array, NAMES[array.dtype.name]), np.float32)
