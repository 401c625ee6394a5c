"""Oracles of recurrences with a matrix state: contracts ``delta/1`` and ``delta_grad/1``."""

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
    """Oracle of operation ``recurrence``: runs contract ``delta/1`` from the first token to the
    last.

    ``q``, ``k``: [..., tokens, key heads, rows]; ``v``: [..., tokens, heads, columns]; ``g``
    (logarithm of the decay), ``beta``: [..., tokens, heads]; ``skip``: [heads]; ``state``: the
    first state, by default zeros; ``delta``: whether the delta rule is applied. Returns ``o``, then
    the last state if ``return_state``, then if ``return_writes`` the value ``w`` that each token
    writes to the state (before the factor ``beta``).
    """
    scan = StateScan(q, k, v, g, beta, state, delta)
    out, w = np.empty(scan.v.shape, np.float32), np.empty(scan.v.shape, np.float32)
    for t in range(scan.tokens):
        scan.step(t)
        w[:, t] = scan.w
        o = mul(np.float32(scale), scan.read_state(scan.q[:, t]))
        out[:, t] = o if skip is None else fma(np.asarray(skip)[:, None], scan.v[:, t], o)
    y = stored(out, NAMES[v.dtype.name]).reshape(v.shape)
    found = [y, *([scan.last()] if return_state else []), *([w.reshape(v.shape)] * return_writes)]
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
    """Oracle of ``delta_descend``: step 1 of contract ``delta_grad``, from the last token to the
    first.

    ``do``: gradient by the results; ``w``: the value that each token writes, from
    :func:`recurrence`; ``dstate``: gradient by the last state, by default zeros; ``delta``: whether
    the delta rule is applied. Returns ``dd``, the gradient by each token's ``d = beta * w``;
    partial sums of ``dk`` [..., tokens, heads, parts, rows]; and the gradient by the first state.
    """
    scan = StateScan(q, k, do, g, beta, dstate, delta)
    ws, e = wide(w).reshape(scan.v.shape), mul(np.float32(scale), scan.v)
    dd, dk = np.empty(scan.v.shape, np.float32), []
    for t in reversed(range(scan.tokens)):
        scan.state = fma(scan.q[:, t, :, :, None], e[:, t, :, None], scan.state)
        dd[:, t] = over_rows(scan.k[:, t], scan.state)
        dw = mul(scan.beta[:, t], dd[:, t])
        dk.append(over_columns(mul(scan.beta[:, t], ws[:, t]), scan.state))
        if delta:
            scan.state = fma(-scan.k[:, t, :, :, None], dw[:, :, None], scan.state)
        scan.state = mul(call(exp, scan.g[:, t])[..., None], scan.state)
    return dd.reshape(do.shape), scan.parts(dk[::-1]), scan.last()


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
    """Oracle of ``delta_ascend``: step 2 of contract ``delta_grad``, from the first token to the
    last.

    ``do``: gradient by the results; ``w``: the value that each token writes, from
    :func:`recurrence`; ``dd``: first result of :func:`descend`, with the delta rule only;
    ``state``: the first state, by default zeros. Returns partial sums of ``dq`` [..., tokens,
    heads, parts, rows] and, if ``dd`` is given, the second partial sums of ``dk``.
    """
    scan = StateScan(k, k, w, g, beta, state, dd is not None)
    e, dq, dk = mul(np.float32(scale), wide(do).reshape(scan.v.shape)), [], []
    for t in range(scan.tokens):
        scan.step(t, scan.v[:, t])
        dq.append(over_columns(e[:, t], scan.state))
        if dd is not None:
            dw = mul(scan.beta[:, t], wide(dd).reshape(scan.v.shape)[:, t])
            dk.append(over_columns(-dw, scan.before))
    return scan.parts(dq) if dd is None else (scan.parts(dq), scan.parts(dk))


