"""Triangular systems of linear equations: contract and signature of ``solve_triangular``.

The ``solve`` contract, version 1
---------------------------------
For ``a · x = b`` with a lower triangular matrix of N rows, and one column of b, in f32 (f64 for
f64), each step rounded once, i ascending:

1. ``acc = b[i]``, then ``acc = fma(-a[i][k], x[k], acc)`` for each k < i, ascending.
2. ``x[i] = acc / a[i][i]``; for a unit triangular matrix ``x[i] = acc``.

For an upper triangular matrix, i descends, and so does k > i. The other triangle is not read, nor
is the diagonal of a unit triangular matrix. So x[i] depends on its column and on the rows solved
before it, not on N or on other columns. Inf and NaN are as in IEEE 754.
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
