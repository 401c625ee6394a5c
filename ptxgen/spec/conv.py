"""Implicit-GEMM convolutions: kernels gather windows of pixels straight from the images.

They compute ``C[M, N] = A[M, K] . B[K, N]`` without writing A (im2col) to memory: row m of A is a
window of an image, and its columns are the window's taps times channels. TMA gathers the windows
(im2col mode), or threads do. In wgrad windows are the rows of B, taps times channels its columns.

================  ===================================================================
``M, N, K``       windows, outputs, taps times channels; in wgrad: outputs, taps times
                  channels, windows; 1 .. 2^31 - 1
``TAPS``          taps of a window
``UNIT``          largest of 1, 2, 4, 8, 16 that divides the channels
``PHASES``        phases of a strided dgrad: 1, 2 or 4 (see below)
``PIXELS``        pixels of all images, if one pitch (``LDX``) leads from each to the next; else 0
``CHUNK, CHUNKS`` as in other products
``PANELS``        panels of B in wgrad: 64 channels of one tap each
``ALIGN_A/B``     largest of 1, 2, 4, 8, 16 bytes that divides the address and the pitches of
                  the array that A is read from, and of B's
``FLAT``          1 if all rows of the result are one pitch apart; else 0
``SMS``           streaming multiprocessors of the device
================  ===================================================================

X and Y are the two dimensions of an image. The geometry of windows stays within the limits of TMA's
im2col mode (:data:`STEP_MAX` and the constants below it) in every problem.

Further scalar parameters:

- ``CHANNELS, WIDE, HIGH, IMAGES``: sizes of the images; ``PITCH, ROW, IMAGE``: strides, in
  elements, from pixel to pixel, row to row and image to image;
- ``ACROSS, DOWN``: windows of a row, and rows of windows; ``STEP_X/Y``: pixels from one window to
  the next (stride);
- ``START_X/Y``: pixel of the first window's first tap; ``LOW_X/Y``: pixel of its lowest tap;
  ``FIRST_X/Y``: distance of the first tap from the lowest; ``APART_X/Y``: distance of a tap from
  the one before (dilation, may be negative); ``TAPS_X``: taps of a row;
- ``LDB``, or in layout NN ``W_CHANNEL, W_TAP, W_ROW``: strides of the filters, in elements, from
  channel to channel, tap to tap and row to row;
- ``LDC, ROW_C, IMAGE_C``: strides of the result, in elements, from window to window, row to row and
  image to image; ``FLAGS``.

In a strided dgrad, an input pixel's remainder by the stride says which taps reach it. Pixels of one
remainder are a convolution of their own, a *phase*. One problem has up to two remainders along each
dimension. M then counts the windows of all phases, and K and TAPS are the largest of any phase.
Parameters that end in 0 or 1 belong to the first or second remainder of a dimension:
``ACROSS_0/1, DOWN_0/1, START_X_0/1, START_Y_0/1, TAPS_X_0/1, TAPS_Y_0/1``; ``TAP_X_0/1, TAP_Y_0/1``
is the filter's tap that is their first, ``EVERY_X/Y`` the step to the next tap. ``RUN``: vectors of
8 channels of one tap that are adjacent in a stage; ``CHUNK_0 .. CHUNK_3``: chunk length of each
phase; ``FIRST_C``: offset of the first phase's results; ``RIGHT_C, BELOW_C``: offsets of the second
phase's from there, along X and Y (may be negative).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import ClassVar

from ptxgen.cost.kernel import KernelCost
from ptxgen.expr import Expr, ceil_div, minimum, var
from ptxgen.numerics.contract import ITEMSIZE, K, M, N, Plan
from ptxgen.spec.abi import Abi, MapBox, Param, ptr
from ptxgen.spec.base import INDEX_MAX, WARP, WARPGROUP, check
from ptxgen.spec.gemm import CHUNK, CHUNKS, SMS, STRIDES, matrix, space_of
from ptxgen.spec.gemm.loads import Gather, GatherSums, Load, TmaIm2col, TmaPanels
from ptxgen.spec.gemm.schedules import Batch, Chunks, Phases, Schedule, Tiles
from ptxgen.spec.gemm.stores import PartialSums, Rows, Store
from ptxgen.spec.mma import VECTOR
from ptxgen.spec.space import SIZE, Between, OneOf, Space
from ptxgen.spec.wgmma import STEP, Operand, WgmmaSpec

FLAT, PHASES, TAPS = var("FLAT"), var("PHASES"), var("TAPS")
PIXELS = var("PIXELS")
PANELS, PANEL = var("PANELS"), 64
"""``PANELS``: number of panels of B in wgrad; ``PANEL``: channels of a panel, all of one tap."""
UNIT, UNITS = var("UNIT"), OneOf((1, 2, 4, 8, 16))
STEP_MAX = 8
"""Largest stride of a convolution, in pixels (``cuTensorMapEncodeIm2col``)."""
REACH_MAX = 255
"""Largest distance, in pixels, from a window's lowest tap to its highest: im2col offsets of 2-D
images have 8 bits (PTX ISA, im2col mode)."""
EDGE_MAX = 127
"""Largest distance, in pixels, of the first window from the image's first pixel, and of the last
window from its last pixel (``cuTensorMapEncodeIm2col``: the corners of the bounding box)."""
SIDE_MAX = 1 << 30
"""Most pixels of an image along a dimension, so that coordinates fit signed 32-bit integers."""


@cache
def space(plan: Plan) -> Space:
    """Returns the space of convolutions whose reduction is split by ``plan``."""
    own = (
        ("TAPS", SIZE),
        ("UNIT", UNITS),
        ("FLAT", OneOf((0, 1))),
        ("PHASES", OneOf((1, 2, 4))),
        ("PIXELS", Between(0, SIZE.high)),
    )
    panels = ("PANELS", TAPS * ceil_div(N, TAPS * PANEL))
    return space_of("windows", plan, own, derived=(panels,))


@dataclass(frozen=True)
class ConvSpec(WgmmaSpec):
    """An implicit-GEMM wgmma kernel whose A tiles TMA gathers in im2col mode.

    A stage holds up to ``bk`` channels of one tap and never spans two taps. A chunk may end inside
    a stage, which is then multiplied in two parts. ``layout``: NT; or NN, where the filters'
    outputs are contiguous, and B is stored tap by tap, channel by channel.
    """

    family: ClassVar[str] = "conv_wgmma"
    legible: ClassVar[bool] = False  # the texts of the wgmma family show the same code
    unit: ClassVar[int] = STEP
    """Divisor of the channels that the kernel requires."""

    @property
    def schedule(self) -> Schedule:
        return Batch()

    @property
    def load(self) -> Load:
        return TmaIm2col()

    @property
    def store(self) -> Store:
        return Rows("windows")

    @property
    def filters(self) -> Param:
        """Tensor map of the filters, the operand B."""
        item, b = ITEMSIZE[self.dtype], self.b
        found = matrix("b", "NT", b.box, item, b.swizzle, batched=self.batched)
        assert found.box is not None, "a map has a box"
        if self.layout == "NT":
            return replace(found, box=replace(found.box, operand="w"))
        sizes = (N, var("CHANNELS"), var("TAPS_X"), var("TAPS_Y"))
        pitches = (var("W_CHANNEL"), var("W_TAP"), var("W_ROW"))
        return replace(found, box=MapBox("w", sizes, pitches, item, b.box, swizzle=b.swizzle))

    def columns(self, tile: Operand) -> MapBox:
        """Returns the im2col tensor map of the image ``x``. ``tile``: shared-memory tile that a
        copy fills; its box is channels x windows.
        """
        low = (var("LOW_X"), var("LOW_Y"))
        sizes, pitches = (var("WIDE"), var("HIGH")), (var("PITCH"), var("ROW"), var("IMAGE"))
        windows = (var("ACROSS"), var("DOWN"))
        steps = (var("STEP_X"), var("STEP_Y"))
        last = zip(low, windows, steps, sizes, strict=True)
        return MapBox(
            "x",
            (var("CHANNELS"), *sizes, var("IMAGES")),
            pitches,
            ITEMSIZE[self.dtype],
            tile.box,
            swizzle=tile.swizzle,
            steps=(1, *steps, 1),
            corners=(low, tuple(a + (n - 1) * s - (size - 1) for a, n, s, size in last)),
        )

    @cached_property
    def abi(self) -> Abi:
        column = self.columns(self.a)
        counts = ("inner", "batch") if self.batched else ()
        names = ("across", "down", "step_x", "step_y", "taps_x", "first_x", "first_y")
        signed = ("low_x", "low_y", "apart_x", "apart_y")
        return Abi(
            (
                *_pointers("w"),
                *(Param(n, "i64") for n in ("ldc", *(STRIDES if self.batched else ()))),
                *(Param(n, "i64") for n in ("row_c", "image_c", *signed)),
                *(Param(n, "u32") for n in ("m", "n", "k", "chunk", "flags", "channels")),
                *(Param(n, "u32") for n in (*names, *counts)),
                Param("map_a", "map", self.filters.ctype, column),
                self.filters,
            )
        )

    @property
    def requires(self) -> Expr:
        found = super().requires & (UNIT >= self.unit)
        if not self.schedule.phased:
            found &= PHASES <= 1
        # The reduce kernel can store only rows of one pitch.
        return found & (FLAT >= 1) if self.store.partial and not self.summed else found

    @property
    def summed(self) -> bool:
        """Whether the reduction runs over windows, as in wgrad."""
        return self.layout == "TN"

    @property
    def stages_of_k(self) -> Expr:
        """Number of stages that the whole reduction takes. Where no stage spans two taps, each tap
        takes whole stages.
        """
        return (
            ceil_div(K, self.bk) if self.load.whole_stages else TAPS * ceil_div(K // TAPS, self.bk)
        )

    @property
    def read(self) -> Expr:
        """Number of elements of both operands, each counted once. An image has about as many pixels
        as there are windows.
        """
        return M * K + N // TAPS * K if self.summed else M * (K // TAPS) + N * K

    @property
    def together(self) -> Expr:
        """Number of operand elements that L2 should hold at a time. Windows count only for the CTAs
        in flight, since neighbouring taps read nearly the same pixels.
        """
        if self.summed:
            return self.read
        windows = SMS * self.slots * self.bm
        if self.split == "workspace":  # the CTAs of a tile's chunks run side by side
            windows = windows // CHUNKS
        return minimum(self.read, windows * (K // TAPS) + N * K)

    @property
    def cost(self) -> KernelCost:
        plain, item = super().cost, ITEMSIZE[self.dtype]
        (phase,) = plain.phases
        sides = self.bm * self.cluster_m + self.bn * self.cluster_n
        length = CHUNK if self.split == "workspace" else K
        return replace(
            plain,
            phases=(replace(phase, steps=ceil_div(self.stages_of_k * length, K)),),
            loads=self.tiles * self.stages_of_k * (sides * self.bk * item),
            operands=self.together * item,
        )


def _pointers(second: str, *, biased: bool = True) -> tuple[Param, ...]:
    """Returns the pointer parameters of a convolution: image, the other operand (named ``second``),
    bias if ``biased``, result, workspace.
    """
    return (
        ptr("x", "const Element*"),
        ptr(second, "const Element*"),
        *((ptr("bias", "const void*", optional=True),) if biased else ()),
        ptr("c", "void*"),
        ptr("workspace", "float*", optional=True),
    )


def _gradient(spec: ConvSpec) -> Param:
    """Returns the tensor map of the result's gradient, which is A in wgrad."""
    found = matrix("a", spec.layout, spec.a.box, ITEMSIZE[spec.dtype], spec.a.swizzle)
    assert found.box is not None, "a map has a box"
    return replace(found, box=replace(found.box, operand="dy"))


