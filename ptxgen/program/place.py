"""Copies of strided arrays between host and device, with the strides and alignment of a buffer."""

from __future__ import annotations

from typing import Any

from ptxgen.errors import DeviceError, DtypeError, ShapeError
from ptxgen.program.buffer import ALIGN, Buffer
from ptxgen.runtime import Device, DeviceArray
from ptxgen.runtime.arrays import common_device, host_bits, view
from ptxgen.runtime.strided import extent


def elements(buffer: Buffer, device: Device, address: int, stream: int) -> Any:
    """Downloads the array at ``address``, which has the layout of ``buffer``, as a contiguous NumPy
    array of unsigned integers (its bits). Waits for ``stream``.
    """
    import numpy

    low, high = extent(buffer.shape, buffer.strides, buffer.itemsize)
    raw = numpy.empty(high - low, numpy.uint8)
    if raw.size:
        device.copy_out(raw.ctypes.data, address + low, raw.size, stream)
        device.synchronize(stream)
    return numpy.ascontiguousarray(_within(raw, buffer, -low))


def put(buffer: Buffer, bits: Any, device: Device, stream: int) -> tuple[int, DeviceArray]:
    """Copies ``bits``, a NumPy array, to a device, with the strides and alignment of ``buffer``.

    Returns the address of the first element, and the memory that holds the copy.
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
    """Returns the address of ``x`` on a device, and the object that keeps its memory alive.

    An array on the device stays in place, and must have the strides and alignment of ``buffer``;
    one in host memory is copied to the device.

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
    layout, wanted = (seen.strides, seen.ptr % ALIGN), (buffer.strides, buffer.address)
    if layout != wanted:
        raise ShapeError(
            f"{name} has strides {list(layout[0])} and lies {layout[1]} bytes behind a multiple of "
            f"{ALIGN}; takes strides {list(wanted[0])}, {wanted[1]} bytes behind one"
        )
    return seen.ptr, x


def _within(raw: Any, buffer: Buffer, first: int) -> Any:
    """Returns a view of the bytes ``raw`` with the layout of ``buffer``; element 0 is at byte
    ``first``.
    """
    import numpy

    size = buffer.itemsize
    if not raw.size:
        return numpy.empty(buffer.shape, f"u{size}")
    strides = tuple(step * size for step in buffer.strides)
    flat = raw.view(f"u{size}")[first // size :]
    return numpy.lib.stride_tricks.as_strided(flat, buffer.shape, strides)
