"""Depthwise convolutions: each channel's windows times its own filter (contract ``fma``).

A CTA computes a tile: some channels of some rows of windows. Its pixels and filters are in shared
memory. The problem's parameters give the size of a tile, which has at most :data:`CHANNELS`
channels.

==========  ===============================================================================
``TILES``   tiles of windows, over all images
``BLOCKS``  blocks of ``PART`` channels
``N``       channels; 1 .. 2^31 - 1
``TAPS``    taps of a filter
``SHARED``  bytes of a tile: its pixels, and filters in f32
``SMS``     streaming multiprocessors of the device
==========  ===============================================================================

Further scalar parameters: the geometry of windows, images and results, as in
:mod:`ptxgen.spec.conv`; ``W_CHANNEL, W_ROW, W_TAP``, the strides of the filters in elements; the
tile: ``PART`` channels, ``COLUMNS`` windows in each of ``ROWS`` rows; ``TILES_X/Y``, tiles of an
image along each dimension; and ``UNIT``, channels that are copied at a time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from ptxgen.expr import Expr, var
from ptxgen.numerics.contract import FMA, TIERS, Contract, N
from ptxgen.spec.abi import Abi, Param, ptr
from ptxgen.spec.base import GRID_MAX, INDEX_MAX, Expect, KernelSpec, check
from ptxgen.spec.gemm import CONTEXT
from ptxgen.spec.space import SIZE, SMS_MAX, Between, Space

TILES, BLOCKS, TAPS, ROOM = var("TILES"), var("BLOCKS"), var("TAPS"), var("SHARED")
WINDOWS, VECTOR = 8, 2
"""WINDOWS: neighbouring windows of a row that a thread computes, a divisor of ``COLUMNS``; VECTOR:
neighbouring channels of each."""
SHARED = 48 << 10
"""Most shared memory of a tile, in bytes."""
GAP = 4
"""Padding between rows of filters, in elements, so that lanes with neighbouring taps write to
different banks."""
CHANNELS = 64
"""Most channels of a tile, 128 bytes of a pixel."""
TAPS_MAX = 256
"""Most taps of a filter: they are one chain (more than 2048 would be several) and fit a tile."""
UNITS = (8, 2, 1)
"""Numbers of channels that a cp.async, or a load, copies: 16 bytes, 4 bytes, or a single
channel."""

SPACE = Space(
    "depthwise filters",
    (
        ("TILES", SIZE),
        ("BLOCKS", SIZE),
        ("N", SIZE),
        ("TAPS", SIZE),
        ("SHARED", SIZE),
        ("SMS", Between(1, SMS_MAX)),
    ),
)


def nbytes(part: int, taps: int, pixels: int) -> int:
    """Returns the shared memory of a tile, in bytes: ``pixels`` pixels of ``part`` 16-bit channels,
    and for these ``taps`` taps of f32 filters, padded by :data:`GAP` elements.
    """
    return pixels * part * 2 + taps * (part + GAP) * 4


@dataclass(frozen=True)
class DepthwiseSpec(KernelSpec):
    """A kernel of depthwise convolutions: a thread computes VECTOR channels of WINDOWS neighbouring
    windows of a row.

    Neighbouring windows share pixels: a thread reads them from shared memory once for a row of
    taps. ``ctas_per_sm``: CTAs of ``threads`` threads that fit an SM's registers at least.
    """

    threads: int = 256
    ctas_per_sm: int = 4
    dtype: str = "bf16"
    min_arch: str = "sm_80"
    contract: Contract = FMA

    family: ClassVar[str] = "depthwise"
    template: ClassVar[str] = "conv/depthwise.cu.j2"
    legible: ClassVar[bool] = False
    WINDOWS: ClassVar[int] = WINDOWS
    VECTOR: ClassVar[int] = VECTOR
    GAP: ClassVar[int] = GAP
    meanings: ClassVar[Mapping[str, str]] = {
        **KernelSpec.meanings,
        "threads": "threads of a CTA",
        "ctas_per_sm": "least number of CTAs that fit an SM's registers",
    }

    def __post_init__(self) -> None:
        self.check_counts("threads", "ctas_per_sm")
        self.check_threads()
        self.check_choices(dtype=TIERS["tc"])
        check(self.threads % 64 == 0, self.name, "threads", self.threads, "a multiple of 64")

    @property
    def label(self) -> str:
        return f"{self.dtype}_{WINDOWS}x{VECTOR}"

    @property
    def context(self) -> Mapping[str, Any]:
        return CONTEXT

    @property
    def shared_bytes(self) -> int:
        return SHARED

    @property
    def grid(self) -> Expr:
        return TILES * BLOCKS

    @property
    def requires(self) -> Expr:
        return (TAPS <= TAPS_MAX) & (ROOM <= SHARED) & (self.grid <= GRID_MAX)

    @property
    def expects(self) -> tuple[Expect, ...]:
        return (*super().expects, Expect("cp.async.cg"), Expect("st.global.u32"))

    @property
    def index_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        return (("channel", N + CHANNELS, INDEX_MAX),)

    @cached_property
    def abi(self) -> Abi:
        wide = ("pitch", "row_x", "image_x", "ldc", "row_c", "image_c")
        filters = ("w_channel", "w_row", "w_tap")
        signed = ("low_x", "low_y", "apart_x", "apart_y", "first_x", "first_y")
        counts = ("n", "taps_x", "taps_y", "wide", "high", "across", "down", "step_x", "step_y")
        tile = ("part", "columns", "rows", "blocks", "tiles_x", "tiles_y", "unit")
        return Abi(
            (
                ptr("x", "const Element* __restrict__"),
                ptr("w", "const Element* __restrict__"),
                ptr("bias", "const void* __restrict__", optional=True),
                ptr("c", "void*"),
                *(Param(name, "i64") for name in (*wide, *filters, *signed)),
                *(Param(name, "u32") for name in (*counts, *tile, "flags")),
            )
        )

    def describe(self) -> tuple[str, ...]:
        return (
            f"contract {self.contract}: {self.contract.step}",
            f"requires {self.requires}",
        )
