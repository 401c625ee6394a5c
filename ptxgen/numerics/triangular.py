"""Triangular systems: the contract, and the signature.

The ``solve`` contract, version 1
---------------------------------
Of ``a · x = b`` with a lower triangular matrix of N rows, for one column of b, in f32 (f64 of f64),
each step rounded once:

1. ``acc = b[i]``, then ``acc = fma(-a[i][k], x[k], acc)`` for each k < i, ascending.
2. ``x[i] = acc / a[i][i]``; of a unit triangular matrix ``x[i] = acc``.

Of an upper one the same from the last row on: k > i, descending. What is on the other side of the
diagonal is not read, nor is the diagonal of a unit triangular matrix. So x[i] depends on its column
and on the rows before it, not on N or on other columns. Inf and NaN are as in IEEE 754.
"""

from __future__ import annotations

from ptxgen.numerics.contract import Contract
from ptxgen.numerics.signature import Signature

SOLVE = Contract(
    "solve", 1, "acc = fma(-a[i][k], x[k], acc), k ascending; x[i] = acc / a[i][i]", "simt"
)
SOLVE_TRIANGULAR = Signature(
    "solve_triangular",
    ("a", "b"),
    ("out",),
    {"": {"a": "* N N", "b": "* N R", "out": "* N R"}},
    ("N", "R"),
)
