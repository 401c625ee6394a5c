"""The arrays of one call: reads and checks them, uploads host arrays, and returns results."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from ptxgen.errors import DeviceError, ShapeError
from ptxgen.runtime import arrays
from ptxgen.runtime.arrays import ArrayView, DeviceArray
from ptxgen.runtime.device import Device
from ptxgen.runtime.registry import default_device
from ptxgen.runtime.stream import resolve
from ptxgen.runtime.strided import contiguous_strides


class Call:
    """The arrays of one call of an operation, with its device and stream.

    ``operands`` maps argument names to arrays, the first of which decides the framework of the
    results. ``views`` has a view of each, ``lead`` is the first, ``targets`` has those of arrays to
    be written; work is enqueued on ``stream`` (a handle) of ``device``. If ``host``, the arrays are
    in host memory; they are copied to the default device, and results are copied back, which waits
    for the device; nothing else waits.

    Raises what :func:`ptxgen.runtime.arrays.view` and :func:`ptxgen.runtime.stream.resolve` raise,
    and DeviceError for operands on different devices or a CPU torch tensor for a GPU.
    """

    def __init__(self, operands: Mapping[str, Any], stream: Any = None) -> None:
        self.stream = resolve(stream, operands.values())
        self.views = {n: arrays.view(obj, n, self.stream) for n, obj in operands.items()}
        found = arrays.common_device(self.views)
        self.host = found is None
        self.device: Device = found or default_device()
        self.lead = next(iter(self.views.values()))
        self.targets: dict[str, ArrayView] = {}
        if self.host:
            for name, source in self.views.items():
                _refuse_cpu_torch(source, name, self.device)

    @property
    def strided(self) -> bool:
        """Whether results may have any strides, which the caller's framework must support."""
        return self.host or self.lead.framework in ("torch", "cupy")

    def target(self, obj: Any, name: str, over: tuple[str, ...] = ()) -> ArrayView:
        """Checks the array ``obj``, argument ``name``, to be written; returns its view. ``over``:
        names of the operands that it may be identical to (in place).

        Raises ShapeError for an array that is read-only, immutable or self-overlapping, or overlaps
        an operand; DeviceError for an array on another device.
        """
        if arrays.framework_of(obj) == "jax":
            raise ShapeError(f"{name} is a JAX array, which is immutable; leave {name}= away")
        target = arrays.view(obj, name, self.stream)
        arrays.common_device({**self.views, name: target})
        if target.readonly:
            raise ShapeError(f"{name} is read-only; pass a writable array or leave {name}= away")
        if target.overlaps_itself():
            raise ShapeError(
                f"{name} has strides {list(target.strides)}, so that elements share memory; "
                "pass a contiguous array"
            )
        for other, source in (*self.views.items(), *self.targets.items()):
            if target.overlaps(source) and not (other in over and target.coincides(source)):
                raise ShapeError(f"{name} shares memory with {other}; pass an array of its own")
        self.targets[name] = target
        return target

    def stage(self) -> None:
        """Makes the stream wait for work that still writes the arrays. Call it after all checks."""
        for source in (*self.views.values(), *self.targets.values()):
            if source.after is not None:
                self.device.order(self.stream, source.after)

    def hold(self) -> None:
        """Keeps JAX and DLPack operands alive until the work enqueued so far has ended, since their
        memory is reused once the capsules are deleted.
        """
        owners = [v.owner for v in self.views.values() if v.framework in ("jax", "dlpack")]
        if owners and not self.host:
            self.device.retain(self.stream, owners)

    # -- memory -------------------------------------------------------------------------------
    def upload(self, view: ArrayView) -> ArrayView:
        """Returns a contiguous copy of a host array on the device."""
        return arrays.upload(view, self.device, self.stream)

    def fresh(self, view: ArrayView) -> ArrayView:
        """Returns device memory for a result that will be copied to the host array ``view``."""
        return arrays.view(DeviceArray(self.device, view.shape, view.dtype, self.stream), "out")

    def download(self, source: ArrayView, target: ArrayView) -> None:
        """Copies a contiguous device array into a host array, and waits for the copy."""
        arrays.download(source, target, self.device, self.stream)

    def scratch(self, nbytes: int) -> tuple[int, Any]:
        """Allocates device memory in the caller's framework; returns its address and its owner."""
        if not self.host and self.lead.framework in ("torch", "cupy"):
            found, give = arrays.empty(self.lead, (nbytes,), "uint8", self.device, self.stream)
            return found.ptr, give()
        ours = DeviceArray(self.device, (nbytes,), "uint8", self.stream)
        return ours.ptr, ours


class Results:
    """Device memory for one result of a call, and the arrays in it that the caller receives."""

    def __init__(self, call: Call, shape: tuple[int, ...], dtype: str) -> None:
        self._call, self._shape, self._dtype = call, shape, dtype
        self._view, self._wrap = arrays.empty(call.lead, shape, dtype, call.device, call.stream)
        self._array: Any = None

    @property
    def ptr(self) -> int:
        """Address of the memory on the device."""
        return self._view.ptr

    def give(self, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> Any:
        """Returns the array that the caller receives: a view of the result in the caller's
        framework, with strides and offset in elements. Call it after the work that writes the
        result is enqueued; for callers with host arrays it downloads the result.
        """
        if self._array is None:
            self._array = self._wrap() if not self._call.host else self._downloaded()
        whole = self._shape, contiguous_strides(self._shape), 0
        if (shape, strides, offset) == whole:
            return self._array
        return strided(self._array, shape, strides, offset)

    def _downloaded(self) -> Any:
        call = self._call
        array = arrays.host_empty(call.lead, self._shape, self._dtype)
        arrays.download(self._view, arrays.view(array, "out"), call.device, call.stream)
        return array


def strided(base: Any, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> Any:
    """Returns a view of the contiguous array ``base``; strides and offset count elements."""
    framework = arrays.framework_of(base)
    if framework == "torch":
        return base.as_strided(shape, strides, base.storage_offset() + offset)
    tricks, size = sys.modules[framework].lib.stride_tricks, base.dtype.itemsize
    flat = base.reshape(-1)[offset:]
    flat = flat.view(f"u{size}") if size <= 8 else flat  # as_strided refuses float8_e5m2
    return tricks.as_strided(flat, shape, tuple(s * size for s in strides)).view(base.dtype)


def _refuse_cpu_torch(source: ArrayView, name: str, target: Device) -> None:
    if source.framework == "torch" and target.kind == "cuda":
        raise DeviceError(
            f"{name} is a CPU torch tensor and {target} would compute; pass {name}.cuda(), or a "
            f"NumPy array ({name}.numpy()) to have it copied in and out"
        )
