"""Implicit GEMM: convolutions whose kernels read windows from the image, without im2col columns.

:mod:`ptxgen.spec.conv` defines the variables and scalars of these problems.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from math import gcd, prod

from ptxgen.numerics.activation import CODES
from ptxgen.numerics.contract import TC16_CHUNKS
from ptxgen.numerics.dtype import DTYPES, ITEMSIZE
from ptxgen.ops.views import alignment, leading
from ptxgen.program.algorithms import RefusedError, needs, needs_kernel
from ptxgen.program.buffer import Buffer, imagined
from ptxgen.program.build import ProgramBuilder
from ptxgen.spec import ACTIVATION_SHIFT, ALONE, BIAS_F32, OUT_F32, Key, Problem
from ptxgen.spec.conv import EDGE_MAX, REACH_MAX, SIDE_MAX, STEP_MAX, UNITS
from ptxgen.spec.depthwise import CHANNELS, SHARED, VECTOR, WINDOWS, DepthwiseSpec, nbytes
from ptxgen.spec.depthwise import UNITS as COPIED
from ptxgen.spec.mma import VECTOR as WHOLE
from ptxgen.tiles.conv import DEPTHWISE, KEY, SUMMED, TURNED

LOOSE, LOOSE_MAX = 64, 1 << 24
"""Limits of the kernels that load windows element by element, because channels are no multiple of
8. ``LOOSE``: output channels per tile. ``LOOSE_MAX``: most elements that all tiles load, if images
have fewer than 8 channels or a single tap is used; above it such kernels are refused, as im2col
columns are faster.
"""
OUTPUTS_MAX = 768
"""Most output channels for which fprop loads windows element by element, again in each tile of
output channels: above it, im2col columns are faster, as they are written once.
"""


@dataclass(frozen=True)
class AxisWindows:
    """Windows along one dimension: tap ``j < taps`` of window ``i < count`` has the index
    ``first + i * step + j * dilation`` (``dilation`` may be negative).
    """

    first: int
    count: int
    step: int
    taps: int
    dilation: int

    @property
    def side(self) -> int:
        """Distance from a window's first tap to its last, in elements; may be negative."""
        return (self.taps - 1) * self.dilation

    @property
    def low(self) -> int:
        """Lowest index of a tap of the first window."""
        return self.first + min(self.side, 0)

    @property
    def last(self) -> int:
        """Lowest index of a tap of the last window."""
        return self.low + (self.count - 1) * self.step

    @property
    def span(self) -> tuple[int, int]:
        """Lowest and highest index of all taps of all windows; (0, 0) without taps."""
        return (self.low, self.last + abs(self.side)) if self.taps else (0, 0)


UNIT_AXIS = AxisWindows(0, 1, 1, 1, 1)
"""One window of one tap, for an image dimension that does not exist (Y of a sequence)."""


@dataclass(frozen=True)
class TapSubset:
    """Windows along one dimension that use only the taps ``tap, tap + every, ...`` of a filter.
    ``along``: these windows, whose taps ``j = 0, 1, ...`` are the filter's ``tap + j * every``.
    """

    along: AxisWindows
    tap: int = 0
    every: int = 1


EMPTY_AXIS = TapSubset(AxisWindows(0, 0, 1, 0, 0))
"""A tap subset without windows and taps."""


