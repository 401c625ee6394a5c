"""``ex2``: the powers of two of the special function unit, as ``ex2.approx.ftz.f32`` gives them.

PTX gives this instruction a largest error and no bits. These are measured (:data:`MEASURED`), and
simple. Of an argument x in [-126, 128):

1. ``t = floor(|x| 2**23)``, n is its whole part and f its 23 bits after the point. Of a negative x,
   n becomes ``-n``; where f is not 0 n becomes ``n - 1`` and f its complement, ``2**23 - 1 - f``,
   which is a unit less than ``1 - f`` would be.
2. The first :data:`SEGMENT_BITS` bits of f choose a segment, ``(c0, c1, c2)`` of :data:`SEGMENTS`;
   u are the 17 bits behind, and h the first 15 of these.
3. The square of h is that of a multiplier without its last columns: with bit i of h worth
   ``2**-i``, i from 1, ``q`` is the sum of the products of bits i <= j, worth ``2**(15 - i - j)``,
   twice that where i < j, of those that are worth 1 or more.
4. ``y = floor((c0 2**13 + c1 u + c2 q + ROUND) / 2**15)``, and the result is
   ``2**n (1 + y / 2**23)``, where y may be ``2**23``.

Below -126 it is +0, from 128 on +inf; of a NaN it is the NaN 0x7FFFFFFF. The relative error is
below 2**-22.7. This is a table-driven quadratic interpolation, of the kind that Oberman and Siu
describe (A high-performance area-efficient multifunction interpolator, ARITH 2005). Its numbers
are ours, solved for from all 2**23 results in [1, 2), of which each fits.
"""

from __future__ import annotations

INSTRUCTION = "ex2.approx.ftz.f32"
SEGMENT_BITS = 6
ROUND = 6114
LOWEST = -126.0
"""Least argument with a normal result; below it the result is +0."""
BEHIND = 128.0
"""Least argument whose result is infinite."""
MEASURED: tuple[str, ...] = ("sm_90",)
"""The architectures whose bits were compared (tests/conformance). For others it is assumed."""

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
"""``(c0, c1, c2)`` by the segment."""
