"""Kernel specs: frozen data that names, sizes and bounds one generated kernel.

A spec refuses to exist when it is illegal: every invariant is checked at construction and
the message shows both sides with their numbers. What follows from the fields (threads,
shared memory, grid, workspace, where the kernel is correct) is derived here and nowhere
else; the dispatcher, the prover, the runtime and the templates read it from the spec.

``base`` has what all families share (problem variables, limits, routes), and one module each
has a family.
"""

from __future__ import annotations

from ptxgen.numerics.contract import K, M, N
from ptxgen.spec.base import (
    ACCUMULATE,
    ACTIVATION_SHIFT,
    ALIGN_A,
    ALIGN_B,
    ARCHITECTURES,
    BIAS_F32,
    CHUNK,
    CHUNKS,
    DIM_MAX,
    GRID_MAX,
    INDEX_MAX,
    LAYOUTS,
    OUT_F32,
    PARTIAL_SUMS,
    SMS,
    WARP,
    WORKSPACE_MAX,
    Architecture,
    Expect,
    GemmSpec,
    KernelSpec,
    MapBox,
    Route,
    check,
)
from ptxgen.spec.mma import MMA_COPIES, MMA_SPLITS, STREAMS, MmaSpec
from ptxgen.spec.simt import (
    K_COPIES,
    ORDERS,
    OUTER_COPIES,
    RAW_COPIES,
    SPLITS,
    ReduceSpec,
    TileSpec,
)
from ptxgen.spec.wgmma import WgmmaSpec

__all__ = [
    "ACCUMULATE",
    "ACTIVATION_SHIFT",
    "ALIGN_A",
    "ALIGN_B",
    "ARCHITECTURES",
    "BIAS_F32",
    "CHUNK",
    "CHUNKS",
    "DIM_MAX",
    "GRID_MAX",
    "INDEX_MAX",
    "K_COPIES",
    "LAYOUTS",
    "MMA_COPIES",
    "MMA_SPLITS",
    "ORDERS",
    "OUTER_COPIES",
    "OUT_F32",
    "PARTIAL_SUMS",
    "RAW_COPIES",
    "SMS",
    "SPLITS",
    "STREAMS",
    "WARP",
    "WORKSPACE_MAX",
    "Architecture",
    "Expect",
    "GemmSpec",
    "K",
    "KernelSpec",
    "M",
    "MapBox",
    "MmaSpec",
    "N",
    "ReduceSpec",
    "Route",
    "TileSpec",
    "WgmmaSpec",
    "check",
]
