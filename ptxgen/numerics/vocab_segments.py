"""A row of logits: maxima and sums of its segments, the loss from these, and the gradient.

The steps of contract ``flce/3`` (:mod:`ptxgen.numerics.flce`) between the products:

1. ``logit_segments``: a row is cut into segments of :data:`SEGMENT` classes, ascending; the last
   may be short. ``m`` is a segment's largest logit (a NaN if there is one), capped where there is a
   softcap, plus +0.0. ``s`` is the sum of :data:`weight` of each (capped) logit less m, less 0
   where m is infinite; a class that is not there adds +0.0. Its order: neighbours are added in
   pairs, then the second half of these sums to the first half, again and again. ``s`` is NaN
   where m is +inf or NaN.
2. ``cross_entropy_joined`` (:mod:`ptxgen.numerics.row_reductions`): loss, maximum and scale of a
   row from its segments, by ``rows/1``.
3. ``logit_gradient``: :func:`gradient` of each logit, rounded once to the logits' dtype.

All in f32 (f64 of float64). The order of step 1 is one that accumulators of tensor cores, of which
four threads have a row in pairs of neighbours, and a warp that reads whole vectors both keep.
"""

from __future__ import annotations

from ptxgen.numerics import functions, row_reductions
from ptxgen.numerics.constants import F32
from ptxgen.numerics.contract import Contract
from ptxgen.numerics.formula import (
    STORED,
    Formula,
    Function,
    Node,
    Output,
    bits,
    cast,
    fma,
    from_bits,
    length,
    read,
    where,
)
from ptxgen.numerics.signature import Signature
from ptxgen.numerics.softcap import capped as capped_by

SEGMENT = 256
"""Classes of a segment: columns of the widest tile of tensor cores."""
FLCE = Contract(
    "flce",
    3,
    "segments of 256: s = sum exp(z - m), pairs, then halves onto halves",
    "simt",
)
LEAST = -86.0
"""Least argument of a weight's ``exp``; smaller ones are raised to it: no weight is subnormal."""
CAP = 64.0
"""Softcaps up to it bring small logits (``softcap.NEAR``) to within -LEAST of each other."""

LOGIT_SEGMENTS = Signature(
    "logit_segments",
    ("x", "target"),
    ("top", "total", "hit"),
    {"": {"x": "... N", "target": "...", "top": "... S", "total": "... S", "hit": "..."}},
    ("M", "N"),
)
LINEAR_SEGMENTS = Signature(
    "linear_segments",
    ("x", "w", "target", "bias"),
    ("top", "total", "hit"),
    {
        layout: {
            "x": "... K",
            "w": form,
            "target": "...",
            "bias": "N",
            "top": "... S",
            "total": "... S",
            "hit": "...",
        }
        for layout, form in (("nk", "N K"), ("kn", "K N"))
    },
    ("M", "N", "K"),
    optional=frozenset({"bias"}),
)
LOGIT_GRADIENT = Signature(
    "logit_gradient",
    ("x", "target", "top", "scale", "dy"),
    ("g",),
    {
        "": {
            "x": "... N",
            "target": "...",
            "top": "...",
            "scale": "...",
            "dy": "...",
            "g": "... N",
        }
    },
    ("M", "N"),
    optional=frozenset({"dy"}),
    over={"g": ("x",)},
)


def segments(n: int) -> int:
    """Segments of a row of ``n`` classes."""
    return -(-n // SEGMENT)


def _near_weight(x: Node) -> Node:
    rounded = fma(x, F32.log2_e[0], F32.rounder)
    r = fma(x, F32.log2_e[0], -(rounded - F32.rounder))
    power = fma(functions._horner(r, functions.EXP2_SHORT), r, 1)
    return from_bits(bits(power) + (bits(rounded) << F32.places))


near_weight = Function("near_weight", _near_weight, 1)
"""``exp(x)`` for LEAST <= x <= 0 to 2**-23, by ``2**r`` and an exponent that is added. Of a NaN it
is some number."""


def _weight(x: Node) -> Node:
    return row_reductions.decay(x) if x.type == "f64" else near_weight(functions.maximum(x, LEAST))


weight = Function("weight", _weight, 1, types=("f32", "f64"))
"""``exp(x)`` for x <= 0, of at least LEAST; of f64 :data:`ptxgen.numerics.row_reductions.decay`."""


def peak(dtype: str, capped: bool, near: bool = False) -> Formula:
    """Formula of a segment's maximum ``m`` from its largest logit ``x``.

    ``near``: all logits are small, as in :func:`ptxgen.numerics.softcap.capped`, and none is less
    than LEAST below the largest.
    """
    x, softcap = _logit(STORED[dtype], capped)
    z, _ = capped_by(x, softcap, near)
    return Formula((Output("m", x.type, z + 0.0),))


def term(dtype: str, capped: bool, near: bool = False) -> Formula:
    """Formula of the term that logit ``x`` adds to the sum of its segment, of maximum ``m``."""
    x, softcap = _logit(dtype, capped)
    z, _ = capped_by(x, softcap, near)
    below = z - read("m", x.type, "scalar")
    return Formula((Output("term", x.type, near_weight(below) if near else weight(below)),))


def gradient(dtype: str, capped: bool, near: bool = False) -> Formula:
    """Formula of the gradient by logit ``x``, from its row's maximum, scale and share ``dy``.

    ``hit``: whether ``x`` is the logit of the row's target.
    """
    x, softcap = _logit(dtype, capped)
    top, scale, dy, smoothing = (
        read(name, x.type, "scalar") for name in ("top", "scale", "dy", "smoothing")
    )
    z, slope = capped_by(x, softcap, near)
    even = smoothing / cast(length(), x.type) * dy
    g = fma(row_reductions.decay(z - top), scale * dy, -even)
    g = where(read("hit", "bool", "scalar"), g - (1 - smoothing) * dy, g)
    g = g if slope is None else g * slope
    return Formula((Output("g", dtype, cast(g, dtype)),))


def _logit(dtype: str, capped: bool) -> tuple[Node, Node | None]:
    x = read("x", dtype)
    return x, read("softcap", x.type, "scalar") if capped else None