@dataclass(frozen=True)
class ConvSumSpec(ConvSpec):
    """A wgrad kernel: A is the result's gradient, B windows of images, which TMA gathers.

    A panel of B has :data:`PANEL` channels of one tap, padded with zeros after the last channel. A
    tile thus has fewer columns than ``bn`` where PANEL does not divide the channels.
    """

    family: ClassVar[str] = "conv_sum"
    unit: ClassVar[int] = VECTOR

    @property
    def schedule(self) -> Schedule:
        return Chunks() if self.split == "workspace" else Tiles()

    @property
    def load(self) -> Load:
        return TmaPanels(PANEL)

    @property
    def store(self) -> Store:
        return PartialSums("panels") if self.split == "workspace" else Rows("panels")

    @property
    def batched(self) -> bool:
        return False

    @property
    def tiles(self) -> Expr:
        return ceil_div(M, self.bm * self.cluster_m) * ceil_div(PANELS, self.b.panels)

    @property
    def required_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        columns = "the columns of all panels, and of a tile"
        return (*super().required_bounds, (columns, PANELS * PANEL + self.bn, INDEX_MAX))

    @property
    def index_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        band = ("GROUP * tiles_n", ceil_div(PANELS, self.b.panels) * self.raster, INDEX_MAX)
        ends = (("begin + chunk", K + CHUNK, INDEX_MAX),) if self.split == "serial" else ()
        return (*self.required_bounds, band, *ends)

    @cached_property
    def abi(self) -> Abi:
        names = ("across", "down", "step_x", "step_y", "taps_x", "first_x", "first_y")
        column = self.columns(self.b)
        return Abi(
            (
                *_pointers("dy", biased=False),
                *(Param(n, "i64") for n in ("ldc", "low_x", "low_y", "apart_x", "apart_y")),
                *(Param(n, "u32") for n in ("m", "n", "k", "chunk", "flags", "channels", *names)),
                _gradient(self),
                Param("map_b", "map", self.filters.ctype, column),
            )
        )


