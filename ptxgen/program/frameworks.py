"""Current streams and array allocators of PyTorch and CuPy, for prepared calls."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from ptxgen.program.prepared import DIALECTS, Maker
from ptxgen.runtime import Call, cupy_current, resolve, torch_current
from ptxgen.runtime.call import strided
from ptxgen.runtime.strided import Ints

__all__ = ["compiling", "current_torch", "maker", "resolve"]


def compiling() -> bool:
    """Whether ``torch.compile`` is tracing the caller."""
    torch = sys.modules.get("torch")
    return torch is not None and torch.compiler.is_dynamo_compiling()


def current_torch(index: int) -> int:
    """Returns the handle of PyTorch's current stream on GPU ``index``."""
    return torch_current(index)


def maker(call: Call) -> Maker:
    """Returns the allocator and the current stream of a call's framework, on the call's GPU."""
    index = call.lead.index
    if call.lead.framework == "torch":
        torch = sys.modules["torch"]
        raw = getattr(torch._C, "_cuda_getCurrentRawStream", None) or torch_current
        empty = functools.partial(torch_empty, torch, index)
        return Maker(empty, DIALECTS["torch"].pointer, functools.partial(raw, index), strided)
    cupy = sys.modules["cupy"]
    current = functools.partial(cupy_current, index)
    return Maker(functools.partial(_cupy_empty, cupy), DIALECTS["cupy"].pointer, current, strided)


def torch_empty(
    torch: Any, index: int, shape: Ints, strides: Ints, dtype: str
) -> Callable[[], Any]:
    """Returns a function that allocates tensors of this shape, these strides and this dtype.

    It uses the private allocator of torch.compile's code if this torch has it (a third of the cost
    of ``torch.empty``). That allocates on the current GPU, so the current GPU is checked.
    """
    kind = getattr(torch, dtype)
    slow = functools.partial(
        torch.empty_strided, shape, strides, dtype=kind, device=torch.device("cuda", index)
    )
    guards = getattr(getattr(torch._C, "_dynamo", None), "guards", None)
    fast = getattr(guards, "_empty_strided_cuda", None)
    current = getattr(torch._C, "_cuda_getDevice", None)
    if fast is None or current is None:
        return slow
    if torch.cuda.device_count() == 1:
        return functools.partial(fast, shape, strides, kind)
    return lambda: fast(shape, strides, kind) if current() == index else slow()


def _cupy_empty(cupy: Any, shape: Ints, strides: Ints, dtype: str) -> Callable[[], Any]:
    kind = cupy.dtype(dtype)

    def allocate() -> Any:
        flat = cupy.empty(shape, kind)
        byte_strides = tuple(s * kind.itemsize for s in strides)
        return (
            flat
            if flat.strides == byte_strides
            else cupy.ndarray(shape, kind, flat.data, byte_strides)
        )

    return allocate
