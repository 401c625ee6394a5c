"""Grouped matrix products: rows sorted by group, each multiplied by its group's matrix.

The contracts are those of dense products (:mod:`ptxgen.numerics.contract`). A row of
``grouped_linear`` has the bits of ``linear`` with its group's weight and bias; a group of
``grouped_linear_wgrad`` has those of ``linear_wgrad`` on the group's rows with ``chain=True``.

``offsets[g]`` is the end of group g's rows. Kernels clamp offsets to between 0 and the number of
rows, and replace an offset that is below an earlier one by the largest of these. Rows after the
last offset belong to no group: their results are zeros.
"""

from __future__ import annotations

from ptxgen.numerics.signature import Signature

GROUPS_MAX = 1024
"""Largest number of groups of a grouped product."""

GROUPED_LINEAR = Signature(
    "grouped_linear",
    ("x", "w", "offsets", "bias"),
    ("out",),
    {
        "kn": {"x": "M K", "w": "E K N", "offsets": "E", "bias": "E N", "out": "M N"},
        "nk": {"x": "M K", "w": "E N K", "offsets": "E", "bias": "E N", "out": "M N"},
    },
    ("M", "N", "K", "E"),
    optional=frozenset({"bias"}),
)
GROUPED_WGRAD = Signature(
    "grouped_linear_wgrad",
    ("x", "dy", "offsets"),
    ("out",),
    {
        "kn": {"x": "M K", "dy": "M N", "offsets": "E", "out": "E K N"},
        "nk": {"x": "M K", "dy": "M N", "offsets": "E", "out": "E N K"},
    },
    ("M", "N", "K", "E"),
)