@dataclass(frozen=True)
class ConvGatherSpec(ConvSpec):
    """An implicit-GEMM wgmma kernel whose producer warpgroup gathers windows, 8 channels a thread.

    A stage holds ``bk`` k's of any number of taps. ``layout``: NT and NN as in :class:`ConvSpec`;
    NN also supports several phases (strided dgrad), unless partial sums go to memory; TN is wgrad:
    A is the result's gradient, B the windows.
    """

    family: ClassVar[str] = "conv_gather"

    def __post_init__(self) -> None:
        super().__post_init__()
        phases = self.layout != "NN" or self.split != "none"
        check(phases, self.name, "split of phases", self.split, "serial or workspace")

    @property
    def schedule(self) -> Schedule:
        if self.split == "workspace":
            return Chunks(beside=not self.summed)
        return Phases() if self.turned else Tiles()

    @property
    def load(self) -> Load:
        return GatherSums() if self.summed else Gather("taps" if self.turned else "boxes")

    @property
    def store(self) -> Store:
        if self.split == "workspace":
            return PartialSums()
        return Rows("matrix" if self.summed else "phases" if self.turned else "windows")

    @property
    def by_threads(self) -> bool:
        """Whether producer threads copy the filters as well as the windows."""
        return isinstance(self.load, Gather) and self.load.filters == "threads"

    @property
    def unit(self) -> int:  # type: ignore[override]
        """Divisor of the channels: 16 where TMA loads the filters of several phases (strided
        dgrad), since its boxes of 8 rows are slower than copies by threads; else 8.
        """
        return STEP if self.schedule.phased and not self.by_threads else VECTOR

    @property
    def turned(self) -> bool:
        """Whether the filters' outputs are contiguous in memory (layout NN)."""
        return self.layout == "NN"

    @property
    def batched(self) -> bool:
        return False

    @property
    def threads(self) -> int:
        return (self.consumers + 1) * WARPGROUP

    @property
    def producer_registers(self) -> int:
        held = (self.consumers + 1) * self.launch_registers
        return (held - self.consumers * self.registers) // 8 * 8

    @property
    def rows_offset(self) -> int:
        """Byte offset, in shared memory, of the table of windows: 16 bytes for each window, with
        the address and the coordinates of its first tap.
        """
        return self.barriers_offset + 2 * 8 * self.stages

    @property
    def shared_bytes(self) -> int:
        rows = WARPGROUP // WARP * self.bk if self.summed else self.bm
        return self.rows_offset + 16 * rows

    @property
    def tiles(self) -> Expr:
        high = ceil_div(M, self.bm) + (PHASES - 1) if self.schedule.phased else ceil_div(M, self.bm)
        return high * ceil_div(N, self.bn)

    @cached_property
    def abi(self) -> Abi:
        second = "dy" if self.summed else "w"
        image = ("pitch", "row", "image", "apart_x", "apart_y")
        result = () if self.summed else ("row_c", "image_c")
        names = ("n", "flags", "channels", "wide", "high", "step_x", "step_y")
        if self.schedule.phased:
            pairs = ("across", "down", "taps_x", "taps_y", "tap_x", "tap_y")
            own = (*(f"{name}_{i}" for name in pairs for i in (0, 1)), "every_x", "every_y")
            own = (*own, *(f"chunk_{i}" for i in range(4)), "images")
            starts = tuple(f"start_{letter}_{i}" for letter in "xy" for i in (0, 1))
            result = (*result, "first_c", "right_c", "below_c")
        else:
            own, starts = ("m", "k", "chunk", "across", "down", "taps_x"), ("start_x", "start_y")
        own = (*own, "run") if self.turned and not self.by_threads else own
        filters = ("w_channel", "w_tap", "w_row") if self.by_threads else ()
        return Abi(
            (
                *_pointers(second),
                *(Param(n, "i64") for n in (*image, "ldc", *result, *starts, *filters)),
                *(Param(n, "u32") for n in (*names, *own)),
                *(() if self.by_threads else (self.copied,)),
            )
        )

    @property
    def copied(self) -> Param:
        """Tensor map of the operand that TMA loads: the filters, or the result's gradient."""
        if not self.summed:
            found = self.filters
            assert found.box is not None, "a map has a box"
            rows: int | Expr = var("RUN") * 8 if self.turned else self.b.box[1]
            return replace(found, box=replace(found.box, box=(self.b.box[0], rows)))
        return _gradient(self)

    @property
    def required_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        found = super().required_bounds
        if not self.schedule.phased:
            return found
        return (
            *found,
            ("the piece of a round to and fro", self.work + self.resident_clusters * 2, INDEX_MAX),
        )

    @property
    def index_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        band = ("GROUP * tiles_n", ceil_div(N, self.bn) * self.raster, INDEX_MAX)
        rows = ("the rows of the last tile", M + self.bm * 4, INDEX_MAX)
        return (*self.required_bounds, band, rows, ("begin + chunk", K + CHUNK, INDEX_MAX))


