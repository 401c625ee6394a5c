"""CUDA devices, through the driver API.

Everything happens in the device's *primary context*, the one that the CUDA runtime, and
with it PyTorch, CuPy and JAX, use: pointers, streams and captures are shared with them.
The context is retained once and never released, since other libraries may outlive us.
Set-up goes through ``cuda.bindings.driver``. A launch is one ctypes call with prebuilt
arguments (:class:`CudaLaunch`), which costs least from Python.
"""

from __future__ import annotations

import ctypes
import functools
import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from ptxgen.cost.gpu import TYPICAL, Rates
from ptxgen.errors import DeviceError, NoGpuError
from ptxgen.runtime.device import Device
from ptxgen.runtime.launch import (
    Dim3,
    Function,
    Launch,
    Parameters,
    Prepared,
    TensorBox,
    check_parameters,
)
from ptxgen.spec import standing_for
from ptxgen.spec.abi import MAP_BYTES

_NO_GPU = 'ptxgen.use_device("cpu") runs the same kernels without one, slowly'

_HINTS = {
    2: "free device memory, or call release() on the device's workspace",
    3: "CUDA cannot be used in a forked child of a process that used it; start it with spawn",
    209: "the cubin was built for another architecture",
    218: "the image is damaged or was built by a newer toolchain than this driver knows",
    700: "an earlier kernel of this process may be the culprit; the CUDA context is now unusable",
    719: "an earlier kernel of this process may be the culprit; the CUDA context is now unusable",
    900: "this operation cannot be captured in a CUDA graph",
    906: "the legacy default stream was used while another stream captures; pass stream=",
}


@functools.cache
def driver() -> Any:
    """Imports and initialises the module ``cuda.bindings.driver``.

    Raises DeviceError when the package, the driver or a GPU is missing.
    """
    try:
        from cuda.bindings import driver as cu
    except ImportError as error:
        if sys.platform == "darwin":
            raise NoGpuError(f"CUDA does not serve macOS; {_NO_GPU}") from error
        raise DeviceError(
            f"the package cuda-bindings is missing ({error}); pip install cuda-bindings. {_NO_GPU}"
        ) from error
    try:
        (status,) = cu.cuInit(0)
    except RuntimeError as error:  # libcuda.so.1 does not exist
        raise NoGpuError(f"there is no CUDA driver here ({error}); {_NO_GPU}") from error
    if status == cu.CUresult.CUDA_ERROR_NO_DEVICE:
        raise NoGpuError(f"there is no GPU here ({status.name}); {_NO_GPU}")
    if status != cu.CUresult.CUDA_SUCCESS:
        raise DeviceError(f"CUDA does not start here ({status.name}); {_NO_GPU}")
    return cu


@functools.cache
def libcuda() -> ctypes.CDLL:
    """Loads the CUDA driver library with ctypes, for calls that must cost little in Python.

    The GIL is released inside each call (CDLL): a launch blocks when the stream's queue is
    full, and a host callback on that stream may need the GIL before it can drain.
    """
    driver()
    return ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")


def describe(status: int) -> str:
    """Returns name and text of the CUresult ``status``, and a hint about its cause if known."""
    name, text = f"CUDA error {status}", "the driver has no text for it"
    try:
        cu = driver()
        result = cu.CUresult(status)
        name, text = result.name, cu.cuGetErrorString(result)[1].decode()
    except (DeviceError, ValueError, AttributeError):
        pass  # no driver, or an error newer than the bindings
    hint = _HINTS.get(status)
    return f"{name} ({text})" + (f"; {hint}" if hint else "")


def check(status: int, what: str) -> None:
    """Raises DeviceError, which names the failed action ``what``, unless ``status`` is success."""
    if status:
        raise DeviceError(f"{what} failed: {describe(int(status))}")


def _call(what: str, function: Callable[..., Any], *args: Any) -> Any:
    """Calls a ``cuda.bindings`` function and returns its result, if it has one."""
    status, *results = function(*args)
    check(int(status), what)
    return results[0] if results else None


