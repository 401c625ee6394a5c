"""Gaussian splats: contract, constants and signatures.

The ``splat`` contract, version 1
---------------------------------
A splat in the picture is a point of nine f32 numbers ``(x, y, a, b, c, opacity, red, green,
blue)``: its centre in pixels, the exponent's coefficients, and its colour. The pixel in row i and
column j has its centre at ``(j + 0.5, i + 0.5)``. It starts with ``t = 1`` (transmittance) and
``colour = 0``, and folds the splats of its tile, ascending by (depth, index). Each operation is
rounded once:

1. ``dx = x - (j + 0.5)``, ``dy = y - (i + 0.5)``, and the exponent of two
   ``e = fma(fma(a, dx, b * dy), dx, (c * dy) * dy)``.
2. ``g = ex2(e)``, by the special function unit (:mod:`ptxgen.numerics.ex2`); ``p = opacity * g``.
3. The splat is skipped unless ``e <= 0`` and ``p >= alpha_cutoff``.
4. ``alpha = min(p, ALPHA_MAX)`` and ``next = fma(-t, alpha, t)``. The fold ends before this splat
   if ``next <= transmittance_threshold``.
5. ``colour = fma(alpha * t, (red, green, blue), colour)``, then ``t = next``.

It also ends after ``max_splat_steps`` splats of the tile, skipped ones among them. The pixel is
``fma(t, background, colour)``.

The gradient of a pixel goes through the same splats in descending order, with ``t`` as the fold
left it, ``behind = 0``, and ``s = fma(blue', dp_blue, fma(green', dp_green, fma(red', dp_red,
dt)))`` of the background and of the gradients of pixel and transmittance, times the last ``t``:

1. ``r = 1 / (1 - alpha)``, ``t = t * r``, ``w = alpha * t``; the colour's gradient is ``w * dp``.
2. ``dalpha`` is the fma chain of ``(colour * t - behind * r) * dp`` over red, green and blue, from
   ``-(s * r)`` on, where the difference is ``fma(colour, t, -(behind * r))``.
3. ``behind = fma(w, colour, behind)``.
4. Where ``p < ALPHA_MAX``: ``dopacity = g * dalpha``, ``v = (LN2 * p) * dalpha``, ``vx = v * dx``;
   the gradients of a, b and c are ``vx * dx``, ``vx * dy`` and ``(v * dy) * dy``, those of x and y
   ``v * fma(2 a, dx, b * dy)`` and ``v * fma(2 c, dy, b * dx)``. Elsewhere they are 0.

A tile's gradient of a splat adds its pixels' by halves of 32 neighbours (the sums of pairs 16
apart, then 8, 4, 2, 1), row by row of pixels, then these sums in ascending order. A splat's
gradient adds its tiles' in ascending order, from 0 on.
"""

from __future__ import annotations

import math

from ptxgen.numerics.contract import Contract

SPLAT = Contract(
    "splat",
    1,
    "e = fma(fma(a, dx, b dy), dx, c dy dy); alpha = min(opacity ex2(e), 0.99); "
    "colour = fma(alpha t, rgb, colour); t = fma(-t, alpha, t)",
    "simt",
)
ALPHA_MAX = 0.99
"""Largest opacity of a splat at a pixel (Kerbl et al. 2023, 3D Gaussian Splatting)."""
LN2 = math.log(2)
"""Natural logarithm of 2, rounded to f32 where the contract multiplies by it."""
WIDTH = 9
"""Numbers of a splat in the picture: x, y, a, b, c, opacity, red, green, blue."""
BOX = 4
"""Numbers of a splat's tiles: first column, first row, columns, and tiles in all."""
TILES = (8, 16)
"""Edges of a tile, in pixels: a CTA has a thread for each pixel."""
