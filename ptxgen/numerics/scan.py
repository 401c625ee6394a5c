"""Prefix sums of rows: the contract, and the signature of ``cumsum``.

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
"""

from __future__ import annotations

from ptxgen.numerics.contract import Contract
from ptxgen.numerics.signature import Signature

SCAN = Contract(
    "scan", 1, "chunks of 256: 8 in a lane, lanes by doubling; carried ascending", "simt"
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
