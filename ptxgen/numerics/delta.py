"""Recurrences with a matrix state, gated delta rule and state space duality: their contracts.

The ``delta`` contract, version 1
---------------------------------
A head has a state ``S`` [R, P], rows for keys and columns for values. Each token has ``q`` and
``k`` [R], ``v`` [P], and scalars ``g`` and ``beta``. Rows are padded with zeros to a power of two,
at least 32. All is f32, each step rounded once, token by token:

1. ``a = exp(g)``, the ``exp`` of :mod:`ptxgen.numerics.functions`.
2. The delta rule has ``w[p] = fma(-a, sum_n k[n] S[n, p], v[p])``; without it ``w[p] = v[p]``.
3. ``d[p] = beta * w[p]``, and ``S[n, p] = fma(k[n], d[p], a * S[n, p])``.
4. ``o[p] = scale * sum_n q[n] S[n, p]``; with a skip ``fma(skip, v[p], o[p])``. It is rounded once
   more to its dtype.

*Sums over rows* use groups of :data:`GROUP` neighbouring rows, and :data:`CHAINS` chains per group:
chain ``c`` is ``fma(k[n], S[n, p], chain)`` from +0.0, over the group's rows c, c + 4, c + 8 and
c + 12. A group's sum is ``(chain0 + chain1) + (chain2 + chain3)``. Sums of groups are added as a
balanced binary tree of neighbours.

The state is f32 and exact from token to token, so a token's result does not depend on how the
sequence is split into calls: a whole prompt, parts of it and single steps have the same bits.

The ``delta_grad`` contract, version 1
--------------------------------------
``do`` and ``dS`` are the gradients by results and by the last state; ``w`` and S are those of
``delta``, recomputed. ``e[p] = scale * do[p]``. *Sums over columns* start from +0.0 and add quads
of :data:`QUAD` neighbouring columns, ``fma`` ascending; quads are added as a binary tree of
neighbours within a *part*: :data:`PART` columns, padded with zeros.

1. Tokens descending, from dS or zeros: ``dS[n, p] = fma(q[n], e[p], dS[n, p])``,
   ``dd[p] = sum_n k[n] dS[n, p]`` in the order of sums over rows, ``dw[p] = beta * dd[p]``. A part
   of ``dk[n]`` is ``sum_p d[p] dS[n, p]``. Then by the delta rule
   ``dS[n, p] = fma(-k[n], dw[p], dS[n, p])``, and ``dS[n, p] = a * dS[n, p]``: at the first token
   the gradient by the first state.
2. Tokens ascending: a part of ``dq[n]`` is ``sum_p e[p] S[n, p]``, where S is the state after the
   token; by the delta rule a second part of ``dk[n]`` is ``sum_p -dw[p] (a S[n, p])``.
3. ``dv = dw``, with a skip ``fma(skip, do, dw)``. dq is the sum over the parts and over the heads
   that share it; so is dk, with the delta rule the sum of both passes' parts.
   ``dbeta = sum_p dd[p] w[p]``.
4. ``dg`` of a token is the sum over it and all later tokens of
   ``sum_n q[n] dq[n] - sum_p v[p] dw[p]`` of the head, plus the sum of ``dS * S`` of the last
   state. (A decay scales later outputs, less later inputs.) Steps 3 and 4 add in f32 by ``sum``
   (``rows/1``) and a reverse ``cumsum`` (``scan/1``). Results are rounded to their dtypes.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ptxgen.expr import var
from ptxgen.numerics.contract import Contract
from ptxgen.numerics.formula import Formula, Output, read
from ptxgen.numerics.functions import exp
from ptxgen.numerics.signature import Signature

DELTA = Contract(
    "delta", 1, "S = fma(k, d, a S), o = scale q S; rows by 16, in 4 chains, then by twos", "simt"
)
DELTA_GRAD = Contract(
    "delta_grad", 1, "dS = fma(q, e, dS), back in time; columns by 4, then by twos to 64", "simt"
)
GROUP = 16
"""Number of neighbouring rows in a group; a sum over rows first adds the rows of each group."""
CHAINS = 4
"""Number of fma chains in the sum of a group of rows: chain c adds rows c, c + 4, c + 8, c + 12."""
QUAD = 4
"""Number of neighbouring columns in one fma chain of a sum over columns."""
PART = 64
"""Number of columns per partial sum of a sum over columns. One kernel stores the partial sums, a
later one adds them."""
ROWS_MAX = 256
"""Largest number of rows of a state (head dimension of keys)."""
COLUMNS_MAX = 256
"""Largest number of columns of a state (head dimension of values)."""
STEP = 8
"""Granularity of a state: its numbers of rows and of columns are multiples of it."""
DECAY = Formula((Output("a", "f32", exp(read("g", "f32", "scalar"))),))
"""Formula of a token's decay ``a = exp(g)``, the factor of the state, from its logarithm ``g``."""

_HEADS = ((var("H") % var("G")).eq(0) & (var("G") > 0), "heads H of values are a multiple of G")


def groups(rows: int) -> int:
    """Number of groups of :data:`GROUP` rows in a state of ``rows`` rows after padding with zeros:
    the least power of two that suffices, at least 2.
    """
    return max(2, 1 << (-(-rows // GROUP) - 1).bit_length())


def parts(columns: int) -> int:
    """Number of partial sums of a sum over a state's columns: ``ceil(columns / PART)``."""
    return -(-columns // PART)


_KEYS: Mapping[str, str] = MappingProxyType({"q": "... L G N", "k": "... L G N"})
RULE = Signature(
    "gated_delta_rule",
    ("q", "k", "v", "g", "beta", "state"),
    ("out", "last"),
    {
        "": {
            **_KEYS,
            **{"v": "... L H P", "g": "... L H", "beta": "... L H"},
            **{"state": "... H N P", "out": "... L H P", "last": "... H N P"},
        }
    },
    ("M", "L", "G", "H", "N", "P"),
    optional=frozenset({"state"}),
    over={"last": ("state",)},
    relations=(_HEADS,),
)
SSD = Signature(
    "ssd",
    ("x", "dt", "a", "b", "c", "d", "dt_bias", "state"),
    ("out", "last"),
    {
        "": {
            **{"x": "... L H P", "dt": "... L H", "a": "H", "b": "... L G N", "c": "... L G N"},
            **{"d": "H", "dt_bias": "H", "state": "... H P N"},
            **{"out": "... L H P", "last": "... H P N"},
        }
    },
    ("M", "L", "G", "H", "N", "P"),
    optional=frozenset({"d", "dt_bias", "state"}),
    over={"last": ("state",)},
    relations=(_HEADS,),
)
