"""PyTorch: the library's products with autograd, autocast and ``torch.compile``.

:func:`linear`, :func:`matmul`, :func:`bmm` and :func:`baddbmm` are functions; :class:`Linear` is
``nn.Linear`` made of them, :class:`NF4Linear` one with a frozen weight of 4 bits, and
:func:`convert` puts either into a model; :class:`batch_invariant` serves the products of code that
nobody can touch. Every other operation with gradients is here by its name (:func:`logsumexp`).
Underneath are custom operators, ``torch.ops.ptxgen``.

Nothing else in ptxgen imports this, or torch.
"""

from __future__ import annotations

from typing import Any

from ptxgen.torch import operators as _operators  # noqa: F401 - registers torch.ops.ptxgen
from ptxgen.torch.flce import LinearCrossEntropy, linear_cross_entropy
from ptxgen.torch.functional import baddbmm, bmm, linear, matmul
from ptxgen.torch.groupnorm import group_norm
from ptxgen.torch.module import Conversion, Linear, NF4Linear, convert
from ptxgen.torch.nf4 import nf4_linear
from ptxgen.torch.rowwise import (
    amax,
    amin,
    argmax,
    argmin,
    cross_entropy,
    layer_norm,
    log_softmax,
    mean,
    prod,
    rms_norm,
    softmax,
    std,
    var,
)
from ptxgen.torch.rowwise import sum as sum  # not in __all__: import * leaves Python's own
from ptxgen.torch.select import sample
from ptxgen.torch.serve import batch_invariant

__all__ = [
    "Conversion",
    "Linear",
    "LinearCrossEntropy",
    "NF4Linear",
    "amax",
    "amin",
    "argmax",
    "argmin",
    "baddbmm",
    "batch_invariant",
    "bmm",
    "convert",
    "cross_entropy",
    "group_norm",
    "layer_norm",
    "linear",
    "linear_cross_entropy",
    "log_softmax",
    "matmul",
    "mean",
    "nf4_linear",
    "prod",
    "rms_norm",
    "sample",
    "softmax",
    "std",
    "var",
]


def __getattr__(name: str) -> Any:
    """Operations whose operator is made from their row."""
    from ptxgen.ops import OPS
    from ptxgen.torch.generic import called

    row = OPS.get(name)
    if row is None or row.backward is None:
        raise AttributeError(f"module 'ptxgen.torch' has no attribute {name!r}")
    return called(row)
