"""Depthwise convolutions: each channel's windows times its own filter (contract ``fma/2``).

==============  =====================================================================
``GROUPS``      groups of :data:`WINDOWS` windows of a row; the last of a row may have fewer
``N``           channels; 1 .. 2^31 - 1
``TAPS``        taps of a filter
``ALIGN``       largest of 1, 2, 4, 8, 16 bytes that divides the addresses of image and result,
                their pitches, and the bytes of a pixel's channels
``SMS``         streaming multiprocessors of the device
==============  =====================================================================

Kernels are told besides how windows, images and results lie, as those of :mod:`ptxgen.spec.conv`
are; and elements of the filters from channel to channel, from row to row and from tap to tap
(``W_CHANNEL, W_ROW, W_TAP``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from ptxgen.expr import Expr, ceil_div, var
from ptxgen.numerics.contract import FMA, TIERS, Contract, N
from ptxgen.spec.abi import Abi, Param, ptr
from ptxgen.spec.base import GRID_MAX, INDEX_MAX, Expect, KernelSpec, check
from ptxgen.spec.gemm import CONTEXT
from ptxgen.spec.space import ALIGNMENT, SIZE, SMS_MAX, Between, Space

GROUPS, TAPS, ALIGN = var("GROUPS"), var("TAPS"), var("ALIGN")
WINDOWS, VECTOR = 4, 8
"""Windows of a thread, neighbours of a row, and its channels: 16 bytes."""
TAPS_MAX = 64
"""Taps whose filters shared memory has room for."""

SPACE = Space(
    "depthwise filters",
    (
        ("GROUPS", SIZE),
        ("N", SIZE),
        ("TAPS", SIZE),
        ("ALIGN", ALIGNMENT),
        ("SMS", Between(1, SMS_MAX)),
    ),
)


@dataclass(frozen=True)
class DepthwiseSpec(KernelSpec):
    """A kernel whose CTAs have VECTOR channels of each of ``lanes`` threads, and walk over
    ``rounds`` of groups of windows with the filters of these in shared memory.
    """

    lanes: int = 8
    threads: int = 256
    rounds: int = 2
    dtype: str = "bf16"
    min_arch: str = "sm_80"
    contract: Contract = FMA

    family: ClassVar[str] = "depthwise"
    template: ClassVar[str] = "conv/depthwise.cu.j2"
    legible: ClassVar[bool] = False
    WINDOWS: ClassVar[int] = WINDOWS
    VECTOR: ClassVar[int] = VECTOR
    meanings: ClassVar[Mapping[str, str]] = {
        **KernelSpec.meanings,
        "lanes": "threads that have the channels of a window",
        "threads": "threads of a CTA",
        "rounds": "groups of windows of a thread, one after the other",
    }

    def __post_init__(self) -> None:
        self.check_counts("lanes", "threads", "rounds")
        self.check_choices(dtype=TIERS["tc"])
        self.check_threads()
        check(self.threads % self.lanes == 0, self.name, "whole windows", self.threads, self.lanes)

    @property
    def label(self) -> str:
        return f"{self.dtype}_{self.lanes}x{self.threads // self.lanes}"

    @property
    def context(self) -> Mapping[str, Any]:
        return CONTEXT

    @property
    def shared_bytes(self) -> int:
        return TAPS_MAX * self.lanes * VECTOR * 4

    @property
    def _each(self) -> int:
        """Groups of a CTA."""
        return self.rounds * self.threads // self.lanes

    @property
    def grid(self) -> Expr:
        return ceil_div(N, self.lanes * VECTOR) * ceil_div(GROUPS, self._each)

    @property
    def requires(self) -> Expr:
        return (ALIGN >= 16) & (TAPS <= TAPS_MAX) & (self.grid <= GRID_MAX)

    @property
    def expects(self) -> tuple[Expect, ...]:
        return (*super().expects, Expect("ld.global.nc.v4.u32"), Expect("st.global.v4.u32"))

    @property
    def index_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        return (
            ("group", GROUPS + self._each, INDEX_MAX),
            ("channel", N + self.lanes * VECTOR, INDEX_MAX),
        )

    @cached_property
    def abi(self) -> Abi:
        wide = ("pitch", "row_x", "image_x", "ldc", "row_c", "image_c")
        filters = ("w_channel", "w_row", "w_tap")
        signed = ("low_x", "low_y", "apart_x", "apart_y", "first_x", "first_y")
        counts = ("groups", "n", "taps", "taps_x", "wide", "high", "across", "down")
        return Abi(
            (
                ptr("x", "const Element* __restrict__"),
                ptr("w", "const Element* __restrict__"),
                ptr("bias", "const void* __restrict__", optional=True),
                ptr("c", "void*"),
                *(Param(name, "i64") for name in (*wide, *filters, *signed)),
                *(Param(name, "u32") for name in (*counts, "step_x", "step_y", "flags")),
            )
        )

    def describe(self) -> tuple[str, ...]:
        return (f"contract {self.contract}: {self.contract.step}", f"requires {self.requires}")
