"""The CPU device, which runs kernels as PTX in the interpreter.

Everything above the driver is as on a GPU: dispatcher, specs, grids, parameters. Only the image
differs (PTX instead of a cubin), and an interpreter runs it (:mod:`ptxgen.interp`). The device
poses as an H200, with its architecture, limits and number of SMs, so it takes the same routes.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ptxgen.errors import DeviceError, MemoryFault
from ptxgen.locks import Lock
from ptxgen.runtime.device import Device
from ptxgen.runtime.launch import Dim3, Function, TensorBox
from ptxgen.spec.base import CPU_DEVICE_SMS

if TYPE_CHECKING:
    from ptxgen.interp import Program

GPU = "NVIDIA H200"
SMS = CPU_DEVICE_SMS
MAX_SHARED = 227 << 10


class CpuDevice(Device):
    """A device that interprets the PTX of kernels, in memory of its own. Calls return when their
    work is done.

    ``settings``: fields of :class:`ptxgen.interp.Settings`. ``seed`` makes the order of warps
    random, ``early`` completes asynchronous copies immediately, ``visits`` limits loops,
    ``observer`` counts events. No result depends on them. ``get_device("cpu")`` has the defaults.
    """

    image_kind = "ptx"

    def __init__(self, index: int = 0, **settings: Any) -> None:
        from ptxgen.interp import GlobalMemory, Settings

        self.settings = Settings(**settings)
        self.memory = GlobalMemory()
        self._programs: list[Program] = []
        self._lock = Lock()
        super().__init__(
            "cpu",
            index,
            name="PTX interpreter",
            compute=(9, 0),
            sms=SMS,
            max_shared=MAX_SHARED,
        )

    @property
    def gpu(self) -> str:
        """Name of the GPU that this device poses as."""
        return GPU

    # -- kernels ------------------------------------------------------------------
    def _load(self, image: bytes, symbol: str) -> int:
        from ptxgen.interp import decode

        try:
            text = image.rstrip(b"\0").decode()
        except UnicodeDecodeError as error:
            raise DeviceError(
                f"{symbol}: {self} takes PTX text, got {len(image)} bytes of something else"
            ) from error
        compute = 10 * self.compute[0] + self.compute[1]
        program = decode(text, symbol, self.memory, compute)
        with self._lock:
            self._programs.append(program)
            return len(self._programs) - 1

    def program(self, function: Function) -> Program:
        """Returns the decoded kernel of ``function``."""
        return self._programs[function.handle]

    def _allow_shared(self, handle: int, symbol: str, nbytes: int) -> None:
        pass  # Device.load has checked it against max_shared

    def launch(
        self, function: Function, grid: Dim3, block: Dim3, stream: int, params: bytes, what: str
    ) -> None:
        """Runs a launch in the interpreter. Raises KernelFault when the kernel misbehaves."""
        from ptxgen.interp import launch

        with self._lock:
            try:
                launch(
                    self.program(function),
                    self.memory,
                    grid,
                    block,
                    params,
                    function.shared_bytes,
                    self.settings,
                )
            except DeviceError as error:
                error.add_note(f"launching {function.symbol} on {self}: {what}")
                raise

    def tensor_map(self, box: TensorBox, pointer: int) -> bytes:
        from ptxgen.interp.units.tma import TensorMap

        fields = pointer, box.itemsize, box.size, box.pitches, box.box, box.steps, box.swizzle
        return TensorMap(*fields, *(box.corners or ())).encode()

    def counted(self, work: Callable[[], None]) -> tuple[Any, ...]:
        from ptxgen.interp.run.profile import Profiler

        observer = Profiler()
        with self._lock:
            before, self.settings = self.settings, replace(self.settings, observer=observer)
            try:
                work()
            finally:
                self.settings = before
        return observer.kernels()

    # -- memory -------------------------------------------------------------------
    def alloc(self, nbytes: int) -> int:
        return self.memory.alloc(nbytes).base

    def free(self, ptr: int) -> None:
        if not self.memory.free(ptr):
            raise MemoryFault(f"freeing {ptr:#x}: {self.memory.describe(ptr, 1)}")

    def copy_in(self, dst: int, src: int, nbytes: int, stream: int = 0) -> None:
        self._access(self.memory.write, dst, src, nbytes)

    def copy_out(self, dst: int, src: int, nbytes: int, stream: int = 0) -> None:
        self._access(self.memory.read, dst, src, nbytes)

    def copy(self, dst: int, src: int, nbytes: int, stream: int = 0) -> None:
        staging = (ctypes.c_char * nbytes).from_buffer(bytearray(nbytes))
        self.copy_out(ctypes.addressof(staging), src, nbytes)
        self.copy_in(dst, ctypes.addressof(staging), nbytes)

    def memset(self, ptr: int, value: int, nbytes: int, stream: int = 0) -> None:
        self._access(self.memory.fill, ptr, value, nbytes)

    def _access(self, action: Any, *arguments: int) -> None:
        if arguments[-1]:
            try:
                action(*arguments)
            except LookupError as error:
                raise MemoryFault(f"{arguments[-1]} bytes: {error}") from None

    def synchronize(self, stream: int | None = None) -> None:
        """Returns immediately, since each launch ends before its call returns."""


def open_devices() -> Sequence[CpuDevice]:
    """Returns a list of the one CPU device."""
    return [CpuDevice()]
