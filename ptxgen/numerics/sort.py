"""Contract and signatures of ``sort``, ``argsort``, ``searchsorted``, ``bincount``, ``unique``.

The ``sort`` contract, version 1
--------------------------------
A row is ordered by the values of its elements, ascending, and equal elements keep their order (the
sort is stable). All NaN are equal, and larger than any number; -0.0 equals +0.0. In descending
order NaN come first, and equal elements keep their order, too. Elements are moved bit by bit: the
sign of a zero, and sign and payload of a NaN, are those of the argument.

So the result is that of ``numpy.argsort(x, kind="stable")``, and descending that of
``torch.sort(x, stable=True, descending=True)``.

A binary search counts the elements of a sorted row that are below a value (side left), or not above
it (side right), in this order.
"""

from __future__ import annotations

from ptxgen.numerics.contract import Contract
from ptxgen.numerics.signature import Signature

SORT_CONTRACT = Contract("sort", 1, "ascending, stable; NaN last, -0.0 equal to +0.0", "any")
KEYS = {
    "float32": "f32",
    "float64": "f64",
    "bfloat16": "bf16",
    "float16": "f16",
    **{f"int{n}": f"i{n}" for n in (8, 16, 32, 64)},
    **{f"uint{n}": f"u{n}" for n in (8, 16, 32, 64)},
    "bool": "u8",
}
"""Short names of the dtypes that are sorted, by full name; bool is sorted as its byte."""
KEY_BYTES = {key: 1 if key[1:] == "8" else int(key.lstrip("bfiu")) // 8 for key in KEYS.values()}
"""Bytes of an element, by short name."""
DIGIT_BITS = 8
"""Bits by which one pass of a radix sort orders elements."""
ELEMENTS_MAX = (1 << 31) - 1
"""Most elements that one call sorts or searches for, in all rows together."""

SORT = Signature(
    "sort",
    ("x",),
    ("values", "indices"),
    {"": {"x": "... N", "values": "... N", "indices": "... N"}},
    ("M", "N"),
)
ARGSORT = Signature("argsort", ("x",), ("out",), {"": {"x": "... N", "out": "... N"}}, ("M", "N"))
SEARCHSORTED = Signature(
    "searchsorted",
    ("x", "values"),
    ("out",),
    {"": {"x": "... N", "values": "... K", "out": "... K"}},
    ("M", "N", "K"),
)
BINCOUNT = Signature(
    "bincount",
    ("x", "weights"),
    ("out",),
    {"": {"x": "K", "weights": "K", "out": "E"}},
    ("K", "E"),
    optional=frozenset({"weights"}),
)
UNIQUE = Signature(
    "unique",
    ("x",),
    ("values", "count", "inverse", "counts"),
    {"": {"x": "...", "values": "S", "count": "", "inverse": "...", "counts": "S"}},
    ("M", "S"),
)
