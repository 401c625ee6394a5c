"""Gaussian splats: projection, lists of tiles, and pictures, with gradients."""

from __future__ import annotations

from collections.abc import Mapping
from functools import wraps
from math import inf, nan
from typing import Annotated, Any

import ptxgen.numerics.splats as numerics
from ptxgen import lazy
from ptxgen.errors import OptionError, ShapeError
from ptxgen.numerics.formula import where
from ptxgen.numerics.option import Bool, Choice, Integer, Kernel, Real
from ptxgen.ops.pointwise import Pointwise
from ptxgen.ops.views import alignment, check_contiguous, check_dtype
from ptxgen.program.buffer import Buffer
from ptxgen.program.build import Builder, ProgramBuilder
from ptxgen.program.operation import Backward, Gradients, Op, op
from ptxgen.spec import Problem
from ptxgen.spec.splats import COUNT_MAX, EDGE_MAX, ENTRIES_MAX

Edge = Annotated[int, Integer(1, EDGE_MAX)]
Positive = Annotated[float, Real(above=0)]
TileSize = Annotated[int, Integer(min(numerics.TILES), max(numerics.TILES))]
Overflow = Annotated[str, Choice("error", "drop")]
Ratio = Annotated[float | None, Real(least=1)]
Clip = Annotated[float | None, Real(above=0)]
Degree = Annotated[int | None, Integer(0, 3)]
Fraction = Annotated[float, Real(least=0, most=1)]
Entries = Annotated[int | None, Integer(1, ENTRIES_MAX)]
Steps = Annotated[int, Integer(1, (1 << 31) - 1)]
ENTRIES_PER_SPLAT = 32
"""Entries of the list for each splat, unless the caller says how many."""


# -- projection -----------------------------------------------------------------------------------
_project = Pointwise(
    numerics.project, "splat_project", (*numerics.ARRAYS, *numerics.NUMBERS, *numerics.OF_BOX)
)
_numbers = Pointwise(numerics.numbers, "splat_numbers", (*numerics.ARRAYS, *numerics.NUMBERS))
"""The function whose gradients are those of ``_project``."""
_centre = Pointwise(numerics.centre, "splat_camera_centre", numerics.OF_CAMERA[:12])
_PLACES = ("x", "y", "z", "from_x", "from_y", "from_z")
_shades = {
    count: Pointwise(
        numerics.shade, f"splat_shade_{count}", (*_PLACES, *(f"c{i}" for i in range(count)))
    )
    for count in numerics.HARMONICS
}
"""Colours from each number of coefficients of spherical harmonics."""
_unless_dropped = Pointwise(
    lambda background, dropped: where(dropped > 0, nan, background), "splat_background"
)


def _sized(name: str, x: Any, *shape: int) -> None:
    if tuple(x.shape) != shape:
        raise ShapeError(f"{name} has shape {list(x.shape)}; takes {list(shape)}")


def _columns(b: Builder, x: Any) -> list[Any]:
    """Returns the columns of a matrix, as vectors."""
    return [b.squeeze(b.narrow(x, 1, i, 1), 1) for i in range(x.shape[1])]


def _view_numbers(b: Builder, view: Any) -> list[Any]:
    """Returns the 12 numbers of the view's first three rows, as arrays of shape [1]."""
    flat = b.reshape(b.packed(view), (16,))
    return [b.narrow(flat, 0, i, 1) for i in range(12)]


def _given(
    b: Builder, positions: Any, scales: Any, rotations: Any, view: Any, intrinsics: Any, how: Any
) -> dict[str, Any]:
    """Returns the arguments of :func:`ptxgen.numerics.splats.numbers`, by name."""
    columns = [c for x in (positions, scales, rotations) for c in _columns(b, x)]
    flat = b.reshape(b.packed(intrinsics), (9,))
    lens = [b.narrow(flat, 0, i, 1) for i in (0, 4, 2, 5)]
    arrays = zip(numerics.ARRAYS, (*columns, *_view_numbers(b, view), *lens), strict=True)
    stretch = 0.0 if how["max_anisotropy"] is None else 1 / how["max_anisotropy"]
    numbers = (*(float(how[n]) for n in ("width", "height", "near", "far", "blur")), stretch)
    return {**dict(arrays), **dict(zip(numerics.NUMBERS, numbers, strict=True))}


