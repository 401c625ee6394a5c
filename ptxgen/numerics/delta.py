"""Recurrences of a matrix: the delta rule and state space duality, contracts and signatures.

The ``delta`` contract, version 1
---------------------------------
Of a head: a state ``S`` of R rows (of keys) and P columns (of values), and of each token ``q`` and
``k`` (R numbers), ``v`` (P numbers), ``g`` and ``beta``. Rows are filled up with zeros to a power
of two, at least 32. All in f32, each step rounded once, token by token:

1. ``a = exp(g)``, the ``exp`` of :mod:`ptxgen.numerics.functions`.
2. The delta rule has ``w[p] = fma(-a, sum_n k[n] S[n, p], v[p])``; without it ``w[p] = v[p]``.
3. ``d[p] = beta * w[p]``, and ``S[n, p] = fma(k[n], d[p], a * S[n, p])``.
4. ``o[p] = scale * sum_n q[n] S[n, p]``; with a skip ``fma(skip, v[p], o[p])``. It is rounded once
   more to its dtype.

*Sums over rows* take groups of :data:`GROUP` neighbouring rows. A group has :data:`CHAINS` chains:
that of ``c`` is ``fma(k[n], S[n, p], chain)`` from +0.0, of the group's rows c, c + 4, c + 8 and
c + 12. A group's sum is ``(chain0 + chain1) + (chain2 + chain3)``. Groups are added by twos: each
with its neighbour, such pairs with theirs, and so on.

The state is f32 and exact from token to token, so a token's result does not depend on how the
sequence is cut into calls: a prompt, its parts and single steps have the same bits.

The ``delta_grad`` contract, version 1
--------------------------------------
``do`` and ``dS`` are the gradients of results and of the last state; ``w`` and S are those of
``delta``, made again. ``e[p] = scale * do[p]``. *Sums over columns* begin with +0.0 and take quads
of :data:`QUAD` neighbouring columns, ``fma`` ascending; quads are added by twos, as groups of rows
are, up to :data:`PART` columns, filled up with zeros: these are parts.

1. Tokens descending, from dS or zeros: ``dS[n, p] = fma(q[n], e[p], dS[n, p])``,
   ``dd[p] = sum_n k[n] dS[n, p]`` in the order of sums over rows, ``dw[p] = beta * dd[p]``. A part
   of ``dk[n]`` is ``sum_p d[p] dS[n, p]``. Then by the delta rule
   ``dS[n, p] = fma(-k[n], dw[p], dS[n, p])``, and ``dS[n, p] = a * dS[n, p]``: at the first token
   the gradient of the first state.
2. Tokens ascending: a part of ``dq[n]`` is ``sum_p e[p] S[n, p]``, S being that behind the token;
   by the delta rule one more of ``dk[n]`` is ``sum_p -dw[p] (a S[n, p])``.
3. ``dv = dw``, with a skip ``fma(skip, do, dw)``. dq is the sum of a head's parts, and that of the
   heads that share it; dk that of the parts of all these, of the delta rule of both walks, added.
   ``dbeta = sum_p dd[p] w[p]``.
4. ``dg`` of a token is the sum over it and all behind it of ``sum_n q[n] dq[n] - sum_p v[p] dw[p]``
   of the head, and the sum of ``dS * S`` of the last state: what a decay scales is what comes out
   later, less what is put in later. Here and in 3 ``sum`` (``rows/1``) and a reverse ``cumsum``
   (``scan/1``) add, in f32. What is returned is rounded to its dtype.
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
"""Neighbouring rows that are summed first."""
CHAINS = 4
"""Chains in the sum of a group of rows."""
QUAD = 4
"""Neighbouring columns that are summed one after the other."""
PART = 64
"""Columns of a part: one kernel sums them, and parts are added afterwards."""
ROWS_MAX = 256
"""The most rows of a state."""
COLUMNS_MAX = 256
"""The most columns of a state."""
STEP = 8
"""Rows and columns of a state are multiples of it."""
DECAY = Formula((Output("a", "f32", exp(read("g", "f32", "scalar"))),))
"""Formula of a token's decay from its logarithm: ``exp(g)``."""

_HEADS = ((var("H") % var("G")).eq(0) & (var("G") > 0), "heads H of values are a multiple of G")


def groups(rows: int) -> int:
    """Number of groups in ``rows`` rows, filled up to a power of two."""
    return max(2, 1 << (-(-rows // GROUP) - 1).bit_length())


def parts(columns: int) -> int:
    """Number of parts in sums over ``columns`` columns."""
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
