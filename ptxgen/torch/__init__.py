"""PyTorch frontend: the library's operations with autograd, autocast and ``torch.compile``.

:func:`linear`, :func:`matmul`, :func:`bmm` and :func:`baddbmm` compute products. :class:`Linear` is
an ``nn.Linear`` that calls :func:`linear`; :class:`QuantizedLinear` has a frozen quantized weight;
:func:`convert` turns the linear layers of a model into either. Inside a :class:`batch_invariant`
block, ATen operators of unmodified code run on ptxgen's kernels. Every other operation with
gradients is here under its name in :mod:`ptxgen`; reductions take ``dim`` and ``keepdim``. All of
them are custom operators as well, ``torch.ops.ptxgen``.

Needs PyTorch 2.7 or newer: ``pip install '.[torch]'`` in a checkout. The rest of ptxgen works
without torch.
"""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import Any

try:
    import torch as _torch
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "ptxgen.torch needs PyTorch, which is not installed: pip install ptxgen[torch]"
    ) from error

from ptxgen.torch import functional as _functional
from ptxgen.torch.convert import convert
from ptxgen.torch.exported import export
from ptxgen.torch.functional import baddbmm, bmm, linear, matmul, quantized_linear
from ptxgen.torch.graphs import Backend
from ptxgen.torch.losses import LinearCrossEntropy, linear_cross_entropy
from ptxgen.torch.models import paged_attention, register_attention, register_experts
from ptxgen.torch.module import Conversion, Linear, QuantizedLinear
from ptxgen.torch.sdpa import attention
from ptxgen.torch.serve import batch_invariant

_functional.register()

__all__ = [
    "Backend",
    "Conversion",
    "Linear",
    "LinearCrossEntropy",
    "QuantizedLinear",
    "amax",
    "amin",
    "argmax",
    "argmin",
    "attention",
    "baddbmm",
    "batch_invariant",
    "bmm",
    "convert",
    "export",
    "linear",
    "linear_cross_entropy",
    "log_softmax",
    "matmul",
    "mean",
    "paged_attention",
    "prod",
    "quantized_linear",
    "register_attention",
    "register_experts",
    "softmax",
    "std",
    "var",
]


def __getattr__(name: str) -> Any:
    """Returns operation ``name`` of :mod:`ptxgen` with gradients; reductions take ``dim`` and
    ``keepdim``.
    """
    from ptxgen.ops import OPERATIONS
    from ptxgen.torch.dims import named

    if name in ("NF4Linear", "nf4_linear"):
        return _import_module("ptxgen.torch.nf4").renamed(name)
    if name.startswith("_") or name not in OPERATIONS or not OPERATIONS[name].in_torch:
        raise AttributeError(f"module 'ptxgen.torch' has no attribute {name!r}")
    found = named(OPERATIONS[name])
    if not _torch.compiler.is_compiling():  # a compiler is given another function
        globals()[name] = found
    return found


def __dir__() -> list[str]:
    from ptxgen.ops import OPERATIONS

    return sorted({*__all__, "sum", *(n for n, op in OPERATIONS.items() if op.in_torch)})