def _shade_given(
    b: Builder, positions: Any, coefficients: Any, view: Any, count: int
) -> dict[str, Any]:
    """Returns the arguments of :func:`ptxgen.numerics.splats.shade`, by name."""
    place = [b.narrow(positions, 1, i, 1) for i in range(3)]
    each = [b.squeeze(b.narrow(coefficients, 1, i, 1), 1) for i in range(count)]
    names = (*_PLACES, *(f"c{i}" for i in range(count)))
    seen_from = b.call(_centre, *_view_numbers(b, view))
    return dict(zip(names, (*place, *seen_from, *each), strict=True))


def _bands(colours: Any, degree: int | None) -> int:
    """Returns the number of coefficients that are used; 0 for plain colours."""
    if len(colours.shape) == 2:
        return 0
    there: int = colours.shape[1]
    return there if degree is None else min(there, (degree + 1) ** 2)


def _slopes(
    b: Builder, function: Pointwise, given: Mapping[str, Any], dys: Any, needs: Any
) -> Gradients:
    assert function.vjp is not None, "pointwise functions have gradients"
    found: Gradients = function.vjp(b, Backward(given, {}, (), tuple(dys), frozenset(needs)))
    return found


def _joined(b: Builder, parts: Any) -> Any:
    """Joins vectors to the columns of a matrix."""
    return b.concat([b.unsqueeze(x, 1) for x in parts], 1)


def _prepare_vjp(b: Builder, at: Backward) -> Gradients:
    """Gradients through the projection and the colours. Culled splats have none."""
    dpoints, ddepths = (*at.dys, None)[:2]
    if ddepths is None:
        ddepths = b.filled((dpoints.shape[0],), "float32", 0, dpoints)
    arrays = [at[n] for n in ("positions", "scales", "rotations", "view", "intrinsics")]
    positions, scales, rotations, view, intrinsics = arrays
    given = _given(b, positions, scales, rotations, view, intrinsics, at.options)
    columns = _columns(b, dpoints)
    found: Gradients = {}
    named = {"positions": numerics.OF_SPLAT[:3], "scales": numerics.OF_SPLAT[3:6]}
    named["rotations"] = numerics.OF_SPLAT[6:]
    colours = at["colours"]
    count = _bands(colours, at.options["sh_band"])
    wanted = [n for name, each in named.items() if name in at.needs for n in each]
    if wanted:
        made = _slopes(b, _numbers, given, (*columns[:5], ddepths), wanted)
        found = {
            n: _joined(b, [made[v] for v in each]) for n, each in named.items() if n in at.needs
        }
    if "opacities" in at.needs:
        found["opacities"] = b.contiguous(columns[5])
    shades = b.narrow(dpoints, 1, 6, 3)
    if not count:
        if "colours" in at.needs:
            found["colours"] = b.contiguous(shades)
        return found
    wanted = [*("xyz" if "positions" in at.needs else ())]
    wanted += [f"c{i}" for i in range(count)] if "colours" in at.needs else []
    if not wanted:
        return found
    lit = _shade_given(b, at["positions"], colours, at["view"], count)
    made = _slopes(b, _shades[count], lit, (shades,), wanted)
    if "positions" in at.needs:
        towards = b.concat([made[v] for v in "xyz"], 1)
        found["positions"] = b.add(found["positions"], towards)
    if "colours" in at.needs:
        parts = [b.unsqueeze(made[f"c{i}"], 1) for i in range(count)]
        rest = colours.shape[1] - count
        if rest:
            n = colours.shape[0]
            parts.append(b.filled((n, rest, 3), "float32", 0, colours))
        found["colours"] = b.concat(parts, 1)
    return found


