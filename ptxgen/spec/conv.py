"""Convolutions that read images where they lie: windows of pixels, times filters.

They are products ``C[M, N] = A[M, K] . B[K, N]`` whose A nobody writes down: row m is a window of
an image, and has its taps, of each all channels. The copy engine finds them (im2col mode).

================  ===================================================================
``M, N, K``       windows, outputs, taps times channels; 1 .. 2^31 - 1
``UNIT``          largest of 1, 2, 4, 8, 16 that divides the channels
``CHUNK, CHUNKS`` as of other products
``ALIGN_A/B``     largest of 1, 2, 4, 8, 16 bytes that divides the image's address and its
                  pitches, and those of the filters
``FLAT``          1 where results lie in rows of one pitch, one behind the other; else 0
``SMS``           streaming multiprocessors of the device
================  ===================================================================

What has two dimensions has them as X and Y. How windows may lie is bounded by what the copy engine
takes (:data:`STEP_MAX` and the constants below it), which every problem keeps to.

Kernels are told besides: ``CHANNELS, WIDE, HIGH, IMAGES``, sizes of the images, and ``PITCH, ROW,
IMAGE``, elements from pixel to pixel, from row to row, and from image to image; windows of a row
and rows of windows (``ACROSS, DOWN``), pixels from one to the next (``STEP_X/Y``), and where the
lowest tap of the first lies (``LOW_X/Y``); taps of a row (``TAPS_X``); how far the first tap lies
from the lowest (``FIRST_X/Y``), and each from the one before (``APART_X/Y``, also negative);
``LDB``, or of turned filters ``W_CHANNEL, W_TAP, W_ROW``, elements from channel to channel, from
tap to tap and from row to row; ``LDC, ROW_C, IMAGE_C``, elements of the result from window to
window, from row to row and from image to image; ``FLAGS``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import ClassVar

from ptxgen.expr import Expr, ceil_div, maximum, minimum, var
from ptxgen.numerics.contract import ITEMSIZE, K, M, N, Plan
from ptxgen.spec.abi import Abi, MapBox, Param, ptr
from ptxgen.spec.base import check
from ptxgen.spec.gemm import CHUNK, CHUNKS, STRIDES, GemmSpec, matrix
from ptxgen.spec.space import ALIGNMENT, SIZE, SMS_MAX, Between, OneOf, Space
from ptxgen.spec.wgmma import STEP, WgmmaSpec

FLAT = var("FLAT")
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
    return Space(
        f"windows under the plan {plan.name!r}",
        (
            ("M", SIZE),
            ("N", SIZE),
            ("K", SIZE),
            ("UNIT", UNITS),
            ("FLAT", OneOf((0, 1))),
            ("SMS", Between(1, SMS_MAX)),
            ("ALIGN_A", ALIGNMENT),
            ("ALIGN_B", ALIGNMENT),
        ),
        derived=(
            ("CHUNK", maximum(1, minimum(K, plan.chunk))),
            ("CHUNKS", ceil_div(K, CHUNK)),
        ),
        bounded=("CHUNKS",),
        facts=((CHUNKS > 1, M * N),),
    )


@dataclass(frozen=True)
class ConvSpec(WgmmaSpec):
    """A kernel of the wgmma family whose A is windows of images, as the copy engine finds them.

    A stage has up to ``bk`` channels of one tap: where a tap's channels end, a stage ends. Chunks
    need not end there: a stage that two chunks share is multiplied in two parts. ``unit``: what
    divides the channels. Where that is 8, a step of 16 k's may have the last 8 channels of one tap
    and the first 8 of the next, and is a stage of its own. ``layout``: NT, or NN of filters whose
    outputs lie side by side, tap by tap and channel by channel.
    """

    unit: int = STEP

    family: ClassVar[str] = "conv_wgmma"
    legible: ClassVar[bool] = False  # what is read of it is in the products' texts
    windowed: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check(self.unit in (8, STEP), self.name, "unit", self.unit, (8, STEP))
        check(self.layout in ("NT", "NN"), self.name, "layout", self.layout, "NT or NN")
        whole = self.unit == STEP and self.batched
        check(self.layout == "NT" or whole, self.name, "turned filters", self.unit, STEP)
        check(self.ctas == 1, self.name, "CTAs of a cluster", self.ctas, 1)
        check(self.a.panels == 1, self.name, "panels of a stage of A", self.a.panels, 1)

    @property
    def multiplier(self) -> str:
        return "wgmma"

    @cached_property
    def abi(self) -> Abi:
        item = ITEMSIZE[self.dtype]
        x, low = self.a, (var("LOW_X"), var("LOW_Y"))
        sizes, pitches = (var("WIDE"), var("HIGH")), (var("PITCH"), var("ROW"), var("IMAGE"))
        windows = (var("ACROSS"), var("DOWN"))
        steps = (var("STEP_X"), var("STEP_Y"))
        last = zip(low, windows, steps, sizes, strict=True)
        column = MapBox(
            "x",
            (var("CHANNELS"), *sizes, var("IMAGES")),
            pitches,
            item,
            x.box,
            swizzle=x.swizzle,
            steps=(1, *steps, 1),
            corners=(low, tuple(a + (n - 1) * s - (size - 1) for a, n, s, size in last)),
        )
        halves = replace(column, box=(8, self.bm), swizzle=0)
        maps = {"a": column} | ({"half": halves} if self.unit == 8 else {})
        filters = matrix("b", "NT", self.b.box, item, self.b.swizzle, batched=self.batched)
        counts = ("inner", "batch") if self.batched else ()
        names = ("across", "down", "step_x", "step_y", "taps_x", "first_x", "first_y")
        signed = ("low_x", "low_y", "apart_x", "apart_y")
        assert filters.box is not None, "a map has a box"
        filters = replace(filters, box=replace(filters.box, operand="w"))
        if self.layout == "NN":
            sizes_w = (N, var("CHANNELS"), var("TAPS_X"), var("TAPS_Y"))
            pitches_w = (var("W_CHANNEL"), var("W_TAP"), var("W_ROW"))
            b = self.b
            turned = MapBox("w", sizes_w, pitches_w, item, b.box, swizzle=b.swizzle)
            filters = replace(filters, box=turned)
        return Abi(
            (
                ptr("x", "const Element*"),
                ptr("w", "const Element*"),
                ptr("bias", "const void*", optional=True),
                ptr("c", "void*"),
                ptr("workspace", "float*", optional=True),
                *(Param(n, "i64") for n in ("ldb", "ldc", *(STRIDES if self.batched else ()))),
                *(Param(n, "i64") for n in ("row_c", "image_c", *signed)),
                *(Param(n, "u32") for n in ("m", "n", "k", "chunk", "flags", "channels")),
                *(Param(n, "u32") for n in (*names, *counts)),
                *(Param(f"map_{n}", "map", filters.ctype, each) for n, each in maps.items()),
                filters,
            )
        )

    @property
    def requires(self) -> Expr:
        found = super().requires & (UNIT >= self.unit)
        # The kernel that adds partial sums knows rows only.
        return found & (FLAT >= 1) if self.split == "workspace" else found

    @property
    def label(self) -> str:
        return f"{super().label}_{self.unit}"

    @property
    def half_descriptor(self) -> int:
        """The constant part of the descriptor of a step of two halves of A: each 8 channels of all
        rows, in one piece.
        """
        return (self.bm * 16 >> 4) << 16 | (8 * 16 >> 4) << 32

    meanings: ClassVar[Mapping[str, str]] = {
        **GemmSpec.meanings,
        "unit": "what divides the channels",
    }
