"""Tensors of real PyTorch that pass for those of a GPU, and a GPU that notes its launches."""

from __future__ import annotations

import dataclasses
import struct
from typing import Any, NamedTuple

from runtime_fakes import FakeDevice

from ptxgen.program import frameworks, launch
from ptxgen.runtime import arrays, call, registry


class Fired(NamedTuple):
    """A launch: the kernel, its grid, and its parameters as numbers of 8 bytes; of these, the
    places of those that are addresses of memory that the GPU allocated.
    """

    kernel: str
    grid: tuple[int, ...]
    words: tuple[int, ...]
    own: frozenset[int]


class Gpu(FakeDevice):
    """``fired`` has the launches; ``spans``: addresses of what was allocated, freed or not."""

    def __init__(self) -> None:
        super().__init__("cuda")
        self.spans: list[range] = []

    def alloc(self, nbytes: int) -> int:
        ptr: int = super().alloc(nbytes)
        self._note(ptr, nbytes)
        return ptr

    def noted(self, tensor: Any) -> Any:
        """Notes the memory of a new tensor, which it returns."""
        memory = tensor.untyped_storage()
        self._note(memory.data_ptr(), memory.nbytes())
        return tensor

    def _note(self, ptr: int, nbytes: int) -> None:
        self.spans.append(range(ptr, ptr + max(nbytes, 1)))

    def tensor_map(self, box: Any, pointer: int) -> bytes:
        return struct.pack("<2Q", box.pointer, pointer).ljust(128, b"\0")

    @property
    def fired(self) -> list[Fired]:
        found = []
        for event in self.events("launch"):
            symbol, grid, packed = event[1], event[2], event[5]
            packed += bytes(-len(packed) % 8)
            words = struct.unpack(f"<{len(packed) // 8}Q", packed)
            own = (i for i, word in enumerate(words) if any(word in span for span in self.spans))
            found.append(Fired(symbol, grid, words, frozenset(own)))
        return found

    def called(self, function: Any, *args: Any, **named: Any) -> tuple[Any, list[Fired]]:
        """Calls ``function``; returns its result and the launches that it made."""
        self.log.clear()
        return function(*args, **named), self.fired


def gpu(monkeypatch: Any) -> Gpu:
    """The GPU, whose tensors are those on the CPU from here on."""
    import torch

    device = Gpu()
    seen = arrays._view_torch

    def view(x: Any, name: str, stream: int) -> Any:
        return dataclasses.replace(seen(x, name, stream), kind="cuda", index=0)

    def empty(like: Any, shape: Any, dtype: str, where: Any, stream: int) -> Any:
        tensor = device.noted(torch.empty(shape, dtype=getattr(torch, dtype)))
        return view(tensor, "out", 0), lambda: tensor

    def allocated(torch: Any, index: int, shape: Any, strides: Any, dtype: str) -> Any:
        kind = getattr(torch, dtype)
        return lambda: device.noted(torch.empty_strided(shape, strides, dtype=kind))

    monkeypatch.setattr(registry, "_kinds", dict(registry._kinds))
    registry.register("cuda", lambda: [device])
    monkeypatch.setitem(arrays._READERS, "torch", view)
    monkeypatch.setattr(call.arrays, "empty", empty)
    monkeypatch.setattr(frameworks, "torch_empty", allocated)
    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda index: 0, raising=False)
    for module in (frameworks, call):
        monkeypatch.setattr(module, "resolve", lambda stream, operands: 0)
    monkeypatch.setattr(launch, "_cubin", lambda spec, arch: b"")
    return device
