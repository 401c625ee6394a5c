"""Gaussian splats: contract, constants, projection and colours.

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

Projection and colours
----------------------
A camera is ``view`` [4, 4], which turns points of the world into points of the camera (x to the
right, y down, z ahead), and ``intrinsics`` [3, 3] with the focal lengths and the centre in pixels.
:func:`project` follows Zwicker et al. (2001, EWA splatting) and Kerbl et al. (2023, 3D Gaussian
Splatting). Each operation is one of :mod:`ptxgen.numerics.formula`, in f32, rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

from ptxgen.numerics.contract import Contract
from ptxgen.numerics.formula import Node, cast, fma, where
from ptxgen.numerics.functions import ceil, floor, maximum, minimum, sqrt

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
ARRAYS = (
    *("x", "y", "z", "sx", "sy", "sz", "qw", "qx", "qy", "qz"),
    *(f"view{i}{j}" for i in range(3) for j in range(4)),
    *("fx", "fy", "cx", "cy"),
)
"""Arguments of :func:`project` that are arrays: the splat's, and the camera's."""
NUMBERS = ("width", "height", "near", "far", "blur", "stretch")
"""Arguments of :func:`numbers` that are no arrays. ``stretch``: the inverse of the largest ratio of
two scales of a splat."""
OF_BOX = ("radius_scale", "edge")
"""Further arguments of :func:`project`; ``edge``: of a tile, in pixels."""
OF_SPLAT, OF_CAMERA = ARRAYS[:10], ARRAYS[10:]
LOG2_E = math.log2(math.e)
MARGIN = 0.3
"""Part of the picture's half width beyond its border at which the slope of the projection is taken
for splats still farther out."""
LEAST = 0.1
"""Least root of the eigenvalues' discriminant, in pixels**2, so that round splats have a slope."""
HARMONICS = (1, 4, 9, 16)
"""Numbers of coefficients of spherical harmonics up to degree 0, 1, 2 and 3."""


def _dot(a: Sequence[Any], b: Sequence[Any], first: Any = None) -> Node:
    """``first + a[0] b[0] + a[1] b[1] + ...``: a chain of fma, ascending; without ``first`` the
    first product is rounded.
    """
    total: Node = a[0] * b[0] if first is None else fma(a[0], b[0], first)
    for x, y in zip(a[1:], b[1:], strict=True):
        total = fma(x, y, total)
    return total


def _in_camera(point: Sequence[Node], view: Sequence[Node]) -> tuple[Node, Node, Node]:
    """The point in the camera's coordinates; ``view``: the matrix's first three rows."""
    x, y, z = (_dot(view[4 * i : 4 * i + 3], point, view[4 * i + 3]) for i in range(3))
    return x, y, z


def _rotation(w: Node, x: Node, y: Node, z: Node) -> list[list[Node]]:
    """Rows of the rotation matrix of a quaternion, which need not be of length 1."""
    size = _dot((w, x, y, z), (w, x, y, z))
    r = 1 / sqrt(where(size > 0, size, 1))
    w, x, y, z = w * r, x * r, y * r, z * r
    two = [[2 * (a * b) for b in (w, x, y, z)] for a in (w, x, y, z)]
    (_, wx, wy, wz), (_, xx, xy, xz), (_, _, yy, yz), (*_, zz) = two
    return [
        [1 - (yy + zz), xy - wz, xz + wy],
        [xy + wz, 1 - (xx + zz), yz - wx],
        [xz - wy, yz + wx, 1 - (xx + yy)],
    ]


def _projected(named: Mapping[str, Any]) -> tuple[tuple[Node, ...], Node, Node]:
    """The splat's x, y, a, b, c and depth, whether they have a meaning, and the variance along its
    longer axis.
    """
    given = [named[name] for name in ARRAYS]
    x, y, z, *scales, qw, qx, qy, qz = given[:10]
    view, (fx, fy, cx, cy) = given[10:22], given[22:]
    _, _, ahead = _in_camera((x, y, z), view)
    finite = reduce(lambda a, b: a & b, (abs(v) < 1e18 for v in given[:10]))
    sane = finite & (ahead > named["near"]) & (ahead < named["far"])
    x, y, z = (where(sane, v, 0) for v in (x, y, z))
    sizes = [where(sane, s, 1) for s in scales]
    quaternion = [where(sane, q, 1) for q in (qw, qx, qy, qz)]
    longest = maximum(maximum(*sizes[:2]), sizes[2])
    sizes = [maximum(s, longest * named["stretch"]) for s in sizes]
    tx, ty, tz = _in_camera((x, y, z), view)
    tz = where(sane, tz, 1)
    r = 1 / tz
    lens = (fx, cx, named["width"], tx * r), (fy, cy, named["height"], ty * r)
    centre = [fma(focal, slope, middle) for focal, middle, _, slope in lens]
    # The Jacobian of the projection, times the view, times the rotation and the scales: [2, 3].
    rotation, rows = _rotation(*quaternion), []
    for i, (focal, middle, size, slope) in enumerate(lens):
        border = (MARGIN * 0.5) * size
        bounded = minimum(slope, (size - middle + border) / focal)
        bounded = maximum(bounded, -((middle + border) / focal))
        at = focal * r
        row = [fma(-bounded, view[8 + j], view[4 * i + j]) * at for j in range(3)]
        turned = (_dot(row, [rotation[k][j] for k in range(3)]) for j in range(3))
        rows.append([t * s for t, s in zip(turned, sizes, strict=True)])
    xx, yy = (_dot(row, row, named["blur"]) for row in rows)
    xy = _dot(rows[0], rows[1])
    det = fma(xx, yy, -(xy * xy))
    shaped = sane & (det > 0)
    inverse = 1 / where(shaped, det, 1)
    half = LOG2_E * 0.5
    a, b, c = -(half * (yy * inverse)), LOG2_E * (xy * inverse), -(half * (xx * inverse))
    middle = 0.5 * (xx + yy)
    variance = middle + sqrt(maximum(fma(middle, middle, -det), LEAST))
    return (*centre, a, b, c, tz), shaped, variance


