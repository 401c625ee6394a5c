"""Prefix sums of rows, and of exponentials: contracts and signatures of cumsum and logcumsumexp.

The ``scan`` contract, version 1
--------------------------------
For a row ``x`` of N elements, in their compute type (f32; f64 for f64; integers wrap), each
addition rounded once:

1. The row is split into chunks of :data:`CHUNK` elements, ascending; zeros pad the last. Lane ``l``
   of a chunk adds GROUP elements from ``l * GROUP`` on: ``p[0] = x[0]``, ``p[q] = p[q-1] + x[q]``.
2. ``t[l]``, at first the lane's last p, becomes ``t[l-o] + t[l]`` for l >= o, in all lanes in
   parallel, for o = 1, 2, 4, 8 and 16. ``e[l]`` is ``t[l-1]``, and +0.0 for the first lane.
3. ``carry`` is +0.0 for the first chunk; each chunk passes on ``carry + t[31]``.
4. The result is ``carry + (e[l] + p[q])``; that of an exclusive sum ``carry + (e[l] + p[q-1])``,
   with ``p[-1] = +0.0``. It is rounded once more to its dtype.

A reverse sum is the sum of the reversed row, reversed. So a row's bits depend on that row alone.

The ``logscan`` contract, version 1
-----------------------------------
Logarithms of prefix sums of exponentials follow the steps of ``scan``, with pairs in f32 (f64 for
f64) in place of scalars:

1. A pair ``(m, s)`` stands for a part of a row: its largest element, and the sum of
   ``exp(x - m)``. An element is ``(x, 1)``; ``(-inf, +0.0)`` is the zero of the scan.
2. ``a + b`` has the larger m, NaN if either is NaN, and ``fma(s', decay(-|a.m - b.m|), s)``: s of
   the part with the larger m (the first if equal), s' of the other. The difference of equal m's,
   infinite ones too, is 0. ``decay`` is that of :mod:`ptxgen.numerics.row_reductions`.
3. ``(carry + e[l]) + p[q]`` (or ``p[q-1]``) is the pair of a result, ``log(s) + m``, rounded once
   more to its dtype, with ``log`` of :mod:`ptxgen.numerics.functions` for normal arguments.

Sums are scaled only by the largest element so far, so a larger one later in the row loses no
precision before it. From a NaN on results are NaN, from +inf on +inf; leading -inf give -inf.
"""

from __future__ import annotations

from functools import cache

from ptxgen.numerics.contract import Contract
from ptxgen.numerics.formula import Formula, Function, Node, Output, fma, read, where
from ptxgen.numerics.functions import log_normal
from ptxgen.numerics.row_reductions import decay
from ptxgen.numerics.signature import Signature

SCAN = Contract(
    "scan", 1, "chunks of 256: 8 in a lane, lanes by doubling; carried ascending", "simt"
)
LOGSCAN = Contract(
    "logscan",
    1,
    "scan/1 of (m, s): the larger m, and fma(s', decay(m' - m), s); log(s) + m",
    "simt",
)
LANES = 32
GROUP = 8
"""Number of neighbouring elements of a chunk that the same lane of a warp adds."""
CHUNK = LANES * GROUP
CUMSUM = Signature(
    "cumsum",
    ("x",),
    ("out",),
    {"": {"x": "... N", "out": "... N"}},
    ("M", "N"),
    over={"out": ("x",)},
)
LOGCUMSUMEXP = Signature(
    "logcumsumexp",
    ("x",),
    ("out",),
    {"": {"x": "... N", "out": "... N"}},
    ("M", "N"),
    over={"out": ("x",)},
)


def _combined(m: Node, s: Node, other: Node, share: Node) -> Node:
    """Returns the sum of exponentials of two joined parts of a row, relative to the larger maximum.

    ``m``, ``s``: maximum of the first part, and its sum of ``exp(x - m)``; ``other``, ``share``:
    those of the second part.
    """
    other_larger = m < other
    distance = where(m == other, 0, -abs(m - other))
    return fma(where(other_larger, s, share), decay(distance), where(other_larger, share, s))


def _value(m: Node, s: Node) -> Node:
    """Returns ``log(s) + m``, the logarithm of a sum of exponentials, from the maximum m and the
    sum ``s`` of ``exp(x - m)``.
    """
    return log_normal(s) + m


joined = Function("joined", _combined, 4, types=("f32", "f64"))
value = Function("joined_value", _value, 2, types=("f32", "f64"))


@cache
def formula(wide: str) -> Formula:
    """Returns a formula that calls every function that ``logscan``'s kernels need, in type
    ``wide``; the device functions in their source are generated from it.
    """
    m, s, other, share = (read(name, wide, "scalar") for name in ("m", "s", "other", "share"))
    found = joined(m, s, other, share), value(m, s)
    return Formula(tuple(Output(f"y{i}", wide, node) for i, node in enumerate(found)))
