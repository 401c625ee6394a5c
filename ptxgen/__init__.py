"""ptxgen: a kernel compiler in Python, and the deterministic GPU operations made with it.

``dir(ptxgen)`` lists the operations: products (:func:`linear`, :func:`matmul` ...), row
operations (:func:`softmax`, :func:`rms_norm`, :func:`sum` ...), indexing (:func:`embedding` ...),
losses. :func:`pointwise` makes an elementwise operation from a Python function;
:mod:`ptxgen.functions` has ready ones. :mod:`ptxgen.layout` has copies and views;
:mod:`ptxgen.int4` and :mod:`ptxgen.quantized` multiply 4-bit integers and quantized weights.
:func:`capture` makes a CUDA graph of a function of operations; :func:`load` reads a saved one.
:func:`explain` says which kernel serves a problem and why; :mod:`ptxgen.reference` has NumPy
oracles with the same bits; :class:`use_device` sets the device of NumPy arrays;
:class:`autotune` times kernels for each new problem; :class:`timeline` records a trace.
:mod:`ptxgen.torch` (import it by itself) has layers, gradients and whole models of PyTorch.

Importing this package does nothing: each name is loaded when it is first used.
"""

from __future__ import annotations

from typing import Any

from ptxgen import lazy

__version__ = "0.1.0"

_ERRORS = (
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
    "SavedError",
    "ShapeError",
    "SpecError",
    "StepLimitFault",
    "TraceError",
    "TrapFault",
    "UncoveredError",
    "UninitializedFault",
)
_MODULES = ("functions", "int4", "layout", "nf4", "quantized", "reference")
_HOMES = {
    **{name: f"ptxgen.errors:{name}" for name in _ERRORS},
    **{name: f"ptxgen.{name}" for name in _MODULES},
    "autotune": "ptxgen.program.autotune:autotune",
    "capture": "ptxgen.program.capture:capture",
    "devices": "ptxgen.runtime:devices",
    "explain": "ptxgen.ops.explaining:explain",
    "load": "ptxgen.program.load:load",
    "mel_filters": "ptxgen.ops.mel:mel_filters",
    "pointwise": "ptxgen.autograd:pointwise",
    "profile": "ptxgen.ops.profiling:profile",
    "set_default_device": "ptxgen.runtime:set_default_device",
    "timeline": "ptxgen.program.timeline:timeline",
    "use_device": "ptxgen.runtime:use_device",
}
"""Import paths of the public names that are not operations: ``module:attribute``, or a module."""


def _load(name: str) -> Any:
    """Returns the object of a public name: the one at its path in _HOMES, or an operation's
    function.
    """
    if name == "__all__":
        return [n for n in _names() if n != "sum"]  # import * leaves Python's own
    if name in _HOMES:
        return lazy.resolve(_HOMES[name])
    from importlib.util import find_spec

    if find_spec(f"ptxgen.{name}"):  # Python asks here first, and then imports it
        raise AttributeError(f"ptxgen.{name} is loaded by itself: import ptxgen.{name}")
    from ptxgen.ops import OPERATIONS

    if not OPERATIONS[name].public:
        raise LookupError(name)
    return OPERATIONS[name].function


def _names() -> list[str]:
    from ptxgen.ops import OPERATIONS

    return sorted((*_HOMES, *(name for name, op in OPERATIONS.items() if op.public)))


__getattr__, __dir__ = lazy.attributes(__name__, _load, _names)
