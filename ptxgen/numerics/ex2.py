"""Bit-exact model of ``ex2.approx.ftz.f32``, the powers of two of the special function unit.

PTX specifies only the largest error of this instruction. Its bits are measured (:data:`MEASURED`).
For an argument x in [-126, 128):

1. ``t = floor(|x| 2**23)``; n is its integer part (``t >> 23``), and f its 23 fraction bits. For a
   negative x, n becomes ``-n``; where f is not 0, n becomes ``n - 1`` and f its complement
   ``2**23 - 1 - f``, one unit less than the exact ``2**23 - f``.
2. The first :data:`SEGMENT_BITS` bits of f select a segment, ``(c0, c1, c2)`` of :data:`SEGMENTS`;
   u is the remaining 17 bits, and h the first 15 bits of u.
3. h is squared by a truncated multiplier. Bit i of h has the weight ``2**-i``, i from 1. ``q`` is
   the sum of the products of bits i <= j, of weight ``2**(15 - i - j)``, twice that where i < j;
   products of a weight below 1 are left out.
4. ``y = floor((c0 2**13 + c1 u + c2 q + ROUND) / 2**15)``, and the result is
   ``2**n (1 + y / 2**23)``, where y may be ``2**23``.

Below -126 the result is +0, from 128 on +inf; for a NaN it is the NaN 0x7FFFFFFF. The relative
error is below 2**-22.7. This is a table-driven quadratic interpolation, of the kind that Oberman
and Siu describe (A high-performance area-efficient multifunction interpolator, ARITH 2005). The
table was solved for here, from all 2**23 results in [1, 2), and reproduces each of them.
"""

from __future__ import annotations

INSTRUCTION = "ex2.approx.ftz.f32"
SEGMENT_BITS = 6
ROUND = 6114
LOWEST = -126.0
"""Least argument of ex2 with a normal result; below it the result is +0."""
OVERFLOW = 128.0
"""Least argument of ex2 whose result is infinite."""
MEASURED: tuple[str, ...] = ("sm_90",)
"""Architectures whose bits were compared with the model (tests/conformance); others are assumed to
have the same."""

SEGMENTS: tuple[tuple[int, int, int], ...] = (
    (3, 22713, 494),
    (365386, 22960, 501),
    (734750, 23210, 506),
    (1108133, 23463, 511),
    (1485586, 23718, 518),
    (1867145, 23977, 521),
    (2252860, 24238, 527),
    (2642777, 24502, 532),
    (3036940, 24768, 541),
    (3435393, 25038, 546),
    (3838184, 25311, 551),
    (4245365, 25586, 559),
    (4656977, 25865, 564),
    (5073072, 26147, 568),
    (5493699, 26431, 577),
    (5918905, 26719, 583),
    (6348741, 27010, 589),
    (6783258, 27304, 596),
    (7222505, 27602, 600),
    (7666538, 27902, 609),
    (8115404, 28206, 615),
    (8569160, 28513, 622),
    (9027854, 28824, 627),
    (9491545, 29138, 633),
    (9960285, 29455, 641),
    (10434129, 29776, 647),
    (10913133, 30100, 655),
    (11397354, 30428, 661),
    (11886846, 30759, 670),
    (12381669, 31094, 677),
    (12881882, 31432, 686),
    (13387539, 31775, 691),
    (13898703, 32121, 699),
    (14415435, 32471, 705),
    (14937793, 32824, 715),
    (15465837, 33182, 721),
    (15999633, 33543, 730),
    (16539242, 33908, 739),
    (17084727, 34277, 748),
    (17636150, 34651, 753),
    (18193579, 35028, 763),
    (18757078, 35409, 773),
    (19326714, 35795, 779),
    (19902551, 36185, 787),
    (20484659, 36579, 796),
    (21073106, 36977, 806),
    (21667961, 37380, 813),
    (22269293, 37787, 822),
    (22877175, 38198, 833),
    (23491674, 38614, 842),
    (24112865, 39035, 849),
    (24740822, 39460, 858),
    (25375616, 39889, 870),
    (26017322, 40324, 877),
    (26666015, 40763, 887),
    (27321773, 41207, 896),
    (27984672, 41655, 909),
    (28654788, 42109, 917),
    (29332202, 42568, 925),
    (30016992, 43031, 938),
    (30709240, 43500, 946),
    (31409026, 43973, 959),
    (32116431, 44452, 969),
    (32831540, 44936, 980),
)
"""Coefficients ``(c0, c1, c2)`` of each segment's quadratic polynomial."""
