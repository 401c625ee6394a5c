"""A fake GPU whose kernels compute, in NumPy, what their parameter lists say."""

from __future__ import annotations

import ctypes

import numpy as np
from runtime_fakes import FakeDevice, fake_torch

from ptxgen.contract import ACTIVATIONS
from ptxgen.reference import activate, chain
from ptxgen.reference.f32 import add
from ptxgen.runtime.launch import GEMM_PARAMS
from ptxgen.tiles import SPECS

NAMES = ("a", "b", "bias", "c", "workspace", "lda", "ldb", "ldc", "m", "n", "k", "chunk", "flags")


def unpack(params):
    """The fields of a GEMM parameter list, by name."""
    return dict(zip(NAMES, GEMM_PARAMS.unpack(params), strict=True))


def memory(ptr, rows, columns, ld):
    """A writable [rows, columns] f32 array at ``ptr``."""
    if rows == 0 or columns == 0:
        return np.empty((rows, columns), np.float32)
    span = (rows - 1) * ld + columns
    flat = np.frombuffer((ctypes.c_float * span).from_address(ptr), np.float32)
    strides = (ld * 4, 4)
    return np.lib.stride_tricks.as_strided(flat, (rows, columns), strides, writeable=True)


class Kernels:
    """Every kernel of ``tiles.SPECS``, by symbol."""

    def __contains__(self, symbol):
        return symbol in SPECS

    def __getitem__(self, symbol):
        return lambda params: _compute(SPECS[symbol], **unpack(params))


def _compute(spec, a, b, bias, c, workspace, lda, ldb, ldc, m, n, k, chunk, flags):
    out = memory(c, m, n, ldc)
    if spec.family == "reduce":
        total = memory(workspace, m, n, n).copy()
        for i in range(1, max(-(-k // chunk), 1)):
            np.add(total, memory(workspace + i * m * n * 4, m, n, n), out=total)
    else:
        left = memory(a, m, k, lda) if spec.layout[0] == "N" else memory(a, k, m, lda).T
        right = memory(b, k, n, ldb) if spec.layout[1] == "N" else memory(b, n, k, ldb).T
        if spec.split == "workspace":
            for i, start in enumerate(range(0, max(k, 1), chunk)):
                part = chain(left[:, start : start + chunk], right[start : start + chunk], chunk)
                memory(workspace + i * m * n * 4, m, n, n)[...] = part
            return
        total = chain(left, right, chunk)
    if bias:
        total = add(total, memory(bias, 1, n, n))
    total = activate(ACTIVATIONS[flags >> 8], total)
    if flags & 1:
        total = add(total, out)
    out[...] = total


class FakeGpu(FakeDevice):
    """A :class:`FakeDevice` of kind "cuda" with :class:`Kernels`."""

    def __init__(self, index=0, **options):
        super().__init__("cuda", index, **options)
        self.kernels = Kernels()

    def launches(self):
        """(symbol, grid, block, stream, parameters by name, what) of every launch so far."""
        return [(e[1], e[2], e[3], e[4], unpack(e[5]), e[6]) for e in self.events("launch")]


def torch_for_ops():
    """The fake torch of the runtime's tests, with what the operations ask for besides."""
    torch = fake_torch()
    torch.grad_enabled = True
    torch.Tensor.requires_grad = False
    torch.Tensor.get_device = lambda self: self.device.index if self.is_cuda else -1
    torch.is_grad_enabled = lambda: torch.grad_enabled
    return torch