def fprop(
    b: ProgramBuilder,
    x: Buffer,
    along: Sequence[AxisWindows],
    w: Buffer,
    bias: Buffer | None,
    out: Buffer,
    activation: str | None,
    kernel: str | None = None,
) -> None:
    """Computes ``activation(windows · wᵀ + bias)`` into ``out`` [N, *windows, O] in one implicit
    GEMM.

    ``along``: the windows of ``x`` [N, *, C]; ``w``: [O, *taps, C]; ``bias``: [O], or None.
    Operands that kernels cannot read in place are copied. Raises RefusedError where no kernel
    serves these windows and strides. ``kernel`` forces a route by its name.
    """
    _check_supported(x, along)
    needs(all(map(_fits_tma, along, x.shape[1:-1])), "the copy engine takes no such windows")
    needs(_is_writable(out), "neighbouring channels of the result are not adjacent in memory")
    loose = x.shape[-1] % 8 != 0 and w.shape[0] <= OUTPUTS_MAX and prod(w.shape[1:-1]) > 1
    if loose or _is_transposed(w):
        with suppress(RefusedError):
            subsets = [[TapSubset(a)] for a in along]
            return strided_dgrad(b, x, subsets, w, bias, out, activation, kernel)
    readable = x if _is_readable(x) else _as_copied(x)
    length = w.shape[0], prod(a.taps for a in along) * w.shape[-1]
    rows = w.reshaped(length)
    if rows is None or rows.strides[1] != 1:
        rows = _as_copied(w).reshaped(length)
    assert rows is not None, "rows one behind the other have any shape"
    problem = _fprop_problem(readable, along, rows, bias, out, activation)
    needs_kernel(b, problem)
    x = x if x is readable else b.copied(x)
    w = rows if rows.memory is w.memory else b.reshape(b.copied(w), length)
    b.launch(lambda: problem, {"x": x, "w": w, "bias": bias, "c": out}, kernel)


