"""Choice of the stream that a call works on.

It is the stream passed as ``stream=``; else the current stream of the operands' framework
(PyTorch, CuPy); else the legacy default stream, 0. Nothing here synchronises.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from ptxgen.errors import DeviceError, OptionError, PtxgenError, described
from ptxgen.runtime.arrays import framework_of

_LEGACY = 1  # CU_STREAM_LEGACY: another name of stream 0


def resolve(stream: Any, operands: Iterable[Any]) -> int:
    """Returns the handle of the stream that a call with ``operands`` works on.

    ``stream``: None, a handle (int), an object with ``__cuda_stream__``, a PyTorch or a CuPy
    stream. Raises OptionError for anything else, DeviceError for a stream of another GPU
    than the operands'.
    """
    if stream is None:
        for operand in operands:
            framework = framework_of(operand)
            if framework == "torch" and operand.is_cuda:
                return torch_current(operand.get_device())
            if framework == "cupy":
                return cupy_current(int(operand.device.id))
        return 0
    try:
        return _passed(stream, operands)
    except PtxgenError:
        raise
    except Exception as error:  # of an object whose attributes fail
        raise OptionError(
            f"stream is a {type(stream).__qualname__} that cannot be read: "
            f"{type(error).__name__}: {error}"
        ) from error


def _passed(stream: Any, operands: Iterable[Any]) -> int:
    """Returns the handle of a stream passed as ``stream=``, after a check of its GPU."""
    index = getattr(stream, "device_index", None)  # torch.cuda.Stream
    if index is None:
        index = getattr(stream, "device_id", None)  # cupy.cuda.Stream; -1: any
    if isinstance(index, int) and index >= 0:
        for operand in operands:
            if framework_of(operand) in ("torch", "cupy"):
                where = int(
                    operand.device.index if hasattr(operand, "is_cuda") else operand.device.id
                )
                if where != index:
                    raise DeviceError(
                        f"stream= belongs to cuda:{index}, the operands are on cuda:{where}"
                    )
                break
    handle = _handle(stream)
    return 0 if handle == _LEGACY else handle


def _handle(stream: Any) -> int:
    if isinstance(stream, int) and not isinstance(stream, bool):
        if stream >= 0:
            return stream
    elif hasattr(stream, "__cuda_stream__"):
        protocol = stream.__cuda_stream__
        version, handle = protocol() if callable(protocol) else protocol
        if version == 0:
            return int(handle)
        raise OptionError(f"stream: version {version} of __cuda_stream__ is unknown; takes 0")
    else:
        for attribute in ("cuda_stream", "ptr"):  # PyTorch, CuPy
            handle = getattr(stream, attribute, None)
            if isinstance(handle, int):
                return handle
    raise OptionError(
        f"stream is {described(stream)}; takes None, a handle (int >= 0), an object with "
        "__cuda_stream__, a torch.cuda.Stream or a cupy.cuda.Stream"
    )


def torch_current(index: int) -> int:
    """Returns the handle of PyTorch's current stream on GPU ``index``."""
    torch: Any = sys.modules["torch"]
    raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    if raw is not None:  # private, but what torch's own compiled code uses; 0.1 µs
        return int(raw(index))
    return int(torch.cuda.current_stream(index).cuda_stream)


def cupy_current(index: int) -> int:
    """Returns the handle of CuPy's current stream on GPU ``index``."""
    cupy: Any = sys.modules["cupy"]
    return int(cupy.cuda.get_current_stream(index).ptr)