class StateScan:
    """Scan of a recurrence, token by token: holds the ``state`` [sequences, heads, rows, columns]
    in f32, which :meth:`step` updates.

    The arguments are those of :func:`recurrence`. Zeros pad the rows to whole groups,
    :func:`ptxgen.numerics.delta.groups` of them.
    """

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
        """Converts queries or keys ``x`` [..., tokens, key heads, rows] to f32 [``seqs``, tokens,
        ``heads``, ``filled``]: repeats each key head for the value heads that share it, and pads
        the rows with zeros.
        """
        shared = x.shape[-2]
        found = np.zeros((seqs, self.tokens, shared, filled), np.float32)
        found[..., : self.rows] = wide(x).reshape(seqs, self.tokens, shared, self.rows)
        return np.repeat(found, heads // max(shared, 1), axis=2)

    def step(self, t: int, w: F32 | None = None) -> None:
        """Updates the state by token ``t``. Stores, with the names of contract ``delta``, the
        token's decay ``a``, the value ``w`` that it writes and ``d = beta * w``; and the decayed
        state ``a * S`` as ``before``.

        ``w``: the token's ``w`` if it is known; by default it is computed.
        """
        self.a = call(exp, self.g[:, t])
        self.w = self.v[:, t] if w is None else w
        if self.delta and w is None:
            self.w = fma(-self.a, self.read_state(self.k[:, t]), self.v[:, t])
        self.d = mul(self.beta[:, t], self.w)
        self.before = mul(self.a[..., None], self.state)
        self.state = fma(self.k[:, t, :, :, None], self.d[:, :, None], self.before)

    def read_state(self, x: F32) -> F32:
        """Returns the state's product with ``x`` [..., rows]: ``sum_n x[n] S[n, p]``."""
        return over_rows(x, self.state)

    def last(self) -> Array:
        """Returns the state without padding, in the operation's layout: [..., heads, rows, columns]
        with the delta rule, else [..., heads, columns, rows].
        """
        found = self.state[:, :, : self.rows]
        found = found if self.delta else found.swapaxes(-1, -2)
        return np.ascontiguousarray(found.reshape(*self.lead, *found.shape[1:]))

    def parts(self, found: list[Array]) -> Array:
        """Joins ``found``, one array of partial sums over columns for each token, to one array
        [..., tokens, heads, parts, rows], without the rows of the padding.
        """
        heads, count = self.v.shape[2], parts(self.v.shape[3])
        shape = (*self.lead, self.tokens, heads, count, self.rows)
        if not found:
            return np.empty(shape, np.float32)
        return np.ascontiguousarray(np.stack(found, 1)[..., : self.rows].reshape(shape))


def over_columns(x: F32, state: F32) -> F32:
    """Returns partial sums [..., parts, rows] of ``sum_p x[p] S[n, p]``, in the order of contract
    ``delta_grad``, for x [..., columns] and S [..., rows, columns].
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
    """Returns ``sum_n x[n] S[n, p]`` for each column p, in the order of contract ``delta``, for x
    [..., rows] and S [..., rows, columns].
    """
    *lead, rows, columns = state.shape
    each = state.reshape(*lead, rows // GROUP, GROUP // CHAINS, CHAINS, columns)
    by = x.reshape(*lead, rows // GROUP, GROUP // CHAINS, CHAINS, 1)
    chain = np.zeros((*lead, rows // GROUP, CHAINS, columns), np.float32)
    for i in range(GROUP // CHAINS):
        chain = fma(by[..., i, :, :], each[..., i, :, :], chain)
    return by_twos(by_twos(chain))


def by_twos(x: F32) -> F32:
    """Sums along the second-to-last dimension (a power of two), as a tree of neighbouring pairs."""
    while x.shape[-2] > 1:
        x = add(x[..., ::2, :], x[..., 1::2, :])
    return x[..., 0, :]


def wide(x: Array) -> F32:
    """Converts an array of 16-bit floats or f32 to f32, exactly."""
    array = np.asarray(x)
    return np.asarray(widened(array, NAMES[array.dtype.name]), np.float32)
