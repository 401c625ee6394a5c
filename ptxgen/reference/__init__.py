"""NumPy oracles of the contracts and operations, bit for bit what the kernels return."""

from ptxgen.reference.activation import activate
from ptxgen.reference.f32 import fma
from ptxgen.reference.gemm import chain, chain16
from ptxgen.reference.ops import linear, linear_dgrad, linear_wgrad, matmul

__all__ = [
    "activate",
    "chain",
    "chain16",
    "fma",
    "linear",
    "linear_dgrad",
    "linear_wgrad",
    "matmul",
]