def strided_dgrad(
    b: ProgramBuilder,
    x: Buffer,
    subsets: Sequence[Sequence[TapSubset]],
    w: Buffer,
    bias: Buffer | None,
    out: Buffer,
    activation: str | None,
    kernel: str | None = None,
) -> None:
    """Computes ``activation(windows · wᵀ + bias)`` into ``out`` in one implicit GEMM, for one or
    two tap subsets along each dimension. There are two in a gradient with stride 2, where results
    with even and with odd index use different taps: results of the two subsets alternate in
    ``out``.

    ``w`` [O, *taps, C]: all taps, any strides; each subset uses its own taps. C may be any number:
    if it is no multiple of 8, elements are loaded one by one (see :data:`LOOSE_MAX`). Operands that
    kernels cannot access in place are copied. Raises RefusedError where no kernel does that.
    """
    _check_supported(x, [_most_taps(each) for each in subsets])
    needs(max(map(len, subsets)) <= 2, "windows lie in more than two ways along a dimension")
    for i, (subset, *others) in enumerate(subsets):
        if not others:  # a single subset takes only its own taps
            w = b.narrow(w, i + 1, subset.tap, subset.along.taps, subset.every)
    subsets = [each if each[1:] else [TapSubset(each[0].along)] for each in subsets]
    sides = zip(x.shape[1:-1], subsets, strict=True)
    near = all(_fits_int32(subset.along, size) for size, each in sides for subset in each)
    needs(near, "places are no signed integers")
    loose = x.shape[-1] % 8 != 0
    taps = prod(_most_taps(each).taps for each in subsets)
    few = x.shape[-1] < WHOLE or taps == 1
    numbers = _loaded_elements(x, subsets) * -(-out.shape[-1] // LOOSE) if loose and few else 0
    needs(numbers <= LOOSE_MAX, f"{numbers} numbers are loaded one by one, more than {LOOSE_MAX}")
    readable = x if _is_readable(x, x.itemsize if loose else 16) else _as_copied(x)
    readable = _as_copied(x) if loose and not _pixels(readable)["PIXELS"] else readable
    steps = [step for step, size in zip(w.strides[1:], w.shape[1:], strict=True) if size > 1]
    whole = _is_transposed(w) and alignment("w", w, *steps) == 16
    turned = w if whole else _unpadded(imagined(_padded_shape(w), w.dtype), w)
    target = out if _is_writable(out) else _as_copied(out)
    problem = _dgrad_problem(readable, subsets, turned, bias, target, activation)
    needs_kernel(b, problem)
    x = x if x is readable else b.copied(x)
    if w is not turned:
        made = _unpadded(b.empty(_padded_shape(w), w.dtype), w)
        b.copied(b.permute(w, _swap_channels(w)), b.permute(made, _swap_channels(w)))
        w = made
    target = out if target is out else b.empty(out.shape, out.dtype)
    b.launch(lambda: problem, {"x": x, "w": w, "bias": bias, "c": target}, kernel)
    if target is not out:
        b.copied(target, out)


def _loaded_elements(x: Buffer, subsets: Sequence[Sequence[TapSubset]]) -> int:
    """Returns the number of elements in all windows of all images."""
    along = [sum(s.along.count * s.along.taps for s in each) for each in subsets]
    return x.shape[0] * x.shape[-1] * prod(along)


def _most_taps(subsets: Sequence[TapSubset]) -> AxisWindows:
    """Returns the windows of the subset with the most taps."""
    return max((subset.along for subset in subsets), key=lambda a: a.taps)


def _swap_channels(w: Buffer) -> tuple[int, ...]:
    """Returns the permutation that swaps dimensions O and C of filters [O, *taps, C]."""
    last = len(w.shape) - 1
    return (last, *range(1, last), 0)


def _padded_shape(w: Buffer) -> tuple[int, ...]:
    """Returns shape [C, *taps, O] of filters ``w`` [O, *taps, C], O rounded up to 8 (16 bytes)."""
    last = len(w.shape) - 1
    return (w.shape[last], *w.shape[1:last], -(-w.shape[0] // 8) * 8)


def _unpadded(x: Buffer, w: Buffer) -> Buffer:
    """Returns ``x`` [C, *taps, O rounded up] without its padding, as a view of the shape of filters
    ``w`` [O, *taps, C].
    """
    return replace(x, shape=(*x.shape[:-1], w.shape[0])).permuted(_swap_channels(w))


def wgrad(
    b: ProgramBuilder,
    x: Buffer,
    along: Sequence[AxisWindows],
    dy: Buffer,
    out: Buffer,
    kernel: str | None = None,
) -> None:
    """Computes ``dyᵀ · windows`` into ``out`` [O, taps * C], summed over the windows; ``dy``
    [windows, O]. Raises RefusedError where no kernel does that in one launch.

    Channels are padded with zeros to a multiple of 8, and their columns of the result are dropped.
    A ``dy`` not aligned to 16 bytes is copied to rows that are.
    """
    _check_supported(x, along)
    needs(all(map(_fits_tma, along, x.shape[1:-1])), "the copy engine takes no such windows")
    adjacent = out.strides[1] == dy.strides[1] == 1
    needs(adjacent, "elements of a row of dy or of the result are not adjacent in memory")
    (count, outs), channels = dy.shape, x.shape[-1]
    taps, even = prod(a.taps for a in along), _round_up(channels, 8)
    padded = even != channels
    readable = x if _is_readable(x) and not padded else imagined((*x.shape[:-1], even), x.dtype)
    rows = dy
    if alignment("dy", dy, leading(count, outs, dy.strides[0], dy.itemsize)) < 16:
        rows = _first_columns(imagined((count, _round_up(outs, 8)), dy.dtype), outs)
    made = imagined((outs, taps * even), out.dtype) if padded else out
    problem = _wgrad_problem(readable, along, rows, made)
    needs_kernel(b, problem)
    if padded:
        readable = b.pad(x, [*[(0, 0)] * (len(x.shape) - 1), (0, even - channels)])
        made = b.empty(made.shape, made.dtype)
    elif readable is not x:
        readable = b.copied(x)
    if rows is not dy:
        rows = _first_columns(b.empty((count, _round_up(outs, 8)), dy.dtype), outs)
        b.copied(dy, rows)
    b.launch(lambda: problem, {"x": readable, "dy": rows, "bias": None, "c": made}, kernel)
    if padded:
        each = (_first_columns(b.reshape(v, (outs, taps, -1)), channels) for v in (made, out))
        b.copied(*each)


def _first_columns(x: Buffer, count: int) -> Buffer:
    """Returns a view of the first ``count`` columns of ``x`` [..., columns]."""
    return replace(x, shape=(*x.shape[:-1], count))


def _wgrad_problem(x: Buffer, along: Sequence[AxisWindows], dy: Buffer, out: Buffer) -> Problem:
    """Returns the problem of :func:`wgrad`: windows of ``x``, ``dy`` [windows, O]."""
    scalars, _, _ = _window_scalars(x, along)
    count, outs = dy.shape
    lda = leading(count, outs, dy.strides[0], dy.itemsize)
    values = {
        "M": outs,
        "N": out.shape[1],
        "K": count,
        "TAPS": prod(a.taps for a in along),
        "UNIT": gcd(x.shape[-1], UNITS.high),
        "FLAT": 1,
        "PHASES": 1,
        "PIXELS": 0,  # no kernel of this table copies pixels
        "ALIGN_A": alignment("dy", dy, lda),
        "ALIGN_B": alignment("x", x, *_pitches(x)),
    }
    ldc = leading(outs, out.shape[1], out.strides[0], out.itemsize)
    scalars |= {**dict(ALONE), "LDA": lda, "LDC": ldc, "FLAGS": _flags(x, None, out, None)}
    what = f"conv_wgrad of {count} windows M={outs} N={out.shape[1]}"
    return Problem(SUMMED, DTYPES[x.dtype], tuple(values.items()), tuple(scalars.items()), what)


def _is_transposed(w: Buffer) -> bool:
    """Whether filters [O, *taps, C] have unit stride along O, not along C."""
    return w.strides[0] == 1 < w.strides[-1]


def _check_supported(x: Buffer, along: Sequence[AxisWindows]) -> None:
    """Raises RefusedError for 3-D images, dtypes that no kernel has, and windows without taps."""
    needs(len(along) <= 2, f"images of {len(along)} dimensions")
    needs(x.dtype in _DTYPES, f"images of {x.dtype}")
    needs(x.size > 0 and prod(a.taps for a in along) > 0, "no taps")


def depthwise(
    b: ProgramBuilder,
    x: Buffer,
    along: Sequence[AxisWindows],
    w: Buffer,
    bias: Buffer | None,
    out: Buffer,
    activation: str | None,
    kernel: str | None = None,
) -> None:
    """Computes ``out[..., c] = activation(windows[..., c] · w[c] + bias[c])`` on FMA units, for
    depthwise filters ``w`` [C, *taps, 1]. ``x`` and ``out`` are copied unless C has unit stride.
    """
    _check_supported(x, along)
    needs(all(map(_fits_int32, along, x.shape[1:-1])), "places are no signed integers")
    given, target = x, out
    x = x if x.strides[-1] == 1 else _as_copied(x)
    out = out if _is_writable(out) else _as_copied(out)
    scalars, across, down = _window_scalars(x, along)
    scalars |= dict(zip(("LDC", "ROW_C", "IMAGE_C"), _pitches(out), strict=True))
    channels, steps = x.shape[-1], (*[0] * (2 - len(along)), *w.strides[1:-1])
    scalars |= {"ROW_X": scalars["ROW"], "IMAGE_X": scalars["IMAGE"]}
    scalars |= {"W_CHANNEL": w.strides[0], "W_ROW": steps[0], "W_TAP": steps[1]}
    scalars["FLAGS"] = _flags(x, bias, out, activation)
    pitches = tuple(int(scalars[n]) for n in ("PITCH", "ROW", "IMAGE"))
    places = tuple(int(scalars[n]) for n in ("LDC", "ROW_C", "IMAGE_C"))
    aligned = min(alignment("x", x, *pitches, channels), alignment("out", out, *places, channels))
    scalars["UNIT"] = next(unit for unit in COPIED if unit * x.itemsize <= aligned)
    tile = _tile(x.shape[0], channels, across, down)
    scalars |= {"PART": tile.part, "COLUMNS": tile.columns, "ROWS": tile.rows}
    scalars |= {"TAPS_Y": down.taps, "TILES_X": tile.tiles_x, "TILES_Y": tile.tiles_y}
    values = {
        "TILES": x.shape[0] * tile.tiles_x * tile.tiles_y,
        "BLOCKS": tile.blocks,
        "N": channels,
        "TAPS": across.taps * down.taps,
        "SHARED": tile.nbytes,
    }
    what = f"depthwise conv of {prod(out.shape[:-1])} windows C={channels}"
    short = DTYPES[x.dtype]
    problem = Problem(DEPTHWISE, short, tuple(values.items()), tuple(scalars.items()), what)
    needs_kernel(b, problem)
    x = given if x is given else b.copied(given)
    out = target if out is target else b.empty(out.shape, out.dtype)
    b.launch(lambda: problem, {"x": x, "w": w, "bias": bias, "c": out}, kernel)
    if out is not target:
        b.copied(out, target)


_DTYPES = tuple(name for name, short in DTYPES.items() if ITEMSIZE[short] == 2)


def _is_writable(out: Buffer) -> bool:
    """Whether kernels can write ``out``: channels have unit stride, other strides are positive."""
    pairs = zip(out.strides[:-1], out.shape, strict=False)
    return out.strides[-1] == 1 and all(step > 0 for step, size in pairs if size > 1)


def _as_copied(x: Buffer) -> Buffer:
    """Returns a buffer without memory, with the strides of a contiguous copy of ``x``."""
    return imagined(x.shape, x.dtype)


def _fits_tma(along: AxisWindows, size: int) -> bool:
    """Whether TMA (im2col mode) can gather windows along a dimension of ``size`` pixels."""
    edges = along.low, along.last - (size - 1)
    near = max(map(abs, edges)) <= EDGE_MAX and size <= SIDE_MAX
    return near and along.step <= STEP_MAX and abs(along.side) <= REACH_MAX


def _fits_int32(along: AxisWindows, size: int) -> bool:
    """Whether all indices of taps, and ``size``, are at most ``SIDE_MAX`` (int32 in kernels)."""
    low, high = along.span
    return max(abs(low), abs(high), size) <= SIDE_MAX


def _is_readable(x: Buffer, least: int = 16) -> bool:
    """Whether kernels can read the pixels of ``x`` in place: channels have unit stride; pitches are
    positive; they and the address are multiples of ``least`` bytes.
    """
    pairs = zip(x.strides[:-1], x.shape, strict=False)
    pitches = [step for step, size in pairs if size > 1]
    positive = all(step > 0 for step in pitches)
    return x.strides[-1] == 1 and positive and alignment("x", x, *pitches) >= least


def _flags(x: Buffer, bias: Buffer | None, out: Buffer, activation: str | None) -> int:
    flags = CODES[activation or "none"] << ACTIVATION_SHIFT
    flags |= OUT_F32 if out.dtype != x.dtype else 0
    return flags | (BIAS_F32 if bias is not None and bias.dtype != x.dtype else 0)


def _window_scalars(
    x: Buffer, along: Sequence[AxisWindows]
) -> tuple[dict[str, int | float], AxisWindows, AxisWindows]:
    """Returns the kernel arguments that describe images and windows, and windows along X and Y."""
    images, *sides, channels = x.shape
    # X is the innermost dimension; a sequence has one row (Y).
    down, across = (*[UNIT_AXIS] * (2 - len(along)), *along)
    high, wide = (*[1] * (2 - len(sides)), *sides)
    scalars: dict[str, int | float] = {"CHANNELS": channels, "TAPS_X": across.taps}
    scalars |= {"WIDE": wide, "HIGH": high, "IMAGES": images}
    scalars |= {"ACROSS": across.count, "DOWN": down.count}
    scalars |= dict(zip(("PITCH", "ROW", "IMAGE"), _pitches(x), strict=True))
    for letter, a in (("X", across), ("Y", down)):
        own = {"STEP": a.step, "LOW": a.low, "APART": a.dilation, "FIRST": -min(a.side, 0)}
        own["START"] = a.first
        scalars |= {f"{name}_{letter}": value for name, value in own.items()}
    return scalars, across, down


def _fprop_problem(
    x: Buffer,
    along: Sequence[AxisWindows],
    w: Buffer,
    bias: Buffer | None,
    out: Buffer,
    activation: str | None,
) -> Problem:
    """Returns the problem of :func:`fprop` with filters ``w`` [O, taps * C]."""
    scalars, across, down = _window_scalars(x, along)
    m, (n, k) = prod(out.shape[:-1]), w.shape
    ldb = leading(n, k, w.strides[0], w.itemsize)
    ldc, row_c, image_c = _pitches(out)
    scalars |= {"LDC": ldc, "ROW_C": row_c, "IMAGE_C": image_c, "LDB": ldb}
    flat = row_c == ldc * across.count and image_c == row_c * down.count
    sizes = {"M": m, "N": n, "K": k, "FLAT": int(flat)}
    align = alignment("w", w, ldb)
    return _conv_problem(KEY, x, sizes, scalars, align, bias, out, activation)


def _dgrad_problem(
    x: Buffer,
    subsets: Sequence[Sequence[TapSubset]],
    w: Buffer,
    bias: Buffer | None,
    out: Buffer,
    activation: str | None,
) -> Problem:
    """Returns the problem of :func:`strided_dgrad`; ``w`` [O, *taps, C] has unit stride along O."""
    scalars, *_ = _window_scalars(x, [_most_taps(each) for each in subsets])
    n, *taps, channels = w.shape
    alone: Sequence[TapSubset] = (TapSubset(UNIT_AXIS),)
    down, across = (*[alone] * (2 - len(subsets)), *subsets)
    pitch, line, image = _pitches(out)
    scalars |= {"LDC": pitch * len(across), "ROW_C": line * len(down), "IMAGE_C": image}
    start = 0
    sides = ("X", "ACROSS", "RIGHT", across, pitch), ("Y", "DOWN", "BELOW", down, line)
    for letter, name, towards, each, apart in sides:
        # The subset with the most taps comes first, so that the last tiles are the short ones.
        turned = each[0].along.taps < each[-1].along.taps
        start += apart if turned else 0
        scalars[f"{towards}_C"] = -apart if turned else apart
        for i, subset in enumerate((*(each[::-1] if turned else each), EMPTY_AXIS)[:2]):
            own = {"TAPS": subset.along.taps, "TAP": subset.tap, "START": subset.along.first}
            scalars |= {f"{word}_{letter}_{i}": value for word, value in own.items()}
            scalars[f"{name}_{i}"] = subset.along.count
        scalars[f"EVERY_{letter}"] = each[0].every
    lengths = []
    for i, (low, right) in enumerate(product((0, 1), (0, 1))):
        lengths.append(int(scalars[f"TAPS_Y_{low}"]) * int(scalars[f"TAPS_X_{right}"]) * channels)
        scalars[f"CHUNK_{i}"] = TC16_CHUNKS.chunk_length(lengths[-1])
    *steps, channel = w.strides[1:]
    pairs = zip(steps, taps, strict=True)
    row, tap = (
        *[channel] * (2 - len(steps)),
        *(s if size > 1 else channel for s, size in pairs),
    )
    scalars |= {"W_CHANNEL": channel, "W_ROW": row, "W_TAP": tap}
    scalars |= dict(zip(("TAPS_Y", "TAPS_X"), (*[1] * (2 - len(taps)), *taps), strict=True))
    scalars |= {"FIRST_C": start, "RUN": gcd(channels // 8, 8)}
    count = len(across) * len(down)
    flat = count == 1 and line == pitch * across[0].along.count
    flat = flat and image == line * down[0].along.count
    sizes = {"M": prod(out.shape[:-1]), "N": n, "K": max(lengths), "FLAT": int(flat)}
    sizes["PHASES"] = count
    align = alignment("w", w, channel, row, tap)
    return _conv_problem(TURNED, x, sizes, scalars, align, bias, out, activation)


def _conv_problem(
    key: Key,
    x: Buffer,
    sizes: dict[str, int],
    scalars: dict[str, int | float],
    align_b: int,
    bias: Buffer | None,
    out: Buffer,
    activation: str | None,
) -> Problem:
    channels = x.shape[-1]
    known = {"UNIT": gcd(channels, UNITS.high), "TAPS": max(sizes["K"] // channels, 1)}
    pixels = _pixels(x)
    known |= {"PHASES": 1, "PIXELS": pixels.pop("PIXELS")}
    known |= {"ALIGN_A": alignment("x", x, *_pitches(x)), "ALIGN_B": align_b, **sizes}
    scalars |= {**dict(ALONE), **pixels, "FLAGS": _flags(x, bias, out, activation)}
    m, n, k = (sizes[name] for name in "MNK")
    what = f"conv of {m} windows N={n} K={k}"
    return Problem(key, DTYPES[x.dtype], tuple(known.items()), tuple(scalars.items()), what)


def _pixels(x: Buffer) -> dict[str, int]:
    """Returns the scalars PIXELS, pixels of all images, and LDX, elements from each to the next;
    both are 0 if pixels are not evenly spaced.
    """
    count = prod(x.shape[:-1])
    rows = x.reshaped((count, x.shape[-1]))
    return {"PIXELS": count if rows else 0, "LDX": rows.strides[0] if rows else 0}


def _pitches(x: Buffer) -> tuple[int, int, int]:
    """Returns the strides from pixel to pixel, row to row and image to image, in elements. For a
    dimension of size 1, whose stride nothing uses, it is the extent of the dimensions inside it.
    """
    images, *sides, channels = x.shape
    shape = (images, *[1] * (2 - len(sides)), *sides)
    steps = (x.strides[0], *[0] * (2 - len(sides)), *x.strides[1:-1])
    found: list[int] = []
    inside = -(-channels // 8) * 8
    for size, step in zip(reversed(shape), reversed(steps), strict=True):
        found.append(step if size > 1 else inside)
        inside = found[-1] * size
    pitch, row, image = found
    return pitch, row, image


FILTERS = 2048
"""Most filter elements in a depthwise kernel's tile, so that most of the tile is pixels."""
CTAS, OUTPUTS = 512, DepthwiseSpec.threads * WINDOWS * VECTOR
"""Targets of a depthwise tile's size: it is halved until there are ``CTAS`` CTAs, or it has at most
``OUTPUTS`` results (one strip a thread)."""


@dataclass(frozen=True)
class _Tile:
    """Tile of the depthwise kernel: ``part`` of the ``channels``, and ``columns`` times ``rows`` of
    the windows along X (``across``) and Y (``down``).
    """

    across: AxisWindows
    down: AxisWindows
    channels: int
    part: int
    columns: int
    rows: int

    @property
    def blocks(self) -> int:
        return -(-self.channels // self.part)

    @property
    def tiles_x(self) -> int:
        return -(-self.across.count // self.columns)

    @property
    def tiles_y(self) -> int:
        return -(-self.down.count // self.rows)

    @property
    def nbytes(self) -> int:
        wide = (self.columns - 1) * self.across.step + abs(self.across.side) + 1
        high = (self.rows - 1) * self.down.step + abs(self.down.side) + 1
        return nbytes(self.part, self.across.taps * self.down.taps, wide * high)

    def halved(self) -> _Tile | None:
        """Returns the tile with its longer side, or its channels, halved; None for the smallest."""
        long = self.columns * self.across.step > self.rows * self.down.step
        if self.columns > WINDOWS and (long or self.rows == 1):
            return replace(self, columns=_round_up(-(-self.columns // 2), WINDOWS))
        if self.rows > 1:
            return replace(self, rows=-(-self.rows // 2))
        return replace(self, part=_round_up(-(-self.part // 2), 8)) if self.part > 8 else None


def _round_up(count: int, unit: int) -> int:
    """Returns ``count`` rounded up to a multiple of ``unit``."""
    return -(-count // unit) * unit


def _tile(images: int, channels: int, across: AxisWindows, down: AxisWindows) -> _Tile:
    """Returns the largest depthwise tile that fits shared memory, halved until CTAs are enough.
    ``across``, ``down``: windows along X and Y.
    """
    most = max(min(CHANNELS, FILTERS // (across.taps * down.taps) // 8 * 8), 8)
    part = _round_up(-(-channels // -(-channels // most)), 8)
    tile = _Tile(across, down, channels, part, _round_up(across.count, WINDOWS), down.count)
    while True:
        ctas = images * tile.blocks * tile.tiles_x * tile.tiles_y
        fits = tile.nbytes <= SHARED
        if fits and (tile.columns * tile.rows * tile.part <= OUTPUTS or ctas >= CTAS):
            return tile
        less = tile.halved()
        if less is None or (fits and less.part < tile.part):
            return tile
        tile = less