def _finite(arrays: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    """Raises OptionError for a position that is not finite."""
    if not bool((abs(arrays["positions"]) < inf).all()):
        raise OptionError("positions has a number that is not finite")


def _tile(size: int) -> int:
    if size not in numerics.TILES:
        takes = " or ".join(map(str, numerics.TILES))
        raise OptionError(f"tile_size is {size}; takes {takes}")
    return size


@op(vjp=_prepare_vjp, checks=_finite, results=("points", "depths", "boxes"))
def splat_prepare(
    b: ProgramBuilder,
    positions: Buffer,
    scales: Buffer,
    rotations: Buffer,
    opacities: Buffer,
    colours: Buffer,
    view: Buffer,
    intrinsics: Buffer,
    *,
    width: Edge,
    height: Edge,
    tile_size: TileSize = 16,
    near: Positive = 0.01,
    far: Positive = 1e10,
    blur: Positive = 0.3,
    radius_scale: Positive = 3.0,
    max_anisotropy: Ratio = None,
    sh_band: Degree = None,
    check: Bool = False,
) -> tuple[Buffer, Buffer, Buffer]:
    """``covariance = J W R S (J W R S)ᵀ + blur``: projects Gaussian splats into the picture of a
    camera, culls those that it does not see, and evaluates their colours.

    Shapes
        ``positions``, ``scales`` ``[N, 3]``, ``rotations`` ``[N, 4]`` (quaternions w, x, y, z, of
        any length), ``opacities`` ``[N]``; ``colours`` ``[N, 3]``, or coefficients of spherical
        harmonics ``[N, K, 3]`` with K 1, 4, 9 or 16. ``view`` ``[4, 4]`` turns points of the world
        into the camera's (x to the right, y down, z ahead); ``intrinsics`` ``[3, 3]`` has focal
        lengths and centre in pixels. Results: ``points`` ``[N, 9]`` (x, y, the exponent's a, b and
        c, opacity, red, green, blue), ``depths`` ``[N]`` (inf for culled splats), ``boxes``
        ``[N, 4]`` (first column and row of tiles, columns, and tiles in all; 0 for culled splats).
    Dtypes
        float32; ``boxes`` int32.
    Order
        The formulas of :mod:`ptxgen.numerics.splats`, each operation rounded once, in f32. A
        splat depends on itself and the camera alone. :func:`ptxgen.reference.splat_prepare` returns
        the same bits.
    Options
        ``width``, ``height``: of the picture. ``near``, ``far``: depths between which splats are
        seen. ``blur``: added to the variance along x and y, in pixels squared. ``radius_scale``:
        radius of a splat's box, in standard deviations of its longer axis. ``max_anisotropy``: a
        splat's shorter scales are raised to its longest one divided by this. ``sh_band``: the
        highest degree of spherical harmonics that is used (all by default). ``check``: waits for
        positions, and raises for one that is not finite.
    Errors
        OptionError for a position that is not finite in host memory, or with ``check``; without it,
        such a splat is culled. ShapeError, DtypeError, OptionError, DeviceError or CompileError,
        before anything is launched or written.
    """
    for name, x in (
        *(("positions", positions), ("scales", scales), ("rotations", rotations)),
        *(("opacities", opacities), ("colours", colours), ("view", view)),
        ("intrinsics", intrinsics),
    ):
        check_dtype(name, x.dtype, ("float32",))
    if len(positions.shape) != 2:
        raise ShapeError(f"positions has shape {list(positions.shape)}; takes [N, 3]")
    count = positions.shape[0]
    _sized("positions", positions, count, 3)
    _sized("scales", scales, count, 3)
    _sized("rotations", rotations, count, 4)
    _sized("opacities", opacities, count)
    _sized("view", view, 4, 4)
    _sized("intrinsics", intrinsics, 3, 3)
    plain = tuple(colours.shape) == (count, 3)
    lit = len(colours.shape) == 3 and colours.shape[1] in numerics.HARMONICS
    if not plain and not (lit and tuple(colours.shape[::2]) == (count, 3)):
        raise ShapeError(
            f"colours has shape {list(colours.shape)}; takes [{count}, 3], or [{count}, K, 3] with "
            f"K one of {', '.join(map(str, numerics.HARMONICS))}"
        )
    if count > COUNT_MAX:
        raise ShapeError(f"positions has {count} splats; takes at most {COUNT_MAX}")
    _tile(tile_size)
    if b.abstract or not count:
        points, depths = (b.result(s, "float32") for s in ((count, numerics.WIDTH), (count,)))
        return points, depths, b.result((count, numerics.BOX), "int32")
    how = {
        **{"width": width, "height": height, "near": near, "far": far, "blur": blur},
        "max_anisotropy": max_anisotropy,
    }
    given = _given(b, positions, scales, rotations, view, intrinsics, how)
    of = ("float32",) * 6 + ("int32",) * 4
    made = b.call(_project, *given.values(), radius_scale, float(tile_size), out_dtype=of)
    bands = _bands(colours, sh_band)
    if bands:
        named = _shade_given(b, positions, colours, view, bands)
        colours = b.call(_shades[bands], *named.values())
    parts = [*(b.unsqueeze(x, 1) for x in made[:5]), b.unsqueeze(opacities, 1), colours]
    return b.concat(parts, 1), made[5], _joined(b, made[6:])


# -- lists of tiles -------------------------------------------------------------------------------
@op(
    oracle=lazy.function("ptxgen.oracle.splats:splat_entries"),
    public=False,
    results=("tiles", "splats"),
    dtypes={"ends": "int64", "order": "int64"},
)
def splat_entries(
    b: ProgramBuilder,
    boxes: Buffer,
    ends: Buffer,
    order: Buffer,
    entries: Annotated[int, Integer(1, ENTRIES_MAX)],
    across: Edge,
    down: Edge,
    *,
    kernel: Kernel = None,
) -> tuple[Buffer, Buffer]:
    """Lists the tiles of splats, in the order ``order``: the tile and the splat of each entry."""
    tiles, found = b.result((entries,), "int32"), b.result((entries,), "int32", name="splats")
    if b.abstract:
        return tiles, found
    values = ("COUNT", order.size), ("ENTRIES", entries)
    scalars = ("ACROSS", across), ("DOWN", down)
    bind = {"boxes": boxes, "ends": ends, "order": order, "tiles": tiles, "splats": found}
    _contiguous(bind)
    what = f"{entries} entries of {order.size} splats"
    b.launch(lambda: Problem(("splats", "entries"), "f32", values, scalars, what), bind, kernel)
    return tiles, found


def _contiguous(bind: Mapping[str, Any]) -> None:
    for name, x in bind.items():
        if isinstance(x, Buffer):
            check_contiguous(name, x)
            alignment(name, x)


def _listed(count: int, entries: int | None) -> int:
    """Returns the length of the list of ``count`` splats."""
    return min(entries or max(count, 1) * ENTRIES_PER_SPLAT, ENTRIES_MAX)


def _fits(arrays: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    """Raises OptionError if the list is too short, unless the farthest splats may be dropped."""
    boxes = arrays["boxes"]
    most = _listed(boxes.shape[0], options["max_list_entries"])
    _refuse_short(most, int(boxes[:, 3].sum()) - most, options)


def _refuse_short(entries: int, missing: int, options: Mapping[str, Any]) -> None:
    """Raises OptionError if a list of ``entries`` lacks ``missing`` that may not be dropped."""
    if options["overflow"] == "error" and missing > 0:
        raise OptionError(
            f"max_list_entries is {entries}; the splats have {entries + missing} tiles. Pass more, "
            "or overflow='drop' to drop the farthest"
        )


@op(
    checks=_fits,
    results=("tiles", "splats", "places", "ends", "order", "dropped"),
    dtypes={"boxes": "int32"},
)
def splat_sort(
    b: ProgramBuilder,
    depths: Buffer,
    boxes: Buffer,
    *,
    width: Edge,
    height: Edge,
    tile_size: TileSize = 16,
    max_list_entries: Entries = None,
    overflow: Overflow = "error",
    check: Bool = False,
) -> tuple[Buffer, Buffer, Buffer, Buffer, Buffer, Buffer]:
    """``sort(pairs, key=(tile, depth, index))``: lists the splats of each tile of a picture.

    Shapes
        ``depths`` ``[N]`` and ``boxes`` ``[N, 4]`` of :func:`ptxgen.splat_prepare`. Results, E
        being ``max_list_entries``: ``tiles`` and ``splats`` ``[E]``, the pairs; ``places`` ``[E]``,
        of each pair before sorting by tiles; ``order`` ``[N]``, splats by depth; ``ends`` ``[N]``,
        sums of their tiles; ``dropped`` ``[]``, the number of pairs beyond E.
    Dtypes
        ``depths`` float32, ``boxes``, ``tiles`` and ``splats`` int32, others int64.
    Order
        Sorting is exact and stable. :func:`ptxgen.reference.splat_sort` returns the same.
    Options
        ``max_list_entries``: length of the list, 32 times N by default. ``overflow``: "error", or
        "drop", which leaves out the pairs of the farthest splats. ``check``: waits for the boxes,
        and raises if the list is too short.
    Errors
        OptionError for a list that is too short, if ``boxes`` is in host memory, or with ``check``;
        without it, ``dropped`` says how many pairs were left out. ShapeError, DtypeError,
        OptionError, DeviceError or CompileError, before anything is launched or written.
    """
    check_dtype("depths", depths.dtype, ("float32",))
    check_dtype("boxes", boxes.dtype, ("int32",))
    if len(depths.shape) != 1:
        raise ShapeError(f"depths has shape {list(depths.shape)}; takes [N]")
    count = depths.shape[0]
    _sized("boxes", boxes, count, numerics.BOX)
    edge, entries = _tile(tile_size), _listed(count, max_list_entries)
    if b.abstract or not count:
        made = [b.result((entries,), dtype) for dtype in ("int32", "int32", "int64")]
        ends, order = b.result((count,), "int64"), b.result((count,), "int64")
        dropped = b.result((), "int64")
        if not b.abstract:
            made = [b.fill(made[0], -(-width // edge) * -(-height // edge), out=made[0]), *made[1:]]
            made[1:] = [b.fill(x, 0, out=x) for x in made[1:]]
            dropped = b.fill(dropped, 0, out=dropped)
        return made[0], made[1], made[2], ends, order, dropped
    order = b.argsort(depths)
    tiled = b.gather(b.squeeze(b.narrow(boxes, 1, 3, 1), 1), order)
    ends = b.cumsum(b.cast(tiled, "int64"))
    across, down = -(-width // edge), -(-height // edge)
    tiles, listed = b.splat_entries(b.packed(boxes), ends, order, entries, across, down)
    tiles, places = b.sort_below(tiles, across * down + 1)
    last = b.reshape(b.narrow(ends, 0, count - 1, 1), ())
    dropped = b.maximum(b.sub(last, entries), 0)
    return tiles, b.gather(listed, places), places, ends, order, dropped


# -- pictures -------------------------------------------------------------------------------------
def _lists(b: ProgramBuilder, points: Buffer, *lists: tuple[str, Buffer, str]) -> None:
    check_dtype("points", points.dtype, ("float32",))
    if len(points.shape) != 2:
        raise ShapeError(f"points has shape {list(points.shape)}; takes [N, {numerics.WIDTH}]")
    _sized("points", points, points.shape[0], numerics.WIDTH)
    for name, x, dtype in lists:
        check_dtype(name, x.dtype, (dtype,))
        _sized(name, x, *lists[0][1].shape)


def _values(points: Buffer, tiles: Buffer, width: int, height: int, edge: int) -> Any:
    sizes = ("WIDTH", width), ("HEIGHT", height), ("TILE", edge)
    return ("COUNT", points.shape[0]), ("ENTRIES", tiles.size), *sizes


@op(
    oracle=lazy.function("ptxgen.oracle.splats:splat_raster"),
    public=False,
    results=("picture", "transmittance", "stops"),
    dtypes={"tiles": "int32", "splats": "int32"},
)
def splat_raster(
    b: ProgramBuilder,
    points: Buffer,
    tiles: Buffer,
    splats: Buffer,
    background: Buffer,
    width: Edge,
    height: Edge,
    *,
    tile_size: TileSize = 16,
    alpha_cutoff: Fraction = 1 / 255,
    transmittance_threshold: Fraction = 1e-4,
    max_splat_steps: Steps = (1 << 31) - 1,
    kernel: Kernel = None,
) -> tuple[Buffer, Buffer, Buffer]:
    """Draws splats: the picture, the transmittance that is left, and each pixel's last splat."""
    picture = b.result((height, width, 3), "float32")
    left, stops = b.result((height, width), "float32"), b.result((height, width), "int32")
    if b.abstract:
        return picture, left, stops
    bind = {
        **{"points": points, "tiles": tiles, "splats": splats, "background": background},
        **{"picture": picture, "left": left, "stops": stops},
    }
    _contiguous(bind)
    values = _values(points, tiles, width, height, tile_size)
    scalars = (
        *(("MOST", max_splat_steps), ("CUTOFF", alpha_cutoff)),
        ("THRESHOLD", transmittance_threshold),
    )
    what = f"picture of {width} x {height}, {points.shape[0]} splats"
    b.launch(lambda: Problem(("splats", "raster"), "f32", values, scalars, what), bind, kernel)
    return picture, left, stops


@op(
    oracle=lazy.function("ptxgen.oracle.splats:splat_raster_grad"),
    public=False,
    results=("dpoints",),
    dtypes={
        **{"tiles": "int32", "splats": "int32", "stops": "int32"},
        **{"places": "int64", "ends": "int64", "order": "int64"},
    },
)
def splat_raster_grad(
    b: ProgramBuilder,
    points: Buffer,
    tiles: Buffer,
    splats: Buffer,
    places: Buffer,
    ends: Buffer,
    order: Buffer,
    background: Buffer,
    left: Buffer,
    stops: Buffer,
    dpicture: Buffer,
    dleft: Buffer | None = None,
    *,
    tile_size: TileSize = 16,
    alpha_cutoff: Fraction = 1 / 255,
    kernel: Kernel = None,
) -> Buffer:
    """Gradient of the points of ``splat_raster``."""
    dpoints = b.result(points.shape, "float32")
    if b.abstract:
        return dpoints
    height, width = left.shape
    bind = {
        **{"points": points, "tiles": tiles, "splats": splats, "places": places, "ends": ends},
        **{"order": order, "background": background, "left": left, "stops": stops},
        **{"dpicture": dpicture, "dleft": dleft, "dpoints": dpoints},
    }
    _contiguous(bind)
    values = _values(points, tiles, width, height, tile_size)
    scalars = (("CUTOFF", alpha_cutoff),)
    what = f"gradient of a picture of {width} x {height}, {points.shape[0]} splats"
    b.launch(lambda: Problem(("splats", "gradient"), "f32", values, scalars, what), bind, kernel)
    return dpoints


def _rasterize_vjp(b: Builder, at: Backward) -> Gradients:
    """Gradients by points and background; those of the picture are clipped before, if asked."""
    dpicture, dleft = (*at.dys, None)[:2]
    clip, how = at.options["loss_grad_clip"], at.only("tile_size", "alpha_cutoff")
    if clip is not None:
        dpicture = b.clamp(dpicture, -clip, clip)
    dpicture = b.packed(dpicture)
    left, stops = at.results[1:3]
    ground = at.arguments.get("background")
    if ground is None:
        ground = b.filled((3,), "float32", 0, dpicture)
    found: Gradients = {}
    if "points" in at.needs:
        lists = [at[n] for n in ("points", "tiles", "splats", "places", "ends", "order")]
        given = (*(b.packed(x) for x in lists), b.packed(ground), left, stops, dpicture)
        found["points"] = b.splat_raster_grad(*given, b.packed(dleft), **how)
    if "background" in at.needs:
        found["background"] = b.sum(b.mul(dpicture, b.unsqueeze(left, -1)), axis=(0, 1))
    return found


@op(
    vjp=_rasterize_vjp,
    results=("picture", "transmittance", "stops"),
    dtypes={
        **{"tiles": "int32", "splats": "int32"},
        **{"places": "int64", "ends": "int64", "order": "int64"},
    },
)
def splat_rasterize(
    b: ProgramBuilder,
    points: Buffer,
    tiles: Buffer,
    splats: Buffer,
    places: Buffer,
    ends: Buffer,
    order: Buffer,
    background: Buffer | None = None,
    *,
    width: Edge,
    height: Edge,
    tile_size: TileSize = 16,
    alpha_cutoff: Fraction = 1 / 255,
    transmittance_threshold: Fraction = 1e-4,
    max_splat_steps: Steps = (1 << 31) - 1,
    loss_grad_clip: Clip = None,
) -> tuple[Buffer, Buffer, Buffer]:
    """Draws splats from front to back: ``colour += alpha * t * rgb``, ``t *= 1 - alpha`` with
    ``alpha = min(opacity * exp2(e), 0.99)``; then ``picture = colour + t * background``.

    Shapes
        ``points`` ``[N, 9]`` of :func:`ptxgen.splat_prepare`, ``tiles``, ``splats``, ``places``
        ``[E]``, ``ends``, ``order`` ``[N]`` of :func:`ptxgen.splat_sort`; ``background`` ``[3]``
        (black by default). Results: ``picture`` ``[height, width, 3]``; ``transmittance``
        ``[height, width]``, the t that is left; ``stops`` ``[height, width]``, the number of the
        tile's splats up to the last one that was added.
    Dtypes
        float32; ``tiles``, ``splats`` and ``stops`` int32; ``places``, ``ends`` and ``order``
        int64.
    Order
        Contract ``splat/1`` (:mod:`ptxgen.numerics.splats`): a pixel folds its splats by (depth,
        index); gradients add pixels and tiles in a stated order. Nothing depends on the order in
        which tiles are drawn. :func:`ptxgen.reference.splat_rasterize` returns the same bits.
    Options
        ``alpha_cutoff``: the least ``opacity * exp2(e)`` that is added.
        ``transmittance_threshold``: the fold ends before the splat that would leave this or less.
        ``max_splat_steps``: it also ends after so many splats of a tile. ``loss_grad_clip``: bounds
        gradients of the picture, in magnitude, before anything else is computed of them.
    Errors
        ShapeError, DtypeError, OptionError, DeviceError or CompileError, before anything is
        launched or written.
    """
    entries = ("tiles", tiles, "int32"), ("splats", splats, "int32"), ("places", places, "int64")
    _lists(b, points, *entries)
    for name, x in (("ends", ends), ("order", order)):
        check_dtype(name, x.dtype, ("int64",))
        _sized(name, x, points.shape[0])
    if background is not None:
        check_dtype("background", background.dtype, ("float32",))
        _sized("background", background, 3)
    ground = b.filled((3,), "float32", 0, points) if background is None else b.packed(background)
    how = {
        **{"tile_size": _tile(tile_size), "alpha_cutoff": alpha_cutoff},
        **{"transmittance_threshold": transmittance_threshold, "max_splat_steps": max_splat_steps},
    }
    if not points.shape[0] and not b.abstract:
        picture = b.contiguous(b.expand(ground, (height, width, 3)))
        left = b.filled((height, width), "float32", 1, points)
        return picture, left, b.filled((height, width), "int32", 0, points)
    given = (b.packed(x) for x in (points, tiles, splats))
    picture, left, stops = b.splat_raster(*given, ground, width, height, **how)
    return picture, left, stops


# -- all of it ------------------------------------------------------------------------------------
_PICTURED = ("picture", "transmittance", "dropped")
_KEPT = ("points", "tiles", "splats", "places", "ends", "order", "ground", "stops")


def _render_vjp(b: Builder, at: Backward) -> Gradients:
    """Gradients of :func:`splat_render`: through the picture, then through the projection."""
    how, kept = at.options, dict(zip(_KEPT, at.results[len(_PICTURED) :], strict=True))
    results = *at.results[:2], kept["stops"]
    arguments = {**kept, "background": kept["ground"]}
    needs = {"points"} | ({"background"} & at.needs)
    drawn = Backward(arguments, how, results, at.dys[:2], frozenset(needs))
    found = _rasterize_vjp(b, drawn)
    dpoints = found.pop("points")
    given = Backward(at.arguments, how, (), (dpoints,), at.needs - {"background"})
    return found | _prepare_vjp(b, given)


def _render(
    b: ProgramBuilder,
    positions: Buffer,
    scales: Buffer,
    rotations: Buffer,
    opacities: Buffer,
    colours: Buffer,
    view: Buffer,
    intrinsics: Buffer,
    background: Buffer | None = None,
    *,
    width: Edge,
    height: Edge,
    tile_size: TileSize = 16,
    near: Positive = 0.01,
    far: Positive = 1e10,
    blur: Positive = 0.3,
    radius_scale: Positive = 3.0,
    max_anisotropy: Ratio = None,
    sh_band: Degree = None,
    max_list_entries: Entries = None,
    overflow: Overflow = "error",
    alpha_cutoff: Fraction = 1 / 255,
    transmittance_threshold: Fraction = 1e-4,
    max_splat_steps: Steps = (1 << 31) - 1,
    loss_grad_clip: Clip = None,
    check: Bool = False,
) -> tuple[Buffer, ...]:
    """``rasterize(sort(prepare(splats, camera)))``: renders Gaussian splats by
    :func:`ptxgen.splat_prepare`, :func:`ptxgen.splat_sort` and :func:`ptxgen.splat_rasterize`, with
    their arguments and options.

    Shapes
        As those functions; results ``picture`` ``[height, width, 3]``, ``transmittance`` ``[height,
        width]`` and ``dropped`` ``[]``.
    Dtypes
        float32; ``dropped`` int64.
    Order
        As those functions say. Gradients reach positions, scales, rotations, opacities, colours (or
        coefficients) and background. :func:`ptxgen.reference.splat_render` returns the same bits.
    Options
        As those functions. ``overflow="error"``: a list that is too short raises for arrays in host
        memory and with ``check``, once the picture is drawn; else it makes the whole picture NaN,
        and ``dropped`` says how many pairs (tile, splat) were left out.
    Errors
        As those functions.
    """
    camera_of: dict[str, Any] = {"width": width, "height": height, "tile_size": tile_size}
    points, depths, boxes = b.splat_prepare(
        *(positions, scales, rotations, opacities, colours, view, intrinsics),
        **camera_of,
        **{"near": near, "far": far, "blur": blur, "radius_scale": radius_scale},
        **{"max_anisotropy": max_anisotropy, "sh_band": sh_band},
    )
    *lists, dropped = b.splat_sort(
        depths, boxes, **camera_of, max_list_entries=max_list_entries, overflow="drop"
    )
    if background is not None:
        check_dtype("background", background.dtype, ("float32",))
        _sized("background", background, 3)
        ground = b.packed(background)
    else:
        ground = b.filled((3,), "float32", 0, positions)
    if overflow == "error" and not b.abstract:
        ground = b.call(_unless_dropped, ground, dropped)
    picture, left, stops = b.splat_rasterize(
        *(points, *lists, ground),
        **camera_of,
        **{"alpha_cutoff": alpha_cutoff, "transmittance_threshold": transmittance_threshold},
        **{"max_splat_steps": max_splat_steps, "loss_grad_clip": loss_grad_clip},
    )
    return picture, left, dropped, points, *lists, ground, stops


def _none_dropped(
    arrays: Mapping[str, Any], options: Mapping[str, Any], results: tuple[Any, ...]
) -> None:
    """Raises OptionError if the list was too short, unless the farthest splats may be dropped."""
    count, dropped = arrays["positions"].shape[0], int(results[_PICTURED.index("dropped")])
    _refuse_short(_listed(count, options["max_list_entries"]), dropped, options)


@wraps(_render)
def _pictured(b: ProgramBuilder, /, *splats: Buffer, **how: Any) -> tuple[Buffer, ...]:
    return _render(b, *splats, **how)[: len(_PICTURED)]


splat_render_kept: Op = op(
    name="splat_render_kept",
    vjp=_render_vjp,
    checks=_finite,
    verifies=_none_dropped,
    public=False,
    results=(*_PICTURED, *_KEPT),
)(_render)
"""Operation that also returns what the gradients of ``splat_render`` read."""
splat_render: Op = op(
    name="splat_render",
    vjp=_render_vjp,
    keeping=splat_render_kept,
    checks=_finite,
    verifies=_none_dropped,
    results=_PICTURED,
)(_pictured)
