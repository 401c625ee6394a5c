"""Signatures of exact integer operations: sort, count, and writing rows or elements by index."""

from __future__ import annotations

from ptxgen.numerics.signature import Signature

SORT = Signature(
    "sort_integers",
    ("x",),
    ("out", "indices"),
    {"": {"x": "K", "out": "K", "indices": "K"}},
    ("K",),
)
COUNT = Signature("count_integers", ("x",), ("out",), {"": {"x": "K", "out": "E"}}, ("K", "E"))
EXPERTS = Signature(
    "sort_experts",
    ("experts",),
    ("tokens", "places", "ends"),
    {"": {"experts": "T J", "tokens": "S", "places": "T J", "ends": "E"}},
    ("T", "J", "E"),
)
PUT = Signature(
    "put_rows",
    ("x", "indices", "source"),
    ("out",),
    {"": {"x": "B V I", "indices": "K", "source": "B K I", "out": "B V I"}},
    ("B", "V", "K", "I"),
)
PLACE = Signature(
    "placed",
    ("indices", "source"),
    ("out",),
    {"": {"indices": "K", "source": "K", "out": "K"}},
    ("K",),
    optional=frozenset({"source"}),
)
