"""Linear recurrences along a sequence: contracts, signatures, and functions of them.

A state is carried from token to token in f32 and never rounded otherwise. So what a token gives
does not depend on how its sequence was cut into calls: a call that begins with the state that
another has left continues it bit for bit, one token at a time or all at once.

The ``selective_scan`` contract, version 1
------------------------------------------
Of a channel with N states ``h`` (f32, zeros unless given), token by token; every operation is one
of f32 and rounds once:

1. ``d = delta``; ``d = d + bias`` if there is one; ``d = softplus(d)`` if asked for.
   ``u = d * x``. ``rate[n] = A[n] * log2(e)``.
2. ``h[n] = fma(decay(d, rate[n]), h[n], u * B[n])``. ``decay`` is ``2**v`` by :data:`EXP2`, of
   ``v = d * rate[n]``, at least -126 and at most 127.
3. States are taken in leaves of :data:`LEAF`: ``q = fma(C[n], h[n], q)`` from +0.0, n ascending.
   Leaves are added in pairs of neighbours, the sums so again, as a tree; +0.0 fills it up. Then
   ``y = q + 0.0``.
4. ``y = fma(D, x, y)`` if there is a D; ``y = y * silu(z)`` if there is a z. It is rounded once
   more to its dtype.

Gradients, from the last token to the first; ``dy`` is that by the y of step 3, in f32, ``h'`` the
state before a token, and ``k`` what comes from behind (zeros, or the gradient by the last state):

5. ``g = fma(dy, C[n], k)``; ``s = g * h'[n] * w``, ``w`` being the decay; ``k = g * w``, which at
   the end is the gradient by the first state.
6. ``du`` is the sum of ``g * B[n]``, ``e`` that of ``s * A[n]``, both as in step 3.
   ``dx = du * d``, and ``fma(D, dy, dx)`` if there is a D; ``dd = fma(du, x, e)``.
7. ``dA[n] = fma(s, d, dA[n])`` from +0.0, tokens descending; then the batch is added by ``rows/1``.
8. ``dB[n]`` and ``dC[n]`` are sums of ``g * u`` and ``dy * h[n]`` over channels: of blocks of
   :func:`block` channels, as a tree of neighbours (zeros fill the last block), and over blocks by
   ``rows/1``.

The ``linear_recurrence`` contract, version 1
---------------------------------------------
``h = fma(a, h, b)`` in f32, token by token; each is rounded once to its dtype. Gradients, from the
last token to the first, with ``k`` as above: ``g = dy + k``, ``db = g``, ``da = g * h'``,
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
"""States that are added one after the other."""
STATES_MAX = 256
"""Most states of a channel."""
DTYPES = ("float32", "bfloat16", "float16")


def block(states: int) -> int:
    """Channels whose parts of dB and dC are added as a tree."""
    return 32 if states <= 16 else 8 if states <= 64 else 4


def tile(states: int) -> int:
    """Tokens between two states that are kept for gradients; the number changes no bit."""
    return 16 if states <= 64 else 8


def _decay(d: Node, rate: Node) -> Node:
    """``2**(d * rate)``, the exponent from -126 to 127: no factor is subnormal."""
    v = clamp(d * rate, 1 - F32.bias, F32.bias)
    rounded = v + (F32.rounder + F32.bias)
    r = v - (rounded - (F32.rounder + F32.bias))
    return fma(_horner(r, EXP2), r, 1) * from_bits(bits(rounded) << F32.places)


def _rate(a: Node) -> Node:
    """The exponent of base 2 by which a state decays in a time of 1."""
    return a * F32.log2_e[0]


def _gated(y: Node, z: Node) -> Node:
    """``y * silu(z)``."""
    return y * silu(z)


decay, rate = Function("decay", _decay, 2), Function("rate", _rate, 1)
gated = Function("gated", _gated, 2)


@cache
def formula() -> Formula:
    """All functions that kernels of ``selective_scan`` call."""
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
