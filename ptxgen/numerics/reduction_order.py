"""Reductions over rows: the order of a row's sum.

The ``rows`` contract, version 1
--------------------------------
Of a row ``x`` of N numbers, in the type that is computed in (f32; f64 for f64; integers wrap), each
addition rounded once:

1. The row is cut into leaves of :data:`LEAF` elements, ascending; the last may be short. In a leaf,
   lane ``j // GROUP % LANES`` adds its elements j, ascending, to +0.0. Then lanes are joined: the
   sums of lanes l and ``l ^ 1`` are added, then of ``l ^ 2``, 4, 8 and 16.
2. :data:`BRANCH` leaves make a branch, ascending; the last may have fewer. A branch's sum begins
   with +0.0, to which those of its leaves are added, ascending.
3. The total begins with +0.0, to which the branches' sums are added, ascending.

So it depends on N alone in which order a row is added, and a row's bits depend on that row alone.
An empty row gives +0.0. Products are the same with ``*`` and 1. The largest and the smallest are of
no order: a NaN if there is one, +0.0 above -0.0.
"""

from __future__ import annotations

from ptxgen.numerics.contract import Contract

ROWS = Contract(
    "rows", 1, "leaves of 1024, 32 lanes each; branches of 32 leaves; ascending", "simt"
)
POINTWISE = Contract("pointwise", 1, "every node rounded once, results once more", "simt")
"""The contract of formulas without reductions: :mod:`ptxgen.numerics.formula`."""

LANES = 32
GROUP = 8
"""Neighbours that a lane owns."""
LEAF = 1024
BRANCH = 32
"""Leaves of a branch."""
