"""The contract of ``logsumexp``, its constants, and its signature.

The ``lse`` contract, version 1
-------------------------------
For a row ``x`` of f32 elements (16 bits are converted to f32, exactly), each step rounded once in
f32:

1. The row is split into segments of :data:`SEGMENT` elements, ascending; the last may be short.
2. In a segment, ``m`` is the largest element (NaN is ignored; -inf if there is none), and
   ``shift`` is m, or 0 where m is infinite. Lane ``j // GROUP % LANES`` adds
   ``exp(clamp(x[j] - shift))`` to its sum for each of its j, ascending, from +0.0; then the sums
   of lanes l and ``l ^ 16`` are added, then ``l ^ 8``, 4, 2 and 1: that is ``s``.
3. ``M`` is the largest m, and its shift as above. ``total = fma(s, exp(clamp(m - shift)), total)``
   for each segment, ascending, from +0.0.
4. The result is NaN if ``total`` is, ``M`` if that is infinite, else ``log(total) + M``; then it is
   rounded to its dtype.

``clamp`` clamps to between :data:`LOWEST` and 0 (NaN stays). ``exp`` and ``log`` are the sequences
of ``templates/include/exp.cuh.j2``. An empty row gives -inf. The bits of a row depend on that row
alone: not on the number of rows, nor on which kernels ran.
"""

from __future__ import annotations

from ptxgen.numerics.contract import Contract
from ptxgen.numerics.signature import Signature

LSE = Contract(
    "lse", 1, "segments of 1024: s = sum exp(x - m); total = fma(s, exp(m - M), total)", "simt"
)

SEGMENT = 1024
LANES = 32
GROUP = 4
"""Number of neighbouring elements that the same lane of a warp adds: lane ``j // GROUP % LANES``
adds element j of a segment."""
LOWEST = -104.0
"""Lower clamp of arguments of exp: ``exp(LOWEST)`` is below half of the smallest f32, so 0."""

_hex = float.fromhex

LOG: tuple[float, ...] = (
    _hex("-0x1.000000p-1"),
    _hex("0x1.5555a4p-2"),
    _hex("-0x1.00009ap-2"),
    _hex("0x1.996a46p-3"),
    _hex("-0x1.54d902p-3"),
    _hex("0x1.284e80p-3"),
    _hex("-0x1.0e3110p-3"),
    _hex("0x1.b1cb6ep-4"),
    _hex("-0x1.7a5d64p-5"),
)
"""Ascending coefficients of ``(log(1 + t) - t) / t**2``, -0.25 <= t < 0.5. log has an error of
2**-27.6."""
LOG_SPLIT_BITS = 0x3F400000
"""Bits of 0.75, the least ``1 + t`` in log: ``x = 2**n * (1 + t)`` with 1 + t in [0.75, 1.5)."""

LOGSUMEXP = Signature(
    "logsumexp",
    ("x",),
    ("out",),
    {"": {"x": "... N", "out": "..."}},
    ("M", "N"),
)
