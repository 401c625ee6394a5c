"""Prefix sums of rows, and those of exponentials: contracts, and signatures.

The ``scan`` contract, version 1
--------------------------------
Of a row ``x`` of N numbers, in the type that is computed in (f32; f64 for f64; integers wrap), each
addition rounded once:

1. The row is cut into chunks of :data:`CHUNK` elements, ascending; zeros fill the last. In a chunk,
   lane ``l`` has the elements from ``l * GROUP`` on: ``p[0] = x[0]``, ``p[q] = p[q-1] + x[q]``.
2. ``t[l]``, at first the lane's last p, becomes ``t[l-o] + t[l]`` for l >= o, in all lanes at once,
   for o = 1, 2, 4, 8 and 16. ``e[l]`` is ``t[l-1]``, and +0.0 for the first lane.
3. ``carry`` is +0.0 at the first chunk, and ``carry + t[31]`` behind each.
4. The result is ``carry + (e[l] + p[q])``; of an exclusive sum ``carry + (e[l] + p[q-1])``, where
   what is before a lane's first element is +0.0. It is rounded once more to its dtype.

A reverse sum is that of the row read backwards. So a row's bits depend on that row alone.

The ``logscan`` contract, version 1
-----------------------------------
The logarithms of prefix sums of exponentials, by the steps of ``scan``, of pairs in f32 (f64 of
f64) in the place of numbers:

1. A part of a row is ``(m, s)``: its largest element, and the sum of ``exp(x - m)``. An element is
   ``(x, 1)``, and nothing is ``(-inf, +0.0)``, where ``scan`` has +0.0.
2. ``a + b`` is the larger m, a NaN if either is one, and of the part with the larger m its s, of
   the other (of equal ones the second) its share: ``fma(s', decay(-|a.m - b.m|), s)``, where equal
   m's, infinite ones too, are 0 apart. ``decay`` is that of :mod:`ptxgen.numerics.row_reductions`.
3. The result is of ``(carry + e[l]) + p[q]`` (or ``p[q-1]``), which is ``log(s) + m``, rounded once
   more to its dtype; ``log`` as :mod:`ptxgen.numerics.functions` has it of normal numbers.

No number is ever brought to another scale than that of the largest one before it, so neither does
a large one behind it matter, nor one far above others. A NaN gives NaN from there on, +inf gives
+inf, and what begins with -inf is that.
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
"""Neighbours that a lane owns."""
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


def _joined(m: Node, s: Node, other: Node, share: Node) -> Node:
    """The sum of two parts of a row, above the larger of their largest elements."""
    later = m < other
    apart = where(m == other, 0, -abs(m - other))
    return fma(where(later, s, share), decay(apart), where(later, share, s))


def _value(m: Node, s: Node) -> Node:
    """The logarithm of the sum of a part of a row, ``log(s) + m``."""
    return log_normal(s) + m


joined = Function("joined", _joined, 4, types=("f32", "f64"))
value = Function("joined_value", _value, 2, types=("f32", "f64"))


@cache
def formula(wide: str) -> Formula:
    """Formula with all functions that kernels of ``logscan`` call, in type ``wide``."""
    m, s, other, share = (read(name, wide, "scalar") for name in ("m", "s", "other", "share"))
    found = joined(m, s, other, share), value(m, s)
    return Formula(tuple(Output(f"y{i}", wide, node) for i, node in enumerate(found)))
