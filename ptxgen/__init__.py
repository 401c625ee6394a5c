"""ptxgen: a kernel compiler in Python, and the deterministic GPU operations made with it.

The operations: :func:`linear`, :func:`linear_dgrad`, :func:`linear_wgrad`, :func:`matmul`,
:func:`logsumexp`; of any formula by :func:`pointwise`, those with names in :mod:`ptxgen.functions`;
:mod:`ptxgen.moves` has copies and views; of 4-bit integers :func:`int4.gemm`; :mod:`ptxgen.nf4` has
weights of 4 bits.
:func:`explain` says which kernel serves a problem and why; :mod:`ptxgen.reference` has NumPy
oracles with the same bits; :class:`use_device` says where NumPy arrays are computed;
:class:`autotune` has kernels timed as problems come.

Importing this does nothing: each name is loaded when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxgen.later import later

if TYPE_CHECKING:
    from ptxgen import functions, int4, moves, nf4, reference
    from ptxgen.errors import (
        BarrierFault,
        CacheWarning,
        CompileError,
        DeadlockFault,
        DeviceError,
        DtypeError,
        GradError,
        KernelFault,
        MemoryFault,
        NoGpuError,
        OptionError,
        PtxError,
        PtxgenError,
        RaceFault,
        ShapeError,
        SpecError,
        StepLimitFault,
        TrapFault,
        UncoveredError,
        UninitializedFault,
    )
    from ptxgen.ops import linear, linear_dgrad, linear_wgrad, logsumexp, matmul
    from ptxgen.ops.autotune import autotune
    from ptxgen.ops.explaining import explain
    from ptxgen.ops.pointwise import pointwise
    from ptxgen.ops.profiling import profile
    from ptxgen.runtime import devices, set_default_device, use_device

__version__ = "0.1.0"

__all__ = [
    "BarrierFault",
    "CacheWarning",
    "CompileError",
    "DeadlockFault",
    "DeviceError",
    "DtypeError",
    "GradError",
    "KernelFault",
    "MemoryFault",
    "NoGpuError",
    "OptionError",
    "PtxError",
    "PtxgenError",
    "RaceFault",
    "ShapeError",
    "SpecError",
    "StepLimitFault",
    "TrapFault",
    "UncoveredError",
    "UninitializedFault",
    "autotune",
    "devices",
    "explain",
    "functions",
    "int4",
    "linear",
    "linear_dgrad",
    "linear_wgrad",
    "logsumexp",
    "matmul",
    "moves",
    "nf4",
    "pointwise",
    "profile",
    "reference",
    "set_default_device",
    "use_device",
]

_HOMES = {
    **{name: f"ptxgen.errors:{name}" for name in __all__},
    **{name: f"ptxgen.{name}" for name in ("functions", "int4", "moves", "nf4", "reference")},
    "autotune": "ptxgen.ops.autotune:autotune",
    "devices": "ptxgen.runtime:devices",
    "explain": "ptxgen.ops.explaining:explain",
    "linear": "ptxgen.ops:linear",
    "linear_dgrad": "ptxgen.ops:linear_dgrad",
    "linear_wgrad": "ptxgen.ops:linear_wgrad",
    "logsumexp": "ptxgen.ops:logsumexp",
    "matmul": "ptxgen.ops:matmul",
    "pointwise": "ptxgen.ops.pointwise:pointwise",
    "profile": "ptxgen.ops.profiling:profile",
    "set_default_device": "ptxgen.runtime:set_default_device",
    "use_device": "ptxgen.runtime:use_device",
}

__getattr__, __dir__ = later(__name__, _HOMES)
