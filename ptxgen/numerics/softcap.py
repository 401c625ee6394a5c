"""The softcap of contract ``flce/3``: ``c * tanh(z / c)``, with a fast path for small arguments.

Logits are mostly well below the cap, where a polynomial gives tanh in a third of the operations.
Where a run of logits are all small, kernels evaluate only the polynomial; the bits are the same.
"""

from __future__ import annotations

from ptxgen.numerics import functions
from ptxgen.numerics.formula import Function, Node, fma, where

NEAR = 0.75
"""Magnitude of x below which ``tanh(x)`` is computed by the polynomial :data:`TANH`."""
_hex = float.fromhex
TANH: tuple[float, ...] = (
    _hex("-0x1.5554aep-2"),
    _hex("0x1.10ee8ap-3"),
    _hex("-0x1.b57628p-5"),
    _hex("0x1.42889ep-6"),
    _hex("-0x1.398302p-8"),
)
"""Ascending coefficients of ``(tanh(x) / x - 1) / x**2`` in ``x**2``, 0 <= x <= NEAR. tanh has a
relative error of 2**-24.8 (``tools/fit_functions.py``)."""


def _near_tanh(x: Node) -> Node:
    square = x * x
    return fma(functions._horner(square, TANH) * square, x, x)


near_tanh = Function("near_tanh", _near_tanh, 1)
"""``tanh(x)`` for |x| < NEAR, by the polynomial :data:`TANH`."""


def _tanh(x: Node) -> Node:
    return where(functions.absolute(x) < NEAR, near_tanh(x), functions.tanh(x))


tanh = Function("capped_tanh", _tanh, 1)
"""``tanh(x)`` for any x, as softcaps use it: :data:`near_tanh` for |x| < NEAR, else the general
function."""


def capped(x: Node, softcap: Node | None, near: bool = False) -> tuple[Node, Node | None]:
    """Returns ``softcap * tanh(x / softcap)`` and its derivative by x; without a softcap, x and
    None.

    ``near``: whether all ``|x / softcap|`` are known to be below NEAR, so that a shorter formula
    has the same bits.
    """
    if softcap is None:
        return x, None
    u = x * (1 / softcap)
    t = functions.tanh(u) if x.type == "f64" else near_tanh(u) if near else _tanh(u)
    return softcap * t, 1 - t * t
