"""Reductions over rows: the order in which the elements of a row are added.

The ``rows`` contract, version 1
--------------------------------
For a row ``x`` of N elements, in their compute type (f32; f64 for f64; integers wrap), each
addition rounded once:

1. The row is split into leaves of :data:`LEAF` elements, ascending; the last may be short. In a
   leaf, lane ``j // GROUP % LANES`` adds its elements j, ascending, to +0.0. Then the sums of lanes
   l and ``l ^ 1`` are added, then of ``l ^ 2``, 4, 8 and 16.
2. :data:`BRANCH` leaves make a branch; the last may have fewer. A branch's sum starts from +0.0 and
   adds the sums of its leaves, ascending.
3. The total starts from +0.0 and adds the sums of the branches, ascending.

So the order depends on N alone, and a row's bits depend on that row alone. An empty row gives +0.0.
Products have the same order, with ``*`` and 1. The order of ``max`` and ``min`` changes no bit:
they give a NaN if there is one, and order +0.0 above -0.0.
"""

from __future__ import annotations

from ptxgen.numerics.contract import Contract

ROWS = Contract(
    "rows", 1, "leaves of 1024, 32 lanes each; branches of 32 leaves; ascending", "simt"
)
POINTWISE = Contract("pointwise", 1, "every node rounded once, results once more", "simt")
"""Contract of formulas without reductions (:mod:`ptxgen.numerics.formula`)."""

LANES = 32
GROUP = 8
"""Number of neighbouring elements that the same lane of a warp adds: lane ``j // GROUP % LANES``
adds element j of a leaf."""
LEAF = 1024
BRANCH = 32
"""Number of leaves per branch of a row's sum."""
