"""Convolutions that read images where they lie: windows of pixels, times filters.

They are products ``C[M, N] = A[M, K] . B[K, N]`` whose A nobody writes down: row m is a window of
an image, and has its taps, of each all channels. The copy engine finds them (im2col mode), or
threads do. Of a gradient by filters windows are B's rows, and columns are taps times channels.

================  ===================================================================
``M, N, K``       windows, outputs, taps times channels; of gradients by filters outputs,
                  taps times channels, windows; 1 .. 2^31 - 1
``TAPS``          taps of a window
``UNIT``          largest of 1, 2, 4, 8, 16 that divides the channels
``PHASES``        in how many ways windows lie: 1, 2 or 4 (see below)
``PIXELS``        of all images, where one pitch (``LDX``) leads from each to the next; else 0
``CHUNK, CHUNKS`` as of other products
``PANELS``        of gradients by filters: panels of 64 channels, each of one tap
``ALIGN_A/B``     largest of 1, 2, 4, 8, 16 bytes that divides the address and the pitches of
                  what A is read from, and of what B is
``FLAT``          1 where results lie in rows of one pitch, one behind the other; else 0
``SMS``           streaming multiprocessors of the device
================  ===================================================================

What has two dimensions has them as X and Y. How windows may lie is bounded by what the copy engine
takes (:data:`STEP_MAX` and the constants below it), which every problem keeps to.

Kernels are told besides: ``CHANNELS, WIDE, HIGH, IMAGES``, sizes of the images, and ``PITCH, ROW,
IMAGE``, elements from pixel to pixel, from row to row, and from image to image; windows of a row
and rows of windows (``ACROSS, DOWN``), pixels from one to the next (``STEP_X/Y``), and where the
first tap of the first lies (``START_X/Y``), and the lowest one (``LOW_X/Y``); taps of a row
(``TAPS_X``); how far the first tap lies from the lowest (``FIRST_X/Y``), and each from the one
before (``APART_X/Y``, also negative); ``LDB``, or of turned filters ``W_CHANNEL, W_TAP, W_ROW``,
elements from channel to channel, from tap to tap and from row to row; ``LDC, ROW_C, IMAGE_C``,
elements of the result from window to window, from row to row and from image to image; ``FLAGS``.

Windows of a gradient by the image lie in one way for each remainder by the stride, as their taps
do. Those of two remainders along a dimension are one problem of so many *phases*. Then M is the
windows of all, K and TAPS are those of the phase that has most, and kernels are told of each
dimension's first and second: ``ACROSS_0/1, DOWN_0/1, START_X_0/1, START_Y_0/1, TAPS_X_0/1,
TAPS_Y_0/1``; the filter's tap that is their first (``TAP_X_0/1, TAP_Y_0/1``), and how far the next
is (``EVERY_X/Y``); vectors of 8 channels that a stage has side by side of any tap (``RUN``);
chunks of each phase (``CHUNK_0 .. CHUNK_3``); where the first's results begin (``FIRST_C``), and
how far the second's lie from there (``RIGHT_C, BELOW_C``, also negative).
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
"""Panels of windows that are summed over, and channels of one."""
UNIT, UNITS = var("UNIT"), OneOf((1, 2, 4, 8, 16))
STEP_MAX = 8
"""Pixels from window to window, at most (``cuTensorMapEncodeIm2col``)."""
REACH_MAX = 255
"""Pixels from a window's lowest tap to its highest, at most: offsets of images of two dimensions
have 8 bits (PTX ISA, im2col mode)."""
EDGE_MAX = 127
"""How far the first window may begin from the image's first pixel, and the last from the last
(``cuTensorMapEncodeIm2col``: the corners of the bounding box)."""
SIDE_MAX = 1 << 30
"""Pixels of an image along a dimension, at most, so that coordinates are signed."""


@cache
def space(plan: Plan) -> Space:
    """The convolutions whose reduction is cut as ``plan`` says."""
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
    """A kernel of the wgmma family whose A is windows of images, as the copy engine finds them.

    A stage has up to ``bk`` channels of one tap: where a tap's channels end, a stage ends. Chunks
    need not end there: a stage that two chunks share is multiplied in two parts. ``layout``: NT, or
    NN of filters whose outputs lie side by side, tap by tap and channel by channel.
    """

    family: ClassVar[str] = "conv_wgmma"
    legible: ClassVar[bool] = False  # what is read of it is in the products' texts
    unit: ClassVar[int] = STEP
    """What divides the channels."""

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
        """The tensor map of B."""
        item, b = ITEMSIZE[self.dtype], self.b
        found = matrix("b", "NT", b.box, item, b.swizzle, batched=self.batched)
        assert found.box is not None, "a map has a box"
        if self.layout == "NT":
            return replace(found, box=replace(found.box, operand="w"))
        sizes = (N, var("CHANNELS"), var("TAPS_X"), var("TAPS_Y"))
        pitches = (var("W_CHANNEL"), var("W_TAP"), var("W_ROW"))
        return replace(found, box=MapBox("w", sizes, pitches, item, b.box, swizzle=b.swizzle))

    def columns(self, tile: Operand) -> MapBox:
        """The tensor map of windows, of which ``tile`` has boxes: some channels of some windows."""
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
        # The kernel that adds partial sums knows rows only.
        return found & (FLAT >= 1) if self.store.partial and not self.summed else found

    @property
    def summed(self) -> bool:
        """Whether windows are what is summed over."""
        return self.layout == "TN"

    @property
    def stages_of_k(self) -> Expr:
        """Stages that the whole reduction takes."""
        return (
            ceil_div(K, self.bk) if self.load.whole_stages else TAPS * ceil_div(K // TAPS, self.bk)
        )

    @property
    def read(self) -> Expr:
        """Elements of operands, each once: of images about as many pixels as windows."""
        return M * K + N // TAPS * K if self.summed else M * (K // TAPS) + N * K

    @property
    def together(self) -> Expr:
        """Elements of operands that L2 should hold at a time: of windows those that CTAs have then,
        as each tap finds most of what the one before did.
        """
        if self.summed:
            return self.read
        windows = SMS * self.slots * self.bm
        if self.split == "workspace":  # a tile's chunks follow one another
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
    """Of windows, and what they are multiplied with."""
    return (
        ptr("x", "const Element*"),
        ptr(second, "const Element*"),
        *((ptr("bias", "const void*", optional=True),) if biased else ()),
        ptr("c", "void*"),
        ptr("workspace", "float*", optional=True),
    )


def _gradient(spec: ConvSpec) -> Param:
    """The tensor map of the gradient of the result, which is A of a gradient by filters."""
    found = matrix("a", spec.layout, spec.a.box, ITEMSIZE[spec.dtype], spec.a.swizzle)
    assert found.box is not None, "a map has a box"
    return replace(found, box=replace(found.box, operand="dy"))


@dataclass(frozen=True)
class ConvSumSpec(ConvSpec):
    """A gradient by filters of the wgmma family: A is the gradient of the result, and B windows of
    images, as the copy engine finds them.

    A panel of B has :data:`PANEL` channels of one tap, with zeros behind a tap's last channel. So a
    tile has fewer columns than ``bn`` where channels are no multiple of that.
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
    def asked_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        columns = "the columns of all panels, and of a tile"
        return (*super().asked_bounds, (columns, PANELS * PANEL + self.bn, INDEX_MAX))

    @property
    def index_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        band = ("GROUP * tiles_n", ceil_div(PANELS, self.b.panels) * self.raster, INDEX_MAX)
        ends = (("begin + chunk", K + CHUNK, INDEX_MAX),) if self.split == "serial" else ()
        return (*self.asked_bounds, band, *ends)

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
    """A kernel of the wgmma family one of whose operands is windows of images, as a warpgroup
    copies them, 8 channels at a time.

    A stage has ``bk`` k's of as many taps as there are. ``layout``: NT and NN as of
    :class:`ConvSpec`, of which NN takes windows of several phases, unless partial sums go to
    memory; TN is a gradient by filters: A is the gradient of the result, B the windows.
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
        """Whether threads copy filters, too."""
        return isinstance(self.load, Gather) and self.load.filters == "threads"

    @property
    def unit(self) -> int:  # type: ignore[override]
        """Of phases 16, as boxes of 8 rows take longer than copies by threads."""
        return STEP if self.schedule.phased and not self.by_threads else VECTOR

    @property
    def turned(self) -> bool:
        """Whether outputs of filters lie side by side."""
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
        """Where the table of windows lies in shared memory."""
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
        """The tensor map of the operand that the copy engine brings."""
        if not self.summed:
            found = self.filters
            assert found.box is not None, "a map has a box"
            rows: int | Expr = var("RUN") * 8 if self.turned else self.b.box[1]
            return replace(found, box=replace(found.box, box=(self.b.box[0], rows)))
        return _gradient(self)

    @property
    def asked_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        found = super().asked_bounds
        if not self.schedule.phased:
            return found
        return (
            *found,
            ("the piece of a round to and fro", self.work + self.at_once * 2, INDEX_MAX),
        )

    @property
    def index_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        band = ("GROUP * tiles_n", ceil_div(N, self.bn) * self.raster, INDEX_MAX)
        rows = ("the rows of the last tile", M + self.bm * 4, INDEX_MAX)
        return (*self.asked_bounds, band, rows, ("begin + chunk", K + CHUNK, INDEX_MAX))


@dataclass(frozen=True)
class ConvCarriedSpec(ConvGatherSpec):
    """The same where the warpgroup copies the filters as well, whose outputs lie side by side.

    A box of the copy engine has rows of one tap, of 8 channels where that is what divides them; so
    many small boxes take longer than all else.
    """

    family: ClassVar[str] = "conv_carried"
    pixels: ClassVar[str] = "vectors"

    @property
    def load(self) -> Load:
        return Gather("threads", self.pixels)


@dataclass(frozen=True)
class ConvLooseSpec(ConvCarriedSpec):
    """The same of any number of channels, whose numbers are loaded one by one: chains have no gaps,
    so what 16 bytes hold may be of two taps, or begin anywhere.
    """

    family: ClassVar[str] = "conv_loose"
    pixels: ClassVar[str] = "numbers"
    unit: ClassVar[int] = 1

    @property
    def requires(self) -> Expr:
        return super().requires & (UNIT < VECTOR)


@dataclass(frozen=True)
class ConvWholeSpec(ConvLooseSpec):
    """The same of a copy whose pixels are whole vectors, with zeros behind the last channel: what
    16 bytes of a chain hold lies across two vectors, or at a tap's end three.
    """

    family: ClassVar[str] = "conv_whole"
    pixels: ClassVar[str] = "copy"

    @property
    def requires(self) -> Expr:
        return super().requires & (K // TAPS >= VECTOR) & (PIXELS >= 1)
