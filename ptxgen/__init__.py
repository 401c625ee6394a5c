"""ptxgen: a kernel compiler in Python, and the deterministic GPU operations made with it.

The operations: :func:`linear`, :func:`linear_dgrad`, :func:`linear_wgrad`, :func:`matmul`,
:func:`logsumexp`; of any formula by :func:`pointwise`, those with names in :mod:`ptxgen.functions`;
:mod:`ptxgen.layout` has copies and views; of 4-bit integers :func:`int4.gemm`; :mod:`ptxgen.nf4` has
weights of 4 bits.
:func:`explain` says which kernel serves a problem and why; :mod:`ptxgen.reference` has NumPy
oracles with the same bits; :class:`use_device` says where NumPy arrays are computed;
:class:`autotune` has kernels timed as problems come.

Importing this does nothing: each name is loaded when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ptxgen import functions, int4, layout, nf4, reference
    from ptxgen.errors import (
        BarrierFault,
        CacheWarning,
        CompileError,
        DeadlockFault,
        DeviceError,
        DtypeError,
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
        index_add,
        layer_norm,
        layer_norm_wgrad,
        linear,
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
    "index_add",
    "int4",
    "layer_norm",
    "layer_norm_wgrad",
    "layout",
    "linear",
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
    "set_default_device",
    "softmax",
    "std",
    "topk",
    "use_device",
    "var",
]

_HOMES = {
    "amax": "ptxgen.ops",
    "amin": "ptxgen.ops",
    "argmax": "ptxgen.ops",
    "argmin": "ptxgen.ops",
    "autotune": "ptxgen.ops.autotune",
    "cross_entropy": "ptxgen.ops",
    "cumsum": "ptxgen.ops",
    "devices": "ptxgen.runtime",
    "embedding": "ptxgen.ops",
    "embedding_backward": "ptxgen.ops",
    "explain": "ptxgen.ops.explaining",
    "gather": "ptxgen.ops",
    "index_add": "ptxgen.ops",
    "layer_norm": "ptxgen.ops",
    "layer_norm_wgrad": "ptxgen.ops",
    "linear": "ptxgen.ops",
    "linear_dgrad": "ptxgen.ops",
    "linear_wgrad": "ptxgen.ops",
    "log_softmax": "ptxgen.ops",
    "logsumexp": "ptxgen.ops",
    "matmul": "ptxgen.ops",
    "mean": "ptxgen.ops",
    "pointwise": "ptxgen.ops.pointwise",
    "prod": "ptxgen.ops",
    "profile": "ptxgen.ops.profiling",
    "rms_norm": "ptxgen.ops",
    "rms_norm_wgrad": "ptxgen.ops",
    "sample": "ptxgen.ops",
    "set_default_device": "ptxgen.runtime",
    "softmax": "ptxgen.ops",
    "std": "ptxgen.ops",
    "sum": "ptxgen.ops",
    "topk": "ptxgen.ops",
    "use_device": "ptxgen.runtime",
    "var": "ptxgen.ops",
}


def __getattr__(name: str) -> Any:
    if name in ("functions", "int4", "layout", "nf4", "reference"):
        return importlib.import_module(f"ptxgen.{name}")
    if name not in __all__ and name not in _HOMES:
        raise AttributeError(f"module 'ptxgen' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES.get(name, "ptxgen.errors")), name)
    globals()[name] = value  # the next look-up is an ordinary one
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_HOMES})
