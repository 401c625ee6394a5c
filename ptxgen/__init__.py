"""ptxgen: a kernel compiler in Python, and the deterministic GPU operations made with it.

The operations: :func:`linear`, :func:`linear_dgrad`, :func:`linear_wgrad`, :func:`matmul`,
:func:`logsumexp`; of any formula by :func:`pointwise`, those with names in :mod:`ptxgen.functions`;
:mod:`ptxgen.layout` has copies and views; of 4-bit integers :func:`int4.gemm`; :mod:`ptxgen.nf4`
has weights of 4 bits.
:func:`explain` says which kernel serves a problem and why; :mod:`ptxgen.reference` has NumPy
oracles with the same bits; :class:`use_device` says where NumPy arrays are computed;
:class:`autotune` has kernels timed as problems come.

Importing this does nothing: each name is loaded when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxgen.later import later

if TYPE_CHECKING:
    from ptxgen import functions, int4, layout, nf4, reference
    from ptxgen.errors import (
        BarrierFault,
        CacheWarning,
        CompileError,
        DeadlockFault,
        DeviceError,
        DtypeError,
        FormulaError,
        GradError,
        IndexRangeError,
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
    from ptxgen.ops import (
        amax,
        amin,
        argmax,
        argmin,
        cross_entropy,
        cumsum,
        embedding,
        embedding_backward,
        gather,
        group_norm,
        index_add,
        layer_norm,
        layer_norm_wgrad,
        linear,
        linear_cross_entropy,
        linear_cross_entropy_grad,
        linear_dgrad,
        linear_wgrad,
        log_softmax,
        logsumexp,
        matmul,
        mean,
        prod,
        rms_norm,
        rms_norm_wgrad,
        sample,
        scatter_add,
        softmax,
        std,
        topk,
        var,
    )
    from ptxgen.ops import sum as sum  # not in __all__: import * leaves Python's own alone
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
    "FormulaError",
    "GradError",
    "IndexRangeError",
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
    "amax",
    "amin",
    "argmax",
    "argmin",
    "autotune",
    "cross_entropy",
    "cumsum",
    "devices",
    "embedding",
    "embedding_backward",
    "explain",
    "functions",
    "gather",
    "group_norm",
    "index_add",
    "int4",
    "layer_norm",
    "layer_norm_wgrad",
    "layout",
    "linear",
    "linear_cross_entropy",
    "linear_cross_entropy_grad",
    "linear_dgrad",
    "linear_wgrad",
    "log_softmax",
    "logsumexp",
    "matmul",
    "mean",
    "nf4",
    "pointwise",
    "prod",
    "profile",
    "reference",
    "rms_norm",
    "rms_norm_wgrad",
    "sample",
    "scatter_add",
    "set_default_device",
    "softmax",
    "std",
    "topk",
    "use_device",
    "var",
]

_HOMES = {
    **{name: f"ptxgen.ops:{name}" for name in (*__all__, "sum")},
    **{name: f"ptxgen.errors:{name}" for name in __all__ if name[0].isupper()},
    **{name: f"ptxgen.{name}" for name in ("functions", "int4", "layout", "nf4", "reference")},
    "autotune": "ptxgen.ops.autotune:autotune",
    "devices": "ptxgen.runtime:devices",
    "explain": "ptxgen.ops.explaining:explain",
    "pointwise": "ptxgen.ops.pointwise:pointwise",
    "profile": "ptxgen.ops.profiling:profile",
    "set_default_device": "ptxgen.runtime:set_default_device",
    "use_device": "ptxgen.runtime:use_device",
}

__getattr__, __dir__ = later(__name__, _HOMES)
