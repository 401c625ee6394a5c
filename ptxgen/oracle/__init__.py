"""NumPy oracles of contracts and operations: they return the kernels' results, bit for bit."""

from ptxgen.oracle import grouped, int4, ops, quantized, row_reductions
from ptxgen.oracle.activation import activate
from ptxgen.oracle.attention import attention
from ptxgen.oracle.call import as_called
from ptxgen.oracle.column_reductions import layer_norm_wgrad, rms_norm_wgrad
from ptxgen.oracle.f32 import fma
from ptxgen.oracle.fft import fft_block
from ptxgen.oracle.flce import linear_cross_entropy, linear_cross_entropy_grad
from ptxgen.oracle.gather_scatter import (
    embedding,
    embedding_backward,
    gather,
    index_add,
    scatter_add,
)
from ptxgen.oracle.gemm import chain, chain16
from ptxgen.oracle.logsumexp import logsumexp as _logsumexp
from ptxgen.oracle.quantized import dequantize
from ptxgen.oracle.recurrence import linear_recurrence, selective_scan
from ptxgen.oracle.scan import cumsum, logcumsumexp
from ptxgen.oracle.select import sample, topk
from ptxgen.oracle.sort import argsort, bincount, searchsorted, sort
from ptxgen.oracle.triangular import solve_triangular

linear = as_called(ops.linear)
linear_dgrad = as_called(ops.linear_dgrad)
linear_wgrad = as_called(ops.linear_wgrad, accumulates=True)
matmul = as_called(ops.matmul)
grouped_linear = as_called(grouped.grouped_linear)
grouped_linear_wgrad = as_called(grouped.grouped_linear_wgrad)
logsumexp = as_called(_logsumexp)
int4_gemm = as_called(int4.int4_gemm)
quantized_embedding = as_called(quantized.quantized_embedding)
quantized_grouped_linear = as_called(quantized.quantized_grouped_linear)
quantized_linear = as_called(quantized.quantized_linear)
quantized_linear_dgrad = as_called(quantized.quantized_linear_dgrad)
globals().update({name: as_called(oracle) for name, oracle in row_reductions.ORACLES.items()})

__all__ = [
    "activate",
    "argsort",
    "attention",
    "bincount",
    "chain",
    "chain16",
    "cumsum",
    "dequantize",
    "embedding",
    "embedding_backward",
    "fft_block",
    "fma",
    "gather",
    "grouped_linear",
    "grouped_linear_wgrad",
    "index_add",
    "int4_gemm",
    "layer_norm_wgrad",
    "linear",
    "linear_cross_entropy",
    "linear_cross_entropy_grad",
    "linear_dgrad",
    "linear_recurrence",
    "linear_wgrad",
    "logcumsumexp",
    "logsumexp",
    "matmul",
    "quantized_embedding",
    "quantized_grouped_linear",
    "quantized_linear",
    "quantized_linear_dgrad",
    "rms_norm_wgrad",
    "sample",
    "scatter_add",
    "searchsorted",
    "sort",
    "solve_triangular",
    "selective_scan",
    "topk",
    *row_reductions.ORACLES,
]
