"""Gather and scatter: their signatures, and the contract of sums over equal indices.

The ``scatter`` contract, version 1
-----------------------------------
The contributions to row r of the result are the source rows whose index is r, in ascending order of
position. Each of their columns is added in the order of contract ``rows/1``
(:mod:`ptxgen.numerics.reduction_order`), in f32 (f64 for float64; integers wrap). The old value of
the result, if there is one, is added last (``old + sum``), and the total is rounded once. So a
row's bits depend on its contributions alone, not on contributions to other rows.

Where every element has its own index (``scatter_add``), each element of the result counts as a row
of one column.

An index out of range contributes nothing; a gather of it gives zeros.

A bag (``embedding_bag``) is a weighted sum of gathered rows. In f32, each product is rounded once.
Each column of the products is a row of contract ``rows/1``, and the sum is rounded once.
"""

from __future__ import annotations

from ptxgen.numerics.contract import Contract
from ptxgen.numerics.signature import Signature

SCATTER = Contract(
    "scatter", 1, "equal indices, ascending by position, as a row of rows/1; old + sum", "simt"
)

GATHER = Signature(
    "gather_rows",
    ("x", "indices"),
    ("out",),
    {"": {"x": "O V I", "indices": "K", "out": "O K I"}},
    ("O", "V", "K", "I"),
)
EMBEDDING = Signature(
    "embedding",
    ("weight", "indices"),
    ("out",),
    {"": {"weight": "V I", "indices": "...", "out": "... I"}},
    ("M", "V", "I"),
)
EMBEDDING_BAG = Signature(
    "embedding_bag",
    ("x", "indices", "weights"),
    ("out",),
    {"": {"x": "V I", "indices": "T J", "weights": "T J", "out": "T I"}},
    ("T", "J", "V", "I"),
)
EMBEDDING_BACKWARD = Signature(
    "embedding_backward",
    ("dy", "indices"),
    ("out",),
    {"": {"dy": "... I", "indices": "...", "out": "V I"}},
    ("M", "V", "I"),
)
INDEX_ADD = Signature(
    "index_add",
    ("x", "indices", "source"),
    ("out",),
    {"": {"x": "V I", "indices": "K", "source": "K I", "out": "V I"}},
    ("V", "K", "I"),
    over={"out": ("x",)},
)
SCATTER_ADD = Signature(
    "scatter_add_along",
    ("x", "indices", "source"),
    ("out",),
    {"": {"x": "O V I", "indices": "O K I", "source": "O K I", "out": "O V I"}},
    ("O", "V", "K", "I"),
    over={"out": ("x",)},
)
