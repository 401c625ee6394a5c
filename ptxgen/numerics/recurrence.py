"""Linear recurrences along a sequence: contracts, signatures, and the functions that kernels call.

A state is carried from token to token in f32, without other roundings. So a token's result does not
depend on how its sequence is split into calls: a call that starts from the last state of another
continues it bit for bit, with one token or many.

The ``selective_scan`` contract, version 1
------------------------------------------
For a channel with N states ``h`` (f32, by default zeros), token by token; every operation is in f32
and rounds once:

1. ``d = delta``; ``d = d + bias`` if there is one; ``d = softplus(d)`` with option ``softplus``.
   ``u = d * x``. ``rate[n] = A[n] * log2(e)``.
2. ``h[n] = fma(decay(d, rate[n]), h[n], u * B[n])``. ``decay`` is ``2**v`` by :data:`EXP2`, where
   ``v = d * rate[n]``, clamped to [-126, 127].
3. The sum over states has leaves of :data:`LEAF` states: ``q = fma(C[n], h[n], q)`` from +0.0, n
   ascending. Leaves are added as a binary tree of neighbours, padded with +0.0. Then
   ``y = q + 0.0``.
4. ``y = fma(D, x, y)`` if there is a D; ``y = y * silu(z)`` if there is a z. It is rounded once
   more to its dtype.

Gradients, from the last token to the first. ``dy`` is the gradient by the y of step 3, in f32;
``h'`` the state before a token; ``k`` the gradient by the state after it that later tokens pass on
(at the last token zeros, or the gradient by the last state):

5. ``g = fma(dy, C[n], k)``; ``s = g * h'[n] * w``, where ``w`` is the decay; ``k = g * w``, which
   after the first token is the gradient by the first state.
6. ``du`` is the sum of ``g * B[n]``, ``e`` that of ``s * A[n]``, both in the order of step 3.
   ``dx = du * d``, and ``fma(D, dy, dx)`` if there is a D; ``dd = fma(du, x, e)``.
7. ``dA[n] = fma(s, d, dA[n])`` from +0.0, tokens descending; then a sum over the batch by
   ``rows/1``.
8. ``dB[n]`` and ``dC[n]`` are sums of ``g * u`` and ``dy * h[n]`` over channels: within blocks of
   :func:`block` channels as a binary tree of neighbours (zeros pad the last block), and over blocks
   by ``rows/1``.

The ``linear_recurrence`` contract, version 1
---------------------------------------------
``h = fma(a, h, b)`` in f32, token by token; each result is rounded once to its dtype. Gradients,
from the last token to the first, with ``k`` as above: ``g = dy + k``, ``db = g``, ``da = g * h'``,
``k = a * g``.
"""

from __future__ import annotations

from functools import cache

from ptxgen.numerics.constants import F32
from ptxgen.numerics.contract import Contract
from ptxgen.numerics.formula import Formula, Function, Node, Output, bits, fma, from_bits, read
from ptxgen.numerics.functions import EXP2, _horner, clamp, silu, softplus
from ptxgen.numerics.signature import Signature

SELECTIVE_SCAN = Contract(
    "selective_scan",
    1,
    "h = fma(decay, h, u * B), token by token; y = a tree of leaves of 4 of C * h",
    "simt",
)
LINEAR_RECURRENCE = Contract("linear_recurrence", 1, "h = fma(a, h, b), token by token", "simt")
LEAF = 4
"""Number of states per leaf of a sum over a channel's states; a leaf is one fma chain."""
STATES_MAX = 256
"""Largest number of states per channel of a selective scan."""
DTYPES = ("float32", "bfloat16", "float16")


def block(states: int) -> int:
    """Number of channels per block in the sums of ``dB`` and ``dC`` over channels, for channels of
    ``states`` states. A block is added as a binary tree.
    """
    return 32 if states <= 16 else 8 if states <= 64 else 4


def tile(states: int) -> int:
    """Interval, in tokens, at which a scan saves states for its backward pass, for channels of
    ``states`` states. Results do not depend on it.
    """
    return 16 if states <= 64 else 8


def _decay(d: Node, rate: Node) -> Node:
    """Factor by which a state decays in a token of step size ``d``: ``2**(d * rate)``, with the
    exponent clamped to [-126, 127] so that the result is normal.

    ``rate``: from :func:`_rate`.
    """
    v = clamp(d * rate, 1 - F32.bias, F32.bias)
    rounded = v + (F32.rounder + F32.bias)
    r = v - (rounded - (F32.rounder + F32.bias))
    return fma(_horner(r, EXP2), r, 1) * from_bits(bits(rounded) << F32.mantissa_bits)


def _rate(a: Node) -> Node:
    """Decay rate in base 2 of a state with the rate ``a``: ``a * log2(e)``, so that
    ``exp(d * a) = 2**(d * rate)`` for a step size d.
    """
    return a * F32.log2_e[0]


def _gated(y: Node, z: Node) -> Node:
    """Gated output of a selective scan, ``y * silu(z)``."""
    return y * silu(z)


decay, rate = Function("decay", _decay, 2), Function("rate", _rate, 1)
gated = Function("gated", _gated, 2)


@cache
def formula() -> Formula:
    """Returns a formula that calls every function that ``selective_scan``'s kernels need; the
    device functions in their source are generated from it.
    """
    x, y = (read(name, "f32", "scalar") for name in "xy")
    found = decay(x, y), rate(x), softplus(x), gated(x, y)
    return Formula(tuple(Output(f"y{i}", "f32", node) for i, node in enumerate(found)))


_TOKENS, _STATE = "B L D", "B D N"
_SCANNED = {
    **{"x": _TOKENS, "delta": _TOKENS, "A": "D N", "B": "B L N", "C": "B L N", "D": "D"},
    **{"z": _TOKENS, "delta_bias": "D", "state": _STATE, "out": _TOKENS, "last": _STATE},
}
SELECTIVE = Signature(
    "selective_scan",
    ("x", "delta", "A", "B", "C", "D", "z", "delta_bias", "state"),
    ("out", "last"),
    {"": _SCANNED},
    ("B", "L", "D", "N"),
    optional=frozenset({"D", "z", "delta_bias", "state"}),
)
LINEAR = Signature(
    "linear_recurrence",
    ("a", "b", "state"),
    ("out", "last"),
    {"": {"a": _TOKENS, "b": _TOKENS, "state": "B D", "out": _TOKENS, "last": "B D"}},
    ("B", "L", "D"),
    optional=frozenset({"state"}),
)
