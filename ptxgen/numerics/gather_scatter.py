"""Gather and scatter: their signatures, and the contract of sums over equal indices.

The ``scatter`` contract, version 1
-----------------------------------
The contributions to a row are those whose index is the row's, in ascending order of position. Each
column of them is a row of contract ``rows/1`` (:mod:`ptxgen.numerics.reduction_order`) and is added
in its order, in f32 (f64 of f64; integers wrap); what was there before, if anything, is added to
that sum last (``old + sum``). It is rounded once. So a row's bits depend on its contributions
alone, neither on what goes to other rows nor on how many there are.

Where every element has its own index (``scatter_add``), an element of the result is such a row, of
one column.

An index that is none of a row contributes nothing, and reading one gives zeros.
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
