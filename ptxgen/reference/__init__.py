"""NumPy oracles of the contracts and operations, bit for bit what the kernels return."""

from ptxgen.reference import int4, nf4, ops, rowops, rows
from ptxgen.reference.activation import activate
from ptxgen.reference.call import as_called
from ptxgen.reference.f32 import fma
from ptxgen.reference.gemm import chain, chain16
from ptxgen.reference.nf4 import nf4_dequantize

linear = as_called(ops.linear)
linear_dgrad = as_called(ops.linear_dgrad)
linear_wgrad = as_called(ops.linear_wgrad, accumulates=True)
matmul = as_called(ops.matmul)
logsumexp = as_called(rows.logsumexp)
int4_gemm = as_called(int4.int4_gemm)
nf4_linear = as_called(nf4.nf4_linear)
nf4_linear_dgrad = as_called(nf4.nf4_linear_dgrad)
globals().update({name: as_called(oracle) for name, oracle in rowops.ORACLES.items()})

__all__ = [
    "activate",
    "chain",
    "chain16",
    "fma",
    "int4_gemm",
    "linear",
    "linear_dgrad",
    "linear_wgrad",
    "logsumexp",
    "matmul",
    "nf4_dequantize",
    "nf4_linear",
    "nf4_linear_dgrad",
    *rowops.ORACLES,
]
