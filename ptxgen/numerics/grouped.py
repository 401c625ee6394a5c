"""Products of groups: rows that are sorted by group, each times its group's matrix.

Contracts are those of the products (:mod:`ptxgen.numerics.contract`). A row of
``grouped_linear`` has the bits that ``linear`` gives it with its group's weight and bias; the sum
of a group of ``grouped_linear_wgrad`` those of ``linear_wgrad`` of its rows with ``chain=True``.

``offsets`` says where groups end, ascending. A kernel takes an offset below 0 for 0, one beyond the
rows for their number, and one below those before it for the largest of these. Rows behind the last
offset belong to no group: their results are zeros.
"""

from __future__ import annotations

from ptxgen.numerics.signature import Signature

GROUPS_MAX = 1024
"""The largest number of groups."""

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
