"""Arrays that lie as a buffer does: read from a device, and put there."""

from __future__ import annotations

from typing import Any

from ptxgen.errors import DeviceError, DtypeError, ShapeError
from ptxgen.program.buffer import ALIGN, Buffer
from ptxgen.runtime import Device, DeviceArray
from ptxgen.runtime.arrays import common_device, host_bits, view
from ptxgen.runtime.strided import extent


def elements(buffer: Buffer, device: Device, address: int, stream: int) -> Any:
    """The bits of what lies so at ``address``, as a NumPy array row by row; ``stream`` is waited
    for.
    """
    import numpy

    low, high = extent(buffer.shape, buffer.strides, buffer.itemsize)
    raw = numpy.empty(high - low, numpy.uint8)
    if raw.size:
        device.copy_out(raw.ctypes.data, address + low, raw.size, stream)
        device.synchronize(stream)
    return numpy.ascontiguousarray(_within(raw, buffer, -low))


def put(buffer: Buffer, bits: Any, device: Device, stream: int) -> tuple[int, DeviceArray]:
    """The address on a device of a copy of these bits, a NumPy array, that lies as ``buffer`` does,
    and the memory that it is in.
    """
    import numpy

    low, high = extent(buffer.shape, buffer.strides, buffer.itemsize)
    ahead = (buffer.address + low) % ALIGN
    ours = DeviceArray(device, (ahead + high - low,), "uint8", stream)
    try:
        raw = numpy.zeros(high - low, numpy.uint8)
    except MemoryError:
        name = buffer.memory.name
        raise DeviceError(f"{name}: this machine has no memory for {high - low} bytes") from None
    if raw.size:
        _within(raw, buffer, -low)[...] = bits
        device.copy_in(ours.ptr + ahead, raw.ctypes.data, raw.size, stream)
        device.synchronize(stream)
    return ours.ptr + ahead - low, ours


def placed(buffer: Buffer, x: Any, device: Device, stream: int) -> tuple[int, Any]:
    """The address of an array ``x`` that is to lie as ``buffer`` does, and what keeps it: where it
    is, or of one in host memory that of a copy.

    Raises ShapeError, DtypeError and DeviceError, with its name, for an array that does not fit.
    """
    name = buffer.memory.name
    seen = view(x, name, stream)
    if seen.shape != buffer.shape:
        raise ShapeError(f"{name} has shape {list(seen.shape)}; takes {list(buffer.shape)}")
    if seen.dtype != buffer.dtype:
        raise DtypeError(f"{name} has dtype {seen.dtype}; takes {buffer.dtype}")
    where = common_device({name: seen})
    if where is None:
        return put(buffer, host_bits(seen), device, stream)
    if where is not device:
        raise DeviceError(f"{name} is in {seen.where}; takes arrays on {device}, or in host memory")
    lies, wanted = (seen.strides, seen.ptr % ALIGN), (buffer.strides, buffer.address)
    if lies != wanted:
        raise ShapeError(
            f"{name} has strides {list(lies[0])} and lies {lies[1]} bytes behind a multiple of "
            f"{ALIGN}; takes strides {list(wanted[0])}, {wanted[1]} bytes behind one"
        )
    return seen.ptr, x


def _within(raw: Any, buffer: Buffer, first: int) -> Any:
    """The elements that lie so in some bytes, the first of which begins at ``first``."""
    import numpy

    size = buffer.itemsize
    if not raw.size:
        return numpy.empty(buffer.shape, f"u{size}")
    strides = tuple(step * size for step in buffer.strides)
    flat = raw.view(f"u{size}")[first // size :]
    return numpy.lib.stride_tricks.as_strided(flat, buffer.shape, strides)