def open_devices() -> Sequence[CudaDevice]:
    """Returns all CUDA devices, in the driver's order. Creates no context."""
    cu = driver()
    return [CudaDevice(i) for i in range(_call("counting the GPUs", cu.cuDeviceGetCount))]


def pointer_device(ptr: int) -> int:
    """Returns the index of the GPU whose memory ``ptr`` points into.

    Raises DeviceError for host memory and unknown pointers.
    """
    cu = driver()
    if not int(_call("reading the current context", cu.cuCtxGetCurrent)):
        with CudaDevice(0).current():  # any context will do
            return pointer_device(ptr)
    # Not through cuda-bindings, whose cuPointerGetAttribute says 0 for every GPU (seen with 13.0).
    attribute = int(cu.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
    index = ctypes.c_int(-1)
    status = libcuda().cuPointerGetAttribute(ctypes.byref(index), attribute, ctypes.c_uint64(ptr))
    check(status, f"finding the GPU of {ptr:#x}")
    return index.value


def rates(compute: tuple[int, int], max_shared: int, get: Callable[[str], int]) -> Rates | None:
    """Returns a GPU's rates for the cost model; None if no kernel runs on its architecture.

    ``get`` reads a device attribute. A rate that the driver does not report (some newer GPUs report
    no memory clock) is that of a typical GPU.
    """
    found = standing_for(compute, max_shared)
    if found is None:
        return None
    typical = TYPICAL[found.name]
    clock = get("CLOCK_RATE") / 1e6  # kHz
    memory = 2 * get("MEMORY_CLOCK_RATE") * get("GLOBAL_MEMORY_BUS_WIDTH") / 8 / 1e3  # bytes a µs
    l2 = get("L2_CACHE_SIZE")
    return replace(
        typical,
        clock=clock or typical.clock,
        memory=memory or typical.memory,
        l2=float(l2) or typical.l2,
    )


class CudaDevice(Device):
    """A GPU, in its primary context (created at first use, shared with the CUDA runtime)."""

    can_time = True

    def __init__(self, index: int) -> None:
        cu = driver()
        self._handle = _call(f"opening cuda:{index}", cu.cuDeviceGet, index)
        attributes = cu.CUdevice_attribute

        def get(name: str) -> int:
            attribute = getattr(attributes, f"CU_DEVICE_ATTRIBUTE_{name}")
            return int(_call(f"reading {name}", cu.cuDeviceGetAttribute, attribute, self._handle))

        self._probes: list[tuple[Any, ctypes.c_void_p, tuple[Any, ...]]] = []
        name = _call("reading the name", cu.cuDeviceGetName, 256, self._handle)
        compute = get("COMPUTE_CAPABILITY_MAJOR"), get("COMPUTE_CAPABILITY_MINOR")
        max_shared = get("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN")
        super().__init__(
            "cuda",
            index,
            name=name.split(b"\0")[0].decode(),
            compute=compute,
            sms=get("MULTIPROCESSOR_COUNT"),
            max_shared=max_shared,
            rates=rates(compute, max_shared, get),
        )

    @functools.cached_property
    def context(self) -> int:
        """Handle of the primary context."""
        what = f"retaining the primary context of {self}"
        return int(_call(what, driver().cuDevicePrimaryCtxRetain, self._handle))

    @contextmanager
    def current(self) -> Iterator[None]:
        """Context manager that makes the context current in this thread.

        Restores the previous one at the end. If there was none, that of the first GPU stays
        current, as after a first call of the CUDA runtime. Otherwise the driver would refuse each
        launch from such a thread, for example of autograd's.
        """
        cu = driver()
        before = int(_call("reading the current context", cu.cuCtxGetCurrent))
        what, context = f"entering the context of {self}", cu.CUcontext(self.context)
        if not before and not self.index:
            _call(what, cu.cuCtxSetCurrent, context)
            before = self.context
        if before == self.context:
            yield
            return
        _call(what, cu.cuCtxPushCurrent, context)
        try:
            yield
        finally:
            _call(f"leaving the context of {self}", cu.cuCtxPopCurrent)

    @contextmanager
    def _relaxed(self) -> Iterator[None]:
        """Context manager like :meth:`current`, for calls that are no stream operations
        (allocating, loading); also relaxes the capture mode.

        While any thread captures in global mode, the driver refuses such calls on all threads and
        invalidates the capture, as they might wait for captured work. Ours cannot.
        """
        cu = driver()
        relaxed = cu.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        with self.current():
            mode = _call("relaxing the capture mode", cu.cuThreadExchangeStreamCaptureMode, relaxed)
            try:
                yield
            finally:
                _call("restoring the capture mode", cu.cuThreadExchangeStreamCaptureMode, mode)

    # -- kernels ------------------------------------------------------------------
    def _load(self, image: bytes, symbol: str) -> int:
        cu = driver()
        with self._relaxed():
            module = _call(f"loading {symbol} on {self} ({self.arch})", cu.cuModuleLoadData, image)
            what = f"finding the kernel {symbol} in its module"
            return int(_call(what, cu.cuModuleGetFunction, module, symbol.encode()))

    def _allow_shared(self, handle: int, symbol: str, nbytes: int) -> None:
        cu = driver()
        limit = cu.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        what = f"allowing {symbol} {nbytes} bytes of shared memory"
        with self._relaxed():
            _call(what, cu.cuFuncSetAttribute, cu.CUfunction(handle), limit, nbytes)

    def prepare(self, *given: Any, **how: Any) -> Launch:
        """Implements :meth:`Device.prepare`. Programmatic launches need compute capability 9.0."""
        return CudaLaunch(self, *given, **how)

    def tensor_map(self, box: TensorBox, pointer: int) -> bytes:
        """Encodes a tensor map of memory at ``pointer``. Slow, so :class:`CudaLaunch` keeps it."""
        cu = driver()
        kinds, swizzles = cu.CUtensorMapDataType, cu.CUtensorMapSwizzle
        width = f"_{box.swizzle}B" if box.swizzle else "_NONE"
        # The im2col encoder takes corners as plain integers, and the box as two numbers.
        encode = cu.cuTensorMapEncodeIm2col if box.corners else cu.cuTensorMapEncodeTiled
        spans = (*map(list, box.corners), *box.box) if box.corners else (
            [cu.cuuint32_t(size) for size in box.box],
        )  # fmt: skip
        with self.current():  # a thread may have none yet, such as a new one of torch's autograd
            encoded = _call(
                f"making a tensor map of {box} at {pointer:#x}",
                encode,
                getattr(kinds, f"CU_TENSOR_MAP_DATA_TYPE_UINT{8 * box.itemsize}"),
                len(box.size),
                pointer,
                [cu.cuuint64_t(size) for size in box.size],
                [cu.cuuint64_t(pitch) for pitch in box.pitches],
                *spans,
                [cu.cuuint32_t(step) for step in box.steps or (1,) * len(box.size)],
                cu.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
                getattr(swizzles, f"CU_TENSOR_MAP_SWIZZLE{width}"),
                # 256 bytes cost up to 10 % more
                cu.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                cu.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
            )
        return ctypes.string_at(encoded.getPtr(), MAP_BYTES)

    def launch(
        self, function: Function, grid: Dim3, block: Dim3, stream: int, params: bytes, what: str
    ) -> None:
        CudaLaunch(self, function, grid, block, Parameters(params, ()), 0, what).fire(stream)

    # -- memory -------------------------------------------------------------------
    def alloc(self, nbytes: int) -> int:
        with self._relaxed():
            what = f"allocating {nbytes} bytes on {self}"
            return int(_call(what, driver().cuMemAlloc, max(nbytes, 1)))

    def free(self, ptr: int) -> None:
        """Frees device memory. The driver waits for work that uses it."""
        with self._relaxed():
            _call(f"freeing memory of {self}", driver().cuMemFree, ptr)

    def copy_in(self, dst: int, src: int, nbytes: int, stream: int = 0) -> None:
        what = f"copying {nbytes} bytes to {self}"
        self._enqueue(what, driver().cuMemcpyHtoDAsync, dst, src, nbytes, stream)

    def copy_out(self, dst: int, src: int, nbytes: int, stream: int = 0) -> None:
        what = f"copying {nbytes} bytes from {self}"
        self._enqueue(what, driver().cuMemcpyDtoHAsync, dst, src, nbytes, stream)

    def copy(self, dst: int, src: int, nbytes: int, stream: int = 0) -> None:
        what = f"copying {nbytes} bytes on {self}"
        self._enqueue(what, driver().cuMemcpyDtoDAsync, dst, src, nbytes, stream)

    def memset(self, ptr: int, value: int, nbytes: int, stream: int = 0) -> None:
        what = f"filling {nbytes} bytes on {self}"
        self._enqueue(what, driver().cuMemsetD8Async, ptr, value, nbytes, stream)

    def _enqueue(self, what: str, function: Callable[..., Any], *args: int) -> None:
        with self.current():
            _call(what, function, *args)

    # -- streams ------------------------------------------------------------------
    def synchronize(self, stream: int | None = None) -> None:
        if stream is None:
            self._enqueue(f"waiting for {self}", driver().cuCtxSynchronize)
        else:
            what = f"waiting for a stream of {self}"
            self._enqueue(what, driver().cuStreamSynchronize, stream)

    def lane(self, stream: int) -> tuple[int, int]:
        """Returns the stream's id, which no later stream reuses, and its capture's id (0 for none).

        Of a capturing stream, whose id the driver (580) refuses to report, returns the handle,
        which is not reused within a capture.
        """
        try:
            cells, handle, where = self._probes.pop()
        except IndexError:  # other threads are using all of them
            cells, handle = (ctypes.c_uint64 * 3)(), ctypes.c_void_p()
            where = tuple(ctypes.byref(cells, at) for at in (0, 8, 16))
        handle.value, cells[0], cells[2] = stream, stream, 0
        if self._probe(cells, handle, where):  # perhaps this thread has no or another context
            with self.current():
                check(self._probe(cells, handle, where), f"identifying a stream of {self}")
        found = cells[0], cells[2]
        self._probes.append((cells, handle, where))
        return found

    @staticmethod
    def _probe(cells: Any, handle: ctypes.c_void_p, where: tuple[Any, ...]) -> int:
        """Reads a stream's id, capture state and capture id into ``cells``, at addresses ``where``;
        returns the driver's status.
        """
        library = libcuda()
        status: int = library.cuStreamGetCaptureInfo_v2(
            handle, where[1], where[2], None, None, None
        )
        if status == 0 and cells[2] == 0:
            status = library.cuStreamGetId(handle, where[0])
        return status

    @property
    def identity(self) -> str:
        version = _call("reading the driver's version", driver().cuDriverGetVersion)
        return f"{super().identity}, driver API {version}"

    def capturing(self, stream: int) -> bool:
        return self.lane(stream)[1] != 0

    def timed(
        self, work: Sequence[Callable[[], None]], stream: int, rounds: int
    ) -> list[list[float]]:
        cu = driver()
        flushed = 2 * int(self.rates.l2 if self.rates else 1 << 27)
        with self.current():
            flush = self.alloc(flushed)
            plain = cu.CUevent_flags.CU_EVENT_DEFAULT
            pairs = [
                [_call("creating an event", cu.cuEventCreate, plain) for _ in range(2)]
                for _ in range(len(work) * rounds)
            ]
            try:
                for run in work:
                    run()
                events = iter(pairs)
                for number in range(rounds):
                    for run in work:
                        begin, end = next(events)
                        self.memset(flush, number, flushed, stream)
                        _call("recording an event", cu.cuEventRecord, begin, stream)
                        run()
                        _call("recording an event", cu.cuEventRecord, end, stream)
                self.synchronize(stream)
                us = [1e3 * _call("reading a time", cu.cuEventElapsedTime, *pair) for pair in pairs]
            finally:
                for event in (event for pair in pairs for event in pair):
                    _call("destroying an event", cu.cuEventDestroy, event)
                self.free(flush)
        return [us[i :: len(work)] for i in range(len(work))]

    def pinned(self, nbytes: int) -> tuple[int, Any]:
        """Allocates page-locked host memory."""
        with self._relaxed():
            what = f"allocating {nbytes} bytes of pinned memory"
            found = Pinned(self, int(_call(what, driver().cuMemHostAlloc, nbytes, 0)))
        return found.address, found

    def stamp(self, stream: int) -> Event:
        """Records a CUDA event with a time after the work enqueued on ``stream`` so far."""
        cu = driver()
        with self.current():
            event = _call("creating an event", cu.cuEventCreate, cu.CUevent_flags.CU_EVENT_DEFAULT)
            _call("recording an event", cu.cuEventRecord, event, stream)
            return Event(self, event)

    def since(self, base: Event, stamps: Sequence[Event]) -> list[float]:
        self.synchronize()
        cu = driver()
        with self.current():
            return [
                1e3 * _call("reading a time", cu.cuEventElapsedTime, base.handle, each.handle)
                for each in stamps
            ]

    def event(self, stream: int) -> Event:
        with self.current():
            return Event(self, self._record(stream))

    def wait(self, stream: int, event: Event) -> None:
        self._enqueue("ordering two streams", driver().cuStreamWaitEvent, stream, event.handle, 0)

    def mark(self, stream: int) -> Any:
        """Returns an event recorded after the work on ``stream``; while the stream captures None,
        for which :meth:`done` is always false.
        """
        if self.lane(stream)[1]:
            return None
        with self.current():
            return self._record(stream)

    def done(self, mark: Any) -> bool:
        if mark is None:
            return False
        cu = driver()
        with self._relaxed():
            (status,) = cu.cuEventQuery(mark)
            if status == cu.CUresult.CUDA_ERROR_NOT_READY:
                return False
            check(int(status), f"asking {self} whether its work is done")
            _call("destroying an event", cu.cuEventDestroy, mark)
        return True

    @contextmanager
    def streams(self, count: int) -> Iterator[tuple[int, ...]]:
        cu = driver()
        created: list[Any] = []
        flags = cu.CUstream_flags.CU_STREAM_NON_BLOCKING
        with self.current():
            try:
                for _ in range(count):
                    created.append(_call("creating a stream", cu.cuStreamCreate, flags))
                yield tuple(map(int, created))
            finally:
                for stream in created:
                    _call("destroying a stream", cu.cuStreamDestroy, stream)

    def recorded(self, work: Callable[..., None], streams: int = 1) -> Callable[[int], None]:
        """Captures ``work`` on ``streams`` new streams; returns the executable CUDA graph."""
        cu = driver()
        with self.streams(streams) as (stream, *others):
            mode = cu.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
            _call("beginning a capture", cu.cuStreamBeginCapture, stream, mode)
            try:
                work(stream, *others)
            except BaseException:
                cu.cuStreamEndCapture(stream)  # fails, too; ignored
                raise
            graph = _call("ending a capture", cu.cuStreamEndCapture, stream)
            try:
                executable = _call("making a CUDA graph", cu.cuGraphInstantiate, graph, 0)
            finally:
                _call("destroying a graph", cu.cuGraphDestroy, graph)
        return Graph(self, executable)

    def _record(self, stream: int) -> Any:
        """Returns a new event, recorded after the work on ``stream`` (in the current context)."""
        cu = driver()
        untimed = cu.CUevent_flags.CU_EVENT_DISABLE_TIMING
        event = _call("creating an event", cu.cuEventCreate, untimed)
        _call("recording an event", cu.cuEventRecord, event, stream)
        return event


# -- launching --------------------------------------------------------------------------
# One buffer holds all that cuLaunchKernelEx reads:
#   CUlaunchConfig   7 u32 (grid, block, shared bytes), pad; u64 stream, attrs; u32 numAttrs, pad
#   parameters       as packed by the caller, then tensor maps; padded to 8, aligned to 64
#   u64              length of the parameters
#   5 u64            CU_LAUNCH_PARAM_BUFFER_POINTER (1), &parameters,
#                    CU_LAUNCH_PARAM_BUFFER_SIZE (2), &length, CU_LAUNCH_PARAM_END (0)
# The stream and the leading pointers lie close together, so that one pack_into rewrites
# all values that change per call (and attrs and numAttrs, which lie between them).
_CONFIG = struct.Struct("<7I4xQ16x")
_STREAM_AT = 32
_EXTRA = struct.Struct("<6Q")

# A CUlaunchAttribute, which is only ever read: u32 id (6 is PROGRAMMATIC_STREAM_SERIALIZATION),
# pad to 8; a union of 64 bytes that starts with the value (1: allowed). The kernel may then start
# when every CTA of the launch before it has permitted that or ended, instead of when all of them
# have ended. That is safe for a kernel that begins with griddepcontrol.wait (all GEMM kernels do):
# - It touches no memory before the wait. The wait ends when the launch before it has finished and
#   its writes are visible.
# - Operands, bias and the old output were written by earlier work. The first launch of a route is a
#   normal one, which started after all of that had ended. Each later launch waits for the one
#   before it, and so ends after it. So the wait covers earlier work as well.
# - Another thread may enqueue between the two on the same stream. A launch in between started after
#   the first had ended, or is programmatic, too, and waits for the first before it ends.
# - Later work on the stream is ordered behind the second kernel, hence behind the first.
# Captured, the pair becomes two nodes with a programmatic edge, and the same holds.
_PROGRAMMATIC = ctypes.create_string_buffer(struct.pack("<I4xI60x", 6, 1), 72)

_INVALID_CONTEXT, _INVALID_HANDLE = 201, 400  # CUresult

_Map = list[Any]
"""State of a tensor map in an argument buffer: index of its pointer, the address encoded in it (or
None), the address of the map itself, and its TensorBox."""
_Buffer = tuple[Any, ctypes.c_void_p, Any, ctypes.c_void_p | None, list[_Map]]
"""State of an argument buffer of a launch: its memory; pointers to the configuration, to the array
of parameter pointers (or None) and to the extra options (or None), as cuLaunchKernelEx takes them;
and its tensor maps."""


class CudaLaunch:
    """One kernel launch through ``cuLaunchKernelEx``, whose arguments are in a prebuilt buffer.

    Four prebuilt arguments instead of cuLaunchKernel's eleven save about 0.45 µs of conversions in
    ctypes. A buffer in use is not in the list of idle ones, so threads never share one.

    With several GPUs, a launch first checks that its context is current (0.3 µs). With one GPU, the
    driver refuses a CUfunction in a foreign context; the launch is then repeated in its own.
    """

    __slots__ = (
        "_attributes",
        "_device",
        "_enqueue",
        "_function",
        "_idle",
        "_of",
        "_params",
        "_parts",
        "_symbol",
        "_what",
        "fire",
    )

    fire: Callable[..., None]
    """Enqueues the launch: ``fire(stream, *pointers)``."""

    def __init__(
        self,
        device: CudaDevice,
        function: Function,
        grid: Dim3,
        block: Dim3,
        params: Parameters,
        pointers: int,
        what: str,
        programmatic: bool = False,
    ) -> None:
        check_parameters(params, pointers, what)
        self._of = Prepared(function, grid, block, params, pointers, what, programmatic)
        self._device, self._symbol, self._what = device, function.symbol, what
        self._function = ctypes.c_void_p(function.handle)
        self._enqueue = _guarded(device) if several_gpus() else libcuda().cuLaunchKernelEx
        self._parts = (*grid, *block, function.shared_bytes), params.packed
        self._params = params
        self._attributes = (ctypes.addressof(_PROGRAMMATIC), 1) if programmatic else (0, 0)
        self._idle = [self._build()]
        self.fire = self._bind(pointers)

    @property
    def prepared(self) -> tuple[Prepared, ...]:
        """The arguments that this launch was prepared from, as a tuple of one."""
        return (self._of,)

    def _build(self) -> _Buffer:
        config, params = self._parts
        padded = params + bytes(-len(params) % 8)
        size = _CONFIG.size + len(padded) + _EXTRA.size
        owner = ctypes.create_string_buffer(size + 64)
        shift = -(ctypes.addressof(owner) + _CONFIG.size) % 64  # so that the parameters are aligned
        memory = (ctypes.c_char * size).from_buffer(owner, shift)
        base = ctypes.addressof(memory)
        tail = base + _CONFIG.size + len(padded)
        _CONFIG.pack_into(memory, 0, *config, 0)
        ctypes.memmove(base + _CONFIG.size, padded, len(padded))
        _EXTRA.pack_into(memory, tail - base, len(params), 1, base + _CONFIG.size, 2, tail, 0)
        first = base + _CONFIG.size
        maps: list[_Map] = [[box.pointer, None, first + box.at, box] for box in self._params.maps]
        start = ctypes.c_void_p(base)
        if not maps:
            return memory, start, None, ctypes.c_void_p(tail + 8), maps
        # Compilers place aligned parameters by the constant bank, so the driver may sort them in.
        found = [first + at for at in self._params.offsets] + [where for *_, where, _ in maps]
        return memory, start, (ctypes.c_void_p * len(found))(*found), None, maps

    def _bind(self, pointers: int) -> Callable[..., None]:
        """Returns ``fire`` as straight-line code for ``pointers`` pointers, which takes a third
        less time than a method with ``*pointers``.
        """
        attributes, writes = self._attributes, self._params.writes
        form = "2QI4x" if attributes[1] else "Q16x"  # pad bytes are written as zeros
        return _firing(pointers, self._params.order[:writes], attributes, bool(self._params.maps))(
            self._idle.pop,
            self._idle.append,
            self._build,
            struct.Struct(f"<{form}{writes}Q").pack_into,
            self._enqueue,
            self._function,
            self._failed,
            self._set_address,
        )

    def _set_address(self, found: _Map, pointer: int) -> None:
        """Makes a tensor map in an argument buffer refer to address ``pointer``: encodes the map at
        first use, later replaces its address alone. ``found``: state of the map.
        """
        _, before, where, box = found
        found[1] = None  # in case the next lines fail
        if before is None:
            ctypes.memmove(where, self._device.tensor_map(box, pointer), MAP_BYTES)
        else:
            status = _replace_address()(where, pointer)
            if status == _INVALID_CONTEXT:  # a thread that has none yet
                with self._device.current():
                    status = _replace_address()(where, pointer)
            check(status, f"moving a tensor map to {pointer:#x}")
        found[1] = pointer

    def _failed(self, buffer: _Buffer, status: int) -> None:
        """Handles a failed launch of ``buffer``: repeats it if it was refused for a wrong context
        (by ``status``, a CUresult), and raises DeviceError otherwise.
        """
        if status in (_INVALID_CONTEXT, _INVALID_HANDLE):
            with self._device.current():
                status = self._enqueue(buffer[1], self._function, buffer[2], buffer[3])
        check(status, f"launching {self._symbol} for {self._what} on {self._device}")


@functools.lru_cache(maxsize=1024)
def _firing(
    pointers: int, order: tuple[int | None, ...], attributes: tuple[int, int], maps: bool
) -> Callable[..., Callable[..., None]]:
    """Generates a function that takes a launch's state and returns :attr:`CudaLaunch.fire` for it.

    ``pointers``: how many ``fire`` takes; ``order``: the leading part of :attr:`Parameters.order`,
    up to the last pointer that is not null; ``attributes``: address and number of
    CUlaunchAttributes; ``maps``: whether there are tensor maps. Only integers go into the source
    (format ``d``).
    """
    given = "".join(f", p{i:d}" for i in range(pointers))
    written = "".join(", 0" if which is None else f", p{which:d}" for which in order)
    if attributes[1]:
        written = f", {attributes[0]:d}, {attributes[1]:d}{written}"
    set_addresses = f"""
        pointers = ({given.removeprefix(", ")},)
        for found in maps:
            if found[1] != pointers[found[0]]:
                set_address(found, pointers[found[0]])"""
    source = f"""
def make(pop, push, build, pack, enqueue, function, failed, set_address):
    def fire(stream{given}):
        try:
            buffer = pop()
        except IndexError:  # other threads are using the others
            buffer = build()
        memory, config, parameters, extra, maps = buffer
        pack(memory, {_STREAM_AT}, stream{written}){set_addresses if maps else ""}
        status = enqueue(config, function, parameters, extra)
        if status:
            failed(buffer, status)
        push(buffer)
    return fire
"""
    namespace: dict[str, Any] = {}
    exec(compile(source, "<fire>", "exec"), namespace)
    made: Callable[..., Callable[..., None]] = namespace["make"]
    return made


@functools.cache
def _replace_address() -> Callable[[int, int], int]:
    """Returns ``cuTensorMapReplaceAddress``, which is many times cheaper than encoding a map."""
    prototype = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    function: Callable[[int, int], int] = prototype(("cuTensorMapReplaceAddress", libcuda()))
    return function


def _guarded(device: CudaDevice) -> Callable[..., int]:
    """Returns ``cuLaunchKernelEx`` with a check: it returns INVALID_CONTEXT unless the device's
    context is current.
    """
    library, context = libcuda(), device.context
    enqueue, ask = library.cuLaunchKernelEx, library.cuCtxGetCurrent
    cells: list[tuple[ctypes.c_void_p, Any]] = []

    def launch(config: Any, function: Any, params: Any, extra: Any) -> int:
        try:
            cell = cells.pop()
        except IndexError:
            found = ctypes.c_void_p()
            cell = found, ctypes.byref(found)
        elsewhere = ask(cell[1]) or cell[0].value != context
        cells.append(cell)
        return _INVALID_CONTEXT if elsewhere else int(enqueue(config, function, params, extra))

    return launch


@functools.cache
def several_gpus() -> bool:
    """Whether this process sees more than one GPU."""
    return bool(_call("counting the GPUs", driver().cuDeviceGetCount) > 1)


class Event:
    """A CUDA event, destroyed with this object; the driver keeps it for work that waits for it."""

    def __init__(self, device: CudaDevice, handle: Any) -> None:
        self._device, self.handle = device, handle

    def __del__(self) -> None:
        if not sys.is_finalizing():
            with self._device.current():
                _call("destroying an event", driver().cuEventDestroy, self.handle)


class Pinned:
    """Page-locked host memory at ``address``, freed with this object."""

    def __init__(self, device: CudaDevice, address: int) -> None:
        self._device, self.address = device, address

    def __del__(self) -> None:
        if not sys.is_finalizing():
            with self._device._relaxed():
                _call("freeing pinned memory", driver().cuMemFreeHost, self.address)


class Graph:
    """An executable CUDA graph, destroyed with this object; replays in progress still complete."""

    def __init__(self, device: CudaDevice, handle: Any) -> None:
        self._device, self._handle = device, handle

    def __call__(self, stream: int) -> None:
        """Enqueues a launch of the graph."""
        with self._device.current():
            what = f"launching a graph on {self._device}"
            _call(what, driver().cuGraphLaunch, self._handle, stream)

    def __del__(self) -> None:
        handle, self._handle = self._handle, None
        if handle is not None and not sys.is_finalizing():
            with self._device._relaxed():
                _call("destroying a graph", driver().cuGraphExecDestroy, handle)
