"""Oracles of Gaussian splats, contract ``splat/1`` (:mod:`ptxgen.numerics.splats`)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ptxgen.numerics.splats import ALPHA_MAX, LN2, WIDTH
from ptxgen.oracle.ex2 import ex2
from ptxgen.oracle.f32 import F32, add, div, fma, mul

Ints = NDArray[Any]
_ONE = np.float32(1)


def splat_entries(
    boxes: ArrayLike, ends: ArrayLike, order: ArrayLike, entries: int, across: int, down: int
) -> tuple[Ints, Ints]:
    """Returns the tile and the splat of each entry. Splat ``order[r]`` has the entries from
    ``ends[r - 1]`` to ``ends[r]``, its tiles in ascending order; entries beyond the last have tile
    ``across * down`` and splat 0.
    """
    tiles = np.full(entries, across * down, np.int32)
    splats = np.zeros(entries, np.int32)
    last = np.asarray(ends)
    rank = np.searchsorted(last, np.arange(entries), side="right")
    there = rank < last.size
    rank = rank[there]
    splat = np.asarray(order)[rank]
    column, row, width, _ = np.asarray(boxes)[splat].astype(np.int64).T
    k = np.flatnonzero(there) - np.where(rank > 0, last[rank - 1], 0)
    width = np.maximum(width, 1)
    tiles[there] = (row + k // width) * across + column + k % width
    splats[there] = splat
    return tiles, splats


class _Tile:
    """The pixels of a tile: masks and offsets, and the opacity of a splat at each."""

    def __init__(self, tile: int, edge: int, width: int, height: int) -> None:
        across = -(-width // edge)
        i, j = np.divmod(np.arange(edge * edge), edge)
        self.rows, self.columns = tile // across * edge + i, tile % across * edge + j
        self.inside = (self.rows < height) & (self.columns < width)
        self.x, self.y = (add(v.astype(np.float32), 0.5) for v in (self.columns, self.rows))

    def opacity(self, point: F32, cutoff: float) -> tuple[F32, F32, F32, F32, F32, Any]:
        """Returns dx, dy, g, p, alpha of each pixel, and whether the splat is folded there."""
        x, y, a, b, c, opacity = point[:6]
        dx, dy = add(x, -self.x), add(y, -self.y)
        e = fma(fma(a, dx, mul(b, dy)), dx, mul(mul(c, dy), dy))
        g = ex2(e)
        p = mul(opacity, g)
        with np.errstate(invalid="ignore"):
            folded = (e <= 0) & (p >= np.float32(cutoff))
        return dx, dy, g, p, np.where(p < np.float32(ALPHA_MAX), p, np.float32(ALPHA_MAX)), folded


def splat_raster(
    points: ArrayLike,
    tiles: ArrayLike,
    splats: ArrayLike,
    background: ArrayLike,
    width: int,
    height: int,
    *,
    tile_size: int = 16,
    alpha_cutoff: float = 1 / 255,
    transmittance_threshold: float = 1e-4,
    max_splat_steps: int = (1 << 31) - 1,
) -> tuple[F32, F32, Ints]:
    """Returns the picture [H, W, 3], the transmittance [H, W], and the number of splats of the tile
    up to the last one that each pixel folds.
    """
    given, of, which = np.asarray(points, np.float32), np.asarray(tiles), np.asarray(splats)
    picture = np.zeros((height, width, 3), np.float32)
    left, stops = np.zeros((height, width), np.float32), np.zeros((height, width), np.int32)
    for tile in range(-(-width // tile_size) * -(-height // tile_size)):
        pixels = _Tile(tile, tile_size, width, height)
        first, last = np.searchsorted(of, (tile, tile + 1))
        t, colour = np.ones(pixels.x.size, np.float32), np.zeros((pixels.x.size, 3), np.float32)
        stop, going = np.zeros(t.size, np.int32), np.ones(t.size, bool)
        for step in range(min(last - first, max_splat_steps)):
            point = given[which[first + step]]
            *_, alpha, folded = pixels.opacity(point, alpha_cutoff)
            after = fma(-t, alpha, t)
            folded &= going
            going &= ~(folded & (after <= np.float32(transmittance_threshold)))
            folded &= going
            more = fma(mul(alpha, t)[:, None], point[6:], colour)
            colour = np.where(folded[:, None], more, colour)
            t, stop = np.where(folded, after, t), np.where(folded, step + 1, stop)
            if not going.any():
                break
        at = pixels.rows[pixels.inside], pixels.columns[pixels.inside]
        ground = np.asarray(background, np.float32)
        picture[at] = fma(t[:, None], ground, colour)[pixels.inside]
        left[at], stops[at] = t[pixels.inside], stop[pixels.inside]
    return picture, left, stops


def _entries_grad(
    points: ArrayLike,
    tiles: ArrayLike,
    splats: ArrayLike,
    places: ArrayLike,
    background: ArrayLike,
    left: ArrayLike,
    stops: ArrayLike,
    dpicture: ArrayLike,
    dleft: ArrayLike,
    *,
    tile_size: int = 16,
    alpha_cutoff: float = 1 / 255,
) -> F32:
    """Returns the gradient of each entry's point, [E, 9], at the entry's place before sorting."""
    given, of, which = np.asarray(points, np.float32), np.asarray(tiles), np.asarray(splats)
    ground, to = np.asarray(background, np.float32), np.asarray(places)
    height, width = np.asarray(left).shape
    found = np.zeros((of.size, WIDTH), np.float32)
    for tile in range(-(-width // tile_size) * -(-height // tile_size)):
        pixels = _Tile(tile, tile_size, width, height)
        at, inside = (pixels.rows[pixels.inside], pixels.columns[pixels.inside]), pixels.inside
        t, dt = np.ones(inside.size, np.float32), np.zeros(inside.size, np.float32)
        dp, stop = np.zeros((inside.size, 3), np.float32), np.zeros(inside.size, np.int32)
        t[inside], dt[inside] = np.asarray(left)[at], np.asarray(dleft)[at]
        dp[inside], stop[inside] = np.asarray(dpicture)[at], np.asarray(stops)[at]
        s = dt
        for channel in range(3):
            s = fma(ground[channel], dp[:, channel], s)
        s, behind = mul(s, t), np.zeros((inside.size, 3), np.float32)
        first = np.searchsorted(of, tile)
        for step in reversed(range(stop.max(initial=0))):
            point, entry = given[which[first + step]], first + step
            dx, dy, g, p, alpha, folded = pixels.opacity(point, alpha_cutoff)
            folded &= step < stop
            r = div(_ONE, add(_ONE, -alpha))
            before = mul(t, r)
            w = mul(alpha, before)
            dalpha = -mul(s, r)
            for channel in range(3):
                shade = point[6 + channel]
                across = fma(shade, before, -mul(behind[:, channel], r))
                dalpha = fma(across, dp[:, channel], dalpha)
            a, b, c = point[2:5]
            v = mul(mul(np.float32(LN2), p), dalpha)
            vx = mul(v, dx)
            two = np.float32(2)
            parts = np.stack(
                [
                    mul(v, fma(mul(two, a), dx, mul(b, dy))),
                    mul(v, fma(mul(two, c), dy, mul(b, dx))),
                    mul(vx, dx),
                    mul(vx, dy),
                    mul(mul(v, dy), dy),
                    mul(g, dalpha),
                    *(mul(w, dp[:, channel]) for channel in range(3)),
                ],
                axis=1,
            )
            parts[:, :6] = np.where((p < np.float32(ALPHA_MAX))[:, None], parts[:, :6], 0)
            parts = np.where(folded[:, None], parts, np.float32(0))
            t = np.where(folded, before, t)
            behind = np.where(folded[:, None], fma(w[:, None], point[6:], behind), behind)
            found[to[entry]] = _tile_sum(parts)
    return found


def _tile_sum(parts: F32) -> F32:
    """Adds the pixels of a tile: halves of 32 neighbours, then the sums in ascending order."""
    sums = parts.reshape(-1, 32, parts.shape[-1])
    while sums.shape[1] > 1:
        half = sums.shape[1] // 2
        sums = add(sums[:, :half], sums[:, half:])
    total: F32 = sums[0, 0]
    for each in sums[1:, 0]:
        total = add(total, each)
    return total


def _sums(parts: ArrayLike, ends: ArrayLike, order: ArrayLike) -> F32:
    """Returns the gradients of all points: sums of their entries, ascending, from 0 on."""
    given, last = np.asarray(parts, np.float32), np.asarray(ends)
    found = np.zeros((last.size, given.shape[1]), np.float32)
    for rank, splat in enumerate(np.asarray(order).tolist()):
        first = int(last[rank - 1]) if rank else 0
        total = np.zeros(given.shape[1], np.float32)
        for entry in range(first, min(int(last[rank]), len(given))):
            total = add(total, given[entry])
        found[splat] = total
    return found


def splat_raster_grad(
    points: ArrayLike,
    tiles: ArrayLike,
    splats: ArrayLike,
    places: ArrayLike,
    ends: ArrayLike,
    order: ArrayLike,
    background: ArrayLike,
    left: ArrayLike,
    stops: ArrayLike,
    dpicture: ArrayLike,
    dleft: ArrayLike | None = None,
    *,
    tile_size: int = 16,
    alpha_cutoff: float = 1 / 255,
) -> F32:
    """Returns the gradients of points, [N, 9]."""
    given = points, tiles, splats, places, background, left, stops, dpicture
    dt = np.zeros(np.shape(left), np.float32) if dleft is None else dleft
    parts = _entries_grad(*given, dt, tile_size=tile_size, alpha_cutoff=alpha_cutoff)
    return _sums(parts, ends, order)
