"""Kernel specs: frozen data that names, sizes and bounds one generated kernel.

A spec checks every invariant when it is built; the message of an error shows both sides. Threads,
shared memory, grid, workspace and the predicate of correctness are derived from the fields here and
nowhere else; the dispatcher, the prover, the runtime and the templates read them from the spec.

``space`` (variables of problems), ``abi`` (parameters), ``base`` (kernels) and ``route`` are common
to all operations; ``gemm`` is common to products; each other module has one family of kernels.
"""

from __future__ import annotations

from ptxgen.numerics.contract import (
    K,
    M,
    N,
)
from ptxgen.numerics.signature import DIM_MAX
from ptxgen.spec.abi import (
    Abi,
    MapBox,
    Param,
    ptr,
)
from ptxgen.spec.base import (
    ARCHITECTURES,
    GRID_MAX,
    INDEX_MAX,
    SCRATCH_MAX,
    WARP,
    WORKSPACE_MAX,
    Architecture,
    Expect,
    KernelSpec,
    architecture_named,
    check,
    standing_for,
)
from ptxgen.spec.gemm import (
    ACCUMULATE,
    ACTIVATION_SHIFT,
    ALIGN_A,
    ALIGN_B,
    ALIGN_C,
    ALONE,
    BATCH_MAX,
    BIAS_F32,
    CHUNK,
    CHUNKS,
    CONTINUE,
    ITEM_C,
    LAYOUTS,
    OUT_F32,
    PARTIAL_SUMS,
    SMS,
    GemmSpec,
    of_result,
)
from ptxgen.spec.problem import Problem
from ptxgen.spec.route import (
    Key,
    Route,
    RouteTable,
    Step,
)
from ptxgen.spec.space import (
    ALIGNMENT,
    SIZE,
    SMS_MAX,
    Between,
    Domain,
    OneOf,
    Space,
)

__all__ = [
    "ACCUMULATE",
    "ACTIVATION_SHIFT",
    "ALIGNMENT",
    "ALIGN_A",
    "ALIGN_B",
    "ALIGN_C",
    "ALONE",
    "ARCHITECTURES",
    "BATCH_MAX",
    "BIAS_F32",
    "CHUNK",
    "CHUNKS",
    "CONTINUE",
    "DIM_MAX",
    "GRID_MAX",
    "INDEX_MAX",
    "ITEM_C",
    "LAYOUTS",
    "OUT_F32",
    "PARTIAL_SUMS",
    "SCRATCH_MAX",
    "SIZE",
    "SMS",
    "SMS_MAX",
    "WARP",
    "WORKSPACE_MAX",
    "Abi",
    "Architecture",
    "Between",
    "Domain",
    "Expect",
    "GemmSpec",
    "K",
    "KernelSpec",
    "Key",
    "M",
    "MapBox",
    "N",
    "OneOf",
    "Param",
    "Problem",
    "Route",
    "RouteTable",
    "Space",
    "Step",
    "architecture_named",
    "check",
    "of_result",
    "ptr",
    "standing_for",
]