def numbers(**named: Any) -> tuple[Node, ...]:
    """Returns x, y, a, b, c of :mod:`ptxgen.numerics.splats` and the depth, as :func:`project`
    does, but also of splats that are culled for their box. Gradients are those of this function.
    """
    found, shaped, _ = _projected(named)
    return tuple(where(shaped, value, 0) for value in found)


def project(**named: Any) -> tuple[Node, ...]:
    """Projects a splat: returns x, y, a, b, c of :mod:`ptxgen.numerics.splats`, its depth, and its
    box of tiles (first column, first row, columns, and tiles in all).

    A splat is culled if its depth is not between ``near`` and ``far``, its position or shape is
    not finite, or its box has no tile of the picture: its numbers are 0, its depth is inf.
    """
    (px, py, *shape, depth), shaped, variance = _projected(named)
    radius, edge = ceil(named["radius_scale"] * sqrt(variance)), named["edge"]
    box = []
    for p, size in ((px, named["width"]), (py, named["height"])):
        tiles = ceil(size / edge)
        low = maximum(minimum(floor((p - radius) / edge), tiles), 0)
        box.append((low, maximum(minimum(ceil((p + radius) / edge), tiles), 0) - low))
    (column, columns), (row, rows) = box
    seen = shaped & (radius > 0) & (columns > 0) & (rows > 0) & (abs(px) < 1e9) & (abs(py) < 1e9)
    found = [where(seen, value, 0) for value in (px, py, *shape)]
    found.append(where(seen, depth, math.inf))
    counts = (column, row, columns, columns * rows)
    return *found, *(cast(where(seen, n, 0), "i32") for n in counts)


def _harmonics(x: Node, y: Node, z: Node, count: int) -> list[Any]:
    """The first ``count`` real spherical harmonics at a direction, in the order and with the signs
    of Kerbl et al.
    """
    xx, yy, zz = x * x, y * y, z * z
    one, two, three = (math.sqrt(n / math.pi) / 2 for n in (1, 3, 15))
    found: list[Any] = [one, -two * y, two * z, -two * x]
    found += [
        three * (x * y),
        -three * (y * z),
        (math.sqrt(5 / math.pi) / 4) * (2 * zz - xx - yy),
        -three * (x * z),
        (three / 2) * (xx - yy),
    ]
    outer, inner = math.sqrt(35 / (2 * math.pi)) / 4, math.sqrt(21 / (2 * math.pi)) / 4
    cubic = math.sqrt(105 / math.pi) / 2
    found += [
        -outer * y * (3 * xx - yy),
        cubic * (x * y) * z,
        -inner * y * (4 * zz - xx - yy),
        (math.sqrt(7 / math.pi) / 4) * z * (2 * zz - 3 * xx - 3 * yy),
        -inner * x * (4 * zz - xx - yy),
        (cubic / 2) * z * (xx - yy),
        -outer * x * (xx - 3 * yy),
    ]
    return found[:count]


def centre(**view: Any) -> tuple[Node, ...]:
    """Place of the camera in the world: the rotation transposed, times the negative translation.

    ``view``: its first three rows, row by row.
    """
    given = [*view.values()]
    moved = [-given[4 * i + 3] for i in range(3)]
    return tuple(_dot([given[4 * i + j] for i in range(3)], moved) for j in range(3))


def shade(**named: Any) -> Node:
    """Colour of a splat from the coefficients of spherical harmonics, seen by the camera:
    ``max(sum(coefficient[k] * harmonic[k]) + 0.5, 0)``, k ascending.

    ``named``: x, y, z of the splat and of the camera, then the coefficients.
    """
    given = [*named.values()]
    coefficients = given[6:]
    towards = [a - b for a, b in zip(given[:3], given[3:6], strict=True)]
    size = _dot(towards, towards)
    r = 1 / sqrt(where(size > 0, size, 1))
    x, y, z = (t * r for t in towards)
    first, *harmonics = _harmonics(x, y, z, len(coefficients))
    total = coefficients[0] * first
    for harmonic, coefficient in zip(harmonics, coefficients[1:], strict=True):
        total = fma(harmonic, coefficient, total)
    return maximum(total + 0.5, 0)
