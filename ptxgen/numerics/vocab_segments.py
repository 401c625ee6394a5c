"""Cross-entropy of a row of logits by segments: maxima and sums, the loss, and the gradient.

These are the steps of contract ``flce/3`` (:mod:`ptxgen.numerics.flce`) between the products:

1. ``logit_segments``: a row is split into segments of :data:`SEGMENT` classes, ascending; the last
   may be short. ``m`` is a segment's largest logit (a NaN if there is one), capped if there is a
   softcap, plus +0.0. ``s`` is the sum of ``weight(z - m)`` over its (capped) logits z, of
   ``weight(z)`` where m is infinite; missing classes add +0.0. First neighbours are added in pairs,
   then the second half of the sums to the first half, repeatedly. ``s`` is NaN where m is +inf or
   NaN.
2. ``cross_entropy_joined`` (:mod:`ptxgen.numerics.row_reductions`): loss, maximum and scale of a
   row from its segments, by ``rows/1``.
3. ``logit_gradient``: :func:`gradient` of each logit, rounded once to the logits' dtype.

All is in f32 (f64 for float64). The order of step 1 suits both tensor-core accumulators, where four
threads hold a row in pairs of neighbours, and a warp that reads whole vectors.
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
"""Number of classes per segment, the columns of the widest tensor-core tile."""
FLCE = Contract(
    "flce",
    3,
    "segments of 256: s = sum exp(z - m), pairs, then halves onto halves",
    "simt",
)
LEAST = -86.0
"""Lower clamp of arguments of :data:`weight` in f32, so that no result is subnormal."""
CAP = 64.0
"""Largest softcap for which capped logits differ by less than ``-LEAST`` where all
``|x / softcap|`` are below ``softcap.NEAR``. Exponentials of such differences need no clamp:
:data:`near_weight` computes them."""

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
    """Number of segments of a row of ``n`` classes."""
    return -(-n // SEGMENT)


def _near_weight(x: Node) -> Node:
    rounded = fma(x, F32.log2_e[0], F32.rounder)
    r = fma(x, F32.log2_e[0], -(rounded - F32.rounder))
    power = fma(functions._horner(r, functions.EXP2_SHORT), r, 1)
    return from_bits(bits(power) + (bits(rounded) << F32.mantissa_bits))


near_weight = Function("near_weight", _near_weight, 1)
"""``exp(x)`` for LEAST <= x <= 0, f32, with an error of 2**-23; for a NaN an unspecified value."""


def _weight(x: Node) -> Node:
    return row_reductions.decay(x) if x.type == "f64" else near_weight(functions.maximum(x, LEAST))


weight = Function("weight", _weight, 1, types=("f32", "f64"))
"""Exponential of a logit relative to its segment's maximum: ``exp(max(x, LEAST))`` for x <= 0; in
f64 :data:`ptxgen.numerics.row_reductions.decay`."""


def peak(dtype: str, capped: bool, near: bool = False) -> Formula:
    """Returns the formula of a segment's maximum ``m``: its largest logit ``x``, after the softcap.

    ``dtype``: that of the logits; ``capped``: whether there is a softcap; ``near``: whether
    ``|x / softcap|`` is known to be below ``softcap.NEAR``, so that a shorter formula has the same
    bits.
    """
    x, softcap = _logit(STORED[dtype], capped)
    z, _ = capped_by(x, softcap, near)
    return Formula((Output("m", x.type, z + 0.0),))


def term(dtype: str, capped: bool, near: bool = False) -> Formula:
    """Returns the formula of ``exp(z - m)``, the term that a logit adds to the sum of its segment.

    z is the logit ``x`` after the softcap, ``m`` the segment's maximum. ``dtype``, ``capped``: as
    in :func:`peak`; ``near``: whether all ``|x / softcap|`` are known to be below ``softcap.NEAR``,
    and all ``z - m`` at least LEAST, so that a shorter formula has the same bits.
    """
    x, softcap = _logit(dtype, capped)
    z, _ = capped_by(x, softcap, near)
    below = z - read("m", x.type, "scalar")
    return Formula((Output("term", x.type, near_weight(below) if near else weight(below)),))


def gradient(dtype: str, capped: bool, near: bool = False) -> Formula:
    """Returns the formula of the gradient by logit ``x``, rounded to ``dtype``.

    Its inputs are x and, of x's row, the maximum ``top``, the factor ``scale`` of ``exp(z - top)``,
    the gradient ``dy`` by the loss, the label ``smoothing``, and ``hit``, whether x is the logit of
    the target. ``capped``, ``near``: as in :func:`peak`.
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
