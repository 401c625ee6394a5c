"""Scenes of Gaussian splats, and the problems on which each of their kernels is run."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from bits import same_bits

import ptxgen
from ptxgen import reference
from ptxgen.numerics.splats import TILES
from ptxgen.ops import OPERATIONS
from ptxgen.spec.splats import SplatSpec
from ptxgen.tiles import SPECS

BACKGROUND = np.array([0.1, 0.2, 0.3], "f4")


def scene(seed: int, count: int, width: int, height: int, harmonics: int = 0) -> list[Any]:
    """Returns splats in front of a camera that is turned, one of them behind it: positions, scales,
    rotations, opacities, colours or coefficients, view and intrinsics.
    """
    rng = np.random.default_rng(seed)
    positions = rng.standard_normal((count, 3)) * [1, 1, 0.5] + [0, 0, 4]
    positions[: count // 20 + 1, 2] *= -1
    scales = np.exp(rng.standard_normal((count, 3)) * 0.4 - 1.8)
    rotations, opacities = rng.standard_normal((count, 4)), rng.uniform(0.2, 1, count)
    colours = rng.uniform(0, 1, (count, 3))
    if harmonics:
        colours = rng.standard_normal((count, harmonics, 3)) * 0.3
    c, s = math.cos(0.2), math.sin(0.2)
    view = [[c, 0, s, 0.2], [0, 1, 0, -0.1], [-s, 0, c, 0.3], [0, 0, 0, 1]]
    intrinsics = [[1.2 * width, 0, width / 2], [0, 1.2 * width, height / 2], [0, 0, 1]]
    arrays = (positions, scales, rotations, opacities, colours, view, intrinsics)
    return [np.array(x, "f4") for x in arrays]


def lists(seed: int, count: int, width: int, height: int, **how: Any) -> tuple[Any, ...]:
    """Returns points, boxes and the lists of tiles of a scene, by the oracle."""
    given = scene(seed, count, width, height)
    of = {"width": width, "height": height, "tile_size": how.get("tile_size", 16)}
    points, depths, boxes = reference.splat_prepare(*given, **of)
    how = {"max_list_entries": None, "overflow": "drop", **how, **of}
    return points, boxes, reference.splat_sort(depths, boxes, **how)


def check_entries(name: str, count: int, entries: int, device: Any) -> None:
    """A list that is longer than the splats' tiles, and one that ends before."""
    _, boxes, (_, _, _, ends, order, _) = lists(1, count, 50, 37)
    given = boxes, ends, order, entries, 4, 3
    with ptxgen.use_device(device):
        found = OPERATIONS["splat_entries"].function(*given, kernel=name)
    for got, expected in zip(found, OPERATIONS["splat_entries"].oracle(*given), strict=True):
        assert np.array_equal(got, expected), name


def check_raster(name: str, count: int, size: tuple[int, int], how: Any, device: Any) -> None:
    """Tiles with more splats than a batch, with none, and beyond the picture's border."""
    tile = {"tile_size": SPECS[name].tile}
    points, _, (tiles, splats, *_) = lists(2, count, *size, **tile)
    given = points, tiles, splats, BACKGROUND, *size
    with ptxgen.use_device(device):
        found = OPERATIONS["splat_raster"].function(*given, **tile, **how, kernel=name)
    expected = OPERATIONS["splat_raster"].oracle(*given, **tile, **how)
    for got, one in zip(found[:2], expected[:2], strict=True):
        same_bits(got, one, spec=name, what=f"{size} {how}")
    assert np.array_equal(found[2], expected[2]), name


def check_gradient(name: str, count: int, size: tuple[int, int], how: Any, device: Any) -> None:
    """Gradients of all points, of a list that is whole and of one that ends before."""
    tile = {"tile_size": SPECS[name].tile}
    points, _, (tiles, splats, places, ends, order, _) = lists(3, count, *size, **tile, **how)
    given = points, tiles, splats
    _, left, stops = OPERATIONS["splat_raster"].oracle(*given, BACKGROUND, *size, **tile)
    rng = np.random.default_rng(3)
    dpicture = rng.standard_normal((*size[::-1], 3)).astype("f4")
    dleft = rng.standard_normal(size[::-1]).astype("f4") if how else None
    given = *given, places, ends, order, BACKGROUND, left, stops, dpicture, dleft
    with ptxgen.use_device(device):
        found = OPERATIONS["splat_raster_grad"].function(*given, **tile, kernel=name)
    expected = OPERATIONS["splat_raster_grad"].oracle(*given, **tile)
    same_bits(found, expected, spec=name, what=f"{size} {how}")


def kernels(name: str) -> list[Callable[[Any], None]]:
    """Problems of each kernel."""
    part = SPECS[name].part
    if part == "entries":
        return [functools.partial(check_entries, name, *each) for each in ((40, 900), (40, 77))]
    small, long = (40, (21, 19), {}), (300, (9, 8), {})
    if part == "raster":
        ends = {"max_splat_steps": 5, "transmittance_threshold": 0.3}
        cases = (small, long, (40, (17, 16), ends))
        return [functools.partial(check_raster, name, *each) for each in cases]
    cases = (small, (80, (9, 8), {"max_list_entries": 60}))
    return [functools.partial(check_gradient, name, *each) for each in cases]


SIZES = ((1, 1), (8, 8), (9, 17), (33, 31))
"""Widths and heights of pictures: a pixel, a tile, tiles that the border cuts."""


def edges() -> Iterator[tuple[str, Callable[[Any], None]]]:
    """Yields labels and checks of pictures with tiles of both sizes, by all kernels."""
    for tile in TILES:
        for count, size in zip((1, 3, 300, 40), SIZES, strict=True):
            label = f"splats_{tile}_{count}_{size[0]}x{size[1]}"
            yield label, functools.partial(check_picture, tile, count, size)


def check_picture(tile: int, count: int, size: tuple[int, int], device: Any) -> None:
    """Renders a picture, and computes the gradients of the points on it."""
    given = scene(5, count, *size, 4)
    of = {"width": size[0], "height": size[1], "tile_size": tile}
    with ptxgen.use_device(device):
        found = ptxgen.splat_render(*given, BACKGROUND, **of)
    expected = reference.splat_render(*given, BACKGROUND, **of)
    for got, one in zip(found[:2], expected[:2], strict=True):
        same_bits(got, one, what=f"{size} {tile}")
    for name, spec in SPECS.items():
        if isinstance(spec, SplatSpec) and spec.part == "gradient" and spec.tile == tile:
            check_gradient(name, count, size, {}, device)