@dataclass(frozen=True)
class ConvCarriedSpec(ConvGatherSpec):
    """A gathering kernel (layout NN) whose producer warpgroup also copies the filters.

    A TMA box has rows of one tap, 8 channels at a time where 16 does not divide them. So many small
    boxes are slower than copies by threads.
    """

    family: ClassVar[str] = "conv_carried"
    pixels: ClassVar[str] = "vectors"

    @property
    def load(self) -> Load:
        return Gather("threads", self.pixels)


@dataclass(frozen=True)
class ConvLooseSpec(ConvCarriedSpec):
    """A gathering kernel for any number of channels: threads load the elements one by one. K has no
    gaps between taps, so the 16 bytes that a thread stores may begin anywhere and span two taps.
    """

    family: ClassVar[str] = "conv_loose"
    pixels: ClassVar[str] = "numbers"
    unit: ClassVar[int] = 1

    @property
    def requires(self) -> Expr:
        return super().requires & (UNIT < VECTOR)


@dataclass(frozen=True)
class ConvWholeSpec(ConvLooseSpec):
    """A gathering kernel for any number of channels that reads a padded copy of the image, in which
    each pixel is whole 16-byte vectors. The 8 elements that a thread stores come from two
    neighbouring vectors, at a tap's end from three.
    """

    family: ClassVar[str] = "conv_whole"
    pixels: ClassVar[str] = "copy"

    @property
    def requires(self) -> Expr:
        return super().requires & (K // TAPS >= VECTOR) & (PIXELS >= 1)
