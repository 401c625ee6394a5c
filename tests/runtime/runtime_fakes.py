"""A device without hardware and a stand-in for torch, for testing the runtime's logic."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace

import numpy as np

from ptxgen.runtime.device import Device
from ptxgen.runtime.launch import Function


class FakeDevice(Device):
    """Device memory is host memory, a kernel is a Python function, and every call is logged.

    ``kernels`` maps a symbol to ``f(params)``; ``lanes`` a stream to its lane.
    """

    def __init__(self, kind="fake", index=0, compute=(9, 0), max_shared=232448):
        super().__init__(kind, index, name="Fake", compute=compute, sms=132, max_shared=max_shared)
        self.log = []
        self.memory = {}
        self.kernels = {}
        self.lanes = {}
        self.unfinished = set()

    def _load(self, image, symbol):
        self.log.append(("load", image, symbol))
        return 7

    def _allow_shared(self, handle, symbol, nbytes):
        self.log.append(("allow_shared", handle, symbol, nbytes))

    def launch(self, function, grid, block, stream, params, what):
        self.log.append(("launch", function.symbol, grid, block, stream, params, what))
        if function.symbol in self.kernels:
            self.kernels[function.symbol](params)

    def tensor_map(self, box, pointer):
        return f"{box.pointer}@{pointer}".encode().ljust(128, b"\0")

    def alloc(self, nbytes):
        buffer = (ctypes.c_uint64 * (nbytes // 8 + 33))()
        ptr = -(-ctypes.addressof(buffer) // 256) * 256
        ctypes.memset(ptr, 0xA5, nbytes)
        self.memory[ptr] = buffer
        self.log.append(("alloc", nbytes))
        return ptr

    def free(self, ptr):
        del self.memory[ptr]
        self.log.append(("free", ptr))

    def copy_in(self, dst, src, nbytes, stream=0):
        ctypes.memmove(dst, src, nbytes)
        self.log.append(("copy_in", nbytes, stream))

    def copy_out(self, dst, src, nbytes, stream=0):
        ctypes.memmove(dst, src, nbytes)
        self.log.append(("copy_out", nbytes, stream))

    def copy(self, dst, src, nbytes, stream=0):
        ctypes.memmove(dst, src, nbytes)
        self.log.append(("copy", nbytes, stream))

    def memset(self, ptr, value, nbytes, stream=0):
        ctypes.memset(ptr, value, nbytes)

    def synchronize(self, stream=None):
        self.log.append(("synchronize", stream))

    def lane(self, stream):
        return self.lanes.get(stream, stream)

    def order(self, stream, after):
        self.log.append(("order", stream, after))

    def mark(self, stream):
        self.unfinished.add(stream)
        return stream

    def done(self, mark):
        return mark not in self.unfinished

    def events(self, *kinds):
        return [entry for entry in self.log if entry[0] in kinds]


def function(device, symbol="k", shared_bytes=0):
    return Function(device, symbol, 7, shared_bytes)


def fake_torch():
    """A module that looks like torch to the runtime; tensors sit on top of NumPy arrays."""
    strided = object()
    torch = SimpleNamespace(strided=strided, raw_stream=77)

    class Tensor:
        def __init__(self, array, device="cuda:0", dtype=None):
            kind, _, index = device.partition(":")
            self.array = array
            self.device = SimpleNamespace(type=kind, index=int(index or 0))
            self.dtype = f"torch.{dtype or array.dtype.name}"
            self.layout = strided
            self.is_cuda = kind == "cuda"
            self.negated = self.conjugated = False

        @property
        def shape(self):
            return self.array.shape

        def stride(self):
            return tuple(s // self.array.itemsize for s in self.array.strides)

        def data_ptr(self):
            return self.array.ctypes.data

        def get_device(self):
            return self.device.index

        def is_neg(self):
            return self.negated

        def is_conj(self):
            return self.conjugated

    Tensor.__module__ = "torch"

    class Parameter(Tensor):
        pass

    Parameter.__module__ = "torch.nn.parameter"

    torch.Tensor, torch.Parameter = Tensor, Parameter
    torch._C = SimpleNamespace(_cuda_getCurrentRawStream=lambda index: torch.raw_stream + index)
    torch.float32 = "float32"
    torch.device = lambda kind, index: f"{kind}:{index}"
    torch.empty = lambda shape, dtype, device: Tensor(np.full(shape, np.nan, dtype), device)
    torch.empty_strided = lambda shape, strides, dtype, device: torch.empty(shape, dtype, device)
    torch.cuda = SimpleNamespace(
        current_stream=lambda index: SimpleNamespace(cuda_stream=torch.raw_stream + index)
    )
    return torch
