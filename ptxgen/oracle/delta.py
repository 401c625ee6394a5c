"""The oracles of recurrences of a matrix: contracts ``delta/1`` and ``delta_grad/1``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxgen.numerics.delta import CHAINS, GROUP, groups
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
    initial_state: Array | None = None,
    scale: float = 1.0,
    delta: bool = True,
    return_state: bool = True,
) -> Any:
    """The results and the last state of ``recurrence``, with its bits."""
    of = Walk(q, k, v, g, beta, initial_state, delta)
    out = np.empty(of.v.shape, np.float32)
    for t in range(of.tokens):
        of.step(t)
        o = mul(np.float32(scale), of.answer(of.q[:, t]))
        out[:, t] = o if skip is None else fma(np.asarray(skip)[:, None], of.v[:, t], o)
    found = stored(out, NAMES[v.dtype.name]).reshape(v.shape)
    return (found, of.last()) if return_state else found


class Walk:
    """A state that walks over the tokens of each sequence, [batch, heads, rows, columns]."""

    def __init__(
        self,
        q: Array,
        k: Array,
        v: Array,
        g: Array,
        beta: Array,
        initial_state: Array | None,
        delta: bool,
    ) -> None:
        *lead, self.tokens, heads, columns = v.shape
        self.lead, self.rows, self.delta = tuple(lead), q.shape[-1], delta
        seqs, filled = int(np.prod(lead)), groups(self.rows) * GROUP
        self.v = wide(v).reshape(seqs, self.tokens, heads, columns)
        self.q, self.k = (self._keys(x, seqs, heads, filled) for x in (q, k))
        self.g, self.beta = (wide(x).reshape(seqs, self.tokens, heads, 1) for x in (g, beta))
        self.state = np.zeros((seqs, heads, filled, columns), np.float32)
        if initial_state is not None:
            given = np.asarray(initial_state, np.float32)
            given = given if delta else given.swapaxes(-1, -2)
            self.state[:, :, : self.rows] = given.reshape(seqs, heads, self.rows, columns)

    def _keys(self, x: Array, seqs: int, heads: int, filled: int) -> F32:
        """Of each head of values, filled up with zeros."""
        shared = x.shape[-2]
        found = np.zeros((seqs, self.tokens, shared, filled), np.float32)
        found[..., : self.rows] = wide(x).reshape(seqs, self.tokens, shared, self.rows)
        return np.repeat(found, heads // max(shared, 1), axis=2)

    def step(self, t: int) -> None:
        """The state behind token ``t``; what it was written of."""
        self.a = call(exp, self.g[:, t])
        self.w = self.v[:, t]
        if self.delta:
            self.w = fma(-self.a, self.answer(self.k[:, t]), self.v[:, t])
        self.d = mul(self.beta[:, t], self.w)
        self.before = mul(self.a[..., None], self.state)
        self.state = fma(self.k[:, t, :, :, None], self.d[:, :, None], self.before)

    def answer(self, x: F32) -> F32:
        """``sum_n x[n] S[n, p]``."""
        return over_rows(x, self.state)

    def last(self) -> Array:
        """The state as it is returned."""
        found = self.state[:, :, : self.rows]
        found = found if self.delta else found.swapaxes(-1, -2)
        return np.ascontiguousarray(found.reshape(*self.lead, *found.shape[1:]))


def over_rows(x: F32, state: F32) -> F32:
    """``sum_n x[n] S[n, p]`` of [..., rows] and [..., rows, columns], in the contract's order."""
    *lead, rows, columns = state.shape
    each = state.reshape(*lead, rows // GROUP, GROUP // CHAINS, CHAINS, columns)
    by = x.reshape(*lead, rows // GROUP, GROUP // CHAINS, CHAINS, 1)
    chain = np.zeros((*lead, rows // GROUP, CHAINS, columns), np.float32)
    for i in range(GROUP // CHAINS):
        chain = fma(by[..., i, :, :], each[..., i, :, :], chain)
    return by_twos(by_twos(chain))


def by_twos(x: F32) -> F32:
    """The sums along the dimension before the last: neighbours, then their pairs, and so on."""
    while x.shape[-2] > 1:
        x = add(x[..., ::2, :], x[..., 1::2, :])
    return x[..., 0, :]


def wide(x: Array) -> F32:
    """In f32, exactly."""
    array = np.asarray(x)
    return np.asarray(widened(array, NAMES[array.dtype.name]), np.float32)
