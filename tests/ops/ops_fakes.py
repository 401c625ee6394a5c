"""A fake GPU whose kernels compute, in NumPy, what their parameter lists say."""

from __future__ import annotations

import copy
import ctypes

import numpy as np
from bits import NUMPY
from runtime_fakes import FakeDevice, fake_torch

import ptxgen
from ptxgen.numerics.contract import ACTIVATIONS, TC16
from ptxgen.numerics.dtype import ITEMSIZE
from ptxgen.ops import OPERATIONS
from ptxgen.oracle import activate
from ptxgen.oracle.dot16 import tensor_core
from ptxgen.oracle.f32 import add
from ptxgen.oracle.gemm import chain, chain16
from ptxgen.oracle.half import downcast
from ptxgen.spec import ACCUMULATE, ACTIVATION_SHIFT, ALONE, BIAS_F32, OUT_F32
from ptxgen.tiles import SPECS


def memory(ptr, rows, columns, ld, dtype="f32"):
    """A writable [rows, columns] array at ``ptr``."""
    kind = NUMPY[dtype]
    if rows == 0 or columns == 0:
        return np.empty((rows, columns), kind)
    size = ((rows - 1) * ld + columns) * kind.itemsize
    flat = np.frombuffer((ctypes.c_byte * size).from_address(ptr), kind)
    strides = (ld * kind.itemsize, kind.itemsize)
    return np.lib.stride_tricks.as_strided(flat, (rows, columns), strides, writeable=True)


def product(spec, a, b, chunk):
    """The product in the contract of ``spec``, in f32."""
    if spec.contract != TC16:
        return chain(a.astype(np.float32), b.astype(np.float32), chunk)
    bits = a.view(np.uint16), b.view(np.uint16)
    return chain16(*bits, chunk, spec.dtype, tensor_core("sm_90"))


class Kernels:
    """Every kernel of ``tiles.SPECS``, by symbol."""

    def __contains__(self, symbol):
        return symbol in SPECS

    def __getitem__(self, symbol):
        return lambda params: _compute(SPECS[symbol], **SPECS[symbol].abi.unpack(params))


def _compute(spec, a, b, bias, c, workspace, lda, ldb, ldc, m, n, k, chunk, flags, **batch):
    assert batch.items() <= {name.lower(): value for name, value in ALONE}.items()
    dtype, sums = spec.dtype, spec.contract.accumulator
    width = ITEMSIZE[sums]
    if spec.family == "reduce":
        total = memory(workspace, m, n, n, sums).copy()
        for i in range(1, max(-(-k // chunk), 1)):
            np.add(total, memory(workspace + i * m * n * width, m, n, n, sums), out=total)
    else:
        turn_a, turn_b = (letter == "T" for letter in spec.layout)
        left = memory(a, k, m, lda, dtype).T if turn_a else memory(a, m, k, lda, dtype)
        right = memory(b, n, k, ldb, dtype).T if turn_b else memory(b, k, n, ldb, dtype)
        if spec.split == "workspace":
            for i, start in enumerate(range(0, max(k, 1), chunk)):
                part = slice(start, start + chunk)
                target = memory(workspace + i * m * n * width, m, n, n, sums)
                target[...] = product(spec, left[:, part], right[part], chunk)
            return
        total = product(spec, left, right, chunk)
    if dtype == "f64":  # as it is, without activations
        if bias:
            total = total + memory(bias, 1, n, n, dtype)
        out = memory(c, m, n, ldc, dtype)
        out[...] = total + out if flags & ACCUMULATE else total
        return
    if bias:
        kind = "f32" if flags & BIAS_F32 else dtype
        total = add(total, memory(bias, 1, n, n, kind).astype(np.float32))
    total = activate(ACTIVATIONS[flags >> ACTIVATION_SHIFT], total)
    kind = "f32" if flags & OUT_F32 else dtype
    out = memory(c, m, n, ldc, kind)
    if flags & ACCUMULATE:
        total = add(total, out.astype(np.float32))
    out[...] = total if kind == "f32" else downcast(total, kind).view(NUMPY[kind])


class FakeGpu(FakeDevice):
    """A :class:`FakeDevice` of kind "cuda" with :class:`Kernels`."""

    def __init__(self, index=0, **options):
        super().__init__("cuda", index, **options)
        self.kernels = Kernels()

    def launches(self):
        """(symbol, grid, block, stream, parameters by name, what) of every launch so far."""
        return [
            (symbol, grid, block, stream, SPECS[symbol].abi.unpack(params), what)
            for _, symbol, grid, block, stream, params, what in self.events("launch")
        ]


def torch_for_ops():
    """The fake torch of the runtime's tests, with what the operations ask for besides."""
    torch = fake_torch()
    torch.bfloat16, torch.float16, torch.float64 = "bfloat16", "float16", "float64"
    torch.uint8, allocate = "uint8", torch.empty
    torch.empty = lambda shape, dtype, device: (
        torch.Tensor(np.full(shape, 0xA5, dtype), device)
        if dtype == "uint8"
        else allocate(shape, dtype, device)
    )
    torch.grad_enabled = True
    torch.Tensor.requires_grad = False
    torch.Tensor.get_device = lambda self: self.device.index if self.is_cuda else -1
    torch.is_grad_enabled = lambda: torch.grad_enabled
    return torch


def known_to_nobody(monkeypatch, *names):
    """Operations with memos of their own, in which no call is known."""
    for name in names:
        op = copy.copy(OPERATIONS[name])
        for made in ("frame", "function"):
            vars(op).pop(made, None)
        assert getattr(ptxgen, name), "a name that is there can be put back"
        monkeypatch.setattr(ptxgen, name, op.function)
